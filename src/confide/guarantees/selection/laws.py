"""How often a mechanism is run: laws of the count K, with generating function f(x) = E[x^K] and its derivative F = f'.

| law | P(K = j) | F(x) |
| --- | --- | --- |
| TruncatedNegativeBinomial(eta, mean), j >= 1 | (1-g)^j/(g^-eta - 1) prod_{l<j} (l+eta)/(l+1) | E[K] (g/(1 - (1-g) x))^(eta+1) |
| Poisson(m) | e^-m m^j/j! | m e^(m (x-1)) |
| Binomial(n, p) | C(n,j) p^j (1-p)^(n-j) | n p (1 - p + p x)^(n-1) |
| Fixed(n) | 1 at n | n x^(n-1) |

eta > -1; eta = 1 is the geometric law, eta = 0 the logarithmic one, E[K] = eta (1-g)/(g (1 - g^eta)). With k candidates drawn evenly and
with replacement, a given one is drawn at all with probability 1 - f(1 - 1/k).

A sampler draws K from integer weights (`weights`): consecutive probabilities have rational ratios, so that the weights are as good as
exact and the normaliser is never needed. The tail beyond the last weight is left out; `Weights.distance` bounds the total variation that
this costs, which the bounds add to delta, (1 + e^epsilon) times.
Source: Papernot, Steinke 2022, section 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, expm1, inf, log, log1p
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from confide import _special as special
from confide._arrays import Array
from confide.errors import PrivacyError
from confide.guarantees.validation import is_finite, is_whole

__all__ = ["Binomial", "Fixed", "Poisson", "RunLaw", "TruncatedNegativeBinomial", "Weights", "run_law"]


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
                    f"{law} has runs beyond {_LONGEST:,} that cannot be left out; take a larger eta or fewer runs"
                )
    shift = max(total.bit_length() - _BITS, 0)
    kept = tuple(w >> shift for w in found)
    # weights rise from 2^_BITS to one peak and fall: while they rise a floor loses at most 2^-_BITS of each that follows, then a unit
    rounding = len(kept) ** 2 * 2.0 ** (2 - _BITS)
    return Weights((0,) * first + kept, (0.0 if last is not None else float(_TAIL)) + rounding)


def _number(value: object, name: str, low: float, high: float, call: str) -> float:
    good = is_finite(value) and low < value <= high
    if not good:
        raise PrivacyError(f"{name} must be a number above {low:g} and at most {high:g}, got {value!r}; write {call}")
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, name: str, call: str) -> int:
    if not is_whole(value, 1, _MOST):
        raise PrivacyError(f"{name} must be a whole number from 1 to {_MOST:g}, got {value!r}; write {call}")
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
    """A Poisson number of runs, which may be none: then there is no reply."""

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
    """Up to n runs, each made with probability p; there may be none: then there is no reply."""

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
