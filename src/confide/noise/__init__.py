"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._helpers import names

if TYPE_CHECKING:
    from confide.noise.integers import discrete_gaussian_variance, discrete_laplace_variance, laplace_variance, variance
    from confide.noise.sources import SecureNoise, SimulatedNoise, keyed_generator
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "SecureNoise": "confide.noise.sources",
            "SimulatedNoise": "confide.noise.sources",
            "discrete_gaussian_variance": "confide.noise.integers",
            "discrete_laplace_variance": "confide.noise.integers",
            "keyed_generator": "confide.noise.sources",
            "laplace_variance": "confide.noise.integers",
            "variance": "confide.noise.integers",
        },
    )

__all__ = [
    "SecureNoise",
    "SimulatedNoise",
    "discrete_gaussian_variance",
    "discrete_laplace_variance",
    "keyed_generator",
    "laplace_variance",
    "variance",
]
