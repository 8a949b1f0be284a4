"""Table 2 of Lin, Slavkovic, Bhoomireddy 2025: prediction on real records, as the paper has it and with public bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from confide_lab.experiment import Block, Check, Drawing, Experiment, Layout, Printed, Quantity, Record
from confide_lab.experiments.binagg_simulated import PAPER
from confide_lab.experiments.binagg_tuning import FEWER_BINS, MU_BIN, OPEN, of_letter, tree_share
from confide_lab.experiments.measures import against_records, covered
from confide_lab.experiments.real_tables import PAPER_SETS, PUBLIC_SETS, case_of_table
from confide_lab.fits import METHODS, binagg_literal, fit, least_squares, missing
from confide_lab.judging import told
from confide_lab.layouts import RESTORED

__all__ = ["JUDGED", "TABLE2", "measure_public", "public_block"]

#: dataset -> relative MSE of OLS, BinAgg, AdaSSP, DP-GD as printed.
_PRINTED = {
    "D1": (0.038, 0.095, 0.690, 0.677),
    "D2": (0.084, 0.151, 0.229, 0.102),
    "D3": (0.023, 0.035, 0.669, 0.693),
    "D4": (0.044, 0.059, 0.082, 0.059),
    "D5": (0.011, 0.016, 0.080, 0.062),
    "D6": (0.016, 0.022, 0.203, 0.120),
    "D7": (0.441, 0.463, 0.682, 0.852),
    "D8": (0.438, 0.507, 0.500, 0.546),
    "D9": (0.131, 0.203, 0.429, 0.420),
}
_COLUMNS = ("ols", "binagg_literal", "adassp_literal", "dp_gd_search")


def measure_paper(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One cell as the paper has it: no intercept, bounds from the records, predictions as they come."""
    case = case_of_table(at["dataset"], "paper")
    if at["method"] == "binagg_literal":
        found = binagg_literal(case, generator, tree_share=tree_share(float(at["mu_bin"])))
    else:
        found = fit(at["method"], case, generator)
    return {**against_records(found, case), **covered(found, least_squares(case, generator).beta)}


