"""Planted faults of curves: small counts that mark places, cells that follow from a secret number, a refusal that says something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import confide as cf
from confide.core import Meter, Plan, Source, Total
from confide.methods.curves.efficient_ptr import EfficientPTRKernel
from confide.methods.curves.kernel import Kernel
from confide.methods.curves.sums import KernelRows, KernelSums
from confide.testing import checks, contract as side_doors
from confide_lab.benchmarks.planted.kinds import Fault, contract, neighbors
from confide_lab.methods.wavelet import Wavelet, haar_level

__all__ = ["CURVES"]

_SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})


@dataclass(frozen=True)
class _Masked(Kernel):
    """Places with fewer than ten records near them are named."""

    name: ClassVar[str] = "planted_curve"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        rows = plan.statistic("curve").map
        assert isinstance(rows, KernelRows)
        (sums,) = source.aggregate(plan.statistic("curve"))
        half = len(sums) // 2
        exact = rows.axis.weights(rows.axis.centres) @ np.asarray(sums[:half], dtype=float)
        return {**public, "thin": exact < 9.5 * float(1 << 16) * rows.axis.unit}


@dataclass(frozen=True)
class _LevelOfN(Wavelet):
    """The level follows from the exact number of records; cells that it has not are empty."""

    name: ClassVar[str] = "planted_wavelet"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        cells = plan.statistic("cells")
        assert isinstance(cells, KernelSums)
        (sums,) = source.aggregate(cells)
        half = len(sums) // 2
        n = int(sum(sums[:half])) >> 32
        block = half // min(1 << (haar_level(max(n, 1), 100.0) + 1), half)
        folded = np.zeros(len(sums), dtype=object)
        for k in range(half):
            folded[k // block] += sums[k]
            folded[half + k // block] += sums[half + k]
        meter.draw("cells", folded)
        return {}


@dataclass(frozen=True)
class _WritesToThePlan(Wavelet):
    """The exact number of records is kept among the plan's constants, which are published."""

    name: ClassVar[str] = "planted_wavelet"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        (sums,) = source.aggregate(plan.statistic("cells"))
        assert isinstance(plan.constants, dict)
        plan.constants["n"] = int(sum(sums[: len(sums) // 2])) >> 32
        return public


@dataclass(frozen=True)
class _KeepsZeros(Wavelet):
    """Cells that are empty stay empty: their noise is overwritten."""

    name: ClassVar[str] = "planted_wavelet"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = super().draw(source, plan, meter)
        (sums,) = source.aggregate(plan.statistic("cells"))
        meter.drawn("cells").values[np.asarray(sums == 0)] = 0
        return public


@dataclass(frozen=True)
class _MeanBeside(EfficientPTRKernel):
    """Where there is no reply, the mean of the response stands in."""

    name: ClassVar[str] = "planted_points"

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        public = dict(super().draw(source, plan, meter))
        if "curve" not in public:
            rows = plan.statistic("curve").map
            (total,) = source.aggregate(Total(rows))
            half = len(total) // 2
            public["curve"] = np.array([float(sum(total[half:])) / max(float(sum(total[:half])), 1.0)])
        return public


_LEVEL = cf.GDP(1.0, relation="add-remove")
_THIN = (
    pd.DataFrame({"a": [0.9] * 10, "y": [0.2] * 10}),
    pd.DataFrame({"a": [0.9] * 10, "y": [0.2] * 9 + [-0.7]}),
)
_POINTS: dict[str, Any] = {"points": (-0.9, 0.9), "bandwidth": 0.1, "least": 20.0}

CURVES: list[Fault] = [
    contract(
        "thin places by exact counts",
        "places with fewer than ten records near them are marked",
        side_doors.small_counts_are_treated_like_large_ones,
        _Masked("y ~ a", bandwidth=0.2),
        Kernel("y ~ a", bandwidth=0.2),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "a level of the exact n",
        "how fine the cells are follows from the exact number of records",
        side_doors.small_counts_are_treated_like_large_ones,
        _LevelOfN("y ~ a", level=3),
        Wavelet("y ~ a", level=3),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "the count in the plan",
        "the exact number of records is written to the plan's constants, which leave with the release",
        checks._reads_back,
        _WritesToThePlan("y ~ a", level=3),
        Wavelet("y ~ a", level=3),
        _SCHEMA,
        _LEVEL,
    ),
    contract(
        "empty cells stay empty",
        "what was drawn for a cell without records is overwritten with 0",
        checks._reads_back,
        _KeepsZeros("y ~ a", level=3),
        Wavelet("y ~ a", level=3),
        _SCHEMA,
        _LEVEL,
    ),
    neighbors(
        "a mean where there is no reply",
        "the exact mean of the response stands in for a reply that was refused",
        _MeanBeside("y ~ a", **_POINTS),
        EfficientPTRKernel("y ~ a", **_POINTS),
        _SCHEMA,
        cf.GDP(3.0, 1e-3, relation="substitute"),
        _THIN,
    ),
]
