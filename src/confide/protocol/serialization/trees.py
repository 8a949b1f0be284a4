"""What the events of a plan look like in a file, and how much of them: a fold over the tree must take time in proportion to it."""

from __future__ import annotations

from typing import Any

from confide.protocol.serialization.facts import DIMENSIONS
from confide.protocol.serialization.shapes import (
    BOOLEAN,
    NAME,
    TEXT,
    Shape,
    each,
    fraction,
    kinds,
    one_of,
    record,
    refuse,
    whole,
)
from confide.protocol.serialization.statements import BOUND
from confide.protocol.spending.laws import ADDITIVE, LAWS

__all__ = [
    "DIFFERENT_DIGITS",
    "EVENT_DEPTH",
    "EVENT_DIGITS",
    "LEAVES",
    "PATHS",
    "STEP",
    "norm_of_law",
    "parts_tree",
    "tree",
]

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
