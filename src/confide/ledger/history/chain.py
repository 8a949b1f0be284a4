"""The hash chain of a dataset: each entry carries the SHA-256 of the one before and of its own canonical JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from confide.guarantees import Guarantee, guarantee_from_dict
from confide.ledger.storage.tables import CHAINED

__all__ = [
    "GENESIS",
    "canonical",
    "charge_delta_of",
    "charge_delta_to_text",
    "guarantee_from_text",
    "guarantee_to_text",
    "row_hash",
    "statements_from_text",
    "statements_to_text",
]

#: What the first entry of a dataset follows.
GENESIS = "0" * 64
_AT = "charge_delta="


def canonical(value: Any) -> str:
    """The one JSON text of a value: ASCII, sorted keys, no white space, no NaN.

    >>> canonical({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def row_hash(prev: str, row: Mapping[str, Any]) -> str:
    """SHA-256 of the previous hash and the canonical JSON of the row's columns, 64 hexadecimal digits.

    `prev` always has 64 characters, so that where it ends and the row begins is not open to choice.
    """
    covered = {name: row[name] for name in CHAINED}
    return hashlib.sha256((prev + canonical(covered)).encode("ascii")).hexdigest()


def guarantee_to_text(guarantee: Guarantee) -> str:
    """A guarantee as canonical JSON, floats as `float.hex`."""
    return canonical(guarantee.to_dict())


def guarantee_from_text(text: str) -> Guarantee:
    """The inverse of `guarantee_to_text`."""
    return guarantee_from_dict(json.loads(text))


def statements_to_text(statements: tuple[Guarantee, ...]) -> str:
    """The statements of a release as one canonical JSON list."""
    return canonical([statement.to_dict() for statement in statements])


def statements_from_text(text: str) -> tuple[Guarantee, ...]:
    """The inverse of `statements_to_text`."""
    return tuple(guarantee_from_dict(item) for item in json.loads(text))


def charge_delta_to_text(charge_delta: float | None) -> str:
    """How the note of a charge says where trade-off functions were charged; empty when nowhere."""
    return "" if charge_delta is None else f"{_AT}{charge_delta!r}"


def charge_delta_of(note: str) -> float | None:
    """The inverse of `charge_delta_to_text`.

    >>> charge_delta_of(charge_delta_to_text(1e-6)), charge_delta_of("")
    (1e-06, None)
    """
    return float(note.removeprefix(_AT)) if note else None
