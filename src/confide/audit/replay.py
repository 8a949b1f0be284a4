"""Record and replay: what differs between two neighbours must be what the statistics declare, and nothing else.

A release is run on D with recorded noise, and again on D' in two ways (Cebere et al. 2026 replay library calls; plan and release apart
make it exact here).

1. Same words. Request by request the noise is the same, so a released number minus its noise is the exact integer that was
   behind it, on either side; their differences are measured against the declared sensitivities in exact arithmetic.
2. Same transcript. The noise on D' is chosen so that every released number equals the one on D. Differential privacy of an adaptive
   release rests on this: given what was released so far, everything else must be the same function on both. So the
   files must agree to the bit, `public` numbers and status included, and so must the requests for noise (law,
   scale, size, words taken), the passes over the records, exceptions, warnings, log lines and printed text.

A safety test that is released only when it passes (`Test`, not shown) is made to pass where it can: its noise is replaced by more than any
threshold. Where it passes on one side alone, the safety behind it must be the least there is, as both then say "no reply" but for
the test's own probability of failure; what follows the test is then compared on no side.

Numbers of a second round depend on the noisy first one, so their integers are compared under the same transcript, which is found by
running again until all agree: one more run for each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.audit.recording import ReplayNoise, Request, Run, run
from confide.audit.verdict import Finding
from confide.protocol import (
    LAWS,
    Method,
    Noisy,
    Opaque,
    Plan,
    Release,
    Source,
    Spend,
    Test,
    hidden_tests,
    leaves,
    threshold,
)

__all__ = ["Moved", "Replay", "replay"]


@dataclass(frozen=True, eq=False)
class Moved:
    """One statistic on two neighbours: its exact difference, and what that spends at the noise that was really asked for.

    difference: integers in released steps, shape (k,): the entries, of a symmetric matrix the diagonal and those above it, of a
    choice the scores. scales: the scale that the meter asked for, one for each. squared: exact square of the difference in
    the spend's norm. cost: of mu^2, rho or epsilon, exact.
    """

    spend: Spend
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
    """What two neighbours showed. problems: what differs and no statistic explains, in words; empty when all is well."""

    moved: dict[str, Moved]
    problems: tuple[str, ...]
    rounds: int
    choices: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

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
    neighbour: Source,
    *,
    seed: int = 0,
    wrap: Callable[[Any], Any] | None = None,
    thorough: bool = True,
) -> Replay:
    """Run a release on two neighbours with the same words, then with the same transcript, and say what differs.

    source, neighbour: records behind one schema, as `confide.read` gives them. wrap: puts a sampler under test in place of the
    seeded one. thorough: also run it twice on `source` and once without noise, to see that all randomness is the meter's and
    enters as drawn. The records should be practice ones: what is found is shown.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    >>> method, records = cf.regression.SSP("y ~ x", recenter=False), schema.sample(30, 1)
    >>> plan = cf.plan(method, schema, cf.GDP(1.0))
    >>> found = replay(method, plan, cf.read(records, schema), cf.read(records[1:], schema))
    >>> found.ok, sorted(found.moved)
    (True, ['clipping', 'meat', 'moments'])
    """
    lifted = _lifted(method, source, plan, seed, wrap)
    first = run(method, source, plan, ReplayNoise(seed, lifted, wrap=wrap))
    again = run(method, source, plan, ReplayNoise(seed, lifted, wrap=wrap)) if thorough else first
    problems = [f"the same records and words: {text}" for text in _differences(first, again, plan)]
    if any(isinstance(leaf, Opaque) for leaf in leaves(plan.event)):
        # noise that is no sum with the integers cannot be taken off: requests, passes, words and shapes must agree, numbers may differ
        second = run(method, neighbour, plan, ReplayNoise(seed, lifted, wrap=wrap))
        if _replied(first, plan) == _replied(second, plan):
            seen = _differences(first, second, plan, numbers=False)
            if _outcome(first) != _outcome(second):
                # another winner was chosen, which may have other numbers to show
                seen = [text for text in seen if not text.startswith("'public'")]
            problems += [f"the same words: {text}" for text in seen]
        return Replay({}, tuple(dict.fromkeys(problems)), 1)
    if not _replied(first, plan) and any(hidden_tests(plan.event)):
        # the first data set is unsafe: the pair is looked at from its other side
        other = _lifted(method, neighbour, plan, seed, wrap)
        if _replied(run(method, neighbour, plan, ReplayNoise(seed, other, wrap=wrap)), plan):
            found = replay(method, plan, neighbour, source, seed=seed, wrap=wrap, thorough=False)
            return Replay(found.moved, tuple(dict.fromkeys([*problems, *found.problems])), found.rounds, found.choices)
    fatal, wrong = _accounted(first, plan)
    problems += fatal
    if problems or first.release is None:
        second = run(method, neighbour, plan, ReplayNoise(seed, wrap=wrap))
        problems += [f"the same words: {text}" for text in _differences(first, second, plan, numbers=False)]
        return Replay({}, tuple(dict.fromkeys([*problems, *wrong])), 1)
    problems += wrong
    spoilt = _entered(method, source, plan, first, seed, wrap) if thorough else []
    if spoilt:  # then a released number less its noise is not what was behind it
        return Replay({}, tuple(dict.fromkeys(problems + spoilt)), 1)
    return _same_transcript(method, plan, neighbour, first, problems, seed, wrap)


def _same_transcript(
    method: Method,
    plan: Plan,
    neighbour: Source,
    first: Run,
    problems: list[str],
    seed: int,
    wrap: Callable[[Any], Any] | None,
) -> Replay:
    """Choose the noise on the neighbour until its release repeats the first one; then nothing may differ."""
    assert first.release is not None
    own = _behind(first, first.release, plan)
    forced: list[Sequence[int] | None] = []
    behind: dict[str, NDArray[Any]] = {}
    second, rounds = first, 0
    # each round settles one more statistic, so that more rounds than these mean that no noise leads to this transcript
    for _ in range(len(first.release.statistics) + 2):
        second = run(method, neighbour, plan, ReplayNoise(seed, forced, wrap=wrap))
        rounds += 1
        if second.release is None or _accounted(second, plan)[0]:
            break
        behind = _behind(second, second.release, plan)
        wanted = _noise_for(first, first.release, behind, plan)
        if wanted == forced:
            break
        forced = wanted
    else:
        problems = [
            *problems,
            "no noise leads from the neighbour to the same transcript: noise does not enter as drawn",
        ]
        return Replay({}, tuple(problems), rounds)
    alone = _replied(first, plan) - _replied(second, plan)
    if alone:
        # the second is unsafe, and the first must then say "no reply" as good as always
        near = {name: own[name] for name in alone if any(own[name] != 0)}
        problems += [
            f"{name!r} passes next to data on which it cannot, with a safety beyond the least" for name in near
        ]
        kept = {name: value for name, value in own.items() if name in behind and value.shape == behind[name].shape}
        moved = {n: _moved(plan.spend(n), behind[n] - kept[n], _requests_of(first, plan, n)) for n in kept}
        return Replay(moved, tuple(dict.fromkeys(problems)), rounds)
    problems += [f"the same transcript: {text}" for text in _differences(first, second, plan)]
    moved = {}
    for name in own:
        if name in behind and own[name].shape == behind[name].shape:
            moved[name] = _moved(plan.spend(name), behind[name] - own[name], _requests_of(first, plan, name))
    choices = {}
    for (name, one), (_, other) in zip(_chosen(first), _chosen(second), strict=False):
        choices[name] = (one.scores, other.scores, one.lengths)
        if len(one.scores) == len(other.scores):
            apart = np.array([b - a for a, b in zip(one.scores, other.scores, strict=True)], dtype=object)
            moved[name] = _moved(plan.spend(name), apart, [one])
    return Replay(moved, tuple(dict.fromkeys(problems)), rounds, choices)


def _pieces(noisy: Noisy, spend: Spend) -> list[tuple[str, str, int]]:
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
    asked, wrong = _without_failed(one, plan), list[str]()
    for name, noisy in one.release.statistics.items():
        spend = _spend(plan, name)
        if spend is None or (noisy.law, noisy.scale, noisy.step) != (spend.law, spend.scale, spend.step):
            return [f"{name!r} left with a law, scale or step that the plan does not declare"], wrong
        for law, scale, size in _pieces(noisy, spend):
            found = asked.pop(0) if asked else None
            if found is None or (found.law, found.size) != (law, size):
                return [
                    f"{name!r} left without noise of its own: planned {law} x {size}, asked for {found or 'none'}"
                ], wrong
            if found.scale != scale:
                wrong.append(f"{name!r} asked for noise of scale {found.scale}, declared is {scale}")
    if asked and one.release.status == "released":
        return [f"noise was drawn that no statistic explains: {', '.join(map(str, asked))}"], wrong
    return [], wrong


def _spend(plan: Plan, name: str) -> Spend | None:
    return next((leaf for leaf in leaves(plan.event) if isinstance(leaf, Spend) and leaf.name == name), None)


def _outcome(one: Run) -> tuple[tuple[str, int], ...]:
    """The opaque releases that are a single integer, such as the number of a winner."""
    statistics = {} if one.release is None else one.release.statistics
    return tuple(
        (name, int(noisy.values.ravel()[0]))
        for name, noisy in statistics.items()
        if noisy.law == "opaque" and noisy.values.size == 1 and noisy.step == 1
    )


def _hidden(plan: Plan) -> dict[str, Spend]:
    """The spends of safety tests that are released only when they pass."""
    return {test.on.name: test.on for test in hidden_tests(plan.event) if isinstance(test.on, Spend)}


def _replied(one: Run, plan: Plan) -> frozenset[str]:
    """The safety tests that passed."""
    return frozenset(_hidden(plan)) & frozenset(one.release.statistics if one.release is not None else ())


def _request_of_test(one: Run, spend: Spend) -> int | None:
    """The place of the request that a safety test made: its law, scale and size, at the plan's scale or, failing that, none."""
    for place, request in enumerate(one.requests):
        if (request.law, request.scale, request.size) == (spend.law, str(spend.scale), 1):
            return place
    return None


