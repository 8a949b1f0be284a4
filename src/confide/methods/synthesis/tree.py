"""Bins over the columns of a schema: ranges of codes that are cut again and again, by noisy counts.

All columns are cut in the codes of their own grids (a level's position, an integer's place, a step of a numeric grid): a bin is a range
of codes per column, half open, so that every record lies in exactly one bin, integers and midpoints included. A categorical column is
cut into its single levels at once when at most 16 are left, else into halves of its list of levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from confide._arrays import Array, Whole
from confide.schema import Categorical, Schema

__all__ = ["Bins", "Tree", "grown", "level_sizes"]


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

    rules: (least count, least count per part) of a bin that is cut, level by level; the root is cut without asking. count: the noisy
    counts of some bins; it is called once for each level, with no bins if there are none.
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
