"""Faults that the tests of a part did not see when they were planted; each test here kills one."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import confide as cf
import confide.audit
from confide.core import BudgetItem, OpaqueRelease, Test, exact_cost
from confide.core.events import event_from_dict, event_to_dict
from confide.core.release import statements_hold
from confide.methods.ptr import classic
from confide.methods.ptr.classic import DistanceTest, StableRelease, geometric_threshold
from confide.methods.ptr.safe_release import SafeRelease
from confide.methods.regression.certified.reading import LeastEigenvalue
from confide.noise import SimulatedNoise
from confide_lab.aggregates.posterior import quantile_of, reach_of
from confide_lab.methods import AdaOPS, PosteriorSampling


def spend(name: str) -> BudgetItem:
    return BudgetItem(name, "grid_gaussian", Fraction(1), "l2", Fraction(4), Fraction(1), (1,))


class Fixed:
    """Noise that says one number and writes down what it was asked for."""

    simulated = True

    def __init__(self, number: int) -> None:
        self.number, self.asked = number, list[tuple[str, Fraction, int]]()

    def __getattr__(self, law: str) -> Any:
        def draw(scale: Any, size: int) -> Any:
            self.asked.append((law, Fraction(scale), size))
            return np.full(size, self.number)

        return draw


def test_the_failure_of_a_certificate_counts() -> None:
    """Planted: exact_cost adds the delta of hidden tests alone."""
    event = Test(spend("a"), spend("b"), Fraction(1, 100), True)
    cost = exact_cost(event)
    assert cost is not None and cost.delta == Fraction(1, 100)
    assert not statements_hold(event, (cf.GDP(1.0, 0.005, relation="substitute"),))


@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        cf.GDP(0.1, relation="add-remove"),
        cf.GDP(0.1, relation="substitute", assumptions=("at most 7 records",)),
        cf.GDP(0.1, relation="substitute", unit="row"),
        cf.GDP(0.1, relation="substitute", trust="local"),
    ],
    ids=["relation", "assumption", "unit", "trust"],
)
def test_what_follows_a_test_protects_what_the_plan_says(other: cf.GDP, shown: bool) -> None:
    """Planted: `_bounds_fit` does not look into tests."""
    event = Test(spend("a"), OpaqueRelease("b", other, "proof"), Fraction(1, 1000), shown)
    assert not statements_hold(event, (cf.GDP(1.0, 0.01, relation="substitute"),))


def test_a_certificate_is_for_every_row_of_a_unit() -> None:
    """Planted: the level of a unit of two rows is lowered by one move."""
    bound = cf.ptr.LeastSquares(1, 1.0, 1.0, 1.0)
    level = 50 * classic.FINE
    one, two = (classic.certificate(bound, level, 0, rows) for rows in (1, 2))
    assert 0 < two <= one - bound.moves * (1 - 1e-9)
    schema = cf.Schema(
        {"x": cf.Numeric(-1, 1, on_missing=0.0), "y": cf.Numeric(-1, 1, on_missing=0.0)}, rows_per_unit=2
    )
    data = pd.DataFrame({"x": np.tile([-1.0, 1.0], 100), "y": np.zeros(200)})
    method = SafeRelease(bound, mode="adaptive")
    release = cf.release(method, cf.read(data, schema), cf.GDP(8.0, 1e-2), ledger=None, n=200, noise=SimulatedNoise(3))
    noisy = float(release["level"].decode()[0]) / classic.FINE * bound.moves
    reached = cf.core.threshold(release.plan.spend("level"), release.plan.event.delta)  # type: ignore[union-attr]
    reached = float(reached * release.plan.spend("level").step) / classic.FINE * bound.moves
    assert release.public["level"][0] == pytest.approx(noisy - reached - 2 * bound.moves, abs=1e-5)


def test_tests_do_not_pass_at_their_threshold() -> None:
    """Planted: >= in place of > in the distance tests, P(N >= T) is above delta."""
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-3), (3.0, 0.2)):
        at = geometric_threshold(epsilon, delta)
        assert StableRelease(epsilon, delta)(0, "x", Fixed(at)) is None  # type: ignore[arg-type]
        assert StableRelease(epsilon, delta)(0, "x", Fixed(at + 1)) == "x"  # type: ignore[arg-type]
        test = DistanceTest(epsilon, delta, 1.0, cf.PureDP(1.0))
        assert not test.passes(0, Fixed(at)) and test.passes(0, Fixed(at + 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 4, 30])
def test_noise_after_a_distance_test_is_for_the_whole_vector(size: int) -> None:
    """Planted: the l1 sensitivity of a vector of d coordinates divided by d."""
    noise = Fixed(100)
    DistanceTest(1.0, 1e-6, 0.5, cf.PureDP(0.25))(50, np.zeros(size), noise)  # type: ignore[arg-type]
    law, scale, drawn = noise.asked[-1]
    assert (law, drawn) == ("grid_laplace", size) and scale >= Fraction((1 << 20) + size) * 4
    DistanceTest(1.0, 1e-6, 0.5, cf.GDP(0.25))(50, np.zeros(size), noise)  # type: ignore[arg-type]
    law, scale, drawn = noise.asked[-1]
    assert (law, drawn) == ("grid_gaussian", size) and scale >= Fraction((1 << 20) + 2 * int(sqrt(size))) ** 2 * 16


def test_a_reply_by_a_hair_is_marked() -> None:
    """Planted: `conditional_on_reply` is never set in the adaptive mode."""
    schema = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
    method, seen = cf.regression.EfficientPTR("y ~ x"), set[bool]()
    for n in range(44, 240, 4):
        data = pd.DataFrame({"x": np.tile([-1.0, 1.0], n // 2), "y": np.zeros(n)})
        noise = SimulatedNoise(n)
        release = cf.release(method, cf.read(data, schema), cf.GDP(0.5, 1e-4), ledger=None, noise=noise)
        if release.status == "declined":
            continue
        least = release.plan.statistics.get("eigenvalue") or method.plan(schema, cf.GDP(0.5, 1e-4)).statistic(
            "eigenvalue"
        )
        assert isinstance(least, LeastEigenvalue)
        sd = sqrt(release["eigenvalue"].variance) / least.unit
        hair = float(release.public["level"][0]) - least.map.least < float(stats.norm.ppf(0.95)) * sd
        assert ("conditional_on_reply" in method.infer(release).flags) == hair
        seen.add(hair)
    assert seen == {True, False}


def test_the_response_of_a_line_with_a_start_is_within_reach() -> None:
    """Planted: Y = 1 where lines pass through a start that is not 0; responses r - u'start are longer."""
    schema = cf.Schema({"x": cf.Numeric(-1, 3, steps=5), "y": cf.Numeric(5, 7, steps=3)})
    method = PosteriorSampling("y ~ x - 1")
    design = method._design(schema)
    rows, (start, basis) = method._rows(design), method._lines(design)
    corners = np.array([[i, j] for i in range(5) for j in range(3)], dtype=np.float64).T
    coded = rows(corners)
    left = coded[-1] / 2**20 - start @ (coded[:-1] / rows.steps)
    bound, reach = reach_of(rows, start)
    assert np.abs(left).max() > 1.5  # the start matters here
    assert np.abs(left).max() <= reach
    assert np.linalg.norm(basis.T @ (coded[:-1] / rows.steps), axis=0).max() <= bound
    # and the certificate is never below it
    assert method._residual(design).bound(-1e12, 0.0) >= np.log(np.abs(left).max())


