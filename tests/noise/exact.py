"""The four laws by their formulas, and statistics of draws against them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy import special

from confide.noise import SecureNoise, SimulatedNoise

LAWS = ("grid_gaussian", "grid_laplace", "discrete_gaussian", "discrete_laplace")
SMALL = tuple(map(Fraction, ("2/5", "1/2", "1", "3", "10", "31")))
LARGE = tuple(Fraction(10) ** power for power in (3, 6, 9, 15))


def parameter(law: str, scale: Fraction) -> Fraction:
    """What the law is asked for at a scale: the Gaussians take variances."""
    return scale**2 if law.endswith("gaussian") else scale


def take(noise: SecureNoise | SimulatedNoise, law: str, scale: Fraction, size: int) -> np.ndarray:
    draws: np.ndarray = getattr(noise, law)(parameter(law, scale), size)
    return draws


def pmf(law: str, scale: float, k: np.ndarray) -> np.ndarray:
    """P(X = k), without cancellation."""
    k = np.abs(k).astype(float)
    if law == "grid_gaussian":
        return special.ndtr(-(k - 0.5) / scale) - special.ndtr(-(k + 0.5) / scale)
    if law == "discrete_gaussian":
        reach = np.arange(1, int(40 * scale) + 20)
        return np.exp(-(k**2) / (2 * scale**2)) / (1 + 2 * np.exp(-(reach**2) / (2 * scale**2)).sum())
    if law == "discrete_laplace":
        return np.tanh(1 / (2 * scale)) * np.exp(-k / scale)
    return np.where(k == 0, -np.expm1(-1 / (2 * scale)), np.exp(-k / scale) * np.sinh(1 / (2 * scale)))


def cdf(law: str, scale: float, k: np.ndarray) -> np.ndarray:
    """P(X <= k); for the discrete Gaussian to 1 / (24 scale^2), the midpoint rule."""
    k = np.asarray(k, dtype=float)
    if law.endswith("gaussian"):
        return special.ndtr((k + 0.5) / scale)
    upper = np.where(k >= 0, k + (0.5 if law == "grid_laplace" else 1), -k - (0.5 if law == "grid_laplace" else 0))
    tail = np.exp(-upper / scale) / (2 if law == "grid_laplace" else 1 + np.exp(-1 / scale))
    return np.where(k >= 0, 1 - tail, tail)


def pmf_p_value(law: str, draws: np.ndarray, scale: float) -> float:
    """Chi-square against the exact probabilities of the integers, tails pooled to an expected 25."""
    reach = int(np.ceil((9 if law.endswith("gaussian") else 20) * scale)) + 1
    integers = np.arange(-reach, reach + 1)
    expected = len(draws) * pmf(law, scale, integers)
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=len(integers))
    kept = np.flatnonzero(expected >= 25)
    left, right = kept[0], kept[-1]
    beyond = (len(draws) - expected[left : right + 1].sum()) / 2

    def pooled(body: np.ndarray, tails: tuple[float, float]) -> np.ndarray:
        body = body[left : right + 1].astype(float)
        if beyond < 5:
            body[0] += tails[0]
            body[-1] += tails[1]
            return body
        return np.array([tails[0], *body, tails[1]])

    seen = pooled(counts, (counts[:left].sum(), counts[right + 1 :].sum()))
    due = pooled(expected, (beyond, beyond))
    return float(special.chdtrc(len(due) - 1, ((seen - due) ** 2 / due).sum()))


def ks_p_value(law: str, draws: np.ndarray, scale: float) -> float:
    """Kolmogorov-Smirnov at the steps of the distribution function, where rounding changes nothing."""
    values, counts = np.unique(draws, return_counts=True)
    empirical = np.cumsum(counts) / len(draws)
    upper, lower = cdf(law, scale, values), cdf(law, scale, values - 1)
    distance = max(np.abs(empirical - upper).max(), np.abs(np.concatenate([[0.0], empirical[:-1]]) - lower).max())
    return float(special.kolmogorov(np.sqrt(len(draws)) * distance))


def bins_p_value(law: str, draws: np.ndarray, scale: float) -> float:
    """Chi-square over 2,000 bins of equal probability: the shape within a cell, which the others hardly see.

    Needs a lattice much finer than scale / 2,000.
    """
    slots = np.minimum((cdf(law, scale, draws) * 2_000).astype(int), 1_999)
    return equal_p_value(slots, 2_000)


def equal_p_value(slots: np.ndarray, number: int) -> float:
    counts = np.bincount(slots, minlength=number)
    due = len(slots) / number
    return float(special.chdtrc(number - 1, ((counts - due) ** 2).sum() / due))


def table_p_value(rows: np.ndarray, columns: np.ndarray) -> float:
    """Chi-square of independence of two labels."""
    row = np.unique(rows, return_inverse=True)[1]
    column = np.unique(columns, return_inverse=True)[1]
    shape = (int(row.max()) + 1, int(column.max()) + 1)
    table = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape)
    due = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return float(special.chdtrc((shape[0] - 1) * (shape[1] - 1), ((table - due) ** 2 / due).sum()))


def two_sample_p_value(one: np.ndarray, other: np.ndarray) -> float:
    """Chi-square of homogeneity over 40 quantiles of both together, ties kept together."""
    together = np.concatenate([one, other])
    edges = np.unique(np.quantile(together, np.linspace(0, 1, 41)[1:-1], method="inverted_cdf"))
    return table_p_value(np.repeat([0, 1], [len(one), len(other)]), np.searchsorted(edges, together))


Statistic = Callable[[str, np.ndarray, float], float]
