"""Several tables of the same records as one strategy: marginals that they share are released once, at the shares of all.

Counts and shares of one subgroup and one column of weights are views on marginals of the same records. So are means and totals of the
same columns, where the same columns drop missing values. Their formulas joined by + are one table, whose least-squares margins serve each
question. Its noise is never more than a few percent above that of the best Gaussian mechanism for all of them (`strategy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from confide.core import Pool, Release
from confide.methods.tables.layout import Layout, both_sides, without_total
from confide.methods.tables.results import CellTable

# Pooled where no question loses on average, and all together win so much.
_ENOUGH = 0.99


def pooled(
    methods: Mapping[str, Any], shares: Mapping[str, Fraction], schema: Any
) -> tuple[tuple[Pool, ...], tuple[str, ...]]:
    """The questions that gain by being one table, and notes for the plan. methods, shares: of the publication, by name."""
    alike: dict[Any, list[tuple[str, Any, Layout]]] = {}
    # under a design or in clusters meats belong to one table's estimates
    for name, method in methods.items() if schema.design is None and schema.cluster is None else ():
        layout = method.about(schema)
        if not layout.of_units:  # what does not add up is each table's own
            alike.setdefault(_key(method, layout), []).append((name, method, layout))
    found = [_pooled(group, shares, schema) for group in alike.values() if len(group) > 1]
    pools = [one for one in found if one is not None]
    return tuple(pool for pool, _ in pools), (*(note for _, note in pools), *_apart(methods, schema))


def _key(method: Any, layout: Layout) -> Any:
    """What questions of one pool agree in."""
    drops = {name for name in layout.crossing.columns if layout.crossing.schema[name].on_missing == "drop"}
    measured = tuple(own.digest for own in layout.measures)
    return measured, method.where, method.weights, method.population_size, frozenset(drops)


def _apart(methods: Mapping[str, Any], schema: Any) -> tuple[str, ...]:
    """For the plan: tables that are of different records only because other columns drop missing values."""
    alike: dict[Any, list[tuple[str, frozenset[str]]]] = {}
    for name, method in methods.items():
        *rest, drops = _key(method, method.about(schema))
        alike.setdefault(tuple(rest), []).append((name, drops))
    notes = []
    for group in alike.values():
        everywhere = frozenset.intersection(*(drops for _, drops in group))
        differ = sorted(frozenset.union(*(drops for _, drops in group)) - everywhere)
        if len({drops for _, drops in group}) == len(group) > 1:
            names = ", ".join(name for name, _ in group)
            notes.append(
                f"{names} are tables of different records: one with a missing {', '.join(differ)} is excluded from some of them. "
                "So they share no noise; with a level for what is missing (on_missing in the schema) they may be one"
            )
    return tuple(notes)


def _pooled(
    group: list[tuple[str, Any, Layout]], shares: Mapping[str, Fraction], schema: Any
) -> tuple[Pool, str] | None:
    """The questions of a group as one table, without those that would lose."""
    names = tuple(name for name, _, _ in group)
    first = group[0][1]
    left, _ = both_sides(first.formula)
    asked = [without_total(both_sides(layout.formula)[1].strip()) for _, _, layout in group]
    rights = dict.fromkeys([*([] if any(total for _, total in asked) else ["0"]), *(right for right, _ in asked)])
    formula = (f"{left} ~ " if left or group[0][2].measures else "") + " + ".join(rights)
    made = first.joint(formula)
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
    if sum(gain.values()) / len(gain) > _ENOUGH:
        return None
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in gain.items())
    note = f"{len(names)} tables are released as one, {formula!r}; noise variance over that of separate tables: {told}"
    return Pool(names, made), note


def _order(layout: Layout, whole: Layout) -> tuple[int, ...]:
    """Where a layout's attributes are in another one."""
    names = [own.name for own in whole.crossing.attributes]
    return tuple(names.index(own.name) for own in layout.crossing.attributes)


def view(method: Any, pool: Any, release: Release, schema: Any) -> CellTable:
    """A question's table, from the release of its pool."""
    layout, whole = method.about(schema), pool.about(schema)
    margins = pool.released(release, whole).rearranged(_order(layout, whole))
    table: CellTable = method.table_of(release, layout, margins, str(method.inference))
    target = release.plan.titled(str(method.facts(layout)["target"]))
    whose = (
        ""
        if release.plan.where
        else f", of {'the population' if method.inference == 'population' else 'these records'}"
    )
    return replace(table, target=f"{target}{whose}")
