"""Calibration after the release: estimates moved to public totals of the population, at no further cost.

Post-stratification. With public numbers N_g of persons in the cells g of one attribute, sum_g (N_g/N) theta_g of the released means
of the cells has the covariance of these, p'Vp, p = N_g/N: linearised about the cells' own means, as R's `postStratify` has it.
A person is in one cell, and PSUs in several: V holds the covariances between cells. The noise of p'Mp is that of M's entries, |p|^4 times
one entry's.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._lazy import later
from confide.errors import NoResult, PlanError
from confide.results import check_alpha
from confide.results.inference import student
from confide.results.pages.words import WITHOUT_NUMBERS
from confide.results.public_totals import CALL, public_totals

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["poststratified"]


def poststratified(table: Any, totals: Any, over: str, of: str | None, alpha: float) -> pd.DataFrame:
    """One row: the estimate of all persons, its standard error, degrees of freedom and interval. table: a `SurveyTable`."""
    if table.verb != "means":
        raise PlanError(
            f"means are post-stratified, got {table.verb}; plan cf.tables.Means: N times it is a total, and that of a 0/1 column a share"
        )
    if not isinstance(over, str):
        raise PlanError(
            f"public totals are of the levels of one attribute, got {over!r}; write poststratify({{'f': 51_000, 'm': 49_000}}, 'sex'), or "
            "calibrate() of a line on several columns"
        )
    numbers = public_totals(totals)
    (axis,) = axes = table.layout.axes(over)
    labels = table.layout.crossing.attributes[axis].labels
    if set(numbers) != set(labels):
        raise PlanError(
            f"public totals of {over!r} name its levels, {', '.join(labels)}, each once, got {', '.join(numbers)}; {CALL}"
        )
    column = table.column(of)
    if (axes, column) not in table.estimated or table.estimated[axes, column].sums.of.base != axes:
        raise PlanError(
            f"post-stratification takes the means of each level of {over!r}, which this table has not; plan 'y ~ {over}'"
        )
    own = table.estimated[axes, column]
    if table.status in WITHOUT_NUMBERS:
        raise NoResult(f"the status is {table.status!r}, and nothing is moved to public totals: {table.reason}")
    p = np.array([numbers[label] for label in labels])
    p = p / p.sum()
    weights = p / own.x
    sampling = np.maximum(weights @ own.sampling @ weights, 0.0)
    # entries of M in steps have one noise sd, those off the diagonal 1/sqrt(2) of it and twice in the sum
    error = weights**2 @ own.error
    cells = range(len(p))
    noise = sum(weights[i] * weights[j] * own.sums.noise_between(own.theta, i, j) for i in cells for j in cells)
    most = own.most_of_sum(p, weights**2 * np.maximum(np.diag(own.sampling), 0.0))
    sampling, df = (float(part) for part in own.freedom(sampling, error, np.asarray(noise), np.asarray(most)))
    if own.weak_sum(p):
        raise NoResult(
            f"a post-stratified mean needs every level of {over!r}, and too few records or PSUs are counted for an interval of their sum, "
            "or for so skewed a column; ask for a larger budget, or join rare levels with others before the release"
        )
    variance = sampling + noise
    estimate = float(p @ own.theta)
    # the worst bias of the cut of weights, in full
    bias, unsure = own.moved(p)
    whole = float(own.widened(np.array([sqrt(variance)]), np.array([bias]), np.array([unsure]), check_alpha(alpha))[0])
    half = whole * float(student.quantile(alpha / 2, df) / student.quantile(alpha / 2, np.inf))
    low, high = own.sums.of.bounds
    return pd.DataFrame(
        {
            "estimate": [estimate],
            "std_err": [sqrt(variance)],
            "df": [df],
            "low": [max(estimate - half, low)],
            "high": [min(estimate + half, high)],
        },
        index=[f"{table.names_of[column]}, post-stratified by {over}"],
    )
