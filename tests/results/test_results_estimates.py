"""The numbers, against statsmodels and scipy; what is refused; what JSON holds."""

from __future__ import annotations

import json
from math import inf, isnan, nan

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from scipy import stats
from tests.messages import refuses
from tests.results.results_examples import NAMES, SHA, Maker, build

from confide.core import STATUSES, Result
from confide.errors import ConfideError, PlanError
from confide.guarantees import GDP, guarantee_from_dict
from confide.results import Estimates

NOT_OK = tuple(status for status in STATUSES if status not in ("valid", "partial"))


@pytest.fixture(scope="module")
def fits() -> tuple[sm.regression.linear_model.RegressionResultsWrapper, Estimates]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame.insert(0, "const", 1.0)
    outcome = frame["a"] - 0.3 * frame["c"] + rng.standard_t(4, size=60)
    fit = sm.OLS(outcome, frame).fit()
    ours = build(
        names=tuple(frame.columns),
        estimates=fit.params.to_numpy(),
        covariance=fit.cov_params().to_numpy(),
        df=fit.df_resid,
        noise_variance=np.zeros(4),
    )
    return fit, ours


@pytest.mark.parametrize("attribute", ["params", "bse", "tvalues", "pvalues"])
def test_series_equal_statsmodels(fits, attribute):
    theirs, ours = fits
    pd.testing.assert_series_equal(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-12, check_names=False)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.05, 1e-3, 1e-9])
def test_intervals_equal_statsmodels(fits, alpha):
    theirs, ours = fits
    found = ours.conf_int(alpha)
    assert list(found.columns) == [0, 1]
    pd.testing.assert_frame_equal(found, theirs.conf_int(alpha), rtol=1e-10)


def test_covariance_equals_statsmodels(fits):
    theirs, ours = fits
    pd.testing.assert_frame_equal(ours.cov_params(), theirs.cov_params(), rtol=1e-14)


def test_infinite_df_is_the_normal_law(make: Maker):
    result = make(df=inf)
    z = result.params / result.bse
    np.testing.assert_allclose(result.pvalues, 2 * stats.norm.sf(np.abs(z)), rtol=1e-12)
    half = stats.norm.isf(0.05) * result.bse
    np.testing.assert_allclose(result.conf_int(0.1)[1] - result.params, half, rtol=1e-10)


@given(
    estimate=st.floats(-1e6, 1e6),
    error=st.floats(1e-3, 1e4),
    df=st.one_of(st.floats(1, 1e7), st.just(inf)),
    alpha=st.floats(1e-4, 0.9),
)
def test_test_and_interval_agree(estimate, error, df, alpha):
    result = build(names=("m",), estimates=[estimate], covariance=[[error**2]], noise_variance=[0.0], df=df)
    low, high = result.conf_int(alpha).iloc[0]
    inside = low < 0 < high
    # at the very edge the two roundings may fall on different sides
    if abs(result.pvalues.iloc[0] - alpha) > 1e-9:
        assert inside == (result.pvalues.iloc[0] > alpha)


@given(st.floats(1, 1e6), st.floats(1e-6, 0.9), st.floats(1e-6, 0.9))
def test_intervals_are_nested(df, first, second):
    result = build(df=df)
    wide, narrow = result.conf_int(min(first, second)), result.conf_int(max(first, second))
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()


def test_privacy_share_is_noise_over_variance(make: Maker):
    result = make()
    np.testing.assert_allclose(result.privacy_share, np.linspace(0.1, 0.9, 5), rtol=1e-12)
    assert list(result.privacy_share.index) == list(NAMES)


def test_privacy_share_never_leaves_the_unit_interval(make: Maker):
    result = make(names=("m",), estimates=[1.0], covariance=[[2.0]], noise_variance=[2.0 * (1 + 1e-9)])
    assert result.privacy_share.iloc[0] == 1.0


@pytest.mark.parametrize("status", NOT_OK)
def test_outside_ok_there_are_no_intervals(make: Maker, status):
    result = make(status=status)
    # an estimate that means nothing is a number nowhere that it could be read or used
    assert np.isfinite(result.params).all() if status == "imprecise" else result.params.isna().all()
    assert [value is None for value in result.to_dict()["estimate"]] == [status != "imprecise"] * 5
    for values in (result.bse, result.tvalues, result.pvalues, result.privacy_share):
        assert values.isna().all()
    assert result.conf_int().isna().all(axis=None)
    assert result.cov_params().isna().all(axis=None)
    assert isnan(result.wald_test("age = 0").pvalue)


def test_no_reply_has_no_estimates_and_still_prints(make: Maker):
    result = make(status="declined", estimates=np.full(5, nan), df=nan)
    assert result.to_frame().isna().all(axis=None)
    assert "declined" in str(result)
    assert json.loads(result.to_json())["estimate"] == [None] * 5


def test_a_variance_of_zero_warns_nobody(make: Maker, recwarn):
    result = make(names=("m", "n"), estimates=[0.0, 1.0], covariance=np.zeros((2, 2)), noise_variance=np.zeros(2))
    assert isnan(result.tvalues["m"]) and result.tvalues["n"] == inf
    assert result.pvalues["n"] == 0
    assert result.privacy_share.isna().all()
    (row,) = [line for line in result.summary().splitlines() if line.startswith("m ")]
    assert row.split()[3:5] == ["n/a", "n/a"] and row.split()[-1] == "n/a"
    assert not recwarn.list


def test_it_is_a_result_of_the_protocol(make: Maker):
    result = make()
    assert isinstance(result, Result)
    assert result.relation == "add-remove"


