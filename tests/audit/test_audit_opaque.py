"""Three states, opaque releases and what stands beside them: planted faults are violated or untested, never said to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import confide as cf
from confide.audit import audit, replay
from confide.audit.methods import usual_request
from confide.audit.replay.opaque import Setting, attack_opaque, certificates
from confide.audit.searches.neighbors import Domain, neighbors
from confide.audit.verdict import Audit, Finding
from confide.core import Meter, Method, OpaqueRelease, Plan, Proved, Release, Source, Total, leaves
from confide.sums import ColumnMoments
from confide_lab.benchmarks.planted.kinds import Fault
from confide_lab.benchmarks.planted.opaque import OPAQUE_FAULTS
from confide_lab.benchmarks.planted.toy import SCHEMA, Toy
from confide_lab.methods import BinAgg, JohnsonLindenstrauss, PosteriorSampling

XY = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
# here those whose releases cost little, and as many runs as tell their faults: too little noise in a sketch and in class means, a test
# that always passes; all of them with the benchmarks
QUICK = {"sketch without its ridge": 200, "smooth sensitivity divided by 100": 200, "reply without a test": 400}


def row(name: str, verdict: Any, **more: Any) -> Finding:
    return Finding(name=name, quantity="mu", claim=1.0, lower_bound=0.5, verdict=verdict, attack="a", **more)


@pytest.mark.few("sketch without its ridge", "reply without a test")
@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, id=one.name, marks=[] if one.name in QUICK else [pytest.mark.long]) for one in OPAQUE_FAULTS],
)
def test_a_planted_fault_is_violated_and_its_clean_twin_is_not(fault: Fault) -> None:
    runs = QUICK.get(fault.name, 400)
    assert fault.caught(runs).verdict == "violated"
    assert fault.passed(runs).verdict != "violated"


def test_one_refuted_question_or_one_untested_spend_decides() -> None:
    ways = (row("x", "untested", note="too few runs"), row("x", "holds"))
    assert Audit(ways).verdict == "holds", "two ways to put one question"
    lattice = row("x lattice", "untested", spend="x", note="no room")
    assert Audit((*ways, lattice)).untested[0].reason == "no room", "two questions about one spend"
    assert Audit((*ways, lattice, row("y", "violated"))).verdict == "violated"
    assert Audit(()).verdict == "untested"
    found = Audit((row("x", "holds", relation="add-remove"), row("x", "untested", relation="substitute")))
    assert [state.verdict for state in found.states] == ["holds", "untested"] and not found.ok


def test_the_verdict_is_in_every_output() -> None:
    found = Audit((row("x", "untested", note="no pair reached it"), row("y", "holds")))
    assert found.to_dict()["verdict"] == "untested" and found.to_dict()["ok"] is False
    assert found.to_dict()["states"][0] == {
        "spend": "x", "relation": None, "verdict": "untested", "reason": "no pair reached it",
    }  # fmt: skip
    assert found.text().splitlines()[-2:] == [
        "verdict: untested (1 holds, 1 untested)",
        "x: untested, no pair reached it",
    ]
    assert list(found.frame()["verdict"]) == ["untested", "holds"]


# spends beside opaque releases ----------------------------------------------------------------------------------------


def test_the_certificates_of_a_posterior_sample_are_replayed_exactly() -> None:
    method, schema = PosteriorSampling("y ~ 0 + a"), XY
    plan, frame = cf.plan(method, schema, cf.GDP(1.0, 1e-6)), XY.sample(30, 1)
    found = replay(method, plan, cf.read(frame, schema), cf.read(frame.iloc[1:], schema))
    assert found.ok and set(found.moved) == {"eigenvalue", "residual"} and found.drawn >= {"line"}
    part = plan.statistic("eigenvalue")
    one, other = (int(cf.read(own, schema).aggregate(part)[0][0]) for own in (frame, frame.iloc[1:]))
    assert found.moved["eigenvalue"].difference == (other - one,)


def test_the_table_after_a_private_tree_is_replayed_at_the_same_tree() -> None:
    method = BinAgg("y ~ a", tree="privtree", depth=4)
    plan, frame = cf.plan(method, XY, cf.GDP(1.0)), XY.sample(30, 1)
    found = replay(method, plan, cf.read(frame, XY), cf.read(frame.iloc[1:], XY))
    assert found.ok and "cells" in found.moved and found.moved["cells"].ratio <= 1


def test_every_kind_of_certificate_is_found() -> None:
    plan = cf.plan(PosteriorSampling("y ~ a"), XY, cf.GDP(1.0, 1e-6))
    assert [spend.name for spend, _ in certificates(plan.event)] == ["eigenvalue", "residual"]


# the hook of a third party ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Squared(Method):
    """A noisy sum that leaves as a number and its sign's opposite: opaque, with a density of its own. weak: divides the noise."""

    column: str
    weak: int = 1
    offers: bool = True
    name: ClassVar[str] = "toy_opaque"
    family: ClassVar[str] = "tables"
    source: ClassVar[str] = "-"
    native: ClassVar[str] = "ApproxDP"
    relations: ClassVar[tuple[str, ...]] = ("add-remove",)

    def plan(self, schema: Any, privacy: Any, *, n: Any = None, public: Any = None) -> Plan:
        proved = Proved.of(privacy, self, schema)
        statistic = Total(ColumnMoments(schema, self.column))
        event = OpaqueRelease("number", proved.level, "a Gaussian mechanism on a sum, by hand")
        return Plan.of(self, schema, proved, event, {"sums": statistic}, n=n, target="t", intervals_for="c")

    def draw(self, source: Source, plan: Plan, meter: Meter) -> Mapping[str, Any]:
        sd = 2**30 // self.weak
        noise = meter.noise("number").grid_gaussian(sd**2, 1)
        meter.opaque("number", np.array([float(self._sum(source, plan) * 2**10 + int(noise[0])) / 2**30]), *_grid())
        return {}

    @staticmethod
    def _sum(source: Source, plan: Plan) -> int:
        (sums,) = source.aggregate(plan.statistic("sums"))
        return int(sums[1])

    def attacks(self, plan: Plan) -> Mapping[str, Any]:
        if not self.offers:
            return {}

        def density(source: Source) -> Any:
            exact = self._sum(source, plan) / 2**20
            return lambda outcome: -((float(outcome["number"][0]) - exact) ** 2) / 2

        return {"number": density}

    def infer(self, release: Release, question: Any = None) -> Any:
        raise NotImplementedError


