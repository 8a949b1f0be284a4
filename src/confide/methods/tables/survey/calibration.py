"""Calibration after the release: estimates moved to public totals of the population, at no further cost.

Post-stratification. With public numbers N_g of persons in the cells g of one attribute, sum_g (N_g/N) theta_g of the released means or
shares of the cells has the covariance of these, p'Vp, p = N_g/N: linearised about the cells' own means, as R's `postStratify` has it.
A person is in one cell, and PSUs in several: V holds the covariances between cells. The noise of p'Mp is that of M's entries, |p|^4 times
one entry's.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from math import sqrt
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._lazy import later
from confide.errors import PlanError
from confide.results import check_alpha, student

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["poststratified", "public_totals"]

_CALL = (
    'write poststratify({"f": 51_000, "m": 49_000}, "sex"), or give a CSV file with one level and its number in a line'
)


def public_totals(given: Mapping[Any, Any] | str | PathLike[str]) -> dict[str, float]:
    """Level -> public number, from a mapping or a CSV file of two columns, whose first line may be a heading. `PlanError` for any other.

    >>> public_totals({"f": 51, "m": 49})
    {'f': 51.0, 'm': 49.0}
    """
    if isinstance(given, (str, PathLike)):
        try:
            lines = [row for row in csv.reader(Path(given).read_text(encoding="utf-8-sig").splitlines()) if row]
        except (OSError, ValueError):
            raise PlanError(f"there is no readable file of public totals {str(given)!r}; {_CALL}") from None
        if any(len(row) != 2 for row in lines):
            raise PlanError(f"a file of public totals has two columns, level and number; {_CALL}")
        pairs = [(level.strip(), number.strip()) for level, number in lines]
        if pairs and _number(pairs[0][1]) is None:
            pairs = pairs[1:]
    elif isinstance(given, Mapping):
        pairs = [(str(level), number) for level, number in given.items()]
    else:
        raise PlanError(f"public totals are a mapping or a file, got {type(given).__name__}; {_CALL}")
    found = {level: _number(number) for level, number in pairs}
    wrong = [level for level, number in found.items() if number is None or not 0 <= number < np.inf]
    if wrong or len(found) < len(pairs) or not found:
        which = f"{wrong[0]!r} has none" if wrong else "a level stands twice, or there is none"
        raise PlanError(f"public totals give each level a number of at least 0, once; {which}; {_CALL}")
    return {level: float(number) for level, number in found.items() if number is not None}


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def poststratified(table: Any, totals: Any, over: str, of: str | None, alpha: float) -> pd.DataFrame:
    """One row: the estimate of all persons, its standard error, degrees of freedom and interval. table: a `SurveyTable`."""
    if table.verb not in ("means", "shares"):
        raise PlanError(
            f"means and shares are post-stratified, got {table.verb}; plan cf.tables.Means, N times it is a total"
        )
    numbers = public_totals(totals)
    (axis,) = axes = table.layout.axes(over)
    labels = table.layout.crossing.attributes[axis].labels
    if set(numbers) != set(labels):
        raise PlanError(f"public totals of {over!r} name its levels, {', '.join(labels)}, got {', '.join(numbers)}")
    column = table.column(of)
    if (axes, column) not in table.estimated or table.estimated[axes, column].sums.of.base != axes:
        raise PlanError(
            f"post-stratification takes the means of each level of {over!r}, which this table has not; plan 'y ~ {over}'"
        )
    own = table.estimated[axes, column]
    p = np.array([numbers[label] for label in labels])
    p = p / p.sum()
    weights = p / own.x
    sampling = np.maximum(weights @ own.sampling @ weights, 0.0)
    # entries of M in steps have one noise sd, those off the diagonal 1/sqrt(2) of it and twice in the sum
    error = weights**2 @ own.error
    cells = range(len(p))
    noise = sum(weights[i] * weights[j] * own.sums.noise_between(own.theta, i, j) for i in cells for j in cells)
    sampling, df = (float(part) for part in own.freedom(sampling, error, np.asarray(noise)))
    variance = sampling + noise
    estimate = float(p @ own.theta)
    half = float(student.quantile(check_alpha(alpha) / 2, df)) * sqrt(variance)
    # the worst bias of the cut of weights, in full
    half += float(p @ own.bias)
    low, high = own.sums.of.bounds
    return pd.DataFrame(
        {
            "estimate": [estimate],
            "std_err": [sqrt(variance)],
            "df": [df],
            "low": [max(estimate - half, low)],
            "high": [min(estimate + half, high)],
        },
        index=[f"{table.names_of[column] or 'share'}, post-stratified by {over}"],
    )
