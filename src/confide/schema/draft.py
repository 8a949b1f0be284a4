"""A first schema from metadata alone: names and types of columns, with the bounds left to fill in.

Nothing here looks at a value. Of a file without types the first lines are counted: how many cells they have tells a header from a title
above it. In particular the statistics in a Parquet file (smallest and largest value of each row
group) and the categories of a pandas or Arrow dictionary column come from the records. Bounds or levels made from
them would not be private.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from confide._helpers import later
from confide.errors import SchemaError, SourceError
from confide.schema.layout import FORMATS, FileLayout
from confide.schema.missing import MissingCode, codes_to_settings
from confide.schema.toml import UNFILLED, key, value

if TYPE_CHECKING:
    import pyarrow as pa


# readers of files are among the sources, which stand above
_sources = later("confide.sources.reading")

_HEAD = f"""\
# A draft made from names and types alone. Replace every "{UNFILLED}" by a public fact:
# an answer scale, a legal limit, a law of nature. Bounds or levels that are
# looked up in the data are not private: they would tell something about single
# records. A column that no formula will name, such as an identifier, may be
# deleted here.
# Bounds: where they are public, write them. A numeric column can do without in
# means, totals and regressions: a release finds the range that holds nearly all
# values, for a tenth of its cost. Medians, rank tests and conditions need
# bounds, and so does each column of kind "integer".
# Values outside them count as the nearest one; labels that are not levels will
# count as missing. on_missing says what happens to a missing value: "drop" (the
# record), a constant, "midpoint", or a level.
# A column of numbers may also say where about 95 % of its values lie, and one
# of labels about which share of the records has each level. This makes the
# forecasts of a plan sharper and touches no record: typical = [5000, 90000], or
# typical = {{ north = 0.7, south = 0.3 }}

# What stands for "no answer", in all columns or in the table of one:
# missing = [-99, "k.A."]
# How the file is written, if it is not UTF-8 with commas and decimal points:
# [file] with delimiter = ";", decimal = ",", thousands = ".",
# encoding = "cp1252", skip = 1 (lines above the header) and
# not_records = ["Summe"] (what a line of sums begins with)

# the name under which a ledger charges these records, the same in every schema
# of them
dataset = "{UNFILLED}"
# who is protected: unit = "record" if each row is another person's. If a person
# or household has several rows, name its id column:
# unit = {{ column = "person_id" }}
# All rows of one id then count as one row, which is enforced. The id column
# needs no table below; delete it there.
unit = "{UNFILLED}"
# A sample with weights, strata or clusters says so in a table at the end, and
# means, totals and lines are those of the population: [design] with
# weight = "w" (a numeric column below), strata = "region" (a categorical one),
# psu = "village" (categorical too, with the public lists
# psus = {{ north = ["n1", "n2"], south = ["s1", "s2"] }}; or an id column,
# without a table below) and size = 12, the persons in a PSU
"""

_FOUND = """\
# low = 0     # bounds from public knowledge cost nothing; without them, means
# high = 100  # and regressions find the range of a numeric column"""

# A number or a date as records have them, with or without groups of digits.
_VALUE = re.compile(
    r"[+\u2212-]?\d[\d.,' \u00a0\u202f\u2009\u2019]*|\d{1,4}([-./])\d{1,2}\1\d{1,4}(?:[T ][\d:.]+)?|\d{1,2}(?::\d{2})+|true|false",
    re.IGNORECASE,
)


class Field(NamedTuple):
    """A column, from metadata: its kind ("" when it cannot be used, "?" when it is not known) and a note.

    label: of the variable; labels: of its codes; missing: its codes of missing values. Files of statistics packages have them.
    """

    name: str
    kind: str
    note: str
    label: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    missing: Sequence[MissingCode] = ()


def draft(data: Any, *, layout: FileLayout | None = None) -> str:
    """A TOML text from a path, a DataFrame, a pyarrow Table or schema, or a mapping of names to arrays; see `Schema.draft`."""
    layout = FileLayout() if layout is None else layout
    tables: list[str] = []
    seen: set[str] = set()
    found, layout = fields_of(data, layout)
    for own in found:
        name, kind, note = own[:3]
        if not name.strip() or "`" in name or name in seen:
            tables.append(f"# left out: a column whose name is blank, has a backtick or occurs twice ({value(name)})\n")
        elif kind == "":
            tables.append(f"# left out: {key(name)} ({note}): only numbers, booleans, text and dates can be used\n")
        else:
            seen.add(name)
            tables.append(_table(own))
    if not seen:
        raise SchemaError(
            "no column with numbers, booleans, text or dates was found in the metadata, so there is nothing to draft",
            'write the schema by hand, as in cf.Schema({"age": cf.Numeric(0, 100)})',
        )
    entries = [f"{name} = {value(entry)}" for name, entry in layout.to_settings().items()]
    file = ["# how the file is laid out", "[file]", *entries, ""] if entries else []
    return "\n".join([_HEAD, *file, *tables])


