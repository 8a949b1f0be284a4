"""Draws that are the same each time, and stand-ins for what never is: for pages whose printed output stands in the repository.

A page of the documentation calls confide as a user does, so that its noise is secure noise. For the run of the page alone the random bytes
of this process are replaced. Nothing of confide reads a setting for it, so that no user can turn it on. The bytes of a block come from its
text: a block that stays as it is prints what it printed, whatever is changed on the page before it.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from confide.noise import standard

__all__ = ["Same", "masked", "repeatable"]

_DAY = datetime(2026, 1, 15, 9, 30, tzinfo=UTC)
_CLOCK = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?: UTC)?)"
#: Longer runs of hexadecimal digits are digests; a release ID is printed with its first eight.
_DIGEST = re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{12,}\b")
_SHORT = re.compile(r"(?<![\w.])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{8}(?![\w.])")
_ALWAYS_ID = re.compile(r"((?:[Rr]elease(?: ID)?|receipt|[Tt]ip hash|SHA-256)[: ]+)[0-9a-f]{8}(?![\w.])")
_STAND_IN = "0a1b2c3d"


class Same:
    """Bytes in place of those of the operating system; `start` begins a sequence of their own."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self.start("")

    def start(self, text: str) -> None:
        """The bytes of a block with this text; of a text that comes again others."""
        often = self._seen[text] = self._seen.get(text, 0) + 1
        self._own, self._numbers = hashlib.sha256(f"{often}/{text}".encode()).digest(), dict[str, int]()
        for words in list(standard._LIVE):
            words._keystream.pid = -1  # a key when next used: sources that others left alive take no bytes from here

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes of the asker, since a module asks too while it is imported, in the first page of a process alone."""
        who = _asker()
        self._numbers[who] = number = self._numbers.get(who, 0) + 1
        return hashlib.shake_256(self._own + f"{who}/{number}".encode()).digest(count)


def _asker() -> str:
    """Module and function that ask for bytes, those that hand them on passed over."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") in ("random", "secrets"):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"


@contextmanager
def repeatable() -> Iterator[Same]:
    """Random bytes of this process are those of `Same`, in here alone; after it each source of noise has a fresh key.

    >>> from confide.noise.standard import SecureWords
    >>> with repeatable():
    ...     first = SecureWords().take(2).tolist()
    >>> with repeatable():
    ...     again = SecureWords().take(2).tolist()
    >>> first == again, SecureWords().take(2).tolist() == first
    (True, False)
    """
    same = Same()
    system: Any = types.SimpleNamespace(**{**vars(os), "urandom": same.bytes})
    places: list[tuple[Any, str, Any]] = [(standard, "os", system), (random, "_urandom", same.bytes)]
    was = [(place, name, getattr(place, name)) for place, name, _ in places]
    try:
        for place, name, new in places:
            setattr(place, name, new)
        same.start("")
        yield same
    finally:
        for place, name, old in was:
            setattr(place, name, old)
        for words in list(standard._LIVE):
            words.rekey()


def masked(text: str, began: datetime | None = None, folders: Sequence[str] = ()) -> str:
    """Printed text with stand-ins for IDs, digests, days and clocks of the run, and folders.

    began: when the run began, now where left out. Other dates are of the data and stay. folders: whose paths become relative.

    >>> masked("release 1f0e77ac, 40,000 rows, 12345678")
    'release 0a1b2c3d, 40,000 rows, 12345678'
    >>> masked("written 2026-03-01 12:15:02", datetime(2026, 3, 1, tzinfo=UTC))
    'written 2026-01-15 09:30:00'
    """
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(folder, ".")
    text = _DIGEST.sub(lambda found: (_STAND_IN * (len(found[0]) // 8 + 1))[: len(found[0])], text)
    text = _ALWAYS_ID.sub(rf"\g<1>{_STAND_IN}", _SHORT.sub(_STAND_IN, text))
    now = datetime.now(UTC)
    days = {f"{one:%Y-%m-%d}" for when in (began or now, now) for one in (when, when.astimezone())}
    return re.sub(rf"\b(?:{'|'.join(sorted(days))})({_CLOCK}?)", _stamped, text)


def _stamped(found: re.Match[str]) -> str:
    """The stand-in for a date, with a clock of the same form where there was one."""
    clock = found[1]
    for form, made in (
        (r"\d\d:\d\d:\d\d\.\d+", "09:30:00.000000"),
        (r"\d\d:\d\d:\d\d", "09:30:00"),
        (r"\d\d:\d\d", "09:30"),
    ):
        if re.search(form, clock):
            clock = re.sub(form, made, clock, count=1)
            break
    return f"{_DAY:%Y-%m-%d}{clock}"
