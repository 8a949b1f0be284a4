"""Safe releases through plan, gate, ledger and meter: three modes, any bound, and nothing that the safety says leaves."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isnan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
import confide.testing
from confide import engine, registry
from confide.audit import audit, falsify_safety_bound
from confide.audit.replay.recording import ReplayNoise, Request
from confide.core import SAFETY_STEPS, Plan, Release, Test, exact_cost, seal, threshold
from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees.mechanisms.ptr import exact_reply, hockey_stick
from confide.methods.ptr.classic import FINE, safety_of, vector_moves, vector_of
from confide.methods.ptr.safe_release import SafeRelease
from confide.noise import SimulatedNoise
from confide.ptr import (
    BallLikelihood,
    ClassMeans,
    LeadingEigenvector,
    LeastSquares,
    OrderStatistic,
    SafetyBound,
    all_of,
    safe_release,
)
from confide.sums.blocks import record_block
from confide.testing.test_data import ZeroNoise

X = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")}, dataset="toy")
XY = cf.Schema({"x": cf.Numeric(-1, 1, on_missing="midpoint"), "y": cf.Numeric(-1, 1, on_missing=0.0)}, dataset="toy")
MEDIAN = OrderStatistic(100, 0.0, 1.0, 0.1)
ASKED = cf.ApproxDP(2.0, 1e-4)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {**registry._registered, "safe_release": SafeRelease})
    # the recorder and the silent noise know no coin yet in every version
    if not hasattr(ReplayNoise, "bernoulli"):
        monkeypatch.setattr(ReplayNoise, "bernoulli", _recorded, raising=False)
    if not hasattr(ZeroNoise, "bernoulli"):
        monkeypatch.setattr(ZeroNoise, "bernoulli", lambda _, p, size: np.full(size, p >= 0.5), raising=False)


def _recorded(noise: Any, p: Any, size: int) -> Any:
    drawn = noise._source.bernoulli(p, size)
    noise.requests.append(Request("bernoulli", "a probability", size, 0, tuple(int(v) for v in drawn)))
    return drawn


def line(n: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, n)
    return cf.read(pd.DataFrame({"x": x, "y": 0.5 * x + generator.normal(0, 0.1, n)}), XY)


def spread(n: int) -> Any:
    return cf.read(pd.DataFrame({"x": (np.arange(n) + 0.5) / n}), X)


class Ratio(SafetyBound):
    dim, alpha = 1, 2 / 40

    def gamma(self, x: Any) -> float:
        return max(int((x[:, 0] > 0.5).sum()) - 39, 0)

    def estimate(self, x: Any) -> Any:
        return [x[x[:, 0] > 0.5, 0].mean()]


METHODS = [
    SafeRelease(MEDIAN, ("x",), gamma_plan=12),
    SafeRelease(MEDIAN, ("x",), mode="exact", gamma_plan=12),
    SafeRelease(all_of(MEDIAN, OrderStatistic(20, 0.0, 1.0, 0.2)), ("x",), gamma_plan=12),
    SafeRelease(LeastSquares(1, 1.0, 1.0, 1.0, level0=20.0), ("x", "y"), gamma_plan=20),
    SafeRelease(LeastSquares(1, 1.0, 1.0, 1.0), ("x", "y"), mode="adaptive"),
    SafeRelease(LeadingEigenvector(2, 1.0), ("x", "y"), mode="adaptive"),
    SafeRelease(BallLikelihood(1, 1.0, 1.0, 5.0), ("x", "y"), gamma_plan=20),
]


@pytest.mark.few("OrderStatistic exact", "LeastSquares adaptive", "BallLikelihood gdp")
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{type(m.bound).__name__} {m.mode}")
def test_the_contract_and_the_audit(method: SafeRelease) -> None:
    asked = ASKED if method.mode == "exact" else cf.GDP(2.0, 1e-4)
    cf.testing.check_method(method, XY, privacy=asked, replications=3)
    found = audit(method, XY, privacy=asked, runs=0)
    assert found.violated == (), str(found)


def test_the_audit_meets_both_sides_of_the_unsafe_set() -> None:
    """Data with safety 1 next to data with none: replayed, and the test is at its least there."""
    from confide.audit.replay.replay import replay

    method = SafeRelease(Ratio(), gamma_plan=20)
    plan = cf.plan(method, X, cf.GDP(2.0, 1e-3), n=60)
    safe, unsafe = np.r_[np.full(40, 0.9), np.zeros(20)], np.r_[np.full(39, 0.9), np.zeros(21)]
    for one, other in ((safe, unsafe), (unsafe, safe)):
        found = replay(method, plan, cf.read(pd.DataFrame({"x": one}), X), cf.read(pd.DataFrame({"x": other}), X))
        assert found.ok, found.problems


def test_the_integer_test_has_the_law_that_is_stated() -> None:
    """Exact probabilities of the meter's test, as the sampler draws, put through the divergence at real safeties."""
    method, epsilon = SafeRelease(MEDIAN, gamma_plan=30), 2.0
    plan = cf.plan(method, X, cf.ApproxDP(epsilon, 1e-3), n=200)
    assert isinstance(plan.event, Test)
    spend, delta = plan.event.on, float(plan.event.delta)
    sigma, least = sqrt(spend.scale), threshold(spend, plan.event.delta)
    fine = int(1 / spend.step)

    def p(gamma: float) -> float:
        steps = int(SAFETY_STEPS * gamma)
        return float(stats.norm.sf((least - max(steps - SAFETY_STEPS, 0) * fine - 0.5) / sigma)) if steps else 0.0

    mu = sqrt(plan.spend("estimate").mu_squared)
    worst = 0.0
    for gamma in np.arange(0, 40, 0.25):
        for apart in (0.25, 0.5, 1.0):
            one, other = p(gamma), p(gamma + apart)
            worst = max(worst, hockey_stick(one, other, mu, epsilon), hockey_stick(other, one, mu, epsilon))
    assert 0.9 * delta < worst <= 1e-3
    assert p(30.0) == pytest.approx(plan.constants["planned_reply"], abs=1e-6)
    cost = exact_cost(plan.event)
    assert cost is not None and float(cost.amount) <= plan.guarantee.mu**2 and float(cost.delta) <= delta


