"""(epsilon, delta) ledgers: the pair itself, and what it becomes when it is converted.

**Pair.** The state is the (epsilon, delta) pair, below which a law is at every a exactly when it is (epsilon, delta)-DP
(Kairouz, Oh, Viswanath 2015). A statement (e, d) leads to (epsilon - e, delta - d), with nothing held back: H_a of the two
pairs together is at most that of the sum (basic composition), whatever is chosen from earlier outcomes (Rogers, Roth,
Ullman, Vadhan 2016). Any release may stay by an (e, d) point of its own curve.

**Converted**, once and for good. What is left, (epsilon, delta), becomes mu^2 = r^2 and the leak L = delta/50, with r the
largest such that delta(epsilon; r) <= delta - L: a law with H_a <= min(1, g_r(a) + L) at every a and in both orders is
(epsilon, delta)-DP. No release is part of this move, so that it may depend on everything seen.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import ApproxDP, Guarantee, PureDP
from confide.guarantees.remainder import NothingRemains, converted, stays
from confide.ledger.counting.currency import Currency
from confide.ledger.counting.gaussian_ledger import Gaussian
from confide.ledger.counting.units import (
    AMOUNT_BITS,
    CURVE_SLACK,
    DELTA_BITS,
    ZERO,
    Price,
    amount_of,
    delta_of,
    units_down,
    units_up,
)

__all__ = ["PAIR", "Converted", "Pair", "gaussian_limit"]

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
            f"{type(statement).__name__} has an (epsilon, delta) for each delta; say which: charge_delta=1e-7"
        )

    def exact(self, statement: Guarantee) -> bool:
        return isinstance(statement, (PureDP, ApproxDP))

    def conversion(self, dataset: str, left: Price) -> tuple[Currency, Price]:
        limit = gaussian_limit(left)
        if not left.delta:
            raise PrivacyError(
                f"dataset {dataset!r} has no delta left (left: {self.text(left)}), and a Gaussian curve needs one; "
                f"charge what is left as it is, PureDP(...)"
            )
        if limit.amount < 1:
            raise PrivacyError(
                f"too little is left of dataset {dataset!r} to convert it ({self.text(left)}); charge it as it is"
            )
        return Converted(), limit

    def text(self, total: Price) -> str:
        return f"epsilon = {float(amount_of(total.amount)):.6g}, delta = {float(delta_of(total.delta)):.3g}"


PAIR = Pair()


class Converted(Gaussian):
    """An (epsilon, delta) ledger that was converted: mu^2 and delta, within what was left of the pair."""

    name = "ApproxDP"
    state = "gaussian"

    def limit(self, budget: Guarantee) -> Price:
        return self.limit_after(budget, ZERO)

    def limit_after(self, budget: Guarantee, stayed: Price, short: Price = ZERO) -> Price:
        whole, gone = PAIR.limit(budget), stayed + short
        return gaussian_limit(Price(max(whole.amount - gone.amount, 0), max(whole.delta - gone.delta, 0)))

    def conversion(self, dataset: str, left: Price) -> tuple[Currency, Price]:
        raise PlanError(
            f"dataset {dataset!r} was converted already, which is done once and for good; charge it: left "
            f"{self.text(left)}"
        )

    def covers(self, budget: Guarantee, statement: Guarantee) -> bool:
        """Never beyond the units: r is rounded down already, and no number of the budget is compared with a release's."""
        return False


def gaussian_limit(left: Price) -> Price:
    """mu^2 and the leak that what is left of a pair converts to, in units; (0, 0) when nothing does.

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
