"""Rows of Table One from a release. All records are the sum of the groups, with the sum of their noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.crossing import Attribute
from confide.aggregates.cells.free_moments import Measure, MomentRows
from confide.methods.quantiles.reading import QuantileGroup
from confide.methods.tables.cells.intervals import MeanSums
from confide.methods.tables.cells.weighted import WeightedSums, mean_weights
from confide.methods.tables.description.missing import UNKNOWN, alone_parts, missing_parts, noisy_numbers
from confide.methods.tables.description.table_one_about import STEPS, TableOneAbout
from confide.methods.tables.description.table_one_reading import Level, Numeric, Row
from confide.protocol import Release

__all__ = ["Reader"]


@dataclass(frozen=True)
class Reader:
    """The rows of a release. All records are the sum of the groups, with the sum of their noise."""

    release: Release
    about: TableOneAbout
    part: float

    def read(self) -> tuple[tuple[Row, ...], Array, float]:
        """(rows, numbers of records: all, then each group; the noise sd of a group's)."""
        rows: list[Row] = []
        for name in self.about.order:
            rows += [self._numeric(k) for k, own in enumerate(self.about.measures) if own.name == name]
            rows += [row for own in self.about.levels if own.name == name for row in self._levels(own)]
        sizes, variance = self._sizes
        return tuple(rows), np.append(sizes.sum(), sizes), float(np.sqrt(variance))

    def missing(self) -> tuple[tuple[str, str], ...]:
        """What becomes of missing values: of a group's column the record, of a row's the value, in numbers as far as they are released."""
        about = self.about
        columns = {name: about.schema[name] for own in about.measures for name in own.columns}
        columns |= {own.column: about.schema[own.column] for own in about.levels}
        apart = [own.name for own in about.measures if own.drops]
        apart += [own.name for own in about.levels if about.schema[own.column].on_missing == "drop"]
        kept = {name: column for name, column in columns.items() if column.on_missing != "drop"}
        parts = missing_parts(about.groups, [] if about.weight is None else [about.weight])
        parts += [UNKNOWN] if any("left out" in part for part in parts) else []
        parts += alone_parts(kept, apart, noisy_numbers(self._without()))
        return (("Missing", "; ".join(parts)),) if parts else ()

    def _without(self) -> dict[str, tuple[float, float]]:
        """(number of records without a value, its noise sd) by column; nothing of weighted records."""
        if self.about.weight is not None:
            return {}
        found, (sizes, variance), cells = {}, self._sizes, self.about.cells
        for k, own in enumerate(self.about.measures):
            table, rows, noise = self._moments
            if rows.counts_missing(k):
                found[own.name] = float(table[rows.starts[k] + 4].sum()) / STEPS, sqrt(cells * noise) / STEPS
            elif own.drops:
                number = float(sizes.sum() - table[0].sum() / rows.count)
                found[own.name] = number, sqrt(cells * (variance + noise / rows.count**2))
        for level in self.about.levels:
            if self.about.schema[level.column].on_missing == "drop":
                noisy = self.release[f"levels of {level.name}"]
                sd = sqrt(cells * (variance + level.size * noisy.variance))
                found[level.name] = float(sizes.sum() - noisy.decode().sum()), sd
        return found

    @cached_property
    def _moments(self) -> tuple[Array, MomentRows, float]:
        rows = self.about.moments(self.release.plan.relation)
        noisy = self.release["moments"]
        return noisy.decode().reshape(-1, self.about.cells), rows, noisy.variance

    @cached_property
    def _sizes(self) -> tuple[Array, float]:
        if self.about.apart:
            groups, step = self.release["groups"], self.about.step
            return groups.decode().reshape(-1, self.about.cells)[0] / step, groups.variance / step**2
        table, rows, variance = self._moments
        return table[0] / rows.count, variance / rows.count**2

    def _numeric(self, column: int) -> Row:
        table, rows, variance = self._moments
        measure = self.about.measures[column]
        v0, v1 = variance / rows.count**2, variance / rows.steps**2
        if rows.counts_missing(column):
            v0 += variance / STEPS**2
        first = _sums(table, rows, column)
        cells = np.append(float(self.about.cells), np.ones(self.about.cells))
        n, s, q, c, d = first
        sums = MeanSums(n, s, q, c, d, cells * v0, cells * v1)
        if self.about.weight is not None:
            # sums of omega^2 f are those of omega f less those of omega (1 - omega) f, which stand behind them
            n2, s2, q2, c2, d2 = first - _sums(table[rows.block :], rows, column)
            sums = WeightedSums(n, s, q, c, d, cells * v0, cells * v1, n2, s2, q2, c2, d2)
        return Numeric(measure.name, sums, measure.middle, measure.half, self.part, self._quartiles(measure))

    def _quartiles(self, measure: Measure) -> tuple[QuantileGroup, ...]:
        """The distribution of all records and of each group, nothing of a column without a median."""
        axes = self.about.axes
        groups = [("", (), 0), *((name, axes, cell) for cell, name in enumerate(self.about.names))]
        asked = (own for own in self.about.medians if own.rows.measure.name == measure.name)
        return tuple(group for own in asked for group in own.read(self.release, self.part, groups))

    def _levels(self, own: Attribute) -> list[Row]:
        noisy = self.release[f"levels of {own.name}"]
        halves = noisy.decode().reshape(-1, self.about.cells, own.size) / self.about.step
        halves = np.concatenate([halves.sum(axis=1, keepdims=True), halves], axis=1)
        table, bases = halves[0], halves[0].sum(axis=1)
        cells = np.append(float(self.about.cells), np.ones(self.about.cells))
        variance = cells * noisy.variance / self.about.step**2
        found: list[Row] = []
        for k, label in enumerate(own.labels):
            weights: tuple[Array | float, Array | float] = (1.0, 1.0)
            if self.about.weight is not None:
                weights = _mean_weights(halves, k, np.sqrt(variance))
            name = f"{own.name}={label}"
            found.append(Level(name, table[:, k], bases, variance, own.size, self.part, weights, self.about.heaviest))
        return found


def _sums(table: Array, rows: MomentRows, column: int) -> Array:
    """(N, S, Q, C, D) of all records and each group, (5, groups + 1), from the numbers of a block on."""
    start = rows.starts[column]
    n = table[0] / rows.count
    if rows.counts_missing(column):
        n = n - table[start + 4] / STEPS
    s, q, c, d = table[start : start + 4] / rows.steps
    return np.stack([np.append(one.sum(), one) for one in (n, s, q, c, d)])


def _mean_weights(halves: Array, level: int, noise_sd: Array) -> tuple[Array, Array]:
    """sum omega^2/sum omega of the records with a level and of all that have one, (groups + 1,) each, from (2, groups + 1, levels)."""
    n, squares = halves[0], halves[0] - halves[1]
    overall = float(np.clip(squares[0].sum() / max(float(n[0].sum()), 1.0), 0.01, 1.0))
    of_base = mean_weights(n.sum(axis=1), squares.sum(axis=1), noise_sd * n.shape[1] ** 0.5, overall)
    own = mean_weights(n[:, level], squares[:, level], noise_sd, overall)
    share = np.clip(n[:, level] / np.maximum(n.sum(axis=1), 1.0), 0.0, 1.0)
    # the base has the records of the level, at least
    return own, np.maximum(of_base, share * own)