def test_zero_noise_gives_the_estimate_and_noise_has_its_size() -> None:
    data, method = line(4_000), SafeRelease(LeastSquares(1, 1.0, 1.0, 1.0, level0=400.0), gamma_plan=600)
    errors, sds = [], []
    for seed in range(60):
        result = method.infer(cf.release(method, data, ASKED, ledger=None, n=4_000, noise=SimulatedNoise(seed)))
        assert result.status == "valid"
        errors.append(float(result.estimates[0]) - 0.5)
        sds.append(sqrt(float(result.noise_variance[0])))
    assert len(set(sds)) == 1
    low, high = stats.chi2.ppf([0.0005, 0.9995], 60)
    assert low < (np.square(errors).sum() / sds[0] ** 2) < high
    # alpha R^2 kappa(1)/lam0 over the share of mu
    plan = cf.plan(method, XY, ASKED, n=4_000)
    mu = sqrt(plan.spend("estimate").mu_squared)
    assert sds[0] == pytest.approx(1.5 * sqrt(3) / 400 / mu, rel=1e-4)


def test_the_noise_of_blocks_is_weighted() -> None:
    schema = cf.Schema({"x": cf.Numeric(-1, 1, on_missing="midpoint"), "g": cf.Categorical(["a", "b"], on_missing="a")})
    bound = ClassMeans(1, 2, 1.0, n=600, c0=0.2)
    frame = pd.DataFrame({"x": np.r_[np.full(300, 0.5), np.full(300, -0.5)], "g": ["a"] * 300 + ["b"] * 300})
    method = SafeRelease(bound, gamma_plan=150)
    release = cf.release(method, cf.read(frame, schema), ASKED, ledger=None, noise=SimulatedNoise(1))
    assert release.plan.n == 600  # the bound's own
    result = method.infer(release)
    sd = np.sqrt(result.noise_variance)
    assert sd[0] * bound.weight == pytest.approx(sd[2]) and sd[0] == sd[1]
    assert (np.abs(result.estimates - [0.5, 0.5, 0.5, -0.5]) < 5 * sd).all()
    with refuses(PlanError):
        cf.plan(method, schema, ASKED, n=500)


def test_replies_are_as_frequent_as_the_law_says() -> None:
    source, method = spread(60), SafeRelease(OrderStatistic(30, 0.0, 1.0, 0.1), mode="exact", gamma_plan=30)
    asked = cf.ApproxDP(1.0, 0.05)
    plan = cf.plan(method, X, asked, n=60)
    gamma = method.bound.gamma(method.bound.prepare(((np.arange(60) + 0.5) / 60)[:, None]))
    p, runs, replies = exact_reply(1.0, 0.05, 30).probability(gamma), 600, 0
    assert 0.1 < p < 0.9
    for seed in range(runs):
        release = seal(method, source, plan, SimulatedNoise(seed))
        replies += release.status == "released"
        assert (release["reply"].values[0] == 1) == (release.status == "released")
        assert release.status == "released" or not any(release["reply"].values)
    low, high = stats.beta.ppf([0.0005, 0.9995], [replies, replies + 1], [runs - replies + 1, runs - replies])
    assert low <= p <= high


