"""Measure what one replication of a method costs, into `seconds.json`: python -m confide_lab.papers.measure_costs [PAPER or EXPERIMENT ..]

Seconds are of the processor, of three to twelve cells of each block after a first one that loads what is needed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from confide_lab.experiment import Block, Experiment, study_of
from confide_lab.experiments import load
from confide_lab.papers.catalogue import PAPERS
from confide_lab.papers.plan import experiments_of
from confide_lab.runner.workers import outcome_of

__all__ = ["main"]

PLACE = Path(__file__).parent / "seconds.json"
_LONGEST = 8.0
_ENOUGH = 1.0


def main(keys: Sequence[str] = tuple(PAPERS)) -> None:
    """Measure every method that can run here; the others keep what stands in the file, and what is no longer run leaves it."""
    kept: dict[str, float] = json.loads(PLACE.read_text()) if PLACE.is_file() else {}
    known = {place for paper in PAPERS.values() for name in experiments_of(paper) for place in _places(load(name))}
    kept = {place: seconds for place, seconds in kept.items() if place in known}
    for name in [name for key in keys for name in (experiments_of(PAPERS[key]) if key in PAPERS else (key,))]:
        experiment = load(name)
        for block in experiment.blocks:
            for method in block.methods:
                if block.missing(method) is None:
                    kept[f"{name}/{block.name}/{method}"] = float(f"{_seconds(experiment, block, method):.3g}")
            PLACE.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
            print(name, block.name, flush=True)  # noqa: T201


def _places(experiment: Experiment) -> list[str]:
    return [f"{experiment.name}/{block.name}/{method}" for block in experiment.blocks for method in block.methods]


def _seconds(experiment: Experiment, block: Block, method: str) -> float:
    study = study_of(experiment, replace(block, methods=(method,)), 1)
    cells = list(study.cells())
    if not cells:
        return 0.0
    begun = time.process_time()
    outcome_of(study, cells[0])
    first = time.process_time() - begun
    if len(cells) == 1 or first > _LONGEST:
        return first
    # cells far from each other first: the ends and the middle, then what lies between them
    spread = [k / 11 for k in range(12)]
    taken = []
    for share in (0.0, 1.0, 0.5, *spread[1:-1]):
        begun = time.process_time()
        outcome_of(study, cells[round((len(cells) - 1) * share)])
        taken.append(time.process_time() - begun)
        if sum(taken) > _LONGEST or (len(taken) >= 3 and sum(taken) > _ENOUGH):
            break
    return sum(taken) / len(taken)


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(PAPERS))
