"""Means and totals of bounded columns over a crossing, with standard deviation, skewness and kurtosis at no further cost.

Guarantee: mu-GDP, add-remove or substitution. For each marginal A of the strategy a record gives (T, S phi(u_1), ..., S phi(u_k)) to its
cell, u_j in [-1, 1] by public bounds and |phi| <= 1 (`free_moments`). The squared sensitivity is T^2 + k S^2 under add-remove, and 4 k S^2
under substitution, where T^2 = k S^2. Each marginal gets independent rounded Gaussian noise with the share s_A of the cost, sum s_A = 1
(Dong, Roth, Su 2022: squares of mu add up).

Interval of a mean: Fieller's set with the variance of records s^2, which at each end follows the released skewness (`intervals.MeanSums`).
Interval of a total: normal, with the sampling variance N (s^2 + mean^2). A mean is of the column clipped to its bounds.

Ratios of two totals over a crossing, such as income per hour: sum y/sum x, not the mean of the ratios.

Guarantee: mu-GDP, add-remove or substitution. What is drawn and its sensitivity are in `survey.path`: sums of both columns in one
vector of free moments, and the meat of the linearized scores y - theta x.

Interval: linearized sampling variance, of persons or of the PSUs of the schema's design, and privacy noise (Cochran 1977; Binder 1983).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import later
from confide.core import Allowance, MenuEntry, Plan, Release, Statistic
from confide.errors import PlanError
from confide.methods.tables.comparing import mean_tests
from confide.methods.tables.comparing.chi_square import refused
from confide.methods.tables.comparing.comparisons import standardised
from confide.methods.tables.counts import OF_ROWS
from confide.methods.tables.draw import Margins, check_one_test, of_each_level
from confide.methods.tables.layout import Layout, both_sides
from confide.methods.tables.mean_table import MeasuredTable
from confide.methods.tables.method import TableMethod, cell_totals, tabulated
from confide.methods.tables.reading import cell_names
from confide.methods.tables.results import CellTable
from confide.methods.tables.survey.results import SurveyTable
from confide.results.hypothesis_tests import HypothesisTests
from confide.schema import CodedFrame, Schema
from confide.schema.formulas.design import checked_bounds
from confide.schema.formulas.names import parted, sides
from confide.sums.cells.cell_sums import Axes
from confide.sums.cells.moments import Measure, MomentRows, count_steps, practice_values
from confide.sums.coding import ends
from confide.sums.columns import columns_of
from confide.sums.ranges import RangedMethod, Width

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeanTable(MeasuredTable):
    """Table of means by cell, in the units of the columns.

    `sd` and `shape` give the other moments of the same release.
    """

    kind: ClassVar[str] = "means"
    noun: ClassVar[str] = "Means"
    rows_hold: ClassVar[str] = "mean"
    called: ClassVar[str] = "Mean {names}"

    def bounds(self, column: int) -> tuple[float, float]:
        middle, half = self._scale(column)
        return middle - half, middle + half

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        sums, (middle, half) = self.sums(axes, column), self._scale(column)
        return middle + half * sums.mean, half * sums.standard_error(self.part)

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        (low, high), (middle, half) = self.sums(axes, column).interval(z, self.part), self._scale(column)
        return middle + half * low, middle + half * high

    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]:
        sums, (middle, half) = (self.loose if apart else self.sums)(axes, column), self._scale(column)
        low, high = sums.quiet.interval(z, self.part)
        return middle + half * low, middle + half * high

    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]:
        if not self.layout.of_units:
            return super().compared(axes, column, z)
        sums, (middle, half) = self.loose(axes, column), self._scale(column)
        low, high = sums.interval(z, self.part)
        return middle + half * sums.mean, middle + half * low, middle + half * high

    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        """Fewer records than three squared skewnesses, so that the interval may be too short on one side."""
        sums = self.sums(axes, column)
        if not self.part:
            return np.zeros(len(sums.n), dtype=np.bool_)
        return sums.skewed

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Between two means of a marginal: the noise that they share by least squares."""
        sums, (_, half) = self.sums(axes, column), self._scale(column)
        places = [
            (axes, [int(v) for v in np.unravel_index(cell, self.layout.crossing.shape(axes))] if axes else [])
            for cell in (one, other)
        ]
        of_s = self.margins.covariance(*places) / self.rows.steps**2
        of_n = self.margins.covariance(*places, counts=True) / self.rows.count**2
        product = sums.mean[one] * sums.mean[other]
        return float(half * half * (of_s + product * of_n) / (sums.size[one] * sums.size[other]))

    def test(self, kind: str, *attributes: str, of: str | None = None, value: float = 0.0) -> HypothesisTests:
        """Test a hypothesis about means in the population, from this release.

        Parameters
        ----------
        kind : {"t", "f", "mean"}
            "t" compares two groups, "f" several groups, and "mean" the mean of all
            records with `value`. Of the difference of two columns, "mean" is the
            paired t-test.
        *attributes : str
            Column of the groups, for "t" and "f".
        of : str, optional
            Variable to test, if the table has several.
        value : float, default 0.0
            Mean under the null hypothesis, for "mean".

        Returns
        -------
        HypothesisTests
            Statistic, degrees of freedom and p-value.

        Raises
        ------
        PlanError
            The table does not hold these columns, or has no such test.
        """
        check_one_test(self.layout.crossing.schema)
        if self.layout.of_units:
            raise PlanError(OF_ROWS)
        if kind in ("t", "f") and len(attributes) <= 1:
            return mean_tests.groups(self, attributes[0] if attributes else None, self.column(of), names=kind)
        if kind == "mean" and not attributes:
            return mean_tests.one_mean(self, value, self.column(of))
        raise refused(self, kind, *attributes)

    def strata(self, axes: Axes, column: int) -> tuple[Array, Array, Array, float, float]:
        """Estimates, standard errors, sizes, SD of the noise of a size, and largest variance, for `standardise`."""
        estimate, _ = self.points(axes, column)
        sums, (_, half) = self.loose(axes, column), self._scale(column)
        error = half * sums.standard_error(self.part)
        return estimate, error, sums.n, float(np.sqrt(sums.v0[0])), half * half

    def standardise(
        self, weights: Mapping[str, float], over: str, *, of: str | None = None, alpha: float = 0.05
    ) -> pd.DataFrame:
        """Standardize means to public weights of the levels of one column.

        Parameters
        ----------
        weights : mapping of str to float
            Public weight of each level, such as ``{"young": 0.4, "old": 0.6}``.
        over : str
            Column of these levels.
        of : str, optional
            Variable to standardize, if the table has several.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Standardized means with standard errors and intervals.

        Raises
        ------
        PlanError
            The table does not hold the column, or the weights do not fit its levels.
        """
        return standardised(self, weights, over, self.column(of), alpha)

    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]:
        for column in range(len(self.measured)):
            for axes, n, s in self._errors(generator, draws, column):
                sums = self.sums(axes, column)
                with np.errstate(all="ignore"):
                    yield (s - sums.mean * n) / (sums.standard_error(self.part) * sums.size)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TotalTable(MeasuredTable):
    """Table of totals by cell, in the units of the columns."""

    kind: ClassVar[str] = "totals"
    noun: ClassVar[str] = "Totals"
    rows_hold: ClassVar[str] = "total"
    called: ClassVar[str] = "Total {names}"

    def bounds(self, column: int) -> tuple[float, float]:
        return -inf, inf

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        estimate, noise, sampling = self.sums(axes, column).total(*self._scale(column), self.part)
        weight = self.layout.heaviest
        return weight * estimate, weight * np.sqrt(noise + sampling)

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        estimate, error = self.points(axes, column)
        return estimate - z * error, estimate + z * error

    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]:
        estimate, _, sampling = self.sums(axes, column).quiet.total(*self._scale(column), self.part)
        half = z * self.layout.heaviest * np.sqrt(sampling)
        return self.layout.heaviest * estimate - half, self.layout.heaviest * estimate + half

    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]:
        for column in range(len(self.measured)):
            middle, half = self._scale(column)
            for axes, n, s in self._errors(generator, draws, column):
                with np.errstate(all="ignore"):
                    yield (middle * n + half * s) / self.points(axes, column)[1]


