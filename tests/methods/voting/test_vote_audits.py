"""The audit of votes and of teachers' labels: worst data are neighbours, claims hold and are nearly reached, planted faults are caught."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.audit import audit
from confide.audit.searches.neighbors import whole
from confide.methods.voting.teacher_labels import TeacherLabels
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.votes import VOTES, Rarest

TWO = cf.Schema({"v": cf.Categorical(["no", "yes"])})
THREE = cf.Schema({"g": cf.Categorical(["a", "b", "c"])})
TEACHER = cf.Schema({"x": cf.Numeric(-1, 1, on_missing=0.0), "k": cf.Categorical(["a", "b"], on_missing="a")})
#: Those that cost less than two seconds.
QUICK = ("optimal rule at twice the epsilon", "optimal rule in steps of one ballot")


def _labels(teachers: int, queries: int, **settings: Any) -> TeacherLabels:
    return TeacherLabels("k", Rarest(), np.zeros((queries, 1)), teachers, seconds=1.0, **settings)


METHODS = [
    (cf.voting.Plurality("v"), TWO, cf.PureDP(2.0)),
    (cf.voting.Plurality("v", "generalized"), TWO, cf.ApproxDP(2.0, 0.1)),
    (cf.voting.Plurality("g", "distance"), THREE, cf.ApproxDP(2.0, 0.1)),
    (_labels(2, 12, certificate="gaussian"), TEACHER, cf.GDP(2.0)),
    (_labels(2, 12, certificate="gaussian", confident=(1.5, 1.85)), TEACHER, cf.GDP(2.0)),
    (_labels(6, 1, certificate="laplace"), TEACHER, cf.PureDP(2.0)),
]
IDS = [f"{one[0].name} {getattr(one[0], 'rule', getattr(one[0], 'certificate', ''))}" for one in METHODS]


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize(("method", "schema", "privacy"), METHODS, ids=IDS)
def test_the_worst_data_are_neighbours(method: Any, schema: cf.Schema, privacy: Any, relation: str) -> None:
    n = 41 if relation == "substitute" else None
    plan = cf.plan(method, schema, type(privacy)(**{**_numbers(privacy), "relation": relation}), n=n)
    pairs = list(whole(method, plan, schema))
    assert pairs
    for one, other in pairs:
        gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
        assert sum(come.values()) == 1 and sum(gone.values()) == (1 if relation == "substitute" else 0)
        assert n is None or len(one) == len(other) == n


def _numbers(privacy: Any) -> dict[str, float]:
    return {name: getattr(privacy, name) for name in ("mu", "epsilon", "delta") if getattr(privacy, name, None)}


@pytest.mark.parametrize(
    ("method", "schema", "privacy"),
    [
        pytest.param(*one, id=name, marks=[pytest.mark.long] if k else [])
        for k, (one, name) in enumerate(zip(METHODS, IDS, strict=True))
    ],
)
def test_every_rule_and_certificate_holds_and_nearly_spends_its_claim(
    method: Any, schema: cf.Schema, privacy: Any
) -> None:
    """ "holds" is said where two thirds of the claim are shown on a pair; a false alarm has a chance of 1e-6."""
    found = audit(method, schema, privacy=privacy, relation="add-remove", runs=20_000, seed=1, confidence=1 - 1e-6)
    assert found.verdict == "holds", str(found)
    assert any(one.attack.startswith("many runs") and one.verdict == "holds" for one in found)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            one, id=one.name, marks=[] if one.name in QUICK or "many runs" not in one.attack else [pytest.mark.long]
        )
        for one in VOTES
    ],
)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert fault.caught(40_000).verdict == "violated"
    assert fault.passed(40_000).violated == ()


def test_the_letter_of_algorithm_4_is_flagged_where_its_lemma_fails_and_nowhere_else() -> None:
    """Lemma 5.5 is about every order; its proof fails for small ones, and the rule of the algorithm at small delta avoids these."""
    (fault,) = (one for one in VOTES if one.name == "Algorithm 4 to the letter")
    said = [one.verdict for one in fault.caught(1)]
    assert said == ["violated"] * 4 + ["holds"]
