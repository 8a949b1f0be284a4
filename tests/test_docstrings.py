"""Every public callable has a numpydoc docstring: each parameter with a type, what is returned, an example that is tested."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import confide as cf
from confide import _docs

ROOMS = (
    cf, cf.tables, cf.tests, cf.regression, cf.intervals, cf.local, cf.ptr, cf.voting, cf.reduction, cf.curves,
    cf.classification, cf.synthesis, cf.results, cf.guarantees, cf.schema,
)  # fmt: skip
ELSEWHERE = re.compile(r"[Ee]rrors are (?:theirs|those of)|`settings` are those of")


def public() -> dict[str, Any]:
    """Public callables with a signature, by where they are found first."""
    found: dict[int, tuple[str, Any]] = {}
    for room in ROOMS:
        for name in getattr(room, "__all__", ()):
            thing = getattr(room, name)
            if isinstance(thing, ModuleType) or not callable(thing):
                continue
            try:
                inspect.signature(thing)
            except (TypeError, ValueError):
                continue
            found.setdefault(id(thing), (f"{room.__name__}.{name}", thing))
    return dict(found.values())


def faults(thing: Any) -> Iterator[str]:
    """What a docstring lacks."""
    doc = inspect.getdoc(thing) or ""
    names = [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    held, documented = _docs.sections(doc), _docs.parameters(doc)
    yield from (f"parameter {name} is not documented" for name in names if name not in documented)
    yield from (f"{name} is documented and not in the signature" for name in documented if name not in names)
    if not isinstance(thing, type) and "Returns" not in held and "Yields" not in held:
        yield "no section Returns"
    if ">>> " not in held.get("Examples", ""):
        yield "no section Examples with a tested example"
    first = doc.split("\n")[0]
    if not first.endswith(".") or len(first) > 79:
        yield "the first line is not one sentence of at most 79 characters"
    if ELSEWHERE.search(doc):
        yield "refers to another docstring instead of naming its parameters or errors"


@pytest.mark.parametrize("name", sorted(public()))
def test_a_public_callable_says_what_it_takes_and_gives(name: str) -> None:
    assert list(faults(public()[name])) == []


def test_what_a_docstring_lacks_is_found() -> None:
    def bare(x: int, y: int = 0) -> int:
        """Add two numbers

        Parameters
        ----------
        x : int
            One.
        z : int
            Another.
        """
        return x + y

    assert len(list(faults(bare))) == 5
