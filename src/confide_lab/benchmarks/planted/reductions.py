"""Planted faults of correlations and principal components: sums that weigh too little, influences that are not cut, exact components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import confide as cf
from confide.core import Gram, Meter, Plan, Source
from confide.methods.reduction import components
from confide.methods.reduction.components import PCA
from confide.methods.reduction.correlations import Correlations
from confide.methods.reduction.sums import InfluenceRows, JointMomentRows, JointMoments
from confide.sums.coding import BOUND
from confide_lab.benchmarks.planted.kinds import Fault, bounded, law, method
from confide_lab.published.components import projector_move

__all__ = ["REDUCTIONS"]

_SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 2)})


class _Uncounted(JointMomentRows):
    """The 1 that counts a record is left out of its length."""

    @property
    def l2_squared(self) -> int:
        return len(self.measures) * BOUND


class _FirstOnly(JointMomentRows):
    """One column's moments in the length."""

    @property
    def l2_squared(self) -> int:
        return self.steps**2 + BOUND


@dataclass(frozen=True)
class _Short(Correlations):
    def about(self, schema: Any) -> JointMomentRows:
        return _Uncounted(super().about(schema).measures)


@dataclass(frozen=True)
class _OneColumn(PCA):
    def about(self, schema: Any) -> JointMomentRows:
        return _FirstOnly(super().about(schema).measures)


@dataclass(frozen=True)
class _Influential(PCA):
    """Influences that are not cut where they should be."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        return super().draw(_Tripled(source), plan, meter)  # type: ignore[arg-type]


class _Tripled:
    """A source whose influences count three times."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def aggregate(self, *statistics: Any) -> tuple[Any, ...]:
        found = self._source.aggregate(*statistics)
        return tuple(
            value * 3 if isinstance(one.map, InfluenceRows) else value
            for one, value in zip(statistics, found, strict=True)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


@dataclass(frozen=True)
class _AtExact(PCA):
    """Influences, and their caps, at the components of the exact matrix."""

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        moments = plan.statistic("moments")
        assert isinstance(moments, Gram) and isinstance(moments.map, JointMomentRows)
        (exact,) = source.aggregate(moments)
        own, unit = components.joint_moments, float(moments.map.steps) ** 2
        try:
            components.joint_moments = lambda rows, noisy: JointMoments(  # type: ignore[assignment]
                np.array(exact, dtype=np.float64) / unit, noisy.variance / unit**2
            )
            return super().draw(source, plan, meter)
        finally:
            components.joint_moments = own


def _projector(move: Any) -> Any:
    """How far one record moves the first component's projector, over the bound; rows of three numbers of length at most 1."""
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(200):
        x = generator.normal(size=(12, 3)) * np.array([1.5, 0.5, 0.4])
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
        values, vectors = np.linalg.eigh(x.T @ x)
        gap = values[-1] - values[-2]
        if gap <= 1.05:
            continue
        # the record that turns it most lies between the two directions
        for angle in np.linspace(0.1, np.pi - 0.1, 24):
            u = np.cos(angle) * vectors[:, -1] + np.sin(angle) * vectors[:, -2]
            other = np.linalg.eigh(x.T @ x + np.outer(u, u))[1][:, -1]
            distance = float(np.linalg.norm(np.outer(vectors[:, -1], vectors[:, -1]) - np.outer(other, other)))
            worst = max(worst, distance / move(float(gap)))
    return bounded("move of a projector over its bound", 1.0, worst, "neighboring records")


REDUCTIONS: list[Fault] = [
    method(
        "count left out of joint moments",
        "the length of a record has no part for its 1",
        _Short("a + b"),
        Correlations("a + b"),
        _SCHEMA,
    ),
    method(
        "one column's moments in the length",
        "the sensitivity does not grow with the number of columns",
        _OneColumn("a + b"),
        PCA("a + b"),
        _SCHEMA,
    ),
    method(
        "influences beyond their caps",
        "squared influences of a record add up to three times their bound",
        _Influential("a + b"),
        PCA("a + b"),
        _SCHEMA,
    ),
    method(
        "influences at exact components",
        "the second round looks at the matrix without noise",
        _AtExact("a + b"),
        PCA("a + b"),
        _SCHEMA,
    ),
    law(
        "half the move of a projector",
        "the gap in place of what is left of it, halved",
        lambda: _projector(lambda gap: projector_move(gap, "add-remove") / 2),
        lambda: _projector(lambda gap: projector_move(gap, "add-remove")),
        of="pca",
        attack="neighboring records",
    ),
]
