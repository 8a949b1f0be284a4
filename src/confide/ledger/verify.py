"""Go through a dataset's chain from its first entry and say everything that does not hold, as text, without raising.

Prices by what remains are checked by their certificates, not searched for again. The chain alone shows any change of an
entry. It cannot show that entries were cut from the end, or that an older copy of the file was put back, or that somebody
wrote the whole chain anew: for that, compare with receipts or tips kept elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from confide.errors import ConfideError, PlanError
from confide.guarantees import Guarantee
from confide.ledger.account import Account, amended_limit, fits_key
from confide.ledger.chain import (
    GENESIS,
    SHARED,
    canonical,
    charge_delta_of,
    guarantee_from_text,
    row_hash,
    statements_from_text,
)
from confide.ledger.currencies import currency_at, currency_of
from confide.ledger.currency import CURVE_SLACK, ZERO, Price
from confide.ledger.decision import recheck
from confide.ledger.records import Receipt, Verification

_HEAD = re.compile(r"[0-9a-f]{12,64}")


def checked_tip(tip: object) -> str:
    """A tip or a release's SHA-256 as it was kept, all of its digits or the first 12 and more; `PlanError` for what is none."""
    text = tip.strip().lower() if isinstance(tip, str) else ""
    if not _HEAD.fullmatch(text):
        raise PlanError(
            f"a tip is 64 hexadecimal digits, or the first 12 and more of them, got {tip!r}",
            "give it as it was kept: a line of confide ledger tip, or ledger.tip",
        )
    return text


def examine(
    dataset: str,
    budget: Mapping[str, Any] | None,
    rows: Sequence[Mapping[str, Any]],
    tips: Iterable[Receipt | str] = (),
    file_problems: Sequence[str] = (),
    outputs: Mapping[tuple[int, int], tuple[int, str]] | None = None,
) -> Verification:
    """The verification of one dataset from its raw rows, in order of seq. outputs: (charge, entry) -> (number, digest) of stored ones."""
    walk = _Walk(dataset, [f"the file: {line}" for line in file_problems])
    for number, row in enumerate(rows, start=1):
        walk.step(number, row)
    walk.compare(budget)
    if outputs is not None:
        walk.compare_outputs(outputs)
    for item in tips:
        walk.look_for(item)
    without_release = tuple(seq for seq in walk.charges if seq not in walk.paid)
    return Verification(not walk.problems, tuple(walk.problems), len(rows), str(walk.tip), without_release)


