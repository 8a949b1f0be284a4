"""Released marginals put together by generalised least squares: tables whose margins add up, with their noise.

Each residual space a (the contrasts of exactly the attributes in a) is seen in every released marginal A >= a, as the sum of A over the
other attributes, centred along each attribute of a. These agree but for noise of variance n_A/n_a V_A in each cell, so the best is their
mean with weights 1/(n_A V_A). A table is the sum of its components; projections are Kronecker products, so nothing larger than a marginal
is formed.

With spread_a = 1/sum over A >= a of 1/(n_A V_A), two cells of B and C have the noise covariance

    (1/(n_B n_C)) sum over a <= B and C of spread_a prod over i in a of (d_i [same level] - 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Self

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes

__all__ = ["Margins", "UnitMargins", "subsets"]


# Of a noise variance.
_QUIET = 1e-12


def subsets(axes: Axes) -> Iterator[Axes]:
    """All subsets, the smallest first.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for size in range(len(axes) + 1):
        yield from combinations(axes, size)


@dataclass(frozen=True, eq=False)
class Margins:
    """sizes: levels of each attribute; components: a -> (numbers, *levels of a), the sums on a, centred; spread: a -> spread_a, in squared
    steps. Each number of a block has the same spread; total: of number 0, when it is public and has no noise.

    >>> table = np.arange(6.0).reshape(1, 2, 3)
    >>> own = Margins.of((2, 3), {(0, 1): (table, 1.0), (): (np.array([15.0]), 1.0)})
    >>> own.table((0,))[0].round(9).tolist(), round(own.variance(()), 4)
    ([3.0, 12.0], 0.8571)
    """

    sizes: tuple[int, ...]
    components: Mapping[Axes, Array]
    spread: Mapping[Axes, float]
    total: float | None = None

    @classmethod
    def of(
        cls, sizes: Sequence[int], released: Mapping[Axes, tuple[Array, float]], *, total: float | None = None
    ) -> Margins:
        """From released marginals: axes -> (numbers (block, *levels), noise variance of each)."""
        # in one order, whatever that of a file: sums of floats depend on it
        return cls.joined(sizes, sorted(released.items(), key=lambda own: own[0]), total=total)

    @classmethod
    def joined(
        cls,
        sizes: Sequence[int],
        released: Sequence[tuple[Axes, tuple[Array, float]]],
        *,
        total: float | None = None,
    ) -> Margins:
        """The same where a marginal may have been released more than once, with independent noise."""
        sums: dict[Axes, Array] = {}
        precision: dict[Axes, float] = {}
        for axes, (table, variance) in released:
            weight = 1.0 / (prod(table.shape[1:]) * variance)
            for part in subsets(axes):
                others = tuple(1 + place for place, axis in enumerate(axes) if axis not in part)
                seen = _centred(table.sum(axis=others) if others else table)
                sums[part] = sums.get(part, 0.0) + weight * seen
                precision[part] = precision.get(part, 0.0) + weight
        components = {part: values / precision[part] for part, values in sums.items()}
        if total is not None:
            whole = components[()].copy()
            whole[0] = total
            components[()] = whole
        return cls(tuple(sizes), components, {part: 1.0 / own for part, own in precision.items()}, total)

    def rearranged(self, order: Sequence[int]) -> Margins:
        """What is known of some of the attributes, in an order of their own: attribute k of the new one is order[k] of this."""
        place = {axis: new for new, axis in enumerate(order)}
        components, spread = {}, {}
        for part, values in self.components.items():
            if all(axis in place for axis in part):
                moved = [place[axis] for axis in part]
                turn = sorted(range(len(part)), key=moved.__getitem__)
                new = tuple(sorted(moved))
                components[new] = values.transpose(0, *(1 + k for k in turn))
                spread[new] = self.spread[part]
        return Margins(tuple(self.sizes[axis] for axis in order), components, spread, self.total)

    def cells(self, axes: Axes) -> int:
        return prod(self.sizes[axis] for axis in axes)

    def table(self, axes: Axes) -> Array:
        """The marginal (block, *levels), all its margins being those of every other one."""
        parts = {part: self.components[part] for part in subsets(axes)}
        return self._assembled(axes, parts)

    def _assembled(self, axes: Axes, parts: Mapping[Axes, Array]) -> Array:
        found: Array | float = 0.0
        for part, values in parts.items():
            spread_out = values.reshape(values.shape[0], *(self.sizes[axis] if axis in part else 1 for axis in axes))
            found = found + spread_out * (self.cells(part) / self.cells(axes))
        return np.asarray(found)

    def _spread(self, part: Axes, counts: bool) -> float:
        return 0.0 if counts and self.total is not None and not part else self.spread[part]

    def variance(self, axes: Axes, *, counts: bool = False) -> float:
        """The noise variance of a cell of a marginal; counts: of number 0, whose total may be known."""
        own = sum(self._spread(part, counts) * prod(self.sizes[axis] - 1 for axis in part) for part in subsets(axes))
        return float(own / self.cells(axes) ** 2)

    def covariance(
        self, first: tuple[Axes, Sequence[int]], second: tuple[Axes, Sequence[int]], *, counts: bool = False
    ) -> float:
        """Between two cells, each (axes, the level along each)."""
        one, other = dict(zip(*first, strict=True)), dict(zip(*second, strict=True))
        common = tuple(axis for axis in first[0] if axis in other)
        total = sum(
            self._spread(part, counts) * prod(self.sizes[axis] - 1 if one[axis] == other[axis] else -1 for axis in part)
            for part in subsets(common)
        )
        return float(total / (self.cells(first[0]) * self.cells(second[0])))

    def noise(
        self, asked: Sequence[Axes], draws: int, generator: np.random.Generator, *, counts: bool = False
    ) -> list[Array]:
        """Draws of the noise of marginals, each (draws, *levels), all from the same noise."""
        parts = sorted({part for axes in asked for part in subsets(axes)}, key=lambda part: (len(part), part))
        drawn = {}
        for part in parts:
            shape = (draws, *(self.sizes[axis] for axis in part))
            scale = (self._spread(part, counts) / self.cells(part)) ** 0.5
            drawn[part] = _centred(generator.standard_normal(shape)) * scale
        return [self._assembled(axes, {part: drawn[part] for part in subsets(axes)}) for axes in asked]

    @cached_property
    def quiet(self) -> Self:
        """The same numbers as if they had next to no noise, for what sampling alone would say: not none, which some numbers are over."""
        return replace(self, spread={part: _QUIET * own for part, own in self.spread.items()})

    def contains(self, axes: Axes) -> bool:
        """Whether a marginal follows from what was released."""
        return all(part in self.components for part in subsets(axes))

    @cached_property
    def largest(self) -> int:
        """Cells of the largest marginal."""
        return max(self.cells(axes) for axes in self.components)


