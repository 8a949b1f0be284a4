"""Planted faults of votes, of teachers' labels and of what they are said to cost: noise, tests and distances with one slip each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide import engine
from confide.audit.replay.opaque import Setting, attack_repeated
from confide.audit.runs.known_distributions import audit_probabilities
from confide.audit.searches.neighbors import Domain, whole
from confide.audit.verdict import Audit, Finding
from confide.core import OpaqueRelease, Plan, leaves
from confide.guarantees.mechanisms.noisy_max import collapsed_rdp, gnmax_log_error
from confide.methods.ptr.classic import StableRelease
from confide.methods.voting import plurality
from confide.methods.voting.rules import VoteRule, laplace_minority, vote_loss, vote_rule
from confide.methods.voting.teacher_budgets import BallotDistance
from confide.methods.voting.teacher_labels import TeacherLabels
from confide.sums.blocks.isolated_process import in_place
from confide.sums.blocks.record_block import divided
from confide_lab.benchmarks.planted.kinds import Fault, bounded, law
from confide_lab.published.pate import gnmax_exact, lemma_cost, printed_cost, smooth_cost, smooth_quadrature

__all__ = ["VOTES", "Rarest"]

#: That a clean twin is called violated.
_FALSE_ALARMS = 1e-4
_RUNS = 4_000


def voted(
    name: str, what: str, faulty: Any, clean: Any, schema: cf.Schema, privacy: Any, n: int | None = None
) -> Fault:
    """Many runs on the method's own worst data. n: of records, under substitute."""

    def build(wrong: bool, runs: int, seed: int) -> Audit:
        method = faulty if wrong else clean
        plan = engine.plan(method, schema, privacy, n=n)
        (leaf,) = (one for one in leaves(plan.event) if isinstance(one, OpaqueRelease))
        setting = Setting(method, plan, leaf.name, Domain.of(schema), schema)
        pairs = list(whole(method, plan, schema))
        sure = 1 - _FALSE_ALARMS
        with in_place():
            found = attack_repeated(
                setting, leaf, pairs, name=leaf.name, runs=min(runs, _RUNS), confidence=sure, seed=seed
            )
        return Audit(tuple(found))

    return Fault(name, what, "many runs of an opaque release on a pair", build, clean.name)


# votes between two, and among several ---------------------------------------------------------------------------------

_TWO = cf.Schema({"v": cf.Categorical(["no", "yes"])})
_THREE = cf.Schema({"g": cf.Categorical(["a", "b", "c"])})
_PLURALITY = cf.voting.Plurality


def ruled(change: Callable[[VoteRule, Plan], VoteRule]) -> type[Any]:
    """A vote between two whose rule is another one than its plan's."""

    @dataclass(frozen=True)
    class Faulty(_PLURALITY):  # type: ignore[misc, valid-type]
        def _rule(self, plan: Plan) -> VoteRule:
            return change(super()._rule(plan), plan)

    return Faulty


_LOUD = ruled(lambda rule, plan: vote_rule(rule.name, cf.PureDP(2 * plan.guarantee.epsilon), plan.relation))
_ONE_STEP = ruled(lambda rule, plan: vote_rule(rule.name, plan.guarantee, "add-remove"))
_UNTESTED = ruled(lambda rule, plan: replace(rule, test=None))


@dataclass(frozen=True)
class _Tie(_PLURALITY):  # type: ignore[misc, valid-type]
    """A lead of one record counts as a distance of 1."""

    def repeated(self, source: Any, plan: Plan, noise: Any) -> Any:
        with patch.object(plurality, "StableRelease", _Further):
            return super().repeated(source, plan, noise)


@dataclass(frozen=True)
class _Sure(_PLURALITY):  # type: ignore[misc, valid-type]
    """The distance test always passes."""

    def repeated(self, source: Any, plan: Plan, noise: Any) -> Any:
        with patch.object(plurality, "StableRelease", _Passing):
            return super().repeated(source, plan, noise)


