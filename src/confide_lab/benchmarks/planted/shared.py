"""Planted faults of the shared release: each a small slip in a proof of SSP's several responses, or in its re-centring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide.core import Branches, BudgetItem, Composed, Meter, Plan
from confide.core.events import Event
from confide.methods.regression.ssp.method import SSP
from confide.methods.regression.sums.linear_rows import CELLS, BlockGram, RangeCells
from confide.schema import Numeric, Schema
from confide_lab.benchmarks.planted.kinds import method

__all__ = ["SHARED"]

_TWO = Schema({"a": Numeric(0, 1), "y1": Numeric(0, 1), "y2": Numeric(0, 1)})
_PAIR = Schema({"a": Numeric(0, 1), "b": Numeric(0, 1), "y": Numeric(0, 1)})


def _cheaper(event: Event, name: str, less: Fraction) -> Event:
    """The tree with the noise and the stated sensitivity of one spend divided by `less`, so that its cost looks the same."""
    match event:
        case BudgetItem() if event.name == name:
            return replace(event, sensitivity=event.sensitivity / less, scale=event.scale / less**2)
        case Composed(parts):
            return Composed(tuple(_cheaper(part, name, less) for part in parts))
        case Branches(branches):
            return Branches(tuple(_cheaper(branch, name, less) for branch in branches))
    return event


@dataclass(frozen=True)
class _OneOutcome(BlockGram):
    """The moments of several responses with the sensitivity of one."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return BlockGram(self.map, self.blocks).sensitivity_squared(relation)


@dataclass(frozen=True)
class _TwoCells(RangeCells):
    """Histograms whose cells are closed at both ends: a record of the last half of a cell also counts in the next one."""

    def update(self, state: Any, codes: Any) -> Any:
        super().update(state, codes)
        for row, cells in zip(state, self.map(codes), strict=True):
            row += np.bincount(np.minimum(cells.astype(np.int64) + 1, CELLS) * (cells > 0), minlength=CELLS + 1)[1:]
        return state


@dataclass(frozen=True)
class _Always(SSP):
    """SSP that re-centres however few records there are: an audit's data sets are small."""

    @staticmethod
    def _enough(*_: Any) -> bool:
        return True


@dataclass(frozen=True)
class _Wrong(_Always):
    """SSP with one statistic replaced by a wrong one, and noise for the sensitivity that this states."""

    fault: str = "outcomes"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        made = super().plan(schema, privacy, n=n, public=public)
        if self.fault == "ranges":
            wrong: Any = _TwoCells(made.statistics["ranges"].map)  # type: ignore[arg-type]
            return replace(made, statistics={**made.statistics, "ranges": wrong})
        right = made.statistics["moments"]
        assert isinstance(right, BlockGram)
        wrong = _OneOutcome(right.map, right.blocks, right.responses)
        relation = made.relation
        # a hair less than the ratio, so that rounding does not make it a smaller statement than the wrong one
        less = Fraction((1 - 1e-12) * sqrt(right.sensitivity_squared(relation) / wrong.sensitivity_squared(relation)))
        event = _cheaper(made.event, "moments", less)
        return replace(made, event=event, statistics={**made.statistics, "moments": wrong})


@dataclass(frozen=True)
class _ExactBox(_Always):
    """The box that is published has the exact means of the histograms; all else is drawn as it should."""

    def draw(self, source: Any, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        (cells,) = source.aggregate(plan.statistic("ranges"))
        counts = np.array(cells, dtype=float)
        middles = (np.arange(counts.shape[1]) + 0.5) / counts.shape[1]
        total = np.maximum(counts.sum(axis=1), 1.0)
        mean = counts @ middles / total
        return {**public, "box": np.array([mean, np.full(len(mean), 0.25)])}


_CLASSIC: dict[str, Any] = {"cov": "classical", "clipping_check": False}

SHARED = [
    method(
        "responses charged as one",
        "two responses share a Gram matrix, the noise is that of one",
        _Wrong("y1 + y2 ~ a", recenter=False, **_CLASSIC),
        SSP("y1 + y2 ~ a", recenter=False, **_CLASSIC),
        _TWO,
    ),
    method(
        "record in two cells of a range",
        "cells overlap, so that a record counts in two, and the noise is for one",
        _Wrong("y ~ a + b", recenter="auto", fault="ranges", **_CLASSIC),
        _Always("y ~ a + b", recenter="auto", **_CLASSIC),
        _PAIR,
    ),
    method(
        "box from the exact histograms",
        "the box that is published is that of the exact means",
        _ExactBox("y ~ a + b", recenter="auto", **_CLASSIC),
        _Always("y ~ a + b", recenter="auto", **_CLASSIC),
        _PAIR,
    ),
]
