"""Formulas of factors and nothing else, as blocks of levels: every record lies in one level of each block.

A term that is 0 or 1 (an indicator, a 0/1 column, a product of these) depends on the levels of its columns alone. Terms whose columns
are contained in one set of columns form a block. Its levels are the combinations of the columns' levels, those that no term tells apart
as one. With e_b the one-hot row of a block's level and H_b (levels, p) the values that its terms have there, the row of the model
matrix is

    d = sum_b H_b' e_b,

so that the normal equations of least squares are sums over cells. A = sum d d' follows from the counts of the levels of each block and
of the pairs of levels of two blocks, b = sum d t from the sums of the response in each level. `y ~ 1` is one block of one level, a
formula of one factor one block; `y ~ f + g` has two.

Counts of levels and sums of a response in them: what least squares on factors needs, as exact integers.

A record lies in one level of each block of a formula (`sums`). It adds an integer U_b to the count of its level in block b, U_ab to the
count of its pair of levels in blocks a and b, and W_b T to the sum of its level in block b. T = rint(2^20 t) in [-2^20, 2^20] is the
clipped response. Units are public, so that blocks with many levels get less noise.

Sensitivity, squared, exactly. Under add-remove one record's row is sum U^2 + T^2 sum W^2 <= sum U^2 + 2^40 sum W^2. Under substitution
consider the blocks in which two records have the same level (the set s). There counts stay and sums move by W_b (T - T'). In every
other block two counts move by U_b and two sums by W_b T and W_b T'. A pair of levels is the same only where both blocks are in s. So a
change is

    sum_{b not in s} 2 U_b^2 + sum_{ab not both in s} 2 U_ab^2 + (T - T')^2 sum_{b in s} W_b^2 + (T^2 + T'^2) sum_{b not in s} W_b^2,

at most with 4 2^40 and 2 2^40 for the last two, which opposite ends of the response attain at once. The bound is the largest over all
sets s that contain the blocks of one level. A record may also give way to one that is dropped, which is the case of add-remove. One
block with U = 2^20 W: 4 2^40 W^2 whether the level stays or changes, as the sums alone would need.

Everything else is a function of residuals r = t - clip(sum_b fit_b, -1, 1) at fits of earlier noisy outputs, whose bounds hold for any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import isqrt, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core import RecordMap
from confide.core.exact import digest
from confide.schema import Categorical, ModelMatrix
from confide.schema.formulas.terms import Indicator, Term
from confide.sums.cells.cell_sums import Histogram, WholeSums
from confide.sums.coding import BITS, BOUND, Codes, round_within, steps
from confide.sums.columns import codes_of, columns_of

# Combinations of levels that one block may have, and cells in all: beyond, a release of whole tables is mostly noise.
_MOST_LEVELS = 1024
_MOST_CELLS = 2048
_MOST_BLOCKS = 12
# One table of all combinations of levels is drawn where it has at most this many times the cells of the blocks by themselves: its noise
# adds up over its cells, theirs over blocks (`evidence/methods/factor_means.md`).
_WHOLE_TABLE = 1.25


@dataclass(frozen=True)
class Block:
    """The levels of some columns together.

    sizes: levels of each column; classes: the level of the block for each combination, the first column changing slowest.

    rows: what each of `terms` is at each level, shape (levels, terms); labels: what a level is called.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    classes: tuple[int, ...]
    terms: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    labels: tuple[str, ...]

    @property
    def levels(self) -> int:
        return len(self.rows)

    @property
    def name(self) -> str:
        """The columns, as in a formula: "f", or "f:g"."""
        return ":".join(self.columns) or "1"

    @classmethod
    def of(cls, design: ModelMatrix, columns: tuple[str, ...], terms: tuple[int, ...]) -> Block:
        """The block of some columns, with the terms whose values it decides."""
        sizes = tuple(design.schema[name].steps for name in columns)
        places: dict[tuple[float, ...], int] = {}
        classes, labels = [], []
        for levels, values in zip(product(*map(range, sizes)), _values(design, columns, sizes, terms), strict=True):
            row = tuple(values)
            if row not in places:
                places[row] = len(places)
                labels.append(":".join(_label(design, *one) for one in zip(columns, levels, strict=True)))
            classes.append(places[row])
        return cls(columns, sizes, tuple(classes), terms, tuple(places), tuple(labels))


