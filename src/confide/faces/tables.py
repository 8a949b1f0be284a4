"""`cf.tables`: what an office asks first, in one call each: counts, shares, means, totals and distributions over any crossing.

A lower-case name is the call (plan, release, infer), a class the method behind it, for those who plan, release and infer apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from confide.faces.one_call import OneCall, one_call
from confide.methods.tables.cells.counted import CountTable, ShareTable
from confide.methods.tables.cells.numbers import checked_reading
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.description.distribution_result import DistributionResult
from confide.methods.tables.description.table_one_result import TableOneResult
from confide.methods.tables.distribution import Distribution
from confide.methods.tables.means import Means, MeanTable, Totals, TotalTable
from confide.methods.tables.persons import PersonCounts, PersonCountTable, PersonShares, PersonShareTable
from confide.methods.tables.ratios import Ratios
from confide.methods.tables.survey.result import SurveyTable
from confide.methods.tables.table_one import TableOne

__all__ = [
    "Counts",
    "Distribution",
    "Means",
    "PersonCounts",
    "PersonShares",
    "Ratios",
    "Shares",
    "TableOne",
    "Totals",
    "counts",
    "distribution",
    "means",
    "person_counts",
    "person_shares",
    "ratios",
    "shares",
    "table_one",
    "totals",
]

_Result = TypeVar("_Result")

_EXAMPLE = '"region * smoker", data, covers="population", privacy=cf.GDP(1.0), ledger=None'


def _table(
    method: type[Any], verb: str, example: str = _EXAMPLE
) -> Callable[[Callable[[_Result], _Result]], OneCall[_Result]]:
    """A call that has to say what it covers."""

    def check(formula: str, settings: dict[str, Any]) -> None:
        checked_reading(settings.get("covers"), f"cf.tables.{verb}(...")

    return one_call(method, verb=f"cf.tables.{verb}", example=example, check=check)


@_table(Counts, "counts")
def counts(result: CountTable) -> CountTable:
    """Numbers of records: plan, release and infer `Counts`, whose parameters `settings` are.

    formula: "a*b" crossing and margins, "a:b" crossing and total, "a + b" one-way margins; cut(age, 18, 65) makes levels of a numeric
    column. covers ("population" or "dataset"), privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "age": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.tables.counts("region * cut(age, 18, 65)", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> table.crosstab().shape
    (3, 4)
    """
    return result


@_table(Shares, "shares")
def shares(result: ShareTable) -> ShareTable:
    """Shares of records: plan, release and infer `Shares`; within="region" gives shares of each region. See `counts`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.tables.shares(
    ...     "region * smoker", data, within="region", covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> table.status
    'ok'
    """
    return result


@_table(PersonCounts, "person_counts")
def person_counts(result: PersonCountTable) -> PersonCountTable:
    """Numbers of persons by what all their rows say: plan, release and infer `PersonCounts`, whose parameters `settings` are. See `counts`.

    >>> import confide as cf
    >>> schema = cf.Schema({"ill": cf.Categorical(["no", "yes"])}, unit=cf.Unit("pid"))
    >>> frame = schema.sample(3_000, seed=1)
    >>> frame["pid"] //= 3
    >>> table = cf.tables.person_counts(
    ...     "number(ill == 'yes', 1, 2)", cf.read(frame, schema), covers="dataset", privacy=cf.GDP(1.0), ledger=None)
    >>> table.crosstab().index.tolist()
    ['0', '1', '2 or more', 'All']
    """
    return result


@_table(PersonShares, "person_shares")
def person_shares(result: PersonShareTable) -> PersonShareTable:
    """Shares of persons by what all their rows say: plan, release and infer `PersonShares`. See `person_counts`, `shares`.

    >>> import confide as cf
    >>> schema = cf.Schema({"ill": cf.Categorical(["no", "yes"])}, unit=cf.Unit("pid"))
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> cf.tables.person_shares("any(ill == 'yes')", data, covers="population", privacy=cf.GDP(1.0), ledger=None).status
    'ok'
    """
    return result


@_table(Means, "means")
def means(result: MeanTable) -> MeanTable:
    """Means with intervals; standard deviation, skewness and kurtosis at no further cost: plan, release and infer `Means`. See `counts`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.tables.means("income ~ region", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> list(table.sd().columns)
    ['variable', 'region', 'estimate', 'std_err', 'low', 'high', 'flag']
    """
    return result


@_table(Totals, "totals")
def totals(result: TotalTable) -> TotalTable:
    """Totals with intervals: plan, release and infer `Totals`. See `counts` and `means`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> cf.tables.totals("income ~ region", data, covers="dataset", privacy=cf.GDP(1.0), ledger=None).status
    'ok'
    """
    return result


@_table(Ratios, "ratios", '"income / hours ~ region", data, covers="population", privacy=cf.GDP(1.0), ledger=None')
def ratios(result: SurveyTable) -> SurveyTable:
    """Ratios of totals of two columns, sum over sum, with intervals: plan, release and infer `Ratios`. See `counts` and `means`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100), "hours": cf.Numeric(1, 80)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> cf.tables.ratios("income / hours ~ region", data, covers="population", privacy=cf.GDP(1.0), ledger=None).status
    'ok'
    """
    return result


@_table(Distribution, "distribution", '"income ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None')
def distribution(result: DistributionResult) -> DistributionResult:
    """Quantiles and distribution function of a column by group: plan, release, infer `Distribution`, whose parameters `settings` are.

    covers ("population" or "dataset"), privacy and ledger have no default. The result answers every question about the distribution at no
    further cost: `quantile`, `cdf` with its band, `histogram`, `letter_values`, `iqr`, `diff`, `plot("box" | "cdf" | "density")`. Errors
    are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"income": cf.Numeric(0, 1e5), "sex": cf.Categorical(["F", "M"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> found = cf.tables.distribution("income ~ sex", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> found.quantile([0.1, 0.9]).shape
    (6, 4)
    """
    return result


@_table(TableOne, "table_one", '"age + smoker ~ arm", data, covers="population", privacy=cf.GDP(1.0), ledger=None')
def table_one(result: TableOneResult) -> TableOneResult:
    """Means, medians, shares and standardised differences by group: plan, release and infer `TableOne`, whose parameters `settings` are.

    covers ("population" or "dataset"), privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(0, 100), "smoker": cf.Categorical(["no", "yes"]), "arm": cf.Categorical(["A", "B"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> found = cf.tables.table_one("age + smoker ~ arm", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> list(found.differences().index)
    ['age: mean', 'smoker=no', 'smoker=yes']
    """
    return result
