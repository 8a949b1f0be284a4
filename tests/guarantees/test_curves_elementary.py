"""Closed forms against direct tests of the two laws; safe sides; composition rules; files; pictures; notation; refusals."""

from __future__ import annotations

import math
from itertools import pairwise
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests.few import few
from tests.messages import refuses

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, parse_curve
from confide.guarantees.conversion import from_guarantee
from confide.guarantees.curves import (
    Curve,
    RenyiBound,
    approx_dp,
    curve_from_dict,
    gaussian,
    laplace,
    perfect,
    plot_curves,
    symmetric_laplace,
    zero_inflated,
)
from confide.guarantees.mechanisms.classical import leak_delta, pure_mu
from confide.guarantees.mechanisms.gaussian import gaussian_delta

CURVES = [
    perfect(),
    gaussian(1.0),
    laplace(0.7),
    approx_dp(0.7),
    approx_dp(0.7, 0.01),
    from_guarantee(GDP(1.0, 1e-3)),
    from_guarantee(ZCDP(0.3)),
    from_guarantee(RDP((2.0, 4.0, 8.0), (0.3, 0.6, 1.2))),
    symmetric_laplace(1, 0.5),
    symmetric_laplace(3, 0.5),
    symmetric_laplace(inf, 0.5),
    zero_inflated(0.05, symmetric_laplace(inf, 0.5)),
    laplace(0.3).power(5),
    gaussian(0.5).compose(laplace(0.5)),
]


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_what_every_curve_is(curve: Curve) -> None:
    alphas = np.linspace(0, 1, 26)
    beta = curve.f(alphas)
    assert beta[-1] == 0
    assert (beta <= 1 - alphas + 1e-12).all()
    assert (np.diff(beta) <= 1e-12).all()
    # what orders prove is a bound on a curve and need not be convex itself
    convex = not isinstance(curve, RenyiBound)
    assert (np.diff(beta, 2) >= -2e-6).all()
    x = np.linspace(0.2, 4, 39)
    delta = curve.delta(np.log(x))
    assert (np.diff(delta) <= 1e-12).all()
    assert not convex or (np.diff(delta, 2) >= -2e-6).all()
    assert delta.min() >= curve.mass_at_infinity - 1e-12
    assert curve.f(0.0) == pytest.approx(1 - curve.mass_at_infinity)


@pytest.mark.parametrize("curve", few(CURVES, 0, 3), ids=repr)
def test_the_two_faces_agree(curve: Curve) -> None:
    """delta from f by duality is never above the stated delta, and near it where alpha is fine enough."""
    alphas = np.sort(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-5, 0.01, 20)]))
    beta = curve.f(alphas)
    for epsilon in (-0.5, 0.0, 0.4, 1.0):
        if isinstance(curve, RenyiBound):
            assert np.max(1 - beta - exp(epsilon) * alphas) <= curve.delta(epsilon) + 0.012
            continue
        dual = np.max(1 - beta - exp(epsilon) * alphas)
        # f is a lower bound, so its delta is an upper bound, up to the grid of alphas
        assert dual == pytest.approx(curve.delta(epsilon), abs=0.012)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_epsilon_and_delta_are_inverse_and_safe(curve: Curve) -> None:
    for goal in (1e-6, 1e-3, 0.05, 0.3):
        epsilon = curve.epsilon(goal)
        if epsilon == inf:
            assert curve.mass_at_infinity >= goal
            continue
        assert curve.delta(epsilon) <= goal * (1 + 1e-9)
        if epsilon > 1e-6:
            assert curve.delta(epsilon * (1 - 1e-3) - 1e-4) > goal * (1 - 1e-6)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_files_read_back_to_the_bit(curve: Curve) -> None:
    again = curve_from_dict(curve.to_dict())
    assert again == curve
    assert hash(again) == hash(curve)
    assert again.to_dict() == curve.to_dict()


@pytest.mark.parametrize(
    "data", [{}, {"curve": "guess"}, {"curve": "gaussian"}, {"curve": "gaussian", "mu": "-0x1p+0"}, None, 3]
)
def test_damaged_files_are_refused(data: object) -> None:
    with pytest.raises(PrivacyError):
        curve_from_dict(data)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05, 5), st.floats(0.001, 0.999))
def test_closed_forms_of_f(level: float, alpha: float) -> None:
    normal = stats.norm.cdf(stats.norm.isf(alpha) - level)
    assert gaussian(level).f(alpha) == pytest.approx(normal, rel=1e-9, abs=1e-15)
    # Laplace(0, 1) against Laplace(level, 1): reject above t
    t = stats.laplace.isf(alpha)
    assert laplace(level).f(alpha) == pytest.approx(stats.laplace.cdf(t - level), rel=1e-9)
    assert approx_dp(level).f(alpha) == pytest.approx(max(1 - exp(level) * alpha, exp(-level) * (1 - alpha)), rel=1e-9)
    assert approx_dp(level).f(alpha) <= laplace(level).f(alpha) + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 6), st.floats(0, 8), st.floats(0, 0.4))
