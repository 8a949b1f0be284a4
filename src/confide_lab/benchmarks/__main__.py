"""Run benchmarks by name: `confide lab bench acceptance speed`, or `python -m confide_lab.benchmarks acceptance speed`; without a name,
list them.

Commands of their own: `confide lab bench faults` lists planted faults, `confide lab bench truth` prints what intervals hold.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMES = (
    "factor_means",
    "acceptance",
    "r_squared",
    "speed",
    "interval_speed",
    "default_calls",
    "start",
    "default_levels",
    "scale",
    "noise",
    "ledger",
    "audit",
    "audit_power",
    "audit_states",
    "float_attacks",
    "quantile",
    "binagg",
    "binagg_errata",
    "zil_errata",
    "zil_acceptance",
    "local_records",
    "synthetic",
    "joint_tests",
    "shared",
    "ptr",
    "logistic",
    "log_odds",
    "separation",
    "beside_far",
    "truth",
    "least_squares",
    "forecasts",
    "forecasts_outcomes",
    "forecasts_curves",
    "ranges",
    "rivals_logistic",
    "rivals_tables",
    "reduction",
    "pate_errata",
    "votes",
    "tables_page",
    "tests_power",
    "pooled_lines",
    "advice",
    "units",
    "verbs",
    "within",
)


#: Tests of the checkout that belong to `all`: the long ones, and every page of documentation.
MARKS = "long or page"

#: Parts of others, asked for by name.
PARTS = ("advice_short", "ledger_grants")

#: Those with words of their own, and where they are.
COMMANDS = {
    "faults": "faults",
    "truth": "truth.bench",
    "tables_real": "tables_real",
    "tables_hostile": "tables_hostile",
    "ranges": "ranges",
}


def main(words: Sequence[str]) -> int:
    """Runs what is named, or lists the names; the number of checks that failed, at most 1."""
    if not words:
        print("\n".join(f"{name:20} {about(name)}" for name in sorted({*NAMES, *PARTS, *COMMANDS})))
        print(f"{'all':20} all of them, and the long tests and all pages of the checkout in this folder")
        return 0
    if words[0] in COMMANDS:
        return int(module(words[0]).main(list(words[1:])) or 0)
    names = NAMES if words[0] == "all" else words
    if unknown := [name for name in names if name not in (*NAMES, *PARTS)]:
        print(f"no benchmark is called {unknown[0]!r}; `confide lab bench` lists the names", file=sys.stderr)
        return 2
    out = Path("out/bench")
    out.mkdir(parents=True, exist_ok=True)
    failed = [line for name in names for line in _run(name, out)]
    if words[0] == "all":
        code = subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", MARKS, "-n", "2"], check=False).returncode
        failed += ["long tests"] if code not in (0, 5) else []
    for line in failed:
        print(f"FAILED  {line}")
    return int(bool(failed))


def _run(name: str, out: Path) -> list[str]:
    start = time.perf_counter()
    result = module(name).run()
    (out / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"{name}: {time.perf_counter() - start:.0f} s -> {out / name}.json", flush=True)
    checks = [row for row in result if isinstance(row, dict)]  # a benchmark of figures alone gives them by name
    return [f"{name}: {row['check']}" for row in checks if not row.get("passed", True)]


def module(name: str) -> Any:
    """The module of a benchmark."""
    return importlib.import_module(f"{__package__}.{COMMANDS.get(name, name)}")


def about(name: str) -> str:
    """The first sentence of a benchmark's docstring; the module is not imported."""
    spec = importlib.util.find_spec(f"{__package__}.{COMMANDS.get(name, name)}")
    text = ast.get_docstring(ast.parse(Path(str(spec and spec.origin)).read_text())) or ""
    return text.split("\n", 1)[0]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
