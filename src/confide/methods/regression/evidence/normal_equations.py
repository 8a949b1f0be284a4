"""Normal equations from noisy second moments, and a covariance that knows the noise.

In scaled units z = (1, x~), and t is the response. A = sum w z z', b = sum w z t and q = sum w t^2 are released with Gaussian noise
of known variance. The noise enters the estimating equation A theta = b linearly, with covariance

    G(theta) = (Sb^2 + SA^2 |theta|^2 / 2) I + (SA^2 / 2) theta theta'

because Sym(SA) theta has that covariance. Restrictions (no intercept, a subset of columns) are affine: theta = offset + basis phi.

Between the data's units and the scaled units z = (1, x~), t in which moments are released: names, lines, units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.errors import PlanError
from confide.methods.regression.sums.whitened_rows import NoisySums
from confide.results.inference.simulated_null import NoisyMiddleMatrix
from confide.results.pages.table import sampling_alone
from confide.schema import ModelMatrix
from confide.sums.coding import Box

# (1 + z^2)/2 at the usual z = 1.96: a t quantile with k degrees is about z (1 + (1 + z^2)/(4 k))
_WIDENING = (1 + 1.96**2) / 2
# Fewer degrees of freedom than this say that a noisy meat is no estimate of a variance; its upper 95 % bound stands in.
_FEW = 10.0
_UPPER = 1.6448536269514722
# A floored meat is at least this share of the classical one.
_LEAST = 0.5


@dataclass(frozen=True, eq=False)
class NoisyMoments(NoisySums):
    """Noisy sums with the direction e in which e'z = 1 for every record: axis (p,), the first axis when left out."""

    axis: Array | None = None

    @property
    def count(self) -> float:
        """The noisy weighted count of records, e'Ae (A_00 where e is the first axis)."""
        return float(self.gram[0, 0] if self.axis is None else self.axis @ self.gram @ self.axis)

    def square_noise(self, size: float) -> float:
        """The largest SD of the noise in a residual sum of squares at a line with |theta|^2 = size."""
        return sqrt(self.sd_square**2 + 4 * self.sd_cross**2 * size + (self.sd_gram * size) ** 2)

    def noise_covariance(self, theta: Array) -> Array:
        """G(theta), the covariance of (noise of b) - (noise of A) theta, shape (p, p)."""
        half = self.sd_gram**2 / 2
        return (self.sd_cross**2 + half * float(theta @ theta)) * np.eye(len(theta)) + half * np.outer(theta, theta)


@dataclass(frozen=True, eq=False)
class Line:
    """The affine set theta = offset + basis phi in which the line is sought: shapes (p,), (p, k)."""

    offset: Array
    basis: Array

    @classmethod
    def free(cls, p: int) -> Line:
        """Any line with an intercept."""
        return cls(np.zeros(p), np.eye(p))


@dataclass(frozen=True, eq=False)
class MiddleMatrix:
    """The noisy meat of a robust covariance, (p, p), and the SD of the symmetric noise on its diagonal.

    lifted: what stands for it where its noise left too little (`floored`).
    """

    values: Array
    sd: float
    lifted: Array | None = None

    @property
    def positive(self) -> Array:
        """The meat with its negative eigenvalues set to 0, which is post-processing and only lengthens intervals."""
        if self.lifted is not None:
            return self.lifted
        values, vectors = np.linalg.eigh(self.values)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def raised(self, sds: float) -> MiddleMatrix:
        """The meat plus `sds` SDs of its noise in every direction: an upper bound, positive semi-definite like the meat itself."""
        return MiddleMatrix(self.positive + sds * self.sd * np.eye(len(self.values)), self.sd)

    def unclipped(self, total: float, *, weighted: bool = False) -> MiddleMatrix:
        """The meat scaled to the residual sum of squares that the moments show, `total` = sum w r^2 of unclipped residuals.

        A limit of residuals that binds makes the meat too small (to a quarter at worst at half the response's range). Without weights
        its first entry is that sum, but for a noise of `sd`, which scales nothing up. With weights sum w^2 r^2 is 0.935 to 0.940 of sum
        w r^2 for uniform features (d = 1 to 10), and less for most others. `total` carries the mean weight, and 0.94 allows for its
        spread. Never scaled down.
        """
        if weighted:
            factor = 0.94 * total / max(self.values[0, 0], self.sd)
        else:
            factor = total / max(self.values[0, 0] + self.sd, self.sd)
        factor = float(np.clip(factor, 1.0, 4.0))
        return MiddleMatrix(self.values * factor, self.sd * factor)


