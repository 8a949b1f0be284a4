"""Predictions, comparisons and slopes of a released regression by the package `marginaleffects` (extra `marginaleffects`).

    from confide.marginaleffects import adapt
    from marginaleffects import avg_comparisons, hypotheses, predictions, slopes

    model = adapt(result, public)              # of linear, logistic and Poisson regressions
    avg_comparisons(model, variables="age")
    slopes(model, variables="age", eps=model.step("age"))

What is averaged over, and what "the data" are wherever the package asks for them, are rows that are public (a census, a reference grid) or
synthetic (`schema.sample`). The records themselves are never at hand, and `adapt` refuses them. Standard errors are by the delta method
from the released covariance, which holds sampling and privacy noise; intervals are Student's t with the fewest degrees of freedom of any
coefficient. Source: Arel-Bundock, Greifer, Heiss 2024, J. Stat. Software 111(9).
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from confide._arrays import Array
from confide.errors import NoResult, PlanError
from confide.methods.regression.glm.results import LogisticEstimates, ModelEstimates, PoissonEstimates
from confide.methods.regression.linear_estimates import DesignEstimates, LinearEstimates, SharedEstimates
from confide.schema import Categorical, ModelMatrix
from confide.schema.columns import Column

try:
    from marginaleffects.classes import ModelAbstract, ModelVault
except ImportError:  # `adapt` says so
    ModelAbstract, ModelVault = object, None


# Of a column's range: half its square is what the step costs, and rounding a thousandth of that.
_STEP = 1e-3
_EXAMPLE = "adapt(result, schema.sample(1000, seed=1)), or a public frame"


def adapt(result: Any, data: Any) -> ReleasedRegression:
    """Adapt the result of a regression to the package `marginaleffects`.

    Parameters
    ----------
    result : LinearEstimates, LogisticEstimates or PoissonEstimates
        Result of a linear, logistic or Poisson regression.
    data : DataFrame or mapping of arrays
        Public or synthetic rows (pandas or polars) with the columns of the
        terms. Averages are over them, and its other columns can be named in
        `by=`.

    Returns
    -------
    ReleasedRegression
        A model that the functions of `marginaleffects` take.

    Raises
    ------
    PlanError
        The data are records behind a source, or columns are missing.
    NoResult
        Coefficients have no valid covariance (any status but "valid"), or have
        a bound on their bias, which standard errors cannot carry. Use
        `get_prediction` then.
    """
    _check_versions()
    design = _checked(result)
    return ReleasedRegression(result, design, _public(data, design))


class ReleasedRegression(ModelAbstract):  # type: ignore[misc]
    """The adapter: coefficients and covariance of the release, the mean outcome at rows of public data."""

    def __init__(self, result: DesignEstimates, design: ModelMatrix, data: pl.DataFrame) -> None:
        self._design, self._result = design, result
        self._columns = [design.names.index(name) for name in result.names]
        #: what `marginaleffects` takes for the degrees of freedom of every interval
        self.df_resid = float(result.fewest_df)
        vault = ModelVault(
            coef=np.array(result.estimates),
            coefnames=np.array(result.names),
            formula=self._matrices,  # the package takes a function of a frame, too
            modeldata=data,
            package="confide",
        )
        super().__init__(result, vault)

    def validation(self) -> None:
        """What kind each column is, as the schema says; the package would read it off the rows."""
        self.coef, self.response_name = self.vault.coef, self.find_response()
        self.vault.variables_type = {name: _kind(self._design.schema[name]) for name in _used(self._design)}

    def find_variables(self) -> list[str]:
        """The columns of the terms: the public rows need no outcome."""
        return _used(self._design)

    def find_predictors(self) -> list[str]:
        """The same."""
        return _used(self._design)

    def find_response(self) -> str:
        """The name of the outcome."""
        return str(self._design.response.name)

    def get_vcov(self, vcov: Any = True) -> Array | None:
        """The released covariance; None for False. It is robust already and there is no other: `PlanError` for a name such as "HC3"."""
        if vcov is False or vcov is None:
            return None
        if vcov is True:
            return np.array(self._result.covariance)
        raise PlanError(
            f"vcov={vcov!r} would need the records; the released covariance is robust already, and holds the privacy noise: write vcov=True"
        )

    def get_exog(self, newdata: Any) -> Array:
        """The terms at rows of a public frame."""
        matrix = self._design.matrix(_columns(newdata, _used(self._design)))
        if not np.isfinite(matrix).all():
            raise PlanError("newdata has missing values or undeclared labels", "give complete public rows")
        return matrix[:, self._columns]

    def get_predict(self, params: Any, newdata: Any) -> pl.DataFrame:
        """The mean outcome at given coefficients: of a logistic regression the second level's probability, of a Poisson one the rate."""
        rows = newdata if isinstance(newdata, np.ndarray) else self.get_exog(newdata)
        line = rows @ np.asarray(params, dtype=np.float64)
        values = self._result._mean(line) if isinstance(self._result, ModelEstimates) else line
        return pl.DataFrame({"rowid": np.arange(len(rows), dtype=np.int32), "estimate": values})

    def step(self, name: str) -> float:
        """The step for `slopes` in a numeric column, ``eps=model.step("income")``.

        The package steps every column by 1e-4, which rounding hides where a
        column runs to 10,000 or more. Standard errors are then wrong by a per
        cent, and for a column up to a million by factors.

        Parameters
        ----------
        name : str
            Numeric column of the terms.

        Returns
        -------
        float
            A thousandth of the column's public range, in its own units.

        Raises
        ------
        PlanError
            The column is not numeric or not in the terms.
        """
        used = _used(self._design)
        column = self._design.schema[name] if name in used else None
        if column is None or isinstance(column, Categorical):
            raise PlanError(
                f"a slope is along a numeric column of the terms, {', '.join(used)}, got {name!r}",
                "compare levels by comparisons()",
            )
        return _STEP * float(column.high - column.low)

    def summary(self) -> str:
        """The result's own table."""
        return self._result.summary()

    def get_df(self) -> float:
        """Degrees of freedom of joint tests: the fewest of any coefficient."""
        return self.df_resid

    def get_autodiff_args(self) -> dict[str, str | None]:
        """How derivatives are taken: of the mean in the coefficients, exactly."""
        if isinstance(self._result, LogisticEstimates):
            return {"model_type": "glm", "family": "binomial", "link": self._result.link}
        if isinstance(self._result, PoissonEstimates):
            return {"model_type": "glm", "family": "poisson", "link": "log"}
        return {"model_type": "linear", "family": None, "link": None}

    def _matrices(self, newdata: Any) -> tuple[None, Array]:
        return None, self.get_exog(newdata)


