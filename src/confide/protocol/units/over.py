"""Maps and statistics over another one, which says all that they do not say themselves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from confide.protocol.statistic import RecordMap, Statistic

__all__ = ["MapOver", "StatisticOver"]


class MapOver(RecordMap):
    """Base of frozen dataclasses with a field `map`: a map of the same width and bounds."""

    map: RecordMap

    @property
    def width(self) -> int:
        return self.map.width

    @property
    def l1(self) -> int:
        return self.map.l1

    @property
    def l2_squared(self) -> int:
        return self.map.l2_squared


class StatisticOver(Statistic):
    """Base of frozen dataclasses with a field `statistic`: a statistic of the same shape and norm.

    Sensitivities are the larger of that under the relation and under add-remove, as a record that is replaced may also come or go.
    """

    statistic: Statistic

    @property
    def shape(self) -> tuple[int, ...]:
        return self.statistic.shape

    @property
    def norm(self) -> str:
        return self.statistic.norm

    def sensitivity_squared(self, relation: str) -> Fraction:
        return max(self.statistic.sensitivity_squared(one) for one in ("add-remove", relation))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return max(self.statistic.sensitivity_l1(one) for one in ("add-remove", relation))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """That of the statistic; by weight, of units of one row."""
        return self.statistic.moved_squared(own, rows)

    def zero(self) -> Any:
        return self.statistic.zero()

    def merge(self, a: Any, b: Any) -> Any:
        return self.statistic.merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        return self.statistic.value(state)
