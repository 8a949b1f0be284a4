"""Planted faults of private selection: early stops, counts after scores, exact scores, private divisors, losers that leave, bad splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import exp
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import confide as cf
from confide.audit.replay.recording import ReplayNoise
from confide.audit.replay.replay import Replay, replay
from confide.audit.verdict import Audit, Finding
from confide.core import Meter, Plan, Release, Source, seal
from confide.guarantees.selection import TruncatedNegativeBinomial, tradeoff_delta
from confide.methods.selection import draw as parts
from confide.selection import Select
from confide_lab.benchmarks.planted.kinds import Fault, law
from confide_lab.methods import AdaSSP

__all__ = ["SELECT_FAULTS", "moved_by_one", "winner_alone"]

Array = Any

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
ASKED = cf.ApproxDP(1.0, 1e-6)
_LAW = TruncatedNegativeBinomial(1.0, 6.0)


def _finding(name: str, claim: float, found: float, attack: str) -> Finding:
    return Finding(
        name=name,
        quantity="delta",
        claim=claim,
        lower_bound=found,
        verdict="violated" if found > claim else "holds",
        attack=attack,
        relation="add-remove",
    )


# whole methods, by record and replay --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StopsEarly(Select):
    """Runs after the first with a small loss are left out."""

    def _best(self, chosen: Any, runs: Any, ties: Any, validation: Any, noise: Any, clip: float, mu: float) -> Any:
        results = [self.methods[i].infer(run) for i, run in zip(chosen, runs, strict=True)]
        sums = parts.losses_of(validation, results, self._loss(), clip)
        good = next((j for j, total in enumerate(sums) if total < parts.STEPS // 3), len(sums) - 1)
        return super()._best(chosen[: good + 1], runs[: good + 1], ties, validation, noise, clip, mu)


@dataclass(frozen=True)
class _Divides(Select):
    """The score is the mean loss: noise for clip over the private number of validation records."""

    def _best(self, chosen: Any, runs: Any, ties: Any, validation: Any, noise: Any, clip: float, mu: float) -> Any:
        n = max(validation._rows.shape[1], 1)
        results = [self.methods[i].infer(run) for i, run in zip(chosen, runs, strict=True)]
        sums = parts.losses_of(validation, results, self._loss(), clip)
        spread = noise.grid_gaussian(parts.score_noise(mu) / Fraction(n) ** 2, len(chosen))
        return max((int(spread[i]) - total // n, int(ties[i]), i) for i, total in enumerate(sums))[2]


@dataclass(frozen=True)
class _ShowsALoser(Select):
    """The numbers of the first run stand in the release, whoever wins."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        kept: list[Release] = []
        own = Select._best

        def best(method: Any, chosen: Any, runs: Any, *rest: Any) -> Any:
            kept.extend(runs)
            return own(method, chosen, runs, *rest)

        try:
            Select._best = best  # type: ignore[method-assign]
            public = Select.draw(self, source, plan, meter)
        finally:
            Select._best = own  # type: ignore[method-assign]
        first = {f"public first {name}": noisy.values for name, noisy in kept[0].statistics.items()} if kept else {}
        return {**public, **first}


def _candidates() -> list[Any]:
    return [AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2, 1.4)]


def _audited(kind: type[Select]) -> Callable[[bool, int, int], Audit]:
    return lambda wrong, runs, seed: _replayed(kind if wrong else Select, seed)


@cache  # the clean twin is one for all
def _replayed(kind: type[Select], seed: int) -> Audit:
    method = kind(_candidates(), runs=6.0)
    plan = cf.plan(method, SCHEMA, ASKED)
    problems: list[str] = []
    for k in range(16):  # few records, of which each matters
        frame = SCHEMA.sample(3, seed + k)
        records, neighbor = cf.read(frame, SCHEMA), cf.read(frame.iloc[1:], SCHEMA)
        problems += replay(method, plan, records, neighbor, seed=seed + k, thorough=False).problems
    return Audit((Replay({}, tuple(dict.fromkeys(problems))).finding("select", "add-remove"),))


def winner_alone(method: Select, seed: int = 3, n: int = 60) -> int:
    """How many numbers of a release are no number of the winning run."""
    seen: list[tuple[list[int], list[Release]]] = []
    own = Select._best

    def best(inner: Any, chosen: Any, runs: Any, *rest: Any) -> Any:
        seen.append((chosen, runs))
        return own(inner, chosen, runs, *rest)

    try:
        Select._best = best  # type: ignore[method-assign]
        plan = cf.plan(method, SCHEMA, ASKED)
        done = seal(method, cf.read(SCHEMA.sample(n, seed), SCHEMA), plan, ReplayNoise(seed))
    finally:
        Select._best = own  # type: ignore[method-assign]
    chosen, runs = seen[0]
    winner = int(done["selected"].values[0])
    shown = {str(v) for array in done.public.values() for v in np.asarray(array).ravel().tolist()}
    fewest = len(shown)
    for index, run in zip(chosen, runs, strict=True):
        if index == winner:
            kept = {str(v) for noisy in run.statistics.values() for v in noisy.values.ravel().tolist()}
            kept |= {str(v) for array in run.public.values() for v in np.asarray(array).ravel().tolist()}
            fewest = min(fewest, len(shown - kept))
    return fewest


def _alone(kind: type[Select]) -> Finding:
    beyond = max(winner_alone(kind(_candidates(), runs=6.0), seed) for seed in range(3, 11))
    return _finding("numbers of losers", 0.0, float(beyond), "all numbers of a release")


