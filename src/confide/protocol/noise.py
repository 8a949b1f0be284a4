"""The randomness that a release is handed: exact laws on integers, from words that are secret or, in simulations, seeded."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Noise"]


class Noise(Protocol):
    """Exact samplers over a stream of random words; `simulated` marks everything that a seed has touched."""

    @property
    def simulated(self) -> bool: ...
    def rekey(self) -> None: ...
    def grid_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def discrete_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def grid_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]: ...
    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]: ...
    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]: ...
    def exponential_mechanism(
        self, scores: NDArray[Any], epsilon: Fraction, sensitivity: Fraction, lengths: NDArray[Any] | None = None
    ) -> int: ...
