"""Runs each page while the site is built, and puts below each block what it printed.

CONFIDE_DOCS_RUN names the pages that run, separated by commas ("start.md,questions/mean.md"): all where it is left out, none if empty.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

from confide_lab.pages import pages, run, with_output

_log = get_plugin_logger("pages")
#: Pages that stand beside the README, where those who look at a repository expect them.
_OUTSIDE = ("SECURITY", "CONTRIBUTING", "CHANGELOG")


def on_config(config: Any) -> Any:
    """A page that has no place in mkdocs.yml is put behind all others, so that none is out of reach."""
    docs = Path(config.docs_dir)
    placed = set(_leaves(config.nav))
    left = [page for one in pages(docs) if (page := one.relative_to(docs).as_posix()) not in placed]
    if left:
        config.nav.append({"More": left})
    return config


def _leaves(plan: Any) -> Iterator[str]:
    for one in plan.values() if isinstance(plan, dict) else plan:
        if isinstance(one, str):
            yield one
        else:
            yield from _leaves(one)


def on_files(files: Any, config: Any) -> Any:
    root = Path(config.config_file_path).parent
    for name in _OUTSIDE:
        text = (root / f"{name}.md").read_text()
        inside = re.sub(r"\]\(docs/", "](", text)
        files.append(File.generated(config, f"{name}.md", content=re.sub(r"\]\(README\.md", "](index.md", inside)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    if page.file.generated_by:
        return markdown
    if page.file.src_uri.startswith(("questions/", "start")):
        page.meta["search"] = {"boost": 3}  # before pages in which the word merely stands
    wanted = os.environ.get("CONFIDE_DOCS_RUN")
    source = Path(page.file.abs_src_path)
    text = source.read_text()
    start = time.perf_counter()
    if wanted is None or page.file.src_uri in wanted.split(","):
        text = with_output(text, run(source))
        _log.info("%5.1f s  %s", time.perf_counter() - start, page.file.src_uri)
    else:
        text = with_output(text, [])
    return re.sub(rf"\]\((\.\./)((?:\.\./)*)({'|'.join(_OUTSIDE)})\.md", r"](\2\3.md", text)
