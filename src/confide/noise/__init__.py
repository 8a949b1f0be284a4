"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confide._lazy import names

if TYPE_CHECKING:
    from confide.noise.keyed import keyed_generator
    from confide.noise.sources import SecureNoise, SimulatedNoise
    from confide.noise.variances import (
        discrete_gaussian_variance,
        discrete_laplace_variance,
        laplace_variance,
        variance,
    )
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "SecureNoise": "confide.noise.sources",
            "SimulatedNoise": "confide.noise.sources",
            "discrete_gaussian_variance": "confide.noise.variances",
            "discrete_laplace_variance": "confide.noise.variances",
            "keyed_generator": "confide.noise.keyed",
            "laplace_variance": "confide.noise.variances",
            "variance": "confide.noise.variances",
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
