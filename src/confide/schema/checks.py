"""What a schema refuses: names, columns, units, clusters and designs that do not go together, each with what would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from confide.errors import SchemaError
from confide.schema.columns import Categorical, Column, Integer, Numeric
from confide.schema.settings import is_unicode
from confide.schema.survey import SurveyDesign
from confide.schema.toml import column_from_settings
from confide.schema.unit import Clusters, Unit

# Levels of a column in each of which a unit may count once.
_MOST_GROUPS = 256


def with_groups(unit: Any, columns: Mapping[str, Column]) -> Any:
    """A unit that counts once in each level of a column, as one of so many rows."""
    if not isinstance(unit, Unit) or unit.per is None:
        return unit
    steps = columns[unit.per].steps
    return Unit(unit.column, rows=min(unit.groups or steps, steps))


def check_per(unit: Any, columns: Mapping[str, Column]) -> None:
    if not isinstance(unit, Unit) or unit.per is None:
        return
    column = columns.get(unit.per)
    if column is None or isinstance(column, Numeric) or column.steps > _MOST_GROUPS:
        raise SchemaError(
            f"per must name a categorical or integer column of at most {_MOST_GROUPS} values, where a {unit.column} counts once in each, "
            f"got {unit.per!r}",
            f"write cf.Unit({unit.column!r}, per='year') with year = cf.Integer(2015, 2024)",
        )


def checked_design(design: Any, cluster: Any, unit: Unit | str, rows: int, columns: Mapping[str, Column]) -> Any:
    """The clusters of a schema with this design: its PSUs of an id column, or those that were given."""
    if design is None:
        return cluster
    if not isinstance(design, SurveyDesign):
        raise SchemaError(
            f"design must be a SurveyDesign or None, got {design!r}",
            'write design=SurveyDesign(weight="w", psu="village", size=10)',
        )
    design.check(columns)
    if rows != 1:
        raise SchemaError(
            f"a design is of persons who count once each, got {rows} rows per unit",
            "write unit=cf.Unit(...) with rows=1, or unit='record'",
        )
    if cluster is not None and cluster != design.cluster:
        raise SchemaError(
            f"the design has its own clusters, the PSUs, got cluster={cluster!r} too",
            "leave cluster out, or name it in SurveyDesign(psu=...)",
        )
    return design.cluster


def check_clusters(cluster: Any, unit: Unit | str, rows: int, columns: Mapping[str, Column]) -> None:
    if cluster is None:
        return
    if not isinstance(cluster, Clusters):
        raise SchemaError(
            f"cluster must be Clusters or None, got {cluster!r}",
            'write cluster=cf.Clusters("school", size=30), 30 its mean number of members',
        )
    if cluster.column in columns or (isinstance(unit, Unit) and unit.column == cluster.column):
        raise SchemaError(
            f"{cluster.column!r} is the id column of the clusters and another column too; ids are never analyzed, and clusters that are "
            "the units need no entry: intervals count units as independent"
        )
    if not isinstance(unit, Unit) and (unit != "record" or rows != 1):
        raise SchemaError(
            f"clusters are of records, or of the units of an id column; got unit={unit!r} with {rows} rows, which nothing enforces",
            f"write unit=cf.Unit({unit!r}) with the id column of the data, or unit='record'",
        )


def checked_rows(rows_per_unit: Any, unit: object) -> int:
    """The rows that one unit counts: those of an enforced unit, or as declared."""
    if rows_per_unit is None:
        return unit.rows if isinstance(unit, Unit) else 1
    whole = isinstance(rows_per_unit, (int, np.integer)) and not isinstance(rows_per_unit, bool)
    if not whole or rows_per_unit < 1:
        raise SchemaError(
            "rows_per_unit must be a whole number of at least 1, the most rows that one unit can have, "
            f"got {rows_per_unit!r}",
            "leave it out when each unit has one row, or write rows_per_unit=12",
        )
    if isinstance(unit, Unit) and rows_per_unit != unit.rows:
        raise SchemaError(
            f"rows_per_unit={rows_per_unit} is a declaration, and {unit!r} is enforced with {unit.rows}",
            f"write unit=cf.Unit({unit.column!r}, rows={rows_per_unit}) and leave rows_per_unit out",
        )
    return int(rows_per_unit)


def checked_name(name: object) -> str:
    fits = isinstance(name, str) and bool(name.strip()) and "`" not in name and is_unicode(name)
    if not isinstance(name, str) or not fits:
        raise SchemaError(
            f"a column's name must be text that is not blank and has no backtick, got {name!r}",
            'rename it, as in cf.Schema({"age": cf.Numeric(0, 100)})',
        )
    return str(name)


def checked_column(name: str, column: Any) -> Column:
    if isinstance(column, (Numeric, Integer, Categorical)):
        return column
    if isinstance(column, Mapping):
        return column_from_settings(name, column)
    raise SchemaError(
        f"column {name!r} must be a Numeric, Integer, Date or Categorical, got {type(column).__name__}",
        f"write cf.Schema({{{name!r}: cf.Numeric(0, 100)}})",
    )


def with_codes(columns: dict[str, Column], codes: Any) -> dict[str, Column]:
    """The columns with the schema's codes of missing values where they have none."""
    if codes is None:
        return columns
    found: dict[str, Column] = {}
    for name, column in columns.items():
        try:
            found[name] = replace(column, missing=codes) if column.missing is None else column
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}") from None
    return found
