"""Shares of the levels of a column that went through randomised response: corrected counts, with intervals that hold at any size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from confide.errors import PlanError, ReleaseError
from confide.local.estimates import ProtectedEstimates, stated
from confide.local.protection import Told
from confide.local.table import read_protected
from confide.results.base import Column
from confide.results.estimates import check_alpha

__all__ = ["ProtectedShares", "shares"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ProtectedShares(ProtectedEstimates):
    """Shares of levels. told: how often each level was told, of how many rows; keep: the probability of a true answer; k levels.

    A level of share p is told with probability q = keep p + (1 - keep) / k, and the estimate is (told / n - (1 - keep) / k) / keep:
    unbiased, so that it may lie below 0. The interval is that of Clopper and Pearson for q, at these two ends, cut to (0, 1).
    """

    told: tuple[int, ...] = ()
    keep: float = 1.0

    family = "shares of protected records"
    rows_are = "level"

    @property
    def title(self) -> str:
        return f"Shares of protected records: {self.response}"

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha for each share by itself: columns 0 (low) and 1 (high)."""
        half = check_alpha(alpha) / 2
        seen, n = np.array(self.told, dtype=np.float64), sum(self.told)
        low = np.where(seen > 0, beta.ppf(half, seen, n - seen + 1), 0.0)
        high = np.where(seen < n, beta.ppf(1 - half, seen + 1, n - seen), 1.0)
        other = (1 - self.keep) / len(self.told)
        ends = np.clip((np.stack([low, high], axis=1) - other) / self.keep, 0, 1)
        return pd.DataFrame(ends, index=list(self.names))

    def columns(self, alpha: float) -> tuple[Column, ...]:
        # whether a share is zero is no question that a normal test answers
        return tuple(one for one in super().columns(alpha) if one.name not in ("t", "p"))


def shares(data: Any, column: str) -> ProtectedShares:
    """The population's shares of the levels of a column that was protected by randomised response, with intervals.

    data: as `cf.local.fit`. Shares add up to 1. Intervals cover each share by itself, at every size and for the rarest level; no normal
    approximation. Raises `PlanError` and `ReleaseError`. Source: Warner 1965; Clopper, Pearson 1934.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"], on_missing="f")})
    >>> place = Path(tempfile.mkdtemp()) / "protected.parquet"
    >>> made = cf.local.protect(schema.sample(2_000, seed=1), schema, place, levels={"sex": 1.0}, ledger=None)
    >>> found = cf.local.shares(place, "sex")
    >>> round(float(found.params.sum()), 9), found.status
    (1.0, 'ok')
    """
    frame, told, digest = read_protected(data)
    if column not in told.levels:
        known = ", ".join(told.levels) or "no such column"
        raise PlanError(f"{column!r} did not go through randomised response; the table has: {known}")
    one: Told = told.levels[column]
    counts = frame[column].value_counts()
    seen = np.array([int(counts.get(level, 0)) for level in one.levels])
    n, keep = int(seen.sum()), float(one.keep)
    if n < len(frame):
        raise ReleaseError(
            f"the table has cells of {column!r} that are none of its levels; ask for it as it was protected"
        )
    q = seen / n if n else np.full(len(seen), nan)
    covariance = (np.diag(q) - np.outer(q, q)) / max(n, 1) / keep**2
    found = (q - (1 - keep) / len(one.levels)) / keep
    alone = np.clip(found, 0.0, 1.0)
    # the level alone changes: that of the other columns stands in the facts
    statement = replace(told, columns={}, levels={column: one}, zeta=0.0).guarantee("attribute")
    return ProtectedShares(
        method="local shares",
        response=column,
        names=one.levels,
        estimates=found,
        covariance=covariance,
        # rows that told the truth would have given the variance of a share
        noise_variance=np.maximum(np.diag(covariance) - alone * (1 - alone) / max(n, 1), 0.0),
        status="ok" if n else "weak",
        reason="" if n else "the table has no rows",
        target=f"the population's shares of the levels of {column}",
        covers="sampling and the randomised response, exactly",
        told=tuple(int(count) for count in seen),
        keep=keep,
        **stated(told, digest, n, statement),
    )
