"""Second moments of weighted records: the record maps under linear regression, in exact integers.

A real row u with |u| <= B is coded as m = rint(S u), S = floor((2^20 - sqrt(width)/2 - 1)/B), so that |m|^2 <= 2^40 holds
with room for the floats' errors; and because a proof must not rest on floats, a row that breaks the bound is cut until it
holds, whatever happened before (NaN becomes 0). All sensitivities are stated in m. Rounding is to the nearest integer: cutting
toward zero would shift every entry one way.

Every float step is an elementwise operation, column by column in a fixed order, so that a record's integers never depend on
the batch it came in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import floor, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = ["ClippedResponse", "ResidualRows", "WeightedRows"]

_BITS = 20
_BOUND = 1 << (2 * _BITS)

Codes = NDArray[np.float64]


def _steps(bound: float, width: int) -> int:
    """S: how many integer steps one unit of a row with |u| <= bound gets."""
    return floor(((1 << _BITS) - sqrt(width) / 2 - 1) / bound)


def _round_within(rows: Codes) -> Codes:
    """Round to integers in place and enforce sum m^2 <= 2^40 for every column, whatever the entries are."""
    np.rint(rows, out=rows)
    norm = _squared_norm(rows)
    # "not <=" rather than ">": a NaN must count as out of bounds
    bad = ~(norm <= _BOUND)
    if bad.any():
        cut = np.nan_to_num(rows[:, bad], nan=0.0, posinf=2.0**_BITS, neginf=-(2.0**_BITS))
        np.clip(cut, -(2.0**_BITS), 2.0**_BITS, out=cut)
        while (over := _squared_norm(cut) > _BOUND).any():
            cut[:, over] = np.trunc(cut[:, over] * (1 - 2.0**-10))
        rows[:, bad] = cut
    return rows


def _squared_norm(rows: Codes) -> Codes:
    """sum m^2 of each column. Exact in any order for integers whose squares add up to at most 2^53; beyond, far above the bound."""
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


def _scaled(design: Design, codes: Codes) -> tuple[Codes, NDArray[np.bool_] | None]:
    """Rows (1, x~_1, ..., x~_d, t) with every term scaled to [-1, 1] by its public bounds; and which records count.

    x~ = (x - midpoint)/half-width = 2 c/(steps - 1) - 1 in codes c.
    """
    terms, keep = design.codes(codes)
    scale = np.array([2.0 / (term.steps - 1) for term in (*design.terms, design.response)])
    rows = np.empty((len(scale) + 1, terms.shape[1]))
    rows[0] = 1.0
    scaled = rows[1:]
    np.multiply(terms, scale[:, None], out=scaled)
    scaled -= 1.0
    return rows, keep


def _leverage(rows: Codes, features: int) -> Codes:
    """|z|^2 of z = (1, x~), feature by feature."""
    total = np.ones(rows.shape[1])
    square = np.empty(rows.shape[1])
    for row in rows[1 : features + 1]:
        np.multiply(row, row, out=square)
        total += square
    return total


class _CodedRows(ABC):
    """What rows of 20-bit integers share; |m|_1 <= sqrt(width) |m|_2."""

    design: Design

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def l1(self) -> int:
        return floor(sqrt(self.width) * (1 << _BITS)) + 1


@dataclass(frozen=True)
class WeightedRows(_CodedRows):
    """One record as sqrt(w) (z, sqrt(g2) t) in integer steps, w = min(1, cap/|z|^2): its Gram matrix holds A, b and q.

    z = (1, x~) has d + 1 entries, t is the response; w(|z|^2 + g2 t^2) <= cap + g2 for every record because |z| >= 1, |t| <= 1.

    cap: bound on the weighted squared length of z (at least 1); g2: squared scale of the response against z.
    """

    design: Design
    cap: float
    g2: float
    l2_squared: int = field(default=_BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return _steps(sqrt(self.cap + self.g2), self.width)

    @property
    def digest(self) -> str:
        return digest(["weighted rows", self.design.to_dict(), pack(self.cap), pack(self.g2)])

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _scaled(self.design, codes)
        with np.errstate(all="ignore"):
            factor = _leverage(rows, len(self.design.terms))
            np.divide(self.cap, factor, out=factor)
            np.minimum(factor, 1.0, out=factor)
            np.sqrt(factor, out=factor)
            factor *= float(self.steps)
            if keep is not None:
                factor *= keep
            rows[-1] *= sqrt(self.g2)
            rows *= factor
            return _round_within(rows)


@dataclass(frozen=True)
class ResidualRows(_CodedRows):
    """One record as w r z in integer steps, r = clip(t - z'theta, -1, 1): its Gram matrix is the meat of a robust covariance.

    |w z| <= sqrt(cap) and |r| <= 1 for every record and any theta, so the bound holds for the theta of an earlier noisy output.
    `at(theta)` gives the map at that point; the plan holds it at theta = 0 with the same sensitivity.
    """

    design: Design
    cap: float
    theta: tuple[float, ...] = ()
    l2_squared: int = field(default=_BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return _steps(sqrt(self.cap), self.width)

    @property
    def digest(self) -> str:
        # theta is left out: the bound holds for any, and the plan does not know it yet
        return digest(["residual rows", self.design.to_dict(), pack(self.cap)])

    def at(self, theta: NDArray[np.float64]) -> ResidualRows:
        """The map at a point computed from earlier noisy outputs."""
        return replace(self, theta=tuple(float(v) for v in theta))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _scaled(self.design, codes)
        features = len(self.design.terms)
        with np.errstate(all="ignore"):
            residual = rows[-1].copy()
            product = np.empty_like(residual)
            for row, weight in zip(rows[: features + 1], self.theta or (0.0,) * (features + 1), strict=True):
                np.multiply(row, weight, out=product)
                residual -= product
            np.clip(residual, -1.0, 1.0, out=residual)
            weight_ = _leverage(rows, features)
            np.divide(self.cap, weight_, out=weight_)
            np.minimum(weight_, 1.0, out=weight_)
            weight_ *= residual
            weight_ *= float(self.steps)
            if keep is not None:
                weight_ *= keep
            score = rows[:-1]
            score *= weight_
            return _round_within(score)


@dataclass(frozen=True)
class ClippedResponse:
    """2^20 w for a complete record whose response lay outside its bounds before clipping, 0 for any other.

    Weighted like the moments, so that the share of the weighted count is the share of records that the line is fitted to. edges:
    the response is derived and its bounds were given (`term_bounds`), so that a value at either bound was clipped to it.
    """

    design: Design
    cap: float
    edges: bool = False
    l2_squared: int = field(default=_BOUND, init=False)
    l1: int = field(default=1 << _BITS, init=False)
    width: int = field(default=1, init=False)
    unit: ClassVar[int] = 1 << _BITS

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
            return _round_within(weight[None, :])
