"""Tables of which a part is answered, bounds on bias, and degrees of freedom of their own."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from confide.errors import PlanError
from confide.guarantees import GDP
from confide.results import Estimates
from confide.results.inference.contrasts import combine


def some(**changes: object) -> Estimates:
    mu = GDP(1.0, relation="add-remove")
    numbers: dict[str, object] = {
        "method": "mean 1",
        "response": "y",
        "names": ("a", "b", "c"),
        "estimates": [1.0, nan, -2.0],
        "covariance": [[0.25, nan, 0.1], [nan, nan, nan], [0.1, nan, 1.0]],
        "df": [5.0, nan, inf],
        "noise_variance": [0.1, nan, 0.2],
        "status": "partial",
        "reason": "b needs about 4,000 records",
        "flags": (),
        "requested": mu,
        "guarantee": mu,
        "target": "t",
        "intervals_for": "c",
        "release_sha256": "0" * 64,
    }
    return Estimates(**(numbers | changes))  # type: ignore[arg-type]


def test_what_is_answered_has_its_interval_and_the_rest_has_none() -> None:
    result = some(bias=[0.2, nan, 0.0])
    limits = result.conf_int()
    assert limits.loc["a"].tolist() == pytest.approx(
        [1 - 0.5 * stats.t.ppf(0.975, 5) - 0.2, 1 + 0.5 * stats.t.ppf(0.975, 5) + 0.2]
    )
    assert limits.loc["c"].tolist() == pytest.approx([-2 - stats.norm.ppf(0.975), -2 + stats.norm.ppf(0.975)])
    assert limits.loc["b"].isna().all()
    assert result.pvalues["a"] == pytest.approx(2 * stats.t.sf((1 - 0.2) / 0.5, 5))
    text = result.summary()
    assert "partial" in text and "b needs about 4,000 records" in text
    row = next(line for line in text.splitlines() if line.startswith("b "))
    assert row.split()[1:] == ["n/a"] * 6


def test_a_joint_test_of_answered_coefficients_is_the_one_of_a_table_without_the_others() -> None:
    test = some().wald_test(["a", "c"])
    covariance = np.array([[0.25, 0.1], [0.1, 1.0]])
    expected = np.array([1.0, -2.0]) @ np.linalg.solve(covariance, [1.0, -2.0]) / 2
    assert test.statistic == pytest.approx(expected)
    assert np.isnan(some().wald_test(["a", "b"]).pvalue)


def test_a_bias_is_explained_where_an_interval_holds_one(tmp_path: Path) -> None:
    held, words = some(bias=[0.2, nan, 0.0]), "t is the estimate less that bound"
    assert words in " ".join(held.summary().split())
    assert held.tvalues.iloc[0] != held.estimates[0] / held.bse.iloc[0]
    page = held.report(tmp_path / "held.html").read_text()
    assert "less the bound on the bias" in page and "intervals are wider by a bound" in page
    for free in (some(), some(bias=[0.0, nan, 0.0])):
        assert words not in " ".join(free.summary().split())
        assert "where a bias is possible" not in free.report(tmp_path / "free.html").read_text()


def test_combinations_take_the_fewest_degrees_of_freedom_and_add_the_biases() -> None:
    made = combine(some(bias=[0.2, nan, 0.3]), [[1, 0, 1], [0, 1, 0], [0, 0, 1]], names=("a + c", "b", "c"))
    assert made.effect.tolist()[0] == -1.0 and np.isnan(made.effect[1])
    assert np.asarray(made.df)[[0, 2]].tolist() == [5.0, inf]
    assert made.bias is not None and made.bias[[0, 2]].tolist() == [0.5, 0.3]
    low, high = made.conf_int().loc["a + c"]
    assert high - low == pytest.approx(2 * (stats.t.ppf(0.975, 5) * np.sqrt(1.45) + 0.5))
    assert made.conf_int().loc["b"].isna().all()


@pytest.mark.parametrize(
    "changes",
    [
        {"estimates": [1.0, 2.0, 3.0]},  # nothing is left open
        {"covariance": np.diag([0.25, 1.0, 1.0])},  # an interval could be computed for b
        {"df": [5.0, nan, 0.0]},
        {"bias": [-0.1, nan, 0.0]},
        {"reason": ""},
    ],
)
def test_a_partial_table_that_contradicts_itself_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        some(**changes)


def test_a_table_without_anything_open_keeps_its_numbers() -> None:
    whole = some(
        estimates=[1.0, 0.0, -2.0],
        covariance=np.diag([0.25, 1.0, 1.0]),
        df=7.0,
        noise_variance=[0.1, 0.1, 0.2],
        status="valid",
        reason="",
    )
    assert replace(whole, bias=[0.0, 0.0, 0.0]).conf_int().equals(whole.conf_int())
    assert whole.fewest_df == 7.0 and not whole.normal
