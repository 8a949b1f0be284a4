"""Bins of records with noisy counts, centred sums and response sums: plan, draw, read.

Guarantee. gaussian: each depth of the tree is a histogram over disjoint cells, in which one record moves one count by 1 (sqrt(2) under
substitute): Gaussian mechanisms whose mu^2 add up (Dong, Roth, Su 2022, Corollary 2); a depth is released whole, so that what is drawn
never depends on the records. privtree: decisions alone are released, epsilon-DP by `trees` (half of epsilon for each of the two records
under substitute), stated in GDP by the exact conversion. grid: nothing is spent on the cells. Then one Gaussian release of the table of
`cell_sums`, cells given. What a leaf of small depth has not been asked for is not given back.

Memory: 2^depth integers while counting, the table of at most `cells` cells afterwards; two passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide.core import Allowance, Event, Meter, OpaqueRelease, Plan, Release, Source, Statistic, leaves
from confide.core.events import fold
from confide.errors import PlanError
from confide.guarantees import GDP, ApproxDP, Guarantee, PureDP
from confide.guarantees.validation import is_whole
from confide.schema import ModelMatrix
from confide_lab.aggregates.cell_sums import CellCounts, CellRows, CellSums, Depths
from confide_lab.aggregates.trees import Bins, Paths, by_counts, by_decisions, decided, grid, private_decisions

__all__ = ["KINDS", "Folded", "NoisyBins", "draw_bins", "plan_bins", "read_bins"]

Array = NDArray[np.float64]

#: How the cells are found.
KINDS = ("gaussian", "privtree", "grid")
# Depths beyond this need too many numbers at once.
_DEEPEST = {"gaussian": 12, "grid": 12, "privtree": 18}
# A cell is cut when its noisy count is above this many sds of its noise.
_ABOVE = 2.0
_PROOF = "PrivTree with scale 3/epsilon: Zhang, Xiao, Xie, SIGMOD 2016, Theorem 3.1; the dearest path costs at most 2.607/scale"


@dataclass(frozen=True)
class Folded(Allowance):
    """An allowance whose spends may be of unlike kinds: what they give together is the fold of the plan's events."""

    def guarantees(self, event: Event) -> tuple[Guarantee, ...]:
        """The folded statement in GDP, at most the level; then what was asked and what follows. `PlanError` when it is above."""
        folded = fold(event, self.relation)
        if not isinstance(folded, GDP) or not isinstance(self.level, GDP) or folded.mu > self.level.mu:
            raise PlanError("the spends of this plan do not fit its request; their shares must add up to at most 1")
        native = replace(folded, relation=self.relation, assumptions=self.level.assumptions)
        asked = (
            [replace(self.requested, assumptions=native.assumptions)] if isinstance(self.requested, ApproxDP) else []
        )
        return (native, *asked, native.to_zcdp())


def plan_bins(
    design: ModelMatrix,
    allowance: Allowance,
    share: Fraction,
    *,
    kind: str = "gaussian",
    depth: int,
    cells: int = 1024,
    tree_share: Fraction = Fraction(1, 28),
) -> tuple[tuple[Event, ...], dict[str, Statistic]]:
    """The spends of the bins and their statistics: "level 1", .. or "tree" for the cells, "cells" for their table.

    share: of the allowance, in all; tree_share: of it, for finding the cells; depth: how often the box is cut at most; cells: at most so
    many leaves. Raises `PlanError` for a kind or depth that cannot work.
    """
    if kind not in KINDS:
        raise PlanError(f'tree must be "gaussian", "privtree" or "grid", got {kind!r}; leave it out for "gaussian"')
    if not is_whole(depth, 1, _DEEPEST[kind]):
        raise PlanError(
            f"depth must be a whole number from 1 to {_DEEPEST[kind]} for the tree {kind!r}, got {depth!r}; leave it out"
        )
    paths = Paths.of(design, depth)
    size = min(1 << paths.depth, cells) if kind == "privtree" else 1 << paths.depth
    statistics: dict[str, Statistic] = {}
    events: list[Event] = []
    table = CellSums(CellRows(design, allowance.relation == "substitute"), size)
    rest = share
    if kind == "privtree" and paths.depth:
        statistics["tree"] = CellCounts(Depths(design, paths, paths.depth))
        tree = _decisions(allowance, share * tree_share)
        events.append(OpaqueRelease("tree", tree, _PROOF))
        # a hair is left for the rounding of the fold
        rest -= Fraction(tree.to_gdp().mu) ** 2 / allowance.amount
        rest *= 1 - Fraction(1, 1 << 40)
    elif kind == "gaussian" and paths.depth > 1:
        rest -= share * tree_share
        for level in range(1, paths.depth):
            name = f"level {level}"
            statistics[name] = CellCounts(Depths(design, paths, level))
            events.append(allowance.spend(name, statistics[name], share * tree_share / (paths.depth - 1)))
    statistics["cells"] = table
    events.append(allowance.spend("cells", table, rest))
    return tuple(events), statistics


