"""Levels of factors with too few records for any noise: their records are excluded from the last sums, so that they cannot hide the rest.

A released Gram matrix A must be inverted, and a level with hardly any record is a direction in which A is noise alone: every
coefficient is lost with it. Its indicator takes up the mean of its records, whatever that is. So the records of level L enter the
other coefficients by what varies within the level, and excluding them moves these by little. K are the other records. A tilde marks what is
measured from the level's own means, S = sum v~ v~' over a set of records, and e the residuals of the line of all records. Then

    (S_K + S_L) theta = S_K theta_K + sum_L v~ v~' theta_L,   so that   theta - theta_K = S_K^-1 sum_L v~ e.

By Cauchy and Schwarz a coefficient c'theta moves by at most rho n_L s q^(1/2). Here n_L is the number of records, s^2 and q are the
means of e^2 and of (c'S_K^-1 v~)^2 within the level, and rho is their correlation there. The coefficient's standard error without noise
is s (n q)^(1/2). Relative to it, that is rho n_L/n^(1/2). The interval is widened by it (`SparseLevels.bias`), with s and q those of
all records and rho = 1/2. Whatever the mean of the level is, nothing else is assumed of it; a level that can be told has no allowance,
as its records stay.

Which levels are excluded follows from noisy counts of the rounds, which are public. The maps of the sums drop a record by its own level
alone, so that every sensitivity stands. Source of the identity: Frisch, Waugh 1933; Lovell 1963.

How many records each level of a categorical column has, with the noise of a release, from totals of the features.

A feature is 1 at its level and 0 elsewhere, x = C + H x~, so that its total is C sum w + H sum w x~. Where every level but one has a
feature, the last one's count is sum w less the others. The first column of a Gram matrix holds these totals. With symmetric noise of SD
S on the diagonal and S/sqrt(2) off it, A b has the noise covariance (S^2/2)(|b|^2 I + b b').
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.sandwich import USABLE, Sandwich
from confide.methods.regression.least_squares.sums import Cell, Layout
from confide.methods.regression.sums.whitened_rows import Round
from confide.results.base import LevelCount, level_remarks
from confide.schema import Categorical, ModelMatrix
from confide.schema.formulas.terms import Indicator
from confide.sums.coding import Box

# R_A in multiples of F2, where limits usually put it; and how large a demand of a level is left to the release.
_CAP, _DEMAND = 2.0, 1.0
# No level with more than this part of the records is left out.
_RARE = 0.1
# A level is seen with this many sds of its count's noise.
_SEEN = 3.5
# Less than this part of the largest number is rounding.
_ROUNDING = 1e-9
#: Within a level left out, residuals are taken to correlate with what moves a coefficient by at most this.
CORRELATED = 0.5


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Noisy numbers of records in each cell of a layout, (cells,), the variances of their noise (cells,), and of all records."""

    counts: Array
    variances: Array
    records: float

    @classmethod
    def of(cls, done: Round, layout: Layout) -> CellCounts:
        """As a round's Gram matrix says: sum (c'z)^2 or sum c'z, c'z = 1 in the cell and 0 elsewhere, whichever has less noise."""
        rows = np.linalg.solve(done.frame.matrix, layout.cell_rows(tuple(layout.cells)).T).T
        one, size = done.axis, (rows**2).sum(axis=1)
        square = np.einsum("ij,jk,ik->i", rows, done.gram, rows), done.sd_gram**2 * size**2
        total = rows @ done.gram @ one, done.sd_gram**2 / 2 * (size * float(one @ one) + (rows @ one) ** 2)
        better = square[1] <= total[1]
        return cls(np.where(better, square[0], total[0]), np.where(better, square[1], total[1]), done.count)

    def joined(self, other: CellCounts) -> CellCounts:
        """With another round's, weighted by their precision; the number of all records is the other's."""
        own, its = 1 / self.variances, 1 / other.variances
        return replace(other, counts=(own * self.counts + its * other.counts) / (own + its), variances=1 / (own + its))


