"""Spark on this machine (local[2]): the bits of one thread, from files and from DataFrames; tasks that fail and run again."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.executors_toy import METHODS, OF_UNITS, SCHEMA, digest, files
from tests.sources.records import Plain

import confide as cf
from confide.errors import ReleaseError, SourceError
from confide.protocol import Gram

pytest.importorskip(
    "pyspark", reason="PySpark is not installed (450 MB); pip install 'confide[spark]' and a Java runtime"
)
pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs a Java runtime")

AGES = Gram(Plain(("age",)))


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
    )
    found = made.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "OFF").getOrCreate()
    yield found
    found.stop()


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return files(tmp_path)


@pytest.mark.parametrize("form", ["files", "frame"])
@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS], ids=["records", "units"])
@pytest.mark.parametrize("method", METHODS)
def test_releases_are_those_of_one_thread(
    method: str, schema: cf.Schema, form: str, data: list[Path], session: Any
) -> None:
    if form == "files":
        source = cf.read(data, schema, executor=session)
    else:
        source = cf.read(session.read.parquet(*map(str, data)), schema)
    assert digest(method, source) == digest(method, cf.read(data, schema, threads=1))


def test_units_are_forgotten_and_counted(data: list[Path], session: Any) -> None:
    source = cf.read(session.read.parquet(*map(str, data)).repartition(5), OF_UNITS)
    assert source.count() == 1_000
    assert not session.sparkContext._jsc.getPersistentRDDs()


class Failing(Plain):
    """A record map that fails, or ends its worker, the first time that it is asked."""

    def __call__(self, codes: Any) -> Any:
        mark = self.digest.split(" on ")[1]
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return Plain.__call__(self, codes)
        os._exit(1)


@pytest.mark.parametrize("schema", [SCHEMA, OF_UNITS], ids=["records", "units"])
def test_a_worker_that_ends_in_the_middle(schema: cf.Schema, data: list[Path], session: Any, tmp_path: Path) -> None:
    class Here(Failing):
        @property
        def digest(self) -> str:
            return f"plain on {tmp_path / 'mark'}"

    found = cf.read(data, schema, executor=session).aggregate(Gram(Here(("age",))))[0]
    assert (tmp_path / "mark").exists()
    assert (found == cf.read(data, schema).aggregate(AGES)[0]).all()


def test_what_fails_on_a_worker_says_nothing(data: list[Path], session: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    secret = "31415926"
    frame = session.read.parquet(*map(str, data))
    bad = frame.withColumn("age", f.expr(f"case when age > 50 then cast(raise_error('{secret}') as int) else age end"))
    book = cf.Ledger.create(tmp_path / "book.db", dataset="survey", budget=cf.GDP(3.0))
    with pytest.raises(ReleaseError, match=r"could not be added up on Spark.*the charge stays") as caught:
        cf.release(METHODS["classes"], cf.read(bad, SCHEMA), cf.GDP(1.0), ledger=book)
    assert secret not in str(caught.value) and caught.value.__context__ is None


def test_a_frame_is_read_by_spark_alone(data: list[Path], session: Any) -> None:
    from tests.sources.executors_toy import Here

    with pytest.raises(SourceError, match="the Spark DataFrame is read by this process alone"):
        cf.read(session.read.parquet(str(data[0])), SCHEMA, executor=Here())
