"""Posterior sampling of a ridge regression: rows, the two certificates it needs, the choice of its penalty, and the draw.

Records are rows (u, r) with |u| <= B and |r| <= Y; G = sum u u', c = sum u r, H = G + lam I, theta = H^-1 c. One sample is
theta ~ N(theta, (gamma H)^-1). How much it tells of one record hangs on the smallest eigenvalue of G and on |theta|, which are bounded by
two noisy numbers that are released first. For neighbours Z- and Z = Z- with one record more, both must be valid for Z-, the smaller one,
whichever of the two the records are:

    eigenvalue   lower = max(0, lambda(G) + noise - quantile - B^2) <= lambda(G-), as lambda(G) <= lambda(G-) + B^2 (Weyl 1912)
    residual     log(Y + B |theta|) moves by at most D = log(1 + B^2/(lam + lambda(G-))): theta - theta- = (H-)^-1 u r = H^-1 u r-, where
                 |r| <= Y + B |theta| and |r-| <= Y + B |theta-|. So log r = log(Y + B |theta|) + noise + quantile + D bounds Z-'s.

The size of D follows from `lower`, which is released. Each noise is above its quantile with a stated probability at most, under either
neighbour; then the leverage of the record is at most B^2/(lam + lower), its residual at most r, and
`confide_lab.aggregates.posterior_pair` says exactly what the sample gives away. (A bound that holds for Z alone is not enough:
with records (1, 1) and (1, -1), lam = 1, taking one away moves log(1 + |theta|) by log 1.5 = .405, where log(1 + 1/(1 + 2)) = .288.)

The residual is released as rint(2^20 log(Y + B |theta|)/D): it moves by 2^20 steps, one for the rounding and one to spare.

The sample. The exact pair is about theta* = theta + R^-1 z/sqrt(gamma), R'R = H, z a normal vector of real numbers. What can be
computed is theta~ with z in steps of 2^-56: given z, it is off by at most |R^-1| 2^-57 sqrt(k)/sqrt(gamma), and |R^-1| is at most
1/sqrt(lam + lower) where the certificates hold. All is computed in 120 digits from exact sums (`aggregates.digits`), whose rounding is
below 2^-50 of that. So |theta~ - theta*| <= eta = (1 + 2^-20) 2^-57 sqrt(k/(gamma (lam + lower))), on either neighbour. Published is

    rint(theta~/h) + N(0, s^2 I) rounded,   h the power of two from eta up to 2 eta.

Each theta* belongs to one z, so that given theta* and the records rint(theta~/h) is known, and on two neighbours with the same theta* it
differs by at most 2 eta/h + sqrt(k) <= 2 + sqrt(k) steps: after the ideal sample, which is mu_c-GDP but for the slack, this is a Gaussian
mechanism of mu_o = (2 + sqrt(k))/s, and both together are sqrt(mu_c^2 + mu_o^2)-GDP with the same slack (Dong, Roth, Su 2022, Corollary
2). What leaves is a function of the two. With mu_o^2 = mu^2/1024 the noise added is (2 + sqrt(k)) 32 h/mu: for k = 5 and mu = .1 below
2^-43 of 1/sqrt(gamma (lam + lower)), the sd of the sample in the direction that the bound allows to be widest.

Published on a grid of 2^-50 without that noise, z on a lattice of 2^-40 shows: R is triangular, so whoever knows the other records finds
z coordinate by coordinate under either hypothesis, and under one of them it lies on the lattice (evidence/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import exp, frexp, inf, log, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide.core import BudgetItem, Noise, Statistic
from confide.core.exact import pack
from confide.methods.regression.certified.sums import BoundedRows, moments
from confide.sums.coding import BITS, Codes, round_within, scaled, shortening
from confide_lab.aggregates.digits import cholesky, in_digits, numbers, solved, whole
from confide_lab.aggregates.posterior_pair import largest_shift, leverage_above

__all__ = [
    "LeverageRows",
    "LogResidual",
    "Odds",
    "Posterior",
    "apart",
    "chosen_penalty",
    "normal_steps",
    "quantile_of",
    "sample_step",
]

Array = NDArray[np.float64]

_UNIT = 1 << BITS
# Standard normal numbers as integers of the exact sampler, in steps of 2^-56: a number of 64 bits is within 128 sds.
_FINE = 56
# Penalties that are compared: a geometric grid, in units of z'z of one record.
_PENALTIES = np.geomspace(0.5, 1e5, 48)
# Float64 may be wrong in the last digits of a bound.
_UP = 1 + 2.0**-40


@dataclass(frozen=True)
class LeverageRows(BoundedRows):
    """One record as sqrt(w) (z, t) in integers, w = min(1, length^2/|z|^2): m = rint(S sqrt(w) z) and r = rint(2^20 sqrt(w) t).

    |m|^2 <= 2^40 and r^2 <= 2^40, as for `BoundedRows`, but features and response are shortened together, so that a line that holds for
    the records holds for the rows. length: bound on |u|, at least 1; S is `steps`, so that |u| <= 2^20/S exactly.
    """

    kind: ClassVar[str] = "leverage rows"

    @property
    def stated(self) -> list[object]:
        return [pack(self.length)]

    @property
    def bound(self) -> float:
        """B: no coded row is longer, in units of z."""
        return _UNIT / self.steps * _UP

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        with np.errstate(all="ignore"):
            factor = shortening(rows[:-1], self.length)
            if keep is not None:
                factor *= keep
            rows *= factor
            rows[:-1] *= float(self.steps)
            rows[-1] *= float(_UNIT)
            rows[:-1] = round_within(rows[:-1])
            rows[-1:] = round_within(rows[-1:])
        return rows


@dataclass(frozen=True, eq=False)
class Posterior:
    """A ridge regression on the lines start + basis phi: matrix (k, k), moments (k,), B and Y, all in units of z and t.

    From the exact Gram matrix of rows: `Posterior.of`, whose numbers have 120 digits. start is orthogonal to the orthonormal columns of
    basis, so that rows basis'u are no longer than u, and a response r - u'start is at most Y + B |start|.
    """

    matrix: NDArray[Any]
    moments: NDArray[Any]
    bound: float
    reach: float

    @classmethod
    @in_digits
    def of(cls, rows: LeverageRows, whole: NDArray[Any], start: Array, basis: Array) -> Posterior:
        """whole: the exact Gram matrix of (m, r), shape (p + 1, p + 1)."""
        unit, lines, offset = Decimal(rows.steps), numbers(basis), numbers(start)
        full = numbers(whole)
        gram, cross = full[:-1, :-1] / unit**2, full[:-1, -1] / (unit * _UNIT)
        inner = lines.T @ gram @ lines
        return cls((inner + inner.T) / 2, lines.T @ (cross - gram @ offset), *reach_of(rows, start))

    @property
    def gram(self) -> Array:
        """The matrix in doubles."""
        return self.matrix.astype(np.float64)

    @property
    def cross(self) -> Array:
        """The moments in doubles."""
        return self.moments.astype(np.float64)

    def solved(self, lam: float) -> Array:
        """theta at a penalty above 0, in doubles."""
        return self._solved(self._root(lam)).astype(np.float64)

    def log_residual(self, lam: float) -> float:
        """log(Y + B |theta|): no residual of a record is larger."""
        return float(self.residual(lam))

    @in_digits
    def residual(self, lam: float) -> Decimal:
        """log(Y + B |theta|)."""
        theta = self._solved(self._root(lam))
        length: Decimal = (theta @ theta).sqrt()
        return (Decimal(self.reach) + Decimal(self.bound) * length).ln()

    @in_digits
    def draw(self, lam: float, gamma: float, normal: NDArray[Any]) -> NDArray[Any]:
        """theta + (gamma H)^(-1/2) z: with H = R'R, R upper triangular, R^-1 z has the covariance H^-1 (R'^-1 z has not).

        normal: z in steps of 2^-56, integers, shape (k,). The result has 120 digits.
        """
        upper = self._root(lam)
        away = solved(upper, numbers(normal)) / (Decimal(gamma).sqrt() * 2**_FINE)
        return np.asarray(self._solved(upper) + away, dtype=object)

    @in_digits
    def steps(self, lam: float, gamma: float, normal: NDArray[Any], step: Fraction) -> NDArray[Any]:
        """The same, rounded to integers of a step: a power of two."""
        return whole(numbers(self.draw(lam, gamma, normal)) * step.denominator / step.numerator)

    @in_digits
    def _root(self, lam: float) -> NDArray[Any]:
        return cholesky(numbers(self.matrix) + Decimal(lam) * numbers(np.eye(len(self.moments), dtype=int)))

    @in_digits
    def _solved(self, upper: NDArray[Any]) -> NDArray[Any]:
        return solved(upper, solved(upper, numbers(self.moments), transposed=True))


def reach_of(rows: LeverageRows, start: Array) -> tuple[float, float]:
    """(B, Y): bounds on a row's length and its response, on lines through `start`."""
    return rows.bound, (1 + rows.bound * float(np.linalg.norm(start))) * _UP


