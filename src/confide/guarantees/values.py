"""What is promised: PureDP, ApproxDP, ZCDP, RDP, GDP and TradeOff as frozen values.

A guarantee bounds how well anyone who sees a release can tell two neighbouring sets of records apart. Each value
carries the relation that says what a neighbour is, the unit that is protected, who is trusted with the records, and
the assumptions that its proof rests on. Values compare, print, match patterns, and read back from JSON to the bit.

Plain words for data stewards: what a guarantee lets anyone find out at most.

What all guarantees share: labels, JSON to the bit, short text, plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, expm1, log, sqrt
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from confide._special import ndtr, ndtri
from confide.errors import PrivacyError
from confide.guarantees.curves import Curve, curve_from_dict
from confide.guarantees.validation import (
    assumption_tuple,
    level,
    orders_tuple,
    relation_name,
    renyi_levels,
    share,
    trust_name,
    unit_name,
)


def percent(probability: float) -> str:
    """A probability in percent with one decimal, rounded up so that a limit is never understated.

    >>> percent(0.25951), percent(0.05)
    ('26 %', '5 %')
    """
    # 1e-9 keeps a limit that is a round number, up to the last bits of its float, from moving up a step.
    return f"{min(100.0, ceil(probability * 1000 - 1e-9) / 10):g} %"


def sentence(limit: str, *, relation: str | None, unit: str, trust: str, assumptions: tuple[str, ...]) -> str:
    """The sentence of `describe`; `limit` is the detection rate at a false-alarm rate of 5 %.

    >>> sentence("26 %", relation="add-remove", unit="record", trust="central", assumptions=())  # doctest: +ELLIPSIS
    'Someone who sees the release and knows all other records can tell whether one record was included ...'
    """
    seen = (
        "the release" if trust == "central" else "everything that leaves the owner of a record, the collector included,"
    )
    note = "; this rules out next to nothing" if limit == "100 %" else ""
    condition = f", provided that the following holds: {'; '.join(assumptions)}" if assumptions else ""
    return (
        f"Someone who sees {seen} and knows all other records can tell {_difference(relation, unit)} with at most "
        f"this success: with a false-alarm rate of 5 %, detection of at most {limit}{note}{condition}."
    )


def _difference(relation: str | None, unit: str) -> str:
    """What the two neighbours differ in, in plain words."""
    bare = {"record": "one record", "attribute": "one attribute of one record"}
    thing, counted = bare.get(unit, f"one {unit} with all its rows"), "records" if unit in bare else f"values of {unit}"
    included = f"whether {thing} was included"
    contents = f"which of two possible contents {thing} has"
    match relation:
        case "add-remove":
            return included
        case "substitute":
            return f"{contents} (the number of {counted} is public)"
        case _:
            return f"{included}, or {contents}, as the plan will say (the relation is still open),"


# Above these a test that finds a record out is right but for one case in millions (the least sum of both errors is 2 Phi(-5) at mu = 10
# and 2/(1 + e^20) at epsilon = 20; rho = mu^2/2).
_WEAK = (("mu", 10.0), ("epsilon", 20.0), ("rho", 50.0))


def weakness(guarantee: Any) -> str:
    """What to say of a guarantee so large that it protects nobody; nothing for any other.

    >>> from confide.guarantees import GDP, PureDP
    >>> weakness(GDP(1e9))
    'mu = 1e+09 protects nobody: whoever sees so much can tell whether a record is there; mu is of the order of 1, hardly above 10'
    >>> weakness(PureDP(1.0))
    ''
    """
    for name, most in _WEAK:
        level = getattr(guarantee, name, 0.0)
        if level > most:
            return (
                f"{name} = {level:.6g} protects nobody: whoever sees so much can tell whether a record is there; {name} is of the "
                f"order of 1, hardly above {most:g}"
            )
    return ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Statement:
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

    def _checked_numbers(self) -> dict[str, Any]:
        return {name: level(getattr(self, name), name, self._example) for name in self.numbers()}

    @classmethod
    def numbers(cls) -> tuple[str, ...]:
        """The names of what says how private, in order; all but the labels.

        >>> from confide.guarantees import GDP
        >>> GDP.numbers()
        ('mu', 'delta')
        """
        return tuple(f.name for f in fields(cls) if not f.kw_only)

    @property
    def complete(self) -> bool:
        """Whether the relation is set. Plans, releases and ledgers hold complete statements only.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0).complete, GDP(1.0, relation="substitute").complete
        (False, True)
        """
        return self.relation is not None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-safe dict that `guarantee_from_dict` reads back to the bit; floats are `float.hex` texts.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0, relation="add-remove").to_dict()["mu"]
        '0x1.0000000000000p+0'
        """
        return {
            "type": type(self).__name__,
            **{name: encoded(getattr(self, name)) for name in self.numbers()},
            "relation": self.relation,
            "unit": self.unit,
            "trust": self.trust,
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def _decoded(cls, data: object, name: str) -> Any:
        """What `to_dict` wrote under a name, read back."""
        return from_hex(data, name)

    def detection_limit(self, false_alarm: float = 0.05) -> float:
        """The largest probability with which any test can detect one unit, at a probability of a false alarm.

        Both are probabilities, false_alarm above 0 and below 1. The test sees the release and knows everything but
        which of two neighbouring sets of records was used. This is 1 - f(false_alarm) for a proved trade-off function
        f (Dong, Roth, Su 2022, section 2).

        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).detection_limit(), 4)
        0.2595
        """
        rate = share(false_alarm, "false_alarm", "detection_limit(0.05)", zero=False)
        return min(1.0, max(rate, self._detection(rate)))

    def _no_operator(self, other: object) -> Any:
        raise PrivacyError(
            f"guarantees compose by a call, which says what is lost: compose({self!r}, ...), and k equal ones compose(*[{self!r}] * k)"
        )

    __add__ = __radd__ = __mul__ = __rmul__ = __pow__ = _no_operator

    def _detection(self, rate: float) -> float:
        raise NotImplementedError

    def describe(self) -> str:
        """One sentence in plain words: what someone who sees the release can learn at most.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0, relation="substitute").describe()  # doctest: +ELLIPSIS
        'Someone who sees the release and knows all other records can tell which of two possible contents ...'
        """
        limit = percent(self.detection_limit(0.05))
        return sentence(limit, relation=self.relation, unit=self.unit, trust=self.trust, assumptions=self.assumptions)

    def __str__(self) -> str:
        labels = [self.relation or "relation open"]
        labels += [f"unit={self.unit}"] if self.unit != "record" else []
        labels += [self.trust] if self.trust != "central" else []
        return f"{type(self).__name__}({', '.join(self._levels() + labels)})"

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in fields(self) if f.kw_only}
        labels = [
            f"{name}={getattr(self, name)!r}" for name, default in defaults.items() if getattr(self, name) != default
        ]
        return f"{type(self).__name__}({', '.join([*(repr(value) for _, value in self._shown()), *labels])})"

    def _levels(self) -> list[str]:
        """What says how private, for the short form."""
        return [f"{name}={_upper(value)}" for name, value in self._shown()]

    def _shown(self) -> list[tuple[str, Any]]:
        """Names and values of the privacy levels, without a delta that is 0 by default."""
        levels = [f for f in fields(self) if not f.kw_only]
        return [(f.name, getattr(self, f.name)) for f in levels if getattr(self, f.name) != f.default]


