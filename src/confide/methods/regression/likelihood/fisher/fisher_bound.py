"""How far out the records of the last round count in full: kappa and D from the last noisy information and a histogram of N^2.

D costs noise in proportion, and a record with N > D counts less (w = D/N < 1). So D is where the predicted variance is about smallest,
no record is seen beyond, and kappa, the weight of information against score in the joint bound, keeps the information above its noise.
A few records that no noisy count shows can move a line by several standard errors, if they lie far out with outcomes against it and count
less. Where public bounds say how far out a record can be, D goes on to there as long as that is affordable, and none counts less.
All of it is post-processing of noisy numbers; no sensitivity rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from confide._arrays import Array

__all__ = ["TAIL_RESIDUAL", "Bound", "Sizes", "chosen_kappa"]


_KAPPAS = (1.5, 2.0, 3.0, 4.5)
# The least eigenvalue stands above the noise of A so many times, or kappa is the largest.
_ABOVE = 8.0
# A cell's count is seen from so many sds of its noise on.
_SEEN = 3.5
# Open cells: where their records are taken to lie, in the first and the last edge.
_FIRST, _LAST = 0.7, 1.5
# The mean information of a record is taken to be at least this, for eigenvalues and for counts.
_LEAST_SHARE, _LEAST_MEAN = 0.005, 0.01
# How much above the smallest predicted variance a wider bound may be where the information stands well above its noise; and in any case.
_AFFORDED, _CLEAR = 1.5, 0.3
_CHEAP = 1.1
_ONE_SIDED = 1.645
#: The mean residual of records that count less, at most.
TAIL_RESIDUAL = 0.15


def chosen_kappa(gram: Array, mu: float) -> float:
    """kappa. gram: the last noisy A, (k, k); mu: of the last round for one record."""
    k = len(gram)
    mean = float(np.trace(gram)) / k
    least = max(float(np.linalg.eigvalsh(gram)[0]), 0.25 * mean)
    return next((kappa for kappa in _KAPPAS if least * kappa * mu / (4 * k**1.5) >= _ABOVE), _KAPPAS[-1])


@dataclass(frozen=True)
class Bound:
    """D, and the share of records that may count less: its upper 95 % bound."""

    value: float
    less: float


@dataclass(frozen=True, eq=False)
class Sizes:
    """A noisy histogram of N^2 and what the last step knows.

    counts (cells,), edges (cells - 1,), sd: of a count's noise; gram: the last noisy A (k, k); alpha: kappa/sqrt(k); mu: of the last
    round for one record; records: their noisy number, at least 1; scale: R of the family, 1/R the variance of a score per information;
    near: how much above the smallest predicted variance a wider bound may be; ends: lengths squared of a record at the farthest end of
    bounds, of its score and of N: a bound reaches the first where that is affordable, the other where it is cheap (`fisher_ends`).
    """

    counts: Array
    edges: Array
    sd: float
    gram: Array
    alpha: float
    mu: float
    records: float
    scale: float = 1.0
    near: float = 1.1
    ends: tuple[float, float] = (0.0, 0.0)

    @property
    def _seen(self) -> Array:
        return np.where(self.counts > _SEEN * self.sd, self.counts, 0.0)

    def bound(self) -> Bound:
        """The bound of the last step and the last round."""
        k, seen, edges = len(self.gram), self._seen, self.edges
        middles = np.concatenate([[_FIRST * edges[0]], np.sqrt(edges[:-1] * edges[1:]), [_LAST * edges[-1]]])
        mean = max(float(np.trace(self.gram)) / k, _LEAST_SHARE * self.records)
        least = max(float(np.linalg.eigvalsh(self.gram)[0]), 0.1 * mean)
        information = max(mean / self.records, _LEAST_MEAN)
        variances, noises = [], []
        for edge in edges:
            kept = max(information * float(seen @ np.minimum(middles, np.sqrt(edge * middles))) / k, 1.0)
            noise = sqrt(2 * k * edge) / (self.alpha * self.mu * kept)
            variances.append((1 / (self.scale * kept) + edge / (self.mu * kept) ** 2) * (1 + noise**2))
            noises.append(noise * mean / least)
        best = min(variances)
        costs = [(j, variance / best, noise) for j, (variance, noise) in enumerate(zip(variances, noises, strict=True))]
        cheap = max(j for j, cost, _ in costs if cost <= _CHEAP)
        near = max(j for j, cost, noise in costs if cost <= self.near or (cost <= _AFFORDED and noise <= _CLEAR))
        beyond = np.cumsum(seen[::-1])[::-1][1:]
        first = int(np.searchsorted(edges, k / 2 * (1 - 1e-9)))
        clear = next((j for j in range(first, len(edges)) if beyond[j] == 0), len(edges) - 1)
        score, whole = (int(np.searchsorted(edges, end * (1 - 1e-9))) for end in self.ends)
        place = max(min(max(clear, score), near), min(whole, cheap), first)
        far = self.counts[place + 1 :]
        less = (float(far.sum()) + _ONE_SIDED * self.sd * sqrt(len(far))) / self.records
        return Bound(sqrt(float(edges[place])), float(np.clip(less, 0.0, 1.0)))
