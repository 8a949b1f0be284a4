"""How charges add up, by the kind of a budget and by what a row of `budget` says.

Ledgers of Gaussian DP: Gaussian releases by the square of mu, all others by what remains after them.

What is left of such a ledger is a state (r, L): whatever comes after has H_a <= min(1, g_r(a) + L) at every a, in both
orders (g_r: the hockey-stick divergence of N(r, 1) from N(0, 1)). A release dominated by the pair D leads to (r', L') where

    H_a(D x G_r') <= H_a(G_r) + leak   at every a, in both orders,   and   L' = L - leak - delta

(delta: what the statement adds to D). So a release costs r^2 - r'^2 with the largest such r'. For D = G_m that is m^2; for
randomized response, the Laplace mechanism, a tilted objective it is found and certified by
`confide.guarantees.privacy_filter`. The price by the Gaussian curve that covers D, mu(epsilon)^2, is one such r' as well, and
is taken where it is smaller. Proof for releases that are chosen adaptively: docs/explain/ledger.md; r' is committed before the
draw.

Ledgers of approximate DP: the pair itself, and what it becomes when it is converted.

**Pair.** The state is the (epsilon, delta) pair, below which a law is at every a exactly when it is (epsilon, delta)-DP
(Kairouz, Oh, Viswanath 2015). A statement (e, d) leads to (epsilon - e, delta - d), with nothing held back: H_a of the two
pairs together is at most that of the sum (basic composition), whatever is chosen from earlier outcomes (Rogers, Roth,
Ullman, Vadhan 2016). Any release may stay by an (e, d) point of its own curve.

**Converted**, once and for good. What is left, (epsilon, delta), becomes a square of mu of r^2 and the leak L = delta/50, with r the
largest such that delta(epsilon; r) <= delta - L: a law with H_a <= min(1, g_r(a) + L) at every a and in both orders is
(epsilon, delta)-DP. No release is part of this move, so that it may depend on everything seen.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.privacy_filter import NothingRemains, Remainder, converted, holds, remaining, stays
from confide.ledger.currency import (
    AMOUNT_BITS,
    CURVE_SLACK,
    DELTA_BITS,
    ZERO,
    Concentrated,
    Currency,
    Price,
    Pure,
    amount_of,
    delta_of,
    delta_text,
    root_up,
    units_down,
    units_up,
)

# The mu of a trade-off function is found to 1e-3 of itself, rounded up.
_SEARCH = Fraction(1, 400)


class Gaussian(Currency):
    """Delta-approximate Gaussian differential privacy: the squares of mu add up, and the deltas do (core of Dong, Roth, Su 2022)."""

    name = "GDP"
    accepts = "GDP, PureDP and ApproxDP statements, and trade-off functions, by what remains or at a charge_delta"

    def by_what_remains(self, statement: Guarantee, left: Price) -> Price | None:
        curve, delta = _curve_of(statement)
        if curve is None:
            return None
        added, after = units_up(delta, DELTA_BITS), _remainder(curve, left.amount)
        if after is None:
            return Price(left.amount + 1, added)  # no state is left behind it: more than there is
        amount, leak = after
        return Price(left.amount - amount, added + leak)

    def upholds(self, statement: Guarantee, charge_delta: float | None, left: Price, price: Price) -> bool:
        if super().upholds(statement, charge_delta, left, price):
            return True
        curve, delta = _curve_of(statement)
        leak = price.delta - units_up(delta, DELTA_BITS)
        return curve is not None and leak >= 0 and price.amount <= left.amount and _certified(curve, left, price, leak)

    def price_alone(self, budget: Guarantee, statement: Guarantee) -> Price:
        """The smaller cost of two: the exact rest after its own square of mu and what remains after it of the whole limit."""
        plain, limit = self.price_of_rest(budget, statement), self.limit(budget)
        curve, _ = _curve_of(statement)
        after = None if curve is None else _remainder(curve, limit.amount)
        if after is None or after[1]:  # a leak would not be in the exact rest
            return plain
        return Price(min(plain.amount, limit.amount - after[0]), plain.delta)

    def upholds_alone(self, budget: Guarantee, statement: Guarantee, price: Price) -> bool:
        plain, limit = self.price_of_rest(budget, statement), self.limit(budget)
        if self.agrees(statement, price, plain):
            return True
        curve, _ = _curve_of(statement)
        known = curve is not None and price.delta == plain.delta and price.amount <= limit.amount
        return known and curve is not None and _certified(curve, limit, price, 0)

    def slack(self, statement: Guarantee) -> Fraction:
        return _SEARCH if isinstance(statement, TradeOff) else super().slack(statement)

    def counted(self, statement: Guarantee, charge_delta: float | None) -> Guarantee:
        if isinstance(statement, TradeOff) and charge_delta is not None:
            return _at_delta(statement, charge_delta)
        return super().counted(statement, charge_delta)

    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        if isinstance(statement, (ZCDP, RDP)):
            raise NoConversion(f"no proof leads from {type(statement).__name__} to Gaussian DP")
        if isinstance(statement, TradeOff):
            raise NoConversion("a trade-off function has a mu for each delta", "say which: charge_delta=1e-6")
        if isinstance(statement, GDP):
            return Fraction(statement.mu) ** 2, Fraction(statement.delta)
        gaussian = statement.to_gdp()  # never stronger than the statement: its mu is rounded up already
        return Fraction(gaussian.mu) ** 2, Fraction(gaussian.delta)

    def exact(self, statement: Guarantee) -> bool:
        return isinstance(statement, GDP)

    def guarantee(self, total: Price) -> Guarantee | None:
        return GDP(root_up(amount_of(total.amount)), float(delta_of(total.delta))) if total.amount else None

    def text(self, total: Price) -> str:
        return f"mu = {float(amount_of(total.amount)) ** 0.5:.6g}{delta_text(total)}"


def _curve_of(statement: Guarantee) -> tuple[Guarantee | None, Fraction]:
    """The curve that a statement is charged by, and the delta that it adds; None for one that is not charged so."""
    match statement:
        case PureDP() | TradeOff():
            return statement, Fraction(0)
        case ApproxDP(epsilon, delta):
            return PureDP(epsilon), Fraction(delta)
    return None, Fraction(0)


def _remainder(curve: Guarantee, left: int) -> tuple[int, int] | None:
    """What remains of a square of mu, `left`, after a release of that curve, and its leak, in units; None: nothing does."""
    if left <= 0:
        return None
    try:
        after = remaining(curve, amount_of(left))
    except NothingRemains:
        return None
    return units_down(after.r2, AMOUNT_BITS), units_up(after.leak, DELTA_BITS)


def _certified(curve: Guarantee, left: Price, price: Price, leak: int) -> bool:
    """Whether the release is proved to leave what an entry says that it left."""
    if left.amount <= 0:
        return False
    return holds(curve, amount_of(left.amount), Remainder(amount_of(left.amount - price.amount), delta_of(leak)))


@lru_cache(maxsize=4096)
def _at_delta(statement: TradeOff, delta: float) -> Guarantee:
    """The GDP statement of a trade-off function at a delta: a search on its curve, remembered for `verify`."""
    return statement.to_gdp(delta=delta)


# The smallest epsilon of a statement: at a delta above its curve's at 0 a release has any.
_LEAST = 2.0**-AMOUNT_BITS


class Pair(Currency):
    """The (epsilon, delta) pair: both add up."""

    name = "ApproxDP"
    state = "pair"
    accepts = "PureDP and ApproxDP statements, and any other at the point of its curve that has the delta charge_delta"

    def counted(self, statement: Guarantee, charge_delta: float | None) -> Guarantee:
        if isinstance(statement, (PureDP, ApproxDP)):
            return statement
        if charge_delta is not None:
            return _point(statement, charge_delta)
        return super().counted(statement, charge_delta)

    def price_alone(self, budget: Guarantee, statement: Guarantee) -> Price:
        return self.price_of_rest(budget, statement)

    def by_what_remains(self, statement: Guarantee, left: Price) -> Price | None:
        """Any release may stay by a point of its own curve: without a charge_delta by the one that takes equal shares.

        A pair may stay by its epsilon rounded down, with the rest of a unit paid as delta: ten releases of the float 0.1,
        which is a little more than a tenth, then fit 1.
        """
        return _point_of(statement, left)

    def upholds(self, statement: Guarantee, charge_delta: float | None, left: Price, price: Price) -> bool:
        if super().upholds(statement, charge_delta, left, price):
            return True
        return (charge_delta is None or self.exact(statement)) and _above(statement, price)

    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        if isinstance(statement, ApproxDP):
            return Fraction(statement.epsilon), Fraction(statement.delta)
        if isinstance(statement, PureDP):
            return Fraction(statement.epsilon), Fraction(0)
        raise NoConversion(
            f"{type(statement).__name__} has an (epsilon, delta) for each delta", "say which: charge_delta=1e-7"
        )

    def exact(self, statement: Guarantee) -> bool:
        return isinstance(statement, (PureDP, ApproxDP))

    def conversion(self, dataset: str, left: Price) -> tuple[Currency, Price]:
        limit = gaussian_limit(left)
        if not left.delta:
            raise PrivacyError(
                f"dataset {dataset!r} has no delta left (left: {self.text(left)}), and a Gaussian curve needs one",
                "charge what is left as it is, PureDP(...)",
            )
        if limit.amount < 1:
            raise PrivacyError(
                f"too little is left of dataset {dataset!r} to convert it ({self.text(left)})", "charge it as it is"
            )
        return Converted(), limit

    def guarantee(self, total: Price) -> Guarantee | None:
        epsilon, delta = float(amount_of(total.amount)), float(delta_of(total.delta))
        if not epsilon:
            return None
        return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)

    def text(self, total: Price) -> str:
        return f"epsilon = {float(amount_of(total.amount)):.6g}{delta_text(total)}"


PAIR = Pair()


class Converted(Gaussian):
    """A ledger of approximate DP that was converted: the square of mu and delta, within what was left of the pair."""

    name = "ApproxDP"
    state = "gaussian"

    def limit(self, budget: Guarantee) -> Price:
        return self.limit_after(budget, ZERO)

    def limit_after(self, budget: Guarantee, stayed: Price, short: Price = ZERO) -> Price:
        whole, gone = PAIR.limit(budget), stayed + short
        return gaussian_limit(Price(max(whole.amount - gone.amount, 0), max(whole.delta - gone.delta, 0)))

    def conversion(self, dataset: str, left: Price) -> tuple[Currency, Price]:
        raise PlanError(
            f"dataset {dataset!r} was converted already, which is done once and for good",
            f"charge it: left {self.text(left)}",
        )

    def covers(self, budget: Guarantee, statement: Guarantee) -> bool:
        """Never beyond the units: r is rounded down already, and no number of the budget is compared with a release's."""
        return False


