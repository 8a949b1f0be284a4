"""delta of the symmetric Laplace law without cancellation, for small shifts and far tails.

`radial.py` has delta as a difference of two probabilities, which is quick, and exact to about 1e-16/c + 1e-16. Where that is not
enough, delta = E_Q[(1 - e^(epsilon - LLR))+] is integrated as it stands: over the radius rho around the neighbour's centre, and over the
angle theta there, at distance sqrt((rho - c)^2 + 4 rho c cos^2(theta/2)) from the own centre. All terms are positive.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import exp, lgamma, log, pi, sqrt

import numpy as np

from confide._lazy import later
from confide.guarantees.curves.curve import Floats
from confide.guarantees.curves.radial import Radial, _rule

__all__ = ["spherical_gap"]

optimize = later("scipy.optimize")

_DEEPEST = -60.0  # of log rho: what lies deeper holds less than e^-110 of the mass


def spherical_gap(law: Radial, c: float, epsilon: float, radii: int = 40, angles: int = 24) -> float:
    """delta(epsilon) for epsilon >= 0, within 1e-7 of itself; 0 where the neighbour is the likelier within e^-60 of it alone.

    >>> from confide.guarantees.curves.radial import radial
    >>> round(spherical_gap(radial(3), 0.5, 0.8), 5)
    0.06775
    """
    top, whole = _reach(law, c, epsilon)
    if top == 0:
        return 0.0
    inner = {whole, top / 2, c / 2, c, 2 * c, 4.0, 10.0, 20.0, 40.0, 80.0, 160.0}
    ends = np.array([0.0, *sorted(x for x in inner if 0 < x < top), top])
    place, weight = _rule(radii)
    widths = np.diff(ends)[:, None]
    rho, outer = (ends[:-1, None] + widths * place).ravel(), (widths * weight).ravel()
    s = np.log(rho)
    heights = law.log_density(s)
    far = np.exp(law.inverse(heights - epsilon)) if epsilon > 0 else rho
    # the neighbour is likelier by e^epsilon beyond the distance `far` from the own centre: for angles below `widest`
    widest = np.arccos(np.clip(((far - rho) * (far + rho) - c * c) / (2 * rho * c), -1.0, 1.0))
    total = np.zeros_like(rho)
    for low, high, nodes, sines in _angles(law.d, angles):
        end = np.minimum(high, widest)
        some = end > low
        if not some.any():
            continue
        if (end[some] == high).all():
            theta, inside = nodes[0], nodes[1]
        else:
            place, weight = _rule(angles)
            span = (end[some] - low)[:, None]
            theta, inside = low + span * place, span * weight
            sines = np.exp(_log_norm(law.d) + (law.d - 2) * np.log(np.sin(theta)))
        r = rho[some][:, None]
        distance = np.sqrt((r - c) ** 2 + 4 * r * c * np.cos(theta / 2) ** 2)
        behind = epsilon + law.log_density(np.log(distance)) - heights[some][:, None]
        total[some] += (inside * sines * -np.expm1(np.minimum(behind, 0.0))).sum(axis=1)
    density = np.exp(law._area + (law.d - 1) * s + heights)
    return float(outer @ (density * total))


def _reach(law: Radial, c: float, epsilon: float) -> tuple[float, float]:
    """Radii around the neighbour: the last one with a point where it is likelier by e^epsilon, and the last one with nothing else."""

    def beyond(s: float) -> float:
        return law.at(exp(s)) - law.at(exp(s) + c) - epsilon

    def between(s: float) -> float:
        return law.at(exp(s)) - law.at(c - exp(s)) - epsilon

    if beyond(_DEEPEST) <= 0:
        return 0.0, 0.0
    edge = log(law.edge)
    top = law.edge if beyond(edge) >= 0 else exp(float(optimize.brentq(beyond, _DEEPEST, edge, xtol=1e-13)))
    half = log(c / 2)
    if epsilon == 0:
        return top, c / 2
    if half <= _DEEPEST or between(_DEEPEST) <= 0 or between(half) >= 0:
        return top, 0.0
    return top, exp(float(optimize.brentq(between, _DEEPEST, half, xtol=1e-13)))


def _log_norm(d: int) -> float:
    """log of 1 / integral of sin^(d-2)."""
    return lgamma(d / 2) - lgamma((d - 1) / 2) - log(pi) / 2


@lru_cache(maxsize=64)
def _angles(d: int, count: int) -> tuple[tuple[float, float, tuple[Floats, Floats], Floats], ...]:
    """Pieces of [0, pi] that follow the concentration about the equator, with nodes, weights and sin^(d-2) on each."""
    steps = (2 / sqrt(d), 6 / sqrt(d))
    cuts = sorted({pi / 2, *(pi / 2 - x for x in steps), *(pi / 2 + x for x in steps)})
    ends = [0.0, *(x for x in cuts if 0 < x < pi), pi]
    place, weight = _rule(count)
    pieces = []
    for low, high in pairwise(ends):
        theta = low + (high - low) * place
        sines = np.exp(_log_norm(d) + (d - 2) * np.log(np.sin(theta)))
        pieces.append((low, high, (theta, (high - low) * weight), sines))
    return tuple(pieces)
