"""Guarantees as frozen values: PureDP, ApproxDP, ZCDP, RDP, GDP and TradeOff.

A guarantee bounds how well anyone who sees a release can tell two neighboring sets of records apart. Each value
carries the neighboring relation, the unit that is protected, who is trusted with the records, and the assumptions
that its proof rests on. Values compare, print, match patterns, and read back from JSON to the bit.

For data stewards, `describe` says in plain words what a guarantee lets anyone find out at most.

`Statement` holds what all guarantees share: labels, JSON to the bit, short text, plain words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, expm1, log, sqrt
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from confide import _docs
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
    ('26%', '5%')
    """
    # 1e-9 keeps a limit that is a round number, up to the last bits of its float, from moving up a step.
    return f"{min(100.0, ceil(probability * 1000 - 1e-9) / 10):g}%"


def sentence(limit: str, *, relation: str | None, unit: str, trust: str, assumptions: tuple[str, ...]) -> str:
    """The sentence of `describe`; `limit` is the detection rate at a false-alarm rate of 5%.

    >>> sentence("26%", relation="add-remove", unit="record", trust="central", assumptions=())  # doctest: +ELLIPSIS
    'Someone who sees the release and knows all other records can tell whether one record was included ...'
    """
    seen = (
        "the release" if trust == "central" else "everything that leaves the owner of a record, the collector included,"
    )
    note = "; this rules out next to nothing" if limit == "100%" else ""
    condition = f", provided that the following holds: {'; '.join(assumptions)}" if assumptions else ""
    return (
        f"Someone who sees {seen} and knows all other records can tell {_difference(relation, unit)} with at most "
        f"this success: at a false-alarm rate of 5%, a detection rate of at most {limit}{note}{condition}."
    )


