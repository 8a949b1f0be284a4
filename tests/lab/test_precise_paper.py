"""The paper's figures and tables run, and say what they are known to say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.few import few

from confide_lab.datasets import available
from confide_lab.experiment import run
from confide_lab.experiments import load
from confide_lab.experiments.precise import failing


def _values(name: str, out: Path, **settings: object) -> dict[tuple, float]:
    said: list[str] = []
    found = run(load(name), out, progress=False, note=said.append, **settings)  # type: ignore[arg-type]
    assert not said, said
    return {(*row["setting"].values(), row["method"], row["quantity"]): row["value"] for row in found}


@pytest.mark.long
def test_the_density_gap_comes_near_its_limit_from_below_the_bound(tmp_path: Path) -> None:
    g = _values("precise.figure5", tmp_path, only={"n": ["100", "5000"]})
    assert g["bernoulli", 0.3, 100, "numeric", "G"] == pytest.approx(1.2106, abs=1e-4)
    for family, truth in (("bernoulli", 0.3), ("poisson", 10.0), ("mean", 1.0), ("variance", 1.0)):
        near, limit, bound = (g[family, truth, 5000, method, "G"] for method in ("numeric", "asymptotic", "bound"))
        assert near == pytest.approx(limit, rel=0.03) and limit <= bound * (1 + 1e-9)


def test_the_constants_are_those_of_records_that_are_written_down(tmp_path: Path) -> None:
    found = _values("precise.table2", tmp_path)
    for parameter in {key[0] for key in found}:
        assert found[parameter, "records", "C"] == pytest.approx(found[parameter, "formula", "C"], rel=2e-3)
    assert found["bernoulli p", "formula", "G_0"] == pytest.approx(1.1522, abs=1e-4)


@pytest.mark.long
def test_seconds_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    only = {"n": ["100"], "method": ["PRECISE", "MS", "PB", "noise-aware, Gaussian"]}
    seconds = _values("precise.table3", tmp_path, reps=1, only=only)
    assert all(0 <= value < 5 for value in seconds.values()) and len(seconds) == 4


def test_table_4_has_72_judged_numbers_and_the_order_of_its_columns(tmp_path: Path) -> None:
    from confide_lab.papers.catalogue import Item
    from confide_lab.papers.tally import numbers_of

    experiment = load("precise.table4")
    numbers = numbers_of(Item("Table 4", "x", "precise.table4"), experiment, [])
    assert sum(one.reading == "letter" for one in numbers) == 72
    assert sum(one.reading == "restored" for one in numbers) == 64
    only = {"class": ["adult, income"], "budget": ["0.1"], "bin": ["0.0005"], "least": ["0.0", "0.1"]}
    records = run(experiment, tmp_path, reps=120, only=only, progress=False)
    by = {(r["setting"]["least"], r["method"], r["quantity"]): r for r in records}
    assert by[0.0, "original", "width"]["value"] == pytest.approx(7.21, abs=0.06)
    widths = {method: by[0.1, method, "width"]["value"] for method in ("(+, m*)", "(-, m*)", "(+, m)", "(-, m)")}
    # the third printed column is more than twice as wide as the others
    assert widths["(+, m)"] > 1.8 * max(widths["(+, m*)"], widths["(-, m*)"], widths["(-, m)"])
    assert by[0.1, "(+, m)", "sd of width"]["value"] > 10
    (letter, restored) = experiment.blocks[0].checks(records)  # type: ignore[misc]
    assert "of 8 widths" in letter.text and "of 8 widths" in restored.text and restored.ok is not None
    few = [{**r, "replications": 50} for r in records]
    assert all(one.ok is None for one in experiment.blocks[0].checks(few))  # type: ignore[misc]
    # a table that is another one is told
    other = [{**r, "value": 3 * r["value"], "error": r["error"] or 0.1} for r in records if r["value"]]
    assert all(one.ok is False for one in experiment.blocks[0].checks(other))  # type: ignore[misc]


def test_four_versions_and_ours_on_one_cell(tmp_path: Path) -> None:
    found = _values(
        "precise.figure4", tmp_path, reps=4, only={"n": ["500"], "budget": ["1.0"], "block": ["poisson", "mean"]}
    )
    assert len(found) == 2 * 6 * 2 and all(value >= 0 for value in found.values())


def test_coverage_cells_are_judged(tmp_path: Path) -> None:
    """A cell whose coverage is too low by the rule fails, and one that the bounds dominate is left out."""
    experiment = load("precise.gdp")
    only = {"block": ["bernoulli"], "n": ["500"], "budget": ["1.0"], "truth": ["0.3"]}
    records = run(experiment, tmp_path, reps=90, only=only, progress=False)
    (check,) = failing(records)
    assert check.ok and check.text.startswith("2 judged, 0 fail, 0 dominated")
    # one run, or ten, say nothing: neither that it holds nor that it fails
    for runs in (1, 10):
        (early,) = failing([{**row, "value": 0.0, "replications": runs} for row in records])
        assert early.ok is None and early.text.endswith("2 with too few runs to tell")
    low = [
        {**row, "value": 0.7, "replications": 1000} if row["quantity"] == "share coverage" else row for row in records
    ]
    assert not failing(low)[0].ok
    wide = [{**row, "value": 1.0} if row["quantity"] == "share dominated" else row for row in low]
    # where the bounds dominate every cell nothing is judged
    assert failing(wide)[0].ok is None and "2 dominated" in failing(wide)[0].text


@pytest.mark.parametrize("name", few(["precise.regression", "precise.coverage"], "precise.regression"))
def test_lines_and_surfaces_run(tmp_path: Path, name: str) -> None:
    line = name == "precise.regression"
    only = {"block": ["slope" if line else "exact_poisson"], "n": ["500"], "budget": ["5.0"]}
    found = run(load(name), tmp_path, reps=2, only=only, progress=False)
    assert found and all(row["failed"] == 0 for row in found)


def test_columns_of_a_real_set_are_asked_for_in_every_way(tmp_path: Path) -> None:
    if (why := available("yacht")) is not None:
        pytest.skip(why)
    found = _values("precise.real", tmp_path, reps=1, only={"set": ["yacht"], "n": ["500"], "wide": ["1.0"]})
    assert {method for *_, method, _ in found} == set(load("precise.real").blocks[0].methods)
    # the exponential mechanisms have no intervals
    assert all(
        value == value for (*_, method, name), value in found.items() if method != "exponential" or name == "error"
    )
