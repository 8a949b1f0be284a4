"""Every planted fault is caught, and its clean twin passes the same attack."""

from __future__ import annotations

import pytest
from benchmarks.planted import ELSEWHERE, FAULTS, Fault
from benchmarks.planted_ssp2 import SSP2_FAULTS

RUNS = 40_000


@pytest.mark.parametrize(
    "fault",
    # the rounds of SSP2 take half a minute each
    [
        pytest.param(one, marks=[pytest.mark.long] if one in SSP2_FAULTS else [], id=one.name)
        for one in FAULTS
        if one not in ELSEWHERE
    ],
)
def test_a_planted_fault_is_caught_and_its_clean_twin_passes(fault: Fault) -> None:
    assert fault.caught(RUNS).verdict == "violated"
    assert fault.passed(RUNS).violated == ()


def test_there_are_enough_faults_and_each_is_named_once() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 24
    assert {fault.attack for fault in FAULTS} >= {"falsify_sensitivity", "audit of the method", "sampled lower bound"}
