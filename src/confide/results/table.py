"""The table of estimates, as text in the style of statsmodels and as HTML: one set of cells, two renderings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, isnan, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._lazy import later
from confide.results.words import SIMULATED, WITHOUT_NUMBERS, clean, notes

if TYPE_CHECKING:
    from jinja2 import Environment
    from rich import cells as terminal

    from confide.results.estimates import Estimates
else:
    terminal = later("rich.cells")

__all__ = [
    "DASH",
    "NARROWEST",
    "Row",
    "columns",
    "environment",
    "facts",
    "html",
    "labelled",
    "rows",
    "text",
    "title",
    "view",
]

NARROWEST = 78  # the width of statsmodels' tables
WIDEST = 100
DASH = "-"  # where the status forbids a number


@dataclass(frozen=True)
class Row:
    """One line of the table: the name and its cells, ready to show."""

    name: str
    cells: tuple[str, ...]


def title(result: Estimates) -> str:
    """The heading of every rendering."""
    what = f"Private estimates of {result.response}" if result.response else "Private estimates"
    return clean(f"{what}: {result.heading}" if result.heading else what)


def columns(result: Estimates, alpha: float) -> tuple[str, ...]:
    """Column heads after the name; z in place of t when the distribution is normal, as in statsmodels."""
    letter = "z" if result.normal else "t"
    return ("coef", "std err", letter, f"P>|{letter}|", f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]", "noise share")


def rows(result: Estimates, alpha: float) -> tuple[Row, ...]:
    """The cells of the table, one row for each name; a dash where the status forbids a number."""
    hidden = result.status in WITHOUT_NUMBERS
    return tuple(
        Row(
            clean(name),
            (DASH,) * 7 if hidden else _cells(line, "nan" if result.status == "ok" and result.has_intervals else DASH),
        )
        for name, line in zip(result.names, result.to_frame(alpha).itertuples(index=False), strict=True)
    )


def _cells(line: Any, missing: str) -> tuple[str, ...]:
    digits = _digits((line.estimate, line.se, line.low, line.high), line.se)
    share = "nan" if isnan(line.privacy_share) else f"{line.privacy_share:.1%}"
    cells = (
        number(line.estimate, digits),
        number(line.se, digits),
        number(line.t, 3 if abs(line.t) < 1e6 else None),
        pvalue(line.p),
        number(line.low, digits),
        number(line.high, digits),
        share,
    )
    return tuple(missing if cell == "nan" else cell for cell in cells)


def facts(result: Estimates) -> tuple[tuple[str, str], ...]:
    """The head of the table: pairs of a label and its text."""
    law = _degrees(result) if result.has_intervals and result.status != "weak" else ""
    own = [
        ("Dep. Variable", result.response),
        ("Method", result.method),
        ("Status", result.status),
        ("Df (Student's t)", law),
    ]
    return tuple((clean(label), clean(value)) for label, value in (*own, *result.facts) if value)


def _degrees(result: Estimates) -> str:
    """The degrees of freedom: one number, or from the fewest to the most."""
    known = np.atleast_1d(np.asarray(result.df, dtype=np.float64))
    known = known[~np.isnan(known)]
    texts = [_df(df) for df in (known.min(), known.max())] if len(known) else []
    return " to ".join(dict.fromkeys(texts))


def _df(df: float) -> str:
    """Degrees of freedom; so many that t is the normal distribution to three digits are not told apart."""
    return "inf (normal)" if df == inf else "> 1000" if df > 1000 else f"{df:.1f}"


def number(value: float, digits: int | None) -> str:
    """A number with that many decimals, or in scientific notation when `digits` is None.

    >>> number(-1.25, 4), number(0.000123, None)
    ('-1.2500', '1.230e-04')
    """
    return f"{value:.3e}" if digits is None else f"{value:.{digits}f}"


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


def pvalue(value: float) -> str:
    """A p-value for the table.

    >>> pvalue(0.0123), pvalue(1e-30)
    ('0.012', '<0.001')
    """
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# --- text -------------------------------------------------------------------------------------------------------------


def text(result: Estimates, alpha: float) -> str:
    """The table as text: head, estimates, notes; between 78 and 100 columns wide."""
    heads, body = columns(result, alpha), rows(result, alpha)
    sizes = [
        max(terminal.cell_len(cells[place]) for cells in (heads, *(row.cells for row in body))) + 2
        for place in range(len(heads))
    ]
    names = min(max(terminal.cell_len(row.name) for row in body), WIDEST - sum(sizes))
    width = max(names + sum(sizes), NARROWEST)
    names = width - sum(sizes)
    lines = [_centred(part, width) for part in _wrap(title(result), width)]
    if result.simulated:
        lines.append(_centred(f"*** {SIMULATED} ***", width))
    lines += ["=" * width, *_head(facts(result), width), "=" * width]
    lines += [_line("", heads, names, sizes), "-" * width]
    for row in body:
        first, *more = [row.name] if terminal.cell_len(row.name) <= names else _wrap(row.name, names - 2)
        lines += [_line(first, row.cells, names, sizes), *(f"  {part}" for part in more)]
    lines.append("=" * width)
    for label, note in notes(result):
        lines += labelled(f"{label}:", note, width)
    return "\n".join(line.rstrip() for line in lines)


def _line(name: str, cells: Sequence[str], names: int, sizes: Sequence[int]) -> str:
    return _left(name, names) + "".join(_right(cell, size) for cell, size in zip(cells, sizes, strict=True))


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
    return label + _right(pair[1], size - terminal.cell_len(label))


def labelled(label: str, value: str, width: int) -> list[str]:
    """A label and its text with a hanging indent."""
    indent = 13
    if terminal.cell_len(label) >= indent:
        return [*_wrap(label, width), *(" " * indent + part for part in _wrap(value, width - indent))]
    first, *more = _wrap(value, width - indent)
    return [_left(label, indent) + first, *(" " * indent + part for part in more)]


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


def _left(value: str, width: int) -> str:
    return value + " " * (width - terminal.cell_len(value))


def _right(value: str, width: int) -> str:
    return " " * (width - terminal.cell_len(value)) + value


def _centred(value: str, width: int) -> str:
    return " " * ((width - terminal.cell_len(value)) // 2) + value


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


def html(result: Estimates, alpha: float) -> str:
    """The table as HTML for a notebook: the same cells and notes as the text."""
    return (
        environment()
        .get_template("table.html.j2")
        .render(table=view(result, alpha), notes=notes(result), notebook=True)
    )


def view(result: Estimates, alpha: float) -> dict[str, Any]:
    """What the template of the table needs."""
    return {
        "title": title(result),
        "simulated": SIMULATED if result.simulated else "",
        "facts": facts(result),
        "columns": columns(result, alpha),
        "rows": rows(result, alpha),
    }
