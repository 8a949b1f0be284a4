"""Counts and shares over a crossing, with margins that add up and intervals for the population or for the data set.

Guarantee: mu-GDP, add-remove or substitute. For each marginal A of the strategy (`strategy`) a record adds 1 to one cell: sensitivity 1
under add-remove, sqrt(2) under substitute (`cell_sums`); independent rounded Gaussian noise with the share s_A of mu^2, sum s_A = 1
(Dong, Roth, Su 2022: mu^2 adds). Under substitute, with n public and no record left out, the total is exact and is not drawn.

Interval of a count: population (Poisson sampling) Y + z^2/2 +- z sqrt(Y + v + z^2/4), data set Y +- z sqrt(v); of a share: the p with
(Y - p N)^2 <= z^2 (N p (1 - p) + V(Y - p N)), Wilson's and Fieller's at once; V by least squares over all marginals (`margins`).

Tables of counts and of shares: counts of cells, in records or in weight, their intervals, and the tests that they answer.

Counts by the noise that is wanted, `Counts("region * age", precision={"total": 5, "1-way": 5, "2-way": 3})`, at the least budget.

The wishes are standard deviations of the noise of a cell, by marginal; no number of records is needed, and nothing tells of one. The
shares of the marginals are those of the least mu^2 at which every wish is met (`Strategy.for_precision`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide._helpers import later, near_match
from confide.core import Allowance, MenuEntry, Plan, Release, Statistic
from confide.core.units.privacy_unit import per_of
from confide.errors import PlanError
from confide.guarantees import GDP, Guarantee
from confide.guarantees.validation import is_number
from confide.methods.tables.comparing import chi_square
from confide.methods.tables.comparing.chi_square import refused
from confide.methods.tables.comparing.comparisons import compared, standardised
from confide.methods.tables.draw import (
    LevelStrategy,
    Strategy,
    check_one_test,
    check_within,
    of_each_level,
    whose_words,
)
from confide.methods.tables.intervals import count_interval, expected_cells, share_interval, summed
from confide.methods.tables.layout import Layout, both_sides
from confide.methods.tables.method import TableMethod, cell_totals, tabulated
from confide.methods.tables.reading import cell_names, mean_weights
from confide.methods.tables.results import CellTable
from confide.results.hypothesis_tests import HypothesisTests
from confide.schema import CodedFrame
from confide.sums.cells.cell_sums import Axes, CellCounts, CellIndex
from confide.sums.cells.weighted_cells import CountRows
from confide.sums.coding import BITS, ends

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


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
            return chi_square.independence(self, first, second, given, **settings)
        if kind == "fit" and len(attributes) == 1:
            return chi_square.fit(self, attributes[0], settings.pop("expected", None), **settings)
        if kind == "trend" and len(attributes) == 2:
            return chi_square.trend(
                self, *attributes, settings.pop("scores", None), settings.pop("level", None), **settings
            )
        if kind == "proportion" and len(attributes) == 1 and "p" in settings:
            rest = (settings.pop("level", None), settings.pop("p"), settings.pop("alternative", "two-sided"))
            return chi_square.proportion(self, attributes[0], *rest, **settings)
        raise refused(self, kind, *attributes)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountTable(CountedTable):
    """Numbers of records by cell. Estimates may be negative and are no integers: only so do they add up without bias."""

    kind: ClassVar[str] = "counts"
    noun: ClassVar[str] = "Records"
    rows_hold: ClassVar[str] = "records"
    whole: ClassVar[bool] = True

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
    noun: ClassVar[str] = "Shares of records"
    rows_hold: ClassVar[str] = "share"

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


_LEAST, _MOST = 1e-50, 1e50
_EXAMPLE = 'write cf.tables.Counts("region * smoker", precision={"total": 5, "1-way": 5, "2-way": 3})'


def checked_precision(precision: Any, *, weights: Any) -> None:
    """Raise `PlanError` for what names no noise, and beside weights, whose noise is in other units."""
    if precision is None:
        return
    numbers = isinstance(precision, Mapping) and all(
        is_number(sd) and _LEAST <= sd <= _MOST for sd in precision.values()
    )
    if not numbers or not precision:
        raise PlanError(
            f"precision names standard deviations of the noise of counts, from {_LEAST:g} to {_MOST:g}, got {precision!r}; {_EXAMPLE}"
        )
    if weights is not None:
        raise PlanError(
            f"precision is of counts without weights, got weights={weights!r}; leave one of them out, or use margin="
        )


def precise_strategy(layout: Layout, precision: Mapping[str, float], *, known: bool = False) -> Strategy:
    """The shares at which the wishes cost least. known: the number of records is public."""
    return _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[0]


def least_mu(
    layout: Layout, precision: Mapping[str, float], squared_sensitivity: float, *, known: bool = False
) -> float:
    """The smallest mu, rounded up in the sixth digit, whose noise is at most what is wished."""
    need = _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[1]
    return sqrt(need * squared_sensitivity) * (1 + 1e-6)


@lru_cache(maxsize=64)
def _best(
    sizes: tuple[int, ...], closure: tuple[Axes, ...], targets: tuple[tuple[Axes, float], ...], known: bool
) -> tuple[Strategy, float]:
    return Strategy.for_precision(sizes, closure, dict(targets), known=known)


def _targets(layout: Layout, precision: Mapping[str, float]) -> tuple[tuple[Axes, float], ...]:
    """The largest noise variance of each marginal that has a wish; "2-way" stands for all crossings of two that are shown."""
    titles = {layout.crossing.title(axes): axes for axes in layout.shown}
    ways = {f"{len(axes)}-way" for axes in layout.shown if axes}
    found: dict[Axes, float] = {}
    for name, sd in precision.items():
        way = re.fullmatch(r"([1-9]\d*)-way", name)
        if name not in titles and name not in ways:
            known = tuple(dict.fromkeys((*titles, *sorted(ways))))
            raise PlanError(
                f"precision names {name!r}, which the table does not show{near_match(name, known)}; it shows: {', '.join(known)}"
            )
        for axes in (
            [titles[name]] if name in titles else [one for one in layout.shown if way and len(one) == int(way[1])]
        ):
            found[axes] = min(float(sd) ** 2, found.get(axes, inf))
    left = [layout.crossing.title(axes) for axes in layout.maximal if axes not in found]
    if left:
        raise PlanError(f"precision says nothing of {', '.join(left)}, which would get no budget; {_EXAMPLE}")
    return tuple(sorted(found.items()))


class _CountMethod(TableMethod):
    """What counts and shares share: one exact count for each cell."""

    per_level: ClassVar[bool] = True

    def about(self, schema: Any) -> Layout:
        layout = of_each_level(Layout.of(self.formula, schema, weights=self.weights))
        self._check(layout)
        return layout

    def _check(self, layout: Layout) -> None:
        if layout.measures:
            right = both_sides(layout.words)[1].strip()
            raise PlanError(
                f"{self.verb} take no left side, got {layout.formula!r}; write cf.tables.{self.verb}({right!r}, ...), or "
                f"cf.tables.means({layout.formula!r}, ...) for means"
            )

    def joint(self, formula: str) -> Counts:
        return Counts(formula, self.inference, self.population_size, self.weights, where=self.where)

    def statistic(self, layout: Layout, axes: Axes, relation: str) -> Statistic:
        if layout.weight is None:
            return CellCounts(CellIndex(layout.crossing, axes))
        return cell_totals(layout, CountRows(layout.crossing, axes))

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Two records that differ in every attribute."""
        if schema is None:
            return ()
        layout = self.about(schema)
        return (ends(schema, layout.columns),) if layout.columns else ()


