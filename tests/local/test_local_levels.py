"""Protected levels in formulas: the corrected loss is unbiased whatever was told, intervals cover, and what is refused says why."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.local.fits.fitting import Model
from confide.local.fits.losses import Check, Corrected, Hinge, Logistic, Loss, Squared
from confide.local.noise_levels import KEY, Noised, ProtectedColumn, Protection
from tests.few import few
from tests.messages import refuses

LEVELS = {"g": ProtectedColumn.of(("a", "b", "c"), 1.0), "w": ProtectedColumn.of(("no", "yes"), 2.0)}
NOISED = {"x": Noised(-1.0, 1.0, 2**20, Fraction(2**18))}


def _frame(columns: dict[str, Any], public: tuple[str, ...], noised: bool = False, **more: Any) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    frame.attrs[KEY] = Protection(NOISED if noised else {}, public, levels=LEVELS, **more).to_json()
    return frame


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Check(0.3, h=0.4)], ids=str)
@pytest.mark.parametrize("formula", ["y ~ g + x", "y ~ g * x + w", "y ~ 0 + g + w"])
def test_the_corrected_score_has_the_mean_of_the_true_record(loss: Loss, formula: str) -> None:
    """Exactly: over all that may be told of one record, with its chances."""
    theta, x, y = np.array([0.3, 0.8, -0.4, 0.2, 0.5, -0.1, 0.7]), [0.2, -0.7], [1.0, 0.0]
    mean, value = np.zeros((2, 1)), 0.0
    told = list(product(LEVELS["g"].levels, LEVELS["w"].levels))
    true = ("c", "yes")

    def model(cells: tuple[str, str]) -> Model:
        # the public terms are scaled by their own spread, which two records that never change give
        frame = _frame({"x": x, "y": y, "g": [cells[0]] * 2, "w": [cells[1]] * 2}, ("x", "y"))
        return Model.of(frame, Protection.from_json(frame.attrs[KEY]), formula, loss)

    for cells in told:
        chance = 1.0
        for one, seen, own in zip(LEVELS.values(), cells, true, strict=True):
            chance *= float(one.keep) * (seen == own) + (1 - float(one.keep)) / len(one.levels)
        rows = model(cells).rows
        problem = Corrected(loss, "SL", rows, rows)
        mean = mean + chance * problem.scores(theta[: rows.x.shape[1]])
        value += chance * problem.value(theta[: rows.x.shape[1]])[0]
    rows = model(true).rows
    plain = Corrected(loss, "naive", rows, rows)  # as they were told, which is what they are
    assert mean == pytest.approx(plain.scores(theta[: rows.x.shape[1]]), abs=1e-10)
    assert value == pytest.approx(plain.value(theta[: rows.x.shape[1]])[0], abs=1e-10)


def _told(rng: np.random.Generator, one: ProtectedColumn, codes: np.ndarray) -> np.ndarray:
    keep = rng.random(len(codes)) < float(one.keep)
    return np.array(one.levels)[np.where(keep, codes, rng.integers(len(one.levels), size=len(codes)))]


@pytest.mark.parametrize(
    ("formula", "loss", "n"), few([("y ~ g + x", "squared", 4_000), ("w ~ g + x", "logistic", 2_500)], 0)
)
def test_intervals_cover_the_population(formula: str, loss: str, n: int) -> None:
    """80 fits of 4 coefficients: fewer than 86 % of a coefficient's covered has a chance below 3e-3 at a true 95 %; the naive has few."""
    rng, truth, hits, naive = np.random.default_rng(3), np.array([0.2, 0.5, -1.0, 1.0]), [], []
    for _ in range(80):
        g, x = rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.uniform(-1, 1, n)
        line = truth[0] + truth[1] * (g == 1) + truth[2] * (g == 2) + x
        y, w = line + rng.standard_normal(n), (rng.random(n) < 1 / (1 + np.exp(-line))).astype(int)
        noise = NOISED["x"].sd * np.sqrt(rng.standard_exponential(n)) * rng.standard_normal(n)
        told = {"x": x + noise, "y": y, "g": _told(rng, LEVELS["g"], g), "w": _told(rng, LEVELS["w"], w)}
        result = cf.local.fit(_frame(told, ("y",), noised=True), formula, loss=loss)
        naive.append(cf.local.fit(_frame(told, ("y",), noised=True), formula, loss=loss, method="naive").params)
        if result.status == "valid":
            limits = result.conf_int().to_numpy()
            hits.append((limits[:, 0] <= truth) & (truth <= limits[:, 1]))
    assert len(hits) >= 60
    assert np.mean(hits, axis=0).min() > 0.86
    assert np.abs(np.mean(naive, axis=0)[1:] / truth[1:]).max() < 0.85


def test_a_response_of_two_levels_is_the_share_of_the_second() -> None:
    rng = np.random.default_rng(5)
    told = {"y": rng.random(900), "g": rng.choice(list("abc"), 900), "w": rng.choice(["no", "yes"], 900)}
    frame = _frame(told, ("y",))
    result = cf.local.fit(frame, "w ~ 1")
    assert result.summary() is not None and result.response == "w[yes]"
    assert result.params.iloc[0] == pytest.approx(cf.local.shares(frame, "w").params["yes"], abs=1e-9)
    rows = Model.of(frame, Protection.from_json(frame.attrs[KEY]), "w ~ y", Hinge()).rows
    assert set(rows.y) == {-1.0, 1.0} and len(rows) == 900 and rows.copies == 2


@pytest.mark.parametrize(
    ("formula", "loss"),
    [
        ("g ~ y", "logistic"),
        ("y ~ g:x", "squared"),
        ("s ~ x", "squared"),
        ("y ~ g +", "squared"),
    ],
)
def test_what_of_levels_a_formula_refuses(formula: str, loss: str) -> None:
    told = {"x": [0.1, 0.2], "g": ["a", "b"], "w": ["no", "yes"], "y": [0.0, 1.0], "s": ["u", "v"]}
    with refuses(cf.errors.PlanError):
        cf.local.fit(_frame(told, ("y", "s"), noised=True), formula, loss=loss)


def test_cells_of_no_level_are_refused() -> None:
    told = {"x": [0.1, 0.2], "g": ["a", "d"], "w": ["no", "yes"], "y": [0.0, 1.0]}
    with refuses(cf.errors.ReleaseError):
        cf.local.fit(_frame(told, ("y", "x")), "y ~ g")
