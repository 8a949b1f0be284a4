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
import numpy as np
from markupsafe import Markup

from confide._helpers import clean, severity
from confide._version import __version__
from confide.guarantees import Guarantee
from confide.guarantees.plain_words import plain_words
from confide.results.pages.content import (
    INTERCEPT,
    Column,
    approx_words,
    bias_words,
    box,
    boxed,
    flag_words,
    level_words,
    privacy_line,
    relation_words,
    several_rows,
)
from confide.results.pages.plots import alternative, caption, chosen, drawn, nothing
from confide.results.pages.table import DASH, Document, View, cells_of, environment, interval_head, view
from confide.schema.formulas.names import level_text

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
        boxed=boxed(result),
        sentence=clean(_sentence(result, seen, level)),
        level=level,
        status=result.status,
        box=box(result),
        published=result.published,
        intervals=result.has_intervals,
        status_words=clean(result.status_said),
        flags=[
            (clean(flag.replace("_", " ")), clean(flag_words(flag)).removesuffix("."))
            for flag in result.flags
            if severity(flag) == "note"
        ],
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
_LEVEL = re.compile(r"([^:\[\]]+)\[T\.(.*)\]")


def _sentence(result: Shown, seen: View, level: str) -> str:
    """The first feature that is a level, or the difference of two groups, in one sentence; "" where there is neither."""
    kinds, what = [one.kind for one in seen.columns], result.axis.removeprefix("difference in ")
    if not result.has_intervals or not {"estimate", "interval"} <= set(kinds) or box(result) == "alarm":
        return ""
    names, at, low = [str(name) for name in seen.columns[0].values], kinds.index("estimate"), kinds.index("interval")
    schema, odds = getattr(getattr(result, "design", None), "schema", None), result.title.partition(": ")[2]
    if schema is None:  # a test
        if len(names) != 3 or names[2] != f"{names[0]} - {names[1]}":
            return ""
        place, group, same = 2, seen.heads[0], ""
        first, base, what = names[0], names[1], odds.removesuffix(f" by {group}")
    else:
        levels = [(k, found) for k, name in enumerate(names) if (found := _LEVEL.fullmatch(name))]
        levels = [(k, found) for k, found in levels if found[1] in schema.columns]
        features = list(dict.fromkeys(found[1] if (found := _LEVEL.fullmatch(name)) else name for name in names))
        ratio = bool(result.ratio_name and odds)
        if not levels or any(":" in name for name in features) or not (ratio or what != result.axis):
            return ""
        place, (group, first), base = levels[0][0], levels[0][1].groups(), schema.columns[levels[0][1][1]].levels[0]
        others = [name for name in features if name not in (group, INTERCEPT)]
        same = f", at the same {listed(others)}" if others else ""
        if ratio:
            cells = seen.rows[place]
            said = f"the {odds} {'are' if odds.startswith('odds') else 'is'} {cells[at]} times as high"
            if DASH in (cells[at], cells[low]):
                return ""
            interval = f"{level} CI {cells[low]} to {cells[low + 1]}"
            return f"{said} where {group} is {first} as where it is {base}{same} ({interval})"
    gap, least, most = (float(seen.columns[k].values[place]) for k in (at, low, low + 1))
    if not np.isfinite([gap, least, most]).all() or gap == 0:
        return ""
    sign = -1 if gap < 0 else 1
    crosses = least <= 0 <= most
    ends = (least, most) if crosses or sign > 0 else (-most, -least)
    told = [Column("estimate", [abs(gap)]), *(Column("ci", [end], "interval") for end in ends)]
    size, below, above = cells_of(result, told, 0)
    interval = f"{level} CI {'of the difference ' if crosses else ''}{below} to {above}"
    higher = f"{size} {'lower' if sign < 0 else 'higher'}"
    return f"{what} is {higher} where {group} is {first} than where it is {base}{same} ({interval})"


def listed(names: Sequence[str]) -> str:
    """Names joined by "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _reading(result: Shown, seen: View, level: str, alpha: float) -> Iterator[tuple[str, str]]:
    """How to read the columns: the family's words, or those of the kind; both ends of an interval in one line."""
    moved = ", less the bound on the bias (below)" if bias_words(result) else ""
    example = _example(result, seen, level)
    words = {
        "estimate": f"is the estimate. Estimand: {level_text(result.target)}.",
        "std_err": "is its standard error: sampling error, because the records are a sample, and the noise that was added for privacy.",
        "statistic": f"is the estimate over its standard error{moved}.",
        "p": "is the probability of a statistic at least as far from zero, if the true value is zero."
        if result.ratio_name not in seen.heads
        else "is the probability of a ratio at least as far from 1, on the log scale, if the true ratio is 1.",
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
        "line": clean(privacy_line(result)),
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
