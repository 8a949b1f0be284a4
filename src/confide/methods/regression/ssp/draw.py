"""What a shared release consists of: its statistics, their shares of the budget, and the way back from integers to moments.

Where leverage weights min(1, R2/|z|^2) begin: beyond the records of a noisy histogram of |z|^2; and how far a public box reaches.

Weights have no effect as long as they are 1. A record beyond the cap R2 loses a part of its weight, and the line leans away from it, by
A^{-1} sum (1 - w) z e. No released number bounds this sharply while records of this kind are too few to be counted. So the cap lies
above everything that is counted, with a margin. Where records are counted at extreme lengths, it is at the corner of the public box
(nothing is weighed), because a heavy tail goes on. The margin is small where the public bounds end soon, within 10 SDs of every
feature. It is large where a tail that thins out slowly has room to go on. A feature whose bounds lie more than 25 of its SDs away is
not answered: what a few records out there would do to its coefficient is beyond any margin.

Guarantee of the histogram: a record lies in one of its 12 cells, so that one record moves it by 1 under add-remove and by sqrt(2) under
substitution (`methods/regression/sums/whitened_rows.LeverageCells`). Its edges are public, and the box is that of earlier noisy ranges.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, Branches, Composed, Event, Gram, Statistic, Total
from confide.core.exact import digest, pack
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import PRIOR, Fit, MiddleMatrix, NoisyMoments, extent
from confide.methods.regression.sums.linear_rows import (
    BlockGram,
    BlockRows,
    CellIndices,
    LinearRows,
    Present,
    RangeCells,
    block_numbers,
    ranged,
    together,
)
from confide.methods.regression.sums.whitened_rows import LeverageCells, LeverageIndices
from confide.schema import ModelMatrix, Schema
from confide.schema.formulas.design import checked_bounds
from confide.schema.formulas.formula import parse_formula
from confide.schema.formulas.names import hidden, restored, sides
from confide.sums.coding import Box

# A number of records beyond an edge is counted when it is at least this many sds of its noise.
_COUNTED = 3.0
# The cap is this far beyond the first edge without counted records beyond it, in squared length, where bounds are near and where they are
# not (evidence/methods/ssp.md, "The cap").
_MARGIN, _WIDE = 1.25, 3.0
# The least edge and the others, as multiples of the number of coefficients p; |z|^2 is 1 + d/3 on average in a re-centred box.
_EDGES = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.4, 2.0, 4.0, 8.0, 16.0)
#: Public bounds further out than this many standard deviations of a feature leave its coefficient unanswered (measured in spec and docs).
REACH = 25.0
# Bounds nearer than this are near.
_NEAR = 10.0
# Records counted beyond this edge say that the tail is heavy.
_HEAVY = _EDGES.index(8.0)
# A limit of residuals leaves the noise of the meat at this share of each variance, and never cuts within so many standard deviations.
_CALM = 0.25
_SPREADS = 10.0


@dataclass(frozen=True)
class BoxLeverage(LeverageIndices):
    """The cell of |z|^2 in a box among public edges p (0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.4, 2, 4, 8, 16): 1 to 12, 0 for a dropped record."""

    @property
    def edges(self) -> Array:
        return np.asarray((len(self.design.terms) + 1) * np.array(_EDGES))

    @property
    def digest(self) -> str:
        return digest(["box leverage", self.design.to_dict(), [pack(edge) for edge in _EDGES]])


def largest(design: ModelMatrix, box: Box, within: float = inf) -> float:
    """The largest |z|^2 that the public bounds allow in a box: from there on nothing is weighed.

    within: bounds further out than this many standard deviations of their feature count as that near.
    """
    return float(1 + (np.minimum(reach(design, box), within) ** 2 / 3).sum())


def reach(design: ModelMatrix, box: Box) -> Array:
    """How many of its SDs (half the width of the box over sqrt(3)) each term's public bounds lie away at most, (terms,)."""
    low, high = extent(design, box)
    return np.asarray(sqrt(3) * np.maximum(np.abs(low), np.abs(high)))


