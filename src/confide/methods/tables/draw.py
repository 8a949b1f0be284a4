"""Which marginals to release at which share of the budget, so that all that are asked for are as precise as they can be.

Attributes have d_i levels; a marginal A has n_A = prod d_i cells. For each A in the closure of the wanted marginals, all cells are released
with noise variance 1/s_A (in units of the record's sensitivity over mu), sum s_A = 1. On the residual space of a, the contrasts of
exactly the attributes in a, of dimension r_a = prod (d_i - 1), generalized least squares has the precision

    lambda_a/n = sum over A >= a of s_A/n_A,

and a cell of B the noise variance (1/n_B^2) sum over a <= B of r_a n/lambda_a. The shares minimize sum over B asked for of omega_B times
the mean of (noise variance over the mean count n/n_B). Up to a constant this is sum_a r_a b_a/(lambda_a/n), with b_a = sum over B >= a of
omega_B/n_B. It is convex in s; s <- s sqrt(gradient), normalized, goes down to it, and the largest gradient over their mean says how near
it is.

No linear Gaussian mechanism has a loss below (sum_a r_a sqrt(b_a))^2 (by Cauchy's inequality from sum_a r_a lambda_a/n <= 1). It needs
noise of real weights; shares of integer counts come within a few percent (`evidence/methods/tables.md`).
Source: the residual spaces of Xiao, He, Zhang, Kifer 2023, from which the bound and the precision are derived here again.

Released marginals put together by generalized least squares: tables whose margins add up, with their noise.

Each residual space a (the contrasts of exactly the attributes in a) is seen in every released marginal A >= a. It is the sum of A over the
other attributes, centered along each attribute of a. These agree but for noise of variance n_A/n_a V_A in each cell, so the best is their
mean with weights 1/(n_A V_A). A table is the sum of its components. Projections are Kronecker products, so nothing larger than a marginal
is formed.

With spread_a = 1/sum over A >= a of 1/(n_A V_A), two cells of B and C have the noise covariance

    (1/(n_B n_C)) sum over a <= B and C of spread_a prod over i in a of (d_i [same level] - 1).

Tables in which a person counts once in each year: which cells it has, at which shares, and which depend on each other across years.

Under `cf.Unit("person_id", per="year")` a person has one row in each of at most `groups` years. A cell of one year holds a person at most
once, so that its count is a number of persons, and its interval that of independent records. Cells of different years hold the same
persons. So sums over years do not count persons, and are not in the table. Differences between years and tests over several have no
interval for the population, because a person's rows in several years depend on each other.

Every marginal that is drawn has the year among its attributes, so that a person moves it by sqrt(groups) rows at most
(`core.units.privacy_unit`). The shares are the best ones of the table of one year. Simultaneous intervals assume independent years, which
is on the safe side for normal errors, whatever their correlation (Royen 2014, the Gaussian correlation inequality).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core.units.privacy_unit import per_of
from confide.errors import PlanError
from confide.methods.tables.layout import Layout, both_sides
from confide.schema.formulas.names import quoted
from confide.sums.cells.cell_sums import Axes

_STEPS, _NEAR = 4000, 1e-5
# Shares are multiples of this; one below the second is not drawn, unless it is the only one that tells of what was asked.
_GRAIN, _LEAST = Fraction(1, 1 << 20), Fraction(1, 1 << 12)
# Rounds of the search for the weights at which every marginal just meets its target, and the power that they move by.
_ROUNDS, _POWER = 60, 0.7


@dataclass(frozen=True)
class Strategy:
    """Shares of marginals. closure: all that could be drawn; asked: those that are wanted; known: the total is public, and not drawn.

    >>> own = Strategy.of((12, 2), ((), (0,), (1,), (0, 1)), ((), (0,), (1,), (0, 1)))
    >>> round(own.loss / own.least, 4), sum(own.shares.values())
    (1.0, Fraction(1, 1))
    """

    sizes: tuple[int, ...]
    closure: tuple[Axes, ...]
    asked: tuple[Axes, ...]
    shares: Mapping[Axes, Fraction]
    weights: tuple[float, ...]
    known: bool = False

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        closure: Sequence[Axes],
        asked: Sequence[Axes],
        *,
        weights: Sequence[float] | None = None,
        known: bool = False,
    ) -> Strategy:
        """The best shares. weights: omega of each marginal asked for, 1 each when left out."""
        facts = (tuple(sizes), tuple(closure), tuple(asked), tuple(weights or [1.0] * len(asked)), known)
        return cls(facts[0], facts[1], facts[2], dict(_best_shares(*facts)), facts[3], known)

    @classmethod
    def for_precision(
        cls, sizes: Sequence[int], closure: Sequence[Axes], targets: Mapping[Axes, float], *, known: bool = False
    ) -> tuple[Strategy, float]:
        """(strategy, the least square of mu) with noise variances of at most `targets` for counts of cells of the marginals named.

        known: the total is public, so that a target for it costs nothing.
        """
        asked = tuple(targets)
        wanted = np.array([targets[axes] for axes in asked])
        if not (wanted > 0).all():
            raise PlanError("noise standard deviations must be above 0", "write precision={'total': 5, '1-way': 3}")
        mean = np.array([prod(sizes[axis] for axis in axes) for axes in asked], dtype=float)
        omega, best = np.ones(len(asked)), None
        for _ in range(_ROUNDS):
            # a weight of variance alone, so that omega is the dual of its own target
            weights = tuple(float(v) for v in omega / wanted * mean)
            own = cls.of(sizes, closure, asked, weights=weights, known=known)
            need = np.array([own.variance(axes) for axes in asked]) / wanted
            if best is None or need.max() < best[1]:
                best = own, float(need.max())
            omega = omega * (need / need.max()) ** _POWER
        assert best is not None
        return best

    # the geometry -----------------------------------------------------------------------------------------------------

    def cells(self, axes: Axes) -> int:
        """n_A."""
        return prod(self.sizes[axis] for axis in axes)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(positions of a, positions of A) for all a <= A in the closure."""
        sets = [frozenset(axes) for axes in self.closure]
        found = [(i, j) for j, whole in enumerate(sets) for i, part in enumerate(sets) if part <= whole]
        return np.array([i for i, _ in found]), np.array([j for _, j in found])

    @cached_property
    def _cells(self) -> Array:
        return np.array([self.cells(axes) for axes in self.closure], dtype=float)

    @cached_property
    def _ranks(self) -> Array:
        """r_a; 0 for the total where it is known."""
        ranks = [float(prod(self.sizes[axis] - 1 for axis in axes)) for axes in self.closure]
        if self.known:
            ranks[self.closure.index(())] = 0.0
        return np.array(ranks)

    @cached_property
    def _needs(self) -> Array:
        """b_a."""
        omega = np.zeros(len(self.closure))
        for axes, weight in zip(self.asked, self.weights, strict=True):
            omega[self.closure.index(axes)] = weight
        return self._below(omega / self._cells)

    def _below(self, values: Array) -> Array:
        """Sums over A >= a, for each a. Added individually in a fixed order: plans must come out alike on every machine."""
        below, above = self._pairs
        return np.bincount(below, weights=values[above], minlength=len(self.closure)).astype(np.float64)

    def _above(self, values: Array) -> Array:
        """Sums over a <= A, for each A."""
        below, above = self._pairs
        return np.bincount(above, weights=values[below], minlength=len(self.closure)).astype(np.float64)

    # the shares -------------------------------------------------------------------------------------------------------

    def _best(self) -> Array:
        live = np.ones(len(self.closure))
        if self.known and len(self.closure) > 1:
            live[self.closure.index(())] = 0.0
        shares = live / live.sum()
        for _ in range(_STEPS):
            precision = self._below(shares / self._cells)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(self._ranks > 0, self._ranks * self._needs / precision, 0.0)
                slope = self._above(np.where(self._ranks > 0, part / precision, 0.0)) / self._cells
            loss = part.sum()
            if not loss > 0 or (slope * live).max() <= (1 + _NEAR) * loss:
                break
            shares = shares * np.sqrt(slope)
            shares /= shares.sum()
        return np.asarray(shares)

    def _exact(self, shares: Array) -> dict[Axes, Fraction]:
        """Shares as fractions that add up to 1."""
        kept: dict[Axes, Fraction] = {}
        sole = [axes for axes in self.asked if not any(set(axes) < set(other) for other in self.asked)]
        for axes, share in zip(self.closure, shares.tolist(), strict=True):
            own = Fraction(int(share / float(_GRAIN))) * _GRAIN
            if own >= _LEAST:
                kept[axes] = own
            elif axes in sole:
                kept[axes] = max(own, _GRAIN)
        largest = max(kept, key=lambda axes: kept[axes])
        kept[largest] += 1 - sum(kept.values())
        return kept

    # what they give ---------------------------------------------------------------------------------------------------

    @cached_property
    def spread(self) -> Array:
        """n/lambda_a for each a in the closure; 0 for a total that is known."""
        shares = np.array([float(self.shares.get(axes, 0)) for axes in self.closure])
        return np.where(self._ranks > 0, 1.0 / self._below(shares / self._cells), 0.0)

    def variance(self, axes: Axes) -> float:
        """The noise variance of a cell of a marginal, in units of the sensitivity over mu."""
        own = frozenset(axes)
        inside = np.array([set(part) <= own for part in self.closure])
        return float((self._ranks * self.spread)[inside].sum() / self.cells(axes) ** 2)

    @property
    def loss(self) -> float:
        """The weighted sum of noise variances over mean counts, per record."""
        return float((self._ranks * self._needs * self.spread).sum())

    @property
    def least(self) -> float:
        """The least loss of any linear Gaussian mechanism under add-remove, per record."""
        return float((self._ranks * np.sqrt(self._needs)).sum() ** 2)


