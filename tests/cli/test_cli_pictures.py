"""`--plot`, `--plot-kind` and `--title`: one picture in the plot, the page, Word and LaTeX."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.cli_runner import good, run

TABLE = ("table", "happy ~ region", "survey.csv", "--schema", "schema.toml", "--mu", "1", "--inference", "population")


@pytest.fixture
def table(survey):
    good(*TABLE, "--unaccounted", "-o", "table.json")


def test_title_and_kind_reach_the_plot_and_the_page(table):
    words = ("--plot-kind", "bars", "--title", "Happiness of 2024")
    good("infer", "table.json", "--plot", "plot.svg", "--report", "page.html", *words)
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Happiness of 2024" in page and 'aria-label="Happiness of 2024. Smallest: ' in page
    assert "Bars: estimates. Whiskers: 95% confidence intervals" in page
    good("infer", "table.json", "--report", "usual.html")
    assert "Points: estimates." in Path("usual.html").read_text(encoding="utf-8")


def test_latex_includes_the_plot_that_is_written_beside_it(table):
    Path("out").mkdir()
    good("infer", "table.json", "--report", "out/table.tex", "--plot", "plot.pdf")
    text = Path("out/table.tex").read_text(encoding="utf-8")
    assert r"\includegraphics[width=\linewidth]{../plot.pdf}" in text and r"95\% confidence intervals" in text
    good("infer", "table.json", "--report", "alone.tex")
    assert "includegraphics" not in Path("alone.tex").read_text(encoding="utf-8")


def test_word_has_the_picture_that_is_asked_for(table):
    docx = pytest.importorskip("docx")
    good("infer", "table.json", "--report", "table.docx", "--title", "Happiness")
    (shape,) = docx.Document("table.docx").inline_shapes
    assert shape._inline.docPr.get("descr").startswith("Happiness. ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plot", "p.png", "--plot-kind", "pie"), "--plot-kind is one of bars, points, map"),
        (("--plot", "p.png", "--plot-kind", "box"), "--plot-kind of this result is one of points, bars"),
        (("--title", "T"), "add --plot FILE.png"),
        (("--plot-kind", "bars", "--report", "t.md"), "add --plot FILE.png"),
    ],
)
def test_what_no_picture_can_be_is_refused(table, words, said):
    done = run("infer", "table.json", *words)
    assert done.code == 2 and said in " ".join(done.err.split())
    assert not Path("p.png").exists()
