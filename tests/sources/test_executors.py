"""Executors, on one that misbehaves on request: the same integers, or an error with a fixed sentence, never a double count."""

from __future__ import annotations

import gc
import itertools
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messages import refuses
from tests.sources.executors_toy import (
    BY_WEIGHT,
    METHODS,
    OF_UNITS,
    SCHEMA,
    SCHEMAS,
    UNITS_IN_CLUSTERS,
    Here,
    cases,
    digest,
    files,
)
from tests.sources.records import Plain

import confide as cf
from confide.core import Gram, Total
from confide.core.ranges import ColumnRange, _coded_within, ranged
from confide.core.units.privacy_unit import UNIT_ROW, Weighted
from confide.errors import ReleaseError, SourceError
from confide.methods.regression.sums.scores import UnitScores
from confide.schema import ModelMatrix
from confide.sources.aggregation import named_rows
from confide.sources.code_cache import Spool
from confide.sources.executors import executor_of
from confide.sources.executors.kept import _SPOOLS, Keeping, KeptPortion, StoredPortion, folder_of, forget
from confide.sources.executors.worker import (
    FAILED,
    Change,
    Coding,
    Digest,
    Portion,
    Readable,
    Work,
    group_of,
    machine,
    portions,
    state_from_plain,
    state_to_plain,
    unit_blocks,
    whole_units,
)
from confide.sources.grouping.ids import HashedGroups
from confide.sources.grouping.units import UnitSource
from confide.sums.clusters.cluster_covariance import ClusterCovariance, Counting

AGES = Gram(Plain(("age",)))


def meat() -> ClusterCovariance:
    return ClusterCovariance(UnitScores(ModelMatrix.of("income ~ age", SCHEMA), counting=Counting(2, UNIT_ROW)), 4.0)


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return files(tmp_path)


@pytest.mark.parametrize("method, schema", cases())
def test_releases_are_those_of_one_thread(method: str, schema: str, data: list[Path]) -> None:
    here, own = Here(), SCHEMAS[schema]
    assert digest(method, cf.read(data, own, executor=here)) == digest(method, cf.read(data, own, threads=1))
    assert here.open == 0  # forgotten when the release ended


def test_units_of_more_rows_than_count(tmp_path: Path) -> None:
    """Of 70,000 rows 2^16 count: on workers the same as in one process, also where a draw names the rows of codes that it reads."""
    frame = SCHEMA.sample(70_100, 3)
    frame["person"] = [*[0] * 70_000, *range(1, 101)]
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=30_000)
    asked = [Weighted(AGES, 1), Weighted(Total(Plain(("age",))), 1)]
    found = []
    for executor in (None, Here()):
        source = cf.read(tmp_path / "one.parquet", BY_WEIGHT, executor=executor)
        for first in (True, False):
            with source.bounded(whole=True, first=first) as units, units.kept(named_rows(asked)) as kept:
                found.append([str(one.tolist()) for one in kept.aggregate(*asked)])
                if not first:
                    with pytest.raises(SourceError, match="that the plan does not name"):
                        kept.aggregate(AGES)
        # a unit that counts as many rows as any may
        largest = cf.Schema(dict(BY_WEIGHT.columns), unit=cf.Unit("person", rows=1 << 16, rule="weight"))
        with cf.read(tmp_path / "one.parquet", largest, executor=executor).bounded(whole=True) as units:
            found[-1].append(str(units.aggregate(AGES)[0].tolist()))
    assert found[0] == found[2] and found[1] == found[3] and found[0] != found[1]


@pytest.mark.parametrize("method", ["line", "classes"])
def test_units_of_more_rows_than_a_block(method: str, tmp_path: Path) -> None:
    """By weight all rows of a unit are there, and a block of whole units is longer than others."""
    frame = SCHEMA.sample(60_000, 3)
    frame["person"] = np.repeat(np.arange(15_004), [*[1] * 15_000, 9_000, 12_000, 20_000, 4_000])
    frame.sample(frac=1.0, random_state=1).to_parquet(tmp_path / "one.parquet", row_group_size=7_000)
    own = SCHEMAS["weight"]
    here = digest(method, cf.read(tmp_path / "one.parquet", own, executor=Here()))
    assert here == digest(method, cf.read(tmp_path / "one.parquet", own, threads=1))


