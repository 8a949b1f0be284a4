"""The least-squares line of records of bounded length, and how far one record moves it where the least eigenvalue is certified.

A record is a row u and a response r, weighted jointly by w = min(1, cap/|z|^2) of its features alone, (u, r) = sqrt(w) (z, t). Under a
linear model weighting therefore costs no bias. With an intercept z = (1, x~) and t are measured from the middle of the public bounds,
in units of half their width. Without one z = x/H and t = y/H from 0, H the larger of the two bounds in size. Coded rows m = rint(S (u,
r)) obey |m_u|^2 <= U and |m_r| <= T whatever the floats did; X = sqrt(U)/S and Y = T/S are then exact bounds on |u| and |r|.

For phi = A^-1 b, A = sum u u', b = sum u r, projected radially to |phi| <= R, and L the smallest eigenvalue of A, under substitution:

    (a) L moves by at most X^2. A record adds u u', positive with norm at most X^2, to a sum that both datasets share (Weyl 1912).

    (b) Where L(A) >= lam + X^2, every neighbor has L(A') >= lam, and phi moves by at most alpha = X^2 R kappa(Y/(X R))/lam.

Proof of (b). The unprojected lines have A'(phi' - phi) = (b' - b) - (A' - A) phi. Its length is at most the largest, over unit vectors
e, of f(u', r') - f(u, r), f(u, r) = (e'u)(r - u'phi). Let |phi| = s, with angles a, b of u', u to e and c of phi to e. Then this is
(X^2 s/2)(cos(2b - c) - cos(2a - c)) + X Y (|cos a| + |cos b|) at most. Rows shorter than X are not worse in two dimensions or more,
where f has no interior extreme. By sums of half angles it is at most the largest over d of 2 cos d (X^2 s sin d + X Y) = X^2 s
kappa(Y/(X s)). The largest is at sin d = (sqrt(q^2 + 8) - q)/4, q = Y/(X s). By symmetry s is the smaller of the two lengths. If s <=
R, projection moves points no further apart, and s kappa(Y/(X s)) grows with s. If s > R, both lie outside the ball and |v/|v| -
v'/|v'|| <= |v - v'|/s gives R X^2 kappa(Y/(X s))/lam, and kappa grows with its argument, which falls in s. The source has 4 for
kappa(1) = 2.598, 2 X^2 in (a), and the length of the projected line instead of s, for which its identity does not hold.

Released is rint(2^20 phi/alpha): it moves by 2^20 steps, sqrt(p) for rounding, and as many again for floats, whatever lam is. The
equations are solved in exact integers; floats enter when phi is scaled, with an error below half a step up to 10^9 records.

A release of `EfficientPTR` read as a regression table: which line it is of, its status, and intervals with what they allow for.

The noise of phi is the same in every direction of the scaled coefficients, and its sampling variance is known as an upper bound alone.
With equal residual variances it is sigma2/lam, lam below the least eigenvalue of A = sum w z z'. With others it is c'A^-1 M A^-1 c,
where M = sum w^2 e^2 z z': at most (X^2/lam)(sum e^2/lam), because (c'A^-1 sqrt(w) z)^2 <= X^2/lam^2. That is the price of any
variances; allowed for is `UNEQUAL`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, nan, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide._special import ndtri
from confide.core import SAFETY_STEPS, Gram, Release, Statistic
from confide.core.exact import digest, pack
from confide.methods.regression.certified.sums import smallest_eigenvalue
from confide.methods.regression.evidence.normal_equations import to_units
from confide.methods.regression.linear_estimates import LinearEstimates, legend
from confide.results.pages.content import Flag
from confide.schema import ModelMatrix
from confide.sums.coding import BITS, Box, CodedRows, Codes, only, residual, round_within, scaled, steps, weights
from confide.sums.integer_functions import FunctionOf
from confide.sums.safety_bounds import ols_alpha

_FINE = 1 << BITS


def chart(design: ModelMatrix) -> tuple[Array, Array, float, float]:
    """(middle, half, middle of y, half of y): where rows are measured from, in the data's units; from 0 without an intercept."""
    low = np.array([float(term.low) for term in (*design.terms, design.response)])
    high = np.array([float(term.high) for term in (*design.terms, design.response)])
    middle, half = low + (high - low) / 2, (high - low) / 2
    if not design.intercept:
        middle, half = np.zeros(len(low)), np.maximum(np.abs(low), np.abs(high))
    return middle[:-1], half[:-1], float(middle[-1]), float(half[-1])


