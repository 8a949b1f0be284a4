"""Whatever is asked, in whatever order, the exact sum of what was granted never exceeds the budget."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path

import mpmath
from hypothesis import given, settings, strategies as st
from tests.ledger.ledger_workers import charge

from confide.errors import BudgetExceeded, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger import Ledger
from confide.ledger.account import Account
from confide.ledger.currencies import currency_of
from confide.ledger.currency import ZERO, Price
from confide.ledger.decision import choose

sizes = st.one_of(st.floats(1e-9, 3.0), st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0**-20, 2.0**-21]))
deltas = st.sampled_from([0.0, 1e-30, 1e-18, 1e-7, 3e-7, 1e-6, 0.01])
budgets = st.one_of(
    st.builds(GDP, st.floats(0.01, 3.0), st.sampled_from([0.0, 1e-6, 0.01])),
    st.builds(ZCDP, st.floats(0.01, 3.0)),
    st.builds(PureDP, st.floats(0.01, 3.0)),
    st.builds(ApproxDP, st.floats(0.05, 3.0), st.sampled_from([1e-9, 1e-6, 0.01])),
)
requests = st.lists(
    st.one_of(
        st.builds(GDP, sizes, deltas),
        st.builds(ZCDP, sizes),
        st.builds(PureDP, sizes),
        st.builds(ApproxDP, sizes, deltas.filter(bool)),
    ),
    min_size=1,
    max_size=12,
)


def exact_cost(name: str, statement: Guarantee) -> tuple[Fraction, Fraction]:
    """What a statement costs by the table of `currency.py`, written again from it."""
    delta = Fraction(getattr(statement, "delta", 0.0))
    match name, statement:
        case (("PureDP" | "ApproxDP"), (PureDP() | ApproxDP())):
            return Fraction(statement.epsilon), delta
        case "ApproxDP", _:
            return Fraction(10**9), delta  # no number of its own: charged at a point of its curve
        case "ZCDP", ZCDP():
            return Fraction(statement.rho), delta
        case "ZCDP", PureDP():
            return Fraction(statement.epsilon) ** 2 / 2, delta
        case "ZCDP", GDP():
            return Fraction(statement.mu) ** 2 / 2, delta
        case _, GDP():
            return Fraction(statement.mu) ** 2, delta
        case _, (PureDP() | ApproxDP()):
            with mpmath.workdps(30):
                p = 1 / (1 + mpmath.exp(mpmath.mpf(statement.epsilon)))
                mu = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
                return Fraction(int(mpmath.floor(mu**2 * 2**90)), 2**90), delta
    raise AssertionError((name, statement))


def fair(account: Account, statement: Guarantee, price: Price) -> bool:
    """A price is the exact cost of the statement, or one that the statement is proved to leave or to have on its curve."""
    amount, delta = exact_cost(account.currency.name, statement)
    enough = price.amount >= amount * 2**40 and price.delta >= delta * 2**60
    if account.holds_alone(statement) and price == account.currency.price_alone(account.budget, statement):
        return True  # alone, the exact rest of the budget is left
    return enough or account.currency.upholds(statement, None, account.left, price)


def within(budget: Guarantee, granted: list[tuple[Guarantee, Price]]) -> bool:
    """The sum of the prices against the exact budget; a release that is alone also by its own numbers."""
    name = type(budget).__name__
    most, most_delta = exact_cost(name, budget)
    if len(granted) == 1:
        amount, delta = exact_cost(name, granted[0][0])
        if amount <= most and delta <= most_delta:
            return True
    prices = [price for _, price in granted]
    amount, delta = Fraction(sum(p.amount for p in prices), 2**40), Fraction(sum(p.delta for p in prices), 2**60)
    return amount <= most and delta <= most_delta


@settings(max_examples=80, deadline=None)
@given(budgets, requests)
def test_the_exact_sum_never_exceeds_the_budget(budget: Guarantee, wanted: list[Guarantee]) -> None:
    currency = currency_of(budget)
    full = budget.resolve("add-remove")
    book = Account("d", currency, "add-remove", "record", "central", full, currency.limit(full), ZERO, 1, "0" * 64)
    granted: list[tuple[Guarantee, Price]] = []
    for statement in wanted:
        try:
            chosen = choose(book, (statement.resolve("add-remove"),))
        except (BudgetExceeded, PrivacyError):
            continue
        granted.append((chosen.statement, chosen.price))
        assert chosen.price.amount + chosen.price.delta >= 1  # nothing is free
        assert fair(book, chosen.statement, chosen.price)
        book = book.charged(chosen.price)
        assert within(budget, granted)
        assert len(granted) == 1 or currency.fits(book.limit, book.spent)


@settings(max_examples=12, deadline=None)
@given(budgets, requests)
def test_what_a_book_granted_is_what_it_says_and_verifies(budget: Guarantee, wanted: list[Guarantee]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger.create(Path(folder) / "ledger.db", dataset="survey", budget=budget)
        granted = 0
        for statement in wanted:
            try:
                charge(book, statement.resolve("add-remove"))
            except (BudgetExceeded, PrivacyError):
                continue
            granted += 1
        found = book.verify()
        assert found.ok, found.problems
        assert found.rows == 1 + granted
        book.close()