class MomentMethod(RangedMethod, TableMethod):
    """Common base of means and totals: moments in each cell."""

    per_level: ClassVar[bool] = True
    of_means: ClassVar[bool] = True

    term_bounds: Mapping[str, tuple[float, float]] | None

    def about(self, schema: Any) -> Layout:
        formula = self.formula
        if isinstance(formula, str) and formula.strip() and "~" not in formula:
            formula = f"{formula} ~ 1"
        if not isinstance(self.weights, (str, type(None))):
            raise PlanError(
                f"weights must name a numeric column of the schema, got {self.weights!r}",
                "leave it out for records that count alike",
            )
        bounds = checked_bounds(self.term_bounds) | dict(Schema.of(schema).terms)
        return _layout(formula, tuple(sorted(bounds.items())), schema, self.weights)

    def _rows(self, layout: Layout, axes: Axes, relation: str) -> MomentRows:
        return MomentRows(layout.crossing, axes, layout.measures, count_steps(len(layout.measures), relation))

    def statistic(self, layout: Layout, axes: Axes, relation: str) -> Statistic:
        return cell_totals(layout, self._rows(layout, axes, relation))

    def summed(self, schema: Schema) -> tuple[str, ...]:
        layout = self.about(schema)
        others = columns_of(layout.crossing, layout.weight if isinstance(layout.weight, Measure) else None)
        return tuple(own.name for own in layout.measures if own.term.plain is not None and own.name not in others)

    def terms(self, schema: Schema) -> dict[str, Measure]:
        own = self.about(schema).measures
        apart = (one for one in own if one.term.plain is None and one.term.steps > 2)
        return {one.name: one for one in apart if all(all(schema[name].declared) for name in one.columns)}  # type: ignore[union-attr]

    def width(self, plan: Plan, name: str) -> Width:
        layout, allowance = self.about(plan.declared), Allowance.of(plan.requested, self, plan.declared)
        finest = layout.shown[-1]
        unit = allowance.rows_per_unit**2 / float(allowance.amount)
        noise = self._noises(layout, self.strategy(layout).variance(finest) * unit, plan.relation)
        # noise is that of records of the largest weight
        return Width.of_means(noise, layout.crossing.cells(finest) / layout.usual)

    def survey_rows(self, layout: Layout, relation: str) -> MomentRows:
        return self._rows(layout, (), relation)

    def with_total(self, own: Margins, release: Release, layout: Layout) -> Margins:
        known = self._known(release)
        if known is None:
            return own
        # a public number of records, in the steps that counts are in
        steps = self._rows(layout, (), release.plan.relation).count
        whole = dict(own.components)
        whole[()] = whole[()].copy()
        whole[()][0] = known * steps
        return Margins(own.sizes, whole, own.spread, known * steps)

    def _noises(self, layout: Layout, noise: float, relation: str) -> tuple[float, float]:
        """(v0, v1): noise variances of a count and of a moment, from the variance in units of the sensitivity."""
        rows = self._rows(layout, (), relation)
        squared = noise * float(self.statistic(layout, layout.shown[-1], relation).sensitivity_squared(relation))
        return squared / rows.count**2, squared / rows.steps**2

    def _around(self, layout: Layout, axes: Axes, count: float, noise: float) -> tuple[float, float, int]:
        """All records, the square of mu of the sums, and how many columns have ranges, from what a forecast knows of a marginal."""
        return count * layout.crossing.cells(axes), self.strategy(layout).variance(axes) / noise, len(layout.measures)

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Opposite bounds in one cell, and in two."""
        if schema is None:
            return ()
        layout = self.about(schema)
        low, high = ends(schema, layout.columns)
        return (low, {**high, **{name: low[name] for name in layout.crossing.columns}}), (low, high)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The numbers of test data; NaN where a cell has none."""
        practice = CodedFrame.checked(frame)
        layout = self.about(practice.schema)
        values = []
        for value, whole in self._practised(layout, practice):
            for axes in layout.shown:
                total = tabulated(layout, practice, axes, value)
                values.append(self._summary(total, tabulated(layout, practice, axes, whole)))
        names = cell_names(layout, layout.shown, [measure.name for measure in layout.measures])
        return dict(zip(names, np.concatenate(values).tolist(), strict=True))

    def _practised(self, layout: Layout, practice: CodedFrame) -> Iterator[tuple[Array, Array]]:
        """Values of test data, 0 where one is missing, and 1 or 0 for whether it is present, of each column."""
        for measure in layout.measures:
            value, known = practice_values(measure, practice)
            yield np.where(known, value, 0.0), known.astype(float)

    def _summary(self, total: Array, count: Array) -> Array:
        """What the table shows, from sums and numbers of values."""
        raise NotImplementedError


