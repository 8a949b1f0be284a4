"""Quantiles as they are read, and all else that the same release says: distribution function, histogram, letter values, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide._helpers import clean, later
from confide.core import Release
from confide.errors import PlanError
from confide.guarantees import PureDP
from confide.methods.quantiles.reading import BAND_DRAWS, GroupQuantiles, QuantileGroup
from confide.methods.tables.intervals import difference
from confide.noise import keyed_generator
from confide.results.base import DOMINATED, DOMINATES, BaseResult, dominated
from confide.results.pages.content import (
    ANSWERED,
    LITERAL,
    Column,
    Flag,
    check_alpha,
    level_heads,
    thousands,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


_DECLARED_BOUND = Flag(
    "at_declared_bound",
    "an end of this interval is the declared bound alone: noise may be all that lies beyond the quantile, and the records did not move it",
)

_INTERVALS_FOR = {
    "population": "the population that the records are a sample of: sampling and privacy noise, any distribution, in whole bins",
    "dataset": "these very records: privacy noise alone, in whole bins",
}
_FLAGS = {
    "count_below_noise": "the number of records is below three standard deviations of its privacy noise",
    "whole_range": "the noise leaves every value within the bounds possible",
    str(_DECLARED_BOUND): _DECLARED_BOUND.words,
    DOMINATES: DOMINATED,
}
_DRAWINGS = ("box", "cdf", "density")
_COLOURS = ("#1f4e79", "#d1772e", "#4c8c4a", "#8a5a9c", "#7f7f7f", "#b23a48")
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
# Ends that a reason names; of more it says how many.
_BOUNDS_NAMED = 4
# Bins of a histogram when nobody says how many.
_SHOWN_BINS = 32


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantileTable(BaseResult):
    """Quantiles of each group, and everything else that the same release says of its distribution.

    groups: all records first; q: the quantiles in the table; inference: "population" or "dataset"; drawing: the picture that `plot` and
    `report` show, "box", "cdf" or "density".
    """

    groups: tuple[QuantileGroup, ...]
    q: tuple[float, ...]
    inference: str  # type: ignore[misc]  # of the class in families of one target
    drawing: str = "box"
    laid: bool = False

    family: ClassVar[str] = "quantiles"
    rows_are: ClassVar[str] = "quantile"

    @classmethod
    def read(
        cls,
        release: Release,
        groups: tuple[QuantileGroup, ...],
        q: tuple[float, ...],
        inference: str,
        legend: tuple[tuple[str, str], ...] = (),
    ) -> Self:
        """The result of a release."""
        found = [(group, group.quantiles(np.array(q), 0.05)) for group in groups]
        rows = [(group.below_noise, bool(one)) for group, own in found for one in own.open]
        bound = [
            (_name(group, one), group, one, sides)
            for group, own in found
            for one, whole, sides in zip(q, own.open, own.bound, strict=True)
            if any(sides) and not (whole or group.below_noise)
        ]
        status, reason = "valid", ""
        few = "in every group; ask for fewer groups or a larger budget"
        if all(open_ for _, open_ in rows):
            status, reason = "no_information", f"the noise leaves every value within the bounds possible {few}"
        elif all(low or open_ for low, open_ in rows):
            status, reason = "imprecise", f"the number of records does not stand above its noise {few}"
        elif bound:
            status, reason = (
                "partial",
                _open_ends(bound, "epsilon" if isinstance(release.plan.requested, PureDP) else "mu"),
            )
        measure = release.plan.target.removeprefix("quantiles of ").split(" by ")[0].split(", clipped")[0]
        return cls.of(
            release,
            response=measure,
            intervals_for=_INTERVALS_FOR[inference],
            status=status,
            reason=reason,
            groups=groups,
            q=q,
            inference=inference,
            laid="starts" in release.public,
            legend=legend,
        )

    # the table --------------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each row: "0.5", "sex=F, 0.5"."""
        return tuple(_name(group, q) for group in self.groups for q in self.q)

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """estimate, ci_low, ci_high, flag; one row for each quantile of each group."""
        found = [group.quantiles(np.array(self.q), alpha) for group in self.groups]
        (low, high), marks = level_heads(alpha), self._marks(found)
        return (
            Column("term", self.names, "name", head=self.rows_are),
            Column("estimate", np.concatenate([one.estimates for one in found])),
            Column("ci_low", np.concatenate([one.low for one in found]), "interval", head=low),
            Column("ci_high", np.concatenate([one.high for one in found]), "interval", head=high),
            Column("flags", marks, "text", printed=any(marks)),
        )

    def _marks(self, found: Sequence[GroupQuantiles]) -> list[str]:
        marks = []
        for group, own in zip(self.groups, found, strict=True):
            rules = dominated(group.noise_share(own.q)) & (group.part > 0)
            for whole, sides, noisy in zip(own.open, own.bound, rules, strict=True):
                alone = any(sides) and not (whole or group.below_noise)
                flags = (
                    ("count_below_noise", group.below_noise),
                    ("whole_range", whole),
                    (str(_DECLARED_BOUND), alone),
                    (DOMINATES, noisy and not whole),
                )
                marks.append(" ".join(name for name, on in flags if on))
        return marks

    def head(self) -> tuple[tuple[str, str], ...]:
        """What is covered, and how many records there are."""
        whole = self.groups[0]
        how = "laid where the records are" if self.laid else "public"
        size = f"{whole.size:,.0f} (noise sd {whole.size_sd:,.3g})"
        return (
            ("Intervals for", self.inference),
            ("Rows counted" if self.kept else "n", size),
            ("Bins", f"{whole.bins.size:,}, {how}"),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """The flags that occur, in words, and the guarantee."""
        used = {name for mark in self.columns(0.05)[-1].values for name in str(mark).split()}
        own = tuple((name, words) for name, words in _FLAGS.items() if name in used)
        return (*own, ("In words", self.guarantee.describe()))

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON: the reading, and of each group its number of records and its distribution function."""
        groups = [
            {"name": group.name, "size": group.size, "size_sd": group.size_sd, "distribution": group.distribution}
            for group in self.groups
        ]
        return {"inference": self.inference, "edges": list(self.groups[0].bins.edges), "groups": groups}

    @property
    def params(self) -> pd.Series[float]:
        """The quantiles by name; NaN where the status says that they mean nothing."""
        values = np.asarray(self.columns(0.05)[1].values, dtype=np.float64)
        return pd.Series(values if self.status in ANSWERED else np.full_like(values, np.nan), index=list(self.names))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha, columns 0 (low) and 1 (high), one row for each name."""
        columns = self.columns(check_alpha(alpha))
        return pd.DataFrame({0: columns[2].values, 1: columns[3].values}, index=list(self.names))

    # further questions ------------------------------------------------------------------------------------------------

    def quantile(self, q: float | Sequence[float], alpha: float = 0.05) -> pd.DataFrame:
        """Any quantiles of each group: estimate, ci_low, ci_high, flags. Reading them costs nothing."""
        return replace(self, q=checked_quantiles(q)).to_frame(alpha)

    def iqr(self, alpha: float = 0.05) -> pd.DataFrame:
        """The distance between the quartiles of each group: estimate, ci_low, ci_high."""
        rows = [group.gap(0.25, 0.75, check_alpha(alpha)) for group in self.groups]
        return _frame(rows, [group.name or "all" for group in self.groups], ("estimate", "ci_low", "ci_high"))

    def diff(self, one: str, other: str, q: float | Sequence[float] = 0.5, alpha: float = 0.05) -> pd.DataFrame:
        """Quantiles of one group less those of another, disjoint from it, such as diff("sex=F", "sex=M"): estimate, ci_low, ci_high (MOVER)."""
        qs = np.array(checked_quantiles(q))
        parts = [self.group(name).quantiles(qs, check_alpha(alpha)) for name in (one, other)]
        if one == other or "" in (self.group(one).name, self.group(other).name):
            raise PlanError(
                "a difference is between two groups that have no records in common; name two cells of the crossing"
            )
        first, second = ((part.estimates, part.low, part.high) for part in parts)
        found = difference(first, second)
        return _frame(np.stack(found, axis=1), [f"{value:g}" for value in qs], ("estimate", "ci_low", "ci_high"))

    def letter_values(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tukey's letter values of each group: M the median, F the quartiles, E the eighths, as far out as there are records.

        Columns: lower and upper quantile, each with the ends of its interval.
        """
        rows, names = [], []
        for group in self.groups:
            for letter, depth in group.letters():
                both = group.quantiles(np.array([depth, 1 - depth]), check_alpha(alpha))
                rows.append([v for k in (0, 1) for v in (both.estimates[k], both.low[k], both.high[k])])
                names.append(f"{group.name}, {letter}" if group.name else letter)
        heads = ("lower", "lower_low", "lower_high", "upper", "upper_low", "upper_high")
        return _frame(rows, names, heads)

    def cdf(self, alpha: float = 0.05, group: str | None = None) -> pd.DataFrame:
        """The distribution function of a group, all records when left out, at the upper edge of each bin.

        Columns: x; estimate, F(x); std_err; ci_low, ci_high: at each point; band_low, band_high: at all points at once, and between them: F
        lies between band_low of the edge below and band_high of the edge above.
        """
        own = self.group(group)
        se, low, high = own.pointwise(check_alpha(alpha))
        half, f = self._band(own, alpha), own.distribution
        # the last point is 1 by definition
        below, above = np.clip(f - half, 0.0, 1.0), np.clip(f + half, 0.0, 1.0)
        below[-1] = 1.0
        columns = {"x": own.bins.highs, "estimate": f, "std_err": se, "ci_low": low, "ci_high": high}
        return pd.DataFrame({**columns, "band_low": below, "band_high": above})

    def histogram(self, bins: int = _SHOWN_BINS, group: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Numbers of records between edges, neighbouring bins taken together to at most so many: left, right, count, ci_low, ci_high, density.

        density: the share of the group's records in the bin over its width. Pointwise intervals of counts.
        """
        own = self.group(group)
        if not isinstance(bins, int) or bins < 1:
            raise PlanError(f"bins must be a whole number, at least 1, got {bins!r}; write histogram(bins=32)")
        at = np.unique(np.linspace(0, own.bins.size, min(bins, own.bins.size) + 1).astype(np.int64))
        counts, low, high = own.between(at, check_alpha(alpha))
        edges = np.array(own.bins.edges)[at]
        density = np.maximum(counts, 0.0) / max(own.size, 1.0) / np.diff(edges)
        return pd.DataFrame(
            {
                "left": edges[:-1],
                "right": edges[1:],
                "count": counts,
                "ci_low": low,
                "ci_high": high,
                "density": density,
            }
        )

    def group(self, name: str | None = None) -> QuantileGroup:
        """One group by its name, such as "sex=F"; all records when left out. `PlanError` for one that is not there."""
        if name is None:
            return self.groups[0]
        for own in self.groups:
            if own.name == name:
                return own
        known = ", ".join(repr(own.name) for own in self.groups if own.name) or "none but all records"
        raise PlanError(f"there is no group {name!r}; there are {known}")

    @cached_property
    def _noise(self) -> Array:
        """Draws of the noise of counts, in the strategy's units, (draws, m): the same for every group."""
        own = self.groups[0].strategy
        generator = keyed_generator(self.drawn_sha256, "distribution", "noise")
        return np.asarray(generator.standard_normal((BAND_DRAWS, self.groups[0].bins.size)) @ own.root.T)

    def _band(self, own: QuantileGroup, alpha: float) -> float:
        generator = keyed_generator(self.drawn_sha256, "distribution", str(self.groups.index(own)), self.inference)
        return own.band(alpha, self._noise, generator)

    # pictures ---------------------------------------------------------------------------------------------------------

    def plot(  # type: ignore[override]
        self, kind: str | None = None, ax: Axes | None = None, *, alpha: float | None = None
    ) -> Axes:
        """A picture; returns the Axes. kind: "box" (quartiles, whiskers at 5 % and 95 %), "cdf" (steps with the band), "density"."""
        from confide.results.pages.plots import drawn

        if kind is not None and kind not in _DRAWINGS:
            raise PlanError(f"kind must be one of {', '.join(_DRAWINGS)}, got {kind!r}; write plot('box')")
        own = self if kind is None else replace(self, drawing=kind)
        return drawn(own, self._alpha(alpha), ax, None)

    def draw(self, ax: Axes, alpha: float) -> None:
        """The picture that `drawing` names."""
        {"box": _box, "cdf": _cdf, "density": _density}[self.drawing](self, ax, alpha)

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        level = f"{1 - alpha:.0%}"
        return {
            "box": f"Boxes reach from quartile to quartile, the line in them is the median, whiskers end at the 5 % and the 95 % quantile; "
            f"beside each, a thin line is its {level} interval.",
            "cdf": f"The share of records up to each value, with a band that holds the whole curve at {level}.",
            "density": f"The share of records in each bin over its width, with its {level} interval.",
        }[self.drawing]

    @property
    def picture_size(self) -> tuple[float, float]:
        """Wide enough, and a box high for each group."""
        return (6.4, 1.6 + 0.5 * len(self.groups)) if self.drawing == "box" else (6.4, 4.4)


def _name(group: QuantileGroup, q: float) -> str:
    return f"{group.name}, {q:g}" if group.name else f"{q:g}"


def _frame(rows: Any, names: list[str], heads: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(np.array(rows, dtype=np.float64).reshape(-1, len(heads)), index=names, columns=list(heads))


def checked_quantiles(q: Any) -> tuple[float, ...]:
    """Probabilities strictly between 0 and 1, as a tuple; `PlanError` otherwise."""
    try:
        given = tuple(float(one) for one in (q if isinstance(q, (tuple, list, np.ndarray)) else (q,)))
    except (TypeError, ValueError, OverflowError):
        given = ()
    if not given or not all(0 < one < 1 for one in given):
        raise PlanError(f"quantiles must be numbers strictly between 0 and 1, got {q!r}; write (0.25, 0.5, 0.75)")
    return given


# pictures --------------------------------------------------------------------------------------------------------------


def _label(ax: Axes, result: QuantileTable) -> None:
    ax.set_xlabel(clean(result.response), **LITERAL)
    thousands(ax.xaxis)


def _box(result: QuantileTable, ax: Axes, alpha: float) -> None:
    """One box for each group: quartiles and median, whiskers at 5 % and 95 %, thin lines for the intervals of the three."""
    places = np.arange(len(result.groups))[::-1]
    for place, group in zip(places, result.groups, strict=True):
        found = group.quantiles(np.array(_BOX), alpha)
        least, first, median, third, most = found.estimates
        ax.hlines(place, least, first, color=_COLOURS[0])
        ax.hlines(place, third, most, color=_COLOURS[0])
        ax.vlines([least, most], place - 0.1, place + 0.1, color=_COLOURS[0])
        ax.fill_between([first, third], place - 0.25, place + 0.25, color=_COLOURS[0], alpha=0.25, linewidth=0)
        ax.vlines(median, place - 0.25, place + 0.25, color=_COLOURS[0], linewidth=2)
        for k, height in ((1, 0.33), (2, 0.38), (3, 0.33)):
            ax.hlines(place - height, found.low[k], found.high[k], color=_COLOURS[1], linewidth=2)
    ax.set_yticks(places, [clean(group.name or "all records") for group in result.groups], **LITERAL)
    ax.set_ylim(-0.7, len(result.groups) - 0.3)
    _label(ax, result)


def _open_ends(rows: Iterable[tuple[str, QuantileGroup, float, Sequence[bool]]], budget: str) -> str:
    """Which ends are the declared bounds alone, and about how many records of their group, or how many times the budget, would give them.

    rows: the name of a quantile, what was read of its group, q, and whether its low and its high end are unbacked; budget: "epsilon", "mu".
    """
    ends, records, times = [], 0.0, 0.0
    for name, own, q, sides in rows:
        for side, there in zip(("low", "high"), sides, strict=True):
            if not there:
                continue
            ends.append(f"the {side} end of {name}")
            enough, more = own.backing(q, side == "high")
            records, times = max(records, enough), max(times, more)
    named = ", ".join(ends[:_BOUNDS_NAMED]) + (
        f" and {len(ends) - _BOUNDS_NAMED} more" if len(ends) > _BOUNDS_NAMED else ""
    )
    are = f"{named} {'is the declared bound' if len(ends) == 1 else 'are the declared bounds'} alone"
    more_of_it = f", or {times:.1f} times this {budget}," if times < inf else ""
    return f"{are}: noise may be all that lies beyond; about {ceil(records):,} records{more_of_it} would do"


def _cdf(result: QuantileTable, ax: Axes, alpha: float) -> None:
    """Steps with a band for each group; all records alone where there is no other group."""
    groups = result.groups[1:] or result.groups
    for colour, group in zip(_COLOURS * len(groups), groups, strict=False):
        frame = result.cdf(alpha, group.name or None)
        x = np.concatenate([[group.bins.edges[0]], frame["x"]])
        steps = {name: np.concatenate([[0.0], frame[name]]) for name in ("estimate", "band_low", "band_high")}
        ax.plot(x, steps["estimate"], color=colour, drawstyle="steps-post", label=clean(group.name) or None)
        # between edges the function is above the one below and beneath the one above
        above = np.append(steps["band_high"][1:], 1.0)
        ax.fill_between(x, steps["band_low"], above, step="post", color=colour, alpha=0.15, linewidth=0)
    ax.set_ylim(0.0, 1.02)
    ax.set_ylabel("share of records up to this value")
    _label(ax, result)


def _density(result: QuantileTable, ax: Axes, alpha: float) -> None:
    """A histogram for each group, with the interval of each bin; all records alone where there is no other group."""
    groups = result.groups[1:] or result.groups
    for colour, group in zip(_COLOURS * len(groups), groups, strict=False):
        frame = result.histogram(group=group.name or None, alpha=alpha)
        edges, size = np.append(frame["left"], frame["right"].iloc[-1]), max(group.size, 1.0)
        ax.stairs(frame["density"], edges, color=colour, label=clean(group.name) or None)
        middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        ax.vlines(
            middle,
            frame["ci_low"] / size / width,
            frame["ci_high"] / size / width,
            color=colour,
            alpha=0.5,
            linewidth=1,
        )
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("share of records, for one unit")
    _label(ax, result)
