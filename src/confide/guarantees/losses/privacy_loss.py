"""Privacy losses on a public grid: composition of any releases, numerically, never below the truth.

For two laws P and Q the privacy loss is L = log dP/dQ under P, and their privacy profile is

    delta(epsilon) = H(P || Q) at order e^epsilon = P(L = infinity) + E[(1 - e^(epsilon - L)) where L > epsilon]

Losses of independent releases add, so a composition is a convolution (Koskela, Jalko, Honkela 2020). A continuous
loss is put on a grid by connecting the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): the new profile is
the one that is linear in e^epsilon between the grid points and equal to the true one on them. A profile is convex in
e^epsilon, so this never understates it; its error is of the square of the step; and it is monotone: a smaller profile
gives a smaller result, whatever it is composed with. Beyond the last grid point the profile is constant, that is, the
mass is at infinity; below the first one it is linear down to delta(-infinity) = 1, that is, the mass is at the first.

From one grid to another the dots are connected again: mass at a loss l between neighbours a < b goes to b with share
(1 - e^(a - l))/(1 - e^(a - b)), which keeps its P- and its Q-mass. A bounded loss has atoms at its ends, so its default
step divides that end, and a grid is only ever widened by powers of 2: atoms stay where they are. Default grids
depend on the profile and on the number of compositions alone, never on records. How sums are formed: `convolution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, floor, inf, isfinite, log, log1p, nextafter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._lazy import later
from confide.errors import PrivacyError
from confide.guarantees.losses.convolution import Factor, convolve
from confide.guarantees.losses.loss_grid import (
    HIGHEST,
    RESOLUTION,
    convex_slopes,
    default_step,
    default_window,
    gaussian_scale,
)
from confide.guarantees.validation import count, level, real, reals

__all__ = ["PrivacyLoss"]

signal = later("scipy.signal")

Floats = NDArray[np.float64]

_UNIT = 2.0**-53
_FARTHEST = 1e280  # of an epsilon, which is divided by the step
_NARROWEST, _WIDEST = 1e-290, 1e7  # of a window whose step, and the exponential of it, are floats
_STAGE = 16  # a power is taken in stages of 16, and the grid is widened by 4 = sqrt(16) in between


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """The privacy loss of an ordered pair (P, Q) on a grid, or an upper bound of it.

    step: above 0; first: index of the lowest loss; masses[i]: P-mass at the loss step * (first + i), an array of
    shape (points,); infinity: mass at an infinite loss. A release whose profile is the same in both orders needs one
    such object, any other one for each order. Masses may sum to a little more than 1: they are rounded up.

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
        """The loss of a release whose profile is the same in both orders, from that profile.

        delta: takes an array of epsilons >= 0 and returns an array of values that are nowhere below the true ones; need
        not be quite convex, its lower convex envelope is used. step, high: grid from -high to high; by default the step
        is 2^-11 of the spread or less, the window leaves 1e-25 outside. A heavy tail is cut earlier, where a cut cannot
        show in what is of interest. Raises `PrivacyError` for other values.

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
        """The loss of an ordered pair from its masses between neighbouring grid points.

        p[i], q[i]: mass under P and under Q of the losses above step * (first + i) and up to the next grid point; above,
        below: P-mass beyond the last and below the first grid point; atoms: pairs (loss, P-mass) of single
        losses, inside or outside the grid. p and q must not be too low and too high by more than their last digits.

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
        """The same from cumulative masses: p_above[i] = P(L > step * (first + i)), q_above[i] = Q(L > ...).

        Both without the atoms, whose P-masses are given apart. Digits that differences of nearly equal tails lose are
        made up for, as for `from_masses`.

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
        """The loss of this release and others together, each of which may depend on the earlier outputs.

        Different steps meet on the widest of them; small losses are joined first, so that a wide step never meets many
        of them.

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
        """The loss of k such releases together.

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
        """The loss of releases together, each with how often it is made, in one transform on the widest of their steps.

        For many unlike losses whose steps fit what is asked of the sum; where they are far too fine, `compose` chooses wider ones.

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
        """The grid losses and the profile on them, arrays of shape (points,); linear in e^epsilon in between.

        >>> PrivacyLoss(1.0, 0, np.array([0.5, 0.5]), 0.0).knots()[0].tolist()
        [0.0, 1.0]
        """
        return self.step * np.arange(self.first, self.first + len(self.masses), dtype=np.float64), self._profile

    def delta(self, epsilon: float | Floats) -> float | Floats:
        """The profile at one epsilon or an array of them, any real numbers; nowhere below the true profile.

        >>> float(PrivacyLoss(1.0, 0, np.array([0.0, 1.0]), 0.0).delta(1.0))
        0.0
        """
        asked = reals(epsilon, "epsilon", "delta(1.0)")
        if not (np.abs(asked) <= _FARTHEST).all():
            raise PrivacyError(
                f"epsilon must be at most {_FARTHEST:g} in size, got {epsilon!r}; write for instance delta(1.0)"
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
        """The smallest epsilon >= 0 at which the profile is at most delta, rounded up; infinity where there is none.

        delta: from 0 to 1. Closed form between two grid points.

        >>> PrivacyLoss(1.0, 0, np.array([0.0, 1.0]), 0.0).epsilon(0.0)
        1.0
        """
        goal = real(delta, "delta", "epsilon(1e-6)")
        if not 0 <= goal <= 1:
            raise PrivacyError(f"delta must be from 0 to 1, got {goal!r}; write for instance epsilon(1e-6)")
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
        raise PrivacyError(f"high must be at least {_NARROWEST:g}, got {size!r}; write for instance high=8.0")
    return size


def _checked_step(step: float) -> float:
    size = level(step, "step", "step=2**-10")
    if not 2.0**-60 <= size <= 2.0**10:
        raise PrivacyError(f"step must be from 2^-60 to 2^10, got {size!r}; write for instance step=2**-10")
    return size
