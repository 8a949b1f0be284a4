"""Audit a whole method: one table with a row per spend and attack, under every relation that the method has a guarantee for.

Neighbours are built from the schema: the method's own worst pairs, records on which its maps are largest (found by climbing), corners
and hostile records, in empty, small and lopsided company. On each pair the release is recorded and replayed, which measures
the exact integers behind every statistic; from the worst pair follow

- an exact row: what the pair really spends at the noise that the meter asked for, in Fractions;
- a sampled row: the shipped sampler at exactly that scale, drawn many times on both neighbours, and told apart by the likelihood
  ratio of the ideal law; its lower bound comes with a confidence and knows nothing of any proof;
- a row for the release as a whole, and one for record and replay.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide.audit.extremes import extreme_pairs
from confide.audit.functions import audit_function
from confide.audit.known_laws import audit_exponential
from confide.audit.lattice import lattice
from confide.audit.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.pairs import Domain, Record, checked_relation
from confide.audit.replay import Moved, Replay, replay
from confide.audit.verdict import Audit, Finding
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.noise import SecureNoise, SimulatedNoise
from confide.protocol import Method, Opaque, Plan, Spend, exact_cost, leaves
from confide.protocol.events import paths
from confide.schema import Numeric, Schema

__all__ = ["audit", "neighbours"]

Progress = Callable[[int, int, str], None]
Neighbours = tuple[list[Record], list[Record]]

_COMPANY = 40  # records that stay, where there are many
# records enough for the branch of many records at usual levels
_CROWD = 1_500
_SEED = 20260101
_GRID = 257  # points of a practice column, for a method that chooses among them


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
    """Try to break a method, or any function that adds its own noise. Returns a table of findings; `.ok` when all claims hold.

    A method (plan, release, infer): schema: the columns of the practice records; left out, every name in its text
    parameters is `Numeric(0.5, 2.5)`. privacy: what each release may cost, GDP(1.0) unless given. relation: one of its relations;
    None audits all. wrap: puts another sampler in place of the seeded one, `wrap(noise) -> noise`, to test it.

    A function: data, neighbour: two neighbouring inputs; claim: what it promises, a guarantee or a curve; delta, vectorised: as
    `epsilon_lower_bound`. A claim in GDP or ZCDP bounds mu, one in PureDP or ApproxDP epsilon, no claim both.

    runs: draws of each sampled row on each neighbour, 0 for none. confidence: probability that no sampled row of a table whose
    claims all hold is called violated. progress: called as progress(done, of, what). seed: simulated noise that repeats, for
    tests; None draws from the shipped secure source.

    Nothing is charged and no record is read: data are made from the schema. Errors: PrivacyError for parameters out of range.

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
        request = GDP(1.0) if privacy is None else privacy
        return _Session(target, _schema(target, schema), request, runs, confidence, progress, seed, wrap).table(
            relation
        )
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


def _schema(method: Any, schema: Schema | None) -> Schema:
    from confide.testing.practice import practice_schema

    if schema is not None:
        return schema
    practice = practice_schema(method)
    coarse = Schema({name: Numeric(0.5, 2.5, steps=_GRID) for name in practice.names})
    return coarse if _chooses(method, practice) else practice


def _chooses(method: Any, schema: Schema) -> bool:
    """Whether the method chooses among the points of a column's grid: a million candidates on hundreds of pairs would take minutes."""
    try:
        plan = method.plan(schema, PureDP(1.0, relation=method.relations[0]), n=_COMPANY)
    except (PrivacyError, PlanError):
        return False  # what is wrong with it, the audit itself says
    return any(isinstance(leaf, Spend) and leaf.law == "exponential" for leaf in leaves(plan.event))


