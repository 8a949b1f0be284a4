"""The sandwich of a least-squares line from released sums, and what is known of its noise: what intervals and joint tests follow from.

delta = A^-1 b in coordinates v = M z; coefficient j is c_j'delta + shift_j. With K = C A^-1 its variance is K (meat + G) K',

    G = (R^2/mu_b^2 + SA^2 |delta|^2/2) I + (SA^2/2) delta delta',

the covariance of (noise of b) - (noise of A) delta.

What a release of several rounds says of where they stood: the same for a line of least squares and for a likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from confide._arrays import Array
from confide.core import Release, ResultOptions
from confide.methods.regression.evidence.sample_size_advice import REACH, far_words, reaches
from confide.methods.regression.sums.linear_rows import ranged
from confide.results.inference.simulated_null import JointLaw, NoisyMiddleMatrix
from confide.results.pages.table import sampling_alone
from confide.schema import ModelMatrix
from confide.sums.clusters.cluster_covariance import Counting
from confide.sums.coding import Box

# Student's t below this many degrees of freedom would be wider than what the noise can do.
_LEAST_DF = 3.0
#: The sampling variance is at least this part of the classical one: noise may leave almost nothing of a meat in some direction.
FLOOR = 0.7
# Instead of 0 where a coefficient is not in these sums at all.
_NONE = 1e-300
#: The noise of A may move a coefficient in second order by at most this part of what moves it in first order.
USABLE = 0.33


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Released sums in v, the noise of each, and the coefficients that are read from them.

    gram, cross, meat, square : array or float
        A (p, p), b (p,), the meat (p, p), q.
    sd_gram, sd_meat : float
        SD of the symmetric noise on the diagonal (1/sqrt(2) of it off the diagonal).
    sd_cross, sd_square : float
        SD of the noise.
    rows, shift : array
        C (k, p): coefficients are C delta + shift.
    axis : array
        (p,): e'v = 1 for every record.
    s2 : float
        Residual variance.
    weights, support : array
        f^2 (p,) and shares (p,) of the records that each coordinate rests on.
    cut : float
        About what limits took from each coordinate of the meat.
    units : int, optional
        How many the meat is a sum over, where that is not the count of records.
    floor : float
        The least part of the classical variance that a sampling variance may be.
    """

    gram: Array
    cross: Array
    square: float
    meat: Array
    sd_gram: float
    sd_cross: float
    sd_square: float
    sd_meat: float
    rows: Array
    shift: Array
    axis: Array
    s2: float
    weights: Array
    support: Array
    cut: float = 0.0
    units: float | None = None
    floor: float = FLOOR

    @property
    def positive(self) -> bool:
        """Whether A is positive definite."""
        return bool(np.linalg.eigvalsh(self.gram)[0] > 0)

    @property
    def count(self) -> float:
        """n_A = e'Ae, at least 1."""
        return max(float(self.axis @ self.gram @ self.axis), 1.0)

    @property
    def independent(self) -> float:
        """How many independent terms the meat is a sum of: records, or units where several rows of each count."""
        return self.count if self.units is None else max(self.units, 1.0)

    @cached_property
    def bread(self) -> Array:
        """A^-1, (p, p)."""
        inverse = np.linalg.inv(self.gram)
        return np.asarray((inverse + inverse.T) / 2)

    @property
    def delta(self) -> Array:
        """A^-1 b, (p,)."""
        return np.asarray(np.linalg.solve(self.gram, self.cross))

    @property
    def spread(self) -> Array:
        """K = C A^-1, (k, p)."""
        return self.rows @ self.bread

    @property
    def estimates(self) -> Array:
        """C delta + shift, (k,)."""
        return self.rows @ self.delta + self.shift

    def noise(self, delta: Array) -> Array:
        """G(delta), (p, p)."""
        half = self.sd_gram**2 / 2
        size = self.sd_cross**2 + half * float(delta @ delta)
        return np.asarray(size * np.eye(len(delta)) + half * np.outer(delta, delta))

    @property
    def noise_covariance(self) -> Array:
        """K G K', (k, k): the part of the covariance that is privacy noise."""
        return self.spread @ self.noise(self.delta) @ self.spread.T

    @property
    def whole_meat(self) -> Array:
        """The meat with what its limit is thought to have cut off, (p, p)."""
        return np.asarray(self.meat + self.cut * np.eye(len(self.meat)))

    @cached_property
    def sampling(self) -> Array:
        """The sampling variance of each coefficient, (k,): robust, and at least a part of the classical one."""
        k, n = self.spread, self.independent
        robust = np.einsum("ij,jk,ik->i", k, self.whole_meat, k) * n / max(n - len(self.cross), 1.0)
        classical = self.s2 * np.einsum("ij,jk,ik->i", k, self.gram, k)
        return np.asarray(np.maximum(robust, self.floor * classical))

    def alone(self, factor: float | None = None, light: float = 1.0) -> Array:
        """`sampling` without anything that is allowed for because of noise, (k,).

        factor: of the meat; light: of the classical one.
        """
        k, n = self.spread, self.independent
        stretch = n / max(n - len(self.cross), 1.0) if factor is None else factor
        robust, classical = (np.einsum("ij,jk,ik->i", k, each, k) for each in (self.meat, self.s2 * self.gram))
        alone = sampling_alone(stretch * robust, stretch * self.sd_meat * (k**2).sum(axis=1), light * classical)
        return np.minimum(alone, self.sampling)

    @property
    def variances(self) -> Array:
        """Sampling and privacy noise of each coefficient, (k,)."""
        return self.sampling + np.diag(self.noise_covariance)

    @property
    def covariance(self) -> Array:
        """(k, k), with `variances` on the diagonal and no negative eigenvalue.

        The meat without its negative eigenvalues gives the correlations, which are carried to the variances.
        """
        k = self.spread
        values, vectors = np.linalg.eigh((self.whole_meat + self.whole_meat.T) / 2)
        meat = (vectors * np.maximum(values, 0.0)) @ vectors.T
        whole = k @ (meat + self.noise(self.delta)) @ k.T
        stretch = np.sqrt(self.variances / np.maximum(np.diag(whole), _NONE))
        return np.asarray((whole + whole.T) / 2 * np.outer(stretch, stretch))

    @property
    def df(self) -> Array:
        """Degrees of freedom of each variance, (k,): by its noise, and by the records that it rests on (Satterthwaite 1946)."""
        noise = (self.sd_meat * (self.spread**2).sum(axis=1)) ** 2
        whole = noise + 2 * self.sampling**2 / np.maximum(self.records, _NONE)
        return np.asarray(np.maximum(2 * self.variances**2 / np.maximum(whole, _NONE), _LEAST_DF))

    @property
    def records(self) -> Array:
        """How many records stand behind the sampling variance of each coefficient, (k,)."""
        part = self.spread**2 * self.weights
        whole = (part**2 / np.maximum(self.independent * self.support, 1.0)).sum(axis=1)
        return np.asarray(part.sum(axis=1) ** 2 / np.maximum(whole, 1e-300))

    def law(self, key: tuple[str, ...]) -> JointLaw:
        """What the sums say of the errors of all coefficients together; key: digests of the release and the question."""
        n, shape = self.count, self.s2 * (self.gram + self.gram.T) / 2
        stretch = self.independent / max(self.independent - len(self.cross), 1.0)
        uncertain = float(np.sqrt((self.sd_square / (n * self.s2)) ** 2 + 2 / n))
        meat = NoisyMiddleMatrix(
            self.whole_meat * stretch, np.full_like(shape, self.sd_meat * stretch), shape, uncertain
        )
        return JointLaw(self.spread, self.noise(self.delta), (meat,), self.records, key)

    @cached_property
    def second_order(self) -> Array:
        """eta (k,): by how much the noise of A moves each coefficient in second order, per first order."""
        values, vectors = np.linalg.eigh((self.gram + self.gram.T) / 2)
        root = (vectors / np.sqrt(values)) @ vectors.T
        u = self.rows @ root
        u = u / np.maximum(np.linalg.norm(u, axis=1), 1e-300)[:, None]
        h = np.einsum("ij,jk,ik->i", u, self.bread, u)
        return np.asarray(self.sd_gram * np.sqrt(h * float(np.trace(self.bread)) / 2 + h**2 / 2))

    @property
    def demand(self) -> Array:
        """How many times as many records, or how much a mu, each coefficient needs: above 1 it cannot be had, (k,)."""
        return self.second_order / USABLE

    @property
    def residual_sum(self) -> tuple[float, float]:
        """The residual sum of squares of the line and what it is corrected by for having been fitted to its own noise."""
        delta = self.delta
        return self.square - float(self.cross @ delta), float(np.trace(self.bread @ self.noise(delta)))

    def correlation(self) -> Array:
        """Correlations of the coefficients under equal residual variances, (k, k)."""
        return correlations(self.rows @ self.bread @ self.rows.T)


