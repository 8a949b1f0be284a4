"""Where the plot puts its marks."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from tests.messages import refuses
from tests.results.results_examples import NAMES, Maker

from confide.core import STATUSES
from confide.errors import PlanError
from confide.results import Estimates
from confide.results.pages.content import STATUS_WORDS


def bars(ax, label: str) -> np.ndarray:
    """Ends of the bars with that label, from the top of the plot down: (count, 2)."""
    for container in ax.containers:
        if container.get_label() == label:
            segments = container.lines[2][0].get_segments()
            break
    else:
        (lines,) = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_label() == label]
        segments = lines.get_segments()
    ordered = sorted(segments, key=lambda segment: -segment[0][1])
    return np.array([segment[:, 0] for segment in ordered])


def points(ax) -> np.ndarray:
    (dots,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    where = np.asarray(dots.get_offsets())
    return where[np.argsort(-where[:, 1])]


def labels(ax) -> list[str]:
    order = np.argsort(-np.asarray(ax.get_yticks()))
    return [ax.get_yticklabels()[place].get_text() for place in order]


@pytest.mark.parametrize("alpha", [0.05, 0.32])
def test_bars_are_the_intervals(make: Maker, alpha):
    result = make()
    ax = result.plot(alpha)
    np.testing.assert_allclose(
        bars(ax, "sampling and privacy noise"), result.conf_int(alpha).to_numpy()[1:], rtol=1e-12
    )
    np.testing.assert_allclose(points(ax)[:, 0], result.estimates[1:])


def test_inner_bars_are_what_sampling_alone_would_give(make: Maker):
    result = make()
    sampling = make(covariance=np.diag(np.diag(result.covariance) - result.noise_variance), noise_variance=np.zeros(5))
    found = bars(result.plot(), "sampling alone")
    np.testing.assert_allclose(found, sampling.conf_int().to_numpy()[1:], rtol=1e-9)


def test_the_intercept_is_left_out_unless_it_is_alone_or_asked_for(make: Maker):
    assert labels(make().plot()) == list(NAMES[1:])
    assert labels(make(names=("Intercept",)).plot()) == ["Intercept"]
    assert labels(make().plot(names=["educ", "Intercept"])) == ["educ", "Intercept"]
    assert labels(make().plot(names="educ")) == ["educ"]


@pytest.mark.parametrize("names", [["height"], [], "height"])
def test_unknown_names_are_refused(make: Maker, names):
    with refuses(PlanError):
        make().plot(names=names)


@pytest.mark.parametrize("status", STATUSES)
def test_intervals_are_drawn_where_they_are_valid_alone(make: Maker, status):
    ax = make(status=status).plot()
    assert bool(ax.containers) == (status in ("valid", "partial"))
    if status in ("valid", "partial", "imprecise"):
        assert np.isfinite(points(ax)).all(axis=1).sum() == (3 if status == "partial" else 4)
    else:
        assert not ax.collections, "what must not be interpreted is not drawn"
        (why,) = [text.get_text() for text in ax.texts]
        assert status in why and STATUS_WORDS[status].split()[0] in why
    assert (status in ax.get_xlabel()) == (status != "valid")


def test_no_reply_draws_an_empty_plot(make: Maker):
    ax = make(status="declined", estimates=np.full(5, np.nan)).plot()
    ax.figure.savefig(io.BytesIO(), format="png")
    assert "no estimates" in ax.texts[0].get_text()


def zero_lines(ax) -> list[float]:
    return [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2 and list(line.get_ydata()) == [0, 1]]


def test_zero_is_marked_unless_it_is_far_away(make: Maker):
    assert zero_lines(make().plot()) == [0.0]
    far = make(names=("mean",), estimates=[1e4], covariance=[[1.0]], noise_variance=[0.0])
    assert zero_lines(far.plot()) == []


def test_axes_of_the_caller_are_used_and_named(make: Maker):
    figure = Figure()
    ax = figure.add_subplot()
    assert make().plot(ax=ax) is ax
    assert ax.get_xlabel() == "estimate in units of y, with 95 % interval"
    assert make(response="").plot().get_xlabel() == "estimate, with 95 % interval"
    assert ax.get_ylabel() == "coefficient"
    assert "Estimates of y" in ax.get_title(loc="left")
    assert ax.get_legend() is not None


def test_what_has_no_unit_of_the_response_names_its_own(make: Maker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Estimates, "_per", " of the log-odds per unit of the column")
    assert make().plot().get_xlabel() == "estimate in units of the log-odds per unit of the column, with 95 % interval"


def test_a_figure_of_ours_has_title_and_legend(make: Maker):
    figure = make().plot().figure
    assert "Estimates of y" in figure.get_suptitle()
    assert str(make().guarantee) in figure.get_suptitle()
    assert len(figure.legends) == 1
    assert "SIMULATED NOISE: protects no one" in make(simulated=True).plot().figure.get_suptitle()


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_drawn_as_they_stand(make: Maker):
    names = ("$x_$", r"\frac", "a\x1b\nb", "a" * 80, "50 %")
    ax = make(names=names, response="$y$").plot()
    assert labels(ax)[:3] == ["$x_$", r"\frac", r"a\x1b\nb"]
    assert len(labels(ax)[3]) <= 28
    ax.figure.savefig(io.BytesIO(), format="png")  # mathematics that does not parse would raise here


def test_no_global_list_of_figures_is_touched():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from results_examples import build; "
        "from confide.results.pages.report import page; r = build(); r.plot(); r._repr_html_(); page(r, 0.05); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
