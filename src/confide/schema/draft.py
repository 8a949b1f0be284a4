"""A first schema from metadata alone: names and types of columns, with the bounds left to fill in.

Nothing here looks at a value. In particular the statistics in a Parquet file (smallest and largest value of each row
group) and the categories of a pandas or Arrow dictionary column come from the records. Bounds or levels made from
them would not be private.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from confide._helpers import later
from confide.errors import SchemaError
from confide.schema.layout import FORMATS, FileLayout
from confide.schema.missing import MissingCode, codes_to_settings
from confide.schema.toml import UNFILLED, key, value

if TYPE_CHECKING:
    import pyarrow as pa


csv = later("csv")
_sources = later("confide.sources.reading")
gzip = later("gzip")

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

# No header line is longer; a longer first line is not a header.
_LONGEST = 1 << 20


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
    head.append(f'kind = "{shown}"  # {note}')
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
    if kind in ("sheet", "statistics"):
        # readers of such files are among the sources, which stand above
        return _sources.fields_at(path, layout), layout
    if kind == "parquet":
        return _table_fields(_parquet_schema(path)), layout
    if kind == "text":
        names, layout = _header(path, layout)
        note = '"numeric", "integer" or "categorical": a CSV file has no types'
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


def _header(path: Path, layout: FileLayout) -> tuple[list[str], FileLayout]:
    """The fields of the header line, and the layout with the delimiter that they seem to have."""
    try:
        zipped = path.name.lower().endswith(".gz")
        encoding = "utf-8-sig" if layout.encoding == "utf-8" else layout.encoding
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            lines = io.TextIOWrapper(cast("IO[bytes]", file), encoding, "replace", newline="\n")
            for _ in range(layout.skip):
                lines.readline(_LONGEST)
            line = lines.readline(_LONGEST)
        fields = [] if "\ufffd" in line else _cells(line, layout, path.name)
        if layout.delimiter is None and (other := other_delimiter(fields)) is not None:
            layout = layout.with_entries({"delimiter": other})
            fields = _cells(line, layout, path.name)
    except (OSError, EOFError, ValueError, csv.Error):
        fields = []
    if not fields:
        raise SchemaError(
            f"{str(path)!r} has no readable header line; its first line must name the columns",
            'if it is not UTF-8, write encoding = "cp1252" in [file], on the command line --encoding cp1252',
        )
    if 2 * sum(not name.strip() for name in fields) > len(fields):
        raise SchemaError(
            f"most columns have no name in the first line of {str(path)!r}, which may be a title above the header",
            f"write skip = {layout.skip + 1} in [file], on the command line --skip {layout.skip + 1}",
        )
    if may_be_a_record(fields):
        raise SchemaError(
            f"the first line of {str(path)!r} holds numbers, so it may be a record and is not shown; "
            "a CSV file begins with a line that names its columns"
        )
    if (other := other_delimiter(fields)) is not None:
        raise SchemaError(
            f"the first line of {str(path)!r} is one field with {other!r} in it; if that separates the columns, write "
            f"Schema.draft(path, delimiter={other!r})"
        )
    return fields, layout


def _cells(line: str, layout: FileLayout, name: str) -> list[str]:
    quoting = {"quotechar": layout.quote} if layout.quote else {"quoting": csv.QUOTE_NONE}
    read = csv.reader(io.StringIO(line), delimiter=layout.separator(name), strict=True, **quoting)
    return [str(cell) for cell in next(read, [])]


def other_delimiter(fields: Sequence[str]) -> str | None:
    """What seems to separate the names of a header line that came out as one field; None when nothing does.

    >>> other_delimiter(["age;region"]), other_delimiter(["age", "region"])
    (';', None)
    """
    return next((mark for mark in (";", "\t") if len(fields) == 1 and mark in fields[0]), None)


def may_be_a_record(names: Sequence[str]) -> bool:
    """Whether the first line of a file without types may be a record, which no message and no draft may show.

    >>> may_be_a_record(["age", "region"]), may_be_a_record(["31", "N"])
    (False, True)
    """
    return any(_is_number(name) for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
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
