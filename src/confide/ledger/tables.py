"""The two tables of a book: `budget` (a row per dataset, running totals) and `entry` (each dataset's hash chain).

Everything in `budget` can be computed again from `entry`; it is kept so that a charge costs the same on the
millionth day.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = ["APPLICATION", "CHAINED", "FORMAT", "book_tables", "budget", "entry", "metadata"]

#: Version of the tables; a book of a newer one is refused.
FORMAT = 1

#: What tells a book from another application's tables (an SQLite file has a place for that in its header).
APPLICATION = "confide ledger"

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
    Column("head", String(64), nullable=False),  # hash of the last entry
    CheckConstraint("spent_amount >= 0 AND spent_delta >= 0", name="spent_not_negative"),
)

entry = Table(
    "entry",
    metadata,
    Column("dataset", String(200), ForeignKey("budget.dataset"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(8), nullable=False),  # open, charge, receipt, amend
    Column("time", String(32), nullable=False),  # UTC, ISO 8601
    Column("guarantee", Text, nullable=False),  # canonical JSON: the budget, or the statement that was charged
    Column("amount", BigInteger, nullable=False),  # the price of a charge, the limit of open and amend, 0 for a receipt
    Column("delta", BigInteger, nullable=False),
    Column("statements", Text, nullable=False),  # canonical JSON: every statement that the release offered
    Column("method", Text, nullable=False),
    Column("plan_sha256", String(64), nullable=False),
    Column("charge_seq", BigInteger),  # of a receipt: the charge that paid
    Column("release_sha256", String(64), nullable=False),
    Column("version", Text, nullable=False),
    Column("note", Text, nullable=False),  # of open: the note; of amend: the reason
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    ForeignKeyConstraint(["dataset", "charge_seq"], ["entry.dataset", "entry.seq"]),
    # Two writers that both believe they hold the lock collide here instead of forking the chain.
    UniqueConstraint("dataset", "prev", name="one_successor"),
    UniqueConstraint("dataset", "charge_seq", name="one_receipt"),
    CheckConstraint("amount >= 0 AND delta >= 0", name="never_refunded"),
)

#: On a server: whose tables these are, and their version. One row.
book_tables = Table(
    "confide_ledger",
    MetaData(),
    Column("application", String(32), primary_key=True),
    Column("format", BigInteger, nullable=False),
)

#: The columns under an entry's hash: all but the hash itself and `prev`, which is hashed in front of them.
CHAINED = tuple(column.name for column in entry.columns if column.name not in {"prev", "hash"})
