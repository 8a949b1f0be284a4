"""One-run audits: the bounds keep their confidence, come near the truth for Gaussian sums, and catch faults."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, nct
from tests.messages import refuses

from confide.audit.runs.attacks import Canaries, one_run_audit, one_run_epsilon, one_run_gaussian, one_run_mu
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP

DIMENSION = 1200


def noisy_sum(seed: int, sigma: float = 1.0) -> Callable[[Any], Any]:
    rng = np.random.default_rng((2, seed))
    return lambda rows: rows.sum(axis=0) + sigma * rng.normal(size=DIMENSION)


def test_audit_one_run_is_near_the_truth() -> None:
    audit = one_run_audit(noisy_sum(1), dimension=DIMENSION, claim=GDP(1.0), confidence=0.95, seed=3)
    assert audit.ok and 0.8 <= audit[0].lower_bound <= 1 and audit[0].draws == 1
    assert 0.3 < audit[1].lower_bound < 0.5
    assert "noise independent" in audit[0].note and audit[1].note == ""


def test_audit_one_run_catches() -> None:
    halved = one_run_audit(noisy_sum(2, 0.5), dimension=DIMENSION, claim=GDP(1.0), seed=4)
    assert [finding.verdict for finding in halved] == ["violated", "holds"]
    tiny = one_run_audit(noisy_sum(2, 0.1), dimension=DIMENSION, claim=GDP(0.5), seed=5)
    assert [finding.verdict for finding in tiny] == ["violated", "violated"]
    for claim in (PureDP(1.0), ApproxDP(1.0, 1e-6), 0.5):
        found = one_run_audit(noisy_sum(2, 0.1), dimension=DIMENSION, claim=claim, seed=6)
        assert all(finding.violated for finding in found), found
    double = one_run_audit(
        noisy_sum(7), dimension=DIMENSION, norm=2.0, claim=GDP(1.0), seed=7
    )  # a clip that is not there
    assert double[0].violated and 1.6 < double[0].lower_bound < 2.1


def test_audit_one_run_law_of_the_statistic() -> None:
    """The inversion agrees with scipy's noncentral t: F(t; bound sqrt(m1)) = confidence."""
    rng = np.random.default_rng(1)
    included = np.arange(60) < 30
    signals = included + rng.normal(size=60)
    t = sqrt(30) * signals[:30].mean() / sqrt((signals[30:] ** 2).mean())
    bound = one_run_gaussian(signals, included, confidence=0.95)
    assert nct.cdf(t, 30, bound * sqrt(30)) == pytest.approx(0.95, abs=1e-5)


@pytest.mark.few("3.0")
@pytest.mark.parametrize("base", [0.0, 3.0, 30.0])
def test_audit_one_run_gaussian_confidence(base: float) -> None:
    """200 runs at .9 with 60 canaries in 80 dimensions, on top of an unknown sum of any length."""
    passed = 0
    for seed in range(200):
        canaries = Canaries.draw(60, 80, seed=seed)
        release = canaries.records.sum(axis=0) + np.random.default_rng((3, seed)).normal(size=80)
        release[0] += base
        passed += one_run_gaussian(canaries.signals(release), canaries.included, confidence=0.9) > 1
    assert passed <= binom.isf(1e-6, 200, 0.1)


def test_audit_one_run_baseline_sharpens() -> None:
    base = np.full(DIMENSION, 2.0)
    bounds = [
        one_run_audit(
            lambda rows: rows.sum(axis=0) + base + np.random.default_rng(8).normal(size=DIMENSION),
            dimension=DIMENSION,
            baseline=known,
            seed=9,
        )[0].lower_bound
        for known in (None, base)
    ]
    assert bounds[0] < 0.6 < 0.75 < bounds[1] <= 1


def test_audit_one_run_epsilon_confidence() -> None:
    """Randomised response on every coin is the worst case of a pure claim: the bound passes its epsilon as often as allowed."""
    rng = np.random.default_rng(4)
    right = rng.binomial(300, exp(1) / (1 + exp(1)), size=2000)
    bounds = {int(v): one_run_epsilon(int(v), 300, confidence=0.9) for v in np.unique(right)}
    passed = sum(bounds[int(v)] > 1 for v in right)
    assert 0.04 * 2000 < passed <= binom.isf(1e-6, 2000, 0.1)


def test_audit_one_run_mu_confidence_for_coins_that_leak_together() -> None:
    """One privacy loss for all coins: mu-GDP, and the reason why no bound without assumptions is near Gaussian sums."""
    rng = np.random.default_rng(5)
    mu = 1.0
    loss = np.abs(mu * mu / 2 + mu * rng.normal(size=5000))
    correct = rng.binomial(40, 1 / (1 + np.exp(-loss)))
    bounds = {int(v): one_run_mu(int(v), 40, confidence=0.9) for v in np.unique(correct)}
    passed = sum(bounds[int(v)] > mu for v in correct)
    assert passed <= binom.isf(1e-6, 5000, 0.1)
    assert max(bounds.values()) > 0.5


def test_audit_one_run_delta_costs() -> None:
    bounds = [one_run_epsilon(180, 200, canaries=1000, delta=delta) for delta in (0.0, 1e-8, 1e-5, 1e-3)]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] - bounds[1] < 0.01 and bounds[3] < bounds[0]
    assert one_run_epsilon(100, 200) == 0 and one_run_mu(100, 200) < 1e-3


def test_audit_one_run_refuses() -> None:
    for wrong in ({"canaries": 10}, {"canaries": DIMENSION + 1}, {"norm": 0.0}, {"confidence": 1.0}, {"guesses": 5000}):
        with pytest.raises(PrivacyError):
            one_run_audit(noisy_sum(1), dimension=DIMENSION, **wrong)  # type: ignore[arg-type]
    with refuses(PrivacyError):
        one_run_audit(lambda rows: rows.sum(), dimension=DIMENSION)
    with pytest.raises(PrivacyError):
        one_run_epsilon(5, 3)
