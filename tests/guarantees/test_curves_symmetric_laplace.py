"""Exact finite dimension: reference values, identities, orderings, speed, an attacker that cannot do better, and faults it sees."""

from __future__ import annotations

import math
from itertools import count, pairwise
from math import exp, expm1, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.special import kv
from tests.few import few
from tests.messages import refuses
from tests.pace import quick

from confide.errors import NoConversion, PrivacyError
from confide.guarantees.curves import (
    SymmetricLaplace,
    calibrate_symmetric_laplace,
    gaussian,
    laplace,
    levels,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.curves.symmetric_laplace import radial

DIMENSIONS = (2, 3, 6, 30, 100)


@pytest.mark.parametrize(
    ("d", "delta"),
    [
        (1, 0.0), (2, 0.040984), (3, 0.067752), (4, 0.081769), (6, 0.096084),
        (10, 0.107694), (30, 0.119405), (100, 0.123518), (inf, 0.125282),
    ],
)  # fmt: skip
def test_reference_values_at_half_a_deviation(d: float, delta: float) -> None:
    assert symmetric_laplace(d, 0.5).delta(0.8) == pytest.approx(delta, abs=2e-6)


@pytest.mark.parametrize(
    ("d", "delta"),
    [(1, 0.599168), (2, 0.605825), (3, 0.610283), (4, 0.613450), (6, 0.617630), (10, 0.622070), (inf, 0.632121)],
)
def test_reference_values_at_two_deviations(d: float, delta: float) -> None:
    assert symmetric_laplace(d, 2.0).delta(1.0) == pytest.approx(delta, abs=2e-6)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("c", [0.01, 0.5, 3.0, 10.0])
def test_total_variation_is_the_same_in_every_dimension(d: int, c: float) -> None:
    """The likelihood ratio is 1 on a half-space, and every projection is a Laplace law."""
    curve = symmetric_laplace(d, c)
    assert isinstance(curve, SymmetricLaplace)
    assert curve.exact_delta(0.0) == pytest.approx(-expm1(-c / sqrt(2)), abs=1e-10)


def test_the_limit_is_the_mixture_over_the_radius() -> None:
    for c in (0.3, 1.0, 4.0):
        for epsilon in (0.0, 0.5, 2.0, 6.0):
            mean = quad(
                lambda w, c=c, e=epsilon: exp(-w) * gaussian(c / sqrt(w)).delta(e), 0, inf, epsabs=1e-13, limit=400
            )
            assert symmetric_laplace(inf, c).delta(epsilon) == pytest.approx(mean[0], abs=1e-9)


def test_the_limit_agrees_with_the_integrals_of_its_errors() -> None:
    """Errors of the test LLR > t given W, integrated over W ~ Exp(1) at 30 digits, against the closed form."""
    import mpmath as mp

    with mp.workdps(30):
        for c in (0.5, 2.0):
            for t in (0.0, 0.7, 3.0):
                curve = symmetric_laplace(inf, c)
                assert isinstance(curve, SymmetricLaplace)
                alpha, power = curve._errors(t)

                def tail(w: mp.mpf, sign: int, c: float = c, t: float = t) -> mp.mpf:
                    # given W = w: LLR = (c x - c^2/2)/w with x ~ N(0, w) or N(c, w)
                    return mp.exp(-w) * mp.ncdf(-(t * w + sign * mp.mpf(c) ** 2 / 2) / (c * mp.sqrt(w)))

                pieces = [0, 0.01, 0.1, 1, 4, 12, 40, 100]
                assert abs(alpha - mp.quad(lambda w: tail(w, 1), pieces)) < 1e-12
                assert abs(power - mp.quad(lambda w: tail(w, -1), pieces)) < 1e-12


def test_the_density_has_mass_one_and_covariance_one() -> None:
    for d in DIMENSIONS:
        law = radial(d)
        assert law.ball(law.edge) == pytest.approx(1, abs=1e-12)
    one = radial(3)
    r = 0.7
    direct = 2 * (2 * math.pi) ** -1.5 * (r * r / 2) ** -0.25 * kv(0.5, sqrt(2) * r)
    assert exp(one.at(r)) == pytest.approx(direct, rel=1e-12)


def test_twice_the_nodes_change_nothing_that_is_stated() -> None:
    for d in DIMENSIONS:
        for c in (0.05, 0.5, 5.0):
            for t in (0.0, 0.4, 2.0, 6.0):
                coarse, fine = radial(d).errors(c, t), radial(d).errors(c, t, 256)
                assert coarse == pytest.approx(fine, abs=2e-13, rel=1e-8)


def test_far_tails_against_thirty_digits() -> None:
    """d = 3 has g(r) = exp(-sqrt(2) r) / (2 pi r): the set LLR > eps is found and integrated at 30 digits."""
    import mpmath as mp

    with mp.workdps(30):
        c, eps = mp.mpf("0.5"), mp.mpf(6)
        root2 = mp.sqrt(2)

        def reach(r: mp.mpf) -> mp.mpf:
            # exp(-sqrt(2) x) / x = e^eps exp(-sqrt(2) r) / r
            return mp.lambertw(root2 * mp.exp(-eps + root2 * r) * r).real / root2

        def cap(r: mp.mpf) -> mp.mpf:
            return max(mp.mpf(0), min(mp.mpf(1), (reach(r) ** 2 - (r - c) ** 2) / (4 * r * c)))

        def edge(low: mp.mpf, high: mp.mpf) -> mp.mpf:
            """Where the cap closes: reach - |r - c| changes sign between low and high."""
            sign = reach(low) > abs(low - c)
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if (reach(middle) > abs(middle - c)) == sign else (low, middle)
            return low

        low, high = edge(mp.mpf("0.3"), c), edge(c, mp.mpf("0.8"))
        # density of the radius: 4 pi r^2 g(r) = 2 r exp(-sqrt(2) r); the cap is its share of the sphere
        alpha = mp.quad(lambda r: 2 * r * mp.exp(-root2 * r) * cap(r), [low, c, high])
        curve = symmetric_laplace(3, 0.5)
        assert isinstance(curve, SymmetricLaplace)
        assert curve._errors(6.0)[0] == pytest.approx(float(alpha), rel=1e-6)


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 12), st.floats(0.05, 4.0), st.floats(0.01, 0.99))
def test_symmetric_convex_and_between_its_limits(d: int, c: float, alpha: float) -> None:
    curve = symmetric_laplace(d, c)
    beta = curve.f(alpha)
    # f is rounded down: beta is at most the inverse of alpha, and at most 1e-12 and a millionth of itself below it. In
    # alpha the same gap is as large as the slope there, which has no bound near 0
    assert curve.f(beta) >= alpha - 1e-9
    assert curve.f(beta * (1 + 1e-6) + 1e-12) <= alpha
    assert symmetric_laplace(inf, c).f(alpha) <= beta + 1e-9
    assert beta <= symmetric_laplace(1, c).f(alpha) + 1e-9
    assert beta <= 1 - alpha
    left, right = curve.f(alpha * 0.7), curve.f(alpha * 0.7 + 0.3)
    assert curve.f(alpha * 0.7 + 0.15) <= (left + right) / 2 + 1e-9


