"""Numbers of prototypes, written without this library's code, beside the experiments: they test the code and are no paper's.

`prototypes.json`: experiment/block -> rows of key (settings, method, quantity), value, digits, replications, tolerance.
"""

from __future__ import annotations

import json
from math import inf, sqrt
from pathlib import Path
from typing import Any

import pytest
from tests.few import few

from confide_lab.experiment import Block, run
from confide_lab.experiments import load

ROWS: dict[str, list[list[Any]]] = json.loads((Path(__file__).parent / "prototypes.json").read_text())
#: experiment, part, replications: cheap cells, and a longer list.
SHORT = [
    ("voting.figure3", {}, 1),
    ("tables.marginals", {"sizes": ["(12, 2)", "(8, 2, 12)"]}, 1),
    ("precise.figure5", {"block": ["bernoulli"], "truth": ["0.3"]}, 1),
    ("pca.comparison", {"rows": ["2000 x 50"], "epsilon": ["1.0"]}, 4),
    ("eptr.figure3", {"block": ["point"], "cell": ["2000,4"], "method": ["nw", "eptr_literal", "kernel_curve"]}, 60),
    ("eptr.figure2", {"block": ["simulated"], "cell": ["5,2000,4"], "method": ["ols", "eptr_literal", "jlt"]}, 40),
]
LONG = [
    ("eptr.figure1", {"block": ["budget"], "epsilon": ["1.5", "3.0"]}, 20),
    ("eptr.figure2", {"block": ["simulated"], "cell": ["5,8000,1", "10,1000,4"]}, 30),
    ("eptr.figure3", {"block": ["point"], "cell": ["2000,1.5", "5000,1.5"]}, 60),
    ("gptr.figure1", {"data": ["sim17000x12"], "epsilon": ["1.0"]}, 7),
    ("gptr.intervals", {"block": ["cells"], "cell": ["2000 5 1", "10000 5 5"]}, 100),
    (
        "binagg.figure1",
        {"d": ["5"], "n": ["1000"], "method": ["ols", "adassp_literal", "ssp", "binagg_literal", "binagg"]},
        40,
    ),
]


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _compared(block: Block, rows: list[list[Any]], found: list[dict[str, Any]]) -> list[str]:
    """What lies outside: three standard errors of the difference and half a digit, or the tolerance with three of ours."""
    by = {(*r["setting"].values(), r["method"], r["quantity"]): r for r in found if r["block"] == block.name}
    off, seen = [], 0
    for key, value, digits, replications, tolerance in rows:
        ours = by.get(_plain(key))
        if ours is None or ours["value"] is None:
            continue
        seen += 1
        error = ours["error"] or 0.0
        theirs = error * sqrt(ours["replications"] / replications) if replications else 0.0
        allowed = (
            sqrt(tolerance**2 + 9 * error**2)
            if tolerance is not None
            else 3 * sqrt(error**2 + theirs**2) + 0.5 * 10.0**-digits
        )
        if abs(ours["value"] - value) > allowed:
            off.append(f"{key}: {ours['value']:.4g} against {value:.4g}, allowed {allowed:.2g}")
    assert seen, "nothing was compared"
    return off


def test_every_prototype_number_names_a_cell_of_an_experiment() -> None:
    assert sum(map(len, ROWS.values())) == 1025
    for place, rows in ROWS.items():
        name, _, title = place.partition("/")
        block = load(name).block(title)
        for key, value, *_ in rows:
            *settings, method, quantity = _plain(key)
            assert method in block.methods and quantity in {q.name for q in block.quantities}, (place, key)
            assert all(s in values for s, values in zip(settings, block.grid.values(), strict=True)), (place, key)
            assert abs(value) < inf


@pytest.mark.parametrize(("name", "only", "reps"), few(SHORT, 1, 2, 3, 5), ids=[one[0] for one in SHORT])
def test_cheap_cells_meet_the_prototypes(name: str, only: dict[str, list[str]], reps: int, tmp_path: Path) -> None:
    _meets(name, only, reps, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("name", "only", "reps"), LONG, ids=[one[0] for one in LONG])
def test_dear_cells_meet_the_prototypes(name: str, only: dict[str, list[str]], reps: int, tmp_path: Path) -> None:
    _meets(name, only, reps, tmp_path)


def _meets(name: str, only: dict[str, list[str]], reps: int, out: Path) -> None:
    experiment = load(name)
    notes: list[str] = []
    found = run(experiment, out, reps=reps, jobs=1, only=only, progress=False, note=notes.append)
    assert not any("failed" in note for note in notes), notes
    off: list[str] = []
    for block in experiment.blocks:
        rows = ROWS.get(f"{name}/{block.name}", [])
        if rows and any(r["block"] == block.name for r in found):
            off += _compared(block, rows, found)
    # of a hundred comparisons at three errors one may lie outside
    assert len(off) <= 1, off
