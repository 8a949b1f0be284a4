"""Records under a binary outcome, in exact integers: one record is S y z, with y = 1 or -1, z its features in public units.

With an intercept z = (1, x~), x~ in [-1, 1] by the public bounds; without one z = x/(largest |x| that the bounds allow), so that 0 stays 0.
A model of P(y = 1 | z) by y z'theta sees nothing else of the record. |m|^2 <= 2^40 for every record (`aggregates.rows`), so that no z is
longer than `longest` = 2^20/S. Records that are dropped are zeros.

A record's weight is w = min(1, cut/|z|), a function of its integers: weighting costs no bias where the model holds, cutting z would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar

import numpy as np

from confide._arrays import Array
from confide.core.exact import digest, pack
from confide.methods.regression.glm.coefficients import log_odds as from_scaled
from confide.schema import ModelMatrix
from confide.sums.coding import BITS, Box, CodedRows, Codes, only, round_within, scaled, steps

__all__ = ["CurvatureRows", "LabelledRows", "log_odds", "record_weights"]


def log_odds(design: ModelMatrix) -> Array:
    """J: coefficients in the data's units are J theta, in the order of `design.names`. Without an intercept features are measured from 0,
    in the largest |x| within the bounds.
    """
    if design.intercept:
        return from_scaled(design)
    middle, half = Box.of(design).arrays
    return np.diag(1 / (np.abs(middle) + half))


@dataclass(frozen=True)
class LabelledRows(CodedRows):
    """One record as m = rint(S y z): width terms + 1, or the number of terms without an intercept.

    The outcome is 1 from the middle of the response's bounds on, else -1.
    """

    design: ModelMatrix
    kind: ClassVar[str] = "labelled rows"

    @property
    def width(self) -> int:
        return len(self.design.terms) + int(self.design.intercept)

    @property
    def steps(self) -> int:
        """S: integer steps in one unit of z."""
        return steps(sqrt(self.width), self.width)

    @property
    def longest(self) -> float:
        """No |z| is larger."""
        return float((1 << BITS) / self.steps)

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        with np.errstate(all="ignore"):
            sign = only(np.where(rows[-1] >= 0.0, float(self.steps), -float(self.steps)), keep)
            if not self.design.intercept:
                middle, half = Box.of(self.design).arrays
                for row, c, h in zip(rows[1:-1], middle, half, strict=True):
                    row *= h / (abs(c) + h)
                    row += c / (abs(c) + h)
            own = rows[int(not self.design.intercept) : -1]
            own *= sign
            return round_within(np.ascontiguousarray(own))


def record_weights(rows: Array, unit: float, cut: float) -> Array:
    """w = min(1, cut/|z|) of coded rows, shape (n,): from sums of squares that are exact."""
    length = np.einsum("ij,ij->j", rows, rows)
    np.sqrt(length, out=length)
    with np.errstate(divide="ignore"):
        np.divide(cut * unit, length, out=length)
    return np.asarray(np.minimum(length, 1.0, out=length))


@dataclass(frozen=True)
class CurvatureRows(CodedRows):
    """One record as sqrt(w p (1 - p)) z in integer steps, p = 1/(1 + exp(y z'theta)): its Gram matrix is the Hessian of the loss at theta.

    w p (1 - p) |z|^2 <= cut |z|/4 <= cut longest/4 for every record and any theta, so the bound holds for the theta of an earlier noisy
    output; `at(theta)` gives the map there. `of(rows)` takes the labelled rows, `__call__` the codes of a batch.
    """

    labelled: LabelledRows
    cut: float
    theta: tuple[float, ...] = ()

    @property
    def design(self) -> ModelMatrix:  # type: ignore[override]
        return self.labelled.design

    @property
    def width(self) -> int:
        return self.labelled.width

    @property
    def unit(self) -> float:
        """Integer steps in one unit of sqrt(w p (1 - p)) z."""
        return float(steps(sqrt(self.cut * self.labelled.longest) / 2, self.width))

    @property
    def digest(self) -> str:
        # theta is left out: the bound holds for any, and the plan does not know it yet
        return digest(["curvature rows", self.labelled.digest, pack(self.cut)])

    def at(self, theta: Array) -> CurvatureRows:
        """The map at a point computed from earlier noisy outputs, shape (width,)."""
        return replace(self, theta=tuple(float(v) for v in theta))

    def __call__(self, codes: Codes) -> Codes:
        return self.of(self.labelled(codes))

    def of(self, rows: Codes) -> Codes:
        """From labelled rows (width, n), element by element in a fixed order."""
        own = float(self.labelled.steps)
        with np.errstate(all="ignore"):
            margin = np.zeros(rows.shape[1])
            product = np.empty(rows.shape[1])
            for row, weight in zip(rows, self.theta or (0.0,) * len(rows), strict=True):
                np.multiply(row, weight / own, out=product)
                margin += product
            # sqrt(p (1 - p)) = 1/(2 cosh(margin/2))
            np.clip(margin, -700.0, 700.0, out=margin)
            margin *= 0.5
            np.cosh(margin, out=margin)
            factor = np.sqrt(record_weights(rows, own, self.cut))
            factor *= self.unit / (2 * own)
            factor /= margin
            return round_within(rows * factor)