def _table(own: Field) -> str:
    name, kind, note = own[:3]
    lines = {
        "numeric": [_FOUND],
        "integer": [_FOUND],
        "categorical": [f'levels = ["{UNFILLED}"]  # the first one is the base'],
        "boolean": ["low = 0", "high = 1"],
        "date": [
            f'low = "{UNFILLED}"   # the first day that the bounds allow, such as "1900-01-01"',
            f'high = "{UNFILLED}"  # the last',
        ],
        UNFILLED: [_FOUND, f'# levels = ["{UNFILLED}"]  # of a categorical column; the first one is the base'],
    }[kind]
    # whole numbers too: a column of kind integer has a grid point for each, and needs low and high
    shown = {"boolean": "integer", "integer": "numeric"}.get(kind, kind)
    provenance = f'provenance = {{ kind = "public", text = "{"type of the column" if kind == "boolean" else ""}" }}'
    head = [f"[columns.{key(name)}]", *([f"# {_one_line(own.label)}"] if own.label else [])]
    head.append(f'kind = "{shown}"  # {_one_line(note)}')
    labels = {code: text for code, text in own.labels.items() if code not in own.missing}
    if kind == "categorical" and len(labels) > 1:
        # of most files they are the codebook's, but some programs make them from the records
        lines = [f"levels = {value(list(labels.values()))}", f"codes = {value(list(labels))}"]
        provenance = f'provenance = {{ kind = "{UNFILLED}", text = "value labels of the file" }}'
    missing = [f"missing = {value(codes_to_settings(own.missing))}"] if own.missing else []
    return "\n".join([*head, *lines, *missing, 'on_missing = "drop"', provenance, ""])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def fields_of(data: Any, layout: FileLayout) -> tuple[list[Field], FileLayout]:
    """The columns of a file or a table, from metadata, and the layout in which they were found."""
    if isinstance(data, (str, PathLike)):
        return _file_fields(Path(data), layout)
    return _table_fields(data), layout


def _table_fields(data: Any) -> list[Field]:
    import pyarrow as pa

    if isinstance(own := getattr(data, "fields", None), tuple) and own:  # a table of a database, from its catalogue
        return [Field(*one) for one in own]
    if isinstance(data, pa.Schema):
        return [Field(field.name, *_arrow_kind(field.type)) for field in data]
    if isinstance(getattr(data, "schema", None), pa.Schema):
        return _table_fields(data.schema)
    types = (
        getattr(data, "schema", None) if type(data).__module__.startswith("polars") else getattr(data, "dtypes", None)
    )
    if types is not None and hasattr(types, "items"):
        return [Field(str(name), *_named_kind(dtype)) for name, dtype in types.items()]
    if isinstance(data, Mapping) and data and all(hasattr(column, "dtype") for column in data.values()):
        return [Field(str(name), *_named_kind(column.dtype)) for name, column in data.items()]
    raise SchemaError(
        "a draft is made from the path of a .parquet or .csv file, a DataFrame, a pyarrow Table or a mapping of arrays, "
        f"got {type(data).__name__}",
        'write cf.Schema.draft("survey.parquet")',
    )


def _file_fields(path: Path, layout: FileLayout) -> tuple[list[Field], FileLayout]:
    if path.is_dir():
        path = min(path.glob("*.parquet"), default=path)
    if not path.is_file():
        raise SchemaError(
            f"there is no file {str(path)!r}",
            "give the path of a .parquet, .csv or .csv.gz file, or a table of a "
            "database, as in 'survey.sqlite/answers'",
        )
    kind = layout.kind_of(path.name)
    if kind == "statistics":
        return _sources.fields_at(path, layout), layout
    if kind == "parquet":
        return _table_fields(_parquet_schema(path)), layout
    if kind in ("text", "sheet"):
        names, layout = _header(path, layout, kind)
        note = (
            f'"numeric", "integer", "date" or "categorical": a {"CSV file" if kind == "text" else "sheet"} has no types'
        )
        return [Field(name, UNFILLED, note) for name in names], layout
    raise SchemaError(f"{str(path)!r} has no known ending", f"give a file of one of these: {', '.join(FORMATS)}")


def _parquet_schema(path: Path) -> pa.Schema:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError):
        # the reader's own message may quote what it met in the file
        raise SchemaError(f"the metadata of {str(path)!r} could not be read", "give a Parquet file") from None


