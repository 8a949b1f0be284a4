"""Schemas as TOML files: read with the standard library, written by hand with the escapes of TOML 1.0.

A bound that is left to fill in is written "?" (see `draft`). Loading a draft says which lines to write, all at once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from confide._helpers import near_match
from confide.errors import SchemaError
from confide.schema.columns import Categorical, Column, Integer, Numeric
from confide.schema.dates import Date
from confide.schema.layout import PLAIN, FileLayout, in_file, layout_from_settings
from confide.schema.missing import codes_to_settings
from confide.schema.settings import PUBLIC, Provenance
from confide.schema.survey import SurveyDesign
from confide.schema.unit import Clusters, Unit

UNFILLED = "?"

_FACTS = ("columns", "dataset", "rows_per_unit", "unit", "cluster", "design", "missing", "file", "derive")
_COMMON = ("on_missing", "missing", "in_file", "provenance", "typical")
_ENTRIES = {
    "numeric": ("low", "high", "steps", *_COMMON),
    "integer": ("low", "high", *_COMMON),
    "categorical": ("levels", "codes", *_COMMON),
    "date": ("low", "high", "format", "century", "epoch", *_COMMON),
}
# What a fact of the whole table that was left to fill in should look like.
_FACT_HOLES = {
    "dataset": '  dataset, the name under which a ledger charges these records: write a line such as   dataset = "survey-2024"',
    "unit": '  unit, who is protected (by the id column of the data, which is enforced; or "record" when each row is a unit): '
    'write a line such as   unit = { column = "person_id" }',
}
# What a line that is missing should look like.
_LINES = {
    "numeric": {"low": "low = 0.0", "high": "high = 100.0"},
    "integer": {"low": "low = 0", "high": "high = 100"},
    "categorical": {"levels": 'levels = ["north", "south"]'},
    "date": {"low": 'low = "1900-01-01"', "high": 'high = "2006-12-31"'},
}


def from_toml(source: str | PathLike[str]) -> tuple[dict[str, Column], dict[str, Any]]:
    """The columns in a TOML file or text, and the facts of the whole table that it states; see `Schema.from_toml`."""
    text, place = _text(source)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # of any other file, which may hold records, not even the position of the error is told
        why = f": {error}" if place == "the text" or place.endswith(".toml'") else ""
        raise SchemaError(f"{place} is not TOML{why}; a column looks like this:\n{_example()}") from None
    unknown = [name for name in data if name not in _FACTS]
    if unknown:
        raise SchemaError(
            f"{place}: unknown entry {unknown[0]!r}{near_match(unknown[0], _FACTS)}; allowed are {', '.join(_FACTS)}; "
            f"a column looks like this:\n{_example()}"
        )
    tables = data.get("columns")
    if not isinstance(tables, dict) or not tables:
        raise SchemaError(f"{place} has no columns", f"write one table for each column:\n{_example()}")
    for name, table in tables.items():
        _check_entries(name, table)
    holes = [_FACT_HOLES[name] for name in _FACT_HOLES if data.get(name) == UNFILLED]
    holes += [hole for name, table in tables.items() if isinstance(table, dict) for hole in _holes(name, table)]
    if holes:
        raise SchemaError(
            f"{place} has facts left to fill in, from public knowledge and not from the data:\n" + "\n".join(holes)
        )
    facts = {name: data[name] for name in _FACTS[1:] if name in data}
    layout, tables = in_file(layout_from_settings(facts.pop("file", {})), tables)
    columns = {name: column_from_settings(name, table) for name, table in tables.items()}
    return columns, {**facts, "file": layout}


def _text(source: str | PathLike[str]) -> tuple[str, str]:
    """The text of a file or the text itself, and what to call it in messages."""
    if not isinstance(source, (str, PathLike)):
        raise SchemaError(
            f"a schema is read from the path of a TOML file or from its text, got {type(source).__name__}",
            'write cf.Schema.from_toml("schema.toml")',
        )
    if isinstance(source, str) and ("\n" in source or "=" in source) and not source.endswith(".toml"):
        return source, "the text"
    path = Path(fspath(source))
    try:
        return path.read_text(encoding="utf-8-sig"), f"{str(path)!r}"
    except UnicodeDecodeError:
        raise SchemaError(f"the schema file {str(path)!r} is not UTF-8 text", "save it as UTF-8") from None
    except (OSError, ValueError):
        raise SchemaError(
            f"there is no readable schema file {str(path)!r}", "make one with cf.Schema.draft(data)"
        ) from None


def _example() -> str:
    return '[columns.age]\nkind = "numeric"\nlow = 0.0\nhigh = 100.0'


def _check_entries(name: str, table: Any) -> None:
    """Refuse a key that the kind of column does not have, before a missing key is reported: it may be misspelled.

    One of another kind that was left to fill in is told with the facts that are missing.
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if not isinstance(kind, str) or kind not in _ENTRIES:
        return
    allowed = ("kind", *_ENTRIES[kind])
    for entry, given in table.items():
        if entry not in allowed and not (_unfilled(given) and any(entry in own for own in _ENTRIES.values())):
            raise SchemaError(
                f"column {name!r}: unknown key {entry!r}{near_match(str(entry), allowed)}: a {kind} column has no entry "
                f"{entry!r}; allowed are {', '.join(allowed)}; correct [columns.{key(name)}]"
            )


