"""Teachers' votes: CPU of the distance test and of the accountant, and what Figure 2's thresholds are over 20 seeds of simulated votes.

confide lab bench votes
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from confide.guarantees import gaussian_epsilon
from confide.guarantees.gnmax import gnmax_epsilon
from confide.methods.voting.teachers_distance import BallotDistance
from confide.methods.voting.vote_budgets import simulated_votes
from confide_lab.benchmarks.acceptance import _row
from confide_lab.experiments.pate import planned_distance
from confide_lab.teachers import made_votes

__all__ = ["run"]

SEEDS = 20


def run() -> list[dict[str, Any]]:
    """Each number beside its bar."""
    return [*_speed(), *_thresholds()]


def _cpu(call: Callable[[], Any]) -> float:
    with threadpool_limits(1):
        call()
        start = time.process_time()
        call()
        return time.process_time() - start


def _speed() -> list[dict[str, Any]]:
    votes = simulated_votes("even", 400, 10, 200, 7)
    generator = np.random.default_rng(0)
    top = generator.binomial(400, generator.beta(12, 1.5, 10_000))
    many = np.column_stack([np.maximum(top, 400 - top), np.minimum(top, 400 - top)])
    return [
        _row(
            "CPU seconds of the distance of 400 teachers, 10 classes, 200 queries",
            _cpu(lambda: BallotDistance(400, 40.0, 1.2, 1e-5, 120)(votes)),
            0.0,
            2.0,
        ),
        _row(
            "CPU seconds of the accountant, 10,000 queries, collapsed pairs",
            _cpu(lambda: gnmax_epsilon(many, 40.0, 1e-5)),
            0.0,
            5.0,
        ),
    ]


def _thresholds() -> list[dict[str, Any]]:
    """Certified epsilon over the plain mechanism's, the worst of 20 seeds: below at some agreement, no gain without."""
    rows = []
    for sigma in (20.0, 30.0, 40.0):
        plain = gaussian_epsilon(1e-5, sqrt(400) / sigma)
        for kind, low, high in (("mnist-like", 0.0, 0.45), ("low", 1.0, np.inf)):
            if kind == "low" and sigma < 30:
                continue
            found = [
                planned_distance(made_votes(kind, np.random.default_rng(seed)), sigma) / plain for seed in range(SEEDS)
            ]
            worst = max(found) if kind == "mnist-like" else min(found)
            said = f"certified over plain, {kind} votes, sigma={sigma:g}, worst of {SEEDS} seeds"
            rows.append(_row(said, worst, low, high, median=round(float(np.median(found)), 3)))
    return rows
