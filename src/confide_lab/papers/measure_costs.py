"""Measure what one replication of a method costs, into `seconds.json`: python -m confide_lab.papers.measure_costs [PAPER ..]

Seconds are of the processor, of up to three cells of each block after a first one that loads what is needed.
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


def main(keys: Sequence[str] = tuple(PAPERS)) -> None:
    """Measure every method of these papers that can run here; the others keep what stands in the file."""
    kept: dict[str, float] = json.loads(PLACE.read_text()) if PLACE.is_file() else {}
    for paper in (PAPERS[key] for key in keys):
        for name in experiments_of(paper):
            experiment = load(name)
            for block in experiment.blocks:
                for method in block.methods:
                    if block.missing(method) is None:
                        kept[f"{name}/{block.name}/{method}"] = float(f"{_seconds(experiment, block, method):.3g}")
                PLACE.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
                print(name, block.name, flush=True)  # noqa: T201


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
    taken = []
    for k in range(3):
        begun = time.process_time()
        outcome_of(study, cells[(len(cells) - 1) * k // 2])
        taken.append(time.process_time() - begun)
        if sum(taken) > _LONGEST:
            break
    return sum(taken) / len(taken)


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(PAPERS))
