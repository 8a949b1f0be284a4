"""Rivals of the posterior-quantile paper for one parameter, to the letter but for their accounting, as functions (arrays, rng) -> interval.

`symmetric_quantiles` (Du et al. 2020), `bag_of_little_bootstraps` (Chadha, Duchi, Kuditipudi 2024), `deconvolved_bootstrap` (Wang, Cheng,
Awan 2022), `repro_bernoulli` and `repro_normal` (Awan, Wang 2024), `augmentation_slope` (Ju et al. 2022), `ols_hybrid` (Ferrando et al.
2022). Relation substitute. Each docstring says what is released at what cost, and where the public code of its authors spends more than it
says; those faults are mended here. Noise is of floats: they are for comparison and cannot pass the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, e, floor, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

__all__ = [
    "above_threshold",
    "augmentation_slope",
    "bag_of_little_bootstraps",
    "deconvolved_bootstrap",
    "ols_hybrid",
    "private_quantile",
    "repro_bernoulli",
    "repro_normal",
    "symmetric_quantiles",
]

Array = NDArray[np.float64]
Interval = tuple[float, float]


def private_quantile(
    values: Array, q: float, epsilon: float, bounds: Interval, rng: np.random.Generator, *, target: float | None = None
) -> float:
    """Algorithm 4 (Smith 2011) on data: epsilon-DP, as a rank moves by at most 1 when a record is replaced.

    target: the rank that is aimed at; q n when left out.
    """
    padded = np.concatenate([[bounds[0]], np.sort(np.clip(values, *bounds)), [bounds[1]]])
    gaps, n = np.diff(padded), len(values)
    with np.errstate(divide="ignore"):
        score = np.log(gaps) - epsilon / 2 * np.abs(np.arange(n + 1) - (q * n if target is None else target))
    place = int(np.argmax(score + rng.gumbel(size=n + 1)))
    return float(padded[place] + rng.random() * gaps[place])


def symmetric_quantiles(
    values: Array,
    rng: np.random.Generator,
    *,
    epsilon: float,
    bounds: Interval,
    b: float = 0.35,
    alpha: float = 0.05,
    simulations: int = 500,
) -> Interval:
    """SYMQ, for the mean of a symmetric law: private b and 1 - b quantiles at epsilon/2 each, half-width from normal simulations.

    Cost: epsilon, pure; the simulations read the two released numbers. A spread of 0 gives an interval of length 0: it is the method's.
    """
    n = len(values)

    def ends(x: Array) -> tuple[float, float]:
        top, low = (
            private_quantile(x, q, epsilon / 2, bounds, rng, target=floor((n - 1) * q + 0.5)) for q in (1 - b, b)
        )
        return low, top

    low, top = ends(values)
    middle = (low + top) / 2
    spread = max(0.0, (top - middle) / float(stats.norm.ppf(1 - b)))
    again = np.array([sum(ends(rng.normal(middle, spread, n))) / 2 for _ in range(simulations)])
    half = float(np.diff(np.quantile(again, [alpha / 2, 1 - alpha / 2]))[0]) / 2
    return middle - half, middle + half


def above_threshold(
    values: Callable[[int], Array],
    steps: int,
    level: float,
    epsilon: float,
    rng: np.random.Generator,
    *,
    fresh: bool = False,
) -> int | None:
    """The first step at which a noisy median of `values(step)` exceeds the level; None for none. Ranks move by at most 1.

    epsilon-DP with the threshold's noise drawn once (epsilon/2) and Laplace(4/epsilon) in each step. fresh: draw the threshold's noise anew
    at each step, as the authors' code does, which is NOT epsilon-DP.
    """
    shared = rng.laplace(0, 2 / epsilon)
    for step in range(steps):
        sorted_values = np.sort(values(step))
        s = len(sorted_values)
        own = rng.laplace(0, 2 / epsilon) if fresh else shared
        index = int(s / 2 + own + rng.laplace(0, 4 / epsilon))
        found = 0.0 if index < 1 else 1.0 if index > s else float(sorted_values[index - 1])
        if found > level:
            return step
    return None


def bag_of_little_bootstraps(
    values: Array,
    rng: np.random.Generator,
    *,
    epsilon: float,
    bounds: Interval,
    alpha: float = 0.05,
    resamples: int | None = None,
) -> Interval:
    """BLBquant for the mean: a private centre at epsilon/2, and the smallest symmetric set that blocks of records cover, at epsilon/2.

    Cost: epsilon, pure: Laplace((U - L)/(n eps/2)) on the mean, and `above_threshold`. A record is in one block, whose share moves. The
    sets reach to the public range; the authors' to five true standard deviations, and their threshold noise is drawn anew at each step.
    Raises `ValueError` where blocks would hold one record.
    """
    n, (low, high) = len(values), bounds
    part, z = epsilon / 2, np.clip(values, *bounds)
    s = ceil(10 * log(n) / part)
    b = n // s
    if s > n / 2:
        raise ValueError(f"{s} blocks of {n} records hold one each; ask for a larger budget or more records")
    r = int(np.clip(sqrt(n) * b / log(n), 100, 10_000)) if resamples is None else resamples
    scale = (high - low) / (n * part)
    centre = z.mean() + rng.laplace(0, scale)
    # what is left over joins the last block
    blocks = np.split(z[rng.permutation(n)], b * np.arange(1, s))
    far = np.array(
        [
            np.sort(np.abs(_resampled_means(own, n, r, rng) + rng.laplace(0, scale, r) - own.mean())) * sqrt(n)
            for own in blocks
        ]
    )
    steps = ceil((high - low) * sqrt(n) * sqrt(n))
    found = above_threshold(
        lambda j: np.array([np.searchsorted(own, (j + 1) / sqrt(n), side="right") / r for own in far]),
        steps,
        1 - alpha,
        part,
        rng,
    )
    half = (high - low) if found is None else (found + 1) / sqrt(n) / sqrt(n)
    return float(centre - half), float(centre + half)


def _resampled_means(own: Array, n: int, r: int, rng: np.random.Generator) -> Array:
    """Means of r resamples of size n from a block: multinomial counts of its records."""
    return np.asarray(rng.multinomial(n, np.full(len(own), 1 / len(own)), r) @ own / n)


def deconvolved_bootstrap(
    values: Array,
    rng: np.random.Generator,
    *,
    mu: float,
    bounds: Interval,
    alpha: float = 0.05,
    size: int | None = None,
) -> Interval:
    """DP bootstrap of the mean with deconvolution: B resampled means with noise sigma_B = sqrt((2 - 2/e) B) D/mu, g-modelling of their law.

    Cost: mu-GDP in the limit of many resamples alone; at few of them delta is larger than that of mu-GDP, so that it is no guarantee at
    the stated mu. size: B; max(2000 mu^2, 2/alpha) when left out. The target is the mean of the clipped column.
    """
    n, (low, high) = len(values), bounds
    count = ceil(max(2000 * mu**2, 2 / alpha)) if size is None else size
    sigma = sqrt((2 - 2 / e) * count) * (high - low) / (n * mu)
    means = _resampled_means(np.clip(values, *bounds), n, count, rng) + rng.normal(0, sigma, count)
    theta, g = deconvolved(means / sigma)
    cdf = np.cumsum(g)
    first = max(int(np.searchsorted(cdf, alpha / 2, side="right")) - 1, 0)
    last = min(int(np.searchsorted(cdf, 1 - alpha / 2, side="right")), len(theta) - 1)
    return float(theta[first] * sigma), float(theta[last] * sigma)


def deconvolved(
    z: Array, *, penalty: float = 0.1, points: int = 1000, bins: int = 40, df: int = 5
) -> tuple[Array, Array]:
    """(theta, g): the law of theta in z = theta + N(0, 1), by Efron's g-modelling: softmax of a natural spline, penalised likelihood."""
    q1, q3 = np.quantile(z, [0.25, 0.75])
    theta = np.linspace(q1 - 3 * (q3 - q1), q3 + 3 * (q3 - q1), points)
    basis = _natural_spline(theta, df)
    basis = basis - basis.mean(axis=0)
    basis /= np.sqrt((basis**2).sum(axis=0))
    edges = np.linspace(round(float(z.min()), 1), round(float(z.max()), 1), bins)
    counts = np.histogram(z, edges)[0]
    chance = np.diff(stats.norm.cdf(edges[:, None] - theta[None]), axis=0)

    def loss(a: Array) -> tuple[float, Array]:
        eta = basis @ a
        g = np.exp(eta - eta.max())
        g /= g.sum()
        f = np.maximum(chance @ g, 1e-300)
        slope = g * (chance.T @ (counts / f) - counts.sum())
        norm = float(np.linalg.norm(a))
        return -float(counts @ np.log(f)) + penalty * norm, -(basis.T @ slope) + penalty * a / max(norm, 1e-12)

    found = optimize.minimize(loss, np.ones(df), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    eta = basis @ found
    g = np.exp(eta - eta.max())
    return theta, g / g.sum()


def _natural_spline(x: Array, df: int) -> Array:
    """A basis of the natural cubic splines with df + 1 knots at quantiles of x, without the constant."""
    knots = np.quantile(x, np.linspace(0, 1, df + 1))

    def d(k: int) -> Array:
        own = np.maximum(x - knots[k], 0) ** 3 - np.maximum(x - knots[-1], 0) ** 3
        return np.asarray(own / (knots[-1] - knots[k]))

    return np.column_stack([x, *(d(k) - d(df - 1) for k in range(df - 1))])


def _ranks_of_depth(rows: Array) -> NDArray[np.int64]:
    """For each theta: the rank of the first row's depth among all of its rows, ties in favour; rows: (thetas, R + 1, k)."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    covariance = np.einsum("tri,trj->tij", centred, centred) / (rows.shape[1] - 1)
    solved = np.linalg.solve(covariance + 1e-12 * np.eye(rows.shape[2]), np.swapaxes(centred, 1, 2))
    depth = 1 / (1 + np.einsum("tri,tir->tr", centred, solved))
    return np.asarray((depth <= depth[:, :1]).sum(axis=1))


def repro_bernoulli(
    values: Array,
    rng: np.random.Generator,
    *,
    epsilon: float,
    alpha: float = 0.05,
    seeds: int = 200,
    points: int = 2001,
) -> Interval:
    """Repro samples for a share: s = k + Laplace(1/epsilon), inverted over fixed seeds by the rank of s; epsilon-DP.

    The hull of the accepted points of a grid.
    """
    n = len(values)
    seen = float(values.sum() + rng.laplace(0, 1 / epsilon))
    uniform, noise = np.sort(rng.random((seeds, n)), axis=1), rng.laplace(0, 1 / epsilon, seeds)
    grid = np.linspace(0, 1, points)
    counts = np.array([np.searchsorted(own, grid, side="right") for own in uniform]) + noise[:, None]
    rank = (counts <= seen).sum(axis=0) + 1
    kept = (floor(alpha / 2 * (seeds + 1)) + 1 <= rank) & (rank <= ceil((1 - alpha / 2) * (seeds + 1)))
    return _hull(grid, kept)


def repro_normal(
    values: Array,
    rng: np.random.Generator,
    *,
    mu: float,
    bounds: Interval,
    sds: Interval,
    alpha: float = 0.05,
    seeds: int = 200,
    points: int = 65,
) -> Interval:
    """Repro samples for the mean of a normal: (sum z, sum z^2) released jointly, rank of depth, the largest over a grid of sds; mu-GDP.

    z in [-1, 1] is the clipped value; sds of noise 2/mu and 1.2013/mu by the joint bound of these two. Their script gives each of two
    statistics the full mu, which is sqrt(2) mu, and starts at the truth. Valid up to the grids.
    """
    n, (low, high) = len(values), bounds
    centre, half = (low + high) / 2, (high - low) / 2
    z = np.clip((values - centre) / half, -1, 1)
    noise_sd = np.array([2.0, 2 / 1.66508]) / mu
    seen = np.array([z.sum(), (z * z).sum()]) + rng.normal(0, noise_sd)
    normal, noise = rng.normal(size=(seeds, n)), rng.normal(0, noise_sd, (seeds, 2))
    means, spreads = np.linspace(low, high, points), np.geomspace(*sds, 15)
    least = floor(alpha * (seeds + 1)) + 1
    for _ in range(2):  # the grid, then a finer one over its hull
        kept = np.zeros(len(means), dtype=bool)
        for i, mean in enumerate(means):
            # one spread at a time: all of them are gigabytes
            each = (np.clip((mean - centre + spread * normal) / half, -1, 1) for spread in spreads)
            rows = (
                np.array([np.stack([moved.sum(axis=1), (moved * moved).sum(axis=1)], axis=1) for moved in each]) + noise
            )
            rows = np.concatenate([np.broadcast_to(seen, (len(spreads), 1, 2)), rows], axis=1)
            kept[i] = bool((_ranks_of_depth(rows) >= least).any())
        first, last = _hull(means, kept)
        step = means[1] - means[0]
        means = np.linspace(max(first - step, low), min(last + step, high), points)
    return first, last


def _hull(grid: Array, kept: NDArray[np.bool_]) -> Interval:
    """The least and the largest point that is kept; the whole grid where none is."""
    where = np.flatnonzero(kept) if kept.any() else np.array([0, len(grid) - 1])
    return float(grid[where[0]]), float(grid[where[-1]])


def augmentation_slope(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    epsilon: float,
    bound: float = 5.0,
    alpha: float = 0.05,
    iterations: int = 2_000,
) -> Interval:
    """Data-augmentation MCMC for the slope of y on one x, with intercept: T = (x, y, x^2, xy, y^2) with Laplace noise, latent records.

    Cost: epsilon, pure, by the joint bound of `confide.methods.intervals.sums` with D = 3: l1 = 9/2 with squares at half
    weight, against 8 by coordinates in the authors' later script. Priors: b | tau ~ N(0, I/tau), tau ~ Gamma(1, 1), x ~ N(m, 1/t), m ~
    N(0, 1), t ~ Gamma(1, 1).
    """
    n = len(x)

    def sums(a: Array, b: Array) -> Array:
        u, v = np.clip(a / bound, -1, 1), np.clip(b / bound, -1, 1)
        return np.array([u, v, u * u / 2, u * v, v * v / 2]).reshape(5, -1)

    seen = sums(x, y).sum(axis=1) + rng.laplace(0, 4.5 / epsilon, 5)
    latent_x, (b0, b1), tau, m, t = rng.normal(size=n), rng.normal(size=2), 1.0, 0.0, 1.0
    latent_y = b0 + b1 * latent_x + rng.normal(size=n)
    now, kept = sums(latent_x, latent_y), []
    for step in range(iterations):
        design = np.column_stack([np.ones(n), latent_x])
        precision = design.T @ design + np.eye(2)
        mean = np.linalg.solve(precision, design.T @ latent_y)
        tau = rng.gamma(1 + n / 2, 1 / (1 + max(latent_y @ latent_y - mean @ precision @ mean, 0) / 2))
        b0, b1 = rng.multivariate_normal(mean, np.linalg.inv(precision) / tau)
        m = rng.normal(t * latent_x.sum() / (1 + n * t), 1 / sqrt(1 + n * t))
        t = rng.gamma(1 + n / 2, 1 / (1 + ((latent_x - m) ** 2).sum() / 2))
        new_x = rng.normal(m, 1 / sqrt(t), n)
        new_y = b0 + b1 * new_x + rng.normal(0, 1 / sqrt(tau), n)
        moved, chance, total = sums(new_x, new_y), np.log(rng.random(n)), now.sum(axis=1)
        off = float(np.abs(seen - total).sum())
        for i in range(n):
            other = total + moved[:, i] - now[:, i]
            far = float(np.abs(seen - other).sum())
            if chance[i] < (off - far) * epsilon / 4.5:
                total, off, now[:, i] = other, far, moved[:, i]
                latent_x[i], latent_y[i] = new_x[i], new_y[i]
        if step >= iterations // 2:
            kept.append(b1)
    low, high = np.quantile(kept, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def ols_hybrid(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    epsilon: float,
    y_bound: float,
    alpha: float = 0.05,
    resamples: int = 500,
) -> dict[str, Any]:
    """The parametric bootstrap's hybrid for a line, x in [-1, 1]^p with no intercept: noisy X'X, X'y, y'y at epsilon/3 each.

    Cost: epsilon, pure. Sensitivities from bounds: each part is a joint vector: p^2/2 for X'X with squares at half weight, 2 p B for
    X'y, B^2 for y'y. The authors' code puts the true beta and the private maximum of y into its scales, gives every entry of X'X the
    full epsilon, and spends epsilon four times. {"low", "high", "estimates"}, one number for each coefficient; NaN where the noisy X'X
    cannot be inverted.
    """
    n, p = x.shape
    part, z, v = epsilon / 3, np.clip(x, -1, 1), np.clip(y, -y_bound, y_bound)

    def noise() -> tuple[Array, Array]:
        above = np.triu(rng.laplace(0, p * p / 2 / part, (p, p)))
        above[np.diag_indices(p)] *= 2
        return above + np.triu(above, 1).T, rng.laplace(0, 2 * p * y_bound / part, p)

    first = noise()
    q, c = (z.T @ z + first[0]) / n, (z.T @ v + first[1]) / n
    t = (float(v @ v) + rng.laplace(0, y_bound**2 / part)) / n
    low, high = np.full(p, np.nan), np.full(p, np.nan)
    if np.linalg.matrix_rank(q) < p:
        return {"low": low, "high": high, "estimates": low}
    b = np.linalg.solve(q, c)
    s2 = max(t - float(b @ c), 1e-12) * n / max(n - p, 1)
    values, vectors = np.linalg.eigh(q)
    root = vectors * np.sqrt(np.maximum(values, 0) * s2 / n)
    again = []
    for _ in range(resamples):
        more, also = (one / n for one in noise())
        if np.linalg.matrix_rank(q + more) == p:
            again.append(np.linalg.solve(q + more, q @ b + root @ rng.normal(size=p) + also))
    if again:
        low, high = np.quantile(again, [alpha / 2, 1 - alpha / 2], axis=0)
    return {"low": low, "high": high, "estimates": b}
