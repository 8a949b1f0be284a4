"""The mean slope of a released line, E dm/deta, from its last noisy information: what average marginal effects are made of.

In the last round's coordinates A = sum w h u u', and with v = T^-1 e_0, for which v'u = 1 of every record,

    v'A v = sum w h,   with noise of variance sA^2 |v|^4.

Of the logit and of counts R h is the mean's slope itself, so that R v'A v/n~ is its mean at the line before the last step. Of the probit
it is another function of eta, and no released number holds its mean. How the mean slope changes with the coefficients, E z d2m/deta2, is
taken from the made points (`fisher_start`) at the released line; it carries the estimate over the last step, and the error of
the coefficients into that of the effects. Its own sampling variance, Var h/n, comes from the points, too; that it hangs together with the
coefficients' is left out. Records that count less take from sum w h at most max h times their number, of which the histogram
of N^2 gives a bound B n: since 0 <= w <= 1, E dm/deta lies between the mean slope s and s + B max h. So an effect lies between b s and
b s (1 + r), r = B max h / s: the end of an interval that is away from zero is moved by the factor 1 + r, the other not at all.
All of it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.fisher_families import PROBIT, Counts
from confide.methods.regression.likelihood.fisher.fisher_start import made_points
from confide.noise import keyed_generator

if TYPE_CHECKING:
    from confide.methods.regression.likelihood.fisher.answers.fisher_figures import FisherFigures

__all__ = ["MeanSlope", "mean_slope"]


# The step of a central difference in eta.
_STEP = 1e-3
# Of itself: what an interval's end is moved by that is not worth a word.
_SAID = 5e-4


@dataclass(frozen=True, eq=False)
class MeanSlope:
    """E dm/deta in units of the outcome, its gradient in the coefficients (k,), its own variance.

    lacking: a bound on what records that count less take from it; less: a bound on their share.
    """

    value: float
    gradient: Array
    variance: float
    lacking: float
    less: float

    @property
    def stretch(self) -> float:
        """By how much of itself the mean slope may be larger; NaN where noise leaves none."""
        return self.lacking / self.value if self.value > 0 else nan

    def stretched(self, low: float, high: float) -> tuple[float, float]:
        """An interval of coefficient x `value` as one of coefficient x E dm/deta."""
        most = 1.0 + self.stretch
        return float(np.minimum(low, low * most)), float(np.maximum(high, high * most))

    def words(self) -> str:
        """What intervals hold beside sampling and noise; "" where that is nothing to speak of."""
        if not self.stretch > _SAID:
            return ""
        return (
            f"effects may be up to {self.stretch:.2%} larger, which intervals hold beyond their standard errors: as many as "
            f"{self.less:.2%} of the records, whose features lie far out, count less in the mean slope; tighter bounds of features, more "
            "records or a larger budget leave fewer of them"
        )


def mean_slope(read: FisherFigures) -> MeanSlope | None:
    """Of a release that is answered; None where its information is not the mean's slope."""
    family = read.scored_family
    if family == PROBIT:
        return None
    public: Any = read.release.public
    records = max(float(read.release["count"].decode()[0]), 1.0)
    v = np.linalg.solve(np.asarray(public["transform"]), np.eye(len(read.last.cross))[0])
    total = family.scale * float(v @ read.last.gram @ v)
    noise = family.scale * read.last.sd_gram * float(v @ v)
    before, line = np.asarray(public["line"]), np.asarray(public["meat_line"])
    points = made_points(
        read.design, read.box, np.asarray(public["moments"]), keyed_generator("mean slope", read.release.sha256)
    )
    eta = points @ line
    slopes = family.slope(eta)
    bend = (family.slope(eta + _STEP) - family.slope(eta - _STEP)) / (2 * _STEP)
    in_z = points.T @ bend / len(points)
    value = total / records + float(in_z @ (line - before))
    count_sd = sqrt(read.release["count"].variance)
    variance = (noise / records) ** 2 + (value * count_sd / records) ** 2 + float(slopes.var()) / records
    less = float(np.asarray(public["less"])[0])
    most = float(slopes.max()) if isinstance(family, Counts) else 0.25
    # coefficients in the data's units are J theta
    gradient = np.asarray(np.linalg.solve(read.units.T, in_z), dtype=np.float64)
    return MeanSlope(value, gradient, variance, less * most, less)
