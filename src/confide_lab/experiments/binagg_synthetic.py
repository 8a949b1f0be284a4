"""Table 3 of Lin, Slavkovic, Bhoomireddy 2025: learners trained on synthetic tables, tested on records that were left out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module, util
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide_lab.experiment import Block, Drawing, Experiment, Layout, Printed, Quantity
from confide_lab.experiments.binagg_simulated import PAPER
from confide_lab.experiments.measures import shared
from confide_lab.experiments.real_tables import case_of_table
from confide_lab.fits import Case, missing, mu_of, synthetic_literal

__all__ = ["SYNTHESISERS", "TABLE3", "synthetic_missing", "synthetic_table"]

Array = NDArray[np.float64]

_SETS = ("D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8")
SYNTHESISERS = {"aim": "AIM", "dpctgan": "DP-CTGAN", "patectgan": "PATE-CTGAN", "dpgan": "DPGAN", "pategan": "PATEGAN"}
_TITLES = {
    "original": "records (not private)",
    "mean": "mean only (not private)",
    "binagg_literal": "Algorithm 3 literal (NOT private)",
    "binagg_corrected": "Algorithm 3, corrected noise",
    "calibrated": "synthetic table, calibrated",
    **SYNTHESISERS,
}
#: dataset -> original, AIM, BinAgg, DP-CTGAN, PATE-CTGAN, DPGAN, PATEGAN as printed.
_PRINTED: dict[str, tuple[float | None, ...]] = {
    "D1": (0.286, 1.400, 0.939, 1.091, 1.344, 2.398, None),
    "D2": (1.073, 1.326, 1.015, 1.126, 1.054, 1.984, None),
    "D3": (0.875, 1.169, 2.208, 17.298, 4.325, 12.619, 8.789),
    "D4": (0.487, 0.898, 0.731, 1.289, 1.001, 3.522, 7.775),
    "D5": (0.033, 1.058, 0.677, 1.139, 1.000, 2.527, 2.241),
    "D6": (0.628, 0.908, 1.195, 1.381, 1.120, 2.008, 2.307),
    "D7": (0.489, 0.614, 0.584, 1.231, 1.039, 1.488, 1.753),
    "D8": (0.683, 1.079, 1.490, 1.727, 1.087, 2.395, 3.256),
}
_COLUMNS = ("original", "aim", "binagg_literal", "dpctgan", "patectgan", "dpgan", "pategan")


def measure_table3(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One split, one synthetic table: |y^ - y|^2/|y - mean|^2 on the records left out, for each learner and over all of them."""
    whole = case_of_table(at["dataset"], "paper")
    split = shared("binagg.table3", at)
    order = split.permutation(len(whole.frame))
    cut = round(0.8 * len(order))
    delta = float(len(order)) ** -1.1
    formula = whole.formula.replace("~ 0 + ", "~ ")
    train = Case(whole.frame.iloc[order[:cut]].reset_index(drop=True), whole.schema, formula, mu_of(1.0, delta))
    test = Case(whole.frame.iloc[order[cut:]].reset_index(drop=True), whole.schema, formula, train.mu)
    features = [str(name) for name in whole.frame if str(name) != _response(whole)]
    x_test, y_test = _numbers(test.frame, features), _numbers(test.frame, [_response(whole)])[:, 0]
    scale = float(((y_test - y_test.mean()) ** 2).sum())
    if at["method"] == "mean":
        loss = float(((y_test - train.y.mean()) ** 2).sum()) / scale
        return {"relmse": loss, "r2": 1 - loss, "rows": float(cut)}
    frame = synthetic_table(at["method"], train, generator)
    row: dict[str, float | str] = {"rows": float(len(frame))}
    if len(frame) < 10:
        return {**row, "relmse": np.nan, "r2": np.nan}
    x, y = _numbers(frame, features), _numbers(frame, [_response(whole)])[:, 0]
    losses = []
    for name, model in _learners(len(order), int(generator.integers(2**31))).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = float(((model.fit(x, y).predict(x_test) - y_test) ** 2).sum()) / scale
        row[f"relmse {name}"] = loss
        losses.append(loss)
    mean = float(np.mean(losses))
    return {**row, "relmse": mean, "r2": 1 - mean}


