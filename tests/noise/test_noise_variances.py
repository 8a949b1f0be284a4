"""The variances against sums at 50 digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from confide.noise import discrete_gaussian_variance, discrete_laplace_variance, laplace_variance, variance

SCALES = [0.1, 0.3, 0.45, 0.4999, 0.5, 0.6, 0.9999, 1.0, 1.7, 3.0, 10.0, 33.3]


def by_sum(weight: object, scale: float, reach: int) -> mpmath.mpf:
    """sum of k^2 P(k) over the integers, P(k) = weight(k) / sum of weight."""
    weights = [weight(k) for k in range(reach)]  # type: ignore[operator]
    total = weights[0] + 2 * sum(weights[1:])
    return 2 * sum(k * k * w for k, w in enumerate(weights)) / total


@pytest.mark.parametrize("scale", SCALES)
def test_variances_are_those_of_the_laws(scale: float) -> None:
    with mpmath.workdps(50):
        s = mpmath.mpf(scale)
        root, half = s * mpmath.sqrt(2), mpmath.mpf(1) / 2

        def rounded_gaussian(k: int) -> mpmath.mpf:
            return (mpmath.erfc((k - half) / root) - mpmath.erfc((k + half) / root)) / 2

        def rounded_laplace(k: int) -> mpmath.mpf:
            return mpmath.exp(-k / s) * mpmath.sinh(half / s) if k else 1 - mpmath.exp(-half / s)

        gaussian_reach, laplace_reach = int(16 * scale) + 16, int(120 * scale) + 30
        expected = {
            variance(Fraction(scale) ** 2): by_sum(rounded_gaussian, scale, gaussian_reach),
            laplace_variance(scale): by_sum(rounded_laplace, scale, laplace_reach),
            discrete_gaussian_variance(Fraction(scale) ** 2): by_sum(
                lambda k: mpmath.exp(-(k * k) / (2 * s * s)), scale, gaussian_reach
            ),
            discrete_laplace_variance(scale): by_sum(lambda k: mpmath.exp(-k / s), scale, laplace_reach),
        }
        for found, exact in expected.items():
            assert abs(found / exact - 1) < 1e-12
        values = list(expected)
        assert abs(values[0] / values[2] - 1) > 1e-5  # the laws differ


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9, 1e15])
def test_variances_at_large_scales(scale: float) -> None:
    s2 = Fraction(scale) ** 2
    assert variance(s2) == float(s2 + Fraction(1, 12))
    assert discrete_gaussian_variance(s2) == float(s2)
    with mpmath.workdps(60):
        s = mpmath.mpf(scale)
        q = mpmath.exp(-1 / s)
        x = 1 / (2 * s)
        assert abs(discrete_laplace_variance(scale) / (2 * q / (1 - q) ** 2) - 1) < 1e-12
        assert abs(laplace_variance(scale) / (mpmath.cosh(x) / (2 * mpmath.sinh(x) ** 2)) - 1) < 1e-12


def test_variances_at_the_ends() -> None:
    tiny = Fraction(1, 10**400)
    for function in (variance, laplace_variance, discrete_gaussian_variance, discrete_laplace_variance):
        assert function(tiny) == 0.0
        assert function(np.float64(3.0)) > 0
    assert variance(10**30) == 1e30
    assert abs(variance(1) - (1 + 1 / 12)) < 2e-8
    assert variance(1) != 1 + 1 / 12
    assert 0 < 1 - discrete_gaussian_variance(1) < 3e-7


@pytest.mark.parametrize("function", [variance, discrete_gaussian_variance])
def test_the_two_forms_meet(function: object) -> None:
    """Either side of the scale at which one form gives way to the other."""
    for border in (Fraction(1, 4), Fraction(1)):
        below, above = (function(border * (1 + sign * Fraction(1, 10**14))) for sign in (-1, 1))  # type: ignore[operator]
        assert abs(below / above - 1) < 1e-12
