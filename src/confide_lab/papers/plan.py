"""How much of the papers is run: replications of each block and method, by what one costs, so that a mode takes the time it promises.

Costs are seconds of one replication, measured once (`seconds.json`, with the command that writes it): the plan, and with it every number
of the site, is the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import floor, prod
from multiprocessing import get_context
from pathlib import Path

from confide_lab.experiment import Block, Experiment, run
from confide_lab.experiments import load, names
from confide_lab.papers.catalogue import PAPERS, Paper
from confide_lab.runner import Value

__all__ = ["MODES", "Unit", "cost_of", "estimate", "experiments_of", "once", "perform", "run_block", "units"]

#: Seconds of work in all; None: the papers' own numbers of replications.
MODES: dict[str, float | None] = {"smoke": 9.0, "quick": 1100.0, "full": None}
#: Replications that quick runs at most: two standard errors of a proportion near .95 are then .02.
_QUICK_MOST = 400
#: Blocks that read data sets: a smoke run leaves them out, so that it is the same with and without them.
_REAL = {
    "binagg.table2", "binagg.table3", "binagg.table5", "binagg.table6", "binagg.table7", "binagg.table8",
    "eptr.figure1/credit", "eptr.figure2/bottom", "eptr.figure2/wine", "eptr.figure3/housing", "gptr.figure1", "gptr.logistic/adult",
    "pate.figure2/mnist", "pate.figure2/release", "precise.real", "precise.table4",
}  # fmt: skip
#: What no paper has: a quick run leaves it out.
_OWN = {
    "binagg.table1/others", "binagg.table2/public", "eptr.class_intervals", "eptr.figure2/coverage", "eptr.figure2/defaults",
    "eptr.figure2/simulated", "eptr.figure2/wine", "eptr.figure3/coverage", "gptr.intervals", "gptr.logistic/adult",
    "pate.figure2/release", "precise.real", "zil.coverage", "zil.rivals", "zil.table1/simulated",
}  # fmt: skip
#: A method whose numbers are printed gets that much more time than one that is drawn beside them.
_PRINTED_SHARE = 6.0
_UNKNOWN = 0.5
#: Seconds to record one replication and to read it again, beside what it costs.
_RECORDED = 4e-4


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
    return _costs().get(f"{experiment}/{block}/{method}", _UNKNOWN) + _RECORDED


def once(experiment: Experiment, block: Block, method: str) -> float:
    """Seconds of one replication of all cells."""
    return _cells(block, method) * cost_of(experiment.name, block.name, method)


def _cells(block: Block, method: str) -> int:
    """Cells of a method, without those that are left out."""
    if block.without is None:
        return prod(len(values) for values in block.grid.values())
    settings = (dict(zip(block.grid, values, strict=True)) for values in product(*block.grid.values()))
    return sum(not block.without(one, method) for one in settings)


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
    if mode == "quick":
        whole = [
            unit for unit in whole if unit.experiment.name not in _OWN and unit.place.rpartition("/")[0] not in _OWN
        ]
    wanted = [_times(unit, _wanted(unit, mode)) for unit in whole]
    return wanted if total is None else _shared_out(wanted, total)


def _unit(experiment: Experiment, block: Block, method: str) -> Unit:
    one = once(experiment, block, method)
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
    block = replace(unit.block, grid=_first(unit.block))
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
    printed = any(key[-2] == unit.method for key in unit.block.printed)
    seconds *= _PRINTED_SHARE if printed else 1.0
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
    done: Callable[[Sequence[Unit]], None],
) -> None:
    """Run what is not recorded, a block at a time in each process, the longest first; done is called with the units of a finished block.

    A method that cannot run here is left out with a note.
    """
    blocks: dict[tuple[str, str], list[Unit]] = {}
    for unit in chosen:
        blocks.setdefault((unit.experiment.name, unit.block.name), []).append(unit)
    todo = sorted(blocks.values(), key=lambda own: -sum(unit.seconds for unit in own))
    if jobs == 1:
        for own in todo:
            for text in run_block(_task(own), out, resume):
                note(text)
            done(own)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = {pool.submit(run_block, _task(own), out, resume): own for own in todo}
        for one in as_completed(waiting):
            for text in one.result():
                note(text)
            done(waiting[one])


@dataclass(frozen=True)
class Task:
    """A block's units, by name, for a process of its own. first: the first cell alone."""

    experiment: str
    block: str
    counts: tuple[tuple[str, int], ...]
    first: bool


def _task(own: Sequence[Unit]) -> Task:
    first = any(unit.block.grid != unit.experiment.block(unit.block.name).grid for unit in own)
    counts = tuple((unit.method, unit.replications) for unit in own)
    return Task(own[0].experiment.name, own[0].block.name, counts, first)


def run_block(task: Task, out: Path, resume: bool) -> list[str]:
    """Run one task in this process; what there was to note."""
    experiment, notes = load(task.experiment), list[str]()
    block = experiment.block(task.block)
    if task.first:
        block = replace(block, grid=_first(block))
    for method, count in task.counts:
        if count and block.missing(method) is None:
            own = replace(block, methods=(method,), replications=count, fewer={}, overall=None)
            part = replace(experiment, blocks=(own,))
            run(part, out, jobs=1, resume=resume, progress=False, note=notes.append)
            resume = True
    return notes


def _first(block: Block) -> dict[str, tuple[Value, ...]]:
    return {name: tuple(values[:1]) for name, values in block.grid.items()}
