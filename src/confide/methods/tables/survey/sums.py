"""Scores of weighted estimates by cell: what one person adds to the error of each, as integers of a bounded length.

A ratio theta_c = sum omega y 1[c]/sum omega x 1[b(c)] has, to first order, the error of sum omega (y 1[c] - theta_c x 1[b(c)]) over its
denominator. Here omega = min(w, W)/W in [0, 1], y a column or 1, x a column or 1, and b(c) the cell that the ratio is of. That is c itself
for means and ratios, a coarser one for shares, all records for totals of a public number of persons. Without a denominator the score of a
total is omega y 1[c]. A person is the vector of these over the cells c of a marginal, each divided by a public or noisy scale. It is
shortened to length 1 and coded at `longest` steps less room for rounding. |m|^2 <= longest^2, whatever theta, W and the scales are, so that
these may come from earlier noisy numbers. A person without a cell, weight or value is zero. Source: Binder 1983 (linearization); the cut
and integers here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core.exact import digest
from confide.core.statistic import MapOver
from confide.sums.cells.cell_sums import Axes, Crossing
from confide.sums.cells.moments import Measure, OfMeasures
from confide.sums.cells.weighted_cells import (
    CappedWeight,
    places_of_weights,
)
from confide.sums.coding import BITS, LongRows, round_within
from confide.sums.columns import codes_of, columns_of


@dataclass(frozen=True)
class SurveyScores(LongRows):
    """The scores of one marginal's estimates. numerator, denominator: columns, None for 1; base: the marginal of denominators, within
    `axes`, None for totals without one.

    theta, scales, by cell, and the cap of `weight` come from earlier noisy numbers; longest: the bound, in steps.

    >>> import confide as cf
    >>> schema = cf.Schema({"f": cf.Categorical(["a", "b"]), "y": cf.Numeric(0, 4, steps=5)})
    >>> own = SurveyScores(Crossing.of(("f",), schema), (0,), Measure.of("y", schema), None, (0,), None)
    >>> (own.at((2.0, 1.0), (2.0, 4.0))(np.array([[0.0, 1.0], [4.0, 3.0]])) / 2**20).round(3).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """

    crossing: Crossing
    axes: Axes
    numerator: Measure | None
    denominator: Measure | None
    base: Axes | None
    weight: CappedWeight | None
    theta: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    longest: int = 1 << BITS

    def at(self, theta: tuple[float, ...], scales: tuple[float, ...], cap: float | None = None) -> SurveyScores:
        """The scores at these estimates, in these scales, with weights cut at `cap`."""
        weight = None if self.weight is None else self.weight.at(cap)
        return replace(self, weight=weight, theta=theta, scales=scales)

    def of_length(self, longest: int) -> SurveyScores:
        """The same in so many steps."""
        return replace(self, longest=longest)

    @property
    def width(self) -> int:
        return self.crossing.cells(self.axes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.crossing, self.numerator, self.denominator, self.weight)

    @property
    def digest(self) -> str:
        parts = [None if own is None else own.digest for own in (self.numerator, self.denominator, self.weight)]
        base = None if self.base is None else list(self.base)
        return digest(["survey scores", self.crossing.digest, list(self.axes), base, *parts])

    def __call__(self, codes: Array) -> Array:
        own = codes[: len(self.crossing.columns)]
        place, cells = self.crossing.places(own, self.axes), self.width
        there = place < cells
        omega, keep = self._weights(codes)
        there &= keep
        y, keep = self._values(self.numerator, codes)
        there &= keep
        x, keep = self._values(self.denominator, codes)
        there &= keep
        theta = np.array(self.theta or (0.0,) * cells)
        steps = self.longest - sqrt(cells) / 2 - 1
        scale = steps / np.array(self.scales or (1.0,) * cells)
        out = np.zeros((cells, codes.shape[1]))
        at_cell = np.minimum(place, cells - 1), np.arange(codes.shape[1])
        with np.errstate(all="ignore"):
            if self.base == self.axes:
                out[at_cell] = omega * (y - theta[at_cell[0]] * x) * scale[at_cell[0]]
            else:
                if self.base is not None:
                    self._of_base(out, own, theta * scale, x * omega)
                out[at_cell] += omega * y * scale[at_cell[0]]
            out[:, ~there] = 0.0
            size = np.sqrt(self._squared(out))
            over = size > steps
            if over.any():
                out[:, over] *= steps / size[over]
        return round_within(out, self.longest**2)

    def _of_base(self, out: Array, own: Array, amounts: Array, x: Array) -> None:
        """Take theta_c x from every cell of a person's base."""
        assert self.base is not None
        base_of = self.crossing.coarser(self.axes, self.base)
        place = self.crossing.places(own, self.base)
        for cell in range(self.width):
            mine = place == base_of[cell]
            out[cell, mine] -= amounts[cell] * x[mine]

    @staticmethod
    def _squared(out: Array) -> Array:
        """|.|^2 of each column, row by row in order: never a product whose last bits depend on the batch."""
        total = np.zeros(out.shape[1])
        for row in out:
            total += row * row
        return total

    def _weights(self, codes: Array) -> tuple[Array, NDArray[np.bool_]]:
        everyone = np.ones(codes.shape[1], dtype=np.bool_)
        if self.weight is None:
            return np.ones(codes.shape[1]), everyone
        omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
        return omega, everyone if keep is None else keep

    def _values(self, measure: Measure | None, codes: Array) -> tuple[Array, NDArray[np.bool_]]:
        everyone = np.ones(codes.shape[1], dtype=np.bool_)
        if measure is None:
            return np.ones(codes.shape[1]), everyone
        u, keep = measure.places(codes_of(measure, self.columns, codes))
        u *= measure.half
        u += measure.middle
        return u, everyone if keep is None else keep


@dataclass(frozen=True)
class Squares(MapOver):
    """The squares of one person's cut scores, by cell: |m| <= |a|^2 <= 1 in steps of 2^-20."""

    map: SurveyScores

    @property
    def columns(self) -> tuple[str, ...]:
        return self.map.columns

    @property
    def digest(self) -> str:
        return digest(["squares of", self.map.digest])

    def __call__(self, codes: Array) -> Array:
        rows = self.map(codes)
        rows *= rows
        return np.asarray(np.floor(rows / (1 << BITS)))


@dataclass(frozen=True)
class Complete(OfMeasures):
    """Which records have a value of every measure: a condition as `core.units.subgroup` takes them."""

    def to_list(self) -> list[Any]:
        """For digests."""
        return [own.digest for own in self.measures]

    def __call__(self, codes: Array) -> NDArray[np.bool_]:
        return self.places(codes)[1]
