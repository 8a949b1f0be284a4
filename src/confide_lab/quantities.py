"""What an experiment measures and what a source prints: statistics of replications, and one record for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.errors import PlanError
from confide_lab.runner import Value

__all__ = ["LEAST", "WIDE", "Printed", "Quantity", "Record", "Verdict", "judged", "record", "statistic_of"]

#: What a run gives: one for each cell, method and quantity, ready for strict JSON.
Record = dict[str, Any]

#: Replications below which nothing is said of a number that is drawn, and the band, over the printed value, that cannot agree any more.
LEAST, WIDE = 10, 0.2
# The sd of the largest of 100 normal draws is .43 of theirs: the error of smallest and largest values.
_EXTREME = 0.43

STATISTICS = ("mean", "rms", "median", "sd", "spread", "min", "max")


@dataclass(frozen=True)
class Quantity:
    """Something measured in every replication, and the statistic of it that is reported.

    name: what the record calls it; statistic: "mean", "rms" (root mean square), "median", "sd", "spread" (1.4826 times the median absolute
    deviation), "min" or "max"; of: the name that the measure gives, when another; label: for tables and pictures; bounded: it lies between
    public limits (a width inside [0, 1]), so that its mean has no heavy tail and is judged as it is.
    """

    name: str
    statistic: str = "mean"
    of: str = ""
    label: str = ""
    bounded: bool = False

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise PlanError(f"statistic must be one of {', '.join(STATISTICS)}, got {self.statistic!r}")

    @property
    def measure(self) -> str:
        """The name in the measure's answer."""
        return self.of or self.name


@dataclass(frozen=True)
class Verdict:
    """What is said of a printed number: "agrees", "differs" or "undetermined"; the band that was allowed (None: there is none); why."""

    word: str
    allowed: float | None
    reason: str


