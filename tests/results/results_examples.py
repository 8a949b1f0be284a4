"""A regression's worth of estimates to look at, made without any release."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from confide.guarantees import GDP, ApproxDP
from confide.results import Estimates

NAMES = ("Intercept", "age", "educ", "age:educ", "region[T.South]")
SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

Maker = Callable[..., Estimates]


def build(**changes: Any) -> Estimates:
    names = changes.get("names", NAMES)
    p = len(names)
    factor = np.random.default_rng(20).normal(size=(p + 30, p))
    covariance = factor.T @ factor / 1e4
    status = changes.get("status", "valid")
    answered = {"valid": p, "partial": p - 1}.get(status, 0)
    covariance[answered:], covariance[:, answered:] = nan, nan
    estimates = np.linspace(-0.2, 0.3, p)
    if status == "partial":
        estimates[answered:] = nan
    fields: dict[str, Any] = {
        "method": "ssp 1",
        "response": "y",
        "names": names,
        "estimates": estimates,
        "covariance": covariance,
        "df": 241.7,
        "noise_variance": np.diag(covariance) * np.linspace(0.1, 0.9, p),
        "status": status,
        "reason": "" if status == "valid" else "the smallest eigenvalue lies below its noise",
        "flags": (),
        "requested": ApproxDP(1.0, 1e-6, relation="add-remove"),
        "guarantee": GDP(0.25, relation="add-remove"),
        "target": "coefficients of the weighted linear projection",
        "intervals_for": "sampling of the records and privacy noise",
        "release_sha256": SHA,
        "facts": (("Cov. type", "robust"),),
    }
    return Estimates(**(fields | changes))