# the split -----------------------------------------------------------------------------------------------------------


def moved_by_one(split: Callable[[Array, float, bytes], tuple[Array, Array]], seed: int) -> int:
    """Records that differ between the parts of data and of data with one record more, at most over a hundred neighbors; 1 is right."""
    g = np.random.default_rng(seed)
    worst = 0
    for _ in range(100):
        rows = g.integers(0, 3, (2, 40)).astype(float)
        more = np.concatenate([rows, g.integers(0, 3, (2, 1))], axis=1)
        secret = g.bytes(32)
        moved = 0
        for one, other in zip(split(_sorted(rows), 0.4, secret), split(_sorted(more), 0.4, secret), strict=True):
            tables = [
                pd.Series(list(zip(*part.tolist(), strict=True)), dtype=object).value_counts() for part in (one, other)
            ]
            moved += int(tables[0].sub(tables[1], fill_value=0).abs().sum())
        worst = max(worst, moved)
    return worst


def _sorted(rows: Array) -> Array:
    return np.ascontiguousarray(rows[:, np.lexsort(rows)])


def _by_place(rows: Array, share: float, secret: bytes) -> tuple[Array, Array]:
    """Coins by the place among the sorted records: one record more moves the coins of all that follow."""
    held = np.random.default_rng(list(secret)).random(rows.shape[1]) < share
    return rows[:, ~held], rows[:, held]


# laws of outputs, exactly ---------------------------------------------------------------------------------------------


def _hockey(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - exp(epsilon) * q, 0).sum())


def best_of(q: Array, run_law: Any = _LAW) -> Array:
    """The law of the best output, the last being the best."""
    cumulated = np.concatenate([[0.0], np.cumsum(q)])
    return np.diff(run_law.pgf(np.minimum(cumulated, 1.0)))


def _after_scores(q: Array) -> Array:
    """One run; where it is not the best output, a million more."""
    again = np.diff(np.concatenate([[0.0], np.cumsum(q)]) ** 1_000_000)
    return (1 - q[-1]) * again + np.array([0.0, 0.0, q[-1]])


_MU = 0.3
_CUTS = (0.5, 5.0)
_Q, _OTHER = (np.diff([0.0, *stats.norm.cdf(_CUTS, loc=shift), 1.0]) for shift in (0.0, _MU))


def _law_of(function: Callable[[Array], Array]) -> Finding:
    """At epsilon = .5, both directions, a base that is .3-GDP: three cells of a normal number."""
    p, r = function(_Q), function(_OTHER)
    found = max(_hockey(p, r, 0.5), _hockey(r, p, 0.5))
    return _finding("delta of the best run", tradeoff_delta(0.5, _MU, _LAW), found, "exact curve")


def _scored(noisy: bool) -> Finding:
    """Two candidates whose true scores change places with one record; the run's score has noise of sd 1/.3, or none."""
    spread = 1 / _MU if noisy else 1e-9
    grid, width = np.linspace(-40, 40, 40_001, retstep=True)

    def winner(first: float, second: float) -> Array:
        density = [stats.norm.pdf(grid * spread, m, spread) * spread / 2 for m in (first, second)]
        above = [stats.norm.sf(grid * spread, m, spread) / 2 for m in (first, second)]
        weight = _LAW.derivative(np.clip(above[0] + above[1], 0, 1))
        return np.array([float((d * weight).sum() * width) for d in density])

    if not noisy:  # the better candidate wins wherever it is drawn
        drawn = _LAW.chance_drawn(2)
        p, r = np.array([drawn, 1 - drawn]), np.array([1 - drawn, drawn])
    else:
        p, r = winner(0.0, 0.5), winner(0.5, 0.0)
    return _finding("delta of the winner's number", tradeoff_delta(0.5, _MU, _LAW), _hockey(p, r, 0.5), "exact curve")


def _slack(times: float) -> Finding:
    """An output that only one data set gives, with probability .001 a run, and the best score."""
    d0, far = 1e-3, 30.0
    p, r = best_of(np.array([*(_Q * (1 - d0)), d0])), best_of(np.array([*_OTHER, 0.0]))
    claim = tradeoff_delta(far, _MU, _LAW) + times * d0
    return _finding("delta far out", claim, _hockey(p, r, far), "exact curve")


SELECT_FAULTS: list[Fault] = [
    Fault("stops early", "runs end when a score is good, so that time and noise tell it", "record and replay", _audited(_StopsEarly)),
    Fault("mean loss", "the score is divided by the private number of held-out records", "record and replay", _audited(_Divides)),
    law("a loser leaves", "numbers of a losing run stand in the release", lambda: _alone(_ShowsALoser), lambda: _alone(Select)),
    law(
        "coins by place",
        "which part a record is in depends on the records before it",
        lambda: _finding("records moved by one", 1.0, float(moved_by_one(_by_place, 1)), "neighbor search"),
        lambda: _finding("records moved by one", 1.0, float(moved_by_one(parts.split, 1)), "neighbor search"),
    ),
    law("runs after scores", "a first score that is not the best buys a million runs",
        lambda: _law_of(_after_scores), lambda: _law_of(best_of)),
    law("exact scores", "scores on private records get no noise", lambda: _scored(False), lambda: _scored(True)),
    law("slack counted once", "a base that may fail counts once, whatever the runs", lambda: _slack(1.0), lambda: _slack(_LAW.mean)),
]  # fmt: skip
