"""A paid count of responses that lay outside their bounds, for lines that weigh records: the share of the weighted count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import ClassVar

import numpy as np
from scipy import special

from confide.core import Noisy, Release
from confide.core.lost_values import ABOVE, BELOW, read_row
from confide.core.statistic import Codes
from confide.methods.regression.sums.linear_rows import LinearRows
from confide.sums.coding import BITS, round_within

# The share above which, with 95 % certainty, a flag is raised.
_TOLERATED = 0.005
_TWO_SIDED, _ONE_SIDED = float(special.ndtri(0.975)), float(special.ndtri(0.95))

UNCHECKED = "not checked (clipping_check=False)"


@dataclass(frozen=True)
class ClippedRows(LinearRows):
    """2^20 w for a complete record whose response k lay outside its bounds before clipping, 0 for any other.

    w is measured in the public box, like the moments'. So the share of the weighted count is the share of records that the regression
    is fitted to. The cap 1 + d makes it 1.

    edges: the response is derived and its bounds were given (`term_bounds`), so that a value at
    either bound was clipped to it.
    """

    outcome: int = 0
    edges: bool = False
    l1: int = field(default=1 << BITS, init=False)
    width: int = field(default=1, init=False)
    unit: ClassVar[int] = 1 << BITS

    @property
    def columns(self) -> tuple[str, ...]:
        response = (*self.design.terms, self.design.response)[self.features + self.outcome]
        return (*self.design.columns, *map(read_row, response.columns))

    @property
    def _unweighted(self) -> bool:
        """Whether w is 1 for every record: |z|^2 <= 1 + d in the public box, and rint(2^20 w) is 2^20 where floats miss 1 by digits."""
        return self.box is None and self.cap >= 1 + self.features

    @property
    def digest(self) -> str:
        return self._digest("clipped response", "clipped outcome", (self.outcome,), self.cap, after=(self.edges,))

    def __call__(self, codes: Codes) -> Codes:
        own = len(self.design.columns)
        clipped = np.isin(codes[own:], (BELOW, ABOVE)).any(axis=0)
        if self._unweighted and not self.edges:
            _, keep = self.design.codes(codes[:own])
            counted = clipped if keep is None else clipped & keep
            return np.asarray(counted, dtype=np.float64)[None, :] * float(self.unit)
        rows, weight = self._weighted(codes[:own])
        if self.edges:
            # the last grid point of a scaled response may miss 1 by a last digit
            clipped = clipped | (np.abs(rows[self.features + 1 + self.outcome]) >= 1.0 - 2.0**-40)
        with np.errstate(all="ignore"):
            weight *= float(self.unit)
            weight *= clipped
            return round_within(weight[None, :])


def clipped_share(noisy: Noisy, records: float, unit: int = 1) -> tuple[bool, str]:
    """Whether a noisy number of clipped values exceeds 0.5% of `records`, and the share with its 95% margin.

    unit: what one value adds to the count. A share whose margin is more than all records is none.
    """
    records = max(records, 1.0)
    share, error = float(noisy.decode()[0]) / unit / records, sqrt(noisy.variance) / unit / records
    seen = share - _ONE_SIDED * error > _TOLERATED
    if _TWO_SIDED * error > 1:
        return seen, "not known: too few records for its noise"
    share = min(max(share, 0.0), 1.0)
    most = min(ceil(1000 * (share + _TWO_SIDED * error) - 1e-9), 1000)
    return seen, f"{share:.1%} clipped (at most {most / 10:.1f}%)"


def clipped_responses(
    release: Release, columns: Iterable[str], records: float
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Flag and fact of the paid diagnostic: which share of the responses, made of these columns, lay outside their bounds."""
    if set(columns) <= set(release.ranges):
        # what is said of their ranges
        return (), ()
    if "clipping" not in release.statistics:
        return ("clipping_not_checked",), (("Clipped responses", UNCHECKED),)
    seen, text = clipped_share(release["clipping"], records, ClippedRows.unit)
    return ("values_clipped",) if seen else (), (("Clipped responses", text),)
