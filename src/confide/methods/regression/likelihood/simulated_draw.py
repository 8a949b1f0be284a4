"""A release of practice records, simulated: a source of weighted records and a meter of seeded noise for a method's own draw.

So a forecast takes the way of a release, and knows no rules of its own. Practice records are public; nothing here sees a private one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.lines.blocks import BlockGram
from confide.aggregates.lines.ranges import RangeCells
from confide.aggregates.scores.fisher_rows import CROSS
from confide.aggregates.scores.fisher_sums import FisherSum
from confide.aggregates.scores.shrinkage import symmetric_noise
from confide.protocol import Gram, Statistic, Total

__all__ = ["Drawn", "Plain", "SimulatedMeter", "SimulatedRelease", "WeightedSource"]


# Records of equal weight that stand for the weighted ones where a statistic has no weighted sum here.
_EVEN = 4_000


@dataclass(frozen=True, eq=False)
class WeightedSource:
    """Practice records as codes (columns, records), and for how many records each stands (records,)."""

    codes: Array
    each: Array

    def aggregate(self, *statistics: Statistic) -> tuple[Array, ...]:
        """Weighted sums in place of exact integers."""
        return tuple(map(self._sum, statistics))

    def _sum(self, one: Any) -> Array:
        match one:
            case Total():
                return np.asarray(self._rows(one) @ self.each)
            case Gram():
                return self._products(self._rows(one))
            case BlockGram():
                a, b, c = one.blocks
                whole = self._products(self._rows(one))
                whole[:-1] *= np.append(np.full(len(whole) - 1, a), b)
                whole[-1] *= np.append(np.full(len(whole) - 1, b), c)
                return whole
            case FisherSum():
                rows = self._rows(one)
                k = len(rows) // 2
                whole = np.zeros((k + 1, k + 1))
                whole[:-1, :-1] = self._products(rows[:k])
                whole[:-1, -1] = whole[-1, :-1] = CROSS * (rows[k:] @ self.each)
                return whole
            case RangeCells() | Histogram():
                cells = one.shape[-1]
                counts = [np.bincount(row.astype(int), self.each, cells + 1)[1:] for row in self._rows(one)]
                return np.array(counts, dtype=np.float64).reshape(one.shape)
        return self._even(one)

    def _even(self, one: Any) -> Array:
        """Any other statistic: its own sum over records of equal weight, drawn at even steps."""
        below = np.cumsum(self.each)
        places = np.searchsorted(below, (np.arange(_EVEN) + 0.5) / _EVEN * below[-1])
        codes = self.codes[:, np.minimum(places, len(below) - 1)]
        total = one.value(one.update(one.zero(), codes))
        return np.asarray(total, dtype=np.float64) * float(below[-1] / _EVEN)

    def _rows(self, one: Any) -> Array:
        return np.asarray(one.map(self.codes), dtype=np.float64)

    def _products(self, rows: Array) -> Array:
        return np.asarray((rows * self.each) @ rows.T)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Noisy numbers in place of `Noisy`; variance: of one entry, on the diagonal of a symmetric matrix; seed: of what is keyed by them."""

    values: Array
    variance: float
    seed: str

    def decode(self) -> Array:
        """The numbers."""
        return self.values

    def to_dict(self) -> dict[str, Any]:
        """What their digest follows from."""
        return {"simulated": self.seed}


@dataclass(frozen=True, eq=False)
class SimulatedMeter:
    """Adds noise with the sds of a plan, by name, from a generator; seed: tells runs apart."""

    plan: Plain
    generator: np.random.Generator
    seed: str
    statistics: dict[str, Drawn] = field(default_factory=dict)

    def draw(self, name: str, total: Array) -> Drawn:
        """Noisy numbers, kept under their name."""
        sd = self.plan.noise[name]
        if getattr(self.plan.statistic(name), "norm", "") == "frobenius":
            noise = symmetric_noise(len(total), sd, self.generator)
        else:
            noise = sd * self.generator.standard_normal(np.shape(total))
        drawn = Drawn(total + noise, sd**2, f"{self.seed} {name}")
        self.statistics[name] = drawn
        return drawn


@dataclass(frozen=True)
class Plain:
    """What a draw and a reading ask of a plan."""

    statistics: Mapping[str, Statistic]
    noise: Mapping[str, float]
    schema: Mapping[str, Any]
    covers: str = ""
    rule: None = None

    def statistic(self, name: str) -> Statistic:
        """By name."""
        return self.statistics[name]

    def spend(self, name: str) -> _Spent:
        """By name."""
        return _Spent(self.noise[name])


@dataclass(frozen=True)
class _Spent:
    noise_sd: float


@dataclass(frozen=True, eq=False)
class SimulatedRelease:
    """What a reading asks of a release before it writes a table."""

    plan: Plain
    statistics: Mapping[str, Drawn]
    public: Mapping[str, Any]
    drawn_sha256: str = ""

    def __getitem__(self, name: str) -> Drawn:
        return self.statistics[name]
