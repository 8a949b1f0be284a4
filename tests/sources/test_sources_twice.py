"""The same records twice: each form is refused before any charge, from where the records come from; what looks alike and is not is read.

Read on a version that compares no parts, each form below has twice the total or more.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from tests.cli.cli_runner import good, run
from tests.messages import refuses
from tests.needs import need
from tests.sources.records import Plain

import confide as cf
from confide.core import Total
from confide.errors import SourceError
from confide.sources import read
from confide.sources.formats import databases
from confide.sources.formats.filesystems import files_behind
from confide.sources.formats.read_once import check_log
from confide.studio.folder import Folder

SCHEMA = cf.Schema({"x": cf.Integer(0, 9)}, dataset="survey")
SERVER = os.environ.get("CONFIDE_POSTGRES", "").replace("postgresql+psycopg://", "postgresql://")
SECRET = "p31415926"
TWICE = "the same records are there twice"


def table(low: int = 0, high: int = 10) -> pa.Table:
    return pa.table({"x": list(range(low, high))})


def sum_of(source: Any) -> int:
    return int(source.aggregate(Total(Plain(("x",))))[0][1])


def write(place: Path, low: int = 0, high: int = 10) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.name.endswith(".csv"):
        table(low, high).to_pandas().to_csv(place, index=False)
    else:
        pq.write_table(table(low, high), place)
    return place


def refused(data: Any, **options: Any) -> str:
    with refuses(SourceError) as caught:
        read(data, SCHEMA, **options)
    assert SECRET not in str(caught.value) and caught.value.__context__ is None
    return str(caught.value)


# files --------------------------------------------------------------------------------------------


def _twice(at: Path) -> Any:
    return [write(at / "a.parquet"), str(at / "a.parquet")]


def _other_way(at: Path) -> Any:
    (at / "b").mkdir()
    return [write(at / "a.csv"), at / "b" / ".." / "a.csv"]


def _hard_link(at: Path) -> Any:
    os.link(write(at / "a.csv"), at / "b.csv")
    return [at / "a.csv", at / "b.csv"]


def _link(at: Path) -> Any:
    (at / "b.parquet").symlink_to(write(at / "a.parquet"))
    return [at / "a.parquet", at / "b.parquet"]


def _link_in_a_folder(at: Path) -> Any:
    (at / "d" / "b.parquet").symlink_to(write(at / "d" / "a.parquet"))
    return at / "d"


def _hard_link_in_folders(at: Path) -> Any:
    write(at / "d" / f"k={SECRET}" / "a.parquet")
    (at / "d" / f"k={SECRET}2").mkdir()
    os.link(at / "d" / f"k={SECRET}" / "a.parquet", at / "d" / f"k={SECRET}2" / "a.parquet")
    return at / "d"


def _folder_and_file(at: Path) -> Any:
    return [at / "d", write(at / "d" / "a.parquet")]


def _folder_twice(at: Path) -> Any:
    write(at / "d" / "a.parquet")
    return [at / "d", at / "d"]


def _folder_and_its_own(at: Path) -> Any:
    write(at / "d" / "k=1" / "a.parquet")
    return [at / "d" / "k=1", at / "d"]


def _linked_folder(at: Path) -> Any:
    write(at / "d" / "a.parquet")
    (at / "e").symlink_to(at / "d")
    return [at / "d", at / "e"]


def _address(at: Path) -> Any:
    return [write(at / "a.parquet"), f"file://{at}/a.parquet"]


FORMS = [
    _twice,
    _other_way,
    _hard_link,
    _link,
    _link_in_a_folder,
    _hard_link_in_folders,
    _folder_and_file,
    _folder_twice,
    _folder_and_its_own,
    _linked_folder,
    _address,
]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_there_twice(form: Callable[[Path], Any], tmp_path: Path) -> None:
    """From Python, for protected records, and from the command line; the ledgers stay as they are."""
    data = form(tmp_path)
    refused(data)
    with contextlib.closing(
        cf.Ledger.create(tmp_path / "local.db", dataset="survey", budget=cf.GDP(1.0, trust="local"))
    ) as book:
        with refuses(SourceError):
            cf.local.protect(
                data, SCHEMA, tmp_path / "out.csv", columns=["x"], noise=0.5, ledger=book, charge_delta=1e-4
            )
        assert not [row for row in book.show().rows if row.kind == "charge"] and not (tmp_path / "out.csv").exists()
    if form is _address:  # the command line takes no address
        return
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    with contextlib.chdir(tmp_path):
        good("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2")
        paths = map(str, data if isinstance(data, list) else [data])
        asked = (
            "--kind",
            "means",
            "--inference",
            "dataset",
            "--schema",
            "schema.toml",
            "--mu",
            "1",
            "--ledger",
            "ledger.db",
        )
        done = run("table", "x ~ 1", *paths, *asked)
    assert done.code not in (0, 2) and TWICE in " ".join(done.err.split()), done.err
    with contextlib.closing(cf.Ledger.open(tmp_path / "ledger.db")) as book:
        assert not [row for row in book.show().rows if row.kind == "charge"]


def test_the_studio_offers_one_file_or_table_at_a_time(tmp_path: Path) -> None:
    """A folder of files, in which one might be twice, is not offered."""
    _link_in_a_folder(tmp_path)
    (tmp_path / "d").rename(tmp_path / "d.parquet")
    write(tmp_path / "a.csv")
    folder = Folder.at(tmp_path)
    assert folder.data() == ["a.csv"] and sum_of(read(folder.records("a.csv"), SCHEMA)) == 45


@pytest.mark.parametrize("form", [_twice, _hard_link, _link, _link_in_a_folder, _folder_and_file, _linked_folder])
@pytest.mark.parametrize("nested", [False, True])
def test_through_a_file_system_of_this_machine(form: Callable[[Path], Any], nested: bool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = form(tmp_path / "in")
    base = tmp_path if nested else tmp_path / "in"
    here = fs.SubTreeFileSystem(str(base), fs.LocalFileSystem())
    if nested:
        here = fs.SubTreeFileSystem("in", here)
    inner = [os.path.relpath(one, tmp_path / "in") for one in (data if isinstance(data, list) else [data])]
    refused(inner, filesystem=here)


def _of_fsspec(kind: str, at: Path) -> Any:
    """A file system of this machine as fsspec wraps it, and Arrow that; its paths are from `at` on."""
    fsspec = pytest.importorskip("fsspec")
    own = fsspec.filesystem("file")
    if kind == "cached":
        own = fsspec.filesystem("simplecache", fs=own)
    if kind == "arrow":
        own = pytest.importorskip("fsspec.implementations.arrow").ArrowFSWrapper(fs.LocalFileSystem())
    if kind == "dir":
        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("dir", path=str(at), fs=own)))
    wrapped = fs.PyFileSystem(fs.FSSpecHandler(own))
    return wrapped if kind == "relative" else fs.SubTreeFileSystem(str(at), wrapped)


@pytest.mark.parametrize("form", [_twice, _hard_link, _link, _folder_and_file])
@pytest.mark.parametrize("kind", ["file", "dir", "cached", "arrow"])
def test_through_a_file_system_of_fsspec(form: Callable[[Path], Any], kind: str, tmp_path: Path) -> None:
    data = form(tmp_path)
    inner = [os.path.relpath(one, tmp_path) for one in (data if isinstance(data, list) else [data])]
    refused(inner, filesystem=_of_fsspec(kind, tmp_path))


@pytest.mark.parametrize("other", ["a.csv", "sub/../a.csv", "./a.csv"])
def test_another_spelling_through_fsspec(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a.csv")
    (tmp_path / "sub").mkdir()
    refused([str(path), other], filesystem=_of_fsspec("relative", tmp_path))
    write(tmp_path / "b.csv")
    assert sum_of(read([str(path), "b.csv"], SCHEMA, filesystem=_of_fsspec("relative", tmp_path))) == 90


def test_what_a_path_would_replace(tmp_path: Path) -> None:
    """Files, also within folders and file systems of this machine, and databases; nothing else."""
    file, within = write(tmp_path / "a.csv"), write(tmp_path / "d" / "k=1" / "a.parquet")
    (tmp_path / "link").symlink_to(within)
    other = write(tmp_path / "b.csv")
    here = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    cases = [
        (read(file, SCHEMA), file),
        (read([other, tmp_path / "d"], SCHEMA), tmp_path / "link"),
        (read("d", SCHEMA, filesystem=here), within),
        (read(["b.csv", "a.csv"], SCHEMA, filesystem=_of_fsspec("dir", tmp_path)), file),
    ]
    if pytest.importorskip("adbc_driver_sqlite"):
        table().to_pandas().to_sql("answers", sqlite3.connect(tmp_path / "a.sqlite"))
        cases.append((read(tmp_path / "a.sqlite" / "answers", SCHEMA), tmp_path / "a.sqlite"))
    for source, path in cases:
        assert source.reads(path) and source.reads(os.path.relpath(path)) and not source.reads(tmp_path / "none.csv")
    assert not read(table(), SCHEMA).reads(file) and not cases[0][0].reads(other)
    assert not read(["one/x/a.csv"], SCHEMA, filesystem=store()).reads("one/x/a.csv")


def test_a_folder_that_leads_into_itself(tmp_path: Path) -> None:
    """Arrow follows the link until the system stops it: forty times the total."""
    write(tmp_path / "d" / "k=1" / "a.parquet")
    (tmp_path / "d" / "k=2").symlink_to(".")
    refused("d", filesystem=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))


def test_other_files_are_read(tmp_path: Path) -> None:
    """Copies are other files: nothing but their contents says that they are copies."""
    one, two = write(tmp_path / "a.csv", 0, 5), write(tmp_path / "b.csv", 5, 10)
    assert sum_of(read([one, two], SCHEMA)) == sum_of(read([tmp_path / "a.csv", str(two)], SCHEMA)) == 45
    (tmp_path / "link.csv").symlink_to(one)
    assert sum_of(read([tmp_path / "link.csv", two], SCHEMA)) == 45
    write(tmp_path / "copy.csv", 0, 5)
    assert sum_of(read([one, tmp_path / "copy.csv"], SCHEMA)) == 20


# object stores ------------------------------------------------------------------------------------


def store(tags: dict[str, str] | None = None) -> Any:
    """A store in memory; tags: the ETags of its objects."""
    memory = pytest.importorskip("fsspec.implementations.memory")

    class Store(memory.MemoryFileSystem):  # type: ignore[misc, name-defined]
        store: ClassVar[dict[str, Any]] = {}
        pseudo_dirs: ClassVar[list[str]] = [""]
        cachable = False

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            """As stores that are servers' folders read their paths."""
            return os.path.normpath(super()._strip_protocol(path)) if path.strip("/") else ""

        def info(self, path: str, **options: Any) -> Any:
            tag = (tags or {}).get("/" + path.strip("/"))
            return super().info(path, **options) | ({} if tag is None else {"ETag": tag})

    made = Store()
    for path in ("/one/x/a.csv", "/alias/x/a.csv", "/one/y/b.csv"):
        made.pipe(path, b"x\n1\n2\n")
    return fs.PyFileSystem(fs.FSSpecHandler(made))


