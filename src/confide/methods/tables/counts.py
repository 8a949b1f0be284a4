"""Counts and shares over a crossing, with margins that add up and intervals for the population or for the dataset.

Guarantee: mu-GDP, add-remove or substitution. For each marginal A of the strategy (`strategy`) a record adds 1 to one cell. The sensitivity
is 1 under add-remove and sqrt(2) under substitution (`cell_sums`). Each marginal gets independent rounded Gaussian noise with the share s_A
of the cost, sum s_A = 1 (Dong, Roth, Su 2022: squares of mu add up). Under substitution, with a public n and no record excluded, the total
is exact and is not drawn.

Interval of a count: population (Poisson sampling) Y + z^2/2 +- z sqrt(Y + v + z^2/4), dataset Y +- z sqrt(v). Interval of a share: the p
with (Y - p N)^2 <= z^2 (N p (1 - p) + V(Y - p N)), which joins Wilson's and Fieller's. V is by least squares over all marginals
(`margins`).

Tables of counts and of shares hold counts of cells, in records or in weight, their intervals and their tests.

`Counts("region * age", precision={"total": 5, "1-way": 5, "2-way": 3})` gives counts with the wanted noise at the least budget.
The wanted SDs of the noise are by cell of each marginal. No number of records is needed, and nothing reveals one. The shares of the
marginals meet every wish at the least cost (`Strategy.for_precision`).
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
    "the null laws of these tests are of records that count alike, and here a unit's rows count once together; plan the test with "
    'Unit(..., rule="keep"), one row of each'
)


# Integer steps of a record of the largest weight.
_STEPS = 1 << BITS


class CountedTable(CellTable):
    """Common base of tables of counts and shares: joint errors, weights and tests."""

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
        """Test a hypothesis about the population, from the counts of this release.

        Parameters
        ----------
        kind : {"independence", "fit", "trend", "proportion"}
            "independence" of two columns, "fit" of one to public shares, "trend"
            of a share by dose, "proportion" of a level.
        *attributes : str
            Columns, two or one.
        given : str or sequence of str, optional
            Columns within whose levels independence is tested.
        **settings : optional
            ``expected`` of "fit", ``scores`` and ``level`` of "trend"; ``p``,
            ``level`` and ``alternative`` of "proportion".

        Returns
        -------
        HypothesisTests
            Statistic, degrees of freedom and p-value. The null distribution includes
            the privacy noise.

        Raises
        ------
        PlanError
            The table does not hold these columns, is weighted, or has no such test.
        """
        check_one_test(self.layout.crossing.schema)
        if self.layout.of_units:
            raise PlanError(OF_ROWS)
        if self.layout.weight is not None:
            raise PlanError(
                "the null laws of these tests are of records that count alike, and this table is weighted",
                "ask cf.tables.shares(..., "
                f"weights={self.layout.weight.name!r}) for intervals and differences, or plan the test without weights",
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
    """Table of numbers of records by cell and margin.

    Estimates may be negative and need not be whole numbers, because only then do
    they add up without bias.
    """

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
    """Table of shares of records by cell.

    Parameters
    ----------
    within : tuple of int, default ()
        Places of the columns within whose levels shares add up to 1.
    """

    within: Axes = ()

    kind: ClassVar[str] = "shares"
    noun: ClassVar[str] = "Shares of records"
    rows_hold: ClassVar[str] = "share"
    percent: ClassVar[bool] = True

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
        """Counts Y, sizes N of each cell's base, their noise variances and their noise covariance."""
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
        """Ends of the intervals of shares. inside: clip counts to between 0 and their base, as they are without noise."""
        y, n, v_count, v_base, covariance = self.parts(axes)
        if inside:
            n = np.maximum(n, 1.0)
            y = np.clip(y, 0.0, n)
        # in a combination of cells a unit counts no more than as if its rows were units of that weight: sum omega e^2
        alike = self.layout.of_units and not cut
        weights = (1.0, 1.0) if alike else self._weights(axes, n, np.clip(y / np.maximum(n, 1.0), 0.0, 1.0))
        return share_interval(y, n, v_count, v_base, covariance, z, self.part, *weights, cut=cut)

    def _weights(self, axes: Axes, n: Array, p: Array) -> tuple[Array | float, Array | float]:
        """`mean_weight` of each cell and of its base."""
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
        """Compare shares by ratios of odds, with MOVER intervals on logits.

        Parameters
        ----------
        first, second : mapping of str to str
            Cells to compare, as for `diff`.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Ratios with intervals. Where a share may be 0 or 1, an end is infinite
            or 0.
        """
        return compared(self, "odds", first, second, 0, alpha)

    def strata(self, axes: Axes, column: int) -> tuple[Array, Array, Array, float, float]:
        """Estimates, standard errors, sizes, SD of the noise of a size, and largest variance, for `standardise`."""
        estimate, error = self.points(axes, column)
        _, n, _, v_base, _ = self.parts(axes)
        if self.layout.of_units:
            sampling = self.part * estimate * (1 - estimate) / np.maximum(n, 1.0)
            error = np.sqrt(self._noise(axes, estimate) + sampling)
        return estimate, error, n, float(np.sqrt(v_base)), 0.25

    def standardise(self, weights: Mapping[str, float], over: str, *, alpha: float = 0.05) -> pd.DataFrame:
        """Standardize shares to public weights of the levels of one column.

        Parameters
        ----------
        weights : mapping of str to float
            Public weight of each level, such as ``{"young": 0.4, "old": 0.6}``.
        over : str
            Column of these levels. The shares must be within it.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Standardized shares with standard errors and intervals.

        Raises
        ------
        PlanError
            The shares are not within `over`, or the weights do not fit its levels.
        """
        if self.layout.axes(over)[0] not in self.within:
            raise PlanError(
                "shares are standardized over an attribute that they are within", f"plan Shares(..., within={over!r})"
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
    """The marginals of a table of shares, except those in which every share is 1."""
    return tuple(axes for axes in layout.shown if not set(axes) <= set(within))


_LEAST, _MOST = 1e-50, 1e50
_EXAMPLE = 'write cf.tables.Counts("region * smoker", precision={"total": 5, "1-way": 5, "2-way": 3})'


def checked_precision(precision: Any, *, weights: Any) -> None:
    """Raise `PlanError` unless `precision` names SDs of the noise, and for weights, whose noise has other units."""
    if precision is None:
        return
    numbers = isinstance(precision, Mapping) and all(
        is_number(sd) and _LEAST <= sd <= _MOST for sd in precision.values()
    )
    if not numbers or not precision:
        raise PlanError(
            f"precision names standard deviations of the noise of counts, from {_LEAST:g} to {_MOST:g}, got {precision!r}",
            f"{_EXAMPLE}",
        )
    if weights is not None:
        raise PlanError(
            f"precision is of counts without weights, got weights={weights!r}", "leave one of them out, or use margin="
        )


def precise_strategy(layout: Layout, precision: Mapping[str, float], *, known: bool = False) -> Strategy:
    """The strategy that meets the wanted precision at the least cost. known: the number of records is public."""
    return _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[0]


def least_mu(
    layout: Layout, precision: Mapping[str, float], squared_sensitivity: float, *, known: bool = False
) -> float:
    """The smallest mu, rounded up in the sixth digit, at which the noise is as small as wanted."""
    need = _best(layout.crossing.sizes, layout.closure, _targets(layout, precision), known)[1]
    return sqrt(need * squared_sensitivity) * (1 + 1e-6)


@lru_cache(maxsize=64)
def _best(
    sizes: tuple[int, ...], closure: tuple[Axes, ...], targets: tuple[tuple[Axes, float], ...], known: bool
) -> tuple[Strategy, float]:
    return Strategy.for_precision(sizes, closure, dict(targets), known=known)


def _targets(layout: Layout, precision: Mapping[str, float]) -> tuple[tuple[Axes, float], ...]:
    """The largest noise variance of each marginal that `precision` names; "2-way" means all crossings of two columns in the table."""
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
        raise PlanError(f"precision says nothing of {', '.join(left)}, which would get no budget", f"{_EXAMPLE}")
    return tuple(sorted(found.items()))


class _CountMethod(TableMethod):
    """Common base of counts and shares: one exact count for each cell."""

    per_level: ClassVar[bool] = True
    counts_lost: ClassVar[bool] = True

    def about(self, schema: Any) -> Layout:
        layout = of_each_level(Layout.of(self.formula, schema, weights=self.weights))
        self._check(layout)
        return layout

    def _check(self, layout: Layout) -> None:
        if layout.measures:
            right = both_sides(layout.words)[1].strip()
            raise PlanError(
                f"{self.verb} take no left side, got {layout.formula!r}",
                f"write cf.tables.{self.verb}({right!r}, ...), or cf.tables.means({layout.formula!r}, ...) for means",
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
    """Release the numbers of records by cell of a crossing, with margins.

    The estimand is the number of records in each cell and margin: as expected in
    the population (a Poisson model), or of exactly these records.

    Parameters
    ----------
    formula : str
        Grouping columns. ``"a * b"`` gives all cells and margins, ``"a:b"`` cells
        and total, ``"a + b"`` two one-way tables. ``cut(age, 18, 65)`` makes
        classes of a numeric column.
    precision : mapping of str to float, optional
        Largest SD of the noise wanted, by kind of cell, such as
        ``{"total": 4, "1-way": 4, "region:smoker": 3}``. The budget is divided
        accordingly, and a plan without `privacy` gets the least mu that suffices.

    See Also
    --------
    Shares : Shares in percent instead of numbers.
    DistinctCounts : Distinct persons when a person has several rows.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on exact integer
    counts. One record changes one cell of each marginal by 1 (sensitivity 1;
    root 2 under substitution). Marginals share the cost, as squares of mu add up.
    Cells and margins are made consistent by least squares, which is
    post-processing. One pass over the records.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]),
    ...                     "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.Counts("region * smoker", inference="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.crosstab().shape, table.status
    ((3, 3), 'valid')
    >>> precise = cf.tables.Counts("region * smoker", inference="dataset",
    ...                            precision={"total": 4, "1-way": 4, "2-way": 3})
    >>> round(cf.plan(precise, schema).guarantee.mu, 2)
    0.37
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
        "counts of a population (Poisson sampling and noise) or of the dataset (noise), exact in the noise"
    )
    verb: ClassVar[str] = "counts"
    shown_as: ClassVar[type[CellTable]] = CountTable
    #: Counts grow with the number of records: the contract compares them with a population scaled to the sample.
    extensive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_precision(self.precision, weights=self.weights)

    def strategy(self, layout: Layout, *, known: bool = False) -> Strategy | LevelStrategy:
        """The best shares of the cost, or those that meet `precision` at the least cost."""
        return (
            super().strategy(layout, known=known)
            if self.precision is None
            else precise_strategy(layout, self.precision, known=known)
        )

    def priced(self, schema: Any, relation: str, n: int | None = None) -> Guarantee | None:
        """The cost of the wanted precision for a plan without a privacy; None without `precision`. n: public number of records, if any."""
        if self.precision is None:
            return None
        if not self._priceable(schema):
            raise PlanError(
                "precision is of tables whose rows count once each", "give privacy=cf.GDP(...), or margin= and n"
            )
        layout = self.about(schema)
        known = self.knows_total(layout, relation, n)
        mu = least_mu(layout, self.precision, 2.0 if relation == "substitute" else 1.0, known=known)
        # of a square of mu, the table has the same part whatever it is
        amount = Allowance.of(GDP(mu, relation=relation), self, schema).amount
        return GDP(mu**2 / sqrt(amount), relation=relation)

    def _priceable(self, schema: Any) -> bool:
        """Whether rows count once each, so that the noise of a cell is what its marginal's share gives."""
        apart = schema.design is None and schema.cluster is None and per_of(schema) is None
        return apart and not self.about(schema).of_units

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """Plan the table. Raises `PlanError` for a privacy under which the noise exceeds `precision`, and for what tables refuse."""
        made = super().plan(schema, privacy, n=n, public=public)
        if self.precision is None or not self._priceable(schema):
            return made
        allowance = Allowance.of(privacy, self, schema)
        least = self.priced(schema, allowance.relation, n)
        assert isinstance(least, GDP)
        assert isinstance(allowance.level, GDP)
        if allowance.level.mu < least.mu * (1 - 1e-9):
            raise PlanError(
                f"precision={dict(self.precision)!r} costs {least}, and {privacy} is less",
                f"leave the privacy out, or write {least!r}, or larger wishes",
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
        """The counts of test data."""
        practice = CodedFrame.checked(frame)
        layout = self.about(practice.schema)
        values = np.concatenate([tabulated(layout, practice, axes) for axes in layout.shown])
        return dict(zip(cell_names(layout, layout.shown), values.tolist(), strict=True))


@dataclass(frozen=True)
class Shares(_CountMethod):
    """Release shares of records by cell, of all records or within groups.

    The estimand is the share of records in each cell: in the population that the
    records are a sample of, or of exactly these records.

    Parameters
    ----------
    formula : str
        Grouping columns. ``"a * b"`` gives all cells and margins, ``"a:b"`` cells
        and total, ``"a + b"`` two one-way tables. ``cut(age, 18, 65)`` makes
        classes of a numeric column.
    within : str or tuple of str, optional
        Columns within whose levels shares add up to 1. ``within="region"`` gives
        the share of smokers in each region. Without it shares are of all records.

    See Also
    --------
    Counts : Numbers of records instead of shares.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on exact integer
    counts. One record changes one cell of each marginal by 1 (sensitivity 1;
    root 2 under substitution). The release is the same as of `Counts`.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Wilson (1927), Probable inference, the law of succession, and statistical
    inference, JASA 22.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]),
    ...                     "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.Shares("region * smoker", within="region",
    ...                           inference="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.crosstab().shape
    (3, 2)
    >>> table.diff({"region": "N", "smoker": "yes"},
    ...            {"region": "S", "smoker": "yes"}).shape
    (1, 4)
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
    intervals: ClassVar[str] = "shares of a population (binomial sampling and noise) or of the dataset (noise)"
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
        """The shares of test data; NaN where no record has a base."""
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
