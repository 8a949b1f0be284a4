"""The executable contract: `check_method(method)` tries everything that a method promises, ours or a third party's.

It works on test data and simulated noise, so it spends nothing. Each check is named; all run, and the failures are
reported together.



Checks of the contract on what surrounds the statistics: units, relations, opaque noise, small counts, memory, digests.

Checks of the contract on what hides: passes that depend on records, ways around the source, and results that know more than a release.

Two releases of one content, made of different records, come from steering (`confide.audit.replay.recording`). A
result that differs between them was told something other than the release, by a module's global, a file, a cache.
What is kept once and for all is found by a separate process, which has seen no record.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from confide import engine
from confide.audit.replay.recording import ReplayNoise, Run, run
from confide.audit.replay.replay import replay
from confide.core import (
    BudgetItem,
    Method,
    OpaqueRelease,
    Plan,
    RecordMap,
    Release,
    Total,
    hidden_tests,
    leaves,
    method_parameters,
    seal,
)
from confide.core.events import has_branches
from confide.core.exact import pack
from confide.core.statistic import WrappedSource
from confide.errors import ConfideError
from confide.guarantees import GDP, Guarantee
from confide.noise import SimulatedNoise
from confide.schema import Categorical, Numeric, Schema
from confide.sources import read
from confide.testing.checks import CHECKS, Case, ContractBroken, _expect, place_of
from confide.testing.clean_process import answered
from confide.testing.test_data import codes_of, edge_frame, practice_schema
from confide.testing.truth import coverage

#: Where rules of disclosure control set a limit (fewer than 3, 5, 10, 20, 30, 100 records; at most 5 or 10), and two powers of two.
_LIMITS = (3, 5, 6, 8, 10, 11, 20, 30, 64, 100)
# Runs that all show one number: the noise of an opaque release of many numbers does not leave all of them where they are.
_RUNS = 6
_SIZES = (10, 60, 300)
_CROWD = 2_000


def a_unit_of_more_rows_gets_more_noise(case: Case) -> None:
    """A unit of two rows gets more noise than one of a single row, or is refused."""
    if case.schema.design is not None:
        return  # a design is of persons who count once each, and such a schema refuses more rows
    schema = Schema(
        {name: case.schema[name] for name in case.schema.in_data},
        rows_per_unit=2 * case.schema.rows_per_unit,
        derive={name: own.settings for name, own in case.schema.derive.items()},
    )
    for relation in case.method.relations:
        asked = dataclasses.replace(case.privacy, relation=relation)
        try:
            one, two = case.method.plan(case.schema, asked), case.method.plan(schema, asked)
        except ConfideError:
            continue  # its proof covers single rows, and it says so
        own = {leaf.name: leaf for leaf in leaves(one.event)}
        for leaf in leaves(two.event):
            before = own.get(leaf.name)
            if isinstance(leaf, BudgetItem) and isinstance(before, BudgetItem):
                moved = before.sensitivity * before.step
                _expect(leaf.sensitivity * leaf.step >= 2 * moved, f"{leaf.name}: two rows are charged like one")
            elif isinstance(leaf, OpaqueRelease):
                single, double = (_drawn(case, plan, leaf.name) for plan in (one, two))
                same = bool(single) and single == double
                _expect(not same, f"{leaf.name!r} has the same noise for a unit of two rows as for a single row")


def _drawn(case: Case, plan: Plan, name: str) -> list[list[str]]:
    """What a plan's opaque release shows of test data, with noise of the same words each time; a run that declined is ignored."""
    schema, found = Schema.from_dict(plan.schema), []
    for size in _SIZES:
        source = read(case.schema.sample(size, 12), schema)
        for seed in range(_RUNS):
            noisy = seal(case.method, source, plan, SimulatedNoise(seed)).statistics.get(name)
            if noisy is not None:
                found.append([str(noisy.step), *map(str, noisy.values.ravel().tolist())])
    return found


def opaque_numbers_change_with_their_noise(case: Case) -> None:
    """Every number of an opaque release changes with its noise."""
    for name in [leaf.name for leaf in leaves(case.plan().event) if isinstance(leaf, OpaqueRelease)]:
        still = []
        for size in _SIZES:
            made = [case.release(case.schema.sample(size, 14), seed) for seed in range(_RUNS)]
            values = [one[name].values.ravel() for one in made if name in one.statistics]
            if len(values) < _RUNS or values[0].size == 1:
                continue  # no reply, or one choice, which may be the same each time
            fixed = [len({str(own[j]) for own in values}) == 1 for j in range(values[0].size)]
            if (
                made[0][name].step == 1
            ):  # marks: some follow from public facts alone, and many records decide the others
                still.append(all(fixed))
            else:
                _expect(not any(fixed), f"{name!r} holds numbers that do not change with the noise")
        _expect(not (still and all(still)), f"{name!r} does not change with the noise, whatever the number of records")


