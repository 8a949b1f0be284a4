"""Losses and their corrections against quadrature, differences and the mean over draws."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np
import pytest
from scipy.integrate import quad

from confide.errors import PlanError
from confide.local.fits.losses import Check, Corrected, Hinge, Huber, Logistic, Loss, Poisson, Rows, Squared, loss_named
from tests.messages import refuses

SMOOTH = [Squared(), Logistic(), Poisson(), Check(0.3, h=0.4), Huber(0.8, h=0.3), Hinge(h=0.3)]
ALL = [*SMOOTH, Check(0.3), Huber(0.8), Hinge()]
RESPONSE = {"squared": 0.3, "logistic": 1.0, "poisson": 2.0, "quantile": 0.7, "huber": 0.4, "hinge": -1.0}


def _under_laplace(loss: Loss, t: float, y: float, scale: float) -> float:
    def of(x: float) -> float:
        return float(loss.value(np.array([t + x]), np.array([y]))[0]) * np.exp(-abs(x) / scale) / (2 * scale)

    cuts = sorted({-40 * scale - 40, 40 * scale + 40, 0.0, *(y + k - t for k in (-0.8, 0.0, 0.8)), -t})
    return sum(quad(of, a, b, limit=400, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(cuts))


@pytest.mark.parametrize("loss", ALL, ids=str)
@pytest.mark.parametrize("scale", [0.05, 0.6, 3.0, 7.0])
def test_the_mean_under_laplace_noise_is_that_of_quadrature(loss: Loss, scale: float) -> None:
    if loss.name == "poisson" and scale > 0.9:
        assert np.isinf(loss.smoothed(np.zeros(1), np.ones(1), scale**2)[0]).all()
        return
    y = RESPONSE[loss.name]
    for t in (-3.0, -0.6, 0.2, 1.5):
        made = loss.smoothed(np.array([t]), np.array([y]), scale**2)[0][0]
        assert made == pytest.approx(_under_laplace(loss, t, y, scale), abs=3e-7)


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_derivatives_of_the_smoothed_loss_are_its_differences(loss: Loss) -> None:
    t, y, step = np.array([-2.0, -0.3, 0.25, 1.7]), np.full(4, RESPONSE[loss.name]), 1e-5
    for v in (0.01, 0.3):
        _, by_t, by_v = loss.smoothed(t, y, v)
        up, low = (loss.smoothed(t + e, y, v)[0] for e in (step, -step))
        assert by_t == pytest.approx((up - low) / (2 * step), abs=1e-8)
        up, low = (loss.smoothed(t, y, v * (1 + e))[0] for e in (step, -step))
        assert by_v == pytest.approx((up - low) / (2 * step * v), abs=1e-7)


@pytest.mark.parametrize("loss", SMOOTH, ids=str)
def test_derivatives_are_differences(loss: Loss) -> None:
    t, y, step = np.linspace(-2, 2, 9), np.full(9, RESPONSE[loss.name]), 1e-5
    value, slope, bend, third = loss.derivatives(t, y)
    assert value == pytest.approx(loss.value(t, y), abs=1e-12)
    for function, derivative in ((loss.value, slope), (loss.slope, bend), (loss.bend, third)):
        assert derivative == pytest.approx((function(t + step, y) - function(t - step, y)) / (2 * step), abs=1e-6)


def _rows(seed: int, n: int, zeta: float, lam: float, generator: str = "sl") -> tuple[Rows, Rows]:
    """(protected, true) rows of two terms, by NumPy: an intercept, and one that carries noise."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)])
    y = (rng.random(n) < 0.5).astype(float)
    scales = np.array([0.0, lam])
    noise = np.sqrt(rng.standard_exponential(n))[:, None] * rng.standard_normal((n, 2)) * scales
    noise *= (rng.random(n) >= zeta)[:, None]
    return Rows(x + noise, y, scales, 0.0, zeta), Rows(x, y, scales, 0.0, zeta)


