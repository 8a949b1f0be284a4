"""The one forecast: exact sums, for every method; realised standard errors bear it out, and a release never runs it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide import forecast as forecasts
from confide.advice import advise
from confide.core import Gram, Total, seal
from confide.core.ranges import ColumnRange, ranged, recoded_columns
from confide.forecast import Forecast, Simulated, _entry, run
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.fisher_rows import FisherRows, FisherScores, InformationIndices
from confide.methods.regression.glm.sums import Excess, FisherSum
from confide.methods.regression.sums.linear_rows import BlockGram, CellIndices, RangeCells
from confide.methods.regression.sums.whitened_rows import Frame, WhitenedRows
from confide.noise import SimulatedNoise
from confide.registry import make
from confide.scenarios import Columns, scenario_frame
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import Box
from confide.sums.integer_functions import OfRecords
from tests.few import few
from tests.messages import refuses
from tests.third_party import Mean

TOLD = cf.Schema(
    {
        "a": cf.Numeric(0, 100, typical=cf.Typical(20, 60, own=1.0)),
        "b": cf.Numeric(-5, 5, typical=cf.Typical(-2, 2, own=1.0)),
        "g": cf.Categorical(["u", "v", "w"], typical=[0.7, 0.25, 0.05]),
        "h": cf.Categorical(["no", "yes"], typical=[0.5, 0.5]),
        "y": cf.Numeric(0, 50, typical=cf.Typical(10, 40, own=0.5)),
    }
)
BARE = TOLD.bare
BOX = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(3)}, "y": cf.Integer(0, 1)})
OUTCOME = "y ~ x0 + x1 + x2"


def of(formula: str, schema: cf.Schema, n: int | None = 4_000) -> Any:
    """Of a line that is drawn fast."""
    return cf.plan(cf.regression.SSP(formula), schema, cf.GDP(1.0), n=n).forecast


# one run --------------------------------------------------------------------------------------------------------------


class Kept(OfRecords):
    """Rows themselves: no sum, so that repeated records must be repeated."""

    def __init__(self, map: Any) -> None:
        self.map = map

    def of(self, sums: Any) -> Any:
        return np.array([sums.shape[1], float(sums.sum())])


def test_sums_are_those_of_the_repeated_records() -> None:
    design, _ = binary_design(OUTCOME, BOX)
    g = np.random.default_rng(1)
    frame = pd.DataFrame(g.normal(0, 0.3, (60, 3)).clip(-1, 1), columns=["x0", "x1", "x2"]).assign(
        y=g.integers(0, 2, 60)
    )
    counts = g.integers(0, 40, 60)
    codes = {name: BOX[name].code(frame[name].to_numpy(dtype=float)) for name in BOX.names}
    at = Frame.of(Box.of(design), np.diag([1.0, 3, 3, 3]), np.array([0.1, 1.0, 0.0, -0.5]), 1.0)
    statistics = [
        RangeCells(CellIndices(design)),
        BlockGram(WhitenedRows(design).at(Frame.start(Box.of(design)), 2.0), (64, 64, 12)),
        FisherSum(FisherRows(design).at(at, 1.5, 2.0)),
        Histogram(InformationIndices(design).at(at, 1.5, 1.0)),
        Gram(FisherScores(design).at(at, 1.5, 2.0)),
        Total(Excess(design).at(at, 1.5, 0.5), nonnegative=True),
        Kept(FisherRows(design).at(at, 1.5, 2.0)),
    ]
    simulated = Simulated(BOX, codes, counts)
    repeated = cf.read(frame.loc[frame.index.repeat(counts)].reset_index(drop=True), BOX)
    assert simulated.count() == counts.sum() == repeated.count()
    for own, exact in zip(simulated.aggregate(*statistics), repeated.aggregate(*statistics), strict=True):
        assert np.array_equal(np.array(own, dtype=object), np.array(exact, dtype=object))


def test_columns_are_coded_again_in_a_copy_of_one_draw_and_give_the_same_integers() -> None:
    g = np.random.default_rng(2)
    codes = {name: g.integers(0, TOLD[name].steps, 50).astype(float) for name in ("a", "y")}
    source, own = (
        Simulated(TOLD, codes, g.integers(0, 3 * 10**9, 50)),
        Gram(WhitenedRows(ModelMatrix.of("y ~ a", TOLD))),
    )
    found = {"a": ColumnRange(10.0, 60.0)}
    (before,), (expected,) = source.aggregate(own), recoded_columns(source, ranged(TOLD, found), found).aggregate(own)
    with source.kept(["fine(a)", "y"]) as kept:
        (again,) = recoded_columns(kept, ranged(TOLD, found), found, alone=True).aggregate(own)
        assert again.tolist() == expected.tolist() == kept.aggregate(own)[0].tolist() != before.tolist()
    assert source.aggregate(own)[0].tolist() == before.tolist()


def test_a_forecast_is_the_same_each_time() -> None:
    one, again = (of("y ~ a", TOLD) for _ in range(2))
    assert one is not again and dict(one) == dict(again)


# who has one ----------------------------------------------------------------------------------------------------------


def test_a_third_partys_method_has_a_forecast_and_realises_it() -> None:
    plan = cf.plan(Mean("a"), TOLD, cf.GDP(0.2), n=4_000)
    number, (low, high) = plan.forecast["4,000"]["mean"], plan.forecast["between"]["4,000"]["mean"]
    assert f"{number:.4g} ({low:.4g} to {high:.4g})" in plan.summary()
    frame = scenario_frame(TOLD, Columns((), ("a",)), 4_000, 100)
    done = cf.release(Mean("a"), cf.read(frame, TOLD), cf.GDP(0.2), ledger=None, noise=SimulatedNoise(1))
    error = float(Mean("a").infer(done).bse["mean"])
    assert number / 1.5 < error < number * 1.5
    wished = cf.plan(Mean("a"), TOLD, margin={"mean": 0.8}, n=4_000)
    assert 1.959964 * wished.forecast["4,000"]["mean"] <= 0.8
    assert cf.margins_by_cost(Mean("a"), TOLD, n=4_000, levels=(0.2, 1.0)).rows["mean"][0] == (number, number)


class _Broken(Mean):
    """One whose reading fails."""

    def table(self, *given: Any) -> Any:
        raise ValueError("no mean")


def test_what_fails_in_a_forecast_is_told_with_its_cause() -> None:
    with refuses(cf.errors.PlanError):
        dict(cf.plan(_Broken("a"), TOLD, cf.GDP(0.2), n=4_000).forecast)


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (cf.regression.SSP("y ~ a + b"), {"Intercept", "a", "b"}),
        (cf.regression.EfficientPTR("y ~ a + b"), {"Intercept", "a", "b"}),
        (cf.curves.Kernel("y ~ a", bandwidth=8.0), {"curve"}),
        (cf.classification.ClassMeans("g ~ a"), {"P(u)", "P(v)", "P(w)", "a | u", "a | v", "a | w"}),
        (cf.tests.Correlation("a + y"), {"r(a, y)"}),
        (cf.tables.Ratios("y / a ~ 1", inference="population"), {"y / a"}),
        (make("column_ranges", columns="a + y"), {"a", "y"}),
    ],
)
def test_every_method_with_standard_errors_has_one(method: Any, names: set[str]) -> None:
    privacy = cf.GDP(1.0, 1e-6) if method.name == "efficient_ptr" else cf.GDP(1.0)
    assert not method.plan(TOLD, privacy, n=4_000).forecast
    found = cf.plan(method, TOLD, privacy, n=4_000).forecast
    assert set(found["4,000"]) == names and 0 <= found["valid"]["4,000"] <= 1


def test_what_has_no_standard_errors_or_asks_for_more_than_sums_has_none() -> None:
    for method in (cf.voting.Plurality("g"), cf.synthesis.SyntheticTable("y ~ a"), cf.tests.Kruskal("y ~ g")):
        assert not cf.plan(method, TOLD, cf.GDP(1.0) if method.native == "GDP" else cf.PureDP(1.0), n=4_000).forecast
    clustered = cf.Schema(TOLD.columns, unit=cf.Unit("pid"), cluster=cf.Clusters("school", size=20))
    assert not cf.plan(cf.regression.LeastSquares("y ~ a"), clustered, cf.GDP(1.0), n=4_000).forecast


def test_a_release_does_not_pay_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("a forecast was simulated")

    monkeypatch.setattr(forecasts, "simulated", never)
    source = cf.read(TOLD.sample(500, 1), TOLD)
    done = cf.release(cf.regression.LeastSquares("y ~ a"), source, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    assert cf.infer(done).names == ("Intercept", "a") and not done.plan.forecast
    plan = cf.plan(cf.regression.LeastSquares("y ~ a"), TOLD, cf.GDP(1.0), n=4_000)
    assert "forecast" not in plan.to_json() and plan == cf.plan(plan, TOLD)
    with refuses(AssertionError):
        plan.summary()


def test_persons_are_simulated_under_their_own_noise() -> None:
    persons = cf.Schema(TOLD.columns, unit=cf.Unit("pid", rows=4))
    own, alone = (
        cf.plan(cf.regression.LeastSquares("y ~ g"), one, cf.GDP(1.0), n=4_000).forecast for one in (persons, TOLD)
    )
    # four times the noise, which is a part of the variance
    assert 1.1 * alone["4,000"]["g[T.v]"] < own["4,000"]["g[T.v]"] < 4 * alone["4,000"]["g[T.v]"]
    within = cf.plan(cf.regression.Within("y ~ a"), cf.Schema(TOLD.columns, unit=cf.Unit("pid")), cf.GDP(1.0), n=20_000)
    assert set(within.forecast["20,000"]) == {"a"} and within.forecast["valid"]["20,000"] > 0.5


def test_a_subgroup_is_forecast_as_its_records_alone() -> None:
    part = cf.plan(cf.regression.SSP("y ~ a", where="h == 'yes'"), TOLD, cf.GDP(1.0), n=8_000)
    assert part.forecast["4,000"] == of("y ~ a", TOLD, 4_000)["4,000"]
    assert f"Privacy share {1 - 1 / part.forecast['price']['4,000'] ** 2:.0%}" in part.summary()


# what it promises -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.parametrize("formula", few(["y ~ a + b", "y ~ a + g", "y ~ 0 + g"], 1))
def test_a_number_where_all_is_stated_else_an_interval_that_is_wider_than_it(formula: str) -> None:
    point, wide = of(formula, TOLD), of(formula, BARE)
    assert "median" in point["assumes"] and "98% of those in" in wide["assumes"]
    assert set(point["4,000"]) == set(ModelMatrix.of(formula, TOLD).names)
    for name, number in point["4,000"].items():
        low, high = wide["4,000"][name]
        least, most = point["between"]["4,000"][name]
        assert least <= number <= most < 40 * least
        # the stated response lies in the middle of its bounds, where noise in counts costs least
        assert isinstance(number, float) and low / 1.25 <= number <= high and high > 3 * low


@pytest.mark.parametrize("formula", [pytest.param("y ~ a + b", marks=pytest.mark.long), "y ~ g"])
def test_realised_standard_errors_of_records_as_stated_are_the_predicted_ones(formula: str) -> None:
    method = cf.regression.LeastSquares(formula)
    point = cf.plan(method, TOLD, cf.GDP(1.0), n=4_000).forecast["4,000"]
    errors = []
    # scenarios that the forecast has not seen; of one release the width depends on what its noise shows
    for k in range(48, 60):
        columns = Columns(tuple(name for name in ("a", "b", "g") if name in formula), ("y",))
        source = cf.read(scenario_frame(TOLD, columns, 4_000, k), TOLD)
        table = cf.infer(cf.release(method, source, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(k)))
        assert table.status in ("valid", "partial")
        errors.append(table.bse.to_numpy())
    ratio = np.nanmedian(errors, axis=0) / np.array(list(point.values()))
    assert (ratio > 1 / 1.5).all() and (ratio < 1.5).all(), ratio


@pytest.mark.usefixtures("whole_forecasts")
def test_an_interval_holds_so_many_of_other_scenarios_of_the_family() -> None:
    plan = cf.plan(cf.regression.SSP("y ~ a + b"), BARE, cf.GDP(1.0), n=4_000)
    told, held = plan.forecast["4,000"], []
    setting = forecasts.Setting.of(plan, cf.regression.SSP("y ~ a + b"), BARE, 4_000)
    for one in setting.runs(4_000, 120)[48:]:
        for name, error in one.seen.errors.items():
            low, high = told[name]
            held += [low / 1.03 <= error <= high * 1.03] if np.isfinite(error) else []
    # 98 % are promised; the coefficients of a scenario go together, so that 72 tell it to a few hundredths
    assert 0.93 <= np.mean(held) <= 1.0, np.mean(held)


def test_more_records_and_more_budget_bring_smaller_errors_and_answers() -> None:
    table = of("y ~ a + b", TOLD, None)
    sizes = [table[key]["a"] for key in ("1,000", "10,000", "100,000")]
    assert sizes[0] > 2.5 * sizes[1] > 5 * sizes[2]
    assert table["price"]["1,000"] > table["price"]["100,000"] >= 1.0
    poor = cf.plan(cf.regression.SSP("y ~ a + b"), BARE, cf.GDP(0.05), n=200)
    assert poor.forecast["valid"]["200"] <= 0.2
    assert "all coefficients: chance low (" in " ".join(poor.summary().split())
    rich = cf.plan(cf.regression.SSP("y ~ a + b"), TOLD, cf.GDP(1.0), n=20_000)
    assert "all coefficients: chance high (" in " ".join(rich.summary().split())


@pytest.mark.long
@pytest.mark.usefixtures("whole_forecasts")
def test_what_nothing_public_tells_apart_shares_one_interval() -> None:
    wide = of("y ~ a + b", BARE)["4,000"]
    # half-ranges of 50 and 5; numbers are rounded to two digits
    for end in (0, 1):
        assert wide["a"][end] * 50 == pytest.approx(wide["b"][end] * 5, rel=0.06)
    some = cf.Schema({**BARE.columns, "a": TOLD["a"]})
    low, high = of("y ~ a + b", some)["4,000"]["a"]
    assert high / low < wide["a"][1] / wide["a"][0]
    alike = of("y ~ a + g", cf.Schema({**TOLD.columns, "g": BARE["g"]}))["4,000"]
    assert alike["g[T.v]"] == alike["g[T.w]"]
    told = of("y ~ a + g", TOLD)["4,000"]
    assert told["g[T.w]"] > 1.5 * told["g[T.v]"]


@pytest.mark.parametrize(
    "method",
    [cf.tables.Means("a ~ 1", inference="population"), cf.regression.LeastSquares("y ~ a")],
    ids=["mean", "line"],
)
def test_a_forecast_knows_that_few_records_hide_where_values_lie(method: Any) -> None:
    """A release of 200 records of columns without bounds has no range, and a forecast in the bounds of test data would promise one."""
    some = cf.Schema({**BARE.columns, "a": cf.Numeric(), "y": cf.Numeric()})
    assert cf.plan(method, some, cf.GDP(1.0), n=200).forecast["valid"] == {"200": 0.0}
    data = cf.read(some.sample(200, seed=1), some)
    result = cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)))
    assert result.status == "imprecise" and "may lie beyond" in result.reason
    (chance,) = cf.plan(method, some, cf.GDP(1.0), n=5_000).forecast["valid"].values()
    assert chance > 0.9


def test_a_table_is_plain_in_a_file_and_prints_as_itself() -> None:
    shown = cf.plan(cf.regression.SSP("y ~ a"), TOLD, cf.GDP(1.0), n=4_000)
    number, (low, high) = shown.forecast["4,000"]["a"], shown.forecast["between"]["4,000"]["a"]
    assert f"{number:.4g} ({low:.4g} to {high:.4g})" in shown.summary()
    # with spreads alone the number is not promised
    spreads = cf.Schema({name: replace(TOLD[name], typical=replace(TOLD[name].typical, own=None)) for name in "ay"})
    said = cf.plan(cf.regression.SSP("y ~ a"), spreads, cf.GDP(1.0), n=4_000).summary()
    assert "the forecast is the range in brackets" in " ".join(said.split())
    assert "in brackets" not in " ".join(shown.summary().split())
    forecast = of("y ~ a", TOLD)
    assert isinstance(forecast, Forecast) and "table" not in vars(forecast)
    kept = pickle.loads(pickle.dumps(forecast))
    assert type(kept) is dict and kept == dict(forecast) and repr(forecast) == repr(kept)


def test_no_range_is_said_where_next_to_no_scenario_is_answered() -> None:
    errors = np.array([np.nan] * 30 + [0.5, 0.6])
    assert _entry(errors, False) is None
    assert _entry(errors, True) == 0.55
    assert _entry(np.linspace(1, 2, 12), False) == (1, 2)


# outcomes and counts --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.long
def test_more_records_and_more_budget_make_answers_likelier_and_the_plan_stays_the_same() -> None:
    cells = ((500, 0.3), (20_000, 0.3), (20_000, 3.0))
    plans = [cf.plan(cf.regression.Logistic(OUTCOME), BOX, cf.GDP(mu), n=n) for n, mu in cells]
    for kind in ("valid", "answered"):
        few, many, dear = (plan.forecast[kind][f"{n:,}"] for plan, (n, _) in zip(plans, cells, strict=True))
        # some feature's bounds are far in 1 - .95^3 = .14 of the scenarios
        assert few < 0.5 < many <= dear + 0.05 and dear >= 0.7
    assert plans[0].sha256 == plans[1].sha256


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.long
def test_a_stated_share_of_the_outcome_and_narrow_features_count() -> None:
    def chance(share: float, low: float = -1.0, **more: Any) -> float:
        columns = {f"x{j}": cf.Numeric(low, 1, typical=cf.Typical(-0.9, 0.9, own=1.0)) for j in range(3)}
        schema = cf.Schema({**columns, "y": cf.Categorical(["no", "yes"], typical=[1 - share, share])})
        made = cf.regression.Logistic(OUTCOME, **more)
        return cf.plan(made, schema, cf.GDP(1.0), n=2_000).forecast["valid"]["2,000"]

    assert chance(0.5) >= 0.8 > chance(0.01)
    # bounds far beyond the values are not answered for, and ranges within them are
    assert chance(0.5, low=-400.0, bounds="declared") <= 0.2
    assert chance(0.5, low=-400.0) >= 0.8


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.long
def test_an_outcome_between_0_and_1_is_foreseen_as_one_of_0_and_1() -> None:
    wide = cf.Schema({**BOX.columns, "y": cf.Numeric(0, 1)})
    one, other = (
        cf.plan(cf.regression.Logistic(OUTCOME), s, cf.GDP(1.0), n=10_000).forecast["valid"] for s in (BOX, wide)
    )
    assert abs(one["10,000"] - other["10,000"]) <= 0.2


@pytest.mark.parametrize(
    "kind", ["few", pytest.param("many", marks=pytest.mark.long), pytest.param("zeros", marks=pytest.mark.long)]
)
def test_releases_of_outcomes_and_counts_lie_within_what_was_said(kind: str) -> None:
    g = np.random.default_rng(4)
    frame = pd.DataFrame({name: g.normal(0, 0.3, 5_000).clip(-1, 1) for name in ("x0", "x1")})
    rate = np.exp(0.3 * frame.x0 - 0.2 * frame.x1)
    y = {
        "few": g.poisson(2.2 * rate),
        "many": g.binomial(40, (0.5 * rate).clip(0, 1)),
        "zeros": g.poisson(16 * rate) * (g.random(5_000) < 0.25),
    }[kind]
    schema = cf.Schema({"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Integer(0, 40)})
    method = cf.regression.Poisson("y ~ x0 + x1")
    plan = cf.plan(method, schema, cf.GDP(3.0), n=5_000)
    found = method.infer(seal(method, cf.read(frame.assign(y=y.clip(0, 40)), schema), plan, SimulatedNoise(2)))
    assert found.status == "valid"
    for name in ("x0", "x1"):
        low, high = plan.forecast["5,000"][name]
        assert low <= found.bse[name] <= high, name


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.long
def test_counts_are_foreseen_by_where_they_lie_within_their_bound() -> None:
    columns = {f"x{j}": cf.Numeric(-1, 1, typical=cf.Typical(-0.8, 0.8, own=1.0)) for j in range(2)}

    def said(high: int) -> Any:
        schema = cf.Schema({**columns, "y": cf.Integer(0, high, typical=(0, 8))})
        method = cf.regression.Poisson("y ~ x0 + x1", bounds="declared")
        return cf.plan(method, schema, cf.GDP(1.0), n=5_000).forecast

    near, wide, far = said(20), said(60), said(2_000)
    assert near["valid"]["5,000"] >= 0.8 > 0.5 >= far["valid"]["5,000"]
    assert near["price"]["5,000"] < wide["price"]["5,000"]


# closed forms ---------------------------------------------------------------------------------------------------------

CELLS = cf.Schema({"region": cf.Categorical(["N", "S", "E"]), "y": cf.Numeric(-1, 3), "w": cf.Numeric(0, 4)})


@pytest.mark.parametrize("inference", ["population", "dataset"])
@pytest.mark.parametrize(
    ("method", "cells"),
    [
        (cf.tables.Counts("region", inference="population"), {"region": "region=N"}),
        (cf.tables.Shares("region", inference="population"), {"region": "region=N"}),
        (cf.tables.Means("y ~ region", inference="population", bounds="declared"), {"region": "y | region=N"}),
        (cf.tables.Totals("y ~ region", inference="population", bounds="declared"), {"region": "y | region=N"}),
    ],
)
def test_closed_forms_of_tables_are_the_general_forecast_of_the_records_that_they_assume(
    method: Any, cells: dict[str, str], inference: str
) -> None:
    method, n, privacy = replace(method, inference=inference), 6_000, cf.GDP(0.3, relation="add-remove")
    plan = cf.plan(method, CELLS, privacy, n=n)
    # cells of one size; the mean half-way to a bound, of totals in the middle; a third of the half-width as sd
    middle = 1.0 if method.name == "totals" else 2.0
    y = CELLS["y"].code(np.clip(np.random.default_rng(1).normal(middle, 2 / 3, n), -1, 3))
    codes = {"region": np.tile([0.0, 1.0, 2.0], n // 3), "y": y}
    errors = []
    for seed in range(12):
        errors.append(
            run(method, plan, Simulated(CELLS, codes, np.ones(n, dtype=np.int64)), SimulatedNoise(seed)).seen.errors
        )
    found = pd.DataFrame(errors).median()
    for name, cell in cells.items():
        assert found[cell] == pytest.approx(plan.forecast[str(n)][name], rel=0.12), (name, found.to_dict())


def test_closed_forms_of_table_one_and_distributions_are_the_general_forecast() -> None:
    n, privacy = 6_000, cf.GDP(1.0, relation="add-remove")
    y = CELLS["y"].code(np.clip(np.random.default_rng(1).normal(2.0, 2 / 3, n), -1, 3))
    source = Simulated(CELLS, {"region": np.tile([0.0, 1.0, 2.0], n // 3), "y": y}, np.ones(n, dtype=np.int64))
    one = cf.tables.TableOne("y + region ~ 1", inference="population")
    plan = cf.plan(one, CELLS, privacy, n=n)
    said = plan.forecast[str(n)]
    result: Any = run(one, plan, source, SimulatedNoise(1)).result
    limits = result.conf_int()
    halves = {name: (limits.loc[name, 1] - limits.loc[name, 0]) / 2 / 1.959964 for name in limits.index}
    assert halves["y: mean"] == pytest.approx(said["y: mean"], rel=0.1)
    assert halves["region=N"] == pytest.approx(said["region"], rel=0.1)
    quantiles = cf.tables.Quantiles("y ~ 1", quantiles=(0.5,), inference="population")
    plan = cf.plan(quantiles, CELLS, privacy, n=n)
    result = run(quantiles, plan, source, SimulatedNoise(1)).result
    (low, high) = result.conf_int().to_numpy()[0]
    values = np.sort(CELLS["y"].decode(y))
    below = [np.searchsorted(values, end) / n for end in (low, high)]
    assert (below[1] - below[0]) / 2 / 1.959964 == pytest.approx(plan.forecast[str(n)]["0.5"], rel=0.35)


# advice ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", few([0.5, 0.2, 0.05], 1))
def test_plan_and_advice_say_the_same(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of logistic regression, with 16 scenarios; by default both have 48."""
    monkeypatch.setattr(forecasts, "SCENARIOS", 16)
    columns = {"x": cf.Numeric(0, 100, typical=(20, 60)), "z": cf.Numeric(0, 1, typical=(0.2, 0.8))}
    schema = cf.Schema({**columns, "y": cf.Categorical(["no", "yes"], typical=[1 - share, share])})
    plan = cf.plan(cf.regression.Logistic("y ~ x + z"), schema, cf.GDP(1.0), n=10_000)
    found = advise("logistic_regression", "y ~ x + z", schema, 10_000, cf.GDP(1.0), replications=16)
    own = next(one for one in found.expectations if one.method == "logistic")
    assert own.intervals == pytest.approx(plan.forecast["answered"]["10,000"], abs=0.006)
    assert found.best is own and own.valid and plan.forecast["valid"]["10,000"] >= 0.8
    halves = dict(zip(found.names, own.halves, strict=True))
    for name, number in plan.forecast["10,000"].items():
        # half of an interval over 1.96 is a standard error of many degrees of freedom
        assert halves[name] / 1.959964 == pytest.approx(number, rel=0.1), name


@pytest.mark.usefixtures("whole_forecasts")
def test_advice_takes_as_many_scenarios_as_a_plan() -> None:
    assert signature(advise).parameters["replications"].default == forecasts.SCENARIOS
