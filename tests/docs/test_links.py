"""Links of the guides and of the evidence, without a network: inside to a file and a heading, outside well formed; and the command that
tries them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from confide_lab.links import Link, faults, links, main, outside
from confide_lab.pages import pages

ROOT = Path(__file__).resolve().parents[2]
EVERY = sorted([*ROOT.glob("*.md"), *pages(ROOT / "docs"), *pages(ROOT / "evidence")])


def test_links_lead_somewhere() -> None:
    wrong = [
        f"{link.page.name}:{link.line} {link.target} {said}"
        for page in EVERY
        for link in links(page)
        if (said := faults(link))
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(1 for page in EVERY for _ in links(page)) > 290 and len(outside(ROOT)) >= 3


def test_guides_and_evidence_lead_to_each_other() -> None:
    """And each page of evidence is led to by another page."""
    led: dict[Path, set[str]] = {}
    for page in EVERY:
        for link in links(page):
            to = (page.parent / link.target.partition("#")[0]).resolve()
            if not link.outside and to != page:
                led.setdefault(to, set()).add(page.relative_to(ROOT).parts[0])
    assert [page.name for page in pages(ROOT / "evidence") if page not in led] == []
    assert any("evidence" in led[page] for page in pages(ROOT / "docs") if page in led)
    assert any("docs" in led[page] for page in pages(ROOT / "evidence"))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("https://arxiv.org/abs/2405.00267", ""),
        ("http://arxiv.org/abs/2405.00267", "is not https"),
        ("https://arxiv/abs", "has no plain host"),
        ("https://user@arxiv.org/", "has no plain host"),
        ("https://arxiv.org/abs/1.", "no part of an address"),
        ("ftp://arxiv.org/abs", "is not https"),
        ("other.md", ""),
        ("other.md#a-heading", ""),
        ("other.md#a-comment", "leads to no heading"),
        ("#here", ""),
        ("#there", "leads to no heading"),
        ("nowhere.md", "leads to no file"),
    ],
)
def test_a_link_at_fault_is_found(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "other.md").write_text("# A heading\n\n```python\n# a comment\n```\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\n`[code](nothing.md)`\n\n```\n[code](nothing.md)\n```\n\nSee [it]({target}).\n")
    (link,) = links(page)
    assert (link.target, link.line) == (target, 9)
    assert said in faults(link) and bool(said) == bool(faults(link))


def test_the_command_tries_each_address_once_and_never_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text(
        "[a](https://a.example.org/x) [b](https://b.example.org) [a](https://a.example.org/x)"
    )
    asked: list[str] = []

    def answers(target: str) -> int | None:
        asked.append(target)
        return 404 if "b." in target else None

    monkeypatch.delenv("CI", raising=False)
    assert main(tmp_path, answers) == 1 and len(asked) == 2
    said = capsys.readouterr().out
    assert "not reached  https://a.example.org/x" in said and "404          https://b.example.org" in said
    monkeypatch.setenv("CI", "true")
    assert main(tmp_path, answers) == 0 and len(asked) == 2
    assert "2 links, 0 servers answered, 0 wrong; CI: none was tried" in capsys.readouterr().out


def test_an_address_is_one_link_however_it_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('<https://a.example.org> [b](https://b.example.org/x_(y) "title") <img src="c.png">')
    assert [link.target for link in links(page)] == ["https://a.example.org", "https://b.example.org/x_(y)", "c.png"]
    assert [faults(link) for link in links(page)] == ["", "", "leads to no file"]
    assert Link("c.png", page, 1).outside is False
