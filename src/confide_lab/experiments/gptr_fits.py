"""Linear regressions on arrays for the comparison with generalized propose-test-release: |x| <= 1, |y| <= 1, no intercept.

Ours run here with float noise on arrays, as the published ones do; the methods themselves are in `confide.regression`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, log, log1p, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from confide.guarantees import gaussian_mu
from confide.guarantees.selection import TruncatedNegativeBinomial, largest_base
from confide_lab.aggregates.posterior import Odds, Posterior, chosen_penalty
from confide_lab.aggregates.posterior_pair import largest_shift
from confide_lab.published.adassp import adassp
from confide_lab.published.generalized_ptr_ops import adaops, algorithm_3, ops_balanced, out_pert

__all__ = ["FITS", "Split", "SspGdp", "posterior_sample", "ssp_gdp"]

Array = NDArray[np.float64]

_CANDIDATES = 2.5 ** np.linspace(1, 10, 30)


@dataclass(frozen=True, eq=False)
class Split:
    """Records for fitting, and a part that some methods take to be public; x (n, d), y (n,)."""

    x: Array
    y: Array
    public_x: Array
    public_y: Array


def posterior_sample(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    mu: float,
    delta: float,
    shares: tuple[float, float] = (0.09, 0.09),
    tail: float = 1.0,
    lam: float | None = None,
) -> Array | None:
    """One sample of `PosteriorSampling` on arrays: mu-GDP with failure delta, add-remove; None where it declines."""
    sds = [mu * sqrt(share) for share in (*shares, 1 - sum(shares))]
    odds = Odds(sds[0], sds[1], sds[2], delta / 4, delta / 2, tail)
    posterior = Posterior(x.T @ x, x.T @ y, 1.0, 1.0)
    quantile = -float(special.ndtri(odds.failure))
    least = float(np.linalg.eigvalsh(posterior.gram)[0])
    lower = max(0.0, least + (rng.standard_normal() - quantile) / odds.eigenvalue - 1)
    if lam is None:
        lam = chosen_penalty(odds, lower, x.shape[1], 1.0, 1.0, 1.0)
    # rounded up by at most 1 %, so that the many runs of a selection share their searches; a larger leverage dominates
    lev = 2.0 ** (ceil(64 * log2(1 / (lam + lower))) / 64)
    span = log1p(1 / (lam + lower))
    log_r = posterior.log_residual(lam) + span * ((rng.standard_normal() + quantile) / odds.residual + 1)
    shift = largest_shift(lev, odds.sample, odds.slack)
    if shift == 0 or log_r > 300:
        return None
    gamma = (shift * exp(-max(log_r, 0.0))) ** 2 * (1 + lev) / lev
    return np.asarray(
        posterior.draw(lam, gamma, np.asarray(rng.standard_normal(x.shape[1])) * 2.0**56), dtype=np.float64
    )


@dataclass(frozen=True, eq=False)
class SspGdp:
    """A line (d,), its covariance with and without the privacy noise (d, d), and whether a ridge was needed."""

    beta: Array
    covariance: Array
    naive: Array
    ridge: float


def ssp_gdp(x: Array, y: Array, rng: np.random.Generator, *, mu: float, intervals: bool = False) -> SspGdp:
    """Noisy second moments with separate noise for each: symmetric of variance 1 and 1/2, a ridge only where the noise asks for one."""
    d = x.shape[1]
    split = np.array([0.62, 0.62, 0.48, 0.1]) if intervals else np.array([1.0, 1.0, 1e-9, 1e-9])
    s1, s2, s3, s4 = 1 / (mu * split / np.linalg.norm(split))
    noise = np.diag(rng.standard_normal(d))
    above = np.triu_indices(d, 1)
    noise[above] = rng.standard_normal(len(above[0])) / sqrt(2)
    noise.T[above] = noise[above]
    gram = x.T @ x + s1 * noise
    cross = x.T @ y + s2 * rng.standard_normal(d)
    values, vectors = np.linalg.eigh(gram)
    ridge = max(0.0, s1 * (sqrt(2 * d) + 1.73) - max(0.0, float(values[0])))
    bread = np.linalg.inv(gram + ridge * np.eye(d))
    beta = bread @ cross
    square, count = float(y @ y) + s3 * rng.standard_normal(), len(y) + s4 * rng.standard_normal()
    rss = square - 2 * float(beta @ cross) + float(beta @ gram @ beta)
    s2_residual = max(0.0, rss / max(count - d, 1.0))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    private = s2**2 * np.eye(d) + s1**2 * (float(beta @ beta) * np.eye(d) + np.outer(beta, beta)) / 2
    sampling = s2_residual * bread @ positive @ bread
    return SspGdp(beta, sampling + bread @ private @ bread, sampling, ridge)


def _no_line(split: Split, *_: Any) -> Array:
    return np.zeros(split.x.shape[1])


def _ols(split: Split, *_: Any) -> Array:
    # some sets have columns that are collinear but for 1e-6: a ridge of 1e-3 keeps least squares from extrapolating along them
    return np.asarray(np.linalg.solve(split.x.T @ split.x + 1e-3 * np.eye(split.x.shape[1]), split.x.T @ split.y))


def _public_only(split: Split, *_: Any) -> Array:
    x, y = split.public_x, split.public_y
    return np.asarray(np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y))


def _auto(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    return posterior_sample(split.x, split.y, rng, mu=gaussian_mu(epsilon, 0.9 * delta), delta=0.1 * delta)


def _adaops(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    d = split.x.shape[1]
    tail = 2 * (d / 2 + sqrt(d * log(20)) + log(20)) / d
    mu = gaussian_mu(epsilon, 0.9 * delta)
    return posterior_sample(split.x, split.y, rng, mu=mu, delta=0.1 * delta, shares=(1 / 16, 1 / 16), tail=tail)


def _published(run: Callable[..., Mapping[str, Any]], **settings: Any) -> Any:
    def fit(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
        found: Array | None = run(split.x, split.y, rng, epsilon=epsilon, delta=delta, **settings)["beta"]
        return found

    return fit


def _selected_literal(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    found: Array | None = algorithm_3(
        split.x, split.y, split.public_x, split.public_y, rng, epsilon=epsilon, delta=delta
    )["beta"]
    return found


def _selected(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    """Best of K runs on the public part, K truncated negative binomial with eta = 1 (geometric) and E[K] = 3 k = 90."""
    expected = 3 * len(_CANDIDATES)
    mu, slack = _base_level(epsilon, delta, expected)
    best, least = None, inf
    for lam in rng.choice(_CANDIDATES, size=int(rng.geometric(1 / expected))):
        line = posterior_sample(split.x, split.y, rng, mu=mu, delta=slack, lam=float(lam))
        loss = inf if line is None else float(((split.public_y - split.public_x @ line) ** 2).mean())
        if loss < least:
            best, least = line, loss
    return best


@lru_cache(maxsize=64)
def _base_level(epsilon: float, delta: float, expected: int) -> tuple[float, float]:
    """mu and slack of each run, by the trade-off bound of private selection."""
    slack = 0.1 * delta / expected
    return largest_base(epsilon, delta, TruncatedNegativeBinomial(1.0, float(expected)), slack), slack


def _ssp(split: Split, epsilon: float, delta: float, rng: np.random.Generator) -> Array:
    return ssp_gdp(split.x, split.y, rng, mu=gaussian_mu(epsilon, delta)).beta


#: method -> line (d,), or None where it declined, from (split, epsilon, delta, rng).
FITS: dict[str, Any] = {
    "ols": _ols,
    "zero": _no_line,
    "public_only": _public_only,
    "outpert_literal": _published(out_pert),
    "ops_balanced_literal": _published(ops_balanced),
    "ops_balanced_exact": _published(ops_balanced, exact=True),
    "adaops_literal": _published(adaops),
    "adaops": _adaops,
    "adassp_literal": _published(adassp, x_bound=1.0, y_bound=1.0),
    "ssp_gdp": _ssp,
    "ops_ptr_literal": _selected_literal,
    "ops_ptr_selected": _selected,
    "posterior_sampling": _auto,
}
