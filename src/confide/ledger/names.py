"""When two names mean the same thing: the one rule for datasets and units.

Source: Unicode 15, DerivedCoreProperties.txt (Default_Ignorable_Code_Point). Letters that look alike (a Latin and a
Cyrillic a) are different names.
"""

from __future__ import annotations

import unicodedata

# Code points that are not drawn, first and last of each range: no two names differ by them alone.
_IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
# Letters that are drawn as nothing: printable, and not white space by any property.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_MOST = 200


def folded(name: str) -> str:
    """A name as it is compared: without what is not drawn, Unicode NFKC, case folded, trimmed.

    >>> folded("  Ｓurvey ") == folded("SURVEY") == folded("sur\\u034fvey") == "survey"
    True
    """
    if name.isascii():  # nothing to drop, and its own normal form
        return name.lower().strip()
    # what is dropped can be between letters that join; folding can undo the normal form, so that it is taken again
    seen = "".join(char for char in name if not any(low <= ord(char) <= high for low, high in _IGNORABLE))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold()).strip()


def named(name: object) -> bool:
    """Whether this is a name: 1 to 200 printable characters, none a blank filler, and not the "?" that is to be filled in.

    >>> named("survey"), named("?"), named("survey\\u3164")
    (True, False, False)
    """
    if not isinstance(name, str) or len(name) > _MOST or not name.isprintable():
        return False
    return folded(name) not in {"", "?"} and not _BLANK.intersection(name)


def same_name(one: str, other: str) -> bool:
    """Whether two names mean the same dataset, or the same unit.

    >>> same_name("Survey", "survey "), same_name("survey", "survey 2")
    (True, False)
    """
    return folded(one) == folded(other)