class _Passing(StableRelease):
    def replies(self, distance: int, noise: Any, runs: int = 1) -> NDArray[np.bool_]:
        return np.ones(runs, dtype=bool)


class _Further(StableRelease):
    def replies(self, distance: int, noise: Any, runs: int = 1) -> NDArray[np.bool_]:
        return super().replies(distance + 2, noise, runs)


@dataclass(frozen=True)
class _OneBallot(_PLURALITY):  # type: ignore[misc, valid-type]
    """Under substitute a record is said to move the lead by 1."""

    def repeated(self, source: Any, plan: Plan, noise: Any) -> Any:
        return super().repeated(source, _Said(plan), noise)


class _Said:
    """A plan under the other relation."""

    relation = "add-remove"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)


_BOTH = cf.ApproxDP(1.0, 0.01)
_SUBSTITUTE = {one: replace(one, relation="substitute") for one in (cf.PureDP(1.0), _BOTH)}

_VOTES = [
    voted(
        "optimal rule at twice the epsilon",
        "the chances of an answer are those of 2 epsilon",
        _LOUD("v"),
        _PLURALITY("v"),
        _TWO,
        cf.PureDP(1.0),
    ),
    voted(
        "optimal rule in steps of one ballot",
        "under substitute, where a ballot that changes sides moves the gap by two",
        _ONE_STEP("v"),
        _PLURALITY("v"),
        _TWO,
        _SUBSTITUTE[cf.PureDP(1.0)],
        n=41,
    ),
    voted(
        "winner without its test",
        "the distance to a tie is computed and not tested",
        _Sure("v", "distance"),
        _PLURALITY("v", "distance"),
        _TWO,
        _BOTH,
    ),
    voted(
        "noisy maximum without its test",
        "noise that is too small in general, at every gap",
        _UNTESTED("v", "generalized"),
        _PLURALITY("v", "generalized"),
        _TWO,
        cf.ApproxDP(1.0, 1e-3),
    ),
    voted(
        "distance of a plurality two too large",
        "the winner of a tie leaves more often than delta",
        _Tie("g", "distance"),
        _PLURALITY("g", "distance"),
        _THREE,
        _BOTH,
    ),
    voted(
        "lead of a plurality moved by one",
        "under substitute, where a record that changes sides moves it by two",
        _OneBallot("g", "distance"),
        _PLURALITY("g", "distance"),
        _THREE,
        _SUBSTITUTE[_BOTH],
        n=40,
    ),
]

# teachers -------------------------------------------------------------------------------------------------------------


