r"""Losses of one index t = x'b and one response y, with what a correction for noise needs of them.

A protected row is its true row plus S, whose characteristic function is 1 / (1 + q / 2): the symmetric Laplace. Every projection of S
is a Laplace variable, so that a correction needs of a loss l(t, y) only its derivatives in t and its mean under Laplace noise,

    G(t, y; v) = E l(t + L, y),   L Laplace of scale sqrt(v),   which solves  G - v G'' = l.

A loss gives arrays, one number a row: `value`, `slope`, `bend` = l'', `third` = l''' and `smoothed(t, y, v)` = (G, dG/dt, dG/dv). A loss
with a kink gives them for its mean under further Gaussian noise of the response, of standard deviation `h` (`Check`, `Huber`, `Hinge`).
Source: Lu, Chen, Qiu 2026 (the correction); the Laplace means are derived here and checked against quadrature in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import sqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, erfcx, expit, ndtr

from confide.errors import PlanError

__all__ = ["LOSSES", "Check", "Hinge", "Huber", "Logistic", "Loss", "Poisson", "Squared", "loss_named"]

Array = NDArray[np.float64]

_ROOT_2PI = sqrt(2 * np.pi)
#: Below this scale, in units of the index, Laplace noise is a second derivative: differences would lose all digits.
_NEXT_TO_NOTHING = 1e-4
# Laplace scales of a log-odds index beyond which Gauss-Laguerre loses digits, where log(1 + e^-|t|) ends, weights that add nothing.
_WIDEST, _REACH, _TINY = 5.0, 40.0, 1e-14


@dataclass(frozen=True)
class Loss:
    """The base of the losses. location: whether l depends on y - t alone, so that the response may be protected and scaled."""

    name: ClassVar[str]
    location: ClassVar[bool] = False
    kinked: ClassVar[bool] = False

    @property
    def flat(self) -> bool:
        """Whether the second derivative has atoms, so that it corrects nothing."""
        return False

    def value(self, t: Array, y: Array) -> Array:
        raise NotImplementedError

    def slope(self, t: Array, y: Array) -> Array:
        raise NotImplementedError

    def bend(self, t: Array, y: Array) -> Array:
        raise NotImplementedError

    def third(self, t: Array, y: Array) -> Array:
        raise NotImplementedError

    def derivatives(self, t: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        """The loss and its first three derivatives at once, where they share work."""
        return self.value(t, y), self.slope(t, y), self.bend(t, y), self.third(t, y)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        """(G, dG/dt, dG/dv): the mean under Laplace noise of scale sqrt(v) on the index, and its derivatives."""
        raise NotImplementedError

    def at(self, h: float) -> Self:
        """The loss of the response under Gaussian noise of standard deviation h; itself where it has no kink."""
        return self

    @property
    def target(self) -> str:
        """What is estimated, in a title."""
        raise NotImplementedError

    def checked(self, y: Array) -> None:
        """Raise `PlanError` for a published response that the loss has no meaning for."""


@dataclass(frozen=True)
class Squared(Loss):
    """(y - t)^2: the least-squares line.

    >>> Squared().value(np.array([1.0]), np.array([3.0])).tolist()
    [4.0]
    """

    name = "squared"
    location = True
    target = "least-squares line"

    def value(self, t: Array, y: Array) -> Array:
        return np.square(y - t)

    def slope(self, t: Array, y: Array) -> Array:
        return 2 * (t - y)

    def bend(self, t: Array, y: Array) -> Array:
        return np.full_like(t, 2.0)

    def third(self, t: Array, y: Array) -> Array:
        return np.zeros_like(t)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        return np.square(y - t) + 2 * v, 2 * (t - y), np.full_like(t, 2.0)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^t) - y t for y in {0, 1}: the log-odds line of maximum likelihood.

    >>> Logistic().value(np.array([0.0]), np.array([1.0])).round(4).tolist()
    [0.6931]
    """

    name = "logistic"
    target = "log-odds line of maximum likelihood"

    def value(self, t: Array, y: Array) -> Array:
        return np.logaddexp(0, t) - y * t

    def slope(self, t: Array, y: Array) -> Array:
        return np.asarray(expit(t)) - y

    def bend(self, t: Array, y: Array) -> Array:
        return self.derivatives(t, y)[2]

    def third(self, t: Array, y: Array) -> Array:
        return self.derivatives(t, y)[3]

    def derivatives(self, t: Array, y: Array) -> tuple[Array, Array, Array, Array]:
        small = np.exp(-np.abs(t))  # one exponential for all four
        whole = 1 + small
        bend = small / np.square(whole)
        odd = np.sign(t) * (1 - small) / whole  # 2 p - 1
        return np.maximum(t, 0) + np.log(whole) - y * t, (1 + odd) / 2 - y, bend, -bend * odd

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        return _log_odds_smoothed(t, y, v)

    def checked(self, y: Array) -> None:
        if not np.isin(y, (0.0, 1.0)).all():
            raise PlanError(
                "a logistic response is published as 0 and 1; write loss='squared' for a share, or recode it"
            )


