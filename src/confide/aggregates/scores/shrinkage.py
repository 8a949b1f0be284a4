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

from confide._arrays import Array

__all__ = ["NoisySystem", "choose_prior", "symmetric_noise", "wiener"]


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
    """The filter for each prior, shape (..., priors, p), and its degrees of freedom, with one eigendecomposition.

    A and b may be stacks, shapes (..., p, p) and (..., p). A free axis is fitted out first, where A is above 0 along it.
    """
    gram, cross = system.gram, system.cross
    above = gram[..., 0, 0] > 0 if system.free else np.array(False)
    if not above.all() and above.any():
        alone = [
            _solutions(replace(system, gram=a, cross=b), priors, repeats) for a, b in zip(gram, cross, strict=True)
        ]
        return np.array([found for found, _ in alone]), np.array([freedom for _, freedom in alone])
    if above.all():
        first, height = gram[..., 0, :1], cross[..., :1]
        row = gram[..., 1:, 0] / first
        inner = replace(
            system,
            gram=gram[..., 1:, 1:] - row[..., :, None] * gram[..., None, 0, 1:],
            cross=cross[..., 1:] - row * height,
            free=False,
        )
        slopes, freedom = _solutions(inner, priors, repeats)
        heights = (height - (slopes @ gram[..., 0, 1:, None])[..., 0]) / first
        return np.concatenate([heights[..., None], slopes], axis=-1), freedom + 1
    values, vectors = np.linalg.eigh((gram + np.swapaxes(gram, -1, -2)) / 2)
    seen = (np.swapaxes(vectors, -1, -2) @ cross[..., None])[..., 0]
    found, freedom = _filtered(values, seen, system, np.array(priors), repeats)
    return (vectors[..., None, :, :] @ found[..., None])[..., 0], freedom


def _filtered(values: Array, seen: Array, system: NoisySystem, priors: Array, repeats: int) -> tuple[Array, Array]:
    """The filter in the eigenbasis of A; the noise of A enters through |delta|^2, hence the repeats."""
    size = np.zeros((*seen.shape[:-1], len(priors)))
    m = max(seen.shape[-1], 1)
    signal = (system.s2 * np.maximum(values, 0.0) + system.sd_cross**2)[..., None, :]
    square, product = (values**2)[..., None, :], (values * seen)[..., None, :]
    for _ in range(repeats):
        variance = signal + (system.sd_gram**2 / 2 * size * (1 + 1 / m))[..., None]
        below = square + variance / priors[:, None]
        solution = product / below
        size = np.minimum((solution[..., None, :] @ solution[..., None])[..., 0, 0], _LARGEST)
    return solution, (square / below).sum(axis=-1)


def choose_prior(system: NoisySystem, generator: np.random.Generator, priors: tuple[float, ...] = _PRIORS) -> float:
    """The prior variance, of those given, whose solution predicts best on the other part of the split noise.

    Loss: delta'A2 delta - 2 delta'b2 + 2 s2 f, summed over 8 splits; f, the degrees of freedom, stands for fitting the records twice.
    """
    p = len(system.cross)
    noises = [
        (symmetric_noise(p, system.sd_gram, generator), generator.normal(0.0, system.sd_cross, p))
        for _ in range(_DRAWS)
    ]
    gram_noise, cross_noise = (np.array(each) for each in zip(*noises, strict=True))
    wider = sqrt(1 + _SPLIT**2)
    solving = replace(
        system,
        gram=system.gram + _SPLIT * gram_noise,
        cross=system.cross + _SPLIT * cross_noise,
        sd_gram=wider * system.sd_gram,
        sd_cross=wider * system.sd_cross,
    )
    gram, cross = system.gram - gram_noise / _SPLIT, system.cross - cross_noise / _SPLIT
    solutions, freedom = _solutions(solving, priors, 2)
    fitted = ((solutions @ gram) * solutions).sum(axis=-1) - 2 * (solutions @ cross[..., None])[..., 0]
    losses = fitted + 2 * system.s2 * freedom
    return priors[int(np.argmin(sum(losses, np.zeros(len(priors)))))]


def symmetric_noise(p: int, sd: float, generator: np.random.Generator) -> Array:
    """Sym(sd): symmetric Gaussian, variance sd^2 on the diagonal and sd^2/2 on each off-diagonal pair, shape (p, p)."""
    half = generator.normal(0.0, sd / 2, (p, p))
    return np.asarray(half + half.T)
