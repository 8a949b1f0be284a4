"""Record and replay: what differs between two neighbors must be what the statistics declare, and nothing else.

A release is run on D with recorded noise, and again on D', steered so that **every released number equals the one on
D** (Cebere et al. 2026 replay library calls; the gate's meter makes it exact here). Differential privacy of an
adaptive release rests on this: given the releases so far, everything else must be the same function on both. So the
files must agree to the bit, `public` numbers and status included, and so must the requests for noise (name, law,
scale, size, words taken). So must the passes over the records, exceptions, warnings, log lines and printed text. A
released number minus its noise is the exact integer that was behind it, on either side; their differences are
measured against the declared sensitivities in exact arithmetic.

An opaque release adds noise in a way that cannot be taken off again. The requests that are made for it are its own.
On D' it runs on the same words and is then replaced by the number of D, and budget items before and after it are
compared as if it were absent. What else may differ is what is its own: a public number that changes with its noise
alone on the same D, like those of a selection's winner, is attacked together with it (`confide.audit.replay.opaque`).
One that does not change is a function of the records, and must agree.

A safety test that is released only when it passes (`Test`, not shown) is made to pass where it can: its noise is
replaced by more than any threshold. Where it passes on one side alone, the safety behind it must be the least there
is. Both then decline, except for the test's probability of failure. What follows the test is then compared on no
side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.replay.recording import ReplayNoise, Request, Run, run
from confide.audit.verdict import Finding
from confide.core import (
    LAWS,
    BudgetItem,
    Method,
    Noisy,
    OpaqueRelease,
    Plan,
    Release,
    Source,
    Test,
    hidden_tests,
    leaves,
    threshold,
)


@dataclass(frozen=True, eq=False)
class Moved:
    """One statistic on two neighbors: its exact difference, and what that spends at the noise that was really asked for.

    `difference`: integers in released steps, shape (k,): the entries, of a symmetric matrix the diagonal and those
    above it, of a choice the scores. `scales`: the scale that the meter asked for, one for each. `squared`: exact
    square of the difference in the budget item's norm. `cost`: the square of mu, rho or epsilon, exact.
    """

    spend: BudgetItem
    difference: tuple[int, ...]
    scales: tuple[Fraction, ...]
    squared: Fraction
    cost: Fraction

    @property
    def ratio(self) -> float:
        """The difference over the declared sensitivity."""
        return sqrt(self.squared / self.spend.sensitivity**2)

    @property
    def within(self) -> bool:
        """Whether the declared sensitivity and the declared cost hold on this pair, exactly."""
        return self.squared <= self.spend.sensitivity**2 and self.cost <= self.spend.exact_cost.amount


@dataclass(frozen=True)
class Replay:
    """What two neighbors showed. problems: what differs and no statistic explains, in words; empty when all is well.

    moved: the spends that were compared; choices: the scores of both and the lengths; drawn: all names that left on the first.
    """

    moved: dict[str, Moved]
    problems: tuple[str, ...]
    choices: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    drawn: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Nothing unexplained, and no statistic beyond its sensitivity."""
        return not self.problems and all(one.within for one in self.moved.values())

    def finding(self, name: str, relation: str) -> Finding:
        """A row of an `Audit`: quantity "gap", the number of unexplained differences."""
        return Finding(
            name=name,
            quantity="gap",
            claim=0.0,
            lower_bound=float(len(self.problems)),
            verdict="violated" if self.problems else "holds",
            attack="record and replay",
            relation=relation,
            note="; ".join(self.problems),
        )


