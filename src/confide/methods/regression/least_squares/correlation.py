"""The correlation of two columns: the signed R of the least-squares regression of one on the other, and the test of its slope.

A correlation is zero where the slope is. So the test is the slope's, Student's t of a sandwich (`least_squares`), from the same
released sums. The interval is that of R (`explained`), on the scale of the arc tangent. Sampling enters by the released squares of
influences, so that no distribution of the columns is assumed. The noise of the coefficients and of the residuals enters on the same
scale. It covers the correlation of the columns clipped to their bounds.

Guarantee: mu-GDP, add-remove or substitute: that of the least-squares rounds (`draw`). Sources: Fisher 1915 for the scale; the
influence of a correlation as in Devlin, Gnanadesikan, Kettenring 1975.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, Meter, Plan, Release, ResultOptions, Source
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.least_squares.draw import SLOPE
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.regression.least_squares.rounds import LeastSquaresRounds
from confide.results.hypothesis_tests import HypothesisTests
from confide.results.inference import simulated_null
from confide.schema import CodedFrame, ModelMatrix, Schema
from confide.schema.formulas.design import checked_bounds
from confide.schema.formulas.names import parted, sides
from confide.sums.cells.moments import Measure, practice_places
from confide.sums.coding import ends
from confide.sums.columns import columns_of
from confide.sums.ranges import RangedMethod


@dataclass(frozen=True)
class _About:
    """The two columns, and the way to the line of the second on the first."""

    first: Measure
    second: Measure
    way: LeastSquaresRounds

    @property
    def columns(self) -> tuple[Measure, Measure]:
        return self.first, self.second

    @property
    def name(self) -> str:
        """Of the test."""
        return f"r({self.first.name}, {self.second.name})"


@dataclass(frozen=True)
class Correlation(RangedMethod):
    """Pearson's correlation of two columns, with a test and an interval.

    The estimand is the correlation in the population of the two columns,
    clipped to their declared bounds.

    Parameters
    ----------
    formula : str
        Two numeric columns or derived terms, such as ``"x + y"``.

    See Also
    --------
    confide.tests.HypothesisTests : The result.

    Notes
    -----
    Guarantee: mu-GDP under add-remove or substitution, that of the
    least-squares rounds from whose sums the correlation follows.

    References
    ----------
    Fisher (1915), Frequency distribution of the values of the correlation
    coefficient, Biometrika 10.
    Devlin, Gnanadesikan and Kettenring (1975), Robust estimation and outlier
    detection with correlation coefficients, Biometrika 62.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 10), "y": cf.Numeric(0, 10)})
    >>> release = cf.release(Correlation("x + y"), cf.read(schema.sample(2_000, seed=1), schema), cf.GDP(1.0), ledger=None)
    >>> list(cf.infer(release).to_frame().columns)
    ['estimate', 'statistic', 'df', 'p_value', 'ci_low', 'ci_high']
    """

    formula: str
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "correlation"
    example: ClassVar[str] = '"x + y"'
    family: ClassVar[str] = "tests"
    source: ClassVar[str] = "the least-squares line's rounds, and its R with the influence of records on it"
    intervals: ClassVar[str] = (
        "correlation of the population's columns, clipped to their bounds; sampling and privacy noise"
    )

    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    #: The part of mu^2 behind the slope, for a power.
    of_slope: ClassVar[float] = SLOPE

    def summed(self, schema: Schema) -> tuple[str, ...]:
        return columns_of(*self.about(schema).columns)

    def about(self, schema: Any) -> _About:
        whole = Schema.of(schema)
        parts = [part for part in parted(self.formula, "+") if part] if isinstance(self.formula, str) else []
        if len(parts) != 2 or len(sides(self.formula)) > 1:
            raise PlanError(f"a correlation is of two columns, got {self.formula!r}", "write 'x + y'")
        first, second = (Measure.of(part, whole, formula=self.formula, term_bounds=self.term_bounds) for part in parts)
        if first.name == second.name:
            raise PlanError(f"the correlation of {first.name!r} with itself is 1", "write two columns, 'x + y'")
        bounds = tuple(sorted(checked_bounds(self.term_bounds).items()))
        design = ModelMatrix(self.formula, whole, second.term, (first.term,), True, bounds)
        to_units(design, [])  # refuses bounds in whose units no variance can be computed
        return _About(first, second, LeastSquaresRounds(whole, design))

    def facts(self, about: _About) -> Mapping[str, Any]:
        return {
            "target": f"correlation of {about.first.name} and {about.second.name}",
            "intervals_for": self.intervals,
            "warnings": (),
        }

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends of the line, and the guarantee."""
        about, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        facts = about.way.plan(allowance, n)
        event, statistics = facts.pop("event"), facts.pop("statistics")
        return Plan.of(self, schema, allowance, event, statistics, n=n, **{**facts, **self.facts(about)})

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums in the order of the plan; the estimated number of records chooses the branch."""
        return self.about(source.schema).way.draw(source, plan, meter)

    def table(self, release: Release, about: _About, options: ResultOptions) -> HypothesisTests:
        reading = LeastSquaresReading(release, options, about.way.design, [0])
        line = reading.table()
        common: dict[str, Any] = {
            "response": self.formula,
            "names": (about.name,),
            "statistic": "t",
            "null": "Student's t of the slope",
        }
        slope = float(line.estimates[1])
        told = line.status in ("valid", "partial") and np.isfinite(line.covariance[1, 1])
        explained = reading.explained if told else None
        if explained is None or explained.r is None:
            return HypothesisTests.of(
                release,
                status="imprecise",
                reason=line.reason or f"too few records have one of the two values of {about.first.name}",
                statistics=[nan],
                df=[nan],
                pvalues=[nan],
                estimates=np.array([nan]),
                limits=lambda alpha: (np.array([-1.0]), np.array([1.0])),
                **common,
            )
        own, sign = explained.r, -1.0 if slope < 0 else 1.0
        alone = replace(own, of_line=0.0, of_rss=0.0, lost=0.0).interval(float(simulated_null.quantile(0.025, np.inf)))
        df = float(np.atleast_1d(line.df)[-1])

        def limits(alpha: float) -> tuple[Array, Array]:
            low, high = sorted(sign * end for end in own.interval(float(simulated_null.quantile(alpha / 2, df))))
            return np.array([low]), np.array([high])

        return HypothesisTests.of(
            release,
            intervals_for=line.intervals_for,
            statistics=[float(line.tvalues.iloc[1])],
            df=[df],
            pvalues=[float(line.pvalues.iloc[1])],
            estimates=np.array([sign * own.r]),
            limits=limits,
            alone=np.array([alone[1] - alone[0]]),
            **common,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The correlation without privacy, of simulated records."""
        practice = CodedFrame.checked(frame)
        about = self.about(practice.schema)
        r = float(np.atleast_2d(np.corrcoef(practice_places(about.columns, practice).T))[0, 1])
        return {about.name: r}

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Corners of the bounds: opposite ones, and neighbors."""
        if schema is None:
            return ()
        names = columns_of(*self.about(schema).columns)
        low, high = ends(schema, names)
        return (low, high), (low, {**low, names[-1]: high[names[-1]]})
