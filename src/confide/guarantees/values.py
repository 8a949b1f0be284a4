"""What is promised: PureDP, ApproxDP, ZCDP and GDP as frozen values.

A guarantee bounds how well anyone who sees a release can tell two neighbouring sets of records apart. Each value
carries the relation that says what a neighbour is, the unit that is protected, who is trusted with the records, and
the assumptions that its proof rests on. Values compare, print, match patterns, and read back from JSON to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from math import exp, expm1, log, sqrt
from typing import Any, ClassVar, Self, TypeAlias, cast

from scipy.special import ndtr, ndtri

from confide.errors import PrivacyError
from confide.guarantees.validation import assumption_tuple, level, relation_name, share, trust_name, unit_name
from confide.guarantees.wording import percent, sentence

__all__ = ["GDP", "ZCDP", "ApproxDP", "Guarantee", "PureDP", "guarantee_from_dict"]


@dataclass(frozen=True, kw_only=True, repr=False)
class _Statement:
    """What all guarantees share: relation, unit, trust, assumptions."""

    relation: str | None = None
    unit: str = "record"
    trust: str = "central"
    assumptions: tuple[str, ...] = ()

    _example: ClassVar[str] = ""

    def __post_init__(self) -> None:
        checked = {
            "relation": relation_name(self.relation),
            "unit": unit_name(self.unit),
            "trust": trust_name(self.trust),
            "assumptions": assumption_tuple(self.assumptions),
        }
        for name, value in {**checked, **self._checked_numbers()}.items():
            object.__setattr__(self, name, value)  # the one moment at which a frozen value may be normalised

    def _checked_numbers(self) -> dict[str, float]:
        return {name: level(getattr(self, name), name, self._example) for name in self.numbers()}

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """The names of the privacy levels, in order.

        >>> GDP.numbers()
        ('mu', 'delta')
        """
        return tuple(f.name for f in fields(cls) if not f.kw_only)

    @property
    def _guarantee(self) -> Guarantee:
        return cast("Guarantee", self)  # every concrete subclass is a member of the union

    @property
    def complete(self) -> bool:
        """Whether the relation is set. Plans, releases and ledgers hold complete statements only.

        >>> GDP(1.0).complete, GDP(1.0, relation="substitute").complete
        (False, True)
        """
        return self.relation is not None

    def resolve(self, relation: str) -> Self:
        """The same guarantee with its relation set; `PrivacyError` when it already has another one.

        >>> GDP(1.0).resolve("add-remove")
        GDP(1.0, relation='add-remove')
        """
        wanted = relation_name(relation)
        if wanted is None:
            raise PrivacyError(
                "a guarantee is resolved to a relation, got None; write resolve('add-remove') or resolve('substitute')"
            )
        if self.relation not in (None, wanted):
            from confide.guarantees.conversion import how_to_change  # conversion.py knows the values, not the reverse

            raise PrivacyError(f"{self} cannot be resolved to {wanted!r}: {how_to_change(self._guarantee, wanted)}")
        return replace(self, relation=wanted)

    def to_gdp(self) -> GDP:
        """The same promise as Gaussian differential privacy, where that is proved; else `NoConversion`.

        >>> PureDP(1.0).to_gdp().mu  # doctest: +ELLIPSIS
        1.23203...
        """
        from confide.guarantees.conversion import to_gdp

        return to_gdp(self._guarantee)

    def to_zcdp(self) -> ZCDP:
        """The same promise as zero-concentrated differential privacy, where that is proved; else `NoConversion`.

        >>> GDP(1.0).to_zcdp()
        ZCDP(0.5)
        """
        from confide.guarantees.conversion import to_zcdp

        return to_zcdp(self._guarantee)

    def to_approx(self, *, epsilon: float | None = None, delta: float | None = None) -> ApproxDP:
        """The same promise as (epsilon, delta) for one of the two numbers, which is kept; the other is rounded up.

        Raises `PrivacyError` unless exactly one number is given, or when no (epsilon, delta) with epsilon above 0 and
        delta below 1 says anything at that number.

        >>> round(GDP(1.0).to_approx(delta=1e-6).epsilon, 4)
        4.8866
        """
        from confide.guarantees.conversion import to_approx

        return to_approx(self._guarantee, epsilon=epsilon, delta=delta)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-safe dict that `guarantee_from_dict` reads back to the bit; floats are `float.hex` texts.

        >>> GDP(1.0, relation="add-remove").to_dict()["mu"]
        '0x1.0000000000000p+0'
        """
        return {
            "type": type(self).__name__,
            **{name: getattr(self, name).hex() for name in self.numbers()},
            "relation": self.relation,
            "unit": self.unit,
            "trust": self.trust,
            "assumptions": list(self.assumptions),
        }

    def detection_limit(self, false_alarm: float = 0.05) -> float:
        """The largest probability with which any test can detect one unit, at a probability of a false alarm.

        Both are probabilities, false_alarm above 0 and below 1. The test sees the release and knows everything but
        which of two neighbouring sets of records was used. This is 1 - f(false_alarm) for a proved trade-off function
        f (Dong, Roth, Su 2022, section 2).

        >>> round(GDP(1.0).detection_limit(), 4)
        0.2595
        """
        rate = share(false_alarm, "false_alarm", "detection_limit(0.05)", zero=False)
        return min(1.0, max(rate, self._detection(rate)))

    def _detection(self, rate: float) -> float:
        raise NotImplementedError

    def describe(self) -> str:
        """One sentence in plain words: what someone who sees the release can learn at most.

        >>> GDP(1.0, relation="substitute").describe()  # doctest: +ELLIPSIS
        'Someone who sees the release and knows all other records can tell which of two possible contents ...'
        """
        limit = percent(self.detection_limit(0.05))
        return sentence(limit, relation=self.relation, unit=self.unit, trust=self.trust, assumptions=self.assumptions)

    def __str__(self) -> str:
        labels = [self.relation or "relation open"]
        labels += [f"unit={self.unit}"] if self.unit != "record" else []
        labels += [self.trust] if self.trust != "central" else []
        levels = [f"{name}={_upper(value)}" for name, value in self._shown()]
        return f"{type(self).__name__}({', '.join(levels + labels)})"

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in fields(self) if f.kw_only}
        labels = [
            f"{name}={getattr(self, name)!r}" for name, default in defaults.items() if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join([*(repr(value) for _, value in self._shown()), *labels])})"

    def _shown(self) -> list[tuple[str, float]]:
        """Names and values of the privacy levels, without a delta that is 0 by default."""
        levels = [f for f in fields(self) if not f.kw_only]
        return [(f.name, getattr(self, f.name)) for f in levels if getattr(self, f.name) != f.default]


