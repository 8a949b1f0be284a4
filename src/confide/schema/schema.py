"""The schema: everything that is public about a dataset before it is analyzed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._helpers import near_match
from confide.errors import SchemaError
from confide.schema.checks import (
    check_clusters,
    check_per,
    checked_column,
    checked_design,
    checked_name,
    checked_rows,
    with_groups,
)
from confide.schema.columns import Categorical, Column, Integer, column_from_dict
from confide.schema.draft import draft
from confide.schema.formulas.names import check_distinct
from confide.schema.settings import is_unicode
from confide.schema.survey import SurveyDesign, survey_from_settings
from confide.schema.toml import from_toml, to_toml
from confide.schema.unit import Clusters, Unit, clusters_from_settings, unit_from_settings

if TYPE_CHECKING:
    import pandas as pd


# Rows of practice records, which lie in memory.
_MOST_PRACTICE = 10**9
_EXAMPLE = 'write cf.Schema({"age": cf.Numeric(0, 100), "region": cf.Categorical(["north", "south"])})'


class Schema:
    """Public description of the data: columns, privacy unit, survey design.

    A schema holds nothing that was read from the records. It is a value: equal
    to another with the same facts, hashable, never changed.

    Parameters
    ----------
    columns : mapping of str to Numeric, Integer or Categorical
        Columns with their bounds or levels, in order. A column may also be a
        mapping with the entries of a TOML table.
    rows_per_unit : int, optional
        Largest number of rows of one unit, at least 1, if the unit is declared
        and not enforced.
    unit : Unit or str, default "record"
        What is protected. ``Unit("person_id")`` protects all rows of one id and
        is enforced; ``"record"`` protects each row. Another name, such as
        ``"household"``, is declared and not enforced, and needs
        `rows_per_unit`.
    dataset : str, optional
        Name under which a ledger charges these records.
    cluster : Clusters, optional
        Groups of units whose members are alike and that intervals treat as
        independent, such as ``Clusters("school", size=30)``.
    design : SurveyDesign, optional
        Weights, strata and PSUs of a survey. PSUs of an id column are its
        clusters.

    Raises
    ------
    SchemaError
        No columns, a name that is not text, two names that are one under NFKC,
        or a wrong number of rows per unit. Also an id column that is a column
        of the schema.

    Examples
    --------
    >>> from confide.schema import Categorical, Numeric
    >>> schema = Schema({"age": Numeric(17.5, 42), "region": Categorical(["N", "S"])})
    >>> schema.names, schema["age"].high, schema.rows_per_unit
    (('age', 'region'), 42.0, 1)
    """

    columns: Mapping[str, Column]
    rows_per_unit: int
    unit: Unit | str
    dataset: str | None
    cluster: Clusters | None
    design: SurveyDesign | None
    #: Ranges of derived terms that a release found; never in a file.
    terms: Mapping[str, tuple[float, float]]

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        rows_per_unit: int | None = None,
        unit: Unit | str | Mapping[str, Any] = "record",
        dataset: str | None = None,
        cluster: Clusters | Mapping[str, Any] | None = None,
        design: SurveyDesign | Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(columns, Mapping) or not columns:
            given = "an empty one" if isinstance(columns, Mapping) else type(columns).__name__
            raise SchemaError(f"columns must be a mapping of at least one name to a column, got {given}", f"{_EXAMPLE}")
        whose = unit_from_settings(unit) if isinstance(unit, Mapping) else unit
        if whose == "?":
            raise SchemaError(
                'unit="?" is still to be decided: write unit=Unit("person_id") where a person may have several rows, or '
                "unit='record' where each row is a unit"
            )
        if not isinstance(whose, Unit) and (not isinstance(whose, str) or not whose or not is_unicode(whose)):
            raise SchemaError(
                f"unit must be a name or a Unit, got {unit!r}", 'leave it out, or write unit=Unit("person_id")'
            )
        if dataset is not None and (not isinstance(dataset, str) or not dataset or not is_unicode(dataset)):
            raise SchemaError(
                f"dataset must be a name or None, got {dataset!r}", 'leave it out, or write dataset="survey"'
            )
        checked = {checked_name(name): checked_column(name, column) for name, column in columns.items()}
        check_distinct(checked)
        check_per(whose, checked)
        rows = checked_rows(rows_per_unit, with_groups(whose, checked))
        if isinstance(whose, Unit) and whose.column in checked:
            raise SchemaError(
                f"{whose.column!r} is the id column of the unit and a column of the schema too, and ids are never analyzed",
                "take it out of the columns",
            )
        groups = clusters_from_settings(cluster) if isinstance(cluster, Mapping) else cluster
        drawn = survey_from_settings(design) if isinstance(design, Mapping) else design
        groups = checked_design(drawn, groups, whose, rows, checked)
        check_clusters(groups, whose, rows, checked)
        if isinstance(whose, Unit) and whose.per is not None and (groups is not None or drawn is not None):
            raise SchemaError(
                f"tables in clusters and of designs count each {whose.column} once, got per={whose.per!r}",
                f"write unit=cf.Unit({whose.column!r})",
            )
        facts = {"rows_per_unit": rows, "unit": whose, "dataset": dataset, "cluster": groups, "design": drawn}
        self.__dict__.update(columns=MappingProxyType(checked), terms=MappingProxyType({}), **facts)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema is never changed; make a new one to set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Schema is never changed; make a new one without {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema.from_dict, (self.to_dict(),))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"b": Numeric(0, 1), "a": Numeric(0, 1)}).names
        ('b', 'a')
        """
        return tuple(self.columns)

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise self._no_column(name)
        return self.columns[name]

    def _no_column(self, name: str) -> SchemaError:
        return SchemaError(
            f"the schema has no column {name!r}{near_match(str(name), self.names)}; it has: {', '.join(self.names)}",
            "use one of these, or add the column to the schema",
        )

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {_short(column)}" for name, column in self.columns.items())
        enforced = isinstance(self.unit, Unit)
        facts = [f"rows_per_unit={self.rows_per_unit}"] if self.rows_per_unit != 1 and not enforced else []
        facts += [f"unit={self.unit!r}"] if self.unit != "record" else []
        facts += [f"dataset={self.dataset!r}"] if self.dataset is not None else []
        own = self.cluster is not None and self.design is None
        facts += [f"cluster={self.cluster!r}"] if own else []
        facts += [f"design={self.design!r}"] if self.design is not None else []
        return f"Schema({', '.join([f'{{{shown}}}', *facts])})"

    def to_dict(self) -> dict[str, Any]:
        """Give the schema as JSON types: columns in order, floats as `float.hex` texts.

        Returns
        -------
        dict
            The canonical form, which `from_dict` reads back to the bit.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> list(Schema({"x": Numeric(0, 1)}).to_dict())
        ['columns', 'rows_per_unit', 'unit', 'dataset']
        """
        facts: dict[str, Any] = json.loads(
            self._written
        )  # its own each time: what a caller writes into it changes no other one
        return facts

    @cached_property
    def _written(self) -> str:
        facts = {
            "columns": [{"name": name, **column.to_dict()} for name, column in self.columns.items()],
            "rows_per_unit": self.rows_per_unit,
            "unit": self.unit.to_dict() if isinstance(self.unit, Unit) else self.unit,
            "dataset": self.dataset,
            # written only where there are any, so that schemas without them stay what they were
            **({"cluster": self.cluster.to_dict()} if self.cluster is not None else {}),
            **({"design": self.design.to_dict()} if self.design is not None else {}),
            **(
                {"terms": [[name, low.hex(), high.hex()] for name, (low, high) in self.terms.items()]}
                if self.terms
                else {}
            ),
        }
        return json.dumps(facts, allow_nan=False)

    def with_terms(self, terms: Mapping[str, tuple[float, float]]) -> Schema:
        """The same facts with ranges of derived terms.

        Parameters
        ----------
        terms : mapping of str to (float, float)
            Range of each term, by its name.

        Returns
        -------
        Schema
            A new schema.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> dict(Schema({"x": Numeric(1, 9)}).with_terms({"log(x)": (0.0, 2.0)}).terms)
        {'log(x)': (0.0, 2.0)}
        """
        made = self.with_columns(self.columns)
        made.__dict__["terms"] = MappingProxyType(dict(terms))
        return made

    def with_columns(self, columns: Mapping[str, Any]) -> Schema:
        """Give the same facts about other columns.

        Parameters
        ----------
        columns : mapping of str to Numeric, Integer or Categorical
            The other columns.

        Returns
        -------
        Schema
            A new schema.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}, unit=Unit("id")).with_columns({"y": Numeric(0, 2)}).unit
        Unit('id')
        """
        facts: dict[str, Any] = {"rows_per_unit": self.rows_per_unit, "unit": self.unit, "dataset": self.dataset}
        return Schema(columns, **facts, cluster=self.cluster, design=self.design)

    @property
    def protects(self) -> str:
        """Name of the privacy unit; for an enforced unit that of its id column.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}, unit=Unit("person_id")).protects
        'person_id'
        """
        return self.unit.column if isinstance(self.unit, Unit) else self.unit

    @property
    def ids(self) -> tuple[str, ...]:
        """Id columns of the unit and of the clusters, which no analysis sees.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}, unit=Unit("person_id"), cluster=Clusters("school", size=30)).ids
        ('person_id', 'school')
        """
        unit = (self.unit.column,) if isinstance(self.unit, Unit) else ()
        return (*unit, self.cluster.column) if self.cluster is not None else unit

    @property
    def plain(self) -> bool:
        """Whether each record is its own unit, without clusters or a survey design.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}).plain, Schema({"x": Numeric(0, 1)}, unit=Unit("person_id")).plain
        (True, False)
        """
        return self.unit == "record" and self.rows_per_unit == 1 and self.cluster is None and self.design is None

    @classmethod
    def of(cls, schema: Schema | Mapping[str, Any]) -> Schema:
        """Make a schema of its dict; a schema is returned as it is.

        Parameters
        ----------
        schema : Schema or mapping
            A schema, or its dict as plans and releases hold it.

        Returns
        -------
        Schema
            The schema.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> schema = Schema({"x": Numeric(0, 1)})
        >>> Schema.of(schema) is schema, Schema.of(schema.to_dict()) == schema
        (True, True)
        """
        return schema if isinstance(schema, Schema) else cls.from_dict(schema)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Read what `to_dict` wrote, to the bit.

        Parameters
        ----------
        data : mapping
            What `to_dict` gave.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        SchemaError
            The mapping is damaged.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> schema = Schema({"x": Numeric(0.1, 1)}, rows_per_unit=3)
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
        """
        try:
            names = [entry["name"] for entry in data["columns"]]
            columns = {name: column_from_dict(entry) for name, entry in zip(names, data["columns"], strict=True)}
            facts = {key: data[key] for key in ("rows_per_unit", "unit", "dataset")}
            facts |= {name: data[name] for name in ("cluster", "design") if name in data}
        except (KeyError, TypeError, AttributeError):
            raise SchemaError(
                "this is not the dictionary of a schema: it needs columns (a list of tables with a name each), "
                "rows_per_unit, unit and dataset",
                "write it with schema.to_dict()",
            ) from None
        if len(columns) < len(names):
            raise SchemaError("the dictionary of the schema names a column twice", "write it with schema.to_dict()")
        made = cls(columns, **facts)
        terms = {name: (float.fromhex(low), float.fromhex(high)) for name, low, high in data.get("terms", ())}
        return made.with_terms(terms) if terms else made

    @cached_property
    def _digest(self) -> str:
        text = json.dumps(
            self.without_typical.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON in hexadecimal: it identifies how records
        are read. Typical spreads are not in it.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}).digest == Schema({"x": Numeric(0.0, 1.0)}).digest
        True
        """
        return self._digest

    @cached_property
    def closed(self) -> Schema:
        """This schema with bounds for columns that have none, from typical values or
        from 0 to 1. Test data and forecasts use it.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(), "y": Numeric(low=5)}).closed
        Schema({'x': Numeric(0, 1), 'y': Numeric(5, 6)})
        """
        columns = {name: own if isinstance(own, Categorical) else own.closed for name, own in self.columns.items()}
        return self if columns == dict(self.columns) else self.with_columns(columns)

    @cached_property
    def without_typical(self) -> Schema:
        """This schema without its typical spreads, which only forecasts use.
        Plans, releases and digests hold this form.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> schema = Schema({"income": Numeric(0, 1e6, typical=(5e3, 9e4))})
        >>> schema.without_typical["income"] == Numeric(0, 1e6), schema.without_typical.digest == schema.digest
        (True, True)
        """
        bare = {name: replace(column, typical=None) for name, column in self.columns.items()}
        if bare == dict(self.columns):
            return self
        return self.with_columns(bare)

    def to_toml(self) -> str:
        """Write the schema as the text of a TOML file.

        Returns
        -------
        str
            What `from_toml` reads back to the bit.

        Examples
        --------
        >>> print(Schema({"x": Integer(0, 5)}).to_toml())
        rows_per_unit = 1
        unit = "record"
        <BLANKLINE>
        [columns.x]
        kind = "integer"
        low = 0
        high = 5
        on_missing = "drop"
        provenance = { kind = "public", text = "" }
        <BLANKLINE>
        """
        facts: dict[str, Any] = {"rows_per_unit": self.rows_per_unit, "unit": self.unit, "dataset": self.dataset}
        return to_toml(self.columns, **facts, cluster=None if self.design else self.cluster, design=self.design)

    @classmethod
    def from_toml(cls, source: str | PathLike[str]) -> Schema:
        """Read a schema from a TOML file or its text.

        Parameters
        ----------
        source : str or path
            Path of the file, or its text: a string with a line break or an
            equals sign.

        Returns
        -------
        Schema
            The schema.

        Raises
        ------
        SchemaError
            The file is missing or not TOML, or an entry is unknown or wrong.
            For a draft with bounds left to fill in, the message names each of
            them and the line to write.

        Examples
        --------
        >>> Schema.from_toml('columns.x = { kind = "numeric", low = 0, high = 1 }').names
        ('x',)
        """
        columns, facts = from_toml(source)
        return cls(columns, **facts)

    @staticmethod
    def draft(data: Any, *, delimiter: str = ",") -> str:
        """Draft a TOML text with the names and types of the columns of a file.

        Only metadata are read: names and types, of a CSV file the header line
        alone. Values are never read, nor statistics such as the smallest and
        largest value that Parquet files hold, because bounds taken from the
        data are not private.

        Parameters
        ----------
        data : path, DataFrame, Table or schema
            A Parquet or CSV file, a pandas or polars DataFrame, a pyarrow Table
            or schema.
        delimiter : str, default ","
            What separates the fields of a CSV file.

        Returns
        -------
        str
            The text, with the bounds left to fill in.

        Raises
        ------
        SchemaError
            The data are anything else, or a file has no readable metadata.
        """
        return draft(data, delimiter=delimiter)

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """Draw test data from the schema alone.

        Values are drawn evenly within the bounds and over the levels, with none
        missing. They come from the schema and the seed and say nothing about
        any record. The id column of an enforced unit numbers the rows.

        Parameters
        ----------
        n : int
            Number of rows, at least 0.
        seed : int
            Seed, at least 0.

        Returns
        -------
        DataFrame
            The rows; ``frame.attrs["practice"]`` is True.

        Raises
        ------
        SchemaError
            `n` or `seed` is not a whole number of at least 0.

        Examples
        --------
        >>> frame = Schema({"age": Integer(0, 100), "region": Categorical(["N", "S"])}).sample(3, seed=1)
        >>> frame.shape, bool(frame["age"].between(0, 100).all()), frame.attrs["practice"]
        ((3, 2), True, True)
        """
        import pandas as pd

        for name, value in (("n", n), ("seed", seed)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
                raise SchemaError(
                    f"{name} must be a whole number of at least 0, got {value!r}", "write sample(1000, seed=1)"
                )
        if n > _MOST_PRACTICE:
            raise SchemaError(f"n must be at most {_MOST_PRACTICE:,} rows, got {n!r}", "write sample(1000, seed=1)")
        generator = np.random.default_rng(seed)
        frame = pd.DataFrame({name: _practice(column, n, generator) for name, column in self.columns.items()})
        if isinstance(self.unit, Unit):
            # each row a unit of its own
            frame[self.unit.column] = np.arange(n)
        if self.cluster is not None:
            frame[self.cluster.column] = np.arange(n) // max(round(self.cluster.size), 1)
        frame.attrs["practice"] = True
        return frame


def _short(column: Column) -> str:
    if isinstance(column, Categorical):
        return f"Categorical({list(column.levels)!r})"
    ends = zip(("low", "high"), (column.low, column.high), column.declared, strict=True)
    shown = [f"{name}={bound:.12g}" for name, bound, declared in ends if declared]
    if all(column.declared):
        shown = [f"{column.low:.12g}", f"{column.high:.12g}"]
    return f"{type(column).__name__}({', '.join(shown)})"


def _practice(column: Column, n: int, generator: np.random.Generator) -> Any:
    if isinstance(column, Categorical):
        return np.array(column.levels, dtype=object)[generator.integers(column.steps, size=n)]
    column = column.closed
    if isinstance(column, Integer):
        return generator.integers(int(column.low), int(column.high), size=n, endpoint=True)
    # low + u (high - low) may round to one unit in the last place above high
    return np.minimum(column.low + generator.random(n) * (column.high - column.low), column.high)