@dataclass(frozen=True)
class Poisson(Loss):
    """e^t - y t: the log-mean line of counts. Means exist where the noise of the index has v < 1."""

    name = "poisson"
    target = "log-mean line of counts"

    def value(self, t: Array, y: Array) -> Array:
        return np.exp(t) - y * t

    def slope(self, t: Array, y: Array) -> Array:
        return np.exp(t) - y

    def bend(self, t: Array, y: Array) -> Array:
        return np.exp(t)

    third = bend

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        with np.errstate(divide="ignore"):
            factor = np.float64(1) / max(1 - v, 0.0)  # infinite where the mean does not exist
        grown = np.exp(t) * factor
        return grown - y * t, grown - y, grown * factor

    def checked(self, y: Array) -> None:
        if (y < 0).any():
            raise PlanError("counts are not negative; write loss='squared' for a response of either sign")


@dataclass(frozen=True)
class Check(Loss):
    """tau (y - t)+ + (1 - tau) (t - y)+ of the response under Gaussian noise of standard deviation h: quantile regression.

    With r = y - t it is A(r) / 2 + (tau - 1/2) r, A(r) = E|r + h N|, whose second derivative is twice a normal density.

    >>> Check(0.5, h=0.0).value(np.array([1.0]), np.array([3.0])).tolist()
    [1.0]
    """

    tau: float = 0.5
    h: float = 0.0

    name = "quantile"
    location = True
    kinked = True

    def at(self, h: float) -> Self:
        return replace(self, h=float(h))

    @property
    def flat(self) -> bool:
        return self.h == 0

    @property
    def target(self) -> str:
        return "median regression" if self.tau == 0.5 else f"regression of the {self.tau:g} quantile"

    def value(self, t: Array, y: Array) -> Array:
        return _absolute(y - t, self.h) / 2 + (self.tau - 0.5) * (y - t)

    def slope(self, t: Array, y: Array) -> Array:
        return -_sign(y - t, self.h) / 2 - (self.tau - 0.5)

    def bend(self, t: Array, y: Array) -> Array:
        return _density(y - t, self.h)

    def third(self, t: Array, y: Array) -> Array:
        r = y - t
        return r / self.h**2 * _density(r, self.h)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        r, noise = y - t, _Tail.of(y - t, self.h, v)
        return (
            self.value(t, y) + noise.v * noise.density,
            self.slope(t, y) - noise.v * noise.slope,
            noise.density_of_two(r, self.h),
        )


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y t) for y in {-1, 1}, under Gaussian noise of standard deviation h: (1 - y t + |y - t|) / 2."""

    h: float = 0.0

    name = "hinge"
    kinked = True
    target = "separating line of the hinge loss"

    def at(self, h: float) -> Self:
        return replace(self, h=float(h))

    @property
    def flat(self) -> bool:
        return self.h == 0

    @property
    def _half(self) -> Check:
        return Check(0.5, self.h)

    def value(self, t: Array, y: Array) -> Array:
        return self._half.value(t, y) + (1 - y * t) / 2

    def slope(self, t: Array, y: Array) -> Array:
        return self._half.slope(t, y) - y / 2

    def bend(self, t: Array, y: Array) -> Array:
        return self._half.bend(t, y)

    def third(self, t: Array, y: Array) -> Array:
        return self._half.third(t, y)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        g, slope, grown = self._half.smoothed(t, y, v)
        return g + (1 - y * t) / 2, slope - y / 2, grown

    def checked(self, y: Array) -> None:
        if not np.isin(y, (-1.0, 1.0)).all():
            raise PlanError("a response of the hinge loss is published as -1 and 1; recode it")


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 up to k, then k |r| - k^2 / 2, of the response under Gaussian noise of standard deviation h; r = y - t, k in its units."""

    k: float = 1.345
    h: float = 0.0

    name = "huber"
    location = True
    kinked = True

    def at(self, h: float) -> Self:
        return replace(self, h=float(h))

    @property
    def flat(self) -> bool:
        return self.h == 0

    @property
    def target(self) -> str:
        return f"Huber line at k = {self.k:g}"

    def value(self, t: Array, y: Array) -> Array:
        # H'' is the indicator of [-k, k], so H is half the difference of two even functions: E (r + k)|r + k| and its mirror
        return (_signed_square(y - t + self.k, self.h) - _signed_square(y - t - self.k, self.h) - 2 * self.k**2) / 4

    def slope(self, t: Array, y: Array) -> Array:
        return -(_absolute(y - t + self.k, self.h) - _absolute(y - t - self.k, self.h)) / 2

    def bend(self, t: Array, y: Array) -> Array:
        return (_sign(y - t + self.k, self.h) - _sign(y - t - self.k, self.h)) / 2

    def third(self, t: Array, y: Array) -> Array:
        return -(_density(y - t + self.k, self.h) - _density(y - t - self.k, self.h))

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        # G'' = E H''(r + L), a difference of two distribution functions of h N + L
        (up, x), (low, z) = ((_Tail.of(y - t + c, self.h, v), y - t + c) for c in (self.k, -self.k))
        within = up.distribution(x, self.h) - low.distribution(z, self.h)
        return (
            self.value(t, y) + up.v * within,
            self.slope(t, y) - up.v * (up.density - low.density),
            up.distribution_of_two(x, self.h) - low.distribution_of_two(z, self.h),
        )