def _holes(name: str, table: Mapping[str, Any]) -> list[str]:
    """One line for each fact of a column that is missing or unfilled: which it is, and what to write."""
    kind = table.get("kind")
    if kind == UNFILLED:
        return [
            f'  [columns.{key(name)}] lacks kind: write kind = "numeric", kind = "integer" or kind = "date" with low and high, '
            'or kind = "categorical" with levels'
        ]
    if not isinstance(kind, str) or kind not in _LINES:
        return []
    # a numeric column may be left without bounds: a release then finds its range
    absent = None if kind == "numeric" else UNFILLED
    missing = [entry for entry in _LINES[kind] if _unfilled(table.get(entry, absent))]
    holes = [
        f"  [columns.{key(name)}] lacks {entry}: write a line such as   {_LINES[kind][entry]}" for entry in missing
    ]
    where = table.get("provenance")
    if isinstance(where, Mapping) and where.get("kind") == UNFILLED:
        holes.append(
            f"  [columns.{key(name)}] has levels that the file states: are they the codebook's? Then write   "
            'provenance = { kind = "public", text = "codebook" }'
        )
    left = [entry for entry, given in table.items() if entry not in ("kind", *_ENTRIES[kind]) and _unfilled(given)]
    if left:
        lines = " and ".join(f"{entry} = {value(table[entry])}" for entry in left)
        holes.append(f"  [columns.{key(name)}] is {kind}, which has no {' and no '.join(left)}: delete   {lines}")
    return holes


def _unfilled(given: Any) -> bool:
    return given in (UNFILLED, [UNFILLED], (UNFILLED,)) if isinstance(given, (str, list, tuple)) else False


def column_from_settings(name: str, table: Any) -> Column:
    """A column from the entries of its TOML table (kind, low, high, ...); `SchemaError` in the column's name.

    >>> column_from_settings("age", {"kind": "integer", "low": 0, "high": 99}).steps
    100
    """
    kind = table.get("kind") if isinstance(table, Mapping) else None
    if not isinstance(kind, str) or kind not in _ENTRIES:
        raise SchemaError(
            f"column {name!r}: the kind must be one of {', '.join(_ENTRIES)}, got {kind!r}",
            f'write kind = "numeric" in [columns.{key(name)}]',
        )
    _check_entries(name, table)
    holes = _holes(name, table)
    if holes:
        raise SchemaError(f"column {name!r} has facts left to fill in, from public knowledge:\n" + "\n".join(holes))
    settings = {entry: given for entry, given in table.items() if entry not in ("kind", "provenance")}
    try:
        where = table.get("provenance", PUBLIC)
        settings["provenance"] = where if isinstance(where, Provenance) else Provenance.from_dict(where)
        if kind == "categorical":
            return Categorical(settings.pop("levels"), **settings)
        if kind == "date":
            return Date(**settings)
        return Integer(**settings) if kind == "integer" else Numeric(**settings)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {_as_lines(str(error), name)}") from None


