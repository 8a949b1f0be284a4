"""A table: one estimate with its interval for each cell of each marginal that was asked for, as it is compared and shown.

What a table says of missing values: the schema's rules, which are public, and their numbers if the release or the plan has them.

This costs nothing. An excluded record is in no cell, so the table counts the records that remain. How many were excluded is known where
the number of all records is public. Of several columns, each has a released number of missing values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._helpers import clean, later
from confide.core import Release
from confide.errors import PlanError
from confide.methods.tables.draw import Margins, whose_words
from confide.methods.tables.intervals import margin_word
from confide.methods.tables.layout import Layout
from confide.methods.tables.pictures import MOST, caption_of, cells_of as cells_drawn, draw_cells, size_of
from confide.methods.tables.reading import CellNumbers
from confide.methods.tables.sums import RowNumber, UnitCrossing
from confide.results.pages.content import (
    WITHOUT_NUMBERS,
    Column,
    either,
    flag_notes,
    missing_rules,
)
from confide.results.pages.table import WIDEST, Laid, cells_of, interval_head, joined
from confide.schema import Column as SchemaColumn
from confide.sums.cells.cell_sums import Crossing
from confide.sums.cells.moments import Measure, MomentRows
from confide.sums.coding import BITS
from confide.sums.columns import columns_of

UNKNOWN = "how many were excluded is not released: n counts the records that remain"


def missing_lines(
    release: Release, layout: Layout, margins: Margins | None = None, rows: MomentRows | None = None
) -> tuple[tuple[str, str], ...]:
    """The line of a table's legend. margins, rows: the released sums, where they tell a number of missing values.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "wage": cf.Numeric(0, 90, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> release = cf.release(cf.tables.Counts("sex", inference="population"), data, cf.GDP(1.0), ledger=None)
    >>> missing_lines(release, cf.tables.Counts("sex", inference="population").about(schema))[0][1].split("; ")[:2]
    ['records with missing sex are excluded', 'a label that is not declared counts as missing']
    """
    crossing = layout.crossing
    if isinstance(crossing, UnitCrossing):
        parts = list(_of_persons(crossing))
    else:
        # a ratio is of records with both values; of several columns each has its own number of values
        apart = len(layout.measures) > 1 and release.plan.method.name != "ratios"
        weight = [layout.weight] if isinstance(layout.weight, Measure) else []
        parts = missing_parts(crossing, [*(() if apart else layout.measures), *weight])
        parts += _of_measures(layout.measures, noisy_numbers(counted_missing(layout, margins, rows))) if apart else []
    if any("excluded" in part and "alone" not in part for part in parts):
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
        what = f"missing values of {either(apart)} are" if counted else f"a missing {either(apart)} is"
        parts.append(f"{what} excluded from the numbers of that column alone")
    return [*parts, f"without a value: {counted}"] if counted else parts


def _of_measures(measures: Sequence[Measure], counted: str) -> list[str]:
    kept = {name: own.design.schema[name] for own in measures if not own.drops for name in own.columns}
    return alone_parts(kept, [own.name for own in measures if own.drops], counted)


def counted_missing(layout: Layout, margins: Margins | None, rows: MomentRows | None) -> dict[str, tuple[float, float]]:
    """The released numbers of missing values by column, of the records in the table, each with the SD of its noise."""
    if margins is None or rows is None or layout.weight is not None:
        return {}
    one, total = float(1 << BITS), margins.table(()).reshape(-1)
    found = {
        own.name: total[rows.starts[j] + 4] / one for j, own in enumerate(layout.measures) if rows.counts_missing(j)
    }
    return {name: (number, float(np.sqrt(margins.variance(()))) / one) for name, number in found.items()}


def noisy_numbers(found: Mapping[str, tuple[float, float]]) -> str:
    """Numbers of missing values by column. Less than twice the SD of its noise is told as a bound, rounded up.

    >>> noisy_numbers({"age": (12.3, 4.0), "bmi": (-3.0, 4.1), "sex": (1.0, 4.1)})
    'age 12 (SD of the noise 4), bmi and sex fewer than 9 each'
    """
    told, few = [], dict[int, list[str]]()
    for name, (number, sd) in found.items():
        if number < 2 * sd:
            few.setdefault(ceil(2 * sd), []).append(name)
        else:
            told.append(f"{name} {number:,.0f} (SD of the noise {sd:,.3g})")
    told += [f"{either(names, 'and')} fewer than {most:,}{' each' * (len(names) > 1)}" for most, names in few.items()]
    return ", ".join(told)


def _left_out(release: Release, layout: Layout, margins: Margins | None) -> str:
    """How many are excluded, where the number of all records is public and the table counts records."""
    n, schema = release.plan.n, layout.crossing.schema
    if n is None or margins is None or layout.measures or layout.weight is not None or release.plan.where is not None:
        return ""
    if schema.protects != "record" or schema.design is not None:
        return ""
    size, sd = float(margins.table(())[0]), float(np.sqrt(margins.variance((), counts=True)))
    few = n - size < 2 * sd
    out = (
        f"fewer than {ceil(2 * sd):,} were excluded"
        if few
        else f"{n - size:,.0f} were excluded (SD of the noise {sd:,.3g})"
    )
    return f"of the {n:,} records, a public number, {out}"


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
        yield f"a {named} none of whose rows has a {either(dropped)} is excluded"


if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Picture

    from confide.sums.cells.cell_sums import Axes
else:
    pd = later("pandas")


_READING_WORDS = {
    "population": "the population that the records are a sample of: sampling error and privacy noise",
    "dataset": "exactly these records: privacy noise only, no sampling error",
}
_IN_PLACE = "take the place of suppression: noise protects the records, so every cell is printed, and a flag says how reliable it is"
# Rows on a screen and in a picture; all of them are in `to_frame`.
_PRINTED = 60


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellTable(CellNumbers):
    """Numbers of cells, as they are compared and shown. display: how they are printed."""

    display: str = ""

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
    #: Whether they are printed as percentages, as shares are.
    percent: ClassVar[bool] = False

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
        found = flag_notes(self.marks)
        return (("Flags", _IN_PLACE), *found) if found else ()

    def head(self) -> Sequence[tuple[str, str]]:
        """The inference target, and n."""
        sd = np.sqrt(self.count_variance(()))
        size = f"{self.size:,.0f}" if sd == 0 else f"{self.size:,.0f} (SD of the noise {sd:,.3g})"
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
            return [
                ("Weights", f"{self.layout.weight.name}"),
                ("Units", f"{self.size:,.0f} (SD of the noise {sd:,.3g})"),
            ]
        total, sd = self.layout.heaviest * self.size, self.layout.heaviest * np.sqrt(self.count_variance(()))
        return [
            ("Weights", f"{self.layout.weight.name}, at most {self.layout.heaviest:g}; larger ones count as that"),
            ("Sum of weights", f"{total:,.0f} (SD of the noise {sd:,.3g})"),
            (
                "Effective records",
                f"{self.effective_size:,.0f} (Kish: squared sum of weights over the sum of their squares)",
            ),
        ]

    def covariance(self, axes: Axes, column: int, one: int, other: int) -> float:
        """Of the estimates of two cells. Override where they are drawn or counted together."""
        return 0.0

    def to_frame(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """One row for each cell: its levels, estimate, std_err, ci_low, ci_high, privacy_share, cv, flags (`notes` has them in words)."""
        return self.index.assign(**self._counts_of_rows(), **self._numbers_of_rows(alpha, simultaneous))

    def _numbers_of_rows(self, alpha: float | None, simultaneous: bool) -> Mapping[str, NDArray[Any]]:
        estimates, errors = self._told
        low, high = self._limits(self.quantile(self._alpha(alpha), simultaneous))
        if self.status in WITHOUT_NUMBERS:
            low, high = (np.full(len(estimates), nan) for _ in range(2))
        with np.errstate(all="ignore"):
            cv = np.where(estimates != 0, errors / np.abs(estimates), inf)
        found = {"estimate": self.displayed(estimates), "std_err": errors, "ci_low": low, "ci_high": high}
        return found | {"privacy_share": self._share, "cv": cv, "flags": np.asarray(self.marks, dtype=object)}

    def _counts_of_rows(self) -> Mapping[str, Array]:
        """`n` of each row. Override in tables with rows that are not counts."""
        return {}

    def columns(self, alpha: float) -> Sequence[Column]:
        """The levels of each cell, its number with its interval, and its flags."""
        own = self._numbers_of_rows(alpha, False)
        about = [
            Column(str(name), np.array(words, dtype=object)[codes], "text")
            for name, (codes, words) in self.about.items()
        ]
        return (
            *about,
            *(Column(name, sizes, "number", whole=True) for name, sizes in self._counts_of_rows().items()),
            Column("estimate", own["estimate"], head=self.rows_hold, whole=self.whole, percent=self.percent),
            Column("std_err", own["std_err"], "std_err", percent=self.percent),
            Column("ci_low", own["ci_low"], "interval", percent=self.percent),
            Column("ci_high", own["ci_high"], "interval", percent=self.percent),
            Column("privacy_share", own["privacy_share"], "share"),
            Column("cv", own["cv"], "number", printed=False),
            Column("flags", own["flags"], "text"),
        )

    def crossed(self, alpha: float) -> Sequence[Laid] | None:
        """The cells of two factors, one across: the last one, else the first, where that fits a line; None where rows have flags."""
        across = self._across
        return None if across is None else self._laid_across(across, alpha)

    @cached_property
    def _across(self) -> int | None:
        """The place of the factor whose levels are printed across, None where the table is printed long."""
        crossed, margins = {(0, 1)}, {(0,), (1,), (0, 1)}
        two = len(self.layout.crossing.attributes) == 2 and set(self.marginals) - {()} in (crossed, margins)
        two = two and set(self.marginals) != {(), (0, 1)}
        if not two or any(self.measured) or len(self.names) > _PRINTED or any(self.marks) or not self.has_intervals:
            return None
        for across in (1, 0):
            laid = self._laid_across(across, self._alpha(None))
            widths = [max(len(one.head), *map(len, one.cells)) for one in laid]
            if sum(widths) + 2 * (len(widths) - 1) <= WIDEST:
                return across
        return None

    def _laid_across(self, across: int, alpha: float) -> list[Laid]:
        """Levels of one factor in the rows, of the other across, each with its interval."""
        columns = [one for one in self.columns(alpha) if one.kind in ("estimate", "std_err", "interval")]
        cells = [cells_of(self, columns, place) for place in range(len(self.names))]
        places = {
            (row, column): place
            for place, (row, column) in enumerate(zip(*self.levels[[1 - across, across]], strict=True))
        }
        rows, over = (sorted(set(self.levels[one].tolist())) for one in (1 - across, across))
        attributes = self.layout.crossing.attributes

        def label(attribute: int, level: int) -> str:
            own = attributes[attribute]
            return clean(str(own.labels[level])) if level < own.size else margin_word(own.labels)

        found = [Laid(clean(attributes[1 - across].name), tuple(label(1 - across, row) for row in rows), True)]
        for level in over:
            own, head = (
                [cells[places[row, level]] if (row, level) in places else ("",) * 4 for row in rows],
                label(across, level),
            )
            interval = interval_head(self, columns[-1], alpha)
            found.append(Laid(head, tuple(one[0] for one in own), label=head))
            found.append(Laid(interval, tuple(joined(one[2], one[3]) for one in own), label=f"{head}, {interval}"))
        return found

    def displayed(self, estimates: Array) -> Array:
        """Estimates as they are printed; display="nonnegative" clips in print alone, so never add up what it shows."""
        return np.maximum(estimates, 0.0) if self.display == "nonnegative" else estimates

    def with_display(self, display: str) -> Self:
        """The same table, printed otherwise: "nonnegative" clips negative estimates in print, "" prints them as they are."""
        if display not in ("", "nonnegative"):
            raise PlanError(
                f"display must be 'nonnegative' or '', got {display!r}", "write with_display('nonnegative')"
            )
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
        """Differences with MOVER intervals, of two cells or of the levels of one factor.

        diff({"region": "N"}, {"region": "S"}) compares two cells; diff("region") compares each level with the first one. It does so for
        each combination of the other factors of the largest marginal that has it.
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
        return what + self.layout.by(turned=self._across == 0) + self.coded

    @property
    def shown(self) -> Sequence[int] | None:
        """The first rows, where there are many; else all, level by level with totals last."""
        if len(self.names) > _PRINTED:
            return range(_PRINTED)
        codes = self.about["variable"][0] if any(self.measured) else np.zeros(len(self.names))
        return [int(place) for place in np.lexsort((*self.levels[::-1], codes))]

    def more(self, alpha: float) -> Mapping[str, Any]:
        """What a reader of the JSON needs in addition to the columns."""
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

    @property
    def printed_across(self) -> int | None:
        """The place of the attribute that a printed crossing of two has across, None where it is printed long."""
        return self._across

    @property
    def quantity(self) -> str:
        """What the numbers are: "counts", "shares", "means", "totals", "ratios"."""
        return self.kind

    @property
    def pictures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Bars of counts, shares and totals, points of means; a map of the crossing of two attributes."""
        own = ("points", "bars") if self.quantity in ("means", "ratios") else ("bars", "points")
        return (*own, "map") if self._is_crossing else own

    @property
    def _is_crossing(self) -> bool:
        return len(self.layout.crossing.attributes) == 2 and (0, 1) in self.marginals

    @property
    def drawn_as(self) -> str:
        """The kind of the picture: asked for, or by the number of cells."""
        if self.look.kind:
            return self.look.kind
        if len(self.names) // len(self.measured) > MOST:
            return "map" if self._is_crossing else "points"
        return self.pictures[0]

    @property
    def in_picture(self) -> Sequence[int]:
        """The cells of the largest marginals."""
        return [int(row) for row in cells_drawn(self).rows]

    def draw(self, ax: Picture, alpha: float) -> None:
        """Bars, points or a map."""
        draw_cells(self, ax, alpha)

    def plot(
        self,
        alpha: float | None = None,
        ax: Picture | None = None,
        *,
        names: str | Sequence[str] | None = None,
        kind: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        of: str | None = None,
    ) -> Picture:
        """Draw the cells with their intervals, without totals.

        Parameters
        ----------
        alpha : float, default 0.05
            1 - alpha is the level of the intervals.
        ax : matplotlib Axes, optional
            Axes to draw on. A new figure is made when left out.
        names : str or sequence of str, optional
            Rows to draw as a forest plot, totals included.
        kind : {"bars", "points", "map"}, optional
            Bars from zero, points with whiskers, or the crossing of two factors by
            color. When left out, bars for counts, shares and totals, points for
            means, and a map for more than 60 cells of two factors.
        title : str, optional
            Title instead of the table's own.
        labels : mapping of str to str, optional
            Words instead of names on axes and in legends, such as
            ``{"income": "Income (dollars)", "male": "Men"}``.
        of : str, optional
            Variable to draw, of several. The first when left out.

        Returns
        -------
        matplotlib Axes
            The axes, whose ``figure`` is the picture.

        Raises
        ------
        PlanError
            For a kind, variable, row or label that is not there.
        """
        if kind == "map" and not self._is_crossing:
            raise PlanError("a map is of the crossing of two attributes", "plan 'a * b', or write plot(kind='bars')")
        self.column(of)
        own = self.looking(kind=kind, of=of)
        return super(CellTable, own).plot(alpha, ax, names=names, title=title, labels=labels)

    def picture(self, alpha: float) -> str:
        """How to read it."""
        return caption_of(self, alpha)

    @property
    def picture_size(self) -> tuple[float, float]:
        return size_of(self)
