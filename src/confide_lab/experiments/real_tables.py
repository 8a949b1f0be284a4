"""Cases on real records, each read once in a process, and what the experiments know about them beforehand."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from confide_lab.datasets import table
from confide_lab.fits import Case

__all__ = ["PAPER_SETS", "PUBLIC_SETS", "case_of_table", "resampled"]

#: Table 2 of the paper, then the further sets with public bounds, then those that no choice was made on.
PAPER_SETS = ("D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9")
PUBLIC_SETS = (
    *PAPER_SETS, "bike", "airfoil", "concrete", "energy", "elevators", "casp", "kin8nm", "yacht", "california", "adult"
)  # fmt: skip


@lru_cache(maxsize=4)
def case_of_table(name: str, variant: str = "public", mu: float = 1.0) -> Case:
    """The case of a data set; the records are read once in a process."""
    found = table(name, variant)
    return Case(found.frame, found.schema, found.formula, mu)


def resampled(case: Case, generator: np.random.Generator) -> Case:
    """A bootstrap sample of the records."""
    rows = generator.integers(0, len(case.frame), len(case.frame))
    return Case(case.frame.iloc[rows].reset_index(drop=True), case.schema, case.formula, case.mu)
