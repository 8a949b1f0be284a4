"""Codes that are kept for one draw: the integers of a pass over the source, from memory or a nameless file; nothing afterwards."""

from __future__ import annotations

import os
import pickle
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.sources.records import SCHEMA, Plain, codes_of, gram_of, table
from tests.sources.test_sources_formats import NAMES, arrow_of

import confide as cf
from confide.core import Gram, Total, seal
from confide.core.lost_values import ABOVE, BELOW, UNREAD
from confide.core.ranges import ColumnRange, ranged, recoded_columns
from confide.core.statistic import WrappedSource
from confide.errors import SourceError
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores
from confide.methods.regression.sums.whitened_rows import Frame, WhitenedRows
from confide.noise import SimulatedNoise
from confide.schema import ModelMatrix
from confide.sources import code_cache, read
from confide.sources.aggregation import summed
from confide.sources.code_cache import Packing
from confide.sums.coding import Box

RECORDS = table(3_000)
EXPECTED = gram_of(codes_of(RECORDS, SCHEMA, NAMES))
EVERYTHING = Gram(Plain(NAMES))


def parquet(at: Path) -> Path:
    pq.write_table(arrow_of(RECORDS), at / "t.parquet", row_group_size=170)
    return at / "t.parquet"


@pytest.mark.parametrize("memory", [256, 0])
def test_later_passes_give_the_same_integers_whatever_became_of_the_file(memory: int, tmp_path: Path) -> None:
    path = parquet(tmp_path)
    with read(path, SCHEMA, memory=memory, spool=tmp_path).kept([*NAMES, "read(x)"]) as kept:
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED
        path.write_bytes(b"another file")
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED
        few, how = kept.aggregate(Gram(Plain(("h", "x"))), Total(Plain(("read(x)",))))
        assert few.tolist() == gram_of(codes_of(RECORDS, SCHEMA, ["h", "x"]))
        moved = sum(BELOW * (one["x"] < -2) + ABOVE * (one["x"] > 2) for one in RECORDS if one["x"] is not None)
        assert how.tolist() == [len(RECORDS), moved] and moved


def test_the_file_has_no_name_and_belongs_to_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    make = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **how: made.append(make(**how)) or made[-1])
    folder = tmp_path / "spool"
    folder.mkdir()
    with read(parquet(tmp_path), SCHEMA, memory=0, spool=folder).kept(NAMES) as kept:
        kept.aggregate(EVERYTHING)
        assert not list(folder.iterdir())
        state = os.fstat(made[0].fileno())
        assert state.st_nlink == 0 and state.st_mode & 0o777 == 0o600 and state.st_size > 0
    assert made[0].closed and len(made) == 1


@pytest.mark.parametrize("memory", [256, 0])
def test_nothing_is_left_after_the_draw(memory: int, tmp_path: Path) -> None:
    with read(parquet(tmp_path), SCHEMA, memory=memory).kept(NAMES) as kept:
        kept.aggregate(EVERYTHING)
        with refuses(TypeError):
            pickle.dumps(kept)
        assert "t.parquet" not in repr(kept) and str(len(RECORDS)) not in repr(kept)
    assert not kept._blocks._blocks and kept._blocks._spool._file is None
    with refuses(SourceError):
        kept.aggregate(EVERYTHING)


@pytest.mark.parametrize("memory", [256, 0])
def test_a_pass_that_goes_on_after_the_draw_keeps_nothing(memory: int, tmp_path: Path) -> None:
    """As after a second interrupt, which does not wait for threads."""
    begun, ended = threading.Event(), threading.Event()

    class Slow(Plain):
        def __call__(self, codes: Any) -> Any:
            begun.set()
            assert ended.wait(120)
            return super().__call__(codes)

    with read(parquet(tmp_path), SCHEMA, memory=memory).kept(NAMES) as kept:
        late = threading.Thread(target=lambda: kept.aggregate(Gram(Slow(NAMES))))
        late.start()
        assert begun.wait(120)
    ended.set()
    late.join()
    assert not kept._blocks._blocks and kept._blocks._spool._file is None


