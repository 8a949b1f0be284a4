"""Counts by the noise that is wanted, `Counts("region * age", precision={"total": 5, "1-way": 5, "2-way": 3})`, at the least budget.

The wishes are standard deviations of the noise of a cell, by marginal; no number of records is needed, and nothing tells of one. The
shares of the marginals are those of the least mu^2 at which every wish is met (`Strategy.for_precision`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from math import inf, sqrt
from typing import Any

from confide._text import near_match
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.guarantees.validation import is_number
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.strategy import Strategy

__all__ = ["checked_precision", "least_mu", "precise_strategy"]

_LEAST, _MOST = 1e-50, 1e50
_EXAMPLE = 'write cf.tables.Counts("region * smoker", precision={"total": 5, "1-way": 5, "2-way": 3})'


def checked_precision(precision: Any, *, weights: Any) -> None:
    """Raise `PlanError` for what names no noise, and beside weights, whose noise is in other units."""
    if precision is None:
        return
    numbers = isinstance(precision, Mapping) and all(
        is_number(sd) and _LEAST <= sd <= _MOST for sd in precision.values()
    )
    if not numbers or not precision:
        raise PlanError(
            f"precision names standard deviations of the noise of counts, from {_LEAST:g} to {_MOST:g}, got {precision!r}; {_EXAMPLE}"
        )
    if weights is not None:
        raise PlanError(
            f"precision is of counts without weights, got weights={weights!r}; leave one of them out, or use accuracy="
        )


def precise_strategy(layout: Layout, precision: Mapping[str, float], *, known: bool = False) -> Strategy:
    """The shares at which the wishes cost least. known: the number of records is public."""
    return _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[0]


def least_mu(
    layout: Layout, precision: Mapping[str, float], squared_sensitivity: float, *, known: bool = False
) -> float:
    """The smallest mu, rounded up in the sixth digit, whose noise is at most what is wished."""
    need = _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[1]
    return sqrt(need * squared_sensitivity) * (1 + 1e-6)


@lru_cache(maxsize=64)
def _best(
    sizes: tuple[int, ...], closure: tuple[Axes, ...], targets: tuple[tuple[Axes, float], ...], known: bool
) -> tuple[Strategy, float]:
    return Strategy.for_precision(sizes, closure, dict(targets), known=known)


def _targets(layout: Layout, precision: Mapping[str, float]) -> tuple[tuple[Axes, float], ...]:
    """The largest noise variance of each marginal that has a wish; "2-way" stands for all crossings of two that are shown."""
    titles = {layout.crossing.title(axes): axes for axes in layout.shown}
    ways = {f"{len(axes)}-way" for axes in layout.shown if axes}
    found: dict[Axes, float] = {}
    for name, sd in precision.items():
        way = re.fullmatch(r"([1-9]\d*)-way", name)
        if name not in titles and name not in ways:
            known = tuple(dict.fromkeys((*titles, *sorted(ways))))
            raise PlanError(
                f"precision names {name!r}, which the table does not show{near_match(name, known)}; it shows: {', '.join(known)}"
            )
        for axes in (
            [titles[name]] if name in titles else [one for one in layout.shown if way and len(one) == int(way[1])]
        ):
            found[axes] = min(float(sd) ** 2, found.get(axes, inf))
    left = [layout.crossing.title(axes) for axes in layout.maximal if axes not in found]
    if left:
        raise PlanError(f"precision says nothing of {', '.join(left)}, which would get no budget; {_EXAMPLE}")
    return tuple(sorted(found.items()))
