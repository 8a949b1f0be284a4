"""Families of one parameter and what others make of them: data, sanitised sums, and the intervals of rivals from the same budget.

"PB" is the parametric bootstrap of one release, "MS" three sanitised copies (both are computed from releases alone), "sample" no privacy,
"PRECISE" the published mechanism in its (+, m*) form with the truth's own G, which carries no guarantee. `TARGETS`: what is estimated in a
family, and what each target may be at all.
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import confide as cf
from confide.methods.intervals.count_posteriors import ClippedNormal, ClippedPoisson
from confide.methods.intervals.marginals import NoiseLaw
from confide_lab.published.precise import C0, draws_of, precise

__all__ = ["CAP", "HALF", "TARGETS", "WIDTHS", "drawn", "noise_of", "rival", "schema_of", "sums_of", "truth_of"]

Array = NDArray[np.float64]
Interval = tuple[float, float]

#: Largest count of the Poisson column; half the range of the numeric one.
CAP, HALF = 25, 4.0
#: Widths of PRECISE's bins, which are not in the paper's text at hand: with these its words on coverage hold (`precise.figure4`).
WIDTHS = {"share": 0.0005, "rate": 0.002, "mean": 0.0002, "variance": 0.0001}
#: Family -> target -> what it may be.
TARGETS: dict[str, dict[str, Interval]] = {
    "bernoulli": {"share": (0.0, 1.0)},
    "poisson": {"rate": (0.0, float(CAP))},
    "normal": {"mean": (-HALF, HALF), "variance": (0.0, HALF**2)},
}
_BOOT, _COPIES = 500, 3


@lru_cache(maxsize=8)
def schema_of(family: str) -> cf.Schema:
    """The public column x."""
    columns: dict[str, Any] = {
        "bernoulli": cf.Integer(0, 1, on_missing=0),
        "poisson": cf.Integer(0, CAP, on_missing=0),
    }
    return cf.Schema({"x": columns.get(family, cf.Numeric(-HALF, HALF, on_missing="midpoint"))})


def truth_of(family: str, at: float) -> dict[str, float]:
    """Of each target; the normal has mean `at` and variance 1."""
    return {"mean": at, "variance": 1.0} if family == "normal" else {next(iter(TARGETS[family])): at}


def drawn(family: str, truth: float, n: int, generator: np.random.Generator) -> Array:
    """Records."""
    if family == "bernoulli":
        return (generator.random(n) < truth).astype(float)
    if family == "poisson":
        return generator.poisson(truth, n).astype(float)
    return generator.normal(truth, 1.0, n)


def sums_of(family: str, values: Array) -> Array:
    """The sums that are released: of counts, or of z and z^2."""
    if family == "bernoulli":
        return np.array([values.sum()])
    if family == "poisson":
        return np.array([np.minimum(values, CAP).sum()])
    z = np.clip(values / HALF, -1, 1)
    return np.array([z.sum(), (z * z).sum()])


def noise_of(family: str, budget: float, gaussian: bool) -> tuple[NoiseLaw, ...]:
    """The noise of each sum, by the joint sensitivities of the library's own maps: 1 - z^2 weighs 1.45, and .4 under Laplace noise."""
    moved = {"bernoulli": 1.0, "poisson": float(CAP)}.get(family, 2.0)
    if gaussian:
        parts = (1.0, 1 / 1.45) if family == "normal" else (1.0,)
        return tuple(NoiseLaw("normal", moved * part / budget) for part in parts)
    parts = (1.0, 1 / 0.4) if family == "normal" else (1.0,)
    return tuple(NoiseLaw("laplace", moved * part / budget) for part in parts)


def rival(
    method: str, family: str, values: Array, truth: float, budget: float, gaussian: bool, generator: np.random.Generator
) -> dict[str, Interval]:
    """The 95 % interval of each target."""
    if method == "sample":
        return _plain(family, values)
    if method == "PRECISE":
        return _published(family, values, truth, budget, gaussian, generator)
    n, sums, laws = len(values), sums_of(family, values), noise_of(family, budget, gaussian)
    if method == "PB":
        noisy = sums + np.array([law.draws(generator, 1)[0] for law in laws])
        again = _simulated(family, noisy, n, generator)
        again = again + np.column_stack([law.draws(generator, _BOOT) for law in laws])
        ends = np.quantile(_estimates(family, again, n)[..., 0], [0.025, 0.975], axis=0)
        return {name: (float(ends[0, j]), float(ends[1, j])) for j, name in enumerate(TARGETS[family])}
    factor = sqrt(_COPIES) if gaussian else float(_COPIES)
    copies = sums + np.column_stack([factor * law.draws(generator, _COPIES) for law in laws])
    found = _estimates(family, copies, n)
    return {name: _combined(found[:, j]) for j, name in enumerate(TARGETS[family])}