def test_an_unsafe_estimate_is_never_asked_for() -> None:
    class Careful(Ratio):
        asked = 0

        def estimate(self, x: Any) -> Any:
            type(self).asked += not x.any()  # the records are all 0, practice records are not
            return super().estimate(x)

    bound = Careful()
    data = cf.read(pd.DataFrame({"x": np.zeros(60)}), X)
    for mode, plan in (("gdp", 5.0), ("exact", 5)):
        method = SafeRelease(bound, mode=mode, gamma_plan=plan)
        for seed in range(60):
            release = cf.release(method, data, cf.ApproxDP(8.0, 0.2), ledger=None, noise=SimulatedNoise(seed))
            assert release.status == "declined" and "estimate" not in release.statistics
            result = method.infer(release)
            assert result.status == "declined" and all(isnan(v) for v in result.estimates) and result.summary()
    assert Careful.asked == 0


def test_an_adaptive_release_publishes_its_level_and_refuses_a_low_one() -> None:
    method = SafeRelease(LeastSquares(1, 1.0, 1.0, 1.0), mode="adaptive")
    release = cf.release(method, line(4_000), ASKED, ledger=None, n=4_000, noise=SimulatedNoise(3))
    level, alpha = float(release.public["level"][0]), float(release.public["alpha"][0])
    assert 1_100 < level < 4_000 / 3 + 60 and alpha == pytest.approx(1.5 * sqrt(3) / level, rel=1e-9)
    assert abs(float(method.infer(release).estimates[0]) - 0.5) < 0.05
    low = cf.release(method, line(15), ASKED, ledger=None, n=15, noise=SimulatedNoise(3))
    assert low.status == "declined" and set(low.statistics) == {"level"}
    assert method.infer(Release.from_json(low.to_json())).status == "declined"


def test_a_certificate_is_wrong_as_rarely_as_delta_says() -> None:
    """t + l <= L but for delta: over many draws of the level on data of a known one."""
    source, method = line(400), SafeRelease(LeastSquares(1, 1.0, 1.0, 1.0), mode="adaptive")
    plan = cf.plan(method, XY, cf.GDP(1.0, 0.2), n=400)
    (rows,) = source.aggregate(record_block.Collected(plan.statistic("level").map))
    bound = method.bound
    true = bound.level(bound.prepare(plan.statistic("level").map.table(rows)))
    runs = 300
    wrong = sum(
        float(seal(method, source, plan, SimulatedNoise(seed)).public["level"][0]) + bound.moves > true
        for seed in range(runs)
    )
    low, high = stats.beta.ppf([0.0005, 0.9995], [wrong, wrong + 1], [runs - wrong + 1, runs - wrong])
    assert low <= 0.2 <= high + 0.01


def test_plans_from_files_and_releases_of_live_bounds() -> None:
    for method in METHODS:
        asked = ASKED if method.mode == "exact" else cf.GDP(2.0, 1e-4)
        plan = cf.plan(method, XY, asked, n=100)
        assert engine.plan(Plan.from_json(plan.to_json()), XY) == plan
    live = SafeRelease(Ratio(), gamma_plan=20)
    data = spread(200)
    release = cf.release(live, data, ASKED, ledger=None, noise=SimulatedNoise(1))
    assert cf.infer(Release.from_json(release.to_json())).status == "valid", "a release is read without its bound"
    with refuses(PlanError):
        engine.plan(Plan.from_json(release.plan.to_json()), X)


def test_a_users_bound_is_recorded_as_asserted_and_as_tried(tmp_path: Any) -> None:
    report = falsify_safety_bound(Ratio(), [(0, 1)], n=60, restarts=2)
    assert report.verdict == "holds"
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="toy", budget=cf.GDP(4.0, 1e-3, relation="substitute"))
    data = spread(200)
    result = safe_release(Ratio(), data, privacy=cf.GDP(1.0, 1e-6), ledger=book, gamma_plan=30, report=report)
    assert result.guarantee.assumptions == (
        "asserted safety bound Ratio",
        f"attacked on {report.tried:,} pairs of neighbors, not broken",
    )
    assert len(list(book.show().entries if hasattr(book.show(), "entries") else [1])) == 1
    with refuses(PlanError):
        safe_release(
            Ratio(), data, privacy=ASKED, ledger=None, gamma_plan=30, report=replace(report, verdict="violated")
        )
    with refuses(PlanError):
        safe_release(MEDIAN, data, privacy=ASKED, ledger=None, gamma_plan=12, report=report)
    assert safe_release(MEDIAN, data, privacy=ASKED, ledger=None, gamma_plan=12).guarantee.assumptions == ()


