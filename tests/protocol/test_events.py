"""The guarantee of a tree is a fold; branches are those that may have been drawn."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import pytest

from confide.errors import PlanError, PrivacyError, ReleaseError
from confide.guarantees import GDP, PureDP
from confide.protocol import Either, Opaque, PerPath, Select, Spend, Test, Together, fold, leaves, mu_squared, paths
from confide.protocol.events import event_from_dict, event_to_dict


def spend(name: str, mu2: Fraction = Fraction(1)) -> Spend:
    return Spend(name, "grid_gaussian", Fraction(3), "l2", 9 / mu2, Fraction(1, 8), (2,), "digest")


OPAQUE = Opaque("ptr", PureDP(0.5, relation="add-remove"), "a proof")
TREES = [
    spend("a"),
    Together((spend("a"), spend("b"))),
    Either((spend("a"), Together((spend("b"), spend("c"))))),
    Test(OPAQUE, spend("a")),
    Select(spend("a"), "truncated negative binomial"),
    PerPath(spend("a"), GDP(1.0, relation="add-remove")),
    OPAQUE,
]


@pytest.mark.parametrize("tree", TREES)
def test_trees_read_back(tree: object) -> None:
    assert event_from_dict(event_to_dict(tree)) == tree


def test_unknown_events_are_refused() -> None:
    with pytest.raises(ReleaseError, match="spend, together, either"):
        event_from_dict({"event": "guess"})


def test_gaussian_costs_are_exact() -> None:
    third = Fraction(1, 3)
    assert mu_squared(Together((spend("a", third), spend("b", 2 * third)))) == 1
    assert mu_squared(Either((spend("a", third), spend("b", 2 * third)))) == 2 * third
    assert mu_squared(Together((spend("a"), OPAQUE))) is None


def test_fold_never_states_less_than_the_cost() -> None:
    for k in range(1, 40):
        tree = Together(tuple(spend(f"s{i}", Fraction(1, 7 + i)) for i in range(k)))
        guarantee = fold(tree, "add-remove")
        assert isinstance(guarantee, GDP)
        exact = sum(Fraction(1, 7 + i) for i in range(k))
        assert Fraction(guarantee.mu) ** 2 >= exact
        assert guarantee.mu == pytest.approx(sqrt(exact), rel=1e-15)


def test_fold_takes_the_bound_of_a_path_and_of_an_opaque_release() -> None:
    assert fold(PerPath(spend("a"), GDP(2.0)), "substitute") == GDP(2.0, relation="substitute")
    assert fold(OPAQUE, "add-remove").epsilon == 0.5
    assert fold(Test(OPAQUE, OPAQUE), "add-remove").epsilon == 1.0
    with pytest.raises(PlanError, match="Opaque"):
        fold(Select(spend("a"), "poisson"), "add-remove")
    with pytest.raises(PrivacyError):
        fold(Together((spend("a"), OPAQUE)), "add-remove")


def test_paths_are_the_branches() -> None:
    tree = Together((spend("a"), Either((spend("b"), Together((spend("c"), spend("d")))))))
    assert paths(tree) == {frozenset("ab"), frozenset("acd")}
    assert paths(Test(spend("t"), spend("x"))) == {frozenset("t"), frozenset("tx")}
    assert [leaf.name for leaf in leaves(tree)] == ["a", "b", "c", "d"]


def test_a_law_without_gaussian_cost_is_refused() -> None:
    with pytest.raises(PrivacyError, match="grid_gaussian"):
        _ = Spend("a", "grid_laplace", Fraction(1), "l1", Fraction(1), Fraction(1), (1,)).mu_squared
