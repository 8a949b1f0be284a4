"""The report: one self-contained HTML file with table, picture and a privacy statement in plain words."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.style
from markupsafe import Markup

from confide._helpers import clean
from confide._version import __version__
from confide.guarantees import Guarantee
from confide.guarantees.plain_words import plain_words
from confide.results.pages.content import (
    approx_words,
    bias_words,
    box,
    flag_words,
    level_words,
    relation_words,
    several_rows,
)
from confide.results.pages.plots import alternative, caption, chosen, drawn, nothing
from confide.results.pages.table import DASH, Document, View, environment, interval_head, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from confide.results.pages.content import Shown


def page(result: Shown, alpha: float, below: Sequence[Document] = ()) -> str:
    """The whole page as text. It has no time and no machine, so the same result gives the same page. below: further tables."""
    seen, level = view(result, alpha), level_words(alpha)
    further = result.reported()
    seen = replace(seen, facts=(*seen.facts, *((clean(label), clean(text)) for label, text, _ in further)))
    pictured = nothing(result, alpha) is None
    described = result.guarantee.describe()  # stands under what is protected
    notes = [note for note in result.notes() if note[1] != described]
    read = [(label, words) for label, _, words in further if words]
    legend = (*read, *bias_words(result), *notes, *result.legend)
    template = environment().get_template("report.html.j2")
    return template.render(
        table=seen,
        below=below,
        heading="Estimates" if seen.first("estimate") is not None else "Rows",
        level=level,
        status=result.status,
        box=box(result),
        published=result.published,
        intervals=result.has_intervals,
        status_words=clean(result.status_said),
        reason=clean(result.reason),
        flags=[(clean(flag), clean(flag_words(flag)).removesuffix(".")) for flag in result.flags],
        plot=svg(lambda: drawn(result, alpha, None, None, width=_WIDTH, captioned=False)) if pictured else "",
        alt=alternative(result, alpha),
        caption=caption(result, alpha),
        columns=[(clean(label), clean(words)) for label, words in _reading(result, seen, level, alpha)],
        dashes=any(DASH in row for row in seen.rows),
        privacy=_privacy(result),
        target=clean(result.target),
        intervals_for=clean(result.intervals_for),
        legend=[(clean(label), clean(words).removesuffix(".")) for label, words in legend],
        release=clean(result.release_sha256),
        version=__version__,
    )


_WIDTH = 5.2  # inches of a picture of rows on the page


def _reading(result: Shown, seen: View, level: str, alpha: float) -> Iterator[tuple[str, str]]:
    """How to read the columns: the family's words, or those of the kind; both ends of an interval in one line."""
    moved = ", less the bound on the bias (below)" if bias_words(result) else ""
    example = _example(result, seen, level)
    words = {
        "estimate": f"is the estimate. Estimand: {result.target}.",
        "std_err": "is its standard error: sampling error, because the records are a sample, and the noise that was added for privacy.",
        "statistic": f"is the estimate over its standard error{moved}.",
        "p": "is the probability of a statistic at least as far from zero, if the true value is zero.",
        "interval": f"is the {level} interval, from its lower to its upper end.{example}",
        "share": "is the part of the squared margin of error that is privacy noise. A large share falls with a larger budget or more "
        "records; a small share means that privacy cost little here.",
    }
    ends = 0
    for column, head in zip(seen.columns, seen.heads, strict=True):
        said = column.words or words.get(column.kind, "")
        if column.kind == "interval":
            ends += 1
            if ends % 2:
                continue
            head = interval_head(result, column, alpha)
        if said:
            yield head, said


def _privacy(result: Shown) -> dict[str, Any]:
    guarantee = result.guarantee
    return {
        "protected": _protected(guarantee),
        "relation": result.relation,
        "relation_words": clean(relation_words(guarantee)),
        "level": clean(guarantee.describe()),
        "meaning": clean(plain_words(guarantee)),
        "requested": clean(str(result.requested)),
        "guarantee": clean(str(guarantee)),
        "approx": clean(approx_words(guarantee, requested=result.requested)),
        "trust": _TRUST.get(guarantee.trust, clean(guarantee.trust)),
        "assumptions": [clean(assumption) for assumption in guarantee.assumptions],
    }


_TRUST = {
    "central": "the data steward has the records and adds the noise; readers of the release need not be trusted",
    "local": "noise is added before a record leaves its owner; no one else need be trusted",
}


def _protected(guarantee: Guarantee) -> str:
    """Who is protected: one row, or all rows of a unit when the guarantee says how many those are."""
    if several_rows(guarantee):
        return "All rows of one unit together, for example of one person, if no unit has more rows than assumed below."
    if guarantee.unit == "record":
        return (
            "One record, which is one row of the data. If each person has one row, a person is protected; "
            "if a person has several, each row is protected, but not all of them together."
        )
    return f"One {clean(guarantee.unit)} of the data."


def _example(result: Shown, seen: View, level: str) -> str:
    """The first answered row of the table read aloud; empty when there are no intervals."""
    estimate, low, share = (seen.first(kind) for kind in ("estimate", "interval", "share"))
    if not result.has_intervals or estimate is None or low is None:
        return ""
    answered = [place for place in chosen(seen.names) if seen.rows[place][estimate] != DASH]
    if not answered:
        return ""
    name, cells = seen.names[answered[0]], seen.rows[answered[0]]
    noise = (
        ""
        if share is None or cells[share] == DASH
        else f"; {cells[share]} of the squared margin of error is privacy noise"
    )
    ends = f"{cells[low]} to {cells[low + 1]}"
    return f" For example, the estimate for {name} is {cells[estimate]}, and its {level} interval is {ends}{noise}."


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
