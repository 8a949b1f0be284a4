"""What a book counts in, and what each guarantee costs there.

| guarantee of the release | GDP book and (epsilon, delta) budget | ZCDP book | PureDP book |
| --- | --- | --- | --- |
| GDP(mu) | mu^2 | mu^2/2 | refused |
| GDP(mu, delta > 0) | mu^2 and delta | refused | refused |
| PureDP(epsilon) | mu(epsilon)^2 | epsilon^2/2 | epsilon |
| ApproxDP(epsilon, delta) | mu(epsilon)^2 and delta | refused | refused |
| ZCDP(rho) | refused | rho | refused |
| RDP | refused | refused | refused |
| TradeOff(f), charged at a delta' that the caller gives | mu(delta')^2 and delta' | refused | refused |

Sums of these are filters: releases may be chosen adaptively, as long as the total stays within a limit that was
fixed in advance. An (epsilon, delta) budget is kept in mu^2 and delta, nine tenths of its delta
for the Gaussian curve and one tenth for deltas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from math import nextafter
from typing import ClassVar

from confide.errors import NoConversion, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, gaussian_delta
from confide.ledger.units import (
    AMOUNT_BITS,
    DELTA_BITS,
    LARGEST,
    ZERO,
    Price,
    amount_of,
    delta_of,
    root_up,
    units_down,
    units_up,
)

__all__ = ["CURRENCIES", "Currency", "checked_delta", "currency_of"]

# The curve is accurate to 1e-9 relative (its own contract), so it is raised by as much.
_UPWARD = 1 + Fraction(1, 10**9)
# That accuracy is promised for mu from 1e-4 to 50: below, the curve is evaluated at 1e-4 (it rises with mu), above
# it is 1.
_MU_LOW, _MU_HIGH = 1e-4, 50.0


class Currency(ABC):
    """One way to count privacy: the price of a statement, the limit of a budget, and whether a total is within it."""

    name: ClassVar[str]
    accepts: ClassVar[str]

    def counted(self, statement: Guarantee, charge_delta: float | None) -> Guarantee:
        """What a statement is counted as: itself, but for a trade-off function, which has a mu for each delta.

        charge_delta: the caller's, a whole number of units (`checked_delta`). Raises `NoConversion`.
        """
        self.cost(statement)
        return statement

    @abstractmethod
    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        """What a statement costs before rounding, never too low: (amount, delta).

        Raises `NoConversion` when no proof leads from the statement into this currency.
        """

    def price(self, statement: Guarantee) -> Price:
        """The cost in units, rounded up."""
        amount, delta = self.cost(statement)
        return Price(units_up(amount, AMOUNT_BITS), units_up(delta, DELTA_BITS))

    def exact(self, statement: Guarantee) -> bool:
        """Whether the cost is rational arithmetic on the statement's own numbers, with no curve in it."""
        return True

    def limit(self, budget: Guarantee) -> Price:
        """The limit in units, rounded down; `PrivacyError` for a budget too small or too large to count."""
        amount, delta = self._limit(budget)
        limit = Price(units_down(amount, AMOUNT_BITS), units_down(delta, DELTA_BITS))
        if limit.amount < 1 or (delta > 0 and limit.delta < 1):
            raise PrivacyError(
                f"the budget {budget} is below the units of a ledger, 2^-40 for mu^2, rho and epsilon and 2^-60 for "
                "delta; nothing would ever fit; give a larger one, for instance GDP(1.0)"
            )
        if limit.amount > LARGEST:
            raise PrivacyError(
                f"the budget {budget} is above what a ledger counts, mu^2, rho or epsilon of 2^22, and would "
                "protect nobody; give one of at most GDP(2048.0)"
            )
        return limit

    def _limit(self, budget: Guarantee) -> tuple[Fraction, Fraction]:
        """The budget's own numbers, exactly."""
        return self.cost(budget)

    def fits(self, limit: Price, total: Price) -> bool:
        """Whether a total is within a limit."""
        return total.amount <= limit.amount and total.delta <= limit.delta

    def covers(self, budget: Guarantee, statement: Guarantee) -> bool:
        """Whether a release alone in its book is within the budget, compared as numbers and not as units."""
        amount, delta = self.cost(statement)
        most, most_delta = self.cost(budget)
        return amount <= most and delta <= most_delta

    def share(self, limit: Price, price: Price) -> tuple[bool, Fraction]:
        """How much of the limit a price takes, to tell the cheapest of several; sorts, smaller is cheaper."""
        if price.delta and not limit.delta:
            return True, Fraction(0)
        return False, max(Fraction(price.amount, limit.amount), Fraction(price.delta, limit.delta or 1))

    def remaining(self, limit: Price, spent: Price) -> Price:
        """What is left, never below nothing."""
        return Price(max(limit.amount - spent.amount, 0), max(limit.delta - spent.delta, 0))

    @abstractmethod
    def text(self, total: Price) -> str:
        """A total in the reader's own numbers."""

    def standing(self, limit: Price, total: Price) -> str:
        """A total as a book shows it."""
        return self.text(total)


