"""What the DP bootstrap costs: the numeric curve of B noisy resamples, where its paper has mu-GDP in the limit of many.

A resample of n from n holds a record k ~ Bin(n, 1/n) times, none with probability p0. Given k >= 1 it moves the released mean as k records
do, mu_B = mu / sqrt((2 - 2/e) B) for one. So one resample has, against a neighbour with that record replaced, the mixture over k of

    N(0, 1)   against   p0 N(0, 1) + (1 - p0) N(k mu_B, 1),

in both orders (Wang, Cheng, Awan 2022, subsampling operator). With delta_k the profile of k mu_B-GDP,

    one order:    (1 - p0) delta_k(log((e^epsilon - p0) / (1 - p0))),
    the other:    (1 - p0 e^epsilon) delta_k(log((1 - p0) e^epsilon / (1 - p0 e^epsilon))),  0 from epsilon = -log p0 on.

Replacing a record is symmetric, so that the larger of the two, at each epsilon, bounds either order; B of them are composed numerically
(`PrivacyLoss`), which is never below the truth.
"""

from __future__ import annotations

from functools import lru_cache
from math import e, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from confide.guarantees.privacy_loss import PrivacyLoss

__all__ = ["bootstrap_cost"]

Array = NDArray[np.float64]

# Copies of a record beyond this many are less likely than 1e-30 and count as a loss without bound.
_COPIES = 28


@lru_cache(maxsize=8)
def bootstrap_cost(n: int, count: int, mu: float) -> PrivacyLoss:
    """The privacy loss of `count` noisy resamples of n records, with the noise that the paper states for mu-GDP.

    >>> from confide.guarantees.curves.factories import gaussian
    >>> round(bootstrap_cost(10_000, 20, 1.0).delta(4.0) / gaussian(1.0).delta(4.0))
    18
    """
    k = np.arange(1, _COPIES + 1)
    none = float(stats.binom.pmf(0, n, 1 / n))
    weights = stats.binom.pmf(k, n, 1 / n) / (1 - none)
    rest = float(stats.binom.sf(_COPIES, n, 1 / n))
    levels = k * (mu / sqrt((2 - 2 / e) * count))

    def delta(epsilon: Array) -> Array:
        first = np.log(np.exp(epsilon) - none) - np.log(1 - none)
        left = np.maximum(1 - none * np.exp(epsilon), 0.0)
        with np.errstate(divide="ignore"):
            second = np.minimum(np.log(1 - none) + epsilon - np.log(left), 600.0)
        found = np.zeros_like(epsilon)
        for weight, level in zip(weights, levels, strict=True):
            found += weight * np.maximum((1 - none) * _profile(first, level), left * _profile(second, level))
        return np.minimum(found + rest, 1.0)

    return PrivacyLoss.from_profile(delta).power(count)


def _profile(epsilon: Array, mu: float) -> Array:
    """delta of mu-GDP."""
    above = epsilon + special.log_ndtr(-epsilon / mu - mu / 2)
    return np.asarray(np.maximum(special.ndtr(-epsilon / mu + mu / 2) - np.exp(above), 0.0))