@dataclass(frozen=True, eq=False)
class Fit:
    """theta (p,), residual variance s2 in t units, degrees of freedom, and the pieces of the covariance of phi.

    `bread` = basis (basis' A basis)^{-1} basis', so that cov(theta) = bread (meat + noise) bread.
    """

    theta: Array
    s2: float
    df: float
    bread: Array
    noise: Array
    moments: NoisyMoments

    def covariance(self, meat: MiddleMatrix | None = None) -> Array:
        """Covariance of theta; without a meat s2 A stands in, which is conservative under equal residual variances since w <= 1."""
        middle = self.s2 * self.moments.gram if meat is None else meat.positive
        return self.bread @ (middle + self.noise) @ self.bread

    def alone(self, to_units: Array, meat: MiddleMatrix | None = None) -> Array:
        """The sampling variances of the rows of `to_units` theta without anything that is allowed for because of noise, (k,)."""
        rows = to_units @ self.bread
        classical = self.s2 * np.einsum("ij,jk,ik->i", rows, self.moments.gram, rows)
        if meat is None:
            return np.asarray(np.maximum(classical, 0.0))
        robust, most = (np.einsum("ij,jk,ik->i", rows, each, rows) for each in (meat.values, meat.positive))
        return np.asarray(np.minimum(sampling_alone(robust, meat.sd * (rows**2).sum(axis=1), classical), most))

    def degrees_of_freedom(self, to_units: Array, meat: MiddleMatrix | None = None) -> float:
        """Degrees of freedom for intervals of the rows of `to_units` theta.

        The noise of the meat makes an estimated variance V_j = c'(M + G)c, c = bread to_units_j, uncertain by `sd` |c|^2. That is worth
        2 V_j^2 / (`sd`^2 |c|^4) degrees (Satterthwaite 1946). A t quantile with k degrees widens a squared interval by about (1 + z^2)
        / (2 k). What setting negative eigenvalues of the meat to 0 has added already counts against that. The least degrees over the
        rows join the residual ones.
        """
        if meat is None:
            return self.df
        rows = to_units @ self.bread
        variance = np.diag(to_units @ self.covariance(meat) @ to_units.T)
        uncertain = (meat.sd * (rows**2).sum(axis=1) / variance) ** 2 / 2
        added = np.einsum("ij,jk,ik->i", rows, meat.positive - meat.values, rows) / variance
        return float(1 / (1 / self.df + np.max(np.maximum(uncertain - added / _WIDENING, 0.0))))

    def weighted_residuals(self, cap: float) -> float:
        """About sum w^2 r^2 from the moments alone: s2 sum w times a mean weight, min(1, cap / mean |z|^2)."""
        count = max(self.moments.count, 1.0)
        return self.s2 * count * min(1.0, cap * count / max(float(np.trace(self.moments.gram)), count))


def fit(moments: NoisyMoments, line: Line, largest: float = 1.0) -> Fit:
    """Solve the noisy normal equations within an affine set.

    The residual variance is corrected by tr((P'AP)^{-1} P'GP). This is because theta is fitted to the same noise that is in the
    residual sum of squares, which makes it too small by that much on average.

    largest: the residual variance is at most this, 1 in
    units of half the response's range. Raises `numpy.linalg.LinAlgError` when P'AP is singular.
    """
    basis, offset = line.basis, line.offset
    system = basis.T @ moments.gram @ basis
    inverse = np.linalg.inv(system)
    phi = inverse @ (basis.T @ (moments.cross - moments.gram @ offset))
    theta = offset + basis @ phi
    noise = moments.noise_covariance(theta)
    df = max(moments.count - basis.shape[1], 1.0)
    rss = moments.square - 2 * float(theta @ moments.cross) + float(theta @ moments.gram @ theta)
    corrected = (rss + float(np.trace(inverse @ basis.T @ noise @ basis))) / df
    s2 = float(np.clip(corrected, 1e-4, largest)) if np.isfinite(corrected) else largest
    return Fit(theta, s2, df, basis @ inverse @ basis.T, noise, moments)


