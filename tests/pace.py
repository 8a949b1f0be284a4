"""Time limits in tests, on machines of any pace."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

_factor = 1.0


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
