"""Why coefficients of a least-squares release are not answered, and what would do: bounds, rare levels, demand, what moves with what.

All from the release and the schema. The demand is itself a noisy number: it is stated once, for the coefficient that needs most.

A range is found before the sums where no bounds are declared, and records beyond it are few and clipped. Where bounds were
declared instead, or noise hid the range, they may reach so far that a few records out there move a coefficient unseen. There
is one rule, on the reach: the distance of the farthest bound from the estimated mean in estimated SDs. Beyond 25 a feature is not
answered where records may be limited, nor is what is correlated with it.

What tables of regressions say of their counts: records, few of them, and the share of values that were clipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import Noisy
from confide.results.base import LevelCount, level_remarks
from confide.results.pages.content import Flag

# Coefficients that a sentence names; a factor may have hundreds.
_NAMED = 4
# Levels left out that it names; and half of a 95 % interval in sds.
_LEVELS, _TWO = 6, 1.96
# A level with less than this part of all records is named as rare.
_RARE = 0.1
# What a feature must have of the largest part in a direction to be named with it; and a correlation from which on two are next to one.
_LOADS, _ALIKE = 0.5, 0.98
#: Bounds farther than so many sds from the mean are far; and a coefficient that is correlated as much with one of such a feature moves
#: with it.
REACH, TIED = 25.0, 0.2


@dataclass(frozen=True)
class MissingCoefficients:
    """Places of coefficients that are not answered, by the cause.

    wide: features whose bounds reach too far; demanding: those whose noise is too large; tied: place -> the wide one that it moves
    with.

    apart: those that need the records of an excluded level.
    """

    wide: tuple[int, ...]
    demanding: tuple[int, ...]
    tied: Mapping[int, int]
    apart: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """All of them, in order."""
        return sorted({*self.wide, *self.demanding, *self.tied, *self.apart})


def reaches(mean: Array, sd: Array) -> Array:
    """How many SDs the bounds of each term lie from its mean. mean, `sd`: of the terms, in units of half the bounds, from their middle.

    >>> reaches(np.array([0.0, -0.5]), np.array([0.5, 0.1])).tolist()
    [2.0, 15.0]
    """
    return np.asarray((1 + np.abs(mean)) / sd)


def far_words(name: str, reach: float, *, declared: bool) -> str:
    """The sentence for a feature whose bounds reach so many SDs. declared: they were asked for, instead of a range that is found.

    >>> far_words("age", 5813, declared=True)
    "the bounds of age reach 5,800 standard deviations, and a few records out there could move its coefficient unseen; leave
    bounds='declared' out, and the range is found"
    """
    what = (
        "leave bounds='declared' out, and the range is found"
        if declared
        else "its range needs more records or a larger budget"
    )
    return (
        f"the bounds of {name} reach {plain(reach)} standard deviations, and a few records out there could move its coefficient unseen; "
        f"{what}"
    )


def hidden_words(names: Sequence[str], gram: NDArray[np.float64]) -> str:
    """The sentence for a direction of the features that noise hides, by the features that make it up.

    names: of the terms; gram: the released sums of (1, x) (1, x)', (1 + terms, 1 + terms).

    >>> hidden_words(["a", "b", "c"], np.array([[9, 0, 0, 0], [0, 9, 8.9, 0], [0, 8.9, 9, 0], [0, 0, 0, 9.0]]))
    'noise hides what tells a and b apart: leave one of them out of the formula'
    >>> hidden_words(["a", "b"], np.array([[9, 0, 4.5], [0, 9, 0], [4.5, 0, 2.2]]))
    'noise hides whether b varies at all: leave it out of the formula'
    >>> hidden_words(["a"], np.array([[9, 0], [0, -1.0]]))
    'noise hides some combination of the features'
    """
    centred = gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / max(float(gram[0, 0]), 1.0)
    own = np.diag(centred)
    flat = [name for name, size in zip(names, own, strict=True) if size <= 0]
    if len(flat) == len(names) or len(names) < 2:
        return "noise hides some combination of the features"
    if flat:
        ends = ("ies", "it") if len(flat) == 1 else ("y", "them")
        return f"noise hides whether {_listed(flat)} var{ends[0]} at all: leave {ends[1]} out of the formula"
    scale = np.sqrt(own)
    loads = np.abs(np.linalg.eigh(centred / np.outer(scale, scale))[1][:, 0])
    together = [name for name, load in zip(names, loads, strict=True) if load >= _LOADS * loads.max()]
    return f"noise hides what tells {_listed(together)} apart: leave one of them out of the formula"


def alike_words(names: Sequence[str], gram: NDArray[np.float64], places: Sequence[int]) -> str:
    """The sentence on two features, among the terms at these places, that are next to one; "" for none. gram: as for `hidden_words`.

    >>> alike_words(["a", "b"], np.array([[9, 0, 0], [0, 9, 8.9], [0, 8.9, 9.0]]), [0, 1])
    'a and b are nearly the same: leave one of them out of the formula'
    """
    centred = gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / max(float(gram[0, 0]), 1.0)
    own = np.diag(centred)
    pairs = [
        (abs(centred[i, j]) / np.sqrt(own[i] * own[j]), i, j)
        for i in places
        for j in places
        if i < j and own[i] > 0 and own[j] > 0
    ]
    most, i, j = max(pairs, default=(0.0, 0, 0))
    return (
        f"{names[i]} and {names[j]} are nearly the same: leave one of them out of the formula" if most > _ALIKE else ""
    )


def records_needed_text(names: Sequence[str], demand: Sequence[float], records: float) -> str:
    """One sentence for all coefficients that need more; the largest demand first.

    >>> records_needed_text(["a", "b"], [1.2, 1.43], 6_000)
    'b and a need more records: at least about 8,600, or a mu 1.5 times as large'
    """
    order = sorted(range(len(names)), key=lambda place: -demand[place])
    most = demand[order[0]]
    larger = f"{ceil(10 * most) / 10:.1f}" if most < 10 else rounded_up(most)
    return (
        f"{_listed([names[place] for place in order])} need{'s' if len(names) == 1 else ''} more records: at least about "
        f"{rounded_up(max(records, 1.0) * most)}, or a mu {larger} times as large"
    )


def collinear_text(names: Sequence[str], with_: str) -> str:
    """The sentence for coefficients that move with one whose bounds reach too far.

    >>> collinear_text(["Intercept", "yrs"], "age")
    'Intercept and yrs move with age'
    """
    return f"{_listed(names)} move{'s' if len(names) == 1 else ''} with {with_}"


def level_needs(counts: Sequence[LevelCount], base: Mapping[str, str], records: float, *, demanding: bool) -> str:
    """The levels of which no records are seen; where noise hides coefficients and all are seen, the rarest. "" for none.

    base: the level of each column with which its coefficients compare.

    >>> level_needs([LevelCount("job", "student", 41.0, 9.0)], {}, 6_000, demanding=True)
    'the rarest level is job[student], about 41 ± 18 records'
    """
    small = [one for one in counts if not one.seen]
    words = [level_remarks(small).removeprefix("; ")] if small else []
    rarest = min(counts, key=lambda one: one.count, default=None)
    if not small and demanding and rarest is not None and rarest.count < _RARE * records:
        words = [
            f"the rarest level is {rarest.column}[{rarest.level}], about {plain(rarest.count)} ± {rarest.margin:,.0f} records"
        ]
        small = [rarest]
    first = dict.fromkeys(one.column for one in small if base.get(one.column) == one.level)
    if first and demanding:
        words.append(summary_text(list(first)))
    return "; ".join(words)


def mostly(groups: Iterable[Sequence[int]], usable: Sequence[bool] | NDArray[np.bool_]) -> bool:
    """Whether at least half of a table's coefficients can be told, or half of its terms, a factor counting as one; usable: by place.

    >>> mostly([[1], [2], [3, 4, 5]], [True, True, True, False, False, False]), mostly([[1], [2, 3]], [True, False, False, False])
    (True, False)
    """
    told = [[bool(usable[place]) for place in group] for group in groups if group]
    shares, all_of = [sum(group) / len(group) for group in told], sum(told, list[bool]())
    return bool(told) and (2 * sum(shares) >= len(shares) or 2 * sum(all_of) >= len(all_of))


def left_out_words(
    names: Sequence[str], counts: Sequence[float], sds: Sequence[float], enough: Sequence[float], *, told: bool
) -> str:
    """The sentence on levels whose records were left out. told: whether any coefficient is answered.

    >>> left_out_words(["job[student]"], [13.2], [6.0], [101.0], told=True)
    'too few records to estimate: job[student] (about 13 ± 12, at least about 110 would do); the other coefficients are
    estimated without them, and their intervals allow for it'
    """
    given = [
        f"{name} (about {max(count, 0.0):.0f} ± {_TWO * sd:,.0f}, at least about {rounded_up(most)} would do)"
        for name, count, sd, most in zip(names, counts, sds, enough, strict=True)
    ]
    named = _joined(given[:_LEVELS]) + (f" and {len(given) - _LEVELS} more" if len(given) > _LEVELS else "")
    return f"too few records to estimate: {named}; the other coefficients are estimated without them, and their intervals allow for it"


def summary_text(columns: Sequence[str]) -> str:
    """The sentence for factors whose first level has too few records.

    >>> summary_text(["job"])
    'every coefficient of job compares with a level of this kind: put one with many records first in the schema'
    """
    return f"every coefficient of {_joined(columns)} compares with a level of this kind: put one with many records first in the schema"


def rounded_up(number: float) -> str:
    """Two digits, rounded up.

    >>> rounded_up(22_376), rounded_up(7)
    ('23,000', '7')
    """
    if not isfinite(number):
        return "very many"
    size = 10 ** max(len(str(ceil(number))) - 2, 0)
    return f"{ceil(number / size) * size:,}"


def _listed(names: Sequence[str]) -> str:
    """Names as in a sentence, the last ones as a number."""
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
    return _joined(names)


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plain(number: float) -> str:
    """Two significant digits, without an exponent.

    >>> plain(5813.0), plain(14.5), plain(0.123)
    ('5,800', '14', '0.12')
    """
    if abs(number) < 10 or not isfinite(number):
        return f"{number:.2g}"
    size = 10 ** (floor(log10(abs(number))) - 1)
    return f"{round(number / size) * size:,}"


_TWO_SIDED = float(special.ndtri(0.975))


class IndependentRecords:
    """What the table of a line says of how its records were drawn: nothing; a survey says more."""

    @property
    def _told(self) -> tuple[Flag, ...]:
        """Flags of every table."""
        return ()

    @property
    def _head(self) -> tuple[tuple[str, str], ...]:
        return (("Cov. type", "robust"),)


def few_records(count: Noisy) -> tuple[str, ...]:
    """The flag of a number of records within three SDs of 0: a hint at records that were all dropped."""
    return ("few_complete_records",) if float(count.decode()[0]) < 3 * sqrt(count.variance) else ()


def count_text(count: Noisy) -> str:
    """The number of records, with its 95% interval where that is wider than 1% of it to either side."""
    value, margin = float(count.decode()[0]), _TWO_SIDED * sqrt(count.variance)
    return f"{value:,.0f}" + (
        f" (95% CI {value - margin:,.0f} to {value + margin:,.0f})" if margin > 0.01 * value else ""
    )
