"""Ranges of numeric columns, found by a release before its sums: how records are coded again, and where the step stands in a plan.

Guarantee: mu-GDP, as two rounds that are composed adaptively (Dong, Roth, Su 2022, Corollary 2). The first releases noisy
numbers of records in public bins, for a stated share of the square of mu. Ranges follow from them alone. The second is the
method itself on a schema whose bounds are these ranges. Its record map clips first, so that its sensitivity holds for every
range, also a bad one. The charge is for both, made before any noise, and never paid back.

Values arrive as codes of the row `fine(NAME)`: whole numbers from 0 to 2^53 in the order of the values, -1 for a missing one.
They keep the sign, the exponent and 41 bits of the mantissa, so that whole numbers up to 2^41 stay what they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.core.events import BudgetItem, leaves
from confide.core.exact import digest
from confide.core.lost_values import NAME as LOST
from confide.core.statistic import Beginning, Codes, MapOver, MappedSource, RecordMap, Source, Statistic, StatisticOver
from confide.core.units.privacy_unit import per_of, rows_moved, unit_squared
from confide.errors import PlanError, ReleaseError
from confide.schema import Categorical, Integer, Numeric, Provenance, Schema
from confide.schema.formulas.conditions import parse_predicate

_DROPPED = np.uint64(11)
_SIGN, _KEPT = np.int64(-(1 << 63)), np.int64(-(1 << 11))


def fine_row(name: str) -> str:
    """The row of codes that holds the values of a column in order.

    >>> fine_row("income")
    'fine(income)'
    """
    return f"fine({name})"


def as_fine(values: NDArray[np.float64], out: Codes | None = None) -> Codes:
    """Codes of finite values in their order, -1 for others.

    >>> values = np.array([-1e300, -1.5, -0.0, 0.0, 3.0, 4e5, np.inf])
    >>> codes = as_fine(values)
    >>> bool((np.diff(codes[:6]) >= 0).all()), float(codes[-1]), from_fine(codes)[1:].tolist()
    (True, -1.0, [-1.5, 0.0, 0.0, 3.0, 400000.0, nan])
    """
    x = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):  # a signaling NaN would warn
        # + 0.0 turns -0.0 into 0.0
        bits = (x + 0.0).view(np.int64)
    # all bits of a negative number are turned, and the sign of others
    bits ^= (bits >> 63) | _SIGN
    codes = np.empty(x.shape) if out is None else out
    codes[...] = (bits.view(np.uint64) >> _DROPPED).view(np.int64)
    codes[~np.isfinite(x)] = -1.0
    return codes


def from_fine(codes: Codes) -> NDArray[np.float64]:
    """The values that codes of a row `fine(NAME)` stand for; NaN for -1."""
    bits = np.asarray(codes, dtype=np.float64).astype(np.int64)
    turned = (bits >> 52) - 1  # all bits of a negative number, none of another
    turned &= _KEPT
    turned |= _SIGN
    bits <<= 11
    bits ^= turned
    values: NDArray[np.float64] = bits.view(np.float64)
    values[np.asarray(codes) < 0] = np.nan
    return values


# columns coded again --------------------------------------------------------------------------------------------------

#: Columns by name, as values of a dataclass that can be compared.
Columns = tuple[tuple[str, Numeric | Integer], ...]


def _again(columns: Columns, rows: tuple[str, ...], codes: Codes) -> Codes:
    """Codes in which the fine rows are the rows of the columns."""
    own = np.array(codes)
    for name, column in columns:
        if name in rows:
            place = rows.index(name)
            column.code(from_fine(codes[place]), out=own[place])
    return own


@dataclass(frozen=True)
class _Recoded(MapOver):
    """A record map on columns that are coded again from their values: the same bounds, because it is the same map."""

    map: RecordMap
    again: Columns

    @cached_property
    def columns(self) -> tuple[str, ...]:
        names = dict(self.again)
        return tuple(fine_row(row) if row in names else row for row in self.map.columns)

    @property
    def separates(self) -> tuple[str, ...]:
        return self.map.separates

    @cached_property
    def digest(self) -> str:
        return digest(["recoded", self.map.digest, [[name, own.to_dict()] for name, own in self.again]])

    def __call__(self, codes: Codes) -> Codes:
        return self.map(_again(self.again, self.map.columns, codes))


@dataclass(frozen=True)
class _Begins(Beginning):
    """A beginning after the columns were coded again."""

    begins: Any
    again: Columns
    columns: tuple[str, ...]

    @property
    def stays(self) -> bool:
        return bool(self.begins.stays)

    @property
    def rows(self) -> int:
        """Of a result that stays."""
        return int(self.begins.rows)

    def __call__(self, codes: Codes, *room: Any) -> Any:
        return self.begins(_again(self.again, self.columns, codes), *room)

    def after(self, other: Any, begun: Any, codes: Codes) -> Any:
        """What it gives by a result of before; None for that of another kind."""
        if not isinstance(other, _Begins) or other.again != self.again or other.columns != self.columns:
            return None
        return self.begins.after(other.begins, begun, _again(self.again, self.columns, codes))


@dataclass(frozen=True)
class Recoded(StatisticOver):
    """A statistic over records whose columns `again` are coded again, from their values."""

    statistic: Statistic
    again: Columns

    @cached_property
    def map(self) -> _Recoded:
        return _Recoded(self.statistic.map, self.again)

    @property
    def begins(self) -> Beginning | None:
        own = self.statistic.begins
        return None if own is None else _Begins(own, self.again, self.statistic.map.columns)

    @property
    def grain(self) -> Fraction:
        return self.statistic.grain

    def sensitivity_squared(self, relation: str) -> Fraction:
        return self.statistic.sensitivity_squared(relation)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.statistic.sensitivity_l1(relation)

    def marginal_of(self, other: Statistic) -> Callable[[Any], Any] | None:
        alike = isinstance(other, Recoded) and other.again == self.again
        return self.statistic.marginal_of(other.statistic) if alike else None  # type: ignore[attr-defined]

    def update(self, state: Any, codes: Codes) -> Any:
        return self.statistic.update(state, _again(self.again, self.statistic.map.columns, codes))

    def take(self, state: Any, begun: Any) -> Any:
        return self.statistic.take(state, begun)  # type: ignore[attr-defined]


class RecodedSource(MappedSource):
    """The records of a source behind another schema, in which some numeric columns have other bounds."""

    def __init__(self, source: Source, schema: Schema, again: Columns) -> None:
        names = {name for name, _ in again}

        def of(one: Statistic) -> Statistic:
            return Recoded(one, again) if names & set(one.map.columns) else one

        super().__init__(source, of)
        self._schema = schema

    @property
    def schema(self) -> Schema:
        return self._schema


# the step -------------------------------------------------------------------------------------------------------------


class RangeStep(Protocol):
    """Base of what a method says of the ranges that it finds before its sums. Made by `Method.ranges`.

    columns: by name, those whose ranges are found; share: of the square of mu, for all of them together.
    """

    if TYPE_CHECKING:

        @property
        def columns(self) -> tuple[str, ...]: ...
        @property
        def share(self) -> Fraction: ...

    @abstractmethod
    def statistic(self, name: str) -> Statistic:
        """The numbers of records in public bins of a column."""

    @abstractmethod
    def found(self, name: str, noisy: Any, plan: Any) -> ColumnRange:
        """The range that follows from them, and from public facts."""


@dataclass(frozen=True)
class ColumnRange:
    """The range of a column that a release found, with the share of records beyond it.

    Parameters
    ----------
    low, high : float
        Bounds to which values were clipped.
    kept : bool
        Whether these are the declared bounds.
    beyond, beyond_low, beyond_high : float
        Estimated share of records beyond the range, and its 95% confidence
        interval.
    seen : bool
        False where noise hides nearly all records and there are no declared
        bounds: the range then says nothing.
    spread : bool
        False where the values are too close together to be told apart.
    declared : tuple of float
        Bounds that the schema has.
    """

    low: float
    high: float
    kept: bool = False
    beyond: float = 0.0
    beyond_low: float = 0.0
    beyond_high: float = 0.0
    seen: bool = True
    spread: bool = True
    declared: tuple[float, float] = (-inf, inf)

    @property
    def clips(self) -> bool:
        """Whether values may lie beyond it."""
        return self.seen and not self.kept

    @property
    def named(self) -> str:
        """How values are clipped, in the words of a title.

        >>> ColumnRange(0, 4e5, declared=(0, 1e6)).named, ColumnRange(20, 65, declared=(0, 100)).named
        ('top-coded at 400,000', 'clipped to [20, 65]')
        """
        low, high = f"{self.low:,.10g}", f"{self.high:,.10g}"
        if self.low == self.declared[0]:
            return f"top-coded at {high}"
        return f"bottom-coded at {low}" if self.high == self.declared[1] else f"clipped to [{low}, {high}]"

    @property
    def share(self) -> str:
        """The share of records beyond, in words."""
        return f"{self.beyond:.1%} of records beyond (95% CI up to {ceil(1000 * self.beyond_high) / 10:.1f}%)"

    def to_array(self) -> NDArray[np.float64]:
        """The numbers, as a release holds them."""
        flags = (float(self.kept), float(self.seen), float(self.spread))
        return np.array([self.low, self.high, self.beyond, self.beyond_low, self.beyond_high, *flags])

    @classmethod
    def from_array(cls, name: str, values: Any, column: Any) -> ColumnRange:
        """What `to_array` gave; `ReleaseError` for numbers that no release holds."""
        given = [float(v) for v in np.asarray(values).ravel()]
        if len(given) != 8 or not all(map(isfinite, given)):
            raise _damaged(name)
        low, high, beyond, least, most, kept, seen, spread = given
        whole = not isinstance(column, Integer) or (low.is_integer() and high.is_integer())
        # the bounds of a term follow from its formula
        ends = (-inf, inf) if column is None else (column.low, column.high)
        within = not isinstance(column, Categorical) and ends[0] <= low < high <= ends[1] and whole
        changed = kept and column is not None and (low, high) != ends
        if not within or not {kept, seen, spread} <= {0.0, 1.0} or changed:
            raise _damaged(name)
        if not 0 <= least <= most <= 1 or not 0 <= beyond <= 1:
            raise _damaged(name)
        return cls(low, high, bool(kept), beyond, least, most, bool(seen), bool(spread), ends)


def _damaged(name: str) -> ReleaseError:
    return ReleaseError(
        f"the range of {name!r} in this file is not one that a release finds: the file was altered",
        "ask for the original, and check it with confide.verify against the ledger",
    )


def spend_name(name: str) -> str:
    """Of the budget item and of the public numbers.

    >>> spend_name("income")
    'range of income'
    """
    return f"range of {name}"


def columns_ranged(names: Iterable[str]) -> set[str]:
    """The columns that budget items, or public numbers, of ranges are named for.

    >>> columns_ranged(["range of income", "moments"])
    {'income'}
    """
    start = spend_name("")
    return {name.removeprefix(start) for name in names if name.startswith(start)}


def ranges_of(public: Mapping[str, Any], plan: Any) -> dict[str, ColumnRange]:
    """The ranges that the public numbers of a release hold, by column. Raises `ReleaseError` where they are not those of its plan."""
    paid, named = columns_ranged(leaf.name for leaf in leaves(plan.event)), columns_ranged(public)
    if plan.children or not (paid or plan.method.parameters.get("bounds") == "shared"):
        # of a publication, its analyses have them
        return {}
    if paid and paid != named:
        raise _damaged(min(paid ^ named))
    found = {name: public[spend_name(name)] for name in sorted(named)}
    columns = plan.asked.columns
    return {name: ColumnRange.from_array(name, values, columns.get(name)) for name, values in found.items()}


def ranged(schema: Schema, found: Mapping[str, ColumnRange]) -> Schema:
    """The schema whose columns have the ranges that were found; the schema itself where all bounds were kept.

    >>> import confide as cf
    >>> schema = cf.Schema({"x": cf.Numeric(0, 1e6, on_missing=5e5)})
    >>> ranged(schema, {"x": ColumnRange(0.0, 1000.0)})["x"].high
    1000.0
    """
    if all(own.kept for own in found.values()):
        return schema
    columns, terms = dict(schema.columns), dict[str, tuple[float, float]]()
    for name, own in found.items():
        if name not in columns:
            terms[name] = own.low, own.high
        elif own.clips:
            columns[name] = _within(schema[name], own)
    made = schema.with_columns(columns)
    return made.with_terms(terms) if terms else made


def _within(column: Any, own: ColumnRange) -> Numeric | Integer:
    assert not isinstance(column, Categorical)
    rule = column.on_missing
    facts: dict[str, Any] = {
        "on_missing": rule if isinstance(rule, str) else min(max(rule, own.low), own.high),
        "provenance": Provenance("private", "range found by this release"),
    }
    found: Numeric | Integer = type(column)(own.low, own.high, **facts)
    return found


def check_bounds(method: Any, schema: Schema, statistics: Mapping[str, Statistic], step: RangeStep | None) -> None:
    """Raise `PlanError` where a column without declared bounds is used and its range is not found."""
    found = () if step is None else step.columns
    named = () if method.where is None else parse_predicate(method.where, schema).columns
    used = {row for one in statistics.values() for row in one.map.columns}
    for name in schema.names:
        column = schema[name]
        if isinstance(column, Categorical) or all(column.declared):
            continue
        if name in named:
            # a condition compares codes, which are millions apart without bounds
            raise PlanError(
                f"where={method.where!r} compares {name!r}, which has no declared bounds",
                f"write them in the schema, as in {name!r}: cf.Numeric(0, 100), from public knowledge",
            )
        if name not in used or name in found:
            continue
        if method.bounds == "shared" and name in method.to_find(schema):
            continue
        asked = " with bounds='declared'" if method.bounds == "declared" else ""
        other = "leave bounds out, or " if asked else ""
        raise PlanError(
            f"{method.name}{asked} needs declared bounds of {name!r}, which has none",
            f"{other}write them in the schema, as in {name!r}: cf.Numeric(0, 100), from public knowledge",
        )


def draw_counts(step: RangeStep, source: Source, plan: Any, meter: Any) -> None:
    """The noisy counts of all columns, in one pass, with those of clipped and unread values."""
    names = [*map(spend_name, step.columns), *([LOST] if LOST in plan.statistics else [])]
    for name, total in zip(names, source.aggregate(*(plan.statistics[name] for name in names)), strict=True):
        meter.draw(name, total)


def rows_read(plan: Any) -> tuple[tuple[str, ...], set[str]]:
    """The rows of codes that a draw of a plan asks for, and which of them its first pass alone does: those of unread values.

    Once ranges are known, ranged columns follow from the rows of their values.
    """
    first = {row for name in columns_ranged(plan.statistics) for row in plan.statistics[spend_name(name)].map.columns}
    rows = dict.fromkeys(row for one in plan.statistics.values() for row in one.map.columns)
    # in a publication, an analysis in declared bounds may ask for the same columns
    spare = () if plan.children else [row for row in rows if fine_row(row) in first and row not in first]
    again = {row for name, one in plan.statistics.items() if name != LOST for row in one.map.columns}
    return tuple(row for row in rows if row not in spare), set(rows) - again


def in_ranges(
    method: Any, step: RangeStep, source: Source, plan: Any, found: Mapping[str, ColumnRange], *, alone: bool = False
) -> tuple[Source, Any]:
    """What the second round of a method is handed: its records and its plan, in the ranges that were found."""
    schema = ranged(plan.declared, found)
    # where all bounds are kept, the sums are those that were planned
    made = plan if schema is plan.declared else method.plan(schema, plan.requested, n=plan.n)
    drawn = {*map(spend_name, step.columns), LOST}
    own = {name: one for name, one in made.statistics.items() if name not in drawn and not one.by_unit}
    _check_sums(plan, own, drawn)
    # in a publication, the counts of units' rows, and of clipped and unread values, are drawn by this plan
    beside = {name: one for name, one in plan.statistics.items() if one.by_unit or name == LOST}
    again = replace(plan, statistics={**beside, **own}, constants=made.constants, clipped=schema)
    return recoded_columns(source, schema, found, alone=alone), again


def recoded_columns(source: Source, schema: Schema, found: Mapping[str, ColumnRange], *, alone: bool = False) -> Source:
    """The records behind the schema with the ranges that were found.

    Columns whose bounds were kept are coded again like the others. What a record adds to the sums then does not depend on the way in
    which a source hands out its codes. `alone`: whether nobody else reads the source. Codes that it keeps are then coded again once, and
    not in each pass.
    """
    columns: dict[str, Any] = {name: schema[name] for name in found if name in schema}
    if not columns:
        return source
    once = alone and source.coded_again({fine_row(name): name for name in columns}, partial(_coded_within, columns))
    return RecodedSource(source, schema, () if once else tuple(columns.items()))


def _coded_within(columns: Mapping[str, Any], name: str, codes: Codes) -> Codes:
    """Codes of a column from its values in order; it may be sent to workers."""
    found = from_fine(codes)
    return np.asarray(columns[name].code(found, out=found))


def _check_sums(plan: Any, own: Mapping[str, Statistic], drawn: set[str]) -> None:
    """Raise `ReleaseError` where the sums in the found ranges are not those that the plan's noise is for.

    A sensitivity must not follow from bounds: then noise that was planned for the declared ones covers what is drawn in any others.
    What is compared are public facts and the ranges, so that the error tells nothing of records.
    """
    planned = {name: one for name, one in plan.statistics.items() if name not in drawn and not one.by_unit}
    same = set(own) == set(planned) and all(_alike(own[name], planned[name]) for name in own)
    items = [leaf for leaf in leaves(plan.event) if isinstance(leaf, BudgetItem) and leaf.name in own]
    if not same or not all(is_paid(leaf, own[leaf.name], plan) for leaf in items):
        raise ReleaseError(
            f"with the ranges that were found {plan.method.name} would add up other sums than planned; this is an error of the method",
            "write bounds='declared', and report it to the method's authors",
        )


def _alike(one: Statistic, other: Statistic) -> bool:
    """Whether two statistics are drawn alike: kind, shape, norm, and what their values are multiples of."""
    return (type(one), one.shape, one.norm, one.grain) == (type(other), other.shape, other.norm, other.grain)


def is_paid(leaf: BudgetItem, statistic: Statistic, plan: Any) -> bool:
    """Whether a budget item states no smaller sensitivity than a statistic has, for the unit of the plan."""
    rows = int(plan.schema["rows_per_unit"])
    if leaf.norm == "l1":
        least = (statistic.sensitivity_l1(plan.relation) * rows_moved(statistic, rows)) ** 2
    else:
        least = unit_squared(statistic, plan.relation, rows, per_of(plan.schema))
    return (leaf.sensitivity * leaf.step) ** 2 >= least


#: The share of records that may lie beyond a range, from which on a result is a rough figure.
MOST_BEYOND = 0.15


def judged(
    found: Mapping[str, ColumnRange], status: str, reason: str = "", features: Iterable[str] = ()
) -> tuple[str, str]:
    """The status of a result whose columns have these ranges, and its reason; both as they were where the ranges are good enough.

    features: the columns that must vary, for a coefficient to say anything.
    """
    answered = status in ("valid", "partial")
    # a column that lies around one value, and is clipped there
    flat = [name for name in features if name in found and found[name].clips and not found[name].spread]
    if flat and "at all: leave" not in reason:
        vary, them = ("varies", "it") if len(flat) == 1 else ("vary", "them")
        told = f"noise hides whether {' and '.join(flat)} {vary} at all: leave {them} out of the formula"
        return ("imprecise" if answered else status), "; ".join(filter(None, (told, reason)))
    if not answered:
        return status, reason
    hidden = [name for name, own in found.items() if not own.seen]
    if hidden:
        return "no_information", (
            f"noise hides where the values of {' and '.join(hidden)} lie: declare bounds in the schema, or ask with more records or a "
            "larger mu"
        )
    # beside 0 rare values may lie anywhere
    alike = [name for name, own in found.items() if own.clips and not own.spread and own.low <= 0 <= own.high]
    if alike:
        return "imprecise", (
            f"nearly all values of {' and '.join(alike)} are 0, and noise hides the others: declare bounds in the schema"
        )
    far = {name: own for name, own in found.items() if own.beyond_high > MOST_BEYOND}
    if far:
        told = " and ".join(f"{own.beyond_high:.0%} of {name}" for name, own in far.items())
        return "imprecise", (
            f"up to {told} may lie beyond the range that was found: declare bounds in the schema, or ask with more records or a larger mu"
        )
    return status, reason


def check_same_ranges(found: Iterable[Mapping[str, ColumnRange]]) -> None:
    """Raise `PlanError` where releases clipped a column to different ranges: their sums are of different columns."""
    clipped = [{name: (own.low, own.high) for name, own in one.items() if own.clips} for one in found]
    for name in dict.fromkeys(name for one in clipped for name in one):
        if len({one.get(name) for one in clipped}) > 1:
            words = (f"[{one[name][0]:,.10g}, {one[name][1]:,.10g}]" if name in one else "none" for one in clipped)
            raise PlanError(
                f"the releases clip {name!r} to different ranges, and their sums do not add up: {' and '.join(dict.fromkeys(words))}",
                "read each release separately, or ask with the same bounds in the schema and bounds='declared'",
            )


def to_public(found: Mapping[str, ColumnRange]) -> dict[str, NDArray[np.float64]]:
    """The ranges as the public numbers of a release."""
    return {spend_name(name): one.to_array() for name, one in found.items()}
