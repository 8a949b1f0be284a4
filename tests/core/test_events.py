"""The guarantee of a tree is a fold; branches are those that may have been drawn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, sinh, sqrt, tanh

import pytest
from tests.messages import refuses

from confide.core import (
    LAWS,
    Branches,
    BudgetItem,
    Composed,
    Cost,
    OpaqueRelease,
    Test,
    exact_cost,
    fold,
    leaves,
    mu_squared,
    paths,
)
from confide.core.events import event_from_dict, event_to_dict
from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, ZCDP, PureDP


def spend(name: str, mu2: Fraction = Fraction(1)) -> BudgetItem:
    return BudgetItem(name, "grid_gaussian", Fraction(3), "l2", 9 / mu2, Fraction(1, 8), (2,), "digest")


OPAQUE = OpaqueRelease("ptr", PureDP(0.5, relation="add-remove"), "a proof")
TREES = [
    spend("a"),
    Composed((spend("a"), spend("b"))),
    Branches((spend("a"), Composed((spend("b"), spend("c"))))),
    Test(OPAQUE, spend("a")),
    OPAQUE,
]


@pytest.mark.parametrize("tree", TREES)
def test_trees_read_back(tree: object) -> None:
    assert event_from_dict(event_to_dict(tree)) == tree


def test_unknown_events_are_refused() -> None:
    with refuses(ReleaseError):
        event_from_dict({"event": "guess"})


def test_gaussian_costs_are_exact() -> None:
    third = Fraction(1, 3)
    assert mu_squared(Composed((spend("a", third), spend("b", 2 * third)))) == 1
    assert mu_squared(Branches((spend("a", third), spend("b", 2 * third)))) == 2 * third
    assert mu_squared(Composed((spend("a"), OPAQUE))) is None


def test_fold_never_states_less_than_the_cost() -> None:
    for k in range(1, 40):
        tree = Composed(tuple(spend(f"s{i}", Fraction(1, 7 + i)) for i in range(k)))
        guarantee = fold(tree, "add-remove")
        assert isinstance(guarantee, GDP)
        exact = sum(Fraction(1, 7 + i) for i in range(k))
        assert Fraction(guarantee.mu) ** 2 >= exact
        assert guarantee.mu == pytest.approx(sqrt(exact), rel=1e-15)


def test_fold_takes_the_bound_of_an_opaque_release() -> None:
    assert fold(OPAQUE, "add-remove").epsilon == 0.5
    assert fold(Test(OPAQUE, OPAQUE), "add-remove").epsilon == 1.0


def test_unlike_guarantees_meet_in_a_kind_that_both_convert_into() -> None:
    both = fold(Composed((spend("a"), OPAQUE)), "add-remove")
    assert isinstance(both, GDP)
    assert both.mu == pytest.approx(sqrt(1 + PureDP(0.5).to_gdp().mu ** 2), rel=1e-9)
    rho = OpaqueRelease("r", ZCDP(0.25, relation="add-remove"), "a proof")
    assert fold(Composed((spend("a"), rho)), "add-remove") == ZCDP(0.75, relation="add-remove")
    leaking = OpaqueRelease("t", GDP(1.0, 1e-6, relation="add-remove"), "a proof")
    with refuses(PlanError):
        fold(Composed((leaking, rho)), "add-remove")


def test_paths_are_the_branches() -> None:
    tree = Composed((spend("a"), Branches((spend("b"), Composed((spend("c"), spend("d")))))))
    assert paths(tree) == {frozenset("ab"), frozenset("acd")}
    assert paths(Test(spend("t"), spend("x"))) == {frozenset("t"), frozenset("tx")}
    assert [leaf.name for leaf in leaves(tree)] == ["a", "b", "c", "d"]


def other(law: str, sensitivity: int, scale: Fraction) -> BudgetItem:
    return BudgetItem("o", law, Fraction(sensitivity), LAWS[law].norms[0], scale, Fraction(1), (1,))


def test_every_law_states_its_own_kind_exactly() -> None:
    third = Fraction(1, 3)
    assert fold(other("grid_laplace", 2, 2 / third), "add-remove").epsilon >= third
    assert exact_cost(other("discrete_laplace", 2, 2 / third)) == Cost(PureDP, third)
    assert exact_cost(other("discrete_gaussian", 2, Fraction(6))) == Cost(ZCDP, third)
    assert exact_cost(other("exponential", 5, third)) == Cost(PureDP, third)
    assert exact_cost(Composed((spend("a"), other("discrete_gaussian", 2, Fraction(6))))) == Cost(ZCDP, Fraction(5, 6))
    assert exact_cost(Composed((spend("a"), other("grid_laplace", 1, Fraction(1))))) is None


def test_a_law_without_gaussian_cost_is_refused() -> None:
    with refuses(PrivacyError):
        _ = other("grid_laplace", 1, Fraction(1)).mu_squared
    with refuses(PrivacyError):
        _ = BudgetItem("a", "cauchy", Fraction(1), "l1", Fraction(1), Fraction(1), (1,)).exact_cost


@pytest.mark.parametrize(
    "change",
    [
        {"scale": Fraction(-1)},
        {"scale": Fraction(0)},
        {"sensitivity": Fraction(-1)},
        {"step": Fraction(0)},
        {"norm": "l2"},
    ],
)
def test_impossible_numbers_have_no_cost(change: dict[str, object]) -> None:
    """A negative scale would make the cost of a Laplace spend negative, and pay for another one."""
    with refuses(PrivacyError):
        _ = replace(other("grid_laplace", 1, Fraction(1)), **change).exact_cost


@pytest.mark.parametrize("law", ["grid_laplace", "discrete_laplace"])
@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(30)])
def test_variances_are_those_of_the_law(law: str, scale: Fraction) -> None:
    s, total = float(scale), 0.0
    for k in range(1, 3000):
        mass = exp(-k / s) * (sinh(1 / (2 * s)) if law == "grid_laplace" else tanh(1 / (2 * s)))
        total += 2 * k * k * mass
    assert LAWS[law].variance(scale) == pytest.approx(total, rel=1e-10)
