"""Weighted records of several responses on one set of features, measured from a public or a noisy box.

A record is z = (1, x~) and t_1, ..., t_m, each in [-1, 1]; its weight is w = min(1, R2/|z|^2). The box of x~ and R2 may come from earlier
noisy outputs: |z| >= 1 holds in any box, so w |z|^2 <= R2 and w t_k^2 <= 1 do, too, and the integers are coded for the R2 in use, so that
|m|^2 <= 2^40 whatever it is. `adaptive`: R2 (and g2) are not known to the plan, and left out of the digest like the box.

Joined: the Gram matrix of sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) also holds the products t_j t_k; a record's part has Frobenius norm
w (|z|^2 + g2 |t|^2) <= R2 + m g2, and sqrt(2) times that under substitute, for positive semi-definite matrices have <P, Q> >= 0.

Apart (`OutcomeGram`): without the products t_j t_k, its blocks times public integers (a, b, c), of rows with |m_z|^2, m_k^2 <= B = 2^40:

    a^2 |m_z|^4 + 2 b^2 |m_z|^2 sum_k m_k^2 + c^2 sum_k m_k^4 <= B^2 (a^2 + 2 m b^2 + m c^2).

Under substitute a change has the square of both parts less twice their inner product; with S = m_z'm_z*/B and R_k = m_k m_k*/B in [-1, 1]
that product is B^2 (a^2 S^2 + 2 b^2 S sum_k R_k + c^2 sum_k R_k^2). It is NOT >= 0 for m > 1 (the products t_j t_k that would make the
matrix positive semi-definite are missing); its least value over the cube is found exactly: every R_k = clip(-b^2 S/c^2) and then S.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.rows import BITS, BOUND, Box, CodedRows, Codes, leverage, round_within, scaled, steps
from confide.protocol import Gram
from confide.protocol.exact import digest, pack
from confide.schema import Design

__all__ = ["BlockRows", "ClippedOutcome", "JoinedRows", "OutcomeGram", "OutcomeResiduals", "block_numbers", "together"]

# The largest of the public integers (a, b, c): small ones leave room for large noise.
_DIGITS = 64


def together(designs: tuple[Design, ...], formula: str) -> Design:
    """One design for several responses: the common terms, then all responses but the last as terms, and the last as response."""
    first = designs[0]
    responses = [design.response for design in designs]
    bounds = tuple(sorted({pair for design in designs for pair in design.term_bounds}))
    return replace(
        first, formula=formula, terms=(*first.terms, *responses[:-1]), response=responses[-1], term_bounds=bounds
    )


def _stated(adaptive: bool, *numbers: float) -> list[object]:
    """What a digest says of R2 and g2."""
    return ["adaptive"] if adaptive else [pack(number) for number in numbers]


def block_numbers(cap: float, g2: float) -> tuple[int, int, int]:
    """Public integers (a, b, c) near the ratio R2 : sqrt(R2 g2) : g2, with b^2 <= a c.

    >>> block_numbers(4.0, 1.0)
    (64, 32, 16)
    """
    top = max(cap, g2)
    a, c = (max(round(_DIGITS * part / top), 1) for part in (cap, g2))
    return a, max(isqrt(a * c), 1), c


@dataclass(frozen=True)
class _Outcomes(CodedRows):
    """Rows of z and the responses of a design made by `together`; `outcomes`: how many responses there are."""

    design: Design
    outcomes: int
    cap: float

    @property
    def features(self) -> int:
        """Columns of x~, without the constant."""
        return len(self.design.terms) - self.outcomes + 1

    def _scaled(self, codes: Codes, box: Box | None) -> tuple[Codes, NDArray[np.bool_] | None]:
        if box is not None:
            public, d = Box.of(self.design), self.features
            box = Box((*box.middle, *public.middle[d:]), (*box.half, *public.half[d:]))
        return scaled(self.design, codes, box)

    def _weights(self, rows: Codes, keep: NDArray[np.bool_] | None) -> Codes:
        """w = min(1, R2/|z|^2), 0 for a record that is dropped."""
        weight = leverage(rows, self.features)
        np.divide(self.cap, weight, out=weight)
        np.minimum(weight, 1.0, out=weight)
        if keep is not None:
            weight *= keep
        return weight


@dataclass(frozen=True)
class JoinedRows(_Outcomes):
    """One record as sqrt(w) (z, sqrt(g2) t_1, ..., sqrt(g2) t_m) in integer steps; |m|^2 <= 2^40."""

    g2: float = 1.0
    box: Box | None = None
    adaptive: bool = False
    l2_squared: int = field(default=BOUND, init=False)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap + self.outcomes * self.g2), self.width)

    @property
    def digest(self) -> str:
        # the box is left out: the bound holds for any, and the plan does not know it yet
        return digest(["joined rows", self.design.to_dict(), self.outcomes, *_stated(self.adaptive, self.cap, self.g2)])

    def at(self, box: Box | None) -> JoinedRows:
        """The map in a box that is computed from earlier noisy outputs."""
        return replace(self, box=box)

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = self._scaled(codes, self.box)
        with np.errstate(all="ignore"):
            factor = self._weights(rows, keep)
            np.sqrt(factor, out=factor)
            factor *= float(self.steps)
            rows[self.features + 1 :] *= sqrt(self.g2)
            rows *= factor
            return round_within(rows)


@dataclass(frozen=True)
class BlockRows(_Outcomes):
    """One record as sqrt(w) z and sqrt(w) t_k, each in its own integer steps: |m_z|^2 <= 2^40 and every m_k^2 <= 2^40."""

    box: Box | None = None
    adaptive: bool = False

    @property
    def l2_squared(self) -> int:
        return BOUND * (1 + self.outcomes)

    @property
    def width(self) -> int:
        return len(self.design.terms) + 2

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
        return digest(["block rows", self.design.to_dict(), self.outcomes, *_stated(self.adaptive, self.cap)])

    def at(self, box: Box | None) -> BlockRows:
        """The map in a box that is computed from earlier noisy outputs."""
        return replace(self, box=box)

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = self._scaled(codes, self.box)
        p = self.features + 1
        with np.errstate(all="ignore"):
            factor = self._weights(rows, keep)
            np.sqrt(factor, out=factor)
            rows *= factor
            rows[:p] *= float(self.steps)
            rows[p:] *= float(self.response_steps)
            round_within(rows[:p])
            for k in range(p, len(rows)):
                round_within(rows[k : k + 1])
        return rows


@dataclass(frozen=True)
class OutcomeGram:
    """A, b_k and q_k of `BlockRows`, times (a, b, c), with 0 in place of the products of two responses; shape (width, width)."""

    map: BlockRows
    blocks: tuple[int, int, int]
    norm: str = field(default="frobenius", init=False)

    @property
    def _gram(self) -> Gram:
        return Gram(self.map, entry_bits=BITS)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.map.width, self.map.width)

    def sensitivity_squared(self, relation: str) -> Fraction:
        m = self.map.outcomes
        a2, b2, c2 = (Fraction(x) ** 2 for x in self.blocks)
        whole = a2 + 2 * m * b2 + m * c2
        if relation != "substitute":
            return BOUND**2 * whole
        return BOUND**2 * 2 * (whole - least(a2, b2, c2, m))

    def sensitivity_l1(self, relation: str) -> Fraction:
        # |M|_1 <= width |M|_F, and isqrt rounds down
        return Fraction(self.map.width * (isqrt(int(self.sensitivity_squared(relation))) + 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared changes in the Frobenius norm when the record with the row `own` gives way to each of `rows`."""
        a2, b2, c2 = (x * x for x in self.blocks)
        p = self.map.features + 1

        def inner(one: Any, other: Any) -> Any:
            features = (one[:p] * other[:p]).sum(axis=0)
            responses = one[p:] * other[p:]
            return a2 * features**2 + 2 * b2 * features * responses.sum(axis=0) + c2 * (responses**2).sum(axis=0)

        own = own[:, None]
        return inner(rows, rows) + inner(own, own) - 2 * inner(own, rows)

    def zero(self) -> Any:
        return self._gram.zero()

    def update(self, state: Any, codes: NDArray[np.float64]) -> Any:
        return self._gram.update(state, codes)

    def merge(self, a: Any, b: Any) -> Any:
        return self._gram.merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        whole = self._gram.value(state).copy()
        a, b, c = self.blocks
        p = self.map.features + 1
        squares = np.diag(whole)[p:] * c
        whole[:p, :p] *= a
        whole[:p, p:] *= b
        whole[p:, :p] *= b
        whole[p:, p:] = 0
        for k, square in enumerate(squares, start=p):
            whole[k, k] = square
        return whole


