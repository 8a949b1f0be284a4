"""Safety bounds of particular estimators. Each is proved in its docstring.

The projector on the leading eigenvector of X'X, from rows of bounded length.

The level is the gap lam_1 - lam_2. Released is u u' as the vector of its diagonal and sqrt(2) times what is above it, so that the
Euclidean norm is the Frobenius norm; `matrix` turns it back.

Proof. Replacing a record adds E = x'x'^T - x x^T, a difference of PSD matrices of norm at most r_x^2. So |E| <= r_x^2 in the operator
norm, and each eigenvalue moves by at most r_x^2 (Weyl): the gap by at most 2 r_x^2 (C1). The Davis-Kahan inequality, in the form that
needs the gap of one side alone (Yu, Wang, Samworth 2015), gives sin(u, u') <= 2 |E|/gap(X). With |u u' - u'u'^T|_F = sqrt(2) sin that
is at most 2 sqrt(2) r_x^2/gap(X) (C2), without an offset for the other side. Rounding: the Gram matrix is a float sum; `error` as for
least squares, in units of 2 r_x^2.

All class means beside all class proportions, from records of bounded length.

Estimate (n_k/n, mean of class k), classes in the order of their public list; S gives the proportions the weight w. Where a class is
absent, gamma is 0. As a count, gamma has no rounding. The means are float sums, far within the steps that a release adds.

Proof: `confide.sums.safety_bounds`. Source: Shen, Tong, Wang 2026, Algorithm 3, with 2R/n_k instead of 2R/(n_k - 1) and noise weighted
by block. Class sums with noise need no test and are better wherever they fit (evidence/methods/ptr.md).

Kernel regression (Nadaraya, Watson) at public points, with a nonnegative product kernel and a public bandwidth.

Estimate sum_i K(x_j - x_i) y_i / sum_i K(x_j - x_i) at the m points x_j. With d_j the kernel sum and B the kernel's largest value,
gamma is the least over the points of (d_j - d0)_+/B. The bound is alpha = sqrt(m) 2 R_f B/d0. A signed (higher-order) kernel has twice
the constants and is not offered.

Proof: `confide.sums.safety_bounds` for one point; over m points the squares add up. One record moves each d_j by at most B. Rounding:
d_j is a float sum of n terms, wrong by at most n (n + 64) u in units of B. Source: Shen, Tong, Wang 2026, Algorithm 5, with half the
constants. A whole curve under one budget: Gaussian-process noise on numerator and denominator, which needs no test.

Least squares, projected to a ball: the last column on the others, records rescaled jointly.

A record (x, y) is multiplied by w = min(1, r_x/|x|) of its features alone (then y is clipped to [-r_y, r_y]). That is weighted least
squares with weights that depend on x, consistent under a linear model. Clipping x alone would bias it. With an intercept the row is w
(tau, x), so that its length is at most sqrt(tau^2 + r_x^2) = R_x, and the first coefficient times tau is the intercept. If tau were
appended, unscaled, to a row that was clipped first, the fit would not be least squares for the model. The estimate is theta = A^-1 b, A
= sum x x', projected radially to |theta| <= r_theta; lam, the least eigenvalue of A, is the level L.

Proof: `confide.sums.safety_bounds` (lam moves by at most R_x^2; where lam >= t + R_x^2 theta moves by at most R_x^2 r_theta
kappa(r_y/(R_x r_theta))/t). The radial projection is part of it: clipping to a box needs another. Rounding: A is a float sum of n
products, each of its p^2 entries wrong by at most n^2 u R_x^2 (u = 2^-53). Its least eigenvalue adds an error of 64 p u n R_x^2. So
`error` is 64 p n u + p n^2 u, in units of R_x^2.

Source: Shen, Tong, Wang 2026, Algorithm 4, with smaller constants. Test-free alternative with intervals:
`confide.regression.LeastSquares`.

Logistic and probit maximum likelihood over a ball, without a ridge.

A record (x, y), |x| <= r_x after shortening, y in {0, 1} (a level above 1/2 counts as 1). The estimate theta minimizes F = sum l(y,
x'theta) over |theta| <= r_theta; it is the minimizer over the ball, not the projection of a free one. With a = r_theta |x_i|, weights
w_i = min of l'' over |u| <= a, L = least eigenvalue of sum w_i x_i x_i': F is L-strongly convex on the ball. For logistic w_i = s (1 -
s), s = 1/(1 + e^a). For probit w_i = r (r + a), r = phi(a)/Phi(a). The largest value W, at x = 0, is 1/4 and 2/pi. Scores |l'| are at
most c = 1/(1 + e^-a), and phi(a)/Phi(-a), at a = r_theta r_x.

Proof. C1: one record changes the sum by a difference of PSD matrices of norm at most W r_x^2, and so L. C2: both theta and theta'
minimize F and F' over the ball. So <grad F(theta), theta' - theta> >= 0 and <grad F'(theta'), theta - theta'> >= 0. Added up,

    L |theta' - theta|^2 <= <grad F(theta') - grad F(theta), theta' - theta> <= |grad F(theta') - grad F'(theta')| |theta' - theta|,

and the last gradient is the difference of two records' at theta': at most 2 r_x c. It needs L of X alone: no offset. Rounding: L is a
float sum, `error` as for least squares, in units of W r_x^2. The solver stops where its step is below 1e-13 of r_theta. Source: derived
here; the variational inequality is that of Chaudhuri, Monteleoni, Sarwate 2011, who have a ridge for L.

The m-th smallest of n values, with the exact distance to data on which it is sensitive.

Values are clipped to [low, high]; x_(1) <= ... <= x_(n), x_(i) = low for i < 1 and high for i > n. alpha is proposed, and

    LS_k = max over 0 <= t <= k + 1 of x_(m+t) - x_(m+t-k-1),     gamma = min{k >= 0 : LS_k > alpha}, n + 1 if there is none.

Proof. Replacing k + 1 records moves the m-th value at most to places between x_(m-k-1) and x_(m+k+1). Take two datasets k and k + 1
replacements away, one replacement apart. For some t the one lies at x_(m+t) at most and the other at x_(m+t-k-1) at least. So LS_k is
the largest move of the m-th value by one record, over all datasets k replacements away. Hence gamma is the number of replacements to
the nearest dataset on which one record moves the value by more than alpha. That number is 1-Lipschitz (C1). If gamma > 0, no record of
X moves the value by more (C2). It is an integer, so that no rounding enters: values are compared as they are, and alpha is reached up
to one rounding of a difference.

Compare with `cf.tables.quantiles` first: it needs no test, no delta and no proposal.

Source: Nissim, Raskhodnikova, Smith 2007 (the local sensitivities of a median); Dwork, Lei 2009 (distance to instability).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, hypot, inf, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array, finite
from confide._special import expit, log_ndtr
from confide.errors import PlanError
from confide.guarantees.validation import is_whole
from confide.methods.ptr.safety import CertifiedBound, SafetyBound
from confide.sums.safety_bounds import (
    class_means_alpha,
    class_means_gamma,
    class_weight,
    eigenvalue_error,
    eigenvector_alpha,
    kernel_alpha,
    kernel_peak,
    least_class_size,
    minimiser_alpha,
    ols_alpha,
    rounded_safety,
)


@dataclass(frozen=True)
class LeadingEigenvector(CertifiedBound):
    """The projector on the leading eigenvector of X'X, as a safety bound.

    The level is the gap of the two largest eigenvalues. `matrix` turns the
    vector of the estimate into a symmetric matrix.

    Parameters
    ----------
    p : int
        Number of columns, at least 2.
    r_x : float
        Length to which rows are shortened.
    gap0 : float, optional
        Gap that is planned on. None for mode="adaptive".

    Notes
    -----
    Proof: the module docstring, by the inequalities of Weyl and Davis-Kahan.

    References
    ----------
    Yu, Wang, Samworth 2015.

    Examples
    --------
    >>> bound = LeadingEigenvector(2, 1.0, gap0=10.0)
    >>> rows = bound.prepare(np.array([[1.0, 0.0]] * 30))
    >>> bound.gamma(rows) > 9.9, bound.matrix(bound.estimate(rows)).round(6).tolist()
    (True, [[1.0, 0.0], [0.0, 0.0]])
    """

    p: int
    r_x: float
    gap0: float | None = None

    name: ClassVar[str] = "LeadingEigenvector"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 2):
            raise PlanError(f"p must be a whole number of at least 2, got {self.p!r}")
        eigenvector_alpha(self.r_x, 1.0 if self.gap0 is None else self.gap0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p * (self.p + 1) // 2

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"P[{i + 1},{j + 1}]" for i, j in zip(*_above(self.p), strict=True))

    @property
    def moves(self) -> float:  # type: ignore[override]
        return 2 * self.r_x**2 * (1 + 2.0**-50)

    @property
    def least(self) -> float:  # type: ignore[override]
        # below a gap of 2 r_x^2 the bound says nothing: two projectors are at most sqrt(2) apart
        return 1e-9 * self.r_x**2

    @property
    def level0(self) -> float | None:  # type: ignore[override]
        # one-sided: the gap of X alone counts, so nothing is lost to the neighbor's
        return None if self.gap0 is None else self.gap0 - self.moves

    def alpha_at(self, t: float) -> float:
        return eigenvector_alpha(self.r_x, t + self.moves)

    def prepare(self, data: Any) -> Array:
        return shortened(data, self.r_x)

    def level(self, prepared: Array) -> float:
        if not len(prepared):
            return 0.0
        values = np.linalg.eigvalsh(prepared.T @ prepared)
        return float(values[-1] - values[-2])

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.p, len(prepared))

    def estimate(self, prepared: Array) -> Array:
        leading = np.linalg.eigh(prepared.T @ prepared)[1][:, -1]
        i, j = _above(self.p)
        return np.asarray(np.where(i == j, 1.0, sqrt(2.0)) * np.outer(leading, leading)[i, j])

    def matrix(self, vector: Any) -> Array:
        """The symmetric matrix of an estimate.

        The released matrix is not a projector. Its leading eigenvector is the
        estimate.

        Parameters
        ----------
        vector : array
            Estimate, as `estimate` or a release gives it.

        Returns
        -------
        array
            Matrix, (p, p).
        """
        i, j = _above(self.p)
        whole = np.zeros((self.p, self.p))
        whole[i, j] = np.asarray(vector) / np.where(i == j, 1.0, sqrt(2.0))
        return whole + np.triu(whole, 1).T


def shortened(data: Any, longest: float) -> Array:
    """Rows shortened to a length of at most `longest`, each separately. A value that is not finite becomes 0."""
    rows = finite(data)
    square = np.zeros(len(rows))
    for column in rows.T:
        square += np.minimum(column * column, 1e300)
    length = np.sqrt(square)
    rows *= np.minimum(1.0, longest / np.maximum(length, 1e-300))[:, None]
    return rows


def _above(p: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    i, j = np.triu_indices(p)
    return i, j


@dataclass(frozen=True)
class ClassMeans(SafetyBound):
    """All class means with all class proportions, as a safety bound.

    Data hold the features x_1..x_p, then the class as 0, ..., K - 1.

    Parameters
    ----------
    p : int
        Number of features.
    classes : int
        Number of classes K, at least 2.
    radius : float
        Length R to which features are shortened.
    n : int
        Public number of records.
    c0 : float
        Share that every class is planned to exceed, in (0, 1/K).
    share : float, default 0.05
        What the proportions may add to alpha^2, relative to the rest.

    Notes
    -----
    Proof: `confide.sums.safety_bounds`.

    References
    ----------
    Shen, Tong, Wang 2026, Algorithm 3, with smaller constants.

    Examples
    --------
    >>> bound = ClassMeans(1, 2, radius=1.0, n=40, c0=0.2)
    >>> data = np.array([[0.5, 0.0]] * 25 + [[-0.5, 1.0]] * 15)
    >>> bound.gamma(bound.prepare(data)), bound.estimate(bound.prepare(data)).tolist()
    (7, [0.625, 0.375, 0.5, -0.5])
    """

    p: int
    classes: int
    radius: float
    n: int = field()  # no default: that of the base class is none here
    c0: float = field()
    share: float = 0.05

    name: ClassVar[str] = "ClassMeans"

    def __post_init__(self) -> None:
        for label, value, least in (("p", self.p, 1), ("classes", self.classes, 2), ("n", self.n, 1)):
            if not is_whole(value, least):
                raise PlanError(f"{label} must be a whole number of at least {least}, got {value!r}")
        if not 0 < self.c0 < 1 / self.classes:
            raise PlanError(f"c0 must lie between 0 and 1/K = {1 / self.classes:g}, got {self.c0!r}")
        if not 0 < self.share < 1:
            raise PlanError(f"share must lie between 0 and 1, got {self.share!r}; 0.05 is the default")
        class_means_alpha(self.radius, self.smallest, self.n)

    @property
    def smallest(self) -> int:
        """L, the class size that alpha rests on."""
        return least_class_size(self.c0, self.n)

    @property
    def weight(self) -> float:
        """w, the scale of the proportions."""
        return class_weight(self.radius, self.smallest, self.n, self.share)

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return class_means_alpha(self.radius, self.smallest, self.n, self.weight)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.classes * (1 + self.p)

    @property
    def shape(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.weight,) * self.classes + (1.0,) * (self.classes * self.p)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        shares = tuple(f"share of class {k}" for k in range(self.classes))
        return shares + tuple(f"mean of x{j + 1} in class {k}" for k in range(self.classes) for j in range(self.p))

    def prepare(self, data: Any) -> Array:
        rows = np.array(data, dtype=np.float64)
        rows[:, : self.p] = shortened(rows[:, : self.p], self.radius)
        rows[:, self.p] = np.clip(np.rint(np.nan_to_num(rows[:, self.p], nan=0.0)), 0, self.classes - 1)
        return rows

    def _counts(self, prepared: Array) -> NDArray[np.int64]:
        return np.bincount(prepared[:, self.p].astype(np.int64), minlength=self.classes)

    def gamma(self, prepared: Array) -> int:
        return class_means_gamma(int(self._counts(prepared).min()), self.smallest)

    def estimate(self, prepared: Array) -> Array:
        counts = self._counts(prepared)
        member = np.zeros((self.classes, len(prepared)))
        member[prepared[:, self.p].astype(np.int64), np.arange(len(prepared))] = 1.0
        means = (member @ prepared[:, : self.p]) / counts[:, None]
        return np.concatenate([counts / self.n, means.ravel()])


@dataclass(frozen=True)
class KernelRegression(SafetyBound):
    """Kernel regression at public points, as a safety bound.

    Data hold the features x_1..x_d, then the response y.

    Parameters
    ----------
    points : tuple of tuple of float
        The m points, d numbers each.
    bandwidths : tuple of float
        Bandwidth of each of the d features.
    box : tuple of (float, float)
        Public bounds of each feature, to which x is clipped.
    r_f : float
        Bound of the response, which is clipped to [-r_f, r_f].
    d0 : float
        Kernel sum that is planned on, above the kernel's largest value B.
    kernel : {"gaussian", "epanechnikov"}, default "gaussian"
        Kernel.

    Notes
    -----
    Proof: `confide.sums.safety_bounds`.

    References
    ----------
    Shen, Tong, Wang 2026, Algorithm 5, with half the constants.

    Examples
    --------
    >>> bound = KernelRegression(((0.5,),), (0.1,), ((0.0, 1.0),), r_f=1.0, d0=20.0)
    >>> x = np.linspace(0, 1, 101)
    >>> data = bound.prepare(np.stack([x, x], axis=1))
    >>> round(bound.gamma(data), 2), bound.estimate(data).round(6).tolist()
    (20.05, [0.5])
    """

    points: tuple[tuple[float, ...], ...]
    bandwidths: tuple[float, ...]
    box: tuple[tuple[float, float], ...]
    r_f: float
    d0: float
    kernel: str = "gaussian"

    name: ClassVar[str] = "KernelRegression"

    def __post_init__(self) -> None:
        d = len(self.bandwidths)
        if not d or not self.points or any(len(point) != d for point in self.points) or len(self.box) != d:
            raise PlanError(
                "points must hold tuples of as many numbers as there are bandwidths and pairs in the box, at least one each"
            )
        if not all(low < high for low, high in self.box):
            raise PlanError("each pair of the box must be (low, high) with low below high")
        kernel_alpha(self.r_f, self.peak, self.d0, len(self.points))

    @property
    def peak(self) -> float:
        """B."""
        return kernel_peak(self.bandwidths, self.kernel)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.points)

    @property
    def alpha(self) -> float:  # type: ignore[override]
        return kernel_alpha(self.r_f, self.peak, self.d0, self.dim)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"f({', '.join(f'{v:g}' for v in point)}) [{j + 1}]" for j, point in enumerate(self.points))

    def prepare(self, data: Any) -> Array:
        rows = np.nan_to_num(np.array(data, dtype=np.float64), nan=0.0)
        for j, (low, high) in enumerate(self.box):
            rows[:, j] = np.clip(rows[:, j], low, high)
        rows[:, -1] = np.clip(rows[:, -1], -self.r_f, self.r_f)
        return rows

    def weights(self, prepared: Array) -> Array:
        """K of every point and record, shape (m, n)."""
        weights = np.ones((self.dim, len(prepared)))
        for j, h in enumerate(self.bandwidths):
            place = (np.array([point[j] for point in self.points])[:, None] - prepared[None, :, j]) / h
            if self.kernel == "gaussian":
                weights *= np.exp(-place * place / 2) / (sqrt(2 * pi) * h)
            else:
                weights *= np.maximum(1 - place * place, 0.0) * (0.75 / h)
        return weights

    def gamma(self, prepared: Array) -> float:
        n = len(prepared)
        least = float(self.weights(prepared).sum(axis=1).min()) if n else 0.0
        return rounded_safety(max(least - self.d0, 0.0) / self.peak, n * (n + 64) * 2.0**-53)

    def estimate(self, prepared: Array) -> Array:
        weights = self.weights(prepared)
        return np.asarray((weights @ prepared[:, -1]) / weights.sum(axis=1))


@dataclass(frozen=True)
class LeastSquares(CertifiedBound):
    """Least squares, projected to a ball, as a safety bound.

    Data hold the features x_1..x_p, then the response y. The level is the least
    eigenvalue of the sum of x x'.

    Parameters
    ----------
    p : int
        Number of features.
    r_x : float
        Length to which the features of a record are shortened.
    r_y : float
        Bound of the response.
    r_theta : float
        Bound on the length of the enlarged parameter (intercept/tau, slopes).
    level0 : float, optional
        Least eigenvalue that is planned on, at least R_x^2. None for
        mode="adaptive".
    tau : float, optional
        Constant of the intercept. None for no intercept.

    Notes
    -----
    Proof: `confide.sums.safety_bounds`, with the rescaling of the module
    docstring.

    References
    ----------
    Shen, Tong, Wang 2026, Algorithm 4, with smaller constants.

    Examples
    --------
    >>> bound = LeastSquares(1, 1.0, 1.0, 1.0, level0=20.0)
    >>> x = np.linspace(-1, 1, 101)
    >>> data = bound.prepare(np.stack([x, 0.5 * x], axis=1))
    >>> round(bound.gamma(data), 2), bound.estimate(data).round(6).tolist(), round(bound.alpha, 4)
    (13.34, [0.5], 0.1299)
    """

    p: int
    r_x: float
    r_y: float
    r_theta: float
    level0: float | None = None
    tau: float | None = None

    name: ClassVar[str] = "LeastSquares"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 1):
            raise PlanError(f"p must be a whole number of at least 1, got {self.p!r}")
        if self.tau is not None and not 0 < self.tau < float("inf"):
            raise PlanError(f"tau must be above 0 or None for no intercept, got {self.tau!r}; r_x/sqrt(p) is usual")
        if not 0 < self.r_x < float("inf"):
            raise PlanError(f"r_x must be a finite number above 0, got {self.r_x!r}")
        self.alpha_at(self.least if self.level0 is None else self.level0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p + (self.tau is not None)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        first = () if self.tau is None else ("intercept/tau",)
        return (*first, *(f"x{j + 1}" for j in range(self.p)))

    @property
    def reach(self) -> float:
        """R_x: the length of a row, including the intercept's constant."""
        return hypot(self.r_x, self.tau or 0.0) * (1 + 2.0**-50)

    @property
    def moves(self) -> float:  # type: ignore[override]
        return self.reach**2 * (1 + 2.0**-50)

    @property
    def least(self) -> float:  # type: ignore[override]
        return self.reach**2 * (1 + 2.0**-45)

    def alpha_at(self, t: float) -> float:
        return ols_alpha(self.reach, self.r_y, self.r_theta, t)

    def prepare(self, data: Any) -> Array:
        rows = finite(data)
        square = np.zeros(len(rows))
        for j in range(self.p):  # column by column: a product of matrices would depend on the batch in its last bits
            square += np.minimum(rows[:, j] ** 2, 1e300)
        weight = np.minimum(1.0, self.r_x / np.maximum(np.sqrt(square), 1e-300))
        rows *= weight[:, None]
        rows[:, self.p] = np.clip(rows[:, self.p], -self.r_y, self.r_y)
        return rows if self.tau is None else np.column_stack([weight * self.tau, rows])

    def level(self, prepared: Array) -> float:
        x = prepared[:, :-1]
        return float(np.linalg.eigvalsh(x.T @ x)[0]) if len(x) else 0.0

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.dim, len(prepared))

    def estimate(self, prepared: Array) -> Array:
        x, y = prepared[:, :-1], prepared[:, -1]
        theta = np.linalg.lstsq(x.T @ x, x.T @ y, rcond=None)[0]
        return np.asarray(theta * min(1.0, self.r_theta / max(float(np.linalg.norm(theta)), 1e-300)))


