"""The numbers of a table: of each cell of each marginal that was asked for, its estimate, interval and flags.

Numbers are computed when they are asked for, from the marginals that least squares put together (`margins`): an interval at any level, for
any of the two readings, needs nothing else of the release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from confide.methods.tables.cells.shape import margin_word
from confide.results.base import BaseResult, Foreseen, check_alpha
from confide.results.noise_share import DOMINATES, dominated, noise_share
from confide.results.pages.words import WITHOUT_NUMBERS

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

__all__ = ["READINGS", "CellNumbers", "cell_names", "checked_reading", "fraction_counted"]


#: What a table covers: the population that the records are a sample of, or these very records.
READINGS = ("population", "dataset")

# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054

_REASONS = {
    "weak": "no cell has enough records for its interval; ask for a coarser table or a larger budget",
    "uninformative": "the noise leaves every value possible in every cell; ask for a coarser table or a larger budget",
}
_FEW_PSUS = (
    "no cell is known to have records in more than three PSUs, or clusters, by a noisy count, and fewer do not show how much PSUs differ; "
    "ask for a coarser table, of more PSUs, or for a larger budget"
)
_NOBODY = (
    "; next to no record was counted: a label that is no level of the schema and a value that is no number count as missing, and a record "
    "with one is left out, so compare the schema's levels and kinds with the file"
)


def checked_reading(covers: Any, call: str) -> str:
    """`covers` when it is one of `READINGS`; `PlanError` with both calls otherwise.

    call: what was called, such as "cf.tables.Counts(...".
    """
    if covers not in READINGS:
        said = "was left out" if covers is None else f"must be 'population' or 'dataset', got {covers!r}"
        raise PlanError(
            f"covers {said}, and intervals differ: write {call}, covers='population') where the records are a sample and "
            f"the question is about those they were drawn from, or {call}, covers='dataset') for these very records"
        )
    return str(covers)


def fraction_counted(reading: str, size: float, population: int | None) -> float:
    """The share of the sampling variance that counts: 0 for the data set, 1 - n/N where N is public, else 1."""
    if reading == "dataset":
        return 0.0
    return 1.0 if population is None else 1.0 - min(max(size, 0.0), population) / population


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellNumbers(BaseResult):
    """The numbers of a table. layout, margins: what was asked and what was released; reading: "population" or "dataset"; population: the
    public size of a finite population, or None; target: what is estimated; covers: what intervals account for.

    A subclass gives `measured` (the names of its columns), `points`, `ends`, `marks` and the deviations behind joint intervals.
    """

    layout: Layout
    margins: Margins
    reading: str
    population: int | None = None

    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        if self.status == "ok":
            status = self._found_status()
            self._put("status", status)
            few = (status == "weak" and self._few_psus.any()) or (status != "ok" and self._few_psus.all())
            reason = _FEW_PSUS if few else _REASONS.get(status, "")
            self._put("reason", reason + (_NOBODY if status != "ok" and self._nobody else ""))
        super().__post_init__()

    # what a subclass gives --------------------------------------------------------------------------------------------

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns whose numbers stand in the table; one without a name for counts."""
        return ("",)

    def points(self, axes: Axes, column: int) -> tuple[Array, Array]:
        """(estimates, standard errors) of a marginal's cells, each (cells,)."""
        raise NotImplementedError

    def ends(self, axes: Axes, column: int, z: float) -> tuple[Array, Array]:
        """Ends of the intervals at the normal quantile z."""
        raise NotImplementedError

    def sampled(self, axes: Axes, column: int, z: float, *, apart: bool = False) -> tuple[Array, Array]:
        """Ends that sampling alone would give; apart: those that `compared` takes."""
        return self.quiet.compared(axes, column, z)[1:] if apart else self.quiet.ends(axes, column, z)

    def compared(self, axes: Axes, column: int, z: float) -> tuple[Array, Array, Array]:
        """Estimates and ends that differences and ratios take their margins from."""
        return (self.points(axes, column)[0], *self.ends(axes, column, z))

    def weak(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        """Cells whose interval is not to be relied on."""
        return np.zeros(self.layout.crossing.cells(axes), dtype=np.bool_)

    def few_psus(self, axes: Axes, column: int) -> NDArray[np.bool_]:
        """Cells in too few PSUs, or clusters, for an interval."""
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
    def levels(self) -> NDArray[np.int64]:
        """The place of each row's level of each attribute, (attributes, rows); where a row is over all levels their number."""
        crossing, parts = self.layout.crossing, []
        for axes, _ in self._places:
            cells = crossing.cells(axes)
            own = np.unravel_index(np.arange(cells), crossing.shape(axes)) if axes else ()
            at = dict(zip(axes, own, strict=True))
            row = [at.get(axis, np.full(cells, size)) for axis, size in enumerate(crossing.sizes)]
            parts.append(np.array(row, dtype=np.int64).reshape(len(crossing.sizes), cells))
        return np.concatenate(parts, axis=1)

    @cached_property
    def index(self) -> pd.DataFrame:
        """What each row is about: the variable where there are several, and a level of each attribute, `margin_word` over all of them."""
        attributes, found = self.layout.crossing.attributes, {}
        if any(self.measured):
            cells = [self.layout.crossing.cells(axes) for axes, _ in self._places]
            codes = np.repeat([column for _, column in self._places], cells)
            found["variable"] = pd.Categorical.from_codes(codes, categories=pd.Index(list(self.measured)))
        for own, codes in zip(attributes, self.levels, strict=True):
            labels = pd.Index([*own.labels, margin_word(own.labels)])
            found[own.name] = pd.Categorical.from_codes(codes, categories=labels)
        return pd.DataFrame(found, index=range(self.levels.shape[1]))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name for each row: "total", "region=N, smoker=yes", for means "income | region=N"."""
        return cell_names(self.layout, self.marginals, self.measured)

    @cached_property
    def _numbers(self) -> tuple[Array, Array]:
        parts = [self.points(axes, column) for axes, column in self._places]
        return np.concatenate([one for one, _ in parts]), np.concatenate([error for _, error in parts])

    @cached_property
    def _told(self) -> tuple[Array, Array]:
        """Estimates and standard errors as they are shown: none where the status or the row says that they mean nothing."""
        hidden = np.full(len(self.names), self.status in WITHOUT_NUMBERS) | self._open
        estimates, errors = self._numbers
        return np.where(hidden, nan, estimates), np.where(hidden, nan, errors)

    def _limits(self, z: float) -> tuple[Array, Array]:
        return self._joined(self.ends, z)

    def _joined(self, ends: Callable[[Axes, int, float], tuple[Array, Array]], z: float) -> tuple[Array, Array]:
        parts = [ends(axes, column, z) for axes, column in self._places]
        return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])

    @cached_property
    def quiet(self) -> Self:
        """The table as if its numbers had no noise."""
        return replace(self, margins=self.margins.quiet)

    @cached_property
    def _share(self) -> Array:
        """Of each row; all of an interval that noise made the whole range is noise."""
        (low, high), (below, above) = self._limits(_Z), self._joined(self.sampled, _Z)
        return np.where(self._open, 1.0, noise_share(high - low, above - below))

    # status -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _open(self) -> NDArray[np.bool_]:
        """Cells whose 95 % interval is all that the bounds allow."""
        parts = []
        for axes, column in self._places:
            low, high = self.ends(axes, column, _Z)
            least, most = self.bounds(column)
            parts.append((low <= least) & (high >= most) & isfinite(most))
        return np.concatenate(parts)

    @cached_property
    def _weak(self) -> NDArray[np.bool_]:
        return np.concatenate([self.weak(axes, column) for axes, column in self._places])

    @cached_property
    def _few_psus(self) -> NDArray[np.bool_]:
        return np.concatenate([self.few_psus(axes, column) for axes, column in self._places])

    def _found_status(self) -> str:
        """The result's: "uninformative" or "weak" only where every cell is; the cells have flags of their own."""
        if self._open.all():
            return "uninformative"
        return "weak" if (self._open | self._weak | self._few_psus).all() else "ok"

    @property
    def _nobody(self) -> bool:
        """Whether the number of records is not told from none by its noise."""
        return bool(self.size < 3 * np.sqrt(self.count_variance(())))

    @cached_property
    def marks(self) -> NDArray[Any]:
        """The flags of each row, joined by spaces."""
        estimates, errors = self._numbers
        few = np.concatenate([self.counts(axes) < 3 * np.sqrt(self.count_variance(axes)) for axes, _ in self._places])
        with np.errstate(all="ignore"):
            cv = errors / np.abs(estimates)
        parts = {
            "below_noise": few,
            "whole_range": self._open,
            "weak": self._weak,
            "few_psus": self._few_psus,
            "F": ~(cv < 1 / 3) & ~few,
            "E": (cv >= 0.165) & (cv < 1 / 3) & ~few,
            # of these very records there is nothing but noise
            DOMINATES: dominated(self._share) & ~self._open & (self.part > 0),
        }
        pattern = sum(where.astype(np.int64) << place for place, where in enumerate(parts.values()))
        words = [" ".join(name for place, name in enumerate(parts) if k >> place & 1) for k in range(1 << len(parts))]
        return np.asarray(np.array(words, dtype=object)[pattern])

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
        """The estimates by name; NaN where the status, or whole_range in the row, says that they mean nothing."""
        return pd.Series(self._told[0], index=list(self.names), dtype="float64")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors by name, NaN where `params` is."""
        return pd.Series(self._told[1], index=list(self.names), dtype="float64")

    @property
    def privacy_share(self) -> pd.Series[float]:
        """The part of each squared half-width, at 95 %, that sampling alone would not give (`confide.results.noise_share`)."""
        return pd.Series(self._share, index=list(self.names), dtype="float64")

    def foreseen(self) -> Foreseen:
        """The standard errors of its cells by name."""
        errors = np.asarray(self._numbers[1], dtype=float)
        told = np.isfinite(errors) & self.has_intervals
        return Foreseen(
            dict(zip(self.names, np.where(told, errors, nan).tolist(), strict=True)),
            float(told.mean()),
            self._share[told],
        )

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

    def column(self, of: str | None) -> int:
        """The position of a measured column; the first when left out."""
        if of is None:
            return 0
        if of not in self.measured:
            raise PlanError(f"the table has no variable {of!r}; it has: {', '.join(self.measured)}")
        return self.measured.index(of)


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