def unanswered(design: ModelMatrix, box: Box) -> NDArray[np.bool_]:
    """Which terms lie out of reach, (terms,)."""
    return np.asarray(reach(design, box) > REACH)


def margin(design: ModelMatrix, box: Box) -> float:
    """How far the cap lies beyond records that are counted, in squared length."""
    return _WIDE if (reach(design, box) > _NEAR).any() else _MARGIN


def residual_limit(fitted: Fit, to_units: Array, ends: tuple[Array, Array], cap: float, sd: float) -> float:
    """Where residuals of a meat are limited, in half-ranges of the response: as high as its noise allows.

    A limit that binds makes the meat too small, and unevenly. Where a two-valued response is rare it loses more than elsewhere, and
    scaling the whole meat up does not give that back. Beyond 1 + max |z'theta| no residual lies. Noise of SD `sd` at a limit of 1 grows
    with its square; up to a quarter of each coefficient's variance (32 degrees of freedom) it does no harm. The limit is at least ten
    residual SDs, or 1 where that is less. A fit may leave the response's bounds, by more than a half-range between two half-ranges of
    the box and the longest records. There the limit is at least what that needs.

    fitted: the noisy fit; ends: from where to where x~ goes; cap: the largest |z|^2 that has full weight.
    """
    theta, moments = fitted.theta, fitted.moments
    line, farthest = np.abs(theta), np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    moved = float(line[1:] @ np.maximum(np.minimum(farthest, sqrt(cap)) - 2.0, 0.0))
    size = float(theta @ theta)
    spread = sqrt(fitted.s2 + 2 * moments.square_noise(size) / fitted.df)
    least = 1 + moved if moved > 1 else min(1.0, _SPREADS * spread)
    most = 1 + min(float(line[0] + line[1:] @ farthest), sqrt(cap * size))
    rows = to_units @ fitted.bread
    variance = np.einsum("ij,jk,ik->i", rows, fitted.s2 * moments.gram + fitted.noise, rows)
    calm = _CALM * float(np.min(variance / (rows**2).sum(axis=1))) / sd
    limit = max(min(sqrt(max(calm, 0.0)), most), least)
    return float(limit) if 0 < limit < inf else 1.0


def chosen_cap(edges: Array, counts: Array, sd: float, most: float, margin: float = _MARGIN) -> float:
    """R2: `margin` times the first edge beyond which no records are counted; `most` in a heavy tail, and at most that.

    edges (k,), counts (k + 1,): noisy numbers of records in the cells between them, with noise of the given SD.

    >>> edges, counts = np.array(_EDGES), np.array([500.0, 300.0, 90.0, 3.0, -4.0, 2.0, 0.0, 0.0, 3.0, -2.0, 0.0, 0.0])
    >>> chosen_cap(edges, counts, 5.0, 50.0), chosen_cap(edges, counts[::-1], 5.0, 50.0)
    (0.75, 50.0)
    """
    first = _uncounted(edges, counts, sd)
    return most if first > _HEAVY else float(min(margin * edges[first], most))


def _uncounted(edges: Array, counts: Array, sd: float) -> int:
    """The first edge beyond which no records are counted; the number of edges if there is none."""
    beyond = np.cumsum(counts[::-1])[::-1][1:]
    counted = np.flatnonzero(beyond >= _COUNTED * _noise(edges, sd))
    return 0 if not len(counted) else int(counted[-1]) + 1


def _noise(edges: Array, sd: float) -> Array:
    """The SD of the noise in the number of records beyond each edge."""
    return np.asarray(sd * np.sqrt(np.arange(len(edges), 0, -1)))


