"""States of statistics as JSON: what alone comes back from workers.

A state is made of integers: arrays of them, in tuples, in the fields of dataclasses or by keys (`protocol.keyed`). It is read into the
shape of the statistic's own zero, so that what arrives chooses no types and no sizes of parts, and no code is unpickled on the way back. A
state that holds anything else, such as the records that a method of order statistics or likelihoods collects, is refused before a release
is charged.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from confide.errors import SourceError
from confide.protocol import Statistic
from confide.protocol.units.keyed import Keyed

__all__ = ["check_states", "state_from_plain", "state_to_plain"]

_DOUBT = "a worker sent what is no state of this statistic"


def state_to_plain(state: Any) -> Any:
    """A state as lists, mappings and whole numbers; the same text for the same state, whatever was met first.

    >>> state_to_plain((np.array([[1, 2]]), 3))
    [[[1, 2]], 3]
    """
    if isinstance(state, np.ndarray) and state.dtype.kind in "iu":
        return state.tolist()
    if isinstance(state, np.ndarray) and state.dtype == object and all(isinstance(one, int) for one in state.flat):
        return state.tolist()
    if isinstance(state, Keyed):
        return [[int(key), state_to_plain(part)] for key, part in sorted(state.items())]
    if isinstance(state, tuple):
        return [state_to_plain(one) for one in state]
    if is_dataclass(state) and not isinstance(state, type):
        return {field.name: state_to_plain(getattr(state, field.name)) for field in fields(state)}
    if isinstance(state, (int, np.integer)) and not isinstance(state, bool):
        return int(state)
    raise TypeError("a state that leaves a worker is made of whole numbers")


def state_from_plain(zero: Any, data: Any) -> Any:
    """The state in the shape of the zero of its statistic. Raises `SourceError` for anything else.

    >>> state_from_plain((np.zeros((1, 2), int), 0), [[[1, 2]], 3])
    (array([[1, 2]]), 3)
    """
    if isinstance(zero, np.ndarray):
        return _array(zero, data)
    if isinstance(zero, Keyed):
        return _keyed(zero, data)
    if isinstance(zero, tuple) and isinstance(data, list) and len(data) == len(zero):
        return tuple(state_from_plain(own, one) for own, one in zip(zero, data, strict=True))
    if is_dataclass(zero) and not isinstance(zero, type) and isinstance(data, dict):
        names = [field.name for field in fields(zero)]
        if sorted(data) == sorted(names):
            return replace(zero, **{name: state_from_plain(getattr(zero, name), data[name]) for name in names})
    if isinstance(zero, (int, np.integer)) and isinstance(data, int) and not isinstance(data, bool):
        return data
    raise SourceError(_DOUBT)


def _keyed(zero: Keyed, data: Any) -> Keyed:
    pairs = isinstance(data, list) and all(isinstance(one, list) and len(one) == 2 for one in data)
    if not pairs or any(type(key) is not int for key, _ in data) or len({key for key, _ in data}) < len(data):
        raise SourceError(_DOUBT)
    found = Keyed(zero.zero)
    for key, part in data:
        found[key] = state_from_plain(zero.zero(), part)
    return found


def _array(zero: Any, data: Any) -> Any:
    found = np.array(data, dtype=object)
    if found.shape != zero.shape or not all(type(one) is int for one in found.flat):
        raise SourceError(_DOUBT)
    if zero.dtype == object:
        return found
    limits = np.iinfo(zero.dtype)
    if found.size and not limits.min <= min(found.flat) <= max(found.flat) <= limits.max:
        raise SourceError(_DOUBT)
    return found.astype(zero.dtype)


def check_states(statistics: Any, where: str) -> None:
    """Raise `SourceError` for statistics whose states are no integers; public facts alone are looked at."""
    for statistic in statistics:
        if not _is_whole(statistic):
            raise SourceError(
                f"this method looks at the records themselves, not at sums, and {where} sends sums alone; read the records here: "
                "cf.read(data, schema) without executor="
            )


def _is_whole(statistic: Statistic) -> bool:
    try:
        state_to_plain(statistic.zero())
    except TypeError:
        return False
    return True