@pytest.mark.parametrize("other", ["one/x/a.csv", "/one/x/a.csv", "one/./x//a.csv", "one/y/../x/a.csv"])
def test_one_object_of_a_store(other: str) -> None:
    refused(["one/x/a.csv", other], filesystem=store())
    assert sum_of(read(["one/x/a.csv", "one/y/b.csv"], SCHEMA, filesystem=store())) == 6


def test_one_object_in_buckets_of_two_names() -> None:
    """One key with one ETag: an alias of a bucket. Other keys with equal contents may be parts of the records."""
    tags = dict.fromkeys(("/one/x/a.csv", "/alias/x/a.csv", "/one/y/b.csv"), "d41d8cd9")
    refused(["one/x/a.csv", "alias/x/a.csv"], filesystem=store(tags))
    assert sum_of(read(["one/x/a.csv", "one/y/b.csv"], SCHEMA, filesystem=store(tags))) == 6
    for own in (tags | {"/alias/x/a.csv": "98f00b20"}, None):
        assert sum_of(read(["one/x/a.csv", "alias/x/a.csv"], SCHEMA, filesystem=store(own))) == 6


# functions, and what they give --------------------------------------------------------------------

FRAME = pd.DataFrame({"x": range(10)})
WHOLE = table()
HALVES = [WHOLE.slice(0, 5), WHOLE.slice(5)]
ARRAY = np.arange(10.0)