def test_monotone_in_shift_and_dimension() -> None:
    for epsilon in (0.0, 0.5, 1.5):
        by_shift = [symmetric_laplace(4, c).delta(epsilon) for c in (0.1, 0.5, 1.0, 2.0, 5.0)]
        by_dimension = [symmetric_laplace(d, 0.8).delta(epsilon) for d in (1, 2, 3, 5, 10, 50, 100, inf)]
        assert all(a <= b + 1e-6 for row in (by_shift, by_dimension) for a, b in pairwise(row))


def test_profile_is_convex_in_the_exponential() -> None:
    x = np.linspace(1, 12, 23)
    for d in (2, 3, 6):
        delta = symmetric_laplace(d, 0.9).delta(np.log(x))
        assert (np.diff(delta, 2) > -1e-9).all()


def test_duality_gives_the_same_curve() -> None:
    curve = symmetric_laplace(5, 1.2)
    epsilons = np.linspace(-6, 6, 481)
    deltas = curve.delta(epsilons)
    for alpha in (0.02, 0.2, 0.5, 0.9):
        dual = np.max(1 - deltas - np.exp(epsilons) * alpha)
        assert dual <= curve.f(alpha) + 1e-9
        assert dual == pytest.approx(curve.f(alpha), abs=2e-4)


