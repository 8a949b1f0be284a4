"""The methods of the experiments, each behind a short name: case and generator in, line (and interval, where there is one) out.

A method that is not built yet is missing, with the reason, and appears when its module does. Three kinds stand side by side in every
table: `not private` (least squares, the mean), `literal` (a paper's algorithm as printed, for which nothing is guaranteed here), and
`private`: the methods of the library, which run through `cf.release` with simulated noise and no ledger, and opponents of theirs, which are
functions of arrays that spend the same mu.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.errors import PlanError
from confide.guarantees import calibrate_gaussian
from confide.methods.regression.sums.linear_rows import ranged
from confide.schema import ModelMatrix, Schema

__all__ = ["METHODS", "Case", "Fitted", "Method", "fit", "fitted_of", "missing"]

Array = NDArray[np.float64]

_PUBLISHED = "confide_lab.published"
_OPPONENTS = "confide_lab.opponents.ssp_cgd"


@dataclass(frozen=True)
class Case:
    """One data set to fit: frame, schema, formula, mu; delta for methods that need one (n^-1.1 as the papers have it, which uses n).

    >>> schema = Schema({"x1": cf.Numeric(0, 1), "y": cf.Numeric(0, 2)})
    >>> case = Case(pd.DataFrame({"x1": [0.0, 0.5, 3.0], "y": [0.0, 1.0, 2.0]}), schema, "y ~ x1", 1.0)
    >>> case.x[:, 0].tolist(), case.x_bounds.tolist(), case.intercept
    ([0.0, 0.5, 1.0], [[0.0, 1.0]], True)
    """

    frame: pd.DataFrame
    schema: Schema
    formula: str
    mu: float

    @cached_property
    def design(self) -> ModelMatrix:
        """The design of the formula."""
        return ModelMatrix.of(self.formula, self.schema)

    @cached_property
    def source(self) -> Any:
        """The records, read once."""
        return cf.read(self.frame, self.schema)

    @property
    def intercept(self) -> bool:
        """Whether the line has one."""
        return self.design.intercept

    @cached_property
    def x(self) -> Array:
        """Features, shape (n, d), moved into their bounds, without the intercept."""
        raw = self.design.matrix(self.frame)[:, int(self.intercept) :]
        moved: Array = np.clip(raw, self.x_bounds[:, 0], self.x_bounds[:, 1])
        return moved

    @cached_property
    def y(self) -> Array:
        """The response (n,) as it is."""
        return self.design.response_of(self.frame)

    @cached_property
    def clipped(self) -> Array:
        """The response moved into its bounds."""
        return np.clip(self.y, *self.y_bounds)

    @cached_property
    def x_bounds(self) -> Array:
        """(d, 2)."""
        return np.array([(term.low, term.high) for term in self.design.terms], dtype=np.float64)

    @property
    def y_bounds(self) -> tuple[float, float]:
        """The bounds of the response."""
        return float(self.design.response.low), float(self.design.response.high)

    @property
    def delta(self) -> float:
        """n^-1.1: a function of the exact n, as in the papers; for comparison only."""
        return float(float(len(self.frame)) ** -1.1)

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of mu at `delta`."""
        return _epsilon(self.mu, self.delta)


@dataclass(frozen=True)
class Fitted:
    """A line: intercept, beta (d,), interval of beta where there is one, status, and further numbers by name."""

    beta: Array
    intercept: float = 0.0
    low: Array | None = None
    high: Array | None = None
    se: Array | None = None
    status: str = "valid"
    numbers: Mapping[str, float] = field(default_factory=dict)

    def predict(self, x: Array) -> Array:
        """Values of the line at rows x."""
        return self.intercept + x @ self.beta


Fitter = Callable[[Case, np.random.Generator], Fitted]


@dataclass(frozen=True)
class Method:
    """title: for tables; kind: "not private", "literal" or "private"; fitter; needs: module:attribute that must be there."""

    title: str
    kind: str
    fitter: Fitter
    needs: str = ""


def fit(name: str, case: Case, generator: np.random.Generator) -> Fitted:
    """Fit by a method of `METHODS`."""
    return METHODS[name].fitter(case, generator)


def missing(name: str) -> str | None:
    """None when the method can run here, else why not.

    >>> missing("ols") is None, missing("no such method")
    (True, 'there is no such method')
    """
    if name not in METHODS:
        return "there is no such method"
    needs = METHODS[name].needs
    try:
        return None if not needs or _attribute(needs) is not None else f"{needs} is not built yet"
    except ImportError:
        return f"{needs} is not built yet"


