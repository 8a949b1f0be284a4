"""What a ledger counts in, and what each guarantee costs there.

| guarantee of the release | GDP | (epsilon, delta), as a pair | ZCDP | PureDP |
| --- | --- | --- | --- | --- |
| GDP | mu * mu | at a delta' of its curve | mu * mu/2 | refused |
| GDP, delta > 0 | mu * mu and delta | at a delta' of its curve | refused | refused |
| PureDP(epsilon) | what it leaves | epsilon | epsilon^2/2 | epsilon |
| ApproxDP(epsilon, delta) | what PureDP(epsilon) leaves, and delta | epsilon and delta | refused | refused |
| ZCDP(rho) | refused | at a delta' of its curve | rho | refused |
| RDP | refused | at a delta' of its curve | refused | refused |
| TradeOff(f) | what it leaves, or mu(delta')^2 and delta' | at a delta' of its curve | refused | refused |

delta' is the caller's `charge_delta`. Sums of these are filters: releases may be chosen adaptively, as long as the total
stays within a limit that was fixed in advance (docs/explain/ledger.md). In a Gaussian ledger (`currencies`) a release that is not
Gaussian is charged by what remains after it, or by the Gaussian curve that covers it where that costs less. An
ledger of approximate DP is a pair and may be converted to Gaussian DP once (`currencies`). This module has what all
share, and the two that are plain sums of one number.

Privacy in whole units: a charge is rounded up, a limit down, both from the exact value of the float.

Sums of integers have no order and no rounding, so the total of a ledger is the same on every machine and can be
checked by anyone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, nextafter
from typing import ClassVar

from confide.errors import NoConversion, PlanError, PrivacyError
from confide.guarantees import GDP, ZCDP, Guarantee, PureDP
from confide.guarantees.validation import is_number

#: mu^2, rho and epsilon are counted in units of 2^-40 (9.1e-13).
AMOUNT_BITS = 40
#: delta is counted in units of 2^-60 (8.7e-19).
DELTA_BITS = 60
#: A price or a limit through a curve may differ by this share of itself between versions of the numerical library.
CURVE_SLACK = Fraction(1, 10**8)
#: The largest total that a ledger holds: half of what an SQL BIGINT can, so that a sum of two never overflows.
LARGEST = 2**62


@dataclass(frozen=True)
class Price:
    """An amount of privacy in whole units: `amount` (the square of mu, rho or epsilon) in 2^-40, `delta` in 2^-60.

    >>> Price(1, 2) + Price(3, 4)
    Price(amount=4, delta=6)
    """

    amount: int
    delta: int

    def __add__(self, other: Price) -> Price:
        return Price(self.amount + other.amount, self.delta + other.delta)


ZERO = Price(0, 0)


def units_up(value: Fraction | float, bits: int) -> int:
    """The smallest number of units of 2^-bits that is at least the exact value.

    >>> units_up(0.25, 2), units_up(0.26, 2)
    (1, 2)
    """
    exact = Fraction(value) * (1 << bits)
    return -(-exact.numerator // exact.denominator)


def units_down(value: Fraction | float, bits: int) -> int:
    """The largest number of units of 2^-bits that is at most the exact value.

    >>> units_down(0.25, 2), units_down(0.49, 2)
    (1, 1)
    """
    exact = Fraction(value) * (1 << bits)
    return exact.numerator // exact.denominator


def amount_of(units: int) -> Fraction:
    """The exact square of mu, rho or epsilon of a number of units."""
    return Fraction(units, 1 << AMOUNT_BITS)


def delta_of(units: int) -> Fraction:
    """The exact delta of a number of units."""
    return Fraction(units, 1 << DELTA_BITS)


def delta_text(total: Price) -> str:
    """The delta of a total, to be written behind its amount; "" where it has none.

    >>> delta_text(Price(1, 0)), delta_text(Price(1, 1 << 40))
    ('', ', delta = 9.54e-07')
    """
    return f", delta = {float(delta_of(total.delta)):.3g}" if total.delta else ""


def root_down(value: Fraction) -> float:
    """The largest float whose exact square is at most `value`.

    >>> root_down(Fraction(1, 4)), Fraction(root_down(Fraction(2))) ** 2 <= 2
    (0.5, True)
    """
    root = float(Fraction(isqrt(value.numerator * value.denominator * 4**64), value.denominator * 2**64))
    while Fraction(root) ** 2 > value:
        root = nextafter(root, 0.0)
    return root


def root_up(value: Fraction) -> float:
    """The smallest float found from below whose exact square is at least `value`.

    >>> root_up(Fraction(1, 4)), Fraction(root_up(Fraction(2))) ** 2 >= 2
    (0.5, True)
    """
    root = root_down(value)
    return root if Fraction(root) ** 2 == value else nextafter(root, float("inf"))


class Currency(ABC):
    """One way to count privacy: the price of a statement, the limit of a budget, and whether a total is within it.

    name: of the budget's kind; state: which of the rules of that kind.
    """

    name: ClassVar[str]
    state: ClassVar[str] = ""
    accepts: ClassVar[str]

    def offer(self, statement: Guarantee, charge_delta: float | None) -> tuple[Guarantee, Price] | None:
        """What a statement is counted as, and its price in units, rounded up; None where no proof leads here.

        charge_delta: the caller's, a whole number of units (`checked_delta`).
        """
        try:
            counted = self.counted(statement, charge_delta)
        except NoConversion:
            return None
        return counted, self.price(counted)

    def by_what_remains(self, statement: Guarantee, left: Price) -> Price | None:
        """The price of a statement by what remains after it of what is left; None where it has no such price."""
        return None

    def upholds(self, statement: Guarantee, charge_delta: float | None, left: Price, price: Price) -> bool:
        """Whether an entry's price is what such a statement costs, or what it is proved to leave."""
        try:
            counted = self.counted(statement, charge_delta)
        except NoConversion:
            return False
        return self.agrees(statement, price, self.price(counted))

    def agrees(self, statement: Guarantee, price: Price, due: Price) -> bool:
        """Whether a price is the one due, up to what two machines may differ in where a curve is between."""
        if self.exact(statement):
            return price == due
        return price.delta == due.delta and abs(price.amount - due.amount) <= 1 + due.amount * self.slack(statement)

    def slack(self, statement: Guarantee) -> Fraction:
        """By what share of itself a price through a curve may differ between two machines."""
        return CURVE_SLACK

    def counted(self, statement: Guarantee, charge_delta: float | None) -> Guarantee:
        """What a statement is counted as: itself, but for one that has a point for each delta. `NoConversion`."""
        self.cost(statement)
        return statement

    @abstractmethod
    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        """What a statement costs before rounding, never too low: (amount, delta).

        Raises `NoConversion` when no proof leads from the statement into this unit of account.
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
                f"the budget {budget} is below the units of a ledger, 2^-40 for the square of mu, rho and epsilon and 2^-60 for "
                "delta; nothing would ever fit",
                "give a larger one, for instance GDP(1.0)",
            )
        if limit.amount > LARGEST:
            raise PrivacyError(
                f"the budget {budget} is above what a ledger counts, 2^22 for the square of mu, rho or epsilon, and would "
                "protect nobody",
                "give one of at most GDP(2048.0)",
            )
        return limit

    def limit_after(self, budget: Guarantee, stayed: Price, short: Price = ZERO) -> Price:
        """The limit of a budget for a ledger that has spent.

        stayed: before it was converted, which most never are. short: by how much its first charge is below its cost.
        """
        limit = self.limit(budget)
        return Price(max(limit.amount - short.amount, 0), max(limit.delta - short.delta, 0))

    def conversion(self, dataset: str, left: Price) -> tuple[Currency, Price]:
        """The currency and the limit of what is left of an account once it is converted; `PlanError` where there is nothing to."""
        raise PlanError(
            f"dataset {dataset!r} is counted in {self.name}, and only a ledger of approximate DP is converted",
            "leave the conversion out",
        )

    def _limit(self, budget: Guarantee) -> tuple[Fraction, Fraction]:
        """The budget's own numbers, exactly."""
        return self.cost(budget)

    def fits(self, limit: Price, total: Price) -> bool:
        """Whether a total is within a limit."""
        return total.amount <= limit.amount and total.delta <= limit.delta

    def covers(self, budget: Guarantee, statement: Guarantee) -> bool:
        """Whether a release alone in its ledger is within the budget, compared as numbers and not as units."""
        try:
            amount, delta = self.cost(statement)
        except NoConversion:  # a curve has no number of its own
            return False
        most, most_delta = self.cost(budget)
        return amount <= most and delta <= most_delta

    def price_alone(self, budget: Guarantee, statement: Guarantee) -> Price:
        """The cost of a release that is alone in its ledger and within the budget as a number."""
        return self.price(statement)

    def price_of_rest(self, budget: Guarantee, statement: Guarantee) -> Price:
        """What a statement within the budget takes from it, so that the exact rest, rounded down, is what is left."""
        rest = [whole - part for whole, part in zip(self.cost(budget), self.cost(statement), strict=True)]
        limit = self.limit(budget)
        return Price(limit.amount - units_down(rest[0], AMOUNT_BITS), limit.delta - units_down(rest[1], DELTA_BITS))

    def upholds_alone(self, budget: Guarantee, statement: Guarantee, price: Price) -> bool:
        """Whether an entry's price is that of a release that is alone in its ledger."""
        return self.agrees(statement, price, self.price_alone(budget, statement))

    def short(self, statement: Guarantee, charge_delta: float | None, price: Price) -> Price:
        """By how much the price of a first charge may be below its exact cost: one unit of what was compared exactly."""
        offer = self.offer(statement, charge_delta)
        if offer is None or price.delta > offer[1].delta:  # another point of its curve, which pays in delta
            return ZERO
        due = offer[1]
        return Price(int(due.amount - price.amount == 1), int(due.delta - price.delta == 1))

    def share(self, limit: Price, price: Price) -> tuple[bool, Fraction]:
        """How much of the limit a price takes, to find the smallest of several; it sorts."""
        if price.delta and not limit.delta:
            return True, Fraction(0)
        return False, max(Fraction(price.amount, limit.amount or 1), Fraction(price.delta, limit.delta or 1))

    @abstractmethod
    def guarantee(self, total: Price) -> Guarantee | None:
        """The guarantee of releases that add up to a total; None where nothing was charged."""

    def remaining(self, limit: Price, spent: Price) -> Price:
        """What is left, never below nothing."""
        return Price(max(limit.amount - spent.amount, 0), max(limit.delta - spent.delta, 0))

    @abstractmethod
    def text(self, total: Price) -> str:
        """A total in the reader's own numbers."""

    def standing(self, limit: Price, total: Price) -> str:
        """A total as a ledger shows it."""
        return self.text(total)


