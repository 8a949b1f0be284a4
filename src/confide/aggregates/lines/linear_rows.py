"""Records of a linear model: features and one or several responses, or residuals times features, as weighted rows of exact integers.

A record is z = (1, x~) and t_1, ..., t_m, each in [-1, 1]; its weight is w = min(1, R2/|z|^2). The box of x~ and R2 may come from earlier
noisy outputs: |z| >= 1 holds in any box, so w |z|^2 <= R2 and w t_k^2 <= 1 do, too, and the integers are coded for the R2 in use, so that
|m|^2 <= 2^40 whatever it is. `adaptive`: R2 (and g2) are not known to the plan, and left out of the digest like the box.

Joined: the Gram matrix of sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) also holds the products t_j t_k; a record's part has Frobenius norm
w (|z|^2 + g2 |t|^2) <= R2 + m g2, and sqrt(2) times that under substitute, for positive semi-definite matrices have <P, Q> >= 0.

Apart (`BlockRows` in a `BlockGram`): without the products t_j t_k, its blocks times public integers; the proof is with `BlockGram`.

Residuals: w r z with r = clip((t_k - z'theta)/limit, -1, 1); |w z| <= sqrt(R2) and |r| <= 1 for every record, any theta, limit and box.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import floor, sqrt
from typing import ClassVar, Self

import numpy as np

from confide.aggregates.lines.rows import (
    BITS,
    BOUND,
    Box,
    CodedRows,
    Codes,
    only,
    residual,
    round_within,
    scaled,
    steps,
    weights,
)
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = ["BlockRows", "ClippedRows", "LinearRows", "together"]


def together(designs: tuple[Design, ...], formula: str) -> Design:
    """One design for several responses: the common terms, then all responses but the last as terms, and the last as response."""
    first = designs[0]
    responses = [design.response for design in designs]
    bounds = tuple(sorted({pair for design in designs for pair in design.term_bounds}))
    return replace(
        first, formula=formula, terms=(*first.terms, *responses[:-1]), response=responses[-1], term_bounds=bounds
    )


@dataclass(frozen=True)
class LinearRows(CodedRows):
    """One record as sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) or, with `residual`, as w r z, in integer steps: |m|^2 <= 2^40.

    z = (1, x~) has d + 1 entries; w(|z|^2 + g2 |t|^2) <= cap + m g2 for every record because |z| >= 1, |t_k| <= 1. The Gram matrix of the
    first holds A, b and q, that of the second is the meat of a robust covariance. r = clip((t - z'theta)/limit, -1, 1); |w z| <= sqrt(cap)
    and |r| <= 1 for every record, any theta, limit and box, so the bound holds for those of earlier noisy outputs, and `at` gives the map
    there; the plan holds it at theta = 0 in the public box with the same sensitivity.

    cap: bound on the weighted squared length of z (at least 1); g2: squared scale of a response against z; outcomes: how many responses
    there are, of a design made by `together`; residual: the response that is multiplied in, from 0; recentred: the plan may measure it in
    noisy ranges.
    """

    design: Design
    cap: float
    g2: float = 1.0
    outcomes: int = 1
    residual: int | None = None
    recentred: bool = False
    adaptive: bool = False
    box: Box | None = None
    theta: tuple[float, ...] = ()
    limit: float = 1.0

    @property
    def features(self) -> int:
        """Columns of x~, without the constant."""
        return len(self.design.terms) - self.outcomes + 1

    @property
    def width(self) -> int:
        return self.features + 1 + (self.outcomes if self.residual is None else 0)

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap + self.outcomes * self.g2 * (self.residual is None)), self.width)

    @property
    def digest(self) -> str:
        # box, theta and limit are left out: the bound holds for any, and the plan does not know them yet
        if self.residual is None:
            return self._digest("weighted rows", "joined rows", (), self.cap, self.g2)
        return self._digest("residual rows", "outcome residuals", (self.residual,), self.cap)

    def _digest(
        self, alone: str, several: str, which: tuple[int, ...], *numbers: float, after: tuple[object, ...] = ()
    ) -> str:
        """Of one response in the public box, or of several or in any box."""
        stated = ["adaptive"] if self.adaptive else [pack(number) for number in numbers]
        if self.outcomes == 1 and not self.recentred:
            return digest([alone, self.design.to_dict(), *stated, *after])
        return digest([several, self.design.to_dict(), self.outcomes, *which, *stated, *after])

    def at(self, theta: Iterable[float] = (), box: Box | None = None, limit: float = 1.0) -> Self:
        """The map at a line in a box, with a limit of residuals, all computed from earlier noisy outputs."""
        return replace(self, theta=tuple(float(v) for v in theta), box=box, limit=float(limit))

    def _weighted(self, codes: Codes) -> tuple[Codes, Codes]:
        """Rows (z, t_1, ..., t_m) and w, 0 for a record that is dropped."""
        box = self.box
        if box is not None:
            public, d = Box.of(self.design), self.features
            box = Box((*box.middle, *public.middle[d:]), (*box.half, *public.half[d:]))
        rows, keep = scaled(self.design, codes, box)
        with np.errstate(all="ignore"):
            return rows, only(weights(rows[: self.features + 1], self.cap), keep)

    def __call__(self, codes: Codes) -> Codes:
        rows, factor = self._weighted(codes)
        p = self.features + 1
        with np.errstate(all="ignore"):
            if self.residual is None:
                np.sqrt(factor, out=factor)
                rows[p:] *= sqrt(self.g2)
            else:
                r = residual(rows[:p], rows[p + self.residual], self.theta)
                if self.limit != 1.0:
                    r /= self.limit
                factor *= np.clip(r, -1.0, 1.0, out=r)
                rows = rows[:p]
            factor *= float(self.steps)
            rows *= factor
            return round_within(rows)


@dataclass(frozen=True)
class BlockRows(LinearRows):
    """One record as sqrt(w) z and sqrt(w) t_k, each in its own integer steps: |m_z|^2 <= 2^40 and every m_k^2 <= 2^40."""

    @property
    def l2_squared(self) -> int:
        return BOUND * (1 + self.outcomes)

    @property
    def l1(self) -> int:
        return floor(sqrt(self.features + 1) * (1 << BITS)) + 1 + self.outcomes * (1 << BITS)

    @property
    def steps(self) -> int:
        """Integer steps in one unit of z."""
        return steps(sqrt(self.cap), self.features + 1)

    @property
    def response_steps(self) -> int:
        """Integer steps in one unit of a response."""
        return steps(1.0, 1)

    @property
    def digest(self) -> str:
        return self._digest("block rows", "block rows", (), self.cap)

    def __call__(self, codes: Codes) -> Codes:
        rows, factor = self._weighted(codes)
        p = self.features + 1
        with np.errstate(all="ignore"):
            np.sqrt(factor, out=factor)
            rows *= factor
            rows[:p] *= float(self.steps)
            rows[p:] *= float(self.response_steps)
            round_within(rows[:p])
            for k in range(p, len(rows)):
                round_within(rows[k : k + 1])
        return rows


@dataclass(frozen=True)
class ClippedRows(LinearRows):
    """2^20 w for a complete record whose response k lay outside its bounds before clipping, 0 for any other.

    w is measured in the public box, like the moments', so that the share of the weighted count is the share of records that the line is
    fitted to; cap = 1 + d makes it 1. edges: the response is derived and its bounds were given (`term_bounds`), so that a value at either
    bound was clipped to it.
    """

    outcome: int = 0
    edges: bool = False
    l1: int = field(default=1 << BITS, init=False)
    width: int = field(default=1, init=False)
    unit: ClassVar[int] = 1 << BITS

    @property
    def columns(self) -> tuple[str, ...]:
        response = (*self.design.terms, self.design.response)[self.features + self.outcome]
        return (*self.design.columns, *(f"outside({name})" for name in response.columns))

    @property
    def _unweighted(self) -> bool:
        """Whether w is 1 for every record: |z|^2 <= 1 + d in the public box, and rint(2^20 w) is 2^20 where floats miss 1 by digits."""
        return self.box is None and self.cap >= 1 + self.features

    @property
    def digest(self) -> str:
        return self._digest("clipped response", "clipped outcome", (self.outcome,), self.cap, after=(self.edges,))

    def __call__(self, codes: Codes) -> Codes:
        own = len(self.design.columns)
        clipped = np.asarray(codes[own:] > 0).any(axis=0)
        if self._unweighted and not self.edges:
            _, keep = self.design.codes(codes[:own])
            counted = clipped if keep is None else clipped & keep
            return np.asarray(counted, dtype=np.float64)[None, :] * float(self.unit)
        rows, weight = self._weighted(codes[:own])
        if self.edges:
            # the last grid point of a scaled response may miss 1 by a last digit
            clipped = clipped | (np.abs(rows[self.features + 1 + self.outcome]) >= 1.0 - 2.0**-40)
        with np.errstate(all="ignore"):
            weight *= float(self.unit)
            weight *= clipped
            return round_within(weight[None, :])
