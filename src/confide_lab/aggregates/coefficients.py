"""The coefficients of a least-squares objective, one by one, with their sensitivity in the l1 norm.

sum (t - z'theta)^2 / 2 is a quadratic in theta with the coefficients z_i z_j (i <= j) and z_j t of every record, z = (1, x~); what is left
over, t^2, moves no minimiser and stays out. Every coefficient is coded in 2^20 steps. With p = d + 1 and |z_j|, |t| <= 1:

    one record added or removed: each of the p (p + 1)/2 + p coefficients moves by at most 1: p (p + 3)/2, attained at every corner;
    one replaced by another: the count z_0 z_0 stays, each of the d squares moves by at most 1 (both are in [0, 1]), the other
    d (d - 1)/2 + d + p coefficients by at most 2: d^2 + 4 d + 2 in all; one that becomes complete or incomplete moves less, see above.

Source: Zhang, Zhang, Xiao, Yang, Winslett 2012 (functional mechanism), which counts both triangles, t^2 and, for replacement, everything
twice: 2 (d + 1)^2 for d features without an intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from confide.core import RecordMap, Total
from confide.core.exact import digest
from confide.schema import ModelMatrix
from confide.sums.coding import BITS, scaled

__all__ = ["CoefficientTotal", "QuadraticCoefficients"]

Codes = NDArray[np.float64]


@dataclass(frozen=True)
class QuadraticCoefficients(RecordMap):
    """One record as 2^20 times z_i z_j (i <= j, row by row) and then z_j t, in integers; width p (p + 3)/2, p = terms + 1.

    >>> import numpy as np, confide as cf
    >>> design = cf.schema.ModelMatrix.of("y ~ x", cf.Schema({"x": cf.Numeric(0, 1, steps=3), "y": cf.Numeric(0, 1, steps=3)}))
    >>> coefficients = QuadraticCoefficients(design)
    >>> coefficients(np.array([[0.0], [2.0]])).T / coefficients.unit  # z = (1, -1), t = 1
    array([[ 1., -1.,  1.,  1., -1.]])
    """

    design: ModelMatrix

    @property
    def derived_by(self) -> ModelMatrix:
        return self.design

    @property
    def p(self) -> int:
        """Entries of z."""
        return len(self.design.terms) + 1

    @property
    def width(self) -> int:
        return self.p * (self.p + 3) // 2

    @property
    def unit(self) -> int:
        """Integer steps in one unit."""
        return 1 << BITS

    @property
    def l1(self) -> int:
        return self.width << BITS

    @property
    def l2_squared(self) -> int:
        return self.width << (2 * BITS)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def digest(self) -> str:
        return digest(["quadratic coefficients", self.design.to_dict()])

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        # codes lie on their grids, but a bound must not rest on the last bit of a float
        np.clip(rows, -1.0, 1.0, out=rows)
        products = np.empty((self.width, rows.shape[1]))
        place = 0
        for i in range(self.p):
            for j in range(i, self.p):
                np.multiply(rows[i], rows[j], out=products[place])
                place += 1
        for row in rows[: self.p]:
            np.multiply(row, rows[-1], out=products[place])
            place += 1
        products *= float(self.unit)
        np.rint(products, out=products)
        if keep is not None:
            np.copyto(products, 0.0, where=~np.asarray(keep, dtype=bool)[None, :])
        return products

    def decode(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(A, b) of the objective, shapes (p, p) and (p,), from sums of the integers, shape (width,)."""
        above = np.triu_indices(self.p)
        gram = np.zeros((self.p, self.p))
        gram[above] = values[: len(above[0])] / self.unit
        gram.T[above] = gram[above]
        return gram, values[len(above[0]) :] / self.unit


@dataclass(frozen=True)
class CoefficientTotal(Total):
    """The sum of `QuadraticCoefficients`, whose l1 sensitivity under substitute is below twice that of add-remove."""

    def sensitivity_l1(self, relation: str) -> Fraction:
        """In steps: p (p + 3)/2 units under add-remove, d^2 + 4 d + 2 under substitute."""
        coefficients = self.map
        assert isinstance(coefficients, QuadraticCoefficients)
        if relation != "substitute":
            return Fraction(coefficients.l1)
        d = coefficients.p - 1
        return Fraction((d * d + 4 * d + 2) * coefficients.unit)
