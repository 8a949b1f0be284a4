"""Examples of docstrings: where they are collected, and their code on blocks run here and without a clock, so that a busy machine
prints what an idle one does. Noise that is drawn here is the same in every run. And what eleven thousand collected tests cost
Python's collector of cycles: next to nothing.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from confide.sums.blocks.isolated_process import in_place
from confide_lab.repeatable import Same, repeatable

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


@pytest.fixture(scope="session", autouse=True)
def same_bytes() -> Iterator[Same]:
    """In place of the operating system's, for all noise of this process; with ``CONFIDE_EXPLORE=1`` noise is new each time."""
    if os.environ.get("CONFIDE_EXPLORE"):
        yield Same()
    else:
        with repeatable() as draws:
            yield draws


@pytest.fixture(autouse=True)
def same_noise(same_bytes: Same, request: pytest.FixtureRequest) -> None:
    """A test's noise is its own, whichever tests ran before it in its process."""
    same_bytes.start(request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """And that of what several tests share, whichever of them asks first."""
    if fixturedef.scope != "function" and fixturedef.argname != "same_bytes":
        request.getfixturevalue("same_bytes").start(f"{fixturedef.baseid}::{fixturedef.argname}")
    return (yield)
