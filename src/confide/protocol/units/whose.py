"""Whom a plan protects: the label of its statements, what they assume of the unit, and what no bound on a unit's rows allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, Guarantee
from confide.schema import Unit

__all__ = [
    "CLUSTER_ROW",
    "RULE",
    "UNIT_ROW",
    "WHOLE",
    "WHOLE_ROW",
    "as_record",
    "by_units",
    "check_rows",
    "counted_words",
    "independent_words",
    "kept_words",
    "protected",
    "resolved",
    "rule_of",
    "unit_assumptions",
    "unit_flags",
    "unit_words",
]

#: The row of codes that says how many rows a unit has: the number of a cell of `contributions` where it begins, -1 on its other rows. No
#: column of a schema can have this name, and only a source of bounded units has it.
UNIT_ROW = "`rows of the unit`"

#: The same row where all rows of a unit are there, up to 2^16, and not the first `rows` of them alone: what asks for it weighs them itself.
WHOLE_ROW = "`all rows of the unit`"

#: The row of codes that says which cluster a record is in: a number that means nothing outside the pass.
CLUSTER_ROW = "`cluster`"

#: The constant of a plan whose units are bounded by weight, {"unit rule": "weight"}; without it by "keep".
RULE = "unit rule"

#: The constant of a plan that counts each unit once by all its rows, whatever their number: {"units counted": "person_id"}.
WHOLE = "units counted"

#: What "keep" rests on: an id that is a place in the data moves when another unit leaves, and with it which rows of others count.
BY_PLACE = "{} is given to the unit, not by its place in the data"


def protected(schema: Any) -> str:
    """The unit of every statement: the id column's name where one is enforced, else the record.

    schema: a `Schema`, or its dictionary as plans hold it.
    """
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Mapping):
        return str(unit["column"])
    return unit.column if isinstance(unit, Unit) else "record"


def rule_of(method: Any, schema: Any) -> str | None:
    """How the rows of an enforced unit are bounded for a method: as the unit says, else "weight" where the method can; None without one."""
    unit = schema.unit
    if not isinstance(unit, Unit):
        return None
    if unit.per is not None:
        return "keep"
    return unit.rule or ("weight" if "weight" in method.rules(schema) else "keep")


def by_units(statistic: Any) -> str | None:
    """The row of codes by which a statistic's map tells units apart, None for a map of records: one unit moves it as one record does."""
    return next((row for row in (WHOLE_ROW, UNIT_ROW) if row in statistic.map.columns), None)


def resolved(privacy: Guarantee, relation: str, schema: Any, who: str, *, per: bool = False) -> Guarantee:
    """A request with its relation and unit set; `PrivacyError` when it names a unit that the schema does not enforce, or local trust.

    With several rows per unit the number of rows is not public where that of units is, so that nothing is released under substitute, but
    by methods that never use it. per: whether this is one, for units that count once in each level of a column.
    """
    whose = protected(schema)
    if privacy.unit not in ("record", whose):
        enforced = f"unit={whose!r}, or leave it out" if whose != "record" else "its rows as records, or leave unit out"
        raise PrivacyError(
            f"{who} protects what the schema enforces, {enforced}, and the guarantee says unit={privacy.unit!r}, which it does not; "
            f"write cf.Schema(..., unit=cf.Unit({privacy.unit!r})) with the id column of the data"
        )
    if privacy.trust != "central":
        raise PrivacyError(f"{who} works under central trust, got trust={privacy.trust!r}; leave it out")
    each = isinstance(schema.unit, Unit) and schema.unit.per is not None
    if whose != "record" and relation == "substitute" and schema.rows_per_unit > 1 and not (per and each):
        raise PrivacyError(
            f"with {schema.rows_per_unit} rows per unit the number of rows is not public; write {'groups' if each else 'rows'}=1, or "
            "relation='add-remove'"
        )
    return replace(privacy.resolve(relation), unit=whose)


def as_record(guarantees: tuple[Guarantee, ...], charge_as: object, schema: Mapping[str, Any]) -> Guarantee:
    """What the statement of an enforced unit says of one record: GDP(2 mu) under add-remove.

    A record that is there or not changes one unit: it is a unit replaced by another, that is one removed and one added, and two steps of
    mu make 2 mu (Dong, Roth, Su 2022, Theorem 2.14). Under substitute a record may also change its id, and with it the public number of
    ids, so that nothing follows. schema: a plan's. Raises `PrivacyError` where it does not apply.
    """
    native = guarantees[0]
    if charge_as != "record":
        raise PrivacyError(
            f'charge_as must be "record" or left out, got {charge_as!r}; the ledger of the unit itself needs none'
        )
    if not isinstance(schema["unit"], Mapping):
        raise PrivacyError(
            "charge_as='record' is for releases of an enforced unit, and this one protects records; leave it out"
        )
    if not isinstance(native, GDP) or native.delta or native.relation != "add-remove":
        raise PrivacyError(
            f"charge_as='record' is proved for Gaussian releases without a delta under add-remove, got {native}; open a ledger of the "
            f"unit: Ledger.create(path, dataset=..., budget=..., unit={native.unit!r})"
        )
    return GDP(2 * native.mu, relation=native.relation, unit="record", assumptions=native.assumptions)


def unit_assumptions(schema: Any, rule: str | None = "keep") -> tuple[str, ...]:
    """What the guarantee takes for granted of the unit. By weight nothing: no row of another unit moves when one leaves."""
    if isinstance(schema.unit, Unit):
        return () if rule == "weight" else (BY_PLACE.format(schema.unit.column),)
    return (
        () if schema.rows_per_unit == 1 else (f"at most {schema.rows_per_unit} rows per unit (declared, not enforced)",)
    )


