"""How many records of a level have the rarer outcome, as a released line says: what is answered rests on it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

import confide as cf
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.fisher_families import LOGIT, PROBIT, Counts
from confide.methods.regression.glm.fisher_rows import FisherRows
from confide.methods.regression.glm.reading import LevelState, SparseLevel, _lowest, _sds_beyond
from confide.methods.regression.sums.whitened_rows import Frame
from confide.results.base import LevelCount
from confide.schema import CodedFrame
from confide.sums.coding import Box

SCHEMA = cf.Schema({"f": cf.Categorical(["a", "b", "c"]), "x": cf.Integer(0, 1), "y": cf.Integer(0, 1)})
RATES = {"a": 0.6, "b": 0.9, "c": 0.985}
SIZES = {"a": 2_000, "b": 1_500, "c": 400}


def test_log_odds_that_differ_between_levels_do_not_spread_those_within_one() -> None:
    frame = pd.DataFrame({"f": np.repeat(list(SIZES), list(SIZES.values()))})
    frame = frame.assign(x=np.arange(len(frame)) % 2, y=0)
    design, _ = binary_design("y ~ f + x", SCHEMA, None)
    rows, _ = CodedFrame.of(frame, SCHEMA).rows(design)
    box = Box.of(design)
    middle, half = box.arrays
    z = np.column_stack([np.ones(len(rows)), (rows[:, 1:] - middle) / half])
    # the exact line of the rates, in z: x has no effect
    log_odds = logit(frame["f"].map(RATES).to_numpy(dtype=float))
    line = np.linalg.lstsq(z, log_odds, rcond=None)[0]
    nothing = np.zeros((len(line), len(line)))
    seen = LevelState(line, line, nothing, (np.zeros(len(line)), nothing), z.T @ z / len(z), float(len(z)), box)
    # every level is listed where any number is too few
    found = {one.count.level: one for one in _all(seen, design)}
    assert np.isclose(found["c"].count.count, SIZES["c"] * expit(-logit(RATES["c"])), rtol=1e-6)
    assert np.isclose(found["b"].count.count, SIZES["b"] * (1 - RATES["b"]), rtol=1e-6)
    assert found["c"].outcome == 0


def _all(seen: LevelState, design: Any) -> list[SparseLevel]:
    with patch("confide.methods.regression.glm.reading._FEWEST", np.inf):
        return [one for one in seen.quiet(design) if one.count.column == "f"]


@pytest.mark.parametrize("truth", [1.0, 3.0, 5.0, 8.0, 20.0])
def test_given_that_it_is_answered_a_count_excludes_the_truth_as_seldom_as_said(truth: float) -> None:
    """X is normal with sd 2 and answered from 5 on; the truth is excluded where it lies below X - x sd."""
    sd, start = 2.0, 5.0

    def excluded(count: float) -> float:
        beyond = (count - start) / sd
        return float(norm.pdf(count, truth, sd)) * (beyond > 0.02 and count - _sds_beyond(beyond) * sd > truth)

    # the truth is excluded from some count on, near which the integrand jumps
    grid = np.linspace(start, truth + 8 * sd, 4_001)
    first = next((x for x in grid if excluded(float(x))), None)
    missed = 0.0 if first is None else quad(excluded, float(first), truth + 12 * sd)[0]
    assert missed / norm.sf(start, truth, sd) == pytest.approx(0.025, rel=0.05)


def test_a_count_that_noise_may_have_made_is_not_told() -> None:
    def lowest(count: float, sd: float) -> float:
        return _lowest(LevelCount("f", "c", count, sd))[0]

    assert lowest(4.0, 0.1) == -np.inf  # too few, whatever the noise
    assert lowest(20.0, 8.0) < 1.0 < lowest(40.0, 8.0)
    assert lowest(1e4, 8.0) == pytest.approx(1e4 - 1.96 * 8)


def test_levels_near_where_answers_begin_have_wider_intervals_and_others_the_usual_ones() -> None:
    design, _ = binary_design("y ~ f", SCHEMA, None)
    z = np.repeat(np.array([[1.0, -1.0, -1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]), [2_000, 1_500, 400], axis=0)
    line = np.linalg.solve(z[[0, 2_000, 3_500]], logit([0.6, 0.9, 0.965]))  # 14 records without the outcome in the last
    moments, box, nothing = z.T @ z / len(z), Box.of(design), (np.zeros(3), np.zeros((3, 3)))
    found = LevelState(line, line, 1e-3 * np.eye(3), nothing, moments, float(len(z)), box).near(design)
    by = {tuple(one.moves): one for one in found}
    last = by[0.0, 0.0, 1.0]
    count, error = 400 * 0.035, np.sqrt(0.003)
    usual = error**2 + 1 / count
    assert 0.1 * usual < last.variance < usual and 0 < last.noise < last.variance
    # 150 and 800 records: next to nothing
    assert all(one.variance < 0.01 * usual for moves, one in by.items() if moves != (0.0, 0.0, 1.0))


@pytest.mark.parametrize("family", [LOGIT, PROBIT, Counts(1.0, 1.0)])
def test_points_weigh_what_records_do(family: Any) -> None:
    design, _ = binary_design("y ~ f + x", SCHEMA, None)
    codes = np.array([[0, 1, 2, 2], [0, 1, 0, 1], [0, 1, 0, 1]], dtype=float)
    frame = Frame.of(Box.of(design), 2 * np.eye(4) + 0.1, np.array([-0.4, 0.3, 0.8, -0.5]), 1.0)
    rows = FisherRows(design, family=family).at(frame, 1.5, 2.0)
    terms = design.codes(codes)[0]
    z = np.column_stack([np.ones(4), 2 * terms[:-1].T - 1])
    parts = rows.parts(codes)
    weights = rows.split(parts.size, parts.most, parts.square)
    assert weights[0].min() < 0.9
    np.testing.assert_allclose(rows.of_points(z), weights, rtol=1e-6)