def test_blocks_hold_whole_units() -> None:
    """However an engine cuts what it kept: no block begins within a unit, or its rows would count once for each block."""
    marks = np.array([0, 2, -1, -1, 0, 1, *[-1] * 20_000, 0, 1, -1], dtype=np.int8)
    rows = np.arange(len(marks))
    for size in (1, 3, 10_000, len(marks)):
        cuts = [0, 1, 2, 3, 4, 5, *range(6, len(marks), max(size, 999)), len(marks)]
        pieces = [[rows[a:b], marks[a:b]] for a, b in itertools.pairwise(cuts)]
        blocks = list(unit_blocks(iter(pieces), 1))
        assert np.array_equal(np.concatenate([block[0] for block in blocks]), rows)
        assert all(block[1][0] >= 0 for block in blocks)
    with refuses(SourceError):
        list(unit_blocks(iter([[rows[2:4], marks[2:4]]]), 1))


@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS], ids=["records", "units"])
def test_substitute_counts_on_the_workers(schema: cf.Schema, data: list[Path]) -> None:
    privacy = cf.GDP(1.0, relation="substitute")
    n = cf.read(data, schema).count()
    given = {"ledger": None, "noise": cf.noise.SimulatedNoise(5), "n": n}
    done = cf.release(METHODS["means"], cf.read(data, schema, executor=Here()), privacy, **given)
    given["noise"] = cf.noise.SimulatedNoise(5)
    assert done.sha256 == cf.release(METHODS["means"], cf.read(data, schema), privacy, **given).sha256
    assert cf.read(data, schema, executor=Here()).count() == n
    with refuses(cf.errors.PlanError):
        cf.release(METHODS["means"], cf.read(data, schema, executor=Here()), privacy, **(given | {"n": n + 1}))


def test_only_states_come_back(data: list[Path]) -> None:
    """Documents of one size, whatever the records are; no cell, no id, no float in them."""
    here = Here()
    cf.read(data, OF_UNITS, executor=here).aggregate(AGES)
    for text in here.sent:
        one = json.loads(text)
        assert set(one) == {"part", "records", "digest", "machine", "states"}
        assert "." not in text
        (state,) = one["states"]
        assert set(state) == {"part", "total", "rows"} and np.shape(state["total"]) == (2, 2)


# faults ---------------------------------------------------------------------------------------------


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[list[str]], list[str]]:
    """The documents, with the first one changed."""

    def twist(documents: list[str]) -> list[str]:
        one = json.loads(documents[0])
        change(one)
        return [json.dumps(one), *documents[1:]]

    return twist


def other_sums(one: dict[str, Any]) -> None:
    one["states"][0]["total"][0][0] += 1


FAULTS: dict[str, tuple[Callable[[list[str]], list[str]], str | None]] = {
    "a task that ran twice": (lambda found: [*found, *found], None),
    "stragglers in any order": (lambda found: found[3:] + found[:3], None),
    "a task that ran twice, on other records": (lambda found: [*edited(other_sums)(found), found[0]], "different sums"),
    "a lost result": (lambda found: found[1:], "missing"),
    "a label of another pass": (edited(lambda one: one.update(part=99)), "missing"),
    "another machine": (edited(lambda one: one.update(machine="other")), "different kinds"),
    "a state too few": (edited(lambda one: one.update(states=[])), "no state"),
    "a float": (edited(lambda one: one["states"][0].update(rows=1.5)), "no state"),
    "another shape": (edited(lambda one: one["states"][0].update(total=[1])), "no state"),
    "a field too many": (edited(lambda one: one["states"][0].update(code=1)), "no state"),
    "beyond 64 bits": (edited(lambda one: one["states"][0].update(part=[[1 << 70, 0], [0, 0]])), "no state"),
    "a failure": (lambda found: [json.dumps({"part": 0, "failed": True}), *found[1:]], f"^{FAILED}$"),
    "a failure in words of its own": (
        lambda found: [json.dumps({"part": 0, "failed": "record 17 is Smith, income 31415926"}), *found[1:]],
        f"^{FAILED}$",
    ),
    "a failure that is neither": (lambda found: [json.dumps(["failed", 31415926]), *found[1:]], f"^{FAILED}$"),
    "a machine that is no text": (edited(lambda one: one.update(machine=[31415926])), "could not be put together"),
    "no JSON": (lambda found: ["31415926", *found], "could not be put together"),
}


def spoilt(found: list[str], change: Callable[[Any], Any]) -> list[str]:
    """The documents, with the keyed parts of a state changed in the first one."""
    one = json.loads(found[0])
    one["states"][0] = change(one["states"][0])
    return [json.dumps(one), *found[1:]]


