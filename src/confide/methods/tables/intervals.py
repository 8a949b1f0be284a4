"""Intervals of table cells: Poisson counts, Wilson and Fieller's sets of shares and means, MOVER for differences and ratios.

z is the normal quantile of the level, and v the noise variance. part: the share of the sampling variance that counts,
1 for a population, 0 for the dataset itself, 1 - n/N for a finite population. Arrays of cells in, arrays of cells out.
Sources: Wilson 1927; Fieller 1954; Zou, Donner 2008 and Newcombe 1998 for the MOVER. The noise terms are derived in
`docs/methods/tables.md`.

Simultaneous intervals: draws of the largest error over all cells, in units of its standard error.

The errors of cells are correlated, by margins that add up and by noise that they share, so that the quantile of the largest one is below
Sidak's. Draws are keyed by what was drawn: the same numbers each time.

What comparisons, joint intervals, tests and pictures need of a table: the least that they know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.tables.draw import Margins
from confide.methods.tables.layout import Layout
from confide.noise import keyed_generator
from confide.schema.formulas.names import column_named
from confide.sums.cells.cell_sums import Axes

if TYPE_CHECKING:
    import pandas as pd


Pair = tuple[Array, Array]

# A variance of places in [-1, 1] is never taken to be below this: the width of an interval must not vanish by noise alone.
_LEAST = 1e-4


def count_interval(
    count: Array, variance: float | Array, z: float, part: float = 1.0, weight: Array | float = 1.0
) -> Pair:
    """The theta with (Y - theta)^2 <= z^2 (part weight theta + v) for Y = max(count, 0): Poisson sampling and noise; cut at 0.

    weight: sum omega^2/sum omega of weighted records.

    >>> [round(float(v), 3) for v in count_interval(np.array(10.0), 0.0, 1.96)]
    [5.432, 18.41]
    """
    y = np.maximum(count, 0.0) if part else count
    square = part * z * z * weight
    half = z * np.sqrt(part * weight * y + variance + part * weight * square / 4)
    return np.maximum(y + square / 2 - half, 0.0), np.maximum(y + square / 2 + half, 0.0)


def share_interval(
    count: Array,
    base: Array,
    v_count: Array | float,
    v_base: Array | float,
    covariance: Array | float,
    z: float,
    part: float = 1.0,
    weight: Array | float = 1.0,
    base_weight: Array | float = 1.0,
    *,
    cut: bool = True,
) -> Pair:
    """The p in [0, 1] with (Y - p N)^2 <= z^2 (part N p (1 - p) + V(Y - p N)); [0, 1] where the set has no ends.

    cut=False: its ends as they are, beyond 0 or 1 where noise puts them, and (-1, 2) where there are none. A comparison takes its
    margins from them, because an end that is cut leaves no room for the error of the other share.

    weight, base_weight: a = sum omega^2/sum omega of weighted records in the cell and in its base, b. Then the sampling variance is
    sum omega^2 (1[cell] - p)^2 = N p (a + (b - 2 a) p).

    >>> [round(float(v), 4) for v in share_interval(np.array(5.0), np.array(50.0), 0.0, 0.0, 0.0, 1.96)]
    [0.0435, 0.2136]
    """
    sampling = part * z * z * np.maximum(base, 0.0)
    lead = base**2 + sampling * (2 * weight - base_weight) - z * z * v_base
    middle = 2 * count * base + sampling * weight - 2 * z * z * covariance
    rest = count**2 - z * z * v_count
    root = middle**2 - 4 * lead * rest
    open_ = ~((lead > 0) & (root >= 0))
    with np.errstate(all="ignore"):
        half = np.sqrt(np.maximum(root, 0.0))
        low, high = (middle - half) / (2 * lead), (middle + half) / (2 * lead)
    if not cut:
        return np.where(open_, -1.0, low), np.where(open_, 2.0, high)
    return np.where(open_, 0.0, np.clip(low, 0.0, 1.0)), np.where(open_, 1.0, np.clip(high, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class MeanSums:
    """Noisy sums of records in cells, u in [-1, 1]: N, S = sum u, Q = sum (1 - u^2), C = sum u (1 - u^2), D = sum u^2 (1 - u^2).

    v0, v1: noise variances of N and of each of the other four, which are independent of each other.

    The variance of records is s^2 = 1 - Q/N - m^2 and half its noise SD, within [1e-4, 1 - m^2]. A variance that is too small by noise
    costs more coverage than one that is too large costs width.
    """

    n: Array
    s: Array
    q: Array
    c: Array
    d: Array
    v0: Array
    v1: Array

    @cached_property
    def size(self) -> Array:
        """N, at least 1."""
        return np.maximum(self.n, 1.0)

    @cached_property
    def mean(self) -> Array:
        return np.clip(self.s / self.size, -1.0, 1.0)

    @cached_property
    def _q(self) -> Array:
        return self.q / self.size

    @cached_property
    def _raw(self) -> Array:
        """s^2 within what is possible, and nothing else: the estimate."""
        most = np.maximum(1.0 - self.mean**2, 0.0)
        return np.clip(most - self._q, 0.0, most)

    @cached_property
    def variance_noise(self) -> Array:
        """Noise variance of s^2, by the delta method."""
        m = self.mean
        return (self.v0 * (self._q + 2 * m * m) ** 2 + self.v1 * (1 + 4 * m * m)) / self.size**2

    @cached_property
    def variance(self) -> Array:
        """s^2, as intervals take it."""
        top = np.maximum(1.0 - self.mean**2, _LEAST)
        return np.clip(self._raw + np.sqrt(self.variance_noise) / 2, _LEAST, top)

    @cached_property
    def plain_variance(self) -> Array:
        """s^2 without the allowance, at least 1e-4: what is divided by, and no figure to hand out (`sd`)."""
        return np.maximum(self._raw, _LEAST)

    @cached_property
    def sd(self) -> Array:
        """The standard deviation of the records; NaN where it is not `clear`."""
        return np.where(self.clear, np.sqrt(self._raw), np.nan)

    @cached_property
    def third(self) -> Array:
        """The third central moment."""
        m = self.mean
        return (self.s - self.c) / self.size - 3 * m * (1.0 - self._q) + 2 * m**3

    @cached_property
    def fourth(self) -> Array:
        """The fourth central moment."""
        m, square = self.mean, 1.0 - self._q
        cube, fourth = (self.s - self.c) / self.size, (self.n - self.q - self.d) / self.size
        return fourth - 4 * m * cube + 6 * m * m * square - 3 * m**4

    @cached_property
    def third_noise(self) -> Array:
        """Noise variance of the third central moment, by the delta method."""
        m, q = self.mean, self._q
        cube = (self.s - self.c) / self.size
        by_n = -cube + 3 * m - 6 * m * q - 6 * m**3
        by_s = 1.0 - 3 * (1.0 - q) + 6 * m * m
        return (self.v0 * by_n**2 + self.v1 * (by_s**2 + 1.0 + 9 * m * m)) / self.size**2

    @cached_property
    def fourth_noise(self) -> Array:
        """Noise variance of the fourth central moment, by the delta method in N, S, Q, C, D."""
        m, q = self.mean, self._q
        cube, last = (self.s - self.c) / self.size, self.d / self.size
        # (N - Q - D)/N - 4 (S/N)(S - C)/N + 6 (S/N)^2 (1 - Q/N) - 3 (S/N)^4
        by_n = (q + last) + 8 * m * cube - 12 * m * m * (1 - q) + 6 * m * m * q + 12 * m**4
        by_s = -4 * cube - 4 * m + 12 * m * (1 - q) - 12 * m**3
        by_q = -1.0 - 6 * m * m
        return (self.v0 * by_n**2 + self.v1 * (by_s**2 + by_q**2 + 16 * m * m + 1.0)) / self.size**2

    @cached_property
    def skewness(self) -> Array:
        """Of the records, where it exceeds its noise: the third moment less its noise SD, over s^3."""
        return np.asarray(_standing(self.third, np.sqrt(self.third_noise)) / self.variance**1.5)

    @cached_property
    def skewed(self) -> NDArray[np.bool_]:
        """Fewer records than three squared skewnesses: the interval of so skewed a mean may be short on one side."""
        return np.asarray(self.n < 3 * self.skewness**2)

    @property
    def bend(self) -> Array:
        """The size of the skewness of each sum of deviations; 1/sqrt(3) is too much."""
        return np.asarray(np.abs(self.skewness) / np.sqrt(self.size))

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        """Whether s^2, and the number of records behind it, stand above three standard deviations of their noise."""
        told = self.n > np.maximum(3 * np.sqrt(self.v0), 1.0)
        return np.asarray(told & (self._raw > 3 * np.sqrt(self.variance_noise)))

    @property
    def lean(self) -> Array:
        """The third central moment over s^2, moved toward the more distant bound by half its noise SD."""
        return np.asarray((self.third - np.sign(self.mean) * np.sqrt(self.third_noise) / 2) / self.variance)

    @property
    def effective(self) -> Array:
        """How many records of equal weight tell as much: N."""
        return self.size

    @property
    def sampling_variance(self) -> Array:
        """N times the sampling variance of the mean, without the allowance for noise."""
        return self.plain_variance

    def at(self, pick: Callable[[Array], Array]) -> Self:
        """The same sums with each array picked from or reshaped."""
        return replace(self, **{own.name: pick(getattr(self, own.name)) for own in fields(self)})

    def redrawn(self, mean: Array, own: Array, noises: Sequence[Array]) -> MeanSums:
        """Draws of a release, (runs, cells): mean and `sampling_variance` of the records drawn, noises of N, S, Q and two more sums."""
        size = np.broadcast_to(np.maximum(np.rint(self.size), 2.0), own.shape)
        parts = (size, size * mean, size * (1.0 - own - mean**2))
        n, s, q = (part + noise for part, noise in zip(parts, noises, strict=False))
        nothing = np.zeros(own.shape)
        return MeanSums(n, s, q, nothing, nothing, self.v0, self.v1)

    def total(self, middle: float, half: float, part: float) -> tuple[Array, Array, Array]:
        """(the sum of middle + half u, its noise variance, its sampling variance)."""
        noise = half**2 * self.v1 + middle**2 * self.v0
        mean = middle + half * self.mean
        sampling = part * np.maximum(self.n, 0.0) * (half**2 * self.variance + mean**2)
        return middle * self.n + half * self.s, noise, sampling

    @cached_property
    def quiet(self) -> Self:
        """The same sums as if they had no noise. Their s^2 is at least half an SD of it, because a smaller one is hidden.

        The third moment is what exceeds one SD of its noise.
        """
        m, third = self.mean, _standing(self.third, np.sqrt(self.third_noise))
        square = np.minimum(np.maximum(self._raw, np.sqrt(self.variance_noise) / 2), np.maximum(1.0 - m**2, 0.0))
        c = self.s - self.size * (third + 3 * m * (square + m**2) - 2 * m**3)
        return replace(self, q=self.size * (1.0 - m**2 - square), c=c, v0=0.0 * self.v0, v1=0.0 * self.v1)

    def noise(self, mean: Array) -> Array:
        """Noise variance of S - mean N."""
        return np.asarray(self.v1 + mean**2 * self.v0)

    def standard_error(self, part: float = 1.0) -> Array:
        """Of the mean, to first order."""
        return np.sqrt(part * self.variance / self.size + self.noise(self.mean) / self.size**2)

    def interval(self, z: float, part: float = 1.0) -> Pair:
        """The theta in [-1, 1] with (S - theta N)^2 <= z^2 (v1 + theta^2 v0 + part N max(s^2, s^2 + f r (theta - m))), the hull of it.

        r = (third central moment, moved toward the more distant bound by half its noise SD)/s^2 within [-(1 + m), 1 - m], f = 2/3 + 1/(3
        z^2). This is the variance of a skewed mean at theta, to first order in 1/sqrt(N), so that each end has its own quadratic.
        """
        m = self.mean
        r = np.clip(self.lean, -(1.0 + m), 1.0 - m) * (2 / 3 + 1 / (3 * z * z))
        return self._end(z, part, np.minimum(r, 0.0), -1.0), self._end(z, part, np.maximum(r, 0.0), 1.0)

    def _end(self, z: float, part: float, tilt: Array, side: float) -> Array:
        """The end on one side of the hull: the bound where it is in the set, else the outermost root within the bounds."""
        sampling = part * z * z * np.maximum(self.n, 0.0)
        lead = self.n**2 - z * z * self.v0
        middle = 2 * self.s * self.n + sampling * tilt
        rest = self.s**2 - z * z * self.v1 - sampling * (self.variance - tilt * self.mean)
        at_bound = lead - side * middle + rest <= 0
        with np.errstate(all="ignore"):
            half = np.sqrt(np.maximum(middle**2 - 4 * lead * rest, 0.0))
            roots = np.stack([(middle - half) / (2 * lead), (middle + half) / (2 * lead)])
        roots = np.where(np.isfinite(roots), roots, side)
        inside = np.abs(roots) <= 1.0
        outer = np.where(inside, side * roots, -np.inf).max(axis=0)
        # no root within: the whole set lies beyond one bound, the nearest one stands for it
        nearest = np.clip(self.mean, -1.0, 1.0)
        return np.where(at_bound, side, np.where(np.isfinite(outer), side * outer, np.where(nearest > 0, 1.0, -1.0)))

    @property
    def spread_sampling(self) -> Array:
        """N times the sampling variance of s^2, m4 - s^4, with half a noise SD of m4, and where noise hides m4 that of normal records."""
        square, allowed = self._raw, np.sqrt(self.fourth_noise) / 2
        return np.maximum(self.fourth + allowed - square**2, np.minimum(2 * square**2, allowed))

    @property
    def joint_sampling(self) -> Array:
        """N times the sampling covariance of the mean and s^2."""
        return self.third

    @property
    def _kurtosis(self) -> Array:
        """Of the records, with the allowances of the interval, within what the bounds allow."""
        square = self.variance
        most = (1.0 + np.abs(self.mean)) ** 2 / square
        return np.clip(1.0 + self.spread_sampling / square**2, 1.0, np.maximum(most, 1.0))

    @cached_property
    def extreme(self) -> NDArray[np.bool_]:
        """Fewer records than 3 (kurtosis - 1), where it exceeds its noise: about three squared skewnesses of (u - m)^2 at least.

        Then a few extremes rule the standard deviation, and who has not seen one has too short an interval.
        """
        square = self.variance
        fourth = self.fourth - np.sqrt(self.fourth_noise)
        return np.asarray(self.effective < 3 * (fourth / square**2 - 1.0))

    def spread_interval(self, z: float, part: float = 1.0) -> tuple[Array, Array, Array, Array]:
        """(SD, its standard error, low, high) of the records: s^2 - z sqrt(V) and s^2 + d, d^2 = z^2 (V + part f r d/N).

        V = part (m4 - s^4)/N + noise, half a noise SD added to m4. (u - m)^2 is skewed, so that its mean varies more the larger it is. To
        first order it does so by r = its third cumulant over its second, here 2 s^2 (kurtosis - 1), within what the bounds allow. That is
        exact for normal records and above what two values have. f = 2/3 + 1/(3 z^2) as for means. An SD that is not `clear` is NaN, and its
        interval starts at 0.
        """
        square = self._raw
        var = part * self.spread_sampling / self.size + self.variance_noise
        most = np.maximum((1.0 + np.abs(self.mean)) ** 2 - square, 0.0)
        lean = np.minimum(2 * square * (self._kurtosis - 1.0), most)
        tilt = z * z * part * (2 / 3 + 1 / (3 * z * z)) * lean / self.size
        up = (tilt + np.sqrt(tilt**2 + 4 * z * z * var)) / 2
        low = np.where(self.clear, np.sqrt(np.clip(square - z * np.sqrt(var), 0.0, 1.0)), 0.0)
        high = np.sqrt(np.clip(square + up, 0.0, 1.0))
        return self.sd, np.sqrt(var) / (2 * self.sd), low, high


def _standing(found: Array, error: Array) -> Array:
    """What exceeds one SD of its noise."""
    return np.asarray(np.sign(found) * np.maximum(np.abs(found) - error, 0.0))


# differences and ratios -----------------------------------------------------------------------------------------------


def _middle(estimate: Array, low: Array, high: Array) -> Array:
    """An estimate outside its interval gives way to the middle."""
    return np.where((estimate >= low) & (estimate <= high), estimate, (low + high) / 2)


def difference(
    one: tuple[Array, Array, Array], other: tuple[Array, Array, Array], rho: Array | float = 0.0
) -> tuple[Array, ...]:
    """(estimate, low, high) of first minus second by the MOVER, from (estimate, low, high) of each and the correlation of the estimates."""
    p, lp, up = _middle(*one), one[1], one[2]
    q, lq, uq = _middle(*other), other[1], other[2]
    below, above = p - lp, uq - q
    low = p - q - np.sqrt(np.maximum(below**2 + above**2 - 2 * rho * below * above, 0.0))
    below, above = up - p, q - lq
    high = p - q + np.sqrt(np.maximum(below**2 + above**2 - 2 * rho * below * above, 0.0))
    return p - q, low, high


def ratio(
    one: tuple[Array, Array, Array], other: tuple[Array, Array, Array], rho: Array | float = 0.0, *, odds: bool = False
) -> tuple[Array, ...]:
    """(estimate, low, high) of first over second by the MOVER on logs, or on logits for a ratio of odds. An end at 0 opens the interval.

    >>> [round(float(v), 3) for v in ratio((0.2, 0.1, 0.4), (0.1, 0.0, 0.3))]
    [2.0, 0.546, inf]
    """

    def scaled(values: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        estimate, low, high = (np.asarray(part, dtype=float) for part in values)
        parts = (_middle(estimate, low, high), low, high)
        with np.errstate(divide="ignore"):
            logs = [np.log(part) - (np.log1p(-part) if odds else 0.0) for part in parts]
        return logs[0], logs[1], logs[2]

    (p, lp, up), (q, lq, uq) = scaled(one), scaled(other)
    with np.errstate(all="ignore"):
        found = p - q
        low = found - _joined(p - lp, uq - q, rho)
        high = found + _joined(up - p, q - lq, rho)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    with np.errstate(over="ignore"):
        return np.exp(found), np.exp(low), np.exp(high)


def _joined(a: Array, b: Array, rho: Array | float) -> Array:
    open_ = ~(np.isfinite(a) & np.isfinite(b))
    a, b = np.where(open_, 0.0, a), np.where(open_, 0.0, b)
    return np.where(open_, np.inf, np.sqrt(np.maximum(a * a + b * b - 2 * rho * a * b, 0.0)))


_DRAWS, _AT_ONCE = 20_000, 1_000
# Numbers that are drawn at once, in memory: 1,000 draws of 4,096 cells are 33 MB for each kind.
_MOST_JOINT, _MOST_CROSSED = 4096, 1 << 14


def largest_errors(table: Numbers) -> Array | None:
    """(draws,) of the largest |error|/standard error; None above 4,096 numbers, of weighted records,
    or where the finest crossing is too large to draw."""
    crossing = table.layout.crossing
    numbers = sum(crossing.cells(axes) for axes in table.marginals) * len(table.measured)
    if table.layout.weight is not None:
        return None
    if numbers > _MOST_JOINT or (table.part > 0 and expected_cells(table.layout, table.margins) is None):
        return None
    generator = keyed_generator(table.drawn_sha256, f"simultaneous {table.kind} {table.inference}")
    found = []
    for _ in range(_DRAWS // _AT_ONCE):
        largest = np.zeros(_AT_ONCE)
        for errors in table.deviations(generator, _AT_ONCE):
            # a number without an error, such as a public total, is never missed
            np.maximum(largest, np.nan_to_num(np.abs(errors), nan=0.0).max(axis=1), out=largest)
        found.append(largest)
    return np.concatenate(found)


def expected_cells(layout: Layout, margins: Margins) -> tuple[Axes, Array] | None:
    """(attributes, expected numbers of records in their crossing), at least 0.

    They are released where the formula has one largest marginal, else as if attributes were independent, which only joint quantiles rest
    on. None where the crossing has more cells than are drawn.
    """
    every = tuple(range(len(layout.crossing.attributes)))
    if layout.crossing.cells(every) > _MOST_CROSSED:
        return None
    if margins.contains(every):
        return every, np.maximum(margins.table(every)[0], 0.0)
    size = max(float(margins.table(())[0]), 1.0)
    found = np.array(size)
    for axis in every:
        share = np.maximum(margins.table((axis,))[0], 0.0) / size
        found = np.multiply.outer(found, share / max(float(share.sum()), 1e-12))
    return every, found


def summed(values: Array, axes: Axes) -> Array:
    """Sums of (draws, *levels) over all attributes but those of a marginal."""
    others = tuple(1 + axis for axis in range(values.ndim - 1) if axis not in axes)
    return np.asarray(values.sum(axis=others) if others else values)


# What stands in the place of a level in a margin.
_ALL = "Total"


def margin_word(levels: Sequence[str]) -> str:
    """The word for a level in a margin: none of the levels. Code tells a margin by its place alone.

    >>> margin_word(["N", "S"]), margin_word(["None", "Total"])
    ('Total', '(Total)')
    """
    word = _ALL
    while word in levels:
        word = f"({word})"
    return word


class Numbers(Protocol):
    """The numbers of a table (`reading.CellNumbers`)."""

    @property
    def layout(self) -> Layout: ...
    @property
    def margins(self) -> Margins: ...
    @property
    def kind(self) -> str: ...
    @property
    def inference(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def requested(self) -> Guarantee: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def drawn_sha256(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def facts(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def measured(self) -> tuple[str, ...]: ...
    @property
    def marginals(self) -> tuple[Axes, ...]: ...
    @property
    def size(self) -> float: ...
    @property
    def part(self) -> float: ...
    def column(self, of: str | None) -> int: ...
    def counts(self, axes: Axes) -> Array: ...
    def count_variance(self, axes: Axes) -> Any: ...
    def points(self, axes: Axes, column: int) -> tuple[Array, Array]: ...
    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]: ...
    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]: ...
    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]: ...
    def bounds(self, column: int) -> tuple[float, float]: ...
    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]: ...
    def quantile(self, alpha: float, simultaneous: bool = False) -> float: ...
    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]: ...


class Cells(Numbers, Protocol):
    """A table of cells, as it is shown (`results.CellTable`)."""

    @property
    def noun(self) -> str: ...
    @property
    def levels(self) -> NDArray[np.int64]: ...
    @property
    def quiet(self) -> Cells: ...
    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float: ...
    def to_frame(self, alpha: float | None = None) -> pd.DataFrame: ...
    def crosstab(self, *, of: str | None = None) -> pd.DataFrame: ...


class Means(Cells, Protocol):
    """A table of means (`means.MeanTable`)."""

    @property
    def rows(self) -> Any: ...
    @property
    def _scale(self) -> Any: ...
    def sums(self, axes: Axes, column: int) -> Any: ...


def cells_of(table: Cells, cell: Any) -> tuple[Axes, int]:
    """(marginal, position) of a cell: a mapping of attributes to levels, or its name; `PlanError` for one that is not there."""
    crossing = table.layout.crossing
    if isinstance(cell, str):
        return _named(table, cell)
    if not isinstance(cell, Mapping):
        raise PlanError(f"a cell is named by its levels, got {cell!r}", "write {'region': 'N', 'smoker': 'yes'}")
    titles = [own.name for own in crossing.attributes]
    cell = {column_named(str(name), titles): level for name, level in cell.items()}
    axes = table.layout.axes(tuple(cell))
    if axes not in table.marginals:
        asked = ", ".join(crossing.title(own) for own in table.marginals)
        raise PlanError(f"the table has no marginal {crossing.title(axes)}; it has: {asked}")
    position = 0
    for axis in axes:
        own = crossing.attributes[axis]
        label = str(cell[own.name])
        if label not in own.labels:
            raise PlanError(f"{own.name!r} has no level {label!r}; it has: {', '.join(own.labels)}")
        position = position * own.size + own.labels.index(label)
    return axes, position


def _named(table: Cells, name: str) -> tuple[Axes, int]:
    """The cell of a name, as the rows of a table have it; two cells may have one name, where levels hold commas and equals signs."""
    found = [
        (axes, cell)
        for axes in table.marginals
        for cell in range(table.layout.crossing.cells(axes))
        if cell_name(table.layout, axes, cell) == name
    ]
    if len(found) != 1:
        given = "several cells are" if found else "no cell is"
        raise PlanError(f"{given} called {name!r}", "name one by its levels: {'region': 'N', 'smoker': 'yes'}")
    return found[0]


def cell_name(layout: Layout, axes: Axes, cell: int) -> str:
    """A cell by its levels: "region=N, smoker=yes"; "total" without any."""
    owns = [layout.crossing.attributes[axis] for axis in axes]
    levels = np.unravel_index(cell, layout.crossing.shape(axes)) if axes else ()
    return ", ".join(f"{own.name}={own.labels[level]}" for own, level in zip(owns, levels, strict=True)) or "total"
