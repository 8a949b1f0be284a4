"""Why coefficients of a least-squares release are not answered, and what would do: bounds, rare levels, demand, what moves with what.

All from the release and the schema. The demand is itself a noisy number: it is stated once, for the coefficient that needs most.

Which features have bounds so far from their values that a few records out there could move a coefficient unseen.

reach: the farthest point of a feature's public bounds from its estimated mean, in its estimated SDs. Up to a reach of 25 the limits of
scores and leverages look after what can be counted. So they do up to where a record with a residual of six SDs would be limited at all:
with many records limits are high. Beyond, a coefficient is answered only where DP counts show a short tail. One way is that at most
0.5% of the records lie beyond five SDs in the histogram of ranges, noise counted against it. The other is that scores have no long
tail. Then at most 0.5% are there as counted, and at most 0.5% as extreme in the metric as every record beyond ten SDs is, noise counted
against these. It is never answered beyond a reach of 100, where one record can outweigh a sample of ten thousand. A long tail goes on
where it can no longer be seen; that a short one ends is an assumption, which the table names. All of it is post-processing.

What tables of regressions say of their counts: records, few of them, and the share of values that were clipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide.core import Noisy, Release
from confide.methods.regression.sums.linear_rows import CELLS, ClippedRows
from confide.results.base import LevelCount, level_remarks
from confide.results.pages.content import Flag
from confide.schema import Integer, ModelMatrix, Numeric, Schema

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


def bounds_words(
    name: str, reach: float, bounds: tuple[float, float], enough: tuple[float, float], near: float, why: str
) -> str:
    """The sentence for a feature whose public `bounds` reach `reach` SDs; `enough`: bounds that would do, `near` SDs about the mean.

    >>> bounds_words("age", 5813, (0, 1e5), (-90, 137.2), 10, "noise hides it")
    'the bounds of age reach 5,800 standard deviations: noise hides it; declare it within [0, 140] (about 10 standard deviations on either
    side; values beyond count at the bound)'
    >>> bounds_words("kids", 9.4, (0, 10), (-10, 9.8), 9, "noise hides it").partition(" (about")[0]
    'the bounds of kids reach 9.4 standard deviations: noise hides it; declare it within [0, 9]'
    """
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
    'noise hides whether age varies at all: leave it out of the formula where it is one value, else declare it within [0.493, 0.507]
    (values beyond count at the bound)'
    """
    low, high = _within(bounds, enough)
    return (
        f"noise hides whether {name} varies at all: leave it out of the formula where it is one value, else declare it within "
        f"[{_plain(low)}, {_plain(high)}] (values beyond count at the bound)"
    )


