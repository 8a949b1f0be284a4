"""Labels that teachers' votes gave to public records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide.results.base import BaseResult, Column

__all__ = ["VotedLabels"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VotedLabels(BaseResult):
    """labels (queries,): a class for each public record, None where the vote gave none; classes: public."""

    labels: NDArray[Any]
    classes: tuple[str, ...]

    family: ClassVar[str] = "labels"
    rows_are: ClassVar[str] = "class"
    rows_called: ClassVar[str] = "classes"

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """How many public records were given each class."""
        counts = np.array([float(np.sum(self.labels == one)) for one in self.classes])
        return (Column("name", self.classes, "name"), Column("records", counts, "number", head="public records"))

    def head(self) -> tuple[tuple[str, str], ...]:
        given = sum(one is not None for one in self.labels)
        return (("Labelled", f"{given:,} of {len(self.labels):,} public records"),)

    def more(self, alpha: float) -> dict[str, Any]:
        return {"given": [None if one is None else str(one) for one in self.labels]}

    def draw(self, ax: Any, alpha: float) -> None:
        columns = self.columns(alpha)
        ax.bar(range(len(self.classes)), columns[1].values, color="#1f4e79")
        ax.set_xticks(range(len(self.classes)), list(self.classes))
        ax.set_ylabel("public records")

    def picture(self, alpha: float) -> str:
        return "How many public records were given each class."
