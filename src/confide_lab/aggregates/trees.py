"""Trees over the box of a design's terms, and how private counts say where to cut.

The geometry is public: at depth l every cell is cut in the same term, the one with the widest relative width left (the first of them on
ties), into equal halves of its codes, so that all cells of a depth have one shape. Half s of a term with m codes is floor(2^s c/m), in
exact integers: cells are half open, every record lies in exactly one, midpoints and both edges included. A cell of depth l is the first l
bits of a record's path; cells of any depth are ranges of paths, so that a tree is a sorted list of starting points.

What is cut follows from the counts of cells:
    grid       every cell, to a public depth
    gaussian   cells whose noisy count is above a threshold: one noisy histogram for each depth (Gaussian, sensitivity 1)
    privtree   PrivTree of Zhang, Xiao, Xie (SIGMOD 2016): cut where max(c - l D, T - D) + Lap(L) > T, D = L ln 2, T = 0. One record meets
               one path; a cell's log ratio is at most 1/L where the biased count is below T and (e^-u/(2 - e^-u))/L at u above it, and
               biased counts on a path are D apart until the floor: at most 2.6067/L in all, for any depth. L = 3/epsilon is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.schema import ModelMatrix

__all__ = ["Bins", "Paths", "by_counts", "by_decisions", "decided", "grid", "path_cost", "private_decisions"]

Whole = NDArray[np.int64]
Array = NDArray[np.float64]

# Each term is cut at most so many times, to 2^-12 of its width.
_BITS = 12
# Noise of PrivTree in steps of 2^-10 counts.
_FINE = 1 << 10


@dataclass(frozen=True)
class Paths:
    """The public way down: which term is cut at each depth. steps: codes of each term; depth: how far down."""

    steps: tuple[int, ...]
    depth: int

    @classmethod
    def of(cls, design: ModelMatrix, depth: int) -> Paths:
        """To a depth, or as far as the terms can be cut."""
        paths = cls(tuple(term.steps for term in design.terms), depth)
        return cls(paths.steps, len(paths.axes))

    @property
    def axes(self) -> tuple[int, ...]:
        """The term that is cut at each depth: the one cut least so far, the first of them; a term of one code never is."""
        room = [min(_BITS, ceil(log2(steps))) if steps > 1 else 0 for steps in self.steps]
        cuts = [0] * len(room)
        found: list[int] = []
        while len(found) < self.depth:
            open_ = [j for j, most in enumerate(room) if cuts[j] < most]
            if not open_:
                break
            j = min(open_, key=lambda j: cuts[j])
            cuts[j] += 1
            found.append(j)
        return tuple(found)

    def of_codes(self, codes: Array) -> Whole:
        """The path of each record, an integer below 2^depth; codes (terms or more, records), exact integers from 0."""
        path = np.zeros(codes.shape[1], dtype=np.int64)
        axes = self.axes
        halves = {}
        for j in set(axes):
            cuts = axes.count(j)
            # codes are below 2^26 and cuts at most 12, so that this is far from overflow
            top = np.maximum(codes[j], 0.0).astype(np.int64) * (1 << cuts)
            halves[j] = (np.floor_divide(top, self.steps[j]), cuts)
        done = dict.fromkeys(halves, 0)
        for j in axes:
            cell, cuts = halves[j]
            done[j] += 1
            path = 2 * path + ((cell >> (cuts - done[j])) & 1)
        return path

    def box(self, start: int, depth: int) -> tuple[Whole, Whole]:
        """First codes and one past the last codes, each (terms,), of the cell whose paths begin at `start`."""
        cell, cuts = [0] * len(self.steps), [0] * len(self.steps)
        for at, j in enumerate(self.axes[:depth]):
            cell[j] = 2 * cell[j] + (start >> (self.depth - 1 - at) & 1)
            cuts[j] += 1
        low = [-(-c * m // (1 << s)) for c, m, s in zip(cell, self.steps, cuts, strict=True)]
        high = [-(-(c + 1) * m // (1 << s)) for c, m, s in zip(cell, self.steps, cuts, strict=True)]
        return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)

    def bins(self, starts: list[int], depths: list[int]) -> Bins:
        """The leaves as bins, in the order of their paths."""
        order = sorted(range(len(starts)), key=starts.__getitem__)
        boxes = [self.box(starts[i], depths[i]) for i in order]
        shape = (len(order), len(self.steps))
        return Bins(
            self,
            np.array([starts[i] for i in order], dtype=np.int64),
            np.array([depths[i] for i in order], dtype=np.int64),
            np.array([low for low, _ in boxes], dtype=np.int64).reshape(shape),
            np.array([high for _, high in boxes], dtype=np.int64).reshape(shape),
        )


@dataclass(frozen=True, eq=False)
class Bins:
    """The leaves of a tree. starts, depths (K,): the first path of each leaf, ascending, and its depth; low, high (K, terms): codes."""

    paths: Paths
    starts: Whole
    depths: Whole
    low: Whole
    high: Whole

    def __len__(self) -> int:
        return len(self.starts)

    def locate(self, codes: Array) -> Whole:
        """The bin of each record, shape (records,)."""
        if len(self) == 1:
            return np.zeros(codes.shape[1], dtype=np.int64)
        path = self.paths.of_codes(codes)
        return np.searchsorted(self.starts, path, side="right") - 1


def _grown(paths: Paths, cut: Callable[[int, list[int]], list[bool]], cells: int) -> Bins:
    """Depth after depth: `cut` says which of the cells (numbers within their depth, ascending) are cut.

    Where a whole depth would lead to more than `cells` leaves, the tree ends there: a public rule, which prefers no region.
    """
    active, starts, depths = [0], list[int](), list[int]()
    for depth in range(paths.depth):
        marks = cut(depth, active)
        if len(starts) + len(active) + sum(marks) > cells:
            marks = [False] * len(active)
        children: list[int] = []
        for node, mark in zip(active, marks, strict=True):
            if mark:
                children += [2 * node, 2 * node + 1]
            else:
                starts.append(node << (paths.depth - depth))
                depths.append(depth)
        active = children
        if not active:
            break
    starts += active
    depths += [paths.depth] * len(active)
    return paths.bins(starts, depths)


def grid(paths: Paths) -> Bins:
    """All cells of the last depth."""
    return paths.bins(list(range(1 << paths.depth)), [paths.depth] * (1 << paths.depth))


def by_counts(paths: Paths, levels: list[Array], thresholds: list[float], cells: int) -> Bins:
    """The Gaussian tree: levels[l - 1] (2^l,) are the noisy counts at depth l; the root is always cut."""

    def cut(depth: int, active: list[int]) -> list[bool]:
        if depth == 0:
            return [True]
        return [bool(levels[depth - 1][node] > thresholds[depth - 1]) for node in active]

    return _grown(paths, cut, cells)


def by_decisions(paths: Paths, decisions: NDArray[Any], cells: int) -> Bins:
    """The tree of PrivTree's decisions: decisions[l, i] says whether the i-th visited cell of depth l is cut, shape (depth, cells)."""
    return _grown(paths, lambda depth, active: [bool(decisions[depth, i]) for i in range(len(active))], cells)


