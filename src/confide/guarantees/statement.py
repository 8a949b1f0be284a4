"""What all guarantees share: labels, JSON to the bit, short text, plain words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any, ClassVar

from confide.errors import PrivacyError
from confide.guarantees.validation import assumption_tuple, level, relation_name, share, trust_name, unit_name
from confide.guarantees.wording import percent, sentence

__all__ = ["Statement", "encoded", "from_hex"]


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
