"""Table 1 as it is read: a wide table to print, a long frame with intervals, standardized differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide._helpers import clean, later
from confide.core import Release
from confide.errors import PlanError
from confide.methods.tables.table_one.reading import Cells, Level, Numeric, Row
from confide.results.base import BaseResult
from confide.results.pages.content import LITERAL, Column, check_alpha, folded, level_words
from confide.results.pages.table import DASH, DOMINATED, DOMINATES, Laid, dominated

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

    rows; groups: their names; sizes: n of all records and of each group; size_sd: the SD of the noise of one group's n. inference:
    "population" or "dataset"; weights: their column, with sizes as sums of weights; heaviest: the largest weight, or 1.
    """

    rows: tuple[Row, ...]
    groups: tuple[str, ...]
    sizes: Array
    size_sd: float
    inference: str  # type: ignore[misc]  # of the class in families of one target
    weights: str | None = None
    heaviest: float = 1.0

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
        weights: str | None = None,
        heaviest: float = 1.0,
        legend: tuple[tuple[str, str], ...] = (),
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
            legend=legend,
            rows=rows,
            groups=groups,
            sizes=heaviest * sizes,
            size_sd=heaviest * size_sd,
            inference=inference,
            weights=weights,
            heaviest=heaviest,
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
            found.append(Column("std_diff", texts, "text", head="std. diff."))
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
            head = column.name.partition("=")[2] if one and "=" in column.name else column.head or column.name
            found.append(Laid(clean(head), tuple(column.values), label=clean(head)))
        return found

    def notes(self) -> tuple[tuple[str, str], ...]:
        """How to read the cells, and the guarantee."""
        numeric = [row for row in self.rows if isinstance(row, Numeric)]
        widths = [f"{row.name} {row.quartiles[0].width_at_median:.4g}" for row in numeric if row.quartiles]
        dash = ""
        if hidden := [row for row in numeric if np.isnan(row.sd).any()]:
            plain = tuple(row.name for row in hidden if not row.quartiles and self.weights is None)
            told = f", which medians={plain} tells from the distribution" if plain else ""
            dash += f"; n/a: an SD that is not above its noise{told}"
        if read := [row.name for row in numeric if row.binned.any()]:
            dash += f"; the SD of {', '.join(read)} is from the distribution where the noise is larger"
        if len(self.groups) == 2 and any(
            np.isnan(row.difference(1, 2, 0.05)[0]) for row in self.rows if isinstance(row, (Numeric, Level))
        ):
            dash += "; std. diff. n/a: an SD that it divides by is less than five SDs of its noise"
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
            (
                "Cells",
                f"{', '.join(self._kinds)}; the 95% CI of every number: to_frame(), --csv FILE" + dash,
            ),
            *bins,
            *((("Flag", f"{DOMINATES}: {DOMINATED}; to_frame() says in which rows"),) if self._dominated else ()),
            ("In words", self.guarantee.describe()),
        )

    @property
    def _kinds(self) -> list[str]:
        """What the cells are."""
        numeric = [row for row in self.rows if isinstance(row, Numeric)]
        found = {
            "mean (SD)": bool(numeric),
            "median [quartiles]": any(row.quartiles for row in numeric),
            "n (%)": any(isinstance(row, Level) for row in self.rows),
        }
        return [words for words, there in found.items() if there]

    @property
    def _dominated(self) -> bool:
        return bool(self._default["flags"].str.contains(DOMINATES).any())

    def more(self, alpha: float) -> dict[str, Any]:
        """Entries of the JSON: the long table."""
        frame = self.to_frame(alpha)
        return {"inference": self.inference, "cells": {name: frame[name].tolist() for name in frame}}

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
