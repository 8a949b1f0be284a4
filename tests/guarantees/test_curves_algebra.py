"""Laws that any curve obeys, over random curves: symmetry, convexity, order, composition, files; and what is refused."""

from __future__ import annotations

import json
import math
import pickle
from functools import reduce
from itertools import pairwise
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses
from tests.pace import quick

from confide.errors import ConfideError, NoConversion, PrivacyError
from confide.guarantees import GDP, ZCDP
from confide.guarantees.conversion import from_guarantee
from confide.guarantees.curves import (
    Composed,
    Curve,
    approx_dp,
    calibrate_symmetric_laplace,
    curve_from_dict,
    gaussian,
    laplace,
    levels,
    perfect,
    symmetric_laplace,
    zero_inflated,
)

LEVELS = st.floats(0.05, 3.0)
PLAIN = st.one_of(
    st.just(perfect()),
    LEVELS.map(gaussian),
    LEVELS.map(laplace),
    LEVELS.map(approx_dp),
    LEVELS.map(lambda c: symmetric_laplace(1, c)),
    LEVELS.map(lambda c: symmetric_laplace(inf, c)),
)
LEAKY = st.one_of(
    PLAIN,
    st.builds(zero_inflated, st.floats(1e-9, 0.3), PLAIN),
    st.builds(lambda mu, leak: from_guarantee(GDP(mu, leak)), LEVELS, st.floats(1e-9, 0.1)),
)
PRODUCTS = st.one_of(LEAKY, st.builds(Curve.compose, LEAKY, LEAKY), st.builds(Curve.power, LEAKY, st.integers(1, 5)))


