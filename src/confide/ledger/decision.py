"""Does a release fit, and as which of its statements? A pure function of the account, so `verify` can decide again.

Source of the filter: what is left is fixed before each release, and each release, however it was chosen, leads to a state
that is fixed before its noise is drawn (docs/ledger.md has the proof; for sums of rho and of epsilon the same induction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from confide.errors import PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.validation import check_reach
from confide.ledger.account import Account
from confide.ledger.counting.currency import checked_delta
from confide.ledger.counting.units import Price
from confide.ledger.refusal import exceeded, no_conversion

__all__ = ["Chosen", "check_terms", "choose", "recheck"]


_KINDS = (GDP, ZCDP, PureDP, ApproxDP, RDP, TradeOff)

# What remains after a release was never found to be worth more than this many times its price by the Gaussian curve above
# it; beyond it the search is left out, which can only make a charge dearer.
_WORTH = 8


@dataclass(frozen=True)
class Chosen:
    """The statement that a release is charged as, what that is counted as, and its price in units."""

    statement: Guarantee
    counted: Guarantee
    price: Price


def check_terms(account: Account, statement: Guarantee) -> None:
    """Refuse a statement that is not complete, beyond reach, or of another relation, unit or trust than the ledger.

    Raises `PrivacyError`.
    """
    if not isinstance(statement, _KINDS):
        raise PrivacyError(
            f"a charge must be a guarantee such as GDP(1.0), got {type(statement).__name__}; give the plan's guarantees"
        )
    check_reach(statement)
    if not statement.complete:
        raise PrivacyError(
            f"the charge {statement} leaves its relation open, and a ledger takes complete statements only; "
            f"write {type(statement).__name__}(..., relation={account.relation!r}) or charge the plan's guarantees"
        )
    mine = (account.relation, account.budget.unit, account.trust)
    theirs = (statement.relation, statement.unit, statement.trust)
    if mine != theirs:
        # what a release protects was compared before: where the statement says no other, it is the ledger's own unit
        unit = account.unit if statement.unit == account.budget.unit else statement.unit
        raise PrivacyError(
            f"dataset {account.dataset!r} counts relation={mine[0]!r}, unit={account.unit!r}, trust={mine[2]!r}; "
            f"the charge {statement} has relation={theirs[0]!r}, unit={unit!r}, trust={theirs[2]!r}; "
            f"{_way_out(account, statement)}"
        )


def _way_out(account: Account, statement: Guarantee) -> str:
    terms = f"relation={statement.relation!r}, unit={statement.unit!r}, trust={statement.trust!r}"
    same = statement.unit == account.budget.unit != account.unit
    whose = f", unit={account.unit!r}, rows_per_unit={account.rows_per_unit}" if same else ""
    size = "..., delta=..." if isinstance(statement, (GDP, ApproxDP)) and statement.delta else "..."
    call = f"Ledger.create(path, dataset=..., budget={type(statement).__name__}({size}, {terms}){whose})"
    another = f"open a ledger on those terms: {call} (two ledgers on the same records add up, unseen)"
    if (account.budget.unit, account.trust) != (statement.unit, statement.trust):
        return another
    hint = (
        f"ask for the release with relation={account.relation!r} if its method has that relation, else take a method that has it, or "
        f"{another}"
    )
    if account.relation == "substitute" and isinstance(statement, GDP) and statement.delta == 0:
        hint += f"; in general an add-remove GDP({statement.mu:.6g}) is a substitute GDP({2 * statement.mu:.6g})"
    return hint


def choose(account: Account, statements: Sequence[Guarantee], charge_delta: float | None = None) -> Chosen:
    """The cheapest of a release's proved statements that converts into the ledger's currency and fits.

    charge_delta: where a curve is charged that has a point for each delta.

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
    plain = _plain(account, statements, delta)
    offers = [*plain, *_by_what_remains(account, statements, plain, delta)]
    if not offers:
        raise no_conversion(account, statements, delta)
    # Of two that take the same share the smaller amount, of two equal prices the release's own order, which is native first.
    offers.sort(key=lambda offer: (account.currency.share(account.limit, offer.price), offer.price.amount))
    for offer in offers:
        if account.holds(offer.price):
            return offer
    alone = [
        replace(offer, price=account.currency.price_alone(account.budget, offer.counted))
        for offer in plain
        if account.holds_alone(offer.counted)
    ]
    if alone:
        return min(alone, key=lambda offer: (account.currency.share(account.limit, offer.price), offer.price.amount))
    dearest_told = plain[0] if plain else offers[0]
    raise exceeded(account, dearest_told.statement, dearest_told.counted, dearest_told.price)


def recheck(
    account: Account, statements: Sequence[Guarantee], charged: Guarantee, delta: float | None, price: Price
) -> list[str]:
    """What is wrong with a charge as it was written, with no search: its terms, its price, and whether it fitted.

    A price by what remains is proved by its certificate, so that it may be any that one upholds.
    """
    currency, at = account.currency, checked_delta(delta)
    for statement in statements:
        check_terms(account, statement)
    found = []
    offer = currency.offer(charged, at)
    alone = offer is not None and account.holds_alone(offer[0])
    exactly = alone and offer is not None and currency.upholds_alone(account.budget, offer[0], price)
    if not (exactly or currency.upholds(charged, at, account.left, price)):
        found.append(f"the price is not that of {charged}")
    if not (account.holds(price) or alone):
        found.append(f"the charge {charged} did not fit what was left of {account.budget}")
    paid = currency.share(account.limit, price)
    for due in _plain(account, statements, at):
        if due.statement != charged and account.holds(due.price) and currency.share(account.limit, due.price) < paid:
            found.append(f"was charged as {charged}, where {due.statement} was due")
            break
    return found


def _plain(account: Account, statements: Sequence[Guarantee], delta: float | None) -> list[Chosen]:
    """Each statement that converts, at the price that it has whatever is left."""
    found = ((statement, account.currency.offer(statement, delta)) for statement in statements)
    return [Chosen(statement, *offer) for statement, offer in found if offer is not None]


def _by_what_remains(
    account: Account, statements: Sequence[Guarantee], plain: Sequence[Chosen], delta: float | None
) -> list[Chosen]:
    """Statements at the price of what remains after them, where that may be the cheapest."""
    if account.currency.state == "pair" and (plain or delta is not None):
        # what was asked for as a pair is charged as that pair, and not by another point of the curve
        statements = [offer.statement for offer in plain if offer.counted == offer.statement]
    prices = {offer.statement: offer.price.amount for offer in plain}
    gaussian = min((offer.price.amount for offer in plain if isinstance(offer.statement, GDP)), default=None)
    found = []
    for statement in dict.fromkeys(statements):
        known = prices.get(statement)
        if gaussian is not None and known is not None and gaussian * _WORTH <= known:
            continue
        price = account.currency.by_what_remains(statement, account.left)
        if price is not None:
            found.append(Chosen(statement, statement, price))
    return found
