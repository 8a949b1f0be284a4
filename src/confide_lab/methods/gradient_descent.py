"""Noisy gradient descent: a line by full-batch steps along sums of clipped scores.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds it starts at theta = 0 and steps
theta += rate g / max(n~, 3 p), with g the noisy sum of the records' scores z e min(1, clip/(|e||z|)), e = t - z'theta, n~ a noisy count
of the records and p = d + 1. Every setting is public; none is chosen on the records. It needs few records, and where there are enough
the methods that release moments are better.

Presets (iterations T, rate, clip):
    "fixed"   30, 1/(1 + d/3), sqrt(1 + d/3)/2: 1 + d/3 is the trace of z z' for features spread evenly in their box
    "brown"   5, 1/3, 5 sqrt(p): Brown et al. 2024, where next to nothing is clipped; features of them have variance 1, here at most 1
    "lin"     20, 0.5, 1: one point of the grid that Lin, Slavkovic, Bhoomireddy 2025 search, here in scaled units and without a search

Guarantee: mu-GDP, add-remove or substitute. The count takes 1 % of mu^2 (it moves by 1 either way), each step 99 %/T; a step moves by
at most clip when a record is added or removed, by 2 clip when one is replaced. Steps follow from earlier noisy sums: adaptive Gaussian
mechanisms, whose mu^2 add up (Dong, Roth, Su 2022, Theorem 2 and Corollary 2). Sources: Bassily, Smith, Thakurta 2014; Abadi et al.
2016; Brown, Dvijotham, Evans, Liu, Smith, Thakurta 2024 (arXiv 2402.13531).

Interval: no interval. The noise of a clipped descent has no known law at the line where it stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.core import (
    Allowance,
    Composed,
    FormulaMethod,
    Meter,
    Plan,
    Release,
    ResultOptions,
    Source,
    Statistic,
    Total,
)
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_finite, is_whole
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.methods.regression.sums.linear_rows import Present
from confide.schema import ModelMatrix, Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.points import point_estimates
from confide_lab.aggregates.scores import default_clip, descend, plan_descent
from confide_lab.methods.huber.round_lines import restriction

__all__ = ["GradientDescent"]

Array = NDArray[np.float64]

_COUNT_SHARE = Fraction(1, 100)
_PRESETS = ("fixed", "brown", "lin")
_FEW = "the noisy number of records is below three for each coefficient; ask for fewer terms, more records or a larger budget"


@dataclass(frozen=True)
class GradientDescent(FormulaMethod):
    """Linear regression by noisy gradient descent with public settings: a line, no interval.

    formula: "y ~ a + b"; preset: "fixed" (default), "brown" or "lin"; iterations, rate, clip: each replaces the preset's number (rate in
    units of 1/n, clip in half-ranges of the response); term_bounds: public bounds of derived terms that have none. One pass over the
    records for the count and one for each iteration. Settings that were chosen by looking at the records void the guarantee.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = GradientDescent("y ~ x", iterations=5).plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.passes
    (1.0, 6)
    """

    formula: str
    preset: str = "fixed"
    iterations: int | None = None
    rate: float | None = None
    clip: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "gradient_descent"
    family: ClassVar[str] = "regression"
    task: ClassVar[str] = "linear_regression"
    source: ClassVar[str] = (
        "noisy full-batch gradient descent on clipped scores (Bassily et al. 2014; Brown et al. 2024)"
    )

    def __post_init__(self) -> None:
        if self.preset not in _PRESETS:
            raise PlanError(
                f'preset must be one of {", ".join(_PRESETS)}, got {self.preset!r}; write GradientDescent(formula) for "fixed"'
            )
        if self.iterations is not None and not is_whole(self.iterations, 1, 1000):
            raise PlanError(
                f"iterations must be a whole number from 1 to 1000, got {self.iterations!r}; leave it out for the preset's"
            )
        for name in ("rate", "clip"):
            value = getattr(self, name)
            if value is not None and not (is_finite(value) and value > 0):
                raise PlanError(f"{name} must be a finite number above 0, got {value!r}; leave it out for the preset's")

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The count, then `iterations` equal steps. Raises `PlanError` for a formula or setting that cannot work."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        iterations, rate, clip = self._settings(design)
        count: Statistic = Total(Present(design), nonnegative=True)
        steps, statistics = plan_descent(design, allowance, 1 - _COUNT_SHARE, iterations, clip=clip)
        return Plan.of(
            self,
            schema,
            allowance,
            Composed((allowance.spend("count", count, _COUNT_SHARE), *steps.parts)),
            {"count": count, **statistics},
            n=n,
            passes=1 + iterations,
            constants={"iterations": iterations, "rate": rate, "clip": clip},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for="no interval: the noise of a clipped descent has no known law at the line where it stops",
            warnings=parse_formula(self.formula, schema).notes,
        )

    def _settings(self, design: ModelMatrix) -> tuple[int, float, float]:
        """(iterations, rate, clip): the preset's, replaced by what was given."""
        d = len(design.terms)
        preset = {
            "fixed": (30, 1 / (1 + d / 3), default_clip(design)),
            "brown": (5, 1 / 3, 5 * sqrt(d + 1)),
            "lin": (20, 0.5, 1.0),
        }[self.preset]
        iterations = preset[0] if self.iterations is None else self.iterations
        rate = preset[1] if self.rate is None else float(self.rate)
        return iterations, rate, preset[2] if self.clip is None else float(self.clip)

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy count, then one pass and one noisy sum for each step."""
        design = self._design(source.schema)
        iterations, rate, clip = self._settings(design)
        start, project = restriction(design)
        (present,) = source.aggregate(plan.statistic("count"))
        count = float(meter.draw("count", present).decode()[0])
        theta = descend(
            meter,
            source,
            plan,
            design,
            count=count,
            iterations=iterations,
            rate=rate,
            clip=clip,
            start=start,
            project=project,
        )
        return {"theta": theta}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        noisy = release["count"]
        count, half = float(noisy.decode()[0]), stats.norm.ppf(0.975) * sqrt(noisy.variance)
        return point_estimates(
            self,
            release,
            design,
            np.asarray(release.public["theta"], dtype=np.float64),
            reason="the noise of a clipped descent has no known law at the line where it stops",
            facts=(
                ("Records (noisy)", f"{count:,.0f} ± {half:,.0f}"),
                ("Descent", "{} steps, rate {:.3g}, clip {:.3g}".format(*self._settings(design))),
            ),
            weak="" if count >= 3 * (len(design.terms) + 1) else _FEW,
            nobs=count,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records in corners, where scores have the full length of the clip; with opposite responses they are apart by twice that.

        None with derived or categorical terms.
        """
        return () if schema is None else corner_pairs(self._design(schema), schema)
