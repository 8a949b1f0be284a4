"""One round of noisy residual moments: its numbers in its own units, and its plain and its shrunken solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.blocks import BlockGram
from confide.aggregates.lines.whitened_rows import Frame, WhitenedRows
from confide.aggregates.scores.shrinkage import NoisySystem, choose_prior, wiener
from confide.protocol import Noisy

__all__ = ["NoisySums", "Round", "first_variance", "shrunken", "split_of"]


# How a round splits between Gram matrix, cross products and square; one proved split for substitute, where cross products cost more.
_EARLY = (Fraction(45, 100), Fraction(45, 100), Fraction(10, 100))
_LAST = (Fraction(25, 100), Fraction(70, 100), Fraction(5, 100))
_SUBSTITUTE = (Fraction(15, 100), Fraction(247, 1000), Fraction(5, 100))


def split_of(relation: str, *, last: bool) -> tuple[Fraction, Fraction, Fraction]:
    """The shares of a round's budget for A, b and q."""
    if relation == "substitute":
        return _SUBSTITUTE
    return _LAST if last else _EARLY


@dataclass(frozen=True, eq=False)
class NoisySums:
    """A (p, p), b (p,), q and their noise sds: `sd_gram` on A's diagonal (1/sqrt(2) of it off the diagonal), sd_cross, sd_square."""

    gram: Array
    cross: Array
    square: float
    sd_gram: float
    sd_cross: float
    sd_square: float


@dataclass(frozen=True, eq=False)
class Round(NoisySums):
    """What a round released, in its own units, and the frame and cap it was taken in."""

    frame: Frame
    cap: float

    @classmethod
    def decoded(cls, noisy: Noisy, statistic: BlockGram, frame: Frame, cap: float) -> Round:
        """From integers in steps."""
        rows = statistic.map
        assert isinstance(rows, WhitenedRows)
        u, r = float(rows.at(frame, cap).steps), float(rows.response_steps)
        a, b, c = (float(x) for x in statistic.blocks)
        values, sd = noisy.decode(), sqrt(noisy.variance)
        return cls(
            gram=values[:-1, :-1] / (a * u * u),
            cross=values[:-1, -1] / (b * u * r),
            square=float(values[-1, -1] / (c * r * r)),
            sd_gram=sd / (a * u * u),
            sd_cross=sd / (sqrt(2) * b * u * r),
            sd_square=sd / (c * r * r),
            frame=frame,
            cap=cap,
        )

    @cached_property
    def axis(self) -> Array:
        """e with e'u = 1 for every record, T^{-1} e_0, shape (p,)."""
        p = len(self.cross)
        return np.asarray(np.linalg.solve(self.frame.matrix, np.eye(p)[0]))

    @cached_property
    def count(self) -> float:
        """The noisy weighted count of records, at least 1."""
        return max(float(self.axis @ self.gram @ self.axis), 1.0)

    @property
    def largest(self) -> float:
        """What no residual variance exceeds, in units of rho^2: half the response's range squared, and 1 at least."""
        return max(1.0, 1 / self.frame.rho**2)

    @property
    def gram_noise(self) -> float:
        """About the operator norm of the noise of A."""
        return self.sd_gram * sqrt(2 * len(self.cross))

    def residual_variance(self, delta: Array) -> float:
        """An upper guess of the residual variance at delta, in units of rho^2: the residual sum of squares plus one noise sd."""
        rss = self.square - 2 * float(delta @ self.cross) + float(delta @ self.gram @ delta)
        size = float(delta @ delta)
        noise = sqrt(self.sd_square**2 + 4 * self.sd_cross**2 * size + self.sd_gram**2 * size**2)
        return float(np.clip((max(rss, 0.0) + noise) / self.count, 1e-4, self.largest))

    def system(self, s2: float, *, free: bool) -> NoisySystem:
        """The noisy normal equations of the correction delta."""
        return NoisySystem(self.gram, self.cross, self.sd_gram, self.sd_cross, s2, free)


def shrunken(
    system: NoisySystem, round_: Round, generator: np.random.Generator, offset: Array | None = None, basis: Any = None
) -> tuple[Array, float]:
    """(delta, s2): the shrunken correction of a round and its residual variance; the noisy system may be a reduced one.

    offset, basis: delta = offset + basis psi when `system` is in psi, with orthonormal columns of the basis.
    """
    solution = np.zeros(len(system.cross))
    delta = np.zeros(len(round_.cross))
    for _ in range(1 if len(round_.cross) > 40 else 2):
        solution, _ = wiener(system, choose_prior(system, generator))
        delta = solution if basis is None else (0.0 if offset is None else offset) + basis @ solution
        system = replace(system, s2=round_.residual_variance(delta))
    return delta, system.s2


def first_variance(round_: Round) -> float:
    """The residual variance to begin with, in units of rho^2."""
    count = round_.count
    return float(np.clip(max(round_.square, 0.02 * count) / count, 1e-4, 1.0))
