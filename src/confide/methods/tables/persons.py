"""Persons by what their rows say: how many have at least one row of a kind, and persons by number of such rows, with intervals.

In tables of records a person with ten rows counts at most as `rows` of the unit says. These tables count each unit once, by all its
rows: `any(condition)` is whether any row satisfies a condition, `number(condition, 1, 2, 5)` how many do, a column the level of most rows.

Guarantee: mu-GDP, add-remove or substitution. For each marginal A of the strategy a unit adds 1 to one cell, whatever rows it has
(`sums`): sensitivity 1 under add-remove, sqrt(2) under substitution. Each gets independent rounded Gaussian noise with the share s_A of
the cost, sum s_A = 1 (Dong, Roth, Su 2022: squares of mu add up).

Intervals are as for counts and shares of independent records (`counts`), because each unit is one. Source: as `counts`.

How many rows units have: a noisy histogram, and what each number of rows that counts would cost.

Guarantee: mu-GDP, add-remove (a unit lies in one cell: sensitivity 1) or substitution (two cells: sqrt 2), whatever `rows` the schema says.
Noise: rounded Gaussian (core 3.1). It serves to choose `rows` in `cf.Unit`, which never happens automatically from the data. Anyone who
writes another number into the schema says that it came from this release. Source: exact histogram; Dong, Roth, Su 2022, Theorem 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.core import MenuEntry, Method, Release, ResultOptions, Statistic
from confide.core.allowance import UNIT_SHARE
from confide.core.units import contributions as histogram
from confide.core.units.privacy_unit import WHOLE
from confide.errors import PlanError
from confide.methods.tables.counts import Counts, CountTable, Shares, ShareTable
from confide.methods.tables.layout import FormulaReader, Layout
from confide.methods.tables.results import CellTable
from confide.methods.tables.sums import RowNumber, UnitCrossing
from confide.results.base import BaseResult
from confide.results.pages.content import Column
from confide.schema import Unit
from confide.schema.formulas.names import parted, sides
from confide.sums.cells.cell_sums import Attribute
from confide.sums.coding import ends

_CALL = re.compile(r"(any|number)\((.*)\)", re.DOTALL)
_EXAMPLE = "write \"any(ill == 'yes') * region\", or \"number(ill == 'yes', 1, 2, 5)\""


class _PersonReader(FormulaReader):
    """Right sides that may hold `any` and `number` of rows."""

    def crossing(self) -> UnitCrossing:
        return UnitCrossing(tuple(self.attributes.values()), self.schema)

    def attribute(self, text: str) -> Attribute:
        call = _CALL.fullmatch(text)
        if call is None:
            return super().attribute(text)
        name, parts = self.spelled(text), parted(self.spelled(call.group(2)), ",")
        if call.group(1) == "any":
            if len(parts) != 1:
                raise PlanError(f"any takes one condition, got {name!r}", f"{_EXAMPLE}")
            return RowNumber.at_least_one(name, parts[0], self.schema)
        points: list[int] = []
        while parts and re.fullmatch("[0-9]+", parts[-1]):
            points.insert(0, int(parts.pop()))
        if len(parts) > 1:
            raise PlanError(f"number takes a condition and then whole numbers, got {name!r}", f"{_EXAMPLE}")
        return RowNumber.number(name, parts[0] if parts else None, tuple(points), self.schema)


def _layout(method: Any, schema: Any) -> Layout:
    """The layout of a formula of persons; `PlanError` where the schema enforces no unit, or lets several rows of one count."""
    unit = schema.unit
    if not isinstance(unit, Unit):
        raise PlanError(
            f"cf.tables.{method.verb} counts the values of an id column, and the schema says that one {unit} is",
            'write cf.Schema(..., unit=cf.Unit("person_id")) with the id column of the data',
        )
    if unit.per is not None:
        raise PlanError(
            f"cf.tables.{method.verb} counts each {unit.column} once over all {unit.per}, and the schema says per={unit.per!r}",
            "write unit="
            f'cf.Unit({unit.column!r}), which the same ledger takes, with where="{unit.per} == ..." for one of them',
        )
    if unit.rows > 1:
        raise PlanError(
            f"cf.tables.{method.verb} counts each {unit.column} once, got rows={unit.rows}",
            f"write unit=cf.Unit({unit.column!r}), which the same ledger takes",
        )
    if method.weights is not None:
        raise PlanError(
            f"each {unit.column} counts once, and a weight is of a record, got weights={method.weights!r}",
            "leave it out",
        )
    if isinstance(method.formula, str) and len(sides(method.formula)) > 1:
        raise PlanError(
            f"a table of {unit.column} has no left side, and its conditions are written without ~, got {method.formula!r}",
            f"{_EXAMPLE}",
        )
    return Layout.of(method.formula, schema, reader=_PersonReader)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistinctCountTable(CountTable):
    """Table of numbers of distinct persons by cell.

    Parameters
    ----------
    person : str, default "person"
        Id column that identifies a person.
    """

    person: str = "person"
    rows_hold: ClassVar[str] = "distinct"

    @property
    def title(self) -> str:
        return _title(self, "Distinct")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistinctShareTable(ShareTable):
    """Table of shares of distinct persons by cell.

    Parameters
    ----------
    person : str, default "person"
        Id column that identifies a person.
    """

    person: str = "person"

    @property
    def title(self) -> str:
        return _title(self, "Shares of distinct")


def _title(table: Any, noun: str) -> str:
    by = "" if table.layout.formula.strip() == "1" else f" by {table.layout.formula.strip().replace(' * ', ' and ')}"
    return f"{noun} {table.person}{by}"


class _OfPersons:
    """Common base of counts and shares of persons."""

    units: ClassVar[tuple[str, ...]] = ("weight",)
    # each counts once, independently of all others: in clusters and designs they are not
    unit_meat: ClassVar[bool] = False
    per_level: ClassVar[bool] = False
    designs: ClassVar[bool] = False
    verb: ClassVar[str]
    # clipped and unread values are counted by records
    counts_lost: ClassVar[bool] = False

    def about(self, schema: Any) -> Layout:
        layout = _layout(self, schema)
        self._check(layout)  # type: ignore[attr-defined]
        return layout

    def facts(self, about: Layout) -> Mapping[str, Any]:
        own: dict[str, Any] = dict(super().facts(about))  # type: ignore[misc]
        person = about.crossing.schema.protects
        target = own["target"].replace("of records", f"of values of {person}", 1)
        said = own["intervals_for"].replace("the dataset", f"the values of {person} in the dataset", 1)
        constants = {**own.get("constants", {}), WHOLE: person}
        return {**own, "target": target, "intervals_for": said, "constants": constants}

    def told(self, release: Release, layout: Layout) -> dict[str, Any]:
        own = super().told(release, layout)  # type: ignore[misc]
        return {**own, "person": layout.crossing.schema.protects}

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Two records that differ in every column that is looked at."""
        if schema is None:
            return ()
        crossing = self.about(schema).crossing
        assert isinstance(crossing, UnitCrossing)
        return (ends(schema, crossing.read),) if crossing.read else ()

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Raise `PlanError`: test data have no ids, and so no persons."""
        raise PlanError("test data have no ids, so that nobody can be counted in them", "count them in the data")


@dataclass(frozen=True)
class DistinctCounts(_OfPersons, Counts):
    """Release numbers of distinct persons, by what all their rows have.

    The estimand is the number of privacy units in each cell, each counted once:
    as expected in the population (a Poisson model), or of exactly these units.

    Parameters
    ----------
    formula : str
        As for `Counts`, with conditions on a person's rows. ``any(condition)``
        is yes or no. ``number(condition, 1, 2, 5)`` is the number of rows that
        satisfy it, in classes from 1, 2 and 5; ``number(1, 2, 5)`` counts all
        rows. A person has the level of a column that most of the rows have.
    weights : None
        Not available: each person counts once.
    where : str, optional
        Rows to look at. A person without one is not counted.

    See Also
    --------
    DistinctShares : Shares of persons.
    Counts : Numbers of rows.

    Notes
    -----
    Guarantee: mu-GDP under either relation. A unit is in one cell of each
    marginal, whatever rows it has (sensitivity 1; root 2 under substitution). The
    schema must enforce a unit, such as ``cf.Unit("person_id")``.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"ill": cf.Categorical(["no", "yes"]),
    ...                     "sex": cf.Categorical(["F", "M"])}, unit=cf.Unit("pid"))
    >>> frame = schema.sample(3_000, seed=1)
    >>> frame["pid"] //= 3
    >>> data = cf.read(frame, schema)
    >>> method = cf.tables.DistinctCounts("any(ill == 'yes') * sex",
    ...                                   inference="dataset")
    >>> table = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None))
    >>> table.title, table.crosstab().shape
    ("Distinct pid by any(ill == 'yes') and sex", (3, 3))
    """

    name: ClassVar[str] = "distinct_counts"
    numbers: ClassVar[Mapping[str, str]] = {"": "count"}
    menu: ClassVar[MenuEntry | None] = MenuEntry(
        "How many persons, by all their rows",
        "any({event})",
        "Each person counts once: any(...), number(..., 1, 2, 5) of the rows.",
        command='table "{}" --kind distinct_counts',
        name="persons",
        place=8,
    )
    intervals: ClassVar[str] = (
        "numbers of units of a population (Poisson sampling and noise) or of the dataset (noise), exact in the noise"
    )
    verb: ClassVar[str] = "distinct_counts"
    shown_as: ClassVar[type[CellTable]] = DistinctCountTable


@dataclass(frozen=True)
class DistinctShares(_OfPersons, Shares):
    """Release shares of distinct persons, by what all their rows have.

    The estimand is the share of privacy units in each cell, each counted once: in
    the population, or of exactly these units.

    Parameters
    ----------
    formula : str
        As for `Shares`, with conditions on a person's rows: ``any(condition)`` and
        ``number(condition, 1, 2, 5)``. A person has the level of a column that
        most of the rows have.
    weights : None
        Not available: each person counts once.
    where : str, optional
        Rows to look at. A person without one is not counted.

    See Also
    --------
    DistinctCounts : Numbers of persons.

    Notes
    -----
    Guarantee: mu-GDP under either relation. A unit is in one cell of each
    marginal, whatever rows it has (sensitivity 1; root 2 under substitution). The
    schema must enforce a unit, such as ``cf.Unit("person_id")``.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"ill": cf.Categorical(["no", "yes"]),
    ...                     "sex": cf.Categorical(["F", "M"])}, unit=cf.Unit("pid"))
    >>> frame = schema.sample(3_000, seed=1)
    >>> frame["pid"] //= 3
    >>> data = cf.read(frame, schema)
    >>> method = cf.tables.DistinctShares("any(ill == 'yes') * sex", within="sex",
    ...                                   inference="population")
    >>> cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None)).status
    'valid'
    """

    name: ClassVar[str] = "distinct_shares"
    numbers: ClassVar[Mapping[str, str]] = {"": "share"}
    intervals: ClassVar[str] = (
        "shares of the units of a population (binomial sampling and noise) or of the dataset (noise)"
    )
    verb: ClassVar[str] = "distinct_shares"
    shown_as: ClassVar[type[CellTable]] = DistinctShareTable


#: Numbers of rows that the table compares.
_ROWS = (1, 2, 3, 5, 10, 20, 50)
# The histogram's own spend; the name "contributions" is that of the part that other plans pay for.
_NAME = "units"


@dataclass(frozen=True)
class RowsPerUnit(Method):
    """Release the distribution of rows per privacy unit, to choose a row limit.

    The table has the share of rows that each contribution bound, ``rows`` of
    `cf.Unit`, keeps, and the noise that it costs. The schema must enforce a unit.

    Parameters
    ----------
    where : None
        Not allowed here, because the table is of all units.

    Notes
    -----
    Guarantee: mu-GDP under either relation. A unit is in one cell of a histogram
    of numbers of rows (sensitivity 1; root 2 under substitution), whatever
    ``rows`` the schema has.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84, Theorem 2.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)}, unit=cf.Unit("person_id"))
    >>> frame = schema.sample(3_000, seed=1)
    >>> frame["person_id"] //= 3
    >>> data = cf.read(frame, schema)
    >>> table = cf.tables.rows_per_unit_table(data, privacy=cf.GDP(1.0), ledger=None,
    ...                                       noise=cf.noise.SimulatedNoise(1))
    >>> bool(abs(table.rows_kept[0] - 1 / 3) < 0.2)
    True
    """

    name: ClassVar[str] = "rows_per_unit_table"
    example: ClassVar[str] = ""
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = "exact histogram; Dong, Roth, Su 2022, Theorem 2"

    def about(self, schema: Any) -> Any:
        if not isinstance(schema.unit, Unit):
            raise PlanError(
                f"contributions are counted by an enforced unit, the schema says that one {schema.unit} is",
                'write cf.Schema(..., unit=cf.Unit("person_id")) with the id column of the data',
            )
        if self.where is not None:
            raise PlanError(f"contributions are of all units, got where={self.where!r}", "leave it out")
        return schema

    def statistics(self, about: Any, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        # all of mu^2: what is set aside for counting units is for this
        return {_NAME: (_Own(), 1 / (1 - UNIT_SHARE))}

    def facts(self, about: Any) -> Mapping[str, Any]:
        return {
            "target": f"values of {about.unit.column} by the number of their rows",
            "intervals_for": self.intervals,
            "constants": {WHOLE: about.unit.column},
        }

    def table(self, release: Release, about: Any, options: ResultOptions) -> RowsPerUnitTable:
        noisy = release[_NAME]
        sd = sqrt(float(noisy.scale)) * float(noisy.step)
        found = [histogram.Counted.of(noisy.decode(), sd, k) for k in _ROWS]
        return RowsPerUnitTable.of(
            release,
            response=f"rows of each {about.unit.column}",
            rows=_ROWS,
            rows_kept=[1 - one.lost for one in found],
            rows_kept_sd=[one.lost_sd for one in found],
            noise=[histogram.noise_ratio(noisy.decode(), sd, k) for k in _ROWS],
            histogram=noisy.decode(),
            facts=(("Units (noisy)", f"{found[0].units:,.0f} ± {1.96 * found[0].units_sd:,.0f}"),),
        )


class _Own(histogram.Contributions):
    """The same histogram as the method's own release, which its draw requests."""

    by_unit = False


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RowsPerUnitTable(BaseResult):
    """What each row limit of `cf.Unit` would keep and cost.

    Rows of a cell are assumed to be spread evenly over it, and shares are right
    up to that.

    Parameters
    ----------
    rows : tuple of int
        Row limits, ``rows`` of `cf.Unit`.
    rows_kept : sequence of float
        Share of rows that count at each limit.
    rows_kept_sd : sequence of float
        SD of the noise of each share.
    noise : sequence of float
        Noise of a mean at each limit, over that at one row.
    histogram : array of float
        Noisy numbers of units with 1, 2, 3 to 4, 5 to 8, and so on, rows.
    """

    rows: tuple[int, ...]
    rows_kept: Any
    rows_kept_sd: Any
    noise: Any
    histogram: NDArray[np.float64]

    family: ClassVar[str] = "contributions"
    rows_called: ClassVar[str] = "numbers of rows"

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Rows that each limit keeps: {self.response}"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """rows, kept, its noise, noise of a mean; one row for each k."""
        return (
            Column("term", tuple(f"rows={k}" for k in self.rows), "name"),
            Column("rows_kept", self.rows_kept, "share"),
            Column("noise_sd", self.rows_kept_sd, "share"),
            Column("relative_noise", [float(f"{one:.3g}") for one in self.noise], "number", head="noise of a mean"),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What to do with it."""
        return (
            (
                "In words",
                "rows=1 counts each unit once; more rows keep more of the table and move toward the mean over rows, at more noise (beside "
                "that of rows=1). The choice is public: say in the schema's provenance that it came from this release",
            ),
        )
