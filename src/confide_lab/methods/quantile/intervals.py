"""Named estimates whose intervals have no standard error: order statistics, inverted tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from confide._helpers import later
from confide.errors import PlanError
from confide.results.base import BaseResult
from confide.results.pages.content import Column
from confide.results.pages.table import marked

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["Intervals"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Intervals(BaseResult):
    """Estimates with intervals at one level that was fixed in the plan.

    names (p,); estimates, low, high (p,), in the units of the data, an end of an interval infinite where there is none; level: of each
    interval; share (p,): the noise share of each, where it is known; rows_are: what the names are, for heads and axes. Further fields are
    those of every result (`confide.results.base`).
    """

    names: tuple[str, ...]
    estimates: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    level: float  # type: ignore[misc]
    share: Sequence[float] | None = None
    rows_are: str = ""  # type: ignore[misc]

    family: ClassVar[str] = "intervals"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("estimates", "low", "high"):
            values = np.array(getattr(self, field), dtype=np.float64)
            if values.shape != (len(self.names),):
                raise PlanError(f"{field} must hold one number for each of {len(self.names)} names, got {values.shape}")
            values.flags.writeable = False
            self._put(field, values)
        if self.share is not None and self.has_intervals:
            self._put("flags", marked(self.flags, self.names, self.share))

    @property
    def params(self) -> pd.Series[float]:
        """The estimates, indexed by name."""
        return pd.Series(np.array(self.estimates), index=list(self.names))

    def conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Intervals: columns 0 (low) and 1 (high). The level was fixed in the plan: `PlanError` for another alpha."""
        self._alpha(alpha)
        return pd.DataFrame({0: np.array(self.low), 1: np.array(self.high)}, index=list(self.names))

    @property
    def title(self) -> str:
        """The heading of every rendering."""
        return f"Quantiles of {self.response}, {self.level:.0%} intervals"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate, low, high; one row for each name."""
        return (
            Column("term", self.names, "name", head=self.rows_are),
            Column("estimate", self.estimates),
            Column("ci_low", self.low, "interval"),
            Column("ci_high", self.high, "interval"),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """The guarantee in words."""
        return (("In words", self.guarantee.describe()),)

    def more(self, alpha: float) -> dict[str, float]:
        """Entries of the JSON beyond the table."""
        return {"level": self.level}