def _decisions(allowance: Allowance, share: Fraction) -> PureDP:
    """epsilon of the decisions, from their part of mu^2: the pure guarantee that is mu-GDP, rounded down."""
    mu = sqrt(float(allowance.amount * share))
    epsilon = float(special.log_ndtr(mu / 2) - special.log_ndtr(-mu / 2))
    return PureDP(
        floor(epsilon * 2**40 * (1 - 1e-9)) / 2**40,
        relation=allowance.relation,
        assumptions=allowance.level.assumptions,
    )


def _scale(guarantee: Guarantee, rows_per_unit: int) -> Fraction:
    """The scale of the decisions' noise: a unit is its rows, a replaced record is one less and one more."""
    assert isinstance(guarantee, PureDP)
    moved = rows_per_unit * (2 if guarantee.relation == "substitute" else 1)
    return decided(Fraction(guarantee.epsilon) / moved)


def draw_bins(meter: Meter, source: Source, plan: Plan, beside: tuple[str, ...] = ()) -> None:
    """The counts of the last depth in one pass, the tree from them, the table of its leaves in a second one.

    beside: further planned statistics, summed up in the last pass and drawn after the table.
    """
    table = plan.statistic("cells")
    assert isinstance(table, CellSums)
    names = _levels(plan.statistics)
    paths = _paths(plan)
    drawn: dict[str, Array] = {}
    if names:
        (exact,) = source.aggregate(plan.statistic(names[-1]))
        counts = {names[-1]: exact}
        for name, below in zip(names[-2::-1], names[:0:-1], strict=True):
            counts[name] = counts[below].reshape(-1, 2).sum(axis=1)
        drawn = {name: meter.draw(name, counts[name]).decode() for name in names}
    elif "tree" in plan.statistics:
        (exact,) = source.aggregate(plan.statistic("tree"))
        spent = next(leaf for leaf in leaves(plan.event) if isinstance(leaf, OpaqueRelease))
        scale = _scale(spent.guarantee, int(plan.schema["rows_per_unit"]))
        shape = (paths.depth, table.size)
        laplace = np.asarray(meter.noise("tree").grid_laplace(scale, shape[0] * shape[1]), dtype=object).reshape(shape)
        marks = private_decisions(paths, exact, laplace, scale, table.size)
        drawn = {"tree": meter.opaque("tree", marks.astype(np.int64), Fraction(1)).decode()}
    bins = _bins(plan, drawn)
    sums = source.aggregate(table.at(bins), *map(plan.statistic, beside))
    for name, exact in zip(("cells", *beside), sums, strict=True):
        meter.draw(name, exact)


def _levels(names: Mapping[str, Any]) -> list[str]:
    return sorted((name for name in names if name.startswith("level ")), key=lambda name: int(name[6:]))


def _paths(plan: Plan) -> Paths:
    depth = int(plan.constants["depth"])
    return Paths(tuple(plan.constants["codes"]), depth)


def _bins(plan: Plan, drawn: Mapping[str, Array]) -> Bins:
    """The leaves, from what was released."""
    paths = _paths(plan)
    size = plan.spend("cells").shape[0]
    if "tree" in drawn:
        return by_decisions(paths, drawn["tree"], size)
    names = _levels(drawn)
    if names:
        thresholds = [_ABOVE * (plan.spend(name).noise_sd or 0.0) for name in names]
        return by_counts(paths, [drawn[name] for name in names], thresholds, size)
    return grid(paths)


@dataclass(frozen=True, eq=False)
class NoisyBins:
    """What a release says of its bins, in units where x~ and t are in [-1, 1] between the public bounds.

    middles (K, terms): mid_k; halves (K, terms): h_k; counts (K,); sums (K, terms): of x~ - mid_k; labels (K,): of t; and the sds of their
    noise, sd_counts (K,), sd_sums (K, terms), sd_labels (K,), all independent.
    """

    bins: Bins
    middles: Array
    halves: Array
    counts: Array
    sums: Array
    labels: Array
    sd_counts: Array
    sd_sums: Array
    sd_labels: Array

    def __len__(self) -> int:
        return len(self.counts)


def read_bins(release: Release, design: ModelMatrix) -> NoisyBins:
    """The bins of a release, from the release alone."""
    drawn = {
        name: noisy.decode() for name, noisy in release.statistics.items() if name == "tree" or name[:6] == "level "
    }
    bins = _bins(release.plan, drawn)
    rows = CellRows(design, release.plan.relation == "substitute", bins)
    noisy = release["cells"]
    values = noisy.decode()[: len(bins)] / rows.unit
    sd = sqrt(noisy.variance) / rows.unit
    return NoisyBins(
        bins, rows.middles, rows.halves, values[:, 0], values[:, 1:-1], values[:, -1], sd[:, 0], sd[:, 1:-1], sd[:, -1]
    )
