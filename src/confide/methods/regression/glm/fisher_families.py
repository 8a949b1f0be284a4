"""Families of models for Fisher scoring: what one outcome says about a line, and how much it can say at most.

Along the line eta = z'theta a record gives a residual r and an information h, both in units of a scale R, and a bound m. The bound has
|r| <= m for EVERY outcome that the declaration allows; h and m depend on eta alone, never on y:

- logit: R = 1,  r = y - p,                   h = p (1 - p),              m = max(p, 1 - p)
- probit: R = 2,  r = (y - F) f/(F (1 - F))/R,  h = f^2/(F (1 - F))/R,      m = f/min(F, 1 - F)/R
- counts: R = c,  r = (min(y, c) - l)/R,        h = l/R,                    m = max(l, c - l)/R

with p = 1/(1 + exp(-eta)), f and F the normal density and distribution function, l = exp(eta). Proofs of |r| <= m:

- logit: y is 0 or 1, so that r is -p or 1 - p.
- probit: y is 0 or 1: r is -f/(1 - F)/R or f/F/R, and the larger of the two sizes has the smaller of F and 1 - F below it.
- counts: 0 <= min(y, c) <= c: r is between -l/R and (c - l)/R, and |c - l| <= max(l, c - l), for l above c, too.

Sensitivity: take alpha, D and any T, theta. The weight w = min(1, D/N), N^2 = alpha^2 h^2 |u|^4 + m^2 |u|^2, keeps |alpha w h u u'|_F^2
+ |w r u|^2 <= D^2 whatever the family: no residual needs a bound that holds for all eta. So the probit's eta is not clipped, though its
r grows like |eta|, and none of the three depends on how large R is. The limit c of counts comes from earlier noisy numbers and is at
most the declared bound. Outcomes are clipped to it, the mean is not: the line is that of min(y, c), and where no count lies above c
that of y. All three have E r = 0 and E r^2 = h/R where the model holds.

Bias. A record with N > D counts w = D/N of its score, which misses (1 - w) |r| |u| <= (N - D)/N N |r|/m = D (N/D - 1) |r|/m, since m
|u| <= N. So D times the sum of (N/D - 1)+ |r|/m bounds what all of them miss, whatever the family and whether or not the model holds,
and |r|/m is at most 1. The probit takes that. Scores of counts have their own weight w (`fisher_rows`) and miss (1 - w) M |r|/m at
most, M = m |u|. There D times the sum of min((1 - w) M/D, 1) |r|/m bounds it where (1 - w) M <= D. Of the logit m is at least 1/2 and
near 1 for extreme records; its factor is r^2, at most 1 as |r| is. The reason: let p' of these records have the outcome. The mean
residual p' - p is about at most E r^2 = p' + p (p - 2 p') where p is near 0 and p' above it. Records that the line predicts add half as
much as with |r| (`glm/noise_floor` names the assumption).

Float steps are elementwise. `numpy`'s exponential is computed in aligned blocks of one length, as its vector loops may treat the ends
of an array otherwise than its middle; `scipy`'s erfcx is one scalar function of each entry.

Sources: McCullagh, Nelder 1989; for counts whose variance is not their mean Gourieroux, Monfort, Trognon 1984 (the line of the mean).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import ClassVar, Protocol

import numpy as np

from confide._arrays import Array
from confide._special import erfcx, expit, log_expit, log_ndtr, ndtr, ndtri

# Rows whose exponentials are computed together.
_BLOCK = 4096
# Log-rates are no number beyond this; the density of a normal distribution is none beyond that.
_FAR_RATE, _FAR_NORMAL = 40.0, 37.0


class Family(Protocol):
    """One family. Of records: `parts`. Of public points: the rest, elementwise, in units of the outcome unless stated otherwise."""

    name: ClassVar[str]
    #: What eta is called.
    scale_words: ClassVar[str]

    #: How far apart the mean residuals of records with one eta may lie, in units of R.
    span: ClassVar[float]

    #: Where score and information together are beyond the bound: the part of it that the score may take, 0 where both count less alike.
    score_part: ClassVar[float]

    @property
    def scale(self) -> float:
        """R."""
        ...

    def parts(self, eta: Array, codes: Array, steps: float) -> tuple[Array, Array, Array]:
        """(h, r, m) of records, new arrays; codes: of the outcome, from 0 to `steps`."""
        ...

    def missed(self, r: Array, m: Array) -> Array:
        """A number from 0 to 1 that bounds what a record adds to the bias of a weighted sum, per m, and may overwrite r."""
        ...

    def mean(self, eta: Array) -> Array:
        """The mean of the outcome."""
        ...

    def slope(self, eta: Array) -> Array:
        """The mean's derivative in eta."""
        ...

    def information(self, eta: Array) -> Array:
        """h."""
        ...

    def most(self, eta: Array) -> Array:
        """m."""
        ...

    def link(self, mean: float) -> float:
        """eta of a mean, in units in which the largest outcome is 1."""
        ...

    def loss(self, eta: Array, target: Array) -> Array:
        """Minus the log-likelihood of a target between 0 and 1, in units in which the largest outcome is 1 and up to a constant."""
        ...

    def pull(self, eta: Array, target: Array) -> tuple[Array, Array]:
        """The loss's derivative in eta, and its expected second derivative."""
        ...


