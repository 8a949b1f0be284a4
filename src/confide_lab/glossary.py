"""Two pages made from the package's glossary: `python -m confide_lab.glossary` writes them to `docs/reference`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from confide._helpers import terms

__all__ = ["PAGES", "main", "page"]

_WORDS_HEAD = """\
# Glossary

Look up a word, a column head or an option, and read what it means and how other texts call it.
For readers of results, analysts and stewards.
You need nothing first. Words that judge a result: [statuses and flags](statuses-and-flags.md).
"""
_FLAGS_HEAD = """\
# Statuses and flags

Look up a status or a flag of a result, and read what it means and what to do about it.
For readers of results and analysts.
You need a result; other words of it are in the [glossary](glossary.md).
"""
_NOTE = """
<!-- Made from src/confide/glossary.toml by `python -m confide_lab.glossary`: edit that file, and not this one. -->
"""

Entry = Mapping[str, Any]


def _own(entry: Entry) -> str:
    """The name of a status, a flag or a severity, as frames and files have it."""
    return str(entry["id"]).removeprefix(f"{entry['kind']}_").removesuffix("_")


def _printed(entry: Entry) -> str:
    return str(entry.get("head", ""))


_MEANING: tuple[str, Callable[[Entry], str]] = ("Meaning", lambda one: one["definition"])
_TERM: tuple[str, Callable[[Entry], str]] = ("Term", lambda one: f"**{one['term']}**")
_SEVERITY: tuple[str, Callable[[Entry], str]] = ("Severity", lambda one: one["severity"])
_DO: tuple[str, Callable[[Entry], str]] = ("What to do", lambda one: one.get("do", ""))
_WORDS = (_TERM, ("Printed as", _printed), _MEANING, ("Source", lambda one: one.get("reference", "")))
#: Title, kinds of entries, and columns of each table of the page.
_TABLES: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, Callable[[Entry], str]], ...]], ...] = (
    ("Statuses of a result", ("status",), (("Status", lambda one: f"`{_own(one)}`"), _SEVERITY, _MEANING, _DO)),
    ("Flags of a result", ("flag",), (("Flag", lambda one: f"`{_own(one)}`"), _SEVERITY, _MEANING, _DO)),
    ("Severities", ("severity",), (_TERM, _MEANING)),
    (
        "Columns of tables and frames",
        ("column",),
        (("Printed head", _printed), ("Column", lambda one: f"`{one['column']}`"), _TERM, _MEANING),
    ),
    ("Data, analyses and budget", ("concept", "file"), _WORDS),
    ("Privacy guarantees", ("guarantee",), _WORDS),
    ("Options and names in code", ("option", "api"), (("Name", lambda one: f"`{one['term']}`"), _MEANING)),
)

#: The head of each page, and the titles of its tables.
_JUDGING = ("Statuses of a result", "Flags of a result", "Severities")
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "statuses-and-flags": (_FLAGS_HEAD, _JUDGING),
    "glossary": (_WORDS_HEAD, tuple(title for title, _, _ in _TABLES if title not in _JUDGING)),
}


def page(entries: Iterable[Entry], name: str) -> str:
    """The page of this name in `PAGES`, a table for each kind of entry that it has.

    >>> flag = {"id": "flag_thin", "kind": "flag", "severity": "caution", "definition": "Few records.", "do": "Wait."}
    >>> print(page([flag], "statuses-and-flags").splitlines()[-1])
    | `thin` | caution | Few records. | Wait. |
    """
    known, (head, titles) = list(entries), PAGES[name]
    parts = [head + _NOTE]
    for title, kinds, columns in _TABLES:
        if title not in titles:
            continue
        own = [entry for entry in known if entry["kind"] in kinds]
        if kinds[0] not in ("status", "severity"):  # those go from good to bad
            own.sort(key=lambda one: str(one.get("term", "")).lower().strip("-["))
        rows = [[cell(entry).replace("|", "\\|") for _, cell in columns] for entry in own]
        lines = [[head for head, _ in columns], ["---"] * len(columns), *rows]
        if rows:
            parts.append("\n".join([f"## {title}\n", *(f"| {' | '.join(line)} |" for line in lines)]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the pages of this checkout."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/reference")
    for name in PAGES:
        (folder / f"{name}.md").write_text(page(terms().values(), name), encoding="utf-8")


if __name__ == "__main__":
    main()
