"""The line of rounds with limited residuals: a Huber-type line, which differs from least squares where errors are skewed or means curved.

A first noisy fit pays for the range of the response and the box of the features; every further round measures residuals from the line so
far, clipped at their own scale, in coordinates where the noisy Gram matrix is the identity (`residual_rounds`), so that its
noise is small beside them. With `inference=False` the line is shrunken, and for few records that of a noisy gradient descent.

Guarantee: mu-GDP, add-remove or substitute. Count, ranges, leverages, each round's moments and the meat are Gaussian mechanisms on exact
integers, adaptively composed; with a response clipped at one unit w |u|^2 <= R2 and w r^2 <= 1 for any whitening T, line theta and scale
that came out before, so that a round costs mu_A^2 + mu_b^2 + mu_q^2, and under substitute what `aggregates.blocks` derives. Sources:
Dwork, Talwar, Thakurta, Zhang 2014; Dong, Roth, Su 2022, Theorem 2 and Corollary 2.

Interval: Student t with a sandwich covariance that contains sampling and privacy noise; unequal residual variances allowed. It covers the
line of the released leverage weights whose residuals count at most at the released scale. Where the released Gram matrix is below its
noise: status "imprecise" and a bias-aware interval under a declared bound on the slopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from confide.core import Allowance, Meter, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import coefficient_names, line_of, to_units
from confide.methods.regression.evidence.sample_size_advice import count_text, few_records
from confide.methods.regression.linear_estimates import kept, legend
from confide.noise import keyed_generator
from confide.schema import Categorical, ModelMatrix, Schema
from confide_lab.methods.huber.released_rounds import last_round
from confide_lab.methods.huber.residual_rounds import draw_line, plan_line
from confide_lab.methods.huber.results import HuberEstimates
from confide_lab.methods.huber.round_lines import RoundLines
from confide_lab.methods.huber.round_reading import TARGET_WORDS, RoundReading, box_of, slope_bound

__all__ = ["HuberPath"]


@dataclass(frozen=True)
class HuberPath:
    """The rounds as a way to a line: with intervals for the robust line, or a shrunken one for prediction.

    label: name and version of the method; slope_bound, clipping_check: as in `HuberLine`.
    """

    label: str
    schema: Schema
    design: ModelMatrix
    inference: bool = True
    slope_bound: float | None = None
    clipping_check: bool = True

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of both branches."""
        event, statistics = plan_line(
            self.design, allowance, "inference" if self.inference else "prediction", clipping=self.clipping_check
        )
        return {
            "event": event,
            "statistics": statistics,
            # the longest branch: first sums, three rounds, leverages, meat; or first sums and the steps of a descent
            "passes": 6 if self.inference else 31,
            "constants": {"slope_bound": slope_bound(self.slope_bound, self.design, private=True) or 0.0}
            if self.inference
            else {},
            "target": self._target(self.design.names),
            "intervals_for": self._intervals_for(),
        }

    def _target(self, names: Iterable[str]) -> str:
        line = TARGET_WORDS if self.inference else "for prediction"
        return f"linear regression of {self.design.response.name} on {', '.join(names)}, {line}"

    def _intervals_for(self) -> str:
        if not self.inference:
            return "nothing: a line for prediction, without intervals"
        return (
            f"coefficients of a Huber-type line for {self.design.response.name} clipped to its declared bounds, not of the least-squares "
            "line: records count with the released leverage weights, and residuals beyond the released scale count at that scale; "
            "sampling of records and privacy noise, unequal residual variances allowed, independent records"
        )

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the noisy count chooses the branch."""
        return draw_line(self.design, meter, source, plan)

    def table(self, release: Release, options: ResultOptions) -> HuberEstimates:
        """The table; a subset's covariance assumes equal residual variances, as the released meat belongs to the full model.

        The end of a descent has no subsets.
        """
        keep = kept(self.design, options)
        if "meat" not in release.statistics:
            return self._points(release, options, keep)
        return RoundReading(self.label, self.slope_bound, release, options, self.design, keep).table()

    def _points(self, release: Release, options: ResultOptions, keep: list[int]) -> HuberEstimates:
        """The table of a line for prediction: the shrunken line of the last round, or where a descent ended."""
        design, box = self.design, box_of(release)
        whole = line_of(design, keep, box)
        matrix, shift = to_units(design, keep, box)
        descent = "line" in release.public
        if descent:
            if len(keep) < len(design.terms):
                raise PlanError(
                    "this line for prediction came from a descent and has no subsets; release the smaller formula"
                )
            theta = np.asarray(release.public["line"], dtype=np.float64)
            # the nearest line that the formula allows; a free one is itself
            theta = whole.offset + whole.basis @ np.linalg.lstsq(whole.basis, theta - whole.offset, rcond=None)[0]
        else:
            done = last_round(design, release.statistics, release.public, str(release.charged.relation))
            generator = keyed_generator(release.drawn_sha256, "points")
            delta, _ = RoundLines.of(done, whole.offset, whole.basis).shrunken(done, generator)
            theta = done.frame.line + done.frame.rho * done.frame.matrix @ delta
        names = coefficient_names(design, keep)
        count = release["count"]
        response = design.response
        return HuberEstimates.of(
            release,
            response=response.name,
            names=names,
            estimates=matrix @ theta + shift,
            covariance=np.full((len(names),) * 2, nan),
            df=nan,
            noise_variance=np.full(len(names), nan),
            flags=("no_interval", *few_records(count)),
            target=self._target(names),
            facts=(
                ("Line", "noisy gradient descent: few records" if descent else "shrunken, three rounds"),
                ("Count (noisy)", count_text(count)),
            ),
            legend=legend(design, release.plan.declared)[1:],
            design=design,
            nobs=float(count.decode()[0]),
            within=(float(response.low), float(response.high)),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """None: what counts as a far residual is chosen by the release."""
        raise PlanError(
            "the robust line is that of the scale and the weights that a release chose, so it has no non-private reference; "
            "write LeastSquares(formula) for the least-squares line"
        )

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records whose first round is largest, |z|^2 = R2 and |t| = 1: alike but for the end of the response, and mirrored.

        The former are the worst pair under substitute, where the products of features and response change sign. None with derived terms.
        """
        names = [term.plain for term in (*self.design.terms, self.design.response)]
        if None in names:
            return
        reach = sqrt(1 / 3)  # of the way from the middle to the end: |z|^2 = 1 + d/3
        above: dict[str, Any] = {}
        below: dict[str, Any] = {}
        for name in names[:-1]:
            column = self.schema[str(name)]
            assert not isinstance(column, Categorical)
            middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
            above[str(name)], below[str(name)] = middle + reach * half, middle - reach * half
        response = self.schema[str(names[-1])]
        assert not isinstance(response, Categorical)
        low, high = {str(names[-1]): response.low}, {str(names[-1]): response.high}
        yield {**above, **high}, {**above, **low}
        yield {**above, **high}, {**below, **low}
