"""The smallest method with a safety test: the mean of x among records above 1/2, released only where enough of them are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from confide.core import SAFETY_STEPS, Allowance, Meter, Method, Plan, RecordMap, Statistic, Total
from confide.errors import NoResult

FINE = 1 << 20


@dataclass(frozen=True)
class HighRows(RecordMap):
    """1 and the code of x, for records above 1/2."""

    steps: int
    columns: tuple[str, ...] = ("x",)
    width: int = field(default=2, init=False)

    @property
    def l1(self) -> int:
        return 1 + self.steps

    @property
    def l2_squared(self) -> int:
        return 1 + self.steps**2

    @property
    def digest(self) -> str:
        return f"high rows {self.steps}"

    def __call__(self, codes: Any) -> Any:
        high = codes[0] * 2 > self.steps
        return np.stack([high * 1.0, high * codes[0]])


@dataclass(frozen=True)
class OfSums(Statistic):
    """A function of the exact sums, as the protocol wants a statistic."""

    map: HighRows
    least: int
    shape: tuple[int, ...] = field(default=(1,), init=False)
    norm: str = field(default="l2", init=False)

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.moved)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.moved) ** 2

    def moved_squared(self, own: Any, rows: Any) -> Any:
        return np.full(rows.shape[1], self.moved**2, dtype=object)

    def zero(self) -> Any:
        return Total(self.map).zero()

    def update(self, state: Any, codes: Any) -> Any:
        return Total(self.map).update(state, codes)

    def merge(self, a: Any, b: Any) -> Any:
        return Total(self.map).merge(a, b)

    def value(self, state: Any) -> Any:
        count, total = Total(self.map).value(state)
        return np.array([self.of(int(count), int(total))], dtype=object)


@dataclass(frozen=True)
class Safety(OfSums):
    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, count: int, total: int) -> int:
        return SAFETY_STEPS * max(count - (self.least - 1), 0)


@dataclass(frozen=True)
class Mean(OfSums):
    """The mean over 1/least, in steps of 2^-20 of it: it moves by at most that where one side has `least` such records."""

    moved: ClassVar[int] = FINE + 2

    def of(self, count: int, total: int) -> int:
        return round(Fraction(total * self.least * FINE, max(count, 1) * self.map.steps))


@dataclass(frozen=True)
class HighMean(Method):
    least: int = 5

    name: ClassVar[str] = "high_mean"
    family: ClassVar[str] = "intervals"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = "a toy"
    relations: ClassVar[tuple[str, ...]] = ("substitute",)
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "none"
    needs: ClassVar[frozenset[str]] = frozenset({"fixed_n"})

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        allowance = Allowance.of(privacy, self, schema, failure=Fraction(1, 2))
        rows = HighRows(schema["x"].steps)
        safety, mean = Safety(rows, self.least), Mean(rows, self.least)
        test = allowance.test("safety", safety, Fraction(1, 10), allowance.spend("mean", mean, Fraction(9, 10)))
        facts = {"target": "mean of x among records above 1/2", "intervals_for": "nothing"}
        return Plan.of(self, schema, allowance, test, {"safety": safety, "mean": mean}, n=n, **facts)

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        safety, mean = source.aggregate(plan.statistic("safety"), plan.statistic("mean"))
        replied = meter.test("safety", safety)
        if replied:
            meter.draw("mean", mean)
        else:
            meter.decline()
        return {}

    def infer(self, release: Any, question: Any = None) -> Any:
        raise NoResult("nothing is read of what it releases")
