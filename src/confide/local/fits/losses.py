r"""Losses of one index t = x'b and one response y, with what a correction for noise needs of them.

A protected row is its true row plus S, whose characteristic function is 1 / (1 + q / 2): the symmetric Laplace. Every projection of S
is a Laplace variable, so that a correction needs of a loss l(t, y) only its derivatives in t and its mean under Laplace noise,

    G(t, y; v) = E l(t + L, y),   L Laplace of scale sqrt(v),   which solves  G - v G'' = l.

A loss gives arrays, one number a row: `value`, `slope`, `bend` = l'', `third` = l''' and `smoothed(t, y, v)` = (G, dG/dt, dG/dv). A loss
with a kink gives them for its mean under further Gaussian noise of the response, of standard deviation `h` (`Check`, `Huber`, `Hinge`).
Source: Lu, Chen, Qiu 2026 (the correction); the Laplace means are derived here and checked against quadrature in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from confide._arrays import Array
from confide.errors import PlanError
from confide.local.fits.noisy_means import Tail, absolute, density, log_odds, log_odds_smoothed, sign, signed_square

__all__ = ["LOSSES", "Check", "Hinge", "Huber", "Logistic", "Loss", "Poisson", "Squared", "loss_named"]


@dataclass(frozen=True)
class Loss:
    """The base of the losses.

    location: whether l depends on y - t alone, so that the response may be protected and scaled. kinked: whether a derivative jumps, and
    cornered: whether the first one does. widest: the noise variance of the index from which on a corrected score has no variance.
    sides: what the first and the second level of a response of two levels are. convex: whether the loss itself is convex in t.
    """

    name: ClassVar[str]
    location: ClassVar[bool] = False
    kinked: ClassVar[bool] = False
    cornered: ClassVar[bool] = True
    widest: ClassVar[float] = inf
    sides: ClassVar[tuple[float, float]] = (0.0, 1.0)
    convex: ClassVar[bool] = True

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

    def first(self, t: Array, y: Array) -> tuple[Array, Array]:
        """The loss and its slope at once."""
        return self.value(t, y), self.slope(t, y)

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
        return self.first(t, y)[0]

    def slope(self, t: Array, y: Array) -> Array:
        return np.asarray(expit(t)) - y

    def first(self, t: Array, y: Array) -> tuple[Array, Array]:
        value, slope = log_odds(t)
        return value - y * t, slope - y

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
        return log_odds_smoothed(t, y, v)

    def checked(self, y: Array) -> None:
        if not np.isin(y, (0.0, 1.0)).all():
            raise PlanError(
                "a logistic response is published as 0 and 1; write loss='squared' for a share, or recode it"
            )


@dataclass(frozen=True)
class Poisson(Loss):
    """e^t - y t: the log-mean line of counts. Means exist where the noise of the index has v < 1."""

    name = "poisson"
    widest = 0.5
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
class Kinked(Loss):
    """A loss with a corner, of the response under Gaussian noise of standard deviation h; h = 0 is the loss itself."""

    h: float = field(default=0.0, kw_only=True)

    kinked = True

    def at(self, h: float) -> Self:
        return replace(self, h=float(h))

    @property
    def flat(self) -> bool:
        return self.h == 0


@dataclass(frozen=True)
class Check(Kinked):
    """tau (y - t)+ + (1 - tau) (t - y)+ of the response under Gaussian noise of standard deviation h: quantile regression.

    With r = y - t it is A(r) / 2 + (tau - 1/2) r, A(r) = E|r + h N|, whose second derivative is twice a normal density.

    >>> Check(0.5, h=0.0).value(np.array([1.0]), np.array([3.0])).tolist()
    [1.0]
    """

    tau: float = 0.5

    name = "quantile"
    location = True

    @property
    def target(self) -> str:
        return "median regression" if self.tau == 0.5 else f"regression of the {self.tau:g} quantile"

    def value(self, t: Array, y: Array) -> Array:
        return absolute(y - t, self.h) / 2 + (self.tau - 0.5) * (y - t)

    def slope(self, t: Array, y: Array) -> Array:
        return -sign(y - t, self.h) / 2 - (self.tau - 0.5)

    def bend(self, t: Array, y: Array) -> Array:
        return density(y - t, self.h)

    def third(self, t: Array, y: Array) -> Array:
        r = y - t
        return r / self.h**2 * density(r, self.h)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        r, noise = y - t, Tail.of(y - t, self.h, v)
        return (
            self.value(t, y) + noise.v * noise.density,
            self.slope(t, y) - noise.v * noise.slope,
            noise.density_of_two(r, self.h),
        )


@dataclass(frozen=True)
class Hinge(Kinked):
    """max(0, 1 - y t) for y in {-1, 1}, under Gaussian noise of standard deviation h: (1 - y t + |y - t|) / 2."""

    name = "hinge"
    sides = (-1.0, 1.0)
    target = "separating line of the hinge loss"

    @property
    def _half(self) -> Check:
        return Check(0.5, h=self.h)

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
class Huber(Kinked):
    """r^2 / 2 up to k, then k |r| - k^2 / 2, of the response under Gaussian noise of standard deviation h; r = y - t, k in its units."""

    k: float = 1.345

    name = "huber"
    location = True
    cornered = False

    @property
    def target(self) -> str:
        return f"Huber line at k = {self.k:g}"

    def value(self, t: Array, y: Array) -> Array:
        # H'' is the indicator of [-k, k], so H is half the difference of two even functions: E (r + k)|r + k| and its mirror
        return (signed_square(y - t + self.k, self.h) - signed_square(y - t - self.k, self.h) - 2 * self.k**2) / 4

    def slope(self, t: Array, y: Array) -> Array:
        return -(absolute(y - t + self.k, self.h) - absolute(y - t - self.k, self.h)) / 2

    def bend(self, t: Array, y: Array) -> Array:
        return (sign(y - t + self.k, self.h) - sign(y - t - self.k, self.h)) / 2

    def third(self, t: Array, y: Array) -> Array:
        return -(density(y - t + self.k, self.h) - density(y - t - self.k, self.h))

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        # G'' = E H''(r + L), a difference of two distribution functions of h N + L
        (up, x), (low, z) = ((Tail.of(y - t + c, self.h, v), y - t + c) for c in (self.k, -self.k))
        within = up.distribution(x, self.h) - low.distribution(z, self.h)
        return (
            self.value(t, y) + up.v * within,
            self.slope(t, y) - up.v * (up.density - low.density),
            up.distribution_of_two(x, self.h) - low.distribution_of_two(z, self.h),
        )


LOSSES: dict[str, type[Loss]] = {one.name: one for one in (Squared, Logistic, Poisson, Check, Huber, Hinge)}


def loss_named(loss: str | Loss, tau: float | None = None, k: float | None = None) -> Loss:
    """A loss by name: squared, logistic, poisson, quantile (with tau), absolute (quantile at 1/2), huber (with k), hinge.

    >>> loss_named("absolute")
    Check(h=0.0, tau=0.5)
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
