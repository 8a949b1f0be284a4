"""Faults of the least-squares line: what its draws read beside the meter, and those of its maps (`planted_scores`).

What a draw reads is shown by record and replay: on neighbors, and where it decides by a threshold on data sets that are far apart, since
whatever follows one transcript must be the same for any records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide import engine
from confide.audit.replay.replay import replay
from confide.audit.verdict import Audit
from confide.core import Allowance, Composed, Event, Gram, Meter, Plan, Source, Statistic, Total
from confide.core.exact import digest
from confide.errors import PlanError
from confide.methods.regression.evidence.sparse_levels import CellCounts, SparseLevels
from confide.methods.regression.factors.draw import FactorMeans
from confide.methods.regression.least_squares.draw import RoundState, ScoreStatistics, ScoreWeights, _Draw
from confide.methods.regression.least_squares.rounds import LeastSquaresRounds
from confide.methods.regression.least_squares.sums import Limits, Maxima
from confide.methods.regression.sums.linear_rows import Present
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores, SizeIndices
from confide.methods.regression.sums.whitened_rows import Frame
from confide.regression import SSP, LeastSquares
from confide.schema import Schema
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import Box, Codes
from confide_lab.benchmarks.planted.kinds import Fault, bounded, neighbors
from confide_lab.benchmarks.planted.scores import SCORE_FAULTS

__all__ = ["LEAST_SQUARES", "FaultyLine", "FaultySharing", "Peeking", "unlike"]

_LINE = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
_TWO = cf.Schema({"a": cf.Numeric(0, 1), "z": cf.Integer(0, 1)})
_LEVELS = cf.Schema(
    {"f": cf.Categorical(["p", "q", "r"]), "g": cf.Categorical(["s", "t", "u", "v"]), "y": cf.Numeric(0, 1, steps=1025)}
)
# at this level a dozen records are enough for the long branch
_ADD = cf.GDP(30.0, relation="add-remove")


# what a draw is handed -------------------------------------------------------------------------------------------------


class Peeking:
    """A meter that draws and pays as planned, but hands the exact numbers of some statistics back."""

    def __init__(self, meter: Meter, names: tuple[str, ...]) -> None:
        self._meter, self._names, self._exact = meter, names, dict[str, Any]()

    def draw(self, name: str, integers: NDArray[Any]) -> Any:
        noisy = self._meter.draw(name, integers)
        fine = int(1 / noisy.step)
        whole = np.array([int(v) * fine for v in integers.ravel()], dtype=object).reshape(noisy.shape)
        self._exact[name] = replace(noisy, values=whole) if name in self._names else noisy
        return self._exact[name]

    def drawn(self, name: str) -> Any:
        return self._exact[name]


#: Statistics that are read before their noise, by fault.
_PEEKED = {
    "exact histogram of scores": ("tail",),
    "exact histogram of lengths": ("leverage",),
    "exact metric": ("round 1", "short round 1"),
    "exact fit": ("gram", "short gram", "cross", "short cross"),
    "exact branch": ("count",),
    "exact tables": ("sums",),
}


@dataclass(frozen=True)
class FaultyLine(LeastSquares):
    """LeastSquares with one fault in what it draws, or none."""

    fault: str = ""

    def about(self, schema: Any) -> Any:
        path = super().about(schema)
        if isinstance(path, LeastSquaresRounds):
            return _Line(path.schema, path.design, path.limit, self.fault)
        assert isinstance(path, FactorMeans)
        return _Means(path.label, path.schema, path.design, path.levels, self.fault)


@dataclass(frozen=True)
class _Line(LeastSquaresRounds):
    fault: str = ""

    @property
    def _sums(self) -> ScoreStatistics:
        return _Sums(self.design, self.limit, self.fault)


@dataclass(frozen=True)
class _Sums(ScoreStatistics):
    fault: str = ""

    def plan(self, allowance: Allowance) -> tuple[Event, dict[str, Statistic]]:
        if self.fault == "one row":
            allowance = replace(allowance, rows_per_unit=1)
        event, statistics = super().plan(allowance)
        if self.fault == "overspent":
            assert isinstance(event, Composed)
            dear = allowance.spend("meat", statistics["meat"], Fraction(9, 100))
            event = Composed(tuple(dear if getattr(one, "name", "") == "meat" else one for one in event.parts))
        return event, statistics

    def _statistics(self, relation: str) -> dict[str, Statistic]:
        made = super()._statistics(relation)
        if self.fault == "unpaid histogram":
            del made["leverage"]
        return made

    def draw(self, source: Source, plan: Plan, meter: Meter) -> dict[str, NDArray[Any]]:
        peeking: Any = Peeking(meter, _PEEKED.get(self.fault, ()))
        return _Run(self, source, plan, peeking, ScoreWeights()).run()


@dataclass(frozen=True, eq=False)
class _Run(_Draw):
    """A draw with the fault of its sums."""

    of: _Sums

    def _round(self, name: str, frame: Frame, cap: float, before: CellCounts | None = None) -> RoundState:
        found = super()._round(name, frame, cap, before)
        return replace(found, sigma=found.sigma * (1 + self._count() / 1e6)) if self._is("exact count") else found

    def _limits(self, standing: RoundState, frame: Frame, maxima: Maxima, branch: str) -> Limits:
        if self._is("maxima of the records"):
            maxima = replace(maxima, score=sqrt(self._square(LimitedScores(self.of.design).at(frame, 1e3))))
        if self._is("unpaid histogram"):
            whole = replace(self.of, limit="none")
            limits = _Draw(whole, self.source, self.plan, self.meter, self.weighing)._limits(
                standing, frame, maxima, branch
            )
            edges = tuple(sqrt(standing.metric.size) * k / 4 for k in range(1, 9))
            (cells,) = self.source.aggregate(Histogram(SizeIndices(self.of.design, scores=False).at(frame, edges)))
            return replace(limits, kappa=float(cells[4:].sum()) / 1e6)
        if self._is("exact edges"):
            standing = replace(standing, count=1.0 + self._count())
        limits = super()._limits(standing, frame, maxima, branch)
        if self._is("exact squares"):
            return replace(limits, cut=self._square(LimitedScores(self.of.design).at(frame, 1e3)))
        if self._is("exact rare"):
            (rare,) = self.source.aggregate(Total(_Ones(self.of.design), nonnegative=True))
            return replace(limits, score=limits.score * (2.0 if rare[0] < 6 else 1.0))
        return limits

    def _three(self, frame: Frame, limits: Limits, branch: str) -> Any:
        if self._is("exact leverages"):
            limits = replace(limits, leverage=1 + self._square(LimitedFeatures(self.of.design).at(frame, 1e3)))
        return super()._three(frame, limits, branch)

    def _sums(self, standing: RoundState, branch: str) -> dict[str, NDArray[Any]]:
        frame = Frame.of(Box.of(self.of.design), standing.metric.matrix.T, standing.theta, 1.0)
        if self._is("exact levels") and self._count() % 2:
            layout = self.of.layout
            cells = tuple(layout.cells)[-1:]
            left = SparseLevels(cells, *np.ones((3, 1)))
            metric = layout.metric(standing.moments, standing.least, cells)
            standing = replace(standing, left=left, metric=metric)
        if self._is("another pass") and self._count() % 2:
            self._count()
        if self._is("gives up"):
            (gram,) = self.source.aggregate(Gram(LimitedFeatures(self.of.design).at(frame, 1e3)))
            if np.linalg.matrix_rank(gram.astype(float)) < len(gram):
                raise np.linalg.LinAlgError("Singular matrix")
        return super()._sums(standing, branch)

    def _is(self, fault: str) -> bool:
        return self.of.fault == fault

    def _count(self) -> int:
        (count,) = self.source.aggregate(Total(Present(self.of.design), nonnegative=True))
        return int(count[0])

    def _square(self, rows: LimitedFeatures | LimitedScores) -> float:
        """sum |m|^2 in the map's own units, exactly."""
        (gram,) = self.source.aggregate(Gram(rows))
        return float(np.trace(gram)) / float(rows.steps) ** 2


