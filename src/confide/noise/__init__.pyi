"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from confide.noise.integers import (
    discrete_gaussian_variance as discrete_gaussian_variance,
    discrete_laplace_variance as discrete_laplace_variance,
    laplace_variance as laplace_variance,
    variance as variance,
)
from confide.noise.sources import (
    SecureNoise as SecureNoise,
    SimulatedNoise as SimulatedNoise,
    keyed_generator as keyed_generator,
)
