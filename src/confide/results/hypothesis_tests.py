"""Tests of hypotheses: the statistic, its degrees of freedom, the p-value, and the estimate with its interval if there is one.

A test excludes groups whose DP count is not distinguishable from zero. Its title names them, and it compares the others. Counts decide,
not values: a declared level without records costs a test of the other levels nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.pages.content import Column, check_alpha
from confide.results.pages.table import DASH, marked, noise_share

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Tests that are known by their statistic, and how it is printed.
_KINDS = {"t": "t test", "F": "F test", "chi-square": "Chi-square test"}
_LETTERS = {"chi-square": "chi2"}
# Null distributions, as they are printed after the p-value; the chi-square and the normal distribution are not named.
_NULLS = (
    (re.compile(r"simulated, ([\d,]+ \w+).*"), r"null distribution simulated, \1"),
    (re.compile("the interval, inverted"), "p-value from the interval"),
    (re.compile("exact: binomial and noise"), "exact: binomial and privacy noise"),
    (re.compile("chi-square|normal|none"), ""),
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HypothesisTests(BaseResult):
    """One row for each test.

    names; statistics; df: degrees of freedom, NaN if the statistic has none; pvalues: NaN at status "imprecise". null: the source of
    p-values ("chi-square", "simulated", "normal", "exact"). estimates and `limits(alpha)`: the tested estimate and its interval, if any;
    alone: widths of 95% intervals without privacy noise. statistic: its name; compared: at a level, the printed rows, such as means of
    groups.
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
    compared: Callable[[float], Sequence[Column]] | None = None

    family: ClassVar[str] = "test"
    rows_are: ClassVar[str] = "test"
    rows_called: ClassVar[str] = "tests"
    inference: ClassVar[str] = "population"

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
        return (self.heading or f"{_KINDS.get(self.statistic, 'Test')} of {self.response}") + self.coded

    @property
    def axis(self) -> str:
        """No unit: the name of the test has the estimand."""
        return "estimate"

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
        """Name, estimate if there is one, statistic, degrees of freedom, p-value, interval of the estimate."""
        estimated = self.estimates is not None and self.limits is not None
        low, high = self.limits(alpha) if self.limits is not None else (self.df, self.df)
        return (
            Column("term", self.names, "name"),
            *((Column("estimate", self.estimates),) if self.estimates is not None and estimated else ()),
            Column("statistic", self.statistics, "statistic", head=_LETTERS.get(self.statistic, self.statistic)),
            Column("df", self.df, "number"),
            Column("p_value", self.pvalues, "p"),
            *((Column("ci_low", low, "interval"), Column("ci_high", high, "interval")) if estimated else ()),
        )

    def printed(self, alpha: float) -> Sequence[Column]:
        """What the test compares; else the tested estimate, or the test itself."""
        if self.compared is not None:
            return self.compared(alpha)
        own = self.columns(alpha)
        return [one for one in own if one.kind in ("name", "estimate", "interval")] if self._one else own

    @property
    def _one(self) -> bool:
        """Whether it is one test of a number, whose statistic is printed below the rows."""
        return len(self.names) == 1 and self.estimates is not None and self.limits is not None

    def line(self, alpha: float) -> str:
        """The statistic with its degrees of freedom and p-value, such as "t = -14.75, p < 0.001"."""
        if self.compared is None and not self._one:
            return ""
        source = next(
            (re.sub(pattern, words, self.null) for pattern, words in _NULLS if pattern.fullmatch(self.null)), self.null
        )
        letter = _LETTERS.get(self.statistic, self.statistic)
        return line_of(letter, self.df[:1], float(self.statistics[0]), self.pvalue) + (f" ({source})" if source else "")

    def more(self, alpha: float) -> Mapping[str, Any]:
        """What the statistic is, and where the p-value comes from."""
        return {"statistic_name": self.statistic, "null": self.null}


def line_of(letter: str, df: Sequence[float] | Array, statistic: float, pvalue: float) -> str:
    """A test in one line.

    >>> line_of("chi2", [3.0], 2.3149, 0.5113), line_of("t", [nan], -14.75, 1e-9)
    ('chi2(3) = 2.31, p = 0.511', 't = -14.75, p < 0.001')
    """
    known = [f"{one:,.4g}" if one < 1e4 else f"{one:,.0f}" for one in df if not np.isnan(one)]
    found = DASH if np.isnan(statistic) else f"{statistic:,.2f}"
    p = f"= {DASH}" if np.isnan(pvalue) else "< 0.001" if pvalue < 0.001 else f"= {pvalue:.3f}"
    return f"{letter}{'(' + ', '.join(known) + ')' if known else ''} = {found}, p {p}"


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


#: A group counts as not empty if its DP count is above so many standard deviations of its noise.
LOST = 3.0


def without(lost: Sequence[str]) -> str:
    """What the title of a test adds.

    >>> without(["region=W"]), without([])
    (', without region=W', '')
    """
    return f", without {', '.join(lost)}" if lost else ""


def left_out(lost: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The fact that says why groups are excluded."""
    said = f"{', '.join(lost)}: n is below three standard deviations of its privacy noise"
    return (("Excluded", said),) if lost else ()


def too_few(lost: Sequence[str]) -> str:
    """Why there is no test: fewer than two groups are left."""
    named = ", ".join(lost) if lost else "the records"
    return (
        f"DP counts that are not distinguishable from zero: {named}. Fewer than two groups remain, so compare groups that have records, or "
        "use a larger budget"
    )
