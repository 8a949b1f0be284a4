"""The noisy table of bins: counts of the levels of a tree, then the noisy counts and centered sums of all leaves.

Guarantee: each level of the tree is a histogram over disjoint bins, in which one record moves one count by 1 (sqrt(2) under
substitution). Whether a bin is cut follows from earlier noisy counts and public facts alone. For the leaves one record gives (C, o_1,
.., o_c, l). C is the integer S ceil(sqrt(width)), |o_j| <= S are its places within the bin, and |l| <= S is that of the response
between its bounds (when asked for). The squares add up to at most C^2 + (width - 1) S^2 = B. Under substitution two records in
different bins give at most 2 B. Two in one bin give the square of their difference, in which C cancels: at most 4 (width - 1) S^2 <= 2
B, as (width - 1) S^2 <= C^2. Gaussian noise throughout; the squares of mu add up over levels and leaves (Dong, Roth, Su 2022, Corollary
2).

Bins over the columns of a schema: ranges of codes that are cut again and again, by noisy counts.

All columns are cut in the codes of their grids (a level's position, an integer's place, a step of a numeric grid). A bin is a half-open
range of codes per column, so that every record lies in exactly one bin, integers and midpoints included. A categorical column is cut
into its single levels at once when at most 16 are left, otherwise into halves of its list of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, Whole
from confide.core import Allowance, BudgetItem, Composed, Event, Meter, Plan, Release, Source, Statistic, leaves
from confide.schema import Categorical, ModelMatrix, Schema
from confide.sums.cells.cell_sums import WholeSums
from confide.sums.coding import IndicatorRows

# A categorical range of at most so many levels is cut into single levels.
_AT_ONCE = 16
# Categorical columns come first: what differs between levels is what a table is for.
_FIRST = 4.0


class Tree:
    """Bins that are cut into bins: node i holds the codes low[i, j] <= c < high[i, j] of column j. It only grows."""

    def __init__(self, schema: Schema, columns: tuple[str, ...]) -> None:
        self.steps = [schema[name].steps for name in columns]
        self.categorical = [isinstance(schema[name], Categorical) for name in columns]
        self.low: list[list[int]] = [[0] * len(columns)]
        self.high: list[list[int]] = [list(self.steps)]
        # of an inner node: the column it is cut in, where (-1: into single codes), and its first child
        self.axis: list[int] = [-1]
        self.at: list[int] = [-1]
        self.first: list[int] = [0]

    def widest(self, i: int) -> int:
        """The column with the widest range left against its own, categorical ones first; -1 when all are down to one code."""
        best, most = -1, 0.0
        for j, (low, high) in enumerate(zip(self.low[i], self.high[i], strict=True)):
            share = (high - low) / self.steps[j] * (_FIRST if self.categorical[j] else 1.0)
            if high - low > 1 and share > most:
                best, most = j, share
        return best

    def parts(self, i: int, j: int) -> int:
        """Into how many children node i is cut in column j."""
        width = self.high[i][j] - self.low[i][j]
        return width if self.categorical[j] and width <= _AT_ONCE else 2

    def cut(self, i: int, j: int) -> list[int]:
        """Cut node i in column j; the numbers of its children."""
        low, high, parts = self.low[i][j], self.high[i][j], self.parts(i, j)
        edges = [low + (high - low) * part // parts for part in range(parts + 1)]
        self.axis[i], self.first[i] = j, len(self.low)
        self.at[i] = edges[1] if parts == 2 else -1
        for start, stop in pairwise(edges):
            self.low.append([*self.low[i][:j], start, *self.low[i][j + 1 :]])
            self.high.append([*self.high[i][:j], stop, *self.high[i][j + 1 :]])
            self.axis.append(-1)
            self.at.append(-1)
            self.first.append(0)
        return list(range(self.first[i], len(self.low)))

    def bins(self, nodes: list[int]) -> Bins:
        """Some of the nodes as bins, in this order, with what it takes to find a record's."""
        order = np.full(len(self.low), -1, dtype=np.int64)
        order[nodes] = np.arange(len(nodes))
        low, high, axis, at, first = (
            np.array(values, dtype=np.int64) for values in (self.low, self.high, self.axis, self.at, self.first)
        )
        shape = (len(self.low), len(self.steps))
        return Bins(low.reshape(shape), high.reshape(shape), axis, at, first, order, np.array(nodes, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Bins:
    """Some nodes of a tree: bin k is node `nodes[k]`; shapes (nodes of the tree, columns) and (nodes of the tree,)."""

    node_low: Whole
    node_high: Whole
    axis: Whole
    at: Whole
    first: Whole
    order: Whole
    nodes: Whole

    @property
    def low(self) -> Whole:
        """First codes, shape (bins, columns)."""
        return self.node_low[self.nodes]

    @property
    def high(self) -> Whole:
        """One past the last codes, shape (bins, columns)."""
        return self.node_high[self.nodes]

    def __len__(self) -> int:
        return len(self.nodes)

    def locate(self, codes: Array) -> Whole:
        """The bin of each record, -1 for one in none of them; codes (columns, records), exact integers."""
        node = np.zeros(codes.shape[1], dtype=np.int64)
        place = np.arange(codes.shape[1])
        while True:
            axis = self.axis[node]
            inner = axis >= 0
            if not inner.any():
                return self.order[node]
            code = codes[np.where(inner, axis, 0), place].astype(np.int64)
            at = self.at[node]
            step = np.where(at >= 0, code >= at, code - self.node_low[node, np.where(inner, axis, 0)])
            node = np.where(inner, self.first[node] + step, node)


def level_sizes(tree: Tree, cells: int) -> tuple[int, ...]:
    """The most bins that each level can have, the root left out; what comes after the last one is not counted on its own."""
    shapes, at, width = [], 0, 1
    while width < cells and (j := tree.widest(at)) >= 0:
        children = tree.cut(at, j)
        at = children[-1]  # the last part is the widest
        width = min(width * len(children), cells)
        shapes.append(width)
    return tuple(shapes[:-1])


def grown(tree: Tree, cells: int, rules: tuple[tuple[float, float], ...], count: Callable[[int, Bins], Array]) -> Bins:
    """The leaves, from the noisy counts of one level after the other.

    rules: (least count, least count per part) of a bin that is cut, level by level; the root is always cut. count: the noisy counts of
    some bins. It is called once for each level, with no bins if there are none.
    """
    leaves: list[int] = []
    active, counts = [0], np.ones(1)
    for level in range(len(rules) + 1):
        least, promise = rules[level - 1] if level else (0.0, 0.0)
        room = cells - len(leaves) - len(active)
        children: list[int] = []
        # bins with the largest counts first, as long as there is room
        for k in np.argsort(-counts, kind="stable").tolist():
            j = tree.widest(active[k])
            parts = tree.parts(active[k], j) if j >= 0 else 1
            if j < 0 or counts[k] <= max(least, promise * parts) or room < parts - 1:
                leaves.append(active[k])
                continue
            room -= parts - 1
            children += tree.cut(active[k], j)
        active = children
        if level < len(rules):
            counts = count(level, tree.bins(active))
    return tree.bins(leaves + active)


# Half-steps of a bin that a place within it is measured in.
_STEPS = 1 << 12
# Part of the bins' share that pays for the counts which say where to cut.
_TREE_SHARE = Fraction(1, 4)
# A bin is cut when its noisy count is above this many sds of its own noise,
_ABOVE = 2.0
# and promises each part this many sds of a leaf's count.
_PROMISE = 3.0
# and more of them where rows are bin means, whose noise falls with the size of the bin.
_PROMISE_MEANS = 20.0


def feature_columns(design: ModelMatrix) -> tuple[str, ...]:
    """The schema's columns behind the terms, in the schema's order."""
    used = {column for term in design.terms for column in term.columns}
    return tuple(name for name in design.schema.names if name in used)


# the statistics ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InBins(IndicatorRows):
    """1 for every record that the design uses, 0 for one that is dropped; and in which bin it lies."""

    design: ModelMatrix
    # the bins are left out of the digest: the bounds hold for any, and the plan does not know them yet
    bins: Bins | None = field(default=None, compare=False)
    kind: ClassVar[str] = "in bins"

    @property
    def found(self) -> Bins:
        """The bins, the whole space before there are any."""
        return self.bins or Tree(self.design.schema, feature_columns(self.design)).bins([0])

    def features(self, codes: Array) -> tuple[Array, NDArray[np.bool_] | None]:
        """The codes of the feature columns, shape (columns, records), and which records count (None: all)."""
        _, keep = self.design.codes(codes)
        own = codes[[self.columns.index(name) for name in feature_columns(self.design)]]
        # a record that is dropped may have no code at all; it is located like any other and left out afterwards
        return np.maximum(own, 0.0), keep

    def numbers(self, codes: Array) -> Whole:
        """The bin of each record, -1 for one that is dropped or in none of them."""
        own, keep = self.features(codes)
        number = self.found.locate(own)
        return number if keep is None else np.where(keep, number, -1)

    def __call__(self, codes: Array) -> Array:
        return (self.numbers(codes) >= 0).astype(np.float64)[None, :]


@dataclass(frozen=True)
class Places(InBins):
    """One record as (C, its places within its bin, the response's between its bounds), integers; zeros for a dropped one."""

    label: bool = False
    kind: ClassVar[str] = "places in bins"

    @property
    def width(self) -> int:
        return 1 + len(feature_columns(self.design)) + int(self.label)

    @property
    def unit(self) -> int:
        """C, what a record adds to the count."""
        return _unit(self.width)

    @property
    def l2_squared(self) -> int:
        return self.unit**2 + (self.width - 1) * _STEPS**2

    @property
    def l1(self) -> int:
        return self.unit + (self.width - 1) * _STEPS

    @property
    def stated(self) -> list[object]:
        return [self.label]

    def __call__(self, codes: Array) -> Array:
        own, _ = self.features(codes)
        number = self.numbers(codes)
        known = number >= 0
        at = np.where(known, number, 0)
        lows, highs = self.found.low.astype(np.float64), self.found.high.astype(np.float64)
        rows = np.zeros((self.width, codes.shape[1]))
        rows[0] = self.unit
        for j, codes_ in enumerate(own):
            low, high = lows[at, j], highs[at, j]
            rows[1 + j] = (codes_ - (low + high - 1.0) / 2.0) / np.maximum((high - low - 1.0) / 2.0, 0.5)
            rows[1 + j] *= _STEPS
        if self.label:
            terms, _ = self.design.codes(codes)
            rows[-1] = (terms[-1] * (2.0 / (self.design.response.steps - 1)) - 1.0) * _STEPS
        np.rint(rows, out=rows)
        np.clip(rows[1:], -_STEPS, _STEPS, out=rows[1:])
        return np.where(known, np.nan_to_num(rows), 0.0)


@dataclass(frozen=True)
class Counts(WholeSums):
    """How many records lie in each bin of one level, shape (size,): one record moves one count by 1."""

    map: InBins
    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    def at(self, bins: Bins) -> Counts:
        """The statistic over the bins that are there by now."""
        return replace(self, map=replace(self.map, bins=bins))

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(2 if relation == "substitute" else 1)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The two records in different bins, which is the worst."""
        return (rows * rows).sum(axis=0) + (own * own).sum()

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def update(self, state: Whole, codes: Array) -> Whole:
        # what is nowhere is counted last and left out
        state += np.bincount(self.map.numbers(codes) % (self.size + 1), minlength=self.size + 1)[:-1]
        return state


@dataclass(frozen=True)
class Leaves(WholeSums):
    """Counts, centered sums and (when asked for) sums of the response of all leaves, shape (size, width)."""

    map: Places
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.size, self.map.width)

    def at(self, bins: Bins) -> Leaves:
        """The statistic over the leaves."""
        return replace(self, map=replace(self.map, bins=bins))

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(self.map.l2_squared * (2 if relation == "substitute" else 1))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """The two records in one bin or in different ones, whichever is worse."""
        apart = (rows * rows).sum(axis=0) + (own * own).sum()
        return np.maximum(apart, ((rows - own[:, None]) ** 2).sum(axis=0))

    def sensitivity_l1(self, relation: str) -> Fraction:
        return Fraction(self.map.l1 * (2 if relation == "substitute" else 1))

    def update(self, state: Whole, codes: Array) -> Whole:
        number = self.map.numbers(codes)
        # what is nowhere has a row of zeros
        np.add.at(state, np.maximum(number, 0), self.map(codes).T.astype(np.int64))
        return state


# plan, draw, read -------------------------------------------------------------------------------------------------------


def plan_bins(
    design: ModelMatrix, allowance: Allowance, share: Fraction, *, cells: int, label: bool = False
) -> tuple[Event, dict[str, Statistic]]:
    """The spends of the bins: "bins 1", "bins 2", .. for the levels of the tree, "leaves" for the rest.

    cells: at most so many leaves; label: sums of the response as well.
    """
    shapes = level_sizes(Tree(design.schema, feature_columns(design)), cells)
    statistics: dict[str, Statistic] = {
        f"bins {i}": Counts(InBins(design), size) for i, size in enumerate(shapes, start=1)
    }
    tree = share * _TREE_SHARE if shapes else Fraction(0)
    statistics["leaves"] = Leaves(Places(design, label=label), cells if feature_columns(design) else 1)
    spends = [
        allowance.spend(name, statistic, share - tree if name == "leaves" else tree / len(shapes))
        for name, statistic in statistics.items()
    ]
    return Composed(tuple(spends)), statistics


def draw_bins(meter: Meter, source: Source, plan: Plan) -> None:
    """Level after level, then the leaves: one pass each."""
    levels = _levels(plan.statistics)
    last = plan.statistic("leaves")
    assert isinstance(last, Leaves)

    def count(level: int, bins: Bins) -> Array:
        name = levels[level]
        statistic = plan.statistic(name)
        assert isinstance(statistic, Counts)
        (exact,) = source.aggregate(statistic.at(bins))
        return meter.draw(name, exact).decode()[: len(bins)]

    bins = _leaves(last.map.design, plan, last.size, count)
    (exact,) = source.aggregate(last.at(bins))
    meter.draw("leaves", exact)


def _leaves(design: ModelMatrix, plan: Plan, cells: int, count: Callable[[int, Bins], Array]) -> Bins:
    columns = feature_columns(design)
    return grown(Tree(design.schema, columns), cells, _rules(plan, len(columns)), count)


def _rules(plan: Plan, columns: int) -> tuple[tuple[float, float], ...]:
    """(least count, least count per part) of each level, from the public noise."""
    noise = {spend.name: spend.noise_sd or 0.0 for spend in leaves(plan.event) if isinstance(spend, BudgetItem)}
    width = plan.spend("leaves").shape[1]
    promise = _PROMISE_MEANS if width > 1 + columns else _PROMISE
    own = noise["leaves"] / _unit(width)
    return tuple((_ABOVE * noise[name], promise * own) for name in _levels(noise))


def _levels(names: Iterable[str]) -> list[str]:
    """The levels' names in order."""
    return sorted((name for name in names if name.startswith("bins ")), key=lambda name: int(name[5:]))


def _unit(width: int) -> int:
    return _STEPS * ceil(sqrt(width))


@dataclass(frozen=True, eq=False)
class NoisyBins:
    """What a release states of its bins.

    - bins: the leaves; counts (K,): noisy; sd_counts: SD of their noise.
    - sums (K, columns): noisy sums of places in [-1, 1] within each bin.
    - labels (K,): noisy sums of the response between its bounds, None when not released; sd_sums: SD of the noise of both.
    - total: the estimated number of records, of the first level and the leaves together; sd_total: SD of its noise.
    """

    bins: Bins
    counts: Array
    sd_counts: float
    sums: Array
    labels: Array | None
    sd_sums: float
    total: float
    sd_total: float


def read_bins(release: Release, design: ModelMatrix, *, label: bool = False) -> NoisyBins:
    """The leaves, their noisy counts and sums, from a release alone: the tree is grown again from its noisy counts."""
    names = _levels(release.statistics)
    noisy = release["leaves"]
    bins = _leaves(
        design, release.plan, noisy.shape[0], lambda level, found: release[names[level]].decode()[: len(found)]
    )
    values = noisy.decode()[: len(bins)]
    unit = _unit(noisy.shape[1])
    sd = sqrt(noisy.variance)
    counts = values[:, 0] / unit
    total, variance = float(counts.sum()), len(bins) * (sd / unit) ** 2
    if names:
        # the first level is counted whatever the records are, so that its counts are not selected
        first = release[names[0]]
        tree = Tree(design.schema, feature_columns(design))
        size = len(tree.cut(0, tree.widest(0)))
        other, own = float(first.decode()[:size].sum()), size * first.variance
        total = (total / variance + other / own) / (1 / variance + 1 / own)
        variance = 1 / (1 / variance + 1 / own)
    return NoisyBins(
        bins=bins,
        counts=counts,
        sd_counts=sd / unit,
        sums=values[:, 1 : 1 + len(feature_columns(design))] / _STEPS,
        labels=values[:, -1] / _STEPS if label else None,
        sd_sums=sd / _STEPS,
        total=total,
        sd_total=sqrt(variance),
    )
