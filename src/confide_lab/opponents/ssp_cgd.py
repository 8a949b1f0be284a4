"""SSP-CGD and SSP-CGD2: a noisy line, then noisy steps on clipped scores in whitened coordinates; opponents of SSP2, which they lost to.

A first release of noisy moments gives a line, a whitening of the features and the scale of the residuals. Each further step pays for a
residual's clipped score in whitened coordinates alone, and the last releases (curvature K, spread J of the scores) give an interval.
SSP-CGD2 whitens a second time, by a noisy curvature released half way, for features that are nearly collinear.

Estimates the root of the clipped and weighted score: the line where errors are symmetric about it; for skewed errors independent of the
features its slopes alone; where the line is an approximation, a robust projection that is not that of least squares.

What a record can move, for any x and any y (z = (1, x in units of the box), q = z whitened, w <= cap/|q|^2, f <= clip/(w |q| |r|)):
|w f r q| <= clip, |w q q'| <= cap, |(w f r)^2 q q'| <= clip^2, a count by 1, and the moments by R2 + g2 in the metric of their noise, as in
`confide.methods.regression.ssp.method`. Each is a Gaussian release given what came before it, so that the squares of their mu add up to
mu^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from confide_lab.opponents.ranges import Spend, box_of, noisy_ranges, spent
from confide_lab.published.marks import published

__all__ = ["curvature", "moments", "score", "spent", "spread", "ssp_cgd", "ssp_cgd2", "whitened"]

Array = NDArray[np.float64]

# Shares of mu^2 of the count and of the ranges, which every method of the comparison pays.
_COUNT, _RANGES = 0.01, 0.10
# Share of a step that goes to the count of scores within the clip.
_WITHIN = 0.03
_ETA = 0.75
# No record's leverage is taken to be more than so many times the average one.
_LEVERAGE = 3.0
# Share of the full shrinkage of K and J towards multiples of the identity: 1 covers too little, 0 too much.
_SHRINK = 0.3
# An interval needs a curvature this even, a last score this small beside its noise, and so many scores within the clip.
_EVEN, _SETTLED, _INSIDE = 0.3, 8.0, 0.5
_WHY = (
    "no method of the library: it loses to SSP2 on fresh designs; below mu n = 150 (d + 1) its lines are often off by orders of magnitude",
    "sums are sums of floats: the noise is calibrated to real numbers, which rounding does not keep to",
    "intervals cover the root of a robust score, which is the slope of least squares only where the line is right",
)


# one record's part ----------------------------------------------------------------------------------------------------


def moments(z: Array, t: Array, r2: float) -> tuple[Array, Array, float]:
    """sum w z z' (k, k), sum w z t (k,), sum w t^2 with w = min(1, r2/|z|^2), of rows z (n, k) that begin with 1 and |t| <= 1.

    A record moves (A, sqrt(2 g2) b, g2 q) by w (|z|^2 + g2 t^2) <= r2 + g2 for any g2.
    """
    w = np.minimum(1.0, r2 / np.einsum("ij,ij->i", z, z))
    weighted = z * w[:, None]
    return weighted.T @ z, weighted.T @ t, float(w @ t**2)


def whitened(z: Array, root: Array, cap: float) -> tuple[Array, Array, Array]:
    """q = root' z, |q| and w = min(1, cap/|q|^2) of rows z (n, k): w |q|^2 <= cap."""
    q = z @ root
    length = np.sqrt(np.einsum("ij,ij->i", q, q))
    return q, length, np.minimum(1.0, cap / np.maximum(length**2, 1e-300))


def score(q: Array, length: Array, w: Array, r: Array, clip: float) -> tuple[Array, int]:
    """sum w f r q, f = min(1, clip/(w |q| |r|)), and how many have f = 1. A record moves the sum by clip at most.

    >>> score(np.array([[3.0, 4.0]]), np.array([5.0]), np.array([1.0]), np.array([7.0]), 0.5)
    (array([0.3, 0.4]), 0)
    """
    size, f = _clipped(length, w, r, clip)
    return (w * f * r) @ q, int(np.count_nonzero(size <= clip))


