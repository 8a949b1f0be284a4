"""Loading at first use, in one place: names of a package, whole libraries, and a part of a library without the rest of it.

`confide --version` must not wait for NumPy, nor a schema's check for pandas. Type checkers read the ordinary imports that stand beside
each use under TYPE_CHECKING.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any

__all__ = ["later", "names", "opened"]


def names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """(`__getattr__`, `__dir__`) of a package whose public names are loaded when first asked for.

    homes: public name -> the module that it stands in; a module that ends with the name is the module itself.

    >>> fetch, listed = names("confide", {"GDP": "confide.guarantees"})
    >>> fetch("GDP").__name__, "GDP" in listed()
    ('GDP', True)
    """

    def fetch(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        found = import_module(home)
        value = found if home.endswith(f".{name}") and not hasattr(found, name) else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch, lambda: sorted(homes)


class _Later:
    """A library that is loaded when one of its names is first read."""

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__dict__["__name__"]), name)


def later(name: str) -> Any:
    """Stands for the module `name`, which is loaded when one of its names is first read.

    >>> later("json").dumps([1])
    '[1]'
    """
    return sys.modules.get(name) or _Later(name)


_whole = threading.RLock()


def opened(package: str) -> None:
    """Make modules of `package` importable before its own `__init__`, which then runs when one of its names is first asked for.

    For a package of which a small part is wanted and whose `__init__` loads far more. Nobody who imports the package sees a difference.

    >>> opened("formulaic")
    >>> import formulaic
    >>> formulaic.Formula("y ~ a").lhs
    y
    """
    if package in sys.modules:
        return
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    module, loader, waiting = module_from_spec(spec), spec.loader, [True]

    def complete(name: str) -> Any:
        with _whole:
            if waiting and not name.startswith("__path"):
                waiting.clear()
                loader.exec_module(module)
        if name in vars(module):
            return vars(module)[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = complete
    sys.modules[package] = module
