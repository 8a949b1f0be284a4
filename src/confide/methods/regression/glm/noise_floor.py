"""Levels whose directions the last information leaves hidden in its noise: held at the line before, so that they cannot hide the rest.

A level here is any cell of the design (`evidence.cells`): a level of a factor, a value of a column of two, a cell of their products,
all records. A released A must be inverted. A level with hardly any record, or hardly any event, is a direction in which A is noise
alone: every coefficient would be lost with it. With c'z = 1 at level L and 0 elsewhere, d = T^-1 c is that direction in u. The log-odds
of L's records change along it, and those of no other record. Only the coefficients that depend on L change. With its own slope (f * x)
a level has more of these directions, and is held along all of them. The last step is in the space S of all directions at right angles
to the d's held (an orthonormal basis, so that the noise of A_SS and g_S is what it was). The coordinates u have second moments I, hence
sum u_S over the records of L is about nothing, and

    g_S = A_SS delta_S + sum_L rho u_S + noise,   rho = P(y = 1) - p: how far the line before is off along L's direction.

The mean of rho over L meets that sum; what remains is its variation about the mean. By Cauchy and Schwarz c'delta_S moves by at most
(correlation) n_L SD(rho) |A_SS^-1 c_S|, with the moments of u_S within L those of all records. The interval is widened by that bound.
It has a correlation of 1/2 (`sparse_levels.CORRELATED`) and a spread of 1/2, the largest that shares have, times the span of the family
(1 of the logit). Its n_L is one SD of its noise larger, which also pays for the noise in T. Which levels are held follows from A and
counts, never from the score: no answer is chosen by its value. All of it is post-processing of noisy numbers. The idea of the identity
is that of Frisch, Waugh 1933; Lovell 1963.

The last step of Fisher scoring beyond first order: what the score would be at the new line, as made points say.

A and g are sums at the line before the step. The step A^-1 g is the root of the score in first order. Where the mean bends much within
it, as an exponential does, the step goes too far. For example, a rate that is e^d times as large is reached by d, and the step is e^d -
1. Let the mean be m(eta), its slope s, and h the information. The score at eta of a line whose root is at eta + u'delta is

    F(delta) = sum u (h/s)(eta) (m(eta + u'delta) - m(eta)),      F'(0) = sum h u u',

so that g = A delta + (F(delta) - F'(0) delta). The bracket comes from made points (`draw`) for as many records, and the equation is
solved by Newton's steps. It is of second order in delta, and so is what the points get wrong. A + F'(delta) - F'(0) is the information
at the new line. Points count as records do in A and g, with weight min(1, D/N). A bracket of full weights with sums of less may leave
no root. All of it is post-processing.

What a table of log-odds says of coefficients that it does not answer, and of the assumption behind those it does.

Directions of separation: along which the line may move without end, since no record stands against it.

Albert, Anderson 1984: the likeliest coefficients are infinite where a direction d has x'd >= 0 at all records with the outcome, <= 0 at
all without, and not 0 at all. Of counts: x'd = 0 at all records that count something, and <= 0 at the others. Records stand against d
otherwise, and where they are next to none the line cannot be told from one without end. So for each coefficient a direction is looked
for that moves it and has the fewest records against it. With the noisy numbers of both outcomes at every distinct row of the matrix,
this is the linear program

    min  sum over rows of ones (-x'd)+ + zeros (x'd)+     where d_j is 1, or -1

(of counts ones |x'd|), numbers below 0 as 0. The records against what it finds are counted. Their number has the noise of as many
cells, and is asked for as that of a level is (`reading`). A direction that belongs to a level is left to it, because its number has
less noise. Post-processing of noisy numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import later
from confide.methods.regression.evidence.cells import DesignCell, cell_words, design_cells
from confide.methods.regression.evidence.sample_size_advice import plain, summary_text
from confide.methods.regression.evidence.sparse_levels import CORRELATED, base_levels
from confide.methods.regression.glm.fisher_families import Family
from confide.schema import ModelMatrix
from confide.sums.coding import Box

# No level with more than this part of the records is held.
_RARE = 0.1
# The largest standard deviation of a share between 0 and 1.
_SPREAD = 0.5
# Less than this part of the largest is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Level:
    """A cell of the design in coordinates: c'z = 1 there and 0 elsewhere, (k,); along: c and whatever else vanishes elsewhere, (k, m)."""

    cell: DesignCell
    weights: Array
    along: Array

    @property
    def column(self) -> str:
        """What it is a level of; "" where it is all records."""
        return self.cell.column

    @property
    def name(self) -> str:
        return self.cell.name


