"""The covariance of class means and shares where several rows of a unit count: a Gram matrix of units, one column of scores each.

At released means c_kj and shares q_k the score of a unit is, over its usable rows with their weights v (`protocol.weighted`),

    g_kj = sum v (u_j - c_kj)/d_j over its rows of class k,    s_k = sum v (1[class k] - q_k),

d_j a released standard deviation, so that the sum of g g' over units is n_k n_l times the covariance of the means of classes k and l, in
units of d, and that of s s' n^2 times that of the shares. |g| is cut at G, |s| at S = sqrt(2) times the rows that count, and (g/G, s/S) is
coded with |m|^2 <= 2 2^40.

Guarantee: one unit moves the Gram matrix by at most 2 2^40 in the Frobenius norm, sqrt(2) times that under substitute (`protocol.Gram`),
whatever c, q and G are: they follow from what was drawn before. Source: cluster-robust covariances (Liang, Zeger 1986).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from confide._arrays import Array
from confide.aggregates.lines.rows import BOUND, Codes, round_within, steps
from confide.aggregates.scores.unit_scores import Counting, limited, summed_by_unit
from confide.methods.classification.class_design import ClassDesign
from confide.methods.classification.class_rows import members_of
from confide.protocol import RecordMap
from confide.protocol.exact import digest, pack
from confide.protocol.units.weighted import rows_in_units, usable
from confide.schema import Design

__all__ = ["MOST_SCORES", "UnitClassScores", "unit_covariance"]


#: Scores of one unit: classes times features and one.
MOST_SCORES = 256
_FINER, _LEAST = float(1 << 12), 1e-6
# |g| is cut at so many times its usual size, or further out where noise is at most this part of what a class gives to be measured.
_REACH, _AFFORDED = 3.0, 0.1
# The least part of the variance of as many records.
_FLOOR, _UNIT_FLOOR = 0.7, 0.25


@dataclass(frozen=True)
class UnitClassScores(RecordMap):
    """One unit as its scores in integer steps, those of means class by class and then those of shares: width classes (features + 1).

    means: (classes, features) in half-widths, row by row, shares (classes,) and scales d (features,), from earlier noisy numbers; cut: G.
    The digest leaves them out, as the bound holds for any.
    """

    own: ClassDesign
    radius: float
    counting: Counting
    means: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    cut: float = 1.0

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.own.design.columns, self.counting.row)

    @property
    def derived_by(self) -> Design:
        return self.own.design

    @property
    def _sizes(self) -> tuple[int, int]:
        return len(self.own.classes), len(self.own.design.terms)

    @property
    def width(self) -> int:
        k, p = self._sizes
        return k * (p + 1)

    @property
    def l2_squared(self) -> int:
        return 2 * BOUND

    @property
    def l1(self) -> int:
        return int(sqrt(self.width * self.l2_squared)) + 1

    @property
    def digest(self) -> str:
        facts = [self.own.digest, pack(self.radius), self.counting.rows, self.counting.row]
        return digest(["class scores of units", *facts])

    @property
    def steps(self) -> tuple[float, float]:
        """Integer steps in one unit of g, and in one of s."""
        k, p = self._sizes
        return steps(1.0, k * p) / self.cut, steps(1.0, k) / (sqrt(2.0) * self.counting.rows)

    def at(self, means: Array, shares: Array, variances: Array, count: float, mu: float) -> UnitClassScores:
        """The map at means (classes, features) and shares (classes,). variances: noisy ones within classes; count: of records; mu: of the
        Gram matrix.
        """
        spread = np.clip(variances, _LEAST, 1.0)
        scales = np.sqrt(spread.max(axis=0))
        usual = sqrt(len(scales)) * self.counting.spread
        afforded = sqrt(_AFFORDED * mu * count / len(means) * float((spread / scales**2).mean()))
        most = self.counting.rows * 2 * sqrt(float((scales**-2.0).sum()))
        return replace(
            self,
            means=tuple(means.ravel().tolist()),
            shares=tuple(shares.tolist()),
            scales=tuple(scales.tolist()),
            cut=min(max(_REACH * usual, afforded), most),
        )

    def __call__(self, codes: Codes) -> Codes:
        own, first = codes[:-1], codes[-1]
        (k, p), there = self._sizes, usable(self, own)
        starts, sizes = rows_in_units(first, there)
        u, inside = members_of(self.own, self.radius, own)
        means = np.array(self.means or (0.0,) * (k * p)).reshape(k, p)
        shares = self.shares or (0.0,) * k
        rows = np.zeros((self.width, own.shape[1]))
        of_g, of_s = self.steps
        scales = self.scales or (1.0,) * p
        for c, who in enumerate(inside):
            for j in range(p):
                np.copyto(rows[c * p + j], (u[j] - means[c, j]) * (of_g * _FINER / scales[j]), where=who)
            rows[k * p + c] = (who - shares[c]) * there * (of_s * _FINER)
        out = summed_by_unit(rows, starts) * (self.counting.weights(sizes) / _FINER)
        out[: k * p] = limited(out[: k * p], float(steps(1.0, k * p)))
        out[k * p :] = limited(out[k * p :], float(steps(1.0, k)))
        return round_within(out, 2 * BOUND)


def unit_covariance(
    scores: UnitClassScores, values: Array, variance: float, sizes: Array, variances: Array, units: float
) -> tuple[Array, Array]:
    """(covariance of shares and means, standard deviation of each variance), in the order of a `ClassModel`, means in half-widths.

    values: the noisy Gram matrix in steps, variance: of the noise on its diagonal; sizes: noisy numbers of records by class; variances:
    of records within classes (classes, features); units: how many count as independent.
    """
    k, p = len(sizes), variances.shape[1]
    of_g, of_s = scores.steps
    scales = np.tile(scores.scales, k)
    scale = np.concatenate([scales / (of_g * np.repeat(sizes, p)), np.full(k, 1 / (of_s * sizes.sum()))])
    whole = values * np.outer(scale, scale) * units / max(units - 1, 1.0)
    noise = sqrt(variance) * scale**2
    # shares first, then the means of each feature
    order = [k * p + c for c in range(k)] + [c * p + j for j in range(p) for c in range(k)]
    whole, noise = whole[np.ix_(order, order)], noise[order]
    share = sizes / sizes.sum()
    records = np.concatenate([share * (1 - share) / sizes.sum(), (variances / sizes[:, None]).T.ravel()])
    clustered = scores.own.design.schema.cluster is not None
    least = _UNIT_FLOOR if scores.counting.rows == 1 and scores.counting.weighted and not clustered else _FLOOR
    own = np.maximum(np.diag(whole), least * np.maximum(records, 0.0) + 1e-300)
    sd = np.sqrt(noise**2 + 2 * own**2 / max(units - 1, 1.0))
    found, axes = np.linalg.eigh((whole + whole.T) / 2)
    whole = (axes * np.maximum(found, 0.0)) @ axes.T
    stretch = np.sqrt(own / np.maximum(np.diag(whole), 1e-300))
    return np.asarray(whole * np.outer(stretch, stretch)), np.asarray(sd)
