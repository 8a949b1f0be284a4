"""The table of a result: one set of printed columns (`View.laid`) for text, HTML, Markdown, LaTeX and Word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import floor, inf, isfinite, isnan, log10
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import clean, flag_letter, head, later, terms
from confide.results.pages.content import SIMULATED, WITHOUT_NUMBERS, Flag, brief, common, level_words, notes
from confide.schema.formulas.names import level_name

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich import cells as terminal

    from confide.results.pages.content import Column, Shown
else:
    terminal = later("rich.cells")


WIDEST = 80
_LEAST = 18  # of a label, which wraps, where it is that wide
_NARROWEST = 8  # of one, where numbers need the room
_INDENT = 15  # of notes
DASH = "n/a"  # where there is no valid number
_FLAG = "flags"  # the column that says what the rows are worth
OPEN = "none"  # an end that an interval does not have

# Facts and notes whose content is in the few lines below every table.
_SAID = ("Status", "Reason", "n", "Intervals for")

# Columns that say nothing where every row is so.
_NEEDLESS = (("privacy_share", "100%"),)

_SCALED = ("estimate", "std_err", "interval")
# Of rounding, by which an estimate may lie outside its interval.
_ROUND = 1e-9
_LABELS = ("name", "text", "number")
# What goes where room is short, the highest first: a statistic follows from the estimate and its standard error.
_SPARE = {"statistic": 2, "p": 1, "share": 1}


@dataclass(frozen=True)
class Laid:
    """A printed column: its head and cells.

    left: whether cells are aligned left; spare: above 0 for one that goes where room is short, the highest first; label: its head on a
    narrow page.
    """

    head: str
    cells: tuple[str, ...]
    left: bool = False
    spare: int = 0
    label: str = ""


@dataclass(frozen=True)
class View:
    """Words and cells of a result, ready to print.

    columns: as the family gave them; heads: their heads; rows: a cell for each column; note: about rows that are not printed. laid: the
    printed columns, with both ends of an interval in one; line: the sentence below the rows, as of a test.
    """

    title: str
    simulated: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    laid: tuple[Laid, ...] = ()
    line: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What each row is called in running text."""
        heads, k = self.heads, self.labels
        if self.columns[0].kind == "name":
            lead = "" if heads[0] == head("term") else heads[0]
            return tuple(f"{lead} {row[0]}".strip() for row in self.rows)
        told = [
            at
            for at in range(k)
            if not (self.columns[at].name == "variable" and len({row[at] for row in self.rows}) == 1)
        ]
        return tuple(", ".join(f"{heads[at]} = {row[at]}" for at in told or range(k)) for row in self.rows)

    @property
    def size(self) -> str:
        """The number of records, such as "n = 3,901"; "" where a column has it, or where it is not known."""
        own = any(one.name == "n" or (one.whole and one.kind == "estimate") for one in self.columns)
        count = "" if own else dict(self.facts).get("n", "").split(" (noise")[0].split(" (SD")[0]
        count = re.sub(r"^-[\d,]+", "0", count)
        return f"n = {count}" if count[:1].isdigit() else ""

    @property
    def labels(self) -> int:
        """How many columns at the left say what a row is about."""
        about = [column.kind in _LABELS and not column.whole for column in self.columns]
        return about.index(False) if False in about else len(about)

    def first(self, kind: str) -> int | None:
        """The place of the first column of a kind."""
        return next((place for place, column in enumerate(self.columns) if column.kind == kind), None)