def levels_of(design: ModelMatrix, box: Box) -> list[Level]:
    """Every level that follows from the features."""
    return [level_of(one, box) for one in design_cells(design)]


def level_of(cell: DesignCell, box: Box) -> Level:
    """A cell in the coordinates of a box."""
    middle, half = box.arrays
    # terms are middle + half z
    to_z = np.diag(np.concatenate([[1.0], half]))
    to_z[0, 1:] = middle
    return Level(cell, to_z @ cell.weights, to_z @ cell.along)


@dataclass(frozen=True, eq=False)
class UnidentifiedLevels:
    """The levels held at the line before, and an orthonormal basis of S, (k, k - held): the identity where none is."""

    levels: tuple[Level, ...]
    basis: Array

    @classmethod
    def of(
        cls, gram: Array, sd: float, transform: Array, moments: Array, levels: Sequence[Level]
    ) -> UnidentifiedLevels:
        """The fewest-informed rare levels, one after the other, until A exceeds its noise; none where that does not help.

        gram, `sd`: the last noisy A and the noise on its diagonal; transform: T; moments: of z per record, all (k, k).
        """
        k, chosen = len(gram), list[int]()
        basis, directions = np.eye(k), _directions(transform, levels)
        while np.linalg.eigvalsh(basis.T @ gram @ basis)[0] < sd * sqrt(2 * basis.shape[1]):
            found = _least(gram, basis, directions, [*_open(levels, chosen, moments)])
            if found is None:
                return cls((), np.eye(k))
            chosen.append(found)
            basis = _others([directions[j] for j in chosen])
            if not basis.shape[1]:
                return cls((), np.eye(k))
        return cls(tuple(levels[j] for j in chosen), basis)

    def beside(self, transform: Array, levels: Sequence[Level]) -> Array:
        """A basis of what is at right angles to these levels, too."""
        return _others(_directions(transform, [*self.levels, *levels]))

    def bias(self, moved: Array, counts: Array, sds: Array, span: float = 1.0) -> Array:
        """The bound for each coefficient, (k,). moved: |A_SS^-1 c_S| (k,).

        counts, `sds`: of the levels' records, and of their noise; span: between what limits rho lies, of the family.
        """
        return np.asarray(CORRELATED * _SPREAD * span * float((np.maximum(counts, 0.0) + sds).sum()) * moved)


def _open(levels: Sequence[Level], chosen: list[int], moments: Array) -> list[int]:
    """The levels that may still be held: rare ones, and never the last of a column."""
    left = [j for j in range(len(levels)) if j not in chosen]
    columns = [levels[j].column for j in left]
    return [j for j in left if columns.count(levels[j].column) > 1 and float(levels[j].weights @ moments[0]) < _RARE]


def _least(gram: Array, basis: Array, directions: Sequence[Array], among: list[int]) -> int | None:
    """The one of these with the least information per squared length, in the space of `basis`."""
    values = {}
    for j in among:
        left, sizes, _ = np.linalg.svd(basis @ (basis.T @ directions[j]), full_matrices=False)
        own = left[:, sizes > 1e-6]
        if own.shape[1]:
            values[j] = float(np.linalg.eigvalsh(own.T @ gram @ own)[0])
    return min(values, key=lambda j: values[j]) if values else None


def _directions(transform: Array, levels: Sequence[Level]) -> list[Array]:
    """T^-1 of what each level is along, (k, m) each."""
    return [np.asarray(np.linalg.solve(transform, one.along)) for one in levels]


def _others(directions: Sequence[Array]) -> Array:
    """An orthonormal basis of what is at right angles to the columns."""
    left, sizes, _ = np.linalg.svd(np.hstack(directions))
    # a level may follow from others: all of a column do from the intercept
    return np.asarray(left[:, int((sizes > _ROUNDING * sizes.max(initial=1e-300)).sum()) :])


_STEPS = 20
_ENOUGH = 1e-10
# Points move by at most so much along the line.
_FAR = 3.0


def settled(
    gram: Array, cross: Array, first: Array, u: Array, eta: Array, counts: Array, family: Family
) -> tuple[Array, Array]:
    """(delta (k,), the change of A (k, k)); first and zeros where Newton's steps fail. first: A^-1 g; u (points, k), eta (points,).

    counts: how many records, with their weights, a point stands for, (points,).
    """
    slope = family.slope(eta)
    weight = counts * family.information(eta) / np.maximum(slope, 1e-300)
    here = family.mean(eta)

    def bent(delta: Array) -> tuple[Array, Array]:
        moved = np.clip(u @ delta, -_FAR, _FAR)
        own = weight * (family.mean(eta + moved) - here - slope * moved)
        change = weight * (family.slope(eta + moved) - slope)
        return u.T @ own, (u.T * change) @ u

    delta = first
    try:
        for _ in range(_STEPS):
            second, change = bent(delta)
            step = np.linalg.solve(gram + change, cross - gram @ delta - second)
            delta = delta + step
            if float(step @ step) < _ENOUGH:
                change = bent(delta)[1]
                if np.linalg.eigvalsh(gram + change)[0] > 0:
                    return delta, np.asarray((change + change.T) / 2)
                break
    except np.linalg.LinAlgError:
        pass
    return first, np.zeros_like(gram)