def curvature(q: Array, length: Array, w: Array, r: Array, clip: float) -> Array:
    """sum w 1{w |q| |r| <= clip} q q', (k, k). A record moves it by the cap of w |q|^2 at most, in the Frobenius norm."""
    size, _ = _clipped(length, w, r, clip)
    found: Array = (q * (w * (size <= clip))[:, None]).T @ q
    return found


def spread(q: Array, length: Array, w: Array, r: Array, clip: float) -> Array:
    """sum (w f r)^2 q q', (k, k). A record moves it by clip^2 at most, in the Frobenius norm."""
    _, f = _clipped(length, w, r, clip)
    terms = q * (w * f * r)[:, None]
    found: Array = terms.T @ terms
    return found


def _clipped(length: Array, w: Array, r: Array, clip: float) -> tuple[Array, Array]:
    size = w * length * np.abs(r)
    return size, np.minimum(1.0, clip / np.maximum(size, 1e-300))


# the parts of both methods --------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """Rows z (n, k) and response t (n,) in units of the box, the generator, mu of what is left, and what was spent."""

    z: Array
    t: Array
    rng: np.random.Generator
    mu: float
    spends: list[Spend]
    middle: Array
    half: Array
    y0: float
    hy: float
    # after the start
    theta: Array
    root: Array
    records: float = 1.0
    clip: float = 1.0
    # after the last step
    within: float = 1.0
    noise: float = 1.0
    gain: float = _ETA
    settled: float = 0.0

    @property
    def k(self) -> int:
        return len(self.theta)

    @property
    def cap(self) -> float:
        return _LEVERAGE * self.k / self.records

    def draw(self, name: str, sensitivity: float, share: float) -> float:
        """Standard deviation of the noise of a release with that share of mu^2, which is charged."""
        sd = sensitivity / (sqrt(share) * self.mu)
        self.spends.append(Spend(name, sensitivity, sd))
        return sd

    def symmetric(self) -> Array:
        """Symmetric noise (k, k): variance 1 on the diagonal, 1/2 off it; 1 in every direction of the Frobenius norm."""
        noise = self.rng.standard_normal((self.k, self.k))
        return (noise + noise.T) / 2

    def rows(self) -> tuple[Array, Array, Array]:
        return whitened(self.z, self.root, self.cap)

    def residual(self) -> Array:
        found: Array = self.t - self.z @ self.theta
        return found