@dataclass(frozen=True, eq=False)
class SparseLevels:
    """Levels whose records are excluded: cells of a layout, their noisy numbers of records with SDs, and about how many records would do.

    `rows` are what a release keeps of it: (place of the factor, cell, count, SD, enough).
    """

    cells: tuple[Cell, ...]
    counts: Array
    sds: Array
    enough: Array

    @classmethod
    def of(cls, layout: Layout, counted: CellCounts, mu: float) -> SparseLevels | None:
        """The largest demand first, until no other level is expected to be hidden by the noise of A; None for none.

        mu: of the sum A. Cells with many records stay, one of each factor does, and all where its columns stand in further terms.
        """
        cells, left = tuple(layout.cells), list[int]()
        while layout.separate:
            demand = _demand(layout, counted, mu, left)
            for k, (place, _) in enumerate(cells):
                kept = [j for j, (other, _) in enumerate(cells) if other == place and j not in left]
                rare = counted.counts[k] < _RARE * counted.records
                if place not in layout.separate or len(kept) == 1 or not rare:
                    demand[k] = 0.0
            worst = int(np.argmax(demand))
            if demand[worst] <= _DEMAND:
                break
            left.append(worst)
        if not left:
            return None
        would_do = np.array([_enough(layout, counted, mu, left, k) for k in left])
        return cls(tuple(cells[k] for k in left), counted.counts[left], np.sqrt(counted.variances[left]), would_do)

    @classmethod
    def from_rows(cls, rows: Array) -> SparseLevels:
        """From what a release keeps."""
        return cls(tuple((int(place), int(cell)) for place, cell in rows[:, :2]), *rows[:, 2:5].T)

    @property
    def rows(self) -> Array:
        """(cells, 5)."""
        return np.column_stack([np.array(self.cells, dtype=np.float64), self.counts, self.sds, self.enough])

    def needed_by(self, matrix: Array, layout: Layout) -> list[int]:
        """The places of the coefficients, rows of matrix (k, p) on the line in z, that are nothing without these records."""
        # a coefficient of the line on the other records alone is one that no multiple of (c'z = 0) changes
        parts = np.abs(matrix @ layout.cell_rows(self.cells).T)
        return list(map(int, np.flatnonzero((parts > _ROUNDING * np.abs(matrix).max(axis=1)[:, None]).any(axis=1))))

    def bias(self, s: Sandwich, metric: Array, factors: tuple[tuple[int, ...], ...]) -> Array:
        """By how much each coefficient may move, (k,): rho n_L s q^(1/2), factor by factor; metric: M (p, p).

        q: of the features outside the factor; n_L: the noisy numbers of records plus one SD.
        """
        kept = len(s.gram)
        back = np.linalg.inv(metric)[:, :kept]
        moments = back @ s.gram @ back.T / s.count
        moments -= np.outer(moments[:, 0], moments[:, 0])
        weights, moved = s.spread @ metric[:kept], np.zeros(len(s.spread))
        places = np.array([place for place, _ in self.cells])
        for place in np.unique(places):
            own = places == place
            other = [j for j in range(1, len(metric)) if j - 1 not in factors[place]]
            square = np.einsum("ij,jk,ik->i", weights[:, other], moments[np.ix_(other, other)], weights[:, other])
            count = max(float(self.counts[own].sum()), 0.0) + sqrt(float((self.sds[own] ** 2).sum()))
            moved += CORRELATED * count * np.sqrt(s.s2 * np.maximum(square, 0.0))
        return moved


def _enough(layout: Layout, counted: CellCounts, mu: float, left: Sequence[int], cell: int) -> float:
    """About how many records a cell left out would need to be told beside those that stay."""
    others, low, high = [k for k in left if k != cell], 0.0, 64 * max(counted.records, 1.0)
    for _ in range(40):
        counts = np.array(counted.counts)
        counts[cell] = (low + high) / 2
        told = _demand(layout, replace(counted, counts=counts), mu, others)[cell] <= _DEMAND
        low, high = (low, counts[cell]) if told else (counts[cell], high)
    return high


