"""What the methods of tables share: the layout of a formula, the shares of its marginals, and marginals read back from a release."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.core import Allowance, Composed, Meter, Method, Plan, Pool, Release, ResultOptions, Source, Statistic
from confide.core.exact import digest
from confide.core.plan import Lazy, check_n, checked_inference
from confide.core.ranges import check_same_ranges
from confide.core.units.privacy_unit import per_of
from confide.errors import PlanError
from confide.guarantees import GDP, Guarantee
from confide.methods.tables.combining import pooled, view
from confide.methods.tables.draw import LevelStrategy, Margins, Strategy, UnitMargins, level_axis
from confide.methods.tables.layout import Layout, marginal_name
from confide.methods.tables.results import CellTable
from confide.methods.tables.sums import UnitCells
from confide.methods.tables.survey.draw import SurveyPath
from confide.methods.tables.survey.reading import survey_table
from confide.results.pages.content import check_names
from confide.schema import CodedFrame, Unit
from confide.sums.cells.cell_sums import Axes, CellTotals
from confide.sums.cells.moments import Measure, MomentRows, taken_as
from confide.sums.cells.weighted_cells import CountRows, WeightedRows, places_of_weights
from confide.sums.columns import practice_codes

#: The constant that says that the number of records is public and was not drawn.
_TOTAL = "records"
_SIZES = (1_000, 10_000, 100_000)
# Tables whose intervals know what a unit in several cells adds to them.
_WEIGHED = ("counts", "shares", "means", "totals")


def tabulated(layout: Layout, frame: CodedFrame, axes: Axes, weights: Array | None = None) -> Array:
    """Sums of test data by cell of a marginal, (cells,); of 1 each without weights."""
    cells = layout.crossing.cells(axes)
    if isinstance(layout.weight, Measure):
        omega, keep = places_of_weights(layout.weight, practice_codes(layout.weight, frame))
        own = layout.heaviest * (omega if keep is None else np.where(keep, omega, 0.0))
        weights = own if weights is None else own * weights
    place = layout.crossing.places(practice_codes(layout.crossing, frame), axes)
    return np.bincount(place, weights=weights, minlength=cells + 1)[:cells].astype(np.float64)


def cell_totals(layout: Layout, rows: CountRows | MomentRows) -> Statistic:
    """The sums of one marginal, with the weights of records, or of the rows of a unit, where the layout has them."""
    if isinstance(layout.weight, Measure):
        return CellTotals(WeightedRows(layout.crossing, rows.axes, rows, layout.weight))
    return CellTotals(UnitCells(layout.crossing, rows.axes, rows) if layout.of_units else rows)


class TableMethod(Method):
    """Base of the tables: marginals of exact integers with independent noise at the best shares, put together by least squares.

    A subclass has the fields formula, covers and population_size, and says what a marginal's statistic is and which table reads it.
    """

    formula: str
    inference: str | None
    population_size: int | None
    weights: str | None

    family: ClassVar[str] = "tables"
    source: ClassVar[str] = (
        "marginals with least squares after Xiao, He, Zhang, Kifer 2023; shares and integers derived in confide"
    )
    asks: ClassVar[tuple[str, ...]] = ("inference",)
    #: The call that stands for it, in messages.
    verb: ClassVar[str] = "counts"
    example: ClassVar[str] = '"region * smoker"'
    designs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_inference(self.inference, f"cf.tables.{type(self).__name__}(...")
        size = self.population_size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise PlanError(f"population_size must be a whole number of records above 0, got {size!r}", "leave it out")
        if size is not None and self.weights is not None:
            raise PlanError(
                f"population_size={size} is for records that count alike, and with weights={self.weights!r} the part of the population "
                "that was seen is not n/N",
                "leave population_size out",
            )

    def rules(self, schema: Any) -> tuple[str, ...]:
        """By weight where the unit asks for it: what a unit's rows say then counts once in the whole table, and tests are not answered.
        A table of several columns, or with a column of weights, keeps one row."""
        apart = schema.design is None and schema.cluster is None
        asked = isinstance(schema.unit, Unit) and schema.unit.rule == "weight" and apart
        if not asked or self.name not in _WEIGHED or self.weights is not None or len(self.about(schema).measures) > 1:
            return self.units
        return (*self.units, "weight")

    # what a subclass gives --------------------------------------------------------------------------------------------

    @abstractmethod
    def statistic(self, layout: Layout, axes: Axes, relation: str) -> Statistic:
        """The exact sums of one marginal."""

    #: The table that is read.
    shown_as: ClassVar[type[CellTable]]

    def table_of(self, release: Release, layout: Layout, margins: Margins, inference: str) -> CellTable:
        """The table of put-together marginals, in the statistic's own units."""
        told = self.told(release, layout)
        return self.shown_as.read(release, layout, margins, inference, population=self.population_size, **told)

    def told(self, release: Release, layout: Layout) -> dict[str, Any]:
        """What the table must know besides."""
        return {}

    @abstractmethod
    def expected(self, layout: Layout, axes: Axes, count: float, noise: float, relation: str) -> float:
        """The standard error of a cell of a marginal with that many records; noise: the noise variance in units of the sensitivity."""

    # plan -------------------------------------------------------------------------------------------------------------

    def strategy(self, layout: Layout, *, known: bool = False) -> Strategy | LevelStrategy:
        """The shares of the marginals. known: the number of records is public."""
        axis = level_axis(layout) if self.per_level else None
        if axis is not None:
            return LevelStrategy.of(layout, axis)
        return Strategy.of(layout.crossing.sizes, layout.closure, layout.shown, known=known)

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        return self._planned(about, relation, known=False)

    def _planned(self, layout: Layout, relation: str, *, known: bool) -> dict[str, tuple[Statistic, Fraction]]:
        shares = self.strategy(layout, known=known).shares
        return {
            marginal_name(layout, axes): (self.statistic(layout, axes, relation), share)
            for axes, share in shares.items()
        }

    def knows_total(self, layout: Layout, relation: str, n: int | None) -> bool:
        """Whether the number of records in the table is public: substitute, a number that was given, and no record is excluded."""
        return (
            relation == "substitute"
            and n is not None
            and self.where is None
            and per_of(layout.crossing.schema) is None
            and layout.weight is None
            and not layout.drops
            and len(layout.closure) > 1
        )

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """The spends of the marginals. Raises `PlanError` or `SchemaError` for a formula that cannot be planned from public facts."""
        check_n(n)
        check_names(self.shown_as, (own.name for own in self.about(schema).crossing.attributes))
        path = SurveyPath.of(self, schema)
        if path is not None:
            return path.plan(privacy, n)
        layout, allowance = self.about(schema), Allowance.of(privacy, self, schema)
        known = self.knows_total(layout, allowance.relation, n)
        planned = self._planned(layout, allowance.relation, known=known)
        spends = tuple(allowance.spend(name, one, share) for name, (one, share) in planned.items())
        live = {name: one for name, (one, _) in planned.items()}
        facts = dict(self.facts(layout))
        if known:
            facts["constants"] = {**facts.get("constants", {}), _TOTAL: n}
        facts["forecast"] = Lazy(lambda: self._forecast(layout, allowance, n, known=known))
        return Plan.of(self, schema, allowance, spends[0] if len(spends) == 1 else Composed(spends), live, n=n, **facts)

    def value(self, layout: Layout, axes: Axes, count: float) -> float | None:
        """The number of a cell of a marginal with that many records, where public facts tell it; None: they do not."""
        return None

    def uneven(
        self, layout: Layout, axes: Axes, count: float
    ) -> Iterable[tuple[str, Callable[[float, str], float], float | None]]:
        """Cells that are not as large as the others: (its words, its standard error by noise and relation, its value)."""
        if axes:
            own = partial(self.expected, layout, axes, count / 4)
            yield "a cell with a quarter of those records", own, self.value(layout, axes, count / 4)

    def _forecast(self, layout: Layout, allowance: Allowance, n: int | None, *, known: bool) -> dict[str, Any]:
        strategy, unit = self.strategy(layout, known=known), 1.0 / float(allowance.amount)
        alike = "of one cell each, if all its cells have the same number of records"
        own = 1.0
        if layout.of_units:
            alike += ", and each unit's rows lie in one"
        elif isinstance(layout.weight, Measure):
            # in units of the mean weight the noise is W/mean as large
            own = layout.usual
            alike += f" and weights are {layout.weight.middle:g} each, the middle of their bounds"
        scale = own * layout.heaviest if self.extensive else 1.0
        taken = taken_as(layout.measures[:1]) if self.inference == "population" else ""
        alike += f"; {taken}" if taken else ""
        found: dict[str, Any] = {"assumes": alike, "taken": taken, "value": {}, "uneven": {}}
        for size in (n,) if n else _SIZES:
            errors: dict[str, float] = {}
            values: dict[str, float] = {}
            uneven: dict[str, tuple[tuple[str, float, float | None], ...]] = {}
            for axes in layout.shown:
                name, count = layout.crossing.title(axes), size / layout.crossing.cells(axes)
                noise = strategy.variance(axes) * unit / own**2
                errors[name] = scale * self.expected(layout, axes, count, noise, allowance.relation)
                value = self.value(layout, axes, count)
                if value is not None:
                    values[name] = scale * value
                uneven[name] = tuple(
                    (words, scale * error(noise, allowance.relation), None if one is None else scale * one)
                    for words, error, one in self.uneven(layout, axes, count)
                )
            key = str(size)
            found[key], found["value"][key], found["uneven"][key] = errors, values, uneven
        return found

    # under a survey's design --------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The marginals, each once; under a design weights and meats too."""
        path = SurveyPath.of(self, source.schema)
        return super().draw(source, plan, meter) if path is None else path.draw(source, plan, meter)

    def survey_layout(self, schema: Any) -> Layout:
        """The layout without weights; those of the design are added."""
        layout: Layout = self.about(schema)
        return replace(layout, weight=None)

    def survey_within(self, layout: Layout) -> Axes:
        """The attributes that shares are within."""
        return ()

    def survey_shown(self, layout: Layout) -> tuple[Axes, ...]:
        """The marginals in the table."""
        return layout.shown

    def survey_rows(self, layout: Layout, relation: str) -> Any:
        """The map behind sums of moments; None for counts."""
        return None

    def survey_sums(self, layout: Layout, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        """The marginals, with shares that add up to 1."""
        return self._planned(layout, relation, known=False)

    def survey_margins(self, drawn: Mapping[str, Any], layout: Layout) -> Margins:
        """Noisy marginals put together."""
        return Margins.of(layout.crossing.sizes, self._found(drawn, layout))

    # infer ------------------------------------------------------------------------------------------------------------

    def _found(self, drawn: Mapping[str, Any], layout: Layout) -> dict[Axes, tuple[Array, float]]:
        found: dict[Axes, tuple[Array, float]] = {}
        # in the layout's own order: a file may hold them in another one, and sums of doubles would differ in their last bits
        for axes in layout.closure:
            noisy = drawn.get(marginal_name(layout, axes))
            if noisy is not None:
                found[axes] = noisy.decode().reshape(-1, *layout.crossing.shape(axes)), noisy.variance
        return found

    def released(self, release: Release, layout: Layout) -> Margins:
        """The released marginals put together, as sums in the statistics' own integers."""
        found = self._found(release.statistics, layout)
        if layout.of_units:
            return UnitMargins.of_units(layout.crossing.sizes, found, (0, 1) if layout.measures else (0,))
        own = Margins.of(layout.crossing.sizes, found, total=self._known(release))
        return self.with_total(own, release, layout)

    def with_total(self, own: Margins, release: Release, layout: Layout) -> Margins:
        """The margins with a public number of records in the statistics' own steps."""
        return own

    def _known(self, release: Release) -> float | None:
        known = release.plan.constants.get(_TOTAL)
        return None if known is None else float(known)

    def table(self, release: Release, about: Any, options: ResultOptions) -> CellTable:
        inference = checked_inference(options.inference or self.inference, "cf.infer(release")
        path = SurveyPath.of(self, release.plan.declared)
        if path is not None:
            return survey_table(path, release, inference)
        return self.table_of(release, about, self.released(release, about), inference)

    def joint(self, formula: str) -> TableMethod:
        """The table of this formula, of the same records, that holds its own marginals and those of others of its kin."""
        raise PlanError(f"{self.name} is released separately")

    def pools(
        self, questions: Mapping[str, Method], shares: Mapping[str, Fraction], schema: Any
    ) -> tuple[tuple[Pool, ...], tuple[str, ...]]:
        """Tables of the same records as one strategy, where each gains."""
        return pooled(questions, shares, schema)

    def from_pool(self, pool: Method, release: Release, schema: Any) -> CellTable:
        """Its table, from the marginals of the pool."""
        assert isinstance(pool, TableMethod)
        return view(self, pool, release, schema)

    def combine(
        self, releases: Sequence[Release], methods: Sequence[Method], options: ResultOptions | None
    ) -> CellTable:
        """The same marginals asked again: several releases of one dataset as one table, by generalized least squares (`combined`)."""
        return combined(releases, methods, options)


# several releases ----------------------------------------------------------------------------------------------------


def combined(releases: Sequence[Release], methods: Sequence[Any], options: ResultOptions | None = None) -> CellTable:
    """The table that the first release's method asks for, from all releases. They are of one dataset, which is for the caller to know.

    Independent noise on the same marginals: precisions of each residual space add up (`Margins`), whatever marginals each release held. The
    guarantee of the table is that of all releases together: squares of mu add up.

    Raises `PlanError` for releases that do not hold the same kind of numbers of the same records, and for one that is given twice.
    """
    asked = options or ResultOptions()
    asked.only(*TableMethod.asks)
    _check(releases, methods)
    first, schema = methods[0], releases[0].plan.declared
    layout = first.about(schema)
    if layout.of_units:
        raise PlanError(
            "tables by weight under a unit are not combined: what a unit adds to the variance of a cell does not add up",
            "read each release separately",
        )
    released: list[tuple[Axes, tuple[Array, float]]] = []
    for release, method in zip(releases, methods, strict=True):
        own = method.about(schema)
        if not _alike(layout, own):
            raise PlanError(
                f"releases are combined where they hold the same columns' numbers, got {layout.formula!r} and {own.formula!r}"
            )
        released += _moved(release, own, layout)
    total = first._known(releases[0])
    margins = Margins.joined(layout.crossing.sizes, released, total=total)
    margins = first.with_total(margins, releases[0], layout)
    inference = checked_inference(asked.inference or first.inference, "cf.infer(release")
    table: CellTable = first.table_of(releases[0], layout, margins, inference)
    mu = sqrt(sum(_mu(release) ** 2 for release in releases))
    whole = replace(_gdp(releases[0]), mu=mu)
    return replace(
        table,
        guarantee=whole,
        requested=whole,
        release_sha256=digest(["combined", *sorted(release.sha256 for release in releases)]),
        drawn_sha256=digest(["combined", *sorted(release.drawn_sha256 for release in releases)]),
        facts=(
            *table.facts,
            ("Combined", f"{len(releases)} releases: {', '.join(one.sha256[:12] for one in releases)}"),
        ),
    )


def _gdp(release: Release) -> GDP:
    found = release.guarantees[0]
    if not isinstance(found, GDP):
        raise PlanError(f"releases of tables under {found} are not combined; those under GDP are")
    return found


def _mu(release: Release) -> float:
    return _gdp(release).mu


def _check(releases: Sequence[Release], methods: Sequence[Any]) -> None:
    if len(releases) < 2 or len({release.sha256 for release in releases}) < len(releases):
        raise PlanError("two or more different releases are combined; one alone is read by cf.infer(release)")
    if len({method.kin for method in methods}) > 1 or not methods[0].kin:
        names = ", ".join(method.name for method in methods)
        raise PlanError(f"counts and shares are combined, and means and totals of the same columns; got {names}")
    one = releases[0].plan
    if one.schema.get("design") is not None or one.schema.get("cluster") is not None:
        raise PlanError(
            "releases of a survey's design have covariances at different estimates and are not combined",
            "ask for all cells in one table",
        )
    for other in (release.plan for release in releases[1:]):
        same = (one.where, one.schema, one.relation, one.n) == (other.where, other.schema, other.relation, other.n)
        if not same or one.method.parameters.get("weights") != other.method.parameters.get("weights"):
            raise PlanError(
                "releases are combined where schema, relation, n, where and weights are the same",
                "ask for a publication where they differ",
            )
    check_same_ranges(release.ranges for release in releases)


def _alike(one: Layout, other: Layout) -> bool:
    """Whether records lie in the tables alike: the same measures, and the same columns drop missing values."""
    drops = [{n for n in own.crossing.columns if own.crossing.schema[n].on_missing == "drop"} for own in (one, other)]
    return drops[0] == drops[1] and [m.digest for m in one.measures] == [m.digest for m in other.measures]


def _moved(release: Release, own: Layout, layout: Layout) -> list[tuple[Axes, tuple[Array, float]]]:
    """The released marginals of one layout in the attributes of another, those that it has not summed out."""
    names = [one.name for one in layout.crossing.attributes]
    place = {k: names.index(one.name) for k, one in enumerate(own.crossing.attributes) if one.name in names}
    found = []
    for axes in own.closure:
        noisy = release.statistics.get(marginal_name(own, axes))
        if noisy is None:
            continue
        values = noisy.decode().reshape(-1, *own.crossing.shape(axes))
        out = tuple(1 + at for at, axis in enumerate(axes) if axis not in place)
        summed = int(np.prod([values.shape[at] for at in out])) if out else 1
        values = values.sum(axis=out) if out else values
        kept = [place[axis] for axis in axes if axis in place]
        turn = sorted(range(len(kept)), key=kept.__getitem__)
        found.append((tuple(sorted(kept)), (values.transpose(0, *(1 + k for k in turn)), noisy.variance * summed)))
    return found
