"""What a release tells the ledger, and the key by which an enforced unit's rows are chosen: one for each ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from confide.errors import PlanError
from confide.ledger.names import same_name
from confide.protocol import Plan
from confide.protocol.units.whose import protected
from confide.schema import Schema, Unit

if TYPE_CHECKING:
    from confide.ledger import Ledger

__all__ = ["as_asked", "as_charged", "check_ledger", "check_method", "check_schema", "key_of", "keyed", "pins"]


def check_ledger(ledger: Ledger | None) -> None:
    if ledger is None:
        return
    from confide.ledger import Ledger  # SQLAlchemy is for those who have a ledger

    if not isinstance(ledger, Ledger):
        raise PlanError(
            f"ledger must be an open cf.Ledger or None, got {type(ledger).__name__}; "
            'write ledger=cf.Ledger.open("book.db", dataset="survey"), or ledger=None for no charge'
        )


def check_method(method: Any) -> None:
    """Refuse what is neither a method nor a plan, with the call that makes one of it."""
    is_method = not isinstance(method, type) and all(hasattr(method, name) for name in ("name", "plan"))
    if not is_method and not isinstance(method, Plan):
        raise _no_method(method)


def _no_method(method: Any) -> PlanError:
    formula = method if isinstance(method, str) and "~" in method else "y ~ x"
    given = f"the class {method.__name__}" if isinstance(method, type) else type(method).__name__
    return PlanError(
        f"method must be a method, such as cf.regression.LeastSquares, or a plan, got {given}; write "
        f"cf.plan(cf.regression.LeastSquares({formula!r}), schema, cf.GDP(1.0)); confide methods lists them all"
    )


def check_schema(schema: Any) -> None:
    """Refuse what is no schema: data have one, and a dictionary of columns is made one."""
    if isinstance(schema, Schema):
        return
    raise PlanError(
        f"schema must be a cf.Schema, got {type(schema).__name__}; "
        + (
            "data from cf.read have theirs: write cf.plan(method, data.schema, cf.GDP(1.0))"
            if isinstance(getattr(schema, "schema", None), Schema)
            else 'write cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)}), or cf.Schema.from_toml("schema.toml")'
        )
    )


def pins(schema: Mapping[str, Any], dataset: str | None, level: str | None = None) -> dict[str, Any]:
    """What a charge is about, for the ledger, which compares it with what it is pinned to: data set, unit, rows per unit.

    Whatever charges reads its schema here: a release, a publication, a protected table, a stream, the studio's price. Relation and trust
    are those of the statement that is charged. schema: its dictionary, as plans hold it; dataset: the name under which the records were
    read; level: the unit of the statement where that is not the schema's own: "record" for an enforced unit that is charged as records,
    "record" or "attribute" for a protected table, whose schema is one of records (`local.release.planned`). Raises `PlanError`.

    >>> from confide.schema import Numeric
    >>> pins(Schema({"x": Numeric(0, 1)}, unit="household", rows_per_unit=5).to_dict(), "survey")
    {'dataset': 'survey', 'unit': 'household', 'rows_per_unit': 5, 'enforced': False}
    """
    named = schema["dataset"]
    if named is not None and dataset is not None and not same_name(named, dataset):
        raise PlanError(
            f"the schema names dataset {named!r}, and the records were read as {dataset!r}; give one name: "
            f"cf.read(data, schema) without dataset=, or dataset={dataset!r} in the schema"
        )
    if level is not None:
        return {"dataset": dataset, "unit": level, "rows_per_unit": 1, "enforced": False}
    whose = protected(schema)
    enforced = whose != "record"
    return {
        "dataset": dataset,
        "unit": whose if enforced else schema["unit"],
        "rows_per_unit": int(schema["rows_per_unit"]),
        "enforced": enforced,
    }


# In a plan's public inputs: SHA-256 of the key by which rows of a unit are chosen.
_KEY = "unit key"


def key_of(schema: Schema, ledger: Ledger | None) -> bytes | None:
    """The key of an enforced unit, one for each ledger, so that its releases agree on who counts; without one the schema's digest."""
    if not isinstance(schema.unit, Unit):
        return None
    own = None if ledger is None else ledger.unit_key
    return bytes.fromhex(schema.digest) if own is None else own


def keyed(planned: Plan, key: bytes | None) -> Plan:
    if key is None:
        return planned
    return replace(planned, public_inputs={**planned.public_inputs, _KEY: hashlib.sha256(key).hexdigest()})


def as_asked(planned: Plan) -> Plan:
    """The plan before its release: without the digest of the ledger's key, which the release of an enforced unit adds."""
    return replace(planned, public_inputs={name: text for name, text in planned.public_inputs.items() if name != _KEY})


def as_charged(planned: Plan, ledger: Ledger) -> Plan:
    """The plan as this ledger is charged for it, and its release states it."""
    return keyed(as_asked(planned), key_of(Schema.from_dict(planned.schema), ledger))
