"""What a table of log-odds says of coefficients that it does not answer, and of the assumption behind those it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from confide.methods.regression.evidence.cells import cell_words
from confide.methods.regression.evidence.level_counts import base_levels
from confide.methods.regression.evidence.needs import first_words, plain
from confide.methods.regression.likelihood.fisher.fisher_hidden import Level
from confide.schema import Design

__all__ = ["assumed_words", "held_words", "safe_words"]

# Levels that a sentence names; half of a 95 % interval in sds.
_NAMED, _NORMAL = 6, 1.96


def held_words(
    design: Design,
    held: Sequence[Level],
    counts: NDArray[np.float64],
    sds: NDArray[np.float64],
    *,
    told: bool,
) -> list[str]:
    """The sentences on levels that the last step could not tell, with about how many records each has; none for none.

    told: whether other coefficients are answered.
    """
    if not held:
        return []
    given = [
        f"{cell_words(one.column, one.name)} (about {max(count, 0.0):.0f} ± {_NORMAL * sd:,.0f})"
        for one, count, sd in zip(held, counts, sds, strict=True)
    ]
    named = ", ".join(given[:_NAMED]) + (f" and {len(given) - _NAMED} more" if len(given) > _NAMED else "")
    others = (
        "the other coefficients are told beside them, and their intervals allow for it"
        if told
        else "what they may move leaves no slope an interval; join such levels with others, or ask for more records or a larger budget"
    )
    words = [f"too few records to be told: {named}; {others}"]
    base = base_levels(design)
    first = dict.fromkeys(one.column for one in held if base.get(one.column) == one.name)
    return [*words, first_words(list(first))] if first else words


def safe_words(halves: float) -> str:
    """The sentence where no answered feature has far bounds.

    >>> safe_words(5.0)[:66]
    "no answered feature's bounds reach beyond 5 half-widths of its pri"
    """
    return (
        f"no answered feature's bounds reach beyond {halves:g} half-widths of its private range, or {halves:g} standard deviations where "
        "far records have made that range wide, so that records that count less are taken to move no coefficient"
    )


def assumed_words(names: Sequence[str], most: float, price: float, *, squared: bool = True) -> str:
    """The sentence on what is assumed of records that count less. price: the width with residuals of 1, in that of the interval; squared:
    whether squared residuals are counted (logit), or their sizes in units of the largest one.

    >>> assumed_words(["a", "b"], 0.15, 3.21)
    'assumed for a, b: records that count less have a mean residual of at most their mean squared one, which is counted, and at most 0.15 where the noise of that count hides it; the bias is in the intervals; without that (at most 1) they are 3.2 times as wide'
    """  # noqa: E501
    size = "squared one" if squared else "size of one"
    return (
        f"assumed for {', '.join(names)}: records that count less have a mean residual of at most their mean {size}, which is counted, and "
        f"at most {most:g} where the noise of that count hides it; the bias is in the intervals; without that (at most 1) they are "
        f"{'about the same width' if price < 1.1 else f'{plain(price)} times as wide'}"
    )
