"""The table of a result, as text in the style of statsmodels and as HTML: one set of cells, two renderings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, isnan, log10
from typing import TYPE_CHECKING, Any

from confide._helpers import clean, later
from confide.results.pages.content import SIMULATED, WITHOUT_NUMBERS, notes

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich import cells as terminal

    from confide.results.pages.content import Column, Shown
else:
    terminal = later("rich.cells")


NARROWEST = 78  # the width of statsmodels' tables
WIDEST = 100
_LEAST = 8  # of the first column, which wraps
DASH = "-"  # where there is no valid number
_FLAG = "flag"  # the head of a column that says what the rows are worth
OPEN = "none"  # an end that an interval does not have

_SCALED = ("estimate", "std_err", "interval")
_LABELS = ("name", "text", "number")


@dataclass(frozen=True)
class View:
    """What is shown of a result: words and cells, ready to print.

    columns: those that are printed, as the family gave them; heads: theirs; rows: a cell for each column; note: of rows that are not
    printed.
    """

    title: str
    simulated: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    @property
    def names(self) -> tuple[str, ...]:
        """What each row is called in running text."""
        heads, k = self.heads, self.labels
        if self.columns[0].kind == "name":
            return tuple(f"{heads[0]} {row[0]}".strip() for row in self.rows)
        return tuple(
            ", ".join(f"{head} = {cell}" for head, cell in zip(heads[:k], row[:k], strict=True)) for row in self.rows
        )

    @property
    def labels(self) -> int:
        """How many columns at the left say what a row is about."""
        kinds = [column.kind for column in self.columns]
        return next((place for place, kind in enumerate(kinds) if kind not in _LABELS), len(kinds))

    def first(self, kind: str) -> int | None:
        """The place of the first column of a kind."""
        return next((place for place, column in enumerate(self.columns) if column.kind == kind), None)

    def said(self, row: int, *, interval: bool = True) -> str:
        """The estimate of a row, with its interval where there is one, in the digits of the table."""
        cells, at, low = self.rows[row], self.first("estimate"), self.first("interval")
        assert at is not None
        if not interval or low is None or cells[low] == DASH:
            return cells[at]
        return f"{cells[at]} [{cells[low]}, {cells[low + 1]}]"


@dataclass(frozen=True)
class Document:
    """A table with its title, and the note without which it must not stand: status, guarantee, what intervals cover, digest.

    labels: how many columns at the left say what a row is about.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    heads: tuple[str, ...]
    note: str
    labels: int = 1


def view(result: Shown, alpha: float, *, every: bool = False) -> View:
    """The words and cells of a result. every: of all rows, and not of those alone that are printed."""
    columns = tuple(column for column in result.columns(alpha) if column.printed)
    count = len(columns[0].values)
    places = range(count) if every or result.shown is None else result.shown
    rows = tuple(_cells(result, columns, place) for place in places)
    heads = tuple(clean(("" if one.kind == "name" else one.name) if one.head is None else one.head) for one in columns)
    return View(
        clean(f"{result.title}; {result.kept}" if result.kept else result.title),
        SIMULATED if result.simulated else "",
        facts(result),
        columns,
        heads,
        rows,
        clean(result.left_out(count, len(rows))) if len(rows) < count else "",
    )


def facts(result: Shown) -> tuple[tuple[str, str], ...]:
    """The head of the table: pairs of a label and its text."""
    own = [("Dep. Variable", result.response), ("Method", result.method), ("Status", result.status)]
    return tuple((clean(label), clean(value)) for label, value in (*own, *result.head(), *result.facts) if value)


# --- cells ------------------------------------------------------------------------------------------------------------


def _cells(result: Shown, columns: Sequence[Column], place: int) -> tuple[str, ...]:
    """One row; a dash where there is no valid number."""
    hidden = result.status in WITHOUT_NUMBERS
    cells: list[str] = []
    for group in _groups(columns):
        values = [column.values[place] for column in group]
        scaled = [float(v) for column, v in zip(group, values, strict=True) if column.kind in _SCALED]
        digits = _digits(scaled, _error(group, values)) if scaled else None
        for column, value in zip(group, values, strict=True):
            if column.kind in ("name", "text"):
                cells.append(clean(str(value)))
            elif hidden and column.kind != "number":
                cells.append(DASH)
            else:
                cells.append(_cell(column.kind, float(value), digits))
    return tuple(cells)


