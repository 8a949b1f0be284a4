"""Cases of a test that stand for the others in `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], *kept: int | str) -> list[Any]:
    """All cases of a test: those at the places kept, or of these names, run always; the others with the long tests.

    A tuple holds the arguments of one case, so that the one argument that is a tuple stands in another.
    """
    made, left = [], set(kept)
    for place, case in enumerate(cases):
        marks = list(getattr(case, "marks", ()))
        values = case.values if hasattr(case, "marks") else case if isinstance(case, tuple) else (case,)
        known = {place, case} & set(kept) if isinstance(case, str) else {place} & set(kept)
        made.append(
            pytest.param(*values, marks=marks if known else [*marks, pytest.mark.long], id=getattr(case, "id", None))
        )
        left -= known
    assert not left, f"no such cases: {left}"
    return made
