"""The distribution of a joint test's statistic, simulated from the noise that a release is known to hold.

An estimate's error is K (s + g): s the sampling of records, with covariance M (the "meat"), g privacy noise with the known covariance G.
M is released as M^ = M + noise of known size, so a Wald statistic with M^ in it has no table. What M may have been is drawn instead:

    M = (1 + tau x) S + (1 - kappa) D + sqrt(1 - kappa) E,   D = M^ - S,

S what M is if all residual variances are equal (A times one number, which noise leaves uncertain by tau), E noise like the release's.
kappa says how much of D is noise: with D's nu numbers normal about 0 with variance (noise)/kappa and a uniform prior it has the density
kappa^(nu/2) exp(-kappa chi/2) on (0, 1), chi = |D|^2 in noise units (Strawderman 1971). That M^ itself comes from finitely many records is
an inverse Wishart factor with as many degrees as records stand behind the restrictions. In coordinates where S is the identity
eigenvalues lie between 0 and 3, or what is seen: they are means of the records' variances over the average one. The statistic
is formed with the mean of K (M + G) K'; given M and a direction its square is a multiple of chi-square, whose tail is averaged: smooth,
and right in form to the extent that errors are normal.
Sources: Strawderman 1971 (prior); Gelman et al., Bayesian Data Analysis, 3.6 (inverse Wishart); Greene, Econometric Analysis, 5.4 (Wald).

Student's t and the normal distribution in one: degrees of freedom that may be infinite, one number or one for each estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide.noise import keyed_generator

Vector = NDArray[np.float64]

# Meats drawn; for each, inverse Wishart factors, and for each of those directions, along which the tail is exact: a p-value of 1e-3 is
# known to a few per cent, to about a tenth where only 20 records stand behind it.
_DRAWS = 1000
_FACTORS = 4
_DIRECTIONS = 4
# A priori M - S is at most this large against S, as a whole in units of the noise and in every direction. Errors whose sd is proportional
# to a normal feature x have E x^4 = 3 where equal variances have 1: M - S = 2 S in its direction, and less in others. As a whole it
# matters where noise is larger than S alone: with 1 sizes there are up to .08, with 4 those of 2 (matrices drawn for this, no table and
# no design that is reported).
_LARGEST = 2.0
# The level at which the degrees of freedom that are printed make F agree with the simulated distribution.
_LEVEL = 0.05
_GRID = (np.arange(400) + 0.5) / 400


@dataclass(frozen=True, eq=False)
class NoisyMiddleMatrix:
    """A released covariance of scores, (k, k): `values` = M + noise.

    `sd` (k, k): SD of the noise on the diagonal, and sqrt(2) times it off the diagonal (one number for a symmetric Gaussian matrix, 0 where
    nothing was drawn); shape (k, k): M if residual variances are equal; shape_sd: the relative standard deviation of shape's size.

    >>> NoisyMiddleMatrix(np.eye(2), np.full((2, 2), 0.1), np.eye(2), 0.05).draws(np.random.default_rng(1), 3).shape
    (3, 2, 2)
    """

    values: Vector
    sd: Vector
    shape: Vector
    shape_sd: float = 0.0

    def draws(self, generator: np.random.Generator, count: int) -> Vector:
        """What M may have been, (count, k, k), positive semi-definite."""
        k = len(self.values)
        known, precision = self._known
        shape, size_sd = self._sized(precision)
        rest = np.where(known, self.values - shape, 0.0)
        noise_part = self._noise_parts(generator.uniform(size=count))[:, None, None]
        triangle = np.triu(generator.standard_normal((count, k, k)), 1) / sqrt(2)
        noise = triangle + triangle.transpose(0, 2, 1)
        noise[:, range(k), range(k)] = generator.standard_normal((count, k))
        size = np.maximum(1 + size_sd * generator.standard_normal(count), 0.05)[:, None, None]
        drawn = size * shape + (1 - noise_part) * rest + np.sqrt(1 - noise_part) * self.sd * noise
        return self._possible(drawn, shape)

    def _possible(self, drawn: Vector, shape: Vector) -> Vector:
        """Draws without what no M can be: negative in a direction, or many times S in it.

        u'Mu / u'Su is a mean of the records' variances over the average one, so that in every direction it is at most 1 + _LARGEST but
        where the released values show more, by two SDs of their noise. Without it a direction in which S is small would have M as large
        as noise makes it.
        """
        sizes, axes = np.linalg.eigh((shape + shape.T) / 2)
        kept = sizes > 1e-12 * max(float(sizes[-1]), 1e-300)
        forth, back = axes[:, kept] / np.sqrt(sizes[kept]), axes[:, kept] * np.sqrt(sizes[kept])
        values, vectors = np.linalg.eigh(forth.T @ drawn @ forth)
        inside = forth @ vectors
        told = np.einsum("dik,ij,djk->dk", inside, self.values, inside)
        noise = np.sqrt(np.einsum("dik,ij,djk->dk", inside**2, self.sd**2, inside**2))
        most = np.maximum(1 + _LARGEST, told - 2 * noise)
        half = back @ (vectors * np.sqrt(np.clip(values, 0.0, most))[:, None, :])
        return np.asarray(half @ half.transpose(0, 2, 1))

    @property
    def own(self) -> float:
        """How much of M is its own, in [0, 1], and how much S, which all records make together: the mean of 1 - kappa."""
        return float(1 - self._noise_parts((np.arange(200) + 0.5) / 200).mean())

    @property
    def _known(self) -> tuple[NDArray[np.bool_], Vector]:
        """Which entries were drawn, and the precision of each."""
        known = self.sd > 0
        return known, np.where(known, 1 / np.where(known, self.sd, 1.0) ** 2, 0.0)

    def _noise_parts(self, uniform: Vector) -> Vector:
        """kappa at uniform numbers."""
        known, precision = self._known
        rest = np.where(known, self.values - self._sized(precision)[0], 0.0)
        free, chi = max(int(np.triu(known).sum()) - 1, 0), float((precision * rest**2).sum())
        # M - S twice as large as S throughout is the most that is believed without being seen
        seen = max(chi - free - 3 * sqrt(2 * free), 0.0)
        believed = max(_LARGEST**2 * float((precision * self.shape**2).sum()), seen) / max(free, 1)
        return _noise_part(uniform, free, chi, 1 / (1 + believed))

    def _sized(self, precision: Vector) -> tuple[Vector, float]:
        """The shape with the size that the meat and the family's own estimate say together, and the relative SD of that size."""
        told = float((precision * self.shape**2).sum())
        own = inf if self.shape_sd == 0 else 1 / self.shape_sd**2
        if told == 0 or own == inf:
            return self.shape, self.shape_sd
        from_meat = float((precision * self.shape * self.values).sum()) / told
        size = max((told * from_meat + own) / (told + own), 0.05)
        return size * self.shape, 1 / sqrt(told + own) / size


