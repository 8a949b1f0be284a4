"""Run every benchmark, or those named: `python -m benchmarks acceptance speed`.

Commands of their own: `python -m benchmarks faults` lists planted faults, `python -m benchmarks truth` prints what intervals hold.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path

NAMES = (
    "factor_means",
    "acceptance",
    "r_squared",
    "speed",
    "default_calls",
    "noise",
    "ledger",
    "audit",
    "audit_power",
    "audit_states",
    "float_attacks",
    "quantile",
    "binagg",
    "binagg_errata",
    "synthetic",
    "joint_tests",
    "shared",
    "ptr",
    "logistic",
    "log_odds",
    "truth",
    "least_squares",
    "forecasts",
    "forecasts_outcomes",
    "forecasts_curves",
    "rivals_logistic",
    "advice",
)


def main() -> None:
    if sys.argv[1:2] in (["faults"], ["truth"]):
        raise SystemExit(importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:]))
    out = Path("out/bench")
    out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in sys.argv[1:] or NAMES:
        start = time.perf_counter()
        result = importlib.import_module(f"benchmarks.{name}").run()
        (out / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
        print(f"{name}: {time.perf_counter() - start:.0f} s -> {out / name}.json", flush=True)
        failed += [f"{name}: {row['check']}" for row in result if not row.get("passed", True)]
    if not sys.argv[1:]:
        code = subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "long", "-n", "2"], check=False).returncode
        failed += ["long tests"] if code not in (0, 5) else []
    for line in failed:
        print(f"FAILED  {line}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
