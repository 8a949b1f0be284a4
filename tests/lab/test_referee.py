"""The referee: which of the settings that a paper leaves open give its table, how often they are run, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.messages import refuses
from typer.testing import CliRunner

from confide.cli import app
from confide.errors import PlanError
from confide_lab.command import papers, referee_experiment, run_experiment
from confide_lab.experiment import Block, Experiment, Layout, Printed, Quantity, recorded, run
from confide_lab.experiments import load, names
from confide_lab.referee import Attempt, best, blocks, held_out, judge, referee, search, work

COMMANDS = {"referee": referee_experiment, "papers": papers, "run": run_experiment}
CALLS: list[Mapping[str, Any]] = []


def measure(at: Mapping[str, Any], generator: np.random.Generator) -> dict[str, float]:
    """Skewed sizes, so that mean and median differ."""
    CALLS.append(at)
    return {"size": at["n"] * at["scale"] * float(generator.standard_exponential())}


def toy(printed_at: float) -> Experiment:
    """What is printed are medians at scale 2, under keys of the letter's scale; "spare" is printed and in no table."""
    median = printed_at * np.log(2)
    block = Block(
        "sizes",
        {"n": (1, 2, 3, 4), "scale": (1.0,)},
        ("a", "spare"),
        measure,
        (Quantity("size"),),
        2000,
        printed={
            **{(n, 1.0, "a", "size"): Printed(n * median) for n in (1, 2, 3, 4)},
            (1, 1.0, "spare", "size"): Printed(99.0),
        },
        layouts=(Layout(("n",), ("method",), {"method": ("a",)}),),
        open_settings={"scale": (1.0, 2.0), "statistic": ("mean", "median")},
    )
    plain = Block("plain", {"n": (1,)}, ("a",), measure, (Quantity("size"),), 2)
    return Experiment("toy.sizes", "Sizes", (block, plain), ("nobody",))


def test_the_setting_that_gives_the_table_is_found_and_all_of_them_are_counted(tmp_path: Path) -> None:
    tried = referee(toy(2.0), tmp_path, only={"method": ["a"]}, progress=False)
    assert [one.setting for one in tried] == search(toy(2.0).block("sizes"))
    assert [one.letter for one in tried] == [True, False, False, False]
    found = best(tried)
    assert found.setting == {"scale": 2.0, "statistic": "median"} and (found.agree, len(found.cells)) == (4, 4)
    assert tried[0].agree < 4 and found.by_method() == {"a": (4, 4)}
    chosen, agree, rest = held_out(tried)
    assert chosen is found and (agree, rest) == (2, 2)


def test_no_setting_is_said_to_fit_where_none_does(tmp_path: Path) -> None:
    tried = referee(toy(40.0), tmp_path, only={"method": ["a"]}, reps=200, progress=False)
    assert [(one.agree, one.differ) for one in tried] == [(0, 4)] * 4


def test_what_was_run_is_not_run_again_and_mean_and_median_share_their_runs(tmp_path: Path) -> None:
    CALLS.clear()
    first = referee(toy(2.0), tmp_path, only={"scale": ["2.0"], "method": ["a"]}, reps=12, progress=False)
    assert len(CALLS) == 4 * 12, "two statistics of the same runs"
    again = referee(toy(2.0), tmp_path, only={"scale": ["2.0"], "method": ["a"]}, reps=12, progress=False)
    assert len(CALLS) == 4 * 12 and [one.cells for one in first] == [one.cells for one in again]


def test_methods_that_know_no_open_setting_are_not_judged_and_missing_cells_are_open(tmp_path: Path) -> None:
    """Else the letter would have their cells on top of its own."""
    whole = toy(2.0)
    sizes = replace(
        whole.block("sizes"),
        methods=("a", "b", "spare"),
        printed={**whole.block("sizes").printed, (1, 1.0, "b", "size"): Printed(1.0)},
        layouts=(),
        without=lambda at, method: at["scale"] != 1.0 and (method == "b" or at["n"] == 4),
    )
    own = replace(whole, blocks=(sizes,))
    assert blocks(own, {})[0][1]["method"] == ["a", "spare"]
    tried = referee(own, tmp_path, reps=300, only={"method": ["a"], "statistic": ["median"]}, progress=False)
    assert [len(one.cells) for one in tried] == [4, 4] and tried[1].cells[4, 1.0, "a", "size"] == "open"