def unseen_sd(gram: NDArray[np.float64], noise: NDArray[np.float64], j: int) -> float:
    """Up to which standard deviation a feature may vary unseen, where its noisy variance is not told from 0; 0 where it is.

    gram: the released sums of (1, x) (1, x)'; noise: the SDs of the noise of the diagonal alone.

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


def _plain(number: float) -> str:
    """A bound as one types it: no exponent below a million.

    >>> _plain(140.0), _plain(0.1 + 0.2), _plain(2.5e7)
    ('140', '0.3', '2.5e+07')
    """
    if number and not 1e-4 <= abs(number) < 1e6:
        return f"{number:.3g}"
    return f"{number:.6f}".rstrip("0").rstrip(".") if number != round(number) else f"{number:.0f}"


#: The first and the last reach between which tails decide; and how many sds of its own bounds would do.
NOTED, FAR, NEAR = 25.0, 100.0, 10.0
# A tail is short with at most this share of the records beyond so many sds; so many sds of the count's noise are added to it.
_SHARE, _BEYOND, _DOUBT = 0.005, 5.0, 1.5
# Farther out, of all records.
_OUTER = 10.0
#: A residual so large, in sds: where it is not limited at the bounds, these are not far.
RESIDUAL = 6.0
# 95 % of a normal distribution are so many sds wide.
_WIDE = 3.92


def far(reach: float, limited: float, tail: bool) -> bool:
    """Whether a feature of that reach is not answered for.

    limited: from how many of its SDs on a residual of six SDs makes a score that is limited; tail: whether DP counts show a short one.

    >>> far(20.0, 9.0, False), far(50.0, 60.0, False), far(50.0, 30.0, True), far(50.0, 30.0, False), far(200.0, 300.0, True)
    (False, False, False, True, True)
    """
    return reach > FAR or (reach > max(NOTED, limited) and not tail)


def few_far(beyond: Array, noise: Array, edges: Array, per_sd: float, records: float) -> bool:
    """Whether few records are so long in the metric as every record beyond ten of a feature's SDs is.

    beyond, noise, edges (k,): the estimated number of records longer than each edge, and its SD.

    per_sd: the least length of a record per SD of the feature; records: their estimated number.

    >>> counts, noise = np.array([400.0, 5.0]), np.array([10.0, 7.0])
    >>> few_far(counts, noise, np.array([2.0, 8.0]), 1.0, 10_000.0), few_far(counts, noise, np.array([2.0, 12.0]), 1.0, 10_000.0)
    (True, False)
    """
    inside = np.flatnonzero(edges <= _OUTER * per_sd)
    if not inside.size:
        return False
    last = inside[-1]
    return bool(max(float(beyond[last]), 0.0) + _DOUBT * float(noise[last]) <= _SHARE * records)


def short_tail(
    counts: Array,
    sd: float,
    records: float,
    bounds: tuple[float, float],
    mean: float,
    spread: float,
    doubt: float = _DOUBT,
) -> bool:
    """Whether a feature's noisy histogram, 64 equal cells between its bounds, shows a short tail.

    `sd`: of the noise in each cell; records: their estimated number; mean, spread: of the feature, in the units of the bounds.

    doubt: how many SDs of the noise count against it.
    """
    low, high = bounds
    middles = low + (high - low) * (np.arange(CELLS) + 0.5) / CELLS
    # up to twice as far: beyond, noise alone adds up over the empty cells
    away = np.abs(middles - mean) / max(spread, 1e-300)
    own = (away > _BEYOND) & (away <= max(2 * _BEYOND, _BEYOND + 2 * (high - low) / CELLS / max(spread, 1e-300)))
    noise = sqrt(float(own.sum())) * sd
    return bool(max(float(counts[own].sum()), 0.0) + doubt * noise <= _SHARE * records)


def too_wide(design: ModelMatrix, schema: Schema) -> Iterator[str]:
    """What a plan says beforehand of features whose bounds reach far beyond their typical spread."""
    for term in design.terms:
        column = schema[term.plain] if term.plain is not None else None
        spread = column.spread if isinstance(column, Numeric | Integer) else None
        if spread is None:
            continue
        sd, mean = (spread.high - spread.low) / _WIDE, (spread.low + spread.high) / 2
        reach = max(term.high - mean, mean - term.low) / sd
        if reach > NOTED:
            low, high = max(mean - NEAR * sd, term.low), min(mean + NEAR * sd, term.high)
            then = (
                "it will go unanswered unless records are so many that none is limited there"
                if reach > FAR
                else "it goes unanswered unless DP counts show a short tail"
            )
            yield (
                f"the bounds of {term.name} reach {reach:.0f} typical standard deviations. A few records out there could move its "
                f"coefficient and no DP count can show them: {then}; declare it within [{low:.2g}, {high:.2g}] "
                "(values beyond count at the bound) or ask limit='none'"
            )


# The share above which, with 95 % certainty, a flag is raised.
_TOLERATED = 0.005
_TWO_SIDED, _ONE_SIDED = float(special.ndtri(0.975)), float(special.ndtri(0.95))

UNCHECKED = "not checked (clipping_check=False)"


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


def clipped_share(noisy: Noisy, records: float, unit: int = 1) -> tuple[bool, str]:
    """Whether a noisy number of clipped values exceeds 0.5% of `records`, and the share with its 95% margin.

    unit: what one value adds to the count. A share whose margin is more than all records is none.
    """
    records = max(records, 1.0)
    share, error = float(noisy.decode()[0]) / unit / records, sqrt(noisy.variance) / unit / records
    seen = share - _ONE_SIDED * error > _TOLERATED
    if _TWO_SIDED * error > 1:
        return seen, "not known: too few records for its noise"
    share = min(max(share, 0.0), 1.0)
    most = min(ceil(1000 * (share + _TWO_SIDED * error) - 1e-9), 1000)
    return seen, f"{share:.1%} clipped (at most {most / 10:.1f}%)"


def clipped_responses(release: Release, records: float) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Flag and fact of the paid diagnostic: which share of the responses lay outside their bounds."""
    if "clipping" not in release.statistics:
        return ("clipping_not_checked",), (("Clipped responses", UNCHECKED),)
    seen, text = clipped_share(release["clipping"], records, ClippedRows.unit)
    return ("response_clipped",) if seen else (), (("Clipped responses", text),)
