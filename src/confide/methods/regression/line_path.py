"""What a way to a line must answer, so that one method may choose among several from public facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from confide.methods.regression.shared_estimates import SharedEstimates
from confide.protocol import Allowance, Meter, Plan, Question, Release, Source

__all__ = ["LinePath"]


class LinePath(Protocol):
    """A frozen value, made of public facts alone."""

    def plan(self, allowance: Allowance, n: int | None) -> dict[str, Any]:
        """Keywords of `Plan.of`: event, statistics, passes, constants, target, covers, warnings."""
        ...

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        """The noisy numbers in the order of the plan; returns public numbers that follow from them."""
        ...

    def table(self, release: Release, question: Question) -> SharedEstimates:
        """The regression table."""
        ...

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The coefficients of the line that the title names, without privacy."""
        ...

    def worst_pairs(self) -> Iterable[tuple[Mapping[str, Any], ...]]:
        """Records that the audit should try."""
        ...
