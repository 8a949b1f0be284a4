"""CPU of whole commands, from the first module to the last, over that of `import numpy, pandas`, one JSON line per command.

    python -m confide_lab.benchmarks.start [--runs 5] [--rows 5000]

A CSV file of 5,000 rows, a ledger of SQLite. Every command and the rival run in turn, each in a new process with one thread and
compiled modules in place; medians of user and system seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import confide as cf
from confide.ledger import Ledger

__all__ = ["run"]

_RIVAL = ("-c", "import numpy, pandas")
_TOUCHED = ("-c", "import confide as cf; cf.linear_regression")
#: What each may cost, in imports of NumPy and pandas.
_BARS = {
    **dict.fromkeys(("table", "release", "infer", "regress", "methods"), 2.8),
    "plan": 1.7,
    "refusal": 1.4,
    "linear_regression": 1.7,
}


def _commands(number: int) -> dict[str, tuple[tuple[str, ...], int]]:
    """The words of each command and the code with which it ends; number: of this round, for the files that it writes."""
    about, paid = ("--schema", "schema.toml"), ("--mu", "0.01", "--ledger", "ledger.db")
    line = ("survey.csv", *about, *paid)
    words = {
        "table": (("table", "happy ~ region", *line, "--inference", "population"), 0),
        "release": (("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", f"release{number}.json"), 0),
        "infer": (("infer", "release.json"), 0),
        "regress": (("regress", "happy ~ age", *line), 0),
        "methods": (("methods",), 0),
        "plan": (("plan", "happy ~ age", *about, "--mu", "0.5", "-o", f"plan{number}.json"), 0),
        "refusal": (("table", "hapy ~ region", *line, "--inference", "population"), 3),
    }
    return {name: (("-m", "confide", *own), code) for name, (own, code) in words.items()} | {
        "linear_regression": (_TOUCHED, 0)
    }


def _cpu(words: tuple[str, ...], code: int) -> float:
    """User and system seconds of one process of Python; what it says goes nowhere."""
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    place = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.execve(sys.executable, [sys.executable, *words], {**os.environ, **quiet, **place})
    _, status, used = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) != code:
        raise RuntimeError(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}, not {code}")
    return used.ru_utime + used.ru_stime


def _prepared(rows: int) -> None:
    """Records, schema, ledger, plan and a release in this folder."""
    columns = {"age": cf.Numeric(18, 90), "happy": cf.Numeric(0, 10), "region": cf.Categorical(["north", "south"])}
    schema = cf.Schema(columns, dataset="survey")
    Path("schema.toml").write_text(schema.to_toml())
    schema.sample(rows, seed=1).to_csv("survey.csv", index=False)
    Ledger.create("ledger.db", dataset="survey", budget=cf.GDP(2.0)).close()
    for words in (_commands(0)["plan"], _commands(0)["release"]):
        told = [word.replace("plan0", "plan").replace("release0", "release") for word in words[0]]
        _cpu(tuple(told), words[1])


def run(runs: int = 5, rows: int = 5_000) -> list[dict[str, Any]]:
    """The ratio of every command, against its bar."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _prepared(rows)
            took: dict[str, list[float]] = {"rival": []}
            for number in range(1, runs + 2):  # the first round writes what is compiled, and does not count
                for name, (words, code) in {"rival": (_RIVAL, 0), **_commands(number)}.items():
                    took.setdefault(name, []).append(_cpu(words, code))
        finally:
            os.chdir(home)
    seconds = {name: median(own[1:]) for name, own in took.items()}
    found = []
    for name, bar in _BARS.items():
        ratio = round(seconds[name] / seconds["rival"], 2)
        row = {
            "check": f"CPU of {name} over import numpy, pandas",
            "value": ratio,
            "bar": bar,
            "cpu_seconds": [round(seconds[name], 3), round(seconds["rival"], 3)],
            "passed": ratio <= bar,
        }
        print(f"{'ok    ' if row['passed'] else 'FAILED'} {json.dumps(row)}", flush=True)
        found.append(row)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--rows", type=int, default=5_000)
    given = options.parse_args()
    run(given.runs, given.rows)


if __name__ == "__main__":
    main()
