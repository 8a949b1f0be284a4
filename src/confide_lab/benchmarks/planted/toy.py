"""A small method with a choice of faults: each is one line of its release or its plan."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any, ClassVar

import numpy as np

import confide as cf
from confide.core import Allowance, Branches, BudgetItem, Composed, Gram, Meter, Method, Plan, Total
from confide.sums import ColumnMoments

__all__ = ["LINE_SCHEMA", "SCHEMA", "ExactLine", "Toy"]

SCHEMA = cf.Schema({"v": cf.Numeric(0, 10)})
LINE_SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
_MANY = 41 << 20  # more than 40 complete records, in steps


class _Asks(Meter):
    """A meter that asks for noise of another scale than the plan's."""

    factor = Fraction(1)

    def _independent(self, spend: BudgetItem) -> Any:
        return super()._independent(replace(spend, scale=spend.scale * self.factor))


class _HalfNoise(_Asks):
    factor = Fraction(1, 4)


class _WrongOffDiagonal(Meter):
    """Symmetric noise with a quarter of the variance off the diagonal; half is right."""

    def _symmetric(self, spend: BudgetItem) -> Any:
        p = spend.shape[0]
        noise = np.zeros((p, p), dtype=object)
        noise[np.diag_indices(p)] = self._noise.grid_gaussian(spend.scale, p).tolist()
        above = np.triu_indices(p, 1)
        noise[above] = self._noise.grid_gaussian(spend.scale / 4, len(above[0])).tolist()
        noise.T[above] = noise[above]
        return noise


