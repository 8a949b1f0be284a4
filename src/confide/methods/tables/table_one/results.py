"""Table 1 as it is read: a wide table to print, a long frame with intervals, standardized differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide._helpers import clean, head, later
from confide.core import Release
from confide.errors import PlanError
from confide.methods.tables.table_one.reading import Cells, Level, Numeric, Row
from confide.results.base import BaseResult, Foreseen
from confide.results.pages.content import LITERAL, Column, check_alpha, either, folded, level_words
from confide.results.pages.table import DASH, DOMINATED, DOMINATES, WIDEST, Laid, dominated

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


_INTERVALS_FOR = {
    "population": "the population that the records are a sample of: sampling error and privacy noise",
    "dataset": "exactly these records: privacy noise only, no sampling error",
}
_FEW = 3.0
# The group of all records.
_ALL = "Total"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TableOneResult(BaseResult):
    """Rows of numbers for all records and for each group. `to_frame` is long, with intervals; the printed table is wide, without them.

    rows; groups: their names; sizes: n of all records and of each group. `size_sd`: the SD of the noise of one group's n. `inference`:
    "population" or "dataset"; weights: their column, with sizes as sums of weights. `heaviest`: the largest weight, or 1. `missing`:
    numbers of missing values by column, each with the SD of its noise.
    """

    rows: tuple[Row, ...]
    groups: tuple[str, ...]
    sizes: Array
    size_sd: float
    inference: str  # type: ignore[misc]  # of the class in families of one target
    weights: str | None = None
    heaviest: float = 1.0
    missing: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    family: ClassVar[str] = "Table One"
    rows_are: ClassVar[str] = "row"

    @classmethod
    def read(
        cls,
        release: Release,
        rows: tuple[Row, ...],
        groups: tuple[str, ...],
        sizes: Array,
        size_sd: float,
        inference: str,
        *,
        heaviest: float = 1.0,
        **others: Any,
    ) -> Self:
        """The result of a release."""
        stated: dict[str, str] = {}
        if (sizes[1:] < _FEW * size_sd).all():
            stated = {
                "status": "imprecise",
                "reason": "no group has an n above three standard deviations of its noise; use fewer groups or a larger budget",
            }
        return cls.of(
            release,
            intervals_for=_INTERVALS_FOR[inference],
            rows=rows,
            groups=groups,
            sizes=heaviest * sizes,
            size_sd=heaviest * size_sd,
            inference=inference,
            heaviest=heaviest,
            **others,
            **stated,
        )

    @property
    def title(self) -> str:
        by = dict.fromkeys(name.partition("=")[0] for name in self.groups if "=" in name)
        return "Table 1. Characteristics" + (f" by {', '.join(by)}" if by else "")

    @property
    def _shown(self) -> tuple[str, ...]:
        """The names of the columns of numbers: all records, then the groups where there are any."""
        return (_ALL, *(name for name in self.groups if name))

    @property
    def _what(self) -> str:
        """What sizes are."""
        return "n" if self.weights is None else f"sum of {self.weights}"

    def _cells(self, alpha: float) -> list[tuple[Row, Cells]]:
        return [(row, cells) for row in self.rows for cells in row.cells(alpha)]  # type: ignore[attr-defined]

    def columns(self, alpha: float) -> tuple[Column, ...]:
        """The wide table: mean (SD), median [quartiles] or number (share) of each row, in one column for each group."""
        cells = [one for _, one in self._cells(alpha)]
        sizes = [f"{size:,.0f}" for size in self.sizes]
        found = [Column("term", [self._what, *(one.name for one in cells)], "name", head=self.rows_are)]
        for k, name in enumerate(self._shown):
            found.append(Column(name, [sizes[k], *(one.texts[k] for one in cells)], "text"))
        if len(self.groups) == 2:
            differences = [self._difference(row, one, 1, 2, alpha) for row, one in self._cells(alpha)]
            texts = ["", *("" if one is None else _two_digits(one[0]) for one in differences)]
            found.append(Column("std_diff", texts, "text"))
        return tuple(found)

    def _difference(
        self, row: Row, cells: Cells, one: int, other: int, alpha: float
    ) -> tuple[float, float, float] | None:
        if not isinstance(row, (Numeric, Level)) or cells.name.endswith(": median"):
            return None
        return row.difference(one, other, alpha)

    def head(self) -> tuple[tuple[str, str], ...]:
        """The inference target, and the noise of the groups' sizes."""
        of = "n" if self.weights is None else f"sum of {self.weights}"
        return ("Intervals for", self.inference), ("SD of the noise", f"{self.size_sd:,.3g} in {of} of a group")

    def crossed(self, alpha: float) -> list[Laid]:
        """The same columns, with what each cell holds in the names of the rows, and levels alone as names of groups."""
        name, *others = self.columns(alpha)
        factors = {group.partition("=")[0] for group in self.groups}
        one = len(factors) == 1 and not any(", " in group for group in self.groups)
        rows = (name.values[0], *map(_row_name, name.values[1:]))
        found = [Laid("", tuple(map(clean, rows)), left=True)]
        for column in others:
            told = column.name.partition("=")[2] if one and "=" in column.name else head(column.name)
            found.append(Laid(clean(told), tuple(column.values), label=clean(told)))
        widths = [max(map(len, (own.head, *own.cells))) for own in found]
        return found if sum(widths) + 2 * (len(widths) - 1) <= WIDEST else self._long(found, *factors if one else ())

    def _long(self, wide: Sequence[Laid], factor: str = "group") -> list[Laid]:
        """One row for each number, of all records last; a difference is in the first row of what it is of."""
        (name, *groups), rows = wide[: 1 + len(self._shown)], range(len(wide[0].cells))
        groups = [*groups[1:], groups[0]]
        rest = ("",) * (len(groups) - 1)
        return [
            Laid("", tuple(cell for row in rows for cell in (name.cells[row], *rest)), left=True),
            Laid(clean(factor), tuple(own.head for _ in rows for own in groups), left=True),
            Laid(head("estimate"), tuple(own.cells[row] for row in rows for own in groups)),
            *(
                Laid(own.head, tuple(cell for row in rows for cell in (own.cells[row], *rest)))
                for own in wide[1 + len(groups) :]
            ),
        ]

    def notes(self) -> tuple[tuple[str, str], ...]:
        """How to read the cells, and the guarantee."""
        numeric = [row for row in self.rows if isinstance(row, Numeric)]
        widths = [f"{row.name} {row.quartiles[0].width_at_median:.4g}" for row in numeric if row.quartiles]
        hidden = [row.name for row in numeric if np.isnan(row.sd).any()]
        gone = [f"the SDs of {either(hidden, 'and')} do not exceed their noise"] if hidden else []
        if plain := [row.name for row in numeric if row.name in hidden and not row.quartiles and self.weights is None]:
            gone.append(f"medians of {either(plain, 'and')} would tell them")
        without = [
            row.name.partition("=")[0]
            for row in self.rows
            if len(self.groups) == 2 and isinstance(row, (Numeric, Level)) and np.isnan(row.difference(1, 2, 0.05)[0])
        ]
        if small := list(dict.fromkeys(name for name in without if name not in hidden)):
            gone.append(f"the noise in the SDs of {either(small, 'and')} is more than a fifth of them")
        read = [row.name for row in numeric if row.binned.any()]
        bins = (
            [
                (
                    "Medians",
                    f"are known to a bin, and may be anywhere in it; its width at the median: {', '.join(widths)}",
                )
            ]
            if widths
            else []
        )
        return (
            ("Every number", "95% CI of every number: to_frame(), or the report"),
            ("n/a", "; ".join(gone)),
            ("SDs", f"of {', '.join(read)} from the distribution where the noise is larger" if read else ""),
            *bins,
            *((("Flag", f"{DOMINATES}: {DOMINATED}; to_frame() says in which rows"),) if self._dominated else ()),
            ("In words", self.guarantee.describe()),
        )

    @property
    def _dominated(self) -> bool:
        return bool(self._default["flags"].str.contains(DOMINATES).any())

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON: the long table."""
        frame = self.to_frame(alpha)
        own = {"inference": self.inference, "missing": {name: list(pair) for name, pair in self.missing.items()}}
        return {**own, "cells": {name: frame[name].tolist() for name in frame}}

    @cached_property
    def _default(self) -> pd.DataFrame:
        return self.to_frame(0.05)

    def to_frame(self, alpha: float | None = None) -> pd.DataFrame:
        """The long table: one row for each number.

        Columns: variable, group, n (with weights their sum), estimate (of levels the share), std_err, ci_low, ci_high, privacy_share and
        flags. Means have std_dev, too; rows of all records have std_diff of the first two groups. The glossary has the words of the flags.
        """
        level = self._alpha(alpha)
        parts: list[dict[str, Any]] = []
        for row, cells in self._cells(level):
            assert isinstance(row, (Numeric, Level))
            spread = (
                row.sd
                if isinstance(row, Numeric) and cells.name.endswith(": mean")
                else np.full(len(row.sizes), np.nan)
            )
            gap = self._difference(row, cells, 1, 2, level) if len(self.groups) == 2 else None
            few = row.sizes < _FEW * np.sqrt(row.size_variance)
            weak = np.zeros_like(few) if cells.weak is None else cells.weak
            for k, group in enumerate(self._shown):
                rules = bool(row.part > 0 and dominated(cells.share[k]) and not cells.open[k])
                own = (
                    ("count_below_noise", few[k]),
                    ("skewed_few_records", weak[k]),
                    ("whole_range", cells.open[k]),
                    (DOMINATES, rules),
                )
                flags = [name for name, on in own if on]
                parts.append(
                    {
                        "variable": cells.name,
                        "group": group,
                        "n": self.heaviest * row.sizes[k],
                        "estimate": cells.estimates[k],
                        "std_err": cells.errors[k],
                        "ci_low": cells.low[k],
                        "ci_high": cells.high[k],
                        "privacy_share": cells.share[k] if row.part > 0 or np.isnan(cells.share[k]) else 1.0,
                        "flags": " ".join(flags),
                        "std_dev": spread[k],
                        "std_diff": np.nan if k or gap is None else gap[0],
                    }
                )
        names = [one["variable"] if one["group"] == _ALL else f"{one['variable']} | {one['group']}" for one in parts]
        return pd.DataFrame(parts, index=names)

    @property
    def params(self) -> pd.Series[float]:
        """The estimates by name; NaN where nothing is known."""
        found = self._default["estimate"].astype(float)
        return found if self.status == "valid" else found * np.nan

    def foreseen(self) -> Foreseen:
        """The standard errors of its numbers by name, NaN where an interval is all that the bounds allow."""
        errors, share = self._default["std_err"].astype(float), self._default["privacy_share"].to_numpy(dtype=float)
        told = np.isfinite(errors) & ~self._default["flags"].str.contains("whole_range") & self.has_intervals
        shares = share[told & (self.inference == "population")]
        found = dict(zip(map(str, errors.index), errors.where(told), strict=True))
        return Foreseen(found, float(told.mean()), shares, ("all numbers", "numbers"))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Intervals at level 1 - alpha, columns 0 (low) and 1 (high)."""
        frame = self.to_frame(check_alpha(alpha))
        return pd.DataFrame({0: frame["ci_low"], 1: frame["ci_high"]})

    def differences(self, one: str | None = None, other: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Standardized differences of two groups, by default the first two: estimate, ci_low, ci_high for each mean and level.

        A mean with an SD that is not above its noise has no standardized difference: NaN, between -inf and inf.
        """
        pair = (one, other) if one is not None and other is not None else self.groups[:2]
        unknown = [name for name in pair if name not in self.groups]
        if len(pair) != 2 or unknown or pair[0] == pair[1]:
            raise PlanError(
                f"a standardized difference is between two groups, got {pair}; there are: {', '.join(self.groups) or 'none'}"
            )
        at = [1 + self.groups.index(name) for name in pair]
        rows = [
            (cells.name, self._difference(row, cells, at[0], at[1], check_alpha(alpha)))
            for row, cells in self._cells(alpha)
        ]
        known = [(name, found) for name, found in rows if found is not None]
        numbers = np.array([found for _, found in known], dtype=np.float64).reshape(-1, 3)
        return pd.DataFrame(numbers, index=[name for name, _ in known], columns=["estimate", "ci_low", "ci_high"])

    def draw(self, ax: Any, alpha: float) -> None:
        """Standardized differences of the first two groups with their intervals."""
        from confide.results.pages.plots import INK, whiskers

        if len(self.groups) < 2:
            ax.text(0.5, 0.5, "one group: no differences to draw", transform=ax.transAxes, ha="center")
            return
        frame = self.differences(alpha=alpha)
        places = np.arange(len(frame))[::-1]
        estimates, low, high = (frame[name].to_numpy(dtype=np.float64) for name in ("estimate", "ci_low", "ci_high"))
        known = np.isfinite(estimates)
        whiskers(ax, places[known], estimates[known], low[known], high[known], flat=True)
        ax.scatter(estimates[known], places[known], s=26, color=INK, zorder=6)
        for place in places[~known]:
            ax.annotate(
                "n/a: not above its noise", (0.0, place), xytext=(6, -3), textcoords="offset points", fontsize=8
            )
        ax.axvline(0.0, color="#555555", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        ax.set_yticks(places, [folded(name.replace("=", ": ", 1)) for name in map(str, frame.index)], **LITERAL)
        first, second = (name.partition("=")[2] or name for name in self.groups[:2])
        ax.set_xlabel(folded(f"standardized difference, {first} - {second}", 60), **LITERAL)

    def picture(self, alpha: float) -> str:
        """How to read the picture."""
        return f"Points: differences of the first two groups in standard deviations. Whiskers: {level_words(alpha)} confidence intervals."


def _row_name(name: str) -> str:
    """A row's name as it is printed, with what its cells hold.

    >>> _row_name("age: mean"), _row_name("age: median"), _row_name("smoker=no")
    ('age, mean (SD)', 'age, median [quartiles]', 'smoker: no, n (%)')
    """
    for end, words in ((": mean", ", mean (SD)"), (": median", ", median [quartiles]")):
        if name.endswith(end):
            return name.removesuffix(end) + words
    return f"{name.replace('=', ': ', 1)}, n (%)"


def _two_digits(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else DASH
