"""Ends of intervals that are the declared bound alone, as noise may be all that lies beyond a quantile: the flag, and what would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf

from confide.aggregates.distributions.cumulative_counts import CumulativeCounts
from confide.results.pages.words import Flag

__all__ = ["DECLARED_BOUND", "open_ends"]

DECLARED_BOUND = Flag(
    "declared_bound",
    "an end of this interval is the declared bound alone: noise may be all that lies beyond the quantile, and the records did not move it",
)

# Ends that a reason names; of more it says how many.
_NAMED = 4


def open_ends(rows: Iterable[tuple[str, CumulativeCounts, float, Sequence[bool]]], budget: str) -> str:
    """Which ends are the declared bounds alone, and about how many records of their group, or how many times the budget, would give them.

    rows: the name of a quantile, what was read of its group, q, and whether its low and its high end are unbacked; budget: "epsilon", "mu".
    """
    ends, records, times = [], 0.0, 0.0
    for name, own, q, sides in rows:
        for side, there in zip(("low", "high"), sides, strict=True):
            if not there:
                continue
            ends.append(f"the {side} end of {name}")
            enough, more = own.backing(q, side == "high")
            records, times = max(records, enough), max(times, more)
    named = ", ".join(ends[:_NAMED]) + (f" and {len(ends) - _NAMED} more" if len(ends) > _NAMED else "")
    are = f"{named} {'is the declared bound' if len(ends) == 1 else 'are the declared bounds'} alone"
    more_of_it = f", or {times:.1f} times this {budget}," if times < inf else ""
    return f"{are}: noise may be all that lies beyond; about {ceil(records):,} records{more_of_it} would do"
