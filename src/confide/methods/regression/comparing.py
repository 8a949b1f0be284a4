"""Nested models side by side, from one release: an F test that counts the noise, and F, AIC and BIC as the records have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Release
from confide.core.method import Result
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.nested_models import CRITERIA, Gap
from confide.methods.regression.linear_estimates import SharedEstimates
from confide.results.base import BaseResult
from confide.results.pages.content import Column
from confide.results.pages.table import DASH
from confide.schema.formulas.names import level_name
from confide.schema.formulas.terms import factor_name

#: The columns that a model leaves out: one name, or several.
LeftOut = str | Sequence[str]

_ENDS = ("", "_low", "_high")
_FOR = (
    "the linear regression in the population. The test counts sampling of records and privacy noise. F, AIC and BIC describe these "
    "records, with values beyond the bounds or ranges at their ends, and their intervals count privacy noise alone"
)
_ABOVE = (
    "p is of test F, which counts privacy noise; F, AIC and BIC are of these records. "
    "AIC and BIC are the smaller model's less the full model's: above 0 the full model is better."
)
_NOTES = (
    (
        "Choice",
        "intervals of a model that was chosen here do not count the choice; p-values are of each model separately",
    ),
)
_HIDDEN = "noise hides the residual sum of squares, and with it F, AIC and BIC; take more records or a larger budget. The test holds"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModelComparison(BaseResult):
    """Smaller models against the full one, a row for each.

    Parameters
    ----------
    names : tuple of str
        What each model leaves out.
    statistics, df_num, df_denom, pvalues : array of float
        F test of each smaller model: Wald's statistic with the privacy noise in
        its covariance, its degrees of freedom, its p-value.
    gaps : tuple of Gap
        What F, AIC and BIC of each smaller model are read from.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "z": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> fit = cf.linear_regression("y ~ x + z", data, privacy=cf.GDP(1.0), ledger=None)
    >>> isinstance(cf.regression.compare_models(fit, ["z"]), ModelComparison)
    True
    """

    names: tuple[str, ...]
    statistics: Array
    df_num: Array
    df_denom: Array
    pvalues: Array
    gaps: tuple[Gap, ...]

    family: ClassVar[str] = "comparison of models"
    rows_are: ClassVar[str] = "without"
    rows_called: ClassVar[str] = "smaller models"
    inference: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Smaller models of {self.response} against {self.heading}"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """Name, test, and each criterion with the standard deviation of its noise."""
        return (
            Column("term", self.names, "name", head="without"),
            Column("statistic", self.statistics, "statistic"),
            Column("df_num", self.df_num, "number"),
            Column("df", self.df_denom, "number"),
            Column("p_value", self.pvalues, "p"),
            *(Column(name, values, "number") for name, values in self._criteria(alpha).items()),
        )

    def printed(self, alpha: float) -> tuple[Column, ...]:
        """The test's F with its p-value, then F of the records, AIC and BIC with the intervals that noise leaves them."""
        found = self._criteria(alpha)
        return (
            Column("term", self.names, "name", head="without"),
            Column("statistic", [_three(one) for one in self.statistics], "text", head="test F"),
            Column("p_value", self.pvalues, "p"),
            Column("f", [DASH if np.isnan(one) else _three(one) for one in found["f"]], "text", head="F"),
            *(
                Column(
                    own,
                    [_beside(*row) for row in zip(*(found[f"{own}{end}"] for end in _ENDS), strict=True)],
                    "text",
                    head=head,
                )
                for own, head in (("aic", "AIC"), ("bic", "BIC"))
            ),
        )

    def _criteria(self, alpha: float) -> dict[str, Array]:
        """Each criterion, the standard deviation of its noise, and its interval; NaN where noise hides the residuals."""
        found: dict[str, Array] = {}
        ends = ("", "_noise_sd", "_low", "_high")
        for own in CRITERIA:
            rows = [
                (gap.value(own), gap.noise_sd(own), *gap.interval(own, alpha)) if gap.told else (nan,) * 4
                for gap in self.gaps
            ]
            found |= {f"{own}{end}": np.array([row[k] for row in rows]) for k, end in enumerate(ends)}
        return found

    def line(self, alpha: float) -> str:
        """How F, AIC and BIC are read: the sentence below the rows, as every result has one."""
        return _ABOVE

    def notes(self) -> tuple[tuple[str, str], ...]:
        """How to read the columns."""
        hidden = () if all(gap.told for gap in self.gaps) else (("Hidden", _HIDDEN),)
        return (*_NOTES, *hidden)


