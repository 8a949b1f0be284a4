"""Neighbours to try a method on: made from the schema, the method's worst pairs, and what its record maps are largest on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from confide.audit.extremes import extreme_pairs
from confide.audit.pairs import Domain, Record
from confide.protocol import Opaque, Plan, leaves
from confide.protocol.events import has_branches
from confide.schema import Schema

__all__ = ["COMPANY", "CROWD", "Neighbours", "crowded", "has_opaque", "named", "neighbours"]

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
    inner = domain.inner(generator, COMPANY)
    rows = schema.rows_per_unit  # one unit changes as many rows as it may have
    if plan.relation == "substitute":
        size = COMPANY if plan.n is None else plan.n - rows
        company = [inner[:size], [low] * size, [high] * size, [_hostile(domain)[0]] * size]
    else:
        company = [[], inner, [high] * COMPANY, [low], [_hostile(domain)[0]] * 3]
    for rest in company:
        for one, other in (*pairs, *special):
            if plan.relation == "substitute":
                yield [*rest, *[one or low] * rows], [*rest, *[other] * rows]
            else:
                yield list(rest), [*rest, *[other] * rows]
    if plan.relation == "add-remove" and (has_branches(plan.event) or has_opaque(plan)):
        # branches that a noisy count chooses may need many records, and so may the bounds of an opaque release
        crowd = domain.inner(generator, CROWD)
        for _, other in (*pairs, (low, high)):
            yield crowd, [*crowd, *[other] * rows]


def crowded(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbours]:
    """Pairs of many records, plan.n of them, for branches that few records never reach, under substitute."""
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*named(method, schema, plan.relation), *extreme_pairs(plan, schema, generator), (low, high)]
    rows = schema.rows_per_unit
    crowd = domain.inner(generator, (plan.n or CROWD) - rows)
    for one, other in pairs:
        yield [*crowd, *[one or low] * rows], [*crowd, *[other] * rows]


def named(method: Any, schema: Schema, relation: str) -> list[tuple[Record | None, Record]]:
    """The method's worst pairs, as records in the schema's order; a pair of one record is an added one."""
    verb = getattr(method, "worst_pairs", None)
    if verb is None:
        return []
    given = verb(schema) if inspect.signature(verb).parameters else verb()
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
