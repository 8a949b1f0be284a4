"""Checks of the contract on what surrounds the statistics: units, relations, opaque noise, small counts, memory, digests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from confide import gate
from confide.audit.watching.replay import replay
from confide.errors import ConfideError
from confide.noise import SimulatedNoise
from confide.protocol import Opaque, Plan, RecordMap, Spend, Total, hidden_tests, leaves, method_parameters, seal
from confide.schema import Numeric, Schema
from confide.sources import read
from confide.testing.checks import Case, _expect
from confide.testing.practice import codes_of, edge_frame

__all__ = [
    "SIDE_DOORS",
    "a_unit_of_more_rows_gets_more_noise",
    "bounds_in_l1_hold",
    "digests_name_the_whole_map",
    "opaque_numbers_change_with_their_noise",
    "small_counts_are_treated_like_large_ones",
    "what_stands_beside_follows_from_what_leaves",
]

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
        {name: case.schema[name] for name in case.schema.names}, rows_per_unit=2 * case.schema.rows_per_unit
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
            if isinstance(leaf, Spend) and isinstance(before, Spend):
                moved = before.sensitivity * before.step
                _expect(leaf.sensitivity * leaf.step >= 2 * moved, f"{leaf.name}: two rows are charged like one")
            elif isinstance(leaf, Opaque):
                single, double = (_drawn(case, plan, leaf.name) for plan in (one, two))
                same = bool(single) and single == double
                _expect(not same, f"{leaf.name!r} has the same noise for a unit of two rows as for a single row")


def _drawn(case: Case, plan: Plan, name: str) -> list[list[str]]:
    """What a plan's opaque release shows of practice records, with noise of the same words each time; a run without a reply is left out."""
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
    for name in [leaf.name for leaf in leaves(case.plan().event) if isinstance(leaf, Opaque)]:
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
            plan = gate.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
        except ConfideError:
            continue  # so few records are refused, from public facts
        one, two = read(fewer, case.schema), read(whole, case.schema)
        found = replay(case.method, plan, one, two, seed=seed, thorough=False)
        _expect(not found.problems, f"at {len(whole)} records: {'; '.join(found.problems)}")
        for name, moved in found.moved.items():
            _expect(moved.within, f"{name}: record {len(whole)} moves it beyond its sensitivity")


def what_stands_beside_follows_from_what_leaves(case: Case) -> None:
    """Beside the noisy numbers nothing differs, on any two data sets: with the noise that makes those equal, all else is equal."""
    many = case.schema.sample(_CROWD, 19)
    for relation in case.method.relations:
        others = [edge_frame(case.schema, _CROWD)]
        if relation == "add-remove":  # then the number of records is a secret too
            others += [case.schema.sample(30, 20), many.iloc[:0]]
        n = len(many) if relation == "substitute" else None
        plan = gate.plan(case.method, case.schema, dataclasses.replace(case.privacy, relation=relation), n=n)
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
        laplace = {leaf.name for leaf in leaves(plan.event) if isinstance(leaf, Spend) and leaf.norm == "l1"}
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
                f"{name}: a neighbour under {relation} moves it beyond its sensitivity in l1",
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
    """The method's plans under each relation, on columns of other bounds and grids, and with each of its own parameters changed."""
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
