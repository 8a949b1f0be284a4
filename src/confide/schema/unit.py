"""Whom a release protects: the privacy unit, read from an id column, and how many of its rows count.

An id column does not belong to the schema's columns: no formula, message, release or file of test data can hold its
values.

`Clusters` are groups that are not units. A school, for example, has pupils who are alike, while a pupil is what a
release protects.
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
    """Privacy unit: all rows of one value of an id column, enforced by confide.

    7, 7.0 and "7" are one unit. Text is neither trimmed nor folded, and a row
    without an id is dropped. Two persons under one id are one unit; one person
    under two ids is two.

    Parameters
    ----------
    column : str
        Name of the id column in the data, which is not a column of the schema.
        It holds whole numbers, text, binary or dates.
    rows : int, default 1
        Contribution bound: how many rows' worth of one unit counts, from 1 to
        65,536. Public.
    rule : {"keep", "weight"}, optional
        Which rows count. "keep" takes at most `rows` rows of a unit, chosen by
        a key and the rows' own content. The rule "weight" takes all of its m
        rows, each with weight min(1, rows/m), for sums. Left out: "weight" if
        the method can use it, else "keep".
    per : str, optional
        Categorical column, such as a year. A unit then counts once in each
        level, by one row of each. Tables crossed with that column count persons
        of each year, with the noise of sqrt(groups) rows.
    groups : int, optional
        Most levels of `per` in which a unit counts, chosen by a key. Left out:
        all levels.

    Raises
    ------
    SchemaError
        The column is not a name, rows are out of range, the rule is unknown, or
        parameters do not go together.

    Examples
    --------
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
            raise SchemaError(f"column must be the name of the id column in the data, got {self.column!r}", f"{_CALL}")
        if self.column == "record":
            raise SchemaError(
                'a unit "record" is a single row and has no id column', 'write cf.Schema(..., unit="record")'
            )
        whole = isinstance(self.rows, int) and not isinstance(self.rows, bool)
        if not whole or not 1 <= self.rows <= MOST:
            raise SchemaError(
                f"rows must be a whole number from 1 to {MOST}, the rows' worth that one unit counts, got {self.rows!r}",
                f"{_CALL}",
            )
        if self.rule is not None and self.rule not in RULES:
            raise SchemaError(f'rule must be "keep", "weight" or None, got {self.rule!r}', f"{_CALL}")
        self._check_per()

    def _check_per(self) -> None:
        call = f'write cf.Unit({self.column!r}, per="year", groups=10)'
        if self.per is None:
            if self.groups is not None:
                raise SchemaError(f"groups={self.groups!r} says how many levels of per one unit counts in", f"{call}")
            return
        if not isinstance(self.per, str) or not self.per:
            raise SchemaError(f"per must be the name of a column of the schema, got {self.per!r}", f"{call}")
        object.__setattr__(self, "per", bare(self.per))
        whole = isinstance(self.groups, int) and not isinstance(self.groups, bool)
        if self.groups is not None and (not whole or not 1 <= self.groups <= MOST):
            raise SchemaError(
                f"groups must be a whole number from 1 to {MOST}, or None, got {self.groups!r}", f"{call}"
            )
        if self.rows != 1 or self.rule == "weight":
            raise SchemaError(
                f"one row of each {self.column} and {self.per} is kept, got rows={self.rows}, rule={self.rule!r}",
                f"leave both out: {call}",
            )

    def __repr__(self) -> str:
        facts = [repr(self.column)]
        facts += [f"rows={self.rows}"] if self.rows != 1 else []
        facts += [f"rule={self.rule!r}"] if self.rule is not None else []
        facts += [f"per={self.per!r}"] if self.per is not None else []
        facts += [f"groups={self.groups}"] if self.groups is not None else []
        return f"Unit({', '.join(facts)})"

    def to_dict(self) -> dict[str, Any]:
        """Give the unit as JSON types.

        Returns
        -------
        dict
            What a schema's file holds.

        Examples
        --------
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
        raise SchemaError("a unit needs the name of its id column", 'write unit = { column = "person_id" }')
    return Unit(**own)


# Clusters of unequal sizes: how far above the mean the largest are taken to be.
_LARGEST = 3
_CLUSTERS_CALL = 'write cf.Clusters("school", size=30), or cf.Clusters("school", size=30, icc=0.1, count=120)'


@dataclass(frozen=True)
class Clusters:
    """Groups of units that intervals treat as independent, such as schools.

    Members of a cluster may be alike. A unit is in one cluster: of those that
    its rows name, the one with the smallest hash; its other rows are dropped.

    Parameters
    ----------
    column : str
        Name of the id column in the data, which is not a column of the schema.
        Its values are read like those of a `Unit`, and a record without one is
        dropped.
    size : float
        Mean number of units in a cluster, at least 1. Public.
    icc : float, default 0.3
        How alike members are, from 0 to 1 (intraclass correlation).
    count : int, optional
        Number of clusters, at least 2, where it is public. Left out: the DP
        number of units over `size`.
    largest : float, optional
        Number of units in the largest clusters. Left out: three times `size`.

    Raises
    ------
    SchemaError
        The column is not a name, or a number is outside its range.

    Notes
    -----
    `largest` and `icc` decide the threshold at which the sum of a cluster is
    clipped. If they are too large, intervals are wide. Sums beyond the
    threshold are clipped, and the bias is corrected if it exceeds the noise.
    Plans and results print both numbers.

    Examples
    --------
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
                f"column must be the name of the clusters' id column in the data, got {self.column!r}",
                f"{_CLUSTERS_CALL}",
            )
        for name, value, low, high in (("size", self.size, 1.0, 1e6), ("icc", self.icc, 0.0, 1.0)):
            if not is_number(value) or not low <= value <= high:
                raise SchemaError(
                    f"{name} must be a number from {low:g} to {high:g}, got {value!r}", f"{_CLUSTERS_CALL}"
                )
        if self.largest is not None and not (is_number(self.largest) and self.size <= self.largest <= 1e9):
            raise SchemaError(
                f"largest must be the number of units in the largest clusters, at least size={self.size!r}, "
                f"got {self.largest!r}",
                f"{_CLUSTERS_CALL}",
            )
        whole = isinstance(self.count, int) and not isinstance(self.count, bool)
        if self.count is not None and (not whole or not 2 <= self.count <= 1 << 30):
            raise SchemaError(
                f"count must be the public number of clusters, at least 2, or None, got {self.count!r}",
                f"{_CLUSTERS_CALL}",
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
        """Give the clusters as JSON types.

        Returns
        -------
        dict
            What a schema's file holds.

        Examples
        --------
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
        raise SchemaError(f"clusters need {' and '.join(missing)}", f"{_CLUSTERS_CALL}")
    return Clusters(**own)
