"""The pairs that stand for a release dominate it and lose no mass, and what doubles do not hold ends in a price or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, fsum, isinf

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.few import few
from tests.messages import refuses

from confide.errors import NoConversion
from confide.guarantees import ZCDP, Curve, PureDP, approx_dp, gaussian_delta, laplace
from confide.guarantees.curves import Objective, objective
from confide.guarantees.filter_certificate import divergence
from confide.guarantees.privacy_filter import (
    AMOUNT_UNIT as UNIT,
    DELTA_UNIT,
    NothingRemains,
    Pair,
    Remainder,
    _checked,
    holds,
    pair_of,
    remaining,
)
from confide.guarantees.privacy_loss import convex_slopes

Array = NDArray[np.float64]
ONE = Fraction(1)
BOUNDED = (laplace(0.3), laplace(0.01), laplace(0.2) ** 3)
UNBOUNDED = (
    objective(0.2, 0.5),
    objective(2.0, 0.5),
    objective(3.5, 0.5),
    ZCDP(7.5).to_tradeoff().curve,
    ZCDP(0.02).to_tradeoff().curve,
)


def within(curve: Curve, nodes: int = 6000) -> tuple[Array, Array]:
    """A true pair whose divergence is nowhere above the curve's, in either order: chords, mixed with what reveals nothing."""
    top = float(curve.epsilon(1e-22))
    t = np.linspace(-top, top, 2 * nodes + 1)
    a, delta = np.exp(t), np.asarray(curve.delta(np.abs(t)))
    values = np.where(t >= 0, delta, -np.expm1(t) + a * delta)
    slopes = np.concatenate([[-1.0], convex_slopes(np.diff(values), np.diff(a)), [0.0]])
    masses = a * np.diff(np.maximum.accumulate(np.maximum(slopes, -1.0)))
    masses /= masses.sum()
    between = (t[1:] + t[:-1])[nodes::7] / 2
    ours = np.array([np.maximum(-np.expm1(x - t), 0) @ masses for x in between])
    theirs = np.asarray(curve.delta(between))
    over = float((ours[theirs > 1e-20] / theirs[theirs > 1e-20]).max()) - 1
    nothing = 3 * max(over, 0.0) + 1e-9
    masses *= 1 - nothing
    masses[nodes] += nothing
    return t, masses


def truth(curve: Curve) -> Callable[[float], float]:
    """A divergence that is within the curve in every order."""
    if isinstance(curve, Objective):
        return lambda t: gaussian_delta(t, curve.mu)
    if isinf(curve.epsilon(0.0)):
        losses, masses = within(curve)
        return lambda t: float(np.maximum(-np.expm1(t - losses), 0.0) @ masses)
    return lambda t: float(curve.delta(t))


@pytest.mark.parametrize("curve", few([*UNBOUNDED, *BOUNDED], 0), ids=repr)
def test_a_pair_loses_no_mass_in_either_order_and_is_above_what_it_stands_for(curve: Curve) -> None:
    """Between the nodes too, to 1e-11: at small orders slopes of 1 - a + a H were noise, and a first chord ended all lower ones."""
    pair = pair_of(curve, None)
    true = truth(curve)
    for losses, masses in pair.orders:
        assert (masses >= 0).all() and fsum([*masses, float(pair.bare)]) >= 1 - 2.0**-50
        for t in np.linspace(0.0, losses[-1] * (1 - 1e-9), 501):
            found = float(np.maximum(-np.expm1(t - losses), 0.0) @ masses) + float(pair.bare)
            assert found >= true(float(t)) * (1 - 1e-14)


@pytest.mark.parametrize("mu", [0.2, 2.0, 3.5])
def test_objective_perturbation_is_gaussian_in_its_second_order(mu: float) -> None:
    """At the dots that are connected the pair has the Gaussian's own divergence, to what is rounded up."""
    pair = pair_of(objective(mu, 0.5), None)
    losses, masses = pair.orders[1]
    for t in losses[losses >= 0]:
        found, exact = float(np.maximum(-np.expm1(t - losses), 0.0) @ masses), gaussian_delta(float(t), mu)
        assert found == pytest.approx(exact, rel=1e-10, abs=float(pair.bare))


def test_what_loses_mass_is_no_pair() -> None:
    curve, pair = objective(3.0, 0.5), pair_of(objective(3.0, 0.5), None)
    less = tuple(
        (losses, masses * (1 - share)) for (losses, masses), share in zip(pair.orders, (0.0, 1e-12), strict=True)
    )
    with refuses(NoConversion):
        _checked(curve, Pair(less, pair.bare, pair.leak))
    with refuses(NoConversion):
        _checked(curve, Pair(((pair.orders[0][0], pair.orders[0][1] * np.nan),), pair.bare, pair.leak))


def test_what_is_certified_holds_for_a_release_within_the_curve() -> None:
    statement, r2 = ZCDP(7.5).to_tradeoff(), Fraction(200)
    after = remaining(statement, r2)
    assert holds(statement, r2, after) and float(r2 - after.r2) == pytest.approx(30.76, abs=5e-3)
    # the price of a pair that had lost mass
    assert not holds(statement, r2, Remainder(r2 - Fraction(2408, 100), after.leak))
    losses, masses = within(statement.curve)
    for t in np.linspace(40.0, 80.0, 21):
        left = float(divergence(t - losses, float(after.r2) ** 0.5)[0] @ masses)
        assert left <= float(divergence(np.array([t]), float(r2) ** 0.5)[0][0]) + float(after.leak) + 1e-7


@pytest.mark.parametrize("epsilon", [700.0, 1e155, 1e200])
def test_losses_that_no_double_holds_have_their_gdp_price_or_none(epsilon: float) -> None:
    with refuses(NothingRemains):
        remaining(PureDP(epsilon), Fraction(4))
    assert not holds(PureDP(epsilon), Fraction(4), Remainder(ONE, Fraction(0)))
    mu2 = Fraction(approx_dp(epsilon).gdp(0.0)) ** 2
    assert mu2 - UNIT < 2 * mu2 - remaining(PureDP(epsilon), 2 * mu2).r2 < mu2 + UNIT


@pytest.mark.parametrize(("epsilon", "leak"), few([(21.0, 2.0**-60), (25.0, 1e-18)], 0))
def test_the_search_of_mu_ends_where_what_is_missing_to_1_is_of_the_order_of_its_digits(
    epsilon: float, leak: float
) -> None:
    """1 - delta(0) is 2 exp(-epsilon) or so: any mu needs 2 Phi(-mu/2) of at most that."""
    least = 2 * float(stats.norm.isf(1 / (1 + exp(epsilon))))
    assert least <= approx_dp(epsilon).gdp(leak) < 1.05 * least


def test_where_no_mu_is_left_the_search_says_so() -> None:
    with refuses(NoConversion):
        approx_dp(40.0).gdp(1e-18)
    with pytest.raises(NothingRemains):
        remaining(PureDP(21.0), Fraction(69, 100), DELTA_UNIT)
