"""The numbers behind the safety bounds: alpha, gamma and their parts. Public constants and one record's reach; no data, no noise.

Relation substitute: the number of records n is public. The factor alpha bounds how far the estimate moves from data whose safety gamma
is above 0, one-sidedly: the other dataset may be unsafe. Each alpha is rounded up by one part in 10^11 (`SLACK`). Each gamma is a plain
float that the caller passes through `rounded_safety` with the error of its arithmetic, or an exact integer.

OLS. Rows (x, y), |x| <= R_x, |y| <= R_y; theta = the least-squares line projected radially to |theta| <= R_th; A = X'X, lam its least
eigenvalue. Replacing a record adds x'x'^T - x x^T, a difference of PSD matrices of norm at most R_x^2, to A: lam moves by at most
R_x^2.

Let theta be the unprojected line of the data X. The difference b' - A' theta equals
x'(y' - x'theta) - x(y - x theta), and A' >= (lam - R_x^2) I. So the
lines differ by at most |x'(y' - x'.theta) - x (y - x.theta)|/lam(A').

The supremum of u'(x'x'^T - x x^T)theta - y'u'x' + y u'x over unit u and the angles is R_x^2 |theta| kappa(r), r = R_y/(R_x |theta|).
This is by half-angle sums: 2 cos t (sin t + r), largest at cos t = sqrt(1 - c^2), c = (sqrt(r^2 + 8) - r)/4.

If the shorter of the two lines has length s <= R_th, projecting is 1-Lipschitz. Else the projections differ by R_th/s times the
difference of the lines at most, and s kappa(R_y/(R_x s))/s falls as s grows because kappa rises. The bound with the eigenvalue of
either dataset holds, which asks for lam0 + R_x^2 below lam(X): gamma > 0.

Class means. The mean of a class of size n_k moves by at most 2R/n_k when one of its records leaves, is replaced or joins. This is
because the mean holds the record already. It is 2R/L for a size of L or more. When a record changes class two means move, by 2R/L and
2R/(L + 1), and two proportions by 1/n each. w is the weight of the proportions' block.

Kernel regression with a kernel 0 <= K <= B, with rest weight w and rest mean g. The change is K(y - g)/(w + K) + K'(g - y')/(w + K'),
in absolute value at most 2 R_f B/(w + B). On the safe side w + K = d >= d0, which gives w + B >= d0.

Source: Shen, Tong, Wang 2026 (the constants there are larger: evidence/errata.md).

What the methods of efficient propose-test-release share: a test that hides how safe the data are, then the release, or none.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, pi, prod, sqrt
from typing import ClassVar

from confide.core import Method
from confide.errors import PlanError
from confide.guarantees.validation import is_finite

# Relative slack of every float that bounds a sensitivity: far above the error of a dozen operations.
SLACK = 1e-11


def up(value: float) -> float:
    """A float that bounds a positive number above, which is known to one part in 10^11.

    >>> up(1.0) > 1.0
    True
    """
    return value * (1 + SLACK)


def rounded_safety(gamma: float, eta: float) -> float:
    """Round a safety down, so that both promises of the test hold exactly.

    The result is (gamma - eta)_+/(1 + 3 eta). True safeties of neighbors
    differ by at most 1, so the computed ones differ by at most
    1 + 2 eta. In addition, a computed one above eta has a true one above 0. The factor is 3 instead of
    2 to leave room for the division. Rounding is needed because the exact
    release curve takes ceil, and from 4.99... to 6.00...1 it takes two steps.

    Parameters
    ----------
    gamma : float
        Computed safety.
    eta : float
        Bound on the error of its arithmetic, in units of gamma.

    Returns
    -------
    float
        Safety to test.

    Examples
    --------
    >>> rounded_safety(5.0, 0.0), rounded_safety(0.5, 0.5)
    (5.0, 0.0)
    """
    return max(gamma - eta, 0.0) / (1 + 3 * eta)


def kappa(r: float) -> float:
    """The least-squares constant 2 sqrt(1 - c^2)(c + r), c = (sqrt(r^2 + 8) - r)/4; it rises with r.

    r = R_y/(R_x R_th), above 0. One feature: still an upper bound.

    >>> abs(kappa(1.0) - 3 * sqrt(3) / 2) < 1e-12
    True
    """
    # 4c = 8/(sqrt(r^2 + 8) + r), without the cancellation of the difference
    c = 2 / (sqrt(r * r + 8) + r)
    return 2 * sqrt(1 - c * c) * (c + r)


def ols_alpha(r_x: float, r_y: float, r_theta: float, lam0: float) -> float:
    """R_x^2 R_th kappa(r)/lam0, rounded up. Raises `PlanError` unless lam0 is at least R_x^2.

    r_x: bound on the length of a row, the intercept's constant included; r_theta: radius that the line is projected to, in the same
    parameter.
    """
    _positive(r_x=r_x, r_y=r_y, r_theta=r_theta)
    if not lam0 >= r_x * r_x:
        raise PlanError(
            f"lam0 must be at least r_x^2 = {r_x * r_x:g}, got {lam0!r}; half of the planned eigenvalue is usual"
        )
    return up(r_x * r_x * r_theta * kappa(r_y / (r_x * r_theta)) / lam0)


def least_class_size(c0: float | Fraction, n: int) -> int:
    """L = floor(c0 n) + 1, exactly for the number that c0 is. Raises `PlanError` below 2.

    >>> least_class_size(0.04, 5000)
    201
    """
    size = floor(Fraction(c0) * n) + 1
    if not 0 < c0 < 1 or size < 2:
        raise PlanError(
            f"c0 = {c0!r} of n = {n} records is a class of {size}; it must be at least 2, so take a c0 above 1/n"
        )
    return size


def class_means_alpha(radius: float, least: int, n: int, weight: float = 0.0) -> float:
    """sqrt(4 R^2 (1/L^2 + 1/(L+1)^2) + 2 w^2/n^2), rounded up: all class means beside w times all proportions.

    >>> [round(class_means_alpha(1.0, L, 100), 4) for L in (3, 5, 20)]
    [0.8333, 0.5207, 0.1381]
    """
    _positive(radius=radius)
    return up(sqrt(_means_squared(radius, least) + 2 * weight**2 / n**2))


def class_weight(radius: float, least: int, n: int, share: float = 0.05) -> float:
    """w with 2 w^2/n^2 = share * 4 R^2 (1/L^2 + 1/(L+1)^2): what the proportions may add to alpha^2."""
    return n * sqrt(share * _means_squared(radius, least) / 2)


def class_means_gamma(smallest: int, least: int) -> int:
    """(min_k n_k - (L - 1))_+, an integer; `smallest` over all public classes, 0 for one that is absent."""
    return max(smallest - (least - 1), 0)


def kernel_peak(bandwidths: tuple[float, ...], kernel: str = "gaussian") -> float:
    """B, the largest value of a product kernel: "gaussian" prod (2 pi)^(-1/2)/h_j, "epanechnikov" prod (3/4)/h_j; rounded up."""
    for h in bandwidths:
        _positive(bandwidth=h)
    if kernel not in ("gaussian", "epanechnikov"):
        raise PlanError(f"kernel must be 'gaussian' or 'epanechnikov', got {kernel!r}")
    return up(prod((1 / sqrt(2 * pi) if kernel == "gaussian" else 0.75) / h for h in bandwidths))


def kernel_alpha(r_f: float, peak: float, d0: float, points: int = 1, *, signed: bool = False) -> float:
    """sqrt(m) 2 R_f B/d0 for a nonnegative kernel at m points, twice that for a signed one; rounded up. d0 must be above B."""
    _positive(r_f=r_f, peak=peak)
    if not d0 > peak:
        raise PlanError(f"d0 must be above the kernel's largest value {peak:g}, got {d0!r}")
    return up(sqrt(points) * (4 if signed else 2) * r_f * peak / d0)


def eigenvector_alpha(r_x: float, gap0: float) -> float:
    """2 sqrt(2) R_x^2/gap0, rounded up: Frobenius distance of the projectors on the leading eigenvector of X'X."""
    _positive(r_x=r_x, gap0=gap0)
    return up(2 * sqrt(2) * r_x * r_x / gap0)


