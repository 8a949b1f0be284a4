"""Objective perturbation: the sharp curve of the logistic loss against exact releases, the table of noise, the way of the minimiser."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, log1p

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from tests.few import few
from tests.messages import refuses

from confide.errors import PrivacyError
from confide.guarantees import TradeOff
from confide.guarantees.curves import objective
from confide.guarantees.filter_certificate import divergence as gauss_divergence
from confide.guarantees.mechanisms.gaussian import gaussian_delta, gaussian_mu
from confide.guarantees.mechanisms.objective_perturbation import (
    closed_delta,
    closed_sd,
    general_delta,
    general_sd,
    least_ridge,
    logistic_delta,
    logistic_sd,
    stable_sensitivity,
)
from confide.guarantees.privacy_filter import remaining

CELLS = [(0.2, 2.0), (0.2, 10.0), (1.0, 2.0), (5.0, 2.0)]


# the table of noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "general", "closed", "sharp", "floor"),
    [
        (CELLS[0], 45.5, 43.6, 25.9, 19.0),
        (CELLS[1], 22.35, 21.5, 19.11, 18.99),
        (CELLS[2], 4.91, 4.75, 4.25, 4.22),
        (CELLS[3], 1.027, 1.001, 0.984, 0.980),
    ],
)
def test_the_noise_that_is_needed(
    cell: tuple[float, float], general: float, closed: float, sharp: float, floor: float
) -> None:
    """Known values to 1 %; the sharp one was found with coarser cells and is up to 2 % lower here."""
    epsilon, ridge = cell
    assert general_sd(epsilon, 1e-6, ridge) == pytest.approx(general, rel=0.01)
    assert closed_sd(epsilon, 1e-6, ridge) == pytest.approx(closed, rel=0.01)
    found = logistic_sd(epsilon, 1e-6, ridge)
    assert 0.98 * sharp <= found <= 1.001 * sharp
    assert 1 / gaussian_mu(epsilon, 1e-6) == pytest.approx(floor, rel=0.01) and found >= 1 / gaussian_mu(epsilon, 1e-6)


def test_at_the_default_ridge_it_costs_as_much_as_one_gaussian_mechanism() -> None:
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        assert logistic_sd(epsilon, 1e-6, 1 / epsilon) * gaussian_mu(epsilon, 1e-6) < 1.001
        substituted = logistic_sd(epsilon, 1e-6, 2 / epsilon, relation="substitute") * gaussian_mu(epsilon, 1e-6)
        assert 1.9 < substituted < 2.06


def test_the_closed_curve_is_never_above_the_general_one() -> None:
    g = np.random.default_rng(1)
    for _ in range(2_000):
        epsilon, sd, ridge = g.uniform(0.01, 6), exp(g.uniform(-2, 5)), exp(g.uniform(-2, 5))
        closed, general = closed_delta(epsilon, sd, ridge), general_delta(epsilon, sd, ridge)
        assert closed <= general * (1 + 1e-12)


def test_the_general_curve_meets_itself_where_its_two_branches_do() -> None:
    for m in (0.2, 1.0, 3.0):
        c = log1p(0.25 / 4)
        joint = c + m * m / 2
        below, above = (general_delta(joint + step, 1 / m, 4.0) for step in (-1e-9, 1e-9))
        assert below == pytest.approx(above, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "ridge"), CELLS)
def test_the_sharp_curve_is_the_expectation_it_bounds(epsilon: float, ridge: float) -> None:
    """E (1 - exp(epsilon - h(Z)))_+ by adaptive quadrature with an exact maximum: at most 2 % below the bound, never above."""
    sd = logistic_sd(epsilon, 1e-6, ridge)
    m = 1 / sd
    fine = np.linspace(0, 1, 20_001)
    fixed = np.log1p(fine * (1 - fine) / ridge) + fine**2 * m * m / 2

    def inside(z: float) -> float:
        return float(max(0.0, -np.expm1(epsilon - (fixed + fine * m * z).max())) * stats.norm.pdf(z))

    start = optimize.brentq(lambda z: float((fixed + fine * m * z).max()) - epsilon, -5, 9)
    exact, _ = integrate.quad(inside, start, 12, epsabs=1e-14, limit=200)
    bound = logistic_delta(epsilon, sd, ridge)
    assert exact <= bound <= 1e-6 and bound <= exact * 1.03


def test_noise_falls_with_ridge_and_budget_and_rises_with_what_follows() -> None:
    sds = [logistic_sd(1.0, 1e-6, ridge) for ridge in (0.2, 0.5, 1.0, 5.0)]
    assert sds == sorted(sds, reverse=True)
    assert logistic_sd(1.0, 1e-5, 1.0) < logistic_sd(1.0, 1e-6, 1.0) < logistic_sd(0.9, 1e-6, 1.0)
    assert logistic_sd(1.0, 1e-6, 1.0, after=0.1) > logistic_sd(1.0, 1e-6, 1.0)
    assert logistic_sd(1.0, 1e-6, 4.0, 2.0, 4.0) == pytest.approx(2 * logistic_sd(1.0, 1e-6, 1.0), rel=1e-5)


def test_what_follows_composes_as_two_gaussians_where_the_ridge_is_large() -> None:
    for after in (0.05, 0.15):
        sd = logistic_sd(1.0, 1e-6, 1e6, after=after)
        assert (1 / sd) ** 2 + after**2 == pytest.approx(gaussian_mu(1.0, 1e-6) ** 2, rel=2e-3)


def test_a_ridge_that_is_too_small_is_refused_with_the_least_one() -> None:
    least = least_ridge(1.0)
    assert least == pytest.approx(0.25 / (exp(1.0) - 1))
    for find in (general_sd, closed_sd):
        with refuses(PrivacyError):
            find(1.0, 1e-6, 0.1)
    with refuses(PrivacyError):
        logistic_sd(1.0, 1e-6, 0.99 * least)
    assert logistic_sd(1.0, 1e-6, 1.05 * least) < 1e9
    assert closed_delta(0.01, 1.0, 1.0) == general_delta(0.01, 1.0, 1.0) == 1.0
    with refuses(PrivacyError):
        logistic_sd(1.0, 1e-6, 0.9 * least_ridge(1.0, relation="substitute"), relation="substitute")


# exact releases in one dimension -------------------------------------------------------------------------------------


def _density(theta: np.ndarray, rows: np.ndarray, ridge: float, sd: float) -> np.ndarray:
    """Of the tilted minimiser in one dimension: rows are y x."""
    p = special.expit(-np.outer(theta, rows))
    tilt = (p * rows).sum(axis=1) - ridge * theta
    return np.asarray(stats.norm.pdf(tilt, scale=sd) * ((p * (1 - p) * rows**2).sum(axis=1) + ridge))


def divergence(one: np.ndarray, other: np.ndarray, epsilon: float, ridge: float, sd: float) -> float:
    """The hockey-stick divergence of two exact releases."""
    # theta = (sum of pulls - b)/ridge where the pulls are at most |rows|
    far = (max(np.abs(one).sum(), np.abs(other).sum()) + 12 * sd) / ridge
    theta = np.linspace(-far, far, 60_001)
    gap = _density(theta, one, ridge, sd) - exp(epsilon) * _density(theta, other, ridge, sd)
    return float(np.maximum(gap, 0).sum() * (theta[1] - theta[0]))


@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.long)])
def test_no_exact_release_is_told_apart_better_than_claimed(count: int) -> None:
    """Random data sets of up to 6 records, both directions, with the worst record added: at most the sharp and the closed curve."""
    g = np.random.default_rng(3)
    ratios = []
    for _ in range(count):
        ridge, sd, epsilon = g.uniform(0.3, 4), g.uniform(0.4, 3), g.uniform(0.05, 2.0)
        rows = g.uniform(-1, 1, g.integers(0, 6))
        more = np.append(rows, g.choice([-1.0, 1.0]) * g.choice([1.0, g.uniform()]))
        found = max(divergence(a, b, epsilon, ridge, sd) for a, b in ((rows, more), (more, rows)))
        ratios.append(found / logistic_delta(epsilon, sd, ridge))
        assert found <= closed_delta(epsilon, sd, ridge) * (1 + 1e-6) + 1e-9
    # the least gap is small, so that a curve that is too low by a third would be found
    assert 0.6 < max(ratios) <= 1.0


def test_no_exact_replacement_is_told_apart_better_than_claimed() -> None:
    g = np.random.default_rng(4)
    ratios = []
    for _ in range(30):
        ridge, sd, epsilon = g.uniform(0.5, 4), g.uniform(0.8, 3), g.uniform(0.2, 2.0)
        rows = g.uniform(-1, 1, g.integers(0, 4))
        one, other = np.append(rows, 1.0), np.append(rows, -1.0)
        found = divergence(one, other, epsilon, ridge, sd)
        ratios.append(found / logistic_delta(epsilon, sd, ridge, relation="substitute"))
    assert 0.2 < max(ratios) <= 1.0


def test_the_removal_direction_is_a_gaussian_mechanism() -> None:
    g = np.random.default_rng(5)
    for _ in range(20):
        ridge, sd, epsilon = g.uniform(0.3, 3), g.uniform(0.5, 3), g.uniform(0.01, 1.5)
        rows = g.uniform(-1, 1, g.integers(0, 4))
        found = divergence(rows, np.append(rows, 1.0), epsilon, ridge, sd)
        assert found <= gaussian_delta(epsilon, 1 / sd) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(("ridge", "epsilon"), few([(0.5, 1.0), (2.0, 1.0), (1.0, 3.0)], 1))
def test_what_remains_after_an_exact_release(ridge: float, epsilon: float) -> None:
    """E g_r'(a q/p) over an exact release, both directions: within g_r(a) plus the leak; a fifth of the price would be found."""
    sd = logistic_sd(epsilon, 1e-6, ridge)
    after = remaining(TradeOff(objective(1 / sd, 1 / ridge)), Fraction(1))
    rest, leak = float(after.r2) ** 0.5, float(after.leak)
    a_fifth, used = (1 - 0.2 * (1 - rest * rest)) ** 0.5, []
    g = np.random.default_rng(8)
    for _ in range(6):
        rows = g.uniform(-1, 1, g.integers(0, 4))
        more = np.append(rows, g.choice([-1.0, 1.0]))
        far = (len(more) + 12 * sd) / ridge
        theta = np.linspace(-far, far, 20_001)
        laws = [_density(theta, each, ridge, sd) * (theta[1] - theta[0]) for each in (rows, more)]
        for p, q in (laws, laws[::-1]):
            loss = np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(q, 1e-300))
            for t in np.linspace(0.0, 4.0, 17):
                allowed = gaussian_delta(float(t), 1.0) + leak
                assert float(p @ gauss_divergence(t - loss, rest)[0]) <= allowed * (1 + 1e-9)
                used.append(float(p @ gauss_divergence(t - loss, a_fifth)[0]) > allowed)
    assert any(used)


