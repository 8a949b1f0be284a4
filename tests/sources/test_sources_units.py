"""Units are bounded before a method sees them: whose rows are whose, which of them count, and what never leaves."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.messages import refuses
from tests.sources.records import Plain, code_of

import confide as cf
from confide.core import Gram, Total
from confide.core.units.contributions import Contributions
from confide.sources import read
from confide.sources.coding import Coded
from confide.sources.grouping import ids as spill, sampling, units as clustering, units as gathered
from confide.sources.grouping.ids import canonical

COLUMNS = {"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1, steps=3), "g": cf.Categorical(["n", "s"])}
MOMENTS = Gram(Plain(("a", "b")), entry_bits=20)


def schema(rows: int = 1, **more: Any) -> cf.Schema:
    return cf.Schema(COLUMNS, unit=cf.Unit("pid", rows=rows, rule="keep"), **more)


def frame(n: int = 3_000, units: int = 400, seed: int = 1) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    values = {"a": generator.choice([-0.5, 0.0, 0.25, 1.0, 2.0], n), "b": generator.random(n)}
    labels = generator.choice(["n", "s", None], n)
    return pd.DataFrame({"pid": generator.zipf(1.5, n) % units, **values, "g": labels})


def moments(data: Any, rows: int = 1, **more: Any) -> list[Any]:
    source = read(data, schema(rows), **more)
    return source.aggregate(MOMENTS)[0].tolist()


def spellings(ids: pd.Series) -> dict[str, Any]:
    """The same ids in every type that a column of ids may have."""
    mixed = [(i, float(i), str(i), f"{i}.00")[at % 4] for at, i in enumerate(ids.tolist())]
    return {
        "whole": ids.to_numpy(),
        "small": ids.to_numpy().astype(np.uint16),
        "float": ids.to_numpy().astype(float),
        "single": ids.to_numpy().astype(np.float32),
        "text": ids.astype(str).to_numpy(),
        "fixed": ids.astype(str).to_numpy().astype("U8"),
        "objects": np.array(mixed, dtype=object),
        "category": pd.Categorical(ids),
        "arrow": pd.array(ids, dtype="Int64"),
        "bytes": np.array([str(i).encode() for i in ids], dtype=object),
    }


@pytest.mark.few("3")
@pytest.mark.parametrize("rows", [1, 3])
def test_the_same_rows_count_in_any_order_type_batch_and_memory(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = frame()
    known = moments(data, rows)
    for name, ids in spellings(data["pid"]).items():
        assert moments(data.assign(pid=ids), rows) == known, name
    for seed in range(4):
        assert moments(data.sample(frac=1, random_state=seed), rows, threads=2) == known
    # spilled to files; and with files too small for the largest units, which are dealt out by content
    for cells in (4_000, 800, 60):
        monkeypatch.setattr(clustering, "GATHERED", cells)
        assert moments(data.sample(frac=1, random_state=9), rows, memory=0) == known


def test_many_units_are_dealt_out_by_id_until_each_file_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded whatever the number of units: only what is too large of one unit or a few is taken apart by content."""
    data = pd.concat([frame().assign(pid=lambda own, k=k: own["pid"].astype(str) + f"/{k}") for k in range(4)])
    data = data.groupby("pid").head(4)
    known, seen = moments(data, 2), list[int]()
    monkeypatch.setattr(spill, "_FILES", 8)
    monkeypatch.setattr(clustering, "GATHERED", 600)
    monkeypatch.setattr(
        spill.Rows, "by_content", lambda rows: pytest.fail("a file of many units is taken apart by content")
    )
    whole = clustering.Keep.__call__
    monkeypatch.setattr(
        clustering.Keep, "__call__", lambda rule, rows, *own: seen.append(len(rows)) or whole(rule, rows, *own)
    )
    assert moments(data, 2, memory=0) == known
    # five rows of codes and the id: a hundred records at once, of more than the eight files would hold
    assert sum(seen) == len(data) > 800 and max(seen) <= 100


