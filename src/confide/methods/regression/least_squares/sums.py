"""Where the scores of a least-squares regression are limited: as high as the noise allows, from noisy histograms of their sizes.

A limit R on |v r| costs noise of SD R/mu_b on b, and what it removes is a bias that no interval shows. So R is set where the estimated
excess, sum (|v r| - R)^+, is 0.3 of b's own SD. Beyond the last edge that can be counted tails are assumed to fall at least like
|s|^-3.5. Where no record of the public box can exceed a limit, nothing is assumed. All of it is post-processing.

A few extreme records decide the bias. A limit takes k (S - R) from k of them at size S, which add sqrt(k) S to b's own SD. So five to
ten already shift an interval by its length, while a noisy number shows k above k_0 only, some SDs of its noise. One cell has the least
noise: a sum of m cells has sqrt(m) times as much. So the histogram has fine cells up to the least limit R_0, which only measure. Beyond
it cells are three times as wide, because there it matters whether anyone is there. Records in a cell of this kind are believed from an
error of 5% on. Where there are none that costs width in one release of twenty, up to noise as large as b's own SD. More is asked before
a limit may cost more. The squares that the meat's limit removes there are added to it.

In which coordinates the scores of a least-squares regression are limited: a metric v = M z that costs least noise for every
coefficient.

Gaussian noise on b = sum v r costs in proportion to the longest |v r|. So M should make all records about equally long and all
coefficients about equally well known. Full whitening does not: an indicator of a rare level has |v|^2 = 1/share there. The smallest sum
of variances under a bound on max |v| has the diagonal weights

    f_k^2 prop. s_k for the cells of a factor (s_k: shares of its levels),   f_j^2 prop. 1/m_j for other columns (m_j: their longest),

on columns that are centered, divided by their SDs and decorrelated by the symmetric root of their correlations. The largest factor is
there as its one-hot cells, instead of the intercept and its indicators. All of it is post-processing of noisy numbers; no bound rests
on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import inf, sqrt

import numpy as np

from confide._arrays import Array
from confide.methods.regression.sums.whitened_rows import Frame
from confide.schema import ModelMatrix
from confide.schema.formulas.terms import factor_name
from confide.sums.coding import Box

Cell = tuple[int, int]

# No share of a level is taken to be below this: its cell would be given weight that its records cannot use.
_RARE = 1e-3
# Eigenvalues of a correlation matrix below this are rounding.
_SINGULAR = 1e-9


@dataclass(frozen=True)
class Layout:
    """The terms of a design by kind, as places among the terms: factors (the largest first), and the rest.

    A factor is a group of indicators of which at most one is 1: the levels of a categorical column, or of a product of these columns.
    Or it is one column of zeros and ones. separate: places among the factors of those whose columns are in no other term.
    """

    terms: int
    factors: tuple[tuple[int, ...], ...]
    numeric: tuple[int, ...]
    separate: frozenset[int] = frozenset()

    @classmethod
    def of(cls, design: ModelMatrix) -> Layout:
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
        """(M_0, R2): the metric before anything is known, shape (p, p), and its bound on |M_0 z|^2 in units of half the public box's width.

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
        """The centered rows of each group: cells of the main factor (or the intercept), other factors, the rest."""
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

    longest: about the mean of |v|^2 in the level where it is largest. The width is k = p but where cells are excluded: the last p - k
    coordinates are then 0 for every record that is not.
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


def _separate(design: ModelMatrix, group: tuple[int, ...]) -> bool:
    """Whether the columns of a factor stand in no other term."""
    own = {column for place in group for column in design.terms[place].columns}
    return not any(own & set(term.columns) for place, term in enumerate(design.terms) if place not in group)


#: Edges of the histogram of |v|, in sqrt(F2).
LEVERAGE_EDGES = (1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 12.0)
# Edges of the histogram of |v r| in typical sizes, sigma sqrt(F2): fine ones, and beyond the least limit so many, each three times as far.
_FINE = tuple(2.0 ** (k / 2) for k in range(-4, 17))
_WIDER = 3.0
#: How many edges of the histogram of |v r| are wide ones.
OUTER = 4

