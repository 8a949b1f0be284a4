"""Exact audits: the published tables, tight claims that hold, and faults that no number of runs is needed for."""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from confide.audit.runs.curve_band import noise_scale_test
from confide.audit.runs.known_distributions import (
    audit_exponential,
    audit_law,
    audit_probabilities,
    exact_knots,
    upper_tail,
)
from confide.errors import PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, PureDP, gaussian_delta, gaussian_epsilon
from confide.noise import SimulatedNoise


class RealLaplace:
    """The trade-off curve of the real Laplace mechanism (Dong, Roth, Su 2022, section 2)."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def f(self, alpha: Any) -> Any:
        a, e = np.asarray(alpha, dtype=float), exp(self.epsilon)
        with np.errstate(divide="ignore"):
            middle = 1 / (4 * e * np.maximum(a, 1e-300))
        return np.where(a < 1 / (2 * e), 1 - e * a, np.where(a <= 0.5, middle, (1 - a) / e))


# the delta that the claim GDP(D/sigma) lacks for a discrete Gaussian, D = mu sigma
TABLE = {
    1: (1.6e-2, 3.2e-2, 7.1e-2, 1.1e-1),
    2: (4.1e-3, 8.2e-3, 2.0e-2, 3.5e-2),
    4: (1.0e-3, 2.1e-3, 5.1e-3, 9.9e-3),
    8: (2.6e-4, 5.2e-4, 1.3e-3, 2.6e-3),
    32: (1.6e-5, 3.2e-5, 8.1e-5, 1.6e-4),
    128: (1.0e-6, 2.0e-6, 5.1e-6, 1.0e-5),
}


@pytest.mark.parametrize("sigma", TABLE)
def test_audit_known_laws_discrete_gaussian_lacks_the_tabled_delta(sigma: int) -> None:
    for mu, lacking in zip((1, 2, 5, 10), TABLE[sigma], strict=True):
        knots = exact_knots("discrete_gaussian", scale=sigma**2, shift=mu * sigma)
        assert float(f"{knots.gap(GDP(mu)):.1e}") == lacking
        found = audit_law("discrete_gaussian", scale=sigma**2, shift=mu * sigma, claim=GDP(mu))
        assert found.violated and found.lower_bound > mu


@pytest.mark.parametrize(
    ("sigma", "excess"), [(0.5, 0.244), (1, 0.0458), (2, 0.01065), (4, 0.00262), (8, 0.000652), (32, 4.07e-5)]
)
def test_audit_known_laws_discrete_gaussian_mu(sigma: float, excess: float) -> None:
    knots = exact_knots("discrete_gaussian", scale=sigma**2, shift=1)
    assert knots.mu() * sigma - 1 == pytest.approx(excess, rel=5e-3)


def test_audit_known_laws_hockey_stick_against_fifty_digits() -> None:
    """delta(epsilon) by summing max(0, p - e^epsilon q) with mpmath."""
    with mpmath.workdps(50):
        sigma, shift = mpmath.mpf(3), 4
        weight = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-120, 121)}
        total = mpmath.fsum(weight.values())
        pmf = {k: w / total for k, w in weight.items()}
        exact = {
            e: mpmath.fsum(
                max(mpmath.mpf(0), pmf.get(k - shift, 0) - mpmath.exp(e) * pmf.get(k, 0)) for k in range(-110, 115)
            )
            for e in (-1.0, 0.0, 0.5, 2.0, 5.0)
        }
    knots = exact_knots("discrete_gaussian", scale=9, shift=4)
    for epsilon, delta in exact.items():
        assert knots.delta(epsilon) == pytest.approx(float(delta), rel=1e-11)
        if epsilon > 0:
            assert knots.epsilon(float(delta)) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize(("scale", "shift"), [(1, 1), (4, 3), (2**20, 1024), (10**18, 3 * 10**9), (0.25, 1)])
def test_audit_known_laws_tight_claims_hold(scale: float, shift: int) -> None:
    mu = shift / sqrt(scale)
    for law in ("grid_gaussian", "gaussian"):
        found = audit_law(law, scale=scale, shift=shift, claim=GDP(mu))
        assert found.verdict == "holds" and found.lower_bound == pytest.approx(mu, rel=1e-7)
    for law in ("grid_laplace", "discrete_laplace", "laplace"):
        found = audit_law(law, scale=scale, shift=shift, claim=PureDP(shift / scale))
        assert found.verdict == "holds" and found.lower_bound == pytest.approx(shift / scale, rel=1e-7, abs=1e-12)
    assert audit_law("grid_laplace", scale=scale, shift=shift, claim=RealLaplace(shift / scale)).verdict == "holds"


def test_audit_known_laws_discrete_gaussian_keeps_zcdp() -> None:
    for sigma, shift in ((0.5, 1), (1, 2), (5, 5), (20, 60)):
        claim = ZCDP(shift**2 / (2 * sigma**2))
        assert audit_law("discrete_gaussian", scale=sigma**2, shift=shift, claim=claim).verdict == "holds"


def test_audit_known_laws_catch() -> None:
    classical = 2 * log(1.25 / 1e-3) / 64  # sigma^2 of the classical calibration at epsilon = 8
    faults = [
        audit_law("gaussian", scale=classical, shift=1, claim=ApproxDP(8.0, 1e-3)),
        audit_law("discrete_laplace", scale=1, shift=1, claim=RealLaplace(1.0)),
        audit_law("discrete_laplace", scale=50, shift=50, claim=RealLaplace(1.0)),
        audit_law("grid_gaussian", scale=10**6, shift=1000 / 0.97 // 1, claim=GDP(1.0)),
        audit_law("grid_gaussian", scale=round(0.97**2 * 2**20), shift=1024, claim=GDP(1.0)),
        audit_law("grid_gaussian", scale=round(0.9999**2 * 2**40), shift=2**20, claim=GDP(1.0)),
        audit_law("grid_laplace", scale=100, shift=100, claim=PureDP(0.5)),
        audit_law("grid_gaussian", scale=0.25, shift=1, claim=GDP(0.5)),
        audit_law("grid_gaussian", scale=100, shift=[6, 8], claim=GDP(0.99)),
        audit_law("grid_gaussian", scale=[100, 400], shift=[6, 12], claim=GDP(0.6)),
        audit_law("grid_gaussian", scale=1, shift=1, claim=PureDP(5.0)),
        audit_law("grid_laplace", scale=3, shift=3, claim=0.9, quantity="epsilon"),
    ]
    assert all(found.violated and found.confidence == 1 and found.draws == 0 for found in faults), faults
    assert faults[0].lower_bound == pytest.approx(gaussian_epsilon(1e-3, 1 / sqrt(classical)), rel=1e-6)


def test_audit_known_laws_classical_gaussian_holds_where_it_does() -> None:
    """At epsilon = 8 the classical formula fails for delta of 1e-3 and holds for 1e-5: the audit tells them apart."""
    scale = 2 * log(1.25 / 1e-5) / 64
    assert audit_law("gaussian", scale=scale, shift=1, claim=ApproxDP(8.0, 1e-5)).verdict == "holds"


def test_audit_known_laws_products() -> None:
    for scale, shift in (([100, 400, 10**8], [6, -12, 5000]), ([50] * 20, [3] * 20), ([4, 10**10], [1, 50_000])):
        mu = sqrt(sum(d * d / s for d, s in zip(shift, scale, strict=True)))
        found = audit_law("grid_gaussian", scale=scale, shift=shift, claim=GDP(mu))
        assert found.verdict == "holds" and 0.99 * mu < found.lower_bound <= mu * (1 + 1e-9)


def test_audit_known_laws_tails() -> None:
    assert upper_tail("grid_gaussian", 4.0, 3) == pytest.approx(float(ndtr(-1.25)), rel=1e-14)
    assert upper_tail("grid_laplace", 1.0, 1) == pytest.approx(exp(-0.5) / 2)
    for law in ("grid_gaussian", "discrete_gaussian", "grid_laplace", "discrete_laplace"):
        k = np.arange(-30, 31)
        tails = upper_tail(law, 4.0, k)
        np.testing.assert_allclose(tails + upper_tail(law, 4.0, 1 - k), 1, rtol=1e-14)
        assert (np.diff(tails) <= 0).all()
    pmf = upper_tail("discrete_laplace", 2.0, np.arange(0, 5)) - upper_tail("discrete_laplace", 2.0, np.arange(1, 6))
    np.testing.assert_allclose(pmf, np.tanh(0.25) * np.exp(-np.arange(5) / 2), rtol=1e-12)
    assert float(upper_tail("grid_gaussian", 1.0, -(float(ndtri(0.25)) // 1))) < 0.5


def test_audit_known_laws_exponential() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores = rng.normal(size=30)
        neighbor = scores + rng.uniform(-1, 1, 30)
        assert audit_exponential(scores, neighbor, epsilon=1.5, sensitivity=1.0).verdict == "holds"
    worst = audit_exponential(np.zeros(1001), np.append(-np.ones(1000), 1.0), epsilon=1.0, sensitivity=1.0)
    assert worst.verdict == "holds" and 0.95 < worst.lower_bound <= 1
    assert audit_exponential(np.zeros(1001), np.append(-np.ones(1000), 1.0), epsilon=1.0, sensitivity=0.5,
                             claim=PureDP(1.0)).violated  # fmt: skip
    with_lengths = audit_exponential([0.0, 0.0], [1.0, 0.0], epsilon=1.0, sensitivity=1.0, lengths=[1e-3, 1])
    assert 0.49 < with_lengths.lower_bound < 0.5


def test_audit_known_laws_probabilities() -> None:
    found = audit_probabilities([0.5, 0.5, 0.0], [0.5, 0.4, 0.1], claim=PureDP(5.0))
    assert found.violated and found.lower_bound == inf
    assert audit_probabilities([0.5, 0.5, 0.0], [0.5, 0.4, 0.1], claim=ApproxDP(0.3, 0.1)).verdict == "holds"
    assert audit_probabilities([1.0], [1.0], claim=GDP(0.001)).lower_bound == 0


def test_audit_known_laws_epsilon_of_gaussian() -> None:
    knots = exact_knots("grid_gaussian", scale=2**40, shift=2**20)
    for delta in (1e-2, 1e-6, 1e-9):
        assert knots.epsilon(delta) == pytest.approx(gaussian_epsilon(delta, 1.0), rel=1e-6)
    assert knots.delta(1.0) == pytest.approx(gaussian_delta(1.0, 1.0), rel=1e-6)


def test_audit_known_laws_refuse() -> None:
    bad: list[dict[str, Any]] = [
        {"law": "cauchy", "scale": 1, "shift": 1, "claim": GDP(1.0)},
        {"law": "grid_gaussian", "scale": -1, "shift": 1, "claim": GDP(1.0)},
        {"law": "grid_gaussian", "scale": 1, "shift": 0.5, "claim": GDP(1.0)},
        {"law": "grid_gaussian", "scale": [1, 2], "shift": [1, 2, 3], "claim": GDP(1.0)},
        {"law": "discrete_gaussian", "scale": 10**12, "shift": 1, "claim": GDP(1.0)},
        {"law": "grid_gaussian", "scale": 1, "shift": 1, "claim": 1.0},
    ]
    for one in bad:
        with pytest.raises(PrivacyError):
            audit_law(one.pop("law"), **one)
    with pytest.raises(PrivacyError):
        audit_probabilities([0.5, 0.6], [0.5, 0.5], claim=1.0, quantity="epsilon")


NOISES = [("grid_gaussian", 10**6), ("discrete_gaussian", 100), ("grid_laplace", 300), ("discrete_laplace", 50)]


def _draws(law: str, scale: float, factor: float, size: int, seed: int) -> Any:
    """Rounded or discrete noise of that law, its spread times factor."""
    if law == "grid_gaussian":
        return SimulatedNoise(seed).grid_gaussian(round(scale * factor**2), size)
    rng = np.random.default_rng(seed)
    if law == "grid_laplace":
        return np.rint(rng.laplace(scale=scale * factor, size=size))
    spread = sqrt(scale) * factor if "gaussian" in law else scale * factor
    k = np.arange(-int(40 * spread), int(40 * spread) + 1)
    weights = np.exp(-((k / spread) ** 2) / 2) if "gaussian" in law else np.exp(-np.abs(k) / spread)
    return rng.choice(k, size=size, p=weights / weights.sum())


@pytest.mark.parametrize(("law", "scale"), NOISES)
@pytest.mark.parametrize("factor", [0.97, 1.0, 1.03])
def test_audit_known_laws_noise_scale(law: str, scale: float, factor: float) -> None:
    found = noise_scale_test(_draws(law, scale, factor, 10**6, 5), law, scale=scale)
    assert found.violated == (factor != 1)
    assert found.lower_bound <= 1 / factor < found.lower_bound * 1.02


def test_audit_known_laws_noise_of_other_shape() -> None:
    rng = np.random.default_rng(4)
    laplace = rng.laplace(size=10**5) / sqrt(2)
    assert noise_scale_test(laplace, "gaussian", scale=1.0).violated
    assert noise_scale_test(rng.normal(size=10**5) + 0.02, "gaussian", scale=1.0).violated
    assert noise_scale_test(np.rint(rng.normal(size=10**5) * 2 - 0.5), "grid_gaussian", scale=4.0).violated
    with pytest.raises(PrivacyError):
        noise_scale_test(rng.normal(size=10), "gaussian", scale=1.0)
    with pytest.raises(PrivacyError):
        noise_scale_test([np.nan] * 200, "gaussian", scale=1.0)


def test_audit_known_laws_noise_scale_false_alarms() -> None:
    rng = np.random.default_rng(6)
    alarms = sum(
        noise_scale_test(np.rint(rng.normal(size=1000) * 3), "grid_gaussian", scale=9, false_alarm=0.05).violated
        for _ in range(100)
    )
    assert alarms <= 18  # more have probability 4e-7 at the nominal rate


def test_the_worse_order_of_an_asymmetric_pair_is_printed() -> None:
    """Two candidates against one: the second order of the pair needs more epsilon than the first."""
    found = audit_exponential([0, 2, 0], [2, 0, 2], epsilon=1, sensitivity=1, claim=PureDP(1.0))
    assert found.verdict == "violated"
    weights = [np.exp([0, 1, 0]), np.exp([1, 0, 1])]
    one, other = (w / w.sum() for w in weights)
    assert found.lower_bound == pytest.approx(np.abs(np.log(one / other)).max(), rel=1e-9)


def test_a_million_outcomes_raise_no_false_alarm() -> None:
    """Running sums of 2^20 probabilities are right to their own rounding only; half of the claim is spent, and none is missing."""
    points = np.arange(1 << 20)
    scores = -np.abs(points - 400_000) // 8
    moved = scores + np.where(points < 350_000, 1, 0)
    found = audit_exponential(scores, moved, epsilon=0.0726269, sensitivity=1)
    assert found.verdict == "holds"
    assert audit_exponential(
        scores, scores + np.where(points < 350_000, 4, -4), epsilon=0.0726269, sensitivity=1
    ).violated