@dataclass(frozen=True)
class Counts(_CountMethod):
    """Numbers of records over a crossing. formula: "a*b" (crossing and margins), "a:b" (crossing and total), "a + b" (one-way margins).

    inference: "population" (the records are a sample: Poisson sampling and noise) or "dataset" (these records: noise alone), without a
    default; a question may ask for the other one. population_size: the public size of a finite population, whose sampling variance is
    multiplied by 1 - n/N. weights: a numeric column with public bounds from 0 up, which each record counts with; the noise grows with the
    largest weight over the mean one, so declare bounds that few weights reach. precision: the standard deviation of the noise that is
    wished for, by marginal ("total", "1-way", "2-way", "region:smoker"): shares follow it, and a plan without a privacy is that of the
    least mu. One pass.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> release = cf.release(Counts("region * smoker", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> table = cf.infer(release)
    >>> table.crosstab().shape, table.status
    ((3, 3), 'valid')
    >>> wished = Counts("region * smoker", inference="dataset", precision={"total": 4, "1-way": 4, "2-way": 3})
    >>> round(cf.plan(wished, schema).guarantee.mu, 2)
    0.36
    """

    formula: str
    inference: str | None = None
    population_size: int | None = None
    weights: str | None = None
    precision: Mapping[str, float] | None = None

    name: ClassVar[str] = "counts"
    kin: ClassVar[str] = "counts"
    numbers: ClassVar[Mapping[str, str]] = {"": "count"}
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "How many, by group",
        "{label} * {second} | {label}",
        "A table of counts with margins; a * b is a crossing.",
        command='table "{}"',
        place=1,
    )
    # under a design earlier ones cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = (
        "counts of a population (Poisson sampling and noise) or of the data set (noise), exact in the noise"
    )
    verb: ClassVar[str] = "counts"
    shown_as: ClassVar[type[CellTable]] = CountTable
    #: Counts grow with the number of records: the contract compares them with a population scaled to the sample.
    extensive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_precision(self.precision, weights=self.weights)

    def strategy(self, layout: Layout, *, known: bool = False) -> Strategy | LevelStrategy:
        """The best shares, or those at which the wishes for its noise cost least."""
        return (
            super().strategy(layout, known=known)
            if self.precision is None
            else precise_strategy(layout, self.precision, known=known)
        )

    def priced(self, schema: Any, relation: str, n: int | None = None) -> Guarantee | None:
        """What the wishes for the noise cost, for whoever plans without a privacy; None without wishes. n: of records, if it is public."""
        if self.precision is None:
            return None
        if not self._priceable(schema):
            raise PlanError(
                "precision is of tables whose rows count once each; give privacy=cf.GDP(...), or margin= and n"
            )
        layout = self.about(schema)
        known = self.knows_total(layout, relation, n)
        mu = least_mu(layout, self.precision, 2.0 if relation == "substitute" else 1.0, known=known)
        return GDP(mu, relation=relation)

    def _priceable(self, schema: Any) -> bool:
        """Whether rows count once each, so that the noise of a cell is what its marginal's share gives."""
        apart = schema.design is None and schema.cluster is None and per_of(schema) is None
        return apart and not self.about(schema).of_units

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Raises `PlanError` for a privacy under which the noise is above what `precision` wishes for, beside what tables refuse."""
        made = super().plan(schema, privacy, n=n, public=public)
        if self.precision is None or not self._priceable(schema):
            return made
        allowance = Allowance.of(privacy, self, schema)
        least = self.priced(schema, allowance.relation, n)
        assert isinstance(least, GDP)
        if sqrt(allowance.amount) < least.mu * (1 - 1e-9):
            raise PlanError(
                f"precision={dict(self.precision)!r} costs {least}, and {privacy} is less; leave the privacy out, or write {least!r}, or "
                "larger wishes"
            )
        return made

    def facts(self, about: Layout) -> Mapping[str, Any]:
        return {
            "target": f"numbers{whose_words(about.crossing.schema) or ' of records'} by {about.words}{about.weighed}",
            "intervals_for": self.intervals,
        }

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        sampling = count if self.inference == "population" else 0.0
        return sqrt(sampling + noise * (2.0 if relation == "substitute" else 1.0))

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        return count

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The counts of practice records."""
        practice = CodedFrame.checked(frame)
        layout = self.about(practice.schema)
        values = np.concatenate([tabulated(layout, practice, axes) for axes in layout.shown])
        return dict(zip(cell_names(layout, layout.shown), values.tolist(), strict=True))


