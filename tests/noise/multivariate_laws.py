"""Statistics of draws of several dimensions against their characteristic function and their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

# Fixed beforehand: a p-value below this fails. Some 60 statistical tests, hence a false alarm in 10^7 runs.
ALARM = 1e-9


def characteristic(t: np.ndarray, lam: Any, zeta: float = 0.0) -> np.ndarray:
    half = ((t * np.array([float(v) for v in lam])) ** 2).sum(axis=1) / 2
    return (1 + zeta * half) / (1 + half)


def cf_p_value(draws: np.ndarray, lam: Any, zeta: float = 0.0) -> float:
    """20 random frequencies of about 1 / lam: the worst standardised difference, Bonferroni. Rounding moves it by 10^-5."""
    generator = np.random.default_rng(20)
    t = generator.normal(size=(20, draws.shape[1])) / np.array([float(v) for v in lam])
    due = characteristic(t, lam, zeta)
    spread = np.sqrt(((1 + characteristic(2 * t, lam, zeta)) / 2 - due**2) / len(draws))
    angles = draws @ t.T
    worst = np.abs((np.cos(angles).mean(axis=0) - due) / spread).max()
    # the law is symmetric: the sines must vanish
    sines = np.sqrt((1 - characteristic(2 * t, lam, zeta)) / 2 / len(draws))
    worst = max(worst, np.abs(np.sin(angles).mean(axis=0) / sines).max())
    return float(min(1.0, 80 * special.ndtr(-worst)))


def chi_square(draws: np.ndarray, reach: int, pmf: np.ndarray) -> float:
    """Joint chi-square on the cells of [-reach, reach]^d with 20 expected or more, all others together; pmf of that shape."""
    d = draws.shape[1]
    inside = (np.abs(draws) <= reach).all(axis=1)
    cells = np.ravel_multi_index(tuple((draws[inside] + reach).T), (2 * reach + 1,) * d)
    counts, due = np.bincount(cells, minlength=pmf.size), len(draws) * pmf.ravel()
    kept = due >= 20
    seen, expected = counts[kept].astype(float), due[kept]
    rest = len(draws) - expected.sum()
    if rest >= 20:
        seen, expected = np.append(seen, len(draws) - seen.sum()), np.append(expected, rest)
    return float(special.chdtrc(len(seen) - (rest >= 20), ((seen - expected) ** 2 / expected).sum()))
