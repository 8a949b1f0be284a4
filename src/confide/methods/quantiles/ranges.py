"""Where the values of columns lie: the ranges that other methods find before their sums, as a question of its own.

Guarantee: mu-GDP, add-remove or substitute. Released are noisy numbers of records in public bins of each column, for equal shares of
the square of mu; `confide.sums.ranges` has the sensitivity. The ranges follow from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

from confide.core import Allowance, Method, Plan, Release, ResultOptions, Statistic
from confide.core.ranges import ColumnRange, judged
from confide.errors import PlanError
from confide.methods.tables.layout import summands
from confide.results.base import BaseResult
from confide.results.pages.content import Column
from confide.schema import Categorical, Provenance, Schema
from confide.schema.formulas.names import column_named
from confide.sums.ranges import ColumnRanges, Width, told_apart


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ColumnRangeTable(BaseResult):
    """Ranges of columns, with the share of records beyond each.

    Parameters
    ----------
    ranges : mapping of str to ColumnRange
        Range of each column.
    schema : Schema
        Schema whose columns have these ranges.
    release : Release
        The charged release.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> incomes = {"income": np.random.default_rng(1).lognormal(10, 0.7, 20_000)}
    >>> found = cf.find_bounds(incomes, "income", privacy=cf.GDP(0.2), ledger=None)
    >>> found.ranges["income"].low
    0.0
    """

    schema: Schema
    release: Release

    family: ClassVar[str] = "ranges"
    rows_are: ClassVar[str] = "column"
    rows_called: ClassVar[str] = "columns"
    inference: ClassVar[str] = "dataset"

    @property
    def title(self) -> str:
        return f"Ranges of {', '.join(self.ranges)}"

    def columns(self, alpha: float) -> Sequence[Column]:
        """Ends, and the share of records beyond; its interval has level 95% and holds for a range that was chosen from the same counts."""
        own = list(self.ranges.values())
        return (
            Column("term", list(self.ranges), "name", head="column"),
            Column("range_low", [one.low for one in own], "number", head="low"),
            Column("range_high", [one.high for one in own], "number", head="high"),
            Column("estimate", [one.beyond for one in own], head="beyond", percent=True),
            Column("ci_low", [one.beyond_low for one in own], "interval", percent=True),
            Column("ci_high", [one.beyond_high for one in own], "interval", percent=True),
        )

    def into(self, schema: Schema) -> Schema:
        """Give a schema in which the columns have these bounds.

        Parameters
        ----------
        schema : Schema
            Schema with some of the columns, or none.

        Returns
        -------
        Schema
            The schema with the new bounds.

        Examples
        --------
        >>> import confide as cf, numpy as np
        >>> ages = {"age": np.random.default_rng(1).normal(50, 9, 5_000)}
        >>> found = cf.find_bounds(ages, "age", privacy=cf.GDP(0.5), ledger=None)
        >>> found.into(cf.Schema({"age": cf.Numeric()}))["age"].declared
        (True, True)
        """
        told = Provenance("private", f"cf.find_bounds, release {self.release_sha256}")
        columns = dict(schema.columns)
        for name, own in self.schema.columns.items():
            before = columns.get(name, own)
            rule = before.on_missing if before.on_missing in ("drop", "midpoint") else "drop"
            columns[name] = replace(own, on_missing=rule, provenance=told, missing=before.missing)
        return schema.with_data_columns(columns)

    def to_toml(self) -> str:
        """Give the entries for a schema's file.

        Returns
        -------
        str
            One TOML table for each column.

        Examples
        --------
        >>> import confide as cf, numpy as np
        >>> ages = {"age": np.random.default_rng(1).normal(50, 9, 5_000)}
        >>> print(cf.find_bounds(ages, "age", privacy=cf.GDP(0.5), ledger=None).to_toml().splitlines()[0])
        [columns.age]
        """
        text = self.into(Schema(self.schema.columns)).to_toml()
        return text[text.index("[columns.") :]


@dataclass(frozen=True)
class Ranges(Method):
    """Release the ranges in which the values of numeric columns lie.

    The range of a column has its ends at 4 to 8 standard deviations from the
    mean. At most 1% of the records lie beyond an end where they can be seen.

    Parameters
    ----------
    columns : str or sequence of str
        Numeric columns, such as ``"income + age"``.

    Notes
    -----
    Guarantee: mu-GDP under either relation, from Gaussian noise on cumulative
    counts of public bins. `confide.sums.ranges` has the sensitivity.

    References
    ----------
    Fichtenberger, Henzinger and Upadhyay (2023), Constant matters: fine-grained
    error bound on differentially private continual observation, ICML.

    Examples
    --------
    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1e6)})
    >>> cf.plan(Ranges("x"), schema, cf.GDP(0.5)).guarantee.mu
    0.5
    """

    columns: str | Sequence[str]

    name: ClassVar[str] = "column_ranges"
    family: ClassVar[str] = "tables"
    example: ClassVar[str] = '"income"'
    source: ClassVar[str] = (
        "cumulative counts of public bins (Fichtenberger, Henzinger, Upadhyay 2023); the rule derived in confide"
    )
    intervals: ClassVar[str] = "the share of these records beyond each range; privacy noise"

    def __post_init__(self) -> None:
        given = summands(self.columns) if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(given))

    def about(self, schema: Any) -> ColumnRanges:
        whole = Schema.of(schema)
        names = [column_named(name, whole.names) for name in self.columns]
        columns: dict[str, Any] = {name: whole[name] for name in names}
        labels = [name for name, own in columns.items() if isinstance(own, Categorical)]
        if labels or not columns:
            raise PlanError(
                f"ranges are of numeric columns, and {labels[0]!r} has labels" if labels else "ranges need a column",
                'write cf.find_bounds(data, "income + age", ...)',
            )
        for name, own in columns.items():
            if not told_apart(own):
                raise PlanError(
                    f"the bounds of {name!r} are so far from 0 that bins do not tell values apart: {own.low:.12g} to {own.high:.12g}",
                    "subtract a public number from the column, such as its lower bound",
                )
        return ColumnRanges(columns, Fraction(1), self._widths, keep=False)

    def _widths(self, name: str, plan: Plan) -> tuple[Width, ...]:
        """As for coefficients whose sums cost as much."""
        amount = float(Allowance.of(plan.requested, self, plan.declared).amount)
        return (Width(sqrt(amount) / plan.declared.rows_per_unit),)

    def statistics(self, about: ColumnRanges, relation: str) -> Mapping[str, tuple[Statistic, Fraction]]:
        share = Fraction(1, len(about.columns))
        return {f"values of {name}": (about.statistic(name), share) for name in about.columns}

    def facts(self, about: ColumnRanges) -> Mapping[str, Any]:
        return {"target": f"ranges of {', '.join(about.columns)}", "intervals_for": self.intervals}

    def table(self, release: Release, about: ColumnRanges, options: ResultOptions) -> ColumnRangeTable:
        schema, found = release.plan.declared, dict[str, ColumnRange]()
        for name in about.columns:
            own = about.found(name, release[f"values of {name}"], release.plan)
            column: Any = schema[name]
            found[name] = replace(own, declared=(column.low, column.high))
        columns = {name: _with_bounds(schema[name], own) for name, own in found.items()}
        status, reason = judged(found, "valid")
        told = {"status": status, "reason": reason, "ranges": found, "schema": Schema(columns), "release": release}
        return ColumnRangeTable.of(release, response=", ".join(found), **told)


def _with_bounds(column: Any, own: ColumnRange) -> Any:
    """The column with the bounds of a range."""
    return replace(column, low=own.low, high=own.high, typical=None)
