"""The same marginals asked again: several releases of one data set as one table, by generalised least squares.

Independent noise on the same marginals: precisions of each residual space add up (`margins`), whatever marginals each release held. The
guarantee of the table is that of all releases together, mu^2 added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.cells.crossing import Axes
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.margins import Margins
from confide.methods.tables.cells.numbers import checked_reading
from confide.methods.tables.cells.result import CellTable
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.means import Means, Totals
from confide.methods.tables.method import TableMethod, marginal_name
from confide.protocol import Question, Release
from confide.protocol.exact import digest

__all__ = ["combined"]


def combined(releases: Sequence[Release], methods: Sequence[Any], question: Question | None = None) -> CellTable:
    """The table that the first release's method asks for, from all releases. They are of one data set, which is for the caller to know.

    Raises `PlanError` for releases that do not hold the same kind of numbers of the same records, and for one that is given twice.
    """
    asked = question or Question()
    asked.only(*TableMethod.asks)
    _check(releases, methods)
    first, schema = methods[0], releases[0].plan.declared
    layout = first.about(schema)
    if layout.of_units:
        raise PlanError(
            "tables by weight under a unit are not combined: what a unit adds to the variance of a cell is no sum; read each release by "
            "itself"
        )
    released: list[tuple[Axes, tuple[Array, float]]] = []
    for release, method in zip(releases, methods, strict=True):
        own = method.about(schema)
        if not _alike(layout, own):
            raise PlanError(
                f"releases are combined where they hold the same columns' numbers, got {layout.formula!r} and {own.formula!r}"
            )
        released += _moved(release, own, layout)
    total = first._known(releases[0])
    margins = Margins.joined(layout.crossing.sizes, released, total=total)
    margins = first.with_total(margins, releases[0], layout)
    reading = checked_reading(asked.covers or first.covers, "cf.infer(release")
    table: CellTable = first.table_of(releases[0], layout, margins, reading)
    mu = sqrt(sum(_mu(release) ** 2 for release in releases))
    whole = replace(_gdp(releases[0]), mu=mu)
    return replace(
        table,
        guarantee=whole,
        requested=whole,
        release_sha256=digest(["combined", *sorted(release.sha256 for release in releases)]),
        drawn_sha256=digest(["combined", *sorted(release.drawn_sha256 for release in releases)]),
        facts=(
            *table.facts,
            ("Combined", f"{len(releases)} releases: {', '.join(one.sha256[:12] for one in releases)}"),
        ),
    )


def _gdp(release: Release) -> GDP:
    found = release.guarantees[0]
    if not isinstance(found, GDP):
        raise PlanError(f"releases of tables under {found} are not combined; those under GDP are")
    return found


def _mu(release: Release) -> float:
    return _gdp(release).mu


def _check(releases: Sequence[Release], methods: Sequence[Any]) -> None:
    kinds = [(Counts, Shares), (Means, Totals)]
    if len(releases) < 2 or len({release.sha256 for release in releases}) < len(releases):
        raise PlanError("two or more different releases are combined; one alone is read by cf.infer(release)")
    if not any(all(type(method) in kind for method in methods) for kind in kinds):
        names = ", ".join(method.name for method in methods)
        raise PlanError(f"counts and shares are combined, and means and totals of the same columns; got {names}")
    one = releases[0].plan
    if one.schema.get("design") is not None or one.schema.get("cluster") is not None:
        raise PlanError(
            "releases of a survey's design have meats at estimates of their own and are not combined; ask for all cells in one table"
        )
    for other in (release.plan for release in releases[1:]):
        same = (one.where, one.schema, one.relation, one.n) == (other.where, other.schema, other.relation, other.n)
        if not same or one.method.parameters.get("weights") != other.method.parameters.get("weights"):
            raise PlanError(
                "releases are combined where schema, relation, n, where and weights are the same; ask for a publication where they differ"
            )


def _alike(one: Layout, other: Layout) -> bool:
    """Whether records lie in the tables alike: the same measures, and the same columns drop missing values."""
    drops = [{n for n in own.crossing.columns if own.crossing.schema[n].on_missing == "drop"} for own in (one, other)]
    return drops[0] == drops[1] and [m.digest for m in one.measures] == [m.digest for m in other.measures]


def _moved(release: Release, own: Layout, layout: Layout) -> list[tuple[Axes, tuple[Array, float]]]:
    """The released marginals of one layout in the attributes of another, those that it has not summed out."""
    names = [one.name for one in layout.crossing.attributes]
    place = {k: names.index(one.name) for k, one in enumerate(own.crossing.attributes) if one.name in names}
    found = []
    for axes in own.closure:
        noisy = release.statistics.get(marginal_name(own, axes))
        if noisy is None:
            continue
        values = noisy.decode().reshape(-1, *own.crossing.shape(axes))
        out = tuple(1 + at for at, axis in enumerate(axes) if axis not in place)
        summed = int(np.prod([values.shape[at] for at in out])) if out else 1
        values = values.sum(axis=out) if out else values
        kept = [place[axis] for axis in axes if axis in place]
        turn = sorted(range(len(kept)), key=kept.__getitem__)
        found.append((tuple(sorted(kept)), (values.transpose(0, *(1 + k for k in turn)), noisy.variance * summed)))
    return found
