"""What noisy maxima cost: the published bound's values, the collapsed pair below it and above the exact laws, compositions."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats
from tests.messages import refuses
from tests.pace import quick

from confide.errors import PrivacyError
from confide.guarantees import gaussian_epsilon
from confide.guarantees.mechanisms.noisy_max import (
    collapsed_loss,
    collapsed_rdp,
    composed_loss,
    gnmax_epsilon,
    gnmax_log_error,
    published_rdp,
)

_GRID = -np.geomspace(0.7, 5000, 400)


@pytest.mark.parametrize(
    ("sigma", "log_error", "order", "value"),
    [
        (40.0, -8.0, 20.0, 2.947e-4),
        (40.0, -12.0, 50.0, 6.188e-4),
        (20.0, -5.0, 10.0, 6.469e-3),
        (20.0, -2.0, 10.0, 10 / 400),
    ],
)
def test_the_published_bound_has_its_known_values(sigma: float, log_error: float, order: float, value: float) -> None:
    assert float(published_rdp(log_error, order, sigma)) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("sigma", [5.0, 20.0, 40.0])
@pytest.mark.parametrize("order", [1.5, 2.0, 4.0, 10.0, 20.0, 100.0])
def test_the_collapsed_bound_is_below_the_published_one_and_rises(sigma: float, order: float) -> None:
    own = collapsed_rdp(_GRID, order, sigma)
    assert (own <= published_rdp(_GRID, order, sigma) + 1e-15).all()
    assert (np.diff(own[::-1]) >= -1e-15).all() and np.isfinite(own).all() and own[-1] == 0


def _exact(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Probabilities of the labels, by quadrature."""
    x = np.linspace(counts.min() - 9 * sigma, counts.max() + 9 * sigma, 4001)
    out = []
    for j in range(len(counts)):
        others = np.prod([stats.norm.cdf((x - counts[i]) / sigma) for i in range(len(counts)) if i != j], axis=0)
        out.append(np.trapezoid(stats.norm.pdf((x - counts[j]) / sigma) / sigma * others, x))
    return np.array(out)


def test_exact_laws_are_dominated_at_every_epsilon_and_order() -> None:
    g = np.random.default_rng(1)
    for _ in range(12):
        classes, sigma = int(g.integers(2, 5)), float(g.uniform(1, 8))
        counts = np.sort(g.multinomial(int(g.integers(6, 40)), g.dirichlet(np.full(classes, 0.4))))[::-1]
        logs = gnmax_log_error(counts[None], sigma)
        p = _exact(counts, sigma)
        loss = composed_loss(logs, sigma)
        for source in range(classes):
            for target in range(classes):
                if counts[source] == 0 or source == target:
                    continue
                moved = counts.copy()
                moved[source] -= 1
                moved[target] += 1
                q = _exact(moved, sigma)
                for epsilon in (0.0, 0.05, 0.2, 0.5):
                    assert np.maximum(p - exp(epsilon) * q, 0).sum() <= float(loss.delta(epsilon)) + 1e-9
                for order in (2.0, 8.0):
                    renyi = log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
                    assert renyi <= float(collapsed_rdp(logs, order, sigma)[0]) + 1e-9


def test_without_agreement_it_is_the_gaussian_mechanism() -> None:
    for sigma, known in ((10.0, 9.997), (20.0, 4.377), (40.0, 1.993)):
        exact = gaussian_epsilon(1e-5, sqrt(400) / sigma)
        assert exact == pytest.approx(known, abs=1e-3)
        found = composed_loss(np.full(200, -0.5), sigma).epsilon(1e-5)
        assert exact <= found <= exact * 1.001
    assert collapsed_loss(0.0, 5.0).delta(0.3) == pytest.approx(
        stats.norm.cdf(sqrt(2) / 10 - 0.3 * 5 / sqrt(2)) - exp(0.3) * stats.norm.cdf(-sqrt(2) / 10 - 0.3 * 5 / sqrt(2)),
        rel=1e-4,
    )


def test_agreement_saves_and_ten_thousand_queries_take_seconds() -> None:
    g = np.random.default_rng(0)
    top = g.binomial(400, g.beta(12, 1.5, 10_000))
    votes = np.column_stack([np.maximum(top, 400 - top), np.minimum(top, 400 - top)])
    names = ("pairs", "collapsed", "published", "gaussian")
    found = quick(5, lambda: [gnmax_epsilon(votes, 40.0, 1e-5, bound=name) for name in names])
    assert found == sorted(found) and found[0] < 1.6


def test_what_is_refused() -> None:
    with refuses(PrivacyError):
        gnmax_log_error([[3]], 1.0)
    with refuses(PrivacyError):
        published_rdp(-3.0, 1.0, 5.0)
    with refuses(PrivacyError):
        gnmax_epsilon([[3, 1]], 5.0, 1e-5, bound="best")
