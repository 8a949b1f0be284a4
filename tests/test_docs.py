"""The README and the guides run: their Python blocks, and their `confide` command lines, file by file, top to bottom."""

from __future__ import annotations

import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from confide import registry

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from confide.cli import app

    monkeypatch.chdir(tmp_path)
    known = dict(registry._registered)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    space = vars(module)
    try:
        for kind, block in re.findall(r"```(\w*)\n(.*?)```", page.read_text(), re.DOTALL):
            if kind == "python":
                exec(compile(block, str(page), "exec"), space)
            for line in block.splitlines() if not kind else ():
                if line.startswith("confide "):
                    _stand_in_for_the_reader(line, space)
                    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
                    assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    finally:
        registry._registered.clear()
        registry._registered.update(known)


def _stand_in_for_the_reader(line: str, space: dict[str, Any]) -> None:
    """The README's reader has a survey of her own and fills in the bounds of the draft; here both come from its Python block."""
    if line.startswith("confide schema draft") and "practice" in space and not Path("survey.csv").exists():
        space["practice"].to_csv("survey.csv", index=False)
    if line.startswith("confide schema check") and "schema" in space:
        Path("schema.toml").write_text(space["schema"].to_toml())


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