class Rarest:
    """The teacher that one record turns most easily: the rarest label of its block."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, x: Any, y: Any) -> Rarest:
        labels, counts = np.unique(y, return_counts=True)
        self.label = labels[counts.argmin()]
        return self

    def predict(self, x: Any) -> NDArray[np.int64]:
        return np.full(len(x), self.label, dtype=np.int64)


_TEACHER = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0), "k": cf.Categorical(["a", "b"], on_missing="a")})


@dataclass(frozen=True)
class _HalfNoise(TeacherLabels):
    """Half of the noise of the plan."""

    def _labels(self, votes: Any, mode: str, sigma: float, noise: Any) -> NDArray[Any]:
        return super()._labels(votes, mode, sigma / 2, noise)


@dataclass(frozen=True)
class _BareThreshold(TeacherLabels):
    """Whether a query has a clear winner is asked all but without noise."""

    def _labels(self, votes: Any, mode: str, sigma: float, noise: Any) -> NDArray[Any]:
        threshold, sd = self.confident or (0.0, 0.0)
        return TeacherLabels._labels(replace(self, confident=(threshold, sd / 100)), votes, mode, sigma, noise)


@dataclass(frozen=True)
class _Passes(TeacherLabels):
    """The certificate is not tested."""

    def _passes(self, votes: Any, plan: Plan, noise: Any, runs: int) -> NDArray[np.bool_]:
        return np.ones(runs, dtype=bool)


def _taught(kind: type[TeacherLabels], teachers: int, queries: int, **settings: Any) -> TeacherLabels:
    return kind("k", Rarest(), np.zeros((queries, 1)), teachers, seconds=4.0, **settings)


_TESTED: Mapping[str, Any] = {"certificate": "distance", "sigma": 0.5, "agreement": (100.0, 0.5)}
_TEACHERS = [
    voted(
        "half the noise on teachers' votes",
        "Gaussian noise of half the sd of the plan",
        _taught(_HalfNoise, 2, 12, certificate="gaussian"),
        _taught(TeacherLabels, 2, 12, certificate="gaussian"),
        _TEACHER,
        cf.GDP(2.0),
    ),
    voted(
        "half the Laplace noise on teachers' votes",
        "noise for one count, where a ballot moves two",
        _taught(_HalfNoise, 6, 1, certificate="laplace"),
        _taught(TeacherLabels, 6, 1, certificate="laplace"),
        _TEACHER,
        cf.PureDP(2.0),
    ),
    voted(
        "threshold without its noise",
        "the largest count is compared with a hundredth of the noise that is paid for",
        _taught(_BareThreshold, 2, 12, certificate="gaussian", confident=(1.5, 1.85)),
        _taught(TeacherLabels, 2, 12, certificate="gaussian", confident=(1.5, 1.85)),
        _TEACHER,
        cf.GDP(2.0),
    ),
    voted(
        "labels without their certificate",
        "the distance test is left out, and votes near a tie are answered with little noise",
        _taught(_Passes, 20, 4, **_TESTED),
        _taught(TeacherLabels, 20, 4, **_TESTED),
        _TEACHER,
        cf.ApproxDP(2.0, 0.05),
    ),
]

# distances, blocks and costs, exactly ---------------------------------------------------------------------------------


class _OneSide(BallotDistance):
    """A ballot that goes from the winner to the runner-up is said to move their gap by 1."""

    def levels(self, gaps: Any, changes: int) -> Any:
        return super().levels(gaps, -(-changes // 2))


def _distance_moves(kind: type[BallotDistance]) -> Finding:
    """The most that one ballot of each query moves D, over random votes."""
    generator, worst = np.random.default_rng(3), 0
    for k in range(60):
        teachers, queries = 40, int(generator.integers(1, 12))
        votes = np.array([generator.multinomial(teachers, one) for one in generator.dirichlet([0.4] * 3, queries)])
        far = kind(teachers, (1.5, 3.0, 6.0)[k % 3], float(generator.uniform(0.2, 3)), 1e-3, 40)
        other = votes.copy()
        for row in other:
            # from the winner to the runner-up, as an adversary would
            order = np.argsort(-row)
            row[order[0]] -= 1
            row[order[1]] += 1
        worst = max(worst, abs(far(votes) - far(other)))
    return bounded("distance in ballots", 1.0, float(worst), "neighboring votes")


def _blocks_moved(by: str) -> Finding:
    """Of how many blocks one replaced record changes the contents, at most, over keys."""
    generator, worst = np.random.default_rng(4), 0
    rows = np.arange(12.0)[None]
    other = rows.copy()
    other[0, -1] = 99.0
    for _ in range(40):
        key = generator.bytes(32)
        one, two = ([part.tolist() for part in divided(own, 4, key, by)] for own in (rows, other))
        worst = max(worst, sum(a != b for a, b in zip(one, two, strict=True)))
    return bounded("blocks that a record moves", 1.0, float(worst), "neighboring blocks", "substitute")


_QUERIES = 20
_PLACES = [(5.0, 40.0, 50.0), (5.0, 40.0, 20.0), (2.0, 16.0, 10.0)]


def _label_cost(cost: Callable[[float, float, float], float]) -> Finding:
    """The exact divergence of one label over what it is said to cost, at its worst of a few gaps and orders."""
    worst = max(gnmax_exact(gap, order, sigma) / max(cost(gap, order, sigma), 1e-300) for sigma, gap, order in _PLACES)
    return bounded("divergence of a label over its cost", 1.0, worst, "exact law")


def _collapsed(gap: float, order: float, sigma: float) -> float:
    log_error = gnmax_log_error([[int(gap) + 10, 10]], sigma)
    return float(collapsed_rdp(log_error, order, sigma)[0])


def _vote_said(cost: Callable[[float], float]) -> Finding:
    """A noisy maximum with epsilon = 10 at gaps 5 and 6, and what it is said to lose there."""
    minority = laplace_minority(np.array([50.0, 60.0]))
    one, other = ([float(p), 1 - float(p)] for p in minority)
    return audit_probabilities(one, other, claim=cf.PureDP(max(cost(5.0), cost(6.0))), name="noisy maximum")


#: (order, sigma_s) at beta = .2/order: where Lemma 5.5 fails and, last, where the rule of Algorithm 4 leads at delta = 1e-5.
LETTER = ((2.0, 15.0), (3.0, 15.0), (5.0, 15.0), (10.0, 40.0), (245.0, 86.0))


def letter_audit(cost: Callable[[float, float], float]) -> Audit:
    """Algorithm 4's noisy cost of the labels: the divergence on a pair that its smooth sensitivity allows, and what is claimed."""
    return Audit(
        tuple(
            Finding(
                name=f"noise of a smooth sensitivity, order {order:g}, sigma_s {sigma:g}",
                quantity="rdp",
                claim=cost(order, sigma),
                lower_bound=(found := smooth_quadrature(order, 0.2 / order, sigma)),
                verdict="violated" if found > cost(order, sigma) * (1 + 1e-9) else "holds",
                attack="exact law of one pair",
                relation="add-remove",
            )
            for order, sigma in LETTER
        )
    )