# Shares of mu^2. One per cent buys the count, a tenth the ranges, a 25th the leverages; of
# what remains for the moments a robust covariance takes 15 %.
_COUNT_SHARE = Fraction(1, 100)
_RANGES_SHARE = Fraction(10, 100)
_LEVERAGE_SHARE = Fraction(4, 100)
_MEAT_SHARE = Fraction(15, 100)
#: What the names of the spends of the re-centred branch begin with.
FAR_BRANCH = "re-centred "


def responses_of(formula: str) -> tuple[str, ...]:
    """The formulas of the single responses of "y1 + y2 ~ a + b"; a sum with a constant is one response.

    >>> responses_of("y1 + log(y2) ~ a"), responses_of("y + 1 ~ a"), responses_of("I(y1 + y2) ~ a")
    (('y1 ~ a', 'log(y2) ~ a'), ('y + 1 ~ a',), ('I(y1 + y2) ~ a',))
    """
    if not isinstance(formula, str):
        return (formula,)
    both = sides(formula)
    if len(both) != 2:
        return (formula,)
    parts = _summands(both[0])
    return (formula,) if len(parts) < 2 else tuple(f"{part} ~ {both[1]}" for part in parts)


def _summands(left: str) -> list[str]:
    """The text between the plus signs of a sum, when every summand holds a name; else the whole."""
    plain, names = hidden(left, ())
    try:
        tree = ast.parse(plain, mode="eval").body
    except SyntaxError:
        return [left]
    found: list[tuple[int, int]] = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        found.append((tree.right.col_offset, tree.right.end_col_offset or 0))
        tree = tree.left
    found.append((tree.col_offset, tree.end_col_offset or 0))
    # brackets around a summand belong to no node, so the summands run from sign to sign
    if not plain.isascii() or not all(_named(plain[start:stop]) for start, stop in found):
        return [left]
    return [restored(plain[start:stop], names) for start, stop in reversed(found)]


