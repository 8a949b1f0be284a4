"""The line of a release in the units of the data, from the last round's noisy moments: what the rows of a file are put on.

The plain solution A^{-1} b where the noisy Gram matrix stands above its noise, a shrunken one where it does not; without an intercept
among the lines through the origin. Post-processing: the draws of the shrunken one are keyed by the release.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.residual_rounds import Round, first_variance, last_round, shrunken
from confide.mechanisms.shrinkage import NoisySystem
from confide.noise import keyed_generator
from confide.protocol import Question, Release
from confide.schema import Design
from confide.synthesis.response import Line

__all__ = ["line_of_release"]

Array = NDArray[np.float64]


def line_of_release(release: Release, design: Design) -> tuple[Line, str]:
    """The line, coefficients in the order of the design's names, and its status: "ok", "weak" or "not_identified"."""
    done = last_round(design, release.statistics, release.public, str(release.charged.relation))
    offset, basis = _affine(done, design)
    gram, cross = basis.T @ done.gram @ basis, basis.T @ (done.cross - done.gram @ offset)
    smallest = float(np.linalg.eigvalsh((gram + gram.T) / 2)[0])
    status = "ok" if smallest >= done.sd_gram * sqrt(2 * len(cross)) else ("weak" if smallest > 0 else "not_identified")
    if status == "ok":
        delta, s2 = _plain(done, offset, basis, gram, cross)
    else:
        system = NoisySystem(gram, cross, done.sd_gram, done.sd_cross, first_variance(done))
        delta, s2 = shrunken(system, done, keyed_generator(release.sha256, Question().sha256), offset, basis)
    theta = done.frame.line + done.frame.rho * done.frame.matrix @ delta
    theta = theta if np.isfinite(theta).all() else done.frame.line
    half = (design.response.high - design.response.low) / 2
    centre, reach = done.frame.box.arrays
    slopes = half * theta[1:] / reach
    intercept = design.response.low + half + half * theta[0] - float(centre @ slopes)
    sigma = half * done.frame.rho * sqrt(s2)
    return Line(np.array([*([intercept] if design.intercept else []), *slopes]), sigma), status


def _affine(done: Round, design: Design) -> tuple[Array, Array]:
    """delta = offset + basis psi with an orthonormal basis: any correction, or without an intercept one through y = 0 at x = 0."""
    theta, transform, rho = done.frame.line, done.frame.matrix, done.frame.rho
    p = len(theta)
    origin, lines = np.zeros(p), np.eye(p)
    if not design.intercept:
        centre, reach = done.frame.box.arrays
        lines = np.vstack([centre / reach, np.eye(p - 1)])
        origin[0] = -(design.response.low + design.response.high) / (design.response.high - design.response.low)
    nearest = origin + lines @ np.linalg.lstsq(lines, theta - origin, rcond=None)[0]
    offset = np.zeros(p) if design.intercept else np.linalg.solve(transform, nearest - theta) / rho
    basis, _ = np.linalg.qr(np.linalg.solve(transform, lines) / rho)
    return np.asarray(offset, dtype=np.float64), np.asarray(basis, dtype=np.float64)


def _plain(done: Round, offset: Array, basis: Array, gram: Array, cross: Array) -> tuple[Array, float]:
    """(delta, s2): the solution of the noisy normal equations; s2 is corrected for having been fitted to the same noise."""
    delta = offset + basis @ np.linalg.solve(gram, cross)
    half = done.sd_gram**2 / 2
    noise = (done.sd_cross**2 + half * float(delta @ delta)) * np.eye(len(delta)) + half * np.outer(delta, delta)
    rss = done.square - 2 * float(delta @ done.cross) + float(delta @ done.gram @ delta)
    s2 = (rss + float(np.trace(np.linalg.solve(gram, basis.T @ noise @ basis)))) / max(done.count - len(cross), 1.0)
    return delta, float(np.clip(s2, 1e-4, 1.0)) if np.isfinite(s2) else 1.0
