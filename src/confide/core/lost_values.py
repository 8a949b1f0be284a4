"""Clipped and unread values: noisy shares of values beyond their bounds, and of cells that hold something else than a value.

Guarantee: mu-GDP, native in the plan, for `SHARE` of the square of mu: Gaussian noise on one vector of counts. Relation: add-remove or
substitute. Sensitivity, for k columns: a record lies in exactly one of four numbers of each column, whatever its cells hold. It is below
or above the bounds, unread, or any other. What a cell is follows from that cell and the schema. So a record is a vector of k ones, and
comes or goes with sqrt(k). One that is replaced may leave one number and enter another in each column: sqrt(2k).

Units: at most r rows of one are there, each a vector of k ones: r sqrt(k). Where all rows count by weight, a unit's m rows count
min(1, r/m) each: r sqrt(k) (`Weighted`). Survey weights, PSUs and deviations from a person's means play no part: records are counted,
before any is dropped for a missing value.

A subgroup: the k columns include the data's columns behind its condition, also behind derived ones. A record counts where the condition
is true, and where it cannot be told (`PerhapsInside`): a value of it is missing, or a cell behind it unread. Else unread cells of the
condition would take their records out of these counts, as they do from the answer. Whether a record counts follows from the record and
the schema. So it adds k ones or nothing: it comes or goes with at most sqrt(k). Of one that is replaced, the old and the new may each be
k ones or nothing, which differ by at most sqrt(2k). A unit is r such records, or weights that add up to r, some of them 0: r times either.

The four numbers of a column add up to the records, of which the others are shares.

Source: Dwork, McSherry, Nissim, Smith 2006 (histograms); Dong, Roth, Su 2022 (Gaussian noise). The vector is derived in confide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide.core.events import Composed, leaves
from confide.core.exact import digest
from confide.core.statistic import Codes, RecordMap, Source, Statistic, Total, WrappedSource
from confide.errors import PlanError, ReleaseError
from confide.schema import Categorical, Column, ModelMatrix, Schema
from confide.schema.formulas.conditions import Predicate, parse_predicate

#: The budget item's name, and of the square of mu what it costs.
NAME, SHARE = "clipped, unread", Fraction(1, 100)
#: The code of a row `read(NAME)`: any other cell, a value below or above its bounds, a cell that holds something and is not read.
OTHER, BELOW, ABOVE, UNREAD = range(4)
# A share above the first is flagged, one of unread cells above the second costs intervals: with these chances that any of a release is a
# false alarm.
_TOLERATED, _MUCH = 0.005, 0.05
_FLAG_LEVEL, _STATUS_LEVEL = 0.05, 0.001
_TWO_SIDED = float(special.ndtri(0.975))
#: How a reason says that many cells were not read.
HARDLY_READ = "holds something that is not read"
# A margin of error below which a share is told in tenths of a percent.
_FINE = 0.015
# An sd with that margin, above which only what is flagged is told, and what would be.
_ROUGH = 0.1


def read_row(name: str) -> str:
    """The row of codes that says how the cells of a column were read.

    >>> read_row("income")
    'read(income)'
    """
    return f"read({name})"


@dataclass(frozen=True)
class ReadRows(RecordMap):
    """For each column four numbers, of which a record has a 1 in that of its code; and for each derived term that was given bounds.

    terms: responses of these designs. A value at either bound counts as beyond it, because it was moved there.
    """

    cells: tuple[str, ...]
    terms: tuple[ModelMatrix, ...] = ()
    alike: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are of."""
        return (*self.cells, *(design.response.name for design in self.terms))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        behind = (name for design in self.terms for name in design.columns)
        return tuple(dict.fromkeys((*map(read_row, self.cells), *behind)))

    @property
    def width(self) -> int:
        return 4 * len(self.names)

    @property
    def l1(self) -> int:
        return len(self.names)

    @property
    def l2_squared(self) -> int:
        return len(self.names)

    @cached_property
    def digest(self) -> str:
        return digest(["cells as they were read", list(self.cells), [design.to_dict() for design in self.terms]])

    def __call__(self, codes: Codes) -> Codes:
        read = [*codes[: len(self.cells)], *(self._ends(design, codes) for design in self.terms)]
        return np.asarray([row == code for row in read for code in range(4)], dtype=np.float64)

    def _ends(self, design: ModelMatrix, codes: Codes) -> Codes:
        """The codes of a term: where its value is at a bound."""
        own, keep = design.codes(codes[[self.columns.index(name) for name in design.columns]])
        last = own[-1]
        ends = np.where(last <= 0, BELOW, np.where(last >= design.response.steps - 1, ABOVE, OTHER))
        return np.asarray(ends if keep is None else np.where(keep, ends, OTHER))