def _difference(relation: str | None, unit: str) -> str:
    """What the two neighbors differ in, in plain words."""
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
    """What to say of a guarantee so large that it protects no one; nothing for any other.

    >>> from confide.guarantees import GDP, PureDP
    >>> weakness(GDP(1e9))
    'mu = 1e+09 protects nobody: anyone who sees the release can tell whether a record is there; mu is of the order of 1, hardly above 10'
    >>> weakness(PureDP(1.0))
    ''
    """
    for name, most in _WEAK:
        level = getattr(guarantee, name, 0.0)
        if level > most:
            return (
                f"{name} = {level:.6g} protects nobody: anyone who sees the release can tell whether a record is there; {name} is of the "
                f"order of 1, hardly above {most:g}"
            )
    return ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Statement:
    """What all guarantees share: relation, unit, trust, assumptions.

    Parameters
    ----------
    relation : {"add-remove", "substitute"}, optional
        Neighboring relation. If it is left open, the ledger or the schema
        decides.
    unit : str, default "record"
        What is protected: one record, or all rows of one value of an id column.
    trust : {"central", "local"}, default "central"
        Whether the steward adds the noise or each record is perturbed first.
    assumptions : tuple of str, optional
        What the guarantee rests on beyond the mechanism, in words.
    """

    relation: str | None = None
    unit: str = "record"
    trust: str = "central"
    assumptions: tuple[str, ...] = ()

    _example: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _docs.of_class(cls)

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
        """Names of the privacy parameters, in order; all fields but the labels.

        Returns
        -------
        tuple of str
            Such as ``("mu", "delta")``.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> GDP.numbers()
        ('mu', 'delta')
        """
        return tuple(f.name for f in fields(cls) if not f.kw_only)

    @property
    def complete(self) -> bool:
        """Whether the relation is set. Plans, releases and ledgers hold complete
        statements only.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> GDP(1.0).complete, GDP(1.0, relation="substitute").complete
        (False, True)
        """
        return self.relation is not None

    def to_dict(self) -> dict[str, Any]:
        """Give the guarantee as a dict of JSON types, with floats as `float.hex` texts.

        Returns
        -------
        dict
            What `guarantee_from_dict` reads back to the bit.

        Examples
        --------
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
        """Give the largest probability with which any test can detect one unit.

        The test sees the release and knows everything except which of two
        neighboring sets of records was used.

        Parameters
        ----------
        false_alarm : float, default 0.05
            Probability of a false alarm, above 0 and below 1.

        Returns
        -------
        float
            Detection probability: 1 - f(false_alarm) for a proved trade-off
            function f.

        Raises
        ------
        PrivacyError
            `false_alarm` is not above 0 and below 1.

        References
        ----------
        Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84,
        section 2.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).detection_limit(), 4)
        0.2595
        """
        rate = share(false_alarm, "false_alarm", "detection_limit(0.05)", zero=False)
        return min(1.0, max(rate, self._detection(rate)))

    def _no_operator(self, other: object) -> Any:
        raise PrivacyError(
            f"guarantees compose by a call: compose({self!r}, ...), and k equal ones compose(*[{self!r}] * k)"
        )

    __add__ = __radd__ = __mul__ = __rmul__ = __pow__ = _no_operator

    def _detection(self, rate: float) -> float:
        raise NotImplementedError

    def describe(self) -> str:
        """Say in one sentence what someone who sees the release can learn at most.

        Returns
        -------
        str
            The detection rate at a false-alarm rate of 5%, in plain words.

        Examples
        --------
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
            f"{name} in a file must be a float.hex text such as '0x1.0000000000000p+0', got {text!r}",
            "write the file with to_dict()",
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
        """Set the relation of a guarantee that left it open.

        Parameters
        ----------
        relation : {"add-remove", "substitute"}
            Neighboring relation.

        Returns
        -------
        Guarantee
            The same guarantee with its relation.

        Raises
        ------
        PrivacyError
            The guarantee has another relation already.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> GDP(1.0).resolve("add-remove")
        GDP(1.0, relation='add-remove')
        """
        wanted = relation_name(relation)
        if wanted is None:
            raise PrivacyError(
                "a guarantee is resolved to a relation, got None",
                "write resolve('add-remove') or resolve('substitute')",
            )
        if self.relation not in (None, wanted):
            how = _WAYS["how_to_change"](self, wanted)
            raise PrivacyError(f"{self} cannot be resolved to {wanted!r}: {how}")
        return replace(self, relation=wanted)

    def to_gdp(self, *, delta: float | None = None) -> GDP:
        """Convert to Gaussian differential privacy, if that is proved.

        Parameters
        ----------
        delta : float, optional
            Additive part, at least 0 and below 1. A TradeOff needs it, because
            it has a mu for each delta. No other kind takes it.

        Examples
        --------
        >>> from confide.guarantees import PureDP
        >>> PureDP(1.0).to_gdp().mu  # doctest: +ELLIPSIS
        1.23203...
        """
        found: GDP = _WAYS["to_gdp"](self, delta=delta)
        return found

    def to_pure(self) -> PureDP:
        """Convert to pure differential privacy, if that is proved.

        Examples
        --------
        >>> from confide.guarantees import PureDP
        >>> PureDP(1.0).to_pure()
        PureDP(1.0)
        """
        found: PureDP = _WAYS["to_pure"](self)
        return found

    def to_rdp(self, orders: Iterable[float] | None = None) -> RDP:
        """Convert to a Renyi curve at some orders, if that is proved.

        Parameters
        ----------
        orders : iterable of float, optional
            Orders above 1. Left out: a usual set from 1.1 to 1,024.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> GDP(1.0).to_rdp((2, 4))
        RDP((2.0, 4.0), (1.0, 2.0))
        """
        found: RDP = _WAYS["to_rdp"](self, orders)
        return found

    def to_tradeoff(self) -> TradeOff:
        """Convert to a trade-off function, exactly for GDP, PureDP and ApproxDP.

        Returns
        -------
        TradeOff
            The guarantee's curve.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).to_tradeoff().to_approx(epsilon=1.0).delta, 6)
        0.126937
        """
        found: TradeOff = _WAYS["to_tradeoff"](self)
        return found

    def to_zcdp(self) -> ZCDP:
        """Convert to zero-concentrated differential privacy, if that is proved.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> GDP(1.0).to_zcdp()
        ZCDP(0.5)
        """
        found: ZCDP = _WAYS["to_zcdp"](self)
        return found

    def to_approx(self, *, epsilon: float | None = None, delta: float | None = None) -> ApproxDP:
        """Convert to epsilon and delta: one of the two is given, the other rounded up.

        Parameters
        ----------
        epsilon : float, optional
            Epsilon to keep.
        delta : float, optional
            Delta to keep.

        Returns
        -------
        ApproxDP
            A weaker or equal statement.

        Raises
        ------
        PrivacyError
            Not exactly one number is given, or no pair with epsilon above 0 and
            delta below 1 says anything at that number.

        Examples
        --------
        >>> from confide.guarantees import GDP
        >>> round(GDP(1.0).to_approx(delta=1e-6).epsilon, 4)
        4.8866
        """
        found: ApproxDP = _WAYS["to_approx"](self, epsilon=epsilon, delta=delta)
        return found