def floored(fitted: Fit, meat: MiddleMatrix) -> MiddleMatrix:
    """The meat, at least half of s2 A in every direction: noise may leave almost nothing of it in one, and no interval shows that.

    Residual variances that differ so much that a direction truly has less than half of the average are then overstated in it.
    """
    gram = fitted.moments.gram
    sizes, axes = np.linalg.eigh((gram + gram.T) / 2)
    # A may be indefinite off the line that is fitted: there is nothing to lift there
    lengths = np.sqrt(np.maximum(sizes, 1e-9 * sizes[-1]))
    inside = (axes / lengths).T @ meat.values @ (axes / lengths)
    values, vectors = np.linalg.eigh((inside + inside.T) / 2)
    root = axes * lengths @ vectors
    return replace(meat, lifted=(root * np.maximum(values, _LEAST * fitted.s2)) @ root.T)


def trusted(fitted: Fit, to_units: Array, meat: MiddleMatrix | None) -> tuple[MiddleMatrix | None, float]:
    """The meat to use and the degrees of freedom: where noise outweighs it, an upper bound of it with the residual ones.

    A variance known to fewer than ten degrees of freedom is not an estimate: each is then replaced by its upper 95% bound.
    """
    df = fitted.degrees_of_freedom(to_units, meat)
    if meat is None or df >= min(_FEW, fitted.df):
        return meat, df
    return meat.raised(_UPPER), fitted.df


def noisy_middle_matrix(fitted: Fit, meat: MiddleMatrix | None, cap: float) -> NoisyMiddleMatrix:
    """What a joint test knows of the sampling of scores: the released meat, and s2 A for what it is under equal residual variances.

    Scores are weighted twice, A once: its mean weight is divided out. The size of s2 is uncertain by the noise of the residual sum of
    squares, whose SD is at most sqrt(sd_q^2 + 4 sd_b^2 |theta|^2 + sd_A^2 |theta|^4). It is also uncertain by its sampling, sqrt(2/df)
    for normal residuals.
    """
    moments, size = fitted.moments, float(fitted.theta @ fitted.theta)
    weight = fitted.weighted_residuals(cap) / max(fitted.s2 * max(moments.count, 1.0), 1e-300)
    shape = fitted.s2 * weight * (moments.gram + moments.gram.T) / 2
    noise = moments.square_noise(size)
    uncertain = sqrt((noise / (fitted.df * fitted.s2)) ** 2 + 2 / fitted.df)
    if meat is None:
        return NoisyMiddleMatrix(shape, np.zeros_like(shape), shape, min(uncertain, 1.0))
    return NoisyMiddleMatrix(meat.values, np.full_like(shape, meat.sd), shape, uncertain)


def records_behind(fitted: Fit, to_units: Array, low: Array, high: Array, cap: float) -> Array:
    """About how many records, at least, the sampling variance of each coefficient comes from: x'Ax / max (x'z)^2, (rows,).

    x is the coefficient's row of `to_units` A^{-1}. The maximum runs over the box of z = (1, x~), `low` and `high` (p - 1,), and is at
    most cap |x|^2 as longer records are weighed down. A level's coefficient has about its number of records, a uniform feature's a
    third of all.
    """
    rows = to_units @ fitted.bread
    ends = rows[:, 1:, None] * np.stack([low, high], axis=-1)
    most = np.maximum(
        np.abs(rows[:, 0] + ends.max(axis=2).sum(axis=1)), np.abs(rows[:, 0] + ends.min(axis=2).sum(axis=1))
    )
    longest = np.minimum(most**2, cap * (rows**2).sum(axis=1))
    information = np.einsum("ij,jk,ik->i", rows, fitted.moments.gram, rows)
    return np.asarray(np.clip(information / np.maximum(longest, 1e-300), 1.0, fitted.df))


