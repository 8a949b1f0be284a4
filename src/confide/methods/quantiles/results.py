"""Results of a release of quantiles: quantiles, distribution function, histogram, letter values and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, log10
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import clean, later
from confide.core import Release
from confide.errors import PlanError
from confide.guarantees import PureDP
from confide.methods.quantiles.reading import BAND_DRAWS, GroupQuantiles, QuantileGroup
from confide.methods.tables.intervals import difference
from confide.methods.tables.layout import Layout
from confide.methods.tables.reading import level_codes, level_places
from confide.methods.tables.results import missing_lines
from confide.noise import keyed_generator
from confide.results.base import BaseResult
from confide.results.pages.content import (
    ANSWERED,
    LITERAL,
    Column,
    check_alpha,
    flag_notes,
    folded,
    level_words,
    thousands,
)
from confide.results.pages.table import DOMINATES, dominated

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
else:
    pd = later("pandas")


_INTERVALS_FOR = {
    "population": "the population that the records are a sample of: sampling and privacy noise, any distribution, in whole bins",
    "dataset": "exactly these records: privacy noise alone, in whole bins",
}
_STYLES = ("-", "--", "-.", ":")
_QUARTILES = (0.25, 0.5, 0.75)
# Groups that a histogram shows, and classes whose edges are all named.
_PANELS, _TICKED = 8, 8
# About so many classes of a histogram when none are asked for.
_CLASSES = 12
# Ends that a reason names; of more it says how many.
_BOUNDS_NAMED = 4
# Bins of a histogram when nobody says how many.
_SHOWN_BINS = 32


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantileTable(BaseResult):
    """Table of quantiles by group, with the distribution from the same release.

    Parameters
    ----------
    groups : tuple of QuantileGroup
        All records first, then each group.
    q : tuple of float
        Quantiles in the table.
    inference : {"population", "dataset"}
        What the intervals are about.
    layout : Layout
        What the groups are.
    laid : bool, default False
        Whether a first round laid the bins where the records are.
    """

    groups: tuple[QuantileGroup, ...]
    q: tuple[float, ...]
    inference: str  # type: ignore[misc]  # of the class in families of one target
    layout: Layout
    laid: bool = False

    family: ClassVar[str] = "quantiles"
    rows_are: ClassVar[str] = "quantile"
    pictures: ClassVar[tuple[str, ...]] = ("box", "cdf", "histogram")
    own_columns: ClassVar[tuple[str, ...]] = ("term", "quantile", "n", "estimate", "ci_low", "ci_high", "flags")

    @classmethod
    def read(
        cls,
        release: Release,
        groups: tuple[QuantileGroup, ...],
        q: tuple[float, ...],
        inference: str,
        layout: Layout,
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
            status, reason = "no_information", f"privacy noise allows every value within the bounds {few}"
        elif all(low or open_ for low, open_ in rows):
            status, reason = "imprecise", f"the number of records does not exceed its noise {few}"
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
            layout=layout,
            laid="starts" in release.public,
            legend=missing_lines(release, layout),
        )

    # the table --------------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """One name for each row: "0.5", "sex=F, 0.5"."""
        return tuple(_name(group, q) for group in self.groups for q in self.q)

    @property
    def title(self) -> str:
        """Which quantiles, of what, by what."""
        if self.q == (0.5,):
            return f"Median {self.response}{self.layout.by()}"
        return self._titled("quartiles" if self.q == _QUARTILES else "quantiles")

    def _titled(self, what: str) -> str:
        return f"{self.response[:1].upper()}{self.response[1:]}{self.layout.by()}: {what}"

    @property
    def _places(self) -> NDArray[np.int64]:
        return level_places(self.layout.crossing, self.layout.shown)

    @property
    def _order(self) -> list[int]:
        """The groups level by level, with totals last."""
        return [int(place) for place in np.lexsort((*self._places[::-1], np.zeros(len(self.groups))))]

    @property
    def shown(self) -> list[int]:
        """Groups level by level, with totals last."""
        return [group * len(self.q) + place for group in self._order for place in range(len(self.q))]

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """Levels of the group, quantile, n, estimate, ci_low, ci_high, flags; one row for each quantile of each group."""
        found = [group.quantiles(np.array(self.q), alpha) for group in self.groups]
        each, several, points = len(self.q), len(self.groups) > 1, np.concatenate([one.estimates for one in found])
        levels = level_codes(self.layout.crossing, self._places)
        return (
            Column("term", self.names, "name", printed=False),
            *(
                Column(name, np.repeat(np.array(words, dtype=object)[codes], each), "text")
                for name, (codes, words) in levels.items()
            ),
            Column("quantile", np.tile(self.q, len(found)), "number", printed=each > 1 or not several),
            Column("n", np.repeat([group.size for group in self.groups], each), "number", whole=True, printed=several),
            Column("estimate", points, head="median" if self.q == (0.5,) else None),
            Column("ci_low", np.concatenate([one.low for one in found]), "interval"),
            Column("ci_high", np.concatenate([one.high for one in found]), "interval"),
            Column("flags", self._marks(found), "text"),
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
                    ("at_declared_bound", alone),
                    (DOMINATES, noisy and not whole),
                )
                marks.append(" ".join(name for name, on in flags if on))
        return marks

    def head(self) -> tuple[tuple[str, str], ...]:
        """What is covered, and how many records there are."""
        whole = self.groups[0]
        how = "laid where the records are" if self.laid else "public"
        size = f"{whole.size:,.0f} (SD of the noise {whole.size_sd:,.3g})"
        return (
            ("Intervals for", self.inference),
            ("Rows counted" if self.kept else "n", size),
            ("Bins", f"{whole.bins.size:,}, {how}"),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """The flags that occur, in words, and the guarantee."""
        return (*flag_notes(self.columns(0.05)[-1].values), ("In words", self.guarantee.describe()))

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
        values = self.to_frame(0.05)["estimate"].to_numpy()
        return pd.Series(values if self.status in ANSWERED else np.full_like(values, np.nan), index=list(self.names))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high), one row for each name.
        """
        frame = self.to_frame(check_alpha(alpha))
        return pd.DataFrame({0: frame["ci_low"], 1: frame["ci_high"]}).rename_axis(None)

    # further questions ------------------------------------------------------------------------------------------------

    def quantile(self, q: float | Sequence[float], alpha: float = 0.05) -> pd.DataFrame:
        """Any quantiles of each group, at no further cost.

        Parameters
        ----------
        q : float or sequence of float
            Probabilities, strictly between 0 and 1.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            The levels of the group, quantile, n, estimate, ci_low, ci_high and flags,
            one row for each quantile of each group.

        Raises
        ------
        PlanError
            A probability is not between 0 and 1.
        """
        return replace(self, q=checked_quantiles(q)).to_frame(alpha)

    def iqr(self, alpha: float = 0.05) -> pd.DataFrame:
        """Distance between the quartiles of each group.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            estimate, ci_low and ci_high, one row for each group.
        """
        rows = [group.gap(0.25, 0.75, check_alpha(alpha)) for group in self.groups]
        return _frame(rows, [group.name or "Total" for group in self.groups], ("estimate", "ci_low", "ci_high"))

    def diff(self, one: str, other: str, q: float | Sequence[float] = 0.5, alpha: float = 0.05) -> pd.DataFrame:
        """Quantiles of one group minus those of another, with MOVER intervals.

        Parameters
        ----------
        one, other : str
            Groups without common records, such as ``"sex=F"`` and ``"sex=M"``.
        q : float or sequence of float, default 0.5
            Probabilities, strictly between 0 and 1.
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            estimate, ci_low and ci_high, one row for each quantile.

        Raises
        ------
        PlanError
            A group does not exist, or the groups have records in common.
        """
        qs = np.array(checked_quantiles(q))
        parts = [self.group(name).quantiles(qs, check_alpha(alpha)) for name in (one, other)]
        if one == other or "" in (self.group(one).name, self.group(other).name):
            raise PlanError(
                "a difference is between two groups that have no records in common", "name two cells of the crossing"
            )
        first, second = ((part.estimates, part.low, part.high) for part in parts)
        found = difference(first, second)
        return _frame(np.stack(found, axis=1), [f"{value:g}" for value in qs], ("estimate", "ci_low", "ci_high"))

    def letter_values(self, alpha: float = 0.05) -> pd.DataFrame:
        """Tukey's letter values of each group.

        Letters are M for the median, F for the quartiles, E for the eighths, and so
        on, while there are enough records beyond them.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level of the intervals.

        Returns
        -------
        DataFrame
            Lower and upper quantile, each with the ends of its interval.
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
        """Distribution function of a group, at the upper edge of each bin.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level of the intervals and of the band.
        group : str, optional
            Name of a group, such as ``"sex=F"``. By default all records.

        Returns
        -------
        DataFrame
            x; estimate, which is F(x); std_err; ci_low and ci_high at each point;
            band_low and band_high at all points at once. Between points, F lies
            between band_low of the edge below and band_high of the edge above.

        Raises
        ------
        PlanError
            The group does not exist.
        """
        own = self.group(group)
        se, low, high = own.pointwise(check_alpha(alpha))
        half, f = self._band(own, alpha), own.distribution
        # the last point is 1 by definition
        below, above = np.clip(f - half, 0.0, 1.0), np.clip(f + half, 0.0, 1.0)
        below[-1] = 1.0
        columns = {"x": own.bins.highs, "estimate": f, "std_err": se, "ci_low": low, "ci_high": high}
        return pd.DataFrame({**columns, "band_low": below, "band_high": above})

    def histogram(
        self,
        bins: int = _SHOWN_BINS,
        group: str | None = None,
        alpha: float = 0.05,
        *,
        edges: Sequence[float] | None = None,
    ) -> pd.DataFrame:
        """Numbers of records by class, with pointwise intervals.

        Parameters
        ----------
        bins : int, default 32
            Most classes to show. Neighboring bins of the release are taken together.
        group : str, optional
            Name of a group, such as ``"sex=F"``. All records when left out.
        alpha : float, default 0.05
            1 - alpha is the level of the intervals.
        edges : sequence of float, optional
            Edges of the classes instead of `bins`, in ascending order. Each is moved
            to the nearest edge of the released bins.

        Returns
        -------
        DataFrame
            left, right, count, ci_low, ci_high and density: the share of the group's
            records in the class over its width.

        Raises
        ------
        PlanError
            For an unknown group, and for edges that are not ascending or closer
            together than the bins.
        """
        own = self.group(group)
        if not isinstance(bins, int) or bins < 1:
            raise PlanError(f"bins must be a whole number, at least 1, got {bins!r}", "write histogram(bins=32)")
        at = np.unique(np.linspace(0, own.bins.size, min(bins, own.bins.size) + 1).astype(np.int64))
        at = at if edges is None else self._positions(edges)
        counts, low, high = own.between(at, check_alpha(alpha))
        edge = np.array(own.bins.edges)[at]
        density = np.maximum(counts, 0.0) / max(own.size, 1.0) / np.diff(edge)
        columns = {"left": edge[:-1], "right": edge[1:], "count": counts, "ci_low": low, "ci_high": high}
        return pd.DataFrame({**columns, "density": density})

    def group(self, name: str | None = None) -> QuantileGroup:
        """One group by its name.

        Parameters
        ----------
        name : str, optional
            Name of a group, such as ``"sex=F"``. By default all records.

        Returns
        -------
        QuantileGroup
            Counts of its bins, and what can be read of them.

        Raises
        ------
        PlanError
            The group does not exist.
        """
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

    def plot(
        self,
        alpha: float | None = None,
        ax: Axes | None = None,
        *,
        names: str | Sequence[str] | None = None,
        kind: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        edges: Sequence[float] | None = None,
    ) -> Axes:
        """Draw the distribution of each group with its intervals.

        Parameters
        ----------
        alpha : float, default 0.05
            1 - alpha is the level of the intervals.
        ax : matplotlib Axes, optional
            Axes to draw on. A new figure is made when left out.
        names : str or sequence of str, optional
            Quantiles to draw as a forest plot, such as ``"0.5"``.
        kind : {"box", "cdf", "histogram"}, default "box"
            Quartiles and median of each group, distribution functions, or shares
            of records by class.
        title : str, optional
            Title instead of the result's own.
        labels : mapping of str to str, optional
            Words instead of names on axes and in legends, such as
            ``{"income": "Income (dollars)"}``.
        edges : sequence of float, optional
            Edges of the classes of the histogram, in ascending order. Each is moved
            to the nearest edge of the released bins.

        Returns
        -------
        matplotlib Axes
            The axes, whose ``figure`` is the picture.

        Raises
        ------
        PlanError
            For a kind, row or label that is not there, and for edges that are not
            ascending or closer together than the bins.
        """
        if edges is not None:
            kind = kind or "histogram"
            if kind != "histogram":
                raise PlanError(
                    f"edges are of a histogram, got kind={kind!r}", "write plot(kind='histogram', edges=edges)"
                )
            self._positions(edges)
            edges = tuple(map(float, edges))
        own = self.looking(kind=kind, edges=edges)
        return super(QuantileTable, own).plot(alpha, ax, names=names, title=title, labels=labels)

    @property
    def drawn_as(self) -> str:
        """The kind of the picture."""
        return self.look.kind or self.pictures[0]

    @property
    def drawn_groups(self) -> tuple[QuantileGroup, ...]:
        """All records alone where there is no other group; all records are a separate box, and have no curve where groups have."""
        every = tuple(self.groups[place] for place in self._order)
        return every if self.drawn_as == "box" else self.groups[1:] or self.groups

    def _positions(self, edges: Sequence[float]) -> NDArray[np.int64]:
        """The nearest edges of the bins. `PlanError` where they are not ascending or closer together than the bins."""
        known = np.array(self.groups[0].bins.edges, dtype=np.float64)
        given = np.array([float(edge) for edge in edges], dtype=np.float64)
        if len(given) < 2 or not (np.diff(given) > 0).all():
            raise PlanError(
                f"edges must be two numbers or more in ascending order, got {list(edges)!r}", "write edges=[0, 50, 100]"
            )
        at = np.abs(known[None, :] - given[:, None]).argmin(axis=1)
        if (np.diff(at) == 0).any():
            first = int(np.flatnonzero(np.diff(at) == 0)[0])
            raise PlanError(
                f"the edges {given[first]:g} and {given[first + 1]:g} lie in one of the released bins, whose edges near them are "
                f"{', '.join(f'{edge:g}' for edge in known[max(at[first] - 1, 0) : at[first] + 2])}",
                "give edges further apart",
            )
        return np.asarray(at, dtype=np.int64)

    def draw(self, ax: Axes, alpha: float) -> None:
        """The picture that is asked for."""
        {"box": _box, "cdf": _cdf, "histogram": _histogram}[self.drawn_as](self, ax, alpha)

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        from confide.results.pages.plots import about

        level = f"{level_words(alpha)} confidence interval"
        if self.drawn_as == "box":
            return (
                f"Boxes: estimated first quartile, median and third quartile. Thin lines below: their {level}s{about(self)}. No single "
                "record is shown; there are no outliers to see."
            )
        if self.drawn_as == "cdf":
            return f"Lines: estimated shares of records up to each value. Bands: they hold the whole line with {level_words(alpha)}."
        found = self.histogram(edges=self.drawn_edges, alpha=alpha)
        said = f"Bars: estimated shares of records by class. Whiskers: {level}s{about(self)}."
        said += " Hatched: includes values clipped to the bounds."
        used = [*found["left"], found["right"].iloc[-1]]
        if self.look.edges and not np.allclose(used, self.look.edges, rtol=1e-9, atol=0.0):
            said += f" The released bins have the edges {', '.join(map(_rounded, used))}."
        return f"{said} The first {_PANELS} groups are drawn." if len(self.drawn_groups) > _PANELS else said

    @property
    def picture_title(self) -> str:
        """What is drawn, of what, by what."""
        what = {
            "box": "quartiles",
            "cdf": "share of records up to each value",
            "histogram": "share of records by class",
        }
        return self._titled(what[self.drawn_as])

    @property
    def drawn_edges(self) -> tuple[float, ...]:
        """Edges of the classes of the histogram: those asked for, else round ones among most records, and the bounds."""
        if self.look.edges:
            return self.look.edges
        from matplotlib.ticker import MaxNLocator  # here, because it is slow to load

        low, high = self.groups[0].quantiles(np.array([0.01, 0.99]), 0.05).estimates
        known = np.array(self.groups[0].bins.edges, dtype=np.float64)
        ticks = MaxNLocator(_CLASSES).tick_values(float(low), float(high))
        at = {int(np.abs(known - tick).argmin()) for tick in ticks if known[0] < tick < known[-1]}
        return tuple(float(known[k]) for k in sorted({0, *at, len(known) - 1}))

    @property
    def picture_size(self) -> tuple[float, float]:
        """High enough for a box or a panel of each group."""
        many = min(len(self.drawn_groups), _PANELS)
        return 6.4, {
            "box": 1.5 + 0.5 * len(self.groups),
            "cdf": 4.4,
            "histogram": 1.8 + 1.6 * many + 1.0 * (many == 1),
        }[self.drawn_as]


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
        raise PlanError(f"quantiles must be numbers strictly between 0 and 1, got {q!r}", "write (0.25, 0.5, 0.75)")
    return given


# pictures --------------------------------------------------------------------------------------------------------------


def _label(ax: Axes, result: QuantileTable) -> None:
    ax.set_xlabel(folded(result.response, 60), **LITERAL)
    thousands(ax.xaxis)


def _said(group: QuantileGroup) -> str:
    """A group's name for a picture: "sex: male"."""
    return re.sub(r"(^|, )([^=,]+)=", r"\1\2: ", clean(group.name))


