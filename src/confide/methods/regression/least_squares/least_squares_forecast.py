"""What the sums of scores would say of practice records: the release's own rounds, metric, limits and reading, of simulated sums.

Every sum gets noise of the planned size (from a fixed seed: it decides where limits lie), so that one shape is one run. Which coefficients
are answered is decided by the reading of a release itself (`LeastSquaresReading`), so that forecasts know no rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan, sqrt
from typing import Any, cast

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.blocks import BlockGram
from confide.aggregates.lines.ranges import CELLS, private_box, ranged
from confide.aggregates.lines.rows import BITS, BOUND, Box
from confide.aggregates.lines.whitened_rows import Frame
from confide.aggregates.scores.limits import LEVERAGE_EDGES, OUTER, Levels, Limits, Maxima, Sizes, Tail, public_maxima
from confide.aggregates.scores.metric import Layout, Metric
from confide.methods.regression.evidence.far_bounds import FAR, NEAR, NOTED
from confide.methods.regression.evidence.sandwich import Sandwich
from confide.methods.regression.forecast import Expect, Expected
from confide.methods.regression.least_squares.least_squares_reading import LeastSquaresReading
from confide.methods.regression.least_squares.round_forecast import Rounds
from confide.methods.regression.least_squares.score_sums import COMMON, ENOUGH
from confide.methods.regression.least_squares.standing import Standing, public_facts
from confide.methods.regression.practice import Shape
from confide.methods.regression.scaling import to_units
from confide.protocol import Event, Question, Release, Spend, Statistic
from confide.protocol.events import leaves
from confide.schema import Design, Schema

__all__ = ["expected", "too_wide"]


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
        return 1 / (sqrt(COMMON["count"] / 100) * self.noise["count"])

    @cached_property
    def branch(self) -> str:
        return "" if self.mu * self.count >= ENOUGH * (len(self.design.terms) + 1) else "short "

    @cached_property
    def box(self) -> Box:
        """The box of noisy ranges."""
        if self.branch or "ranges" not in self.noise:
            return Box.of(self.design)
        return private_box(self.design, self.ranges, self.noise["ranges"])

    @cached_property
    def ranges(self) -> Array:
        """The noisy histogram of each feature with more than two values."""
        own = [1 + j for j in ranged(self.design)]
        cells = np.clip(((self.shape.scaled[:, own] + 1) / 2 * CELLS).astype(int), 0, CELLS - 1)
        counts = np.array([np.bincount(column, self.each, CELLS) for column in cells.T])
        return np.asarray(counts + self.generator.normal(0, self.noise["ranges"], counts.shape))

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
        return rounds.standing(long=not self.branch).without_rare(self.layout, BOUND / self.noise[self.branch + "gram"])

    @cached_property
    def kept(self) -> Array:
        """How many records each practice record stands for in the sums: none in a level that is left out."""
        left = self.standing.left
        inside = 0.0 if left is None else (self.scaled @ self.layout.cell_rows(left.cells).T).max(axis=1)
        return np.asarray(self.each * (1 - np.clip(inside, 0.0, 1.0)))

    @property
    def metric(self) -> Metric:
        return self.standing.metric

    @cached_property
    def scores(self) -> Array:
        """v r at the line that the rounds leave, (rows, p)."""
        return np.asarray(self.v * (self.shape.response - self.scaled @ self.standing.theta)[:, None])

    @cached_property
    def frame(self) -> Frame:
        return Frame.of(self.box, self.metric.matrix.T, self.standing.theta, 1.0)

    @cached_property
    def maxima(self) -> Maxima:
        return public_maxima(self.design, self.layout, self.frame)

    @cached_property
    def tail(self) -> Tail:
        """The noisy histogram of sizes of scores."""
        return self._tail("tail", np.linalg.norm(self.scores, axis=1), self.edges, OUTER)

    @property
    def edges(self) -> tuple[float, ...]:
        """Of that histogram."""
        return self.standing.score_edges((1 << BITS) / self.noise[self.branch + "cross"])

    @cached_property
    def leverage(self) -> Tail:
        """That of lengths of records."""
        size = sqrt(self.metric.size)
        return self._tail("leverage", np.linalg.norm(self.v, axis=1), tuple(size * e for e in LEVERAGE_EDGES))

    @cached_property
    def limits(self) -> Limits:
        sigma, leverage = self.standing.sigma, None if self.unlimited else self.leverage
        levels = Levels(
            BOUND / self.noise[self.branch + "gram"],
            (1 << BITS) / self.noise[self.branch + "cross"],
            BOUND / self.noise["square"],
            BOUND / self.noise["meat"],
        )
        sizes = Sizes(self.metric.weights, sigma, self.standing.count, self.tail, leverage, self.maxima, levels)
        return self.standing.spared(sizes.limits(self._rarer(), unlimited=self.unlimited), self.maxima)

    def _tail(self, name: str, sizes: Array, edges: tuple[float, ...], outer: int = 0) -> Tail:
        counts = np.bincount(np.searchsorted(edges, sizes), self.kept, len(edges) + 1)
        noise = self.noise[name]
        return Tail(counts + noise * self.generator.normal(size=len(counts)), np.array(edges), noise, outer=outer)

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
        return np.asarray(self.scaled @ self.metric.matrix[: len(self.metric.weights)].T)

    @cached_property
    def sandwich(self) -> Sandwich:
        limits, v, residuals = self.limits, self.v, self.shape.residuals
        weights = np.minimum(1.0, limits.leverage / np.maximum((v**2).sum(axis=1), 1e-300))
        scores = v * residuals[:, None]
        lengths = np.maximum(np.linalg.norm(scores, axis=1), 1e-300)
        limited = scores * np.minimum(1.0, limits.meat / lengths)[:, None]
        matrix, _ = to_units(self.design, list(range(len(self.design.terms))), self.box)
        size = len(self.metric.weights)
        rows = matrix @ self.metric.matrix[:size].T
        moved = np.linalg.solve(self.metric.matrix.T, self.theta - self.standing.theta)[:size]
        left = self.shape.response - self.scaled @ self.standing.theta
        sd_gram = limits.leverage * self.noise[self.branch + "gram"] / BOUND
        sd_meat = limits.meat**2 * self.noise["meat"] / BOUND
        gram = self._symmetric((v * (weights * self.kept)[:, None]).T @ v, sd_gram)
        square = float(self.kept @ np.minimum(left**2, limits.square**2))
        return Sandwich(
            gram=gram,
            cross=gram @ moved,
            square=square,
            meat=self._symmetric((limited * self.kept[:, None]).T @ limited, sd_meat),
            sd_gram=sd_gram,
            sd_cross=limits.score * self.noise[self.branch + "cross"] / (1 << BITS),
            sd_square=limits.square**2 * self.noise["square"] / BOUND,
            sd_meat=sd_meat,
            rows=rows,
            shift=np.zeros(len(rows)),
            axis=np.linalg.solve(self.metric.matrix.T, np.eye(len(self.metric.matrix))[0])[:size],
            s2=max(square / self.count, self.standing.sigma**2 / 4),
            weights=self.metric.weights,
            support=self.metric.support,
            cut=limits.cut,
        )

    def expected(self) -> Expected:
        keep, release = list(range(len(self.design.terms))), cast(Release, self._release)
        found: Any = _Foreseen(release, Question(), self.design, keep, self.sandwich).table()
        return cast(Expected, found)

    @property
    def _release(self) -> _Simulated:
        """What a reading asks of a release before it makes a table."""
        drawn = {
            "count": _Drawn(np.array([self.standing.count]), self.noise["count"]),
            "tail": _Drawn(self.tail.counts, self.noise["tail"]),
        }
        if not self.unlimited:
            drawn["leverage"] = _Drawn(self.leverage.counts, self.noise["leverage"])
        if not self.branch and "ranges" in self.noise:
            drawn["ranges"] = _Drawn(self.ranges, self.noise["ranges"])
        public = public_facts(self.standing, self.frame, self.standing.theta, self.limits, self.maxima, self.edges)
        return _Simulated(drawn, public)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Noisy numbers in place of `Noisy`."""

    values: Array
    sd: float

    @property
    def variance(self) -> float:
        return self.sd**2

    def decode(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class _Simulated:
    """What a reading asks of a release before it writes a table: simulated sums by name, and the public facts."""

    statistics: Mapping[str, _Drawn]
    public: Mapping[str, Array]

    def __getitem__(self, name: str) -> _Drawn:
        return self.statistics[name]


@dataclass(frozen=True, eq=False)
class _Foreseen(LeastSquaresReading):
    """The reading of simulated sums: which coefficients it would answer, and their standard errors in place of a table."""

    sums: Sandwich

    @cached_property
    def sandwich(self) -> Sandwich:
        return self.sums

    @property
    def counting(self) -> None:
        """Forecasts are of units of one row: n counts units, and what several rows of each add is not foreseen."""

    def _intervals(self, hidden: list[int]) -> Any:
        errors = np.sqrt(self.sums.variances)
        errors[hidden] = nan
        return Expected(errors, not hidden)

    def _points(self, status: str, reason: str, flags: tuple[str, ...] = ()) -> Any:
        return Expected(np.full(len(self.sums.rows), nan), False)

    def _reasons(self, *, told: bool = True) -> str:
        return ""

    def _hidden(self) -> str:
        return ""


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
                "it will go unanswered unless records are so many that none is limited there"
                if reach > FAR
                else "it goes unanswered unless private counts show a short tail"
            )
            yield (
                f"the bounds of {term.name} reach {reach:.0f} typical standard deviations: a few records out there could move its "
                f"coefficient and no private count can see them, so that {then}; declare it within [{low:.2g}, {high:.2g}] "
                "(values beyond count at the bound), or ask limit='none'"
            )
