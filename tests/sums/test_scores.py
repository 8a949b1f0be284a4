"""Clipped scores: the integers, their bound for any line and box, and the descent that sums them."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide as cf
from confide.core import Allowance, Composed, Meter, Plan, Total, mu_squared
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.sums.coding import Box
from confide.testing import ZeroNoise, codes_of
from confide_lab.aggregates.scores import ClippedScores, default_clip, descend, plan_descent
from confide_lab.methods.gradient_descent import GradientDescent

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})
DESIGN = cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA)
BOUND = 1 << 40

corner = st.sampled_from([-1e300, -2.0, 0.0, 0.3, 3.0, 10.0, 30.0, 1e300, nan, inf])
anything = st.floats(allow_nan=True, allow_infinity=True)
line = st.tuples(*[anything] * 3)


def records(n: int, seed: int, sd: float = 2.0) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + sd * g.standard_normal(n)
    return frame


def scaled(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(z, t) of the coded records."""
    values = {name: SCHEMA[name].decode(SCHEMA[name].code(frame[name].to_numpy())) for name in SCHEMA.names}
    z = np.column_stack([np.ones(len(frame)), (values["a"] - 0.5) / 2.5, (values["b"] - 5) / 5])
    return z, (values["y"] - 5) / 25


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(corner, corner, corner), min_size=1, max_size=6),
    line,
    st.floats(1e-6, 1024),
    st.one_of(st.none(), st.tuples(st.tuples(anything, anything), st.tuples(anything, anything))),
)
def test_no_score_goes_beyond_its_bound_for_any_line_clip_and_box(
    rows: list[tuple[float, ...]],
    theta: tuple[float, ...],
    clip: float,
    box: tuple[tuple[float, float], tuple[float, float]] | None,
) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "y"])
    scores = ClippedScores(DESIGN, clip, box=None if box is None else Box(*box)).at(np.array(theta))
    integers = scores(codes_of(cf.read(frame, SCHEMA), scores))
    assert (integers == np.rint(integers)).all()
    exact = integers.astype(object)
    assert max((exact * exact).sum(axis=0)) <= BOUND
    assert max(abs(exact).sum(axis=0)) <= scores.l1


@pytest.mark.parametrize("clip", [0.05, 0.8, 50.0])
def test_the_integers_are_the_clipped_scores(clip: float) -> None:
    frame, theta = records(500, 1), np.array([0.2, -0.4, 0.1])
    scores = ClippedScores(DESIGN, clip).at(theta)
    z, t = scaled(frame)
    score = z * (t - z @ theta)[:, None]
    score *= np.minimum(1, clip / np.linalg.norm(score, axis=1))[:, None]
    integers = scores(codes_of(cf.read(frame, SCHEMA), scores)) / scores.unit
    assert np.abs(integers.T - score).max() <= 0.5 / scores.unit + 1e-12


def test_a_coarse_clip_by_coordinate_would_go_beyond_the_bound() -> None:
    """The test above has power: a map that clips each entry by itself does not pass it."""
    frame = pd.DataFrame({"a": [3.0], "b": [10.0], "y": [30.0]})
    scores = ClippedScores(DESIGN, 0.5)
    z, t = scaled(frame)
    entries = np.rint(np.clip(z * t[:, None], -0.5, 0.5) * scores.unit)
    assert (entries**2).sum() > BOUND