def encoded(value: Any) -> Any:
    """A number as its `float.hex` text, a tuple of them as a list of texts, a curve as its own dict.

    >>> encoded((1.0, 2.0))
    ['0x1.0000000000000p+0', '0x1.0000000000000p+1']
    """
    if isinstance(value, float):
        return value.hex()
    return [number.hex() for number in value] if isinstance(value, tuple) else value.to_dict()


def from_hex(text: object, name: str) -> float:
    """A float from its `float.hex` text, and from no other text, so that one value has one file.

    >>> from_hex("0x1.0000000000000p+0", "mu")
    1.0
    """
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


#: The verbs of a guarantee that need to know all kinds of them, by name. They stand in the modules above, which enter them here
#: (`confide.guarantees` loads them all), so that the values know nothing of their conversions.
_WAYS: dict[str, Callable[..., Any]] = {}

_Way = TypeVar("_Way", bound=Callable[..., Any])


def way(verb: _Way) -> _Way:
    """Enter a function of a guarantee under its name, as the verb that guarantees have."""
    _WAYS[verb.__name__] = verb
    return verb


@dataclass(frozen=True, kw_only=True, repr=False)
class _Value(Statement):
    """A guarantee with the verbs that turn it into others."""

    def resolve(self, relation: str) -> Self:
        """The same guarantee with its relation set; `PrivacyError` when it already has another one.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0).resolve("add-remove")
        GDP(1.0, relation='add-remove')
        """
        wanted = relation_name(relation)
        if wanted is None:
            raise PrivacyError(
                "a guarantee is resolved to a relation, got None; write resolve('add-remove') or resolve('substitute')"
            )
        if self.relation not in (None, wanted):
            how = _WAYS["how_to_change"](self, wanted)
            raise PrivacyError(f"{self} cannot be resolved to {wanted!r}: {how}")
        return replace(self, relation=wanted)

    def to_gdp(self, *, delta: float | None = None) -> GDP:
        """The same promise as Gaussian differential privacy, where that is proved; else `NoConversion`.

        delta: the additive part, at least 0 and below 1; needed by a TradeOff, which has a mu for each delta, and taken
        by no other kind, which has one delta of its own.

        >>> from confide.guarantees import PureDP
        >>> PureDP(1.0).to_gdp().mu  # doctest: +ELLIPSIS
        1.23203...
        """
        found: GDP = _WAYS["to_gdp"](self, delta=delta)
        return found

    def to_pure(self) -> PureDP:
        """The same promise as pure differential privacy, where that is proved; else `NoConversion`.

        >>> from confide.guarantees import PureDP
        >>> PureDP(1.0).to_pure()
        PureDP(1.0)
        """
        found: PureDP = _WAYS["to_pure"](self)
        return found

    def to_rdp(self, orders: Iterable[float] | None = None) -> RDP:
        """The same promise as a Renyi curve at some orders, where that is proved; else `NoConversion`.

        orders: above 1; by default a usual set from 1.1 to 1024.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0).to_rdp((2, 4))
        RDP((2.0, 4.0), (1.0, 2.0))
        """
        found: RDP = _WAYS["to_rdp"](self, orders)
        return found

    def to_tradeoff(self) -> TradeOff:
        """The same promise as a trade-off function: its own curve, for GDP, PureDP and ApproxDP exactly.

        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).to_tradeoff().to_approx(epsilon=1.0).delta, 6)
        0.126937
        """
        found: TradeOff = _WAYS["to_tradeoff"](self)
        return found

    def to_zcdp(self) -> ZCDP:
        """The same promise as zero-concentrated differential privacy, where that is proved; else `NoConversion`.

        >>> from confide.guarantees import GDP
        >>> GDP(1.0).to_zcdp()
        ZCDP(0.5)
        """
        found: ZCDP = _WAYS["to_zcdp"](self)
        return found

    def to_approx(self, *, epsilon: float | None = None, delta: float | None = None) -> ApproxDP:
        """The same promise as (epsilon, delta) for one of the two numbers, which is kept; the other is rounded up.

        Raises `PrivacyError` unless exactly one number is given, or when no (epsilon, delta) with epsilon above 0 and
        delta below 1 says anything at that number.

        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).to_approx(delta=1e-6).epsilon, 4)
        4.8866
        """
        found: ApproxDP = _WAYS["to_approx"](self, epsilon=epsilon, delta=delta)
        return found


