"""A record map, its sum over records in Python integers, and a table with everything awkward in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from confide.core import RecordMap
from confide.schema import Categorical, Integer, Numeric, Schema


@dataclass(frozen=True)
class Plain(RecordMap):
    """The record itself: (1, its codes), or zeros when a code is missing."""

    columns: tuple[str, ...]
    largest: int = 1 << 20

    @property
    def width(self) -> int:
        return len(self.columns) + 1

    @property
    def l1(self) -> int:
        return 1 + len(self.columns) * self.largest

    @property
    def l2_squared(self) -> int:
        return 1 + len(self.columns) * self.largest**2

    @property
    def digest(self) -> str:
        return "plain " + " ".join(self.columns)

    def __call__(self, codes: Any) -> Any:
        keep = (codes >= 0).all(axis=0)
        return np.vstack([np.ones(codes.shape[1]), codes]) * keep


def gram_of(records: Iterable[Sequence[int]]) -> list[list[int]]:
    """The Gram matrix of (1, codes) in Python integers, records with a code below 0 left out."""
    rows = [(1, *codes) for codes in records]
    rows = [row for row in rows if min(row) >= 0]
    width = len(rows[0]) if rows else 0
    return [[sum(row[i] * row[j] for row in rows) for j in range(width)] for i in range(width)]


def code_of(column: Any, value: Any) -> int:
    """The code of one value by the schema's formula, step by step in Python floats."""
    if column.kind == "categorical":
        index = column.levels.index(value) if value in column.levels else -1
        return index if index >= 0 or column.on_missing == "drop" else column.levels.index(column.on_missing)
    if value is None or not isfinite(value):
        if column.on_missing == "drop":
            return -1
        value = (column.low + column.high) / 2 if column.on_missing == "midpoint" else column.on_missing
    scale = (column.steps - 1) / (column.high - column.low)
    return round((min(max(float(value), column.low), column.high) - column.low) * scale)


def codes_of(records: Iterable[Mapping[str, Any]], schema: Schema, columns: Sequence[str]) -> list[tuple[int, ...]]:
    return [tuple(code_of(schema[name], record[name]) for name in columns) for record in records]


SCHEMA = Schema(
    {
        "x": Numeric(-2, 2),
        "y": Numeric(0, 1, on_missing="midpoint"),
        "k": Integer(0, 9, on_missing=3),
        "g": Categorical(["N", "S", "W"]),
        "h": Categorical(["1", "2"], on_missing="2"),
    },
    dataset="survey",
)


def table(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Records with missing cells in every column, values on and beyond the bounds, and labels that are no level."""
    rng = np.random.default_rng(seed)
    hole = rng.random((n, 5)) < 0.1
    x, y = rng.normal(0, 1.5, n), rng.normal(0.5, 0.5, n)
    k, g, h = rng.integers(-3, 14, n), rng.choice(["N", "S", "W", "E"], n), rng.choice(["1", "2"], n)
    return [
        {
            "x": None if hole[i, 0] else float(x[i]),
            "y": None if hole[i, 1] else float(y[i]),
            "k": None if hole[i, 2] else int(k[i]),
            "g": None if hole[i, 3] else str(g[i]),
            "h": None if hole[i, 4] else str(h[i]),
        }
        for i in range(n)
    ]