@settings(max_examples=60, deadline=None)
@given(LEAKY, st.floats(0.001, 0.999))
def test_every_curve_is_symmetric_and_below_the_diagonal(curve: Curve, alpha: float) -> None:
    beta = curve.f(alpha)
    assert 0 <= beta <= 1 - alpha
    if beta > 1e-4:
        # f rounds down; where it is flat, its mirror image is steep
        assert curve.f(beta) == pytest.approx(alpha, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(LEAKY, st.floats(0, 1), st.floats(0, 1))
def test_every_curve_is_convex_and_falls(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert curve.f((low + high) / 2) <= (curve.f(low) + curve.f(high)) / 2 + 1e-9
    assert curve.f(high) <= curve.f(low) + 1e-12


@settings(max_examples=60, deadline=None)
@given(LEAKY, st.floats(-4, 4), st.floats(-4, 4))
def test_every_profile_is_convex_in_the_exponential_and_falls(curve: Curve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    left, right = curve.delta(low), curve.delta(high)
    assert right <= left + 1e-9
    assert curve.delta(math.log((exp(low) + exp(high)) / 2)) <= (left + right) / 2 + 1e-9
    assert max(0.0, 1 - exp(low)) <= left <= 1


@settings(max_examples=60, deadline=None)
@given(LEAKY, st.floats(0.01, 6), st.floats(0.001, 0.999))
def test_no_test_beats_the_profile(curve: Curve, epsilon: float, alpha: float) -> None:
    """Weak duality at any pair of points."""
    assert curve.f(alpha) >= 1 - curve.delta(epsilon) - exp(epsilon) * alpha - 1e-9
    assert curve.f(alpha) >= exp(-epsilon) * (1 - curve.delta(epsilon) - alpha) - 1e-9


@settings(max_examples=40, deadline=None)
@given(LEAKY, st.floats(0.01, 4))
def test_epsilon_undoes_delta(curve: Curve, epsilon: float) -> None:
    delta = curve.delta(epsilon)
    again = curve.epsilon(min(delta, 1.0))
    assert again <= epsilon * (1 + 1e-8) + 1e-9
    assert curve.delta(again) <= delta * (1 + 1e-9)
    if delta > curve.mass_at_infinity + 1e-6:
        assert again == pytest.approx(epsilon, rel=1e-4, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(PRODUCTS)
def test_files_and_copies_to_the_bit(curve: Curve) -> None:
    text = json.dumps(curve.to_dict())
    again = curve_from_dict(json.loads(text))
    assert again == curve == pickle.loads(pickle.dumps(curve))
    assert hash(again) == hash(curve)
    assert json.dumps(again.to_dict()) == text
    assert repr(again) == repr(curve)


@settings(max_examples=40, deadline=None)
@given(LEAKY, LEAKY, LEAKY)
def test_composition_does_not_depend_on_the_order(one: Curve, two: Curve, three: Curve) -> None:
    assert one.compose(two) == two.compose(one)
    assert perfect().compose(one) == one.compose(perfect()) == one
    left, right = one.compose(two).compose(three), one.compose(two.compose(three))
    # equal but for the last digits of closed forms that are rounded up at each step
    assert type(left) is type(right)
    assert left.mass_at_infinity == pytest.approx(right.mass_at_infinity, rel=1e-12, abs=1e-15)


@settings(max_examples=15, deadline=None)
@given(st.one_of(LEVELS.map(laplace), LEVELS.map(approx_dp)), st.integers(1, 4), st.integers(1, 4))
def test_powers_multiply(curve: Curve, k: int, times: int) -> None:
    assert curve.power(k).power(times) == curve.power(k * times)
    assert curve.power(k).compose(curve.power(times)) == curve.power(k + times)


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.lists(LEAKY, min_size=2, max_size=3), st.floats(0.0, 4.0))
def test_a_product_is_between_its_parts_and_basic_composition(parts: list[Curve], epsilon: float) -> None:
    product = parts[0]
    for part in parts[1:]:
        product = product.compose(part)
    delta = product.delta(epsilon)
    assert all(delta >= part.delta(epsilon) * (1 - 1e-6) - 1e-9 for part in parts)
    shared = sum(part.delta(epsilon / len(parts)) for part in parts)
    assert delta <= shared * (1 + 1e-6) + 1e-9


def test_many_gaussians_stay_one() -> None:
    levels_of = np.linspace(0.001, 0.1, 1000)
    curve = quick(2.0, lambda: reduce(Curve.compose, (gaussian(float(mu)) for mu in levels_of), perfect()))
    assert not isinstance(curve, Composed)
    exact = math.sqrt(math.fsum(float(mu) ** 2 for mu in levels_of))
    assert exact * (1 - 1e-15) <= curve.gdp() <= exact * (1 + 1e-12)


def test_levels_are_in_order_and_use_the_largest_ratios() -> None:
    found = levels([3.0, 1.0, 4.0], [1.0, 1.0, 2.0], k=2, zeta=0.1)
    assert list(found) == ["attribute", "2 attributes", "record"]
    for curve, c in zip(found.values(), (3.0, math.sqrt(13), math.sqrt(14)), strict=True):
        assert curve.delta(1.0) == pytest.approx(zero_inflated(0.1, symmetric_laplace(3, c)).delta(1.0), rel=1e-9)


def test_curves_fall_with_shift_dimension_and_inflation() -> None:
    alphas = np.linspace(0.01, 0.99, 15)
    by_shift = [symmetric_laplace(5, c).f(alphas) for c in (0.2, 0.8, 3.0)]
    by_dimension = [symmetric_laplace(d, 0.8).f(alphas) for d in (1, 2, 4, 20, inf)]
    by_share = [zero_inflated(z, laplace(0.8)).f(alphas) if z else laplace(0.8).f(alphas) for z in (0.0, 0.05, 0.4)]
    for rows in (by_shift, by_dimension, by_share):
        for upper, lower in pairwise(rows):
            assert (upper >= lower - 1e-9).all()


@pytest.mark.long
def test_largest_gaps_to_the_limit() -> None:
    """sup over alpha of T_{d, 1/2} - T_{inf, 1/2}, known to four digits."""
    alphas = np.geomspace(0.002, 0.4, 60)
    limit = symmetric_laplace(inf, 0.5).f(alphas)
    for d, gap in ((2, 0.0912), (4, 0.0516), (6, 0.0351)):
        assert np.max(symmetric_laplace(d, 0.5).f(alphas) - limit) == pytest.approx(gap, abs=2e-4)


def test_curves_rounded_to_nothing_can_be_read_back() -> None:
    for curve in (from_guarantee(GDP(1.0, 0.5)).power(2), zero_inflated(0.1, gaussian(0.01)).power(1000)):
        assert curve.mass_at_infinity == 1.0
        assert curve.delta(3.0) == 1.0
        assert curve.f(0.3) == 0.0
        assert curve_from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


def test_very_many_leaks_are_quick_and_rounded_up() -> None:
    leak = quick(1.0, lambda: approx_dp(0.01, 1e-9).power(100_000).mass_at_infinity)
    assert -math.expm1(1e5 * math.log1p(-1e-9)) <= leak <= 1e-4


@pytest.mark.parametrize(
    "damaged",
    [
        {"curve": "perfect", "note": "more"},
        {"curve": "composed", "parts": [[laplace(1.0).to_dict(), 2.7]]},
        {"curve": "composed", "parts": [[laplace(1.0).to_dict(), True]]},
        {"curve": "composed", "parts": [[gaussian(1.0).to_dict(), 2]]},
        {"curve": "zero_inflated", "zeta": "0x1.8p+0", "base": perfect().to_dict()},
        {"curve": "relaxed", "slack": "nan", "base": perfect().to_dict()},
        {"curve": "symmetric_laplace", "d": "0x1.8p+0", "c": "0x1p+0"},
        {"curve": "renyi", "orders": None, "bounds": [(0.1).hex(), (0.2).hex()]},
        {"curve": "laplace", "epsilon": 1.0},
    ],
    ids=str,
)
def test_files_that_to_dict_never_wrote(damaged: dict[str, object]) -> None:
    with refuses(PrivacyError):
        curve_from_dict(damaged)


def test_a_bound_by_orders_keeps_its_ends() -> None:
    curve = from_guarantee(ZCDP(0.5))
    for alpha in (1e-7, 1e-3, 0.1):
        # its mirror image stands on the same line of slope -1
        assert curve.f(1 - alpha) > 0
        assert curve.f(curve.f(alpha)) == pytest.approx(alpha, rel=1e-3, abs=1e-9)


BAD = [-1.0, 0.0, math.nan, inf, True, "1", None, [1.0]]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_impossible_numbers_have_typed_errors(value: object) -> None:
    calls = [
        lambda: symmetric_laplace(3, value),  # type: ignore[arg-type]
        lambda: calibrate_symmetric_laplace(value, 0.1, 3),  # type: ignore[arg-type]
        lambda: calibrate_symmetric_laplace(1.0, value, 3),  # type: ignore[arg-type]
        lambda: levels([1.0], [value]),  # type: ignore[list-item]
        lambda: levels([1.0], [1.0], k=value if value is not None else 1.5),  # type: ignore[arg-type]
        lambda: levels(value if value != [1.0] else "1", [1.0]),  # type: ignore[arg-type]
        lambda: laplace(1.0).power(value),  # type: ignore[arg-type]
    ]
    if value != 0:
        calls += [
            lambda: calibrate_symmetric_laplace(1.0, 0.1, 3, zeta=value),  # type: ignore[arg-type]
            lambda: zero_inflated(value, laplace(1.0)),  # type: ignore[arg-type]
            lambda: approx_dp(1.0, value),  # type: ignore[arg-type]
            lambda: laplace(1.0).gdp(value),  # type: ignore[arg-type]
        ]
    for call in calls:
        with pytest.raises(ConfideError) as caught:
            call()
        assert isinstance(caught.value, PrivacyError)
        assert len(str(caught.value)) > 20


@pytest.mark.parametrize("d", [0, -2, 1.5, True, "3", None, math.nan, -inf])
def test_impossible_dimensions_of_a_calibration(d: object) -> None:
    with pytest.raises(PrivacyError):
        calibrate_symmetric_laplace(1.0, 0.1, d)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "curve",
    [
        symmetric_laplace(3, 0.5),
        symmetric_laplace(inf, 0.5),
        symmetric_laplace(3, 0.5).compose(gaussian(1.0)),
        zero_inflated(0.05, gaussian(1.0)),
        from_guarantee(ZCDP(0.5)),
        from_guarantee(GDP(1.0, 1e-3)),
    ],
    ids=repr,
)
def test_no_pure_mu_where_none_exists(curve: Curve) -> None:
    with refuses(NoConversion) as caught:
        curve.gdp()
    assert "gdp(" in str(caught.value)
    assert "TradeOff" in str(caught.value)


@pytest.mark.long
def test_products_of_light_tails_have_a_mu() -> None:
    parts = (symmetric_laplace(2, 0.5), laplace(0.5), gaussian(0.5), approx_dp(0.5))
    product = parts[0]
    for part in parts[1:]:
        product = product.compose(part)
    assert product.gdp() == pytest.approx(math.sqrt(sum(part.gdp() ** 2 for part in parts)), rel=1e-12)
    assert product.gdp(1e-9) <= product.gdp() * (1 + 1e-3)


def test_curves_compose_as_they_print():
    assert gaussian(3.0) * gaussian(4.0) == gaussian(5.0)
    assert laplace(0.5) ** 3 == laplace(0.5).power(3)
    assert repr(gaussian(1.0) * laplace(0.5) ** 2) == "gaussian(1.0) * laplace(0.5) ** 2"
