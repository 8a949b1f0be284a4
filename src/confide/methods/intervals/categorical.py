"""The shares of all levels of a column, from one release of all counts.

Guarantee: PureDP(epsilon) or mu-GDP, substitute, n public. The whole vector of counts: one replaced record moves one count down and one
up, l1 = 2, l2 = sqrt 2 for all levels at once, where a share of the budget for each would cost J and sqrt J.

Credible intervals: the exact posterior of each share under Beta(1/2, 1/2), or Beta(a, b), from its own noisy count and the sum of the
others' (`counted.level_posterior`), however many levels there are. Under Dirichlet(a, ...), where that is asked for, the exact joint
posterior from all counts and the public sum (`counted.Cells`); with many levels it says much of how large the largest can be. Draws of all
shares together are of Dirichlet(a, ...), a = 1/2 when left out. Confidence intervals: of each level by itself, equal tails of the exact
distribution of its own noisy count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.aggregates.lines.corners import ends
from confide.errors import PlanError
from confide.methods.intervals.method import RARE, IntervalMethod, parsed_prior, share_error
from confide.methods.intervals.posteriors.counted import Cells, level_posterior
from confide.methods.intervals.posteriors.marginals import BetaMixture
from confide.methods.intervals.posteriors.rows import LevelRows
from confide.methods.intervals.proportion import exact_shares, level_name
from confide.methods.intervals.result import ConfidenceIntervals, Posterior
from confide.protocol import Release
from confide.schema import Categorical, Integer, Practice, Schema

__all__ = ["CategoricalShares"]

# Levels of a whole-number column that are still categories.
_MOST = 64
# Dirichlet's a for draws of all shares together, where each has a prior of its own.
_JOINT = 0.5
# Of posteriors, and of confidence limits.
_COVERS = (
    "population shares, each by itself; sampling and privacy noise; exact under the prior",
    "population shares, each by itself; sampling and privacy noise; at the level or above, at every share",
)
# Beta's a and b of each share, where nothing is asked for.
_EACH = (0.5, 0.5)


@dataclass(frozen=True)
class CategoricalShares(IntervalMethod):
    """The shares of all levels of a column.

    column: categorical, or cf.Integer of at most 64 values; prior "beta(a, b)" of each level by itself, or "dirichlet(a)" of all, a of
    every level.

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
    version: ClassVar[str] = "2"
    reads: ClassVar[tuple[str, ...]] = ("1",)  # the same release; the prior was Dirichlet(1/2)
    intervals: ClassVar[str] = (
        "population shares; sampling and privacy noise; exact under the prior, or exact confidence for each"
    )
    whole: ClassVar[bool] = True
    assumes: ClassVar[str] = "for shares of .02 to .5"

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

    def expected(self, rows: LevelRows, n: int, noise: float) -> Mapping[str, tuple[float, float]]:
        # the sum of all counts is public, and takes from each noise its share of the noise of the sum; confidence limits look at one count
        own = noise * (1.0 if self.kind == "confidence" else (1 - 1 / max(len(rows.levels), 1)) ** 0.5)
        return {"each level": (share_error(RARE, n, own), share_error(0.5, n, own))}

    def _prior(self, text: str) -> tuple[float, ...]:
        """(a, b) of each level, or (a,) of all."""
        return parsed_prior(text, {"beta": 2, "dirichlet": 1}, "beta(0.5, 0.5)", self.name)[1]

    def _names(self, schema: Schema) -> tuple[str, ...]:
        return tuple(level_name(schema, self.column, code) for code in range(schema[self.column].steps))

    def credible(self, release: Release, rows: LevelRows, n: int, prior: tuple[float, ...]) -> Posterior:
        names, law = self._names(rows.schema), self.law(release)
        sums = np.asarray(self.sums(release), dtype=np.float64)
        together = len(prior) == 1

        def cells() -> Cells:
            return Cells(sums, n, law, np.full(len(names), prior[0] if together else _JOINT))

        def marginals() -> list[BetaMixture]:
            if not together:
                return [level_posterior(sums, j, n, law, *prior) for j in range(len(names))]
            own = cells()
            return [own.marginal(j) for j in range(len(names))]

        return Posterior.read(
            release,
            response=self.column,
            covers=_COVERS[0],
            names=names,
            marginals=marginals(),
            bounds=[(0.0, 1.0)] * len(names),
            joint=lambda generator, size: cells().draws(generator, size),
            reached=lambda alpha: [law.allows(float(y), 0, n, alpha) for y in sums],
            middle=[level_posterior(np.r_[n // 2, n - n // 2, np.zeros(len(names) - 2)], 0, n, law)],
            flat=None
            if prior == _EACH
            else lambda: [level_posterior(sums, j, n, law, 1.0, 1.0) for j in range(len(names))],
            prior=f"Dirichlet({prior[0]:g}, ...)" if together else f"Beta({prior[0]:g}, {prior[1]:g}) of each",
            facts=(("Records", f"{n:,} (public)"), ("Noise", law.words())),
        )

    def confidence(self, release: Release, rows: LevelRows, n: int) -> ConfidenceIntervals:
        names, sums = self._names(rows.schema), self.sums(release)
        return exact_shares(release, self.column, names, sums, n, self.law(release), _COVERS[1])

    def reference(self, frame: Any) -> Mapping[str, float]:
        practice = Practice.checked(frame)
        codes = practice.codes[self.column]
        return {name: float(np.mean(codes == code)) for code, name in enumerate(self._names(practice.schema))}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Two levels."""
        if isinstance(schema, Schema):
            yield ends(schema, (self.column,))