@dataclass(frozen=True)
class PerhapsInside:
    """The condition of a subgroup, for these counts: true also where it cannot be told, because a value of it is missing or a cell unread.

    cells: the data's columns behind it.
    """

    condition: Predicate
    cells: tuple[str, ...]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (*self.condition.columns, *map(read_row, self.cells))

    def to_list(self) -> list[Any]:
        """As of the condition."""
        return ["perhaps", self.condition.to_list(), list(self.cells)]

    def __call__(self, codes: Codes) -> NDArray[np.bool_]:
        own, read = np.split(codes, [len(self.condition.columns)])
        return np.asarray(self.condition(own) | (own < 0).any(axis=0) | (read == UNREAD).any(axis=0))


def bounded_terms(term_bounds: Mapping[str, Any], schema: Schema) -> tuple[ModelMatrix, ...]:
    """Derived terms that were given bounds, of columns that have some. term_bounds: of a method, which was planned with them."""
    columns, found = schema.columns, []
    for name, own in term_bounds.items():
        # a factor that is no number has no bounds to be beyond
        with suppress(PlanError):
            found.append(ModelMatrix.of(f"{name} ~ 1", schema, term_bounds={name: own}))
    open_ended = {name for name, own in columns.items() if not (isinstance(own, Categorical) or all(own.declared))}
    return tuple(one for one in found if not open_ended & set(one.columns))


def counts_of(statistics: Mapping[str, Statistic], schema: Schema, parameters: Mapping[str, Any]) -> ReadRows:
    """What is counted: the data's columns behind those that a method or its subgroup reads, and its terms with bounds.

    parameters: of the method.
    """
    read = {row for one in statistics.values() for row in one.map.columns}
    if where := parameters.get("where"):
        read.update(parse_predicate(where, schema).columns)
    if NAME in statistics:
        raise PlanError(
            f"a statistic is named {NAME!r}, like a column of the table. So are the counts of clipped and unread values",
            "rename the column in the data and the schema",
        )
    bounds = parameters.get("term_bounds")
    terms = bounded_terms(bounds, schema) if bounds else ()
    return ReadRows(schema.behind(name for name in schema.names if name in read), terms)


class CountedFirst(WrappedSource):
    """A source of one draw, whose first pass also adds up the counts, and draws them. It spares a separate pass."""

    def __init__(self, source: Source, counts: Statistic, draw: Callable[[NDArray[Any]], Any]) -> None:
        super().__init__(source)
        self._counts: tuple[Statistic, ...] = (counts,)
        self._draw = draw

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """As the source behind it."""
        first, self._counts = self._counts, ()
        sums = self._source.aggregate(*statistics, *first)
        for total in sums[len(statistics) :]:
            self._draw(total)
        return sums[: len(statistics)]


