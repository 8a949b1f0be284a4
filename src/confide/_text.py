"""Text that a terminal, a plot and a page can show as it is."""

from __future__ import annotations

from confide._lazy import later

__all__ = ["as_html", "clean", "near_match"]

difflib, html = later("difflib"), later("html")


def clean(text: str) -> str:
    r"""Text on one line that a terminal, a plot and a page show as it is; what does not print becomes an escape.

    Names come from files that others wrote: control characters could repaint a terminal or turn a line around.

    >>> clean("age\n\x1b[2J")
    'age\\n\\x1b[2J'
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def as_html(text: str) -> str:
    r"""Lines of text for a notebook, in a typewriter's font and with nothing in them that a page would run.

    >>> as_html("mu < 1\nspent")
    '<pre>mu &lt; 1\nspent</pre>'
    """
    return f"<pre>{html.escape(chr(10).join(map(clean, text.splitlines())))}</pre>"


def near_match(name: str, names: tuple[str, ...]) -> str:
    """Words that point at the most similar of some names, or nothing.

    >>> near_match("agee", ("age", "income"))
    " (did you mean 'age'?)"
    """
    lowered = {known.lower(): known for known in reversed(names)}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return f" (did you mean {lowered[found[0]]!r}?)" if found else ""