# How fast tails are taken to fall beyond the last edge that can be counted; for the meat, whose square weighs them more, slower.
USUAL_INDEX, _MEAT_INDEX = 3.5, 3.0
#: Records are taken to lie beyond an edge where their noisy count is above this many sds of its noise; beyond the third of the outer
#: edges, where one record weighs most, above the second.
CERTAIN, _BEYOND_DOUBT = 3.0, 4.5
# Of scores: a lump far out that is missed costs the interval, one that is not there only width. So less is asked where the limit costs
# no more noise on b than so many sds of its sampling, and more where it costs more. The first is an error of 5 % where nobody is.
# The fine edges are many, and little is lost beyond them: there the second is the least.
_LIKELY, _SEEN = 1.6, 2.25
_STEPS = ((_LIKELY, 1.0), (_SEEN, 1.5), (CERTAIN, 4.0), (_BEYOND_DOUBT, inf))
# The least limit: noise of b in its own sds, and in typical sizes. (This and _BIAS: widths on the designs of
# confide_lab/benchmarks/least_squares.py.)
_LEAST_NOISE, _LEAST_SIZE = 0.4, 3.0
# Nor do the outer edges begin before so many typical sizes: few scores of ordinary skewed errors are beyond, and what they lose is little.
_OUTER_SIZE = 5.0
# What the cap of |v|^2 may take from A where more would cost noise, and where it would cost none: up to this part of what is afforded.
_CUT, _BARELY, _FREE = 0.05, 0.002, 0.125
# The least reach of q, in sds of residuals.
_LEAST_REACH = 3.5
# The rounds overstate sigma where their noise is large, up to twice.
_TRUSTED = 0.5
# Bias of b in its own sds that a limit may cause, and how much wider than the cheapest release one without any limit may be.
_BIAS, _UNLIMITED = 0.3, 1.1
# What a histogram shows whatever is believed, measured once.
_MEASURED = ("beyond", "noise", "first", "_seen", "_cells")
# Public combinations of levels and corners of numeric features that are gone through one by one.
_COMBINATIONS, _CORNERS = 3_000, 6


@dataclass(frozen=True)
class Maxima:
    """What no record of the public box exceeds: |v|^2, |v| |r| and |r|."""

    leverage: float
    score: float
    residual: float


def public_maxima(design: ModelMatrix, layout: Layout, frame: Frame) -> Maxima:
    """`Maxima` of the frame's coordinates and line.

    |v|^2 and |r| are largest at corners of the box; the levels of a factor exclude each other. Where the corners are too many each
    coordinate of v is bounded separately.
    """
    public_middle, public_half = Box.of(design).arrays
    middle, half = frame.box.arrays
    centre = np.concatenate([[1.0], (public_middle - middle) / half])
    radius = np.concatenate([[0.0], public_half / half])
    starts, rest = _level_rows(layout, centre, radius)
    coordinates = np.column_stack([frame.matrix, frame.line])
    signs = np.array(list(product((-1.0, 1.0), repeat=len(rest)))) if len(rest) <= _CORNERS else None
    longest, far = np.zeros(len(starts)), np.zeros(len(starts))
    numeric = [1 + j for j in rest]
    if signs is None:
        at = starts @ coordinates
        reach = radius[numeric] @ np.abs(coordinates[numeric])
        longest = ((np.abs(at) + reach)[:, :-1] ** 2).sum(axis=1)
        far = np.abs(at[:, -1]) + reach[-1]
    else:
        moves = (signs * radius[numeric]) @ coordinates[numeric]
        for i, start in enumerate(starts @ coordinates):
            corners = start + moves
            longest[i] = (corners[:, :-1] ** 2).sum(axis=1).max()
            far[i] = np.abs(corners[:, -1]).max()
    # a hair more, for the floats and the grid
    hair = 1 + 1e-6
    residual = (1 + far) * hair
    return Maxima(
        float(longest.max() * hair**2),
        float((np.sqrt(longest) * hair * residual).max()),
        float(residual.max()),
    )


def line_range(design: ModelMatrix, layout: Layout, frame: Frame) -> tuple[float, float]:
    """The least and the largest that the line of a frame can be in the public box, a hair more for the floats."""
    public_middle, public_half = Box.of(design).arrays
    middle, half = frame.box.arrays
    starts, rest = _level_rows(
        layout,
        np.concatenate([[1.0], (public_middle - middle) / half]),
        radius := np.concatenate([[0.0], public_half / half]),
    )
    numeric = [1 + j for j in rest]
    at, reach = starts @ frame.line, float(radius[numeric] @ np.abs(frame.line[numeric]))
    low, high = float(at.min()) - reach, float(at.max()) + reach
    hair = 1e-6 * max(abs(low), abs(high), 1.0)
    return low - hair, high + hair


