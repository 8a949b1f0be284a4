"""Audit a function that adds its own noise, on two inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.searches.sensitivity import answer
from confide.audit.verdict import Audit
from confide.guarantees import ApproxDP, PureDP

__all__ = ["audit_function"]


def audit_function(
    target: Callable[..., Any],
    data: Any,
    neighbour: Any,
    claim: Any,
    runs: int,
    confidence: float,
    relation: str | None,
    delta: float | None,
    vectorised: bool,
) -> Audit:
    """A row for each quantity that the claim bounds; remarks where the question itself looks wrong.

    >>> audit_function(lambda x: x.sum(), np.zeros(2), np.ones(2), PureDP(1.0), 200, 0.99, None, None, False).ok
    False
    """
    name = getattr(target, "__name__", "mechanism")
    shared: dict[str, Any] = {"runs": runs, "claim": claim, "vectorised": vectorised, "relation": relation}
    in_epsilon = isinstance(claim, PureDP | ApproxDP)
    both = claim is None
    found = []
    if both:
        confidence = 1 - (1 - confidence) / 2
    if both or not in_epsilon:
        found.append(mu_lower_bound(target, data, neighbour, confidence=confidence, name=name, **shared))
    if both or in_epsilon:
        found.append(
            epsilon_lower_bound(target, data, neighbour, confidence=confidence, delta=delta, name=name, **shared)
        )
    remarks = [
        *_unlike(data, neighbour),
        *([] if vectorised or not any(f.violated for f in found) else _noiseless(target, data)),
    ]
    if remarks:
        found = [replace(f, note="; ".join([*filter(None, [f.note]), *remarks])) for f in found]
    return Audit(tuple(found), title=f"audit of {name}")


def _unlike(data: Any, neighbour: Any) -> list[str]:
    """A remark where two arrays of one length differ in several records: no neighbours, so that a claim may seem violated."""
    if (
        not all(isinstance(one, np.ndarray) for one in (data, neighbour))
        or data.shape != neighbour.shape
        or not data.ndim
    ):
        return []
    differ = int((data != neighbour).reshape(len(data), -1).any(axis=1).sum())
    return [f"the inputs differ in {differ} records; neighbours differ in one"] if differ > 1 else []


def _noiseless(target: Callable[..., Any], data: Any) -> list[str]:
    """A remark where a function says the same each time."""
    said = {repr(answer(target, data)) for _ in range(8)}
    return ["eight runs on the same data gave one answer: is there any noise in it?"] if len(said) == 1 else []
