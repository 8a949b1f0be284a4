"""Charged by what remains: prices, the certificate against arbitrary precision, planted faults, the pair as a state."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import exp, inf, sqrt
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tests.guarantees.guarantees_accuracy import reference_delta
from tests.messages import refuses

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    Curve,
    Guarantee,
    PureDP,
    TradeOff,
    approx_dp,
    calibrate_gaussian,
    curve_from_dict,
    gaussian,
    gaussian_delta,
    laplace,
    laplace_mu,
    perfect,
    pure_mu,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.curves import objective
from confide.guarantees.filter_certificate import ACCURACY, Inequality, divergence
from confide.guarantees.mechanisms.classical import leak_delta
from confide.guarantees.mechanisms.objective_perturbation import logistic_sd
from confide.guarantees.privacy_filter import (
    NothingRemains,
    Remainder,
    converted,
    holds,
    pair_divergence,
    pair_of,
    remaining,
    stays,
)

Array = NDArray[np.float64]
ONE = Fraction(1)
UNIT, DELTA_UNIT = Fraction(1, 2**40), Fraction(1, 2**60)


CURVES: dict[str, Curve] = {
    "laplace": laplace(0.3),
    "small laplace": laplace(0.01),
    "three laplace": laplace(0.2) ** 3,
    "leaking": zero_inflated(1e-7, laplace(0.3)),
    "zcdp": ZCDP(0.02).to_tradeoff().curve,
}


def price(statement: Guarantee, r: float) -> float:
    r2 = Fraction(r) ** 2
    return float(r2 - remaining(statement, r2).r2)


def cheaper(statement: Guarantee, r2: Fraction, share: float) -> bool:
    """Whether the certificate passes at a share of the price."""
    after = remaining(statement, r2)
    left = (r2 - Fraction(share) * (r2 - after.r2)) // UNIT * UNIT
    return holds(statement, r2, Remainder(left, after.leak))


# the divergence and the inequality in arbitrary precision ------------------------------------------------------------


def test_the_divergence_and_what_is_missing_to_1_are_as_accurate_as_they_say() -> None:
    generator = np.random.default_rng(20240901)
    for _ in range(400):
        r = float(10 ** generator.uniform(-3.5, 1.3))
        t = float((generator.uniform(-8, 36) + r / 2) * r * generator.choice([1.0, 1.0, -1.0]))
        truth = reference_delta(t, r)
        found = [float(x[0]) for x in divergence(np.array([t]), r)]
        for value, exact in zip(found, (truth, 1 - truth), strict=True):
            if exact > 1e-60:  # the reference itself has 100 digits
                assert abs(value / exact - 1) < ACCURACY / 2


def exactly(losses: Array, masses: Iterable[Any], r2: Fraction, after: Remainder, t: float) -> mp.mpf:
    """log of H_a(D x G_r') / (H_a(G_r) + leak) at a = e^t."""
    r, rest = (mp.sqrt(mp.mpf(x.numerator) / x.denominator) for x in (r2, after.r2))

    def g(at: mp.mpf, mu: mp.mpf) -> mp.mpf:
        low, high = at / mu - mu / 2, at / mu + mu / 2
        return (mp.erfc(low / mp.sqrt(2)) - mp.exp(at) * mp.erfc(high / mp.sqrt(2))) / 2

    left = mp.fsum(mp.mpf(p) * g(mp.mpf(t) - mp.mpf(float(x)), rest) for x, p in zip(losses, masses, strict=True))
    return mp.log(left / (g(mp.mpf(t), r) + mp.mpf(after.leak.numerator) / after.leak.denominator))


@pytest.mark.parametrize(("epsilon", "r"), [(0.01, 1.0), (0.1, 1.0), (0.5, 1.0), (1.0, 1.66), (0.3, 3.0), (2.0, 6.0)])
def test_the_inequality_for_randomised_response_at_many_orders(epsilon: float, r: float) -> None:
    """Far below and above the order 1, up to e^10000, where both sides are below 10^-100000."""
    r2, (losses, masses) = Fraction(r) ** 2, pair_of(approx_dp(epsilon), None).orders[0]
    after = remaining(PureDP(epsilon), r2)
    near, far = np.linspace(0.0, r * r + 8 * r, 60), np.geomspace(1.0, 1e4, 40)
    with mp.workdps(120):
        exact = [1 / (1 + mp.exp(-x)) for x in losses]
        assert all(abs(mass / truth - 1) < 1e-15 for mass, truth in zip(masses, exact, strict=True))
        assert all(exactly(losses, exact, r2, after, float(t)) < 0 for t in (*near, *far, *-near))


@pytest.mark.parametrize("name", [name for name in CURVES if name != "zcdp"])
def test_the_inequality_for_curves_in_both_orders(name: str) -> None:
    """By quadrature of the curve's own divergence over the Gaussian's loss: H_a(D x G) = E H_(a e^-l)(D).

    Not of a bound that is no divergence, for it bends the wrong way at the order 1: what counts is its convex envelope.
    """
    curve, r2 = CURVES[name], ONE
    after = remaining(TradeOff(curve), r2)
    rest, end = sqrt(after.r2), min(curve.epsilon(0.0), 1.0)
    nodes, weights = np.polynomial.legendre.leggauss(300)
    for t in np.linspace(-3.0, 3.5, 27):
        middle = t - rest * rest / 2
        cuts = sorted({middle + k * rest for k in (-9, -3, 0, 3, 9)} | {-end, 0.0, end})
        left = float(stats.norm.cdf(-9))  # what is beyond the cuts
        for low, high in pairwise(cuts):
            asked = low + (high - low) * (nodes + 1) / 2
            left += float(weights @ (curve.delta(asked) * stats.norm.pdf(asked, middle, rest))) * (high - low) / 2
        # a leak is added at orders from 1 on; below it, by the other order, its share of the order is
        assert left <= gaussian_delta(float(t), 1.0) + float(after.leak) * min(1.0, exp(t)) + 1e-15


# prices --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("r", "epsilon", "ratio"),
    [
        (1.0, 0.1, 1.0013),
        (1.0, 0.3, 1.0124),
        (1.0, 0.5, 1.0417),
        (1.66, 0.1, 1.0002),
        (1.66, 0.5, 1.0058),
        (1.66, 1.0, 1.0430),
        (3.0, 0.1, 0.9998),
        (3.0, 0.5, 0.9944),
        (3.0, 1.0, 0.9800),
    ],
)
def test_a_pure_release_costs_its_epsilon_squared(r: float, epsilon: float, ratio: float) -> None:
    """Known values to half of their last digit. The GDP statement of the same release costs 1.52 to 1.57."""
    assert price(PureDP(epsilon), r) / epsilon**2 == pytest.approx(ratio, abs=1e-4)
    assert pure_mu(epsilon) ** 2 / epsilon**2 > 1.5


