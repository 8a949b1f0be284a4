"""Levels of a categorical column whose noisy count is nothing, in the words of a table's reason. Public: from a release alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist

__all__ = ["LevelCount", "level_legend", "level_remarks"]

_REACH = NormalDist().inv_cdf(0.975)
# of a Laplace number in sds: P(|Z| > s ln 20) = 1/20, and its sd is s sqrt(2)
_LAPLACE = log(20) / sqrt(2)
# levels that a reason names one by one; a column may have thousands
_LISTED = 6


@dataclass(frozen=True)
class LevelCount:
    """A declared level of a column, its noisy count and the sd of that noise; laplace: whether the noise is Laplace's, not Gaussian.

    >>> LevelCount("region", "west", 3.2, 6.1).seen, LevelCount("region", "west", 30.0, 6.1).seen
    (False, True)
    """

    column: str
    level: str
    count: float
    sd: float
    laplace: bool = False

    @property
    def margin(self) -> float:
        """Half of the 95 % interval of the count, from its noise (of a sum of Laplace numbers: at least that)."""
        return (_LAPLACE if self.laplace else _REACH) * self.sd

    @property
    def seen(self) -> bool:
        """Whether the count stands above its noise."""
        return self.count > self.margin


def level_remarks(counts: Iterable[LevelCount], counted: str = "noisy count") -> str:
    """What follows in a reason for these levels, "" where there are none: each is named with its noisy count.

    >>> level_remarks([LevelCount("region", "west", 3.2, 6.1)])
    "; level 'west' of region has a noisy count of 3 ± 12: nothing can be told of it"
    """
    given = sorted(counts, key=lambda one: one.seen)  # stable: those of which nothing can be told come first
    parts = [
        f"level {one.level!r} of {one.column} has a {counted} of {round(one.count):,} ± {one.margin:,.0f}"
        + ("" if one.seen else ": nothing can be told of it")
        for one in given[:_LISTED]
    ]
    rest = given[_LISTED:]
    unseen = sum(not one.seen for one in rest)
    parts += [f"of {unseen} more levels nothing can be told"] if unseen else []
    parts += [f"{len(rest) - unseen} more levels are as small"] if len(rest) > unseen else []
    return "".join(f"; {part}" for part in parts)


def level_legend(remarks: str) -> tuple[tuple[str, str], ...]:
    """The same words below a table whose status gives no reason; nothing for none."""
    return (("Levels", remarks.removeprefix("; ")),) if remarks else ()
