"""The hash chain of a dataset: each entry carries the SHA-256 of the one before and of its own canonical JSON.

The tables of a ledger: `budget` (a row per dataset, running totals), `entry` (each dataset's hash chain) and `stream_output` (what
protected streams published of each record: `confide.ledger.outputs`).

Everything in `budget` can be computed again from `entry`; it is kept so that a charge costs the same on the
millionth day. What the row says after an entry stands in that entry too, under its hash: a charge compares the two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from confide.guarantees import Guarantee, guarantee_from_dict

#: Version of the tables; a ledger of another one is refused.
FORMAT = 2

#: What tells a ledger from another application's tables (an SQLite file has a place for that in its header).
APPLICATION = "confide ledger"

#: The columns in which a receipt equals its charge.
SHARED = ("guarantee", "statements", "method", "plan_sha256")

_NAME, _WORD, _DIGEST, _TEXT, _WHOLE, _BYTES = "VARCHAR(200)", "VARCHAR(32)", "VARCHAR(64)", "TEXT", "BIGINT", "BLOB"

#: The columns of the three tables, each with its type; none may be empty but `charge_seq`.
BUDGET = {
    "dataset": _NAME,
    "currency": "VARCHAR(16)",
    "relation": _WORD,
    "unit": _TEXT,
    "trust": _WORD,
    "guarantee": _TEXT,  # the budget as canonical JSON, floats as hex
    "limit_amount": _WHOLE,  # units of 2^-40: mu^2, rho or epsilon
    "limit_delta": _WHOLE,  # units of 2^-60
    "spent_amount": _WHOLE,
    "spent_delta": _WHOLE,
    "entries": _WHOLE,  # seq of the last entry
    "tip": _DIGEST,  # hash of the last entry
    "rows_per_unit": _WHOLE,
    "state": "VARCHAR(16)",  # of an (epsilon, delta) budget: which rule
    "stayed_amount": _WHOLE,  # spent as pairs before converting
    "stayed_delta": _WHOLE,
    # of an enforced unit: the key by which rows are chosen, in hexadecimal, and its SHA-256, which is under the hashes of the chain
    "unit_key": _DIGEST,
    "key_sha256": _DIGEST,
}
STREAM_OUTPUT = {
    "dataset": _NAME,
    "charge": _WHOLE,  # seq of what paid for the stream's version
    "id": _BYTES,
    "output": _BYTES,
    "entry": _WHOLE,  # seq of the entry that tells of it
}
ENTRY = {
    "dataset": _NAME,
    "seq": _WHOLE,
    "kind": "VARCHAR(8)",  # open, charge, receipt, amend, convert, outputs
    "time": _WORD,  # UTC, ISO 8601
    "guarantee": _TEXT,  # canonical JSON: the budget, or the statement that was charged
    # the price of a charge, the limit of open, amend and convert, 0 for the others
    "amount": _WHOLE,
    "delta": _WHOLE,
    "statements": _TEXT,  # canonical JSON: every statement that the release offered
    "method": _TEXT,
    "title": _TEXT,  # of a charge: what it pays for, in words
    "plan_sha256": _DIGEST,
    "charge_seq": _WHOLE,  # of a receipt: the charge that paid
    "release_sha256": _DIGEST,  # of outputs: their digest
    "version": _TEXT,
    "note": _TEXT,  # of open: the note; of amend: the reason; of outputs: how many
    "prev": _DIGEST,
    "hash": _DIGEST,
    "after": _TEXT,  # the terms after it
}


def _made(name: str, columns: Mapping[str, str], *rules: str) -> str:
    kinds = [f"{column} {kind}{'' if column == 'charge_seq' else ' NOT NULL'}" for column, kind in columns.items()]
    return f"CREATE TABLE {name} ({', '.join((*kinds, *rules))})"


#: The statements that make the tables of a ledger, by their names, in order.
TABLES = {
    "budget": _made(
        "budget",
        BUDGET,
        "PRIMARY KEY (dataset)",
        "CONSTRAINT spent_not_negative CHECK (spent_amount >= 0 AND spent_delta >= 0)",
    ),
    # rows stand in their key's order, once
    "stream_output": _made("stream_output", STREAM_OUTPUT, "PRIMARY KEY (dataset, charge, id)") + " WITHOUT ROWID",
    "entry": _made(
        "entry",
        ENTRY,
        "PRIMARY KEY (dataset, seq)",
        "FOREIGN KEY(dataset, charge_seq) REFERENCES entry (dataset, seq)",
        # Two writers that both believe they hold the lock collide here instead of forking the chain.
        "CONSTRAINT one_successor UNIQUE (dataset, prev)",
        "CONSTRAINT one_receipt UNIQUE (dataset, charge_seq)",
        "CONSTRAINT never_refunded CHECK (amount >= 0 AND delta >= 0)",
        "FOREIGN KEY(dataset) REFERENCES budget (dataset)",
    ),
}

#: The columns of `budget` that each entry repeats as they stand after it; the end of the chain is the entry itself.
TERMS = tuple(sorted(BUDGET.keys() - {"dataset", "entries", "tip", "unit_key"}))

#: The columns under an entry's hash: all but the hash itself and `prev`, which is hashed in front of them.
CHAINED = tuple(column for column in ENTRY if column not in {"prev", "hash"})

#: What the first entry of a dataset follows.
GENESIS = "0" * 64
_AT = "charge_delta="
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: Any) -> str:
    """The one JSON text of a value: ASCII, sorted keys, no white space, no NaN.

    >>> canonical({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return _JSON.encode(value)


def row_hash(prev: str, row: Mapping[str, Any]) -> str:
    """SHA-256 of the previous hash and the canonical JSON of the row's columns, 64 hexadecimal digits.

    `prev` always has 64 characters, so that where it ends and the row begins is not open to choice.
    """
    covered = {name: row[name] for name in CHAINED}
    return hashlib.sha256((prev + canonical(covered)).encode("ascii")).hexdigest()


def guarantee_to_text(guarantee: Guarantee) -> str:
    """A guarantee as canonical JSON, floats as `float.hex`."""
    return canonical(guarantee.to_dict())


@lru_cache(maxsize=256)
def guarantee_from_text(text: str) -> Guarantee:
    """The inverse of `guarantee_to_text`. Remembered: each charge reads the same budget again."""
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