KEYED: dict[str, tuple[Callable[[list[str]], list[str]], str | None]] = {
    "a task that ran twice": (lambda found: [*found, *found], None),
    "another size of units": (
        lambda found: [*spoilt(found, lambda state: [[2, state[0][1]]]), found[0]],
        "different sums",
    ),
    "a size twice": (lambda found: spoilt(found, lambda state: [state[0], *state]), "no state"),
    "a size that is no number": (lambda found: spoilt(found, lambda state: [["2", state[0][1]]]), "no state"),
    "a part of another shape": (lambda found: spoilt(found, lambda state: [[2, [1]]]), "no state"),
    "no parts": (lambda found: spoilt(found, lambda state: 3), "no state"),
    "a lost result": (lambda found: found[1:], "missing"),
}


@pytest.mark.parametrize("fault", KEYED)
@pytest.mark.parametrize("statistic", ["weighted", "clusters"])
def test_faults_of_states_by_key(fault: str, statistic: str, data: list[Path]) -> None:
    """What comes back by sizes of units, and by clusters, is read and counted as carefully."""
    twist, words = KEYED[fault]
    schema, exact = (BY_WEIGHT, Weighted(AGES, 1)) if statistic == "weighted" else (UNITS_IN_CLUSTERS, meat())
    whole = statistic == "weighted"
    with cf.read(data, schema).bounded(whole=whole) as here:
        expected = here.aggregate(exact)[0]
    with cf.read(data, schema, executor=Here(twist=twist)).bounded(whole=whole) as source:
        if words is None:
            assert (source.aggregate(exact)[0] == expected).all()
            return
        with refuses(SourceError):
            source.aggregate(exact)


def test_a_unit_names_several_clusters_on_workers(data: list[Path]) -> None:
    """Of those the one of the smallest hash, as in one process; its other rows are out, and records without a cluster too."""
    found = [
        source.aggregate(AGES, meat())
        for source in (cf.read(data, UNITS_IN_CLUSTERS), cf.read(data, UNITS_IN_CLUSTERS, executor=Here()))
    ]
    assert all((a == b).all() for a, b in zip(*found, strict=True))
    assert found[0][0][0, 0] < cf.read(data, BY_WEIGHT).aggregate(AGES)[0][0, 0] * 2
    # and units of such records alone are units all the same
    for executor in (None, Here()):
        with cf.read(data, UNITS_IN_CLUSTERS, executor=executor).bounded() as source:
            assert source.count() == cf.read(data, BY_WEIGHT).count()


def test_clusters_on_workers_have_numbers_of_their_own(data: list[Path]) -> None:
    coding = Coding(UNITS_IN_CLUSTERS, HashedGroups("school", bytes(32)), ("age",))
    (own, *_) = coding(portions(cf.read(data, SCHEMA)._parts)[0].blocks(coding.columns))
    numbers = own.codes[-1]
    assert numbers.dtype == np.int64 and numbers.min() == -1 and numbers.max() < 1 << 53
    assert (numbers == numbers.astype(float)).all() and len(np.unique(numbers)) == 37 + 1


def test_records_that_change_between_clustering_and_sums(data: list[Path]) -> None:
    """A worker that reads again what it lost, from other records, is found by the digest of a later pass."""
    from confide.sources.executors import remote

    twice = []

    def other(documents: list[str]) -> list[str]:
        twice.append(1)
        return documents if len(twice) == 1 else edited(lambda one: one.update(digest=one["digest"] + 1))(documents)

    with cf.read(data, BY_WEIGHT, executor=Here(twist=other)).bounded(whole=True) as source:
        assert isinstance(source, remote.RemoteSource)
        source.aggregate(Weighted(AGES, 1))
        with refuses(SourceError):
            source.aggregate(Weighted(AGES, 1))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS], ids=["records", "units"])
def test_faults(fault: str, schema: cf.Schema, data: list[Path]) -> None:
    twist, words = FAULTS[fault]
    source = cf.read(data, schema, executor=Here(twist=twist))
    if words is None:
        assert (source.aggregate(AGES)[0] == cf.read(data, schema).aggregate(AGES)[0]).all()
        return
    with refuses(SourceError) as caught:
        source.aggregate(AGES)
    assert caught.value.__context__ is None and "31415926" not in str(caught.value)


