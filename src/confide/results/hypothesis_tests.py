"""Tests of hypotheses: statistic, degrees of freedom, p-value, and where there is one the estimate behind it with its interval.

Groups that the noisy counts do not tell from empty: a test leaves them out, its title names them, and it is of the others.

Counts decide, and no value: a declared level without records, or with too few for any budget, costs a test of the others nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.results.base import BaseResult, marked, noise_share
from confide.results.pages.content import Column, check_alpha, level_heads

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Tests that are known by their statistic.
_KINDS = {"t": "t test", "F": "F test", "chi-square": "Chi-square test"}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HypothesisTests(BaseResult):
    """One row for each test. names; statistics; df: degrees of freedom, NaN where the statistic has none; pvalues: NaN at status
    "imprecise"; null: where p-values come from ("chi-square", "simulated", "normal", "exact"); estimates and `limits(alpha)`, their
    interval, where a test is about a number; alone: how wide 95 % intervals would be by sampling alone, where that is known; statistic:
    what the statistic is called.
    """

    names: tuple[str, ...]
    statistics: Array
    df: Array
    pvalues: Array
    null: str
    estimates: Array | None = None
    limits: Callable[[float], tuple[Array, Array]] | None = None
    alone: Array | None = None
    statistic: str = "statistic"

    family: ClassVar[str] = "test"
    rows_are: ClassVar[str] = "test"
    rows_called: ClassVar[str] = "tests"
    reading: ClassVar[str] = "population"

    def __post_init__(self) -> None:
        for field in ("statistics", "df", "pvalues"):
            self._put(field, np.atleast_1d(np.asarray(getattr(self, field), dtype=np.float64)))
        if self.status != "valid":
            self._put("pvalues", np.full(len(self.names), nan))
        super().__post_init__()
        if self.limits is not None and self.alone is not None and self.has_intervals:
            low, high = self.limits(0.05)
            self._put("flags", marked(self.flags, self.names, noise_share(high - low, self.alone)))

    @property
    def title(self) -> str:
        return self.heading or f"{_KINDS.get(self.statistic, 'Test')} of {self.response}"

    @property
    def unit(self) -> str:
        """Nothing: what is estimated stands in the name of the test, and a formula is no unit."""
        return ""

    @property
    def pvalue(self) -> float:
        """The p-value of the first test."""
        return float(self.pvalues[0])

    @property
    def params(self) -> pd.Series[float] | None:
        """The estimates that the tests are about, by name; None where they are about none."""
        if self.estimates is None:
            return None
        return pd.Series(self.estimates, index=list(self.names), dtype="float64")

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals of the estimates, columns 0 and 1; `PlanError` where the tests are about no number."""
        if self.limits is None:
            raise PlanError("this test is about no single number and has no interval; pvalues has its p-value")
        low, high = self.limits(check_alpha(alpha))
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def adjusted(self) -> pd.Series[float]:
        """Holm's p-values, for all tests together."""
        return pd.Series(holm(self.pvalues), index=list(self.names), dtype="float64")

    def head(self) -> Sequence[tuple[str, str]]:
        """Where p-values come from."""
        return (("Null distribution", self.null),)

    def columns(self, alpha: float) -> Sequence[Column]:
        """Name, estimate with its interval where there is one, statistic, degrees of freedom, p."""
        found = [Column("term", self.names, "name")]
        if self.estimates is not None and self.limits is not None:
            (low, high), heads = self.limits(alpha), level_heads(alpha)
            found += [
                Column("estimate", self.estimates, head="estimate"),
                Column("ci_low", low, "interval", head=heads[0]),
                Column("ci_high", high, "interval", head=heads[1]),
            ]
        return (
            *found,
            Column("statistic", self.statistics, "statistic", head=self.statistic),
            Column("df", self.df, "number", head="df"),
            Column("p_value", self.pvalues, "p", head="p"),
        )

    def more(self, alpha: float) -> Mapping[str, Any]:
        """What the statistic is, and where the p-value comes from."""
        return {"statistic_name": self.statistic, "null": self.null}


def holm(pvalues: Array) -> Array:
    """Holm's adjusted p-values.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues)
    steps = np.maximum.accumulate(np.minimum(pvalues[order] * np.arange(len(pvalues), 0, -1), 1.0))
    found = np.empty(len(pvalues))
    found[order] = steps
    return found


#: Standard deviations of the noise of its number of records above which a group is told from empty.
LOST = 3.0


def without(lost: Sequence[str]) -> str:
    """What the title of a test adds.

    >>> without(["region=W"]), without([])
    (', without region=W', '')
    """
    return f", without {', '.join(lost)}" if lost else ""


def left_out(lost: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The line above the table that says why."""
    said = f"{', '.join(lost)}: the number of records is below three standard deviations of its privacy noise"
    return (("Left out", said),) if lost else ()


def too_few(lost: Sequence[str]) -> str:
    """Why there is no test: fewer than two groups are left."""
    named = ", ".join(lost) if lost else "the records"
    return (
        f"the noisy counts do not tell from empty: {named}; what is left is nothing to compare, so ask about groups that have records, or "
        "for a larger budget where these have some"
    )