def _exponential(of: Array, out: Array) -> None:
    """exp of each entry, in aligned blocks of one length."""
    raw = np.empty(_BLOCK + 8)
    first = -raw.ctypes.data % 64 // 8
    room = raw[first : first + _BLOCK]
    for start in range(0, len(of), _BLOCK):
        stop = min(start + _BLOCK, len(of))
        room[: stop - start] = of[start:stop]
        room[stop - start :] = 0.0
        np.exp(room, out=room)
        out[start:stop] = room[: stop - start]


def _relative(r: Array, m: Array) -> Array:
    """|r|/m, in the place of r."""
    np.abs(r, out=r)
    r /= m
    return r


@dataclass(frozen=True)
class Logit:
    """Log-odds of an outcome of 0 or 1."""

    name: ClassVar[str] = "logit"
    scale_words: ClassVar[str] = "log-odds"
    scale: ClassVar[float] = 1.0
    span: ClassVar[float] = 1.0
    score_part: ClassVar[float] = 0.0

    def parts(self, eta: Array, codes: Array, steps: float) -> tuple[Array, Array, Array]:
        side = codes - steps / 2
        likely, unlikely = _probabilities(np.abs(eta))
        # an outcome on the side that the line says leaves the smaller residual, below 0 where it did not come; chosen by products, since no
        # processor guesses which way the branch in `where` goes next
        r = likely * ((side >= 0.0) != (eta >= 0.0))
        np.maximum(r, unlikely, out=r)
        np.copysign(r, side, out=r)
        unlikely *= likely
        return unlikely, r, likely

    def missed(self, r: Array, m: Array) -> Array:
        r *= r
        return r

    def mean(self, eta: Array) -> Array:
        return np.asarray(expit(eta))

    def slope(self, eta: Array) -> Array:
        return self.information(eta)

    def information(self, eta: Array) -> Array:
        return np.asarray(1 / (4 * np.cosh(np.clip(eta, -700, 700) / 2) ** 2))

    def most(self, eta: Array) -> Array:
        return np.asarray(expit(np.abs(eta)))

    def link(self, mean: float) -> float:
        return float(np.log(mean / (1 - mean)))

    def loss(self, eta: Array, target: Array) -> Array:
        return np.asarray(-(target * log_expit(eta) + (1 - target) * log_expit(-eta)))

    def pull(self, eta: Array, target: Array) -> tuple[Array, Array]:
        p = expit(eta)
        return p - target, p * (1 - p)


def _probabilities(margin: Array) -> tuple[Array, Array]:
    """(1/(1 + e), e/(1 + e)) with e = exp(-margin), margin >= 0."""
    unlikely = np.empty_like(margin)
    _exponential(np.negative(margin), unlikely)
    likely = 1.0 / (1.0 + unlikely)
    unlikely *= likely
    return likely, unlikely


