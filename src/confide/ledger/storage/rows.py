"""The statements that read and write a ledger's rows, the same on every database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from confide.errors import PlanError, ReleaseError
from confide.ledger.account import Account, terms_text
from confide.ledger.chain import BUDGET, ENTRY, GENESIS, SHARED, TERMS, canonical, row_hash
from confide.ledger.currency import ZERO, Price
from confide.ledger.records import Charge
from confide.ledger.storage.store import Connection

_BUDGET = f"SELECT {', '.join(BUDGET)} FROM budget WHERE dataset = ?"
_ENTRIES = f"SELECT {', '.join(ENTRY)} FROM entry WHERE dataset = ?"
_MOVE = f"UPDATE budget SET {', '.join(f'{column} = ?' for column in ('entries', 'tip', *TERMS))} WHERE dataset = ?"


def dataset_names(connection: Connection) -> tuple[str, ...]:
    """The datasets of a ledger, sorted here: each server has its own order of letters."""
    # a name that somebody changed into bytes is a name all the same
    return tuple(sorted(str(name) for (name,) in connection.execute("SELECT dataset FROM budget")))


def budget_row(connection: Connection, dataset: str, *, lock: bool = False) -> dict[str, Any] | None:
    """A dataset's row of `budget`. lock: until the end of the transaction; SQLite's has locked the whole file."""
    row = connection.execute(_BUDGET + (connection.for_update if lock else ""), (dataset,)).fetchone()
    return None if row is None else dict(zip(BUDGET, row, strict=True))


def chain_rows(connection: Connection, dataset: str) -> list[dict[str, Any]]:
    """All entries of a dataset, first to last."""
    found = connection.execute(f"{_ENTRIES} ORDER BY seq", (dataset,))
    return [dict(zip(ENTRY, row, strict=True)) for row in found]


def _one(connection: Connection, dataset: str, which: str, *values: Any) -> dict[str, Any] | None:
    """The first entry of a dataset that a condition finds."""
    row = connection.execute(f"{_ENTRIES} {which} LIMIT 1", (dataset, *values)).fetchone()
    return None if row is None else dict(zip(ENTRY, row, strict=True))


def first_charge(connection: Connection, dataset: str) -> dict[str, Any] | None:
    """The entry of a dataset's first charge."""
    return _one(connection, dataset, "AND kind = 'charge' ORDER BY seq")


def charge_of(connection: Connection, dataset: str, plan_sha256: str) -> int | None:
    """The seq of the first charge of a plan; None where it was never charged."""
    row = _one(connection, dataset, "AND kind = 'charge' AND plan_sha256 = ? ORDER BY seq", plan_sha256)
    return None if row is None else int(row["seq"])


def last_outputs(connection: Connection, dataset: str, plan_sha256: str) -> dict[str, Any] | None:
    """The latest entry on the stored outputs of a stream's version."""
    return _one(connection, dataset, "AND kind = 'outputs' AND plan_sha256 = ? ORDER BY seq DESC", plan_sha256)


def receipt_row(connection: Connection, dataset: str, release_sha256: str) -> dict[str, Any] | None:
    """The latest receipt of a release."""
    return _one(connection, dataset, "AND kind = 'receipt' AND release_sha256 = ? ORDER BY seq DESC", release_sha256)


