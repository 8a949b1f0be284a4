"""Records that are all alike, at a bound or beyond what the family allows: intervals hold them, or say that they may not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.noise import SimulatedNoise

I = cf.intervals  # noqa: E741

SCHEMA = cf.Schema(
    {
        "s": cf.Categorical(["no", "yes"], on_missing="no"),
        "g": cf.Categorical(["a", "b", "c"], on_missing="a"),
        "v": cf.Integer(0, 25, on_missing=0),
        "x": cf.Numeric(-80, 80, on_missing="midpoint"),
    }
)
BUDGETS = [cf.PureDP(1.0, relation="substitute"), cf.GDP(1.0, relation="substitute")]


def _alike(n: int, high: bool) -> Any:
    values = {"s": ["no", "yes"][high], "g": ["a", "c"][high], "v": 25.0 * high, "x": 80.0 if high else -80.0}
    return cf.read({name: [value] * n for name, value in values.items()}, SCHEMA)


@pytest.mark.parametrize("privacy", BUDGETS, ids=str)
@pytest.mark.parametrize("kind", ["credible", "confidence"])
@pytest.mark.parametrize("high", [False, True])
def test_a_parameter_at_a_bound_is_held(privacy: Any, kind: str, high: bool) -> None:
    """40 draws of noise of each: shares of 0 and 1, a mean at its bound, a rate of 0. At .95 fewer than 31 are missed once in 10^5."""
    held: dict[str, list[bool]] = {}
    for n in (20, 400):
        data = _alike(n, high)
        for seed in range(20):
            asked = {"privacy": privacy, "ledger": None, "noise": SimulatedNoise(seed), "kind": kind}
            ends = I.proportion(data, "s", **asked).conf_int().to_numpy()[0]
            held.setdefault("share", []).append(bool(ends[int(high)] == high))
            ends = I.categorical(data, "g", **asked).conf_int().to_numpy()
            truth = np.array([0.0, 0.0, 1.0] if high else [1.0, 0.0, 0.0])
            held.setdefault("levels", []).append(bool(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() > 0.6))
            ends = I.mean(data, "x", **asked).conf_int().to_numpy()[0]
            held.setdefault("mean", []).append(bool(ends[int(high)] == (80 if high else -80)))
            if not high:
                held.setdefault("rate", []).append(I.rate(data, "v", **asked).conf_int().iloc[0, 0] == 0)
    assert all(sum(found) >= 31 for found in held.values()), {name: sum(found) for name, found in held.items()}


@pytest.mark.parametrize("privacy", [*BUDGETS, cf.GDP(20.0, relation="substitute")], ids=str)
@pytest.mark.parametrize("kind", ["credible", "confidence"])
def test_a_rate_beyond_the_largest_count_is_said(privacy: Any, kind: str) -> None:
    """Rates of 40 and of 10 where 25 is the largest count: the first is beyond what is looked at, and no warning speaks of it."""
    for rate, status in ((40.0, "partial"), (10.0, "ok")):
        counts = np.minimum(np.random.default_rng(1).poisson(rate, 5_000), 25)
        data = cf.read({"v": counts}, cf.Schema({"v": SCHEMA["v"]}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = I.rate(data, "v", privacy=privacy, ledger=None, noise=SimulatedNoise(1), kind=kind)
        assert found.status == status and ("box_active" in found.flags) is (status == "partial")
        ends = found.conf_int().to_numpy()
        assert np.isfinite(ends).all() and (status == "ok" or ends[0, 1] > 24.9)
    assert (
        "declare a larger one"
        in I.rate(_alike(500, True), "v", privacy=privacy, ledger=None, noise=SimulatedNoise(1), kind=kind).reason
    )
