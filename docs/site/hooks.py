"""Runs each page while the site is built, and puts below each block what it printed.

CONFIDE_DOCS_RUN names the pages that run, separated by commas ("start.md,questions/mean.md"); all of them where it is left out, none if empty.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from confide_lab.pages import run, with_output
from mkdocs.plugins import get_plugin_logger

_log = get_plugin_logger("pages")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    wanted = os.environ.get("CONFIDE_DOCS_RUN")
    if wanted is not None and page.file.src_uri not in wanted.split(","):
        return markdown
    start = time.perf_counter()
    source = Path(page.file.abs_src_path)
    text = with_output(source.read_text(), run(source))
    _log.info("%5.1f s  %s", time.perf_counter() - start, page.file.src_uri)
    return text
