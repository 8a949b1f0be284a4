"""Losses of one index t = x'b and one response y, with what a correction for noise needs of them.

A protected row is its true row plus S, whose characteristic function is 1 / (1 + q / 2): the symmetric Laplace. Every projection of S
is a Laplace variable, so that a correction needs of a loss l(t, y) only its derivatives in t and its mean under Laplace noise,

    G(t, y; v) = E l(t + L, y),   L Laplace of scale sqrt(v),   which solves  G - v G'' = l.

A loss gives arrays, one number a row: `value`, `slope`, `bend` = l'', `third` = l''' and `smoothed(t, y, v)` = (G, dG/dt, dG/dv). A
loss with a kink gives them for its mean under further Gaussian noise of the response, of standard deviation `h` (`Check`, `Huber`,
`Hinge`). Source: Lu, Chen, Qiu 2026 (the correction); the Laplace means are derived here and checked against quadrature in the tests.

A loss of the user's own, written with JAX: its derivatives by automatic differentiation, its mean under noise by averaging.

Corrected losses: functions of protected rows whose mean is that of a loss of the true rows.

What is published of a row is X1 = X + (1 - keep) S, keep = 1 with probability zeta, S symmetric Laplace of covariance diag(lam^2). An
index t = x'b then carries Laplace noise of variance Q = sum lam_j^2 b_j^2. With X2 = X1 + S', S' of covariance zeta diag(lam^2) and
drawn by the analyst, it carries noise of the same variance in every row. With l'' the second derivative in the index:

- naive: l(t1), what noise does when nothing is corrected.
- DR: l(t1) / zeta + (1 - 1 / zeta) l(t2), for any loss.
- SDR: l(t1) - (1 - zeta) / 2 Q l''(t2), twice differentiable.
- SL: l(t2) - Q / 2 l''(t2), the same; with zeta = 0 X2 is X1.
- RB: l(t1) / zeta + (1 - 1 / zeta) G(t1; zeta Q / 2), the mean of DR, SDR and SL over S': never of larger variance.

A column of levels is told truly with probability k, else as one of its L levels at random. A record then stands L times, once with each
level z, weighed by u_z = (1{z is told} - (1 - k) / L) / k. The mean of u_z is 1 at the true level and 0 at the others. Levels and noise
are drawn independently. So the weighed sum of corrected losses has the mean of the loss of the true record, whatever the loss. For two
columns of this kind the weights are products.

Unbiased: the distribution of X1 is zeta that of X plus (1 - zeta) that of X + S, and X2 has that of X + S. Take E of a function g of X
+ S, minus half the Laplacian of g in the scales lam. It is E g(X), as 1 + q / 2 is the inverse of the characteristic function of S.
Source: Lu, Chen, Qiu 2026, sections 4 and 5 (DR, SDR, SL). RB is derived here: errata, the section on protected records. So are the
weights of levels, by the inverse of the matrix of what is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from confide._arrays import Array
from confide.errors import PlanError
from confide.local.fits.noisy_means import (
    NEXT_TO_NOTHING,
    Tail,
    absolute,
    density,
    laguerre,
    log_odds,
    log_odds_smoothed,
    sign,
    signed_square,
)


@dataclass(frozen=True)
class Loss:
    """The base of the losses.

    - location: whether l depends on y - t alone, so that the response may be protected and scaled.
    - kinked: whether a derivative jumps; cornered: whether the first one does.
    - widest: the noise variance of the index from which on a corrected score has no variance.
    - sides: what the first and the second level of a response of two levels are.
    - convex: whether the loss itself is convex in t.
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
        """The estimand, in a title."""
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
                "a logistic response is published as 0 and 1", "write loss='squared' for a share, or recode it"
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
            raise PlanError("counts are not negative", "write loss='squared' for a response of either sign")


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
            raise PlanError("a response of the hinge loss is published as -1 and 1", "recode it")


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
            f"loss must be one of {', '.join([*LOSSES, 'absolute'])}, got {loss!r}",
            "write loss='squared' for means, loss='absolute' for medians",
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
            raise PlanError("the Huber loss needs its corner in units of the response", "write loss='huber', k=1.5")
        return Huber(float(k))
    return LOSSES[name]()


_NODES, _TINY = 64, 1e-14


