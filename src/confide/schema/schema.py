"""The schema: everything that is public about a dataset before it is analyzed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._helpers import later, near_match
from confide.errors import SchemaError
from confide.schema.checks import (
    check_clusters,
    check_per,
    checked_column,
    checked_design,
    checked_name,
    checked_rows,
    with_codes,
    with_groups,
)
from confide.schema.columns import Categorical, Column, Integer
from confide.schema.draft import draft
from confide.schema.formulas.names import check_distinct
from confide.schema.layout import PLAIN, FileLayout, in_file, layout_from_settings
from confide.schema.missing import missing_codes
from confide.schema.settings import is_unicode
from confide.schema.survey import SurveyDesign, survey_from_settings
from confide.schema.toml import column_from_dict, definition, from_toml, to_toml, value as toml_value
from confide.schema.unit import Clusters, Unit, clusters_from_settings, unit_from_settings

if TYPE_CHECKING:
    import pandas as pd

# needed where columns are derived, whose formulas need a schema
_derive = later("confide.schema.derive")

# Rows of practice records, which lie in memory.
_MOST_PRACTICE = 10**9
_EXAMPLE = 'write cf.Schema({"age": cf.Numeric(0, 100), "region": cf.Categorical(["north", "south"])})'


class Schema:
    """Public description of the data: columns, privacy unit, survey design.

    A schema holds nothing that was read from the records. It is a value: equal
    to another with the same facts, hashable, never changed.

    Parameters
    ----------
    columns : mapping of str to Numeric, Integer, Date or Categorical
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
    missing : list of str, number or mapping, optional
        Codes for "no answer" of all columns that have no own list.
    file : FileLayout or mapping, optional
        How the files are laid out, such as ``{"delimiter": ";", "decimal":
        ","}``: the entries of ``[file]``. It is in no plan, digest or release.
    derive : mapping of str to str or mapping, optional
        Columns that follow from others of the same record, such as ``{"age":
        "years_between(birth, '2024-07-01')"}``: the entries of ``[derive]``. They
        are columns like the others and need not be in the data.

    Raises
    ------
    SchemaError
        No columns, a name that is not text, two names that are one under NFKC,
        or a wrong number of rows per unit. Also an id column that is a column
        of the schema, and a derivation that is not a function of one record.

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
    #: How the files are laid out; in no digest, plan or release.
    file: FileLayout
    #: How the derived columns follow from others, by name.
    derive: Mapping[str, Any]
    #: Ranges of derived terms that a release found; never in a file.
    terms: Mapping[str, tuple[float, float]]
    #: Designs that were made of it, by formula and bounds.
    designs: dict[Any, Any]

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        rows_per_unit: int | None = None,
        unit: Unit | str | Mapping[str, Any] = "record",
        dataset: str | None = None,
        cluster: Clusters | Mapping[str, Any] | None = None,
        design: SurveyDesign | Mapping[str, Any] | None = None,
        missing: Sequence[Any] | None = None,
        file: FileLayout | Mapping[str, Any] | None = None,
        derive: Mapping[str, Any] | None = None,
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
        layout = PLAIN if file is None else layout_from_settings(file)
        if any(isinstance(column, Mapping) for column in columns.values()):
            layout, columns = in_file(layout, columns)
        checked = {checked_name(name): checked_column(name, column) for name, column in columns.items()}
        checked = checked if missing is None else with_codes(checked, missing_codes("Schema", missing))
        groups = clusters_from_settings(cluster) if isinstance(cluster, Mapping) else cluster
        drawn = survey_from_settings(design) if isinstance(design, Mapping) else design
        made = (
            _derived(derive, checked, (getattr(whose, "column", ""), getattr(groups, "column", ""), drawn))
            if derive
            else {}
        )
        checked |= {name: own.column for name, own in made.items()}
        check_distinct(checked)
        check_per(whose, checked)
        rows = checked_rows(rows_per_unit, with_groups(whose, checked))
        if isinstance(whose, Unit) and whose.column in checked:
            raise SchemaError(
                f"{whose.column!r} is the id column of the unit and a column of the schema too, and ids are never analyzed",
                "take it out of the columns",
            )
        groups = checked_design(drawn, groups, whose, rows, checked)
        check_clusters(groups, whose, rows, checked)
        if isinstance(whose, Unit) and whose.per is not None and (groups is not None or drawn is not None):
            raise SchemaError(
                f"tables in clusters and of designs count each {whose.column} once, got per={whose.per!r}",
                f"write unit=cf.Unit({whose.column!r})",
            )
        facts: dict[str, Any] = {
            "designs": {},
            "rows_per_unit": rows,
            "unit": whose,
            "dataset": dataset,
            "cluster": groups,
            "design": drawn,
            "file": layout,
            "derive": MappingProxyType(made),
        }
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

    @cached_property
    def in_data(self) -> tuple[str, ...]:
        """Names of the columns that the data must have: all but the derived ones.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(1, 9)}, derive={"half": "x / 2"}).in_data
        ('x',)
        """
        return tuple(name for name in self.columns if name not in self.derive) if self.derive else self.names

    def behind(self, names: Iterable[str]) -> tuple[str, ...]:
        """Give the columns of the data that some columns are made from, each once.

        Parameters
        ----------
        names : iterable of str
            Columns of the schema.

        Returns
        -------
        tuple of str
            The columns themselves, and the inputs of the derived ones.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(1, 9)}, derive={"half": "x / 2", "more": "half + x"}).behind(["more"])
        ('x',)
        """
        if not self.derive:
            return tuple(dict.fromkeys(names))
        own = (self.derive[name].behind if name in self.derive else (name,) for name in names)
        return tuple(dict.fromkeys(one for each in own for one in each))

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
        shown = ", ".join(f"{name!r}: {_short(self.columns[name])}" for name in self.in_data)
        enforced = isinstance(self.unit, Unit)
        facts = [f"rows_per_unit={self.rows_per_unit}"] if self.rows_per_unit != 1 and not enforced else []
        facts += [f"unit={self.unit!r}"] if self.unit != "record" else []
        facts += [f"dataset={self.dataset!r}"] if self.dataset is not None else []
        own = self.cluster is not None and self.design is None
        facts += [f"cluster={self.cluster!r}"] if own else []
        facts += [f"design={self.design!r}"] if self.design is not None else []
        facts += [f"file={self.file.to_settings()!r}"] if self.file != PLAIN else []
        facts += [f"derive={self._definitions!r}"] if self.derive else []
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
            "columns": [{"name": name, **self.columns[name].to_dict()} for name in self.in_data],
            "rows_per_unit": self.rows_per_unit,
            "unit": self.unit.to_dict() if isinstance(self.unit, Unit) else self.unit,
            "dataset": self.dataset,
            # written only where there are any, so that schemas without them stay what they were
            **({"cluster": self.cluster.to_dict()} if self.cluster is not None else {}),
            **({"design": self.design.to_dict()} if self.design is not None else {}),
            **({"file": self.file.to_settings()} if self.file != PLAIN else {}),
            **({"derive": [[name, toml_value(own)] for name, own in self._definitions.items()]} if self.derive else {}),
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
        made = self._like(self.columns, self.file)
        made.__dict__["terms"] = MappingProxyType(dict(terms))
        return made

    def with_file(self, entries: Mapping[str, Any]) -> Schema:
        """Give the same facts with other entries of ``[file]``.

        Parameters
        ----------
        entries : mapping
            Entries in the place of those of the schema.

        Returns
        -------
        Schema
            A new schema.

        Raises
        ------
        SchemaError
            An entry is unknown or not allowed.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> Schema({"x": Numeric(0, 1)}).with_file({"decimal": ","}).file.decimal
        ','
        """
        return self._like(self.columns, self.file.with_entries(entries))

    def with_columns(self, columns: Mapping[str, Any]) -> Schema:
        """Give the same facts about other columns.

        A derived column stays one where it and its inputs are unchanged. Else it
        is a column of the data.

        Parameters
        ----------
        columns : mapping of str to Numeric, Integer, Date or Categorical
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
        if not self.derive:
            return self._like(columns, self.file)
        same = {name for name, column in columns.items() if self.columns.get(name) == column}
        kept = [name for name, own in self.derive.items() if name in same and {*own.inputs, *own.behind} <= same]
        # a chain is kept as far as each of its columns is unchanged
        kept = [name for name in kept if all(one in kept for one in self.derive[name].inputs if one in self.derive)]
        plain = {name: column for name, column in columns.items() if name not in kept}
        made = self._like(plain, self.file, {name: self._definitions[name] for name in kept})
        made.__dict__["columns"] = MappingProxyType({name: made.columns[name] for name in columns})
        return made

    def with_data_columns(self, columns: Mapping[str, Any]) -> Schema:
        """Give the same facts about other columns of the data. Derived columns follow
        from these.

        Parameters
        ----------
        columns : mapping of str to Numeric, Integer, Date or Categorical
            The other columns.

        Returns
        -------
        Schema
            A new schema.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> schema = Schema({"x": Numeric(1, 9)}, derive={"half": "x / 2"})
        >>> schema.with_data_columns({"x": Numeric(0, 4)})["half"].high
        2.0
        """
        return self._like(columns, self.file)

    def _like(self, columns: Mapping[str, Any], file: FileLayout, derive: Mapping[str, Any] | None = None) -> Schema:
        facts: dict[str, Any] = {"rows_per_unit": self.rows_per_unit, "unit": self.unit, "dataset": self.dataset}
        if derive is None and self.derive:
            columns = {name: column for name, column in columns.items() if name not in self.derive}
            derive = self._definitions
        return Schema(columns, **facts, cluster=self.cluster, design=self.design, file=file, derive=derive)

    @property
    def _definitions(self) -> dict[str, Any]:
        """The definitions of derived columns, as files have them."""
        return {name: own.settings for name, own in self.derive.items()}

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
            facts |= {name: data[name] for name in ("cluster", "design", "file") if name in data}
            facts |= {"derive": {name: definition(text) for name, text in data["derive"]}} if "derive" in data else {}
        except (KeyError, TypeError, AttributeError, ValueError):
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
            self.bare.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON in hexadecimal: it identifies how records
        are read. What `bare` leaves out is not in it.

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
    def bare(self) -> Schema:
        """This schema as plans, releases and digests hold it: without typical
        spreads, which only forecasts use, and without the layout of files.

        Examples
        --------
        >>> from confide.schema import Numeric
        >>> schema = Schema({"income": Numeric(0, 1e6, typical=(5e3, 9e4))}, file={"decimal": ","})
        >>> schema.bare["income"] == Numeric(0, 1e6), schema.bare.digest == schema.digest, schema.bare.file.decimal
        (True, True, '.')
        """
        bare = {name: replace(self.columns[name], typical=None) for name in self.in_data}
        if all(bare[name] == self.columns[name] for name in bare) and self.file == PLAIN:
            return self
        made = self._like(bare, PLAIN)
        if tuple(made.columns) != self.names:  # the order in which `with_columns` was given them
            made.__dict__["columns"] = MappingProxyType({name: made.columns[name] for name in self.columns})
        return made

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
        cluster = None if self.design else self.cluster
        columns = {name: self.columns[name] for name in self.in_data}
        facts |= {"cluster": cluster, "design": self.design, "file": self.file}
        return to_toml(columns, **facts, derive=self._definitions)

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
    def draft(data: Any, *, delimiter: str | None = None, file: Mapping[str, Any] | None = None) -> str:
        """Draft a TOML text with the names and types of the columns of a file.

        Only metadata are read: names and types, of a CSV file and a sheet the
        header, and how many cells the next lines have. Values are never read, nor statistics such as the smallest and
        largest value that Parquet files hold, because bounds taken from the
        data are not private.

        Parameters
        ----------
        data : path, DataFrame, Table or schema
            A Parquet or CSV file, a pandas or polars DataFrame, a pyarrow Table
            or schema.
        delimiter : str, optional
            What separates the fields of a text file: short for `file`. Left out:
            a comma, or what the header line seems to have.
        file : mapping, optional
            How the file is laid out: entries of ``[file]``. The draft keeps them.

        Returns
        -------
        str
            The text, with the bounds left to fill in.

        Raises
        ------
        SchemaError
            The data are anything else, or a file has no readable metadata.
        SourceError
            A text file or a workbook has no header that can be read.
        """
        entries = {**({} if file is None else file), **({} if delimiter is None else {"delimiter": delimiter})}
        return draft(data, layout=layout_from_settings(entries))

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        """Draw test data from the schema alone.

        They have the columns of the data; derived ones follow on reading. Values
        are drawn evenly within the bounds and over the levels, with none
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
        frame = pd.DataFrame(self.simulated(int(n), int(seed)))
        frame.attrs["practice"] = True
        return frame

    def simulated(self, n: int, seed: int) -> dict[str, Any]:
        """The columns of `sample` as arrays, without pandas."""
        generator = np.random.default_rng(seed)
        found = {name: _practice(self.columns[name], n, generator) for name in self.in_data}
        if isinstance(self.unit, Unit):
            # each row a unit of its own
            found[self.unit.column] = np.arange(n)
        if self.cluster is not None:
            found[self.cluster.column] = np.arange(n) // max(round(self.cluster.size), 1)
        return found


def _derived(given: Any, columns: Mapping[str, Column], ids: tuple[Any, ...]) -> dict[str, Any]:
    unit, cluster, design = ids
    taken = {unit, cluster, getattr(design, "psu", "")} - {"", None}
    found: dict[str, Any] = _derive.derivations(given, columns, taken)
    return found


def _short(column: Column) -> str:
    if isinstance(column, Categorical):
        return f"Categorical({list(column.levels)!r})"
    if column.kind == "date":
        return repr(column)
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
        whole = generator.integers(int(column.low), int(column.high), size=n, endpoint=True)
        return whole.astype("datetime64[D]").astype("datetime64[s]") if column.kind == "date" else whole
    # low + u (high - low) may round to one unit in the last place above high
    return np.minimum(column.low + generator.random(n) * (column.high - column.low), column.high)
