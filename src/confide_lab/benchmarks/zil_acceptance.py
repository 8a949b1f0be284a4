"""Acceptance of corrected losses in the settings of Lu, Chen, Qiu 2026: errors of the methods side by side, and the raw sample beside each.

Errors of Tables 2 and 3 are root mean squares over replications of `confide lab run zil.table2` and `zil.table3`, by the same functions and
records; those of Table 1 are exact. Further checks of the same page are tests: closed forms, calibration, compositions, coverage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import inf, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide.local.fits.fitting import FIRM, fitted
from confide.local.fits.losses import Logistic, Rows, Squared
from confide_lab.benchmarks.acceptance import _row
from confide_lab.experiments.local_coverage import truncated_normal
from confide_lab.experiments.zil_regressions import logistic, median
from confide_lab.published.zil import exact_rmse, protected

__all__ = ["floors", "log_odds", "medians", "null_slopes", "run"]

Array = NDArray[np.float64]
Row = dict[str, Any]

#: Replications of Table 2 and of Table 3.
REPLICATIONS = int(os.environ.get("CONFIDE_ZIL_REPS", "200"))
MEDIANS = int(os.environ.get("CONFIDE_ZIL_MEDIANS", "60"))
_NORMAL = 1.959964
_NAMES = tuple(f"x{j}" for j in range(6))


def _errors(one: Callable[..., Mapping[str, float]], at: Mapping[str, Any], reps: int) -> tuple[float, float, float]:
    """(root mean square error of the slopes, its standard error, share of fits with an interior minimum)."""
    runs = [one({**at, "replication": r}, np.random.default_rng([r, 7])) for r in range(reps)]
    squares = np.array([np.square(run["slopes"]) for run in runs])
    squares = squares[np.isfinite(squares)]
    rms = sqrt(float(squares.mean()))
    return (
        rms,
        float(squares.std(ddof=1)) / sqrt(len(squares)) / (2 * rms),
        float(np.mean([r["identified"] for r in runs])),
    )


def log_odds() -> list[Row]:
    """A5: Table 2 with terms within .5, noise sd .5, n = 5,000."""
    bands = {
        "oracle": (0.099, 0.111),
        "naive": (0.718, 0.738),
        "SL": (0.248, 0.288),
        "SDR": (0.224, 0.254),
        "DR": (0.44, 0.56),
    }
    rows, sdr = [], inf
    for method in (*bands, "RB"):
        at = {"half": 0.5, "lam": 0.5, "n": 5000, "method": method}
        rms, error, share = _errors(logistic, at, REPLICATIONS)
        sdr = rms if method == "SDR" else sdr
        low, high = bands.get(method, (0.0, sdr + 0.005))
        rows.append(_row(f"A5 slopes of Table 2, {method}", rms, low, high, se=round(error, 4), identified=share))
    return rows


def medians() -> list[Row]:
    """A6: Table 3 at n = 2,500."""
    rows = []
    for lam, naive in ((2.0, 0.912), (2.5, 0.943)):
        found = {
            method: _errors(median, {"lam": lam, "n": 2500, "method": method}, MEDIANS)
            for method in ("naive", "DR", "RB")
        }
        at = f"A6 slopes of Table 3, lam={lam}, n=2500"
        rms, error, _ = found["naive"]
        rows.append(_row(f"{at}, naive", rms, naive - 0.004, naive + 0.004, se=round(error, 4)))
        (rb, rb_error, rb_share), (dr, dr_error, dr_share) = found["RB"], found["DR"]
        spread = rb / dr * sqrt((rb_error / rb) ** 2 + (dr_error / dr) ** 2)
        rows.append(
            _row(
                f"{at}, RB over DR",
                rb / dr,
                0.0,
                0.7,
                se=round(spread, 3),
                RB=round(rb, 3),
                DR=round(dr, 3),
                identified=(rb_share, dr_share),
            )
        )
    return rows


def floors() -> list[Row]:
    """A9: in every setting of the paper DR errs more than a raw sample that promises as much, and the plan says so."""
    rows = []
    for lam, zeta in ((0.94, 0.1), (1.4, 0.05), (1.2, 0.05)):
        told = cf.local.plan(_schema(1, 0.5), ["x0"], noise=lam, zeta=zeta, accept_verbatim_rows=True).lines()
        for h in ("ReLU", "indicator", "sine"):
            ratio = exact_rmse("DR", h, lam, zeta, 500) / (exact_rmse("oracle", h, lam, zeta, 500) / sqrt(zeta))
            rows.append(_floor(f"Table 1, lam={lam}, {h}", ratio, told))
    for half, lam in ((1.0, 0.5), (1.0, 1.0), (0.5, 0.5), (0.5, 1.0)):
        rows.append(_floor(f"Table 2, lam={lam}, terms within {half}", *_outlook(half, lam, "logistic", 5000)))
    for lam in (1.0, 2.0, 2.5):
        rows.append(_floor(f"Table 3, lam={lam}", *_outlook(1.0, lam, "absolute", 2500)))
    return rows


def _floor(where: str, ratio: float, told: tuple[str, ...]) -> Row:
    said = any("a raw sample of" in line and "has at least this guarantee" in line for line in told)
    return _row(f"A9 {where}: error of DR over that of a raw sample", ratio if said else -inf, 1.0, inf)


def _schema(d: int, half: float) -> cf.Schema:
    terms = {name: cf.Numeric(-half, half, on_missing=0) for name in _NAMES[:d]}
    return cf.Schema({**terms, "y": cf.Numeric(-50, 50)}, dataset="planned")


def _outlook(half: float, lam: float, loss: str, n: int) -> tuple[float, tuple[str, ...]]:
    """Standard error of DR over that of the raw sample, mean over slopes, as the plan expects them; and what the plan says."""
    generator = np.random.default_rng(1)
    x = truncated_normal(generator, (n, 6), half)
    line = x.sum(axis=1)
    y = 1 + line + generator.standard_normal(n) if loss == "absolute" else generator.random(n) < 1 / (1 + np.exp(-line))
    plan = cf.local.plan(
        _schema(6, half),
        list(_NAMES),
        public=["y"],
        noise=lam / (2 * half),
        zeta=0.2,
        accept_verbatim_rows=True,
        level="attribute",
        formula=f"y ~ {' + '.join(_NAMES)}",
        loss=loss,
        n=n,
        practice=pd.DataFrame({**dict(zip(_NAMES, x.T, strict=True)), "y": np.asarray(y, dtype=float)}),
    )
    assert plan.outlook is not None
    frame = plan.outlook.frame[list(_NAMES)].mean(axis=1)
    dr, raw = (next(frame[name] for name in frame.index if name.startswith(start)) for start in ("DR,", "raw sample"))
    return float(dr / raw), plan.lines()


def null_slopes() -> list[Row]:
    """Wald's test of a slope that is 0, at .05; 1,000 tables of 2,000 records, two terms within 1 with noise of sd .5."""
    rows, n = [], 2000
    for loss, method in ((Squared(), "SL"), (Squared(), "RB"), (Logistic(), "SL"), (Logistic(), "RB")):
        generator, zeta = np.random.default_rng(11), 0.2 if method == "RB" else 0.0
        rejected = []
        for _ in range(1000):
            x = truncated_normal(generator, (n, 2), 1.0)
            if isinstance(loss, Logistic):
                y = (generator.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
            else:
                y = x[:, 0] + generator.standard_normal(n)
            done = fitted(loss, method, Rows(protected(x, 0.5, zeta, generator)[0], y, np.full(2, 0.5), 0.0, zeta))
            if done.identified and done.firm >= FIRM:
                rejected.append(abs(done.theta[1]) > _NORMAL * sqrt(done.covariance[1, 1]))
        share = float(np.mean(rejected))
        rows.append(_row(f"false alarms at .05, {loss.name} by {method}", share, 0.03, 0.07, answered=len(rejected)))
    return rows


def run() -> list[Row]:
    """All, by `confide lab bench zil_acceptance`."""
    return [*floors(), *null_slopes(), *log_odds(), *medians()]
