"""Joint tests against statsmodels, what makes no difference to them, and the reading of restrictions."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from scipy import stats
from tests.messages import refuses
from tests.results.results_examples import NAMES, Maker, build

from confide.errors import PlanError
from confide.results import WaldTest
from confide.results.inference import wald
from confide.results.inference.wald import parse


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(11)
    frame = sm.add_constant(pd.DataFrame(rng.normal(size=(80, 3)), columns=["age", "educ", "income"]))
    fit = sm.OLS(rng.normal(size=80) + 0.2 * frame["age"], frame).fit()
    ours = build(
        names=tuple(frame.columns),
        estimates=fit.params.to_numpy(),
        covariance=fit.cov_params().to_numpy(),
        df=fit.df_resid,
        noise_variance=np.zeros(4),
    )
    return fit, ours


@pytest.mark.parametrize(
    "text",
    [
        "age = 0",
        "age = 0, educ = 0",
        "age = educ, income = 0.1",
        "2*age - educ/3 = 1e-1, income + const = 0.5",
        "age + educ + income = 1",
    ],
)
def test_text_equals_statsmodels(fits, text):
    theirs, ours = fits
    expected, found = theirs.f_test(text), ours.wald_test(text)
    assert found.statistic == pytest.approx(float(expected.fvalue), rel=1e-9)
    assert found.pvalue == pytest.approx(float(expected.pvalue), rel=1e-9)
    assert (found.df_num, found.df_denom) == (expected.df_num, expected.df_denom)


def test_matrix_with_values_equals_statsmodels(fits):
    theirs, ours = fits
    matrix, value = np.array([[0, 1, -1, 0], [1, 0, 0, 2.0]]), np.array([0.1, -0.3])
    expected, found = theirs.f_test((matrix, value)), ours.wald_test(matrix, value)
    assert found.statistic == pytest.approx(float(expected.fvalue), rel=1e-10)
    assert found.pvalue == pytest.approx(float(expected.pvalue), rel=1e-10)


def test_the_forms_agree(fits):
    _, ours = fits
    matrix = np.eye(4)[1:3]
    expected = ours.wald_test(matrix)
    forms = [
        "age = 0, educ = 0",
        "age, educ",
        ["age", "educ"],
        ("age = 0", "educ"),
        pd.DataFrame(matrix, columns=list(ours.names)),
        matrix.tolist(),
    ]
    for form in forms:
        assert ours.wald_test(form).statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert ours.wald_test(matrix, 0) == ours.wald_test(matrix, [0, 0]) == expected


def test_one_restriction_is_the_t_test_squared(make: Maker):
    result = make()
    for name in NAMES:
        found = result.wald_test([name])
        assert found.statistic == pytest.approx(result.tvalues[name] ** 2, rel=1e-12)
        assert found.pvalue == pytest.approx(result.pvalues[name], rel=1e-9)
        assert found.df_num == 1


def test_infinite_df_is_chi_square(make: Maker):
    result = make(df=inf)
    found = result.wald_test(["age", "educ", "age:educ"])
    assert found.df_denom == inf
    assert found.pvalue == pytest.approx(stats.chi2.sf(3 * found.statistic, 3), rel=1e-12)
    finite = make(df=1e9).wald_test(["age", "educ", "age:educ"])
    assert found.pvalue == pytest.approx(finite.pvalue, rel=1e-6)


@pytest.mark.parametrize(
    "redundant",
    [
        "age = 0, educ = 0, age = 0",
        "age = 0, educ = 0, age + educ = 0",
        "age, educ, 3*age - 2*educ, 0*age",
        "1e6*age, 1e-6*educ, age",
    ],
)
def test_redundant_restrictions_count_once(make: Maker, redundant):
    result = make()
    plain, found = result.wald_test("age = 0, educ = 0"), result.wald_test(redundant)
    assert found.df_num == plain.df_num == 2
    assert found.statistic == pytest.approx(plain.statistic, rel=1e-9)
    assert found.pvalue == pytest.approx(plain.pvalue, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_only_the_set_of_restrictions_matters(seed, count):
    rng = np.random.default_rng(seed)
    result = build()
    matrix, value = rng.normal(size=(count, 5)), rng.normal(size=count)
    mix = rng.normal(size=(count, count)) + 3 * np.eye(count)
    if np.linalg.cond(mix) > 1e3 or np.linalg.cond(matrix) > 1e3:
        return
    one, other = result.wald_test(matrix, value), result.wald_test(mix @ matrix, mix @ value)
    assert one.df_num == other.df_num == count
    assert one.statistic == pytest.approx(other.statistic, rel=1e-6)


@given(st.lists(st.integers(-12, 12), min_size=5, max_size=5))
def test_units_do_not_matter(powers):
    scale = 10.0 ** np.array(powers)
    plain = build()
    scaled = build(
        estimates=plain.estimates * scale,
        covariance=plain.covariance * np.outer(scale, scale),
        noise_variance=plain.noise_variance * scale**2,
    )
    assert scaled.wald_test(list(NAMES)).df_num == 5
    assert scaled.wald_test(list(NAMES)).statistic == pytest.approx(plain.wald_test(list(NAMES)).statistic, rel=1e-6)


def test_nothing_restricted_tests_nothing(make: Maker):
    found = make().wald_test(np.zeros((2, 5)))
    assert found.df_num == 0 and isnan(found.statistic) and isnan(found.pvalue)
    assert str(found) == "Wald test: nothing is restricted"


@pytest.mark.parametrize("status", ["imprecise", "not_identified"])
def test_a_test_that_is_not_available_says_why(status: str) -> None:
    unknown = np.full((2, 2), np.nan)
    found = wald.wald_test(np.eye(2), np.zeros(2), np.ones(2), unknown, inf, status=status)
    assert str(found) == f"Wald test: not available at status {status}"
    partial = wald.wald_test(np.eye(2), np.zeros(2), np.ones(2), np.diag([1.0, np.nan]), inf, status="partial")
    assert "not available at status partial: a coefficient" in str(partial)


@pytest.mark.parametrize("text", ["age = 0, age = 1", "age = 0, educ = 0, age + educ = 1", "0 = 1"])
def test_contradictions_are_refused(make: Maker, text):
    with refuses(PlanError):
        make().wald_test(text)


def test_singular_covariance_is_tested_where_it_varies(make: Maker):
    # a + b is known to be 1, and only a - b varies
    result = make(
        names=("a", "b"), estimates=[0.75, 0.25], covariance=[[0.04, -0.04], [-0.04, 0.04]], noise_variance=[0, 0]
    )
    joint = result.wald_test("a = 0.6, b = 0.4")
    assert joint.df_num == 1
    assert joint.statistic == pytest.approx((0.15 / 0.2) ** 2, rel=1e-9)
    certain = result.wald_test("a + b = 2")
    assert certain.statistic == inf and certain.pvalue == 0
    assert isnan(result.wald_test("a + b = 1").statistic)


def test_outside_ok_rank_is_known_and_the_rest_is_not(make: Maker):
    found = make(status="imprecise").wald_test("age = 0, educ = 0, age = educ")
    assert found.df_num == 2
    assert isnan(found.statistic) and isnan(found.pvalue)


def test_text_of_a_test():
    assert str(WaldTest(3.14159, 2, 241.7, 0.0449)) == "Wald test: F(2, 241.7) = 3.142, p = 0.0449"
    assert str(WaldTest(99.0, 1, inf, 0.0)).endswith("p < 1e-16")


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (np.eye(4), 0),
        (np.zeros((2, 5, 1)), 0),
        ([], 0),
        (np.full((1, 5), np.nan), 0),
        (object(), 0),
        ([[1, 2], [3]], 0),
        (np.eye(5)[:2], [0, 0, 0]),
        (np.eye(5)[:2], np.inf),
        (np.eye(5)[:2], "x"),
        ("age = 0", 1),
        (["age"], [1.0]),
        (pd.DataFrame(np.eye(5)), 0),
    ],
)
def test_wrong_forms_are_refused_with_the_call_that_works(make: Maker, form, value):
    with refuses(PlanError) as caught:
        make().wald_test(form, value)
    assert any(call in str(caught.value) for call in ("wald_test(", "r_value=0", "r_matrix["))


@pytest.mark.parametrize(
    "text",
    [
        "height = 0",
        "ages = 0",
        "age*educ = 0",
        "1/age = 0",
        "age/0 = 0",
        "age = 0 = educ",
        "age educ",
        "(age = 0",
        "age +",
        "",
        "age = 0,",
        "age ~ 0",
    ],
)
def test_unreadable_text_is_refused(make: Maker, text):
    with refuses(PlanError) as caught:
        make().wald_test(text)
    assert "write it like wald_test('Intercept = 0')" in str(caught.value)


def test_names_of_any_kind_are_found():
    names = ("age", "age2", "log(age)", "age:educ", "region[T.a, b]", "I(age + educ)", "2x", "日本", "educ", "-")
    for place, name in enumerate(names):
        for text in (f"`{name}` = 0", *([] if name in ("2x", "-") else [f"{name} = 0", f"0 = -{name}"])):
            matrix, value = parse(text, names)
            assert np.flatnonzero(matrix[0]).tolist() == [place], text
            assert value.tolist() == [0.0]
    matrix, value = parse("age + 2 * age:educ - (educ - 1) = -log(age) + 3, age2", names)
    assert matrix.tolist() == [[1, 0, 1, 2, 0, 0, 0, 0, -1, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert value.tolist() == [2.0, 0.0]


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda s: "`" not in s), min_size=1, max_size=4, unique=True))
def test_backticks_take_any_name(names):
    matrix, _ = parse(", ".join(f"`{name}`" for name in names), names)
    np.testing.assert_array_equal(matrix, np.eye(len(names)))


def test_the_names_and_forms_of_statsmodels(make: Maker):
    result = make()
    one = result.wald_test(np.eye(5)[1:3], [1.0, 2.0])
    assert result.f_test((np.eye(5)[1:3], [1.0, 2.0])) == one
    assert result.wald_test((np.eye(5)[1:2], 1.0)) == result.wald_test(np.eye(5)[1:2], 1.0)
    assert one.fvalue == one.statistic and one.summary() == str(one)
    with refuses(PlanError):
        result.wald_test((np.eye(5)[1:2], 1.0), 1.0)


@pytest.mark.parametrize("first", ["age", "2x", "-", ".5", "a b"])
def test_the_call_in_the_message_works(make: Maker, first):
    result = make(names=(first, "b"))
    with pytest.raises(PlanError) as caught:
        result.wald_test("nonsense = 0")
    text = str(caught.value).split("wald_test('")[1].removesuffix("')")
    assert result.wald_test(text) == result.wald_test([first])
