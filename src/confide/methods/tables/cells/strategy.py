"""Which marginals to release at which share of the budget, so that all that are asked for are as precise as they can be.

Attributes have d_i levels; a marginal A has n_A = prod d_i cells. For each A in the closure of what is asked for, all cells are released
with noise variance 1/s_A (in units of the record's sensitivity over mu), sum s_A = 1. On the residual space of a, the contrasts of
exactly the attributes in a, of dimension r_a = prod (d_i - 1), generalised least squares has the precision

    lambda_a/n = sum over A >= a of s_A/n_A,

and a cell of B the noise variance (1/n_B^2) sum over a <= B of r_a n/lambda_a. The shares minimise sum over B asked for of omega_B times
the mean of (noise variance over the mean count n/n_B), up to a constant sum_a r_a b_a/(lambda_a/n), b_a = sum over B >= a of omega_B/n_B.
It is convex in s; s <- s sqrt(gradient), normalised, goes down to it, and the largest gradient over their mean says how near it is.

No linear Gaussian mechanism has a loss below (sum_a r_a sqrt(b_a))^2 (by Cauchy's inequality from sum_a r_a lambda_a/n <= 1), which needs
noise of real weights; shares of integer counts come within a few per cent (`docs/methods/tables.md`).
Source: the residual spaces of Xiao, He, Zhang, Kifer 2023, from which the bound and the precision are derived here anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError

__all__ = ["Strategy"]


_STEPS, _NEAR = 4000, 1e-5
# Shares are multiples of this; one below the second is not drawn, unless it is the only one that tells of what was asked.
_GRAIN, _LEAST = Fraction(1, 1 << 20), Fraction(1, 1 << 12)
# Rounds of the search for the weights at which every marginal just meets its target, and the power that they move by.
_ROUNDS, _POWER = 60, 0.7


@dataclass(frozen=True)
class Strategy:
    """Shares of marginals. closure: all that could be drawn; asked: those that are wanted; known: the total is public, and not drawn.

    >>> own = Strategy.of((12, 2), ((), (0,), (1,), (0, 1)), ((), (0,), (1,), (0, 1)))
    >>> round(own.loss / own.least, 4), sum(own.shares.values())
    (1.0, Fraction(1, 1))
    """

    sizes: tuple[int, ...]
    closure: tuple[Axes, ...]
    asked: tuple[Axes, ...]
    shares: Mapping[Axes, Fraction]
    weights: tuple[float, ...]
    known: bool = False

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        closure: Sequence[Axes],
        asked: Sequence[Axes],
        *,
        weights: Sequence[float] | None = None,
        known: bool = False,
    ) -> Strategy:
        """The best shares. weights: omega of each marginal asked for, 1 each when left out."""
        facts = (tuple(sizes), tuple(closure), tuple(asked), tuple(weights or [1.0] * len(asked)), known)
        return cls(facts[0], facts[1], facts[2], dict(_best_shares(*facts)), facts[3], known)

    @classmethod
    def for_precision(
        cls, sizes: Sequence[int], closure: Sequence[Axes], targets: Mapping[Axes, float], *, known: bool = False
    ) -> tuple[Strategy, float]:
        """(strategy, the least mu^2) with noise variances of at most `targets` for counts of cells of the marginals named.

        known: the total is public, so that a target of its own costs nothing.
        """
        asked = tuple(targets)
        wanted = np.array([targets[axes] for axes in asked])
        if not (wanted > 0).all():
            raise PlanError("noise standard deviations must be above 0; write precision={'total': 5, '1-way': 3}")
        mean = np.array([prod(sizes[axis] for axis in axes) for axes in asked], dtype=float)
        omega, best = np.ones(len(asked)), None
        for _ in range(_ROUNDS):
            # a weight of variance alone, so that omega is the dual of its own target
            weights = tuple(float(v) for v in omega / wanted * mean)
            own = cls.of(sizes, closure, asked, weights=weights, known=known)
            need = np.array([own.variance(axes) for axes in asked]) / wanted
            if best is None or need.max() < best[1]:
                best = own, float(need.max())
            omega = omega * (need / need.max()) ** _POWER
        assert best is not None
        return best

    # the geometry -----------------------------------------------------------------------------------------------------

    def cells(self, axes: Axes) -> int:
        """n_A."""
        return prod(self.sizes[axis] for axis in axes)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(positions of a, positions of A) for all a <= A in the closure."""
        sets = [frozenset(axes) for axes in self.closure]
        found = [(i, j) for j, whole in enumerate(sets) for i, part in enumerate(sets) if part <= whole]
        return np.array([i for i, _ in found]), np.array([j for _, j in found])

    @cached_property
    def _cells(self) -> Array:
        return np.array([self.cells(axes) for axes in self.closure], dtype=float)

    @cached_property
    def _ranks(self) -> Array:
        """r_a; 0 for the total where it is known."""
        ranks = [float(prod(self.sizes[axis] - 1 for axis in axes)) for axes in self.closure]
        if self.known:
            ranks[self.closure.index(())] = 0.0
        return np.array(ranks)

    @cached_property
    def _needs(self) -> Array:
        """b_a."""
        omega = np.zeros(len(self.closure))
        for axes, weight in zip(self.asked, self.weights, strict=True):
            omega[self.closure.index(axes)] = weight
        return self._below(omega / self._cells)

    def _below(self, values: Array) -> Array:
        """Sums over A >= a, for each a. Added one by one in a fixed order: plans must come out alike on every machine."""
        below, above = self._pairs
        return np.bincount(below, weights=values[above], minlength=len(self.closure)).astype(np.float64)

    def _above(self, values: Array) -> Array:
        """Sums over a <= A, for each A."""
        below, above = self._pairs
        return np.bincount(above, weights=values[below], minlength=len(self.closure)).astype(np.float64)

    # the shares -------------------------------------------------------------------------------------------------------

    def _best(self) -> Array:
        live = np.ones(len(self.closure))
        if self.known and len(self.closure) > 1:
            live[self.closure.index(())] = 0.0
        shares = live / live.sum()
        for _ in range(_STEPS):
            precision = self._below(shares / self._cells)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(self._ranks > 0, self._ranks * self._needs / precision, 0.0)
                slope = self._above(np.where(self._ranks > 0, part / precision, 0.0)) / self._cells
            loss = part.sum()
            if not loss > 0 or (slope * live).max() <= (1 + _NEAR) * loss:
                break
            shares = shares * np.sqrt(slope)
            shares /= shares.sum()
        return np.asarray(shares)

    def _exact(self, shares: Array) -> dict[Axes, Fraction]:
        """Shares as fractions that add up to 1."""
        kept: dict[Axes, Fraction] = {}
        sole = [axes for axes in self.asked if not any(set(axes) < set(other) for other in self.asked)]
        for axes, share in zip(self.closure, shares.tolist(), strict=True):
            own = Fraction(int(share / float(_GRAIN))) * _GRAIN
            if own >= _LEAST:
                kept[axes] = own
            elif axes in sole:
                kept[axes] = max(own, _GRAIN)
        largest = max(kept, key=lambda axes: kept[axes])
        kept[largest] += 1 - sum(kept.values())
        return kept

    # what they give ---------------------------------------------------------------------------------------------------

    @cached_property
    def spread(self) -> Array:
        """n/lambda_a for each a in the closure; 0 for a total that is known."""
        shares = np.array([float(self.shares.get(axes, 0)) for axes in self.closure])
        return np.where(self._ranks > 0, 1.0 / self._below(shares / self._cells), 0.0)

    def variance(self, axes: Axes) -> float:
        """The noise variance of a cell of a marginal, in units of the sensitivity over mu."""
        own = frozenset(axes)
        inside = np.array([set(part) <= own for part in self.closure])
        return float((self._ranks * self.spread)[inside].sum() / self.cells(axes) ** 2)

    @property
    def loss(self) -> float:
        """The weighted sum of noise variances over mean counts, per record."""
        return float((self._ranks * self._needs * self.spread).sum())

    @property
    def least(self) -> float:
        """The least loss of any linear Gaussian mechanism under add-remove, per record."""
        return float((self._ranks * np.sqrt(self._needs)).sum() ** 2)


@lru_cache(maxsize=256)
def _best_shares(
    sizes: tuple[int, ...], closure: tuple[Axes, ...], asked: tuple[Axes, ...], weights: tuple[float, ...], known: bool
) -> tuple[tuple[Axes, Fraction], ...]:
    """The best shares of public facts, found once: a plan is made when it is asked for, drawn and read."""
    own = Strategy(sizes, closure, asked, {}, weights, known)
    return tuple(own._exact(own._best()).items())