def private_decisions(paths: Paths, counts: Whole, noise: Whole, scale: Fraction, cells: int) -> NDArray[np.float64]:
    """PrivTree's decisions, shape (depth, cells), 0 where there is no cell.

    counts (2^depth,): records of each cell of the last depth, exact; noise (depth, cells): Laplace of that scale, rounded to steps of
    2^-10 counts, a new one for every visited cell. scale: in those steps.
    """
    found = np.zeros((paths.depth, cells))
    own = [counts]
    for _ in range(paths.depth):
        own.append(own[-1].reshape(-1, 2).sum(axis=1))
    own.reverse()
    # rounded up: cells on a path are at least L ln 2 apart, and the floor is at least that far below the threshold
    fall = ceil(scale * Fraction(log(2) * (1 + 1e-12)))

    def cut(depth: int, active: list[int]) -> list[bool]:
        exact = [int(own[depth][node]) * _FINE - depth * fall for node in active]
        marks = [max(one, -fall) + int(noise[depth, i]) > 0 for i, one in enumerate(exact)]
        found[depth, : len(marks)] = marks
        return marks

    _grown(paths, cut, cells)
    return found


def decided(epsilon: Fraction) -> Fraction:
    """The scale of PrivTree's noise at epsilon in its own steps, 2^-10 counts: 3/epsilon."""
    return 3 * _FINE / epsilon


def path_cost(scale: float) -> float:
    """The dearest path of PrivTree, times the scale (in counts): sup over one more record of the sum of the log ratios of being cut.

    With the record every cell of its path is likelier to be cut, so that a path whose cells are all cut is the dearest; not being cut
    costs at most 1/scale, the other way. The biased counts are b, b + D, b + 2 D, .. from the floor up, where both data sets agree.

    >>> round(path_cost(50.0), 2), round(path_cost(1.0), 3)
    (2.58, 2.083)
    """
    fall = scale * log(2)
    best = 0.0
    for start in np.linspace(-fall, min(1.0, fall) - fall, 201).tolist() + np.linspace(-fall, 0.0, 801).tolist():
        total, b = 0.0, start
        while b < 45 * scale + 1:
            total += log(_cut(max(b, -fall), scale) / _cut(max(b - 1, -fall), scale))
            b += fall
        best = max(best, total)
    return best * scale


def _cut(b: float, scale: float) -> float:
    """P(b + Lap(scale) > 0)."""
    return 1 - exp(-b / scale) / 2 if b >= 0 else exp(b / scale) / 2
