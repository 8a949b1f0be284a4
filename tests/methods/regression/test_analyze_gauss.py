"""Analyze Gauss against least squares, its calibration, and the classical noise against the audit."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
import confide.audit
import confide.testing
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise
from confide_lab.methods.analyze_gauss import AnalyzeGauss
from confide_lab.published.analyze_gauss import analyze_gauss

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})
FORMULA = "y ~ a + b"


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + 2 * g.standard_normal(n)
    return frame


def estimate(method: AnalyzeGauss, frame: pd.DataFrame, mu: float = 1.0, noise: object = None) -> object:
    source = cf.read(frame, SCHEMA)
    return cf.infer(cf.release(method, source, cf.GDP(mu), ledger=None, noise=noise or SimulatedNoise(1)))


@pytest.mark.few("method0")
@pytest.mark.parametrize("method", [AnalyzeGauss(FORMULA), AnalyzeGauss("y ~ 0 + a", row_bound=1.1)])
def test_it_keeps_the_contract_and_the_audit_holds(method: AnalyzeGauss) -> None:
    cf.testing.check_method(method, SCHEMA)
    assert cf.audit.audit(method, SCHEMA, runs=2_000, seed=1).ok


def test_its_noise_is_the_bound_over_mu() -> None:
    for relation, factor in (("add-remove", 1), ("substitute", 2)):
        plan = AnalyzeGauss(FORMULA).plan(SCHEMA, cf.GDP(0.7, relation=relation))
        spend = plan.spend("moments")
        squared = spend.sensitivity**2 * spend.step**2
        assert factor * 2**80 <= squared <= factor * 2**80 * (1 + Fraction(1, 10**12))
        assert float(spend.mu_squared) == pytest.approx(0.49, rel=1e-12) and spend.mu_squared <= Fraction(0.7) ** 2


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan"), True, "2"])
def test_a_bound_that_cannot_work_is_refused(bound: object) -> None:
    with refuses(PlanError):
        AnalyzeGauss(FORMULA, row_bound=bound).plan(SCHEMA, cf.GDP(1.0))


@pytest.mark.parametrize("formula", [FORMULA, "y ~ 0 + a + b"])
def test_without_noise_it_is_least_squares(formula: str) -> None:
    frame = records(2_000, 4)
    result = estimate(AnalyzeGauss(formula), frame, 1e4, ZeroNoise())
    coded = pd.DataFrame(
        {name: SCHEMA[name].decode(SCHEMA[name].code(frame[name].to_numpy())) for name in SCHEMA.names}
    )
    design = cf.schema.ModelMatrix.of(formula, SCHEMA).matrix(coded)
    expected = np.linalg.lstsq(design, coded["y"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose(result.params, expected, rtol=1e-4)


def test_a_question_for_a_subset_is_the_smaller_model() -> None:
    frame = records(2_000, 5)
    source = cf.read(frame, SCHEMA)
    release = cf.release(AnalyzeGauss(FORMULA), source, cf.GDP(1e4), ledger=None, noise=ZeroNoise())
    smaller = estimate(AnalyzeGauss("y ~ b"), frame, 1e4, ZeroNoise())
    np.testing.assert_allclose(cf.infer(release, subset=("b",)).params, smaller.params, rtol=1e-5)


def test_it_is_weak_where_the_noise_reaches_the_smallest_eigenvalue() -> None:
    assert estimate(AnalyzeGauss(FORMULA), records(0, 1)).status == "imprecise"
    assert estimate(AnalyzeGauss(FORMULA), records(20, 1)).status == "imprecise"
    result = estimate(AnalyzeGauss(FORMULA), records(5_000, 1))
    assert result.status == "valid" and not result.has_intervals
    np.testing.assert_allclose(result.params.to_numpy()[1:], [2.0, -0.5], atol=0.5)


def test_the_audit_flags_the_classical_noise_at_epsilon_8() -> None:
    """One feature, a record (B, 0): the entry of x x is a one-dimensional Gaussian mechanism, exactly."""
    delta, epsilon = 0.01, 8.0

    generator, data = np.random.default_rng(3), (np.ones((1, 1)), np.zeros(1))
    fits = [analyze_gauss(*data, generator, epsilon=epsilon, delta=delta, bound=1.0) for _ in range(20_000)]
    draws = [fit["moments"][0, 0] for fit in fits]
    sd = sqrt(2 * np.log(1.25 / delta)) / epsilon
    assert np.std(draws) == pytest.approx(sd, rel=0.03)
    claim = cf.ApproxDP(epsilon, delta)
    found = cf.audit.audit_law("gaussian", scale=sd**2, shift=1, claim=claim, name="classical")
    exact = cf.audit.audit_law(
        "gaussian", scale=1 / cf.guarantees.calibrate_gaussian(claim) ** 2, shift=1, claim=claim, name="exact"
    )
    assert found.verdict == "violated" and exact.verdict == "holds"
