"""What a linear regression gives its user beyond a table of coefficients: R squared with its interval, and predictions.

Adjusted predictions of a line: its mean over rows of a public frame, at chosen values, or over a grid of levels.

As `margins` in Stata, `emmeans` and `marginaleffects` in R give them. For a line each is a linear combination of the coefficients, so
that its standard error is exact given theirs (no delta method is needed). The rows are public: a mean over the private records is not
to be had from a frame.

The table of a shared release: contrasts, joint tests term by term, adjusted predictions; and several responses in one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import isnan, nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._helpers import later
from confide.core import ResultOptions
from confide.errors import NoResult, PlanError
from confide.methods.regression.evidence.nested_models import ModelSums
from confide.results import Estimates, check_alpha
from confide.results.inference import simulated_null, wald
from confide.results.inference.contrasts import Combinations, combine, labels
from confide.results.pages.content import INTERCEPT, WITHOUT_NUMBERS, base_words, missing_words
from confide.schema import Categorical, ModelMatrix, Schema
from confide.schema.formulas.terms import factor_name
from confide.sums.columns import columns_of

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


Vector = NDArray[np.float64]

_LEVEL = re.compile(r"\[T\.[^\]]*\]")


@dataclass(frozen=True, eq=False, repr=False)
class DesignEstimates(Estimates):
    """Coefficients of a model of `design`, read at rows of public data.

    Parameters
    ----------
    design : ModelMatrix, optional
        Columns that the formula makes of the schema.
    """

    design: ModelMatrix | None = None

    #: What is fitted, in the title.
    model: ClassVar[str] = "Linear regression"
    inference: ClassVar[str] = "population"

    @property
    def title(self) -> str:
        """The heading of every rendering, with the clusters that intervals count."""
        variables = ", ".join(dict.fromkeys(_LEVEL.sub("", name) for name in self.names if name != INTERCEPT))
        what = f"{self.model} of {self.response}{' on ' if variables else ''}{variables}{': ' if self.heading else ''}{self.heading}"
        cluster = None if self.design is None else self.design.schema.cluster
        return what + ("" if cluster is None else f", clusters {cluster.column}")

    def _line(self, frame: Any, alpha: float) -> tuple[Vector, Vector, Vector]:
        """The fit at the rows of a public frame, its standard error, and the margin of error of its interval at level 1 - alpha.

        NaN where a value is missing or, at status "partial", where the row uses a coefficient that was not answered.
        """
        alpha, rows = check_alpha(alpha), self._rows(frame)
        line = simulated_null.weighted(rows, self.estimates)
        kept = np.where(np.isnan(self.covariance) & ~np.isnan(self.covariance).all(), 0.0, self.covariance)
        error = np.where(np.isnan(line), np.nan, np.sqrt(np.einsum("ij,jk,ik->i", rows, kept, rows)))
        half = simulated_null.quantile(alpha / 2, simulated_null.fewest(rows, self.df)) * error
        if self.bias is not None:
            half = half + simulated_null.weighted(np.abs(rows), self.bias)
        return line, error, half

    def _rows(self, frame: Any) -> Vector:
        """The terms of the estimates' names at the rows of a public frame."""
        if self.design is None or self.status == "declined":
            raise NoResult(
                "the method declined to answer, so the release has no coefficients to predict from",
                "ask for a new release",
            )
        if self.status in WITHOUT_NUMBERS:
            raise NoResult(
                f"the release has no coefficients to predict from, its status is {self.status!r}: {self.reason}"
            )
        matrix = self.design.matrix(frame)
        return matrix[:, [self.design.names.index(name) for name in self.names]]


