"""GradientDescent: contract, audit, presets, accuracy; the published search beside its own loop."""

from __future__ import annotations

from math import inf, nan, sqrt
from time import process_time

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import exact_cost, leaves
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method, codes_of
from confide_lab.aggregates.scores import ClippedScores
from confide_lab.methods.gradient_descent import GradientDescent
from confide_lab.published.dp_gd import REAL_DATA, SIMULATION, dp_gd, dp_gd_grid

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})


def records(n: int, seed: int, sd: float = 2.0) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + sd * g.standard_normal(n)
    return frame


def released(method: GradientDescent, frame: pd.DataFrame, noise: object, mu: float = 1.0) -> cf.Release:
    return cf.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)  # type: ignore[arg-type]


@pytest.mark.long
def test_contract() -> None:
    assert check_method(GradientDescent("y ~ a + b", iterations=2), SCHEMA, raises=False).ok


def test_audit_reaches_what_is_charged() -> None:
    found = cf.audit.audit(GradientDescent("y ~ a", iterations=2), runs=4_000, seed=1)
    assert found.ok
    exact = {(f.name, f.relation): f.lower_bound for f in found if f.attack == "exact difference"}
    # the steps' sensitivity is attained, so nothing is wasted
    assert exact["gradient_descent release", "add-remove"] > 0.999
    assert exact["gradient_descent release", "substitute"] > 0.98


@pytest.mark.long
def test_contract_of_the_default() -> None:
    assert check_method(GradientDescent("y ~ a + b"), SCHEMA, raises=False).ok


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("preset", ["fixed", "brown", "lin"])
def test_a_plan_spends_what_it_states(preset: str, relation: str) -> None:
    plan = cf.plan(GradientDescent("y ~ a + b", preset=preset), SCHEMA, cf.GDP(0.8, relation=relation))
    cost = exact_cost(plan.event)
    assert cost is not None and 0.64 * (1 - 1e-9) < float(cost.amount) <= 0.8**2
    names = [leaf.name for leaf in leaves(plan.event)]
    assert names == ["count", *(f"step {k}" for k in range(1, plan.passes))]
    count, step = plan.spend("count"), plan.spend("step 1")
    assert float(count.exact_cost.amount / cost.amount) == pytest.approx(0.01)
    # a step's bound is the clip: 2^20 steps, twice that when a record is replaced
    moved = float(step.sensitivity * step.step) / (2**20 * (2 if relation == "substitute" else 1))
    assert moved == pytest.approx(1, abs=1e-9)


def test_presets_are_their_sources_settings() -> None:
    settings = [GradientDescent("y ~ a + b", preset=p).plan(SCHEMA, cf.GDP(1.0)).constants for p in ("fixed", "brown")]
    assert settings[0] == pytest.approx({"iterations": 30, "rate": 3 / 5, "clip": 0.5 * sqrt(5 / 3)})
    assert settings[1] == pytest.approx({"iterations": 5, "rate": 1 / 3, "clip": 5 * sqrt(3)})
    own = GradientDescent("y ~ a + b", preset="lin", iterations=7, rate=0.2, clip=3).plan(SCHEMA, cf.GDP(1.0))
    assert own.constants == {"iterations": 7, "rate": 0.2, "clip": 3.0} and own.passes == 8


def test_bad_settings_raise_and_name_what_works() -> None:
    with refuses(PlanError):
        GradientDescent("y ~ a", preset="best")
    for name, value in (("rate", 0.0), ("rate", nan), ("clip", inf), ("clip", True), ("rate", "1")):
        with refuses(PlanError):
            GradientDescent("y ~ a", **{name: value})  # type: ignore[arg-type]
    with refuses(PlanError):
        GradientDescent("y ~ a", iterations=0).plan(SCHEMA, cf.GDP(1.0))
    with refuses(PlanError):
        GradientDescent("y ~ a", clip=1e7).plan(SCHEMA, cf.GDP(1.0))


def test_without_noise_many_steps_end_at_least_squares() -> None:
    frame = records(3_000, 1)
    method = GradientDescent("y ~ a + b", iterations=200, clip=20.0)
    line = method.infer(released(method, frame, ZeroNoise(), mu=1e4)).params.to_numpy()
    ols, *_ = np.linalg.lstsq(np.column_stack([np.ones(3_000), frame[["a", "b"]]]), frame["y"], rcond=None)
    np.testing.assert_allclose(line, ols, atol=2e-3)


def test_without_an_intercept_the_line_goes_through_the_origin() -> None:
    frame = records(3_000, 2)
    frame["y"] -= 1.5
    method = GradientDescent("y ~ 0 + a + b", iterations=300, clip=20.0)
    release = released(method, frame, ZeroNoise(), mu=1e4)
    theta = np.asarray(release.public["theta"])
    # the line at x = 0, in units of y: z = (1, -C/H), t = (y - 5)/25
    assert 25 * (theta @ [1.0, -0.5 / 2.5, -1.0]) + 5 == pytest.approx(0.0, abs=1e-9)
    ols, *_ = np.linalg.lstsq(frame[["a", "b"]], frame["y"], rcond=None)
    np.testing.assert_allclose(method.infer(release).params, ols, atol=5e-3)
    noisy = np.asarray(released(method, frame, SimulatedNoise(1)).public["theta"])
    assert 25 * (noisy @ [1.0, -0.5 / 2.5, -1.0]) + 5 == pytest.approx(0.0, abs=1e-9)


