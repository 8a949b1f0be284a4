"""The gate between the wings: plan, charge and draw, read, verify."""

from __future__ import annotations

from confide.gate.planning import plan, precision
from confide.gate.reading import consistent, infer
from confide.gate.releasing import rehearsed, release
from confide.gate.terms import as_asked, as_charged
from confide.gate.verifying import Check, verify

__all__ = [
    "Check",
    "as_asked",
    "as_charged",
    "consistent",
    "infer",
    "plan",
    "precision",
    "rehearsed",
    "release",
    "verify",
]
