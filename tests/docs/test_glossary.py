"""The glossary is where statuses and flags have their names and severities: code raises none that it does not have."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import confide
from confide._helpers import is_flag, status_severity, terms
from confide.core import STATUSES
from confide_lab import glossary

FILES = sorted(Path(confide.__file__).parent.rglob("*.py"))
#: Tables of flags that several families raise, by the names of their constants.
TABLES = ("_FLAGS", "_FLAG_WORDS")


def raised(tree: ast.Module) -> set[str]:
    """Flags that a file makes, and those that its tables explain."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Flag"), args=[ast.Constant(value=str(name)), *_]):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys)) if name in TABLES:
                found |= {key.value for key in keys if isinstance(key, ast.Constant)}
    return found


def test_every_status_has_a_severity() -> None:
    assert {status for status in STATUSES if status_severity(status) == "good"} == {"valid"}
    kinds = {id.removeprefix("status_") for id, entry in terms().items() if entry["kind"] == "status"}
    assert set(STATUSES) <= kinds


def test_every_flag_that_code_raises_is_in_the_glossary() -> None:
    found = {flag for path in FILES for flag in raised(ast.parse(path.read_text()))}
    assert len(found) > 10
    assert {flag for flag in found if not is_flag(flag)} == set()


def test_every_flag_in_the_glossary_is_in_the_code() -> None:
    code = "\n".join(path.read_text() for path in FILES)
    flags = {id.removeprefix("flag_") for id, entry in terms().items() if entry["kind"] == "flag"}
    assert {flag for flag in flags if not re.search(rf"\b{flag}\b", code)} == set()


def test_a_flag_that_is_not_there_would_be_seen() -> None:
    assert raised(ast.parse('Flag("an_own_one", "words")')) == {"an_own_one"}
    assert not is_flag("an_own_one")


def test_every_entry_says_what_it_is() -> None:
    for name, entry in terms().items():
        assert entry["definition"].rstrip().endswith((".", ")")), name
        if entry["kind"] in ("flag", "status"):
            assert entry["severity"] in ("good", "note", "caution", "alarm"), name
            weighed = entry["severity"] in ("caution", "alarm")
            assert ("do" in entry) == weighed and entry.get("do", ".").endswith("."), (
                f"{name}: say what a reader can do"
            )


@pytest.mark.parametrize("name", glossary.PAGES)
def test_the_pages_are_made_from_the_glossary(name: str) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/reference" / f"{name}.md"
    assert page.read_text(encoding="utf-8") == glossary.page(terms().values(), name), (
        "run python -m confide_lab.glossary"
    )


def test_every_kind_of_entry_is_on_one_page() -> None:
    pages = [glossary.page(terms().values(), name) for name in glossary.PAGES]
    for title, _, _ in glossary._TABLES:
        assert sum(f"## {title}\n" in page for page in pages) == 1, title
