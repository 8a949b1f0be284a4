"""The account of a dataset: the row of `budget`, read in one piece."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from confide.errors import PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.guarantees.validation import is_whole
from confide.ledger.chain import TERMS, canonical, charge_delta_of, guarantee_from_text, guarantee_to_text
from confide.ledger.currencies import PAIR, currency_at
from confide.ledger.currency import ZERO, Currency, Price


@dataclass(frozen=True)
class Account:
    """Budget, limit and running totals of a dataset, its fixed terms, and the seq and the hash of its last entry.

    unit, rows_per_unit: the privacy unit, and the most rows of one. stayed: what an approximate DP budget was charged before
    it was converted. unit_key, key_sha256: for an enforced unit the key by which rows are chosen, in hexadecimal, and its
    digest, which the chain holds. Both are empty without an enforced unit.
    """

    dataset: str
    currency: Currency
    relation: str
    unit: str
    trust: str
    budget: Guarantee
    limit: Price
    spent: Price
    entries: int
    tip: str
    rows_per_unit: int = 1
    stayed: Price = ZERO
    key_sha256: str = ""
    unit_key: str = field(default="", repr=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Account:
        """The account of a row of `budget`; `PlanError` when the row was damaged."""
        try:
            return cls(
                dataset=row["dataset"],
                currency=currency_at(row["currency"], row["state"]),
                relation=row["relation"],
                unit=row["unit"],
                trust=row["trust"],
                budget=guarantee_from_text(row["guarantee"]),
                limit=Price(_whole(row["limit_amount"]), _whole(row["limit_delta"])),
                spent=Price(_whole(row["spent_amount"]), _whole(row["spent_delta"])),
                entries=_whole(row["entries"]),
                tip=row["tip"],
                rows_per_unit=_whole(row["rows_per_unit"]),
                stayed=Price(_whole(row["stayed_amount"]), _whole(row["stayed_delta"])),
                key_sha256=row["key_sha256"],
                unit_key=_key(row["unit_key"], row["key_sha256"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, PrivacyError) as error:
            raise PlanError(
                f"the budget row of dataset {row['dataset']!r} is damaged ({type(error).__name__}); ledger.verify() "
                "lists what is wrong",
                "restore the ledger from a backup",
            ) from None

    def terms(self) -> dict[str, Any]:
        """The columns of `budget` that an entry authenticates: everything but the end of the chain itself."""
        return {
            "currency": self.currency.name,
            "state": self.currency.state,
            "relation": self.relation,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "trust": self.trust,
            "guarantee": guarantee_to_text(self.budget),
            "limit_amount": self.limit.amount,
            "limit_delta": self.limit.delta,
            "spent_amount": self.spent.amount,
            "spent_delta": self.spent.delta,
            "stayed_amount": self.stayed.amount,
            "stayed_delta": self.stayed.delta,
            "key_sha256": self.key_sha256,
        }

    @property
    def enforced(self) -> bool:
        """Whether the unit is one that schemas enforce; its key was made when the ledger was created."""
        return self.key_sha256 != ""

    @property
    def left(self) -> Price:
        """What is left of the limit, in units, never below nothing."""
        amount, delta = self.limit.amount - self.spent.amount, self.limit.delta - self.spent.delta
        return Price(max(amount, 0), max(delta, 0))

    def share(self, price: Price, *, stayed: bool = False) -> float:
        """The share of the budget that a price takes, on the scale on which charges add up; of two numbers the larger share.

        stayed: whether it was charged before the ledger was converted. What a pair took then stays taken of the whole; what the ledger
        became is the rest of it.
        """
        if stayed:
            return _share(PAIR.limit(self.budget), price)
        rest = 1.0 if self.stayed == ZERO else 1.0 - self.share(self.stayed, stayed=True)
        return rest * _share(self.limit, price)

    @property
    def used(self) -> float:
        """The share of the budget that is charged; above 1 where it was amended to less than that."""
        before = 0.0 if self.stayed == ZERO else self.share(self.stayed, stayed=True)
        return before + self.share(self.spent)

    def so_far(self, more: Price = ZERO) -> Guarantee:
        """The guarantee of all releases so far, and of one more at that price; once converted, that of the whole budget."""
        found = None if self.stayed != ZERO else self.currency.guarantee(self.spent + more)
        return (
            self.budget
            if found is None
            else replace(found, relation=self.relation, unit=self.budget.unit, trust=self.trust)
        )

    def charged(self, price: Price) -> Account:
        """The account after a charge."""
        return replace(self, spent=self.spent + price)

    def converted(self) -> Account:
        """An (epsilon, delta) account as Gaussian, for good: what is left of its pair becomes the square of mu and a leak.

        Raises `PlanError` where there is nothing to convert, `PrivacyError` where too little is left.
        """
        gaussian, limit = self.currency.conversion(self.dataset, self.left)
        return replace(self, currency=gaussian, limit=limit, spent=ZERO, stayed=self.spent)

    def holds(self, price: Price) -> bool:
        """Whether a price fits what is left. A ledger that is over its limit already holds nothing more."""
        fits = self.currency.fits
        return fits(self.limit, self.spent) and fits(self.limit, self.spent + price)

    def holds_alone(self, statement: Guarantee) -> bool:
        """Whether nothing is spent and the statement is within the budget as a number: GDP(0.3) in a GDP(0.3) ledger.

        In units the one is rounded up and the other down, so that no budget could be used up by one release. The
        first charge depends on no earlier output, hence it may be decided by this test. In one number such a price is
        over the limit in units, hence nothing is granted beside it; in two (a pair, the square of mu and delta) the exact rest,
        rounded down, stays in the ledger, and the price may be a unit below the cost: an amendment keeps that unit back.
        """
        return self.spent == ZERO == self.stayed and self.currency.covers(self.budget, statement)


def terms_text(row: Mapping[str, Any]) -> str:
    """What an entry says of the account after it: the terms of a row of `budget` as canonical JSON."""
    return canonical({name: row[name] for name in TERMS})


def fits_key(key: Any, digest: Any) -> bool:
    """Whether a key, in hexadecimal, is the one of that SHA-256; of no key there is none."""
    try:
        return bool((hashlib.sha256(bytes.fromhex(key)).hexdigest() if key else "") == digest)
    except (TypeError, ValueError):
        return False


def _share(limit: Price, price: Price) -> float:
    parts = [
        taken / whole if whole else float(taken > 0)
        for taken, whole in ((price.amount, limit.amount), (price.delta, limit.delta))
    ]
    return max(parts)


def _key(key: Any, digest: Any) -> str:
    """The key of an enforced unit, which must be the one that the chain names."""
    if not fits_key(key, digest):
        raise ValueError("not the key of the chain")
    return str(key)


def _whole(value: Any) -> int:
    if not is_whole(value):
        raise TypeError("not a whole number")
    return value


def amended_limit(account: Account, budget: Guarantee, first: Mapping[str, Any] | None) -> Price:
    """The limit of a new budget, in units, such that exact sums stay within it.

    first: the entry of the ledger's first charge, if any. Where that was compared exactly it may be counted a unit below
    its cost, which the rest of the old budget made good; of the new one that unit is kept back.
    """
    if first is None:
        return account.currency.limit_after(budget, account.stayed)
    then = PAIR if account.stayed != ZERO else account.currency
    price = Price(first["amount"], first["delta"])
    short = then.short(guarantee_from_text(first["guarantee"]), charge_delta_of(first["note"]), price)
    return account.currency.limit_after(budget, account.stayed, short)
