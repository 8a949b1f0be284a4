"""Studies resume, repeat nothing, lose nothing, give the same numbers on any number of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.lab.runner_measures import faulty, logged, noise, threads
from tests.messages import refuses, warns

from confide.errors import PlanError
from confide_lab.runner import Study, cell, run, seed_of, version_of_sources

GRID = {"n": (10, 100), "sd": (1.0, 2.5)}
quietly = partial(run, progress=False)


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="seconds")


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_one_row_a_cell_and_the_same_numbers_for_any_number_of_jobs(tmp_path: Path) -> None:
    study = Study("noise", GRID, noise, replications=3)
    one, two = quietly(study, tmp_path / "1", jobs=1), quietly(study, tmp_path / "2", jobs=2)
    assert list(one.columns) == ["n", "sd", "replication", "mean", "positive", "law", "seconds", "error"]
    assert len(one) == 12
    assert one["error"].isna().all()
    pd.testing.assert_frame_equal(numbers(one), numbers(two))
    assert one["mean"].nunique() == 12
    assert (one["law"] == "normal").all() and (one["positive"] == 1.0).all()


def test_any_cell_can_be_run_alone(tmp_path: Path) -> None:
    study = Study("noise", GRID, noise, replications=3)
    table = quietly(study, tmp_path, jobs=1)
    for row in table.itertuples():
        alone = cell(study, {"sd": row.sd, "n": row.n}, row.replication)
        assert alone["mean"] == row.mean
    with refuses(PlanError):
        cell(study, {"n": 10}, 0)


def test_a_seed_is_a_function_of_the_name_and_the_coordinates() -> None:
    base = seed_of("a", {"n": 10, "sd": 1.0}, 0)
    assert base == seed_of("a", {"sd": np.float64(1.0), "n": np.int64(10)}, 0) == seed_of("a", {"n": 10.0, "sd": 1}, 0)
    others = [
        seed_of("b", {"n": 10, "sd": 1.0}, 0),
        seed_of("a", {"n": 10, "sd": 1.0}, 1),
        seed_of("a", {"n": 11, "sd": 1.0}, 0),
        seed_of("a", {"n": "10", "sd": 1.0}, 0),
        seed_of("a", {"n": 10, "s": 1.0}, 0),
        seed_of("a", {"n": (10,), "sd": 1.0}, 0),
        seed_of("a", {"n": True, "sd": 1.0}, 0),
        seed_of("a", {"n": None, "sd": 1.0}, 0),
    ]
    assert len({base, *others}) == 9
    assert base >> 192 == 0x270725ED942E49E, "frozen: a changed seed changes every published figure"


def test_what_is_finished_is_not_repeated_and_longer_grids_go_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    grid = {"k": (1, 2), "wait": (0.0,), "log": (str(log),)}
    first = quietly(Study("logged", grid, logged, 2), tmp_path, jobs=1)
    again = quietly(Study("logged", grid, logged, 2), tmp_path, jobs=2)
    pd.testing.assert_frame_equal(first, again)
    assert len(log.read_text().splitlines()) == 4
    longer = quietly(Study("logged", {**grid, "k": (3, 2, 1)}, logged, 3), tmp_path, jobs=1)
    assert len(log.read_text().splitlines()) == len(longer) == 9
    kept = longer[longer["k"].isin([1, 2]) & (longer["replication"] < 2)].sort_values(["k", "replication"])
    assert kept["value"].tolist() == first["value"].tolist()
    shorter = quietly(Study("logged", {**grid, "k": (3,)}, logged, 1), tmp_path, jobs=1)
    assert len(shorter) == 1
    assert len(log.read_text().splitlines()) == 9


def test_another_version_and_no_resume_start_afresh(tmp_path: Path) -> None:
    log = tmp_path / "log"
    grid = {"k": (1,), "wait": (0.0,), "log": (str(log),)}
    for version in (1, 2, "b", 1):
        quietly(Study("logged", grid, logged, 1, version), tmp_path, jobs=1)
    assert len(log.read_text().splitlines()) == 3
    quietly(Study("logged", grid, logged, 1), tmp_path, jobs=1, resume=False)
    assert len(log.read_text().splitlines()) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_recorded_and_stops_nothing(tmp_path: Path, jobs: int) -> None:
    ways = ["raises", "exits", "answers with a list", "answers with a setting", "answers with an array", "works"]
    ways += ["dies"] if jobs > 1 else []
    table = quietly(Study("faulty", {"how": ways, "flag": ("",)}, faulty), tmp_path, jobs=jobs)
    errors = dict(zip(table["how"], table["error"], strict=True))
    assert errors["raises"] == "ValueError: no root between 0 and 1"
    assert errors["exits"] == "SystemExit: 3"
    assert "TypeError: measure must return numbers by name" in errors["answers with a list"]
    assert "'how'" in errors["answers with a setting"]
    assert "'x' is ndarray" in errors["answers with an array"]
    assert pd.isna(errors["works"])
    assert jobs == 1 or errors["dies"] == "the worker process died (exit code 7)"
    assert table.set_index("how").loc["works", "x"] == 1.0


def test_a_failed_cell_is_tried_again(tmp_path: Path) -> None:
    study = Study("faulty", {"how": ("fails once",), "flag": (str(tmp_path / "flag"),)}, faulty)
    assert quietly(study, tmp_path, jobs=1)["error"][0] == "RuntimeError: not yet"
    table = quietly(study, tmp_path, jobs=1)
    assert pd.isna(table["error"][0])
    assert table["x"][0] == 1.0


def test_a_damaged_part_is_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    grid = {"k": (1, 2), "wait": (0.0,), "log": (str(log),)}
    small, large = Study("logged", {**grid, "k": (1,)}, logged), Study("logged", grid, logged)
    whole = quietly(large, tmp_path / "other", jobs=1)
    quietly(small, tmp_path, jobs=1)
    (part,) = (tmp_path / "logged" / "1").glob("part-*.parquet")
    for damage in (part.read_bytes()[:-20], b"", b"PAR1" + bytes(200)):
        part.write_bytes(damage)
        with warns(UserWarning):
            table = quietly(large, tmp_path, jobs=1)
        pd.testing.assert_frame_equal(numbers(whole), numbers(table))
        (part,) = (tmp_path / "logged" / "1").glob("part-*.parquet")


SCRIPT = """
import sys
from confide_lab.runner import Study, run
from tests.lab.runner_measures import logged

