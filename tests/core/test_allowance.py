"""A request is shared out exactly, in the method's own kind; the meter draws every law and chooses once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.core import (
    Allowance,
    Branches,
    Composed,
    Meter,
    Method,
    Plan,
    Total,
    check_plan,
    exact_cost,
    implies,
    statements_hold,
)
from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from confide.sums import ColumnMoments
from confide.testing import ZeroNoise

SCHEMA = cf.Schema({"x": cf.Numeric(0, 1)})
TOTAL = Total(ColumnMoments(SCHEMA, "x"), nonnegative=True)


@dataclass(frozen=True)
class Toy(Method):
    name = "toy"
    native = "PureDP"


class Gaussian(Toy):
    native = "GDP"


class Renyi(Toy):
    native = "RDP"


def toy_plan(privacy: Guarantee, law: str = "") -> Plan:
    allowance = Allowance.of(privacy, Toy(), SCHEMA)
    event = Composed(
        (
            allowance.spend("sums", TOTAL, Fraction(1, 3), law=law),
            allowance.choice("pick", 4, Fraction(2), Fraction(2, 3)),
        )
    )
    return Plan.of(Toy(), SCHEMA, allowance, event, {"sums": TOTAL}, target="t", intervals_for="c")


@pytest.mark.parametrize("law", ["", "discrete_laplace"])
@pytest.mark.parametrize("privacy", [PureDP(0.3), GDP(1.0), ZCDP(0.02), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_pure_plans_pay_exactly_and_imply_what_was_asked(privacy: Guarantee, law: str, relation: str) -> None:
    asked = privacy.resolve(relation)
    plan = toy_plan(asked, law)
    check_plan(plan, asked)
    native = plan.guarantee
    assert isinstance(native, PureDP)
    cost = exact_cost(plan.event)
    assert cost is not None and Fraction(native.epsilon) * (1 - Fraction(1, 2**60)) <= cost.amount <= Fraction(
        native.epsilon
    )
    assert implies(native, asked)
    (factor,) = {"add-remove": (1,), "substitute": (2,)}[relation]
    assert plan.spend("sums").sensitivity * plan.spend("sums").step == factor * TOTAL.map.l1


def test_a_plan_that_states_less_than_it_spends_is_refused() -> None:
    plan = toy_plan(PureDP(0.3, relation="add-remove"))
    assert statements_hold(plan.event, plan.guarantees)
    assert not statements_hold(plan.event, (PureDP(0.29, relation="add-remove"),))
    assert not statements_hold(plan.event, (GDP(0.2, relation="add-remove"),))


def test_the_meter_draws_the_planned_law_and_chooses_once() -> None:
    plan = toy_plan(PureDP(0.3))
    zero = np.array([0, 0, 0], dtype=object)
    with Meter(
        plan, cf.noise.SimulatedNoise(1) if hasattr(cf.noise.SimulatedNoise, "grid_laplace") else ZeroNoise()
    ) as meter:
        noisy = meter.draw("sums", zero)
        assert noisy.law == "grid_laplace"
        assert noisy.variance > 0
        with refuses(ReleaseError):
            meter.choose("pick", np.arange(5))
        winner = meter.choose("pick", np.array([0, -5, 3, 1]))
        assert winner in range(4)
        with refuses(ReleaseError):
            meter.choose("pick", np.array([0, -5, 3, 1]))
        with refuses(ReleaseError):
            meter.draw("pick", zero)
    assert meter.drawn("pick").values.tolist() == [winner]
    assert meter.drawn("pick").variance == float("inf")


def test_a_gaussian_allowance_has_no_pure_spends_and_the_reverse() -> None:
    gaussian = Allowance.of(GDP(1.0), Gaussian(), SCHEMA)
    with refuses(PlanError):
        gaussian.choice("pick", 3, Fraction(1), Fraction(1))
    with refuses(PlanError):
        gaussian.spend("sums", TOTAL, Fraction(1), law="grid_laplace")
    pure = Allowance.of(PureDP(1.0), Toy(), SCHEMA)
    with refuses(PlanError):
        pure.choice("pick", 3, Fraction(1), Fraction(0))
    over = Composed(
        (pure.choice("a", 3, Fraction(1), Fraction(1)), pure.choice("b", 3, Fraction(1), Fraction(1, 10**9)))
    )
    with refuses(PlanError):
        pure.guarantees(over)
    assert len(pure.guarantees(Branches(over.parts))) == 3
    with refuses(PlanError):
        Allowance.of(PureDP(1.0), Renyi(), SCHEMA)
    with refuses(PrivacyError):
        bare: Any = 1.0
        Allowance.of(bare, Toy(), SCHEMA)
