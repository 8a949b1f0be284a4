"""Faults of the maps behind the least-squares line: scores, sizes, sums by level, SSP's leverages, searched on the integers.

Each statistic is built at hostile frames and limits, with one wrong line or its clean twin, and the records that move it most are looked
for in exact integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

import confide as cf
from confide.audit.verdict import Audit
from confide.core import Gram, Total
from confide.methods.regression.factors.draw import FactorMeans
from confide.methods.regression.factors.sums import (
    FactorLevels,
    LevelRows,
    LevelScores,
    LevelSquares,
    LevelSums,
    ResidualCells,
    ResidualIndices,
    SquaredRows,
)
from confide.methods.regression.ssp.draw import BoxLeverage
from confide.methods.regression.sums.linear_rows import BlockGram, BlockRows, LinearRows, block_numbers, together
from confide.methods.regression.sums.scores import SCORE_CELLS, LimitedFeatures, LimitedScores, SizeIndices, SquareOf
from confide.methods.regression.sums.whitened_rows import Coordinates, Frame, LeverageCells
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import Box, Codes
from confide_lab.benchmarks.planted.kinds import Fault, bounded

__all__ = ["SCORE_FAULTS", "searched"]

_LINE = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
_LEVELS = cf.Schema(
    {"f": cf.Categorical(["p", "q", "r"]), "g": cf.Categorical(["s", "t", "u", "v"]), "y": cf.Numeric(0, 1, steps=1025)}
)
_DESIGN = ModelMatrix.of("y ~ a + b + a:b", _LINE)


# maps and their bounds ---------------------------------------------------------------------------------------------------


def searched(
    name: str,
    what: str,
    build: Callable[[bool, np.random.Generator], tuple[Any, Codes]],
    relation: str = "add-remove",
    of: str = "least_squares",
) -> Fault:
    """A statistic whose records go beyond its sensitivity at some frame: a search on the integers. build: (faulty, generator)."""

    def audit(wrong: bool, runs: int, seed: int) -> Audit:
        generator, worst = np.random.default_rng(seed), 0.0
        for _ in range(12):
            statistic, codes = build(wrong, generator)
            rows = np.asarray(statistic.map(codes)).astype(np.int64).astype(object)
            owns = [np.zeros(len(rows), dtype=object), *(rows.T[::4] if relation == "substitute" else ())]
            moved = max(int(statistic.moved_squared(own, rows).max()) for own in owns)
            worst = max(worst, sqrt(Fraction(moved) / statistic.sensitivity_squared(relation)))
        return Audit((bounded(name, 1.0, worst, "search on the integers at hostile frames", relation),))

    return Fault(name, what, "search on the integers at hostile frames", audit, of)


def _records(design: ModelMatrix, generator: np.random.Generator, many: int = 60) -> Codes:
    """Codes at the ends of the columns and between; the second half is the first with the other end of the response."""
    sizes = [design.schema[name].steps for name in design.columns]
    codes = np.array([generator.choice([0, size - 1, size // 3], many) for size in sizes], dtype=np.float64)
    codes[:, many // 2 :] = codes[:, : many // 2]
    codes[-1, many // 2 :] = sizes[-1] - 1 - codes[-1, : many // 2]
    return codes


def _frame(generator: np.random.Generator) -> Frame:
    p = len(_DESIGN.terms) + 1
    transform = generator.normal(size=(p, p)) * 10.0 ** generator.uniform(-2, 2)
    return Frame.of(Box.of(_DESIGN), transform, generator.normal(size=p), 1.0)


def _scored(wrong: Any, right: Any, make: Callable[[Any], Any]) -> Callable[..., tuple[Any, Codes]]:
    """A statistic of a map of scores at a hostile frame and limit."""

    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        rows = wrong if faulty else right
        return make(rows.at(_frame(generator), 10.0 ** generator.uniform(-3, 0))), _records(_DESIGN, generator)

    return build


@dataclass(frozen=True)
class _Scores(LimitedScores):
    """Scores limited by another rule, without the cut on the integers that would catch it."""

    rule: str = ""

    def __call__(self, codes: Codes) -> Codes:
        found = self._locating(codes)
        v, r = found.v, found.r
        length = np.sqrt((v * v).sum(axis=0))
        if self.rule == "length":
            m = v * (r / np.maximum(length, self.limit))
        elif self.rule == "residual":
            m = v * (np.clip(r, -self.limit, self.limit) / self.limit)
        elif self.rule == "coordinates":
            m = np.clip(v * r, -self.limit, self.limit) / self.limit
        else:  # twice as far out as the integers are coded for
            m = v * (2 * r / np.maximum(length * np.abs(r), 2 * self.limit))
        return np.asarray(np.rint(m * (self.steps * self.limit)))


@dataclass(frozen=True)
class _Features(LimitedFeatures):
    """Rows with w = min(1, sqrt(cap)/|v|), the root of the right one, not cut."""

    def __call__(self, codes: Codes) -> Codes:
        v = self._locating(codes).v
        length = np.sqrt((v * v).sum(axis=0))
        return np.asarray(np.rint(v * np.sqrt(np.minimum(sqrt(self.cap) / length, 1.0)) * float(self.steps)))


@dataclass(frozen=True)
class _Squares(SquareOf):
    """r^2 without a limit."""

    def __call__(self, codes: Codes) -> Codes:
        r = self._locating(codes).r
        return np.asarray(np.rint(np.minimum(r / self.reach, 2.0**10) ** 2 * 2.0**40))[None, :]


@dataclass(frozen=True)
class _OneCell(Histogram):
    """A replaced record charged as an added one."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True)
