"""How many records each level of a categorical column has, with the noise of a release: totals of the features say it.

A feature is 1 at its level and 0 elsewhere, x = C + H x~, so that its total is C sum w + H sum w x~; where every level but one has a
feature, the last one's count is sum w less the others. The first column of a Gram matrix holds these totals: with symmetric noise of sd
S on the diagonal and S/sqrt(2) off it, A b has the noise covariance (S^2/2)(|b|^2 I + b b').
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.rows import Box
from confide.results.levels import LevelCount, level_remarks
from confide.schema import Categorical, Design
from confide.schema.formulas.term import Indicator

__all__ = ["base_levels", "counted_levels", "totals_of_gram", "unseen_levels"]


def totals_of_gram(gram: Array, sd: float, transform: Array | None = None) -> tuple[Array, Array]:
    """Totals of z = (1, x~), shape (p,), and their noise covariance (p, p), from a noisy Gram matrix of u = transform' z.

    >>> totals, noise = totals_of_gram(np.array([[9.0, 2.0], [2.0, 9.0]]), 2.0)
    >>> totals.tolist(), noise.tolist()
    ([9.0, 2.0], [[4.0, 0.0], [0.0, 2.0]])
    """
    p = len(gram)
    back = np.eye(p) if transform is None else np.linalg.inv(transform)
    one = back[:, 0]  # one'u = 1 for every record
    noise = sd**2 / 2 * (float(one @ one) * np.eye(p) + np.outer(one, one))
    return back.T @ gram @ one, back.T @ noise @ back


def unseen_levels(
    design: Design,
    totals: tuple[Array, Array],
    *,
    box: Box | None = None,
    keep: Sequence[int] | None = None,
    counted: str = "noisy count",
    laplace: bool = False,
) -> str:
    """The levels whose noisy count does not stand above its noise, as what follows in a reason; "" where there are none.

    counted: what the count is called; the others as in `counted_levels`.
    """
    found = counted_levels(design, totals, box=box, keep=keep, laplace=laplace)
    return level_remarks((one for one in found if not one.seen), counted)


def counted_levels(
    design: Design,
    totals: tuple[Array, Array],
    *,
    box: Box | None = None,
    keep: Sequence[int] | None = None,
    laplace: bool = False,
) -> list[LevelCount]:
    """The noisy count of every level that follows from the features.

    totals: sum w z (p,) and its noise covariance (p, p), z = (1, x~) measured from `box`, the public bounds when left out. keep: indices
    of the terms in the table, all when left out; a column without a feature among them is not looked at.
    laplace: the totals' noise is Laplace's.
    """
    middle, half = (box or Box.of(design)).arrays
    values, noise = totals
    return [
        LevelCount(column, level, float(weights @ values), sqrt(max(float(weights @ noise @ weights), 0.0)), laplace)
        for column, level, weights in _levels(design, middle, half, keep)
    ]


def base_levels(design: Design) -> dict[str, str]:
    """Column -> the one level of it that has no feature, with which the coefficients of the others compare."""
    found: dict[str, set[int]] = {}
    for term in design.terms:
        if len(term.parts) == 1 and isinstance(part := term.parts[0], Indicator):
            found.setdefault(part.column, set()).add(part.position)
    columns = {name: column for name in found if isinstance(column := design.schema[name], Categorical)}
    left = {
        name: [place for place in range(column.steps) if place not in found[name]] for name, column in columns.items()
    }
    return {name: columns[name].levels[places[0]] for name, places in left.items() if len(places) == 1}


def _levels(design: Design, middle: Array, half: Array, keep: Sequence[int] | None) -> Iterator[tuple[str, str, Array]]:
    """(column, level, c) with c'z = 1 at the level and 0 elsewhere, for every level whose count follows from the features."""
    found: dict[str, dict[int, int]] = {}
    for j, term in enumerate(design.terms):
        if len(term.parts) == 1 and isinstance(part := term.parts[0], Indicator):
            found.setdefault(part.column, {})[part.position] = j
    whole = np.eye(len(design.terms) + 1)[0]
    for name, places in found.items():
        column = design.schema[name]
        if not isinstance(column, Categorical) or not (keep is None or set(keep) & set(places.values())):
            continue
        own = {place: middle[j] * whole + half[j] * np.eye(len(whole))[1 + j] for place, j in places.items()}
        rest = [place for place in range(column.steps) if place not in own]
        if len(rest) == 1:
            own[rest[0]] = whole - sum(own.values())
        for place in sorted(own):
            yield name, column.levels[place], own[place]
