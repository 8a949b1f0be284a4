"""PRECISE and PPquantile to the letter: Zhou, Liu 2025 (arXiv 2502.00192), Algorithms 1 to 3. They carry no guarantee: see `ERRATA`.

`precise` collapses the tails of a histogram of m draws of a posterior, adds noise to its counts, and gives one uniform draw in each of two
bins. "The counts for all bins are sanitized, including the newly formed bins from collapsing" (section 3.3.3): each tail is one wide bin
with noise. `leak_event` and `least_epsilon` show what its claim hides.
"""

from __future__ import annotations

from math import ceil, e, floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide_lab.published.interval_rivals import private_quantile
from confide_lab.published.marks import published

__all__ = [
    "C0",
    "ERRATA",
    "beta_bins",
    "density_gap",
    "draws_of",
    "l1_change",
    "leak_event",
    "least_epsilon",
    "ppquantile",
    "precise",
]

Array = NDArray[np.float64]

#: The largest slope of the standard normal density: 1/sqrt(2 pi e).
C0 = float(1 / np.sqrt(2 * np.pi * e))

ERRATA = (
    "P1: Theorem 3 bounds one bin's expected count; one record moves all bins, by 2 m TV in l1: 14.1 for the claimed 1 at n = 100",
    "P2: given the data the counts are random, and draws under neighbours are not coupled: no sensitivity of them is finite below 2 m",
    "P3: where the tails begin is decided by the private draws: at epsilon = 1e-6 the released pair still tells k = 108 from k = 158",
    "P4: G_0 is local; the supremum of Definition 4 is n + 1 for Bernoulli at k = 0, and infinite under Jeffreys",
    "P5: PPquantile's utility is a rank among private random draws, all of which change with one record",
    "P6: consistency in mean square gives no coverage: the error of a quantile must be below n^-1/2",
    "P7: 'TVD' is a supremum norm of densities; mu-GDP composes as sqrt(sum mu^2), not as a sum",
)


def draws_of(gap: float, width: float) -> int:
    """m of Equation 7: floor(1/(2 G h)), at least 1."""
    return max(1, floor(1 / (2 * gap * width)))


def density_gap(k: int, other: int, n: int, a: float = 1.0, b: float = 1.0) -> float:
    """sup |f(p | k) - f(p | other)| of two beta posteriors."""
    p = np.concatenate([[0.0, 1.0], np.linspace(1e-6, 1 - 1e-6, 400_001)])
    return float(np.max(np.abs(stats.beta.pdf(p, a + k, b + n - k) - stats.beta.pdf(p, a + other, b + n - other))))


def beta_bins(k: int, n: int, width: float, a: float = 1.0, b: float = 1.0) -> Array:
    """Probabilities of the bins of [0, 1] under a beta posterior."""
    edges = np.minimum(np.arange(ceil(1 / width - 1e-9) + 1) * width, 1.0)
    return np.diff(stats.beta.cdf(edges, a + k, b + n - k))


def l1_change(p: Array, q: Array, m: int) -> tuple[float, float]:
    """What one record moves the expected counts by, in l1 and in l2."""
    return m * float(np.abs(p - q).sum()), m * float(np.sqrt(((p - q) ** 2).sum()))


def least_epsilon(p: Array, q: Array, m: int, epsilon: float) -> float:
    """A lower bound of the true epsilon of the noisy histogram: the limit of its log density ratio in the worst orthant (P2)."""
    sign = np.sign(p - q)
    return m * log(float(p @ np.exp(epsilon * sign)) / float(q @ np.exp(epsilon * sign)))


@published("epsilon-DP, or mu-GDP", *ERRATA)
def precise(
    draws: Array,
    rng: np.random.Generator,
    *,
    bounds: tuple[float, float],
    width: float,
    epsilon: float | None = None,
    mu: float | None = None,
    alpha: float = 0.05,
    nonneg: bool = True,
    total: str = "m*",
    threshold: int = 0,
    tails: str = "collapsed",
) -> dict[str, Any]:
    """Algorithms 1 and 2 on m posterior draws; nonneg, total: the four versions (+/-, m or m*). {"lower", "upper", "bins"}.

    tails: the bins before the first and after the last count above the threshold, "collapsed" into one wide bin on each side, whose count
    gets noise too, as the paper says; "dropped", with their counts in the edge bins; or "kept" as they are.
    """
    low, high = bounds
    bins = ceil((high - low) / width - 1e-9)
    m = len(draws)
    at = np.minimum(((np.clip(draws, low, high) - low) / width).astype(int), bins - 1)
    counts = np.bincount(at, minlength=bins).astype(float)
    edges = np.minimum(low + width * np.arange(bins + 1), high)
    if tails != "kept":
        counts, edges = _collapsed(counts, edges, threshold, drop=tails == "dropped")
    noisy = counts + (
        rng.laplace(0, 1 / epsilon, len(counts)) if epsilon is not None else rng.normal(0, 1 / (mu or 1.0), len(counts))
    )
    if nonneg:
        noisy = np.maximum(noisy, 0.0)
    whole = m if total == "m" else float(noisy.sum())
    i = int(np.argmin(np.abs(np.cumsum(noisy) - alpha / 2 * whole)))
    j = int(len(noisy) - 1 - np.argmin(np.abs(np.cumsum(noisy[::-1]) - alpha / 2 * whole)))
    ends = [float(rng.uniform(edges[place], edges[place + 1])) for place in (i, j)]
    return {"lower": min(ends), "upper": max(ends), "bins": len(counts)}


def _collapsed(counts: Array, edges: Array, threshold: int, *, drop: bool) -> tuple[Array, Array]:
    """Counts and edges with each tail as one bin, or without it."""
    over = np.flatnonzero(counts > threshold)
    if not len(over):  # no count is above the threshold: nothing says where a tail ends
        return counts, edges
    first, last = int(over[0]), int(over[-1])
    kept, left, right = counts[first : last + 1].copy(), counts[:first].sum(), counts[last + 1 :].sum()
    inner = edges[first : last + 2]
    if drop:
        kept[0] += left
        kept[-1] += right
        return kept, inner
    if first > 0:
        kept, inner = np.r_[left, kept], np.r_[edges[0], inner]
    if last < len(counts) - 1:
        kept, inner = np.r_[kept, right], np.r_[inner, edges[-1]]
    return kept, inner


@published("epsilon-DP", ERRATA[4])
def ppquantile(
    draws: Array, rng: np.random.Generator, *, bounds: tuple[float, float], q: float, epsilon: float, moved: float = 1.0
) -> dict[str, Any]:
    """Algorithm 3: the exponential mechanism on gaps between sorted posterior draws."""
    return {"value": private_quantile(draws, q, epsilon / moved, bounds, rng)}


def leak_event(k: int, n: int, epsilon: float, rng: np.random.Generator, *, width: float = 0.0005) -> float:
    """The middle of one released pair, for the events of P3; m by Equation 7 with G_0 at a share of .216."""
    m = draws_of(C0 / (0.216 * 0.784), width)
    found = precise(rng.beta(1 + k, 1 + n - k, m), rng, bounds=(0.0, 1.0), width=width, epsilon=epsilon)
    return float(found["lower"] + found["upper"]) / 2