@dataclass(frozen=True)
class Document:
    """A table with its title, and the note that belongs to it: status, guarantee, inference target, release ID.

    labels: how many columns at the left say what a row is about; picture: a PNG, what it is for those who do not see it, its caption.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    heads: tuple[str, ...]
    note: str
    labels: int = 1
    picture: tuple[bytes, str, str] | None = None


def view(result: Shown, alpha: float, *, every: bool = False, columns: Sequence[Column] | None = None) -> View:
    """The words and cells of a result. every: all rows, not only those that are printed; columns: others than `result.printed(alpha)`."""
    given = tuple(one for one in (result.printed(alpha) if columns is None else columns) if one.printed)
    count = len(given[0].values)
    places = range(count) if every or result.shown is None else result.shown
    rows = tuple(cells_of(result, given, place) for place in places)
    heads = tuple(
        clean((one.name if one.kind == "text" else head(one.name)) if one.head is None else one.head) for one in given
    )
    seen = View(
        clean(f"{result.title}; {result.kept}" if result.kept else result.title),
        SIMULATED if result.simulated else "",
        facts(result),
        given,
        heads,
        rows,
        clean(result.left_out(count, len(rows))) if len(rows) < count else "",
        line=clean(result.line(alpha)),
    )
    crossed = None if every or columns is not None else result.crossed(alpha)
    return replace(seen, laid=tuple(crossed or _laid(result, seen, alpha)))


def facts(result: Shown) -> tuple[tuple[str, str], ...]:
    """The head of the table: pairs of a label and its text."""
    own = [("Dep. Variable", result.response), ("Method", result.method), ("Status", result.status)]
    return tuple((clean(label), clean(value)) for label, value in (*own, *result.head(), *result.facts) if value)


# --- cells ------------------------------------------------------------------------------------------------------------


def cells_of(result: Shown, columns: Sequence[Column], place: int) -> tuple[str, ...]:
    """The cells of one row; "n/a" where there is no valid number."""
    marks = next((str(one.values[place]) for one in columns if one.name == _FLAG), "")
    hidden = result.status in WITHOUT_NUMBERS or "whole_range" in marks.split()
    cells: list[str] = []
    for group in _groups(columns):
        values = [column.values[place] for column in group]
        scaled = [float(v) for column, v in zip(group, values, strict=True) if column.kind in _SCALED and v is not None]
        digits = _digits(scaled, _error(group, values)) if scaled else None
        whole = any(column.whole for column in group if column.kind == "estimate")
        ends = [float(v) for one, v in zip(group, values, strict=True) if one.kind == "interval" and v is not None]
        for column, value in zip(group, values, strict=True):
            if value is None:  # a row that has no such number
                cells.append("")
            elif column.kind in ("name", "text"):
                cells.append(clean(str(value)))
            elif hidden and column.kind != "number":
                cells.append(DASH)
            elif column.kind == "estimate" and len(ends) == 2 and max(ends[0] - value, value - ends[1]) > _ROUND:
                cells.append(DASH)  # a mean of a negative number of records, which is none
            elif column.name == "privacy_share" and isfinite(value):
                cells.append("<1%" if 0 < value < 0.005 else ">99%" if 0.995 <= value < 0.9995 else f"{value:.0%}")
            elif column.percent and isfinite(value):
                cells.append(f"{value:.1%}".replace("-0.0%", "0.0%"))
            elif whole and column.kind in ("estimate", "interval"):
                cells.append(_cell(column.kind, float(value), 0))
            else:
                cells.append(
                    _cell(column.kind, float(value), digits if column.kind in _SCALED else 0 if column.whole else None)
                )
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
    if "std_err" in kinds and (found := values[kinds.index("std_err")]) is not None:
        return float(found)
    ends = [float(value) for kind, value in zip(kinds, values, strict=True) if kind == "interval" and value is not None]
    return (ends[1] - ends[0]) / 4 if len(ends) > 1 and isfinite(ends[1] - ends[0]) else float("nan")


def _cell(kind: str, value: float, digits: int | None) -> str:
    if isnan(value) or (kind == "std_err" and value == inf):
        return DASH
    if kind == "interval" and not isfinite(value):
        return OPEN
    if kind in _SCALED:
        return number(value, digits)
    if kind == "statistic":
        return number(value, 1 if abs(value) < 1e6 else None)
    if kind == "number":
        return f"{value:.6g}" if digits is None else number(max(value, 0.0), digits)  # noise can make a count negative
    return {"p": pvalue, "share": "{:.1%}".format}[kind](value)


def number(value: float, digits: int | None) -> str:
    """A number with that many decimals, or in scientific notation when `digits` is None.

    >>> number(-1.25, 4), number(31_013.4, 0), number(0.000123, None)
    ('-1.2500', '31,013', '1.230e-04')
    """
    text = f"{value:.3e}" if digits is None else f"{value:,.{digits}f}"
    return text if value or digits is None else text.removeprefix("-")


def _digits(values: Sequence[float], error: float) -> int | None:
    """Decimals for one row: two digits of its standard error, three of the number without one; None for too much room.

    >>> _digits((3.6486, 0.1226), 0.1226), _digits((-581.3, 149.0), 149.0), _digits((1e16, 1.0), 1.0)
    (2, 0, None)
    """
    sizes = [abs(value) for value in values if isfinite(value)]
    if not sizes or not max(sizes):
        return 2
    known = isfinite(error) and error > 0
    decimals = max(0, (1 if known else 2) - floor(log10(error if known else max(sizes))))
    return decimals if decimals <= 8 and max(sizes) < 1e15 else None


def with_interval(value: float, low: float, high: float) -> str:
    """An estimate and its interval for the head of a table, in the digits that the interval allows; a dash for an estimate that is NaN.

    >>> with_interval(17_288.3, 16_861.9, 17_710.4), with_interval(0.1213, 0.1194, 0.1231)
    ('17,290 [16,860, 17,710]', '0.1213 [0.1194, 0.1231]')
    >>> with_interval(float("nan"), 0.0, 0.1231)
    'n/a [0.0000, 0.1231]'
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


