"""The curated names of `import confide`: all there, none heavy until used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import confide as cf


@pytest.mark.parametrize("name", cf.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(cf, name) is not None
    assert name in dir(cf)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Scheme'"):
        _ = cf.Scheme


def test_importing_confide_loads_no_heavy_library() -> None:
    code = "import sys, confide; print([m for m in ('pandas', 'scipy', 'polars', 'sqlalchemy', 'sklearn') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
