"""Spark on this machine (local[2]): the bits of one thread, from files and from DataFrames; tasks that fail and run again."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.executors_toy import BY_WEIGHT, FEW, METHODS, OF_UNITS, SCHEMA, SCHEMAS, digest, files
from tests.sources.records import Plain

import confide as cf
from confide.core import Gram
from confide.core.units.privacy_unit import Weighted
from confide.errors import ReleaseError, SourceError

pytestmark = pytest.mark.needs("Spark")

AGES = Gram(Plain(("age",)))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("blocks")))
    )
    found = made.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "OFF").getOrCreate()
    yield found
    found.stop()


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return files(tmp_path)


# each takes ten seconds: of either way to read records one, and the others in `make bench`; sums of units are compared further down, and a
# line of a frame
_FIRST = {
    ("line", "records", "files"),
    ("classes", "both", "frame"),
}


@pytest.mark.parametrize(
    "method, schema, form",
    [
        pytest.param(*one, form, marks=() if (*one, form) in _FIRST else pytest.mark.long)
        for one in FEW
        for form in ("files", "frame")
    ],
)
def test_releases_are_those_of_one_thread(method: str, schema: str, form: str, data: list[Path], session: Any) -> None:
    own = SCHEMAS[schema]
    if form == "files":
        source = cf.read(data, own, executor=session)
    else:
        source = cf.read(session.read.parquet(*map(str, data)), own)
    assert digest(method, source) == digest(method, cf.read(data, own, threads=1))


def test_units_are_forgotten_and_counted(data: list[Path], session: Any) -> None:
    source = cf.read(session.read.parquet(*map(str, data)).repartition(5), OF_UNITS)
    assert source.count() == 1_000
    assert not session.sparkContext._jsc.getPersistentRDDs()


def folders_of_codes(session: Any) -> list[Path]:
    """Of this machine, where its workers keep codes: among the application's blocks."""
    return list(Path(session.conf.get("spark.local.dir")).glob("blockmgr-*/confide-*"))


@pytest.mark.parametrize("form", ["files", "frame"])
def test_codes_are_kept_for_the_passes_of_a_draw(form: str, data: list[Path], session: Any, tmp_path: Path) -> None:
    """For their owner alone, among Spark's own blocks, read again where they are lost or locked, and removed at the end."""
    spool = tmp_path / "spool"
    spool.mkdir()
    source = cf.read(data, SCHEMA, executor=session, spool=spool)
    if form == "frame":
        source = cf.read(session.read.parquet(*map(str, data)), SCHEMA, spool=spool)
    expected = cf.read(data, SCHEMA).aggregate(AGES)[0]
    with source.kept(("age", "income")) as kept:
        assert (kept.aggregate(AGES)[0] == expected).all()
        (folder,) = folders_of_codes(session)
        assert folder.stat().st_mode & 0o777 == 0o700
        files_of = {one: one.stat() for one in folder.iterdir()}
        assert files_of and {one.st_mode & 0o777 for one in files_of.values()} == {0o600}
        assert (kept.aggregate(AGES)[0] == expected).all()
        assert {one: one.stat().st_mtime_ns for one in folder.iterdir()} == {
            one: found.st_mtime_ns for one, found in files_of.items()
        }
        with (folder / "0").open() as busy:  # by another run of the task
            fcntl.flock(busy, fcntl.LOCK_EX)
            assert (kept.aggregate(AGES)[0] == expected).all()
        shutil.rmtree(folder)
        assert (kept.aggregate(AGES)[0] == expected).all()
    assert not list(spool.iterdir())
    assert not folders_of_codes(session) and not session.sparkContext._jsc.getPersistentRDDs()
    with pytest.raises(ZeroDivisionError), source.kept(("age",)) as kept:
        kept.aggregate(AGES)
        raise ZeroDivisionError
    assert not folders_of_codes(session) and not session.sparkContext._jsc.getPersistentRDDs()


def told(at: Path, wait: float, fails: bool, frame: Any) -> Any:
    """A DataFrame whose partitions say that they are read, take a while, and of which one fails after some of its records."""

    def batches(given: Any) -> Any:
        import time

        from pyspark import TaskContext

        label = TaskContext.get().partitionId()
        (at / f"{label} {time.time_ns()}").touch()
        for one in given:
            yield one.slice(0, 50)
            time.sleep(wait)
            if fails and label == 1:
                raise ZeroDivisionError
            yield one.slice(50)

    return frame.mapInArrow(batches, frame.schema)


