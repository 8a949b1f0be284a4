"""Does a release fit, and as which of its statements? A pure function of the account, so `verify` can decide again.

Source of the filter: what is left is fixed before each release, and each release, however it was chosen, leads to a state
that is fixed before its noise is drawn (docs/explain/ledger.md has the proof; for sums of rho and of epsilon the same induction).

What is left of a ledger buys: how many equal releases, one after the other, by the ledger's own decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from confide.errors import BudgetExceeded, NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.validation import check_reach
from confide.ledger.account import Account
from confide.ledger.currencies import Gaussian, Pair
from confide.ledger.currency import Price, amount_of, checked_delta, delta_of
from confide.ledger.refusal import exceeded, no_conversion

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
            f"a charge must be a guarantee such as GDP(1.0), got {type(statement).__name__}",
            "give the plan's guarantees",
        )
    check_reach(statement)
    if not statement.complete:
        raise PrivacyError(
            f"the charge {statement} leaves its relation open, and a ledger takes complete statements only",
            f"write {type(statement).__name__}(..., relation={account.relation!r}) or charge the plan's guarantees",
        )
    mine = (account.relation, account.budget.unit, account.trust)
    theirs = (statement.relation, statement.unit, statement.trust)
    if mine != theirs:
        # what a release protects was compared before: where the statement says no other, it is the ledger's own unit
        unit = account.unit if statement.unit == account.budget.unit else statement.unit
        raise PrivacyError(
            f"dataset {account.dataset!r} counts relation={mine[0]!r}, unit={account.unit!r}, trust={mine[2]!r}; "
            f"the charge {statement} has relation={theirs[0]!r}, unit={unit!r}, trust={theirs[2]!r}",
            f"{_way_out(account, statement)}",
        )


def _way_out(account: Account, statement: Guarantee) -> str:
    terms = f"relation={statement.relation!r}, unit={statement.unit!r}, trust={statement.trust!r}"
    same = statement.unit == account.budget.unit != account.unit
    whose = f", unit={account.unit!r}, rows_per_unit={account.rows_per_unit}" if same else ""
    size = "..., delta=..." if isinstance(statement, (GDP, ApproxDP)) and statement.delta else "..."
    call = (
        f"Ledger.create(path, dataset={account.dataset!r}, budget={type(statement).__name__}({size}, {terms}){whose})"
    )
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
    """The smallest charge of a release's proved statements that converts into the kind of the budget and fits.

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
    """Statements by what remains after them, where that may be the smallest cost."""
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


# A count that needs a search for each release stops here: a ledger is opened at once.
_MOST = 40


def count_affordable(account: Account, *statements: Guarantee, most: int | None = None) -> int:
    """How many releases that each make all of these statements are granted, one after the other; at most `most`."""
    statements = tuple(
        replace(statement.resolve(account.relation), unit=account.budget.unit, trust=account.trust)
        for statement in statements
    )
    # a price that does not depend on what is left is the same each time: equal ones are counted at once after the second,
    # since the first may be alone in its ledger
    plain = len(statements) == 1 and account.currency.offer(statements[0], None) is not None
    fixed = plain and isinstance(statements[0], GDP) == isinstance(account.currency, Gaussian)
    granted = 0
    while most is None or granted < most:
        try:
            price = choose(account, statements).price
        except (BudgetExceeded, NoConversion):
            break
        account, granted = account.charged(price), granted + 1
        if fixed and granted > 1:
            return granted + _times(account.currency.remaining(account.limit, account.spent), price)
    return granted


def _times(left: Price, price: Price) -> int:
    return min(whole // part for whole, part in ((left.amount, price.amount), (left.delta, price.delta)) if part)


def purchases(account: Account) -> tuple[str, ...]:
    """Lines for a reader: what is left, as releases of usual sizes; for a pair also as the Gaussian ledger it may become."""
    currency = account.currency
    if isinstance(currency, Pair):
        epsilon, delta = float(amount_of(account.left.amount)), float(delta_of(account.left.delta))
        each = float(f"{delta / 10:.0e}") if delta else 0.0
        whole = (
            f"{count_affordable(account, ApproxDP(1.0, each))} releases at (1, {each:g})"
            if each and epsilon >= 1
            else ""
        )
        lines = [", or ".join(filter(None, (whole, f"{count_affordable(account, PureDP(0.1))} at epsilon 0.1")))]
        try:
            gaussian = account.converted()
        except (PlanError, PrivacyError):
            return tuple(lines)
        mu = float(amount_of(gaussian.limit.amount)) ** 0.5
        return (*lines, f"converted to Gaussian (mu = {mu:.6g}): {_gaussian_counts(gaussian)}")
    if isinstance(currency, Gaussian):
        return (_gaussian_counts(account, "releases "),)
    if currency.name == "ZCDP":
        return (
            f"{count_affordable(account, ZCDP(0.125))} releases at rho 0.125 (mu 0.5), or "
            f"{count_affordable(account, PureDP(1.0))} at epsilon 1",
        )
    return (
        f"{count_affordable(account, PureDP(1.0))} releases at epsilon 1, or {count_affordable(account, PureDP(0.1))} at epsilon 0.1",
    )


def _gaussian_counts(account: Account, what: str = "") -> str:
    pure = count_affordable(account, PureDP(1.0), most=_MOST)
    shown = f"{pure} or more" if pure == _MOST else f"{pure}"
    half = count_affordable(account, GDP(0.5))
    return f"{half} {what.replace('releases', 'release') if half == 1 else what}at mu 0.5, or {shown} at epsilon 1"
