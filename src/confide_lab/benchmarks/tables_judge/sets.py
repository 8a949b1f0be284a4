"""Eight sets of real records as tables ask of them: attributes, columns with public bounds, and the crossings that are read.

Files are those of the folder that CONFIDE_DATA names (`confide_lab.datasets`); bounds are its manifest's, or stand here with their reason.
A missing label is a level of its own ("none given"); a missing number is left out, as its column declares. `widened` moves the bounds
apart: a column that starts at 0 keeps it, so that its records lie in a corner.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from confide.schema import Categorical, Numeric, Schema
from confide_lab.datasets import ENVIRONMENT

__all__ = ["NAMES", "Case", "Recipe", "case", "missing"]

_NONE = "none given"


@dataclass(frozen=True)
class Recipe:
    """attributes: columns taken as labels; cuts: attributes that are cuts of numbers; columns: numbers with their public bounds.

    group, by: the attributes whose crossing is read; the means are by `group`; quantiles: of the first `ranked` columns, by `group`.
    """

    attributes: tuple[str, ...]
    columns: Mapping[str, tuple[float, float]]
    group: str
    by: str
    cuts: Mapping[str, tuple[str, tuple[float, ...]]] | None = None


_SETS: Mapping[str, Recipe] = {
    "adult": Recipe(
        ("sex", "race", "income", "marital_status", "relationship", "workclass", "education", "native_country"),
        {"age": (16, 100), "hours_per_week": (0, 100), "capital_gain": (0, 99_999)},
        "sex",
        "race",
    ),
    "default_of_credit_card_clients": Recipe(
        ("sex", "education", "marriage", "pay_0", "default_payment_next_month"),
        {"limit_bal": (0, 2_000_000), "bill_amt1": (-500_000, 2_000_000), "pay_amt1": (0, 2_000_000)},
        "education",
        "default_payment_next_month",
    ),
    "bike_sharing_hourly": Recipe(
        ("season", "yr", "weathersit", "workingday", "holiday", "hr"),
        {"cnt": (0, 3_000), "casual": (0, 1_000), "hum": (0, 1)},
        "weathersit",
        "workingday",
    ),
    "wine_quality": Recipe(
        ("color", "quality"),
        {"residual_sugar": (0, 80), "chlorides": (0, 1), "alcohol": (7, 16)},
        "color",
        "quality",
        {"sweet": ("residual_sugar", (2, 5, 10))},
    ),
    "abalone": Recipe(
        ("sex",),
        {"height": (0, 0.5), "whole_weight": (0, 4), "rings": (0, 35)},
        "sex",
        "old",
        {"old": ("rings", (6, 9, 12, 16)), "large": ("length", (0.4, 0.55))},
    ),
    # rates of the heart and counts in a strip of some minutes
    "cardiotocography": Recipe(
        ("nsp", "class", "ds", "tendency", "nzeros"),
        {"lb": (50, 250), "ac": (0, 50), "fm": (0, 1_000)},
        "nsp",
        "tendency",
    ),
    "california_housing": Recipe(
        (),
        {"median_income": (0, 20), "total_rooms": (0, 40_000), "median_house_value": (0, 600_000)},
        "south",
        "older",
        {"south": ("latitude", (34, 36, 38)), "older": ("housing_median_age", (10, 30, 50)), "west": ("longitude", (-122, -119))},
    ),
    "air_quality": Recipe(
        ("weekday", "month"),
        {"co_gt": (0, 30), "c6h6_gt": (0, 100), "nox_gt": (0, 2_000)},
        "day",
        "weekday",
        {"day": ("hour", (6, 10, 16, 20))},
    ),
}  # fmt: skip

NAMES = tuple(_SETS)


@dataclass(frozen=True, eq=False)
class Case:
    """One set: its records, what a steward declares, and what is asked."""

    name: str
    frame: pd.DataFrame
    recipe: Recipe

    def schema(self, widened: float = 1.0) -> Schema:
        """The columns, bounds of the numbers apart by a factor: from their lower end where that is at least 0, to both sides elsewhere."""
        found: dict[str, Any] = {name: Categorical(self.levels(name)) for name in self.attributes}
        for name, (low, high) in self.recipe.columns.items():
            reach = (high - low) * (widened - 1)
            found[name] = Numeric(low, high + reach) if low >= 0 else Numeric(low - reach / 2, high + reach / 2)
        return Schema(found)

    def levels(self, attribute: str) -> list[str]:
        """Of an attribute, numbers by size."""
        return sorted(self.frame[attribute].unique(), key=_in_order)

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.recipe.attributes, *(self.recipe.cuts or {}))

    @property
    def crossing(self) -> str:
        return f"{self.recipe.group} * {self.recipe.by}"

    @property
    def pairs(self) -> str:
        """All crossings of two attributes."""
        return " + ".join(f"{one}:{other}" for one, other in combinations(self.attributes, 2))

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.recipe.columns)


@cache
def case(name: str) -> Case:
    """One of `NAMES`; the records as attributes and numbers."""
    own = _SETS[name]
    raw = pd.read_parquet(_folder() / f"{name}.parquet")
    if "datetime" in raw:
        raw = raw.assign(
            weekday=raw["datetime"].dt.weekday, month=raw["datetime"].dt.month, hour=raw["datetime"].dt.hour
        )
    found = {column: _labels(raw[column]) for column in own.attributes}
    for title, (column, points) in (own.cuts or {}).items():
        at = pd.cut(raw[column], [-float("inf"), *points, float("inf")], right=False, labels=False)
        found[title] = "band " + at.astype(str)
    return Case(name, pd.DataFrame({**found, **{column: raw[column] for column in own.columns}}), own)


def missing() -> str | None:
    """Why the sets cannot be read here, None when they can."""
    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return f"set {ENVIRONMENT} to the folder of the Parquet files, as in: export {ENVIRONMENT}=/path/to/data"
    lost = [name for name in NAMES if not (Path(folder) / f"{name}.parquet").is_file()]
    return f"not in {ENVIRONMENT}: {', '.join(lost)}" if lost else None


def _folder() -> Path:
    return Path(os.environ[ENVIRONMENT])


def _labels(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.astype(object).where(values.notna(), _NONE).astype(str)


def _in_order(label: str) -> tuple[float, str]:
    """Numbers by size, words after them."""
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label
