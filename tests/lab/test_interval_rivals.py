"""Rivals for one parameter against closed forms and invariances: what each must be where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from tests.few import few
from tests.messages import refuses

from confide.guarantees.curves.factories import gaussian
from confide_lab.published.bootstrap_cost import bootstrap_cost
from confide_lab.published.interval_rivals import (
    augmentation_slope,
    bag_of_little_bootstraps,
    deconvolved,
    deconvolved_bootstrap,
    ols_hybrid,
    private_quantile,
    repro_bernoulli,
    repro_normal,
    symmetric_quantiles,
)

NORMAL = np.random.default_rng(1).normal(size=1_000)
BOX = (-4.0, 4.0)


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_private_quantile_at_a_large_budget_is_the_samples() -> None:
    found = [private_quantile(NORMAL, q, 1e6, BOX, _rng()) for q in (0.25, 0.5)]
    assert found == pytest.approx(np.quantile(NORMAL, [0.25, 0.5]), abs=0.01)


def test_another_unit_gives_the_same_interval_in_it() -> None:
    def both(x: np.ndarray, box: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        return (
            np.array(symmetric_quantiles(x, _rng(), epsilon=2.0, bounds=box, simulations=50)),
            np.array(deconvolved_bootstrap(x, _rng(), mu=0.3, bounds=box)),
        )

    for own, other in zip(both(NORMAL, BOX), both(3 * NORMAL, (-12.0, 12.0)), strict=True):
        assert other == pytest.approx(3 * own, rel=1e-6)


def test_symmetric_quantiles_are_as_wide_as_measured_before() -> None:
    """(n, eps) = (100, 5): mean width .436 over 60 data sets."""
    rng = np.random.default_rng(3)
    ends = [symmetric_quantiles(rng.normal(size=100), rng, epsilon=5, bounds=BOX, simulations=100) for _ in range(40)]
    widths = np.diff(ends)[:, 0]
    assert abs(widths.mean() - 0.436) < 4 * widths.std() / 40**0.5 + 0.01


def test_the_bag_of_little_bootstraps_is_as_wide_as_measured_before() -> None:
    """(n, eps) = (1000, 10): .95/.1239; steps of 1/n, and the non-private width is .1240."""
    rng = np.random.default_rng(4)
    ends = [
        bag_of_little_bootstraps(rng.normal(size=1_000), rng, epsilon=10, bounds=BOX, resamples=100) for _ in range(10)
    ]
    assert np.diff(ends).mean() == pytest.approx(0.124, abs=0.01)
    with refuses(ValueError):
        bag_of_little_bootstraps(NORMAL[:100], rng, epsilon=1, bounds=BOX)


def test_threshold_noise_drawn_anew_is_not_what_it_says() -> None:
    """158 steps of constant ranks, epsilon = 5: 'never stops' has a loss beyond epsilon when drawn anew, and within it when drawn once."""
    epsilon, steps = 5.0, 158

    def never(rank: float, *, fresh: bool) -> float:
        def stays(a: float) -> float:
            return float(stats.laplace.cdf(rank - a, scale=4 / epsilon))

        def over(f) -> float:
            near = [rank - 3, 0, rank]
            density = stats.laplace(scale=2 / epsilon).pdf
            return float(integrate.quad(lambda a: density(a) * f(a), -30, 30, points=near, limit=500)[0])

        return over(stays) ** steps if fresh else over(lambda a: stays(a) ** steps)

    losses = [np.log(never(2.0, fresh=fresh) / never(1.0, fresh=fresh)) for fresh in (True, False)]
    assert losses[0] > epsilon > losses[1]


# (B, mu, delta over that of mu-GDP at mu/4, mu, 2 mu, 3 mu, 4 mu), n = 10,000, each order composed by itself
_BOOTSTRAPS = (
    (2000, 1.0, (1.000, 1.001, 1.005, 1.018, 1.048)),
    (500, 0.5, (1.00, 1.00, 1.01, 1.06, 1.15)),
    (20, 0.1, (0.99, 1.01, 1.20, 2.01, 5.80)),
    (20, 1.0, (0.99, 1.05, 1.48, 3.41, 15.6)),
)


@pytest.mark.parametrize("count, mu, ratios", few(_BOOTSTRAPS, 0, 2))
def test_bootstraps_cost_what_their_resamples_do(count: int, mu: float, ratios: tuple[float, ...]) -> None:
    """A18: never below what each order has by itself, less 2 %; the larger of both at each epsilon costs at most a fifth more."""
    cost = bootstrap_cost(10_000, count, mu)
    epsilons = mu * np.array([0.25, 1, 2, 3, 4])
    found = np.asarray(cost.delta(epsilons)) / np.asarray(gaussian(mu).delta(epsilons))
    assert (found >= 0.98 * np.array(ratios)).all() and (found <= 1.2 * np.array(ratios)).all(), found


def test_deconvolution_finds_the_law_beneath_the_noise() -> None:
    z = np.random.default_rng(5).normal(3, 5**0.5, 4_000)
    theta, g = deconvolved(z)
    mean = float(theta @ g)
    assert g.sum() == pytest.approx(1) and mean == pytest.approx(3, abs=0.15)
    assert float((theta - mean) ** 2 @ g) ** 0.5 == pytest.approx(2, abs=0.2)


def test_repro_samples_of_a_share_at_a_large_budget_are_the_exact_interval() -> None:
    values = np.r_[np.ones(30), np.zeros(70)]
    ends = np.mean([repro_bernoulli(values, np.random.default_rng(s), epsilon=1e6) for s in range(20)], axis=0)
    exact = stats.beta.ppf(0.025, 30, 71), stats.beta.ppf(0.975, 31, 70)
    assert ends == pytest.approx(exact, abs=0.015)


def test_repro_samples_of_a_mean_hold_it_and_are_no_narrower_than_without_noise() -> None:
    x = NORMAL[:100]
    low, high = repro_normal(x, _rng(), mu=100.0, bounds=BOX, sds=(0.3, 3.0), seeds=100)
    plain = 2 * 1.96 * x.std() / 10
    assert low < x.mean() < high and plain < high - low < 2 * plain
    wide = repro_normal(x, _rng(), mu=0.5, bounds=BOX, sds=(0.3, 3.0), seeds=100, points=33)
    assert wide[1] - wide[0] > high - low


@pytest.mark.long
def test_augmentation_without_budget_leaves_the_prior() -> None:
    """b | tau ~ N(0, 1/tau), tau ~ Gamma(1, 1): Student's t with 2 degrees of freedom."""
    ends = augmentation_slope(np.zeros(2), np.zeros(2), _rng(), epsilon=1e-9, alpha=0.2, iterations=4_000)
    assert ends == pytest.approx(stats.t.ppf([0.1, 0.9], 2), abs=0.6)


def test_the_hybrid_at_a_large_budget_is_the_line_and_its_interval() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (2_000, 2))
    y = x @ [0.5, -0.2] + rng.normal(0, 0.25, 2_000)
    found = ols_hybrid(x, y, rng, epsilon=1e9, y_bound=2.0, resamples=2_000)
    own, rss, *_ = np.linalg.lstsq(x, y, rcond=None)
    half = 1.96 * np.sqrt(rss[0] / 1_998 * np.diag(np.linalg.inv(x.T @ x)))
    assert found["estimates"] == pytest.approx(own, abs=1e-6)
    assert (found["high"] - found["low"]) / 2 == pytest.approx(half, rel=0.07)
