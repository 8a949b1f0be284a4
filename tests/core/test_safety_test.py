"""Safety tests that are released only when they pass: what they cost, what leaves, and how often they pass next to unsafe data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy import stats
from tests.core.safety_toy import FINE, HighMean, Mean, Safety
from tests.messages import refuses

import confide as cf
from confide.audit.replay.replay import replay
from confide.core import BudgetItem, Composed, Meter, Plan, Release, Test, exact_cost, fold, paths, seal, threshold
from confide.core.release import statements_hold
from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.noise import SecureNoise, SimulatedNoise

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1, steps=1000)}, dataset="toy")
ASKED = cf.GDP(1.0, 1e-3)
N = 40


def records(high: int, last: float = 0.0) -> np.ndarray:
    return np.r_[np.full(high, 0.75), np.zeros(N - high - 1), last]


def source(values: np.ndarray) -> object:
    import pandas as pd

    return cf.read(pd.DataFrame({"x": values}), SCHEMA)


def planned(method: HighMean | None = None, asked: object = ASKED) -> Plan:
    return cf.plan(method or HighMean(), SCHEMA, asked, n=N)


def test_the_cost_is_the_request_and_the_failure_is_counted_once() -> None:
    plan = planned()
    assert plan.guarantee.mu == 1.0 and plan.guarantee.delta == 1e-3
    cost = exact_cost(plan.event)
    assert cost is not None and cost.delta == Fraction(1e-3) and cost.amount <= 1
    assert statements_hold(plan.event, plan.guarantees)
    less = (replace(plan.guarantee, delta=9e-4),)
    assert not statements_hold(plan.event, less)
    twice = Composed((plan.event, replace(plan.event, on=replace(plan.event.on, name="again"))))
    assert exact_cost(twice).delta == 2 * Fraction(1e-3)


def test_an_epsilon_delta_request_is_met_and_leaves_room_for_the_failure() -> None:
    plan = planned(asked=cf.ApproxDP(1.0, 1e-5))
    assert plan.guarantee.delta == 5e-6
    assert cf.guarantees.gaussian_delta(1.0, plan.guarantee.mu) + plan.guarantee.delta <= 1e-5
    assert isinstance(plan.guarantees[1], cf.ApproxDP)
    for asked in (cf.GDP(1.0), cf.ZCDP(0.5)):
        with refuses(PrivacyError):
            planned(asked=asked)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-30, 0.3])
@pytest.mark.parametrize("sigma", [1 << 10, 12345, 1 << 30])
@mp.workdps(60)
def test_the_threshold_is_the_least_step_that_noise_reaches_with_at_most_delta(delta: float, sigma: int) -> None:
    on = BudgetItem("safety", "grid_gaussian", Fraction(1024), "l2", Fraction(sigma) ** 2, Fraction(1), (1,))
    least = threshold(on, Fraction(delta))
    reach = lambda steps: mp.ncdf(-(mp.mpf(steps) - mp.mpf("0.5")) / sigma)  # noqa: E731
    assert reach(least) <= mp.mpf(delta)
    # at most one step, or what double arithmetic cannot tell apart, is given away
    assert reach(least - 2 - least * mp.mpf(10) ** -8) > mp.mpf(delta)


@pytest.mark.long
def test_next_to_unsafe_data_a_reply_is_as_rare_as_delta_says() -> None:
    plan = planned(asked=cf.GDP(2.0, 0.05))
    replies, runs = 0, 20_000
    noise = SecureNoise()
    for _ in range(runs):
        with Meter(plan, noise) as meter:
            if meter.test("safety", np.array([1024], dtype=object)):
                meter.draw("mean", np.array([0], dtype=object))
                replies += 1
    low, high = stats.beta.ppf([0.0005, 0.9995], [replies, replies + 1], [runs - replies + 1, runs - replies])
    assert low <= 0.05 <= high + 5e-4


def test_unsafe_data_never_get_a_reply_and_nothing_of_the_test_leaves() -> None:
    plan = planned()
    for seed in range(200):
        release = seal(HighMean(), source(records(4)), plan, SimulatedNoise(seed))
        assert release.status == "declined" and not release.statistics
    again = Release.from_json(release.to_json())
    assert again.to_json() == release.to_json() and Plan.from_json(plan.to_json()) == plan


def test_safe_data_get_a_reply() -> None:
    release = cf.release(HighMean(), source(records(N - 5)), ASKED, ledger=None, n=N, noise=SimulatedNoise(1))
    assert release.status == "released" and set(release.statistics) == {"safety", "mean"}
    mean = float(release["mean"].decode()[0]) / FINE / 5
    sd = release["mean"].variance ** 0.5 / FINE / 5
    assert abs(mean - 0.75) < 5 * sd
    assert "if this test passes (may fail with probability 0.001)" in release.plan.summary(verbose=True)


def test_the_book_is_charged_mu_and_delta_reply_or_not(tmp_path: object) -> None:
    ledger = cf.Ledger.create(tmp_path / "ledger.db", dataset="toy", budget=cf.GDP(2.0, 1e-2, relation="substitute"))
    for high, status in ((N - 5, "released"), (2, "declined")):
        release = cf.release(HighMean(), source(records(high)), ASKED, ledger=ledger, n=N)
        assert release.status == status
        assert cf.verify(release, ledger).ok
    units = ledger.show().units
    assert units["spent_amount"] == pytest.approx(2 * 2**40) and units["spent_delta"] == pytest.approx(2e-3 * 2**60)


def test_the_meter_refuses_what_the_plan_does_not_allow() -> None:
    plan, safe, mean = planned(), np.array([1 << 20], dtype=object), np.array([0], dtype=object)
    with refuses(ReleaseError):
        Meter(plan, SimulatedNoise(1)).draw("safety", safe)
    with refuses(ReleaseError):
        Meter(plan, SimulatedNoise(1)).test("mean", safe)
    with refuses(ReleaseError), Meter(plan, SimulatedNoise(1)) as meter:
        assert not meter.test("safety", np.array([0], dtype=object))
        meter.draw("mean", mean)
    with refuses(ReleaseError), Meter(plan, SimulatedNoise(1)) as meter:
        assert meter.test("safety", safe)
    for steps in (0, 1 << 20):
        meter = Meter(plan, SimulatedNoise(1))
        meter.test("safety", np.array([steps], dtype=object))
        with refuses(ReleaseError):
            meter.test("safety", safe)


def test_a_unit_of_two_rows_is_safe_one_unit_further() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1, steps=1000)}, dataset="toy", rows_per_unit=2)
    plan = cf.plan(HighMean(), schema, ASKED, n=N)
    assert plan.spend("safety").sensitivity * plan.spend("safety").step == 2048
    far = 10**9
    for steps, replies in ((1024, False), (1025, True), (far, True)):

        class Loud(SimulatedNoise):
            def grid_gaussian(self, sigma2: Fraction, size: int) -> np.ndarray:
                return np.full(size, far)

        meter = Meter(plan, Loud(1))
        assert meter.test("safety", np.array([steps], dtype=object)) is replies
    # a neighbour of data without a reply is at most 3 * 1024 and gets no credit for it
    passed = meter.drawn("safety").values[0] * plan.spend("safety").step
    assert passed == far - 3 * 1024 + far * plan.spend("safety").step


def test_hidden_tests_are_folded_and_branched() -> None:
    plan = planned()
    assert paths(plan.event) == {frozenset(), frozenset({"safety", "mean"})}
    wrong = Test(Composed((plan.event.on,)), plan.event.then, Fraction(1, 100), shown=False)
    with refuses(PlanError):
        exact_cost(wrong)
    laplace = replace(plan.event.then, law="grid_laplace", norm="l1")
    with refuses(PlanError):
        fold(replace(plan.event, then=laplace), "substitute")


PAIRS = [
    (records(4), records(4, 0.9)),  # unsafe, next to the least safe
    (records(5), records(5, 1.0)),
    (records(20), records(20, 1.0)),
    (records(2), records(2, 1.0)),  # unsafe on both sides
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("swap", [False, True])
def test_replay_finds_nothing_in_the_method_as_it_is(pair: tuple, swap: bool) -> None:
    one, other = pair[::-1] if swap else pair
    found = replay(HighMean(), planned(), source(one), source(other))
    assert found.ok, found.problems


class Unshifted(Meter):
    """The test without the shift by one: data with a safety of at most 1 get credit for it."""

    def test(self, name: str, safety: np.ndarray) -> bool:
        one = int(self._plan.spend(name).sensitivity * self._plan.spend(name).step)
        return super().test(name, safety + one * (safety > 0))


class Halved(Safety):
    def of(self, count: int, total: int) -> int:
        return 2 * super().of(count, total)


class Careless(Mean):
    def of(self, count: int, total: int) -> int:
        return 3 * super().of(count, total)


@pytest.mark.parametrize("fault", ["unshifted", "halved", "careless"])
def test_replay_finds_planted_faults(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "unshifted":
        monkeypatch.setattr("confide.core.meter.Meter", Unshifted)
    plan = planned()
    live = dict(plan.statistics)
    if fault == "halved":
        live["safety"] = Halved(live["safety"].map, 5)
    if fault == "careless":
        live["mean"] = Careless(live["mean"].map, 5)
    plan = replace(plan, statistics=live)
    found = [replay(HighMean(), plan, source(one), source(other)) for one, other in PAIRS]
    found += [replay(HighMean(), plan, source(other), source(one)) for one, other in PAIRS]
    low, high = np.r_[np.ones(4), 0.51, np.zeros(35)], np.r_[np.ones(5), np.zeros(35)]
    found += [replay(HighMean(), plan, source(low), source(high))]
    assert not all(one.ok for one in found)


def test_releases_inside_an_opaque_one_need_it_open() -> None:
    from confide.core import OpaqueRelease

    plan = planned()
    whole = replace(plan, event=OpaqueRelease("whole", plan.guarantee, "a proof"))
    with Meter(whole, SimulatedNoise(1)) as meter:
        inner = meter.noise("whole")
        with Meter(plan, inner) as own:
            assert not own.test("safety", np.array([0], dtype=object))
        meter.opaque("whole", np.zeros(1, dtype=np.int64), Fraction(1))
        with refuses(ReleaseError):
            meter.noise("whole")
    with refuses(ReleaseError):
        Meter(plan, inner)
    with refuses(ReleaseError):
        Meter(plan, SimulatedNoise(1)).noise("mean")
