"""A newcomer's first call: a formula, privacy and a seed on a plain schema, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide.schema import CodedFrame
from confide.sums.safety_bounds import smallest_plan

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


WIDE = cf.Schema({"kind": cf.Categorical(["a", "b", "c", "d"]), "x": cf.Numeric(0, 100), "y": cf.Numeric(0, 4)})


def _crowded(n: int, seed: int) -> pd.DataFrame:
    """As records are: most of x in a fifth of its bounds, the smallest class a tenth of all."""
    generator = np.random.default_rng(seed)
    x = np.clip(generator.normal(35, 10, n), 0, 100)
    return pd.DataFrame(
        {
            "x": x,
            "y": np.clip(x / 25 + generator.normal(0, 0.5, n), 0, 4),
            "kind": generator.choice(list("abcd"), n, p=[0.5, 0.25, 0.15, 0.1]),
        }
    )


@pytest.mark.parametrize("n", [None, 6_000])
@pytest.mark.parametrize(
    ("method", "ranges"),
    [
        (cf.curves.EfficientPTRKernel("y ~ x"), [4.0]),
        (cf.classification.EfficientPTRBayes("kind ~ x + y"), [100.0, 4.0]),
        (cf.classification.EfficientPTRBayes("kind ~ x + y", variance="identity"), [100.0, 4.0]),
    ],
)
def test_crowded_and_uneven_records_have_an_answer_of_the_stated_noise(
    method: Any, ranges: list[float], n: Any
) -> None:
    """5% of the range, whatever n is, and the plan says so. Defaults by the even share of n records never passed on these."""
    release = _released(method, WIDE, frame=_crowded(6_000, 1), n=n)
    found = cf.infer(release)
    assert found.status == "valid" and "5.0% of" in release.plan.intervals_for
    noise = np.sqrt(np.asarray(found.noise_variance))
    means = noise if "kernel" in method.name else noise[4:].reshape(len(ranges), 4)
    np.testing.assert_allclose(means / np.array(ranges)[:, None], 0.05, rtol=0.01)


def test_the_smallest_plan_is_that_of_no_other_share() -> None:
    """Against a grid of shares; and what is planned is what passes."""
    for records, sure in ((80.0, 10.0), (20.0, 60.0), (300.0, 1.0)):
        least, gamma = smallest_plan(records, sure)
        shares = np.linspace(1e-3, 0.5, 2_000)
        sums = records / np.sqrt(1 - shares) + 1 + sure / np.sqrt(shares)
        assert least + gamma == pytest.approx(float(sums.min()), rel=1e-4)
    assert smallest_plan(80.0, 10.0, 21.0) == (pytest.approx(80 / np.sqrt(0.75)), 21.0)
    kernel = cf.curves.EfficientPTRKernel("y ~ x").plan(WIDE, _PAIR)
    assert kernel.constants["planned reply"] == pytest.approx(0.999, abs=1e-5)
    assert kernel.constants["d0"] == cf.curves.EfficientPTRKernel("y ~ x").plan(WIDE, _PAIR, n=10**6).constants["d0"]


def test_too_few_records_for_the_defaults_are_refused_in_the_plan() -> None:
    """Where no records pass, whatever they are: even n at one place of x, or in classes of one size."""
    for method, enough in (
        (cf.curves.EfficientPTRKernel("y ~ x"), 400),
        (cf.curves.EfficientPTRKernel("y ~ x + z"), 700),
        (cf.classification.EfficientPTRBayes("kind ~ x"), 1_000),
    ):
        schema = cf.Schema({**WIDE.columns, "z": cf.Numeric(0, 1)})
        method.plan(schema, _PAIR, n=enough)
        with refuses(cf.errors.PlanError):
            method.plan(schema, _PAIR, n=200)


def test_default_points_are_a_bandwidth_apart() -> None:
    release = _released(cf.curves.EfficientPTRKernel("y ~ x"), SCHEMAS["plain"], n=4_000)
    assert list(cf.infer(release).params.index) == [f"x = {at}" for at in ("2.5", "5", "7.5")]


def test_settings_that_say_the_same_are_refused() -> None:
    with refuses(cf.errors.PlanError):
        cf.classification.EfficientPTRBayes("kind ~ x", c0=0.1, least=50)
    with refuses(cf.errors.PlanError):
        cf.curves.EfficientPTRKernel("y ~ x", c0=0.1, least=50.0)
    with refuses(cf.errors.PlanError):
        cf.classification.EfficientPTRBayes("kind ~ x").plan(SCHEMAS["plain"], _PAIR, n=8)