def _without_failed(one: Run, plan: Plan) -> list[Request]:
    """The requests of a run, without those of safety tests of which nothing was released."""
    kept: list[Request | None] = list(one.requests)
    for name, spend in _hidden(plan).items():
        place = _request_of_test(one, spend)
        if name not in _replied(one, plan) and place is not None:
            kept[place] = None
    return [request for request in kept if request is not None]


def _lifted(
    method: Method, source: Source, plan: Plan, seed: int, wrap: Callable[[Any], Any] | None
) -> list[Sequence[int] | None]:
    """Answers to the requests of a run that make each safety test pass wherever data are safe: none where there is no test."""
    forced: list[Sequence[int] | None] = []
    for test in hidden_tests(plan.event):
        assert isinstance(test.on, Spend)
        one = run(method, source, plan, ReplayNoise(seed, forced, wrap=wrap))
        place = _request_of_test(one, test.on)
        if place is not None:
            forced += [None] * (place + 1 - len(forced))
            forced[place] = (_beyond(test),)
    return forced


def _beyond(test: Test) -> int:
    """Noise with which a safety test passes wherever data are safe."""
    assert isinstance(test.on, Spend)
    return 2 * threshold(test.on, test.delta)


def _noise_of(one: Run, release: Release, plan: Plan) -> dict[str, NDArray[Any]]:
    """The noise that each released statistic got, in its shape."""
    asked, found = _without_failed(one, plan), {}
    for name, noisy in release.statistics.items():
        if noisy.law == "exponential":
            asked.pop(0)
            continue
        noise = np.zeros(noisy.shape, dtype=object)
        if noisy.norm == "frobenius":
            above = np.triu_indices(noisy.shape[0], 1)
            noise[np.diag_indices(noisy.shape[0])] = asked.pop(0).values
            noise[above] = asked.pop(0).values
            noise.T[above] = noise[above]
        else:
            noise[...] = np.array(asked.pop(0).values, dtype=object).reshape(noisy.shape)
        found[name] = noise
    return found


