"""What a ledger hands out: charges, receipts, the statement of account, the outcome of a verification. All is public.

The statement of account: what `show` says of a dataset, entry by entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from confide._helpers import as_html
from confide.core.codec import decode, encode
from confide.errors import PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.ledger.account import Account
from confide.ledger.chain import guarantee_from_text
from confide.ledger.currencies import PAIR
from confide.ledger.currency import ZERO, Price


@dataclass(frozen=True)
class Charge:
    """A charge that is on disk: its place in the chain, the statement that was charged, its hash, UTC time."""

    seq: int
    statement: Guarantee
    hash: str
    time: str


@dataclass(frozen=True)
class Quote:
    """What a charge would cost as the ledger stands, before it is made.

    statement: the one of the release that would be charged; price, before, after: its price and what is left, as text in the ledger's own
    currency; last: nothing fits any more afterwards; note: what the reader may not expect, or nothing.
    """

    statement: Guarantee
    price: str
    before: str
    after: str
    last: bool
    note: str

    def __str__(self) -> str:
        end = "nothing: this release takes all that is left" if self.last else self.after
        return f"{self.statement} counts as {self.price}; left before: {self.before}; left after: {end}"


@dataclass(frozen=True)
class Receipt:
    """What a release was paid with. Kept away from the ledger, it tells when an older copy is put back.

    seq: the receipt's own place in the chain; charge_seq: the charge's; tip: the tip of the chain with this
    receipt in it.
    """

    dataset: str
    seq: int
    charge_seq: int
    release_sha256: str
    method: str
    plan_sha256: str
    guarantee: Guarantee
    time: str
    version: str
    tip: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return encode(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Receipt:
        """The inverse of `to_dict`; `ReleaseError` when fields are missing or of another kind."""
        try:
            return decode(cls, data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ReleaseError(
                f"this is no receipt: it needs the fields {', '.join(f.name for f in fields(cls))}; give what "
                "receipt.to_dict() wrote"
            ) from None


@dataclass(frozen=True)
class Entry:
    """One line of the statement of account.

    kind: "open", "charge", "receipt", "amend", "convert" or "outputs". amount: what was charged, or what it was converted to, as
    text; status: of a charge, "released" or "unfinished"; note: the note of open, the reason of amend and convert, the release's
    SHA-256 of a receipt, how many outputs a stream has.
    """

    seq: int
    time: str
    kind: str
    guarantee: str
    amount: str
    spent: str
    status: str
    method: str
    plan_sha256: str
    note: str
    hash: str


@dataclass(frozen=True)
class LedgerState:
    """A statement of account: the terms, the budget, what is spent and left, and every entry.

    unit, rows_per_unit: to what it is pinned; enforced: whether schemas enforce the unit;
    state: of an (epsilon, delta) ledger, "pair" or "gaussian" once it is converted, "" for other currencies.
    Totals come as text in the reader's numbers and, in `units`, as whole numbers (mu^2, rho or epsilon in 2^-40, delta in 2^-60).
    """

    dataset: str
    currency: str
    relation: str
    unit: str
    rows_per_unit: int
    state: str
    trust: str
    budget: Guarantee
    spent: str
    remaining: str
    units: Mapping[str, int]
    unfinished: int
    tip: str
    rows: tuple[Entry, ...]
    enforced: bool = False

    @property
    def whose(self) -> str:
        """What is protected, in words."""
        if self.enforced:
            return f"unit {self.unit} with all its rows (enforced)"
        return f"unit {self.unit} of at most {self.rows_per_unit} row{'s' if self.rows_per_unit > 1 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return encode(self)

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __str__(self) -> str:
        tip = [
            f"Dataset {self.dataset}: budget {self.budget}; {self.relation}, {self.whose}, trust {self.trust}",
            f"spent      {self.spent}",
            f"left       {self.remaining}",
            f"unfinished {self.unfinished} (charged, but no release was recorded; never refunded)",
            f"tip       {self.tip}",
            "",
            f"{'seq':>5}  {'time':<20}  {'kind':<8}  {'status':<10}  {'guarantee':<34}  what",
        ]
        lines = [
            f"{row.seq:>5}  {row.time[:19] + 'Z':<20}  {row.kind:<8}  {row.status:<10}  {row.guarantee:<34}  "
            f"{' '.join(filter(None, (row.method, row.note)))}"
            for row in self.rows
        ]
        return "\n".join([*tip, *(line.rstrip() for line in lines)])


@dataclass(frozen=True)
class Verification:
    """What `verify` found: `ok`, the problems as text, how many entries there are, the tip, the unfinished charges."""

    ok: bool
    problems: tuple[str, ...]
    rows: int
    tip: str
    unfinished: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.ok:
            return f"ok: {self.rows} entries, tip {self.tip}, {len(self.unfinished)} unfinished"
        return "\n".join((f"{len(self.problems)} problem(s) in {self.rows} entries:", *self.problems))


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
        tip=account.tip,
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
