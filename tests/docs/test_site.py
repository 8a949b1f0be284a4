"""The site is built without a warning, asks nobody for anything when it is read, and is searched without a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
#: Everyday questions in a newcomer's words, and the page that answers.
ASKED = {
    "mean by group": "questions/mean",
    "cross-table": "questions/cross-table",
    "median": "questions/median",
    "t-test": "questions/test",
    "regression": "questions/regression",
    "logistic": "questions/logistic",
    "share a file": "questions/share-a-file",
    "protect records": "questions/protect-records",
    "several questions": "questions/several",
    "PostgreSQL": "questions/databases",
    "several rows": "questions/persons",
    "weights": "questions/weights",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'confide[docs]'")
    built = tmp_path_factory.mktemp("site")
    env = {**os.environ, "CONFIDE_DOCS_RUN": "proofs.md", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(built)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


def test_what_a_page_prints_stands_in_it(site: Path) -> None:
    assert re.search(r'class="[^"]*output.*least_squares', (site / "proofs.html").read_text(), re.DOTALL)


def test_no_page_fetches_anything(site: Path) -> None:
    for file in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = file.read_text()
        found = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//|url\(\"?https?:|@import", text
        )
        assert not found, f"{file}: {found}"
    assert "unpkg" not in (site / "index.html").read_text()


def test_each_everyday_question_is_a_title_that_search_finds(site: Path) -> None:
    script = (site / "search/search_index.js").read_text()
    titles = {one["location"]: one["title"] for one in json.loads(script.partition("=")[2])["docs"]}
    for words, page in ASKED.items():
        assert words.lower() in titles[f"{page}.html"].lower(), (words, titles[f"{page}.html"])
