"""Which method to expect most of, from public facts alone.

Every candidate is planned and run, with simulated noise, on the scenarios of the forecast (`confide.forecast`), or on public records that
look like the private ones (`like`), drawn again. What is predicted is the standard error of each number, sampling and privacy noise
together, as the typical distance from the answer on the whole scenario; how wide the intervals are, and how often they hold the method's
own `reference`, which is that answer without privacy; and the same errors without any privacy noise. The share of the numbers with
intervals is that of the method's own forecast. No record is read and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from confide import gate, registry
from confide._arrays import Array
from confide._text import near_match
from confide.advice.expectation import Advice, Expectation, mean_ratio, ranked
from confide.advice.tasks import TASKS, Task
from confide.errors import ConfideError, PlanError
from confide.forecast import SCENARIOS, Run, Simulated, run, simulated
from confide.guarantees import GDP, Guarantee
from confide.guarantees.validation import EXACT, is_whole
from confide.protocol import Event, Method, Opaque, Plan, Test, Together
from confide.protocol.spending.allowance import checked_privacy
from confide.results.pages.words import WITHOUT_NUMBERS
from confide.scenarios import Columns, Scenario, scenarios
from confide.schema import Schema
from confide.testing.practice import ZeroNoise

__all__ = ["TASKS", "Advice", "Expectation", "advise"]

Progress = Callable[[int, int, str], None]

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


def advise(
    task: str,
    formula: str,
    schema: Schema,
    n: int,
    privacy: Guarantee,
    *,
    like: pd.DataFrame | str | Path | None = None,
    replications: int = SCENARIOS,
    progress: Progress | None = None,
) -> Advice:
    """Which method to expect most of for a task, at n records and a price, by simulation on practice records.

    task: one of `TASKS`; formula: as the methods take it; n: the number of records, or a guess of it; privacy: what the release may
    cost; its relation is that of a plan when it is left open: "add-remove", or the method's own. like: public records (a frame, or a path)
    that look like the private ones, which are drawn again with replacement; without them each run is of another scenario that the schema
    allows, and these are the more alike the more columns state what is `typical`. replications: runs of each method; by default those of
    a plan's forecast, so that both say the same.

    Raises `PlanError` for a task, formula or number that cannot work.

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
    worlds = tuple(_worlds(columns, schema, like, replications))
    bench = _Bench(kind, formula, schema, min(n, _MOST), asked, worlds, wanted.relation is None)
    # what noise would cost does not matter without any
    bare_bench = replace(bench, privacy=GDP(_BARE, relation=asked.relation))
    truths = tuple(bare_bench.truth(world) for world in worlds)
    bench, bare_bench = replace(bench, truths=truths), replace(bare_bench, truths=truths)
    names = bench.names
    known = [(name, settings) for name, settings in bench.candidates if name in registry.known()]
    done, of = 0, (len(known) + 1) * replications

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, of, what)

    bare = _sharpened(bare_bench.measured(bench.reference, step, silent=True))
    found = [bench.expect(name, settings, bare, step) for name, settings in known]
    best = min((one.error for one in found), key=lambda error: mean_ratio(error, bare))
    rated = [replace(one, ratio=mean_ratio(one.error, best)) for one in found]
    records = "scenarios that the schema allows, typical where it says so" if like is None else "public records given"
    size = len(worlds[0].weights)
    if like is not None and size < bench.n:
        records += f" ({size:,}, fewer than n: single far-out ones among them weigh more, or less, than they will)"
    assumes = f"simulated {replications} times at n = {bench.n:,} on {records}"
    return Advice(task, formula, n, asked, names, bare, ranked(rated), assumes)


def _worlds(columns: Columns, schema: Schema, like: Any, replications: int) -> Iterator[Scenario]:
    """One for each run."""
    if like is None:
        yield from scenarios(schema, columns, replications)
        return
    one = Scenario.of_records(_public(like), schema)
    for k in range(replications):
        yield replace(one, number=k)


