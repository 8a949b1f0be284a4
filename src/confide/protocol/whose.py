"""Whom a plan protects: the label of its statements, what they assume of the unit, and what no bound on a unit's rows allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from confide.errors import PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.schema import Unit

__all__ = [
    "UNIT_ROW",
    "check_rows",
    "counted_words",
    "protected",
    "resolved",
    "unit_assumptions",
    "unit_flags",
    "unit_words",
]

#: The row of codes that says how many rows a unit has: the number of a cell of `contributions` where it begins, -1 on its other rows. No
#: column of a schema can have this name, and only a source of bounded units has it.
UNIT_ROW = "`rows of the unit`"

#: What "keep" rests on: an id that is a place in the data moves when another unit leaves, and with it which rows of others count.
BY_PLACE = "{} is given to the person, not by its place in the data"


def protected(schema: Any) -> str:
    """The unit of every statement: the id column's name where one is enforced, else the record.

    schema: a `Schema`, or its dictionary as plans hold it.
    """
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Mapping):
        return str(unit["column"])
    return unit.column if isinstance(unit, Unit) else "record"


def resolved(privacy: Guarantee, relation: str, schema: Any, who: str) -> Guarantee:
    """A request with its relation and unit set; `PrivacyError` when it names a unit that the schema does not enforce, or local trust.

    With several rows per unit the number of rows is not public where that of units is, so that nothing is released under substitute.
    """
    whose = protected(schema)
    if privacy.unit not in ("record", whose):
        enforced = f"unit={whose!r}, or leave it out" if whose != "record" else "its rows as records, or leave unit out"
        raise PrivacyError(
            f"{who} protects what the schema enforces, {enforced}, and the guarantee says unit={privacy.unit!r}, which it does not; "
            f"write Schema(..., unit=cf.Unit({privacy.unit!r})) with the id column of the data"
        )
    if privacy.trust != "central":
        raise PrivacyError(f"{who} works under central trust, got trust={privacy.trust!r}; leave it out")
    if whose != "record" and relation == "substitute" and schema.rows_per_unit > 1:
        raise PrivacyError(
            f"with {schema.rows_per_unit} rows per unit the number of rows is not public; write rows=1, or relation='add-remove'"
        )
    return replace(privacy.resolve(relation), unit=whose)


def unit_assumptions(schema: Any) -> tuple[str, ...]:
    """What the guarantee takes for granted of the unit."""
    if isinstance(schema.unit, Unit):
        return (BY_PLACE.format(schema.unit.column),)
    return (
        () if schema.rows_per_unit == 1 else (f"at most {schema.rows_per_unit} rows per unit (declared, not enforced)",)
    )


def check_rows(method: Any, schema: Any) -> None:
    """Refuse several rows of an enforced unit where the method's intervals take rows as independent.

    Raises `PlanError`.
    """
    unit = schema.unit
    if not isinstance(unit, Unit):
        return
    if unit.rows > 1 and method.intervals != "no interval" and not method.unit_meat:
        raise PlanError(
            f"intervals of {method.name} take rows as independent, and those of one {unit.column} are not, got rows={unit.rows}; "
            f"write unit=cf.Unit({unit.column!r}), where each counts once"
        )
    if unit.rule is not None and unit.rule not in method.units:
        raise PlanError(
            f'{method.name} bounds units by "keep", got rule={unit.rule!r}; write unit=cf.Unit({unit.column!r}), which takes what '
            "the method can"
        )


def unit_words(schema: Mapping[str, Any]) -> str:
    """What a unit is and how many rows count, of a plan's schema; one that says nothing means the record, as one that says so does."""
    unit, rows = schema["unit"], schema["rows_per_unit"]
    if isinstance(unit, Mapping):
        worth = f"{rows} row's" if rows == 1 else f"{rows} rows'"
        return f"any one {unit['column']} with all its rows; at most {worth} worth counts (enforced)"
    if unit == "record" and rows == 1:
        return "one row = one unit (declared, or by default)"
    return f"rows per unit {rows} (declared), unit {unit}, not enforced"


def counted_words(schema: Any) -> str:
    """How each unit counts in what is estimated, to be added to its name: no row counts as itself any more.

    schema: a `Schema`, or its dictionary as plans hold it.
    """
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Unit):
        unit = unit.to_dict()
    if not isinstance(unit, Mapping):
        return ""
    if unit["rows"] == 1:
        return f"; each {unit['column']} counts once"
    return f"; at most {unit['rows']} rows' worth of each {unit['column']} counts"


def unit_flags(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """What a result says of its unit: that it was declared and nothing enforces it."""
    declared = not isinstance(schema["unit"], Mapping) and (schema["unit"] != "record" or schema["rows_per_unit"] != 1)
    return ("unit_declared",) if declared else ()
