"""Which columns a reduction is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confide.aggregates.cells.free_moments import Measure
from confide.aggregates.joint_moments import JointMomentRows, JointMoments, clear_from
from confide.errors import PlanError
from confide.protocol import Noisy, Plan
from confide.schema import Schema

__all__ = ["expected", "joint_moments", "listed", "measures_of"]

_MOST = 200
# Standard deviations, as shares of the width between the bounds, of columns of which nothing typical is declared.
_SPREADS = {"a sixth": 1 / 6, "a tenth": 1 / 10}


def listed(columns: Any) -> tuple[str, ...]:
    """Columns as a tuple, from a list or from "a + b"; `PlanError` for fewer than two, or one twice."""
    found = tuple(part.strip() for part in columns.split("+")) if isinstance(columns, str) else columns
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
    whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
    return tuple(Measure.of(name, whole, formula=" + ".join(columns), term_bounds=term_bounds) for name in columns)


def joint_moments(rows: JointMomentRows, noisy: Noisy) -> JointMoments:
    """What was released, in units of one record."""
    unit = float(rows.steps) ** 2
    return JointMoments(noisy.decode() / unit, noisy.variance / unit**2)


def expected(plan: Plan, rows: JointMomentRows, schema: Any, n: int | None) -> str:
    """Which columns to expect an answer of, from public facts: bounds, noise, typical spreads where they are declared.

    A column whose spread does not stand above its noise has no correlation and no component: better told before than after.
    """
    sd = plan.spend("moments").noise_sd
    assert sd is not None
    noise = (sd / float(rows.steps) ** 2) ** 2
    needs = {words: float(clear_from(noise, 0.0, (2 * share) ** 2)) for words, share in _SPREADS.items()}
    said = ", ".join(f"{_rounded(count)} where it is {words}" for words, count in needs.items())
    told = (
        "a column is answered where its spread stands above the noise, from about so many records on, by its standard deviation as a part "
        f"of the width between its bounds: {said}"
    )
    whole = schema if isinstance(schema, Schema) else Schema.from_dict(schema)
    typical = {}
    for measure in rows.measures:
        own = getattr(whole[measure.name], "typical", None) if measure.name in whole.names else None
        if own is not None:
            mean, spread = (own.low + own.high) / 2, (own.high - own.low) / 4
            place = (mean - measure.middle) / measure.half
            typical[measure.name] = float(clear_from(noise, place, min((spread / measure.half) ** 2, 1.0)))
    if typical:
        told += "; by typical spreads " + ", ".join(f"{name} from {_rounded(count)}" for name, count in typical.items())
    if n is None:
        return told
    unlikely = [name for name, count in (typical or needs).items() if count > n]
    if not unlikely:
        return f"{told}; with {n:,} records an answer is likely"
    which = ", ".join(unlikely) if typical else "of a spread of " + " or ".join(unlikely)
    return f"{told}; with {n:,} records an answer is unlikely for columns {which}; a larger budget, narrower bounds or fewer columns help"


def _rounded(count: float) -> str:
    """Two digits, upwards."""
    unit = 10 ** max(len(str(int(count))) - 2, 0)
    return f"{-(-int(count + 1) // unit) * unit:,}"