@dataclass(frozen=True)
class _Tail:
    """h N + L at r, L Laplace of scale sqrt(v): its density g and slope g', which are those of its two exponential halves.

    With phi the density of h N:  g'' = (g - phi) / v,  F = Phi + v g'.  For two Laplace variables in place of one:
    g2 = g / 2 + h^2 (phi - g) / (2 v) - r g' / 2 and F2 = F - (h^2 g' + r g) / 2.
    """

    v: float
    density: Array
    slope: Array

    @classmethod
    def of(cls, r: Array, h: float, v: float) -> Self:
        scale = max(sqrt(v), _NEXT_TO_NOTHING)
        left, right = _exponential(r, h, scale), _exponential(-r, h, scale)
        return cls(scale**2, (left + right) / 2, (right - left) / (2 * scale))

    def distribution(self, r: Array, h: float) -> Array:
        return (1 + _sign(r, h)) / 2 + self.v * self.slope

    def density_of_two(self, r: Array, h: float) -> Array:
        curved = h * h * (_density(r, h) - self.density) / (2 * self.v) if h else 0.0
        return self.density / 2 + curved - r * self.slope / 2

    def distribution_of_two(self, r: Array, h: float) -> Array:
        return self.distribution(r, h) - (h * h * self.slope + r * self.density) / 2


def _exponential(r: Array, h: float, scale: float) -> Array:
    """The density at r of h N plus an exponential variable of this scale."""
    if h == 0:
        return np.where(r < 0, 0.0, np.exp(-np.maximum(r, 0) / scale) / scale * np.where(r == 0, 0.5, 1.0))
    z = (h / scale - r / h) / sqrt(2)
    near = erfcx(np.maximum(z, 0)) * np.exp(-np.square(r / h) / 2)
    far = np.exp(np.minimum(h * h / (2 * scale**2) - r / scale, 0)) * erfc(np.minimum(z, 0))
    return np.asarray(np.where(z >= 0, near, far) / (2 * scale))


def _density(r: Array, h: float) -> Array:
    """Of h N; zero everywhere without noise, where the second derivative is an atom."""
    return np.exp(-np.square(r / h) / 2) / (h * _ROOT_2PI) if h else np.zeros_like(r)


def _sign(r: Array, h: float) -> Array:
    """E sign(r + h N)."""
    return 2 * np.asarray(ndtr(r / h)) - 1 if h else np.sign(r)