def test_every_kind_of_source_gives_the_same_integers(tmp_path: Any) -> None:
    data = frame().sort_values("pid", ascending=False, ignore_index=True)
    known, half = moments(data), len(data) // 2
    # rows of one id lie in several files, batches and row groups, and once as text, once as whole numbers, once as floats
    first, second = data.iloc[::2], data.iloc[1::2].assign(pid=lambda own: own["pid"].astype(float))
    first.to_parquet(tmp_path / "1.parquet", row_group_size=100)
    second.to_parquet(tmp_path / "2.parquet")
    data.to_csv(tmp_path / "all.csv", index=False)
    data.iloc[:half].to_csv(tmp_path / "3.csv.gz", index=False)
    data.iloc[half:].to_parquet(tmp_path / "4.parquet")
    table = pa.Table.from_pandas(data)
    sources = {
        "polars": pl.from_pandas(data),
        "lazy": pl.from_pandas(data).lazy(),
        "arrow": table,
        "stream": table.to_reader(max_chunksize=77),
        "mapping": {name: data[name].to_numpy() for name in data},
        "parquet": [tmp_path / "1.parquet", tmp_path / "2.parquet"],
        "csv": tmp_path / "all.csv",
        "mixed files": [tmp_path / "3.csv.gz", tmp_path / "4.parquet"],
    }
    for name, source in sources.items():
        assert moments(source) == known, name


@pytest.mark.parametrize("rows", [1, 3])
def test_kept_rows_are_no_more_where_all_rows_are_there(rows: int) -> None:
    """Beside a question that weighs all rows of a unit, one of kept rows has the same rows as alone, and no more of any unit."""
    own = schema(rows)
    asked = Total(Plain(tuple(own.names)[:1]))
    source = read(frame(), own)
    with source.bounded(whole=True) as whole, source.bounded() as kept:
        assert (whole.aggregate(asked)[0] == kept.aggregate(asked)[0]).all()


def test_unique_ids_change_no_integer() -> None:
    data = frame().assign(pid=np.arange(3_000))
    bare = read(data, cf.Schema(COLUMNS)).aggregate(MOMENTS)[0].tolist()
    assert moments(data) == bare
    assert moments(data, rows=3) == bare


def test_a_person_of_500_rows_counts_once() -> None:
    data = frame(1_000).assign(pid=np.arange(1_000))
    own = pd.DataFrame({"pid": [7] * 500, "a": 1.0, "b": 1.0, "g": "s"})
    once = pd.concat([data[data.pid != 7], own.iloc[:1]])
    assert moments(pd.concat([data[data.pid != 7], own])) == moments(once)
    # of rows that differ, exactly one counts, whatever the others are
    varied = own.assign(a=np.linspace(0, 1, 500), b=np.linspace(1, 0, 500))
    found = np.array(moments(pd.concat([data[data.pid != 7], varied])))
    moved = (found - np.array(moments(data[data.pid != 7]))).tolist()
    rows = [
        [1, *(code_of(COLUMNS[name], value) for name, value in row.items())]
        for row in varied[["a", "b"]].to_dict("records")
    ]
    assert moved in [np.outer(row, row).tolist() for row in rows]


def test_removing_a_unit_moves_no_other_units_row() -> None:
    data = frame()
    source = read(data, schema(2))
    one_unit = Total(Plain(("a", "b")))
    whole = source.aggregate(one_unit)[0]
    for unit in data["pid"].unique()[:25]:
        rest = read(data[data.pid != unit], schema(2)).aggregate(one_unit)[0]
        own = read(data[data.pid == unit], schema(2)).aggregate(one_unit)[0]
        # the digest of the schema is the key of both, so that the unit keeps its own rows alone as in company
        assert (whole - rest == own).all()
        assert own[0] <= 2


def test_rows_without_an_id_move_nothing() -> None:
    data = frame().assign(pid=lambda own: own["pid"].astype(object))
    nobody = frame(40, seed=5)
    known = moments(data)
    for missing in (None, float("nan"), "", 7.5, float("inf"), 2.0**53, True, datetime.datetime(2020, 1, 1), b"", ()):
        ids = np.empty(len(nobody), dtype=object)
        ids[:] = [missing] * len(nobody)
        assert moments(pd.concat([data, nobody.assign(pid=ids)])) == known, repr(missing)


