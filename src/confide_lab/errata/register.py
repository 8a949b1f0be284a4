"""What an erratum's check gives, and where the checks are: paper-label -> a function that measures its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

from confide.errors import PlanError

__all__ = ["Check", "Finding", "names", "rows"]


@dataclass(frozen=True)
class Finding:
    """One number. what; claimed: by the paper, as text; found: here; low, high: where the page's number is, to its last digit."""

    what: str
    claimed: str
    found: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the page's number is found."""
        return self.low <= self.found <= self.high


def near(what: str, claimed: str, found: float, value: float, share: float = 0.01) -> Finding:
    """A number that the page has as `value`, within a share of it.

    >>> near("a", "b", 1.005, 1.0).holds, near("a", "b", 1.02, 1.0).holds
    (True, False)
    """
    return Finding(what, claimed, float(found), value - share * abs(value), value + share * abs(value))


#: The numbers of one erratum.
Check = Callable[[], list[Finding]]
_MODULES = ("binagg", "eptr", "generalized_ptr", "generalized_ptr_proofs", "practice", "precise", "zil")


@lru_cache(maxsize=1)
def _all() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for module in _MODULES:
        found |= import_module(f"confide_lab.errata.{module}").CHECKS
    return found


def names() -> tuple[str, ...]:
    """Every erratum that prints its numbers.

    >>> "gptr-e7" in names()
    True
    """
    return tuple(_all())


def rows(name: str) -> list[Finding]:
    """The numbers of one erratum, measured now; `PlanError` for a name that there is not."""
    checks = _all()
    if name not in checks:
        raise PlanError(f"there is no erratum {name!r}; there are {', '.join(checks)}")
    return checks[name]()
