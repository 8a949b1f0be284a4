"""A table: one estimate with its interval for each cell of each marginal that was asked for, as it is compared and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from confide._arrays import Array
from confide._lazy import later
from confide.errors import PlanError
from confide.methods.tables.cells.layout import Layout, both_sides
from confide.methods.tables.cells.margins import Margins
from confide.methods.tables.cells.numbers import CellNumbers
from confide.methods.tables.cells.per_level import whose_words
from confide.methods.tables.description.missing import missing_lines
from confide.protocol import Release
from confide.results.base import Column, level_heads
from confide.results.noise_share import DOMINATED, DOMINATES
from confide.results.pages.words import WITHOUT_NUMBERS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Picture

    from confide.aggregates.cells.crossing import Axes
else:
    pd = later("pandas")

__all__ = ["CellTable"]


_READING_WORDS = {
    "population": "the population that the records are a sample of: sampling and privacy noise",
    "dataset": "these very records: privacy noise alone, no sampling",
}
_FLAGS = {
    "below_noise": "the number of records is below three standard deviations of its privacy noise; the interval holds over all releases, "
    "flagged or not",
    "E": "cv at least 16.5 %: use with caution",
    "F": "cv at least 33.3 %: too uncertain for most uses",
    "weak": "too few records for so skewed a column: the interval may be short on one side",
    "few_psus": "too few PSUs, or clusters, are known to have records of the cell, by a noisy count: how much PSUs differ does not show, "
    "and the interval may be far too short",
    "whole_range": "the noise leaves every value possible",
    DOMINATES: DOMINATED,
}
_IN_PLACE = "stand in place of suppression: noise protects the records, so that no cell is left out, and a flag says how far to trust one"
# Rows on a screen and in a picture; all of them are in `to_frame`.
_PRINTED = 60


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellTable(CellNumbers):
    """What all tables share: numbers of cells, as they are compared and shown. display, drawing, drawn_column: how."""

    display: str = ""
    drawing: str = ""
    drawn_column: str | None = None

    family: ClassVar[str] = "table"
    rows_are: ClassVar[str] = "cell"
    rows_called: ClassVar[str] = "cells"
    own_columns: ClassVar[tuple[str, ...]] = (
        "estimate", "std_err", "low", "high", "cv", "privacy_share", "flag"
    )  # fmt: skip
    #: What the numbers are called in the title.
    noun: ClassVar[str] = "Estimates"

    @classmethod
    def read(cls, release: Release, layout: Layout, margins: Margins, reading: str, **others: Any) -> Self:
        """The table of a release."""
        whose = "the population" if reading == "population" else "these records"
        # a subgroup stands at the end of the plan's target already
        target = release.plan.target if release.plan.where else f"{release.plan.target}, of {whose}"
        return cls.of(
            release,
            layout=layout,
            margins=margins,
            reading=reading,
            target=target,
            covers=_READING_WORDS[reading],
            legend=missing_lines(release, layout, margins, others.get("rows")),
            **others,
        )

    def notes(self) -> Sequence[tuple[str, str]]:
        """The flags that occur, in words."""
        used = {name for text in set(self.marks.tolist()) for name in text.split()}
        found = tuple((f"Flag {name}", words) for name, words in _FLAGS.items() if name in used)
        return (("Flags", _IN_PLACE), *found) if found else ()

    def head(self) -> Sequence[tuple[str, str]]:
        """What is covered, and the noisy number of records."""
        sd = np.sqrt(self.count_variance(()))
        size = f"{self.size:,.0f}" if sd == 0 else f"{self.size:,.0f} (noise sd {sd:,.3g})"
        named = whose_words(self.layout.crossing.schema)
        own = [
            ("Covers", self.reading),
            (f"Values{named.removeprefix(' of values')}, added up" if named else self._counted, size),
        ]
        if self.layout.weight is not None:
            own = [("Covers", self.reading), *self._weighted_head()]
        return (*own, ("Population size", f"{self.population:,}")) if self.population is not None else tuple(own)

    @property
    def _counted(self) -> str:
        """What the rows of a cell are: records, or what is kept of each unit's."""
        return "Rows counted" if self.kept else "Records"

    def _weighted_head(self) -> list[tuple[str, str]]:
        """The sum of the weights, and Kish's effective number of records."""
        assert self.layout.weight is not None
        if self.layout.of_units:
            sd = np.sqrt(self.count_variance(()))
            return [("Weights", f"{self.layout.weight.name}"), ("Units", f"{self.size:,.0f} (noise sd {sd:,.3g})")]
        total, sd = self.layout.heaviest * self.size, self.layout.heaviest * np.sqrt(self.count_variance(()))
        return [
            ("Weights", f"{self.layout.weight.name}, at most {self.layout.heaviest:g}; larger ones count as that"),
            ("Sum of weights", f"{total:,.0f} (noise sd {sd:,.3g})"),
            (
                "Effective records",
                f"{self.effective_size:,.0f} (Kish: squared sum of weights over the sum of their squares)",
            ),
        ]

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Of the estimates of two cells. Override where they are drawn or counted together."""
        return 0.0

    def to_frame(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """One row for each cell: its levels, estimate, std_err, low, high, cv, privacy_share, flag (`notes` has them in words)."""
        estimates, errors = self._told
        low, high = self._limits(self.quantile(self._alpha(alpha), simultaneous))
        if self.status in WITHOUT_NUMBERS:
            low, high = (np.full(len(estimates), nan) for _ in range(2))
        with np.errstate(all="ignore"):
            cv = np.where(estimates != 0, errors / np.abs(estimates), inf)
        return self.index.assign(
            estimate=self.displayed(estimates),
            std_err=errors,
            low=low,
            high=high,
            cv=cv,
            privacy_share=self._share,
            flag=self.marks,
        )

    def columns(self, alpha: float) -> Sequence[Column]:
        """The levels of each cell, its number with its interval, and its flags."""
        frame, (low, high) = self.to_frame(alpha), level_heads(alpha)
        about = [Column(str(name), frame[name].astype(object).to_numpy(), "text") for name in self.index.columns]
        return (
            *about,
            Column("estimate", frame["estimate"].to_numpy(), head="estimate"),
            Column("std_err", frame["std_err"].to_numpy(), "std_err", head="std err"),
            Column("low", frame["low"].to_numpy(), "interval", head=low),
            Column("high", frame["high"].to_numpy(), "interval", head=high),
            Column("cv", frame["cv"].to_numpy(), "number", printed=False),
            Column("privacy_share", frame["privacy_share"].to_numpy(), "share", head="noise share"),
            Column("flag", frame["flag"].to_numpy(), "text", head="flag"),
        )

    def displayed(self, estimates: Array) -> Array:
        """Estimates as they are printed; display="nonnegative" clips in print alone, so never add up what it shows."""
        return np.maximum(estimates, 0.0) if self.display == "nonnegative" else estimates

    def with_display(self, display: str) -> Self:
        """The same table, printed otherwise: "nonnegative" clips negative estimates in print, "" prints them as they are."""
        if display not in ("", "nonnegative"):
            raise PlanError(f"display must be 'nonnegative' or '', got {display!r}; write with_display('nonnegative')")
        return replace(self, display=display)

    def crosstab(self, values: str = "estimate", *, of: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """The table wide: the last attribute in columns, the others in rows, margins as `margin_word` says.

        values: any column of `to_frame`; of: which variable, where there are several.
        """
        frame = self.to_frame(alpha)
        if values not in frame:
            raise PlanError(f"the table has no column {values!r}; crosstab shows: {', '.join(map(str, frame.columns))}")
        if any(self.measured):
            frame = frame[frame["variable"] == self.measured[self.column(of)]]
        attributes = [own.name for own in self.layout.crossing.attributes]
        if not attributes:
            return frame[[values]]
        if len(attributes) == 1:
            return frame.set_index(attributes[0])[[values]].sort_index()
        wide = frame.pivot(index=attributes[:-1], columns=attributes[-1], values=values)
        return wide.sort_index().sort_index(axis=1)

    # comparisons and tests --------------------------------------------------------------------------------------------

    def diff(self, first: Any, second: Any = None, *, of: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Differences with MOVER intervals: of two cells, as in diff({"region": "N"}, {"region": "S"}), or, by the name of an attribute,
        of each of its levels from the first one, for each combination of the other attributes of the largest marginal that has it.
        """
        from confide.methods.tables.comparing.comparisons import compared

        return compared(self, "diff", first, second, self.column(of), alpha)

    def ratio(self, first: Any, second: Any = None, *, of: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Ratios, called as `diff`. An end at 0 opens the interval to infinity."""
        from confide.methods.tables.comparing.comparisons import compared

        return compared(self, "ratio", first, second, self.column(of), alpha)

    # what is shown ----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        what = f" of {', '.join(self.measured)}" if any(self.measured) else ""
        right = both_sides(self.layout.words)[1].strip().replace("`", "")
        what = what or whose_words(self.layout.crossing.schema)
        return f"Private {self.noun.lower()}{what}" + (f" by {right}" if right != "1" else "")

    @property
    def shown(self) -> Sequence[int] | None:
        """The first rows, where there are many."""
        return range(_PRINTED) if len(self.index) > _PRINTED else None

    def more(self, alpha: float) -> Mapping[str, Any]:
        """What a reader of the JSON needs beside the columns."""
        return {
            "kind": self.kind,
            "formula": self.layout.formula,
            "reading": self.reading,
            "population_size": self.population,
            **(
                {}
                if self.layout.weight is None
                else {"weights": self.layout.weight.name, "effective_size": self.effective_size}
            ),
            "attributes": {own.name: list(own.labels) for own in self.layout.crossing.attributes},
        }

    def draw(self, ax: Picture, alpha: float) -> None:
        """Cells as dots with their intervals; a crossing of two attributes with many cells as a heat map."""
        from confide.methods.tables.cells.plot import draw_cells  # here, because matplotlib is slow to load

        draw_cells(self, ax, alpha)

    def plot(
        self,
        alpha: float | None = None,
        ax: Picture | None = None,
        *,
        names: str | Sequence[str] | None = None,
        kind: str | None = None,
        of: str | None = None,
    ) -> Picture:
        """A picture; returns the Axes. kind: "dots", each cell with its interval; "map", a crossing of two attributes by colour; left out,
        dots for up to 60 rows. of: which variable, the first when left out.
        """
        if kind not in (None, "dots", "map"):
            raise PlanError(f"kind must be 'dots' or 'map', got {kind!r}; write plot(kind='map')")
        if kind == "map" and (len(self.layout.crossing.attributes) != 2 or (0, 1) not in self.marginals):
            raise PlanError("a map is of the crossing of two attributes; plan 'a * b', or write plot(kind='dots')")
        self.column(of)
        own = replace(self, drawing=kind or self.drawing, drawn_column=of or self.drawn_column)
        return super(CellTable, own).plot(alpha, ax, names=names)

    def picture(self, alpha: float) -> str:
        """How to read it."""
        return (
            "One row for each cell: a dot for the estimate, a bar for its interval. Many cells of two attributes are shown by colour, "
            "those with a flag have a dot in a corner."
        )

    @property
    def picture_size(self) -> tuple[float, float]:
        if self.as_map:
            rows, columns = self.layout.crossing.shape((0, 1))
            return 2.6 + min(0.55 * columns, 9.0), 1.8 + min(0.35 * rows, 9.0)
        return 6.4, 1.8 + 0.3 * min(self._drawn_rows, _PRINTED)

    @property
    def _drawn_rows(self) -> int:
        return len(self.index) // len(self.measured)

    @property
    def as_map(self) -> bool:
        """Whether the picture is a map: asked for, or of many cells of two attributes."""
        two = len(self.layout.crossing.attributes) == 2 and (0, 1) in self.marginals
        return self.drawing == "map" or (not self.drawing and two and self._drawn_rows > _PRINTED)
