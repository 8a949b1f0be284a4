"""`cf.tables.table_one`: what a study's records are like, by group, in one call."""

from __future__ import annotations

from typing import Any

from confide.faces.one_call import LEFT_OUT, answered, checked_call
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.tables.result import checked_reading
from confide.methods.tables.table_one import TableOne
from confide.methods.tables.table_one_result import TableOneResult
from confide.protocol import Noise, Source

__all__ = ["table_one"]

_EXAMPLE = '"age + smoker ~ arm", data, covers="population", privacy=cf.GDP(1.0), ledger=None'


def table_one(
    formula: str,
    data: Source,
    *,
    covers: str | None = None,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> TableOneResult:
    """Means, medians, shares and standardised differences by group: plan, release and infer `TableOne`, whose parameters `settings` are.

    covers ("population" or "dataset"), privacy and ledger have no default. Errors are those of `confide.release`.

    >>> import confide as cf
    >>> schema = cf.Schema({"age": cf.Numeric(0, 100), "smoker": cf.Categorical(["no", "yes"]), "arm": cf.Categorical(["A", "B"])})
    >>> data = cf.read(schema.sample(2_000, seed=1), schema)
    >>> found = table_one("age + smoker ~ arm", data, covers="population", privacy=cf.GDP(1.0), ledger=None)
    >>> list(found.differences().index)
    ['age: mean', 'smoker=no', 'smoker=yes']
    """
    checked_reading(covers, "table_one")
    checked_call("cf.tables.table_one", TableOne, privacy, ledger, settings, example=_EXAMPLE)
    method = TableOne(formula, covers=str(covers), **settings)
    found: TableOneResult = answered(method, data, privacy, ledger, noise, n)
    return found
