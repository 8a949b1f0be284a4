"""The m-th smallest of n values, with the exact distance to data on which it is sensitive.

Values are clipped to [low, high]; x_(1) <= ... <= x_(n), x_(i) = low for i < 1 and high for i > n. alpha is proposed, and

    LS_k = max over 0 <= t <= k + 1 of x_(m+t) - x_(m+t-k-1),     gamma = min{k >= 0 : LS_k > alpha}, n + 1 if there is none.

Proof. Replacing k + 1 records moves the m-th value at most to places between x_(m-k-1) and x_(m+k+1), and of two data sets k and k + 1
replacements away, one replacement apart, the one lies at x_(m+t) at most and the other at x_(m+t-k-1) at least for some t: LS_k is the
largest move of the m-th value by one record, over all data sets k replacements away. gamma is therefore the number of replacements to the
nearest data set on which one record moves the value by more than alpha, which is 1-Lipschitz (C1); gamma > 0 says that no record of X
moves it by more (C2). An integer, so that no rounding enters: values are compared as they are, and alpha is reached up to one rounding of
a difference.

Compare with `cf.tables.quantiles` before taking this: it needs no test, no delta and no proposal.

Source: Nissim, Raskhodnikova, Smith 2007 (the local sensitivities of a median); Dwork, Lei 2009 (distance to instability).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import SafetyBound

__all__ = ["OrderStatistic"]


@dataclass(frozen=True)
class OrderStatistic(SafetyBound):
    """The m-th smallest value of one column, m from 1, within [low, high]; alpha: the proposed bound on its move.

    >>> bound = OrderStatistic(50, 0.0, 1.0, alpha=0.05)
    >>> x = np.arange(99)[:, None] / 98
    >>> bound.gamma(bound.prepare(x)), float(bound.estimate(bound.prepare(x))[0])
    (4, 0.5)
    """

    m: int
    low: float
    high: float
    alpha: float
    dim: int = field(default=1, init=False)

    name: ClassVar[str] = "OrderStatistic"

    def __post_init__(self) -> None:
        if not is_whole(self.m, 1):
            raise PlanError(f"m must be a whole number of at least 1, got {self.m!r}; the smallest value is m = 1")
        if not -inf < self.low < self.high < inf or not 0 < self.alpha < inf:
            raise PlanError(
                f"low must be below high and alpha above 0, all finite, got {self.low!r}, {self.high!r}, {self.alpha!r}"
            )

        if max(abs(self.low), abs(self.high)) > 2.0**32 * self.alpha:
            raise PlanError(
                f"low = {self.low:g} and high = {self.high:g} lie more than 2^32 alphas from 0, where released numbers end; measure "
                "the column from a public point nearer to it"
            )

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"x_({self.m})",)

    def prepare(self, data: Any) -> Array:
        values = np.nan_to_num(np.asarray(data, dtype=np.float64).reshape(len(data), -1)[:, 0], nan=self.low)
        return np.clip(values, self.low, self.high)

    def gamma(self, prepared: Array) -> int:
        ordered = np.sort(prepared)
        n = len(ordered)
        # low for places below 1, high beyond n; 2 n + m of them are enough for k up to n
        whole = np.concatenate([np.full(n + 2, self.low), ordered, np.full(n + 2 + self.m, self.high)])
        middle = n + 1 + self.m  # the place of x_(m)
        below, above = 0, n + 1
        while below < above:  # LS_k grows with k: its first k above alpha, by halving
            k = (below + above) // 2
            if self._moves(whole, middle, k):
                above = k
            else:
                below = k + 1
        return below

    def _moves(self, whole: Array, middle: int, k: int) -> bool:
        high = whole[middle : middle + k + 2]
        low = whole[middle - k - 1 : middle + 1]
        return bool((high - low > self.alpha).any())

    def estimate(self, prepared: Array) -> Array:
        if self.m > len(prepared):
            return np.array([self.high])
        return np.partition(prepared, self.m - 1)[self.m - 1 : self.m]