@dataclass(frozen=True)
class _Ones(Present):
    """1 for a record whose response has its larger value."""

    @property
    def digest(self) -> str:
        return digest(["ones", self.design.to_dict()])

    def __call__(self, codes: Codes) -> Codes:
        terms, _ = self.design.codes(codes)
        return np.asarray(super().__call__(codes) * (terms[-1:] > 0))


@dataclass(frozen=True)
class _Means(FactorMeans):
    fault: str = ""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        peeking: Any = Peeking(meter, {"exact tails": ("tail",)}.get(self.fault, _PEEKED.get(self.fault, ())))
        public = dict(super().draw(source, plan, peeking))
        if self.fault == "empty levels":
            (sums,) = source.aggregate(plan.statistic("sums"))
            public["fits"] = public["fits"] * (sums[: sum(self.levels.levels)] > 0)
        return public


@dataclass(frozen=True)
class FaultySharing(SSP):
    """SSP, re-centred however few records there are, with one fault in what it draws, or none."""

    fault: str = ""

    @staticmethod
    def _enough(*_: Any) -> bool:
        return True

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        peeking: Any = Peeking(meter, ("leverage",) if self.fault == "exact leverages" else ())
        public = dict(super().draw(source, plan, peeking))
        if self.fault == "exact limit":
            (meat,) = source.aggregate(self._layout(source.schema).meat(0, public["theta"]))
            public["limits"] = public["limits"] * (1 + float(np.trace(meat)) / 2.0**40)
        return public


