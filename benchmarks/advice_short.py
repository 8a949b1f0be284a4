"""The part of `benchmarks.advice` that takes minutes: `python -m benchmarks advice_short`."""

from __future__ import annotations

from typing import Any

from benchmarks import advice

__all__ = ["run"]


def run() -> list[dict[str, Any]]:
    """Seven real sets and four designs at mu = 1, with public records."""
    return advice.run(quick=True)
