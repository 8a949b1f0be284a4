"""What some tests need of the machine. Where it is missing they are skipped, and fail with ``CONFIDE_STRICT=1``.

``@pytest.mark.needs("R")`` on a test or as `pytestmark` of a file, ``need("R")`` in a fixture.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec

import pytest


def _server() -> str:
    return "" if os.environ.get("CONFIDE_POSTGRES") else "CONFIDE_POSTGRES names no server"


def _browser() -> str:
    return "" if chromium() else "no Chromium is installed (Debian: apt-get install chromium)"


def _r() -> str:
    return "" if shutil.which("Rscript") else "R is not installed (Debian: apt-get install r-base-core r-cran-jsonlite)"


def _spark() -> str:
    if find_spec("pyspark") is None:
        return "PySpark is not installed (450 MB); pip install 'confide[spark]' and a Java runtime"
    return "" if shutil.which("java") else "Spark needs a Java runtime"


#: By name: what says why it is missing, or nothing.
NEEDS: dict[str, Callable[[], str]] = {"PostgreSQL": _server, "a browser": _browser, "R": _r, "Spark": _spark}


def chromium() -> str | None:
    """The browser of the studio's tests."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def lacks(why: str) -> None:
    """Skip the test at hand; with ``CONFIDE_STRICT=1``, fail it."""
    __tracebackhide__ = True
    if os.environ.get("CONFIDE_STRICT") == "1":
        pytest.fail(f"CONFIDE_STRICT=1, and {why}")
    # a hook has no line of its own to tell
    raise pytest.skip.Exception(why, _use_item_location=True)


def need(name: str) -> None:
    """Where the machine lacks it, `lacks`."""
    __tracebackhide__ = True
    if why := NEEDS[name]():
        lacks(why)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture of a test that is marked."""
    __tracebackhide__ = True
    for mark in item.iter_markers("needs"):
        need(*mark.args)
