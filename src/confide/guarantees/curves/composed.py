"""Several releases together: in closed form where there is one, then as privacy losses on a public grid.

A profile whose values are expensive, from a few hundred of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import asinh, inf, isfinite, isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._helpers import later
from confide.guarantees.curves.curve import Curve, Floats
from confide.guarantees.curves.elementary import Perfect, Relaxed, ZeroInflated
from confide.guarantees.curves.symmetric_laplace import SymmetricLaplace
from confide.guarantees.privacy_loss import HIGHEST, TAIL
from confide.guarantees.validation import SLACK, float_up

if TYPE_CHECKING:
    from confide.guarantees.privacy_loss import PrivacyLoss


interpolate = later("scipy.interpolate")

_SMALLEST = 5e-324


def interpolated(profile: Callable[[Floats], Floats], high: float, *, points: int = 193) -> Callable[[Floats], Floats]:
    """A spline of log delta on [0, high], raised by four times its largest error halfway between its points.

    profile: takes and returns arrays; smooth and above 0. Points are dense near 0 and spread out where a tail is nearly a power. Twice
    the points are taken until that raise is below 1e-5 of delta.
    """
    scale = min(1.0, high / 8)

    def spread(count: int) -> Floats:
        return np.asarray(scale * np.sinh(np.linspace(0.0, asinh(high / scale), count)))

    at = spread(points)
    logs = np.log(np.maximum(profile(at), _SMALLEST))
    while True:
        curve = interpolate.CubicSpline(at, logs)
        between = spread(2 * len(at) - 1)[1::2]
        halfway = np.log(np.maximum(profile(between), _SMALLEST))
        error = float(np.abs(halfway - curve(between)).max())
        at, logs = np.append(at, between), np.append(logs, halfway)
        order = np.argsort(at)
        at, logs = at[order], logs[order]
        if error < 1e-5 or len(at) > 3000:
            break
    finest, raised = interpolate.CubicSpline(at, logs), 1 + 4 * error

    def value(epsilons: Floats) -> Floats:
        return np.asarray(np.minimum(np.exp(finest(np.minimum(epsilons, high))) * raised, 1.0))

    return value


# Who is asked first for a closed form: those that take any partner, then those that take their own kind.
_FAR = 1.0 + 2.0**-10  # of the mass at infinity: closer than this the grid has nothing more to say
_FIRST = (Perfect, Relaxed, ZeroInflated)


@dataclass(frozen=True, repr=False)
class Composed(Curve):
    """parts: (curve, times), unlike curves in a fixed order. delta is an upper bound within the grid's error (`privacy_loss.py`)."""

    parts: tuple[tuple[Curve, int], ...]

    @property
    def light_tail(self) -> bool:
        return all(part.light_tail for part, _ in self.parts)  # each has a mu, and these compose

    @property
    def mass_at_infinity(self) -> float:
        return 0.0  # every part with a mass at infinity is factored out, see `composed`

    @property
    def _loss(self) -> PrivacyLoss:
        return _loss_of(self.parts)

    def _profile(self, epsilons: Floats) -> Floats:
        found = np.asarray(self._loss.delta(epsilons), dtype=np.float64)
        # Far out a grid says no more than its mass at infinity. There each part gets a fixed share of epsilon, and deltas add: basic
        # composition, which is 0 from the sum of bounded losses on.
        far = found <= _FAR * self._loss.infinity if self._loss.infinity else epsilons >= self._basic_end
        if far.any():
            found[far] = np.minimum(found[far], self._basic(epsilons[far]))
        return found

    def _basic(self, epsilons: Floats) -> Floats:
        deltas = sum(
            k * np.asarray(part.delta(epsilons * share))
            for (part, k), share in zip(self.parts, self._shares, strict=True)
        )
        return np.minimum(np.asarray(deltas) * (1 + SLACK), 1.0)

    @property
    def _shares(self) -> tuple[float, ...]:
        """Of epsilon, for one copy of each part: by their largest losses, or where these have no end by a tenth of their deltas."""
        return _shares_of(self.parts)

    @property
    def _basic_end(self) -> float:
        ends = [Fraction(part.epsilon(0.0)) * k if isfinite(part.epsilon(0.0)) else None for part, k in self.parts]
        return (
            inf
            if None in ends
            else float_up(sum((end for end in ends if end is not None), Fraction(0)) * (1 + Fraction(SLACK)))
        )

    def _epsilon(self, goal: float) -> float:
        found = self._loss.epsilon(goal)
        if isinf(found) or goal <= _FAR * self._loss.infinity:
            found = min(found, super()._epsilon(goal))
        return min(found, self._basic_end)

    def _beta(self, alpha: float) -> float:
        losses, profile = self._loss.knots()
        return float(np.max(1 - profile - np.exp(np.minimum(losses, 700.0)) * alpha))

    def _gdp(self, leak: float) -> float:
        if leak > 0:
            return super()._gdp(leak)
        # delta 0 from the parts: their own mu compose
        return float(np.nextafter(sum(k * part.gdp(0.0) ** 2 for part, k in self.parts) ** 0.5, np.inf))

    def _data(self) -> dict[str, Any]:
        return {"curve": "composed", "parts": [[part.to_dict(), times] for part, times in self.parts]}

    def __repr__(self) -> str:
        return " * ".join(repr(part) + (f" ** {times}" if times > 1 else "") for part, times in self.parts)


