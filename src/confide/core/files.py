"""The envelope of published files: kind, format version, SHA-256 of the body, body. No time, path, machine or build inside.

What guarantees and curves look like in a file.

What the events of a plan look like in a file, and how much of them: a fold over the tree must take time in proportion to it.

What the files that confide writes look like, entry by entry, and the one check of a whole body when it is read.

Nothing is converted before it was measured here: an attacker can sign any body, for the digest in the file is not a
secret. What passes has the types, sizes and kinds of the entries that confide writes, so that building the objects
takes time in proportion to the file. It need not be true: whether a release agrees with its plan is asked by
`confide.infer`, whether it is the paid one by `confide.verify`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from confide.core.codec import (
    BOOLEAN,
    COUNT,
    DIGEST,
    DIMENSIONS,
    FILE_CHARACTERS,
    FINITE,
    INTEGER_DIGITS,
    NAME,
    TEXT,
    Shape,
    array,
    double,
    each,
    fraction,
    fraction_text,
    integers,
    kinds,
    made,
    maybe,
    named,
    one_of_shape,
    record,
    refuse,
    setting,
    shown,
    whole,
)
from confide.core.events import ADDITIVE, LAWS
from confide.core.exact import canonical_json, digest
from confide.errors import ConfideError, ReleaseError

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
    labels = {"type": NAME, "relation": relation, "unit": NAME, "trust": one_of_shape("central", "local")}
    return record({**labels, "assumptions": each(TEXT, most=100), **numbers})


def _statements(*relations: str | None) -> Shape:
    relation = one_of_shape(*relations)
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
STEP = fraction(0, above=True)


def event(value: Any, where: str) -> None:
    """One node of a tree of events with all below it."""
    _EVENTS(value, where)


def _spend(value: Any, where: str) -> None:
    _SPEND(value, where)
    norm_of_law(value, where)


def norm_of_law(value: dict[str, Any], where: str) -> None:
    """Refuse a sensitivity that is not in the norm of its distribution of noise."""
    if value["norm"] not in LAWS[value["law"]].norms:
        raise refuse(where, f"a sensitivity in the norm of its law {value['law']}")


def _hiding(value: Any, where: str) -> None:
    _HIDING(value, where)
    norm_of_law(value, where)


def _event(**fields: Shape) -> Shape:
    return record({"event": NAME, **fields})


_NUMBERS = {
    "name": NAME,
    "sensitivity": fraction(0),
    "scale": STEP,
    "step": STEP,
    "shape": each(whole(0, 2**40), most=DIMENSIONS),
    "map": TEXT,
}
_SPEND = _event(law=one_of_shape(*LAWS), norm=NAME, **_NUMBERS)
# what the meter adds last to an opaque release: independent noise
_HIDING = record(
    {"event": one_of_shape("spend"), "law": one_of_shape(*ADDITIVE), "norm": one_of_shape("l1", "l2"), **_NUMBERS}
)
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
    """The events of a publication: each of its parts is a separate tree, and choices in one do not multiply those in another."""
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


#: Of questions in a publication.
CHILDREN = 1_000
_PASSES = 10**6
_PROVENANCE = record({"kind": NAME, "text": TEXT})


def _code(value: Any, where: str) -> None:
    """A code of missing values: a text, or a range of numbers."""
    (each(FINITE, 2, 2) if isinstance(value, list) else TEXT)(value, where)


_MISSING = {"missing": each(_code, most=1_000)}
_GRID = {
    "name": NAME,
    "kind": NAME,
    "low": FINITE,
    "high": FINITE,
    "steps": whole(2, 2**22),
    "scale": FINITE,
    "on_missing": TEXT,
    "provenance": _PROVENANCE,
}
_UNIT = record(
    {"column": NAME, "rows": whole(1, COUNT), "rule": one_of_shape(None, "keep", "weight")},
    {"per": NAME, "groups": maybe(whole(1, COUNT))},
)
_CLUSTER = record(
    {"column": NAME, "size": FINITE, "icc": FINITE, "count": maybe(whole(2, COUNT)), "largest": maybe(FINITE)}
)


def _definition(value: Any, where: str) -> None:
    """A derived column's name and its definition."""
    if not isinstance(value, list) or len(value) != 2:
        raise refuse(where, "a name and a definition")
    NAME(value[0], f"{where}[0]")
    TEXT(value[1], f"{where}[1]")


