r"""What the noisy maximum of votes costs where the votes agree: GNMax, y = argmax_j (n_j + sigma N_j), N_j independent normal numbers.

One ballot moves one vote of each query, so that counts move by at most sqrt(2) and each query is at most a Gaussian mechanism with mu =
sqrt(2)/sigma. Where the winner comes out but for a probability of at most q < 1/2 it costs far less. Both bounds are of one direction,
D(M(X) || M(X')), which is what tests of a data-dependent loss need; none may be used reversed.

Collapsed Gaussian. For any event S of outputs, P(S) - gamma Q(S) is at most what Gaussian tails allow: with E = "another one wins", P(E)
<= q, the supremum over S in E and over S with S^c in E are tails of N(0, 1) against N(mu, 1) by Neyman and Pearson, and the largest of
both, convex in gamma, is exactly the profile of the pair in which the central region of P-mass 1 - 2q is one point, whose loss is

    log gamma_q = log (1 - 2q)/(Phi(z - mu) - Phi(-z - mu)),      Phi(-z) = q.

So this pair dominates, whatever the order. Less is merged for a larger q, so that the bound rises with q. And pairs
of several queries compose as privacy losses (`collapsed_loss`), or by their Renyi divergence (`collapsed_rdp`).

Published bound (Papernot et al. 2018, Theorem 6 with Proposition 10), v = sigma^2, m2 = sigma sqrt(-log q), m1 = m2 + 1, e_i = m_i/v:

    (1/(a-1)) log[(1-q) A^(a-1) + q B^(a-1)],  A = (1-q)/(1 - (q e^e2)^((m2-1)/m2)),  B = e^e1 q^(-1/(m1-1)),

for m2 > 1, a < m1, -log q > e2 and log q <= (m2-1) e2 - m2 [log(m1/(m1-1)) + log(m2/(m2-1))]; else a/v.

Probabilities are handled by their logarithms, down to q = e^-5000. What depends on votes is not private: everything here is for plans from
public simulations, for tests whose outcome is released instead, and for studies.
Source: the collapsed pair is derived in confide; dominating pairs: Zhu, Dong, Wang 2022.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, inf, log, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide.errors import PrivacyError
from confide.guarantees.mechanisms.classical import rdp_epsilon
from confide.guarantees.mechanisms.gaussian import gaussian_epsilon
from confide.guarantees.privacy_loss import PrivacyLoss
from confide.guarantees.validation import level, real

Floats = NDArray[np.float64]

#: Orders of Renyi bounds.
GNMAX_ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 20)),
    *(3 + half / 2 for half in range(34)),
    *(20.0 + 2 * step for step in range(22)),
    *(float(order) for order in np.geomspace(64, 1024, 40)),
)

# Beyond this quantile the tails of 10,000 queries together are below 1e-14.
_FARTHEST = 9.5
# Quantiles of q are taken down to this grid.
_GRID = 0.05
_POINTS = 2048


def gnmax_log_error(votes: ArrayLike, sigma: float) -> Floats:
    """log of a bound on P(another label than the most frequent one comes out), (queries,); votes: (queries, classes).

    min(sum_j Phibar((n_1 - n_j)/(sqrt(2) sigma)), 1 - 1/C) (Papernot et al. 2018, Proposition 7).

    >>> gnmax_log_error([[40, 10, 0]], 5.0).round(3).tolist()
    [-11.413]
    """
    counts = np.sort(np.atleast_2d(np.asarray(votes, dtype=np.float64)), axis=1)[:, ::-1]
    if counts.shape[1] < 2:
        raise PrivacyError(f"votes must have at least two classes, got {counts.shape[1]}")
    scale = sqrt(2) * level(sigma, "sigma", "gnmax_log_error(votes, 40.0)")
    logs = special.log_ndtr(-(counts[:, :1] - counts[:, 1:]) / scale)
    top = logs.max(axis=1)
    total = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
    return np.asarray(np.minimum(total, log1p(-1 / counts.shape[1])))


def published_rdp(log_error: ArrayLike, order: float, sigma: float) -> Floats:
    """The published bound at one order, by query; shape of `log_error`.

    >>> float(published_rdp(-8.0, 20.0, 40.0)).__format__(".4g")
    '0.0002947'
    """
    a, v = _order(order), level(sigma, "sigma", "published_rdp(-8.0, 20.0, 40.0)") ** 2
    lq = np.atleast_1d(np.asarray(log_error, dtype=np.float64))
    whole = np.full(lq.shape, a / v)
    with np.errstate(all="ignore"):
        m2 = sqrt(v) * np.sqrt(-lq)
        m1 = m2 + 1
        e1, e2 = m1 / v, m2 / v
        fits = (m2 > 1) & (a < m1) & (-lq > e2)
        fits &= lq <= (m2 - 1) * e2 - m2 * (np.log(m1 / (m1 - 1)) + np.log(m2 / (m2 - 1)))
        log_stay = np.log1p(-np.exp(lq))
        log_a = log_stay - np.log(-np.expm1((lq + e2) * (m2 - 1) / m2))
        log_b = e1 - lq / (m1 - 1)
        own = np.logaddexp(log_stay + (a - 1) * log_a, lq + (a - 1) * log_b) / (a - 1)
    found = np.where(fits & (own < whole), np.maximum(own, 0.0), whole)
    return np.asarray(found.reshape(np.shape(log_error)))


def collapsed_rdp(log_error: ArrayLike, order: ArrayLike, sigma: float) -> Floats:
    """The collapsed-Gaussian bound, by query and order (broadcast); rises with the error.

    log moment/(a-1), at most a v/2, with `v = mu^2` and moment = e^(a(a-1) v/2) [Phibar(z - (a-1) mu) + Phi(-z -
    (a-1) mu)] + (1-2q) gamma_q^(a-1).

    >>> bool(collapsed_rdp(-8.0, 20.0, 40.0) <= published_rdp(-8.0, 20.0, 40.0))
    True
    """
    mu = sqrt(2) / level(sigma, "sigma", "collapsed_rdp(-8.0, 20.0, 40.0)")
    lq, a = np.broadcast_arrays(np.asarray(log_error, dtype=np.float64), np.asarray(order, dtype=np.float64))
    whole = a * mu * mu / 2
    with np.errstate(all="ignore"):
        z = -special.ndtri_exp(np.minimum(lq, -log(2)))
        up = a - 1
        tails = a * up * mu * mu / 2 + np.logaddexp(special.log_ndtr(up * mu - z), special.log_ndtr(-z - up * mu))
        log_gamma = _log_gamma(lq, z, mu)
        # gamma^(a-1) (1 - 2q) - 1 and the tails, both small: log1p of their sum
        centre = np.log1p(-2 * np.exp(lq)) + up * log_gamma
        rise = np.expm1(centre) + np.exp(np.minimum(tails, 700.0))
        own = np.where(tails < 0, np.log1p(np.maximum(rise, 0.0)), np.logaddexp(tails, centre)) / up
    found = np.where((lq < -log(2)) & (own < whole), np.maximum(own, 0.0), whole)
    return np.asarray(found)


def _log_gamma(lq: Floats, z: Floats, mu: float) -> Floats:
    """log (1 - 2q)/(Phi(z - mu) - Phi(-z - mu)), without losing a small one to cancellation."""
    # the Q-mass of both tails less the P-mass: 1 - that is the centre's
    outside = np.exp(special.log_ndtr(mu - z)) + np.exp(special.log_ndtr(-z - mu))
    return np.asarray(np.log1p(-2 * np.exp(lq)) - np.log1p(-outside))


def collapsed_loss(
    quantile: float, sigma: float, *, step: float | None = None, high: float | None = None
) -> PrivacyLoss:
    """The privacy loss of the collapsed pair at z, Phi(-z) = q; z = 0 is the Gaussian mechanism.

    step, high: of the grid from -high to high; by default for one query.

    >>> one = collapsed_loss(0.0, 5.0)
    >>> round(one.power(100).epsilon(1e-5), 3), round(gaussian_epsilon(1e-5, sqrt(200) / 5), 3)
    (15.456, 15.456)
    """
    z = max(real(quantile, "quantile", "collapsed_loss(2.0, 5.0)"), 0.0)
    mu = sqrt(2) / level(sigma, "sigma", "collapsed_loss(2.0, 5.0)")
    reach = high or mu * mu / 2 + 10 * mu
    size = step or reach / _POINTS
    points = ceil(reach / size)
    edges = size * np.arange(-points, points + 1)
    x: Floats = np.asarray(
        (mu * mu / 2 - edges) / mu, dtype=np.float64
    )  # the loss exceeds an edge where the observation is below this
    p = _outside(x, z, 0.0)
    q = _outside(x, z, mu)
    atoms = []
    if z > 0:
        tail = float(special.log_ndtr(-z))
        atoms = [(float(_log_gamma(np.array(tail), np.array(z), mu)), float(-np.expm1(tail + log(2))))]
    return PrivacyLoss.from_tails(p, q, step=size, first=-points, atoms=atoms)


def _outside(x: Floats, z: float, shift: float) -> Floats:
    """The mass of N(shift, 1) below x and outside (-z, z), by the tail that is small."""
    low = np.exp(special.log_ndtr(np.minimum(x, -z) - shift))
    between = special.ndtr(-np.maximum(z, -np.inf) + shift) - special.ndtr(-(np.maximum(x, z) - shift))
    return np.asarray(low + np.where(x > z, np.maximum(between, 0.0), 0.0))


def composed_loss(log_errors: ArrayLike, sigma: float) -> PrivacyLoss:
    """The privacy loss of queries together, from log q of each; quantiles are taken down to a grid of 1/20, which is safe.

    10,000 queries take a few seconds.

    >>> both = composed_loss([-12.0, -0.1], 20.0)
    >>> both.epsilon(1e-6) < gaussian_epsilon(1e-6, 2 / 20)
    True
    """
    lq = np.atleast_1d(np.asarray(log_errors, dtype=np.float64))
    z = np.where(lq < -log(2), -special.ndtri_exp(np.minimum(lq, -log(2))), 0.0)
    cells, times = np.unique(np.floor(np.minimum(z, _FARTHEST) / _GRID).astype(np.int64), return_counts=True)
    # connecting the dots adds step^2/6 to the variance mu^2 of each query: at most 1/400 of it, less for few queries
    mu = sqrt(2) / sigma
    step = mu * min(max(sqrt(len(lq)) / 800, 1 / 200), 1 / 8)
    return PrivacyLoss.repeated(
        (collapsed_loss(float(cell) * _GRID, sigma, step=step), int(k)) for cell, k in zip(cells, times, strict=True)
    )


def gnmax_epsilon(
    votes: ArrayLike, sigma: float, delta: float, *, bound: str = "pairs", orders: Iterable[float] = GNMAX_ORDERS
) -> float:
    """epsilon at delta of the labels, given the votes: NOT PRIVATE, of use for planning on public simulations.

    bound: "pairs" (collapsed pairs composed as privacy losses), "collapsed" or "published" (Renyi bounds), "gaussian" (no votes needed).

    >>> import numpy as np
    >>> votes = np.tile([380, 20], (200, 1))
    >>> [round(gnmax_epsilon(votes, 40.0, 1e-5, bound=one), 2) for one in ("gaussian", "published", "collapsed")]
    [1.99, 0.1, 0.09]
    """
    lq = gnmax_log_error(votes, sigma)
    if bound == "gaussian":
        return gaussian_epsilon(delta, sqrt(2 * len(lq)) / sigma)
    if bound == "pairs":
        return composed_loss(lq, sigma).epsilon(delta)
    known = {"collapsed": collapsed_rdp, "published": published_rdp}
    if bound not in known:
        raise PrivacyError(f"bound must be one of pairs, collapsed, published, gaussian, got {bound!r}")
    own = tuple(orders)
    sums = [float(np.sum(known[bound](lq, a, sigma))) for a in own]
    return max(rdp_epsilon(log(delta), own, sums), 0.0)


def _order(order: float) -> float:
    a = real(order, "order", "published_rdp(-8.0, 20.0, 40.0)")
    if not 1 < a < inf:
        raise PrivacyError(f"order must be a finite number above 1, got {order!r}")
    return a
