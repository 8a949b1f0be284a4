"""Groups that the noisy counts do not tell from empty: a test leaves them out, its title names them, and it is of the others.

Counts decide, and no value: a declared level without records, or with too few for any budget, costs a test of the others nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["LOST", "left_out", "too_few", "without"]


#: Standard deviations of the noise of its number of records above which a group is told from empty.
LOST = 3.0


def without(lost: Sequence[str]) -> str:
    """What the title of a test adds.

    >>> without(["region=W"]), without([])
    (', without region=W', '')
    """
    return f", without {', '.join(lost)}" if lost else ""


def left_out(lost: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The line above the table that says why."""
    said = f"{', '.join(lost)}: the number of records is below three standard deviations of its privacy noise"
    return (("Left out", said),) if lost else ()


def too_few(lost: Sequence[str]) -> str:
    """Why there is no test: fewer than two groups are left."""
    named = ", ".join(lost) if lost else "the records"
    return (
        f"the noisy counts do not tell from empty: {named}; what is left is nothing to compare, so ask about groups that have records, or "
        "for a larger budget where these have some"
    )