@dataclass(frozen=True)
class Printed:
    """A number that a paper prints.

    value; digits: decimals printed; replications: how many it is the average of (None when the paper does not say, or it is exact);
    tolerance: how far away is still agreement, for what the paper leaves open; because: where that tolerance comes from; scale: what a
    band is wide against, where not the value itself (a bias has the size of its standard error); open: why nothing can be said.

    Raises `PlanError` for a tolerance without its source.
    """

    value: float
    digits: int = 3
    replications: int | None = None
    tolerance: float | None = None
    because: str = ""
    scale: float | None = None
    open: str = ""

    def __post_init__(self) -> None:
        if self.tolerance is not None and not self.because:
            raise PlanError(
                f"a tolerance needs its source, got none; write Printed({self.value}, tolerance={self.tolerance}, because='...')"
            )

    def verdict(self, row: Record, *, exact: bool = False) -> Verdict:
        """The verdict over a record. exact: the measure draws nothing, so that one replication has no error.

        Two standard errors of the difference are allowed, the paper's own taken to be ours scaled to its replications, and half a unit of
        the last printed digit; a tolerance takes the place of the paper's part. A band above a fifth of the printed value cannot agree,
        but what lies outside even that differs. Undetermined, too: fewer than ten replications, and a mean with a heavy tail, unless the
        median decides (`_on_medians`).

        >>> row = {"value": 0.29, "error": 0.01, "replications": 100, "heavy": False}
        >>> Printed(0.25, replications=100).verdict(row).word
        'differs'
        >>> Printed(0.25, tolerance=0.08, because="the design is another draw").verdict(row).word
        'undetermined'
        >>> Printed(0.28, replications=100).verdict(row)
        Verdict(word='agrees', allowed=0.02878, reason='')
        """
        value, error = (nan if row[name] is None else float(row[name]) for name in ("value", "error"))
        if self.open or not isfinite(value):
            return Verdict("undetermined", None, self.open or "no value here")
        if exact:
            error = 0.0
        elif row["replications"] < LEAST:
            return Verdict("undetermined", None, f"fewer than {LEAST} replications")
        elif not isfinite(error):
            return Verdict("undetermined", None, "no standard error")
        elif row.get("heavy"):
            return self._on_medians(row)
        return self._within(value, error, row["replications"], self.because)

    def _on_medians(self, row: Record) -> Verdict:
        """Where single runs make the mean: it agrees when the printed number is our median's, and differs where no mean could be as small.

        A mean of values above 0 is at least half of what half of them exceed; two standard errors of the median are taken off.
        """
        reason = "heavy tail: judged on medians"
        median, error = float(row["median"]), float(row["median_error"] or nan)
        if not isfinite(error):
            return Verdict("undetermined", None, reason)
        if row["least"] is not None and row["least"] >= 0 and self.value < (median - 2 * error) / 2:
            return Verdict(
                "differs", None, f"{reason}; half of the runs exceed {median:.3g}, no mean of them is {self.value:g}"
            )
        found = self._within(median, error, row["replications"], reason)
        return found if found.word == "agrees" else Verdict("undetermined", found.allowed, reason)

    def _within(self, value: float, error: float, replications: int, reason: str) -> Verdict:
        # two standard errors, more where few replications leave the standard error itself in doubt: 2.26 at ten of them
        times = max(2.0, float(stats.t.ppf(0.975, max(replications - 1, 1)))) if error else 2.0
        if self.tolerance is not None:
            allowed = sqrt(self.tolerance**2 + (times * error) ** 2)
        else:
            theirs = 0.0 if self.replications is None else error * sqrt(replications / self.replications)
            allowed = times * sqrt(error**2 + theirs**2) + 0.5 * 10.0**-self.digits
        size, shown = abs(self.value) if self.scale is None else self.scale, float(f"{allowed:.4g}")
        if abs(value - self.value) > allowed:
            return Verdict("differs", shown, reason)
        if allowed > WIDE * size:
            return Verdict(
                "undetermined", shown, f"a band above {WIDE:.0%} of the number" + (f"; {reason}" if reason else "")
            )
        return Verdict("agrees", shown, reason)


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
    median, median_error = statistic_of(there, "median")
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
        "median": _json(median),
        "median_error": _json(median_error),
        "least": _json(float(there.min())) if len(there) else None,
        "heavy": not quantity.bounded and quantity.statistic in ("mean", "rms", "sd") and heavy_tailed(there),
        "replications": len(there),
        "no_answer": len(column) - len(there),
        "failed": 0,
    }


def judged(row: Record, printed: Printed | None, *, exact: bool = False) -> Record:
    """The record with the paper's number, the verdict, the band and the reason, where there is one."""
    if printed is None:
        return row
    found = printed.verdict(row, exact=exact)
    return {**row, "paper": printed.value, "verdict": found.word, "allowed": found.allowed, "reason": found.reason}


def heavy_tailed(values: NDArray[np.float64]) -> bool:
    """Whether single runs make the mean: one holds half of the squares about the median, or the mean is three spreads away from it.

    >>> bool(heavy_tailed(np.append(np.linspace(0.1, 0.3, 99), 400.0))), bool(heavy_tailed(np.linspace(0.1, 0.3, 99)))
    (True, False)
    """
    there = values[np.isfinite(values)]
    if len(there) < LEAST:
        return False
    away = np.abs(there - np.median(there))
    spread = 1.4826 * float(np.median(away))
    if spread == 0:
        return False
    with np.errstate(over="ignore"):
        share = float(away.max() ** 2 / np.square(away).sum()) if away.max() < 1e150 else 1.0
    return share > 0.5 or abs(float(there.mean() - np.median(there))) > 3 * spread


def statistic_of(values: NDArray[np.float64], name: str) -> tuple[float, float]:
    """A statistic of replications and its standard error (NaN for one replication; of extremes that of 100 normal runs).

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
        extreme = float(values.min() if name == "min" else values.max())
        return extreme, _EXTREME * statistic_of(values, "spread")[0] if n > 1 else nan


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
