"""Rules for a vote between two: with which probability each gives the majority, the minority or nothing, at every gap.

The gap t is the number of votes for one side less that for the other. Under add/remove a record moves it by 1, under substitution by at
most 2 (a record without a vote may vote). A rule is symmetric: what it does depends on |t| and on who leads.

- optimal: P(minority) = f(|t|). f(0) = 1/2 and, with m the move, f(t + m) = max(0, 1 - e^eps (1 - f(t)) - delta, e^-eps (f(t) -
  delta)). That is the least sequence that (epsilon, delta) allows from one gap to the next. Under substitution odd gaps start at f(1) =
  (1 - delta)/(1 + e^eps), as a record moves 1 to -1. Neither side does better with any symmetric rule. By induction on t both bounds
  are necessary: the first for the majority's probability, the second for the minority's. Together with f decreasing they are enough.
  Odd and even gaps interleave because the step is increasing in f.
- noisy_max: the larger of two counts with Laplace noise of scale b on each. P(minority) = (2 + a) e^-a/4, a = |t|/b. epsilon = m/b,
  because the log ratio of neighbors is eps + log((2 + a)/(2 + a + eps)) < eps.
- distance: D = max(ceil(|t|/m) - 1, 0) moves by at most 1 and is 0 wherever one record makes or breaks a tie. The rule gives the winner
  itself where D passes the distance test of classic propose-test-release, else nothing.
- generalized: the noisy maximum with a scale that is too small in general. It replies where the distance test shows that its own loss
  at this gap, one-sided and at delta, is at most what is left. loss(t) = max over neighbors and outcomes of log((P - delta)/P') rises
  with t before it falls, so that the largest value from t on counts. (eps_test + eps_mech, delta): the deltas belong to different data.

Probabilities are floats. epsilon and delta are lowered by one part in 10^12 before they are used, which is far more than rounding does.
Probabilities below 2^-64 of a pure rule count as 2^-64, which both bounds allow. Sources: Dwork, Lei 2009; Redberg, Zhu, Wang 2023
(C.1, corrected: evidence/errata.md); the optimal rule is derived in confide.

Votes of a column: what a record states, the release of an answer, and the records on which a vote is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, log
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide._arrays import Array
from confide.core import Meter, Method, Plan, Source
from confide.errors import PlanError, PrivacyError
from confide.guarantees import ApproxDP, PureDP
from confide.methods.ptr.classic import StableRelease
from confide.schema import Categorical, CodedFrame, Schema
from confide.sums.cells.cell_sums import Crossing

#: The rules, the one that errs least first; those that know two sides alone.
RULES = ("optimal", "noisy_max", "distance", "generalized")
BETWEEN_TWO = ("optimal", "generalized")

_ROOM = 1 - 1e-12
_LEAST = 2.0**-64
# The table of the optimal rule has about 45/epsilon entries.
_SMALLEST_EPSILON = 1e-4


@dataclass(frozen=True, eq=False)
class Chances:
    """Probabilities of the minority and of no answer at gaps; both (gaps,)."""

    wrong: Array
    silent: Array

    @property
    def right(self) -> Array:
        return np.maximum(1 - self.wrong - self.silent, 0.0)


@dataclass(frozen=True)
class VoteRule:
    """What a rule does at a gap: `chances(|t|)`; test: the distance test before it, with the gap at which its D becomes 1, or None.

    >>> rule = vote_rule("optimal", ApproxDP(1.0, 1e-6), "add-remove")
    >>> rule.chances([0, 1, 5]).wrong.round(4).tolist()
    [0.5, 0.1839, 0.0034]
    """

    name: str
    wrong: Callable[[Array], Array]
    test: StableRelease | None = None
    start: float = 0.0
    move: int = 1

    def distance(self, gap: int) -> int:
        """D of the test before the answer, from |t|: a whole number that one record moves by at most 1."""
        return max(int((abs(gap) - self.start) // self.move) + 1, 0)

    def chances(self, gaps: ArrayLike) -> Chances:
        """At |t|, whole numbers."""
        t = np.abs(np.atleast_1d(np.asarray(gaps, dtype=np.int64)))
        passed = np.ones(len(t))
        if self.test is not None:
            passed = np.array([_passes(self.test, self.distance(int(one))) for one in t])
        wrong = np.where(t == 0, 0.5, self.wrong(t.astype(np.float64)))
        return Chances(wrong * passed, 1 - passed)


def _passes(test: StableRelease, distance: int) -> float:
    m = test.threshold + 1 - distance
    tail = exp(-test.epsilon * max(m, 1 - m)) / (1 + exp(-test.epsilon))
    return tail if m >= 1 else 1 - tail


def checked_rule(rule: object) -> str:
    """The name of a rule, or `PlanError`."""
    if rule not in RULES:
        raise PlanError(f"rule must be one of {', '.join(RULES)}, got {rule!r}", "leave it out")
    return str(rule)


def vote_rule(rule: str, privacy: PureDP | ApproxDP, relation: str) -> VoteRule:
    """The rule at a guarantee. `PrivacyError` for a test without a delta."""
    # beyond 50 nothing is gained, and floats end
    epsilon = min(privacy.epsilon, 50.0) * _ROOM
    delta = privacy.delta * _ROOM if isinstance(privacy, ApproxDP) else 0.0
    move = 2 if relation == "substitute" else 1
    if not epsilon >= _SMALLEST_EPSILON:
        raise PrivacyError(f"a vote needs an epsilon of at least {_SMALLEST_EPSILON:g}, got {privacy}")
    match checked_rule(rule):
        case "optimal":
            table = _optimal(epsilon, delta, move)
            return VoteRule("optimal", lambda t: table[np.minimum(t, len(table) - 1).astype(np.int64)], move=move)
        case "noisy_max":
            return VoteRule(
                "noisy_max", lambda t: np.maximum(laplace_minority(t * (epsilon / move)), _LEAST), move=move
            )
    if not isinstance(privacy, ApproxDP) or not delta:
        raise PrivacyError(
            f"the rule {rule!r} has a test that may fail, so it needs a delta, got {privacy}",
            "write cf.ApproxDP(1.0, 1e-6)",
        )
    if rule == "distance":
        return VoteRule("distance", np.zeros_like, StableRelease(privacy.epsilon, privacy.delta), move + 1.0, move)
    return _generalized(privacy.epsilon, privacy.delta, move).rule


@lru_cache(maxsize=32)
def _optimal(epsilon: float, delta: float, move: int) -> Array:
    """f(0), f(1), ... up to the first 0, or to 2^-64."""
    found = [0.5] if move == 1 else [0.5, (1 - delta) / (1 + exp(epsilon))]
    while found[-1] > (0.0 if delta else _LEAST):
        f = found[-move]
        found.append(max(0.0, -expm1(epsilon) - delta + exp(epsilon) * f, exp(-epsilon) * (f - delta)))
        if not delta:
            found[-1] = max(found[-1], _LEAST)
    table = np.array(found)
    table.flags.writeable = False
    return table


def laplace_minority(a: ArrayLike) -> Array:
    """(2 + a) e^-a/4: two Laplace numbers of scale 1 change places over a gap of a.

    >>> laplace_minority([0.0, 1.5]).round(4).tolist()
    [0.5, 0.1952]
    """
    gap = np.asarray(a, dtype=np.float64)
    return np.asarray((2 + gap) * np.exp(-gap) / 4)


def vote_loss(gap: float, epsilon: float, delta: float) -> float:
    """The one-sided loss of the noisy maximum at one gap and delta: epsilon as of the noise, gap in moves of one record.

    It rises toward epsilon with the gap where delta is 0; the published formula states that it falls (evidence/errata.md).

    >>> [round(vote_loss(t, 10.0, 0.0), 2) for t in (0, 1, 10, 100)], vote_loss(5, 10.0, 1e-10)
    ([8.21, 9.39, 9.91, 9.99], 0.0)
    """
    return float(_losses(np.array([gap]), epsilon, delta)[0])


def _losses(gaps: Array, epsilon: float, delta: float) -> Array:
    """`vote_loss` of many gaps."""
    own, worst = np.abs(gaps), np.zeros(len(gaps))
    least = log(delta) if delta else -inf
    for other, crossed in ((own + 1, np.zeros(len(gaps), dtype=bool)), (own - 1, own < 1)):
        minority, majority = _both(np.abs(other) * epsilon)
        beside = np.where(crossed, majority, minority), np.where(crossed, minority, majority)
        for p, q in zip(_both(own * epsilon), beside, strict=True):
            with np.errstate(all="ignore"):
                loss = p + np.log1p(-np.exp(least - p)) - q
            worst = np.maximum(worst, np.where(p > least, loss, 0.0))
    return worst


def _both(a: Array) -> tuple[Array, Array]:
    """log P(minority), log P(majority)."""
    minority = np.log((2 + a) / 4) - a
    return minority, np.log1p(-np.exp(minority))


@dataclass(frozen=True)
class Generalized:
    """Epsilon of the test and of the noise of the generalized rule, and the gap, in moves, from which its loss is at most the rest."""

    epsilon: float
    delta: float
    test_epsilon: float
    noise_epsilon: float
    least: float
    move: int

    @property
    def rule(self) -> VoteRule:
        scale = self.noise_epsilon / self.move
        return VoteRule(
            "generalized",
            lambda t: laplace_minority(t * scale),
            StableRelease(self.test_epsilon, self.delta),
            self.least * self.move,
            self.move,
        )


@lru_cache(maxsize=32)
def _generalized(epsilon: float, delta: float, move: int) -> Generalized:
    """From epsilon and delta alone: the shares and the noise whose answer is right with probability 0.99 from the smallest gap on."""
    best, reach = None, inf
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        for factor in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0):
            noise = epsilon * factor
            least = _least(noise, delta * _ROOM, (1 - share) * epsilon * _ROOM)
            if least is None:
                continue
            found = Generalized(epsilon, delta, share * epsilon * _ROOM, noise, least, move)
            test = StableRelease(found.test_epsilon, delta)
            # where the test passes with .995, and where noise errs with .005
            passes = least + test.threshold + ceil(log(1 / 0.005) / found.test_epsilon)
            errs = next(u for u in np.arange(0, 60, 0.25) if laplace_minority(float(u)) <= 0.005) / noise
            if max(passes, errs) < reach:
                best, reach = found, max(passes, errs)
    assert best is not None
    return best


def _least(noise: float, delta: float, most: float) -> float | None:
    """The least gap, in half moves, from which on the loss is at most `most`: the last gap that exceeds it decides."""
    if noise <= most:
        return 0.0
    far = ceil(2 * (log(1 / delta) + 5 + log(2 + log(1 / delta))) / noise) + 4
    gaps = np.arange(0, far + 0.5, 0.5)
    above = gaps[_losses(gaps, noise, delta) > most]
    return float(above[-1] + 0.5) if len(above) else 0.0


Ballots = list[Mapping[str, Any]]


class ColumnVote(Method):
    """A vote between the levels of a column, one vote a record: whatever the rule, one answer leaves, or none."""

    column: str
    rule: str | None

    family: ClassVar[str] = "voting"

    def repeated(self, source: Source, plan: Plan, noise: Any) -> Callable[[int], NDArray[Any]]:
        """So many answers, (runs, 1): the number of a level from 1 on, 0 for none."""
        raise NotImplementedError

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The answer: the number of a level from 1 on, 0 for none."""
        answer = self.repeated(source, plan, meter.noise("answer"))(1)[0]
        meter.opaque("answer", answer, Fraction(1))
        if not answer[0]:
            meter.decline()
        return {}

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The share of votes for each level."""
        practice = CodedFrame.checked(frame)
        return _vote_shares(self.about(practice.schema), practice)

    def worst_pairs(self, schema: Any = None) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """A vote for either of the first two levels."""
        return _opposite_votes(schema, self.column)


def ballots(schema: Any, column: str) -> Crossing:
    """What a record says: the level of a column."""
    whole = Schema.of(schema)
    return Crossing.of((column,), whole)


def _vote_shares(ballot: Crossing, practice: CodedFrame) -> dict[str, float]:
    """The share of votes for each level, of test data."""
    place = ballot.places(practice.codes[ballot.columns[0]][None, :].astype(np.float64), (0,))
    counts = np.bincount(place, minlength=ballot.cells((0,)) + 1)[:-1]
    return dict(zip(ballot.attributes[0].labels, (counts / max(counts.sum(), 1)).tolist(), strict=True))


def votes_apart(schema: Any, column: str, plan: Plan, gaps: Iterable[int]) -> Iterator[tuple[Ballots, Ballots]]:
    """Votes in which either level leads by each of these gaps, and neighbors of them.

    Under add/remove a neighbor has one vote more for the leader. Under substitution one vote changed sides, and gaps are odd or even as
    the public number of votes is.
    """
    found = [{column: value} for pair in _opposite_votes(schema, column) for one in pair for value in one.values()]
    few = 3
    for leader, other in (found, found[::-1]) if found else ():
        for gap in gaps:
            if plan.relation == "add-remove":
                yield [other] * few + [leader] * (few + gap), [other] * few + [leader] * (few + gap + 1)
            elif plan.n is not None and gap < plan.n:
                lead = (plan.n + gap + 1) // 2
                rest = [leader] * (lead - 1) + [other] * (plan.n - lead)
                yield [*rest, leader], [*rest, other]


def _opposite_votes(schema: Any, column: str) -> Iterable[tuple[Mapping[str, Any], ...]]:
    """A vote for the first level and one for the second."""
    if isinstance(schema, Schema):
        own = schema[column]
        values = own.levels if isinstance(own, Categorical) else (own.low, own.low + 1)
        yield {column: values[0]}, {column: values[1]}
