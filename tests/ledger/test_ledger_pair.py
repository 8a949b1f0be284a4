"""(epsilon, delta) ledgers: the pair itself, converted once; what is granted, what is refused, and the order that the proof needs."""

from __future__ import annotations

import warnings
from math import exp
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom
from tests.ledger.ledger_workers import ABOUT, PLAN, gdp
from tests.messages import refuses, warns

from confide.errors import BudgetExceeded, PlanError, PrivacyError
from confide.guarantees import GDP, RDP, ZCDP, ApproxDP, Guarantee, PureDP, TradeOff
from confide.guarantees.curves import laplace
from confide.guarantees.privacy_filter import pair_divergence
from confide.ledger import Ledger
from confide.ledger.account import Account
from confide.ledger.currency import Price, amount_of, delta_of
from confide.ledger.decision import choose
from confide.ledger.ledger import opened_account
from confide_lab.benchmarks.ledger_grants import LEDGERS, cell

Array = NDArray[np.float64]


def full(statement: Guarantee) -> Guarantee:
    return statement.resolve("add-remove")


def account(budget: Guarantee) -> Account:
    return opened_account("survey", budget, None, 1, None)


@pytest.fixture
def ledger(place: str | Path) -> Ledger:
    return Ledger.create(place, dataset="survey", budget=ApproxDP(8.0, 1e-5))


def ask(ledger: Ledger, *statements: Guarantee, **how: object) -> object:
    return ledger.charge(tuple(map(full, statements)), **ABOUT, method="toy 1", plan_sha256=PLAN, **how)