# the minimiser and its curvature -------------------------------------------------------------------------------------


def minimiser(rows: np.ndarray, ridge: float) -> np.ndarray:
    """Newton's method to the last digits; rows (n, d) are y x."""
    theta = np.zeros(rows.shape[1])
    for _ in range(100):
        p = special.expit(-rows @ theta)
        gradient = ridge * theta - rows.T @ p
        if np.linalg.norm(gradient) < 1e-12:
            break
        theta = theta - np.linalg.solve(hessian(rows, theta, ridge), gradient)
    return theta


def hessian(rows: np.ndarray, theta: np.ndarray, ridge: float) -> np.ndarray:
    p = special.expit(-rows @ theta)
    return np.asarray((rows.T * (p * (1 - p))) @ rows + ridge * np.eye(rows.shape[1]))


def test_the_least_eigenvalue_moves_by_at_most_a_quarter_and_twice_the_slope() -> None:
    """300 random sets of rows in the unit ball at ridge 2 = 2 R L: beta + 2 R L = 2.25; the minimiser by at most what is certified."""
    g = np.random.default_rng(6)
    worst, way = 0.0, 0.0
    for _ in range(300):
        d = int(g.integers(1, 4))
        rows = g.standard_normal((int(g.integers(1, 40)), d)) * g.choice([0.1, 1, 5])
        rows /= np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]
        less = rows[:-1]
        thetas = [minimiser(part, 2.0) for part in (rows, less)]
        least = [np.linalg.eigvalsh(hessian(part, t, 2.0))[0] for part, t in zip((rows, less), thetas, strict=True)]
        worst = max(worst, abs(least[0] - least[1]))
        moved = float(np.linalg.norm(thetas[0] - thetas[1]))
        way = max(way, *(moved / stable_sensitivity(m, 2.0, 1.0, 1.0) for m in least))
    assert 0.2 < worst <= 2.25 and 0.3 < way <= 1.0
    assert stable_sensitivity(2.0, 2.0, 1.0, 1.0) == 0.5
    assert stable_sensitivity(100.0, 2.0, 1.0, 1.0) == pytest.approx(-log(0.99), rel=1e-12)


