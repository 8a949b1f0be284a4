"""What each guarantee costs in each book, which statement is charged, and which are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from hypothesis import given, settings, strategies as st
from tests.ledger.ledger_workers import ABOUT
from tests.messages import refuses

from confide.errors import BudgetExceeded, NoConversion, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff, calibrate_gaussian
from confide.guarantees.curves import Curve, gaussian, laplace, symmetric_laplace
from confide.ledger import Ledger
from confide.ledger.account import Account
from confide.ledger.chain import charge_delta_of
from confide.ledger.currencies import CURRENCIES, currency_at, currency_of
from confide.ledger.currency import ZERO, Currency, Price, checked_delta
from confide.ledger.decision import choose

GAUSSIAN, CONCENTRATED, PURE, PAIR = (CURRENCIES[name] for name in ("GDP", "ZCDP", "PureDP", "ApproxDP"))
CONVERTED = currency_at("ApproxDP", "gaussian")


def account(
    budget: Guarantee, spent: Price = ZERO, relation: str = "add-remove", currency: Currency | None = None
) -> Account:
    full, currency = budget.resolve(relation), currency or currency_of(budget)
    return Account("survey", currency, relation, "record", "central", full, currency.limit(full), spent, 1, "0" * 64)


def full(statement: Guarantee) -> Guarantee:
    return statement.resolve("add-remove")


def kink(epsilon: float) -> mpmath.mpf:
    """mu(epsilon) = -2 Phi^{-1}(1/(1 + e^epsilon)), to 40 digits."""
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        return -2 * mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def curve(epsilon: float, mu: mpmath.mpf) -> mpmath.mpf:
    """delta(epsilon; mu), to 60 digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize(
    ("currency", "statement", "amount", "delta"),
    [
        (GAUSSIAN, GDP(0.5), 0.25, 0),
        (GAUSSIAN, GDP(0.5, 0.125), 0.25, 0.125),
        (CONVERTED, GDP(0.5, 0.125), 0.25, 0.125),
        (CONCENTRATED, GDP(0.5), 0.125, 0),
        (CONCENTRATED, PureDP(0.5), 0.125, 0),
        (CONCENTRATED, ZCDP(0.5), 0.5, 0),
        (PURE, PureDP(0.5), 0.5, 0),
    ],
)
def test_exact_conversions(currency: Currency, statement: Guarantee, amount: float, delta: float) -> None:
    assert currency.cost(statement) == (Fraction(amount), Fraction(delta))
    assert currency.exact(statement)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_pure_and_approximate_statements_cost_the_kink_never_less(epsilon: float, delta: float) -> None:
    statement = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    amount, paid = GAUSSIAN.cost(statement)
    exact = kink(epsilon) ** 2
    assert exact <= mpmath.mpf(amount.numerator) / amount.denominator <= exact * (1 + mpmath.mpf(10) ** -9)
    assert paid == Fraction(delta)


@pytest.mark.parametrize(
    ("currency", "statement"),
    [
        (GAUSSIAN, ZCDP(0.5)),
        (CONCENTRATED, GDP(1.0, 1e-9)),
        (CONCENTRATED, ApproxDP(1.0, 1e-6)),
        (PURE, GDP(1.0)),
        (PURE, ApproxDP(1.0, 1e-6)),
        (PURE, ZCDP(0.5)),
    ],
)
def test_refused_conversions(currency: Currency, statement: Guarantee) -> None:
    with pytest.raises(NoConversion):
        currency.cost(statement)
    budget = {"GDP": GDP(3.0), "ApproxDP": ApproxDP(3.0, 1e-5), "ZCDP": ZCDP(3.0), "PureDP": PureDP(3.0)}[currency.name]
    with refuses(NoConversion):
        choose(account(budget), (full(statement),))


def test_the_cheapest_statement_is_charged_in_any_order() -> None:
    """ApproxDP(1, 1e-6) by its own conversion costs 18 times the mu^2 of the Gaussian release that meets it, 27 by its curve."""
    requested = full(ApproxDP(1.0, 1e-6))
    native = full(GDP(calibrate_gaussian(requested)))
    for statements in ((native, requested), (requested, native)):
        chosen = choose(account(GDP(2.0, 1e-5)), statements)
        assert chosen.statement == native
    alone = choose(account(GDP(2.0, 1e-5)), (requested,)).price
    assert 17 * GAUSSIAN.price(native).amount < alone.amount < 20 * GAUSSIAN.price(native).amount
    assert GAUSSIAN.price(requested).amount > 26 * GAUSSIAN.price(native).amount


