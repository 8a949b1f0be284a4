"""Shrunken solutions of noisy normal equations, and the amount of shrinkage chosen from the noisy numbers themselves.

A and b are noisy second moments whose noise has a known law: Sym(SA) on A (variance SA^2 on the diagonal, SA^2/2 off it), N(0, Sb^2 I) on
b. The solution with prior delta ~ N(0, tau^2 I) weighs each eigendirection by its signal against its noise (a Wiener filter). tau^2 is
chosen by splitting the noise (fission): A1 = A + f E and A2 = A - E/f with fresh noise E of the same law are independent, so that a
solution from the first may be scored on the second. All of it is post-processing. Sources: Wiener 1949; Leiner, Duan, Wasserman, Ramdas
2023 (data fission).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["NoisySystem", "choose_prior", "symmetric_noise", "wiener"]

Array = NDArray[np.float64]

# How unequally noise is split: the solving copy gets noise 1 + f^2, the scoring one 1 + 1/f^2 times the original.
_SPLIT = 0.7
_DRAWS = 8
_PRIORS = tuple(4.0**k for k in range(-9, 3))
# |delta|^2 that the noise of A is multiplied with is bounded: a wild intermediate solution must not switch shrinkage off
_LARGEST = 4.0


@dataclass(frozen=True, eq=False)
class NoisySystem:
    """A (p, p), b (p,), their noise sds, the residual variance s2, and whether axis 0 is fitted without shrinkage."""

    gram: Array
    cross: Array
    sd_gram: float
    sd_cross: float
    s2: float
    free: bool = False


def wiener(system: NoisySystem, prior: float, repeats: int = 4) -> tuple[Array, float]:
    """(delta, degrees of freedom) for a prior variance; harmless where eigenvalues of A are negative."""
    solutions, freedom = _solutions(system, (prior,), repeats)
    return solutions[0], float(freedom[0])


def _solutions(system: NoisySystem, priors: tuple[float, ...], repeats: int) -> tuple[Array, Array]:
    """The filter for each prior, shape (priors, p), and its degrees of freedom, with one eigendecomposition.

    A free axis is fitted out first.
    """
    gram, cross = system.gram, system.cross
    if system.free and gram[0, 0] > 0:
        row = gram[1:, 0] / gram[0, 0]
        inner = replace(
            system, gram=gram[1:, 1:] - np.outer(row, gram[0, 1:]), cross=cross[1:] - row * cross[0], free=False
        )
        slopes, freedom = _solutions(inner, priors, repeats)
        heights = [(cross[0] - gram[0, 1:] @ slope) / gram[0, 0] for slope in slopes]
        return np.column_stack([heights, slopes]), freedom + 1
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    found, freedom = _filtered(values, vectors.T @ cross, system, np.array(priors), repeats)
    return (vectors @ found[:, :, None])[:, :, 0], freedom


def _filtered(values: Array, seen: Array, system: NoisySystem, priors: Array, repeats: int) -> tuple[Array, Array]:
    """The filter in the eigenbasis of A; the noise of A enters through |delta|^2, hence the repeats."""
    size = np.zeros(len(priors))
    m = max(len(seen), 1)
    signal = system.s2 * np.maximum(values, 0.0) + system.sd_cross**2
    square, product = values**2, values * seen
    for _ in range(repeats):
        variance = signal + (system.sd_gram**2 / 2 * size * (1 + 1 / m))[:, None]
        below = square + variance / priors[:, None]
        solution = product / below
        size = np.minimum((solution[:, None, :] @ solution[:, :, None]).ravel(), _LARGEST)
    return solution, (square / below).sum(axis=1)


def choose_prior(system: NoisySystem, generator: np.random.Generator, priors: tuple[float, ...] = _PRIORS) -> float:
    """The prior variance, of those given, whose solution predicts best on the other part of the split noise.

    Loss: delta'A2 delta - 2 delta'b2 + 2 s2 f, summed over 8 splits; f, the degrees of freedom, stands for fitting the records twice.
    """
    loss = np.zeros(len(priors))
    wider = sqrt(1 + _SPLIT**2)
    for _ in range(_DRAWS):
        gram_noise = symmetric_noise(len(system.cross), system.sd_gram, generator)
        cross_noise = generator.normal(0.0, system.sd_cross, len(system.cross))
        solving = replace(
            system,
            gram=system.gram + _SPLIT * gram_noise,
            cross=system.cross + _SPLIT * cross_noise,
            sd_gram=wider * system.sd_gram,
            sd_cross=wider * system.sd_cross,
        )
        gram, cross = system.gram - gram_noise / _SPLIT, system.cross - cross_noise / _SPLIT
        solutions, freedom = _solutions(solving, priors, 2)
        loss += ((solutions @ gram) * solutions).sum(axis=1) - 2 * solutions @ cross + 2 * system.s2 * freedom
    return priors[int(np.argmin(loss))]


def symmetric_noise(p: int, sd: float, generator: np.random.Generator) -> Array:
    """Sym(sd): symmetric Gaussian, variance sd^2 on the diagonal and sd^2/2 on each off-diagonal pair, shape (p, p)."""
    half = generator.normal(0.0, sd / 2, (p, p))
    return np.asarray(half + half.T)