def _box(result: QuantileTable, ax: Axes, alpha: float) -> None:
    """One box for each group from first to third quartile, a line at the median, and below it the interval of each of the three."""
    from confide.results.pages.plots import COLORS, INK, whiskers

    places = np.arange(len(result.groups))[::-1]
    single = len(result.groups) == 1
    for place, group in zip(places, result.drawn_groups, strict=True):
        found = group.quantiles(np.array(_QUARTILES), alpha)
        first, median, third = found.estimates
        ax.fill_between(
            [first, third], place - 0.12, place + 0.3, facecolor=COLORS[0], alpha=0.35, edgecolor=INK, linewidth=0.9
        )
        ax.vlines(median, place - 0.12, place + 0.3, color=INK, linewidth=2.2)
        # the median's has a place of its own: they overlap where quartiles are close
        at = np.array([place - 0.22, place - 0.34, place - 0.22])
        whiskers(ax, at, found.estimates, found.low, found.high, flat=True, size=2.5)
        ax.scatter(found.estimates, at, s=9, color=INK, zorder=5)
    names = [folded(_said(group) or "Total") for group in result.drawn_groups]
    ax.set_yticks(places, [""] if single else names, **LITERAL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(-0.6, len(result.groups) - 0.5)
    low, high = ax.get_xlim()
    edges = result.groups[0].bins.edges
    ax.set_xlim(max(low, float(edges[0])), min(high, float(edges[-1])))
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
    """Steps with a band for each group."""
    from confide.results.pages.plots import LINE_COLORS

    for place, group in enumerate(result.drawn_groups):
        color, style = LINE_COLORS[place % len(LINE_COLORS)], _STYLES[place % len(_STYLES)]
        frame = result.cdf(alpha, group.name or None)
        x = np.concatenate([[group.bins.edges[0]], frame["x"]])
        steps = {name: np.concatenate([[0.0], frame[name]]) for name in ("estimate", "band_low", "band_high")}
        label = _said(group) or None
        ax.plot(x, steps["estimate"], color=color, linestyle=style, linewidth=1.8, drawstyle="steps-post", label=label)
        # between edges the function is above the one below and beneath the one above
        above = np.append(steps["band_high"][1:], 1.0)
        ax.fill_between(x, steps["band_low"], above, step="post", color=color, alpha=0.2, linewidth=0)
    ax.set_ylim(0.0, 1.02)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.6g}")
    ax.set_ylabel("share of records up to this value (%)")
    _label(ax, result)


