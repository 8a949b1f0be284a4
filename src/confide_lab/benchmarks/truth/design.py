"""A synthetic population of the truth table: how its columns are made, and how they are declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.schema import Schema

__all__ = ["SIZE", "Design"]

#: Records of a population.
SIZE = 200_000


@dataclass(frozen=True)
class Design:
    """A synthetic population. n: where its cell stands in the table of broken promises; made: generator -> columns."""

    title: str
    formula: str
    columns: Mapping[str, Any]
    n: int
    made: Callable[[np.random.Generator], dict[str, Any]]

    @property
    def schema(self) -> Schema:
        return Schema(dict(self.columns))
