"""Where a dataset's book stands: the row of `budget`, read in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confide.errors import PlanError, PrivacyError
from confide.guarantees import Guarantee
from confide.ledger.chain import guarantee_from_text
from confide.ledger.currency import CURRENCIES, Currency
from confide.ledger.units import ZERO, Price

__all__ = ["Account"]


@dataclass(frozen=True)
class Account:
    """Budget, limit and running totals of a dataset, with the seq and the hash of its last entry."""

    dataset: str
    currency: Currency
    relation: str
    unit: str
    trust: str
    budget: Guarantee
    limit: Price
    spent: Price
    entries: int
    head: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Account:
        """The account of a row of `budget`; `PlanError` when the row was damaged."""
        try:
            return cls(
                dataset=row["dataset"],
                currency=CURRENCIES[row["currency"]],
                relation=row["relation"],
                unit=row["unit"],
                trust=row["trust"],
                budget=guarantee_from_text(row["guarantee"]),
                limit=Price(_whole(row["limit_amount"]), _whole(row["limit_delta"])),
                spent=Price(_whole(row["spent_amount"]), _whole(row["spent_delta"])),
                entries=_whole(row["entries"]),
                head=row["head"],
            )
        except (KeyError, TypeError, ValueError, AttributeError, PrivacyError) as error:
            raise PlanError(
                f"the budget row of dataset {row['dataset']!r} is damaged ({type(error).__name__}); book.verify() "
                "lists what is wrong; restore the book from a backup"
            ) from None

    def holds(self, price: Price) -> bool:
        """Whether a price fits what is left. A book that is over its limit already holds nothing more."""
        fits = self.currency.fits
        return fits(self.limit, self.spent) and fits(self.limit, self.spent + price)

    def holds_alone(self, statement: Guarantee) -> bool:
        """Whether nothing is spent and the statement is within the budget as a number: GDP(0.3) in a GDP(0.3) book.

        In units the one is rounded up and the other down, so that no budget could be used up by one release. The
        first charge depends on no earlier output, hence it may be decided by this test; a price that only this test
        lets in is over the limit in units, hence nothing is ever granted beside it.
        """
        return self.spent == ZERO and self.currency.covers(self.budget, statement)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value
