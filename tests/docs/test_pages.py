"""The README and the guides run: three in every run of the tests, all in `make bench`. Links lead somewhere, and each page has a place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from confide_lab.pages import PageFailed, pages, run, with_output

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages(DOCS)]
ALWAYS = ("README.md", "docs/start.md", "docs/questions/mean.md")


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _marked(page: Path) -> Any:
    return pytest.param(page, marks=() if _named(page) in ALWAYS else pytest.mark.long, id=_named(page))


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_the_page_runs(page: Path) -> None:
    if elsewhere := set(re.findall(r"^```python env=(\w+)", page.read_text(), re.MULTILINE)):
        missing = [name for name in elsewhere if not (ROOT / f".venv-{name}").exists()]
        if missing:
            pytest.skip(f"needs the environments of {', '.join(missing)}, which `make docs` makes")
    run(page, _stand_in_for_the_reader)


def _stand_in_for_the_reader(line: str, names: dict[str, Any]) -> None:
    """A guide's reader has a survey of her own and fills in the bounds of the draft; here both come from its Python block."""
    if line.startswith("confide schema draft") and "practice" in names and not Path("survey.csv").exists():
        names["practice"].to_csv("survey.csv", index=False)
    if line.startswith("confide schema check") and "schema" in names:
        Path("schema.toml").write_text(names["schema"].to_toml())


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text()):
            if target.startswith("http"):
                continue
            led = page.parent / target if target else page
            assert led.exists(), f"{page.name}: {target}"
            if anchor and led.suffix == ".md":
                assert anchor[1:] in _anchors(led), f"{page.name}: {target}{anchor}"


def _anchors(page: Path) -> set[str]:
    """Of its headings, as sites and repositories name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", one.lower())).strip("-") for one in headings}


def test_every_page_has_one_place_in_the_plan_of_the_site() -> None:
    plan = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    placed = re.findall(r"- (\S+\.md)$", plan, re.MULTILINE)
    outside = {"SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"}
    assert sorted(placed) == sorted({one.relative_to(DOCS).as_posix() for one in pages(DOCS)} | outside)


def test_question_pages_are_short_and_show_python_and_a_command() -> None:
    for page in pages(DOCS / "questions"):
        text = page.read_text()
        assert len(text.splitlines()) < 110, page.name
        assert "```python\n" in text and "\nconfide " in text, page.name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_output_stands_below_what_printed_it_and_nothing_else_is_added(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before\n\n```python\nx = 2\nprint('found', x)\n```\n\nbetween\n\n```\nconfide --version\n```\n\n```text\nx\n```\n"
    )
    ran = run(page)
    found = with_output(page.read_text(), ran)
    assert [one.language for one in ran] == ["python", ""]
    assert found.index("print(") < found.index("\nfound 2\n") < found.index("between") < found.index("\nconfide 0")
    assert found.count("{ .text .output }") == 2


def test_pictures_are_those_that_a_block_wrote(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nopen('two_lines.svg', 'w').write('<svg/>')\n```\n\n```python\nprint(1)\n```\n")
    first, second = run(page)
    assert [one.words for one in first.pictures] == ["two lines"] and not second.pictures
    assert with_output(page.read_text(), [first, second]).count("<img") == 1


def test_a_page_that_fails_says_where(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block, said in (
        ("```python\n1 / 0\n```", "division"),
        ("```\nconfide infer nothing.json\n```", "nothing.json"),
    ):
        page.write_text(block)
        with pytest.raises(PageFailed, match=said):
            run(page)
