"""What the cut of sums of clusters leaves out: ramps of lengths beyond it, which one person moves by little, and what they say.

With Z_i the sum of cluster i before it is cut to length G,

    T_k = sum_i min(max(|Z_i| - 2^k G, 0), 2^k G),    k = 0, ..., 4,

run over lengths from 1 to 32 G. Of one Z_i at most one ramp moves at a time, so that sum_k |T_k/2^k| moves by no more than |Z_i| does: a
person, whose scores are of length s, moves it by s/G of a cluster. A count of clusters beyond the cut is told by far fewer of them than
their squares would need. Source: derived here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.clusters.fewest import COUNTED
from confide.protocol import Noisy, Release

__all__ = ["RAMPS", "Beyond", "moved_ramps", "ramps"]

# Ramps of lengths beyond the cut, each twice as long as the one before; an upper bound of |Z|^2/G^2 - 1 by the parts of ramps that are run.
RAMPS = 5
_CHORDS = tuple(3.0 * 4.0**k for k in range(RAMPS))
# A ramp counts from so many sds of its noise on; a sum of squares is one from so many.
_RUN, _SEEN = 2.0, 3.0
# A variance that many times as large is told.
_TOLD = 1.05


@dataclass(frozen=True)
class Beyond:
    """What the cut of PSU sums left out, from a released meat. run: the sums of ramps, in PSUs; sd: of their noise; part: G^2 over the
    sum of squares that M holds, in all coordinates.

    >>> Beyond((4.0, 1.0, 0.0, 0.0, 0.0), 0.2, 1 / 60).factor
    1.4
    """

    run: tuple[float, ...]
    sd: float
    part: float

    @classmethod
    def of(cls, noisy: Noisy, ruler: NDArray[np.float64]) -> Beyond:
        """Of a released meat, and what was made public of its statistic, which says more where it counts clusters too."""
        found, sd = noisy.decode(), sqrt(noisy.variance)
        width = len(found) - RAMPS - (COUNTED if len(ruler) > 2 else 0)
        squares = max(float(np.trace(found[:width, :width])), _SEEN * sd * sqrt(width))
        return cls(
            tuple((np.diag(found)[width : width + RAMPS] / ruler[0]).tolist()),
            float(sd / ruler[0]),
            float(ruler[1] ** 2 / squares),
        )

    @classmethod
    def factor_of(cls, release: Release) -> float:
        """What the released meat of a line grows by: 1 of units."""
        ruler = release.public.get("meat_beyond")
        return 1.0 if ruler is None else cls.of(release["meat"], np.asarray(ruler, dtype=np.float64)).factor

    @property
    def seen(self) -> tuple[float, ...]:
        """The ramps that stand above noise; none is run by more PSUs than the one before."""
        found: list[float] = []
        for own in self.run:
            if own <= _RUN * self.sd:
                break
            found.append(min([own, *found[-1:]]))
        return tuple(found)

    @property
    def factor(self) -> float:
        """What M grows by: |Z|^2/G^2 - 1 is convex, so that its chord over each ramp is no smaller. Of the first ramp that noise hides,
        after one that is seen, as much counts as is there, and no more than a quarter of that one, as in a tail of finite variance.
        """
        seen = self.seen
        if seen and len(seen) < len(self.run):
            seen = (*seen, min(seen[-1] / 4, max(self.run[len(seen)], 0.0)))
        return 1.0 + self.part * sum(own * chord for own, chord in zip(seen, _CHORDS, strict=False))

    @property
    def whole(self) -> bool:
        """Whether the ramps are long enough for all that was seen."""
        return len(self.seen) < len(self.run)

    @property
    def words(self) -> str:
        """What it does to variances, for the line that says what PSUs are taken for; "" where that is next to nothing."""
        if self.factor < _TOLD:
            return ""
        return f", here by a variance {self.factor:.3g} times as large; a larger largest= or icc= in the design measures them instead"


def ramps(sums: Iterable[NDArray[np.int64]], cut: int) -> list[int]:
    """2^(RAMPS - 1 - k) T_k, T_k how far sums go beyond 2^k cut, by at most as much again, in whole steps."""
    found = [0] * RAMPS
    for total in sums:
        squared = sum(v * v for v in total.tolist())
        if squared > cut**2:
            length = isqrt(squared)
            for k in range(RAMPS):
                found[k] += min(max(length - (cut << k), 0), cut << k)
    return [total << (RAMPS - 1 - k) for k, total in enumerate(found)]


def moved_ramps(length: int) -> int:
    """How far all of them move, in total, where one length moves by so much: at most one ramp moves at a time. And what one counts that
    a cluster has run, where the cut is so long.
    """
    return length << (RAMPS - 1)