def minimiser_alpha(r_x: float, score: float, lam0: float) -> float:
    """2 R_x max|score|/lam0, rounded up: a minimizer over a ball whose objective is lam0-strongly convex there on the safe side."""
    _positive(r_x=r_x, score=score, lam0=lam0)
    return up(2 * r_x * score / lam0)


def _means_squared(radius: float, least: int) -> float:
    return 4 * radius**2 * (1 / least**2 + 1 / (least + 1) ** 2)


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0 < value < float("inf"):
            raise PlanError(f"{name} must be a finite number above 0, got {value!r}")


def eigenvalue_error(p: int, n: int) -> float:
    """How far floats may put an eigenvalue of the Gram matrix of n rows in p columns, in units of the largest squared length of a row."""
    return p * n * (64 + n) * 2.0**-53


#: What defaults are made for: the SD of an answer's noise, over the range of what is estimated.
NOISE = 0.05


def smallest_plan(records: float, sure: float, gamma: float | None = None) -> tuple[float, float]:
    """(least, gamma_plan) with the smallest sum, so that what has a size of that sum gets a reply with noise of `NOISE`.

    records: `least` for that noise if the test were free. sure: what a safety must be above 1, if the test cost all, for a reply with
    probability 1 - beta. The test has a share t of squared mu: least = records/sqrt(1 - t) and gamma_plan = 1 + sure/sqrt(t), whose sum is
    smallest at t = 1/(1 + (records/sure)^(2/3)). At most half goes to the test. gamma: gamma_plan where it is given.

    >>> least, gamma = smallest_plan(80.0, 10.0)
    >>> round(least, 1), round(gamma, 1)
    (89.4, 23.4)
    """
    sure = max(sure, 1e-6)
    share = 1 / (1 + (records / sure) ** (2 / 3)) if gamma is None else (sure / (gamma - 1)) ** 2
    share = min(share, 0.5)
    return records / sqrt(1 - share), max(1 + sure / sqrt(share), 1.5) if gamma is None else gamma


class Replying(Method):
    """Base of methods that reply where their test passes. beta: the probability of declining at the planned safety."""

    beta: float

    source: ClassVar[str] = (
        "efficient propose-test-release (Shen, Tong, Wang 2026), corrected constants, exact Gaussian accounting"
    )
    relations: ClassVar[tuple[str, ...]] = ("substitute",)

    def _check_beta(self) -> None:
        if not (is_finite(self.beta) and 1e-12 <= self.beta < 1):
            raise PlanError(f"beta must be a number from 1e-12 to 1, got {self.beta!r}; 0.001 is the default")
