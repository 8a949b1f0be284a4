"""Fixed-effects regression: least squares of deviations from each person's own means, which gives each person a fixed effect.

Estimates argmin E sum over a person's rows of (y - ybar - (x - xbar)'theta)^2, each row with the weight of its person's rows. What
differs between persons and stays the same within them, seen or not, moves no slope. y and x are clipped to their public bounds before
means are taken. Persons with one complete row say nothing about it, and columns that never change within a person have no slope.

Guarantee: mu-GDP, add-remove or substitute: the rounds of the least-squares regression (`least_squares/draw`) over rows of deviations.
A person has as many of them as rows count (`methods.regression.within.sums`). No person's own mean or effect is released.

Interval: Student t with a sandwich covariance whose terms are persons: rows of one person may depend on each other in any way;
sampling, privacy noise, unequal variances. Source: Wooldridge 2010, 10.5.4; Arellano 1987; what is drawn, as for the least-squares
regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn, cast

import numpy as np

from confide.core import Allowance, Meter, Plan, Release, ResultOptions, Source
from confide.core.units.privacy_unit import independent_words
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.sample_size_advice import count_text, few_records
from confide.methods.regression.least_squares.method import LineMethod
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.regression.least_squares.rounds import LeastSquaresRounds
from confide.methods.regression.linear_estimates import SharedEstimates, kept, legend
from confide.methods.regression.within.sums import (
    Deviations,
    DeviationsAllowance,
    deviations_of,
    inner_statistic,
    source_of_deviations,
)
from confide.schema import ModelMatrix, Schema, Unit

_LIMITS = ("auto", "none")
_NO_LEVEL = (
    "the regression within {0} has slopes and no intercept, because effects are not released. Differences of two rows of one {0} are "
    "differences of their terms times the slopes (`params`, `t_test`)"
)


@dataclass(frozen=True, eq=False, repr=False)
class WithinEstimates(SharedEstimates):
    """Slopes of a fixed-effects regression.

    There is no intercept, and no prediction: `predict` and `get_prediction`
    raise `NoResult`. `nobs` counts the rows of the persons, and `rsquared` is
    the share of the variance within persons.

    Parameters
    ----------
    person : str, default "person"
        The id column within which deviations are taken.

    Examples
    --------
    >>> import pandas as pd
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)}, unit=cf.Unit("person_id"))
    >>> frame = pd.DataFrame({"person_id": ["a", "a", "b", "b"], "x": [0, 1, 0, 1], "y": [0, 1, 1, 2]})
    >>> fit = cf.within_regression("y ~ x", cf.read(frame, schema), privacy=cf.GDP(1.0), ledger=None)
    >>> fit.person, isinstance(fit, cf.regression.WithinEstimates)
    ('person_id', True)
    """

    person: str = "person"

    def predict(self, frame: Any) -> NoReturn:
        """Raise `NoResult`, because fixed effects are not released.

        Parameters
        ----------
        frame : DataFrame or mapping
            Public rows.

        Raises
        ------
        NoResult
            Always.
        """
        raise NoResult(_NO_LEVEL.format(self.person))

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> NoReturn:
        """Raise `NoResult`, because fixed effects are not released.

        Parameters
        ----------
        frame : DataFrame or mapping
            Public rows.
        alpha : float, default 0.05
            One minus the level.

        Raises
        ------
        NoResult
            Always.
        """
        raise NoResult(_NO_LEVEL.format(self.person))


def _title(design: ModelMatrix, person: str) -> str:
    names = ", ".join(term.name for term in design.terms)
    return f"linear regression of {design.response.name} on {names} within each {person} (fixed effects), least squares"


class _Reading(LeastSquaresReading):
    """The line through deviations, read without its intercept, which is 0 but for noise."""

    def __init__(
        self, release: Release, options: ResultOptions, inner: ModelMatrix, keep: list[int], outer: ModelMatrix
    ) -> None:
        super().__init__(release, options, inner, keep)
        object.__setattr__(self, "outer", outer)

    outer: ModelMatrix
    _compared: ClassVar[bool] = False

    def _levels(self, *, demanding: bool, told: bool = False) -> str:
        # deviations of a level are numbers like any others
        return ""

    @property
    def _asked(self) -> ModelMatrix:
        return self.outer

    def _made(self, *, flags: tuple[str, ...], facts: tuple[tuple[str, str], ...], **more: Any) -> SharedEstimates:
        person = self.outer.schema.protects
        slopes = slice(1, None)
        if more["status"] == "partial":
            hidden = np.isnan(more["estimates"][slopes])
            if hidden.all():
                return self._points("imprecise", self._reasons(told=False))
            if not hidden.any():
                more |= {"status": "valid", "reason": ""}
        for name in ("names", "estimates", "noise_variance", "bias", "df", "sampling_df"):
            own = more.get(name)
            more[name] = own[slopes] if own is not None and not isinstance(own, float) else own
        more["covariance"] = more["covariance"][slopes, slopes]
        joint = more.get("joint")
        if joint is not None:
            more["joint"] = replace(joint, units=joint.units[slopes], records=joint.records[slopes])
        count = self.release["count"]
        named = {"R-squared": "R-squared (within)", "Residual sd": ""}
        facts = tuple((named.get(name, name), value) for name, value in facts if named.get(name, name))
        return WithinEstimates.of(
            self.release,
            response=self.outer.response.name,
            heading=f"fixed effects of {person}",
            target=_title(self.outer, person),
            flags=(*flags, *few_records(count)),
            facts=(("Cov. type", f"clustered by {person}"), (self._counted, count_text(count)), *facts),
            legend=legend(self.outer, self.release.plan.declared)[1:],
            design=self.outer,
            nobs=float(count.decode()[0]),
            person=person,
            **more,
        )

    @property
    def _counted(self) -> str:
        weighted = self.release.plan.rule == "weight"
        return "Rows by weight (noisy)" if weighted else "Rows (noisy)"


@dataclass(frozen=True)
class WithinPath:
    """The way to the regression within the units of a schema. design: of the formula; its intercept is taken by the fixed effects."""

    schema: Schema
    design: ModelMatrix
    limit: str = "auto"

    def __post_init__(self) -> None:
        unit = self.schema.unit
        if not isinstance(unit, Unit):
            raise PlanError(
                f"a fixed-effects regression needs the id column of the persons, and the schema says that one {unit} is protected",
                'write cf.Schema(..., unit=cf.Unit("person_id"))',
            )
        if unit.per is not None:
            raise PlanError(
                f"a fixed-effects regression within each {unit.column} is not for one that counts once in several levels of "
                f"{unit.per}",
                f"write unit=cf.Unit({unit.column!r}), where all rows count by weight",
            )
        if unit.rule == "keep" and unit.rows < 2:
            raise PlanError(
                f"one row of each {unit.column} has no deviation from itself, got rows=1 with rule='keep'",
                f"write unit=cf.Unit({unit.column!r}), where all rows count by weight, or rows=5",
            )
        if not self.design.terms:
            raise PlanError(
                f"{self.design.formula!r} has no term, and a fixed-effects regression has no intercept",
                f"name a column that changes within a {unit.column}",
            )
        if not self.design.intercept:
            raise PlanError(
                f"{self.design.formula!r} is written without an intercept, which the fixed effects take anyway",
                "write it with one",
            )

    @property
    def person(self) -> str:
        """The id column."""
        return self.schema.protects

    @cached_property
    def deviations(self) -> Deviations:
        unit = self.schema.unit
        assert isinstance(unit, Unit)
        return Deviations(self.design, unit.rule != "keep")

    @cached_property
    def _inside(self) -> LeastSquaresRounds:
        inner = self.deviations.inner
        return LeastSquaresRounds(inner.schema, inner, self.limit)

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """The spends of both branches, of statistics of deviations."""
        facts = self._inside.plan(cast(Allowance, DeviationsAllowance(allowance, self.deviations)), n)
        facts["statistics"] = {name: deviations_of(one, self.deviations) for name, one in facts["statistics"].items()}
        facts["notes"] = (*facts.get("notes", ()), "responses are clipped before means are taken")
        facts["target"] = _title(self.design, self.person)
        facts["intervals_for"] = (
            f"slopes of the population's least-squares line of {self.design.response.name}, clipped to its bounds, within each "
            f"{self.person} (deviations from its means); sampling of {self.person} and privacy noise. Unequal residual variances and "
            f"nonlinear means are allowed, {independent_words(self.schema)}"
        )
        return facts

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """Noisy sums of deviations, as the least-squares line draws them of records."""
        own = {name: inner_statistic(one) for name, one in plan.statistics.items()}
        inside = source_of_deviations(source, self.deviations)
        return self._inside.draw(inside, replace(plan, statistics=own), meter)

    def table(self, release: Release, options: ResultOptions) -> SharedEstimates:
        """The table of slopes. A smaller model has point estimates without intervals."""
        inner = self.deviations.inner
        keep = kept(self.design, options)
        if not keep:
            raise PlanError("subset names no slope, and a fixed-effects regression has no intercept", "name a term")
        return _Reading(release, options, inner, keep, self.design).table()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """`PlanError`: simulated records have no ids, and so no persons to be within."""
        raise PlanError("simulated records have no ids, so there are no persons within whom slopes could be fitted")

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """None: what moves most is a person with several rows, which the audit puts together itself."""
        return ()


@dataclass(frozen=True)
class Within(LineMethod):
    """Linear regression with a fixed effect of each person.

    The estimand is the least-squares slopes in the population, of deviations
    from each person's own means. Columns are clipped to their bounds first.

    Parameters
    ----------
    formula : str
        R-style formula of terms that change within a person; others are not
        answered. Fixed effects of periods are a categorical column of the
        formula, as in ``"y ~ a + year"``.

    See Also
    --------
    confide.regression.WithinEstimates : The result.
    confide.linear_regression : Without fixed effects.

    Notes
    -----
    The schema names the person: ``cf.Unit("person_id")``, where all rows count
    by weight, or ``cf.Unit("person_id", rows=5, rule="keep")``.

    Guarantee: mu-GDP under add-remove or substitution, that of the
    least-squares rounds, over rows of deviations. No person's mean or effect
    is released.

    References
    ----------
    Wooldridge (2010), Econometric analysis of cross section and panel data,
    10.5.
    Arellano (1987), Computing robust standard errors for within-groups
    estimators, Oxford Bulletin of Economics and Statistics 49.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)}, unit=cf.Unit("person_id"))
    >>> plan = Within("y ~ x").plan(schema, cf.GDP(1.0))
    >>> plan.target
    'linear regression of y on x within each person_id (fixed effects), least squares; each person_id counts once, by all its rows'
    """

    formula: str
    limit: str = "auto"
    term_bounds: Mapping[str, tuple[float, float]] | None = None

    name: ClassVar[str] = "within"
    source: ClassVar[str] = (
        "within estimator (Wooldridge 2010, 10.5) by the rounds of the least-squares line, clustered sandwich (Arellano 1987)"
    )
    intervals: ClassVar[str] = (
        "the population's least-squares line within units; sampling of units, privacy noise, unequal variances"
    )
    units: ClassVar[tuple[str, ...]] = ("keep", "weight")
    unit_meat: ClassVar[bool] = True
    least_rows: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.limit not in _LIMITS:
            raise PlanError(
                f"limit must be {' or '.join(map(repr, _LIMITS))}, got {self.limit!r}",
                "write cf.regression.Within(formula, limit='auto')",
            )

    def _way(self, schema: Schema, design: ModelMatrix, label: str) -> WithinPath:
        return WithinPath(schema, design, self.limit)
