"""What the experiments measure: errors, coverage and losses of a fitted line, on data that all methods of a cell share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.designs import Truth
from confide_lab.fits import Case, Fitted
from confide_lab.runner import seed_of

__all__ = ["against_records", "against_truth", "covered", "shared"]

Array = NDArray[np.float64]


def shared(salt: str, at: Mapping[str, Any]) -> np.random.Generator:
    """The generator of a cell's records: the same for every method, so that methods are compared on the same data.

    >>> one, two = ({"n": 5, "method": m, "replication": 3} for m in ("a", "b"))
    >>> bool(shared("x", one).random() == shared("x", two).random())
    True
    """
    settings = {name: value for name, value in at.items() if name not in ("method", "replication")}
    return np.random.default_rng(seed_of(f"{salt} records", settings, at["replication"]))


def against_truth(found: Fitted, case: Case, truth: Truth) -> dict[str, float | str]:
    """distance: |b - beta|/|beta|; relmse, r2 on the records; covered: share of slopes inside their intervals; ok: status "valid"."""
    return {
        "distance": float(np.linalg.norm(found.beta - truth.beta) / np.linalg.norm(truth.beta)),
        **against_records(found, case),
        **covered(found, truth.beta),
    }


def against_records(found: Fitted, case: Case, *, clip: bool = False) -> dict[str, float | str]:
    """relmse: |y^ - y|^2/|y|^2; loss: |y^ - y|^2/|y - mean|^2 = 1 - R^2, of predictions moved into the bounds of y if `clip`."""
    y = case.y
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = found.predict(case.x)
        if clip:
            predicted = np.clip(predicted, *case.y_bounds)
        squared = float(((predicted - y) ** 2).sum())
    centred = float(((y - y.mean()) ** 2).sum())
    return {
        "relmse": squared / float(y @ y),
        "loss": squared / centred,
        "r2": 1 - squared / centred,
        "status": found.status,
    }


def covered(found: Fitted, target: Array) -> dict[str, float | str]:
    """covered: share of slopes inside their intervals (NaN without any); interval: whether there is one; ok: status "valid"."""
    there = found.low is not None and found.high is not None
    inside = np.nan
    if found.low is not None and found.high is not None:
        inside = float(np.mean((found.low <= target) & (target <= found.high)))
    return {"covered": inside, "interval": float(there), "ok": float(found.status == "valid")}