def _behind(one: Run, release: Release, plan: Plan) -> dict[str, NDArray[Any]]:
    """The exact integers behind each released statistic, in released steps."""
    return {name: release.statistics[name].values - noise for name, noise in _noise_of(one, release, plan).items()}


def _noise_for(first: Run, release: Release, behind: dict[str, NDArray[Any]], plan: Plan) -> list[Sequence[int] | None]:
    """The answers to the requests that make the released numbers those of `release` when `behind` is behind them."""
    wanted: list[Sequence[int] | None] = []
    tests = {test.on.name: test for test in hidden_tests(plan.event) if isinstance(test.on, Spend)}
    for name, noisy in release.statistics.items():
        if name in tests and name not in behind:
            wanted.append((_beyond(tests[name]),))  # let it pass if it can, to see what is behind it
            continue
        if noisy.law != "exponential" and (name not in behind or behind[name].shape != noisy.shape):
            break  # another branch so far: what comes before it decides, and is repeated first
        if noisy.law == "exponential":
            wanted.append((int(noisy.values[0]),))
            continue
        noise = noisy.values - behind[name]
        if noisy.norm == "frobenius":
            above = np.triu_indices(noisy.shape[0], 1)
            wanted += [tuple(np.diag(noise)), tuple(noise[above])]
        else:
            wanted.append(tuple(noise.ravel()))
    return wanted


