"""What may be asked is one list: `confide methods`, `help(cf)`, the front page of the guides and the studio show it in its order."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from tests.studio.served import Visitor, served
from typer.testing import CliRunner

import confide as cf
from confide.cli import app
from confide.registry import FAMILIES, list_methods

ROOT = Path(__file__).resolve().parents[2]
WORDS = [one.words for one in FAMILIES]


def test_every_family_of_a_method_of_ours_is_listed_and_methods_follow_the_list() -> None:
    names = [one.name for one in FAMILIES]
    found = [names.index(one.family) for one in list_methods() if one.package == "confide"]
    assert found == sorted(found)
    assert set(names) - {one.family for one in list_methods()} == {
        "local"
    }  # which protects records and releases nothing


def test_confide_methods_prints_them_in_order() -> None:
    printed = CliRunner().invoke(app, ["methods"]).output
    assert re.findall(r"^== (.*) \(", printed, re.MULTILINE) == WORDS


def test_each_is_a_name_of_the_package() -> None:
    assert {one.place for one in FAMILIES} <= set(dir(cf))
    assert all(getattr(cf, one.place) is not None for one in FAMILIES)


def test_help_of_the_package_lists_them_in_order() -> None:
    """Completion after `cf.` has the same names, by the alphabet: Python sorts what `dir` gives."""
    rows = re.findall(r"^    cf\.(\w+) +(.*)$", cf.__doc__ or "", re.MULTILINE)
    assert rows == [(one.place, one.words) for one in FAMILIES]


def test_each_command_is_there() -> None:
    commands = typer.main.get_command(app).commands
    assert {one.command.split()[1] for one in FAMILIES} <= set(commands)


def test_the_front_page_lists_them_in_order() -> None:
    rows = re.findall(r"^\| \*\*(.*?)\*\* \|", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    assert rows == WORDS


def test_the_studio_lists_them_in_order(tmp_path: Path) -> None:
    with served(tmp_path) as studio:
        page = Visitor(studio).open().get("/ask").text
    assert [a or b for a, b in re.findall(r'optgroup label="(.*?)"|<li>(.*?) <span', page)] == WORDS
