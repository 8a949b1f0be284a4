"""A table: one estimate with its interval for each cell of each marginal that was asked for, as it is compared and shown.

What a table says of missing values: the schema's rules, which are public, and numbers as far as the release or the plan holds them.

Nothing is paid for it. A record that is left out is in no cell, so that the noisy numbers of the table are of those that remain. How many
were left out is known where the number of all records is public; of several columns each has a released number of missing values.

Pictures of a table: dots with intervals, or a heat map of a crossing of two attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import clean, later
from confide.core import Release
from confide.errors import PlanError
from confide.methods.tables.draw import Margins, whose_words
from confide.methods.tables.layout import Layout, both_sides
from confide.methods.tables.reading import CellNumbers
from confide.methods.tables.sums import RowNumber, UnitCrossing
from confide.results.base import DOMINATED, DOMINATES
from confide.results.pages.content import (
    LITERAL,
    WITHOUT_NUMBERS,
    Column,
    either,
    level_heads,
    level_words,
    missing_rules,
    short,
    thousands,
)
from confide.schema import Column as SchemaColumn
from confide.sums.cells.cell_sums import Crossing
from confide.sums.cells.moments import Measure, MomentRows
from confide.sums.coding import BITS
from confide.sums.columns import columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes as PlotAxes

    from confide.methods.tables.intervals import Cells


UNKNOWN = "how many were left out is not released: numbers of records are of those that remain"


def missing_lines(
    release: Release, layout: Layout, margins: Margins | None = None, rows: MomentRows | None = None
) -> tuple[tuple[str, str], ...]:
    """The line of a table's legend. margins, rows: the released sums, where they tell a number of missing values.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "wage": cf.Numeric(0, 90, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> release = cf.release(cf.tables.Counts("sex", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> missing_lines(release, cf.tables.Counts("sex", inference="population").about(schema))[0][1].split("; ")[:2]
    ['records with missing sex are left out', 'a label that is not declared counts as missing']
    """
    crossing = layout.crossing
    if isinstance(crossing, UnitCrossing):
        parts = list(_of_persons(crossing))
    else:
        # a ratio is of records with both values; of several columns each has its own number of values
        apart = len(layout.measures) > 1 and release.plan.method.name != "ratios"
        weight = [layout.weight] if isinstance(layout.weight, Measure) else []
        parts = missing_parts(crossing, [*(() if apart else layout.measures), *weight])
        parts += _of_measures(layout.measures, _counted(layout, margins, rows)) if apart else []
    if any("left out" in part and "alone" not in part for part in parts):
        parts.append(_left_out(release, layout, margins) or UNKNOWN)
    return (("Missing", "; ".join(parts)),) if parts else ()


def missing_parts(crossing: Crossing, measures: Iterable[Measure]) -> list[str]:
    """The rules of the columns whose value a record must have to be counted."""
    schema, measures = crossing.schema, tuple(measures)
    names = columns_of(crossing, *measures)
    derived = any(measure.name not in schema for measure in measures)
    said = missing_rules({name: schema[name] for name in names}, derived=derived)
    return [said] if said else []


def alone_parts(kept: Mapping[str, SchemaColumn], apart: Sequence[str], counted: str = "") -> list[str]:
    """The rules of columns that each have their own number of values. kept: those that put a value in; apart: the others, by name;
    counted: released numbers of missing values.
    """
    parts = [missing_rules(kept)] if kept else []
    if apart:
        parts.append(f"a missing {either(apart)} is left out of the numbers of that column alone{counted}")
    return parts


def _of_measures(measures: Sequence[Measure], counted: str) -> list[str]:
    kept = {name: own.design.schema[name] for own in measures if not own.drops for name in own.columns}
    return alone_parts(kept, [own.name for own in measures if own.drops], counted)


def _counted(layout: Layout, margins: Margins | None, rows: MomentRows | None) -> str:
    """The released numbers of missing values, of the records in the table."""
    if margins is None or rows is None or layout.weight is not None:
        return ""
    one, total = float(1 << BITS), margins.table(()).reshape(-1)
    found = {
        own.name: total[rows.starts[j] + 4] / one for j, own in enumerate(layout.measures) if rows.counts_missing(j)
    }
    return noisy_numbers({name: (number, float(np.sqrt(margins.variance(()))) / one) for name, number in found.items()})


def noisy_numbers(found: Mapping[str, tuple[float, float]]) -> str:
    """Numbers of missing values by column, each with the sd of its noise.

    >>> noisy_numbers({"age": (12.3, 4.0)})
    ': age 12 (noise sd 4)'
    """
    if not found:
        return ""
    return ": " + ", ".join(f"{name} {number:,.0f} (noise sd {sd:,.3g})" for name, (number, sd) in found.items())


def _left_out(release: Release, layout: Layout, margins: Margins | None) -> str:
    """How many are left out, where the number of all records is public and the table counts records."""
    n, schema = release.plan.n, layout.crossing.schema
    if n is None or margins is None or layout.measures or layout.weight is not None or release.plan.where is not None:
        return ""
    if schema.protects != "record" or schema.design is not None:
        return ""
    size, sd = float(margins.table(())[0]), float(np.sqrt(margins.variance((), counts=True)))
    return f"of the {n:,} records, a public number, {n - size:,.0f} were left out (noise sd {sd:,.3g})"


def _of_persons(crossing: UnitCrossing) -> Iterator[str]:
    """Of units by all their rows."""
    named = crossing.schema.protects
    conditions = dict.fromkeys(
        name
        for own in crossing.attributes
        if isinstance(own, RowNumber)
        for name in own.read
        if crossing.schema[name].on_missing == "drop"
    )
    if conditions:
        yield f"a row with a missing {either(list(conditions))} satisfies no condition on it"
    others = dict.fromkeys(own.column for own in crossing.attributes if not isinstance(own, RowNumber))
    dropped = [name for name in others if crossing.schema[name].on_missing == "drop"]
    if dropped:
        yield f"a {named} none of whose rows has a {either(dropped)} is left out"


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Picture

    from confide.sums.cells.cell_sums import Axes
else:
    pd = later("pandas")


_READING_WORDS = {
    "population": "the population that the records are a sample of: sampling and privacy noise",
    "dataset": "these very records: privacy noise alone, no sampling",
}
_FLAGS = {
    "count_below_noise": "the number of records is below three standard deviations of its privacy noise; the "
    "interval holds over all releases, "
    "flagged or not",
    "E": "cv at least 16.5 %: use with caution",
    "F": "cv at least 33.3 %: too uncertain for most uses",
    "skewed_few_records": "too few records for so skewed a column: the interval may be short on one side",
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
        "estimate", "std_err", "ci_low", "ci_high", "privacy_share", "cv", "flags"
    )  # fmt: skip
    #: What the numbers are called in the title.
    noun: ClassVar[str] = "Estimates"
    #: What they are called of columns that are measured.
    called: ClassVar[str] = "{noun} of {names}"
    #: What the column of estimates is called.
    rows_hold: ClassVar[str] = "estimate"
    #: Whether they are printed as whole numbers, as counts are.
    whole: ClassVar[bool] = False

    @classmethod
    def read(cls, release: Release, layout: Layout, margins: Margins, inference: str, **others: Any) -> Self:
        """The table of a release."""
        whose = "the population" if inference == "population" else "these records"
        # a subgroup stands at the end of the plan's target already
        target = release.plan.target if release.plan.where else f"{release.plan.target}, of {whose}"
        return cls.of(
            release,
            layout=layout,
            margins=margins,
            inference=inference,
            target=target,
            intervals_for=_READING_WORDS[inference],
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
            ("Intervals for", self.inference),
            (f"Values{named.removeprefix(' of values')}, added up" if named else self._counted, size),
        ]
        if self.layout.weight is not None:
            own = [("Intervals for", self.inference), *self._weighted_head()]
        return (*own, ("Population size", f"{self.population:,}")) if self.population is not None else tuple(own)

    @property
    def _counted(self) -> str:
        """What the rows of a cell are: records, or what is kept of each unit's."""
        return "Rows counted" if self.kept else "n"

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
            **self._counts_of_rows(),
            estimate=self.displayed(estimates),
            std_err=errors,
            low=low,
            high=high,
            cv=cv,
            privacy_share=self._share,
            flag=self.marks,
        )

    def _counts_of_rows(self) -> Mapping[str, Array]:
        """`n`: the noisy number of records behind each row. Override where rows are no counts themselves."""
        return {}

    def columns(self, alpha: float) -> Sequence[Column]:
        """The levels of each cell, its number with its interval, and its flags."""
        frame, (low, high) = self.to_frame(alpha), level_heads(alpha)
        about = [Column(str(name), frame[name].astype(object).to_numpy(), "text") for name in self.index.columns]
        return (
            *about,
            *(Column(name, sizes, "number", whole=True) for name, sizes in self._counts_of_rows().items()),
            Column("estimate", frame["estimate"].to_numpy(), head=self.rows_hold, whole=self.whole),
            Column("std_err", frame["std_err"].to_numpy(), "std_err", head="std. err."),
            Column("ci_low", frame["ci_low"].to_numpy(), "interval", head=low),
            Column("ci_high", frame["ci_high"].to_numpy(), "interval", head=high),
            Column("privacy_share", frame["privacy_share"].to_numpy(), "share", head="privacy share"),
            Column("cv", frame["cv"].to_numpy(), "number", printed=False),
            Column("flags", frame["flags"].to_numpy(), "text", head="flags"),
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
        names, whose = ", ".join(self.measured), whose_words(self.layout.crossing.schema)
        # per level of a column persons are counted, no records
        noun = "Number" if self.noun == "Records" and whose.startswith(" of values of ") else self.noun
        what = self.called.format(noun=noun, names=names) if names else f"{noun}{whose}"
        right = both_sides(self.layout.words)[1].strip().replace("`", "")
        return what + (f" by {' and '.join(map(str.strip, right.split('*')))}" if right != "1" else "")

    @property
    def shown(self) -> Sequence[int] | None:
        """The first rows, where there are many; else all, level by level with totals last."""
        if len(self.index) > _PRINTED:
            return range(_PRINTED)
        codes = self.index["variable"].cat.codes if any(self.measured) else np.zeros(len(self.index))
        return [int(place) for place in np.lexsort((*self.levels[::-1], codes))]

    def more(self, alpha: float) -> Mapping[str, Any]:
        """What a reader of the JSON needs beside the columns."""
        return {
            "kind": self.kind,
            "formula": self.layout.formula,
            "inference": self.inference,
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


# Rows that are drawn as dots, the first ones.
_ROWS = 60
# A map of at most so many cells has their numbers in it.
_WRITTEN = 200


def draw_cells(result: Cells, ax: PlotAxes, alpha: float) -> None:
    """Draw the cells of one column of a table, the first where none was chosen."""
    frame, levels = result.to_frame(alpha), result.levels
    place = result.column(result.drawn_column)
    name = result.measured[place]
    if any(result.measured):
        own = (frame["variable"].cat.codes == place).to_numpy()
        frame, levels = frame[own], levels[:, own]
    if result.as_map:
        _map(result, frame, levels, ax)
    else:
        _dots(result, frame, levels, ax)
        what = f"{result.noun.lower()} of {name}" if name else result.noun.lower()
        ax.set_xlabel(f"{what}, with {level_words(alpha)} intervals", **LITERAL)


def _dots(result: Cells, frame: Any, levels: NDArray[np.int64], ax: PlotAxes) -> None:
    rows = frame.iloc[:_ROWS]
    labels = [_label(result, row) for row in levels[:, :_ROWS].T]
    places = np.arange(len(rows))[::-1]
    low, high = rows["ci_low"].to_numpy(), rows["ci_high"].to_numpy()
    ax.hlines(places, low, np.where(np.isfinite(high), high, rows["estimate"]), colors="#d1772e", linewidths=2)
    ax.scatter(rows["estimate"], places, s=28, color="#1f4e79", zorder=3)
    ax.set_yticks(places, [short(clean(label)) for label in labels], **LITERAL)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    thousands(ax.xaxis)


def _label(result: Cells, row: NDArray[np.int64]) -> str:
    """What a cell is called: the levels that it is of; a margin is not said to be of all the rest."""
    attributes = result.layout.crossing.attributes
    named = [own.labels[level] for own, level in zip(attributes, row, strict=True) if level < own.size]
    return ", ".join(named) or "total"


def _map(result: Cells, frame: Any, levels: NDArray[np.int64], ax: PlotAxes) -> None:
    """The crossing of two attributes by colour; flagged cells have a dot in a corner, and small maps have the numbers in them."""
    shape = result.layout.crossing.shape((0, 1))
    attributes = result.layout.crossing.attributes
    inner = frame[(levels < np.array(shape)[:, None]).all(axis=0)]
    values, flags = inner["estimate"].to_numpy().reshape(shape), inner["flags"].to_numpy().reshape(shape)
    picture = ax.imshow(values, aspect="auto", cmap="viridis")
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(picture, ax=ax, label=result.noun.lower())
    flagged = np.argwhere(flags != "")
    if len(flagged):
        ax.scatter(flagged[:, 1] + 0.36, flagged[:, 0] - 0.36, s=7, color="#d1772e")
    if values.size <= _WRITTEN:
        low, high = np.nanmin(values), np.nanmax(values)
        for (row, column), value in np.ndenumerate(values):
            light = (value - low) / max(high - low, 1e-300) > 0.6
            ax.text(
                column,
                row,
                f"{value:,.3g}",
                ha="center",
                va="center",
                fontsize=8,
                color="#111111" if light else "#ffffff",
            )
    for own, axis in zip(attributes, (ax.yaxis, ax.xaxis), strict=True):
        every = max(1, own.size // 20)
        labels = [short(clean(label)) for label in own.labels[::every]]
        axis.set_ticks(range(0, own.size, every), labels, **LITERAL)
        axis.set_label_text(clean(own.name), **LITERAL)
    if max(map(len, attributes[1].labels)) > 4:
        ax.tick_params(axis="x", rotation=60)