class Gaussian(Currency):
    """Delta-approximate Gaussian differential privacy: mu^2 and delta add up (core of Dong, Roth, Su 2022)."""

    name = "GDP"
    accepts = "GDP, PureDP and ApproxDP statements, and trade-off functions at a charge_delta"

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


class Concentrated(Currency):
    """Zero-concentrated differential privacy: rho adds up (Bun and Steinke 2016)."""

    name = "ZCDP"
    accepts = "ZCDP and PureDP statements, and GDP statements with delta = 0"

    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        match statement:
            case ZCDP():
                return Fraction(statement.rho), Fraction(0)
            case PureDP():
                return Fraction(statement.epsilon) ** 2 / 2, Fraction(0)
            case GDP() if statement.delta == 0:
                return Fraction(statement.mu) ** 2 / 2, Fraction(0)
        raise NoConversion(f"no proof leads from {type(statement).__name__}, or from one with a delta, to ZCDP(rho)")

    def text(self, total: Price) -> str:
        return f"rho = {float(amount_of(total.amount)):.6g}"


class Pure(Currency):
    """Pure differential privacy: epsilon adds up."""

    name = "PureDP"
    accepts = "PureDP statements"

    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        if isinstance(statement, PureDP):
            return Fraction(statement.epsilon), Fraction(0)
        raise NoConversion(f"no proof leads from {type(statement).__name__} to PureDP(epsilon)")

    def text(self, total: Price) -> str:
        return f"epsilon = {float(amount_of(total.amount)):.6g}"


