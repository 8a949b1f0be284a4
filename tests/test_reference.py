"""The non-private references: the same numbers as statsmodels, pandas and NumPy on records that were clipped and completed by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import confide as cf
from confide import registry
from confide.core import Method
from confide.schema import CodedFrame
from confide.testing.test_data import ZeroNoise
from confide_lab.methods import BinAgg, HuberLine, PosteriorSampling
from confide_lab.methods.quantile.ranks import Quantile
from tests.messages import refuses

FINE = 2**22
SCHEMA = cf.Schema(
    {
        "x": cf.Numeric(0, 4, steps=FINE),
        "m": cf.Numeric(-1, 1, steps=FINE, on_missing="midpoint"),
        "c": cf.Numeric(0, 8, steps=FINE, on_missing=2.0),
        "k": cf.Categorical(["a", "b", "z"], on_missing="b"),
        "y": cf.Numeric(-5, 20, steps=FINE),
        "w": cf.Numeric(0, 10, steps=FINE),
        "hit": cf.Integer(0, 1),
    }
)


def raw(n: int = 3_000) -> pd.DataFrame:
    """Records beyond their bounds, and missing ones."""
    g = np.random.default_rng(5)
    frame = pd.DataFrame({"x": g.lognormal(0, 1, n), "m": g.normal(0, 1, n), "c": g.uniform(-2, 10, n)})
    frame["k"] = g.choice(["a", "b", "z"], n, p=(0.6, 0.3, 0.1))
    frame["y"] = 2 * frame["x"] - frame["m"] + (frame["k"] == "z") * 3 + g.standard_t(3, n)
    frame["w"] = frame["y"] + g.normal(0, 1, n)
    frame["hit"] = (g.uniform(size=n) < 1 / (1 + np.exp(1 - frame["x"] / 2))).astype(int)
    for name, share in (("x", 0.05), ("m", 0.1), ("c", 0.1), ("k", 0.05), ("y", 0.02)):
        frame.loc[g.uniform(size=n) < share, name] = None
    return frame


def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
    """What the schema says of them, written out."""
    return pd.DataFrame(
        {
            "x": frame["x"].clip(0, 4),
            "m": frame["m"].fillna(0.0).clip(-1, 1),
            "c": frame["c"].fillna(2.0).clip(0, 8),
            "k": frame["k"].fillna("b"),
            "y": frame["y"].clip(-5, 20),
            "w": frame["w"].clip(0, 10),
            "hit": frame["hit"],
        }
    )


def ols(columns: dict[str, Any], response: pd.Series[float]) -> pd.Series[float]:
    x = pd.DataFrame(columns).astype(float)
    whole = x.notna().all(axis=1) & response.notna()
    return sm.OLS(response[whole], x[whole]).fit().params


FRAME = raw()
HAND = by_hand(FRAME)
READ = CodedFrame.of(FRAME, SCHEMA)
#: With a cap that no record reaches all count alike; with the default it is another line, by hand in its own tests.
LINES = [cf.regression.SSP, BinAgg, partial(cf.regression.EfficientPTR, leverage_cap=6.0)]


@pytest.mark.parametrize("method", LINES)
def test_a_line_is_least_squares_of_clipped_records_with_missing_rules(method: Any) -> None:
    found = method("y ~ x + m + c + k").reference(READ)
    columns = {"Intercept": 1 + 0 * HAND["m"], **HAND[["x", "m", "c"]]}
    columns |= {f"k[T.{level}]": HAND["k"] == level for level in ("b", "z")}
    expected = ols(columns, HAND["y"])
    assert set(found) == set(expected.index)
    np.testing.assert_allclose([found[name] for name in expected.index], expected, atol=2e-5)


def test_a_missing_value_drops_a_record_only_where_the_formula_uses_it() -> None:
    found = cf.regression.SSP("y ~ m").reference(READ)
    expected = ols({"Intercept": 1 + 0 * HAND["m"], "m": HAND["m"]}, HAND["y"])
    np.testing.assert_allclose([found[name] for name in expected.index], expected, atol=1e-5)


def test_derived_terms_and_their_bounds_are_those_of_the_design() -> None:
    found = cf.regression.SSP("y ~ log(x) + I(m**2)", term_bounds={"log(x)": (-1, 1)}).reference(READ)
    with np.errstate(divide="ignore"):
        logs = np.log(HAND["x"]).clip(-1, 1)
    expected = ols({"Intercept": 1 + 0 * HAND["m"], "log(x)": logs, "I(m**2)": HAND["m"] ** 2}, HAND["y"])
    np.testing.assert_allclose(list(found.values()), expected, atol=2e-5)


def test_two_responses_have_the_names_of_their_table() -> None:
    method = cf.regression.SSP("y + w ~ m")
    release = cf.release(method, cf.read(FRAME, SCHEMA), cf.GDP(1.0), ledger=None, noise=cf.noise.SimulatedNoise(1))
    found = method.reference(READ)
    assert tuple(found) == method.infer(release).names
    assert found["w: m"] == pytest.approx(cf.regression.SSP("w ~ m").reference(READ)["m"])


def test_no_weights_are_in_it() -> None:
    """On a bent mean a weighted line differs from least squares, and the reference does not follow the method's weights."""
    schema = cf.Schema({"x": cf.Numeric(0, 20), "y": cf.Numeric(-1, 12)})
    x = np.random.default_rng(3).exponential(1.0, 20_000)
    frame = pd.DataFrame({"x": x, "y": 3 * np.log1p(x)})
    method = cf.regression.SSP("y ~ x", recenter=False, leverage_cap=1.0)
    found = method.reference(CodedFrame.of(frame, schema))
    assert found["x"] == pytest.approx(np.polyfit(x, frame["y"], 1)[0], abs=1e-4)
    silent = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise())
    assert abs(method.infer(silent).params["x"] - found["x"]) > 0.02