def _begin(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float,
    binary: NDArray[np.bool_] | None,
    recenter: str | bool,
) -> _Run:
    """Count and ranges, where asked for, and the records in units of the box."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    middle, half = box_of(x_bounds)
    spends, rest, wanted = [], 1.0, recenter is True
    if recenter == "auto":
        spends.append(Spend("count", 1.0, 1 / (sqrt(_COUNT) * mu)))
        count = len(x) + spends[0].sd * rng.standard_normal()
        rest, wanted = rest - _COUNT, mu * count >= 30 * (len(half) + 1)
    if wanted and (binary is None or not binary.all()):
        middle, half, spend = noisy_ranges(x, rng, x_bounds=x_bounds, mu=sqrt(_RANGES) * mu, binary=binary)
        spends.append(spend)
        rest -= _RANGES
    y0, hy = (y_bounds[0] + y_bounds[1]) / 2, (y_bounds[1] - y_bounds[0]) / 2
    z = np.column_stack([np.ones(len(x)), (x - middle) / half])
    t = np.clip((y - y0) / hy, -1.0, 1.0)
    k = z.shape[1]
    return _Run(z, t, rng, sqrt(rest) * mu, spends, middle, half, y0, hy, np.zeros(k), np.eye(k))


def _start(run: _Run, share: float) -> None:
    """Noisy moments of weighted rows: a line, a whitening with noise-aware shrinkage, a count and the scale of residuals."""
    k, rng = run.k, run.rng
    r2 = 1 + (k - 1) / 3
    g2 = (sqrt(1 + 4 * r2) - 1) / 2  # the split for |theta|^2 about 1/2
    sd = run.draw("moments", r2 + g2, share)
    exact = moments(run.z, run.t, r2)
    gram: Array = exact[0] + sd * run.symmetric()
    cross: Array = exact[1] + sd / sqrt(2 * g2) * rng.standard_normal(k)
    square = exact[2] + sd / g2 * rng.standard_normal()
    # residual variance around the unshrunk line, with the noise's own share added back
    line = np.linalg.solve(gram, cross)
    own = (sd**2 / (2 * g2) + sd**2 * (line @ line) / 2) * np.eye(k) + sd**2 / 2 * np.outer(line, line)
    rss = square - 2 * line @ cross + line @ gram @ line + np.trace(np.linalg.solve(gram, own))
    s2 = float(np.clip(rss / max(gram[0, 0] - k, 1.0), 1e-4, 1.0))
    run.records = max(float(gram[0, 0]), 3.0 * k)
    # correlations pulled towards 0 by the known size of their noise
    scale = np.maximum(np.diag(gram), 0.02 * run.records)
    scale[0] = run.records
    above = np.triu_indices(k, 1)
    outer = np.outer(scale, scale)
    correlation = gram / np.sqrt(outer)
    noisy_part = float((sd**2 / 2 / outer)[above].sum() / (correlation[above] ** 2).sum())
    shrunk = max(0.0, 1 - noisy_part) * correlation
    np.fill_diagonal(shrunk, 1.0)
    values, vectors = np.linalg.eigh(shrunk)
    inner = (vectors * np.maximum(values, 0.05)) @ vectors.T * np.sqrt(outer)
    run.root = _power(inner)
    theta = np.linalg.solve(inner + sd * sqrt(k / 2) * np.eye(k), cross)
    run.theta = np.multiply(theta, min(1.0, 1.5 / max(float(np.linalg.norm(theta)), 1e-300)), dtype=np.float64)
    run.clip = float(np.clip(sqrt(s2), 0.02, 0.5)) * sqrt(k / run.records)


def _power(matrix: Array) -> Array:
    """matrix^(-1/2), symmetric."""
    values, vectors = np.linalg.eigh(matrix)
    found: Array = (vectors / np.sqrt(values)) @ vectors.T
    return found


def _steps(run: _Run, count: int, share: float, target: float) -> None:
    """Noisy scores, each with an equal part of the share; the clip follows the share of scores within it."""
    q, length, w = run.rows()
    for _ in range(count):
        each = share / count
        run.noise = run.draw("score", run.clip, (1 - _WITHIN) * each)
        inside = run.draw("within", 1.0, _WITHIN * each)
        total, kept = score(q, length, w, run.residual(), run.clip)
        noisy = total + run.noise * run.rng.standard_normal(run.k)
        run.within = (kept + inside * run.rng.standard_normal()) / run.records
        run.gain = _ETA / float(np.clip(run.within, 0.5, 1.0))
        run.settled = float(noisy @ noisy) / (run.k * run.noise**2)
        run.theta = run.theta + run.gain * (run.root @ noisy)
        run.clip *= exp(-(float(np.clip(run.within, 0.0, 1.0)) - target))


def _whiten_again(run: _Run, share: float) -> None:
    """Coordinates in which a noisy curvature is even; eigenvalues below its noise are taken to be as large as that."""
    sd = run.draw("whitening", run.cap, share)
    values, vectors = np.linalg.eigh(curvature(*run.rows(), run.residual(), run.clip) + sd * run.symmetric())
    values = np.maximum(values, sd * sqrt(2 * run.k))
    run.root = run.root @ (vectors / np.sqrt(values / np.median(values))) @ vectors.T


def _end(run: _Run, share: float, count: int, alpha: float) -> dict[str, Any]:
    """Curvature and spread of the scores, and the interval from them, where the flags allow one."""
    k, rows, r = run.k, run.rows(), run.residual()
    sd = run.draw("curvature", run.cap, share / 2)
    bend = _shrunk(curvature(*rows, r, run.clip) + sd * run.symmetric(), sd)
    sd = run.draw("spread", run.clip**2, share / 2)
    meat = _shrunk(spread(*rows, r, run.clip) + sd * run.symmetric(), sd)
    mean, least = float(np.trace(bend)) / k, float(np.linalg.eigvalsh(bend)[0])
    evenness = least / mean if mean > 0 else 0.0
    found: dict[str, Any] = {"within": run.within, "evenness": evenness, "settled": run.settled}
    d = k - 1
    beta = run.hy * run.theta[1:] / run.half
    found |= {
        "theta": run.theta,
        "beta": beta,
        "intercept": float(run.y0 + run.hy * run.theta[0] - beta @ run.middle),
        "spends": tuple(run.spends),
    }
    if not (evenness >= _EVEN and run.settled <= _SETTLED and run.within >= _INSIDE):
        return {**found, "se": np.full(d, nan), "interval": np.full((d, 2), nan), "status": "imprecise"}
    bend = _floored(bend, 0.3 * mean)
    inverse = np.linalg.inv(bend)
    meat = _floored(meat, 0.2 * max(float(np.trace(meat)) / k, 0.0))
    # noise of a step, of which each later step leaves the part I - gain K
    left, own, power = np.eye(k) - run.gain * bend, np.zeros((k, k)), np.eye(k)
    for _ in range(count):
        own += (run.gain * run.noise) ** 2 * power @ power.T
        power = left @ power
    df = run.records - k
    cov = run.root @ (inverse @ meat @ inverse * run.records / df + own) @ run.root.T
    se = np.sqrt(np.diag(cov)[1:]) * run.hy / run.half
    reach = float(stats.t.ppf(1 - alpha / 2, df)) * se
    return {**found, "se": se, "interval": np.column_stack([beta - reach, beta + reach]), "status": "valid"}


def _shrunk(matrix: Array, sd: float) -> Array:
    """Its deviation from a multiple of the identity, less the part that its noise explains."""
    k = len(matrix)
    level = np.trace(matrix) / k * np.eye(k)
    away = matrix - level
    found: Array = level + max(0.0, 1 - _SHRINK * k * (k + 1) / 2 * sd**2 / float((away**2).sum())) * away
    return found


def _floored(matrix: Array, least: float) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    found: Array = (vectors * np.maximum(values, least)) @ vectors.T
    return found


# the methods ----------------------------------------------------------------------------------------------------------


@published("mu-GDP when a record is added or removed", *_WHY)
def ssp_cgd(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float,
    recenter: str | bool = "auto",
    binary: NDArray[np.bool_] | None = None,
    target: float = 0.8,
    shares: tuple[float, float, float] = (0.25, 0.60, 0.15),
    steps: int = 4,
    alpha: float = 0.05,
) -> dict[str, Any]:
    """A line with intercept by a start and four steps. x: shape (n, d); y: (n,); x_bounds: (d, 2); binary: columns (d,) of 0 and 1.

    shares: of mu^2 for start, steps, and curvature with spread. recenter: "auto" (noisy count, and ranges from mu n = 30 (d + 1)), True
    or False. Returns beta (d,), intercept, se (d,) and interval (d, 2) of the slopes (NaN unless status is "valid"), status, theta (d +
    1,) in units of the box, within, evenness and settled (what the status goes by), spends.

    >>> g = np.random.default_rng(1)
    >>> x = g.random((4000, 2))
    >>> box = np.tile([0.0, 1.0], (2, 1))
    >>> found = ssp_cgd(x, x @ [1.0, 2.0] + g.normal(0, 1, 4000), g, x_bounds=box, y_bounds=(-3, 6), mu=1.0)
    >>> bool(np.abs(found["beta"] - [1.0, 2.0]).max() < 0.2), found["status"], round(spent(found["spends"]), 12)
    (True, 'valid', 1.0)
    """
    run = _begin(x, y, rng, x_bounds, y_bounds, mu, binary, recenter)
    first, middle, last = shares
    _start(run, first)
    _steps(run, steps, middle, target)
    return _end(run, last, steps, alpha)


@published("mu-GDP when a record is added or removed", *_WHY)
def ssp_cgd2(
    x: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    x_bounds: Array,
    y_bounds: tuple[float, float],
    mu: float,
    recenter: str | bool = "auto",
    binary: NDArray[np.bool_] | None = None,
    target: float = 0.8,
    shares: tuple[float, float, float, float, float] = (0.20, 0.30, 0.08, 0.32, 0.10),
    steps: tuple[int, int] = (3, 3),
    alpha: float = 0.05,
) -> dict[str, Any]:
    """The same with a second whitening. shares: of mu^2 for start, first steps, whitening, second steps, and curvature with spread."""
    run = _begin(x, y, rng, x_bounds, y_bounds, mu, binary, recenter)
    start, first, again, second, last = shares
    _start(run, start)
    _steps(run, steps[0], first, target)
    _whiten_again(run, again)
    _steps(run, steps[1], second, target)
    return _end(run, last, steps[1], alpha)