def test_statements_that_do_not_convert_are_passed_over() -> None:
    statements = (full(ZCDP(0.5)), full(GDP(1.0)), full(PureDP(3.0)))
    assert choose(account(GDP(3.0)), statements).statement == full(GDP(1.0))
    assert choose(account(ZCDP(3.0)), statements).price.amount == 2**39
    assert choose(account(PureDP(3.0)), statements).statement == full(PureDP(3.0))


def test_of_several_statements_one_that_fits_is_taken() -> None:
    dear_in_delta, dear_in_mu = full(GDP(0.1, 1e-5)), full(GDP(1.9))
    book = account(GDP(2.0, 1e-5), Price(0, GAUSSIAN.price(full(GDP(1.0, 1e-6))).delta))
    assert choose(book, (dear_in_delta, dear_in_mu)).statement == dear_in_mu


def test_without_a_budget_of_delta_a_delta_never_fits() -> None:
    with refuses(BudgetExceeded):
        choose(account(GDP(2.0)), (full(GDP(0.5, 1e-30)),))
    assert choose(account(GDP(2.0)), (full(GDP(0.5, 1e-30)), full(GDP(0.6)))).statement == full(GDP(0.6))


@pytest.mark.parametrize(
    "budget", [GDP(0.3), GDP(1.7, 1e-6), ZCDP(0.1), PureDP(0.7), ApproxDP(0.7, 3e-7)], ids=lambda budget: str(budget)
)
def test_one_release_may_use_up_any_budget_and_then_nothing_fits(budget: Guarantee) -> None:
    """Rounding a charge up and the limit down must not make a budget of 0.3 refuse a release of 0.3."""
    statements: tuple[Guarantee, ...] = (full(budget),)
    if isinstance(budget, ApproxDP):
        statements = (full(GDP(calibrate_gaussian(budget))), full(budget))
    book = account(budget)
    chosen = choose(book, statements)
    spent = replace(book, spent=chosen.price)
    tiny = full(PureDP(1e-6))
    for again in (statements, (tiny,)):
        with pytest.raises(BudgetExceeded):
            choose(spent, again)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([GDP(1.0), GDP(1.0, 1e-6), ZCDP(0.5), PureDP(1.0), ApproxDP(1.0, 1e-6)]),
    st.floats(0.0, 1.0),
    st.sampled_from([PureDP(2.0), GDP(5.0), GDP(0.5, 1e-3), ZCDP(0.9), ApproxDP(0.5, 1e-3)]),
)
def test_the_call_that_is_offered_fits(budget: Guarantee, share: float, statement: Guarantee) -> None:
    book = account(budget)
    whole = book.currency.remaining(book.limit, ZERO)
    book = replace(book, spent=Price(int(whole.amount * share), 0))
    try:
        choose(book, (full(statement),))
    except NoConversion:
        return
    except BudgetExceeded as error:
        offered = re.search(r"privacy=cf\.(\w+)\(([^)]*)\)", str(error))
        if offered is None:
            assert "nothing fits any more" in str(error) or "delta left" in str(error)
        else:
            kind = {"GDP": GDP, "PureDP": PureDP, "ZCDP": ZCDP, "ApproxDP": ApproxDP}[offered[1]]
            fitting = full(kind(*(float(number) for number in offered[2].split(", "))))
            assert type(fitting) is (
                ApproxDP if isinstance(budget, ApproxDP) and not PAIR.exact(statement) else type(statement)
            )
            assert choose(book, (fitting,)).statement == fitting


@pytest.mark.parametrize(
    "statement",
    [
        GDP(1.0),
        GDP(1.0, relation="substitute"),
        GDP(1.0, relation="add-remove", unit="attribute"),
        GDP(1.0, relation="add-remove", trust="local"),
    ],
)
def test_other_terms_are_refused_even_beside_a_good_statement(statement: Guarantee) -> None:
    with refuses(PrivacyError):
        choose(account(GDP(3.0)), (full(GDP(0.5)), statement))