def _level_rows(layout: Layout, centre: Array, radius: Array) -> tuple[Array, tuple[int, ...]]:
    """z at every combination of levels with all other features at the middle of their box; the terms that are still free."""
    places = [(-1, *range(len(factor))) for factor in layout.factors]
    if np.prod([float(len(place)) for place in places]) > _COMBINATIONS:
        return centre[None, :], tuple(range(layout.terms))
    rows = np.tile(centre, (int(np.prod([len(place) for place in places])), 1))
    for row, chosen in zip(rows, product(*places), strict=True):
        for factor, level in zip(layout.factors, chosen, strict=True):
            for k, j in enumerate(factor):
                row[1 + j] += radius[1 + j] * (1.0 if k == level else -1.0)
    return rows, layout.numeric


def score_edges(typical: float, count: float, coordinates: int, mu: float) -> tuple[float, ...]:
    """Edges of the histogram of |v r|, the last `OUTER` of them from about the least limit on.

    typical: sigma sqrt(F2); count: of records; coordinates p; mu: of b for one record.

    >>> [round(edge, 2) for edge in score_edges(1.0, 2_000.0, 3, 0.5)[-5:]]
    [4.0, 5.16, 15.49, 46.48, 139.43]
    """
    first = max(_OUTER_SIZE, _LEAST_NOISE * min(mu, 1.0) * sqrt(count / coordinates))
    return tuple(
        typical * edge for edge in (*(e for e in _FINE if e < first), *(first * _WIDER**k for k in range(OUTER)))
    )


@dataclass(frozen=True, eq=False)
class Tail:
    """A noisy histogram of sizes: counts (k + 1,), edges (k,), and the SD of a count's noise.

    believed: from how many SDs on records are believed; outer: how many of the last edges are outer ones, beyond which one cell alone
    is asked.
    """

    counts: Array
    edges: Array
    sd: float
    believed: float = CERTAIN
    outer: int = 0

    @cached_property
    def beyond(self) -> Array:
        """About how many records lie beyond each edge, with noise, (k,)."""
        return np.asarray(np.cumsum(self.counts[::-1])[::-1][1:])

    @cached_property
    def noise(self) -> Array:
        """The SD of `beyond`, (k,)."""
        return np.asarray(np.sqrt(np.arange(len(self.edges), 0, -1)) * self.sd)

    @cached_property
    def first(self) -> int:
        """The place of the first outer edge."""
        return len(self.edges) - self.outer

    @cached_property
    def _seen(self) -> Array:
        """How many SDs of the noise records beyond each edge are seen with, (k,): at extreme sizes they may fill one cell alone."""
        seen = self.beyond / self.noise
        seen[self.first :] = np.maximum(seen[self.first :], self.counts[self.first + 1 :] / self.sd)
        return np.asarray(seen)

    @cached_property
    def reliable(self) -> Array:
        """Which edges are exceeded by more records than noise would show: what lies beyond a later edge lies beyond this one too."""
        seen = self._seen
        own = seen >= self.believed
        if self.outer:
            own[: self.first] &= seen[: self.first] >= _SEEN
            own[self.first + 2 :] &= seen[self.first + 2 :] >= _BEYOND_DOUBT
        return np.asarray(np.logical_or.accumulate(own[::-1])[::-1])

    def believing(self, believed: float) -> Tail:
        """The same histogram, records believed from so many SDs on."""
        if believed == self.believed:
            return self
        other = replace(self, believed=believed)
        vars(other).update({name: getattr(self, name) for name in _MEASURED})
        return other

    @cached_property
    def _cells(self) -> list[tuple[float, float, float]]:
        """(edge, middle of the cell beyond it, its count, 0 at the least) of each edge; the last cell is assumed to be like the one
        before.

        Plain numbers: `excess` goes through them often, and arrays of a few numbers are slow element by element.
        """
        edges, counts = self.edges.tolist(), self.counts.tolist()
        wide = [b / a for a, b in pairwise(edges)]
        middles = [(1 + w) / 2 * edge for w, edge in zip([*wide, *(wide[-1:] or [1.0])], edges, strict=True)]
        return [(edge, middle, max(count, 0.0)) for edge, middle, count in zip(edges, middles, counts[1:], strict=True)]

    @cached_property
    def _trusted(self) -> int:
        """How many edges, from the first on, are exceeded by records that are believed."""
        return int(self.reliable.sum())

    def excess(self, limit: float, power: float, index: float, top: float) -> float:
        """About sum (s^power - limit^power)^+ over records, sizes at most `top`."""
        total = 0.0
        last = -1
        for k, (edge, middle, count) in enumerate(self._cells[: self._trusted]):
            if edge <= limit:
                last = k
            else:
                total += count * max(min(middle, top) ** power - limit**power, 0.0)
        if last >= 0:
            edge = self._cells[last][0]
            reach = max(top**power - limit**power, 0.0)
            if index > power:
                reach = min(reach, edge**power * power / (index - power) * (edge / limit) ** (index - power))
            total += max(self._beyond(last), 0.0) * reach
        return total

    def moment(self, limit: float, power: float) -> float:
        """About sum min(s, limit)^power over the records beyond the first edge that are believed."""
        return float(sum(count * min(middle, limit) ** power for _, middle, count in self._cells[: self._trusted]))

    def _beyond(self, place: int) -> float:
        """How many records lie beyond an edge: beyond an outer one at least those of the next cell, which alone may have shown them."""
        return float(max(self.beyond[place], self.counts[place + 1] if place >= self.first else self.beyond[place]))

    def root_mean_square(self, count: float, top: float) -> float:
        """Of the sizes, from the cells above their noise; at most `top`."""
        middles = np.concatenate(
            [[0.6 * self.edges[0]], np.sqrt(self.edges[:-1] * self.edges[1:]), [1.2 * self.edges[-1]]]
        )
        # a noisy cell far out weighs much: only those before which records are certain
        certain = np.concatenate([[True], self.believing(CERTAIN).reliable])
        seen = np.where(certain & (self.counts > 2 * self.sd), self.counts, 0.0)
        return min(sqrt(float(seen @ middles**2) / count), top)