class _Beyond(Histogram):
    """Numbers of records beyond each edge, in place of those between: one record moves all of them up to its own."""

    def moved_squared(self, own: Any, rows: Any) -> Any:
        return np.abs(rows - own[:, None])[0]


def _cells(faulty_kind: Any) -> Callable[..., tuple[Any, Codes]]:
    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        edges = tuple(2.0**k / 64 for k in range(SCORE_CELLS - 1))
        rows = SizeIndices(_DESIGN, scores=True).at(Frame.start(Box.of(_DESIGN)), edges)
        return (faulty_kind if faulty else Histogram)(rows), _records(_DESIGN, generator)

    return build


def _in_doubles(design: ModelMatrix, frame: Frame, codes: Codes) -> Codes:
    """The map of a frame as a product of doubles, not of integers."""
    made = Coordinates.of(design, frame)
    return np.asarray((made.matrix / 3 * made.scale[:, None]) @ codes + made.shift[:, None])


def _bits(name: str, what: str) -> Fault:
    """Coordinates that differ in other batches: rounding to integers hides them from a comparison of rows nearly always."""

    def audit(wrong: bool, runs: int, seed: int) -> Audit:
        generator, differ = np.random.default_rng(seed), 0
        for _ in range(2):
            frame, codes = _frame(generator), np.floor(generator.random((4, 1_000)) * 2.0**20)
            made = Coordinates.of(_DESIGN, frame)

            def found(part: Codes, frame: Frame = frame, made: Coordinates = made) -> Codes:
                return _in_doubles(_DESIGN, frame, part) if wrong else made(part)

            for size in (1, 7):
                parts = [found(codes[:, k : k + size]) for k in range(0, codes.shape[1], size)]
                differ += int((np.concatenate(parts, axis=1) != found(codes)).any(axis=0).sum())
        return Audit((bounded(name, 0.0, differ, "the same bits in any batch"),))

    return Fault(name, what, "the same bits in any batch", audit, "least_squares")


# sums by level -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Charged(LevelSums):
    """Sums with the sensitivity of a part of them."""

    rule: str = ""

    def sensitivity_squared(self, relation: str) -> Fraction:
        rows = self.map
        if self.rule == "root of two":
            return Fraction(rows.l2_squared * (2 if relation == "substitute" else 1))
        if self.rule == "pairs":
            rows = replace(rows, pairs=(0,) * len(rows.pairs))
        else:  # the block with the most levels alone
            rows = replace(rows, counts=(0, *rows.counts[1:]), sums=(0, *rows.sums[1:]))
        return LevelSums(rows).sensitivity_squared(relation)


def _means(formula: str) -> FactorMeans:
    found = FactorMeans.of("planted", _LEVELS, ModelMatrix.of(formula, _LEVELS))
    assert found is not None
    return found