class Office:
    def records(self) -> Any:
        return table()


def _one_function() -> Any:
    def given() -> Any:
        return table()

    return [given, given]


def _of_a_loop() -> Any:
    """Each of them gives the last week: a loop has one variable."""
    return [lambda: table(week, week + 5) for week in (0, 5)]  # noqa: B023


def _made_alike() -> Any:
    def of(low: int) -> Any:
        return lambda: table(low)

    return [of(3), of(3)]


def _methods() -> Any:
    office = Office()
    return [office.records, office.records]


def _one_object(data: Any) -> Any:
    other = data
    return [lambda: data, lambda: [other][0]]


FUNCTIONS = {
    "one function": _one_function,
    "written twice": lambda: [lambda: table(0), lambda: table(0)],
    "of a loop": _of_a_loop,
    "made alike": _made_alike,
    "partials": lambda: [partial(table, 0, high=5), partial(table, 0, high=5)],
    "a method": _methods,
    "a pandas frame": lambda: _one_object(FRAME),
    "a polars frame": lambda: _one_object(pl.DataFrame({"x": range(10)})),
    "a LazyFrame": lambda: _one_object(pl.LazyFrame({"x": range(10)})),
    "an Arrow table": lambda: _one_object(WHOLE),
    "Arrow memory": lambda: (lambda one, two: [lambda: one, lambda: [two][0]])(WHOLE.slice(0, 5), HALVES[0]),
    "a record batch": lambda: _one_object(WHOLE.to_batches()[0]),
    "an array in mappings": lambda: [lambda: {"x": ARRAY}, lambda: {"x": [ARRAY][0]}],
    "an array": lambda: _one_object(ARRAY),
    "a query": lambda: [
        lambda: cf.sql("duckdb://", "select 1 as x"),
        lambda: cf.sql("duckdb://", "select 1 " + "as x;"),
    ],
}


