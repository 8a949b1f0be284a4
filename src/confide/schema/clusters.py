"""Clusters that are not units: schools of pupils, whose members are alike, while a pupil is what a release protects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import SchemaError
from confide.schema.provenance import is_unicode
from confide.schema.settings import entries, is_number

__all__ = ["Clusters", "clusters_from_settings"]

# Clusters of unequal sizes: how far above the mean the largest are taken to be.
_LARGEST = 3
_CALL = 'write cf.Clusters("school", size=30), or cf.Clusters("school", size=30, icc=0.1, count=120)'


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
                f"column must be the name of the clusters' id column in the data, got {self.column!r}; {_CALL}"
            )
        for name, value, low, high in (("size", self.size, 1.0, 1e6), ("icc", self.icc, 0.0, 1.0)):
            if not is_number(value) or not low <= value <= high:
                raise SchemaError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}; {_CALL}")
        if self.largest is not None and not (is_number(self.largest) and self.size <= self.largest <= 1e9):
            raise SchemaError(
                f"largest must be the number of units in the largest clusters, at least size={self.size!r}, "
                f"got {self.largest!r}; {_CALL}"
            )
        whole = isinstance(self.count, int) and not isinstance(self.count, bool)
        if self.count is not None and (not whole or not 2 <= self.count <= 1 << 30):
            raise SchemaError(
                f"count must be the public number of clusters, at least 2, or None, got {self.count!r}; {_CALL}"
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
        call=_CALL,
        numbers={"size": True, "icc": False, "largest": True},
    )
    if missing:
        raise SchemaError(f"clusters need {' and '.join(missing)}; {_CALL}")
    return Clusters(**own)
