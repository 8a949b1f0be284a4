"""Boosted AdaSSP: private gradient boosting of linear models on noisy second moments.

Estimates the line E[y|x] = intercept + x'beta. In scaled units z = (1, x~), t of the public bounds it releases A = sum z z' and its
smallest eigenvalue with Gaussian noise, adds a ridge r as `AdaSSP` does, and then repeats T times, from theta = 0:

    theta += (A~ + r I)^{-1} (sum z clip(t - z'theta, -tau, tau) + noise)

Each round pays for residuals up to tau only, and its error is corrected by the next. Where no residual is clipped and A~ is large the
rounds come to the least squares line; clipped residuals make it a robust one.

Rounds: 10 by default; the source uses 100. The noise of a round shares a third of the budget with the other rounds, and that of the last
ones stays in the line. With features spread evenly (d = 5 and 10, n = 300 to 10^4, mu = 1) 100 rounds had 3.0 to 3.5 times the error of 10,
and 10 had 1.5 to 2.6 times that of `AdaSSP`, whose single solve needs no correction there. Rounds pay where the ridge is large.

Guarantee: mu-GDP, add-remove or substitute, a record being clipped to |z| <= B. A and its eigenvalue take a third of mu^2 each, every round
1/(3T). Sensitivities: B^2 (sqrt(2) B^2 when a record is replaced), B^2, and B tau for a round (2 B tau) at whatever line; 2 + T adaptive
Gaussian mechanisms on exact integers, whose mu^2 add up (Dong, Roth, Su 2022, Theorem 2 and Corollary 2).
Source: Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu 2023 (arXiv 2303.03451).

Interval: no interval. Ridge and clipped residuals bias the line by an unknown amount.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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
from confide.guarantees.validation import is_number, is_whole
from confide.methods.regression.certified.sums import ClippedResidualRows, Part, largest_length
from confide.methods.regression.evidence.normal_equations import line_of
from confide.methods.regression.linear_estimates import LinearEstimates
from confide.methods.regression.reference import least_squares
from confide.schema import Schema
from confide.schema.coded_frame import CodedFrame
from confide.schema.formulas.formula import parse_formula
from confide.sums.coding import corner_pairs
from confide_lab.aggregates.points import point_estimates
from confide_lab.methods.adassp import NoisyParts, bounded, draw_parts

__all__ = ["BoostedAdaSSP"]

Array = NDArray[np.float64]

_THIRD = Fraction(1, 3)
# The source lowers the eigenvalue by 1.96 sds and wants sqrt(p) times as many in A~.
_CAUTION = 1.96
# A coefficient beyond this many half-ranges of the response is useless; the line stops there, so that residuals stay numbers.
_FAR = 1e6
_REASON = "ridge and clipped residuals bias the line by an unknown amount"


@dataclass(frozen=True)
class BoostedAdaSSP(FormulaMethod):
    """Linear regression by boosted noisy moments: a line, no interval.

    formula: "y ~ a + b"; rounds: T, public (10; the source has 100); tau: bound on a residual, in half-ranges of the response; row_bound:
    B, in scaled units, where a row (1, x~) has entries in [-1, 1]; left out it is sqrt(1 + d) and nothing is clipped; term_bounds: public
    bounds of derived terms that have none. One pass over the records for the moments and one for each round.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> plan = BoostedAdaSSP("y ~ x", rounds=3).plan(schema, cf.GDP(1.0))
    >>> plan.guarantee.mu, plan.passes, [f"{float(s.mu_squared):.4f}" for s in cf.core.leaves(plan.event)]
    (1.0, 4, ['0.3333', '0.3333', '0.1111', '0.1111', '0.1111'])
    """

    formula: str
    rounds: int = 10
    tau: float = 1.0
    row_bound: float | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "boosted_adassp"
    family: ClassVar[str] = "regression"
    source: ClassVar[str] = "gradient boosting of AdaSSP (Tang et al. 2023), exact Gaussian accounting of every round"

    def __post_init__(self) -> None:
        if not is_whole(self.rounds, 1, 1000):
            raise PlanError(
                f"rounds must be a whole number from 1 to 1000, got {self.rounds!r}; each one is a pass over the data; 10 is the default"
            )
        if not is_number(self.tau):
            raise PlanError(
                f"tau must be a number above 0, got {self.tau!r}; leave it out for 1 half-range of the response"
            )

    # plan -----------------------------------------------------------------------------------------------------------

    def plan(
        self, schema: Schema, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Moments and eigenvalue, then T equal rounds. Raises `PlanError` for a formula or setting that cannot work."""
        design = self._design(schema)
        allowance = Allowance.of(privacy, self, schema)
        rows = bounded(design, self.row_bound)
        first: dict[str, Statistic] = {kind: Part(rows, kind) for kind in ("features", "eigenvalue")}
        # every round is planned at theta = 0: its bound holds for any line
        score: Statistic = Total(ClippedResidualRows(design, rows.length, float(self.tau)))
        rounds = {_round(k): score for k in range(self.rounds)}
        return Plan.of(
            self,
            schema,
            allowance,
            Composed(
                (
                    *(allowance.spend(name, statistic, _THIRD) for name, statistic in first.items()),
                    *(allowance.spend(name, score, _THIRD / self.rounds) for name in rounds),
                )
            ),
            {**first, **rounds},
            n=n,
            passes=1 + self.rounds,
            constants={"row_bound": rows.length},
            target=f"linear regression of {design.response.name} on {', '.join(design.names)}",
            intervals_for=f"no interval: {_REASON}",
            warnings=parse_formula(self.formula, schema).notes,
        )

    # release --------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy moments, then one pass and one noisy sum for each round; "lines" (T + 1, p) holds theta of every round, "ridge" r."""
        design = self._design(source.schema)
        rows = bounded(design, self.row_bound)
        line = line_of(design)
        scores = ClippedResidualRows(design, rows.length, float(self.tau))
        phi = np.zeros(line.basis.shape[1])
        lines = [line.offset + line.basis @ phi]
        draw_parts(meter, source, plan, ("features", "eigenvalue"))
        parts = NoisyParts.drawn(meter, rows)
        ridge = parts.ridge(_CAUTION, _CAUTION * sqrt(len(parts.gram)))
        inverse = _inverse(parts.gram + ridge * np.eye(len(parts.gram)), line.basis)
        for k in range(self.rounds):
            (total,) = source.aggregate(Total(scores.at(lines[-1])))
            score = meter.draw(_round(k), total).decode() / scores.unit
            step = inverse @ (line.basis.T @ score)
            phi = np.clip(np.nan_to_num(phi + step, nan=0.0, posinf=_FAR, neginf=-_FAR), -_FAR, _FAR)
            lines.append(line.offset + line.basis @ phi)
        return {"lines": np.array(lines), "ridge": np.array([ridge])}

    # infer ----------------------------------------------------------------------------------------------------------

    def infer(self, release: Release, options: ResultOptions | None = None) -> LinearEstimates:
        """The coefficients in the units of the data, without standard errors. A question has nothing to ask: `PlanError`."""
        (options or ResultOptions()).only()
        design = self._design(release.plan.declared)
        parts = NoisyParts.of(release, bounded(design, self.row_bound))
        lines = np.asarray(release.public["lines"], dtype=np.float64)
        return point_estimates(
            self,
            release,
            design,
            lines[-1],
            reason=_REASON,
            facts=(
                *parts.facts(largest_length(design)),
                ("Ridge", f"{float(release.public['ridge'][0]):,.1f}"),
                ("Rounds", f"{self.rounds}, residuals up to {self.tau:g}"),
            ),
            weak=parts.weakness(line_of(design)),
            unseen=parts.unseen(design, release),
            nobs=float(parts.gram[0, 0]),
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line of the clipped response."""
        return least_squares(frame, self._design(CodedFrame.checked(frame).schema))

    def worst_pairs(self, schema: Schema | None = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Corners of the box: |z|^2 = 1 + d and |t| = 1. None without a schema or with derived terms."""
        return () if schema is None else corner_pairs(self._design(schema), schema)


def _round(k: int) -> str:
    return f"round {k + 1}"


def _inverse(matrix: Array, basis: Array) -> Array:
    """(P' matrix P)^{-1}; zeros, so that the line stays at its start, where doubles do not give it."""
    nothing = np.zeros((basis.shape[1],) * 2)
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(basis.T @ matrix @ basis)
        except np.linalg.LinAlgError:
            return nothing
    return np.asarray(inverse) if np.isfinite(inverse).all() else nothing
