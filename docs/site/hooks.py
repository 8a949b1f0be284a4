"""Runs each page while the site is built, compares what its blocks print with what stands in it, and draws both and their pictures.

CONFIDE_DOCS_RUN names the pages that run, separated by commas ("start.md,howto/mean.md"): all where it is left out, none if empty.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

from confide_lab.pages import difference, keeps, pages, run, with_output

_log = get_plugin_logger("pages")
#: Pages that stand beside the README, where those who look at a repository expect them, and their places in the site.
_OUTSIDE = {
    "SECURITY": "explain/threat-model.md",
    "CONTRIBUTING": "develop/contributing.md",
    "CHANGELOG": "develop/release-notes.md",
}
#: A link to one of them, from a page of the site.
_LINK = re.compile(rf"\]\((?:\.\./)+({'|'.join(_OUTSIDE)})\.md")


def on_config(config: Any) -> Any:
    """A page of the plan that is not there yet is left out; one that has no place in it is put behind all others."""
    docs = Path(config.docs_dir)
    known = [page.relative_to(docs).as_posix() for page in pages(docs)]
    config.nav = _there(config.nav, {*known, *_OUTSIDE.values()})
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
    """The pages beside the README, each at its place, unless the folder has a page of its own there."""
    root = Path(config.config_file_path).parent
    for name, place in _OUTSIDE.items():
        if files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, content=_inside((root / f"{name}.md").read_text(), place)))
    return files


def _inside(text: str, place: str) -> str:
    """A page of the root with its links as they are at its place in the site."""
    text = re.sub(r"\]\(README\.md", "](docs/index.md", text)
    for name, other in _OUTSIDE.items():
        text = text.replace(f"]({name}.md", f"](docs/{other}")
    up = "../" * (len(PurePosixPath(place).parts) - 1)
    return text.replace("](docs/", f"]({up}")


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
    up = "../" * (len(PurePosixPath(place).parts) - 1)
    return _LINK.sub(lambda found: f"]({up}{_OUTSIDE[found[1]]}", with_output(text, ran))