def text(result: Shown, alpha: float, *, verbose: bool = False, alone: bool = True) -> str:
    """The table as text: title, what may be done with it, rows, a few notes. Rows are as wide as the terminal where they need it.

    verbose: with every fact and note below; alone: False for one of several tables, whose title and common notes are printed elsewhere.
    """
    seen = view(result, alpha)
    laid = list(seen.laid)
    sizes = [max(map(terminal.cell_len, (one.head, *one.cells))) for one in laid]
    left = ""
    if sum(sizes) + 2 * (len(sizes) - 1) > WIDEST:
        laid, sizes, left = _narrowed(laid, sizes, max(get_terminal_size((WIDEST, 24)).columns, WIDEST))
    width = sum(sizes) + 2 * (len(sizes) - 1)
    lines = _titled(result, seen, max(width, 60)) if alone else []
    top = len(lines)
    for cells in zip(*((one.head, *one.cells) for one in laid), strict=True):
        pieces = [_pieces(cell, size) for cell, size in zip(cells, sizes, strict=True)]
        lines += [
            "  ".join(padded(cell, size, not one.left) for cell, one, size in zip(row, laid, sizes, strict=True))
            for row in zip_longest(*pieces, fillvalue="")
        ]
        if top == len(lines) - max(map(len, pieces)):
            lines.append("-" * width)
    lines += wrapped(seen.note, WIDEST) if seen.note else []
    lines += wrapped(f"further columns, in to_frame(): {left}", WIDEST) if left else []
    lines += ["", *wrapped(seen.line, WIDEST)] if seen.line else []
    lines.append("")
    said = brief(result, alone=alone, whole=verbose)
    said += _details(result, seen) if verbose else ()
    for label, note in said:
        lines += labelled(label, note, WIDEST)
    return "\n".join(line.rstrip() for line in lines)


def _narrowed(laid: list[Laid], sizes: list[int], width: int) -> tuple[list[Laid], list[int], str]:
    """Columns that fit a line, their widths, and the heads of those that were left out. Labels wrap; an estimate and its interval stay."""
    labels = next((at for at, one in enumerate(laid) if not one.left), len(laid))
    kept = dict(enumerate(sizes))

    def room() -> int:
        return width - sum(size + 2 for at, size in kept.items() if at >= labels) - 2 * (labels - 1)

    for at in sorted(range(labels, len(laid)), key=lambda at: (laid[at].spare, at), reverse=True):
        if laid[at].spare and sum(min(size, _LEAST) for size in sizes[:labels]) > room():
            del kept[at]
    # as wide as there is room for, the widest narrowed first
    most = max(sizes[:labels])
    while most > _NARROWEST and sum(min(size, most) for size in sizes[:labels]) > room():
        most -= 1
    left = ", ".join(one.head for at, one in enumerate(laid) if at not in kept)
    return [laid[at] for at in kept], [min(size, most) if at < labels else size for at, size in kept.items()], left