def _insert(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def open_ledger(connection: Connection, account: Account, note: str) -> None:
    """The first entry of a dataset, and its row of `budget`."""
    told = account.terms()
    row = _entry(account, told, kind="open", note=note, price=account.limit, guarantee=told["guarantee"])
    end = {"entries": row["seq"], "tip": row["hash"], "unit_key": account.unit_key}
    _insert(connection, "budget", {"dataset": account.dataset, **told, **end})
    _insert(connection, "entry", row)


def append(
    connection: Connection, before: Account, after: Account | None = None, *, price: Price = ZERO, **columns: Any
) -> tuple[dict[str, Any], Account]:
    """Write the next entry, and move the terms and the tip with it; the entry, and the account with it.

    before: the account as it was read under the lock; after: its terms after the entry, the same when left out; price: of a
    charge, or a new limit. Should the lock have failed and another writer been faster, the insertion breaks on the tables'
    one successor for each entry.
    """
    terms = before if after is None else after
    told = terms.terms()
    row = _entry(before, told, price=price, **columns)
    _insert(connection, "entry", row)
    connection.execute(_MOVE, (row["seq"], row["hash"], *(told[column] for column in TERMS), before.dataset))
    return row, replace(terms, entries=row["seq"], tip=row["hash"])


def locked_account(connection: Connection, dataset: str) -> Account:
    """The account, read after the lock, as the end of its chain has it."""
    row = budget_row(connection, dataset, lock=True)
    if row is None:
        raise PlanError(f"there is no dataset {dataset!r} any more; Ledger.datasets(path) lists those that are there")
    return account_here(connection, row)


def account_here(connection: Connection, row: Mapping[str, Any]) -> Account:
    """The account of a row of `budget`, once the last entry of its chain says the same under its own hash.

    Raises `PlanError` when the row, or that entry, was changed by hand.
    """
    account, dataset = Account.of(row), row["dataset"]
    end = _one(connection, dataset, "ORDER BY seq DESC")
    if end is None or (end["seq"], end["hash"]) != (account.entries, account.tip):
        raise PlanError(
            f"the chain of dataset {dataset!r} does not end where its budget row says: the ledger was changed by hand; "
            "nothing was written; ledger.verify() lists what is wrong, and a backup restores it"
        )
    if not _as_written(row, end):
        raise PlanError(
            f"the totals, limits or terms of dataset {dataset!r} are not those under the hash of its last entry: the ledger was "
            "changed by hand; nothing was written; ledger.verify() lists what is wrong, and a backup restores it"
        )
    return account


def _as_written(row: Mapping[str, Any], end: Mapping[str, Any]) -> bool:
    """Whether the last entry has its hash and authenticates the row."""
    try:
        return (row_hash(end["prev"], end), terms_text(row)) == (end["hash"], end["after"])
    except (TypeError, ValueError, AttributeError):
        return False


def unpaid_charge(connection: Connection, dataset: str, charge: Charge) -> dict[str, Any]:
    """The entry of a charge that has no receipt yet; `ReleaseError` when it is not here or has one."""
    row = _one(connection, dataset, "AND seq = ? AND kind = 'charge'", charge.seq)
    if row is None or row["hash"] != charge.hash:
        raise ReleaseError(
            f"charge {charge.seq} is not in the ledger of dataset {dataset!r}", "give what ledger.charge returned"
        )
    taken = _one(connection, dataset, "AND charge_seq = ?", charge.seq)
    if taken is not None:
        raise ReleaseError(
            f"charge {charge.seq} of dataset {dataset!r} has a receipt already (entry {taken['seq']}); one charge pays for "
            "one release",
            "charge again with ledger.charge",
        )
    return row


def shared_columns(charge: Mapping[str, Any]) -> dict[str, Any]:
    """What a receipt repeats of its charge."""
    return {name: charge[name] for name in SHARED}


def _entry(before: Account, after: Mapping[str, Any], *, price: Price, **columns: Any) -> dict[str, Any]:
    """A whole row of `entry` after an account's last one, hashed; what is not given is empty."""
    prev = before.tip or GENESIS
    row: dict[str, Any] = {
        "dataset": before.dataset,
        "seq": before.entries + 1,
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "amount": price.amount,
        "delta": price.delta,
        "statements": "",
        "method": "",
        "title": "",
        "plan_sha256": "",
        "charge_seq": None,
        "release_sha256": "",
        "version": "",
        "note": "",
        "after": canonical(after),
        **columns,
    }
    return {**row, "prev": prev, "hash": row_hash(prev, row)}
