"""What a plan says of columns whose spread must stand above its noise, and a result of those whose spread does not.

From public facts alone: declared bounds, the sds of noise, typical spreads where the schema states them. A column whose spread does not
stand above its noise has no correlation and no component: better told before than after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from scipy.optimize import brentq

from confide.aggregates.cells.free_moments import Measure
from confide.schema import Integer, Numeric, Schema

__all__ = ["hidden_words", "spread_words"]

# Standard deviations, as shares of the width between the bounds, of columns of which nothing typical is declared.
_SPREADS = {"a sixth": 1 / 6, "a tenth": 1 / 10}
# The variance of values that are even between the bounds, -1 and 1: one that needs more is seldom had.
_EVEN, _LEAST = 1 / 3, 1e-9

#: (mean, variance) of a column on -1 to 1 -> from how many records on its spread stands above its noise, all but surely.
Needed = Callable[[float, float], float]


def spread_words(measures: Sequence[Measure], schema: Any, needed: Needed, n: int | None) -> str:
    """From how many records on columns are answered; with n, from which standard deviation on, in the column's units."""
    told = "a column is answered where its spread stands above the noise"
    whole = Schema.of(schema)
    typical, others = dict[str, float](), list[Measure]()
    for measure in measures:
        column = whole[measure.name] if measure.name in whole.names else None
        own = column.spread if isinstance(column, Numeric | Integer) else None
        if own is None:
            others.append(measure)
            continue
        mean, spread = (own.low + own.high) / 2, (own.high - own.low) / 4
        place = (mean - measure.middle) / measure.half
        typical[measure.name] = needed(place, min((spread / measure.half) ** 2, 1.0))
    if n is None and others:
        needs = {words: [needed(*at) for at in _places((2 * share) ** 2)] for words, share in _SPREADS.items()}
        said = ", ".join(
            f"{_rounded(low)} to {_rounded(high)} where it is {word}" for word, (low, high) in needs.items()
        )
        told += (
            ", from about so many records on, by its standard deviation as a part of the width between its bounds: "
            f"{said} (values about the middle of the bounds, and at one of them)"
        )
    if typical:
        told += "; by typical spreads " + ", ".join(f"{name} from {_rounded(count)}" for name, count in typical.items())
    return told if n is None else "; ".join([told, *_with(n, typical, others, needed)])


def _with(n: int, typical: Mapping[str, float], others: Sequence[Measure], needed: Needed) -> Iterator[str]:
    """What is said of n records."""
    unlikely = [name for name, count in typical.items() if count > n]
    middle, end = (_least(needed, n, end=end) for end in (False, True))
    if others and middle is None:
        unlikely += [measure.name for measure in others]
    elif others:
        ends = [sqrt(variance) for variance in (middle, end) if variance is not None]
        parts = ", ".join(f"{one.name} {_ends([part * one.half for part in ends])} ({_bounds(one)})" for one in others)
        yield (
            f"with {n:,} records likely from these standard deviations on, the second where values lie at a bound: {parts}; where values "
            "are skewed or keep to a part of their bounds, declare narrower ones"
        )
    if unlikely:
        yield (
            f"with {n:,} records an answer is unlikely for columns {', '.join(unlikely)}; a larger budget, narrower bounds or fewer "
            "columns help"
        )
    elif not others:
        yield f"with {n:,} records an answer is likely"


def hidden_words(measures: Iterable[Measure]) -> str:
    """The sentence on columns whose spread does not stand above its noise."""
    told = ", ".join(f"{one.name} ({_bounds(one)})" for one in measures)
    return f"the spread of {told} does not stand above its noise: declare narrower bounds, where most values lie"


def _places(variance: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """(mean, variance) in the middle of the bounds and as near to one of them as can be."""
    return (0.0, variance), (sqrt(1 - variance), variance)


def _least(needed: Needed, n: int, *, end: bool) -> float | None:
    """The least variance that n records tell from noise; None where that of even values is too small."""

    def lacks(variance: float) -> float:
        return needed(*_places(variance)[end]) / n - 1

    if not n or lacks(_EVEN) > 0:
        return None
    return _LEAST if lacks(_LEAST) < 0 else float(brentq(lacks, _LEAST, _EVEN))


def _ends(values: Sequence[float]) -> str:
    """One or two standard deviations in two digits."""
    return " to ".join(f"{float(f'{value:.2g}'):,g}" for value in values) + ("" if len(values) > 1 else " to none")


def _bounds(measure: Measure) -> str:
    return f"declared {measure.term.low:,g} to {measure.term.high:,g}"


def _rounded(count: float) -> str:
    """Two digits, upwards."""
    unit = 10 ** max(len(str(int(count))) - 2, 0)
    return f"{-(-int(count + 1) // unit) * unit:,}"
