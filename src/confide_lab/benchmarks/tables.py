"""Print the tables of docs/methods from the JSON that the benchmarks wrote: `python -m confide_lab.benchmarks.tables`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUT = Path("out/bench")


def _line(row: dict[str, Any]) -> str:
    value = f"{row['value']:.3g}"
    if "interval" in row:
        value += f" [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
    bar = (
        f"{row['low']:.3g} to {row['high']:.3g}"
        if "low" in row
        else ("" if row.get("bar") is None else f"{row['bar']:g}")
    )
    more = ", ".join(f"{name} {row[name]:.3g}" for name in ("ols", "ok") if name in row)
    return f"| {row['check']} | {value} | {bar} | {more} |"


def main() -> None:
    for name in ("acceptance", "r_squared", "speed"):
        path = OUT / f"{name}.json"
        if path.exists():
            print(f"\n{name}\n\n| check | measured | asked | |\n| --- | --- | --- | --- |")
            print("\n".join(_line(row) for row in json.loads(path.read_text()) if "value" in row))


if __name__ == "__main__":
    main()
