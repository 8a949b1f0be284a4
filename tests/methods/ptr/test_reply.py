"""Release laws: exact audits by the divergence of a reply, published laws that fail, and laws with a planted fault."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np
import pytest
from mpmath import mp
from scipy.special import ndtr, ndtri
from tests.messages import refuses
from tests.pace import quick

from confide.errors import PlanError, PrivacyError
from confide.guarantees import ApproxDP, calibrate_gaussian, gaussian_delta
from confide.guarantees.mechanisms.ptr import (
    ExactReply,
    GaussianReply,
    delta_at,
    exact_reply,
    hockey_stick,
    hockey_sticks,
    worst_delta,
)
from confide_lab.published.eptr import classical_multiplier, distance_probability, logistic_probability

SETTINGS = [(0.05, 1e-3), (0.5, 0.01), (1.0, 1e-6), (4.0, 1e-6), (8.0, 1e-5), (20.0, 1e-3)]


@pytest.mark.parametrize(("epsilon", "delta", "sd"), [(1, 0.01, 1.878), (4, 0.01, 0.669), (1, 1e-6, 4.225)])
def test_the_calibration_is_the_analytic_one(epsilon: float, delta: float, sd: float) -> None:
    mu = calibrate_gaussian(ApproxDP(epsilon, delta))
    assert 0.999999 * delta <= gaussian_delta(epsilon, mu) <= delta
    assert abs(1 / mu - sd) <= 0.001


@pytest.mark.parametrize("t", [-inf, -30.0, -1.0, 0.0, 1e-9, 2.0, 40.0, inf])
@pytest.mark.parametrize("mu", [0.01, 1.0, 6.0])
@mp.workdps(60)
def test_the_curve_is_right_at_every_real_argument(t: float, mu: float) -> None:
    if t in (-inf, inf):
        assert delta_at(t, mu) == (1.0 if t < 0 else 0.0)
        return
    m, s = mp.mpf(mu), mp.mpf(t)
    exact = mp.ncdf(m / 2 - s / m) - mp.exp(s) * mp.ncdf(-m / 2 - s / m)
    assert abs(delta_at(t, mu) - exact) <= 1e-11 * exact + mp.mpf(10) ** -300


def test_the_divergence_equals_quadrature_of_the_two_laws() -> None:
    generator = np.random.default_rng(1)
    x = np.linspace(-30, 30, 400_001)
    for _ in range(20):
        p, q = generator.random(2)
        mu, epsilon = generator.uniform(0.2, 3), generator.uniform(0, 2)
        density = lambda shift: np.exp(-((x - shift) ** 2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
        inside = np.maximum(p * density(mu) - exp(epsilon) * q * density(0), 0).sum() * (x[1] - x[0])
        direct = max((1 - p) - exp(epsilon) * (1 - q), 0) + inside
        assert hockey_stick(p, q, mu, epsilon) == pytest.approx(direct, abs=1e-6)
        assert float(hockey_sticks(p, q, mu, epsilon)) == pytest.approx(hockey_stick(p, q, mu, epsilon), abs=1e-13)
    assert hockey_stick(0, 0.3, 1, 1) == max(1 - exp(1) * 0.7, 0)
    assert hockey_stick(0.3, 0, 1, 1) == 0.3


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
@pytest.mark.parametrize("plan", [3.0, 20.0, 200.0])
def test_the_gaussian_law_meets_its_claim_exactly(epsilon: float, delta: float, plan: float) -> None:
    law = GaussianReply(calibrate_gaussian(ApproxDP(epsilon, delta)), delta, plan)
    worst = worst_delta(law.probabilities, law.mu_release, epsilon, largest=1.2 * plan + 3, step=0.1)
    assert worst <= delta * (1 + 1e-9)
    assert law.mu_test**2 + law.mu_release**2 == pytest.approx(law.mu**2, rel=1e-12)
    p = law.probabilities(np.linspace(0, plan, 500))
    assert p[0] == 0 and (np.diff(p) >= 0).all()
    assert law.capped == (law.planned < 0.999 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "plan", "ratio"), [(1, 0.01, 50, 1.335), (1, 1e-6, 200, 1.214), (8, 1e-5, 3, 101)]
)
def test_the_audit_catches_a_law_without_its_shift(epsilon: float, delta: float, plan: float, ratio: float) -> None:
    law = GaussianReply(calibrate_gaussian(ApproxDP(epsilon, delta)), delta, plan)
    unshifted = lambda g: np.where(g > 0, ndtr(law.mu_test * g + ndtri(delta)), 0.0)  # noqa: E731
    worst = worst_delta(unshifted, law.mu_release, epsilon, largest=1.5 * plan, step=0.1) / delta
    assert worst == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize(
    ("epsilon", "paper", "gaussian", "exact"),
    [
        (0.5, 12.43, 3.357, 3.149),
        (1, 6.215, 1.920, 1.878),
        (2, 3.108, 1.125, 1.116),
        (4, 1.554, 0.671, 0.669),
        (8, 0.777, 0.409, 0.408),
    ],
)
def test_noise_against_the_published_one(epsilon: float, paper: float, gaussian: float, exact: float) -> None:
    """Sd over alpha at delta = .01, planned safety 50."""
    assert 2 * classical_multiplier(0.01) / epsilon == pytest.approx(paper, abs=0.001 * paper)
    law = GaussianReply(calibrate_gaussian(ApproxDP(epsilon, 0.01)), 0.01, 50.0)
    assert 1 / law.mu_release == pytest.approx(gaussian, abs=0.001)
    assert 1 / exact_reply(epsilon, 0.01, 50).mu == pytest.approx(exact, abs=0.001)


@pytest.mark.parametrize(
    ("epsilon", "delta", "plan"), [(1, 0.01, 50), (8, 0.01, 3), (4, 1e-6, 20), (1, 1e-6, 40), (0.5, 1e-3, 60)]
)
def test_the_exact_law_meets_its_claim_and_nearly_attains_it(epsilon: float, delta: float, plan: int) -> None:
    law = exact_reply(epsilon, delta, plan)
    worst = worst_delta(law.probabilities, law.mu, epsilon, largest=plan + 5, step=0.5)
    assert 0.9999 * delta <= worst <= delta * (1 + 1e-9)
    assert law.table[0] == 0 and law.table[-1] >= 0.999
    # no law replies more often from the same step: a touch more is refused
    k = 2
    more = (*law.table[:k], min(law.table[k] * (1 + 1e-6), 1.0), *law.table[k + 1 :])
    with refuses(PrivacyError):
        ExactReply(epsilon, delta, law.mu, more)


def test_a_rounded_safety_that_jumps_two_steps_is_not_private() -> None:
    """What `rounded_safety` is for: 5 and 6 that come out as 4.99... and 6.00...1 are two steps of the table apart."""
    for (epsilon, delta, plan), least in {(1, 0.01, 50): 4.7, (8, 0.01, 3): 20, (4, 1e-6, 20): 1e5}.items():
        law = exact_reply(epsilon, delta, plan)
        p = np.array(law.table)
        jump = float(
            np.max(np.maximum(*(hockey_sticks(a, b, law.mu, epsilon) for a, b in ((p[2:], p[:-2]), (p[:-2], p[2:])))))
        )
        assert jump / delta > least


def test_the_published_logistic_law_is_loose_where_it_is_used_and_fails_for_large_epsilon() -> None:
    def ratio(epsilon: float, delta: float) -> float:
        largest = 4 / epsilon * log(1 / delta) + 6
        probability = lambda g: logistic_probability(g, epsilon=epsilon, delta=delta)  # noqa: E731
        mu = epsilon / (2 * classical_multiplier(delta))
        return worst_delta(probability, mu, epsilon, largest=largest, step=0.1, far=True) / delta

    for epsilon, expected in ((0.5, 0.77), (1, 0.60), (2, 0.37), (4, 0.135), (8, 0.027)):
        assert ratio(epsilon, 0.01) == pytest.approx(expected, rel=0.02)
    assert ratio(24, 0.01) == pytest.approx(3.0, rel=0.02)
    assert ratio(40, 0.01) == pytest.approx(31, rel=0.02)
    for delta, first in ((0.1, 15.9), (0.01, 18.95), (1e-3, 21.2), (1e-6, 25.3)):
        assert ratio(first - 0.15, delta) <= 1 < ratio(first + 0.15, delta)


def test_the_published_distance_law_is_not_private() -> None:
    def ratio(epsilon: float, delta: float, step: float) -> float:
        probability = lambda d: distance_probability(d, epsilon=epsilon, delta=delta)  # noqa: E731
        mu = epsilon / classical_multiplier(delta)
        return worst_delta(probability, mu, epsilon, largest=6 / epsilon * log(1 / delta) + 3, step=step) / delta

    for epsilon, delta, whole, real in (
        (2, 0.01, 1.22, 1.41),
        (4, 0.01, 2.13, 4.44),
        (8, 0.01, 7.43, 17.8),
        (1, 1e-6, 110, 153),
        (4, 1e-6, 1264, 1264),
    ):
        assert ratio(epsilon, delta, 1.0) == pytest.approx(whole, rel=0.01)
        assert ratio(epsilon, delta, 0.1) == pytest.approx(real, rel=0.01)
    for delta, first in ((0.1, 4.117), (0.01, 1.572), (1e-3, 0.576)):
        below = [ratio(epsilon, delta, 1.0) for epsilon in np.linspace(0.2, 0.99, 40) * first]
        assert max(below) <= 1 < ratio(first * 1.003, delta, 1.0)
    assert ratio(0.02, 1e-6, 1.0) > 1


def test_laws_are_fast_and_cached() -> None:
    def anew() -> ExactReply:
        exact_reply.cache_clear()
        return exact_reply(1.0, 0.01, 50, 1e-3)

    first = quick(0.1, anew)  # 12 ms on an idle core
    assert exact_reply(1.0, 0.01, 50, 1e-3) is first


def test_parameters_out_of_range() -> None:
    for wrong in (
        {"gamma_plan": 1.0},
        {"gamma_plan": inf},
        {"beta": 0.0},
        {"beta": 1.0},
        {"mu": 0.0},
        {"delta": 0.0},
        {"delta": 1.0},
    ):
        with pytest.raises((PlanError, PrivacyError)):
            GaussianReply(**{"mu": 0.5, "delta": 1e-3, "gamma_plan": 20.0, **wrong})
    for bad in (1, 1001, 2.5, True):
        with refuses(PlanError):
            exact_reply(1.0, 0.01, bad)  # type: ignore[arg-type]
    with refuses(PlanError):
        exact_reply(0.1, 1e-9, 5)
    with refuses(PlanError):
        exact_reply(1.0, 1e-14, 50)


def _adaptive_delta(epsilon: float, delta: float, lipschitz_steps: int = 400) -> float:
    """Worst delta of the adaptive form on a pair that attains everything: the level moves by l, the estimate by alpha(t) where the
    certificate is right and arbitrarily far where it is wrong; integrated over the released level."""
    mu = calibrate_gaussian(ApproxDP(epsilon, delta / 2))
    test, rest = np.sqrt(0.1) * mu, np.sqrt(0.9) * mu
    # standardised noisy level z under X; under X' its mean is l lower or higher, mu_t in sd units
    z = np.linspace(-12, 12, 40_001)
    width, quantile, worst = z[1] - z[0], -ndtri(delta / 2), 0.0
    for direction in (1.0, -1.0):
        loss = direction * test * z - test**2 / 2  # log p(z - mean)/p'(.) up to sign, along the pair
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        right = z <= quantile
        curve = np.array([delta_at(epsilon - value, rest) for value in loss[:: max(len(z) // lipschitz_steps, 1)]])
        full = np.interp(z, z[:: max(len(z) // lipschitz_steps, 1)], curve)
        worst = max(worst, float((density * np.where(right, full, 1.0)).sum() * width))
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1, 1e-2), (1, 1e-4), (4, 1e-3)])
def test_the_adaptive_form_has_room_on_its_worst_pair(epsilon: float, delta: float) -> None:
    assert _adaptive_delta(epsilon, delta) <= delta
