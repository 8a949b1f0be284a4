"""Synthetic files in the truth table: whether the intervals that `refit` gives for a written file hold the population's line.

Every replication writes the file and reads it back. Responses are skewed, two-valued or zero for most, since a line of limited residuals is
another one there; the real tables are those of `confide_lab.benchmarks.outside_skewed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confide.ask.synthesis import refit
from confide.core import Method, Release, ResultOptions
from confide.synthesis import SyntheticTable
from confide_lab.benchmarks.outside_skewed import SKEWED

__all__ = ["FILES"]


@dataclass(frozen=True)
class _File(SyntheticTable):
    """A synthetic table that is read as its users read it."""

    def infer(self, release: Release, question: ResultOptions | None = None) -> Any:
        """The table that `refit` gives for the file."""
        with TemporaryDirectory(prefix="confide-truth-") as folder:
            (path,) = self.build(release).save(Path(folder) / "file.parquet")
            return refit(path)

    def reference(self, frame: Any) -> Mapping[str, float]:
        """The least-squares line."""
        return self.regression.reference(frame)


#: (case, method) -> what is asked.
FILES: Mapping[tuple[str, str], Method] = {
    (case, "synthetic_table"): _File(formula)
    for case, formula in {
        "incomes": "income ~ age + edu",
        "group-means": "income ~ 0 + edu",
        "zeros": "y ~ x",
        "rare-outcome": "y ~ x",
        "bent": "y ~ x",
        "skew": "y ~ x",
        **{name: table.formula for name, table in SKEWED.items()},
    }.items()
}
