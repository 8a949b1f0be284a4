"""BinAgg: contract, audit, estimates, refusals, exact shifts of its releases."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from tests.few import few
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import OpaqueRelease, leaves
from confide.errors import PlanError
from confide.methods.regression.evidence.normal_equations import Line
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method
from confide_lab.aggregates.bins import NoisyBins, read_bins
from confide_lab.aggregates.trees import Paths
from confide_lab.methods.binagg import BinAgg, fit_bins

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})
METHODS = [
    BinAgg("y ~ a + b"),
    BinAgg("y ~ a + b", tree="privtree", depth=8),
    BinAgg("y ~ 0 + a + b", tree="grid", cov="model"),
]


def records(n: int, seed: int, sd: float = 2.0, intercept: float = 1.5) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = intercept + 2 * frame.a - 0.5 * frame.b + sd * g.standard_normal(n)
    return frame


def released(method: BinAgg, frame: pd.DataFrame, noise: object, mu: float = 1.0) -> cf.Release:
    return cf.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", few(METHODS, 0), ids=lambda method: method.tree)
def test_contract(method: BinAgg) -> None:
    # 15 runs show an interval that covers half of the time; `test_coverage_and_accuracy` asks for 95 %
    assert check_method(method, SCHEMA, raises=False, replications=15).ok


def test_audit_holds_and_every_sensitivity_is_attained() -> None:
    found = cf.audit.audit(BinAgg("y ~ a + b"), SCHEMA, runs=4_000, seed=1)
    assert found.ok
    exact = {(f.name, f.relation): f.lower_bound for f in found if f.attack == "exact difference"}
    assert exact["binagg release", "add-remove"] > 0.999
    assert exact["binagg release", "substitute"] > 0.99


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("tree", ["gaussian", "privtree", "grid"])
def test_a_plan_spends_what_it_states(tree: str, relation: str) -> None:
    plan = cf.plan(BinAgg("y ~ a + b", tree=tree), SCHEMA, cf.GDP(0.8, relation=relation))
    total = Fraction(0)
    for leaf in leaves(plan.event):
        total += (
            Fraction(leaf.guarantee.to_gdp().mu) ** 2
            if isinstance(leaf, OpaqueRelease)
            else leaf.sensitivity**2 / leaf.scale
        )
    assert total <= Fraction(plan.guarantee.mu) ** 2 and plan.guarantee.mu <= 0.8
    assert sqrt(total) == pytest.approx(0.8, abs=1e-9)
    table = plan.spend("cells")
    assert float(table.sensitivity * table.step) / 2**20 == pytest.approx(sqrt(2) if relation == "substitute" else 1)


def test_more_than_six_terms_are_refused() -> None:
    names = [f"x{j}" for j in range(7)]
    schema = cf.Schema({**{name: cf.Numeric(0, 1) for name in names}, "y": cf.Numeric(0, 1)})
    formula = "y ~ " + " + ".join(names)
    with refuses(PlanError):
        BinAgg(formula).plan(schema, cf.GDP(1.0))
    assert BinAgg(formula, force=True).plan(schema, cf.GDP(1.0)).guarantee.mu == 1.0


def test_bad_settings_raise_and_name_what_works() -> None:
    for name, value in (("tree", "best"), ("cov", "robust"), ("force", 1), ("clipping_check", "no")):
        with refuses(PlanError):
            BinAgg("y ~ a", **{name: value})  # type: ignore[arg-type]
    with refuses(PlanError):
        BinAgg("y ~ a", depth=40).plan(SCHEMA, cf.GDP(1.0))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.tree)
def test_large_samples_are_close_to_least_squares(method: BinAgg) -> None:
    frame = records(40_000, 1, intercept=0.0 if "0 +" in method.formula else 1.5)
    found = method.sandwich(released(method, frame, SimulatedNoise(1)))
    truth = [2.0, -0.5] if "0 +" in method.formula else [1.5, 2.0, -0.5]
    assert found.status == "valid"
    assert (np.abs(found.estimates - truth) < 5 * found.errors).all()
    assert (found.errors < 0.2).all()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.tree)
def test_no_table_says_ok_or_prints_an_interval(method: BinAgg) -> None:
    """Where the sandwich over bins has numbers, too: it is for studies."""
    release = released(method, records(4_000, 2), SimulatedNoise(2))
    result = method.infer(release)
    assert method.sandwich(release).status == "valid"
    assert result.status == "imprecise" and "LeastSquares" in result.reason and not result.has_intervals
    assert result.conf_int().isna().all(axis=None) and result.pvalues.isna().all() and np.isfinite(result.params).all()
    assert "point estimates, without intervals" in result.summary(verbose=True)
    assert "too large" not in result.summary(verbose=True)


def test_one_record_in_each_bin_without_noise_is_weighted_least_squares() -> None:
    g = np.random.default_rng(1)
    x, zero = g.uniform(-1, 1, size=(50, 2)), np.zeros(50)
    t = 0.2 + x @ [0.3, -0.1] + 0.05 * g.standard_normal(50)
    whole = Paths((4, 4), 0).bins([0], [0])
    bins = NoisyBins(whole, x, 0 * x, np.ones(50), 0 * x, t, zero, 0 * x, zero)
    found = fit_bins(bins, Line.free(3), "hc3")
    z = np.column_stack([np.ones(50), x])
    ols = np.linalg.lstsq(z, t, rcond=None)[0]
    np.testing.assert_allclose(found.theta, ols, atol=1e-10)
    bread = np.linalg.inv(z.T @ z)
    scores = z * ((t - z @ ols) / (1 - np.einsum("ij,jk,ik->i", z, bread, z)))[:, None]
    np.testing.assert_allclose(found.covariance, bread @ scores.T @ scores @ bread, rtol=1e-8)


def test_exact_counts_without_noise() -> None:
    method = BinAgg("y ~ a + b", clipping_check=False)
    frame = records(2_000, 2)
    bins = read_bins(released(method, frame, ZeroNoise(), mu=10.0), cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA))
    assert bins.counts.sum() == pytest.approx(2_000, abs=1e-6)
    inside = np.abs(bins.sums) <= bins.counts[:, None] * bins.halves + 1e-3
    assert inside.all()
    assert (bins.labels.sum() * 25 + 5 * 2_000) == pytest.approx(frame.y.sum(), rel=1e-3)


def test_units_do_not_matter() -> None:
    method, frame = BinAgg("y ~ a + b"), records(3_000, 3)
    other = cf.Schema({"a": cf.Numeric(-20, 30), "b": cf.Numeric(0, 10), "y": cf.Numeric(-2, 3)})
    scaled = frame.assign(a=10 * frame.a, y=frame.y / 10)
    one = method.infer(released(method, frame, SimulatedNoise(4)))
    two = method.infer(cf.release(method, cf.read(scaled, other), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(4)))
    np.testing.assert_allclose(two.params, one.params * [0.1, 0.01, 0.1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("tree", ["gaussian", "privtree", "grid"])
def test_next_to_no_records_give_a_status_and_no_error(n: int, tree: str) -> None:
    method = BinAgg("y ~ a + b", tree=tree)
    seen = {method.infer(released(method, records(n, 1), SimulatedNoise(s))).status for s in range(6)}
    assert seen <= {"imprecise", "not_identified"}


def test_hostile_records_are_dropped_or_clipped() -> None:
    frame = records(400, 5).astype(object)
    frame.iloc[0] = [1e300, -1e300, float("inf")]
    frame.iloc[1] = [float("nan"), 3.0, 2.0]
    result = BinAgg("y ~ a + b").infer(released(BinAgg("y ~ a + b"), frame, SimulatedNoise(2)))
    assert np.isfinite(result.nobs)


def test_clipped_responses_raise_a_flag() -> None:
    frame = records(4_000, 6)
    frame.loc[frame.index[:600], "y"] = 99.0
    method = BinAgg("y ~ a + b")
    assert "values_clipped" in method.infer(released(method, frame, SimulatedNoise(3))).flags
    assert "values_clipped" not in method.infer(released(method, records(4_000, 6), SimulatedNoise(3))).flags


@pytest.mark.long
def test_coverage_and_accuracy() -> None:
    from confide_lab.benchmarks.binagg import simulate

    errors, hits, ok, _ = simulate(BinAgg("y ~ 0 + x0 + x1 + x2 + x3 + x4"), 300, 1000, 5, (0, 7), 17)
    assert errors.mean() <= 0.14 and ok == 1 and 0.93 <= hits.mean() <= 0.98
