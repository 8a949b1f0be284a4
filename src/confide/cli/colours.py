"""Colours for people at a terminal: the same words, painted. A pipe, a file, NO_COLOR and a dumb terminal get none.

Only whole lines of known forms are painted, so that a name from somebody's file cannot choose a colour.
"""

from __future__ import annotations

import os
import re
from typing import Any

__all__ = ["painted", "paints"]

_BOLD, _RED, _GREEN, _YELLOW, _DIM = "1", "1;31", "32", "33", "2"
_GOOD = "ok|released|done"
_CAUTION = "partial|weak|uninformative|not_identified|no_reply|failed|stopped|refused"
#: (pattern, colours of its groups, in order; none where the group stays as it is)
_RULES: tuple[tuple[re.Pattern[str], tuple[str | None, ...]], ...] = (
    (re.compile(r"(\s*)(\*\*\* .+ \*\*\*)"), (None, _RED)),
    (re.compile(r"(!!.+!!|!{20,})"), (_RED,)),
    (re.compile(r"(warning:)(.*)"), (_YELLOW, None)),
    (re.compile(r"(note:)(.*)"), (_DIM, None)),
    (re.compile(r"(error \(\w+\):)(.*)"), (_RED, None)),
    (re.compile(rf"((?:.*\s\s)?Status:\s+)({_GOOD})(\b.*)"), (None, _GREEN, None)),
    (re.compile(rf"((?:.*\s\s)?Status:\s+)({_CAUTION})(\b.*)"), (None, _YELLOW, None)),
    (re.compile(r"(={20,}|-{20,})"), (_DIM,)),
    (re.compile(r"( *)(Private [^\n]+|Plan of [^\n]+|A publication of [^\n]+)"), (None, _BOLD)),
    (re.compile(r"(Guarantee:|Relation:|Estimated:|Intervals:|Noise share:|Release SHA:)(.*)"), (_BOLD, None)),
)


def paints(stream: Any) -> bool:
    """Whether a stream is a terminal that shows colours, for someone who wants them (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"
    return wanted and bool(getattr(stream, "isatty", lambda: False)())


def painted(text: str) -> str:
    r"""Text that was cleaned, with the escapes of colours in it.

    >>> painted("warning: many levels"), painted("Status:   weak: too few")
    ('\x1b[33mwarning:\x1b[0m many levels', 'Status:   \x1b[33mweak\x1b[0m: too few')
    """
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    for pattern, colours in _RULES:
        if found := pattern.fullmatch(line):
            parts = zip(found.groups(), colours, strict=True)
            return "".join(
                part if colour is None or not part else f"\x1b[{colour}m{part}\x1b[0m" for part, colour in parts
            )
    return line
