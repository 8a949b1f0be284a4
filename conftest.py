"""Examples of docstrings: where they are collected, and their code on blocks run here and without a clock, so that a busy machine prints
what an idle one does. And what eleven thousand collected tests cost Python's collector of cycles: next to nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from confide.sums.blocks.isolated_process import in_place

_TESTS = Path(__file__).parent / "tests"

# Nothing that is collected is garbage before the end, and each pass over it takes time.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """No examples are looked for in the docstrings of tests, nor where a file holds none."""
    found = yield
    if not any(type(one).__name__ == "DoctestModule" for one in found):
        return found
    if not file_path.is_relative_to(_TESTS) and ">>> " in file_path.read_text(encoding="utf-8"):
        return found
    return [one for one in found if type(one).__name__ != "DoctestModule"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """In each process: the one that hands tests out collects none."""
    gc.freeze()
    # by default after every 700 new objects, and Hypothesis listens to each pass
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def examples_in_place(request: pytest.FixtureRequest) -> Iterator[None]:
    if isinstance(request.node, pytest.DoctestItem):
        with in_place():
            yield
    else:
        yield
