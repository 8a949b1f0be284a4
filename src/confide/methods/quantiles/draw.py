"""The rounds that release quantiles, in their order, and the groups that are read off them.

`CumulativeRounds` has Gaussian noise and any groups: an outline of all records lays the bins, and every group is counted in them.
`TreeRounds` has geometric noise and all records: an outline finds the quantiles that are asked for, and a tree counts about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Whole
from confide.core import Meter, Noisy, Release, Statistic
from confide.errors import ReleaseError
from confide.methods.quantiles.fitted_bins import Fine, FineHistograms, about_quantiles, fitted, of_starts, outline
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.quantiles.sums import FinePlace, TreeCounts, tree_strategy
from confide.methods.tables.layout import Layout
from confide.sums.cells.cell_sums import Axes, Histogram
from confide.sums.cells.moments import Measure
from confide.sums.coding import BITS
from confide.sums.distributions.cumulative import Bins, BinTotals, CumulativeRows, strategy

#: Fitted bins: as many as the rounding to whole bins needs to stay beside the sampling error of 10,000 records.
FITTED = 384
# Shares of mu^2: of the round that lays the bins, and of the one that counts in them.
_LAID, _COUNTED = Fraction(1, 8), Fraction(7, 8)
# Shares of epsilon: of the round that finds the quantiles, and of the one that counts about them.
_FOUND, _ABOUT = Fraction(1, 5), Fraction(4, 5)
_TREE, _SMALL = (16, 16), (16,)
_BINS = 256
# Fine bins at most, of which those of both rounds of trees are made.
_FINE = 1 << 16
# Within so many standard errors of round 1 and sampling a quantile is looked for.
_NEAR = 3.0


@dataclass(frozen=True)
class CumulativeRounds:
    """The groups, the measure, the bins, as the record map of the strategy. Made by `CumulativeRounds.of`.

    first, fine: the map of the round that lays the bins, and the fine bins that both rounds are made of; None where bins are public.
    Those of `rows` stand for their number until the first round is known.

    of_column: the end of the names of its spends and public numbers,
    where a release holds quantiles of several columns.
    """

    layout: Layout
    rows: CumulativeRows
    first: CumulativeRows | None = None
    fine: Fine | None = None
    of_column: str = ""

    @classmethod
    def of(
        cls,
        layout: Layout,
        measure: Measure,
        bins: int | Sequence[float] | None = None,
        *,
        fitted: int = FITTED,
        of_column: str = "",
    ) -> CumulativeRounds:
        """Of a layout with one maximal marginal. bins: public ones; None for `fitted` bins that are laid where the records are."""
        axes = layout.maximal[0]
        rows = CumulativeRows(layout.crossing, axes, measure, Bins.of(measure, fitted if bins is None else bins))
        # where each value has a bin of its own there is nothing to lay
        if bins is not None or measure.term.steps <= fitted:
            return cls(layout, rows, of_column=of_column)
        # an integer column's even bins may be fewer than were asked for
        rows = replace(
            rows, bins=replace(rows.bins, starts=tuple(range(fitted)), edges=tuple(map(float, range(fitted + 1))))
        )
        fine = Fine.of(measure, rows.cells, fitted)
        first = CumulativeRows(layout.crossing, (), measure, outline(measure, fine))
        return cls(layout, rows, first, fine, of_column)

    # names and rounds -------------------------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        """Of a spend or a public number of these quantiles."""
        return what + self.of_column

    def statistics(self, share: Fraction = Fraction(1)) -> dict[str, tuple[Statistic, Fraction]]:
        """The strategy's integers, of all records where the bins are laid, and of every group. share: of the whole cost."""
        counted = self.name("cumulative"), BinTotals(self.rows)
        if self.first is None:
            return {counted[0]: (counted[1], share)}
        return {
            self.name("outline"): (BinTotals(self.first), share * _LAID),
            counted[0]: (counted[1], share * _COUNTED),
        }

    def unreleased(self) -> dict[str, Statistic]:
        """The fine histograms, from which both rounds follow; none where bins are public."""
        return {} if self.fine is None else {self.name("histograms"): FineHistograms(self.rows, self.fine)}

    def draw(self, counts: NDArray[np.int64], meter: Meter) -> dict[str, NDArray[np.int64]]:
        """From the fine histograms, which stay here: round 1, the bins that follow from it, round 2. Returns where the bins start."""
        assert self.first is not None
        whole = np.add.reduceat(counts.sum(axis=0, keepdims=True), self.coarse, axis=1)
        starts = self.starts(meter.draw(self.name("outline"), BinTotals(self.first).value(whole)))
        meter.draw(self.name("cumulative"), BinTotals(self.laid(starts)).value(np.add.reduceat(counts, starts, axis=1)))
        return {self.name("starts"): starts}

    def laid(self, starts: NDArray[np.int64]) -> CumulativeRows:
        """The map of round 2, once the fine bins are known at which its bins start."""
        assert self.fine is not None
        return replace(self.rows, bins=of_starts(self.rows.measure, self.fine, starts))

    def starts(self, noisy: Noisy) -> NDArray[np.int64]:
        """The fine bins at which the bins of round 2 start, from round 1."""
        assert self.first is not None and self.fine is not None
        counts = strategy(self.first.bins.size).counts(noisy.decode())
        return fitted(counts, self.coarse, self.fine.size, self.rows.bins.size)

    @property
    def coarse(self) -> NDArray[np.int64]:
        """The fine bins at which those of round 1 start."""
        assert self.first is not None and self.fine is not None
        return np.array(self.first.bins.starts, dtype=np.int64) // self.fine.width

    # reading ----------------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> tuple[tuple[str, Axes, int], ...]:
        """(name, attributes, cell) of each group of the table: all records first, then each shown group."""
        crossing = self.layout.crossing
        found = []
        for axes in self.layout.shown:
            titles = [crossing.attributes[axis].name for axis in axes]
            for cell, labels in enumerate(crossing.labels(axes)):
                name = ", ".join(f"{title}={label}" for title, label in zip(titles, labels, strict=True))
                found.append((name, axes, cell))
        return tuple(found)

    def read(self, release: Release, part: float, groups: Sequence[tuple[str, Axes, int]]) -> Iterator[QuantileGroup]:
        """Least squares in each cell, and sums over cells for the groups that are margins. part: 0 for exactly these records, or 1."""
        rows = self.rows if self.first is None else self.laid(self._starts(release.public))
        noisy, own = release[self.name("cumulative")], strategy(rows.bins.size)
        values = noisy.decode().reshape(rows.block, rows.cells).T
        counts = own.counts(values).reshape(*self.layout.crossing.shape(rows.axes), rows.bins.size)
        unit = noisy.variance / 4.0**20
        for name, axes, cell in groups:
            left_out = tuple(k for k, axis in enumerate(rows.axes) if axis not in axes)
            margin = counts.sum(axis=left_out).reshape(-1, rows.bins.size)
            summed = rows.cells // len(margin)
            yield QuantileGroup(name, margin[cell], unit * summed, rows.bins, own, part)

    def _starts(self, public: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Where the release says that the bins start; `ReleaseError` for what no release says."""
        found = np.asarray(public.get(self.name("starts"), ()), dtype=np.int64)
        size = self.fine.size if self.fine is not None else 0
        if found.shape != (self.rows.bins.size,) or found[0] != 0 or found[-1] >= size or (np.diff(found) < 1).any():
            raise ReleaseError("the release does not say where its bins start: the file was altered")
        return found


@dataclass(frozen=True)
class TreeRounds:
    """A column with its fine bins; outline: the fine bins at which round 1's bins start, () where every value has its own bin."""

    measure: Measure
    place: FinePlace
    outline: tuple[int, ...]

    @classmethod
    def of(cls, measure: Measure) -> TreeRounds:
        """Of a measure that is a column as it stands."""
        (column,), schema, codes = measure.columns, measure.design.schema, measure.term.steps
        place = FinePlace(schema, column, Fine(codes, ceil(codes / _FINE)))
        if codes <= _BINS:
            return cls(measure, place, ())
        starts = {start // place.fine.width for start in Bins.graded(measure, _BINS).starts}
        return cls(measure, place, tuple(sorted(starts)))

    @property
    def first(self) -> TreeCounts:
        """What round 1 counts."""
        return TreeCounts(self.place, _TREE, self.outline)

    @property
    def second(self) -> TreeCounts:
        """What round 2 counts: in even bins, until round 1 says where they start."""
        size = self.place.cells
        if not self.outline:
            return TreeCounts(self.place, _TREE if size > _SMALL[0] else _SMALL, tuple(range(size)))
        return TreeCounts(self.place, _TREE, tuple(k * size // _BINS for k in range(_BINS)))

    def statistics(self) -> dict[str, tuple[Statistic, Fraction]]:
        """The trees, with their shares of epsilon."""
        if not self.outline:
            return {"tree": (self.second, Fraction(1))}
        return {"outline": (self.first, _FOUND), "tree": (self.second, _ABOUT)}

    def unreleased(self) -> dict[str, Statistic]:
        """The fine counts, from which both rounds follow; none where every value has a bin."""
        return {"fine": Histogram(self.place)} if self.outline else {}

    def draw(self, counts: Whole, meter: Meter, qs: Sequence[float]) -> dict[str, NDArray[np.int64]]:
        """From the fine counts, which stay here: round 1, the bins that follow from it, round 2. Returns where the bins start."""
        outline = meter.draw("outline", self.first.of_fine(counts, np.array(self.outline)))
        starts = self.starts(outline, qs)
        meter.draw("tree", self.second.of_fine(counts, starts))
        return {"starts": starts}

    def starts(self, noisy: Noisy, qs: Sequence[float]) -> Whole:
        """The fine bins at which those of round 2 start, from round 1."""
        own = self._group(noisy, self.first.tree, np.array(self.outline))
        size = max(own.size, 1.0)
        spans = []
        for q in qs:
            half = _NEAR * sqrt(size * q * (1 - q) + own.unit * float(own.strategy.centred(q).max())) / size
            spans.append((max(q - half, 0.0), min(q + half, 1.0)))
        return about_quantiles(own.rising, np.array(self.outline), self.place.cells, _BINS, spans)

    def reach(self, q: float, n: int, noise_sd: float) -> float:
        """The standard error of the share of n records below their quantile q."""
        bins = len(self.second.starts)
        middle = float(tree_strategy(self.second.tree, bins).centred(q)[int(q * bins)])
        return sqrt(n * q * (1 - q) + noise_sd**2 * middle) / n

    def read(self, release: Release) -> QuantileGroup:
        """All records."""
        starts = np.array(self.second.starts)
        if self.outline:
            starts = np.asarray(release.public.get("starts", ()), dtype=np.int64)
            rising = starts.shape == (_BINS,) and starts[0] == 0 and starts[-1] < self.place.cells
            if not rising or (np.diff(starts) < 1).any():
                raise ReleaseError("the release does not say where its bins start: the file was altered")
        return self._group(release["tree"], self.second.tree, starts)

    def _group(self, noisy: Noisy, tree: tuple[int, ...], starts: Whole) -> QuantileGroup:
        """Least squares of a released tree whose bins start at these fine ones."""
        own = tree_strategy(tree, len(starts))
        counts = own.counts(noisy.decode() * 2.0**BITS)
        return QuantileGroup("", counts, noisy.variance, of_starts(self.measure, self.place.fine, starts), own)
