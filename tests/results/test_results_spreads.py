"""What is said of columns whose spread must stand above its noise: bounds are named, and what was said comes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.noise import SimulatedNoise

pytestmark = pytest.mark.usefixtures("declared")

SCHEMA = cf.Schema({"x": cf.Numeric(0, 10), "y": cf.Numeric(0, 2_000)})
METHODS = (cf.reduction.Correlations("x + y", bounds="declared"), cf.reduction.PCA("x + y", bounds="declared"))


def _ends(note: str, name: str) -> tuple[float, float]:
    """The two standard deviations that a plan names for a column."""
    words = note.partition(f" {name} ")[2].partition(" (")[0]
    low, high = words.replace(",", "").split(" to ")
    return float(low), float(high)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_standard_deviation_that_is_named_is_answered_and_half_of_it_is_not(method: cf.core.Method) -> None:
    n = 4_000
    note = cf.plan(method, SCHEMA, cf.GDP(1.0), n=n).notes[-1]
    assert "y " in note and "(declared 0 to 2,000)" in note and "declare narrower" in note
    middle, end = _ends(note, "y")
    assert middle < end
    answers = {}
    for part, at_bound in ((1.1, False), (1.1, True), (0.5, False), (0.5, True)):
        found = []
        for seed in range(8):
            g = np.random.default_rng(seed)
            sd = part * (end if at_bound else middle)
            y = g.exponential(sd, n) if at_bound else g.normal(1_000, sd, n)
            frame = pd.DataFrame({"x": g.uniform(0, 10, n), "y": np.clip(y, 0, 2_000)})
            release = cf.release(
                method, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed + 1)
            )
            own = cf.infer(release)
            own = own.correlations if isinstance(method, cf.reduction.PCA) else own
            found.append(bool(np.isfinite(own.params.iloc[0])))
            if not found[-1]:
                assert "y (declared 0 to 2,000)" in cf.infer(release).reason and "x (" not in cf.infer(release).reason
        answers[part, at_bound] = np.mean(found)
    assert answers[1.1, False] >= 0.75 and answers[1.1, True] >= 0.75, answers
    assert answers[0.5, False] == 0 and answers[0.5, True] == 0, answers


def test_few_records_are_told_to_be_few() -> None:
    for method in METHODS:
        assert "an answer is unlikely for columns x, y" in cf.plan(method, SCHEMA, cf.GDP(1.0), n=40).notes[-1]
        assert "where it is a sixth" in cf.plan(method, SCHEMA, cf.GDP(1.0)).notes[-1]