def check_rows(method: Any, schema: Any) -> None:
    """Refuse several rows of an enforced unit where the method's intervals take rows as independent.

    Raises `PlanError`.
    """
    unit, cluster, design = schema.unit, schema.cluster, schema.design
    surveyed = method.designs
    if design is not None and not surveyed and method.intervals != "no interval":
        raise PlanError(
            f"intervals of {method.name} take records as drawn alike and one by one, and the schema has a design ({design.words}); ask for "
            "counts, shares, means, totals, ratios, a line or odds, or take design out of the schema if the population does not matter"
        )
    if not isinstance(unit, Unit) and cluster is None:
        return
    if cluster is not None and "fixed_n" in method.needs:
        raise PlanError(
            f"{method.name} has a public number of records, and those that name no {cluster.column} are dropped; take cluster out of the "
            "schema if that does not matter"
        )
    alone = method.intervals != "no interval" and not (method.unit_meat and method.rules(schema) == method.units)
    if cluster is not None and alone and not surveyed:
        raise PlanError(
            f"intervals of {method.name} take {protected(schema)}s as independent, and those of one {cluster.column} are alike; take "
            "cluster out of the schema if that does not matter, or ask a method that counts clusters, such as cf.regression.LeastSquares"
        )
    if not isinstance(unit, Unit):
        return
    if unit.per is not None:
        if not method.per_level and method.intervals != "no interval":
            raise PlanError(
                f"intervals of {method.name} take rows as independent, and those of one {unit.column} in several levels of {unit.per} are "
                f"not; write unit=cf.Unit({unit.column!r}), where each counts once, or ask a table crossed with {unit.per}, such as "
                f'cf.tables.counts("{unit.per} * ...")'
            )
        return
    rules = method.rules(schema)
    if unit.rows > 1 and alone:
        raise PlanError(
            f"intervals of {method.name} take rows as independent, and those of one {unit.column} are not, got rows={unit.rows}; "
            f"write unit=cf.Unit({unit.column!r}), where each counts once"
        )
    if unit.rule is not None and unit.rule not in rules:
        raise PlanError(
            f'{method.name} bounds units by "{rules[0]}" here, got rule={unit.rule!r}; write unit=cf.Unit({unit.column!r}), which takes '
            "what the method can"
        )


def unit_words(schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False) -> str:
    """What a unit is and how many rows count, of a plan's schema; one that says nothing means the record, as one that says so does.

    rule: the one of the plan, where it is not the first rows by key; whole: each unit is counted once, by all its rows.
    """
    unit, rows = schema["unit"], schema["rows_per_unit"]
    if isinstance(unit, Mapping):
        if unit.get("per") is not None:
            return f"any one {unit['column']} with all its rows; {_once_in_each(unit, rows)} (enforced)"
        if whole:
            return f"any one {unit['column']} with all its rows, which is counted once, by all of them (enforced)"
        worth = f"{rows} row's" if rows == 1 else f"{rows} rows'"
        how = "enforced, all rows by weight" if rule == "weight" else "enforced"
        return f"any one {unit['column']} with all its rows; at most {worth} worth counts ({how})"
    if unit == "record" and rows == 1:
        return "one row = one unit (declared, or by default)"
    return f"rows per unit {rows} (declared), unit {unit}, not enforced"


def counted_words(schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False) -> str:
    """How each unit counts in what is estimated, to be added to its name: no row counts as itself any more. Arguments as `unit_words`."""
    unit = schema["unit"]
    if not isinstance(unit, Mapping):
        return ""
    if kept := kept_words(schema, rule, whole=whole):
        return f"; {kept}"
    if whole or unit["rows"] == 1:
        return f"; each {unit['column']} counts once, by all its rows"
    return f"; at most {unit['rows']} rows' worth of each {unit['column']} counts"


def kept_words(schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False) -> str:
    """Which rows of a unit are counted where the others are left out; nothing where all of them count. Arguments as `unit_words`.

    >>> kept_words({"unit": {"column": "household", "rows": 1, "rule": None}, "rows_per_unit": 1})
    'one row of each household, chosen at random'
    """
    unit, rows = schema["unit"], schema["rows_per_unit"]
    if whole or rule == "weight" or not isinstance(unit, Mapping):
        return ""
    if unit.get("per") is not None:
        return f"{_once_in_each(unit, rows)}, by one row chosen at random"
    most = "one row" if rows == 1 else f"at most {rows} rows"
    return f"{most} of each {unit['column']}, chosen at random"


def _once_in_each(unit: Mapping[str, Any], groups: int) -> str:
    return f"each {unit['column']} counts once in each {unit['per']}, in at most {groups} of them"


def independent_words(schema: Any) -> str:
    """What intervals take as independent: records, or the units of an enforced one, whose rows may hang together in any way."""
    if schema.cluster is not None:
        own = schema.cluster
        return (
            f"independent values of {own.column} with at most about {own.most:,.6g} members each, alike by at most {own.icc:g} (what "
            "sums of larger or closer ones are cut by is made up for)"
        )
    if isinstance(schema.unit, Unit):
        return f"independent units of {schema.unit.column}, whose rows may hang together in any way"
    return "independent records"


def unit_flags(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """What a result says of its unit: that it was declared and nothing enforces it."""
    declared = not isinstance(schema["unit"], Mapping) and (schema["unit"] != "record" or schema["rows_per_unit"] != 1)
    return ("unit_declared",) if declared else ()
