"""The covariance of a one-step estimate from released sums, and what is known of its noise.

theta = theta_K + T delta, delta = A^-1 g. With sds sA (diagonal) and sg of the noise of A and g and sB of the meat's,

    G = (sg^2 + sA^2 |delta|^2/2) I + (sA^2/2) delta delta'          noise of g less that of A delta,
    V = (A - e/4)^-1 (M + G) (A - e/4)^-1,   e = sA sqrt(2 k)        a quarter of its noise's norm is taken off A for the covariance alone.

M is the meat where the data can tell it from A/R, the information, which it is where the model holds: with W = R A^-1/2 B A^-1/2 and
dev = W - I, of which noise makes E2 = (R^2 sB^2/2) ((tr A^-1)^2 + tr A^-2) in the squared Frobenius norm, eigenvalues of dev above
2 sqrt(E2/k) count in full and others (1 - E2/|dev|^2)_+ times; negative ones count as 0, so that noise never makes an interval shorter
than the model's. The variance of counts is often a multiple of the model's: theirs is told from max(tr W/k, 1) A/R in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from confide._arrays import Array
from confide.methods.regression.evidence.sandwich import correlations
from confide.methods.regression.likelihood.fisher.fisher_round import FisherRound
from confide.results.noise_share import sampling_alone

__all__ = ["FisherSandwich"]


# Eigenvalues of the deviation are believed from so many sds of its noise on.
_BELIEVED = 2.0
# The part of the norm of A's noise that is taken off A for the covariance.
_LUCK = 0.25
# The noise of A may move a coefficient in second order by at most this part of what moves it in first order.
_USABLE = 0.33
# Of units with several rows: the least part of the model's meat, and Student's t below so many degrees of freedom.
_FLOOR, _LEAST_DF = 0.7, 3.0


@dataclass(frozen=True, eq=False)
class FisherSandwich:
    """The last round, the meat (k, k) with its noise sd on the diagonal, and rows C (k, k): coefficients are C delta + shift (k,).

    scale: R of the family; where the model holds the meat is A/R. moved: delta where it is not A^-1 g, since A is the information at the
    new line (`fisher_settled`). dispersed: whether the meat is told from its mean size, tr W/k, instead. below: how far below the model's
    the meat may be, -.75 for a quarter: units whose rows are many and hardly hang together. units: how many the meat is a sum over where
    several rows of each count; it is taken as it is then, at least .7 of the model's, and its noise is in the degrees of freedom.
    """

    last: FisherRound
    meat: Array
    sd_meat: float
    rows: Array
    shift: Array
    scale: float = 1.0
    moved: Array | None = None
    dispersed: bool = False
    below: float = 0.0
    units: float | None = None

    def within(self, basis: Array) -> FisherSandwich:
        """The same in a space of fewer directions, of which `basis` (k, fewer) is an orthonormal basis: noise is as it was."""
        moved = None if self.moved is None else basis.T @ self.moved
        meat = basis.T @ self.meat @ basis
        return replace(self, last=self.last.within(basis), meat=meat, rows=self.rows @ basis, moved=moved)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh((self.last.gram + self.last.gram.T) / 2)
        return values, vectors

    @property
    def least(self) -> float:
        """The least eigenvalue of A."""
        return float(self._eigen[0][0])

    @property
    def delta(self) -> Array:
        """The last step, (k,)."""
        return self.last.solved if self.moved is None else self.moved

    @property
    def estimates(self) -> Array:
        """C delta + shift, (k,)."""
        return self.rows @ self.delta + self.shift

    @property
    def bread(self) -> Array:
        """A^-1, (k, k)."""
        values, vectors = self._eigen
        return np.asarray((vectors / values) @ vectors.T)

    @cached_property
    def dispersion(self) -> float:
        """tr W/k, at least 1: how many times as large as the model's the meat is."""
        values, vectors = self._eigen
        if not len(values):
            return 1.0
        inverse = vectors / np.sqrt(values)
        return max(self.scale * float(np.einsum("ij,ik,kj->", inverse, self.meat, inverse)) / len(values), 1.0)

    @cached_property
    def middle(self) -> Array:
        """M, (k, k)."""
        values, vectors = self._eigen
        if not len(values):  # no direction is known well enough to be answered
            return np.zeros((len(vectors), len(vectors)))
        root, inverse = vectors * np.sqrt(values), vectors / np.sqrt(values)
        whole = self.scale * (inverse.T @ self.meat @ inverse)
        if self.units is not None:
            sizes, axes = np.linalg.eigh((whole + whole.T) / 2)
            return np.asarray(root @ (axes * np.maximum(sizes, _FLOOR)) @ axes.T @ root.T / self.scale)
        base = self.dispersion if self.dispersed else 1.0
        deviation = whole / base - np.eye(len(values))
        noise = (
            (self.scale * self.sd_meat / base) ** 2
            / 2
            * (float((1 / values).sum()) ** 2 + float((1 / values**2).sum()))
        )
        size = float((deviation**2).sum())
        known = max(1 - noise / size, 0.0) if size > 0 else 0.0
        found, axes = np.linalg.eigh((deviation + deviation.T) / 2)
        sd = np.sqrt(noise / len(found))
        found = np.where(found > _BELIEVED * sd, found, known * found)
        # below the model's only by what is beyond the noise
        found = np.where(found < 0, np.minimum(found + sd, 0.0), found)
        spread = base * (np.eye(len(found)) + (axes * np.maximum(found, self.below)) @ axes.T)
        return np.asarray(root @ spread @ root.T / self.scale)

    @property
    def noise(self) -> Array:
        """G, (k, k)."""
        half, delta = self.last.sd_gram**2 / 2, self.delta
        size = self.last.sd_cross**2 + half * float(delta @ delta)
        return np.asarray(size * np.eye(len(delta)) + half * np.outer(delta, delta))

    @property
    def _spread(self) -> Array:
        """C (A - e/4)^-1."""
        values, vectors = self._eigen
        return np.asarray(self.rows @ (vectors / (values - _LUCK * self.last.norm)) @ vectors.T)

    @property
    def covariance(self) -> Array:
        """Of the coefficients, (k, k): sampling and privacy noise."""
        whole = self._spread @ (self.middle + self.noise) @ self._spread.T
        return np.asarray((whole + whole.T) / 2)

    @property
    def noise_variance(self) -> Array:
        """The part of each variance that is privacy noise, (k,)."""
        return np.asarray(np.diag(self._spread @ self.noise @ self._spread.T))

    def alone(self, factor: float = 1.0, light: float = 1.0) -> Array:
        """The sampling part of each variance without anything that is allowed for because of noise, (k,).

        factor: of the meat; light: of the model's.
        """
        values, _ = self._eigen
        if not len(values):
            return np.zeros(len(self.rows))
        k, model = self.rows @ self.bread, light * (self.dispersion if self.dispersed else 1.0) / self.scale
        sums = self.meat, model * self.last.gram, self.middle
        robust, classical, most = (np.einsum("ij,jk,ik->i", k, each, k) for each in sums)
        alone = sampling_alone(factor * robust, factor * self.sd_meat * (k**2).sum(axis=1), classical)
        return np.asarray(np.minimum(alone, most))

    @property
    def sampling_df(self) -> float:
        """Degrees of freedom that sampling alone would leave: those of the units."""
        return max((self.units or 0.0) - 1.0, 1.0)

    @property
    def df(self) -> Array:
        """Degrees of freedom of each variance where the meat is taken as it is, (k,): by its noise and its units (Satterthwaite 1946)."""
        spread = self._spread
        sampling = np.diag(spread @ self.middle @ spread.T)
        whole = (self.sd_meat * (spread**2).sum(axis=1)) ** 2 + 2 * sampling**2 / self.sampling_df
        return np.asarray(np.maximum(2 * np.diag(self.covariance) ** 2 / whole, _LEAST_DF))

    @property
    def travelled(self) -> float:
        """S = |delta| sqrt((delta' A delta - tr A^-1 (M + G))_+): how far beyond its noise the last step went, in units where about 4
        says that one step was not enough.
        """
        delta = self.delta
        own = float(delta @ self.last.gram @ delta) - float(np.trace(self.bread @ (self.middle + self.noise)))
        return float(np.linalg.norm(delta) * np.sqrt(self.scale * max(own, 0.0)))

    @property
    def demand(self) -> Array:
        """How many times as many records, or how much a mu, each coefficient needs: above 1 it cannot be had, (k,).

        By how much the noise of A moves it in second order, per first order, over what may be.
        """
        values, vectors = self._eigen
        u = self.rows @ (vectors / np.sqrt(values)) @ vectors.T
        u = u / np.maximum(np.linalg.norm(u, axis=1), 1e-300)[:, None]
        h = np.einsum("ij,jk,ik->i", u, self.bread, u)
        return np.asarray(self.last.sd_gram * np.sqrt(h * float((1 / values).sum()) / 2 + h**2 / 2) / _USABLE)

    def correlation(self) -> Array:
        """Correlations of the coefficients where the model holds, (k, k): how closely they hang together."""
        return correlations(self.rows @ self.bread @ self.rows.T)
