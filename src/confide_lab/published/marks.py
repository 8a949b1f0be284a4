"""What every published algorithm carries: its authors' claim, no guarantee of ours, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

__all__ = ["Published", "published"]


class Published(Protocol):
    """A marked function."""

    claim: str
    guarantee: None
    errata: tuple[str, ...]

    def __call__(self, *args: Any, **settings: Any) -> dict[str, Any]: ...


def published(claim: str, *errata: str) -> Callable[[Callable[..., dict[str, Any]]], Published]:
    """Mark a function with `claim`, `guarantee = None` and `errata`.

    >>> @published("1-GDP", "spends 2")
    ... def twice(x, rng):
    ...     return {"values": [x + rng.normal(), x + rng.normal()]}
    >>> twice.claim, twice.guarantee, twice.errata
    ('1-GDP', None, ('spends 2',))
    """

    def mark(function: Callable[..., dict[str, Any]]) -> Published:
        marked = cast(Any, function)
        marked.claim, marked.guarantee, marked.errata = claim, None, tuple(errata)
        return cast(Published, marked)

    return mark