def _as_lines(message: str, name: str) -> str:
    """The message with the lines to write in the file, where it has the call of a column.

    >>> _as_lines("low must be below high; write Numeric(0, 5)", "age")
    'low must be below high; write in [columns.age] the lines low = 0 and high = 5'
    """
    place = f"write in [columns.{key(name)}] the lines"
    message = re.sub(
        r"write (?:cf\.)?(?:Numeric|Integer|Date)\(([^,()]+), ([^,()]+?)(?:, (steps) ?= ?(\w+))?\)",
        lambda call: f"{place} low = {call[1]} and high = {call[2]}" + (f" and steps = {call[4]}" if call[3] else ""),
        message,
    )
    message = re.sub(
        r"write (?:cf\.)?(?:Numeric|Integer)\([^()]*typical=\(([^,()]+), ([^,()]+)\)\)",
        rf"{place.removesuffix('lines')}line typical = {{ low = \1, high = \2 }}".replace("\\[", "["),
        message,
    )
    message = re.sub(
        r"write (?:cf\.)?Categorical\((\[[^\]]*\])\)", rf"{place.replace(chr(92), '')} levels = \1", message
    )
    return message.replace('write on_missing="drop"', f'{place} on_missing = "drop"')


def to_toml(
    columns: Mapping[str, Column],
    *,
    rows_per_unit: int,
    unit: Unit | str,
    dataset: str | None,
    cluster: Clusters | None = None,
    design: SurveyDesign | None = None,
    file: FileLayout = PLAIN,
    derive: Mapping[str, Any] | None = None,
) -> str:
    """The text of a TOML file that `from_toml` reads back to the bit."""
    facts: dict[str, Any] = {} if dataset is None else {"dataset": dataset}
    if isinstance(unit, Unit):
        facts["unit"] = {name: fact for name, fact in unit.to_dict().items() if fact is not None}
    else:
        facts |= {"rows_per_unit": rows_per_unit, "unit": unit}
    if cluster is not None:
        own = {
            "column": cluster.column,
            "size": cluster.size,
            "icc": cluster.icc,
            "count": cluster.count,
            "largest": cluster.largest,
        }
        facts["cluster"] = {name: fact for name, fact in own.items() if fact is not None}
    layout = file.to_settings()
    named = layout.pop("names", {})
    if others := {name: own for name, own in named.items() if name not in columns}:
        layout["names"] = others
    tables = {"design": {} if design is None else design.to_settings(), "file": layout}
    for name, column in columns.items():
        tables[f"columns.{key(name)}"] = _settings(column) | ({"in_file": named[name]} if name in named else {})
    return text_of(facts, tables | {"derive": derive or {}})