def test_the_refusal_under_substitute_names_the_general_conversion() -> None:
    with refuses(PrivacyError):
        choose(account(GDP(3.0), relation="substitute"), (full(GDP(1.0)),))


@pytest.mark.parametrize("statements", [(), GDP(1.0, relation="add-remove"), ("GDP(1)",), (1.0,)])
def test_anything_but_statements_is_refused(statements: object) -> None:
    with refuses(PrivacyError):
        choose(account(GDP(3.0)), statements)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [GDP(2.0**-21), ZCDP(2.0**-41), GDP(1.0, 2.0**-61), ApproxDP(1.0, 1e-19)])
def test_a_budget_below_one_unit_is_refused(budget: Guarantee) -> None:
    with refuses(PrivacyError):
        currency_of(budget).limit(budget)


def test_a_budget_beyond_counting_is_refused() -> None:
    assert GAUSSIAN.limit(GDP(2048.0)) == Price(2**62, 0)
    with refuses(PrivacyError):
        GAUSSIAN.limit(GDP(2049.0))


def test_the_error_carries_its_numbers_as_text() -> None:
    book = account(GDP(1.0), Price(2**39, 0))
    with pytest.raises(BudgetExceeded) as caught:
        choose(book, (full(GDP(1.0)),))
    assert caught.value.requested == "mu = 1"
    assert caught.value.spent == caught.value.remaining == "mu = 0.707107"
    assert "privacy=cf.GDP(0.7071)" in str(caught.value)
    assert "ledger.amend(cf.GDP(1.3), reason='...')" in str(caught.value)


MU_1 = float(kink(1.0))  # mu(epsilon) at epsilon = 1
LOCAL = TradeOff(laplace(1.0))
# The whole table: guarantee, (amount, delta) in the GDP, ZCDP and PureDP book, None where the book refuses.
TABLE: list[tuple[Guarantee, tuple[float, float] | None, float | None, float | None]] = [
    (GDP(0.5), (0.25, 0.0), 0.125, None),
    (GDP(0.5, 1e-6), (0.25, 1e-6), None, None),
    (PureDP(1.0), (MU_1**2, 0.0), 0.5, 1.0),
    (ApproxDP(1.0, 1e-6), (MU_1**2, 1e-6), None, None),
    (ZCDP(0.125), None, 0.125, None),
    (RDP((2.0, 8.0), (0.1, 0.4)), None, None, None),
    (LOCAL, (float("nan"), 1e-6), None, None),  # mu(delta')^2 is checked by itself
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[0]))
def test_every_cell_of_the_table(row: tuple[Guarantee, tuple[float, float] | None, float | None, float | None]) -> None:
    statement, in_gdp, in_zcdp, in_pure = row
    costs = {"GDP": in_gdp, "ZCDP": in_zcdp, "PureDP": in_pure}
    budgets = {"GDP": GDP(3.0, 1e-5), "ZCDP": ZCDP(3.0), "PureDP": PureDP(3.0)}
    for name, cost in costs.items():
        book = account(budgets[name])
        if cost is None:
            with pytest.raises(NoConversion) as caught:
                choose(book, (full(statement),), 1e-6)
            works = "open a dataset's ledger with a budget in"
            assert works in str(caught.value)
            continue
        amount, delta = cost if isinstance(cost, tuple) else (cost, 0.0)
        offer = book.currency.offer(full(statement), 1e-6)
        assert offer is not None
        price = offer[1]
        assert (
            choose(book, (full(statement),), 1e-6).price.amount <= price.amount
        )  # or by what remains, where that is less
        if amount == amount:
            assert abs(price.amount - amount * 2**40) <= 1 + 1e-8 * price.amount
        assert 0 <= delta * 2**60 - price.delta + 1 <= 2
    if in_gdp is None:  # what a refused guarantee can do: state an (epsilon, delta) as well
        also = full(statement).to_approx(delta=1e-6)
        assert choose(account(GDP(3.0, 1e-5)), (full(statement), also)).statement == also