def _entered(
    method: Method, source: Source, plan: Plan, first: Run, seed: int, wrap: Callable[[Any], Any] | None
) -> list[str]:
    """Noise enters a statistic as it was drawn: without noise the first one is what is behind it with noise."""
    assert first.release is not None
    silent = ReplayNoise(seed, wrap=wrap)
    silent.zero = True
    bare = run(method, source, plan, silent)
    if bare.release is None:
        return []  # a method may give no reply without noise; the transcripts decide
    for name, behind in list(_behind(first, first.release, plan).items())[:1]:
        if name in _hidden(plan):
            return []  # without noise it does not pass
        if name not in bare.release.statistics or not np.array_equal(bare.release.statistics[name].values, behind):
            return [f"the noise of {name!r} does not enter as it was drawn"]
    return []


def _differences(first: Run, second: Run, plan: Plan, *, numbers: bool = True) -> list[str]:
    """What two runs show differently, in words; numbers: also every released number and public array."""
    found = []
    if first.error != second.error:
        found.append(f"the exception differs: {first.error or 'none'} / {second.error or 'none'}")
    if first.requests != second.requests:
        found.append(f"the requests for noise differ: {_listed(first)} / {_listed(second)}")
    if first.calls != second.calls:
        found.append(f"the passes over the records differ: {len(first.calls)} / {len(second.calls)}")
    if plan.relation == "add-remove" and any(call == "the number of records" for call in first.calls):
        found.append("the number of records was asked for, which add-remove keeps secret")
    if first.said != second.said:
        found.append("printed text, warnings or log lines differ")
    if first.release is None or second.release is None:
        return found
    return found + _parts(first.release.to_dict(), second.release.to_dict(), numbers)


def _listed(one: Run) -> str:
    return ", ".join(map(str, one.requests)) or "none"


def _parts(one: dict[str, Any], other: dict[str, Any], numbers: bool) -> list[str]:
    """Which parts of two release files differ."""
    found = []
    for part in sorted({*one, *other}):
        a, b = one.get(part), other.get(part)
        if not numbers and part in ("statistics", "public"):
            a, b = _forms(a), _forms(b)
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


def _requests_of(one: Run, plan: Plan, name: str) -> list[Request]:
    """The requests behind one released statistic."""
    assert one.release is not None
    asked = _without_failed(one, plan)
    for other, noisy in one.release.statistics.items():
        own = [asked.pop(0) for _ in _pieces(noisy, plan.spend(other))]
        if other == name:
            return own
    return []


def _moved(spend: Spend, difference: NDArray[Any], asked: list[Request]) -> Moved:
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