def replay(
    method: Method,
    plan: Plan,
    source: Source,
    neighbor: Source,
    *,
    seed: int = 0,
    wrap: Callable[[Any], Any] | None = None,
    thorough: bool = True,
) -> Replay:
    """Run a release on two neighbors with the same words and the same transcript, and say what differs.

    source, `neighbor`: records behind one schema, as `confide.read` gives them. `wrap`: puts a sampler under test
    instead of the seeded one. `thorough`: also run it twice on `source` and once without noise, to see that all
    randomness is the meter's and enters as drawn. The records should be practice ones: what is found is shown.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    >>> method, records = cf.regression.SSP("y ~ x", recenter=False), schema.sample(30, 1)
    >>> plan = cf.plan(method, schema, cf.GDP(1.0))
    >>> found = replay(method, plan, cf.read(records, schema), cf.read(records[1:], schema))
    >>> found.ok, sorted(found.moved)
    (True, ['clipped, unread', 'meat', 'moments', 'range of x', 'range of y'])
    """
    lifted = {test.on.name: [[_beyond(test)]] for test in hidden_tests(plan.event) if isinstance(test.on, BudgetItem)}

    def once(records: Source, transcript: Mapping[str, Noisy] | None = None, words: int = seed) -> Run:
        return run(method, records, plan, ReplayNoise(words, wrap=wrap, named=lifted), transcript)

    first = once(source)
    problems = [f"the same records and words: {text}" for text in _differences(first, once(source))] if thorough else []
    if plan.relation == "add-remove" and "the number of records" in first.calls:
        problems.append("the number of records was asked for, which add-remove keeps secret")
    if lifted and not _replied(first, plan) and _replied(once(neighbor), plan):
        # the first data set is unsafe: the pair is looked at from its other side
        found = replay(method, plan, neighbor, source, seed=seed, wrap=wrap, thorough=False)
        return Replay(found.moved, tuple(dict.fromkeys([*problems, *found.problems])), found.choices, found.drawn)
    fatal, wrong = _accounted(first, plan)
    problems += fatal
    if problems or first.release is None:
        other = once(neighbor)
        problems += [f"the same words: {text}" for text in _differences(first, other, numbers=False)]
        if first.error and other.error == first.error:
            # two runs that fail alike show nothing of a method
            problems.append(f"nothing is released on either side, so nothing was audited: {first.error}")
        return Replay({}, tuple(dict.fromkeys([*problems, *wrong])))
    problems += wrong
    spoilt = _entered(method, source, plan, first, seed, wrap) if thorough else []
    if spoilt:  # then a released number less its noise is not what was behind it
        return Replay({}, tuple(dict.fromkeys(problems + spoilt)))
    second = once(neighbor, first.release.statistics)
    loose: frozenset[str] = frozenset()
    if opaque_names(plan):
        spends = {name: noisy for name, noisy in first.release.statistics.items() if name not in opaque_names(plan)}
        others = [once(source, spends, seed + shift) for shift in _OTHER_WORDS]
        loose = _loose(first, others)
        if second.release is not None and opaque_names(plan) & {*first.release.statistics} & {
            *second.release.statistics
        }:
            # a reply or none, once it was drawn, is a part of its outcome, however rare it is on these records
            loose |= {"status"}
    return _compared(plan, first, second, problems, loose)


# other seeds for the noise of opaque releases, far from those of other pairs
_OTHER_WORDS = (1_000_003, 2_000_003)


def opaque_names(plan: Plan) -> frozenset[str]:
    """The releases of a plan whose guarantee is proved elsewhere."""
    return frozenset(leaf.name for leaf in leaves(plan.event) if isinstance(leaf, OpaqueRelease))


