"""The site is built without a warning, asks nobody for anything when it is read, and is searched without a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide.cli import app
from confide_lab.papers.plan import MODES

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
#: Everyday questions in a newcomer's words, and the page that answers: its place, and that of before where it is still to come.
ASKED = {
    "mean by group": ("howto/mean", "questions/mean"),
    "cross-table": ("howto/cross-table", "questions/cross-table"),
    "median": ("howto/median", "questions/median"),
    "t-test": ("howto/test", "questions/test"),
    "regression": ("howto/regression", "questions/regression"),
    "logistic": ("howto/logistic", "questions/logistic"),
    "share a file": ("howto/synthetic-file", "questions/share-a-file"),
    "protect records": ("howto/local-protection", "questions/protect-records"),
    "several questions": ("howto/publication", "questions/several"),
    "PostgreSQL": ("howto/files-and-databases", "questions/databases"),
    "several rows": ("howto/rows-per-person", "questions/persons"),
    "weights": ("howto/weights", "questions/weights"),
}
#: The page that is run when the site is built for the tests.
RUN = next(page for page in ASKED["mean by group"] if (ROOT / f"docs/{page}.md").exists())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'confide[docs]'")
    built = tmp_path_factory.mktemp("sites") / "docs"
    env = {**os.environ, "CONFIDE_DOCS_RUN": f"{RUN}.md", "NO_MKDOCS_2_WARNING": "1"}
    for plan, place in (("mkdocs.yml", built), ("mkdocs.lab.yml", built.parent / "lab")):
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", plan, "-d", str(place)]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return built


def test_what_a_page_prints_stands_in_it(site: Path) -> None:
    page = (site / f"{RUN}.html").read_text()
    assert re.search(r'class="[^"]*output.*Differentially private', page, re.DOTALL) and '<img class="figure"' in page


def test_the_sites_of_guides_and_evidence_lead_to_each_other(site: Path) -> None:
    crossing = 0
    for name, other in (("docs", "lab"), ("lab", "docs")):
        for page in (site.parent / name).rglob("*.html"):
            for target in re.findall(rf'href="?((?:\.\./)+{other}/[^"#\s>]+)', page.read_text()):
                crossing += 1
                assert (page.parent / target).is_file(), f"{page}: {target}"
    assert crossing > 30


def test_the_reference_has_signatures_and_what_is_returned(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference/python.html").read_text())
    assert ":::" not in text
    means = text.split("cf.tables.means")[-2] + text.split("cf.tables.means")[-1]
    assert "privacy" in means and "Returns" in means and "Raises" in means


def test_no_page_fetches_anything(site: Path) -> None:
    for file in [*site.parent.rglob("*.html"), *site.parent.rglob("*.css")]:
        text = file.read_text()
        found = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//|url\(\"?https?:|@import", text
        )
        assert not found, f"{file}: {found}"
    assert "unpkg" not in (site / "index.html").read_text()


def test_each_everyday_question_is_a_title_that_search_finds(site: Path) -> None:
    script = (site / "search/search_index.js").read_text()
    titles = {one["location"]: one["title"] for one in json.loads(script.partition("=")[2])["docs"]}
    for words, pages in ASKED.items():
        page = next(one for one in pages if f"{one}.html" in titles)
        assert words.lower() in titles[f"{page}.html"].lower(), (words, titles[f"{page}.html"])


def test_the_papers_lead_to_the_evidence_that_stands_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'confide[docs]'")
    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(MODES, "smoke", 0.01)
    site = tmp_path / "site"
    words = [
        "lab",
        "papers",
        "--smoke",
        "--evidence",
        "--paper",
        "binagg",
        "-o",
        str(site),
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert 'href="evidence/index.html"' in (site / "index.html").read_text()
    assert (site / "evidence/index.html").is_file() and (site / "evidence/coverage.csv").is_file()
    monkeypatch.chdir(tmp_path)
    assert "mkdocs.lab.yml" in CliRunner().invoke(app, ["lab", "papers", "--smoke", "--evidence"]).output
