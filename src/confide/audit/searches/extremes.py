"""Records on which a record map is largest, and pairs on which it differs most: found by climbing on practice records."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.audit.searches.pairs import Axis, Domain, Record
from confide.protocol import Plan, Statistic
from confide.schema import Schema

__all__ = ["extreme_pairs"]

_CANDIDATES = 1_500
_PLACES = 65
_SWEEPS = 3


def extreme_pairs(plan: Plan, schema: Schema, generator: np.random.Generator) -> list[tuple[Record | None, Record]]:
    """For each statistic of a plan the record that moves it most (add-remove), or the two that differ most (substitute)."""
    domain = Domain.of(schema)
    records = [*domain.corners(), *domain.odd(), *(_placed(domain, generator) for _ in range(_CANDIDATES))]
    found: list[tuple[Record | None, Record]] = []
    for statistic in plan.statistics.values():
        rows = _rows(statistic, domain, schema, records)
        first, own = _climb(statistic, domain, schema, records, rows, partial(_size, statistic))
        if plan.relation == "add-remove":
            found.append((None, first))
            continue
        second, _ = _climb(statistic, domain, schema, records, rows, partial(_apart, statistic, own))
        found.append((first, second))
    return list(dict.fromkeys(found))


def _placed(domain: Domain, generator: np.random.Generator) -> Record:
    """A record on a coarse grid: half of the coordinates at an end."""
    record = []
    for axis in domain.axes:
        pool = axis.corners() if generator.random() < 0.5 else _places(axis)
        record.append(pool[int(generator.integers(len(pool)))])
    return tuple(record)


def _places(axis: Axis) -> list[Any]:
    if axis.levels:
        return list(axis.levels)
    values = [axis.low + (axis.high - axis.low) * k / (_PLACES - 1) for k in range(_PLACES)]
    return list(dict.fromkeys(float(round(value)) for value in values)) if axis.whole else values


def _rows(statistic: Statistic, domain: Domain, schema: Schema, records: list[Record]) -> Array:
    """The map's integers of each record, shape (width, records)."""
    from confide.sources import read
    from confide.testing.practice import codes_of

    return np.asarray(statistic.map(codes_of(read(domain.data(records), schema), statistic.map)), dtype=np.float64)


def _size(statistic: Statistic, rows: Array) -> Array:
    if statistic.norm == "l1":
        return np.asarray(np.abs(rows).sum(axis=0))
    return np.asarray(statistic.moved_squared(np.zeros(len(rows)), rows), dtype=np.float64)


def _apart(statistic: Statistic, own: Array, rows: Array) -> Array:
    """The squared distance between the contribution of each record and that of `own`."""
    return np.asarray(statistic.moved_squared(own, rows), dtype=np.float64)


def _climb(
    statistic: Statistic,
    domain: Domain,
    schema: Schema,
    records: list[Record],
    rows: Array,
    worth: Callable[[Array], Array],
) -> tuple[Record, Array]:
    """The record that is worth most, improved one coordinate at a time; and its integers."""
    best = int(np.argmax(worth(rows)))
    record, own, value = records[best], rows[:, best], float(worth(rows)[best])
    for _ in range(_SWEEPS):
        before = value
        for j, axis in enumerate(domain.axes):
            tried = [(*record[:j], place, *record[j + 1 :]) for place in _places(axis)]
            found = _rows(statistic, domain, schema, tried)
            k = int(np.argmax(worth(found)))
            if float(worth(found)[k]) > value:
                record, own, value = tried[k], found[:, k], float(worth(found)[k])
        if value <= before:
            break
    return record, own
