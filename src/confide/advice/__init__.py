"""Which method to expect most of, from public facts alone.

Every candidate is planned and run, with simulated noise, on practice records: drawn from the schema with a planted relation, or drawn
again from public records that look like the private ones (`like`). What is predicted is the standard error of each number, sampling and
privacy noise together, as the root mean square distance from the answer on the whole practice population; beside it the same without
any privacy noise. No record is read and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide import gate, registry
from confide.advice.expectation import Advice, Expectation, mean_ratio
from confide.advice.tasks import TASKS, Task
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, Guarantee
from confide.noise import SimulatedNoise
from confide.protocol import Event, Method, Opaque, Plan, Release, Test, Together
from confide.protocol.allowance import checked_privacy
from confide.results.words import WITHOUT_NUMBERS
from confide.schema import Schema
from confide.schema.schema import near_match
from confide.sources import read
from confide.testing.practice import ZeroNoise

__all__ = ["TASKS", "Advice", "Expectation", "advise"]

Array = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

_POPULATION = 100_000
# With more records than these, privacy noise only weighs less.
_MOST = 200_000
_SEED = 20260103


def advise(
    task: str,
    formula: str,
    schema: Schema,
    n: int,
    privacy: Guarantee,
    *,
    like: pd.DataFrame | str | Path | None = None,
    replications: int = 12,
    progress: Progress | None = None,
) -> Advice:
    """Which method to expect most of for a task, at n records and a price, by simulation on practice records.

    task: one of `TASKS`; formula: as the methods take it; n: the number of records, or a guess of it; privacy: what the release may
    cost; its relation is "substitute" when it is left open, but for methods that do not have it. like: public records (a frame, or a path)
    columns that look like the private ones, of which practice records are drawn with replacement; without them features are even within
    their bounds and the response follows a planted relation. replications: runs of each method.

    Raises `PlanError` for a task, formula or number that cannot work.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3)})
    >>> found = advise("linear_regression", "y ~ x", schema, 2_000, cf.ApproxDP(1.0, 1e-6), replications=3)
    >>> found.best.tested, found.names
    (False, ('Intercept', 'x'))
    """
    if task not in TASKS:
        raise PlanError(f"no task {task!r}{near_match(str(task), tuple(TASKS))}; the tasks are {', '.join(TASKS)}")
    for name, value, least in (("n", n, 2), ("replications", replications, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PlanError(f"{name} must be a whole number of at least {least}, got {value!r}")
    wanted = checked_privacy(privacy)
    asked = wanted.resolve(wanted.relation or "substitute")
    # not the stream of the practice records: its numbers would be theirs again
    kind, generator = TASKS[task], np.random.Generator(np.random.PCG64([_SEED, 1, 1]))
    population = schema.sample(_POPULATION, _SEED) if like is None else _public(like)
    if like is None:
        population = kind.plant(population, formula, schema, generator)
    bench = _Bench(kind, formula, schema, min(n, _MOST), asked, population, replications, wanted.relation is None)
    bare_bench = replace(
        bench, privacy=GDP(1.0, relation=asked.relation)
    )  # what noise would cost does not matter without any
    truth = bare_bench.numbers(bench.reference, population, ZeroNoise())
    names = tuple(truth)
    known = [(name, settings) for name, settings in bench.candidates if name in registry.known()]
    done, of = 0, (len(known) + 1) * replications

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, of, what)

    bare = bare_bench.error(bench.reference, truth, step, silent=True)[0]
    found = [bench.expect(name, settings, truth, step) for name, settings in known]
    best = min(found, key=lambda one: mean_ratio(one.error, bare))
    ranked = sorted((replace(one, ratio=mean_ratio(one.error, best.error)) for one in found), key=lambda one: one.ratio)
    records = (
        "public records given"
        if like is not None
        else "records even within the schema's bounds, with a planted relation"
    )
    assumes = f"simulated {replications} times at n = {bench.n:,} on {records}"
    return Advice(task, formula, n, asked, names, tuple(bare), tuple(ranked), assumes)


@dataclass
class _Bench:
    """Practice records of one task, on which methods are run."""

    task: Task
    formula: str
    schema: Schema
    n: int
    privacy: Guarantee
    population: pd.DataFrame
    replications: int
    open: bool

    @property
    def reference(self) -> Method:
        name, settings = self.task.reference or self.candidates[0]
        return registry.make(name, formula=self.formula, **settings)

    @property
    def candidates(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        return self.task.candidates(self.formula, self.schema, self.n)

    def samples(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """The same records for every method."""
        for seed in range(self.replications):
            generator = np.random.Generator(np.random.PCG64([_SEED, seed]))
            yield seed, self.population.iloc[generator.integers(0, len(self.population), self.n)]

    def numbers(self, method: Method, frame: pd.DataFrame, noise: Any) -> Mapping[str, float]:
        """The numbers of one run, none without a reply."""
        return self.run(method, frame, noise)[0]

    def run(self, method: Method, frame: pd.DataFrame, noise: Any) -> tuple[Mapping[str, float], bool]:
        """The numbers, and whether they have intervals."""
        plan = self.plan(method, len(frame))
        done: Release = gate.release(plan, read(frame, self.schema), ledger=None, noise=noise)
        if done.status != "released":
            return {}, False
        result = method.infer(done)
        if result.status in WITHOUT_NUMBERS:
            return {}, False
        return self.task.read(result, self.formula, self.schema), bool(getattr(result, "has_intervals", False))

    def plan(self, method: Method, n: int) -> Plan:
        """Under the asked relation; where it was left open and the method does not have it, under the method's own."""
        asked = self.privacy
        if self.open and asked.relation not in method.relations:
            asked = replace(asked, relation=method.relations[0])
        return gate.plan(method, self.schema, asked, n=n)

    def error(
        self, method: Method, truth: Mapping[str, float], step: Callable[[str], None], *, silent: bool = False
    ) -> tuple[tuple[float, ...], float, float]:
        """Root mean square errors of each number over the runs with numbers, and the shares of runs with numbers and with intervals."""
        found, intervals = [], 0
        for seed, frame in self.samples():
            noise = ZeroNoise() if silent else SimulatedNoise(_SEED + seed)
            numbers, has = self.run(method, frame, noise)
            intervals += has
            values = np.array([numbers.get(name, nan) for name in truth])
            if np.isfinite(values).all():
                found.append(values - np.array(list(truth.values())))
            step(method.name)
        if not found:
            return (nan,) * len(truth), 0.0, 0.0
        return (
            tuple(np.sqrt((np.array(found) ** 2).mean(axis=0)).tolist()),
            len(found) / self.replications,
            intervals / self.replications,
        )

    def expect(
        self, name: str, settings: Mapping[str, Any], truth: Mapping[str, float], step: Callable[[str], None]
    ) -> Expectation:
        method = registry.make(name, formula=self.formula, **settings)
        words = ", ".join(f"{key}={_short(value)}" for key, value in settings.items())
        try:
            plan = self.plan(method, self.n)
        except ConfideError as error:
            for _ in range(self.replications):
                step(name)
            return Expectation(name, words, (nan,) * len(truth), inf, 0.0, False, 0.0, str(error))
        errors, replies, intervals = self.error(method, truth, step)
        if plan.relation != self.privacy.relation:
            words = f"{words}, {plan.relation}" if words else plan.relation
        return Expectation(name, words, errors, inf, replies, _rests_on_a_test(plan.event), intervals)


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