def test_a_worker_says_what_failed_in_fixed_words() -> None:
    """What is raised on a worker would stand in its log, in the scheduler's and here: with the cell that it is about. No word travels."""

    class Broken(Readable):
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def coded(self, *_: Any) -> Any:
            raise self.error

    for error in (ValueError("a cell said 31415926"), SystemExit("a cell said 31415926")):
        document = Work(SCHEMA, ("age",), (AGES,), 0)(7, Broken(error))
        assert json.loads(document) == {"part": 7, "failed": True}


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_worker_that_groups_fails_in_fixed_words(error: type[BaseException]) -> None:
    """Nor does what it is handed show ids, codes or the key, should a log have its arguments."""
    from confide.sources.executors import dask
    from confide.sources.grouping.ids import Rows
    from confide.sources.grouping.sampling import Keep

    class Broken:
        def blocks(self, *_: Any) -> Any:
            raise error("a cell said 31415926")

        @property
        def ids(self) -> Any:
            raise error("a cell said 31415926")

    coding, rule = Coding(BY_WEIGHT, HashedGroups("school", b"31415926" * 4), ("age",)), Keep(b"31415926" * 4, 1)
    rows = Rows(pa.array([b"31415926"], pa.large_binary()), [np.array([31415926])])
    for group in (
        lambda: dask._dealt((Broken(),), coding, 2),  # type: ignore[arg-type]
        lambda: dask._alone(Broken(), coding, rule),  # type: ignore[arg-type]
        lambda: dask._bounded(0, 2, [[rows, Broken()]], ("age",), rule),
    ):
        with refuses(SourceError) as caught:
            group()
        assert caught.value.__context__ is None
    assert "31415926" not in repr((rule, rows, coding))


def raising(documents: list[str]) -> list[str]:
    raise ConnectionError("31415926 is the secret of the connection")


