"""Records that a database gives for a query: PostgreSQL, SQLite and others through ADBC, DuckDB through its own package.

All passes of one release read one snapshot. The connection is opened when the release begins, in one transaction that
only reads. In PostgreSQL its isolation level is "repeatable read"; DuckDB and SQLite have no weaker one. It is closed
when the release ends.

An address may hold a password. It is kept in an object that shows nothing of it and is handed to the driver alone: no
message, plan, release, ledger or `repr` has it. The text of a driver's error is never repeated, because servers quote
addresses, queries and cells. When a query is first checked, before any record, the SQLSTATE code is told.

Tables of a database may be given by name: `cf.read("survey.sqlite/answers", schema)`, `cf.read("env:CLINIC/answers",
schema)`.

A SQLite or DuckDB file is a place like a folder, and its tables are named behind it. Any other database, or one that
asks for a password, has its address in a variable of the environment, `CLINIC=postgresql://...`, and is named by that
variable. So a command, a script or a page names the records, and says nothing of where they are or who may read them.

Names and types come from the database's own catalog; no row is read. Only tables are listed: no views, no virtual
tables and none with generated columns. Those compute what they give, again in each pass, and a file that others wrote
would choose what is computed. DuckDB files are opened without access to others, whatever their name. The tables of a
ledger are what was charged, not records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn
from urllib.parse import unquote

import pyarrow as pa

from confide._helpers import clean, near_match
from confide.errors import SourceError
from confide.sources.coding import Part, Piece, file_at, guarded
from confide.sources.formats.read_once import Origin
from confide.sources.formats.streams import pieces_of, quoted, relation_reader
from confide.sources.formats.tables import kind_of

_CALL = 'cf.sql("postgresql://user@host/database", "select ...")'
_SCHEME = re.compile(r"(postgresql|postgres|sqlite|duckdb)(?:\+\w+)?://")
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_POSTGRES = ("PostgreSQL", "adbc_driver_postgresql.dbapi", "sql")
# by scheme: how messages call the database, its driver, the extra that brings it
_DRIVERS = {
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "sqlite": ("SQLite", "adbc_driver_sqlite.dbapi", "sql"),
    "duckdb": ("DuckDB", "duckdb", "duckdb"),
}
# the databases whose way of preparing a text is known; what others call themselves is of no use
_KNOWN = ("PostgreSQL", "SQLite")
# which server and database is asked, whatever address leads there: that of a server and its replicas, or, where that may not be read, of
# the one that runs
_SERVERS = ("(select system_identifier from pg_control_system())", "pg_postmaster_start_time()")
# the rows of a query: those of its text, in these schemas; of a table: its own, and those of its partitions and of what inherits from it
_OF_QUERY = "select current_schemas(false)::text as rows"
_OF_TABLE = """with recursive own(rows) as (
select '{}'::regclass::oid union select i.inhrelid from pg_inherits i join own on i.inhparent = own.rows) select rows::text from own"""
# what the classes of SQLSTATE mean that a query can meet before it has looked at a record
_STATES = {
    "28": "the server refused the user or the password",
    "3D": "there is no such database",
    "42": "the query has an error, or names what is not there or may not be read",
    "57": "the server is not taking queries now",
    "08": "the connection was lost",
}


class Query:
    """A query and where it runs; made by `confide.sql`, taken by `confide.read`. It shows neither address nor query.

    `database`: the engine that answers, "ADBC" where that is known only once a connection is open, if at all.
    `connect`: opens a connection. `text`: one SELECT, of which each pass asks for the columns that it needs, or for
    all where the engine is not known (`SqlPart.pieces`). `where`: equal for two queries to one database, of a file
    what `file_at` says. `fields`, `table`: of a table from the catalog (`databases.Database`), the name, kind and
    note of each column, and its name in SQL. Of any other query nothing is known.
    """

    def __init__(
        self,
        database: str,
        connect: Callable[[], Any],
        text: str,
        where: Origin,
        fields: tuple[tuple[str, str, str], ...] = (),
        table: str = "",
    ) -> None:
        self.database, self.connect, self._text, self._where = database, connect, text, where
        self.fields, self.table = fields, table

    @property
    def origin(self) -> Hashable:
        """Equal for two queries of one text to one database, and for two tables of which one has rows of the other."""
        alike = Origin((self.database, self._where, self._text))
        return _OnServer(self, alike) if self.database == "PostgreSQL" else alike

    @property
    def file(self) -> Hashable:
        """As `Part.file`."""
        return self._where.key

    def __repr__(self) -> str:
        return f"confide.sql({self.database})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a query is asked by the process that made it: its address may hold a password, and is not pickled"
        )


@dataclass(frozen=True, eq=False)
class _OnServer:
    """Which rows a query to PostgreSQL is for. A server is asked what it is only where two queries are compared that may have the same."""

    query: Query = field(repr=False)
    alike: Origin

    def __hash__(self) -> int:
        return hash("PostgreSQL")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _OnServer) or self.alike == other.alike:
            return isinstance(other, _OnServer)
        one, two = self.query, other.query
        may_be = (one.table and two.table) or one._text == two._text
        return bool(may_be) and not self._rows.isdisjoint(other._rows)

    @cached_property
    def _rows(self) -> frozenset[tuple[Any, ...]]:
        """Server, database and tables; nothing where the server does not say."""
        own = _OF_TABLE.format(self.query.table.replace("'", "''")) if self.query.table else _OF_QUERY
        for server in _SERVERS:
            with suppress(Exception), closing(self.query.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(
                    f"select {server}::text, d.oid::text, own.rows from pg_database d, ({own}) own where d.datname = current_database()"
                )
                return frozenset(map(tuple, cursor.fetchall()))
        return frozenset()


def sql(address: Any, query: str) -> Query:
    """Take the rows of a query as records, for `confide.read`.

    Parameters
    ----------
    address : str, connection or callable
        ``"postgresql://..."`` as libpq has it, ``"sqlite:///file.db"``,
        ``"duckdb:///file.db"``, or ``"duckdb://"`` for queries over files, such
        as ``"select * from 'survey/*.parquet'"``. Also an open ADBC connection
        (PEP 249, of the package `adbc_driver_manager`), or a function that
        opens one. Keep a password in ~/.pgpass or PGPASSWORD rather than in an
        address.
    query : str
        One SELECT, or WITH ... SELECT, which a semicolon may end. It must give
        the same rows each time in one snapshot: no random(), no limit without
        an order.

    Returns
    -------
    Query
        The query; it shows neither address nor text.

    Raises
    ------
    SourceError
        The address is of another kind, or a driver is not installed.
        `confide.read` asks the server and raises it for a text that is anything
        other than one SELECT; nothing of that text is run.

    Notes
    -----
    The query runs once for each pass, in one snapshot for all passes of a
    release. PostgreSQL, SQLite and DuckDB are asked for the columns that the
    pass needs. Any other engine is asked for all, because its quoting of names
    is not known.

    PostgreSQL and SQLite need the extra `sql`: pip install 'confide[sql]';
    DuckDB needs its package.

    Examples
    --------
    >>> sql("postgresql://me:secret@localhost/survey", "select age from answers")
    confide.sql(PostgreSQL)
    """
    if not isinstance(query, str) or not query.strip() or "\0" in query:
        raise SourceError("the query is one SELECT as text", f"write {_CALL}")
    text = query.strip().rstrip(";").strip()
    if isinstance(address, str):
        made = _by_address(address, text)
    elif hasattr(address, "adbc_get_info"):
        said = "the connection does not say what it is connected to"
        vendor = guarded(said, address.adbc_get_info)["vendor_name"]
        made = Query(vendor if vendor in _KNOWN else "ADBC", address.adbc_clone, text, Origin.of(address))
    elif callable(address):
        made = Query("ADBC", address, text, Origin.of(address))
    else:
        made = f"cf.sql takes an address, an open ADBC connection or a function that opens one, got {type(address).__name__}"
    del address, text, query  # an error report may show the values of variables
    if isinstance(made, Query):
        return made
    raise SourceError(f"{made}", f"write {_CALL}")


def _by_address(address: str, text: str) -> Query | str:
    """The query, or what is wrong with the address. It is not quoted, because a text that is not an address may still hold a password."""
    found = _SCHEME.match(address)
    if found is None:
        return (
            "the address begins with none of postgresql://, sqlite:///, duckdb:// (it is not shown, as it may hold a password; for another "
            "database give a function that opens an ADBC connection)"
        )
    scheme, rest = found[1], address[found.end() :]
    database, module, extra = _DRIVERS[scheme]
    try:
        import_module(module)
    except ImportError:
        return f"{module.partition('.')[0].replace('_', '-')} is not installed; run: pip install 'confide[{extra}]'"
    if database == "PostgreSQL":
        inner = f"postgresql://{rest}"
        return Query(database, _Hidden(module, inner), text, Origin(inner))
    path = inner = rest.removeprefix("/")
    if database == "SQLite":
        path, inner = _of_sqlite(inner)
    return Query(database, _Hidden(module, inner or ":memory:"), text, Origin(file_at(path)))


def _of_sqlite(given: str) -> tuple[str, str]:
    """The path of a SQLite file that is given as a path or URI, and the URI that reads it: where there is no file, none is made."""
    path, options = given, list[str]()
    if given.startswith("file:"):
        path, _, rest = given.removeprefix("file:").partition("#")[0].partition("?")
        path = unquote("/" + path[2:].partition("/")[2] if path.startswith("//") else path)
        options = [one for one in rest.split("&") if one]
    if path in ("", ":memory:") or "mode=memory" in options:
        return path, given
    options = [one for one in options if not one.startswith("mode=")]
    return path, f"{Path(path).absolute().as_uri()}?{'&'.join([*options, 'mode=ro'])}"


class _Hidden:
    """Opens a connection, and shows nothing of where to."""

    def __init__(self, module: str, address: str) -> None:
        self._module, self._address = module, address

    def __call__(self) -> Any:
        driver = import_module(self._module)
        if self._module != "duckdb":
            return driver.connect(self._address)
        return driver.connect(self._address, read_only=self._address != ":memory:")


class SqlPart(Part):
    """The rows of a query, read in one snapshot while a session lasts."""

    type: str
    place: str
    names: tuple[str, ...]
    rereadable = True
    _schema: Any = None

    def __init__(self, query: Query) -> None:
        self._query = query
        self.type = f"{query.database} query"
        self.place = f"the query to {query.database}"
        self._lock = RLock()
        self._connection: Any = None
        self._sessions = 0
        # what a function opens says itself what it is
        self._engine = query.database
        with self.session():
            pass
        self.names = tuple(str(name) for name in self._schema.names)

    @property
    def file(self) -> Hashable:
        return self._query.file

    def kind(self, name: str) -> Any:
        return pa.string() if self._engine == "SQLite" else kind_of(self._schema.field(name).type)

    def verify(self) -> None:
        """Nothing to compare: the passes of a session read one snapshot."""

    def count(self) -> int:
        with self.session():
            (batch,) = (one for one in self._asked(self._select("count(*)")) if one.num_rows)
            return int(batch.column(0)[0].as_py())

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        with self.session():
            cell = _as_text if self._engine == "SQLite" else quoted
            # how another engine quotes names is not known
            columns = "*" if self._engine == "ADBC" else ", ".join(map(cell, names or self.names[:1]))
            yield from pieces_of(self.place, self._asked(self._select(columns)), names)

    @contextmanager
    def session(self) -> Iterator[None]:
        """One snapshot for whatever is read within; sessions may lie in one another. It begins with a look at the columns."""
        with self._lock:
            if self._connection is None:
                self._connection = self._opened()
                try:
                    self._check_same()
                except BaseException:
                    self._close()
                    raise
            self._sessions += 1
        try:
            yield
        finally:
            with self._lock:
                self._sessions -= 1
                if not self._sessions:
                    self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        for step in ("rollback", "close"):
            with suppress(Exception):
                getattr(connection, step)()

    def _opened(self) -> Any:
        """A connection with its transaction begun."""
        code, connection = "", None
        try:
            connection = self._query.connect()
            if self._query.database == "ADBC":
                self._engine = _engine_of(connection)
            if self._engine == "DuckDB":
                connection.execute("BEGIN TRANSACTION")
            elif self._engine == "PostgreSQL":
                with connection.cursor() as cursor:
                    cursor.execute(_SNAPSHOT)
            return connection
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            code = _code(error)
        if connection is not None:
            with suppress(Exception):
                connection.close()
        # outside the handler: an error raised within would carry the driver's along, with the address in it
        raise SourceError(
            f"no connection to {self._query.database} could be opened{code}", "check address, user and password"
        )

    def _check_same(self) -> None:
        """Raises `SourceError` where the query has other columns than when it was first asked."""
        found = self._looked_at()
        if self._schema is not None and not found.equals(self._schema):
            raise SourceError(
                f"{self.place} has other columns than when it was opened", "open it again with confide.read(...)"
            )
        self._schema = found

    def _looked_at(self) -> Any:
        """The columns of the query, once it is known to be one SELECT; no row is read."""
        code = ""
        try:
            if self._is_one():
                with self._reader(self._select("*", " WHERE 1 = 0")) as reader:
                    return reader.schema
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            code = _code(error)
        raise SourceError(
            f"{self._query.database} could not take the query as one SELECT{code}",
            "try it there first: one SELECT or WITH ... SELECT, "
            "without a parameter, with a semicolon at its end or none",
        )

    def _is_one(self) -> bool:
        """Whether the engine reads the text alone as one statement. It is not run.

        A text that is one statement alone, and also within parentheses, where `_select` puts it, is a SELECT. A text
        that closes them and goes on is not one statement alone. Neither several statements nor one that writes can be
        within them.
        """
        text = self._query._text
        if self._engine == "DuckDB":
            return [one.type.name for one in self._connection.extract_statements(text)] == ["SELECT"]
        with self._connection.cursor() as cursor:
            prepared = cursor.adbc_prepare(text)
        # None: the driver may have prepared nothing, as some do. Without a semicolon there is one statement
        return prepared is not None or (self._engine == "ADBC" and ";" not in text)

    def _select(self, columns: str, end: str = "") -> str:
        # on lines of its own, so that a comment at its end comments nothing else out
        return f"SELECT {columns} FROM (\n{self._query._text}\n) records{end}"

    def _asked(self, text: str) -> Iterator[Any]:
        """The batches of a query's answer."""
        with self._reader(text) as batches:
            yield from batches

    @contextmanager
    def _reader(self, text: str) -> Iterator[Any]:
        if self._engine == "DuckDB":
            with closing(relation_reader(self._connection.sql(text))) as reader:
                yield reader
        else:
            # the reader ends with its cursor
            with self._connection.cursor() as cursor:
                cursor.execute(text)
                yield cursor.fetch_record_batch()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a query is asked by the process that made it: its address may hold a password, and is not pickled"
        )


