"""`precise.figure5`, `precise.table2`: the published bound on a posterior's density and what it is taken for.

G_n is the largest difference of two neighbours' posterior densities. The paper takes G_0 = C I/sqrt(2 pi e) for it, at the truth, or
a bound from public ranges. `figure5` computes G_n on a fine grid at one pair of neighbours near the truth; Definition 4 asks for the
supremum over all pairs, which is n + 1 for counts (evidence/errata.md). `table2` has C and I by the paper's formulas, and C as it comes out
for records that are written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide_lab.experiment import Block, Drawing, Experiment, Quantity
from confide_lab.layouts import Layout
from confide_lab.published.precise import C0, density_gap

__all__ = ["FIGURE5", "TABLE2"]

Array = NDArray[np.float64]

_U, _HALF = 25.0, 4.0
# family -> (C, public range of the parameter)
_RANGES = {"bernoulli": (0.1, 0.5), "poisson": (1.0, _U), "mean": (0.5, 2.0), "variance": (0.5, 2.0)}
_TRUTHS = {"bernoulli": (0.1, 0.3, 0.5), "poisson": (2.0, 10.0), "mean": (0.5, 1.0), "variance": (0.5, 1.0)}


def _constants(family: str, at: float) -> tuple[float, float]:
    """(C, I) of Table 2; `at` is p, the rate, sigma, or sigma^2."""
    if family == "bernoulli":
        return 1.0, 1 / (at * (1 - at))
    if family == "poisson":
        return _U, 1 / at
    if family == "mean":
        return 2 * _HALF, 1 / at**2
    return (2 * _HALF) ** 2, 1 / (2 * at**2)


def _numeric(family: str, at: float, n: int) -> float:
    """The largest difference of the densities of two neighbours whose estimates are C/n apart, around the truth."""
    step = _constants(family, at)[0] / n
    if family == "bernoulli":
        return density_gap(round(n * at), round(n * at) + 1, n)
    if family == "poisson":
        pair = [stats.gamma(0.1 + n * (at + d), scale=1 / (0.1 + n)) for d in (0.0, step)]
    elif family == "mean":
        pair = [stats.t(n - 1, d, at / sqrt(n)) for d in (-step / 2, step / 2)]
    else:
        pair = [stats.invgamma((n - 1) / 2, scale=(n - 1) * (at + d) / 2) for d in (0.0, step)]
    low, high = min(one.ppf(1e-12) for one in pair), max(one.ppf(1 - 1e-12) for one in pair)
    x = np.linspace(low, high, 200_001)
    return float(np.max(np.abs(pair[0].pdf(x) - pair[1].pdf(x))))


def measure_gap(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """G by one of three ways; nothing is drawn."""
    family, truth, method = str(at["family"]), float(at["truth"]), str(at["method"])
    if method == "numeric":
        return {"G": _numeric(family, truth, int(at["n"]))}
    low = _RANGES[family][0]
    c, information = _constants(family, truth if method == "asymptotic" else low)
    return {"G": C0 * c * information}


def _panel(family: str) -> Block:
    return Block(
        name=family,
        grid={"family": (family,), "truth": _TRUTHS[family], "n": (50, 100, 500, 1000, 5000)},
        methods=("numeric", "asymptotic", "bound"),
        measure=measure_gap,
        quantities=(Quantity("G"),),
        replications=1,
        exact=True,
        title=f"{family}: G against n, for several truths",
        drawing=Drawing("lines", "n", "G", panels="truth", log="x"),
        titles={"numeric": "G_n, one pair of neighbours", "asymptotic": "G_0 at the truth", "bound": "bound of G_0 from the public range"},
    )  # fmt: skip


FIGURE5 = Experiment(
    "precise.figure5",
    "The largest difference of neighbours' posterior densities, and what the paper takes for it",
    tuple(_panel(family) for family in _TRUTHS),
    sources=("Zhou, Liu 2025, Figure 5; its numbers are pictures",),
    notes=("the supremum of Definition 4 is n + 1 for counts: none of the three bounds it (evidence/errata.md)",),
)


# Table 2 ------------------------------------------------------------------------------------------------------------------

_N = 10_000
_PARAMETERS = (
    "bernoulli p",
    "poisson rate",
    "normal mean",
    "normal variance",
    "slope, intercept",
    "slope, origin",
    "intercept",
)


def measure_constants(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """C, I and G_0 of one parameter."""
    name, method = str(at["parameter"]), str(at["method"])
    c, information = _lines(name, method) if name in _PARAMETERS[4:] else _simple(name, method)
    return {"C": c, "I": information, "G_0": C0 * c * information}


def _simple(name: str, method: str) -> tuple[float, float]:
    family, at = {
        "bernoulli p": ("bernoulli", 0.3),
        "poisson rate": ("poisson", 10.0),
        "normal mean": ("mean", 1.0),
        "normal variance": ("variance", 1.0),
    }[name]
    c, information = _constants(family, at)
    if method == "formula":
        return c, information
    # n times what the estimate moves when one record goes from one bound to the other, where it moves most
    low, high = {"bernoulli": (0.0, 1.0), "poisson": (0.0, _U)}.get(family, (-_HALF, _HALF))
    values, other = np.full(_N, low), np.full(_N, low)
    other[0] = high
    estimate = np.var if family == "variance" else np.mean
    return _N * abs(float(estimate(other) - estimate(values))), information


def _lines(name: str, method: str) -> tuple[float, float]:
    """y = x/2 + e, x even on [-1, 1], |e| <= .75, sigma .25; one record's error is turned around, where that moves most."""
    sigma, most = 0.25, 0.75
    x = np.linspace(-1, 1, _N) + (0.2 if name != "slope, origin" else 0.0)
    centre, spread, square = x.mean(), x.var(), float(np.mean(x * x))
    far = float(np.max(np.abs(x - centre)))
    if name == "slope, intercept":
        c, information = 2 * far * most / spread, spread / sigma**2
    elif name == "slope, origin":
        c, information = 2 * float(np.max(np.abs(x))) * most / square, square / sigma**2
    else:
        lever = float(np.max(np.abs(1 - centre * (x - centre) / spread)))
        c, information = 2 * most * lever, 1 / (sigma**2 * (1 + centre**2 / spread))
    if method == "formula":
        return c, information
    design = x[:, None] if name == "slope, origin" else np.column_stack([np.ones(_N), x])
    row = {"slope, intercept": 1, "slope, origin": 0, "intercept": 0}[name]
    lever_rows = np.linalg.solve(design.T @ design, design.T)[row]
    place = int(np.argmax(np.abs(lever_rows)))
    y = 0.5 * x
    other = y.copy()
    y[place], other[place] = y[place] + most, other[place] - most
    both = [np.linalg.lstsq(design, values, rcond=None)[0][row] for values in (y, other)]
    return _N * abs(float(both[0] - both[1])), information


TABLE2 = Experiment(
    "precise.table2",
    "Constants behind the number of posterior draws",
    (
        Block(
            name="constants",
            grid={"parameter": _PARAMETERS},
            methods=("formula", "records"),
            measure=measure_constants,
            quantities=(Quantity("C"), Quantity("I"), Quantity("G_0")),
            replications=1,
            full=1,
            layouts=(Layout(("parameter",), ("method", "quantity"), title="Table 2"),),
            title="C, Fisher's information I and G_0 = C I/sqrt(2 pi e)",
            titles={"formula": "the paper's formula, restored", "records": f"C of n = {_N:,} records"},
        ),
    ),
    sources=("Zhou, Liu 2025, Table 2; its formulas are lost in the text and restored",),
)
