"""What a ledger hands out: charges, receipts, the state of a dataset entry by entry, the outcome of a verification. All is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from confide._helpers import as_html
from confide.core.codec import decode, encode
from confide.errors import PlanError, ReleaseError
from confide.guarantees import Guarantee
from confide.guarantees.plain_words import plain_words
from confide.ledger.account import Account
from confide.ledger.chain import guarantee_from_text
from confide.ledger.currencies import PAIR
from confide.ledger.currency import ZERO, Price
from confide.ledger.printing import left, percent, summary


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

    Attributes
    ----------
    statement : Guarantee
        The guarantee of the release that would be charged.
    price, before, after : str
        The cost, and what is left before and after it, in the parameters in which charges add up.
    last : bool
        Whether nothing fits any more after it.
    note : str
        What the reader may not expect; "" for nothing.
    share, used : float
        The share of the budget that it takes, and that would be used after it.
    so_far : Guarantee
        The guarantee of all releases so far and this one.
    """

    statement: Guarantee
    price: str
    before: str
    after: str
    last: bool
    note: str
    share: float
    used: float
    so_far: Guarantee

    def words(self, dataset: str) -> str:
        """What the charge takes of the budget of a dataset, and what would remain.

        Parameters
        ----------
        dataset : str
            Name of the dataset.

        Returns
        -------
        str
            Both as percentages of the budget.
        """
        return f"{percent(self.share)} of the budget of {dataset!r}; {left(self.used)} would remain"

    @property
    def meaning(self) -> str:
        """The guarantee of all releases so far and this one, in plain words."""
        return plain_words(self.so_far, "after all releases so far and this one")

    def __str__(self) -> str:
        return f"{percent(self.share)} of the budget; {left(self.used)} would remain"


@dataclass(frozen=True)
class Receipt:
    """Proof that a release belongs to a charge. A copy outside the ledger reveals when an older ledger is put back.

    Attributes
    ----------
    dataset : str
        The dataset that was charged.
    seq, charge_seq : int
        The entry of the receipt, and the entry of its charge.
    release_sha256, plan_sha256 : str
        The release ID and the plan ID.
    method : str
        Name and version of the method.
    guarantee : Guarantee
        The guarantee that was charged.
    time : str
        The time of the charge, UTC.
    version : str
        The version of confide.
    tip : str
        The tip hash of the ledger with this receipt in it.
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
        """JSON-safe form.

        Returns
        -------
        dict
            All fields, floats as `float.hex` text.
        """
        return encode(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Receipt:
        """The inverse of `to_dict`.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.

        Returns
        -------
        Receipt
            An equal receipt.

        Raises
        ------
        ReleaseError
            Fields are missing or of another type.
        """
        try:
            return decode(cls, data)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ReleaseError(
                f"this is no receipt: it needs the fields {', '.join(f.name for f in fields(cls))}",
                "give what receipt.to_dict() wrote",
            ) from None


@dataclass(frozen=True)
class Entry:
    """One entry of a ledger.

    Attributes
    ----------
    seq : int
        Its number, from 1.
    time : str
        UTC, in the form of ISO 8601.
    kind : str
        "open", "charge", "receipt", "amend", "convert" or "outputs".
    guarantee : str
        The guarantee that was charged, or the budget.
    amount, spent : str
        What it charged or was converted to, and the total after it.
    status : str
        Of a charge: "released", or "without_release" where it has no receipt.
    method, title : str
        Name and version of the method, and the title of the result.
    plan_sha256, release_sha256, hash : str
        The plan ID, the release ID of a charge with a receipt, and the hash of the entry.
    note : str
        The note of "open", the reason of "amend" and "convert", the release ID of a receipt, the number of outputs of a stream.
    share : float
        The share of the budget that a charge takes; 0 for other kinds.
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
    title: str = ""
    share: float = 0.0
    release_sha256: str = ""


@dataclass(frozen=True)
class LedgerState:
    """The ledger of one dataset: its terms, its budget, charges and what is left, and every entry.

    `print` shows it as `confide ledger show` does: the percentage of the budget first, one line for each charge.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    currency : {"GDP", "ZCDP", "PureDP", "ApproxDP"}
        The kind of the budget, which decides how charges add up.
    relation, unit, trust : str
        What every charge must state.
    rows_per_unit : int
        The most rows of a declared unit.
    state : {"", "pair", "gaussian"}
        Of an approximate DP budget: whether it was converted.
    budget : Guarantee
        The budget, with amendments.
    spent, remaining : str
        The total of the charges and what is left, in the parameters in which charges add up.
    units : mapping of str to int
        The same as whole numbers: amounts in 2^-40, deltas in 2^-60.
    without_release : int
        How many charges have no receipt. They stay charged.
    tip : str
        The tip hash, 64 digits.
    rows : tuple of Entry
        All entries, oldest first.
    enforced : bool
        Whether schemas enforce the unit.
    used : float
        The share of the budget that is charged.
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
    without_release: int
    tip: str
    rows: tuple[Entry, ...]
    enforced: bool = False
    used: float = 0.0

    @property
    def whose(self) -> str:
        """What is protected, in words."""
        if self.enforced:
            return f"unit {self.unit} with all its rows (enforced)"
        return f"unit {self.unit} of at most {self.rows_per_unit} row{'s' if self.rows_per_unit > 1 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return encode(self)

    @property
    def meaning(self) -> str:
        """The guarantee of the whole budget in plain words."""
        return plain_words(self.budget, "after the whole budget")

    def summary(self, *, verbose: bool = False, utc: bool = False) -> str:
        """The ledger as text, at most 80 columns wide.

        Parameters
        ----------
        verbose : bool, default False
            Whether to print every entry with its receipt, parameters and
            hashes of 64 digits as well.
        utc : bool, default False
            Whether times are in UTC. Left out: local time.

        Returns
        -------
        str
            The percentage used, what the budget means, one line for each
            charge and amendment.
        """
        return summary(self, verbose=verbose, utc=utc)

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found.

    Attributes
    ----------
    ok : bool
        Whether everything holds.
    problems : tuple of str
        What does not hold, in words.
    rows : int
        The number of entries.
    tip : str
        The tip hash.
    without_release : tuple of int
        The charges without a receipt.
    """

    ok: bool
    problems: tuple[str, ...]
    rows: int
    tip: str
    without_release: tuple[int, ...] = ()

    def __str__(self) -> str:
        entries = f"{self.rows} {'entry' if self.rows == 1 else 'entries'}"
        if self.ok:
            without = ", ".join(f"entry {seq}" for seq in self.without_release) or "none"
            return f"pass  hash chain, totals and limits of {entries}; charged without release: {without}"
        return "\n".join(f"FAIL  {problem}" for problem in self.problems)


def state_of(account: Account, rows: Sequence[Mapping[str, Any]]) -> LedgerState:
    """The state of a dataset from its account and its chain; `PlanError` when an entry was damaged."""
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
        without_release=sum(entry.status == "without_release" for entry in entries),
        tip=account.tip,
        rows=entries,
        enforced=account.enforced,
        used=account.used,
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
                status=("released" if row["seq"] in released else "without_release") if kind == "charge" else "",
                method=row["method"],
                plan_sha256=row["plan_sha256"],
                note=_note(row),
                hash=row["hash"],
                title=row["title"],
                share=account.share(price, stayed=currency is not account.currency) if kind == "charge" else 0.0,
                release_sha256=released.get(row["seq"], ""),
            )
        )
    return tuple(found)
