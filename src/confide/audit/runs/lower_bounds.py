"""Sampled audits: how much a mechanism spends at least, from its runs on two neighbors.

Runs are cut in two. On the first half (at most `TRAIN_UP_TO` runs on each neighbor, as more teach little) attacks are
learned, and one of them is chosen with one threshold. The choice splits these runs: learned on one part, compared on
the other. On the rest, which nothing has seen, its two error rates are counted once, and Clopper and Pearson (1934)
bound each from above at level (1 - confidence)/2. With probability at least `confidence` both bounds hold, and then
for false-alarm rate alpha and miss rate beta

    epsilon >= max(log((1 - beta - delta)/alpha), log((1 - alpha - delta)/beta))     (Kairouz, Oh, Viswanath 2015)
    mu      >= Phi^-1(1 - alpha) - Phi^-1(beta)                                       (Dong, Roth, Su 2022)

because all four fall in alpha and in beta. The two logarithms are the two directions of the pair. The false-alarm rate is thus fixed
before the first run, whatever the attacks are.

Audit a function that adds its own noise, on two inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from confide._special import betaincinv, ndtr, ndtri
from confide.audit.outcomes import BLOCK, FloatArray, Mechanism, Outcomes, draw, encode, join, only_exceptions
from confide.audit.runs.attacks import Attack, learn
from confide.audit.searches.sensitivity import answer
from confide.audit.verdict import Audit, Curve, Finding, below_curve, curve_of, relation_of
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.guarantees.validation import count, share

THRESHOLDS = 400
TRAIN_UP_TO = 100_000
LUCK = 2.5  # standard deviations by which tests are discounted when they are compared, against those that look good by luck
CURVE_THRESHOLDS = 60  # a claimed curve may take milliseconds per point


def epsilon_lower_bound(
    mechanism: Mechanism,
    data: Any,
    neighbor: Any,
    *,
    delta: float | None = None,
    runs: int = 100_000,
    confidence: float = 0.99,
    claim: Any = None,
    test: Callable[[Any], Any] | None = None,
    vectorized: bool = False,
    bits: bool = False,
    name: str = "",
    relation: str | None = None,
) -> Finding:
    """What epsilon a mechanism spends at least at `delta`, found by telling its outcomes on two neighbors apart.

    `mechanism`: data -> any outcome (number, vector, matrix, dict, text, None; an exception is an outcome too),
    drawing its noise again in each run. `vectorized`: (data, runs) -> an array whose first axis is the runs, or a
    dict of these arrays. `data`, `neighbor`: whatever the mechanism takes. `delta`: additive part; None is the
    claim's own for ApproxDP, else 0. `runs`: on each of the two. `confidence`: the bound exceeds the truth, or a true
    claim is called violated, with probability at most 1 - confidence. `claim`: a guarantee, a curve, or a number
    epsilon. `test`: a score of an outcome (of an array of outcomes where one call makes all runs), large on
    `neighbor`, instead of learned attacks. `bits`: attack the last binary digits of floats too. That breaks nearly
    every mechanism that adds float64 noise to a real number (Mironov 2012), and is a true finding. Without it floats
    stand for the real numbers they are meant to be.

    Returns a `Finding`; "violated" when the two errors lie below the claim's trade-off curve. Errors: PrivacyError for
    parameters out of range, and for an array that does not hold one outcome per run.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> found = epsilon_lower_bound(lambda x, runs: x + rng.laplace(size=runs), 0.0, 1.0, vectorized=True, claim=0.5)
    >>> found.verdict, 0.9 < found.lower_bound < 1
    ('violated', True)
    """
    if delta is None:
        delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    delta = share(delta, "delta", "epsilon_lower_bound(..., delta=1e-6)", zero=True)
    own = isinstance(claim, int | float) or (isinstance(claim, PureDP) and delta == 0)
    own = own or (isinstance(claim, ApproxDP) and claim.delta == delta)
    return _audit(
        _Question("epsilon", lambda alpha, beta: epsilon_of_errors(alpha, beta, delta), claim, own, delta),
        Runs(mechanism, data, neighbor, runs, vectorized, test, bits),
        confidence,
        name or getattr(mechanism, "__name__", "mechanism"),
        relation,
    )


def mu_lower_bound(
    mechanism: Mechanism,
    data: Any,
    neighbor: Any,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    claim: Any = None,
    test: Callable[[Any], Any] | None = None,
    vectorized: bool = False,
    bits: bool = False,
    name: str = "",
    relation: str | None = None,
) -> Finding:
    """What mu of Gaussian differential privacy a mechanism spends at least. Arguments as `epsilon_lower_bound`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> found = mu_lower_bound(lambda x, runs: x + rng.normal(size=runs), 0.0, 1.0, vectorized=True, claim=1.0)
    >>> found.verdict, 0.9 < found.lower_bound < 1
    ('holds', True)
    """
    own = isinstance(claim, int | float) or (isinstance(claim, GDP) and claim.delta == 0)
    return _audit(
        _Question("mu", mu_of_errors, claim, own, 0.0),
        Runs(mechanism, data, neighbor, runs, vectorized, test, bits),
        confidence,
        name or getattr(mechanism, "__name__", "mechanism"),
        relation,
    )


def loss_lower_bound(runs: Runs, *, delta: float, confidence: float) -> float:
    """What epsilon is at least, in the one direction P(data in S) <= e^epsilon P(neighbor in S) + delta.

    >>> rng = np.random.default_rng(1)
    >>> own = Runs(lambda x, runs: x + rng.laplace(size=runs), 0.0, 1.0, 20_000, True, None, False)
    >>> 0.7 < loss_lower_bound(own, delta=0.0, confidence=0.99) < 1.0
    True
    """

    def one_way(alpha: FloatArray, beta: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(np.maximum(1 - alpha - delta, 0)) - np.log(beta)
        return np.asarray(np.nan_to_num(np.maximum(0.0, found), nan=0.0, posinf=np.inf), dtype=np.float64)

    question = _Question("epsilon", one_way, None, False, delta)
    return float(_audit(question, runs, confidence, "mechanism", "substitute").lower_bound)


def epsilon_of_errors(alpha: FloatArray, beta: FloatArray, delta: float) -> FloatArray:
    """The least epsilon >= 0 that allows a test with these two error rates at `delta`; arrays of one shape."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.log(np.maximum(1 - beta - delta, 0)) - np.log(alpha)
        second = np.log(np.maximum(1 - alpha - delta, 0)) - np.log(beta)
    return np.asarray(np.maximum(0.0, np.fmax(first, second)), dtype=np.float64)


