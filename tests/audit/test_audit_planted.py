"""Every planted fault is caught, and its clean twin passes the same attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from confide_lab.benchmarks import faults as command
from confide_lab.benchmarks.planted.catalogue import ELSEWHERE, FAMILIES, FAULTS, Fault, runs_in
from confide_lab.benchmarks.planted.rounds import ROUNDS

RUNS = 40_000
#: Attacks that draw releases or search through data; the others take milliseconds.
_DEAR = {
    "audit of the method",
    "exact divergence",
    "falsify_safety_bound",
    "falsify_sensitivity",
    "neighboring records",
    "sampled lower bound",
}
#: Five seconds each: the exact sums of tests/methods/reduction and of tests/methods/regression/test_ssp_outcomes.py stand for them.
_DEARER = {"count left out of joint moments", "responses charged as one"}


def _stand_for_the_others() -> Iterator[Fault]:
    """Every kind of fault, in a small method; of each mechanism one for each dear attack."""
    for name, family in FAMILIES.items():
        seen = set[str]()
        for one in family:
            # the rounds of LeastSquares take half a minute each
            if (
                one not in ROUNDS
                and one.name not in _DEARER
                and (name == "a small method" or one.attack not in _DEAR & seen)
            ):
                yield one
            seen.add(one.attack)


_QUICK = set(_stand_for_the_others())


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(one, marks=[] if one in _QUICK else [pytest.mark.long], id=one.name)
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


def test_the_command_lists_every_fault_with_what_catches_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    said = capsys.readouterr().out
    for name, family in FAMILIES.items():
        assert Path(runs_in(name).split()[0]).is_file()
        for fault in family:
            assert f"  {fault.name}" in said and fault.what in said and f"caught by {fault.attack}" in said
    assert f"{len(FAULTS)} planted faults" in said


def test_the_command_runs_faults_and_fails_on_one_that_is_not_caught(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.main(["--run", "noise published"]) == 0
    assert "1 of 1 planted faults caught" in capsys.readouterr().out
    (found,) = command.chosen(["noise published"])
    tame = replace(found[1], build=lambda wrong, runs, seed: found[1].build(False, runs, seed))
    monkeypatch.setattr(command, "chosen", lambda words: [("none", tame)])
    assert command.main(["--run"]) == 1
    assert "NOT CAUGHT" in capsys.readouterr().out
