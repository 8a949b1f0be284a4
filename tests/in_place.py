"""A fixture: code on blocks runs here and without a clock. Its processes have tests of their own (tests/sums/test_isolated.py)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from confide.sums.blocks.isolated_process import in_place as in_place


@pytest.fixture
def blocks_in_place() -> Iterator[None]:
    with in_place():
        yield
