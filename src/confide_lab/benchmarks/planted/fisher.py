"""Faults of the maps behind Fisher scoring: the joint bound of score and information, its relation, the line of the meat, the excess.

Each statistic is built at hostile frames and bounds, with one wrong line or its clean twin, and the records that move it most are looked
for in exact integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import confide as cf
from confide.core import Gram, Total
from confide.methods.regression.glm.fisher_families import PROBIT, Counts, Probit
from confide.methods.regression.glm.fisher_rows import FisherRows, FisherScores
from confide.methods.regression.glm.sums import Excess, FisherSum
from confide.methods.regression.sums.whitened_rows import Frame
from confide.schema import ModelMatrix
from confide.sums.coding import BOUND, Box, Codes
from confide_lab.benchmarks.planted.scores import searched

__all__ = ["FISHER_FAULTS"]

_DESIGN = ModelMatrix.of("y ~ a + b", cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Integer(0, 1)}))


def _records(generator: np.random.Generator, many: int = 60) -> Codes:
    sizes = [_DESIGN.schema[name].steps for name in _DESIGN.columns]
    return np.array([generator.choice([0, size - 1, size // 3], many) for size in sizes], dtype=np.float64)


def _frame(generator: np.random.Generator) -> Frame:
    """A line that is sure of itself, in coordinates of any size."""
    transform = generator.normal(size=(3, 3)) * 10.0 ** generator.uniform(-2, 2)
    return Frame.of(Box.of(_DESIGN), transform, generator.normal(size=3) * 10.0 ** generator.uniform(-1, 1.3), 1.0)


def _at(wrong: Any, right: Any, make: Callable[[Any], Any], alpha: float) -> Callable[..., tuple[Any, Codes]]:
    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        rows = (wrong if faulty else right)(_DESIGN)
        return make(rows.at(_frame(generator), alpha, 10.0 ** generator.uniform(-3, 1))), _records(generator)

    return build


@dataclass(frozen=True)
class _Uncut(FisherRows):
    """Rows with another N, not cut on the integers."""

    def __call__(self, codes: Codes) -> Codes:
        parts, (gram, cross) = self.parts(codes), self.steps
        u, h, r = parts[:3]
        v, w = self.split(parts.size, parts.most, parts.square)
        return np.asarray(np.rint(np.concatenate([u * np.sqrt(gram * v * h), u * (cross * w * r)])))


@dataclass(frozen=True)
class _Unshared(_Uncut):
    """The score takes its part of the bound, and information counts as if it had not."""

    def split(self, size: Any, most: Any, square: Any) -> Any:
        return self.weights(size), super().split(size, most, square)[1]


@dataclass(frozen=True)
class _ScoreAlone(_Uncut):
    """N is the length of the score: information is not in the bound."""

    def parts(self, codes: Codes, out: Any = None) -> Any:
        return replace(self, alpha=0.0)._parts(codes)

    def _parts(self, codes: Codes) -> Any:
        return FisherRows.parts(self, codes)


@dataclass(frozen=True)
class _Halves(_Uncut):
    """m = 1/2, the residual at even odds, in the place of the larger one."""

    def parts(self, codes: Codes, out: Any = None) -> Any:
        own = FisherRows.parts(self, codes)
        square = (own.u**2).sum(axis=0)
        return own._replace(size=np.sqrt((self.alpha * own.information * square) ** 2 + square / 4))


@dataclass(frozen=True)
class _OfTheOldLine(FisherScores):
    """The meat's rows with weights of the line before the step and residuals of the one after it."""

    def __call__(self, codes: Codes) -> Codes:
        assert self.frame is not None
        old = replace(self, frame=replace(self.frame, theta=(0.0, 0.0, 0.0)))
        u, _, r = self.parts(codes)[:3]
        return np.asarray(np.rint(u * (self.weights(old.parts(codes).size) * r * self.steps)))


@dataclass(frozen=True)
class _Positive(FisherSum):
    """sqrt(2) under substitute, as for positive matrices."""

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(BOUND) ** 2 * (2 if relation == "substitute" else 1)


@dataclass(frozen=True)
class _Uncapped(Excess):
    """N/D - 1 as far as it goes."""

    def __call__(self, codes: Codes) -> Codes:
        size = self.parts(codes).size
        return np.asarray(np.rint(np.minimum(np.maximum(size / self.bound - 1, 0.0), 2.0**20) * BOUND))[None, :]


