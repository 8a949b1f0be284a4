"""In which coordinates the scores of a least-squares line are limited: a metric v = M z that is cheapest in noise for every coefficient.

Gaussian noise on b = sum v r costs in proportion to the longest |v r|, so that M should make all records about equally long and all
coefficients about equally well known. Full whitening does not: an indicator of a rare level has |v|^2 = 1/share there. The smallest sum
of variances under a bound on max |v| has the diagonal weights

    f_k^2 prop. s_k for the cells of a factor (s_k: shares of its levels),   f_j^2 prop. 1/m_j for other columns (m_j: their longest),

on columns that are centred, divided by their sds and decorrelated by the symmetric root of their correlations. The largest factor stands
as its one-hot cells, in place of the intercept and its indicators. All of it is post-processing of noisy numbers; no bound rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.schema import Design
from confide.schema.formulas.term import Indicator, Term

__all__ = ["Cell", "Layout", "Metric", "factor_name", "floored_moments"]

Cell = tuple[int, int]

# No share of a level is taken to be below this: its cell would be given weight that its records cannot use.
_RARE = 1e-3
# Eigenvalues of a correlation matrix below this are rounding.
_SINGULAR = 1e-9


@dataclass(frozen=True)
class Layout:
    """The terms of a design by kind, as places among the terms: factors (the largest first), and the rest.

    A factor is a group of indicators of which at most one is 1: the levels of a categorical column, or of a product of such columns;
    or one column of zeros and ones. separate: places among the factors of those whose columns stand in no other term.
    """

    terms: int
    factors: tuple[tuple[int, ...], ...]
    numeric: tuple[int, ...]
    separate: frozenset[int] = frozenset()

    @classmethod
    def of(cls, design: Design) -> Layout:
        """The layout of a design with an intercept."""
        groups: dict[str, list[int]] = {}
        for place, term in enumerate(design.terms):
            if term.binary:
                groups.setdefault(factor_name(term), []).append(place)
        factors = sorted((tuple(group) for group in groups.values()), key=lambda group: -len(group))
        taken = {place for group in factors for place in group}
        return cls(
            len(design.terms),
            tuple(factors),
            tuple(place for place in range(len(design.terms)) if place not in taken),
            frozenset(place for place, group in enumerate(factors) if _separate(design, group)),
        )

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell of every factor: (its place, 0 for the level without an indicator, k for the k-th indicator)."""
        return ((place, k) for place, factor in enumerate(self.factors) for k in range(len(factor) + 1))

    def cell_rows(self, cells: Sequence[Cell]) -> Array:
        """Rows c with c'z = 1 for records in a cell and 0 for others, (cells, p)."""
        rows = [self._cells(self.factors[place])[k] for place, k in cells]
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.terms + 1)

    def indicators(self, cell: Cell) -> tuple[tuple[int, ...], bool]:
        """(terms, present): a record lies in the cell where any of these terms is 1, or (present False) where none is."""
        place, k = cell
        return (self.factors[place], False) if k == 0 else ((self.factors[place][k - 1],), True)

    def start(self) -> tuple[Array, float]:
        """(M_0, R2): the metric before anything is known, shape (p, p), and its bound on |M_0 z|^2 in the public box's half-widths.

        One-hot cells of the largest factor, 0/1 indicators of other factors with more than two levels, z of everything else.
        """
        rows = np.eye(self.terms + 1)
        if self.factors:
            main, *others = self.factors
            rows[[0, *(1 + j for j in main)]] = self._cells(main)
            for factor in others:
                if len(factor) > 1:
                    rows[[1 + j for j in factor]] = self._cells(factor)[1:]
        return rows, 1.0 + max(len(self.factors) - 1, 0) + len(self.numeric) / 3

    def _cells(self, factor: tuple[int, ...]) -> Array:
        """Rows in z of a factor's one-hot cells, (levels, p): the reference level first. An indicator d has z = 2 d - 1."""
        rows = np.zeros((len(factor) + 1, self.terms + 1))
        for k, j in enumerate(factor, start=1):
            rows[k, 0] = rows[k, 1 + j] = 0.5
        rows[0] = np.eye(self.terms + 1)[0] - rows[1:].sum(axis=0)
        return rows

    def metric(self, moments: Array, least: float, without: Sequence[Cell] = ()) -> Metric:
        """The metric of released second moments of z per record, (p, p), moments[0, 0] = 1; least: no level's share counts below it.

        without: cells that no record has; coordinates that are 0 for the others stand in their place, last, without a weight.
        """
        blocks = list(self._blocks(moments, max(least, _RARE), frozenset(without)))
        rows = np.vstack([block.rows for block in blocks])
        weights = np.concatenate([block.weights for block in blocks])
        spread = rows @ moments @ rows.T
        if self.factors:
            cells = len(blocks[0].rows)
            # a record lies in one cell
            spread[:cells, :cells] = np.diag(blocks[0].shares)
        sd = np.sqrt(np.maximum(np.diag(spread), _SINGULAR))
        values, vectors = np.linalg.eigh(spread / np.outer(sd, sd))
        root = (vectors / np.sqrt(np.maximum(values, _SINGULAR + max(-2 * values[0], 0.0)))) @ vectors.T
        matrix = np.sqrt(weights)[:, None] * (root @ (rows / sd[:, None]))
        return Metric(
            np.vstack([matrix, self.cell_rows(without)]),
            weights,
            np.concatenate([block.support for block in blocks]),
            self._longest(matrix, moments[:, 0], without) + float(weights.sum()),
        )

    def _longest(self, matrix: Array, mean: Array, without: Sequence[Cell]) -> float:
        """The largest |v|^2 of a record with the means of all features but of one factor, of which it has one level."""
        longest = 0.0
        for place, k in self.cells:
            if (place, k) not in without:
                at, factor = np.array(mean), self.factors[place]
                at[[1 + j for j in factor]] = [1.0 if 1 + j == k else -1.0 for j in range(len(factor))]
                longest = max(longest, float(((matrix @ at) ** 2).sum()))
        return longest

    def _blocks(self, moments: Array, least: float, without: frozenset[Cell] = frozenset()) -> Iterator[_Block]:
        """The centred rows of each group: cells of the main factor (or the intercept), other factors, the rest."""
        p = self.terms + 1
        if not self.factors:
            yield _Block(np.eye(p)[:1], np.ones(1), np.ones(1), np.ones(1))
        for place, factor in enumerate(self.factors):
            cells = self._cells(factor)[[k for k in range(len(factor) + 1) if (place, k) not in without]]
            shares = np.maximum(cells @ moments[:, 0], least)
            shares = shares / shares.sum()
            if place == 0:
                yield _Block(cells, sqrt(float((1 / shares).sum())) * shares, shares, shares)
                continue
            own = np.arange(len(shares)) != int(np.argmax(shares))
            if not own.any():
                continue
            longest = (1 - shares[own]) / shares[own]
            centred = cells[own] - shares[own][:, None] * np.eye(p)[0]
            yield _Block(centred, sqrt(float(longest.sum())) / longest, 1 / (longest + 1), shares[own])
        for j in self.numeric:
            row = np.eye(p)[[1 + j]]
            row[0, 0] -= moments[0, 1 + j]
            yield _Block(row, np.full(1, 0.5), np.full(1, 1 / 3), np.ones(1))


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows (k, p) of one group, f^2 of each, the share of the records that a coefficient rests on, the shares of levels."""

    rows: Array
    weights: Array
    support: Array
    shares: Array


@dataclass(frozen=True, eq=False)
class Metric:
    """M (p, p), v = M z; f^2 of each coordinate (k,), whose sum is about the mean of |v|^2; the share of records each rests on (k,).

    longest: about the mean of |v|^2 in the level where it is largest. k = p but where cells are left out: the last p - k coordinates are
    0 for every record that is not.
    """

    matrix: Array
    weights: Array
    support: Array
    longest: float

    @property
    def size(self) -> float:
        """F2 = sum f^2."""
        return float(self.weights.sum())


def floored_moments(gram: Array, transform: Array, count: float, noise: float) -> Array:
    """Second moments of z per record, (p, p) with 1 in the corner, from a noisy Gram matrix of u = transform' z.

    noise: what no eigenvalue of gram/count falls below, in the coordinates of the release.
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2 / count)
    floored = (vectors * np.maximum(values, noise)) @ vectors.T
    back = np.linalg.inv(transform)
    moments = back.T @ floored @ back
    return np.asarray((moments + moments.T) / 2 / moments[0, 0])


def _separate(design: Design, group: tuple[int, ...]) -> bool:
    """Whether the columns of a factor stand in no other term."""
    own = {column for place in group for column in design.terms[place].columns}
    return not any(own & set(term.columns) for place, term in enumerate(design.terms) if place not in group)


def factor_name(term: Term) -> str:
    """A term without its levels: "region" for "region[T.S]", "age:region" for "age:region[T.S]", "age" for "age"."""
    return ":".join(part.column if isinstance(part, Indicator) else part.name for part in term.parts)