@dataclass(frozen=True, repr=False)
class PureDP(_Statement):
    """epsilon-differential privacy: no outcome is more than e^epsilon times as likely on a neighbour.

    Source: Dwork, McSherry, Nissim, Smith 2006. epsilon: a finite number above 0. Composes by adding.

    >>> print(PureDP(0.5, relation="add-remove"))
    PureDP(epsilon=0.5, add-remove)
    """

    epsilon: float

    _example: ClassVar[str] = "PureDP(0.5)"

    def _detection(self, rate: float) -> float:
        return _pure_detection(self.epsilon, 0.0, rate)


@dataclass(frozen=True, repr=False)
class ApproxDP(_Statement):
    """(epsilon, delta)-differential privacy (Dwork et al. 2006).

    epsilon: a finite number above 0; delta: above 0 and below 1 (for delta = 0 use PureDP). Composes by adding both.

    >>> ApproxDP(1.0, 1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float

    _example: ClassVar[str] = "ApproxDP(1.0, 1e-6)"

    def _checked_numbers(self) -> dict[str, float]:
        return {
            "epsilon": level(self.epsilon, "epsilon", self._example),
            "delta": share(self.delta, "delta", self._example, zero=False),
        }

    def _detection(self, rate: float) -> float:
        return _pure_detection(self.epsilon, self.delta, rate)


@dataclass(frozen=True, repr=False)
class ZCDP(_Statement):
    """rho-zero-concentrated differential privacy: Renyi divergence of order a at most a rho (Bun, Steinke 2016).

    rho: a finite number above 0. Composes by adding.

    >>> ZCDP(0.5).to_approx(delta=1e-6).delta
    1e-06
    """

    rho: float

    _example: ClassVar[str] = "ZCDP(0.1)"

    def _detection(self, rate: float) -> float:
        # Monotonicity of the divergence under a test: p^a q^(1-a) <= exp((a-1) a rho) for power p and false alarm q.
        # The best order is a = sqrt(log(1/q)/rho), which gives p <= exp(-(sqrt(log(1/q)) - sqrt(rho))^2); no bound
        # below a = 1.
        surprise = log(1 / rate)
        return exp(-((sqrt(surprise) - sqrt(self.rho)) ** 2)) if self.rho < surprise else 1.0


@dataclass(frozen=True, repr=False)
class GDP(_Statement):
    """mu-Gaussian differential privacy: telling neighbours apart is at least as hard as N(0, 1) from N(mu, 1).

    mu: a finite number above 0, in standard deviations; delta: at least 0 and below 1, an additive part (trade-off
    function f >= max(0, G_mu - delta)). Composes by the square root of the sum of squares; deltas add (Dong, Roth, Su
    2022).

    >>> GDP(1.0) == GDP(1, delta=0.0)
    True
    """

    mu: float
    delta: float = 0.0

    _example: ClassVar[str] = "GDP(1.0)"

    @classmethod
    def from_approx(cls, epsilon: float, delta: float, **labels: Any) -> GDP:
        """The GDP level whose curve meets (epsilon, delta): what to *ask* for, the calibration of `calibrate_gaussian`.

        A release of this level is (epsilon, delta)-private; the reverse does not hold. The statement that follows from
        knowing no more than (epsilon, delta) is much weaker: `ApproxDP(epsilon, delta).to_gdp()`.

        >>> round(GDP.from_approx(1.0, 1e-6).mu, 6)
        0.236704
        """
        from confide.guarantees.conversion import calibrate_gaussian

        return cls(calibrate_gaussian(ApproxDP(epsilon, delta)), **labels)

    def _checked_numbers(self) -> dict[str, float]:
        return {
            "mu": level(self.mu, "mu", self._example),
            "delta": share(self.delta, "delta", "GDP(1.0, 1e-6)", zero=True),
        }

    def _detection(self, rate: float) -> float:
        return float(ndtr(ndtri(rate) + self.mu)) + self.delta


Guarantee: TypeAlias = PureDP | ApproxDP | ZCDP | GDP

_KINDS: dict[str, type[PureDP] | type[ApproxDP] | type[ZCDP] | type[GDP]] = {
    "PureDP": PureDP,
    "ApproxDP": ApproxDP,
    "ZCDP": ZCDP,
    "GDP": GDP,
}


def guarantee_from_dict(data: Mapping[str, Any]) -> Guarantee:
    """The guarantee that `to_dict` wrote, to the bit; `PrivacyError` on anything else.

    >>> guarantee_from_dict(ZCDP(0.1, relation="substitute").to_dict())
    ZCDP(0.1, relation='substitute')
    """
    kind = _KINDS.get(data["type"]) if isinstance(data, Mapping) and isinstance(data.get("type"), str) else None
    if kind is None:
        raise PrivacyError(
            f"a guarantee in a file is an object whose 'type' is one of {', '.join(_KINDS)}; write it with to_dict()"
        )
    wanted = {"type", *(f.name for f in fields(kind))}
    if set(data) != wanted:
        raise PrivacyError(
            f"a {data['type']} in a file has exactly the keys {', '.join(sorted(wanted))}; write it with to_dict()"
        )
    numbers = {name: _from_hex(data[name], name) for name in kind.numbers()}
    return kind(
        **numbers,
        relation=data["relation"],
        unit=data["unit"],
        trust=data["trust"],
        assumptions=data["assumptions"],
    )


def _from_hex(text: object, name: str) -> float:
    """A float from its `float.hex` text, and from no other text, so that one value has one file."""
    try:
        number = float.fromhex(text) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or number.hex() != text:
        raise PrivacyError(
            f"{name} in a file must be a float.hex text such as '0x1.0000000000000p+0', got {text!r}; write it with "
            "to_dict()"
        )
    return number


def _upper(number: float) -> str:
    """Six significant digits, rounded up: a printed level is never below the true one."""
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(Decimal(repr(number)))):.6g}"


def _pure_detection(epsilon: float, delta: float, rate: float) -> float:
    """Power of the best test under (epsilon, delta), 0 <= delta: 1 - f with f of Kairouz, Oh, Viswanath 2015."""
    likely = -expm1(-epsilon) + exp(-epsilon) * (delta + rate)
    unlikely = exp(epsilon) * rate + delta if epsilon < log(1 / rate) else 1.0
    return min(likely, unlikely)