@pytest.mark.parametrize(
    "fault",
    [raising, *(FAULTS[name][0] for name in ("a lost result", "another machine", "a failure in words of its own"))],
)
def test_an_error_after_the_charge_says_so(fault: Any, data: list[Path], tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
    with refuses(ReleaseError) as caught:
        cf.release(METHODS["means"], cf.read(data, SCHEMA, executor=Here(twist=fault)), cf.GDP(1.0), ledger=book)
    assert caught.value.__context__ is None and "31415926" not in str(caught.value)
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1


class _Deaf(Here):
    """An engine of which one verb fails, or whose workers are of two kinds, whatever it is asked."""

    fault, empty = "", 0

    def placed(self, parts: Any) -> Any:
        return raising([]) if self.fault == "placed" else super().placed(parts)

    def run(self, records: Any, work: Any) -> list[str]:
        documents = super().run(records, work)
        self.empty += not work.rows
        return {"run": raising, "lost": lambda found: found[1:], "failed": lambda found: ['{"failed": 31415926}']}.get(
            self.fault, lambda found: found
        )(documents)


@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS], ids=["records", "units"])
@pytest.mark.parametrize("fault", ["placed", "run", "lost", "failed"])
def test_workers_that_do_not_answer_are_found_before_the_charge(
    fault: str, schema: cf.Schema, data: list[Path], tmp_path: Path
) -> None:
    """By one pass over no records, before each release and none before a pass; it leaves nothing on the workers."""
    own = {} if schema is SCHEMA else {"unit": "person"}
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0, **own))
    here = _Deaf()
    source = cf.read(data, schema, executor=here)
    cf.release(METHODS["means"], source, cf.GDP(1.0), ledger=book)
    assert here.sent and (here.empty, here.open) == (1, 0)
    here.fault = fault
    with pytest.raises(SourceError) as caught:
        cf.release(METHODS["means"], source, cf.GDP(1.0), ledger=book)
    assert caught.value.__context__ is None and "31415926" not in str(caught.value)
    assert len([row for row in book.show().rows if row.kind == "charge"]) == 1


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_file_that_changes_between_passes(keep_time: bool, data: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where its time and size do not say so: a worker that lost what it kept reads other records than those of the first pass."""
    passes = []

    def change() -> None:
        passes.append(1)
        if len(passes) == 2:
            whole = pq.read_table(data[1])
            other = whole.set_column(0, "age", pa.array(whole["age"].to_numpy()[::-1].copy()))
            pq.write_table(other, data[1], row_group_size=251)

    source = cf.read(data, SCHEMA, executor=Here(before=change, loses=True))
    if keep_time:  # a file system that tells nothing: only the records can
        monkeypatch.setattr("confide.sources.coding.FileMark.verify", lambda mark: None)
    with refuses(SourceError):
        digest("line", source)
    assert len(passes) == 2


@pytest.mark.parametrize("method", ["line", "means", "log-odds"])
def test_workers_code_the_records_once(method: str, data: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Later passes read what the first one kept, changed to the ranges that were found; who lost it reads and changes it again."""
    read: list[int] = []
    pieces = Portion.pieces

    def counted(portion: Any, columns: Any) -> Any:
        read.extend([1] if portion.part.names else [])  # none in the pass over no records
        return pieces(portion, columns)

    monkeypatch.setattr(Portion, "pieces", counted)
    alone = digest(method, cf.read(data, SCHEMA, threads=1))
    here = Here()
    assert digest(method, cf.read(data, SCHEMA, executor=here)) == alone
    portions_of = len({json.loads(one)["part"] for one in here.sent})
    assert len(read) == portions_of < len(here.sent)
    read.clear()
    lossy = Here(loses=True)
    assert digest(method, cf.read(data, SCHEMA, executor=lossy)) == alone
    assert len(read) == len(lossy.sent)
    assert here.open == lossy.open == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are found in /proc")
@pytest.mark.parametrize("fails", [False, True])
def test_what_workers_keep_ends_with_the_release(fails: bool, data: list[Path], tmp_path: Path) -> None:
    """Codes in a file without a name, which its owner alone may open; gone when the release ends, also by an error."""
    spool = tmp_path / "spool"
    spool.mkdir()
    seen: list[tuple[int, int]] = []
    named: list[Path] = []

    def look() -> None:
        files_of = [one for one in Path("/proc/self/fd").iterdir() if str(spool) in _target(one)]
        seen.extend((one.stat().st_mode & 0o777, one.stat().st_size) for one in files_of)
        named.extend(spool.iterdir())

    def twist(documents: list[str]) -> list[str]:
        look()
        return documents[1:] if fails and len(here.sent) > 3 * len(documents) else documents

    here = Here(twist=twist)
    source = cf.read(data, SCHEMA, executor=here, memory=0, spool=spool)
    if fails:
        with pytest.raises(SourceError, match="missing"):
            digest("line", source)
    else:
        assert digest("line", source) == digest("line", cf.read(data, SCHEMA, threads=1))
    assert not named
    assert seen and {mode for mode, _ in seen} == {0o600} and all(size for _, size in seen)
    gc.collect()
    assert not [one for one in Path("/proc/self/fd").iterdir() if str(spool) in _target(one)]
    assert not _SPOOLS and here.open == 0


def _target(one: Path) -> str:
    try:
        return str(one.readlink())
    except OSError:  # closed meanwhile
        return ""


@pytest.mark.parametrize("folder", ["full", "gone"])
def test_workers_without_room_read_again(
    folder: str, data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a change that cannot be written: nothing is kept, and the sums are the same."""
    if folder == "full":
        monkeypatch.setattr(
            "confide.sources.executors.kept.shutil.disk_usage", lambda at: shutil._ntuple_diskusage(9, 9, 0)
        )
    else:
        monkeypatch.setattr("confide.sources.code_cache.Blocks.change", lambda *of: False)
    here = Here()
    alone = digest("line", cf.read(data, SCHEMA, threads=1, memory=0)) if folder == "full" else None
    found = digest("line", cf.read(data, SCHEMA, executor=here, memory=0))
    monkeypatch.undo()
    assert found == (alone or digest("line", cf.read(data, SCHEMA, threads=1)))


@pytest.mark.parametrize("where", [Here, lambda: None], ids=["workers", "one process"])
@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS, UNITS_IN_CLUSTERS], ids=["records", "units", "clusters"])
def test_a_draw_within_a_draw_takes_nothing_from_it(where: Any, schema: cf.Schema, data: list[Path]) -> None:
    """As of a method that releases others of the same records: what is kept for the outer draw stays its own."""
    regions = Gram(Plain(("region", "income")))
    expected = cf.read(data, schema).aggregate(AGES, regions)
    with cf.read(data, schema, executor=where()).kept(("age", "income")) as outer:
        assert (outer.aggregate(AGES)[0] == expected[0]).all()
        with outer.kept(("region", "income")) as inner:
            assert (inner.aggregate(regions)[0] == expected[1]).all()
        assert (outer.aggregate(AGES)[0] == expected[0]).all()


def zeros(_: str, codes: np.ndarray) -> np.ndarray:
    return np.zeros_like(codes)


@pytest.mark.parametrize("where", [Here, lambda: None], ids=["workers", "one process"])
def test_codes_that_a_draw_changed_are_no_other_draw_s(where: Any, data: list[Path]) -> None:
    """Neither a draw within it changes them, nor does a later one find them."""
    incomes, renamed = Gram(Plain(("income",))), {"fine(income)": "income"}
    values = Total(Plain(("fine(income)",)))
    with cf.read(data, SCHEMA, executor=where()).kept(("age", "fine(income)")) as records:
        records.aggregate(AGES)
        with records.kept(("fine(income)",)) as inner:
            assert not inner.coded_again(renamed, zeros)
    (expected,) = cf.read(data, OF_UNITS).aggregate(incomes)
    whole = cf.read(data, OF_UNITS).aggregate(values)[0].tolist()
    with cf.read(data, OF_UNITS, executor=where()).bounded() as units:
        with units.kept(("age",)) as outer, outer.kept(("fine(income)",)) as inner:
            outer.aggregate(AGES)
            # sums of 53 bits are rounded; rows that the outer draw does not keep
            assert inner.aggregate(values)[0].tolist() == pytest.approx(whole, rel=1e-12)
        with units.kept(("age", "fine(income)")) as outer:
            outer.aggregate(AGES)
            with outer.kept(("fine(income)",)) as inner:
                assert not inner.coded_again(renamed, zeros)
            changed = outer.coded_again(renamed, zeros)
            assert changed is isinstance(outer, UnitSource)
            assert outer.aggregate(incomes)[0].tolist() == expected.tolist() or changed
            assert changed is (outer.aggregate(incomes)[0][1, 1] == 0)
            with pytest.raises(SourceError, match="that the records do not have"):
                outer.aggregate(Total(Plain(("fine(region)",))))
        assert units.aggregate(incomes)[0].tolist() == expected.tolist()


def test_codes_of_units_that_could_not_be_changed_are_read_no_more(
    data: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confide.sources.code_cache.Blocks.change", lambda *of: False)
    with cf.read(data, OF_UNITS).kept(("age", "fine(income)")) as units:
        units.aggregate(AGES)
        with pytest.raises(SourceError, match="could not be brought together"):
            units.coded_again({"fine(income)": "income"}, zeros)
        with pytest.raises(SourceError, match="the draw is over"):
            units.aggregate(AGES)


def test_files_of_one_draw_have_half_of_the_disk_together(
    data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not each of them half of what the others left; codes change in their place, however little is left by then."""
    keeping = Keeping("c" * 32, ("fine(income)", "age"), SCHEMA, 1, 0, None)
    made = portions(cf.read(data, SCHEMA)._parts)
    disk, folder = [0], folder_of(keeping, str(tmp_path))

    def usage(_: Any) -> Any:
        held = sum(one.stat().st_size for one in folder.iterdir() if "-" not in one.name)
        return shutil._ntuple_diskusage(disk[0], held, disk[0] - held)  # type: ignore[attr-defined]

    def kept(work: Work) -> list[bool]:
        stored = [StoredPortion(at, one, keeping, str(tmp_path)) for at, one in enumerate(made)]
        assert not any(json.loads(work(at, one)).get("failed") for at, one in enumerate(stored))
        return [one.is_kept(work.changes) for one in stored]

    work = Work(SCHEMA, keeping.rows, (Gram(Plain(keeping.rows)),), 1)
    monkeypatch.setattr("confide.sources.executors.kept.shutil.disk_usage", usage)
    disk[0] = 1 << 40
    assert all(kept(work))
    whole = disk[0] - usage(None).free
    forget(keeping, str(tmp_path))
    disk[0] = whole  # half of them find room
    assert 0 < sum(kept(work)) < len(made)
    assert sum(one.stat().st_size for one in folder.iterdir() if "-" not in one.name) <= whole // 2
    forget(keeping, str(tmp_path))
    disk[0] = 2 * whole
    assert all(kept(work))
    disk[0] = whole  # none is left
    column = ranged(SCHEMA, {"income": ColumnRange(10.0, 60.0)})["income"]
    change = Change((("fine(income)", "income"),), partial(_coded_within, {"income": column}))
    names = ("income", "age")
    assert all(kept(Work(SCHEMA, names, (Gram(Plain(names)),), 1, (change,))))


def test_a_pickled_portion_has_no_codes(data: list[Path]) -> None:
    """What an engine moves or writes to its own disk is what to read, never the codes, and is as long whatever was read."""
    keeping = Keeping("0" * 32, ("age",), SCHEMA, 1, 16, None)
    (one, *_) = (KeptPortion(portion, keeping) for portion in portions(cf.read(data, SCHEMA)._parts))
    before = pickle.dumps(one)
    json.loads(Work(SCHEMA, ("age",), (AGES,), 1)(0, one))
    assert one._blocks is not None and one._blocks.count() > 0
    assert pickle.dumps(one) == before and sys.getsizeof(one) == sys.getsizeof(pickle.loads(before))
    assert pickle.loads(before)._blocks is None and repr(one) == "KeptPortion"


def test_codes_in_a_named_file(data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finds them, changed or not; a change that ends midway, a lock and a folder of somebody else's are no codes."""
    keeping = Keeping("a" * 32, ("fine(income)", "age"), SCHEMA, 1, 0, None)
    found = {"income": ColumnRange(10.0, 60.0)}
    column = ranged(SCHEMA, found)["income"]
    change = Change((("fine(income)", "income"),), partial(_coded_within, {"income": column}))
    first = Work(SCHEMA, keeping.rows, (Gram(Plain(("fine(income)", "age"))),), 1)
    later = Work(SCHEMA, ("income", "age"), (Gram(Plain(("income", "age"))),), 1, (change,))
    (portion, *_) = portions(cf.read(data, SCHEMA)._parts)
    read: list[int] = []
    pieces = Portion.pieces
    monkeypatch.setattr(Portion, "pieces", lambda self, columns: (read.append(1), pieces(self, columns))[1])

    def done(work: Work, **given: Any) -> Any:
        return json.loads(work(0, StoredPortion(0, given.get("portion", portion), keeping, str(tmp_path))))

    def anew(work: Work) -> Any:
        return json.loads(work(0, KeptPortion(portion, keeping, Spool(0, None, 0))))

    expected = [anew(first), anew(later)]
    assert expected[0]["digest"] == expected[1]["digest"] and expected[0]["states"] != expected[1]["states"]
    read.clear()
    assert done(first) == done(first, portion=None) == expected[0] and len(read) == 1
    folder = folder_of(keeping, str(tmp_path))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o777 for one in folder.iterdir()} == {0o600}
    # changed in place, once
    assert done(later, portion=None) == done(later, portion=None) == expected[1] and len(read) == 1
    # a late task of the pass before it reads anew, and so does the pass that follows
    assert done(first) == expected[0] and done(later) == expected[1]
    # a process that ends while codes are changed
    forget(keeping, str(tmp_path))
    assert done(first) == expected[0]
    with monkeypatch.context() as patch:
        patch.setattr("confide.sources.code_cache.Blocks.change", lambda *of: 1 / 0)
        assert done(later)["failed"]
    assert not StoredPortion(0, None, keeping, str(tmp_path)).is_kept(later.changes)
    assert done(later) == expected[1]
    # another process is at it
    read.clear()
    with StoredPortion(0, portion, keeping, str(tmp_path))._file():
        assert done(later) == expected[1] and len(read) == 1
    forget(keeping, str(tmp_path))
    assert not list(tmp_path.glob("confide-*"))
    # a folder that others may enter is not used, and neither is a link
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert done(first) == expected[0] and not list(folder.iterdir())
    folder.rmdir()
    folder.symlink_to(tmp_path)
    before = set(tmp_path.iterdir())
    assert done(first) == expected[0] and set(tmp_path.iterdir()) == before
    folder.unlink()
    # what a draw left behind whose end no worker saw
    old = tmp_path / f"confide-{os.geteuid()}-{'b' * 32}"
    old.mkdir()
    forget(keeping, str(tmp_path))
    assert old.exists()
    os.utime(old, (1, 1))
    forget(keeping, str(tmp_path))
    assert not old.exists()


def test_rows_of_one_id_that_do_not_meet_are_an_error(data: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from confide.sources.executors import worker

    calls = []

    def unequal(ids: Any, number: int) -> Any:
        calls.append(1)
        return (group_of(ids, number) + len(calls)) % number

    monkeypatch.setattr(worker, "group_of", unequal)
    with pytest.raises(SourceError):
        cf.read(data, OF_UNITS, executor=Here()).aggregate(AGES)


def test_a_person_with_many_rows_counts_once_wherever_they_lie(tmp_path: Path) -> None:
    schema = cf.Schema({"age": cf.Integer(18, 90)}, unit=cf.Unit("person"))
    # one id as text, number and float, over files and row groups
    for number, ids in enumerate([[7] * 200, ["7"] * 200, [7.0] * 100]):
        pq.write_table(
            pa.table({"age": [40] * len(ids), "person": ids}), tmp_path / f"{number}.parquet", row_group_size=30
        )
    (sums,) = cf.read(tmp_path, schema, executor=Here()).aggregate(AGES)
    assert sums[0, 0] == 1


# what is refused ------------------------------------------------------------------------------------


def test_records_are_not_sent_to_workers(tmp_path: Path) -> None:
    frame = SCHEMA.sample(10, 1)
    for form in (
        frame,
        pa.Table.from_pandas(frame),
        {"age": [1.0]},
        frame.to_numpy(),
        pa.Table.from_pandas(frame).to_reader(),
    ):
        with refuses(SourceError):
            cf.read(form, SCHEMA, executor=Here())


class Bound(cf.ptr.SafetyBound):
    dim = 1
    alpha = 1.0

    def gamma(self, data: Any) -> int:
        return len(data)

    def estimate(self, data: Any) -> float:
        return float(data[:, 0].mean())


def test_methods_that_look_at_records_are_refused_before_the_charge(data: list[Path], tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0, 1e-5, relation="substitute"))
    with refuses(SourceError):
        cf.ptr.safe_release(
            Bound(),
            cf.read(data, SCHEMA, executor=Here()),
            columns=["income"],
            privacy=cf.ApproxDP(1.0, 1e-6),
            gamma_plan=600,
            ledger=book,
            n=3_000,
        )
    assert not [row for row in book.show().rows if row.kind == "charge"]


def test_engines_are_named() -> None:
    for given in ("dusk://me:31415926@host", 3, Here):
        with refuses(SourceError) as caught:
            executor_of(given)
        assert "31415926" not in str(caught.value)
    assert executor_of(None) is None


def test_a_source_of_one_release_is_not_pickled(data: list[Path]) -> None:
    with cf.read(data, SCHEMA, executor=Here()).opened() as remote, refuses(TypeError):
        pickle.dumps(remote)


# parts ----------------------------------------------------------------------------------------------


def test_portions_cover_each_row_group_once(data: list[Path]) -> None:
    parts = cf.read(data, SCHEMA)._parts
    for most in (1, 5, 7, 1024):
        found = portions(parts, most)
        blocks = [block.rows for one in found for block in one.blocks(("age",))]
        assert sum(blocks) == 3_000
        assert len(found) <= most + 2


def test_states_round_trip() -> None:
    zero = AGES.zero()
    state = AGES.update(AGES.zero(), np.array([[3.0, 5.0]]))
    back = state_from_plain(zero, json.loads(json.dumps(state_to_plain(AGES.merge(zero, state)))))
    assert (AGES.value(back) == AGES.value(state)).all()
    for bad in ([np.ones(2)], [[1]], {"a": 1.5}, np.array([1.5]), np.array([None]), True):
        with pytest.raises(TypeError):
            state_to_plain(bad)


def test_a_digest_tells_records_apart_in_any_order() -> None:
    codes = np.random.default_rng(1).integers(0, 50, (3, 400)).astype(float)
    one = Digest(3, 9)
    one.add(codes)
    other = Digest(3, 9)
    other.add(codes[:, 300:])
    other.add(codes[:, :300][:, ::-1])
    assert one.total == other.total
    for at in range(20):
        changed = codes.copy()
        changed[at % 3, at] += 1
        again = Digest(3, 9)
        again.add(changed)
        assert again.total != one.total
    swapped = codes.copy()
    swapped[0, [0, 1]] = swapped[0, [1, 0]]
    again = Digest(3, 9)
    again.add(swapped)
    assert (codes[:, 0] == codes[:, 1]).all() or again.total != one.total


def test_the_hash_of_ids_is_the_same_anywhere() -> None:
    ids = pa.array([b"7", b"", b"person", b"\xff\x00"], pa.large_binary())
    assert group_of(ids, 64).tolist() == group_of(ids.take(pa.array([0, 1, 2, 3])), 64).tolist()
    assert group_of(ids, 1 << 20).tolist() == [503616, 408134, 816193, 484522]
    assert len(machine()) == 64


def test_an_engine_that_brings_rows_in_another_order_is_refused() -> None:
    def batch(*ids: bytes) -> pa.RecordBatch:
        return pa.record_batch({"id": pa.array(ids, pa.binary()), "c0": np.arange(len(ids))})

    in_order = [
        batch(b"", b"1", b"1"),
        batch(b"1"),
        batch(),
        batch(b"1", b"\x7f"),
        batch(b"\x80", b"\xff", b"\xff\x00"),
    ]
    found = list(whole_units(iter(in_order)))
    assert [one for rows in found for one in rows.ids.to_pylist()] == [
        b"",
        b"1",
        b"1",
        b"1",
        b"1",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xff\x00",
    ]
    own = [set(rows.ids.to_pylist()) for rows in found]
    assert all(not one & other for at, one in enumerate(own) for other in own[at + 1 :])
    for wrong in (
        [batch(b"2", b"1")],
        [batch(b"2"), batch(b"1")],
        [batch(b"\xff", b"1")],
        [batch(b"1"), batch(b"2"), batch(b"1")],
    ):
        with refuses(SourceError):
            list(whole_units(iter(wrong)))