def test_without_room_for_codes_each_pass_reads_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is no error, which would tell of a size; a file that changed in between then is one, as ever."""

    def full(**how: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    path = parquet(tmp_path)
    with read(path, SCHEMA, memory=0).kept(NAMES) as kept:
        for _ in range(3):
            assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED
        path.write_bytes(b"another file")
        with refuses(SourceError):
            kept.aggregate(EVERYTHING)


def test_a_pass_that_fails_keeps_nothing(tmp_path: Path) -> None:
    class Broken(Plain):
        def __call__(self, codes: Any) -> Any:
            raise RuntimeError("in the middle")

    with read(parquet(tmp_path), SCHEMA).kept(NAMES) as kept:
        with refuses(SourceError):
            kept.aggregate(Gram(Broken(NAMES)))
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED


def test_threads_that_ask_at_once_count_every_record_once(tmp_path: Path) -> None:
    found: list[Any] = []
    with read(parquet(tmp_path), SCHEMA, memory=0).kept(NAMES) as kept:
        threads = [threading.Thread(target=lambda: found.append(kept.aggregate(EVERYTHING)[0])) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 6 and all(gram.tolist() == EXPECTED for gram in found)


def test_a_first_pass_in_two_threads_is_one(tmp_path: Path) -> None:
    """Whoever asks while the first pass still runs waits for its blocks, and adds none of its own."""

    class Slow(Plain):
        def __call__(self, codes: Any) -> Any:
            time.sleep(2e-3)
            return super().__call__(codes)

    with read(parquet(tmp_path), SCHEMA).kept(NAMES) as kept:
        threads = [threading.Thread(target=lambda: kept.aggregate(Gram(Slow(NAMES)))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED


def test_threads_do_not_read_or_write_each_others_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file has one position: between finding it and reading, or within a block that is written, no other thread may move it."""
    make = tempfile.TemporaryFile

    class Slow:
        """A file that dawdles at its position, and takes a block in two halves."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def seek(self, at: int) -> int:
            found = self.file.seek(at)
            time.sleep(1e-3)
            return int(found)

        def write(self, rest: Any) -> int:
            time.sleep(1e-3)
            return int(self.file.write(rest[: -(-rest.nbytes // 2)]))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **how: Slow(make(**how)))
    found: list[Any] = []
    with read(parquet(tmp_path), SCHEMA, memory=0, threads=3).kept(NAMES) as kept:
        found.append(kept.aggregate(EVERYTHING)[0])
        threads = [threading.Thread(target=lambda: found.append(kept.aggregate(EVERYTHING)[0])) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 3 and all(gram.tolist() == EXPECTED for gram in found)


def test_rows_that_were_not_named_are_read_from_the_source(tmp_path: Path) -> None:
    with read(parquet(tmp_path), SCHEMA).kept(["x"]) as kept:
        assert kept.aggregate(Gram(Plain(("x",))))[0].tolist() == gram_of(codes_of(RECORDS, SCHEMA, ["x"]))
        assert kept.aggregate(EVERYTHING)[0].tolist() == EXPECTED


@pytest.mark.parametrize(("memory", "some"), [(256 << 20, "all"), (1 << 18, "few"), (0, "none")])
def test_what_stays_is_kept_beside_the_codes_while_there_is_memory(
    memory: int, some: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confide.methods.regression.sums.whitened_rows._WIDE", 0)
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    design = ModelMatrix.of("y ~ x", schema)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(schema.sample(5_000, seed=1)), path, row_group_size=500)
    start = Frame.start(Box.of(design))
    here = replace(start, transform=((1.0, 0.5), (0.25, 2.0)), theta=(0.1, 0.2))
    asked = [Gram(LimitedScores(design).at(replace(here, theta=theta), 0.5)) for theta in (here.theta, (0.3, -0.1))]
    asked += [Gram(WhitenedRows(design).at(here, 2.0)), Gram(LimitedFeatures(design).at(start, 2.0))]
    source = read(path, schema, spool=tmp_path)
    with source.kept(schema.names) as kept:
        kept._blocks._spool.memory = memory
        for one in (asked[2], *asked, asked[0]):
            assert (kept.aggregate(one)[0] == source.aggregate(one)[0]).all()
        assert kept._blocks._used <= memory
        found = len(kept._blocks._results)
        for _, one in kept._blocks._results.values():
            assert not any(getattr(one, name).flags.writeable for name in ("v", "r", "square", "length"))
        assert {"all": found == 10, "few": 0 < found < 10, "none": not found}[some]
    assert not kept._blocks._results and not len(kept._blocks._slab)


@pytest.mark.parametrize("where", ["doubles", "packed", "file", "full disk", "shared"])
def test_codes_are_coded_again_in_ranges_once_and_give_the_same_integers(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_cache, "_DOUBLES", 0.0 if where == "packed" else 0.5)
    found = {"x": ColumnRange(-0.5, 1.25), "y": ColumnRange(SCHEMA["y"].low, SCHEMA["y"].high, kept=True)}
    schema, own = ranged(SCHEMA, found), Gram(Plain(("y", "x", "h")))
    source = read(parquet(tmp_path), SCHEMA, memory=0 if where in ("file", "full disk") else 256, spool=tmp_path)
    (expected,) = recoded_columns(source, schema, found).aggregate(own)
    calls: list[int] = []

    def full(*_: Any) -> int:
        raise OSError

    monkeypatch.setattr(code_cache, "summed", lambda *a, **k: calls.append(1) or summed(*a, **k))
    with source.kept(["fine(x)", "fine(y)", "h"]) as kept:
        kept.aggregate(Total(Plain(("fine(x)",))))
        if where == "full disk":
            monkeypatch.setattr(type(kept._blocks._spool), "write", full)
        again = recoded_columns(kept, schema, found, alone=where != "shared")
        for _ in range(2):
            assert again.aggregate(own)[0].tolist() == expected.tolist()
        assert (kept._rows == ("x", "y", "h")) is (where in ("doubles", "packed", "file"))
        assert len(calls) == (0 if where == "full disk" else 2), "a pass over what was kept"


def test_columns_in_bounds_that_were_kept_have_one_coding_wherever_codes_are_kept() -> None:
    """Else the sums would tell whether there was room for codes, and so how many records there are."""
    middles = (np.arange(1_000) + 0.5) / (cf.Numeric(0, 1).steps - 1)
    # just above the middle between two codes, closer than what codes of values tell apart
    data = {"x": np.nextafter(middles, 1.0)}
    schema, own = cf.Schema({"x": cf.Numeric(0, 1)}), Total(Plain(("x",)))
    source, found = read(data, schema), {"x": ColumnRange(0.0, 1.0, kept=True)}
    (each,) = recoded_columns(source, schema, found).aggregate(own)
    with source.kept(["fine(x)"]) as kept:
        kept.aggregate(Total(Plain(("fine(x)",))))
        assert recoded_columns(kept, schema, found, alone=True).aggregate(own)[0].tolist() == each.tolist()
    assert source.aggregate(own)[0].tolist() != each.tolist(), "values that would be coded otherwise"


def test_codes_of_every_size_are_packed_to_the_bit() -> None:
    levels = cf.Categorical([f"l{j}" for j in range(40_000)])
    schema = cf.Schema(
        {f"c{s}": cf.Numeric(0, 1, steps=s) for s in (2, 127, 128, 129, 32_768, 32_769, 1 << 22)} | {"g": levels}
    )
    packing = Packing.of((*schema.names, "read(c2)"), schema)
    largest = [*(schema[name].steps - 1 for name in schema.names), UNREAD]
    for records in (0, 1, 7, 4_096):
        codes = np.array([np.resize([-1.0, float(top), 0.0], records) for top in largest])
        packed = packing.pack(codes, records)
        assert packed.nbytes == packing.bytes(records)
        assert (packing.unpack(packed, np.empty_like(codes)) == codes).all()


@pytest.mark.parametrize("memory", [256, 0])
def test_a_release_reads_a_file_of_several_passes_once(memory: int, tmp_path: Path) -> None:
    """The gate's own way: a logistic regression of nine passes, and the same release as from a source that keeps nothing."""
    schema = cf.Schema({"x": cf.Numeric(0, 1), "w": cf.Numeric(-1, 1), "z": cf.Integer(0, 1)})
    path = tmp_path / "l.parquet"
    schema.sample(2_000, seed=3).to_parquet(path)
    method = cf.regression.Logistic("z ~ x + w")
    plan = cf.plan(method, schema, cf.GDP(1.0))
    source = read(path, schema, memory=memory)
    read_times = []
    aggregate = source._aggregate
    source._aggregate = lambda *what: read_times.append(1) or aggregate(*what)  # type: ignore[method-assign]
    once = seal(method, source, plan, SimulatedNoise(5))
    assert len(read_times) == 1

    # a source in front of it keeps nothing
    assert seal(method, WrappedSource(source), plan, SimulatedNoise(5)).sha256 == once.sha256
    assert len(read_times) > 4


@pytest.mark.parametrize(
    "settings",
    [
        {"memory": -1},
        {"memory": True},
        {"spool": "nowhere"},
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with refuses(SourceError):
        read({"x": [1.0]}, cf.Schema({"x": cf.Numeric(0, 1)}), **settings)
