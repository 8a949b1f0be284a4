"""Audit a whole method: one table with a row per spend and attack, under every relation that the method has a guarantee for.

Neighbors are built from the schema: the method's own worst pairs, records on which its maps are largest (found by
climbing), corners and hostile records. Their company is empty, small or unbalanced. On each pair the release is
recorded and replayed, which measures the exact integers behind every statistic; from the worst pair follow

- an exact row: what the pair really spends at the noise that the meter asked for, in Fractions;
- a sampled row: the shipped sampler at exactly that scale, drawn many times on both neighbors, and told apart by
  the likelihood ratio of the ideal law. Its lower bound comes with a confidence and knows nothing of any proof;
- rows for an opaque release: the release itself, run many times on both (`confide.audit.replay.opaque`), and the lattice of its noise;
- a row for the release as a whole, and one for record and replay.

A spend on which no attack had a chance is "untested", and its row says why.

One audit of one method: pairs, record and replay, a row per spend and attack, and the reasons of what was not tested.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide.audit.replay.opaque import FEW, RUNS, Setting, attack_opaque, attack_repeated, lattice, silent
from confide.audit.replay.replay import Moved, Replay, opaque_names, replay
from confide.audit.runs.known_distributions import audit_exponential
from confide.audit.runs.lower_bounds import audit_function, epsilon_lower_bound, mu_lower_bound
from confide.audit.searches import neighbors
from confide.audit.searches.neighbors import COMPANY, Domain, Neighbors, checked_relation, has_opaque
from confide.audit.verdict import Audit, Finding
from confide.core import BudgetItem, Method, OpaqueRelease, Plan, exact_cost, leaves
from confide.core.events import has_branches
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.noise import SecureNoise, SimulatedNoise
from confide.schema import Date, Integer, Numeric, Schema
from confide.sums.blocks.isolated_process import in_place

Progress = Callable[[int, int, str], None]


@dataclass
class _Worst:
    """What the pairs of one relation showed: the worst of each spend, of the whole, the problems, and how often each name was drawn."""

    spends: dict[str, tuple[Moved, Replay]] = field(default_factory=dict)
    total: tuple[Fraction, Replay] | None = None
    problems: dict[str, None] = field(default_factory=dict)
    drawn: dict[str, int] = field(default_factory=dict)
    pairs: int = 0

    def add(self, found: Replay, kind: Any) -> None:
        self.pairs += 1
        self.problems.update(dict.fromkeys(found.problems))
        for name in found.drawn:
            self.drawn[name] = self.drawn.get(name, 0) + 1
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
class Session:
    """A method, the columns of its test data, and how hard to try; `table` runs it."""

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
        """All rows, under one relation or all that the method has; code on blocks runs here, on test data."""
        with in_place():
            return self._table(relation)

    def _table(self, relation: str | None) -> Audit:
        wanted = self.method.relations if relation is None else (checked_relation(relation),)
        if not set(wanted) <= set(self.method.relations):
            raise PrivacyError(
                f"{self.method.name} has no guarantee under {relation!r}; it has: {', '.join(self.method.relations)}"
            )
        plans = {one: self._plan(one) for one in wanted}
        tries = {
            one: [(plan, pair) for pair in neighbors.neighbors(self.method, plan, self.schema)]
            for one, plan in plans.items()
        }
        if "substitute" in plans and has_branches(plans["substitute"].event):
            # n is public there, so that many records need a plan of their own
            many = self._plan("substitute", neighbors.CROWD)
            tries["substitute"] += [(many, pair) for pair in neighbors.crowded(self.method, many, self.schema)]
        sampled = sum(sum(1 for _ in leaves(plan.event)) + 1 for plan in plans.values()) if self.runs else 0
        self.steps = sum(len(pairs) for pairs in tries.values()) + sampled
        level = 1 - (1 - self.confidence) / max(sampled, 1)
        rows = [row for one in wanted for row in self._relation(plans[one], tries[one], level)]
        return Audit(tuple(rows), title=f"audit of {self.method.name} {self.method.version} at {self.privacy}")

    def _plan(self, relation: str, company: int = neighbors.COMPANY) -> Plan:
        from confide import engine

        n = company + self.schema.rows_per_unit if relation == "substitute" else None
        return engine.plan(self.method, self.schema, replace(self.privacy, relation=relation), n=n)

    def _step(self, what: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.steps, what)

    def _relation(self, plan: Plan, tries: Sequence[tuple[Plan, Neighbors]], level: float) -> Iterator[Finding]:
        from confide.sources import read

        domain, worst, kind = Domain.of(self.schema), _Worst(), type(plan.guarantee)
        for k, (own, (data, neighbor)) in enumerate(tries):
            one, other = (read(domain.data(records), self.schema) for records in (data, neighbor))
            seed, thorough = k + (self.seed or 0), k % 6 == 0
            worst.add(replay(self.method, own, one, other, seed=seed, wrap=self.wrap, thorough=thorough), kind)
            self._step(f"{plan.relation}: record and replay")
        own_pairs = [pair for own, pair in tries if own is plan]
        for leaf in leaves(plan.event):
            if isinstance(leaf, OpaqueRelease):
                yield from self._opaque(leaf, plan, own_pairs, level)
            elif leaf.name in worst.spends:
                yield from self._spend(leaf, *worst.spends[leaf.name], plan, worst.pairs, level)
            else:
                yield self._missing(leaf.name, plan, worst)
        if worst.total is not None and exact_cost(plan.event) is not None and not opaque_names(plan):
            yield from self._whole(plan, *worst.total, worst.pairs, level)
        found = Replay({}, tuple(worst.problems)).finding(f"{self.method.name} everything else", plan.relation)
        yield replace(found, note="; ".join([self._tried(plan, worst.pairs), *filter(None, [found.note])]))

    def _tried(self, plan: Plan, pairs: int) -> str:
        """How many pairs, and whether the method named any."""
        if neighbors.named(self.method, self.schema, plan.relation) or any(
            neighbors.whole(self.method, plan, self.schema)
        ):
            return f"{pairs} pairs"
        return f"{pairs} pairs, all from the schema: worst_pairs of the method names none"

    def _missing(self, name: str, plan: Plan, worst: _Worst) -> Finding:
        """A spend that was compared on no pair, and why."""
        if not worst.drawn.get(name):
            why = f"its branch was not reached on any of {worst.pairs} pairs: nothing of it was drawn"
        else:
            why = f"drawn on {worst.drawn[name]} of {worst.pairs} pairs and compared on none: see everything else"
        return silent(f"{self.method.name} {name}", plan, None, why)

    def _opaque(self, leaf: OpaqueRelease, plan: Plan, pairs: Sequence[Neighbors], level: float) -> Iterator[Finding]:
        """Attacks on one opaque release: end to end, and on the lattice of its noise."""
        name = f"{self.method.name} {leaf.name}"
        if self.runs:
            setting = Setting(self.method, plan, leaf.name, Domain.of(self.schema), self.schema, self.wrap)
            runs = min(self.runs, RUNS)
            seed, half = self.seed or 0, 1 - (1 - level) / 2
            worst = list(neighbors.whole(self.method, plan, self.schema)) or pairs
            many = attack_repeated(setting, leaf, worst, name=name, runs=self.runs, confidence=half, seed=seed)
            yield from many
            if many:
                runs = min(runs, FEW)
            yield from attack_opaque(
                setting, leaf, pairs, name=name, runs=runs, confidence=half if many else level, seed=seed
            )
            self._step(f"{plan.relation}: {name}, {runs} runs")
        else:
            why = "an opaque release is attacked by running it, and runs=0 asks for none"
            yield silent(name, plan, leaf.guarantee, why)
        yield from self._lattice(leaf, plan)

    def _lattice(self, leaf: OpaqueRelease, plan: Plan) -> Iterator[Finding]:
        """A separate question: a release may hide well and still show the lattice of its noise, and the other way round."""
        from confide.sources import read

        source = read(self.schema.sample(neighbors.COMPANY, 1), self.schema)
        name = f"{self.method.name} {leaf.name}"
        for found in lattice(self.method, plan, source, seed=self.seed or 0, wrap=self.wrap):
            if found.name == leaf.name:
                yield replace(found.finding(self.method.name, plan.relation), name=f"{name} lattice", spend=name)

    def _spend(
        self, leaf: BudgetItem, moved: Moved, found: Replay, plan: Plan, pairs: int, level: float
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
            vectorized=True,
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
    """(which, runs) -> the log-likelihood ratio of the ideal laws at runs of the shipped sampler, on data (0) or neighbor (1).

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
    neighbor: Any = None,
    claim: Any = None,
    delta: float | None = None,
    vectorized: bool = False,
    wrap: Callable[[Any], Any] | None = None,
) -> Audit:
    """Audit a method, or any function that adds its own noise. Returns a table of findings with a `verdict`.

    A method (plan, release, infer): schema: the columns of the test data; left out, every name in its text parameters
    is `Numeric(0.5, 2.5)`. `privacy`: what each release may cost; left out, `usual_request`. `relation`: one of its
    relations; None audits all. `wrap`: puts another sampler instead of the seeded one, `wrap(noise) -> noise`, to
    test it.

    A function: data, `neighbor`: two neighboring inputs; claim: what it promises, a guarantee or a curve; delta, `vectorized`: as
    `epsilon_lower_bound`. A claim in GDP or ZCDP bounds mu, one in PureDP or ApproxDP epsilon, no claim both.

    `runs`: draws of each sampled row on each neighbor, 0 for none; of an opaque release, which runs as a whole, at
    most 1,000. `confidence`: probability that no sampled row of a table whose claims all hold is called violated.
    `progress`: called as progress(done, of, what). `seed`: simulated noise that repeats, for tests; None draws from
    the shipped secure source.

    Nothing is charged and no record is read: data are made from the schema. Errors: PrivacyError for parameters out of range.

    >>> import numpy as np
    >>> import confide as cf
    >>> found = audit(cf.regression.SSP("y ~ a", cov="classical", recenter=False), runs=2_000, relation="add-remove", seed=1)
    >>> found.ok, [f.name for f in found if f.attack.startswith("exact")]
    (True, ['ssp range of a', 'ssp range of y', 'ssp moments', 'ssp clipped, unread', 'ssp release'])
    >>> generator = np.random.default_rng(1)
    >>> noisy_sum = lambda x, runs: x.sum() + generator.normal(size=runs)
    >>> audit(noisy_sum, data=np.zeros(3), neighbor=np.ones(3), claim=cf.GDP(1.0), vectorized=True).ok
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
    if data is None or neighbor is None:
        raise PrivacyError(
            "a function is audited on two inputs: write audit(f, data=..., neighbor=..., claim=GDP(1.0))"
        )
    if isinstance(claim, int | float):
        raise PrivacyError(
            f"a claim is a guarantee or a curve, got the number {claim!r}, which may be a mu or an epsilon",
            f"write claim=GDP({claim!r}) or claim=PureDP({claim!r})",
        )
    return audit_function(target, data, neighbor, claim, runs, confidence, relation, delta, vectorized)


def usual_request(method: Method, schema: Schema) -> Guarantee:
    """What a method is audited at where nobody says: GDP(1.0) where it can be planned, larger where a release is opaque."""
    for one in _USUAL:
        plan = _planned(method, schema, one)
        if plan is not None and not has_opaque(plan):
            return one
    return next((one for one in _LARGER if _planned(method, schema, one) is not None), _USUAL[0])


def _planned(method: Method, schema: Schema, request: Guarantee) -> Plan | None:
    from confide import engine

    relation = method.relations[0]
    n = COMPANY + schema.rows_per_unit if relation == "substitute" else None
    try:
        return engine.plan(method, schema, replace(request, relation=relation), n=n)
    except (PrivacyError, PlanError):
        return None  # what is wrong with it, the audit itself says


def _schema(method: Any, schema: Schema | None) -> Schema:
    from confide.testing.test_data import practice_schema

    if schema is not None:
        return _of_numbers(schema)
    practice = practice_schema(method)
    coarse = Schema({name: Numeric(0.5, 2.5, steps=_GRID) for name in practice.names})
    return coarse if _chooses(method, practice) else practice


def _of_numbers(schema: Schema) -> Schema:
    """The same facts where dates are whole numbers, and derived columns are columns of the data: sensitivities depend on bounds alone.

    So a search can give them any values.
    """
    if not schema.derive and not any(column.kind == "date" for column in schema.columns.values()):
        return schema
    columns = {
        name: Integer(own.low, own.high, on_missing=own.on_missing) if isinstance(own, Date) else own
        for name, own in schema.columns.items()
    }
    facts: dict[str, Any] = {"rows_per_unit": schema.rows_per_unit, "unit": schema.unit, "dataset": schema.dataset}
    return Schema(columns, **facts, cluster=schema.cluster, design=schema.design)


def _chooses(method: Any, schema: Schema) -> bool:
    """Whether the method chooses among the points of a column's grid: a million candidates on hundreds of pairs would take minutes."""
    plan = _planned(method, schema, PureDP(1.0))
    return plan is not None and any(
        isinstance(leaf, BudgetItem) and leaf.law == "exponential" for leaf in leaves(plan.event)
    )
