"""A release of `EfficientPTR` read as a regression table: which line it is of, its status, and intervals with what they allow for.

The line's noise is the same in every direction of the scaled coefficients, and its sampling variance is known as an upper bound alone:
sigma2/lam with equal residual variances, lam below the least eigenvalue of A = sum w z z'. With others it is c'A^-1 M A^-1 c, where
M = sum w^2 e^2 z z': at most (X^2/lam)(sum e^2/lam), because (c'A^-1 sqrt(w) z)^2 <= X^2/lam^2. That is the price of any variances; allowed
for is `UNEQUAL`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np

from confide._arrays import Array
from confide._special import ndtri
from confide.methods.regression.certified.certified_line import CertifiedLine, LeastEigenvalue, ResidualSquares, chart
from confide.methods.regression.linear import LinearEstimates, legend
from confide.methods.regression.scaling import to_units
from confide.protocol import Release
from confide.results.pages.words import Flag
from confide.schema import Design

__all__ = ["UNEQUAL", "CertifiedReading", "covers_of", "target_of", "weights_of"]

_AT_THE_RADIUS = Flag(
    "at_the_radius",
    "the released line is as long as the declared radius, which may have cut it; a larger radius needs a new release",
)


#: How much larger than with equal residual variances a coefficient's sampling variance may be. Residuals whose sd grows in proportion to a
#: uniform feature have 1.8.
UNEQUAL = 2.0
# Below this planned probability of a reply, intervals are marked as conditional on it.
_SURE = 0.95

_NO_REPLY = (
    "the safety test did not pass: the records do not determine the line well enough for this budget; ask for fewer terms, more records "
    "or a larger budget"
)
_FEW = "the noisy number of records is below three for each coefficient; ask for fewer terms, more records or a larger budget"
_LONG = "the released line is as long as the radius, which may have cut it; ask for a larger radius in a new release"


def weighs(line: CertifiedLine) -> bool:
    """Whether some record of the public box counts less than others."""
    design = line.map.design
    return line.map.cap < int(design.intercept) + len(design.terms)


def target_of(line: CertifiedLine) -> str:
    """What is estimated."""
    design = line.map.design
    kind = "least squares with public leverage weights" if weighs(line) else "least squares"
    return f"linear regression of {design.response.name} on {', '.join(design.names)}, {kind}"


def covers_of(line: CertifiedLine) -> str:
    """What intervals account for, and under which assumptions."""
    weighted = "weighted least-squares line" if weighs(line) else "least-squares line"
    return (
        f"coefficients of the population's {weighted} for {line.map.design.response.name} clipped to its declared bounds; sampling of "
        "records and privacy noise, independent records, unequal residual variances that raise no sampling variance to more than "
        f"{UNEQUAL:g} times that of equal ones, a scaled line no longer than {line.radius:g}"
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
    def design(self) -> Design:
        return self.line.map.design

    def table(self) -> LinearEstimates:
        """The regression table, at status "no_reply" where the test did not pass."""
        release, design, line = self.release, self.design, self.line
        level = float(release.public["level"][0])
        shown = self._declined(level) if release.status == "no_reply" else self._answered(line.at(level))
        return LinearEstimates.of(
            release,
            method=self.label,
            response=design.response.name,
            names=design.names,
            target=target_of(line),
            legend=legend(design, release.plan.declared)[1:],
            design=design,
            heading="least squares with public leverage weights" if weighs(line) else "",
            **({"covers": covers_of(line)} | shown),
        )

    def _declined(self, level: float) -> dict[str, Any]:
        """What a result without a reply shows."""
        p = len(self.design.names)
        return {
            "estimates": np.full(p, nan),
            "covariance": np.full((p, p), nan),
            "noise_variance": np.full(p, nan),
            "df": nan,
            "status": "no_reply",
            "reason": _NO_REPLY,
            "flags": (),
            # the noisy bound may be below 0, which certifies nothing
            "facts": (("Certified least eigenvalue", f"{level:,.1f}" if level > 0 else "none"),)
            if self.adaptive
            else (),
        }

    def _answered(self, line: CertifiedLine) -> dict[str, Any]:
        """Coefficients in the units of the data, and their covariance at status "ok"."""
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
        inner, shown = matrix @ matrix.T, 1.0 if status == "ok" else nan
        # moved into the ball again, which helps a point; where it does anything there is no interval
        length = float(np.linalg.norm(phi))
        sampling = UNEQUAL * sigma2 / line.lam
        # any meat: no record's share of a coefficient is beyond X/lam
        most = sigma2 / line.lam * nobs * line.map.least / line.lam
        price = sqrt((max(most, sampling) + error**2) / (sampling + error**2))
        return {
            "covers": f"{covers_of(line)}; for any variances intervals would be {price:.1f} times as wide",
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
        """Whether a reply was planned, or looks in hindsight, less likely than 95 %."""
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
        return "weak", _FEW
    # the noise is in the length too; a line that the ball has cut is as long as the radius before it
    if float(np.linalg.norm(phi)) + 2 * error >= radius:
        return "weak", _LONG
    return "ok", ""


def _units(design: Design) -> tuple[Array, Array]:
    """(J, shift): coefficients in the data's units are J phi + shift."""
    if design.intercept:
        return to_units(design, list(range(len(design.terms))))
    to_units(design, [])  # refuses units in which a variance is no finite number
    _, half, _, y_half = chart(design)
    return np.diag(y_half / half), np.zeros(len(half))
