"""Point estimates of a line: what a method without intervals gives its user, and the ridge line of noisy moments.

A line is theta in the scaled units of the public box, (1, x~)'theta = t with x~ and t in [-1, 1] by the declared bounds, intercept first.
Without an intercept in the formula theta lies in an affine set (`scaling.line_of`); `ridge_line` solves within it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Release
from confide.methods.regression.evidence.normal_equations import Line, coefficient_names, to_units
from confide.methods.regression.linear_estimates import LinearEstimates, legend
from confide.results.base import level_legend
from confide.schema import ModelMatrix

__all__ = ["point_estimates", "ridge_line", "weakness"]

Array = NDArray[np.float64]

_NO_LINE = "the noisy equations have no solution of finite size; ask for fewer terms, more records or a larger budget"


def point_estimates(
    method: Any,
    release: Release,
    design: ModelMatrix,
    theta: Array,
    *,
    reason: str,
    facts: Iterable[tuple[str, str]] = (),
    keep: list[int] | None = None,
    flags: Iterable[str] = (),
    weak: str = "",
    unseen: str = "",
    nobs: float = nan,
) -> LinearEstimates:
    """The table of a line without intervals: coefficients in the units of the data, every standard error NaN.

    method: what released it (its name and version); theta: shape (terms + 1,), in scaled units, the intercept first, on the lines that the
    formula allows; reason: why there is no interval, in words that follow "no interval: "; facts: lines of the table's head; keep: indices
    of the terms in the table (all when left out: theta must be 0 in the others); flags: besides "no_interval"; weak: why the line is rough
    (status "imprecise"), "" for status "valid"; unseen: what follows in the reason on levels without records (`unseen_levels`); nobs: a
    noisy count. A theta that is not finite gives status "not_identified", never an error.
    """
    keep = list(range(len(design.terms))) if keep is None else keep
    names = coefficient_names(design, keep)
    matrix, shift = to_units(design, keep)
    finite = bool(np.isfinite(theta).all())
    estimates = matrix @ theta + shift if finite else np.full(len(names), nan)
    status, words = ("not_identified", _NO_LINE) if not finite else ("imprecise", weak) if weak else ("valid", "")
    return LinearEstimates.of(
        release,
        response=design.response.name,
        names=names,
        estimates=estimates,
        df=nan,
        status=status,
        reason=words and words + unseen,
        flags=("no_interval", *flags),
        target=f"linear regression of {design.response.name} on {', '.join(names)}",
        intervals_for=f"no interval: {reason}",
        facts=tuple(facts),
        # the first line of the legend explains a weighted count, which these tables do not show
        legend=(*legend(design, release.plan.declared)[1:], *(() if words else level_legend(unseen))),
        design=design,
        nobs=nobs,
    )


def ridge_line(gram: Array, cross: Array, line: Line, ridge: float = 0.0) -> Array:
    """argmin over the line's theta = offset + basis phi of theta'(gram + ridge I)theta - 2 theta'cross: shapes (p, p), (p,), result (p,).

    The stationary point, where the matrix is indefinite. NaN where the equations are singular or too large for doubles.

    >>> ridge_line(2 * np.eye(2), np.array([2.0, 4.0]), Line.free(2), ridge=2.0).tolist()
    [0.5, 1.0]
    """
    basis, offset = line.basis, line.offset
    whole = gram + ridge * np.eye(len(gram))
    with np.errstate(all="ignore"):
        try:
            phi = np.linalg.solve(basis.T @ whole @ basis, basis.T @ (cross - whole @ offset))
        except np.linalg.LinAlgError:
            return np.full(len(cross), nan)
        theta = offset + basis @ phi
    return np.asarray(theta) if np.isfinite(theta).all() else np.full(len(cross), nan)


def weakness(gram: Array, sd: float, line: Line) -> str:
    """Why a line from a noisy Gram matrix (p, p) is rough, for status "imprecise"; "" where the matrix stands above its noise on the line.

    sd: of the symmetric noise on the diagonal, with half the variance off it; in k directions its operator norm is about sd sqrt(2 k).
    """
    axes, _ = np.linalg.qr(line.basis)
    smallest = float(np.linalg.eigvalsh(axes.T @ gram @ axes)[0])
    if smallest > sd * sqrt(2 * axes.shape[1]):
        return ""
    return (
        "the smallest eigenvalue of the noisy second moments is below the size of its noise, so that in some direction the noise says more "
        "than the records; ask for fewer terms, tighter bounds, more records or a larger budget"
    )
