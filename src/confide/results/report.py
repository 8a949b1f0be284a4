"""The report: one HTML file that stands alone, with table, plot and the privacy statement in plain words."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.style
import numpy as np
from markupsafe import Markup

from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.results.plot import draw, shown
from confide.results.table import DASH, Row, environment, rows, view
from confide.results.words import (
    WITHOUT_NUMBERS,
    approx_words,
    bias_words,
    clean,
    flag_words,
    level_words,
    relation_words,
    several_rows,
    status_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.estimates import Estimates

__all__ = ["page", "svg", "write"]


def write(result: Estimates, path: Path, alpha: float) -> Path:
    """Write the page and return its path."""
    text = page(result, alpha)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlanError(
            f"the report cannot be written to {str(path)!r}: {error.strerror}; give a file in a directory that exists, "
            "as in report('report.html')"
        ) from None
    return path


def page(result: Estimates, alpha: float) -> str:
    """The whole page as text. It names no time and no machine: the same result gives the same page."""
    lines, level = rows(result, alpha), level_words(alpha)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            table=view(result, alpha),
            level=level,
            status=result.status,
            intervals=result.has_intervals,
            status_words=status_words(result),
            reason=clean(result.reason),
            flags=[(clean(flag), clean(flag_words(flag))) for flag in result.flags],
            plot="" if result.status in WITHOUT_NUMBERS or np.isnan(result.estimates).all() else _svg(result, alpha),
            alt=_alt(result, lines, level),
            caption=_caption(result, alpha),
            example=_example(result, lines, level),
            privacy=_privacy(result),
            target=clean(result.target),
            covers=clean(result.covers),
            biased=bool(bias_words(result)),
            legend=[(clean(label), clean(words)) for label, words in (*bias_words(result), *result.legend)],
            left_out=not _own(result) and len(shown(result)) < len(result.names),
            source="table" if _own(result) else "plot",
            release=clean(result.release_sha256),
        )
    )


def _privacy(result: Estimates) -> dict[str, Any]:
    guarantee = result.guarantee
    return {
        "protected": _protected(guarantee),
        "relation": result.relation,
        "relation_words": clean(relation_words(guarantee)),
        "level": clean(guarantee.describe()),
        "requested": clean(str(result.requested)),
        "guarantee": clean(str(guarantee)),
        "approx": clean(approx_words(guarantee, requested=result.requested)),
        "trust": _TRUST.get(guarantee.trust, clean(guarantee.trust)),
        "assumptions": [clean(assumption) for assumption in guarantee.assumptions],
    }


_TRUST = {
    "central": "the keeper of the records sees them and adds the noise; whoever reads the release need not be trusted",
    "local": "noise is added before a record leaves its owner; nobody else need be trusted",
}


def _protected(guarantee: Guarantee) -> str:
    """Who is protected: one row, or all rows of a unit when the guarantee says how many those are."""
    if several_rows(guarantee):
        return "All rows of one unit together, say of one person, as long as no unit has more rows than assumed below."
    if guarantee.unit == "record":
        return (
            "One record, which is one row of the data. Where a person has one row, a person is protected; "
            "where a person has several, each row is protected, but not all of them together."
        )
    return f"One {clean(guarantee.unit)} of the data."


def _example(result: Estimates, lines: Sequence[Row], level: str) -> str:
    """The first answered row of the table read aloud; empty when there are no intervals."""
    if not result.has_intervals:
        return ""
    answered = [place for place in shown(result) if not np.isnan(result.estimates[place])]
    if not answered:
        return ""
    line = lines[answered[0]]
    estimate, _, _, _, low, high, share = line.cells
    noise = "" if share == "nan" else f"; privacy noise makes up {share} of its variance"
    return (
        f"the estimate for {line.name} is {estimate}, and values from {low} to {high} agree with the release "
        f"at the level of {level}{noise}"
    )


def _caption(result: Estimates, alpha: float) -> str:
    """How to read the plot, of which a family with a picture of its own speaks itself (`plot_words`); without it, no words."""
    if _own(result):
        words = getattr(result, "plot_words", None)
        return clean(words(alpha)) if callable(words) else ""
    if not result.has_intervals:
        why = "this method has none" if result.status == "ok" else "none is valid at this status"
        return f"No intervals are drawn, because {why}."
    said = f"Thin bars: the whole {level_words(alpha)} interval."
    if result.status != "weak":
        said += " Thick bars inside: the interval that sampling alone would give. What lies between their ends is the price of privacy."
    return said


def _alt(result: Estimates, lines: Sequence[Row], level: str) -> str:
    """The plot in words."""
    usable = result.has_intervals
    kind = f"with {level} intervals" if usable else "without intervals"
    drawn = [lines[index] for index in shown(result)]
    parts = [
        f"{line.name}: not answered"
        if usable and line.cells[0] == DASH
        else f"{line.name}: {line.cells[0]}" + (f", interval {line.cells[4]} to {line.cells[5]}" if usable else "")
        for line in drawn
    ]
    return f"Plot of the estimates {kind}. " + "; ".join(parts) + "."


def _own(result: Estimates) -> bool:
    """Whether the family has a picture of its own, because it knows what its numbers have in common."""
    from confide.results.estimates import Estimates

    return type(result).plot is not Estimates.plot


def _svg(result: Estimates, alpha: float) -> Markup:
    return svg(lambda: result.plot(alpha) if _own(result) else draw(result, alpha, None, None, width=5.2))


def svg(drawn: Callable[[], Axes]) -> Markup:
    """A plot as SVG to stand inside a page: no header, no metadata, no name spaces, which HTML supplies itself."""
    held = io.StringIO()
    look: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "confide",
        "font.family": "sans-serif",
        "font.size": 11.0,
    }
    with warnings.catch_warnings(), matplotlib.style.context("default"), matplotlib.rc_context(look):
        figure = drawn().get_figure(root=True)
        assert figure is not None
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's fonts draw the text, not ours
        figure.savefig(held, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    drawing = held.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", drawing, count=2).replace(" xlink:href=", " href=")
    return Markup(drawing)  # matplotlib escapes all text that it draws; tests/results holds it to that