@dataclass
class _Walk:
    """The ledger as the chain tells it, entry by entry."""

    dataset: str
    problems: list[str]
    tip: str = GENESIS
    seq: int = 0
    account: Account | None = None
    charges: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    paid: dict[int, str] = field(default_factory=dict)
    receipts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    hashes: dict[str, int] = field(default_factory=dict)
    # (charge, plan) -> entry -> (how many it adds, their digest)
    outputs: dict[tuple[int, str], dict[int, tuple[int, str]]] = field(default_factory=dict)

    def step(self, number: int, row: Mapping[str, Any]) -> None:
        """One entry: its place, its hash, and what it says."""
        name = f"entry {row.get('seq')!r} of {self.dataset!r}"
        try:
            self._chain(number, row, name)
            kinds = {"open": self._open, "amend": self._amend, "charge": self._charge, "receipt": self._receipt}
            more = {"convert": self._convert, "outputs": self._outputs}
            read = (kinds | more).get(row["kind"])
            if read is None:
                self.problems.append(f"{name}: unknown kind {row['kind']!r}")
            else:
                read(row, name)
                self._terms(row, name)
        # Whatever stands in a file that somebody changed, the answer is a line of text: this is the one place where any
        # exception is one.
        except Exception as error:
            self.problems.append(f"{name}: cannot be read ({type(error).__name__})")

    def _chain(self, number: int, row: Mapping[str, Any], name: str) -> None:
        if row["seq"] != number:
            self.problems.append(f"{name}: expected entry {number}; entries are missing or were renumbered")
        if row["prev"] != self.tip:
            self.problems.append(f"{name}: does not follow the entry before it (its prev is not that entry's hash)")
        expected = None
        try:
            expected = row_hash(row["prev"], row)
        finally:
            if row["hash"] != expected:
                self.problems.append(f"{name}: was changed after it was written (its hash does not match)")
            self.tip, self.seq = row["hash"], number
            self.hashes[row["hash"]] = number

    def _terms(self, row: Mapping[str, Any], name: str) -> None:
        """What the entry says of the account after it, against the entries up to it."""
        if row["after"] != canonical(self._opened(name).terms()):
            self.problems.append(f"{name}: its totals are not what the entries up to it add up to")

    def _open(self, row: Mapping[str, Any], name: str) -> None:
        if row["seq"] != 1:
            self.problems.append(f"{name}: a ledger is opened once, by its first entry")
            return
        budget = guarantee_from_text(row["guarantee"])
        said = json.loads(row["after"])
        kind = currency_of(budget).name
        currency = currency_at(kind, said["state"])
        limit = Price(row["amount"], row["delta"])
        assert budget.relation is not None
        self.account = Account(
            self.dataset,
            currency,
            budget.relation,
            said["unit"],
            budget.trust,
            budget,
            limit,
            ZERO,
            1,
            self.tip,
            said["rows_per_unit"],
            key_sha256=said["key_sha256"],
        )
        self._limit(budget, limit, name)

    def _amend(self, row: Mapping[str, Any], name: str) -> None:
        account = self._opened(name)
        budget = guarantee_from_text(row["guarantee"])
        theirs = (type(budget).__name__, *_terms(budget))
        if theirs != (account.currency.name, *_terms(account.budget)):
            self.problems.append(f"{name}: the new budget {budget} is of another kind than the ledger")
        if not row["note"]:
            self.problems.append(f"{name}: no reason is given")
        limit = Price(row["amount"], row["delta"])
        first = next(iter(self.charges.values()), None)
        self._limit(budget, limit, name, amended_limit(account, budget, first))
        self.account = replace(account, budget=budget, limit=limit)

    def _convert(self, row: Mapping[str, Any], name: str) -> None:
        account, limit = self._opened(name), Price(row["amount"], row["delta"])
        self.account = account.converted()
        self._limit(account.budget, limit, name)
        self.account = replace(self.account, limit=limit)

    def _limit(self, budget: Guarantee, limit: Price, name: str, due: Price | None = None) -> None:
        account = self._opened(name)
        due = account.currency.limit_after(budget, account.stayed) if due is None else due
        slack = due.amount * CURVE_SLACK + 1 if account.currency.state == "gaussian" else 0
        if due.delta != limit.delta or abs(due.amount - limit.amount) > slack:
            self.problems.append(f"{name}: the limit is not that of the budget {budget}")

    def _charge(self, row: Mapping[str, Any], name: str) -> None:
        self.charges[row["seq"]] = row
        account = self._opened(name)
        price = Price(row["amount"], row["delta"])
        statement, offered = guarantee_from_text(row["guarantee"]), statements_from_text(row["statements"])
        if statement not in offered:
            self.problems.append(
                f"{name}: the charged statement {statement} is not among those that the release offered"
            )
        try:
            wrong = recheck(account, offered, statement, charge_delta_of(row["note"]), price)
            self.problems += [f"{name}: {line}" for line in wrong]
        except ConfideError as error:
            self.problems.append(f"{name}: {error}")
        self.account = account.charged(price)

    def _receipt(self, row: Mapping[str, Any], name: str) -> None:
        self.receipts[row["release_sha256"]] = row
        charge = self.charges.get(row["charge_seq"])
        if charge is None:
            self.problems.append(f"{name}: names charge {row['charge_seq']!r}, which is not before it")
            return
        if row["charge_seq"] in self.paid:
            self.problems.append(f"{name}: charge {row['charge_seq']} has a receipt already")
        self.paid[row["charge_seq"]] = row["release_sha256"]
        for column in SHARED:
            if row[column] != charge[column]:
                self.problems.append(f"{name}: its {column} is not that of charge {row['charge_seq']}")
        if (row["amount"], row["delta"]) != (0, 0):
            self.problems.append(f"{name}: a receipt has a price")

    def _outputs(self, row: Mapping[str, Any], name: str) -> None:
        plan = row["plan_sha256"]
        charge = next((seq for seq, one in self.charges.items() if one["plan_sha256"] == plan), None)
        if charge is None:
            self.problems.append(f"{name}: stores outputs of a stream that no entry before it paid for")
            return
        told = self.outputs.setdefault((charge, plan), {})
        added = int(row["note"]) - sum(count for count, _ in told.values())
        if added <= 0:
            self.problems.append(f"{name}: says of fewer outputs than an entry before it")
        if (row["amount"], row["delta"]) != (0, 0):
            self.problems.append(f"{name}: stored outputs have a price")
        told[row["seq"]] = added, row["release_sha256"]

    def compare_outputs(self, stored: Mapping[tuple[int, int], tuple[int, str]]) -> None:
        """The stored outputs of streams against the entries on each."""
        left = dict(stored)
        for (charge, plan), told in self.outputs.items():
            found = {seq: left.pop((charge, seq), (0, "")) for seq in told}
            there, count = (sum(one for one, _ in which.values()) for which in (found, told))
            if there != count:
                self.problems.append(
                    f"dataset {self.dataset!r}: the stream {plan[:12]} has {there:,} stored outputs, and the chain says {count:,}"
                )
            elif found != told:
                self.problems.append(
                    f"dataset {self.dataset!r}: a stored output of the stream {plan[:12]}, or its id, was changed after it was published"
                )
        if left:
            count = sum(one for one, _ in left.values())
            self.problems.append(f"dataset {self.dataset!r}: no entry tells of {count:,} stored outputs")

    def _opened(self, name: str) -> Account:
        if self.account is None:
            raise LookupError(f"{name}: no entry opens the ledger")
        return self.account

    def compare(self, budget: Mapping[str, Any] | None) -> None:
        """The running totals against the chain."""
        if budget is None:
            self.problems.append(f"dataset {self.dataset!r} has no budget row")
            return
        if self.account is None:
            self.problems.append(f"dataset {self.dataset!r}: no entry opens the ledger; entries are missing")
            return
        told = {**self.account.terms(), "entries": self.seq, "tip": self.tip}
        if not fits_key(budget["unit_key"], self.account.key_sha256):
            self.problems.append(f"dataset {self.dataset!r}: the key of its unit is not the one that the chain names")
        for column, value in told.items():
            if budget[column] != value or type(budget[column]) is not type(value):
                self.problems.append(
                    f"dataset {self.dataset!r}: {column} in the budget row is not what the chain adds up to"
                )

    def look_for(self, item: Receipt | str) -> None:
        """A receipt, a tip or a release's SHA-256 that was kept elsewhere must be in this chain."""
        lost = (
            "entries were cut from the end, an older copy was put back, or the chain was written anew; "
            "do not charge this ledger, restore the newest copy"
        )
        if isinstance(item, str):
            known = [digest for digest in {*self.hashes, *self.receipts} if str(digest).startswith(item)]
            if not known:
                self.problems.append(f"{item} is neither a tip nor a release of dataset {self.dataset!r}: {lost}")
            elif len(known) > 1:
                self.problems.append(
                    f"{item} begins {len(known)} tips and releases of dataset {self.dataset!r}: give more digits"
                )
            return
        if item.dataset != self.dataset:
            self.problems.append(
                f"the receipt of release {item.release_sha256} is of dataset {item.dataset!r}, not {self.dataset!r}"
            )
        elif self.hashes.get(item.tip) != item.seq:
            self.problems.append(
                f"the receipt of release {item.release_sha256} (entry {item.seq}) is not in dataset "
                f"{self.dataset!r}: {lost}"
            )


def _terms(budget: Guarantee) -> tuple[str | None, str, str]:
    return budget.relation, budget.unit, budget.trust
