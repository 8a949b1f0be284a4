"""Figure 2 of Shen, Tong, Wang 2026 (efficient propose-test-release for linear regression): simulated designs, and wine.

The settings that the paper leaves out are those of its authors' code: R_x = R_y = 4, R_th = 1, c0 = .4 for simulated data; for wine
R_x = 2, R_y = 3, R_th = 4, c0 = .062, seven features, responses measured from 5 and lines without an intercept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

import confide as cf
from confide.methods.regression.certified.efficient_line import EfficientPTR
from confide.methods.regression.certified.reading import UNEQUAL
from confide.methods.regression.ssp.method import SSP
from confide_lab.designs import case_of
from confide_lab.experiment import Block, Check, Drawing, Experiment, Quantity, Record
from confide_lab.experiments.eptr_lines import DELTA, Bounds, line_of_method, released, ssp
from confide_lab.experiments.eptr_wine import (
    WINE_BUDGETS,
    WINE_METHODS,
    measure_bottom,
    measure_wine,
    never_replies,
    wine_missing,
)
from confide_lab.experiments.measures import shared
from confide_lab.fits import Case
from confide_lab.judging import below, covers

__all__ = ["FIGURE2", "PAPER", "coefficients"]

PAPER = "Shen, Tong, Wang 2026, Efficient Propose-Test-Release for Optimal Differentially Private Estimation"
Array = NDArray[np.float64]

_TITLES = {
    "ols": "OLS (not private)",
    "constant": "constant (public)",
    "eptr_literal": "ePTR, Algorithm 4",
    "eptr_code": "ePTR, authors' code (NOT private)",
    "safe": "EfficientPTR safe",
    "adaptive": "EfficientPTR adaptive",
    "ssp": "SSP",
    "ssp_joint": "SSP of joint rows (lab only)",
    "descent_gdp": "projected descent, exact accounting",
    "descent_literal": "projected descent, as printed",
    "fm": "functional mechanism, as printed",
    "jlt": "JL sketch, as printed",
}


def coefficients(p: int) -> Array:
    """theta_j ~ 1/j, of length 1."""
    theta = 1 / np.arange(1.0, p + 1)
    return np.asarray(theta / np.linalg.norm(theta))


# simulated ------------------------------------------------------------------------------------------------------------

_SIMULATED = Bounds(4.0, 4.0, 1.0, 4.0, c0=0.4, lam0=0.4)

#: "p,n,epsilon" of the comparison with every variant.
_CELLS = (
    "5,8000,1", "5,8000,1.5", "5,8000,2", "5,8000,4", "5,8000,8", "5,1000,4", "5,2000,4", "5,4000,4", "10,8000,1", "10,8000,4", "10,1000,4",
)  # fmt: skip
_METHODS = ("ols", "eptr_literal", "safe", "adaptive", "ssp_joint", "descent_gdp", "descent_literal", "fm", "jlt")
#: What the figure draws, then ours.
_DRAWN = ("ols", "eptr_literal", "descent_literal", "fm", "jlt", "adaptive", "ssp")


def _simulated(cell: str, at: Mapping[str, Any], box: float) -> tuple[Case, Array, float]:
    """The case of a cell "p,n,epsilon", its coefficients and epsilon. Features are N(0, I), errors N(0, 1)."""
    p, n, epsilon = (float(part) for part in cell.split(","))
    generator = shared("eptr.figure2", at)
    theta = coefficients(int(p))
    x = generator.standard_normal((int(n), int(p)))
    y = x @ theta + generator.standard_normal(int(n))
    case = case_of(x, y, np.tile([-box, box], (int(p), 1)), (-4.0, 4.0), 1.0, intercept=False)
    return case, theta, epsilon


def measure_simulated(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """distance: |theta~ - theta|^2; mse: of predictions on fresh records, exactly; replied."""
    case, theta, epsilon = _simulated(at["cell"], at, _SIMULATED.box)
    x = case.frame[[f"x{j + 1}" for j in range(len(theta))]].to_numpy()
    plan = 0.25 * _SIMULATED.lam0 * len(x) / _SIMULATED.row**2
    found, replied = line_of_method(at["method"], case, x, case.y, epsilon, _SIMULATED, plan, generator)
    error = float(((found - theta) ** 2).sum())
    return {"distance": error, "mse": 1 + error, "replied": float(replied)}


def measure_budget(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One cell of the upper left panel: n = 8,000."""
    return measure_simulated({**at, "cell": f"5,8000,{at['epsilon']:g}"}, generator)


