"""The tables of a database, by name: `cf.read("survey.sqlite/answers", schema)`, `cf.read("env:CLINIC/answers", schema)`.

A SQLite or DuckDB file is a place like a folder, and its tables are named behind it. Any other database, or one that asks for a
password, has its address in a variable of the environment, `CLINIC=postgresql://...`, and is named by that variable: so a command, a
script or a page names the records, and says nothing of where they are or who may read them.

Names and types come from the database's own catalogue; no row is read. Tables alone are listed, no views, no virtual tables and none with
generated columns: those compute what they give, anew in each pass, and a file that others wrote would choose what is computed. DuckDB
files are opened without access to others, however they are named. The tables of a ledger are what was charged, and no records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from confide._text import clean, near_match
from confide.errors import SourceError
from confide.sources.formats.queries import Query, sql
from confide.sources.formats.read_once import Origin
from confide.sources.formats.streams import quoted
from confide.sources.parts import file_at

__all__ = ["Database", "Field", "table_at"]

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
                f"{name!r} is no SQLite or DuckDB file; a database on a server is named by a variable that holds its address, "
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
            f"the tables of {clean(self.name)} cannot be listed; check that it is a database that you may read"
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
            f"{text!r} is a {own.kind} database; name one of its tables, as in {clean(f'{text}/{some}')!r}"
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
    kind = "" if low.endswith("[]") else next((one for one, names in _KINDS.items() if base in names), "")
    return kind, note + _NOTES.get(kind, "")