def _pieces(cell: str, size: int) -> list[str]:
    """A cell in lines as wide as its column at most, with a hanging indent where there is room for one."""
    if terminal.cell_len(cell) <= size:
        return [cell]
    indent = 2 if size >= _LEAST else 0
    start, *more = wrapped(cell, size - indent)
    return [start, *(" " * indent + part for part in more)]


def _details(result: Shown, seen: View) -> tuple[tuple[str, str], ...]:
    """Every fact and note that the few lines below a table do not have."""
    meaning = ("Meaning", clean(f"{result.status.replace('_', ' ')}: {result.status_said}"))
    said = brief(result, whole=True)
    return tuple(one for one in (meaning, *seen.facts, *notes(result)) if one not in said and one[0] not in _SAID)


def _laid(result: Shown, seen: View, alpha: float) -> list[Laid]:
    """The printed columns: both ends of an interval are one column; a column of flags without any is not printed."""
    found: list[Laid] = []
    place = 0
    # where no standard error is known, no t, p or privacy share is, and the standard errors say so
    unknown = (errors := seen.first("std_err")) is not None and {row[errors] for row in seen.rows} == {DASH}
    while place < len(seen.columns):
        column, head, cells = seen.columns[place], seen.heads[place], tuple(row[place] for row in seen.rows)
        after = seen.columns[place + 1] if place + 1 < len(seen.columns) else None
        if column.kind == "interval" and after is not None and after.kind == "interval":
            cells = tuple(joined(row[place], row[place + 1]) for row in seen.rows)
            head = interval_head(result, column, alpha)
            place += 1
        elif column.kind == "name":
            cells = tuple(level_name(cell) for cell in cells)
        elif column.name == _FLAG:
            told = common(column.values)
            cells = tuple(" ".join(flag_letter(one) for one in cell.split() if one not in told) for cell in cells)
        place += 1
        same = len(cells) > 1 and len(set(cells)) == 1 and (column.name, cells[0]) in _NEEDLESS
        same = same or (column.kind in ("statistic", "p", "share") and set(cells) == {DASH} and unknown)
        if not same and (head != _FLAG or any(cells)) and not (column.name == "variable" and len(set(cells)) == 1):
            left = not found or column.kind in ("name", "text")
            found.append(Laid(head, cells, left, _SPARE.get(column.kind, 0), head))
    return found


def joined(low: str, high: str) -> str:
    """Both ends of an interval in one cell.

    >>> joined("1.2", "3.4"), joined("n/a", "n/a"), joined("", "")
    ('1.2 to 3.4', 'n/a', '')
    """
    return low if low == high and low in (DASH, "") else f"{low} to {high}"


def interval_head(result: Shown, column: Column, alpha: float) -> str:
    """The head of an interval: its level, and whether it is a confidence interval, a credible interval or a band."""
    own = "credible_interval" if result.family == "posterior" else "confidence_interval"
    own = "band" if column.name.startswith("band") else own
    return str(terms()[own]["head"]).replace("95%", level_words(alpha))


def _titled(result: Shown, seen: View, width: int) -> list[str]:
    """The title, what may be done with the table, and the number of records."""
    gap = width - terminal.cell_len(result.published) - terminal.cell_len(seen.size)
    below = [f"{result.published}{' ' * gap}{seen.size}"] if gap > 1 else [result.published, seen.size]
    return [*wrapped(seen.title, WIDEST), *below, ""]


