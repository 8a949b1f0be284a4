"""BinAgg to the letter: Lin, Slavkovic, Bhoomireddy 2025 (arXiv 2510.16974), Algorithms 1, 2, 3, and PrivTree (Zhang, Xiao, Xie 2016).

`noise="paper"` has the printed sds Delta_ki/mu_s, which cost sqrt(d) mu_s (E1); "corrected" has sqrt(d) Delta_ki/mu_s. `estimator="paper"`
subtracts the printed D~ (E2), "corrected" the sum that Theorem 4.2 needs. What each setting really spends is in `spent`.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from confide_lab.published.marks import published

__all__ = ["ERRATA", "bin_sums", "binagg", "privtree", "shares", "spent", "synthetic_rows"]

Array = NDArray[np.float64]

ERRATA = (
    "E1: noise Delta_ki/mu_s for each coordinate gives mu_s for a scalar; a record moves all d of them, which costs sqrt(d) mu_s",
    "E2: Algorithm 2 subtracts 1/K of the attenuation that Theorem 4.2 needs, and stays inconsistent",
    "E3: the se is the diagonal of Sigma without its square root",
    "E4: the printed 1:3:3:3 does not give Table 1; bin : rest = 1 : 9 with t quantiles does",
    "E5: weights 1/count are those of a model without privacy noise, so that bins of two records weigh most",
    "E6: clipping of y is outside the theory; the intervals are for the clipped response",
    "E7: the conversion of pure to Gaussian guarantees is right, and wastes budget: native Gaussian noise is better",
    "E8: PrivTree's 3/epsilon is valid and not tight: the dearest path costs 2.607/scale",
    "E9: cells closed at both ends count a record on a cut twice, or in 2^j cells",
    "E10: the authors' package rescales noisy counts to the exact n and carries exact counts in its result",
    "E11: least squares on the synthetic rows is not Algorithm 2: rows inherit the noise as errors in x",
    "E12: Theorem 4.2 needs K to infinity and says nothing for K <= d or an indefinite matrix; bins split at random do not help",
    "E13: dividing by K (K - d) explodes near K = d, and undercovers with leverage",
    "E14: the grid search of DP-GD, a rival, is not accounted for",
    "E15: bounds taken from the data leak",
)


def shares(mu: float, ratio: tuple[float, float, float, float] = (1, 3, 3, 3)) -> tuple[float, float, float, float]:
    """mu of the bins, counts, sums and labels: mu r / sqrt(sum r^2).

    >>> tuple(round(v, 3) for v in shares(1.0))
    (0.189, 0.567, 0.567, 0.567)
    """
    length = sqrt(sum(r * r for r in ratio))
    return tuple(mu * r / length for r in ratio)  # type: ignore[return-value]


def spent(d: int, parts: tuple[float, float, float, float], noise: str = "paper") -> float:
    """mu that the release really has under add-remove: the shift of the record in its bin's far corner.

    >>> round(spent(5, shares(1.0)), 3), round(spent(5, shares(1.0), "corrected"), 3)
    (1.512, 1.0)
    """
    bins, counts, sums, labels = parts
    return sqrt(bins**2 + counts**2 + (d if noise == "paper" else 1) * sums**2 + labels**2)


@published("epsilon-DP for the cells, epsilon of a mu-GDP guarantee", ERRATA[7], ERRATA[8])
def privtree(
    x: Array,
    rng: np.random.Generator,
    *,
    bounds: Array,
    epsilon: float,
    theta: float = 0.0,
    depth: int | None = None,
    least_width: float = 2.0**-12,
    widest: str = "raw",
    closed: bool = False,
) -> dict[str, Any]:
    """x: (n, d) within bounds (d, 2). Returns low, high (K, d) and members, a list of K arrays of record numbers.

    widest: "raw" compares widths in the units of the features, "relative" against the root's; closed: cells closed at both ends, in which
    a record on a cut is counted twice, as in the authors' code.
    """
    d = x.shape[1]
    scale = 3.0 / epsilon
    fall = scale * log(2)
    most = min(12 * d, 60) if depth is None else depth
    root = bounds[:, 1] - bounds[:, 0]
    active = [(bounds[:, 0].copy(), bounds[:, 1].copy(), np.arange(len(x)))]
    leaves: list[tuple[Array, Array, NDArray[np.int64]]] = []
    for level in range(most + 1):
        following = []
        for low, high, members in active:
            biased = max(len(members) - level * fall, theta - fall)
            cut = biased + rng.laplace(0.0, scale) > theta
            width = high - low
            j = int(np.argmax(width if widest == "raw" else width / root))
            if not cut or level == most or width[j] <= least_width * root[j]:
                leaves.append((low, high, members))
                continue
            middle = (low[j] + high[j]) / 2
            left, right = high.copy(), low.copy()
            left[j] = right[j] = middle
            values = x[members, j]
            following.append((low, left, members[values <= middle if closed else values < middle]))
            following.append((right, high, members[values >= middle]))
        active = following
        if not active:
            break
    return {
        "low": np.array([leaf[0] for leaf in leaves]),
        "high": np.array([leaf[1] for leaf in leaves]),
        "members": [leaf[2] for leaf in leaves],
    }


@published("mu-GDP with mu^2 = mu_bin^2 + mu_c^2 + mu_s^2 + mu_t^2", *ERRATA)
def bin_sums(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float = 1.0,
    ratio: tuple[float, float, float, float] = (1, 3, 3, 3),
    noise: str = "paper",
    closed: bool = False,
    widest: str = "raw",
    theta: float = 0.0,
    exact_n: bool = False,
    tree_share: float = 1.0,
) -> dict[str, Any]:
    """Algorithm 1 and the noisy sums: counts (K,), s (K, d), t (K,), Delta (K, d), reach of y, the parts of mu, what is spent.

    x: (n, d), y: (n,), clipped to their bounds; noise: "paper", "corrected" or "none"; exact_n: rescale counts to the exact n (E10);
    tree_share: how much of its part of mu the tree is run with.
    """
    x = np.clip(x, x_bounds[:, 0], x_bounds[:, 1])
    y = np.clip(y, *y_bounds)
    d = x.shape[1]
    stated, *others = shares(mu, ratio)
    parts = (tree_share * stated, others[0], others[1], others[2])
    epsilon = float(special.log_ndtr(parts[0] / 2) - special.log_ndtr(-parts[0] / 2))
    tree = privtree(x, rng, bounds=x_bounds, epsilon=epsilon, theta=theta, closed=closed, widest=widest)
    exact = np.array([len(members) for members in tree["members"]], dtype=np.float64)
    noisy = np.rint(exact + (0.0 if noise == "none" else rng.normal(0.0, 1 / parts[1], len(exact))))
    kept = np.flatnonzero(noisy >= 2)
    if exact_n:
        noisy = noisy * (len(x) / max(noisy[kept].sum(), 1.0))
    low, high = tree["low"][kept], tree["high"][kept]
    delta = np.maximum(np.abs(low), np.abs(high))
    reach = max(abs(y_bounds[0]), abs(y_bounds[1]))
    sd = delta * (0.0 if noise == "none" else (1.0 if noise == "paper" else sqrt(d)) / parts[2])
    sd_label = 0.0 if noise == "none" else reach / parts[3]
    sums = np.array([x[tree["members"][k]].sum(axis=0) for k in kept]).reshape(len(kept), d)
    labels = np.array([y[tree["members"][k]].sum() for k in kept])
    return {
        "counts": noisy[kept],
        "sums": sums + sd * rng.standard_normal(sums.shape),
        "labels": labels + sd_label * rng.standard_normal(len(kept)),
        "sd_sums": sd,
        "sd_labels": sd_label,
        "low": low,
        "high": high,
        "bins": len(tree["low"]),
        "spent": spent(d, parts, "paper" if noise == "paper" else "corrected") if noise != "none" else float("inf"),
    }


@published("estimates and intervals of a linear model from the mu-GDP bins of Algorithm 1", *ERRATA)
def binagg(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float = 1.0,
    ratio: tuple[float, float, float, float] = (1, 3, 3, 3),
    noise: str = "paper",
    estimator: str = "paper",
    quantile: str = "z",
    root: bool = True,
    **settings: Any,
) -> dict[str, Any]:
    """Algorithm 2, no intercept: beta (d,), se (d,), interval (d, 2), the naive se with sigma = 1 known, and the bins.

    estimator: "paper" or "corrected"; quantile: "z" (printed) or "t" with K degrees of freedom (the authors' notebook); root: take the
    square root that the paper forgets. NaN where the equations are singular.
    """
    released = bin_sums(x, y, rng, x_bounds=x_bounds, y_bounds=y_bounds, mu=mu, ratio=ratio, noise=noise, **settings)
    return {**line(released, estimator=estimator, quantile=quantile, root=root), **released}


def line(
    released: dict[str, Any], *, estimator: str = "paper", quantile: str = "z", root: bool = True
) -> dict[str, Any]:
    """The line of Algorithm 2 from released bins."""
    s, t, counts = released["sums"], released["labels"], released["counts"]
    k, d = s.shape
    unknown = np.full(d, np.nan)
    empty = {"beta": unknown, "se": unknown, "interval": np.full((d, 2), np.nan), "naive_se": unknown}
    if k == 0:
        return empty
    weights = 1 / counts
    attenuation = weights @ released["sd_sums"] ** 2  # the diagonal of sum w_k D_k
    plain = (s * weights[:, None]).T @ s
    used = plain - np.diag(attenuation) / (k if estimator == "paper" else 1)
    moments = plain / k - np.diag(attenuation) / k
    try:
        beta = np.linalg.solve(used, s.T @ (weights * t))
        inverse = np.linalg.inv(moments)
        naive = np.sqrt(np.abs(np.diag(np.linalg.inv(plain))))
    except np.linalg.LinAlgError:
        return empty
    scores = s * (weights * (t - s @ beta))[:, None] + weights[:, None] * released["sd_sums"] ** 2 * beta
    with np.errstate(all="ignore"):
        variance = np.diag(
            inverse @ (scores.T @ scores / (k * (k - d)) if k != d else scores.T @ scores * np.nan) @ inverse
        )
        se = np.sqrt(variance) if root else variance
    z = stats.norm.ppf(0.975) if quantile == "z" else stats.t.ppf(0.975, k)
    interval = np.column_stack([beta - z * se, beta + z * se])
    return {"beta": beta, "se": se, "interval": interval, "naive_se": naive}


@published("mu-GDP synthetic records on which any analysis may be run", *ERRATA)
def synthetic_rows(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float = 1.0,
    ratio: tuple[float, float, float, float] = (1, 3, 3, 3),
    noise: str = "paper",
    **settings: Any,
) -> dict[str, Any]:
    """Algorithm 3: records x (m, d), y (m,) whose sums over a bin are its noisy sums.

    Drawn from the release alone, which is the same in law: given their sum, records of one law have deviations that no data enter.
    """
    released = bin_sums(x, y, rng, x_bounds=x_bounds, y_bounds=y_bounds, mu=mu, ratio=ratio, noise=noise, **settings)
    rows, labels = [np.empty((0, x.shape[1]))], [np.empty(0)]
    for k, count in enumerate(np.rint(released["counts"]).astype(int)):
        if count < 1:
            continue
        g = rng.standard_normal((count, x.shape[1] + 1))
        g -= g.mean(axis=0)
        rows.append(released["sums"][k] / count + released["sd_sums"][k] / sqrt(count) * g[:, :-1])
        labels.append(released["labels"][k] / count + released["sd_labels"] / sqrt(count) * g[:, -1])
    return {"x": np.concatenate(rows), "y": np.concatenate(labels), "spent": released["spent"], "released": released}
