"""What the files that confide writes look like, entry by entry, and the one check of a whole body when it is read.

Nothing is converted before it was measured here: an attacker can sign any body, for the digest in the file is no secret. What passes has
the types, sizes and kinds of the entries that confide writes, so that building the objects takes time in proportion to the file. It need
not be true: whether a release agrees with its plan is asked by `confide.infer`, whether it is the paid one by `confide.verify`.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

from confide.protocol.serialization.shapes import (
    BOOLEAN,
    DIGEST,
    INTEGER_DIGITS,
    NAME,
    TEXT,
    Shape,
    all_texts,
    double,
    each,
    finite_doubles,
    fraction,
    fraction_text,
    kinds,
    maybe,
    named,
    one_of,
    record,
    refuse,
    whole,
    whole_text,
    whole_texts,
)
from confide.protocol.spending.laws import ADDITIVE, LAWS

__all__ = ["FILE_CHARACTERS", "check_body"]

#: Of a file: a histogram of 2^20 cells takes 8 MB.
FILE_CHARACTERS = 64 * 2**20
#: Of events inside each other: a test in a branch of a choice among rounds has 5. The fold over a tree goes over it once a level.
EVENT_DEPTH = 16
#: Of spends in a plan: a descent of 1,000 rounds, the most there are, has 1,001.
LEAVES = 10_000
#: Of sets of statistics that may have been drawn: plans have up to 3. Their number is a product over the choices, so it is bounded
#: before any of them is written out.
PATHS = 2**16
#: Of all fractions of a plan, and of the different ones: the former of 1,000 rounds are 34,000, the latter 240. Costs add up over a
#: common denominator as long as the different ones together.
EVENT_DIGITS = 2**18
DIFFERENT_DIGITS = 2**15
#: Of a privacy level: its square, and products of it with numbers of any data, are still doubles.
LEVEL = 1e100
#: Of curves in a composed one, and of copies of one: their losses are convolved when they are converted.
CURVES, COPIES = 64, 10**6
#: Of questions in a publication.
CHILDREN = 1_000
_COUNT = 2**63 - 1
_DIMENSIONS = 8
_PASSES = 10**6

# numbers and settings -------------------------------------------------------------------------------------------------

_FINITE = double()
_ANY_DOUBLE = double(finite=False)
_LEVEL = double(0.0, LEVEL, above=True)
_SHARE = double(0.0, 1.0)


def _list(value: Any, where: str) -> None:
    if not isinstance(value, list):
        raise refuse(where, "a list")


_ARRAYS = record({"type": one_of("float", "integer"), "shape": each(whole(0, _COUNT), most=_DIMENSIONS), "data": _list})


def array(value: Any, where: str) -> None:
    """An array: as many numbers as its shape says, doubles that are finite or integers."""
    _ARRAYS(value, where)
    if prod(value["shape"]) != len(value["data"]):
        raise refuse(where, "an array with as many numbers as its shape says")
    if value["type"] == "integer" and _all_whole(value["data"]):
        return
    check, fit = (_FINITE, finite_doubles) if value["type"] == "float" else (whole_text, whole_texts)
    if fit(value["data"]):
        return
    for number in value["data"]:
        check(number, where)


def _all_whole(data: list[Any]) -> bool:
    """Whether all entries are what `whole_text` lets through, by way of the numbers: a table has millions."""
    if not all_texts(data) or max(map(len, data), default=0) > INTEGER_DIGITS:
        return False
    try:
        return list(map(str, map(int, data))) == data
    except ValueError:
        return False


def integers(value: Any, where: str) -> None:
    """An array of integers."""
    array(value, where)
    if value["type"] != "integer":
        raise refuse(where, "an array of integers")


def setting(value: Any, where: str) -> None:
    """What `pack` writes: null, text, true, false, whole numbers, doubles, fractions, and lists and mappings of them."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        TEXT(value, where)
    elif isinstance(value, int):
        if abs(value) >= 10**INTEGER_DIGITS:
            raise refuse(where, f"an integer of at most {INTEGER_DIGITS} digits")
    elif isinstance(value, list):
        _SETTING_LIST(value, where)
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("float"), str):
        _ANY_DOUBLE(value["float"], where)
    elif isinstance(value, dict) and len(value) == 1 and isinstance(value.get("fraction"), str):
        _ANY_FRACTION(value["fraction"], where)
    else:
        _SETTING_MAP(value, where)


