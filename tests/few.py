"""Cases of a test that stand for the others in `make test`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *kept: int | str) -> list[Any]:
    """All cases of a test: those at the places kept, or of these names, run always; the others with the long tests.

    A tuple holds the arguments of one case, so that the one argument that is a tuple stands in another.
    """
    made, left = [], set(kept)
    for place, case in enumerate(cases):
        marks = list(getattr(case, "marks", ()))
        values = case.values if hasattr(case, "marks") else case if isinstance(case, tuple) else (case,)
        known = {place, case} & set(kept) if isinstance(case, str) else {place} & set(kept)
        made.append(
            pytest.param(*values, marks=marks if known else [*marks, pytest.mark.long], id=getattr(case, "id", None))
        )
        left -= known
    assert not left, f"no such cases: {left}"
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """``@pytest.mark.few("case", ...)``: these cases, as they stand in brackets, run always; the others with the long tests."""
    if (mark := item.get_closest_marker("few")) and item.callspec.id not in mark.args:  # type: ignore[attr-defined]
        item.add_marker("long")


def unknown(items: Iterable[pytest.Item]) -> list[str]:
    """Cases that a mark names and that no test has; `items` are all of their files."""
    named: dict[str, set[str]] = {}
    there: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if mark := item.get_closest_marker("few"):
            test = item.nodeid.partition("[")[0]
            named[test] = set(mark.args)
            there[test].add(item.callspec.id)  # type: ignore[attr-defined]
    return [f"{test}[{case}]" for test, cases in named.items() for case in sorted(cases - there[test])]
