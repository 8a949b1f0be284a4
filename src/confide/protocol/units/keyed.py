"""States of one part for each whole number that was met, such as the number of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Keyed"]


class Keyed(dict[int, Any]):
    """Parts of a state by key. zero: makes the part of a key that was not met before, and says which shape every part has.

    >>> state = Keyed(lambda: 0)
    >>> state[7] += 2
    >>> state
    {7: 2}
    """

    def __init__(self, zero: Callable[[], Any]) -> None:
        super().__init__()
        self.zero = zero

    def __missing__(self, key: int) -> Any:
        return self.setdefault(key, self.zero())