def _levels(rule: str, formula: str, units: str = "") -> Callable[..., tuple[Any, Codes]]:
    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        path = _means(formula)
        rows: LevelRows = path.rows(units or "add-remove")
        return (_Charged(rows, rule) if faulty else LevelSums(rows)), _records(path.design, generator)

    return build


@dataclass(frozen=True)
class _LongLevels(LevelScores):
    """Scores of levels in one-hot rows of all blocks, as long as the root of their number, not cut."""

    def __call__(self, codes: Codes) -> Codes:
        placed, r, _ = self.residuals(codes)
        v = sum(self.levels.rows(block).T[:, place] for block, place in enumerate(placed))
        return np.asarray(np.rint(v * np.clip(r / self.reach, -1, 1) * float(self.steps)))


@dataclass(frozen=True)
class _LongSquares(LevelSquares):
    """Squares by level at a limit that is half of what they are."""

    def moved_squared(self, own: Any, rows: Any) -> Any:
        return ((4 * rows - 4 * own[:, None]) ** 2).sum(axis=0)


@dataclass(frozen=True)
class _OneResidual(ResidualCells):
    """A replaced record charged as an added one."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True)
class _FreeSquares(SquaredRows):
    """Squares of residuals in units of the limit, without the limit."""

    def __call__(self, codes: Codes) -> Codes:
        _, r, _ = self.residuals(codes)
        return np.asarray(np.rint((r / self.reach) ** 2 * float(self.unit)))[None, :]


def _at_levels(make: Callable[[FactorLevels, bool], Any], formula: str = "y ~ f") -> Callable[..., tuple[Any, Codes]]:
    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        path = _means(formula)
        return make(path.levels, faulty), _records(path.design, generator)

    return build


def _scores_of(levels: FactorLevels, faulty: bool) -> Gram:
    path = _means("y ~ f + g")
    fits = tuple((0.0,) * size for size in levels.levels)
    if faulty:
        return Gram(_LongLevels(levels).at(fits, 1.0))
    return Gram(LevelScores(levels, axes=path._axes(path.rows("add-remove"))).at(fits, 1.0))


def _squares_of(levels: FactorLevels) -> Any:
    return LevelSquares.of(levels).at(((0.0,) * levels.levels[0],), 1.0).map


def _residual_cells(levels: FactorLevels, faulty: bool) -> ResidualCells:
    made = ResidualCells(ResidualIndices(levels))
    at = made.at(((0.0,) * levels.levels[0],), np.linspace(0.1, 0.9, 8))
    return _OneResidual(at.map) if faulty else at


# leverages and meats of a shared release -----------------------------------------------------------------------------------

_PAIR = cf.Schema({"a": cf.Numeric(0, 1), "y1": cf.Numeric(0, 1), "y2": cf.Numeric(0, 1)})
_JOINED = together(tuple(ModelMatrix.of(f"{name} ~ a", _PAIR) for name in ("y1", "y2")), "y1 + y2 ~ a")


@dataclass(frozen=True)
class _LooseMeat(LinearRows):
    """Scores of residuals limited at `limit`, coded as if that were 1, not cut."""

    def __call__(self, codes: Codes) -> Codes:
        return np.asarray(super().__call__(codes) * max(self.limit, 1.0))


@dataclass(frozen=True)
class _OwnBlocks(BlockGram):
    """Moments whose integers between the blocks follow from the cap in use, with the noise of those of the plan."""

    planned: tuple[int, int, int] = field(default=(1, 1, 1))

    def sensitivity_squared(self, relation: str) -> Fraction:
        return BlockGram(self.map, self.planned, self.responses).sensitivity_squared(relation)


@dataclass(frozen=True)
class _OneLeverage(LeverageCells):
    """A replaced record charged as an added one."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(1)


