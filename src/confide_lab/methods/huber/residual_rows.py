"""Records as their residual: rows of the meat at a line, and whether a residual is clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide.methods.regression.sums.whitened_rows import Frame, Located, LocatedRows, Locating
from confide.sums.coding import Box, IndicatorRows, aligned, lengths, only, round_within, shares, steps

__all__ = ["FarResiduals", "ScoreRows"]


@dataclass(frozen=True)
class ScoreRows(LocatedRows):
    """One record as w r u / reach in integer steps, r clipped at reach <= 1: its Gram matrix is the meat of a robust covariance.

    |w u| <= sqrt(R2) and |r| <= reach, so that the row is at most sqrt(R2).
    """

    cap: float = 1.0
    theta: tuple[float, ...] = ()
    reach: float = 1.0
    kind: ClassVar[str] = "score rows"

    def at(self, frame: Frame, cap: float = 1.0, theta: Sequence[float] | Array = (), reach: float = 1.0) -> Self:
        """The map at a line theta; reach: where residuals in units of the frame's rho are clipped."""
        return replace(self, frame=frame, cap=float(cap), theta=tuple(map(float, theta)), reach=float(reach))

    @property
    def steps(self) -> int:
        """Integer steps in one unit of w r u / reach."""
        return steps(sqrt(self.cap), self.width)

    @cached_property
    def _locating(self) -> Locating:
        frame = self.frame or Frame.start(Box.of(self.design))
        return Locating(self.design, replace(frame, theta=self.theta or frame.theta))

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            r = records.r / self.rho
            r /= self.reach
            np.clip(r, -1.0, 1.0, out=r)
            r *= shares(records.square, self.cap)
            r *= float(self.steps)
            only(r, records.keep)
            rows = np.multiply(records.v, r, out=aligned(*records.v.shape))
            return round_within(rows, length=lengths(records.square) * np.abs(r))


@dataclass(frozen=True)
class FarResiduals(IndicatorRows, LocatedRows):
    """1 for a complete record whose residual is clipped, |t - z'theta| > rho, and 0 for any other."""

    kind: ClassVar[str] = "far residuals"

    def at(self, frame: Frame) -> Self:
        """The map in the coordinates and at the line of a frame."""
        return replace(self, frame=frame)

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            # what is no number counts as far
            far = 1.0 - (np.abs(records.r / self.rho) <= 1.0)
        return only(far, records.keep)[None, :]
