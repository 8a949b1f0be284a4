"""Which columns a reduction is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from confide.aggregates.cells.free_moments import Measure
from confide.aggregates.lines.corners import ends
from confide.aggregates.moments.joint_moments import JointMomentRows, JointMoments, clear_from
from confide.errors import PlanError
from confide.protocol import Method, Noisy, Plan
from confide.results.pages.spreads import spread_words
from confide.schema import Schema
from confide.schema.formulas.names import parted, quoted

__all__ = ["OfColumns", "expected", "joint_moments", "listed", "measures_of"]

_MOST = 200


def listed(columns: Any) -> tuple[str, ...]:
    """Columns as a tuple, from a list or from "a + b"; `PlanError` for fewer than two, or one twice."""
    found = tuple(parted(columns, "+")) if isinstance(columns, str) else columns
    if not isinstance(found, Sequence) or not all(isinstance(one, str) for one in found):
        raise PlanError(f"columns must be names, got {columns!r}; write ('age', 'income') or 'age + income'")
    if not 2 <= len(found) <= _MOST or len(set(found)) < len(found):
        raise PlanError(
            f"columns must name from 2 to {_MOST} columns, each once, got {columns!r}; write 'age + income'"
        )
    return tuple(found)


def measures_of(
    columns: Sequence[str], schema: Any, term_bounds: Mapping[str, tuple[float, float]] | None
) -> tuple[Measure, ...]:
    """The columns between their public bounds."""
    whole = Schema.of(schema)
    # a list holds names as they are, which may be no text of a formula
    texts = [quoted(name) if name in whole else name for name in columns]
    return tuple(Measure.of(text, whole, formula=" + ".join(columns), term_bounds=term_bounds) for text in texts)


def joint_moments(rows: JointMomentRows, noisy: Noisy) -> JointMoments:
    """What was released, in units of one record."""
    unit = float(rows.steps) ** 2
    return JointMoments(noisy.decode() / unit, noisy.variance / unit**2)


def expected(plan: Plan, rows: JointMomentRows, schema: Any, n: int | None) -> str:
    """Which columns to expect an answer of, from public facts: bounds, noise, typical spreads where they are declared."""
    sd = plan.spend("moments").noise_sd
    assert sd is not None
    noise = (sd / float(rows.steps) ** 2) ** 2
    return spread_words(rows.measures, schema, lambda place, variance: float(clear_from(noise, place, variance)), n)


class OfColumns(Method):
    """Base of what is read from joint moments of `columns`, names or derived terms; term_bounds: bounds of derived terms."""

    columns: tuple[str, ...]
    term_bounds: Mapping[str, tuple[float, float]] | None

    family: ClassVar[str] = "reduction"
    example: ClassVar[str] = '"x + y + z"'

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", listed(self.columns))

    def about(self, schema: Any) -> JointMomentRows:
        return JointMomentRows(measures_of(self.columns, schema, self.term_bounds))

    def worst_pairs(self, schema: Any = None) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """Opposite corners of the bounds, where columns are plain."""
        if schema is None or any(name not in schema.names for name in self.columns):
            return ()
        low, high = ends(schema, self.columns)
        return (low, high), (low, {**low, self.columns[-1]: high[self.columns[-1]]})