def test_the_worst_pairs_are_the_worst() -> None:
    _, (high, low) = GradientDescent("y ~ a + b").worst_pairs(SCHEMA)
    scores = ClippedScores(cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA), 0.6)
    one, other = scores(codes_of(cf.read(pd.DataFrame([high, low]), SCHEMA), scores)).T
    assert np.linalg.norm(one) / 2**20 == pytest.approx(1, abs=1e-4)
    assert np.linalg.norm(one - other) / 2**21 == pytest.approx(1, abs=1e-4)


def test_few_records_are_weak_and_many_are_close_to_least_squares() -> None:
    method = GradientDescent("y ~ a + b")
    weak = method.infer(released(method, records(4, 3), SimulatedNoise(1), mu=5.0))
    assert weak.status == "imprecise" and "three for each coefficient" in weak.reason
    frame = records(3_000, 4)
    matrix = np.column_stack([np.ones(3_000), frame[["a", "b"]]])
    losses = []
    for seed in range(15):
        found = method.infer(released(method, frame, SimulatedNoise(seed)))
        assert found.status == "valid" and "no_interval" in found.flags and found.bse.isna().all()
        losses.append(float(((frame["y"] - matrix @ found.params.to_numpy()) ** 2).mean()))
    ols = float(((frame["y"] - matrix @ np.linalg.lstsq(matrix, frame["y"], rcond=None)[0]) ** 2).mean())
    assert np.median(losses) < 1.15 * ols < 0.5 * float(frame["y"].var())


# the published search ------------------------------------------------------------------------------------------------


def _loop(x: np.ndarray, y: np.ndarray, settings: list[tuple[float, float, int]]) -> np.ndarray:
    """Record by record clipping, setting by setting, without noise."""
    lines = []
    for rate, clip, steps in settings:
        theta = np.zeros(x.shape[1])
        for _ in range(steps):
            gradient = x * (x @ theta - y)[:, None]
            length = np.maximum(np.linalg.norm(gradient, axis=1), 1e-300)
            theta = theta - rate * (gradient * np.minimum(1, clip / length)[:, None]).sum(axis=0) / len(x)
        lines.append(theta)
    return np.array(lines)


def _paper(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    g = np.random.default_rng(seed)
    x, beta = g.random((n, 5)), g.uniform(1, 2, 5)
    return x, np.clip(x @ beta + g.normal(size=n), 0, 7), beta


def test_the_searches_have_the_papers_sizes() -> None:
    assert (len(SIMULATION), len(set(SIMULATION)), len(REAL_DATA)) == (252, 252, 455)
    assert dp_gd.guarantee is None and dp_gd.errata and "252" in dp_gd.errata[0]


def test_all_settings_at_once_are_the_loop_and_faster() -> None:
    x, y, _ = _paper(1_000, 1)
    x[0] = 0.0  # a record without features has no score
    g = np.random.default_rng(2)
    fast, slow, lines = inf, 0.0, np.empty(0)
    for _ in range(3):
        start = process_time()
        lines = dp_gd_grid(x, y, g, mu=inf)
        fast = min(fast, process_time() - start)
    start = process_time()
    wanted = _loop(x, y, SIMULATION)
    slow = process_time() - start
    np.testing.assert_allclose(lines, wanted, atol=1e-12)
    assert fast < slow / 3  # 20 to 30 times, measured on one quiet core


def test_each_run_gets_its_own_noise_of_the_right_size() -> None:
    x, y = np.zeros((50, 2)), np.zeros(50)
    settings = [(1.0, 5.0, 4), (0.5, 2.0, 9), (1.0, 5.0, 4)] * 400
    lines = dp_gd_grid(x, y, np.random.default_rng(3), mu=2.0, settings=settings)
    # the sum of T noises of sd C sqrt(T)/mu, times rate/n
    for first, (rate, clip, steps) in enumerate(settings[:3]):
        sd = rate * clip * steps / 2.0 / 50
        drawn = lines[first::3].ravel() / sd
        assert abs(drawn.std() - 1) < 0.09 and abs(drawn.mean()) < 0.13  # 4 sds of 800 numbers
    assert abs(np.corrcoef(lines[0::3, 0], lines[2::3, 0])[0, 1]) < 0.2


def test_the_best_of_the_search_is_near_least_squares() -> None:
    x, y, beta = _paper(1_000, 4)
    found = dp_gd(x, y, np.random.default_rng(5), mu=1.0, truth=beta)
    assert found["losses"].shape == (252,) and found["losses"].min() < 0.15
    assert found["setting"] in SIMULATION
    real = dp_gd(x, y, np.random.default_rng(5), mu=1.0, settings=REAL_DATA)
    assert real["lines"].shape == (455, 5) and np.isfinite(real["beta"]).all()
