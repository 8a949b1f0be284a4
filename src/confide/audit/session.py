"""One audit of one method: pairs, record and replay, a row per spend and attack, and the reasons of what was not tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide.aggregates.isolation.isolated import in_place
from confide.audit.runs.known_laws import audit_exponential
from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.searches import neighbourhoods
from confide.audit.searches.neighbourhoods import Neighbours
from confide.audit.searches.pairs import Domain, checked_relation
from confide.audit.verdict import Audit, Finding
from confide.audit.watching.lattice import lattice
from confide.audit.watching.opaque import FEW, RUNS, Setting, attack_opaque, silent
from confide.audit.watching.repeated import attack_repeated
from confide.audit.watching.replay import Moved, Replay, opaque_names, replay
from confide.errors import PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.noise import SecureNoise, SimulatedNoise
from confide.protocol import Opaque, Plan, Spend, exact_cost, leaves
from confide.protocol.events import has_branches
from confide.schema import Schema

__all__ = ["Progress", "Session"]

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
    """A method, the columns of its practice records, and how hard to try; `table` runs it."""

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
        """All rows, under one relation or all that the method has; code on blocks runs here, on practice records."""
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
            one: [(plan, pair) for pair in neighbourhoods.neighbours(self.method, plan, self.schema)]
            for one, plan in plans.items()
        }
        if "substitute" in plans and has_branches(plans["substitute"].event):
            # n is public there, so that many records need a plan of their own
            many = self._plan("substitute", neighbourhoods.CROWD)
            tries["substitute"] += [(many, pair) for pair in neighbourhoods.crowded(self.method, many, self.schema)]
        sampled = sum(sum(1 for _ in leaves(plan.event)) + 1 for plan in plans.values()) if self.runs else 0
        self.steps = sum(len(pairs) for pairs in tries.values()) + sampled
        level = 1 - (1 - self.confidence) / max(sampled, 1)
        rows = [row for one in wanted for row in self._relation(plans[one], tries[one], level)]
        return Audit(tuple(rows), title=f"audit of {self.method.name} {self.method.version} at {self.privacy}")

    def _plan(self, relation: str, company: int = neighbourhoods.COMPANY) -> Plan:
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
        own_pairs = [pair for own, pair in tries if own is plan]
        for leaf in leaves(plan.event):
            if isinstance(leaf, Opaque):
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
        if neighbourhoods.named(self.method, self.schema, plan.relation) or any(
            neighbourhoods.whole(self.method, plan, self.schema)
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

    def _opaque(self, leaf: Opaque, plan: Plan, pairs: Sequence[Neighbours], level: float) -> Iterator[Finding]:
        """Attacks on one opaque release: end to end, and on the lattice of its noise."""
        name = f"{self.method.name} {leaf.name}"
        if self.runs:
            setting = Setting(self.method, plan, leaf.name, Domain.of(self.schema), self.schema, self.wrap)
            runs = min(self.runs, RUNS)
            seed, half = self.seed or 0, 1 - (1 - level) / 2
            worst = list(neighbourhoods.whole(self.method, plan, self.schema)) or pairs
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

    def _lattice(self, leaf: Opaque, plan: Plan) -> Iterator[Finding]:
        """A question of its own: a release may hide well and still show the lattice of its noise, and the other way round."""
        from confide.sources import read

        source = read(self.schema.sample(neighbourhoods.COMPANY, 1), self.schema)
        name = f"{self.method.name} {leaf.name}"
        for found in lattice(self.method, plan, source, seed=self.seed or 0, wrap=self.wrap):
            if found.name == leaf.name:
                yield replace(found.finding(self.method.name, plan.relation), name=f"{name} lattice", spend=name)

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
