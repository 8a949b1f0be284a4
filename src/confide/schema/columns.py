"""The columns of a schema: bounds, grid, levels, the rule for missing values, and where these facts come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from confide.errors import SchemaError
from confide.schema.categorical import Categorical
from confide.schema.grid import MAX_STEPS, MISSING, Grid, works
from confide.schema.provenance import Provenance
from confide.schema.typical import Typical

__all__ = [
    "MAX_STEPS",
    "MISSING",
    "Categorical",
    "Column",
    "Integer",
    "Numeric",
    "Provenance",
    "Typical",
    "column_from_dict",
]

# Above 2^53 neighbouring integers are no longer all doubles.
_EXACT = 2**53


@dataclass(frozen=True)
class Numeric(Grid):
    """A column of real numbers with public bounds, coded on an even grid of `steps` points from `low` to `high`.

    Values outside the bounds count as the nearest bound. `on_missing` is "drop" (the record), "midpoint", or a number
    within the bounds. `typical=(5e3, 9e4)`: about 95 % of the values lie there, from public knowledge; it makes forecasts sharper and
    touches no record (`Typical`). Raises `SchemaError` unless low < high, both at most 1e300 in size, 2 <= steps <= 2^22, and a typical
    spread lies within the bounds.

    >>> column = Numeric(0, 1, steps=11, on_missing=0.2)
    >>> column.code([0.31, -4, 7, float("nan")]).tolist(), column.decode([10]).tolist(), column.scale
    ([3.0, 0.0, 10.0, 2.0], [1.0], 10.0)
    """

    kind: ClassVar[str] = "numeric"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Numeric:
        """The inverse of `to_dict`, to the bit; `SchemaError` when it is damaged.

        >>> column = Numeric(0.1, 0.7, on_missing=0.3)
        >>> Numeric.from_dict(column.to_dict()) == column
        True
        """
        low, high, facts = _grid_facts(data)
        column = cls(low, high, steps=data["steps"], **facts)
        column.check_scale(data)
        return column


@dataclass(frozen=True)
class Integer(Grid):
    """A column of whole numbers with public bounds; its grid is the integers from `low` to `high`, both included.

    Values that are not whole are rounded (a half to the even code, counted from `low`); at most 2^22 different values.
    `on_missing` and `typical` as for `Numeric`. Raises `SchemaError` for bounds that are not whole or too far apart.

    >>> Integer(0, 5).code([2.0, 2.7, 9, float("inf")]).tolist(), Integer(0, 5).steps
    ([2.0, 3.0, 5.0, -1.0], 6)
    """

    steps: int = field(default=0, init=False)

    kind: ClassVar[str] = "integer"

    def _checked_steps(self) -> int:
        for name, bound in (("low", self.low), ("high", self.high)):
            if not bound.is_integer() or abs(bound) > _EXACT:
                real = f", or cf.Numeric({self.low!r}, {self.high!r}) for real numbers"
                raise SchemaError(
                    f"Integer: {name} must be a whole number of at most 2^53 in size, got {bound!r}; write {self._example}"
                    + (real if works(Numeric, self.low, self.high) else "")
                )
        steps = int(self.high) - int(self.low) + 1
        if steps > MAX_STEPS:
            raise SchemaError(
                f"Integer: high - low + 1 must be at most {MAX_STEPS}, got low={self.low:.0f}, high={self.high:.0f}; "
                f"write cf.Numeric({self.low:.0f}, {self.high:.0f}), whose grid is coarser than the integers"
            )
        return steps

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Integer:
        """The inverse of `to_dict`; `SchemaError` when it is damaged.

        >>> Integer.from_dict(Integer(0, 5).to_dict()) == Integer(0, 5)
        True
        """
        low, high, facts = _grid_facts(data)
        column = cls(low, high, **facts)
        column.check_scale(data)
        return column


Column: TypeAlias = Numeric | Integer | Categorical


def column_from_dict(data: Any) -> Column:
    """The column that a dictionary of `to_dict` describes; `SchemaError` for an unknown kind or a missing entry.

    >>> column_from_dict(Integer(0, 3).to_dict()).steps
    4
    """
    kinds: dict[str, type[Numeric] | type[Integer] | type[Categorical]] = {
        "numeric": Numeric,
        "integer": Integer,
        "categorical": Categorical,
    }
    kind = data.get("kind") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise SchemaError(
            f"the kind of a column must be one of {', '.join(kinds)}, got {kind!r}; write it with to_dict()"
        )
    try:
        return kinds[kind].from_dict(data)
    except KeyError as error:
        raise SchemaError(
            f"the description of a {kind} column lacks the entry {error}; write it anew with to_dict()"
        ) from None


def _grid_facts(data: Mapping[str, Any]) -> tuple[float, float, dict[str, Any]]:
    """low, high, and what `Numeric` and `Integer` take by name."""
    rule = data["on_missing"]
    try:
        low, high = float.fromhex(data["low"]), float.fromhex(data["high"])
        rule = rule if rule in ("drop", "midpoint") else float.fromhex(rule)
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(
            "low, high and a constant for on_missing must be floats in hexadecimal; write the column with to_dict()"
        ) from None
    typical = Typical.from_dict(data["typical"]) if "typical" in data else None
    return low, high, {"on_missing": rule, "provenance": Provenance.from_dict(data["provenance"]), "typical": typical}