class Bad(SafetyBound):
    dim, alpha = 2, 1.0

    def __init__(self, gamma: Any, estimate: Any) -> None:
        self._gamma, self._estimate = gamma, estimate

    def gamma(self, x: Any) -> Any:
        return self._gamma(x)

    def estimate(self, x: Any) -> Any:
        return self._estimate(x)


class Wrong(Ratio):
    """One step of a right bound replaced by a wrong one."""

    def __init__(self, **wrong: Any) -> None:
        for name, function in wrong.items():
            setattr(self, name, function)


def _raises(x: Any) -> Any:
    return x[:, 7].mean()


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimate": _raises},
        {"gamma": _raises},
        {"prepare": _raises},
        {"gamma": lambda x: x[:, 0] > 2},
        {"gamma": lambda x: -1.0},
        {"gamma": lambda x: float("nan")},
        {"estimate": lambda x: [1.0, 2.0]},
        {"estimate": lambda x: [float("nan")]},
    ],
)
def test_a_bug_in_a_bound_shows_on_practice_records_before_any_charge(wrong: Any) -> None:
    method = SafeRelease(Wrong(**wrong), gamma_plan=20)
    for mode in ("gdp", "exact"):
        with refuses(PlanError):
            cf.plan(replace(method, mode=mode), X, ASKED, n=200)
    with refuses(PlanError):
        safe_release(method.bound, spread(200), privacy=ASKED, ledger=None, gamma_plan=20, n=200)


def test_practice_asks_no_estimate_of_unsafe_data_and_tries_levels_too() -> None:
    unsafe = Wrong(gamma=lambda x: 0.0, estimate=_raises)
    assert cf.plan(SafeRelease(unsafe, gamma_plan=20), X, ASKED, n=200).n == 200
    only_alike = Wrong(gamma=lambda x: 5.0 * (len(np.unique(x)) == 1), estimate=_raises)
    with refuses(PlanError):
        cf.plan(SafeRelease(only_alike, gamma_plan=20), X, ASKED, n=200)

    class Falls(LeastSquares):
        def level(self, prepared: Any) -> float:
            return [][0]

    class NoAlpha(LeastSquares):
        def alpha_at(self, t: float) -> float:
            return float("inf")

    for cls in (Falls, NoAlpha):
        with refuses(PlanError):
            cf.plan(SafeRelease(cls(1, 1.0, 1.0, 1.0), mode="adaptive"), XY, ASKED, n=400)


def test_practice_hands_over_columns_as_records_come() -> None:
    schema = cf.Schema({"g": cf.Categorical(["a", "b"], on_missing="a"), "x": cf.Numeric(0, 1, on_missing="midpoint")})
    seen: list[Any] = []

    def gamma(x: Any) -> float:
        seen.append(x)
        return 3.0

    cf.plan(SafeRelease(Wrong(gamma=gamma), ("x", "g"), gamma_plan=20), schema, ASKED, n=50)
    assert seen[0].shape == (50, 2) and set(seen[0][:, 1]) == {0.0, 1.0} and 0 < seen[0][:, 0].min() < 0.5


