"""`cf.contributions`: how many rows the units of a table have, before a number of rows is chosen."""

from __future__ import annotations

from typing import Any

from confide.errors import PlanError
from confide.faces.one_call import LEFT_OUT, answered, checked_call
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.tables.contributions import Contributions, ContributionTable
from confide.protocol import Noise, Source

__all__ = ["Contributions", "contributions"]


def contributions(
    data: Source,
    unit: str | None = None,
    privacy: Guarantee | None = None,
    *,
    ledger: Ledger | None = LEFT_OUT,
    noise: Noise | None = None,
    n: int | None = None,
    **settings: Any,
) -> ContributionTable:
    """Units by the number of their rows, with noise: which share of rows each `rows` of `cf.Unit` keeps, and what it costs.

    data: of `cf.read`, with a schema that enforces a unit; unit: its id column, where that is to be checked. privacy and ledger have no
    default. Errors are those of `confide.release`, and `PlanError` for another unit than the schema's.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1)}, unit=cf.Unit("person_id"))
    >>> frame = schema.sample(3_000, seed=1)
    >>> frame["person_id"] //= 3
    >>> noise = cf.noise.SimulatedNoise(1)  # for an example that is always the same
    >>> table = contributions(cf.read(frame, schema), "person_id", cf.GDP(1.0), ledger=None, noise=noise)
    >>> bool(abs(table.kept[0] - 1 / 3) < 0.2)
    True
    """
    checked_call(
        "cf.contributions",
        Contributions,
        privacy,
        ledger,
        settings,
        example='data, "person_id", cf.GDP(1.0), ledger=None',
    )
    known = data.schema.protects
    if unit is not None and unit != known:
        raise PlanError(
            f"the schema protects {known!r}, got unit={unit!r}; write cf.Schema(..., unit=cf.Unit({unit!r})) and read the records with it"
        )
    found: ContributionTable = answered(Contributions(), data, privacy, ledger, noise, n)
    return found