def _noise_part(uniform: Vector, free: int, chi: float, least: float) -> Vector:
    """Draws of kappa in (least, 1): a gamma distribution of shape free/2 + 1 and rate chi/2, cut there."""
    shape = free / 2 + 1
    below, above = special.gammainc(shape, least * chi / 2), special.gammainc(shape, chi / 2)
    if not above - below > 1e-12:  # all of it lies at one end
        return np.full(len(uniform), least if above > 0.5 else 1.0)
    drawn = special.gammaincinv(shape, below + uniform * (above - below)) * 2 / chi
    return np.asarray(np.clip(drawn, least, 1.0))


def _degrees(scale: Vector, q: int) -> float:
    """d for which F(q, d) has the 95% quantile of a chi-square with q degrees times a random scale, over q."""
    low, high = 0.0, 100.0 * q * float(scale.max())
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(special.gammaincc(q / 2, middle / 2 / scale).mean()) > _LEVEL
        low, high = (middle, high) if beyond else (low, middle)
    if special.gammaincc(q / 2, low / 2) >= _LEVEL * (1 - 1e-6):
        return inf
    small, large = 0.0, 20.0  # log of d
    for _ in range(40):
        middle = (small + large) / 2
        heavier = special.fdtrc(q, np.exp(middle), low / q) > _LEVEL
        small, large = (middle, large) if heavier else (small, middle)
    return float(np.exp(small))


