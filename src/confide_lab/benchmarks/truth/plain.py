"""The answers without privacy on one sample, with the intervals that statisticians print: what widths and coverages are held against.

HC1 for lines (White 1980; MacKinnon, White 1985), the sandwich for logistic models, probits and counts, normal intervals for shares and
means, order statistics for quantiles, the sandwich of a ratio for kernel smooths, for all others normal intervals with the sds of a
bootstrap; all at 95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide.errors import PlanError
from confide.methods.classification.design import ClassDesign
from confide.methods.regression.glm.coefficients import binary_design
from confide.methods.regression.glm.fisher_families import PROBIT, Counts, Family
from confide.methods.regression.reference import likeliest_line, log_odds_line
from confide.schema import CodedFrame, ModelMatrix

__all__ = ["plain_intervals"]

Array = NDArray[np.float64]
Ends = Mapping[str, tuple[float, float]]

_TAIL, _RESAMPLES = 0.025, 50
_Z = float(stats.norm.isf(_TAIL))


def plain_intervals(method: Any, sample: CodedFrame, *, any_size: bool = False) -> Ends:
    """name -> (low, high); a name is left out where the sample alone gives no interval, such as for a level without records.

    any_size: whether samples are of random size, as those are of which counts and totals are asked.
    """
    name = "probit" if getattr(method, "link", "") == "probit" else method.name
    return _INTERVALS[name](method, sample) if name in _INTERVALS else bootstrap(method, sample, any_size)


def bootstrap(method: Any, sample: CodedFrame, any_size: bool) -> Ends:
    """The reference of the sample, with the sds that resampling gives it (Efron 1979)."""
    generator, n, found = np.random.default_rng(1), len(sample), _referred(method, sample)
    if not found:
        return {}
    drawn = []
    for _ in range(_RESAMPLES):
        rows = generator.integers(0, n, generator.poisson(n) if any_size else n)
        again = _referred(method, CodedFrame(sample.schema, {name: own[rows] for name, own in sample.codes.items()}))
        drawn.append([again.get(name, np.nan) for name in found])
    sds = np.nanstd(np.array(drawn), axis=0, ddof=1)
    known = [(name, value, sd) for (name, value), sd in zip(found.items(), sds, strict=True) if np.isfinite(value + sd)]
    return {name: _normal(value, sd) for name, value, sd in known if sd > 0}


def _referred(method: Any, sample: CodedFrame) -> Mapping[str, float]:
    """The reference, nothing where the sample lacks a group that it needs."""
    try:
        return dict(method.reference(sample))
    except PlanError:
        return {}


def line(method: Any, sample: CodedFrame, weight: Callable[[Array], Array] | None = None) -> Ends:
    """HC1 with Student's t; coefficients of columns that are constant zero are left out, all of them where the rest is singular.

    weight: rows of the terms -> weights of the records, where the line is a weighted one.
    """
    design = ModelMatrix.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    x, y = sample.rows(design)
    if weight is not None:
        root = np.sqrt(weight(x))
        x, y = x * root[:, None], y * root
    size = np.sqrt((x * x).sum(axis=0))
    used = np.flatnonzero(size > 0)
    x = x[:, used] / size[used]
    n, p = x.shape
    gram = x.T @ x
    if n <= p or not p or np.linalg.eigvalsh(gram)[0] < 1e-10:
        return {}
    bread = np.linalg.inv(gram)
    found = bread @ (x.T @ y)
    scores = x * (y - x @ found)[:, None]
    with np.errstate(
        invalid="ignore"
    ):  # a level of one record has no residual: rounding may leave less than nothing, no interval
        se = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread) * n / (n - p))
    t = float(stats.t.isf(_TAIL, n - p))
    low, high = (found - t * se) / size[used], (found + t * se) / size[used]
    return {design.names[j]: (float(a), float(b)) for j, a, b in zip(used, low, high, strict=True)}


def certified_line(method: Any, sample: CodedFrame) -> Ends:
    """The same of the line with public leverage weights."""
    design = ModelMatrix.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    return line(method, sample, method.weights(design))


def logistic(method: Any, sample: CodedFrame) -> Ends:
    """The likeliest model with a sandwich covariance."""
    design, _ = binary_design(method.formula, sample.schema, method.term_bounds)
    try:
        found = np.array(list(log_odds_line(sample, design).values()))
    except PlanError:
        return {}
    x, y = sample.rows(design)
    size = np.sqrt((x * x).mean(axis=0))
    p = 1 / (1 + np.exp(-(x @ found)))
    x = x / size
    bread = np.linalg.inv((x.T * (p * (1 - p))) @ x)
    scores = x * ((y >= 0.5) - p)[:, None]
    se = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread)) / size
    return {name: (a - _Z * s, a + _Z * s) for name, a, s in zip(design.names, found, se, strict=True)}


def poisson(method: Any, sample: CodedFrame) -> Ends:
    """The likeliest Poisson model with a sandwich covariance."""
    design = ModelMatrix.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    high = float(design.response.high)
    return _sandwich(design, Counts(high, high), sample)


def probit(method: Any, sample: CodedFrame) -> Ends:
    """The likeliest probit with a sandwich covariance."""
    return _sandwich(binary_design(method.formula, sample.schema, method.term_bounds)[0], PROBIT, sample)


def _sandwich(design: ModelMatrix, family: Family, sample: CodedFrame) -> Ends:
    """HC0 of a model's own likelihood."""
    try:
        found = np.array(list(likeliest_line(sample, design, family).values()))
    except PlanError:
        return {}
    x, y = sample.rows(design)
    target = y / family.scale if isinstance(family, Counts) else (y >= 0.5) * 1.0
    pull, own = family.pull(x @ found, np.asarray(target, dtype=np.float64))
    size = np.sqrt((x * x).mean(axis=0))
    x = x / size
    bread, scores = np.linalg.inv((x.T * own) @ x), x * pull[:, None]
    se = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread)) / size
    return {name: (a - _Z * s, a + _Z * s) for name, a, s in zip(design.names, found, se, strict=True)}