class _Transformed(Meter):
    """A meter that spoils the noise on its way: scaled down, cut off, or kept above zero."""

    how = "scaled"

    def _independent(self, spend: BudgetItem) -> Any:
        noise = super()._independent(spend)
        if self.how == "scaled":
            return np.array([int(v) * 97 // 100 for v in noise], dtype=object)
        least = 0 if self.how == "positive" else -int(spend.sensitivity)
        most = None if self.how == "positive" else int(spend.sensitivity)
        return np.array(
            [max(int(v), least) if most is None else min(max(int(v), least), most) for v in noise], dtype=object
        )


class _CutOff(_Transformed):
    how = "cut"


class _Positive(_Transformed):
    how = "positive"


class _SameNoise(Meter):
    """The second statistic gets the first one's noise."""

    kept: Any = None

    def _independent(self, spend: BudgetItem) -> Any:
        if self.kept is None:
            self.kept = super()._independent(spend)
        return self.kept


class _OwnSeed(Meter):
    """Noise from a generator of its own, with a fixed seed."""

    def _independent(self, spend: BudgetItem) -> Any:
        drawn = np.random.default_rng(1).normal(0, float(spend.scale) ** 0.5, int(np.prod(spend.shape)))
        return np.array([int(v) for v in drawn], dtype=object).reshape(spend.shape)


METERS: dict[str, type[Meter]] = {
    "half noise": _HalfNoise,
    "off-diagonal": _WrongOffDiagonal,
    "noise x 0.97": _Transformed,
    "noise cut off": _CutOff,
    "noise never negative": _Positive,
    "same noise twice": _SameNoise,
    "noise of a fixed seed": _OwnSeed,
}


@dataclass(frozen=True)
class _Understated(ColumnMoments):
    """The map with a bound that is half of the truth."""

    l2_squared: int = field(default=3 << 38, init=False)


@dataclass(frozen=True)
class _OneForgotten(ColumnMoments):
    """The map whose bound forgets its last number."""

    l2_squared: int = field(default=2 << 40, init=False)


@dataclass(frozen=True)
class _Unclipped(ColumnMoments):
    """The map that computes its clip and returns the rows of before."""

    def __call__(self, codes: Any) -> Any:
        rows = super().__call__(codes)
        place = codes[0] / (self.schema[self.column].steps - 1)
        np.clip(place, 0.0, 0.5)
        return rows * np.where(place > 0.5, 2.0, 1.0)


MAPS = {"sensitivity halved": _Understated, "one number forgotten": _OneForgotten, "clip discarded": _Unclipped}


@dataclass(frozen=True)
class Toy(Method):
    """Count, sum and sum of squares of one column, released once or twice, with at most one fault."""

    column: str = "v"
    fault: str = ""
    twice: bool = False
    gram: bool = False
    branches: bool = False

    name: ClassVar[str] = "toy"
    family: ClassVar[str] = "intervals"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = "Dong, Roth, Su 2022, Theorem 2"
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "none"
    needs: ClassVar[frozenset[str]] = frozenset()

    def plan(self, schema: cf.Schema, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        allowance = Allowance.of(privacy, self, schema)
        own = MAPS.get(self.fault, ColumnMoments)(schema, self.column)
        statistic: Any = Gram(own) if self.gram else Total(own, nonnegative=True)
        names = ("moments", "again") if self.twice or self.branches else ("moments",)
        share = Fraction(1, 2) if self.twice else Fraction(1)
        spends = tuple(allowance.spend(name, statistic, share) for name in names)
        event = Branches(spends) if self.branches else Composed(spends)
        return Plan.of(
            self,
            schema,
            allowance,
            event,
            dict.fromkeys(names, statistic),
            n=n,
            target=f"moments of {self.column}",
            intervals_for="-",
        )

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public: dict[str, Any] = {}
        meter.__class__ = METERS.get(self.fault, Meter)  # the gate's own, spoilt
        (total,) = source.aggregate(plan.statistic("moments"))
        self._misbehave(total, meter._noise, source, plan, public)
        first = "again" if self._branch(total) else "moments"
        noisy = meter.draw(first, total)
        if self.twice:
            meter.draw("again", total)
        public.setdefault("df", np.array([max(float(noisy.decode().ravel()[0]) / 2**20 - 1, 1.0)]))
        return public

    def _branch(self, total: Any) -> bool:
        return self.branches and self.fault == "branch" and total.ravel()[0] >= _MANY

    def _misbehave(self, total: Any, noise: Any, source: Any, plan: Plan, public: dict[str, Any]) -> None:
        count = int(total.ravel()[0])
        match self.fault:
            case "exact df":
                public["df"] = np.array([count / 2**20 - 1])
            case "error" if count >= _MANY:
                raise ValueError("too many records")
            case "log":
                logging.getLogger("toy").info("%d complete records", count >> 20)
            case "warning":
                warnings.warn(f"mean is {int(total.ravel()[1])}", stacklevel=1)
            case "print":
                print("many" if count >= _MANY else "few")
            case "extra draws":
                noise.grid_gaussian(Fraction(4), 1 + (count >> 20) % 5)
            case "extra pass" if count >= _MANY:
                source.aggregate(plan.statistic("moments"))
            case "size":
                public["rows"] = np.zeros(count >> 20)


@dataclass(frozen=True)
class ExactLine(cf.regression.SSP):
    """SSP whose second pass takes its residuals from the exact line; it publishes the noisy one."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        first = [name for name in plan.statistics if name != "meat"]
        totals = source.aggregate(*map(plan.statistic, first))
        noisy = [meter.draw(name, total) for name, total in zip(first, totals, strict=True)]
        layout = self._layout(source.schema)
        sd = sqrt(noisy[0].variance)
        (seen,) = layout.decoded(noisy[0].decode(), sd).each
        (true,) = layout.decoded(totals[0].astype(float), sd).each
        noise = float(plan.spend("meat").noise_sd or 0)
        line, limit = self._start(layout, seen, None, noise)
        exact, _ = self._start(layout, true, None, noise)
        (meat,) = source.aggregate(layout.meat(0, exact, None, limit))
        meter.draw("meat", meat)
        return {"theta": line, "limits": np.array([limit])}