def _grid() -> tuple[Any, ...]:
    from fractions import Fraction
    from inspect import signature

    step = Fraction(1, 2**10)
    return (step, 1.0) if len(signature(Meter.opaque).parameters) > 4 else (step,)


def attacked(method: Squared, runs: int = 400) -> Audit:
    schema = cf.Schema({"v": cf.Numeric(0, 1)})
    plan = cf.plan(method, schema, cf.ApproxDP(1.0, 0.2))
    (leaf,) = leaves(plan.event)
    setting = Setting(method, plan, "number", Domain.of(schema), schema)
    pairs = [([], [(1.0,)]), ([(0.5,)], [(0.5,), (0.25,)])]
    return Audit(tuple(attack_opaque(setting, leaf, pairs, name="number", runs=runs, confidence=0.9999)))


def test_a_method_offers_its_own_likelihood_ratio() -> None:
    clean, weak = attacked(Squared("v")), attacked(Squared("v", weak=4))
    assert [one.attack for one in clean][-1] == "end to end, likelihood ratio of the method"
    assert clean.verdict != "violated" and weak.verdict == "violated"
    assert not any("likelihood ratio" in one.attack for one in attacked(Squared("v", offers=False), runs=40))


def test_too_few_runs_say_so() -> None:
    found = attacked(Squared("v"), runs=40)
    assert found.verdict == "untested" and "runs" in found.untested[0].reason


# reasons ----------------------------------------------------------------------------------------------------------------


def test_without_runs_an_opaque_release_is_untested_and_says_why() -> None:
    found = audit(JohnsonLindenstrauss("y ~ a", rows=40), XY, runs=0)
    assert found.verdict == "untested" and not found.ok
    assert any("runs=0" in state.reason for state in found.untested)


def test_a_branch_that_no_pair_reaches_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confide.audit.searches.neighbors.CROWD", 10)
    found = audit(Toy(branches=True), SCHEMA, relation="add-remove", runs=0)
    reasons = {state.spend: state.reason for state in found.untested}
    assert list(reasons) == ["toy again"] and "not reached" in reasons["toy again"]


def test_a_method_that_names_no_worst_pairs_is_told_apart() -> None:
    found = audit(Toy(), SCHEMA, relation="add-remove", runs=0)
    assert "worst_pairs of the method names none" in found[len(found) - 1].note
    named = audit(cf.regression.SSP("y ~ a", recenter=False), XY, relation="add-remove", runs=0)
    assert "names none" not in named[len(named) - 1].note


def test_an_opaque_method_is_audited_at_a_level_that_runs_can_tell() -> None:
    assert usual_request(cf.regression.SSP("y ~ a"), XY) == cf.GDP(1.0)
    assert usual_request(PosteriorSampling("y ~ a"), XY) == cf.GDP(2.0, 0.05)
    assert usual_request(JohnsonLindenstrauss("y ~ a"), XY) == cf.ApproxDP(2.0, 0.1)


def test_pairs_of_many_records_are_tried_on_opaque_releases() -> None:
    method = PosteriorSampling("y ~ a")
    plan = cf.plan(method, XY, cf.GDP(1.0, 1e-6))
    assert max(len(one) for one, _ in neighbors(method, plan, XY)) >= 1_000