def test_a_pair_holds_nothing_back(ledger: Ledger) -> None:
    """Eight releases at (1, 1e-6) by the pair itself, and then nothing."""
    for _ in range(8):
        ask(ledger, ApproxDP(1.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        ask(ledger, ApproxDP(1.0, 1e-6))
    assert ledger.verify().ok


def test_mixed_releases_stay_and_then_convert(ledger: Ledger) -> None:
    """Two of (1, 1e-6), then converted: mu 1.296, five more at mu .5 and a rest."""
    for _ in range(2):
        ask(ledger, ApproxDP(1.0, 1e-6))
    ledger.convert(reason="Gaussian releases from here on")
    assert ledger.show().remaining.startswith("mu = 1.29")
    assert ledger.show().spent.endswith("after epsilon = 2, delta = 2e-06 as pairs, before it was converted")
    for _ in range(6):
        ask(ledger, GDP(0.5))
    with pytest.raises(BudgetExceeded):
        ask(ledger, GDP(0.5))
    found = ledger.verify()
    assert found.ok, found.problems
    assert [row.kind for row in ledger.show().rows].count("convert") == 1


def test_after_converting_nothing_stays(ledger: Ledger) -> None:
    """The pair is gone: a statement (e, d) costs what it leaves, and seven more of (1, 1e-6) are refused."""
    ask(ledger, ApproxDP(1.0, 1e-7))
    ask(ledger, GDP(0.1), convert_ledger=True)
    assert ledger.converted
    paid = []
    with pytest.raises(BudgetExceeded):
        for _ in range(7):
            before = ledger.show().units["spent_amount"]
            ask(ledger, ApproxDP(1.0, 1e-8))
            paid.append(ledger.show().units["spent_amount"] - before)
    assert paid
    assert min(paid) > 1.0 * 2**40
    with refuses(PlanError):
        ledger.convert()
    ask(ledger, GDP(0.05), convert_ledger=True)  # converted is converted: nothing more is done
    assert [row.kind for row in ledger.show().rows].count("convert") == 1
    assert ledger.verify().ok


def test_a_charge_that_does_not_fit_converts_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        ask(ledger, GDP(5.0), convert_ledger=True)
    assert not ledger.converted
    assert len(ledger.show().rows) == 1


def test_converting_needs_a_delta_and_a_pair(place: str | Path) -> None:
    ledger = Ledger.create(place, dataset="survey", budget=ApproxDP(2.0, 1e-6))
    ask(ledger, ApproxDP(1.0, 1e-6))
    with refuses(PrivacyError):
        ledger.convert()
    ask(ledger, PureDP(1.0))  # what is left of epsilon is there to the last unit
    assert ledger.verify().ok
    other = Ledger.create(place, dataset="other", budget=GDP(1.0))
    with refuses(PlanError):
        other.convert()
    with refuses(PlanError):
        Ledger.create(place, dataset="third", budget=ApproxDP(1.0, 1e-6), grants="mu")
    assert Ledger.create(place, dataset="third", budget=ApproxDP(1.0, 1e-6), grants="gaussian").converted
    assert Ledger.open(place, dataset="third").verify().ok


@pytest.mark.parametrize(
    "statement", [GDP(0.2), GDP(0.2, 1e-8), ZCDP(0.02), RDP((8.0, 64.0), (0.2, 1.6)), TradeOff(laplace(0.3))], ids=str
)
@pytest.mark.parametrize("at", [None, 1e-6])
def test_any_release_may_stay_by_a_point_of_its_own_curve(
    place: str | Path, statement: Guarantee, at: float | None
) -> None:
    ledger = Ledger.create(place, dataset="survey", budget=ApproxDP(8.0, 1e-5))
    ask(ledger, statement, charge_delta=at)
    units = ledger.show().units
    epsilon, delta = units["spent_amount"] / 2**40, units["spent_delta"] / 2**60
    assert 0 < epsilon < 8
    if epsilon < 0.3 or not isinstance(statement, TradeOff):
        assert full(statement).to_approx(epsilon=epsilon).delta <= delta * (1 + 1e-8)
    assert ledger.verify().ok


def test_a_pair_that_was_asked_for_is_charged_as_that_pair(ledger: Ledger) -> None:
    """The default question, (1, 1e-6) of a Gaussian method, never forces the step that cannot be undone."""
    paid = ask(ledger, GDP(0.2367), ApproxDP(1.0, 1e-6))
    assert paid.statement == full(ApproxDP(1.0, 1e-6))
    assert not ledger.converted


def test_the_preview_shows_both_futures(ledger: Ledger) -> None:
    stays = ledger.preview((gdp(0.5),))
    turns = ledger.preview((gdp(0.5),), convert_ledger=True)
    assert stays.after.startswith("epsilon = ")
    assert turns.after.startswith("mu = 1.58")
    assert "epsilon = 8, delta = 1e-05) becomes mu = 1.66" in turns.note
    assert len(ledger.show().rows) == 1


def test_an_amendment_of_a_converted_ledger_keeps_what_was_spent_as_pairs(ledger: Ledger) -> None:
    ask(ledger, ApproxDP(2.0, 2e-6))
    ask(ledger, GDP(0.5), convert_ledger=True)
    before = ledger.show().units["limit_amount"]
    ledger.amend(ApproxDP(10.0, 1.2e-5), reason="second wave")
    whole = account(ApproxDP(8.0, 1e-5)).converted().limit.amount
    assert before < ledger.show().units["limit_amount"] == pytest.approx(whole, rel=1e-9)
    ledger.amend(ApproxDP(1.0, 1e-6), reason="less than was spent")
    assert ledger.show().units["limit_amount"] == 0
    with pytest.raises(BudgetExceeded):
        ask(ledger, GDP(0.01))
    found = ledger.verify()
    assert found.ok, found.problems


@pytest.mark.parametrize("budget", [GDP(1e9), GDP(11.0), PureDP(21.0), ApproxDP(30.0, 1e-6), ZCDP(60.0)], ids=str)
def test_a_budget_that_protects_nobody_is_warned_of(place: str | Path, budget: Guarantee) -> None:
    with warns(UserWarning):
        try:
            Ledger.create(place, dataset="survey", budget=budget)
        except PrivacyError as refused:  # mu = 1e9 cannot even be counted
            assert "would protect nobody" in str(refused)
            warnings.warn("protects nobody", stacklevel=1)


def test_the_table_of_typical_ledgers() -> None:
    """Some cells of `confide lab bench ledger`: at least what basic and numerical composition grant."""
    cells = {
        (ApproxDP(1.0, 1e-6), "pure .1"): "10 S",
        (ApproxDP(4.0, 1e-5), "(1,1e-6)"): "4 S",
        (ApproxDP(8.0, 1e-5), "(1,1e-6)"): "8 S",
        (ApproxDP(8.0, 1e-5), "pure .5"): "16 S",
        (ApproxDP(8.0, 1e-5), "mu .24"): "48 G",
        (GDP(2.0), "pure .5"): "15",
        (GDP(2.0, 1e-6), "(1,1e-7)"): "3",
    }
    for (budget, release), text in cells.items():
        assert str(cell(budget, release)) == text, (budget, release)
        assert cell(budget, release).best in LEDGERS[budget]


# the order that the proof needs ------------------------------------------------------------------------------------------


def gaussian_curve(r: float, log_order: float) -> float:
    return float(ndtr(r / 2 - log_order / r) - exp(log_order) * ndtr(-r / 2 - log_order / r))


def promise(state: Account, log_order: float) -> float:
    """What a state lets anyone reach at an order."""
    if state.currency.state == "pair":
        left = state.left
        return pair_divergence(float(amount_of(left.amount)), float(delta_of(left.delta)), log_order)
    r, leak = float(amount_of(state.left.amount)) ** 0.5, float(delta_of(state.left.delta))
    return min(1.0, gaussian_curve(r, log_order) + leak)


def reached(after: tuple[Account, ...], epsilon: float, at: float, *, chosen_late: bool) -> float:
    """H at e^at of randomised response and then all that a next state promises: fixed before the draw, or chosen after it."""
    share = exp(epsilon) / (1 + exp(epsilon))
    by_outcome = [
        [mass * promise(state, at - loss) for state in after]
        for mass, loss in ((share, epsilon), (1 - share, -epsilon))
    ]
    if chosen_late:
        return sum(max(values) for values in by_outcome)
    return max(sum(values) for values in zip(*by_outcome, strict=True))


def test_a_next_state_that_is_chosen_after_the_outcome_is_no_filter() -> None:
    """Staying and converting are each within (1, 1e-6); choosing between them after the outcome is not, by a third of the delta."""
    opened, worst = account(ApproxDP(1.0, 1e-6)), 0.0
    for epsilon in np.linspace(0.05, 0.6, 23):
        release = (full(PureDP(float(epsilon))),)
        states = []
        for state in (opened, opened.converted()):
            try:
                states.append(state.charged(choose(state, release).price))
            except BudgetExceeded:
                continue
        both = tuple(states)
        assert reached(both, float(epsilon), 1.0, chosen_late=False) <= 1e-6 * (1 + 1e-9)
        worst = max(worst, reached(both, float(epsilon), 1.0, chosen_late=True))
    assert worst > 1.25e-6


def test_the_ledger_writes_the_next_state_before_anything_can_be_drawn(ledger: Ledger) -> None:
    """When `charge` returns the state stands in the chain; converting afterwards starts from what was charged."""
    ask(ledger, PureDP(1.0))
    ledger.convert()
    late = ledger.show().units["limit_amount"]
    early = account(ApproxDP(8.0, 1e-5)).converted().limit.amount
    assert late == account(ApproxDP(7.0, 1e-5)).converted().limit.amount < early


def tree(generator: np.random.Generator, state: Account, depth: int) -> tuple[Array, Array]:
    """The distributions of all outcomes of an analyst who picks releases, and converts, by what was seen."""
    if depth == 0:
        return np.ones(1), np.ones(1)
    if state.currency.state == "pair" and state.left.delta and generator.random() < 0.3:
        state = state.converted()
    for _ in range(5):
        epsilon, delta = float(generator.uniform(0.1, 0.9)), float(generator.choice([0.0, 0.002, 0.01]))
        statement = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        share = (1 - delta) * exp(epsilon) / (1 + exp(epsilon))
        p = np.array([delta, share, 1 - delta - share, 0.0])
        if generator.random() < 0.5 and depth > 1:
            low = exp(-epsilon)
            p = np.array([delta, (1 - delta) * (1 - low) / 2, (1 - delta) * low, (1 - delta) * (1 - low) / 2, 0.0])
            p[1], p[3] = p[1] * 2 / (1 + low), p[3] * 2 * low / (1 + low)
        q = p[::-1]
        if generator.random() < 0.5:
            p, q = q, p
        try:
            price = choose(state, (full(statement),)).price
            break
        except BudgetExceeded:
            continue
    else:
        return np.ones(1), np.ones(1)
    below = [tree(generator, state.charged(price), depth - 1) for _ in p]
    return (
        np.concatenate([x * rest[0] for x, rest in zip(p, below, strict=True)]),
        np.concatenate([y * rest[1] for y, rest in zip(q, below, strict=True)]),
    )


@pytest.mark.long
def test_adaptive_trees_with_conversions_stay_within_the_pair() -> None:
    """The exact divergence of all outcomes, in both orders, at 400 orders."""
    generator, deep = np.random.default_rng(20241122), 0
    orders = np.concatenate([np.linspace(-3, 3, 399), [1.0]])
    for _ in range(14):
        budget = ApproxDP(1.0, float(generator.choice([0.01, 0.05])))
        p, q = tree(generator, account(budget), 4)
        assert p.sum() == pytest.approx(1)
        most = [pair_divergence(budget.epsilon, budget.delta, order) for order in orders]
        both = [np.maximum(x - np.exp(order) * y, 0).sum() for x, y in ((p, q), (q, p)) for order in orders]
        assert float(np.max(np.array(both) - np.array(most * 2))) <= 1e-12
        deep += len(p) > 16
    assert deep > 5


def granted(state: Account, statement: Guarantee, charged: float) -> int:
    """How many releases fit when this share of each price is charged."""
    for count in range(200):
        try:
            price = choose(state, (statement,)).price
        except BudgetExceeded:
            return count
        state = state.charged(Price(int(price.amount * charged), int(price.delta * charged)))
    raise AssertionError("it grants for ever")


@pytest.mark.parametrize("converts", [False, True])
def test_a_ledger_that_charges_nine_tenths_of_a_price_is_seen(converts: bool) -> None:
    """Equal randomised responses, all that are granted: the exact divergence of their product against the pair."""
    budget, statement = ApproxDP(4.0, 1e-5), full(PureDP(0.25))
    opened = account(budget)
    counts = {
        charged: granted(opened.converted() if converts else opened, statement, charged) for charged in (1.0, 0.9)
    }
    share = exp(0.25) / (1 + exp(0.25))
    reached = {}
    for charged, k in counts.items():
        tips = np.arange(k + 1)
        p, q = binom.pmf(tips, k, share), binom.pmf(tips, k, 1 - share)
        reached[charged] = max(
            np.maximum(x - np.exp(order) * y, 0).sum() - pair_divergence(4.0, 1e-5, order)
            for x, y in ((p, q), (q, p))
            for order in np.linspace(-6, 6, 401)
        )
    assert reached[1.0] <= 1e-12
    assert counts[0.9] > counts[1.0]
    assert converts or reached[0.9] > 1e-12