def _combined(found: Array) -> Interval:
    """Of copies of (estimate, its variance): Student's t by the rule of multiple synthesis."""
    centre, within, between = found[:, 0].mean(), found[:, 1].mean(), found[:, 0].var(ddof=1)
    total = within + between / _COPIES
    df = (_COPIES - 1) * (1 + _COPIES * within / between) ** 2 if between > 0 else np.inf
    half = stats.t.ppf(0.975, df) * sqrt(total)
    return float(centre - half), float(centre + half)


def _estimates(family: str, sums: Array, n: int) -> Array:
    """(estimate, its variance) of each target, clipped to what is allowed; (..., targets, 2)."""
    if family == "bernoulli":
        p = np.clip(sums[..., 0] / n, 0.0, 1.0)
        found = [(p, p * (1 - p) / n)]
    elif family == "poisson":
        rate = np.clip(sums[..., 0] / n, 1e-6, CAP)
        found = [(rate, rate / n)]
    else:
        mean = np.clip(sums[..., 0] / n, -1, 1)
        variance = np.clip(sums[..., 1] / n - mean**2, 1e-4, 1.0)
        found = [
            (mean * HALF, variance / n * HALF**2),
            (variance * HALF**2, 2 * variance**2 / n * HALF**4),
        ]
    return np.stack([np.stack(one, axis=-1) for one in found], axis=-2)


def _simulated(family: str, noisy: Array, n: int, generator: np.random.Generator) -> Array:
    """Sums of data sets at the estimate of a release: of the family itself, normal sums for the others."""
    at = _estimates(family, noisy, n)[:, 0]
    if family == "bernoulli":
        return generator.binomial(n, at[0], _BOOT)[:, None].astype(float)
    if family == "poisson":
        own = ClippedPoisson(np.array([at[0]]), CAP)
        mean, variance = (float(v[0]) for v in own.moments)
        return generator.normal(n * mean, sqrt(n * variance), _BOOT)[:, None]
    own2 = ClippedNormal.of(at[:1] / HALF, np.sqrt(at[1:]) / HALF)
    covariance = n * np.array([[own2.c11[0], own2.c12[0]], [own2.c12[0], own2.c22[0]]])
    return generator.multivariate_normal([n * own2.mean[0], n * own2.square[0]], covariance, _BOOT)


def _plain(family: str, values: Array) -> dict[str, Interval]:
    n = len(values)
    if family == "bernoulli":
        k = values.sum()
        return {"share": _pair(stats.beta.ppf([0.025, 0.975], 0.5 + k, 0.5 + n - k))}
    if family == "poisson":
        return {"rate": _pair(stats.gamma.ppf([0.025, 0.975], 0.5 + values.sum(), scale=1 / n))}
    s2 = values.var(ddof=1)
    return {
        "mean": _pair(stats.t.interval(0.95, n - 1, values.mean(), sqrt(s2 / n))),
        "variance": _pair((n - 1) * s2 / stats.chi2.ppf([0.975, 0.025], n - 1)),
    }


def _pair(ends: Any) -> Interval:
    return float(ends[0]), float(ends[1])


def _published(
    family: str, values: Array, truth: float, budget: float, gaussian: bool, generator: np.random.Generator
) -> dict[str, Interval]:
    """(+, m*), with the G_0 of the truth, which its authors plug in, and the whole budget for each target; no guarantee."""
    n, asked = len(values), ({"mu": budget} if gaussian else {"epsilon": budget})
    # target -> (G_0, bounds, posterior)
    settings: dict[str, tuple[float, Interval, Any]] = {}
    if family == "bernoulli":
        posterior = stats.beta(1 + values.sum(), 1 + n - values.sum())
        settings["share"] = C0 / (truth * (1 - truth)), (0.0, 1.0), posterior
    elif family == "poisson":
        posterior = stats.gamma(0.1 + values.sum(), scale=1 / (0.1 + n))
        settings["rate"] = C0 * CAP / truth, (0.0, float(CAP)), posterior
    else:
        s2 = values.var(ddof=1)
        settings["mean"] = C0 * 2 * HALF, (-HALF, HALF), stats.t(n - 1, values.mean(), sqrt(s2 / n))
        spread = stats.invgamma((n - 1) / 2, scale=(n - 1) * s2 / 2)
        settings["variance"] = C0 * 4 * HALF**2 / 2, (0.0, HALF**2), spread
    found = {}
    for name, (gap, bounds, own) in settings.items():
        draws = np.atleast_1d(own.rvs(draws_of(gap, WIDTHS[name]), random_state=generator))
        ends = precise(draws, generator, bounds=bounds, width=WIDTHS[name], **asked)
        found[name] = float(ends["lower"]), float(ends["upper"])
    return found
