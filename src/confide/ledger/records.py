"""What a ledger hands out: charges, receipts, the statement of account, the outcome of a verification. All is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from confide._text import as_html
from confide.errors import ReleaseError
from confide.guarantees import Guarantee
from confide.protocol.serialization.codec import decode, encode

__all__ = ["Charge", "Entry", "LedgerState", "Quote", "Receipt", "Verification"]


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

    seq: the receipt's own place in the chain; charge_seq: the charge's; head: the head of the chain with this
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
    head: str

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
    head: str
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
        head = [
            f"Dataset {self.dataset}: budget {self.budget}; {self.relation}, {self.whose}, trust {self.trust}",
            f"spent      {self.spent}",
            f"left       {self.remaining}",
            f"unfinished {self.unfinished} (charged, but no release was recorded; never refunded)",
            f"head       {self.head}",
            "",
            f"{'seq':>5}  {'time':<20}  {'kind':<8}  {'status':<10}  {'guarantee':<34}  what",
        ]
        lines = [
            f"{row.seq:>5}  {row.time[:19] + 'Z':<20}  {row.kind:<8}  {row.status:<10}  {row.guarantee:<34}  "
            f"{' '.join(filter(None, (row.method, row.note)))}"
            for row in self.rows
        ]
        return "\n".join([*head, *(line.rstrip() for line in lines)])


@dataclass(frozen=True)
class Verification:
    """What `verify` found: `ok`, the problems as text, how many entries there are, the head, the unfinished charges."""

    ok: bool
    problems: tuple[str, ...]
    rows: int
    head: str
    unfinished: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.ok:
            return f"ok: {self.rows} entries, head {self.head}, {len(self.unfinished)} unfinished"
        return "\n".join((f"{len(self.problems)} problem(s) in {self.rows} entries:", *self.problems))