@dataclass(frozen=True, eq=False)
class UnitMargins(Margins):
    """Margins of units that lie in several cells: only some numbers of a block add up from cell to margin, by which least squares goes.

    raw: the released marginals as they are, with the noise variance of each, for the other numbers; linear: which numbers add up. A block
    is of two halves, sums of omega m and of omega (1 - omega) m (`aggregates.cells.unit_blocks`).
    """

    raw: Mapping[Axes, tuple[Array, float]] = field(default_factory=dict)
    linear: tuple[int, ...] = (0,)

    @classmethod
    def of_units(
        cls, sizes: Sequence[int], released: Mapping[Axes, tuple[Array, float]], linear: tuple[int, ...]
    ) -> UnitMargins:
        """From released marginals, as `of`."""
        own = Margins.of(sizes, released)
        return cls(own.sizes, own.components, own.spread, None, dict(released), linear)

    def table(self, axes: Axes) -> Array:
        """The marginal; of one that was not drawn the sums of omega^2 m are taken for those of omega m, which are no smaller."""
        own = super().table(axes)
        rest = [number for number in range(len(own)) if number not in self.linear]
        if axes in self.raw:
            own[rest] = self.raw[axes][0][rest]
            return own
        finer = self._finer(axes)
        others = tuple(1 + place for place, axis in enumerate(finer) if axis not in axes)
        seen, half = self.raw[finer][0].sum(axis=others), len(own) // 2
        own[rest] = 0.0
        first = [number for number in rest if number < half]
        own[first] = seen[first]
        return own

    @cached_property
    def quiet(self) -> Self:
        raw = {axes: (table, _QUIET * variance) for axes, (table, variance) in self.raw.items()}
        return replace(super().quiet, raw=raw)

    def rough(self, axes: Axes) -> float:
        """The noise variance of the numbers that do not add up, over that of the others."""
        if axes in self.raw:
            return max(self.raw[axes][1] / self.variance(axes), 1.0)
        finer = self._finer(axes)
        cells = self.cells(finer) // self.cells(axes)
        return max(self.raw[finer][1] * cells / self.variance(axes), 1.0)

    def _finer(self, axes: Axes) -> Axes:
        """The smallest drawn marginal that has these attributes."""
        return min((one for one in self.raw if set(axes) <= set(one)), key=self.cells)


def _centred(table: Array) -> Array:
    """Without its means along each axis but the first."""
    for axis in range(1, table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