@pytest.mark.parametrize(
    ("goal", "ratios"),
    few(
        [
            ((0.8, 0.17, 0.05), (0.66, 0.74, 0.79, 0.83, 0.87, 0.96)),
            ((1.0, 0.1, 0.05), (0.43, 0.53, 0.62, 0.69, 0.79, 0.94)),
            ((3.0, 0.01, 0.005), (0.08, 0.12, 0.20, 0.33, 0.55, 0.87)),
            ((1.0, 0.01, 0.0), (0.20, 0.31, 0.47, 0.59, 0.73, 0.93)),
            ((1.0, 1e-5, 0.0), (0.01, 0.04, 0.33, 0.54, 0.72, 0.92)),
        ],
        0,
        1,
    ),
)
def test_exact_noise_against_that_of_the_limit(goal: tuple[float, float, float], ratios: tuple[float, ...]) -> None:
    epsilon, delta, zeta = goal
    limit = calibrate_symmetric_laplace(epsilon, delta, inf, zeta=zeta)
    for d, ratio in zip((1, 2, 3, 4, 6, 20), ratios, strict=True):
        c = calibrate_symmetric_laplace(epsilon, delta, d, zeta=zeta)
        assert limit / c == pytest.approx(ratio, abs=0.0051)
        assert zero_inflated(zeta, symmetric_laplace(d, c)).delta(epsilon) <= delta
        assert zero_inflated(zeta, symmetric_laplace(d, c * (1 + 1e-4))).delta(epsilon) > delta


def test_calibration_to_the_last_digits() -> None:
    assert calibrate_symmetric_laplace(0.8, 0.17, inf, zeta=0.05) == pytest.approx(0.502521, abs=1e-6)
    assert calibrate_symmetric_laplace(0.8, 0.17, 6, zeta=0.05) == pytest.approx(0.574393, abs=1e-5)
    assert calibrate_symmetric_laplace(0.8, 0.17, 1, zeta=0.05) == pytest.approx(0.756656, abs=1e-6)


def test_published_scales_that_do_not_keep_their_claim() -> None:
    """Noise sd .94 at (1.5, .1) and 1.4 at (1, .05) with zeta equal to delta, width 1, d = 1: both are just too small."""
    for epsilon, delta, least, printed in ((1.5, 0.1, sqrt(2) / 1.5, 0.94), (1.0, 0.05, sqrt(2), 1.4)):
        needed = 1 / calibrate_symmetric_laplace(epsilon, delta, 1, zeta=delta)
        assert needed == pytest.approx(least, rel=2e-6)
        assert needed >= least
        assert zero_inflated(delta, symmetric_laplace(1, 1 / printed)).delta(epsilon) > delta


@pytest.mark.parametrize(
    ("d", "delta", "mu"),
    few(
        [
            (2, 0.0, 0.7647),
            (3, 1e-6, 1.20),
            (3, 1e-4, 0.974),
            (6, 1e-6, 3.24),
            (6, 1e-4, 2.36),
            (6, 1e-2, 1.06),
            (inf, 1e-2, 2.70),
        ],
        0,
        1,
    ),
)
def test_what_a_book_in_mu_and_delta_is_charged(d: float, delta: float, mu: float) -> None:
    curve = symmetric_laplace(d, 0.5)
    found = curve.gdp(delta)
    assert found == pytest.approx(mu, rel=0.01)
    epsilons = np.linspace(0, 12, 200)
    assert (curve.delta(epsilons) <= gaussian(found).delta(epsilons) + delta + 1e-12).all()


def test_no_gaussian_statement_where_none_exists() -> None:
    for curve in (symmetric_laplace(3, 0.5), symmetric_laplace(inf, 0.5), zero_inflated(0.05, laplace(1.0))):
        with refuses(NoConversion):
            curve.gdp(0.0)
    assert zero_inflated(0.05, symmetric_laplace(6, 0.5)).gdp(0.06) == pytest.approx(1.04, rel=0.01)
    with refuses(NoConversion):
        zero_inflated(0.05, symmetric_laplace(6, 0.5)).gdp(0.04)


@pytest.mark.parametrize(
    ("d", "c", "k", "expected"),
    few(
        [
            (1, 0.5, 2, {0.5: 0.2226, 1.0: 0.1029}),
            (2, 0.5, 2, {0.5: 0.2406, 1.0: 0.1230, 2.0: 0.0064}),
            (6, 0.7, 3, {0.5: 0.5428, 1.0: 0.4485, 2.0: 0.2805}),
            (inf, 0.5, 2, {0.5: 0.3139, 1.0: 0.2256, 2.0: 0.1316}),
        ],
        0,
        3,
    ),
)
def test_composition_against_monte_carlo(d: float, c: float, k: int, expected: dict[float, float]) -> None:
    """Frozen means of 4e5 draws, standard error at most .0006."""
    curve = symmetric_laplace(d, c).power(k)
    for epsilon, delta in expected.items():
        assert curve.delta(epsilon) == pytest.approx(delta, abs=3 * 0.0006)


