"""Precision first: the smallest budget whose forecast is as precise as asked, and the precision of each budget.

`margin` names margins of error (half of a 95% interval), in the units of the numbers. `cv` names standard errors relative to the
numbers.

Everything here follows from forecasts, which follow from public facts and a number of records that the caller gives. **A budget that
was chosen from n reveals n**: anyone who plans so declares that n is public. A wrong guess changes the width, never the privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf, log
from typing import TYPE_CHECKING, Any

from confide._helpers import later, near_match
from confide.core import Method, Plan
from confide.core.plan import BESIDE
from confide.errors import ConfideError, PlanError
from confide.guarantees.validation import is_finite, is_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


# Levels of mu or epsilon that are tried; beyond the largest, privacy protects nobody.
_LEAST, MOST = 1e-3, 64.0
# Half of a normal 95 % interval, in standard errors.
_Z = 1.959963984540054
# The level is found to this factor, and is then rounded up to four digits.
_CLOSE = 1.005
# Of the numbers of all scenarios that a forecast is of, so many must have an interval for its standard errors to count.
_ANSWERED = 0.5
_EXAMPLE = 'write cf.plan(method, schema, margin={"all": 0.02}, n=5000)'
_RELATIVE = "write cf.plan(method, schema, cv=0.02, n=5000)"
# What stands for every number of its kind in a forecast (`Method.numbers`); of a method that names no kind for every number.
_KINDS = ("count", "share", "mean", "quantile", "all")

PlanAt = Callable[[float], Plan]


@dataclass(frozen=True)
class Targets:
    """How precise a release must be, by the names of its forecast. A name may have both.

    margin: margins of error (half of a 95% interval), in the units of the number; cv: standard errors over the number, 0.02 for 2%.
    """

    margin: Mapping[str, float] = field(default_factory=dict)
    cv: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, margin: Any = None, cv: Any = None, privacy: Any = None, n: Any = None) -> Targets:
        """From what was given; `PlanError` for anything else, beside a privacy, and without n.

        margin: name -> margin of error; cv: name -> relative standard error, or one number for all.
        """
        name = "margin" if margin is not None else "cv"
        example = _EXAMPLE if margin is not None else _RELATIVE
        own = {key: x for key, x in (("margin", margin), ("cv", cv)) if _positive(x) or (key == "cv" and is_number(x))}
        if privacy is not None:
            raise PlanError(
                f"{name} states how precise a release must be, and privacy what it may cost; give one of them",
                f"{example}",
            )
        if n is None:
            raise PlanError(
                f"{name} needs n, the number of records that the forecast is for, which then counts as public; "
                + (_call(own, 5000) if own else example)
            )
        if is_number(cv):
            cv = {"all": cv}
        if margin is not None and not _positive(margin):
            relative = isinstance(margin, Mapping) and any("%" in str(x) for x in margin.values())
            raise PlanError(
                "margin takes margins of error (half of a 95% interval) above 0, in the units of the numbers, by the plan's "
                f"names, got {margin!r}; "
                + (f"a standard error relative to the number is a cv: {_RELATIVE}" if relative else _EXAMPLE)
            )
        if cv is not None and not _positive(cv):
            raise PlanError(
                "cv names standard errors over the numbers, above 0 (0.02 for 2%), by the names of the plan's forecast, or is one for "
                f"all, got {cv!r}",
                f"{_RELATIVE}",
            )
        return cls(*({str(key): float(x) for key, x in (given or {}).items()} for given in (margin, cv)))


def _positive(given: Any) -> bool:
    return isinstance(given, Mapping) and bool(given) and all(is_finite(x) and x > 0 for x in given.values())


def smallest(plan_at: PlanAt, targets: Targets, method: Method) -> tuple[Plan, tuple[str, ...]]:
    """(the plan at the smallest level whose forecast is as precise as asked, what its reader must know); of a range its upper end counts.

    method: what is planned for, which states what its numbers are.

    Raises `PlanError` for names that the forecast does not have and for a cv of a number that public facts do not tell. Raises it where
    no level is enough, with what the largest one is expected to give.
    """
    best = _Reached.at(plan_at, MOST, method)
    wished = _wished(best, targets)
    for name, (error, relative) in wished.items():
        if best.errors[name] > error:
            raise PlanError(_beyond(best, name, error, _nearest(best, targets), relative=relative))
    low, high, made = _LEAST, MOST, best
    while high > low * _CLOSE:
        middle = exp((log(low) + log(high)) / 2)
        tried = _Reached.at(plan_at, middle, method)
        if all(tried.errors.get(name, inf) <= error for name, (error, _) in wished.items()):
            high, made = middle, tried
        else:
            low = middle
    return made.plan, (_TELLS_OF_N, *_uneven(made, wished))


_TELLS_OF_N = "margin: the budget was chosen for the number of records given, and tells of it; that number counts as public by your word"


@dataclass(frozen=True)
class _Reached:
    """A plan, the upper ends of its standard errors, for how many records, and the numbers that public facts tell."""

    plan: Plan
    method: Method
    errors: Mapping[str, float] = field(default_factory=dict)
    n: int = 0
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def at(cls, plan_at: PlanAt, level: float, method: Method) -> _Reached:
        """At a level rounded up to four digits; without errors where no plan can be made."""
        try:
            made = plan_at(rounded(level))
        except ConfideError:
            if level >= MOST / 2:
                raise
            return cls(plan_at(MOST), method)
        counts = [key for key in made.forecast if key not in BESIDE]
        if not counts:
            raise PlanError(
                f"{made.method.name} forecasts no standard errors, so that no precision can be planned",
                "give privacy=cf.GDP(...)",
            )
        rows = made.forecast[counts[0]]
        # what is told in the few scenarios that are answered at all is no forecast of a release
        if made.forecast.get("answered", {}).get(counts[0], 1.0) < _ANSWERED:
            rows = dict.fromkeys(rows)
        upper = {
            name: inf if cell is None else float(max(cell) if isinstance(cell, tuple) else cell)
            for name, cell in rows.items()
        }
        known = made.forecast.get("value", {}).get(counts[0], {})
        return cls(made, method, upper, int(counts[0].replace(",", "")), known)

    def taken(self, name: str) -> str:
        """What the forecast of a number rests on, where the schema does not tell it."""
        rows = self.plan.forecast[next(key for key in self.plan.forecast if key not in BESIDE)]
        wide = "the upper end of the range for what the schema allows" if isinstance(rows.get(name), tuple) else ""
        said = self.plan.forecast.get("taken") or wide
        return f" ({said})" if said else ""


def rounded(level: float, figures: int = 4) -> float:
    """Up to so many figures."""
    digits: int = figures - 1 - int(f"{level:e}".partition("e")[2])
    return ceil(level * 10.0**digits * (1 - 1e-12)) / 10.0**digits


def _wished(best: _Reached, targets: Targets) -> dict[str, tuple[float, bool]]:
    """By the names of the forecast: the standard error that is wished for, and whether as a cv."""
    found: dict[str, tuple[float, bool]] = {}
    for name, half in _spread(best, targets.margin, "margin").items():
        found[name] = half / _Z, False
    for name, cv in _spread(best, targets.cv, "cv").items():
        value = abs(best.values.get(name, 0.0))
        if not value:
            where = ", or declare where the values of its column lie, typical=(low, high) in the schema"
            kind = _kind(best.method, name)
            where = where if kind == "mean" or (kind is None and best.method.extensive) else ""
            raise PlanError(
                f"a cv is relative to the number itself, and public facts do not tell {name!r}; "
                f"{_call({'margin': {name: _reachable(best, [name], 'margin', 0.02)}}, best.n)}, a margin of error{where}"
            )
        found[name] = min((cv * value, True), found.get(name, (inf, True)))
    return found


def _spread(best: _Reached, wishes: Mapping[str, float], option: str) -> dict[str, float]:
    """The wishes by the names of the forecast: one of `_KINDS` that it does not have stands for all of that kind."""
    method, forecast = best.method, best.errors
    wanted: dict[str, float] = {}
    for name, x in wishes.items():
        every = name in _KINDS and name not in forecast
        meant = [one for one in forecast if name == "all" or _kind(method, one) in (name, None)] if every else [name]
        if not meant:
            kinds = list(dict.fromkeys(str(_kind(method, one)) for one in forecast))
            names = [one for one in forecast if _kind(method, one) == kinds[0]]
            raise PlanError(
                f"{method.name} forecasts no {name}, but {' and '.join(f'{one}s' for one in kinds)}; "
                + _call({option: {kinds[0]: _reachable(best, names, option, 0.05)}}, best.n)
            )
        for one in meant:
            if one not in forecast:
                raise PlanError(
                    f"the forecast has no standard error of {one!r}{near_match(one, tuple(forecast))}; it has: {', '.join(forecast)}; "
                    + _call({option: {"all": _reachable(best, list(forecast), option, x)}}, best.n)
                )
            wanted[one] = min(x, wanted.get(one, inf))
    return wanted


def _kind(method: Method, name: str) -> str | None:
    """What a number of a forecast is, of `_KINDS`; None where a forecast is of one kind that has no name."""
    return next((kind for end, kind in method.numbers.items() if name.endswith(end)), None)


def _call(targets: Mapping[str, Any], n: int) -> str:
    return f"write {', '.join(f'{option}={dict(x) if isinstance(x, Mapping) else x!r}' for option, x in targets.items())}, n={n}"


def _nearest(best: _Reached, targets: Targets) -> dict[str, dict[str, float]]:
    """The targets that these records reach at any budget; empty where one of them reaches no interval at all."""
    found: dict[str, dict[str, float]] = {}
    for option, wishes in (("margin", targets.margin), ("cv", targets.cv)):
        for key, x in wishes.items():
            names = list(_spread(best, {key: x}, option))
            if any(best.errors[name] == inf for name in names):
                return {}
            found.setdefault(option, {})[key] = _reachable(best, names, option, x)
    return found


def _reachable(best: _Reached, names: Sequence[str], option: str, x: float) -> float:
    """The target for these numbers, or what these records reach at any budget where that is wider."""
    least = 0.0
    for name in names:
        value = abs(best.values.get(name, 0.0))
        least = max(least, best.errors[name] * (_Z if option == "margin" else 1 / value if value else 0.0))
    return x if least <= x or least == inf else rounded(least * (1 + 1e-9))


def _beyond(
    best: _Reached, name: str, error: float, nearest: Mapping[str, Mapping[str, float]], *, relative: bool
) -> str:
    asked, found = (_shown(one, best.values.get(name), relative=relative) for one in (error, best.errors[name]))
    least = "no interval is expected" if best.errors[name] == inf else f"at least {found} is expected{best.taken(name)}"
    return (
        f"a {'cv' if relative else 'margin of error'} of {asked} for {name!r} cannot be reached with {best.n:,} records at any budget: "
        f"{least}; " + (_call(nearest, best.n) if nearest else "ask for fewer cells, or for more records")
    )


def _shown(error: float, value: float | None, *, relative: bool) -> str:
    """A standard error as it was asked for: as a margin of error, or in percent of the number."""
    return f"{error / abs(value):.3g}" if relative and value else f"{_Z * error:.4g}"


def _uneven(made: _Reached, wished: Mapping[str, tuple[float, bool]]) -> tuple[str, ...]:
    """What cells get that are not as large as the forecast has them: of the wish that is missed most, if any is."""
    count = next(key for key in made.plan.forecast if key not in BESIDE)
    cells = made.plan.forecast.get("uneven", {}).get(count, {})
    missed, note = 1.001, ""
    for name, (error, relative) in wished.items():
        value = made.values.get(name)
        for words, one, own in cells.get(name, ()):
            times = one / error * (abs(value / own) if relative and value and own else 1.0)
            if times > missed:
                missed, note = (
                    times,
                    f"margin: the forecast has cells of equal size; of {name}, {words} gets a {'cv' if relative else 'margin of error'} of "
                    f"about {_shown(one, own, relative=relative)} where {_shown(error, value, relative=relative)} was asked for",
                )
    return (note,) if note else ()


@dataclass(frozen=True, eq=False)
class MarginsByCost:
    """Expected standard errors at several budgets.

    Parameters
    ----------
    kind : str
        What the levels are.
    levels : tuple of float
        mu, or epsilon of a pure method.
    rows : mapping of str to tuple
        For each number one (low, high) at each level, equal where the forecast
        is a number. None where no interval is expected.
    n : int
        Number of records.
    """

    kind: str
    levels: tuple[float, ...]
    rows: Mapping[str, tuple[tuple[float, float] | None, ...]]
    n: int

    @classmethod
    def of(cls, plan_at: PlanAt, levels: Sequence[float], kind: str) -> MarginsByCost:
        """From a plan at each level."""
        if isinstance(levels, str) or not isinstance(levels, Iterable):
            raise PlanError(
                f"levels must be numbers, got {levels!r}",
                "write cf.margins_by_cost(method, schema, n=2000, levels=(0.5, 1.0))",
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
        """The expected standard errors as a frame.

        Returns
        -------
        DataFrame
            One row for each level, and two columns (low and high) for each
            number.
        """
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
        return f"expected standard errors of {self.n:,} records by {self.kind}\n{self.to_frame().to_string(float_format='{:.4g}'.format)}"

    def __str__(self) -> str:
        return self.summary()

    def plot(
        self, ax: Axes | None = None, *, title: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Axes:
        """Draw expected standard errors against the budget, on log axes.

        Each number is a line, with a band where the schema allows a range.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. A new figure is made when left out.
        title : str, optional
            Title instead of the number of records.
        labels : mapping of str to str, optional
            Words instead of the names of numbers, such as ``{"mean": "Mean income"}``.

        Returns
        -------
        matplotlib Axes
            The axes, whose ``figure`` is the picture.

        Raises
        ------
        PlanError
            For labels of numbers that are not there.
        """
        from matplotlib.figure import Figure

        from confide.results.pages.content import LITERAL, folded
        from confide.results.pages.plots import LINE_COLORS, MARKS

        labels = labels or {}
        unknown = [name for name in labels if name not in self.rows]
        if unknown:
            raise PlanError(
                f"labels must be of {', '.join(self.rows)}, got {unknown[0]!r}",
                f"write plot(labels={{{next(iter(self.rows))!r}: ...}})",
            )
        axes = Figure(figsize=(7, 4.5), layout="constrained").add_subplot() if ax is None else ax
        frame = self.to_frame()
        for place, name in enumerate(self.rows):
            low, high = frame[(name, "low")], frame[(name, "high")]
            color, mark = LINE_COLORS[place % len(LINE_COLORS)], MARKS[place % len(MARKS)]
            axes.plot(self.levels, high, color=color, marker=mark, label=folded(labels.get(name, name)))
            if (low < high).any():
                axes.fill_between(self.levels, low, high, color=color, alpha=0.15)
        axes.set(xscale="log", yscale="log", xlabel=self.kind, ylabel="expected standard error")
        axes.set_xticks(self.levels, [f"{level:g}" for level in self.levels])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        for form in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            form(lambda value, _: f"{value:,.6g}")
        axes.set_title(folded(title or f"{self.n:,} records", 70), loc="left", fontsize="medium", **LITERAL)
        if len(self.rows) > 1:
            for text in axes.legend(frameon=False).get_texts():
                text.set_parse_math(False)
        return axes
