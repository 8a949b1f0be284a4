"""Opaque releases at the meter: grids against the noise they state, whole numbers, hidden ones; what they cost; their files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.core import BudgetItem, Composed, Meter, OpaqueRelease, Plan, Proved, exact_cost, fold, leaves
from confide.core.events import event_from_dict, event_to_dict
from confide.errors import PlanError, ReleaseError
from confide.guarantees import GDP, ApproxDP, PureDP
from confide.noise import SimulatedNoise
from confide_lab.methods import PosteriorSampling, SmoothNaiveBayes

SCHEMA = cf.Schema({"a": cf.Numeric(-1, 1), "y": cf.Numeric(-1, 1)})
HIDING = BudgetItem("line", "grid_gaussian", Fraction(4), "l2", Fraction(1024), Fraction(1, 4), (2,))
LEVEL = GDP(1.0, 1e-6, relation="add-remove")


def planned(event: OpaqueRelease) -> Plan:
    plan = cf.plan(cf.regression.SSP("y ~ a"), SCHEMA, cf.GDP(1.0))
    return replace(plan, event=event)


def test_a_grid_finer_than_its_noise_is_refused() -> None:
    value = np.array([1.0, 2.0])
    for sd, grid in ((1.0, Fraction(1, 1 << 21)), (2.0**20, Fraction(1, 2)), (1.5, Fraction(1, 1 << 20))):
        with Meter(planned(OpaqueRelease("line", LEVEL, "a proof")), SimulatedNoise(1)) as meter:
            with refuses(ReleaseError):
                meter.opaque("line", value, grid, sd)
            assert meter.opaque("line", value, 2 * grid, sd).decode().tolist() == [
                float(round(v / float(2 * grid)) * 2 * grid) for v in value
            ]


@pytest.mark.parametrize("sd", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_floats_state_their_noise(sd: float | None) -> None:
    meter = Meter(planned(OpaqueRelease("line", LEVEL, "a proof")), SimulatedNoise(1))
    with refuses(ReleaseError):
        meter.opaque("line", np.ones(2), Fraction(1), sd)


def test_whole_numbers_leave_as_they_are_and_state_none() -> None:
    with Meter(planned(OpaqueRelease("line", LEVEL, "a proof")), SimulatedNoise(1)) as meter:
        with refuses(ReleaseError):
            meter.opaque("line", np.array([1, 2]), Fraction(1), 1.0)
        noisy = meter.opaque("line", np.array([3 << 70, -1], dtype=object), Fraction(1, 1 << 50))
    assert noisy.values.tolist() == [3 << 70, -1] and noisy.step == Fraction(1, 1 << 50)


def test_what_the_plan_hides_gets_its_noise_from_the_meter() -> None:
    plan = planned(OpaqueRelease("line", LEVEL, "a proof", HIDING))
    drawn = SimulatedNoise(3).grid_gaussian(Fraction(1024), 2)
    with Meter(plan, SimulatedNoise(3)) as meter:
        for bad in (np.ones(2), np.ones(3, dtype=int)):
            with refuses(ReleaseError):
                meter.opaque("line", bad, Fraction(1, 8))
        noisy = meter.opaque("line", np.array([10, -7]), Fraction(1, 8))
    assert noisy.values.tolist() == [40 + drawn[0], -28 + drawn[1]] and noisy.step == Fraction(1, 32)


def test_what_hides_is_paid_for() -> None:
    event = OpaqueRelease("line", GDP(1.0, 1e-6), "a proof", HIDING)
    cost = exact_cost(event)
    assert cost is not None and cost.amount == 1 + Fraction(16, 1024) and cost.delta == Fraction(1e-6)
    assert fold(event, "add-remove").mu >= (1 + 16 / 1024) ** 0.5  # type: ignore[union-attr]
    other = OpaqueRelease(
        "line", PureDP(1.0), "a proof", replace(HIDING, law="grid_laplace", norm="l1", scale=Fraction(8))
    )
    assert fold(other, "add-remove") == PureDP(1.5, relation="add-remove")
    assert [leaf.name for leaf in leaves(Composed((event,)))] == ["line"]


def test_files_of_events_keep_what_hides_and_need_nothing_without() -> None:
    for event in (OpaqueRelease("line", LEVEL, "a proof", HIDING), OpaqueRelease("line", LEVEL, "a proof")):
        assert event_from_dict(event_to_dict(event)) == event
    assert "hiding" not in event_to_dict(OpaqueRelease("line", LEVEL, "a proof"))
    whole = event_to_dict(OpaqueRelease("line", LEVEL, "a proof", HIDING))
    for bad in (
        {**whole, "hiding": event_to_dict(OpaqueRelease("b", LEVEL, "p"))},
        {**whole, "hiding": {**whole["hiding"], "law": "exponential"}},
    ):
        with refuses(ReleaseError):
            event_from_dict(bad)


def test_a_release_with_hidden_numbers_reads_back_and_a_changed_one_does_not() -> None:
    method = PosteriorSampling("y ~ a")
    source = cf.read(SCHEMA.sample(50, 1), SCHEMA)
    release = cf.release(method, source, cf.GDP(1.0, 1e-6), ledger=None, noise=SimulatedNoise(1))
    text = release.to_json()
    assert cf.Release.from_json(text) == release and '"hiding":{' in text
    for old, new in (
        ('"law":"grid_gaussian"', '"law":"exponential"'),
        ('"norm":"l2"', '"norm":"frobenius"'),
        ('"map":""', '"map":1'),
    ):
        place = text.index('"hiding":{')
        with pytest.raises(ReleaseError):
            cf.Release.from_json(text[:place] + text[place:].replace(old, new, 1))


def test_a_pure_spend_beside_an_approximate_release_adds_its_epsilon() -> None:
    proved = Proved.of(ApproxDP(1.0, 1e-6), SmoothNaiveBayes("y ~ a"), SCHEMA, kinds=(PureDP, ApproxDP))
    counts = replace(HIDING, law="grid_laplace", norm="l1", scale=Fraction(40), sensitivity=Fraction(4))
    left = proved.rest(counts)
    assert isinstance(left, ApproxDP) and left.epsilon == pytest.approx(0.9) and left.delta == 1e-6
    both = Composed((counts, OpaqueRelease("means", left, "a proof")))
    found = fold(both, "add-remove")
    assert isinstance(found, ApproxDP) and found.epsilon <= 1.0 and found.delta == 1e-6
    assert proved.guarantees(both) == (proved.level,)
    with refuses(PlanError):
        proved.guarantees(Composed((counts, OpaqueRelease("means", proved.level, "a proof"))))