@dataclass(frozen=True)
class FactorLevels:
    """A design of factors alone as blocks of levels. Made by `FactorLevels.of`.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b", "c"]), "g": cf.Categorical(["u", "v", "w"]), "y": cf.Numeric(0, 1)})
    >>> one = FactorLevels.of(ModelMatrix.of("y ~ f", schema))
    >>> one.levels, one.rows(0).tolist()
    ((3,), [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> two = FactorLevels.of(ModelMatrix.of("y ~ f + g", schema))
    >>> two.levels, two.pairs
    ((3, 3), ((0, 1),))
    """

    design: ModelMatrix
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, design: ModelMatrix) -> FactorLevels | None:
        """The blocks of a design; None where there are none.

        A term may not be a product of indicators and 0/1 columns. Or no combination of terms is the constant 1 (a formula without an
        intercept and without all levels of a factor). Or there are too many levels.
        """
        if not all(term.binary and _known(design, term) for term in design.terms):
            return None
        used = columns_of(*design.terms)
        sets = _largest(frozenset(term.columns) for term in design.terms)
        if prod(design.schema[name].steps for name in used) <= _WHOLE_TABLE * sum(
            prod(design.schema[name].steps for name in columns) for columns in sets
        ):
            sets = [frozenset(used)]
        if len(sets) > _MOST_BLOCKS or any(
            prod(design.schema[name].steps for name in columns) > _MOST_LEVELS for columns in sets
        ):
            return None
        blocks, left = [], list(range(len(design.terms)))
        for columns in sets or [frozenset()]:
            own = tuple(j for j in left if set(design.terms[j].columns) <= columns)
            left = [j for j in left if j not in own]
            blocks.append(Block.of(design, tuple(name for name in used if name in columns), own))
        found = cls(design, tuple(blocks))
        if found.cells > _MOST_CELLS or found.constant is None or np.linalg.eigvalsh(found.uniform)[0] <= 1e-9:
            return None
        return found

    @property
    def levels(self) -> tuple[int, ...]:
        """How many levels each block has."""
        return tuple(block.levels for block in self.blocks)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of blocks, whose levels are counted together."""
        return tuple(combinations(range(len(self.blocks)), 2))

    @property
    def cells(self) -> int:
        """How many counts there are."""
        return sum(self.levels) + sum(self.levels[a] * self.levels[b] for a, b in self.pairs)

    @property
    def width(self) -> int:
        """p, the number of coefficients."""
        return len(self.design.names)

    def rows(self, block: int) -> Array:
        """H_b (levels, p): what a level of a block adds to a row of the model matrix; the intercept is in the first block."""
        own = self.blocks[block]
        shift = int(self.design.intercept)
        found = np.zeros((own.levels, self.width))
        if shift and block == 0:
            found[:, 0] = 1.0
        found[:, [shift + j for j in own.terms]] = np.array(own.rows).reshape(own.levels, len(own.terms))
        return found

    def compared(self, block: int) -> NDArray[np.bool_]:
        """Which levels of a block each coefficient is about, shape (p, levels): "f[T.b]" those of b and of the base.

        A function of the block's levels is a combination of its columns of H and of the constant; a coefficient is about the levels whose
        values it depends on. What depends on the constant, the intercept or all levels of another factor, is about the base.
        """
        rows = self.rows(block)
        own = np.flatnonzero(np.abs(rows).sum(axis=0) > 0)
        inside = np.linalg.matrix_rank(np.column_stack([rows[:, own], np.ones(len(rows))])) == len(own)
        full = rows[:, own] if inside else np.column_stack([rows[:, own], np.ones(len(rows))])
        used = np.abs(np.linalg.pinv(full)) > 1e-9
        found = np.zeros((self.width, len(rows)), dtype=np.bool_)
        found[own] = used[: len(own)]
        constant = self.constant
        if not inside and constant is not None:
            found[np.abs(constant) > 1e-9] |= used[-1]
        return found

    @cached_property
    def constant(self) -> Array | None:
        """c (p,) with d'c = 1 for every record, None where there is none."""
        if self.design.intercept:
            return np.asarray(np.eye(self.width)[0])
        for block in range(len(self.blocks)):
            rows = self.rows(block)
            found = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
            if np.abs(rows @ found - 1.0).max() < 1e-9:
                return np.asarray(found.round(9))
        return None

    @cached_property
    def uniform(self) -> Array:
        """A for one record that is equally likely to be in any cell, shape (p, p)."""
        parts = [self.rows(block) for block in range(len(self.blocks))]
        gram = sum(part.T @ part / len(part) for part in parts)
        for a, b in self.pairs:
            cross = np.outer(parts[a].mean(axis=0), parts[b].mean(axis=0))
            gram = gram + cross + cross.T
        return np.asarray(gram)

    @property
    def saturated(self) -> bool:
        """Whether every level of the one block has its own mean."""
        return len(self.blocks) == 1 and self.levels[0] == self.width

    @property
    def told_by_sums(self) -> bool:
        """Whether sums of squared residuals follow from counts and sums: one block, and a response of two values."""
        return len(self.blocks) == 1 and self.design.response.steps == 2

    # records --------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The schema columns that records are read from."""
        return self.design.columns

    @property
    def digest(self) -> str:
        return digest(["levels of factors", self.design.to_dict(), [list(block.columns) for block in self.blocks]])

    @cached_property
    def _bare(self) -> ModelMatrix:
        return replace(self.design, terms=(), term_bounds=())

    @cached_property
    def _lookup(self) -> tuple[Whole, ...]:
        return tuple(np.array(block.classes, dtype=np.int64) for block in self.blocks)

    def placed(self, codes: Array) -> tuple[list[Whole], Array, NDArray[np.bool_]]:
        """The level of each record in each block, its response t in [-1, 1], and which records count.

        codes: (columns, rows) as a source hands them. Levels and response of records that do not count are finite and mean nothing.
        """
        scaled, keep = self._bare.codes(codes_of(self._bare, self.columns, codes))
        whole = np.ones(codes.shape[1], dtype=np.bool_) if keep is None else keep
        for name in columns_of(*self.blocks):
            whole = whole & (codes[self.columns.index(name)] >= 0)
        t = scaled[-1] * (2.0 / (self.design.response.steps - 1))
        t -= 1.0
        t = np.clip(np.nan_to_num(t, nan=0.0), -1.0, 1.0)
        levels = []
        for block, lookup in zip(self.blocks, self._lookup, strict=True):
            number = np.zeros(codes.shape[1], dtype=np.int64)
            for name, size in zip(block.columns, block.sizes, strict=True):
                number *= size
                number += np.clip(codes[self.columns.index(name)], 0, size - 1).astype(np.int64)
            levels.append(lookup[number])
        return levels, t, whole


