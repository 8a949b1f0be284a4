"""Ten wrong numbers planted in the lab's functions: each must change a verdict or break a check of the suite.

A plant replaces a function by one with a budget halved, a factor dropped or another estimator; what watches it is a verdict over a
paper's printed number, an erratum's stated number, or a prototype's number, as the suite has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lab.test_prototypes import ROWS, _compared
from tests.lab.test_published_gptr import test_the_runs_of_algorithm_3_compose_to_what_was_asked as runs_compose

from confide_lab.errata import rows
from confide_lab.experiment import run
from confide_lab.experiments import eptr_lines, load, zil_functionals
from confide_lab.published import binagg, generalized_ptr_ops, selection

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Plant:
    """What is wrong, how it is planted, and what must notice: a function that says whether all is as stated."""

    name: str
    plant: Patch
    fine: Callable[[Path], bool]


def _erratum(name: str) -> Callable[[Path], bool]:
    return lambda _: all(one.holds for one in rows(name))


def _verdicts(name: str, only: dict[str, list[str]], reps: int) -> Callable[[Path], dict[str, str]]:
    def made(out: Path) -> dict[str, str]:
        found = run(load(name), out, reps=reps, only=only, progress=False)
        return {f"{r['setting']} {r['method']} {r['quantity']}": r["verdict"] for r in found if "verdict" in r}

    return made


def _no_new_differences(name: str, only: dict[str, list[str]], reps: int, known: int) -> Callable[[Path], bool]:
    """At most `known` printed numbers differ, as without a plant."""
    return lambda out: list(_verdicts(name, only, reps)(out).values()).count("differs") <= known


def _prototypes(name: str, only: dict[str, list[str]], reps: int) -> Callable[[Path], bool]:
    def fine(out: Path) -> bool:
        experiment = load(name)
        found = run(experiment, out, reps=reps, only=only, progress=False)
        blocks = [block for block in experiment.blocks if any(r["block"] == block.name for r in found)]
        return not any(_compared(block, ROWS[f"{name}/{block.name}"], found) for block in blocks)

    return fine


def _composes(_: Path) -> bool:
    try:
        runs_compose(1.0, 1e-6)
    except AssertionError:
        return False
    return True


def _scaled(module: Any, name: str, factor: float, position: int | str) -> Patch:
    """A call of module.name with one argument multiplied."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        own = getattr(module, name)

        def wrong(*args: Any, **settings: Any) -> Any:
            if isinstance(position, str):
                settings[position] = settings[position] * factor
            else:
                args = (*args[:position], args[position] * factor, *args[position + 1 :])
            return own(*args, **settings)

        patch.setattr(module, name, wrong)

    return plant


def _changed(module: Any, name: str, wrong: Callable[[Any], Any]) -> Patch:
    """module.name with its answer changed."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        own = getattr(module, name)
        patch.setattr(module, name, lambda *args, **settings: wrong(own(*args, **settings)))

    return plant


def _equal_weights(patch: pytest.MonkeyPatch) -> None:
    own = binagg.line

    def wrong(released: dict[str, Any], **settings: Any) -> dict[str, Any]:
        counts = np.full_like(released["counts"], float(np.mean(released["counts"])))
        return own({**released, "counts": counts}, **settings)

    patch.setattr(binagg, "line", wrong)


_T1 = {"block": ["versions"], "budget": ["1:9"], "noise": ["literal"], "correction": ["literal"]}
_FIGURE2 = {"block": ["simulated"], "cell": ["5,2000,4"], "method": ["ols", "eptr_literal", "jlt"]}
_EXACT = {"block": ["exact"], "release": ["(0.1, 0.94)"], "h": ["ReLU", "indicator"], "method": ["SL", "DR"]}

PLANTS = [
    Plant(
        "Algorithm 3: the runs get half of the budget of all",
        _changed(generalized_ptr_ops, "run_budget", lambda b: (b[0] / 2, b[1])),
        _composes,
    ),
    Plant(
        "Theorem 4.6: delta of a run without its square",
        _changed(selection, "run_budget", lambda b: (b[0], b[1] ** 0.5)),
        lambda _: _imported(),
    ),
    Plant("BinAgg: half of mu", _scaled(binagg, "shares", 0.5, 0), _no_new_differences("binagg.table1", _T1, 150, 3)),
    Plant(
        "BinAgg: the attenuation is taken off twice",
        _changed(binagg, "bin_sums", lambda r: {**r, "sd_sums": 2**0.5 * r["sd_sums"]}),
        _no_new_differences("binagg.table1", _T1, 150, 3),
    ),
    Plant(
        "BinAgg: equal weights, another estimator", _equal_weights, _no_new_differences("binagg.table1", _T1, 150, 3)
    ),
    Plant(
        "protected rows: the noise lacks its factor sqrt(2)",
        _scaled(zil_functionals, "exact_rmse", 2**-0.5, 2),
        _no_new_differences("zil.table1", _EXACT, 1, 1),
    ),
    Plant(
        "protected rows: zeta is twice as large",
        _scaled(zil_functionals, "exact_rmse", 2.0, 3),
        _no_new_differences("zil.table1", _EXACT, 1, 1),
    ),
    Plant(
        "ePTR: the budget of the line is doubled",
        _scaled(eptr_lines, "eptr_ols", 2.0, "epsilon"),
        _prototypes("eptr.figure2", _FIGURE2, 40),
    ),
    Plant(
        "JL sketch: the bound lacks the response",
        _scaled(eptr_lines, "johnson_lindenstrauss", 0.5, "bound"),
        _prototypes("eptr.figure2", _FIGURE2, 40),
    ),
    Plant(
        "Theorem 5.1: half of epsilon",
        _scaled(generalized_ptr_ops, "precision_51", 0.5, 0),
        lambda _: _erratum_of_posterior(),
    ),
]


def _imported() -> bool:
    """The erratum has names of its own: the plant is put where it looks."""
    from confide_lab.errata import generalized_ptr

    generalized_ptr.run_budget = selection.run_budget
    try:
        return all(one.holds for one in rows("gptr-e7"))
    finally:
        generalized_ptr.run_budget = _RUN_BUDGET


def _erratum_of_posterior() -> bool:
    from confide_lab.errata import generalized_ptr

    generalized_ptr.precision_51 = generalized_ptr_ops.precision_51
    try:
        return all(one.holds for one in rows("gptr-e3"))
    finally:
        generalized_ptr.precision_51 = _PRECISION


_RUN_BUDGET, _PRECISION = selection.run_budget, generalized_ptr_ops.precision_51


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTS, ids=[one.name for one in PLANTS])
def test_a_wrong_number_is_noticed(plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plant.fine(tmp_path / "clean"), "the clean twin"
    with monkeypatch.context() as patch:
        plant.plant(patch)
        assert not plant.fine(tmp_path / "wrong"), f"not noticed: {plant.name}"
