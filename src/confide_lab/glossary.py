"""The page `docs/glossary.md`, made from the package's glossary: `python -m confide_lab.glossary` writes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from confide._helpers import terms

__all__ = ["main", "page"]

_HEAD = """\
# Glossary

Look up a word, a column head, a status or a flag that confide prints, and see what to do about it. The page is for readers of results,
analysts and stewards, and needs no other page.

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


def page(entries: Iterable[Entry]) -> str:
    """The page of these entries, a table for each kind.

    >>> flag = {"id": "flag_thin", "kind": "flag", "severity": "caution", "definition": "Few records.", "do": "Wait."}
    >>> print(page([flag]).splitlines()[-1])
    | `thin` | caution | Few records. | Wait. |
    """
    known = list(entries)
    parts = [_HEAD]
    for title, kinds, columns in _TABLES:
        own = [entry for entry in known if entry["kind"] in kinds]
        if kinds[0] not in ("status", "severity"):  # those go from good to bad
            own.sort(key=lambda one: str(one.get("term", "")).lower().strip("-["))
        rows = [[cell(entry).replace("|", "\\|") for _, cell in columns] for entry in own]
        lines = [[head for head, _ in columns], ["---"] * len(columns), *rows]
        if rows:
            parts.append("\n".join([f"## {title}\n", *(f"| {' | '.join(line)} |" for line in lines)]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page of this checkout."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/glossary.md")
    place.write_text(page(terms().values()), encoding="utf-8")


if __name__ == "__main__":
    main()