def _largest(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that no other one contains, the first of equal ones, in order."""
    found = list(dict.fromkeys(sets))
    return [one for one in found if not any(one < other for other in found)]


def _known(design: ModelMatrix, term: Term) -> bool:
    """Whether the levels of a term's columns decide it: each is categorical or a 0/1 column."""
    return all(
        isinstance(column, Categorical) or (column.low, column.high, column.steps) == (0, 1, 2)
        for column in (design.schema[name] for name in term.columns)
    )


def _values(
    design: ModelMatrix, columns: tuple[str, ...], sizes: tuple[int, ...], terms: tuple[int, ...]
) -> list[list[float]]:
    """What each of `terms` is at each combination of levels, the first column changing slowest: products of factors that are 0 or 1."""
    at = dict(zip(columns, np.indices(sizes).reshape(len(sizes), prod(sizes)), strict=True))
    found = np.ones((prod(sizes), len(terms)))
    for row, j in zip(found.T, terms, strict=True):
        for part in design.terms[j].parts:
            level = at[part.columns[0]]
            row *= (level == part.position) if isinstance(part, Indicator) else level
    return [list(map(float, row)) for row in found.tolist()]


def _label(design: ModelMatrix, name: str, level: int) -> str:
    column = design.schema[name]
    return column.levels[level] if isinstance(column, Categorical) else str(level)


Fits = tuple[tuple[float, ...], ...]

_ONE = 1 << BITS
# Rows that are added at once: 2^20 of entries up to 2^30 are exact in doubles.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class LevelRows(RecordMap):
    """One record as units in the places of its levels, shape (width, records); zeros for a dropped record.

    counts: U_b of each block; pairs: U_ab, in the order of `sums.pairs`; sums: W_b. The order of the entries: counts of the blocks,
    counts of the pairs, sums of the blocks.
    """

    levels: FactorLevels
    counts: tuple[int, ...]
    pairs: tuple[int, ...]
    sums: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.levels.columns

    @property
    def width(self) -> int:
        return self.levels.cells + sum(self.levels.levels)

    @property
    def units(self) -> tuple[int, ...]:
        """What each entry is counted in: U, and W for a response in steps of 2^-20."""
        sizes = self.levels.levels
        parts = [*zip(self.counts, sizes, strict=True)]
        parts += [(unit, sizes[a] * sizes[b]) for unit, (a, b) in zip(self.pairs, self.levels.pairs, strict=True)]
        parts += [*zip(self.sums, sizes, strict=True)]
        return tuple(unit for unit, size in parts for _ in range(size))

    @property
    def l1(self) -> int:
        return sum(self.counts) + sum(self.pairs) + _ONE * sum(self.sums)

    @property
    def l2_squared(self) -> int:
        return sum(u * u for u in (*self.counts, *self.pairs)) + BOUND * sum(w * w for w in self.sums)

    @property
    def digest(self) -> str:
        return digest(["level rows", self.levels.digest, list(self.counts), list(self.pairs), list(self.sums)])

    def entries(self, codes: Codes) -> tuple[list[tuple[int, int, Whole, Array | None]], Array]:
        """(first entry, entries, place of each record, weight or None for 1) for each part, and T; a dropped record has the place
        after the last entry of every part.
        """
        placed, t, keep = self.levels.placed(codes)
        t *= float(_ONE)
        np.rint(t, out=t)
        sizes = self.levels.levels
        numbers = [*placed, *(placed[a] * sizes[b] + placed[b] for a, b in self.levels.pairs)]
        widths = [*sizes, *(sizes[a] * sizes[b] for a, b in self.levels.pairs)]
        parts: list[tuple[int, int, Whole, Array | None]] = []
        start = 0
        for number, width in zip(numbers, widths, strict=True):
            parts.append((start, width, np.where(keep, number, width), None))
            start += width
        for number, width in zip(placed, sizes, strict=True):
            parts.append((start, width, np.where(keep, number, width), t))
            start += width
        return parts, t

    def __call__(self, codes: Codes) -> Codes:
        parts, _ = self.entries(codes)
        out = np.zeros((self.width, codes.shape[1]))
        units, records = self.units, np.arange(codes.shape[1])
        for start, width, place, weight in parts:
            own = np.zeros((width + 1, codes.shape[1]))
            own[place, records] = float(units[start]) if weight is None else weight * float(units[start])
            out[start : start + width] = own[:width]
        return out


@dataclass(frozen=True)
class LevelSums(WholeSums):
    """The rows of all records added up, shape (width,), with the exact sensitivity of both relations."""

    map: LevelRows

    @property
    def shape(self) -> tuple[int]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        alone = Fraction(self.map.l2_squared)
        if relation != "substitute":
            return alone
        return max(alone, *(Fraction(self._moved(same)) for same in self._patterns()))

    def _patterns(self) -> list[tuple[bool, ...]]:
        """In which blocks two records may have the same level: a block of one level has no other."""
        choices = [(True,) if size == 1 else (True, False) for size in self.map.levels.levels]
        return list(product(*choices))

    def _moved(self, same: tuple[bool, ...]) -> int:
        rows = self.map
        total = sum(2 * u * u for u, stays in zip(rows.counts, same, strict=True) if not stays)
        total += sum(
            2 * u * u for u, (a, b) in zip(rows.pairs, rows.levels.pairs, strict=True) if not (same[a] and same[b])
        )
        return total + BOUND * sum((4 if stays else 2) * w * w for w, stays in zip(rows.sums, same, strict=True))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def update(self, state: Whole, codes: Codes) -> Whole:
        parts, _ = self.map.entries(codes)
        for start, width, place, weight in parts:
            state[start : start + width] += added(place, weight, width)
        return state

    def value(self, state: Whole) -> NDArray[Any]:
        return np.asarray(state.astype(object) * np.array(self.map.units, dtype=object))


def added(place: Whole, weight: Array | None, width: int) -> Whole:
    """Sums of integer weights (1 when not given) by place, exactly; what lies in the place after the last is excluded."""
    if weight is None:
        return np.asarray(np.bincount(place, minlength=width + 1)[:width], dtype=np.int64)
    total = np.zeros(width, dtype=np.int64)
    for start in range(0, len(place), _CHUNK):
        stop = start + _CHUNK
        sums = np.bincount(place[start:stop], weights=weight[start:stop], minlength=width + 1)
        total += sums[:width].astype(np.int64)
    return total


# residuals ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Residuals(RecordMap):
    """r = t - clip(sum_b fit_b, -1, 1) of each record; fits: what each level of each block adds, 0 when left out."""

    levels: FactorLevels
    fits: Fits = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.levels.columns

    def residuals(self, codes: Codes) -> tuple[list[Whole], Array, NDArray[np.bool_]]:
        """The level in each block, r, and which records count."""
        placed, t, keep = self.levels.placed(codes)
        fit = np.zeros_like(t)
        for own, place in zip(self.fits, placed, strict=True) if self.fits else ():
            fit += np.array(own, dtype=np.float64)[place]
        t -= np.clip(np.nan_to_num(fit), -1.0, 1.0)
        return placed, t, keep


@dataclass(frozen=True)
class ResidualIndices(_Residuals):
    """The cell of |r| among eight public or noisy edges: 1 to 9, and 0 for a record that is dropped."""

    edges: tuple[float, ...] = ()
    width: ClassVar[int] = 1
    cells: ClassVar[int] = 9
    l1: ClassVar[int] = 9
    l2_squared: ClassVar[int] = 81

    def at(self, fits: Fits, edges: Array) -> ResidualIndices:
        """The map at fits and edges of earlier noisy outputs, put in order: a search among others would depend on the batch."""
        return replace(self, fits=fits, edges=tuple(float(edge) for edge in np.sort(edges[:8])))

    @property
    def digest(self) -> str:
        # fits and edges are left out: the bound holds for any, and the plan does not know them yet
        return digest(["cells of residuals", self.levels.digest])

    def __call__(self, codes: Codes) -> Codes:
        _, r, keep = self.residuals(codes)
        cell = 1.0 + np.searchsorted(np.array(self.edges, dtype=np.float64), np.abs(r), side="left")
        return np.asarray((cell * keep)[None, :])


@dataclass(frozen=True)
class ResidualCells(Histogram):
    """How many records lie in each of nine cells of |r|: one record moves one count by 1, a substitute two."""

    map: ResidualIndices

    def at(self, fits: Fits, edges: Array) -> ResidualCells:
        """The statistic at fits and edges of earlier noisy outputs."""
        return ResidualCells(self.map.at(fits, edges))


@dataclass(frozen=True)
class SquaredRows(_Residuals):
    """One record as rint(2^40 min(r^2/reach^2, 1)), for the residual sum of squares: a single number that is never negative."""

    reach: float = 2.0
    width: ClassVar[int] = 1
    l1: ClassVar[int] = BOUND
    l2_squared: ClassVar[int] = BOUND**2
    unit: ClassVar[int] = BOUND

    def at(self, fits: Fits, reach: float) -> SquaredRows:
        """The map at fits and a reach of earlier noisy outputs."""
        return replace(self, fits=fits, reach=float(reach))

    @property
    def digest(self) -> str:
        return digest(["squared residuals", self.levels.digest])

    def __call__(self, codes: Codes) -> Codes:
        _, r, keep = self.residuals(codes)
        return np.asarray((share(r, self.reach) * float(self.unit)).round()[None, :] * keep)


@dataclass(frozen=True)
class _SquareRows(_Residuals):
    """One record as rint(2^30 min(r^2/reach^2, 1)) in the place of its level of the one block."""

    reach: float = 2.0
    unit: ClassVar[int] = 1 << 30
    l1: ClassVar[int] = 1 << 30
    l2_squared: ClassVar[int] = 1 << 60

    @property
    def width(self) -> int:
        return self.levels.levels[0]

    @property
    def digest(self) -> str:
        return digest(["squared residuals by level", self.levels.digest])

    def entries(self, codes: Codes) -> tuple[Whole, Array]:
        placed, r, keep = self.residuals(codes)
        return np.where(keep, placed[0], self.width), (share(r, self.reach) * float(self.unit)).round()

    def __call__(self, codes: Codes) -> Codes:
        place, weight = self.entries(codes)
        out = np.zeros((self.width + 1, codes.shape[1]))
        out[place, np.arange(codes.shape[1])] = weight
        return out[:-1]


@dataclass(frozen=True)
class LevelSquares(WholeSums):
    """Sums of min(r^2/reach^2, 1) by level of the one block, 2^30 steps each: never negative, so that a substitute moves two levels by
    2^30 each or one by 2^30. States are Python integers: 2^33 records would fill 64 bits.
    """

    map: _SquareRows

    @classmethod
    def of(cls, levels: FactorLevels) -> LevelSquares:
        return cls(_SquareRows(levels))

    @property
    def shape(self) -> tuple[int]:
        return (self.map.width,)

    def at(self, fits: Fits, reach: float) -> LevelSquares:
        """The statistic at fits and a reach of earlier noisy outputs."""
        return LevelSquares(replace(self.map, fits=fits, reach=float(reach)))

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared * (2 if relation == "substitute" and self.map.width > 1 else 1))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" and self.map.width > 1 else 1))

    def zero(self) -> NDArray[Any]:
        return np.zeros(self.shape, dtype=object)

    def update(self, state: NDArray[Any], codes: Codes) -> NDArray[Any]:
        state += added(*self.map.entries(codes), self.map.width).astype(object)
        return state