def normal_steps(noise: Noise, size: int) -> NDArray[Any]:
    """Standard normal numbers from an exact sampler, as integers in steps of 2^-56."""
    return np.asarray(noise.grid_gaussian(Fraction(4**_FINE), size))


def sample_step(gamma: float, least: float, size: int) -> Fraction:
    """h: the power of two from eta up to 2 eta. least: lam + lower; size: k. Proof: head of this file."""
    eta = sqrt(size / (gamma * least)) * (1 + 2.0**-20)
    return Fraction(2) ** (frexp(eta)[1] - _FINE - 1)


def apart(size: int) -> Fraction:
    """2 + sqrt(k), rounded up: how far the steps of one ideal sample are apart on two neighbours."""
    return 2 + Fraction(sqrt(size) * _UP)


def quantile_of(spend: BudgetItem, failure: Fraction) -> float:
    """q, in the statistic's own integers, with P(noise > q) <= failure as the sampler draws: rounded to a step after the draw."""
    quantile = -float(special.ndtri(float(failure) * (1 - 1e-9))) * (1 + 1e-12)
    return float((quantile * sqrt(spend.scale) + 0.5) * float(spend.step)) * _UP


@dataclass(frozen=True)
class LogResidual(Statistic):
    """rint(2^20 log(Y + B |theta|)/D), shape (1,), D = log(1 + B^2/(lam + lower)): add-remove moves it by at most 2^20 + 2 steps.

    On condition that `lower` is at most the smallest eigenvalue of both neighbours. map: the rows; start, basis: the lines; `at` gives the
    statistic at a penalty and an eigenvalue that were released, of which the sensitivity does not depend. Proof: head of this file.
    """

    map: LeverageRows
    start: tuple[float, ...]
    basis: tuple[tuple[float, ...], ...]
    lam: float = 1.0
    lower: float = 0.0
    norm: str = "l2"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def range(self) -> float:
        """D, rounded up."""
        return log1p(self.map.bound**2 / (self.lam + self.lower)) * _UP

    def at(self, lam: float, lower: float) -> LogResidual:
        return replace(self, lam=lam, lower=lower)

    def sensitivity_squared(self, relation: str) -> Fraction:
        """In steps; under substitute twice as far, through the records that both have."""
        return Fraction((_UNIT + 2) * (2 if relation == "substitute" else 1)) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction((_UNIT + 2) * (2 if relation == "substitute" else 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared bounds, in steps, on how far it moves when `own` gives way to each of `rows`: by the most for any record there is."""
        size = ((own != 0).any() + (rows != 0).any(axis=0)) * (_UNIT + 2)
        return np.asarray(size, dtype=object) ** 2

    def zero(self) -> Any:
        return moments(self.map).zero()

    def update(self, state: Any, codes: Array) -> Any:
        return moments(self.map).update(state, codes)

    def merge(self, a: Any, b: Any) -> Any:
        return moments(self.map).merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        whole = moments(self.map).value(state)
        return self.of(Posterior.of(self.map, whole, np.array(self.start), np.array(self.basis)))

    def of(self, posterior: Posterior) -> NDArray[Any]:
        """The integer of a posterior."""
        return whole(numbers([self._scaled(posterior)]))

    @in_digits
    def _scaled(self, posterior: Posterior) -> Decimal:
        return posterior.residual(self.lam) * _UNIT / Decimal(self.range)

    def bound(self, noisy: float, quantile: float) -> float:
        """log r from the noisy integer and the quantile of its noise: one range for the neighbour, two steps for the rounding.

        Never below log Y, which is public.
        """
        _, reach = reach_of(self.map, np.array(self.start))
        return max(self.range * (1 + (noisy + quantile + 2) / _UNIT), log(reach))


@dataclass(frozen=True)
class Odds:
    """What the three steps may spend: mu_a, mu_b, mu_c of the eigenvalue, the residual, the sample; the failures of the first two and
    the slack of the third. tail: how many units of noise, gamma/d of them, the choice of a penalty counts in place of the mean, 1.
    """

    eigenvalue: float
    residual: float
    sample: float
    failure: float
    slack: float
    tail: float = 1.0


def chosen_penalty(
    odds: Odds,
    lower: float,
    dimension: int,
    bound: float,
    reach: float,
    length: float,
    residual: Callable[[float], float] | None = None,
) -> float:
    """lam from public numbers: the least of lam |theta|^2 + tail d r^2/m*^2 lev/(1 + lev), lev = B^2/(lam + lower), over a grid.

    The first term is what shrinkage adds to the squared error on the records, the second the sample's noise, d/gamma. r is taken at |theta|
    = length, a public guess, with the mean of what its certificate adds: exp((quantile/mu_b + 1) log(1 + lev)); or `residual(lam)`
    is r, where it is public. dimension: d.
    """
    quantile = -float(special.ndtri(odds.failure)) if residual is None else 0.0
    best, least = float(_PENALTIES[-1]) * bound**2, inf
    for lam in map(float, _PENALTIES * bound**2):
        lev = bound**2 / (lam + lower)
        growth = 0.0 if residual is not None else (quantile / odds.residual + 1) * log1p(lev)
        if growth > 300:
            continue
        size = residual(lam) if residual is not None else (reach + bound * length) * exp(growth)
        shift = largest_shift(leverage_above(lev), odds.sample, odds.slack)
        if shift == 0:
            continue
        value = lam * length**2 + odds.tail * dimension * (size / shift) ** 2 * lev / (1 + lev)
        if value < least:
            best, least = lam, value
    return best
