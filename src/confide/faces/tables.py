"""`cf.tables`: what an office asks first, in one call each: counts, shares, means, totals and distributions over any crossing.

A lower-case name is the call (plan, release, infer), a class the method behind it, for those who plan, release and infer apart.
"""

from __future__ import annotations

from typing import Any

from confide.faces.distribution import distribution
from confide.faces.one_call import LEFT_OUT, answered, checked_call
from confide.faces.table_one import table_one
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.tables.counts import Counts, CountTable, Shares, ShareTable
from confide.methods.tables.distribution import Distribution
from confide.methods.tables.means import Means, MeanTable, Totals, TotalTable
from confide.methods.tables.result import checked_reading
from confide.methods.tables.table_one import TableOne
from confide.protocol import Noise, Source

__all__ = [
    "Counts",
    "Distribution",
    "Means",
    "Shares",
    "TableOne",
    "Totals",
    "counts",
    "distribution",
    "means",
    "shares",
    "table_one",
    "totals",
]

_EXAMPLE = '"region * smoker", data, covers="population", privacy=cf.GDP(1.0), ledger=None'


def counts(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> CountTable:
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
    found: CountTable = _table("counts", Counts, formula, data, covers, privacy, ledger, noise, n, settings)
    return found


def shares(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> ShareTable:
    """Shares of records: plan, release and infer `Shares`; within="region" gives shares of each region. See `counts`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.tables.shares(
    ...     "region * smoker", data, within="region", covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> table.status
    'ok'
    """
    found: ShareTable = _table("shares", Shares, formula, data, covers, privacy, ledger, noise, n, settings)
    return found


def means(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> MeanTable:
    """Means with intervals; standard deviation, skewness and kurtosis at no further cost: plan, release and infer `Means`. See `counts`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> table = cf.tables.means("income ~ region", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> list(table.sd().columns)
    ['variable', 'region', 'estimate', 'std_err', 'low', 'high', 'flag']
    """
    found: MeanTable = _table("means", Means, formula, data, covers, privacy, ledger, noise, n, settings)
    return found


def totals(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> TotalTable:
    """Totals with intervals: plan, release and infer `Totals`. See `counts` and `means`.

    >>> import confide as cf
    >>> schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "income": cf.Numeric(0, 100)})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> cf.tables.totals("income ~ region", data, covers="dataset", privacy=cf.GDP(1.0), ledger=None).status
    'ok'
    """
    found: TotalTable = _table("totals", Totals, formula, data, covers, privacy, ledger, noise, n, settings)
    return found


def _table(
    verb: str,
    method: type[Any],
    formula: str,
    data: Source,
    covers: str | None,
    privacy: Guarantee | None,
    ledger: Ledger | None,
    noise: Noise | None,
    n: int | None,
    settings: dict[str, Any],
) -> Any:
    checked_reading(covers, verb)
    checked_call(f"cf.tables.{verb}", method, privacy, ledger, settings, example=_EXAMPLE)
    return answered(method(formula, covers=covers, **settings), data, privacy, ledger, noise, n)
