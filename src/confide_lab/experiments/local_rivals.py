"""Protected records beside what else one might do at the same guarantee: other noises, a raw sample, a keeper who sees the records.

Two terms even on (-1, 1), slopes 1 and -.5; a normal response of sd 1, or one of two values. Noise is continuous and seeded. The guarantee
is (epsilon, delta) for a whole record's two terms, the response public, but for the keeper, who protects the response too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide.guarantees.calibration import calibrate_gaussian, calibrate_laplace
from confide.guarantees.curves import calibrate_symmetric_laplace
from confide.local import ProtectedColumn
from confide.local.fits.fitting import fitted
from confide.local.fits.losses import Logistic, Rows, Squared
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Experiment, Quantity
from confide_lab.experiments.measures import shared
from confide_lab.published.zil import protected

__all__ = ["RIVALS"]

Array = NDArray[np.float64]

_GUARANTEES = {"(4, .05)": (4.0, 0.05), "(8, .001)": (8.0, 0.001)}
_SLOPES = np.array([1.0, -0.5])
_WAYS = ("no protection", "SL", "RB", "DR", "naive", "Laplace", "Gaussian", "raw sample", "keeper")
_SCHEMA = cf.Schema(
    {"x0": cf.Numeric(-1, 1), "x1": cf.Numeric(-1, 1), "y": cf.Numeric(-6, 6), "won": cf.Integer(0, 1)},
    dataset="simulated",
)


@cache
def _sd(way: str, epsilon: float, delta: float, zeta: float) -> float:
    """Noise sd of a term, whose width is 2, at the guarantee for both."""
    asked = cf.ApproxDP(epsilon, delta)
    match way:
        case "Laplace":
            return 2 * sqrt(2) / calibrate_laplace(asked, releases=2)
        case "Gaussian":
            return 2 * sqrt(2) / calibrate_gaussian(asked)
    return 2 * sqrt(2) / calibrate_symmetric_laplace(epsilon, delta, 2, zeta=zeta)


def line(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The error of the two slopes; NaN where no interval is given."""
    way, loss, (epsilon, delta), n = at["method"], at["loss"], _GUARANTEES[at["guarantee"]], at["n"]
    own = shared("zil.rivals", {name: at[name] for name in ("loss", "n", "replication")})
    x = own.uniform(-1, 1, (n, 2))
    t = x @ _SLOPES
    y = t + own.standard_normal(n) if loss == "squared" else (own.random(n) < 1 / (1 + np.exp(-t))).astype(float)
    if way == "keeper":
        return _keeper(loss, x, y, epsilon, delta, generator)
    rows = Rows(np.column_stack([np.ones(n), x]), y, np.zeros(3), 0.0, 0.0)
    method = {"no protection": "naive", "raw sample": "naive", "Laplace": "SL", "Gaussian": "SL"}.get(way, way)
    if way == "raw sample":
        kept = generator.random(n) < delta
        rows = replace(rows, x=rows.x[kept], y=rows.y[kept])
    elif way != "no protection":
        zeta = delta / 2 if way in ("RB", "DR") else 0.0
        sd = _sd(way, epsilon, delta, zeta)
        rows = replace(
            rows,
            x=np.column_stack([np.ones(n), _noised(way, x, sd, zeta, generator)]),
            lam=np.array([0, sd, sd]),
            zeta=zeta,
        )
    done = fitted(Squared() if loss == "squared" else Logistic(), method, rows, seed=int(generator.integers(2**31)))
    answered = done.identified and done.firm >= 4
    away = float(np.sqrt(np.mean(np.square(done.theta[1:] - _SLOPES)))) if answered else np.nan
    return {"slopes": away, "answered": float(answered)}


def _noised(way: str, x: Array, sd: float, zeta: float, generator: np.random.Generator) -> Array:
    if way == "Laplace":
        return np.asarray(x + sd * generator.laplace(scale=sqrt(0.5), size=x.shape))
    if way == "Gaussian":
        return np.asarray(x + sd * generator.standard_normal(x.shape))
    return protected(x, sd, zeta, generator)[0]


def _keeper(
    loss: str, x: Array, y: Array, epsilon: float, delta: float, generator: np.random.Generator
) -> dict[str, float]:
    response = "y" if loss == "squared" else "won"
    call = cf.linear_regression if loss == "squared" else cf.logistic_regression
    frame = {"x0": x[:, 0], "x1": x[:, 1], response: y if loss == "squared" else y.astype(int)}
    used = cf.Schema({name: _SCHEMA[name] for name in frame}, dataset="simulated")
    result = call(
        f"{response} ~ x0 + x1",
        cf.read(frame, used),
        privacy=cf.ApproxDP(epsilon, delta, relation="substitute"),
        ledger=None,
        noise=SimulatedNoise(int(generator.integers(2**31))),
    )
    away = result.params.to_numpy()[1:] - _SLOPES
    return {"slopes": float(np.sqrt(np.mean(np.square(away)))), "answered": float(result.status == "valid")}


def share(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """The error of the share of one level of two, and the least standard error that any epsilon-private rows allow."""
    p, epsilon, n = at["p"], at["epsilon"], at["n"]
    true = generator.random(n) < p
    if at["method"] == "bound":
        return {"share": generator.standard_normal() * sqrt((exp(epsilon) / (exp(epsilon) - 1) ** 2 + p * (1 - p)) / n)}
    if at["method"] == "keeper":
        return {"share": float(true.mean() + generator.laplace(scale=1 / (n * epsilon))) - p}
    keep = float(ProtectedColumn.of(("a", "b"), epsilon).keep)
    seen = np.where(generator.random(n) < keep, true, generator.random(n) < 0.5)
    return {"share": float((seen.mean() - (1 - keep) / 2) / keep) - p}


RIVALS = Experiment(
    "zil.rivals",
    "Protected records beside other ways to the same guarantee",
    (
        Block(
            "lines",
            {"loss": ("squared", "logistic"), "guarantee": tuple(_GUARANTEES), "n": (20_000,)},
            _WAYS,
            line,
            (Quantity("slopes", "rms"), Quantity("answered")),
            20,
            # an exact correction of these two needs derivatives of every order
            without=lambda at, method: at["loss"] == "logistic" and method in ("Laplace", "Gaussian"),
            titles={"Laplace": "Laplace noise, column by column", "keeper": "a keeper who sees the records"},
            title="Root mean square errors of two slopes, of what is answered, at (epsilon, delta) for a record; zeta = delta / 2",
        ),
        Block(
            "shares",
            {"epsilon": (0.5, 2.0), "p": (0.1, 0.5), "n": (1_000,)},
            ("randomised response", "bound", "keeper"),
            share,
            (Quantity("share", "rms"),),
            200,
            2_000,
            titles={"bound": "least of all local ways (Steinberger)"},
            title="Root mean square errors of the share of one level of two",
        ),
    ),
    sources=("evidence/methods/local.md",),
    notes=(
        "the raw sample publishes each record as it is with probability delta, and nothing of the others: (0, delta)",
        "sCL stands in zil.table3; the bound is a standard error of no estimator, drawn as if normal",
    ),
)