@dataclass(frozen=True)
class _Run:
    """Of one run: numbers and limits by name, none where there is no reply or no interval."""

    numbers: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class _Measured:
    """Typical sizes of errors by number; the shares of runs with numbers and of numbers with intervals; coverage of how many intervals;
    median half-widths of the intervals by number.
    """

    errors: tuple[float, ...]
    replies: float
    intervals: float
    coverage: float
    trials: int
    halves: tuple[float, ...]


@dataclass(frozen=True)
class _Bench:
    """Scenarios of one task, on which methods are run. truths: the numbers on each of the worlds."""

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
        name, settings = self.task.reference or self.candidates[0]
        return registry.make(name, formula=self.formula, **settings)

    @property
    def candidates(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return self.task.candidates(self.formula, self.schema, self.n)

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
        return _Run(self.task.read(result, self.formula, self.schema), _limits(result))

    def plan(self, method: Method, n: int) -> Plan:
        """Under the asked relation; where it was left open and the method does not have it, under the method's own."""
        asked = self.privacy
        if self.open and asked.relation not in method.relations:
            asked = replace(asked, relation=method.relations[0])
        return gate.plan(method, self.schema, asked, n=n)

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
        self, name: str, settings: Mapping[str, Any], bare: tuple[float, ...], step: Callable[[str], None]
    ) -> Expectation:
        method = registry.make(name, formula=self.formula, **settings)
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
    """Predicted standard errors: sizes of errors in so few runs as are made are known to a sixth, the widths of intervals much better.

    Where nearly all numbers had an interval, and these held, each is what its width says.
    """
    if found.intervals < _NEARLY or not found.coverage >= _HELD:
        return found.errors
    pairs = zip(found.errors, found.halves, strict=True)
    return tuple(half / _QUANTILE if np.isfinite(half) else error for error, half in pairs)


def _reference(method: Method, world: Scenario) -> Mapping[str, float]:
    """What the method's intervals are to hold; nothing where only a release determines it."""
    try:
        return method.reference(world.practice(_PRACTICE))
    except ConfideError:
        return {}


def _limits(result: Any) -> dict[str, tuple[float, float]]:
    """The finite intervals of a result, by name."""
    if not getattr(result, "has_intervals", False) or not hasattr(result, "conf_int"):
        return {}
    limits = result.conf_int()
    rows = zip(limits.index, limits.to_numpy(dtype=float), strict=True)
    return {str(name): (float(low), float(high)) for name, (low, high) in rows if np.isfinite(low + high)}


def _typical_size(errors: Array) -> tuple[float, ...]:
    """The sd of a normal distribution with the median size of the finite errors of each number: worlds differ, and few are far out."""
    return tuple(_median(np.abs(column)) / _MIDDLE for column in errors.T)


def _median(values: Array) -> float:
    found = values[np.isfinite(values)]
    return float(np.median(found)) if found.size else nan


def _rests_on_a_test(event: Event) -> bool:
    match event:
        case Test():
            return True
        case Together(parts):
            return any(map(_rests_on_a_test, parts))
        case Opaque(_, guarantee, _):
            return getattr(guarantee, "delta", 0.0) > 0 and "test" in event.proof
        case _:
            return False


def _short(value: Any) -> str:
    """A setting as a label shows it: a number to four digits, a list by its length."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"({len(value)})" if isinstance(value, list) else repr(value)


def _public(like: Any) -> pd.DataFrame:
    """Public records as a frame."""
    if isinstance(like, str | Path):
        path = Path(like)
        try:
            return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        except (OSError, ValueError):
            raise PlanError(
                f"like={str(like)!r} cannot be read as CSV or Parquet; give a path to public records"
            ) from None
    if not isinstance(like, pd.DataFrame) or not len(like):
        raise PlanError(
            f"like takes public records, a frame or a path, got {type(like).__name__}; leave it out for synthetic records"
        )
    return like
