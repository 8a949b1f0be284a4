"""Second moments of weighted records: the record maps under linear regression, in exact integers (`aggregates.rows`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND, CodedRows, Codes, leverage, round_within, scaled, steps
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = ["ClippedResponse", "ResidualRows", "WeightedRows"]


@dataclass(frozen=True)
class WeightedRows(CodedRows):
    """One record as sqrt(w) (z, sqrt(g2) t) in integer steps, w = min(1, cap/|z|^2): its Gram matrix holds A, b and q.

    z = (1, x~) has d + 1 entries, t is the response; w(|z|^2 + g2 t^2) <= cap + g2 for every record because |z| >= 1, |t| <= 1.

    cap: bound on the weighted squared length of z (at least 1); g2: squared scale of the response against z.
    """

    design: Design
    cap: float
    g2: float
    l2_squared: int = field(default=BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap + self.g2), self.width)

    @property
    def digest(self) -> str:
        return digest(["weighted rows", self.design.to_dict(), pack(self.cap), pack(self.g2)])

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        with np.errstate(all="ignore"):
            factor = leverage(rows, len(self.design.terms))
            np.divide(self.cap, factor, out=factor)
            np.minimum(factor, 1.0, out=factor)
            np.sqrt(factor, out=factor)
            factor *= float(self.steps)
            if keep is not None:
                factor *= keep
            rows[-1] *= sqrt(self.g2)
            rows *= factor
            return round_within(rows)


@dataclass(frozen=True)
class ResidualRows(CodedRows):
    """One record as w r z in integer steps, r = clip((t - z'theta)/limit, -1, 1): its Gram matrix is the meat of a robust covariance.

    |w z| <= sqrt(cap) and |r| <= 1 for every record, any theta and limit, so the bound holds for those of an earlier noisy output.
    `at(theta, limit)` gives the map there; the plan holds it at theta = 0 with the same sensitivity.
    """

    design: Design
    cap: float
    theta: tuple[float, ...] = ()
    limit: float = 1.0
    l2_squared: int = field(default=BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap), self.width)

    @property
    def digest(self) -> str:
        # theta and limit are left out: the bound holds for any, and the plan does not know them yet
        return digest(["residual rows", self.design.to_dict(), pack(self.cap)])

    def at(self, theta: NDArray[np.float64], limit: float = 1.0) -> ResidualRows:
        """The map at a line, with a limit of residuals, both computed from earlier noisy outputs."""
        return replace(self, theta=tuple(float(v) for v in theta), limit=float(limit))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = scaled(self.design, codes)
        features = len(self.design.terms)
        with np.errstate(all="ignore"):
            residual = rows[-1].copy()
            product = np.empty_like(residual)
            for row, weight in zip(rows[: features + 1], self.theta or (0.0,) * (features + 1), strict=True):
                np.multiply(row, weight, out=product)
                residual -= product
            if self.limit != 1.0:
                residual /= self.limit
            np.clip(residual, -1.0, 1.0, out=residual)
            weight_ = leverage(rows, features)
            np.divide(self.cap, weight_, out=weight_)
            np.minimum(weight_, 1.0, out=weight_)
            weight_ *= residual
            weight_ *= float(self.steps)
            if keep is not None:
                weight_ *= keep
            score = rows[:-1]
            score *= weight_
            return round_within(score)


@dataclass(frozen=True)
class ClippedResponse:
    """2^20 w for a complete record whose response lay outside its bounds before clipping, 0 for any other.

    Weighted like the moments, so that the share of the weighted count is the share of records that the line is fitted to. edges:
    the response is derived and its bounds were given (`term_bounds`), so that a value at either bound was clipped to it.
    """

    design: Design
    cap: float
    edges: bool = False
    l2_squared: int = field(default=BOUND, init=False)
    l1: int = field(default=1 << BITS, init=False)
    width: int = field(default=1, init=False)
    unit: ClassVar[int] = 1 << BITS

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.design.columns, *(f"outside({name})" for name in self.design.response.columns))

    @property
    def digest(self) -> str:
        return digest(["clipped response", self.design.to_dict(), pack(self.cap), self.edges])

    def __call__(self, codes: Codes) -> Codes:
        own = len(self.design.columns)
        terms, keep = self.design.codes(codes[:own])
        clipped = np.asarray(codes[own:] > 0).any(axis=0)
        if self.edges:
            response = terms[-1]
            clipped = clipped | (response <= 0) | (response >= self.design.response.steps - 1)
        with np.errstate(all="ignore"):
            weight = np.ones(terms.shape[1])
            square = np.empty(terms.shape[1])
            for term, row in zip(self.design.terms, terms[:-1], strict=True):
                np.multiply(row, 2.0 / (term.steps - 1), out=square)
                square -= 1.0
                square *= square
                weight += square
            np.divide(self.cap, weight, out=weight)
            np.minimum(weight, 1.0, out=weight)
            weight *= float(self.unit)
            weight *= clipped
            if keep is not None:
                weight *= keep
            return round_within(weight[None, :])
