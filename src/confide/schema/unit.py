"""Whom a release protects: the unit of privacy, told by an id column, and how many of its rows count.

An id column is no column of the schema: no formula, message, release or practice file can hold its values.

Clusters that are not units: schools of pupils, whose members are alike, while a pupil is what a release protects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import SchemaError
from confide.schema.formulas.names import bare
from confide.schema.settings import entries, is_number, is_unicode

#: How the rows of one unit are bounded.
RULES = ("keep", "weight")
#: Rows of a unit beyond this are cut by "keep" under every rule, so that blocks of whole units stay bounded.
MOST = 1 << 16
_CALL = 'write cf.Unit("person_id"), or cf.Unit("person_id", rows=5, rule="keep")'


@dataclass(frozen=True)
class Unit:
    """One value of an id column, with all its rows, is what a release protects; it is enforced before any method sees the records.

    column: the id column's name in the data, which is no column of the schema; it holds whole numbers, text, binary or dates. rows: how
    many rows' worth of one unit counts, public, 1 when left out. rule: "keep" takes at most `rows` rows of a unit, chosen by a key and the
    rows' own content; "weight" takes all of them, each with weight min(1, rows/m) of its unit's m rows, for sums. Left out: "weight" where
    the method can, else "keep".

    per: a column of the schema with levels, such as a year: a unit then counts once in each of them, by one row of each, and in at most
    `groups` (all of the column's levels when left out), chosen by a key. Tables that are crossed with that column count persons of each
    year at the price of sqrt(groups) rows.

    7, 7.0 and "7" are one unit, text is neither trimmed nor folded, and a row without an id is dropped. Two persons under one id are one
    unit; one person under two ids is two.

    Raises `SchemaError` for a column that is no name, rows below 1 or above 65,536, another rule, groups without per, or rows or
    rule="weight" beside per.

    >>> Unit("person_id")
    Unit('person_id')
    >>> Unit("person_id", rows=5, rule="keep").rows
    5
    """

    column: str
    rows: int = 1
    rule: str | None = None
    per: str | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        fits = isinstance(self.column, str) and self.column.strip() and "`" not in self.column
        if not fits or not is_unicode(self.column) or not self.column.isprintable() or len(self.column) > 200:
            raise SchemaError(f"column must be the name of the id column in the data, got {self.column!r}; {_CALL}")
        if self.column == "record":
            raise SchemaError(
                'a unit "record" is a row by itself and has no id column; write cf.Schema(..., unit="record")'
            )
        whole = isinstance(self.rows, int) and not isinstance(self.rows, bool)
        if not whole or not 1 <= self.rows <= MOST:
            raise SchemaError(
                f"rows must be a whole number from 1 to {MOST}, the rows' worth that one unit counts, got {self.rows!r}; {_CALL}"
            )
        if self.rule is not None and self.rule not in RULES:
            raise SchemaError(f'rule must be "keep", "weight" or None, got {self.rule!r}; {_CALL}')
        self._check_per()

    def _check_per(self) -> None:
        call = f'write cf.Unit({self.column!r}, per="year", groups=10)'
        if self.per is None:
            if self.groups is not None:
                raise SchemaError(f"groups={self.groups!r} says how many levels of per one unit counts in; {call}")
            return
        if not isinstance(self.per, str) or not self.per:
            raise SchemaError(f"per must be the name of a column of the schema, got {self.per!r}; {call}")
        object.__setattr__(self, "per", bare(self.per))
        whole = isinstance(self.groups, int) and not isinstance(self.groups, bool)
        if self.groups is not None and (not whole or not 1 <= self.groups <= MOST):
            raise SchemaError(f"groups must be a whole number from 1 to {MOST}, or None, got {self.groups!r}; {call}")
        if self.rows != 1 or self.rule == "weight":
            raise SchemaError(
                f"one row of each {self.column} and {self.per} is kept, got rows={self.rows}, rule={self.rule!r}; leave both out: {call}"
            )

    def __repr__(self) -> str:
        facts = [repr(self.column)]
        facts += [f"rows={self.rows}"] if self.rows != 1 else []
        facts += [f"rule={self.rule!r}"] if self.rule is not None else []
        facts += [f"per={self.per!r}"] if self.per is not None else []
        facts += [f"groups={self.groups}"] if self.groups is not None else []
        return f"Unit({', '.join(facts)})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form.

        >>> Unit("person_id").to_dict()
        {'column': 'person_id', 'rows': 1, 'rule': None}
        """
        # written only where it is said, so that units without it stay what they were
        per = {} if self.per is None else {"per": self.per, "groups": self.groups}
        return {"column": self.column, "rows": self.rows, "rule": self.rule, **per}


def unit_from_settings(settings: Mapping[Any, Any]) -> Unit:
    """A unit from the entries of its table; `SchemaError` for one that is unknown or wrong.

    >>> unit_from_settings({"column": "person_id", "rows": 2})
    Unit('person_id', rows=2)
    """
    own = entries(
        settings,
        of="a unit",
        known=("column", "rows", "rule", "per", "groups"),
        call='write unit = { column = "person_id", rows = 1 }',
    )
    if "column" not in own:
        raise SchemaError('a unit needs the name of its id column; write unit = { column = "person_id" }')
    return Unit(**own)


# Clusters of unequal sizes: how far above the mean the largest are taken to be.
_LARGEST = 3
_CLUSTERS_CALL = 'write cf.Clusters("school", size=30), or cf.Clusters("school", size=30, icc=0.1, count=120)'


@dataclass(frozen=True)
class Clusters:
    """One value of an id column is a cluster: intervals take clusters as independent, and their members not.

    column: the id column's name in the data, which is no column of the schema; its values are read as those of a `Unit` are, and a record
    without one is dropped. size: the mean number of units in a cluster, public; largest: that of the largest
    clusters, three times `size` when left out; icc: how alike members are, 0 to 1. The last two say how far the sum of a cluster counts.
    Too large they cost width; sums of clusters beyond them are cut, what that leaves out is made up for as far as noise tells, and plans
    and results print them. count: the number of clusters where it is public; left out, the noisy number of units over `size`.

    A unit is in one cluster: of those that its rows name, the one with the smallest hash; its other rows are dropped.

    Raises `SchemaError` for a column that is no name, a size below 1, an icc outside [0, 1] or a count below 2.

    >>> Clusters("school", size=30)
    Clusters('school', size=30)
    """

    column: str
    size: float
    icc: float = 0.3
    count: int | None = None
    largest: float | None = None

    def __post_init__(self) -> None:
        fits = isinstance(self.column, str) and self.column.strip() and "`" not in self.column
        if not fits or not is_unicode(self.column) or not self.column.isprintable() or len(self.column) > 200:
            raise SchemaError(
                f"column must be the name of the clusters' id column in the data, got {self.column!r}; {_CLUSTERS_CALL}"
            )
        for name, value, low, high in (("size", self.size, 1.0, 1e6), ("icc", self.icc, 0.0, 1.0)):
            if not is_number(value) or not low <= value <= high:
                raise SchemaError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}; {_CLUSTERS_CALL}")
        if self.largest is not None and not (is_number(self.largest) and self.size <= self.largest <= 1e9):
            raise SchemaError(
                f"largest must be the number of units in the largest clusters, at least size={self.size!r}, "
                f"got {self.largest!r}; {_CLUSTERS_CALL}"
            )
        whole = isinstance(self.count, int) and not isinstance(self.count, bool)
        if self.count is not None and (not whole or not 2 <= self.count <= 1 << 30):
            raise SchemaError(
                f"count must be the public number of clusters, at least 2, or None, got {self.count!r}; {_CLUSTERS_CALL}"
            )

    def __repr__(self) -> str:
        facts = [repr(self.column), f"size={self.size!r}"]
        facts += [f"icc={self.icc!r}"] if self.icc != 0.3 else []
        facts += [f"count={self.count!r}"] if self.count is not None else []
        facts += [f"largest={self.largest!r}"] if self.largest is not None else []
        return f"Clusters({', '.join(facts)})"

    @property
    def most(self) -> float:
        """The number of units in the largest clusters that the limit of a cluster's sum is made for."""
        return float(_LARGEST * self.size if self.largest is None else self.largest)

    @property
    def spread(self) -> float:
        """About how large the sum of the largest clusters is, beside one member's: sqrt(S (1 + (S - 1) icc))."""
        return self._of(self.most)

    @property
    def usual(self) -> float:
        """The same of a cluster of the mean size."""
        return self._of(self.size)

    def _of(self, size: float) -> float:
        return float((size * (1 + (size - 1) * self.icc)) ** 0.5)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form.

        >>> Clusters("school", size=30).to_dict()["size"]
        '0x1.e000000000000p+4'
        """
        numbers = {"size": float(self.size).hex(), "icc": float(self.icc).hex()}
        largest = None if self.largest is None else float(self.largest).hex()
        return {"column": self.column, **numbers, "count": self.count, "largest": largest}


def clusters_from_settings(settings: Mapping[Any, Any]) -> Clusters:
    """Clusters from the entries of their table; `SchemaError` for one that is unknown or wrong.

    >>> clusters_from_settings({"column": "school", "size": 30})
    Clusters('school', size=30)
    """
    missing = [name for name in ("column", "size") if name not in settings]
    own = entries(
        settings,
        of="a table of clusters",
        known=("column", "size", "icc", "count", "largest"),
        call=_CLUSTERS_CALL,
        numbers={"size": True, "icc": False, "largest": True},
    )
    if missing:
        raise SchemaError(f"clusters need {' and '.join(missing)}; {_CLUSTERS_CALL}")
    return Clusters(**own)
