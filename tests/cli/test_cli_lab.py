"""`confide lab`: list, run, report; parts of an experiment, resumption, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.cli_runner import check_silence, good, run, strict_json
from typer.testing import CliRunner

from confide.cli import app

CELL = ("binagg.figure1", "--cell", "d=5", "--cell", "n=200", "--cell", "method=ols", "--cell", "method=mean")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list(here: Path) -> None:
    done = good("lab", "list")
    for name in ("binagg.figure1", "binagg.figure2", *(f"binagg.table{k}" for k in (1, 2, 3, 6, 7, 8))):
        assert name in done.out
    rows = good("lab", "list", "--json").json["experiments"]
    table1 = next(row for row in rows if row["name"] == "binagg.table1")
    assert table1["full"] == [2000, 2000] and table1["settings"]["versions"]["budget"] == ["1:9", "1:3:3:3"]


def test_benchmarks_are_listed_and_an_unknown_one_is_a_usage_error(here: Path) -> None:
    found = CliRunner().invoke(app, ["lab", "bench"])
    assert found.exit_code == 0 and "truth " in found.stdout and "planted" in found.stdout
    found = CliRunner().invoke(app, ["lab", "bench", "nothing", "--json"])
    assert found.exit_code == 2 and json.loads(found.stdout)["benchmarks"] == ["nothing"]
    assert "`confide lab bench` lists the names" in found.stderr


def ran(*words: str) -> tuple[int, str, str]:
    """`confide lab run`, whose --json names a file: the table stays on stdout."""
    found = CliRunner().invoke(app, ["lab", "run", *words])
    check_silence(found.stdout + found.stderr)
    return found.exit_code, found.stdout, found.stderr


def test_run_writes_one_record_for_each_cell_method_and_quantity(here: Path) -> None:
    code, out, err = ran(*CELL, "--reps", "2", "--json", "found.json")
    assert code == 0 and "OLS (not private)" in out and "wrote" in out, out + err
    found = strict_json(Path("found.json").read_text())
    record = next(r for r in found if r["method"] == "ols" and r["quantity"] == "error")
    assert record["setting"] == {"d": 5, "n": 200} and record["replications"] == 2
    assert {"mean", "standard_error", "median_error", "heavy"} <= set(record) and "verdict" not in record
    assert list(Path("out/lab").rglob("*.parquet"))
    assert ran(*CELL, "--reps", "2", "--json", "again.json")[0] == 0
    assert json.loads(Path("again.json").read_text()) == found
    assert ran(*CELL, "--reps", "2", "--fresh", "--json", "fresh.json")[0] == 0
    assert json.loads(Path("fresh.json").read_text()) == found, "seeds are a function of the coordinates"
    code, _, err = ran(*CELL, "--reps", "2", "--json", "found.json")
    assert code == 2 and "--force" in err


def test_report_shows_and_draws_what_was_recorded(here: Path) -> None:
    assert run("lab", "report", "binagg.figure1").code == 2, "nothing is recorded yet"
    good("lab", "run", *CELL, "--reps", "2")
    done = good("lab", "report", "binagg.figure1", "-o", "figure.html")
    assert "relative" in done.out or "error" in done.out
    text = Path("figure.html").read_text()
    assert text.startswith("<!DOCTYPE html>") and "<svg" in text and "OLS (not private)" in text
    assert good("lab", "report", "binagg.figure1", "--json").json["records"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("lab", "run", "binagg.table9"), 3, "there is no experiment"),
        (("lab", "run", "binagg.figure1", "--cell", "d"), 2, "SETTING=VALUE"),
        (("lab", "run", "binagg.figure1", "--cell", "d=6"), 3, "has no d=6"),
        (("lab", "run", "binagg.figure1", "--cell", "q=6"), 3, "has no setting"),
        (("lab", "run", "binagg.figure1", "--reps", "0"), 2, "--reps is at least 1"),
        (("lab", "run", "binagg.figure1", "--jobs", "0"), 2, "--jobs is at least 1"),
    ],
)
def test_what_is_refused(here: Path, words: tuple[str, ...], code: int, text: str) -> None:
    done = run(*words)
    assert done.code == code and text in done.err
