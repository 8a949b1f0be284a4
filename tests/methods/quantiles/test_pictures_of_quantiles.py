"""Pictures of quantiles: boxes with the intervals of quartiles, histograms by edges of one's own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

import confide as cf
from confide.noise import SimulatedNoise
from confide.results.pages.plots import caption

SCHEMA = cf.Schema({"income": cf.Numeric(0, 100), "sex": cf.Categorical(["female", "male"])})


def _quantiles(formula: str, **more: Any) -> Any:
    generator = np.random.default_rng(1)
    sex = generator.choice(["female", "male"], 4_000)
    frame = pd.DataFrame({"sex": sex, "income": np.clip(generator.normal(45 + 10.0 * (sex == "male"), 12), 0, 100)})
    data = cf.read(frame, SCHEMA)
    asked = {"inference": "population", "privacy": cf.GDP(2.0), "ledger": None, "noise": SimulatedNoise(1)}
    return cf.tables.quantiles(formula, data, **asked, **more)


def _bars(axes: Any) -> list[Rectangle]:
    return [one for one in axes.patches if isinstance(one, Rectangle)]


def test_a_box_has_the_interval_of_each_quartile() -> None:
    result = _quantiles("income ~ sex")
    axes = result.plot()
    errors = [one for one in axes.containers if hasattr(one, "has_xerr")]
    assert len(errors) == 3
    found = result.quantile((0.25, 0.5, 0.75)).iloc[[3, 4, 5, 6, 7, 8, 0, 1, 2]]
    ends = np.array([one[:, 0] for box in errors for one in box.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends, found[["ci_low", "ci_high"]].to_numpy(), rtol=1e-12)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["sex: female", "sex: male", "Total"]
    assert axes.figure.get_suptitle().startswith("Income by sex: quartiles\n")
    assert "first quartile, median and third quartile" in caption(result, 0.05)


def test_a_histogram_has_the_edges_that_are_asked_for() -> None:
    result = _quantiles("income", bins=100)
    edges = [0, 20, 40, 60, 80, 100]
    axes = result.plot(edges=edges)
    bars = _bars(axes)
    left = sorted(bar.get_x() for bar in bars)
    assert left == pytest.approx(edges[:-1], abs=1.0) and len(bars) == 5
    ordered = sorted(bars, key=lambda bar: bar.get_x())
    for one, other in pairwise(ordered):
        assert one.get_x() + one.get_width() == pytest.approx(other.get_x()), "they touch"
    assert [bool(bar.get_hatch()) for bar in ordered] == [True, False, False, False, True], "clipped values"
    (errors,) = [one for one in axes.containers if hasattr(one, "has_yerr")]
    assert len(errors.lines[2][0].get_segments()) == 5
    table = result.histogram(edges=edges)
    assert table["left"].tolist() == pytest.approx(left)
    areas = sum(bar.get_height() * bar.get_width() for bar in bars)
    assert "share of records (%)" in axes.get_ylabel()
    assert areas == pytest.approx(
        table["count"].clip(lower=0).sum() / result.groups[0].size * _unit(axes, ordered), rel=1e-9
    )


def _unit(axes: Any, bars: list[Rectangle]) -> float:
    """The part of the axis that heights are per: the width of a class where classes are alike."""
    words = axes.get_ylabel()
    return float(words.rsplit(" ", 1)[1].replace(",", "")) if "per" in words else bars[0].get_width()


def test_unequal_classes_are_shares_per_a_part_of_the_axis() -> None:
    axes = _quantiles("income", bins=100).plot(edges=[0, 30, 40, 50, 100])
    assert axes.get_ylabel().startswith("share of records (%)\nper ")


def test_each_group_has_a_panel() -> None:
    result = _quantiles("income ~ sex")
    panels = result.plot(kind="histogram").child_axes
    assert [panel.get_title(loc="left") for panel in panels] == ["sex: female", "sex: male"]
    assert len({panel.get_xlim() for panel in panels}) == len({panel.get_ylim() for panel in panels}) == 1
    lines = result.plot(kind="cdf", labels={"male": "men"})
    assert [text.get_text() for text in lines.get_legend().get_texts()] == ["sex: female", "sex: men"]
    assert len({line.get_linestyle() for line in lines.lines}) == 2, "told apart in gray print"
