"""What a page may be at most, and how it is written: lengths, words, names of the glossary, sentences.

They hold for every page of the guides; evidence is a site of its own.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from confide_lab.pages import pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Made from the code and the glossary, whose words are checked where they stand.
GENERATED = {f"reference/{name}.md" for name in ("python", "command-line", "statuses-and-flags", "glossary")}
_PLANNED = re.findall(r"(?:-|: ) ?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1], re.MULTILINE)
_LINES, _METHOD_LINES, _WORDS = 200, 150, 80_000
_LONG_SHARE, _REASONS = 0.05, 4 / 1_000


NEW = [page.relative_to(DOCS).as_posix() for page in pages(DOCS)]
WRITTEN = [place for place in NEW if place not in GENERATED]


def _lint() -> ModuleType:
    spec = spec_from_file_location("prose_lint_of_pages", ROOT / ".ci/prose_lint.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


LINT = _lint()
_GLOSSARY = tomllib.loads((ROOT / "src/confide/glossary.toml").read_text())
_RULES = LINT.rules(_GLOSSARY)


def _blocks(name: str, text: str) -> list[object]:
    lines = list(enumerate(text.splitlines(), 1))
    return [block for block in LINT.paragraphs(name, "docs", lines, markdown=True) if block.text]


def _names(name: str, text: str) -> list[str]:
    """Findings of names that the glossary forbids, of spelling, numbers and idioms."""
    found = LINT.check(_blocks(name, text), _RULES, 10_000)
    return [f"{name}:{line}: {rule}: {said!r} -> {better}" for _, line, _, rule, said, better in found]


def _sentences(name: str, text: str) -> Iterator[str]:
    for block in _blocks(name, text):
        if block.prose:  # type: ignore[attr-defined]
            yield from (one for _, one in LINT.sentences(block.text) if LINT.words_in(one) > 2)  # type: ignore[attr-defined]


def _long(name: str, text: str) -> list[str]:
    return [one for one in _sentences(name, text) if LINT.words_in(one) > _GLOSSARY["style"]["sentence_words"]]


def test_every_page_has_a_place_in_the_plan_of_the_site() -> None:
    assert set(NEW) == set(_PLANNED)


@pytest.mark.parametrize("place", [place for place in NEW if place not in GENERATED])
def test_a_page_is_short(place: str) -> None:
    most = _METHOD_LINES if place.startswith("methods/") else _LINES
    assert len((DOCS / place).read_text().splitlines()) <= most


def test_the_site_is_short() -> None:
    assert sum(len((DOCS / place).read_text().split()) for place in NEW) <= _WORDS


@pytest.mark.parametrize("place", WRITTEN)
def test_a_page_begins_with_what_for_whom_and_what_is_needed(place: str) -> None:
    title, *lines = [line for line in (DOCS / place).read_text().splitlines() if line.strip()]
    assert title.startswith("# ")
    assert [line for line in lines[:3] if re.match(r"[#|`<>*-]", line)] == [] and len(lines) > 3


@pytest.mark.parametrize("place", WRITTEN)
def test_a_page_has_the_words_of_the_glossary(place: str) -> None:
    found = _names(place, (DOCS / place).read_text())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", WRITTEN)
def test_few_sentences_of_a_page_are_long(place: str) -> None:
    text = (DOCS / place).read_text()
    long = _long(place, text)
    assert len(long) <= _LONG_SHARE * len(list(_sentences(place, text))), "\n".join(long)


def test_an_explanation_gives_reasons_and_examples() -> None:
    for place in WRITTEN:
        if place.startswith("explain/"):
            text = " ".join(_sentences(place, (DOCS / place).read_text())).lower()
            reasons = len(re.findall(r"\bbecause\b|\bfor example\b", text))
            assert reasons >= _REASONS * len(text.split()), place


def test_what_breaks_a_bar_is_found() -> None:
    bad = "# A page\n\nThe keeper of the records prints a noise share of 95 %.\n\n" + "One " + "word " * 31 + "more.\n"
    assert len(_names("page.md", bad)) >= 3 and len(_long("page.md", bad)) == 1
    assert _names("page.md", "# A page\n\nAn interval contains the mean.\n") == []


def test_a_build_of_the_site_counts_its_warnings() -> None:
    """With `--quiet` MkDocs counts none, so that outputs that differ would pass `--strict`."""
    rules = [line for line in (DOCS.parent / "Makefile").read_text().splitlines() if "mkdocs build" in line]
    assert len(rules) == 2 and all("--strict" in line and "--quiet" not in line for line in rules)
