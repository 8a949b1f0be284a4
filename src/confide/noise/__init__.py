"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from __future__ import annotations

from confide.noise.sources import SecureNoise, SimulatedNoise, keyed_generator
from confide.noise.variances import discrete_gaussian_variance, discrete_laplace_variance, laplace_variance, variance

__all__ = [
    "SecureNoise",
    "SimulatedNoise",
    "discrete_gaussian_variance",
    "discrete_laplace_variance",
    "keyed_generator",
    "laplace_variance",
    "variance",
]
