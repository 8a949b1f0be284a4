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

Of a level, or a column of two values, the effect is the change E d, d = m(eta_to) - m(eta_from), of each record with its column at either
value and all else as it is. With eta_0 the part of eta that is not the column's, d is a function of eta_0 alone, and near to what h weighs:

    d ~ f = sum_G (c_G + c'_G eta_0) h 1_G + c'' eta_0^2 h,     G the values of the column.

The sum of f over the records is a linear function of A, whose noise is known, since 1_G = z'w_G: sum w h 1_G eta_0 = w_G'(Z A Z')theta_0.
What is left, E (d - f), is a mean over the made points, and is taken to be off by half of the sd of d - f over them, which is in the
standard error. The c are those with the least sum of that and of the noise of f. Of counts d is a multiple of h in each G, and nothing is
left: E d is told as well as E exp(eta). Records that count less take at most B max |d| from it.
All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from confide._arrays import Array
from confide.aggregates.scores.fisher_families import PROBIT, Counts
from confide.methods.regression.likelihood.fisher.fisher_hidden import Level, levels_of
from confide.methods.regression.likelihood.fisher.fisher_start import made_points
from confide.noise import keyed_generator

if TYPE_CHECKING:
    from confide.methods.regression.likelihood.fisher.answers.fisher_figures import FisherFigures

__all__ = ["MeanChange", "MeanSlope", "mean_change", "mean_slope"]


# The step of a central difference in eta.
_STEP = 1e-3
# Of itself: what an interval's end is moved by that is not worth a word.
_SAID = 5e-4
# A mean over made points is taken to be off by so many sds of what it is a mean of.
_OFF = 0.5


@dataclass(frozen=True, eq=False)
class MeanSlope:
    """E dm/deta in units of the outcome, its gradient in the coefficients (k,), its own variance.

    lacking: a bound on what records that count less take from it; less: a bound on their share; change: the `MeanChange` of the term at a
    place.
    """

    value: float
    gradient: Array
    variance: float
    lacking: float
    less: float
    change: Callable[[int], MeanChange]

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


@dataclass(frozen=True, eq=False)
class MeanChange:
    """E m(eta_to) - m(eta_from) in units of the outcome, its gradient in the coefficients (k,), its own variance; said: "to - from".

    lacking: a bound on what records that count less take from its size.
    """

    said: str
    value: float
    gradient: Array
    variance: float
    lacking: float

    def stretched(self, low: float, high: float) -> tuple[float, float]:
        """An interval of `value` as one of all records."""
        return low - self.lacking * (low < 0), high + self.lacking * (high > 0)


def mean_change(read: FisherFigures, place: int) -> MeanChange:
    """Of the level, or column of two values, that a term is, by its place among the terms; no other term has its column."""
    family, public, last = read.scored_family, read.release.public, read.last
    before, line = np.asarray(public["line"]), np.asarray(public["meat_line"])
    column = read.design.terms[place].columns[0]
    levels = [one for one in levels_of(read.design, read.box) if one.column == column]
    to = next(one for one in levels if dict(one.cell.fixed)[place] == read.design.terms[place].high)
    base = next(one for one in levels if all(at == read.design.terms[j].low for j, at in one.cell.fixed))
    own = [1 + j for j, _ in base.cell.fixed]
    points = _points(read)
    number, records = len(points), max(float(read.release["count"].decode()[0]), 1.0)

    def moved(level: Level) -> Array:
        """The points with the column at a level."""
        found = points.copy()
        middle, half = read.box.arrays
        for j, at in level.cell.fixed:
            found[:, 1 + j] = (at - middle[j]) / half[j]
        return found

    there, here = moved(to), moved(base)
    change = family.mean(there @ line) - family.mean(here @ line)
    in_z = (there.T @ family.slope(there @ line) - here.T @ family.slope(here @ line)) / number
    # what h weighs, of the line of the last round: h 1_G, h 1_G eta_0, h eta_0^2
    rest = before.copy()
    rest[own] = 0.0
    rest[0] -= float((points @ rest).mean())
    slopes, one = family.slope(points @ before), np.eye(len(before))[0]
    pairs = [(level.weights, of) for level in levels for of in (one, rest)] + [(rest, rest)]
    functions = np.column_stack([slopes * (points @ left) * (points @ right) for left, right in pairs])
    back = np.linalg.inv(np.asarray(public["transform"]))
    forms = [np.outer(back @ left, back @ right) for left, right in pairs]
    forms = [(form + form.T) / 2 for form in forms]
    sums = family.scale / records * np.array([float((form * last.gram).sum()) for form in forms])
    flat = family.scale / records * last.sd_gram * np.array([form.ravel() for form in forms])
    middle = functions.mean(axis=0)
    varying, size = functions - middle, np.sqrt((functions**2).mean(axis=0)) + 1e-300
    # in units of each function's size; rounding alone would make combinations of huge ones
    whole = (_OFF**2 * varying.T @ varying / number + flat @ flat.T) / np.outer(size, size) + 1e-12 * np.eye(len(size))
    wanted = _OFF**2 * varying.T @ (change - change.mean()) / number / size
    weights = np.linalg.solve(whole, wanted) / size
    left = change - change.mean() - varying @ weights
    told = float(weights @ sums)
    count_sd = sqrt(read.release["count"].variance)
    variance = (
        _OFF**2 * float((left**2).mean())
        + float(weights @ flat @ flat.T @ weights)
        + (told * count_sd / records) ** 2
        + float(change.var()) / records
    )
    return MeanChange(
        f"{to.name} - {base.name}",
        float(change.mean() - weights @ middle) + told,
        np.asarray(np.linalg.solve(read.units.T, in_z), dtype=np.float64),
        variance,
        float(np.asarray(public["less"])[0]) * float(np.abs(change).max()),
    )


def _points(read: FisherFigures) -> Array:
    """z of made points, (points, k)."""
    moments = np.asarray(read.release.public["moments"])
    return made_points(read.design, read.box, moments, keyed_generator(read.release.drawn_sha256, "mean slope"))


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
    points = _points(read)
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
    return MeanSlope(value, gradient, variance, less * most, less, partial(mean_change, read))