def _three(value: float) -> str:
    """A number to three figures, without an exponent.

    >>> _three(0.1384), _three(6243.2)
    ('0.138', '6,240')
    """
    return f"{float(f'{value:.3g}'):,.12g}"


def _beside(value: float, low: float, high: float) -> str:
    """A number with its interval, to the second figure of the interval's width.

    >>> _beside(12.345, 10.1, 15.9), _beside(nan, nan, nan)
    ('12.3 (10.1 to 15.9)', 'n/a')
    """
    if not np.isfinite([value, low, high]).all():
        return DASH
    digits = int(np.clip(1 - np.floor(np.log10(max(high - low, 1e-9) / 1.5)), 0, 3))
    return f"{value:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def compare_models(fit: Result, without: LeftOut | Sequence[LeftOut] | Mapping[str, LeftOut]) -> ModelComparison:
    """Compare smaller models with the full one, from one release.

    Estimates what an analyst of the records reads from nested least-squares
    lines: F, and the differences of AIC and BIC, each with the privacy noise
    that is in it. The F test counts that noise. Nothing is charged, because all
    follows from the released sums.

    Parameters
    ----------
    fit : Result
        Result of `LeastSquares`, `SSP` or `cf.linear_regression`, with one
        response. `confide.infer` makes one of a release that is kept.
    without : str, sequence or mapping
        Terms that each smaller model leaves out: one name, or a list with one
        entry for each model, a name or a list of names. A mapping names the
        models. A factor's name leaves out all of its levels; one level may be
        named as the table prints it, "female: yes", or as "female[T.yes]".

    Returns
    -------
    ModelComparison
        One row for each smaller model: F test with p-value; F, AIC and BIC, each
        with the standard deviation of its noise and an interval for noise alone.
        AIC and BIC are the smaller model's less the full model's.

    Raises
    ------
    PlanError
        A name is not a term, a model leaves nothing or everything out, or the fit
        is another kind of result.
    NoResult
        The fit has no intervals, or is of clusters, units or a survey, where the
        criteria have no meaning.

    Notes
    -----
    Guarantee: post-processing of a release, at no cost. Test: Wald's statistic
    with the noise covariance, and a null distribution that is simulated from the
    noise. Criteria: noise is taken off on average, and its standard deviation
    counts first and second order. Intervals come from a noncentral chi-square.
    Where a release limits scores or leverages, the criteria describe the limited
    sums. Values beyond declared bounds or found ranges count as the nearest end.

    References
    ----------
    Lin, Slavkovic, Bhoomireddy 2025, section 6, proposes the statistics.

    Greene, Econometric Analysis, section 5.4 (Wald).

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "z": cf.Numeric(0, 1), "y": cf.Numeric(-2, 4)})
    >>> g = np.random.default_rng(1)
    >>> x, z = g.random(5_000), g.random(5_000)
    >>> data = cf.read({"x": x, "z": z, "y": 1 + x + 0.3 * g.normal(size=5_000)}, schema)
    >>> fit = cf.linear_regression("y ~ x + z", data, privacy=cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> found = cf.regression.compare_models(fit, ["x", "z"]).to_frame()
    >>> (found["p_value"] < 0.05).tolist(), (found["bic"] > 0).tolist()
    ([True, False], [True, False])
    """
    found: Any = fit
    if not isinstance(found, SharedEstimates) or found.tables:
        raise _no_fit(found)
    if isinstance(without, BaseResult):
        raise _no_terms(found, without)
    models = _models(found, without)
    if found.sums is None or found.status != "valid":
        raise NoResult(
            "models are compared where every coefficient has an interval and records are counted individually; "
            f"this fit has status {found.status!r}",
            found.reason or "ask for wald_test_terms(), whose tests hold here",
        )
    sums = found.sums()
    tests = [found.wald_test(np.eye(len(found.names))[places]) for places in models.values()]
    return ModelComparison(
        names=tuple(models),
        statistics=np.array([one.statistic for one in tests]),
        df_num=np.array([one.df_num for one in tests], dtype=np.float64),
        df_denom=np.array([one.df_denom for one in tests]),
        pvalues=np.array([one.pvalue for one in tests]),
        gaps=tuple(sums.without(places) for places in models.values()),
        **_shown(found),
    )


