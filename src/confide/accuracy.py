"""Accuracy first: the smallest budget whose forecast is as sharp as asked, and what each budget buys.

A wish is a standard error, or with a level the half-width of an interval at that level.

Everything here follows from forecasts, which follow from public facts and a number of records that the caller gives. **A budget that was
chosen from n tells of n**: whoever plans so says that n is public. A wrong guess costs width, never privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, Any

from confide import _special as special
from confide._lazy import later
from confide._text import near_match
from confide.errors import ConfideError, PlanError
from confide.guarantees.validation import EXACT, is_finite, is_number
from confide.protocol import Plan
from confide.protocol.plan import BESIDE

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["Precision", "check_accuracy", "smallest"]

# Levels of mu or epsilon that are tried; beyond the largest, privacy protects nobody.
_LEAST, _MOST = 1e-3, 64.0
# Of an interval whose half-width is asked for: that of a smaller one is no multiple of the standard error that could be told from 0.
_LEAST_LEVEL = 1e-3
# How many times too large an error is, where no number of records would do.
_FAR = 1e100
# The level is found to this factor, and is then rounded up to four digits.
_CLOSE = 1.005
# Of the coefficients of all shapes that a forecast is of, so many must have an interval for its standard errors to count.
_ANSWERED = 0.5
_EXAMPLE = 'write cf.plan(method, schema, accuracy={"x": 0.02}, n=5000)'
# What stands for every number of its kind in a forecast; of a method that is in neither list for every number.
_KINDS = ("count", "share", "mean", "quantile", "all")
_KIND_OF = {
    "counts": "count",
    "person_counts": "count",
    "shares": "share",
    "person_shares": "share",
    "means": "mean",
    "distribution": "quantile",
}
_TABLE_ONE = {": mean": "mean", ": median": "quantile", "": "share"}

PlanAt = Callable[[float], Plan]


def check_accuracy(accuracy: Any, privacy: Any, n: Any, level: Any = None) -> dict[str, float]:
    """The standard errors that are asked for, by name; `PlanError` for anything else, or beside a privacy or without n.

    level: what is asked for are half-widths of normal intervals at this level; None: standard errors.
    """
    if level is not None and not (is_number(level) and _LEAST_LEVEL <= level < 1):
        raise PlanError(
            f"level must lie between {_LEAST_LEVEL:g} and 1, got {level!r}; write level=0.95 where accuracy names half-widths"
        )
    if privacy is not None:
        raise PlanError(
            f"accuracy says how sharp a release must be, and privacy what it may cost; give one of them; {_EXAMPLE}"
        )
    if n is None:
        raise PlanError(
            f"accuracy needs n, the number of records that the forecast is for, which then counts as public; {_EXAMPLE}"
        )
    fits = isinstance(accuracy, Mapping) and accuracy
    if not fits or not all(is_finite(x) and x > 0 for x in accuracy.values()):
        raise PlanError(
            f"accuracy must name standard errors above 0, as the plan's forecast names them, got {accuracy!r}; {_EXAMPLE}"
        )
    return {str(name): float(x) / _reach(level) for name, x in accuracy.items()}


def _reach(level: float | None) -> float:
    """Half-widths in standard errors; 1 where standard errors are asked for."""
    return 1.0 if level is None else float(-special.ndtri((1 - level) / 2))


def smallest(plan_at: PlanAt, accuracy: Mapping[str, float], level: float | None = None) -> Plan:
    """The plan at the smallest level whose predicted standard errors are at most those asked for; of a range its upper end counts.

    level: of the intervals whose half-widths were asked for, in which an error speaks.

    Raises `PlanError` for names that the forecast does not have, and where no level would do: with the least standard error and the number
    of records that would.
    """
    best = _reached(plan_at, _MOST)
    accuracy = _spread(best[0].method.name, best[1], accuracy)
    _check_names(best, accuracy)
    wrong = {name: found for name in accuracy if (found := best[1][name]) > accuracy[name]}
    if wrong:
        name, found = next(iter(wrong.items()))
        records = best[2] * min(found / accuracy[name], _FAR) ** 2
        need = "" if records > EXACT else f"; about {ceil(records):,} records would do"
        z, what = _reach(level), "standard error" if level is None else "half-width"
        least = "no interval is expected" if found == inf else f"at least {z * found:.3g} is expected"
        raise PlanError(
            f"a {what} of {z * accuracy[name]:.4g} for {name!r} is beyond what {best[2]:,} records give at any budget: {least}{need}; "
            "ask for a larger one"
        )
    low, high, made = _LEAST, _MOST, best[0]
    while high > low * _CLOSE:
        middle = exp((log(low) + log(high)) / 2)
        tried, errors, _ = _reached(plan_at, middle)
        if all(errors.get(name, inf) <= x for name, x in accuracy.items()):
            high, made = middle, tried
        else:
            low = middle
    return made


def _reached(plan_at: PlanAt, level: float) -> tuple[Plan, dict[str, float], int]:
    """The plan at a level rounded up to four digits, its standard errors, and for how many records; none where it cannot be made."""
    try:
        made = plan_at(_rounded(level))
    except ConfideError:
        if level >= _MOST / 2:
            raise
        return plan_at(_MOST), {}, 0
    counts = [key for key in made.forecast if key not in BESIDE]
    if not counts:
        raise PlanError(
            f"{made.method.name} forecasts no standard errors, so that no accuracy can be planned; give privacy=cf.GDP(...)"
        )
    rows = made.forecast[counts[0]]
    # what is told in the few shapes that are answered at all is no forecast of a release
    if made.forecast.get("answered", {}).get(counts[0], 1.0) < _ANSWERED:
        rows = dict.fromkeys(rows)
    upper = {
        name: inf if cell is None else float(max(cell) if isinstance(cell, tuple) else cell)
        for name, cell in rows.items()
    }
    return made, upper, int(counts[0].replace(",", ""))


def _rounded(level: float) -> float:
    digits: int = 3 - int(f"{level:e}".partition("e")[2])
    return ceil(level * 10.0**digits * (1 - 1e-12)) / 10.0**digits


def _spread(method: str, forecast: Mapping[str, float], accuracy: Mapping[str, float]) -> dict[str, float]:
    """The wishes by the names of the forecast: one of `_KINDS` that it does not have stands for all of that kind."""
    wanted: dict[str, float] = {}
    for name, x in accuracy.items():
        every = name in _KINDS and name not in forecast
        meant = [one for one in forecast if name == "all" or _kind(method, one) in (name, None)] if every else [name]
        if not meant:
            kinds = list(dict.fromkeys(str(_kind(method, one)) for one in forecast))
            raise PlanError(
                f"{method} forecasts no {name}, but {' and '.join(f'{one}s' for one in kinds)}; write accuracy={{{kinds[0]!r}: ...}} "
                "with a standard error of that"
            )
        for one in meant:
            wanted[one] = min(x, wanted.get(one, inf))
    return wanted


def _kind(method: str, name: str) -> str | None:
    """What a number of a forecast is, of `_KINDS`; None where a forecast is of one kind that has no name."""
    if method == "table_one":
        return next(kind for end, kind in _TABLE_ONE.items() if name.endswith(end))
    return _KIND_OF.get(method)


def _check_names(best: tuple[Plan, dict[str, float], int], accuracy: Mapping[str, float]) -> None:
    for name in accuracy:
        if name not in best[1]:
            raise PlanError(
                f"the forecast has no standard error of {name!r}{near_match(name, tuple(best[1]))}; it has: {', '.join(best[1])}; "
                f"{_EXAMPLE}"
            )


@dataclass(frozen=True, eq=False)
class Precision:
    """Predicted standard errors at several budgets: what precision costs. `to_frame()` and `plot()`.

    levels: mu, or epsilon of a pure method; rows: name -> one (low, high) for each level, equal where the forecast is a number, None where
    no interval is expected.
    """

    kind: str
    levels: tuple[float, ...]
    rows: Mapping[str, tuple[tuple[float, float] | None, ...]]
    n: int

    @classmethod
    def of(cls, plan_at: PlanAt, levels: Sequence[float], kind: str) -> Precision:
        """From a plan at each level."""
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise PlanError(
                f"levels must be numbers, got {levels!r}; write cf.precision(method, schema, n=2000, levels=(0.5, 1.0))"
            )
        levels = tuple(levels)
        rows: dict[str, list[tuple[float, float] | None]] = {}
        n = 0
        for level in levels:
            forecast = plan_at(level).forecast
            counts = [key for key in forecast if key not in BESIDE]
            if not counts:
                raise PlanError("this method forecasts no standard errors, so that there is no table of them")
            n = int(counts[0].replace(",", ""))
            for name, cell in forecast[counts[0]].items():
                rows.setdefault(name, []).append(cell if cell is None or isinstance(cell, tuple) else (cell, cell))
        return cls(kind, levels, {name: tuple(own) for name, own in rows.items()}, n)

    def to_frame(self) -> pd.DataFrame:
        """A row for each level, two columns (low and high) for each number."""
        return pd.DataFrame(
            {
                (name, end): [float("nan") if cell is None else cell[place] for cell in cells]
                for name, cells in self.rows.items()
                for place, end in enumerate(("low", "high"))
            },
            index=pd.Index(self.levels, name=self.kind),
        )

    def summary(self) -> str:
        """The table as text."""
        return f"predicted standard errors of {self.n:,} records by {self.kind}\n{self.to_frame().to_string(float_format='{:.4g}'.format)}"

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Any = None) -> Any:
        """Standard errors against the budget, both on logarithmic axes: a line for each number, a band where it is a range."""
        from matplotlib.figure import Figure

        axes = Figure(figsize=(7, 4.5), layout="constrained").add_subplot() if ax is None else ax
        frame = self.to_frame()
        for name in self.rows:
            low, high = frame[(name, "low")], frame[(name, "high")]
            (line,) = axes.plot(self.levels, high, marker="o", label=name)
            if (low < high).any():
                axes.fill_between(self.levels, low, high, color=line.get_color(), alpha=0.15)
        axes.set(
            xscale="log", yscale="log", xlabel=self.kind, ylabel="predicted standard error", title=f"{self.n:,} records"
        )
        axes.legend()
        return axes
