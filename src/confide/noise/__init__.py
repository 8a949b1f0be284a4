"""Where randomness comes from: cryptographic words, exact samplers on them, and a seeded twin for studies."""

from __future__ import annotations

from confide.noise.laws import variance
from confide.noise.sources import SecureNoise, SimulatedNoise, keyed_generator

__all__ = ["SecureNoise", "SimulatedNoise", "keyed_generator", "variance"]
