"""Files import each other in one direction: no cycle, whether an import stands at the top, in a function, or for type checkers alone."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import confide

ROOT = Path(confide.__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("confide", "confide_lab")
    for path in (ROOT / package).rglob("*.py")
}


def imported(text: str, known: set[str]) -> set[str]:
    """The modules among `known` that a file names in any of its imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            parts = {f"{node.module}.{name.name}" for name in node.names}
            found |= parts & known or {node.module}
    return found & known


@cache
def imports() -> dict[str, set[str]]:
    """What each file imports of the others: all of them are read once."""
    known = set(FILES)
    return {name: imported(path.read_text(), known) for name, path in FILES.items()}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle of a graph, from a node back to it; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_file_is_imported_by_what_it_imports() -> None:
    assert cycle({name: others - {name} for name, others in imports().items()}) == []


@pytest.mark.parametrize(
    "written",
    [
        "from confide.b import x",
        "import confide.b",
        "def f():\n    from confide.b import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from confide import b",
    ],
)
def test_an_import_of_any_kind_closes_a_cycle(written: str) -> None:
    known = {"confide.a", "confide.b"}
    graph = {"confide.a": imported(written, known), "confide.b": imported("from confide.a import y", known)}
    assert set(cycle(graph)) == known


#: The families that could be deleted: folder, entry points, line of `confide`, file of `ask`, tests and page.
OTHERS = ("ptr", "voting", "intervals", "synthesis", "selection", "reduction", "classification", "curves", "local")
#: What knows one of them all the same, and why. Only for what could not be asked of a class.
KNOWN = {
    ("sklearn.base", "classification"),  # adapters to scikit-learn are written for their methods
    ("sklearn.classifier", "classification"),
    ("sklearn.classifier", "voting"),
    ("sklearn.transformer", "reduction"),
    ("audit.searches.safety", "ptr"),  # the attack on a safety bound
    ("cli.commands.publish", "synthesis"),  # commands that write files of their own
    ("cli.commands.local", "local"),
    ("methods.voting.plurality", "ptr"),  # teachers' votes are released by propose-test-release
    ("methods.voting.rules", "ptr"),
    ("methods.voting.teacher_budgets", "ptr"),
    ("methods.voting.teacher_labels", "ptr"),
}


def test_a_family_that_could_be_deleted_is_known_to_nobody_else() -> None:
    found = set()
    for name, others in imports().items():
        own = name.removeprefix("confide.")
        if name.startswith("confide_lab") or own.startswith("ask."):
            continue
        for other in OTHERS:
            place = "confide.local" if other == "local" else f"confide.methods.{other}"
            if not f"{name}.".startswith(f"{place}.") and any(f"{one}.".startswith(f"{place}.") for one in others):
                found.add((own, other))
    assert found == KNOWN
