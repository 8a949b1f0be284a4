"""Marks of `tests/few.py`: which cases run with the long tests, and a case that is no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.few import pytest_itemcollected, unknown


class _Item:
    """A collected case of a test that is marked so."""

    def __init__(self, case: str, *marks: Any) -> None:
        self.nodeid, self.callspec = f"tests/test_a.py::test_b[{case}]", SimpleNamespace(id=case)
        self.marks = {one.name: one for one in marks}
        self.added: list[str] = []

    def get_closest_marker(self, name: str) -> Any:
        return self.marks.get(name)

    def add_marker(self, name: str) -> None:
        self.added.append(name)


def test_cases_that_are_not_named_are_long() -> None:
    mark = pytest.mark.few("one", "two").mark
    items: list[Any] = [_Item("one", mark), _Item("two", mark), _Item("three", mark), _Item("three")]
    for item in items:
        pytest_itemcollected(item)
    assert [item.added for item in items] == [[], [], ["long"], []]


def test_a_case_that_no_test_has_is_told() -> None:
    mark = pytest.mark.few("one", "gone").mark
    items: list[Any] = [_Item("one", mark), _Item("two", mark)]
    assert unknown(items) == ["tests/test_a.py::test_b[gone]"]
    assert unknown(items[:0]) == []
