"""The README and the guides run and print what stands in them: the quick ones always, all in `make bench`; pages have a place."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

import pytest
from tests.messages import refuses

from confide.noise.standard import SecureWords
from confide_lab.benchmarks import rival
from confide_lab.benchmarks.__main__ import MARKS
from confide_lab.pages import PageFailed, difference, keeps, main, pages, run, with_output, written
from confide_lab.repeatable import repeatable

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EVIDENCE = ROOT / "evidence"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages(DOCS), *pages(EVIDENCE)]
ALWAYS = (
    "README.md",
    "docs/tutorial/first-table.md",
    "docs/howto/mean.md",
    *(f"docs/explain/{name}.md" for name in ("ledger", "units")),
    "docs/howto/files-and-databases.md",
    *(f"docs/reference/{name}.md" for name in ("release-and-ledger-files", "schema-file")),
)
#: Pages with blocks that are shown alone.
SHOWN_ALONE: set[str] = set()
# Of the pages of methods, those of more than a few seconds.
SLOW = tuple(f"docs/methods/{name}.md" for name in ("intervals", "voting"))


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _marked(page: Path) -> Any:
    name = _named(page)
    quick = name in ALWAYS or (name.startswith(("docs/methods/", "evidence/methods/")) and name not in SLOW)
    return pytest.param(page, marks=() if quick else pytest.mark.long, id=name)


@pytest.mark.page
@pytest.mark.usefixtures("whole_forecasts")  # as the page's reader has them
@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_the_page_runs(page: Path) -> None:
    if elsewhere := set(re.findall(r"^```python env=(\w+)", page.read_text(), re.MULTILINE)):
        missing = [name for name in elsewhere if not (ROOT / f".venv-{name}").exists()]
        if missing:
            pytest.skip(f"needs the environments of {', '.join(missing)}, which `make docs` makes")
    ran = run(page)
    if keeps(page):
        said = difference(page, ran)
        assert not said, said


def test_neither_other_sources_nor_imports_move_the_draws_of_a_page() -> None:
    with repeatable():
        alone = SecureWords().take(2).tolist()
    others = [SecureWords() for _ in range(3)]
    with repeatable():
        secrets.token_bytes(4)  # as modules ask while they are imported, in the first page of a process alone
        assert SecureWords().take(2).tolist() == alone
        assert all(one.take(2).tolist() != alone for one in others)


def test_every_page_runs_in_the_benchmarks_and_some_in_every_check() -> None:
    """`make bench` selects by `MARKS`, `make test` by "not long"."""
    marks = {page.id: {mark.name for mark in page.marks} for page in (_marked(page) for page in PAGES)}
    assert {one.name for one in test_the_page_runs.pytestmark} >= {"page"} and "page" in MARKS.split(" or ")
    assert set(marks) == {_named(page) for page in PAGES}
    assert {*ALWAYS} <= {name for name, own in marks.items() if "long" not in own}


def test_each_page_has_one_place_in_the_plan_of_the_site() -> None:
    """The plan has pages that are still to come; a page in one of its folders is in it."""
    plan = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    placed = re.findall(r"(?:-|: ) ?(\S+\.md)$", plan, re.MULTILINE)
    folders = {page.split("/")[0] for page in placed if "/" in page}
    assert len(placed) == len(set(placed)) > 50 and len(folders) == 6
    known = {one.relative_to(DOCS).as_posix() for one in pages(DOCS)}
    new = {one for one in known if one.split("/")[0] in folders - {"methods"}}
    assert new <= set(placed)
    evidence = re.findall(r"(?:-|: ) ?(\S+\.md)$", (ROOT / "mkdocs.lab.yml").read_text(), re.MULTILINE)
    assert sorted(evidence) == sorted(one.relative_to(EVIDENCE).as_posix() for one in pages(EVIDENCE))


def test_question_pages_are_short_and_show_python_a_command_and_a_picture() -> None:
    for page in pages(DOCS / "questions"):
        text = page.read_text()
        assert len(text.splitlines()) < 110, page.name
        assert "```python\n" in text and "\nconfide " in text, page.name
        assert ".svg" in text, f"{page.name} shows no picture"


def test_how_to_pages_show_a_call_and_what_it_prints() -> None:
    for page in pages(DOCS / "howto"):
        text = page.read_text()
        assert "```python\n" in text or "\nconfide " in text, page.name
        assert "```output\n" in text, f"{page.name} shows no output: python -m confide_lab.pages --write {page}"


def test_the_front_page_leads_to_every_how_to() -> None:
    led = re.findall(r"\]\(howto/([\w-]+\.md)\)", (DOCS / "index.md").read_text())
    assert sorted(set(led)) == [one.name for one in pages(DOCS / "howto")]


def test_the_front_page_and_the_readme_lead_to_every_question() -> None:
    for start, place in ((DOCS / "index.md", "questions/"), (ROOT / "README.md", "docs/questions/")):
        led = re.findall(rf"\]\({place}([\w-]+\.md)\)", start.read_text())
        assert sorted(set(led)) == [one.name for one in pages(DOCS / "questions")], start.name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


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


_DRAWS = """# A page

