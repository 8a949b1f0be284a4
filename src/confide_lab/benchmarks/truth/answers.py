"""Questions of every other method with intervals: tables, tests, correlations, components, shares, means and quantiles of one column.

The truth is the method's own `reference` on the population; of counts and totals it is that of a sample, whose size is drawn. What no
population here can judge is named in `ELSEWHERE` with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

import confide as cf
from confide.core import Method

__all__ = ["ANSWERS", "ELSEWHERE"]


def _each(method: str, asked: Mapping[str, Method]) -> Mapping[tuple[str, str], Method]:
    return {(case, method): own for case, own in asked.items()}


def _groups(kind: type) -> Mapping[str, Method]:
    """Cells of a rare level, of fifteen uneven ones, and of two real columns."""
    return {
        "rare-level": kind("f", inference="population"),
        "fifteen-uneven": kind("f", inference="population"),
        "adult": kind("sex * income", inference="population"),
    }


def _measured(kind: type) -> Mapping[str, Method]:
    """A measure in groups: a rare level, skewed values with zeros in fifteen levels, long tails, and real columns."""
    return {
        "rare-level": kind("y ~ f", inference="population"),
        "fifteen-uneven": kind("y ~ f", inference="population"),
        "heavy": kind("y", inference="population"),
        "adult": kind("hours_per_week ~ sex", inference="population"),
        "bike": kind("cnt", inference="population"),
    }


#: (case, method) -> what is asked.
ANSWERS: Mapping[tuple[str, str], Method] = {
    **_each("counts", _groups(cf.tables.Counts)),
    **_each("shares", _groups(cf.tables.Shares)),
    **_each("means", _measured(cf.tables.Means)),
    **_each("totals", _measured(cf.tables.Totals)),
    **_each(
        "ratios",
        {
            "skew": cf.tables.Ratios("y / x", inference="population"),
            "fifteen-mixed": cf.tables.Ratios("y / x ~ f", inference="population"),
            "adult": cf.tables.Ratios("hours_per_week / age ~ sex", inference="population"),
            "bike": cf.tables.Ratios("cnt / temp", inference="population"),
        },
    ),
    **_each(
        "table_one",
        {
            "rare-level": cf.tables.TableOne("x + y ~ f"),
            "zeros": cf.tables.TableOne("x + y", medians=("y",)),
            "adult": cf.tables.TableOne("age + hours_per_week + income ~ sex", medians=("age",)),
        },
    ),
    **_each(
        "quantiles",
        {
            "skew": cf.tables.Quantiles("y"),
            "ties": cf.tables.Quantiles("y"),
            "rare-level": cf.tables.Quantiles("y ~ f"),
            "adult": cf.tables.Quantiles("hours_per_week ~ sex"),
        },
    ),
    **_each(
        "correlation",
        {
            "skew": cf.tests.Correlation("x + y"),
            "ties": cf.tests.Correlation("x + y"),
            "heavy": cf.tests.Correlation("x + y"),
            "adult": cf.tests.Correlation("age + hours_per_week"),
            "bike": cf.tests.Correlation("temp + cnt"),
        },
    ),
    **_each(
        "correlations",
        {
            "skew": cf.reduction.Correlations("x + y"),
            "collinear": cf.reduction.Correlations("a + b + y"),
            "adult": cf.reduction.Correlations("age + education_num + hours_per_week"),
            "bike": cf.reduction.Correlations("temp + hum + cnt"),
        },
    ),
    **_each(
        "pca",
        {
            "plain": cf.reduction.PCA("a + b + y"),
            "collinear": cf.reduction.PCA("a + b + y"),
            "adult": cf.reduction.PCA("age + education_num + hours_per_week"),
            "bike": cf.reduction.PCA("temp + hum + cnt"),
        },
    ),
    **_each(
        "mann_whitney",
        {
            "ties": cf.tests.MannWhitney("y ~ cut(x, 3)"),
            "zeros": cf.tests.MannWhitney("y ~ cut(x, 0.5)"),
            "adult": cf.tests.MannWhitney("hours_per_week ~ sex"),
            "bike": cf.tests.MannWhitney("cnt ~ cut(temp, 0.5)"),
        },
    ),
    **_each(
        "wilcoxon",
        {
            "plain": cf.tests.Wilcoxon("a - b"),
            "ties": cf.tests.Wilcoxon("x - y"),
            "bike": cf.tests.Wilcoxon("temp - hum"),
        },
    ),
    **_each(
        "proportion",
        {
            "rare-outcome": cf.intervals.Proportion("y"),
            "rare-level": cf.intervals.Proportion("f", "rare"),
            "adult": cf.intervals.Proportion("sex"),
            "convictions": cf.intervals.Proportion("black"),
            "weeks-worked": cf.intervals.Proportion("weeks", 52),
        },
    ),
    **_each(
        "proportion of all levels",
        {
            "rare-level": cf.intervals.Proportion("f"),
            "fifteen-uneven": cf.intervals.Proportion("f"),
            "adult": cf.intervals.Proportion("income"),
        },
    ),
    **_each("difference", {"adult": cf.intervals.Difference("income ~ sex")}),
    **_each(
        "mean_and_variance",
        {
            **dict.fromkeys(("plain", "skew", "heavy", "ties"), cf.intervals.MeanAndVariance("y")),
            "adult": cf.intervals.MeanAndVariance("hours_per_week"),
            "bike": cf.intervals.MeanAndVariance("cnt"),
            # counts, lumps and long tails of real tables
            "arrests": cf.intervals.MeanAndVariance("narr86"),
            "convictions": cf.intervals.MeanAndVariance("priors"),
            "injuries": cf.intervals.MeanAndVariance("durat"),
            "weeks-worked": cf.intervals.MeanAndVariance("weeks"),
            "smokers": cf.intervals.MeanAndVariance("cigs", kind="confidence"),
        },
    ),
    **_each("slope", {"plain": cf.intervals.Slope("y ~ a + b"), "collinear": cf.intervals.Slope("y ~ a + b")}),
    **_each(
        "quantiles, pure",
        {
            "skew": cf.tables.Quantiles("y", quantiles=(0.1, 0.5, 0.9)),
            "heavy": cf.tables.Quantiles("y", quantiles=(0.05, 0.5, 0.95)),
            "ties": cf.tables.Quantiles("y", quantiles=(0.1, 0.5, 0.9)),
            "adult": cf.tables.Quantiles("hours_per_week", quantiles=(0.1, 0.5, 0.9)),
            "bike": cf.tables.Quantiles("cnt", quantiles=(0.1, 0.5, 0.9)),
        },
    ),
}

_PERSONS = "samples of records have no persons, and `reference` refuses them; "
#: Registered methods with intervals that are in no cell, and why.
ELSEWHERE: Mapping[str, str] = {
    "within": _PERSONS + "`confide lab bench within` measures panels",
    "distinct_counts": _PERSONS + "intervals as of counts, for persons: tests/methods/tables/test_persons.py",
    "distinct_shares": _PERSONS + "intervals as of shares, for persons: tests/methods/tables/test_persons.py",
    "block_posterior": "its estimand is a sampler's, a process for each block: tests/methods/intervals/test_block_posterior.py",
    "column_ranges": "its interval is for a range that the same counts chose, another one in each run: tests/test_ranges.py",
    "publication": "its intervals are the intervals of its analyses",
    "logistic_objective": "a method to compare with: `confide lab bench logistic`",
    "logistic_ptr": "a method to compare with: `confide lab bench logistic`",
}
