"""What confide says when it refuses: `messages.json` holds every message whole, beside the test that draws it out.

A test says which error it expects, ``with refuses(PlanError): ...``, and the words are compared with the recorded ones. Where words change
on purpose, ``CONFIDE_RECORD=1 pytest tests/...`` writes those of the tests that it runs, and the difference of `messages.json` shows them.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.few import unknown

E = TypeVar("E", bound=BaseException)
Messages = dict[str, dict[str, list[str]]]

RECORDED = Path(__file__).with_name("messages.json")
RECORDING = bool(os.environ.get("CONFIDE_RECORD"))
_ROOT = Path(__file__).parents[1]

#: What differs from run to run, or from machine to machine, and the mark that stands for it.
_TEMPORARY = re.escape(tempfile.gettempdir())
_MARKS = [
    (re.compile(pattern), mark)
    for pattern, mark in (
        (rf"{_TEMPORARY}/pytest-of-[^/]+/pytest-\d+/(popen-gw\d+/)?[^/\s'\"]+", "<tmp>"),
        (rf"{_TEMPORARY}/[^\s'\",;:)]+", "<tmp>"),
        (r"\b0x[0-9a-f]{6,}\b", "<address>"),
        (r"\b[0-9a-f]{32,}\b", "<digest>"),
        (r"postgresql://(confide|somebody|clerk_\w+)@[^\s'\"),]*[^\s'\"),:;.]", "<postgres>"),
        (r"\bport \d+\b", "port <port>"),
    )
]


class _Run:
    """The messages of this run: those of the test at hand, those of all tests that passed, and the tests of each whole file."""

    def __init__(self) -> None:
        self.test = ""
        self.now: list[str] = []
        self.passed: dict[str, list[str]] = {}
        self.collected: dict[str, list[str]] = {}


_RUN = _Run()


def constant(message: str) -> str:
    """A message with marks in the place of what differs from run to run."""
    for pattern, mark in _MARKS:
        message = pattern.sub(mark, message)
    return message


def recorded() -> Messages:
    """The recorded messages: by file, by test, in the order in which the test draws them out."""
    return json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}


@contextmanager
def refuses(kind: type[E] | tuple[type[E], ...]) -> Iterator[pytest.ExceptionInfo[E]]:
    """As `pytest.raises`, and the whole message is the recorded one."""
    __tracebackhide__ = True
    with pytest.raises(kind) as caught:
        yield caught
    hold(str(caught.value))


@contextmanager
def warns(kind: type[Warning]) -> Iterator[pytest.WarningsRecorder]:
    """As `pytest.warns`, and what the warnings of this kind say, each once, is recorded."""
    __tracebackhide__ = True
    with pytest.warns(kind) as caught:
        yield caught
    for message in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, kind)):
        hold(message)


def hold(message: str) -> None:
    """Compare a message with the one recorded at this place of the test at hand; while recording, take it down.

    One that comes several times in a row has one place.
    """
    __tracebackhide__ = True
    message, place = constant(message), len(_RUN.now)
    if _RUN.now[-1:] == [message]:
        return
    _RUN.now.append(message)
    if RECORDING:
        return
    held = _held(_RUN.test)
    if place >= len(held):
        pytest.fail(f"no message is recorded here:\n  {message}\n{_advice(_RUN.test)}")
    if message != held[place]:
        pytest.fail(f"the message is\n  {message}\nrecorded is\n  {held[place]}\n{_advice(_RUN.test)}")


def _advice(test: str) -> str:
    return f"If it should be so: CONFIDE_RECORD=1 pytest {test.partition('[')[0]}"


def _held(test: str) -> list[str]:
    file, _, name = test.partition("::")
    return _cached().get(file, {}).get(name, [])


_KEPT: list[Messages] = []


def _cached() -> Messages:
    if not _KEPT:
        _KEPT.append(recorded())
    return _KEPT[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """The messages of one test: all that are recorded must have come."""
    _RUN.test, _RUN.now = item.nodeid, []
    result = yield
    _RUN.passed[_RUN.test] = _RUN.now
    left = _held(_RUN.test)[len(_RUN.now) :]
    if left and not RECORDING:
        pytest.fail("recorded, and not said any more:\n  " + "\n  ".join(left) + f"\n{_advice(_RUN.test)}")
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any test is left out: which tests there are, in the files that are collected whole."""
    if any("::" in one for one in config.args) or config.getoption("lf", False):
        return
    if wrong := unknown(items):
        raise pytest.UsageError("marks of tests/few.py name no case: " + "; ".join(wrong))
    found = defaultdict(list)
    for item in items:
        file, _, name = item.nodeid.partition("::")
        found[file].append(name)
    _RUN.collected = dict(found)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of xdist hands its messages over."""
    if "messages" in (output := getattr(node, "workeroutput", {})):
        _RUN.passed |= output["messages"]
        _RUN.collected |= output["collected"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """While recording: write the messages of the tests that passed, and drop those of tests that are no more."""
    if not RECORDING:
        return
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput |= {"messages": _RUN.passed, "collected": _RUN.collected}
        return
    told = {file: one for file, one in recorded().items() if (_ROOT / file).exists()}
    for file, names in _RUN.collected.items():
        told[file] = {name: one for name, one in told.get(file, {}).items() if name in set(names)}
    for test, messages in _RUN.passed.items():
        file, _, name = test.partition("::")
        told.setdefault(file, {})[name] = messages
    kept = {file: {name: one for name, one in tests.items() if one} for file, tests in told.items()}
    text = json.dumps({file: one for file, one in kept.items() if one}, indent=1, sort_keys=True, ensure_ascii=False)
    RECORDED.write_text(text + "\n", encoding="utf-8")


def stale(kept: Messages) -> list[str]:
    """Recorded tests that are not there any more: of files that are gone, and of files that this run collected whole."""
    found = []
    for file, tests in kept.items():
        there = _RUN.collected.get(file)
        if not (_ROOT / file).exists():
            found.append(file)
        elif there is not None:
            found += [f"{file}::{name}" for name in tests if name not in there]
    return found