```python
import confide as cf

noise = cf.noise.SecureNoise()
print(noise.grid_gaussian(10**12, 2))
```

```python
print(noise.grid_gaussian(10**12, 2))
print("release", "1f0e77ac")
```

End.
"""


def test_outputs_stand_in_a_page_and_a_run_finds_them_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(_DRAWS)
    assert main([str(page)]) == 0 and not keeps(page)
    assert main(["--write", str(page)]) == 0 and keeps(page)
    once = page.read_text()
    assert once.count("```output\n[") == 2 and "release 0a1b2c3d\n```\n\nEnd.\n" in once
    assert main(["--write", str(page)]) == main([str(page)]) == 0 and page.read_text() == once
    assert (
        with_output(once, run(page)).count("{ .text .output }") == with_output(once, []).count("{ .text .output }") == 2
    )
    for wrong in (once.replace("0a1b2c3d", "0a1b2c3e"), once + "\n```output\nof no block\n```\n"):
        page.write_text(wrong)
        assert main([str(page)]) == 1
    assert "-of no block" in capsys.readouterr().out


def test_a_block_that_stays_prints_the_same_after_others_change(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(_DRAWS)
    first, second = (one.printed for one in run(page))
    page.write_text(_DRAWS.replace("grid_gaussian(10**12, 2))\n```", "grid_gaussian(10**12, 3))\n```", 1))
    changed, same = (one.printed for one in run(page))
    assert changed != first and same == second


def test_draws_are_the_same_on_a_page_alone_and_secret_before_and_after() -> None:
    words = SecureWords()
    seen = []
    for _ in range(2):
        seen.append(words.take(2).tolist())
        with repeatable() as draws:
            draws.start("a block")
            inside = words.take(2).tolist()
            draws.start("a block")
            again = words.take(2).tolist()
        seen.append(words.take(2).tolist())
        assert inside != again
        seen.append(inside)
    before, after, inside, before2, after2, inside2 = seen
    assert inside == inside2
    assert len({tuple(one) for one in (before, after, inside, before2, after2)}) == 5


def test_what_was_not_run_keeps_what_stood_below_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python needs=no_such_module\nprint(1)\n```\n\n```output\n1\n```\n")
    assert keeps(page) and not difference(page, run(page))
    assert written(page.read_text(), run(page)) == page.read_text()


def test_pictures_are_those_that_a_block_wrote(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nopen('two_lines.svg', 'w').write('<svg/>')\n```\n\n```python\nprint(1)\n```\n")
    first, second = run(page)
    assert [one.words for one in first.pictures] == ["two lines"] and not second.pictures
    assert with_output(page.read_text(), [first, second]).count("<img") == 1


def test_a_page_that_fails_says_where(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block in (
        "```python\n1 / 0\n```",
        "```\nconfide infer nothing.json\n```",
    ):
        page.write_text(block)
        with refuses(PageFailed):
            run(page)


def test_what_a_block_needs_is_run_where_it_is_and_else_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 2\n```\n\n```python needs=json\nprint('found', x)\n```\n\n```python needs=no_such_module\nprint(1)\n```\n\n"
        "```python needs=NO_SUCH_SERVER\nimport os\n\nprint(os.environ['NO_SUCH_SERVER'])\n```\n"
    )
    printed = [one.printed for one in run(page)]
    assert printed[1:] == [
        "found 2\n",
        "not run when this page was built: it needs no_such_module",
        "not run when this page was built: it needs NO_SUCH_SERVER",
    ]
    monkeypatch.setenv("NO_SUCH_SERVER", "address")
    ran = run(page)
    assert ran[3].printed == "address\n" and "needs=" not in with_output(page.read_text(), ran)


def test_every_python_block_of_the_guides_is_run() -> None:
    """A block marked `py` is shown alone: there is none but on the pages of `SHOWN_ALONE`."""
    shown = {_named(page) for page in PAGES if re.search(r"^```py$", page.read_text(), re.MULTILINE)}
    assert shown <= SHOWN_ALONE, shown


def test_a_package_that_cannot_be_had_is_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rival.NEEDS, "tumult", "no-such-program")
    page = tmp_path / "page.md"
    page.write_text("```python env=tumult\nprint(1)\n```\n")
    ran = run(page)
    assert "needs no-such-program" in ran[0].printed
    assert "```python\n" in with_output(page.read_text(), ran)
