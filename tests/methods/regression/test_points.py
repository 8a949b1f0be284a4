"""Point estimates: units, restrictions, predictions, and tables without intervals."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.methods.regression.evidence.normal_equations import Line, line_of
from confide.noise import SimulatedNoise
from confide_lab.aggregates.points import point_estimates, ridge_line, weakness
from confide_lab.methods.adassp import AdaSSP

SCHEMA = cf.Schema({"a": cf.Numeric(-2, 3), "b": cf.Numeric(0, 10), "y": cf.Numeric(-20, 30)})


def release(formula: str) -> cf.Release:
    return cf.release(
        AdaSSP(formula), cf.read(SCHEMA.sample(500, 1), SCHEMA), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)
    )


def scaled(intercept: float, a: float, b: float) -> np.ndarray:
    """theta of the line intercept + a x_a + b x_b in the units of the data."""
    # t = (y - 5)/25, x~_a = (x_a - .5)/2.5, x~_b = (x_b - 5)/5
    return np.array([intercept + 0.5 * a + 5 * b - 5, 2.5 * a, 5 * b]) / 25


def test_a_line_comes_back_in_the_units_of_the_data_and_predicts() -> None:
    design = cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA)
    result = point_estimates(
        AdaSSP("y ~ a + b"), release("y ~ a + b"), design, scaled(1.5, 2.0, -0.5), reason="none was asked for"
    )
    np.testing.assert_allclose(result.params, [1.5, 2.0, -0.5], rtol=1e-12)
    assert result.status == "valid" and "no_interval" in result.flags and not result.has_intervals
    assert result.bse.isna().all() and result.conf_int().isna().all().all() and isnan(result.rsquared)
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 4.0]})
    np.testing.assert_allclose(result.predict(frame), [0.5, 1.5], rtol=1e-12)
    text = result.summary()
    assert "no interval: none was asked for" in text and "nan" not in text
    assert "<html" not in result._repr_html_() and result.to_json()


def test_without_an_intercept_the_line_goes_through_the_origin() -> None:
    design = cf.schema.ModelMatrix.of("y ~ 0 + a + b", SCHEMA)
    line = line_of(design)
    generator = np.random.default_rng(1)
    root = generator.normal(size=(3, 3))
    theta = ridge_line(root @ root.T, generator.normal(size=3), line, ridge=0.3)
    result = point_estimates(AdaSSP("y ~ 0 + a + b"), release("y ~ 0 + a + b"), design, theta, reason="-")
    assert list(result.params.index) == ["a", "b"]
    # the value at a = b = 0 is 0: theta'(1, x~(0)) in half-ranges is the middle of y, 5, below 0
    assert abs((theta @ np.array([1.0, -0.2, -1.0])) * 25 + 5) < 1e-9
    np.testing.assert_allclose(result.predict(pd.DataFrame({"a": [0.0], "b": [0.0]})), [0.0], atol=1e-9)


def test_a_ridge_line_minimises_its_objective_on_the_line() -> None:
    design = cf.schema.ModelMatrix.of("y ~ 0 + a + b", SCHEMA)
    generator = np.random.default_rng(2)
    root = generator.normal(size=(3, 5))
    gram, cross = root @ root.T, generator.normal(size=3)
    for line in (Line.free(3), line_of(design)):
        theta = ridge_line(gram, cross, line, ridge=0.5)

        def objective(at: np.ndarray) -> float:
            return float(at @ (gram + 0.5 * np.eye(3)) @ at - 2 * at @ cross)

        for step in generator.normal(size=(50, line.basis.shape[1])):
            assert objective(theta + 1e-3 * line.basis @ step) > objective(theta)


@pytest.mark.parametrize("theta", [[nan, 0.0, 0.0], [np.inf, 0.0, 0.0]])
def test_a_line_that_is_not_finite_is_not_identified(theta: list[float]) -> None:
    design = cf.schema.ModelMatrix.of("y ~ a + b", SCHEMA)
    result = point_estimates(AdaSSP("y ~ a + b"), release("y ~ a + b"), design, np.array(theta), reason="-")
    assert result.status == "not_identified" and result.params.isna().all()
    assert np.isnan(ridge_line(np.zeros((3, 3)), np.ones(3), Line.free(3))).all()


def test_weakness_compares_the_smallest_eigenvalue_with_the_norm_of_the_noise() -> None:
    assert weakness(np.diag([10.0, 2.5]), 1.0, Line.free(2)) == ""
    assert "ask for fewer terms" in weakness(np.diag([10.0, 1.5]), 1.0, Line.free(2))
    # on a line that leaves the weak direction out nothing is weak
    assert weakness(np.diag([10.0, 0.0]), 1.0, Line(np.zeros(2), np.eye(2)[:, :1])) == ""
