"""A runner that holds every command line to the same rules, and the schema of the survey in these tests."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from typer import testing
from typer.main import get_command

from confide.cli import app
from confide.schema import Categorical, Integer, Numeric, Provenance, Schema

# Digits and words that stand in the records and nowhere else: whatever prints one of them has printed a record. Noise holds so many digits
# once in 10^7 runs of all tests.
MARKS = ("739173917391", "qwzx", "SENTINEL")
# A command is built when it is first asked for, and not again for every command line.
testing._get_command = cache(get_command)
CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 130, 141}


@dataclass
class Run:
    """What one command line did. err: with each message in one line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return strict_json(self.out)


def strict_json(text: str) -> Any:
    """One JSON document and nothing else; NaN and Infinity are no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check_silence(text: str) -> None:
    """No traceback, and nothing that stands in a record."""
    assert "Traceback" not in text
    for mark in MARKS:
        assert mark not in text


def run(*args: Any) -> Run:
    """Run a command line here; its output is checked for tracebacks, records and, with --json, strictness."""
    words = [str(arg) for arg in args]
    found = testing.CliRunner().invoke(app, words)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.exit_code in CODES
    check_silence(found.stdout + found.stderr)
    if "--json" in words:
        document = strict_json(found.stdout)
        assert isinstance(document, dict)
        failed = {"error", "message", "exit_code"} <= set(document)
        assert failed == (found.exit_code not in (0, 1, 7)) or document.get("confide") == "release"
        assert not failed or document["exit_code"] == found.exit_code
    return Run(found.exit_code, found.stdout, re.sub(r"(?: \\)?\n {6,}", " ", found.stderr))


def good(*args: Any) -> Run:
    """The same for a command line that must succeed."""
    done = run(*args)
    assert done.code == 0, done.out + done.err
    return done


def printed(summary: str) -> str:
    """A table as `confide infer` prints it: the line of its release ID ends in where the rest is."""
    start, _, last = summary.rpartition("\n")
    assert last.startswith("Release ID")
    if last.endswith("summary(verbose=True))"):  # notes that the noise added were left out, and the line says so
        return f"{start}\n{last.replace('summary(verbose=True)', '--verbose')}\n"
    return f"{start}\n{last:<53}(details: --verbose)\n"


def entries(kind: str = "charge") -> list[dict[str, Any]]:
    """The entries of that kind in ledger.db."""
    (state,) = good("ledger", "show", "ledger.db", "--json").json["datasets"]
    return [row for row in state["rows"] if row["kind"] == kind]


SCHEMA = Schema(
    {
        "age": Numeric(15, 65, provenance=Provenance("public", "who was asked [sic]")),
        "children": Integer(0, 8, on_missing=0),
        "region": Categorical(["North [N]", "South"]),
        "happy": Numeric(0, 5, on_missing="midpoint"),
    },
    dataset="survey",
)
