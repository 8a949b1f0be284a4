"""Does a release fit, and as which of its statements? A pure function of the account, so `verify` can decide again.

Source of the filter: the budget is fixed in advance and each release, however it was chosen, fits what is left of it
(backward induction over the releases; the same induction for sums of rho and of epsilon).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.ledger.account import Account
from confide.ledger.currency import CURRENCIES, Currency, checked_delta
from confide.ledger.refusal import exceeded
from confide.ledger.units import Price

__all__ = ["Chosen", "check_terms", "choose"]


_KINDS = (GDP, ZCDP, PureDP, ApproxDP, RDP, TradeOff)


@dataclass(frozen=True)
class Chosen:
    """The statement that a release is charged as, what that is counted as, and its price in units."""

    statement: Guarantee
    counted: Guarantee
    price: Price


def check_terms(account: Account, statement: Guarantee) -> None:
    """Refuse a statement that is not complete or speaks of another relation, unit or trust than the book.

    Raises `PrivacyError`.
    """
    if not isinstance(statement, _KINDS):
        raise PrivacyError(
            f"a charge must be a guarantee such as GDP(1.0), got {type(statement).__name__}; give the plan's guarantees"
        )
    if not statement.complete:
        raise PrivacyError(
            f"the charge {statement} leaves its relation open, and a ledger takes complete statements only; "
            f"write {type(statement).__name__}(..., relation={account.relation!r}) or charge the plan's guarantees"
        )
    mine = (account.relation, account.unit, account.trust)
    theirs = (statement.relation, statement.unit, statement.trust)
    if mine != theirs:
        raise PrivacyError(
            f"dataset {account.dataset!r} counts relation={mine[0]!r}, unit={mine[1]!r}, trust={mine[2]!r}; "
            f"the charge {statement} has relation={theirs[0]!r}, unit={theirs[1]!r}, trust={theirs[2]!r}; "
            f"{_way_out(account, statement)}"
        )


def _way_out(account: Account, statement: Guarantee) -> str:
    terms = f"relation={statement.relation!r}, unit={statement.unit!r}, trust={statement.trust!r}"
    size = "..., delta=..." if isinstance(statement, (GDP, ApproxDP)) and statement.delta else "..."
    call = f"Ledger.create(path, dataset=..., budget={type(statement).__name__}({size}, {terms}))"
    another = f"open a book on those terms: {call} (two books on the same records add up, unseen)"
    if (account.unit, account.trust) != (statement.unit, statement.trust):
        return another
    hint = (
        f"ask for the release with relation={account.relation!r} if its method has that relation, else take a method that has it, or "
        f"{another}"
    )
    if account.relation == "substitute" and isinstance(statement, GDP) and statement.delta == 0:
        hint += f"; in general an add-remove GDP({statement.mu:.6g}) is a substitute GDP({2 * statement.mu:.6g})"
    return hint


def choose(account: Account, statements: Sequence[Guarantee], charge_delta: float | None = None) -> Chosen:
    """The cheapest of a release's proved statements that converts into the book's currency and fits.

    charge_delta: where trade-off functions are charged; without one they do not convert.

    Raises `PrivacyError` (terms, charge_delta), `NoConversion` (no statement converts), `BudgetExceeded` (none fits).
    """
    if isinstance(statements, _KINDS) or not statements:
        raise PrivacyError(
            "a charge takes the statements of a release as a sequence of one or more, for instance plan.guarantees "
            "or (GDP(1.0),)"
        )
    for statement in statements:
        check_terms(account, statement)
    delta = checked_delta(charge_delta)
    currency, limit = account.currency, account.limit
    offers = [
        Chosen(statement, counted, currency.price(counted))
        for statement in statements
        if (counted := _counted(currency, statement, delta)) is not None
    ]
    if not offers:
        raise _no_conversion(account, statements, delta)
    # Of two equal prices the release's own order decides, which is native first.
    offers.sort(key=lambda offer: currency.share(limit, offer.price))
    for offer in offers:
        if account.holds(offer.price):
            return offer
    if any(account.holds_alone(offer.counted) for offer in offers):
        return offers[0]
    raise exceeded(account, offers[0].statement, offers[0].counted, offers[0].price)


def _counted(currency: Currency, statement: Guarantee, delta: float | None) -> Guarantee | None:
    try:
        return currency.counted(statement, delta)
    except NoConversion:
        return None


def _no_conversion(account: Account, statements: Sequence[Guarantee], delta: float | None) -> NoConversion:
    name = account.currency.name
    given = ", ".join(str(statement) for statement in statements)
    curve = any(isinstance(statement, TradeOff) for statement in statements)
    if curve and delta is None and isinstance(account.currency, type(CURRENCIES["GDP"])):
        return NoConversion(
            f"dataset {account.dataset!r} is counted in {name}; the release states {given}, and a trade-off function "
            "is charged at a delta that you choose; say which: charge_delta=1e-6"
        )
    books = [
        f"{other.name} (with charge_delta=1e-6)" if curve and other.name in {"GDP", "ApproxDP"} else other.name
        for other in CURRENCIES.values()
        if any(_counted(other, statement, delta or 1e-6) is not None for statement in statements)
    ]
    if books:
        works = f"ask a method for a guarantee that converts, or open a dataset's book with a budget in {' or '.join(books)}"
    else:
        works = (
            "ask a method for a guarantee that converts, or state as well what follows from this one, for instance "
            "guarantee.to_approx(delta=1e-6), which a book in GDP or ApproxDP takes"
        )
    return NoConversion(
        f"dataset {account.dataset!r} is counted in {name}, which takes {account.currency.accepts}; the release "
        f"states {given}, and no proof leads from there to {name}; {works}"
    )