def _drawn(
    name: str, what: str, fault: str, *pairs: tuple[pd.DataFrame, pd.DataFrame], formula: str = "", **more: Any
) -> Fault:
    """A fault of a draw: record and replay on neighbors."""
    kind, bounds = more.get("kind", FaultyLine), more.get("bounds", "auto")
    schema, level = more.get("schema", _LINE), more.get("level", _ADD)
    formula = formula or "y ~ a + b"
    faulty, clean = kind(formula, fault=fault, bounds=bounds), kind(formula, bounds=bounds)
    return neighbors(name, what, faulty, clean, schema, level, *pairs)


def unlike(method: Any, level: Any, schema: Schema, *, rows: int = 40, seed: int = 1) -> tuple[str, ...]:
    """What differs between data sets far apart at one transcript, beyond the statistics: none, one record often, practice records.

    No neighbors: statistics may move as far as they like, but nothing else may know on which data they were.
    """
    plan = engine.plan(method, schema, level)
    base = schema.sample(rows, seed)
    others = (
        base.iloc[:0],
        pd.concat([base.iloc[:1]] * rows),
        schema.sample(rows, seed + 1),
        schema.sample(2 * rows + 1, 2),
    )
    found = (
        replay(method, plan, cf.read(base, schema), cf.read(one, schema), seed=seed, thorough=False) for one in others
    )
    return tuple(dict.fromkeys(text for one in found for text in one.problems))


def _told(name: str, what: str, fault: str, formula: str, schema: Schema) -> Fault:
    """A fault that decides by a threshold on records: data sets that are far apart show it, neighbors only where it lies between them."""

    def audit(wrong: bool, runs: int, seed: int) -> Audit:
        problems = unlike(FaultyLine(formula, fault=fault if wrong else ""), _ADD, schema, seed=seed)
        return Audit((bounded(name, 0.0, len(problems), "one transcript on data far apart"),))

    return Fault(name, what, "one transcript on data far apart", audit, "least_squares")


# plans ---------------------------------------------------------------------------------------------------------------------


def _planned(name: str, what: str, fault: str, schema: Schema) -> Fault:
    """A plan that must be refused, or whose spends must state what one unit moves."""

    def audit(wrong: bool, runs: int, seed: int) -> Audit:
        worst = 0.0
        try:
            plan = engine.plan(FaultyLine("y ~ a + b", fault=fault if wrong else ""), schema, _ADD)
            for name_, statistic in plan.statistics.items():
                spend = plan.spend(name_)
                unit = statistic.sensitivity_squared("add-remove") * schema.rows_per_unit**2
                worst = max(worst, sqrt(unit / (spend.sensitivity * spend.step) ** 2))
        except PlanError:
            worst = 2.0
        return Audit((bounded(name, 1.0, worst, "contract: the spends of the plan"),))

    return Fault(name, what, "contract: the spends of the plan", audit, "least_squares")


# neighbors ------------------------------------------------------------------------------------------------------------------


