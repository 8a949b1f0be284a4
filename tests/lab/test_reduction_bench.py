"""The benchmark of reductions without its sets: a study of its own for each set and method, under names that the runner takes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from confide_lab.benchmarks import reduction
from confide_lab.runner import Study


def test_every_set_and_method_is_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    studies: list[str] = []

    def replicated(name: str, grid: Any, measure: Any, replications: int) -> pd.DataFrame:
        studies.append(Study(name, grid, measure, replications).name)
        return pd.DataFrame({"n": [], "mu": []})

    monkeypatch.setattr(reduction, "available", lambda _: None)
    monkeypatch.setattr(reduction, "replicated", replicated)
    assert reduction.run() == []
    assert len(set(studies)) == len(studies) == len(reduction.SETS) * len(reduction.METHODS)
