"""Curve: intervals, reading between points, text and files, the plot, what has no reply, bad parts."""

from __future__ import annotations

import json
from math import nan, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from scipy import stats
from tests.messages import refuses

from confide.core import Result
from confide.errors import FileError, NoResult, PlanError
from confide.guarantees import GDP
from confide.results.curve import Curve

MU = GDP(1.0, relation="add-remove")


def make(m: int = 41, **changes: Any) -> Curve:
    x = np.linspace(0, 2, m)[:, None]
    parts: dict[str, Any] = {
        "method": "kernel 1",
        "response": "y",
        "features": ("x",),
        "points": x,
        "estimates": 1 + 0.5 * np.sin(x[:, 0]),
        "sampling_variance": np.full(m, 0.004),
        "noise_variance": np.full(m, 0.005),
        "denominator_noise": np.full(m, 0.01),
        "middle": 1.0,
        "bounds": (0.0, 2.0),
        "status": "valid",
        "reason": "",
        "flags": (),
        "requested": MU,
        "guarantee": MU,
        "target": "E[y|x]",
        "intervals_for": "sampling and privacy noise",
        "release_sha256": "0" * 64,
        "crossings": 20.0,
    }
    return Curve(**{**parts, **changes})


def silent() -> Curve:
    empty = np.full(41, nan)
    numbers = dict.fromkeys(("estimates", "sampling_variance", "noise_variance", "denominator_noise"), empty)
    return make(status="declined", reason="declined", **numbers)


def test_it_is_a_result() -> None:
    assert isinstance(make(), Result) and make().relation == "add-remove"


def test_intervals_are_the_set_of_values_that_the_ratio_test_keeps() -> None:
    """Fieller by brute force: (f^ - f)^2 <= z^2 (sampling + noise + relative (f - middle)^2)."""
    curve, z = make(), stats.norm.isf(0.025)
    low, high = curve.conf_int().to_numpy()[30]
    grid = np.linspace(0, 2, 400_001)
    kept = grid[(curve.estimates[30] - grid) ** 2 <= z**2 * (0.009 + 0.01 * (grid - 1) ** 2)]
    np.testing.assert_allclose([low, high], [kept.min(), kept.max()], atol=1e-5)


def test_an_exact_denominator_gives_the_normal_interval() -> None:
    curve = make(denominator_noise=np.zeros(41))
    half = stats.norm.isf(0.05) * sqrt(0.009)
    limits = curve.conf_int(0.1).to_numpy()
    np.testing.assert_allclose(limits, np.stack([curve.estimates - half, curve.estimates + half], axis=1))
    assert curve.bse.iloc[3] == pytest.approx(sqrt(0.009)) and curve.privacy_share.iloc[3] == pytest.approx(5 / 9)


def test_a_lost_denominator_gives_all_that_the_bounds_allow() -> None:
    relative = np.full(41, 0.01)
    relative[5] = 0.5
    limits = make(denominator_noise=relative).conf_int().to_numpy()
    assert limits[5].tolist() == [0.0, 2.0] and limits[4, 0] > 0.5
    assert limits.min() >= 0.0 and limits.max() <= 2.0


def test_the_band_is_wider_by_rices_formula() -> None:
    curve = make()
    c = curve._quantile(0.05, True)
    assert 2 * stats.norm.sf(c) + 20 / pi * np.exp(-c * c / 2) == pytest.approx(0.05)
    point, band = curve.conf_int().to_numpy(), curve.conf_int(simultaneous=True).to_numpy()
    assert (band[:, 0] < point[:, 0]).all() and (band[:, 1] > point[:, 1]).all()
    with refuses(PlanError):
        make(crossings=nan).conf_int(simultaneous=True)


def test_rices_formula_holds_for_a_smooth_gaussian_process() -> None:
    """400 paths of a stationary process with covariance exp(-d^2/(2 h^2)): the band at 90 % is left by at most 10 %, and by over 5 %."""
    g, x, h = np.random.default_rng(1), np.linspace(0, 1, 400), 0.05
    nodes = np.arange(-0.2, 1.2, h / 2)
    paths = np.exp(-(((x[:, None] - nodes) / h) ** 2)) / (2 * pi) ** 0.25 @ g.standard_normal((len(nodes), 400))
    c = make(crossings=1 / h)._quantile(0.1, True)
    left = int((np.abs(paths).max(axis=0) > c).sum())
    assert stats.binom.ppf(0.0005, 400, 0.05) <= left <= stats.binom.ppf(0.9995, 400, 0.1)