def _absolute(r: Array, h: float) -> Array:
    """E |r + h N|."""
    return r * _sign(r, h) + 2 * h * h * _density(r, h) if h else np.abs(r)


def _signed_square(r: Array, h: float) -> Array:
    """E (r + h N) |r + h N|."""
    return (r * r + h * h) * _sign(r, h) + 2 * r * h * h * _density(r, h) if h else r * np.abs(r)


@cache
def _nodes(count: int) -> tuple[Array, Array]:
    return np.polynomial.laguerre.laggauss(count)


def _log_odds_smoothed(t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
    """(G, dG/dt, dG/dv) of the logistic loss under Laplace noise: Gauss-Laguerre on both sides.

    20 nodes up to scale 1 (error 1e-7), 64 up to 5 (2e-5). Beyond that log(1 + e^t) = max(t, 0) + log(1 + e^-|t|): the first part in
    closed form, the second, which is small and short, by Gauss-Legendre on pieces between its kink and that of the Laplace density.
    """
    scale = max(sqrt(v), _NEXT_TO_NOTHING)
    if scale > _WIDEST:
        return _wide(t, y, scale)
    points, weights = _nodes(20 if scale <= 1 else 64)
    mean, slope, grown = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    for u, w in zip(scale * points, weights / 2, strict=True):
        if w < _TINY:
            continue
        up, low = t + u, t - u
        above, below = np.asarray(expit(up)), np.asarray(expit(low))
        mean += w * (np.logaddexp(0, up) + np.logaddexp(0, low))
        slope += w * (above + below)
        grown += w * (u / scale) * (above - below)
    return mean - y * t, slope - y, grown / (2 * scale)


def _wide(t: Array, y: Array, scale: float) -> tuple[Array, Array, Array]:
    far = np.exp(-np.abs(t) / scale)
    mean = np.maximum(t, 0) + scale / 2 * far
    slope = (1 + np.sign(t) * (1 - far)) / 2
    grown = far * (1 + np.abs(t) / scale) / (4 * scale)
    points, weights = np.polynomial.legendre.leggauss(40)
    inner = np.clip(t, -_REACH, _REACH)
    cuts = [np.full_like(t, -_REACH), np.minimum(inner, 0), np.maximum(inner, 0), np.full_like(t, _REACH)]
    for low, high in pairwise(cuts):
        for u, w in zip(points, weights, strict=True):
            x = low + (high - low) * (u + 1) / 2
            away = np.abs(x - t) / scale
            mass = w * (high - low) / 2 * np.log1p(np.exp(-np.abs(x))) * np.exp(-away) / (2 * scale)
            mean += mass
            slope += mass * np.sign(x - t) / scale
            grown += mass * (away - 1) / (2 * scale**2)
    return mean - y * t, slope - y, grown


LOSSES: dict[str, type[Loss]] = {one.name: one for one in (Squared, Logistic, Poisson, Check, Huber, Hinge)}


def loss_named(loss: str | Loss, tau: float | None = None, k: float | None = None) -> Loss:
    """A loss by name: squared, logistic, poisson, quantile (with tau), absolute (quantile at 1/2), huber (with k), hinge.

    >>> loss_named("absolute")
    Check(tau=0.5, h=0.0)
    """
    if isinstance(loss, Loss):
        return loss
    name = "quantile" if loss == "absolute" else loss
    if name not in LOSSES:
        raise PlanError(
            f"loss must be one of {', '.join([*LOSSES, 'absolute'])}, got {loss!r}; "
            "write loss='squared' for means, loss='absolute' for medians"
        )
    if tau is not None and not (loss == "quantile" and 0 < tau < 1):
        raise PlanError(f"tau is the level of loss='quantile', between 0 and 1, got tau={tau!r} with loss={loss!r}")
    if k is not None and not (loss == "huber" and k > 0):
        raise PlanError(
            f"k is the corner of loss='huber', above 0 in units of the response, got k={k!r} with loss={loss!r}"
        )
    if name == "quantile":
        return Check(0.5 if tau is None else float(tau))
    if name == "huber":
        if k is None:
            raise PlanError("the Huber loss needs its corner in units of the response; write loss='huber', k=1.5")
        return Huber(float(k))
    return LOSSES[name]()