def _attribute(place: str) -> Any:
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name, None) if name else found


# not private ----------------------------------------------------------------------------------------------------------


def least_squares(case: Case, generator: np.random.Generator) -> Fitted:
    """Least squares with intervals for unequal variances (HC1), on the response as it is."""
    x = np.column_stack([np.ones(len(case.x)), case.x]) if case.intercept else case.x
    n, p = x.shape
    gram = np.linalg.pinv(x.T @ x)
    theta, *_ = np.linalg.lstsq(x, case.y, rcond=None)
    residual = case.y - x @ theta
    if n > p:
        scores = x * residual[:, None]
        se = np.sqrt(np.maximum(np.diag(gram @ (scores.T @ scores) @ gram) * n / (n - p), 0.0))
    else:
        se = np.full(p, nan)
    return _line(case, np.asarray(theta, dtype=np.float64), se, float(stats.t.ppf(0.975, max(n - p, 1))))


def mean_only(case: Case, generator: np.random.Generator) -> Fitted:
    """No slopes: the mean of the response, whatever the formula says about the intercept."""
    return Fitted(np.zeros(case.x.shape[1]), float(case.y.mean()))


def _line(case: Case, theta: Array, se: Array | None = None, quantile: float = nan) -> Fitted:
    """A line from all coefficients, intercept first where there is one."""
    first = int(case.intercept)
    beta = np.asarray(theta[first:], dtype=np.float64)
    intercept = float(theta[0]) if case.intercept else 0.0
    if se is None:
        return Fitted(beta, intercept)
    half = quantile * se[first:]
    return Fitted(beta, intercept, beta - half, beta + half, se[first:])


# methods of the library -----------------------------------------------------------------------------------------------


def released(place: str, **settings: Any) -> Fitter:
    """A method of the library under GDP(mu), with simulated noise and no ledger."""

    def fitter(case: Case, generator: np.random.Generator) -> Fitted:
        method = _attribute(place)(case.formula, **settings)
        noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
        release = cf.release(method, case.source, cf.GDP(case.mu), ledger=None, noise=noise)
        return fitted_of(method.infer(release), case)

    return fitter


def fitted_of(found: Any, case: Case) -> Fitted:
    """The line of a result of the library."""
    if tuple(found.names) != case.design.names:
        raise PlanError(f"{found.method} names other coefficients than the design: {', '.join(found.names)}")
    first = int(case.intercept)
    estimates = np.asarray(found.estimates, dtype=np.float64)
    low = high = se = None
    if found.has_intervals:
        limits = found.conf_int().to_numpy(dtype=np.float64)[first:]
        low, high = limits[:, 0], limits[:, 1]
        se = np.asarray(found.bse, dtype=np.float64)[first:]
    return Fitted(estimates[first:], float(estimates[0]) if first else 0.0, low, high, se, str(found.status))


def binned(case: Case, generator: np.random.Generator) -> Fitted:
    """BinAgg with the sandwich over its bins, which its table does not print."""
    method = _attribute("confide_lab.methods:BinAgg")(case.formula, force=True)
    noise = cf.noise.SimulatedNoise(int(generator.integers(2**63)))
    release = cf.release(method, case.source, cf.GDP(case.mu), ledger=None, noise=noise)
    found, first = method.sandwich(release), int(case.intercept)
    bare = fitted_of(method.infer(release), case)
    if found.status != "valid":
        return bare
    low, high = found.limits()[first:].T
    return replace(bare, low=low, high=high, se=found.errors[first:], status="valid")


# papers to the letter -------------------------------------------------------------------------------------------------


def scaled(case: Case) -> tuple[Array, Array, float, float]:
    """Rows, response, and the lengths that no row and no response exceeds.

    With an intercept the rows are (1, x~) in units of the public box and the response is in half-ranges; without one both are as they
    are, as in the papers.
    """
    low, high = case.x_bounds.T
    if case.intercept:
        rows = np.column_stack([np.ones(len(case.x)), (case.x - (low + high) / 2) / ((high - low) / 2)])
        y0, hy = _chart(case)
        return rows, np.clip((case.y - y0) / hy, -1.0, 1.0), sqrt(rows.shape[1]), 1.0
    largest = np.maximum(np.abs(low), np.abs(high))
    return case.x, case.clipped, float(np.linalg.norm(largest)), float(max(map(abs, case.y_bounds)))


