"""Figure 1 of Shen, Tong, Wang 2026 (Bayes classification by efficient propose-test-release), and intervals of class means and shares.

The settings that the paper leaves out are those of its authors' code: c0 = .04, epsilon = 1.5 where n and the least share vary, c0 = half
of the least share where that varies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import confide as cf
from confide.classification import ClassMeans, ClassModel, EfficientPTRBayes
from confide_lab.experiment import Block, Check, Drawing, Experiment, Quantity, Record
from confide_lab.experiments.eptr_classes import METHODS, TITLES, ClassCase, balanced_error, classified
from confide_lab.experiments.measures import shared
from confide_lab.judging import below

__all__ = ["FIGURE1", "INTERVALS", "PAPER"]

PAPER = "Shen, Tong, Wang 2026, Efficient Propose-Test-Release for Optimal Differentially Private Estimation"
Array = NDArray[np.float64]

_MEANS = 3 * np.eye(3, 10)
_DELTA, _BOUND, _TEST = 0.01, 8.0, 10_000  # records of each class in the test set

# simulated ------------------------------------------------------------------------------------------------------------


def simulated(n: int, epsilon: float, least: float, generator: np.random.Generator) -> tuple[ClassCase, Array]:
    """A case and the shares of its classes. least: the least share, 0 for the shares (.75, .15, .10) of the first two panels."""
    shares = np.array([0.7 - least, 0.3, least]) if least else np.array([0.75, 0.15, 0.10])
    y = generator.choice(3, n, p=shares)
    x = _MEANS[y] + generator.standard_normal((n, 10))
    return ClassCase(x, y, 3, _BOUND, least / 2 if least else 0.04, epsilon, _DELTA), shares


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One cell of the upper row of Figure 1. balanced: the error; distance: squared, of shares and means together."""
    draw = shared("eptr.figure1", at)
    case, shares = simulated(int(at.get("n", 5000)), float(at.get("epsilon", 1.5)), float(at.get("least", 0.0)), draw)
    found = classified(at["method"], case, generator)
    y = np.repeat(np.arange(3), _TEST)
    x = _MEANS[y] + draw.standard_normal((len(y), 10))
    distance = float(((found.shares - shares) ** 2).sum() + ((found.means - _MEANS) ** 2).sum())
    return {"balanced": balanced_error(found, x, y), "distance": distance, "reply": float(found.replied)}


_SHOWN = (
    Quantity("error", "mean", of="balanced", label="balanced error"),
    Quantity("distance", "mean", label="squared error of shares and means"),
    Quantity("reply", "mean", label="share of runs with a reply"),
)


def _checks(records: Sequence[Record]) -> list[Check]:
    """Orders of the errors, in every setting of a block."""
    errors = {(str(row["setting"]), row["method"]): row for row in records if row["quantity"] == "error"}
    found = []
    for better, worse, name in (
        ("naive_bayes", "eptr_literal", "DPNB, correctly built and pure, beats the paper's ePTR"),
        ("class_sums", "eptr", "class sums beat the corrected ePTR"),
        ("eptr", "eptr_literal", "the corrected ePTR beats the paper's"),
        ("eptr_literal", "dpnb_literal", "the paper's order: ePTR before DPNB as compared"),
    ):
        settings = [setting for setting, method in errors if method == better and (setting, worse) in errors]
        states = [below(name, errors[setting, better], errors[setting, worse]).ok for setting in settings]
        if states:
            holds, fails = states.count(True), states.count(False)
            text = f"in {holds} of {len(states)} settings, {fails} the other way, {states.count(None)} open"
            found.append(Check(name, False if fails else holds == len(states) or None, text))
    return found


def _block(name: str, setting: str, values: tuple[float, ...], title: str, x: str) -> Block:
    return Block(
        name,
        {setting: values},
        tuple(METHODS),
        measure,
        _SHOWN,
        replications=40,
        full=500,
        title=title,
        checks=_checks,
        titles=TITLES,
        drawing=Drawing(
            "lines", setting, "error", log="y" if setting == "least" else "xy", y_label="balanced error", x_label=x
        ),
    )


# credit default -------------------------------------------------------------------------------------------------------

_FILE = "default_of_credit_card_clients.parquet"
_TARGET = "default_payment_next_month"
#: Public bounds: code books for categories and delays, round numbers for money; square roots of amounts, whose tails are long.
_AMOUNTS = (*(f"bill_amt{j}" for j in range(1, 7)), *(f"pay_amt{j}" for j in range(1, 7)), "limit_bal")
_MONEY = dict.fromkeys(_AMOUNTS, 1_000_000.0)
_DELAYS = {f"pay_{j}": (-2, 9) for j in (0, 2, 3, 4, 5, 6)}
_CODES = {"sex": (1, 2), "education": (0, 6), "marriage": (0, 3), "age": (18, 100), **_DELAYS}
# Typical spreads of the places within the bounds, public guesses: a feature's unit is a tenth of its range.
_UNIT = 0.1


def _missing_credit(method: str) -> str | None:
    folder = os.environ.get("CONFIDE_DATA")
    if method in METHODS and folder and (Path(folder) / _FILE).is_file():
        return None
    return f"set CONFIDE_DATA to a folder that holds {_FILE}"


@lru_cache(maxsize=1)
def _credit() -> tuple[Array, NDArray[np.int64]]:
    """Features as places within public bounds, in units of a tenth of the range from the middle, and defaults."""
    frame = pd.read_parquet(Path(os.environ["CONFIDE_DATA"]) / _FILE)
    columns = []
    for name, top in _MONEY.items():
        columns.append(np.sqrt(np.clip(frame[name].to_numpy(dtype=np.float64), 0.0, top) / top))
    for name, (low, high) in _CODES.items():
        columns.append((np.clip(frame[name].to_numpy(dtype=np.float64), low, high) - low) / (high - low))
    return (np.column_stack(columns) - 0.5) / _UNIT, frame[_TARGET].to_numpy(dtype=np.int64)