def test_the_log_determinant_moves_with_the_dimension() -> None:
    """|log det H1/H2| <= R |theta_1 - theta_2| lacks a factor up to d: rare events in 60 dimensions move it more than five times as far."""
    g = np.random.default_rng(7)
    n, d = 6_000, 60
    x = g.standard_normal((n, d))
    x[:, 0] = 6.0
    rows = x / np.linalg.norm(x, axis=1)[:, None]
    y = np.where(g.random(n) < 0.05, 1.0, -1.0)
    signed = rows * y[:, None]
    ridge = 0.05
    # the record that moves the common direction of all rows
    extra = np.eye(d)[:1]
    one, other = minimiser(signed, ridge), minimiser(np.vstack([signed, extra]), ridge)
    dets = [np.linalg.slogdet(hessian(signed, t, ridge))[1] for t in (one, other)]
    assert abs(dets[0] - dets[1]) > 5 * float(np.linalg.norm(one - other))


def test_a_curve_without_its_log_term_would_be_found() -> None:
    """The same audit finds fault with delta_GDP(epsilon; m), where the log term is dropped: it can fail."""
    g = np.random.default_rng(3)
    found = False
    for _ in range(200):
        ridge, sd, epsilon = g.uniform(0.05, 0.3), g.uniform(1.0, 3), g.uniform(0.05, 1.0)
        rows = np.empty(0)
        value = divergence(np.array([1.0]), rows, epsilon, ridge, sd)
        found |= value > gaussian_delta(epsilon, 1 / sd) * 1.01
        assert value <= logistic_delta(epsilon, sd, ridge) * (1 + 1e-6) + 1e-9
    assert found
