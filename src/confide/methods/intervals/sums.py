"""Record maps behind intervals for one parameter, with the exact bound on what replacing one record moves.

All of them are for a public number of records: neighbors differ in the values of one record ("substitute"), and no record is excluded.

    counts of J levels   one 1 moves from one place to another: l1 = 2, l2 = sqrt 2, for all J at once; a single level alone: 1
    moments of z         (z, a q, b z q, c z^2 q), q = 1 - z^2, z in [-1, 1]. With t = |z - z'| and |z + z'| <= 2 - t each of the last
                         three, without its weight, moves by at most t (2 - t): |q - q'| = t |z + z'|;
                         |z q - z'q'| = t |1 - (z^2 + z z' + z'^2)|, where the sum is from t^2/4 to 3 - 3 t + t^2;
                         |z^2 q - z'^2 q'| = t |z + z'| |1 - z^2 - z'^2|. So
                         l1 <= t (1 + (a + b + c)(2 - t)) <= 2 for a + b + c <= 1/2 (it rises up to t = 2), and
                         l2^2 <= t^2 (1 + (a^2 + b^2 + c^2)(2 - t)^2) <= 4 for a^2 + b^2 + c^2 <= (11 + 5 sqrt 5)/8, where the largest value
                         besides t = 2 is reached at t = sqrt 5 - 1. So the moments of order two to four cost the mean nothing.
    products a_i a_j     a in [-1, 1]^D, i <= j, squares times w. aa' - bb' = ((a + b)(a - b)' + (a - b)(a + b)')/2, so that its entries add
                         up to at most |a + b|_1 |a - b|_1 <= D^2, and off-diagonals stand in it twice: l1 <= D^2/2 for w <= 1/2. Half the
                         squared Frobenius norm is (|a|^4 + |b|^4)/2 - (a'b)^2 <= D^2: l2 <= D for w <= 1/sqrt 2. With a constant 1 among
                         them, whose square is public, and D odd: l2 <= sqrt(D^2 - 1), for the form is convex in every coordinate, its
                         maximum at corners, where a'b is odd.

Numbers are coded in 2^20 steps and rounded; replaced records differ by at most one step more in each number, which the bounds include.

Mean and variance of a bounded column of any distribution, from noisy sums of its first four moments. The number n is public.

y = sums of (z, q, z q, z^2 q), q = 1 - z^2, of numbers z in [-1, 1], and noise: moments of any order up to four follow. They say what an
interval needs and no model gives: the variance of the records, which way and how far the mean is skewed, and how much the variance varies.

An estimate that noise takes beyond the bounds is clipped to them, and its interval with it, which can only raise its coverage.

Mean: all theta that the noisy sum does not reject at alpha/2 on either side. The sampling variance is n max(s^2, s^2 + f r (theta - m)),
r = third central moment/s^2, f = 2/3 + 1/(3 z^2). To first order it is that of a skewed mean at theta (as in the tables, where n is noisy).
Variance: s^2 less, and more, what (z - m)^2 varies by, m4 - s^4, on the upper side with the skewness of (z - m)^2. It is 0 where the
release does not reject that. The central limit theorem of n records is assumed; `skewed` and `extreme` say where it is not to be relied on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import RecordMap, Total
from confide.core.exact import digest
from confide.errors import PlanError
from confide.methods.intervals.count_posteriors import ColumnShape
from confide.methods.intervals.marginals import NoiseLaw
from confide.schema import Categorical, CodedFrame, Integer, ModelMatrix, Numeric, Schema
from confide.sums.coding import DesignRows
from confide.sums.columns import OfColumn

Codes = NDArray[np.float64]

#: Integer steps in one unit.
STEP = 1 << 20


@dataclass(frozen=True)
class Replaced(Total):
    """An exact sum whose map says what one replaced record moves it by: `moved_l1` and `moved_l2_squared`, in its integers."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        if relation != "substitute":
            return super().sensitivity_squared(relation)
        return Fraction(self.map.moved_l2_squared)  # type: ignore[attr-defined]

    def sensitivity_l1(self, relation: str) -> Fraction:
        if relation != "substitute":
            return super().sensitivity_l1(relation)
        return Fraction(self.map.moved_l1)  # type: ignore[attr-defined]