def test_the_price_of_what_has_hardly_room_is_the_gdp_price() -> None:
    mu2 = pure_mu(1.0) ** 2
    with refuses(NothingRemains):
        remaining(PureDP(1.0), ONE)
    assert price(PureDP(1.0), sqrt(mu2 * 1.0001)) <= mu2 * 1.0001
    assert price(PureDP(1e-6), 30.0) == pytest.approx(pure_mu(1e-6) ** 2, abs=1e-12)
    assert price(PureDP(0.1), 100.0) == pytest.approx(pure_mu(0.1) ** 2, rel=1e-6)


def test_a_gaussian_costs_mu_squared_exactly() -> None:
    for mu in (0.1, 0.3, 1.0):
        left = ONE - Fraction(mu) ** 2
        exact = left // UNIT * UNIT
        for statement in (GDP(mu), TradeOff(gaussian(mu))):
            assert remaining(statement, ONE) == Remainder(exact, Fraction(0))
        after = remaining(GDP(mu, 1e-9), ONE)
        assert after.r2 == exact and Fraction(1e-9) <= after.leak < Fraction(1e-9) + DELTA_UNIT
        assert holds(GDP(mu, 1e-9), ONE, after)
        assert not holds(GDP(mu, 1e-9), ONE, Remainder(after.r2, after.leak - DELTA_UNIT))
        assert not holds(GDP(mu), ONE, Remainder(exact + UNIT, Fraction(0)))
    assert remaining(TradeOff(perfect()), ONE) == Remainder(ONE, Fraction(0))
    with pytest.raises(NothingRemains):
        remaining(GDP(1.0000001), ONE)


