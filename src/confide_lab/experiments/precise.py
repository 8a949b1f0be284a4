"""Intervals for one parameter: coverage and width of noise-aware posteriors and confidence limits, beside rivals and PRECISE.

`precise.coverage` (pure epsilon), `precise.gdp` (Gaussian noise), `precise.regression`: how often the 95 % interval
holds the truth and how wide it is, by n and budget. Methods: "noise-aware" and "confidence" of `cf.intervals`, one release each; "PB", the
parametric bootstrap of the same release; "MS", three sanitised copies; "sample", no privacy; "PRECISE", the published mechanism in its
(+, m*) form, which carries no guarantee, at p = .3 or the truth's own G.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.methods.intervals.clipped import ClippedNormal, ClippedPoisson
from confide.methods.intervals.laws import NoiseLaw
from confide.methods.intervals.method import IntervalMethod
from confide.noise import SimulatedNoise
from confide_lab.experiment import Block, Drawing, Experiment, Quantity
from confide_lab.published.precise import C0, draws_of, precise

__all__ = ["COVERAGE", "GDP", "REGRESSION"]

Array = NDArray[np.float64]

_NS = (100, 500, 1000, 5000)
_BUDGETS = (0.1, 0.5, 1.0, 5.0)
_METHODS = ("noise-aware", "confidence", "PB", "MS", "sample", "PRECISE")
_BOOT, _COPIES = 500, 3
_R = 4.0
_CAP = 25


@lru_cache(maxsize=8)
def _schema(family: str) -> cf.Schema:
    columns: dict[str, Any] = {
        "bernoulli": cf.Integer(0, 1, on_missing=0),
        "poisson": cf.Integer(0, _CAP, on_missing=0),
    }
    return cf.Schema({"x": columns.get(family, cf.Numeric(-_R, _R, on_missing="midpoint"))})


def _drawn(family: str, truth: float, n: int, generator: np.random.Generator) -> Array:
    if family == "bernoulli":
        return (generator.random(n) < truth).astype(float)
    if family == "poisson":
        return generator.poisson(truth, n).astype(float)
    return generator.normal(truth if family == "mean" else 0.0, 1.0 if family == "mean" else sqrt(truth), n)


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Whether one interval holds the truth, its width, and, for a posterior, whether the prior dominates."""
    family, n, budget, method = str(at["family"]), int(at["n"]), float(at["budget"]), str(at["method"])
    truth = float(at["truth"])
    values = _drawn(family, truth, n, generator)
    weak = 0.0
    if method in ("noise-aware", "confidence"):
        result = _ours(family, values, _asked(at, budget), generator, method)
        low, high = result.conf_int().to_numpy()[0]
        weak = float("prior_dominates" in result.flags)
    else:
        low, high = _rival(method, family, values, truth, budget, bool(at.get("gaussian")), generator)
    return {"covered": float(low <= truth <= high), "width": float(high - low), "dominated": weak}


def _asked(at: Mapping[str, Any], budget: float) -> Any:
    return cf.GDP(budget) if at.get("gaussian") else cf.PureDP(budget)


def _method(family: str) -> IntervalMethod:
    if family == "bernoulli":
        return cf.intervals.Proportion("x")
    if family == "poisson":
        return cf.intervals.Rate("x")
    return cf.intervals.MeanAndVariance("x", show=(family,), of="normal", least_sd=0.05)


def _ours(family: str, values: Array, privacy: Any, generator: np.random.Generator, kind: str) -> Any:
    source = cf.read(pd.DataFrame({"x": values}), _schema(family))
    noise = SimulatedNoise(int(generator.integers(2**31)))
    method = _method(family)
    release = cf.release(method, source, privacy, ledger=None, noise=noise)
    return method.infer(release, cf.Question(kind="credible" if kind == "noise-aware" else "confidence"))


# rivals: estimates from sanitised sums ------------------------------------------------------------------------------------


def _sums(family: str, values: Array) -> Array:
    if family == "bernoulli":
        return np.array([values.sum()])
    if family == "poisson":
        return np.array([np.minimum(values, _CAP).sum()])
    z = np.clip(values / _R, -1, 1)
    return np.array([z.sum(), (z * z).sum()])


def _noise(family: str, budget: float, gaussian: bool) -> tuple[NoiseLaw, ...]:
    moved = {"bernoulli": 1.0, "poisson": float(_CAP)}.get(family, 2.0)
    if gaussian:
        parts = (1.0,) if family in ("bernoulli", "poisson") else (1.0, 1 / 1.66508)
        return tuple(NoiseLaw("normal", moved * part / budget) for part in parts)
    parts = (1.0,) if family in ("bernoulli", "poisson") else (1.0, 2.0)
    return tuple(NoiseLaw("laplace", moved * part / budget) for part in parts)