def _groups(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Each estimate with what belongs to it."""
    group: list[Column] = []
    for column in columns:
        if column.kind == "estimate" and group:
            yield group
            group = []
        group.append(column)
    yield group


def _error(group: Sequence[Column], values: Sequence[Any]) -> float:
    """The standard error of an estimate, or a quarter of its interval; NaN where neither is known."""
    kinds = [column.kind for column in group]
    if "std_err" in kinds:
        return float(values[kinds.index("std_err")])
    ends = [float(value) for kind, value in zip(kinds, values, strict=True) if kind == "interval"]
    return (ends[1] - ends[0]) / 4 if len(ends) > 1 and isfinite(ends[1] - ends[0]) else float("nan")


def _cell(kind: str, value: float, digits: int | None) -> str:
    if isnan(value) or (kind == "std_err" and value == inf):
        return DASH
    if kind == "interval" and not isfinite(value):
        return OPEN
    if kind in _SCALED:
        return number(value, digits)
    if kind == "statistic":
        return number(value, 3 if abs(value) < 1e6 else None)
    return {"p": pvalue, "share": "{:.1%}".format, "number": "{:.6g}".format}[kind](value)


def number(value: float, digits: int | None) -> str:
    """A number with that many decimals, or in scientific notation when `digits` is None.

    >>> number(-1.25, 4), number(31_013.4, 0), number(0.000123, None)
    ('-1.2500', '31,013', '1.230e-04')
    """
    return f"{value:.3e}" if digits is None else f"{value:,.{digits}f}"


def _digits(values: Sequence[float], error: float) -> int | None:
    """Decimals for one row: two digits of its standard error, three of the number without one; None for too much room.

    >>> _digits((3.6486, 0.1226), 0.1226), _digits((-581.3, 149.0), 149.0), _digits((1e7, 1.0), 1.0)
    (2, 0, None)
    """
    sizes = [abs(value) for value in values if isfinite(value)]
    if not sizes or not max(sizes):
        return 2
    known = isfinite(error) and error > 0
    decimals = max(0, (1 if known else 2) - floor(log10(error if known else max(sizes))))
    return decimals if decimals <= 8 and max(sizes) < 1e6 else None


def with_interval(value: float, low: float, high: float) -> str:
    """An estimate and its interval for the head of a table, in the digits that the interval allows; a dash for an estimate that is NaN.

    >>> with_interval(17_288.3, 16_861.9, 17_710.4), with_interval(0.1213, 0.1194, 0.1231)
    ('17,290 [16,860, 17,710]', '0.1213 [0.1194, 0.1231]')
    >>> with_interval(float("nan"), 0.0, 0.1231)
    '- [0.0000, 0.1231]'
    """
    size = max((abs(one) for one in (low, high, value) if not isnan(one)), default=0.0)
    decimals = 3 - floor(log10(size)) if isfinite(size) and size > 0 else 0
    plain = 0 <= -decimals < 6 or 0 <= decimals <= 8
    shown = [
        DASH if isnan(one) else f"{round(one, decimals):,.{max(decimals, 0)}f}" if plain else f"{one:.4g}"
        for one in (value, low, high)
    ]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def pvalue(value: float) -> str:
    """A p-value for the table.

    >>> pvalue(0.0123), pvalue(1e-30)
    ('0.012', '<0.001')
    """
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# --- text -------------------------------------------------------------------------------------------------------------


def text(result: Shown, alpha: float) -> str:
    """The table as text: head, rows, notes; between 78 and 100 columns wide."""
    seen = view(result, alpha)
    sizes = [
        max(terminal.cell_len(cells[place]) for cells in (seen.heads, *seen.rows)) + 2
        for place in range(1, len(seen.heads))
    ]
    dropped, flags = "", [""] * len(seen.rows)
    if _LEAST + sum(sizes) > WIDEST:
        seen, dropped, flags = _fitted(seen, sizes)
        sizes = sizes[: len(seen.heads) - 1]
    first = max(terminal.cell_len(row[0]) for row in (seen.heads, *seen.rows))
    names = min(first, WIDEST - sum(sizes))
    width = max(names + sum(sizes), NARROWEST)
    names = width - sum(sizes)
    lines = [_padded(part, width, 0.5) for part in _wrap(seen.title, width)]
    if seen.simulated:
        lines.append(_padded(f"*** {seen.simulated} ***", width, 0.5))
    lines += ["=" * width, *_head(seen.facts, width), "=" * width]
    lines += [_line(seen.heads[0], seen.heads[1:], names, sizes, seen), "-" * width]
    for row, flag in zip(seen.rows, flags, strict=True):
        start, *more = [row[0]] if terminal.cell_len(row[0]) <= names else _wrap(row[0], names - 2)
        more += _wrap(f"{_FLAG}: {flag}", width - 2) if flag else []
        lines += [_line(start, row[1:], names, sizes, seen), *(f"  {part}" for part in more)]
    lines.append("=" * width)
    for words in (seen.note, dropped):
        lines += _wrap(words, width) if words else []
    for label, note in notes(result):
        lines += labelled(f"{label}:", note, width)
    return "\n".join(line.rstrip() for line in lines)


def _fitted(seen: View, sizes: Sequence[int]) -> tuple[View, str, list[str]]:
    """The view without the columns that no line has room for, what is said of them, and flags that stand below their rows in place of a
    column. sizes: of all columns but the first.
    """
    kept = 1 + sum(_LEAST + sum(sizes[:place]) <= WIDEST for place in range(1, len(sizes) + 1))
    flags = [row[seen.heads.index(_FLAG)] for row in seen.rows] if _FLAG in seen.heads[kept:] else [""] * len(seen.rows)
    left = ", ".join(head for head in seen.heads[kept:] if head != _FLAG)
    cut = {"columns": seen.columns[:kept], "heads": seen.heads[:kept], "rows": tuple(row[:kept] for row in seen.rows)}
    return View(**{**vars(seen), **cut}), f"further columns, in to_frame(): {left}" if left else "", flags


def _line(first: str, cells: Sequence[str], names: int, sizes: Sequence[int], seen: View) -> str:
    """The first column and labels to the left, numbers to the right."""
    found = [_padded(first, names)]
    for cell, size, column in zip(cells, sizes, seen.columns[1:], strict=True):
        found.append("  " + _padded(cell, size - 2) if column.kind == "text" else _padded(cell, size, 1))
    return "".join(found)


def _head(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Two columns of facts, filled downwards; a fact that is too long for one gets lines of its own below."""
    half = (width - 2) // 2
    short = [pair for pair in pairs if terminal.cell_len(pair[0]) + terminal.cell_len(pair[1]) + 3 <= half]
    left = short[: (len(short) + 1) // 2]
    right = short[len(left) :]
    lines = [_fact(pair, half) for pair in left]
    for place, pair in enumerate(right):
        lines[place] += " " * (width - 2 * half) + _fact(pair, half)
    for label, value in pairs:
        if (label, value) not in short:
            lines += labelled(f"{label}:", value, width)
    return lines


def _fact(pair: tuple[str, str], size: int) -> str:
    label = f"{pair[0]}:"
    return label + _padded(pair[1], size - terminal.cell_len(label), 1)


def labelled(label: str, value: str, width: int) -> list[str]:
    """A label and its text with a hanging indent."""
    indent = 13
    if terminal.cell_len(label) >= indent:
        return [*_wrap(label, width), *(" " * indent + part for part in _wrap(value, width - indent))]
    first, *more = _wrap(value, width - indent)
    return [_padded(label, indent) + first, *(" " * indent + part for part in more)]


def _wrap(value: str, width: int) -> list[str]:
    """Lines of at most `width` columns on the screen; words that are longer are cut."""
    lines = [""]
    for word in value.split():
        for piece in terminal.chop_cells(word, width):
            joined = f"{lines[-1]} {piece}" if lines[-1] else piece
            if terminal.cell_len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    return lines


def _padded(value: str, width: int, right: float = 0.0) -> str:
    """A text with spaces to a width: to the left of the column, or at its right end (1) or middle (.5)."""
    room = max(width - terminal.cell_len(value), 0)
    return " " * int(room * right) + value + " " * (room - int(room * right))


# --- HTML -------------------------------------------------------------------------------------------------------------


def environment() -> Environment:
    """The templates beside this file; every value is escaped, and a missing one is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("confide.results", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(result: Shown, alpha: float) -> str:
    """The table as HTML for a notebook: the same cells and notes as the text."""
    page = environment().get_template("table.html.j2")
    return page.render(table=view(result, alpha), notes=notes(result), notebook=True)