_ANY_FRACTION = fraction()
_SETTING_LIST = each(setting, most=FILE_CHARACTERS)
_SETTING_MAP = named(setting, name=TEXT)


def fact(value: Any, where: str) -> None:
    """Plain strict JSON: how a synthetic table was made."""
    if isinstance(value, float):
        if not isfinite(value):
            raise refuse(where, "a finite number")
    elif isinstance(value, dict):
        named(fact, name=TEXT)(value, where)
    elif isinstance(value, list):
        each(fact)(value, where)
    else:
        setting(value, where)


def made(value: Any, where: str) -> None:
    """How a synthetic table was made: facts, of which some are used when several tables are combined."""
    _FACTS(value, where)
    for name, shape in _USED.items():
        if name in value:
            shape(value[name], f"{where}.{name}")


_FACTS = named(fact)
_USED: dict[str, Shape] = {"file": whole(1, _COUNT), "drawn_line": BOOLEAN, "method": TEXT}

# guarantees -----------------------------------------------------------------------------------------------------------


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
        "renyi": _curve(orders=maybe(each(_FINITE, most=10_000)), bounds=each(double(0.0, LEVEL), 1, 10_000)),
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
            "RDP": _statement(relation, orders=each(_FINITE, 1, 10_000), epsilons=each(double(0.0, LEVEL), 1, 10_000)),
            "TradeOff": _statement(relation, curve=curve),
        },
    )


#: Plans and releases hold complete statements; the bound of an event may leave the relation to them.
GUARANTEE = _statements("add-remove", "substitute")
BOUND = _statements("add-remove", "substitute", None)

# events ---------------------------------------------------------------------------------------------------------------

_STEP = fraction(0, above=True)


def event(value: Any, where: str) -> None:
    """One node of a tree of events with all below it."""
    _EVENTS(value, where)


def _spend(value: Any, where: str) -> None:
    _SPEND(value, where)
    _norm_of_law(value, where)


def _norm_of_law(value: dict[str, Any], where: str) -> None:
    if value["norm"] not in LAWS[value["law"]].norms:
        raise refuse(where, f"a sensitivity in the norm of its law {value['law']}")


def _hiding(value: Any, where: str) -> None:
    _HIDING(value, where)
    _norm_of_law(value, where)


def _event(**fields: Shape) -> Shape:
    return record({"event": NAME, **fields})


_NUMBERS = {
    "name": NAME,
    "sensitivity": fraction(0),
    "scale": _STEP,
    "step": _STEP,
    "shape": each(whole(0, 2**40), most=_DIMENSIONS),
    "map": TEXT,
}
_SPEND = _event(law=one_of(*LAWS), norm=NAME, **_NUMBERS)
# what the meter adds last to an opaque release: independent noise
_HIDING = record({"event": one_of("spend"), "law": one_of(*ADDITIVE), "norm": one_of("l1", "l2"), **_NUMBERS})
_EVENTS = kinds(
    "event",
    {
        "spend": _spend,
        "together": _event(parts=each(event, most=LEAVES)),
        "either": _event(branches=each(event, 1, LEAVES)),
        "test": record({"event": NAME, "on": event, "then": event}, {"delta": fraction(0, below=1), "shown": BOOLEAN}),
        "opaque": record({"event": NAME, "name": NAME, "guarantee": BOUND, "proof": TEXT}, {"hiding": _hiding}),
    },
)


def tree(value: Any, where: str) -> None:
    """A tree of events: known kinds, and no more of them than can be folded in time."""
    event(value, where)
    _bounded([value], where)