def _frames(schema: Schema, rows: int, *records: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Practice records, and the same with more."""
    base = schema.sample(rows, 3)
    return base, pd.concat([base, pd.DataFrame(list(records))], ignore_index=True)


def _high(schema: Schema) -> dict[str, Any]:
    """The record at the upper ends."""
    columns = ((name, schema[name]) for name in schema.names)
    return {name: column.levels[-1] if isinstance(column, cf.Categorical) else column.high for name, column in columns}


_CORNER = _frames(_LINE, 12, _high(_LINE))
# the branch of many records begins at 30 p / mu, here between three and four of them
_OF_THREE = _frames(_LINE, 3, _high(_LINE))
_SECOND = (pd.DataFrame([_high(_LINE)] * 3), pd.DataFrame([_high(_LINE)] * 3 + [{"a": 0.0, "b": 0.5, "y": 0.0}]))
_GROUPS = _frames(_LEVELS, 40, _high(_LEVELS))
_EMPTY = (pd.DataFrame({"f": ["p"] * 5, "y": [0.25] * 5}), pd.DataFrame({"f": ["p"] * 5 + ["r"], "y": [0.25] * 6}))
_FACTOR = cf.Schema({"f": _LEVELS["f"], "y": _LEVELS["y"]})
_MIXED = cf.Schema({"a": _LINE["a"], "g": cf.Categorical(("p", "q", "r")), "y": _LINE["y"]})
_UNITS = cf.Schema({name: _LINE[name] for name in _LINE.names}, rows_per_unit=2)


LEAST_SQUARES = [
    *SCORE_FAULTS,
    _drawn("sigma from the exact count", "the residual sd is scaled by the number of records", "exact count", _CORNER),
    _drawn(
        "limits from the exact histogram of scores",
        "R follows from counts before their noise",
        "exact histogram of scores",
        _CORNER,
        _OF_THREE,
    ),
    _drawn(
        "limits from the exact histogram of lengths",
        "R_A and kappa follow from counts before their noise",
        "exact histogram of lengths",
        *(_frames(_LINE, 600, {"a": 1.0, "b": 0.0, "y": 1.0}), _CORNER),
        # with more of a budget nothing is capped there, with less the histogram shows nothing: ranges would leave it another
        level=cf.GDP(20.0, relation="add-remove"),
        bounds="declared",
    ),
    _drawn("edges from the exact count", "the least limit follows from the number of records", "exact edges", _CORNER),
    _drawn(
        "squares that the meat lacks from records",
        "they are summed, not read from the histogram",
        "exact squares",
        _CORNER,
    ),
    _drawn("a histogram that nobody pays for", "kappa is read from records", "unpaid histogram", _CORNER),
    _drawn("R_A from the exact leverages", "the cap is the sum of |v|^2", "exact leverages", _CORNER),
    _drawn("the meat at the exact fit", "delta solves the sums before their noise", "exact fit", _CORNER),
    _told("the branch by the exact count", "a noisy count is drawn and not read", "exact branch", "y ~ a + b", _LINE),
    _drawn("a metric of the exact moments", "coordinates from the first round without noise", "exact metric", _CORNER),
    _drawn(
        "the largest score of the records", "not that of the public box", "maxima of the records", _CORNER, _OF_THREE
    ),
    _told(
        "the rarer value counted without noise",
        "whether scores are limited depends on fewer than six records",
        "exact rare",
        "z ~ a",
        _TWO,
    ),
    _drawn(
        "levels left out by the exact count",
        "which records count depends on how many there are",
        "exact levels",
        _frames(_MIXED, 40, _high(_MIXED)),
        formula="y ~ a + g",
        schema=_MIXED,
    ),
    _drawn("a pass over records that depends on them", "every other record asks for one", "another pass", _CORNER),
    _drawn("an exception that depends on records", "an exact Gram matrix is singular", "gives up", _SECOND),
    _planned("shares that add up to 101 %", "the meat gets one per cent more", "overspent", _LINE),
    _planned("a unit of two rows charged as one", "a person of two rows moves sums twice as far", "one row", _UNITS),
    _drawn(
        "fits of the exact tables",
        "group means before their noise",
        "exact tables",
        _GROUPS,
        formula="y ~ f + g",
        schema=_LEVELS,
    ),
    _drawn(
        "limits of the exact residuals",
        "the histogram of residuals is read before its noise",
        "exact tails",
        (_GROUPS[0][["f", "y"]], _GROUPS[1][["f", "y"]]),
        formula="y ~ f",
        schema=_FACTOR,
        level=cf.GDP(3.0, relation="add-remove"),
    ),
    _drawn(
        "levels without records left out",
        "a mean is 0 where no record is, without noise",
        "empty levels",
        _EMPTY,
        formula="y ~ f",
        schema=_FACTOR,
    ),
    _drawn(
        "a cap of the exact leverages of a box",
        "the histogram of |z|^2 is read before its noise",
        "exact leverages",
        *(_frames(_LINE, k, _high(_LINE)) for k in (0, 1, 2, 12)),
        kind=FaultySharing,
    ),
    _drawn("residuals limited by the exact meat", "records move the limit", "exact limit", _CORNER, kind=FaultySharing),
]
