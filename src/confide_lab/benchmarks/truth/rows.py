"""From replications to a row of the truth table, and the rule by which a row fails (protocol.md 15)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from confide_lab.benchmarks.coverage import interval
from confide_lab.benchmarks.truth.runs import Cell, truth

__all__ = ["bar", "failing", "median_of", "row_of", "worst"]

Array = NDArray[np.float64]

#: What the interval without privacy may be ahead, and the most that is asked.
_MARGIN, _MOST = 0.03, 0.93
#: Fewer answers than this share of the replications are no case of the worst coefficient, only of the rule.
_SEEN = 0.1
#: From the width of a 95 % interval to a standard error.
_WIDTH = 2 * 1.959964


def row_of(cell: Cell, runs: pd.DataFrame) -> dict[str, Any]:
    """One row: shares of statuses and flags, and for each coefficient its coverage with a 99.9 % interval, that without privacy on the same
    samples, the medians of both widths, and the error's median in standard errors of the answer without privacy ("gap").
    """
    own = truth(cell.case, cell.method)
    hits, plain, widths, plain_widths, errors = (
        np.array([json.loads(text) for text in runs[name]], dtype=np.float64)
        for name in ("hits", "plain", "widths", "plain_widths", "errors")
    )
    answered = ~np.isnan(hits)
    status = runs["status"].value_counts(normalize=True)
    some = runs["flags"].fillna("")[answered.any(axis=1)]
    flags = pd.Series([flag for text in some for flag in text.split(",") if flag], dtype=object).value_counts()
    return {
        **cell._asdict(),
        "replications": len(runs),
        "status": {str(name): round(float(share), 4) for name, share in status.items()},
        "answered": round(float(answered.mean()), 4),
        "flagged": round(float((some != "").mean()), 4) if len(some) else None,
        "flags": {str(flag): int(count) for flag, count in flags.items()},
        "titled": own.titled,
        "coefficients": [
            _coefficient(name, hits[:, j], plain[:, j], widths[:, j], plain_widths[:, j], errors[:, j])
            for j, name in enumerate(own.names)
        ],
    }


def _coefficient(
    name: str, hits: Array, plain: Array, widths: Array, plain_widths: Array, errors: Array
) -> dict[str, Any]:
    seen = ~np.isnan(hits)
    both = seen & ~np.isnan(plain)
    found: dict[str, Any] = {"name": name, "answered": int(seen.sum())}
    if seen.any():
        found["coverage"], found["low"], found["high"] = (round(v, 4) for v in interval(hits[seen] > 0))
        found["width"] = _short(np.median(widths[seen]))
    if both.any():
        found["plain"] = round(float(plain[both].mean()), 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            found["ratio"] = _short(np.median(widths[both] / plain_widths[both]))
            found["gap"] = _short(np.median(errors[both]) / np.median(plain_widths[both]) * _WIDTH)
    known = ~np.isnan(plain)
    if known.any():
        found["plain_width"] = _short(np.median(plain_widths[known]))
    return found


def _short(value: Any) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def bar(coefficient: dict[str, Any]) -> float:
    """What coverage is asked: .93, or what the interval without privacy reaches on the same samples less .03."""
    return float(min(_MOST, coefficient.get("plain", 1.0) - _MARGIN))


def failing(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The coefficients whose 99.9 % Clopper-Pearson interval misses the bar from below."""
    return [one for one in row["coefficients"] if one["answered"] and one["high"] < bar(one)]


def worst(row: dict[str, Any]) -> dict[str, Any] | None:
    """The coefficient with the least coverage among those that are answered in a tenth of the runs."""
    least = max(1, _SEEN * row["replications"])
    seen = [one for one in row["coefficients"] if one["answered"] >= least]
    return min(seen, key=lambda one: (one["coverage"], one["high"]), default=None)


def median_of(row: dict[str, Any], what: str) -> float | None:
    """The median over the coefficients of a number that they have."""
    values = [one[what] for one in row["coefficients"] if one.get(what) is not None]
    return float(np.median(values)) if values else None
