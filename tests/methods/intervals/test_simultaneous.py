"""Regions that hold all parameters at once: wider than separate intervals, never wider than Bonferroni's, and right by their own draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError
from confide.noise import SimulatedNoise

LEVELS = list("abcde")
SHARES = np.array([0.4, 0.3, 0.2, 0.07, 0.03])
LINE = cf.Schema({name: cf.Numeric(-4, 4, on_missing=0.0) for name in ("u", "v", "y")})


def _shares(seed: int = 1, n: int = 1_000) -> Any:
    schema = cf.Schema({"g": cf.Categorical(LEVELS, on_missing="a")})
    drawn = np.random.default_rng(seed).choice(LEVELS, n, p=SHARES)
    method = cf.intervals.Proportion("g")
    return cf.release(method, cf.read({"g": drawn}, schema), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))


def _line(alike: float) -> Any:
    g = np.random.default_rng(1)
    u, other = g.uniform(-1, 1, (2, 4_000))
    v = alike * u + (1 - alike) * other
    y = 0.3 + u - v + 0.3 * g.normal(size=4_000)
    data = cf.read({"u": u, "v": v, "y": y}, LINE)
    return cf.release(cf.intervals.Slope("y ~ u + v"), data, cf.GDP(20.0), ledger=None, noise=SimulatedNoise(1))


@pytest.mark.parametrize("release", [_shares(), _line(0.0), _line(0.8)], ids=["shares", "line", "collinear line"])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_region_holds_its_share_of_joint_draws_and_is_no_wider_than_bonferronis(release: Any, alpha: float) -> None:
    found = cf.infer(release)
    alone = found.conf_int(alpha).to_numpy()
    both = found.conf_int(alpha, simultaneous=True).to_numpy()
    most = found.conf_int(alpha / len(found.names)).to_numpy()
    assert (most[:, 0] <= both[:, 0]).all() and (both[:, 0] <= alone[:, 0]).all()
    assert (alone[:, 1] <= both[:, 1]).all() and (both[:, 1] <= most[:, 1]).all()
    draws = found.sample(20_000, seed=7).to_numpy()
    held = ((draws >= both[:, 0]) & (draws <= both[:, 1])).all(axis=1).mean()
    apart = ((draws >= alone[:, 0]) & (draws <= alone[:, 1])).all(axis=1).mean()
    assert 1 - alpha - 0.01 < held < 1 - alpha + 0.03 and apart < 1 - alpha - 0.01


def test_correlated_parameters_need_less_than_bonferroni() -> None:
    found = cf.infer(_line(0.8))
    both, most = found.conf_int(simultaneous=True), found.conf_int(0.05 / 3)
    assert (both[1] - both[0] < 0.99 * (most[1] - most[0])).any()


def test_confidence_intervals_divide_alpha_and_one_parameter_needs_no_more() -> None:
    found = cf.infer(_shares(), kind="confidence")
    assert found.conf_int(0.1, simultaneous=True).equals(found.conf_int(0.02))
    schema = cf.Schema({"g": cf.Categorical(["a", "b"], on_missing="a")})
    data = cf.read({"g": np.random.default_rng(1).choice(["a", "b"], 500)}, schema)
    one = cf.infer(cf.release(cf.intervals.Proportion("g"), data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1)))
    assert one.conf_int(simultaneous=True).equals(one.conf_int())


def test_a_text_is_neither_true_nor_false() -> None:
    data = cf.read(
        {"g": list("ab") * 200, "x": np.linspace(0, 1, 400)},
        cf.Schema({"g": cf.Categorical(["a", "b"]), "x": cf.Numeric(0, 1)}),
    )
    table = cf.tables.shares("g", data, inference="population", privacy=cf.GDP(1.0), ledger=None)
    for found in (cf.infer(_shares()), table):
        with refuses(PlanError):
            found.conf_int(simultaneous="no")
        assert found.conf_int(simultaneous=np.True_).equals(found.conf_int(simultaneous=True))