def gaussian_limit(left: Price) -> Price:
    """The square of mu and the leak that what is left of a pair converts to, in units; (0, 0) when nothing does.

    >>> pair = Price(units_down(8.0, AMOUNT_BITS), units_down(1e-5, DELTA_BITS))
    >>> round(float(amount_of(gaussian_limit(pair).amount)) ** 0.5, 3)
    1.665
    """
    try:
        state = converted(amount_of(left.amount), delta_of(left.delta))
    except NothingRemains:
        return ZERO
    return Price(units_down(state.r2, AMOUNT_BITS), units_down(state.leak, DELTA_BITS))


@lru_cache(maxsize=4096)
def _point(statement: Guarantee, delta: float) -> Guarantee:
    """The (epsilon, delta) point of a statement's own curve; `NoConversion` where it has none with this delta."""
    try:
        return statement.to_approx(delta=delta)
    except PrivacyError as refused:
        try:
            any_epsilon = statement.to_approx(epsilon=_LEAST)
        except PrivacyError:
            raise NoConversion(str(refused)) from None
        if any_epsilon.delta > delta:
            raise NoConversion(str(refused)) from None
        return any_epsilon


def _above(statement: Guarantee, price: Price) -> bool:
    """Whether a release with this statement is (epsilon, delta)-private at a price."""
    try:
        there = statement.to_approx(epsilon=float(amount_of(price.amount)))
    except PrivacyError:
        return False
    return Fraction(there.delta) <= delta_of(price.delta) * (1 + CURVE_SLACK)


