"""An integer function of exact sums as a statistic: what a DP test or a certified estimate is drawn from."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, sqrt
from typing import Any, ClassVar

from numpy.typing import NDArray

from confide.core import Beginning, Statistic, Total
from confide.sums.blocks.record_block import Collected


class Derived(Statistic):
    """Base of frozen dataclasses with a `map` whose value is a function `of` that of another statistic, which stands `behind` them."""

    norm: ClassVar[str] = "l2"

    map: Any

    @property
    def behind(self) -> Statistic:
        """What is added up over the records."""
        raise NotImplementedError

    def of(self, sums: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def zero(self) -> Any:
        return self.behind.zero()

    def update(self, state: Any, codes: Any) -> Any:
        return self.behind.update(state, codes)

    @property
    def begins(self) -> Beginning | None:
        """That of what stands behind."""
        return self.behind.begins

    def take(self, state: Any, begun: Any) -> Any:
        """`update`, from the beginning on."""
        return self.behind.take(state, begun)  # type: ignore[attr-defined]

    def merge(self, a: Any, b: Any) -> Any:
        return self.behind.merge(a, b)

    def value(self, state: Any) -> NDArray[Any]:
        return self.of(self.behind.value(state))


class FunctionOf(Derived):
    """Functions of exact sums: they say how far one record moves them (`moved`), and their value `of` the sums, so that one pass over the
    records serves several.
    """

    @property
    def behind(self) -> Statistic:
        """The additive statistic: the total, unless a subclass says otherwise."""
        return Total(self.map)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def moved(self) -> int:
        """Sensitivity in steps, in the Euclidean norm, wherever the proof holds."""
        raise NotImplementedError

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.moved) ** 2

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(ceil(self.moved * sqrt(self.shape[0])) + 1)


class OfRecords(Derived):
    """Functions `of` all rows of a map, (width, n), in their canonical order (`Collected`)."""

    @property
    def behind(self) -> Statistic:
        return Collected(self.map)