@lru_cache(maxsize=256)
def _best_shares(
    sizes: tuple[int, ...], closure: tuple[Axes, ...], asked: tuple[Axes, ...], weights: tuple[float, ...], known: bool
) -> tuple[tuple[Axes, Fraction], ...]:
    """The best shares of public facts, found once: a plan is made when it is asked for, drawn and read."""
    own = Strategy(sizes, closure, asked, {}, weights, known)
    return tuple(own._exact(own._best()).items())


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
    """sizes: levels of each attribute; components: a -> (numbers, *levels of a), the sums on a, centered; spread: a -> spread_a, in squared
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
        """What is known of some of the attributes, in another order: attribute k of the new one is order[k] of this."""
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
        """Whether a marginal follows from the released marginals."""
        return all(part in self.components for part in subsets(axes))

    @cached_property
    def largest(self) -> int:
        """Cells of the largest marginal."""
        return max(self.cells(axes) for axes in self.components)


@dataclass(frozen=True, eq=False)
class UnitMargins(Margins):
    """Margins of units that lie in several cells: only some numbers of a block add up from cell to margin, by which least squares goes.

    raw: the released marginals as they are, with the noise variance of each, for the other numbers; linear: which numbers add up. A block
    is of two halves, sums of omega m and of omega (1 - omega) m (`methods.tables.sums`).
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
        """The marginal; of one that was not drawn the sums of omega^2 m replace those of omega m, which are at least as large."""
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