class Concentrated(Currency):
    """Zero-concentrated differential privacy: rho adds up (Bun and Steinke 2016)."""

    name = "ZCDP"
    accepts = "ZCDP and PureDP statements, and GDP statements with delta 0"

    def cost(self, statement: Guarantee) -> tuple[Fraction, Fraction]:
        match statement:
            case ZCDP():
                return Fraction(statement.rho), Fraction(0)
            case PureDP():
                return Fraction(statement.epsilon) ** 2 / 2, Fraction(0)
            case GDP() if statement.delta == 0:
                return Fraction(statement.mu) ** 2 / 2, Fraction(0)
        raise NoConversion(f"no proof leads from {type(statement).__name__}, or from one with a delta, to ZCDP(rho)")

    def guarantee(self, total: Price) -> Guarantee | None:
        return ZCDP(float(amount_of(total.amount))) if total.amount else None

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

    def guarantee(self, total: Price) -> Guarantee | None:
        return PureDP(float(amount_of(total.amount))) if total.amount else None

    def text(self, total: Price) -> str:
        return f"epsilon = {float(amount_of(total.amount)):.6g}"


def checked_delta(charge_delta: float | None) -> float | None:
    """The delta at which a curve is charged: whole units, rounded down, so that the entry says it exactly.

    Raises `PrivacyError` unless it is None, 0, or from one unit of 2^-60 to below 1.

    >>> checked_delta(1e-6) <= 1e-6, checked_delta(None)
    (True, None)
    """
    if charge_delta is None:
        return None
    real = is_number(charge_delta)
    if not real or not (charge_delta == 0 or 2.0**-DELTA_BITS <= charge_delta < 1):
        raise PrivacyError(
            f"charge_delta must be 0 or a number from 2^-60 to below 1, got {charge_delta!r}; a curve is charged at the "
            "point of it that has this delta, for instance charge_delta=1e-6"
        )
    return float(delta_of(units_down(charge_delta, DELTA_BITS)))