def small_counts_are_treated_like_large_ones(case: Case) -> None:
    """Nothing happens at a limit: one record more beside few equal ones moves what it moves beside many."""
    relation = case.method.relations[0]
    other = edge_frame(case.schema, 20).dropna().iloc[:1]
    same = pd.concat([case.schema.sample(1, 15)] * max(_LIMITS), ignore_index=True)
    # and beside a crowd, where numbers appear that few records do not give
    crowd = case.schema.sample(_CROWD, 18)
    for seed, whole in enumerate([*(same.iloc[:limit] for limit in _LIMITS), crowd]):
        fewer, n = whole.iloc[:-1], None
        if relation == "substitute":
            fewer, n = pd.concat([fewer, other], ignore_index=True), len(whole)
        try:
            plan = engine.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
        except ConfideError:
            continue  # so few records are refused, from public facts
        one, two = read(fewer, case.schema), read(whole, case.schema)
        found = replay(case.method, plan, one, two, seed=seed, thorough=False)
        _expect(not found.problems, f"at {len(whole)} records: {'; '.join(found.problems)}")
        for name, moved in found.moved.items():
            _expect(moved.within, f"{name}: record {len(whole)} moves it beyond its sensitivity")


def what_stands_beside_follows_from_what_leaves(case: Case) -> None:
    """Nothing differs but the noisy numbers, on any two datasets: with the noise that makes those equal, all else is equal."""
    many = case.schema.sample(_CROWD, 19)
    for relation in case.method.relations:
        others = [edge_frame(case.schema, _CROWD)]
        if relation == "add-remove":  # then the number of records is a secret too
            others += [case.schema.sample(30, 20), many.iloc[:0]]
        n = len(many) if relation == "substitute" else None
        plan = engine.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
        if any(hidden_tests(plan.event)):
            continue  # which of two far data sets are safe may differ, and is tested for
        for seed, other in enumerate(others):
            one, two = read(many, case.schema), read(other, case.schema)
            found = replay(case.method, plan, one, two, seed=seed, thorough=False)
            _expect(not found.problems, f"under {relation}: {'; '.join(found.problems)}")


def bounds_in_l1_hold(case: Case) -> None:
    """No record and no pair of records found by search moves a sum with Laplace noise beyond its sensitivity in l1."""
    for relation in case.method.relations:
        plan = case.method.plan(case.schema, dataclasses.replace(case.privacy, relation=relation))
        laplace = {leaf.name for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem) and leaf.norm == "l1"}
        for name, statistic in plan.statistics.items():
            if name not in laplace or not isinstance(statistic, Total):
                continue
            source = read(edge_frame(case.schema, 600), case.schema)
            rows = np.asarray(statistic.map(codes_of(source, statistic.map))).astype(object)
            sizes = abs(rows).sum(axis=0)
            moves = list(map(int, sizes))
            if relation == "substitute":
                longest = np.argsort(sizes.astype(float))[-40:]
                moves = [int(v) for i in longest for v in abs(rows - rows[:, i : i + 1]).sum(axis=0)]
            _expect(
                max(moves) <= statistic.sensitivity_l1(relation),
                f"{name}: a neighbor under {relation} moves it beyond its sensitivity in l1",
            )


def digests_name_the_whole_map(case: Case) -> None:
    """Two record maps of one digest give the same integers, with the same bounds."""
    seen: dict[str, tuple[RecordMap, Any]] = {}
    for plan, schema in _variants(case):
        source = read(edge_frame(schema, 60), schema)
        for name, statistic in plan.statistics.items():
            own = statistic.map
            codes = codes_of(source, own)
            known, before = seen.setdefault(own.digest, (own, codes))
            if known is own or before.shape != codes.shape:
                continue
            same = (known.width, known.l1, known.l2_squared) == (own.width, own.l1, own.l2_squared)
            _expect(
                same and np.array_equal(known(before), own(before)),
                f"{name}: two maps have one digest and give other integers; put every parameter into the digest",
            )


