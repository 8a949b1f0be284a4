"""Which method to expect most of, from public facts alone.

Every candidate is planned and run, with simulated noise, on practice records: drawn from the schema with a planted relation, or drawn
again from public records that look like the private ones (`like`). What is predicted is the standard error of each number, sampling and
privacy noise together, as the root mean square distance from the answer on the whole practice population; beside it the same without
any privacy noise. No record is read and nothing is charged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide import gate, registry
from confide.errors import ConfideError, PlanError
from confide.guarantees import Guarantee
from confide.noise import SimulatedNoise
from confide.protocol import Event, Method, Opaque, Plan, Release, Test, Together
from confide.protocol.allowance import checked_privacy
from confide.schema import Categorical, Schema
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


@dataclass(frozen=True)
class Expectation:
    """What to expect of one method. error: predicted standard errors, one for each number, in the data's units, all NaN where there
    are none; ratio: the same over the best method's, as a geometric mean; replies: the share of runs that gave numbers; tested: whether
    it rests on a private test or certificate that may fail; intervals: whether it gives any; problem: why it cannot be asked.
    """

    method: str
    settings: str
    error: tuple[float, ...]
    ratio: float
    replies: float
    tested: bool
    intervals: bool
    problem: str = ""

    @property
    def label(self) -> str:
        return self.method + (f"({self.settings})" if self.settings else "")


@dataclass(frozen=True)
class Advice:
    """Expectations, best first. `print(advice)` says them in words; `best` is the method to take.

    names: what the predicted standard errors are of; without_privacy: the standard errors that sampling alone leaves.
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
    def best(self) -> Expectation:
        return self.expectations[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice, and what it says of methods that rest on a test."""
        ranked = [one for one in self.expectations if isfinite(one.ratio)]
        if not ranked:
            return ("No method gives numbers here; ask for fewer terms, more records or a larger budget.",)
        best = ranked[0]
        cost = _mean_ratio(best.error, self.without_privacy)
        said = [f"Take {best.label}: standard errors about {cost:.2f} times those without privacy."]
        free = [one for one in ranked if not one.tested]
        for one in (one for one in ranked if one.tested):
            if not free or one.ratio < free[0].ratio:
                said.append(
                    f"{one.label} rests on a private test and is expected to be better than any method without one."
                )
            else:
                said.append(
                    f"{one.label} rests on a private test and is expected to be worse than {free[0].label}, which needs none: "
                    f"standard errors {one.ratio / free[0].ratio:.2f} times as large."
                )
        if not best.intervals:
            with_intervals = next((one for one in ranked if one.intervals), None)
            if with_intervals is not None:
                said.append(f"{best.label} gives no intervals; of those that do, take {with_intervals.label}.")
        return tuple(said)

    def to_frame(self) -> pd.DataFrame:
        """One row for each method: ratio, replies, tested, intervals, and the predicted standard error of each number."""
        rows = [
            {
                "method": one.label,
                "ratio": one.ratio,
                "replies": one.replies,
                "tested": one.tested,
                "intervals": one.intervals,
                **dict(zip(self.names, one.error, strict=True)),
                "problem": one.problem,
            }
            for one in self.expectations
        ]
        return pd.DataFrame(rows).set_index("method")

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; what is not finite is None."""
        return {
            "task": self.task,
            "formula": self.formula,
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "assumes": self.assumes,
            "names": list(self.names),
            "without_privacy": [_plain(v) for v in self.without_privacy],
            "advice": list(self.sentences),
            "methods": [
                {**vars(one), "error": [_plain(v) for v in one.error], "ratio": _plain(one.ratio)}
                for one in self.expectations
            ],
        }

    def __str__(self) -> str:
        width = max(len(one.label) for one in self.expectations) + 2
        shown = self.names[:5]
        cells = [max(len(name), 9) + 2 for name in shown]
        head = f"{'':<{width}}{'ratio':>8}{'replies':>9}{'intervals':>11}" + "".join(
            f"{name:>{cell}}" for name, cell in zip(shown, cells, strict=True)
        )
        lines = [f"{self.task} of {self.formula!r} at {self.privacy}, n = {self.n:,}", *self.sentences, "", head]
        bare = "".join(f"{v:>{cell}.3g}" for v, cell in zip(self.without_privacy, cells, strict=False))
        lines.append(f"{'without privacy':<{width}}{'':>8}{'':>9}{'':>11}{bare}"[: width + 28 + sum(cells)])
        for one in self.expectations:
            if one.problem:
                lines.append(f"{one.label:<{width}}cannot be asked: {one.problem}")
                continue
            errors = "".join(f"{v:>{cell}.3g}" for v, cell in zip(one.error, cells, strict=False))
            lines.append(
                f"{one.label:<{width}}{one.ratio:>8.2f}{one.replies:>9.0%}{'yes' if one.intervals else 'no':>11}{errors}"
            )
        more = f" (the first {len(shown)} of {len(self.names)})" if len(self.names) > len(shown) else ""
        return "\n".join([*lines, "", f"Predicted standard errors{more}; {self.assumes}"])


def _plain(value: float) -> float | None:
    return value if isfinite(value) else None


@dataclass(frozen=True)
class Task:
    """One kind of question. candidates: registered names with settings; plant: (frame, formula, schema, generator) -> practice records
    with a relation; read: result -> the numbers by name; reference: the method whose answer without noise is the target.
    """

    candidates: tuple[tuple[str, Mapping[str, Any]], ...]
    reference: tuple[str, Mapping[str, Any]]
    plant: Callable[[pd.DataFrame, str, Schema, np.random.Generator], pd.DataFrame]
    read: Callable[[Any], Mapping[str, float]]


def _params(result: Any) -> Mapping[str, float]:
    return {str(name): float(value) for name, value in result.params.items()}


def _columns(formula: str, schema: Schema) -> tuple[str, tuple[str, ...]]:
    """The response's column and the columns of the features: the schema's names on the left and the right of the formula."""
    sides = str(formula).split("~")
    found = [[a or b for a, b in re.findall(r"`([^`]+)`|([^\W\d]\w*)", side)] for side in sides]
    names = [tuple(name for name in dict.fromkeys(side) if name in schema.names) for side in found]
    if len(names) != 2 or not names[0]:
        raise PlanError(f'a formula names a response and features of the schema, got {formula!r}; write "y ~ a + b"')
    return names[0][0], names[1]


def _scores(frame: pd.DataFrame, features: tuple[str, ...], schema: Schema) -> Array:
    """A sum of the features in half-ranges, of variance one: levels of a categorical column count by their place."""
    total = np.zeros(len(frame))
    for name in features:
        column = schema[name]
        if isinstance(column, Categorical):
            place = {level: i for i, level in enumerate(column.levels)}
            values = np.array([place.get(value, 0) for value in frame[name]], dtype=float)
        else:
            values = frame[name].to_numpy(dtype=float)
        spread = values.std()
        total += (values - values.mean()) / spread if spread > 0 else 0.0
    return np.asarray(total / max(len(features), 1) ** 0.5)


def _line(frame: pd.DataFrame, formula: str, schema: Schema, generator: np.random.Generator) -> pd.DataFrame:
    """A line that explains half of the response's variance, with its values well within the bounds."""
    response, features = _columns(formula, schema)
    column = schema[response]
    if isinstance(column, Categorical):
        return frame
    values = (_scores(frame, features, schema) + generator.normal(size=len(frame))) / 2**0.5
    half, middle = (column.high - column.low) / 2, (column.high + column.low) / 2
    return frame.assign(**{response: np.clip(middle + half * values / 4, column.low, column.high)})


TASKS: dict[str, Task] = {
    "linear_regression": Task(
        candidates=(
            ("ssp2", {}),
            ("ssp", {}),
            ("adassp", {}),
            ("gradient_descent", {}),
            ("output_perturbation", {}),
            ("efficient_ptr", {}),
            ("posterior_sampling", {}),
        ),
        reference=("ssp", {"leverage_cap": 1e3, "cov": "classical", "recenter": False}),
        plant=_line,
        read=_params,
    ),
}


def advise(
    task: str,
    formula: str,
    schema: Schema,
    n: int,
    privacy: Guarantee,
    *,
    like: pd.DataFrame | None = None,
    replications: int = 12,
    progress: Progress | None = None,
) -> Advice:
    """Which method to expect most of for a task, at n records and a price, by simulation on practice records.

    task: one of `TASKS`; formula: as the methods take it; n: the number of records, or a guess of it; privacy: what the release may
    cost; its relation is "substitute" when it is left open, but for methods that do not have it. like: public records with the schema's
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
    kind, generator = TASKS[task], np.random.Generator(np.random.PCG64(_SEED))
    population = schema.sample(_POPULATION, _SEED) if like is None else like
    if like is None:
        population = kind.plant(population, formula, schema, generator)
    bench = _Bench(kind, formula, schema, min(n, _MOST), asked, population, replications, wanted.relation is None)
    truth = bench.numbers(bench.reference, population, ZeroNoise())
    names = tuple(truth)
    known = [(name, settings) for name, settings in kind.candidates if name in registry.known()]
    done, of = 0, (len(known) + 1) * replications

    def step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, of, what)

    bare = bench.error(bench.reference, truth, step, silent=True)[0]
    found = [bench.expect(name, settings, truth, step) for name, settings in known]
    best = min(found, key=lambda one: _mean_ratio(one.error, bare))
    ranked = sorted(
        (replace(one, ratio=_mean_ratio(one.error, best.error)) for one in found), key=lambda one: one.ratio
    )
    records = (
        "public records given"
        if like is not None
        else "records even within the schema's bounds, with a planted relation"
    )
    assumes = f"simulated {replications} times at n = {bench.n:,} on {records}"
    return Advice(task, formula, n, asked, names, tuple(bare), tuple(ranked), assumes)


def _mean_ratio(error: tuple[float, ...], base: tuple[float, ...]) -> float:
    """The geometric mean of the ratios; infinite where a number has no finite error."""
    logs = [log(a / b) for a, b in zip(error, base, strict=True) if b > 0 and isfinite(a) and a > 0]
    return exp(sum(logs) / len(logs)) if len(logs) == len(error) and logs else inf


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
        name, settings = self.task.reference
        return registry.make(name, formula=self.formula, **settings)

    def samples(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """The same records for every method."""
        for seed in range(self.replications):
            generator = np.random.Generator(np.random.PCG64([_SEED, seed]))
            yield seed, self.population.iloc[generator.integers(0, len(self.population), self.n)]

    def numbers(self, method: Method, frame: pd.DataFrame, noise: Any) -> Mapping[str, float]:
        plan = self.plan(method, len(frame))
        done: Release = gate.release(plan, read(frame, self.schema), ledger=None, noise=noise)
        return self.task.read(method.infer(done)) if done.status == "released" else {}

    def plan(self, method: Method, n: int) -> Plan:
        """Under the asked relation; where it was left open and the method does not have it, under the method's own."""
        asked = self.privacy
        if self.open and asked.relation not in method.relations:
            asked = replace(asked, relation=method.relations[0])
        return gate.plan(method, self.schema, asked, n=n)

    def error(
        self, method: Method, truth: Mapping[str, float], step: Callable[[str], None], *, silent: bool = False
    ) -> tuple[tuple[float, ...], float]:
        """Root mean square errors of each number over the runs with numbers, and the share of those."""
        found = []
        for seed, frame in self.samples():
            read_ = self.numbers(method, frame, ZeroNoise() if silent else SimulatedNoise(_SEED + seed))
            values = np.array([read_.get(name, nan) for name in truth])
            if np.isfinite(values).all():
                found.append(values - np.array(list(truth.values())))
            step(method.name)
        if not found:
            return (nan,) * len(truth), 0.0
        return tuple(np.sqrt((np.array(found) ** 2).mean(axis=0)).tolist()), len(found) / self.replications

    def expect(
        self, name: str, settings: Mapping[str, Any], truth: Mapping[str, float], step: Callable[[str], None]
    ) -> Expectation:
        method = registry.make(name, formula=self.formula, **settings)
        words = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        intervals = not method.intervals.startswith("no interval")
        try:
            plan = self.plan(method, self.n)
        except ConfideError as error:
            for _ in range(self.replications):
                step(name)
            return Expectation(name, words, (nan,) * len(truth), inf, 0.0, False, intervals, str(error))
        errors, replies = self.error(method, truth, step)
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