@dataclass(frozen=True, repr=False)
class PureDP(_Value):
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
class ApproxDP(_Value):
    """(epsilon, delta)-differential privacy (Dwork et al. 2006).

    epsilon: a finite number above 0; delta: above 0 and below 1 (for delta = 0 use PureDP). Composes by adding both.

    >>> ApproxDP(1.0, 1e-6).delta
    1e-06
    """

    epsilon: float
    delta: float

    _example: ClassVar[str] = "ApproxDP(1.0, 1e-6)"

    def _checked_numbers(self) -> dict[str, Any]:
        return {
            "epsilon": level(self.epsilon, "epsilon", self._example),
            "delta": share(self.delta, "delta", self._example, zero=False),
        }

    def _detection(self, rate: float) -> float:
        return _pure_detection(self.epsilon, self.delta, rate)


@dataclass(frozen=True, repr=False)
class ZCDP(_Value):
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
class GDP(_Value):
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
        return cls(_WAYS["calibrate_gaussian"](ApproxDP(epsilon, delta)), **labels)

    def _checked_numbers(self) -> dict[str, Any]:
        return {
            "mu": level(self.mu, "mu", self._example),
            "delta": share(self.delta, "delta", "GDP(1.0, 1e-6)", zero=True),
        }

    def _detection(self, rate: float) -> float:
        return float(ndtr(ndtri(rate) + self.mu)) + self.delta