def parts_tree(value: Any, where: str) -> None:
    """The events of a publication: each of its parts is a tree by itself, and choices in one do not multiply those in another."""
    event(value, where)
    if value["event"] != "together":
        raise refuse(where, "the events of several questions")
    _bounded(value["parts"], where)


def _bounded(parts: list[Any], where: str) -> None:
    leaves: list[dict[str, Any]] = []
    names = 0
    for part in parts:
        ways, own = _ways(part, 1, leaves, where)
        names += len(own)
        if ways > PATHS:
            raise refuse(where, f"a plan of at most {PATHS} ways through its choices")
    if len({leaf["name"] for leaf in leaves}) != names:
        raise refuse(where, "a plan that draws each spend once")
    if len(leaves) > LEAVES:
        raise refuse(where, f"a plan of at most {LEAVES} spends")
    known: dict[str, dict[str, Any]] = {}
    if any(known.setdefault(leaf["name"], leaf) != leaf for leaf in leaves):
        raise refuse(where, "a plan in which a name means one spend")
    paid = [*leaves, *(leaf["hiding"] for leaf in leaves if "hiding" in leaf)]
    digits = [leaf[key] for leaf in paid for key in ("sensitivity", "scale", "step") if key in leaf]
    if sum(map(len, digits)) > EVENT_DIGITS or sum(map(len, set(digits))) > DIFFERENT_DIGITS:
        raise refuse(where, f"a plan whose numbers have {EVENT_DIGITS} digits, the different ones {DIFFERENT_DIGITS}")


def _ways(node: dict[str, Any], depth: int, leaves: list[dict[str, Any]], where: str) -> tuple[int, set[str]]:
    """At most how many sets of names may have been drawn, with the names; collects the leaves. No set is written out."""
    if depth > EVENT_DEPTH:
        raise refuse(where, f"a plan of events at most {EVENT_DEPTH} deep")
    kind = node["event"]
    if kind in ("spend", "opaque"):
        leaves.append(node)
        return 1, {node["name"]}
    below = [node[key] for key in ("on", "then", "base", "leaf") if key in node]
    found = [
        _ways(child, depth + 1, leaves, where) for child in (*below, *node.get("parts", ()), *node.get("branches", ()))
    ]
    names = set().union(*(own for _, own in found))
    if kind == "either":
        return sum(number for number, _ in found), names
    if sum(len(own) for _, own in found) > len(names):
        raise refuse(where, "a plan that draws each spend once")
    total = 1
    for number, _ in found:  # no product of all, which may be a long number
        total = min(total * number, PATHS + 1)
    return total + (found[0][0] if kind == "test" else 0), names


# plans and releases ---------------------------------------------------------------------------------------------------

_PROVENANCE = record({"kind": NAME, "text": TEXT})
_GRID = {
    "name": NAME,
    "kind": NAME,
    "low": _FINITE,
    "high": _FINITE,
    "steps": whole(2, 2**22),
    "scale": _FINITE,
    "on_missing": TEXT,
    "provenance": _PROVENANCE,
}
_UNIT = record(
    {"column": NAME, "rows": whole(1, _COUNT), "rule": one_of(None, "keep", "weight")},
    {"per": NAME, "groups": maybe(whole(1, _COUNT))},
)


_CLUSTER = record(
    {"column": NAME, "size": _FINITE, "icc": _FINITE, "count": maybe(whole(2, _COUNT)), "largest": maybe(_FINITE)}
)


def _listed(value: Any, where: str) -> None:
    """A stratum and its PSUs, or how many they are."""
    if not isinstance(value, list) or len(value) != 2:
        raise refuse(where, "a stratum and its PSUs")
    TEXT(value[0], where)
    (each(NAME, 2) if isinstance(value[1], list) else whole(2, _COUNT))(value[1], where)


_DESIGN = record(
    {},
    {
        "weight": NAME,
        "strata": NAME,
        "psu": NAME,
        "psus": each(_listed, 1),
        "size": _FINITE,
        "icc": _FINITE,
        "largest": _FINITE,
        "count": whole(2, _COUNT),
        "deff": _FINITE,
        "cap": one_of("auto", "full"),
        "population": whole(1, _COUNT),
        "fraction": _FINITE,
    },
)