if __name__ == "__main__":
    study = Study("logged", {"k": tuple(range(12)), "wait": (0.15,), "log": (sys.argv[1],)}, logged, 2)
    run(study, sys.argv[2], jobs=2, progress=False)
"""


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    log, script = tmp_path / "log", tmp_path / "script.py"
    script.write_text(SCRIPT)
    log.touch()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    call = [sys.executable, str(script), str(log), str(tmp_path / "out")]
    begun = subprocess.Popen(call, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
    # a busy machine may be slow to record what it has measured
    until(lambda: len(log.read_text().splitlines()) >= 11 and any((tmp_path / "out").rglob("part-*.parquet")))
    if how == signal.SIGKILL:
        begun.kill()
    else:
        os.killpg(begun.pid, how)
    assert begun.wait(300) != 0
    time.sleep(0.5)  # whatever the workers still do
    recorded = sum(pq.read_metadata(part).num_rows for part in (tmp_path / "out").rglob("part-*.parquet"))
    tried = len(log.read_text().splitlines())
    assert recorded > 0
    if how == signal.SIGINT:
        assert tried - 2 <= recorded <= tried
    subprocess.run(call, env=environment, check=True)
    lines = log.read_text().splitlines()
    assert len(lines) == tried + 24 - recorded  # what was recorded is not repeated, the rest is run once more
    assert len(set(lines)) == 24


@pytest.mark.long
def test_the_workers_of_a_killed_run_end(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("0.15", "30.0"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    begun = subprocess.Popen(
        [sys.executable, str(script), "log", str(tmp_path)], env=environment, start_new_session=True
    )
    import psutil

    def workers() -> list[psutil.Process]:
        return [child for child in psutil.Process(begun.pid).children() if "spawn_main" in " ".join(child.cmdline())]

    until(lambda: len(workers()) == 2)
    time.sleep(1.5)
    found = workers()
    begun.kill()
    begun.wait()
    assert not psutil.wait_procs(found, 5)[1]


def test_workers_use_one_thread_each(tmp_path: Path) -> None:
    before = os.environ.get("OMP_NUM_THREADS")
    table = quietly(Study("threads", {}, threads), tmp_path, jobs=2)
    assert (table["openmp"][0], table["most"][0]) == ("1", 1.0)
    assert os.environ.get("OMP_NUM_THREADS") == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Two words"},
        {"name": "../up"},
        {"version": "a/b"},
        {"replications": 0},
        {"replications": True},
        {"measure": 3},
        {"grid": {"seconds": (1,)}},
        {"grid": {"a": ()}},
        {"grid": {"a": "text"}},
        {"grid": {"a": (1, 1.0)}},
        {"grid": {"a": (float("nan"),)}},
        {"grid": {"a": ([1],)}},
    ],
    ids=str,
)
def test_impossible_studies_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        Study(**{"name": "noise", "grid": GRID, "measure": noise, **wrong})  # type: ignore[arg-type]


def test_what_cannot_be_sent_to_a_process_is_refused_with_the_call_that_works(tmp_path: Path) -> None:
    study = Study("local", {"n": (1,)}, lambda at, generator: {"x": 1.0})
    with refuses(PlanError):
        quietly(study, tmp_path, jobs=2)
    assert quietly(study, tmp_path, jobs=1)["x"][0] == 1.0
    for jobs in (0, True, 1.5):
        with refuses(PlanError):
            quietly(study, tmp_path, jobs=jobs)


def test_the_version_of_the_sources_changes_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1\n")
    before = version_of_sources(str(file))
    assert before == version_of_sources(str(file)) != version_of_sources()
    file.write_text("x = 2\n")
    assert version_of_sources(str(file)) != before
