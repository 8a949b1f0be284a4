"""What the tables say of one sample: each number's interval and whether its flags stand by it, by kind and name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

import confide as cf
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.distribution import Distribution
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide.protocol import Question, seal
from confide_lab.benchmarks.tables_judge.plain import QUANTILES
from confide_lab.benchmarks.tables_judge.sets import Case

__all__ = ["UNSURE", "Answer", "Asked"]

#: Flags that say that an interval is not to be relied on. E and F speak of precision alone.
UNSURE = ("below_noise", "weak", "whole_range")


@dataclass(frozen=True)
class Answer:
    """Numbers of one kind: names, ends (k,), which ones the result stands by, the noise's share of the variance (NaN: not told)."""

    kind: str
    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    sure: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, eq=False)
class Asked:
    """The questions to one set at mu, planned once. widened: the factors by which bounds are too wide."""

    case: Case
    mu: float
    relation: str = "add-remove"
    widened: tuple[float, ...] = (1.0, 4.0, 20.0)

    @cached_property
    def _privacy(self) -> Any:
        return cf.GDP(self.mu, relation=self.relation)

    def _plan(self, method: Any, widened: float, n: int) -> Any:
        return cf.plan(method, self.case.schema(widened), self._privacy, n=n)

    @cached_property
    def _counted(self) -> tuple[Counts, Shares, Shares]:
        own = self.case
        return (
            Counts(own.crossing, covers="population"),
            Shares(own.crossing, covers="population"),
            Shares(own.crossing, within=own.recipe.group, covers="population"),
        )

    @cached_property
    def _means(self) -> Means:
        return Means(f"{' + '.join(self.case.measures)} ~ {self.case.recipe.group}", covers="population")

    @cached_property
    def _quantiles(self) -> tuple[Distribution, ...]:
        return tuple(
            Distribution(f"{column} ~ {self.case.recipe.group}", quantiles=QUANTILES)
            for column in self.case.measures[:2]
        )

    def answers(self, frame: pd.DataFrame, seed: int) -> Iterator[Answer]:
        """All answers to one sample, each release with noise of its own."""
        yield from self._of_counts(frame, seed)
        for widened in self.widened:
            yield from self._of_means(frame, widened, seed)
        for widened in self.widened[:2]:
            yield from self._of_ranks(frame, widened, seed)

    def _drawn(self, method: Any, frame: pd.DataFrame, widened: float, seed: int, place: int) -> Any:
        # under substitute the number of records is public, under add-remove it is no part of a release
        plan = self._planned(method, widened, len(frame) if self.relation == "substitute" else 0)
        return seal(method, cf.read(frame, self.case.schema(widened)), plan, SimulatedNoise((seed << 6) + place))

    def _planned(self, method: Any, widened: float, n: int) -> Any:
        kept = self.__dict__.setdefault("_plans", {})
        key = (method, widened, n)
        if key not in kept:
            kept[key] = self._plan(method, widened, n or 1_000)
        return kept[key]

    def tables(self, frame: pd.DataFrame, seed: int) -> Iterator[tuple[str, Any]]:
        """Kind and table of counts, shares and means, as the formula of widths takes them."""
        counts, shares, _ = self._counted
        release = self._drawn(counts, frame, 1.0, seed, 0)
        for kind, method in (("counts", counts), ("shares", shares)):
            yield kind, method.table(release, method.about(self.case.schema()), Question())
        for widened in self.widened:
            release = self._drawn(self._means, frame, widened, seed, 1 + int(widened))
            yield (
                f"means, bounds x{widened:g}",
                self._means.table(release, self._means.about(self.case.schema(widened)), Question()),
            )

    def _of_counts(self, frame: pd.DataFrame, seed: int) -> Iterator[Answer]:
        counts, shares, within = self._counted
        release = self._drawn(counts, frame, 1.0, seed, 0)
        # one release has all of them: the reader alone differs
        about = counts.about(self.case.schema())
        table = counts.table(release, about, Question())
        yield _table("counts", table)
        yield _table("counts, these records", counts.table(release, about, Question(covers="dataset")))
        yield _table("shares", shares.table(release, about, Question()))
        yield _table("shares, these records", shares.table(release, about, Question(covers="dataset")))
        inner = within.table(release, about, Question())
        yield _compared("differences of shares", inner.diff(self.case.recipe.group))
        yield _compared("relative risks", inner.ratio(self.case.recipe.group))

    def _of_means(self, frame: pd.DataFrame, widened: float, seed: int) -> Iterator[Answer]:
        method, words = self._means, f"bounds x{widened:g}"
        release = self._drawn(method, frame, widened, seed, 1 + int(widened))
        about = method.about(self.case.schema(widened))
        table = method.table(release, about, Question())
        yield _table(f"means, {words}", table)
        if widened == 1.0:
            yield _table("means, these records", method.table(release, about, Question(covers="dataset")))
        if widened == max(self.widened):
            return
        parts = []
        for column in self.case.measures:
            found = table.diff(self.case.recipe.group, of=column)
            parts.append(found.set_axis([f"{column}: {name}" for name in found.index]))
        yield _compared(f"differences of means, {words}", pd.concat(parts))

    def _of_ranks(self, frame: pd.DataFrame, widened: float, seed: int) -> Iterator[Answer]:
        parts, noises = [], []
        for place, method in enumerate(self._quantiles):
            release = self._drawn(method, frame, widened, seed, 32 + 8 * place + int(widened))
            result = method.infer(release)
            found = result.to_frame()
            parts.append(found.set_axis([f"{self.case.measures[place]} | {row}" for row in found.index]))
            noises += [_share_of_noise(group, q) for group in result.groups for q in QUANTILES]
        whole = pd.concat(parts)
        yield _answer(f"quantiles, bounds x{widened:g}", tuple(whole.index), whole, np.array(noises))


def _share_of_noise(group: Any, q: float) -> float:
    """Of the variance of the number of records up to a quantile."""
    noise = group.unit * float(group.strategy.centred(q).max())
    return float(noise / (noise + max(group.size, 0.0) * q * (1 - q)))


def _table(kind: str, table: Any) -> Answer:
    frame = table.to_frame()
    return _answer(kind, table.names, frame, frame["privacy_share"].to_numpy())


def _compared(kind: str, frame: pd.DataFrame) -> Answer:
    return _answer(kind, tuple(frame.index), frame, np.full(len(frame), np.nan))


def _answer(kind: str, names: tuple[str, ...], frame: pd.DataFrame, noise: np.ndarray) -> Answer:
    unsure = np.array([any(word in UNSURE for word in text.split()) for text in frame["flag"]], dtype=bool)
    low, high = frame["low"].to_numpy(dtype=float), frame["high"].to_numpy(dtype=float)
    return Answer(kind, names, low, high, ~unsure & np.isfinite(low), noise)
