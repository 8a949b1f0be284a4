"""Lines that a formula allows, as corrections of a round: an affine set theta = origin + lines phi, in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.normal_equations import allowed_lines
from confide.methods.regression.sums.whitened_rows import Round, first_variance, shrunken
from confide.schema import ModelMatrix

__all__ = ["RoundLines", "restriction"]


def restriction(design: ModelMatrix) -> tuple[Array | None, Array | None]:
    """Where a descent starts and what its steps are projected on, in the public box: (None, None) with an intercept.

    Without one the lines are an affine set; the start is its point nearest 0.
    """
    if design.intercept:
        return None, None
    origin, lines = allowed_lines(design)
    basis, _ = np.linalg.qr(lines)
    project = basis @ basis.T
    return origin - project @ origin, project


@dataclass(frozen=True, eq=False)
class RoundLines:
    """The corrections delta = offset + basis psi of a round that stay on the allowed lines; basis (p, k) is orthonormal.

    psi = back (phi - start), start (k,) the allowed line that is nearest to where the round stood, as predictions go: in whitened
    coordinates the distance of two lines is about that of their predictions.
    """

    offset: Array
    basis: Array
    back: Array
    start: Array

    @classmethod
    def of(cls, done: Round, origin: Array, lines: Array) -> RoundLines:
        """The corrections that lead to origin + lines phi."""
        theta, transform, rho = done.frame.line, done.frame.matrix, done.frame.rho
        inside = np.linalg.solve(transform, lines)
        start = np.linalg.lstsq(inside, np.linalg.solve(transform, theta - origin), rcond=None)[0]
        away = origin + lines @ start - theta
        # no rounding residue for a free line, whose start is where the round stood
        offset = np.linalg.solve(transform, away) / rho if np.abs(away).max() > 1e-12 else np.zeros(len(theta))
        basis, back = np.linalg.qr(inside / rho)
        return cls(*(np.asarray(array, dtype=np.float64) for array in (offset, basis, back, start)))

    def reduced(self, done: Round) -> Round:
        """The round's normal equations in psi, with noise of the same law: the basis is orthonormal."""
        return replace(
            done,
            gram=self.basis.T @ done.gram @ self.basis,
            cross=self.basis.T @ (done.cross - done.gram @ self.offset),
        )

    def plain(self, done: Round) -> tuple[Array, float]:
        """(delta, s2): the solution of the noisy normal equations and its residual variance; NaN where there is none.

        s2 is corrected for having been fitted to the same noise, by tr((Q'AQ)^{-1} Q'GQ).
        """
        reduced = self.reduced(done)
        try:
            delta = self.offset + self.basis @ np.linalg.solve(reduced.gram, reduced.cross)
            half = done.sd_gram**2 / 2
            noise = (done.sd_cross**2 + half * float(delta @ delta)) * np.eye(len(delta)) + half * np.outer(
                delta, delta
            )
            trace = float(np.trace(np.linalg.solve(reduced.gram, self.basis.T @ noise @ self.basis)))
        except np.linalg.LinAlgError:
            return np.full(len(done.cross), np.nan), done.largest
        rss = done.square - 2 * float(delta @ done.cross) + float(delta @ done.gram @ delta)
        s2 = (rss + trace) / max(done.count - len(reduced.cross), 1.0)
        return np.asarray(delta, dtype=np.float64), float(np.clip(s2, 1e-4, done.largest)) if np.isfinite(
            s2
        ) else done.largest

    def shrunken(self, done: Round, generator: np.random.Generator) -> tuple[Array, float]:
        """(delta, s2): the shrunken correction on these lines, with fission draws from the generator."""
        system = self.reduced(done).system(first_variance(done), free=False)
        return shrunken(system, done, generator, self.offset, self.basis)
