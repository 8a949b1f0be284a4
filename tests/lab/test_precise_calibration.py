"""Calibration of the posteriors by simulation: ranks of the truth are uniform, and an error in the noise is found."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.few import few

from confide_lab.experiment import run
from confide_lab.experiments import load
from confide_lab.experiments.precise_calibration import ALARM, FAMILIES, rank_of, uniformity

_RUNS = {
    "bernoulli": 400,
    "categorical": 400,
    "poisson": 80,
    "mean": 100,
    "variance": 100,
    "difference": 300,
    "slope": 200,
}
#: Where the records say less of a slope than the noise does, whatever it is taken for, no fault shows.
_LEAST = {"slope": 0.5}
_CELLS = [(family, law, budget) for family in FAMILIES for law in ("laplace", "normal") for budget in (0.1, 5.0)]


def _slow(family: str, law: str) -> bool:
    return law == "laplace" and family in ("mean", "variance")


def _ranks_are_uniform(family: str, law: str, budget: float) -> None:
    g = np.random.default_rng(zlib.crc32(f"{family} {law} {budget}".encode()))
    ranks = [rank_of(family, law, budget, g) for _ in range(_RUNS[family])]
    assert uniformity(ranks) > ALARM / len(_CELLS)


def _quick(family: str, law: str, budget: float) -> bool:
    return family in ("bernoulli", "categorical") or (law, budget) == ("normal", 5.0)


@pytest.mark.parametrize(
    ("family", "law", "budget"),
    [pytest.param(*cell, marks=[] if _quick(*cell) else [pytest.mark.long]) for cell in _CELLS if not _slow(*cell[:2])],
)
def test_ranks_of_the_truth_are_uniform(family: str, law: str, budget: float) -> None:
    """One valid run of all cells in 1,000 fails."""
    _ranks_are_uniform(family, law, budget)


@pytest.mark.long
@pytest.mark.parametrize(("family", "law", "budget"), [cell for cell in _CELLS if _slow(*cell[:2])])
def test_ranks_are_uniform_under_laplace_noise_on_two_sums(family: str, law: str, budget: float) -> None:
    """The same, of posteriors that take a tenth of a second."""
    _ranks_are_uniform(family, law, budget)


@pytest.mark.parametrize("family", few(sorted(FAMILIES), "bernoulli", "categorical", "difference", "mean"))
def test_a_posterior_with_the_wrong_noise_is_found(family: str) -> None:
    """Noise of a tenth of its scale, of a line eight times its scale: the same test at the same level fails."""
    g = np.random.default_rng(1)
    budget, fault = _LEAST.get(family, 0.1), 8.0 if family == "slope" else 0.1
    ranks = [rank_of(family, "normal", budget, g, fault=fault) for _ in range(_RUNS[family])]
    assert uniformity(ranks) < ALARM / len(_CELLS)


def test_the_experiment_tests_every_cell(tmp_path: Path) -> None:
    experiment = load("precise.calibration")
    found = run(experiment, tmp_path, reps=5, only={"family": ["bernoulli", "categorical"]}, progress=False)
    (check,) = experiment.blocks[0].checks(found)
    assert check.ok is None and check.text.startswith("8 cells")
    (enough,) = experiment.blocks[0].checks([{**row, "replications": 50} for row in found])
    (wrong,) = experiment.blocks[0].checks([{**row, "replications": 50, "value": 1e-9} for row in found])
    assert enough.ok is True and wrong.ok is False
