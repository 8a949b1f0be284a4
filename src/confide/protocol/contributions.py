"""How many rows the units of a release have: a noisy histogram that each plan with an enforced unit pays with 1 % of its mu^2.

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

from confide.guarantees import GDP
from confide.protocol.allowance import UNIT_SHARE, Allowance
from confide.protocol.events import Event, Together, exact_cost
from confide.protocol.exact import digest
from confide.protocol.plan import Plan
from confide.protocol.release import Noisy, Release
from confide.protocol.statistic import Codes, RecordMap, Total
from confide.protocol.whose import UNIT_ROW, unit_flags

__all__ = ["CELLS", "NAME", "Contributions", "Counted", "counted", "noise_ratio", "shown", "with_contributions"]

_Result = TypeVar("_Result")

#: The spend's name.
NAME = "contributions"
#: Cells of row counts: 1, 2, 3 to 4, 5 to 8, ..., to 2^16, beyond which units are cut.
CELLS = 17
# The rows of a unit in each cell, where its units are spread evenly.
_ROWS = np.array([1.0, 2.0, *(0.75 * 2.0**cell + 0.5 for cell in range(2, CELLS))])
# What is above chance in all cells together (one of 4,000 lies above it by noise alone: a cell of 2^16 rows that noise fills outweighs all
# others), and a share of lost rows worth a flag.
_ABOVE, _NOTICEABLE, _ONE_SIDED = 3.5, 0.05, 1.645


@dataclass(frozen=True)
class _Cell:
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
    if cost.amount > Fraction(level.mu) ** 2 * (1 - UNIT_SHARE):
        return plan
    statistic = Contributions()
    spend = Allowance(plan.requested, level, 1).spend(NAME, statistic, UNIT_SHARE)
    parts: tuple[Event, ...] = plan.event.parts if isinstance(plan.event, Together) else (plan.event,)
    return replace(plan, event=Together((*parts, spend)), statistics={**plan.statistics, NAME: statistic})


@dataclass(frozen=True)
class Counted:
    """What a noisy histogram says: the number of units, the share of them with more than k rows, and the share of rows lost.

    Each with the standard deviation of its noise. Cells that do not stand above their noise count as empty in the shares of rows.
    """

    units: float
    units_sd: float
    above: float
    above_sd: float
    lost: float
    lost_sd: float

    @classmethod
    def of(cls, counts: NDArray[np.float64], sd: float, k: int) -> Counted:
        """counts: noisy units by cell; sd: of the noise of each."""
        units = max(float(counts.sum()), 1.0)
        more = k < _ROWS
        above = min(max(float(counts[more].sum()) / units, 0.0), 1.0)
        spread = sd * sqrt(float(more.sum()) * (1 - above) ** 2 + float((~more).sum()) * above**2) / units
        seen = np.where(counts > _ABOVE * sd, counts, 0.0)
        rows = max(float(seen @ _ROWS), 1.0)
        over = np.maximum(_ROWS - k, 0.0)
        lost = float(seen @ over) / rows
        slope = np.where(seen > 0, over - lost * _ROWS, 0.0)
        return cls(units, sd * sqrt(CELLS), above, spread, lost, sd * float(np.sqrt(slope @ slope)) / rows)

    @property
    def truncated(self) -> bool:
        """Whether more than 5 % of the rows are beyond what units may count, beyond the noise."""
        return self.lost - _ONE_SIDED * self.lost_sd > _NOTICEABLE

    def words(self, k: int) -> str:
        """In one line, for the head of a table."""
        rows = f"{k} row" if k == 1 else f"{k} rows"
        return (
            f"{self.units:,.0f} ± {self.units_sd:,.0f}; {self.above:.0%} ± {self.above_sd:.0%} have more than {rows}; "
            f"about {self.lost:.0%} of the rows do not count (noise ± {self.lost_sd:.1%}; units with many rows are seen from some "
            f"{_ABOVE * self.units_sd / sqrt(CELLS):,.0f} on)"
        )


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
    """The result with what its unit adds to its flags and facts, once."""
    schema, found = release.plan.schema, counted(release)
    flags: tuple[str, ...] = unit_flags(schema)
    facts: tuple[tuple[str, str], ...] = ()
    if found is not None:
        k = int(schema["rows_per_unit"])
        flags = (*flags, "rows_truncated") if k > 1 and found.truncated else flags
        facts = ((f"Units ({schema['unit']['column']}, noisy)", found.words(k)),)
    added: dict[str, tuple[Any, ...]] = {"flags": flags, "facts": facts}
    more = {
        name: (*known, *new)
        for name, given in added.items()
        if (known := getattr(result, name, None)) is not None and (new := [one for one in given if one not in known])
    }
    return cast(_Result, replace(cast(Any, result), **more)) if more and is_dataclass(result) else result
