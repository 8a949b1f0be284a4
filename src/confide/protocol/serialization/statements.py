"""What guarantees and curves look like in a file."""

from __future__ import annotations

from typing import Any

from confide.protocol.serialization.facts import FINITE
from confide.protocol.serialization.shapes import (
    BOOLEAN,
    NAME,
    TEXT,
    Shape,
    double,
    each,
    kinds,
    maybe,
    one_of,
    record,
    refuse,
    whole,
)

__all__ = ["BOUND", "GUARANTEE"]

#: Of a privacy level: its square, and products of it with numbers of any data, are still doubles.
LEVEL = 1e100
#: Of curves in a composed one, and of copies of one: their losses are convolved when they are converted.
CURVES, COPIES = 64, 10**6
_LEVEL = double(0.0, LEVEL, above=True)
_SHARE = double(0.0, 1.0)


def curve(value: Any, where: str) -> None:
    """A trade-off function, `Curve.to_dict`."""
    _CURVES(value, where)


def _part(value: Any, where: str) -> None:
    if not isinstance(value, list) or len(value) != 2:
        raise refuse(where, "a curve and how often it is there")
    curve(value[0], where)
    whole(1, COPIES)(value[1], where)


def _curve(**fields: Shape) -> Shape:
    return record({"curve": NAME, **fields})


_CURVES = kinds(
    "curve",
    {
        "perfect": _curve(),
        "gaussian": _curve(mu=_LEVEL),
        "laplace": _curve(epsilon=_LEVEL),
        "randomised_response": _curve(epsilon=_LEVEL),
        "zero_inflated": _curve(zeta=_SHARE, base=curve),
        "relaxed": _curve(slack=_SHARE, base=curve),
        "symmetric_laplace": _curve(d=double(1.0, finite=False), c=_LEVEL),
        "objective": _curve(mu=_LEVEL, ratio=_LEVEL, after=double(0.0, LEVEL), replaced=BOOLEAN),
        "renyi": _curve(orders=maybe(each(FINITE, most=10_000)), bounds=each(double(0.0, LEVEL), 1, 10_000)),
        "composed": _curve(parts=each(_part, 1, CURVES)),
    },
)


def _statement(relation: Shape, **numbers: Shape) -> Shape:
    labels = {"type": NAME, "relation": relation, "unit": NAME, "trust": one_of("central", "local")}
    return record({**labels, "assumptions": each(TEXT, most=100), **numbers})


def _statements(*relations: str | None) -> Shape:
    relation = one_of(*relations)
    return kinds(
        "type",
        {
            "PureDP": _statement(relation, epsilon=_LEVEL),
            "ApproxDP": _statement(relation, epsilon=_LEVEL, delta=_SHARE),
            "ZCDP": _statement(relation, rho=_LEVEL),
            "GDP": _statement(relation, mu=_LEVEL, delta=_SHARE),
            "RDP": _statement(relation, orders=each(FINITE, 1, 10_000), epsilons=each(double(0.0, LEVEL), 1, 10_000)),
            "TradeOff": _statement(relation, curve=curve),
        },
    )


#: Plans and releases hold complete statements; the bound of an event may leave the relation to them.
GUARANTEE = _statements("add-remove", "substitute")
BOUND = _statements("add-remove", "substitute", None)