@dataclass(frozen=True, eq=False, repr=False)
class LinearEstimates(DesignEstimates):
    """Coefficients of a linear regression, with predictions and R squared.

    Parameters
    ----------
    nobs : float
        Estimated number of records, weighted by leverage where records are.
    rsquared : float
        Share of the response's variance that the features explain. Without an
        intercept it is about zero.
    rsquared_interval : (float, float)
        Its 95% interval; NaN outside status "valid".

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> fit = cf.linear_regression("y ~ x", data, privacy=cf.GDP(1.0), ledger=None)
    >>> list(fit.names), isinstance(fit, cf.regression.LinearEstimates)
    (['Intercept', 'x'], True)
    """

    nobs: float = nan
    rsquared: float = nan
    rsquared_interval: tuple[float, float] = (nan, nan)

    _per: ClassVar[str] = " per unit of the column"

    @property
    def predicts_the_line(self) -> bool:
        """Whether a prediction is the line itself. Override where predictions are moved, as into the response's bounds."""
        return True

    @property
    def _unpublished(self) -> bool:
        return isnan(self.nobs)

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the number of records and R squared."""
        low, high = self.rsquared_interval
        own = {"nobs_noisy": self.nobs, "rsquared": self.rsquared, "rsquared_low": low, "rsquared_high": high}
        return {**super().more(alpha), **own}

    def predict(self, frame: Any) -> pd.Series[float]:
        """Predict the mean response at the rows of a public frame.

        Parameters
        ----------
        frame : DataFrame or mapping of arrays
            Public rows with the columns of the formula.

        Returns
        -------
        Series of float
            Predictions in the response's units. At status "imprecise" they are
            rough; at "partial" a row that uses a coefficient that was not
            answered is NaN.

        Raises
        ------
        NoResult
            The method declined, or the status says that the estimates mean
            nothing ("not_identified").
        """
        values = simulated_null.weighted(self._rows(frame), self.estimates)
        return pd.Series(values, name=self.response)

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Predict the mean response, with standard errors and intervals.

        Parameters
        ----------
        frame : DataFrame or mapping of arrays
            Public rows with the columns of the formula.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Columns as in statsmodels: mean, mean_se, mean_ci_lower and
            mean_ci_upper. The interval covers the mean at that point, not a
            new response.

        Raises
        ------
        NoResult
            As in `predict`.
        """
        mean, error, half = self._line(frame, alpha)
        return pd.DataFrame(
            {"mean": mean, "mean_se": error, "mean_ci_lower": mean - half, "mean_ci_upper": mean + half}
        )


def kept(design: ModelMatrix, options: ResultOptions) -> list[int]:
    """Indices of the terms that the options keep."""
    if options.subset is None:
        return list(range(len(design.terms)))
    names = [term.name for term in design.terms]
    factors = [factor_name(term) for term in design.terms]
    unknown = [name for name in options.subset if name not in (*names, *factors, "Intercept")]
    if unknown:
        whole = dict.fromkeys(name for name in factors if name not in names)
        raise PlanError(
            f"subset names {', '.join(map(repr, unknown))}, which the release does not hold; it holds: {', '.join(names)}"
            + (f"; all levels of a factor at once: {', '.join(whole)}" if whole else "")
        )
    return [j for j, name in enumerate(names) if name in options.subset or factors[j] in options.subset]


def legend(design: ModelMatrix, schema: Schema, names: Sequence[str] | None = None) -> tuple[tuple[str, str], ...]:
    """What the weighted count is, the rules for missing values, and reference levels of the terms `names` (None: of all): public facts."""
    columns = schema.columns
    bases = base_words(columns, design, names)
    return (
        (
            "Weighted count",
            "the sum of the leverage weights of the complete records, each at most 1, with privacy noise; it is not "
            "the number of records",
        ),
        ("Missing", missing_words(columns, design)),
        *([("Compared with", bases)] if bases else []),
    )


_MOST_ROWS = 100_000


