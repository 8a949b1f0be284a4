"""Settings of a schema, checked once for all: numbers, and tables of its file that are no column (units, clusters, designs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from confide._text import near_match
from confide.errors import SchemaError

__all__ = ["entries", "is_number"]


def entries(
    settings: Mapping[Any, Any],
    *,
    of: str,
    known: Sequence[str],
    call: str,
    numbers: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """The entries of a table as its class takes them; `SchemaError` for one that is unknown, or no number.

    of: what the table describes, as in "a unit". known: the entries that it may have. call: what to write. numbers: the entries that files
    hold as hexadecimal floats, and whether a whole one is an integer.

    >>> entries({"size": "0x1.ep+4"}, of="a cluster", known=("size",), call="", numbers={"size": True})
    {'size': 30}
    """
    unknown = [entry for entry in settings if entry not in known]
    if unknown:
        raise SchemaError(
            f"{of} has no entry {unknown[0]!r}{near_match(str(unknown[0]), tuple(known))}; allowed are {', '.join(known)}; {call}"
        )
    own = dict(settings)
    for name, whole in (numbers or {}).items():
        if isinstance(own.get(name), str):
            try:
                value = float.fromhex(own[name])
            except (ValueError, OverflowError):
                raise SchemaError(f"{name} of {of} must be a number, got {own[name]!r}; {call}") from None
            own[name] = int(value) if whole and value.is_integer() else value
    return own


def is_number(value: Any) -> bool:
    """Whether a public setting is a finite real number; booleans are not.

    >>> is_number(0.5), is_number(True), is_number("1"), is_number(float("inf"))
    (True, False, False, False)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return False
    try:
        return isfinite(float(value))
    except OverflowError:
        return False
