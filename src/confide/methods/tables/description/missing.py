"""What a table says of missing values: the schema's rules, which are public, and numbers as far as the release or the plan holds them.

Nothing is paid for it. A record that is left out is in no cell, so that the noisy numbers of the table are of those that remain. How many
were left out is known where the number of all records is public; of several columns each has a released number of missing values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from confide.aggregates.cells.crossing import Crossing
from confide.aggregates.cells.free_moments import Measure, MomentRows
from confide.aggregates.cells.unit_cells import RowNumber, UnitCrossing
from confide.aggregates.column_codes import columns_of
from confide.aggregates.lines.rows import BITS
from confide.methods.tables.cells.layout import Layout
from confide.methods.tables.cells.margins import Margins
from confide.protocol import Release
from confide.results.pages.words import either, missing_rules
from confide.schema import Column

__all__ = ["UNKNOWN", "alone_parts", "missing_lines", "missing_parts", "noisy_numbers"]

UNKNOWN = "how many were left out is not released: numbers of records are of those that remain"


def missing_lines(
    release: Release, layout: Layout, margins: Margins | None = None, rows: MomentRows | None = None
) -> tuple[tuple[str, str], ...]:
    """The line of a table's legend. margins, rows: the released sums, where they tell a number of missing values.

    >>> import confide as cf
    >>> schema = cf.Schema({"sex": cf.Categorical(["f", "m"]), "wage": cf.Numeric(0, 90, on_missing="midpoint")})
    >>> data = cf.read(schema.sample(1_000, seed=1), schema)
    >>> release = cf.release(cf.tables.Counts("sex", covers="population"), data, cf.GDP(1.0), ledger=None)
    >>> missing_lines(release, cf.tables.Counts("sex", covers="population").about(schema))[0][1].split("; ")[:2]
    ['a record with a missing sex is left out', 'a label that is not declared counts as missing']
    """
    crossing = layout.crossing
    if isinstance(crossing, UnitCrossing):
        parts = list(_of_persons(crossing))
    else:
        # a ratio is of records with both values; of several columns each has its own number of values
        apart = len(layout.measures) > 1 and release.plan.method.name != "ratios"
        weight = [layout.weight] if isinstance(layout.weight, Measure) else []
        parts = missing_parts(crossing, [*(() if apart else layout.measures), *weight])
        parts += _of_measures(layout.measures, _counted(layout, margins, rows)) if apart else []
    if any("left out" in part and "alone" not in part for part in parts):
        parts.append(_left_out(release, layout, margins) or UNKNOWN)
    return (("Missing", "; ".join(parts)),) if parts else ()


def missing_parts(crossing: Crossing, measures: Iterable[Measure]) -> list[str]:
    """The rules of the columns whose value a record must have to be counted."""
    schema, measures = crossing.schema, tuple(measures)
    names = columns_of(crossing, *measures)
    derived = any(measure.name not in schema for measure in measures)
    said = missing_rules({name: schema[name] for name in names}, derived=derived)
    return [said] if said else []


def alone_parts(kept: Mapping[str, Column], apart: Sequence[str], counted: str = "") -> list[str]:
    """The rules of columns that each have their own number of values. kept: those that put a value in; apart: the others, by name;
    counted: released numbers of missing values.
    """
    parts = [missing_rules(kept)] if kept else []
    if apart:
        parts.append(f"a missing {either(apart)} is left out of the numbers of that column alone{counted}")
    return parts


def _of_measures(measures: Sequence[Measure], counted: str) -> list[str]:
    kept = {name: own.design.schema[name] for own in measures if not own.drops for name in own.columns}
    return alone_parts(kept, [own.name for own in measures if own.drops], counted)


def _counted(layout: Layout, margins: Margins | None, rows: MomentRows | None) -> str:
    """The released numbers of missing values, of the records in the table."""
    if margins is None or rows is None or layout.weight is not None:
        return ""
    one, total = float(1 << BITS), margins.table(()).reshape(-1)
    found = {
        own.name: total[rows.starts[j] + 4] / one for j, own in enumerate(layout.measures) if rows.counts_missing(j)
    }
    return noisy_numbers({name: (number, float(np.sqrt(margins.variance(()))) / one) for name, number in found.items()})


def noisy_numbers(found: Mapping[str, tuple[float, float]]) -> str:
    """Numbers of missing values by column, each with the sd of its noise.

    >>> noisy_numbers({"age": (12.3, 4.0)})
    ': age 12 (noise sd 4)'
    """
    if not found:
        return ""
    return ": " + ", ".join(f"{name} {number:,.0f} (noise sd {sd:,.3g})" for name, (number, sd) in found.items())


def _left_out(release: Release, layout: Layout, margins: Margins | None) -> str:
    """How many are left out, where the number of all records is public and the table counts records."""
    n, schema = release.plan.n, layout.crossing.schema
    if n is None or margins is None or layout.measures or layout.weight is not None or release.plan.where is not None:
        return ""
    if schema.protects != "record" or schema.design is not None:
        return ""
    size, sd = float(margins.table(())[0]), float(np.sqrt(margins.variance((), counts=True)))
    return f"of the {n:,} records, a public number, {n - size:,.0f} were left out (noise sd {sd:,.3g})"


def _of_persons(crossing: UnitCrossing) -> Iterator[str]:
    """Of units by all their rows."""
    named = crossing.schema.protects
    conditions = dict.fromkeys(
        name
        for own in crossing.attributes
        if isinstance(own, RowNumber)
        for name in own.read
        if crossing.schema[name].on_missing == "drop"
    )
    if conditions:
        yield f"a row with a missing {either(list(conditions))} satisfies no condition on it"
    others = dict.fromkeys(own.column for own in crossing.attributes if not isinstance(own, RowNumber))
    dropped = [name for name in others if crossing.schema[name].on_missing == "drop"]
    if dropped:
        yield f"a {named} none of whose rows has a {either(dropped)} is left out"