def _as_text(name: str) -> str:
    """A column of SQLite as text in each row, the empty one where a cell is NULL: both mean missing.

    Each cell of SQLite has its own type, and its driver gives a column the type of its first 1,024 rows. A fraction
    below whole numbers, or text below NULLs, would end the pass after the charge. Then one record would decide
    whether there is a release. A real number that is whole is written as the whole number, so that an id is one id in
    all tables. `quote` writes others with as many digits as give them back.

    >>> import sqlite3
    >>> cells = "select .5 as x union all select 7 union all select 7.0 union all select 'a' union all select x'41' union all select null"
    >>> [one for (one,) in sqlite3.connect(":memory:").execute(f"select {_as_text('x')} from ({cells})")]
    ['0.5', '7', '7', 'a', 'A', '']
    """
    cell = quoted(name)
    return (
        f"CASE WHEN {cell} IS NULL THEN '' WHEN typeof({cell}) <> 'real' THEN CAST({cell} AS TEXT) "
        f"WHEN {cell} = CAST({cell} AS INTEGER) THEN CAST(CAST({cell} AS INTEGER) AS TEXT) ELSE quote({cell}) END AS {cell}"
    )


def _engine_of(connection: Any) -> str:
    """Which database a caller's function opened a connection to; "ADBC" for one that is not known here."""
    if type(connection).__module__.partition(".")[0].lstrip("_") == "duckdb":
        return "DuckDB"
    info = getattr(connection, "adbc_get_info", None)
    vendor = None if info is None else info().get("vendor_name")
    return vendor if vendor in _KNOWN else "ADBC"