def test_closed_forms_of_delta(level: float, epsilon: float, leak: float) -> None:
    assert gaussian(level).delta(epsilon) == pytest.approx(gaussian_delta(epsilon, level), rel=1e-9, abs=1e-300)
    assert approx_dp(level, leak).delta(epsilon) == pytest.approx(leak_delta(level, leak, epsilon), rel=1e-9, abs=1e-15)
    assert zero_inflated(leak, laplace(level)).delta(epsilon) == pytest.approx(
        1 - (1 - leak) * (1 - laplace(level).delta(epsilon)), rel=1e-10, abs=1e-12
    )


def test_dominance_orderings() -> None:
    epsilons = np.linspace(0, 6, 61)
    for weaker, stronger in (
        (gaussian(pure_mu(1.0)), approx_dp(1.0)),
        (approx_dp(1.0), laplace(1.0)),
        (from_guarantee(ZCDP(0.5)), gaussian(1.0)),
        (symmetric_laplace(6, 0.5), symmetric_laplace(3, 0.5)),
        (from_guarantee(GDP(1.0, 1e-3)), gaussian(1.0)),
        (laplace(0.5), laplace(0.4)),
    ):
        assert (weaker.delta(epsilons) >= stronger.delta(epsilons) - 1e-9).all(), (weaker, stronger)


def test_mu_of_the_curves_that_have_one() -> None:
    assert gaussian(1.3).gdp() == 1.3
    assert approx_dp(1.0).gdp() == pytest.approx(pure_mu(1.0), rel=1e-9)
    # (1 - delta) of the pure part: a little less than the pure part alone
    assert pure_mu(1 - 0.02) < approx_dp(1.0, 0.01).gdp(0.01) < pure_mu(1.0)
    assert from_guarantee(GDP(1.0, 1e-3)).gdp(1e-3) == 1.0
    # the Laplace mechanism costs less than the randomised response that its epsilon allows
    assert laplace(1.0).gdp() == pytest.approx(2 * stats.norm.ppf((1 + laplace(1.0).delta(0.0)) / 2), rel=2e-3)
    epsilons = np.linspace(0, 3, 301)
    for curve, leak in ((laplace(1.0), 0.0), (laplace(1.0), 1e-3), (approx_dp(1.0), 0.02), (gaussian(1.0), 1e-4)):
        mu = curve.gdp(leak)
        assert (curve.delta(epsilons) <= gaussian(mu).delta(epsilons) + leak + 1e-12).all()
    with pytest.raises(NoConversion):
        from_guarantee(ZCDP(0.5)).gdp()
    with pytest.raises(NoConversion):
        approx_dp(1.0, 0.01).gdp(0.001)


def test_composition_in_closed_form() -> None:
    assert gaussian(0.1).power(1000) == gaussian(gaussian(0.1).power(1000).mu)  # type: ignore[attr-defined]
    assert gaussian(0.1).power(1000).mu == pytest.approx(math.sqrt(10))  # type: ignore[attr-defined]
    assert perfect().power(7) == perfect()
    assert perfect().compose(laplace(1.0)) == laplace(1.0)
    assert from_guarantee(ZCDP(0.1)).power(3).delta(2.0) == pytest.approx(from_guarantee(ZCDP(0.3)).delta(2.0))
    relaxed = from_guarantee(GDP(3.0, 1e-3)).compose(from_guarantee(GDP(4.0, 1e-3)))
    assert relaxed == from_guarantee(GDP(5.0, 2e-3))
    both = approx_dp(0.5, 0.01).compose(approx_dp(0.5, 0.02))
    assert both.mass_at_infinity == pytest.approx(1 - 0.99 * 0.98)
    one, other = laplace(0.5).compose(gaussian(1.0)), gaussian(1.0).compose(laplace(0.5))
    assert one == other
    assert one.compose(laplace(0.5)) == gaussian(1.0).compose(laplace(0.5).power(2))


def test_composition_is_an_upper_bound_and_near_the_truth() -> None:
    """Two randomised responses exactly: losses 2e, 0, -2e."""
    e = 0.6
    truth = approx_dp(e).power(2)
    p = exp(e) / (1 + exp(e))
    for epsilon in (0.0, 0.3, 0.9, 1.1):
        exact = p * p - exp(epsilon) * (1 - p) ** 2 + 2 * max(0.0, p * (1 - p) * (1 - exp(epsilon)))
        assert exact <= truth.delta(epsilon) <= exact + 1e-6
    assert truth.epsilon(0.0) <= 2 * e * (1 + 1e-9)
    # a numeric Gaussian, composed with next to nothing, stays above the closed form
    near = gaussian(1.0).compose(laplace(1e-3))
    for epsilon in (0.0, 1.0, 3.0):
        assert gaussian(1.0).delta(epsilon) <= near.delta(epsilon) <= gaussian(1.0).delta(epsilon) * 1.01 + 1e-6


