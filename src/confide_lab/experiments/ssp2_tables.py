"""SSP2 on real records: loss on the whole table, and bootstrap samples with the full table as the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide_lab.experiment import Block, Check, Experiment, Quantity, Record
from confide_lab.experiments.binagg_tables import public_block
from confide_lab.experiments.measures import covered, shared
from confide_lab.experiments.real_tables import case_of_table, resampled
from confide_lab.fits import fit, least_squares, missing
from confide_lab.judging import covers
from confide_lab.projection import fitted_with_projection

__all__ = ["BOOTSTRAP", "TABLES"]

Array = NDArray[np.float64]

_ROWS = (
    "bike mu=1", "bike mu=0.3", "elevators mu=1", "elevators mu=0.3", "D3 mu=0.3", "concrete mu=0.3", "airfoil mu=0.3", "yacht mu=0.3",
    "energy mu=0.3", "D2 mu=0.3",
)  # fmt: skip


def measure_bootstrap(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One bootstrap sample. excess: loss on the full table over that of its least-squares line, over |y - mean|^2; covered: slopes of
    that line inside the intervals; own: those of the line with the released weights, fitted to the full table."""
    name, _, mu = at["row"].partition(" mu=")
    whole = case_of_table(name, "public", float(mu))
    sample = resampled(whole, shared("ssp2.bootstrap", at))
    truth = least_squares(whole, generator)
    if at["method"] in ("ssp2", "ssp2_bound"):
        found, own = fitted_with_projection(
            sample, whole, generator, slope_bound=None if at["method"] == "ssp2" else 2.0
        )
    else:
        found, own = fit(at["method"], sample, generator), None
    y = whole.y
    scale = float(((y - y.mean()) ** 2).sum())
    with np.errstate(over="ignore", invalid="ignore"):
        loss = float(((np.clip(found.predict(whole.x), *whole.y_bounds) - y) ** 2).sum())
    least = float(((np.clip(truth.predict(whole.x), *whole.y_bounds) - y) ** 2).sum())
    row: dict[str, float | str] = {"excess": (loss - least) / scale, **covered(found, truth.beta)}
    if own is not None:
        row["own"] = covered(found, own)["covered"]
    return row


def _accept(records: Sequence[Record]) -> list[Check]:
    found = []
    for r in records:
        row = r["setting"]["row"]
        if r["method"] == "ssp2" and r["quantity"] == "own" and r["value"] is not None:
            found.append(covers(f"{row}: coverage of the declared line", r, 0.90))
        if r["method"] == "ssp2" and r["quantity"] == "covered" and row == "bike mu=1" and r["value"] is not None:
            found.append(covers("bike mu=1: coverage of least squares", r, 0.85))
    return found


TABLES = Experiment(
    "ssp2.tables",
    "SSP2's robust line on real records with public bounds",
    (public_block("losses", ("ols", "mean", "ssp2_prediction", "ssp2", "ssp", "ssp_recentred"), 10),),
    sources=("no paper",),
    notes=("mu = 1, predictions moved into the bounds of y, medians over seeds; binagg.table2 has the rivals.",),
)

BOOTSTRAP = Experiment(
    "ssp2.bootstrap",
    "SSP2's robust line on bootstrap samples of real records",
    (
        Block(
            "rows",
            {"row": _ROWS},
            ("mean", "ssp2", "ssp2_prediction", "ssp_recentred", "gradient_descent", "adassp", "boosted_adassp"),
            measure_bootstrap,
            (
                Quantity("excess", "median", label="loss above least squares"),
                Quantity("covered", "mean", label="least squares of the full table covered"),
                Quantity("own", "mean", label="declared line of the full table covered"),
                Quantity("interval", "mean"),
                Quantity("ok", "mean"),
            ),
            replications=5,
            missing=missing,
            checks=_accept,
        ),
    ),
    sources=("no paper",),
    notes=(
        "The truth is the full table; sampling is counted. The declared line is least squares with the released weights.",
        "With fewer than 30 p/mu records there is no interval without a declared bound on the slopes.",
    ),
)