def _check_versions() -> None:
    """The package is there, and works with polars: marginaleffects 0.6 calls what polars 2 removed, in the middle of a comparison."""
    if ModelVault is None:
        raise PlanError(
            "adapt needs the package marginaleffects, which is not installed: pip install 'confide[marginaleffects]'"
        )
    own, frames = version("marginaleffects"), version("polars")
    if own.startswith("0.6.") and not frames.startswith(("0.", "1.")):
        raise PlanError(f"marginaleffects {own} does not work with polars {frames}: pip install 'polars<2'")


def _checked(result: Any) -> ModelMatrix:
    """The design of a result that can be adapted."""
    if not isinstance(result, (LinearEstimates, LogisticEstimates, PoissonEstimates)):
        raise PlanError(
            f"adapt takes the result of a linear, logistic or Poisson regression, got {type(result).__name__}",
            "write adapt(cf.infer(release), data)",
        )
    if isinstance(result, SharedEstimates) and result.tables:
        raise PlanError(f"the release holds several responses; adapt one: result[{next(iter(result.tables))!r}]")
    if result.design is None or result.status != "valid" or not result.has_intervals:
        raise NoResult(
            f"coefficients without a valid covariance have no margins: the status is {result.status!r}: {result.reason or 'no interval'}"
        )
    if result.bias is not None:
        raise NoResult(
            "these coefficients have a bound on their bias, which marginaleffects would leave out",
            "write result.get_prediction(frame), whose intervals include it",
        )
    if isinstance(result, LinearEstimates) and not result.predicts_the_line:
        raise NoResult(
            "this line was fitted for prediction alone, and moves predictions into the response's bounds",
            "write result.predict(frame)",
        )
    return result.design


def _kind(column: Column) -> str:
    """A column in the words of `marginaleffects`."""
    if isinstance(column, Categorical):
        return "character"
    if column.kind == "integer":
        return "binary" if (column.low, column.high) == (0, 1) else "integer"
    return "numeric"


def _used(design: ModelMatrix) -> list[str]:
    return list(dict.fromkeys(column for term in design.terms for column in term.columns))


def _public(data: Any, design: ModelMatrix) -> pl.DataFrame:
    """The rows that averages are over, levels as the schema orders them."""
    if hasattr(data, "rereadable"):  # a source, and what is no frame of rows
        raise PlanError(
            "data must be public or synthetic rows, and these are the records: a prediction for each would publish them",
            f"write {_EXAMPLE}",
        )
    columns = {}
    for name, values in _columns(data, _used(design)).items():
        column = design.schema[name]
        if isinstance(column, Categorical):
            unknown = sorted({str(value) for value in values} - set(column.levels))
            if unknown:
                raise PlanError(f"data has {unknown[0]!r} in {name!r}, whose levels are {', '.join(column.levels)}")
            columns[name] = pl.Series(name, [str(value) for value in values], dtype=pl.Enum(list(column.levels)))
        else:
            columns[name] = pl.Series(name, np.asarray(values, dtype=np.float64))
    frame = pl.DataFrame(columns)
    if not frame.height or any(series.is_null().any() or _unknown(series) for series in frame):
        raise PlanError("data must have at least one row and no missing value", f"write {_EXAMPLE}")
    others = [name for name in getattr(data, "columns", data) if name not in columns]
    return frame.with_columns(_plain(name, values) for name, values in _columns(data, others).items())


def _plain(name: str, values: NDArray[Any]) -> pl.Series:
    """A column that no term has, for `by`: numbers as they are, anything else as labels in their order."""
    if values.dtype.kind in "biuf":
        return pl.Series(name, values)
    labels = [str(value) for value in values]
    return pl.Series(name, labels, dtype=pl.Enum(sorted(set(labels))))


def _unknown(series: pl.Series) -> bool:
    return bool(series.dtype.is_float() and series.is_nan().any())


def _columns(frame: Any, names: list[str]) -> dict[str, NDArray[Any]]:
    """Columns of a public frame as arrays; labels as text."""
    found = {}
    for name in names:
        try:
            values = frame[name]
            found[name] = np.asarray(values.to_list() if isinstance(values, pl.Series) else values)
        except (KeyError, TypeError, IndexError, pl.exceptions.PolarsError):
            raise PlanError(f"the public data have no column {name!r}; the terms need {', '.join(names)}") from None
    return found
