"""A curve as text, as a table for notebooks and as a page."""

from __future__ import annotations

from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from markupsafe import Markup

from confide.errors import PlanError
from confide.results.table import DASH, NARROWEST, environment, labelled
from confide.results.words import SIMULATED, WITHOUT_NUMBERS, clean, level_words, notes

if TYPE_CHECKING:
    from confide.results.curve import Curve

__all__ = ["html", "text", "write"]

_TABLE = """<table><thead><tr>{% for head in heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>"""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{ title }}</title>
<style>body{font-family:system-ui,"Segoe UI",Roboto,Arial,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;line-height:1.5;
color:#1a1a1a;background:#fff}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #ccc}.alarm{background:#8c1515;color:#fff;font-weight:bold;padding:.6rem
1rem} svg{width:100%;max-width:40rem;height:auto}dt{font-weight:600}dd{margin:0 0 .5rem 1rem;overflow-wrap:anywhere}</style></head><body>
<h1>{{ title }}</h1>{% if simulated %}<p class="alarm" role="alert">{{ simulated }}</p>{% endif %}
{% if picture %}<div role="img" aria-label="{{ alt }}">{{ picture }}</div>{% endif %}
{{ table }}<p>{{ note }}</p>
<h2>How to read it</h2><dl>{% for label, words in lines %}<dt>{{ label }}</dt><dd>{{ words }}</dd>{% endfor %}</dl>
<h2>What is protected</h2><p>{{ privacy }}</p>
</body></html>
"""


def heads(result: Curve, alpha: float) -> tuple[str, ...]:
    """Column heads; the last two are those of the whole curve's band, where one is known."""
    own = ("estimate", "std err", f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]")
    band = ("[whole", "curve]") if isfinite(result.crossings) else ()
    return (*map(clean, result.features), *own, *band, "noise share")


def cells(result: Curve, alpha: float) -> list[tuple[str, ...]]:
    """The rows of `Curve.shown`; a dash where the status forbids a number."""
    frame = result.to_frame(alpha).iloc[result.shown]
    d, wanted = len(result.features), list(frame)
    if not isfinite(result.crossings):
        wanted = [name for name in wanted if name not in ("band_low", "band_high")]
    hidden = result.status in WITHOUT_NUMBERS
    found = []
    for _, row in frame[wanted].iterrows():
        numbers = [DASH if hidden or not isfinite(v) else f"{v:,.4g}" for v in row.to_numpy()[d:-1]]
        share = DASH if hidden or isnan(row.iloc[-1]) else f"{row.iloc[-1]:.1%}"
        found.append((*(f"{v:.6g}" for v in row.to_numpy()[:d]), *numbers, share))
    return found


def _title(result: Curve) -> str:
    return clean(f"Private curve of {result.label} over {', '.join(result.features)}")


def _head(result: Curve) -> list[tuple[str, str]]:
    own = [("Method", result.method), ("Status", result.status), ("Points", f"{len(result.points):,}")]
    return [(clean(label), clean(value)) for label, value in (*own, *result.facts) if value]


def _notes(result: Curve) -> tuple[tuple[str, str], ...]:
    return notes(cast(Any, result))


def text(result: Curve, alpha: float) -> str:
    """The table as text."""
    rows = [heads(result, alpha), *cells(result, alpha)]
    sizes = [max(len(row[k]) for row in rows) + 2 for k in range(len(rows[0]))]
    lines = ["".join(cell.rjust(size) for cell, size in zip(row, sizes, strict=True)) for row in rows]
    width = max(len(lines[0]), NARROWEST)
    warning = [f"*** {SIMULATED} ***"] if result.simulated else []
    body = [
        _title(result),
        *warning,
        "=" * width,
        *(f"{label}: {value}" for label, value in _head(result)),
        "=" * width,
    ]
    body += [lines[0], "-" * width, *lines[1:], "=" * width]
    said = [line for label, words in _notes(result) for line in labelled(f"{label}:", words, width)]
    return "\n".join(line.rstrip() for line in [*body, *_left_out(result), *said])


def _left_out(result: Curve) -> list[str]:
    left = len(result.points) - len(result.shown)
    return (
        [f"{len(result.shown)} of {len(result.points):,} points; all of them: to_frame(), any other: at(x)"]
        if left
        else []
    )


def html(result: Curve, alpha: float) -> str:
    """The table for a notebook."""
    page = environment().from_string(
        "<div><p><strong>{{ title }}</strong></p>{% if simulated %}<p style='color:#8c1515'><strong>{{ simulated }}</strong></p>{% endif %}"
        "{{ table }}<dl>{% for label, words in lines %}<dt>{{ label }}</dt><dd>{{ words }}</dd>{% endfor %}</dl></div>"
    )
    simulated = SIMULATED if result.simulated else ""
    return str(
        page.render(title=_title(result), simulated=simulated, table=_table(result, alpha), lines=_notes(result))
    )


def _table(result: Curve, alpha: float) -> Markup:
    return Markup(environment().from_string(_TABLE).render(heads=heads(result, alpha), rows=cells(result, alpha)))


def write(result: Curve, path: Path, alpha: float) -> Path:
    """Write the page and return its path. It names no time and no machine."""
    from confide.results.report import svg

    drawn = result.status not in WITHOUT_NUMBERS
    page = environment().from_string(_PAGE)
    body = page.render(
        title=_title(result),
        simulated=SIMULATED if result.simulated else "",
        picture=svg(lambda: result.plot(alpha)) if drawn else "",
        alt=f"The curve with {level_words(alpha)} bands" if result.has_intervals else "The curve, without bands",
        table=_table(result, alpha),
        note=" ".join(_left_out(result)),
        lines=(*_head(result), *_notes(result)),
        privacy=clean(result.guarantee.describe()),
    )
    try:
        path.write_text(body, encoding="utf-8")
    except OSError as error:
        raise PlanError(
            f"the report cannot be written to {str(path)!r}: {error.strerror}; give a file in a directory that exists, as in "
            "report('curve.html')"
        ) from None
    return path
