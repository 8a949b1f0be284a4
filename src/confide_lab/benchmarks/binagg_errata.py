"""The numbers in evidence/errata.md on Lin, Slavkovic, Bhoomireddy 2025 that `confide_lab/benchmarks/binagg.py` does not print."""

from __future__ import annotations

from typing import Any

from confide_lab.benchmarks.acceptance import _row
from confide_lab.errata import names, rows


def run() -> list[dict[str, Any]]:
    """Every erratum of this paper that `confide lab errata` prints."""
    mine = [name for name in names() if name.startswith("binagg-")]
    return [_row(f"{name.upper()} {one.what}", one.found, one.low, one.high) for name in mine for one in rows(name)]