def measure_size(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """One cell of the upper right panel: epsilon = 4."""
    return measure_simulated({**at, "cell": f"5,{at['n']},4"}, generator)


def _orderings(records: Sequence[Record]) -> list[Check]:
    """Who is better than whom, cell by cell; and the two bounds at p = 5, n = 8,000, epsilon = 1."""
    by = {
        (r["setting"]["cell"], r["method"]): r for r in records if r["quantity"] == "error" and r["value"] is not None
    }
    found = []
    for cell in _CELLS:
        own = {method: by[cell, method] for method in _METHODS if (cell, method) in by}
        if not {"ols", "eptr_literal", "fm", "jlt", "descent_literal"} <= set(own):
            continue
        nearest = min((own[method] for method in ("fm", "jlt", "descent_literal")), key=lambda r: float(r["value"]))
        found.append(below(f"{cell}: OLS < Algorithm 4", own["ols"], own["eptr_literal"]))
        found.append(below(f"{cell}: Algorithm 4 < rivals as printed", own["eptr_literal"], nearest))
        if "descent_gdp" in own:
            name = f"{cell}: descent, exact accounting < Algorithm 4"
            found.append(below(name, own["descent_gdp"], own["eptr_literal"]))
    cell = "5,8000,1"
    if (cell, "adaptive") in by:
        found.append(below("adaptive below .0025", by[cell, "adaptive"], 0.0025))
    if (cell, "safe") in by and (cell, "eptr_literal") in by:
        found.append(below("safe below a tenth of Algorithm 4", by[cell, "safe"], by[cell, "eptr_literal"], times=0.1))
    return found


def _reaches(records: Sequence[Record]) -> list[Check]:
    """Whether the line reaches the one without privacy where the paper says so: from epsilon = 1.5 at 8,000 records, from 2,000 at 4."""
    by = {(*r["setting"].items(), r["method"], r["quantity"]): r for r in records if r["value"] is not None}
    found = []
    for setting, value in (("epsilon", 1.5), ("n", 2000)):
        for quantity, times, said in (
            ("mse", 1.05, "predictions within 5 %"),
            ("error", 2.0, "coefficients within twice"),
        ):
            own, other = (by.get(((setting, value), method, quantity)) for method in ("eptr_literal", "ols"))
            if own and other:
                name = f"{setting} = {value:g}: squared error of {said} of least squares'"
                found.append(below(name, own, other, times=times))
    return found


# coverage -------------------------------------------------------------------------------------------------------------

_COVERAGES = (
    Quantity("covered", label="coverage of 95 % intervals"),
    Quantity("first slope", label="coverage of the first slope"),
    Quantity("sampling only", label="coverage with the sampling part alone"),
    Quantity("noise only", label="coverage with the privacy noise alone"),
    Quantity("width"),
    Quantity("ok", label="share of runs with an interval"),
    Quantity("replied", label="share of replies"),
)
_COVERED = ("5,8000,1", "5,8000,4", "5,2000,2")
_WIDER = Bounds(4.0, 4.0, 1.25, 4.0, c0=0.4, lam0=0.4)


def measure_coverage(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Shares of coefficients inside 95 % intervals: the method's, one with the sampling part alone, one with the noise alone; widths."""
    case, theta, epsilon = _simulated(at["cell"], at, _WIDER.box)
    asked = cf.ApproxDP(epsilon, DELTA, relation="substitute")
    if at["method"] == "ols":
        x = case.frame[[f"x{j + 1}" for j in range(len(theta))]].to_numpy()
        line = np.linalg.lstsq(x, case.y, rcond=None)[0]
        s2 = float(((case.y - x @ line) ** 2).mean())
        se = np.sqrt(s2 * np.diag(np.linalg.inv(x.T @ x)))
        return {"covered": _inside(line, se, theta), "width": float(3.92 * se.mean()), "ok": 1.0}
    method: Any = ssp(case.formula)
    if at["method"] == "adaptive":
        method = _WIDER.eptr(case.formula)
    if at["method"] == "safe":
        n = len(case.frame)
        method = _WIDER.eptr(case.formula, n, 0.25 * _WIDER.lam0 * n / _WIDER.row**2)
    result = released(method, case, asked, generator)
    return _coverage(result, theta)


def _coverage(result: Any, theta: Array) -> dict[str, float | str]:
    if not result.has_intervals:
        return {"ok": 0.0, "covered": nan, "replied": float(result.status != "declined")}
    limits = result.conf_int().to_numpy()
    line, whole = result.estimates, np.diag(result.covariance)
    sampling = np.maximum(whole - result.noise_variance, 0.0)
    # without what EfficientPTR allows for unequal variances
    noise = np.maximum(whole - sampling * (UNEQUAL if result.method.startswith(EfficientPTR.name) else 1.0), 0.0)
    inside = (limits[:, 0] <= theta) & (theta <= limits[:, 1])
    return {
        "ok": 1.0,
        "replied": 1.0,
        "covered": float(inside.mean()),
        "first slope": float(inside[result.names.index("x1")]),
        "sampling only": _inside(line, np.sqrt(sampling), theta),
        "noise only": _inside(line, np.sqrt(noise), theta),
        "width": float((limits[:, 1] - limits[:, 0]).mean()),
    }


_LAWS = ("normal", "small errors", "unequal", "unequal, epsilon 4", "skew", "concentrated")


def measure_defaults(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Default settings with an intercept at (1, 10^-6): three features in [0, 1], a line inside the bounds (-2, 6), errors of sd 1.

    small errors: sd .3; unequal: sd .2 to 1.8 by the first feature; skew: exponential; concentrated: features N(.5, 1/8).
    """
    own, n, law = shared("eptr.defaults", at), at["n"], at["law"]
    x = own.random((n, 3)) if law != "concentrated" else np.clip(0.5 + own.standard_normal((n, 3)) / 8, 0, 1)
    errors = own.exponential(1.0, n) - 1 if law == "skew" else own.standard_normal(n)
    errors = errors * (
        0.2 + 1.6 * np.abs(2 * x[:, 0] - 1) if law.startswith("unequal") else 0.3 if law == "small errors" else 1.0
    )
    y = 1 + x @ [1.0, -1.0, 0.5] + errors
    case = case_of(x, y, np.tile([0.0, 1.0], (3, 1)), (-2.0, 6.0), 1.0, intercept=True)
    method: Any = SSP(case.formula) if at["method"] == "ssp" else EfficientPTR(case.formula)
    result = released(
        method, case, cf.ApproxDP(4.0 if law.endswith("4") else 1.0, 1e-6, relation="substitute"), generator
    )
    return _coverage(result, np.array([1.0, 1.0, -1.0, 0.5]))


def _inside(line: Array, se: Array, theta: Array) -> float:
    return float((np.abs(line - theta) <= 1.959964 * se).mean())


def _coverages(records: Sequence[Record]) -> list[Check]:
    """The 99.9 % interval of a coverage meets what is claimed; the study sees an interval that is too short.

    The coefficients of a run are taken to be covered together, which makes the interval as wide as can be. The safe mode is certified at
    .4 n, far below the eigenvalue, and may cover more than .97.
    """
    found = []
    for r in records:
        name, value = f"{r['setting']['cell']} {r['method']}", r["value"]
        if r["quantity"] == "covered" and r["method"] != "ols" and value is not None:
            found.append(covers(f"{name}: coverage", r, 0.93, 1.0 if r["method"] == "safe" else 0.97))
        if r["quantity"] == "sampling only" and r["setting"]["cell"] == "5,8000,1" and r["method"] == "adaptive":
            found.append(below(f"{name}: sampling alone below .85", r, 0.85))
    return found


def _panel(name: str, grid: Mapping[str, Any], measure: Any, title: str, x_label: str) -> Block:
    (setting,) = grid
    return Block(
        name,
        grid,
        _DRAWN,
        measure,
        (
            Quantity("mse", label="squared error of predictions"),
            Quantity("error", of="distance", label="squared error of the coefficients"),
            Quantity("replied", label="share of replies"),
        ),
        replications=20,
        full=500,
        checks=_reaches,
        titles=_TITLES,
        title=title,
        drawing=Drawing("lines", setting, "mse", log="y", y_label="test MSE", x_label=x_label),
    )


FIGURE2 = Experiment(
    "eptr.figure2",
    "Linear regression by efficient propose-test-release and its rivals (Figure 2)",
    (
        _panel(
            "budget",
            {"epsilon": tuple(k / 2 for k in range(2, 17))},
            measure_budget,
            "Top left: n = 8,000, p = 5",
            "epsilon",
        ),
        _panel(
            "size", {"n": tuple(range(1000, 11_000, 1000))}, measure_size, "Top right: epsilon = 4, p = 5", "records"
        ),
        Block(
            "bottom",
            {"epsilon": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)},
            ("constant", "ols", "eptr_code", "eptr_literal", "jlt", "fm", "descent_literal", "adaptive", "ssp"),
            measure_bottom,
            (Quantity("test error", of="mse"), Quantity("replied", label="share of replies")),
            replications=20,
            full=50,
            missing=wine_missing,
            titles=_TITLES,
            title="Bottom: wine, a fifth of the records for training",
            drawing=Drawing(
                "lines", "epsilon", "test error", log="xy", y_label="test MSE", x_label="epsilon", limits=(1, 1000)
            ),
        ),
        Block(
            "simulated",
            {"cell": _CELLS},
            ("constant", *_METHODS, "ssp"),
            measure_simulated,
            (
                Quantity("error", of="distance", label="squared error of the coefficients"),
                Quantity("mse", label="squared error of predictions"),
                Quantity("replied", label="share of replies"),
            ),
            replications=20,
            full=500,
            checks=_orderings,
            titles=_TITLES,
            title="Every variant, in eleven cells p, n, epsilon",
            drawing=Drawing("dots", "cell", "error", log="x", x_label="squared error of the coefficients"),
        ),
        Block(
            "coverage",
            {"cell": _COVERED},
            ("ols", "adaptive", "safe", "ssp"),
            measure_coverage,
            _COVERAGES,
            replications=100,
            checks=_coverages,
            titles=_TITLES,
        ),
        Block(
            "defaults",
            {"law": _LAWS, "n": (2000, 5000, 20000)},
            ("adaptive", "ssp"),
            measure_defaults,
            _COVERAGES,
            replications=40,
            titles=_TITLES,
        ),
        Block(
            "wine",
            {"share": (0.8, 0.2), "epsilon": WINE_BUDGETS},
            WINE_METHODS,
            measure_wine,
            (
                Quantity("test error", of="mse"),
                Quantity("replied", label="share of replies"),
                Quantity("away", "max", label="without a reply: distance from the constant's error"),
            ),
            replications=5,
            full=50,
            missing=wine_missing,
            checks=never_replies,
            titles=_TITLES,
        ),
    ),
    sources=(f"{PAPER}, Figure 2, section 4.3 and 4.4", "settings: the authors' public code"),
    notes=(
        "The paper prints pictures without numbers, and the files that made the simulated half are not public.",
        "delta = .01 throughout, which is above 1/n. A run without a reply counts as the constant predictor: 0, or 5 for wine.",
        "The safe mode asks for GDP(mu, .01) with mu of (epsilon, .01): one release by itself, whose two ways to fail exclude each other.",
        "TUNED: descent as printed with 30 steps, exactly accounted with 15, rate .8: the paper leaves both open.",
        "Coverage is measured with a radius of 1.25: at R_th = 1 the true line lies on the edge of the ball, where no interval is given.",
        "Wine: features standardised by the training records, which is not private. TUNED: three of the seven features are found by "
        "matching an earlier reconstruction's errors of least squares.",
    ),
)