_docs.tell(
    "NoConversion", _Value.to_gdp, _Value.to_pure, _Value.to_rdp, _Value.to_zcdp, returns="A weaker or equal statement."
)


@dataclass(frozen=True, repr=False)
class PureDP(_Value):
    """Pure differential privacy with parameter epsilon.

    No outcome is more than e^epsilon times as likely on a neighboring dataset.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, a finite number above 0. Larger is less private.

    Notes
    -----
    Guarantees compose by adding epsilon.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity
    in private data analysis, TCC.

    Examples
    --------
    >>> print(PureDP(0.5, relation="add-remove"))
    PureDP(epsilon=0.5, add-remove)
    """

    epsilon: float

    _example: ClassVar[str] = "PureDP(0.5)"

    def _detection(self, rate: float) -> float:
        return _pure_detection(self.epsilon, 0.0, rate)


@dataclass(frozen=True, repr=False)
class ApproxDP(_Value):
    """Approximate differential privacy with parameters epsilon and delta.

    An event is at most e^epsilon times as likely on a neighboring dataset, plus
    delta.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, a finite number above 0. Larger is less private.
    delta : float
        Additive part, above 0 and below 1. Without one, write `PureDP`.

    Notes
    -----
    Guarantees compose by adding epsilon and adding delta.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov and Naor (2006), Our data, ourselves,
    EUROCRYPT.

    Examples
    --------
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
    """Zero-concentrated differential privacy (zCDP) with parameter rho.

    The Renyi divergence of order a is at most a rho, for every a above 1.

    Parameters
    ----------
    rho : float
        Privacy parameter, a finite number above 0. Larger is less private.

    Notes
    -----
    Guarantees compose by adding rho.

    References
    ----------
    Bun and Steinke (2016), Concentrated differential privacy, TCC.

    Examples
    --------
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
    """Gaussian differential privacy with parameter mu.

    Telling two neighboring datasets apart is at least as hard as telling N(0,
    1) from N(mu, 1). An attacker who guesses whether one person is in the data
    is right 50% of the time by chance. After the release it is at most 60% at
    mu = 0.5, 70% at mu = 1 and 85% at mu = 2, rounded up.

    Parameters
    ----------
    mu : float
        Privacy parameter, a finite number above 0. Larger is less private.
    delta : float, default 0
        Additive part, at least 0 and below 1: the trade-off function is at
        least max(0, G_mu - delta).

    Notes
    -----
    Guarantees compose by the square root of the sum of the squares of mu.
    Deltas add.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> GDP(1.0) == GDP(1, delta=0.0)
    True
    """

    mu: float
    delta: float = 0.0

    _example: ClassVar[str] = "GDP(1.0)"

    @classmethod
    def from_approx(cls, epsilon: float, delta: float, **labels: Any) -> GDP:
        """Give the Gaussian DP to ask for so that epsilon and delta are met.

        A release of this level is (epsilon, delta)-private; the reverse does
        not hold. The statement that follows from no more than epsilon and delta
        is much weaker: `ApproxDP(epsilon, delta).to_gdp()`.

        Parameters
        ----------
        epsilon : float
            Epsilon that the release shall meet.
        delta : float
            Delta that the release shall meet.
        **labels : str
            Relation, unit, trust and assumptions, by name.

        Returns
        -------
        GDP
            The calibration of `calibrate_gaussian`.

        Examples
        --------
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
    """Renyi differential privacy: a bound on the Renyi divergence of each order.

    The bounds hold in both directions. A divergence rises with its order, so an
    epsilon above that of a larger order is lowered to it.

    Parameters
    ----------
    orders : tuple of float
        Finite numbers above 1, strictly rising.
    epsilons : tuple of float
        Finite numbers of at least 0, one for each order.

    Notes
    -----
    Guarantees compose by adding, order by order.

    References
    ----------
    Mironov (2017), Renyi differential privacy, CSF.

    Examples
    --------
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
            raise PrivacyError(f"{name} in a file must be a list of float.hex texts", "write the file with to_dict()")
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
    """Differential privacy with a given trade-off function f, the exact object.

    f(alpha) is the least type II error of any test of level alpha.

    Parameters
    ----------
    curve : Curve
        Trade-off function, such as ``laplace(0.5)`` or ``gaussian(1.0)``.

    Notes
    -----
    Guarantees compose curve by curve, in closed form where there is one.

    References
    ----------
    Dong, Roth and Su (2022), Gaussian differential privacy, JRSS-B 84.

    Examples
    --------
    >>> from confide.guarantees import laplace
    >>> TradeOff(laplace(0.5), relation="substitute").to_pure()
    PureDP(0.5, relation='substitute')
    """

    curve: Curve

    _example: ClassVar[str] = "TradeOff(laplace(0.5))"

    def _checked_numbers(self) -> dict[str, Any]:
        if not isinstance(self.curve, Curve):
            raise PrivacyError(
                f"curve must be a trade-off function, got {type(self.curve).__name__}",
                f"write for instance {self._example}",
            )
        return {}

    @classmethod
    def _decoded(cls, data: object, name: str) -> Any:
        if not isinstance(data, Mapping):
            raise PrivacyError(f"{name} in a file must be an object", "write the file with to_dict()")
        return curve_from_dict(dict(data))

    def _levels(self) -> list[str]:
        return [str(self.curve)]

    def _detection(self, rate: float) -> float:
        return 1.0 - float(self.curve.f(rate))


