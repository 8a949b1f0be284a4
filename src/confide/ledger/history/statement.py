"""The statement of account: what `show` says of a dataset, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confide.errors import PlanError
from confide.ledger.account import Account
from confide.ledger.counting.pair_ledger import PAIR
from confide.ledger.counting.units import ZERO, Price
from confide.ledger.history.chain import guarantee_from_text
from confide.ledger.records import Entry, LedgerState

__all__ = ["statement_of_account"]


def statement_of_account(account: Account, rows: Sequence[Mapping[str, Any]]) -> LedgerState:
    """The statement of a dataset from its account and its chain; `PlanError` when an entry was damaged."""
    try:
        entries = _entries(account, rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PlanError(
            f"an entry of dataset {account.dataset!r} is damaged ({type(error).__name__}); ledger.verify() lists what "
            "is wrong"
        ) from None
    currency, left = account.currency, account.currency.remaining(account.limit, account.spent)
    return LedgerState(
        dataset=account.dataset,
        currency=currency.name,
        relation=account.relation,
        unit=account.unit,
        rows_per_unit=account.rows_per_unit,
        state=account.currency.state,
        trust=account.trust,
        budget=account.budget,
        spent=_spent(account, rows),
        remaining=currency.text(left),
        units={
            "limit_amount": account.limit.amount,
            "limit_delta": account.limit.delta,
            "spent_amount": account.spent.amount,
            "spent_delta": account.spent.delta,
            "remaining_amount": left.amount,
            "remaining_delta": left.delta,
        },
        unfinished=sum(entry.status == "unfinished" for entry in entries),
        head=account.head,
        rows=entries,
        enforced=account.enforced,
    )


def _spent(account: Account, rows: Sequence[Mapping[str, Any]]) -> str:
    """The total, and how a budget came to be used up beyond its own count."""
    text = account.currency.standing(account.limit, account.spent)
    if account.stayed != ZERO:
        text += f", after {PAIR.text(account.stayed)} as pairs, before it was converted"
    if account.currency.fits(account.limit, account.spent):
        return text
    charges = [row for row in rows if row["kind"] == "charge"]
    alone = guarantee_from_text(charges[0]["guarantee"]) if len(charges) == 1 else None
    if alone is not None and account.currency.covers(account.budget, alone):
        return f"{text}, by one release: {alone} is within {account.budget}"
    return f"{text}, and more: it was amended to less than was spent by then"


def _note(row: Mapping[str, Any]) -> str:
    if row["kind"] == "receipt":
        return f"release {row['release_sha256']} of charge {row['charge_seq']}"
    return f"{row['note']} stored outputs of a stream" if row["kind"] == "outputs" else str(row["note"])


def _entries(account: Account, rows: Sequence[Mapping[str, Any]]) -> tuple[Entry, ...]:
    released = {row["charge_seq"]: row["release_sha256"] for row in rows if row["kind"] == "receipt"}
    # prices before a conversion are pairs, those after it mu^2 and delta
    turns = [row["seq"] for row in rows if row["kind"] == "convert"]
    spent, found = ZERO, []
    for row in rows:
        kind, price = row["kind"], Price(row["amount"], row["delta"])
        currency = PAIR if turns and row["seq"] < turns[0] else account.currency
        if kind == "convert":
            spent = ZERO
        if kind == "charge":
            spent = spent + price
        found.append(
            Entry(
                seq=row["seq"],
                time=row["time"],
                kind=kind,
                guarantee=str(guarantee_from_text(row["guarantee"])),
                amount=currency.text(price) if kind in ("charge", "convert") else "",
                spent=currency.text(spent),
                status=("released" if row["seq"] in released else "unfinished") if kind == "charge" else "",
                method=row["method"],
                plan_sha256=row["plan_sha256"],
                note=_note(row),
                hash=row["hash"],
            )
        )
    return tuple(found)