@dataclass(frozen=True)
class Shares(_CountMethod):
    """Shares of records over a crossing, of all records or within the levels of some attributes.

    within: the attributes whose cells the shares add up to 1 in: Shares("region * smoker", within="region") has the share of smokers of
    each region. inference, population_size, weights: as for `Counts`, and so is the release.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = Shares("region * smoker", within="region", inference="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.crosstab().shape, table.diff({"region": "N", "smoker": "yes"}, {"region": "S", "smoker": "yes"}).shape
    ((3, 2), (1, 4))
    """

    formula: str
    within: str | tuple[str, ...] | None = None
    inference: str | None = None
    population_size: int | None = None
    weights: str | None = None

    name: ClassVar[str] = "shares"
    kin: ClassVar[str] = Counts.kin
    numbers: ClassVar[Mapping[str, str]] = {"": "share"}
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "Which share, by group",
        "{label}",
        "A table of shares.",
        command='table "{}" --kind shares',
        place=2,
    )
    # under a design earlier ones cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = "shares of a population (binomial sampling and noise) or of the data set (noise)"
    verb: ClassVar[str] = "shares"
    shown_as: ClassVar[type[CellTable]] = ShareTable

    def _check(self, layout: Layout) -> None:
        super()._check(layout)
        if not shares_shown(layout, self._within(layout)):
            raise PlanError(
                f"every share of {layout.formula!r} within {self.within!r} is 1; cross it with another column, as in "
                '"region * smoker" within="region"'
            )

    def survey_within(self, layout: Layout) -> Axes:
        return self._within(layout)

    def survey_shown(self, layout: Layout) -> tuple[Axes, ...]:
        return shares_shown(layout, self._within(layout))

    def _within(self, layout: Layout) -> Axes:
        within = () if self.within is None else layout.axes(self.within)
        check_within(layout, within)
        return within

    def facts(self, about: Layout) -> Mapping[str, Any]:
        of = "" if not self._within(about) else f" within {about.crossing.title(self._within(about))}"
        return {
            "target": f"shares{whose_words(about.crossing.schema) or ' of records'} by {about.words}{of}{about.weighed}",
            "intervals_for": self.intervals,
        }

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        base = self._base(layout, axes, count)
        return self._error(count / base if base else inf, base, noise, relation)

    def _base(self, layout: Layout, axes: Axes, count: float) -> float:
        """The records that a share is of, where each cell has that many."""
        inside = tuple(axis for axis in axes if axis in self._within(layout))
        return count * layout.crossing.cells(axes) / layout.crossing.cells(inside)

    def _error(self, p: float, base: float, noise: float, relation: str) -> float:
        sampling = p * (1 - p) / base if self.inference == "population" else 0.0
        return sqrt(sampling + noise * (2.0 if relation == "substitute" else 1.0) / base**2)

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        base = self._base(layout, axes, count)
        return count / base if base else None

    def uneven(
        self, layout: Layout, axes: Axes, count: float
    ) -> Iterable[tuple[str, Callable[[float, str], float], float | None]]:
        base = self._base(layout, axes, count)
        if not axes or not base:
            return
        within = any(axis in self._within(layout) for axis in axes)
        small, where = (base / 4, " in a group with a quarter of those records") if within else (base, "")
        for words, p in (("a share of one half", 0.5), ("a level with a quarter of that share", count / base / 4)):
            yield words + where, partial(self._error, p, small), p

    def told(self, release: Release, layout: Layout) -> dict[str, Any]:
        return {"within": self._within(layout)}

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The shares of practice records; NaN where no record has a base."""
        practice = CodedFrame.checked(frame)
        layout = self.about(practice.schema)
        within, values = self._within(layout), []
        for axes in shares_shown(layout, within):
            counts = tabulated(layout, practice, axes).reshape(layout.crossing.shape(axes))
            others = tuple(place for place, axis in enumerate(axes) if axis not in within)
            with np.errstate(all="ignore"):
                values.append((counts / counts.sum(axis=others, keepdims=True)).ravel())
        names = cell_names(layout, shares_shown(layout, within))
        return dict(zip(names, np.concatenate(values).tolist(), strict=True))
