"""Text that a terminal, a plot and a page can show as it is."""

from __future__ import annotations

__all__ = ["clean"]


def clean(text: str) -> str:
    r"""Text on one line that a terminal, a plot and a page show as it is; what does not print becomes an escape.

    Names come from files that others wrote: control characters could repaint a terminal or turn a line around.

    >>> clean("age\n\x1b[2J")
    'age\\n\\x1b[2J'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
