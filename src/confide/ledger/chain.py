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
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from confide.guarantees import Guarantee, guarantee_from_dict

#: Version of the tables; a ledger of another one is refused.
FORMAT = 2

#: What tells a ledger from another application's tables (an SQLite file has a place for that in its header).
APPLICATION = "confide ledger"

#: The columns in which a receipt equals its charge.
SHARED = ("guarantee", "statements", "method", "plan_sha256")

metadata = MetaData()

budget = Table(
    "budget",
    metadata,
    Column("dataset", String(200), primary_key=True),
    Column("currency", String(16), nullable=False),
    Column("relation", String(32), nullable=False),
    Column("unit", Text, nullable=False),
    Column("trust", String(32), nullable=False),
    Column("guarantee", Text, nullable=False),  # the budget as canonical JSON, floats as hex
    Column("limit_amount", BigInteger, nullable=False),  # units of 2^-40: mu^2, rho or epsilon
    Column("limit_delta", BigInteger, nullable=False),  # units of 2^-60
    Column("spent_amount", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),  # seq of the last entry
    Column("tip", String(64), nullable=False),  # hash of the last entry
    Column("rows_per_unit", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),  # of an (epsilon, delta) budget: which rule
    Column("stayed_amount", BigInteger, nullable=False),  # spent as pairs before converting
    Column("stayed_delta", BigInteger, nullable=False),
    # of an enforced unit: the key by which rows are chosen, in hexadecimal, and its SHA-256, which is under the hashes of the chain
    Column("unit_key", String(64), nullable=False),
    Column("key_sha256", String(64), nullable=False),
    CheckConstraint("spent_amount >= 0 AND spent_delta >= 0", name="spent_not_negative"),
)

entry = Table(
    "entry",
    metadata,
    Column("dataset", String(200), ForeignKey("budget.dataset"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(8), nullable=False),  # open, charge, receipt, amend, convert, outputs
    Column("time", String(32), nullable=False),  # UTC, ISO 8601
    Column("guarantee", Text, nullable=False),  # canonical JSON: the budget, or the statement that was charged
    # the price of a charge, the limit of open, amend and convert, 0 for the others
    Column("amount", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("statements", Text, nullable=False),  # canonical JSON: every statement that the release offered
    Column("method", Text, nullable=False),
    Column("title", Text, nullable=False),  # of a charge: what it pays for, in words
    Column("plan_sha256", String(64), nullable=False),
    Column("charge_seq", BigInteger),  # of a receipt: the charge that paid
    Column("release_sha256", String(64), nullable=False),  # of outputs: their digest
    Column("version", Text, nullable=False),
    Column("note", Text, nullable=False),  # of open: the note; of amend: the reason; of outputs: how many
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("after", Text, nullable=False),  # the terms after it
    ForeignKeyConstraint(["dataset", "charge_seq"], ["entry.dataset", "entry.seq"]),
    # Two writers that both believe they hold the lock collide here instead of forking the chain.
    UniqueConstraint("dataset", "prev", name="one_successor"),
    UniqueConstraint("dataset", "charge_seq", name="one_receipt"),
    CheckConstraint("amount >= 0 AND delta >= 0", name="never_refunded"),
)

stream_output = Table(
    "stream_output",
    metadata,
    Column("dataset", String(200), primary_key=True),
    Column("charge", BigInteger, primary_key=True, autoincrement=False),  # seq of what paid for the stream's version
    Column("id", LargeBinary, primary_key=True),
    Column("output", LargeBinary, nullable=False),
    Column("entry", BigInteger, nullable=False),  # seq of the entry that tells of it
    sqlite_with_rowid=False,  # rows stand in their key's order, once
)

#: On a server: whose tables these are, and their version. One row.
ledger_tables = Table(
    "confide_ledger",
    MetaData(),
    Column("application", String(32), primary_key=True),
    Column("format", BigInteger, nullable=False),
)

#: The columns of `budget` that each entry repeats as they stand after it; the end of the chain is the entry itself.
TERMS = tuple(
    sorted(column.name for column in budget.columns if column.name not in {"dataset", "entries", "tip", "unit_key"})
)

#: The columns under an entry's hash: all but the hash itself and `prev`, which is hashed in front of them.
CHAINED = tuple(column.name for column in entry.columns if column.name not in {"prev", "hash"})


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