def _unit(value: Any, where: str) -> None:
    """A declared unit's name, or an enforced one."""
    (_UNIT if isinstance(value, dict) else NAME)(value, where)


SCHEMA = record(
    {
        "columns": each(
            kinds(
                "kind",
                {
                    "numeric": record(_GRID),
                    "integer": record(_GRID),
                    "categorical": record(
                        {
                            "name": NAME,
                            "kind": NAME,
                            "levels": each(TEXT, 2, 2**22),
                            "on_missing": TEXT,
                            "provenance": _PROVENANCE,
                        }
                    ),
                },
            ),
            1,
        ),
        "rows_per_unit": whole(1, _COUNT),
        "unit": maybe(_unit),
        "dataset": maybe(NAME),
    },
    {"cluster": _CLUSTER, "design": _DESIGN},
)
QUESTION = record(
    {},
    {
        "subset": each(TEXT),
        "contrasts": setting,
        "kind": TEXT,
        "quantiles": setting,
        "prior": TEXT,
        "formula": TEXT,
        "loss": TEXT,
        "covers": TEXT,
    },
)
_FACTS_OF_A_PLAN: dict[str, Shape] = {
    "method": record({"name": NAME, "version": NAME, "parameters": named(setting)}),
    "question": maybe(QUESTION),
    "requested": GUARANTEE,
    "guarantees": each(GUARANTEE, 1, 100),
    "event": tree,
    "passes": whole(1, _PASSES),
    "n": maybe(whole(0, _COUNT)),
    "public_inputs": named(TEXT),
    "constants": named(setting),
    "target": TEXT,
    "covers": TEXT,
    "warnings": each(TEXT, most=1_000),
}
# the questions of a publication are about its own records, and have no questions of their own
_CHILD = record({"name": NAME, "plan": record(_FACTS_OF_A_PLAN)})
_PLAN = record({"schema": SCHEMA, **_FACTS_OF_A_PLAN})
_PUBLICATION = record(
    {"schema": SCHEMA, **_FACTS_OF_A_PLAN, "event": parts_tree, "children": each(_CHILD, 1, CHILDREN)}
)


def PLAN(value: Any, where: str) -> None:
    """A plan, or one with children."""
    (_PUBLICATION if isinstance(value, dict) and "children" in value else _PLAN)(value, where)


def noisy(value: Any, where: str) -> None:
    """One noisy statistic: a law that is known, with its norm and its scale; an opaque one has neither."""
    _NOISY(value, where)
    if value["law"] != "opaque":
        _norm_of_law(value, where)
    scale = fraction_text(value["scale"])
    if (value["law"] == "opaque") != (scale == 0) or (value["law"] == "opaque" and value["norm"] != "none"):
        raise refuse(where, "a statistic with the scale of its law, or an opaque one without")


_NOISY = record(
    {
        "values": integers,
        "step": _STEP,
        "law": one_of(*LAWS, "opaque"),
        "scale": fraction(0),
        "norm": NAME,
    }
)
RELEASE = record(
    {
        "plan": PLAN,
        "status": one_of("released", "no_reply"),
        "statistics": named(noisy),
        "public": named(array),
        "artifacts": named(TEXT),
        "guarantees": each(GUARANTEE, 1, 100),
        "simulated": BOOLEAN,
    },
    {"statuses": named(one_of("released", "no_reply", "failed"))},
)
SIDECAR = record(
    {
        "release": RELEASE,
        "made": made,
        "columns": named(one_of("text", "whole", "double")),
        "content_sha256": DIGEST,
    }
)

_BODIES: dict[str, Shape] = {"plan": PLAN, "release": RELEASE, "synthetic table": SIDECAR}


def check_body(kind: str, body: Any) -> None:
    """Raise `ReleaseError` unless the body is one that confide writes into files of that kind.

    The gate asks before it charges, so that nothing is paid for that could not be read back.
    """
    _BODIES[kind](body, kind)