def _header(path: Path, layout: FileLayout, kind: str) -> tuple[Sequence[str], FileLayout]:
    """The names in the header of a text file or a sheet, and the layout with the delimiter that they seem to have."""
    names, cells = _sources.header_at(path, layout)
    marks = (";", "\t", ",") if kind == "text" and layout.delimiter is None else ()
    if marks and (other := other_delimiter(names)) is not None:
        layout = layout.with_entries({"delimiter": other})
        names, cells = _sources.header_at(path, layout)
    line = f"{'line' if kind == 'text' else 'row'} {layout.skip + 1} of {str(path)!r}"
    # a title may hold another delimiter than the lines below it
    others = () if _is_header(cells) else _other_cells(path, layout, marks)
    above = min(filter(None, map(lines_above, (cells, *others))), default=0)
    if above or 2 * sum(not name.strip() for name in names) > len(names):
        skip = layout.skip + max(above, 1)
        raise SchemaError(
            f"{line} has {'another number of cells than those below it' if above else 'cells without a name'}, so it may be a title above "
            "the header",
            f"write skip = {skip} in [file], on the command line --skip {skip}; if it is the header, name all columns in it"
            + (', or write what separates them, such as delimiter = ";"' if kind == "text" else ""),
        )
    if may_be_a_record(names):
        raise SchemaError(
            f"{line} holds numbers or dates, so it may be a record and is not shown; it must name the columns"
        )
    if kind == "text" and (other := other_delimiter(names)) is not None:
        raise SchemaError(
            f"the first line of {str(path)!r} is one field with {other!r} in it; if that separates the columns, write "
            f"Schema.draft(path, delimiter={other!r})"
        )
    return names, layout


def _other_cells(path: Path, layout: FileLayout, marks: Sequence[str]) -> Iterator[Sequence[int]]:
    """How many cells the first lines have by other delimiters."""
    for mark in marks:
        try:
            yield _sources.header_at(path, layout.with_entries({"delimiter": mark}))[1]
        except SourceError:  # no header by this one
            continue


def lines_above(cells: Sequence[int]) -> int:
    """How many lines may be a title above the header, from the numbers of cells in it and in some lines below.

    >>> lines_above([1, 0, 3, 3]), lines_above([2, 3, 0]), lines_above([3, 3, 2, 2]), lines_above([1, 1])
    (2, 1, 0, 0)
    """
    if _is_header(cells):
        return 0
    for at, (one, other) in enumerate(pairwise(cells)):
        if at and one == other > 1:
            return 0 if one == cells[0] else at
    below = [at for at, held in enumerate(cells) if at and held]  # an empty line has none
    return below[0] if below and all(cells[at] > cells[0] for at in below) else 0


def _is_header(cells: Sequence[int]) -> bool:
    """Whether the next line has as many cells as the first one, and more than one."""
    return cells[0] > 1 and next(filter(None, cells[1:]), cells[0]) == cells[0]


def other_delimiter(fields: Sequence[str]) -> str | None:
    """What seems to separate the names of a header line that came out as one field; None when nothing does.

    >>> other_delimiter(["age;region"]), other_delimiter(["age", "region"])
    (';', None)
    """
    return next((mark for mark in (";", "\t") if len(fields) == 1 and mark in fields[0]), None)


def may_be_a_record(names: Sequence[str]) -> bool:
    """Whether the first line of a file without types may be a record, which no message and no draft may show.

    >>> may_be_a_record(["age", "region"]), may_be_a_record(["31", "N"]), may_be_a_record(["N;1.742", "81;b"])
    (False, True, True)
    """
    # a line that was cut at another mark has several cells in one
    return any(map(_is_value, re.split("[;|\t]", "\t".join(names))))


def _is_value(text: str) -> bool:
    text = text.strip()
    try:
        float(text)
    except ValueError:
        return _VALUE.fullmatch(text) is not None
    return True


def _arrow_kind(dtype: pa.DataType) -> tuple[str, str]:
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(dtype):
        return _arrow_kind(dtype.value_type)
    note = f"{dtype} in the data"
    if t.is_boolean(dtype):
        return "boolean", f"{note}: false is 0, true is 1"
    if t.is_integer(dtype):
        return "integer", f'{note}; or "numeric", or "categorical" with levels = ["1", "2"]'
    if t.is_floating(dtype) or t.is_decimal(dtype):
        return "numeric", note
    if t.is_string(dtype) or t.is_large_string(dtype) or dtype == pa.string_view():
        return "categorical", note
    if t.is_date(dtype) or (t.is_timestamp(dtype) and dtype.tz is None):
        return "date", note
    return "", str(dtype)


def _named_kind(dtype: Any) -> tuple[str, str]:
    """The kind behind a NumPy, pandas or polars dtype, by its name."""
    name = str(dtype)
    low = name.lower()
    note = f"{name.split('(')[0]} in the data"
    if low.startswith("bool"):
        return "boolean", f"{note}: false is 0, true is 1"
    if low.startswith(("int", "uint")):
        return "integer", f'{note}; or "numeric", or "categorical" with levels = ["1", "2"]'
    if low.startswith(("float", "double", "decimal")):
        return "numeric", note
    if low.startswith(("str", "object", "category", "categorical", "enum", "large_string", "<u", ">u")):
        return "categorical", note
    # pandas, Arrow in pandas, polars
    zoned = (low.startswith("datetime64") and "," in low) or "tz=" in low or "time_zone='" in low
    if low.startswith(("date", "timestamp")) and not zoned:
        return "date", note
    return "", name.split("(")[0]