@pytest.mark.parametrize("privacy", [cf.GDP(0.01, 1e-9), cf.GDP(0.02, 1e-9)])
def test_no_reply_holds_no_numbers(privacy: cf.GDP) -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    data = cf.read(schema.sample(20, seed=2), schema)
    for method in (
        cf.regression.EfficientPTR("y ~ x"),
        PosteriorSampling("y ~ x", penalty=0.01, target="ridge"),
        AdaOPS("y ~ x", penalty=0.01),
    ):
        found = method.infer(cf.release(method, data, privacy, ledger=None, noise=SimulatedNoise(1)))
        assert found.status == "declined"
        assert np.isnan(found.estimates).all() and np.isnan(found.covariance).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_a_certified_eigenvalue_leaves_room_for_every_row_of_a_unit(rows: int) -> None:
    """Planted: the margin without X^2, so that the certificate holds for the records and not for their neighbours."""
    schema = cf.Schema({"x": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)}, rows_per_unit=rows)
    method = cf.regression.EfficientPTR("y ~ x")
    plan = method.plan(schema, cf.GDP(1.0, 1e-4))
    event, least = plan.event, plan.statistic("eigenvalue")
    assert isinstance(event, Test) and isinstance(event.on, BudgetItem) and isinstance(least, LeastEigenvalue)
    line = plan.statistic("line")
    noise = float(cf.core.threshold(event.on, event.delta) * event.on.step) / least.unit
    assert method._margin(event, line) >= noise + rows * least.map.least * (1 - 1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("failure", [1e-2, 1e-4, 1e-6])
def test_quantiles_count_the_rounding_of_the_noise(failure: float) -> None:
    """Planted: no half step; P(noise > q) is then above the failure where the noise is a few steps wide."""
    for scale in (Fraction(1), Fraction(4), Fraction(9, 2), Fraction(25)):
        for step in (Fraction(1), Fraction(1, 8)):
            one = BudgetItem("a", "grid_gaussian", Fraction(1), "l2", scale, step, (1,))
            first = int(quantile_of(one, Fraction(failure)) / float(step) // 1) + 1  # the least step above it
            assert stats.norm.sf((first - 0.5) / sqrt(scale)) <= failure * (1 + 1e-9)


def test_a_file_keeps_the_failure_of_a_certificate() -> None:
    """Planted: the delta of a shown test is left out of the file, which then states what nobody pays for."""
    for event in (
        Test(spend("a"), spend("b"), Fraction(1, 1000), True),
        Test(spend("a"), spend("b"), Fraction(1, 1000), False),
        Test(spend("a"), spend("b")),
    ):
        assert event_from_dict(event_to_dict(event)) == event


def test_the_search_looks_at_neighbours_without_a_safety() -> None:
    """Planted: C2 tried on pairs alone of which both are safe."""

    class Jump(cf.ptr.SafetyBound):
        dim, alpha = 1, 0.5

        def gamma(self, prepared: Any) -> float:
            return float(max(int((prepared[:, 0] > 0).sum()) - 6, 0))

        def estimate(self, prepared: Any) -> Any:
            positive = prepared[prepared[:, 0] > 0, 0]
            return np.array([positive.mean() if len(positive) > 6 else 100.0])

    assert cf.audit.falsify_safety_bound(Jump(), [(-1, 1)], n=12, restarts=6).verdict == "violated"
