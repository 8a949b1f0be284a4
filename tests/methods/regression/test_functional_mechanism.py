"""FunctionalMechanism: contract, audit, sensitivity against search, accuracy; the published one beside it."""

from __future__ import annotations

from itertools import product
from math import nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method, codes_of
from confide_lab.aggregates.coefficients import CoefficientTotal, QuadraticCoefficients
from confide_lab.methods.functional_mechanism import FunctionalMechanism
from confide_lab.published.functional_mechanism import functional_mechanism

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})
DESIGN = cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA)

place = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1, 1))


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y"] = 1.5 + 2 * frame.a - 0.5 * frame.b + 2 * g.standard_normal(n)
    return frame


def test_contract_and_audit() -> None:
    method = FunctionalMechanism("y ~ a + b")
    assert check_method(method, SCHEMA, privacy=cf.PureDP(1.0), raises=False).ok
    found = cf.audit.audit(method, SCHEMA, privacy=cf.PureDP(1.0), runs=4_000, seed=1)
    assert found.ok
    exact = {f.relation: f.lower_bound for f in found if f.name.endswith("release") and f.attack == "exact difference"}
    assert exact["add-remove"] > 0.999999


def test_it_gives_pure_privacy_for_each_request() -> None:
    method = FunctionalMechanism("y ~ a + b")
    assert method.plan(SCHEMA, cf.PureDP(0.5)).guarantee == cf.PureDP(0.5, relation="add-remove")
    assert isinstance(method.plan(SCHEMA, cf.GDP(1.0)).guarantee, cf.PureDP)
    with refuses(PlanError):
        FunctionalMechanism("y ~ a", ridge=nan)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), st.data())
def test_no_pair_of_records_goes_beyond_the_sensitivity(d: int, data: st.DataObject) -> None:
    """Exact integers, both relations, in any number of features."""
    schema = cf.Schema({**{f"x{j}": cf.Numeric(-1, 1) for j in range(d)}, "y": cf.Numeric(-1, 1)})
    coefficients = QuadraticCoefficients(
        cf.schema.ModelMatrix.of("y ~ " + " + ".join(f"x{j}" for j in range(d)), schema)
    )
    rows = data.draw(st.lists(st.tuples(*[place] * (d + 1)), min_size=2, max_size=4))
    frame = pd.DataFrame(rows, columns=[*schema.names])
    integers = coefficients(codes_of(cf.read(frame, schema), coefficients)).astype(object)
    total = CoefficientTotal(coefficients)
    assert max(abs(integers).sum(axis=0)) <= total.sensitivity_l1("add-remove")
    for i, j in product(range(len(rows)), repeat=2):
        assert sum(abs(integers[:, i] - integers[:, j])) <= total.sensitivity_l1("substitute")


def test_a_corner_attains_the_sensitivity() -> None:
    (high, other), _ = FunctionalMechanism("y ~ a + b").worst_pairs(SCHEMA)
    coefficients = QuadraticCoefficients(DESIGN)
    integers = coefficients(codes_of(cf.read(pd.DataFrame([high, other]), SCHEMA), coefficients)).astype(object)
    assert [sum(abs(column)) for column in integers.T] == [
        CoefficientTotal(coefficients).sensitivity_l1("add-remove")
    ] * 2
    # the sensitivity of the source, which counts both triangles, the constant, and everything twice
    assert coefficients.l1 < 2 * (1 + 2 * 2 + 4) * 2**20


def test_incomplete_records_count_for_nothing() -> None:
    coefficients = QuadraticCoefficients(DESIGN)
    frame = pd.DataFrame({"a": [nan, 1.0], "b": [1.0, 1.0], "y": [0.0, nan]})
    assert not coefficients(codes_of(cf.read(frame, SCHEMA), coefficients)).any()


@pytest.mark.parametrize("formula", ["y ~ a + b", "y ~ 0 + a + b", "y ~ a + I(b**2) + a:b"])
def test_without_noise_it_is_least_squares(formula: str) -> None:
    frame = records(2_000, 1)
    method = FunctionalMechanism(formula)
    release = cf.release(method, cf.read(frame, SCHEMA), cf.PureDP(1e6), ledger=None, noise=ZeroNoise())
    design = cf.schema.ModelMatrix.of(formula, SCHEMA)
    ols, *_ = np.linalg.lstsq(design.matrix(frame), frame["y"], rcond=None)
    found = method.infer(release)
    np.testing.assert_allclose(design.matrix(frame) @ found.params.to_numpy(), design.matrix(frame) @ ols, atol=0.05)
    assert found.status == "valid" and found.bse.isna().all()


def test_where_noise_rules_directions_are_trimmed_and_nothing_explodes() -> None:
    method = FunctionalMechanism("y ~ a + b", ridge=0.0)
    seen = set()
    for seed in range(20):
        release = cf.release(
            method, cf.read(records(20, seed), SCHEMA), cf.PureDP(0.1), ledger=None, noise=SimulatedNoise(seed)
        )
        found = method.infer(release)
        assert np.isfinite(found.params).all()
        seen.add(found.status)
    assert "imprecise" in seen


def test_it_is_closer_than_the_published_one_at_the_same_epsilon() -> None:
    """Excess squared error of predictions at n = 4,000, d = 3, epsilon = 1, medians over 25 runs."""
    g = np.random.default_rng(1)
    x = g.random((4_000, 3))
    y = np.clip(x @ [0.6, -0.4, 0.5] + 0.1 * g.standard_normal(4_000), -1, 1)
    schema = cf.Schema({**{f"x{j}": cf.Numeric(0, 1) for j in range(3)}, "y": cf.Numeric(-1, 1)})
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"]).assign(y=y)
    method = FunctionalMechanism("y ~ x0 + x1 + x2")
    ours, theirs = [], []
    for seed in range(25):
        release = cf.release(method, cf.read(frame, schema), cf.PureDP(1.0), ledger=None, noise=SimulatedNoise(seed))
        found = method.infer(release)
        ours.append(float(((y - found.predict(frame)) ** 2).mean()))
        literal = functional_mechanism(x / np.sqrt(3), y, np.random.default_rng(seed), epsilon=1.0)
        theirs.append(float(((y - x / np.sqrt(3) @ literal["omega"]) ** 2).mean()))
    assert np.median(ours) < np.median(theirs)
    assert functional_mechanism.guarantee is None and functional_mechanism.errata