def mu_of_errors(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The least mu >= 0 that allows a test with these two error rates."""
    return np.asarray(np.maximum(0.0, -ndtri(alpha) - ndtri(beta)), dtype=np.float64)


def upper_rate(hits: Any, n: int, level: float) -> Any:
    """Clopper and Pearson's upper bound on a rate after `hits` of `n`: below the truth with probability at most `level`.

    >>> round(float(upper_rate(0, 100, 0.05)), 4)  # 1 - 0.05^(1/100)
    0.0295
    """
    hits = np.asarray(hits, dtype=np.float64)
    return np.where(hits >= n, 1.0, betaincinv(np.minimum(hits, n - 1e-9) + 1, np.maximum(n - hits, 1e-9), 1 - level))


@dataclass(frozen=True)
class _Question:
    """The question; `own`: whether the bound itself decides the claim, so that one test serves both."""

    quantity: str
    bound: Callable[[FloatArray, FloatArray], FloatArray]
    claim: Any
    own: bool
    delta: float

    def curve(self) -> Curve | None:
        return None if self.claim is None else curve_of(self.claim, quantity=self.quantity, delta=self.delta)


@dataclass(frozen=True)
class Runs:
    """The mechanism on its two neighbors; scores instead of outcomes when the caller brings a test."""

    mechanism: Mechanism
    data: Any
    neighbor: Any
    runs: int
    vectorized: bool
    test: Callable[[Any], Any] | None
    bits: bool

    def __post_init__(self) -> None:
        if count(self.runs, "runs", "runs=100_000") < 40:
            raise PrivacyError(f"runs must be at least 40, got {self.runs}", "write for instance runs=100_000")

    @property
    def train(self) -> int:
        """Runs on each neighbor from which the test is learned: half of them, up to a limit."""
        return min(int(self.runs) // 2, TRAIN_UP_TO)

    @property
    def rest(self) -> int:
        """Runs on each neighbor on which it is counted."""
        return int(self.runs) - self.train

    def blocks(self, which: int, runs: int) -> Iterator[Outcomes]:
        """Blocks of new runs on data (0) or on the neighbor (1)."""
        return (self._encoded(raw, size) for raw, size in self._raw(which, runs))

    def training(self) -> tuple[Outcomes, Outcomes]:
        """The first part of the runs on both. Errors: PrivacyError when every run on both raised: nothing can be learned."""
        parts: tuple[list[Outcomes], list[Outcomes]] = ([], [])
        raised: list[Exception | None] = []
        for which in (0, 1):
            for raw, size in self._raw(which, self.train):
                raised.append(only_exceptions(raw))
                parts[which].append(self._encoded(raw, size))
        if all(raised):
            raise PrivacyError(
                f"every run on both neighbors raised {type(raised[0]).__name__}, so nothing was audited",
                "write mechanism(data), or mechanism(data, runs) with vectorized=True",
            ) from raised[0]
        return join(parts[0]), join(parts[1])

    def _raw(self, which: int, runs: int) -> Iterator[tuple[Any, int]]:
        for start in range(0, runs, BLOCK):
            size = min(BLOCK, runs - start)
            yield draw(self.mechanism, (self.data, self.neighbor)[which], size, vectorized=self.vectorized), size

    def _encoded(self, raw: Any, size: int) -> Outcomes:
        if self.test is None:
            return encode(raw, size)
        scored = self.test(raw) if self.vectorized else [self.test(one) for one in raw]
        return encode(np.asarray(scored, dtype=np.float64), size)


@dataclass(frozen=True)
class Choice:
    """One test: an attack and its threshold; worth: by what it was chosen."""

    attack: Attack
    threshold: float
    worth: float


def _audit(question: _Question, runs: Runs, confidence: float, name: str, relation: str | None) -> Finding:
    confidence = share(confidence, "confidence", "confidence=0.99", zero=False)
    curve = question.curve()
    tests = 1 if curve is None or question.own else 2
    level = (1 - confidence) / (2 * tests)
    zero, one = runs.training()
    fit = runs.train // 2
    attacks = learn(zero.part(slice(0, fit)), one.part(slice(0, fit)), bits=runs.bits)
    compared = zero.part(slice(fit, None)), one.part(slice(fit, None))
    scored = [(attack, attack.score(compared[0]), attack.score(compared[1])) for attack in attacks]
    del zero, one, compared
    chosen = [best_attack(scored, question.bound, runs.rest, level)]
    if tests == 2 and curve is not None:
        chosen.append(best_attack(scored, _margin(curve, runs.rest), runs.rest, level, CURVE_THRESHOLDS))
    alphas, betas = _rates(runs, chosen, level)
    bound = float(question.bound(alphas[:1], betas[:1])[0])
    violated = [
        curve is not None and below_curve(float(a), float(b), curve) for a, b in zip(alphas, betas, strict=True)
    ]
    shown = violated.index(True) if True in violated else 0
    return Finding(
        name=name,
        quantity=question.quantity,
        claim=question.claim,
        lower_bound=bound,
        verdict="untested" if curve is None else "violated" if any(violated) else "holds",
        attack=chosen[shown].attack.name,
        confidence=confidence,
        draws=2 * int(runs.runs),
        relation=relation if relation is not None else relation_of(question.claim),
        delta=question.delta,
        alpha=float(alphas[shown]),
        beta=float(betas[shown]),
    )


def best_attack(
    scored: list[tuple[Attack, FloatArray, FloatArray]],
    worth: Callable[[FloatArray, FloatArray], FloatArray],
    n: int,
    level: float,
    points: int = THRESHOLDS,
) -> Choice:
    """The attack and threshold that are worth most by these runs, for bounds at `level` on n new runs, after a discount for luck."""
    best = Choice(scored[0][0], inf, -inf)
    for attack, zero, one in scored:
        thresholds = _thresholds(zero, one, points)
        alarms = len(zero) - np.searchsorted(np.sort(zero), thresholds, side="right")
        misses = np.searchsorted(np.sort(one), thresholds, side="right")
        # in standard deviations of these runs: what the final bound will cost, and the discount
        discounted = float(ndtr(ndtri(level) * np.sqrt(len(zero) / n) - LUCK))
        alpha, beta = upper_rate(alarms, len(zero), discounted), upper_rate(misses, len(one), discounted)
        value = worth(alpha, beta)
        index = int(np.argmax(value))
        if value[index] > best.worth:
            best = Choice(attack, float(thresholds[index]), float(value[index]))
    return best


def _thresholds(zero: FloatArray, one: FloatArray, points: int) -> FloatArray:
    """Quantiles of both sets of scores, in the middle and in the tails."""
    tail = np.geomspace(1 / (len(zero) + len(one)), 1 / points, points // 8)
    levels = np.unique(np.concatenate([np.arange(1, points) / points, tail, 1 - tail]))
    both = np.sort(np.concatenate([zero, one]))  # of which quantiles are taken in half the time
    return np.asarray(np.unique(np.quantile(both, levels, method="lower")), dtype=np.float64)


def _margin(curve: Curve, n: int) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """How far below the claimed curve a point lies, in standard deviations of its miss rate."""

    def worth(alpha: FloatArray, beta: FloatArray) -> FloatArray:
        f = np.array([curve(float(a)) for a in alpha])
        g = np.array([curve(float(b)) for b in beta])
        down = (f - beta) / np.sqrt(np.maximum(f * (1 - f), 1 / n))
        left = (g - alpha) / np.sqrt(np.maximum(g * (1 - g), 1 / n))
        return np.asarray(np.maximum(down, left), dtype=np.float64)

    return worth


def _rates(runs: Runs, chosen: list[Choice], level: float) -> tuple[FloatArray, FloatArray]:
    """Upper bounds on false-alarm and miss rate of each chosen test, from runs that nothing has seen."""
    hits = np.zeros((2, len(chosen)))
    for which in (0, 1):
        for block in runs.blocks(which, runs.rest):
            for j, choice in enumerate(chosen):
                above = int((choice.attack.score(block) > choice.threshold).sum())
                hits[which, j] += above if which == 0 else len(block) - above
    return upper_rate(hits[0], runs.rest, level), upper_rate(hits[1], runs.rest, level)


def audit_function(
    target: Callable[..., Any],
    data: Any,
    neighbor: Any,
    claim: Any,
    runs: int,
    confidence: float,
    relation: str | None,
    delta: float | None,
    vectorized: bool,
) -> Audit:
    """A row for each quantity that the claim bounds; remarks where the question itself looks wrong.

    >>> audit_function(lambda x: x.sum(), np.zeros(2), np.ones(2), PureDP(1.0), 200, 0.99, None, None, False).ok
    False
    """
    name = getattr(target, "__name__", "mechanism")
    shared: dict[str, Any] = {"runs": runs, "claim": claim, "vectorized": vectorized, "relation": relation}
    in_epsilon = isinstance(claim, PureDP | ApproxDP)
    both = claim is None
    found = []
    if both:
        confidence = 1 - (1 - confidence) / 2
    if both or not in_epsilon:
        found.append(mu_lower_bound(target, data, neighbor, confidence=confidence, name=name, **shared))
    if both or in_epsilon:
        found.append(
            epsilon_lower_bound(target, data, neighbor, confidence=confidence, delta=delta, name=name, **shared)
        )
    remarks = [
        *_unlike(data, neighbor),
        *([] if vectorized or not any(f.violated for f in found) else _noiseless(target, data)),
    ]
    if remarks:
        found = [replace(f, note="; ".join([*filter(None, [f.note]), *remarks])) for f in found]
    return Audit(tuple(found), title=f"audit of {name}")


def _unlike(data: Any, neighbor: Any) -> list[str]:
    """A remark where two arrays of one length differ in several records: no neighbors, so that a claim may seem violated."""
    if (
        not all(isinstance(one, np.ndarray) for one in (data, neighbor))
        or data.shape != neighbor.shape
        or not data.ndim
    ):
        return []
    differ = int((data != neighbor).reshape(len(data), -1).any(axis=1).sum())
    return [f"the inputs differ in {differ} records; neighbors differ in one"] if differ > 1 else []


def _noiseless(target: Callable[..., Any], data: Any) -> list[str]:
    """A remark where a function says the same each time."""
    said = {repr(answer(target, data)) for _ in range(8)}
    return ["eight runs on the same data gave one answer: is there any noise in it?"] if len(said) == 1 else []
