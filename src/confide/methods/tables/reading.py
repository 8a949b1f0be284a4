"""The numbers of a table: of each cell of each marginal that was asked for, its estimate, interval and flags.

Numbers are computed when they are asked for, from the marginals that least squares put together (`margins`). An interval at any level, for
either reading, needs nothing else of the release.

Weighted means: sums of omega and of omega^2 by cell, omega = w/W, and what intervals and tests make of them.

The weighted mean m = sum omega u/sum omega has, to first order, the sampling variance sum omega^2 (u - m)^2/(sum omega)^2; its
skewness follows from sum omega^2 (u - m)^3. Both are released with the sums at no cost (`sums.cells.weighted_cells`). The
effective number of records is Kish's, (sum omega)^2/sum omega^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide import _special as special
from confide._arrays import Array
from confide._helpers import later
from confide.errors import PlanError
from confide.methods.tables.draw import Margins
from confide.methods.tables.intervals import MeanSums, margin_word
from confide.methods.tables.layout import Layout
from confide.results.base import BaseResult, Foreseen
from confide.results.pages.content import WITHOUT_NUMBERS, check_alpha
from confide.results.pages.table import DOMINATES, dominated, noise_share
from confide.sums.cells.cell_sums import Axes, Crossing

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


# Half of a 95 % interval in standard errors.
_Z = 1.959963984540054

_REASONS = {
    "imprecise": "no cell has enough records for its interval; ask for a coarser table or a larger budget",
    "no_information": "privacy noise allows every value in every cell; ask for a coarser table or a larger budget",
}
_FEW_PSUS = (
    "no cell is known to have records in more than three PSUs, or clusters. Fewer do not show how much PSUs differ; "
    "ask for a coarser table, of more PSUs, or for a larger budget"
)
_NOBODY = (
    "; next to no record was counted. A label that is not a level and a value that is not a number count as missing, and a record "
    "with one is excluded. So compare the schema's levels and kinds with the file"
)


def fraction_counted(inference: str, size: float, population: int | None) -> float:
    """The share of the sampling variance that counts: 0 for the dataset, 1 - n/N where N is public, else 1."""
    if inference == "dataset":
        return 0.0
    return 1.0 if population is None else 1.0 - min(max(size, 0.0), population) / population


#: Codes of rows, and what they name.
Coding: TypeAlias = tuple[NDArray[np.int64], tuple[str, ...]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CellNumbers(BaseResult):
    """The numbers of a table.

    layout, margins: the wanted cells and the released marginals.

    inference: "population" or "dataset". population: the public size of a
    finite population, or None. target: the estimand. intervals_for: what the intervals account for.

    A subclass gives `measured` (the names of its columns), `points`, `ends`, `marks` and the deviations of simultaneous intervals.
    """

    layout: Layout
    margins: Margins
    inference: str  # type: ignore[misc]  # of the class in families of one target
    population: int | None = None

    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        if self.status == "valid":
            status = self._found_status()
            self._put("status", status)
            few = (status == "imprecise" and self._few_psus.any()) or (status != "valid" and self._few_psus.all())
            reason = _FEW_PSUS if few else _REASONS.get(status, "")
            self._put("reason", reason + (_NOBODY if status != "valid" and self._nobody else ""))
        super().__post_init__()

    # what a subclass gives --------------------------------------------------------------------------------------------

    @property
    def measured(self) -> tuple[str, ...]:
        """The columns whose numbers the table has; one without a name for counts."""
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
        """The marginals in the table."""
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
        return fraction_counted(self.inference, self.size, self.population)

    @cached_property
    def _places(self) -> tuple[tuple[Axes, int], ...]:
        return tuple((axes, column) for column in range(len(self.measured)) for axes in self.marginals)

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """The place of each row's level of each attribute (`level_places`)."""
        return level_places(self.layout.crossing, [axes for axes, _ in self._places])

    @cached_property
    def about(self) -> dict[str, Coding]:
        """What each row is about, as codes and what they name.

        The variable where there are several, and a level of each attribute, `margin_word` over all of them.
        """
        own: dict[str, Coding] = {}
        if any(self.measured):
            cells = [self.layout.crossing.cells(axes) for axes, _ in self._places]
            own["variable"] = np.repeat([column for _, column in self._places], cells), tuple(self.measured)
        return own | level_codes(self.layout.crossing, self.levels)

    @cached_property
    def index(self) -> pd.DataFrame:
        """What each row is about, as categories."""
        found = {
            name: pd.Categorical.from_codes(codes, categories=pd.Index(list(names)))
            for name, (codes, names) in self.about.items()
        }
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
        """Cells whose 95% interval is all that the bounds allow."""
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
        """The result's: "no_information" or "imprecise" only where every cell is; the cells have separate flags."""
        if self._open.all():
            return "no_information"
        return "imprecise" if (self._open | self._weak | self._few_psus).all() else "valid"

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
            "count_below_noise": few,
            "whole_range": self._open,
            "skewed_few_records": self._weak,
            "few_psus": self._few_psus,
            "F": ~(cv < 1 / 3) & ~self._open,
            "E": (cv >= 0.165) & (cv < 1 / 3) & ~self._open,
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
        """The part of each squared margin of error, at 95%, that sampling alone would not give (`confide.results.base`)."""
        return pd.Series(self._share, index=list(self.names), dtype="float64")

    def foreseen(self) -> Foreseen:
        """The standard errors of its cells by name."""
        errors = np.asarray(self._told[1], dtype=float)
        told = np.isfinite(errors) & self.has_intervals
        return Foreseen(
            dict(zip(self.names, np.where(told, errors, nan).tolist(), strict=True)),
            float(told.mean()),
            self._share[told & (self.part > 0)],
            ("all numbers", "numbers") if self.kind == "table" else (f"all {self.kind}", self.kind),
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
        from confide.methods.tables.intervals import largest_errors

        return largest_errors(self)

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> pd.DataFrame:
        """Intervals at level 1 - alpha.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the level.
        simultaneous : bool, default False
            Whether all intervals cover together at the level.

        Returns
        -------
        DataFrame
            Columns 0 (low) and 1 (high), one row for each cell.
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


def level_places(crossing: Crossing, marginals: Iterable[Axes]) -> NDArray[np.int64]:
    """The place of each cell's level of each attribute, (attributes, cells); where a cell is over all levels their number."""
    parts = []
    for axes in marginals:
        cells = crossing.cells(axes)
        own = np.unravel_index(np.arange(cells), crossing.shape(axes)) if axes else ()
        at = dict(zip(axes, own, strict=True))
        row = [at.get(axis, np.full(cells, size)) for axis, size in enumerate(crossing.sizes)]
        parts.append(np.array(row, dtype=np.int64).reshape(len(crossing.sizes), cells))
    return np.concatenate(parts, axis=1)


def level_codes(crossing: Crossing, places: NDArray[np.int64]) -> dict[str, Coding]:
    """The same by attribute, with what the places name, `margin_word` over all levels."""
    return {
        own.name: (codes, (*own.labels, margin_word(own.labels)))
        for own, codes in zip(crossing.attributes, places, strict=True)
    }


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


_LEAST = 1e-4
# Of a cell's own weights and those of all records: as many records of the latter as this many noise sds of the cell's number.
_BORROWED = 4.0


def mean_weights(n: Array, squares: Array, noise_sd: Array | float, overall: float) -> Array:
    """sum omega^2/sum omega of each cell, moved toward that of all records where the cell is near its noise.

    >>> mean_weights(np.array([100.0, 0.0]), np.array([50.0, 3.0]), 1.0, 0.3).round(3).tolist()
    [0.492, 1.0]
    """
    borrowed = _BORROWED * noise_sd
    own = (np.maximum(squares, 0.0) + borrowed * overall) / np.maximum(np.maximum(n, 0.0) + borrowed, 1e-9)
    return np.asarray(np.clip(own, _LEAST, 1.0))


@dataclass(frozen=True, eq=False)
class WeightedSums(MeanSums):
    """`MeanSums` of weighted records, N = sum omega, and the same sums with omega^2: n2, s2, q2, c2, d2, of twice the noise variance."""

    n2: Array
    s2: Array
    q2: Array
    c2: Array
    d2: Array

    @cached_property
    def _squares(self) -> Array:
        """sum omega^2 (u - m)^2."""
        m = self.mean
        return np.asarray(self.n2 - self.q2 - 2 * m * self.s2 + m * m * self.n2)

    @cached_property
    def _squares_noise(self) -> Array:
        m = self.mean
        return np.asarray(2 * self.v0 * (1.0 + m * m) ** 2 + 2 * self.v1 * (1.0 + 4 * m * m))

    @cached_property
    def sampling_variance(self) -> Array:
        """sum omega^2 (u - m)^2/N."""
        top = np.maximum(1.0 - self.mean**2, _LEAST)
        return np.asarray(np.clip(self._squares / self.size, _LEAST * self._thin, top))

    @cached_property
    def variance(self) -> Array:
        """The same with half its noise SD, as intervals take it."""
        top = np.maximum(1.0 - self.mean**2, _LEAST)
        raw = (np.maximum(self._squares, 0.0) + np.sqrt(self._squares_noise) / 2) / self.size
        return np.asarray(np.clip(raw, _LEAST * self._thin, top))

    @cached_property
    def quiet(self) -> Self:
        m, (found, error) = self.mean, self._third
        third = np.sign(found) * np.maximum(np.abs(found) - error, 0.0)
        squares = np.maximum(self._squares, np.sqrt(self._squares_noise) / 2)
        whole = squares + 2 * m * self.s2 - m * m * self.n2
        c2 = self.s2 - (third + 3 * m * whole - 3 * m * m * self.s2 + m**3 * self.n2)
        return replace(super().quiet, q2=self.n2 - whole, c2=c2)

    @cached_property
    def _thin(self) -> Array:
        """sum omega^2/sum omega, at most 1: what a record's weight takes off the least variance."""
        return np.asarray(np.clip(self.n2 / self.size, 0.01, 1.0))

    @cached_property
    def effective(self) -> Array:
        """Kish's effective number of records, between 1 and what noise leaves."""
        floor = np.maximum(self.n2, self.size * _LEAST)
        return np.asarray(np.maximum(self.size**2 / floor, 1.0))

    @cached_property
    def _third(self) -> tuple[Array, Array]:
        """(sum omega^2 (u - m)^3, its noise SD)."""
        m = self.mean
        found = (self.s2 - self.c2) - 3 * m * (self.n2 - self.q2) + 3 * m * m * self.s2 - m**3 * self.n2
        noise = 2 * self.v1 * ((1 + 3 * m * m) ** 2 + 1 + 9 * m * m) + 2 * self.v0 * (3 * m + m**3) ** 2
        return found, np.sqrt(noise)

    @cached_property
    def _cubed(self) -> Array:
        """sum omega^3 f/sum omega^2 f as if weights told nothing of the values: it lies between sum omega^2/sum omega and 1."""
        return np.asarray(np.minimum(1.5 * self._thin, 1.0))

    @property
    def lean(self) -> Array:
        """sum omega^3 (u - m)^3 over sum omega^2 (u - m)^2, moved toward the more distant bound by half the noise of the former."""
        third, noise = self._third
        return np.asarray(self._cubed * (third - np.sign(self.mean) * noise / 2) / (self.variance * self.size))

    @cached_property
    def skewed(self) -> NDArray[np.bool_]:
        """Fewer records than three squared skewnesses of the weighted sum."""
        return np.asarray(3 * self.bend**2 > 1)

    @property
    def bend(self) -> Array:
        third, noise = self._third
        seen = self._cubed * np.maximum(np.abs(third) - noise, 0.0)
        return np.asarray(seen / (self.variance * self.size) ** 1.5)

    @cached_property
    def clear(self) -> NDArray[np.bool_]:
        return np.asarray(super().clear & (self._squares > 3 * np.sqrt(self._squares_noise)))

    @cached_property
    def spread_sampling(self) -> Array:
        """sum omega^2 ((u - m)^2 - s^2)^2/N, with half the noise SD of its largest part."""
        m, square = self.mean, self.plain_variance
        fourth = (
            (self.n2 - self.q2 - self.d2)
            - 4 * m * (self.s2 - self.c2)
            + 6 * m * m * (self.n2 - self.q2)
            - 4 * m**3 * self.s2
            + m**4 * self.n2
        )
        noise = np.sqrt(2 * self.fourth_noise) * self.size / 2
        found = fourth + noise - 2 * square * self._squares + square**2 * self.n2
        return np.asarray(np.maximum(found, 0.0) / self.size)

    @property
    def joint_sampling(self) -> Array:
        """sum omega^2 (u - m) ((u - m)^2 - s^2)/N."""
        found, _ = self._third
        return np.asarray((found - self.plain_variance * (self.s2 - self.mean * self.n2)) / self.size)

    def redrawn(self, mean: Array, own: Array, noises: Sequence[Array]) -> WeightedSums:
        """Draws of a release, (runs, cells), of records of the same weights."""
        size = np.broadcast_to(np.maximum(self.size, 2.0), own.shape)
        squares = np.broadcast_to(size * self._thin, own.shape)
        spread = own / self._thin
        parts = (
            size,
            size * mean,
            size * (1.0 - spread - mean**2),
            squares,
            squares * mean,
            squares * (1.0 - spread - mean**2),
        )
        # the sums of omega^2 are differences of two released ones: of the second kind's noise and of the first's
        first = list(noises[:3])
        second = [one + other for one, other in zip(noises[:3], noises[3:], strict=True)]
        n, s, q, n2, s2, q2 = (part + noise for part, noise in zip(parts, (*first, *second), strict=True))
        nothing = np.zeros(own.shape)
        return WeightedSums(n, s, q, nothing, nothing, self.v0, self.v1, n2, s2, q2, nothing, nothing)

    def total(self, middle: float, half: float, part: float) -> tuple[Array, Array, Array]:
        """(the sum of omega (middle + half u), its noise variance, its sampling variance sum omega^2 (middle + half u)^2)."""
        estimate, noise, _ = super().total(middle, half, part)
        squares = half**2 * (self.n2 - self.q2) + 2 * half * middle * self.s2 + middle**2 * self.n2
        return estimate, noise, part * np.maximum(squares, 0.0)


@dataclass(frozen=True, eq=False)
class UnitSums(WeightedSums):
    """The same of units, omega the part of a unit's rows in the cell, u their mean.

    rough: the noise variance of what least squares does not put together, over that of N and S.
    """

    rough: float = field(kw_only=True)

    @cached_property
    def _squares_noise(self) -> Array:
        return np.asarray(self.rough * super()._squares_noise)

    @cached_property
    def _third(self) -> tuple[Array, Array]:
        found, noise = super()._third
        return found, noise * np.sqrt(self.rough)
