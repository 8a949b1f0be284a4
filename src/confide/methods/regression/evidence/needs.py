"""Why coefficients of a least-squares release are not answered, and what would do: bounds, rare levels, demand, what moves with what.

All from the release and the schema. The demand is itself a noisy number: it is said once, for the coefficient that needs most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from confide.results.levels import LevelCount, level_remarks

__all__ = [
    "Unanswered",
    "alike_words",
    "bounds_words",
    "demand_words",
    "first_words",
    "flat_words",
    "hidden_words",
    "left_out_words",
    "level_needs",
    "mostly",
    "plain",
    "rounded_up",
    "tied_words",
    "unseen_sd",
]

# Coefficients that a sentence names; a factor may have hundreds.
_NAMED = 4
# Levels left out that it names; and half of a 95 % interval in sds.
_LEVELS, _TWO = 6, 1.96
# Bounds this far apart are rounded to whole numbers where the declared ones are whole.
_WHOLE = 8.0
# A level with less than this part of all records is named as rare.
_RARE = 0.1
# What a feature must have of the largest part in a direction to be named with it; and a correlation from which on two are next to one.
_LOADS, _ALIKE = 0.5, 0.98
# Of so many sds of its noise a variance is not told from 0.
_HIDDEN = 3.0


@dataclass(frozen=True)
class Unanswered:
    """Places of coefficients that are not answered, by the cause.

    wide: features whose bounds reach too far; demanding: those whose noise is too large; tied: place -> the wide one that it moves with;
    apart: those that need the records of a level that was left out.
    """

    wide: tuple[int, ...]
    demanding: tuple[int, ...]
    tied: Mapping[int, int]
    apart: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """All of them, in order."""
        return sorted({*self.wide, *self.demanding, *self.tied, *self.apart})


def bounds_words(
    name: str, reach: float, bounds: tuple[float, float], enough: tuple[float, float], near: float, why: str
) -> str:
    """The sentence for a feature whose public `bounds` reach `reach` sds; `enough`: bounds that would do, `near` sds about the mean.

    >>> bounds_words("age", 5813, (0, 1e5), (-90, 137.2), 10, "noise hides it")
    'the bounds of age reach 5,800 standard deviations: noise hides it; declare it within [0, 140] (about 10 standard deviations on either side; values beyond count at the bound)'
    >>> bounds_words("kids", 9.4, (0, 10), (-10, 9.8), 9, "noise hides it").partition(" (about")[0]
    'the bounds of kids reach 9.4 standard deviations: noise hides it; declare it within [0, 9]'
    """  # noqa: E501
    low, high = _within(bounds, enough)
    return (
        f"the bounds of {name} reach {plain(reach)} standard deviations: {why}; declare it within [{_plain(low)}, {_plain(high)}] "
        f"(about {near:.0f} standard deviations on either side; values beyond count at the bound)"
    )


def _within(bounds: tuple[float, float], enough: tuple[float, float]) -> tuple[float, float]:
    """Bounds that would do in round numbers, outwards, and narrower than those that are declared."""
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in enough)
    width = high - low
    unit = 10.0 ** (floor(log10(width)) - 1) if width > 0 else 1.0
    if width >= _WHOLE and all(float(end).is_integer() for end in bounds):
        unit = max(unit, 1.0)  # as the column may be of whole numbers
    # outwards, and no farther than what is declared; what is declared is no advice
    wide = max(floor(low / unit) * unit, bounds[0]), min(ceil(high / unit) * unit, bounds[1])
    if wide == (float(bounds[0]), float(bounds[1])):
        inwards = ceil(low / unit) * unit, floor(high / unit) * unit
        wide = bounds[0] if low <= bounds[0] else inwards[0], bounds[1] if high >= bounds[1] else inwards[1]
    return wide


def flat_words(name: str, bounds: tuple[float, float], enough: tuple[float, float]) -> str:
    """The sentence for a feature of which noise hides whether it varies. enough: bounds beyond which it could not vary unseen.

    >>> flat_words("age", (0, 1), (0.4931, 0.5069))
    'noise hides whether age varies at all: leave it out of the formula where it is one value, else declare it within [0.493, 0.507] (values beyond count at the bound)'
    """  # noqa: E501
    low, high = _within(bounds, enough)
    return (
        f"noise hides whether {name} varies at all: leave it out of the formula where it is one value, else declare it within "
        f"[{_plain(low)}, {_plain(high)}] (values beyond count at the bound)"
    )


def unseen_sd(gram: NDArray[np.float64], noise: NDArray[np.float64], j: int) -> float:
    """Up to which standard deviation a feature may vary unseen, where its noisy variance is not told from 0; 0 where it is.

    gram: the released sums of (1, x) (1, x)'; noise: the sds of their diagonal on its own.

    >>> unseen_sd(np.array([[100.0, 0], [0, 9]]), np.diag([5.0, 5.0]), 0), unseen_sd(np.array([[100.0, 0], [0, 25]]), np.diag([5.0, 5.0]), 0)
    (0.4898979485566356, 0.0)
    """  # noqa: E501
    count = max(float(gram[0, 0]), 1.0)
    own = float(gram[1 + j, 1 + j] - gram[0, 1 + j] ** 2 / count)
    hidden = _HIDDEN * float(noise[1 + j, 1 + j])
    return 0.0 if own > hidden else float(np.sqrt((max(own, 0.0) + hidden) / count))


def hidden_words(names: Sequence[str], gram: NDArray[np.float64]) -> str:
    """The sentence for a direction of the features that noise hides, by the features that make it up.

    names: of the terms; gram: the released sums of (1, x) (1, x)', (1 + terms, 1 + terms).

    >>> hidden_words(["a", "b", "c"], np.array([[9, 0, 0, 0], [0, 9, 8.9, 0], [0, 8.9, 9, 0], [0, 0, 0, 9.0]]))
    'noise hides what tells a and b apart: leave one of them out of the formula'
    >>> hidden_words(["a", "b"], np.array([[9, 0, 4.5], [0, 9, 0], [4.5, 0, 2.2]]))
    'noise hides whether b varies at all: leave it out of the formula'
    >>> hidden_words(["a"], np.array([[9, 0], [0, -1.0]]))
    'noise hides what the data say about some direction'
    """
    centred = gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / max(float(gram[0, 0]), 1.0)
    own = np.diag(centred)
    flat = [name for name, size in zip(names, own, strict=True) if size <= 0]
    if len(flat) == len(names) or len(names) < 2:
        return "noise hides what the data say about some direction"
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
    'a and b are next to the same: leave one of them out of the formula'
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
        f"{names[i]} and {names[j]} are next to the same: leave one of them out of the formula" if most > _ALIKE else ""
    )


def demand_words(names: Sequence[str], demand: Sequence[float], records: float) -> str:
    """One sentence for all coefficients that need more; the largest demand first.

    >>> demand_words(["a", "b"], [1.2, 1.43], 6_000)
    'b and a need more records: at least about 8,600, or a mu 1.5 times as large'
    """
    order = sorted(range(len(names)), key=lambda place: -demand[place])
    most = demand[order[0]]
    larger = f"{ceil(10 * most) / 10:.1f}" if most < 10 else rounded_up(most)
    return (
        f"{_listed([names[place] for place in order])} need{'s' if len(names) == 1 else ''} more records: at least about "
        f"{rounded_up(max(records, 1.0) * most)}, or a mu {larger} times as large"
    )


def tied_words(names: Sequence[str], with_: str) -> str:
    """The sentence for coefficients that move with one whose bounds reach too far.

    >>> tied_words(["Intercept", "yrs"], "age")
    'Intercept and yrs move with age'
    """
    return f"{_listed(names)} move{'s' if len(names) == 1 else ''} with {with_}"


def level_needs(counts: Sequence[LevelCount], base: Mapping[str, str], records: float, *, demanding: bool) -> str:
    """The levels whose noisy count is nothing; where noise hides coefficients and all are seen, the rarest. "" for none.

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
        words.append(first_words(list(first)))
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
    'too few records to be told: job[student] (about 13 ± 12, at least about 110 would do); the other coefficients are told without them, and their intervals allow for it'
    """  # noqa: E501
    given = [
        f"{name} (about {max(count, 0.0):.0f} ± {_TWO * sd:,.0f}, at least about {rounded_up(most)} would do)"
        for name, count, sd, most in zip(names, counts, sds, enough, strict=True)
    ]
    named = _joined(given[:_LEVELS]) + (f" and {len(given) - _LEVELS} more" if len(given) > _LEVELS else "")
    return f"too few records to be told: {named}; the other coefficients are told without them, and their intervals allow for it"


def first_words(columns: Sequence[str]) -> str:
    """The sentence for factors whose first level has too few records.

    >>> first_words(["job"])
    'every coefficient of job compares with such a level: let one with many records stand first in the schema'
    """
    return f"every coefficient of {_joined(columns)} compares with such a level: let one with many records stand first in the schema"


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


def _plain(number: float) -> str:
    """A bound as one types it: no exponent below a million.

    >>> _plain(140.0), _plain(0.1 + 0.2), _plain(2.5e7)
    ('140', '0.3', '2.5e+07')
    """
    if number and not 1e-4 <= abs(number) < 1e6:
        return f"{number:.3g}"
    return f"{number:.6f}".rstrip("0").rstrip(".") if number != round(number) else f"{number:.0f}"
