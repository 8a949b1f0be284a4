"""Wavelet: contract, audit, the closed form of Haar, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method
from confide_lab.methods.wavelet import Wavelet, haar_level

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 1)})


def released(method: Any, frame: pd.DataFrame, privacy: Any, noise: Any) -> Any:
    n = len(frame) if privacy.relation == "substitute" else None
    return method.infer(cf.release(method, cf.read(frame, SCHEMA), privacy, n=n, ledger=None, noise=noise))


def skewed(n: int) -> pd.DataFrame:
    x = np.random.default_rng(1).random(n) ** 2
    return pd.DataFrame({"x": x, "y": 0.2 + 0.6 * x})


@pytest.mark.long
def test_contract() -> None:
    assert check_method(Wavelet("y ~ x"), SCHEMA).ok


def test_audit_reaches_what_is_charged() -> None:
    found = cf.audit.audit(Wavelet("y ~ x", level=2), schema=SCHEMA, runs=500, seed=1)
    reached = {(row.relation, row.name): row.lower_bound for row in found if row.attack == "exact difference"}
    assert found.ok and all(reached[relation, "wavelet cells"] > 0.999 for relation in ("add-remove", "substitute"))


def test_without_noise_it_is_haars_closed_form() -> None:
    """2^(L+1) mean(y 1{cell}) for density="uniform", the mean of each cell otherwise, at any point."""
    frame, at = skewed(3_000), np.array([0.05, 0.3, 0.62, 0.999])
    asked, cells = cf.GDP(1.0, relation="substitute"), 8
    cell = np.floor(frame["x"] * cells)
    for density in ("uniform", "private"):
        found = released(Wavelet("y ~ x", level=2, density=density), frame, asked, ZeroNoise()).at(at)["estimate"]
        same = [(cell == np.floor(a * cells)).to_numpy() for a in at]
        wanted = [cells * (frame["y"] * own).mean() if density == "uniform" else frame["y"][own].mean() for own in same]
        np.testing.assert_allclose(found, np.clip(wanted, -1, 1), atol=1e-4)


def test_only_the_private_density_is_right_for_a_skewed_design() -> None:
    frame, asked = skewed(20_000), cf.GDP(2.0, relation="substitute")
    truth = lambda x: 0.2 + 0.6 * x  # noqa: E731
    at = np.array([0.1, 0.8])
    errors = {
        density: float(
            np.abs(
                released(Wavelet("y ~ x", level=3, density=density), frame, asked, SimulatedNoise(1)).at(at)["estimate"]
                - truth(at)
            ).max()
        )
        for density in ("uniform", "private")
    }
    assert errors["private"] < 0.03 < 0.15 < errors["uniform"]


def test_it_gives_no_interval() -> None:
    found = released(Wavelet("y ~ x"), skewed(500), cf.GDP(1.0), SimulatedNoise(1))
    assert not found.has_intervals and found.conf_int().isna().all(axis=None) and "without intervals" in found.summary()


def test_bad_settings_raise() -> None:
    for level in (-1, 14, 1.5, True):
        with refuses(PlanError):
            Wavelet("y ~ x", level=level)  # type: ignore[arg-type]
    with refuses(PlanError):
        Wavelet("y ~ x", density="beta")
    for asked, n in ((cf.GDP(1.0, relation="add-remove"), 100), (cf.GDP(1.0, relation="substitute"), None)):
        with refuses(PlanError):
            Wavelet("y ~ x", density="uniform").plan(SCHEMA, asked, n=n)
    small = cf.Schema({"x": cf.Integer(0, 5), "y": cf.Numeric(0, 1)})
    with refuses(PlanError):
        Wavelet("y ~ x", level=5).plan(small, cf.GDP(1.0))


def test_levels_grow_with_what_there_is_to_spend() -> None:
    levels = [haar_level(n, mu) for n, mu in ((10, 0.001), (1_000, 0.01), (1_000, 1.0), (10**6, 1.0))]
    assert levels == sorted(levels) and levels[0] == 0 and levels[-1] == 6
