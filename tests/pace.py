"""Time limits in tests, on machines of any pace."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

Found = TypeVar("Found")

_factor = 1.0
#: CPU seconds of `_measure` on an idle core of the machine that the limits were written on.
_IDLE = 0.003


def slow() -> float:
    """How many times longer than on an idle machine a limit is just now."""
    return _factor


def patient(test: Callable[..., None]) -> Callable[..., None]:
    """What fails for want of time is tried again with four and with sixteen times as much: limits are written `0.6 * slow()`."""

    @wraps(test)
    def run(*args: Any, **named: Any) -> None:
        global _factor
        try:
            for _factor in (1.0, 4.0):
                try:
                    test(*args, **named)
                    return
                except AssertionError:
                    pass
            _factor = 16.0
            test(*args, **named)
        finally:
            _factor = 1.0

    return run


def quick(limit: float, work: Callable[[], Found]) -> Found:
    """What `work` gives; one of ten times it must take less CPU time than `limit` seconds of an idle core.

    A busy or a slower machine takes longer for everything: each time is set against what a fixed piece of work takes beside it. `work`
    takes as long the second time: it empties its caches, or asks for something new.
    """
    said = []
    for _ in range(10):
        before, start = _measure(), time.process_time()
        found = work()
        spent = time.process_time() - start
        pace = max(before, _measure(), _IDLE) / _IDLE
        if spent < limit * pace:
            return found
        said.append(f"{spent:.3g} s where this machine has {limit * pace:.3g}")
    raise AssertionError("; ".join(said))


def _measure() -> float:
    """CPU seconds of a fixed piece of work: half in NumPy, half in Python."""
    numbers = np.random.default_rng(0).random(1 << 18)
    start, total = time.process_time(), 0
    np.sort(numbers)
    np.exp(numbers)
    for k in range(50_000):
        total += k * k % 7
    return time.process_time() - start