def test_data_never_raise_whatever_a_bound_does() -> None:
    far = lambda x: 1e9  # noqa: E731
    table = np.zeros((5, 1))
    for gamma in (lambda x: 1 / 0, lambda x: float("nan"), lambda x: "three", lambda x: [1, 2], lambda x: -3.0):
        assert safety_of(Bad(gamma, far), table)[0] == 0
    assert safety_of(Bad(lambda x: float("inf"), far), table)[0] == SAFETY_STEPS << 40
    for estimate in (lambda x: 1 / 0, lambda x: [1.0], lambda x: None, lambda x: [float("nan"), 0.0]):
        assert list(vector_of(Bad(far, estimate), table, 1.0)) == [0, 0]
    assert [int(v) for v in vector_of(Bad(far, lambda x: [1e300, -np.inf]), table, 1.0)] == [1 << 52, -(1 << 52)]
    assert [int(v) for v in vector_of(Bad(far, lambda x: [0.5, -0.25]), table, 2.0)] == [FINE // 4, -FINE // 8]


def test_a_bound_that_writes_into_its_data_spoils_nothing() -> None:
    class Writes(Ratio):
        def prepare(self, x: Any) -> Any:
            x *= 0.5
            return x * 2

    table = np.full((60, 1), 0.9)
    assert safety_of(Writes(), table)[0] == 21 * SAFETY_STEPS
    assert vector_of(Writes(), table, 1.0)[0] == round(0.9 * FINE) and (table == 0.9).all()


def test_rounded_vectors_move_within_their_sensitivity() -> None:
    generator = np.random.default_rng(1)
    for dim in (1, 3, 7):
        for _ in range(300):
            v = generator.uniform(-5, 5, dim)
            d = generator.standard_normal(dim)
            w = v + d / np.linalg.norm(d)
            steps = []
            for one in (v, w):
                bound = Bad(lambda x: 1.0, lambda x, one=one: one)
                bound.dim = dim
                steps.append(vector_of(bound, np.zeros((1, 1)), 1.0))
            moved = sum(int(a - b) ** 2 for a, b in zip(*steps, strict=True))
            assert moved <= vector_moves(dim) ** 2
            assert moved >= (FINE - ceil(sqrt(dim))) ** 2


def test_bad_input_is_refused_before_any_record_is_read() -> None:
    good = {"bound": MEDIAN, "gamma_plan": 12}
    for wrong in (
        {"mode": "fast"},
        {"gamma_plan": None},
        {"gamma_plan": 1.0},
        {"beta": 1.0},
        {"tried": -1},
        {"bound": len},
        {"columns": ("x", "x")},
        {"mode": "adaptive"},
        {"mode": "adaptive", "gamma_plan": None},
        {"mode": "exact", "gamma_plan": 12.5},
    ):
        with refuses(PlanError):
            cf.plan(SafeRelease(**{**good, **wrong}), X, ASKED, n=100)
    method = SafeRelease(**good)
    with refuses(PlanError):
        cf.plan(method, cf.Schema({"x": cf.Numeric(0, 1)}), ASKED)
    for asked in (cf.GDP(1.0), cf.ZCDP(0.5)):
        with refuses(PrivacyError):
            cf.plan(method, X, asked)
    with refuses(PrivacyError):
        cf.plan(method, X, cf.GDP(1.0, 1e-6, relation="add-remove"))
    exact = SafeRelease(**good, mode="exact")
    with refuses(NoConversion):
        cf.plan(exact, X, cf.GDP(1.0, 1e-6))
    with refuses(PlanError):
        safe_release(MEDIAN, spread(200), privacy=ASKED, gamma_plan=12)
    with refuses(PlanError):
        cf.release(method, spread(200), ASKED, ledger=None, n=100, noise=SimulatedNoise(1))


def test_public_warnings() -> None:
    short = cf.plan(SafeRelease(MEDIAN, gamma_plan=2.0), X, cf.ApproxDP(1.0, 1e-6), n=200)
    assert any("half of the budget" in text for text in short.warnings)
    assert any(
        "above 1/n" in text
        for text in cf.plan(SafeRelease(MEDIAN, gamma_plan=12), X, cf.ApproxDP(1.0, 0.1), n=200).notes
    )
    assert not cf.plan(SafeRelease(MEDIAN, gamma_plan=60), X, cf.ApproxDP(1.0, 1e-4), n=200).warnings


def test_a_unit_of_two_rows_pays_for_both() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, on_missing="midpoint")}, rows_per_unit=2)
    one = cf.plan(SafeRelease(MEDIAN, gamma_plan=30), X, ASKED, n=200)
    two = cf.plan(SafeRelease(MEDIAN, gamma_plan=30), schema, ASKED, n=200)
    for name in ("safety", "estimate"):
        a, b = one.spend(name), two.spend(name)
        assert b.noise_sd == pytest.approx(2 * a.noise_sd, rel=1e-6)
    with refuses(PrivacyError):
        cf.plan(SafeRelease(MEDIAN, mode="exact", gamma_plan=30), schema, ASKED, n=200)


def test_nothing_secret_is_in_the_release_or_its_result() -> None:
    method = SafeRelease(MEDIAN, gamma_plan=12)
    release = cf.release(method, spread(200), ASKED, ledger=None, noise=SimulatedNoise(4))
    body = release.to_dict()
    assert set(body["statistics"]) <= {"safety", "estimate"} and body["public"] == {}
    text = str(method.infer(release).to_dict()) + str(release) + repr(method)
    gamma = method.bound.gamma(method.bound.prepare(((np.arange(200) + 0.5) / 200)[:, None]))
    assert f"gamma={gamma}" not in text and "probability" not in text.lower()
