"""The slowest tests, functions (all cases of one together) and files of a run: `python .ci/slowest.py out/tests.xml [how many]`."""

from __future__ import annotations

import sys
from collections import defaultdict
from xml.etree import ElementTree


def main(path: str, count: str = "20") -> None:
    totals: dict[str, dict[str, float]] = {kind: defaultdict(float) for kind in ("tests", "functions", "files")}
    for case in ElementTree.parse(path).iter("testcase"):
        file, name, seconds = case.get("classname", ""), case.get("name", ""), float(case.get("time", 0))
        function = f"{file}.{name.partition('[')[0]}"
        for kind, one in (("tests", f"{file}.{name}"), ("functions", function), ("files", file)):
            totals[kind][one] += seconds
    whole = sum(totals["files"].values())
    print(f"{len(totals['tests']):,} tests, {whole:,.0f} seconds by the clock, setup included")
    for kind, found in totals.items():
        print(f"\n{kind}")
        for name, seconds in sorted(found.items(), key=lambda one: -one[1])[: int(count)]:
            print(f"{seconds:9.1f} s {seconds / whole:6.1%}  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
