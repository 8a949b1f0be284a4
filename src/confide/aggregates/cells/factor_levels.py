"""Formulas of factors and nothing else, as blocks of levels: every record lies in one level of each block.

A term that is 0 or 1 (an indicator, a 0/1 column, a product of such) depends on the levels of its columns alone. Terms whose columns are
contained in one set of columns form a block; its levels are the combinations of the columns' levels, those that no term tells apart as
one. With e_b the one-hot row of a block's level and H_b (levels, p) the values that its terms have there, the row of the model matrix is

    d = sum_b H_b' e_b,

so that the normal equations of least squares are sums over cells: A = sum d d' follows from the counts of the levels of each block and of
the pairs of levels of two blocks, b = sum d t from the sums of the response in each level. `y ~ 1` is one block of one level, a formula
of one factor one block; `y ~ f + g` has two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.aggregates.column_codes import codes_of, columns_of
from confide.protocol.exact import digest
from confide.schema import Categorical, Design
from confide.schema.formulas.term import Indicator, Term

__all__ = ["Block", "FactorLevels"]


# Combinations of levels that one block may have, and cells in all: beyond, a release of whole tables is mostly noise.
_MOST_LEVELS = 1024
_MOST_CELLS = 2048
_MOST_BLOCKS = 12
# One table of all combinations of levels is drawn where it has at most this many times the cells of the blocks by themselves: its noise
# adds up over its cells, theirs over blocks (`docs/methods/factor_means.md`).
_WHOLE_TABLE = 1.25


@dataclass(frozen=True)
class Block:
    """The levels of some columns together.

    sizes: levels of each column; classes: the level of the block for each combination, the first column changing slowest; rows: what
    each of `terms` is at each level, shape (levels, terms); labels: what a level is called.
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
    def of(cls, design: Design, columns: tuple[str, ...], terms: tuple[int, ...]) -> Block:
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
    >>> one = FactorLevels.of(Design.of("y ~ f", schema))
    >>> one.levels, one.rows(0).tolist()
    ((3,), [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    >>> two = FactorLevels.of(Design.of("y ~ f + g", schema))
    >>> two.levels, two.pairs
    ((3, 3), ((0, 1),))
    """

    design: Design
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, design: Design) -> FactorLevels | None:
        """The blocks of a design; None where a term is no product of indicators and 0/1 columns, where no combination of terms is the
        constant 1 (a formula without an intercept and without all levels of a factor), or where there are too many levels.
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
        if found.cells > _MOST_CELLS or found.constant is None or not found._identified:
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
        """H_b (levels, p): what a level of a block adds to a row of the model matrix; the intercept stands in the first block."""
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
    def _identified(self) -> bool:
        return bool(np.linalg.eigvalsh(self.uniform)[0] > 1e-9)

    @property
    def saturated(self) -> bool:
        """Whether every level of the one block has a mean of its own."""
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
    def _bare(self) -> Design:
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


def _known(design: Design, term: Term) -> bool:
    """Whether the levels of a term's columns decide it: each is categorical or a 0/1 column."""
    return all(
        isinstance(column, Categorical) or (column.low, column.high, column.steps) == (0, 1, 2)
        for column in (design.schema[name] for name in term.columns)
    )


def _values(
    design: Design, columns: tuple[str, ...], sizes: tuple[int, ...], terms: tuple[int, ...]
) -> list[list[float]]:
    """What each of `terms` is at each combination of levels, the first column changing slowest: products of factors that are 0 or 1."""
    at = dict(zip(columns, np.indices(sizes).reshape(len(sizes), prod(sizes)), strict=True))
    found = np.ones((prod(sizes), len(terms)))
    for row, j in zip(found.T, terms, strict=True):
        for part in design.terms[j].parts:
            level = at[part.columns[0]]
            row *= (level == part.position) if isinstance(part, Indicator) else level
    return [list(map(float, row)) for row in found.tolist()]


def _label(design: Design, name: str, level: int) -> str:
    column = design.schema[name]
    return column.levels[level] if isinstance(column, Categorical) else str(level)