@dataclass(frozen=True, eq=False)
class JointLaw:
    """What a family knows of its estimates' errors, K (s + g): enough to test several restrictions together.

    units K (p, K); noise G (K, K); meats: one for each response, in the order of the scores; records (p,): how many records, at least,
    stand behind each estimate; correlation (m, m) of the responses' residuals, None where it is not known (a test that ties r responses
    then counts each one's sampling r times, an upper bound for any correlation); key: a digest of what was drawn (`Release.drawn_sha256`).

    >>> meat = NoisyMiddleMatrix(np.eye(2), np.full((2, 2), 0.1), np.eye(2))
    >>> law = JointLaw(np.eye(2), np.zeros((2, 2)), (meat,), np.array([200.0, 200.0]), ("drawn",))
    >>> 0.045 < law.tail(np.eye(2) / np.sqrt(law.covariance(np.eye(2))[0, 0]), 6.0)[0] < 0.065  # chi-square: .0498
    True
    """

    units: Vector
    noise: Vector
    meats: tuple[NoisyMiddleMatrix, ...]
    records: Vector
    key: tuple[str, ...]
    correlation: Vector | None = None

    def of(self, rows: Vector) -> JointLaw:
        """The law of linear combinations, rows (q, p)."""
        behind = np.array([self._records(row[None, :]) for row in rows])
        law = replace(self, units=rows @ self.units, records=behind)
        law.__dict__.update({"_drawn": self._drawn} if "_drawn" in self.__dict__ else {})
        return law

    def covariance(self, rows: Vector) -> Vector:
        """The mean covariance of combinations that are tested together, (q, q): what their Wald statistic is formed with."""
        inner = rows @ self.units
        return np.asarray(self._mean_sampling(inner) + inner @ self.noise @ inner.T)

    def tail(self, rows: Vector, square: float) -> tuple[float, float]:
        """P(|rows error|^2 >= square) for rows (q, p) whose `covariance` is the identity, and a number of degrees of freedom d.

        F(q, d) has the same 95% quantile; d is inf where a chi-square's quantile is as large.
        """
        scale, degrees = self._told(rows)
        pvalue = float(special.gammaincc(len(rows) / 2, square / 2 / scale).mean())
        return pvalue, degrees

    # --- inside ------------------------------------------------------------------------------------------------------

    def _told(self, rows: Vector) -> tuple[Vector, float]:
        """Draws of the variance of a random direction, and the degrees of freedom; kept for the next value that is tested."""
        kept = self.__dict__.setdefault("_kept", {})
        key = rows.shape, rows.tobytes()
        if key not in kept:
            scale = self._scales(rows)
            kept.clear()
            kept[key] = scale, _degrees(np.quantile(scale, _GRID), len(rows))
        found: tuple[Vector, float] = kept[key]
        return found

    @cached_property
    def _drawn(self) -> tuple[Vector, ...]:
        generator = keyed_generator(*self.key, "joint test")
        return tuple(meat.draws(generator, _DRAWS) for meat in self.meats)

    def _mean_sampling(self, inner: Vector) -> Vector:
        """The mean of `_sampling`, without a draw of each where responses are apart."""
        if len(self.meats) > 1:
            mean = self._sampling(inner).mean(axis=0)
        else:
            mean = inner @ self._drawn[0].mean(axis=0) @ inner.T
        return np.asarray((mean + mean.T) / 2)

    def _sampling(self, inner: Vector) -> Vector:
        """Draws of the sampling part of the covariance of `inner` (q, K) scores, (draws, q, q)."""
        k = [len(meat.values) for meat in self.meats]
        parts = [inner[:, sum(k[:j]) : sum(k[: j + 1])] for j in range(len(k))]
        touched = [j for j, part in enumerate(parts) if np.any(part)]
        if len(touched) < 2 or self.correlation is None:
            whole = sum(
                (parts[j] @ self._drawn[j] @ parts[j].T for j in touched), np.zeros((_DRAWS, *(2 * (len(inner),))))
            )
            return np.asarray(max(len(touched), 1) * whole)
        halves = [parts[j] @ _root(self._drawn[j]) for j in touched]
        blocks = [
            self.correlation[j, i] * one @ other.transpose(0, 2, 1)
            for j, one in zip(touched, halves, strict=True)
            for i, other in zip(touched, halves, strict=True)
        ]
        return np.asarray(sum(blocks))

    def _scales(self, rows: Vector) -> Vector:
        """Draws of the variance of a random direction of the combinations' error, (draws,)."""
        q = len(rows)
        generator = keyed_generator(*self.key, "directions", str(q))
        inner = rows @ self.units
        values, vectors = np.linalg.eigh(self._sampling(inner))
        half = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
        half = np.tile(half, (_FACTORS, 1, 1))
        # S is known from all records, what M has of its own from those behind the restrictions
        own = max(meat.own for meat in self.meats) ** 2
        pooled = max(float(np.max(np.asarray(self.records))), self._records(rows))
        degrees = max(1 / (own / self._records(rows) + (1 - own) / pooled), q + 4.0)
        factor = np.tril(generator.standard_normal((len(half), q, q)), -1)
        factor[:, range(q), range(q)] = np.sqrt(generator.chisquare(degrees - np.arange(q), (len(half), q)))
        towards = generator.standard_normal((len(half), q, _DIRECTIONS))
        towards /= np.sqrt((towards**2).sum(axis=1, keepdims=True))
        sampled = degrees * (np.linalg.solve(factor, half @ towards) ** 2).sum(axis=1)
        noisy = (towards * ((inner @ self.noise @ inner.T) @ towards)).sum(axis=1)
        return np.asarray(np.maximum((sampled + noisy).ravel(), 1e-300))

    def _records(self, rows: Vector) -> float:
        used = np.any(rows != 0, axis=0)
        return float(np.append(np.asarray(self.records, dtype=np.float64)[used], inf).min())


