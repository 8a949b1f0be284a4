"""Many releases of one question at once: sums of many samples, noise of the planned variance, read by the functions that read releases.

A table's reader works cell by cell, so that replications stand beside the cells: `intervals.MeanSums`, `count_interval`, `share_interval`,
`difference` and `ratio` are those of the methods, least squares is `Margins`, noise variances are those of a release of the method's own
plan. The rounding of noise to its grid, far below it, is left out, and with it the cost of the gate; `tests/lab/test_tables_judge.py`
compares what is read here with the methods' results, number by number. Add-remove.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import confide as cf
from confide.core import seal
from confide.methods.quantiles.fitted_bins import fitted
from confide.methods.quantiles.method import Quantiles
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.draw import Margins
from confide.methods.tables.intervals import MeanSums, count_interval, difference, ratio, share_interval
from confide.methods.tables.means import Means
from confide.noise import SimulatedNoise
from confide.schema import CodedFrame
from confide.sums.distributions.cumulative import Bins, strategy
from confide_lab.benchmarks.tables_judge.sets import Case

__all__ = ["QUANTILES", "Answer", "Counted", "Measured", "Ranked", "Z", "compared"]

Array = np.ndarray
Z = 1.959963984540054
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Answer:
    """Numbers of one kind: names (k,); ends, which ones the result stands by, and the noise's share of the variance, each (r, k).

    own: what these very records say, (r, k), where the reading is of them.
    """

    kind: str
    names: tuple[str, ...]
    low: Array
    high: Array
    sure: Array
    noise: Array
    own: Array | None = None


def _template(method: Any, case: Case, widened: float, mu: float) -> tuple[Any, Any]:
    """A release of the method's own plan, of some records of the set, and its result."""
    schema = case.schema(widened)
    frame = case.frame.iloc[:1_000].reset_index(drop=True)
    release = seal(method, cf.read(frame, schema), cf.plan(method, schema, cf.GDP(mu)), SimulatedNoise(1))
    return release, method.infer(release)