@pytest.mark.parametrize("form", FUNCTIONS)
def test_a_function_or_what_it_gives_twice(form: str) -> None:
    if form == "a query":
        pytest.importorskip("duckdb")
    assert "function 1 and function 2." in refused(FUNCTIONS[form]())


def test_a_refusal_says_which_parts_of_a_list_are_one() -> None:
    """By their places in it: functions have no names."""
    frames = [FRAME[:3], FRAME, FRAME[3:], FRAME]
    assert "function 2 and function 4." in refused([lambda k=k: frames[k] for k in range(4)])


def test_a_refusal_says_which_paths_of_a_list_are_one(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.csv"), write(tmp_path / "b.csv")
    (tmp_path / "c.csv").symlink_to(a)
    assert f"{str(a)!r} (part 1) and {str(a)!r} (part 3)." in refused([a, b, str(a)])
    assert f"{str(a)!r} (part 2) and '{tmp_path}/c.csv' (part 3)." in refused([b, a, tmp_path / "c.csv"])


def test_a_refusal_names_no_folder_within_a_folder(tmp_path: Path) -> None:
    """Nor does it number files there: that would tell how many ids come before one."""
    other, d = write(tmp_path / "a.parquet"), _hard_link_in_folders(tmp_path)
    where = f"a file in {str(d)!r}"
    assert f"twice: {where} and another one there" in refused(d)
    assert f"twice: {where} (part 2) and another one there" in refused([other, d])
    (d / f"k={SECRET}2" / "a.parquet").unlink()
    assert f"twice: {where} (part 1) and {where} (part 3)." in refused([d, other, str(d)])
    (d / "b.parquet").hardlink_to(other)
    assert f"twice: {str(other)!r} (part 1) and '{d}/b.parquet' (part 2)." in refused([other, d])


def test_other_functions_are_read() -> None:
    """Also those whose tables lie where another's lay before: that was let go."""
    for functions in (
        [lambda low=low: table(low, low + 5) for low in (0, 5)],
        [lambda: WHOLE.slice(0, 5), lambda: WHOLE.slice(5)],
        [lambda half=half: half for half in HALVES],
        [partial(table, 0, 5), partial(table, 5)],
        [lambda: {"x": ARRAY[:5]}, lambda: {"x": ARRAY[5:]}],
        [lambda: pl.from_arrow(HALVES[0]), lambda: pl.from_arrow(HALVES[1])],
    ):
        source = read(functions, SCHEMA)
        assert sum_of(source) == sum_of(source) == 45
    fresh = [lambda low=low: np.full((100, 1), low) for low in range(9)]
    assert sum_of(read(fresh, SCHEMA)) == 3600
    # functions that call themselves and each other
    assert sum_of(read([_itself(3), _itself(4)], SCHEMA)) == 90
    refused([_itself(3), _itself(3)])
    assert sum_of(read([_each_other(5)[0], _each_other(6)[0]], SCHEMA)) == 90


def _itself(times: int) -> Any:
    def given(left: int = times) -> Any:
        return given(left - 1) if left else table()

    return given


def _each_other(seed: int) -> list[Any]:
    """Ten functions, all of which are in the closure of each."""
    made: list[Any] = []
    a, b, c, d, e, f, g, h, i, j = (lambda: (a, b, c, d, e, f, g, h, i, j, made, seed) and table() for _ in range(10))
    made += [a, b]
    return made


# tables of databases ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_table_that_is_there_twice(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / f"a.{kind}"
    if kind == "sqlite":
        pytest.importorskip("adbc_driver_sqlite")
        made: Any = sqlite3.connect(place)
    else:
        made = pytest.importorskip("duckdb").connect(str(place))
    for name in ("answers", "others"):
        made.execute(f"create table {name} (x integer)")
        made.execute(f"insert into {name} values (2), (3)")
    if kind == "sqlite":
        made.commit()
    made.close()
    (tmp_path / f"link.{kind}").symlink_to(place)
    monkeypatch.setenv("CLINIC", f"{kind}:///{place}")
    for other in (place, tmp_path / f"link.{kind}", "env:CLINIC"):
        assert "the query to" in refused([f"{place}/answers", f"{other}/answers"])
    assert sum_of(read([f"{place}/answers", f"{place}/others"], SCHEMA)) == 10


@pytest.mark.parametrize("form", ["file:{}?mode=ro", "file://{}", "file://localhost{}?cache=private", "file:{}#here"])
def test_a_sqlite_file_by_its_uri(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    place = tmp_path / "a b.sqlite"
    table().to_pandas().to_sql("answers", sqlite3.connect(place))
    address = "sqlite:///" + form.format(str(place).replace(" ", "%20"))
    monkeypatch.setenv("CLINIC", address)
    refused([f"{place}/answers", "env:CLINIC/answers"])
    refused(
        [
            lambda: cf.sql(address, "select x from answers"),
            lambda: cf.sql(f"sqlite:///{place}", "select x from answers"),
        ]
    )


@pytest.fixture
def postgres() -> Iterator[Any]:
    """The address of a server with a partitioned table and an inherited one, and a connection to it."""
    need("PostgreSQL")
    pytest.importorskip("adbc_driver_postgresql")
    import psycopg

    schema = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(SERVER, autocommit=True) as owner:
        owner.execute(f'create schema "{schema}"')
        owner.execute(f'set search_path = "{schema}"')
        owner.execute("create table m (x int, year int) partition by list (year)")
        for year in (2023, 2024):
            owner.execute(f"create table m_{year} partition of m for values in ({year})")
            owner.execute(f"insert into m select x, {year} from generate_series(0, 9) x")
        owner.execute('create table "it\'s" (x int)')
        owner.execute('create table heir () inherits ("it\'s")')
        owner.execute("create table alone as select * from generate_series(0, 9) x")
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{schema}", schema, owner
        owner.execute(f'drop schema "{schema}" cascade')


def test_a_table_and_its_partition(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition by itself, and beside another one, is read."""
    address, schema, _ = postgres
    monkeypatch.setenv("A", address)
    at = f"env:A/{schema}"
    for twice in (["m", "m_2024"], ["m_2024", "m"], ["heir", "it's"], ["alone", "alone"], ["m_2023", "alone", "m"]):
        assert "the query to PostgreSQL (part " in refused([f"{at}.{name}" for name in twice])
    assert sum_of(read([f"{at}.m_2023", f"{at}.m_2024", f"{at}.alone", f"{at}.heir"], SCHEMA)) == 135
    assert sum_of(read(f"{at}.m", SCHEMA)) == 90


@pytest.mark.parametrize("public", [True, False])
def test_one_server_by_two_addresses(public: bool, postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for one that may not ask for the identity of the server; other schemas and databases have other rows."""
    address, schema, owner = postgres
    other = f"{address}&application_name=other"
    monkeypatch.setenv("A", address)
    monkeypatch.setenv("B", other)
    if not public:
        monkeypatch.setattr(databases, "_SERVERS", ("(select 1 from none)", databases._SERVERS[1]))
    refused([f"env:A/{schema}.alone", f"env:B/{schema}.alone"])
    refused([f"env:A/{schema}.m", f"env:B/{schema}.m_2023"])
    asked = "select x from alone"
    refused([lambda: cf.sql(address, asked), lambda: cf.sql(other, asked)])
    owner.execute(f'create schema "{schema}_2"')
    try:
        owner.execute(f'create table "{schema}_2".alone as select 1 as x')
        elsewhere = f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{schema}_2"
        functions = [lambda: cf.sql(address, asked), lambda: cf.sql(elsewhere, asked)]
        assert sum_of(read(functions, SCHEMA)) == 46
        assert sum_of(read([f"env:A/{schema}.alone", f"env:A/{schema}_2.alone"], SCHEMA)) == 46
    finally:
        owner.execute(f'drop schema "{schema}_2" cascade')


# table formats ------------------------------------------------------------------------------------

LOGS = {
    "_delta_log/00000000000000000000.json": "scan_delta",
    "metadata/00001-8f2a.metadata.json": "scan_iceberg",
    "metadata/v1.metadata.json": "scan_iceberg",
    "metadata/v2.gz.metadata.json": "scan_iceberg",
    "metadata/00002-8f2a.metadata.json.gz": "scan_iceberg",
    ".hoodie/hoodie.properties": "hudi",
    ".hoodie_partition_metadata": "hudi",
    "_spark_metadata/0": "spark.read",
}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("local", [True, False])
def test_a_table_format_keeps_files_of_former_versions(log: str, local: bool, tmp_path: Path) -> None:
    """The folder, a folder around it, and whatever of it is given by itself: files, a partition, Iceberg's `data`."""
    d = tmp_path / "d"
    files = [write(d / "a.parquet"), write(d / "k=1" / "b.parquet"), write(d / "data" / f"k={SECRET}" / "c.parquet")]
    given = [d, tmp_path, files[:1], files[1], [files[2]], d / "k=1", d / "data"]
    here = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    def opened(data: Any) -> tuple[Any, dict[str, Any]]:
        if local:
            return data, {}
        inner = [os.path.relpath(one, tmp_path) for one in (data if isinstance(data, list) else [data])]
        return inner, {"filesystem": here}

    for one in given:
        data, options = opened(one)
        read(data, SCHEMA, recursive=True, **options)
    (d / log).parent.mkdir(exist_ok=True)
    (d / log).write_text("{}")
    for one in given:
        data, options = opened(one)
        for recursive in (True, False):
            if SECRET in str(data):  # the caller's own words
                with refuses(SourceError):
                    read(data, SCHEMA, recursive=recursive, **options)
            else:
                assert LOGS[log] in refused(data, recursive=recursive, **options)


@pytest.mark.parametrize("way", ["path", "address", "arrow", "fsspec"])
@pytest.mark.parametrize("log", ["_delta_log/0.json", "metadata/v1.metadata.json"])
def test_files_of_a_table_format_by_another_way_in(way: str, log: str, tmp_path: Path) -> None:
    """A link to one of them, a folder of links, and files deep in the folders that a format makes up."""
    files = [
        write(tmp_path / "t" / "a.parquet", 0, 5),
        write(tmp_path / "t" / "data" / "00" / "01" / "b.parquet", 5, 10),
    ]
    (tmp_path / "links").mkdir()
    for name, file in zip("ab", files, strict=True):
        (tmp_path / "links" / f"{name}.parquet").symlink_to(file)
    (tmp_path / "folder").symlink_to(files[1].parent)
    options = {
        "fsspec": {"filesystem": _of_fsspec("relative", tmp_path)},
        "arrow": {"filesystem": fs.LocalFileSystem()},
    }
    given = [
        *([[tmp_path / "links"]] if way != "fsspec" else []),  # which passes over links in a folder
        *([one] for one in files),
        *([one] for one in sorted((tmp_path / "links").iterdir())),
        [tmp_path / "links" / "a.parquet", tmp_path / "links" / "b.parquet"],
        [files[1].parent],
        [tmp_path / "folder"],
    ]
    for one in given:
        read([f"file://{path}" if way == "address" else str(path) for path in one], SCHEMA, **options.get(way, {}))
    (tmp_path / "t" / log).parent.mkdir()
    (tmp_path / "t" / log).write_text("{}")
    for one in given:
        refused(
            [f"file://{path}" if way == "address" else str(path) for path in one],
            **options.get(way, {}),
        )


def test_a_view_of_a_store_hides_no_log() -> None:
    """Not even one that begins below it."""
    made = store()
    for path in ("/one/t/_delta_log/0.json", "/one/t/data/00/a.parquet"):
        made.handler.fs.pipe(path, b"{}")
    for base, path in (("one/t/data/00", "a.parquet"), ("one/t/data", "00/a.parquet"), ("one", "t/data/00/a.parquet")):
        refused(path, filesystem=fs.SubTreeFileSystem(base, made), recursive=True)


def test_other_metadata_beside_files(tmp_path: Path) -> None:
    """One rule for a file and for its folder."""
    for name in ("metadata/survey.metadata.json", "metadata/2019.json", "delta_log/0.json", ".hoodie.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    file = write(tmp_path / "data" / "a.parquet")
    here = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for one in (file, file.parent, tmp_path):
        assert sum_of(read(one, SCHEMA, recursive=True)) == 45
        inner = os.path.relpath(one, tmp_path)
        assert sum_of(read("" if inner == "." else inner, SCHEMA, recursive=True, filesystem=here)) == 45
    (tmp_path / "_delta_log").mkdir()
    assert sum_of(read(write(tmp_path / "a.csv"), SCHEMA)) == 45


def test_a_folder_is_looked_at_in_each_file_system(tmp_path: Path) -> None:
    """Two stores may have folders of one name."""
    stores = []
    for name in ("one", "two"):
        write(tmp_path / name / "t" / "a.parquet")
        stores.append(fs.SubTreeFileSystem(str(tmp_path / name), fs.LocalFileSystem()))
    (tmp_path / "two" / "t" / "_delta_log").mkdir()
    looked: dict[str, list[Any]] = {}
    check_log(files_behind("t/a.parquet", stores[0]), "it", looked)
    with refuses(SourceError):
        check_log(files_behind("t/a.parquet", stores[1]), "it", looked)


# folders within folders ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"filesystem": fs.LocalFileSystem()}])
def test_folders_that_are_no_partitions(options: dict[str, Any], tmp_path: Path) -> None:
    """They are told by their depth, and never by their names; nor is a file in one of them."""
    d = tmp_path / "d"
    write(d / "a.parquet", 0, 5)
    write(d / "_old" / "a.parquet")
    path = str(d)
    assert sum_of(read(path, SCHEMA, **options)) == 10
    write(d / "k=1" / "b.parquet", 5, 8)
    assert sum_of(read(path, SCHEMA, **options)) == 28
    write(d / "k=1" / SECRET / "c.parquet", 8, 9)
    said = refused(path, **options)
    assert "counted down from it: 2;" in said
    # the command line has no such option
    assert "each of the folders; or" in said and "in Python cf.read(path, schema, recursive=True)" in said
    write(d / f"{SECRET}2" / "d.parquet", 9, 10)
    assert "counted down from it: 1, 2;" in refused(path, **options)
    source = read(path, SCHEMA, recursive=True, **options)
    assert sum_of(source) == 45
    (d / f"{SECRET}2" / "d.parquet").write_bytes(b"nothing")
    for action in (lambda: source.check(["x"]), lambda: read(path, SCHEMA, recursive=True, **options)):
        with pytest.raises(SourceError) as caught:
            action()
        assert SECRET not in str(caught.value)


def test_recursive_is_yes_or_no(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    for filesystem in (None, fs.LocalFileSystem()):
        said = refused(str(tmp_path), recursive="all", filesystem=filesystem)
        assert "recursive=True" in said


@pytest.mark.parametrize("other", ["rest.csv", "rest.csv.gz", "rest.pq", "sub/rest.csv"])
def test_a_folder_of_which_a_part_would_be_read_is_refused(tmp_path: Path, other: str) -> None:
    folder = tmp_path / "records"
    (folder / "sub").mkdir(parents=True)
    SCHEMA.sample(10, 1).to_parquet(folder / "a.parquet")
    (folder / other).write_bytes(b"x")
    with refuses(cf.errors.SourceError):
        cf.read(folder, SCHEMA, recursive=True)
    (folder / other).rename(folder / "_rest.csv")  # what a writer keeps to itself
    assert cf.read(folder, SCHEMA, recursive=True).count() == 10
