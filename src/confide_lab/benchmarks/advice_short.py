"""The part of `confide_lab.benchmarks.advice` that takes minutes: `confide lab bench advice_short`."""

from __future__ import annotations

from typing import Any

from confide_lab.benchmarks import advice

__all__ = ["run"]


def run() -> list[dict[str, Any]]:
    """Seven real sets and four designs at mu = 1, with public records."""
    return advice.run(quick=True)
