"""Forecasts of logistic lines: the release's own rounds on weighted practice records, and that what is likely is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import confide as cf
from confide.aggregates.cells.histogram import Histogram
from confide.aggregates.lines.blocks import BlockGram
from confide.aggregates.lines.ranges import CellIndices, RangeCells
from confide.aggregates.lines.rows import Box
from confide.aggregates.lines.whitened_rows import Frame, WhitenedRows
from confide.aggregates.scores.fisher_rows import FisherRows, FisherScores, InformationIndices
from confide.aggregates.scores.fisher_sums import Excess, FisherSum
from confide.methods.regression.forecast import _entry
from confide.methods.regression.likelihood.logistic_design import binary_design
from confide.methods.regression.likelihood.simulated_draw import Plain, SimulatedMeter, WeightedSource
from confide.methods.regression.practice import shapes
from confide.noise import SimulatedNoise
from confide.protocol import Gram, Total, seal
from confide.regression import Logistic, Poisson

BOX = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(3)}, "y": cf.Integer(0, 1)})
FORMULA = "y ~ x0 + x1 + x2"


def records(n: int, width: float, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame(g.normal(0, width, (n, 3)).clip(-1, 1), columns=["x0", "x1", "x2"])
    return frame.assign(y=(g.random(n) < expit(frame.x0 / width - 0.5)).astype(int))


def test_weighted_sums_are_those_of_a_release_where_each_record_stands_for_itself() -> None:
    design, _ = binary_design(FORMULA, BOX)
    frame = records(300, 0.3, 1)
    source = cf.read(frame, BOX)
    codes = np.array([BOX[name].code(frame[name].to_numpy(dtype=float)) for name in design.columns])
    at = Frame.of(Box.of(design), np.diag([1.0, 3, 3, 3]), np.array([0.1, 1.0, 0.0, -0.5]), 1.0)
    statistics = [
        RangeCells(CellIndices(design)),
        BlockGram(WhitenedRows(design).at(Frame.start(Box.of(design)), 2.0), (64, 64, 12)),
        FisherSum(FisherRows(design).at(at, 1.5, 2.0)),
        Histogram(InformationIndices(design).at(at, 1.5, 1.0)),
        Gram(FisherScores(design).at(at, 1.5, 2.0)),
        Total(Excess(design).at(at, 1.5, 0.5), nonnegative=True),
    ]
    own = WeightedSource(codes, np.ones(300)).aggregate(*statistics)
    for found, exact in zip(own, source.aggregate(*statistics), strict=True):
        np.testing.assert_allclose(found, np.array(exact, dtype=float), rtol=1e-12)
    twice = WeightedSource(codes, np.full(300, 2.0)).aggregate(*statistics)
    assert all(np.allclose(2 * one, two) for one, two in zip(own, twice, strict=True))
    # what has no weighted sum is summed over records of equal weight
    even = WeightedSource(codes, np.ones(300))._even(statistics[-2])
    np.testing.assert_allclose(even, own[-2], atol=0.02 * np.abs(own[-2]).max())


def test_simulated_noise_has_the_sds_of_the_plan() -> None:
    design = binary_design(FORMULA, BOX)[0]
    statistics = {"a": Histogram(InformationIndices(design)), "b": Gram(FisherScores(design))}
    meter = SimulatedMeter(Plain(statistics, {"a": 2.0, "b": 2.0}, {}), np.random.default_rng(1), "1")
    drawn = np.array([meter.draw("a", np.zeros(26)).decode() for _ in range(400)])
    # 10,400 numbers: five sds of a standard deviation are 3.5 %
    assert drawn.std() == pytest.approx(2.0, rel=0.035)
    matrices = np.array([meter.draw("b", np.zeros((4, 4))).decode() for _ in range(2_000)])
    assert np.array_equal(matrices, matrices.transpose(0, 2, 1))
    assert np.diagonal(matrices, axis1=1, axis2=2).std() == pytest.approx(2.0, rel=0.04)
    assert matrices[:, 0, 1:].std() == pytest.approx(2.0 / np.sqrt(2), rel=0.05)


def test_more_records_and_more_budget_make_answers_likelier_and_the_plan_stays_the_same() -> None:
    cells = ((500, 0.3), (20_000, 0.3), (20_000, 3.0))
    plans = [cf.plan(Logistic(FORMULA), BOX, cf.GDP(mu), n=n) for n, mu in cells]
    for kind in ("ok", "answered"):
        few, many, dear = (plan.forecast[kind][f"{n:,}"] for plan, (n, _) in zip(plans, cells, strict=True))
        # some feature's bounds are far in 1 - .95^3 = .14 of the shapes
        assert few < 0.5 < many <= dear + 0.05 and dear >= 0.7
    assert plans[0].sha256 == plans[1].sha256


def test_an_interval_holds_the_realised_standard_errors() -> None:
    plan = cf.plan(Logistic(FORMULA), BOX, cf.GDP(1.0), n=5_000)
    for width in (0.15, 0.4):
        release = seal(Logistic(FORMULA), cf.read(records(5_000, width, 2), BOX), plan, SimulatedNoise(2))
        found = Logistic(FORMULA).infer(release)
        assert found.status == "ok"
        for name in ("x0", "x1", "x2"):
            low, high = plan.forecast["5,000"][name]
            assert low <= found.bse[name] <= high, (width, name)


def test_a_stated_share_of_the_outcome_and_narrow_features_count() -> None:
    def chance(share: float, low: float = -1.0) -> float:
        columns = {f"x{j}": cf.Numeric(low, 1, typical=cf.Typical(-0.9, 0.9, own=1.0)) for j in range(3)}
        schema = cf.Schema({**columns, "y": cf.Categorical(["no", "yes"], typical=[1 - share, share])})
        return cf.plan(Logistic(FORMULA), schema, cf.GDP(1.0), n=2_000).forecast["ok"]["2,000"]

    assert chance(0.5) >= 0.8 > chance(0.01)
    # bounds far beyond the values are not answered for
    assert chance(0.5, low=-400.0) <= 0.2


def test_shapes_keep_the_codes_that_they_were_made_from() -> None:
    design, _ = binary_design(FORMULA, BOX)
    for shape in shapes(design, BOX, 3):
        assert shape.codes is not None
        terms, _ = design.codes(shape.codes)
        steps = np.array([term.steps - 1.0 for term in design.terms])
        np.testing.assert_allclose(2 * terms[:-1].T / steps - 1, shape.scaled[:, 1:])


def test_an_outcome_between_0_and_1_is_foreseen_as_one_of_0_and_1() -> None:
    wide = cf.Schema({**BOX.columns, "y": cf.Numeric(0, 1)})
    one, other = (cf.plan(Logistic(FORMULA), schema, cf.GDP(1.0), n=10_000).forecast["ok"] for schema in (BOX, wide))
    assert abs(one["10,000"] - other["10,000"]) <= 0.2


@pytest.mark.long
def test_counts_are_foreseen_by_where_they_lie_within_their_bound() -> None:
    columns = {f"x{j}": cf.Numeric(-1, 1, typical=cf.Typical(-0.8, 0.8, own=1.0)) for j in range(2)}

    def said(high: int, typical: tuple[float, float]) -> Mapping[str, Any]:
        schema = cf.Schema({**columns, "y": cf.Integer(0, high, typical=typical)})
        return cf.plan(Poisson("y ~ x0 + x1"), schema, cf.GDP(1.0), n=5_000).forecast

    near, wide, far = said(20, (0, 8)), said(60, (0, 8)), said(2_000, (0, 8))
    assert near["ok"]["5,000"] >= 0.8 > 0.5 >= far["ok"]["5,000"]
    # every second shape is of a quantity that varies less than counts do, whose intervals are those of counts all the same
    assert near["price"]["5,000"] < 3 < wide["price"]["5,000"] < 10 < far["price"]["5,000"]


def test_a_release_of_counts_has_standard_errors_within_what_was_said() -> None:
    g = np.random.default_rng(3)
    frame = pd.DataFrame({name: g.uniform(-0.9, 0.9, 5_000) for name in ("x0", "x1")})
    frame["y"] = g.poisson(np.exp(0.8 + 0.5 * frame.x0 - 0.4 * frame.x1)).clip(0, 20)
    schema = cf.Schema({"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Integer(0, 20)})
    method = Poisson("y ~ x0 + x1")
    plan = cf.plan(method, schema, cf.GDP(1.0), n=5_000)
    found = method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(2)))
    assert found.status == "ok"
    for name in ("x0", "x1"):
        low, high = plan.forecast["5,000"][name]
        assert low <= found.bse[name] <= high, name


def test_counts_that_vary_less_than_poisson_counts_and_zeros_in_excess_lie_within_what_was_said() -> None:
    g = np.random.default_rng(4)
    frame = pd.DataFrame({name: g.normal(0, 0.3, 5_000).clip(-1, 1) for name in ("x0", "x1")})
    rate = np.exp(0.3 * frame.x0 - 0.2 * frame.x1)
    schema = cf.Schema({"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Integer(0, 40)})
    method = Poisson("y ~ x0 + x1")
    plan = cf.plan(method, schema, cf.GDP(3.0), n=5_000)
    for y in (g.binomial(40, 0.5 * rate), g.poisson(16 * rate) * (g.random(5_000) < 0.25)):
        data = cf.read(frame.assign(y=y.clip(0, 40)), schema)
        found = method.infer(seal(method, data, plan, SimulatedNoise(2)))
        assert found.status == "ok"
        for name in ("x0", "x1"):
            low, high = plan.forecast["5,000"][name]
            assert low <= found.bse[name] <= high, name


def test_no_range_is_said_where_next_to_no_shape_is_answered() -> None:
    errors = np.array([np.nan] * 30 + [0.5, 0.6])
    assert _entry(errors, False) is None
    assert _entry(errors, True) == 0.55
    low, high = _entry(np.linspace(1, 2, 12), False)
    assert (low, high) == (1, 2)
