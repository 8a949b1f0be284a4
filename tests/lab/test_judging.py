"""No judgement from too few runs, in any experiment; and none that cannot fail."""

from __future__ import annotations

from typing import Any

import pytest

from confide.errors import SourceError
from confide_lab.experiments import load, names
from confide_lab.judging import below, covers, limits_of, runs_that_tell, told


def _row(value: float, error: float | None, runs: int, method: str = "a") -> dict[str, Any]:
    return {"method": method, "value": value, "error": error, "replications": runs}


def test_a_check_is_open_below_the_runs_that_could_tell() -> None:
    assert told("x", False, "y", runs=9).ok is None and told("x", False, "y", runs=10).ok is False
    assert "9 of the 10 runs" in told("x", True, "y", runs=9).text


@pytest.mark.parametrize("least", [0.5, 0.9, 0.93, 0.95])
def test_runs_that_tell_are_the_fewest_with_which_a_bad_interval_fails(least: float) -> None:
    n = runs_that_tell(least)
    bad = max(1 - 3 * (1 - least), 0.0)
    assert limits_of(bad, n)[1] < least + 0.02 and limits_of(bad, n // 2)[1] > least
    assert covers("x", _row(bad - 0.1 if bad > 0.1 else 0.0, 0.01, n), least).ok is False
    assert covers("x", _row(bad, 0.01, n - 1), least).ok is None


def test_an_order_needs_a_difference_that_the_runs_can_see() -> None:
    assert below("x", _row(1, 0.1, 20), _row(2, 0.1, 20)).ok is True
    assert below("x", _row(2, 0.1, 20), _row(1, 0.1, 20)).ok is False
    assert below("x", _row(1, 0.1, 20), _row(1.2, 0.1, 20)).ok is None
    assert below("x", _row(1, None, 1), _row(2, None, 1)).ok is None
    # the same numbers from two runs
    assert below("x", _row(1, 0.1, 2), _row(2, 0.1, 2)).ok is None
    # what draws nothing has no error, and a limit none either
    assert below("x", _row(1, 0.1, 20), _row(2, None, 1, "ols"), exact=("ols",)).ok is True
    assert below("x", _row(1, 0.1, 20), 2.0).ok is True and below("x", _row(1, 0.1, 20), 2.0, times=0.1).ok is False


def _records(name: str, runs: int) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Records that a run of the block might give: the same value everywhere, errors as one run has them."""
    found = []
    for block in load(name).blocks:
        if block.checks is None:
            continue
        cells: list[dict[str, Any]] = [{}]
        for setting, values in block.grid.items():
            cells = [{**cell, setting: value} for cell in cells for value in values]
        rows = [
            {"setting": cell, "method": method, "quantity": q.name, "statistic": q.statistic, "value": 0.5, "error": None,
             "mean": 0.5, "median": 0.5, "replications": runs, "experiment": name, "block": block.name}
            for cell in cells if "draws" not in cell for method in block.methods for q in block.quantities
            if not q.name.startswith("exact")
        ]  # fmt: skip
        found.append((block, rows))
    return found


@pytest.mark.parametrize("name", [n for n in names() if any(b.checks for b in load(n).blocks)])
def test_no_experiment_judges_one_run(name: str) -> None:
    for block, rows in _records(name, 1):
        try:
            words = [(one.name, one.ok, one.text) for one in block.checks(rows)]
        except SourceError as error:
            pytest.skip(str(error))
        assert all(ok is None for _, ok, _ in words), (block.name, [word for word in words if word[1] is not None])


def _cell(setting: dict[str, Any], method: str, quantity: str, value: float, error: float) -> dict[str, Any]:
    return {"setting": setting, "quantity": quantity, "statistic": "mean", **_row(value, error, 100, method)}


def test_an_error_that_is_not_reached_is_told_in_coefficients_and_in_predictions() -> None:
    block = load("eptr.figure2").block("budget")
    assert block.checks is not None
    rows = [
        _cell({"epsilon": 1.5}, method, quantity, value, 0.0001)
        for method, values in (("ols", (1.0006, 0.0006)), ("eptr_literal", (1.03, 0.03)))
        for quantity, value in zip(("mse", "error"), values, strict=True)
    ]
    assert [one.ok for one in block.checks(rows)] == [True, False] and "50 times" in block.checks(rows)[1].text


@pytest.mark.parametrize(("best", "ok"), [(0.05, True), (0.08, False), (0.0701, None)])
def test_the_paper_s_order_of_linear_regressions_can_fail(best: float, ok: bool | None) -> None:
    block = load("gptr.figure1").block("errors")
    assert block.checks is not None
    at = {"data": "airfoil", "epsilon": 1.0}
    others = ("outpert_literal", "ops_balanced_literal", "adaops_literal")
    rows = [_cell(at, "ops_ptr_literal", "mse", best, 0.001), *(_cell(at, name, "mse", 0.07, 0.001) for name in others)]
    (found,) = block.checks(rows)
    assert found.ok is ok and found.name.startswith("the paper's order, airfoil")


def test_the_paper_s_order_of_votes_can_fail() -> None:
    block = load("pate.figure2").block("simulated")
    assert block.checks is not None
    at = {"votes": "high", "sigma": 20.0}
    rows = [_cell(at, name, "epsilon", value, 0.1) for name, value in (("gaussian", 4.4), ("algorithm_4", 26.0))]
    assert [one.ok for one in block.checks(rows)] == [False]