def _meat(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
    rows = (_LooseMeat if faulty else LinearRows)(_JOINED, 8.0, outcomes=2, residual=1, adaptive=True)
    half = 10.0 ** generator.uniform(-1, 0)
    at = rows.at(generator.normal(size=2), Box((0.5,), (half,)), 1 + generator.random())
    return Gram(at), _records(_JOINED, generator)


def _moments(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
    # R2 and g2 of the public box, and of a cap that noisy leverages put below it
    planned, own, cap = block_numbers(2.0, 0.73), block_numbers(1.0, 0.45), 1.0
    rows = BlockRows(_JOINED, cap, outcomes=2, adaptive=True).at(box=Box((1 / 3,), (0.1,)))
    return (_OwnBlocks(rows, own, 2, planned) if faulty else BlockGram(rows, planned, 2)), _records(_JOINED, generator)


def _leverages(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
    statistic = LeverageCells(BoxLeverage(_DESIGN)).at(Frame.start(Box((0.5,) * 3, (0.2,) * 3)))
    return (_OneLeverage(statistic.map) if faulty else statistic), _records(_DESIGN, generator)


SCORE_FAULTS = [
    searched(
        "opposite scores at sqrt(2)",
        "a replaced record moves a sum of scores from R to -R, twice its bound",
        lambda wrong, generator: (
            Total(LimitedScores(_DESIGN).at(_frame(generator), 1e-3), nonnegative=wrong),
            _records(_DESIGN, generator),
        ),
        "substitute",
    ),
    searched(
        "scores limited in the length of features alone",
        "|v| <= R says nothing of |v r|",
        _scored(_Scores(_DESIGN, rule="length"), LimitedScores(_DESIGN), Total),
    ),
    searched(
        "scores limited in the residual alone",
        "|r| <= R says nothing of |v r|",
        _scored(_Scores(_DESIGN, rule="residual"), LimitedScores(_DESIGN), Total),
    ),
    searched(
        "scores limited coordinate by coordinate",
        "p coordinates of at most R are sqrt(p) R long",
        _scored(_Scores(_DESIGN, rule="coordinates"), LimitedScores(_DESIGN), Total),
    ),
    searched(
        "a meat beyond its limit",
        "scores are limited at R, and noise is for R_M",
        _scored(_Scores(_DESIGN, rule="meat"), LimitedScores(_DESIGN), Gram),
    ),
    searched(
        "the weight of features to the wrong power",
        "w = min(1, sqrt(R_A)/|v|)",
        _scored(_Features(_DESIGN), LimitedFeatures(_DESIGN), Gram),
    ),
    searched(
        "squared residuals without a limit",
        "r^2 in units of the reach, however far out",
        _scored(_Squares(_DESIGN), SquareOf(_DESIGN), lambda rows: Total(rows, nonnegative=True)),
    ),
    searched(
        "a histogram of sizes at 1 under substitute",
        "a replaced record leaves one cell and enters another",
        _cells(_OneCell),
        "substitute",
    ),
    searched("a histogram of sizes added up", "a record is counted beyond every edge below it", _cells(_Beyond)),
    _bits("coordinates as a product of doubles", "the last bits of a record depend on the others in its batch"),
    searched(
        "counts and sums at sqrt(2) in the units of add-remove",
        "opposite responses in one level move the sums alone, by twice their bound",
        _levels("root of two", "y ~ f"),
        "substitute",
    ),
    searched(
        "pairs of levels not charged",
        "a record also counts in every table of two factors",
        _levels("pairs", "y ~ f + g"),
    ),
    searched("one factor charged for all", "a record lies in a level of each", _levels("one block", "y ~ f + g")),
    searched(
        "squares by level beyond their limit",
        "min(r^2, R^2) in units of a quarter of R^2",
        _at_levels(lambda levels, wrong: (_LongSquares if wrong else LevelSquares)(_squares_of(levels))),
    ),
    searched(
        "squared residuals of means without a limit",
        "the reach divides and does not limit",
        _at_levels(lambda levels, wrong: Total((_FreeSquares if wrong else SquaredRows)(levels, reach=0.5), True)),
    ),
    searched(
        "residuals in cells at 1 under substitute",
        "a replaced record leaves one cell and enters another",
        _at_levels(_residual_cells),
        "substitute",
    ),
    searched(
        "scores of levels longer than one",
        "one-hot rows of two factors are sqrt(2) long",
        _at_levels(_scores_of, "y ~ f + g"),
    ),
    searched("a meat coded for another limit", "|r| reaches the limit, not 1", _meat, of="ssp"),
    searched(
        "blocks of the cap in use",
        "the products of a smaller cap are larger, and their noise is that of the plan",
        _moments,
        of="ssp",
    ),
    searched(
        "leverages at 1 under substitute",
        "a replaced record leaves one cell and enters another",
        _leverages,
        "substitute",
        "ssp",
    ),
]
