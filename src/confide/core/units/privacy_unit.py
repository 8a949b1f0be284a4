"""Whom a plan protects: the label of its statements, what they assume of the unit, and what no bound on a unit's rows allows.

States of one part for each whole number that was met, such as the number of a cluster.

All rows of a unit by weight: sums in which each of a unit's m usable rows counts min(1, k/m).

Guarantee: that of the statistic with sensitivity k times its own, as for at most k rows of a unit, and the rounding.
Rows of units of one m are summed apart, in the statistic's own exact integers G_m. What is drawn is G_0 + sum over m
of k G_m/m (G_0: units of at most k rows). Each term is cut off at 2^-64 steps, and the whole is rounded to a multiple
of the grain. The weights of one unit are k/m, m of them, or 1, at most k of them: k in all at most. So adding or
removing a unit moves the sum by at most k B; replacing it by another, with another number of rows too, moves it by at
most k B'. To see it, pad both with zero rows to the weight k and pair their weights in any way. Rounding moves each
number by at most half a grain on either side, and the terms of two m by 2^-64 each. That is sqrt(numbers) grains and
a little, for which twice that is charged. Where no unit has more than k rows these are the integers of the statistic
itself.

m counts the rows that the statistic can use: complete in its columns, in the subgroup (`where`). A unit's weights follow from its own rows
alone; m never leaves. Source: derived here; the estimand weighs each row by min(k, m)/m, as draws of k rows of each unit do on average.

How far one unit moves a statistic: k rows' worth, or where it counts once in each level of a column and these lie apart, sqrt(k).

A unit that counts once in each year, in at most k years, has k rows of different years. Where numbers of different
years are different numbers of the statistic (`separates`, of the map), what a unit adds in two years is orthogonal.
It moves the statistic by at most sqrt(k) B when it comes or goes, B the bound of one row. If it is replaced by
another, it moves each of up to 2k years by at most B, or k years by at most B', that of one row replaced: sqrt(k)
max(B', sqrt(2) B). Elsewhere the bound is k B and k B', as for any k rows (`core.allowance`). Under Laplace noise
nothing is won, for absolute values add up. Source: derived here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core.exact import digest, sqrt_up
from confide.core.statistic import Codes, MapOver, MappedSource, RecordMap, Source, Statistic, StatisticOver
from confide.errors import PlanError, PrivacyError
from confide.guarantees import GDP, Guarantee
from confide.schema import Unit

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

    With several rows per unit the number of rows is not public where the number of units is. So only methods that
    never use it release anything under substitution. `per`: whether this is one, for units that count once in each
    level of a column.
    """
    whose = protected(schema)
    if privacy.unit not in ("record", whose):
        enforced = f"unit={whose!r}, or leave it out" if whose != "record" else "its rows as records, or leave unit out"
        raise PrivacyError(
            f"{who} protects what the schema enforces, {enforced}, and the guarantee says unit={privacy.unit!r}, which it does not",
            f"write cf.Schema(..., unit=cf.Unit({privacy.unit!r})) with the id column of the data",
        )
    if privacy.trust != "central":
        raise PrivacyError(f"{who} works under central trust, got trust={privacy.trust!r}", "leave it out")
    each = isinstance(schema.unit, Unit) and schema.unit.per is not None
    if whose != "record" and relation == "substitute" and schema.rows_per_unit > 1 and not (per and each):
        raise PrivacyError(
            f"with {schema.rows_per_unit} rows per unit the number of rows is not public",
            f"write {'groups' if each else 'rows'}=1, or relation='add-remove'",
        )
    return replace(privacy.resolve(relation), unit=whose)


