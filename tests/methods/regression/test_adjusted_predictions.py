"""Contrasts, joint tests term by term, and adjusted predictions of a shared release, against statsmodels and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.messages import refuses

import confide as cf
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise
from confide_lab.benchmarks.coverage import consistent

SCHEMA = cf.Schema(
    {
        "age": cf.Numeric(0, 10),
        "region": cf.Categorical(["N", "S", "W"]),
        "sex": cf.Categorical(["f", "m"]),
        "y": cf.Numeric(-15, 40),
    }
)
FORMULA = "y ~ age*region + sex"


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": g.uniform(0, 10, n), "region": g.choice(["N", "S", "W"], n), "sex": g.choice(["f", "m"], n)}
    )
    slope = 1 + 0.5 * (frame.region == "S")
    frame["y"] = 2 + slope * frame.age - 2 * (frame.region == "W") + (frame.sex == "m") + 2 * g.standard_normal(n)
    return frame


def table(n: int = 4_000, *, mu: float = 1.0, noise: object = None, seed: int = 1, **settings: object) -> object:
    made = cf.release(
        cf.regression.SSP(FORMULA, **{"recenter": False, **settings}),
        cf.read(records(n, seed), SCHEMA),
        cf.GDP(mu),
        ledger=None,
        noise=noise or SimulatedNoise(seed),
    )
    return cf.infer(made)


def exact() -> tuple[object, object]:
    result = table(noise=ZeroNoise(), mu=1e4, leverage_cap=7.0, cov="classical")
    return result, smf.ols(FORMULA, records(4_000, 1)).fit()


def test_contrasts_are_those_of_statsmodels() -> None:
    result, ols = exact()
    restriction = "region[T.S] - region[T.W] = 1, age"
    ours, theirs = result.t_test(restriction), ols.t_test(restriction)
    np.testing.assert_allclose(ours.effect, theirs.effect, atol=1e-3)
    np.testing.assert_allclose(ours.sd, theirs.sd, rtol=1e-3)
    np.testing.assert_allclose(ours.tvalue, theirs.tvalue, rtol=5e-3)
    np.testing.assert_allclose(ours.conf_int(0.1), theirs.conf_int(0.1), atol=2e-3)
    assert ours.names == ("region[T.S] - region[T.W] = 1", "age")
    assert list(ours.summary_frame().columns) == ["estimate", "std_err", "statistic", "p_value", "ci_low", "ci_high"]


def test_named_contrasts() -> None:
    result, ols = exact()
    found = result.t_test({"S - W": {"region[T.S]": 1, "region[T.W]": -1}})
    assert found.names == ("S - W",)
    assert found.effect[0] == pytest.approx(ols.params["region[T.S]"] - ols.params["region[T.W]"], abs=1e-3)
    with refuses(cf.errors.PlanError):
        result.t_test({"x": {"zz": 1}})
    with refuses(cf.errors.PlanError):
        result.t_test({})


def test_joint_tests_are_those_of_statsmodels() -> None:
    result, ols = exact()
    restriction = "region[T.S] = region[T.W], age = 1"
    assert result.f_test(restriction).statistic == pytest.approx(float(ols.f_test(restriction).fvalue), rel=2e-2)
    terms = ols.wald_test_terms(scalar=True)
    ours = result.wald_test_terms()
    assert list(ours.index) == ["region", "sex", "age", "age:region"] or set(ours.index) == set(terms.table.index[1:])
    for name in ours.index:
        assert ours.loc[name, "statistic"] == pytest.approx(terms.table.loc[name, "statistic"], rel=2e-2)
        assert ours.loc[name, "df_num"] == terms.table.loc[name, "df_constraint"]


def test_marginal_means_are_means_of_predictions_over_a_balanced_grid() -> None:
    result, ols = exact()
    found = result.adjusted_predictions(by="region")
    assert found.names == ("region=N", "region=S", "region=W")
    for k, region in enumerate("NSW"):
        grid = pd.DataFrame({"age": 5.0, "region": region, "sex": ["f", "m"]})
        rows = (
            np.asarray(ols.model.data.design_info.transform(grid)) if hasattr(ols.model.data, "design_info") else None
        )
        assert found.effect[k] == pytest.approx(float(ols.predict(grid).mean()), abs=2e-3)
        if rows is not None:
            mean = rows.mean(axis=0)
            assert found.sd[k] == pytest.approx(float(np.sqrt(mean @ ols.cov_params() @ mean)), rel=2e-3)
    pairs = found.pairs()
    assert pairs.names == ("region=N - region=S", "region=N - region=W", "region=S - region=W")
    # region N against S at age 5: the main effect and five times the interaction
    same = result.t_test("region[T.S] + 5*age:region[T.S]")
    assert pairs.effect[0] == pytest.approx(-same.effect[0])
    assert pairs.sd[0] == pytest.approx(same.sd[0])


def test_averages_over_a_public_frame_and_at_values() -> None:
    result, ols = exact()
    frame = records(200, 9)
    average = result.adjusted_predictions(frame)
    assert average.names == ("average",)
    assert average.effect[0] == pytest.approx(float(ols.predict(frame).mean()), abs=2e-3)
    at = result.adjusted_predictions(frame, at={"age": [2, 8], "region": "S"})
    assert at.names == ("age=2, region=S", "age=8, region=S")
    for k, age in enumerate((2, 8)):
        assert at.effect[k] == pytest.approx(float(ols.predict(frame.assign(age=age, region="S")).mean()), abs=2e-3)
    groups = result.adjusted_predictions(frame, by="sex")
    for name, value in zip(groups.names, groups.effect, strict=True):
        own = frame[frame.sex == name.removeprefix("sex=")]
        assert value == pytest.approx(float(ols.predict(own).mean()), abs=2e-3)


def test_one_row_is_get_prediction() -> None:
    result = table()
    row = pd.DataFrame({"age": [3.0], "region": ["W"], "sex": ["m"]})
    one, other = result.adjusted_predictions(row), result.get_prediction(row)
    assert one.effect[0] == pytest.approx(other["mean"][0])
    assert one.sd[0] == pytest.approx(other["mean_se"][0])
    np.testing.assert_allclose(one.conf_int().to_numpy()[0], other[["mean_ci_lower", "mean_ci_upper"]].to_numpy()[0])


@pytest.mark.parametrize(
    "call",
    [
        {"by": "wealth"},
        {"at": {"y": 3}},
        {"by": "age"},
        {"by": "sex", "at": {"sex": "f"}},
        {"at": {"age": []}},
        {"at": {"region": "Q"}},
        {"frame": pd.DataFrame({"age": [1.0]})},
        {"frame": records(5, 1).iloc[:0]},
        {"frame": 3},
    ],
)
def test_impossible_requests_are_refused(call: dict[str, object]) -> None:
    with refuses(cf.errors.PlanError):
        table().adjusted_predictions(**call)


def test_no_interval_is_computed_where_there_is_none() -> None:
    result = table(20, mu=0.1)
    assert result.status != "valid"
    assert np.isnan(result.adjusted_predictions(by="region").sd).all()
    assert np.isnan(result.t_test("age").pvalue).all()
    assert result.wald_test_terms()["pvalue"].isna().all()


def test_intervals_of_marginal_means_cover() -> None:
    truth = np.array([2 + 5 + 0.5, 2 + 7.5 + 0.5, 5 + 0.5])
    hits = []
    for seed in range(60):
        result = table(3_000, mu=3.0, seed=seed)
        if result.status != "valid":
            continue
        limits = result.adjusted_predictions(by="region").conf_int().to_numpy()
        hits.append((limits[:, 0] <= truth) & (truth <= limits[:, 1]))
    assert len(hits) >= 50 and consistent(np.array(hits), 0.93, 0.99)