def test_the_robust_line_has_no_reference_and_says_so() -> None:
    with refuses(cf.errors.PlanError):
        HuberLine("y ~ x").reference(READ)


def test_logistic_is_the_likeliest_model() -> None:
    found = cf.regression.Logistic("hit ~ x + m").reference(READ)
    x = pd.DataFrame({"Intercept": 1.0, "x": HAND["x"], "m": HAND["m"]})
    whole = x["x"].notna()
    expected = sm.Logit(HAND["hit"][whole], x[whole]).fit(disp=0).params
    np.testing.assert_allclose(list(found.values()), expected, atol=1e-5)


def test_outcomes_that_a_line_separates_have_no_likeliest_model() -> None:
    apart = CodedFrame.of({"x": [0.5, 1.0, 2.0, 3.0], "hit": [0, 0, 1, 1]}, SCHEMA)
    with refuses(cf.errors.PlanError):
        cf.regression.Logistic("hit ~ x").reference(apart)


def test_quantiles_are_those_of_clipped_values() -> None:
    found = Quantile("x", q=(0.25, 0.5, 0.99)).reference(READ)
    expected = np.quantile(HAND["x"].dropna(), (0.25, 0.5, 0.99), method="inverted_cdf")
    np.testing.assert_allclose(list(found.values()), expected, atol=1e-5)
    assert found["0.99"] == 4.0


def test_class_means_are_group_means_and_the_ball_moves_far_records() -> None:
    found = cf.classification.ClassMeans("k ~ m + c").reference(READ)
    means = HAND.groupby("k")[["m", "c"]].mean()
    assert found["P(z)"] == pytest.approx((HAND["k"] == "z").mean())
    for level in ("a", "b", "z"):
        assert found[f"c | {level}"] == pytest.approx(means.loc[level, "c"], abs=1e-5)
    u = pd.DataFrame({"m": HAND["m"], "c": (HAND["c"] - 4) / 4})
    u = u.mul(np.minimum(1.0, 0.5 / np.sqrt((u**2).sum(axis=1))), axis=0)
    inside = cf.classification.ClassMeans("k ~ m + c", radius=0.5).reference(READ)
    assert inside["c | a"] == pytest.approx(4 + 4 * u["c"][HAND["k"] == "a"].mean(), abs=1e-5)


def test_a_smooth_is_a_ratio_of_kernel_sums() -> None:
    whole = HAND["x"].notna() & HAND["y"].notna()
    x, y = HAND["x"][whole].to_numpy(), HAND["y"][whole].to_numpy()
    weight = np.exp(-((x - 1.0) ** 2) / (2 * 0.3**2))
    points = cf.curves.EfficientPTRKernel("y ~ x", points=[1.0], bandwidth=0.3, least=50.0).reference(READ)
    assert points["x = 1"] == pytest.approx((weight @ y) / weight.sum(), abs=1e-4)
    curve = cf.curves.Kernel("y ~ x", bandwidth=0.3).reference(READ)
    assert curve["x = 1"] == pytest.approx(points["x = 1"], abs=1e-4)
    with refuses(cf.errors.PlanError):
        cf.curves.Kernel("y ~ x").reference(READ)


def test_a_plain_frame_is_refused_with_the_call_that_works() -> None:
    with refuses(cf.errors.PlanError):
        cf.regression.SSP("y ~ x").reference(FRAME)


def test_an_empty_level_and_too_few_records_are_refused() -> None:
    for frame, formula in ((FRAME[FRAME["k"] != "z"], "y ~ k"), (FRAME[:2], "y ~ m + c"), (FRAME[:0], "y ~ 1")):
        with refuses(cf.errors.PlanError):
            cf.regression.SSP(formula).reference(CodedFrame.of(frame, SCHEMA))


def test_every_method_that_states_an_interval_has_a_reference() -> None:
    """Or says why it has none; synthetic tables and ranges are no estimates."""
    base, without = Method.reference, {"synthetic_table", "column_ranges"}
    lacking = {
        info.name
        for info in registry.list_methods()
        if info.intervals != "no interval" and registry.get(info.name).reference is base
    }
    assert lacking == without
    with refuses(cf.errors.PlanError):
        PosteriorSampling("y ~ x", target="ridge").reference(READ)
    assert all(registry.get(name).reference is not base for name in ("least_squares", "ssp", "quantile", "class_means"))
