"""Code on blocks tried before the charge, on test data, and releases in which none of it runs."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide.engine.releasing import drawn
from confide.noise import SimulatedNoise
from confide.sums.blocks.isolated_process import (
    Answers,
    FallbackOnly,
    InProcess,
    Isolated,
    Room,
    block_runner,
    fallbacks_only,
    in_place,
)
from confide.sums.blocks.record_block import BlockWork

ANSWERS = Answers((2,), -1.0, 1.0, 0.5)
SCHEMA = cf.Schema({"x": cf.Numeric(-4, 4, on_missing="midpoint"), "y": cf.Categorical(["a", "b"], on_missing="a")})


def _tried(work: Any, k: int = 4, n: int | None = None, room: Room | None = None, **words: str) -> str:
    whole = BlockWork(work, ANSWERS, Room(2.0) if room is None else room, k)
    return whole.rehearse(lambda size: np.ones((size, 1)), n, **words)


def _raises(table: Any, generator: Any) -> Any:
    raise KeyError("theta")


def _ends(table: Any, generator: Any) -> Any:
    os._exit(3)


def _hangs(table: Any, generator: Any) -> Any:
    time.sleep(60)


def _slow(table: Any, generator: Any) -> Any:
    time.sleep(0.25)
    return [0.0, 0.0]


FAULTS = {
    "raises": _raises,
    "says text": lambda table, generator: "no",
    "says nothing": lambda table, generator: None,
    "another shape": lambda table, generator: [0.0],
    "not a number": lambda table, generator: [0.0, np.nan],
    "infinite": lambda table, generator: [0.0, np.inf],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", ["processes", "here"])
def test_what_ends_badly_is_told_in_full(fault: str, where: str) -> None:
    work = FAULTS[fault]
    with refuses(cf.errors.PlanError):
        if where == "here":
            with in_place():
                _tried(work, n=100)
        else:
            _tried(work, n=100)


def test_what_hangs_or_ends_its_process_does_so_apart() -> None:
    with refuses(cf.errors.PlanError):
        _tried(_ends)
    with refuses(cf.errors.PlanError):
        _tried(_hangs, room=Room(0.5))


def test_what_is_late_is_refused_with_the_seconds_that_do() -> None:
    with pytest.raises(cf.errors.PlanError, match=r"took .* and a block has 0\.18 s: write seconds=\d"):
        _tried(_slow, room=Room(0.8))
    with pytest.raises(cf.errors.PlanError, match=r"leave each of 4 parts 0\.05 s.* write seconds=1, fewer parts"):
        _tried(_slow, room=Room(0.2), blocks="parts")
    with in_place():
        assert "took" in _tried(_slow, room=Room(0.2)), "no clock is looked at"


def test_what_goes_well_says_how_long_it_takes_and_leaves_nothing() -> None:
    def work(table: Any, generator: Any) -> list[float]:
        print("heard")  # noqa: T201
        random.random(), np.random.random()  # noqa: NPY002
        table[:] = 0
        return [len(table), generator.random()]

    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    assert "2 s in every case: 4 blocks, 1 side by side, 0.5 s each; test data of 30 records took" in _tried(
        work, n=120
    )
    assert "test data of 200 records (n= says how many a block has)" in _tried(work)
    assert before == (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index]  # noqa: NPY002


def test_what_it_prints_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    def work(table: Any, generator: Any) -> list[float]:
        print("heard")  # noqa: T201
        return [0.0, 0.0]

    _tried(work)
    assert "heard" not in "".join(capfd.readouterr())


class Breaks:
    """A sampler, and a teacher, that is well where a plan tries it and runs no more once it is `broken`."""

    broken = False

    def __call__(self, table: Any, generator: Any) -> Any:
        return self.fit(table).predict(np.zeros((10, 1)))

    def fit(self, x: Any, y: Any = None) -> Breaks:
        if Breaks.broken:
            raise AssertionError("a caller's code ran")
        return self

    def predict(self, x: Any) -> Any:
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("method", "privacy"),
    [
        (cf.intervals.BlockPosterior(Breaks(), {"mean": (-4, 4)}, blocks=25, columns=("x",)), cf.PureDP(12.0)),
        (cf.voting.TeacherLabels("y", Breaks(), np.zeros((20, 1)), 25, certificate="gaussian"), cf.GDP(20.0)),
    ],
    ids=["block_posterior", "teacher_labels"],
)
def test_within_fallbacks_only_no_code_runs_and_every_block_says_its_fallback(
    method: Any, privacy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the gate rehearses: a minute of the room's time is not taken. What comes out is what a release says whose blocks fail."""
    start, data = time.monotonic(), cf.read(SCHEMA.sample(300, seed=1), SCHEMA)
    plan = cf.plan(method, SCHEMA, privacy)
    monkeypatch.setattr(Breaks, "broken", True)
    with fallbacks_only():
        release = drawn(method, data, plan, SimulatedNoise(1), "nothing was charged", paid=False)
    assert time.monotonic() - start < 20
    result = cf.infer(release)
    assert result.status == "no_information" and "most_blocks_failed" in result.flags


def test_a_switch_ends_with_its_block() -> None:
    with in_place():
        with fallbacks_only():
            assert block_runner() is FallbackOnly
        assert block_runner() is InProcess
    assert block_runner() is Isolated