def text_of(facts: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of a file: its facts, then each table that has entries.

    >>> text_of({"unit": "record"}, {"file": {}, "columns.x": {"kind": "numeric"}})
    'unit = "record"\\n\\n[columns.x]\\nkind = "numeric"\\n'
    """
    lines = [f"{key(name)} = {value(fact)}" for name, fact in facts.items()]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *(f"{key(entry)} = {value(given)}" for entry, given in table.items())]
    return "\n".join(lines) + "\n"


def _settings(column: Column) -> dict[str, Any]:
    """The entries of a column's table."""
    facts: dict[str, Any] = {"kind": column.kind}
    if isinstance(column, Categorical):
        facts["levels"] = list(column.levels)
        facts |= {} if column.codes is None else {"codes": list(column.codes)}
    elif isinstance(column, Date):
        facts |= _date_facts(column)
    elif isinstance(column, Integer):
        facts |= {"low": int(column.low), "high": int(column.high)}
    else:
        bounds = zip(("low", "high"), (column.low, column.high), column.declared, strict=True)
        facts |= {**{name: bound for name, bound, declared in bounds if declared}, "steps": column.steps}
    rule = column.on_missing
    if isinstance(column, Date) and not isinstance(rule, str):
        rule = column.said(rule)
    facts |= {"on_missing": rule}
    facts |= {} if column.missing is None else {"missing": codes_to_settings(column.missing)}
    facts |= {"provenance": column.provenance.to_dict()}
    if isinstance(column, Categorical):
        if column.shares is not None:
            facts["typical"] = {"shares": list(column.shares.each), "provenance": column.shares.provenance.to_dict()}
    elif column.spread is not None:
        spread = column.spread
        own = {} if spread.own is None else {"own": spread.own}
        ends: dict[str, Any] = {"low": spread.low, "high": spread.high}
        if isinstance(column, Date):
            ends = {name: column.said(end) for name, end in ends.items()}
        facts["typical"] = {**ends, **own, "provenance": spread.provenance.to_dict()}
    return facts


def _date_facts(column: Date) -> dict[str, Any]:
    formats = column.format and (column.format[0] if len(column.format) == 1 else list(column.format))
    facts = {"format": formats, "century": column.century, "epoch": column.epoch}
    given = {name: fact for name, fact in facts.items() if fact is not None}
    return {"low": column.said(column.low), "high": column.said(column.high), **given}


def key(name: str) -> str:
    """A TOML key: bare when its characters allow it, else quoted.

    >>> key("age_2"), key("odd name")
    ('age_2', '"odd name"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def value(given: Any) -> str:
    """A TOML value for text, a number, a list or a table of them; a float reads back to the same bits.

    >>> value(1e22), value(["a", 'b"']), value({"kind": "public"})
    ('1e+22', '["a", "b\\\\""]', '{ kind = "public" }')
    """
    if isinstance(given, str):
        return _quoted(given)
    if isinstance(given, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {value(entry)}" for name, entry in given.items()) + " }"
    if isinstance(given, list):
        return "[" + ", ".join(value(entry) for entry in given) + "]"
    return repr(given)


def definition(text: str) -> Any:
    """The inverse of `value`; `ValueError` for what is not a value of TOML.

    >>> definition('{ log = "income", at_least = 100 }')
    {'log': 'income', 'at_least': 100}
    """
    return tomllib.loads(f"given = {text}")["given"]


def _quoted(text: str) -> str:
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}

    def escaped(character: str) -> str:
        if character in short:
            return short[character]
        # TOML forbids the other control characters and, in files, lone surrogates have no UTF-8 form
        if ord(character) < 0x20 or ord(character) == 0x7F:
            return f"\\u{ord(character):04X}"
        return character

    return '"' + "".join(map(escaped, text)) + '"'


def column_from_dict(data: Any) -> Column:
    """The column that a dictionary of `to_dict` describes; `SchemaError` for an unknown kind or a missing entry.

    >>> column_from_dict(Integer(0, 3).to_dict()).steps
    4
    """
    kinds: dict[str, type[Numeric] | type[Integer] | type[Categorical]] = {
        "numeric": Numeric,
        "integer": Integer,
        "categorical": Categorical,
        "date": Date,
    }
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise SchemaError(
            f"the kind of a column must be one of {', '.join(kinds)}, got {kind!r}", "write the file with to_dict()"
        )
    try:
        return kinds[kind].from_dict(data)
    except KeyError as error:
        raise SchemaError(
            f"the description of a {kind} column lacks the entry {error}", "write it again with to_dict()"
        ) from None
