"""Private re-centring of SSP: which branch is taken, what it costs, that the line in any box is OLS, and that it helps."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from benchmarks.coverage import consistent

import confide as cf
from confide.noise import SimulatedNoise
from confide.protocol import Either, leaves
from confide.protocol.events import paths
from confide.testing import ZeroNoise

LOOSE = cf.Schema({"a": cf.Numeric(-20, 30), "b": cf.Numeric(0, 100), "k": cf.Integer(0, 1), "y": cf.Numeric(-20, 30)})
FORMULA = "y ~ a + b + k"


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(40, 50, n), "k": g.integers(0, 2, n).astype(float)})
    frame["y"] = 20 + 2 * frame.a - 0.5 * frame.b + 3 * frame.k + 2 * g.standard_normal(n)
    return frame


def release(method: object, frame: object, *, mu: float = 1.0, noise: object = None) -> cf.Release:
    return cf.release(method, cf.read(frame, LOOSE), cf.GDP(mu), ledger=None, noise=noise or SimulatedNoise(1))


def method(formula: str = FORMULA, **settings: object) -> cf.regression.SSP:
    return cf.regression.SSP(formula, recenter="auto", **settings)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("cov", ["robust", "classical"])
@pytest.mark.parametrize("formula", [FORMULA, "y ~ 0 + a + b", "y + a ~ b + k"])
def test_both_branches_cost_what_is_promised(relation: str, cov: str, formula: str) -> None:
    plan = cf.plan(method(formula, cov=cov), LOOSE, cf.GDP(0.7, relation=relation))
    spends = {leaf.name: leaf for leaf in leaves(plan.event)}
    both = list(paths(plan.event))
    assert len(both) == 2 and sum("ranges" in names for names in both) == 1
    for names in both:
        total = sum((spends[name].sensitivity ** 2 / spends[name].scale for name in names), Fraction(0))
        assert total <= Fraction(0.7) ** 2
        assert sqrt(total) == pytest.approx(0.7, rel=1e-9)
    assert any(isinstance(part, Either) for part in plan.event.parts)


def test_the_noisy_count_chooses_the_branch() -> None:
    many, few = release(method(), records(3_000, 1)), release(method(), records(60, 1))
    assert "ranges" in many.statistics and "re-centred moments" in many.statistics
    assert "ranges" not in few.statistics and "moments" in few.statistics
    assert many.public["box"].shape == (2, 3) and "box" not in few.public


def test_binary_columns_keep_their_public_box() -> None:
    middle, half = release(method(), records(3_000, 2)).public["box"]
    assert (middle[2], half[2]) == (0.5, 0.5)
    assert abs(middle[0] - 0.5) < 1 and half[0] < 5 and half[1] < 10


def test_without_a_feature_that_has_a_range_there_is_nothing_to_recentre() -> None:
    plan = cf.plan(method("y ~ k"), LOOSE, cf.GDP(1.0))
    assert {leaf.name for leaf in leaves(plan.event)} == {"moments", "meat", "clipping"}


@pytest.mark.parametrize("value", [True, "always", None, 1])
def test_other_settings_are_refused(value: object) -> None:
    with pytest.raises(cf.PlanError, match="recenter"):
        cf.regression.SSP(FORMULA, recenter=value)


@pytest.mark.parametrize("formula", [FORMULA, "y ~ 0 + a + b + k", "y ~ a*k + I(b**2)"])
def test_without_noise_the_line_in_any_box_is_ols(formula: str) -> None:
    """Weights are 1 with a cap beyond every record; records are many, so that the noisy branch is taken."""
    frame = records(3_000, 4)
    made = release(method(formula, leverage_cap=500.0), frame, noise=ZeroNoise(), mu=1e4)
    assert "ranges" in made.statistics
    result = cf.infer(made)
    design = cf.Design.of(formula, LOOSE).matrix(frame)
    ols = sm.OLS(frame["y"].to_numpy(), design).fit()
    assert np.abs((result.params.to_numpy() - ols.params) / ols.bse).max() < 2e-2
    np.testing.assert_allclose(result.bse, ols.get_robustcov_results("HC0").bse, rtol=3e-2)


def test_it_pays_where_bounds_are_loose_and_covers() -> None:
    wide, near, hits = [], [], []
    truth = np.array([20, 2, -0.5, 3])
    for r in range(60):
        frame = records(1_500, 50 + r)
        one = cf.infer(release(cf.regression.SSP(FORMULA, recenter=False), frame, noise=SimulatedNoise(r)))
        two = cf.infer(release(method(), frame, noise=SimulatedNoise(r)))
        wide.append(abs(one.params["a"] - 2))
        near.append(abs(two.params["a"] - 2))
        if two.status == "ok":
            limits = two.conf_int().to_numpy()
            hits.append((limits[:, 0] <= truth) & (truth <= limits[:, 1]))
    assert np.median(near) < 0.5 * np.median(wide)
    assert len(hits) >= 50 and consistent(np.array(hits), 0.93, 0.99)


def test_clipped_responses_are_counted_against_the_noisy_count() -> None:
    frame = records(4_000, 5)
    frame.loc[:399, "y"] = 99.0
    result = cf.infer(release(method(), frame, mu=3.0))
    assert "y_clipping" in result.flags
    assert 9.0 < float(dict(result.facts)["Clipped responses"].split("%")[0]) < 11.0


@pytest.mark.parametrize("formula", ["y ~ a", pytest.param("y + a ~ b", marks=pytest.mark.long)])
def test_the_contract_and_the_audit_hold(formula: str) -> None:
    small = cf.Schema({"a": cf.Numeric(0, 1), "b": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)})
    own = method(formula)
    assert cf.testing.check_method(own, small, replications=8, privacy=cf.GDP(3.0)).ok
    assert cf.audit.audit(own, small, runs=0).ok


def test_a_file_gives_the_same_table() -> None:
    made = release(method(), records(3_000, 6))
    again = cf.Release.from_json(made.to_json())
    for question in (None, cf.Question(subset=("a",))):
        assert cf.infer(again, question).to_json() == cf.infer(made, question).to_json()