def unscaled(case: Case, theta: Array) -> Fitted:
    """The line in units of the data from one in those of `scaled`."""
    if not case.intercept:
        return Fitted(np.asarray(theta, dtype=np.float64))
    low, high = case.x_bounds.T
    y0, hy = _chart(case)
    beta = hy * theta[1:] / ((high - low) / 2)
    return Fitted(beta, float(y0 + hy * theta[0] - ((low + high) / 2) @ beta))


def _chart(case: Case) -> tuple[float, float]:
    low, high = case.y_bounds
    return (low + high) / 2, (high - low) / 2


def _epsilon(mu: float, delta: float) -> float:
    """The epsilon at which GDP(mu) has that delta, by bisection.

    >>> round(_epsilon(1.0, 1000**-1.1), 2)
    3.35
    """

    def profile(epsilon: float) -> float:
        first = stats.norm.cdf(-epsilon / mu + mu / 2)
        return float(first - np.exp(epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)))

    low, high = 0.0, 1.0
    while profile(high) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return high


def mu_of(epsilon: float, delta: float) -> float:
    """The mu of (epsilon, delta).

    >>> round(mu_of(1.0, 1e-6), 3)
    0.237
    """
    return calibrate_gaussian(cf.ApproxDP(epsilon, delta))


def binagg_literal(case: Case, generator: np.random.Generator, **settings: Any) -> Fitted:
    """Algorithms 1 and 2 to the letter, whose line has no intercept, whatever the formula says."""
    found = _attribute(f"{_PUBLISHED}.binagg:binagg")(
        case.x, case.y, generator, x_bounds=case.x_bounds, y_bounds=case.y_bounds, mu=case.mu, **settings
    )
    beta, se = np.asarray(found["beta"], dtype=np.float64), np.asarray(found["se"], dtype=np.float64)
    naive = {f"naive_s{j}": float(value) for j, value in enumerate(found["naive_se"], start=1)}
    numbers = {"bins": float(len(found["counts"])), "spent": float(found["spent"]), **naive}
    if not np.isfinite(beta).all():
        return Fitted(beta, status="not_identified", numbers=numbers)
    low, high = np.asarray(found["interval"], dtype=np.float64).T
    return Fitted(beta, 0.0, low, high, se, "valid", numbers)


def synthetic_literal(case: Case, generator: np.random.Generator) -> pd.DataFrame:
    """Records of Algorithm 3 to the letter, one column for each term of the design and the response."""
    made = _attribute(f"{_PUBLISHED}.binagg:synthetic_rows")(
        case.x, case.y, generator, x_bounds=case.x_bounds, y_bounds=case.y_bounds, mu=case.mu
    )
    names = [term.name for term in case.design.terms]
    return pd.DataFrame(made["x"], columns=names).assign(**{case.design.response.name: made["y"]})


def gradient_search(case: Case, generator: np.random.Generator) -> Fitted:
    """DP gradient descent with the best of its settings chosen on the private records; 252 for simulated, 455 for real data."""
    module = import_module("confide_lab.published.dp_gd")
    settings = module.SIMULATION if case.schema.dataset is None else module.REAL_DATA
    found = module.dp_gd(case.x, case.clipped, generator, mu=case.mu, settings=settings)
    return Fitted(np.asarray(found["beta"], dtype=np.float64))