def _variants(case: Case) -> Iterator[tuple[Plan, Schema]]:
    """The method's plans under each relation, on columns of other bounds and grids, and with each of its parameters changed."""
    wider = {
        name: dataclasses.replace(column, high=2 * column.high - column.low) if isinstance(column, Numeric) else column
        for name, column in ((name, case.schema[name]) for name in case.schema.names)
    }
    schemas = (case.schema, Schema(wider, rows_per_unit=case.schema.rows_per_unit))
    plans: list[tuple[Callable[..., Plan], Schema, str]] = [
        (case.method.plan, schema, relation) for schema in schemas for relation in case.method.relations
    ]
    for name, value in method_parameters(case.method).items():
        for other in _others(value):
            try:
                changed = dataclasses.replace(case.method, **{name: other})
            except (ConfideError, TypeError, ValueError):
                continue
            plans.append((changed.plan, case.schema, case.method.relations[0]))
    for plan, schema, relation in plans:
        try:
            yield plan(schema, dataclasses.replace(case.privacy, relation=relation)), schema
        except (ConfideError, TypeError, ValueError, AttributeError):
            continue  # not a value of this parameter


def _others(value: Any) -> tuple[Any, ...]:
    """Other values of a parameter, of the same kind."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1,)
    if isinstance(value, float):
        return (value * 0.75,)
    return (0.75, 3) if value is None else ()


SIDE_DOORS: tuple[Callable[[Case], None], ...] = (
    bounds_in_l1_hold,
    a_unit_of_more_rows_gets_more_noise,
    opaque_numbers_change_with_their_noise,
    small_counts_are_treated_like_large_ones,
    what_stands_beside_follows_from_what_leaves,
    digests_name_the_whole_map,
)


# Around limits of disclosure control, with one record more and less.
_RECORD_NUMBERS = (0, 1, 5, 6, 11, 1_000)
_PATIENCE = 120  # seconds that a fresh process may take
# What a method may ask of a source; an attribute of its own making would be a way around the meter.
_OFFERED = frozenset({"unit", "shards", "stream"})  # and what each source has


class _Offered(WrappedSource):
    """A source with nothing but what the protocol gives it; what else was asked for is noted."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in _OFFERED:
            self._asked.append(name)
        return getattr(self._source, name)


def passes_are_as_planned(case: Case) -> None:
    """The records are read as often as planned, whatever and however many they are, and through the protocol of sources alone."""
    for relation in case.method.relations:
        asked = dataclasses.replace(case.privacy, relation=relation)
        frames = list(_frames(case))
        for frame in frames if relation == case.method.relations[0] else frames[-3:]:
            try:
                plan = engine.plan(case.method, case.schema, asked, n=len(frame) if relation == "substitute" else None)
            except ConfideError:
                continue  # so few records are refused, from public facts
            source = _Offered(read(frame, case.schema))
            found = run(case.method, source, plan, ReplayNoise(3))
            _expect(not source._asked, f"draw asked the source for {', '.join(sorted(set(source._asked)))}")
            passes = sum(call.startswith("pass") for call in found.calls)
            exact = not has_branches(plan.event) and not _declined(found)
            _expect(
                passes == plan.passes if exact else passes <= plan.passes,
                f"under {relation} it read the records {passes} times, planned are {plan.passes}",
            )


def _declined(found: Run) -> bool:
    return found.release is None or found.release.status != "released"


def _ends(column: Any) -> tuple[Any, Any, Any]:
    """Both bounds, and a missing value, as the data hold them."""
    if column.kind == "date":
        return (*column.text_of(np.array([column.low, column.high])), None)
    return column.low, column.high, float("nan")


def _frames(case: Case) -> Iterator[pd.DataFrame]:
    """Few and many records, evenly drawn and at the edges of their bounds."""
    many, edges = case.schema.sample(max(_RECORD_NUMBERS), 24), edge_frame(case.schema, max(_RECORD_NUMBERS))
    for size in _RECORD_NUMBERS:
        yield many.iloc[:size]
    yield edges
    numbers = {name: case.schema[name] for name in case.schema.in_data}
    ends = [_ends(column) for column in numbers.values() if not isinstance(column, Categorical)]
    names = [name for name, column in numbers.items() if not isinstance(column, Categorical)]
    for values in zip(*ends, strict=True):
        yield many.assign(**dict(zip(names, values, strict=True)))
    yield pd.concat([many.iloc[:1]] * 40, ignore_index=True)