def as_record(guarantees: tuple[Guarantee, ...], charge_as: object, schema: Mapping[str, Any]) -> Guarantee:
    """What the statement of an enforced unit says of one record: GDP(2 mu) under add-remove.

    A record that is there or not changes one unit. It is a unit replaced by another, that is one removed and one
    added. Two steps of mu make 2 mu (Dong, Roth, Su 2022, Theorem 2.14). Under substitution a record may also change
    its id, and with it the public number of ids, so that nothing follows. `schema`: a plan's. Raises `PrivacyError`
    where it does not apply.
    """
    native = guarantees[0]
    if charge_as != "record":
        raise PrivacyError(
            f'charge_as must be "record" or left out, got {charge_as!r}; the ledger of the unit itself needs none'
        )
    if not isinstance(schema["unit"], Mapping):
        raise PrivacyError(
            "charge_as='record' is for releases of an enforced unit, and this one protects records", "leave it out"
        )
    if not isinstance(native, GDP) or native.delta or native.relation != "add-remove":
        raise PrivacyError(
            f"charge_as='record' is proved for Gaussian releases without a delta under add-remove, got {native}",
            f"open a ledger of the unit: Ledger.create(path, dataset=..., budget=..., unit={native.unit!r})",
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
            f"intervals of {method.name} assume records that are drawn independently, and the schema has a design ({design.words}). "
            "Ask for counts, shares, means, totals, ratios, linear or logistic regression, or take design out of the schema for exactly "
            "these records"
        )
    if not isinstance(unit, Unit) and cluster is None:
        return
    if cluster is not None and "fixed_n" in method.needs:
        raise PlanError(
            f"{method.name} has a public number of records, and those that name no {cluster.column} are dropped",
            "take cluster out of the schema if that does not matter",
        )
    alone = method.intervals != "no interval" and not (method.unit_meat and method.rules(schema) == method.units)
    if cluster is not None and alone and not surveyed:
        raise PlanError(
            f"intervals of {method.name} assume independent {protected(schema)}s, and those of one {cluster.column} are alike. Take "
            "cluster out of the schema if that does not matter, or ask a method that counts clusters, such as cf.regression.LeastSquares"
        )
    if not isinstance(unit, Unit):
        return
    if unit.per is not None:
        if not method.per_level and method.intervals != "no interval":
            raise PlanError(
                f"intervals of {method.name} assume independent rows, and those of one {unit.column} in several levels of {unit.per} are "
                f"not. Write unit=cf.Unit({unit.column!r}), where each counts once, or ask a table crossed with {unit.per}, such as "
                f'cf.tables.counts("{unit.per} * ...")'
            )
        return
    rules = method.rules(schema)
    if unit.rows > 1 and alone:
        raise PlanError(
            f"intervals of {method.name} take rows as independent, and those of one {unit.column} are not, got rows={unit.rows}",
            f"write unit=cf.Unit({unit.column!r}), where each counts once",
        )
    if unit.rule is not None and unit.rule not in rules:
        raise PlanError(
            f'{method.name} bounds units by "{rules[0]}" here, got rule={unit.rule!r}',
            f"write unit=cf.Unit({unit.column!r}), which takes what the method can",
        )


def unit_words(
    schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False, relation: str | None = None
) -> str:
    """What a unit is and how many rows count, of a plan's schema; one that says nothing means the record, as one that says so does.

    rule: the one of the plan, where it is not the first rows by key; whole: each unit is counted once, by all its rows; relation: of the
    guarantee, for what may differ.

    >>> unit_words({"unit": "record", "rows_per_unit": 1}, relation="add-remove")
    'one record added or removed. If a person has several rows, set `unit` in the schema'
    """
    unit, rows = schema["unit"], schema["rows_per_unit"]
    differs = {"add-remove": "{} added or removed", "substitute": "the values of {}; n is public"}.get(
        relation or "", "{}"
    )
    if isinstance(unit, Mapping):
        own = differs.format(f"any one {unit['column']} with all its rows")
        if unit.get("per") is not None:
            return f"{own}; {_once_in_each(unit, rows)} (enforced)"
        if whole:
            return f"{own}; it is counted once, by all of them (enforced)"
        worth = f"{rows} row's" if rows == 1 else f"{rows} rows'"
        how = "enforced, all rows by weight" if rule == "weight" else "enforced"
        return f"{own}; at most {worth} worth counts ({how})"
    if unit == "record" and rows == 1:
        return f"{differs.format('one record')}. If a person has several rows, set `unit` in the schema"
    return differs.format(f"one {unit} with at most {rows} row{'s' * (rows > 1)} (declared, not enforced)")


def counted_words(schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False) -> str:
    """How each unit counts in the estimand, to be added to its name, because a row no longer counts as itself. Arguments
    as `unit_words`.
    """
    unit = schema["unit"]
    if not isinstance(unit, Mapping):
        return ""
    if kept := kept_words(schema, rule, whole=whole):
        return f"; {kept}"
    if whole or unit["rows"] == 1:
        return f"; each {unit['column']} counts once, by all its rows"
    return f"; at most {unit['rows']} rows' worth of each {unit['column']} counts"


