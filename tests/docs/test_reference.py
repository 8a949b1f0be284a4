"""Reference pages are what the code says now, and every public name and every command is on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import confide as cf
from confide.cli.registry import OURS
from confide_lab import reference

FOLDER = Path(__file__).resolve().parents[2] / "docs/reference"


@pytest.mark.parametrize(("name", "page"), reference.PAGES.items())
def test_a_page_is_what_the_code_says(name: str, page: Callable[[], str]) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == page(), "run python -m confide_lab.reference"


def test_every_public_name_and_command_is_there() -> None:
    page = reference.python()
    calls = [name for name in cf.__all__ if callable(getattr(cf, name))]
    assert len(calls) > 30 and [name for name in calls if f"### cf.{name}\n" not in page] == []
    assert [name for name in cf.tables.__all__ if f"### cf.tables.{name}\n" not in page] == []
    commands = reference.command_line()
    assert [name for name in OURS if f"## confide {name}" not in commands] == []
    assert "| 6 | failed after the charge, which stays | `ReleaseError` |" in commands


@pytest.mark.parametrize("name", [name for own in reference.names().values() for name in own])
def test_a_name_is_expanded_to_all_that_its_docstring_says(name: str) -> None:
    text = reference.expanded(f"::: {name}\n")
    assert ":::" not in text and "\n---" not in text
    for parameter, (_, words) in reference.documented(name).items():
        assert parameter in text
        assert words in text, parameter


def test_tables_means_shows_its_signature_what_it_returns_and_raises() -> None:
    text = reference.expanded("::: confide.tables.means\n")
    assert text.startswith("```py\ncf.tables.means(formula, data, *, privacy, ledger, ")
    assert "**Returns**\n\n- `Result`: " in text and "**Raises**\n\n- `BudgetExceeded`: " in text
