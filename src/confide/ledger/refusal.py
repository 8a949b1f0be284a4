"""What a refused charge is told: what it asked for, what is spent, what is left, and the call that would fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, log10

from confide.errors import BudgetExceeded, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.ledger.account import Account
from confide.ledger.records import Quote
from confide.ledger.units import Price, delta_of

__all__ = ["exceeded", "largest_fitting", "pure_note", "quote"]


def exceeded(account: Account, statement: Guarantee, counted: Guarantee, price: Price) -> BudgetExceeded:
    """The error of a charge that does not fit, with totals as text; all of them are public.

    counted: what the book counts the statement as, of which a smaller one is offered.
    """
    currency, limit = account.currency, account.limit
    requested, spent = f"counted as {currency.text(price)}", currency.standing(limit, account.spent)
    remaining = currency.text(currency.remaining(limit, account.spent))
    fitting = largest_fitting(account, counted)
    left = float(delta_of(currency.remaining(limit, account.spent).delta))
    if fitting is not None and isinstance(statement, TradeOff):
        works = f"what fits: a trade-off function that is {fitting} at its charge_delta"
    elif fitting is not None:
        less = f"delta = {left:.4g} is left of the {_delta(counted):.4g} asked for; " if left < _delta(counted) else ""
        works = f"{less}what fits: privacy={_call(fitting)}"
    elif account.holds(Price(1, 0)) and _delta(counted):
        some = f"too little delta left ({left:.4g})" if left else "no delta left"
        works = (
            f"this book has {some}; a release that may fail needs one: amend the book with a delta, "
            f"book.amend({type(account.budget).__name__}(..., delta=...), reason='...')"
        )
    else:
        works = "nothing fits any more"
    size = "..., delta=..." if _delta(account.budget) else "..."
    raised = f"; the steward can raise the budget: book.amend({type(account.budget).__name__}({size}), reason='...')"
    if "book.amend" in works:
        raised = ""
    message = (
        f"dataset {account.dataset!r}: the charge {statement} ({requested}) does not fit the budget {account.budget}; "
        f"spent: {spent}; left: {remaining}; nothing was charged; {works}{raised}"
    )
    if note := pure_note(account, statement):
        message += f"; {note}"
    return BudgetExceeded(message, requested=currency.text(price), spent=spent, remaining=remaining)


def pure_note(account: Account, statement: Guarantee) -> str:
    """Why a pure release costs more here than its epsilon, for books in a Gaussian currency; else nothing."""
    if not isinstance(statement, PureDP) or account.currency.name not in {"GDP", "ApproxDP"}:
        return ""
    return (
        "a book in GDP or (epsilon, delta) counts a pure release as the Gaussian curve that covers it, so that a few large ones use it "
        "up sooner than their epsilons add up; for pure releases alone open the budget in epsilon: budget=PureDP(3.0)"
    )


def quote(account: Account, statement: Guarantee, price: Price) -> Quote:
    """What a charge that fits will cost: in the book's own currency, with what is left before and after."""
    currency, limit = account.currency, account.limit
    after = replace(account, spent=account.spent + price)
    return Quote(
        statement=statement,
        price=currency.text(price),
        before=currency.text(currency.remaining(limit, account.spent)),
        after=currency.text(currency.remaining(limit, after.spent)),
        last=not after.holds(Price(1, 0)),
        note=pure_note(account, statement),
    )


def largest_fitting(account: Account, statement: Guarantee) -> Guarantee | None:
    """The same kind of statement, made smaller until it fits, with at most four digits; or None."""
    left = float(delta_of(account.currency.remaining(account.limit, account.spent).delta))
    wanted = _delta(statement)
    # With the delta asked for, else all that is left of it, else half of that (on a curve mu^2 and delta compete).
    for delta in dict.fromkeys(
        (wanted, _four_digits_down(min(wanted, left)), _four_digits_down(min(wanted, left / 2)))
    ):
        if wanted and not delta:  # what may fail has no form without a delta
            continue
        low, high = 0.0, _size(statement)
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if _fits(account, statement, middle, delta) else (low, middle)
        for size in (float(f"{low:.4g}"), _four_digits_down(low)):
            if _fits(account, statement, size, delta):
                return _scaled(statement, size, delta)
    return None


def _fits(account: Account, statement: Guarantee, size: float, delta: float) -> bool:
    try:
        smaller = _scaled(statement, size, delta)
        price = account.currency.price(smaller)
    except PrivacyError:  # a size of nothing is no guarantee
        return False
    return account.holds(price) or account.holds_alone(smaller)


def _size(statement: Guarantee) -> float:
    match statement:
        case GDP():
            return statement.mu
        case ZCDP():
            return statement.rho
        case PureDP() | ApproxDP():
            return statement.epsilon
    raise TypeError(f"{type(statement).__name__} has no one size")


def _delta(statement: Guarantee) -> float:
    return statement.delta if isinstance(statement, (GDP, ApproxDP)) else 0.0


def _scaled(statement: Guarantee, size: float, delta: float) -> Guarantee:
    match statement:
        case GDP():
            return replace(statement, mu=size, delta=delta)
        case ZCDP():
            return replace(statement, rho=size)
        case PureDP():
            return replace(statement, epsilon=size)
        case ApproxDP():
            return replace(statement, epsilon=size, delta=delta)
    raise TypeError(f"{type(statement).__name__} has no one size")


def _call(statement: Guarantee) -> str:
    numbers = [_size(statement)] + ([_delta(statement)] if _delta(statement) else [])
    return f"{type(statement).__name__}({', '.join(repr(number) for number in numbers)})"


def _four_digits_down(value: float) -> float:
    if value <= 0:
        return 0.0
    step = Fraction(10) ** (floor(log10(value)) - 3)
    whole = Fraction(value) // step
    return float(whole * step) if Fraction(float(whole * step)) <= Fraction(value) else float((whole - 1) * step)
