"""How often a mechanism is run: laws of the count K, with generating function f(x) = E[x^K] and its derivative F = f'.

| law | P(K = j) | F(x) |
| --- | --- | --- |
| TruncatedNegativeBinomial(eta, mean), j >= 1 | (1-g)^j/(g^-eta - 1) prod_{l<j} (l+eta)/(l+1) | E[K] (g/(1 - (1-g) x))^(eta+1) |
| Poisson(m) | e^-m m^j/j! | m e^(m (x-1)) |
| Binomial(n, p) | C(n,j) p^j (1-p)^(n-j) | n p (1 - p + p x)^(n-1) |
| Fixed(n) | 1 at n | n x^(n-1) |

eta > -1; eta = 1 is the geometric law, eta = 0 the logarithmic one, E[K] = eta (1-g)/(g (1 - g^eta)). With k candidates drawn evenly and
with replacement, a given one is drawn at all with probability 1 - f(1 - 1/k).

A sampler draws K from integer weights (`weights`): consecutive probabilities have rational ratios, so that the
weights are as good as exact and the normalizer is never needed. The tail beyond the last weight is ignored;
`Weights.distance` bounds the total variation that this costs, which the bounds add to delta, (1 + e^epsilon) times.
Source: Papernot, Steinke 2022, section 3.

What selection costs: bounds on the privacy of the best of K runs of a base mechanism that is mu-GDP up to a slack d0.

The base Q gives an output and a score, its profile is at most delta(e; mu) + d0 at every e, in both directions. K
does not depend on the records, ties are broken by fresh randomness inside Q. Let q be Q's density and s the
probability of a higher score. The output's density is q F(1 - s), F the derivative of K's generating function.

(b) `tradeoff_delta`, the default. The other dataset has s' <= min(1, Phi(Phi^-1(s) + mu) + d0), hence with l = log q/q'

    delta(eps) <= E_l [ max_s (F(1-s) - e^(eps-l) F(1-s'))_+ ] + E[K] d0,     l ~ N(v/2, v), v = mu * mu:

The bracket is a convex decreasing function of q'/q with value at most E[K] at 0. So its expectation is largest for
the dominating pair, and slack adds at most E[K] d0. Computed from above: s in cells, the lower end in F(1-s) and the
upper end in s'. And l is in cells at their upper end, since the bracket rises with l. The mass beyond 9 standard
deviations counts with the largest value.

(a) `profile_epsilon`: (e1 + pen, E[K] delta_Q(e1)) for any e1, pen = sup_s log F(1-s)/F(1-s'), s' = min(1, e^eh s + delta_Q(eh)), any eh.

(c) `renyi_epsilon`: Renyi divergences of a Gaussian base (TNB with eta >= 0: Theorem 2; Poisson: Theorem 6 of Papernot, Steinke).

Sources: Papernot, Steinke 2022 (arXiv 2110.03620), Koskela, Redberg, Wang 2024 (a); (b) is proved above.

The base's level for a total (epsilon, delta): the largest mu at which a bound on the selection still meets it.

Private selection: a mechanism is run a random number of times and the best run is released. Run-count laws, bounds, calibration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide import _special as special
from confide._arrays import Array
from confide.errors import PrivacyError
from confide.guarantees.mechanisms.gaussian import gaussian_delta, gaussian_epsilon, mu_bracket
from confide.guarantees.validation import is_finite, is_whole

# Weights are kept to this many bits; the tail that is left out is below 2^-60.
_BITS = 192
_TAIL = Fraction(1, 1 << 60)
_WIDE = 256
_MOST = 10_000.0
# No law may call for more runs than this.
_LONGEST = 1 << 17


@dataclass(frozen=True)
class Weights:
    """P(K = j) proportional to `weights[j]`, j = 0, 1, ...; total variation from the law at most `distance`."""

    weights: tuple[int, ...]
    distance: float


class RunLaw(ABC):
    """A law of the number of runs K; frozen, compared by value."""

    kind: ClassVar[str]
    mean: float

    @abstractmethod
    def pgf(self, x: ArrayLike) -> Array:
        """f(x) = E[x^K], x in [0, 1]."""

    @abstractmethod
    def log_derivative(self, s: ArrayLike) -> Array:
        """log F(1 - s), s in [0, 1]: -inf where F is 0."""

    @abstractmethod
    def log_pmf(self, count: ArrayLike) -> Array:
        """log P(K = j)."""

    @abstractmethod
    def _ratios(self) -> tuple[int, int | None, Any]:
        """(first j with weight, last j or None, function j -> P(j + 1)/P(j) as a pair of integers, right to 2^-200)."""

    def _limit(self) -> Fraction:
        """What the ratios tend to, where there is no last j."""
        return Fraction(0)

    @abstractmethod
    def penalty(self, epsilon: float, delta: float) -> float:
        """sup over s of log F(1-s)/F(1-s'), s' = min(1, e^epsilon s + delta), which lies at s = 0 or where s' reaches 1."""

    def derivative(self, s: ArrayLike) -> Array:
        """F(1 - s)."""
        return np.asarray(np.exp(self.log_derivative(s)))

    def pmf(self, count: ArrayLike) -> Array:
        """P(K = j)."""
        return np.asarray(np.exp(self.log_pmf(count)))

    def chance_drawn(self, candidates: int) -> float:
        """The probability that a given one of `candidates` is drawn at all.

        >>> round(TruncatedNegativeBinomial(1.0, 600.0).chance_drawn(30), 3)
        0.954
        """
        return float(1 - self.pgf(1 - 1 / candidates))

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; `run_law` reads it."""
        return {"law": self.kind, **{f.name: getattr(self, f.name) for f in fields(self) if f.init}}  # type: ignore[arg-type]

    def weights(self) -> Weights:
        """Integers to draw K by, with what they leave out."""
        return _weights(self)


@lru_cache(maxsize=64)
def _weights(law: RunLaw) -> Weights:
    first, last, ratio = law._ratios()
    found, total, j = [1 << _BITS], 1 << _BITS, first
    while last is None or j < last:
        up, down = ratio(j)
        found.append(found[-1] * up // down)
        total += found[-1]
        j += 1
        if last is None and j % 32 == 0:
            # from here on every ratio is at most `bound`, so that the tail is below a geometric series
            bound = max(Fraction(*ratio(j)), law._limit())
            if bound < 1 and found[-1] * bound / (1 - bound) <= _TAIL * total:
                break
            if j > _LONGEST:
                raise PrivacyError(
                    f"{law} has runs beyond {_LONGEST:,} that cannot be left out", "take a larger eta or fewer runs"
                )
    shift = max(total.bit_length() - _BITS, 0)
    kept = tuple(w >> shift for w in found)
    # weights rise from 2^_BITS to one peak and fall: while they rise a floor loses at most 2^-_BITS of each that follows, then a unit
    rounding = len(kept) ** 2 * 2.0 ** (2 - _BITS)
    return Weights((0,) * first + kept, (0.0 if last is not None else float(_TAIL)) + rounding)


def _number(value: object, name: str, low: float, high: float, call: str) -> float:
    good = is_finite(value) and low < value <= high
    if not good:
        raise PrivacyError(
            f"{name} must be a number above {low:g} and at most {high:g}, got {value!r}", f"write {call}"
        )
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, name: str, call: str) -> int:
    if not is_whole(value, 1, _MOST):
        raise PrivacyError(f"{name} must be a whole number from 1 to {_MOST:g}, got {value!r}", f"write {call}")
    return value


@dataclass(frozen=True)
class TruncatedNegativeBinomial(RunLaw):
    """eta > -1 and the mean above 1; fewer runs are spread wider for smaller eta, at less cost and with less chance of a given candidate.

    >>> law = TruncatedNegativeBinomial(1.0, 90.0)
    >>> round(1 / law.g, 6), round(float(law.pmf(1)), 6)
    (90.0, 0.011111)
    """

    eta: float = 1.0
    mean: float = 90.0

    kind: ClassVar[str] = "truncated negative binomial"

    def __post_init__(self) -> None:
        call = "TruncatedNegativeBinomial(1.0, 90.0)"
        object.__setattr__(self, "eta", _number(self.eta, "eta", -1, 100, call))
        object.__setattr__(self, "mean", _number(self.mean, "the mean", 1, _MOST, call))

    @cached_property
    def g(self) -> float:
        """gamma in (0, 1): the mean falls as it rises."""
        low, high = -800.0 / max(1.0, 1 + self.eta), -1e-12
        for _ in range(200):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if self._mean(middle) > self.mean else (low, middle)
        return exp(low)

    def _mean(self, log_g: float) -> float:
        odds = -expm1(log_g)
        if self.eta == 0:
            return odds / exp(log_g) / -log_g
        return odds / exp(log_g) * self.eta / -expm1(self.eta * log_g)

    def pgf(self, x: ArrayLike) -> Array:
        base = np.log1p(-(1 - self.g) * np.asarray(x, dtype=np.float64))
        if self.eta == 0:
            return np.asarray(base / log(self.g))
        return np.asarray(np.expm1(-self.eta * base) / expm1(-self.eta * log(self.g)))

    def log_derivative(self, s: ArrayLike) -> Array:
        odds = (1 - self.g) / self.g
        return np.asarray(log(self.mean) - (self.eta + 1) * np.log1p(odds * np.asarray(s, dtype=np.float64)))

    def log_pmf(self, count: ArrayLike) -> Array:
        j = np.asarray(count, dtype=np.float64)
        safe = np.maximum(j, 1.0)
        # (1-g)^j Gamma(j+eta)/(Gamma(1+eta) j!) times eta/(g^-eta - 1), which is 1/log(1/g) at eta = 0
        front = -log(-log(self.g)) if self.eta == 0 else log(self.eta / expm1(-self.eta * log(self.g)))
        value = front + safe * log1p(-self.g) + special.gammaln(safe + self.eta) - special.gammaln(1 + self.eta)
        return np.asarray(np.where(j >= 1, value - special.gammaln(safe + 1), -inf))

    def _limit(self) -> Fraction:
        return 1 - Fraction(self.g)

    def _ratios(self) -> tuple[int, int | None, Any]:
        keep, eta = int((1 - Fraction(self.g)) * (1 << _WIDE)), Fraction(self.eta)
        top, bottom = eta.numerator, eta.denominator
        return 1, None, lambda j: (keep * (j * bottom + top), (j + 1) * bottom << _WIDE)

    def penalty(self, epsilon: float, delta: float) -> float:
        g = self.g
        low = 1 / (g + (1 - g) * (1 - delta) * exp(-epsilon)) if delta < 1 else 1 / g
        return (1 + self.eta) * log(max((g + (1 - g) * delta) / g, low))


@dataclass(frozen=True)
class Poisson(RunLaw):
    """A Poisson number of runs, which may be none: then the mechanism declines."""

    mean: float

    kind: ClassVar[str] = "Poisson"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _number(self.mean, "the mean", 0, _MOST, "Poisson(30.0)"))

    def pgf(self, x: ArrayLike) -> Array:
        return np.asarray(np.exp(self.mean * (np.asarray(x, dtype=np.float64) - 1)))

    def log_derivative(self, s: ArrayLike) -> Array:
        return np.asarray(log(self.mean) - self.mean * np.asarray(s, dtype=np.float64))

    def log_pmf(self, count: ArrayLike) -> Array:
        j = np.asarray(count, dtype=np.float64)
        return np.asarray(j * log(self.mean) - self.mean - special.gammaln(j + 1))

    def _ratios(self) -> tuple[int, int | None, Any]:
        mean = Fraction(self.mean)
        return 0, None, lambda j: (mean.numerator, mean.denominator * (j + 1))

    def penalty(self, epsilon: float, delta: float) -> float:
        return self.mean * (1 - (1 - delta) * exp(-epsilon))


@dataclass(frozen=True)
class Binomial(RunLaw):
    """Up to n runs, each made with probability p; there may be none: then the mechanism declines."""

    n: int
    p: float
    mean: float = field(init=False)

    kind: ClassVar[str] = "binomial"

    def __post_init__(self) -> None:
        _whole(self.n, "n", "Binomial(60, 0.5)")
        object.__setattr__(self, "p", _number(self.p, "p", 0, 1, "Binomial(60, 0.5)"))
        object.__setattr__(self, "mean", self.n * self.p)

    def pgf(self, x: ArrayLike) -> Array:
        return np.asarray((1 - self.p + self.p * np.asarray(x, dtype=np.float64)) ** self.n)

    def log_derivative(self, s: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            power = (self.n - 1) * np.log1p(-self.p * np.asarray(s, dtype=np.float64))
        return np.asarray(log(self.mean) + (power if self.n > 1 else np.zeros_like(power)))

    def log_pmf(self, count: ArrayLike) -> Array:
        j = np.asarray(count, dtype=np.float64)
        inside = np.clip(j, 0, self.n)
        value = special.gammaln(self.n + 1) - special.gammaln(inside + 1) - special.gammaln(self.n - inside + 1)
        value += special.xlogy(inside, self.p) + special.xlog1py(self.n - inside, -self.p)
        return np.asarray(np.where(j <= self.n, value, -inf))

    def _ratios(self) -> tuple[int, int | None, Any]:
        if self.p == 1:
            return self.n, self.n, None
        odds = Fraction(self.p) / (1 - Fraction(self.p))
        return 0, self.n, lambda j: (odds.numerator * (self.n - j), odds.denominator * (j + 1))

    def penalty(self, epsilon: float, delta: float) -> float:
        if self.n == 1:
            return 0.0
        if self.p == 1:
            return inf
        return (self.n - 1) * (log1p(-self.p * (1 - delta) * exp(-epsilon)) - log1p(-self.p))


@dataclass(frozen=True)
class Fixed(RunLaw):
    """Always n runs."""

    n: int
    mean: float = field(init=False)

    kind: ClassVar[str] = "fixed"

    def __post_init__(self) -> None:
        _whole(self.n, "n", "Fixed(30)")
        object.__setattr__(self, "mean", float(self.n))

    def pgf(self, x: ArrayLike) -> Array:
        return np.asarray(np.asarray(x, dtype=np.float64) ** self.n)

    def log_derivative(self, s: ArrayLike) -> Array:
        with np.errstate(divide="ignore"):
            power = (self.n - 1) * np.log1p(-np.asarray(s, dtype=np.float64)) if self.n > 1 else np.zeros(np.shape(s))
        return np.asarray(log(self.n) + power)

    def log_pmf(self, count: ArrayLike) -> Array:
        return np.asarray(np.where(np.asarray(count) == self.n, 0.0, -inf))

    def _ratios(self) -> tuple[int, int | None, Any]:
        return self.n, self.n, None

    def penalty(self, epsilon: float, delta: float) -> float:
        return 0.0 if self.n == 1 else inf


_LAWS: dict[str, type[RunLaw]] = {law.kind: law for law in (TruncatedNegativeBinomial, Poisson, Binomial, Fixed)}


def run_law(data: Mapping[str, Any]) -> RunLaw:
    """The inverse of `RunLaw.to_dict`.

    >>> run_law(Poisson(30.0).to_dict())
    Poisson(mean=30.0)
    """
    settings = dict(data)
    kind = settings.pop("law", None)
    if kind not in _LAWS:
        raise PrivacyError(f"no law of runs {kind!r}; the laws are {', '.join(_LAWS)}")
    return _LAWS[kind](**settings)


_REACH = 9.0
_LOSSES = 1500
# Float64 of normal distribution functions, exponentials and the sum: far below this, relative.
_UP = 1 + 1e-9
_ORDERS = np.concatenate([np.geomspace(1.05, 2, 20), np.geomspace(2.1, 4096, 120)])


@lru_cache(maxsize=1)
def _cells() -> tuple[Array, Array]:
    """Lower and upper ends of the cells of s: one from 0, 60 up to 1e-6, 3,500 up to 1, and finer ones near 1, where F may reach 0."""
    ends = np.concatenate([np.geomspace(1e-14, 1e-6, 61), np.geomspace(1e-6, 1.0, 3501)[1:]])
    ends = np.union1d(ends, 1 - np.geomspace(1e-9, 0.25, 1500))
    return np.concatenate([[0.0], ends[:-1]]), ends


@lru_cache(maxsize=1)
def _losses() -> tuple[Array, Array]:
    """Upper ends of the cells of the standardized loss, and their probabilities."""
    ends = np.linspace(-_REACH, _REACH, _LOSSES + 1)
    return ends[1:], np.diff(special.ndtr(ends))


def tradeoff_delta(epsilon: float, mu: float, law: RunLaw, slack: float = 0.0) -> float:
    """delta at `epsilon` of the best of K runs of a mu-GDP base with slack d0, from above; at most 1.

    >>> one = tradeoff_delta(1.0, 0.1077, TruncatedNegativeBinomial(1.0, 600.0))
    >>> 0.9e-6 < one < 1.1e-6
    True
    """
    low, high = _cells()
    own = law.derivative(low)
    other = law.derivative(np.minimum(1.0, special.ndtr(special.ndtri(high) + mu) + slack))
    upper, mass = _losses()
    bracket = _largest(own, other, np.exp(epsilon - (mu * mu / 2 + mu * upper)))
    tail = float(special.ndtr(-_REACH))
    total = float(mass @ bracket) + tail * (law.mean + float(bracket[0])) + law.mean * slack
    return min(1.0, total * _UP + (1 + exp(min(epsilon, 700.0))) * law.weights().distance)


def _largest(own: Array, other: Array, times: Array) -> Array:
    """max(0, max over cells of own - t other) at each t, t > 0 falling: lines of which those on the upper envelope matter."""
    keep = _envelope(own, other)
    own, other = own[keep], other[keep]
    with np.errstate(divide="ignore", invalid="ignore"):
        # own and other both fall along the cells; line i is above i + 1 where t < gap_own/gap_other
        crossing = (own[:-1] - own[1:]) / (other[:-1] - other[1:])
    place = np.searchsorted(crossing, times, side="left")
    near = np.stack([np.clip(place + shift, 0, len(own) - 1) for shift in (-1, 0, 1)])
    return np.asarray(np.maximum(0.0, (own[near] - times * other[near]).max(axis=0)))


def _envelope(lines: Array, falls: Array) -> NDArray[np.int64]:
    """The lines own - t other that are the largest for some t >= 0: the upper left hull of the points (other, own)."""
    hull: list[int] = []
    own, other = lines.tolist(), falls.tolist()  # plain numbers: one by one those of an array are slow
    for i in range(len(own) - 1, -1, -1):  # other rises
        while hull and other[hull[-1]] >= other[i] and own[hull[-1]] <= own[i]:
            hull.pop()
        if hull and own[i] <= own[hull[-1]]:
            continue
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (own[b] - own[a]) * (other[i] - other[b]) <= (own[i] - own[b]) * (other[b] - other[a]):
                hull.pop()
            else:
                break
        hull.append(i)
    return np.array(hull[::-1])


def profile_epsilon(delta: float, mu: float, law: RunLaw) -> float:
    """epsilon at `delta` of the best of K runs of a mu-GDP base, by bound (a); infinite for a fixed number of runs.

    >>> profile_epsilon(1e-6, 0.0976, TruncatedNegativeBinomial(1.0, 600.0)) < 1.01
    True
    """
    first = max(gaussian_epsilon(delta / law.mean, mu), 0.0) if delta < law.mean else 0.0
    grid = np.linspace(0.0, max(2 * first, 8 * mu), 150)
    for _ in range(2):
        values = [law.penalty(float(e), gaussian_delta(float(e), mu)) for e in grid]
        best = int(np.argmin(values))
        found = values[best]
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 40)
    return first + found


def profile_delta(epsilon: float, mu: float, law: RunLaw) -> float:
    """delta at `epsilon` by bound (a), at most 1."""
    low, high = log(1e-300), 0.0
    if profile_epsilon(1.0 - 1e-12, mu, law) > epsilon:
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if profile_epsilon(exp(middle), mu, law) > epsilon else (low, middle)
    return exp(high)


def renyi_epsilon(delta: float, mu: float, law: RunLaw) -> float:
    """epsilon at `delta` of the best of K runs of a mu-GDP base, by bound (c).

    Raises `PrivacyError` for a law that the theorems do not cover: TNB with eta below 0, binomial, fixed.
    """
    a = _ORDERS
    own = a * mu * mu / 2
    if isinstance(law, TruncatedNegativeBinomial) and law.eta >= 0:
        factor, other = 1 + law.eta, np.concatenate([[1.0], _ORDERS])
        extra = factor * ((1 - 1 / other) * other * mu * mu / 2 + log(1 / law.g) / other)
        value = own + float(extra.min()) + log(law.mean) / (a - 1)
    elif isinstance(law, Poisson):
        losses = np.log1p(1 / (a - 1))
        value = own + law.mean * np.array([gaussian_delta(float(e), mu) for e in losses]) + log(law.mean) / (a - 1)
    else:
        raise PrivacyError(
            f"no Renyi bound is proved for {law}", "use TruncatedNegativeBinomial with eta of at least 0, or Poisson"
        )
    return float(max((value + np.log1p(-1 / a) - (log(delta) + np.log(a)) / (a - 1)).min(), 0.0))


_SEARCH_BITS = 20


@dataclass(frozen=True)
class Base:
    """What each run may cost: mu-GDP up to a slack. law: of the number of runs; None: every candidate runs once, and all compose.

    drawn: the probability that a given candidate, such as the best, is run at all.
    """

    mu: float
    slack: float
    law: RunLaw | None
    drawn: float


def _down(mu: float) -> float:
    """mu rounded down to 20 bits, so that machines whose last digits differ make the same plan."""
    exponent = int(log(mu, 2) // 1)
    mantissa = int(mu / 2.0**exponent * 2**_SEARCH_BITS)
    return mantissa * 2.0 ** (exponent - _SEARCH_BITS)


@lru_cache(maxsize=256)
def largest_base(epsilon: float, delta: float, law: RunLaw, slack: float = 0.0, bound: str = "tradeoff") -> float:
    """The largest mu of the base at which `bound` gives at most (epsilon, delta): "tradeoff" (b), "profile" (a) or "renyi" (c).

    slack: d0 of the base, for "tradeoff" alone. At most what a single run may have. 0 where no mu does.

    >>> from confide.guarantees.selection import TruncatedNegativeBinomial
    >>> round(largest_base(1.0, 1e-6, TruncatedNegativeBinomial(1.0, 90.0)), 3)
    0.127
    """
    bounds: dict[str, Callable[[float], bool]] = {
        "tradeoff": lambda mu: tradeoff_delta(epsilon, mu, law, slack) <= delta,
        "profile": lambda mu: profile_epsilon(delta, mu, law) <= epsilon,
        "renyi": lambda mu: renyi_epsilon(delta, mu, law) <= epsilon,
    }
    if bound not in bounds:
        raise PrivacyError(f"bound must be one of {', '.join(bounds)}, got {bound!r}; the default is the sharpest")
    holds = bounds[bound]
    high = log(mu_bracket(epsilon, delta)[0])
    if holds(exp(high)):
        return exp(high)
    low = high - 1
    while not holds(exp(low)):
        low, high = low - 1, low
        if low < -40:
            return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(exp(middle)) else (low, middle)
    return exp(low)


def composed_base(epsilon: float, delta: float, candidates: int) -> float:
    """mu of each candidate where all run once and all is accounted as released."""
    return mu_bracket(epsilon, delta)[0] / sqrt(candidates)


@lru_cache(maxsize=256)
def calibrate_selection(
    epsilon: float, delta: float, candidates: int, law: RunLaw | None, slack: float = 0.0, *, alone: bool = False
) -> Base:
    """The base of a selection among `candidates` with total (epsilon, delta).

    `slack`: the share of delta that is set aside for a base whose own guarantee may fail, 0 for none. `law`: of the
    number of runs; None for all composed. `alone`: take the law as it is. Otherwise, for three candidates or fewer,
    running all of them once is compared, and used where its mu is larger.

    >>> from confide.guarantees.selection import TruncatedNegativeBinomial
    >>> round(calibrate_selection(1.0, 1e-6, 30, TruncatedNegativeBinomial(1.0, 90.0)).drawn, 3)
    0.756
    """
    found = []
    if law is not None:
        own = slack * delta / law.mean
        mu = largest_base(epsilon, delta, law, own)
        if mu > 0:
            found.append(Base(_down(mu), own, law, law.chance_drawn(candidates)))
    if law is None or (candidates <= 3 and not alone):
        found.append(
            Base(_down(composed_base(epsilon, delta * (1 - slack), candidates)), slack * delta / candidates, None, 1.0)
        )
    if not found:
        raise PrivacyError(
            f"no base mechanism gives ({epsilon!r}, {delta!r}) with {law}", "ask for a larger budget or fewer runs"
        )
    return max(found, key=lambda base: base.mu)