def test_monte_carlo_of_a_mixture() -> None:
    """Laplace(1) and Gaussian(1) together at 4e5 draws, six standard errors."""
    generator, size = np.random.default_rng(5), 400_000
    normal = generator.standard_normal(size) + 1.0
    double = generator.laplace(size=size) + 1.0
    loss = normal - 0.5 + np.abs(double) - np.abs(double - 1.0)
    curve = gaussian(1.0).compose(laplace(1.0))
    for epsilon in (0.0, 1.0, 2.5):
        gains = np.maximum(-np.expm1(epsilon - loss), 0.0)
        assert curve.delta(epsilon) == pytest.approx(gains.mean(), abs=6 * gains.std() / math.sqrt(size))


@pytest.mark.parametrize(
    "guarantee", [PureDP(1.0), ApproxDP(1.0, 1e-3), GDP(1.0), GDP(1.0, 1e-3), ZCDP(0.5), RDP((2.0, 4.0), (0.5, 1.0))]
)
def test_curves_state_no_more_than_their_guarantee(guarantee: Guarantee) -> None:
    curve = from_guarantee(guarantee)
    for delta in (2e-3, 0.1):
        assert curve.epsilon(delta) <= guarantee.to_approx(delta=delta).epsilon * (1 + 1e-9)
        assert curve.epsilon(delta) >= guarantee.to_approx(delta=delta).epsilon * (1 - 1e-6) - 1e-9


@pytest.mark.parametrize(
    ("text", "curve"),
    [
        ("GDP(1)", gaussian(1.0)),
        (" GDP(1, delta=1e-3) ", from_guarantee(GDP(1.0, 1e-3))),
        ("laplace(0.1) ** 3", laplace(0.1).power(3)),
        ("gaussian(3) * GDP(4)", gaussian(5.0)),
        ("zero_inflated(0.05, symmetric_laplace(inf, .5))", zero_inflated(0.05, symmetric_laplace(inf, 0.5))),
        ("RDP([2, 4], [0.5, 1])", from_guarantee(RDP((2.0, 4.0), (0.5, 1.0)))),
        ("PureDP(1)", approx_dp(1.0)),
    ],
)
def test_notation(text: str, curve: Curve) -> None:
    assert parse_curve(text) == curve


@pytest.mark.parametrize("curve", [c for c in CURVES if "relaxed" not in repr(c)], ids=repr)
def test_a_curve_prints_as_what_makes_it(curve: Curve) -> None:
    assert parse_curve(repr(curve)) == curve


@pytest.mark.parametrize(
    "text",
    ["", "1", "GDP", "GDP(1", "GDP()", "GDP(1, 2, 3)", "__import__('os')", "gaussian(1) + laplace(1)", "laplace(1) ** 0",
     "laplace(1) ** 1.5", "laplace(True)", "laplace('1')", "guess(1)", "GDP(-1)", "laplace(inf)", "2 * laplace(1)"],
)  # fmt: skip
def test_bad_notation_is_refused_with_examples(text: str) -> None:
    with pytest.raises(PrivacyError):
        parse_curve(text)


@pytest.mark.parametrize("value", [0, -1, math.nan, inf, True, "1", None, 1j])
def test_impossible_levels(value: object) -> None:
    for make in (gaussian, laplace, approx_dp):
        with refuses(PrivacyError):
            make(value)  # type: ignore[operator]


def test_impossible_arguments() -> None:
    curve = laplace(1.0)
    for call in (
        lambda: curve.f(1.5),
        lambda: curve.f(-0.1),
        lambda: curve.f(math.nan),
        lambda: curve.f("a"),
        lambda: curve.delta(math.nan),
        lambda: curve.delta(inf),
        lambda: curve.delta(True),
        lambda: curve.epsilon(-1e-3),
        lambda: curve.epsilon(1.5),
        lambda: curve.gdp(1.0),
        lambda: curve.power(0),
        lambda: curve.power(2.5),  # type: ignore[arg-type]
        lambda: curve.compose(1.0),  # type: ignore[arg-type]
        lambda: zero_inflated(1.0, curve),
        lambda: zero_inflated(0.1, 1.0),  # type: ignore[arg-type]
        lambda: approx_dp(1.0, 1.0),
        lambda: plot_curves({}),
        lambda: plot_curves({"a": curve}, kind="pie"),
        lambda: from_guarantee(1.0),  # type: ignore[arg-type]
    ):
        with refuses(PrivacyError):
            call()


def test_mirrored_profile() -> None:
    for curve in CURVES:
        for epsilon in (0.1, 1.0, 3.0):
            assert curve.delta(-epsilon) == pytest.approx(1 - exp(-epsilon) * (1 - curve.delta(epsilon)), abs=1e-12)
    assert all(a <= b + 1e-12 for a, b in pairwise(laplace(1.0).delta(np.linspace(3, -3, 50))))


@pytest.mark.parametrize("kind", ["tradeoff", "profile"])
def test_pictures(kind: str, tmp_path: object) -> None:
    figure = plot_curves({"GDP(1)": gaussian(1.0), "Laplace": laplace(1.0), "bare": approx_dp(1.0, 0.01)}, kind=kind)
    (ax,) = figure.axes
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-3:] == ["GDP(1)", "Laplace", "bare"]
    assert ax.get_xlabel() and ax.get_ylabel()
    figure.savefig(f"{tmp_path}/{kind}.png")
    assert gaussian(1.0).plot(kind=kind).axes
