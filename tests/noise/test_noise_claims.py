"""What each law may claim: the exact trade-offs of the integers it gives, at small scales.

The delta that the claim GDP(D/sigma) would need for the discrete Gaussian, the pure bound of the Laplace laws, and the
float attacks: nothing but integers ever comes out, whatever the scale.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, special
from tests.noise.exact import LAWS, parameter, pmf

from confide.noise import SimulatedNoise

laws = pytest.mark.parametrize("law", LAWS)


def needed_delta(law: str, sigma: float, mu: float) -> float:
    """The least delta with f >= G_mu - delta at every knot of the trade-off of the law and its shift by mu sigma."""
    shift = round(mu * sigma)
    k = np.arange(-int(14 * sigma) - shift - 20, int(14 * sigma) + 20)
    # Tests that reject above k: type I error P(X > k), type II error P(X + D <= k), by sums from the smaller end.
    here = pmf(law, sigma, k)
    there = pmf(law, sigma, k - shift)
    alpha = np.append(np.cumsum(here[::-1])[::-1][1:], 0.0)
    beta = np.cumsum(there)
    claim = special.ndtr(-special.ndtri(np.minimum(alpha, 1.0)) - mu)
    return float((claim - beta)[alpha < 1 - 1e-9].max())


@pytest.mark.parametrize(
    ("sigma", "mu", "delta"),
    [(1, 1, 1.6e-2), (1, 5, 7.1e-2), (2, 1, 4.1e-3), (4, 2, 2.1e-3), (8, 5, 1.3e-3), (32, 1, 1.6e-5), (128, 2, 2.0e-6)],
)
def test_the_discrete_gaussian_is_not_as_private_as_the_gaussian(sigma: int, mu: int, delta: float) -> None:
    assert needed_delta("discrete_gaussian", sigma, mu) == pytest.approx(delta, rel=0.05)
    assert needed_delta("grid_gaussian", sigma, mu) < 1e-12  # the rounded one is


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_discrete_gaussian_keeps_its_concentrated_claim(sigma: float, shift: int) -> None:
    """Renyi divergence of every order tried is at most alpha D^2 / (2 sigma^2)."""
    k = np.arange(-int(60 * sigma) - 60, int(60 * sigma) + 60)
    log_p = -(k**2) / (2 * sigma**2)
    log_q = -((k - shift) ** 2) / (2 * sigma**2)
    log_total = special.logsumexp(log_p)
    for order in (1.01, 2.0, 3.7, 8.0):
        divergence = (special.logsumexp(order * log_p + (1 - order) * log_q) - log_total) / (order - 1)
        assert divergence <= order * shift**2 / (2 * sigma**2) * (1 + 1e-9)
    by_parts = (special.logsumexp(2 * log_p - log_q) - log_total) / 1.0
    assert by_parts > 0.9 * 2 * shift**2 / (2 * sigma**2) or sigma < 1  # and the bound is no loose one


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("shift", [1, 3])
def test_both_laplace_laws_are_pure_and_only_the_grid_one_has_the_real_curve(scale: float, shift: int) -> None:
    k = np.arange(-int(20 * scale) - 10, int(20 * scale) + 10)
    epsilon = shift / scale
    for law in LAWS[1::2]:
        here, there = pmf(law, scale, k), pmf(law, scale, k - shift)
        assert np.abs(np.log(here / there)).max() <= epsilon * (1 + 1e-9)
    variation = {law: np.clip(pmf(law, scale, k) - pmf(law, scale, k - shift), 0, None).sum() for law in LAWS[1::2]}
    real = -np.expm1(-epsilon / 2)
    assert variation["grid_laplace"] <= real * (1 + 1e-9)
    assert variation["discrete_laplace"] > real
    if scale == shift == 1:
        assert variation["discrete_laplace"] == pytest.approx(0.462, abs=5e-4)
        assert real == pytest.approx(0.393, abs=5e-4)


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_the_mu_that_the_discrete_gaussian_does_reach(sigma: float) -> None:
    """mu = D h, h = 2 Phi^-1((1 + P(0)) / 2): h sigma - 1 = .0458 and .00262."""
    h = 2 * special.ndtri((1 + pmf("discrete_gaussian", sigma, np.array([0]))[0]) / 2)
    assert h * sigma - 1 == pytest.approx({1.0: 0.0458, 4.0: 0.00262}[sigma], rel=0.005)
    shift = 2
    reached = optimize.brentq(lambda mu: _excess(sigma, shift, mu), 0.9 * shift / sigma, 1.2 * shift / sigma)
    assert shift / sigma * (1 + 1e-4) < reached <= shift * h * (1 + 1e-9)


def _excess(sigma: float, shift: int, mu: float) -> float:
    k = np.arange(-int(6 * sigma), int(6 * sigma) + shift)
    cumulative = np.cumsum(pmf("discrete_gaussian", sigma, np.arange(-int(40 * sigma), int(40 * sigma))))
    z = special.ndtri(cumulative[k + int(40 * sigma)])
    moved = special.ndtri(cumulative[k - shift + int(40 * sigma)])
    return float((z - moved).max() - mu)


EXTREME = [5e-324, 2.2e-308, 1e-300, 0.3, 1 / 3, 1e15 / 3, float(2**56) * 1.1]


@laws
def test_nothing_but_integers_comes_out_whatever_the_scale(law: str) -> None:
    for number in EXTREME:
        draws = getattr(SimulatedNoise(5), law)(number, 1_000)
        assert draws.dtype == np.int64
    # At scales that are no power of two, every last digit occurs: the lattice of the draws is that of the integers.
    draws = getattr(SimulatedNoise(5), law)(parameter(law, Fraction(10**15, 3)), 200_000)
    assert (np.bincount(draws & 255, minlength=256) > 0).all()
    assert np.gcd.reduce(draws) == 1
    # No float of 53 bits stands behind large draws: the low bits of those beyond 2^53 are not all zero.
    large = getattr(SimulatedNoise(5), law)(parameter(law, Fraction(2**57 - 1)), 200_000)
    large = large[np.abs(large) > 2**55]
    assert len(large) > 50_000
    assert abs(np.mean(large & 1) - 0.5) < 5.8 / np.sqrt(4 * len(large))


@laws
def test_sums_with_the_noise_stay_exact(law: str) -> None:
    """A statistic of any size plus the noise, less the statistic: the noise to the bit, which no float sum gives."""
    draws = getattr(SimulatedNoise(6), law)(10**6, 1_000)
    for statistic in (2**53 + 1, -(2**60), 2**62):
        assert ((np.int64(statistic) + draws) - np.int64(statistic) == draws).all()
    lost = (float(2**62) + draws.astype(float)) - float(2**62)
    assert (lost != draws).any()
