"""Event trees in files: their JSON-safe form, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confide.errors import ReleaseError
from confide.protocol.events import Either, Event, Opaque, Spend, Test, Together
from confide.protocol.serialization.codec import decode, encode
from confide.protocol.spending.laws import ADDITIVE

__all__ = ["event_from_dict", "event_to_dict"]

_KINDS = {
    "spend": Spend,
    "together": Together,
    "either": Either,
    "test": Test,
    "opaque": Opaque,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def event_to_dict(event: Event) -> dict[str, Any]:
    """JSON-safe form of a tree."""
    return {"event": _NAMES[type(event)], **encode(event)}


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """The inverse of `event_to_dict`; an unknown node is refused with `ReleaseError`."""
    kind = data.get("event")
    if kind not in _KINDS:
        raise ReleaseError(f"unknown event {kind!r} in the file; the kinds are {', '.join(_KINDS)}")
    event: Event = decode(_KINDS[kind], data)
    if isinstance(event, Test) and not isinstance(event.shown, bool):
        raise ReleaseError("a test is shown or not, true or false; the file was altered")
    hiding = event.hiding if isinstance(event, Opaque) else None
    if hiding is not None and not (
        isinstance(hiding, Spend) and hiding.law in ADDITIVE and hiding.norm in ("l1", "l2")
    ):
        raise ReleaseError("what hides an opaque release is a spend of independent noise; the file was altered")
    return event