def _estimate(family: str, sums: Array, n: int) -> Array:
    """(estimate, its variance), clipped to what is allowed; (..., 2)."""
    if family == "bernoulli":
        p = np.clip(sums[..., 0] / n, 0.0, 1.0)
        return np.stack([p, p * (1 - p) / n], axis=-1)
    if family == "poisson":
        rate = np.clip(sums[..., 0] / n, 1e-6, _CAP)
        return np.stack([rate, rate / n], axis=-1)
    mean = np.clip(sums[..., 0] / n, -1, 1)
    variance = np.clip(sums[..., 1] / n - mean**2, 1e-4, 1.0)
    if family == "mean":
        return np.stack([mean * _R, variance / n * _R**2], axis=-1)
    return np.stack([variance * _R**2, 2 * variance**2 / n * _R**4], axis=-1)


def _simulated(family: str, at: Array, n: int, size: int, generator: np.random.Generator) -> Array:
    """Sums of data sets at an estimate: of the family itself, normal sums for the normal."""
    if family == "bernoulli":
        return generator.binomial(n, at[0], size)[:, None].astype(float)
    if family == "poisson":
        own = ClippedPoisson(np.array([at[0]]), _CAP)
        mean, variance = (float(v[0]) for v in own.moments)
        return generator.normal(n * mean, sqrt(n * variance), size)[:, None]
    m, s = at / _R
    own2 = ClippedNormal.of(m, s)
    covariance = n * np.array([[own2.c11, own2.c12], [own2.c12, own2.c22]], dtype=float)
    return generator.multivariate_normal([n * float(own2.mean), n * float(own2.square)], covariance, size)


def _rival(
    method: str, family: str, values: Array, truth: float, budget: float, gaussian: bool, generator: np.random.Generator
) -> tuple[float, float]:
    n, sums = len(values), _sums(family, values)
    laws = _noise(family, budget, gaussian)
    if method == "sample":
        return _plain(family, values)
    if method == "PRECISE":
        return _published(family, values, truth, budget, gaussian, generator)
    if method == "PB":
        noisy = sums + np.array([law.draws(generator, 1)[0] for law in laws])
        centre = _estimate(family, noisy, n)
        at = np.array([centre[0]]) if family in ("bernoulli", "poisson") else _normal_at(noisy, n)
        again = _simulated(family, at, n, _BOOT, generator)
        again = again + np.column_stack([law.draws(generator, _BOOT) for law in laws])
        low, high = np.quantile(_estimate(family, again, n)[:, 0], [0.025, 0.975])
        return float(low), float(high)
    factor = sqrt(_COPIES) if gaussian else float(_COPIES)
    copies = sums + np.column_stack([factor * law.draws(generator, _COPIES) for law in laws])
    found = _estimate(family, copies, n)
    centre, within, between = found[:, 0].mean(), found[:, 1].mean(), found[:, 0].var(ddof=1)
    total = within + between / _COPIES
    df = (_COPIES - 1) * (1 + _COPIES * within / between) ** 2 if between > 0 else np.inf
    half = stats.t.ppf(0.975, df) * sqrt(total)
    return float(centre - half), float(centre + half)


def _normal_at(sums: Array, n: int) -> Array:
    mean = float(np.clip(sums[0] / n, -1, 1))
    return np.array([mean * _R, sqrt(float(np.clip(sums[1] / n - mean**2, 1e-4, 1.0))) * _R])


def _plain(family: str, values: Array) -> tuple[float, float]:
    n = len(values)
    if family == "bernoulli":
        k = values.sum()
        low, high = stats.beta.ppf([0.025, 0.975], 0.5 + k, 0.5 + n - k)
    elif family == "poisson":
        low, high = stats.gamma.ppf([0.025, 0.975], 0.5 + values.sum(), scale=1 / n)
    elif family == "mean":
        low, high = stats.t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / sqrt(n))
    else:
        s2 = values.var(ddof=1)
        low, high = (n - 1) * s2 / stats.chi2.ppf([0.975, 0.025], n - 1)
    return float(low), float(high)


def _published(
    family: str, values: Array, truth: float, budget: float, gaussian: bool, generator: np.random.Generator
) -> tuple[float, float]:
    """(+, m*), with the G_0 of the truth, which its authors plug in; no guarantee."""
    n = len(values)
    if family == "bernoulli":
        gap, width, bounds = C0 / (truth * (1 - truth)), 0.005, (0.0, 1.0)
        posterior = stats.beta(1 + values.sum(), 1 + n - values.sum())
    elif family == "poisson":
        gap, width, bounds = C0 * _CAP / truth, 0.02, (0.0, float(_CAP))
        posterior = stats.gamma(0.1 + values.sum(), scale=1 / (0.1 + n))
    elif family == "mean":
        gap, width, bounds = C0 * 2 * _R, 0.002, (-_R, _R)
        posterior = stats.t(n - 1, values.mean(), values.std(ddof=1) / sqrt(n))
    else:
        gap, width, bounds = C0 * 4 * _R**2 / (2 * truth**2), 0.001, (0.0, _R**2)
        posterior = stats.invgamma((n - 1) / 2, scale=(n - 1) * values.var(ddof=1) / 2)
    draws = posterior.rvs(draws_of(gap, width), random_state=generator)
    asked = {"mu": budget} if gaussian else {"epsilon": budget}
    found = precise(np.atleast_1d(draws), generator, bounds=bounds, width=width, **asked)
    return float(found["lower"]), float(found["upper"])


