"""The pair of posteriors: reduction to one dimension, closed form, domination, the shifts and precisions that follow."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

import mpmath
import numpy as np
import pytest
from tests.few import few
from tests.messages import refuses

from confide.errors import PrivacyError
from confide.guarantees import gaussian_delta
from confide_lab.aggregates.posterior_pair import (
    _both,
    _target,
    largest_precision,
    largest_shift,
    leverage_above,
    pair_delta,
    posterior_delta,
)
from confide_lab.published.adassp import spent
from confide_lab.published.generalized_ptr_ops import precision_51, release_delta


def exact(e: float, m: float, v: float) -> tuple[float, float]:
    """The hockey stick and P(S) by 40-digit normal probabilities over the sign set of the quadratic."""
    with mpmath.workdps(40):
        e, m, v = mpmath.mpf(e), mpmath.mpf(m), mpmath.mpf(v)
        a, b, c = 1 / (2 * v) - mpmath.mpf(1) / 2, -m / v, m**2 / (2 * v) + mpmath.log(v) / 2 - e
        if b * b <= 4 * a * c:  # log p/q is nowhere above e
            return 0.0, 0.0
        root = mpmath.sqrt(b * b - 4 * a * c)
        low, high = sorted([(-b - root) / (2 * a), (-b + root) / (2 * a)])
        s = mpmath.sqrt(v)
        p = mpmath.ncdf(high) - mpmath.ncdf(low)
        q = mpmath.ncdf((high - m) / s) - mpmath.ncdf((low - m) / s)
        if v < 1:
            p = mpmath.ncdf(low) + mpmath.ncdf(-high)
            q = mpmath.ncdf((low - m) / s) + mpmath.ncdf((m - high) / s)
        return float(p - mpmath.exp(e) * q), float(p)


@pytest.mark.parametrize(
    ("e", "m", "v", "value"),
    [
        (0.3, 0.2, 0.9, 0.0206414445),
        (1.0, 1.0, 0.5, 0.2993206416),
        (0.1, 0.0, 0.8, 0.0321350376),
        (0.05, 0.0, 1.2, 0.0144239229),
    ],
)
def test_the_closed_form_at_known_values(e: float, m: float, v: float, value: float) -> None:
    assert pair_delta(e, m, v) == pytest.approx(value, abs=1e-8)
    assert pair_delta(e, m, v) == pytest.approx(exact(e, m, v)[0], abs=1e-12)


def test_the_closed_form_is_accurate_where_it_is_small() -> None:
    """Within 1e-12 of P(S), against 40 digits: what the search for shifts allows for."""
    g = np.random.default_rng(1)
    for _ in range(300):
        lev, m, e = 10 ** g.uniform(-6, 0.5), 10 ** g.uniform(-2, 0.5), g.uniform(0, 5)
        v = 1 / (1 + lev)
        for mean, variance in ((m, v), (m / sqrt(v), 1 / v)):
            whole, mass = exact(e, mean, variance)
            assert abs(pair_delta(e, mean, variance) - whole) <= 1e-12 * mass
    assert pair_delta(0.5, 0.5, 1.0) == pytest.approx(gaussian_delta(0.5, 0.5), abs=1e-14)


def test_a_pair_of_posteriors_is_a_pair_on_a_line() -> None:
    """Both Kullback-Leibler divergences of 200 random pairs in three dimensions equal those of the reduction."""
    g = np.random.default_rng(2)
    for _ in range(200):
        x = g.standard_normal((int(g.integers(1, 6)), 3))
        y, own, response = g.standard_normal(len(x)), g.standard_normal(3), float(g.standard_normal())
        lam, gamma = 10 ** g.uniform(-1, 1), 10 ** g.uniform(-1, 1)
        less = x.T @ x + lam * np.eye(3)
        more = less + np.outer(own, own)
        theta, other = np.linalg.solve(less, x.T @ y), np.linalg.solve(more, x.T @ y + own * response)
        lev = float(own @ np.linalg.solve(less, own))
        m = sqrt(gamma * lev) * (response - own @ theta) / (1 + lev)
        d, spread = other - theta, log(1 + lev)

        def divergence(p: np.ndarray, q: np.ndarray, gamma: float = gamma, d: np.ndarray = d) -> float:
            """KL of precision gamma p from precision gamma q, without the log of the determinants."""
            return 0.5 * (float(np.trace(np.linalg.solve(p, q))) - 3 + gamma * float(d @ q @ d))

        assert divergence(less, more) - spread / 2 == pytest.approx(
            0.5 * ((1 + lev) * (1 + m * m) - 1 - spread), rel=1e-9, abs=1e-9
        )
        assert divergence(more, less) + spread / 2 == pytest.approx(
            0.5 * (1 / (1 + lev) + m * m - 1 + spread), rel=1e-9, abs=1e-9
        )


def test_the_dominating_pair_dominates() -> None:
    """10,000 records within bounds at random precisions and epsilons; the bound without sqrt(1 + lev) would fail."""
    g = np.random.default_rng(3)
    worst = 0.0
    for _ in range(2_500):
        most, r = 10 ** g.uniform(-4, 0), 10 ** g.uniform(-1, 1)
        gamma = 10 ** g.uniform(-2, 1) / (r * r * most)
        lev, residual = most * g.uniform(0.01, 1), r * g.uniform(0, 1)
        points = g.uniform(0, 4, 4)
        bound = posterior_delta(points, sqrt(gamma * most / (1 + most)) * r, most)
        own = posterior_delta(points, sqrt(gamma * lev) * residual / (1 + lev), lev)
        assert (own <= bound + 1e-14).all()
        small = posterior_delta(points, sqrt(gamma * most) / (1 + most) * r, most)
        at_most = posterior_delta(points, sqrt(gamma * lev / (1 + lev)) * r, lev)
        worst = max(worst, float((at_most - small).max()))
    assert worst > 1e-4


def test_delta_does_not_fall_with_the_leverage() -> None:
    """The larger of both directions at one shift, over leverages: what a table of shifts at rounded leverages rests on."""
    for m in (0.0, 0.1, 1.0):
        for e in (0.0, 0.2, 1.0, 3.0):
            found = [posterior_delta(e, m, lev) for lev in np.geomspace(1e-5, 3, 40)]
            assert all(a <= b + 1e-13 for a, b in pairwise(found))


@pytest.mark.parametrize("slack", few([1e-9, 1e-6, 1e-3], 0, 2))
@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("leverage", [1e-5, 1e-3, 0.1, 2.0])
def test_the_largest_shift_holds_at_each_point_that_it_is_compared_at(leverage: float, mu: float, slack: float) -> None:
    """Not at a few of them alone, which only say sooner that a shift is too large; and it is 0 where none holds at all of them."""
    (points, target), m = _target(mu, slack), largest_shift(leverage, mu, slack)
    found, _ = _both(points, m, leverage)
    assert bool((found <= [*target, slack]).all()) is (m > 0)


@pytest.mark.parametrize("mu", few([0.05, 0.3, 2.0], 0, 2))
@pytest.mark.parametrize("leverage", [1e-6, 1e-3, 1e-2])
def test_the_largest_shift_holds_everywhere_and_wastes_little(leverage: float, mu: float) -> None:
    slack = 1e-7
    m = largest_shift(leverage, mu, slack)
    points = np.linspace(0, 12 * mu + mu * mu, 500)
    target = np.array([gaussian_delta(float(e), mu) + slack for e in points])
    assert (posterior_delta(points, m, leverage) <= target).all()
    assert (posterior_delta(points, m * 1.005 + 1e-9, leverage) > target).any()


def test_shifts_fall_with_the_leverage_and_end_at_zero() -> None:
    found = [largest_shift(lev, 0.2, 1e-7) for lev in (1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1.0)]
    assert all(a >= b for a, b in pairwise(found)) and 0.197 < found[0] <= 0.2 and found[-1] == 0
    assert leverage_above(0.03) >= 0.03
    for bad in ((-1.0, 1.0, 0.1), (0.1, 0.0, 0.1), (0.1, 1.0, 0.0)):
        with refuses(PrivacyError):
            largest_shift(*bad)
    with refuses(PrivacyError):
        largest_precision(1.0, 0.0, 0.1, 1.0)
    with refuses(PrivacyError):
        pair_delta(1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("epsilon", "smallest", "numbers"), [(1.0, 1000.0, (15.90, 8.087, 13.77)), (2.0, 100.0, (5.649, 2.776, 4.562))]
)
def test_the_printed_precision_breaks_its_claim(
    epsilon: float, smallest: float, numbers: tuple[float, float, float]
) -> None:
    """Theorem 5.1 as printed, with the right quantile, and the exact one, at delta = 1e-6, B = 1, L = 2."""
    printed, corrected = (precision_51(epsilon, 1e-6, smallest, 2.0, corrected=c) for c in (False, True))
    best = largest_precision(epsilon, 1e-6, 1 / smallest, 2.0)
    assert (printed, corrected, best) == pytest.approx(numbers, rel=5e-3)

    def delta(gamma: float) -> float:
        lev = 1 / smallest
        return float(posterior_delta(epsilon, sqrt(gamma * lev / (1 + lev)) * 2, lev))

    assert delta(best) <= 1e-6 < delta(best * 1.001) and delta(corrected) < 1e-7
    if epsilon == 1:
        assert delta(printed) == pytest.approx(3.90e-6, rel=0.02)
    else:
        assert delta(printed) > 5e-6


def test_the_noise_of_a_single_release_is_not_what_is_claimed() -> None:
    """sd sqrt(log(6/delta))/e is not (e, delta/3)-DP for larger e; three of AdaSSP's together have room to spare all the same."""
    from confide.guarantees import gaussian_epsilon

    found = [release_delta(e, 1e-6) for e in (0.025, 0.25, 1 / 3, 1.0, 4 / 3)]
    assert found == pytest.approx([5.7e-8, 6.4e-7, 8.8e-7, 3.7e-6, 5.8e-6], rel=0.015)
    whole = [gaussian_epsilon(1e-6, spent(e, 1e-6)) for e in (0.1, 1.0, 4.0)]
    assert whole == pytest.approx([0.0507, 0.596, 2.68], rel=0.01)