@dataclass(frozen=True)
class Levels:
    """mu of each part for one record, as its noise is: the bound of a record's part over the SD."""

    gram: float
    cross: float
    square: float
    meat: float


@dataclass(frozen=True)
class Limits:
    """R, R_A, R_M and the reach of q, with what they rest on.

    kappa: how much of A the cap of |v|^2 removes at most, as a share; sampling: the SD of a coordinate of b without noise; scale: of a
    residual.

    cut: about what R_M takes from each coordinate of the meat; lost: about what its reach takes from q.
    """

    score: float
    leverage: float
    meat: float
    square: float
    kappa: float
    sampling: float
    scale: float
    cut: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True, eq=False)
class Sizes:
    """What limits follow from: a metric's F2, f^2 (p,), the residual SD, the count of records, the histograms and the maxima.

    spread : float
        How many times as large as a record's the limited scores are, which belong to units where several rows count.
    heavy : float
        E omega^2/E omega of records that count by weights omega, `count` being the sum of these.
    least : float
        Of the score's limit in typical sizes of a record of omega = 1, where some of these may be too few to be seen.
    """

    weights: Array
    sigma: float
    count: float
    tail: Tail
    leverage: Tail | None
    maxima: Maxima
    levels: Levels
    spread: float = 1.0
    heavy: float = 1.0
    least: float = 0.0

    def limits(self, rare: float | None = None, *, unlimited: bool = False) -> Limits:
        """The limits. unlimited: nothing is limited but what the meat and q measure.

        rare: the estimated number of records with the rarer of two public values of the response, None for other responses.
        """
        size = float(self.weights.sum())
        spread, number = self.spread * self.heavy, self.count / self.heavy
        typical = self.sigma * sqrt(size) * spread
        # the histogram measures what the rounds only guess
        seen = max(self.tail.root_mean_square(number, self.maxima.score), _TRUSTED * typical)
        typical, scale = min(typical, seen), seen / spread / sqrt(size)
        sampling = scale * spread * sqrt(size / len(self.weights)) * sqrt(number)
        leverage, kappa = (self.maxima.leverage, 0.0) if unlimited else self._leverage(size)
        score = max(self._score(typical, sampling), min(self.least * scale * sqrt(size), self.maxima.score))
        if rare is not None and rare < 2 * CERTAIN * self.tail.noise[0]:
            score = max(score, min(self.maxima.score, self.maxima.residual * sqrt(leverage)))
        score = self.maxima.score if unlimited else self._or_none(score, sampling)
        square = self.maxima.residual if unlimited else self._square(scale)
        meat = self._meat(typical, sampling, score)
        return Limits(
            score, leverage, meat, square, kappa, sampling, scale, self._cut_squares(meat), self._lost(square)
        )

    def _square(self, scale: float) -> float:
        """The reach of q: to where it costs little relative to sampling, and until what it takes is a small part of q's own SD."""
        mu, top = self.levels.square, self.maxima.residual
        reach = scale * max(_LEAST_REACH, (mu**2 * self.count / 2) ** 0.25)
        length = self._length
        while reach < top:
            fourth = 3 * scale**4 * self.count + self.tail.moment(reach * length, 4.0) / length**4
            if self._lost(reach) <= _BIAS * sqrt((reach**2 / mu) ** 2 + fourth):
                break
            reach *= 2**0.25
        return float(min(reach, top))

    def _lost(self, reach: float) -> float:
        """About sum (r^2 - reach^2)^+: sizes of scores are taken for those of residuals times the usual length of v."""
        if reach >= self.maxima.residual:
            return 0.0
        return float(self.tail.excess(reach * self._length, 2.0, USUAL_INDEX, self.maxima.score) / self._length**2)

    @property
    def _length(self) -> float:
        """About how many times as large as residuals scores are."""
        return sqrt(float(self.weights.sum())) * self.spread * self.heavy

    def _cut_squares(self, meat: float) -> float:
        """Of the squares of scores, those beyond the meat's limit, by coordinate, where an outer cell is likely not empty.

        A tail that ends before is drawn too far by any power, and the meat holds most of it.
        """
        likely = self.tail.believing(_LIKELY)
        if not likely.reliable[likely.first :].any():
            return 0.0
        return likely.excess(meat, 2.0, USUAL_INDEX, self.maxima.score) / len(self.weights)

    def _or_none(self, score: float, sampling: float) -> float:
        """The largest score of the public box instead of the limit, where that costs little."""
        top, mu = self.maxima.score, self.levels.cross
        cheap = sqrt((top / mu) ** 2 + sampling**2) <= _UNLIMITED * sqrt((score / mu) ** 2 + sampling**2)
        return top if cheap else min(score, top)

    def _score(self, typical: float, sampling: float) -> float:
        """R: what is believed counts up to a width that is afforded, what is certain at any."""
        mu = self.levels.cross
        limit = max(_LEAST_SIZE * typical, _LEAST_NOISE * min(mu, 1.0) * sampling)
        for believed, afforded in reversed(_STEPS):
            wanted = self._enough(limit, sampling, self.tail.believing(believed))
            limit = max(limit, min(wanted, afforded * mu * sampling))
        return limit

    def _enough(self, limit: float, sampling: float, tail: Tail) -> float:
        """The smallest limit from here on whose excess is a small part of the SD of b."""
        mu, top = self.levels.cross, self.maxima.score
        while limit < top and tail.excess(limit, 1.0, USUAL_INDEX, top) > _BIAS * sqrt((limit / mu) ** 2 + sampling**2):
            limit *= 2**0.25
        return min(limit, top)

    def _leverage(self, size: float) -> tuple[float, float]:
        """(R_A, kappa)."""
        top = self.maxima.leverage
        gram = float((1 / self.weights).max() * (1 / self.weights).sum())
        afforded = 0.35 * self.count * self.levels.gram / sqrt(2 * gram)
        cap = min(2 * size, top)
        # R squared is as far off as A; next to no noise for next to no cut, and all that coefficients bear for a cut that matters to them
        for most, part in ((afforded * _FREE, _BARELY), (afforded, _CUT)):
            while cap < min(most, top) and self._cut(cap) > part * self.count * size:
                cap = min(cap * 2**0.5, most, top)
        if cap >= top:
            return top, 0.0
        return cap, self._cut(cap) / (self.count * size)

    def _cut(self, cap: float) -> float:
        assert self.leverage is not None
        return self.leverage.excess(sqrt(cap), 2.0, USUAL_INDEX, sqrt(self.maxima.leverage))

    def _meat(self, typical: float, sampling: float, score: float) -> float:
        variance = sampling**2 + (score / self.levels.cross) ** 2
        most = min(max(2.5 * typical, sqrt(0.25 * self.levels.meat * variance)), score)
        limit = min(2.5 * typical, most)
        aim = 0.02 * len(self.weights) * variance
        while limit < most and self.tail.excess(limit, 2.0, _MEAT_INDEX, self.maxima.score) > aim:
            limit = min(limit * 2**0.25, most)
        return limit