def sketch(case: Case, generator: np.random.Generator) -> Fitted:
    """The private Johnson-Lindenstrauss sketch at (epsilon, n^-1.1) of mu; rows of the sketch: max(2(d + 1), n/10)."""
    call = _attribute("confide_lab.published.johnson_lindenstrauss:johnson_lindenstrauss")
    rows, t, length, reach = scaled(case)
    count = max(2 * (rows.shape[1] + 1), len(rows) // 10)
    found = call(
        rows, t, generator, bound=sqrt(length**2 + reach**2), rows=count, epsilon=case.epsilon, delta=case.delta
    )
    return unscaled(case, found["beta"])


def literal_adassp(case: Case, generator: np.random.Generator) -> Fitted:
    """AdaSSP (Wang 2018) at (epsilon, n^-1.1) of mu."""
    call = _attribute("confide_lab.published.adassp:adassp")
    rows, t, length, reach = scaled(case)
    found = call(rows, t, generator, x_bound=length, y_bound=reach, epsilon=case.epsilon, delta=case.delta)
    return unscaled(case, found["beta"])


def literal_analyze_gauss(case: Case, generator: np.random.Generator) -> Fitted:
    """Analyze Gauss (Dwork et al. 2014) with the classical noise at (epsilon, n^-1.1) of mu; no ridge."""
    call = _attribute("confide_lab.published.analyze_gauss:analyze_gauss")
    rows, t, length, reach = scaled(case)
    found = call(rows, t, generator, bound=sqrt(length**2 + reach**2), epsilon=case.epsilon, delta=case.delta)
    return unscaled(case, found["beta"])


# opponents ------------------------------------------------------------------------------------------------------------


def opponent(place: str) -> Fitter:
    """An opponent under mu, with the count and the ranges that the methods of the library take; its line has an intercept."""

    def fitter(case: Case, generator: np.random.Generator) -> Fitted:
        if not case.intercept:
            raise PlanError(f"{place} fits lines with an intercept; {case.formula!r} has none: leave `0 +` out")
        binary = np.isin(np.arange(case.x.shape[1]), ranged(case.design), invert=True)
        bounds = {"x_bounds": case.x_bounds, "y_bounds": case.y_bounds}
        found = _attribute(place)(case.x, case.y, generator, **bounds, mu=case.mu, binary=binary)
        ok = found["status"] == "valid"
        low, high = found["interval"].T if ok else (None, None)
        return Fitted(found["beta"], found["intercept"], low, high, found["se"] if ok else None, found["status"])

    return fitter


def _ours(title: str, place: str, **settings: Any) -> Method:
    return Method(title, "private", released(place, **settings), place)


METHODS: dict[str, Method] = {
    "ols": Method("OLS (not private)", "not private", least_squares),
    "mean": Method("mean only (not private)", "not private", mean_only),
    "ssp2": _ours("SSP2, robust line", "confide_lab.methods:HuberLine"),
    "ssp2_ols": _ours("SSP2", "confide.regression:LeastSquares"),
    "ssp2_bound": _ours("SSP2, robust line, slope bound 2", "confide_lab.methods:HuberLine", slope_bound=2.0),
    "ssp2_prediction": _ours("SSP2 prediction", "confide_lab.methods:HuberLine", objective="prediction"),
    "ssp": _ours("SSP", "confide.regression:SSP"),
    "ssp_recentred": _ours("SSP re-centred", "confide.regression:SSP", recenter="auto"),
    "ssp_classical": _ours("SSP classical", "confide.regression:SSP", cov="classical"),
    "binagg": Method("BinAgg corrected", "private", binned, "confide_lab.methods:BinAgg"),
    "adassp": _ours("AdaSSP exact mu", "confide_lab.methods:AdaSSP"),
    "boosted_adassp": _ours("Boosted AdaSSP", "confide_lab.methods:BoostedAdaSSP"),
    "analyze_gauss": _ours("Analyze Gauss exact mu", "confide_lab.methods:AnalyzeGauss"),
    "gradient_descent": _ours("DP-GD fixed default", "confide_lab.methods:GradientDescent"),
    "jlt": _ours("JLT", "confide_lab.methods:JohnsonLindenstrauss"),
    "ssp_cgd": Method("SSP-CGD (lab only)", "private", opponent(f"{_OPPONENTS}:ssp_cgd"), f"{_OPPONENTS}:ssp_cgd"),
    "ssp_cgd2": Method("SSP-CGD2 (lab only)", "private", opponent(f"{_OPPONENTS}:ssp_cgd2"), f"{_OPPONENTS}:ssp_cgd2"),
    "binagg_literal": Method("BinAgg literal (NOT private)", "literal", binagg_literal, f"{_PUBLISHED}.binagg"),
    "adassp_literal": Method("AdaSSP (epsilon, delta)", "literal", literal_adassp, f"{_PUBLISHED}.adassp:adassp"),
    "analyze_gauss_literal": Method(
        "SSP, classical noise", "literal", literal_analyze_gauss, f"{_PUBLISHED}.analyze_gauss:analyze_gauss"
    ),
    "jlt_literal": Method(
        "JLT literal", "literal", sketch, f"{_PUBLISHED}.johnson_lindenstrauss:johnson_lindenstrauss"
    ),
    "dp_gd_search": Method(
        "DP-GD, best of a search (NOT private)", "literal", gradient_search, f"{_PUBLISHED}.dp_gd:dp_gd"
    ),
}
