"""Cases of a test that stand for the others in `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *kept: int | str) -> list[Any]:
    """All cases of a test: those at the places kept, or of these names, run always; the others with the long tests."""
    made = []
    for place, case in enumerate(cases):
        name = case if isinstance(case, str) else getattr(case, "id", None)
        if place in kept or name in kept:
            made.append(case)
        elif hasattr(case, "marks"):
            made.append(pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id))
        else:
            values = case if isinstance(case, tuple) else (case,)
            made.append(pytest.param(*values, marks=pytest.mark.long))
    known = {case for case in cases if isinstance(case, str)} if isinstance(cases, (list, tuple)) else kept
    assert all(isinstance(one, int) or one in known for one in kept), kept
    return made
