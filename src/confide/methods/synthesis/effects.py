"""Effects of a treatment from the release behind a synthetic table: differences between the arms of a trial, with tests and intervals.

An effect is a difference of two released coefficients, or one of them where the control is the reference level. Its
covariance is theirs: sampling of records and privacy noise. The rows of the file are not used, because they hold neither.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._helpers import near_match
from confide.errors import PlanError
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.results import Estimates
from confide.results.inference import simulated_null
from confide.results.inference.contrasts import combine
from confide.results.pages.content import Shown
from confide.results.pages.table import pvalue
from confide.schema import Categorical, Integer
from confide.schema.formulas.terms import Indicator, Term, factor_name

# Said of the line alone, which the effects are read from.
_OF_LINE = ("Compared with", "R-squared")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TreatmentEffects(Estimates):
    """Differences between the arms of a trial and its control.

    A row is the mean response of an arm less that of the control, at the same
    values of the other terms of the formula. The table reads like that of a
    regression: `params`, `bse`, `pvalues`, `conf_int`, and `wald_test`.

    Parameters
    ----------
    treatment : str
        Column of the arms.
    control : str
        Arm that the others are compared with.
    adjusted : tuple of str
        Further terms of the formula.

    Examples
    --------
    >>> import confide as cf, tempfile
    >>> schema = cf.Schema({"arm": cf.Categorical(["control", "drug"]), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = cf.synthesize(data, "y ~ arm", privacy=cf.GDP(1.0), ledger=None,
    ...                          path=f"{folder}/trial.csv")
    ...     found = cf.synthesis.treatment_effects(f"{folder}/trial.csv", "arm")
    >>> found.control, found.names
    ('control', ('drug - control',))
    """

    treatment: str
    control: str
    adjusted: tuple[str, ...] = ()

    family: ClassVar[str] = "treatment effects"
    rows_are: ClassVar[str] = "comparison"
    rows_called: ClassVar[str] = "comparisons"
    inference: ClassVar[str] = "population"

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        terms = f", adjusted for {', '.join(self.adjusted)}" if self.adjusted else ""
        return f"Effects of {self.treatment} on {self.response}{terms}"

    def line(self, alpha: float) -> str:
        """With several arms, the test of all of them at once."""
        if self.status != "valid" or len(self.names) < 2:
            return ""
        tested = self.wald_test(np.eye(len(self.names)))
        known = "" if tested.df_denom == inf else f", {tested.df_denom:.1f}"
        said = f"F({tested.df_num}{known}) = {tested.statistic:.4g}, p {_compared(pvalue(tested.pvalue))}"
        return f"Test that no arm differs from {self.control}: {said}; p-values of the rows are of each arm separately"

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON beyond the table."""
        own = {"treatment": self.treatment, "control": self.control, "adjusted": list(self.adjusted)}
        return {**super().more(alpha), **own}


def treatment_effects_of(fit: SharedEstimates, treatment: str, control: str | None) -> TreatmentEffects:
    """The effects, from the table of a release; `PlanError` where the formula holds no such differences."""
    arms = _arms(fit, treatment)
    first = next((arm for arm, name in arms.items() if name is None), next(iter(arms)))
    chosen = first if control is None else str(control)
    if chosen not in arms:
        raise PlanError(
            f"{treatment!r} has no arm {chosen!r}{near_match(chosen, tuple(arms))}; its arms are: {', '.join(arms)}",
            f"leave control out for {first!r}",
        )
    others = [arm for arm in arms if arm != chosen]
    rows = np.array([_weights(fit, arms[arm]) - _weights(fit, arms[chosen]) for arm in others])
    made = combine(fit, rows, names=tuple(f"{arm} - {chosen}" for arm in others))
    told = np.isfinite(np.diag(made.covariance))
    status = fit.status
    if fit.status == "partial":
        status = "valid" if told.all() else "partial" if told.any() else "imprecise"
    inherited = {one.name: getattr(fit, one.name) for one in fields(Shown)} | {
        "status": status,
        "reason": "" if status == "valid" else fit.reason,
        "heading": "",
        "target": f"differences of mean {fit.response} between arms of {treatment}, in {fit.target}",
        "facts": _kept(fit.facts),
        "legend": _kept(fit.legend),
    }
    return TreatmentEffects(
        **inherited,
        names=made.names,
        estimates=made.effect,
        covariance=made.covariance,
        df=made.df,
        noise_variance=_noise_variance(fit, rows, made.covariance),
        joint=made.joint,
        bias=made.bias,
        sampling_df=None if fit.sampling_df is None else simulated_null.fewest(rows, fit.sampling_df),
        treatment=treatment,
        control=chosen,
        adjusted=tuple(dict.fromkeys(factor_name(term) for term in _terms(fit) if treatment not in term.columns)),
    )


def _compared(text: str) -> str:
    """A printed p-value after its sign.

    >>> _compared("0.031"), _compared("<0.001")
    ('= 0.031', '< 0.001')
    """
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def _terms(fit: SharedEstimates) -> list[Term]:
    """The terms of the formula that was asked for."""
    assert fit.design is not None
    return [term for term in fit.design.terms if term.name in fit.names]


def _arms(fit: SharedEstimates, treatment: str) -> dict[str, str | None]:
    """Arm -> its coefficient, None for the one that has none."""
    assert fit.design is not None
    terms, column = _terms(fit), fit.design.schema[treatment] if treatment in fit.design.schema.names else None
    own = [term for term in terms if treatment in term.columns]
    if not own or column is None:
        kinds = tuple(dict.fromkeys(factor_name(term) for term in terms))
        raise PlanError(
            f"the formula has no term {treatment!r}{near_match(treatment, kinds)}; it has: {', '.join(kinds) or 'none'}",
            "name the column of the arms, or make a table whose formula has it",
        )
    mixed = next((term for term in own if len(term.parts) > 1), None)
    if mixed is not None:
        raise PlanError(
            f"the effect of {treatment!r} is not one number, because the formula has the product {factor_name(mixed)!r}",
            f'write cf.synthesis.refit(path).adjusted_predictions(by="{treatment}", at={{...}}).pairs() with values of the others',
        )
    if isinstance(column, Categorical):
        names = {part.position: term.name for term in own if isinstance(part := term.parts[0], Indicator)}
        return {str(level): names.get(place) for place, level in enumerate(column.levels)}
    if isinstance(column, Integer) and column.high - column.low == 1 and [term.plain for term in own] == [treatment]:
        return {f"{column.low:g}": None, f"{column.high:g}": own[0].name}
    raise PlanError(
        f"{treatment!r} has no arms, because it is neither a categorical column nor an integer column of two values",
        f"its slope is cf.synthesis.refit(path).params[{own[0].name!r}]",
    )


def _weights(fit: SharedEstimates, name: str | None) -> Array:
    """1 at a coefficient and 0 elsewhere; zeros for the arm that has none."""
    return np.array([float(own == name) for own in fit.names])


def _noise_variance(fit: SharedEstimates, rows: Array, covariance: Array) -> Array:
    """Noise part of each variance: those of the coefficients, correlated as the noise is, or without its law the most that it can be."""
    own = fit.noise_variance
    if fit.joint is None:
        noise = simulated_null.weighted(np.abs(rows), np.sqrt(own)) ** 2
    else:
        drawn = fit.joint.units @ fit.joint.noise @ fit.joint.units.T
        scale = np.sqrt(own / np.diag(drawn))
        noise = np.diag(simulated_null.spread(rows, drawn * np.outer(scale, scale)))
    return np.asarray(np.clip(noise, 0.0, np.diag(covariance)))


def _kept(lines: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(line for line in lines if line[0] not in _OF_LINE)