def _measured(design: ModelMatrix, codes: Codes) -> tuple[Codes, NDArray[np.bool_] | None]:
    """Rows (z, t) in the units of `chart`, shape (coefficients + 1, records), and which records count (None: all)."""
    if design.intercept:
        return scaled(design, codes)
    middle, half, _, y_half = chart(design)
    rows, keep = scaled(design, codes, Box(tuple(middle), tuple(half)))
    low, high = float(design.response.low), float(design.response.high)
    rows[-1] *= (high - low) / 2 / y_half
    rows[-1] += (low + (high - low) / 2) / y_half
    return rows[1:], keep


@dataclass(frozen=True)
class JointRows(CodedRows):
    """One record as integers rint(S sqrt(w) (z, t)), w = min(1, cap/|z|^2): shape (coefficients + 1, rows), the response last.

    `longest` is U, `largest` T, `steps` S, as above. cap: at least 1 with an intercept, above 0 without.
    """

    design: ModelMatrix
    cap: float
    kind: ClassVar[str] = "joint rows"

    @property
    def width(self) -> int:
        return len(self.design.names) + 1

    @property
    def steps(self) -> int:
        """Integer steps in one unit of z and t."""
        return steps(sqrt(self.cap + 1), self.width)

    @property
    def longest(self) -> int:
        """U, a multiple of 2^20: a bound on the squared length of the coded z."""
        own = self.steps * sqrt(self.cap) + sqrt(self.width) / 2 + 1
        return (int(own * own) // _FINE + 1) * _FINE

    @property
    def largest(self) -> int:
        """T: a bound on the size of the coded t."""
        return self.steps + 2

    @property
    def bounds(self) -> tuple[float, float]:
        """(X, Y), rounded up in their last digits."""
        return sqrt(self.longest) / self.steps * (1 + 2.0**-40), self.largest / self.steps * (1 + 2.0**-40)

    @property
    def least(self) -> float:
        """X^2, the least eigenvalue that is worth a certificate."""
        return self.bounds[0] ** 2

    @property
    def stated(self) -> list[object]:
        return [pack(self.cap)]

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _measured(self.design, codes)
        with np.errstate(all="ignore"):
            factor = weights(rows[:-1], self.cap)
            np.sqrt(factor, out=factor)
            factor *= float(self.steps)
            rows *= only(factor, keep)
            rows = round_within(rows)
            inside = (np.einsum("ij,ij->j", rows[:-1], rows[:-1]) <= self.longest) & (np.abs(rows[-1]) <= self.largest)
        # the bounds must not rest on floats; no record has been seen to break them
        rows[:, ~inside] = 0.0
        return rows


@dataclass(frozen=True)
class ResidualSquares(CodedRows):
    """2^18 clip(t - z'phi, -2, 2)^2 of a record, not weighted: in [0, 2^20] for any phi. `at(phi)` is the map at released coefficients.

    A response and a fit within the bounds are up to two half-ranges apart, and with two-valued responses they often are.
    """

    design: ModelMatrix
    phi: tuple[float, ...] = ()
    unit: ClassVar[int] = _FINE // 4

    width: ClassVar[int] = 1
    l1: ClassVar[int] = 4 * unit

    @property
    def digest(self) -> str:
        # phi is left out: the bound holds for any, and the plan does not know it yet
        return digest(["residual squares", 2, self.design.to_dict()])

    def at(self, phi: Array) -> ResidualSquares:
        """The map at a line computed from earlier noisy outputs."""
        return replace(self, phi=tuple(float(v) for v in phi))

    def __call__(self, codes: Codes) -> Codes:
        rows, keep = _measured(self.design, codes)
        with np.errstate(all="ignore"):
            r = residual(rows[:-1], rows[-1], self.phi)
            np.clip(r, -2.0, 2.0, out=r)
            r *= r
            r *= float(self.unit)
            return round_within(only(r, keep)[None, :])


@dataclass(frozen=True)
class _OfGram(FunctionOf):
    """A function of the exact Gram matrix of joint rows. `of(gram)` is its value, so that one pass serves several."""

    map: JointRows

    @property
    def behind(self) -> Statistic:
        return Gram(self.map)


@dataclass(frozen=True)
class LeastEigenvalue(_OfGram):
    """The smallest eigenvalue of sum u u' in steps of X^2/2^20, max(0, ceil(L/step) - 1), in exact arithmetic."""

    @property
    def moved(self) -> int:
        return _FINE

    @property
    def step(self) -> int:
        """One step in the integers of the Gram matrix."""
        return self.map.longest // self.moved

    @property
    def unit(self) -> float:
        """Steps in one unit of A."""
        return self.map.steps**2 / self.step

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        return np.array([smallest_eigenvalue(gram[:-1, :-1], self.step)], dtype=object)

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squared bounds, in steps, over any company: from the longer of the two rows."""
        lengths = np.maximum((rows[:-1] * rows[:-1]).sum(axis=0), (own[:-1] * own[:-1]).sum())
        return (-(-lengths // self.step)) ** 2


@dataclass(frozen=True)
class Safety(LeastEigenvalue):
    """The safety (L - lam0 - X^2)_+ / X^2 in 1024 steps of one unit, rounded down: above 0 only where (b) holds with lam0."""

    lam0: float = 1.0
    moved: ClassVar[int] = SAFETY_STEPS

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        floor = ceil((Fraction(self.lam0) * self.map.steps**2 + self.map.longest) / self.step)
        return np.array([max(int(super().of(gram)[0]) - floor, 0)], dtype=object)


@dataclass(frozen=True)
class CertifiedLine(_OfGram):
    """rint(2^20 phi/alpha), phi projected to |phi| <= radius, alpha for a least eigenvalue of `lam` at every neighbor (`at`)."""

    radius: float = 1.0
    lam: float = 1e9

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width - 1,)

    @property
    def moved(self) -> int:
        return _FINE + 2 * ceil(sqrt(self.shape[0]))

    @property
    def alpha(self) -> float:
        """How far phi moves at most where (b) holds; lam is at least X^2."""
        return ols_alpha(*self.map.bounds, self.radius, self.lam)

    def at(self, lam: float) -> CertifiedLine:
        """The line in the steps of another certified eigenvalue, public or from an earlier noisy output, at least X^2."""
        return replace(self, lam=float(lam))

    def of(self, gram: NDArray[Any]) -> NDArray[Any]:
        whole = [[int(v) for v in row] for row in gram]
        numerators, determinant = solve_exactly([row[:-1] for row in whole[:-1]], [row[-1] for row in whole[:-1]])
        top = max(map(abs, numerators))
        if top > determinant << 500:  # nearly singular: only the direction is left, and floats could not hold the rest
            phi = np.array([v / top for v in numerators])
            phi *= self.radius / float(np.linalg.norm(phi))
        else:
            phi = np.array([v / determinant for v in numerators])
        largest = float(np.abs(phi).max())
        if largest > self.radius:
            phi = phi / largest
            phi *= self.radius / float(np.linalg.norm(phi))
        phi *= min(1.0, self.radius / max(float(np.linalg.norm(phi)), self.radius))
        return np.array([int(v) for v in np.rint(phi * (_FINE / self.alpha))], dtype=object)

    def decode(self, values: Array) -> Array:
        """phi, shape (p,), from values in steps."""
        return np.asarray(values * (self.alpha / _FINE))

    def moved_squared(self, own: Any, rows: Any) -> Any:
        """Squares of how far, in steps, the line can move when `own` gives way to each of `rows`: over all lines on the sphere."""
        before, after = np.asarray(own, dtype=np.float64) / self.map.steps, np.asarray(rows, dtype=np.float64)
        after = after / self.map.steps
        one, many = float(np.linalg.norm(before[:-1])), np.linalg.norm(after[:-1], axis=0)
        inner = before[:-1] @ after[:-1]
        turn = np.arccos(np.clip(inner / np.maximum(one * many, 1e-300), -1.0, 1.0))
        angle = np.linspace(0.0, 2 * np.pi, 361)
        first = self.radius * one * np.cos(angle)[:, None] - before[-1]
        second = self.radius * many * np.cos(angle[:, None] - turn) - after[-1]
        squares = (many * second) ** 2 + (one * first) ** 2 - 2 * inner * first * second
        reach = np.sqrt(np.maximum(squares, 0.0).max(axis=0)) / self.lam / self.alpha
        return (reach * _FINE) ** 2


def solve_exactly(matrix: list[list[int]], right: list[int]) -> tuple[list[int], int]:
    """(numerators, determinant) of the solution for a symmetric positive definite matrix of integers, without fractions.

    Zeros over 1 where the matrix is not positive definite. Source: Bareiss 1968, all rows eliminated.

    >>> solve_exactly([[2, 1], [1, 3]], [3, 4])
    ([5, 5], 5)
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    before = 1
    for k in range(len(rows)):
        pivot_row = rows[k]
        pivot = pivot_row[k]
        if pivot <= 0:
            return [0] * len(rows), 1
        for i, row in enumerate(rows):
            if i != k:
                head = row[k]
                rows[i] = [(own * pivot - head * other) // before for own, other in zip(row, pivot_row, strict=True)]
        before = pivot
    return [row[-1] for row in rows], before


_AT_THE_RADIUS = Flag(
    "at_declared_radius",
    "the released coefficients are as long as the declared radius, which may have limited them; a larger radius needs a new release",
)


#: How much larger than with equal residual variances a coefficient's sampling variance may be. Residuals whose sd grows in proportion to a
#: uniform feature have 1.8.
UNEQUAL = 2.0
# Below this planned probability of a reply, intervals are marked as conditional on it.
_SURE = 0.95

_NO_REPLY = (
    "the safety test did not pass: the records do not determine the coefficients well enough for this budget; ask for fewer terms, "
    "more records or a larger budget"
)
_FEW = "the estimated number of records is below three for each coefficient; ask for fewer terms, more records or a larger budget"
_LONG = "the released coefficients are as long as the radius, which may have limited them; ask for a larger radius in a new release"


def weighs(line: CertifiedLine) -> bool:
    """Whether some record of the public box counts less than others."""
    design = line.map.design
    return line.map.cap < int(design.intercept) + len(design.terms)


def target_of(line: CertifiedLine) -> str:
    """The estimand, in words."""
    design = line.map.design
    kind = "least squares with public leverage weights" if weighs(line) else "least squares"
    return f"linear regression of {design.response.name} on {design.features}, {kind}"


def intervals_for_of(line: CertifiedLine) -> str:
    """What intervals account for, and under which assumptions."""
    weighted = "weighted least-squares line" if weighs(line) else "least-squares line"
    return (
        f"coefficients of the population's {weighted} for {line.map.design.response.name} clipped to its declared bounds; sampling of "
        "records and privacy noise, independent records. Unequal residual variances raise no sampling variance to more than "
        f"{UNEQUAL:g} times that of equal ones, and scaled coefficients have length at most {line.radius:g}"
    )


def weights_of(line: CertifiedLine) -> Callable[[Array], Array]:
    """Rows of the terms in the units of the data (records, p) -> w = min(1, cap/|z|^2)."""
    design, cap = line.map.design, line.map.cap
    middle, half, *_ = chart(design)
    shift = int(design.intercept)

    def weight(rows: Array) -> Array:
        z = (rows[:, shift:] - middle) / half
        return np.asarray(np.minimum(1.0, cap / np.maximum(shift + (z * z).sum(axis=1), 1e-300)))

    return weight


@dataclass(frozen=True, eq=False)
class CertifiedReading:
    """One release, read with the line of its plan. label: name and version of the method; adaptive: whether the eigenvalue was released."""

    label: str
    release: Release
    line: CertifiedLine
    adaptive: bool

    @property
    def design(self) -> ModelMatrix:
        return self.line.map.design

    def table(self) -> LinearEstimates:
        """The regression table, at status "declined" where the test did not pass."""
        release, design, line = self.release, self.design, self.line
        level = float(release.public["level"][0])
        shown = self._declined(level) if release.status == "declined" else self._answered(line.at(level))
        return LinearEstimates.of(
            release,
            method=self.label,
            response=design.response.name,
            names=design.names,
            target=target_of(line),
            legend=legend(design, release.plan.declared)[1:],
            design=design,
            heading="least squares with public leverage weights" if weighs(line) else "",
            **({"intervals_for": intervals_for_of(line)} | shown),
        )

    def _declined(self, level: float) -> dict[str, Any]:
        """What a result without a reply shows."""
        p = len(self.design.names)
        return {
            "estimates": np.full(p, nan),
            "covariance": np.full((p, p), nan),
            "noise_variance": np.full(p, nan),
            "df": nan,
            "status": "declined",
            "reason": _NO_REPLY,
            "flags": (),
            # the noisy bound may be below 0, which certifies nothing
            "facts": (("Certified least eigenvalue", f"{level:,.1f}" if level > 0 else "none"),)
            if self.adaptive
            else (),
        }

    def _answered(self, line: CertifiedLine) -> dict[str, Any]:
        """Coefficients in the units of the data, and their covariance at status "valid"."""
        release = self.release
        error = line.alpha * sqrt(release["line"].variance) / (1 << 20)
        phi = np.asarray(release.public["phi"], dtype=np.float64)
        nobs = float(release["count"].decode()[0])
        df = max(nobs - len(phi), 1.0)
        # one sd of its own noise is added: a variance that noise has made small would shorten every interval
        told = max(float(release["residual"].decode()[0]), 0.0)
        plain, sigma2 = (
            min(squares / ResidualSquares.unit / df, 1.0)
            for squares in (told, told + sqrt(release["residual"].variance))
        )
        status, reason = _status(phi, error, nobs, line.radius)
        flags = (_AT_THE_RADIUS,) if reason == _LONG else ()
        matrix, shift = _units(self.design)
        inner, shown = matrix @ matrix.T, 1.0 if status == "valid" else nan
        # moved into the ball again, which helps a point; where it does anything there is no interval
        length = float(np.linalg.norm(phi))
        sampling = UNEQUAL * sigma2 / line.lam
        # any meat: no record's share of a coefficient is beyond X/lam
        most = sigma2 / line.lam * nobs * line.map.least / line.lam
        price = sqrt((max(most, sampling) + error**2) / (sampling + error**2))
        return {
            "intervals_for": f"{intervals_for_of(line)}; for any variances intervals would be {price:.1f} times as wide",
            "covariance": inner * (sampling + error**2) * shown,
            "noise_variance": np.diag(inner) * (sampling - plain / line.lam + error**2) * shown,
            "estimates": matrix @ (phi * min(1.0, line.radius / max(length, line.radius))) + shift,
            "df": df,
            "status": status,
            "reason": reason,
            "flags": (*flags, *(("conditional_on_reply",) if self._doubtful(line) else ())),
            "facts": (
                ("Certified least eigenvalue", f"{line.lam:,.1f}"),
                ("Noise sd (scaled)", f"{error:.3g}"),
                ("Width", _width(sampling + error**2, plain / line.lam)),
                ("Records (noisy)", f"{nobs:,.0f}"),
            ),
            "nobs": nobs,
        }

    def _doubtful(self, line: CertifiedLine) -> bool:
        """Whether a reply was planned, or looks in hindsight, less likely than 95%."""
        release = self.release
        if not self.adaptive:
            return bool(release.plan.constants["planned reply"] < _SURE)
        noisy, unit = release["eigenvalue"], LeastEigenvalue(line.map).unit
        return line.lam - line.map.least < float(ndtri(_SURE)) * sqrt(noisy.variance) / unit


def _width(variance: float, sampling: float) -> str:
    """Against sampling alone, whose variance noise may have taken to 0."""
    return f"{sqrt(variance / sampling):.2g} times that of sampling alone" if sampling > 0 else "privacy noise alone"


def _status(phi: Array, error: float, nobs: float, radius: float) -> tuple[str, str]:
    """From released numbers: whether the ball may have cut the line, or too few records stand behind it."""
    if nobs < 3 * len(phi):
        return "imprecise", _FEW
    # the noise is in the length too; a line that the ball has cut is as long as the radius before it
    if float(np.linalg.norm(phi)) + 2 * error >= radius:
        return "imprecise", _LONG
    return "valid", ""


def _units(design: ModelMatrix) -> tuple[Array, Array]:
    """(J, shift): coefficients in the data's units are J phi + shift."""
    if design.intercept:
        return to_units(design, list(range(len(design.terms))))
    to_units(design, [])  # refuses units in which a variance is no finite number
    _, half, _, y_half = chart(design)
    return np.diag(y_half / half), np.zeros(len(half))