def _histogram(result: QuantileTable, ax: Axes, alpha: float) -> None:
    """A panel for each group: bars that touch, with the interval of each class; classes at a bound are hatched."""
    from confide.results.pages.plots import COLORS, HATCH, INK, pale, panels, whiskers

    groups = result.drawn_groups[:_PANELS]
    every = panels(ax, [1.1] * len(groups), 0.55)
    tops = []
    for panel, group in zip(every, groups, strict=True):
        frame = result.histogram(edges=result.drawn_edges, group=group.name or None, alpha=alpha)
        left, right = frame["left"].to_numpy(), frame["right"].to_numpy()
        width, bins = right - left, group.bins.edges
        even = np.allclose(width, width[0], rtol=1e-6)
        # of unequal classes areas are shares: per a round part of the axis, near the usual width
        unit = float(width[0]) if even else 10.0 ** round(log10(float(np.median(width))))
        part = unit / width / max(group.size, 1.0)
        heights, low, high = (frame[name].to_numpy() * part for name in ("count", "ci_low", "ci_high"))
        heights = np.maximum(heights, 0.0)
        bound = (left <= bins[0]) | (right >= bins[-1])
        for own, hatch in ((~bound, ""), (bound, HATCH)):
            color = pale(COLORS[5]) if hatch else COLORS[5]
            panel.bar(
                left[own],
                heights[own],
                width[own],
                align="edge",
                linewidth=0.8,
                facecolor=color,
                edgecolor=INK,
                hatch=hatch,
            )
        whiskers(panel, (left + right) / 2, heights, np.maximum(low, 0.0), high, size=min(3.0, 60 / len(left)))
        panel.set_xlim(float(left[0]), float(right[-1]))
        panel.set_title(folded(_said(group), 60), loc="left", fontsize="small", **LITERAL)
        tops.append(float(np.nanmax(np.concatenate([heights, high]))))
        if len(left) <= _TICKED:
            panel.set_xticks([*left, right[-1]])
            panel.xaxis.set_major_formatter(lambda value, _: _rounded(value))
        else:
            thousands(panel.xaxis)
        panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.6g}")
        panel.locator_params(axis="y", nbins=4 if len(groups) > 1 else 6)
    for panel in every:
        panel.set_ylim(0.0, 1.05 * max(tops))
    words = "share of records (%)" if even else f"share of records (%)\nper {unit:,g}"
    every[len(every) // 2].set_ylabel(words)
    every[-1].set_xlabel(folded(result.response, 60), **LITERAL)


def _rounded(value: float) -> str:
    """An edge in four figures, with separators."""
    return f"{float(f'{value:.4g}'):,.12g}"
