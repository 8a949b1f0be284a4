"""`confide schema draft | check | sample`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.cli.cli_runner import SCHEMA, good, run

from confide.schema import Categorical, Schema


@pytest.mark.parametrize("data", ["survey.csv", "survey.parquet"])
def test_draft_names_the_columns_and_no_bounds(survey, data):
    done = good("schema", "draft", data)
    for name in ("age", "children", "region", "happy"):
        assert name in done.out
    assert good("schema", "draft", data, "--json").json == {"toml": done.out, "wrote": None}
    good("schema", "draft", data, "-o", "first.toml")
    assert Path("first.toml").read_text() == done.out
    # bounds are left to fill in: the draft is no schema yet
    assert run("schema", "check", "first.toml").code == 3


def test_draft_never_overwrites_what_was_filled_in(survey):
    before = Path("schema.toml").read_text()
    done = run("schema", "draft", "survey.csv", "-o", "schema.toml")
    assert done.code == 2
    assert "--force" in done.err
    assert Path("schema.toml").read_text() == before
    good("schema", "draft", "survey.csv", "-o", "schema.toml", "--force")
    assert Path("schema.toml").read_text() != before


def test_draft_of_its_own_source_is_refused(survey):
    before = Path("survey.csv").read_bytes()
    assert run("schema", "draft", "survey.csv", "-o", "./survey.csv", "--force").code == 2
    assert Path("survey.csv").read_bytes() == before


def test_check_shows_every_public_fact_uncut(survey):
    out = good("schema", "check", "schema.toml").out
    for text in (
        "North [N], South",
        "public: who was asked [sic]",
        "midpoint",
        "rows per unit",
        SCHEMA.digest,
    ):
        assert text in out
    columns = good("schema", "check", "schema.toml", "--json").json["columns"]
    assert [column["name"] for column in columns] == list(SCHEMA.names)
    assert columns[0]["low"] == 15.0 and columns[0]["steps"] == 2**20
    assert columns[2]["levels"] == ["North [N]", "South"]


def test_check_shows_typical_spreads_where_there_are_some(survey):
    assert "Typical" not in good("schema", "check", "schema.toml").out
    lines = (
        'columns.x = { kind = "numeric", low = 0, high = 10, typical = { low = 2, high = 3, provenance = "yearbook" } }'
    )
    Path("spread.toml").write_text(lines)
    assert "yearbook" in good("schema", "check", "spread.toml").out.split("for forecasts only")[1]
    (column,) = good("schema", "check", "spread.toml", "--json").json["columns"]
    assert column["typical"] == {
        "low": 2.0,
        "high": 3.0,
        "own": None,
        "provenance": {"kind": "public", "text": "yearbook"},
    }


def test_check_compares_names_and_types_with_the_data(survey):
    assert "names and types fit" in good("schema", "check", "schema.toml", "--data", "survey.parquet").out
    told = good("schema", "check", "schema.toml", "--data", "survey.csv").out
    assert "names fit; a CSV file has no types, so kinds were not checked" in " ".join(told.split())
    pd.read_csv("survey.csv").drop(columns="age").to_csv("less.csv", index=False)
    done = run("schema", "check", "schema.toml", "--data", "less.csv")
    assert done.code == 3
    assert "'age'" in done.err
    assert run("schema", "check", "schema.toml", "--data", "none.csv", "--json").json["error"] == "SourceError"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_sample_writes_practice_records_that_any_command_takes(survey, suffix):
    name = f"practice.{suffix}"
    good("schema", "sample", "schema.toml", "-n", "50", "--seed", "3", "-o", name)
    frame = pd.read_csv(name) if suffix == "csv" else pd.read_parquet(name)
    assert list(frame.columns) == list(SCHEMA.names)
    assert len(frame) == 50
    good("schema", "sample", "schema.toml", "-n", "50", "--seed", "3", "-o", f"again.{suffix}")
    assert Path(name).read_bytes() == Path(f"again.{suffix}").read_bytes()
    good("schema", "check", "schema.toml", "--data", name)
    good("regress", "happy ~ age", name, "--schema", "schema.toml", "--mu", "1", "--unaccounted")


def test_sample_refuses_what_it_cannot_write(survey):
    assert run("schema", "sample", "schema.toml", "-o", "practice.xlsx").code == 2
    assert run("schema", "sample", "schema.toml", "-o", "practice.csv", "-n", "-1").code == 2
    assert run("schema", "sample", "schema.toml", "-o", "nowhere/practice.csv").code == 2
    assert run("schema", "sample", "schema.toml", "-o", "practice.csv", "--json").json == {
        "wrote": "practice.csv",
        "records": 1000,
        "seed": 1,
    }


def test_practice_records_that_a_spreadsheet_would_run_are_no_csv(survey):
    Path("formulas.toml").write_text(Schema({"r": Categorical(["=1+1", "b"])}).to_toml())
    refused = run("schema", "sample", "formulas.toml", "-o", "practice.csv")
    assert refused.code == 3 and "test.parquet" in refused.err and not Path("practice.csv").exists()
    good("schema", "sample", "formulas.toml", "-o", "practice.parquet")


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"\xff\xfe\x00",
        b"",
        b"columns = 3",
        b"not toml at all [",
        b"[columns.age]\nkind = 'numeric'\nlow = 5\nhigh = 1\n",
    ],
)
def test_a_file_that_is_no_schema_is_a_schema_error(survey, content):
    if content is not None:
        Path("bad.toml").write_bytes(content)
    for command in (
        ("schema", "check", "bad.toml"),
        ("schema", "sample", "bad.toml", "-o", "x.csv"),
        ("plan", "happy ~ age", "--schema", "bad.toml", "--mu", "1"),
    ):
        assert run(*command).code == 3
        assert run(*command, "--json").json["error"] == "SchemaError"
    assert not Path("x.csv").exists()


def test_a_column_of_many_levels_does_not_fill_the_screen(tmp_path):
    schema = Schema({"village": Categorical([f"v{k}" for k in range(200)])})
    (tmp_path / "s.toml").write_text(schema.to_toml())
    out = good("schema", "check", str(tmp_path / "s.toml")).out
    assert "v0, v1, " in out and "... (200 levels)" in out and "v50" not in out
    assert len(good("schema", "check", str(tmp_path / "s.toml"), "--json").json["columns"][0]["levels"]) == 200
