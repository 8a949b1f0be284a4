"""Table 1: characteristics of a study's records by group: means, medians, counts and shares of levels, standardized differences.

Guarantee: mu-GDP, add-remove or substitution. A tenth of the cost is for the numbers of records by group, an equal share of the rest for
each row. All numeric columns are one release of free moments (`confide.sums.cells.moments`). A record gives (T, S phi(u_1), ...,
S phi(u_k)) to its group, T^2 the tenth's part. It gives S to a separate count where a value is missing, so that no record is excluded
because another column is missing. (One numeric column that drops missing values has separate counts, apart from the groups'.) With weights
each of these blocks m counts as (omega m, omega (1 - omega) m), omega = w/W in [0, 1]. That does not exceed it in length
(`confide.sums.cells.weighted_cells`, where substitution is proved, too). Each categorical column is a crossing with the groups, a record in
one cell. Each median is what `Quantiles` releases of the column by group, with its bins and both of its rounds
(`confide.methods.quantiles`). Groups are disjoint. Noise is independent, and rounds compose adaptively, so that squares of mu add up
(Dong, Roth, Su 2022).

Intervals: of means Fieller's with the skewness, of shares Wilson's with noise, of medians whole bins, as in tables. Standardized difference
d = (m1 - m2)/sqrt((s1^2 + s2^2)/2), with p (1 - p) for levels: the delta method with third and fourth moments (`reading`). No
p-values: groups of a study differ by design or by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Allowance, MenuEntry, Meter, Plan, Release, ResultOptions, Source, Statistic
from confide.core.plan import checked_inference
from confide.errors import PlanError
from confide.guarantees import Guarantee
from confide.methods.quantiles.draw import CumulativeRounds
from confide.methods.quantiles.reading import rank_error
from confide.methods.tables.layout import Layout, weight_of
from confide.methods.tables.table_one.reading import STEPS, Reader, TableOneAbout
from confide.methods.tables.table_one.results import TableOneResult
from confide.schema import Categorical, CodedFrame, Schema
from confide.schema.formulas.formula import cut
from confide.schema.formulas.names import column_named, parted, quoted, sides
from confide.sums.cells.cell_sums import Attribute
from confide.sums.cells.moments import Measure, practice_values, taken_as
from confide.sums.cells.weighted_cells import places_of_weights
from confide.sums.coding import ends
from confide.sums.columns import columns_of, practice_codes
from confide.sums.ranges import RangedMethod, Width

_COUNTS = Fraction(1, 10)
_SIZES = (1_000, 10_000, 100_000)
_EXAMPLE = 'write cf.tables.TableOne("age + bmi + smoker ~ arm")'


@dataclass(frozen=True)
class TableOne(RangedMethod):
    """Release Table 1: means, medians and shares of several columns, by group.

    The estimands are means and medians of columns clipped to their bounds, shares
    of levels, and standardized differences between groups: in the population, or
    of exactly these records.

    Parameters
    ----------
    formula : str
        Numeric and categorical columns, and the groups, such as
        ``"age + bmi + smoker + stage ~ arm"``, or ``"~ 1"`` without groups.
    medians : tuple of str, default ()
        Numeric columns that get a row with median and quartiles, too. Not with
        `weights`.
    inference : {"population", "dataset"}, default "population"
        What the intervals are about: the population that the records are a sample
        of, or exactly these records. Required in a call of one step.

    See Also
    --------
    Means : Means of one or more columns.
    Shares : Shares of the levels of columns.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on exact integer
    sums. A tenth of the cost is for the numbers of records by group, and the rest
    is shared equally by the rows. Groups are disjoint, and squares of mu add up.
    The module docstring has the sensitivities.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(0, 100),
    ...                     "smoker": cf.Categorical(["no", "yes"]),
    ...                     "arm": cf.Categorical(["A", "B"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> method = cf.tables.TableOne("age + smoker ~ arm")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> len(table.to_frame())
    9
    """

    formula: str
    medians: tuple[str, ...] = ()
    inference: str = "population"
    weights: str | None = None

    name: ClassVar[str] = "table_one"
    numbers: ClassVar[Mapping[str, str]] = {": mean": "mean", ": median": "quantile", "": "share"}
    example: ClassVar[str] = '"age + smoker ~ arm"'
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "Table 1: characteristics by group",
        "{number} ~ {label} | {second} ~ {label}",
        "Means, shares and medians of several columns.",
        command='describe "{}"',
        place=6,
    )
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = "free moments, crossings and cumulative counts in one plan; Dong, Roth, Su 2022"
    intervals: ClassVar[str] = "means and medians of clipped columns and shares, by group; sampling and privacy noise"
    asks: ClassVar[tuple[str, ...]] = ("inference",)
    of_means: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or not self.formula.strip():
            raise PlanError(f"Table 1 takes a formula, got {self.formula!r}", f"{_EXAMPLE}")
        named = (self.medians,) if isinstance(self.medians, str) else tuple(self.medians)
        object.__setattr__(self, "medians", named)
        checked_inference(self.inference, "cf.tables.TableOne(...")
        if self.weights is not None and named:
            raise PlanError(
                f"medians are of records that count alike, and this table has weights={self.weights!r}",
                "leave medians out",
            )

    # plan -------------------------------------------------------------------------------------------------------------

    def summed(self, schema: Schema) -> tuple[str, ...]:
        """The measured columns but those with a median, whose bins are laid between declared bounds."""
        about = self.about(schema)
        others = (*columns_of(about.groups, about.weight), *(own.rows.measure.name for own in about.medians))
        return tuple(own.name for own in about.measures if own.name not in others)

    def width(self, plan: Plan, name: str) -> Width:
        about, sd = self.about(plan.declared), plan.spend("moments").noise_sd
        rows = about.moments(plan.relation)
        assert sd is not None
        return Width.of_means(((sd / rows.count) ** 2, (sd / rows.steps) ** 2), about.cells)

    def about(self, schema: Any) -> TableOneAbout:
        """The rows and the groups; `PlanError` or `SchemaError` for what cannot be planned from public facts."""
        whole = Schema.of(schema)
        left, *rights = sides(self.formula)
        right = "~".join(rights)
        layout = Layout.of(right or "1", whole)
        if len(layout.maximal) != 1 or layout.measures:
            raise PlanError(
                f"the groups of {cut(self.formula)!r} must partition the records", 'write "~ arm" or "~ arm:sex"'
            )
        names = tuple(dict.fromkeys(column_named(part, whole.names) for part in parted(left, "+") if part))
        if not names:
            raise PlanError(f"{cut(self.formula)!r} names no column for a row", f"{_EXAMPLE}")
        categorical = {name for name in names if name in whole and isinstance(whole[name], Categorical)}
        twice = categorical & set(layout.crossing.columns)
        if twice:
            raise PlanError(f"{min(twice)!r} is a row and a group of {cut(self.formula)!r}", "name it once")
        medians = tuple(column_named(name, whole.names) for name in self.medians)
        strange = [name for name in medians if name not in names or name in categorical]
        if strange:
            numeric = ", ".join(name for name in names if name not in categorical) or "none"
            raise PlanError(
                f"medians names {strange[0]!r}, which is not a numeric row of this table; those are: {numeric}"
            )
        return TableOneAbout(
            whole,
            layout.crossing,
            names,
            tuple(Measure.of(quoted(name), whole) for name in names if name not in categorical),
            tuple(Attribute.of(name, whole) for name in names if name in categorical),
            tuple(
                CumulativeRounds.of(layout, Measure.of(quoted(name), whole), of_column=f" of {name}")
                for name in medians
            ),
            None if self.weights is None else weight_of(self.weights, whole),
        )

    def statistics(self, about: TableOneAbout, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        """A tenth for the groups' sizes, the rest in equal parts for the rows."""
        row = (1 - _COUNTS) / about.rows
        found: dict[str, tuple[Statistic, Fraction]] = {}
        if about.apart:
            found["groups"] = (about.counted(), _COUNTS)
        if about.measures:
            own = row * len(about.measures) + (0 if about.apart else _COUNTS)
            found["moments"] = (about.summed(relation), own)
        for attribute in about.levels:
            found[f"levels of {attribute.name}"] = (about.counted(attribute), row)
        for median in about.medians:
            found |= median.statistics(row)
        return found

    def unreleased(self, about: TableOneAbout) -> Mapping[str, Statistic]:
        """The fine histograms of the columns with a median."""
        return {name: one for own in about.medians for name, one in own.unreleased().items()}

    def facts(self, about: TableOneAbout) -> Mapping[str, Any]:
        """Estimand and what intervals account for."""
        by = about.groups.title(about.axes)
        weighed = "" if about.weight is None else f", weighted by {self.weights} (at most {about.heaviest:g})"
        return {
            "target": f"Table 1 of {', '.join(about.order)}" + ("" if by == "total" else f" by {by}") + weighed,
            "intervals_for": f"{self.intervals}, or privacy noise alone where exactly these records are asked about",
        }

    def plan(
        self, schema: Any, privacy: Guarantee, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> Plan:
        """All spends in one release, with the standard errors that they will give in a group."""
        made, about = super().plan(schema, privacy, n=n, public=public), self.about(schema)
        found: dict[str, Any] = {
            "assumes": "in one group, groups and levels of equal size; of medians the share of records below"
            if about.weight is None
            else f"in one group, groups and levels of equal size, weights of {about.weight.middle:g} each, the middle of their bounds"
        }
        found["taken"] = taken_as(about.measures) if self.inference == "population" else ""
        found["assumes"] += f"; {found['taken']}" if found["taken"] else ""
        means = {f"{own.name}: mean": own.typical[0] if own.typical else None for own in about.measures}
        values = means | {level.name: 1 / level.size for level in about.levels}
        found |= {"value": {}, "uneven": {}}
        for size in (n,) if n else _SIZES:
            key, small = str(size), self._expected(made, about, size / about.cells / 4)
            found[key] = self._expected(made, about, size / about.cells)
            found["value"][key] = {name: one for name, one in values.items() if one is not None}
            found["uneven"][key] = {
                name: (("a group with a quarter of those records", error, values.get(name)),)
                for name, error in (small.items() if about.cells > 1 else ())
            }
        return replace(made, forecast=found)

    def _expected(self, made: Plan, about: TableOneAbout, size: float) -> dict[str, float]:
        """Standard errors by row: means by typical values, else with an SD of a third of the half-range, halfway to a bound."""
        part = 1.0 if self.inference == "population" else 0.0
        # in units of the mean weight the noise is W/mean as large
        unit = 1.0 if about.weight is None else about.weight.middle / about.heaviest
        sds = {
            name: (made.spend(name).noise_sd or 0.0) / unit
            for name in made.statistics
            if name not in self.unreleased(about)
        }
        found = {}
        for own in about.measures:
            rows = about.moments(made.relation)
            mean, sd = own.typical or (own.middle + own.half / 2, own.half / 3)
            declared = (own.half / rows.steps) ** 2 + ((mean - own.middle) / rows.count) ** 2
            amount = float(Allowance.of(made.requested, self, about.schema).amount)
            around = size * about.cells, amount, len(about.measures)
            noise = self.in_range(sds["moments"] ** 2 * declared, size * sd**2, *around)
            found[f"{own.name}: mean"] = sqrt(part * size * sd**2 + noise) / size
        for level in about.levels:
            p, noise = 1 / level.size, (sds[f"levels of {level.name}"] / about.step) ** 2
            # the share's base is the sum of its levels
            of_share = noise * (1 - 2 * p + p * p * level.size)
            found[level.name] = sqrt(part * size * p * (1 - p) + of_share) / size
        for median in about.medians:
            noise = (sds[median.name("cumulative")] / STEPS) ** 2
            error = rank_error(0.5, size, noise, median.rows.bins.size, part)
            found[f"{median.rows.measure.name}: median"] = error
        return found

    # release ----------------------------------------------------------------------------------------------------------

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """One pass for everything; then the rounds of each distribution whose bins are fitted."""
        laid = [own for own in self.about(plan.declared).medians if own.first is not None]
        rounds = {name for own in laid for name in own.statistics()}
        names = [name for name in plan.statistics if name not in rounds]
        totals = dict(zip(names, source.aggregate(*map(plan.statistic, names)), strict=True))
        hidden = [totals.pop(own.name("histograms")) for own in laid]
        for name, total in totals.items():
            meter.draw(name, total)
        return {
            name: starts
            for own, counts in zip(laid, hidden, strict=True)
            for name, starts in own.draw(counts, meter).items()
        }

    # infer ------------------------------------------------------------------------------------------------------------

    def table(self, release: Release, about: TableOneAbout, options: ResultOptions) -> TableOneResult:
        """All rows. question: `inference`."""
        inference = checked_inference(options.inference or self.inference, "cf.infer(release")
        reader = Reader(release, about, 1.0 if inference == "population" else 0.0)
        rows, sizes, sd = reader.read()
        return TableOneResult.read(
            release,
            rows,
            about.names,
            sizes,
            sd,
            inference,
            heaviest=about.heaviest,
            weights=self.weights,
            legend=reader.missing(),
            missing=reader.without,
        )

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Means, medians and shares of test data, by the names of the table."""
        practice = CodedFrame.checked(frame)
        about = self.about(practice.schema)
        place = about.groups.places(practice_codes(about.groups, practice), about.axes)
        weights = np.ones(len(practice))
        if about.weight is not None:
            omega, weighed = places_of_weights(about.weight, practice_codes(about.weight, practice))
            weights = omega if weighed is None else np.where(weighed, omega, 0.0)
        found: dict[str, float] = {}
        for row, values, keep in _values(about, practice):
            groups = [("", place < about.cells), *((n, place == k) for k, n in enumerate(about.names) if n)]
            for name, own in groups:
                number, weight = values[own & keep], weights[own & keep]
                value = nan  # of a group without records
                if len(number) and row.endswith("median"):
                    value = float(np.quantile(number, 0.5, method="inverted_cdf"))
                elif weight.any():
                    value = float(np.average(number, weights=weight))
                found[f"{row} | {name}" if name else row] = value
        return found

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Two records that differ in everything."""
        if not isinstance(schema, Schema):
            return ()
        about = self.about(schema)
        low, high = ends(schema, dict.fromkeys((*about.groups.columns, *about.order)))
        heavy = {} if about.weight is None else ends(schema, about.weight.columns)[1]
        return (({**low, **heavy}, {**high, **heavy}),)


def _values(about: TableOneAbout, practice: CodedFrame) -> Iterator[tuple[str, Array, NDArray[np.bool_]]]:
    """The name of each row, the value of each test record, and whether it has one."""
    for name in about.order:
        for measure in (own for own in about.measures if own.name == name):
            values, known = practice_values(measure, practice)
            yield f"{name}: mean", values, known
            if any(own.rows.measure.name == name for own in about.medians):
                yield f"{name}: median", values, known
        for own in (own for own in about.levels if own.name == name):
            level = practice.codes[own.column]
            for k, label in enumerate(own.labels):
                yield f"{name}={label}", (level == k).astype(np.float64), level >= 0