def _listed(value: Any, where: str) -> None:
    """A stratum and its PSUs, or how many they are."""
    if not isinstance(value, list) or len(value) != 2:
        raise refuse(where, "a stratum and its PSUs")
    TEXT(value[0], where)
    (each(NAME, 2) if isinstance(value[1], list) else whole(2, COUNT))(value[1], where)


_DESIGN = record(
    {},
    {
        "weight": NAME,
        "strata": NAME,
        "psu": NAME,
        "psus": each(_listed, 1),
        "size": FINITE,
        "icc": FINITE,
        "largest": FINITE,
        "count": whole(2, COUNT),
        "deff": FINITE,
        "cap": one_of_shape("auto", "full"),
        "population": whole(1, COUNT),
        "fraction": FINITE,
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
                    "numeric": record(_GRID, _MISSING),
                    "integer": record(_GRID, _MISSING),
                    "date": record(
                        _GRID, {**_MISSING, "format": each(TEXT, 1, 20), "century": whole(1, 9_900), "epoch": NAME}
                    ),
                    "categorical": record(
                        {
                            "name": NAME,
                            "kind": NAME,
                            "levels": each(TEXT, 2, 2**22),
                            "on_missing": TEXT,
                            "provenance": _PROVENANCE,
                        },
                        {**_MISSING, "codes": each(TEXT, 2, 2**22)},
                    ),
                },
            ),
            1,
        ),
        "rows_per_unit": whole(1, COUNT),
        "unit": maybe(_unit),
        "dataset": maybe(NAME),
    },
    {"cluster": _CLUSTER, "design": _DESIGN, "derive": each(_definition, 1, 200)},
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
        "inference": TEXT,
    },
)
_FACTS_OF_A_PLAN: dict[str, Shape] = {
    "method": record({"name": NAME, "version": NAME, "parameters": named(setting)}),
    "options": maybe(QUESTION),
    "requested": GUARANTEE,
    "guarantees": each(GUARANTEE, 1, 100),
    "event": tree,
    "passes": whole(1, _PASSES),
    "n": maybe(whole(0, COUNT)),
    "public_inputs": named(TEXT),
    "constants": named(setting),
    "target": TEXT,
    "intervals_for": TEXT,
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
        norm_of_law(value, where)
    scale = fraction_text(value["scale"])
    if (value["law"] == "opaque") != (scale == 0) or (value["law"] == "opaque" and value["norm"] != "none"):
        raise refuse(where, "a statistic with the scale of its law, or an opaque one without")


_NOISY = record(
    {
        "values": integers,
        "step": STEP,
        "law": one_of_shape(*LAWS, "opaque"),
        "scale": fraction(0),
        "norm": NAME,
    }
)
RELEASE = record(
    {
        "plan": PLAN,
        "status": one_of_shape("released", "declined"),
        "statistics": named(noisy),
        "public": named(array),
        "artifacts": named(TEXT),
        "guarantees": each(GUARANTEE, 1, 100),
        "simulated": BOOLEAN,
    },
    {"statuses": named(one_of_shape("released", "declined", "failed"))},
)
SIDECAR = record(
    {
        "release": RELEASE,
        "made": made,
        "columns": named(one_of_shape("text", "whole", "double")),
        "content_sha256": DIGEST,
    }
)
_BODIES: dict[str, Shape] = {"plan": PLAN, "release": RELEASE, "synthetic table": SIDECAR}


def check_body(kind: str, body: Any) -> None:
    """Raise `ReleaseError` unless the body is one that confide writes into files of that kind.

    Asked where a file is written or read; the gate asks before it charges, so that nothing is paid for that could not be read back.
    """
    _BODIES[kind](body, kind)


_Read = TypeVar("_Read")

#: What a file is written as, and the one that is read: another may hold statements that this version does not understand.
FORMAT = "1.0"

#: Of brackets inside each other: releases have up to 12, and a selection among selections' candidates a few more.
JSON_DEPTH = 64


def to_file(kind: str, body: Mapping[str, Any]) -> str:
    """The text of a file: canonical JSON, so that equal bodies are equal files."""
    return canonical_json({"confide": kind, "format_version": FORMAT, "sha256": digest(body), "body": body}) + "\n"


def written(kind: str, body: Mapping[str, Any]) -> str:
    """The text of a file that can be read back: `ReleaseError` for a body beyond what files of confide hold."""
    check_body(kind, body)
    return to_file(kind, body)


def from_file(kind: str, text: str) -> dict[str, Any]:
    """The body of a file of that kind, all of it checked and none of it converted.

    Raises `ReleaseError` when the text is not a file of this kind, was changed, is of another format, or holds
    anything that confide does not write.
    """
    data = parse(kind, text)
    if not isinstance(data, dict) or data.get("confide") != kind:
        found = data.get("confide") if isinstance(data, dict) else None
        raise ReleaseError(
            f"this is no confide {kind} but {shown(found) if isinstance(found, str) else 'something else'}",
            f"give the file that `confide {kind}` wrote",
        )
    version = data.get("format_version")
    if version != FORMAT:
        has = f"the format {shown(version)}" if isinstance(version, str) else "no format"
        raise ReleaseError(
            f"this {kind} has {has}, and this confide reads {FORMAT}", "read it with the confide that wrote it"
        )
    body = data.get("body")
    if not isinstance(body, dict) or _digest(body) != data.get("sha256"):
        raise ReleaseError(
            f"the {kind} was changed after it was written: its SHA-256 does not match", "ask for the original file"
        )
    check_body(kind, body)
    return body


def read(kind: str, text: str, build: Callable[[dict[str, Any]], _Read]) -> _Read:
    """What `build` makes of the body of a file of that kind.

    The body has the right types and sizes by then. What is still wrong with it (a guarantee of an impossible level, a
    setting that no class takes) is `ReleaseError` too. A file is public, so that its cause may be shown.
    """
    body = from_file(kind, text)
    try:
        return build(body)
    except ReleaseError:
        raise
    except Exception as error:
        words = str(error) if isinstance(error, ConfideError) else type(error).__name__
        raise ReleaseError(
            f"the {kind} holds what confide does not write ({words})", "ask for the original file"
        ) from error


def text_of(path: str | Path, kind: str) -> str:
    """The text of a file, no more of it than a file of confide can have; `ReleaseError` when it is longer or no UTF-8."""
    with Path(path).open("rb") as file:
        content = file.read(4 * FILE_CHARACTERS + 1)  # up to four bytes a character
    if len(content) > 4 * FILE_CHARACTERS:
        raise ReleaseError(f"this is no confide {kind}: it is too large", "give the file that confide wrote")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ReleaseError(f"this is no confide {kind}: no text in UTF-8", "give the file that confide wrote") from None


def _digest(body: dict[str, Any]) -> str | None:
    try:
        return digest(body)
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes
        return None


# text -----------------------------------------------------------------------------------------------------------------


def parse(kind: str, text: Any) -> Any:
    """The JSON in a text, with every number, name and nesting within limits; `ReleaseError` for anything else."""
    if not isinstance(text, str):
        raise refuse(f"a {kind}", f"text but {type(text).__name__}")
    if len(text) > FILE_CHARACTERS:
        raise refuse(f"this {kind}", f"a file of at most {FILE_CHARACTERS} characters")
    try:
        data = json.loads(
            text, object_pairs_hook=_once, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
        _check_depth(data)
        return data
    except ReleaseError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise ReleaseError(f"this is no confide {kind}: not JSON", "give the file that confide wrote") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        first = next(
            name for (name, _), (other, _) in pairwise(sorted(pairs, key=lambda pair: pair[0])) if name == other
        )
        raise refuse("the file", f"unambiguous, for it has an entry twice, {shown(first)}")
    return found


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS:
        raise refuse("a number in the file", f"an integer of at most {INTEGER_DIGITS} digits")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        _constant(text)
    return number


def _constant(text: str) -> NoReturn:
    raise refuse("a number in the file", "finite")


def _too_deep() -> ReleaseError:
    return refuse("the file", f"JSON whose brackets are at most {JSON_DEPTH} deep")


def _check_depth(data: Any) -> None:
    """Level by level, not by recursion: the file says how deep it is."""
    level = [data]
    for _ in range(JSON_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise _too_deep()
