"""Bounds of columns before a schema is settled: `cf.find_bounds`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from confide._helpers import later
from confide.ask.one_call import LEFT_OUT, checked_ledger
from confide.core import Noise
from confide.core.allowance import checked_privacy
from confide.guarantees import Guarantee
from confide.ledger import Ledger
from confide.methods.quantiles.ranges import ColumnRangeTable, Ranges
from confide.schema import Numeric, Schema, Unit

if TYPE_CHECKING:
    from confide import engine
else:
    engine = later("confide.engine")


def find_bounds(
    data: Any,
    columns: str | Sequence[str],
    schema: Schema | str | PathLike[str] | None = None,
    *,
    privacy: Guarantee | None = None,
    ledger: Ledger | None = LEFT_OUT,
    dataset: str | None = None,
    unit: Any = None,
    noise: Noise | None = None,
    charge_delta: float | None = None,
    convert_ledger: bool = False,
    **read: Any,
) -> ColumnRangeTable:
    """Find bounds of numeric columns by a release, if none are public.

    Methods that add numbers up find ranges themselves, for a tenth of their cost,
    where a schema has ``cf.Numeric()``. Find bounds once, where many releases
    share them.

    Parameters
    ----------
    data : table or path
        Records as `confide.read` takes them.
    columns : str or sequence of str
        Numeric columns, such as ``"income + age"``.
    schema : Schema or path, optional
        What is known of the records so far: codes of missing values, how the
        file is laid out, the unit and the dataset. Bounds in it are not used.
    privacy : Guarantee
        Cost of the release, such as ``GDP(0.2)``. Required.
    ledger : Ledger or None
        Ledger to charge. None releases without accounting. Required.
    dataset : str, optional
        Name of the dataset in the ledger. By default the ledger's.
    unit : Unit, optional
        Privacy unit, such as ``cf.Unit("person_id")``, where the ledger protects
        persons.
    noise : Noise, optional
        Source of noise. Only simulations pass ``SimulatedNoise(seed)``, which
        protects no one.
    charge_delta : float, optional
        Delta at which a ledger of (epsilon, delta) is charged.
    convert_ledger : bool, default False
        Whether to turn a ledger of (epsilon, delta) into one of Gaussian DP
        first. It cannot be undone.
    **read : optional
        Further parameters of `confide.read`.

    Returns
    -------
    ColumnRangeTable
        Ranges and the share of records beyond, with ``into(schema)`` and
        ``to_toml()``.

    Raises
    ------
    BudgetExceeded
        The cost does not fit the ledger. Nothing was drawn or charged.
    PlanError
        A column does not exist or has labels. Nothing was charged.

    Notes
    -----
    Guarantee: mu-GDP under either relation, that of `Ranges`. Sizes from 1e-6 to
    1e12 are told apart, in steps of 8%. Values beyond a range are clipped by what
    uses it, and means and slopes are then of the clipped column.

    Examples
    --------
    >>> import confide as cf, numpy as np
    >>> incomes = {"income": np.random.default_rng(1).lognormal(10, 0.7, 20_000)}
    >>> found = cf.find_bounds(incomes, "income", privacy=cf.GDP(0.2),
    ...                        ledger=None, noise=cf.noise.SimulatedNoise(1))
    >>> 100_000 < found.ranges["income"].high < 500_000
    True
    """
    requested = checked_privacy(privacy)
    checked_ledger(ledger)
    from confide.sources import read as read_records

    method = Ranges(columns)
    known = schema if isinstance(schema, Schema) or schema is None else Schema.from_toml(schema)
    named = dataset if dataset is not None or ledger is None else ledger.dataset
    asked = search_schema(method.columns, known, named, unit)
    release = engine.release(
        method,
        read_records(data, asked, **read),
        requested,
        ledger=ledger,
        noise=noise,
        charge_delta=charge_delta,
        convert_ledger=convert_ledger,
    )
    found = engine.infer(release)
    assert isinstance(found, ColumnRangeTable)
    return found


def search_schema(columns: Sequence[str], known: Schema | None, dataset: str | None = None, unit: Any = None) -> Schema:
    """Columns without bounds, with what is known of their records: codes, layout, dataset, and the unit with its rows.

    dataset, unit: in the place of those of `known`.
    """
    own = {} if known is None else known.columns
    asked = {name: Numeric(missing=own[name].missing if name in own else None) for name in columns}
    if known is None:
        return Schema(asked, dataset=dataset, unit=unit or "record")
    # rows of a unit without an id are those of the schema, whatever the unit is called here
    rows = None if isinstance(unit, Unit) else known.rows_per_unit
    dataset = known.dataset if dataset is None else dataset
    return Schema(asked, dataset=dataset, unit=unit or known.unit, rows_per_unit=rows, file=known.file)
