"""Neighbours to try a method on: made from the schema, the method's worst pairs, and what its record maps are largest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

from confide.audit.searches.extremes import extreme_pairs
from confide.audit.searches.pairs import Domain, Record
from confide.protocol import Opaque, Plan, leaves
from confide.protocol.events import has_branches
from confide.schema import Schema, Unit

__all__ = ["COMPANY", "CROWD", "Neighbours", "crowded", "has_opaque", "named", "neighbours", "whole"]

Neighbours = tuple[list[Record], list[Record]]

COMPANY = 40  # records that stay, where there are many
# records enough for the branch of many records at usual levels
CROWD = 1_500
_SEED = 20260101


def neighbours(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbours]:
    """Pairs of data sets, as lists of records in the schema's columns, on which a method should be tried: one unit differs.

    Under substitute both have plan.n records where the plan names n.
    """
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*named(method, schema, plan.relation), *extreme_pairs(plan, schema, generator)]
    special = [(low, high), *((low, odd) for odd in _hostile(domain)), (high, domain.inner(generator, 1)[0])]
    yield from whole(method, plan, schema)
    inner = domain.inner(generator, COMPANY)
    rows = schema.rows_per_unit  # one unit changes as many rows as it may have
    unit = _Units(schema)
    if plan.relation == "substitute":
        size = COMPANY if plan.n is None else plan.n - rows
        company = [inner[:size], [low] * size, [high] * size, [_hostile(domain)[0]] * size]
    else:
        company = [[], inner, [high] * COMPANY, [low], [_hostile(domain)[0]] * 3]
    for rest in company:
        for one, other in (*pairs, *special):
            if plan.relation == "substitute":
                yield [*rest, *unit([one or low], special)], [*rest, *unit([other], special)]
            else:
                yield list(rest), [*rest, *unit([other], special)]
    if plan.relation == "add-remove" and (has_branches(plan.event) or has_opaque(plan)):
        # branches that a noisy count chooses may need many records, and so may the bounds of an opaque release
        crowd = _crowd(domain, generator, CROWD, schema)
        for _, other in (*pairs, (low, high)):
            yield crowd, [*crowd, *unit([other], special)]


def whole(method: Any, plan: Plan, schema: Schema) -> Iterator[Neighbours]:
    """The data sets that the method names as worst, where a unit is a row: what its records leave out is alike in all."""
    if isinstance(schema.unit, Unit) or schema.rows_per_unit != 1:
        return
    domain = Domain.of(schema)
    base = {name: axis.inside()[-1] for name, axis in zip(schema.names, domain.axes, strict=True)}
    for pair in method.worst_data(plan, schema):
        one, other = ([tuple({**base, **row}[name] for name in schema.names) for row in rows] for rows in pair)
        yield one, other


def crowded(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbours]:
    """Pairs of many records, plan.n of them, for branches that few records never reach, under substitute."""
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*named(method, schema, plan.relation), *extreme_pairs(plan, schema, generator), (low, high)]
    unit = _Units(schema)
    crowd = _crowd(domain, generator, (plan.n or CROWD) - schema.rows_per_unit, schema)
    for one, other in pairs:
        yield [*crowd, *unit([one or low], pairs)], [*crowd, *unit([other], pairs)]


def _crowd(domain: Domain, generator: np.random.Generator, size: int, schema: Schema) -> list[Record]:
    """Many records; where a unit is enforced so many units of two, as what is counted within units needs more than one row of each."""
    if not isinstance(schema.unit, Unit):
        return domain.inner(generator, size)
    return [(*row, f"crowd {at // 2}") for at, row in enumerate(domain.inner(generator, 2 * size))]


class _Units:
    """The rows of the unit that two neighbours differ in, one portion after the other.

    Declared, they are the most that a unit may have, all equal. Enforced, a unit has 1, k, k + 1 or 10 k rows in turn: all equal, or of
    opposite corners and other cells beside them; its id is written as text, as a whole number and as a float; and rows without an id,
    which must move nothing, stand beside it.
    """

    def __init__(self, schema: Schema) -> None:
        self._rows, self._turn = schema.rows_per_unit, 0
        self._enforced = isinstance(schema.unit, Unit)

    def __call__(self, records: list[Record], others: Sequence[tuple[Record | None, Record]]) -> list[Record]:
        k = self._rows
        if not self._enforced:
            return records * k
        self._turn += 1
        count = (1, k, k + 1, 10 * k)[self._turn % 4]
        beside = [record for _, record in others] if self._turn % 3 == 0 else []
        rows = list(islice(cycle([*records, *beside]), count))
        nobody = [(*records[0], missing) for missing in (None, float("nan"), "", 7.5)]
        return [*((*row, spelled) for row, spelled in zip(rows, cycle(("7", 7, 7.0)))), *nobody]


def named(method: Any, schema: Schema, relation: str) -> list[tuple[Record | None, Record]]:
    """The method's worst pairs, as records in the schema's order; a pair of one record is an added one."""
    given = method.worst_pairs(schema)
    base = {name: axis.inside()[-1] for name, axis in zip(schema.names, Domain.of(schema).axes, strict=True)}
    found: list[tuple[Record | None, Record]] = []
    for pair in given:
        records = [tuple({**base, **record}[name] for name in schema.names) for record in pair]
        if relation == "substitute" and len(records) > 1:
            found.append((records[0], records[1]))
        elif relation == "add-remove":
            found += [(None, record) for record in records]
    return list(dict.fromkeys(found))


def _hostile(domain: Domain) -> list[Record]:
    """A few hostile records: every coordinate missing, infinite, huge, tiny, an unknown label."""
    wanted = len(next(iter(domain.axes)).hostile())
    return list(domain.odd())[-max(wanted, 2) :][:6]


def has_opaque(plan: Plan) -> bool:
    """Whether a plan has a release whose guarantee is proved elsewhere."""
    return any(isinstance(leaf, Opaque) for leaf in leaves(plan.event))