def draws(d: int, size: int, generator: np.random.Generator, *, shared: bool = True, scale: float = 1.0) -> np.ndarray:
    radius = generator.exponential(size=(size, 1 if shared else d))
    return scale * np.sqrt(radius) * generator.standard_normal((size, d))


def attack(d: int, c: float, noise: np.ndarray, other: np.ndarray, threshold: float) -> tuple[float, float]:
    """Rates of LLR > threshold under P and of LLR <= threshold under Q."""
    law = radial(d)

    def ratio(x: np.ndarray) -> np.ndarray:
        shifted = x.copy()
        shifted[:, 0] -= c
        r, s = np.linalg.norm(x, axis=1), np.linalg.norm(shifted, axis=1)
        return law.log_density(np.log(s)) - law.log_density(np.log(r))

    moved = other.copy()
    moved[:, 0] += c
    return float((ratio(noise) > threshold).mean()), float((ratio(moved) <= threshold).mean())


@pytest.mark.parametrize("d", few([2, 6], 0))
@pytest.mark.parametrize("fault", ["none", "one radius per coordinate", "covariance too small"])
def test_the_best_attacker_meets_the_curve_and_faults_show(d: int, fault: str) -> None:
    """Rates at 2e5 draws against the exact errors, at six standard errors (false alarms below 1e-8)."""
    generator, size, c = np.random.default_rng(d), 200_000, 1.0
    options = {
        "none": {},
        "one radius per coordinate": {"shared": False},
        "covariance too small": {"scale": 0.97},
    }[fault]
    missed = 0.0
    for threshold in (0.0, 0.5, 1.0):
        rates = attack(d, c, draws(d, size, generator, **options), draws(d, size, generator, **options), threshold)
        alpha, power = radial(d).errors(c, threshold)
        for rate, exact in zip(rates, (alpha, 1 - power), strict=True):
            missed = max(missed, abs(rate - exact) / sqrt(exact * (1 - exact) / size))
    assert (missed < 6) == (fault == "none"), missed


def test_one_value_and_one_calibration_are_quick() -> None:
    """50 ms a value and 1 s a calibration, in CPU time, with the tables of the dimension made."""
    others = count(52)  # what was asked before is known
    for d in (2, 6, 30, 100):
        symmetric_laplace(d, 0.51).f(0.3)
        quick(0.2, lambda d=d: symmetric_laplace(d, next(others) / 100).f([0.01, 0.05, 0.2, 0.6]))
        quick(1.0, lambda d=d: calibrate_symmetric_laplace(1 + next(others) / 1e6, 1e-4, d))


def test_levels_side_by_side() -> None:
    found = levels([2.0] * 6, [0.5] * 6, zeta=0.2)
    assert list(found) == ["attribute", "record"]
    assert found["record"].delta(3.0) == pytest.approx(0.997, abs=5e-4)
    for scale, delta in ((1.0, 0.90), (2.0, 0.55), (2.5, 0.43)):
        assert levels([2.0] * 6, [scale] * 6, zeta=0.2)["record"].delta(3.0) == pytest.approx(delta, abs=0.006)
    for bad in (([1.0], [1.0, 2.0]), ([], []), ([0.0], [1.0])):
        with pytest.raises(PrivacyError):
            levels(*bad)
    with refuses(PrivacyError):
        levels([1.0], [1.0], k=2)


@pytest.mark.parametrize("d", [0, -1, 1.5, True, "3", float("nan")])
def test_impossible_dimensions(d: object) -> None:
    with refuses(PrivacyError):
        symmetric_laplace(d, 0.5)  # type: ignore[arg-type]


def test_impossible_requests() -> None:
    with refuses(PrivacyError):
        calibrate_symmetric_laplace(1.0, 0.05, 3, zeta=0.05)
    with refuses(PrivacyError):
        calibrate_symmetric_laplace(1.0, 0.0, 3)
    assert calibrate_symmetric_laplace(1.0, 0.0, 1) == pytest.approx(1 / sqrt(2), rel=1e-5)
