"""What a line of a generalised linear model gives its user beyond its coefficients: predicted means and average marginal effects."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, sqrt
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from confide._arrays import Array
from confide.errors import NoResult, PlanError
from confide.methods.regression.likelihood.fisher.answers.fisher_effects import MeanSlope
from confide.methods.regression.linear import DesignEstimates
from confide.results import check_alpha
from confide.results.inference import student

__all__ = ["ModelEstimates"]


@dataclass(frozen=True, eq=False, repr=False)
class ModelEstimates(DesignEstimates):
    """Coefficients of eta = intercept + sum of coefficient x term, in the units of the data, of which the outcome's mean is a function.

    `nobs` is the noisy count of records, NaN where the release holds none.
    """

    #: Computes `mean_slope`, for the few tables that are asked for effects.
    effects: Callable[[], MeanSlope | None] | None = None
    nobs: float = nan

    @property
    def _unpublished(self) -> bool:
        return isnan(self.nobs)

    @cached_property
    def mean_slope(self) -> MeanSlope | None:
        """The mean over the records of the mean outcome's slope in eta; None where the release does not tell it."""
        return None if self.effects is None else self.effects()

    @abstractmethod
    def _mean(self, eta: Array) -> Array:
        """The outcome's mean."""

    @abstractmethod
    def _slope(self, eta: Array) -> Array:
        """Its derivative."""

    #: What exp of a coefficient is, such as "odds_ratio"; "" where it is nothing.
    _ratio: ClassVar[str] = ""

    def _ratios(self, alpha: float) -> pd.DataFrame:
        """exp of the coefficients and of their intervals; that of the intercept is no ratio, and is left out."""
        with np.errstate(over="ignore"):
            limits = np.exp(self.conf_int(alpha))
            found = pd.DataFrame({self._ratio: np.exp(self.params), "low": limits[0], "high": limits[1]})
        return found.drop(index="Intercept", errors="ignore")

    def _spread(self, alpha: float) -> pd.DataFrame:
        """The frame as it goes into a file: with the ratios and their intervals."""
        ends = {"low": f"{self._ratio}_low", "high": f"{self._ratio}_high"}
        return (
            self.to_frame(alpha).join(self._ratios(alpha).rename(columns=ends)) if self._ratio else self.to_frame(alpha)
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What the exponentials are."""
        if not self._ratio or not self.has_intervals:
            return ()
        name = self._ratio.replace("_", " ")
        words = (
            f"exp of a coefficient and of its interval's ends is its {name} with an interval; {self._ratio}s() gives them, and "
            "--csv FILE.csv writes them"
        )
        return ((name.capitalize(), words),)

    def more(self, alpha: float) -> dict[str, Any]:
        """`Estimates.more` with the noisy count and the ratios."""
        with np.errstate(over="ignore"):
            return {
                **super().more(alpha),
                "nobs_noisy": self.nobs,
                **({self._ratio: np.exp(self.params.to_numpy())} if self._ratio else {}),
            }

    @property
    def _no_mean_slope(self) -> str:
        return "this release has no information of the kind that they are made of"

    def get_prediction(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Mean outcome (of two levels: the second one's probability), standard error and interval at the rows of a public frame: columns as
        in statsmodels.

        mean, mean_se, mean_ci_lower, mean_ci_upper; the ends are those of eta, carried over. The interval covers the mean that the
        population's line gives there. Without intervals all but the mean is NaN.
        """
        eta, error, half = self._line(frame, alpha)
        mean = self._mean(eta)
        return pd.DataFrame(
            {
                "mean": mean,
                "mean_se": self._slope(eta) * error,
                "mean_ci_lower": self._mean(eta - half),
                "mean_ci_upper": self._mean(eta + half),
            }
        )

    def average_marginal_effects(self, alpha: float = 0.05, kind: str = "change") -> pd.DataFrame:
        """What a column does to the mean outcome, on average over the records, by name: contrast, dy/dx, se, low, high.

        Of a number the mean over the records of d(mean outcome)/d(column), per unit of the column (contrast "dY/dX"). Of a level, and of a
        column of two values, the mean CHANGE of the mean outcome from the base level, or the lower value, with all other columns of a
        record as they are (contrast "south - north", "1 - 0"), as R and Stata have it; with kind="derivative" the derivative of these, too.
        A column that stands in several terms, or in a transformed one, has no effect of one coefficient, and is NaN; beside coefficients
        that are withheld (`partial`) there is no interval. Intervals: Student's t, sampling and privacy noise of the coefficients and of
        the mean (`fisher_effects`). Records whose features lie far out count less in it, and an effect may be larger by what they lack: the
        ends of intervals are that much farther from zero, and `frame.attrs["note"]` says how much.

        Raises `NoResult` where there is no interval, or the release's information is not the mean's slope (the probit),
        `PlanError` for another kind.
        """
        alpha = check_alpha(alpha)
        if kind not in ("change", "derivative"):
            raise PlanError(f'kind must be "change" or "derivative", got {kind!r}; write kind="change"')
        if self.design is None or self.mean_slope is None:
            reason = f"the status is {self.status!r}: {self.reason}" if self.reason else self._no_mean_slope
            raise NoResult(f"there are no average marginal effects: {reason}")
        held = Counter(column for term in self.design.terms for column in set(term.columns))
        # what is withheld moves the mean slope by nobody knows how much
        withheld = bool(np.isnan(np.diag(self.covariance)).any())
        rows = []
        for j, name in enumerate(self.names):
            place = self.design.names.index(name) - 1
            if place < 0:
                continue
            if np.isnan(self.estimates[j]) or not self._alone(self.design.terms[place], held):
                rows.append((name, "", *(np.nan,) * 4))
                continue
            if kind == "change" and self.design.terms[place].steps == 2:
                said, value, *ends = self._changed(j, place, alpha)
            else:
                said, value, *ends = self._sloped(j, alpha)
            rows.append((name, said, value, *((nan,) * 3 if withheld else ends)))
        found = pd.DataFrame(rows, columns=["name", "contrast", "dy/dx", "se", "low", "high"]).set_index("name")
        found.attrs["note"] = "" if withheld else self.mean_slope.words()
        return found

    def _sloped(self, j: int, alpha: float) -> tuple[str, float, float, float, float]:
        """What is said, the mean derivative of a coefficient's column, its standard error and interval."""
        own, beta = self.mean_slope, self.estimates[j]
        assert own is not None
        # d(beta_j s) = s d beta_j + beta_j ds
        way = beta * own.gradient
        way[j] += own.value
        se, free = self._moved(way, beta**2 * own.variance), self._free(j)
        half = float(student.quantile(alpha / 2, free)) * se + abs(own.value) * self._biases[j]
        return "dY/dX", beta * own.value, se, *own.stretched(beta * own.value - half, beta * own.value + half)

    def _changed(self, j: int, place: int, alpha: float) -> tuple[str, float, float, float, float]:
        """The same of the mean change of a column of two values, or a level."""
        assert self.mean_slope is not None
        own = self.mean_slope.change(place)
        se = self._moved(own.gradient, own.variance)
        half = float(student.quantile(alpha / 2, self._free(j))) * se + abs(float(own.gradient[j])) * self._biases[j]
        # around a mean slope that is noise there is no interval
        half = half if self.mean_slope.value > 0 else nan
        return own.said, own.value, se, *own.stretched(own.value - half, own.value + half)

    def _moved(self, way: Array, variance: float) -> float:
        """The standard error of what moves with the coefficients in this way, with a variance of its own."""
        kept = np.nan_to_num(self.covariance)
        return sqrt(max(float(way @ kept @ way), 0.0) + variance)

    def _free(self, j: int) -> Any:
        return self.df if np.ndim(self.df) == 0 else np.asarray(self.df)[j]

    @property
    def _biases(self) -> Array:
        return np.zeros(len(self.names)) if self.bias is None else np.nan_to_num(self.bias)

    def _alone(self, term: Any, held: Counter[str]) -> bool:
        """Whether a term is a column, or a level of one that stands in no other kind of term."""
        levels = [one for one in self.design.terms if one.columns == term.columns] if self.design else []
        simple = term.plain is not None or (term.binary and len(term.parts) == 1)
        return (
            simple
            and len(term.columns) == 1
            and held[term.columns[0]] == len(levels)
            and (len(levels) == 1 or all(one.binary for one in levels))
        )