def composed(parts: Iterable[tuple[Curve, int]]) -> Curve:
    """The product of curves: flattened, closed forms merged, the rest counted. The order of the parts does not matter.

    >>> from confide.guarantees.curves import approx_dp, gaussian, laplace
    >>> composed(((laplace(0.5), 2), (gaussian(3.0), 1), (laplace(0.5), 1), (gaussian(4.0), 1)))
    gaussian(5.0) * laplace(0.5) ** 3
    >>> composed(((approx_dp(0.5, 0.01), 2),)).mass_at_infinity
    0.0199
    """
    counts: Counter[Curve] = Counter()
    for curve, times in parts:
        inner = curve.parts if isinstance(curve, Composed) else ((curve, 1),)
        for part, k in inner:
            counts[part] += k * times
    for kind in _FIRST:
        found = sorted((part for part in counts if isinstance(part, kind)), key=repr)
        if found:
            return _absorbed(found[0], counts)
    merged = _merged(counts)
    if len(merged) == 1 and merged[0][1] == 1:
        return merged[0][0]
    return Composed(merged)


Curve._composed = staticmethod(composed)


def _absorbed(first: Curve, counts: Counter[Curve]) -> Curve:
    """A part that has a closed form with any other takes all of them, one kind after another."""
    rest = counts.copy()
    rest[first] -= 1
    result: Curve = first
    others = [(part, k) for part, k in sorted(rest.items(), key=lambda item: repr(item[0])) if k > 0]
    for part, k in others:
        joined = result._merged(part, k) if isinstance(result, _FIRST) else composed(((result, 1), (part, k)))
        assert joined is not None
        result = joined
    return result


def _merged(counts: Counter[Curve]) -> tuple[tuple[Curve, int], ...]:
    """Parts of one kind in one, where their kind has a closed form."""
    done: list[tuple[Curve, int]] = []
    for part, k in sorted(counts.items(), key=lambda item: repr(item[0])):
        alone = part if k == 1 else part._merged(part, k - 1)
        if alone is None:
            done.append((part, k))
            continue
        for place, (other, times) in enumerate(done):
            joined = other._merged(alone, 1) if times == 1 else None
            if joined is not None:
                done[place] = (joined, 1)
                break
        else:
            done.append((alone, 1))
    return tuple(sorted(done, key=lambda item: repr(item[0])))


@lru_cache(maxsize=64)
def _loss_of(parts: tuple[tuple[Curve, int], ...]) -> PrivacyLoss:
    losses = [_single(part).power(times) for part, times in parts]
    return losses[0] if len(losses) == 1 else losses[0].compose(*losses[1:])


@lru_cache(maxsize=64)
def _shares_of(parts: tuple[tuple[Curve, int], ...]) -> tuple[float, ...]:
    sizes = [part.epsilon(0.0) for part, _ in parts]
    if not all(map(isfinite, sizes)):
        sizes = [part.epsilon(float(part.delta(0.0)) / 10) for part, _ in parts]
    total = sum(k * size for (_, k), size in zip(parts, sizes, strict=True))
    return tuple(size / total for size in sizes)


@lru_cache(maxsize=64)
def _single(part: Curve) -> PrivacyLoss:
    from confide.guarantees.privacy_loss import PrivacyLoss

    if isinstance(part, SymmetricLaplace):
        # a heavy tail is kept as far as e^epsilon is a float, so that small deltas of the composition are not lost
        high = min(HIGHEST, part.epsilon(TAIL))
        return PrivacyLoss.from_profile(part._profile if part._limit else interpolated(part._profile, high), high=high)
    return PrivacyLoss.from_profile(lambda epsilons: np.asarray(part.delta(epsilons)))