def smallest_level(layout: Layout, records: float, mu: float) -> float:
    """About how many of so many records a level must have to be told beside even ones; 0 without factors. mu: of the sum A."""
    cells = tuple(layout.cells)
    places = np.array([place for place, _ in cells], dtype=np.int64)
    even = records / np.maximum(np.bincount(places, minlength=1)[places], 1)
    # counts of rounds are certain beside what A needs
    counted = CellCounts(even, np.full(len(cells), 1e-9), records)
    return max((_enough(layout, counted, mu, [k], k) for k in range(len(cells))), default=0.0)


def _demand(layout: Layout, counted: CellCounts, mu: float, left: list[int]) -> Array:
    """How many times as many records each cell is expected to need, (cells,), as `Sandwich.demand` from a diagonal A."""
    place = np.array([place for place, _ in layout.cells])
    kept = np.array([k not in left for k in range(len(place))])
    noise = np.sqrt(counted.variances)
    # a count below nothing asks for most
    counts = np.maximum(counted.counts, 1e-3 * noise)
    size, longest = len(layout.numeric) / 2, 0.0
    known, trace = np.zeros(len(place)), 2 * len(layout.numeric) / counted.records
    for factor in range(len(layout.factors)):
        own = kept & (place == factor)
        inverse = np.maximum(counted.counts[own], 2 / mu).sum() / np.maximum(counted.counts[own], 2 / mu)
        if factor:
            inverse = np.maximum(inverse - 1, 0.0)
            inverse[np.argmin(inverse)] = 0.0
        if not (length := sqrt(float(inverse.sum()))):
            continue
        # as in `Layout.metric`: f^2 = length/inverse, |v|^2 = length for a record of the cell
        size += length * float((1 / inverse[inverse > 0]).sum())
        longest = max(longest, length)
        known[own] = 1 / (counts[own] * length)
        trace += float(known[own][inverse > 0].sum())
    cap = max(_CAP * size, size + longest)
    hidden = cap / mu / USABLE * np.sqrt(known * trace / 2 + known**2 / 2)
    return np.asarray(np.where(kept, np.maximum(hidden, _SEEN * noise / counts), 0.0))


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
    design: ModelMatrix,
    totals: tuple[Array, Array],
    *,
    box: Box | None = None,
    keep: Sequence[int] | None = None,
    counted: str = "DP count",
    laplace: bool = False,
) -> str:
    """The levels whose number of records does not exceed its noise, as what follows in a reason; "" where there are none.

    counted: what the count is called; the others as in `counted_levels`.
    """
    found = counted_levels(design, totals, box=box, keep=keep, laplace=laplace)
    return level_remarks((one for one in found if not one.seen), counted)


def counted_levels(
    design: ModelMatrix,
    totals: tuple[Array, Array],
    *,
    box: Box | None = None,
    keep: Sequence[int] | None = None,
    laplace: bool = False,
) -> list[LevelCount]:
    """The estimated number of records of every level that follows from the features.

    totals: sum w z (p,) and its noise covariance (p, p), z = (1, x~) measured from `box`, the public bounds when not given.

    keep: indices of the terms in the table, all when not given; a column without a feature among them is not looked at.

    laplace: the totals' noise is Laplace's.
    """
    middle, half = (box or Box.of(design)).arrays
    values, noise = totals
    return [
        LevelCount(column, level, float(weights @ values), sqrt(max(float(weights @ noise @ weights), 0.0)), laplace)
        for column, level, weights in _levels(design, middle, half, keep)
    ]


def base_levels(design: ModelMatrix) -> dict[str, str]:
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


def _levels(
    design: ModelMatrix, middle: Array, half: Array, keep: Sequence[int] | None
) -> Iterator[tuple[str, str, Array]]:
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