@lru_cache(maxsize=16)
def _layout(
    formula: str, bounds: tuple[tuple[str, tuple[float, float]], ...], schema: Any, weights: str | None
) -> Layout:
    layout = of_each_level(Layout.of(formula, schema, term_bounds=dict(bounds), most=1 << 20, weights=weights))
    if not layout.measures:
        raise PlanError(
            f"means need a column on the left side, got {formula!r}", "write 'income ~ region', or 'income ~ 1'"
        )
    return layout


@dataclass(frozen=True)
class _Summary(MomentMethod):
    """Common base of means and totals: parameters, words and the table that reads them."""

    formula: str
    inference: str | None = None
    population_size: int | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    weights: str | None = None

    def facts(self, about: Layout) -> Mapping[str, Any]:
        return {
            "target": f"{self.verb}, {about.words}{about.weighed}, of values clipped to their bounds",
            "intervals_for": self.intervals,
        }

    def joint(self, formula: str) -> Means:
        own = (self.inference, self.population_size, self.term_bounds, self.weights)
        return Means(formula, *own, where=self.where, bounds=self.bounds)

    def told(self, release: Release, layout: Layout) -> dict[str, Any]:
        return {"rows": self._rows(layout, (), release.plan.relation)}


@dataclass(frozen=True)
class Means(_Summary):
    """Release means of columns by cell of a crossing, with SD and skewness.

    The estimand is the mean of each column, clipped to its declared bounds, in
    each cell: in the population, or of exactly these records. Standard deviation,
    skewness and kurtosis come from the same release at no further cost.

    Parameters
    ----------
    formula : str
        Numeric columns or derived terms, and the groups, such as
        ``"income + bmi ~ region * cut(age, 18, 65)"``. ``"income"`` alone is the
        mean of all records.

    See Also
    --------
    Totals : Totals of the same columns.
    Ratios : Ratios of two totals.
    Quantiles : Medians and other quantiles.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on exact integer
    sums of bounded moments. With k columns the squared sensitivity is T^2 + k S^2
    under add-remove and 4 k S^2 under substitution, for steps T of the count and
    S of a moment. Marginals share the cost, as squares of mu add up.
    With one column a record without its value is excluded. With several columns,
    each has its own number of values. One pass over the records.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]),
    ...                     "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.Means("income ~ region", inference="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> list(table.params.index), table.sd().shape
    (['income', 'income | region=N', 'income | region=S'], (3, 7))
    """

    name: ClassVar[str] = "means"
    kin: ClassVar[str] = "means"
    numbers: ClassVar[Mapping[str, str]] = {"": "mean"}
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A mean by group",
        "{number} ~ {label} | {number} ~ 1",
        "Of income in each region, for income ~ region; of all, for ~ 1.",
        command='table "{}"',
        place=3,
    )
    # under a design 1 cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = (
        "means of clipped columns, of a population (sampling and noise) or of the dataset (noise)"
    )
    verb: ClassVar[str] = "means"
    example: ClassVar[str] = '"income ~ region"'
    shown_as: ClassVar[type[CellTable]] = MeanTable

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        """Of the first column in its units: of its typical mean and SD, else an SD of a third of the half-range, halfway to a bound."""
        v0, v1 = self._noises(layout, noise, relation)
        own = layout.measures[0]
        mean, sd = own.typical or (own.middle + own.half / 2, own.half / 3)
        sampling = count * sd**2 if self.inference == "population" else 0.0
        whole = own.half**2 * v1 + (mean - own.middle) ** 2 * v0
        return sqrt(sampling + self.in_range(whole, count * sd**2, *self._around(layout, axes, count, noise))) / count

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        """The typical mean of the first column, where the schema states one."""
        typical = layout.measures[0].typical
        return None if typical is None else typical[0]

    def _summary(self, total: Array, count: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(total / count)


@dataclass(frozen=True)
class Totals(_Summary):
    """Release totals of columns by cell of a crossing.

    The estimand is the total of each column, clipped to its declared bounds, in
    each cell: in the population, or of exactly these records.

    Parameters
    ----------
    formula : str
        Numeric columns or derived terms, and the groups, such as
        ``"income ~ region"``. ``"income"`` alone is the total of all records.

    See Also
    --------
    Means : Means of the same columns.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on exact integer
    sums of bounded moments. With k columns the squared sensitivity is T^2 + k S^2
    under add-remove and 4 k S^2 under substitution, for steps T of the count and
    S of a moment. The release is the same as of `Means`.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]),
    ...                     "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.Totals("income ~ region", inference="dataset")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.crosstab().shape
    (3, 1)
    """

    name: ClassVar[str] = "totals"
    kin: ClassVar[str] = Means.kin
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A total by group",
        "{number} ~ {label} | {number} ~ 1",
        "Of income in each region, for income ~ region.",
        command='table "{}" --kind totals',
        place=4,
    )
    # under a design 1 cut weights and PSU sums otherwise; the numbers mean the same
    intervals: ClassVar[str] = (
        "totals of clipped columns, of a population (sampling and noise) or of the dataset (noise)"
    )
    verb: ClassVar[str] = "totals"
    example: ClassVar[str] = '"income ~ region"'
    extensive: ClassVar[bool] = True
    shown_as: ClassVar[type[CellTable]] = TotalTable

    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        """Of the first column in its units: of its typical mean and SD, else an SD of a third of the half-range, about the middle."""
        v0, v1 = self._noises(layout, noise, relation)
        own = layout.measures[0]
        # in half-ranges, whose squares are ordinary floats for any bounds
        mean, sd = (value / own.half for value in own.typical or (own.middle, own.half / 3))
        sampled = count if self.inference == "population" else 0.0
        whole, around = v1 + (own.middle / own.half) ** 2 * v0, self._around(layout, axes, count, noise)
        return own.half * sqrt(
            sampled * (sd**2 + mean**2) + self.in_range(whole, count * sd**2 + mean**2 * v0, *around)
        )

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        typical = layout.measures[0].typical
        return None if typical is None else count * typical[0]

    def _summary(self, total: Array, count: Array) -> Array:
        return total