_EXACT = [
    law(
        "gap moved by one ballot",
        "the distance counts a ballot that changes sides once",
        lambda: _distance_moves(_OneSide),
        lambda: _distance_moves(BallotDistance),
        of="teacher_labels",
        attack="neighboring votes",
    ),
    law(
        "teachers' blocks by a hash under substitute",
        "a replaced record leaves one block and enters another",
        lambda: _blocks_moved("identity"),
        lambda: _blocks_moved("position"),
        of="teacher_labels",
        attack="neighboring blocks",
    ),
    law(
        "cost of a label whatever the votes are",
        "exp(-2 order/sigma^2)/order, Theorem 5.4 as printed",
        lambda: _label_cost(lambda gap, order, sigma: printed_cost(order, sigma)),
        lambda: _label_cost(_collapsed),
        of="teacher_labels",
    ),
    law(
        "costs of queries averaged",
        "a ballot of each query changes, and the mean of their costs is counted",
        lambda: _label_cost(lambda gap, order, sigma: _collapsed(gap, order, sigma) / _QUERIES),
        lambda: _label_cost(_collapsed),
        of="teacher_labels",
    ),
    law(
        "loss of a vote that falls with the gap",
        "Figure 3 (a): epsilon log((2 + epsilon (t + 1))/(2 + epsilon t))",
        lambda: _vote_said(lambda t: 10 * log((2 + 10 * (t + 1)) / (2 + 10 * t))),
        lambda: _vote_said(lambda t: vote_loss(t, 10.0, 0.0)),
        of="plurality",
    ),
    Fault(
        "Algorithm 4 to the letter",
        "a number with noise of its smooth sensitivity is said to cost (order + 1)/sigma_s^2, Lemma 5.5",
        "exact law of one pair",
        lambda wrong, runs, seed: letter_audit(
            lemma_cost if wrong else lambda order, sigma: smooth_cost(order, 0.2 / order, sigma)
        ),
        "teacher_labels",
    ),
]

VOTES: list[Fault] = [*_VOTES, *_TEACHERS, *_EXACT]