def test_the_share_of_kept_rows_is_right() -> None:
    """Units of nine rows y = 0 and one of y = 1 keep one: a tenth of them the 1; without j half of them would."""
    units, binary = 4_000, cf.Schema({"y": cf.Numeric(0, 1, steps=2)}, unit=cf.Unit("pid"))
    data = pd.DataFrame({"pid": np.repeat(np.arange(units), 10), "y": np.tile([0] * 9 + [1], units)})
    count, ones = read(data, binary).aggregate(Total(Plain(("y",))))[0]
    assert count == units
    # the 99.9 % range of a binomial of 4,000 at .1
    assert abs(ones / units - 0.1) < 3.3 * np.sqrt(0.09 / units)


def test_canonical_ids() -> None:
    text = ["7", "7.0", "7.00", "-0", "-0.0", "07", "7.", "7.5", " 7", "1e3", "", None, "é", "-12.000"]
    same = [b"7", b"7", b"7", b"0", b"0", b"07", b"7.", b"7.5", b" 7", b"1e3", None, None, "é".encode(), b"-12"]
    for cells in (
        pa.array(text),
        pa.array(text).dictionary_encode(),
        np.array(text, dtype=object),
        Coded(np.arange(len(text)), pa.array(text)),
    ):
        assert canonical(cells).to_pylist() == same
    big = 2**63 + 11
    assert canonical(np.array([big], dtype=np.uint64)).to_pylist() == [str(big).encode()]
    assert canonical(np.array([10**30, -0.0, 2.0**53 - 1], dtype=object)).to_pylist() == [
        str(10**30).encode(),
        b"0",
        str(2**53 - 1).encode(),
    ]
    # beyond 2^53 neighbouring whole numbers are one float, and two persons would be one
    for far in (2.0**53, -(2.0**53), 1e300):
        for cells in (np.array([far]), pa.array([far]), np.array([far], dtype=object)):
            assert canonical(cells).to_pylist() == [None]
    day = datetime.date(2020, 1, 5)
    dates = [pa.array([day, None]), np.array([day, None], dtype=object), pa.array(["2020-01-05", None])]
    assert {tuple(canonical(one).to_pylist()) for one in dates} == {(b"2020-01-05", None)}
    # binary is its bytes, which are no number's other spelling; bytes that are no text are an id like others
    assert canonical(pa.array([b"7.0", b"\xff", b""])).to_pylist() == [b"7.0", b"\xff", None]


def test_the_files_are_gone_and_the_draw_is_over(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "GATHERED", 4_000)
    with read(frame(), schema(), memory=0, spool=tmp_path).bounded() as source:
        source.aggregate(MOMENTS)
        assert not list(tmp_path.iterdir())
        assert source.count() == frame()["pid"].nunique()
    with refuses(cf.errors.SourceError):
        source.aggregate(MOMENTS)
    with pytest.raises(TypeError):
        source.__reduce__()


def test_a_full_disk_is_a_fixed_sentence(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "GATHERED", 100)
    gone = tmp_path / "gone"
    gone.mkdir()
    source = read(frame(), schema(), spool=gone)
    gone.rmdir()
    with refuses(cf.errors.SourceError):
        source.aggregate(MOMENTS)


def test_errors_come_from_metadata_alone() -> None:
    data = frame()
    with refuses(cf.errors.SourceError):
        read(data.drop(columns="pid"), schema()).aggregate(MOMENTS)
    with refuses(cf.errors.SchemaError):
        read(data.assign(pid=True), schema()).aggregate(MOMENTS)
    with refuses(cf.errors.SourceError):
        # which rows count hangs on every column of the schema
        read(data.drop(columns="g"), schema()).aggregate(MOMENTS)
    with refuses(cf.errors.SourceError):
        read(data[["a", "b"]].to_numpy(), schema())
    with refuses(cf.errors.SchemaError):
        cf.Schema(COLUMNS, unit=cf.Unit("a"))
    with refuses(cf.errors.SchemaError):
        cf.Unit("pid", rows=0)
    with refuses(cf.errors.SchemaError):
        cf.Unit("pid", rule="first")
    with refuses(cf.errors.SchemaError):
        cf.Schema(COLUMNS, unit=cf.Unit("pid"), rows_per_unit=3)