def kept_words(schema: Mapping[str, Any], rule: str | None = None, *, whole: bool = False) -> str:
    """Which rows of a unit count where the others are truncated; nothing where all of them count. Arguments as
    `unit_words`.

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
    """What intervals treat as independent: records, or enforced units, whose rows may depend on each other in any way."""
    if schema.cluster is not None:
        own = schema.cluster
        return (
            f"independent values of {own.column} with at most about {own.most:,.6g} members each, alike by at most {own.icc:g} (sums "
            "of others are clipped, and intervals are widened for it)"
        )
    if isinstance(schema.unit, Unit):
        return f"independent units of {schema.unit.column}, whose rows may depend on each other in any way"
    return "independent records"


def unit_flags(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """What a result says of its unit: that it was declared and nothing enforces it."""
    declared = not isinstance(schema["unit"], Mapping) and (schema["unit"] != "record" or schema["rows_per_unit"] != 1)
    return ("unit_not_enforced",) if declared else ()


class Keyed(dict[int, Any]):
    """Parts of a state by key. zero: makes the part of a key that was not met before, and says which shape every part has.

    >>> state = Keyed(lambda: 0)
    >>> state[7] += 2
    >>> state
    {7: 2}
    """

    def __init__(self, zero: Callable[[], Any]) -> None:
        super().__init__()
        self.zero = zero

    def __missing__(self, key: int) -> Any:
        return self.setdefault(key, self.zero())


# Integers of rows of 2^20 steps are fine enough for a weighted sum; counts are not.
_FINE_ROWS, _GRAIN = 1 << 40, Fraction(1, 1 << 20)
_CUT = 1 << 64


def usable(map: RecordMap, codes: Codes) -> NDArray[np.bool_]:
    """Which records a map can use, (rows,): complete in its columns and in what its design derives from them."""
    design = map.derived_by
    found = np.asarray((codes >= 0).all(axis=0))
    if design is None or all(term.plain is not None or term.binary for term in (*design.terms, design.response)):
        return found
    _, keep = design.codes(codes[: len(design.columns)])
    return found if keep is None else found & keep


def rows_in_units(first: Codes, counted: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(where each unit begins, how many of its rows are counted), from a row of codes that is -1 on all rows but a unit's first."""
    starts = np.flatnonzero(first >= 0)
    if counted.all():
        return starts, np.diff(starts, append=len(first))
    return starts, np.add.reduceat(counted.astype(np.intp), starts)


def of_rows(codes: Codes, chosen: NDArray[np.bool_], place: int) -> Codes:
    """The chosen columns of codes whose row `place` says where units begin, with each unit's first chosen row as its beginning."""
    unit = np.cumsum(codes[place] >= 0)[chosen]
    own = codes[:, chosen]
    begins = np.ones(len(unit), dtype=np.bool_)
    begins[1:] = unit[1:] != unit[:-1]
    own[place] = np.where(begins, np.maximum(own[place], 0.0), -1.0)
    return own


@dataclass(frozen=True)
class _WeightedRows(MapOver):
    """A record map with the row of codes that says where units begin; for a single record it is the map."""

    map: RecordMap

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.map.columns, WHOLE_ROW)

    @cached_property
    def digest(self) -> str:
        return digest(["weighted", self.map.digest])

    def __call__(self, codes: Codes) -> Codes:
        return self.map(codes[:-1])


