"""Located records by a bounded weight: least squares of a survey as least squares of records that are scaled.

A record at (v, r) that counts by omega = min(w, W)/W in [0, 1] counts as one at (sqrt(omega) v, sqrt(omega) r): its part of A is then
omega v v', that of b and of the scores omega v r, that of q omega r^2. Maps of located records state bounds that hold for ANY v and r,
since what they code is cut to its bound, so that each has the same sensitivity with weights as without; W may come from earlier noisy
numbers. A record without a weight counts as nothing. A weight is a function of the person's own record, by assumption (`schema.survey`).

LongScores and LongFeatures are `LimitedScores` and `LimitedFeatures` in any number of steps, for numbers that are R's to the eighth digit;
the meat of PSUs fixes how far one person moves it, and with that how finely she is coded.
Source: weighted least squares and its estimating equations (Binder 1983); the bounds are those of `score_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.aggregates.cells.weighted_cells import CappedWeight, places_of_weights
from confide.aggregates.column_codes import codes_of, columns_of
from confide.aggregates.lines.coordinates import Located, LocatedRows
from confide.aggregates.lines.rows import BITS, LongRows, round_within
from confide.aggregates.scores.score_rows import LimitedFeatures, LimitedScores
from confide.protocol.exact import digest
from confide.protocol.units.over import MapOver

__all__ = ["ByWeight", "LongFeatures", "LongScores"]

Array = NDArray[np.float64]


class _Long(LongRows):
    """A map of `longest` steps."""

    @property
    def stated(self) -> tuple[int, ...]:
        return (self.longest,)

    @property
    def _whole(self) -> float:
        """Steps in the bound, with room for rounding."""
        return self.longest - sqrt(self.width) / 2 - 1


@dataclass(frozen=True)
class LongFeatures(_Long, LimitedFeatures):
    """One record as sqrt(w) v in integer steps, w = min(1, cap/|v|^2): |m|^2 <= longest^2."""

    longest: int = 1 << BITS
    kind: ClassVar[str] = "long features"

    @property
    def steps(self) -> float:  # type: ignore[override]
        """Integer steps in one unit of v."""
        return self._whole / sqrt(self.cap)

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            return round_within(records.v * self._factor(records), self.longest**2)


@dataclass(frozen=True)
class LongScores(_Long, LimitedScores):
    """One record as limit(v r, R)/R in `longest` steps less room for rounding: |m|^2 <= longest^2."""

    longest: int = 1 << BITS
    kind: ClassVar[str] = "long scores"

    @property
    def steps(self) -> float:
        """Integer steps in one unit of a score."""
        return self._whole / self.limit

    def of(self, records: Located) -> Array:
        with np.errstate(all="ignore"):
            return round_within(records.v * self._factor(records, self._whole), self.longest**2)


@dataclass(frozen=True)
class ByWeight(MapOver):
    """A map of located records, each scaled by the root of its weight; weight: None for a design without."""

    map: LocatedRows
    weight: CappedWeight | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.map, self.weight)

    @cached_property
    def digest(self) -> str:
        return digest(["located, by weight", self.map.digest, None if self.weight is None else self.weight.digest])

    @property
    def cells(self) -> int:
        """Of a map to cells."""
        return int(self.map.cells)  # type: ignore[attr-defined]

    def of_length(self, longest: int) -> ByWeight:
        """The same with scores of so many steps (`LongScores`)."""
        assert isinstance(self.map, LongScores)
        return replace(self, map=replace(self.map, longest=longest))

    @property
    def longest(self) -> int:
        """The bound of a score, in steps (`LongScores`)."""
        assert isinstance(self.map, LongScores)
        return self.map.longest

    def __call__(self, codes: Array) -> Array:
        own = codes[: len(self.map.columns)]
        if self.weight is None:
            return self.map(own)
        omega, keep = places_of_weights(self.weight, codes_of(self.weight, self.columns, codes))
        records = self.map.located(own)
        root = np.sqrt(omega)
        if records.keep is not None:
            keep = records.keep if keep is None else keep & records.keep
        return self.map.of(Located(records.v * root, records.r * root, keep))
