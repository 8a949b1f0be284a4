"""AdaOPS: contract and audit, its split and penalty, and the lab's comparison."""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest

import confide as cf
import confide.audit
from confide.core import seal
from confide.noise import SimulatedNoise
from confide.testing import check_method
from confide_lab.aggregates.posterior import chosen_penalty
from confide_lab.experiments.gptr import FIGURE1, INTERVALS, measure_figure1, measure_intervals
from confide_lab.experiments.gptr_fits import FITS, posterior_sample, ssp_gdp
from confide_lab.methods.adaops import AdaOPS
from confide_lab.methods.posterior_sampling import PosteriorSampling

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "b": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
ASKED = cf.GDP(1.0, 1e-6)


@pytest.mark.long
def test_contract() -> None:
    assert check_method(AdaOPS("y ~ a + b"), SCHEMA, privacy=ASKED, raises=False).ok


@pytest.mark.long
def test_audit() -> None:
    assert cf.audit.audit(AdaOPS("y ~ a"), SCHEMA, privacy=ASKED, runs=1_000, seed=1).violated == ()


def test_its_shares_are_a_quarter_of_mu_each_and_its_penalty_is_more_cautious() -> None:
    ada, plain = AdaOPS("y ~ a + b"), PosteriorSampling("y ~ a + b")
    plan = cf.plan(ada, SCHEMA, ASKED)
    assert plan.spend("eigenvalue").mu_squared <= Fraction(1, 16)
    assert float(plan.spend("residual").mu_squared) == pytest.approx(1 / 16, rel=1e-9)
    assert ada._tail(3) == pytest.approx((1.5 + sqrt(3 * log(20)) + log(20)) * 2 / 3) and plain._tail(3) == 1
    odds = ada._odds(cf.core.Allowance(ASKED.resolve("add-remove"), plan.guarantee, 1))  # type: ignore[arg-type]
    from dataclasses import replace

    mean, tail = (chosen_penalty(replace(odds, tail=t), 0.0, 3, 1.3, 1.0, 0.7) for t in (1.0, ada._tail(3)))
    assert tail > mean


def test_a_line_comes_out() -> None:
    g = np.random.default_rng(1)
    frame = pd.DataFrame(g.uniform(-1, 1, (5_000, 2)), columns=["a", "b"])
    frame["y"] = np.clip(0.5 * frame.a - 0.3 * frame.b + 0.2 * g.standard_normal(5_000), -1, 1)
    method = AdaOPS("y ~ a + b")
    source, plan = cf.read(frame, SCHEMA), cf.plan(method, SCHEMA, ASKED)
    lines = [method.infer(seal(method, source, plan, SimulatedNoise(k))).params.to_numpy() for k in range(15)]
    np.testing.assert_allclose(np.median(lines, axis=0), [0, 0.5, -0.3], atol=0.1)


# the lab's comparison ------------------------------------------------------------------------------------------------


def test_on_arrays_it_is_the_same_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lab's float version and the method's exact one have the same spread of lines, here within a factor."""
    # a function of leverage, level and slack that takes less long than the search and tells wrong ones apart
    for module in ("methods.posterior_sampling", "experiments.gptr_fits"):
        monkeypatch.setattr(
            f"confide_lab.{module}.largest_shift", lambda lev, mu, slack: mu / (1 + 5 * lev) + 1e3 * slack
        )
    g = np.random.default_rng(2)
    x = g.uniform(-1, 1, (3_000, 1))
    y = np.clip(0.5 * x[:, 0] + 0.2 * g.standard_normal(3_000), -1, 1)
    schema = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
    method = PosteriorSampling("y ~ a", penalty=20.0, leverage_cap=2.0)
    source, plan = cf.read(pd.DataFrame({"a": x[:, 0], "y": y}), schema), cf.plan(method, schema, ASKED)
    rows = np.column_stack([np.ones(3_000), x])
    # rows of length sqrt(2) at B = 1: halve the second moments by scaling
    own = [posterior_sample(rows / sqrt(2), y, g, mu=1.0, delta=1e-6, lam=10.0) for _ in range(80)]
    theirs = [seal(method, source, plan, SimulatedNoise(k))["line"].decode() for k in range(80)]
    ratio = np.std([line[1] / sqrt(2) for line in own if line is not None]) / np.std([line[1] for line in theirs])
    assert 0.68 < ratio < 1.45


def test_the_figure_measures_every_method() -> None:
    at = {"data": "sim17000x12", "epsilon": 1.0, "replication": 0}
    found = {}
    for method in FITS:
        if method != "ops_ptr_literal":
            found[method] = measure_figure1({**at, "method": method}, np.random.default_rng(3))["mse"]
    assert found["ols"] < found["ssp_gdp"] < found["posterior_sampling"] < found["zero"]
    assert found["ssp_gdp"] <= found["adassp_literal"] and found["public_only"] < found["zero"]
    assert {"zero", "public_only"} <= set(FIGURE1.blocks[0].methods)


def test_noisy_moments_cover_and_ignoring_the_noise_does_not() -> None:
    """40 replications of 5 slopes at n = 10,000, epsilon = .2, clustered by replication (99.9 %)."""
    rows = {
        method: np.array(
            [
                float(
                    measure_intervals(
                        {"cell": "10000 5 0.2", "method": method, "replication": k}, np.random.default_rng(k)
                    )["covered"]
                )
                for k in range(40)
            ]
        )
        for method in ("ssp_gdp", "naive", "ssp")
    }
    for method in ("ssp_gdp", "ssp"):
        covered = rows[method][np.isfinite(rows[method])]
        assert len(covered) >= 35 and covered.mean() + 3.3 * covered.std() / sqrt(len(covered)) >= 0.93
    naive = rows["naive"][np.isfinite(rows["naive"])]
    assert naive.mean() + 3.3 * naive.std() / sqrt(len(naive)) < 0.93
    assert "ssp" in INTERVALS.blocks[0].methods


def test_the_symmetric_noise_has_variance_one_and_a_half() -> None:
    """Without a ridge beta = (G + s1 E)^-1 c: at n = 100 x I the first order of its noise shows E's two variances (99.9 %)."""
    g = np.random.default_rng(4)
    x, y = np.repeat(np.eye(2), 400, axis=0), np.repeat([1.0, 0.0], 400)
    mu = 8.0
    lines = np.array([ssp_gdp(x, y, g, mu=mu).beta for _ in range(1_500)])
    # moments get equal shares: s1 = s2 = sqrt(2)/mu; beta - (1, 0) = (s2 z - s1 E (1, 0))/400
    s = sqrt(2) / mu / 400
    for own, wanted in zip(lines.var(axis=0) / s**2, (1 + 1.0, 1 + 0.5), strict=True):
        assert abs(own / wanted - 1) < 3.3 * sqrt(2 / 1_500)