def neighbours(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbours]:
    """Pairs of data sets, as lists of records in the schema's columns, on which a method should be tried: one unit differs.

    Under substitute both have plan.n records where the plan names n.
    """
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*_own(method, schema, plan.relation), *extreme_pairs(plan, schema, generator)]
    special = [(low, high), *((low, odd) for odd in _hostile(domain)), (high, domain.inner(generator, 1)[0])]
    inner = domain.inner(generator, _COMPANY)
    rows = schema.rows_per_unit  # one unit changes as many rows as it may have
    if plan.relation == "substitute":
        size = _COMPANY if plan.n is None else plan.n - rows
        company = [inner[:size], [low] * size, [high] * size, [_hostile(domain)[0]] * size]
    else:
        company = [[], inner, [high] * _COMPANY, [low], [_hostile(domain)[0]] * 3]
    for rest in company:
        for one, other in (*pairs, *special):
            if plan.relation == "substitute":
                yield [*rest, *[one or low] * rows], [*rest, *[other] * rows]
            else:
                yield list(rest), [*rest, *[other] * rows]
    if plan.relation == "add-remove" and len(paths(plan.event)) > 1:
        # branches that a noisy count chooses may need many records
        crowd = domain.inner(generator, _CROWD)
        for _, other in (*pairs, (low, high)):
            yield crowd, [*crowd, *[other] * rows]


def crowded(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbours]:
    """Pairs of many records, plan.n of them, for branches that few records never reach, under substitute."""
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*_own(method, schema, plan.relation), *extreme_pairs(plan, schema, generator), (low, high)]
    rows = schema.rows_per_unit
    crowd = domain.inner(generator, (plan.n or _CROWD) - rows)
    for one, other in pairs:
        yield [*crowd, *[one or low] * rows], [*crowd, *[other] * rows]


def _own(method: Any, schema: Schema, relation: str) -> list[tuple[Record | None, Record]]:
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


@dataclass
class _Worst:
    """What the pairs of one relation showed: the worst of each spend, of the whole, and the problems."""

    spends: dict[str, tuple[Moved, Replay]] = field(default_factory=dict)
    total: tuple[Fraction, Replay] | None = None
    problems: dict[str, None] = field(default_factory=dict)
    pairs: int = 0

    def add(self, found: Replay, kind: Any) -> None:
        self.pairs += 1
        self.problems.update(dict.fromkeys(found.problems))
        for name, moved in found.moved.items():
            known = self.spends.get(name)
            if known is None or _badness(moved) > _badness(known[0]):
                self.spends[name] = (moved, found)
        if found.moved:
            total = sum((_in_kind(moved, kind) for moved in found.moved.values()), Fraction(0))
            if self.total is None or total > self.total[0]:
                self.total = (total, found)


def _badness(moved: Moved) -> tuple[Fraction, Fraction]:
    return (moved.cost, moved.squared)


def _in_kind(moved: Moved, kind: Any) -> Fraction:
    own = moved.spend.exact_cost.kind
    return moved.cost / 2 if own is GDP and kind is ZCDP else moved.cost