def identified(moments: NoisyMoments, line: Line, hides: str = "") -> tuple[str, str]:
    """Whether the released Gram matrix exceeds its noise on the line; decided from released numbers only.

    Symmetric Gaussian noise has the same distribution in any orthonormal basis, so in k directions its operator norm is about SA sqrt(2
    k).

    hides: the sentence on what noise hides, for the reason.
    """
    axes, _ = np.linalg.qr(line.basis)
    smallest = float(np.linalg.eigvalsh(axes.T @ moments.gram @ axes)[0])
    noise = moments.sd_gram * sqrt(2 * axes.shape[1])
    ask = "ask for fewer terms, more records or a larger budget"
    hides = f"{hides or 'noise hides what the data say about some direction'}; "
    if smallest <= 0:
        return "not_identified", f"the released Gram matrix is not positive definite: {hides}{ask}"
    if smallest < noise:
        return "imprecise", (
            "the smallest eigenvalue of the released Gram matrix is below the size of its noise, so normal intervals are "
            f"not valid: {hides}{ask}"
        )
    return "valid", ""


#: Public prior guess of |theta|^2; it balances the noise of A against that of b, and the optimum is flat in it.
PRIOR = 0.5


def coefficient_names(design: ModelMatrix, keep: list[int]) -> tuple[str, ...]:
    return (*(("Intercept",) if design.intercept else ()), *(design.terms[j].name for j in keep))


def allowed_lines(design: ModelMatrix, keep: list[int] | None = None, box: Box | None = None) -> tuple[Array, Array]:
    """(origin, lines), shapes (p,), (p, k): free in the kept columns; without an intercept, through y = 0 at x = 0 in the data's units.

    box: where z was measured from, the public bounds when left out.
    """
    keep = list(range(len(design.terms))) if keep is None else keep
    p = len(design.terms) + 1
    columns = np.eye(p)[:, [1 + j for j in keep]]
    if design.intercept:
        return np.zeros(p), np.column_stack([np.eye(p)[:, 0], columns])
    middle, half = (box or Box.of(design)).arrays
    columns[0] = [middle[j] / half[j] for j in keep]
    low, high = float(design.response.low), float(design.response.high)
    origin = np.zeros(p)
    origin[0] = -(low + (high - low) / 2) / ((high - low) / 2)
    return origin, columns


def line_of(design: ModelMatrix, keep: list[int] | None = None, box: Box | None = None) -> Line:
    """`allowed_lines` as a `Line`."""
    return Line(*allowed_lines(design, keep, box))


def to_units(design: ModelMatrix, keep: list[int], box: Box | None = None) -> tuple[Array, Array]:
    """(J, shift): coefficients in the data's units are J theta + shift, in the order of `coefficient_names`.

    box: where z was measured from, the public bounds when left out.
    """
    middle, half = (box or Box.of(design)).arrays
    y_half = _half(design.response)
    matrix = np.zeros((len(design.terms) + 1, len(design.terms) + 1))
    _check_units(design)
    matrix[0, 0] = y_half
    matrix[0, 1:] = -y_half * middle / half
    matrix[range(1, len(matrix)), range(1, len(matrix))] = y_half / half
    shift = np.zeros(len(matrix))
    shift[0] = _middle(design.response)
    rows = [*([0] if design.intercept else []), *(1 + j for j in keep)]
    return matrix[rows], shift[rows]


def extent(design: ModelMatrix, box: Box | None = None) -> tuple[Array, Array]:
    """From where to where each x~ of a box goes within the public bounds, shapes (terms,): -1 to 1 in the public box itself."""
    middle, half = Box.of(design).arrays
    own_middle, own_half = (box or Box.of(design)).arrays
    return (middle - half - own_middle) / own_half, (middle + half - own_middle) / own_half


def _check_units(design: ModelMatrix) -> None:
    """Refuse bounds so large, small or far apart in size that a variance in their units is not a finite double."""
    for term in (*design.terms, design.response):
        sizes = (abs(_middle(term)), _half(term))
        if max(sizes) > 1e60 or sizes[1] < 1e-60:
            raise PlanError(
                f"the bounds of {term.name!r} are {term.low:g} and {term.high:g}. No variance can be computed in these units",
                "declare others, with a size and a width between 1e-60 and 1e60",
            )


def _middle(term: Any) -> float:
    return float(term.low + (term.high - term.low) / 2)


def _half(term: Any) -> float:
    return float((term.high - term.low) / 2)