def least(a2: Fraction, b2: Fraction, c2: Fraction, m: int) -> Fraction:
    """The minimum of a^2 S^2 + 2 b^2 S sum R_k + c^2 sum R_k^2 over |S|, |R_k| <= 1, exactly.

    For a given S every R_k is best at -b^2 S/c^2, cut to [-1, 1]. So on |S| <= s0 = min(1, c^2/b^2) the value is S^2 times a number,
    least at an end; beyond it a^2 S^2 + m (c^2 - 2 b^2 |S|), least at m b^2/a^2 or an end.

    >>> least(Fraction(4), Fraction(2), Fraction(1), 1), least(Fraction(4), Fraction(2), Fraction(1), 2)
    (Fraction(0, 1), Fraction(-2, 1))
    """

    def at(s: Fraction) -> Fraction:
        r = min(b2 * s / c2, Fraction(1))
        return a2 * s * s + m * (c2 * r * r - 2 * b2 * s * r)

    turn = min(c2 / b2, Fraction(1))
    return min(Fraction(0), at(turn), at(min(max(m * b2 / a2, turn), Fraction(1))), at(Fraction(1)))


@dataclass(frozen=True)
class OutcomeResiduals(_Outcomes):
    """One record as w r_k z in integer steps, r_k = clip((t_k - z'theta)/limit, -1, 1): its Gram matrix is the meat of response k.

    |w z| <= sqrt(R2) and |r_k| <= 1 for any theta, limit and box, so the bound holds for those of earlier noisy outputs.
    """

    outcome: int = 0
    theta: tuple[float, ...] = ()
    box: Box | None = None
    adaptive: bool = False
    limit: float = 1.0
    l2_squared: int = field(default=BOUND, init=False)

    @property
    def width(self) -> int:
        return self.features + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of a scaled row."""
        return steps(sqrt(self.cap), self.width)

    @property
    def digest(self) -> str:
        return digest(
            ["outcome residuals", self.design.to_dict(), self.outcomes, self.outcome, *_stated(self.adaptive, self.cap)]
        )

    def at(self, theta: NDArray[np.float64], box: Box | None, limit: float = 1.0) -> OutcomeResiduals:
        """The map at a line in a box, with a limit of residuals, all computed from earlier noisy outputs."""
        return replace(self, theta=tuple(float(v) for v in theta), box=box, limit=float(limit))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = self._scaled(codes, self.box)
        p = self.features + 1
        with np.errstate(all="ignore"):
            residual = rows[p + self.outcome].copy()
            product = np.empty_like(residual)
            for row, weight in zip(rows[:p], self.theta or (0.0,) * p, strict=True):
                np.multiply(row, weight, out=product)
                residual -= product
            if self.limit != 1.0:
                residual /= self.limit
            np.clip(residual, -1.0, 1.0, out=residual)
            factor = self._weights(rows, keep)
            factor *= residual
            factor *= float(self.steps)
            score = rows[:p]
            score *= factor
            return round_within(score)


@dataclass(frozen=True)
class ClippedOutcome(_Outcomes):
    """2^20 w for a complete record whose response k lay outside its bounds before clipping, 0 for any other.

    w is measured in the public box; cap = 1 + d makes it 1. edges: the response is derived and its bounds were given, so that a value
    at either bound was clipped to it.
    """

    outcome: int = 0
    edges: bool = False
    l2_squared: int = field(default=BOUND, init=False)
    l1: int = field(default=1 << BITS, init=False)
    width: int = field(default=1, init=False)
    unit: ClassVar[int] = 1 << BITS

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.design.columns, *(f"outside({name})" for name in self._response.columns))

    @property
    def _response(self) -> Any:
        return (*self.design.terms, self.design.response)[self.features + self.outcome]

    @property
    def digest(self) -> str:
        return digest(
            ["clipped outcome", self.design.to_dict(), self.outcomes, self.outcome, pack(self.cap), self.edges]
        )

    def __call__(self, codes: Codes) -> Codes:
        own = len(self.design.columns)
        rows, keep = self._scaled(codes[:own], None)
        clipped = np.asarray(codes[own:] > 0).any(axis=0)
        if self.edges:
            clipped = clipped | (np.abs(rows[self.features + 1 + self.outcome]) >= 1.0)
        with np.errstate(all="ignore"):
            weight = self._weights(rows, keep)
            weight *= float(self.unit)
            weight *= clipped
            return round_within(weight[None, :])