def _root(matrices: Vector) -> Vector:
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1))


def quantile(half: float, df: ArrayLike) -> Vector:
    """The upper quantile at the tail probability `half` for each df; NaN where df is.

    >>> quantile(0.025, [float("inf"), 4.0]).round(2).tolist()
    [1.96, 2.78]
    """
    freedom = np.asarray(df, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        # scipy's t quantile has the wrong sign where it overflows, hence the absolute value
        own = np.abs(special.stdtrit(np.where(np.isinf(freedom), 1.0, freedom), half))
    return np.asarray(np.where(np.isinf(freedom), abs(special.ndtri(half)), own))


def two_sided(t: ArrayLike, df: ArrayLike) -> Vector:
    """P(|T| >= |t|) for each t and df.

    >>> two_sided([1.96, 1.96], [float("inf"), 4.0]).round(3).tolist()
    [0.05, 0.122]
    """
    size, freedom = -np.abs(np.asarray(t, dtype=np.float64)), np.asarray(df, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        tail = special.stdtr(np.where(np.isinf(freedom), 1.0, freedom), size)
    return np.asarray(2 * np.where(np.isinf(freedom), special.ndtr(size), tail))


def fewest(rows: Vector, df: ArrayLike) -> float | Vector:
    """The degrees of freedom of combinations, rows (q, p): for each the fewest of the estimates that it weighs.

    One number stays one number.
    """
    freedom = np.asarray(df, dtype=np.float64)
    if freedom.ndim == 0:
        return float(freedom)
    own = np.where(rows != 0, freedom, np.inf)
    return np.asarray(own.min(axis=1))


def weighted(rows: Vector, values: Vector) -> Vector:
    """rows @ values, where an estimate without weight does not count even if it is NaN: not answered."""
    unknown = np.isnan(values)
    if not unknown.any():
        return np.asarray(rows @ values)
    known = rows @ np.where(unknown, 0.0, values)
    return np.where((rows[:, unknown] != 0).any(axis=1), np.nan, known)


def spread(rows: Vector, covariance: Vector) -> Vector:
    """rows @ covariance @ rows', NaN for the combinations that weigh an estimate whose variance is NaN, and for no others."""
    unknown = np.isnan(np.diag(covariance))
    if not unknown.any() or unknown.all():
        return np.asarray(rows @ covariance @ rows.T)
    known = rows[:, ~unknown] @ covariance[np.ix_(~unknown, ~unknown)] @ rows[:, ~unknown].T
    missing = (rows[:, unknown] != 0).any(axis=1)
    known[missing] = known[:, missing] = np.nan
    return np.asarray(known)