@dataclass(frozen=True)
class Weighted(StatisticOver):
    """A sum over records as one over units, in which each of a unit's m usable rows counts min(1, rows/m). Values: multiples of `grain`.

    statistic: any sum over records, linear in them. Sensitivities are for rows = 1, and are taken `rows` times (`Allowance.spend`).
    """

    statistic: Statistic
    rows: int

    @cached_property
    def map(self) -> _WeightedRows:
        return _WeightedRows(self.statistic.map)

    @cached_property
    def grain(self) -> Fraction:
        """What values are multiples of, in the statistic's steps."""
        return Fraction(1) if self.statistic.map.l2_squared >= _FINE_ROWS else _GRAIN

    def sensitivity_squared(self, relation: str) -> Fraction:
        own = sqrt_up(super().sensitivity_squared(relation))
        return (own + 2 * sqrt_up(Fraction(prod(self.shape))) * self.grain) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return super().sensitivity_l1(relation) + 2 * prod(self.shape) * self.grain

    # the sum ----------------------------------------------------------------------------------------------------------

    def zero(self) -> Keyed:
        return Keyed(self.statistic.zero)

    def update(self, state: Keyed, codes: Codes) -> Keyed:
        own, first = codes[:-1], codes[-1]
        there = usable(self.statistic.map, own)
        _, counts = rows_in_units(first, there)
        # at most `rows` rows: all of them count once, in one sum
        counts = np.where(counts <= self.rows, 0, counts)
        if there.all() and not counts.any():
            state[0] = self.statistic.update(state[0], own)
            return state
        sizes = np.where(there, counts[np.cumsum(first >= 0) - 1], -1)
        if (sizes[1:] < sizes[:-1]).any():
            # units come in the order of their sizes, but for those with rows that cannot be used
            order = np.argsort(sizes, kind="stable")
            sizes, own = sizes[order], own[:, order]
        values, starts = np.unique(sizes, return_index=True)
        for m, start, stop in zip(values.tolist(), starts, [*starts[1:], len(sizes)], strict=True):
            if m >= 0:
                state[m] = self.statistic.update(state[m], np.ascontiguousarray(own[:, start:stop]))
        return state

    def merge(self, a: Keyed, b: Keyed) -> Keyed:
        for m, own in b.items():
            a[m] = self.statistic.merge(a[m], own)
        return a

    def value(self, state: Keyed) -> NDArray[Any]:
        fine = int(1 / self.grain)
        total = self.statistic.value(self.statistic.zero()).astype(object)
        for m, own in sorted(state.items()):
            part = self.statistic.value(own).astype(object) * (fine * _CUT)
            total = total + (part * self.rows // m if m else part)
        whole = (total + _CUT // 2) // _CUT
        if fine == 1:
            return np.asarray(whole, dtype=object)
        found = np.empty(whole.size, dtype=object)
        found[:] = [Fraction(int(value), fine) for value in whole.ravel()]
        return found.reshape(whole.shape)


def weighing(source: Source, rows: int) -> Source:
    """The source with each sum over records weighted (`Weighted`), which a method's draw is handed; maps of units pass through."""
    return MappedSource(source, lambda one: one if by_units(one) else Weighted(one, rows))


def per_of(schema: Any) -> str | None:
    """The column in each of whose levels a unit counts once; None for none. schema: a `Schema`, or a plan's dictionary."""
    unit = schema["unit"] if isinstance(schema, Mapping) else schema.unit
    if isinstance(unit, Mapping):
        return unit.get("per")
    return unit.per if isinstance(unit, Unit) else None


def rows_moved(statistic: Any, rows: int) -> int:
    """How many rows' worth one unit moves a statistic by: 1 where its map is of units, `rows` for any sum over records.

    A statistic that is told where units begin, and sums their rows individually all the same, says so: `by_rows`.
    """
    if statistic.by_unit:
        return 1
    own = statistic
    while own is not None and not isinstance(own, Weighted) and not own.by_rows:
        own = own.statistic if isinstance(own, StatisticOver) else None
    return rows if own is not None or by_units(statistic) is None else 1


def separates(statistic: Any, per: str | None) -> bool:
    """Whether rows that differ in a column lie in separate numbers; what wraps a statistic does not change that."""
    own = statistic
    while isinstance(own, StatisticOver):
        own = own.statistic
    return per is not None and per in own.map.separates


def unit_squared(statistic: Any, relation: str, rows: int, per: str | None) -> Fraction:
    """The squared sensitivity to one unit, in the norm of the statistic. rows: the most that a unit has; per: `per_of` its schema."""
    moved, own = rows_moved(statistic, rows), Fraction(statistic.sensitivity_squared(relation))
    if moved == 1 or not separates(statistic, per):
        return own * moved**2
    alone = Fraction(statistic.sensitivity_squared("add-remove"))
    return rows * (alone if relation == "add-remove" else max(own, 2 * alone))
