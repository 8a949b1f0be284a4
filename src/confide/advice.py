"""Which method to expect most of, from public facts alone.

Every candidate is planned and run, with simulated noise, on the scenarios of the forecast (`confide.forecast`), or on public rows that
look like the private ones (`similar_data`), drawn again. Three things are measured. The standard error of each number, with sampling
and privacy noise, is the typical distance from the answer on the whole scenario. The intervals have a width, and a share that contains
the method's own `reference`, which is that answer without privacy. The same errors are found without any privacy noise. The share of
the numbers with intervals is that of the method's own forecast. No record is read and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from confide import engine, registry
from confide._arrays import Array
from confide._helpers import later, near_match
from confide.core import Composed, Event, Method, OpaqueRelease, Plan, Test
from confide.core.allowance import checked_privacy
from confide.core.codec import plain
from confide.errors import ConfideError, FileError, PlanError
from confide.forecast import SCENARIOS, Run, Simulated, run, simulated
from confide.guarantees import GDP, ApproxDP, Guarantee
from confide.guarantees.conversion import bare_words
from confide.guarantees.validation import EXACT, is_whole
from confide.results import Curve, Estimates
from confide.results.pages.content import WITHOUT_NUMBERS
from confide.scenarios import Columns, Scenario, scenarios
from confide.schema import Categorical, Schema
from confide.schema.formulas.names import hidden, sides
from confide.testing.test_data import ZeroNoise

stats = later("scipy.stats")

Progress = Callable[[int, int, str], None]

# A dozen runs know a standard error to about a fifth.
_TELLS = 1.2
# From this share of the scenarios on a method is said to give intervals.
_MOSTLY = 0.8
_NOTHING = "No method is expected to give valid intervals for all numbers here"
_REMEDY = "; more records, fewer terms or a larger budget would help"
# Intervals are to hold in about so many cases; fewer by less chance than this is a miss.
_COVERS, _CHANCE = 0.93, 1e-3

# Records of a scenario that a method is fitted to without privacy.
_PRACTICE = 20_000
# With more records than these, privacy noise only weighs less.
_MOST = 200_000
_MOST_RUNS = 10_000
_QUANTILE = 1.96
# The median size of a standard normal number.
_MIDDLE = 0.6744897501960817
# A budget at which noise does not matter.
_BARE = 1e6
# From which shares on intervals come, and hold, so that their widths say what the errors are.
_NEARLY, _HELD = 0.9, 0.9


@dataclass(frozen=True)
class Task:
    """One kind of question, of which the registered methods with this `task` are the candidates.

    name: of the task; read: (result, points) -> the numbers by name; outcome: how the response is asked for
    (`confide.scenarios.Columns`); of: what it must be, a "number", "classes" or a "curve".
    """

    name: str
    read: Callable[[Any, Sequence[float]], Mapping[str, float]]
    outcome: str = ""
    of: str = "number"

    def candidates(self, formula: str, schema: Schema, n: int) -> list[tuple[type[Method], dict[str, Any]]]:
        """The classes with the settings with which they are compared."""
        points = self.points(formula, schema)
        found = [one for one in registry.classes() if one.task == self.name]
        return [(one, dict(one.proposed(formula, schema, n, points))) for one in found]

    def reference(self, formula: str, schema: Schema, n: int) -> Method:
        """The candidate whose answer without any noise is the target."""
        found = self.candidates(formula, schema, n)
        return next(
            registry.make(one.name, formula=formula, **own, **one.targets)
            for one, own in found
            if one.targets is not None
        )

    def points(self, formula: str, schema: Schema) -> list[float]:
        """Where curves are compared; none in other tasks."""
        return _at(formula, schema) if self.of == "curve" else []

    def columns(self, formula: str, schema: Schema) -> Columns:
        """What a formula is about; `PlanError` where it is of another kind."""
        response, features = _columns(formula, schema)
        classes = isinstance(schema[response], Categorical)
        if self.of == "classes" and not classes:
            raise PlanError(
                f"{response!r} is a number, and classes are the levels of a categorical column", "declare its levels"
            )
        if self.of != "classes" and self.outcome != "two" and classes:
            raise PlanError(
                f"{response!r} is categorical, and this task is about a number; its own task is classification"
            )
        return Columns(tuple(name for name in features if name != response), (response,), self.outcome)


def _params(result: Any, points: Sequence[float]) -> Mapping[str, float]:
    return {str(name): float(value) for name, value in result.params.items()}


def _columns(formula: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The response's column and the columns of the features: the schema's names on the left and the right of the formula."""
    found = [hidden(side, schema.names)[1].values() for side in sides(str(formula))]
    names = [tuple(name for name in side if name in schema.names) for side in found]
    if len(names) != 2 or not names[0]:
        raise PlanError(f"a formula names a response and features of the schema, got {formula!r}", 'write "y ~ a + b"')
    return names[0][0], names[1]


