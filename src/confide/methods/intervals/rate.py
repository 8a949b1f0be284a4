"""The rate of a column of Poisson counts.

Guarantee: PureDP(epsilon) or mu-GDP, substitute, n public. The sum of the counts, each moved into 0..U (the column's bounds), which one
replaced record moves by at most U; two-sided geometric noise on whole numbers, or rounded Gaussian noise.

The model is Poisson, and what moving counts into 0..U does is a part of it: the rate is that of the counts before. The distribution of the
noisy sum is exact. Credible interval: uniform prior on (0, U] when left out. Confidence interval: equal tails; at least its level at every
rate, n and budget. Both rest on counts that are Poisson: for others use cf.intervals.mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from confide.methods.intervals.method import RARE, IntervalMethod, parsed_prior
from confide.methods.intervals.posteriors.clipped import ClippedPoisson
from confide.methods.intervals.posteriors.poisson_posterior import PoissonSum, rate_limits, rate_posterior
from confide.methods.intervals.posteriors.rows import CountRows
from confide.methods.intervals.result import BOX_ACTIVE, ConfidenceIntervals, Posterior
from confide.protocol import Release
from confide.schema import Practice, Schema

__all__ = ["Rate"]

_DEFAULT = "uniform"


@dataclass(frozen=True)
class Rate(IntervalMethod):
    """The rate of Poisson counts.

    column: cf.Integer(0, U); prior "uniform", "gamma(shape, rate)" or "jeffreys".

    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"visits": cf.Integer(0, 25, on_missing=0)})
    >>> data = cf.read({"visits": np.random.default_rng(1).poisson(10, 1000)}, schema)
    >>> release = cf.release(Rate("visits"), data, cf.PureDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> cf.infer(release).status
    'ok'
    """

    column: str
    kind: str = "credible"
    prior: str = ""

    name: ClassVar[str] = "rate"
    version: ClassVar[str] = "2"
    # releases of 1 mean the same; what infer computes from them differs in the last digits
    reads: ClassVar[tuple[str, ...]] = ("1",)
    intervals: ClassVar[str] = "rate of Poisson counts, clipping modelled; sampling and privacy noise"
    whole: ClassVar[bool] = True
    assumes: ClassVar[str] = "for rates of 2 % to 50 % of the largest count that is declared"

    def rows(self, schema: Schema, pure: bool) -> CountRows:
        return CountRows(schema, self.column)

    def facts(self, about: CountRows) -> Mapping[str, Any]:
        return {
            "target": f"rate of {self.column}, Poisson counts",
            "covers": f"{self.intervals}; assumes Poisson counts, whose variance is their mean: of others ask for the mean",
            "warnings": ("the interval assumes that the counts are Poisson; for any counts write cf.intervals.mean",),
        }

    def expected(self, rows: CountRows, n: int, noise: float) -> Mapping[str, tuple[float, float]]:
        low, high = (sqrt(part * rows.cap / n + (noise / n) ** 2) for part in (RARE, 0.5))
        return {"rate": (low, high)}

    def _prior(self, text: str) -> str | tuple[float, float]:
        name, numbers = parsed_prior(text, {"uniform": 0, "gamma": 2, "jeffreys": 0}, _DEFAULT, self.name)
        return (numbers[0], numbers[1]) if name == "gamma" else name

    def _sum(self, release: Release, rows: CountRows, n: int) -> PoissonSum:
        return PoissonSum(max(n, 1), float(self.sums(release)[0]), self.law(release), rows.cap)

    def credible(self, release: Release, rows: CountRows, n: int, prior: str | tuple[float, float]) -> Posterior:
        own = self._sum(release, rows, n)
        found = rate_posterior(own, prior)
        said = f"gamma({prior[0]:g}, {prior[1]:g})" if isinstance(prior, tuple) else prior
        return Posterior.read(
            release,
            response=self.column,
            names=(self.column,),
            marginals=(found,),
            bounds=((0.0, float(rows.cap)),),
            joint=lambda generator, size: found.draws(generator, size)[:, None],
            reached=lambda alpha: [(own.law.allows(own.y, 0.0, inf, alpha)[0], False)],
            prior=f"{said} on (0, {rows.cap}]",
            flat=(lambda: [rate_posterior(own)]) if prior != _DEFAULT else None,
            facts=(("Records", f"{n:,} (public)"), ("Noise", own.law.words())),
            **self._beyond(own),
        )

    def _beyond(self, own: PoissonSum) -> dict[str, Any]:
        """Flag and status where the largest rate that the bounds allow is not too large for the release: then no larger one is either."""
        if own.tail(float(own.cap), -1.0) < 0.025:
            return {}
        reason = (
            f"rates beyond the largest count, {own.cap}, are not ruled out: the interval ends where they are not looked at; declare a "
            "larger one, or ask cf.intervals.mean for the mean of the counts as they are declared"
        )
        return {"flags": (BOX_ACTIVE,), "status": "weak", "reason": reason}

    def confidence(self, release: Release, rows: CountRows, n: int) -> ConfidenceIntervals:
        own = self._sum(release, rows, n)

        def limits(alpha: float) -> tuple[list[float], list[float]]:
            low, high = rate_limits(own, alpha)
            return [low], [high]

        return ConfidenceIntervals.read(
            release,
            effects=False,
            response=self.column,
            names=(self.column,),
            limits=limits,
            bounds=((0.0, float(rows.cap)),),
            facts=(("Records", f"{n:,} (public)"), ("Noise", own.law.words())),
            **self._beyond(own),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The rate at which the mean of clipped Poisson counts is the records' mean."""
        from scipy.optimize import brentq

        practice = Practice.checked(frame)
        cap = CountRows(practice.schema, self.column).cap
        mean = float(np.mean(practice.codes[self.column]))

        def off(rate: float) -> float:
            return float(ClippedPoisson(np.array([rate]), cap).moments[0][0]) - mean

        top = 1e3 * cap
        found = 0.0 if mean <= 0 else top if off(top) < 0 else brentq(off, 0.0, top)
        return {self.column: min(float(found), float(cap))}

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Opposite bounds."""
        if isinstance(schema, Schema):
            yield {self.column: 0}, {self.column: schema[self.column].steps - 1}
