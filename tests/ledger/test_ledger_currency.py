"""What each guarantee costs in each book (protocol rule 7), which statement is charged, and which are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.errors import BudgetExceeded, NoConversion, PrivacyError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP, calibrate_gaussian
from confide.ledger.account import Account
from confide.ledger.currency import CURRENCIES, Approximate, Currency, currency_of
from confide.ledger.decision import choose
from confide.ledger.units import ZERO, Price

GAUSSIAN, CONCENTRATED, PURE, APPROXIMATE = (CURRENCIES[name] for name in ("GDP", "ZCDP", "PureDP", "ApproxDP"))


def account(budget: Guarantee, spent: Price = ZERO, relation: str = "add-remove") -> Account:
    full, currency = budget.resolve(relation), currency_of(budget)
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
        (APPROXIMATE, GDP(0.5, 0.125), 0.25, 0.125),
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
        (APPROXIMATE, ZCDP(0.5)),
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
    with pytest.raises(NoConversion, match=r"no proof leads from there to .*; ask a method .*or open a dataset's book"):
        choose(account(budget), (full(statement),))


def test_the_cheapest_statement_is_charged_in_any_order() -> None:
    """ApproxDP(1, 1e-6) by its own conversion costs 27 times the mu^2 of the Gaussian release that meets it."""
    requested = full(ApproxDP(1.0, 1e-6))
    native = full(GDP(calibrate_gaussian(requested)))
    for statements in ((native, requested), (requested, native)):
        chosen = choose(account(GDP(2.0, 1e-5)), statements)
        assert chosen.statement == native
    assert choose(account(GDP(2.0, 1e-5)), (requested,)).price.amount > 26 * GAUSSIAN.price(native).amount


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
    with pytest.raises(BudgetExceeded, match=r"no delta is left|privacy=GDP"):
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


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ApproxDP(0.1, 1e-9), ApproxDP(8.0, 1e-3)], ids=str)
def test_the_curve_is_upward_and_tight(budget: ApproxDP) -> None:
    limit = APPROXIMATE.limit(budget)
    assert isinstance(APPROXIMATE, Approximate)
    for share in (0.1, 0.5, 1.0):
        amount = round(2**40 * share * calibrate_gaussian(budget) ** 2)
        with mpmath.workdps(60):
            exact = curve(limit.amount / 2**40, mpmath.sqrt(mpmath.mpf(amount) / 2**40)) * 2**60
        units = APPROXIMATE.curve(limit.amount, amount)
        assert exact <= units <= exact * (1 + mpmath.mpf("3e-9")) + 1


def test_an_approximate_budget_holds_what_the_curve_allows() -> None:
    """n releases of mu fit together exactly up to delta(epsilon; mu sqrt(n)) <= delta."""
    budget, mu = ApproxDP(1.0, 1e-6), 0.05
    book, granted = account(budget), 0
    with pytest.raises(BudgetExceeded):
        while True:
            book = replace(book, spent=book.spent + choose(book, (full(GDP(mu)),)).price)
            granted += 1
    assert curve(1.0, mu * mpmath.sqrt(granted)) <= 1e-6 < curve(1.0, mu * mpmath.sqrt(granted + 1))


def test_delta_and_curve_share_an_approximate_budget() -> None:
    book = account(ApproxDP(1.0, 1e-6), Price(0, round(0.5e-6 * 2**60)))
    mu = calibrate_gaussian(ApproxDP(1.0, 0.5e-6))
    assert choose(book, (full(GDP(mu * (1 - 1e-6))),))
    with pytest.raises(BudgetExceeded):
        choose(book, (full(GDP(mu * (1 + 1e-6))),))


def test_far_outside_the_curve_nothing_is_granted_by_accident() -> None:
    with pytest.raises(BudgetExceeded):
        choose(account(ApproxDP(3000.0, 0.5)), (full(GDP(60.0)),))
    assert APPROXIMATE.fits(Price(2**40, 1), Price(1, 0))  # mu = 2^-20 at epsilon = 1: delta underflows, one unit
    assert not APPROXIMATE.fits(Price(2**40, 1), Price(1, 1))


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
        offered = re.search(r"privacy=(\w+)\(([^)]*)\)", str(error))
        if offered is None:
            assert "nothing fits any more" in str(error) or "what fits is a request without one" in str(error)
        else:
            kind = {"GDP": GDP, "PureDP": PureDP, "ZCDP": ZCDP, "ApproxDP": ApproxDP}[offered[1]]
            fitting = full(kind(*(float(number) for number in offered[2].split(", "))))
            assert type(fitting) is type(statement)
            assert choose(book, (fitting,)).statement == fitting


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (GDP(1.0), "leaves its relation open"),
        (GDP(1.0, relation="substitute"), "ask for the release with relation='add-remove'"),
        (GDP(1.0, relation="add-remove", unit="attribute"), "unit='attribute'"),
        (GDP(1.0, relation="add-remove", trust="local"), "trust='local'"),
    ],
)
def test_other_terms_are_refused_even_beside_a_good_statement(statement: Guarantee, text: str) -> None:
    with pytest.raises(PrivacyError, match=text):
        choose(account(GDP(3.0)), (full(GDP(0.5)), statement))


def test_the_refusal_under_substitute_names_the_general_conversion() -> None:
    with pytest.raises(PrivacyError, match=r"substitute GDP\(2\)"):
        choose(account(GDP(3.0), relation="substitute"), (full(GDP(1.0)),))


@pytest.mark.parametrize("statements", [(), GDP(1.0, relation="add-remove"), ("GDP(1)",), (1.0,)])
def test_anything_but_statements_is_refused(statements: object) -> None:
    with pytest.raises(PrivacyError, match=r"GDP\(1.0"):
        choose(account(GDP(3.0)), statements)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [GDP(2.0**-21), ZCDP(2.0**-41), GDP(1.0, 2.0**-61), ApproxDP(1.0, 1e-19)])
def test_a_budget_below_one_unit_is_refused(budget: Guarantee) -> None:
    with pytest.raises(PrivacyError, match="nothing would ever fit"):
        currency_of(budget).limit(budget)


def test_a_budget_beyond_counting_is_refused() -> None:
    assert GAUSSIAN.limit(GDP(2048.0)) == Price(2**62, 0)
    with pytest.raises(PrivacyError, match=r"at most GDP\(2048.0\)"):
        GAUSSIAN.limit(GDP(2049.0))


def test_the_error_carries_its_numbers_as_text() -> None:
    book = account(GDP(1.0), Price(2**39, 0))
    with pytest.raises(BudgetExceeded) as caught:
        choose(book, (full(GDP(1.0)),))
    assert caught.value.requested == "mu = 1, mu^2 = 1, delta = 0"
    assert caught.value.spent == caught.value.remaining == "mu = 0.707107, mu^2 = 0.5, delta = 0"
    assert "privacy=GDP(0.7071)" in str(caught.value)
    assert "book.amend(GDP(...), reason='...')" in str(caught.value)