def _code(error: BaseException) -> str:
    """What may be told of a driver's error when no record has been read: its SQLSTATE."""
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str) or not re.fullmatch(r"[0-9A-Z]{5}", state) or state == "00000":
        return ""
    meaning = _STATES.get(state[:2])
    return f" (SQLSTATE {state}{': ' + meaning if meaning else ''})"


#: (name, kind, note), as `schema.draft.fields_of` has them.
Field = tuple[str, str, str]

_VARIABLE = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_DUCKDB = re.compile(r"duckdb:///(.+)", re.DOTALL)
_USUAL = ("main", "public")
_LISTED = """
select t.table_schema, t.table_name, c.column_name, c.data_type
from information_schema.tables t join information_schema.columns c
on t.table_catalog = c.table_catalog and t.table_schema = c.table_schema and t.table_name = c.table_name
where t.table_type = 'BASE TABLE' and t.table_schema not in ('information_schema', 'pg_catalog')
order by t.table_schema, t.table_name, c.ordinal_position"""
# which columns are generated not every version says elsewhere than in a table's definition; a name that looks like it hides its table
_LISTED_DUCKDB = _LISTED.replace(
    "order by",
    """and not exists (select 1 from duckdb_tables() d where d.database_name = t.table_catalog and d.schema_name = t.table_schema
and d.table_name = t.table_name and contains(upper(d.sql), 'GENERATED ALWAYS'))
order by""",
)
# virtual tables have no page of their own; virtual generated columns are hidden as 2, stored ones as 3
_LISTED_SQLITE = """
select 'main', t.name, c.name, c.type from sqlite_schema t join pragma_table_info(t.name) c
where t.type = 'table' and t.rootpage > 0 and t.name not like 'sqlite\\_%' escape '\\'
and not exists (select 1 from pragma_table_xinfo(t.name) g where g.hidden = 2)
and (select application_id from pragma_application_id) <> {ledger} order by t.name, c.cid"""
# what a declared type begins with, without its digits
_KINDS = {
    "boolean": ("bool", "boolean"),
    "integer": ("int", "integer", "bigint", "smallint", "tinyint", "mediumint", "hugeint", "uint", "ubigint", "usmallint", "utinyint"),
    "numeric": ("real", "float", "double", "numeric", "decimal"),
    "categorical": ("char", "character", "text", "varchar", "nvarchar", "clob", "enum", "string", "user-defined", "bpchar"),
    "date": ("date", "datetime", "timestamp"),
}  # fmt: skip
_NOTES = {"boolean": ": false is 0, true is 1", "integer": '; or "numeric", or "categorical" with levels = ["1", "2"]'}