@pytest.mark.parametrize("method", ["DR", "SDR", "SL", "RB"])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Check(0.5, h=0.3)], ids=str)
def test_a_corrected_loss_has_the_mean_of_the_true_rows(loss: Loss, method: str) -> None:
    theta, n = np.array([0.3, 0.8]), 200_000
    seen, true = _rows(5, n, 0.2, 0.7)
    problem = Corrected(loss, method, seen, seen.noised_again(np.random.default_rng(1)))
    naive = Corrected(loss, "naive", true, true)
    # scores of the true rows are the reference; 4 standard errors of their difference
    away = problem.scores(theta) - naive.scores(theta)
    assert np.abs(away.mean(axis=0) / (away.std(axis=0) / sqrt(n))).max() < 4
    uncorrected = Corrected(loss, "naive", seen, seen).scores(theta) - naive.scores(theta)
    assert np.abs(uncorrected.mean(axis=0) / (uncorrected.std(axis=0) / sqrt(n))).max() > 8


@pytest.mark.parametrize("wrong", [1.0, 0.04])
def test_second_noise_of_another_covariance_is_seen(wrong: float) -> None:
    """zeta lam^2 is the only covariance with which DR is unbiased: lam^2 and zeta^2 lam^2 are not."""
    theta, n, zeta = np.array([0.3, 0.8]), 200_000, 0.2
    seen, true = _rows(5, n, zeta, 0.7)
    other = Rows(seen.x, seen.y, seen.lam * sqrt(wrong / zeta), 0.0, zeta).noised_again(np.random.default_rng(1))
    problem = Corrected(Squared(), "DR", seen, Rows(other.x, other.y, seen.lam, 0.0, zeta))
    away = problem.scores(theta) - Corrected(Squared(), "naive", true, true).scores(theta)
    assert np.abs(away.mean(axis=0) / (away.std(axis=0) / sqrt(n))).max() > 4


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.8)], ids=str)
def test_rb_is_the_mean_of_dr_over_draws_and_no_wider(loss: Loss) -> None:
    theta = np.array([0.3, 0.8])
    seen, _ = _rows(7, 400, 0.3, 0.5)
    rng = np.random.default_rng(2)
    draws = np.array([Corrected(loss, "DR", seen, seen.noised_again(rng)).scores(theta) for _ in range(600)])
    mean = Corrected(loss, "RB", seen, seen).scores(theta)
    # E (DR' dQ) is inside the mean: compare sums over rows, in their standard errors
    sums, whole = draws.sum(axis=1), mean.sum(axis=0)
    assert np.abs((sums.mean(axis=0) - whole) / (sums.std(axis=0) / sqrt(len(draws)))).max() < 4.5
    wide, _ = _rows(8, 20_000, 0.3, 0.5)
    again = wide.noised_again(rng)
    spread = {m: Corrected(loss, m, wide, again).scores(theta).var(axis=0) for m in ("RB", "DR", "SL", "SDR")}
    assert (spread["RB"] <= 1.01 * spread["DR"]).all()
    if not loss.kinked:
        assert (spread["RB"] <= 1.01 * spread["SL"]).all() and (spread["RB"] <= 1.01 * spread["SDR"]).all()


@pytest.mark.parametrize("method", ["naive", "SDR", "SL", "DR", "RB"])
@pytest.mark.parametrize("loss", SMOOTH[:5], ids=str)
def test_gradients_are_differences(loss: Loss, method: str) -> None:
    seen, _ = _rows(3, 300, 0.2, 0.3)
    seen = Rows(seen.x, np.full(300, RESPONSE[loss.name]), seen.lam, 0.2 if loss.location else 0.0, 0.2)
    problem = Corrected(loss, method, seen, seen.noised_again(np.random.default_rng(4)))
    theta, step = np.array([0.2, 0.6]), 1e-6
    gradient = problem.value(theta)[1]
    for k in range(2):
        move = step * np.eye(2)[k]
        assert gradient[k] == pytest.approx(
            (problem.value(theta + move)[0] - problem.value(theta - move)[0]) / (2 * step), abs=1e-6
        )
    assert problem.scores(theta).mean(axis=0) == pytest.approx(gradient, abs=1e-12)


def test_words_of_losses() -> None:
    assert loss_named("absolute") == Check(0.5) and loss_named("huber", k=2) == Huber(2.0)
    for asked in (
        {"loss": "cubic"},
        {"loss": "squared", "tau": 0.5},
        {"loss": "huber"},
        {"loss": "quantile", "tau": 1},
    ):
        with refuses(PlanError):
            loss_named(**asked)  # type: ignore[arg-type]
    rows, _ = _rows(1, 10, 0.0, 0.5)
    with refuses(PlanError):
        Corrected(Squared(), "RB", rows, rows)
