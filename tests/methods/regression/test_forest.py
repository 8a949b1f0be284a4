"""The forest plot of ratios: a log axis with a line at 1, and coefficients where they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.noise import SimulatedNoise
from confide.results.pages.plots import alternative

SCHEMA = cf.Schema(
    {"age": cf.Integer(20, 80), "sex": cf.Categorical(["female", "male"]), "smoker": cf.Categorical(["no", "yes"])}
)


@pytest.fixture(scope="module")
def fitted() -> Any:
    generator = np.random.default_rng(1)
    sex, age = generator.choice(["female", "male"], 5_000), generator.integers(20, 81, 5_000)
    chance = 1 / (1 + np.exp(0.02 * (age - 50.0) - 0.6 * (sex == "male")))
    frame = pd.DataFrame({"age": age, "sex": sex, "smoker": np.where(generator.random(5_000) < chance, "yes", "no")})
    asked = {"privacy": cf.GDP(2.0), "ledger": None, "noise": SimulatedNoise(1)}
    return cf.logistic_regression("smoker ~ age + sex", cf.read(frame, SCHEMA), **asked)


def _parts(axes: Any) -> list[Any]:
    return list(axes.child_axes) or [axes]


def _references(panel: Any) -> list[float]:
    return [line.get_xdata()[0] for line in panel.lines if list(line.get_ydata()) == [0, 1]]


def test_ratios_are_on_a_log_axis_with_a_line_at_one(fitted: Any) -> None:
    panels = _parts(fitted.plot())
    assert all(panel.get_xscale() == "log" for panel in panels)
    assert panels[-1].get_xlabel() == "odds ratio (log scale)"
    assert [place for panel in panels for place in _references(panel)] == [1.0] * len(panels)
    names = [text.get_text() for panel in panels for text in panel.get_yticklabels()]
    assert sorted(names) == ["age", "sex: male"], "the intercept is no ratio"
    limits = np.exp(fitted.conf_int().loc[["age", "sex[T.male]"]].to_numpy())
    ends = [one[:, 0] for panel in panels for box in panel.containers for one in box.lines[2][0].get_segments()]
    np.testing.assert_allclose(np.sort(np.array(ends).ravel()), np.sort(limits.ravel()), rtol=1e-9)
    ticks = [tick for panel in panels for tick in panel.get_xticks()]
    assert len(ticks) >= 2 * len(panels) and all(float(f"{tick:.6g}") == pytest.approx(tick) for tick in ticks)


def test_coefficients_are_drawn_where_they_are_asked_for(fitted: Any) -> None:
    panels = _parts(fitted.plot(kind="coefficients"))
    assert all(panel.get_xscale() == "linear" for panel in panels)
    assert panels[-1].get_xlabel() == "difference in log-odds"
    assert [place for panel in panels for place in _references(panel)] == [0.0] * len(panels)


def test_the_alternative_text_is_of_ratios(fitted: Any) -> None:
    assert f"largest: sex: male, {np.exp(fitted.params['sex[T.male]']):.3g}" in alternative(fitted, 0.05)
