"""What is left of a ledger buys: how many equal releases, one after the other, by the ledger's own decision."""

from __future__ import annotations

from dataclasses import replace

from confide.errors import BudgetExceeded, NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger.account import Account
from confide.ledger.counting.gaussian_ledger import Gaussian
from confide.ledger.counting.pair_ledger import Pair
from confide.ledger.counting.units import Price, amount_of, delta_of
from confide.ledger.decision import choose

__all__ = ["how_many", "purchases"]

# A count that needs a search for each release stops here: a ledger is opened at once.
_MOST = 40


def how_many(account: Account, *statements: Guarantee, most: int | None = None) -> int:
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
        whole = f"{how_many(account, ApproxDP(1.0, each))} releases at (1, {each:g})" if each and epsilon >= 1 else ""
        lines = [", or ".join(filter(None, (whole, f"{how_many(account, PureDP(0.1))} at epsilon 0.1")))]
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
            f"{how_many(account, ZCDP(0.125))} releases at rho 0.125 (mu 0.5), or {how_many(account, PureDP(1.0))} at epsilon 1",
        )
    return (
        f"{how_many(account, PureDP(1.0))} releases at epsilon 1, or {how_many(account, PureDP(0.1))} at epsilon 0.1",
    )


def _gaussian_counts(account: Account, what: str = "") -> str:
    pure = how_many(account, PureDP(1.0), most=_MOST)
    shown = f"{pure} or more" if pure == _MOST else f"{pure}"
    half = how_many(account, GDP(0.5))
    return f"{half} {what.replace('releases', 'release') if half == 1 else what}at mu 0.5, or {shown} at epsilon 1"
