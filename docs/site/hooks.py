"""Runs each page while the site is built, compares what its blocks print with what stands in it, and draws both and their pictures.

CONFIDE_DOCS_RUN names the pages that run, separated by commas
("tutorial/first-table.md,howto/mean.md"): all where it is left out, none if empty.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

from confide_lab.pages import difference, keeps, pages, run, with_output
from confide_lab.reference import expanded

_log = get_plugin_logger("pages")
#: Pages that stand beside the README, where those who look at a repository expect them, and their places in the site.
_OUTSIDE = {
    "SECURITY": "explain/threat-model.md",
    "CONTRIBUTING": "develop/contributing.md",
    "CHANGELOG": "develop/release-notes.md",
}
#: The folders of the two sites: the guides (mkdocs.yml) and the evidence (mkdocs.lab.yml).
_GUIDES, _EVIDENCE = "docs", "evidence"
_STYLE = ("site/site.css", "site/iframe-worker.js")
#: A link that leads up.
_LINK = re.compile(r"\[([^\[\]]+)\]\(((?:\.\./)+[^\s()#]+)(#[^\s()]*)?\)")


def on_config(config: Any) -> Any:
    """A page of the plan that is not there yet is left out; one that has no place in it is put behind all others."""
    docs = Path(config.docs_dir)
    known = [page.relative_to(docs).as_posix() for page in pages(docs)]
    config.nav = _there(config.nav, {*known, *(_OUTSIDE.values() if docs.name == _GUIDES else ())})
    placed = set(_leaves(config.nav))
    left = [page for page in known if page not in placed]
    if left:
        config.nav.append({"More": left})
    return config


def _there(plan: Any, known: set[str]) -> Any:
    """The plan without pages that are not known, and without what is empty then."""
    if isinstance(plan, str):
        return plan if plan in known else None
    if isinstance(plan, dict):
        return {title: own for title, one in plan.items() if (own := _there(one, known))}
    return [own for one in plan if (own := _there(one, known))]


def _leaves(plan: Any) -> Iterator[str]:
    if isinstance(plan, str):
        yield plan
        return
    for one in plan.values() if isinstance(plan, dict) else plan:
        yield from _leaves(one)


def on_files(files: Any, config: Any) -> Any:
    """In the guides the pages beside the README, each at its place unless there is a page of its own; in the evidence the guides' style."""
    root = Path(config.config_file_path).parent
    if Path(config.docs_dir).name == _EVIDENCE:
        for name in _STYLE:
            files.append(File(name, str(root / _GUIDES), config.site_dir, use_directory_urls=False))
        return files
    for name, place in _OUTSIDE.items():
        if files.get_file_from_path(place) is None:
            text = _between((root / f"{name}.md").read_text(), f"{name}.md", place, _GUIDES, config.extra["other"])
            files.append(File.generated(config, place, content=text))
    return files


def _between(text: str, source: str, place: str, folder: str, other: str) -> str:
    """A page of the checkout with its links as they are in the site of `folder`. source: where the page is in the checkout; place: in
    the site; other: where the other site is, from this one.

    MkDocs knows the files of one site: a link into the other is written as it will be in HTML.
    """
    up = "../" * (len(PurePosixPath(place).parts) - 1)

    def led(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        name = "docs/index.md" if file == "README.md" else file
        name = f"docs/{_OUTSIDE[name[:-3]]}" if name[:-3] in _OUTSIDE else name
        site, _, inside = name.partition("/")
        if site == folder:
            return f"[{words}]({posixpath.relpath(inside, posixpath.dirname(place) or '.')}{anchor})"
        if site in (_GUIDES, _EVIDENCE):
            page = re.sub(r"\.md$", ".html", inside)
            return f'<a href="{up}{other}/{page}{anchor}">{words}</a>'
        return found[0]

    links = _LINK if posixpath.dirname(source) else re.compile(_LINK.pattern.replace(r"(?:\.\./)+", r"(?!\w+:)"))
    return links.sub(led, text)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with what its blocks print, and with links to its neighbours outside the folder."""
    if page.file.generated_by:
        return markdown
    place = page.file.src_uri
    if place.startswith(("howto/", "tutorial/", "questions/", "start")):
        page.meta["search"] = {"boost": 3}  # before pages in which the word merely stands
    wanted = os.environ.get("CONFIDE_DOCS_RUN")
    source = Path(page.file.abs_src_path)
    text = source.read_text()
    start = time.perf_counter()
    ran = run(source) if wanted is None or place in wanted.split(",") else []
    if ran:
        _log.info("%5.1f s  %s", time.perf_counter() - start, place)
        if keeps(source) and (said := difference(source, ran)):
            _log.warning("%s prints other lines than those that stand in it\n%s", place, said)
    folder = Path(config.docs_dir).name
    return _between(expanded(with_output(text, ran)), f"{folder}/{place}", place, folder, config.extra["other"])
