"""`confide synthesize` and `confide refit`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import confide as cf
from confide.cli import app

FORMULA = "y ~ a + k + r"


@pytest.fixture
def survey(frame, schema, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("survey.csv", index=False)
    (tmp_path / "schema.toml").write_text(schema.to_toml())
    cf.Ledger.create("ledger.db", dataset="survey", budget=cf.GDP(1.5))
    return tmp_path


def run(*words: str, code: int = 0):
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == code, found.output + found.stderr
    return found


def test_synthesize_and_refit(survey) -> None:
    call = ["synthesize", FORMULA, "survey.csv", "--schema", "schema.toml", "--mu", "1", "--ledger", "ledger.db"]
    said = run(*call, "-o", "t.parquet", "--release", "release.json").stdout
    assert "Wrote t.parquet and its sidecar" in said and "Charged" in said and "95% CI" not in said
    assert "95% CI" in run("refit", "t.parquet").stdout
    assert "\nk  " not in run("refit", "t.parquet", "y ~ a + r").stdout
    answer = json.loads(run("refit", "t.parquet", FORMULA, "--json").stdout)
    assert answer["result"]["term"] == ["Intercept", "a", "k", "r[T.S]", "r[T.NA]", "r[T.E]"]
    assert cf.Release.load("release.json").sha256 == answer["result"]["release_sha256"]
    refused = run("refit", "t.parquet", "y ~ unused", code=3)
    assert "does not hold unused" in refused.stderr
    # nothing is overwritten, and nothing was charged for trying
    refused = run(*call, "-o", "t.parquet", code=2).stderr
    assert "t.parquet exists; nothing was done" in refused and "\nNothing was charged. [usage_error, exit 2]" in refused
    assert len([row for row in cf.Ledger.open("ledger.db").show().rows if row.kind == "charge"]) == 1
    again = json.loads(run(*call, "-o", "m.csv", "--files", "3", "--rows", "200", "--json").stdout)
    assert again["wrote"][::2] == ["m-1.csv", "m-2.csv", "m-3.csv"] and again["files"][0]["rows"] == 200
    assert "combined" in run("refit", "m-1.csv", "m-2.csv", "m-3.csv").stdout
    assert "11.1% is left" in run(*call, "-o", "n.csv", code=4).stderr
    assert not (survey / "n.csv").exists()


def test_wrong_command_lines(survey) -> None:
    call = ["synthesize", FORMULA, "survey.csv", "--schema", "schema.toml", "--unaccounted", "--simulate", "1"]
    assert "the privacy cost has no default" in run(*call, "-o", "t.csv", code=2).stderr
    assert "must end in" in run(*call, "--mu", "1", "-o", "t.json", code=2).stderr
    assert "rows must be at least 8" in run(*call, "--mu", "1", "-o", "t.csv", "--rows", "3", code=3).stderr
    assert "generator must be" in run(*call, "--mu", "1", "-o", "t.csv", "--generator", "x", code=3).stderr
    assert "has no sidecar" in run("refit", "survey.csv", code=3).stderr
    assert "which table?" in run("refit", FORMULA, code=2).stderr
    said = run(*call, "--mu", "1", "-o", "t.csv", "--generator", "binagg").stdout
    assert "noisy bin means" in said
