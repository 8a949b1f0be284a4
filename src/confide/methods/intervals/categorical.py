"""The shares of all levels of a column, from one release of all counts.

Guarantee: PureDP(epsilon) or mu-GDP, substitute, n public. The whole vector of counts: one replaced record moves one count down and one
up, l1 = 2, l2 = sqrt 2 for all levels at once, where a share of the budget for each would cost J and sqrt J.

Credible intervals: exact posterior under a Dirichlet prior, a of each level (1/2 when left out), from all noisy counts and the public sum
(`counted.Cells`). Confidence intervals: of each level by itself, equal tails of the exact distribution of its own noisy count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.aggregates.lines.corners import ends
from confide.errors import PlanError
from confide.methods.intervals.method import IntervalMethod, parsed_prior
from confide.methods.intervals.posteriors.counted import Cells, confidence_limits
from confide.methods.intervals.posteriors.rows import LevelRows
from confide.methods.intervals.proportion import level_name
from confide.methods.intervals.result import ConfidenceIntervals, Posterior
from confide.protocol import Release
from confide.schema import Categorical, Integer, Practice, Schema

__all__ = ["CategoricalShares"]

# Levels of a whole-number column that are still categories.
_MOST = 64


@dataclass(frozen=True)
class CategoricalShares(IntervalMethod):
    """The shares of all levels of a column.

    column: categorical, or cf.Integer of at most 64 values; prior "dirichlet(a)", a of every level.

    >>> import confide as cf
    >>> schema = cf.Schema({"g": cf.Categorical(["a", "b", "c"], on_missing="a")})
    >>> data = cf.read(schema.sample(600, seed=1), schema)
    >>> release = cf.release(CategoricalShares("g"), data, cf.GDP(0.5), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> result = cf.infer(release)
    >>> list(result.names), bool(abs(result.sample(2000).sum(axis=1) - 1).max() < 1e-12)
    (['g=a', 'g=b', 'g=c'], True)
    """

    column: str
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "categorical"
    intervals: ClassVar[str] = (
        "population shares; sampling and privacy noise; exact under the prior, or exact confidence for each"
    )
    whole: ClassVar[bool] = True

    def rows(self, schema: Schema, pure: bool) -> LevelRows:
        own = schema[self.column]
        if not isinstance(own, Categorical) and not (isinstance(own, Integer) and own.steps <= _MOST):
            raise PlanError(
                f"shares are of levels, and {self.column!r} has none; declare it as cf.Categorical([...]), or as cf.Integer of at most "
                f"{_MOST} values"
            )
        return LevelRows(schema, self.column, tuple(range(own.steps)))

    def facts(self, about: LevelRows) -> Mapping[str, Any]:
        return {"target": f"shares of the levels of {self.column}", "covers": self.intervals}

    def _prior(self, text: str) -> float:
        return parsed_prior(text, {"dirichlet": 1}, "dirichlet(0.5)", self.name)[1][0]

    def _names(self, schema: Schema) -> tuple[str, ...]:
        return tuple(level_name(schema, self.column, code) for code in range(schema[self.column].steps))

    def credible(self, release: Release, rows: LevelRows, n: int, prior: float) -> Posterior:
        names, law = self._names(rows.schema), self.law(release)
        sums = self.sums(release)
        cells = Cells(sums, n, law, np.full(len(names), prior))
        return Posterior.read(
            release,
            response=self.column,
            names=names,
            marginals=[cells.marginal(j) for j in range(len(names))],
            bounds=[(0.0, 1.0)] * len(names),
            joint=cells.draws,
            reached=lambda alpha: [law.allows(float(y), 0, n, alpha) for y in sums],
            prior=f"Dirichlet({prior:g}, ...)",
            facts=(("Records", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def confidence(self, release: Release, rows: LevelRows, n: int) -> ConfidenceIntervals:
        names, law, sums = self._names(rows.schema), self.law(release), self.sums(release)

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            ends = [confidence_limits(float(y), n, law, alpha) for y in sums]
            return [low for low, _ in ends], [high for _, high in ends]

        return ConfidenceIntervals.read(
            release,
            response=self.column,
            names=names,
            limits=limits,
            bounds=[(0.0, 1.0)] * len(names),
            facts=(("Records", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        practice = Practice.checked(frame)
        codes = practice.codes[self.column]
        return {name: float(np.mean(codes == code)) for code, name in enumerate(self._names(practice.schema))}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two levels."""
        if isinstance(schema, Schema):
            yield ends(schema, (self.column,))
