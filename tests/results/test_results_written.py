"""Markdown, LaTeX, Word, and results side by side: the cells of the text, shielded, with what must stand beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.errors import FileError, PlanError

HOSTILE = ("Intercept", "a_b & 50% {x} $y$ #1", "C:\\t|e~s^t [1]", "<b>*bold*</b>", "`code`")


def test_markdown_has_the_cells_and_the_note(make):
    text = make(names=HOSTILE).to_markdown()
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 7 and len({line.count("|") for line in rows}) == 1
    assert "\\<b\\>\\*bold\\*\\</b\\>" in text and "\\`code\\`" in text
    assert "\\](http" in make(names=("Intercept", "![x](http://far/x)", "b", "c", "d")).to_markdown()
    assert "Status valid" in text and str(make().guarantee) in text and make().release_sha256 in text
    assert "protects no one" in make(simulated=True).to_markdown()


def test_latex_shields_every_sign(make):
    text = make(names=HOSTILE).to_latex()
    assert r"a\_b \& 50\% \{x\} \$y\$ \#1" in text and r"C:\textbackslash{}t\textbar{}e" in text
    assert text.count(r"\\") == 6 and r"\toprule" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX is installed")
def test_latex_is_latex(make, tmp_path):
    page = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{make(names=HOSTILE).to_latex()}\end{{document}}"
    (tmp_path / "page.tex").write_text(page)
    subprocess.run(
        ["pdflatex", "-interaction=batchmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )


def test_word_has_the_cells(make, tmp_path):
    docx = pytest.importorskip("docx", reason="python-docx is not installed")
    place = make(names=HOSTILE).to_word(tmp_path / "table.docx")
    (table,) = docx.Document(str(place)).tables
    assert [row.cells[0].text for row in table.rows][1:] == list(HOSTILE)
    with refuses(FileError):
        make().to_word(tmp_path / "nowhere" / "table.docx")


def test_without_the_package_word_says_what_to_install(make, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    with refuses(PlanError):
        make().to_word(tmp_path / "table.docx")


def test_results_side_by_side(make):
    small = make(names=("Intercept", "age", "educ"), estimates=np.array([1.0, 2.0, 3.0]))
    both = cf.results.compare({"all": make(), "small": small})
    frame = both.to_frame()
    assert list(frame.columns.levels[0]) == ["all", "small"]
    assert frame[("small", "estimate")].dropna().tolist() == [1.0, 2.0, 3.0]
    assert frame[("all", "ci_low")].tolist() == pytest.approx(make().conf_int().iloc[:, 0].tolist())
    lines = both.summary().splitlines()
    assert lines[:2] == ["Results side by side", "Differentially private, may be published"]
    assert lines[3].split() == ["term", "all", "small"]
    assert any(line.startswith("age") and line.count(" to ") == 2 for line in lines)
    assert both.to_markdown().count("|") and "<table>" in both._repr_html_()
    assert both.summary().count("Gaussian DP, mu = 0.25") == 2


def test_results_side_by_side_fit_80_columns(make):
    long = {f"a title of a result, number {k}": make(names=("Intercept", "x" * 90, "b", "c", "d")) for k in range(3)}
    text = cf.results.compare(long).summary()
    assert max(map(len, text.splitlines())) <= 80 and text.count("term") == 3


def test_what_cannot_stand_side_by_side(make):
    for given in ([make()], [make(), "a table"], {}):
        with refuses(PlanError):
            cf.results.compare(given)


def test_unlike_units_are_drawn_in_panels(make):
    variances = np.array([1.0, 1e-8, 1.0, 1e8, 1.0])
    unlike = make(estimates=np.sqrt(variances), covariance=np.diag(variances), noise_variance=variances / 4)
    panels = unlike.plot().child_axes
    assert len(panels) == 3, "in no panel an interval is a dot beside another"
    assert sum(len(panel.get_yticks()) for panel in panels) == 4
    assert [bool(panel.get_xlabel()) for panel in panels] == [False, False, True]