def stood_in(schema: Schema, columns: tuple[str, ...]) -> Schema:
    """The schema with a public value for what is missing in these columns, where it would exclude the record.

    The number of records is public, so that it must not depend on their values. The value is the middle of the bounds, or the first level;
    the schema itself where each column declares its own.

    >>> own = stood_in(Schema({"x": Numeric(0, 4), "y": Numeric(0, 4, on_missing=1.0)}), ("x", "y"))
    >>> own["x"].on_missing, own["y"].on_missing
    ('midpoint', 1.0)
    """
    found: dict[str, Any] = {}
    for name in columns:
        column = schema[name]
        if column.on_missing == "drop":
            rule = column.levels[0] if isinstance(column, Categorical) else "midpoint"
            found[name] = replace(column, on_missing=rule)
    return schema.with_columns({**schema.columns, **found}) if found else schema


def whole_frame(frame: Any, columns: tuple[str, ...]) -> CodedFrame:
    """Test data as the maps read them: missing values of these columns count as `stood_in` says."""
    practice = CodedFrame.checked(frame)
    schema, codes = stood_in(practice.schema, columns), dict(practice.codes)
    for name in columns:
        codes[name] = np.where(codes[name] < 0, schema[name].missing_code, codes[name])
    return CodedFrame(schema, codes)


def _present(rows: RecordMap, schema: Schema, codes: Codes) -> Codes:
    """Codes in which each missing one is that of its column's value for it: a source may have another rule for the column."""
    instead = np.array([[schema[name].missing_code] for name in rows.columns])
    return np.where(codes < 0, instead, codes)


def numeric(schema: Schema, name: str, who: str) -> Numeric | Integer:
    """A numeric column, by name; `PlanError` for labels."""
    column = schema[name]
    if isinstance(column, Categorical):
        raise PlanError(
            f"{who} is of a numeric column, and {name!r} has labels; for shares write cf.intervals.proportion"
        )
    return column


@dataclass(frozen=True)
class Records(OfColumn):
    """1 for every record: the public number of records, summed in the same pass."""

    width: int = field(default=1, init=False)
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    @property
    def digest(self) -> str:
        return digest(["records", self.column])

    def __call__(self, codes: Codes) -> Codes:
        return np.ones((1, codes.shape[1]))