def test_it_is_read_anywhere() -> None:
    curve = make()
    read = curve.at([0.05, 1.0, 9.0])
    assert list(read) == ["x", "estimate", "std_err", "ci_low", "ci_high"]
    assert read["estimate"].tolist() == pytest.approx(
        [1 + 0.25 * np.sin(0.1) / 2 * 2, 1 + 0.5 * np.sin(1), 1 + 0.5 * np.sin(2)], abs=1e-3
    )
    assert curve.at(0.5).loc[0, "ci_low"] == pytest.approx(curve.conf_int().to_numpy()[10, 0])
    frame = pd.DataFrame({"x": [0.5, nan], "other": [1, 2]})
    assert curve.predict(frame).iloc[0] == pytest.approx(curve.estimates[10]) and np.isnan(curve.predict(frame).iloc[1])
    assert curve.predict([0.5, 1.0]).name == "y"
    for wrong in ({"z": [1.0]}, "text"):
        with pytest.raises(PlanError):
            curve.predict(wrong)
    for bad in (nan, [[1.0, 2.0]]):
        with refuses(PlanError):
            curve.at(bad)


def test_tables_and_files() -> None:
    curve = make(simulated=True)
    text = curve.summary(verbose=True)
    assert "SIMULATED" in text and "11 of 41 points" in text and "95% band" in text and "Guarantee" in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(curve.to_frame()) == 41 and {"ci_low", "ci_high", "band_low", "privacy_share"} <= set(curve.to_frame())
    body = json.loads(curve.to_json())
    assert body["family"] == "curve" and body["estimate"][7] == curve.estimates[7] and len(body["band_low"]) == 41
    assert "<table" in curve._repr_html_() and "41 points" in repr(curve)


def test_names_are_shown_and_never_run(tmp_path: Path) -> None:
    curve = make(response="<script>y$^2$", features=("<b>x",))
    page = curve.report(tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "<script>y" not in page and "<b>x" not in page and "<svg" in page and "&lt;script&gt;" in page
    assert "<b>x" not in curve._repr_html_()
    assert page == curve.report(tmp_path / "again.html").read_text(encoding="utf-8")
    with refuses(FileError):
        curve.report(tmp_path / "no" / "curve.html")


def test_the_plot_draws_the_bands() -> None:
    curve = make()
    ax = curve.plot()
    (band,) = [part for part in ax.collections if isinstance(part, PolyCollection)]
    drawn = band.get_paths()[0].vertices
    limits = curve.conf_int().to_numpy()
    assert drawn[:, 1].min() == pytest.approx(limits[:, 0].min()) and drawn[:, 1].max() == pytest.approx(
        limits[:, 1].max()
    )
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    np.testing.assert_allclose(lines["estimate"], curve.estimates)
    np.testing.assert_allclose(lines["95% for the whole curve"], curve.conf_int(simultaneous=True)[0])
    points = make(dense=False, crossings=nan)
    assert len(points.plot().containers) == 1


def test_no_reply_prints_and_has_nothing_to_read(tmp_path: Path) -> None:
    curve = silent()
    assert "declined" in curve.summary() and "NaN" not in curve.to_json() and not curve.has_intervals
    assert curve.conf_int().isna().all(axis=None)
    assert any("declined" in text.get_text() for text in curve.plot().texts)
    assert "<svg" not in curve.report(tmp_path / "none.html").read_text(encoding="utf-8")
    for read in (lambda: curve.at(0.5), lambda: curve.predict([0.5])):
        with pytest.raises(NoResult):
            read()


def test_outside_status_ok_there_is_no_interval() -> None:
    curve = make(status="imprecise", reason="noise")
    assert curve.conf_int().isna().all(axis=None) and curve.bse.isna().all() and curve.at(0.5)["ci_low"].isna().all()


def test_parts_that_do_not_fit_raise() -> None:
    for changes in (
        {"estimates": np.zeros(3)},
        {"points": np.zeros((41, 2))},
        {"points": np.zeros((41, 1))},
        {"status": "fine"},
        {"reason": "because"},
        {"guarantee": GDP(1.0)},
        {"estimates": np.full(41, nan)},
    ):
        with pytest.raises(PlanError):
            make(**changes)
    for alpha in (0.0, 1.0, True):
        with refuses(PlanError):
            make().conf_int(alpha)