def _within(p: Array, error: Array, covariance: Array) -> Array:
    """Correlations from covariances and standard errors."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(np.clip(covariance / error, -1.0, 1.0), nan=0.0))


def compared(
    points: Array, low: Array, high: Array, rho: Array, pairs: Sequence[tuple[int, int]], *, ratios: bool
) -> tuple[Array, Array]:
    """Ends of the differences, or ratios, of pairs of columns. points, low, high (r, k); rho (r, pairs)."""
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    first, second = ((points[:, at], low[:, at], high[:, at]) for at in (one, other))
    found = ratio(first, second, rho) if ratios else difference(first, second, rho)
    return np.asarray(found[1]), np.asarray(found[2])


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts and shares of a crossing of two attributes, and shares within the first one."""

    case: Case
    mu: float

    @cached_property
    def _read(self) -> tuple[Any, Any, Any]:
        own = self.case
        release, table = _template(Counts(own.crossing, inference="population"), own, 1.0, self.mu)
        _, shares = _template(Shares(own.crossing, inference="population"), own, 1.0, self.mu)
        return release, table, shares

    @cached_property
    def places(self) -> Array:
        """The cell of each record of the set in the crossing."""
        crossing = self._read[1].layout.crossing
        codes = CodedFrame.of(self.case.frame, self.case.schema()).codes
        return np.asarray(crossing.places(np.stack([codes[name] for name in crossing.columns]), (0, 1)))

    @property
    def table(self) -> Any:
        """Of counts, as the formula of widths takes it."""
        return self._read[1]

    @property
    def shares(self) -> Any:
        return self._read[2]

    def margins(self, samples: Sequence[Array], generator: np.random.Generator) -> tuple[Margins, dict[Any, Array]]:
        """(least squares of noisy marginals, exact ones), replications along the first axis. samples: rows of the set."""
        release, table, _ = self._read
        crossing = table.layout.crossing
        cells = np.stack([np.bincount(self.places[rows], minlength=crossing.cells((0, 1))) for rows in samples])
        wide = cells.reshape(-1, *crossing.shape((0, 1))).astype(float)
        exact = {(0, 1): wide, (0,): wide.sum(2), (1,): wide.sum(1), (): wide.sum((1, 2))}
        found = {}
        for axes in table.layout.closure:
            title = crossing.title(axes) if axes else "(total)"
            noisy = release.statistics.get(title)
            if noisy is not None:
                noise = generator.standard_normal(exact[axes].shape) * np.sqrt(noisy.variance)
                found[axes] = exact[axes] + noise, noisy.variance
        return Margins.of(crossing.sizes, found), exact

    def answers(self, margins: Margins, exact: dict[Any, Array]) -> Iterator[Answer]:
        """All kinds, from one set of releases. exact: the marginals without noise."""
        _, table, shares = self._read
        runs = len(margins.components[()])
        flat = {axes: margins.table(axes).reshape(runs, -1) for axes in table.marginals}
        few = {axes: flat[axes] < 3 * np.sqrt(margins.variance(axes)) for axes in table.marginals}
        for part, words in ((1.0, ""), (0.0, ", these records")):
            parts = []
            for axes in table.marginals:
                v, y = margins.variance(axes), flat[axes]
                low, high = count_interval(y, v, Z, part)
                total = part * np.maximum(y, 0.0) + v
                parts.append((low, high, ~few[axes], v / total))
            own = [exact[axes].reshape(runs, -1) for axes in table.marginals]
            yield Answer(f"counts{words}", table.names, *_joined(parts), None if part else np.concatenate(own, axis=1))
            parts = []
            for axes in shares.marginals:
                _, _, v, base, both = shares.parts(axes)
                low, high = share_interval(flat[axes], flat[()], v, base, both, Z, part)
                *_, noise = _share(flat[axes], flat[()], v, base, both, part)
                parts.append((low, high, ~few[axes] & ~((low <= 0) & (high >= 1)), noise))
            own = [exact[axes].reshape(runs, -1) / exact[()][:, None] for axes in shares.marginals]
            yield Answer(f"shares{words}", shares.names, *_joined(parts), None if part else np.concatenate(own, axis=1))
        yield from self._compared(margins, flat, few)

    def _compared(self, margins: Margins, flat: Any, few: Any) -> Iterator[Answer]:
        """Shares within the first attribute: each of its levels less, and over, the first one."""
        crossing = self.table.layout.crossing
        groups, others = crossing.shape((0, 1))
        v, base = margins.variance((0, 1)), margins.variance((0,))
        # of a cell with its own group: the cells of a group share its noise evenly
        both = base * margins.cells((0,)) / margins.cells((0, 1))
        y, n = flat[(0, 1)], np.repeat(flat[(0,)], others, axis=1)
        low, high = share_interval(y, n, v, base, both, Z)
        p, error, _ = _share(y, n, v, base, both, 1.0)
        pairs = [(g * others + b, b) for g in range(1, groups) for b in range(others)]
        rho = np.stack(
            [self._correlation(margins, p, np.maximum(n, 1.0), error, pair, others) for pair in pairs], axis=1
        )
        unsure = np.stack([few[(0, 1)][:, one] | few[(0, 1)][:, other] for one, other in pairs], axis=1)
        names = [", ".join(f"{own.name}={label}" for own, label in zip(crossing.attributes, labels, strict=True))
                 for labels in crossing.labels((0, 1))]  # fmt: skip
        for ratios, kind, sign in ((False, "differences of shares", "-"), (True, "relative risks", "/")):
            ends = compared(p, low, high, rho, pairs, ratios=ratios)
            titles = tuple(f"({names[one]}) {sign} ({names[other]})" for one, other in pairs)
            yield Answer(kind, titles, *ends, ~unsure, np.full(unsure.shape, np.nan))

    def _correlation(
        self, margins: Margins, p: Array, n: Array, error: Array, pair: tuple[int, int], others: int
    ) -> Array:
        """Of two shares of different groups: by noise alone."""
        cells = [((0, 1), list(divmod(cell, others))) for cell in pair]
        bases = [((0,), [cell // others]) for cell in pair]
        first, second = p[:, pair[0]], p[:, pair[1]]
        noise = (
            margins.covariance(cells[0], cells[1])
            - second * margins.covariance(cells[0], bases[1])
            - first * margins.covariance(bases[0], cells[1])
            + first * second * margins.covariance(bases[0], bases[1])
        ) / (n[:, pair[0]] * n[:, pair[1]])
        return _within(p, error[:, pair[0]] * error[:, pair[1]], noise)


def _share(y: Array, n: Array, v: float, base: float, both: float, part: float) -> tuple[Array, Array, Array]:
    """(estimates, standard errors, the noise's share)."""
    size = np.maximum(n, 1.0)
    p = np.clip(y / size, 0.0, 1.0)
    noise = np.maximum(v - 2 * p * both + p * p * base, 0.0) / size**2
    variance = part * p * (1 - p) / size + noise
    return p, np.sqrt(variance), noise / variance


def _joined(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, Array, Array, Array]:
    low, high, sure, noise = (
        np.concatenate([np.broadcast_to(part[k], part[0].shape) for part in parts], axis=1) for k in range(4)
    )
    return low, high, sure, noise


@dataclass(frozen=True, eq=False)
class Measured:
    """Means of several columns by one attribute, bounds `widened` times as wide."""

    case: Case
    mu: float
    widened: float

    @cached_property
    def _read(self) -> tuple[Any, Any]:
        formula = f"{' + '.join(self.case.measures)} ~ {self.case.recipe.group}"
        return _template(Means(formula, inference="population"), self.case, self.widened, self.mu)

    @property
    def table(self) -> Any:
        return self._read[1]

    @cached_property
    def _records(self) -> tuple[Array, Array]:
        """(cell of each record in the largest marginal, its block in integers): the method's own map."""
        table, schema = self.table, self.case.schema(self.widened)
        rows = type(table.rows)(table.layout.crossing, (0,), table.rows.measures, table.rows.count)
        practice = CodedFrame.of(self.case.frame, schema)
        place, block = rows.rows(np.stack([practice.codes[name] for name in rows.columns]))
        return place, block.T.copy()

    def sums(self, samples: Sequence[Array], generator: np.random.Generator) -> tuple[Margins, Margins]:
        """Least squares of noisy marginals, (replications x numbers, levels), and the same without noise."""
        release, table = self._read
        place, block = self._records
        cells = table.layout.crossing.cells((0,))
        exact = np.zeros((len(samples), block.shape[1], cells + 1))
        for r, rows in enumerate(samples):
            own, at = block[rows], place[rows]
            for number in range(own.shape[1]):
                exact[r, number] = np.bincount(at, weights=own[:, number], minlength=cells + 1)
        exact = exact[:, :, :cells].reshape(-1, cells)
        found: dict[Any, tuple[Array, float]] = {}
        for axes, values in (((0,), exact), ((), exact.sum(1))):
            noisy = release.statistics.get(table.layout.crossing.title(axes) if axes else "(total)")
            if noisy is not None:
                found[axes] = values + generator.standard_normal(values.shape) * np.sqrt(noisy.variance), noisy.variance
        bare = Margins.of(table.layout.crossing.sizes, {(0,): (exact, 1.0)})
        return Margins.of(table.layout.crossing.sizes, found), bare

    def parts(self, margins: Margins, column: int) -> list[tuple[Any, MeanSums]]:
        """(marginal, sums of its cells in each replication, (r, cells)), as `MeanTable.sums` makes them."""
        rows, found = self.table.rows, []
        for axes in self.table.marginals:
            own = margins.table(axes)
            whole = own.reshape(-1, rows.block, int(np.prod(own.shape[1:])))
            start, v = rows.starts[column], margins.variance(axes)
            n, v0 = whole[:, 0] / rows.count, margins.variance(axes, counts=True) / rows.count**2
            if rows.counts_missing(column):
                n, v0 = n - whole[:, start + 4] / 2.0**20, v0 + v / 4.0**20
            s, q, c, d = (whole[:, start + k] / rows.steps for k in range(4))
            found.append((axes, MeanSums(n, s, q, c, d, np.full(n.shape, v0), np.full(n.shape, v / rows.steps**2))))
        return found

    def answers(self, margins: Margins, exact: Margins | None) -> Iterator[Answer]:
        """Means and their differences from the first group. exact: sums without noise, for the reading of the data set, or None."""
        table, words = self.table, f"bounds x{self.widened:g}"
        counted = {
            axes: margins.table(axes).reshape(-1, table.rows.block, table.margins.cells(axes))[:, 0]
            for axes in table.marginals
        }
        few = {axes: counted[axes] < 3 * np.sqrt(margins.variance(axes, counts=True)) for axes in table.marginals}
        for part, kind in ((1.0, f"means, {words}"), *(((0.0, "means, these records"),) if exact else ())):
            found = []
            for column in range(len(table.measured)):
                middle, half = table._scale(column)
                for axes, sums in self.parts(margins, column):
                    low, high = sums.interval(Z, part)
                    unsure = few[axes] | ((low <= -1) & (high >= 1)) | (sums.skewed if part else False)
                    error = sums.standard_error(part)
                    noise = sums.noise(sums.mean) / sums.size**2 / error**2
                    found.append((middle + half * low, middle + half * high, ~unsure, noise))
            own = None if part or exact is None else self._means(exact)
            yield Answer(kind, table.names, *_joined(found), own)
        yield self._compared(margins, few[(0,)], words)

    def _means(self, exact: Margins) -> Array:
        """Of the samples themselves, NaN for a group without records."""
        found = []
        for column in range(len(self.table.measured)):
            middle, half = self.table._scale(column)
            for _, sums in self.parts(exact, column):
                # sums of exact integers are off by the last bits of doubles
                size = np.rint(sums.n)
                with np.errstate(all="ignore"):
                    found.append(np.where(size > 0, middle + half * sums.s / size, np.nan))
        return np.concatenate(found, axis=1)

    def _compared(self, margins: Margins, few: Array, words: str) -> Answer:
        table = self.table
        groups = table.layout.crossing.cells((0,))
        pairs = [(g, 0) for g in range(1, groups)]
        of_n = margins.covariance(((0,), [1]), ((0,), [0]), counts=True) / table.rows.count**2
        of_s = margins.covariance(((0,), [1]), ((0,), [0])) / table.rows.steps**2
        found, names, labels = [], [], [label[0] for label in table.layout.crossing.labels((0,))]
        for column, measure in enumerate(table.measured):
            _, half = table._scale(column)
            sums = dict(self.parts(margins, column))[(0,)]
            low, high = sums.interval(Z)
            size, mean, error = sums.size, sums.mean, sums.standard_error()
            one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            shared = (of_s + mean[:, one] * mean[:, other] * of_n) / (size[:, one] * size[:, other])
            rho = _within(mean, error[:, one] * error[:, other], shared)
            ends = compared(mean, low, high, rho, pairs, ratios=False)
            unsure = (few | sums.skewed)[:, one] | (few | sums.skewed)[:, other]
            found.append((half * ends[0], half * ends[1], ~unsure, np.full(unsure.shape, np.nan)))
            group = table.layout.crossing.attributes[0].name
            names += [f"{measure}: ({group}={labels[a]}) - ({group}={labels[b]})" for a, b in pairs]
        return Answer(f"differences of means, {words}", tuple(names), *_joined(found))


@dataclass(frozen=True, eq=False)
class Ranked:
    """Quantiles of one column by one attribute."""

    case: Case
    mu: float
    widened: float
    column: str

    @cached_property
    def _read(self) -> tuple[Any, Any, Any, Any]:
        """(release, result, what the method's plan is about, the cell and fine bin of each record)."""
        method = Quantiles(f"{self.column} ~ {self.case.recipe.group}", quantiles=QUANTILES)
        release, result = _template(method, self.case, self.widened, self.mu)
        about = method.about(self.case.schema(self.widened))
        practice = CodedFrame.of(self.case.frame, self.case.schema(self.widened))
        place, coded = about.rows.coded(np.stack([practice.codes[name] for name in about.rows.columns]))
        at, size = about.fine.at(np.nan_to_num(coded)), about.fine.size
        # a record without a value, or in no group, stands behind the last bin
        return release, result, about, np.where(place >= about.rows.cells, about.rows.cells * size, place * size + at)

    def answer(self, samples: Sequence[Array], generator: np.random.Generator) -> Answer:
        """Quantiles of all records and of each group, by both rounds of the method."""
        release, result, about, places = self._read
        first, own = strategy(about.first.bins.size), result.groups[0].strategy
        outer, unit = (release[name].variance / 4.0**20 for name in ("outline", "cumulative"))
        size, cells, bins = about.fine.size, about.rows.cells, about.rows.bins.size
        parts = []
        for rows in samples:
            counts = np.bincount(places[rows], minlength=cells * size + 1)[: cells * size].reshape(cells, size)
            coarse = np.add.reduceat(counts.sum(axis=0), about.coarse)
            told = coarse + np.sqrt(outer) * first.root @ generator.standard_normal(len(coarse))
            starts = fitted(told, about.coarse, size, bins)
            noisy = np.add.reduceat(counts, starts, axis=1)
            noisy = noisy + np.sqrt(unit) * generator.standard_normal((cells, bins)) @ own.root.T
            edges = about.laid(starts).bins
            parts.append(self._of([noisy.sum(0), *noisy], [unit * cells, *[unit] * cells], edges))
        names = tuple(f"{self.column} | {name}" for name in result.names)
        low, high, sure, noise = (np.stack([part[k] for part in parts]) for k in range(4))
        return Answer(f"quantiles, bounds x{self.widened:g}", names, low, high, sure.astype(bool), noise)

    def _of(self, counts: Sequence[Array], units: Sequence[float], bins: Bins) -> list[Array]:
        found: list[list[Any]] = [[], [], [], []]
        for own, values, unit in zip(self._read[1].groups, counts, units, strict=True):
            group = QuantileGroup(own.name, values, unit, bins, own.strategy)
            read = group.quantiles(np.array(QUANTILES), 0.05)
            q = np.array(QUANTILES)
            noise = unit * np.array([float(own.strategy.centred(float(one)).max()) for one in q])
            for part, more in zip(
                found,
                (
                    read.low,
                    read.high,
                    ~(read.open | group.below_noise),
                    noise / (noise + np.maximum(group.size, 0) * q * (1 - q)),
                ),
                strict=True,
            ):
                part.extend(more)
        return [np.array(part) for part in found]