def level_axis(layout: Layout) -> int | None:
    """The place of the attribute in each of whose levels a unit counts once; None where units count otherwise."""
    per = per_of(layout.crossing.schema)
    if per is None:
        return None
    for axis, own in enumerate(layout.crossing.attributes):
        if own.column == per and own.coded:
            return axis
    raise PlanError(
        f"each {layout.crossing.schema.protects} counts once in each {per}, and {layout.formula!r} is not crossed with {per}. Sums over "
        f"its levels do not count {layout.crossing.schema.protects}",
        f"write {_crossed(layout, per)!r}, or read the records with "
        f"unit=cf.Unit({layout.crossing.schema.protects!r}), where each counts once in the whole table",
    )


def _crossed(layout: Layout, per: str) -> str:
    left, right = (part.strip() for part in both_sides(layout.formula))
    crossed = quoted(per) if right in ("", "1") else f"{quoted(per)} * ({right})"
    return f"{left} ~ {crossed}" if left else crossed


def of_each_level(layout: Layout) -> Layout:
    """The layout with those marginals alone that say the level; the same layout where units count otherwise."""
    axis = level_axis(layout)
    return layout if axis is None else replace(layout, shown=tuple(axes for axes in layout.shown if axis in axes))


def whose_words(schema: Any) -> str:
    """Of whom numbers are, for a title; nothing where units count otherwise."""
    per = per_of(schema)
    return "" if per is None else f" of values of {schema.protects} in each {per}"