@dataclass(frozen=True, eq=False)
class OwnLoss(Loss):
    """A loss of the user's, differentiated by JAX.

    The loss l(t, y) is a function of one index t = x'b and one response, twice
    differentiable in t. It needs ``pip install "confide[autodiff]"``. The
    response is published without protection.

    Parameters
    ----------
    function : callable
        Function of two JAX scalars, t and y, that gives a JAX scalar.
    title : str, default "line of the least mean loss"
        The estimand, in words.

    Raises
    ------
    PlanError
        When the loss is used: JAX is not installed, or the function is not one
        of two scalars.

    Notes
    -----
    The correction needs only derivatives in t, because the Laplacian of the
    loss in the terms, in the scales of their noise, is Q l''(t). For "RB" the
    mean under Laplace noise is a weighted mean over the 64 Gauss-Laguerre
    points of either sign. Where l is smooth on the scale of the noise, its
    error is smaller than that of random draws.

    Examples
    --------
    >>> import confide as cf
    >>> loss = cf.local.OwnLoss(lambda t, y: (y - t) ** 2)
    >>> loss.title
    'line of the least mean loss'
    """

    function: Callable[[Any, Any], Any]
    title: str = "line of the least mean loss"

    name = "own"
    convex = False

    @property
    def target(self) -> str:
        return self.title

    def value(self, t: Array, y: Array) -> Array:
        return self._of(0, t, y)

    def slope(self, t: Array, y: Array) -> Array:
        return self._of(1, t, y)

    def bend(self, t: Array, y: Array) -> Array:
        return self._of(2, t, y)

    def third(self, t: Array, y: Array) -> Array:
        return self._of(3, t, y)

    def smoothed(self, t: Array, y: Array, v: float) -> tuple[Array, Array, Array]:
        scale = max(sqrt(v), NEXT_TO_NOTHING)
        mean, slope, grown = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for u, w in zip(*laguerre(_NODES), strict=True):
            if w < _TINY:
                continue
            above, below = t + scale * u, t - scale * u
            up, low = self._of(1, above, y), self._of(1, below, y)
            mean += w / 2 * (self._of(0, above, y) + self._of(0, below, y))
            slope += w / 2 * (up + low)
            grown += w / 2 * u * (up - low)
        return mean, slope, grown / (2 * scale)

    def _of(self, order: int, t: Array, y: Array) -> Array:
        jax = _jax()
        with jax.enable_x64(True):
            return np.asarray(self._orders[order](t, np.broadcast_to(y, t.shape)), dtype=np.float64)

    @cached_property
    def _orders(self) -> tuple[Callable[[Any, Any], Any], ...]:
        """The function and its first three derivatives in t, of arrays."""
        jax = _jax()

        def scalar(t: Any, y: Any) -> Any:
            found = jax.numpy.asarray(self.function(t, y))
            if found.shape != ():
                raise PlanError(
                    "the loss takes an index and a response and gives one number",
                    "write cf.local.OwnLoss(lambda t, y: jnp.logaddexp(0, t) - y * t)",
                )
            return found

        made: list[Callable[[Any, Any], Any]] = [scalar]
        for _ in range(3):
            made.append(jax.grad(made[-1]))
        return tuple(jax.jit(jax.vmap(one)) for one in made)


def _jax() -> Any:
    try:
        import jax
    except ImportError:
        raise PlanError(
            "a user-defined loss needs JAX: pip install 'confide[autodiff]'; or take one of the losses by name"
        ) from None
    return jax


METHODS = ("naive", "DR", "SDR", "SL", "RB")


@dataclass(frozen=True, eq=False)
class Rows:
    """Protected rows as an analyst has them, in units of the declared domains.

    - x (n, p): terms; y (n,): response.
    - lam (p,): SD of the noise of each term, 0 where it is public; lam_y: of the response.
    - zeta: the probability that a row was published without noise.
    - weights (n,), copies: where columns of levels were protected, each of the `len(rows)` records stands `copies` times in sequence,
      first as it was told.
    """

    x: Array
    y: Array
    lam: Array
    lam_y: float
    zeta: float
    weights: Array | None = None
    copies: int = 1

    def noised_again(self, generator: np.random.Generator) -> Self:
        """X2 of the module: one more draw, of covariance zeta diag(lam^2), so that all rows carry the same noise.

        It is post-processing of what is published, and nothing rests on its randomness being secret.
        """
        if self.zeta == 0:
            return self
        n, p = len(self), self.x.shape[1]
        radius = np.repeat(np.sqrt(self.zeta * generator.standard_exponential(n)), self.copies)
        noise = np.repeat(generator.standard_normal((n, p + 1)), self.copies, axis=0)
        return replace(
            self,
            x=self.x + radius[:, None] * noise[:, :p] * self.lam,
            y=self.y + radius * noise[:, p] * self.lam_y,
        )

    def as_told(self) -> Self:
        """Each record once, with the levels that were told."""
        if self.weights is None:
            return self
        return replace(self, x=self.x[:: self.copies], y=self.y[:: self.copies], weights=None, copies=1)

    def weighed(self, values: Array) -> Array:
        """Values of rows (n,) or (n, k), times their weights."""
        if self.weights is None:
            return values
        return values * (self.weights if values.ndim == 1 else self.weights[:, None])

    def by_record(self, values: Array) -> Array:
        """Values of rows (n, ..), weighed and added up over the copies of a record."""
        if self.weights is None:
            return values
        return np.asarray(self.weighed(values).reshape(len(self), self.copies, *values.shape[1:]).sum(axis=1))

    def mean(self, values: Array) -> float:
        """The mean over records of values (n,), or of one value for all."""
        return float(self.weighed(values).mean()) * self.copies

    def __len__(self) -> int:
        return len(self.y) // self.copies


