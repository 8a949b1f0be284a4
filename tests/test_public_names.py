"""The curated names of `import confide`: all there, none heavy until used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import confide as cf

STUBS = sorted(Path(cf.__file__).parent.glob("*.pyi"))
ROOMS = [stub.stem for stub in STUBS if not stub.with_suffix(".py").exists()]


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


@pytest.mark.parametrize("room", ROOMS)
def test_a_stub_alone_is_a_module_with_the_names_that_it_makes_public(room: str) -> None:
    module = import_module(f"confide.{room}")
    assert getattr(cf, room) is module and module.__all__ == dir(module)
    for name in module.__all__:
        assert getattr(module, name) is getattr(module, name) is not None
    assert str(module.__doc__).endswith((".", ".\n"))
    with pytest.raises(AttributeError, match=f"module 'confide.{room}' has no attribute 'nothing_of_this_name'"):
        _ = module.nothing_of_this_name


def test_what_a_stub_only_mentions_is_no_name_of_the_module() -> None:
    assert "one_call" in (Path(cf.__file__).parent / "tables.pyi").read_text()
    assert not hasattr(cf.tables, "one_call") and not hasattr(cf.tables, "CountTable")


def test_a_room_is_there_before_anything_of_it_is_used() -> None:
    code = "from confide.regression import LeastSquares; import confide.curves; print(LeastSquares.name, confide.curves.Kernel.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["least_squares", "kernel"]