def check_one_level(layout: Layout, inference: str, pairs: Any) -> None:
    """Refuse to compare cells of several levels for the population. pairs: (axes, one, other) of cells, by place."""
    per = per_of(layout.crossing.schema)
    if per is None or inference != "population":
        return
    axis = level_axis(layout)
    for axes, one, other in pairs:
        place = axes.index(axis)
        levels = [np.unravel_index(cell, layout.crossing.shape(axes))[place] for cell in (one, other)]
        if levels[0] != levels[1]:
            person = layout.crossing.schema.protects
            raise PlanError(
                f"cells of two levels of {per} hold the same {person}, whose rows depend on each other. Their difference has no interval "
                "for the population",
                f"ask for these records, inference='dataset', or compare cells of one {per}",
            )


def check_one_test(schema: Any) -> None:
    """Refuse the tests of a table in which a unit counts in several levels: their null laws are of independent records."""
    per = per_of(schema)
    if per is not None:
        person = schema.protects
        raise PlanError(
            f"tests take rows as independent, and this table has those of one {person} in several levels of {per}",
            f'ask one level, where="{per} == ...", of records that are read with unit=cf.Unit({person!r})',
        )


def check_within(layout: Layout, within: Axes) -> None:
    """Refuse shares over several levels, which are not shares of units."""
    axis = level_axis(layout)
    if axis is not None and axis not in within:
        name = layout.crossing.attributes[axis].name
        raise PlanError(
            f"shares of a table in which each {layout.crossing.schema.protects} counts once in each {name} are within {name}",
            f"write within={name!r}",
        )


@dataclass(frozen=True)
class LevelStrategy:
    """The best shares of the table of one level, for marginals that all have the level's attribute `axis` too. groups: of a unit."""

    one: Strategy
    axis: int
    groups: int

    @classmethod
    def of(cls, layout: Layout, axis: int) -> LevelStrategy:
        """Of a layout whose marginals all have the attribute."""

        def without(axes: Axes) -> Axes:
            return tuple(place - (place > axis) for place in axes if place != axis)

        sizes = tuple(size for place, size in enumerate(layout.crossing.sizes) if place != axis)
        closure = tuple(without(axes) for axes in layout.closure if axis in axes)
        one = Strategy.of(sizes, closure, tuple(without(axes) for axes in layout.shown))
        return cls(one, axis, int(layout.crossing.schema.rows_per_unit))

    def _with(self, axes: Axes) -> Axes:
        return tuple(sorted((self.axis, *(place + (place >= self.axis) for place in axes))))

    @property
    def shares(self) -> Mapping[Axes, Fraction]:
        """Of marginals of the whole table."""
        return {self._with(axes): share for axes, share in self.one.shares.items()}

    def variance(self, axes: Axes) -> float:
        """The noise variance of a cell, in units of the sensitivity to one row over mu."""
        inside = tuple(place - (place > self.axis) for place in axes if place != self.axis)
        return self.groups * self.one.variance(inside)
