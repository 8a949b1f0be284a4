"""Pictures of tables: which marks there are, where whiskers end, what axes and captions say; no pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from tests.messages import refuses

import confide as cf
from confide._helpers import severity
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.results.pages.content import folded
from confide.results.pages.plots import COLORS, alternative, caption

SCHEMA = cf.Schema(
    {
        "sex": cf.Categorical(["female", "male"]),
        "region": cf.Categorical(["north", "south", "east and the islands"]),
        "income": cf.Numeric(0, 9_000),
    }
)


def _data(n: int = 3_000) -> Any:
    generator = np.random.default_rng(1)
    sex, region = generator.choice(["female", "male"], n), generator.choice(SCHEMA["region"].levels, n)
    income = np.clip(generator.normal(3_000 + 400.0 * (sex == "male"), 600.0), 0, 9_000)
    return cf.read(pd.DataFrame({"sex": sex, "region": region, "income": income}), SCHEMA)


def _table(verb: str, formula: str, mu: float = 1.0, inference: str = "population") -> Any:
    call = getattr(cf.tables, verb)
    return call(formula, _data(), inference=inference, privacy=cf.GDP(mu), ledger=None, noise=SimulatedNoise(1))


def _bars(axes: Any) -> list[Rectangle]:
    """Those that are drawn, not those of a legend."""
    return [one for one in axes.patches if isinstance(one, Rectangle) and one.get_height() != 0]


def _errorbars(axes: Any) -> list[Any]:
    return [one for one in axes.containers if hasattr(one, "has_yerr")]


def test_counts_are_grouped_bars_with_their_intervals_and_no_totals() -> None:
    table = _table("counts", "region * sex", inference="dataset")
    axes = table.plot()
    frame = table.to_frame()
    cells = frame[(frame["sex"] != "Total") & (frame["region"] != "Total")]
    bars = _bars(axes)
    assert len(bars) == len(cells) == 6
    assert sorted(bar.get_height() for bar in bars) == pytest.approx(sorted(cells["estimate"]))
    (errors,) = _errorbars(axes)
    ends = np.array([one[:, 1] for one in errors.lines[2][0].get_segments()])
    np.testing.assert_allclose(np.sort(ends[:, 0]), np.sort(cells["ci_low"]))
    np.testing.assert_allclose(np.sort(ends[:, 1]), np.sort(cells["ci_high"]))
    assert len({bar.get_facecolor() for bar in bars}) == 2, "one color for each level of the last factor"
    assert to_hex(bars[0].get_facecolor()).upper() in COLORS
    assert axes.get_ylim()[0] == 0.0 and axes.get_ylabel() == "records" and axes.get_xlabel() == "region"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["female", "male"]
    said = [text.get_text() for text in axes.texts]
    assert sorted(said) == sorted(f"{value:,.0f}" for value in cells["estimate"]), "the value stands above each bar"
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert [" ".join(label.split()) for label in labels] == list(SCHEMA["region"].levels), "no name is cut"
    assert "exactly these records; they show privacy noise only, about " in caption(table, 0.05)


def test_one_series_has_no_legend() -> None:
    axes = _table("counts", "region").plot()
    assert axes.get_legend() is None and len(_bars(axes)) == 3


def test_the_axis_has_thousands_and_shares_are_percent() -> None:
    axes = _table("totals", "income ~ sex").plot()
    axes.figure.canvas.draw()
    assert "," in axes.get_yticklabels()[-1].get_text() and axes.get_ylabel() == "total income"
    axes = _table("shares", "sex").plot()
    assert axes.get_ylabel() == "share of records (%)"
    axes.figure.canvas.draw()
    assert max(float(text.get_text()) for text in axes.get_yticklabels()) > 1


def test_a_caution_is_hatched_and_an_alarm_has_no_mark() -> None:
    axes = _table("counts", "region * sex", mu=0.004).plot()
    assert all(bar.get_hatch() for bar in _bars(axes))
    weak = _table("means", "income ~ region * sex", mu=0.008)
    marks = weak.marks[weak.in_picture]
    alarms = sum("alarm" in map(severity, mark.split()) for mark in marks)
    points = sum(len(one.get_offsets()) for one in weak.plot().collections if isinstance(one, PathCollection))
    assert alarms > 0 and points == len(marks) - alarms
    assert [text.get_text() for text in weak.plot().texts] == ["n/a"] * alarms
    assert "n/a: an alarm" in caption(weak, 0.05)


def test_means_are_points_in_the_units_of_the_column() -> None:
    table = _table("means", "income ~ region * sex")
    axes = table.plot()
    assert axes.get_xlabel() == "mean income" and axes.get_ylabel() == "region"
    assert sum(len(one.get_offsets()) for one in axes.collections if isinstance(one, PathCollection)) == 6
    assert len(_errorbars(axes)) == 2 and all(one.has_xerr for one in _errorbars(axes))
    assert "thick part: sampling error only" in caption(table, 0.05)
    assert len(_bars(table.plot(kind="bars"))) == 6
    assert len(table.plot(kind="map").images) == 1
    named = table.plot(title="Incomes", labels={"income": "income (dollars)", "male": "Men"})
    assert named.get_xlabel() == "mean income (dollars)" and named.figure.get_suptitle().startswith("Incomes\n")
    assert [text.get_text() for text in named.get_legend().get_texts()] == ["female", "Men"]
    for wrong in ({"kind": "box"}, {"of": "age"}, {"labels": {"women": "Women"}}):
        with refuses(PlanError):
            table.plot(**wrong)


def test_many_groups_lie_below_one_another() -> None:
    formula = "cut(income, " + ", ".join(str(edge) for edge in range(500, 6_000, 500)) + ") * sex"
    axes = _table("counts", formula).plot()
    assert len(axes.get_yticklabels()) == 12 and axes.get_xlabel() == "records"
    assert axes.yaxis_inverted(), "the first on top"


@pytest.mark.parametrize(("verb", "inner", "label"), [
    ("counts", (1_500, 3_000, 4_500), "records\nper 1,000"),
    ("shares", (4_500,), "share of records (%)"),
])  # fmt: skip
def test_a_cut_column_is_a_histogram(verb: str, inner: tuple[int, ...], label: str) -> None:
    """Areas of unequal classes are in proportion to their numbers; the classes at a bound are hatched."""
    table = _table(verb, f"cut(income, {', '.join(map(str, inner))})")
    axes, edges = table.plot(), [0, *inner, 9_000]
    bars = sorted(_bars(axes), key=lambda bar: bar.get_x())
    assert [bar.get_x() for bar in bars] == edges[:-1] and [bar.get_x() + bar.get_width() for bar in bars] == edges[1:]
    unit = 1_000.0 if "per" in label else 4_500.0
    areas = [bar.get_height() * bar.get_width() / unit for bar in bars]
    frame = table.to_frame()
    assert areas == pytest.approx(frame["estimate"].to_numpy()[(frame.iloc[:, 0] != "Total").to_numpy()])
    assert axes.get_ylabel() == label and axes.get_xlabel() == "income"
    assert [bool(bar.get_hatch()) for bar in bars] == [True, *[False] * (len(bars) - 2), True]
    assert "Hatched: includes values clipped to the bounds" in caption(table, 0.05)


def test_the_alternative_text_is_of_the_cells_that_are_drawn() -> None:
    table = _table("counts", "region * sex")
    frame = table.to_frame()
    cells = frame[(frame["sex"] != "Total") & (frame["region"] != "Total")]
    assert f"{cells['estimate'].max():,.0f} [" in alternative(table, 0.05)
    assert f"{frame['estimate'].max():,.0f} [" not in alternative(table, 0.05), "a total is not drawn"


def test_word_has_the_picture_with_its_words(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    table = _table("counts", "region * sex")
    page = docx.Document(str(table.to_word(tmp_path / "table.docx")))
    (shape,) = page.inline_shapes
    assert shape._inline.docPr.get("descr") == alternative(table, 0.05)
    assert caption(table, 0.05) in [paragraph.text for paragraph in page.paragraphs]


def test_the_command_line_knows_every_kind_of_picture() -> None:
    from confide.cli.options import PICTURES
    from confide.results.pages.content import Shown

    def families(one: type) -> list[type]:
        return [one, *(found for child in one.__subclasses__() for found in families(child))]

    cf.list_methods()  # which loads all of them
    known = {kind for one in families(Shown) if isinstance(one.pictures, tuple) for kind in one.pictures}
    assert known <= set(PICTURES)
    assert set(_table("means", "income ~ region * sex").pictures) <= set(PICTURES)


@pytest.mark.parametrize(
    "name", ["a b c", "income_of_all_persons_in_the_household", "x" * 90, "one two-three four.five"]
)
def test_a_folded_name_is_whole(name: str) -> None:
    lines = folded(name, 12).split("\n")
    assert max(map(len, lines)) <= 12
    assert "".join("".join(lines).split()) == "".join(name.split())
