"""Attacks on a ledger's first charge, its amendments, names and tips: what was found once stays mended."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.messages import refuses

import confide as cf
from confide.guarantees import GDP, ApproxDP, PureDP

ABOUT = {"dataset": "s", "unit": "record", "rows_per_unit": 1, "method": "m 1", "plan_sha256": "0" * 64}


@pytest.mark.parametrize("first", [GDP(1.0, 1e-6), ApproxDP(1.0, 1e-6)], ids=repr)
def test_a_release_that_takes_the_whole_delta_leaves_the_rest_of_mu(path, first) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=GDP(2.0, 1e-6))
    ledger.charge((first.resolve("add-remove"),), **ABOUT)
    assert ledger.show().remaining.startswith("mu = 1.7")  # by what remains, also after (1, 1e-6)
    ledger.charge((GDP(1.7, relation="add-remove"),), **ABOUT)
    with pytest.raises(cf.BudgetExceeded):
        ledger.charge((GDP(0.5, relation="add-remove"),), **ABOUT)
    assert ledger.verify().problems == ()


def test_a_whole_delta_and_a_pure_part_are_priced_as_the_pure_part_alone(path) -> None:
    pure = cf.Ledger.create(path, dataset="p", budget=GDP(2.0, 1e-6))
    mixed = cf.Ledger.create(path, dataset="m", budget=GDP(2.0, 1e-6))
    one = pure.preview((PureDP(0.3, relation="add-remove"),))
    two = mixed.preview((ApproxDP(0.3, 1e-6, relation="add-remove"),))
    assert one.price.split(", delta")[0] == two.price.split(", delta")[0]


@pytest.mark.parametrize(
    ("budget", "first", "raised"),
    [
        (ApproxDP(0.3, 1e-6), ApproxDP(0.3, 1e-6), ApproxDP(1.0, 2.0**-19)),
        (ApproxDP(0.3, 1e-6), ApproxDP(0.1, 1e-6), ApproxDP(1.0, 2.0**-19)),
        (GDP(0.3, 1e-6), GDP(0.3, 1e-6), GDP(1.0, 2.0**-19)),
    ],
    ids=repr,
)
def test_after_an_amendment_the_exact_sum_is_within_the_budget(path, budget, first, raised) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=budget)
    ledger.charge((first.resolve("add-remove"),), **ABOUT)
    ledger.amend(raised, reason="more")
    units, cost = ledger.show().units, ledger_cost(first)
    most = ledger_cost(raised)
    assert cost[0] + Fraction(units["remaining_amount"], 2**40) <= most[0]
    assert cost[1] + Fraction(units["remaining_delta"], 2**60) <= most[1]
    ledger.amend(raised, reason="again")  # keeps back the same, and not less
    assert ledger.show().units == units
    assert ledger.verify().problems == ()


def ledger_cost(statement) -> tuple[Fraction, Fraction]:
    """The exact numbers that add up."""
    amount = Fraction(statement.mu) ** 2 if isinstance(statement, GDP) else Fraction(statement.epsilon)
    return amount, Fraction(statement.delta)


def test_an_amendment_after_a_conversion_keeps_the_unit_back_as_well(path) -> None:
    (kept, plain) = (
        cf.Ledger.create(path, dataset="s", budget=ApproxDP(4.0, 1e-6)),
        cf.Ledger.create(path, dataset="t", budget=ApproxDP(4.0, 2e-6)),
    )
    for ledger, name in ((kept, "s"), (plain, "t")):
        ledger.charge((ApproxDP(0.25, 1e-6, relation="add-remove"),), **{**ABOUT, "dataset": name})
        ledger.amend(ApproxDP(4.0, 1e-5), reason="more")
        ledger.convert()
        ledger.amend(ApproxDP(6.0, 1e-5), reason="more")
        assert ledger.verify().problems == ()
    assert kept.show().units["remaining_amount"] <= plain.show().units["remaining_amount"]


def test_an_amendment_after_a_charge_in_units_keeps_nothing_back(path) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=ApproxDP(1.0, 2.0**-19))
    ledger.charge((ApproxDP(0.5, 2.0**-20, relation="add-remove"),), **ABOUT)
    ledger.amend(ApproxDP(1.5, 2.0**-18), reason="more")
    ledger.charge((ApproxDP(1.0, 2.0**-19 + 2.0**-20, relation="add-remove"),), **ABOUT)
    assert ledger.verify().problems == ()


def test_a_curve_without_a_point_at_no_delta_is_not_charged_some_delta(path) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=ApproxDP(1.0, 1e-6))
    with pytest.raises(cf.errors.NoConversion):
        ledger.charge((GDP(0.1, relation="add-remove"),), **ABOUT, charge_delta=0)
    pure = PureDP(0.5, relation="add-remove")
    assert ledger.charge((GDP(0.1, relation="add-remove"), pure), **ABOUT, charge_delta=0).statement == pure
    assert ledger.show().units["spent_delta"] == 0
    assert ledger.verify().problems == ()


@pytest.mark.parametrize("mark", ["\u034f", "\ufe0f", "\u3164", "\u2800", "\u115f", "\uffa0"], ids=ascii)
def test_marks_that_nobody_sees_make_no_second_data_set(path, mark) -> None:
    cf.Ledger.create(path, dataset="survey", budget=GDP(1.0))
    with pytest.raises(cf.errors.PlanError):
        cf.Ledger.create(path, dataset=f"survey{mark}", budget=GDP(1.0))
    with pytest.raises(cf.errors.PlanError):
        cf.Ledger.create(path, dataset=mark, budget=GDP(1.0))


@pytest.mark.parametrize("about", [{"dataset": "?"}, {"dataset": "a", "unit": "?"}, {"dataset": "\uff1f"}], ids=ascii)
def test_a_ledger_is_not_opened_for_what_is_still_to_be_filled_in(path, about) -> None:
    with refuses(cf.errors.PlanError):
        cf.Ledger.create(path, budget=GDP(1.0), **about)
    assert not path.exists()


def test_nothing_is_charged_for_a_unit_that_is_still_to_be_filled_in(path) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=GDP(1.0))
    with refuses(cf.errors.PlanError):
        ledger.charge((GDP(0.1, relation="add-remove"),), **{**ABOUT, "unit": "?"})


@pytest.mark.parametrize("tip", ["abc", "", "g" * 64, "0" * 65, "0" * 11, 7], ids=repr)
def test_a_mistyped_head_is_no_alarm(path, tip) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=GDP(1.0))
    with refuses(cf.errors.PlanError):
        ledger.verify(tips=[tip])


def test_a_head_is_found_by_its_first_digits(path) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=GDP(1.0))
    assert ledger.verify(tips=[ledger.tip[:12], ledger.tip.upper()]).ok
    other = ledger.tip[:11] + ("0" if ledger.tip[11] != "0" else "1")
    assert "entries were cut" in ledger.verify(tips=[other]).problems[0]


def test_messages_say_the_ledgers_own_unit(path) -> None:
    ledger = cf.Ledger.create(path, dataset="s", budget=GDP(1.0), unit="person", rows_per_unit=3)
    person = {**ABOUT, "unit": "person", "rows_per_unit": 3}
    with refuses(cf.errors.PrivacyError) as relation:
        ledger.charge((GDP(0.1, relation="substitute"),), **person)
    with refuses(cf.errors.PrivacyError) as currency:
        ledger.amend(PureDP(1.0), reason="other")
    assert "counts relation='add-remove', unit='person'" in str(relation.value)
    assert "unit='person', rows_per_unit=3)" in str(relation.value)  # the ledger that it offers to open
    assert "unit='record'" not in str(currency.value)


def test_a_ledger_that_is_not_there_is_first_a_path_to_check(path) -> None:
    with refuses(cf.errors.PlanError):
        cf.Ledger.open(path)