#: Places at which curves are compared, as shares of the feature's range.
_PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)


def _at(formula: str, schema: Schema) -> list[float]:
    name = (_columns(formula, schema)[1] or ("",))[0]
    column = schema[name] if name in schema.names else None
    if column is None or isinstance(column, Categorical):
        raise PlanError(f"a curve has one numeric feature, got {formula!r}", 'write "y ~ x"')
    return [float(column.low + place * (column.high - column.low)) for place in _PLACES]


def _curve(result: Any, points: Sequence[float]) -> Mapping[str, float]:
    return {f"at {x:g}": float(value) for x, value in zip(points, result.predict(points), strict=True)}


TASKS = {
    one.name: one
    for one in (
        Task("linear_regression", _params),
        Task("logistic_regression", _params, outcome="two"),
        Task("poisson_regression", _params, outcome="count"),
        Task("classification", _params, of="classes"),
        Task("kernel_regression", _curve, of="curve"),
    )
}


@dataclass(frozen=True)
class Expectation:
    """What to expect of one method. Numbers that do not exist are NaN.

    Parameters
    ----------
    method : str
        Name of the method.
    settings : str
        Its settings, as text.
    error : tuple of float
        Expected standard errors, one for each number, in the data's units.
    ratio : float
        The same over the least of all methods, as a geometric mean.
    replies : float
        Share of runs that gave numbers.
    tested : bool
        Whether it rests on a noisy test or certificate that may fail.
    intervals : float
        Share of numbers that had an interval.
    problem : str, default ""
        Why it cannot be used.
    coverage : float
        Share of `trials` intervals that contained the method's own reference.
    trials : int, default 0
        Number of intervals.
    width : float
        Width of the intervals, over that of intervals without privacy noise.
    halves : tuple of float, default ()
        Median margins of error, one for each number, in the data's units.
    """

    method: str
    settings: str
    error: tuple[float, ...]
    ratio: float
    replies: float
    tested: bool
    intervals: float
    problem: str = ""
    coverage: float = nan
    trials: int = 0
    width: float = nan
    halves: tuple[float, ...] = ()

    @property
    def misses(self) -> bool:
        """Whether more intervals missed than chance explains: a probability below 0.001 if each held in 0.93 of the cases."""
        hits = round(self.coverage * self.trials) if self.trials else 0
        return bool(self.trials and stats.binom.cdf(hits, self.trials, _COVERS) < _CHANCE)

    @property
    def valid(self) -> bool:
        """Whether a reply with valid intervals is to be expected."""
        return not self.problem and self.replies >= _MOSTLY and self.intervals >= _MOSTLY and not self.misses

    @property
    def score(self) -> float:
        """Errors and, where there are intervals, their width, as a geometric mean."""
        return self.ratio if isnan(self.width) else sqrt(self.ratio * self.width)

    @property
    def label(self) -> str:
        return self.method + (f"({self.settings})" if self.settings else "")


