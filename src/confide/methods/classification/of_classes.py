"""What the methods of classes share: features in a ball, sums of squares where variances are released, and the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from confide._arrays import Array
from confide.methods.classification.class_design import ClassDesign
from confide.methods.classification.class_rows import SquareRows
from confide.methods.classification.reading import checked_radius, checked_variance
from confide.methods.classification.reference import class_truth
from confide.protocol import Method, Noisy
from confide.schema import Practice

__all__ = ["OfClasses"]


class OfClasses(Method):
    """Base of methods for shares and means of classes. variance: how it is found; radius: of the ball, None for the default."""

    formula: str
    variance: str
    radius: float | None
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "classification"

    def __post_init__(self) -> None:
        checked_variance(self.variance)
        checked_radius(self.radius, 1)

    def _own(self, schema: Any) -> ClassDesign:
        return ClassDesign.of(self.formula, schema, term_bounds=self.term_bounds)

    def _radius(self, own: ClassDesign) -> float:
        return checked_radius(self.radius, len(own.features))

    def _target(self, own: ClassDesign) -> str:
        return f"shares of the classes of {own.response} and means of {', '.join(own.features)} within them"

    def _covered(self, rest: str) -> str:
        variances = "variances of 1 assumed" if self.variance == "identity" else "variances released"
        return (
            "shares and class means of the population, for values moved into their bounds and records into the ball of the radius; "
            f"sampling of records and privacy noise, {variances}, {rest}"
        )

    def _squared(self, own: ClassDesign, drawn: Noisy | None, sizes: Array) -> tuple[Array | None, Array | None]:
        """Mean squares of the features of each class, and the variance of their noise; None where none were released."""
        if drawn is None:
            return None, None
        squared = SquareRows(own, self._radius(own))
        squares = squared.decode(drawn.decode()) / sizes
        return squares, np.broadcast_to(drawn.variance / squared.steps**2 / sizes**2, squares.shape)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """Shares and class means of records moved as those of a release are."""
        own = self._own(Practice.checked(frame).schema)
        return class_truth(frame, own, self._radius(own))
