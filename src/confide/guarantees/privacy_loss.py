"""Privacy losses on a public grid: composition of any releases, numerically, never below the truth.

For two laws P and Q the privacy loss is L = log dP/dQ under P, and their privacy profile is

    delta(epsilon) = H(P || Q) at order e^epsilon = P(L = infinity) + E[(1 - e^(epsilon - L)) where L > epsilon]

Losses of independent releases add, so a composition is a convolution (Koskela, Jalko, Honkela 2020). A continuous
loss is put on a grid by connecting the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). The new profile is
the one that is linear in e^epsilon between the grid points and equal to the true one on them. A profile is convex in
e^epsilon, so this never understates it. Its error is of the square of the step. And it is monotone: a smaller profile
gives a smaller result, whatever it is composed with. Beyond the last grid point the profile is constant, that is, the
mass is at infinity. Below the first one it is linear down to delta(-infinity) = 1, that is, the mass is at the first.

From one grid to another the dots are connected again. Mass at a loss l between neighbors a < b goes to b with share
(1 - e^(a - l))/(1 - e^(a - b)), which keeps its P- and its Q-mass. A bounded loss has atoms at its ends, so its
default step divides that end. A grid is only ever widened by powers of 2, so atoms stay where they are. Default grids
depend on the profile and on the number of compositions alone, never on records.

Sums of independent privacy losses on a grid, by fast Fourier transform, never below the truth.

A loss distribution is an array of masses at step * (first + i). Of a sum S of these losses one needs, for every
epsilon, the integral of (1 - e^(epsilon - s)) over s > epsilon. The integrand is positive and rises in s, so mass may
be added anywhere and may be moved up. The answer stays an upper bound. Everything below does one of the two.

*Tilting.* A transform errs by about 1e-16 of the largest mass, which would drown a delta of 1e-12. For t >= 0 the
masses p(s) e^(t s - K(t)), K the logarithm of the moment generating function, sum to 1 and are largest around K'(t).
Convolving them and undoing the tilt gives the masses around K'(t) to nearly all digits. Several t cover the window,
and of several upper bounds of one mass the smallest counts.

*Window.* By Chernoff's bound the mass above `high` is at most e^(K(t) - t high) for every t > 0. It is reported as
`beyond`, to be added to the mass at infinity. The mass below `low` likewise, and is added to the lowest point. Mass
that wraps around the end of a transform only adds.

*Round-off.* For a transform of length n the error in the 2-norm is below 8 u log2(n) times the norm of the result, u
= 2^-53 (Higham 2002, Theorem 24.2). A transform of masses that sum to 1 is at most 1 everywhere. So k factors with
masses x give, in the 2-norm and therefore in each mass, at most u (8 log2(n) (k |x| + |z|) + 4 k |z|), z the result.
The last term is for k complex products. This is added to every mass before the tilt is undone.

Grids for privacy losses: default window and step from a profile alone, and its convex envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, floor, inf, isfinite, log, log1p, log2, nextafter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide._special import ndtri
from confide.errors import PrivacyError
from confide.guarantees.validation import count, level, real, reals

fft = later("scipy.fft")

optimize = later("scipy.optimize")

Floats = NDArray[np.float64]

TAIL = 1e-25  # mass outside the window of a sum, each side; also that of the default window of one loss
_UNIT = 2.0**-53
_TILTS = 4  # besides none: neighbors then differ from the best tilt by a factor below 4 in the round-off bound
_MOST_POINTS = 1 << 21


@dataclass(frozen=True)
class Factor:
    """A loss that is added `times` times: masses at step * (first + i)."""

    masses: Floats
    first: int
    times: int


def convolve(factors: Sequence[Factor], step: float) -> tuple[Floats, int, float] | None:
    """(masses, first, beyond) of the sum of all losses; None where the window has too many points for the step.

    >>> masses, first, beyond = convolve([Factor(np.array([0.5, 0.0, 0.5]), -1, 2)], 1.0)
    >>> first, np.round(masses, 12).tolist(), beyond
    (-2, [0.25, 0.0, 0.5, 0.0, 0.25], 0.0)
    """
    kept = [_Logs(f, step) for f in factors]
    bottom = sum(f.times * f.first for f in factors)
    length = sum(f.times * (len(f.masses) - 1) for f in factors) + 1
    top = bottom + length - 1
    low, below = _reach(kept, -1, bottom, step)
    high, beyond = _reach(kept, +1, top, step)
    high = max(high, low)
    points = high - low + 1
    if points > _MOST_POINTS:
        return None
    longest = max(len(f.masses) for f in factors)
    size = 1 << (max(longest, min(length, ceil(1.5 * points))) - 1).bit_length()
    where = (np.arange(low, high + 1) - bottom) % size
    losses = step * np.arange(low, high + 1, dtype=np.float64)
    best = np.full(points, inf)
    for tilt in _tilts(kept, low * step, high * step):
        np.minimum(best, _tilted_sum(kept, tilt, size, where, losses), out=best)
    masses = np.exp(best)
    masses[0] += below
    return masses, low, beyond


class _Logs:
    """A factor with the logarithms of its masses, zeros left out."""

    def __init__(self, factor: Factor, step: float) -> None:
        self.times = factor.times
        self.size = len(factor.masses)
        self.index = np.flatnonzero(factor.masses)
        self.losses = step * (factor.first + self.index)
        self.logs = np.log(factor.masses[self.index])
        self.largest = float(np.max(np.abs(self.losses), initial=0.0))

    def cumulant(self, tilt: float) -> tuple[float, float]:
        """K(t) and K'(t) of one such loss."""
        exponents = self.logs + tilt * self.losses
        shift = float(np.max(exponents))
        weights = np.exp(exponents - shift)
        total = float(weights.sum())
        return shift + log(total), float(weights @ self.losses) / total

    def tilted(self, tilt: float, cumulant: float) -> Floats:
        """The tilted masses, whose sum is 1."""
        masses = np.zeros(self.size)
        masses[self.index] = np.exp(self.logs + tilt * self.losses - cumulant)
        return masses