def synthetic_table(method: str, case: Case, generator: np.random.Generator) -> pd.DataFrame:
    """A synthetic table of the case by that method; "original" are the records."""
    if method == "original":
        return case.frame
    if method == "binagg_literal":
        return synthetic_literal(case, generator)
    seed = int(generator.integers(2**63))
    if method in SYNTHESISERS:
        made = import_module("confide_lab.smartnoise").smartnoise_table(
            case.frame,
            case.formula,
            schema=case.schema,
            privacy=cf.ApproxDP(1.0, case.delta),
            generator=method,
        )
        return pd.DataFrame(made.frame)
    maker = import_module("confide.synthesis").SyntheticTable(
        case.formula, generator="binagg" if method == "binagg_corrected" else "calibrated"
    )
    noise = cf.noise.SimulatedNoise(seed)
    release = cf.release(maker, case.source, cf.GDP(case.mu), ledger=None, noise=noise)
    return pd.DataFrame(maker.infer(release).frames[0])


def _response(case: Case) -> str:
    return case.design.response.columns[0]


def _numbers(frame: pd.DataFrame, names: list[str]) -> Array:
    found: Array = np.nan_to_num(frame[names].to_numpy(dtype=np.float64))
    return found


def _learners(n: int, seed: int) -> dict[str, Any]:
    """The learners of the paper that are installed, with the settings of their packages; features are standardised where a learner minds
    their scale, responses never are. XGBoost is an extra, networks need 500 records."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    made: dict[str, Any] = {
        "forest": RandomForestRegressor(random_state=seed, n_jobs=1),
        "svr": make_pipeline(StandardScaler(), SVR()),
    }
    if n >= 500:
        made["network"] = make_pipeline(StandardScaler(), MLPRegressor(random_state=seed))
    if util.find_spec("xgboost") is not None:
        made["xgboost"] = import_module("xgboost").XGBRegressor(random_state=seed, n_jobs=1)
    return made


def synthetic_missing(method: str) -> str | None:
    """Why a method cannot run here, or None."""
    if util.find_spec("sklearn") is None:
        return "scikit-learn is not installed: pip install confide[sklearn]"
    if method in SYNTHESISERS:
        return (
            None
            if util.find_spec("snsynth")
            else "smartnoise-synth is not installed: pip install 'confide-lab[smartnoise]'"
        )
    if method == "binagg_literal":
        return missing("binagg_literal")
    return None


TABLE3 = Experiment(
    "binagg.table3",
    "Learners on synthetic tables (Table 3)",
    (
        Block(
            "learners",
            {"dataset": _SETS},
            ("original", "mean", "binagg_literal", "binagg_corrected", "calibrated", *SYNTHESISERS),
            measure_table3,
            (
                Quantity("relmse", "mean", label="squared error over that of the mean, average of the learners"),
                Quantity("r2", "mean"),
                Quantity("relmse forest", "mean"),
                Quantity("relmse svr", "mean"),
                Quantity("relmse network", "mean"),
                Quantity("relmse xgboost", "mean"),
                Quantity("rows", "median"),
            ),
            replications=2,
            full=10,
            printed={
                # ten synthetic tables each; of the records themselves there is one table, and one split as far as the paper says
                (dataset, method, "relmse"): Printed(value, 3, 1 if method == "original" else 10)
                for dataset, row in _PRINTED.items()
                for method, value in zip(_COLUMNS, row, strict=True)
                if value is not None
            },
            titles=_TITLES,
            missing=synthetic_missing,
            layouts=(
                Layout(("dataset",), ("method",), {"method": _COLUMNS}, "relmse", "Table 3: average relative MSE"),
            ),
            drawing=Drawing(
                "dots", "dataset", "relmse", log="x", x_label="relative MSE, average of learners (cross: the paper)"
            ),
        ),
    ),
    sources=(f"{PAPER}, Table 3, section 5.2.2",),
    notes=(
        "epsilon = 1, delta = n^-1.1 with the exact n; 80 % of the records are used, 20 % are for the test; bounds from the records.",
        "Here relative MSE divides by |y - mean|^2: only so can the paper's numbers for the records themselves exceed 1.",
        "TUNED: responses are not standardised, which the paper leaves open: with standardised ones the column of the records is .018 for "
        "D1 and .014 for D5, where .286 and .033 are printed.",
        "XGBoost takes part where it is installed (pip install 'confide-lab[xgboost]'), the other generators with "
        "'confide-lab[smartnoise]'.",
    ),
)
