"""Where most values of a column lie, from public knowledge: what forecasts are made of, and nothing else.

A typical spread never touches a record. It is in the text forms of a schema, and in no plan, no release and no digest: two schemas that
differ in nothing else read the same records to the same bits, and make the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from confide.errors import SchemaError
from confide.schema.provenance import PUBLIC, Provenance, checked_provenance

__all__ = ["Typical", "typical_of"]

_ENTRIES = ("low", "high", "provenance")


@dataclass(frozen=True)
class Typical:
    """About 95 % of a column's values lie from `low` to `high`, in the column's unit; provenance says from whom the figures come.

    Of a normal distribution these are the mean minus and plus two standard deviations. From public knowledge (a yearbook, an earlier
    survey), never from the records: a plan prints what follows from it.

    >>> from confide.schema import Numeric
    >>> Numeric(0, 1e6, typical=(5e3, 9e4)).typical
    Typical(low=5000.0, high=90000.0, provenance=Provenance(kind='public', text=''))
    >>> Typical(5e3, 9e4, Provenance("public", "yearbook 2023")).provenance.text
    'yearbook 2023'
    """

    low: float
    high: float
    provenance: Provenance = field(default=PUBLIC)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form with floats as `float.hex`.

        >>> Typical(0.5, 1.0).to_dict()["high"]
        '0x1.0000000000000p+0'
        """
        return {"low": self.low.hex(), "high": self.high.hex(), "provenance": self.provenance.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> Typical:
        """The inverse of `to_dict`; `SchemaError` when it is damaged.

        >>> Typical.from_dict(Typical(0.1, 0.7).to_dict()) == Typical(0.1, 0.7)
        True
        """
        try:
            low, high = float.fromhex(data["low"]), float.fromhex(data["high"])
            where = data["provenance"]
        except (TypeError, ValueError, KeyError, OverflowError):
            raise SchemaError(
                "a typical spread has low and high in hexadecimal and a provenance; write the column with to_dict()"
            ) from None
        return cls(low, high, Provenance.from_dict(where))


def typical_of(owner: str, given: Any, low: float, high: float, example: str) -> Typical | None:
    """What a column was given as `typical`: None, two numbers, a table with low and high, or a `Typical`.

    owner, example: the column's class and a call that makes one, for messages. Raises `SchemaError` unless it lies within the column's
    bounds, low below high.
    """
    if given is None:
        return None
    numbers, where = _read(owner, given, example)
    # bool is a number to Python, and no value of a column
    if any(isinstance(number, bool) or not isinstance(number, Real) for number in numbers):
        raise _refused(owner, f"two numbers of the column, got {given!r}", example)
    least, most = (float(number) + 0.0 for number in numbers)
    if not low <= least < most <= high:
        raise _refused(
            owner,
            f"a low number below a high one, both within the bounds {low:g} and {high:g}, got {least:g} and {most:g}",
            example,
        )
    return Typical(least, most, checked_provenance(f"{owner}: typical", where))


def _read(owner: str, given: Any, example: str) -> tuple[tuple[Any, Any], Any]:
    if isinstance(given, Typical):
        return (given.low, given.high), given.provenance
    if isinstance(given, Mapping) and set(given) <= set(_ENTRIES) and {"low", "high"} <= set(given):
        where = given.get("provenance", PUBLIC)
        return (given["low"], given["high"]), where if isinstance(where, Provenance) else Provenance.from_dict(where)
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return (given[0], given[1]), PUBLIC
    raise _refused(owner, f"two numbers, or a table with low, high and provenance, got {given!r}", example)


def _refused(owner: str, allowed: str, example: str) -> SchemaError:
    return SchemaError(
        f"{owner}: typical must be {allowed}; about 95 % of the values lie between them; {example}, or leave it out"
    )