def counted_together(plans: Mapping[str, Any]) -> tuple[dict[str, Any], Statistic | None, Fraction]:
    """The analyses of a publication without their own counts, those of all their columns at once, and what all of them pay for these.

    None where fewer than two count all records alike: a subgroup, and derived terms with bounds, have their own.
    """
    alike: dict[Any, list[str]] = {}
    for part, plan in plans.items():
        own = plan.statistics.get(NAME)
        if own is not None and plan.where is None and set(plan.constants[NAME]) <= set(plan.asked.names):
            alike.setdefault((type(own), getattr(own, "rows", None)), []).append(part)
    parts = max(alike.values(), key=len, default=[])
    if len(parts) < 2:
        return dict(plans), None, Fraction(0)
    found, paid = dict(plans), Fraction(0)
    for part in parts:
        plan, spend = plans[part], plans[part].spend(NAME)
        paid += spend.sensitivity**2 / spend.scale
        event = Composed(tuple(one for one in plan.event.parts if one != spend))
        rest = {name: one for name, one in plan.statistics.items() if name != NAME}
        found[part] = replace(plan, event=event, statistics=rest)
    counts = Total(ReadRows(tuple(_names_of(found))), nonnegative=True)
    own = plans[parts[0]].statistics[NAME]
    return found, counts if isinstance(own, Total) else replace(own, statistic=counts), paid


def _names_of(plans: Mapping[str, Any]) -> list[str]:
    """The columns that analyses of a publication count together."""
    together = (names for names in map(shared_names, plans.values()))
    return list(dict.fromkeys(name for names in together for name in names))


def shared_names(plan: Any) -> tuple[str, ...]:
    """The columns of an analysis whose publication counts them."""
    paid = any(leaf.name == NAME for leaf in leaves(plan.event))
    return () if paid else tuple(plan.constants.get(NAME, ()))