def measure_public(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One cell with public bounds and an intercept; predictions are moved into the bounds of y."""
    case = case_of_table(at["dataset"], "public")
    found = fit(at["method"], case, generator)
    return {**against_records(found, case, clip=True), **covered(found, least_squares(case, generator).beta)}


_PAPER_QUANTITIES = (
    Quantity("relmse", "mean", label="relative MSE"),
    Quantity("relmse (median)", "median", of="relmse"),
    Quantity("r2", "mean", label="R squared"),
)

_PAPER_BLOCK = Block(
    "paper",
    {"dataset": PAPER_SETS, "mu_bin": (MU_BIN, FEWER_BINS)},
    (*_COLUMNS[:1], "mean", *_COLUMNS[1:], "binagg", "ssp", "ssp2", "ssp2_prediction"),
    measure_paper,
    _PAPER_QUANTITIES,
    replications=10,
    full=100,
    printed={
        (dataset, mu_bin, method, "relmse"): (
            # the sample at hand is a fifth of D9; all others reproduce to the digits printed
            Printed(value, 3) if method == "ols" else Printed(value, 3, 100)
        )
        for dataset, row in _PRINTED.items()
        for method, value in zip(_COLUMNS, row, strict=True)
        for mu_bin in ((MU_BIN, FEWER_BINS) if method == "binagg_literal" else (MU_BIN,))
    },
    title="Relative MSE as in the paper: no intercept, bounds from the records (NOT private), mu = 1",
    fewer={"dp_gd_search": 2, "ols": 1, "mean": 1},
    missing=missing,
    exact=("ols", "mean"),
    without=of_letter,
    open_settings=OPEN,
    layouts=(
        Layout(("dataset",), ("method",), {"method": _COLUMNS, "mu_bin": (MU_BIN,)}, "relmse", "Table 2: relative MSE"),
        Layout(
            ("dataset",),
            ("method",),
            {"method": ("binagg_literal",), "mu_bin": (FEWER_BINS,)},
            "relmse",
            f"Table 2, mu_bin = {FEWER_BINS:g}",
            RESTORED,
        ),
    ),
    drawing=Drawing(
        "dots", "dataset", "relmse", log="x", x_label="relative MSE (cross: the paper)", limits=(0.008, 30)
    ),
)

JUDGED = (
    "ols",
    "mean",
    "ssp2_prediction",
    "ssp2",
    "ssp",
    "ssp_recentred",
    "adassp",
    "adassp_literal",
    "boosted_adassp",
    "gradient_descent",
    "ssp_cgd",
    "ssp_cgd2",
    "binagg",
    "binagg_literal",
)
_LOSS = Quantity("loss", "median", label="1 - R squared")


def judge(records: Sequence[Record]) -> list[Check]:
    """SSP2 prediction against every other private method (ties within two standard errors), and against least squares.

    The second one is asked for where n >= 4000 and d <= 27: within 10 %.
    """
    losses = {
        (r["setting"]["dataset"], r["method"]): r for r in records if r["quantity"] == "loss" and r["value"] is not None
    }
    rivals = [
        m
        for m in JUDGED
        if m in METHODS and METHODS[m].kind != "not private" and m not in ("ssp2_prediction", "binagg_literal")
    ]
    found = []
    for dataset in dict.fromkeys(name for name, _ in losses):
        ours = losses.get((dataset, "ssp2_prediction"))
        if ours is None:
            continue
        there = [losses[dataset, m] for m in rivals if (dataset, m) in losses]
        if there:
            beaten = [
                r
                for r in there
                if ours["value"] > r["value"] + 2 * sqrt((ours["error"] or 0) ** 2 + (r["error"] or 0) ** 2)
            ]
            best = min(there, key=lambda r: float(r["value"]))
            text = f"{ours['value']:.4g} against {best['value']:.4g} ({best['method']})" + (
                f"; above {', '.join(r['method'] for r in beaten)}" if beaten else ""
            )
            runs = min(r["replications"] for r in (ours, *there) if r["method"] not in ("ols", "mean"))
            found.append(told(f"{dataset}: the default is at or below every rival", not beaten, text, runs=runs))
        ols = losses.get((dataset, "ols"))
        if ols is not None:
            case = case_of_table(dataset, "public")
            n, d = case.x.shape
            asked = n >= 4000 and d <= 27
            near = ours["value"] <= 1.1 * ols["value"]
            name = f"{dataset}: within 10 % of least squares" + ("" if asked else " (not asked for)")
            text = f"{ours['value'] / ols['value']:.3f} times, n = {n}, d = {d}"
            found.append(told(name, near if asked or near else None, text, runs=ours["replications"]))
    return found


def public_block(name: str, methods: tuple[str, ...], replications: int) -> Block:
    """The comparison with public bounds on all sets."""
    return Block(
        name,
        {"dataset": PUBLIC_SETS},
        methods,
        measure_public,
        (
            _LOSS,
            Quantity("relmse", "median"),
            Quantity("covered", "mean", label="share of least squares' slopes inside the intervals"),
            Quantity("interval", "mean"),
            Quantity("ok", "mean", label='status "valid"'),
        ),
        replications=replications,
        title="1 - R squared with public bounds and an intercept, predictions moved into the bounds of y, mu = 1",
        fewer={"ols": 1, "mean": 1},
        exact=("ols", "mean"),
        missing=missing,
        checks=judge,
        drawing=Drawing("dots", "dataset", "loss", log="x", x_label="1 - R squared", limits=(0.05, 10)),
    )


TABLE2 = Experiment(
    "binagg.table2",
    "Prediction on real records (Table 2)",
    (_PAPER_BLOCK, public_block("public", JUDGED, 10)),
    sources=(f"{PAPER}, Table 2, section 5.2.1 and appendix A",),
    notes=(
        "Targets were found by reproducing the column of OLS: the selector of D2 is a split label, the price of D3 an input, the missing "
        "code -200 of D7 a measurement, and D8 has two columns of random numbers. D9 is a sample of 4252 of the 21263 records.",
        "Relative MSE divides by |y|^2, so that the mean alone does well where y is far from 0: the row of the mean and R squared say "
        "what a number is worth.",
        "The paper's block uses the smallest and largest values of the records as bounds; nothing of it is private. BinAgg literal is "
        "sqrt((1 + 9 + 9 d + 9)/28)-GDP where it claims 1: 5.2 at d = 81. The settings of DP-GD are the best of 455 on the records.",
        "The constants of SSP2 were chosen while 13 of the first 16 sets were looked at; yacht, california and adult were not.",
    ),
)