def test_a_schema_with_a_unit_is_a_value() -> None:
    one = schema(3, dataset="survey")
    assert cf.Schema.from_dict(one.to_dict()) == one == cf.Schema.from_toml(one.to_toml())
    assert (one.rows_per_unit, one.protects) == (3, "pid")
    assert one.digest != schema(2, dataset="survey").digest
    assert "pid" not in one.names
    assert list(one.sample(3, seed=1)["pid"]) == [0, 1, 2]


def _one_byte(ids: pa.Array) -> pa.Array:
    return pa.array([None if one is None else bytes([sum(one) % 256]) for one in ids.to_pylist()], pa.large_binary())


def _apart(ids: pa.Array) -> pa.Array:
    """7 and "7" apart: here by the place of a cell in its block."""
    return pa.array([None if one is None else one + bytes([at % 2]) for at, one in enumerate(ids.to_pylist())])


def _own(ids: pa.Array) -> pa.Array:
    return pa.array([one or f"nobody {at}".encode() for at, one in enumerate(ids.to_pylist())], pa.large_binary())


@pytest.mark.parametrize(
    "fault", ["one-byte hash", "7 and '7' apart", "empty id its own unit", "k+1 rows", "file order", "no j"]
)
def test_planted_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault breaks one of the properties above, on data that say so."""
    if fault in ("one-byte hash", "7 and '7' apart", "empty id its own unit"):
        wrong = {"one-byte hash": _one_byte, "7 and '7' apart": _apart, "empty id its own unit": _own}[fault]
        monkeypatch.setattr(gathered, "canonical", lambda cells: wrong(canonical(cells)))
    if fault == "k+1 rows":
        right = sampling.Keep
        monkeypatch.setattr(sampling, "Keep", lambda key, most: right(key, most + 1))
    if fault == "file order":
        monkeypatch.setattr(sampling, "priorities", lambda h, j: np.arange(len(h), dtype=np.uint64))
    if fault == "no j":
        monkeypatch.setattr(sampling, "numbered", lambda unit, h, words, beside: np.zeros(len(h), dtype=np.int64))
    checks = {
        "one-byte hash": test_unique_ids_change_no_integer,
        "7 and '7' apart": test_a_person_of_500_rows_counts_once,
        "empty id its own unit": test_rows_without_an_id_move_nothing,
        "k+1 rows": test_a_person_of_500_rows_counts_once,
        "file order": lambda: _shuffled(frame()),
        "no j": test_the_share_of_kept_rows_is_right,
    }
    with pytest.raises(AssertionError):
        checks[fault]()


def _shuffled(data: pd.DataFrame) -> None:
    assert moments(data.sample(frac=1, random_state=3)) == moments(data)


def test_decimals_and_uuids_in_columns_of_objects_are_ids() -> None:
    from decimal import Decimal
    from uuid import UUID

    own = UUID("12345678-1234-5678-1234-567812345678")
    cells = [Decimal("7"), Decimal("7.00"), 7, own, str(own), Decimal("7.5"), Decimal("NaN"), Decimal("1E+999999")]
    found = canonical(np.array(cells, dtype=object)).to_pylist()
    assert found == [b"7", b"7", b"7", str(own).encode(), str(own).encode(), None, None, None]


def test_units_that_name_no_cluster_are_units_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of ids is public where a unit may be replaced; that one of them names a cluster is her own secret."""
    own = cf.Schema(
        {"b": cf.Numeric(0, 1)}, unit=cf.Unit("pid"), cluster=cf.Clusters("school", size=5), dataset="records"
    )
    data = frame(600, 80)[["pid", "b"]].assign(school=lambda found: found["pid"] // 5)
    without = data.assign(school=data["school"].astype(float).where(~data["pid"].isin(np.unique(data["pid"])[:5])))
    none = data.assign(school=None)
    for cells in (clustering.GATHERED, 4_000, 60):
        monkeypatch.setattr(clustering, "GATHERED", cells)
        for found in (data, without, none):
            with read(found, own, memory=0).bounded() as source:
                assert source.count() == data["pid"].nunique()
    # and none of them has a row that counts
    moved = [read(found, own).aggregate(Contributions())[0].sum() for found in (data, without, none)]
    assert moved[0] - moved[1] == 5 and moved[2] == 0
