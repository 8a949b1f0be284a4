"""The filter on small worlds: whatever an analyst asks next, exact hockey-stick divergences stay within the budget.

A release is a pair of laws (P, Q) on a few outcomes. Trees of releases, each chosen from the outcomes before it, are granted
by the book's own decision; the law of all outcomes together is then compared with g_sqrt(b) + d at every a, in both orders,
without sampling.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from confide.errors import BudgetExceeded
from confide.guarantees import GDP
from confide.ledger.account import Account
from confide.ledger.currencies import currency_of
from confide.ledger.currency import ZERO
from confide.ledger.decision import choose

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
TOLERANCE = 1e-12


def gaussian_curve(a: Array, mu: float) -> Array:
    """g_mu(a), the hockey-stick divergence of N(mu, 1) from N(0, 1), for a > 0."""
    shifted = -np.log(a) / mu
    return np.asarray(ndtr(shifted + mu / 2) - np.exp(np.log(a) + log_ndtr(shifted - mu / 2)))


def excess(p: Array, q: Array, mu: float) -> float:
    """sup over a >= 0 of H_a(P||Q) - g_mu(a), exactly.

    H_a is linear in a between likelihood ratios and g_mu is convex, so that the difference is concave there: its maximum is
    where the slopes agree, or at the nearer end.
    """
    with np.errstate(divide="ignore"):
        ratio = np.where(q > 0, p / np.where(q > 0, q, 1.0), np.inf)
    order = np.argsort(ratio)
    sums = [np.append(np.cumsum(mass[order][::-1])[::-1], 0.0) for mass in (p, q)]
    low = np.concatenate([[0.0], np.unique(ratio[np.isfinite(ratio)])])
    high = np.append(low[1:], np.inf)
    first = np.searchsorted(ratio[order], low, side="right")
    height, slope = sums[0][first], sums[1][first]
    level = np.exp(-mu * (ndtri(np.clip(slope, 1e-300, 1.0)) + mu / 2))
    a = np.maximum(np.minimum(np.maximum(level, low), high), 1e-300)
    inside = height - a * slope - gaussian_curve(a, mu)
    return float(max(inside[np.isfinite(a)].max(), p[q == 0].sum()))  # and a -> infinity


def both(pair: Pair, mu: float) -> float:
    return max(excess(*pair, mu), excess(*pair[::-1], mu))


def quantised_gaussian(mu: float, cells: int) -> Pair:
    """N(mu, 1) against N(0, 1), cut into cells that are equally likely under the mean of both: nearly all of GDP(mu)."""
    edges = np.concatenate([[-np.inf], mu / 2 + (1 + mu / 4) * ndtri(np.arange(1, cells) / cells), [np.inf]])
    return np.diff(ndtr(edges - mu)), np.diff(ndtr(edges))


def leaking(pair: Pair, delta: float) -> Pair:
    """The same, but with probability delta the answer is there for all to see."""
    p, q = pair
    return np.concatenate([(1 - delta) * p, [delta, 0.0]]), np.concatenate([(1 - delta) * q, [0.0, delta]])


def release(generator: np.random.Generator) -> tuple[Pair, GDP]:
    """A random pair and a statement that holds for it, by `excess`; as tight as its mu allows."""
    mu = float(generator.uniform(0.2, 1.2))
    match generator.integers(4):
        case 0:
            pair = quantised_gaussian(mu, int(generator.integers(2, 9)))
        case 1:
            pair = leaking(quantised_gaussian(mu, int(generator.integers(2, 7))), float(generator.uniform(0, 0.05)))
        case 2:
            epsilon = mu
            share = np.exp(epsilon) / (1 + np.exp(epsilon))
            pair = (np.array([share, 1 - share]), np.array([1 - share, share]))
        case _:
            p, q = generator.dirichlet(np.full(4, 4.0)), generator.dirichlet(np.full(4, 4.0))
            pair = (0.7 * p + 0.3 * q, 0.3 * p + 0.7 * q)
    if generator.random() < 0.5:
        pair = pair[::-1]
    return pair, GDP(mu, max(both(pair, mu), 0.0), relation="add-remove")


def tree(generator: np.random.Generator, book: Account, depth: int, *, charged: float = 1.0) -> Pair:
    """The laws of all outcomes of an analyst who chooses each next release from the last outcome, while the book grants it.

    charged: of each mu^2 and delta; below 1 it is the fault that must be seen.
    """
    if depth == 0:
        return np.ones(1), np.ones(1)
    for _ in range(6):
        (p, q), statement = release(generator)
        asked = replace(statement, mu=statement.mu * charged**0.5, delta=statement.delta * charged)
        try:
            price = choose(book, (asked,)).price
            break
        except BudgetExceeded:
            continue
    else:
        return np.ones(1), np.ones(1)
    after = replace(book, spent=book.spent + price)
    below = [tree(generator, after, depth - 1, charged=charged) for _ in p]
    return (
        np.concatenate([x * rest[0] for x, rest in zip(p, below, strict=True)]),
        np.concatenate([y * rest[1] for y, rest in zip(q, below, strict=True)]),
    )


def opened(mu: float, delta: float) -> Account:
    budget = GDP(mu, delta, relation="add-remove")
    currency = currency_of(budget)
    return Account("d", currency, "add-remove", "record", "central", budget, currency.limit(budget), ZERO, 1, "0" * 64)


def test_the_measure_itself() -> None:
    """`excess` on pairs whose curve is known."""
    assert both((np.array([0.3, 0.7]), np.array([0.3, 0.7])), 0.5) <= TOLERANCE
    assert both(quantised_gaussian(0.8, 40), 0.8) <= TOLERANCE
    assert both(quantised_gaussian(0.8, 40), 0.76) > 1e-3
    assert both((np.array([0.9, 0.1, 0.0]), np.array([0.9, 0.0, 0.1])), 1e-3) == pytest.approx(0.1, abs=1e-3)
    a = np.array([0.5, 1.0, 2.0])
    p, q = quantised_gaussian(1.1, 5)
    direct = np.maximum(p[None, :] - a[:, None] * q[None, :], 0).sum(axis=1) - gaussian_curve(a, 0.9)
    assert excess(p, q, 0.9) >= direct.max()


@pytest.mark.parametrize("trees", [20, pytest.param(60, marks=pytest.mark.long)])
def test_adaptive_trees_stay_within_the_budget(trees: int) -> None:
    generator, deep = np.random.default_rng(20240611), 0
    for _ in range(trees):
        mu, delta = float(generator.uniform(0.5, 2.0)), float(generator.choice([0.0, 0.02, 0.1, 0.3]))
        p, q = tree(generator, opened(mu, delta or 1e-9), 3)
        deep += len(p) > 16
        assert p.sum() == pytest.approx(1)
        assert both((p, q), mu) <= (delta or 1e-9) + TOLERANCE
    assert deep > 0.4 * trees


@pytest.mark.parametrize("charged", [pytest.param(0.8, marks=pytest.mark.long), 0.5])
def test_a_book_that_charges_too_little_is_seen(charged: float) -> None:
    """The same trees, with 80 % or half of each price charged: some analyst gets more than the budget."""
    generator = np.random.default_rng(20240611)

    def broken() -> bool:
        mu, delta = float(generator.uniform(0.5, 2.0)), float(generator.choice([0.0, 0.02, 0.1, 0.3]))
        return both(tree(generator, opened(mu, delta or 1e-9), 3, charged=charged), mu) > (delta or 1e-9) + TOLERANCE

    assert any(broken() for _ in range(60))


def test_the_bound_is_nearly_reached() -> None:
    """Four releases that use up the budget between them: nine tenths of it are really given away, so the bound is no slack."""
    p, q = np.ones(1), np.ones(1)
    for pair in [leaking(quantised_gaussian(0.5, 10), 0.01)] * 3:
        p, q = np.outer(p, pair[0]).ravel(), np.outer(q, pair[1]).ravel()
    mu, delta = 0.75**0.5, 0.03
    assert both((p, q), mu) <= delta + TOLERANCE
    assert both((p, q), 0.9 * mu) > delta
    assert both((p, q), mu) > 0.9 * (1 - 0.99**3) - 1e-3


def test_the_sum_of_curve_and_deltas_would_be_no_filter() -> None:
    """A Gaussian release with half of the mu^2 that (1, .01) allows, then per outcome the rest of it, or a leak of what delta is left.

    Each branch keeps curve + deltas within the budget, and together they exceed it by half.
    """
    from math import exp

    from scipy.integrate import quad
    from scipy.stats import norm

    from confide.guarantees import ApproxDP, calibrate_gaussian

    epsilon, delta = 1.0, 0.01
    whole = calibrate_gaussian(ApproxDP(epsilon, delta)) ** 2
    first = second = (whole / 2) ** 0.5

    def curve(order: float, mu: float) -> float:
        from math import log

        return float(norm.cdf(-log(order) / mu + mu / 2) - order * norm.cdf(-log(order) / mu - mu / 2))

    left = delta - curve(exp(epsilon), first)

    def value(x: float) -> float:
        order = exp(epsilon - first * x + first**2 / 2)
        return max(curve(order, second), max(0.0, 1 - order) * (1 - left) + left)

    reached = quad(lambda x: norm.pdf(x - first) * value(x), first - 10, first + 12, limit=400)[0]
    assert reached > 1.4 * delta