def _cumulant(factors: Sequence[_Logs], tilt: float) -> float:
    return sum(f.times * f.cumulant(tilt)[0] for f in factors)


def _reach(factors: Sequence[_Logs], side: int, end: int, step: float) -> tuple[int, float]:
    """How far the window reaches on one side, as a grid index, and a bound on the mass past it.

    Any tilt gives a valid bound; a scan by factors of 2 and one refinement come within a few percent of the best.
    """

    def distance(tilt: float) -> float:
        return (_cumulant(factors, side * tilt) - log(TAIL)) / tilt

    scale = max(f.largest for f in factors) or step
    tilts = [2.0**power / scale for power in range(-16, 17, 2)]
    near = min(tilts, key=distance)
    tilt = min((near * 2 ** (j / 4) for j in range(-7, 8)), key=distance)
    index = ceil(distance(tilt) / step) if side > 0 else floor(-distance(tilt) / step)
    if side * index >= side * end:
        return end, 0.0
    return index, exp(_cumulant(factors, side * tilt) - tilt * side * index * step) * (1 + 1e-9)


def _tilts(factors: Sequence[_Logs], low: float, high: float) -> list[float]:
    """0, and the tilts that put the mean of the sum at equal distances on the way to the top of the window."""

    def mean(tilt: float) -> float:
        return sum(f.times * f.cumulant(tilt)[1] for f in factors)

    start = mean(0.0)
    span = high - start
    tilts = [0.0]
    if not span > 1e-9 * (high - low):
        return tilts
    last = 1e-3 / span
    for part in range(1, _TILTS + 1):
        goal = start + span * (0.98 * part / _TILTS)
        upper = last
        while mean(upper) < goal:
            upper *= 4
            if upper > 1e12:
                return tilts
        if upper > last:
            last = float(optimize.brentq(lambda t, goal=goal: mean(t) - goal, last, upper, rtol=1e-2, xtol=1e-300))
        tilts.append(last)
    return tilts


