"""A third party's method in a few lines, and two that misbehave behind the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import ClassVar

import numpy as np

from confide.core import Allowance, Method, Plan, RecordMap, Total
from confide.core.exact import digest
from confide.forecast import Simulated
from confide.results import Estimates
from confide.schema import Schema
from confide.sources.simulated import SIMULATED_ROWS


@dataclass(frozen=True)
class CountAndSum(RecordMap):
    """(steps - 1, code) of a record, (0, 0) where it is missing: a count and a sum on one scale."""

    column: str
    steps: int
    width: ClassVar[int] = 2

    @property
    def columns(self):
        return (self.column,)

    @property
    def l1(self):
        return 2 * (self.steps - 1)

    @property
    def l2_squared(self):
        return 2 * (self.steps - 1) ** 2

    @property
    def digest(self):
        return digest(["count and sum", self.column, self.steps])

    def __call__(self, codes):
        known = codes[0] >= 0
        return np.stack([known * float(self.steps - 1), np.where(known, codes[0], 0.0)])


@dataclass(frozen=True)
class NoisyMean(Method):
    """The mean of a bounded column: two noisy sums; the interval takes the largest variance that the bounds allow."""

    column: str
    widen: float = 1.0

    name: ClassVar[str] = "stranger_mean"
    family: ClassVar[str] = "intervals"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = "tests"
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "the population mean of the clipped column"
    needs: ClassVar[frozenset[str]] = frozenset()

    def plan(self, schema, privacy, *, n=None, public=None):
        schema = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        total = Total(CountAndSum(self.column, schema[self.column].steps), nonnegative=True)
        allowance = Allowance.of(privacy, self, schema)
        event = allowance.spend("sums", total, Fraction(1))
        facts = {"target": f"mean of {self.column}", "intervals_for": "sampling and privacy noise"}
        return Plan.of(self, schema, allowance, event, {"sums": total}, n=n, **facts)

    def draw(self, source, plan, meter):
        (sums,) = source.aggregate(plan.statistic("sums"))
        meter.draw("sums", sums)
        return {}

    def infer(self, release, question=None):
        column = Schema.from_dict(release.plan.schema)[self.column]
        width = column.high - column.low
        (count, total), noise = release["sums"].decode() / (column.steps - 1), release["sums"].variance
        count = max(count, 1.0)
        share = total / count
        private = noise / (column.steps - 1) ** 2 * (1 + share**2) * (width / count) ** 2
        sampling = self.widen * (width / 2) ** 2 / count
        return Estimates.of(release, response=self.column, names=("mean",),
            estimates=[column.low + share * width], covariance=[[private + sampling]], noise_variance=[private], flags=(), )  # fmt: skip

    def worst_pairs(self):
        return ()


@dataclass(frozen=True)
class Raising(NoisyMean):
    """Fails behind the gate, with a text that must not come out."""

    name: ClassVar[str] = "stranger_raising"

    def draw(self, source, plan, meter):
        # what fails in the rehearsal is never charged, and what fails in the forecast is not planned
        if source.count() == SIMULATED_ROWS or isinstance(source, Simulated):
            return super().draw(source, plan, meter)
        raise ValueError("SENTINEL in the text of an exception")


@dataclass(frozen=True)
class Interrupted(NoisyMean):
    """The user presses Ctrl-C behind the gate."""

    name: ClassVar[str] = "stranger_interrupted"

    def draw(self, source, plan, meter):
        # what fails in the rehearsal is never charged, and what fails in the forecast is not planned
        if source.count() == SIMULATED_ROWS or isinstance(source, Simulated):
            return super().draw(source, plan, meter)
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Exiting(NoisyMean):
    """Ends the process behind the gate, past every `except Exception`."""

    name: ClassVar[str] = "stranger_exiting"

    def draw(self, source, plan, meter):
        # what fails in the rehearsal is never charged, and what fails in the forecast is not planned
        if source.count() == SIMULATED_ROWS or isinstance(source, Simulated):
            return super().draw(source, plan, meter)
        raise SystemExit("SENTINEL in the text of an exit")


@dataclass(frozen=True)
class Silent(NoisyMean):
    """A mechanism that gives no reply."""

    name: ClassVar[str] = "stranger_silent"

    def plan(self, schema, privacy, *, n=None, public=None):
        schema = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
        total = Total(CountAndSum(self.column, schema[self.column].steps), nonnegative=True)
        allowance = Allowance.of(privacy, self, schema)
        seen, rest = (allowance.spend(name, total, Fraction(1, 2)) for name in ("sums", "more"))
        facts = {"target": f"mean of {self.column}", "intervals_for": "nothing"}
        event = allowance.certify(seen, rest, failure=Fraction(0))
        return Plan.of(self, schema, allowance, event, {"sums": total, "more": total}, n=n, **facts)

    def draw(self, source, plan, meter):
        (sums,) = source.aggregate(plan.statistic("sums"))
        meter.draw("sums", sums)
        meter.decline()
        return {}

    def infer(self, release, question=None):
        none = np.full((1, 1), np.nan)
        return Estimates(
            method=self.name, response=self.column, names=("mean",), estimates=[np.nan], covariance=none, df=inf,
            noise_variance=[np.nan], status="declined", reason="the mechanism declined", flags=(),
            requested=release.plan.requested, guarantee=release.charged, target="mean", intervals_for="nothing",
            release_sha256=release.sha256,
        )  # fmt: skip


class Bare:
    """The least that a result must have: no alpha anywhere, and a NaN in its JSON."""

    release_sha256, status, flags, target, inference = "0" * 64, "valid", (), "mean", "nothing"
    guarantee, relation = None, "add-remove"

    def summary(self):
        return "mean [of x] = 1"

    def to_frame(self):
        raise NotImplementedError

    def to_json(self):
        return '{"mean": NaN, "sd": Infinity}'

    def plot(self):
        from matplotlib.figure import Figure

        return Figure()

    def report(self, path):
        path.write_text("<html></html>")
        return path

    def _repr_html_(self):
        return ""


@dataclass(frozen=True)
class BareMean(NoisyMean):
    """Its results are of the third party's own making."""

    name: ClassVar[str] = "stranger_bare"

    def infer(self, release, question=None):
        return Bare()


TOYS = (NoisyMean, Raising, Interrupted, Exiting, Silent, BareMean)