class Approximate(Gaussian):
    """An (epsilon, delta) budget over a book kept in mu^2 and delta.

    The budget's delta is split once and for all: a tenth for deltas of releases, the rest for the Gaussian curve. A total
    fits when delta(epsilon; sqrt(mu^2)), evaluated upward, is within the one part and the sum of deltas within the other.
    The sum of both against the whole would be no filter: an analyst who chooses between more mu and more delta after
    seeing outcomes can reach nearly twice the budget's delta (docs/ledger.md). Here a limit is (epsilon, delta), a total is
    (mu^2, delta).
    """

    name = "ApproxDP"

    def _limit(self, budget: Guarantee) -> tuple[Fraction, Fraction]:
        assert isinstance(budget, ApproxDP)
        return Fraction(budget.epsilon), Fraction(budget.delta)

    def curve(self, epsilon: int, amount: int) -> int:
        """delta(epsilon; mu) in units, never too low: epsilon is rounded down, mu and the result up."""
        if amount == 0:
            return 0
        mu = max(root_up(amount_of(amount)), _MU_LOW)
        if mu > _MU_HIGH:
            return 1 << DELTA_BITS
        point = float(amount_of(epsilon))
        if Fraction(point) > amount_of(epsilon):
            point = nextafter(point, 0.0)
        # A curve that underflows to 0.0 is still positive: one unit.
        return max(units_up(Fraction(gaussian_delta(point, mu)) * _UPWARD, DELTA_BITS), 1)

    @staticmethod
    def leaks(limit: Price) -> int:
        """The part of the budget's delta that is kept for deltas of releases, in units."""
        return limit.delta // 10

    def fits(self, limit: Price, total: Price) -> bool:
        leaks = self.leaks(limit)
        within = total.amount <= LARGEST and total.delta <= leaks
        return within and self.curve(limit.amount, total.amount) <= limit.delta - leaks

    def covers(self, budget: Guarantee, statement: Guarantee) -> bool:
        """Alone in its book a statement needs no split: nothing was seen before it, and nothing fits after it.

        A statement (epsilon', delta') within the budget's own pair is within it, with no curve between.
        """
        assert isinstance(budget, ApproxDP)
        match statement:
            case ApproxDP():
                return statement.epsilon <= budget.epsilon and statement.delta <= budget.delta
            case PureDP():
                return statement.epsilon <= budget.epsilon
            case GDP():
                limit, price = self.limit(budget), self.price(statement)
                whole = price.amount <= LARGEST
                return whole and self.curve(limit.amount, price.amount) + price.delta <= limit.delta
        return False

    def share(self, limit: Price, price: Price) -> tuple[bool, Fraction]:
        leaks = self.leaks(limit)
        curve = Fraction(self.curve(limit.amount, price.amount), limit.delta - leaks)
        if price.delta and not leaks:
            return True, Fraction(0)
        return False, max(curve, Fraction(price.delta, leaks or 1))

    def remaining(self, limit: Price, spent: Price) -> Price:
        """What is left of mu^2 and of delta, each in its own part of the budget."""
        if not self.fits(limit, spent):
            return ZERO
        low, high = spent.amount, spent.amount + 1
        while high < LARGEST and self.fits(limit, Price(high, spent.delta)):
            low, high = high, spent.amount + 2 * (high - spent.amount)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(limit, Price(middle, spent.delta)) else (low, middle)
        return Price(low - spent.amount, self.leaks(limit) - spent.delta)

    def standing(self, limit: Price, total: Price) -> str:
        """A total in both readings: on the budget's own curve, and as it is counted.

        A release that is alone may take the whole pair, and counts as more than the curve has room for: no overrun, so no
        delta beside a smaller one.
        """
        if not self.fits(limit, total):
            return f"the whole budget (counted as {self.text(total)})"
        used = float(delta_of(self.curve(limit.amount, total.amount)))
        leaks, epsilon = self.leaks(limit), float(amount_of(limit.amount))
        text = f"delta {used:.3g} of {float(delta_of(limit.delta - leaks)):.3g} at epsilon = {epsilon:.6g}"
        if total.delta:
            text += (
                f", and {float(delta_of(total.delta)):.3g} of {float(delta_of(leaks)):.3g} for releases with a delta"
            )
        return f"{text} ({self.text(total)})"


@lru_cache(maxsize=4096)
def _at_delta(statement: TradeOff, delta: float) -> Guarantee:
    """The GDP statement of a trade-off function at a delta: a search on its curve, remembered for `verify`."""
    return statement.to_gdp(delta=delta)


def checked_delta(charge_delta: float | None) -> float | None:
    """The delta at which trade-off functions are charged: whole units, rounded down, so that the entry says it exactly.

    Raises `PrivacyError` unless it is None, 0, or from one unit of 2^-60 to below 1.

    >>> checked_delta(1e-6) <= 1e-6, checked_delta(None)
    (True, None)
    """
    if charge_delta is None:
        return None
    real = isinstance(charge_delta, (int, float)) and not isinstance(charge_delta, bool)
    if not real or not (charge_delta == 0 or 2.0**-DELTA_BITS <= charge_delta < 1):
        raise PrivacyError(
            f"charge_delta must be 0 or a number from 2^-60 to below 1, got {charge_delta!r}; a trade-off function is "
            "charged as the GDP(mu, charge_delta) that follows from it, for instance charge_delta=1e-6"
        )
    return float(delta_of(units_down(charge_delta, DELTA_BITS)))


CURRENCIES: dict[str, Currency] = {
    currency.name: currency for currency in (Gaussian(), Concentrated(), Pure(), Approximate())
}


def currency_of(budget: Guarantee) -> Currency:
    """The currency of a book that is opened with this budget; `PrivacyError` for anything that is no guarantee.

    >>> currency_of(GDP(1.0)).name
    'GDP'
    """
    found = CURRENCIES.get(type(budget).__name__) if isinstance(budget, (GDP, ZCDP, PureDP, ApproxDP)) else None
    if found is None:
        raise PrivacyError(
            "a budget must be GDP(mu), GDP(mu, delta), ApproxDP(epsilon, delta), ZCDP(rho) or PureDP(epsilon), got "
            f"{type(budget).__name__}; for instance GDP(2.0)"
        )
    return found