def test_few_runs_and_wide_bands_leave_a_cell_open() -> None:
    row = {"value": 0.52, "error": 0.002, "replications": 50, "heavy": False}
    assert judge(row, Printed(0.53)) == "agrees" and judge(row, Printed(0.55)) == "differs"
    assert judge({**row, "error": 0.011}, Printed(0.55)) == "agrees", "within three standard errors"
    for change in ({"replications": 9}, {"error": 0.04}, {"error": None}, {"heavy": True}, {"value": None}):
        assert judge({**row, **change}, Printed(0.53)) == "open", change
    assert judge({**row, "replications": 1}, Printed(0.53), exact=True) == "agrees"


def test_the_work_is_what_is_run(tmp_path: Path) -> None:
    only = {"scale": ["2.0"], "method": ["a"]}
    CALLS.clear()
    referee(toy(2.0), tmp_path, only=only, reps=3, progress=False)
    assert work(toy(2.0), 3, only)[0] == len(CALLS) == 12 and work(toy(2.0), 6, only)[1] > work(toy(2.0), 3, only)[1]


def test_what_a_referee_tried_is_in_no_table_of_the_experiment(tmp_path: Path) -> None:
    """Also where both are told to record in one folder; their folders differ where nothing is said."""
    own = replace(toy(2.0), blocks=toy(2.0).blocks[:1])
    kept = run(own, tmp_path, reps=5, only={"method": ["a"]}, progress=False)
    referee(own, tmp_path, reps=5, only={"method": ["a"]}, progress=False)
    assert recorded(own, tmp_path) == kept and {one["setting"]["scale"] for one in kept} == {1.0}
    default = {name: signature(one).parameters["out"].default for name, one in COMMANDS.items()}
    assert default["referee"] != default["papers"] == default["run"]


def test_refusals_name_what_is_tried() -> None:
    with refuses(PlanError):
        blocks(load("zil.figure2"), {})
    with refuses(PlanError):
        blocks(toy(2.0), {"scale": ["3.0"]})
    with refuses(PlanError):
        blocks(toy(2.0), {"n": ["9"]})
    with refuses(PlanError):
        blocks(toy(2.0), {"block": ["plain"]})
    assert (
        search(toy(2.0).block("sizes"), {"scale": ["2"]}) == search(toy(2.0).block("sizes"), {"scale": ["2.0"]}) != []
    )


def test_open_settings_begin_with_the_printed_reading() -> None:
    """Keys of `printed` stand with the first value, else the referee would count nothing."""
    for name in names():
        for block in load(name).blocks:
            for setting, values in block.open_settings.items():
                assert len(set(values)) == len(values) > 1, (name, setting)
                if setting != "statistic":
                    place = list(block.grid).index(setting)
                    assert values[0] in block.grid[setting], (name, setting)
                    assert any(key[place] == values[0] for key in block.printed), (name, setting)


def test_the_command_states_the_settings_first_and_the_choice_after(tmp_path: Path) -> None:
    only = ["--cell", "method=SL", "--cell", "h=ReLU"]
    done = CliRunner().invoke(app, ["lab", "referee", "zil.table1", *only, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    text = " ".join(done.stdout.split())
    assert "zil.table1, exact: 4 of 4 settings are tried. The first of each is the letter's" in text
    assert any("release: (0.05, 1.4), (0.05, 1.2)" in line for line in lines[:4])
    notes = " ".join(done.stderr.split())
    assert "8 replications, about" in notes and "exact, setting 2 of 4: release=(0.05, 1.2)" in notes
    text = " ".join(done.stdout.split())
    assert "best of 4 tried: release=(0.05, 1.2): 2 of 2 printed cells agree" in text
    assert "release=(0.05, 1.4) (letter) 0 2 0" in text
    few = ["--cell", "half=.5", "--cell", "box=[0, 2]", "--cell", "method=oracle", "--cell", "n=5000", "--reps", "1"]
    done = CliRunner().invoke(app, ["lab", "referee", "zil.table2", *few, "--out", str(tmp_path)])
    text = " ".join(done.stdout.split())
    assert "zil.table2, slopes: 1 of 6 settings are tried" in text and "chosen on every second" not in text
    assert "no printed cell agrees under any of 1 settings; 12 of 12 are open: give more --reps" in text
    assert CliRunner().invoke(app, ["lab", "referee", "zil.table1", "--reps", "0"]).exit_code != 0
    assert CliRunner().invoke(app, ["lab", "referee", "zil.figure1"]).exit_code != 0


@pytest.mark.parametrize(("words", "agree"), [(("agrees", "open"), 1), (("differs", "open"), 0)])
def test_counts_of_an_attempt(words: tuple[str, str], agree: int) -> None:
    one = Attempt("b", {"x": 1}, {(k, "m", "q"): word for k, word in enumerate(words)}, True)
    assert one.agree == agree and one.to_json()["printed"] == 2 and one.text() == "x=1"
