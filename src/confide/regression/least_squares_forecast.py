"""What the sums of scores would say of practice records: the release's own rounds, metric, limits and sandwich, of simulated sums.

Every sum gets noise of the planned size (from a fixed seed: it decides where limits lie), so that one shape is one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms.blocks import BlockGram
from confide.mechanisms.limits import CERTAIN, LEVERAGE_EDGES, TAIL_EDGES, Levels, Limits, Sizes, Tail, public_maxima
from confide.mechanisms.metric import Layout, Metric
from confide.mechanisms.ranges import CELLS, private_box, ranged
from confide.mechanisms.rows import BITS, BOUND, Box
from confide.mechanisms.whitened_rows import Frame
from confide.protocol import Event, Spend, Statistic
from confide.protocol.events import leaves
from confide.regression.far_bounds import FAR, NEAR, NOTED
from confide.regression.forecast import Expect, Expected
from confide.regression.practice import Shape
from confide.regression.round_forecast import Rounds
from confide.regression.sandwich import Sandwich
from confide.regression.scaling import to_units
from confide.regression.score_sums import Standing
from confide.schema import Design, Schema

__all__ = ["expected", "too_wide"]

Array = NDArray[np.float64]

# The count's share of mu^2; and fewer records than so many noise units for each coefficient leave no budget for ranges (`score_sums`).
_COUNT, _ENOUGH = 0.01, 30
_SEED = 20261122
# 95 % of a normal distribution are so many sds wide.
_WIDE = 3.92


def expected(design: Design, event: Event, statistics: Mapping[str, Statistic], *, unlimited: bool) -> Expect:
    """What the table of a design with an intercept would hold."""
    noise = {leaf.name: float(leaf.noise_sd or nan) for leaf in leaves(event) if isinstance(leaf, Spend)}
    layout = Layout.of(design)
    moments = statistics["round 1"]
    assert isinstance(moments, BlockGram)

    def expect(shape: Shape, count: int) -> Expected:
        return _Sums(design, layout, noise, moments, unlimited, shape, count).expected()

    return expect


@dataclass(frozen=True, eq=False)
class _Sums:
    """The sums of n records of one shape."""

    design: Design
    layout: Layout
    noise: dict[str, float]
    moments: BlockGram
    unlimited: bool
    shape: Shape
    count: int

    @cached_property
    def mu(self) -> float:
        return 1 / (sqrt(_COUNT) * self.noise["count"])

    @cached_property
    def branch(self) -> str:
        return "" if self.mu * self.count >= _ENOUGH * (len(self.design.terms) + 1) else "short "

    @cached_property
    def box(self) -> Box:
        """The box of noisy ranges, from histograms without noise."""
        if self.branch or "ranges" not in self.noise:
            return Box.of(self.design)
        own = [1 + j for j in ranged(self.design)]
        cells = np.clip(((self.shape.scaled[:, own] + 1) / 2 * CELLS).astype(int), 0, CELLS - 1)
        histograms = np.array([np.bincount(column, self.each, CELLS) for column in cells.T])
        return private_box(self.design, histograms, self.noise["ranges"])

    @cached_property
    def each(self) -> Array:
        """How many records each practice record stands for."""
        return np.asarray(self.shape.weights * (self.count / len(self.shape.scaled)))

    @cached_property
    def scaled(self) -> Array:
        """z in the box."""
        (middle, half), (new, width) = Box.of(self.design).arrays, self.box.arrays
        return np.column_stack(
            [np.ones(len(self.shape.scaled)), (self.shape.scaled[:, 1:] * half + middle - new) / width]
        )

    @cached_property
    def theta(self) -> Array:
        weighted = self.scaled * self.shape.weights[:, None]
        return np.asarray(np.linalg.pinv(weighted.T @ self.scaled) @ (weighted.T @ self.shape.response))

    @cached_property
    def standing(self) -> Standing:
        """After the rounds."""
        rounds = Rounds(
            self.box, self.layout, self.scaled, self.shape.response, self.each, self.theta,
            self.moments, self.noise, self.mu, self.generator,
        )  # fmt: skip
        return rounds.standing(long=not self.branch)

    @property
    def metric(self) -> Metric:
        return self.standing.metric

    @cached_property
    def scores(self) -> Array:
        """v r at the line that the rounds leave, (rows, p)."""
        return np.asarray(self.v * (self.shape.response - self.scaled @ self.standing.theta)[:, None])

    @cached_property
    def limits(self) -> Limits:
        frame = Frame.of(self.box, self.metric.matrix.T, self.standing.theta, 1.0)
        maxima = public_maxima(self.design, self.layout, frame)
        sigma, size = self.standing.sigma, sqrt(self.metric.size)
        lengths = np.linalg.norm(self.v, axis=1)
        tails = {
            "tail": self._tail("tail", np.linalg.norm(self.scores, axis=1), [sigma * size * e for e in TAIL_EDGES]),
            "leverage": None if self.unlimited else self._tail("leverage", lengths, [size * e for e in LEVERAGE_EDGES]),
        }
        levels = Levels(
            BOUND / self.noise[self.branch + "gram"],
            (1 << BITS) / self.noise[self.branch + "cross"],
            BOUND / self.noise["square"],
            BOUND / self.noise["meat"],
        )
        tail = tails["tail"]
        assert tail is not None
        sizes = Sizes(self.metric.weights, sigma, self.standing.count, tail, tails["leverage"], maxima, levels)
        return sizes.limits(self._rarer(), unlimited=self.unlimited)

    def _tail(self, name: str, sizes: Array, edges: list[float]) -> Tail:
        counts = np.bincount(np.searchsorted(edges, sizes), self.each, len(edges) + 1)
        noise = self.noise[name]
        believed = {"believed": CERTAIN} if name == "leverage" else {}
        return Tail(counts + noise * self.generator.normal(size=len(counts)), np.array(edges), noise, **believed)

    @cached_property
    def generator(self) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([_SEED, self.shape.number]))

    def _symmetric(self, matrix: Array, sd: float) -> Array:
        """With symmetric noise of this sd on the diagonal."""
        noise = self.generator.normal(size=matrix.shape) * (sd / sqrt(2))
        return np.asarray(matrix + (noise + noise.T) / sqrt(2))

    def _rarer(self) -> float | None:
        if self.design.response.steps != 2:
            return None
        share = float(self.shape.weights @ (self.shape.response > 0)) / len(self.shape.response)
        return self.count * min(share, 1 - share)

    @cached_property
    def v(self) -> Array:
        return np.asarray(self.scaled @ self.metric.matrix.T)

    @cached_property
    def sandwich(self) -> Sandwich:
        limits, v, residuals = self.limits, self.v, self.shape.residuals
        weights = np.minimum(1.0, limits.leverage / np.maximum((v**2).sum(axis=1), 1e-300))
        scores = v * residuals[:, None]
        lengths = np.maximum(np.linalg.norm(scores, axis=1), 1e-300)
        limited = scores * np.minimum(1.0, limits.meat / lengths)[:, None]
        matrix, _ = to_units(self.design, list(range(len(self.design.terms))), self.box)
        rows = matrix @ self.metric.matrix.T
        moved = np.linalg.solve(self.metric.matrix.T, self.theta - self.standing.theta)
        left = self.shape.response - self.scaled @ self.standing.theta
        sd_gram = limits.leverage * self.noise[self.branch + "gram"] / BOUND
        sd_meat = limits.meat**2 * self.noise["meat"] / BOUND
        gram = self._symmetric((v * (weights * self.each)[:, None]).T @ v, sd_gram)
        square = float(self.each @ np.minimum(left**2, limits.square**2))
        return Sandwich(
            gram=gram,
            cross=gram @ moved,
            square=square,
            meat=self._symmetric((limited * self.each[:, None]).T @ limited, sd_meat),
            sd_gram=sd_gram,
            sd_cross=limits.score * self.noise[self.branch + "cross"] / (1 << BITS),
            sd_square=limits.square**2 * self.noise["square"] / BOUND,
            sd_meat=sd_meat,
            rows=rows,
            shift=np.zeros(len(rows)),
            axis=np.linalg.solve(self.metric.matrix.T, np.eye(len(gram))[0]),
            s2=max(square / self.count, self.standing.sigma**2 / 4),
            weights=self.metric.weights,
            support=self.metric.support,
        )

    def expected(self) -> Expected:
        s = self.sandwich
        if not s.positive:
            return Expected(np.full(len(s.rows), nan), False)
        hidden = [j for j, demand in enumerate(s.demand) if demand > 1]
        own = len(s.rows) - (0 in hidden)
        errors = np.sqrt(s.variances)
        errors[hidden if 2 * (len(s.rows) - len(hidden)) >= own else slice(None)] = nan
        return Expected(errors, not hidden and not self._far)

    @property
    def _far(self) -> bool:
        """Whether the public box of a feature reaches too far where records are limited at all; its number is expected all the same."""
        weights = self.shape.weights / len(self.shape.weights)
        mean = weights @ self.shape.scaled[:, 1:]
        spread = np.sqrt(np.maximum(weights @ (self.shape.scaled[:, 1:] - mean) ** 2, 0.0))
        return not self.unlimited and any(1 + abs(mean[j]) > FAR * spread[j] for j in ranged(self.design))


def too_wide(design: Design, schema: Schema) -> Iterator[str]:
    """What a plan says beforehand of features whose bounds reach far beyond their typical spread."""
    for term in design.terms:
        column = schema[term.plain] if term.plain is not None else None
        spread = getattr(column, "spread", None)
        if spread is None:
            continue
        sd, mean = (spread.high - spread.low) / _WIDE, (spread.low + spread.high) / 2
        reach = max(term.high - mean, mean - term.low) / sd
        if reach > NOTED:
            low, high = max(mean - NEAR * sd, term.low), min(mean + NEAR * sd, term.high)
            then = (
                "it will go unanswered" if reach > FAR else "it goes unanswered unless its histogram shows a short tail"
            )
            yield (
                f"the bounds of {term.name} reach {reach:.0f} typical standard deviations: a few records out there could move its "
                f"coefficient and no private count can see them, so that {then}; declare it within [{low:.2g}, {high:.2g}] "
                "(values beyond count at the bound), or ask limit='none'"
            )