def test_what_a_plan_may_not_ask() -> None:
    for clip in (0.0, -1.0, nan, inf, 2000.0):
        with refuses(PlanError):
            ClippedScores(DESIGN, clip)
    allowance = Allowance.of(cf.GDP(1.0), GradientDescent("y ~ a + b"), SCHEMA)
    for iterations in (0, -3, 1001, 2.5, True):
        with refuses(PlanError):
            plan_descent(DESIGN, allowance, Fraction(1), iterations, clip=1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("iterations", [1, 3, 30, 37])
def test_the_shares_add_up_exactly(iterations: int) -> None:
    allowance = Allowance.of(cf.GDP(0.7), GradientDescent("y ~ a + b"), SCHEMA)
    event, statistics = plan_descent(DESIGN, allowance, Fraction(99, 100), iterations, clip=1.0)
    spent, wanted = mu_squared(event), Fraction(99, 100) * allowance.amount
    assert spent is not None and len(statistics) == iterations
    assert wanted * (1 - Fraction(1, 10**9)) <= spent <= wanted
    assert len({part.scale for part in event.parts}) == 1  # type: ignore[union-attr]


def _descent(noise: object, frame: pd.DataFrame, **given: object) -> np.ndarray:
    """A descent from a plan of its own, as another method would make it."""
    method, allowance = GradientDescent("y ~ a + b"), Allowance.of(cf.GDP(1.0), GradientDescent("y ~ a + b"), SCHEMA)
    event, statistics = plan_descent(DESIGN, allowance, Fraction(99, 100), 30, clip=default_clip(DESIGN))
    plan = Plan.of(method, SCHEMA, allowance, Composed(event.parts), statistics)
    arguments: dict[str, object] = {
        "count": 500.0, "iterations": 30, "rate": 1 / (1 + 2 / 3), "clip": default_clip(DESIGN), **given,
    }  # fmt: skip
    with Meter(plan, noise) as meter:  # type: ignore[arg-type]
        return descend(meter, cf.read(frame, SCHEMA), plan, DESIGN, **arguments)  # type: ignore[arg-type]


def test_without_noise_a_descent_is_the_textbook_loop() -> None:
    frame = records(500, 2)
    z, t = scaled(frame)
    clip, theta = default_clip(DESIGN), np.zeros(3)
    assert clip == 0.5 * sqrt(5 / 3)
    for _ in range(30):
        score = z * (t - z @ theta)[:, None]
        score *= np.minimum(1, clip / np.linalg.norm(score, axis=1))[:, None]
        theta = theta + score.sum(axis=0) / (5 / 3 * 500)
    np.testing.assert_allclose(_descent(ZeroNoise(), frame), theta, atol=1e-6)


def test_few_records_do_not_lengthen_the_steps() -> None:
    frame = records(500, 2)
    low = _descent(ZeroNoise(), frame, count=-1e6)
    np.testing.assert_array_equal(low, _descent(ZeroNoise(), frame, count=9.0))
    assert np.isfinite(low).all() and (abs(low) <= 1e6).all()


def test_a_descent_takes_the_clip_that_was_paid_for() -> None:
    with refuses(PlanError):
        _descent(ZeroNoise(), records(50, 3), clip=5.0)
    with refuses(PlanError):
        _descent(ZeroNoise(), records(50, 3), iterations=31)


def test_the_method_and_the_loop_are_one_function() -> None:
    """The same draws give the same bits, whoever calls: a fall-back of another method and GradientDescent."""

    class AfterCount(SimulatedNoise):
        """Seeded noise that first makes the draw which the method takes for its count."""

        def rekey(self) -> None:
            super().rekey()
            method = GradientDescent("y ~ a + b").plan(SCHEMA, cf.GDP(1.0))
            self.count = int(self.grid_gaussian(method.spend("count").scale, 1)[0]) * method.spend("count").step

    frame = records(500, 4)
    release = cf.release(
        GradientDescent("y ~ a + b"), cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(5)
    )
    noise = AfterCount(5)
    noise.rekey()
    count = float(release["count"].decode()[0])
    noise = AfterCount(5)
    theta = _descent(noise, frame, count=count)
    np.testing.assert_array_equal(theta, release.public["theta"])


def test_a_step_holds_the_sum_of_the_scores() -> None:
    frame = records(200, 6)
    scores = ClippedScores(DESIGN, 1.0)
    source = cf.read(frame, SCHEMA)
    (total,) = source.aggregate(Total(scores))
    assert [int(v) for v in total] == [int(v) for v in scores(codes_of(source, scores)).sum(axis=1)]