@dataclass(frozen=True)
class LevelRows(OfColumn):
    """One record as 1 in the place of its level, 0 elsewhere. levels: codes of the levels that are counted, (J,)."""

    levels: tuple[int, ...]
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)

    @property
    def width(self) -> int:
        return len(self.levels)

    @property
    def moved_l1(self) -> int:
        return 1 if self.width == 1 else 2

    @property
    def moved_l2_squared(self) -> int:
        return 1 if self.width == 1 else 2

    @property
    def digest(self) -> str:
        return self._digest("levels", list(self.levels))

    def __call__(self, codes: Codes) -> Codes:
        codes = _present(self, self.schema, codes) if (codes < 0).any() else codes
        return np.asarray(codes[0][None, :] == np.array(self.levels, dtype=np.float64)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class PairRows(RecordMap):
    """One record as 1 in the place of its pair (level of the first column, level of the second), the second running faster."""

    schema: Schema
    first: str
    second: str
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)
    moved_l1: int = field(default=2, init=False)
    moved_l2_squared: int = field(default=2, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.schema[self.first].steps, self.schema[self.second].steps

    @property
    def width(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.first, self.second)

    @property
    def digest(self) -> str:
        return digest(["pairs", *(self.schema[name].to_dict() for name in self.columns), *self.columns])

    def __call__(self, codes: Codes) -> Codes:
        codes = _present(self, self.schema, codes) if (codes < 0).any() else codes
        place = codes[0] * self.shape[1] + codes[1]
        return np.asarray(place[None, :] == np.arange(self.width, dtype=np.float64)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class MomentRows(OfColumn):
    """One record as (z, a q, b z q, c z^2 q) in 2^20 steps, z in [-1, 1] its place between the bounds. pure: weights for the l1 norm."""

    pure: bool
    width: int = field(default=4, init=False)

    @property
    def weights(self) -> tuple[float, float, float, float]:
        """(1, a, b, c): a + b + c = 1/2 in l1; in l2 a^2 + b^2 + c^2 = 2.76375, below (11 + 5 sqrt 5)/8."""
        return (1.0, 0.4, 0.05, 0.05) if self.pure else (1.0, 1.45, 0.575, 0.575)

    @property
    def l1(self) -> int:
        return ceil(sum(self.weights) * STEP) + 5

    @property
    def l2_squared(self) -> int:
        return (isqrt(ceil(sum(weight**2 for weight in self.weights) * STEP * STEP)) + 3) ** 2

    @property
    def moved_l1(self) -> int:
        return 2 * STEP + 5 if self.pure else 2 * self.l1

    @property
    def moved_l2_squared(self) -> int:
        return (2 * STEP + 3) ** 2

    @property
    def digest(self) -> str:
        return self._digest("four moments", self.pure)

    def __call__(self, codes: Codes) -> Codes:
        codes = _present(self, self.schema, codes) if (codes < 0).any() else codes
        z = 2.0 * codes[0] / (self.schema[self.column].steps - 1) - 1.0
        square = z * z
        left = 1.0 - square
        rows = np.stack([z, left, z * left, square * left])
        limits = np.array(self.weights)[:, None] * STEP
        rows *= limits
        np.rint(rows, out=rows)
        np.ceil(limits, out=limits)
        return np.asarray(np.clip(np.nan_to_num(rows), -limits, limits))


def squares_weight(pure: bool) -> float:
    """w of the squares among products: 1/2 in l1, 1/sqrt 2 in l2, rounded down."""
    return 0.5 if pure else 0.70710678


@dataclass(frozen=True)
class ProductRows(DesignRows):
    """One record as a_i a_j, i <= j, in 2^20 steps, squares times w; a = ([1,] x_1, ..., x_p, y) in [-1, 1], without the constant's square.

    With an intercept terms are measured from the middle of their bounds; without one from 0, in units of the bound that is farther off.
    """

    design: ModelMatrix
    pure: bool
    kind: ClassVar[str] = "products"

    @property
    def size(self) -> int:
        """D."""
        return len(self.design.terms) + 1 + self.design.intercept

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        start = [(i, j) for i in range(self.size) for j in range(i, self.size)]
        return tuple(pair for pair in start if not (self.design.intercept and pair == (0, 0)))

    @property
    def width(self) -> int:
        return len(self.pairs)

    @property
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(center, unit) of each term and the response, in their own units."""
        ends = [(float(term.low), float(term.high)) for term in (*self.design.terms, self.design.response)]
        if self.design.intercept:
            return np.array([low + (high - low) / 2 for low, high in ends]), np.array(
                [(high - low) / 2 for low, high in ends]
            )
        return np.zeros(len(ends)), np.array([max(abs(low), abs(high)) for low, high in ends])

    @property
    def l1(self) -> int:
        return self.width * STEP

    @property
    def l2_squared(self) -> int:
        return self.width * STEP * STEP

    @property
    def moved_l1(self) -> int:
        return self.size**2 * STEP // 2 + 1 + self.width if self.pure else 2 * self.l1

    @property
    def moved_l2_squared(self) -> int:
        odd = self.design.intercept and self.size % 2 == 1
        square = (self.size**2 - odd) * STEP * STEP
        return (isqrt(square) + 1 + ceil(sqrt(self.width))) ** 2

    @property
    def stated(self) -> tuple[bool]:
        return (self.pure,)

    def __call__(self, codes: Codes) -> Codes:
        codes = _present(self, self.design.schema, codes) if (codes < 0).any() else codes
        terms, _ = self.design.codes(codes)
        centre, unit = self.scaling
        rows = [np.ones(terms.shape[1])] if self.design.intercept else []
        for own, term, c, u in zip(terms, (*self.design.terms, self.design.response), centre, unit, strict=True):
            if self.design.intercept:
                rows.append(np.clip(2.0 * own / (term.steps - 1) - 1.0, -1.0, 1.0))
            else:
                rows.append(np.clip((term.grid.decode(own) - c) / u, -1.0, 1.0))
        weight = squares_weight(self.pure)
        found = np.empty((self.width, terms.shape[1]))
        for row, (i, j) in zip(found, self.pairs, strict=True):
            np.multiply(rows[i], rows[j], out=row)
            row *= STEP * (weight if i == j else 1.0)
        np.rint(found, out=found)
        return np.asarray(np.clip(np.nan_to_num(found), -STEP, STEP))

    def decode(self, values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """The symmetric matrix S of a released sum, in units; the constant's square is n."""
        found = np.zeros((self.size, self.size))
        weight = squares_weight(self.pure)
        for value, (i, j) in zip(values, self.pairs, strict=True):
            found[i, j] = found[j, i] = value / STEP / (weight if i == j else 1.0)
        if self.design.intercept:
            found[0, 0] = n
        return found


# Of numbers in [-1, 1]: the least variance that is divided by.
_LEAST = 1e-9
# The least of a shape's excess, which columns of two values do not have: a ridge as narrow as theirs has no grid.
_FLAT = 0.25
_HALVINGS = 50


@dataclass(frozen=True)
class ColumnSums:
    """The noisy sums of n records, and the law of each one's noise.

    >>> exact = NoiseLaw("normal", 1e-9)
    >>> z = np.array([-1.0, -0.5, 0.0, 0.5] * 25)
    >>> q = 1 - z * z
    >>> own = ColumnSums(100, (z.sum(), q.sum(), (z * q).sum(), (z * z * q).sum()), (exact,) * 4)
    >>> own.mean, own.variance(0.0), [round(v, 3) for v in own.mean_interval(0.05)]
    (-0.25, 0.3125, [-0.36, -0.14])
    """

    n: int
    sums: tuple[float, float, float, float]
    laws: tuple[NoiseLaw, NoiseLaw, NoiseLaw, NoiseLaw]

    @cached_property
    def _shares(self) -> tuple[float, ...]:
        return tuple(one / self.n for one in self.sums)

    @cached_property
    def _noises(self) -> tuple[float, ...]:
        """Of each sum over n, the variance of its noise."""
        return tuple(law.variance / self.n**2 for law in self.laws)

    @cached_property
    def mean(self) -> float:
        return float(np.clip(self._shares[0], -1.0, 1.0))

    @cached_property
    def variance_noise(self) -> float:
        """Of s^2, by the delta method, as those below."""
        first, second, *_ = self._noises
        return second + 4 * self.mean**2 * first

    def variance(self, more: float) -> float:
        """s^2 and so many standard deviations of its noise, within what the bounds allow."""
        m = self.mean
        found = 1.0 - self._shares[1] - m * m + more * sqrt(self.variance_noise)
        return float(np.clip(found, 0.0, 1.0 - m * m))

    @cached_property
    def _third(self) -> tuple[float, float]:
        """(third central moment, SD of its noise)."""
        m, (s, q, c, _), (v1, v2, v3, _) = self.mean, self._shares, self._noises
        by_first = 1.0 - 3 * (1.0 - q) + 6 * m * m
        return (s - c) - 3 * m * (1.0 - q) + 2 * m**3, sqrt(by_first**2 * v1 + 9 * m * m * v2 + v3)

    @cached_property
    def _fourth(self) -> tuple[float, float]:
        """(fourth central moment, SD of its noise)."""
        m, (s, q, c, d), (v1, v2, v3, v4) = self.mean, self._shares, self._noises
        cube, square = s - c, 1.0 - q
        by_first = -4 * cube - 4 * m + 12 * m * square - 12 * m**3
        by_second = -1.0 - 6 * m * m
        found = (square - d) - 4 * m * cube + 6 * m * m * square - 3 * m**4
        return found, sqrt(by_first**2 * v1 + by_second**2 * v2 + 16 * m * m * v3 + v4)

    @cached_property
    def _spread(self) -> float:
        """s^2 as intervals take it: one that is too small by noise costs more coverage than one that is too large costs width."""
        return max(self.variance(0.5), _LEAST)

    @cached_property
    def skewed(self) -> bool:
        """Whether the mean's interval may be short on one side: fewer records than three squared skewnesses, where these exceed their
        noise.

        Each counts times the cube of the share that sampling has of the mean's variance, because noise is not skewed.
        """
        third, noise = self._third
        sampling = self.n * self._spread
        part = sampling / (sampling + self.laws[0].variance)
        return self.n < 3 * max(abs(third) - noise, 0.0) ** 2 / self._spread**3 * part**3

    @cached_property
    def extreme(self) -> bool:
        """Whether a few extremes rule the variance: fewer records than 3 (kurtosis - 1), likewise."""
        fourth, noise = self._fourth
        varies = max(fourth - noise - self._spread**2, 0.0)
        part = varies / (varies + self.n * self.variance_noise)
        return self.n < 3 * varies / self._spread**2 * part**3

    @cached_property
    def lean(self) -> float:
        """The third central moment over s^2, moved toward the more distant bound by half a standard deviation of its noise."""
        third, noise = self._third
        return float(np.clip((third - np.sign(self.mean) * noise / 2) / self._spread, -1 - self.mean, 1 - self.mean))

    @cached_property
    def _varies(self) -> float:
        """m4 - s^4, n times the sampling variance of s^2, with half a standard deviation of its noise, within what the bounds allow."""
        fourth, noise = self._fourth
        square = self._spread
        return max(min(fourth + noise / 2, (1 + abs(self.mean)) ** 2 * square) - square**2, 0.0)

    @cached_property
    def alone(self) -> Array:
        """n times the sampling variances of mean and s^2, without what intervals allow for, (2,).

        Each is at least half an SD of its noise, because a smaller one is hidden and may be about so large.
        """
        fourth, noise = self._fourth
        square = max(self.variance(0.0), min(sqrt(self.variance_noise) / 2, 1.0 - self.mean**2), _LEAST)
        within = (1 + abs(self.mean)) ** 2 * square - square**2
        return np.array([square, max(min(max(fourth - square**2, noise / 2), within), 0.0)])

    @cached_property
    def shape(self) -> ColumnShape:
        """For a posterior of mean and standard deviation."""
        square = self._spread
        return ColumnShape(self.lean, max(self._varies / square**2 - self.lean**2 / square, _FLAT))

    def mean_interval(self, alpha: float) -> tuple[float, float]:
        """(low, high) in [-1, 1]."""
        z = float(special.ndtri(1 - alpha / 2))
        tilt, square, law = self.lean * (2 / 3 + 1 / (3 * z * z)), self._spread, self.laws[0]

        def allowed(theta: float, own: float) -> bool:
            sampling = self.n * max(square + own * (theta - self.mean), square)
            return bool(law.tail_beside(sampling, self.n * abs(self.mean - theta)) >= alpha / 2)

        low = _end(lambda theta: allowed(theta, min(tilt, 0.0)), self.mean, -1.0)
        return low, _end(lambda theta: allowed(theta, max(tilt, 0.0)), self.mean, 1.0)

    def variance_interval(self, alpha: float) -> tuple[float, float]:
        """(low, high) in [0, 1].

        The noise of s^2, a sum of two, is assumed to be one of the same law and variance: of Laplace noise its quantiles are up to 3%
        larger.
        """
        z = float(special.ndtri(1 - alpha / 2))
        square, n = self._spread, self.n
        found = self.variance(0.0)
        scale = n * sqrt(self.variance_noise)
        law = NoiseLaw("normal", scale) if self.laws[0].name == "normal" else NoiseLaw("laplace", scale / sqrt(2))
        most = max((1 + abs(self.mean)) ** 2 - square, 0.0)
        tilt = min(2 * self._varies / square, most) * (2 / 3 + 1 / (3 * z * z))

        def allowed(value: float, own: float) -> bool:
            sampling = n * (self._varies + own * max(value - found, 0.0))
            return bool(law.tail_beside(sampling, n * abs(found - value)) >= alpha / 2)

        return _end(lambda value: allowed(value, 0.0), found, 0.0), _end(lambda value: allowed(value, tilt), found, 1.0)


def _end(allowed: Callable[[float], bool], start: float, bound: float) -> float:
    """The last value that is allowed on the way from an estimate to a bound; the estimate where it is not."""
    if allowed(bound):
        return bound
    inside, outside = start, bound
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
    return inside
