"""The variance of each law, for inference."""

from __future__ import annotations

from confide.noise.laws import exact_scale, exact_variance
from confide.protocol.spending import laws as exactly

__all__ = ["discrete_gaussian_variance", "discrete_laplace_variance", "laplace_variance", "variance"]


def variance(sigma2: object) -> float:
    """The variance of N(0, sigma2) rounded to the nearest integer (`grid_gaussian`), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.grid_gaussian`.

    >>> round(variance(1), 9)
    1.083333322
    """
    return exactly.rounded_gaussian(exact_variance(sigma2))


def laplace_variance(scale: object) -> float:
    """The variance of a Laplace of this scale rounded to the nearest integer (`grid_laplace`), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.grid_laplace`.

    >>> round(laplace_variance(1), 6), round(laplace_variance(1000), 3)
    (2.076351, 2000000.083)
    """
    return exactly.rounded_laplace(exact_scale(scale))


def discrete_laplace_variance(scale: object) -> float:
    """The variance of the discrete Laplace, P(k) proportional to e^(-|k|/scale), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.discrete_laplace`.

    >>> round(discrete_laplace_variance(1), 6)
    1.841347
    """
    return exactly.discrete_laplace(exact_scale(scale))


def discrete_gaussian_variance(sigma2: object) -> float:
    """The variance of the discrete Gaussian, P(k) proportional to e^(-k^2 / (2 sigma2)), in squared grid steps.

    Errors: PrivacyError, as `SecureNoise.discrete_gaussian`.

    >>> round(discrete_gaussian_variance(1), 9)
    0.999999789
    """
    return exactly.discrete_gaussian(exact_variance(sigma2))
