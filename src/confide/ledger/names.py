"""When two names mean the same thing: the one rule for data sets and units, in the ledger and at the gate."""

from __future__ import annotations

import unicodedata

__all__ = ["folded", "same_name"]


def folded(name: str) -> str:
    """A name as it is compared: Unicode NFKC, case folded, trimmed.

    >>> folded("  Ｓurvey ") == folded("SURVEY") == "survey"
    True
    """
    # folding can undo the normal form, so that it is taken again
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def same_name(one: str, other: str) -> bool:
    """Whether two names mean the same data set, or the same unit.

    >>> same_name("Survey", "survey "), same_name("survey", "survey 2")
    (True, False)
    """
    return folded(one) == folded(other)
