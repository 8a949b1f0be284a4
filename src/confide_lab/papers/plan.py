"""How much of the papers is run: replications of each block and method, by what one costs, so that a mode takes the time it promises.

Costs are seconds of one replication, measured once (`seconds.json`, with the command that writes it): the plan, and with it every number
of the site, is the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor
from pathlib import Path

from confide_lab.experiment import Block, Experiment, run
from confide_lab.experiments import load, names
from confide_lab.papers.catalogue import PAPERS, Paper
from confide_lab.runner import Value

__all__ = ["MODES", "Unit", "cost_of", "estimate", "experiments_of", "perform", "units"]

#: Seconds of work in all; None: the papers' own numbers of replications.
MODES: dict[str, float | None] = {"smoke": 9.0, "quick": 1100.0, "full": None}
#: Replications that quick runs at most: two standard errors of a proportion near .95 are then .02.
_QUICK_MOST = 400
#: Blocks that read data sets: a smoke run leaves them out, so that it is the same with and without them.
_REAL = {
    "binagg.table2", "binagg.table3", "binagg.table5", "binagg.table6", "binagg.table7", "binagg.table8",
    "eptr.figure1/credit", "eptr.figure2/bottom", "eptr.figure2/wine", "eptr.figure3/housing", "gptr.figure1", "gptr.logistic/adult",
    "pate.figure2/mnist",
}  # fmt: skip
_UNKNOWN = 0.5


@dataclass(frozen=True)
class Unit:
    """One method of one block, and how often it is run on each cell. seconds: of all of it; one: of one replication of every cell."""

    experiment: Experiment
    block: Block
    method: str
    replications: int
    seconds: float
    one: float

    @property
    def place(self) -> str:
        """experiment/block/method."""
        return f"{self.experiment.name}/{self.block.name}/{self.method}"


def experiments_of(paper: Paper) -> tuple[str, ...]:
    """The experiments of a paper: those of its items, then whatever else is registered under its name."""
    named = [item.experiment for item in paper.items if item.experiment]
    further = [name for name in names() if name.startswith(f"{paper.key}.")]
    known = set(names())
    return tuple(name for name in dict.fromkeys([*named, *further]) if name in known)


@lru_cache(maxsize=1)
def _costs() -> dict[str, float]:
    found: dict[str, float] = json.loads((Path(__file__).parent / "seconds.json").read_text())
    return found


def cost_of(experiment: str, block: str, method: str) -> float:
    """Seconds of one replication of one cell, on the machine that measured them."""
    return _costs().get(f"{experiment}/{block}/{method}", _UNKNOWN)


def units(mode: str, papers: Sequence[str] = tuple(PAPERS)) -> list[Unit]:
    """What a mode runs of these papers; a unit whose single replication is too dear has none.

    >>> sum(unit.seconds for unit in units("smoke")) < 10 < sum(unit.seconds for unit in units("full"))
    True
    """
    whole = [
        _unit(experiment, block, method)
        for key in papers
        for name in experiments_of(PAPERS[key])
        for experiment in [load(name)]
        for block in experiment.blocks
        for method in block.methods
    ]
    total = MODES[mode]
    if mode == "smoke":
        found = [
            _smallest(unit)
            for unit in whole
            if unit.place.split("/")[0] not in _REAL and unit.place.rpartition("/")[0] not in _REAL
        ]
        return _cheapest(found, float(total or 0))
    wanted = [_times(unit, _wanted(unit, mode)) for unit in whole]
    return wanted if total is None else _shared_out(wanted, total)


def _unit(experiment: Experiment, block: Block, method: str) -> Unit:
    cells = 1
    for values in block.grid.values():
        cells *= len(values)
    one = cells * cost_of(experiment.name, block.name, method)
    return Unit(experiment, block, method, 1, one, one)


def _times(unit: Unit, replications: int) -> Unit:
    return replace(unit, replications=replications, seconds=unit.one * replications)


def _wanted(unit: Unit, mode: str) -> int:
    if unit.block.is_exact(unit.method):
        return 1
    own = unit.block.full or unit.block.replications
    return own if mode == "full" else min(own, _QUICK_MOST)


def _smallest(unit: Unit) -> Unit:
    """One replication of the first cell."""
    first: dict[str, tuple[Value, ...]] = {name: tuple(values[:1]) for name, values in unit.block.grid.items()}
    block = replace(unit.block, grid=first)
    one = cost_of(unit.experiment.name, block.name, unit.method)
    return Unit(unit.experiment, block, unit.method, 1, one, one)


def _cheapest(found: list[Unit], total: float) -> list[Unit]:
    spent, kept = 0.0, set[str]()
    for unit in sorted(found, key=lambda unit: (unit.seconds, unit.place)):
        spent += unit.seconds
        if spent <= total:
            kept.add(unit.place)
    return [unit for unit in found if unit.place in kept]


def _shared_out(wanted: list[Unit], total: float) -> list[Unit]:
    """Equal time for every unit that cannot end within it: the largest time for which the sum stays within the total."""
    low, high = 0.0, total
    for _ in range(60):
        middle = (low + high) / 2
        if sum(_within(unit, middle).seconds for unit in wanted) <= total:
            low = middle
        else:
            high = middle
    return [_within(unit, low) for unit in wanted]


def _within(unit: Unit, seconds: float) -> Unit:
    return _times(unit, min(unit.replications, floor(seconds / unit.one) if unit.one > 0 else unit.replications))


def estimate(chosen: Sequence[Unit], jobs: int) -> float:
    """Seconds that the units take on that many processes, where nothing is recorded yet."""
    return sum(unit.seconds for unit in chosen) / max(jobs, 1)


def perform(
    chosen: Sequence[Unit],
    out: Path,
    *,
    jobs: int,
    resume: bool,
    note: Callable[[str], None],
    done: Callable[[Unit], None],
) -> None:
    """Run what is not recorded; done is called after each unit. A unit whose method cannot run here is left out with a note."""
    cleared = set[str]()
    for unit in chosen:
        if unit.replications and unit.block.missing(unit.method) is None:
            block = replace(unit.block, methods=(unit.method,), replications=unit.replications, fewer={}, overall=None)
            part = replace(unit.experiment, blocks=(block,))
            study = f"{unit.experiment.name}/{unit.block.name}"
            run(part, out, jobs=jobs, resume=resume or study in cleared, progress=False, note=note)
            cleared.add(study)
        done(unit)
