"""A trade-off function and everything that follows from it by duality, symmetry and search.

Neighbors have output distributions P and Q. The trade-off function f(alpha) is the smallest type II error of any test
of P against Q whose type I error is at most alpha (Dong, Roth, Su 2022). It is convex and falls from at most 1 to 0.
All curves here are symmetric: what holds for (P, Q) holds for (Q, P). The privacy profile delta(epsilon) is the other
face of the same object:

    delta(epsilon) = sup over alpha of 1 - f(alpha) - e^epsilon alpha
    f(alpha)       = sup over epsilon of 1 - delta(epsilon) - e^epsilon alpha
    delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon))                              by symmetry

Every number is on the safe side: delta and epsilon are rounded up, f down.

The smallest Gaussian curve below a trade-off function: what a ledger in Gaussian DP is charged.

T >= G_mu - leak exactly when delta_T(e) - leak <= delta(e; mu) for every e >= 0 (and then for every real e, as both
are symmetric). In x = exp(e) both sides are convex. Between two points the left side is below its chord, the right
side above any of its tangents, and d delta(e; mu)/dx = -Phi(-e/mu - mu/2). A chord below a tangent at both ends
proves the whole interval; an interval that this does not prove is halved. So the proof covers every e although it
looks at few, and the chord of values that were rounded up is still above the truth.

Pictures of guarantees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from math import exp, expm1, inf, isinf, log, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._special import log_ndtr
from confide.errors import NoConversion, PrivacyError
from confide.guarantees.mechanisms.gaussian import gaussian_mu, log_gaussian_delta
from confide.guarantees.validation import SLACK, count, real, reals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Charging a little more is safe; closer to the truth costs in proportion to the square root.
_TOLERANCE = 1e-4
_MOST = 1 << 13  # hundreds are enough, but where 1 - excess is of the order of its digits
_FARTHEST = 690.0  # exp(e) is a float; beyond it intervals are compared end against end


def least_mu(excess: Callable[[float], float], top: float) -> float:
    """A mu with excess(e) <= delta(e; mu) for every e from 0 to `top`, at most 1e-4 of itself above the smallest one.

    excess: delta_T - leak, falling and convex in exp(e), rounded up; at most 0 at `top`, or of no consequence beyond it.
    0 where excess(0) is at most 0. After 2^13 intervals, where doubles do not tell the two sides apart, by ends alone: a larger mu.
    Raises `NoConversion` where excess(0) is 1.

    >>> round(least_mu(lambda e: exp(log_gaussian_delta(e, 1.5)), 20.0), 3)
    1.5
    """
    known: dict[float, float] = {}

    def at(e: float) -> float:
        if e not in known:
            known[e] = excess(e)
        return known[e]

    if at(0.0) <= 0:
        return 0.0
    if at(0.0) >= 1:
        raise NoConversion(
            "there is no conversion to GDP: neighbors are told apart with a probability that is 1 to eleven digits",
            "ask for a smaller epsilon",
        )
    least = 0.0
    # intervals that are still to be proved; the first points are spread over all scales below top
    points = sorted({0.0, top, *(top * 2.0**-j for j in range(1, 13))})
    for e in points:
        least = _raised(least, e, at(e))
    intervals, looked = list(pairwise(points)), 0
    while intervals:
        a, b = intervals.pop()
        looked += 1
        if at(a) <= 0 or _proved(a, b, at(a), at(b), least * (1 + _TOLERANCE)):
            continue
        middle = (a + b) / 2
        if looked > _MOST or not a < middle < b:
            # the value on the left against the curve on the right: never too little
            least = max(least, gaussian_mu(b, at(a)))
            continue
        least = _raised(least, middle, at(middle))
        intervals += [(a, middle), (middle, b)]
    return nextafter(least * (1 + _TOLERANCE) * (1 + SLACK), inf)


def _raised(least: float, e: float, excess: float) -> float:
    """The mu so far, or the one that one more point needs."""
    if excess <= 0 or (least > 0 and log_gaussian_delta(e, least) >= log(excess)):
        return least
    return gaussian_mu(e, excess)


def _proved(a: float, b: float, left: float, right: float, mu: float) -> bool:
    """Whether the chord from (a, left) to (b, right) is below the Gaussian curve of mu."""
    kept = 1 - SLACK
    if left <= kept * exp(
        log_gaussian_delta(b, mu)
    ):  # the value on the left is the largest, the curve's on the right the least
        return True
    if b > _FARTHEST:
        return False
    middle = (a + b) / 2
    height, slope = kept * exp(log_gaussian_delta(middle, mu)), exp(middle + float(log_ndtr(-middle / mu - mu / 2)))
    return left <= height - slope * expm1(a - middle) * kept and right <= height - slope * expm1(b - middle) / kept


# Okabe and Ito's colours, which people with any colour vision can tell apart, and line styles for paper.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_POINTS = 101
_WIDEST = 20.0


class Drawable(Protocol):
    """What a picture needs of a curve (`Curve` has it)."""

    @property
    def mass_at_infinity(self) -> float: ...
    def f(self, alpha: Any) -> Any: ...
    def delta(self, epsilon: Any) -> Any: ...
    def epsilon(self, delta: float) -> float: ...


def plot_curves(curves: Mapping[str, Drawable], *, kind: str = "tradeoff", ax: Axes | None = None) -> Any:
    """Draw several curves in one picture.

    Parameters
    ----------
    curves : mapping of str to Curve
        Curves by their labels.
    kind : {"tradeoff", "profile"}, default "tradeoff"
        Missed detections against false alarms, or delta against epsilon on a
        logarithmic axis.
    ax : matplotlib Axes, optional
        Where to draw. Left out: a new figure.

    Returns
    -------
    matplotlib Figure
        The figure.

    Raises
    ------
    PrivacyError
        There is no curve, or the kind is another one.

    Examples
    --------
    >>> from confide.guarantees import gaussian, laplace, plot_curves
    >>> plot_curves({"Gaussian": gaussian(1.0), "Laplace": laplace(1.0)}).axes[0].get_xlabel()
    'false alarms (type I error)'
    """
    if kind not in ("tradeoff", "profile"):
        raise PrivacyError(
            f'kind must be "tradeoff" or "profile", got {kind!r}', 'write plot_curves(curves, kind="profile")'
        )
    if not curves:
        raise PrivacyError("there is no curve to draw", 'write plot_curves({"one": gaussian(1.0)})')
    from matplotlib.figure import Figure

    if ax is None:
        figure: Any = Figure(figsize=(7.0, 5.0), layout="constrained")
        ax = figure.add_subplot()
    else:
        figure = ax.figure
    draw = _tradeoff if kind == "tradeoff" else _profile
    draw(ax, curves)
    ax.grid(alpha=0.25)
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=1 if len(curves) < 3 else 2, frameon=False, fontsize=9
    )
    return figure


def _look(place: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _STYLES[place % len(_STYLES)],
        "linewidth": 1.8,
    }


def _tradeoff(ax: Axes, curves: Mapping[str, Drawable]) -> None:
    alphas = np.sort(np.concatenate([np.linspace(0, 1, _POINTS), np.geomspace(1e-4, 0.02, 20)]))
    ax.plot([0, 1], [1, 0], color="0.6", linewidth=1.0, linestyle=(0, (1, 2)), label="nothing can be learned")
    for place, (label, curve) in enumerate(curves.items()):
        ax.plot(alphas, curve.f(alphas), label=label, **_look(place))
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_xlabel("false alarms (type I error)")
    ax.set_ylabel("missed detections (type II error)")


def _profile(ax: Axes, curves: Mapping[str, Drawable]) -> None:
    reach = [curve.epsilon(max(1e-9, min(1.01 * curve.mass_at_infinity + 1e-9, 0.99))) for curve in curves.values()]
    top = min(max((end for end in reach if np.isfinite(end)), default=_WIDEST) * 1.05 + 0.1, _WIDEST)
    epsilons = np.unique(np.concatenate([np.linspace(0, top, _POINTS), np.linspace(0, top / 8, _POINTS)]))
    for place, (label, curve) in enumerate(curves.items()):
        # where delta is 0 the line leaves the picture at the bottom
        ax.plot(epsilons, np.maximum(curve.delta(epsilons), 1e-30), label=label, **_look(place))
    ax.set_yscale("log")
    ax.set(xlim=(0, top), ylim=(1e-10, 1.2))
    ax.set_xlabel("epsilon")
    ax.set_ylabel("delta")


Floats = NDArray[np.float64]

_GOLDEN = (5**0.5 - 1) / 2


class Curve(ABC):
    """A symmetric trade-off function: frozen, comparable, hashable.

    A subclass gives `_profile` (delta at epsilons of at least 0, rounded up)
    and `_data` (its numbers, for files). Where it knows more, it overrides
    `_beta`, `_merged` or `gdp`.

    Examples
    --------
    >>> from confide.guarantees import gaussian
    >>> curve = gaussian(1.0)
    >>> round(curve.f(0.05), 4), round(curve.delta(1.0), 4)
    (0.7405, 0.1269)
    """

    #: `composed.composed`, which knows the kinds of curves and enters itself here.
    _composed: ClassVar[Callable[[Iterable[tuple[Curve, int]]], Curve]]

    @abstractmethod
    def _profile(self, epsilons: Floats) -> Floats:
        """delta at finite epsilons >= 0, shape (k,) -> (k,); nowhere below the truth."""

    @abstractmethod
    def _data(self) -> dict[str, Any]:
        """The curve as JSON, floats as `float.hex` texts, with its kind under "curve"."""

    @property
    def mass_at_infinity(self) -> float:
        """What delta never falls below, 1 - f(0): the probability that an output
        gives a neighbor away with certainty.

        Examples
        --------
        >>> from confide.guarantees.curves import approx_dp, gaussian
        >>> approx_dp(1.0, 0.01).mass_at_infinity, gaussian(1.0).mass_at_infinity
        (0.01, 0.0)
        """
        return 0.0

    @property
    def light_tail(self) -> bool:
        """Whether delta - mass_at_infinity falls at least as fast as that of some Gaussian, so that mu exists."""
        return False

    def delta(self, epsilon: ArrayLike) -> Any:
        """Give the privacy profile at any real epsilon, rounded up.

        Parameters
        ----------
        epsilon : float or array of float
            Finite numbers.

        Returns
        -------
        float or array of float
            Delta at each epsilon.

        Raises
        ------
        PrivacyError
            An epsilon is NaN or infinite.

        Examples
        --------
        >>> from confide.guarantees.curves import laplace
        >>> round(laplace(1.0).delta(0.0), 6), laplace(1.0).delta(1.0)
        (0.393469, 0.0)
        """
        points = reals(epsilon, "epsilon", "delta(1.0)")
        if not np.isfinite(points).all():
            raise PrivacyError("epsilon must be finite, got NaN or infinity", "write for instance delta(1.0)")
        sizes = np.abs(points.ravel())
        above = np.clip(self._profile(sizes), 0.0, 1.0) + 0.0  # -0.0 becomes 0.0
        # the mirrored value loses a last digit in the subtraction; it is given back
        mirrored = np.minimum(1 - np.exp(-sizes) * (1 - above) + 2.0**-52, 1.0)
        result = np.where(points.ravel() < 0, mirrored, above).reshape(points.shape)
        return float(result) if result.ndim == 0 else result

    def f(self, alpha: ArrayLike) -> Any:
        """Give the least type II error at a type I error, rounded down.

        Parameters
        ----------
        alpha : float or array of float
            Type I error, from 0 to 1.

        Returns
        -------
        float or array of float
            The trade-off function at each alpha.

        Raises
        ------
        PrivacyError
            An alpha is outside [0, 1].

        Examples
        --------
        >>> from confide.guarantees.curves import laplace
        >>> laplace(1.0).f(1.0), round(laplace(1.0).f(0.5), 6)
        (0.0, 0.18394)
        """
        points = reals(alpha, "alpha", "f(0.05)")
        if not ((points >= 0) & (points <= 1)).all():
            raise PrivacyError("alpha is a type I error, a number from 0 to 1", "write for instance f(0.05)")
        values = [self._between(float(a)) for a in points.ravel()]
        result = np.array(values).reshape(points.shape)
        return float(result) if result.ndim == 0 else result

    def _between(self, alpha: float) -> float:
        if alpha == 1:
            return 0.0
        if alpha == 0:
            return 1 - self.mass_at_infinity
        return min(max(self._beta(alpha), 0.0), 1 - alpha)

    def _beta(self, alpha: float) -> float:
        """f inside (0, 1) by duality. In x = e^epsilon the value is concave, so its maximum is found by golden section.

        Whatever epsilon the search stops at, the value is a lower bound of f.
        """

        def value(epsilon: float) -> float:
            kept = 1 - float(self.delta(abs(epsilon)))
            return kept - exp(epsilon) * alpha if epsilon >= 0 else exp(epsilon) * (kept - alpha)

        low, high = -60.0, min(-log(alpha), 690.0)
        inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
        found = [value(inner[0]), value(inner[1])]
        for _ in range(90):
            if found[0] >= found[1]:
                high, inner, found = inner[1], [0.0, inner[0]], [0.0, found[0]]
                inner[0] = high - _GOLDEN * (high - low)
                found[0] = value(inner[0])
            else:
                low, inner, found = inner[0], [inner[1], 0.0], [found[1], 0.0]
                inner[1] = low + _GOLDEN * (high - low)
                found[1] = value(inner[1])
        return max(*found, 0.0)

    def epsilon(self, delta: float) -> float:
        """Give the smallest epsilon of at least 0 at a delta, rounded up.

        Parameters
        ----------
        delta : float
            From 0 to 1.

        Returns
        -------
        float
            Epsilon; infinity where there is none.

        Raises
        ------
        PrivacyError
            `delta` is outside [0, 1].

        Examples
        --------
        >>> from confide.guarantees.curves import laplace, symmetric_laplace
        >>> laplace(1.0).epsilon(0.0), symmetric_laplace(3, 0.5).epsilon(0.0)
        (1.0, inf)
        """
        goal = real(delta, "delta", "epsilon(1e-6)")
        if not 0 <= goal <= 1:
            raise PrivacyError(f"delta must be from 0 to 1, got {goal!r}", "write for instance epsilon(1e-6)")
        return self._epsilon(goal)

    def _epsilon(self, goal: float) -> float:
        if self.delta(0.0) <= goal:
            return 0.0
        if self.mass_at_infinity > goal:
            return inf
        low, high = 0.0, 1.0
        while self.delta(high) > goal:
            low, high = high, 2 * high
            if high > 1e18:
                return inf
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if self.delta(middle) > goal else (low, middle)
        return high

    def gdp(self, delta: float = 0.0) -> float:
        """Give the smallest mu of a Gaussian curve that covers this one.

        delta(epsilon) <= delta_mu(epsilon) + delta for every epsilon. It is
        what a ledger in Gaussian DP is charged.

        Parameters
        ----------
        delta : float, default 0
            Additive part, at least 0 and below 1.

        Returns
        -------
        float
            mu, rounded up by at most 1e-4 of itself.

        Raises
        ------
        NoConversion
            No mu exists; the message says what to use instead.

        Examples
        --------
        >>> from confide.guarantees.curves import symmetric_laplace
        >>> round(symmetric_laplace(3, 0.5).gdp(1e-4), 1)
        1.0
        """
        leak = real(delta, "delta", "gdp(1e-6)")
        if not 0 <= leak < 1:
            raise PrivacyError(f"delta must be at least 0 and below 1, got {leak!r}", "write for instance gdp(1e-6)")
        infinite = self.mass_at_infinity
        if leak < infinite or (leak == infinite and not self.light_tail):
            hint = f"above {infinite:g}" if leak <= infinite else f"of at least {infinite:g}"
            raise NoConversion(
                f"there is no conversion {self!r} -> GDP with delta = {leak:g}. Its tail is heavier than that of any Gaussian",
                f"choose a delta {hint}, as in gdp({max(2 * infinite, 1e-6):g}), or state the curve itself, TradeOff(curve)",
            )
        return self._gdp(leak)

    def _gdp(self, leak: float) -> float:
        top = self._epsilon(leak)
        if isinf(top):  # a light tail that never ends: below 1e-290 any Gaussian that holds so far is far above it
            top = self._epsilon(1e-290)
        return least_mu(lambda epsilon: float(self.delta(epsilon)) - leak, top)

    def compose(self, other: Curve) -> Curve:
        """Compose with another release, in closed form where there is one.

        Parameters
        ----------
        other : Curve
            Curve of the other release.

        Returns
        -------
        Curve
            Curve of both together.

        Examples
        --------
        >>> from confide.guarantees.curves import gaussian
        >>> gaussian(3.0).compose(gaussian(4.0))
        gaussian(5.0)
        """
        if not isinstance(other, Curve):
            raise PrivacyError(
                f"a curve composes with a curve, got {type(other).__name__}",
                "write gaussian(1.0).compose(laplace(0.5))",
            )
        return Curve._composed(((self, 1), (other, 1)))

    def power(self, k: int) -> Curve:
        """Compose k releases of this kind.

        Parameters
        ----------
        k : int
            Number of releases, at least 1.

        Returns
        -------
        Curve
            Curve of all together.

        Examples
        --------
        >>> from confide.guarantees.curves import gaussian
        >>> gaussian(0.5).power(16)
        gaussian(2.0)
        """
        return Curve._composed(((self, count(k, "k", "power(10)")),))

    def __mul__(self, other: Curve) -> Curve:
        """`compose`, as curves print: gaussian(1.0) * laplace(0.5)."""
        return self.compose(other)

    def __pow__(self, k: int) -> Curve:
        """`power`, as curves print: laplace(0.5) ** 3."""
        return self.power(k)

    def _merged(self, other: Curve, times: int) -> Curve | None:
        """This curve composed with `times` copies of another in closed form; None where there is none."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Give the curve as JSON that `curve_from_dict` reads back to the bit.

        Returns
        -------
        dict
            Its kind under "curve", its numbers as `float.hex` texts.

        Examples
        --------
        >>> from confide.guarantees.curves import curve_from_dict, laplace
        >>> curve_from_dict(laplace(0.1).to_dict())
        laplace(0.1)
        """
        return self._data()

    def plot(self, ax: Axes | None = None, *, kind: str = "tradeoff") -> Any:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. Left out: a new figure.
        kind : {"tradeoff", "profile"}, default "tradeoff"
            Missed detections against false alarms, or delta against epsilon.

        Returns
        -------
        matplotlib Figure
            The figure.
        """
        return plot_curves({repr(self): self}, kind=kind, ax=ax)
