"""Schema: values, text forms, TOML, practice records, and drafts from metadata."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

from confide.errors import SchemaError, SourceError
from confide.schema import Categorical, Integer, Numeric, Provenance, Schema, Unit
from confide.schema.layout import FileLayout
from confide.schema.toml import value

SCHEMA = Schema(
    {
        "age": Numeric(17.5, 42, on_missing="midpoint", provenance=Provenance("public", 'the survey\'s "rules"\n§ 3')),
        "odd name": Integer(-3, 9, on_missing=4),
        "ключ.a\t\x7f": Categorical(["N\\S", 'quo"te', "new\nline", "ü"], on_missing="ü"),
        "tenth": Numeric(0.1, 1e22, steps=1001, on_missing=0.3),
    },
    rows_per_unit=12,
    unit="house\\hold",
    dataset='sur"vey',
)


# values and text forms ------------------------------------------------------------------------------------------------


def test_round_trips() -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict()))).digest == SCHEMA.digest
    assert Schema.from_toml(SCHEMA.to_toml()) == SCHEMA
    assert Schema.from_toml(SCHEMA.to_toml()).names == SCHEMA.names
    for again in (pickle.loads(pickle.dumps(SCHEMA)), copy.deepcopy(SCHEMA)):
        assert again == SCHEMA
        assert hash(again) == hash(SCHEMA)


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="`"), min_size=1).filter(
    lambda s: bool(s.strip())
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@st.composite
def columns(draw: st.DrawFn) -> Numeric | Integer | Categorical:
    provenance = Provenance(draw(st.sampled_from(["public", "private", "lab"])), draw(TEXTS))
    kind = draw(st.sampled_from(["numeric", "integer", "categorical"]))
    if kind == "categorical":
        levels = draw(st.lists(TEXTS, min_size=2, max_size=5, unique=True))
        return Categorical(levels, on_missing=draw(st.sampled_from(["drop", *levels])), provenance=provenance)
    if kind == "integer":
        low = draw(st.integers(-(2**52), 2**52))
        return Integer(low, low + draw(st.integers(1, 2**22 - 1)), on_missing="midpoint", provenance=provenance)
    low = draw(st.floats(-1e9, 1e9))
    return Numeric(
        low,
        low + draw(st.floats(1e-3, 1e300)),
        steps=draw(st.integers(2, 2**22)),
        on_missing=low,
        provenance=provenance,
    )


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(NAMES, columns(), min_size=1, max_size=4), st.integers(1, 10**9), TEXTS, st.none() | TEXTS)
def test_toml_and_dictionaries_keep_every_bit(
    named: dict[str, Numeric | Integer | Categorical], rows: int, unit: str, dataset: str | None
) -> None:
    schema = Schema(named, rows_per_unit=rows, unit=unit, dataset=dataset)
    assert Schema.from_toml(schema.to_toml()).digest == schema.digest
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))).digest == schema.digest
    assert Schema.from_toml(schema.to_toml()).names == tuple(named)


def test_digest_sees_every_fact_and_the_order() -> None:
    base = {"a": Numeric(0, 1), "b": Integer(0, 5)}
    others = [
        Schema({"b": base["b"], "a": base["a"]}),
        Schema(base, rows_per_unit=2),
        Schema(base, unit="person"),
        Schema(base, dataset="d"),
        Schema({**base, "a": Numeric(0, 1, steps=2**20 - 1)}),
        Schema({**base, "a": Numeric(0, np.nextafter(1, 2))}),
        Schema({**base, "a": Numeric(0, 1, on_missing="midpoint")}),
        Schema({**base, "a": Numeric(0, 1, provenance=Provenance("lab"))}),
    ]
    digests = {schema.digest for schema in [Schema(base), *others]}
    assert len(digests) == len(others) + 1
    assert len(Schema(base).digest) == 64


def test_a_schema_is_never_changed() -> None:
    with pytest.raises(AttributeError):
        SCHEMA.rows_per_unit = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        SCHEMA.columns["age"] = Numeric(0, 1)  # type: ignore[index]
    given_columns = {"a": Numeric(0, 1)}
    schema = Schema(given_columns)
    given_columns["b"] = Numeric(0, 1)
    assert schema.names == ("a",)
    assert len(schema) == 1 and list(schema) == ["a"] and "a" in schema


def test_from_settings_as_in_a_toml_table() -> None:
    schema = Schema(
        {
            "age": {"kind": "numeric", "low": 17.5, "high": 42, "provenance": "questionnaire"},
            "g": {"kind": "categorical", "levels": [1, 2]},
        }
    )
    assert schema["age"] == Numeric(17.5, 42, provenance=Provenance("public", "questionnaire"))
    assert schema["g"] == Categorical(["1", "2"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schema({}),
        lambda: Schema([("a", Numeric(0, 1))]),  # type: ignore[arg-type]
        lambda: Schema({"a": 3}),
        lambda: Schema({3: Numeric(0, 1)}),  # type: ignore[dict-item]
        lambda: Schema({" ": Numeric(0, 1)}),
        lambda: Schema({"a`b": Numeric(0, 1)}),
        lambda: Schema({"\ud800": Numeric(0, 1)}),
        lambda: Schema({"a": Numeric(0, 1)}, rows_per_unit=0),
        lambda: Schema({"a": Numeric(0, 1)}, rows_per_unit=True),
        lambda: Schema({"a": Numeric(0, 1)}, rows_per_unit=2.0),  # type: ignore[arg-type]
        lambda: Schema({"a": Numeric(0, 1)}, unit=""),
        lambda: Schema({"a": Numeric(0, 1)}, dataset=""),
        lambda: SCHEMA["agee"],
        lambda: Schema.from_dict({}),
        lambda: Schema.from_dict({**SCHEMA.to_dict(), "columns": [{"kind": "numeric"}]}),
        lambda: Schema.from_dict({**SCHEMA.to_dict(), "columns": SCHEMA.to_dict()["columns"] * 2}),
        lambda: SCHEMA.sample(-1, 1),
        lambda: SCHEMA.sample(3, None),  # type: ignore[arg-type]
        lambda: SCHEMA.sample(True, 1),
    ],
)
def test_errors(make: object) -> None:
    with refuses(SchemaError):
        make()  # type: ignore[operator]


# TOML -----------------------------------------------------------------------------------------------------------------

ROW = 'columns.x = { kind = "numeric", low = 0, high = 1 }\n'


@pytest.mark.parametrize(
    "text",
    [
        "columns = ",
        "rows_per_unit = 1",
        "columns = 3",
        ROW + "row_per_unit = 2",
        ROW + "rows_per_unit = 0",
        ROW + "rows_per_unit = true",
        "columns.x = 3",
        "columns.x = { low = 0, high = 1 }",
        'columns.x = { kind = "real", low = 0, high = 1 }',
        'columns.x = { kind = "numeric", low = 0, hihg = 1, high = 2 }',
        'columns.x = { kind = "integer", low = 0, high = 1, steps = 3 }',
        'columns.x = { kind = "numeric", low = 3, high = 1 }',
        'columns.x = { kind = "numeric", low = "a", high = 1 }',
        'columns.x = { kind = "numeric", low = -inf, high = 1 }',
        'columns.x = { kind = "numeric", low = 0, high = 1, provenance = 3 }',
        'columns.x = { kind = "numeric", low = 0, high = 1, provenance = { kind = "x" } }',
        'columns.x = { kind = "categorical", levels = "NS" }',
        'columns.x = { kind = "categorical", levels = [1.5, 2.5] }',
    ],
)
def test_wrong_toml(text: str) -> None:
    with refuses(SchemaError):
        Schema.from_toml(text + "\n")


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a=b.toml"
    path.write_text("\ufeff" + SCHEMA.to_toml(), encoding="utf-8")
    assert Schema.from_toml(path) == Schema.from_toml(str(path)) == SCHEMA
    with refuses(SchemaError):
        Schema.from_toml("nowhere.toml")
    with refuses(SchemaError):
        Schema.from_toml(3)  # type: ignore[arg-type]
    (tmp_path / "latin.toml").write_bytes(b'unit = "\xfc"')
    with refuses(SchemaError):
        Schema.from_toml(tmp_path / "latin.toml")


def test_a_data_file_in_place_of_a_schema_is_not_quoted(tmp_path: Path) -> None:
    for content in ("age,wage\n31,4711\n", "age = 4711 1234\n", "\x00\x01"):
        path = tmp_path / "records.csv"
        path.write_text(content)
        with pytest.raises(SchemaError) as caught:
            Schema.from_toml(path)
        said = str(caught.value).replace(str(tmp_path), "")  # the path of a test holds numbers of its own
        assert not any(secret in said for secret in ("4711", "1234", "31", "line 1", "column 1"))


# practice records -----------------------------------------------------------------------------------------------------


def test_practice_records() -> None:
    frame = SCHEMA.sample(4000, seed=3)
    assert frame.attrs["practice"] is True
    assert tuple(frame.columns) == SCHEMA.names
    pd.testing.assert_frame_equal(frame, SCHEMA.sample(4000, 3))
    assert not frame.equals(SCHEMA.sample(4000, 4))
    assert not frame.isna().any().any()
    for name in SCHEMA.names:
        column = SCHEMA[name]
        if isinstance(column, Categorical):
            assert set(frame[name]) == set(column.levels)
        else:
            assert not column.outside(frame[name]).any()
    assert set(frame["odd name"]) == set(range(-3, 10))
    assert abs(frame["age"].mean() - (17.5 + 42) / 2) < 4.5 * (42 - 17.5) / np.sqrt(12 * 4000)
    assert SCHEMA.sample(0, 1).shape == (0, 4)


# drafts ---------------------------------------------------------------------------------------------------------------


def frame_with_secrets() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": pd.Series([4711, 31], dtype="int32"),
            "wage": [0.4711, 2.5],
            "region": ["secret-N", "secret-S"],
            "kind": pd.Categorical(["secret-a", "secret-b"]),
            "employed": [True, False],
            "born": pd.to_datetime(["1947-11-04", "1950-01-01"]),
            'odd "name"': [1.0, 2.0],
        }
    )


KINDS = {
    "age": "numeric",
    "wage": "numeric",
    "region": "categorical",
    "kind": "categorical",
    "employed": "integer",
    'odd "name"': "numeric",
    "born": "date",
}


def drafts(tmp_path: Path) -> dict[str, str]:
    frame = frame_with_secrets()
    frame.to_parquet(tmp_path / "survey.parquet")
    folder = tmp_path / "parts"
    folder.mkdir()
    frame.to_parquet(folder / "part-0.parquet")
    table = pa.Table.from_pandas(frame)
    given = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "table": table,
        "arrow schema": table.schema,
        "parquet": tmp_path / "survey.parquet",
        "folder": folder,
    }
    return {name: Schema.draft(data) for name, data in given.items()}


def test_a_draft_has_names_types_and_holes_but_no_values(tmp_path: Path) -> None:
    for name, text in drafts(tmp_path).items():
        assert not any(secret in text for secret in ("4711", "secret", "1947", "31", "2.5")), name
        assert "not private" in text
        assert '[columns.born]\nkind = "date"' in text, name
        with pytest.raises(SchemaError) as caught:
            Schema.from_toml(text)
        message = str(caught.value)
        for column in ("region", "kind"):
            assert f"[columns.{column}] lacks levels: write a line such as   levels = " in message
        assert not any(f"[columns.{column}]" in message for column in ("age", "wage")), "numbers need no bounds"
        assert text.count("public knowledge cost nothing") == 3, "a line for each column of numbers"
        assert "employed" not in message, "a boolean needs no bounds from anybody"


def fill(text: str) -> str:
    return (
        text.replace('dataset = "?"', 'dataset = "survey"')
        .replace('unit = "?"', 'unit = "person"')
        .replace('low = "?"', 'low = "1900-01-01"')
        .replace('high = "?"', 'high = "2006-12-31"')
        .replace('levels = ["?"]', 'levels = ["N", "S"]')
    )


def test_a_filled_draft_is_a_schema(tmp_path: Path) -> None:
    for name, text in drafts(tmp_path).items():
        schema = Schema.from_toml(fill(text))
        assert {column: schema[column].kind for column in schema.names} == KINDS, name
        assert schema["employed"] == Integer(0, 1, provenance=Provenance("public", "type of the column"))


def test_the_lines_that_the_error_gives_do_work(tmp_path: Path) -> None:
    text = drafts(tmp_path)["parquet"]
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(text)
    facts, lines = [], str(caught.value).splitlines()[1:]
    for line in lines[:2]:  # of the whole table
        fact, _, better = line.strip().partition(": write a line such as   ")
        facts.append(fact.partition(",")[0])
        text = text.replace(f'{facts[-1]} = "?"', better)
    assert facts == ["dataset", "unit"]
    for line in lines[2:]:
        table, _, told = line.partition(" lacks ")
        entry, _, better = told.partition(": write a line such as   ")
        head, tail = text.split(table.strip() + "\n")
        text = (
            head
            + table.strip()
            + "\n"
            + tail.replace(next(row for row in tail.splitlines() if row.startswith(f"{entry} = ")), better, 1)
        )
    assert set(Schema.from_toml(text).names) == set(KINDS)
    assert (Schema.from_toml(text).dataset, Schema.from_toml(text).unit) == ("survey-2024", Unit("person_id"))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_csv_file_gives_its_header_alone(tmp_path: Path, zipped: bool) -> None:
    content = '\ufeffage,"odd, name",,age\r\n4711,secret,1,2\r\n'.encode()
    path = tmp_path / ("survey.csv.gz" if zipped else "survey.csv")
    path.write_bytes(gzip.compress(content) if zipped else content)
    text = Schema.draft(path)
    assert "4711" not in text and "secret" not in text
    with refuses(SchemaError):
        Schema.from_toml(fill(text))
    assert Schema.from_toml(fill(text).replace('kind = "?"', 'kind = "numeric"')).names == ("age", "odd, name")
    assert text.count("left out: a column whose name is blank") == 2


def test_drafts_of_other_things(tmp_path: Path) -> None:
    assert Schema.from_toml(fill(Schema.draft({"x": np.zeros(3), "n": np.zeros(3, dtype=int)}))).names == ("x", "n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.parquet").write_bytes(b"4711 is no Parquet file")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe4711\n")
    for data in [
        3,
        {},
        tmp_path / "nowhere.csv",
        tmp_path / "empty.csv",
        tmp_path / "binary.csv",
        tmp_path / "bad.parquet",
        tmp_path / "folder",
        pd.DataFrame({"when": pd.to_timedelta([1], "D")}),
    ]:
        with refuses((SchemaError, SourceError)) as caught:
            Schema.draft(data)
        assert "4711" not in str(caught.value)
    (tmp_path / "x.txt").write_text("a")
    with refuses(SchemaError):
        Schema.draft(tmp_path / "x.txt")


def test_a_parquet_files_statistics_are_not_read(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1234.5678, 8765.4321]), "g": pa.array(["qqq", "zzz"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "s.parquet", write_statistics=True)
    text = Schema.draft(tmp_path / "s.parquet")
    assert not any(secret in text for secret in ("1234", "8765", "qqq", "zzz"))


def test_a_misspelled_key_is_named_before_what_it_leaves_missing() -> None:
    with refuses(SchemaError):
        Schema.from_toml('columns.x = { kind = "numeric", lower = 0, high = 1 }')


def test_bounds_in_the_wrong_order_give_the_lines_of_the_file() -> None:
    with refuses(SchemaError):
        Schema.from_toml('columns.x = { kind = "integer", low = 5, high = 1 }')
    with refuses(SchemaError):
        Schema.from_toml('columns.x = { kind = "categorical", levels = ["a"] }')


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_header_in_one_field_hints_at_its_delimiter(tmp_path: Path, mark: str) -> None:
    from confide.schema.draft import draft
    from confide.sources import read

    path = tmp_path / "s.csv"
    path.write_text(f"age{mark}region\n1{mark}N\n")
    schema = Schema({"age": Integer(0, 9)})
    with refuses(SourceError) as caught:
        read(path, schema)
    assert repr(mark) in str(caught.value) and "region" not in str(caught.value)
    made = draft(path)
    assert "[columns.region]" in made and f"[file]\ndelimiter = {value(mark)}\n" in made
    with refuses(SchemaError):
        draft(path, layout=FileLayout(delimiter=","))
    read(path, schema, delimiter=mark).check(["age"])
