"""EfficientPTRKernel: contract, audit, the two promises in exact arithmetic, replies, coverage, bad input."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import Total
from confide.errors import NoResult, PlanError, PrivacyError
from confide.methods.curves.efficient_ptr import EfficientPTRKernel
from confide.methods.curves.sums import WEIGHT, KernelSafety, PointCurve, PointMoments, PointRows
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method
from confide_lab.experiments.eptr_kernel import curve, smoothed

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})
TWO = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})
LEVEL = cf.GDP(3.0, 1e-3)


def rows_of(points: Any = ((0.25,), (0.5,)), h: float = 0.1, kernel: str = "gaussian") -> PointRows:
    return PointRows(cf.schema.ModelMatrix.of("y ~ x", SCHEMA), points, (h,), kernel)


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    x = g.random(n)
    return pd.DataFrame({"x": x, "y": curve(x) + 0.2 * g.standard_normal(n)})


def released(
    method: Any, frame: pd.DataFrame, privacy: Any = LEVEL, noise: Any = None, schema: cf.Schema = SCHEMA
) -> Any:
    noise = SimulatedNoise(1) if noise is None else noise
    return cf.release(method, cf.read(frame, schema), privacy, n=len(frame), ledger=None, noise=noise)


# contract, audit ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_contract() -> None:
    method = EfficientPTRKernel("y ~ x", [0.25, 0.5, 0.75], 0.08, least=40.0)
    assert check_method(method, SCHEMA, privacy=LEVEL, replications=15).ok
    two = EfficientPTRKernel("y ~ a + b", [(0.25, 0.3), (0.5, 0.5)], [0.15, 0.2], least=20.0, kernel="epanechnikov")
    assert check_method(two, TWO, privacy=LEVEL, replications=10).ok


def test_audit() -> None:
    method = EfficientPTRKernel("y ~ x", [0.25, 0.5], 0.08, least=4.0, gamma_plan=6.0)
    found = cf.audit.audit(method, schema=SCHEMA, runs=500, seed=1, privacy=LEVEL)
    assert found.ok
    reached = {row.name.split()[-1]: row for row in found if row.attack == "exact difference"}
    assert set(reached) >= {"safety", "curve", "sums", "moments"}
    assert reached["safety"].lower_bound > 0.98 * reached["safety"].claim.mu  # type: ignore[union-attr]


def test_the_deltas_add_to_what_was_asked() -> None:
    plan = EfficientPTRKernel("y ~ x", [0.5], 0.1, least=50.0).plan(SCHEMA, cf.ApproxDP(1.0, 1e-6))
    assert plan.relation == "substitute" and plan.event.delta == Fraction(5e-7)  # type: ignore[union-attr]
    assert cf.ApproxDP(1.0, 1e-6, relation="substitute") in plan.guarantees


# the two promises -----------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([-1.0, -0.5, 0.0, 0.7, 1.0])), min_size=1, max_size=5),
    st.tuples(st.floats(0, 1), st.sampled_from([-1.0, 0.0, 1.0])),
    st.tuples(st.floats(0, 1), st.sampled_from([-1.0, 0.0, 1.0])),
    st.integers(1, 30),
    st.sampled_from(["gaussian", "epanechnikov"]),
)
def test_no_neighbour_breaks_a_promise(company: Any, one: Any, other: Any, times: int, kernel: str) -> None:
    """Through the record map: the safety moves by at most 1, the values by at most alpha where either side is safe."""
    rows = rows_of(((0.2,), (0.5,), (0.55,)), 0.15, kernel)
    totals = []
    for record in (one, other):
        frame = pd.DataFrame([*company * times, record], columns=["x", "y"])
        totals.append(cf.read(frame, SCHEMA).aggregate(Total(rows))[0])
    safety = KernelSafety(rows, 2 * WEIGHT)
    steps = [int(safety.of(total)[0]) for total in totals]
    assert abs(steps[0] - steps[1]) <= 1024
    least = max(min(int(v) for v in total[:3]) for total in totals)
    if least > WEIGHT + 1:
        values = PointCurve(rows, least - 1)
        moved = sum(int(d) ** 2 for d in values.of(totals[0]) - values.of(totals[1]))
        assert moved <= values.sensitivity_squared("substitute")


def test_an_attack_reaches_nearly_all_of_alpha_at_one_point() -> None:
    rows = rows_of(((0.5,),))
    company, worst = [(0.5, -1.0)] * 4_000, 0.0
    totals = [
        cf.read(pd.DataFrame([*company, (0.5, y)], columns=["x", "y"]), SCHEMA).aggregate(Total(rows))[0]
        for y in (-1.0, 1.0)
    ]
    values = PointCurve(rows, int(min(total[0] for total in totals)) - 1)
    worst = sqrt(sum(int(d) ** 2 for d in values.of(totals[0]) - values.of(totals[1]))) / 2**20
    assert 0.999 < worst <= 1.0


def test_points_far_apart_cost_less_than_their_number() -> None:
    """sum_j w_j^2 of one record, at any place, is below `largest`, which for twenty points is far below twenty."""
    points = tuple((float(p),) for p in np.linspace(0.1, 0.6, 20))
    rows = rows_of(points, 0.0437)
    codes = np.stack([np.linspace(0, 2**20 - 1, 4_001).round(), np.full(4_001, 2**20 - 1.0)])
    weights, _ = rows.placed(codes)
    found = (weights**2).sum(axis=0).max()
    assert 0.999 * rows.largest(2) < found <= rows.largest(2)
    assert PointCurve(rows, 80 * WEIGHT).reach < 0.3 * 20 * WEIGHT**2
    two = PointRows(cf.schema.ModelMatrix.of("y ~ a + b", TWO), ((0.2, 0.2), (0.2, 0.8), (0.9, 0.8)), (0.1, 0.1))
    codes = np.random.default_rng(1).integers(0, 2**20, (3, 20_000)).astype(float)
    weights, _ = two.placed(codes)
    assert (weights**2).sum(axis=0).max() <= two.largest(2) < 3 * WEIGHT**2
    assert (weights**4).sum(axis=0).max() <= two.largest(4)


def test_moments_stay_within_their_bound_for_any_curve() -> None:
    rows = rows_of(((0.2,), (0.25,), (0.9,)), 0.1)
    codes = np.random.default_rng(2).integers(0, 2**20, (2, 5_000)).astype(float)
    for curve_ in (np.zeros(3), np.array([1.0, -1.0, 0.3])):
        moments = PointMoments(rows, 0.5).at(curve_)
        found = moments(codes)
        assert found.min() >= 0 and (found.astype(object) ** 2).sum(axis=0).max() <= moments.l2_squared


def test_without_noise_it_is_nadaraya_watson() -> None:
    frame, at = records(4_000, 3), np.array([0.2, 0.5, 0.8])
    for kernel in ("gaussian", "epanechnikov"):
        method = EfficientPTRKernel("y ~ x", at.tolist(), 0.08, least=40.0, kernel=kernel)
        found = method.infer(released(method, frame, cf.GDP(1e3, 1e-3), ZeroNoise())).estimates
        gap = (at[:, None] - frame["x"].to_numpy()) / 0.08
        weights = np.exp(-gap * gap / 2) if kernel == "gaussian" else np.maximum(1 - gap * gap, 0)
        np.testing.assert_allclose(found, weights @ np.clip(frame["y"], -1, 1) / weights.sum(axis=1), atol=1e-3)


# replies --------------------------------------------------------------------------------------------------------------


def test_no_reply_is_a_result() -> None:
    method = EfficientPTRKernel("y ~ x", [0.3, 0.5], 0.05, least=40.0)
    release = released(method, records(30, 4))
    assert release.status == "declined" and not release.statistics
    found = method.infer(release)
    assert found.status == "declined" and np.isnan(found.estimates).all() and found.reason
    assert "declined" in found.summary() and "NaN" not in found.to_json()
    for read in (lambda: found.at(0.3), lambda: found.predict({"x": [0.3]})):
        with pytest.raises(NoResult):
            read()


def test_a_point_without_records_silences_all_of_them() -> None:
    frame = records(5_000, 5)
    frame = frame[frame["x"] < 0.6]
    for points, replied in (([0.2, 0.4], True), ([0.2, 0.95], False)):
        method = EfficientPTRKernel("y ~ x", points, 0.05, least=40.0)
        assert (released(method, frame).status == "released") == replied


def test_it_is_read_at_its_points_alone() -> None:
    method = EfficientPTRKernel("y ~ x", [0.2, 0.4], 0.05, least=40.0)
    found = method.infer(released(method, records(5_000, 6)))
    assert len(found.at([0.4, 0.2])) == 2 and found.predict({"x": [0.4]}).iloc[0] == found.estimates[1]
    with refuses(PlanError):
        found.at(0.3)
    with refuses(PlanError):
        found.conf_int(simultaneous=True)


def test_intervals_cover_and_the_sampling_part_alone_does_not() -> None:
    """40 runs at n = 5,000, (2, n^-3), two points: clustered by run, false alarm 1 in 1,000."""
    n, h, at = 5_000, 0.0364, np.array([0.35, 0.8])
    method = EfficientPTRKernel("y ~ x", at.tolist(), h, c0=0.4, residual_bound=0.8)
    target = smoothed(at, h, 1.0)
    inside, naive = list[float](), list[float]()
    for seed in range(40):
        asked = cf.ApproxDP(2.0, n**-3.0, relation="substitute")
        found = method.infer(released(method, records(n, seed), asked, SimulatedNoise(seed)))
        assert found.status == "valid"
        low, high = found.conf_int().to_numpy().T
        inside.append(float(((low <= target) & (target <= high)).mean()))
        naive.append(float((np.abs(found.estimates - target) <= 1.96 * np.sqrt(found.sampling_variance)).mean()))
    reach = stats.norm.ppf(0.9995) / sqrt(40)
    assert np.mean(inside) + reach * np.std(inside) >= 0.95
    assert np.mean(naive) + reach * np.std(naive) < 0.8


# bad input ------------------------------------------------------------------------------------------------------------


def test_bad_settings_raise() -> None:
    good: dict[str, Any] = {"formula": "y ~ x", "points": [0.5], "bandwidth": 0.1, "least": 20.0}
    wrong: list[dict[str, Any]] = [
        {"points": []},
        {"points": [nan]},
        {"points": [0.5, 0.5]},
        {"points": [(0.1, 0.2), (0.1,)]},
        {"bandwidth": 0.0},
        {"bandwidth": [0.1, inf]},
        {"kernel": "sinc"},
        {"least": 1.0},
        {"c0": 0.4},
        {"gamma_plan": 1.0},
        {"beta": 1.0},
        {"residual_bound": -1.0},
    ]
    for change in wrong:
        with refuses(PlanError):
            EfficientPTRKernel(**{**good, **change})


def test_impossible_plans_raise() -> None:
    asked = cf.ApproxDP(1.0, 1e-6)
    with refuses(PrivacyError):
        EfficientPTRKernel("y ~ x", [0.5], 0.1, least=20.0).plan(SCHEMA, cf.GDP(1.0))
    with refuses(PrivacyError):
        EfficientPTRKernel("y ~ x", [0.5], 0.1, least=20.0).plan(SCHEMA, cf.ApproxDP(1.0, 1e-6, relation="add-remove"))
    with refuses(PlanError):
        EfficientPTRKernel("y ~ x", [0.5], 0.1, c0=0.4).plan(SCHEMA, asked)
    with refuses(PlanError):
        EfficientPTRKernel("y ~ x", [0.5], 0.001, c0=0.4).plan(SCHEMA, asked, n=100)
    with refuses(PlanError):
        EfficientPTRKernel("y ~ a + b", [0.5], 0.1, least=20.0).plan(TWO, asked)
    few = EfficientPTRKernel("y ~ x", [0.5], 0.1, least=20.0, gamma_plan=2.0).plan(SCHEMA, cf.ApproxDP(0.1, 1e-6))
    assert any("gamma_plan" in text for text in few.warnings) and few.constants["planned reply"] < 0.95
