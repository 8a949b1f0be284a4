"""The README and the guides run: their Python blocks, and their `confide` command lines, file by file, top to bottom."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from confide import registry

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from confide.cli import app

    monkeypatch.chdir(tmp_path)
    known = dict(registry._registered)
    space: dict[str, object] = {"__name__": "page"}
    try:
        for kind, block in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), re.DOTALL):
            if kind == "python":
                exec(compile(block, str(page), "exec"), space)
            for line in block.splitlines() if not kind else ():
                if line.startswith("confide "):
                    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
                    assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    finally:
        registry._registered.clear()
        registry._registered.update(known)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