@dataclass(frozen=True, repr=False)
class RDP(_Value):
    """A Renyi curve: the Renyi divergence of each order at most a number, in both directions (Mironov 2017).

    orders: finite numbers above 1, strictly rising; epsilons: finite numbers of at least 0, one for each. A divergence
    rises with its order, so that an epsilon above that of a larger order is lowered to it. Composes by adding, order by
    order.

    >>> RDP((2, 8, 32), (0.5, 2.0, 1.5)).epsilons
    (0.5, 1.5, 1.5)
    """

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]

    _example: ClassVar[str] = "RDP((2, 8, 32), (0.1, 0.4, 1.6))"

    def _checked_numbers(self) -> dict[str, Any]:
        orders = orders_tuple(self.orders, self._example)
        return {"orders": orders, "epsilons": renyi_levels(self.epsilons, orders, self._example)}

    @classmethod
    def _decoded(cls, data: object, name: str) -> Any:
        if not isinstance(data, list):
            raise PrivacyError(f"{name} in a file must be a list of float.hex texts; write it with to_dict()")
        return tuple(from_hex(text, name) for text in data)

    def _levels(self) -> list[str]:
        return [f"{len(self.orders)} orders from {self.orders[0]:g} to {self.orders[-1]:g}"]

    def _detection(self, rate: float) -> float:
        # p^a q^(1-a) <= exp((a-1) epsilon) for power p and false alarm q, as for ZCDP, at the best of the orders
        surprise = log(1 / rate)
        return min(
            exp(min(0.0, (1 - 1 / a) * (epsilon - surprise)))
            for a, epsilon in zip(self.orders, self.epsilons, strict=True)
        )


@dataclass(frozen=True, repr=False)
class TradeOff(_Value):
    """f-differential privacy for a given trade-off function f (Dong, Roth, Su 2022): the exact object.

    curve: a `Curve`, such as `laplace(0.5)` or `gaussian(1.0)`; f(alpha) is the least type II error of any test of
    level alpha. Composes curve by curve, in closed form where there is one.

    >>> from confide.guarantees import laplace
    >>> TradeOff(laplace(0.5), relation="substitute").to_pure()
    PureDP(0.5, relation='substitute')
    """

    curve: Curve

    _example: ClassVar[str] = "TradeOff(laplace(0.5))"

    def _checked_numbers(self) -> dict[str, Any]:
        if not isinstance(self.curve, Curve):
            raise PrivacyError(
                f"curve must be a trade-off function, got {type(self.curve).__name__}; write for instance {self._example}"
            )
        return {}

    @classmethod
    def _decoded(cls, data: object, name: str) -> Any:
        if not isinstance(data, Mapping):
            raise PrivacyError(f"{name} in a file must be an object; write it with to_dict()")
        return curve_from_dict(dict(data))

    def _levels(self) -> list[str]:
        return [str(self.curve)]

    def _detection(self, rate: float) -> float:
        return 1.0 - float(self.curve.f(rate))


Guarantee: TypeAlias = PureDP | ApproxDP | ZCDP | GDP | RDP | TradeOff

_Kind: TypeAlias = type[PureDP] | type[ApproxDP] | type[ZCDP] | type[GDP] | type[RDP] | type[TradeOff]
_KINDS: dict[str, _Kind] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP, RDP, TradeOff)}


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
    numbers = {name: kind._decoded(data[name], name) for name in kind.numbers()}
    return kind(
        **numbers,
        relation=data["relation"],
        unit=data["unit"],
        trust=data["trust"],
        assumptions=data["assumptions"],
    )


def _pure_detection(epsilon: float, delta: float, rate: float) -> float:
    """Power of the best test under (epsilon, delta), 0 <= delta: 1 - f with f of Kairouz, Oh, Viswanath 2015."""
    likely = -expm1(-epsilon) + exp(-epsilon) * (delta + rate)
    unlikely = exp(epsilon) * rate + delta if epsilon < log(1 / rate) else 1.0
    return min(likely, unlikely)