def labelled(label: str, value: str, width: int) -> list[str]:
    """A label and its text with a hanging indent."""
    if terminal.cell_len(label) >= _INDENT:
        return [*wrapped(label, width), *(" " * _INDENT + part for part in wrapped(value, width - _INDENT))]
    first, *more = wrapped(value, width - _INDENT)
    return [padded(label, _INDENT) + first, *(" " * _INDENT + part for part in more)]


def wrapped(value: str, width: int) -> list[str]:
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


def padded(value: str, width: int, right: float = 0.0) -> str:
    """A text with spaces to a width: to the left of the column, or at its right end (1) or middle (0.5)."""
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
    return page.render(table=view(result, alpha), notes=brief(result), published=result.published, notebook=True)


# --- the part of an interval that is privacy noise -------------------------------------------------------------------

Vector = NDArray[np.float64]

# Above this share an interval is more than three times as wide as that of sampling alone.
_MOST = 0.9
# Sds of its noise that a robust variance may be off by, an error of 5 % on either side.
_LIKELY = 1.645
# Rows that a flag names.
_ROWS_NAMED = 6

#: What the flag is called, of a result and of a row.
DOMINATES = "noise_dominates"
_TOLD = (
    "privacy noise is more than 90% of the squared margin of error{}. Without privacy the interval would be less than a third as wide. A "
    "larger budget, more records, a coarser table or fewer terms narrow it"
)
#: What it means, of a row.
DOMINATED = _TOLD.format("")


def noise_share(width: ArrayLike, alone: ArrayLike) -> Vector:
    """The part of squared widths of intervals that is privacy noise, in [0, 1].

    NaN without an interval, with a width of 0, or without a sampling width. width: of the intervals, or half of it, infinite for an open
    interval; alone: the same from sampling error only.

    >>> noise_share([2.0, 2.0, float("inf"), float("nan"), 0.0], [1.0, 3.0, 1.0, 1.0, 0.0]).tolist()
    [0.75, 0.0, 1.0, nan, nan]
    """
    whole, own = np.broadcast_arrays(np.asarray(width, dtype=np.float64), np.asarray(alone, dtype=np.float64))
    with np.errstate(all="ignore"):
        found = 1.0 - (own / whole) ** 2
    known = (whole > 0) & np.isfinite(own)
    found = np.where(known, np.where(np.isinf(whole), 1.0, found), np.nan)
    return np.asarray(np.clip(found, 0.0, 1.0))


def sampling_alone(robust: ArrayLike, error: ArrayLike, classical: ArrayLike) -> Vector:
    """The best estimate of sampling variances that released sums give.

    It is the robust one where that is above 0, because clusters, weights and heavy tails make it many times as large as the classical one.
    If the classical one is larger, it is that one, within the noise of the robust one. error: the SD of that noise.

    >>> sampling_alone([4.0, 2.0, -2.0], [0.1, 2.0, 0.5], [1.0, 3.0, 1.0]).round(2).tolist()
    [4.0, 3.0, 0.82]
    """
    own = np.maximum(robust, 0.0)
    return np.asarray(np.clip(classical, own, own + _LIKELY * np.asarray(error, dtype=np.float64)))


def dominated(share: ArrayLike) -> NDArray[np.bool_]:
    """Where privacy noise dominates an interval."""
    return np.asarray(np.asarray(share, dtype=np.float64) > _MOST)


def marked(flags: Sequence[str], names: Sequence[str], share: ArrayLike) -> tuple[str, ...]:
    """A result's flags, with the one that names the rows with dominating noise, if any. share: (p,).

    >>> marked((), ("a", "b"), [0.2, 0.95])
    ('noise_dominates',)
    """
    own = tuple(flag for flag in flags if flag != DOMINATES)
    rows = [level_name(name) for name, on in zip(names, dominated(share), strict=True) if on]
    if not rows:
        return own
    more = f" and {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    return (*own, Flag(DOMINATES, _TOLD.format(f" of {', '.join(rows[:_ROWS_NAMED])}{more}")))