_NEWTON = 100
_HALVINGS = 60
_BISECTIONS = 100


@dataclass(frozen=True)
class BallLikelihood(CertifiedBound):
    """Logistic and probit maximum likelihood over a ball, as a safety bound.

    Data hold the columns x_1..x_p, then the response y.

    Parameters
    ----------
    p : int
        Number of columns of x. Add a constant column for an intercept.
    r_x : float
        Length to which rows of x are shortened.
    r_theta : float
        Radius of the ball of parameters.
    lam0 : float, optional
        Least eigenvalue that is planned on. None for mode="adaptive".
    link : {"logistic", "probit"}, default "logistic"
        Link function.

    Notes
    -----
    Proof: the module docstring.

    References
    ----------
    Derived in confide; the variational inequality is that of Chaudhuri,
    Monteleoni, Sarwate 2011.

    Examples
    --------
    >>> bound = BallLikelihood(1, 1.0, 2.0, lam0=5.0)
    >>> data = bound.prepare(np.array([[1.0, 1.0]] * 60 + [[1.0, 0.0]] * 40))
    >>> round(bound.gamma(data), 3), bound.estimate(data).round(6).tolist()  # log(60/40)
    (21.997, [0.405465])
    """

    p: int
    r_x: float
    r_theta: float
    lam0: float | None = None
    link: str = "logistic"

    name: ClassVar[str] = "BallLikelihood"

    def __post_init__(self) -> None:
        if not is_whole(self.p, 1):
            raise PlanError(f"p must be a whole number of at least 1, got {self.p!r}")
        if self.link not in ("logistic", "probit"):
            raise PlanError(f"link must be 'logistic' or 'probit', got {self.link!r}")
        if not 0 < self.r_theta < float("inf"):
            raise PlanError(f"r_theta must be a finite number above 0, got {self.r_theta!r}")
        minimiser_alpha(self.r_x, self.score, 1.0 if self.lam0 is None else self.lam0)

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.p

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"x{j + 1}" for j in range(self.p))

    @property
    def most(self) -> float:
        """W, the largest weight."""
        return 0.25 if self.link == "logistic" else 2 / pi * (1 + 2.0**-50)

    @property
    def score(self) -> float:
        """c, the largest score on the ball."""
        a = self.r_theta * self.r_x
        if self.link == "logistic":
            return 1 / (1 + exp(-min(a, 700.0)))
        return exp(-a * a / 2 - float(log_ndtr(-a))) / sqrt(2 * pi)

    @property
    def moves(self) -> float:  # type: ignore[override]
        return self.most * self.r_x**2 * (1 + 2.0**-40)

    @property
    def least(self) -> float:  # type: ignore[override]
        return 1e-9 * self.moves

    @property
    def level0(self) -> float | None:  # type: ignore[override]
        return None if self.lam0 is None else self.lam0 - self.moves

    def alpha_at(self, t: float) -> float:
        return minimiser_alpha(self.r_x, self.score, t + self.moves)

    def prepare(self, data: Any) -> Array:
        rows = np.array(data, dtype=np.float64)
        rows[:, : self.p] = shortened(rows[:, : self.p], self.r_x)
        rows[:, self.p] = np.nan_to_num(rows[:, self.p]) > 0.5
        return rows

    def level(self, prepared: Array) -> float:
        x = prepared[:, : self.p]
        if not len(x):
            return 0.0
        weighted = x * self._weights(self.r_theta * np.linalg.norm(x, axis=1))[:, None]
        gram = weighted.T @ x
        return float(np.linalg.eigvalsh((gram + gram.T) / 2)[0])

    def error(self, prepared: Array) -> float:
        return eigenvalue_error(self.p, len(prepared))

    def _weights(self, a: Array) -> Array:
        """min of l'' over |u| <= a."""
        if self.link == "logistic":
            return np.asarray(expit(a) * expit(-a))
        r = np.exp(-a * a / 2 - log_ndtr(a)) / sqrt(2 * pi)
        return np.asarray(r * (r + a))

    def _curves(self, u: Array, sign: Array) -> tuple[float, Array, Array]:
        """Sum of losses, slopes and curvatures at u = x'theta; sign: 2 y - 1."""
        t = sign * u
        if self.link == "logistic":
            return float(np.logaddexp(0.0, -t).sum()), -sign * expit(-t), expit(t) * expit(-t)
        log_tail = log_ndtr(t)
        r = np.exp(-t * t / 2 - log_tail) / sqrt(2 * pi)
        return -float(log_tail.sum()), -sign * r, r * (r + t)

    def estimate(self, prepared: Array) -> Array:
        x, sign = prepared[:, : self.p], 2 * prepared[:, self.p] - 1
        theta = np.zeros(self.p)
        value, slope, curve = self._curves(x @ theta, sign)
        for _ in range(_NEWTON):
            hessian = (x * curve[:, None]).T @ x
            gradient = x.T @ slope
            move = _ball_model(hessian, hessian @ theta - gradient, self.r_theta) - theta
            downhill = float(gradient @ move)
            if np.linalg.norm(move) <= 1e-13 * self.r_theta or not downhill < 0:
                break
            step = 1.0
            for _ in range(_HALVINGS):
                now, new_slope, new_curve = self._curves(x @ (theta + step * move), sign)
                # within rounding of the sum a full step is taken: there Newton is at its best
                if now <= value + 1e-4 * step * downhill + 1e-13 * abs(value):
                    break
                step /= 2
            theta, value, slope, curve = theta + step * move, now, new_slope, new_curve
        return theta


