"""Tables of counts and of shares: counts of cells, in records or in weight, their intervals, and the tests that they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.crossing import Axes
from confide.aggregates.lines.rows import BITS
from confide.errors import PlanError
from confide.methods.tables.cells.intervals import count_interval, share_interval
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.per_level import check_one_test
from confide.methods.tables.cells.result import CellTable
from confide.methods.tables.cells.weighted import mean_weights
from confide.methods.tables.comparing import independence as tests
from confide.methods.tables.comparing.answers import refused
from confide.methods.tables.comparing.comparisons import compared, standardised
from confide.methods.tables.comparing.simultaneous import expected_cells, summed
from confide.results.hypothesis import HypothesisTests

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["OF_ROWS", "CountTable", "CountedTable", "ShareTable", "shares_shown"]


OF_ROWS = (
    "the null laws of these tests are of records that count alike, and here the rows of a unit count once together; plan the test with "
    'Unit(..., rule="keep"), one row of each'
)


# Integer steps of a record of the largest weight.
_STEPS = 1 << BITS


class CountedTable(CellTable):
    """What tables of counts and shares share: joint errors of counts, the weights behind them, tests of the population."""

    def counts(self, axes: Axes) -> Array:
        y = super().counts(axes)
        return y if self.layout.weight is None else y / _STEPS

    def count_variance(self, axes: Axes) -> float:
        return super().count_variance(axes) / (1.0 if self.layout.weight is None else float(_STEPS) ** 2)

    @cached_property
    def size(self) -> float:
        return float(self.counts(())[0])

    def mean_weight(self, axes: Axes) -> Array | float:
        """sum omega^2/sum omega of each cell; 1 without weights."""
        if self.layout.weight is None:
            return 1.0
        every, (n, rest) = self.margins.table(()).ravel() / _STEPS, self.margins.table(axes).reshape(2, -1) / _STEPS
        overall = min(max(float(every[0] - every[1]) / max(float(every[0]), 1.0), 0.01), 1.0)
        return mean_weights(n, n - rest, float(np.sqrt(self.count_variance(axes))), overall)

    def _errors(self, generator: np.random.Generator, draws: int) -> Iterator[tuple[Axes, Array]]:
        """Draws of the errors of counts, (draws, *levels) for each marginal shown and the total."""
        wanted = tuple(dict.fromkeys(((), *self.marginals, *self._bases())))
        noise = self.margins.noise(wanted, draws, generator, counts=True)
        crossed = expected_cells(self.layout, self.margins) if self.part else None
        sampling = None
        if crossed is not None:
            scale = np.sqrt(self.part * crossed[1])
            sampling = generator.standard_normal((draws, *crossed[1].shape)) * scale
        for axes, own in zip(wanted, noise, strict=True):
            yield axes, own if sampling is None else own + summed(sampling, axes)

    def _bases(self) -> tuple[Axes, ...]:
        return ()

    def test(self, kind: str, *attributes: str, given: Any = None, **settings: Any) -> HypothesisTests:
        """A test that counts answer, of the population; shares have the same counts behind them.

        test("independence", "smoker", "region", given="sex"): chi-square, noise-aware; test("fit", "region", expected=[.5, .3, .2]):
        public shares, equal ones when left out; test("trend", "case", "dose", scores=[0, 1, 5], level="yes"): whether a share changes with
        the dose; test("proportion", "smoker", p=.2, level="yes", alternative="less"): one share. `PlanError` for any other.
        """
        check_one_test(self.layout.crossing.schema)
        if self.layout.of_units:
            raise PlanError(OF_ROWS)
        if self.layout.weight is not None:
            raise PlanError(
                "the null laws of these tests are of records that count alike, and this table is weighted; ask cf.tables.shares(..., "
                f"weights={self.layout.weight.name!r}) for intervals and differences, or plan the test without weights"
            )
        if kind == "independence" and len(attributes) in (0, 2):
            first, second = attributes or (None, None)
            return tests.independence(self, first, second, given, **settings)
        if kind == "fit" and len(attributes) == 1:
            return tests.fit(self, attributes[0], settings.pop("expected", None), **settings)
        if kind == "trend" and len(attributes) == 2:
            return tests.trend(self, *attributes, settings.pop("scores", None), settings.pop("level", None), **settings)
        if kind == "proportion" and len(attributes) == 1 and "p" in settings:
            rest = (settings.pop("level", None), settings.pop("p"), settings.pop("alternative", "two-sided"))
            return tests.proportion(self, attributes[0], *rest, **settings)
        raise refused(self, kind, *attributes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountTable(CountedTable):
    """Numbers of records by cell. Estimates may be negative and are no integers: only so do they add up without bias."""

    kind: ClassVar[str] = "counts"
    noun: ClassVar[str] = "Counts"

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        y, noise, scale = self.counts(axes), self.count_variance(axes), self.layout.heaviest
        variance = self.part * self.mean_weight(axes) * np.maximum(y, 0.0) + noise
        return scale * y, scale * np.sqrt(variance)

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        own = self.counts(axes), self.count_variance(axes), z, self.part, self.mean_weight(axes)
        low, high = (self.layout.heaviest * end for end in count_interval(*own))
        return (low, high) if self.population is None else (low, np.minimum(high, self.population))

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Between two cells of a marginal: noise alone, as Poisson counts are independent."""
        return self.layout.heaviest**2 * noise_covariance(self, (axes, one), (axes, other))

    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]:
        crossed = expected_cells(self.layout, self.margins) if self.part else None
        for axes, errors in self._errors(generator, draws):
            if axes in self.marginals:
                expected = 0.0 if crossed is None else summed(crossed[1][None], axes)[0]
                with np.errstate(all="ignore"):
                    yield (errors / np.sqrt(self.part * expected + self.count_variance(axes))).reshape(draws, -1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ShareTable(CountedTable):
    """Shares of records by cell: of all records, or of those in the same cell of the attributes `within`."""

    within: Axes = ()

    kind: ClassVar[str] = "shares"
    noun: ClassVar[str] = "Shares"

    @property
    def marginals(self) -> tuple[Axes, ...]:
        return shares_shown(self.layout, self.within)

    def bounds(self, column: int) -> tuple[float, float]:
        return 0.0, 1.0

    def base(self, axes: Axes) -> Axes:
        """The marginal that a cell's share is of."""
        return tuple(axis for axis in axes if axis in self.within)

    def _bases(self) -> tuple[Axes, ...]:
        return tuple(dict.fromkeys(self.base(axes) for axes in self.marginals))

    def parts(self, axes: Axes) -> tuple[Array, Array, float, float, float]:
        """(Y, N of each cell's base, their noise variances, their noise covariance)."""
        below = self.base(axes)
        v_base = self.count_variance(below)
        ratio = self.margins.cells(below) / self.margins.cells(axes)
        own = self.counts(below)
        spread_out = own.reshape([self.margins.sizes[axis] if axis in below else 1 for axis in axes])
        size = np.broadcast_to(spread_out, self.layout.crossing.shape(axes)).ravel()
        return self.counts(axes), size, self.count_variance(axes), v_base, v_base * ratio

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        y, n, *_ = self.parts(axes)
        size = np.maximum(n, 1.0)
        p = np.clip(y / size, 0.0, 1.0)
        own, of_base = self._weights(axes, n, p)
        variance = self.part * p * (own + (of_base - 2 * own) * p) / size + self._noise(axes, p)
        return p, np.sqrt(variance)

    def _noise(self, axes: Axes, p: Array) -> Array:
        """Noise variance of shares p."""
        _, n, v_count, v_base, covariance = self.parts(axes)
        return np.asarray(np.maximum(v_count - 2 * p * covariance + p * p * v_base, 0.0) / np.maximum(n, 1.0) ** 2)

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        return self._roots(axes, z)

    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]:
        return self.quiet._roots(axes, z, cut=not apart, inside=True)

    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]:
        y, n, *_ = self.parts(axes)
        return (np.clip(y / np.maximum(n, 1.0), -1.0, 2.0), *self._roots(axes, z, cut=False))

    def _roots(self, axes: Axes, z: float, *, cut: bool = True, inside: bool = False) -> tuple[Array, Array]:
        """inside: counts moved between 0 and those of all, as they are without noise."""
        y, n, v_count, v_base, covariance = self.parts(axes)
        if inside:
            n = np.maximum(n, 1.0)
            y = np.clip(y, 0.0, n)
        # in a combination of cells a unit counts no more than as if its rows were units of that weight: sum omega e^2
        alike = self.layout.of_units and not cut
        weights = (1.0, 1.0) if alike else self._weights(axes, n, np.clip(y / np.maximum(n, 1.0), 0.0, 1.0))
        return share_interval(y, n, v_count, v_base, covariance, z, self.part, *weights, cut=cut)

    def _weights(self, axes: Axes, n: Array, p: Array) -> tuple[Array | float, Array | float]:
        """`mean_weight` of each cell and of its base, which is at least the cell's part of it."""
        if self.layout.weight is None:
            return 1.0, 1.0
        below = self.base(axes)
        shape = [self.margins.sizes[axis] if axis in below else 1 for axis in axes]
        whole = np.asarray(self.mean_weight(below)).reshape(shape)
        own = self.mean_weight(axes)
        return own, np.maximum(np.broadcast_to(whole, self.layout.crossing.shape(axes)).ravel(), p * own)

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Between two shares of a marginal: noise, and sampling where both are of the same records."""
        y, n, *_ = self.parts(axes)
        bases = [self._base_cell(axes, cell) for cell in (one, other)]
        size, p = np.maximum(n[[one, other]], 1.0), np.clip(y / np.maximum(n, 1.0), 0.0, 1.0)[[one, other]]
        noise = (
            noise_covariance(self, (axes, one), (axes, other))
            - p[1] * noise_covariance(self, (axes, one), bases[1])
            - p[0] * noise_covariance(self, bases[0], (axes, other))
            + p[0] * p[1] * noise_covariance(self, *bases)
        )
        sampling = -self.part * p[0] * p[1] / size[0] if bases[0] == bases[1] else 0.0
        if self.layout.weight is not None and not self.layout.of_units:
            own, of_base = (np.asarray(part)[[one, other]] for part in self._weights(axes, n, y / np.maximum(n, 1.0)))
            sampling *= float(own.sum() - of_base[0])
        return float(noise / (size[0] * size[1]) + sampling)

    def odds_ratio(self, first: Any, second: Any = None, *, alpha: float = 0.05) -> pd.DataFrame:
        """Ratios of odds with MOVER intervals on logits, called as `diff`. An end at 0 or 1 opens the interval."""
        return compared(self, "odds", first, second, 0, alpha)

    def strata(self, axes: Axes, column: int) -> tuple[Array, Array, Array, float, float]:
        """(estimates, standard errors, sizes, noise sd of a size, the largest variance there is) for `standardise`."""
        estimate, error = self.points(axes, column)
        _, n, _, v_base, _ = self.parts(axes)
        if self.layout.of_units:
            sampling = self.part * estimate * (1 - estimate) / np.maximum(n, 1.0)
            error = np.sqrt(self._noise(axes, estimate) + sampling)
        return estimate, error, n, float(np.sqrt(v_base)), 0.25

    def standardise(self, weights: Mapping[str, float], over: str, *, alpha: float = 0.05) -> pd.DataFrame:
        """Rates standardised to public weights of the levels of an attribute, which the shares must be within."""
        if self.layout.axes(over)[0] not in self.within:
            raise PlanError(
                f"shares are standardised over an attribute that they are within; plan Shares(..., within={over!r})"
            )
        return standardised(self, weights, over, 0, alpha)

    def _base_cell(self, axes: Axes, cell: int) -> tuple[Axes, int]:
        """The cell that a share is of."""
        below = self.base(axes)
        if not below:
            return below, 0
        levels = dict(zip(axes, np.unravel_index(cell, self.layout.crossing.shape(axes)), strict=True))
        return below, int(np.ravel_multi_index([levels[axis] for axis in below], self.layout.crossing.shape(below)))

    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]:
        drawn = dict(self._errors(generator, draws))
        crossed = expected_cells(self.layout, self.margins) if self.part else None
        for axes in self.marginals:
            below = self.base(axes)
            shape = [self.margins.sizes[axis] if axis in below else 1 for axis in axes]
            if crossed is None:
                y, n, *variances = self.parts(axes)
            else:
                y, n = summed(crossed[1][None], axes).ravel(), summed(crossed[1][None], below).reshape(shape)
                n = np.broadcast_to(n, self.layout.crossing.shape(axes)).ravel()
                variances = list(self.parts(axes)[2:])
            p = np.clip(y / np.maximum(n, 1.0), 0.0, 1.0)
            errors = drawn[axes].reshape(draws, -1) - p * np.broadcast_to(
                drawn[below].reshape(draws, *shape), (draws, *self.layout.crossing.shape(axes))
            ).reshape(draws, -1)
            noise = variances[0] - 2 * p * variances[2] + p * p * variances[1]
            with np.errstate(all="ignore"):
                yield errors / np.sqrt(self.part * n * p * (1 - p) + noise)


def noise_covariance(table: CellTable, first: tuple[Axes, int], second: tuple[Axes, int]) -> float:
    """Of two noisy counts, each (marginal, position)."""
    shapes = [table.layout.crossing.shape(axes) for axes, _ in (first, second)]
    places = [
        (axes, [int(v) for v in np.unravel_index(cell, shape)] if axes else [])
        for (axes, cell), shape in zip((first, second), shapes, strict=True)
    ]
    scale = 1.0 if table.layout.weight is None else float(_STEPS) ** 2
    return table.margins.covariance(places[0], places[1], counts=True) / scale


def shares_shown(layout: Layout, within: Axes) -> tuple[Axes, ...]:
    """The marginals of a table of shares: without those whose every share is 1."""
    return tuple(axes for axes in layout.shown if not set(axes) <= set(within))