@dataclass(frozen=True)
class Database:
    """A database whose tables hold records: a SQLite or DuckDB file, or an address in a variable of the environment.

    name: as it was given, which shows nothing of an address.
    """

    name: str
    kind: str
    _place: str = field(repr=False)

    @classmethod
    def at(cls, given: str | os.PathLike[str]) -> Database:
        """Raises `SourceError` for what is neither a SQLite or DuckDB file nor `env:NAME` of a variable that holds an address."""
        name = os.fspath(given)
        if found := _VARIABLE.fullmatch(name):
            if not (address := os.environ.get(found[1])):
                raise SourceError(
                    f"the variable {found[1]} is not set; it holds the address of a database: export {found[1]}=postgresql://user@host/survey"
                )
            if file := _DUCKDB.fullmatch(address):
                return cls(name, "DuckDB", file[1])
            return cls(name, "address", address)
        if (kind := _file_kind(Path(name))) is None:
            raise SourceError(
                f"{name!r} is not a SQLite or DuckDB file; a database on a server is named by a variable that holds its address, "
                "as in env:CLINIC/answers"
            )
        return cls(name, kind, name)

    def tables(self) -> Mapping[str, tuple[Field, ...]]:
        """The fields of each table, by its name (`schema.table` outside the usual schema); `SourceError` where it cannot be opened."""
        return {name: fields for name, (_, fields) in self._found().items()}

    def query(self, table: str) -> Query:
        """The rows of a table as records; `SourceError` for a table that is not there."""
        found = self._found()
        if table not in found:
            held = ", ".join(map(clean, found)) or "none"
            raise SourceError(
                f"{clean(self.name)} has no table {clean(table)!r}{near_match(table, tuple(found))}; it has: {held} (views, virtual tables "
                "and tables with generated columns compute what they give, and are asked by cf.sql; a ledger holds no records)"
            )
        (schema, name), fields = found[table]
        asked = f"select * from {quoted(schema)}.{quoted(name)}"
        if self.kind == "DuckDB":
            return Query("DuckDB", partial(_duckdb, self._place), asked, Origin(file_at(self._place)), fields)
        made = sql(f"sqlite:///{self._place}" if self.kind == "SQLite" else self._place, asked)
        made.fields, made.table = fields, f"{quoted(schema)}.{quoted(name)}"
        return made

    def _found(self) -> dict[str, tuple[tuple[str, str], tuple[Field, ...]]]:
        tables: dict[tuple[str, str], list[Field]] = {}
        for schema, table, column, declared in self._rows():
            tables.setdefault((schema, table), []).append((column, *_kind_of(declared)))
        named: dict[str, tuple[tuple[str, str], tuple[Field, ...]]] = {}
        for schema, table in sorted(tables, key=lambda one: one[0] not in _USUAL):
            called = table if schema in _USUAL else f"{schema}.{table}"
            named.setdefault(called, ((schema, table), tuple(tables[schema, table])))
        return named

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """(schema, table, column, declared type) of all columns. What a driver says is not repeated: it may quote an address."""
        with suppress(Exception):
            return [tuple(map(str, row)) for row in self._listed()]  # type: ignore[misc]
        raise SourceError(
            f"the tables of {clean(self.name)} cannot be listed", "check that it is a database that you may read"
        )

    def _listed(self) -> list[Any]:
        from confide.ledger.storage.sqlite import APPLICATION

        of_sqlite = _LISTED_SQLITE.format(ledger=APPLICATION)
        if self.kind == "SQLite":
            with closing(
                import_module("sqlite3").connect(f"{Path(self._place).resolve().as_uri()}?mode=ro", uri=True)
            ) as connection:
                return list(connection.execute(of_sqlite).fetchall())
        if self.kind == "DuckDB":
            with closing(_duckdb(self._place)) as connection:
                return list(connection.execute(_LISTED_DUCKDB).fetchall())
        query = sql(self._place, _LISTED)
        with closing(query.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(of_sqlite if query.database == "SQLite" else _LISTED)
            return list(cursor.fetchall())


def table_at(place: str | os.PathLike[str]) -> Query | None:
    """The table that a place names, "survey.sqlite/answers" or "env:CLINIC/answers"; None where it names no database.

    Raises `SourceError` for a database without that table.
    """
    text = os.fspath(place)
    if found := _VARIABLE.match(text):
        database, _, table = text.partition("/")
        return Database.at(database).query(table) if found[0] == database else None
    path = Path(text)
    inside = next((one for one in (path, *path.parents) if one.is_file() and _file_kind(one)), None)
    if inside is None:
        return None
    own = Database.at(inside)
    if inside == path:
        some = next(iter(own.tables()), "answers")
        raise SourceError(
            f"{text!r} is a {own.kind} database", f"name one of its tables, as in {clean(f'{text}/{some}')!r}"
        )
    return own.query(path.relative_to(inside).as_posix())


def _file_kind(path: Path) -> str | None:
    """Which database a file is, by how its format begins."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head == b"SQLite format 3\x00":
        return "SQLite"
    return "DuckDB" if head[8:12] == b"DUCK" else None


def _duckdb(place: str) -> Any:
    return import_module("duckdb").connect(place, read_only=True, config={"enable_external_access": "false"})


def _kind_of(declared: str) -> tuple[str, str]:
    """Kind and note of a declared type; SQLite's columns may have none."""
    low = declared.strip().lower()
    if not low:
        return "?", '"numeric", "integer" or "categorical": the column has no declared type'
    note = f"{clean(declared)} in the database"
    base = re.split(r"[\d (\[]", low)[0]
    other = low.endswith(("[]", "with time zone"))
    kind = "" if other else next((one for one, names in _KINDS.items() if base in names), "")
    return kind, note + _NOTES.get(kind, "")