def _ball_model(hessian: Array, moment: Array, radius: float) -> Array:
    """argmin of theta'H theta/2 - moment'theta over |theta| <= radius."""
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    values, turned = np.maximum(values, 1e-300), vectors.T @ moment
    low, high = 0.0, float(np.linalg.norm(turned)) / radius
    if np.linalg.norm(turned / values) > radius:
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if not low < middle < high:
                break  # nothing lies between
            at = turned / (values + middle)
            # as NumPy's norm of a vector, without its questions
            low, high = (middle, high) if sqrt(at @ at) > radius else (low, middle)
        low = high
    theta = vectors @ (turned / (values + low))
    return np.asarray(theta * min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300)))


@dataclass(frozen=True)
class OrderStatistic(SafetyBound):
    """The m-th smallest value of one column, as a safety bound.

    Its gamma is the exact distance to data on which one record moves the value
    by more than alpha.

    Parameters
    ----------
    m : int
        Rank of the value, from 1.
    low : float
        Lower bound to which values are clipped.
    high : float
        Upper bound to which values are clipped.
    alpha : float
        Proposed bound on the value's move.

    Notes
    -----
    Proof: the module docstring. `cf.tables.quantiles` needs no test, no delta
    and no proposal, so compare with it first.

    References
    ----------
    Nissim, Raskhodnikova, Smith 2007; Dwork, Lei 2009.

    Examples
    --------
    >>> bound = OrderStatistic(50, 0.0, 1.0, alpha=0.05)
    >>> x = np.arange(99)[:, None] / 98
    >>> bound.gamma(bound.prepare(x)), float(bound.estimate(bound.prepare(x))[0])
    (4, 0.5)
    """

    m: int
    low: float
    high: float
    alpha: float
    dim: int = field(default=1, init=False)

    name: ClassVar[str] = "OrderStatistic"

    def __post_init__(self) -> None:
        if not is_whole(self.m, 1):
            raise PlanError(f"m must be a whole number of at least 1, got {self.m!r}; the smallest value is m = 1")
        if not -inf < self.low < self.high < inf or not 0 < self.alpha < inf:
            raise PlanError(
                f"low must be below high and alpha above 0, all finite, got {self.low!r}, {self.high!r}, {self.alpha!r}"
            )

        if max(abs(self.low), abs(self.high)) > 2.0**32 * self.alpha:
            raise PlanError(
                f"low = {self.low:g} and high = {self.high:g} lie more than 2^32 alphas from 0, where released numbers end; measure "
                "the column from a public point nearer to it"
            )

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (f"x_({self.m})",)

    def prepare(self, data: Any) -> Array:
        values = np.nan_to_num(np.asarray(data, dtype=np.float64).reshape(len(data), -1)[:, 0], nan=self.low)
        return np.clip(values, self.low, self.high)

    def gamma(self, prepared: Array) -> int:
        ordered = np.sort(prepared)
        n = len(ordered)
        # low for places below 1, high beyond n; 2 n + m of them are enough for k up to n
        whole = np.concatenate([np.full(n + 2, self.low), ordered, np.full(n + 2 + self.m, self.high)])
        middle = n + 1 + self.m  # the place of x_(m)
        below, above = 0, n + 1
        while below < above:  # LS_k grows with k: its first k above alpha, by halving
            k = (below + above) // 2
            if self._moves(whole, middle, k):
                above = k
            else:
                below = k + 1
        return below

    def _moves(self, whole: Array, middle: int, k: int) -> bool:
        high = whole[middle : middle + k + 2]
        low = whole[middle - k - 1 : middle + 1]
        return bool((high - low > self.alpha).any())

    def estimate(self, prepared: Array) -> Array:
        if self.m > len(prepared):
            return np.array([self.high])
        return np.partition(prepared, self.m - 1)[self.m - 1 : self.m]
