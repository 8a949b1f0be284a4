"""Several tables of the same records as one strategy: marginals that they share are released once, at the shares of all.

Counts and shares of one subgroup and one column of weights are views on marginals of the same records, and so are means and totals of the
same columns, where the same columns drop missing values. Their formulas joined by + are one table, whose least-squares margins serve each
question; its noise is never more than a few per cent above that of the best Gaussian mechanism for all of them (`strategy`).

The same marginals asked again: several releases of one data set as one table, by generalised least squares.

Independent noise on the same marginals: precisions of each residual space add up (`margins`), whatever marginals each release held. The
guarantee of the table is that of all releases together, mu^2 added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import Method, Question, Release, method_parameters
from confide.core.exact import digest
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.draw import Margins
from confide.methods.tables.layout import Layout, both_sides, marginal_name, without_total
from confide.methods.tables.means import Means, Totals
from confide.methods.tables.method import TableMethod
from confide.methods.tables.reading import checked_reading
from confide.methods.tables.results import CellTable
from confide.sums.cells.cell_sums import Axes

# Pooled where no question loses on average, and all together win so much.
_ENOUGH = 0.99


@dataclass(frozen=True)
class Pool:
    """Questions that are asked as one; those that would lose are left out.

    method: whose release answers all; gain: noise variance over that of separate tables, by question.
    """

    names: tuple[str, ...]
    method: TableMethod
    gain: Mapping[str, float]

    @property
    def name(self) -> str:
        """Of the part of the plan."""
        joined = " + ".join(self.names)
        return joined if len(joined) <= 60 else f"{self.names[0]} and {len(self.names) - 1} others"

    def note(self) -> str:
        """For the plan."""
        own = ", ".join(f"{name} {ratio:.2f}" for name, ratio in self.gain.items())
        return f"{len(self.names)} tables are released as one, {self.method.formula!r}; noise variance over that of separate tables: {own}"


def pools(methods: Mapping[str, Method], shares: Mapping[str, Fraction], schema: Any) -> tuple[Pool, ...]:
    """The questions that gain by being one table. methods, shares: of the publication, by name; only what can be planned is looked at."""
    alike: dict[Any, list[tuple[str, TableMethod, Layout]]] = {}
    if schema.design is not None or schema.cluster is not None:
        return ()  # meats belong to one table's estimates
    for name, method in methods.items():
        if type(method) in (Counts, Shares, Means, Totals):
            assert isinstance(method, TableMethod)
            layout = method.about(schema)
            if layout.of_units:  # what does not add up is each table's own
                continue
            alike.setdefault(_key(method, layout), []).append((name, method, layout))
    found = [_pooled(group, shares, schema) for group in alike.values() if len(group) > 1]
    return tuple(pool for pool in found if pool is not None)


def _key(method: TableMethod, layout: Layout) -> Any:
    """What questions of one pool agree in."""
    drops = {name for name in layout.crossing.columns if layout.crossing.schema[name].on_missing == "drop"}
    measured = tuple(own.digest for own in layout.measures)
    return bool(layout.measures), measured, method.where, method.weights, method.population_size, frozenset(drops)


def apart(methods: Mapping[str, Method], schema: Any) -> tuple[str, ...]:
    """For the plan: tables that are of different records only because other columns drop missing values."""
    alike: dict[Any, list[tuple[str, frozenset[str]]]] = {}
    for name, method in methods.items():
        if type(method) in (Counts, Shares, Means, Totals):
            assert isinstance(method, TableMethod)
            *rest, drops = _key(method, method.about(schema))
            alike.setdefault(tuple(rest), []).append((name, drops))
    notes = []
    for group in alike.values():
        everywhere = frozenset.intersection(*(drops for _, drops in group))
        differ = sorted(frozenset.union(*(drops for _, drops in group)) - everywhere)
        if len({drops for _, drops in group}) == len(group) > 1:
            names = ", ".join(name for name, _ in group)
            notes.append(
                f"{names} are tables of different records: one with a missing {', '.join(differ)} is left out of some of them; "
                "so they share no noise; with a level for what is missing (on_missing in the schema) they may be one"
            )
    return tuple(notes)


def _pooled(group: list[tuple[str, TableMethod, Layout]], shares: Mapping[str, Fraction], schema: Any) -> Pool | None:
    names = tuple(name for name, _, _ in group)
    first = group[0][1]
    left, _ = both_sides(first.formula)
    asked = [without_total(both_sides(layout.formula)[1].strip()) for _, _, layout in group]
    rights = dict.fromkeys([*([] if any(total for _, total in asked) else ["0"]), *(right for right, _ in asked)])
    formula = (f"{left} ~ " if left or group[0][2].measures else "") + " + ".join(rights)
    kind, others = (
        (Means, {"term_bounds": method_parameters(first).get("term_bounds")}) if group[0][2].measures else (Counts, {})
    )
    made = kind(
        formula,
        covers=first.covers,
        population_size=first.population_size,
        weights=first.weights,
        where=first.where,
        **others,
    )
    whole = made.about(schema)
    joint, amount = made.strategy(whole), float(sum(shares[name] for name in names))
    gain = {}
    for name, method, layout in group:
        own, at = method.strategy(layout), _order(layout, whole)
        ratios = [
            joint.variance(tuple(sorted(at[axis] for axis in axes))) / amount / own.variance(axes) * float(shares[name])
            for axes in layout.shown
        ]
        gain[name] = sum(ratios) / len(ratios)
    loser = max(gain, key=lambda name: gain[name])
    if gain[loser] > 1:
        rest = [one for one in group if one[0] != loser]
        return _pooled(rest, shares, schema) if len(rest) > 1 else None
    return Pool(names, made, gain) if sum(gain.values()) / len(gain) <= _ENOUGH else None


def _order(layout: Layout, whole: Layout) -> tuple[int, ...]:
    """Where a layout's attributes are in another one."""
    names = [own.name for own in whole.crossing.attributes]
    return tuple(names.index(own.name) for own in layout.crossing.attributes)


def view(method: TableMethod, pool: TableMethod, release: Release, schema: Any) -> CellTable:
    """A question's table, from the release of its pool."""
    layout, whole = method.about(schema), pool.about(schema)
    margins = pool.released(release, whole).rearranged(_order(layout, whole))
    table = method.table_of(release, layout, margins, str(method.covers))
    target = release.plan.titled(str(method.facts(layout)["target"]))
    whose = (
        "" if release.plan.where else f", of {'the population' if method.covers == 'population' else 'these records'}"
    )
    return replace(table, target=f"{target}{whose}")


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
