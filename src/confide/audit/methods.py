"""Audit a whole method: one table with a row per spend and attack, under every relation that the method has a guarantee for.

Neighbours are built from the schema: the method's own worst pairs, records on which its maps are largest (found by climbing), corners
and hostile records, in empty, small and lopsided company. On each pair the release is recorded and replayed, which measures
the exact integers behind every statistic; from the worst pair follow

- an exact row: what the pair really spends at the noise that the meter asked for, in Fractions;
- a sampled row: the shipped sampler at exactly that scale, drawn many times on both neighbours, and told apart by the likelihood
  ratio of the ideal law; its lower bound comes with a confidence and knows nothing of any proof;
- rows for an opaque release: the release itself, run many times on both (`confide.audit.watching.opaque`), and the lattice of its noise;
- a row for the release as a whole, and one for record and replay.

A spend on which no attack had a chance is "untested", and its row says why.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from confide.audit.functions import audit_function
from confide.audit.searches.neighbourhoods import COMPANY, has_opaque
from confide.audit.session import Progress, Session
from confide.audit.verdict import Audit
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP
from confide.protocol import Method, Plan, Spend, leaves
from confide.schema import Numeric, Schema

__all__ = ["audit", "usual_request"]

_GRID = 257  # points of a practice column, for a method that chooses among them

# What is asked where nothing is: the first that the method can plan. With opaque releases a larger budget: their attacks are runs
# of the whole release, and a thousand runs tell laws apart that differ by more than about half a standard deviation.
_USUAL: tuple[Guarantee, ...] = (GDP(1.0), PureDP(1.0))
_LARGER: tuple[Guarantee, ...] = (GDP(2.0), GDP(2.0, 0.05), PureDP(2.0), ApproxDP(2.0, 0.1))


def audit(
    target: Any,
    schema: Schema | None = None,
    *,
    privacy: Guarantee | None = None,
    relation: str | None = None,
    runs: int = 100_000,
    confidence: float = 0.99,
    progress: Progress | None = None,
    seed: int | None = None,
    data: Any = None,
    neighbour: Any = None,
    claim: Any = None,
    delta: float | None = None,
    vectorised: bool = False,
    wrap: Callable[[Any], Any] | None = None,
) -> Audit:
    """Try to break a method, or any function that adds its own noise. Returns a table of findings with a `verdict`.

    A method (plan, release, infer): schema: the columns of the practice records; left out, every name in its text
    parameters is `Numeric(0.5, 2.5)`. privacy: what each release may cost; left out, `usual_request`. relation: one of its relations;
    None audits all. wrap: puts another sampler in place of the seeded one, `wrap(noise) -> noise`, to test it.

    A function: data, neighbour: two neighbouring inputs; claim: what it promises, a guarantee or a curve; delta, vectorised: as
    `epsilon_lower_bound`. A claim in GDP or ZCDP bounds mu, one in PureDP or ApproxDP epsilon, no claim both.

    runs: draws of each sampled row on each neighbour, 0 for none; of an opaque release, which runs as a whole, at most 1,000.
    confidence: probability that no sampled row of a table whose claims all hold is called violated. progress: called as
    progress(done, of, what). seed: simulated noise that repeats, for tests; None draws from the shipped secure source.

    Nothing is charged and no record is read: data are made from the schema. Errors: PrivacyError for parameters out of range.

    >>> import numpy as np
    >>> import confide as cf
    >>> found = audit(cf.regression.SSP("y ~ a", cov="classical", recenter=False), runs=2_000, relation="add-remove", seed=1)
    >>> found.ok, [f.name for f in found if f.attack.startswith("exact")]
    (True, ['ssp moments', 'ssp clipping', 'ssp release'])
    >>> generator = np.random.default_rng(1)
    >>> noisy_sum = lambda x, runs: x.sum() + generator.normal(size=runs)
    >>> audit(noisy_sum, data=np.zeros(3), neighbour=np.ones(3), claim=cf.GDP(1.0), vectorised=True).ok
    False
    """
    if isinstance(target, Method):
        columns = _schema(target, schema)
        request = usual_request(target, columns) if privacy is None else privacy
        return Session(target, columns, request, runs, confidence, progress, seed, wrap).table(relation)
    if not callable(target) or inspect.isclass(target):
        raise PrivacyError(
            f"audit takes a method, such as confide.regression.SSP('y ~ a'), or a function of data, got {target!r}"
        )
    if data is None or neighbour is None:
        raise PrivacyError(
            "a function is audited on two inputs: write audit(f, data=..., neighbour=..., claim=GDP(1.0))"
        )
    if isinstance(claim, int | float):
        raise PrivacyError(
            f"a claim is a guarantee or a curve, got the number {claim!r}, which may be a mu or an epsilon; write claim=GDP({claim!r}) or "
            f"claim=PureDP({claim!r})"
        )
    return audit_function(target, data, neighbour, claim, runs, confidence, relation, delta, vectorised)


def usual_request(method: Method, schema: Schema) -> Guarantee:
    """What a method is audited at where nobody says: GDP(1.0) where it can be planned, larger where a release is opaque."""
    for one in _USUAL:
        plan = _planned(method, schema, one)
        if plan is not None and not has_opaque(plan):
            return one
    return next((one for one in _LARGER if _planned(method, schema, one) is not None), _USUAL[0])


def _planned(method: Method, schema: Schema, request: Guarantee) -> Plan | None:
    from confide import gate

    relation = method.relations[0]
    n = COMPANY + schema.rows_per_unit if relation == "substitute" else None
    try:
        return gate.plan(method, schema, replace(request, relation=relation), n=n)
    except (PrivacyError, PlanError):
        return None  # what is wrong with it, the audit itself says


def _schema(method: Any, schema: Schema | None) -> Schema:
    from confide.testing.practice import practice_schema

    if schema is not None:
        return schema
    practice = practice_schema(method)
    coarse = Schema({name: Numeric(0.5, 2.5, steps=_GRID) for name in practice.names})
    return coarse if _chooses(method, practice) else practice


def _chooses(method: Any, schema: Schema) -> bool:
    """Whether the method chooses among the points of a column's grid: a million candidates on hundreds of pairs would take minutes."""
    plan = _planned(method, schema, PureDP(1.0))
    return plan is not None and any(
        isinstance(leaf, Spend) and leaf.law == "exponential" for leaf in leaves(plan.event)
    )