def _tilted_sum(factors: Sequence[_Logs], tilt: float, size: int, where: NDArray[np.int64], losses: Floats) -> Floats:
    """Logarithms of upper bounds on the masses of the sum, by one tilt."""
    product: NDArray[np.complex128] | None = None
    norms, cumulant, relative = 0.0, 0.0, 8.0
    for f in factors:
        own, _ = f.cumulant(tilt)
        x = f.tilted(tilt, own)
        norms += f.times * float(np.linalg.norm(x))
        cumulant += f.times * own
        depth = float(np.max(np.abs(f.logs))) + abs(tilt) * f.largest + abs(own)
        relative += f.times * (2 * depth + 2 * log2(size) + 8)  # exp and log of one factor, its sum
        transform = _integer_power(np.asarray(fft.rfft(x, size)), f.times)
        product = transform if product is None else product * transform
    assert product is not None
    z = np.asarray(fft.irfft(product, size))
    times, norm = sum(f.times for f in factors), float(np.linalg.norm(z)) * (1 + 1e-9)
    error = 1.1 * _UNIT * (8 * log2(max(size, 2)) * (norms + norm) + 4 * times * norm)
    relative += abs(cumulant) + abs(tilt) * float(np.max(np.abs(losses)))
    logs: Floats = np.log(np.maximum(z[where], 0.0) + error) + (cumulant - tilt * losses) + 2 * _UNIT * relative
    return logs


def _integer_power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """base**times by squaring: at most `times` roundings, unlike the general power, whose angle loses digits."""
    result: NDArray[np.complex128] | None = None
    while True:
        if times & 1:
            result = base if result is None else result * base
        times >>= 1
        if not times:
            assert result is not None
            return result
        base = base * base


# A step is at most this part of the loss's spread. Connecting the dots adds about step^2/6 to the variance of the loss,
# here 4e-8 of it, and epsilon moves by at most that share.
RESOLUTION = 2.0**-11
_MOST_POINTS_OF_ONE = 1 << 18  # of one loss by default
HIGHEST = 690.0  # largest epsilon of the grid of one loss: e^epsilon is a float; mass above counts as infinite


def gaussian_scale(total_variation: float) -> float:
    """mu with 2 Phi(mu/2) - 1 = total variation, a public scale of a loss; kept inside what a grid can follow.

    >>> round(gaussian_scale(0.3829249225480262), 9)
    1.0
    """
    return float(min(2 * ndtri(min((1 + total_variation) / 2, 1 - 1e-16)), 32.0))


def default_step(total_variation: float, top: float) -> float:
    """The top divided by a multiple of 256, so that it stays a grid point when the step is widened later.

    >>> default_step(0.3829249225480262, 11.0) <= 2**-11
    True
    """
    wanted = max(RESOLUTION * gaussian_scale(total_variation), 2 * top / _MOST_POINTS_OF_ONE, 2.0**-50)
    return float(top / (256 * ceil(top / wanted / 256)))


def default_window(delta: Callable[[float], float]) -> float:
    """Where the default window of a profile ends.

    Where delta has come down to its last value, for a bounded loss, to the last bit. Else where delta is below 1e-25.
    Or, for a heavy tail, where moving the mass above to infinity changes delta(epsilon) by less than 1e-25 for every
    epsilon up to twice the median loss and 30. It changes it by delta(top) e^(epsilon - top).

    >>> default_window(lambda epsilon: max(0.0, 0.5 - epsilon))
    0.5
    """
    interest = 30.0 + 2 * _first(lambda epsilon: delta(epsilon) <= 0.5)
    light = _first(lambda epsilon: delta(epsilon) <= TAIL)
    heavy = _first(lambda epsilon: log(max(delta(epsilon), 1e-300)) + interest - epsilon <= log(TAIL), interest)
    rest = delta(HIGHEST)
    bounded = _first(lambda epsilon: delta(epsilon) <= rest, exact=True)
    return min(light, heavy, bounded, HIGHEST)


def _first(holds: Callable[[float], bool], start: float = 1e-9, *, exact: bool = False) -> float:
    """An epsilon from which on a property holds, at most one percent too large; infinity where there is none."""
    low, high = 0.0, start
    while not holds(high):
        if high >= HIGHEST:
            return inf
        low, high = high, min(2 * high, HIGHEST)
    while high - low > 0.01 * high or (exact and nextafter(low, inf) < high):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high <= 1e-9:
            break
    return high