Guarantee: TypeAlias = PureDP | ApproxDP | ZCDP | GDP | RDP | TradeOff

_Kind: TypeAlias = type[PureDP] | type[ApproxDP] | type[ZCDP] | type[GDP] | type[RDP] | type[TradeOff]
_KINDS: dict[str, _Kind] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP, RDP, TradeOff)}


def guarantee_from_dict(data: Mapping[str, Any]) -> Guarantee:
    """Read the guarantee that `to_dict` wrote, to the bit.

    Parameters
    ----------
    data : mapping
        What `to_dict` of a guarantee gave.

    Returns
    -------
    Guarantee
        The guarantee.

    Raises
    ------
    PrivacyError
        The mapping is anything else.

    Examples
    --------
    >>> guarantee_from_dict(ZCDP(0.1, relation="substitute").to_dict())
    ZCDP(0.1, relation='substitute')
    """
    kind = _KINDS.get(data["type"]) if isinstance(data, Mapping) and isinstance(data.get("type"), str) else None
    if kind is None:
        raise PrivacyError(
            f"a guarantee in a file is an object whose 'type' is one of {', '.join(_KINDS)}",
            "write the file with to_dict()",
        )
    wanted = {"type", *(f.name for f in fields(kind))}
    if set(data) != wanted:
        raise PrivacyError(
            f"a {data['type']} in a file has exactly the keys {', '.join(sorted(wanted))}",
            "write the file with to_dict()",
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