def infer_reads_the_release_alone(case: Case) -> None:
    """Infer knows nothing but the release: of two releases with one content, made of other records, it gives the same result."""
    first = case.release(case.schema.sample(200, 16))
    alone = type(case.method)(**method_parameters(case.method)).infer(first).to_json()
    _expect(case.method.infer(first).to_json() == alone, "the method remembers the records that it released")
    case.release(case.schema.sample(350, 17))
    _expect(case.method.infer(first).to_json() == alone, "the result changes when the method has seen other records")
    plan = case.plan()
    one = run(case.method, read(case.schema.sample(300, 21), case.schema), plan, ReplayNoise(5)).release
    if one is None:
        return  # other checks say why
    result = case.method.infer(one)
    _expect(
        result.release_sha256 == one.sha256, "the result names another release than the one that it was asked about"
    )
    before = result.to_json()
    for other in (edge_frame(case.schema, 300), case.schema.sample(400, 22)):
        same = _steered(case, plan, other, one)
        if same is None:
            continue  # what it computes between the rounds follows from more than its noisy numbers, or it took another branch
        after = case.method.infer(same).to_json()
        _expect(
            after == before, "two releases of one content have different results: infer knows more than the release"
        )
        _expect(case.method.infer(one).to_json() == before, "the result changes when the method has seen other records")


def _steered(case: Case, plan: Plan, frame: pd.DataFrame, wanted: Release) -> Release | None:
    """A release of other records with the content of `wanted`, where there is one."""
    made = run(case.method, read(frame, case.schema), plan, ReplayNoise(6), wanted.statistics).release
    return made if made is not None and made.to_json() == wanted.to_json() else None


def infer_in_a_fresh_process(case: Case) -> None:
    """A process that has seen no record infers the same result from the release's file."""
    place = _place(type(case.method))
    if place is None:
        return  # a class without a file cannot be had in another process; the steered releases above stand alone
    try:
        parameters = pack(method_parameters(case.method))
    except TypeError:
        return  # a parameter that is code (a safety bound) has no text from which another process could make it
    release = case.release(case.schema.sample(300, 23), 4)
    here = case.method.infer(release).to_json()
    given = {**place, "parameters": parameters, "release": release.to_json()}
    found = answered(given, _PATIENCE)
    where = "; define the method in a separate module" if place["module"] == "__main__" else ""
    _expect("result" in found, f"infer fails in a process that has seen no record: {found.get('failed')}{where}")
    _expect(found["result"] == here, "infer gives another result in a process that has seen no record")


def _place(cls: type) -> dict[str, Any] | None:
    """Where a fresh process finds a class: its module, or the definitions of the file that was run; None for neither."""
    if "<locals>" in cls.__qualname__:
        return None
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return None
    return {"module": cls.__module__, "file": str(Path(file).resolve()), "name": cls.__qualname__}


HIDDEN: tuple[Callable[[Case], None], ...] = (
    passes_are_as_planned,
    infer_reads_the_release_alone,
    infer_in_a_fresh_process,
)


@dataclass(frozen=True)
class Contract:
    """What `check_method` found: (check, None or what went wrong) in the order of the checks."""

    method: str
    checks: tuple[tuple[str, str | None], ...]

    @property
    def ok(self) -> bool:
        return all(problem is None for _, problem in self.checks)

    def __str__(self) -> str:
        lines = [
            f"{'ok    ' if problem is None else 'FAILED'}  {name}" + ("" if problem is None else f": {problem}")
            for name, problem in self.checks
        ]
        return "\n".join([f"contract of {self.method}", *lines])


def check_method(
    method: Method,
    schema: Schema | None = None,
    *,
    privacy: Guarantee | None = None,
    replications: int = 80,
    raises: bool = True,
) -> Contract:
    """Run the whole contract on a method and return the list of checks; raise when one fails.

    `schema`: the columns to try it on. Left out, every name in the method's text parameters becomes `Numeric(0.5,
    2.5)`. `privacy`: what the releases may cost, default GDP(1.0) with the method's own relation. `replications`: runs
    of the first look at intervals. If that leaves a doubt, three times as many decide. Fewer, for a slow method, find
    less.

    Raises `AssertionError` with every failed check, unless raises=False.

    >>> import confide as cf
    >>> from confide.testing import check_method
    >>> check_method(cf.tables.Means("y ~ 1", inference="dataset"), replications=10).ok
    True
    """
    case = Case(method, schema or practice_schema(method), privacy or GDP(1.0))
    found = []
    checks: tuple[Callable[..., None], ...] = (*CHECKS, coverage, *SIDE_DOORS, *HIDDEN)
    for check in checks:
        problem = tried(partial(coverage, replications=replications) if check is coverage else check, case)
        found.append(((check.__doc__ or "").strip().rstrip("."), problem))
    contract = Contract(f"{method.name} {method.version}", tuple(found))
    if raises and not contract.ok:
        raise ContractBroken(str(contract))
    return contract


def tried(check: Callable[[Case], None], case: Case) -> str | None:
    """What one check says of a case: None, or what went wrong."""
    try:
        check(case)
    except (
        AssertionError,
        ConfideError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
    ) as error:
        return f"{type(error).__name__}: {error}{place_of(error, case.method)}"
    return None