def convex_slopes(rises: Floats, widths: Floats) -> Floats:
    """Slopes of the greatest convex function below points with these rises, capped at 0 (pooling of neighbors).

    >>> convex_slopes(np.array([-1.0, -3.0, 0.5]), np.ones(3)).tolist()
    [-2.0, -2.0, 0.0]
    """
    slopes: Floats = rises / widths
    if np.all(np.diff(slopes) >= 0):
        return np.asarray(np.minimum(slopes, 0.0))
    heights: list[float] = []
    lengths: list[float] = []
    counts: list[int] = []
    for rise, width in zip(rises.tolist(), widths.tolist(), strict=True):
        number = 1
        while heights and heights[-1] * width >= rise * lengths[-1]:
            rise, width, number = rise + heights.pop(), width + lengths.pop(), number + counts.pop()
        heights.append(rise)
        lengths.append(width)
        counts.append(number)
    slopes = np.repeat(np.array(heights) / np.array(lengths), counts)
    return np.asarray(np.minimum(slopes, 0.0))


signal = later("scipy.signal")
_FARTHEST = 1e280  # of an epsilon, which is divided by the step
_NARROWEST, _WIDEST = 1e-290, 1e7  # of a window whose step, and the exponential of it, are floats
_STAGE = 16  # a power is taken in stages of 16, and the grid is widened by 4 = sqrt(16) in between


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """Privacy loss of an ordered pair (P, Q) on a grid, or an upper bound of it.

    A release whose profile is the same in both orders needs one object, any
    other release one for each order. Masses may sum to a little more than 1:
    they are rounded up.

    Parameters
    ----------
    step : float
        Distance of the grid points, above 0.
    first : int
        Index of the lowest loss.
    masses : array of float
        P-mass at the loss step * (first + i), shape (points,).
    infinity : float
        P-mass at an infinite loss, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from confide.guarantees import PrivacyLoss
    >>> coin = PrivacyLoss(0.5, -2, np.array([0.25, 0, 0, 0, 0.75]), 0.0)
    >>> round(coin.power(2).delta(1.0), 9), coin.power(2).epsilon(1e-6)  # doctest: +ELLIPSIS
    (0.355567814, 1.99999...)
    """

    step: float
    first: int
    masses: Floats
    infinity: float

    def __post_init__(self) -> None:
        masses = np.array(self.masses, dtype=np.float64)
        if masses.ndim != 1 or not len(masses) or not np.all(np.isfinite(masses)) or masses.min() < 0:
            raise PrivacyError("masses must be a non-empty one-dimensional array of finite numbers of at least 0")
        infinity = real(self.infinity, "infinity", "PrivacyLoss(0.5, 0, [1.0], 0.0)")
        if not 0 <= infinity <= 1:
            raise PrivacyError(f"infinity must be a probability from 0 to 1, got {infinity!r}")
        masses.flags.writeable = False
        object.__setattr__(self, "step", _checked_step(self.step))
        object.__setattr__(self, "first", int(self.first))
        object.__setattr__(self, "masses", masses)
        object.__setattr__(self, "infinity", infinity)

    # ------------------------------------------------------------------------------------------------ constructors

    @classmethod
    def from_profile(
        cls, delta: Callable[[Floats], Floats], *, step: float | None = None, high: float | None = None
    ) -> PrivacyLoss:
        """Make the loss of a release from its profile, if that is the same in both
        orders.

        Parameters
        ----------
        delta : callable
            Takes an array of epsilons >= 0 and returns values nowhere below the
            true ones. Where they are not quite convex, the lower convex
            envelope is used.
        step : float, optional
            Step of the grid. Left out: 2^-11 of the spread or less.
        high : float, optional
            The grid is from -high to high. Left out: the window leaves 1e-25
            outside; a heavy tail is truncated earlier, where this cannot show
            in what is of interest.

        Returns
        -------
        PrivacyLoss
            The loss.

        Raises
        ------
        PrivacyError
            A value is outside its range.

        Examples
        --------
        >>> laplace = PrivacyLoss.from_profile(lambda e: np.maximum(-np.expm1((e - 0.5) / 2), 0))
        >>> round(laplace.power(100).epsilon(1e-6), 4)
        30.4837
        """

        def at(epsilons: Floats) -> Floats:
            values = np.asarray(delta(epsilons), dtype=np.float64)
            if values.shape != epsilons.shape or not np.all(np.isfinite(values)) or values.min() < 0:
                raise PrivacyError("delta must return one finite number of at least 0 for each epsilon")
            return np.minimum(values, 1.0)

        def value(epsilon: float) -> float:
            return float(at(np.array([epsilon]))[0])

        top = default_window(value) if high is None else _checked_high(high)
        size = default_step(value(0.0), top) if step is None else _checked_step(step)
        epsilons = size * np.arange(ceil(max(min(top, HIGHEST), size) / size) + 1, dtype=np.float64)
        # not a difference of exponentials, which for small losses has lost most of its digits
        profile, widths = at(epsilons), np.exp(epsilons[:-1]) * expm1(size)
        slopes = convex_slopes(np.diff(profile), widths)
        # P-mass x_i (m_i - m_(i-1)) at the points above 0; the pair is its own mirror image, so that the mass at -l is
        # e^-l times that at l.
        lower = np.diff(np.append(slopes, 0.0))
        last = float(profile[-1])
        start = last - float(slopes @ widths)
        middle = max(0.0, 1 - start + 2 * float(slopes[0])) + 16 * _UNIT
        masses = np.concatenate([lower[::-1], [middle], lower * np.exp(epsilons[1:])])
        return cls(size, -len(lower), masses * (1 + 32 * _UNIT), min(1.0, last * (1 + 32 * _UNIT)))

    @classmethod
    def from_masses(
        cls,
        p: ArrayLike,
        q: ArrayLike,
        *,
        step: float,
        first: int,
        above: float = 0.0,
        below: float = 0.0,
        atoms: Iterable[tuple[float, float]] = (),
    ) -> PrivacyLoss:
        """Make the loss of an ordered pair from its masses between grid points.

        Parameters
        ----------
        p, q : array of float
            Mass under P and under Q of the losses above step * (first + i), up
            to the next grid point. They must not be off by more than their last
            digits.
        step : float
            Step of the grid.
        first : int
            Index of the lowest grid point.
        above, below : float, default 0
            P-mass beyond the last and below the first grid point.
        atoms : iterable of (float, float), optional
            Pairs (loss, P-mass) of single losses, inside or outside the grid.

        Returns
        -------
        PrivacyLoss
            The loss.

        Examples
        --------
        >>> half = PrivacyLoss.from_masses([0.75], [0.5], step=0.5, first=0, above=0.25)
        >>> half.masses.round(6).tolist(), round(half.infinity, 12)
        ([0.114626, 0.635374], 0.25)
        """
        size = _checked_step(step)
        mass_p, mass_q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if mass_p.ndim != 1 or mass_p.shape != mass_q.shape or min(mass_p.min(initial=0), mass_q.min(initial=0)) < 0:
            raise PrivacyError("p and q must be one-dimensional arrays of the same length, of numbers of at least 0")
        points = len(mass_p) + 1
        ratio = mass_q * np.exp(size * (first + np.arange(points - 1)))
        raised = np.clip((mass_p - ratio + 4 * _UNIT * mass_p) / -expm1(-size), 0.0, mass_p)
        masses = np.zeros(points)
        masses[1:] += raised
        masses[:-1] += mass_p - raised
        infinity = float(above)
        masses[0] += below
        for loss, mass in atoms:
            place = loss / size - first
            if place > points - 1:
                infinity += mass
                continue
            index = min(max(0, floor(place)), points - 1)
            rest = max(0.0, loss - size * (first + index))
            share = min(1.0, expm1(-rest) / expm1(-size) * (1 + 4 * _UNIT))
            masses[index] += mass * (1 - share)
            if share > 0:
                masses[index + 1] += mass * share
        return cls(size, first, masses * (1 + 8 * _UNIT), min(1.0, infinity * (1 + 8 * _UNIT)))

    @classmethod
    def from_tails(
        cls,
        p_above: ArrayLike,
        q_above: ArrayLike,
        *,
        step: float,
        first: int,
        atoms: Iterable[tuple[float, float]] = (),
    ) -> PrivacyLoss:
        """Make the loss of an ordered pair from its tails.

        Digits that differences of nearly equal tails lose are restored, as in
        `from_masses`.

        Parameters
        ----------
        p_above, q_above : array of float
            P(L > step * (first + i)) and Q(L > step * (first + i)), without the
            atoms.
        step : float
            Step of the grid.
        first : int
            Index of the lowest grid point.
        atoms : iterable of (float, float), optional
            Pairs (loss, P-mass) of single losses.

        Returns
        -------
        PrivacyLoss
            The loss.

        Examples
        --------
        >>> round(PrivacyLoss.from_tails([1.0, 0.25], [0.75, 0.25], step=0.5, first=0).infinity, 12)
        0.25
        """
        tail_p, tail_q = np.asarray(p_above, dtype=np.float64), np.asarray(q_above, dtype=np.float64)
        single = tuple(atoms)
        return cls.from_masses(
            np.maximum(-np.diff(tail_p), 0.0) + 2 * _UNIT * tail_p[:-1],
            np.maximum(-np.diff(tail_q) - 2 * _UNIT * tail_q[:-1], 0.0),
            step=step,
            first=first,
            above=float(tail_p[-1]),
            below=max(0.0, 1.0 - sum(mass for _, mass in single) - float(tail_p[0])) + 2 * _UNIT,
            atoms=single,
        )

    # ------------------------------------------------------------------------------------------------- composition

    def compose(self, *others: PrivacyLoss) -> PrivacyLoss:
        """Give the loss of this release and others together.

        Each may depend on the earlier outputs. Different steps meet on the
        widest of them. Small losses are joined first, so that a wide step never
        meets many of them.

        Parameters
        ----------
        *others : PrivacyLoss
            Losses of the other releases.

        Returns
        -------
        PrivacyLoss
            The loss of all together.

        Examples
        --------
        >>> coin = PrivacyLoss(0.5, -2, np.array([0.25, 0, 0, 0, 0.75]), 0.0)
        >>> coin.compose(coin, coin).delta(0.0) == coin.power(3).delta(0.0)
        True
        """
        parts = sorted((self, *others), key=lambda part: part._spread)
        while len(parts) > _STAGE:
            joined = _sum([(part, 1) for part in parts[:_STAGE]])._settled()
            parts = sorted([joined, *parts[_STAGE:]], key=lambda part: part._spread)
        return _sum([(part, 1) for part in parts])

    def power(self, k: int) -> PrivacyLoss:
        """Give the loss of k releases of this kind together.

        Parameters
        ----------
        k : int
            Number of releases, at least 1.

        Returns
        -------
        PrivacyLoss
            The loss of all together.

        Examples
        --------
        >>> coin = PrivacyLoss(0.5, -2, np.array([0.25, 0, 0, 0, 0.75]), 0.0)
        >>> round(coin.power(10_000).epsilon(1e-6), 1)
        5407.2
        """
        times = count(k, "k", "power(10)")
        if times <= 2 * _STAGE:
            return self if times == 1 else _sum([(self, times)])
        stages, rest = divmod(times, _STAGE)
        result = _sum([(self, _STAGE)])._settled().power(stages)
        return result if not rest else result.compose(self.power(rest))

    @staticmethod
    def repeated(parts: Iterable[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
        """Give the loss of releases together, in one transform on the widest step.

        For many unlike losses whose steps fit the sum. Where they are far too
        fine, `compose` chooses wider ones.

        Parameters
        ----------
        parts : iterable of (PrivacyLoss, int)
            Each loss with how often its release is made.

        Returns
        -------
        PrivacyLoss
            The loss of all together.

        Examples
        --------
        >>> coin = PrivacyLoss(0.5, -2, np.array([0.25, 0, 0, 0, 0.75]), 0.0)
        >>> PrivacyLoss.repeated([(coin, 2)]).delta(1.0) == coin.power(2).delta(1.0)
        True
        """
        return _sum([(part, count(times, "times", "repeated([(loss, 10)])")) for part, times in parts])

    @cached_property
    def _spread(self) -> float:
        """The mu of the Gaussian with the same total variation: a public scale of the loss."""
        return gaussian_scale(float(self.delta(0.0)))

    def _settled(self) -> PrivacyLoss:
        """On the widest step that the spread allows: what is to be composed further needs no finer one."""
        factor = 1
        while 2 * factor * self.step <= RESOLUTION * self._spread:
            factor *= 2
        return self._coarser(factor)

    def _coarser(self, factor: int) -> PrivacyLoss:
        """The same on a step that is wider by a whole factor, by connecting the dots again."""
        if factor == 1:
            return self
        low = self.first // factor
        rows = (self.first + len(self.masses) - 1) // factor - low + 1
        padded = np.zeros(rows * factor)
        offset = self.first - low * factor
        padded[offset : offset + len(self.masses)] = self.masses
        share = np.expm1(-self.step * np.arange(factor)) / expm1(-self.step * factor)
        grid = padded.reshape(rows, factor)
        masses = np.zeros(rows + 1)
        masses[:-1] += grid @ (1 - share)
        masses[1:] += grid @ share
        if masses[-1] == 0:
            masses = masses[:-1]
        return PrivacyLoss(self.step * factor, low, masses * (1 + (factor + 8) * _UNIT), self.infinity)

    def _on(self, step: float) -> PrivacyLoss:
        """The same on any wider step."""
        factor = round(step / self.step)
        if factor * self.step == step:
            return self._coarser(factor)
        losses = self.step * np.arange(self.first, self.first + len(self.masses), dtype=np.float64)
        index = np.floor(losses / step).astype(np.int64)
        rest = np.clip(losses - step * index, 0.0, step)
        share = np.minimum(np.expm1(-rest) / expm1(-step) * (1 + 8 * _UNIT), 1.0)
        low, size = int(index[0]), int(index[-1] - index[0]) + 2
        masses = np.zeros(size)
        masses += np.bincount(index - low, self.masses * (1 - share), size)
        masses += np.bincount(index - low + 1, self.masses * share, size)
        slack = 1 + (2 * ceil(step / self.step) + 16) * _UNIT
        return PrivacyLoss(step, low, masses * slack, self.infinity)

    # --------------------------------------------------------------------------------------------------- profile

    @cached_property
    def _profile(self) -> Floats:
        """delta at the grid losses, infinity included; sums of positive terms alone, rounded up."""
        tail = np.cumsum(self.masses[::-1])[::-1]
        # D_j = e^-step D_(j+1) + (1 - e^-step) * (mass above j), from the top down
        decay = exp(-self.step)
        above = np.append(tail[1:], 0.0)[::-1]
        values = signal.lfilter([-expm1(-self.step)], [1.0, -decay], above)[::-1]
        slack = 1 + 4 * (len(tail) + 1) * _UNIT
        profile = np.minimum(values * slack + self.infinity, 1.0)
        return np.asarray(np.maximum.accumulate(profile[::-1])[::-1])

    def knots(self) -> tuple[Floats, Floats]:
        """Give the grid losses and the profile on them, linear in e^epsilon in between.

        Returns
        -------
        tuple of two arrays
            Losses and deltas, of shape (points,).

        Examples
        --------
        >>> PrivacyLoss(1.0, 0, np.array([0.5, 0.5]), 0.0).knots()[0].tolist()
        [0.0, 1.0]
        """
        return self.step * np.arange(self.first, self.first + len(self.masses), dtype=np.float64), self._profile

    def delta(self, epsilon: float | Floats) -> float | Floats:
        """Give the profile at any real epsilon; nowhere below the true profile.

        Parameters
        ----------
        epsilon : float or array of float
            Where to look.

        Returns
        -------
        float or array of float
            Delta at each epsilon.

        Examples
        --------
        >>> float(PrivacyLoss(1.0, 0, np.array([0.0, 1.0]), 0.0).delta(1.0))
        0.0
        """
        asked = reals(epsilon, "epsilon", "delta(1.0)")
        if not (np.abs(asked) <= _FARTHEST).all():
            raise PrivacyError(
                f"epsilon must be at most {_FARTHEST:g} in size, got {epsilon!r}", "write for instance delta(1.0)"
            )
        profile = self._profile
        top = self.step * (self.first + len(profile) - 1)
        # A loss lies where it does but for the last digits of the largest one, which near the end of a bounded loss is more than
        # the last digits of delta: the profile is read that much further left. From the last loss on there is no more to add.
        points = np.where(asked < top, asked - 16 * _UNIT * np.maximum(abs(top), np.abs(asked)), asked)
        index = np.floor(points / self.step) - self.first
        index -= self.step * (self.first + index) > points  # the quotient may have been rounded up to the next point
        index = np.clip(index, 0, len(profile) - 1).astype(np.int64)
        left, right = profile[index], profile[np.minimum(index + 1, len(profile) - 1)]
        over = points - self.step * (self.first + index)
        # the two shares each by itself: 1 - share would drown what is left of the profile just before a loss
        part = np.clip(over, 0.0, self.step)
        inside = (right * np.expm1(part) + left * np.exp(part) * np.expm1(self.step - part)) / expm1(self.step)
        # Below the grid the profile is linear in e^epsilon down to 1, or to all there is.
        under = 1 - (1 - profile[0]) * np.exp(np.minimum(over, 0.0))
        result = np.where(over < 0, under, inside) * (1 + 8 * _UNIT)
        result = np.clip(result, self.infinity, 1.0)
        return float(result) if result.ndim == 0 else result

    def epsilon(self, delta: float) -> float:
        """Give the smallest epsilon >= 0 at which the profile is at most delta.

        Closed form between two grid points.

        Parameters
        ----------
        delta : float
            From 0 to 1.

        Returns
        -------
        float
            Epsilon, rounded up; infinity where there is none.

        Examples
        --------
        >>> PrivacyLoss(1.0, 0, np.array([0.0, 1.0]), 0.0).epsilon(0.0)
        1.0
        """
        goal = real(delta, "delta", "epsilon(1e-6)")
        if not 0 <= goal <= 1:
            raise PrivacyError(f"delta must be from 0 to 1, got {goal!r}", "write for instance epsilon(1e-6)")
        if self.delta(0.0) <= goal:
            return 0.0
        if self.infinity > goal:
            return inf
        profile = self._profile
        index = int(np.searchsorted(-profile, -goal, side="left"))  # the first point at which delta is low enough
        if index == 0:
            # below the grid, where the profile is 1 - (1 - profile[0]) e^(epsilon - lowest)
            found = self.step * self.first + log((1 - goal) / (1 - float(profile[0])))
        elif index == len(profile):
            found = self.step * (self.first + len(profile) - 1)
        else:
            left, right = float(profile[index - 1]), float(profile[index])
            share = min(1.0, (left - goal) / (left - right))
            found = self.step * (self.first + index - 1) + log1p(share * expm1(self.step))
        found = max(found, 0.0)
        bump = 4 * _UNIT * max(found, self.step)
        while self.delta(found) > goal and isfinite(bump):
            found, bump = nextafter(found + bump, inf), 2 * bump
        return found

    def __repr__(self) -> str:
        return f"PrivacyLoss(step={self.step!r}, first={self.first}, points={len(self.masses)}, infinity={self.infinity!r})"


def _sum(parts: list[tuple[PrivacyLoss, int]]) -> PrivacyLoss:
    """The sum of losses on the widest step among them, or a wider one if the window asks for it."""
    step = max(part.step for part, _ in parts)
    at_infinity = -expm1(sum(times * log1p(-part.infinity) for part, times in parts if part.infinity < 1))
    if any(part.infinity == 1 for part, _ in parts) or not all(part.masses.any() for part, _ in parts):
        return PrivacyLoss(step, 0, np.zeros(1), 1.0)
    while True:
        same = [(part._on(step), times) for part, times in parts]
        found = convolve([Factor(part.masses, part.first, times) for part, times in same], step)
        if found is not None:
            masses, first, beyond = found
            infinity = min(1.0, (at_infinity + beyond) * (1 + 8 * sum(times for _, times in parts) * _UNIT))
            return PrivacyLoss(step, first, masses, infinity)
        step *= 2


def _checked_high(high: float) -> float:
    size = level(high, "high", "from_profile(delta, high=8.0)", most=_WIDEST)
    if size < _NARROWEST:
        raise PrivacyError(f"high must be at least {_NARROWEST:g}, got {size!r}", "write for instance high=8.0")
    return size


def _checked_step(step: float) -> float:
    size = level(step, "step", "step=2**-10")
    if not 2.0**-60 <= size <= 2.0**10:
        raise PrivacyError(f"step must be from 2^-60 to 2^10, got {size!r}", "write for instance step=2**-10")
    return size
