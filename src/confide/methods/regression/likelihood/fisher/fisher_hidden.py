"""Levels whose directions the last information leaves hidden in its noise: held at the line before, so that they cannot hide the rest.

A level here is any cell of the design (`evidence.cells`): a level of a factor, a value of a column of two, a cell of their products, all
records. A released A must be inverted, and a level with hardly any record, or hardly any event, is a direction in which A is noise alone:
every coefficient would go with it. With c'z = 1 at level L and 0 elsewhere, d = T^-1 c is that direction in u: along it the log-odds of
L's records change and those of no other record, and so do only the coefficients that hang on L. With a slope of its own (f * x) a level
has more such directions, and is held along all of them. The last step is taken in the space S of all
directions at right angles to the d's held (an orthonormal basis, so that the noise of A_SS and g_S is what it was). The coordinates u have
second moments I, hence sum u_S over the records of L is about nothing, and

    g_S = A_SS delta_S + sum_L rho u_S + noise,   rho = P(y = 1) - p: how far the line before is off along L's own direction.

The mean of rho over L meets that sum; what is left is its variation about the mean. By Cauchy and Schwarz c'delta_S moves by at most
(correlation) n_L sd(rho) |A_SS^-1 c_S|, with the moments of u_S within L those of all records. The interval is widened by that bound with
a correlation of 1/2 (`left_out.CORRELATED`), a spread of 1/2, the largest that shares have, times the span of the family (1 of the logit),
and n_L with one sd of its noise, which also pays for the noise in T. Which levels are held follows from A and counts, never from the
score: no answer is chosen by its value. All of it is post-processing of noisy numbers. The idea of the identity is that of Frisch, Waugh
1933; Lovell 1963.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.rows import Box
from confide.methods.regression.evidence.cells import DesignCell, design_cells
from confide.methods.regression.evidence.left_out import CORRELATED
from confide.schema import Design

__all__ = ["Held", "Level", "level_of", "levels_of"]


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


def levels_of(design: Design, box: Box) -> list[Level]:
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
class Held:
    """The levels held at the line before, and an orthonormal basis of S, (k, k - held): the identity where none is."""

    levels: tuple[Level, ...]
    basis: Array

    @classmethod
    def of(cls, gram: Array, sd: float, transform: Array, moments: Array, levels: Sequence[Level]) -> Held:
        """The fewest-informed rare levels, one after the other, until A stands above its noise; none where that does not help.

        gram, sd: the last noisy A and the noise on its diagonal; transform: T; moments: of z per record, all (k, k).
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
        """The bound for each coefficient, (k,). moved: |A_SS^-1 c_S| (k,); counts, sds: of the levels' records, and of their noise; span:
        between what limits rho lies, of the family.
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
