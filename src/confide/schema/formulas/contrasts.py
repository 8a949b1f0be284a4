"""Which levels of a categorical factor get a column, so that no column of the model is a sum of others.

A factor f of a term T is coded by contrasts (all levels but the first) where the span of T without f is in the model
already, and with one indicator per level where it is not: `1 + g` has the levels but the first, `0 + g` all levels,
`x + x:g` slopes against the first level, `x:g` one slope per level. This is R's marginality rule. Where R's form of it
makes columns that add up to others (`1 + g:h`), a term is divided into several codings that together span the same and
nothing twice: an analysis with noise has no use for columns that cannot be told apart.

Source: N. J. Smith, patsy, "Redundancy and categorical factors" (the algorithm behind statsmodels' formulas).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

from confide.schema.formulas.expression import Expression

__all__ = ["Coding", "codings"]

# The categorical factors of a coding, and whether each has all of its levels.
Coding: TypeAlias = dict[Expression, bool]


def codings(
    terms: Sequence[tuple[Expression, ...]], categorical: frozenset[Expression], *, intercept: bool
) -> list[list[Coding]]:
    """For each term, in order, the codings that it adds to the span of the terms before it.

    A term without categorical factors has the one empty coding; a term that adds nothing has none.
    """
    # what is spanned already: for each set of numeric factors, the sets of categorical factors coded by contrasts
    spanned: dict[frozenset[Expression], set[frozenset[Expression]]] = {
        frozenset(): {frozenset()} if intercept else set()
    }
    result = []
    for term in terms:
        labels = [factor for factor in term if factor in categorical]
        before = spanned.setdefault(frozenset(term) - categorical, set())
        fresh = [
            subset
            for size in range(len(labels) + 1)
            for subset in combinations(labels, size)
            if frozenset(subset) not in before
        ]
        before.update(frozenset(subset) for subset in fresh)
        result.append(_joined([dict.fromkeys(subset, False) for subset in fresh]))
    return result


def _joined(parts: list[Coding]) -> list[Coding]:
    """Join a coding with one that has one contrast factor more: together they are that factor with all of its levels."""
    while (pair := _pair(parts)) is not None:
        short, long = pair
        (more,) = parts[long].keys() - parts[short].keys()
        parts[long] = {factor: parts[long][factor] or factor == more for factor in parts[long]}
        del parts[short]
    return parts


def _pair(parts: list[Coding]) -> tuple[int, int] | None:
    for short in range(len(parts)):
        for long in range(short + 1, len(parts)):
            if len(parts[long]) == len(parts[short]) + 1 and parts[short].items() <= parts[long].items():
                return short, long
    return None
