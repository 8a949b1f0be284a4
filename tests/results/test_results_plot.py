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
from confide.results.pages.plots import alternative, caption
from confide.results.pages.table import level_name


def bars(ax) -> np.ndarray:
    """Ends of the whiskers, from the top of the plot down: (count, 2)."""
    segments = [one for container in ax.containers for one in container.lines[2][0].get_segments()]
    return np.array([one[:, 0] for one in sorted(segments, key=lambda one: -one[0][1])])


def thick(ax) -> np.ndarray:
    """Ends of what sampling alone would give, from the top of the plot down."""
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_label() == "_sampling"]
    return np.array([one[:, 0] for one in sorted(lines.get_segments(), key=lambda one: -one[0][1])])


def points(ax) -> np.ndarray:
    where = np.concatenate([c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)])
    return where[np.argsort(-where[:, 1])]


def labels(ax) -> list[str]:
    order = np.argsort(-np.asarray(ax.get_yticks()))
    return [ax.get_yticklabels()[place].get_text() for place in order]


@pytest.mark.parametrize("alpha", [0.05, 0.32])
def test_bars_are_the_intervals(make: Maker, alpha):
    result = make()
    ax = result.plot(alpha)
    np.testing.assert_allclose(bars(ax), result.conf_int(alpha).to_numpy()[1:], rtol=1e-12)
    np.testing.assert_allclose(points(ax)[:, 0], result.estimates[1:])


def test_inner_bars_are_what_sampling_alone_would_give(make: Maker):
    result = make()
    sampling = make(covariance=np.diag(np.diag(result.covariance) - result.noise_variance), noise_variance=np.zeros(5))
    found = thick(result.plot())
    np.testing.assert_allclose(found, sampling.conf_int().to_numpy()[1:], rtol=1e-9)


def test_the_intercept_is_left_out_unless_it_is_alone_or_asked_for(make: Maker):
    shown = labels(make().plot())
    assert shown == [level_name(name) for name in NAMES[1:]] and "region: South" in shown
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
    assert ax.get_xlabel() == "estimate, in units of y"
    assert make(response="").plot().get_xlabel() == "estimate"
    assert "Estimates of y" in ax.get_title(loc="left")
    assert ax.get_legend() is None, "there is one series"
    assert not figure.texts, "what else the figure holds is the caller's"


def test_what_has_no_unit_of_the_response_names_its_own(make: Maker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Estimates, "_per", " of the log-odds per unit of the column")
    assert make().plot().get_xlabel() == "difference in log-odds"
    monkeypatch.setattr(Estimates, "_per", " per unit of the column")
    assert make().plot().get_xlabel() == "difference in y"


def test_a_figure_of_ours_has_title_and_caption(make: Maker):
    figure = make().plot().figure
    assert "Estimates of y" in figure.get_suptitle()
    said = " ".join(figure.get_supxlabel().split())
    assert caption(make(), 0.05) in said and "Points: estimates. Lines: 95% confidence intervals" in said
    assert "thick part: sampling error only" in said and "Intercept not shown" in said
    assert "mu = 0.25" in said, "a picture may go without its table"
    assert "SIMULATED NOISE: protects no one" in make(simulated=True).plot().figure.get_suptitle()


def test_title_and_labels_are_the_readers_own(make: Maker):
    ax = make().plot(
        title="Wages of 2024", labels={"educ": "Years of education", "region[T.South]": "The South", "y": "euros"}
    )
    assert ax.figure.get_suptitle().startswith("Wages of 2024\n")
    assert {"Years of education", "The South", "age"} <= set(labels(ax))
    assert ax.get_xlabel() == "estimate, in units of euros"
    with refuses(PlanError):
        make().plot(labels={"height": "Height"})
    with refuses(PlanError):
        make().plot(kind="bars")


def test_rows_that_noise_rules_have_open_points(make: Maker):
    result = make(noise_variance=np.diag(make().covariance) * [0, 0.99, 0, 0, 0])
    faces = np.concatenate([c.get_facecolors() for c in result.plot().collections if isinstance(c, PathCollection)])
    assert sorted(map(tuple, faces[:, :3].round(1).tolist())).count((1.0, 1.0, 1.0)) == 1
    assert "Open points: a caution." in caption(result, 0.05)


def test_the_alternative_text_has_the_title_and_the_ends(make: Maker):
    result = make()
    said, shown = alternative(result, 0.05), np.delete(result.estimates, NAMES.index("Intercept"))
    names = [name for name in NAMES if name != "Intercept"]
    assert said.startswith("Estimates of y. Smallest: ")
    assert f"largest: {level_name(names[int(shown.argmax())])}, " in said
    assert f"Smallest: {level_name(names[int(shown.argmin())])}, " in said


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_are_drawn_as_they_stand(make: Maker):
    names = ("$x_$", r"\frac", "a\x1b\nb", "a" * 80, "50 %")
    ax = make(names=names, response="$y$").plot()
    assert labels(ax)[:3] == ["$x_$", r"\frac", r"a\x1b\nb"]
    assert labels(ax)[3].replace("\n", "") == "a" * 80, "nothing is cut"
    assert max(map(len, labels(ax)[3].split("\n"))) <= 28
    ax.figure.savefig(io.BytesIO(), format="png")  # mathematics that does not parse would raise here


def test_no_global_list_of_figures_is_touched():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from results_examples import build; "
        "from confide.results.pages.report import page; r = build(); r.plot(); r._repr_html_(); page(r, 0.05); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