@dataclass(frozen=True, eq=False)
class Corrected:
    """The corrected mean loss of protected rows under one of `METHODS`: value with gradient, scores and curvature.

    rows are X1, again X2 (`Rows.noised_again`; the same object at zeta = 0). The parameters belong to the columns of `rows.x`, shape
    (p,).
    """

    loss: Loss
    method: str
    rows: Rows
    again: Rows

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise PlanError(
                f"method must be 'auto' or one of {', '.join(METHODS)}, got {self.method!r}", "write 'auto'"
            )
        if self.method in ("DR", "RB") and self.rows.zeta == 0:
            raise PlanError(
                f"{self.method} weighs rows by 1 / zeta, and these records were protected with zeta = 0",
                "write method='SL'",
            )

    def noise(self, theta: Array) -> tuple[float, Array]:
        """Q, the noise variance of the index at zeta = 0, and its gradient. That of the response counts where l depends on y - t."""
        squares = np.square(self.rows.lam)
        own = self.rows.lam_y**2 if self.loss.location else 0.0
        return float(squares @ np.square(theta)) + own, 2 * squares * theta

    def value(self, theta: Array) -> tuple[float, Array]:
        """The mean corrected loss and its gradient (p,)."""
        q, dq = self.noise(theta)
        mean, gradient = 0.0, np.zeros_like(theta)
        for rows, (value, by_t, by_q) in self._parts(theta, q):
            mean += rows.mean(value)
            gradient += rows.x.T @ rows.weighed(by_t) / len(rows) + rows.mean(by_q) * dq
        return mean, gradient

    def scores(self, theta: Array) -> Array:
        """The gradient of each record's corrected loss, shape (records, p)."""
        q, dq = self.noise(theta)
        scores = np.zeros((len(self.rows), len(theta)))
        for rows, (_, by_t, by_q) in self._parts(theta, q):
            scores += rows.by_record(by_t[:, None] * rows.x + np.multiply.outer(np.broadcast_to(by_q, by_t.shape), dq))
        return scores

    def curvature(self, theta: Array, steps: Array) -> Array:
        """The second derivative of the mean corrected loss, by central differences of its gradient, symmetric (p, p)."""
        columns = []
        for k, step in enumerate(steps):
            move = np.zeros_like(theta)
            move[k] = step
            columns.append((self.value(theta + move)[1] - self.value(theta - move)[1]) / (2 * step))
        rough = np.stack(columns)
        return np.asarray((rough + rough.T) / 2)

    def _parts(self, theta: Array, q: float) -> list[tuple[Rows, tuple[Array, Array, Array]]]:
        """Weighted losses as (rows, (value, d/dt, d/dQ)); their sum over the list is the corrected loss."""
        zeta, one, two = self.rows.zeta, self.rows, self.again
        match self.method:
            case "naive":
                told = one.as_told()
                return [(told, self._plain(told, theta, 1.0))]
            case "DR":
                return [(one, self._plain(one, theta, 1 / zeta)), (two, self._plain(two, theta, 1 - 1 / zeta))]
            case "SDR":
                return [(one, self._plain(one, theta, 1.0)), (two, self._less_bend(two, theta, q, 1 - zeta, 0.0))]
            case "SL":
                return [(two, self._less_bend(two, theta, q, 1.0, 1.0))]
        t = one.x @ theta
        mean, slope, grown = self.loss.smoothed(t, one.y, zeta * q / 2)
        rest = 1 - 1 / zeta
        return [
            (one, self._plain(one, theta, 1 / zeta)),
            (one, (rest * mean, rest * slope, rest * zeta / 2 * grown)),
        ]

    def _plain(self, rows: Rows, theta: Array, weight: float) -> tuple[Array, Array, Array]:
        value, slope = self.loss.first(rows.x @ theta, rows.y)
        return weight * value, weight * slope, np.zeros(1)

    def _less_bend(self, rows: Rows, theta: Array, q: float, share: float, own: float) -> tuple[Array, Array, Array]:
        """own times the loss less half of `share` of its bend."""
        value, slope, bend, third = self.loss.derivatives(rows.x @ theta, rows.y)
        half = share / 2
        return own * value - half * q * bend, own * slope - half * q * third, -half * bend
