"""Go through a dataset's chain from its first entry and say everything that does not hold, as text, without raising.

The chain alone shows any change of an entry. It cannot show that entries were cut from the end, or that an older
copy of the file was put back, or that somebody wrote the whole chain anew: for that, compare with receipts or heads
kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from confide.errors import BudgetExceeded, ConfideError
from confide.guarantees import Guarantee, TradeOff
from confide.ledger.account import Account
from confide.ledger.chain import GENESIS, charge_delta_of, guarantee_from_text, row_hash, statements_from_text
from confide.ledger.currency import Currency, checked_delta, currency_of
from confide.ledger.decision import choose
from confide.ledger.records import Receipt, Verification
from confide.ledger.rows import SHARED
from confide.ledger.units import ZERO, Price

__all__ = ["examine"]

# A price through a curve may differ in its last digits between versions of the numerical library; the mu of a trade-off
# function is found to 1e-3 of itself, rounded up.
_CURVE = Fraction(1, 10**8)
_SEARCH = Fraction(1, 400)


def examine(
    dataset: str,
    budget: Mapping[str, Any] | None,
    rows: Sequence[Mapping[str, Any]],
    heads: Iterable[Receipt | str] = (),
    file_problems: Sequence[str] = (),
) -> Verification:
    """The verification of one dataset from its raw rows, in order of seq."""
    walk = _Walk(dataset, [f"the file: {line}" for line in file_problems])
    for number, row in enumerate(rows, start=1):
        walk.step(number, row)
    walk.compare(budget)
    for item in heads:
        walk.look_for(item)
    unfinished = tuple(seq for seq in walk.charges if seq not in walk.paid)
    return Verification(not walk.problems, tuple(walk.problems), len(rows), str(walk.head), unfinished)


@dataclass
class _Walk:
    """The book as the chain tells it, entry by entry."""

    dataset: str
    problems: list[str]
    head: str = GENESIS
    seq: int = 0
    account: Account | None = None
    budget_text: str = ""
    charges: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    paid: dict[int, str] = field(default_factory=dict)
    receipts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    hashes: dict[str, int] = field(default_factory=dict)

    def step(self, number: int, row: Mapping[str, Any]) -> None:
        """One entry: its place, its hash, and what it says."""
        name = f"entry {row.get('seq')!r} of {self.dataset!r}"
        try:
            self._chain(number, row, name)
            read = {"open": self._open, "amend": self._amend, "charge": self._charge, "receipt": self._receipt}.get(
                row["kind"]
            )
            if read is None:
                self.problems.append(f"{name}: unknown kind {row['kind']!r}")
            else:
                read(row, name)
        # Whatever stands in a file that somebody changed, the answer is a line of text: this is the one place where any
        # exception is one.
        except Exception as error:
            self.problems.append(f"{name}: cannot be read ({type(error).__name__})")

    def _chain(self, number: int, row: Mapping[str, Any], name: str) -> None:
        if row["seq"] != number:
            self.problems.append(f"{name}: expected entry {number}; entries are missing or were renumbered")
        if row["prev"] != self.head:
            self.problems.append(f"{name}: does not follow the entry before it (its prev is not that entry's hash)")
        expected = None
        try:
            expected = row_hash(row["prev"], row)
        finally:
            if row["hash"] != expected:
                self.problems.append(f"{name}: was changed after it was written (its hash does not match)")
            self.head, self.seq = row["hash"], number
            self.hashes[row["hash"]] = number

    def _open(self, row: Mapping[str, Any], name: str) -> None:
        if row["seq"] != 1:
            self.problems.append(f"{name}: a book is opened once, by its first entry")
            return
        budget = guarantee_from_text(row["guarantee"])
        currency = currency_of(budget)
        limit = Price(row["amount"], row["delta"])
        self._limit(currency, budget, limit, name)
        assert budget.relation is not None
        self.budget_text = row["guarantee"]
        self.account = Account(
            self.dataset, currency, budget.relation, budget.unit, budget.trust, budget, limit, ZERO, 1, self.head
        )

    def _amend(self, row: Mapping[str, Any], name: str) -> None:
        account = self._opened(name)
        budget = guarantee_from_text(row["guarantee"])
        if currency_of(budget) is not account.currency or _terms(budget) != (
            account.relation,
            account.unit,
            account.trust,
        ):
            self.problems.append(f"{name}: the new budget {budget} is of another kind than the book")
        if not row["note"]:
            self.problems.append(f"{name}: no reason is given")
        limit = Price(row["amount"], row["delta"])
        self._limit(account.currency, budget, limit, name)
        self.budget_text = row["guarantee"]
        self.account = replace(account, budget=budget, limit=limit)

    def _limit(self, currency: Currency, budget: Guarantee, limit: Price, name: str) -> None:
        if currency.limit(budget) != limit:
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
        delta = charge_delta_of(row["note"])
        if not _priced(account.currency, statement, delta, price):
            self.problems.append(f"{name}: the price is not that of {statement}")
        try:
            chosen = choose(account, offered, delta)
            if chosen.statement != statement:
                self.problems.append(f"{name}: was charged as {statement}, where {chosen.statement} was due")
        except BudgetExceeded:
            self.problems.append(f"{name}: the charge {statement} did not fit what was left of {account.budget}")
        except ConfideError as error:
            self.problems.append(f"{name}: {error}")
        self.account = replace(account, spent=account.spent + price)

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

    def _opened(self, name: str) -> Account:
        if self.account is None:
            raise LookupError(f"{name}: no entry opens the book")
        return self.account

    def compare(self, budget: Mapping[str, Any] | None) -> None:
        """The running totals against the chain."""
        if budget is None:
            self.problems.append(f"dataset {self.dataset!r} has no budget row")
            return
        if self.account is None:
            self.problems.append(f"dataset {self.dataset!r}: no entry opens the book; entries are missing")
            return
        told = {**_as_told(self.account), "guarantee": self.budget_text, "entries": self.seq, "head": self.head}
        for column, value in told.items():
            if budget[column] != value or type(budget[column]) is not type(value):
                self.problems.append(
                    f"dataset {self.dataset!r}: {column} in the budget row is not what the chain adds up to"
                )

    def look_for(self, item: Receipt | str) -> None:
        """A receipt, a head or a release's SHA-256 that was kept elsewhere must be in this chain."""
        lost = (
            "entries were cut from the end, an older copy was put back, or the chain was written anew; "
            "do not charge this book, restore the newest copy"
        )
        if isinstance(item, str):
            if item not in self.hashes and item not in self.receipts:
                self.problems.append(f"{item} is neither a head nor a release of dataset {self.dataset!r}: {lost}")
            return
        if item.dataset != self.dataset:
            self.problems.append(
                f"the receipt of release {item.release_sha256} is of dataset {item.dataset!r}, not {self.dataset!r}"
            )
        elif self.hashes.get(item.head) != item.seq:
            self.problems.append(
                f"the receipt of release {item.release_sha256} (entry {item.seq}) is not in dataset "
                f"{self.dataset!r}: {lost}"
            )


def _terms(budget: Guarantee) -> tuple[str | None, str, str]:
    return budget.relation, budget.unit, budget.trust


def _priced(currency: Currency, statement: Guarantee, delta: float | None, price: Price) -> bool:
    due = currency.price(currency.counted(statement, checked_delta(delta)))
    if currency.exact(statement):
        return price == due
    most = _SEARCH if isinstance(statement, TradeOff) else _CURVE
    return price.delta == due.delta and abs(price.amount - due.amount) <= 1 + due.amount * most


def _as_told(account: Account) -> dict[str, Any]:
    return {
        "currency": account.currency.name,
        "relation": account.relation,
        "unit": account.unit,
        "trust": account.trust,
        "limit_amount": account.limit.amount,
        "limit_delta": account.limit.delta,
        "spent_amount": account.spent.amount,
        "spent_delta": account.spent.delta,
    }
