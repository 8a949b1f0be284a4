"""What was read of the records, counted for the data steward before anything is charged: `confide.preflight`.

The counts are exact and come from records: they are for the eyes of anyone who may see the records, and belong in no release, plan, message
or log. Nothing on the way to a release calls this module, and a contract of imports keeps it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from threading import Lock
from typing import Any, NoReturn

from confide._helpers import clean
from confide.errors import SourceError, hanging
from confide.schema import Categorical, Schema
from confide.schema.missing import code_text
from confide.sources.aggregation import named_rows
from confide.sources.cell_counts import Asked, CellCounts, Look, RowCounts
from confide.sources.coder import columns_behind
from confide.sources.grouping.ids import is_id
from confide.sources.shapes import hints_of
from confide.sources.source import RecordSource, check_id

#: The words above every pane; tests look for them in files and logs.
HEAD = "Preflight: for the data steward's eyes only, exact, not private. Do not publish, keep or mail these lines."
_END = (
    "For finding a file that is read wrongly. Bounds are not to be moved because of these counts: that would be reading them from "
    "the data."
)
# Shapes of a column that are told.
_TOLD = 5
# Rows that a schema can tell apart, from which on equal rows are remarkable.
_MANY = 1 << 30


@dataclass(frozen=True, repr=False)
class ColumnCheck:
    """Exact counts of one column. PRIVATE.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : str
        Its kind.
    empty : int
        Cells that hold nothing.
    missing : mapping of str to int
        Cells with a declared missing code, by code.
    unread : int
        Cells that hold something and are read as missing; of a categorical column undeclared labels.
    shapes : mapping of str to int
        Shapes of unread cells, most frequent first, at most five.
    undecoded : int
        Unread cells with a character that the file's encoding does not have.
    below, above : int
        Values beyond the bounds, after missing codes.
    values : int
        Cells that have a value.
    single : bool
        Whether all of several values are one.
    sums : bool
        Whether the largest value by far is in a row that is half empty, as sums
        at the end of a table are.
    hints : tuple of str
        What unread cells look like, and what to write in the schema.
    """

    name: str
    kind: str
    empty: int
    missing: Mapping[str, int]
    unread: int
    shapes: Mapping[str, int]
    undecoded: int
    below: int
    above: int
    values: int
    single: bool
    sums: bool
    hints: tuple[str, ...]
    rule: str | float

    def __repr__(self) -> str:
        return f"ColumnCheck({self.name!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(_KEPT)

    @property
    def odd(self) -> bool:
        """Whether anything but empty cells and declared codes was found."""
        return bool(self.unread or self.below or self.above or self.single or self.sums or not self.values)

    def lines(self, records: int) -> Iterator[str]:
        """What is told of the column; nothing where all its cells are values within the bounds."""
        if self.unread and self.kind == "categorical":
            then = "the records are excluded" if self.rule == "drop" else f"each counts as {clean(str(self.rule))}"
            yield f"undeclared labels: {self.unread:,} of {records:,}; they count as missing ({then})"
        elif self.unread:
            told = ", ".join(f"{clean(shape)} ({times:,})" for shape, times in self.shapes.items())
            yield f"unread: {self.unread:,} of {records:,} hold something and count as missing; shapes {told}"
        if self.undecoded:
            yield f"characters that the file's encoding does not have: in {self.undecoded:,} of {records:,} cells"
        yield from self.hints
        for word, count in (("below low", self.below), ("above high", self.above)):
            if count:
                yield f"{word}: {count:,} of {records:,}; a code of missing values, or another unit?"
        if self.sums:
            yield f"the largest value by far is in a row that is half empty; {_SUMS}"
        if self.missing and any(self.missing.values()):
            yield "declared missing: " + ", ".join(f"{clean(code)} ({n:,})" for code, n in self.missing.items() if n)
        if self.empty:
            yield f"empty: {self.empty:,} of {records:,}"
        if not self.values:
            yield "no value at all"
        elif self.single:
            yield "one value alone, in all cells that have one"


_SUMS = 'a line of sums? not_records = ["Total"] in [file], or the word that it begins with'
_KEPT = "a preflight holds exact counts of records and is not kept: show it with print(...), and let it go"


@dataclass(frozen=True, repr=False)
class Preflight:
    """Exact counts of what was read of the records. PRIVATE.

    Made by `confide.preflight`. `str()` is what the steward reads; a notebook that prints it keeps it, so clear its
    output. `repr` has no number. It cannot be pickled, and no method writes it to a file.

    Attributes
    ----------
    columns : mapping of str to ColumnCheck
        Counts of each column.
    records : int
        Number of records.
    other_width : int
        Lines of text files that have another number of fields than the header, or a quote that does not close. They are
        records without any value.
    not_records : int
        Lines that `not_records` of the schema's `[file]` excludes.
    no_id : mapping of str to int
        Rows without a usable id, by id column.
    repeated_ids : int or None
        IDs with several rows, where each should have one. None where not counted.
    equal_rows : int or None
        Rows that are equal to an earlier one in all columns that are looked at. None where not counted.
    without_any : int
        Records that every question on these columns would drop.
    not_drawn : mapping of str to int
        Listed PSUs and strata without a row.
    """

    columns: Mapping[str, ColumnCheck]
    records: int
    other_width: int = 0
    not_records: int = 0
    no_id: Mapping[str, int] = field(default_factory=dict)
    one_id: str | None = None
    repeated_ids: int | None = None
    equal_rows: int | None = None
    without_any: int = 0
    not_drawn: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Preflight(columns={tuple(self.columns)!r}; print(...) shows the counts, which are private)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(_KEPT)

    @property
    def odd(self) -> bool:
        """Whether anything was found that a steward should look at, before a release is charged.

        Empty cells, declared codes and lines that are declared to be no records are not odd. Equal rows are where half of
        all rows are there already, as in a file that is there twice.
        """
        rows = (self.other_width, self.repeated_ids, *self.no_id.values(), *self.not_drawn.values())
        return not self.records or any(rows) or self._copied or any(one.odd for one in self.columns.values())

    @property
    def _copied(self) -> bool:
        return 2 * (self.equal_rows or 0) >= self.records > 1

    def fails(self, tolerate: float = 0.01) -> bool:
        """Whether a column has no value, a row another width, or a column more unread cells than this share. PRIVATE."""
        unread = any(one.unread > tolerate * self.records for one in self.columns.values())
        return bool(self.other_width) or unread or not all(one.values for one in self.columns.values())

    def __str__(self) -> str:
        told = {name: list(one.lines(self.records)) for name, one in self.columns.items()}
        plain = [clean(name) for name, lines in told.items() if not lines]
        lines = hanging("", HEAD)
        rows = [("records", [f"{self.records:,}", *self._of_rows()])]
        own = [(clean(name), lines) for name, lines in told.items() if lines]
        width = min(max(len(name) for name, _ in (*rows, *own)), 20)
        for name, found in (*rows, *own):
            label = f"  {name:<{width}}  "
            for text in found:
                # a long name has a line of its own
                lines += [label.rstrip()] if len(label) > width + 4 else []
                label = " " * (width + 4) if len(label) > width + 4 else label
                lines += hanging(label, text)
                label = " " * (width + 4)
        if plain:
            lines += hanging("  ", f"Nothing to tell of {', '.join(plain)}.")
        return "\n".join([*lines, *hanging("", _END)])

    def _of_rows(self) -> Iterator[str]:
        if self.other_width:
            most = 2 * self.other_width > self.records
            title = "a title above the header (skip = 1 in [file], or --skip 1), or " if most else ""
            yield (
                f"rows of another width than the header: {self.other_width:,}; they are records without any value. "
                f"Is there {title}another delimiter or quote?"
            )
        if self.not_records:
            yield f"rows that not_records names: {self.not_records:,}, no records"
        for name, count in self.no_id.items():
            if count:
                yield f"rows without a usable id in {clean(name)}: {count:,}"
        if self.repeated_ids:
            yield (
                f"ids in {clean(str(self.one_id))} with several rows: {self.repeated_ids:,}; if an id is a person, write "
                f'unit = {{ column = "{clean(str(self.one_id))}" }} in the schema'
            )
        if self.equal_rows:
            said = f"rows equal to an earlier one in the columns looked at: {self.equal_rows:,}"
            yield f"{said}; is a file there twice?" if self._copied else said
        for what, count in self.not_drawn.items():
            if count:
                yield f"{what} without a row: {count:,}"
        if self.without_any:
            yield f"records that every question on these columns drops: {self.without_any:,}"


def preflight(source: Any, columns: str | Sequence[str] | None = None, *, ids: str | None = None) -> Preflight:
    """Count, for the data steward alone, how the records are read.

    One pass over the records, by the readers that a release uses. The counts are
    exact and not private: do not publish, keep or mail them. They are for finding
    a file that is read wrongly, such as one with decimal commas. Bounds are not to
    be moved because of them, because that would be reading bounds from the data.

    Parameters
    ----------
    source : RecordSource
        Records behind a schema, from `confide.read`.
    columns : str or sequence of str, optional
        Columns of the schema to look at, such as those of a plan. Left out: all.
    ids : str, optional
        Column of ids that should have one row each. Left out: a column "id" of
        the data, where the schema's unit is "record".

    Returns
    -------
    Preflight
        The counts. ``print(...)`` shows them, and its `repr` has no number,
        because a notebook saves what it displays.

    Raises
    ------
    SchemaError
        The schema has no such column.
    SourceError
        The records cannot be read, or workers of an executor read them.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 9_000, missing=[-99])})
    >>> found = cf.preflight(cf.read({"income": ["1.742,81", "950", "-99", ""]}, schema))
    >>> found
    Preflight(columns=('income',); print(...) shows the counts, which are private)
    >>> dict(found.columns["income"].shapes), found.columns["income"].hints
    ({'9.9,9': 1}, ('decimal = "," and thousands = "." in [file]?',))
    """
    if not isinstance(source, RecordSource):
        raise SourceError(
            f"preflight looks at records that cf.read opened, got {type(source).__name__}",
            "write cf.preflight(cf.read(data, schema))",
        )
    if not is_read_here(source):
        raise SourceError(
            "preflight reads the records in this process, and workers of an executor read these",
            "write cf.preflight(cf.read(data, schema)), without executor=, where this process can read them",
        )
    schema = source.schema
    names = schema.names if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    names = tuple(dict.fromkeys(names))
    for name in names:
        schema[name]  # raises
    names = schema.behind(names)
    asked = _asked(source, names, ids)
    width = _Lines()
    look = Look([part.watched(width.add) for part in source._parts], schema, asked)
    with source.opened():
        for part in source._parts:
            for name in asked.ids:
                check_id(part, name, (*schema.names, *asked.ids))
        source._pass(look, ())
    rows, cells = look.counts()
    return _found(schema, asked, look, rows, cells, width)


def is_read_here(source: RecordSource) -> bool:
    """Whether this process reads the records, and no workers of an executor."""
    return source._executor is None


def planned_columns(source: RecordSource, statistics: Iterable[Any]) -> tuple[str, ...]:
    """The columns that these statistics read; of a plan that names none, all that the data have."""
    # rows of units and clusters have names that no column has
    rows = [row for row in named_rows(tuple(statistics)) if not row.startswith("`")]
    lacking = source.lacks(source.schema.names)
    return columns_behind(rows, source.schema) or tuple(name for name in source.schema.in_data if name not in lacking)


class _Lines:
    """Lines of text files that are records without any value, and those that do not count as records."""

    def __init__(self) -> None:
        self.other_width = self.not_records = 0
        self._lock = Lock()

    def add(self, other_width: int, not_records: int) -> None:
        with self._lock:
            self.other_width += other_width
            self.not_records += not_records


def _asked(source: RecordSource, names: tuple[str, ...], ids: str | None) -> Asked:
    schema = source.schema
    one = ids if ids is not None else _own_id(source)
    design = schema.design
    listed = None if design is None else design.listed
    strata = design.strata if design is not None and design.strata in names else None
    whole = design is not None and design.strata in (None, *names)
    psu = design.psu if design is not None and listed is not None and whole and design.psu in names else None
    rows = prod(schema[name].steps for name in names)
    every = tuple(dict.fromkeys([*schema.ids, *([] if one is None else [one])]))
    # several rows of one unit may be alike where columns tell few rows apart
    return Asked(names, every, one, (strata, psu), equals=rows >= _MANY or one is not None)


def _own_id(source: RecordSource) -> str | None:
    """The column "id" of the data, which a schema of records does not name."""
    if source.schema.unit != "record" or "id" in source.schema:
        return None
    return "id" if source._parts and all(_has_ids(part) for part in source._parts) else None


def _has_ids(part: Any) -> bool:
    try:
        return part.names.count("id") == 1 and is_id(part.kind("id"))
    except KeyError:  # a table in memory keeps the columns that the schema knows
        return False


def _found(
    schema: Schema, asked: Asked, look: Look, rows: RowCounts, cells: Mapping[str, CellCounts], width: _Lines
) -> Preflight:
    ids = look.ids.again if asked.one is not None else None
    equal = look.equal.again if asked.equals else None
    return Preflight(
        columns={name: _checked(name, schema, own) for name, own in cells.items()},
        records=rows.records,
        other_width=width.other_width,
        not_records=width.not_records,
        no_id={name: rows.no_id[name] for name in asked.ids},
        one_id=asked.one,
        repeated_ids=None if ids is None else ids[1],
        equal_rows=None if equal is None else equal[0],
        without_any=rows.without_any,
        not_drawn=_not_drawn(schema, asked, rows.pairs),
    )


def _checked(name: str, schema: Schema, own: CellCounts) -> ColumnCheck:
    column = schema[name]
    codes = column.missing or ()
    shapes = dict(sorted(own.shapes.items(), key=lambda item: (-item[1], item[0]))[:_TOLD])
    hints = list(hints_of(tuple(shapes), schema.file.marks, column.kind))
    if own.undecoded:
        known = 'encoding = "cp1252"' if schema.file.encoding.lower().startswith("utf") else "another encoding"
        hints.insert(0, f"{known} in [file]?")
    if own.unread == 1 and tuple(shapes) in (("a",), ("a:",)):
        hints.insert(0, _SUMS)
    return ColumnCheck(
        name=name,
        kind=column.kind,
        empty=own.empty,
        missing={code_text(codes[at]): own.codes[at] for at in sorted(own.codes)},
        unread=own.unread,
        shapes=shapes,
        undecoded=own.undecoded,
        below=own.below,
        above=own.above,
        values=own.values,
        single=own.values > 1 and own.least == own.most,
        sums=own.tops[0] > 2 * own.tops[1] > 0,
        hints=tuple(hints),
        rule=column.on_missing,
    )


def _not_drawn(schema: Schema, asked: Asked, pairs: set[tuple[int, int]]) -> dict[str, int]:
    """Listed strata and PSUs without a row. pairs: positions of a stratum and a PSU that have one."""
    strata, psu = asked.drawn
    found = {}
    if strata is not None:
        found["strata"] = schema[strata].steps - len({stratum for stratum, _ in pairs})
    if psu is not None and schema.design is not None and schema.design.listed is not None:
        levels = _places(schema, psu)
        groups = {} if strata is None else _places(schema, strata)
        listed = {(groups.get(stratum, 0), levels[name]) for stratum, names in schema.design.listed for name in names}
        found["listed PSUs"] = len(listed - pairs)
    return found


def _places(schema: Schema, name: str) -> dict[str, int]:
    column = schema[name]
    assert isinstance(column, Categorical)
    return {level: at for at, level in enumerate(column.levels)}
