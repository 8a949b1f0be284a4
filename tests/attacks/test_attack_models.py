"""What a hostile review found in models with private fits; each test says what must hold."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import confide as cf
from confide.core import seal
from confide.noise import SimulatedNoise
from confide_lab.methods.logistic.labelled_rows import LabelledRows, record_weights
from confide_lab.methods.logistic.logistic_minimiser import PenalizedLoss, _Search
from confide_lab.methods.logistic.methods import LogisticObjective
from confide_lab.methods.logistic.perturbed_objective import PerturbedObjective
from confide_lab.methods.smooth_naive_bayes import SmoothNaiveBayes, smooth_sensitivity

Array = np.ndarray


def _smooth_delta(epsilon: float, delta: float, n: int) -> float:
    """The exact delta of SmoothNaiveBayes with one feature: a class of n records at -1, one of which is at 1 and leaves; P without it."""
    schema = cf.Schema({"k": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)})
    plan = cf.plan(SmoothNaiveBayes("k ~ x"), schema, cf.ApproxDP(epsilon, delta))
    at, counts = plan.constants, plan.spend("counts")
    assert at["law"] == "laplace"
    wide, narrow = (smooth_sensitivity(m, at["smoothing"]) * at["scale"] for m in (n - 1, n))
    z = np.linspace(-60, 60, 400_001)
    x = -1 + wide * z
    loss = -np.abs(z) - log(2 * wide) + np.abs(x - (2 - n) / n) / narrow + log(2 * narrow)
    # Laplace counts, whose means are 1 apart: their hockey-stick divergence at what the mean has left
    left, e = epsilon - loss, float(counts.exact_cost.amount)
    rest = np.where(
        left >= e, 0.0, np.where(left <= -e, -np.expm1(np.minimum(left, 0)), -np.expm1(np.minimum((left - e) / 2, 0)))
    )
    return float(np.trapezoid(np.exp(-np.abs(z)) / 2 * rest, z))


@pytest.mark.parametrize(("epsilon", "delta", "n"), [(24.0, 1e-6, 2), (36.0, 1e-9, 2), (18.97, 1e-6, 3)])
def test_smooth_bayes_meets_its_delta_at_large_epsilon(epsilon: float, delta: float, n: int) -> None:
    assert _smooth_delta(epsilon, delta, n) <= delta


def test_smooth_bayes_meets_its_delta_at_small_epsilon() -> None:
    for epsilon in (0.5, 2.0, 6.0):
        for n in range(2, 8):
            assert _smooth_delta(epsilon, 1e-6, n) <= 1e-6


def _rows(labelled: LabelledRows, kinds: list[tuple[tuple[float, float], int]]) -> Array:
    parts = [np.repeat(np.rint(np.array(row)[:, None] * labelled.steps), count, axis=1) for row, count in kinds]
    return np.concatenate(parts, axis=1)


def _exact_gradient(objective: PenalizedLoss, rows: Array, tilt: Array, theta: Array) -> float:
    kinds, count = np.unique(rows, axis=1, return_counts=True)
    wide = kinds.astype(np.longdouble) / objective.unit
    slope = 1 / (1 + np.exp(theta.astype(np.longdouble) @ wide)) * record_weights(kinds, objective.unit, objective.cut)
    inner = (wide * (slope * count)).sum(axis=1)
    return float(np.linalg.norm((objective.ridge * theta.astype(np.longdouble) + tilt - inner).astype(float)))


def _perturbed(epsilon: float) -> tuple[LabelledRows, PerturbedObjective]:
    schema = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
    labelled, cut = LabelledRows(LogisticObjective("y ~ x")._design(schema)[0]), sqrt(4 / 3)
    ridge = cut * labelled.longest / epsilon
    return labelled, PerturbedObjective.of(labelled, cut, ridge, epsilon, 1e-6, "add-remove", Fraction(15, 100))


def test_the_gradient_is_within_the_tolerance_on_which_the_guarantee_rests() -> None:
    labelled, made = _perturbed(8.0)
    objective, tilt = PenalizedLoss(float(labelled.steps), made.cut, made.ridge), np.array([0.3, -0.7]) * made.sd
    for kinds in ([((1, 1), 150_000), ((-1, -1), 150_001)], [((1, 0.9), 100_000), ((-1, -0.9), 200_000)]):
        rows = _rows(labelled, kinds)
        theta = objective.minimiser(rows, tilt, made.tolerance)
        assert _exact_gradient(objective, rows, tilt, theta) <= made.tolerance


def test_the_number_of_steps_is_public_at_large_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    labelled, made = _perturbed(30.0)
    calls: list[bool] = []
    plain = _Search.advance

    def counted(self: _Search, *, part: int = 1, careful: bool = False) -> None:
        calls.append(careful)
        if sum(calls) <= 20:
            plain(self, part=part, careful=careful)

    monkeypatch.setattr(_Search, "advance", counted)
    quarter = 75_000
    rows = _rows(labelled, [((1, 0.3), quarter), ((-1, 0.7), quarter), ((1, -0.9), quarter), ((-1, -0.1), quarter)])
    objective = PenalizedLoss(float(labelled.steps), made.cut, made.ridge)
    objective.minimiser(rows, np.array([0.3, -0.7]) * made.sd, made.tolerance)
    assert sum(calls) <= 20


def test_logistic_intervals_that_are_offered_cover() -> None:
    """2,000 records, log-odds 4 a, a normal in [-4, 4], epsilon = 4: intervals where V passes by luck of its noise."""
    schema = cf.Schema({"a": cf.Numeric(-4, 4), "y": cf.Integer(0, 1)})
    method = LogisticObjective("y ~ a")
    plan = cf.plan(method, schema, cf.ApproxDP(4.0, 1e-6))
    offered = hits = 0
    for seed in range(200):
        g = np.random.default_rng(7_000 + seed)
        a = np.clip(g.standard_normal(2_000), -4, 4)
        y = (g.random(2_000) < special.expit(4 * a)).astype(int)
        found = method.infer(seal(method, cf.read(pd.DataFrame({"a": a, "y": y}), schema), plan, SimulatedNoise(seed)))
        if found.has_intervals:
            low, high = found.conf_int().loc["a"]
            offered, hits = offered + 1, hits + int(low <= 4 <= high)
    assert offered == hits or stats.beta.ppf(0.9995, hits + 1, offered - hits) >= 0.93


def test_the_stretch_bound_that_should_be_used() -> None:
    """For b = log(1 + share/T): |d log density| summed over a stretch by e^b is at most `share` for |z| <= T."""
    for share, far in ((0.1, 13.8), (8.0, 13.8), (16.0, 20.7)):
        b = np.log1p(share / far)
        for z in np.linspace(0, far, 200):
            assert abs(-b + z * (exp(b) - 1)) <= share + 1e-12
            assert abs(b - z * (1 - exp(-b))) <= share + 1e-12
