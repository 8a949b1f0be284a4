"""When a judgement may say that something holds or fails: with runs enough, and beyond what the runs themselves move by.

>>> told("a before b", True, "1 < 2", runs=3).ok is None, told("a before b", True, "1 < 2", runs=10).ok
(True, True)
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from math import ceil, isfinite, sqrt
from typing import Any

from scipy import stats

from confide_lab.benchmarks.coverage import CONFIDENCE
from confide_lab.experiment import Check, Record
from confide_lab.quantities import LEAST

__all__ = ["below", "covers", "limits_of", "runs_that_tell", "told"]

#: How sure an order of two numbers must be, either way.
_SURE = 0.99
#: Misses so many times as frequent as an interval may have must be found out.
_MISSES = 3.0
#: A number that is no method's.
_LIMIT = "limit"


def told(name: str, ok: bool | None, text: str, *, runs: int, least: int = LEAST) -> Check:
    """The check, open where there are fewer runs than could tell."""
    if runs >= least:
        return Check(name, ok, text)
    return Check(name, None, f"{text}; {runs} of the {least} runs that could tell")


def limits_of(value: float, runs: int) -> tuple[float, float]:
    """The 99.9 % Clopper-Pearson interval of a share, all of a run's intervals taken as one trial: as wide as it can be."""
    hits, tail = round(value * runs), (1 - CONFIDENCE) / 2
    low = float(stats.beta.ppf(tail, hits, runs - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


@cache
def runs_that_tell(least: float) -> int:
    """Runs with which an interval that misses three times as often as it may is below the promise by the 99.9 % rule.

    >>> runs_that_tell(0.95) > runs_that_tell(0.5) > 1
    True
    """
    bad = max(1 - _MISSES * (1 - least), 0.0)
    return next(n for n in range(1, 100_000) if limits_of(ceil(bad * n) / n, n)[1] < least)


def covers(name: str, row: Record, low: float, high: float = 1.0) -> Check:
    """Whether a recorded coverage can be from low to high: it fails where its 99.9 % interval lies outside.

    >>> row = {"value": 0.6, "replications": 400}
    >>> covers("x", row, 0.93).ok, covers("x", {**row, "replications": 1}, 0.93).ok
    (False, None)
    """
    value, runs = float(row["value"]), int(row["replications"])
    least, most = limits_of(value, runs)
    ok = most >= low and least <= high
    text = f"{value:.3f} [{least:.3f}, {most:.3f}]"
    return told(f"{name} from {low:g} to {high:g}", ok, text, runs=runs, least=runs_that_tell(low))


def below(
    name: str,
    one: Record,
    other: Record | float,
    *,
    times: float = 1.0,
    plus: float = 0.0,
    exact: Collection[str] = (),
) -> Check:
    """Whether one recorded number is below another, or below a limit, times a factor, plus a little; open where the runs do not settle it.

    exact: methods that draw nothing, whose one run has no error.

    >>> a, b = ({"method": m, "value": v, "error": 0.1, "replications": 20} for m, v in (("a", 1.0), ("b", 2.0)))
    >>> below("a < b", a, b).ok, below("b < a", b, a).ok, below("a < b", a, {**b, "value": 1.1}).ok
    (True, False, None)
    """
    if not isinstance(other, dict):
        other = {"method": _LIMIT, "value": other, "error": 0.0, "replications": LEAST}
    exact = {_LIMIT, *exact}
    ratio = f": {one['value'] / other['value']:.3g} times" if other["value"] else ""
    text = f"{one['value']:.4g}, {other['value']:.4g}{ratio}"
    parts = [_error(row, exact) for row in (one, other)]
    runs = min((int(row["replications"]) for row in (one, other) if row["method"] not in exact), default=LEAST)
    if any(part is None for part in parts):
        return told(name, None, f"{text}; no standard error", runs=runs, least=2)
    gap = times * other["value"] + plus - one["value"]
    error = sqrt(float(parts[0] or 0) ** 2 + (times * float(parts[1] or 0)) ** 2)
    if abs(gap) <= float(stats.t.ppf((1 + _SURE) / 2, max(runs - 1, 1))) * error:
        return told(name, None, f"{text}; within what {runs} runs move by", runs=runs, least=2)
    return told(name, gap > 0, text, runs=runs, least=2)


def _error(row: Record, exact: Collection[str]) -> float | None:
    if row["method"] in exact:
        return 0.0
    error: Any = row["error"]
    return float(error) if error is not None and isfinite(error) else None