@dataclass
class _Session:
    method: Any
    schema: Schema
    privacy: Guarantee
    runs: int
    confidence: float
    progress: Progress | None
    seed: int | None
    wrap: Callable[[Any], Any] | None
    done: int = 0
    steps: int = 1

    def table(self, relation: str | None) -> Audit:
        wanted = self.method.relations if relation is None else (checked_relation(relation),)
        if not set(wanted) <= set(self.method.relations):
            raise PrivacyError(
                f"{self.method.name} has no guarantee under {relation!r}; it has: {', '.join(self.method.relations)}"
            )
        plans = {one: self._plan(one) for one in wanted}
        tries = {
            one: [(plan, pair) for pair in neighbours(self.method, plan, self.schema)] for one, plan in plans.items()
        }
        if "substitute" in plans and len(paths(plans["substitute"].event)) > 1:
            # n is public there, so that many records need a plan of their own
            many = self._plan("substitute", _CROWD)
            tries["substitute"] += [(many, pair) for pair in crowded(self.method, many, self.schema)]
        sampled = sum(sum(1 for _ in leaves(plan.event)) + 1 for plan in plans.values()) if self.runs else 0
        self.steps = sum(len(pairs) for pairs in tries.values()) + sampled
        level = 1 - (1 - self.confidence) / max(sampled, 1)
        rows = [row for one in wanted for row in self._relation(plans[one], tries[one], level)]
        return Audit(tuple(rows), title=f"audit of {self.method.name} {self.method.version} at {self.privacy}")

    def _plan(self, relation: str, company: int = _COMPANY) -> Plan:
        from confide import gate

        n = company + self.schema.rows_per_unit if relation == "substitute" else None
        return gate.plan(self.method, self.schema, replace(self.privacy, relation=relation), n=n)

    def _step(self, what: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.steps, what)

    def _relation(self, plan: Plan, tries: Sequence[tuple[Plan, Neighbours]], level: float) -> Iterator[Finding]:
        from confide.sources import read

        domain, worst, kind = Domain.of(self.schema), _Worst(), type(plan.guarantee)
        for k, (own, (data, neighbour)) in enumerate(tries):
            one, other = (read(domain.data(records), self.schema) for records in (data, neighbour))
            seed, thorough = k + (self.seed or 0), k % 6 == 0
            worst.add(replay(self.method, own, one, other, seed=seed, wrap=self.wrap, thorough=thorough), kind)
            self._step(f"{plan.relation}: record and replay")
        lattices = self._lattices(plan, tries)
        for leaf in leaves(plan.event):
            if leaf.name in lattices:
                yield lattices[leaf.name]
            elif leaf.name in worst.spends and isinstance(leaf, Spend):
                yield from self._spend(leaf, *worst.spends[leaf.name], plan, worst.pairs, level)
            else:
                yield self._missing(leaf.name, plan)
        if worst.total is not None and exact_cost(plan.event) is not None:
            yield from self._whole(plan, *worst.total, worst.pairs, level)
        found = Replay({}, tuple(worst.problems)).finding(f"{self.method.name} everything else", plan.relation)
        yield replace(found, note=f"{worst.pairs} pairs" + (f": {found.note}" if found.note else ""))

    def _lattices(self, plan: Plan, tries: Sequence[tuple[Plan, Neighbours]]) -> dict[str, Finding]:
        """What each opaque release shows of its noise's lattice, on the largest practice records of this plan."""
        from confide.sources import read

        if not any(isinstance(leaf, Opaque) for leaf in leaves(plan.event)):
            return {}
        records = max((data for own, (data, _) in tries if own is plan), key=len)
        source = read(Domain.of(self.schema).data(records), self.schema)
        found = lattice(self.method, plan, source, seed=self.seed or 0, wrap=self.wrap)
        return {one.name: one.finding(self.method.name, plan.relation) for one in found}

    def _missing(self, name: str, plan: Plan) -> Finding:
        return Finding(
            name=f"{self.method.name} {name}",
            quantity="ratio",
            claim=None,
            lower_bound=0.0,
            verdict="untested",
            attack="none",
            relation=plan.relation,
            note="no pair released it as planned, or its guarantee is proved elsewhere; audit its law as a function",
        )

    def _spend(
        self, leaf: Spend, moved: Moved, found: Replay, plan: Plan, pairs: int, level: float
    ) -> Iterator[Finding]:
        claim = leaf.exact_cost.guarantee(plan.relation)
        name = f"{self.method.name} {leaf.name}"
        if leaf.law == "exponential":
            scores, others, lengths = found.choices[leaf.name]
            exact = audit_exponential(
                scores,
                others,
                epsilon=float(leaf.scale),
                sensitivity=float(leaf.sensitivity),
                lengths=lengths or None,
                claim=claim,
                name=name,
                relation=plan.relation,
            )
            violated = exact.violated or not moved.within
            yield replace(
                exact, verdict="violated" if violated else "holds", note=f"{_note(pairs, moved.ratio)}; {_CHOICE}"
            )
            return
        yield Finding(
            name=name,
            quantity=_quantity(type(claim)),
            claim=claim,
            lower_bound=_number(type(claim), moved.cost),
            verdict="holds" if moved.within else "violated",
            attack="exact difference",
            relation=plan.relation,
            note=_note(pairs, moved.ratio),
        )
        if self.runs:
            yield self._sampled(name, [moved], claim, plan.relation, level)

    def _whole(self, plan: Plan, cost: Fraction, found: Replay, pairs: int, level: float) -> Iterator[Finding]:
        claim, name = plan.guarantee, f"{self.method.name} release"
        total = exact_cost(plan.event)
        assert total is not None
        kind = type(claim) if isinstance(claim, GDP | ZCDP | PureDP) else total.kind
        if kind is not total.kind:
            cost, kind = sum((_in_kind(m, total.kind) for m in found.moved.values()), Fraction(0)), total.kind
        yield Finding(
            name=name,
            quantity=_quantity(kind),
            claim=claim,
            lower_bound=_number(kind, cost),
            verdict="violated" if cost > total.amount else "holds",
            attack="exact difference",
            relation=plan.relation,
            note=f"worst of {pairs} pairs",
        )
        additive = [moved for moved in found.moved.values() if moved.scales]
        if self.runs and additive:
            yield self._sampled(name, additive, claim, plan.relation, level)

    def _sampled(self, name: str, moved: Sequence[Moved], claim: Guarantee, relation: str, level: float) -> Finding:
        noise: Any = SecureNoise() if self.seed is None else SimulatedNoise(self.seed)
        mechanism = _likelihood_ratio(moved, noise if self.wrap is None else self.wrap(noise))
        bound = epsilon_lower_bound if isinstance(claim, PureDP | ApproxDP) else mu_lower_bound
        found = bound(
            mechanism,
            0,
            1,
            runs=self.runs,
            confidence=level,
            claim=claim,
            vectorised=True,
            name=name,
            relation=relation,
        )
        self._step(f"{relation}: {name}, {self.runs} draws")
        return replace(found, attack=f"sampler, {found.attack}")


