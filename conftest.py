"""Examples of docstrings whose code runs on blocks: here and without a clock, so that a busy machine prints what an idle one does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from confide.aggregates.isolation.in_place import in_place


@pytest.fixture(autouse=True)
def examples_in_place(request: pytest.FixtureRequest) -> Iterator[None]:
    if isinstance(request.node, pytest.DoctestItem):
        with in_place():
            yield
    else:
        yield
