"""Intervals for a line that noise hides in part: a shrunken estimate, and a width for the worst bias that a bound on the slopes allows.

Where the noisy Gram matrix is not above its noise, the plain solution has no usable law. The shrunken one has a known bias,
(Sm A - I) psi for the unknown psi; over all lines with |theta_l| <= B the largest value of it is known, and is added to both ends.
Source: Armstrong, Kolesar 2018 (bias-aware intervals).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.normal_equations import Line, MiddleMatrix, NoisyMoments

__all__ = ["BiasAware", "bias_aware"]


@dataclass(frozen=True, eq=False)
class BiasAware:
    """Intervals centre +- (t quantile x se + bias), each (p,), widened to hold the shown estimates; df of the t law."""

    centre: Array
    se: Array
    bias: Array
    df: float
    bound: float

    def limits(self, quantile: float, estimates: Array) -> tuple[Array, Array]:
        """(low, high)."""
        half = quantile * self.se + self.bias
        return np.minimum(self.centre - half, estimates), np.maximum(self.centre + half, estimates)


def bias_aware(
    moments: NoisyMoments,
    reduced: Line,
    back: Array,
    start: Array,
    matrix: Array,
    shift: Array,
    meat: MiddleMatrix | None,
    s2: float,
    df: float,
    bound: float,
) -> BiasAware:
    """The intervals in the data's units.

    reduced: delta = offset + Q psi with orthonormal Q (p, k), psi = 0 at the line of the round before; back (k, k): psi = back
    (phi - start), phi the coefficients that `bound` is about, start (k,) those of that line; matrix, shift: units = matrix delta + shift;
    s2: residual variance of the round; df: residual degrees of freedom.
    """
    basis, offset = reduced.basis, reduced.offset
    gram = basis.T @ moments.gram @ basis
    cross = basis.T @ (moments.cross - moments.gram @ offset)
    forward = np.linalg.inv(back)  # phi - start = forward psi
    prior = bound**2 * len(gram) / float((forward**2).sum())
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    noise = s2 * np.maximum(values, 0.0) + moments.sd_cross**2
    shrink = (vectors * (values / (values**2 + noise / prior))) @ vectors.T
    delta = offset + basis @ (shrink @ cross)
    middle = s2 * _positive(moments.gram) if meat is None else meat.positive
    spread = basis @ shrink @ basis.T
    covariance = matrix @ spread @ (middle + moments.noise_covariance(delta)) @ spread @ matrix.T
    # psi^ - psi = (Sm A - I) psi with psi = back (phi - start), |phi_l - start_l| <= B + |start_l|
    transfer = matrix @ basis @ (np.eye(len(gram)) - shrink @ gram) @ back
    bias = np.abs(transfer) @ (bound + np.abs(start))
    return BiasAware(matrix @ delta + shift, np.sqrt(np.maximum(np.diag(covariance), 0.0)), bias, df, bound)


def _positive(gram: Array) -> Array:
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
