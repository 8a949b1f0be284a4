"""Event trees in files: their JSON-safe form, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confide.errors import ReleaseError
from confide.guarantees import guarantee_from_dict
from confide.protocol.events import Either, Event, Opaque, PerPath, Select, Spend, Test, Together
from confide.protocol.exact import fraction_from_text, fraction_to_text
from confide.protocol.laws import ADDITIVE

__all__ = ["event_from_dict", "event_to_dict"]


def event_to_dict(event: Event) -> dict[str, Any]:
    """JSON-safe form of a tree."""
    match event:
        case Spend():
            return {
                "event": "spend",
                "name": event.name,
                "law": event.law,
                "sensitivity": fraction_to_text(event.sensitivity),
                "norm": event.norm,
                "scale": fraction_to_text(event.scale),
                "step": fraction_to_text(event.step),
                "shape": list(event.shape),
                "map": event.map,
            }
        case Together(parts):
            return {"event": "together", "parts": [event_to_dict(part) for part in parts]}
        case Either(branches):
            return {"event": "either", "branches": [event_to_dict(branch) for branch in branches]}
        case Test(on, then, delta, shown):
            both = {"event": "test", "on": event_to_dict(on), "then": event_to_dict(then)}
            # left out where they say nothing, as in files of format 1.0
            return both if shown and not delta else {**both, "delta": fraction_to_text(delta), "shown": shown}
        case Select(base, runs):
            return {"event": "select", "base": event_to_dict(base), "runs": runs}
        case PerPath(leaf, bound):
            return {"event": "per_path", "leaf": event_to_dict(leaf), "bound": bound.to_dict()}
        case Opaque(name, guarantee, proof, hiding):
            own = {"event": "opaque", "name": name, "guarantee": guarantee.to_dict(), "proof": proof}
            return own if hiding is None else {**own, "hiding": event_to_dict(hiding)}


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_dict`; an unknown node is refused with `ReleaseError`."""
    kind = data.get("event")
    if kind == "spend":
        return Spend(
            name=data["name"],
            law=data["law"],
            sensitivity=fraction_from_text(data["sensitivity"]),
            norm=data["norm"],
            scale=fraction_from_text(data["scale"]),
            step=fraction_from_text(data["step"]),
            shape=tuple(data["shape"]),
            map=data["map"],
        )
    if kind == "together":
        return Together(tuple(event_from_dict(part) for part in data["parts"]))
    if kind == "either":
        return Either(tuple(event_from_dict(branch) for branch in data["branches"]))
    if kind == "test" and data.get("shown", True) not in (True, False):
        raise ReleaseError("a test is shown or not, true or false; the file was altered")
    if kind == "test":
        return Test(
            event_from_dict(data["on"]),
            event_from_dict(data["then"]),
            fraction_from_text(data.get("delta", "0/1")),
            data.get("shown", True),
        )
    if kind == "select":
        return Select(event_from_dict(data["base"]), data["runs"])
    if kind == "per_path":
        return PerPath(event_from_dict(data["leaf"]), guarantee_from_dict(data["bound"]))
    if kind == "opaque":
        hiding = event_from_dict(data["hiding"]) if "hiding" in data else None
        if hiding is not None and not (
            isinstance(hiding, Spend) and hiding.law in ADDITIVE and hiding.norm in ("l1", "l2")
        ):
            raise ReleaseError("what hides an opaque release is a spend of independent noise; the file was altered")
        return Opaque(data["name"], guarantee_from_dict(data["guarantee"]), data["proof"], hiding)
    raise ReleaseError(
        f"unknown event {kind!r} in the file; the kinds are spend, together, either, test, select, per_path, opaque"
    )
