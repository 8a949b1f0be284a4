"""A newcomer's first call: a formula, privacy and a seed on a plain schema, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.schema import CodedFrame

_PAIR = cf.ApproxDP(1.0, 1e-6)
SCHEMAS = {
    "plain": cf.Schema(
        {
            "kind": cf.Categorical(["a", "b", "c"]),
            "x": cf.Numeric(0, 10),
            "k": cf.Integer(0, 9),
            "y": cf.Numeric(0, 60),
            "yes": cf.Categorical(["no", "yes"]),
            "sex": cf.Categorical(["f", "m"]),
        }
    ),
    "codes": cf.Schema(
        {
            "kind": cf.Integer(0, 1),
            "x": cf.Integer(0, 10),
            "k": cf.Numeric(-3, 9),
            "y": cf.Integer(0, 60),
            "yes": cf.Integer(0, 1),
            "sex": cf.Integer(0, 1),
        },
        missing=[-99],
    ),
    "told": cf.Schema(
        {
            "kind": cf.Categorical(["a", "b"], on_missing="a"),
            "x": cf.Numeric(0, 10, on_missing=1.0),
            "k": cf.Integer(0, 9, on_missing=0),
            "y": cf.Numeric(0, 60, on_missing="midpoint"),
            "yes": cf.Categorical(["no", "yes"], on_missing="yes"),
            "sex": cf.Categorical(["f", "m"], on_missing="m"),
        }
    ),
}


def _records(schema: cf.Schema, n: int = 4_000, seed: int = 1) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 11, n)
    frame = {
        name: generator.choice(list(getattr(schema[name], "levels", (0, 1))), n) for name in ("kind", "yes", "sex")
    }
    frame |= {"x": x, "k": generator.integers(0, 10, n), "y": np.clip(3 * x + 5 + generator.normal(0, 4, n), 0, 60)}
    return pd.DataFrame(frame)


def _released(
    method: Any, schema: cf.Schema, privacy: Any = _PAIR, frame: pd.DataFrame | None = None, **more: Any
) -> Any:
    data = cf.read(_records(schema) if frame is None else frame, schema)
    return cf.release(method, data, privacy, ledger=None, noise=cf.noise.SimulatedNoise(1), **more)


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (cf.classification.EfficientPTRBayes("kind ~ x"), _PAIR),
        (cf.classification.EfficientPTRBayes("kind ~ x + k"), _PAIR),
        (cf.curves.EfficientPTRKernel("y ~ x"), _PAIR),
        (cf.curves.EfficientPTRKernel("y ~ x + k"), _PAIR),
        *(
            (method, privacy)
            for privacy in (cf.GDP(0.5), cf.PureDP(0.5))
            for method in (
                cf.intervals.Proportion("yes"),
                cf.intervals.MeanAndVariance("y"),
                cf.intervals.Slope("y ~ x"),
                cf.intervals.Difference("yes ~ sex"),
            )
        ),
    ],
)
def test_a_first_call_is_answered(name: str, method: Any, privacy: Any) -> None:
    assert cf.infer(_released(method, SCHEMAS[name], privacy)).status == "valid"


def test_what_is_missing_counts_as_the_plan_says() -> None:
    """The release is that of a schema which declares the same values; plan and result say them."""
    plain = SCHEMAS["plain"]
    told = cf.Schema(
        {
            "x": cf.Numeric(0, 10, on_missing="midpoint"),
            "y": cf.Numeric(0, 60, on_missing="midpoint"),
            "yes": cf.Categorical(["no", "yes"], on_missing="no"),
            "sex": cf.Categorical(["f", "m"], on_missing="f"),
        }
    )
    frame = _records(plain)[["x", "y", "yes", "sex"]].astype(object)
    for place, column in enumerate(frame.columns):
        frame.loc[50 * place : 50 * place + 90, column] = None
    for method in (
        cf.intervals.Proportion("yes"),
        cf.intervals.MeanAndVariance("y"),
        cf.intervals.Slope("y ~ x + sex"),
        cf.intervals.Difference("yes ~ sex"),
    ):
        one, other = (_released(method, schema, cf.GDP(0.5), frame) for schema in (plain, told))
        assert (one["sums"].decode() == other["sums"].decode()).all()
        assert one.public == other.public  # no record is left out
        assert method.reference(CodedFrame.of(frame, plain)) == method.reference(CodedFrame.of(frame, told))
        assert "counts as" in " ".join(one.plan.warnings) and "counts as" not in " ".join(other.plan.warnings)
        assert "Missing" in dict(cf.infer(one).facts) and "Missing" not in dict(cf.infer(other).facts)


def test_the_defaults_follow_the_public_number_of_records() -> None:
    schema = SCHEMAS["plain"]
    bayes = cf.classification.EfficientPTRBayes("kind ~ x")
    assert [bayes.plan(schema, _PAIR, n=n).constants["least"] for n in (1_200, 12_000)] == [101, 1_001]
    assert bayes.plan(schema, _PAIR).constants["least"] == bayes.plan(schema, _PAIR, n=1_000).constants["least"]
    kernel = cf.curves.EfficientPTRKernel("y ~ x")
    few, many = (kernel.plan(schema, _PAIR, n=n).constants for n in (4_000, 40_000))
    assert 5 < many["d0"] / few["d0"] < 10 and many["alpha"] < few["alpha"] / 4
    release = _released(kernel, schema, n=4_000)
    assert list(cf.infer(release).params.index) == [f"x = {at}" for at in ("2", "3.5", "5", "6.5", "8")]


def test_settings_that_say_the_same_are_refused() -> None:
    with refuses(cf.errors.PlanError):
        cf.classification.EfficientPTRBayes("kind ~ x", c0=0.1, least=50)
    with refuses(cf.errors.PlanError):
        cf.curves.EfficientPTRKernel("y ~ x", c0=0.1, least=50.0)
    with refuses(cf.errors.PlanError):
        cf.classification.EfficientPTRBayes("kind ~ x").plan(SCHEMAS["plain"], _PAIR, n=8)
