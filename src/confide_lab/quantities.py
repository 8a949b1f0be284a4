"""What an experiment measures and what a source prints: statistics of replications, and one record for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import PlanError
from confide_lab.runner import Value

__all__ = ["Printed", "Quantity", "Record", "judged", "record", "statistic_of"]

#: What a run gives: one for each cell, method and quantity, ready for strict JSON.
Record = dict[str, Any]

STATISTICS = ("mean", "rms", "median", "sd", "spread", "min", "max")


@dataclass(frozen=True)
class Quantity:
    """Something measured in every replication, and the statistic of it that is reported.

    name: what the record calls it; statistic: "mean", "rms" (root mean square), "median", "sd", "spread" (1.4826 times the median absolute
    deviation), "min" or "max"; of: the name that the measure gives, when another; label: for tables and pictures.
    """

    name: str
    statistic: str = "mean"
    of: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise PlanError(f"statistic must be one of {', '.join(STATISTICS)}, got {self.statistic!r}")

    @property
    def measure(self) -> str:
        """The name in the measure's answer."""
        return self.of or self.name


@dataclass(frozen=True)
class Printed:
    """A number that a source prints.

    value; digits: decimals printed; replications: how many it is the average of (None when not said, or exact); tolerance: how far away
    is still agreement, for a number without error of its own; source: "paper", or "reference" for a number of our own to be met.
    """

    value: float
    digits: int = 3
    replications: int | None = None
    tolerance: float | None = None
    source: str = "paper"

    def verdict(self, value: float, error: float, replications: int) -> str:
        """ "agrees", "higher", "lower", or "-" where there is nothing to compare.

        Two standard errors of the difference are allowed; the source's own is taken to be ours, scaled to its replications, and half a
        unit of the last printed digit is added. With a tolerance that stands for the source's part.

        >>> Printed(0.25, replications=100).verdict(0.29, 0.01, 100), Printed(0.25, tolerance=0.05).verdict(0.29, 0.01, 100)
        ('higher', 'agrees')
        """
        if not isfinite(value):
            return "-"
        if self.tolerance is not None:
            allowed = sqrt(self.tolerance**2 + (4 * error**2 if isfinite(error) else 0.0))
        elif not isfinite(error):
            return "-"
        else:
            theirs = 0.0 if self.replications is None else error * sqrt(replications / self.replications)
            allowed = 2 * sqrt(error**2 + theirs**2) + 0.5 * 10.0**-self.digits
        if abs(value - self.value) <= allowed:
            return "agrees"
        return "higher" if value > self.value else "lower"


def record(
    experiment: str,
    block: str,
    setting: Mapping[str, Value],
    method: str,
    quantity: Quantity,
    column: NDArray[np.float64],
) -> Record:
    """The record of one column of replications. Replications without an answer (NaN) are counted and left out."""
    there = column[~np.isnan(column)]
    value, error = statistic_of(there, quantity.statistic)
    mean, mean_error = statistic_of(there, "mean")
    return {
        "experiment": experiment,
        "block": block,
        "setting": dict(setting),
        "method": method,
        "quantity": quantity.name,
        "statistic": quantity.statistic,
        "value": _json(value),
        "error": _json(error),
        "mean": _json(mean),
        "standard_error": _json(mean_error),
        "median": _json(statistic_of(there, "median")[0]),
        "replications": len(there),
        "no_answer": len(column) - len(there),
        "failed": 0,
    }


def judged(row: Record, printed: Printed | None) -> Record:
    """The record with the source's number and the verdict, where there is one."""
    if printed is None:
        return row
    value, error = (nan if row[name] is None else float(row[name]) for name in ("value", "error"))
    return {**row, printed.source: printed.value, "verdict": printed.verdict(value, error, row["replications"])}


def statistic_of(values: NDArray[np.float64], name: str) -> tuple[float, float]:
    """A statistic of replications and its standard error (NaN for one replication, and for smallest and largest values).

    >>> [round(x, 3) for x in statistic_of(np.arange(9.0), "median")]
    [4.0, 2.0]
    """
    n = len(values)
    if n == 0:
        return nan, nan
    with np.errstate(invalid="ignore", over="ignore"):
        if name == "mean":
            return float(values.mean()), float(values.std(ddof=1) / sqrt(n)) if n > 1 else nan
        if name == "rms":
            size, error = statistic_of(np.square(values), "mean")
            return sqrt(size), error / (2 * sqrt(size)) if size > 0 else 0.0
        if name == "median":
            return float(np.median(values)), _median_error(np.sort(values))
        if name == "sd":
            if n < 3:
                return (float(values.std(ddof=1)) if n > 1 else nan), nan
            sd = float(values.std(ddof=1))
            fourth = float(((values - values.mean()) ** 4).mean())
            return sd, sqrt(max(fourth - sd**4, 0.0) / n) / (2 * sd) if sd > 0 else 0.0
        if name == "spread":
            away = np.abs(values - np.median(values))
            return 1.4826 * float(np.median(away)), 1.4826 * _median_error(np.sort(away))
        return float(values.min() if name == "min" else values.max()), nan


def _median_error(ordered: NDArray[np.float64]) -> float:
    """From the order statistics one binomial standard deviation on either side."""
    n = len(ordered)
    if n < 2:
        return nan
    reach = sqrt(n) / 2
    low, high = max(int(np.floor((n - 1) / 2 - reach)), 0), min(int(np.ceil((n - 1) / 2 + reach)), n - 1)
    return float(ordered[high] - ordered[low]) / 2


def _json(value: float) -> float | None:
    return value if isfinite(value) else None
