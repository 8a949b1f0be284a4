"""Algorithm 5 of Shen, Tong, Wang 2026 and a rival to the letter, and Figure 3 at small scale."""

from __future__ import annotations

from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from confide_lab.experiment import run
from confide_lab.experiments.eptr_kernel import FIGURE3, curve, smoothed
from confide_lab.published.eptr_kernel import eptr_kernel, wavelet_code

SETTINGS = {"point": [0.5], "bandwidth": [0.1], "epsilon": 4.0, "delta": 0.01, "response_bound": 1.0, "c0": 0.4}


def test_each_is_marked() -> None:
    for one in (eptr_kernel, wavelet_code):
        assert one.guarantee is None and one.claim and one.errata


def test_unsafe_data_get_a_reply_with_probability_below_delta() -> None:
    g, x = np.random.default_rng(1), np.zeros((50, 1))
    replies = sum(eptr_kernel(x, np.ones(50), g, **SETTINGS)["replied"] for _ in range(8_000))
    wanted = float(special.expit(-2 * (1 + 0.5 * log(100))))
    low, high = stats.binom.ppf([0.0005, 0.9995], 8_000, wanted)
    assert low <= replies <= high and wanted <= 0.01


def test_the_value_and_its_noise() -> None:
    g = np.random.default_rng(2)
    x = g.random((20_000, 1))
    y = curve(x[:, 0])
    draws = np.array([eptr_kernel(x, y, g, **SETTINGS)["value"] for _ in range(300)])
    sd = 2 / 4 * (4 / (0.1 * sqrt(2 * pi)) / (0.4 * 20_000)) * sqrt(2 * log(125))
    weights = np.exp(-(((x[:, 0] - 0.5) / 0.1) ** 2) / 2)
    wanted = float(weights @ np.clip(y, -1, 1) / weights.sum())
    assert abs(draws.mean() - wanted) <= stats.norm.isf(0.0005) * sd / sqrt(300)
    assert stats.chi2.ppf(0.0005, 299) <= ((draws - draws.mean()) ** 2).sum() / sd**2 <= stats.chi2.ppf(0.9995, 299)


def test_the_rival_estimates_the_curve_times_the_density() -> None:
    g = np.random.default_rng(3)
    x = np.sqrt(g.random(200_000))
    value = wavelet_code(x, np.full(len(x), 0.4), g, point=0.75, epsilon=50.0, response_bound=1.0, level=4)["value"]
    assert value == pytest.approx(0.4 * 2 * 0.78, abs=0.03)


def test_the_smoothed_curve_by_simulation() -> None:
    g, h = np.random.default_rng(4), 0.05
    x = g.random(2_000_000)
    y = np.clip(curve(x) + 0.2 * g.standard_normal(len(x)), -1, 1)
    for at in (0.0, 0.2, 0.75):
        weights = np.exp(-(((x - at) / h) ** 2) / 2)
        assert smoothed(np.array([at]), h, 1.0)[0] == pytest.approx(float(weights @ y / weights.sum()), abs=2e-3)


@pytest.mark.long
def test_figure_3_at_small_scale(tmp_path: Path) -> None:
    """Orderings at n = 2,000, epsilon = 1.5: Kernel below EfficientPTRKernel below Algorithm 5; one budget for twenty points."""
    records = run(FIGURE3, tmp_path, reps=20, only={"block": ["point"], "cell": ["2000,1.5"]}, progress=False)
    records += run(FIGURE3, tmp_path, reps=20, only={"block": ["twenty"]}, progress=False)
    error = {
        (len(r["setting"]["cell"]) if "cell" in r["setting"] else 20, r["method"]): r["value"]
        for r in records
        if r["quantity"] == "error"
    }
    one = {method: value for (size, method), value in error.items() if size != 20}
    assert one["nw"] < one["kernel_curve"] < one["safe"] < one["eptr_literal"] and one["kernel_curve"] < 0.01
    twenty = {method: value for (size, method), value in error.items() if size == 20}
    assert twenty["kernel_curve"] < 0.008 < twenty["safe"] < twenty["eptr_literal"] == twenty["constant"]
