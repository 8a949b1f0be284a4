"""A table: one estimate with its interval for each cell of each marginal that was asked for.

Numbers are computed when they are asked for, from the marginals that least squares put together (`margins`): an interval at any level, for
any of the two readings, needs nothing else of the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._lazy import later
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.margins import Margins
from confide.methods.tables.cells.per_level import whose_words
from confide.methods.tables.cells.shape import ALL
from confide.methods.tables.description.missing import missing_lines
from confide.protocol import Release
from confide.results.base import BaseResult, Column, check_alpha, level_heads
from confide.results.pages.words import WITHOUT_NUMBERS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes as Picture
else:
    pd = later("pandas")

__all__ = [
    "ALL",
    "READINGS",
    "CellTable",
    "cell_names",
    "checked_reading",
    "fraction_counted",
]


#: What a table covers: the population that the records are a sample of, or these very records.
READINGS = ("population", "dataset")

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
    "whole_range": "the noise leaves every value possible",
}
_IN_PLACE = "stand in place of suppression: noise protects the records, so that no cell is left out, and a flag says how far to trust one"
_REASONS = {
    "weak": "no cell has enough records for its interval; ask for a coarser table or a larger budget",
    "uninformative": "the noise leaves every value possible in every cell; ask for a coarser table or a larger budget",
}
_NOBODY = (
    "; next to no record was counted: a label that is no level of the schema and a value that is no number count as missing, and a record "
    "with one is left out, so compare the schema's levels and kinds with the file"
)
# Rows on a screen and in a picture; all of them are in `to_frame`.
_PRINTED = 60


def checked_reading(covers: Any, verb: str = "counts") -> str:
    """`covers` when it is one of `READINGS`; `PlanError` with both calls otherwise."""
    if covers not in READINGS:
        said = "was left out" if covers is None else f"must be 'population' or 'dataset', got {covers!r}"
        raise PlanError(
            f"covers {said}, and intervals differ: write cf.tables.{verb}(..., covers='population') where the records are a sample and "
            f"the question is about those they were drawn from, or cf.tables.{verb}(..., covers='dataset') for these very records"
        )
    return str(covers)


def fraction_counted(reading: str, size: float, population: int | None) -> float:
    """The share of the sampling variance that counts: 0 for the data set, 1 - n/N where N is public, else 1."""
    if reading == "dataset":
        return 0.0
    return 1.0 if population is None else 1.0 - min(max(size, 0.0), population) / population


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellTable(BaseResult):
    """What all tables share. layout, margins: what was asked and what was released; reading: "population" or "dataset"; population: the
    public size of a finite population, or None; target: what is estimated; covers: what intervals account for.

    A subclass gives `measured` (the names of its columns), `points`, `ends`, `marks` and the deviations behind joint intervals.
    """

    layout: Layout
    margins: Margins
    reading: str
    population: int | None = None
    display: str = ""
    drawing: str = ""
    drawn_column: str | None = None

    family: ClassVar[str] = "table"
    rows_are: ClassVar[str] = "cell"
    rows_called: ClassVar[str] = "cells"
    kind: ClassVar[str] = "table"
    #: What the numbers are called in the title.
    noun: ClassVar[str] = "Estimates"

    def __post_init__(self) -> None:
        if self.status == "ok":
            status = self._found_status()
            self._put("status", status)
            self._put("reason", _REASONS.get(status, "") + (_NOBODY if status != "ok" and self._nobody else ""))
        super().__post_init__()

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

    # what a subclass gives --------------------------------------------------------------------------------------------

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns whose numbers stand in the table; one without a name for counts."""
        return ("",)

    def points(self, axes: Axes, column: int) -> tuple[Array, Array, Array]:
        """(estimates, standard errors, share of the noise in the variance) of a marginal's cells, each (cells,)."""
        raise NotImplementedError

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        """Ends of the intervals at the normal quantile z."""
        raise NotImplementedError

    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]:
        """Estimates and ends that differences and ratios take their margins from."""
        return (self.points(axes, column)[0], *self.ends(axes, column, z))

    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        """Cells whose interval is not to be relied on."""
        return np.zeros(self.layout.crossing.cells(axes), dtype=np.bool_)

    def bounds(self, column: int) -> tuple[float, float]:
        """Between which the numbers lie by public facts."""
        return 0.0, inf

    def deviations(self, generator: np.random.Generator, draws: int) -> Iterator[Array]:
        """Draws of errors over standard errors, (draws, cells) for each marginal and column, jointly; nothing where they are not known."""
        return iter(())

    # cells ------------------------------------------------------------------------------------------------------------

    @property
    def marginals(self) -> tuple[Axes, ...]:
        """The marginals that stand in the table."""
        return self.layout.shown

    def counts(self, axes: Axes) -> Array:
        """Noisy numbers of records, (cells,)."""
        return np.asarray(self.margins.table(axes)[0].ravel())

    def count_variance(self, axes: Axes) -> float:
        """Their noise variance, the same for each cell."""
        return self.margins.variance(axes, counts=True)

    @cached_property
    def size(self) -> float:
        """The noisy number of all records."""
        return float(self.margins.table(())[0])

    @property
    def part(self) -> float:
        """The share of the sampling variance that counts."""
        return fraction_counted(self.reading, self.size, self.population)

    @cached_property
    def _places(self) -> tuple[tuple[Axes, int], ...]:
        return tuple((axes, column) for column in range(len(self.measured)) for axes in self.marginals)

    @cached_property
    def index(self) -> pd.DataFrame:
        """What each row is about: the column where there are several kinds, and a level of each attribute, `ALL` in margins."""
        crossing, parts = self.layout.crossing, []
        for axes, column in self._places:
            cells = crossing.cells(axes)
            levels = np.unravel_index(np.arange(cells), crossing.shape(axes)) if axes else ()
            at = dict(zip(axes, levels, strict=True))
            row = [np.full(cells, column)]
            row += [at.get(axis, np.full(cells, size)) for axis, size in enumerate(crossing.sizes)]
            parts.append(row)
        titles = ["variable", *(own.name for own in crossing.attributes)]
        labels = [self.measured, *((*own.labels, ALL) for own in crossing.attributes)]
        found = pd.DataFrame(
            {
                title: pd.Categorical.from_codes(
                    np.concatenate([row[k] for row in parts]).astype(np.int64), categories=pd.Index(list(own))
                )
                for k, (title, own) in enumerate(zip(titles, labels, strict=True))
            }
        )
        return found if any(self.measured) else found.drop(columns="variable")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name for each row: "total", "region=N, smoker=yes", for means "income | region=N"."""
        return cell_names(self.layout, self.marginals, self.measured)

    @cached_property
    def _numbers(self) -> tuple[Array, Array, Array]:
        parts = [self.points(axes, column) for axes, column in self._places]
        return tuple(np.concatenate([part[k] for part in parts]) for k in range(3))  # type: ignore[return-value]

    def _limits(self, z: float) -> tuple[Array, Array]:
        parts = [self.ends(axes, column, z) for axes, column in self._places]
        return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])

    # status -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _open(self) -> NDArray[np.bool_]:
        """Cells whose 95 % interval is all that the bounds allow."""
        parts = []
        for axes, column in self._places:
            low, high = self.ends(axes, column, 1.959963984540054)
            least, most = self.bounds(column)
            parts.append((low <= least) & (high >= most) & isfinite(most))
        return np.concatenate(parts)

    @cached_property
    def _weak(self) -> NDArray[np.bool_]:
        return np.concatenate([self.weak(axes, column) for axes, column in self._places])

    def _found_status(self) -> str:
        """The result's: "uninformative" or "weak" only where every cell is; the cells have flags of their own."""
        if self._open.all():
            return "uninformative"
        return "weak" if (self._open | self._weak).all() else "ok"

    @property
    def _nobody(self) -> bool:
        """Whether the number of records is not told from none by its noise."""
        return bool(self.size < 3 * np.sqrt(self.count_variance(())))

    @cached_property
    def marks(self) -> NDArray[Any]:
        """The flags of each row, joined by spaces."""
        estimates, errors, _ = self._numbers
        few = np.concatenate([self.counts(axes) < 3 * np.sqrt(self.count_variance(axes)) for axes, _ in self._places])
        with np.errstate(all="ignore"):
            cv = errors / np.abs(estimates)
        parts = {
            "below_noise": few,
            "whole_range": self._open,
            "weak": self._weak,
            "F": ~(cv < 1 / 3) & ~few,
            "E": (cv >= 0.165) & (cv < 1 / 3) & ~few,
        }
        pattern = sum(where.astype(np.int64) << place for place, where in enumerate(parts.values()))
        words = [" ".join(name for place, name in enumerate(parts) if k >> place & 1) for k in range(1 << len(parts))]
        return np.asarray(np.array(words, dtype=object)[pattern])

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
            (f"Values{named.removeprefix(' of values')}, added up" if named else "Records", size),
        ]
        if self.layout.weight is not None:
            own = [("Covers", self.reading), *self._weighted_head()]
        return (*own, ("Population size", f"{self.population:,}")) if self.population is not None else tuple(own)

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

    @property
    def effective_size(self) -> float:
        """How many records of equal weight would tell as much, after Kish: (sum w)^2/sum w^2; over the number of records, 1/deff."""
        if self.layout.weight is None:
            return self.size
        table = self.margins.table(())
        first, rest = float(table.ravel()[0]), float(table.ravel()[len(table) // 2])
        return self.size * first / max(first - rest, 1e-3 * abs(first), 1e-9)

    # the vocabulary of the other results ------------------------------------------------------------------------------

    @property
    def params(self) -> pd.Series[float]:
        """The estimates by name; NaN where the status says that they mean nothing."""
        hidden = self.status in WITHOUT_NUMBERS
        values = np.full(len(self.names), nan) if hidden else self._numbers[0]
        return pd.Series(values, index=list(self.names), dtype="float64")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors by name."""
        return pd.Series(self._numbers[1], index=list(self.names), dtype="float64")

    @property
    def privacy_share(self) -> pd.Series[float]:
        """The part of each variance that is privacy noise."""
        return pd.Series(self._numbers[2], index=list(self.names), dtype="float64")

    def quantile(self, alpha: float, simultaneous: bool = False) -> float:
        """The multiple of a standard error that intervals at level 1 - alpha reach; simultaneous: all cells at once."""
        z = float(-special.ndtri(check_alpha(alpha) / 2))
        if not simultaneous:
            return z
        largest = self._largest
        if largest is None:
            cells = sum(self.layout.crossing.cells(axes) for axes, _ in self._places)
            return float(-special.ndtri(-np.expm1(np.log1p(-alpha) / cells) / 2))
        return max(z, float(np.quantile(largest, 1.0 - alpha, method="higher")))

    @cached_property
    def _largest(self) -> Array | None:
        """Draws of the largest |error|/standard error over all cells; None where Sidak's quantile is used."""
        from confide.methods.tables.comparing.simultaneous import largest_errors

        return largest_errors(self)

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """Intervals at level 1 - alpha, columns 0 (low) and 1 (high), one row for each name.

        simultaneous: all of them hold together at that level; `quantile` says by how much they are wider.
        """
        low, high = self._limits(self.quantile(alpha, simultaneous))
        if self.status in WITHOUT_NUMBERS:
            low, high = np.full_like(low, nan), np.full_like(high, nan)
        return pd.DataFrame({0: low, 1: high}, index=list(self.names))

    def to_frame(self, alpha: float | None = None, *, simultaneous: bool = False) -> pd.DataFrame:
        """One row for each cell: its levels, estimate, std_err, low, high, cv, privacy_share, flag (`notes` has them in words)."""
        estimates, errors, share = self._numbers
        low, high = self._limits(self.quantile(self._alpha(alpha), simultaneous))
        if self.status in WITHOUT_NUMBERS:
            estimates, errors, low, high = (np.full(len(estimates), nan) for _ in range(4))
        with np.errstate(all="ignore"):
            cv = np.where(estimates != 0, errors / np.abs(estimates), inf)
        return self.index.assign(
            estimate=self.displayed(estimates),
            std_err=errors,
            low=low,
            high=high,
            cv=cv,
            privacy_share=share,
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
        """The table wide: the last attribute in columns, the others in rows, margins as `ALL`.

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

    def column(self, of: str | None) -> int:
        """The position of a measured column; the first when left out."""
        if of is None:
            return 0
        if of not in self.measured:
            raise PlanError(f"the table has no variable {of!r}; it has: {', '.join(self.measured)}")
        return self.measured.index(of)

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
        right = self.layout.words.rpartition("~")[2].strip().replace("`", "")
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


def cell_names(layout: Layout, shown: Sequence[Axes], measured: Sequence[str] = ("",)) -> tuple[str, ...]:
    """The names of rows: variable by variable, marginal by marginal, cell by cell."""
    found, crossing = [], layout.crossing
    for variable in measured:
        for axes in shown:
            titles = [crossing.attributes[axis].name for axis in axes]
            for labels in crossing.labels(axes):
                cell = ", ".join(f"{title}={label}" for title, label in zip(titles, labels, strict=True))
                found.append(f"{variable} | {cell}" if variable and cell else variable or cell or "total")
    return tuple(found)