@dataclass(frozen=True)
class LevelScores(_Residuals):
    """One record as v clip(r/reach, -1, 1) in integer steps, v = sum_b axes_b' e_b with |v| <= 1: its Gram matrix is the meat of a robust
    covariance of several factors. A row that is longer is cut, so that |m|^2 <= 2^40 whatever axes, fits and reach are.

    axes: what each level of each block adds to v, shape (levels, p) for each block.
    """

    axes: tuple[tuple[tuple[float, ...], ...], ...] = ()
    reach: float = 2.0
    l2_squared: ClassVar[int] = BOUND

    def at(self, fits: Fits, reach: float) -> LevelScores:
        """The map at fits and a reach of earlier noisy outputs."""
        return replace(self, fits=fits, reach=float(reach))

    @property
    def width(self) -> int:
        return self.levels.width

    @property
    def l1(self) -> int:
        return isqrt(self.width * BOUND) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of v r/reach."""
        return steps(1.0, self.width)

    @property
    def digest(self) -> str:
        return digest(["level scores", self.levels.digest])

    def __call__(self, codes: Codes) -> Codes:
        placed, r, keep = self.residuals(codes)
        with np.errstate(all="ignore"):
            r /= self.reach
            np.clip(r, -1.0, 1.0, out=r)
            r *= float(self.steps)
            r *= keep
            v = np.zeros((self.width, codes.shape[1]))
            for own, place in zip(self.axes, placed, strict=True):
                for row, values in zip(v, np.array(own, dtype=np.float64).T, strict=True):
                    row += values[place]
            v *= r
            return round_within(v)


def share(r: Array, reach: float) -> Array:
    """min(r^2/reach^2, 1), 1 where it is not a number."""
    with np.errstate(all="ignore"):
        part = r / reach
        part *= part
    return np.asarray(np.minimum(np.nan_to_num(part, nan=1.0, posinf=1.0), 1.0))