def test_no_curve_costs_more_than_the_statements_that_follow_from_it() -> None:
    for level in (0.05, 0.3, 0.8):
        laplace_price = price(TradeOff(laplace(level)), 2.0)
        assert laplace_price <= price(PureDP(level), 2.0) and laplace_price < laplace_mu(level) ** 2
    assert price(TradeOff(laplace(0.2) ** 3), 2.0) < price(PureDP(0.6), 2.0)
    together, apart = price(TradeOff(laplace(0.3) * gaussian(0.3)), 1.0), price(TradeOff(laplace(0.3)), 1.0) + 0.09
    assert together == pytest.approx(apart, abs=1e-11)
    assert remaining(TradeOff(laplace(0.3) * gaussian(0.3)), ONE).leak == 0
    # a bound on Renyi divergences has a curve too, and that has a price
    assert 2 * 0.05 < price(ZCDP(0.05).to_tradeoff(), 1.0) < 4 * 0.05


def test_prices_rise_with_epsilon_and_what_is_left_with_what_there_is() -> None:
    prices = [price(PureDP(e), 2.0) for e in (0.02, 0.1, 0.3, 0.31, 0.7, 1.0, 1.2)]
    assert prices == sorted(prices)
    left = [remaining(PureDP(0.4), Fraction(k, 10)).r2 for k in range(3, 60, 4)]
    assert left == sorted(left)


def test_a_leak_pays_for_tails_and_nothing_else_does() -> None:
    unbounded = TradeOff(CURVES["zcdp"])
    assert remaining(unbounded, ONE).leak == DELTA_UNIT
    assert not holds(unbounded, ONE, Remainder(remaining(unbounded, ONE).r2, Fraction(0)))
    assert remaining(TradeOff(laplace(0.3)), ONE).leak == 0
    leaking = remaining(ApproxDP(0.3, 1e-7), ONE)
    assert leaking.r2 == remaining(PureDP(0.3), ONE).r2 and Fraction(1e-7) <= leaking.leak < Fraction(1e-7) + DELTA_UNIT
    assert not holds(ApproxDP(0.3, 1e-7), ONE, Remainder(leaking.r2, leaking.leak - DELTA_UNIT))
    assert holds(ApproxDP(0.3, 1e-7), ONE, Remainder(leaking.r2, leaking.leak + DELTA_UNIT))
    heavy = TradeOff(symmetric_laplace(inf, 0.05))
    with refuses(NoConversion):
        remaining(heavy, ONE)
    paid = remaining(heavy, ONE, Fraction(1, 1000))
    assert (
        0 < 1 - paid.r2 < heavy.to_gdp(delta=1e-3).mu ** 2 / 5
        and paid.leak >= Fraction(1, 1000)
        and holds(heavy, ONE, paid)
    )


@pytest.mark.parametrize("statement", [ZCDP(0.1), RDP((2.0, 8.0, 32.0, 128.0), (0.1, 0.4, 1.6, 6.4))])
def test_what_has_no_price_says_which_call_works(statement: Guarantee) -> None:
    with refuses(NoConversion):
        remaining(statement, ONE)
    assert remaining(statement.to_tradeoff(), Fraction(4)).r2 < 4
    with refuses(PrivacyError):
        remaining(GDP(0.1), Fraction(0))
    with refuses(PrivacyError):
        remaining(1.0, ONE)  # type: ignore[arg-type]


# the certificate -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("r", [1.0, 2.5])
def test_the_certificate_takes_what_the_search_finds_and_no_less(name: str, r: float) -> None:
    statement, r2 = TradeOff(CURVES[name]), Fraction(r) ** 2
    assert holds(statement, r2, remaining(statement, r2))
    assert cheaper(statement, r2, 1.1)
    # the search stops within 1e-3, and what is left out is refuted by a grid or not proved
    assert not cheaper(statement, r2, 0.9) and not cheaper(statement, r2, 0.998)


@pytest.mark.parametrize("epsilon", [0.003, 0.1, 0.5])
def test_a_tenth_of_a_per_mille_is_seen_for_randomised_response(epsilon: float) -> None:
    assert cheaper(PureDP(epsilon), ONE, 1.0) and cheaper(PureDP(epsilon), ONE, 1.01)
    assert not cheaper(PureDP(epsilon), ONE, 0.99 if epsilon < 0.01 else 0.9997)


