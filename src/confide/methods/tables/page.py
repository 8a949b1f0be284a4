"""A table as text, as a table for notebooks and as a page."""

from __future__ import annotations

from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from markupsafe import Markup

from confide.errors import PlanError
from confide.results.table import DASH, NARROWEST, environment, labelled
from confide.results.words import SIMULATED, WITHOUT_NUMBERS, clean, level_words, notes

if TYPE_CHECKING:
    from confide.methods.tables.result import CellTable

__all__ = ["html", "text", "write"]

# Rows on a screen and on a page; all of them are in `to_frame`.
_ON_SCREEN, _ON_PAGE = 60, 500

_TABLE = """<table><thead><tr>{% for head in heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>"""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ title }}</title>
<style>body{font-family:system-ui,"Segoe UI",Roboto,Arial,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
color:#1a1a1a;background:#fff}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #ccc}.alarm{background:#8c1515;color:#fff;font-weight:bold;padding:.6rem
1rem} svg{width:100%;max-width:40rem;height:auto}dt{font-weight:600}dd{margin:0 0 .5rem 1rem;overflow-wrap:anywhere}</style></head><body>
<h1>{{ title }}</h1>{% if simulated %}<p class="alarm" role="alert">{{ simulated }}</p>{% endif %}
{{ table }}<p>{{ note }}</p>
{% if picture %}<div role="img" aria-label="{{ alt }}">{{ picture }}</div>{% endif %}
<h2>How to read it</h2><dl>{% for label, words in lines %}<dt>{{ label }}</dt><dd>{{ words }}</dd>{% endfor %}</dl>
<h2>What is protected</h2><p>{{ privacy }}</p>
</body></html>
"""


def heads(result: CellTable, alpha: float) -> tuple[str, ...]:
    """Column heads."""
    numbers = ("estimate", "std err", f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]", "noise share", "flag")
    return (*map(clean, result.index.columns), *numbers)


def cells(result: CellTable, alpha: float, most: int) -> list[tuple[str, ...]]:
    """The first rows, ready to show; a dash where the status forbids a number."""
    frame = result.to_frame(alpha).iloc[:most]
    about = list(result.index.columns)
    hidden = result.status in WITHOUT_NUMBERS
    found = []
    for row in frame.itertuples(index=False):
        values = dict(zip(frame.columns, row, strict=True))
        digits = _digits(values["estimate"], values["std_err"])
        numbers = [
            DASH if hidden or not isfinite(values[name]) else f"{values[name]:,.{digits}f}"
            for name in ("estimate", "std_err", "low", "high")
        ]
        share = DASH if hidden or not isfinite(values["privacy_share"]) else f"{values['privacy_share']:.1%}"
        found.append((*(clean(str(values[name])) for name in about), *numbers, share, values["flag"]))
    return found


def _digits(estimate: float, error: float) -> int:
    """Decimals: two digits of the standard error; three of the number without one."""
    size = error if isfinite(error) and error > 0 else abs(estimate) if isfinite(estimate) else 0.0
    if not size > 0:
        return 0
    return min(max(0, (1 if size == error else 2) - floor(log10(size))), 9)


def _notes(result: CellTable) -> tuple[tuple[str, str], ...]:
    return notes(cast(Any, result))


def _head(result: CellTable) -> list[tuple[str, str]]:
    own = [("Method", result.method), ("Status", result.status)]
    return [(clean(label), clean(value)) for label, value in (*own, *result.facts) if value]


def _left_out(result: CellTable, most: int) -> list[str]:
    rows = len(result.index)
    return [f"{most} of {rows:,} rows; all of them: to_frame(), wide: crosstab()"] if rows > most else []


def text(result: CellTable, alpha: float) -> str:
    """The table as text."""
    rows = [heads(result, alpha), *cells(result, alpha, _ON_SCREEN)]
    sizes = [max(len(row[k]) for row in rows) + 2 for k in range(len(rows[0]))]
    about = len(result.index.columns)
    lines = [
        "".join(
            (cell + "  ").ljust(size) if k < about else cell.rjust(size)
            for k, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )
        for row in rows
    ]
    width = max(len(lines[0]), NARROWEST)
    body = [clean(result.title), *([f"*** {SIMULATED} ***"] if result.simulated else []), "=" * width]
    body += [*(f"{label}: {value}" for label, value in _head(result)), "=" * width]
    body += [lines[0], "-" * width, *lines[1:], "=" * width, *_left_out(result, _ON_SCREEN)]
    said = [line for label, words in _notes(result) for line in labelled(f"{label}:", words, width)]
    return "\n".join(line.rstrip() for line in [*body, *said])


def html(result: CellTable, alpha: float) -> str:
    """The table for a notebook."""
    page = environment().from_string(
        "<div><p><strong>{{ title }}</strong></p>{% if simulated %}<p style='color:#8c1515'><strong>{{ simulated }}</strong></p>{% endif %}"
        "{{ table }}<p>{{ note }}</p><dl>{% for label, words in lines %}<dt>{{ label }}</dt><dd>{{ words }}</dd>{% endfor %}</dl></div>"
    )
    return str(
        page.render(
            title=clean(result.title),
            simulated=SIMULATED if result.simulated else "",
            table=_table(result, alpha, _ON_SCREEN),
            note=" ".join(_left_out(result, _ON_SCREEN)),
            lines=_notes(result),
        )
    )


def _table(result: CellTable, alpha: float, most: int) -> Markup:
    shown = environment().from_string(_TABLE).render(heads=heads(result, alpha), rows=cells(result, alpha, most))
    return Markup(shown)


def write(result: CellTable, path: Path, alpha: float) -> Path:
    """Write the page and return its path. It names no time and no machine."""
    from confide.results.report import svg

    drawn = result.status not in WITHOUT_NUMBERS
    body = (
        environment()
        .from_string(_PAGE)
        .render(
            title=clean(result.title),
            simulated=SIMULATED if result.simulated else "",
            picture=svg(lambda: result.plot(alpha)) if drawn else "",
            alt=f"The cells of the table with {level_words(alpha)} intervals",
            table=_table(result, alpha, _ON_PAGE),
            note=" ".join(_left_out(result, _ON_PAGE)),
            lines=(*_head(result), *_notes(result)),
            privacy=clean(result.guarantee.describe()),
        )
    )
    try:
        path.write_text(body, encoding="utf-8")
    except OSError as error:
        raise PlanError(
            f"the report cannot be written to {str(path)!r}: {error.strerror}; give a file in a directory that exists, as in "
            "report('table.html')"
        ) from None
    return path
