"""Plan, charge, draw, read, verify: what stands between the records and what is published."""

from __future__ import annotations

from confide.engine.planning import as_asked, as_charged, margins_by_cost, plan
from confide.engine.reading import Check, consistent, infer, verify
from confide.engine.releasing import asking, rehearsed, release

__all__ = [
    "Check",
    "as_asked",
    "as_charged",
    "asking",
    "consistent",
    "infer",
    "margins_by_cost",
    "plan",
    "rehearsed",
    "release",
    "verify",
]