def test_what_no_grid_sees_is_not_proved() -> None:
    """A loss of 2 with probability 1e-25: it breaks the inequality where both sides are below 10^-8000, and one unit of delta pays it."""
    r2 = ONE
    after = remaining(PureDP(0.1), r2)
    losses, masses = (
        np.append(x, extra) for x, extra in zip(pair_of(approx_dp(0.1), None).orders[0], (2.0, 1e-25), strict=True)
    )
    numbers = (1.0, sqrt(after.r2), float(r2 - after.r2))
    planted, t = Inequality(losses, masses, *numbers, 0.0), np.linspace(0.0, 30.0, 3001)
    assert (planted.gaps(t) > 0).all()
    with mp.workdps(60):
        assert exactly(losses, masses, r2, after, 200.0) > 0
    assert not planted.proved(2.0**-31)
    assert Inequality(losses, masses, *numbers, 2.0**-60).proved(2.0**-31)


def test_the_order_1_is_not_enough_nor_one_direction() -> None:
    """A pair that is better in one order than in the other is proved in both, or not at all."""
    p, q = np.array([0.7, 0.29, 0.01]), np.array([0.8, 0.199, 0.001])
    forward, backward = (np.log(p / q), p), (np.log(q / p), q)
    proofs = [
        [
            Inequality(losses, masses, 1.0, sqrt(1 - spent), spent, 0.0).proved(2.0**-31)
            for losses, masses in (forward, backward)
        ]
        for spent in np.linspace(0.02, 0.6, 30)
    ]
    assert [True, False] in proofs or [False, True] in proofs
    assert proofs[-1] == [True, True] and proofs[0] == [False, False]


def test_a_statement_is_never_proved_for_more_than_there_is() -> None:
    for after in (
        Remainder(Fraction(2), Fraction(0)),
        Remainder(Fraction(-1), Fraction(0)),
        Remainder(ONE, Fraction(0)),
    ):
        assert not holds(PureDP(0.1), ONE, after)
    assert not holds(PureDP(0.1), ONE, Remainder(Fraction(1, 2), -DELTA_UNIT))


# how many ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_gaussian_ledger_of_1_grants_98_releases_at_a_tenth() -> None:
    left, count = ONE, 0
    while True:
        try:
            after = remaining(PureDP(0.1), left)
        except NothingRemains:
            break
        assert after.leak == 0 and holds(PureDP(0.1), left, after)
        left, count = after.r2, count + 1
    assert count == 98


# objective perturbation ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_objective_perturbation_costs_hardly_more_than_its_tilt() -> None:
    """(1, 1e-6) at ridge 2 costs .0596, its tilt alone .0560, and the (1, 1e-6) statement 1.04 to 1.5."""
    sd = logistic_sd(1.0, 1e-6, 2.0)
    curve = objective(1 / sd, 0.5)
    for r, known in ((1.0, 0.05957), (1.66, 0.05951), (3.0, 0.05948)):
        found = price(TradeOff(curve), r)
        assert sd**-2 < found and found == pytest.approx(known, rel=1e-3)
    after = remaining(TradeOff(curve), ONE)
    assert after.leak == Fraction(1, 2**40)
    with refuses(NoConversion):
        remaining(TradeOff(curve), ONE, Fraction(0))
    assert not cheaper(TradeOff(curve), ONE, 0.9)
    with_more = objective(1 / sd, 0.5, after=0.05)
    assert float(after.r2 - remaining(TradeOff(with_more), ONE).r2) == pytest.approx(0.0025, abs=1e-11)
    assert holds(TradeOff(with_more), ONE, remaining(TradeOff(with_more), ONE))
    replaced = objective(1 / logistic_sd(1.0, 1e-6, 2.0, relation="substitute"), 0.5, replaced=True)
    assert holds(TradeOff(replaced), ONE, remaining(TradeOff(replaced), ONE))
    assert price(TradeOff(replaced), 1.66) < 0.09
    for kept in (curve, with_more, replaced):
        assert curve_from_dict(kept.to_dict()) == kept
        at = kept.delta(np.linspace(0, 4, 40))
        assert (np.diff(at) <= 0).all()
    with refuses(PrivacyError):
        objective(0.2, 0.5, replaced=1)  # type: ignore[arg-type]


# the pair as a state -------------------------------------------------------------------------------------------------