def _named(text: str) -> bool:
    tree = ast.parse(text, mode="eval")
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Name) and id(node) not in functions for node in ast.walk(tree))


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of each response with the noise that they share, and between responses (m, m) where the products were released."""

    each: tuple[NoisyMoments, ...]
    products: Array | None = None


@dataclass(frozen=True)
class Layout:
    """The statistics of one shared release and their shares, from public facts."""

    designs: tuple[ModelMatrix, ...]
    whole: ModelMatrix
    cap: float
    robust: bool
    recentring: bool
    products: bool
    chosen: bool = False
    counting: bool = True
    adaptive: bool = False

    @classmethod
    def of(
        cls,
        formula: str,
        schema: Schema,
        *,
        term_bounds: Mapping[str, tuple[float, float]] | None,
        cap: float | None,
        robust: bool,
        recenter: Any,
        products: bool,
    ) -> Layout:
        """cap: a number; inf for weights of 1; None for weights of 1 in the public box, and in a re-centered one a cap by noisy counts.

        Raises `PlanError` for a formula that cannot be planned, or a response that is written twice.
        """
        texts = responses_of(formula)
        given = checked_bounds(term_bounds)
        names = [parse_formula(text, schema).response.name for text in texts] if len(texts) > 1 else [""]
        if len(set(names)) < len(names):
            raise PlanError(f"the formula {formula!r} has a response twice", "write each once, as in 'y1 + y2 ~ a'")
        designs = tuple(
            ModelMatrix.of(
                text,
                schema,
                term_bounds={k: v for k, v in given.items() if k == own or k not in names} or None,
            )
            for text, own in zip(texts, names, strict=True)
        )
        first = designs[0]
        most = 1.0 + len(first.terms)
        return cls(
            designs=designs,
            whole=first if len(designs) == 1 else together(designs, formula),
            cap=most if cap is None or cap == inf else float(cap),
            robust=robust,
            recentring=recenter == "auto" and bool(ranged(first)),
            products=products and len(designs) > 1,
            chosen=cap is not None and cap < inf,
            counting=cap is None,
        )

    def far(self, cap: float | None = None) -> Layout:
        """The layout of the re-centered branch, where a cap that was not given follows from a noisy histogram of leverages."""
        return self if self.chosen else replace(self, adaptive=True, cap=self.cap if cap is None else float(cap))

    @property
    def design(self) -> ModelMatrix:
        """The design of the first response; terms are the same in all."""
        return self.designs[0]

    @property
    def weighted(self) -> bool:
        """Whether the line is that of a cap of the user's own, below the largest |z|^2 of the public box."""
        return self.chosen and (self.recentring or self.cap < 1.0 + len(self.design.terms))

    def title(self, responses: str, names: Sequence[str]) -> str:
        """The estimand, for the title."""
        line = "linear regression"
        if self.weighted:
            line = f"leverage-weighted line (weights min(1, {self.cap:.4g}/|z|^2)), not the least-squares line,"
        return f"{line} of {responses} on {', '.join(names)}"

    @property
    def outcomes(self) -> int:
        return len(self.designs)

    @property
    def _rows(self) -> dict[str, Any]:
        """What the maps of this layout share."""
        return {"outcomes": self.outcomes, "recentred": self.recentring, "adaptive": self.adaptive}

    @cached_property
    def g2(self) -> float:
        """The squared scale of a response against z that minimizes the noise of a coefficient, S^2 (1/g2 + c).

        S is R2 + m g2 with the products of responses, else sqrt(R2^2 + 2 m g2 R2 + m g2^2); both are the same for m = 1.
        """
        m, cap = self.outcomes, self.cap
        if m == 1:
            return (sqrt(1 + 8 * PRIOR * cap) - 1) / (4 * PRIOR)
        if self.products:
            # the derivative of (R2 + m g)^2 (1/g + c) is 0 where 2 m c g^2 + m g = R2
            return (sqrt(m * m + 8 * m * PRIOR * cap) - m) / (4 * m * PRIOR)
        low, high = 0.0, cap + 1.0
        for _ in range(200):  # -R2^2/g^2 + m + 2 m c R2 + 2 m c g = 0, increasing in g
            middle = (low + high) / 2
            slope = m + 2 * m * PRIOR * (cap + middle) - (cap / middle) ** 2
            low, high = (middle, high) if slope < 0 else (low, middle)
        return (low + high) / 2

    # statistics -------------------------------------------------------------------------------------------------------

    def names(self, kind: str, *, far: bool = False) -> tuple[str, ...]:
        """Spends of a kind ("meat"), one for each response; "moments" has one for all."""
        before = FAR_BRANCH if far else ""
        if self.outcomes == 1 or kind == "moments":
            return (f"{before}{kind}",)
        return tuple(f"{before}{kind} {k + 1}" for k in range(self.outcomes))

    @property
    def moments(self) -> Gram | BlockGram:
        """The statistic of the moments, in the public box."""
        if self.outcomes == 1 or self.products:
            return Gram(LinearRows(self.whole, self.cap, self.g2, **self._rows))
        # one sensitivity for whatever cap: the integers between the blocks are those of the public box
        planned = replace(self, cap=1.0 + len(self.design.terms)) if self.adaptive else self
        rows = BlockRows(self.whole, self.cap, **self._rows)
        return BlockGram(rows, block_numbers(planned.cap, planned.g2), self.outcomes)

    def moments_in(self, box: Box | None) -> Gram | BlockGram:
        """The statistic of the moments in a box that is computed from earlier noisy outputs."""
        statistic = self.moments
        assert isinstance(statistic.map, LinearRows)
        return replace(statistic, map=statistic.map.at(box=box))

    def meat(self, k: int, theta: Array | None = None, box: Box | None = None, limit: float = 1.0) -> Gram:
        """The statistic of the meat of response k at a line in a box, residuals limited at so many half-ranges."""
        own = LinearRows(self.whole, self.cap, residual=k, **self._rows)
        return Gram(own if theta is None else own.at(theta, box, limit))

    # plan -------------------------------------------------------------------------------------------------------------

    def spends(self, allowance: Allowance) -> tuple[Event, dict[str, Statistic]]:
        """The events, whose shares add up to 1 in each branch, and their statistics."""
        if not self.recentring:
            statistics, shares = self._branch(Fraction(1), far=False)
            return Composed(tuple(allowance.spend(k, s, shares[k]) for k, s in statistics.items())), statistics
        first: dict[str, Statistic] = {"count": Total(Present(self.whole), nonnegative=True)}
        shares = {"count": _COUNT_SHARE}
        rest = 1 - _COUNT_SHARE
        near, own_near = self._branch(rest, far=False)
        before: dict[str, Statistic] = {"ranges": RangeCells(CellIndices(self._features))}
        shares["ranges"] = _RANGES_SHARE
        if self.counting:
            before["leverage"] = self.leverage
            shares["leverage"] = _LEVERAGE_SHARE
        far, own_far = self.far()._branch(rest - sum(shares[name] for name in before), far=True)
        far = {**before, **far}
        shares |= own_near | own_far

        def paid(part: Mapping[str, Statistic]) -> tuple[Event, ...]:
            return tuple(allowance.spend(name, statistic, shares[name]) for name, statistic in part.items())

        return Composed((*paid(first), Branches((Composed(paid(far)), Composed(paid(near)))))), {**first, **far, **near}

    @property
    def leverage(self) -> LeverageCells:
        """The histogram of |z|^2 that a cap is chosen by."""
        return LeverageCells(BoxLeverage(self._features))

    @property
    def _features(self) -> ModelMatrix:
        """The design that the ranges are taken of: a record counts if it does in the moments, but responses have no range."""
        return self.design

    def _branch(self, rest: Fraction, *, far: bool) -> tuple[dict[str, Statistic], dict[str, Fraction]]:
        (moments,) = self.names("moments", far=far)
        statistics: dict[str, Statistic] = {moments: self.moments}
        shares: dict[str, Fraction] = {}
        if self.robust:
            meats = self.names("meat", far=far)
            statistics |= {name: self.meat(k) for k, name in enumerate(meats)}
            shares |= dict.fromkeys(meats, rest * _MEAT_SHARE / self.outcomes)
            rest *= 1 - _MEAT_SHARE
        return statistics, {moments: rest, **shares}

    # back to moments --------------------------------------------------------------------------------------------------

    def decoded(self, values: Array, sd: float) -> Moments:
        """From integers in steps, and the SD of their noise on the diagonal, to A, b_k and q_k in scaled units."""
        p = len(self.design.terms) + 1
        statistic = self.moments
        rows = statistic.map
        assert isinstance(rows, LinearRows)
        if isinstance(rows, BlockRows):
            assert isinstance(statistic, BlockGram)
            a, b, c = (float(x) for x in statistic.blocks)
            u, r = float(rows.steps), float(rows.response_steps)
            units = (a * u * u, b * u * r, c * r * r)
        else:
            unit = float(rows.steps) ** 2
            units = (unit, unit * sqrt(self.g2), unit * self.g2)
        each = tuple(
            NoisyMoments(
                gram=values[:p, :p] / units[0],
                cross=values[:p, p + k] / units[1],
                square=float(values[p + k, p + k] / units[2]),
                sd_gram=sd / units[0],
                sd_cross=sd / sqrt(2) / units[1],
                sd_square=sd / units[2],
            )
            for k in range(self.outcomes)
        )
        return Moments(each, values[p:, p:] / units[2] if self.products else None)

    def decoded_meat(self, values: Array, sd: float, limit: float = 1.0) -> MiddleMatrix:
        """From integers in steps to a meat in scaled units."""
        rows = self.meat(0).map
        assert isinstance(rows, LinearRows)
        unit = float(rows.steps) ** 2 / limit**2
        return MiddleMatrix(values / unit, sd / unit)