def adjusted_rows(
    design: ModelMatrix, frame: Any, by: str | Sequence[str] | None, at: Mapping[str, Any] | None
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names and rows (q, len(design.names)) whose products with the coefficients are adjusted predictions.

    frame : DataFrame, mapping of arrays or None
        Public rows to average over. None: the grid of the schema, numeric columns at the middle of their bounds, every combination of
        levels once.
    at : mapping
        Column -> value or values that replace the column in every row, one prediction for each combination.
    by : str or sequence of str
        Columns whose values in the frame (in the grid: whose levels) split the rows into groups.

    Raises `PlanError` for a column that the terms do not use, or a frame without rows.
    """
    schema = design.schema
    used = columns_of(*design.terms)
    groups = (by,) if isinstance(by, str) else tuple(by or ())
    values = {name: _listed(value) for name, value in (at or {}).items()}
    for name in (*groups, *values):
        if name not in used:
            raise PlanError(
                f"the terms do not use the column {name!r}; predictions can be adjusted by: {', '.join(used) or 'none'}"
            )
    both = [name for name in groups if name in values]
    if both:
        raise PlanError(f"{both[0]!r} is in by and in at; at sets a column in every row, so leave it out of by")
    rows = _grid(schema, used, groups, values) if frame is None else _public(frame, used, values)
    names, out = [], []
    for chosen in product(*values.values()):
        told = dict(zip(values, chosen, strict=True))
        here = rows.assign(**told) if told else rows
        matrix = design.matrix(here) if used else np.ones((len(here), len(design.names)))
        if not np.isfinite(matrix).all():
            raise PlanError(
                "the frame has missing values or labels that the schema does not declare",
                "give complete rows to predict for",
            )
        said = [f"{name}={value}" for name, value in told.items()]
        if not groups:
            names.append(", ".join(said) or "average")
            out.append(matrix.mean(axis=0))
            continue
        keys = here[list(groups)].apply(tuple, axis=1).to_numpy()
        for key in dict.fromkeys(keys):
            own = np.array([other == key for other in keys])
            names.append(", ".join([*(f"{name}={value}" for name, value in zip(groups, key, strict=True)), *said]))
            out.append(matrix[own].mean(axis=0))
    return tuple(names), np.array(out)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str) or np.isscalar(value):
        return [value]
    found = list(value)
    if not found:
        raise PlanError("at needs at least one value for each column, as in at={'age': [20, 40]}")
    return found


def _public(frame: Any, used: tuple[str, ...], values: Mapping[str, Any]) -> pd.DataFrame:
    try:
        rows = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(dict(frame))
    except (TypeError, ValueError):
        raise PlanError(
            f"frame must be a DataFrame or a mapping of columns, got {type(frame).__name__}",
            "leave it out for the grid of the schema",
        ) from None
    missing = [name for name in used if name not in rows.columns and name not in values]
    if missing:
        raise PlanError(f"the frame lacks the column {missing[0]!r}", "give it there, or a value of it in at")
    if not len(rows):
        raise PlanError("the frame has no rows to average over", "leave it out for the grid of the schema")
    return rows.reset_index(drop=True)


def _grid(schema: Schema, used: tuple[str, ...], groups: tuple[str, ...], values: Mapping[str, Any]) -> pd.DataFrame:
    """Every combination of levels once; other columns at the middle of their bounds."""
    axes: dict[str, list[Any]] = {}
    for name in used:
        column = schema[name]
        if isinstance(column, Categorical):
            axes[name] = list(column.levels)
        elif column.kind == "integer" and name in groups:
            axes[name] = list(range(int(column.low), int(column.high) + 1))
        elif name in groups:
            raise PlanError(
                f"{name!r} has no levels to group by", f"write at={{{name!r}: [...]}} with the values to predict at"
            )
        else:
            axes[name] = [float(column.low + (column.high - column.low) / 2)]
        if name in values:
            axes[name] = values[name][:1]
    size = int(np.prod([len(axis) for axis in axes.values()], dtype=float))
    if size > _MOST_ROWS:
        raise PlanError(f"the grid of all levels has {size} rows", "give a frame of the rows to average over")
    return pd.DataFrame(list(product(*axes.values())), columns=list(axes)) if axes else pd.DataFrame(index=[0])


@dataclass(frozen=True, eq=False, repr=False)
class SharedEstimates(LinearEstimates):
    """Coefficients of one or several regressions on the same features.

    With several responses the names are "y1: age", and `result["y2"]` is the
    table of one response. R squared and predictions belong to the tables.

    Parameters
    ----------
    tables : mapping of str to SharedEstimates
        Response -> its table; empty for a single response.
    loose : array of float, optional
        Sampling part of `covariance` within responses, where the part across
        responses is not known. A test of m responses counts it m times.
    sums : callable, optional
        Gives the `ModelSums` from which `confide.regression.compare_models`
        compares smaller models; computed when it asks.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3), "z": cf.Numeric(0, 9)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> release = cf.release(cf.regression.SSP("y + z ~ x"), data, cf.GDP(1.0), ledger=None)
    >>> list(cf.infer(release).tables)
    ['y', 'z']
    """

    tables: Mapping[str, SharedEstimates] = field(default_factory=dict)
    loose: NDArray[np.float64] | None = None
    sums: Callable[[], ModelSums] | None = None

    def __getitem__(self, response: str) -> SharedEstimates:
        """Return the table of one response; `PlanError` for another name."""
        if response in self.tables:
            return self.tables[response]
        if not self.tables and response == self.response:
            return self
        raise PlanError(
            f"the release holds no response {response!r}; it holds: {', '.join(self.tables) or self.response}"
        )

    def wald_test(self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike = 0) -> wald.WaldTest:
        """Test linear restrictions of the coefficients jointly.

        Parameters
        ----------
        r_matrix : str, sequence of str or array
            Restrictions, such as ``"age = 0, income = 0"``, or their matrix.
        r_value : float or array, default 0
            What the restrictions are compared with, for a matrix.

        Returns
        -------
        WaldTest
            Statistic, degrees of freedom and p-value. A test across responses
            whose products were not released uses an upper bound of the
            variance.

        Raises
        ------
        PlanError
            A name is not a coefficient. A factor has a coefficient for each
            level: `wald_test_terms()` tests them together.
        """
        matrix, value = self._restrictions(r_matrix, r_value)
        covariance = self.covariance if self.loose is None else self.covariance + self._spare(matrix) * self.loose
        return wald.wald_test(matrix, value, self.estimates, covariance, self.df, self.joint, self.bias, self.status)

    def t_test(
        self,
        r_matrix: str | Sequence[str] | ArrayLike | Mapping[str, Mapping[str, float]],
        r_value: ArrayLike = 0,
    ) -> Combinations:
        """Test each restriction separately.

        Parameters
        ----------
        r_matrix : str, sequence of str, array or mapping
            Restrictions as in `wald_test`, or named contrasts such as
            ``{"young - old": {"age[T.young]": 1, "age[T.old]": -1}}``.
        r_value : float or array, default 0
            What the restrictions are compared with, for a matrix.

        Returns
        -------
        Combinations
            Effect, standard error, t, p and interval of each restriction. The
            effect is the left side less the right side of a restriction's
            names, compared with its constant. NaN outside status "valid".

        Raises
        ------
        PlanError
            A name is not a coefficient.
        """
        if isinstance(r_matrix, Mapping):
            named = tuple(r_matrix)
            for weights in r_matrix.values():
                unknown = [name for name in weights if name not in self.names]
                if unknown:
                    raise PlanError(f"there is no coefficient {unknown[0]!r}; there are: {', '.join(self.names)}")
            matrix = np.array([[float(r_matrix[name].get(own, 0.0)) for own in self.names] for name in named])
            value = np.zeros(len(named))
            if not named:
                raise PlanError("name at least one contrast, as in t_test({'a - b': {'a': 1, 'b': -1}})")
        else:
            matrix, value = self._restrictions(r_matrix, r_value)
            named = labels(r_matrix, len(matrix))
        made = combine(self, matrix, names=named, null=value)
        if self.loose is None:
            return made
        return replace(made, covariance=matrix @ (self.covariance + self._spare(matrix) * self.loose) @ matrix.T)

    def wald_test_terms(self) -> pd.DataFrame:
        """Test each term jointly: that all of its coefficients are zero.

        With an intercept a factor's coefficients are differences from its
        reference level, and the test asks whether levels differ. Without one,
        as in ``"income ~ 0 + edu"``, the first factor has a coefficient for
        each level. Where it is the only term, these are the means of the
        levels, and the test asks whether all of them are zero. That says
        nothing of whether levels differ. Use a formula with an intercept for
        that, or ``wald_test("edu[low] = edu[mid], edu[mid] = edu[high]")``.

        Returns
        -------
        DataFrame
            One row for each term: statistic, df_num, df_denom, pvalue. With
            several responses a term's coefficients are tested in all of them.
            The intercept has no row.
        """
        assert self.design is not None
        kinds = {term.name: factor_name(term) for term in self.design.terms}
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            own = name
            for response in self.tables:
                own = own.removeprefix(f"{response}: ")
            if own in kinds:
                groups.setdefault(kinds[own], []).append(place)
        tests = {kind: self.wald_test(np.eye(len(self.names))[places]) for kind, places in groups.items()}
        return pd.DataFrame(
            {
                "statistic": [test.statistic for test in tests.values()],
                "df_num": [test.df_num for test in tests.values()],
                "df_denom": [test.df_denom for test in tests.values()],
                "pvalue": [test.pvalue for test in tests.values()],
            },
            index=list(tests),
        )

    def adjusted_predictions(
        self, frame: Any = None, *, by: str | Sequence[str] | None = None, at: Mapping[str, Any] | None = None
    ) -> Combinations:
        """Average the predictions over public rows, by groups or at chosen
        values.

        Parameters
        ----------
        frame : DataFrame or mapping of arrays, optional
            Rows to average over. Left out: the grid of the schema, numeric
            columns at the middle of their bounds and every combination of
            levels once. Then ``adjusted_predictions(by="region")`` gives the
            marginal means of a factor.
        by : str or sequence of str, optional
            Columns whose values split the rows into groups.
        at : mapping, optional
            Values to set in every row, such as ``{"age": [20, 40]}``.

        Returns
        -------
        Combinations
            Means with standard errors and intervals, which cover the mean and
            not a new response. `pairs()` gives the differences.

        Raises
        ------
        PlanError
            A column is not used by the terms, or there are several responses:
            take one table, such as ``result["y1"]``.
        """
        self._single("adjusted predictions")
        assert self.design is not None
        names, rows = adjusted_rows(self.design, frame, by, at)
        place = [self.design.names.index(name) for name in self.names]
        return combine(self, rows[:, place], names=names)

    def more(self, alpha: float) -> dict[str, Any]:
        """`LinearEstimates.more`, and under "tables" the table of each of several responses."""
        tables = {name: table.to_dict(alpha) for name, table in self.tables.items()}
        return {**super().more(alpha), **({"tables": tables} if tables else {})}

    def _restrictions(
        self, r_matrix: str | Sequence[str] | ArrayLike, r_value: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`wald.restrictions`, which names the call that works where a factor stands for its coefficients."""
        if self.design is not None and isinstance(r_matrix, (str, list, tuple)):
            given = (
                r_matrix.split(",") if isinstance(r_matrix, str) else [part for part in r_matrix if type(part) is str]
            )
            words = {part.split("=")[0].strip().strip("`") for part in given}
            terms = {term.name: factor_name(term) for term in self.design.terms}
            for factor in dict.fromkeys(terms.values()):
                if factor in words and factor not in self.names and factor not in terms:
                    own = [name for name, kind in terms.items() if kind == factor]
                    raise PlanError(
                        f"{factor!r} is a factor, which has a coefficient for each level: {', '.join(own)}; their joint test is "
                        f"wald_test_terms().loc[{factor!r}]"
                    )
        return wald.restrictions(self.names, r_matrix, r_value)

    def _rows(self, frame: Any) -> Any:
        self._single("predictions")
        return super()._rows(frame)

    def _single(self, what: str) -> None:
        if self.tables:
            one = next(iter(self.tables))
            raise PlanError(f"{what} belong to one response", f"ask its table: result[{one!r}]")

    def _touched(self, matrix: Any) -> list[str]:
        """The responses whose coefficients restrictions are about."""
        used = [name for name, column in zip(self.names, np.asarray(matrix).T, strict=True) if np.any(column != 0)]
        return [response for response in self.tables if any(name.startswith(f"{response}: ") for name in used)]

    def _spare(self, matrix: Any) -> int:
        """How many times more than once the sampling part counts in a test of these restrictions, individually."""
        return max(max(len(self._touched(row[None, :])) for row in np.atleast_2d(matrix)), 1) - 1