@pytest.mark.parametrize("request_", [ApproxDP(1.0, 1e-6), ZCDP(0.02)], ids=str)
def test_a_native_gaussian_is_charged_as_such_whatever_was_asked_for(request_: Guarantee) -> None:
    """The last row of the table: requested ApproxDP or ZCDP, native Gaussian; GDP book mu^2, ZCDP book mu^2/2, else refused."""
    native = full(GDP(calibrate_gaussian(request_)))
    assert isinstance(native, GDP)
    statements = (native, full(request_))
    assert choose(account(GDP(3.0)), statements).price == Price(GAUSSIAN.price(native).amount, 0)
    half = Fraction(native.mu) ** 2 / 2
    assert abs(choose(account(ZCDP(3.0)), statements).price.amount - half * 2**40) <= 2**11
    with pytest.raises(NoConversion):
        choose(account(PureDP(3.0)), statements)


@pytest.mark.parametrize(
    ("budget", "curve", "deltas"),
    [
        (GDP(3.0, 1e-5), laplace(1.0), (1e-7, 1e-6, 3e-6)),
        (ApproxDP(8.0, 1e-4), laplace(1.0), (1e-6,)),
        (GDP(3.0, 1e-5), symmetric_laplace(2, 1.0), (1e-6,)),
    ],
    ids=str,
)
def test_a_trade_off_function_is_charged_at_the_callers_delta(
    budget: Guarantee, curve: Curve, deltas: tuple[float, ...]
) -> None:
    statement = full(TradeOff(curve))
    for delta in deltas:
        offer = account(budget, currency=GAUSSIAN if isinstance(budget, GDP) else CONVERTED).currency.offer(
            statement, checked_delta(delta)
        )
        assert offer is not None
        assert isinstance(offer[0], GDP)
        assert offer[1].delta == int(Fraction(delta) * 2**60)
        assert choose(account(budget), (statement,), delta).statement == statement
        counted = gaussian(offer[0].mu)
        for epsilon in (-2.0, -0.5, 0.0, 0.3, 1.0, 2.5):  # what the book counts bounds what the curve gives away
            assert float(statement.curve.delta(epsilon)) <= float(counted.delta(epsilon)) + delta + 1e-12


def test_the_cheapest_statement_may_be_a_trade_off_function_or_not() -> None:
    curve, pure = full(TradeOff(laplace(1.0))), full(PureDP(1.0))
    assert choose(account(GDP(3.0, 1e-5)), (pure, curve), 1e-6).price.amount <= GAUSSIAN.price(pure).amount
    assert choose(account(GDP(3.0)), (pure, curve), 1e-6).price.delta == 0  # no delta to spend, and none is needed
    assert choose(account(PureDP(3.0)), (pure, curve), 1e-6).statement == pure
    assert choose(account(GDP(3.0)), (pure, curve)).price.delta == 0  # the Laplace curve needs no charge_delta


def test_a_refused_trade_off_function_is_told_what_fits() -> None:
    with refuses(BudgetExceeded):
        choose(account(GDP(0.3, 1e-5)), (full(LOCAL),), 1e-6)


@pytest.mark.parametrize("delta", [-1e-6, 1.0, 2.0, float("nan"), 2.0**-61, "1e-6", True])
def test_an_impossible_charge_delta_is_refused(delta: object) -> None:
    with refuses(PrivacyError):
        choose(account(GDP(3.0, 1e-5)), (full(GDP(1.0)),), delta)  # type: ignore[arg-type]


def test_a_book_with_trade_off_functions_verifies(place: str | Path) -> None:
    book = Ledger.create(place, dataset="survey", budget=GDP(5.0, 1e-4))
    local, pure = full(LOCAL), full(PureDP(0.5))
    for statements, delta in (((local,), 1e-6), ((local, pure), 3e-7), ((pure,), None), ((local,), 2.0**-60)):
        paid = book.charge(statements, **ABOUT, method="toy 1", plan_sha256="0" * 64, charge_delta=delta)
        receipt = book.receipt(paid, release_sha256=f"{paid.seq:064x}", version="test")
        assert receipt.guarantee == paid.statement
    found = book.verify()
    assert found.ok, found.problems
    rows = [row for row in book.show().rows if row.kind == "charge"]
    assert [row.note for row in rows][2] == ""
    assert charge_delta_of(rows[0].note) == checked_delta(1e-6)
    assert book.verify(tips=[receipt]).ok
