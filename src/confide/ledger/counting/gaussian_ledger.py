"""Ledgers in mu^2 and delta: Gaussian releases by their mu^2, all others by what remains after them.

What is left of such a ledger is a state (r, L): whatever comes after has H_a <= min(1, g_r(a) + L) at every a, in both
orders (g_r: the hockey-stick divergence of N(r, 1) from N(0, 1)). A release dominated by the pair D leads to (r', L') where

    H_a(D x G_r') <= H_a(G_r) + leak   at every a, in both orders,   and   L' = L - leak - delta

(delta: what the statement adds to D). So a release costs r^2 - r'^2 with the largest such r'. For D = G_m that is m^2; for
randomised response, the Laplace mechanism, a tilted objective it is found and certified by
`confide.guarantees.remainder`. The price by the Gaussian curve that covers D, mu(epsilon)^2, is one such r' as well, and
is taken where it is smaller. Proof for releases that are chosen adaptively: docs/ledger.md; r' is committed before the
draw.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from confide.errors import NoConversion
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.remainder import NothingRemains, Remainder, holds, remaining
from confide.ledger.counting.currency import Currency
from confide.ledger.counting.units import (
    AMOUNT_BITS,
    DELTA_BITS,
    Price,
    amount_of,
    delta_of,
    units_down,
    units_up,
)

__all__ = ["Gaussian"]

# The mu of a trade-off function is found to 1e-3 of itself, rounded up.
_SEARCH = Fraction(1, 400)


class Gaussian(Currency):
    """Delta-approximate Gaussian differential privacy: mu^2 and delta add up (core of Dong, Roth, Su 2022)."""

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
        """The cheaper of the exact rest after its own mu^2 and what remains after it of the whole limit."""
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
            raise NoConversion(f"no proof leads from {type(statement).__name__} to GDP(mu)")
        if isinstance(statement, TradeOff):
            raise NoConversion("a trade-off function has a mu for each delta; say which: charge_delta=1e-6")
        if isinstance(statement, GDP):
            return Fraction(statement.mu) ** 2, Fraction(statement.delta)
        gaussian = statement.to_gdp()  # never stronger than the statement: its mu is rounded up already
        return Fraction(gaussian.mu) ** 2, Fraction(gaussian.delta)

    def exact(self, statement: Guarantee) -> bool:
        return isinstance(statement, GDP)

    def text(self, total: Price) -> str:
        mu2 = float(amount_of(total.amount))
        return f"mu = {mu2**0.5:.6g}, mu^2 = {mu2:.6g}, delta = {float(delta_of(total.delta)):.3g}"


def _curve_of(statement: Guarantee) -> tuple[Guarantee | None, Fraction]:
    """The curve that a statement is charged by, and the delta that it adds; None for one that is not charged so."""
    match statement:
        case PureDP() | TradeOff():
            return statement, Fraction(0)
        case ApproxDP(epsilon, delta):
            return PureDP(epsilon), Fraction(delta)
    return None, Fraction(0)


def _remainder(curve: Guarantee, left: int) -> tuple[int, int] | None:
    """What remains of mu^2 = left after a release of that curve, and the leak that it costs, in units; None: nothing does."""
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
