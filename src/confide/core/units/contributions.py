"""How many rows the units of a release have: a noisy histogram that each plan with an enforced unit pays with 1% of its
cost.

Guarantee: mu-GDP, native in the plan. Sensitivity: a unit lies in one cell, so that adding or removing it moves one count by 1, and
replacing it moves two: sqrt(2). It says how many units there are and how many of their rows count; it widens no interval. Methods with a
guarantee that may fail, or is proved as a whole, leave nothing over, and their plans have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from confide.core.allowance import UNIT_SHARE, Allowance
from confide.core.events import BudgetItem, Composed, Event, exact_cost
from confide.core.exact import digest
from confide.core.lost_values import NAME as LOST, facts_of, flags_of, hardly_read
from confide.core.plan import Plan
from confide.core.ranges import judged
from confide.core.release import Noisy, Release
from confide.core.statistic import Codes, RecordMap, Total
from confide.core.units.privacy_unit import UNIT_ROW, WHOLE, unit_flags
from confide.errors import PlanError
from confide.guarantees import GDP

_Result = TypeVar("_Result")

#: The spend's name.
NAME = "contributions"
#: Cells of row counts: 1, 2, 3 to 4, 5 to 8, ..., to 2^16, beyond which units are cut.
CELLS = 17
# The rows of a unit in each cell, where its units are spread evenly.
_ROWS = np.array([1.0, 2.0, *(0.75 * 2.0**cell + 0.5 for cell in range(2, CELLS))])
# The fewest and the most of each: where in its cell a unit lies is not released.
_FEWEST = np.array([1.0, 2.0, *(2.0 ** (cell - 1) + 1 for cell in range(2, CELLS))])
_MOST = 2.0 ** np.arange(CELLS)
# What is above chance in all cells together (one of 4,000 lies above it by noise alone: a cell of 2^16 rows that noise fills outweighs all
# others), and a share of lost rows worth a flag.
_ABOVE, _NOTICEABLE, _ONE_SIDED = 3.5, 0.05, 1.645
#: A number after ± is this many sds of noise everywhere: within it at 95 %.
_HALF = 1.96
# Fewer equal units than this are worth a flag; with several rows of each, fewer than this over mu give no interval.
_FEW_UNITS, _NOISY_UNITS = 40.0, 200.0


@dataclass(frozen=True)
class _Cell(RecordMap):
    """Which cell a unit lies in: on its first row, from the source that bounds it. One unit moves the row of one cell, by 1."""

    columns: tuple[str, ...] = field(default=(UNIT_ROW,), init=False)
    width: int = field(default=CELLS, init=False)
    l1: int = field(default=1, init=False)
    l2_squared: int = field(default=1, init=False)
    digest: str = field(default=digest(["units by their rows", CELLS]), init=False)

    def __call__(self, codes: Codes) -> Codes:
        return np.asarray(codes[0][None, :] == np.arange(CELLS)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Contributions(Total):
    """Units by the number of their rows. Its map is of units, whatever number of rows counts (`by_unit`)."""

    map: RecordMap = field(default_factory=_Cell)
    nonnegative: bool = True

    by_unit: ClassVar[bool] = True


def with_contributions(plan: Plan) -> Plan:
    """The plan with the histogram in what it leaves of its level; the plan itself where it leaves less, or enforces no unit."""
    level, cost = plan.guarantees[0], exact_cost(plan.event)
    enforced = isinstance(plan.schema["unit"], Mapping) and not plan.children
    if not enforced or not isinstance(level, GDP) or cost is None or cost.kind is not GDP or cost.delta:
        return plan
    if any(isinstance(one, Contributions) for one in plan.statistics.values()):
        return plan  # it counts units itself
    if NAME in plan.statistics:
        raise PlanError(
            f"a statistic of {plan.method.name!r} is named {NAME!r}, like a column of the table. So is the histogram of units' rows "
            "that each plan with an enforced unit pays for",
            "rename the column in the data and the schema",
        )
    if cost.amount > Fraction(level.mu) ** 2 * (1 - UNIT_SHARE):
        return plan
    statistic = Contributions()
    spend = Allowance(plan.requested, level, 1).spend(NAME, statistic, UNIT_SHARE)
    parts: tuple[Event, ...] = plan.event.parts if isinstance(plan.event, Composed) else (plan.event,)
    return replace(plan, event=Composed((*parts, spend)), statistics={**plan.statistics, NAME: statistic})


def counted_once(plans: Mapping[str, Plan]) -> dict[str, Plan]:
    """The questions of a publication, of which the first that counts its units alone pays for it; the others leave its share unspent."""
    found, seen = {}, False
    for name, plan in plans.items():
        own = isinstance(plan.statistics.get(NAME), Contributions) and isinstance(plan.event, Composed)
        if own and seen and len(plan.statistics) > 1:
            assert isinstance(plan.event, Composed)
            parts = tuple(part for part in plan.event.parts if not (isinstance(part, BudgetItem) and part.name == NAME))
            rest = {key: one for key, one in plan.statistics.items() if key != NAME}
            plan = replace(plan, event=parts[0] if len(parts) == 1 else Composed(parts), statistics=rest)
        seen |= own
        found[name] = plan
    return found


@dataclass(frozen=True)
class Counted:
    """What a noisy histogram says: the number of units, the share of them with more than k rows, and the share of rows lost.

    Each with the standard deviation of its noise. Cells that do not exceed their noise count as empty in the shares
    of rows. `lost_range`: the share of rows lost if each unit had the fewest rows of its cell, and the most.
    `above_range`: the share of units with more than k, in the same way.
    """

    units: float
    units_sd: float
    above: float
    above_sd: float
    lost: float
    lost_sd: float
    lost_range: tuple[float, float]
    above_range: tuple[float, float]

    @classmethod
    def of(cls, counts: NDArray[np.float64], sd: float, k: int) -> Counted:
        """counts: noisy units by cell; `sd`: of the noise of each."""
        units = max(float(counts.sum()), 1.0)
        more = k < _ROWS
        above = min(max(float(counts[more].sum()) / units, 0.0), 1.0)
        spread = sd * sqrt(float(more.sum()) * (1 - above) ** 2 + float((~more).sum()) * above**2) / units
        seen = np.where(counts > _ABOVE * sd, counts, 0.0)
        rows = max(float(seen @ _ROWS), 1.0)
        over = np.maximum(_ROWS - k, 0.0)
        lost = float(seen @ over) / rows
        slope = np.where(seen > 0, over - lost * _ROWS, 0.0)
        ends = (float(seen @ np.maximum(r - k, 0.0)) / max(float(seen @ r), 1.0) for r in (_FEWEST, _MOST))
        low, high = ends
        lost_sd = sd * float(np.sqrt(slope @ slope)) / rows
        least, most = (min(max(float(counts[k < r].sum()) / units, 0.0), 1.0) for r in (_FEWEST, _MOST))
        return cls(units, sd * sqrt(CELLS), above, spread, lost, lost_sd, (low, high), (least, most))

    @property
    def truncated(self) -> bool:
        """Whether more than 5% of the rows are beyond what units may count, beyond the noise."""
        return self.lost - _ONE_SIDED * self.lost_sd > _NOTICEABLE

    def words(
        self, k: int, *, weighted: bool = False, whole: bool = False, per: str | None = None, every: bool = False
    ) -> str:
        """In one line, for a head; ± is at 95%. `weighted`: all rows count, those of units with more than k by weight.
        `whole`: units do, whatever rows they have. `per`: they count once in each level of this column, in at most k.
        `every`: which are all levels there are.
        """
        rows = f"{k} row" if k == 1 else f"{k} rows"
        units, noise = f"{self.units:,.0f} ± {_HALF * self.units_sd:,.0f}", f"± {_HALF * self.above_sd:.0%}"
        least, most = (f"{share:.0%}" for share in self.above_range)
        # where k lies within a cell, those with k rows stand in it with those of more
        above = f"{least} {noise} have" if least == most else f"{least} to {most} have (noise {noise})"
        if per is not None:
            return units if every else f"{units}; {above} rows in more than {k} levels of {per}"
        if whole:
            return f"{units}; {above} more than {rows}"
        low, high = self.lost_range
        share = f"{_between(low, high)} of the rows do not count"
        if weighted:
            share = f"all rows count by weight, together as {_between(1 - high, 1 - low)} of them would"
        return (
            f"{units}; {above} more than {rows}; "
            f"{share} (noise ± {_HALF * self.lost_sd:.1%}; the smallest number of units with many rows that exceeds the noise is about "
            f"{_ABOVE * self.units_sd / sqrt(CELLS):,.0f})"
        )


def _between(low: float, high: float) -> str:
    return f"about {low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"


@dataclass(frozen=True)
class Independent:
    """What intervals count as independent where several rows of a unit count: the number of equal units, and the words
    for them.

    `units`: U* = (sum of the units' weights)^2/(sum of their squares), the second raised by its noise, from the
    histogram of contributions. Where there is none, the records over the most rows of a unit, which is less.
    """

    units: float
    weak: str = ""

    @classmethod
    def of(cls, release: Release, records: float) -> Independent | None:
        """Of a release with an enforced unit, or clusters, and its DP number of records (the units' weights); None without any."""
        schema, cluster = release.plan.schema, release.plan.schema.get("cluster")
        if cluster is not None:
            return cls(float(cluster["count"] or max(records, 1.0) / float.fromhex(cluster["size"])))
        if not isinstance(schema["unit"], Mapping):
            return None
        k, column = int(schema["rows_per_unit"]), schema["unit"]["column"]
        units, found = max(records, 1.0) / k, counted(release)
        if k > 1 and found is not None:
            noisy = release.statistics[NAME]
            units = effective_units(noisy.decode(), sqrt(float(noisy.scale)) * float(noisy.step), k)
        weak = ""
        level = release.plan.guarantees[0]
        if k > 1 and isinstance(level, GDP) and units < _NOISY_UNITS / level.mu:
            weak = f"about {units:,.0f} independent values of {column} are too few for {k} rows' worth of each at this budget; write rows=1"
        return cls(units, weak)


def effective_units(counts: NDArray[np.float64], sd: float, k: int) -> float:
    """U*, from noisy units by cell; `sd`: of the noise of each.

    >>> round(effective_units(np.array([90.0, *[0.0] * 6, 10.0, *[0.0] * 9]), 0.0, 100), 1)
    11.9
    """
    rows = np.minimum(_ROWS, k)
    seen = np.where(counts > _ABOVE * sd, counts, 0.0)
    whole = max(float(seen @ rows), 1.0)
    squares = float(seen @ rows**2) + _ONE_SIDED * sd * float(np.sqrt(((rows**2)[seen > 0] ** 2).sum()))
    return max(whole**2 / max(squares, 1.0), 1.0)


def noise_ratio(counts: NDArray[np.float64], sd: float, k: int) -> float:
    """The noise of a mean with k rows per unit beside that with one: k/E min(k, m), from a noisy histogram."""
    seen = np.where(counts > _ABOVE * sd, counts, 0.0)
    return k * float(seen.sum()) / max(float(seen @ np.minimum(_ROWS, k)), 1.0)


def counted(release: Release) -> Counted | None:
    """What a release says of its units; None where it has no histogram."""
    noisy: Noisy | None = release.statistics.get(NAME)
    if noisy is None or not isinstance(release.plan.schema["unit"], Mapping):
        return None
    sd = sqrt(float(noisy.scale)) * float(noisy.step)
    return Counted.of(noisy.decode(), sd, int(release.plan.schema["rows_per_unit"]))


def shown(result: _Result, release: Release) -> _Result:
    """The result with what its ranges say of its status, and its clipped values and its unit of its flags and facts, once."""
    if release.ranges:
        one: Any = result
        terms = getattr(getattr(one, "design", None), "terms", ())
        status, reason = judged(release.ranges, one.status, one.reason, [term.name for term in terms])
        if reason != one.reason:
            result = one.withheld(status, reason)
    if LOST in release.plan.constants:
        result = _with_lost(result, release)
    return result if release.plan.declared.plain else _with_units(result, release)


def _with_lost(result: _Result, release: Release) -> _Result:
    """The result with the flags and facts of clipped and unread values, of a method that adds columns up."""
    if not release.plan.constants[LOST]:
        return _with(result, flags=("clipping_not_checked",), facts=(("Clipped", "not counted"),))
    lost, one = release.lost, cast(Any, result)
    ranged = [name for name, own in release.ranges.items() if own.clips]
    reason = hardly_read(lost)
    if reason and one.status in ("valid", "partial"):
        result = one.withheld("imprecise", "; ".join(filter(None, (reason, one.reason))))
    return _with(result, flags=flags_of(lost, ranged), facts=facts_of(lost, ranged))


def _with_units(result: _Result, release: Release) -> _Result:
    schema, found = release.plan.schema, counted(release)
    flags: tuple[str, ...] = unit_flags(schema)
    facts: tuple[tuple[str, str], ...] = ()
    count = release.statistics.get("count")
    if schema.get("cluster") is not None and count is not None and count.shape == (1,):
        independent = Independent.of(release, float(count.decode()[0]))
        assert independent is not None
        flags = (*flags, "few_independent_units") if independent.units < _FEW_UNITS else flags
        told = "public" if schema["cluster"]["count"] else "from the DP number of units and the stated size"
        facts = ((f"Clusters ({schema['cluster']['column']})", f"{independent.units:,.0f} ({told})"),)
    if found is not None:
        k = int(schema["rows_per_unit"])
        weighted = release.plan.rule == "weight"
        whole, per = WHOLE in release.plan.constants, schema["unit"].get("per")
        # nobody has rows in more levels than there are
        every = per is not None and k >= release.plan.declared[per].steps
        left_out = bool(release.plan.kept) or k > 1
        flags = (*flags, "contributions_truncated") if left_out and not every and found.truncated else flags
        independent = Independent.of(release, found.units * k)
        if independent is not None and independent.units < _FEW_UNITS:
            flags = (*flags, "few_independent_units")
        words = found.words(k, weighted=weighted, whole=whole, per=per, every=every)
        facts = (*facts, (f"Units ({schema['unit']['column']}, noisy)", words))
    kept = {"kept": release.plan.kept} if getattr(result, "kept", None) == "" and release.plan.kept else {}
    return _with(result, flags=flags, facts=facts, **kept)


def _with(result: _Result, *, flags: tuple[str, ...], facts: tuple[tuple[str, str], ...], **more: Any) -> _Result:
    """The result with these flags and facts after its own, each once, and with other fields."""
    added: dict[str, tuple[Any, ...]] = {"flags": flags, "facts": facts}
    more |= {
        name: (*known, *new)
        for name, given in added.items()
        if (known := getattr(result, name, None)) is not None and (new := [one for one in given if one not in known])
    }
    return cast(_Result, replace(cast(Any, result), **more)) if more and is_dataclass(result) else result
