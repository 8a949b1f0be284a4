"""The two discrete laws from OpenDP's samplers: an independent implementation, for whoever prefers to trust that one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from confide.errors import PrivacyError
from confide.noise.laws import Scales

__all__ = ["OpenDPSamplers"]

ROOT_BITS = 1100  # beyond the smallest double


class OpenDPSamplers:
    """`discrete_gaussian` and `discrete_laplace` by OpenDP's measurements on 64-bit integers, released on zeros.

    OpenDP takes its scale as a double: ours is the smallest double that is no less, so the noise is never short of
    what the guarantee needs, and its scale too large by a relative 2^-52 at most. Its random bits are its own.
    Errors: PrivacyError when the package is not installed. Source: opendp.org, make_gaussian and make_laplace.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise PrivacyError(
                "backend='opendp' needs the package opendp, which is not installed: pip install 'confide[opendp]', or "
                "SecureNoise() for the samplers of confide."
            ) from None
        # The noise measurements are among those that OpenDP asks its users to enable.
        dp.enable_features("contrib")
        self._dp: Any = dp

    def discrete_gaussian(self, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        """P(k) proportional to e^(-k^2/(2 sigma2)); int64, shape (size,)."""
        return self._draw(self._dp.m.make_gaussian, self._dp.l2_distance(T="i64"), scales, size)

    def discrete_laplace(self, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        """P(k) proportional to e^(-|k|/scale); int64, shape (size,)."""
        return self._draw(self._dp.m.make_laplace, self._dp.l1_distance(T="i64"), scales, size)

    def _draw(self, make: Callable[..., Any], metric: Any, scales: Scales, size: int) -> npt.NDArray[np.int64]:
        domain = self._dp.vector_domain(self._dp.atom_domain(T="i64"))
        out = np.empty(size, dtype=np.int64)
        for number, value in enumerate(scales.values):
            which: Any = slice(None) if scales.index is None else np.flatnonzero(scales.index == number)
            measurement = make(domain, metric, scale=double_above(value, scales.squared))
            out[which] = measurement([0] * len(out[which])) if len(out[which]) else []
        return out


def double_above(value: Fraction, squared: bool) -> float:
    """The smallest double that is at least `value`, or at least its square root.

    >>> double_above(Fraction(9, 4), True), double_above(Fraction(1, 3), False) > Fraction(1, 3)
    (1.5, True)
    """
    if squared:
        scaled = -(-(value.numerator << 2 * ROOT_BITS) // value.denominator)
        value = Fraction(1 + math.isqrt(scaled - 1), 1 << ROOT_BITS)
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
