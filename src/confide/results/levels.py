"""Levels of a categorical column whose noisy count is nothing, in the words of a table's reason. Public: from a release alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

__all__ = ["LevelCount", "level_remarks"]

_REACH = NormalDist().inv_cdf(0.975)
# levels that a reason names one by one; a column may have thousands
_LISTED = 6


@dataclass(frozen=True)
class LevelCount:
    """A declared level of a column, its noisy count and the sd of that noise.

    >>> LevelCount("region", "west", 3.2, 6.1).seen, LevelCount("region", "west", 30.0, 6.1).seen
    (False, True)
    """

    column: str
    level: str
    count: float
    sd: float

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the count, from its noise."""
        return _REACH * self.sd

    @property
    def seen(self) -> bool:
        """Whether the count stands above its noise."""
        return self.count > self.margin


def level_remarks(counts: Iterable[LevelCount], counted: str = "noisy count") -> str:
    """What follows in a reason for these levels, "" where there are none: each is named with its noisy count.

    >>> level_remarks([LevelCount("region", "west", 3.2, 6.1)])
    "; level 'west' of region has a noisy count of 3 ± 12: nothing can be told of it"
    """
    given = list(counts)
    parts = [
        f"level {one.level!r} of {one.column} has a {counted} of {round(one.count):,} ± {one.margin:,.0f}"
        + ("" if one.seen else ": nothing can be told of it")
        for one in given[:_LISTED]
    ]
    more = len(given) - _LISTED
    return "".join(f"; {part}" for part in [*parts, *([f"and so have {more} more levels"] if more > 0 else [])])