_CALL = 'write cf.tables.ratios("income / hours ~ region", ...)'


@dataclass(frozen=True)
class Ratios(MomentMethod):
    """Release ratios of totals of two columns over a crossing.

    The estimand is sum y / sum x in each cell, of columns clipped to their
    declared bounds. It is not the mean of the ratios of records.

    Parameters
    ----------
    formula : str
        Two numeric columns or derived terms, and the groups, such as
        ``"income / hours ~ region"``. ``"income / hours"`` is of all records.

    See Also
    --------
    Means : Means of columns.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on the sums of
    both columns and on the squares of the linearized scores y - theta x. Their
    sensitivity is proved in `confide.methods.tables.survey.draw`. A record that
    misses one of the two values is excluded. Two passes over the records, three
    with weights.

    References
    ----------
    Cochran (1977), Sampling techniques.

    Binder (1983), On the variances of asymptotically normal estimators from
    complex surveys, ISR 51.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]),
    ...                     "income": cf.Numeric(0, 100), "hours": cf.Numeric(1, 80)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.Ratios("income / hours ~ region", inference="population")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> list(table.params.index)
    ['income / hours', 'income / hours | region=N', 'income / hours | region=S']
    >>> table.status
    'valid'
    """

    formula: str
    inference: str | None = None
    population_size: int | None = None
    term_bounds: Mapping[str, tuple[float, float]] | None = None
    weights: str | None = None

    name: ClassVar[str] = "ratios"
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "A total over another total, by group",
        "{number} / {below} ~ {label} | {number} / {below} ~ 1",
        "A ratio of totals, such as income per hour.",
        command='table "{}"',
        place=7,
    )
    # 1 of several rows per unit was charged too little; under a design both cut weights and PSU sums otherwise; the numbers mean the same
    source: ClassVar[str] = "linearized ratios of totals (Cochran 1977; Binder 1983); integer sums derived in confide"
    intervals: ClassVar[str] = "ratios of totals of clipped columns, of a population or of the dataset"
    verb: ClassVar[str] = "ratios"
    example: ClassVar[str] = '"income / hours ~ region"'
    shown_as: ClassVar[type[CellTable]] = SurveyTable

    def about(self, schema: Any) -> Layout:
        whole = Schema.of(schema)
        if not isinstance(self.formula, str):
            raise PlanError(f"a table's formula is text, got {self.formula!r}", f"{_CALL}")
        left, right = both_sides(self.formula if len(sides(self.formula)) > 1 else f"{self.formula} ~ 1")
        parts = parted(left, "/")
        if len(parts) != 2 or not all(parts):
            raise PlanError(f"a ratio is one column over another, got {left.strip()!r}", f"{_CALL}")
        bounds = checked_bounds(self.term_bounds) | dict(whole.terms)
        return Layout.of(
            f"{parts[0]} + {parts[1]} ~ {right}", whole, term_bounds=bounds, most=1 << 20, weights=self.weights
        )

    def facts(self, about: Layout) -> Mapping[str, Any]:
        return {
            "target": f"ratios of totals, {self.formula}{about.weighed}, of values clipped to their bounds",
            "intervals_for": self.intervals,
        }

    def expected(self, layout: Layout, axes: Any, count: float, noise: float, relation: str) -> float:
        raise PlanError("a forecast of ratios depends on both columns", "ask for one of each mean")

    def table_of(self, release: Release, layout: Layout, margins: Margins, inference: str) -> CellTable:
        raise PlanError("ratios are read as a survey's table")

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The ratios of test data; NaN where the lower total is 0."""
        practice = CodedFrame.checked(frame)
        layout = self.about(practice.schema)
        (y, complete), (x, there) = self._practised(layout, practice)
        complete *= there
        pairs = [[tabulated(layout, practice, axes, own * complete) for own in (y, x)] for axes in layout.shown]
        found = np.concatenate([self._summary(*pair) for pair in pairs])
        title = " / ".join(own.name for own in layout.measures)
        return dict(zip(cell_names(layout, layout.shown, (title,)), found.tolist(), strict=True))

    def _summary(self, total: Array, count: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(total / count)
