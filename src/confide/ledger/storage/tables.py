"""The two tables of a ledger: `budget` (a row per dataset, running totals) and `entry` (each dataset's hash chain).

Everything in `budget` can be computed again from `entry`; it is kept so that a charge costs the same on the
millionth day. What the row says after an entry stands in that entry too, under its hash: a charge compares the two.

Tables 1 had neither the columns of `ADDED` nor the terms in their entries, tables 2 not the key of an enforced unit. A ledger of
tables 1 or 2 gains the columns when it is opened; its old entries keep their hashes, which cover the columns of that time. Tables 4 are
3 with the outputs of a stream (`confide.ledger.history.outputs`), whose first use makes them: versions that know no such entries refuse
the ledger.
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
    text,
)

__all__ = [
    "ADDED",
    "APPLICATION",
    "CHAINED",
    "FORMAT",
    "SHARED",
    "STREAMED",
    "TERMS",
    "budget",
    "chained",
    "entry",
    "ledger_tables",
    "metadata",
]

#: Version of the tables, and that of a ledger with a stream, the newest; a ledger of a newer one is refused.
FORMAT, STREAMED = 3, 4

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
    Column("head", String(64), nullable=False),  # hash of the last entry
    Column("rows_per_unit", BigInteger, nullable=False, server_default=text("0")),  # 0: not pinned yet
    Column("state", String(16), nullable=False, server_default=text("''")),  # of an (epsilon, delta) budget: which rule
    Column("stayed_amount", BigInteger, nullable=False, server_default=text("0")),  # spent as pairs before converting
    Column("stayed_delta", BigInteger, nullable=False, server_default=text("0")),
    # of an enforced unit: the key by which rows are chosen, in hexadecimal, and its SHA-256, which is under the hashes of the chain
    Column("unit_key", String(64), nullable=False, server_default=text("''")),
    Column("key_sha256", String(64), nullable=False, server_default=text("''")),
    CheckConstraint("spent_amount >= 0 AND spent_delta >= 0", name="spent_not_negative"),
)

entry = Table(
    "entry",
    metadata,
    Column("dataset", String(200), ForeignKey("budget.dataset"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(8), nullable=False),  # open, pin, charge, receipt, amend, convert, outputs
    Column("time", String(32), nullable=False),  # UTC, ISO 8601
    Column("guarantee", Text, nullable=False),  # canonical JSON: the budget, or the statement that was charged
    # the price of a charge, the limit of open, amend and convert, 0 for the others
    Column("amount", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("statements", Text, nullable=False),  # canonical JSON: every statement that the release offered
    Column("method", Text, nullable=False),
    Column("plan_sha256", String(64), nullable=False),
    Column("charge_seq", BigInteger),  # of a receipt: the charge that paid
    Column("release_sha256", String(64), nullable=False),  # of outputs: their digest
    Column("version", Text, nullable=False),
    Column("note", Text, nullable=False),  # of open: the note; of amend: the reason; of outputs: how many
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("after", Text, nullable=False, server_default=text("''")),  # the terms after it; empty in tables 1
    ForeignKeyConstraint(["dataset", "charge_seq"], ["entry.dataset", "entry.seq"]),
    # Two writers that both believe they hold the lock collide here instead of forking the chain.
    UniqueConstraint("dataset", "prev", name="one_successor"),
    UniqueConstraint("dataset", "charge_seq", name="one_receipt"),
    CheckConstraint("amount >= 0 AND delta >= 0", name="never_refunded"),
)

#: On a server: whose tables these are, and their version. One row.
ledger_tables = Table(
    "confide_ledger",
    MetaData(),
    Column("application", String(32), primary_key=True),
    Column("format", BigInteger, nullable=False),
)

#: The columns that tables 1 did not have, in the order in which they are added.
ADDED = tuple(
    (table, table.columns[name])
    for table, names in (
        (budget, ("rows_per_unit", "state", "stayed_amount", "stayed_delta", "unit_key", "key_sha256")),
        (entry, ("after",)),
    )
    for name in names
)

#: The columns of `budget` that each entry repeats as they stand after it; the end of the chain is the entry itself.
TERMS = tuple(
    sorted(column.name for column in budget.columns if column.name not in {"dataset", "entries", "head", "unit_key"})
)

#: The columns under an entry's hash: all but the hash itself and `prev`, which is hashed in front of them.
CHAINED = tuple(column.name for column in entry.columns if column.name not in {"prev", "hash"})


def chained(after: object) -> tuple[str, ...]:
    """The columns under the hash of an entry that ends with these terms: of tables 1, which had none, those of then."""
    return CHAINED if after != "" else tuple(name for name in CHAINED if name != "after")
