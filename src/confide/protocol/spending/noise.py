"""The randomness that a release is handed: exact laws on integers, from words that are secret or, in simulations, seeded."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.errors import PrivacyError

__all__ = ["Noise"]


class Noise(Protocol):
    """Base of exact samplers over a stream of random words; `simulated` marks everything that a seed has touched.

    spawns: whether it has independent streams of its own by number (`spawn`), as seeded noise has.
    """

    spawns: ClassVar[bool] = False

    @property
    def simulated(self) -> bool: ...
    def rekey(self) -> None: ...
    def grid_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def discrete_gaussian(self, sigma2: Fraction, size: int) -> NDArray[np.int64]: ...
    def grid_laplace(self, scale: Fraction | Sequence[Fraction], size: int) -> NDArray[np.int64]: ...
    def grid_cauchy(self, scale: Fraction | Sequence[Fraction], size: int) -> NDArray[Any]: ...
    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]: ...
    def bernoulli(self, p: Fraction, size: int) -> NDArray[np.bool_]: ...
    def exponential_mechanism(
        self, scores: NDArray[Any], epsilon: Fraction, sensitivity: Fraction, lengths: NDArray[Any] | None = None
    ) -> int: ...

    def mark(self, name: str) -> None:
        """The name that the next draws are for: the meter says it. Override where draws are recorded."""
        return

    def spawn(self, key: int) -> Noise:
        """The independent stream of that number. Override where there are some, and say so in `spawns`."""
        raise PrivacyError(f"{type(self).__name__} has no streams of its own; take cf.noise.SimulatedNoise(seed)")
