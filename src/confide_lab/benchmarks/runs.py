"""Replications of the benchmarks: in parallel, and an interrupted run goes on where it was unless the code has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from confide_lab.runner import Measure, Study, run, version_of_sources

OUT = Path("out/bench/runs")


def table(name: str, grid: Mapping[str, Sequence[Any]], measure: Measure, replications: int) -> pd.DataFrame:
    """The table of a study of this checkout's code; `RuntimeError` when a cell failed."""
    found = run(Study(name, grid, measure, replications, version_of_sources(measure.__code__.co_filename)), OUT)
    failed = found[found["error"].notna()]
    if len(failed):
        raise RuntimeError(f"{name}: {len(failed)} of {len(found)} cells failed, first: {failed.iloc[0].to_dict()}")
    return found