_TRUTHS = {"bernoulli": (0.3, 0.02), "poisson": (10.0, 2.0), "mean": (0.0,), "variance": (1.0,)}
_QUANTITIES = (Quantity("coverage", of="covered"), Quantity("width", of="width"), Quantity("dominated", of="dominated"))
_TITLES = {
    "noise-aware": "noise-aware posterior",
    "confidence": "confidence limits",
    "PB": "parametric bootstrap",
    "MS": "three copies (MS)",
    "sample": "no privacy",
    "PRECISE": "PRECISE (+, m*), published: no guarantee",
}


def _blocks(families: tuple[str, ...], *, gaussian: bool) -> tuple[Block, ...]:
    return tuple(
        Block(
            name=family,
            grid={
                "family": (family,),
                "truth": _TRUTHS[family],
                "n": _NS,
                "budget": _BUDGETS,
                **({"gaussian": (1,)} if gaussian else {}),
            },
            methods=_METHODS,
            measure=measure,
            quantities=_QUANTITIES,
            replications=200,
            full=1000,
            title=f"{family}: coverage and width of 95 % intervals",
            drawing=Drawing("lines", "n", "coverage", panels="budget", log="x"),
            titles=_TITLES,
        )
        for family in families
    )


_SOURCES = ("Zhou, Liu 2025, section 4.1 and Figures 2 to 4; rivals: Liu 2022 (MS), Ferrando et al. 2022 (PB)",)
_NOTES = (
    "PRECISE is run as published and carries no guarantee (docs/errata.md); PB and MS are post-processing of releases at the same budget",
    "cells in which the prior dominates (quantity `dominated`) are reported, not judged",
)

COVERAGE = Experiment(
    "precise.coverage",
    "Intervals for one parameter under pure epsilon",
    _blocks(("bernoulli", "poisson", "mean", "variance"), gaussian=False),
    sources=_SOURCES,
    notes=_NOTES,
)
GDP = Experiment(
    "precise.gdp",
    "Intervals for one parameter with Gaussian noise",
    _blocks(("bernoulli", "poisson", "mean", "variance"), gaussian=True),
    sources=_SOURCES,
    notes=_NOTES,
)


# regression ---------------------------------------------------------------------------------------------------------------


def measure_line(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float | str]:
    """Coverage and width of each coefficient's interval: y = x_1/2 + N(0, .25^2), x ~ U(-1, 1)."""
    n, mu, p = int(at["n"]), float(at["mu"]), int(at["p"])
    x = generator.uniform(-1, 1, (n, p))
    y = 0.5 * x[:, 0] + generator.normal(0, 0.25, n)
    names = [f"x{j}" for j in range(p)]
    schema = cf.Schema(
        {**{name: cf.Numeric(-1, 1, on_missing=0.0) for name in names}, "y": cf.Numeric(-2, 2, on_missing=0.0)}
    )
    source = cf.read(pd.DataFrame({**dict(zip(names, x.T, strict=True)), "y": y}), schema)
    method = cf.intervals.Slope(f"y ~ {' + '.join(names)}" + ("" if at["intercept"] else " - 1"))
    asked = cf.PureDP(mu) if at["method"] == "laplace" else cf.GDP(mu)
    noise = SimulatedNoise(int(generator.integers(2**31)))
    result: Any = method.infer(cf.release(method, source, asked, ledger=None, noise=noise))
    ends = result.conf_int().to_numpy()
    truth = np.array([*([0.0] if at["intercept"] else []), 0.5, *([0.0] * (p - 1))])
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    slope = int(bool(at["intercept"]))
    return {
        "covered": float(inside.mean()),
        "slope": float(inside[slope]),
        "width": float(ends[slope, 1] - ends[slope, 0]),
    }


REGRESSION = Experiment(
    "precise.regression",
    "Credible intervals of a normal line",
    (
        Block(
            name="line",
            grid={"p": (1, 2), "intercept": (1, 0), "n": (100, 1000), "mu": (1.0, 5.0)},
            methods=("gaussian", "laplace"),
            measure=measure_line,
            quantities=(
                Quantity("coverage", of="covered"),
                Quantity("slope coverage", of="slope"),
                Quantity("width", of="width"),
            ),
            replications=200,
            full=1000,
            title="coverage of all coefficients, and of the slope alone with its width",
            titles={"gaussian": "Gaussian noise, mu", "laplace": "Laplace noise, epsilon = mu"},
        ),
    ),
    sources=("Zhou, Liu 2025, section 4.1 (slope)",),
)
