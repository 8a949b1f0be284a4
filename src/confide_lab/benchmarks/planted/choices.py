"""Planted faults of selection and of quantiles: parts that overlap, levels that forget an exchange, scores that are rounded down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import pandas as pd

import confide as cf
from confide.audit.replay.replay import replay
from confide.audit.verdict import Finding
from confide.core import Meter, Plan, Source, seal
from confide.methods.selection import draw
from confide.selection import Select
from confide.testing import contract as side_doors
from confide_lab.benchmarks.planted.kinds import Fault, bounded, contract, law, neighbors
from confide_lab.methods import AdaSSP
from confide_lab.methods.quantile import ranks
from confide_lab.methods.quantile.ranks import Quantile

__all__ = ["CHOICES"]

_CLASSES = cf.Schema({"kind": cf.Categorical(["a", "b"]), "x": cf.Numeric(-1, 1), "z": cf.Numeric(-1, 1)})
_FORMULA = "kind ~ x + z"

# selection ------------------------------------------------------------------------------------------------------------

_LINE = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
_ASKED = cf.ApproxDP(1.0, 1e-6)


def _select(kind: type[Select]) -> Select:
    return kind([AdaSSP("y ~ a", row_bound=bound) for bound in (1.0, 1.2, 1.4)], runs=6.0)


@dataclass(frozen=True)
class _ScoresAll(Select):
    """Candidates are scored on all records, those that they were trained on included."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        own = draw.split

        def whole(rows: Any, share: float, secret: bytes) -> Any:
            return own(rows, share, secret)[0], rows

        with patch.object(draw, "split", whole):
            return super().draw(source, plan, meter)


@dataclass(frozen=True)
class _WholeLevel(Select):
    """Candidates run at the level of a run, though a record may be exchanged for another one in training."""

    def _inner(self, i: int, schema: Any, mu: float, slack: float, relation: str) -> Plan:
        return super()._inner(i, schema, mu, slack, "add-remove")


def _parts(kind: type[Select]) -> Finding:
    """In how many parts a record is, at most: the rows of all parts that a release makes, over those that it reads."""
    found, worst = _select(kind), 0.0
    rows: list[Any] = []
    own = draw.Part

    class Noted(own):  # type: ignore[misc, valid-type]
        def __init__(self, schema: Any, columns: Any, given: Any) -> None:
            rows.append(given)
            super().__init__(schema, columns, given)

    plan = cf.plan(found, _LINE, _ASKED)
    for seed in range(4):
        rows.clear()
        with patch.object(draw, "Part", Noted):
            seal(found, cf.read(_LINE.sample(50, seed), _LINE), plan, cf.noise.SimulatedNoise(seed))
        tables = pd.Series([tuple(row) for part in rows for row in part.T.tolist()])
        worst = max(worst, float(tables.value_counts().max()))
    return bounded("parts that a record is in", 1.0, worst, "all rows of the parts", "add-remove")


def _exchanged(kind: type[Select]) -> Finding:
    """mu of a run for a record that is exchanged in training, over the level of a run: exact, on the worst neighbors."""
    found = _select(kind)
    plan = cf.plan(found, _LINE, replace(_ASKED, relation="substitute"), n=41)
    mu, company = float(plan.constants["base_mu"]), _LINE.sample(40, 1)
    one, other = (pd.concat([company, pd.DataFrame({"a": [1.0], "y": [y]})]) for y in (1.0, -1.0))
    method = found.methods[-1]
    inner = found._inner(len(found.methods) - 1, _LINE, mu, 0.0, "substitute")
    moved = replay(method, inner, cf.read(one, _LINE), cf.read(other, _LINE), seed=1).moved
    spent = sum((one.cost for one in moved.values()), Fraction(0))
    return bounded("mu of a run", 1.0, float(spent) ** 0.5 / mu, "exact difference", "substitute")


# quantiles ------------------------------------------------------------------------------------------------------------

_GRID = cf.Schema({"v": cf.Numeric(0, 1, steps=65)})


@dataclass(frozen=True)
class _ExactOffsets(Quantile):
    """Offsets follow from the exact count; the noisy one is drawn and not used."""

    name: ClassVar[str] = "planted_quantile"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (records,) = source.aggregate(plan.statistic("records"))
        exact, own = float(records[0]), Quantile._offsets
        with patch.object(Quantile, "_offsets", lambda method, count, planned: own(method, exact, planned)):
            return super().draw(source, plan, meter)


@dataclass(frozen=True)
class _Gaps(Quantile):
    """The base measure is the gaps between the records, as in the first descriptions of the method."""

    name: ClassVar[str] = "planted_quantile"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        (counts,) = source.aggregate(plan.statistic("ranks"))
        at = np.flatnonzero(counts)
        lengths = np.ones(len(counts), dtype=np.int64)
        lengths[at] += np.diff(at, append=len(counts))
        own = meter.choose
        with patch.object(meter, "choose", lambda name, scores: own(name, scores, lengths)):
            return super().draw(source, plan, meter)


@dataclass(frozen=True)
class _WholeRanks(Quantile):
    """Scores are divided by b and rounded down, and their sensitivity is divided by b too."""

    name: ClassVar[str] = "planted_quantile"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        own = ranks._sensitivity
        with patch.object(ranks, "_sensitivity", lambda q, relation: own(q, relation) / q.denominator):
            return super().plan(schema, privacy, n=n, public=public)

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        own = ranks.rank_scores
        with patch.object(ranks, "rank_scores", lambda counts, q, offset=0: own(counts, q, offset) // q.denominator):
            return super().draw(source, plan, meter)


# the list -------------------------------------------------------------------------------------------------------------

_ADDED = cf.PureDP(1.0, relation="add-remove")
_VALUES = pd.DataFrame({"v": [0.25, 0.5, 0.75]}), pd.DataFrame({"v": [0.25, 0.5]})

CHOICES: list[Fault] = [
    law(
        "scored on the records of training",
        "a record is in training and in validation, and pays once",
        lambda: _parts(_ScoresAll),
        lambda: _parts(Select),
        of="select",
        attack="rows of all parts, counted",
    ),
    law(
        "candidates at the whole level",
        "under substitute a record that is exchanged in training moves a candidate twice",
        lambda: _exchanged(_WholeLevel),
        lambda: _exchanged(Select),
        of="select",
        attack="record and replay of one run",
    ),
    contract(
        "offsets of the exact count",
        "how far an interval reaches follows from the exact number of records",
        side_doors.what_stands_beside_follows_from_what_leaves,
        _ExactOffsets("v"),
        Quantile("v"),
        _GRID,
        _ADDED,
    ),
    neighbors(
        "gaps as base measure",
        "the lengths of the candidates are the gaps between the records",
        _Gaps("v"),
        Quantile("v"),
        _GRID,
        _ADDED,
        _VALUES,
    ),
    neighbors(
        "scores rounded down",
        "scores in whole ranks move by one, their bound is max(a, b - a)/b",
        _WholeRanks("v", q=(0.25, 0.5)),
        Quantile("v", q=(0.25, 0.5)),
        _GRID,
        _ADDED,
        _VALUES,
    ),
]