@dataclass(frozen=True)
class Probit:
    """Normal quantiles of the probability of an outcome of 0 or 1."""

    name: ClassVar[str] = "probit"
    scale_words: ClassVar[str] = "normal quantiles"
    #: About 4 f(0): at even odds m is one half, and h .32, much as for the logit, so that one start and one set of edges serves both.
    scale: ClassVar[float] = 2.0
    #: f/(F (1 - F))/R up to |eta| = 3.7.
    span: ClassVar[float] = 2.0
    score_part: ClassVar[float] = 0.0

    def parts(self, eta: Array, codes: Array, steps: float) -> tuple[Array, Array, Array]:
        yes = codes * 2.0 >= steps
        margin = np.abs(eta)
        # f/(1 - F) and f/F at |eta|: the larger belongs to the outcome that the line makes the rarer
        rare = sqrt(2 / pi) / erfcx(margin / sqrt(2))
        usual = _usual(margin)
        r = np.where(yes == (eta >= 0.0), usual, rare)
        np.negative(r, out=r, where=~yes)
        r /= self.scale
        return rare * usual / self.scale, r, rare / self.scale

    def missed(self, r: Array, m: Array) -> Array:
        return _relative(r, m)

    def mean(self, eta: Array) -> Array:
        return np.asarray(ndtr(eta))

    def slope(self, eta: Array) -> Array:
        return np.asarray(np.exp(-np.minimum(np.square(eta), 1e3) / 2) / sqrt(2 * pi))

    def information(self, eta: Array) -> Array:
        margin = np.abs(eta)
        return np.asarray(sqrt(2 / pi) / erfcx(margin / sqrt(2)) * _usual(margin) / self.scale)

    def most(self, eta: Array) -> Array:
        return np.asarray(sqrt(2 / pi) / erfcx(np.abs(eta) / sqrt(2)) / self.scale)

    def link(self, mean: float) -> float:
        return float(ndtri(mean))

    def loss(self, eta: Array, target: Array) -> Array:
        return np.asarray(-(target * log_ndtr(eta) + (1 - target) * log_ndtr(-eta)))

    def pull(self, eta: Array, target: Array) -> tuple[Array, Array]:
        high, low = (sqrt(2 / pi) / erfcx(-sign * np.clip(eta, -30, 30) / sqrt(2)) for sign in (-1.0, 1.0))
        # high: f/(1 - F); low: f/F
        return (1 - target) * high - target * low, high * low


def _usual(margin: Array) -> Array:
    """f/F at a margin of at least 0."""
    density = np.empty_like(margin)
    _exponential(np.square(np.minimum(margin, _FAR_NORMAL)) * -0.5, density)
    density /= sqrt(2 * pi)
    return np.asarray(density / ndtr(margin))


@dataclass(frozen=True)
class Counts:
    """Log-rates of counts between 0 and a declared bound `high`, clipped to c = `cut` <= `high`, which is the largest outcome.

    Where a mean stops growing, all extreme records are below every exponential. So a line of scores that are down-weighted with their
    information is another one.
    """

    high: float
    cut: float

    name: ClassVar[str] = "counts"
    scale_words: ClassVar[str] = "log-rates"
    span: ClassVar[float] = 1.0
    score_part: ClassVar[float] = 0.8

    @property
    def scale(self) -> float:
        return self.cut

    def parts(self, eta: Array, codes: Array, steps: float) -> tuple[Array, Array, Array]:
        h = np.empty_like(eta)
        # the mean in units of c; what is no number stays none, and counts as nothing
        _exponential(np.clip(eta, -_FAR_RATE, _FAR_RATE), h)
        h /= self.cut
        y = codes * (self.high / steps)
        np.minimum(y, self.cut, out=y)
        y /= self.cut
        # a rounding above 1 would be beyond the bound
        np.minimum(y, 1.0, out=y)
        return h, y - h, np.maximum(h, 1.0 - h)

    def missed(self, r: Array, m: Array) -> Array:
        return _relative(r, m)

    def mean(self, eta: Array) -> Array:
        return np.asarray(np.exp(np.clip(eta, -_FAR_RATE, _FAR_RATE)))

    def slope(self, eta: Array) -> Array:
        return self.mean(eta)

    def information(self, eta: Array) -> Array:
        return np.asarray(self.mean(eta) / self.cut)

    def most(self, eta: Array) -> Array:
        h = self.information(eta)
        return np.asarray(np.maximum(h, 1.0 - h))

    def link(self, mean: float) -> float:
        return log(mean * self.cut)

    def loss(self, eta: Array, target: Array) -> Array:
        return np.asarray(self.information(eta) - target * eta)

    def pull(self, eta: Array, target: Array) -> tuple[Array, Array]:
        rate = self.information(eta)
        return rate - target, rate


LOGIT, PROBIT = Logit(), Probit()
