"""The statements that read and write a book's rows, the same on every database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from confide.errors import PlanError, ReleaseError
from confide.ledger.account import Account
from confide.ledger.chain import GENESIS, guarantee_to_text, row_hash
from confide.ledger.records import Charge
from confide.ledger.tables import budget as budgets
from confide.ledger.tables import entry as entries
from confide.ledger.units import ZERO, Price

__all__ = [
    "SHARED",
    "append",
    "budget_row",
    "chain_rows",
    "dataset_names",
    "locked_account",
    "open_book",
    "receipt_row",
    "shared_columns",
    "terms_of",
    "unpaid_charge",
]


#: The columns in which a receipt equals its charge.
SHARED = ("guarantee", "statements", "method", "plan_sha256")


def dataset_names(connection: Connection) -> tuple[str, ...]:
    """The datasets of a book, sorted here: each server has its own order of letters."""
    return tuple(sorted(connection.execute(select(budgets.c.dataset)).scalars(), key=str))


def budget_row(connection: Connection, dataset: str, *, lock: bool = False) -> dict[str, Any] | None:
    """A dataset's row of `budget`. FOR UPDATE says nothing to SQLite, whose transaction has locked the whole file."""
    query = select(budgets).where(budgets.c.dataset == dataset)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    return None if row is None else dict(row)


def chain_rows(connection: Connection, dataset: str) -> list[dict[str, Any]]:
    """All entries of a dataset, first to last."""
    query = select(entries).where(entries.c.dataset == dataset).order_by(entries.c.seq)
    return [dict(row) for row in connection.execute(query).mappings()]


def receipt_row(connection: Connection, dataset: str, release_sha256: str) -> dict[str, Any] | None:
    """The latest receipt of a release."""
    query = select(entries).where(entries.c.dataset == dataset, entries.c.kind == "receipt")
    query = query.where(entries.c.release_sha256 == release_sha256).order_by(entries.c.seq.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else dict(row)


def open_book(connection: Connection, account: Account, note: str) -> None:
    """The first entry of a dataset, and its row of `budget`."""
    terms = terms_of(account)
    row = _entry(account, kind="open", note=note, **_as_price(account.limit), guarantee=terms["guarantee"])
    connection.execute(
        insert(budgets).values(
            dataset=account.dataset,
            currency=account.currency.name,
            relation=account.relation,
            unit=account.unit,
            trust=account.trust,
            spent_amount=0,
            spent_delta=0,
            entries=row["seq"],
            head=row["hash"],
            **terms,
        )
    )
    connection.execute(insert(entries).values(row))


def append(
    connection: Connection, before: Account, *, price: Price = ZERO, budget: Account | None = None, **columns: Any
) -> dict[str, Any]:
    """Write the next entry, and move the running totals and the head with it.

    before: the account as it was read under the lock; price: of a charge; budget: the amended account. Should the lock
    have failed and another writer been faster, the insertion breaks on the tables' one successor for each entry.
    """
    amounts = _as_price(price if budget is None else budget.limit)
    row = _entry(before, **amounts, **columns)
    connection.execute(insert(entries).values(row))
    spent = before.spent + price
    connection.execute(
        update(budgets)
        .where(budgets.c.dataset == before.dataset)
        .values(
            spent_amount=spent.amount,
            spent_delta=spent.delta,
            entries=row["seq"],
            head=row["hash"],
            **({} if budget is None else terms_of(budget)),
        )
    )
    return row


def locked_account(connection: Connection, dataset: str) -> Account:
    """The account, read after the lock, with the end of its chain where the account says."""
    row = budget_row(connection, dataset, lock=True)
    if row is None:
        raise PlanError(f"there is no dataset {dataset!r} any more; Ledger.datasets(path) lists those that are there")
    account = Account.of(row)
    last = select(entries.c.seq, entries.c.hash).where(entries.c.dataset == dataset)
    end = connection.execute(last.order_by(entries.c.seq.desc()).limit(1)).first()
    if end is None or tuple(end) != (account.entries, account.head):
        raise PlanError(
            f"the chain of dataset {dataset!r} does not end where its budget row says: the book was changed by hand; "
            "nothing was written; book.verify() lists what is wrong, and a backup restores it"
        )
    return account


def unpaid_charge(connection: Connection, dataset: str, charge: Charge) -> dict[str, Any]:
    """The entry of a charge that has no receipt yet; `ReleaseError` when it is not here or has one."""
    here = entries.c.dataset == dataset
    query = select(entries).where(here, entries.c.seq == charge.seq, entries.c.kind == "charge")
    row = connection.execute(query).mappings().first()
    if row is None or row["hash"] != charge.hash:
        raise ReleaseError(
            f"charge {charge.seq} is not in the book of dataset {dataset!r}; give what book.charge returned"
        )
    taken = connection.execute(select(entries.c.seq).where(here, entries.c.charge_seq == charge.seq)).scalar()
    if taken is not None:
        raise ReleaseError(
            f"charge {charge.seq} of dataset {dataset!r} has a receipt already (entry {taken}); one charge pays for "
            "one release; charge again with book.charge"
        )
    return dict(row)


def shared_columns(charge: Mapping[str, Any]) -> dict[str, Any]:
    """What a receipt repeats of its charge."""
    return {name: charge[name] for name in SHARED}


def terms_of(account: Account) -> dict[str, Any]:
    """The columns of `budget` that an amendment changes."""
    return {
        "guarantee": guarantee_to_text(account.budget),
        "limit_amount": account.limit.amount,
        "limit_delta": account.limit.delta,
    }


def _as_price(price: Price) -> dict[str, int]:
    return {"amount": price.amount, "delta": price.delta}


def _entry(before: Account, **columns: Any) -> dict[str, Any]:
    """A whole row of `entry` after an account's last one, hashed; what is not given is empty."""
    prev = before.head or GENESIS
    row: dict[str, Any] = {
        "dataset": before.dataset,
        "seq": before.entries + 1,
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        "statements": "",
        "method": "",
        "plan_sha256": "",
        "charge_seq": None,
        "release_sha256": "",
        "version": "",
        "note": "",
        **columns,
    }
    return {**row, "prev": prev, "hash": row_hash(prev, row)}
