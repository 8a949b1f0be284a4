"""What a release of weighted moments would say of practice records: its own reading of moments without noise, with the noise's variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.aggregates.lines.ranges import CELLS, private_box, ranged
from confide.aggregates.lines.rows import Box
from confide.methods.regression.evidence.normal_equations import Fit, Meat, NoisyMoments, fit, identified, trusted
from confide.methods.regression.forecast import Expect, Expected
from confide.methods.regression.moments.leverage import (
    REACH,
    BoxLeverage,
    chosen_cap,
    largest,
    margin,
    residual_limit,
    unanswered,
)
from confide.methods.regression.moments.shared_moments import Layout
from confide.methods.regression.practice import Shape
from confide.methods.regression.scaling import extent, line_of, to_units
from confide.protocol import Event, Spend
from confide.protocol.events import leaves

__all__ = ["expected"]


def expected(layout: Layout, event: Event, mu: float, enough: float) -> Expect:
    """What the first response's table would hold. mu: of the release; enough: `ssp` pays for ranges where mu n >= enough x coefficients."""
    spends = {leaf.name: leaf for leaf in leaves(event) if isinstance(leaf, Spend)}

    def expect(shape: Shape, count: int) -> Expected:
        far = layout.recentring and mu * count >= enough * (len(layout.design.terms) + 1)
        return (_Far if far else _Near)(layout, spends, shape, count).expected()

    return expect


@dataclass(frozen=True, eq=False)
class _Near:
    """The sums of n records of one shape, in the public box."""

    planned: Layout
    spends: Mapping[str, Spend]
    shape: Shape
    count: int

    far: ClassVar[bool] = False

    @property
    def box(self) -> Box | None:
        return None

    @property
    def scaled(self) -> Array:
        """z in the box."""
        return self.shape.scaled

    @property
    def layout(self) -> Layout:
        return self.planned

    @property
    def out(self) -> NDArray[np.bool_]:
        """Which terms are not answered, (terms,)."""
        return np.zeros(len(self.planned.design.terms), dtype=bool)

    @cached_property
    def each(self) -> Array:
        """How many records each practice record stands for."""
        return np.asarray(self.shape.weights * (self.count / len(self.shape.scaled)))

    @property
    def weights(self) -> Array:
        return np.asarray(np.minimum(1.0, self.layout.cap / (self.scaled**2).sum(axis=1)))

    def expected(self) -> Expected:
        design, moments = self.layout.design, self.moments()
        keep = list(range(len(design.terms)))
        line = line_of(design, keep, self.box)
        matrix, _ = to_units(design, keep, self.box)
        nothing = Expected(np.full(len(matrix), nan), False)
        try:
            status, _ = identified(moments, line)
            fitted = fit(moments, line)
        except np.linalg.LinAlgError:
            return nothing
        if status != "ok":
            return nothing
        meat = self.meat(fitted, matrix)
        if meat is not None:
            total = fitted.weighted_residuals(self.layout.cap)
            meat = meat.unclipped(total, weighted=self.layout.weighted)
        shown, _ = trusted(fitted, matrix, meat)
        errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, fitted.covariance(shown), matrix), 0.0))
        hidden = self.out.any()
        if hidden:
            errors[[*([True] if design.intercept else []), *self.out]] = nan
        return Expected(errors, not hidden)

    def moments(self) -> NoisyMoments:
        (name,) = self.layout.names("moments", far=self.far)
        noise = self.layout.decoded(np.zeros(self.spends[name].shape), self.sd(name)).each[0]
        weighted, response = self.scaled * (self.weights * self.each)[:, None], self.shape.response
        return NoisyMoments(
            weighted.T @ self.scaled,
            weighted.T @ response,
            float(weighted[:, 0] @ response**2),
            noise.sd_gram,
            noise.sd_cross,
            noise.sd_square,
        )

    def meat(self, fitted: Fit, matrix: Array) -> Meat | None:
        """The meat of a robust covariance at a line; None for a classical one. matrix: coefficients from scaled ones."""
        layout = self.layout
        if not layout.robust:
            return None
        name = layout.names("meat", far=self.far)[0]
        blank = np.zeros(self.spends[name].shape)
        sd = layout.decoded_meat(blank, self.sd(name)).sd
        limit = (
            1.0 if layout.chosen else residual_limit(fitted, matrix, extent(layout.design, self.box), layout.cap, sd)
        )
        residuals = np.clip(self.shape.response - self.scaled @ fitted.theta, -limit, limit)
        scores = self.scaled * (self.weights * residuals)[:, None]
        return Meat((scores * self.each[:, None]).T @ scores, layout.decoded_meat(blank, self.sd(name), limit).sd)

    def sd(self, name: str) -> float:
        """Of the noise of a spend."""
        return float(self.spends[name].noise_sd or nan)


@dataclass(frozen=True, eq=False)
class _Far(_Near):
    """The same in the box of noisy ranges, with the cap that a noisy histogram of |z|^2 leads to: both from counts without noise."""

    far: ClassVar[bool] = True

    @cached_property
    def box(self) -> Box:
        design = self.planned.design
        own = [1 + j for j in ranged(design)]
        cells = np.clip(((self.shape.scaled[:, own] + 1) / 2 * CELLS).astype(int), 0, CELLS - 1)
        histograms = np.array([np.bincount(column, self.each, CELLS) for column in cells.T])
        return private_box(design, histograms, self.sd("ranges"))

    @cached_property
    def scaled(self) -> Array:
        (middle, half), (new, width) = Box.of(self.planned.design).arrays, self.box.arrays
        return np.column_stack(
            [np.ones(len(self.shape.scaled)), (self.shape.scaled[:, 1:] * half + middle - new) / width]
        )

    @cached_property
    def leverages(self) -> tuple[Array, Array]:
        """Edges and counts of |z|^2."""
        rows = self.planned.leverage.map
        assert isinstance(rows, BoxLeverage)
        cells = np.searchsorted(rows.edges, (self.scaled**2).sum(axis=1))
        return rows.edges, np.asarray(np.bincount(cells, self.each, len(rows.edges) + 1), dtype=np.float64)

    @cached_property
    def layout(self) -> Layout:
        planned = self.planned
        if planned.chosen:
            return planned
        if not planned.counting:
            return planned.far(largest(planned.design, self.box))
        most = largest(planned.design, self.box, REACH)
        wide = margin(planned.design, self.box)
        return planned.far(chosen_cap(*self.leverages, self.sd("leverage"), most, wide))

    @cached_property
    def out(self) -> NDArray[np.bool_]:
        design = self.planned.design
        if not self.planned.counting or self.layout.cap >= largest(design, self.box):
            return super().out
        return unanswered(design, self.box)