@dataclass(frozen=True)
class _CutProbit(Probit):
    """m at |eta| <= 1, as if residuals did not grow with eta."""

    def parts(self, eta: Any, codes: Any, steps: float) -> Any:
        h, r, _ = Probit.parts(self, eta, codes, steps)
        return h, r, Probit.parts(self, np.clip(eta, -1.0, 1.0), codes, steps)[2]


@dataclass(frozen=True)
class _UncutCounts(Counts):
    """Counts that are not cut to c, under a bound that holds up to c."""

    def parts(self, eta: Any, codes: Any, steps: float) -> Any:
        h, _, m = Counts.parts(self, eta, codes, steps)
        return h, codes * (self.high / steps) / self.cut - h, m


def _apart(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
    """Counts whose information takes most of the bound, as rows that are not cut on the integers."""
    codes = _records(generator)
    codes[-1] *= _COUNTED.schema["y"].steps - 1
    rows = (_Unshared if faulty else _Uncut)(_COUNTED, family=Counts(40.0, 5.0))
    return FisherSum(rows.at(_frame(generator), 10.0, 10.0 ** generator.uniform(-3, 0))), codes


def _family(wrong: Any, right: Any, design: ModelMatrix) -> Callable[..., tuple[Any, Codes]]:
    """The score and information of a family, as rows that are not cut on the integers."""

    def build(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
        rows = _Uncut(design, family=wrong if faulty else right)
        codes = _records(generator)
        codes[-1] *= design.schema["y"].steps - 1
        return FisherSum(rows.at(_frame(generator), 0.1, 10.0 ** generator.uniform(-3, 0))), codes

    return build


class _Signed(Excess):
    """r in the place of its square: the bias itself, which has a sign."""

    def __call__(self, codes: Codes) -> Codes:
        own = self.parts(codes)
        far = np.minimum(np.maximum(own.size / self.bound - 1, 0.0), 1.0)
        return np.asarray(np.rint(far * own.residual * BOUND))[None, :]


def _excess(rows: Any) -> Total:
    return Total(rows, nonnegative=True)


def _positive(faulty: bool, generator: np.random.Generator) -> tuple[Any, Codes]:
    """Saturated records of opposite scores: sure of one outcome on either side of the middle, and both are the other."""
    transform = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    frame = Frame.of(Box.of(_DESIGN), transform * 10.0 ** generator.uniform(-1, 2), np.array([60.0, 0.0, 0.0]), 1.0)
    rows = FisherRows(_DESIGN).at(frame, 1.0, 10.0 ** generator.uniform(-3, -1))
    codes = _records(generator)
    codes[-1] = 0.0
    return (_Positive if faulty else FisherSum)(rows), codes


_COUNTED = ModelMatrix.of(
    "y ~ a + b", cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Integer(0, 40)})
)

FISHER_FAULTS = [
    searched(
        "a probit's residuals as bounded",
        "residuals of a probit, which grow with the line, are taken to be as long as near even odds",
        _family(_CutProbit(), PROBIT, _DESIGN),
        of="logistic",
    ),
    searched(
        "counts that are not cut",
        "counts above the cut are summed as they are, though noise and weights are those of counts up to it",
        _family(_UncutCounts(40.0, 5.0), Counts(40.0, 5.0), _COUNTED),
        of="poisson",
    ),
    searched(
        "a bound that is given twice",
        "scores of counts count more than their information, which counts as if they did not",
        _apart,
        of="poisson",
    ),
    searched(
        "information outside the bound",
        "records are limited by the length of their score, and their information is released beside it",
        _at(_ScoreAlone, FisherRows, FisherSum, 50.0),
        of="logistic",
    ),
    searched(
        "residuals of even odds",
        "a residual is taken to be at most 1/2, which holds at even odds alone",
        _at(_Halves, FisherRows, FisherSum, 0.1),
        of="logistic",
    ),
    searched(
        "scores as positive matrices",
        "a replaced record is charged sqrt(2), which holds for Gram matrices; opposite scores attain 2",
        _positive,
        "substitute",
        of="logistic",
    ),
    searched(
        "weights of the old line",
        "the meat's rows have the weights of the line before the last step and residuals of the one after it",
        _at(_OfTheOldLine, FisherScores, Gram, 1.0),
        of="logistic",
    ),
    searched(
        "excess without its cap",
        "a record far out counts as often as it is longer than the bound",
        _at(_Uncapped, Excess, _excess, 1.0),
        of="logistic",
    ),
    searched(
        "excess with a sign",
        "far records count by their residual, not by its square, and a replaced one is charged once",
        _at(_Signed, Excess, _excess, 1.0),
        "substitute",
        of="logistic",
    ),
]