def _loose(first: Run, others: Sequence[Run]) -> frozenset[str]:
    """The parts of a release that change with the noise of its opaque ones alone: status, and public numbers by name."""
    found: set[str] = set()
    assert first.release is not None
    for one in others:
        if one.release is not None:
            ours, theirs = (_public(run.release.to_dict()) for run in (first, one) if run.release is not None)
            found |= {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
    return frozenset(found)


def _public(body: dict[str, Any]) -> dict[str, Any]:
    return {"status": body.get("status"), **{f"public {name}": value for name, value in body.get("public", {}).items()}}


def _compared(plan: Plan, first: Run, second: Run, problems: list[str], loose: frozenset[str]) -> Replay:
    """What differs at one transcript, and how far each statistic moved."""
    assert first.release is not None
    drawn = frozenset(first.release.statistics)
    own = _behind(first, first.release, plan)
    fatal, _ = _accounted(second, plan)
    if second.release is None or fatal:
        problems = [*problems, *(f"the same transcript: {text}" for text in [*_differences(first, second), *fatal])]
        return Replay({}, tuple(dict.fromkeys(problems)), drawn=drawn)
    behind = _behind(second, second.release, plan)
    moved = {
        name: _moved(plan.spend(name), behind[name] - own[name], _requests_of(first, name))
        for name in own
        if name in behind and own[name].shape == behind[name].shape
    }
    alone = _replied(first, plan) - _replied(second, plan)
    if alone:
        # the second is unsafe, and the first must then say "no reply" as good as always
        near = {name: own[name] for name in alone if any(own[name] != 0)}
        problems += [
            f"{name!r} passes next to data on which it cannot, with a safety beyond the least" for name in near
        ]
        return Replay(moved, tuple(dict.fromkeys(problems)), drawn=drawn)
    problems += [f"the same transcript: {text}" for text in _differences(first, second, loose=loose)]
    choices = {}
    for (name, one), (_, other) in zip(_chosen(first), _chosen(second), strict=False):
        choices[name] = (one.scores, other.scores, one.lengths)
        if len(one.scores) == len(other.scores):
            apart = np.array([b - a for a, b in zip(one.scores, other.scores, strict=True)], dtype=object)
            moved[name] = _moved(plan.spend(name), apart, [one])
    return Replay(moved, tuple(dict.fromkeys(problems)), choices, drawn)


def _pieces(noisy: Noisy, spend: BudgetItem) -> list[tuple[str, str, int]]:
    """The requests that one statistic explains: law, scale, size."""
    if spend.law == "exponential":
        return [("exponential", f"{spend.scale} with sensitivity {spend.sensitivity}", spend.shape[0])]
    if spend.norm == "frobenius":
        p = spend.shape[0]
        return [(noisy.law, str(noisy.scale), p), (noisy.law, str(noisy.scale / 2), p * (p - 1) // 2)]
    return [(noisy.law, str(noisy.scale), prod(spend.shape))]


def _accounted(one: Run, plan: Plan) -> tuple[list[str], list[str]]:
    """Every request is explained by one statistic that left, with the law and scale that the plan declares.

    Two lists of problems: those after which nothing can be told from this run, and wrong scales.
    """
    if one.release is None:
        return [], []
    asked, wrong = _by_owner(one), list[str]()
    for name, noisy in one.release.statistics.items():
        own = asked.pop(name, [])
        spend = _spend(plan, name)
        if name in opaque_names(plan):
            continue
        if spend is None or (noisy.law, noisy.scale, noisy.step) != (spend.law, spend.scale, spend.step):
            return [f"{name!r} left with a law, scale or step that the plan does not declare"], wrong
        pieces = _pieces(noisy, spend)
        if [(found.law, found.size) for found in own] != [(law, size) for law, _, size in pieces]:
            planned = ", ".join(f"{law} x {size}" for law, _, size in pieces)
            found = ", ".join(map(str, own)) or "none"
            return [f"{name!r} left without its own noise: planned {planned}, asked for {found}"], wrong
        wrong += [
            f"{name!r} asked for noise of scale {found.scale}, declared is {scale}"
            for found, (_, scale, _) in zip(own, pieces, strict=True)
            if found.scale != scale
        ]
    for name in _hidden(plan):
        asked.pop(name, None)  # of a test that did not pass
    if asked and one.release.status == "released":
        rest = ", ".join(str(request) for own in asked.values() for request in own)
        return [f"noise was drawn that no statistic explains: {rest}"], wrong
    return [], wrong


def _by_owner(one: Run) -> dict[str, list[Request]]:
    """The requests of a run by the name they were made for."""
    found: dict[str, list[Request]] = {}
    for request in one.requests:
        found.setdefault(request.owner, []).append(request)
    return found


def _spend(plan: Plan, name: str) -> BudgetItem | None:
    return next((leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem) and leaf.name == name), None)


def _hidden(plan: Plan) -> dict[str, BudgetItem]:
    """The spends of safety tests that are released only when they pass."""
    return {test.on.name: test.on for test in hidden_tests(plan.event) if isinstance(test.on, BudgetItem)}


def _replied(one: Run, plan: Plan) -> frozenset[str]:
    """The safety tests that passed."""
    return frozenset(_hidden(plan)) & frozenset(one.release.statistics if one.release is not None else ())


def _beyond(test: Test) -> int:
    """Noise with which a safety test passes wherever data are safe."""
    assert isinstance(test.on, BudgetItem)
    return 2 * threshold(test.on, test.delta)


def _behind(one: Run, release: Release, plan: Plan) -> dict[str, NDArray[Any]]:
    """The exact integers behind each released sum, in released steps: what left, less its noise."""
    asked, found = _by_owner(one), {}
    for name, noisy in release.statistics.items():
        if noisy.law == "exponential" or name in opaque_names(plan):
            continue
        own, values = asked[name], one.own.get(name, noisy).values
        noise = np.zeros(noisy.shape, dtype=object)
        if noisy.norm == "frobenius":
            above = np.triu_indices(noisy.shape[0], 1)
            noise[np.diag_indices(noisy.shape[0])] = own[0].values
            noise[above] = own[1].values
            noise.T[above] = noise[above]
        else:
            noise[...] = np.array(own[0].values, dtype=object).reshape(noisy.shape)
        found[name] = values - noise
    return found


def _entered(
    method: Method, source: Source, plan: Plan, first: Run, seed: int, wrap: Callable[[Any], Any] | None
) -> list[str]:
    """Noise enters a statistic as it was drawn: without noise the first one is what is behind it with noise."""
    assert first.release is not None
    silent = ReplayNoise(seed, wrap=wrap)
    silent.zero = True
    # an opaque release without noise is another one, and what follows it would be compared beside another
    held = {name: noisy for name, noisy in first.release.statistics.items() if name in opaque_names(plan)}
    bare = run(method, source, plan, silent, held)
    if bare.release is None:
        return []  # a method may give no reply without noise; the transcripts decide
    for name, behind in list(_behind(first, first.release, plan).items())[:1]:
        if name in _hidden(plan):
            return []  # without noise it does not pass
        if name not in bare.release.statistics or not np.array_equal(bare.release.statistics[name].values, behind):
            return [f"the noise of {name!r} does not enter as it was drawn"]
    return []


def _differences(first: Run, second: Run, *, numbers: bool = True, loose: frozenset[str] = frozenset()) -> list[str]:
    """What two runs show differently, in words; numbers: also every released number and public array; loose: but for these."""
    found = []
    if first.error != second.error:
        found.append(f"the exception differs: {first.error or 'none'} / {second.error or 'none'}")
    if first.requests != second.requests:
        found.append(f"the requests for noise differ: {_listed(first)} / {_listed(second)}")
    if first.calls != second.calls:
        found.append(f"the passes over the records differ: {len(first.calls)} / {len(second.calls)}")
    if first.said != second.said:
        found.append("printed text, warnings or log lines differ")
    if first.release is None or second.release is None:
        return found
    return found + _parts(first.release.to_dict(), second.release.to_dict(), numbers, loose)


def _listed(one: Run) -> str:
    return ", ".join(map(str, one.requests)) or "none"


def _parts(one: dict[str, Any], other: dict[str, Any], numbers: bool, loose: frozenset[str]) -> list[str]:
    """Which parts of two release files differ."""
    found = []
    for part in sorted({*one, *other}):
        a, b = one.get(part), other.get(part)
        if part == "status" and part in loose:
            continue
        if not numbers and part in ("statistics", "public"):
            a, b = _forms(a), _forms(b)
        if part == "public":
            a, b = (
                {key: value for key, value in (own or {}).items() if f"public {key}" not in loose} for own in (a, b)
            )
        if a != b:
            inner = []
            if isinstance(a, dict) and isinstance(b, dict):
                inner = sorted(key for key in {*a, *b} if a.get(key) != b.get(key))
            found.append(f"{part!r} of the release differs" + (f" ({', '.join(inner)})" if inner else ""))
    return found


def _forms(part: Any) -> Any:
    """Keys and shapes, without numbers."""
    if isinstance(part, dict):
        return {key: _forms(value) for key, value in part.items() if key not in ("data",)}
    return part


def _requests_of(one: Run, name: str) -> list[Request]:
    """The requests behind one released statistic."""
    return _by_owner(one).get(name, [])


def _moved(spend: BudgetItem, difference: NDArray[Any], asked: list[Request]) -> Moved:
    if spend.norm == "frobenius":
        above = np.triu_indices(spend.shape[0], 1)
        whole = (difference * difference).sum()
        parts = [list(np.diag(difference)), list(difference[above])]
    else:
        parts = [list(difference.ravel())]
        sizes = [abs(int(d)) for d in parts[0]]
        whole = sum(d * d for d in sizes) if spend.norm == "l2" else (sum if spend.norm == "l1" else _most)(sizes) ** 2
    flat = [int(d) for part in parts for d in part]
    if spend.law == "exponential":
        return Moved(
            spend, tuple(flat), (), Fraction(int(whole)), spend.scale * _most(map(abs, flat)) / spend.sensitivity
        )
    scales = [Fraction(request.scale) for request, part in zip(asked, parts, strict=True) for _ in part]
    cost = LAWS[spend.law].cost
    total = sum((cost(Fraction(abs(d)), scale) for d, scale in zip(flat, scales, strict=True)), Fraction(0))
    return Moved(spend, tuple(flat), tuple(scales), Fraction(int(whole)), total)


def _most(sizes: Iterable[int]) -> int:
    return max(sizes, default=0)


def _chosen(one: Run) -> list[tuple[str, Request]]:
    if one.release is None:
        return []
    names = [name for name, noisy in one.release.statistics.items() if noisy.law == "exponential"]
    return list(zip(names, (r for r in one.requests if r.law == "exponential"), strict=False))