def test_the_pair_has_the_divergence_of_its_four_outcomes() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.3, 0.05), (4.0, 0.0)):
        share = 1 / (1 + exp(-epsilon))
        p = np.array([delta, (1 - delta) * share, (1 - delta) * (1 - share), 0.0])
        for t in np.linspace(-6, 6, 101):
            direct = float(np.maximum(p - exp(t) * p[::-1], 0).sum())
            assert pair_divergence(epsilon, delta, float(t)) == pytest.approx(direct, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (8.0, 1e-5), (0.01, 1e-9), (30.0, 1e-3), (3.0, 0.2)])
def test_a_converted_pair_promises_no_more(epsilon: float, delta: float) -> None:
    state = converted(Fraction(epsilon), Fraction(delta))
    assert state.r2 % UNIT == 0 and state.leak % DELTA_UNIT == 0
    assert 0 < state.leak <= Fraction(delta) / 50
    truth = reference_delta(epsilon, sqrt(state.r2)) + mp.mpf(state.leak.numerator) / state.leak.denominator
    assert truth <= delta and truth > delta * (1 - 1e-6)
    for t in np.linspace(0.0, 2 * epsilon, 101):  # from the order 1 on, in both orders
        reached = min(1.0, gaussian_delta(float(t), sqrt(state.r2)) + float(state.leak))
        assert reached <= pair_divergence(epsilon, delta, float(t)) * (1 + 1e-12)


def test_a_pair_that_has_no_delta_left_has_no_gaussian_state() -> None:
    for epsilon, delta in ((1, 0), (0, Fraction(1, 1000))):
        with refuses(NothingRemains):
            converted(Fraction(epsilon), Fraction(delta))
    with refuses(PrivacyError):
        converted(Fraction(1), ONE)
    sizes = [converted(Fraction(k), Fraction(1, 10**6)).r2 for k in (1, 2, 4, 8)]
    assert sizes == sorted(sizes)


def test_what_is_charged_in_a_pair() -> None:
    pure, approx = PureDP(0.1), ApproxDP(0.5, 1e-7)
    whole = Fraction(8), Fraction(1, 10**5)
    for statement, epsilon, delta in ((pure, 0.1, 0.0), (approx, 0.5, 1e-7)):
        point = stays(statement, Fraction(8), Fraction(0))
        assert Fraction(epsilon) <= point.epsilon < Fraction(epsilon) + UNIT
        assert Fraction(delta) <= point.delta < Fraction(delta) + DELTA_UNIT
        # with some delta left a digit of epsilon is paid by it, within the statement's own curve
        point = stays(statement, *whole)
        assert (
            Fraction(epsilon) - UNIT < point.epsilon <= Fraction(epsilon) and point.delta < Fraction(delta) + 2 * UNIT
        )
        assert point.delta >= leak_delta(epsilon, delta, float(point.epsilon))
    assert 10 * stays(pure, ONE, Fraction(1, 10**6)).epsilon <= 1 < 10 * stays(pure, ONE, Fraction(0)).epsilon
    # what a (1, 1e-6) request runs as is charged as the request
    request = ApproxDP(1.0, 1e-6)
    asked = stays(GDP(calibrate_gaussian(request)), *whole, request)
    assert asked.epsilon == 1 and float(asked.delta) == pytest.approx(1e-6)
    # a request that the curve does not meet is not what is charged
    assert stays(GDP(0.5), *whole, request).epsilon > 1
    for curve in (
        TradeOff(gaussian(0.3)),
        GDP(0.3, 1e-8),
        TradeOff(laplace(0.4)),
        TradeOff(symmetric_laplace(3, 0.2)),
        ZCDP(0.02),
    ):
        point = stays(curve, *whole)
        assert float(curve.to_tradeoff().curve.delta(float(point.epsilon))) <= float(point.delta)
        assert point.epsilon / whole[0] == pytest.approx(float(point.delta / whole[1]), rel=1e-6) or point.delta == 0
    assert stays(TradeOff(laplace(0.4)), Fraction(8), Fraction(0)).epsilon == pytest.approx(0.4)
    with refuses(NothingRemains):
        stays(GDP(0.3), Fraction(8), Fraction(0))
    with refuses(NothingRemains):
        stays(TradeOff(zero_inflated(0.5, laplace(0.3))), Fraction(1, 1000), Fraction(1, 10**9))
