"""What a release of several rounds says of where they stood: the same for a line of least squares and for a likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.ranges import ranged
from confide.aggregates.lines.rows import Box
from confide.aggregates.scores.unit_scores import Counting
from confide.methods.regression.evidence.far_bounds import short_tail
from confide.protocol import Question, Release
from confide.schema import Design

__all__ = ["ReleasedRounds"]


@dataclass(frozen=True, eq=False)
class ReleasedRounds:
    """One release read with one question."""

    release: Release
    question: Question
    design: Design

    def _public(self, name: str) -> Array:
        return np.asarray(self.release.public[name], dtype=np.float64)

    def _number(self, name: str) -> float:
        return float(self._public(name)[0])

    @property
    def _records(self) -> float:
        """The noisy number of records."""
        return float(self.release["count"].decode()[0])

    @cached_property
    def box(self) -> Box:
        """Where z was measured from."""
        middle, half = self._public("box")
        return Box(tuple(map(float, middle)), tuple(map(float, half)))

    @cached_property
    def counting(self) -> Counting | None:
        """How rows of a unit count; None where records do, and where one row of each unit was kept."""
        return Counting.of_plan(self.release.plan)

    def _moments(self, j: int) -> tuple[float, float]:
        """Mean and sd of a feature in the data's units."""
        middle, half = self.box.middle[j], self.box.half[j]
        mean, sd = float(self._public("feature_mean")[j]), float(self._public("feature_sd")[j])
        return middle + half * mean, half * sd

    def _short(self, j: int, **doubt: float) -> bool:
        """Whether the tail of a feature was seen to be short; never in the short branch, which pays for no ranges."""
        if "ranges" not in self.release.statistics:
            return False
        noisy, term = self.release["ranges"], self.design.terms[j]
        mean, spread = self._moments(j)
        own = noisy.decode()[ranged(self.design).index(j)]
        return short_tail(own, sqrt(noisy.variance), self._records, (term.low, term.high), mean, spread, **doubt)
