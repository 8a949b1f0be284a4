"""The moves of a ledger beside a charge: opening, converting; and what its rows say as values."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from confide.errors import PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.ledger.account import Account
from confide.ledger.counting.currencies import currency_of
from confide.ledger.counting.units import ZERO
from confide.ledger.history.chain import GENESIS, guarantee_from_text, guarantee_to_text
from confide.ledger.pins import check_unit
from confide.ledger.records import Receipt
from confide.ledger.storage import rows

__all__ = [
    "as_converted",
    "check_same_terms",
    "opened_account",
    "receipt_of",
    "taken_words",
    "write_conversion",
]

# Units that no id column tells: a row, and an attribute of one under local trust.
_BARE = ("record", "attribute")


def opened_account(
    dataset: str, budget: Guarantee, unit: str | None, rows_per_unit: int | None, grants: str | None
) -> Account:
    """The account of a dataset before its first entry.

    A unit whose rows are not declared is one that schemas enforce: it gets its key here.
    """
    currency = currency_of(budget)
    # a row that carries its own noise hides its values, not that it is there
    full = budget if budget.complete else budget.resolve("substitute" if budget.trust == "local" else "add-remove")
    whose = full.unit if unit is None else unit
    enforced = rows_per_unit is None and whose not in _BARE
    rows_per_unit = 1 if rows_per_unit is None else rows_per_unit
    check_unit(whose, rows_per_unit)
    if enforced:
        if full.unit not in ("record", whose):
            raise PrivacyError(f"the ledger's unit is {whose!r} and its budget's {full.unit!r}; give one of them")
        full = replace(full, unit=whose)
    key = secrets.token_bytes(32) if enforced else b""
    if grants not in (None, "gaussian"):
        raise PlanError(
            f"grants must be 'gaussian' or left out, got {grants!r}; write grants='gaussian' to convert an (epsilon, delta) budget at once"
        )
    new = Account(
        dataset,
        currency,
        full.relation or "",
        whose,
        full.trust,
        full,
        currency.limit(full),
        ZERO,
        0,
        GENESIS,
        rows_per_unit,
        key_sha256=hashlib.sha256(key).hexdigest() if enforced else "",
        unit_key=key.hex(),
    )
    return new if grants is None else new.converted()


def as_converted(account: Account) -> Account:
    """The account as a charge with convert=True finds it: converted, if it is not."""
    return account if account.currency.state == "gaussian" else account.converted()


def write_conversion(connection: Connection, account: Account, reason: str) -> Account:
    after = account.converted()
    _, account = rows.append(
        connection,
        account,
        after,
        price=after.limit,
        kind="convert",
        guarantee=guarantee_to_text(account.budget),
        note=reason,
    )
    return account


def taken_words(account: Account, new: Account, name: str, target: str) -> str:
    """Why a data set's budget in a ledger is not opened again, and what works: on the same terms that one, on others a ledger beside it."""
    taken = f"dataset {account.dataset!r} has a budget in {name} already, and a budget is never overwritten"
    use = f"use it: Ledger.open({target!r}, dataset={account.dataset!r})"
    apart = [
        f"{mine}, not {theirs}" for mine, theirs in zip(_terms(account), _terms(new), strict=True) if mine != theirs
    ]
    if not apart:
        return f"{taken}; {use}; change it: ledger.amend(budget, reason='...')"
    file = Path(target)
    beside = "OTHER_LEDGER" if "://" in target else str(file.with_stem(f"{file.stem}-{_file_name(account, new)}"))
    whose = "" if new.unit in _BARE and new.rows_per_unit == 1 else f", unit={new.unit!r}"
    rows_of = "" if new.enforced or not whose else f", rows_per_unit={new.rows_per_unit}"
    return (
        f"{taken}; it counts {'; '.join(apart)}; {use}, or open this one in a ledger of its own: Ledger.create({beside!r}, "
        f"dataset={account.dataset!r}, budget={new.budget!r}{whose}{rows_of}) (two ledgers on the same records add up, unseen)"
    )


def _terms(account: Account) -> tuple[str, ...]:
    """What is for good, in words."""
    rows_of = "with all its rows" if account.enforced else f"of at most {account.rows_per_unit} row(s)"
    return (
        f"what one {account.unit} {rows_of} may lose",
        f"in {account.currency.name}",
        f"relation {account.relation}",
        f"trust {account.trust}",
    )


def _file_name(account: Account, new: Account) -> str:
    """What tells a ledger from the one beside it: its unit, where that is another and can stand in a file's name."""
    return new.unit if new.unit != account.unit and re.fullmatch(r"[\w.-]{1,40}", new.unit) else "other"


def check_same_terms(account: Account, budget: Guarantee) -> None:
    mine = (account.currency.name, account.relation, account.budget.unit, account.trust)
    theirs = (type(budget).__name__, budget.relation, budget.unit, budget.trust)
    if mine != theirs:
        raise PrivacyError(
            f"dataset {account.dataset!r} is counted in {mine[0]} with relation={mine[1]!r}, unit={account.unit!r}, "
            f"trust={mine[3]!r} for good; the budget {budget} is not; an amendment changes the size only: "
            f"ledger.amend({mine[0]}(...), reason='...')"
        )


def receipt_of(row: Mapping[str, Any]) -> Receipt:
    try:
        guarantee = guarantee_from_text(row["guarantee"])
    except (KeyError, TypeError, ValueError):
        raise PlanError(
            f"receipt {row['seq']} of dataset {row['dataset']!r} is damaged; ledger.verify() lists what is wrong"
        ) from None
    return Receipt(
        dataset=row["dataset"],
        seq=row["seq"],
        charge_seq=row["charge_seq"],
        release_sha256=row["release_sha256"],
        method=row["method"],
        plan_sha256=row["plan_sha256"],
        guarantee=guarantee,
        time=row["time"],
        version=row["version"],
        head=row["hash"],
    )