def correlations(covariance: Array) -> Array:
    """Of a covariance, (k, k)."""
    size = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return np.asarray(covariance / np.outer(size, size))


@dataclass(frozen=True, eq=False)
class ReleaseReader:
    """One release read with one question."""

    release: Release
    options: ResultOptions
    design: ModelMatrix

    def _public(self, name: str) -> Array:
        return np.asarray(self.release.public[name], dtype=np.float64)

    def _number(self, name: str) -> float:
        return float(self._public(name)[0])

    @property
    def _records(self) -> float:
        """The estimated number of records."""
        return float(self.release["count"].decode()[0])

    @cached_property
    def box(self) -> Box:
        """Where z is measured from."""
        return Box.of(self.design)

    @cached_property
    def counting(self) -> Counting | None:
        """How rows of a unit count; None where records do, and where one row of each unit was kept."""
        return Counting.of_plan(self.release.plan)

    @cached_property
    def reach(self) -> dict[int, float]:
        """How many estimated SDs the bounds of each feature with more than two values lie from its mean, by term."""
        sds = reaches(self._public("feature_mean"), self._public("feature_sd"))
        return {j: float(sds[j]) for j in ranged(self.design)}

    @property
    def _reaching(self) -> list[int]:
        """The terms whose bounds reach too far for few records to be seen there: none of columns whose ranges were found."""
        return [j for j, reach in self.reach.items() if reach > REACH and not self._found(j)]

    def _found(self, j: int) -> bool:
        """Whether the ranges of all columns of a term were found."""
        ranges = self.release.ranges
        return all(name in ranges and ranges[name].clips for name in self._asked.terms[j].columns)

    @property
    def _asked(self) -> ModelMatrix:
        """The design of the columns."""
        return self.design

    def _too_wide(self, j: int) -> str:
        """The sentence on the bounds of a feature."""
        declared = self.release.plan.method.parameters.get("bounds") == "declared"
        return far_words(self.design.terms[j].name, self.reach[j], declared=declared)