def quantiles(method: Any, sample: CodedFrame) -> Ends:
    """Order statistics at binomial ranks."""
    values = np.sort(sample.present(method.column))
    n, found = len(values), {}
    for q in method.qs:
        low, high = int(stats.binom.ppf(_TAIL, n, q)), int(stats.binom.ppf(1 - _TAIL, n, q)) + 1
        if low >= 1 and high <= n:
            found[f"{q:g}"] = (float(values[low - 1]), float(values[high - 1]))
    return found


def classes(method: Any, sample: CodedFrame) -> Ends:
    """Normal intervals of shares and of means in classes of at least two records."""
    own = ClassDesign.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    x, codes = sample.rows(own.design)
    place, n, found = np.rint(codes - float(own.design.response.low)), len(codes), dict[str, tuple[float, float]]()
    for k, label in enumerate(own.classes):
        inside = x[place == k, int(own.design.intercept) :]
        share = len(inside) / n
        found[f"P({label})"] = _normal(share, np.sqrt(share * (1 - share) / n))
        if len(inside) > 1:
            error = inside.std(axis=0, ddof=1) / np.sqrt(len(inside))
            for j, name in enumerate(own.features):
                found[f"{name} | {label}"] = _normal(float(inside[:, j].mean()), error[j])
    return found


def curve(method: Any, sample: CodedFrame) -> Ends:
    """The sandwich of sum K y / sum K at each point of the reference."""
    design = ModelMatrix.of(method.formula, sample.schema, term_bounds=method.term_bounds)
    x, y = sample.rows(design)
    x, h = x[:, int(design.intercept) :], np.atleast_1d(np.asarray(method.bandwidth, dtype=np.float64))
    found = {}
    for name, value in method.reference(sample).items():
        point = np.array([float(part.split("=")[1]) for part in name.split(",")])
        weight = np.exp(-(((x - point) / h) ** 2).sum(axis=1) / 2)
        total = weight.sum()
        if total > 1:
            found[name] = _normal(value, np.sqrt(((weight * (y - value)) ** 2).sum()) / total)
    return found


def _normal(value: float, error: float) -> tuple[float, float]:
    return float(value - _Z * error), float(value + _Z * error)


_INTERVALS: Mapping[str, Callable[[Any, CodedFrame], Ends]] = {
    **dict.fromkeys(("least_squares", "ssp", "binagg", "synthetic_table"), line),
    "efficient_ptr": certified_line,
    "logistic": logistic,
    "probit": probit,
    "poisson": poisson,
    "quantile": quantiles,
    **dict.fromkeys(("class_means", "efficient_ptr_bayes"), classes),
    **dict.fromkeys(("kernel", "efficient_ptr_kernel"), curve),
}
