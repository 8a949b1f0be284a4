"""The message of a refused charge: its cost, the total of the charges, what is left, and the call that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log10

from confide.errors import BudgetExceeded, NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.ledger.account import Account
from confide.ledger.currencies import CURRENCIES, Gaussian, Pair
from confide.ledger.currency import Currency, Price, amount_of, delta_of
from confide.ledger.printing import left as left_of, percent
from confide.ledger.records import Quote


def exceeded(account: Account, statement: Guarantee, counted: Guarantee, price: Price) -> BudgetExceeded:
    """The error of a charge that does not fit, with totals as text; all of them are public.

    counted: what the ledger counts the statement as, of which a smaller one is offered.
    """
    currency, limit = account.currency, account.limit
    spent = currency.standing(limit, account.spent)
    remaining = currency.text(currency.remaining(limit, account.spent))
    fitting = _point_left(account) if isinstance(currency, Pair) and not currency.exact(counted) else None
    if fitting is None and not isinstance(counted, TradeOff):
        fitting = largest_fitting(account, counted)
    left = float(delta_of(currency.remaining(limit, account.spent).delta))
    kind, allowed, ways = f"cf.{type(account.budget).__name__}", "", list[str]()
    if fitting is not None and isinstance(statement, TradeOff) and not isinstance(currency, Pair):
        allowed = f"a trade-off function that is {fitting} at its charge_delta"
    elif fitting is not None:
        allowed = _up_to(fitting)
        ways = [f"privacy={_call(fitting)}"]
    elif isinstance(counted, TradeOff):
        ways = ["ask for a smaller one"]
    elif account.holds(Price(1, 0)) and _delta(counted):
        some = f"too little delta left ({left:.4g})" if left else "no delta left"
        ways = [
            f"this ledger has {some}; a release that may fail needs one: amend the ledger with a delta, "
            f"ledger.amend({kind}(..., delta=...), reason='...')"
        ]
    else:
        allowed = "nothing, the budget is used up"
    if "ledger.amend" not in "".join(ways):
        ways += ["or, if the steward raises the budget:"] if ways else []
        ways += [f"ledger.amend({kind}({_raised(account, price)}), reason='...')"]
    ways += filter(None, [pure_note(account, statement)])
    problem = f"this release costs {percent(account.share(price))} of the budget of {account.dataset!r}; {left_of(account.used)} is left"
    return BudgetExceeded(
        problem, "\n".join(ways), allowed=allowed, requested=currency.text(price), spent=spent, remaining=remaining
    )


def _up_to(statement: Guarantee) -> str:
    """The largest cost that fits, in words."""
    name = {GDP: "mu", ZCDP: "rho"}.get(type(statement), "epsilon")
    return f"{name} up to {_size(statement)!r}" + (f", delta up to {_delta(statement)!r}" if _delta(statement) else "")


def _raised(account: Account, price: Price) -> str:
    """The budget in which a price fits, in two figures, rounded up; left open where it is more than one number."""
    if _delta(account.budget):
        return "..., delta=..."
    share = account.used + account.share(price)
    total = _size(account.budget) * (share**0.5 if isinstance(account.budget, GDP) else share)
    step = 10.0 ** (floor(log10(total)) - 1)
    return f"{float(f'{ceil(total / step) * step:.2g}'):g}"


def _point_left(account: Account) -> Guarantee | None:
    """What is left of a pair, as the request that takes all of it; None when one of the two is gone."""
    epsilon, delta = (float(amount_of(account.left.amount)), float(delta_of(account.left.delta)))
    epsilon, delta = _four_digits_down(epsilon), _four_digits_down(delta)
    return ApproxDP(epsilon, delta) if epsilon and delta else None


def pure_note(account: Account, statement: Guarantee) -> str:
    """Why a pure release costs more here than its epsilon, for ledgers in a Gaussian currency; else nothing."""
    if not isinstance(statement, PureDP) or not isinstance(account.currency, Gaussian):
        return ""
    return (
        "a Gaussian ledger counts a pure release by what it leaves of the Gaussian curve, so that a few large ones use it up sooner than "
        "their epsilons add up; for pure releases alone open a ledger of its own in epsilon: Ledger.create(path, dataset=..., "
        "budget=PureDP(3.0))"
    )


def quote(account: Account, statement: Guarantee, price: Price, stays: Account | None = None) -> Quote:
    """What a charge that fits will cost, with what is left before and after it.

    stays: the account as it is, where the charge would convert it first.
    """
    currency, limit = account.currency, account.limit
    after = account.charged(price)
    return Quote(
        statement=statement,
        price=currency.text(price),
        before=currency.text(currency.remaining(limit, account.spent)),
        after=currency.text(currency.remaining(limit, after.spent)),
        last=not after.holds(Price(1, 0)),
        note=pure_note(account, statement) if stays is None else _conversion_note(stays, account),
        share=account.share(price),
        used=after.used,
        so_far=account.so_far(price),
    )


def _conversion_note(stays: Account, account: Account) -> str:
    return (
        f"this converts the ledger first, permanently: the pair that is left ({stays.currency.text(stays.left)}) becomes "
        f"{account.currency.text(account.left)}, and epsilons no longer simply add"
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
        # by the plain price: what fits by what remains fits by the Gaussian curve above it, and only what leaves nothing is new
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
    return f"cf.{type(statement).__name__}({', '.join(repr(number) for number in numbers)})"


def _four_digits_down(value: float) -> float:
    if value <= 0:
        return 0.0
    step = Fraction(10) ** (floor(log10(value)) - 3)
    whole = Fraction(value) // step
    return float(whole * step) if Fraction(float(whole * step)) <= Fraction(value) else float((whole - 1) * step)


def no_conversion(account: Account, statements: Sequence[Guarantee], delta: float | None) -> NoConversion:
    """The error of a release none of whose statements can be counted, with what can be done."""
    currency = account.currency
    given = ", ".join(str(statement) for statement in statements)
    said = f"dataset {account.dataset!r} is counted in {currency.name}, which takes {currency.accepts}; the release states {given}"
    if isinstance(currency, Pair):
        return NoConversion(f"{said}", f"{_stay_or_convert(account, statements)}")
    if currency.name == "GDP" and delta is None and _counts(currency, statements, 1e-6):
        return NoConversion(
            f"{said}, and a trade-off function is charged at a delta that you choose", "say which: charge_delta=1e-6"
        )
    curve = any(isinstance(statement, TradeOff) for statement in statements)
    others = [
        f"{other.name} (with charge_delta=1e-6)" if curve and other.name in {"GDP", "ApproxDP"} else other.name
        for other in CURRENCIES.values()
        if _counts(other, statements, delta or 1e-6)
    ]
    if others:
        works = f"ask a method for a guarantee that converts, or open a dataset's ledger with a budget in {' or '.join(others)}"
    else:
        works = (
            "ask a method for a guarantee that converts, or state as well what follows from this one, for instance "
            "guarantee.to_approx(delta=1e-6), which a ledger in GDP or ApproxDP takes"
        )
    return NoConversion(f"{said}, and no proof leads from there to {currency.name}", f"{works}")


def _counts(currency: Currency, statements: Sequence[Guarantee], delta: float) -> bool:
    return any(currency.offer(statement, delta) is not None for statement in statements)


def _stay_or_convert(account: Account, statements: Sequence[Guarantee]) -> str:
    """The two ways on from a pair: an (epsilon, delta) point of the release's own curve, or converting for good."""
    currency, left = account.currency, account.left
    point = _four_digits_down(float(delta_of(left.delta)) / 10)
    offers = (currency.offer(statement, point) for statement in statements) if point else ()
    stays = next((offer[0] for offer in offers if offer is not None), None)
    ways = (
        [] if stays is None else [f"charge it at a point of its own curve, where it is {stays}: charge_delta={point!r}"]
    )
    try:
        gaussian = account.converted()
        ways.append(
            f"or convert the ledger, permanently, to {gaussian.currency.text(gaussian.left)}: convert_ledger=True "
            "(ledger.convert(), confide ledger convert)"
        )
    except (PlanError, PrivacyError):
        pass
    return "; ".join(ways) or "ask for a release in (epsilon, delta)"
