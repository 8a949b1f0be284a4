"""Moments of bounded columns to order four that cost what their mean costs, by cell of a marginal, as exact integers.

u in [-1, 1] is the place of a value between its public bounds, v = u^2 and

    phi(u) = (u, 1 - v, u (1 - v), v (1 - v)),      |phi|^2 = v + (1 - v)^2 (1 + v + v^2) <= v + (1 - v) = 1,

because (1 - v)(1 + v + v^2) = 1 - v^3 <= 1. So a record that gives a count and phi, (T, S phi(u)), to its cell has squared length at
most T^2 + S^2, whether it gives u alone or all four. Sums of u, 1 - u^2, u (1 - u^2) and u^2 (1 - u^2) are the first four moments.

- columns: k columns side by side, (T, S phi(u_1), ..., S phi(u_k)): T^2 + k S^2.
- substitute: two records in one cell have the same count, and |S phi - S phi'|^2 <= 4 S^2 each: 4 k S^2; in two cells 2 (T^2 + k S^2).
  So T^2 = k S^2 is free: the sensitivity is sqrt(2) times that of add-remove.
- missing: one of several columns that is missing gives phi = 0 and S in a separate count of missing values, with |.|^2 = S^2.
- weights: w in [0, 1]: (w f, w (1 - w) f) has squared length w^2 (1 + (1 - w)^2) |f|^2 <= |f|^2. The reason is that the factor has the
  derivative 2 w (2 w^2 - 3 w + 2) > 0 (its discriminant is -7) and is 1 at w = 1. Their difference is the sum of w^2 f.

Everything is coded at 2^20 steps less room for rounding, and a block that breaks its bound, whatever the floats did, is reduced until
it holds.

The correlation of two columns from noisy joint moments to order four, with what sampling and noise make of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide._special import ndtri
from confide.core.exact import digest
from confide.errors import PlanError
from confide.schema import CodedFrame, Integer, ModelMatrix, Numeric, Schema
from confide.schema.formulas.design import checked_bounds
from confide.schema.formulas.expression import parse_expression
from confide.schema.formulas.terms import Term, numeric_term
from confide.sums.cells.cell_sums import CellRows
from confide.sums.coding import BITS, BOUND, round_within, steps
from confide.sums.columns import codes_of, columns_of, practice_codes

_ONE = 1 << BITS
# Integer steps in one unit of phi, so that rounding of its four entries stays within 2^20.
_STEPS = steps(1.0, 4)
# |S phi(u)| <= S of places in [-1, 1], which `Measure.places` sees to, in a dozen roundings of doubles
_LONGEST = np.array([float(_STEPS)])


def free_moments(u: Array, out: Array | None = None) -> Array:
    """phi(u), shape (4, rows): u, 1 - u^2, u (1 - u^2), u^2 (1 - u^2), by elementwise operations in a fixed order.

    out: where they are written.

    >>> free_moments(np.array([0.5, -1.0])).tolist()
    [[0.5, -1.0], [0.75, 0.0], [0.375, -0.0], [0.1875, 0.0]]
    """
    out = np.empty((4, len(u))) if out is None else out
    square = u * u
    out[0] = u
    np.subtract(1.0, square, out=out[1])
    np.multiply(u, out[1], out=out[2])
    np.multiply(square, out[1], out=out[3])
    return out


def taken_as(measures: Iterable[Measure]) -> str:
    """What forecasts take the SDs of these as."""
    silent = [f"{own.name} {float(f'{own.half / 3:.3g}'):,.10g}" for own in measures if own.typical is None]
    told = "without typical values in the schema the SD is taken as a sixth of the width of the bounds"
    return f"{told}: {', '.join(silent)}" if silent else ""


@dataclass(frozen=True)
class Measure:
    """A numeric column, or a derived term, between public bounds. Made by `Measure.of`.

    >>> import confide as cf
    >>> own = Measure.of("income", cf.Schema({"income": cf.Numeric(0, 8, steps=9)}))
    >>> own.middle, own.half, own.places(np.array([[0.0, 4.0, 8.0]]))[0].tolist()
    (4.0, 4.0, [-1.0, 0.0, 1.0])
    """

    design: ModelMatrix

    @classmethod
    def of(
        cls,
        text: str,
        schema: Schema,
        *,
        formula: str = "",
        term_bounds: Mapping[str, tuple[float, float]] | None = None,
    ) -> Measure:
        """The measure that an expression such as "income" or "log(income)" stands for; `PlanError` where it has no finite bounds."""
        shown = formula or text
        expression = parse_expression(text, schema, shown)
        if not expression.columns:
            raise PlanError(f"{text.strip()!r} in {shown!r} is a constant and has no mean", "name a numeric column")
        if expression.column is not None and schema[expression.column].kind == "categorical":
            raise PlanError(
                f"{expression.column!r} in {shown!r} is categorical and has no mean",
                f"ask for its shares, cf.tables.shares({expression.column!r}, ...)",
            )
        bounds = checked_bounds(term_bounds)
        term = numeric_term(expression, schema, shown, bounds)
        return cls(ModelMatrix(shown, schema, term, (), False, tuple(sorted(bounds.items()))))

    @property
    def term(self) -> Term:
        return self.design.response

    @property
    def name(self) -> str:
        return self.term.name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def middle(self) -> float:
        """The middle of the bounds, in the measure's units."""
        return float(self.term.low + (self.term.high - self.term.low) / 2)

    @property
    def half(self) -> float:
        """Half the width of the bounds."""
        return float((self.term.high - self.term.low) / 2)

    @property
    def typical(self) -> tuple[float, float] | None:
        """(mean, SD) to plan by: of normal values of which 95% lie in the typical spread that the schema states, None without one."""
        column = self.design.schema[self.name] if self.columns == (self.name,) else None
        if not isinstance(column, (Numeric, Integer)) or column.spread is None:
            return None
        low, high = column.spread.low, column.spread.high
        return (low + high) / 2, (high - low) / 2 / float(ndtri(0.975))

    @property
    def drops(self) -> bool:
        """Whether a value may be missing after its column's rule."""
        return self.term.on_missing == "drop"

    @cached_property
    def digest(self) -> str:
        facts = [self.design.schema[name].to_dict() for name in self.columns]
        return digest(
            ["measure", self.term.to_dict(), facts, [[n, a.hex(), b.hex()] for n, (a, b) in self.design.term_bounds]]
        )

    def places(self, codes: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """(u in [-1, 1], which records have a value, None for all), from the codes of `columns`."""
        coded, keep = self.design.codes(codes)
        u = coded[-1] * (2.0 / (self.term.steps - 1))
        u -= 1.0
        # codes are whole numbers on the grid: what the bound rests on is looked at all the same, and holds for what is no number, too
        if not (len(u) and u.min() >= -1.0 and u.max() <= 1.0):
            u = np.clip(np.nan_to_num(u, nan=0.0), -1.0, 1.0)
        return u, keep


def practice_values(measure: Measure, practice: CodedFrame) -> tuple[Array, NDArray[np.bool_]]:
    """The values of simulated records in the column's units, and which records have one."""
    codes, keep = measure.design.codes(practice_codes(measure, practice))
    known = np.ones(codes.shape[1], dtype=np.bool_) if keep is None else keep
    return np.asarray(measure.term.grid.decode(np.maximum(codes[-1], 0.0)), dtype=np.float64), known


@dataclass(frozen=True)
class OfMeasures:
    """What maps of several measures share."""

    measures: tuple[Measure, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(*self.measures)

    def places(self, codes: Array) -> tuple[Array, NDArray[np.bool_]]:
        """(u, which records have all values), shapes (p, rows), (rows,)."""
        values, keep = np.empty((len(self.measures), codes.shape[1])), np.ones(codes.shape[1], dtype=bool)
        for j, measure in enumerate(self.measures):
            values[j], own = measure.places(codes_of(measure, self.columns, codes))
            if own is not None:
                keep &= own
        return values, keep


def practice_places(measures: Sequence[Measure], practice: CodedFrame) -> Array:
    """u of simulated records that have all values, (records, p)."""
    own = OfMeasures(tuple(measures))
    values, keep = own.places(practice_codes(own, practice))
    return values.T[keep]


class _Measured(CellRows):
    """What blocks of measures share: the columns that they read."""

    measures: tuple[Measure, ...]
    #: Of the digest.
    kind: ClassVar[str]

    @property
    @abstractmethod
    def _setting(self) -> Any:
        """What a map has beside its measures, of the digest."""

    @property
    def digest(self) -> str:
        own = [measure.digest for measure in self.measures]
        return digest([self.kind, self.crossing.digest, list(self.axes), own, self._setting])

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.crossing, *self.measures)

    def placed(self, codes: Array, measure: int) -> tuple[Array, NDArray[np.bool_] | None]:
        """The places of one measure, and which records have a value of it."""
        own = self.measures[measure]
        return own.places(codes_of(own, self.columns, codes))


@dataclass(frozen=True)
class MomentRows(_Measured):
    """One record as (T, S phi(u_1), ..., S phi(u_k)) in the numbers of its cell, S just below 2^20.

    count: T, in steps. With several measures, each that may be missing has a fifth number behind its four: 2^20 where it is missing. With
    one measure a record without its value is in no cell.
    """

    measures: tuple[Measure, ...]
    count: int
    kind = "free moments"
    additive = True

    @property
    def steps(self) -> int:
        """S, integer steps in one unit of phi."""
        return _STEPS

    def counts_missing(self, measure: int) -> bool:
        """Whether missing values of a measure are counted."""
        return len(self.measures) > 1 and self.measures[measure].drops

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the numbers of each measure begin in a block; the count is number 0."""
        sizes = [5 if self.counts_missing(j) else 4 for j in range(len(self.measures))]
        return tuple(1 + sum(sizes[:j]) for j in range(len(self.measures)))

    @property
    def block(self) -> int:
        last = len(self.measures) - 1
        return self.starts[last] + (5 if self.counts_missing(last) else 4)

    @property
    def l2_squared(self) -> int:
        return self.count**2 + len(self.measures) * BOUND

    @property
    def together(self) -> int:
        return 4 * len(self.measures) * BOUND

    @property
    def l1(self) -> int:
        """|m|_1 <= sqrt(4) |m|_2 for each measure."""
        return self.count + len(self.measures) * 2 * _ONE

    @property
    def _setting(self) -> int:
        return self.count

    def rows(self, codes: Array) -> tuple[Whole, Array]:
        place = self.crossing.places(codes[: len(self.crossing.columns)], self.axes)
        out = np.empty((self.block, codes.shape[1]))
        out[0] = float(self.count)
        for j, start in enumerate(self.starts):
            u, keep = self.placed(codes, j)
            own = free_moments(u, out[start : start + 4])
            own *= float(_STEPS)
            round_within(own, length=_LONGEST)
            if self.counts_missing(j):
                out[start + 4] = 0.0
            if keep is not None and self.counts_missing(j):
                out[start : start + 4, ~keep] = 0.0
                out[start + 4, ~keep] = float(_ONE)
            elif keep is not None:
                place[~keep] = self.cells
        return place, out


def count_steps(measures: int, relation: str) -> int:
    """T of `MomentRows`: free under substitution.

    Under add-remove T^2 : S^2 = sqrt(k)/2, the least noise, summed over k measures, of means half-way to their bounds.

    >>> count_steps(1, "add-remove") / 2**20, count_steps(2, "substitute") / 2**20
    (0.70710..., 1.41421...)
    """
    if relation == "substitute":
        return isqrt(measures * BOUND)
    return isqrt(isqrt(measures * BOUND * BOUND // 4))


@dataclass(frozen=True, eq=False)
class PairSums:
    """Noisy sums of products of moments, M[i, j] = sum phi_i(u) phi_j(v) with phi_0 = 1, and their noise variances, (5, 5) each."""

    sums: Array
    noise: Array

    @property
    def size(self) -> float:
        return max(float(self.sums[0, 0]), 1.0)

    def moments(self) -> tuple[float, ...]:
        """(mean u, mean v, variance u, variance v, covariance) as released; variances may be negative."""
        m, n = self.sums, self.size
        mu, mv = float(m[1, 0]) / n, float(m[0, 1]) / n
        return mu, mv, 1 - float(m[2, 0]) / n - mu * mu, 1 - float(m[0, 2]) / n - mv * mv, float(m[1, 1]) / n - mu * mv

    def correlation(self) -> tuple[float, float, float]:
        """(r, its sampling variance, its noise variance)."""
        mu, mv, vu, vv, cov = self.moments()
        r = float(np.clip(cov / sqrt(vu * vv), -0.9999, 0.9999))
        # the influence of a record on r as k0 + k1 u + k2 v + k3 u^2 + k4 v^2 + k5 u v
        both = 1 / sqrt(vu * vv)
        k5, k3, k4 = both, -r / (2 * vu), -r / (2 * vv)
        k1, k2 = -mv * both - 2 * mu * k3, -mu * both - 2 * mv * k4
        k0 = mu * mv * both + mu * mu * k3 + mv * mv * k4
        # u^2 is released as 1 - u^2
        weights = {(0, 0): k0 + k3 + k4, (1, 0): k1, (0, 1): k2, (2, 0): -k3, (0, 2): -k4, (1, 1): k5}
        noise = sum(weight**2 * float(self.noise[at]) for at, weight in weights.items()) / self.size**2
        sampling = max((1 - r * r) ** 2, self._influence(r, mu, mv, vu, vv)) / self.size
        return r, sampling, noise

    def _influence(self, r: float, mu: float, mv: float, vu: float, vv: float) -> float:
        """E (ab - r (a^2 + b^2)/2)^2 of standardized columns a and b."""
        raw = self._raw()

        def central(i: int, j: int) -> float:
            total = sum(
                comb(i, p) * comb(j, q) * (-mu) ** (i - p) * (-mv) ** (j - q) * raw[p, q]
                for p in range(i + 1)
                for q in range(j + 1)
            )
            return float(total) / float(vu ** (i / 2) * vv ** (j / 2))

        m22, m31, m13, m40, m04 = (central(*at) for at in ((2, 2), (3, 1), (1, 3), (4, 0), (0, 4)))
        return float(m22 + r * r / 4 * (m40 + 2 * m22 + m04) - r * (m31 + m13))

    def _raw(self) -> Array:
        """E u^i v^j from the released moments."""
        m = self.sums / self.size
        # u^0, u, u^2, u^3, u^4 in phi_0 to phi_4
        turn = np.array(
            [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 0, -1, 0, 0], [0, 1, 0, -1, 0], [1, 0, -1, 0, -1]], dtype=float
        )
        return np.asarray(turn @ m @ turn.T)
