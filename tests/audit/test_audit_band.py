"""The band around a black-box trade-off curve: simultaneous coverage, convexity, verdicts, plot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from confide.audit.runs import curve_band
from confide.audit.runs.curve_band import CurveBand, trade_off_band
from confide.audit.runs.lower_bounds import upper_rate
from confide.errors import PrivacyError
from confide.guarantees import GDP, ApproxDP, PureDP

ALPHA = np.linspace(0.001, 0.999, 999)


def gaussian(seed: int) -> Callable[[float, int], Any]:
    rng = np.random.default_rng((4, seed))
    return lambda x, runs: x + rng.normal(size=runs)


def band(seed: int, **settings: Any) -> CurveBand:
    return trade_off_band(gaussian(seed), 0.0, 1.0, vectorized=True, test=lambda y: y, **settings)


def misses(seed: int) -> tuple[bool, bool, bool]:
    """Whether a rate at a threshold, the true curve above, the curve below is outside its bounds; confidence .8."""
    found = band(seed, runs=2000, confidence=0.8, points=20)
    truth = ndtr(-ndtri(ALPHA) - 1)
    alpha, beta = ndtr(-found.thresholds), ndtr(found.thresholds - 1)
    rates = bool((found.alpha_high < alpha).any() or (found.beta_high < beta).any())
    return rates, bool((found.upper(ALPHA) < truth - 1e-12).any()), bool((found.lower(ALPHA) > truth + 1e-12).any())


def test_audit_band_covers_at_once() -> None:
    """200 bands at .8: all rates, and the curve (here that of the test too), lie within, at least as often as said."""
    assert np.sum([misses(seed) for seed in range(200)], axis=0).max() <= binom.isf(1e-6, 200, 0.2)


def test_audit_band_without_the_union_bound_does_not_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: every threshold at the full level. In most bands one of the rates is then outside its bound."""
    monkeypatch.setattr(curve_band, "upper_rate", lambda hits, n, level: upper_rate(hits, n, 20 * level))
    assert np.sum([misses(seed)[0] for seed in range(60)]) > binom.isf(1e-6, 60, 0.2)


def test_audit_band_shape() -> None:
    found = band(1, runs=50_000)
    upper, lower = found.upper(ALPHA), found.lower(ALPHA)
    assert (np.diff(upper) <= 1e-12).all() and (np.diff(upper, 2) >= -1e-9).all() and (lower <= upper + 1e-12).all()
    assert found.upper(0.0) == 1 and found.upper(1.0) == 0
    assert (upper <= 1 - ALPHA + 1e-12).all()
    truth = ndtr(-ndtri(ALPHA) - 1)
    assert (upper - truth).max() < 0.05 and (truth - lower).max() < 0.09


def test_audit_band_verdicts() -> None:
    found = band(2)
    assert found.draws == 200_000
    for claim in (GDP(1.0), 1.0, GDP(0.9, 0.1), PureDP(4.0)):
        assert found.compare(claim).verdict == "holds", claim
    for claim in (GDP(0.9), ApproxDP(0.5, 0.01), PureDP(1.0), GDP(0.9, 0.01)):
        refuted = found.compare(claim)
        assert refuted.violated and 0 < refuted.lower_bound < 1 and refuted.quantity == "gap"
    assert 0.9 < found.mu <= 1


def test_audit_band_of_a_learnt_test_in_many_dimensions() -> None:
    rng = np.random.default_rng(6)
    found = trade_off_band(
        lambda x, n: x + rng.laplace(size=(n, 4)), np.zeros(4), np.full(4, 0.5), vectorized=True, runs=50_000
    )
    assert found.compare(PureDP(2.0)).verdict == "holds" and found.compare(PureDP(1.0)).violated


def test_audit_band_plots() -> None:
    mpl.use("Agg")
    axes = band(3, runs=2000).plot(GDP(1.0))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert any("claim" in label for label in labels)


def test_audit_band_refuses() -> None:
    with pytest.raises(PrivacyError):
        band(1, points=0)
    with pytest.raises(PrivacyError):
        band(1, runs=5)