@dataclass(frozen=True)
class Advice:
    """The expectations of all methods, in order. `best` is the method to use.

    Parameters
    ----------
    task : str
        The task.
    formula : str
        The formula.
    n : int
        Number of records.
    privacy : Guarantee
        Cost of the release.
    names : tuple of str
        Names of the numbers.
    without_privacy : tuple of float
        Standard errors that sampling alone leaves.
    expectations : tuple of Expectation
        One for each method, the best first.
    assumes : str
        What the simulation assumes, in words.
    """

    task: str
    formula: str
    n: int
    privacy: Guarantee
    names: tuple[str, ...]
    without_privacy: tuple[float, ...]
    expectations: tuple[Expectation, ...]
    assumes: str

    @property
    def alike(self) -> tuple[Expectation, ...]:
        """The methods that the runs cannot distinguish from the best one, with itself."""
        return _alike(self.expectations)

    @property
    def best(self) -> Expectation:
        """The first method: one with valid intervals, the smallest errors and widths, and no test, where there is one."""
        return self.expectations[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice, and what it says of methods that rest on a test."""
        ranked = [one for one in self.expectations if isfinite(one.ratio)]
        if not ranked:
            return ("No method gives numbers here; ask for fewer terms, more records or a larger budget.",)
        best = self.best
        cost = mean_ratio(best.error, self.without_privacy)
        size = "as large as those without privacy" if cost < 1.1 else f"{cost:.2f} times those without privacy"
        if best.valid:
            said = [f"Take {best.label}: standard errors about {size}{_intervals(best)}."]
        else:
            remedy = _REMEDY if self.task == "linear_regression" else ""
            said = [
                f"{_NOTHING}{remedy}.",
                f"First comes {best.label}: standard errors about {size}{_intervals(best)}.",
            ]
            if best.misses:
                said.append(
                    f"The intervals of {best.label} miss: they held in {best.coverage:.0%} of {best.trials} cases; do not report them."
                )
        sharper = min((one for one in ranked if one is not best), key=lambda one: one.ratio, default=best)
        if best.valid and sharper.ratio * _TELLS < best.ratio:
            why = (
                "its intervals miss"
                if sharper.misses
                else f"it gives intervals for {sharper.intervals:.0%} of the numbers"
            )
            said.append(
                f"{sharper.label} has standard errors {sharper.ratio / best.ratio:.2f} times as large, but {why}."
            )
        others = [one.label for one in self.alike if one is not best]
        if others:
            said.append(f"So many runs cannot tell it from {', '.join(others)}.")
        free = [one for one in ranked if not one.tested]
        for one in (one for one in ranked if one.tested and (one is best or one not in self.alike)):
            if not free or one.ratio < free[0].ratio:
                said.append(
                    f"{one.label} rests on a noisy test and is expected to be better than any method without one."
                )
            else:
                said.append(
                    f"{one.label} rests on a noisy test and is expected to be worse than {free[0].label}, which needs none: "
                    f"standard errors {one.ratio / free[0].ratio:.2f} times as large."
                )
        if best.intervals < _MOSTLY:
            often = (
                "gave no intervals"
                if not best.intervals
                else f"gave intervals in {best.intervals:.0%} of the runs only"
            )
            other = next((one for one in ranked if one.intervals >= _MOSTLY), None)
            held = (
                "" if other is None or not other.misses else f", which held in {other.coverage:.0%} of the cases only"
            )
            said.append(
                f"{best.label} {often}"
                + ("." if other is None else f"; {other.label} gave them in {other.intervals:.0%}{held}.")
            )
        return tuple(said)

    def to_frame(self) -> pd.DataFrame:
        """A table with one row for each method.

        Returns
        -------
        DataFrame
            Columns ratio, replies, tested, intervals, and the expected standard
            error of each number.
        """
        rows = [
            {
                "method": one.label,
                "ratio": one.ratio,
                "replies": one.replies,
                "tested": one.tested,
                "intervals": one.intervals,
                "coverage": one.coverage,
                "width": one.width,
                **dict(zip(self.names, one.error, strict=True)),
                "problem": one.problem,
            }
            for one in self.expectations
        ]
        return pd.DataFrame(rows).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain values of strict JSON. A value that is not finite is None."""
        body = {
            "task": self.task,
            "formula": self.formula,
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "assumes": self.assumes,
            "names": self.names,
            "without_privacy": self.without_privacy,
            "advice": self.sentences,
            "methods": [vars(one) for one in self.expectations],
        }
        return dict(plain(body))

    def __str__(self) -> str:
        width = max(len(one.label) for one in self.expectations) + 2
        shown = self.names[:5]
        cells = [max(len(name), 9) + 2 for name in shown]
        head = f"{'':<{width}}{'ratio':>8}{'replies':>9}{'intervals':>11}{'coverage':>10}{'width':>8}" + "".join(
            f"{name:>{cell}}" for name, cell in zip(shown, cells, strict=True)
        )
        lines = [
            f"{self.task} of {self.formula!r} at {bare_words(self.privacy)}, n = {self.n:,}",
            *self.sentences,
            "",
            head,
        ]
        bare = "".join(f"{v:>{cell}.3g}" for v, cell in zip(self.without_privacy, cells, strict=False))
        lines.append(
            f"{'without privacy':<{width}}{'':>8}{'':>9}{'':>11}{'':>10}{'':>8}{bare}"[: width + 46 + sum(cells)]
        )
        for one in self.expectations:
            if one.problem:
                lines.append(f"{one.label:<{width}}cannot be asked: {one.problem}")
                continue
            errors = "".join(f"{v:>{cell}.3g}" for v, cell in zip(one.error, cells, strict=False))
            covers = "-" if isnan(one.coverage) else f"{one.coverage:.0%}"
            wide = "-" if isnan(one.width) else f"{one.width:.2f}"
            lines.append(
                f"{one.label:<{width}}{one.ratio:>8.2f}{one.replies:>9.0%}{one.intervals:>11.0%}{covers:>10}{wide:>8}{errors}"
            )
        more = f" (the first {len(shown)} of {len(self.names)})" if len(self.names) > len(shown) else ""
        return "\n".join([*lines, "", f"Expected standard errors{more}; {self.assumes}"])


def _intervals(one: Expectation) -> str:
    """What to expect of the intervals, in words."""
    if not one.intervals or isnan(one.width):
        return ""
    covers = "" if isnan(one.coverage) else f", which held in {one.coverage:.0%} of the cases"
    return (
        f", intervals for {one.intervals:.0%} of the numbers, {one.width:.2f} times as wide as without privacy{covers}"
    )


def ranked(found: list[Expectation]) -> tuple[Expectation, ...]:
    """The method to use first, then the others by their errors. One with a test is first only where no other has valid numbers."""
    free = [one for one in found if not (one.tested or one.problem or one.misses) and isfinite(one.ratio)]
    first = min(_alike(free or found) or found, key=lambda one: (sum(_doubts(one)), _doubts(one), one.score))
    return (first, *sorted((one for one in found if one is not first), key=lambda one: one.ratio))


def _alike(found: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """The best methods whose scores the runs cannot distinguish from the least."""
    asked = [one for one in found if not one.problem and isfinite(one.ratio)]
    most = min(map(_rank, asked), default=0)
    pool = [one for one in asked if _rank(one) == most]
    least = min((one.score for one in pool), default=inf)
    return tuple(one for one in pool if one.score <= _TELLS * least)


def _rank(one: Expectation) -> int:
    """0 for a valid method, 1 where its intervals are valid but too few, 2 without any, 3 where they miss."""
    # a wrong interval is worse than none
    return 0 if one.valid else 3 if one.misses else 1 if one.intervals > 0 else 2


def _doubts(one: Expectation) -> tuple[bool, ...]:
    other = "add-remove" in one.settings or "substitute" in one.settings
    return (one.replies < _MOSTLY, one.intervals < _MOSTLY, one.misses, other, one.tested)


def mean_ratio(error: tuple[float, ...], base: tuple[float, ...]) -> float:
    """The geometric mean of the ratios over the numbers that have both; infinite where fewer than half of them do."""
    pairs = [(a, b) for a, b in zip(error, base, strict=True) if isfinite(a) and isfinite(b) and a > 0 and b > 0]
    if 2 * len(pairs) < len(error) or not pairs:
        return inf
    return exp(sum(log(a / b) for a, b in pairs) / len(pairs))


def advise(
    task: str,
    formula: str,
    schema: Schema,
    n: int,
    privacy: Guarantee,
    *,
    similar_data: pd.DataFrame | str | Path | None = None,
    replications: int = SCENARIOS,
    progress: Progress | None = None,
) -> Advice:
    """Compare the methods of a task by simulation, before any budget is used.

    Each method is run on simulated datasets (or on similar public data) with
    the privacy noise of the release. The methods are ranked by their errors and
    the widths of their intervals.

    Parameters
    ----------
    task : {"linear_regression", "logistic_regression", "poisson_regression", "classification", "kernel_regression"}
        The task.
    formula : str
        Formula, as the methods take it.
    schema : Schema
        Public description of the data.
    n : int
        Number of records, or a guess of it.
    privacy : Guarantee
        Cost of the release. Without a relation, that of a plan: add/remove, or
        the method's.
    similar_data : DataFrame, str or Path, optional
        Public rows that look like the private ones, drawn again with
        replacement. By default each run is of another scenario that the schema
        allows. Scenarios are more alike where more columns have a typical range
        (`Typical`).
    replications : int, optional
        Runs of each method. By default as many as the scenarios of a plan's
        forecast, so that both give the same numbers.
    progress : callable, optional
        Called with the number of runs done, their total, and what is run.

    Returns
    -------
    Advice
        The methods in order, `best` first, with their expected standard errors.
        Printing it gives sentences.

    Raises
    ------
    PlanError
        The task, the formula or a number cannot work.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> found = advise("linear_regression", "y ~ x", schema, 2_000, cf.ApproxDP(1.0, 1e-6), replications=3)
    >>> found.best.tested, found.names
    (False, ('Intercept', 'x'))
    """
    if task not in TASKS:
        raise PlanError(f"no task {task!r}{near_match(str(task), tuple(TASKS))}; the tasks are {', '.join(TASKS)}")
    for name, value, most in (("n", n, EXACT), ("replications", replications, _MOST_RUNS)):
        if not is_whole(value, 2, most):
            raise PlanError(f"{name} must be a whole number of at least 2 and at most {most:,}, got {value!r}")
    wanted = checked_privacy(privacy)
    asked = wanted.resolve(wanted.relation or "add-remove")
    kind = TASKS[task]
    columns = kind.columns(formula, schema)
    worlds = tuple(_worlds(columns, schema, similar_data, replications))
    bench = _Bench(kind, formula, schema, min(n, _MOST), asked, worlds, wanted.relation is None)
    # what noise would cost does not matter without any
    bare_bench = replace(bench, privacy=GDP(_BARE, relation=asked.relation))
    truths = tuple(bare_bench.truth(world) for world in worlds)
    bench, bare_bench = replace(bench, truths=truths), replace(bare_bench, truths=truths)
    names = bench.names
    known = kind.candidates(formula, schema, bench.n)
    done, of = 0, (len(known) + 1) * replications

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, of, what)

    bare = _sharpened(bare_bench.measured(bench.reference, step, silent=True))
    found = [bench.expect(method, settings, bare, step) for method, settings in known]
    best = min((one.error for one in found), key=lambda error: mean_ratio(error, bare))
    rated = [replace(one, ratio=mean_ratio(one.error, best)) for one in found]
    records = (
        "scenarios that the schema allows, typical where it says so" if similar_data is None else "public rows given"
    )
    size = len(worlds[0].weights)
    if similar_data is not None and size < bench.n:
        records += f" ({size:,}, fewer than n: single far-out ones among them weigh more, or less, than they will)"
    assumes = f"simulated {replications} times at n = {bench.n:,} on {records}"
    return Advice(task, formula, n, asked, names, bare, ranked(rated), assumes)


def _worlds(columns: Columns, schema: Schema, similar_data: Any, replications: int) -> Iterator[Scenario]:
    """One scenario for each run."""
    if similar_data is None:
        yield from scenarios(schema, columns, replications)
        return
    one = Scenario.of_records(_public(similar_data), schema)
    for k in range(replications):
        yield replace(one, number=k)


@dataclass(frozen=True)
class _Run:
    """One run: numbers and limits by name. There are none without a reply or an interval."""

    numbers: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class _Measured:
    """The runs of one method.

    errors: typical sizes of errors by number; replies, intervals: shares of runs with numbers and of numbers with intervals; coverage:
    of `trials` intervals; halves: median margins of error by number.
    """

    errors: tuple[float, ...]
    replies: float
    intervals: float
    coverage: float
    trials: int
    halves: tuple[float, ...]


@dataclass(frozen=True)
class _Bench:
    """Scenarios of one task, on which methods are run. truths: the numbers of each scenario."""

    task: Task
    formula: str
    schema: Schema
    n: int
    privacy: Guarantee
    worlds: tuple[Scenario, ...]
    open: bool
    truths: tuple[Mapping[str, float], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What is compared."""
        return tuple(dict.fromkeys(name for truth in self.truths for name in truth))

    @property
    def reference(self) -> Method:
        return self.task.reference(self.formula, self.schema, self.n)

    def truth(self, world: Scenario) -> Mapping[str, float]:
        """The numbers of the whole scenario, from so many records that sampling does not matter."""
        source = Simulated.all_of(world)
        plan = self.plan(self.reference, source.count())
        return self.read(run(self.reference, plan, source, ZeroNoise())).numbers

    def read(self, found: Run) -> _Run:
        """The numbers and limits that a task compares."""
        result = found.result
        if result is None or result.status in WITHOUT_NUMBERS:
            return _Run({}, {})
        return _Run(self.task.read(result, self.task.points(self.formula, self.schema)), _limits(result))

    def plan(self, method: Method, n: int) -> Plan:
        """A plan under the asked relation. Where none was asked and the method lacks it, under the method's own."""
        asked = self.privacy
        if self.open and asked.relation not in method.relations:
            asked = replace(asked, relation=method.relations[0])
        return engine.plan(method, self.schema, asked, n=n)

    def measured(self, method: Method, step: Callable[[str], None], *, silent: bool = False) -> _Measured:
        """All runs of a method."""
        errors: list[Array] = []
        halves: list[Array] = []
        held: list[bool] = []
        seen: list[float] = []
        plan = self.plan(method, self.n)
        for world, truth in zip(self.worlds, self.truths, strict=True):
            found = simulated(method, plan, world, self.n, ZeroNoise() if silent else None)
            each = self.read(found)
            errors.append(np.array([each.numbers.get(name, nan) - truth.get(name, nan) for name in self.names]))
            halves.append(
                np.array([(high - low) / 2 for low, high in (each.limits.get(name, (nan, nan)) for name in self.names)])
            )
            own = truth if silent else _reference(method, world) if each.limits else {}
            held += [low <= own[name] <= high for name, (low, high) in each.limits.items() if name in own]
            seen.append(found.seen.answered)
            step(method.name)
        numbers, widths = np.array(errors), np.array(halves)
        return _Measured(
            _typical_size(numbers),
            float(np.isfinite(numbers).any(axis=1).mean()),
            float(np.mean(seen)),
            float(np.mean(held)) if held else nan,
            len(held),
            tuple(_median(column) for column in widths.T),
        )

    def expect(
        self, kind: type[Method], settings: Mapping[str, Any], bare: tuple[float, ...], step: Callable[[str], None]
    ) -> Expectation:
        name, method = kind.name, registry.make(kind.name, formula=self.formula, **settings)
        words = ", ".join(f"{key}={_short(value)}" for key, value in settings.items())
        try:
            plan = self.plan(method, self.n)
        except ConfideError as error:
            for _ in self.worlds:
                step(name)
            return Expectation(name, words, (nan,) * len(self.names), inf, 0.0, False, 0.0, str(error))
        found = self.measured(method, step)
        if plan.relation != self.privacy.relation:
            words = f"{words}, {plan.relation}" if words else plan.relation
        width = mean_ratio(found.halves, tuple(_QUANTILE * error for error in bare))
        return Expectation(
            name,
            words,
            _sharpened(found),
            inf,
            found.replies,
            _rests_on_a_test(plan.event),
            found.intervals,
            coverage=found.coverage,
            trials=found.trials,
            width=width if np.isfinite(width) else nan,
            halves=found.halves,
        )


def _sharpened(found: _Measured) -> tuple[float, ...]:
    """Expected standard errors. So few runs give sizes of errors to about a sixth, and the widths of intervals much better.

    Where nearly all numbers had an interval, and these were valid, each error follows from its width.
    """
    if found.intervals < _NEARLY or not found.coverage >= _HELD:
        return found.errors
    pairs = zip(found.errors, found.halves, strict=True)
    return tuple(half / _QUANTILE if np.isfinite(half) else error for error, half in pairs)


def _reference(method: Method, world: Scenario) -> Mapping[str, float]:
    """What the method's intervals should contain; nothing where only a release determines it."""
    try:
        return method.reference(world.practice(_PRACTICE))
    except ConfideError:
        return {}


def _limits(result: Any) -> dict[str, tuple[float, float]]:
    """The finite intervals of a result, by name."""
    if not isinstance(result, Estimates | Curve) or not result.has_intervals:
        return {}
    limits = result.conf_int()
    rows = zip(limits.index, limits.to_numpy(dtype=float), strict=True)
    return {str(name): (float(low), float(high)) for name, (low, high) in rows if np.isfinite(low + high)}


def _typical_size(errors: Array) -> tuple[float, ...]:
    """The SD of a normal distribution with the median size of the finite errors of each number: scenarios differ, and few errors are
    extreme.
    """
    return tuple(_median(np.abs(column)) / _MIDDLE for column in errors.T)


def _median(values: Array) -> float:
    found = values[np.isfinite(values)]
    return float(np.median(found)) if found.size else nan


def _rests_on_a_test(event: Event) -> bool:
    match event:
        case Test():
            return True
        case Composed(parts):
            return any(map(_rests_on_a_test, parts))
        case OpaqueRelease(_, guarantee, _):
            return isinstance(guarantee, GDP | ApproxDP) and guarantee.delta > 0 and "test" in event.proof
        case _:
            return False


def _short(value: Any) -> str:
    """A setting as a label shows it: a number to four digits, a list by its length."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"({len(value)})" if isinstance(value, list) else repr(value)


def _public(similar_data: Any) -> pd.DataFrame:
    """Public rows as a frame."""
    if isinstance(similar_data, str | Path):
        path = Path(similar_data)
        try:
            return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        except (OSError, ValueError):
            raise FileError(
                f"similar_data={str(similar_data)!r} cannot be read as CSV or Parquet", "give a path to public rows"
            ) from None
    if not isinstance(similar_data, pd.DataFrame) or not len(similar_data):
        raise PlanError(
            f"similar_data takes public rows, a frame or a path, got {type(similar_data).__name__}",
            "leave it out for simulated records",
        )
    return similar_data