def measure_credit(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One split of the credit default data: 80 % of the records to fit, the others to test."""
    x, y = _credit()
    order = shared("eptr.figure1 credit", {**at, "epsilon": 0}).permutation(len(y))
    cut = int(0.8 * len(y))
    fit, test = order[:cut], order[cut:]
    # a ball of half the length of the box's diagonal
    bound = np.sqrt(x.shape[1]) * 0.5 / _UNIT
    case = ClassCase(x[fit], y[fit], 2, float(bound), 0.1, float(at["epsilon"]), _DELTA)
    found = classified(at["method"], case, generator)
    return {"balanced": balanced_error(found, x[test], y[test]), "reply": float(found.replied)}


_CREDIT = Block(
    "credit",
    {"epsilon": (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)},
    tuple(METHODS),
    measure_credit,
    (_SHOWN[0], _SHOWN[2]),
    replications=10,
    title="Credit default, 23 features, 80 % of 30,000 records",
    missing=_missing_credit,
    checks=_checks,
    titles=TITLES,
    drawing=Drawing("lines", "epsilon", "error", log="x", y_label="balanced error", x_label="epsilon"),
)

FIGURE1 = Experiment(
    "eptr.figure1",
    "Balanced errors of private Bayes classifiers (Figure 1)",
    (
        _block("budget", "epsilon", (0.5, 1.0, 1.5, 2.0, 2.5, 3.0), "By budget, n = 5,000", "epsilon"),
        _block("size", "n", (1000, 2000, 5000, 10000), "By sample size, epsilon = 1.5", "records"),
        _block(
            "imbalance",
            "least",
            (0.05, 0.1, 0.2, 0.3),
            "By the least share, n = 5,000, epsilon = 1.5",
            "least share",
        ),
        _CREDIT,
    ),
    sources=(f"{PAPER}, Figure 1, sections 3.3 and 3.4", "settings from the authors' public code"),
    notes=(
        "The paper prints a picture without numbers, 500 replications on 100,000 records; here 30,000.",
        "Three classes at 3 e_k in ten dimensions, unit variances, R = 8, delta = .01. Everything substitute.",
        "(epsilon, delta) for ClassMeans and EfficientPTRBayes, which splits delta between noise and test; (epsilon, 0) for the others.",
        "DPNB and DPNBSS as compared have exact private class sizes in their noise: not private. TUNED: the factor of DPNBSS is fitted.",
        "The constant predicts the first class. It stands in every table: a method without a reply falls back on it.",
        "Credit: the paper does not say how features are scaled or c0; here public bounds, a unit of a tenth of each range, c0 = .1.",
    ),
)


# intervals ------------------------------------------------------------------------------------------------------------


def measure_intervals(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Coverage of 95 % intervals of one release, of all means and of all shares; naive: of the interval that forgets privacy noise."""
    draw = shared("eptr.intervals", at)
    n, epsilon = {"5000, .5": (5000, 0.5), "5000, 1.5": (5000, 1.5), "1000, 1.5": (1000, 1.5)}[at["setting"]]
    case, shares = simulated(n, epsilon, 0.0, draw)
    name, _, variance = str(at["method"]).partition(" ")
    method: Any = (
        ClassMeans(case.formula, variance=variance, radius=1.0)
        if name == "class_sums"
        else EfficientPTRBayes(case.formula, c0=0.04, variance=variance, radius=1.0)
    )
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
    asked = cf.ApproxDP(epsilon, _DELTA, relation="substitute")
    found: ClassModel = method.infer(
        cf.release(method, cf.read(case.frame, case.schema), asked, n=n, ledger=None, noise=noise)
    )
    if found.status != "valid":
        return {"ok": 0.0}
    truth = np.concatenate([shares, _MEANS.T.ravel()])
    limits = found.conf_int().to_numpy()
    inside = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    narrow = 1.959964 * np.sqrt(np.maximum(np.diag(found.covariance) - found.noise_variance, 0.0))
    naive = np.abs(found.estimates - truth) <= narrow
    return {
        "ok": 1.0,
        "means": float(inside[3:].mean()),
        "shares": float(inside[:3].mean()),
        "naive means": float(naive[3:].mean()),
        "naive shares": float(naive[:3].mean()),
        "width": float((limits[3:, 1] - limits[3:, 0]).mean()),
    }


INTERVALS = Experiment(
    "eptr.class_intervals",
    "Coverage of 95 % intervals of class means and shares",
    (
        Block(
            "coverage",
            {"setting": ("5000, .5", "5000, 1.5", "1000, 1.5")},
            ("class_sums identity", "class_sums per_feature", "eptr identity", "eptr per_feature"),
            measure_intervals,
            (
                Quantity("means", "mean", label="coverage, means"),
                Quantity("shares", "mean", label="coverage, shares"),
                Quantity("naive means", "mean", label="coverage without privacy noise, means"),
                Quantity("naive shares", "mean", label="coverage without privacy noise, shares"),
                Quantity("width", "mean", label="width, means"),
                Quantity("ok", "mean", label="share of runs with an interval"),
            ),
            replications=300,
            titles={
                "class_sums identity": "ClassMeans, variances known",
                "class_sums per_feature": "ClassMeans, variances released",
                "eptr identity": "EfficientPTRBayes, variances known",
                "eptr per_feature": "EfficientPTRBayes, variances released",
            },
        ),
    ),
    sources=("no paper has these intervals",),
    notes=(
        "Records, epsilon: as in the setting; the design of Figure 1 with shares (.75, .15, .10), delta = .01, substitute.",
    ),
)