def test_arrays_are_copies_that_cannot_be_written(make: Maker):
    given_values = np.arange(5.0)
    result = make(estimates=given_values)
    given_values[0] = 99
    assert result.estimates[0] == 0
    for field in ("estimates", "covariance", "noise_variance"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, field)[0] = 7
    params, covariance = result.params, result.cov_params()
    params.iloc[0] = 7
    covariance.iloc[0, 0] = 7
    assert result.estimates[0] == 0 and result.covariance[0, 0] != 7


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, 95, nan, inf, "0.05", True, np.array([0.1, 0.2])])
@pytest.mark.parametrize("verb", ["conf_int", "summary", "to_frame", "to_json", "plot", "report"])
def test_alpha_must_lie_between_0_and_1(make: Maker, verb, alpha, tmp_path):
    call = {"alpha": alpha} | ({"path": tmp_path / "r.html"} if verb == "report" else {})
    with refuses(PlanError):
        getattr(make(), verb)(**call)


@pytest.mark.parametrize(
    "changes",
    [
        {"names": "age"},
        {"names": ()},
        {"names": ("a", "")},
        {"names": ("a", 2)},
        {"names": ("a", "a")},
        {"estimates": np.zeros(4)},
        {"estimates": ["a"] * 5},
        {"covariance": np.eye(4)},
        {"covariance": np.ones(5)},
        {"noise_variance": np.zeros((5, 1))},
        {"noise_variance": np.full(5, -1.0)},
        {"noise_variance": np.full(5, 1e3)},
        {"noise_variance": np.full(5, nan)},
        {"covariance": -np.eye(5), "noise_variance": np.zeros(5)},
        {"covariance": np.full((5, 5), nan)},
        {"estimates": np.full(5, inf)},
        {"covariance": np.eye(5) + np.eye(5, k=1) * 0.1, "noise_variance": np.zeros(5)},
        {"df": 0.0},
        {"df": nan},
        {"status": "fine"},
        {"reason": "some"},
        {"status": "imprecise", "reason": ""},
        {"status": "imprecise", "covariance": np.eye(5)},
        {"guarantee": GDP(1.0)},
        {"requested": GDP(1.0)},
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Maker, changes):
    with refuses(PlanError) as caught:
        make(**changes)
    assert isinstance(caught.value, ConfideError) and isinstance(caught.value, ValueError)


def test_rounding_in_the_covariance_is_no_reason_to_refuse(make: Maker):
    exact = np.array(make().covariance)
    noisy = exact * (1 + 1e-12 * np.random.default_rng(1).normal(size=exact.shape))
    assert not np.array_equal(noisy, noisy.T)
    make(covariance=noisy)


def test_frame_holds_the_table(make: Maker):
    result = make()
    frame = result.to_frame(0.1)
    assert list(frame.columns) == [
        "estimate",
        "std_err",
        "statistic",
        "df",
        "p_value",
        "ci_low",
        "ci_high",
        "privacy_share",
    ]
    assert list(frame.index) == list(NAMES)
    for column, series in {
        "estimate": result.params,
        "std_err": result.bse,
        "statistic": result.tvalues,
        "p_value": result.pvalues,
        "ci_low": result.conf_int(0.1)[0],
        "ci_high": result.conf_int(0.1)[1],
        "privacy_share": result.privacy_share,
    }.items():
        np.testing.assert_array_equal(frame[column], series)


def strict(text: str):
    def refuse(token: str):
        raise AssertionError(f"not JSON: {token}")

    return json.loads(text, parse_constant=refuse)


def test_json_keeps_every_bit(make: Maker):
    result = make(estimates=[0.1, 1 / 3, 1e-300, -1.7976931348623157e308, 2.0])
    data = strict(result.to_json())
    assert data["estimate"] == result.estimates.tolist()
    assert data["covariance"] == result.covariance.tolist()
    assert data["noise_variance"] == result.noise_variance.tolist()
    assert data["ci_low"] == result.conf_int()[0].tolist()
    assert data["df"] == 241.7 and data["distribution"] == "t"


def bare(stated: dict) -> dict:
    return {key: value for key, value in stated.items() if key not in ("text", "numbers")}


def test_json_says_what_holds(make: Maker):
    result = make(flags=("values_clipped",), simulated=True)
    data = strict(result.to_json())
    assert guarantee_from_dict(bare(data["guarantee"])) == result.guarantee
    assert guarantee_from_dict(bare(data["requested"])) == result.requested
    assert data["guarantee"]["text"] == str(result.guarantee)
    assert data["guarantee"]["numbers"] == {"mu": 0.25, "delta": 0.0}
    assert data["requested"]["numbers"] == {"epsilon": 1.0, "delta": 1e-6}
    assert (data["status"], data["reason"], data["flags"]) == ("valid", "", ["values_clipped"])
    assert (data["intervals_for"], data["target"]) == (result.intervals_for, result.target)
    assert data["relation"] == "add-remove"
    assert data["facts"] == [["Cov. type", "robust"]]
    assert data["release_sha256"] == SHA
    assert data["simulated"] is True


@pytest.mark.parametrize("status", NOT_OK)
def test_json_is_strict_where_numbers_are_missing(make: Maker, status):
    data = strict(make(status=status, df=nan).to_json())
    assert data["std_err"] == [None] * 5
    assert data["covariance"] == [[None] * 5] * 5
    assert data["df"] is None


def test_json_of_the_normal_law(make: Maker):
    data = strict(make(df=inf).to_json())
    assert data["df"] is None and data["distribution"] == "normal"


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True))
def test_json_takes_any_names(names):
    text = build(names=tuple(names)).to_json()
    assert text.isascii()
    assert strict(text)["term"] == names


def test_repr_is_one_line(make: Maker):
    assert repr(make()) == f"<Estimates by 'ssp 1': 5 estimates of 'y', status 'valid', {make().guarantee}>"
    assert "simulated" in repr(make(simulated=True))