def test_nothing_is_left_of_a_pass_that_fails(data: list[Path], session: Any, tmp_path: Path) -> None:
    """By one partition, when the codes of others are kept; and no record is read to forget them."""
    frame = told(tmp_path, 0.1, True, session.read.parquet(*map(str, data)).repartition(4))
    with pytest.raises(SourceError), cf.read(frame, SCHEMA).kept(("age", "income")) as kept:
        try:
            kept.aggregate(AGES)
        finally:
            assert folders_of_codes(session)
            before = set(tmp_path.iterdir())
    assert not folders_of_codes(session) and set(tmp_path.iterdir()) == before


def test_nothing_is_left_of_a_pass_that_is_interrupted(data: list[Path], session: Any, tmp_path: Path) -> None:
    """The job ends, whether Spark had begun with it or not: none of its tasks keeps codes after the draw."""
    frame = session.read.parquet(*map(str, data)).repartition(12)

    def interrupt(at: Path, early: bool) -> None:
        while not (early or list(at.iterdir())):
            time.sleep(0.05)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    for early in (True, False):
        at = tmp_path / str(early)
        at.mkdir()
        source = cf.read(told(at, 0.4, False, frame), SCHEMA)
        with pytest.raises(KeyboardInterrupt), source.kept(("age", "income")) as kept:
            threading.Thread(target=interrupt, args=(at, early)).start()
            kept.aggregate(AGES)
        assert not folders_of_codes(session) and not session.sparkContext._jsc.getPersistentRDDs()
        read = len(list(at.iterdir()))
        time.sleep(1.0)  # two more tasks, if they went on
        assert not folders_of_codes(session) and len(list(at.iterdir())) == read < 12


@pytest.mark.long
def test_nothing_is_left_of_a_driver_that_is_killed(data: list[Path], tmp_path: Path) -> None:
    blocks, spool = tmp_path / "blocks", tmp_path / "spool"
    blocks.mkdir()
    spool.mkdir()
    lines = [
        "import sys, time, confide as cf",
        "from pyspark.sql import SparkSession",
        "from tests.sources.executors_toy import SCHEMA",
        "from tests.sources.test_executors_spark import AGES, folders_of_codes",
        "session = SparkSession.builder.master('local[2]').config('spark.local.dir', sys.argv[1]).getOrCreate()",
        "source = cf.read(session.read.parquet(*sys.argv[3:]), SCHEMA, spool=sys.argv[2])",
        "with source.kept(('age', 'income')) as kept:",
        "    kept.aggregate(AGES)",
        "    print(*folders_of_codes(session), flush=True)",
        "    time.sleep(600)",
    ]
    command = [sys.executable, "-c", "\n".join(lines), str(blocks), str(spool), *map(str, data)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    ) as driver:
        assert driver.stdout is not None
        folder = driver.stdout.readline().strip()
        driver.kill()
    assert folder and not list(spool.iterdir())
    for _ in range(600):
        if not Path(folder).parent.exists():
            return
        time.sleep(0.1)
    raise AssertionError


def test_what_the_user_persisted_stays(data: list[Path], session: Any) -> None:
    frame = session.read.parquet(*map(str, data)).persist()
    frame.count()
    assert digest("line", cf.read(frame, SCHEMA)) == digest("line", cf.read(data, SCHEMA, threads=1))
    assert frame.is_cached and len(session.sparkContext._jsc.getPersistentRDDs()) == 1
    frame.unpersist()


class Failing(Plain):
    """A record map that fails, or ends its worker, the first time that it is asked."""

    def __call__(self, codes: Any) -> Any:
        mark = self.digest.split(" on ")[1]
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return Plain.__call__(self, codes)
        os._exit(1)