def shared_public(noisy: NDArray[np.float64], sd: float, plans: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    """For each analysis of a publication, the counts of its columns, how many columns are counted, and the SD of the noise."""
    place = {name: at for at, name in enumerate(_names_of(plans))}
    found = {}
    for part, plan in plans.items():
        names = shared_names(plan)
        if names:
            found[part] = np.append(noisy.reshape(-1, 4)[[place[name] for name in names]], [len(place), sd])
    return found


# what a release says -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """An estimated share c/N of records, and the SD of the noise of c/N with N fixed. many: shares that are flagged with it.

    columns: whose four numbers each add up to the records, of which N is the mean over them.
    """

    value: float
    sd: float
    many: float
    columns: int = 1

    @property
    def least(self) -> float:
        """The least share that would be flagged."""
        return _TOLERATED + self._margin(_FLAG_LEVEL)

    def above(self, limit: float, level: float = _FLAG_LEVEL) -> bool:
        """Whether it is; level: the chance of a false alarm, for all shares of the release together."""
        return self.value - limit > self._margin(level)

    def _margin(self, level: float) -> float:
        return -float(special.ndtri(level / self.many)) * self.sd

    @property
    def error(self) -> float:
        """The margin of error at 95%. N has noise too: of variance 4/k in units of that of c, and 1/k of it in common with c."""
        share = min(max(self.value, 0.0), 1.0)
        return _TWO_SIDED * self.sd * sqrt(1 + (4 * share**2 - 2 * share) / self.columns)

    @property
    def ends(self) -> tuple[float, float]:
        """Of its 95% interval."""
        return max(self.value - self.error, 0.0), min(max(self.value + self.error, 0.0), 1.0)

    def __str__(self) -> str:
        digits = int(self.error < _FINE)
        value, low, high = (f"{min(max(one, 0.0), 1.0):.{digits}%}" for one in (self.value, *self.ends))
        return f"{value} ({low} to {high})" if self.above(_TOLERATED) and low != high else value


@dataclass(frozen=True)
class Lost:
    """Shares of the records, before any is dropped, whose value of a column was clipped or not read.

    column: as declared; term: whether it is a derived term with bounds, where a value at one counts as beyond it.
    """

    name: str
    column: Column
    below: Share
    above: Share
    unread: Share
    term: bool = False

    @property
    def sides(self) -> dict[str, Share]:
        """What was clipped, by the side; nothing where there are no bounds."""
        if isinstance(self.column, Categorical):
            return {}
        below, above = self.column.declared
        return {**({"below": self.below} if below else {}), **({"above": self.above} if above else {})}

    @property
    def clipped(self) -> bool:
        """Whether a noticeable share was."""
        return any(share.above(_TOLERATED) for share in self.sides.values())

    @property
    def bounded(self) -> str:
        """The column and its bounds, such as "income to [0, 9000]"."""
        assert not isinstance(self.column, Categorical)
        low, high = self.column.declared
        said = self.column.said if self.column.kind == "date" else "{:.10g}".format
        return (
            f"{self.name} to [{said(self.column.low) if low else '...'}, {said(self.column.high) if high else '...'}]"
        )

    @property
    def words(self) -> str:
        """What was clipped on either side."""
        told = ", ".join(f"{share} {'at or ' * self.term}{side}" for side, share in self.sides.items())
        return told if self.clipped else f"{told} ({_most(self.sides.values())})"


def lost_of(
    found: NDArray[np.float64], names: Sequence[str], known: Mapping[str, Column], terms: Collection[str] = ()
) -> tuple[Lost, ...]:
    """From the noisy counts, the number of columns that are counted together, and the SD of the noise of each: (4 names + 2,).

    known: columns, and terms as columns.
    """
    if found.shape != (4 * len(names) + 2,) or not names or not set(names) <= set(known):
        raise ReleaseError("the counts of clipped and unread values are damaged in this file", "ask for the original")
    counts, (together, sd) = found[:-2].reshape(-1, 4), found[-2:].tolist()
    records = max(float(counts.sum()) / len(names), 1.0)
    many = 3 * max(together, len(names))
    shares = [[Share(float(one) / records, sd / records, many, len(names)) for one in own] for own in counts]
    return tuple(
        Lost(name, known[name], own[BELOW], own[ABOVE], own[UNREAD], name in terms)
        for name, own in zip(names, shares, strict=True)
    )


def flags_of(lost: Iterable[Lost], ranged: Collection[str]) -> tuple[str, ...]:
    """The flags of a result. ranged: the columns that are clipped to a range, which says what lies beyond it."""
    known = [own for own in lost if own.name not in ranged]
    clipped = ("values_clipped",) if any(own.clipped for own in known) else ()
    return (*clipped, *(("values_unread",) if any(own.unread.above(_TOLERATED) for own in lost) else ()))


def facts_of(lost: Sequence[Lost], ranged: Collection[str]) -> tuple[tuple[str, str], ...]:
    """What a table says of them: little where noise hides most of it. ranged: as in `flags_of`."""
    bounded = [own for own in lost if own.name not in ranged and own.sides]
    few = any(_TWO_SIDED * own.unread.sd > _ROUGH for own in lost)
    alone = len(bounded) == 1 and not few
    clipped = [f"{own.bounded}: {own.words}" for own in bounded if own.clipped or alone]
    within = [own for own in bounded if not (own.clipped or alone or few)]
    if within:
        clipped.append(
            f"{', '.join(own.name for own in within)}: {_most(s for own in within for s in own.sides.values())}"
        )
    unread = [f"{own.name} {own.unread}" for own in lost if own.unread.above(_TOLERATED)]
    rest = [own for own in lost if not (own.unread.above(_TOLERATED) or few)]
    if few:
        least = min(ceil(100 * max(own.unread.least for own in lost)), 100)
        of = ", also of unread values," if bounded else ""
        (clipped if bounded else unread).append(f"shares below {least}%{of} cannot be told from noise")
    facts = [("Clipped", "; ".join(clipped)), ("Unread values", "; ".join(unread))]
    if rest:
        facts.append(("Unread", f"{', '.join(own.name for own in rest)}: {_most(own.unread for own in rest)}"))
    return tuple(fact for fact in facts if fact[1])


def _most(shares: Iterable[Share]) -> str:
    most = min(ceil(1000 * max(share.ends[1] for share in shares) - 1e-9), 1000)
    return f"at most {most / 10:.1f}%"


def hardly_read(lost: Iterable[Lost]) -> str:
    """Why figures are rough where many cells are unread; "" where they are not."""
    told = " and ".join(f"{own.unread} of {own.name}" for own in lost if own.unread.above(_MUCH, _STATUS_LEVEL))
    if not told:
        return ""
    return (
        f"{told} {HARDLY_READ}, and counts as missing; any intervals are for the cells that were read. Declare decimal marks in [file], "
        "codes of missing values and levels in the schema, and release again"
    )
