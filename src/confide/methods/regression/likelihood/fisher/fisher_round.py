"""One round's sums as a release holds them: decoded, shrunken, solved; what a line is read from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, Self

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.blocks import BlockGram, multipliers
from confide.aggregates.lines.rows import Box
from confide.aggregates.lines.whitened_rows import Frame, WhitenedRows
from confide.aggregates.scores.fisher_rows import CROSS, FisherRows
from confide.aggregates.scores.rounds import Round
from confide.aggregates.scores.shrinkage import NoisySystem, choose_prior, wiener
from confide.protocol import Noisy
from confide.schema import Design

__all__ = ["FAR", "FisherRound", "cap_of", "linear_round", "linear_sums", "scored"]

# How the linear round splits between moments, products and square.
_SPLIT = (Fraction(40, 100), Fraction(59, 100), Fraction(1, 100))
# Steps are shrunken towards 0 and no longer than this, in coordinates where a record's features have variance 1.
_PRIORS = tuple(4.0**j for j in range(-8, 5))
_LONGEST = 1.5
# A line of log-odds beyond this is useless.
FAR = 1e6


def cap_of(design: Design) -> float:
    """R2: what |z|^2 counts up to in the linear round."""
    return 1 + len(design.terms) / 3


@dataclass(frozen=True, eq=False)
class FisherRound:
    """One step's sums in units of u: A (k, k), g (k,), their noise sds (A's on the diagonal)."""

    gram: Array
    cross: Array
    sd_gram: float
    sd_cross: float

    @classmethod
    def decoded(cls, noisy: Noisy, rows: FisherRows) -> Self:
        """From integers in steps."""
        (a, b), values, sd = rows.steps, noisy.decode(), sqrt(noisy.variance)
        return cls(values[:-1, :-1] / a, values[:-1, -1] / (CROSS * b), sd / a, sd / (sqrt(2) * CROSS * b))

    @property
    def norm(self) -> float:
        """e: about the operator norm of the noise of A."""
        return self.sd_gram * sqrt(2 * len(self.cross))

    def within(self, basis: Array) -> Self:
        """The same in a space of fewer directions, of which `basis` (k, fewer) is an orthonormal basis: noise is as it was."""
        return replace(self, gram=basis.T @ self.gram @ basis, cross=basis.T @ self.cross)

    def shrunken(self, generator: np.random.Generator, scale: float = 1.0, sampled: float = 1.0) -> Array:
        """The correction with the noise filtered out. scale: R, of the family; sampled: the part of sampling variances that is noise."""
        system = NoisySystem(self.gram, self.cross, self.sd_gram, self.sd_cross, s2=sampled / scale)
        delta, _ = wiener(system, choose_prior(system, generator, _PRIORS))
        size = float(np.linalg.norm(delta))
        return np.asarray(delta * min(1.0, _LONGEST / size) if size > 0 else delta)

    @property
    def solved(self) -> Array:
        """A^-1 g, zeros where A has no inverse or the correction is useless."""
        try:
            delta = np.linalg.solve(self.gram, self.cross)
        except np.linalg.LinAlgError:
            return np.zeros(len(self.cross))
        return np.asarray(delta) if (np.abs(delta) <= FAR).all() else np.zeros(len(delta))


def scored(design: Design, release: Any) -> FisherRound:
    """The last round of a release."""
    rows = FisherRows(design, alpha=float(release.public["alpha"][0]), bound=float(release.public["bound"][0]))
    name = "last" if "last" in release.statistics else "short last"
    return FisherRound.decoded(release[name], rows)


def linear_round(design: Design, release: Any, box: Box) -> Round:
    """The linear round of a release, with features measured from `box`."""
    name = "linear" if "linear" in release.statistics else "short linear"
    return Round.decoded(release[name], linear_sums(design), Frame.start(box), cap_of(design))


def linear_sums(design: Design) -> BlockGram:
    """The statistic of the linear round."""
    return BlockGram(WhitenedRows(design), multipliers(*_SPLIT))