def _point_of(statement: Guarantee, left: Price) -> Price | None:
    """The point of a statement's own curve by which it stays in what is left; None where it has none."""
    try:
        point = stays(statement, amount_of(left.amount), delta_of(left.delta))
    except (NoConversion, PrivacyError):
        return None
    return Price(units_up(point.epsilon, AMOUNT_BITS), units_up(point.delta, DELTA_BITS))


#: What a ledger is opened in, by the kind of its budget.
CURRENCIES: dict[str, Currency] = {currency.name: currency for currency in (Gaussian(), Concentrated(), Pure(), Pair())}
_ALL = {(currency.name, currency.state): currency for currency in (*CURRENCIES.values(), Converted())}


def currency_of(budget: Guarantee) -> Currency:
    """The currency of a ledger that is opened with this budget; `PrivacyError` for anything that is no guarantee.

    >>> currency_of(GDP(1.0)).name
    'GDP'
    """
    found = CURRENCIES.get(type(budget).__name__) if isinstance(budget, (GDP, ZCDP, PureDP, ApproxDP)) else None
    if found is None:
        raise PrivacyError(
            "a budget must be cf.GDP(...), ApproxDP(epsilon, delta), ZCDP(rho) or cf.PureDP(epsilon), got "
            f"{type(budget).__name__}",
            "for instance GDP(2.0)",
        )
    return found


def currency_at(name: str, state: str) -> Currency:
    """The currency of a row of `budget`; `KeyError` for one that there is not."""
    return _ALL[name, state]