# Levels that a sentence names; half of a 95 % interval in sds.
_NAMED, _NORMAL = 6, 1.96


def held_words(
    design: ModelMatrix,
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
        "the other coefficients are answered, and their intervals allow for it"
        if told
        else "they may move every slope, so that none has an interval; join these levels with others, or ask for more records "
        "or a larger budget"
    )
    words = [f"too few records to estimate: {named}; {others}"]
    base = base_levels(design)
    first = dict.fromkeys(one.column for one in held if base.get(one.column) == one.name)
    return [*words, summary_text(list(first))] if first else words


def safe_words(sds: float) -> str:
    """The sentence where no answered feature has bounds that reach too far.

    >>> safe_words(7.0)[:60]
    "no answered feature's bounds reach beyond 7 standard deviati"
    """
    return (
        f"no answered feature's bounds reach beyond {sds:g} standard deviations; so down-weighted records are assumed to move no "
        "coefficient"
    )


def assumed_words(names: Sequence[str], most: float, price: float, *, squared: bool = True) -> str:
    """The sentence on what is assumed of down-weighted records. price: the width with residuals of 1, in that of the interval.

    squared: whether squared residuals are counted (logit), or their sizes in units of the largest one.

    >>> assumed_words(["a", "b"], 0.15, 3.21)
    'assumed for a, b: down-weighted records have a mean residual of at most their mean squared one, which is counted, and at most 0.15
    where noise hides it. Intervals include the bias; without this assumption (at most 1) they are 3.2 times as wide'
    """
    size = "squared one" if squared else "size of one"
    return (
        f"assumed for {', '.join(names)}: down-weighted records have a mean residual of at most their mean {size}, which is counted, and "
        f"at most {most:g} where noise hides it. Intervals include the bias; without this assumption (at most 1) they are "
        f"{'about the same width' if price < 1.1 else f'{plain(price)} times as wide'}"
    )


optimize = later("scipy.optimize")


# Along a direction of largest entry 1 rows that move less are taken not to.
_DIRECTION_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Against:
    """The direction that moves a coefficient and has the fewest records against it.

    moved: which rows it moves; count: of records against it; `sd`: of its noise.
    """

    place: int
    moved: NDArray[np.bool_]
    count: float
    sd: float


def least_against(rows: Array, counts: Array, sd: float, known: Sequence[Array], *, of_counts: bool) -> list[Against]:
    """For each coefficient and sign, without the directions that are known.

    rows (m, k); counts (m, 2): records with an outcome of 0, and with another one, with noise of this SD; of_counts: whether outcomes
    are counts.

    known: what is 1 at the rows of a level and 0 elsewhere, (m,) each.
    """
    m, k = rows.shape
    unit = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)
    zeros, ones = np.maximum(counts, 0.0).T
    # x'd = up - down
    price = np.concatenate([np.zeros(k), zeros + (ones if of_counts else 0.0), ones])
    split = np.hstack([unit, -np.eye(m), np.eye(m)])
    found: list[Against] = []
    for place in range(k):
        for sign in (1.0, -1.0):
            bounds: list[tuple[float | None, float | None]] = [(None, None)] * k + [(0.0, None)] * (2 * m)
            bounds[place] = (sign, sign)
            done = optimize.linprog(price, A_eq=split, b_eq=np.zeros(m), bounds=bounds, method="highs")
            if done.status:
                continue
            along = unit @ (done.x[:k] / np.abs(done.x[:k]).max())
            up, down = along > _DIRECTION_ROUNDING, along < -_DIRECTION_ROUNDING
            moved = up | down
            if not moved.any() or _is_known(along, moved, known):
                continue
            against = np.stack([up, moved if of_counts else down], axis=1)
            found.append(Against(place, moved, float(counts[against].sum()), sd * sqrt(float(against.sum()))))
    return found


def _is_known(along: Array, moved: NDArray[np.bool_], known: Sequence[Array]) -> bool:
    """Whether a direction is a level's own."""
    size = along[moved]
    return bool(np.ptp(size) < _DIRECTION_ROUNDING) and any(
        (moved == (np.abs(one) > _DIRECTION_ROUNDING)).all() for one in known
    )