def test_workers_that_end_in_passes_over_kept_codes(
    data: list[Path], session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice in one release: the tasks run again, on what the passes before kept, and the bits are those of one thread."""
    from confide.sources.executors.spark import Spark

    class Ending(Plain):
        def __call__(self, codes: Any) -> Any:
            mark = self.digest.split(" on ")[1]
            try:
                Path(mark).touch(exist_ok=False)
            except FileExistsError:
                return Plain.__call__(self, codes)
            os._exit(1)

    run, passes = Spark.run, [0]

    def ending(self: Any, records: Any, work: Any) -> Any:
        passes[0] += bool(work.rows)
        if work.rows and passes[0] in (2, 4):
            mark = tmp_path / f"mark{passes[0]}"

            class Here(Ending):
                @property
                def digest(self) -> str:
                    return f"plain on {mark}"

            more = dataclasses.replace(work, statistics=(*work.statistics, Gram(Here(work.rows[:1]))))
            found = [json.loads(one) for one in run(self, records, more)]
            assert mark.exists()
            return iter([json.dumps({**one, "states": one["states"][:-1]}) for one in found])
        return run(self, records, work)

    monkeypatch.setattr(Spark, "run", ending)
    assert digest("line", cf.read(data, SCHEMA, executor=session)) == digest("line", cf.read(data, SCHEMA, threads=1))
    assert passes[0] > 4 and not folders_of_codes(session)


@pytest.mark.parametrize(
    "named", [pytest.param(one, marks=pytest.mark.long if one in ("weight", "clusters") else ()) for one in SCHEMAS]
)
def test_a_worker_that_ends_in_the_middle(named: str, data: list[Path], session: Any, tmp_path: Path) -> None:
    schema = SCHEMAS[named]
    weigh = (lambda one: Weighted(one, schema.rows_per_unit)) if named in ("weight", "both") else (lambda one: one)

    class Here(Failing):
        @property
        def digest(self) -> str:
            return f"plain on {tmp_path / 'mark'}"

    found = cf.read(data, schema, executor=session).aggregate(weigh(Gram(Here(("age",)))))[0]
    assert (tmp_path / "mark").exists()
    assert (found == cf.read(data, schema).aggregate(weigh(AGES))[0]).all()


@pytest.mark.parametrize("named", ["weight", "both"])
def test_a_partition_that_is_made_again(named: str, data: list[Path], session: Any) -> None:
    """Coded units that the executors lost are made again, in another order of arrival: the same portions, and the same sums."""
    frame = session.read.parquet(*map(str, data)).repartition(7)
    with cf.read(frame, SCHEMAS[named]).bounded(whole=True) as source:
        first = source.aggregate(Weighted(AGES, 1))[0]
        source._records.frame.unpersist(True)
        assert (source.aggregate(Weighted(AGES, 1))[0] == first).all()


def test_a_frame_that_changes_between_passes(data: list[Path], session: Any) -> None:
    """Random cells, drawn anew by each reading: found by the digest of the records, once what was kept of them is lost."""
    whole = session.read.parquet(*map(str, data)).select("person", "age", "income", "region", "ill")

    def others(batches: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        for batch in batches:
            ages = pa.array(np.random.default_rng().integers(18, 90, batch.num_rows), batch.schema.field("age").type)
            yield batch.set_column(1, "age", ages)

    frame = whole.mapInArrow(others, whole.schema)
    with cf.read(frame, BY_WEIGHT).bounded(whole=True) as source:
        source.aggregate(AGES)
        source._records.frame.unpersist(True)
        with pytest.raises(SourceError, match="the records changed between two passes"):
            source.aggregate(AGES)
    with cf.read(frame, SCHEMA).kept(("age", "income")) as source:
        first = source.aggregate(AGES)[0]
        assert (source.aggregate(AGES)[0] == first).all()
        shutil.rmtree(folders_of_codes(session)[0])
        with pytest.raises(SourceError, match="the records changed between two passes"):
            source.aggregate(AGES)


def test_what_fails_on_a_worker_says_nothing(data: list[Path], session: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    secret = "31415926"
    frame = session.read.parquet(*map(str, data))
    bad = frame.withColumn("age", f.expr(f"case when age > 50 then cast(raise_error('{secret}') as int) else age end"))
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(3.0))
    with pytest.raises(ReleaseError, match=r"could not be added up on Spark.*the charge stays") as caught:
        cf.release(METHODS["classes"], cf.read(bad, SCHEMA), cf.GDP(1.0), ledger=book)
    assert secret not in str(caught.value) and caught.value.__context__ is None


def test_a_frame_is_read_by_spark_alone(data: list[Path], session: Any) -> None:
    from tests.sources.executors_toy import Here

    with pytest.raises(SourceError, match="the Spark DataFrame is read by this process alone"):
        cf.read(session.read.parquet(str(data[0])), SCHEMA, executor=Here())