_CHOICE = (
    "a choice spends all of its epsilon only where the chosen point gains what nearly all others lose; the pairs tried spend what the "
    "table says"
)


def _note(pairs: int, ratio: float) -> str:
    return f"worst of {pairs} pairs, {ratio:.4f} of the sensitivity"


_QUANTITIES: Mapping[Any, str] = {GDP: "mu", ZCDP: "rho", PureDP: "epsilon"}


def _quantity(kind: Any) -> str:
    return _QUANTITIES.get(kind, "ratio")


def _number(kind: Any, cost: Fraction) -> float:
    return sqrt(cost) if kind is GDP else float(cost)


def _likelihood_ratio(moved: Sequence[Moved], noise: Any) -> Callable[[int, int], Any]:
    """(which, runs) -> the log-likelihood ratio of the ideal laws at runs of the shipped sampler, on data (0) or neighbour (1).

    Entries that do not differ have ratio 1, and are not drawn.
    """
    groups: dict[tuple[str, Fraction], list[int]] = {}
    for one in moved:
        for shift, scale in zip(one.difference, one.scales, strict=True):
            if shift:
                groups.setdefault((one.spend.law, scale), []).append(shift)

    def mechanism(which: int, runs: int) -> Any:
        total = np.zeros(runs)
        for (law, scale), shifts in groups.items():
            moves = np.array([float(shift) for shift in shifts])
            drawn = np.asarray(getattr(noise, law)(scale, runs * len(shifts)), dtype=np.float64)
            # relative to the exact integers on data, which are a public constant of this pair
            place = drawn.reshape(runs, len(shifts)) + which * moves
            if law.endswith("gaussian"):
                total += (place - moves / 2) @ (moves / float(scale))
            else:
                total += (np.abs(place) - np.abs(place - moves)).sum(axis=1) / float(scale)
        return total

    return mechanism
