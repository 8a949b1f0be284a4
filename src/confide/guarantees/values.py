"""What is promised: PureDP, ApproxDP, ZCDP, RDP, GDP and TradeOff as frozen values.

A guarantee bounds how well anyone who sees a release can tell two neighbouring sets of records apart. Each value
carries the relation that says what a neighbour is, the unit that is protected, who is trusted with the records, and
the assumptions that its proof rests on. Values compare, print, match patterns, and read back from JSON to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from math import exp, expm1, log, sqrt
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from confide._special import ndtr, ndtri
from confide.errors import PrivacyError
from confide.guarantees.curves import Curve, curve_from_dict
from confide.guarantees.statement import Statement, from_hex
from confide.guarantees.validation import level, orders_tuple, relation_name, renyi_levels, share

__all__ = ["GDP", "RDP", "ZCDP", "ApproxDP", "Guarantee", "PureDP", "TradeOff", "guarantee_from_dict", "way"]


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