def _no_fit(given: Any) -> PlanError:
    """The refusal of another thing than a regression result, with the call to write."""
    if isinstance(given, SharedEstimates):
        what, call = "several responses", "fit['y1'], ['z']), for one of them"
    elif isinstance(given, Release):
        what, call = "a Release", "cf.infer(release), ['z'])"
    elif isinstance(given, str | PathLike):
        what, call = "a path", "cf.infer(cf.Release.load(path)), ['z'])"
    else:
        what, call = type(given).__name__, "cf.linear_regression('y ~ x + z', data, ...), ['z'])"
    return PlanError(
        f"compare_models takes the result of one linear regression, got {what}",
        f"write cf.regression.compare_models({call}",
    )


def _no_terms(fit: SharedEstimates, other: BaseResult) -> PlanError:
    """The refusal of a second result, whose noise is another one, with the terms that it lacks."""
    smaller = set(getattr(other, "names", ()))
    lacks = list(
        dict.fromkeys(_factors(fit)[name] for name in fit.names if name not in smaller and name != "Intercept")
    )
    terms = lacks if smaller and smaller < set(fit.names) else ["z"]
    return PlanError(
        "compare_models takes one result, and the names of the terms that the smaller model leaves out; a second one has other noise",
        f"write cf.regression.compare_models(fit, {terms if len(terms) == 1 else [terms]})",
    )


def _factors(fit: SharedEstimates) -> dict[str, str]:
    """Coefficient -> its term without levels."""
    assert fit.design is not None
    return {term.name: factor_name(term) for term in fit.design.terms}


def _shown(fit: SharedEstimates) -> dict[str, Any]:
    """What the comparison says of the release, as the fit does."""
    terms = dict.fromkeys(name for term, name in _factors(fit).items() if term != "Intercept")
    return {
        "method": fit.method,
        "response": fit.response,
        "requested": fit.requested,
        "guarantee": fit.guarantee,
        "target": f"smaller models within {fit.target}",
        "intervals_for": _FOR,
        "release_sha256": fit.release_sha256,
        "ranges": fit.ranges,
        "legend": tuple(line for line in fit.legend if line[0] == "Ranges"),
        "heading": ", ".join(terms),
        "simulated": fit.simulated,
    }


def _models(fit: SharedEstimates, without: Any) -> dict[str, list[int]]:
    """Title of each smaller model -> the places of the coefficients that it leaves out."""
    if isinstance(without, str):
        without = [without]
    if isinstance(without, Mapping):
        given = {str(title): own for title, own in without.items()}
    else:
        parts = [(own,) if isinstance(own, str) else tuple(own) for own in without]
        given = {", ".join(map(str, own)): own for own in parts}
    if not given:
        raise PlanError("no smaller model is named", "write compare_models(fit, ['z'])")
    return {title: _places(fit, (own,) if isinstance(own, str) else tuple(own)) for title, own in given.items()}


def _places(fit: SharedEstimates, named: tuple[str, ...]) -> list[int]:
    factors = _factors(fit)
    # as the table prints them, too: "female: yes"
    named = tuple({level_name(name): name for name in fit.names}.get(own, own) for own in named)
    known = [name for name in fit.names if name != "Intercept"]
    unknown = [name for name in named if name not in known and name not in factors.values()]
    if unknown or not named:
        what = f"{unknown[0]!r}, which is not a term" if unknown else "nothing"
        raise PlanError(f"a smaller model leaves out {what}; there are: {', '.join(dict.fromkeys(factors.values()))}")
    places = [
        place for place, name in enumerate(fit.names) if name in known and (name in named or factors.get(name) in named)
    ]
    if len(places) == len(fit.names):
        raise PlanError(
            "a smaller model without any coefficient is none",
            "leave out fewer terms, or write a formula with an intercept",
        )
    return places
