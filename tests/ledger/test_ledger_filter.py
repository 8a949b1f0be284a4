"""Whatever is asked, in whatever order, the exact sum of what was granted never exceeds the budget."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_workers import charge

from confide.errors import BudgetExceeded, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.ledger import Ledger
from confide.ledger.account import Account
from confide.ledger.currency import currency_of
from confide.ledger.decision import choose
from confide.ledger.units import ZERO

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
        case "PureDP", PureDP():
            return Fraction(statement.epsilon), delta
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


def within(budget: Guarantee, granted: list[Guarantee]) -> bool:
    """The exact sum against the exact budget; for (epsilon, delta) on the curve with 50 digits."""
    name = type(budget).__name__
    costs = [exact_cost(name, statement) for statement in granted]
    amount, delta = sum((a for a, _ in costs), Fraction(0)), sum((d for _, d in costs), Fraction(0))
    if isinstance(budget, ApproxDP):
        if len(granted) == 1 and isinstance(granted[0], (ApproxDP, PureDP)) and granted[0].epsilon <= budget.epsilon:
            return delta <= Fraction(budget.delta)  # the release's own pair, without the curve
        with mpmath.workdps(50):
            mu, e = mpmath.sqrt(mpmath.mpf(amount.numerator) / amount.denominator), mpmath.mpf(budget.epsilon)
            if mu == 0:
                return delta <= Fraction(budget.delta)
            used = mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)
            return bool(used + mpmath.mpf(delta.numerator) / delta.denominator <= mpmath.mpf(budget.delta))
    return amount <= exact_cost(name, budget)[0] and delta <= exact_cost(name, budget)[1]


@settings(max_examples=150, deadline=None)
@given(budgets, requests)
def test_the_exact_sum_never_exceeds_the_budget(budget: Guarantee, wanted: list[Guarantee]) -> None:
    currency = currency_of(budget)
    full = budget.resolve("add-remove")
    book = Account("d", currency, "add-remove", "record", "central", full, currency.limit(full), ZERO, 1, "0" * 64)
    granted: list[Guarantee] = []
    for statement in wanted:
        try:
            chosen = choose(book, (statement.resolve("add-remove"),))
        except (BudgetExceeded, PrivacyError):
            continue
        granted.append(chosen.statement)
        assert chosen.price.amount >= 1  # nothing is free
        book = replace(book, spent=book.spent + chosen.price)
        assert within(budget, granted)
        assert len(granted) == 1 or currency.fits(book.limit, book.spent)


@settings(max_examples=15, deadline=None)
@given(budgets, requests)
def test_what_a_book_granted_is_what_it_says_and_verifies(budget: Guarantee, wanted: list[Guarantee]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = Ledger.create(Path(folder) / "book.db", dataset="survey", budget=budget)
        granted = []
        for statement in wanted:
            try:
                granted.append(charge(book, statement.resolve("add-remove")).statement)
            except (BudgetExceeded, PrivacyError):
                continue
        assert within(budget, granted)
        found = book.verify()
        assert found.ok, found.problems
        assert found.rows == 1 + len(granted)
        book.close()
