"""Which of the settings that a paper leaves open give its table: each is stated beforehand and run, and printed cells are counted.

A block names them in `open_settings`: setting -> values, the letter's reading first. All combinations are run on the cells that the paper
prints, recorded and resumed as `confide_lab.experiment.run` does. A printed cell agrees when ours lies within three of our standard errors
or 3 % of it, whichever is more. It is open where ours says nothing: fewer than ten replications, a heavy tail, three standard errors
above a fifth of the number. The best of several settings agrees in part by having been chosen: so the choice is made once more on every
second cell and counted on the others.

>>> import tempfile
>>> import numpy as np
>>> from confide_lab.experiment import Block, Experiment, Printed, Quantity
>>> def measure(at, generator):
...     return {"size": abs(generator.normal(0.0, at["sd"] * at["n"]))}
>>> block = Block("sizes", {"n": (1, 2), "sd": (1.0,)}, ("normal",), measure, (Quantity("size", "rms"),), 400,
...     printed={(n, 1.0, "normal", "size"): Printed(2.0 * n) for n in (1, 2)}, open_settings={"sd": (1.0, 2.0)})
>>> tried = referee(Experiment("toy.sd", "Sizes", (block,), ("none",)), tempfile.mkdtemp(), progress=False)
>>> [(one.setting, one.agree, one.differ) for one in tried], best(tried).setting
([({'sd': 1.0}, 0, 2), ({'sd': 2.0}, 2, 0)], {'sd': 2.0})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from confide.errors import PlanError
from confide_lab.experiment import Block, Experiment, Printed, Record, _spelt, run, selected
from confide_lab.layouts import LETTER
from confide_lab.papers.plan import cost_of
from confide_lab.quantities import LEAST, WIDE
from confide_lab.runner import Value

__all__ = ["Attempt", "best", "held_out", "judge", "referee", "search", "work"]

#: How far an agreeing cell may lie: standard errors of ours, and share of the printed number.
ERRORS, SHARE = 3.0, 0.03
#: Not a setting of the grid: mean or median of the replications.
STATISTIC = "statistic"


@dataclass(frozen=True)
class Attempt:
    """One setting of one block. cells: printed cell -> "agrees", "differs" or "open", by the letter's key; letter: whether it is that."""

    block: str
    setting: Mapping[str, Value]
    cells: Mapping[tuple[Any, ...], str]
    letter: bool

    @property
    def agree(self) -> int:
        """Printed cells that agree."""
        return sum(word == "agrees" for word in self.cells.values())

    @property
    def differ(self) -> int:
        """Printed cells that differ."""
        return sum(word == "differs" for word in self.cells.values())

    def by_method(self) -> dict[str, tuple[int, int]]:
        """Method -> (cells that agree, cells that are printed)."""
        found: dict[str, tuple[int, int]] = {}
        for key, word in self.cells.items():
            agree, printed = found.get(key[-2], (0, 0))
            found[key[-2]] = agree + (word == "agrees"), printed + 1
        return found

    def to_json(self) -> dict[str, Any]:
        """Block, setting, counts, and how many of each method."""
        return {
            "block": self.block,
            "setting": dict(self.setting),
            "letter": self.letter,
            "agree": self.agree,
            "differ": self.differ,
            "printed": len(self.cells),
            "by_method": {method: list(counts) for method, counts in self.by_method().items()},
        }

    def text(self) -> str:
        """The setting in one line."""
        return _said(self.setting)


def _said(setting: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items())


def search(block: Block, only: Mapping[str, Sequence[str]] | None = None) -> list[dict[str, Value]]:
    """Every combination of what the block leaves open, the letter's first; only: those with these values, as text."""
    wanted = {
        name: [_spelt(text, [*map(str, block.open_settings.get(name, ()))]) for text in texts]
        for name, texts in (only or {}).items()
    }
    whole = [dict(zip(block.open_settings, values, strict=True)) for values in product(*block.open_settings.values())]
    return [one for one in whole if all(str(value) in wanted.get(name, (str(value),)) for name, value in one.items())]


def referee(
    experiment: Experiment,
    out: str | Path,
    *,
    reps: int | None = None,
    jobs: int = 1,
    resume: bool = True,
    only: Mapping[str, Sequence[str]] | None = None,
    progress: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> list[Attempt]:
    """One `Attempt` for each block that leaves something open and each combination of it. Parameters: as of `confide_lab.experiment.run`.

    Raises `PlanError` where no block leaves anything open, and for settings or values that there are not.
    """
    found: list[Attempt] = []
    for block, asked in blocks(experiment, only or {}):
        tried: list[Attempt] = []
        for setting in search(block, only):
            part = _at(block, setting)
            note(f"{block.name}, setting {len(tried) + 1} of {len(search(block, only))}: {_said(setting)}")
            own = replace(experiment, blocks=(part,))
            go_on = resume or bool(tried)
            records = run(own, out, reps=reps, jobs=jobs, resume=go_on, only=asked, progress=progress, note=note)
            tried.append(
                Attempt(block.name, setting, _judged(part, block, setting, records), setting == search(block)[0])
            )
        # a cell that a setting does not have counts for it as open: all settings are judged on the same cells
        cells = [key for key in block.printed if any(key in one.cells for one in tried)]
        found += [replace(one, cells={key: one.cells.get(key, "open") for key in cells}) for one in tried]
    return found


def blocks(experiment: Experiment, only: Mapping[str, Sequence[str]]) -> list[tuple[Block, dict[str, Sequence[str]]]]:
    """The blocks that leave something open, each with what `only` asks of the rest of its grid, among the methods that are printed."""
    there = [block for block in experiment.blocks if block.open_settings and block.printed]
    if not there:
        raise PlanError(
            f"no block of {experiment.name} names settings that its paper leaves open; run it as it is: confide lab run {experiment.name}"
        )
    found = []
    asked_for = only.get("block", [block.name for block in there])
    unknown = [name for name in asked_for if name not in [block.name for block in there]]
    if unknown:
        raise PlanError(
            f"{experiment.name} has no block {unknown[0]!r} that leaves settings open; these do: {', '.join(b.name for b in there)}"
        )
    for block in there:
        if block.name not in asked_for:
            continue
        asked = {name: values for name, values in only.items() if name not in (*block.open_settings, "block")}
        methods = [m for m in block.methods if any(key[-2] == m for key in block.printed)]
        asked.setdefault("method", [m for m in methods if _tells(block, m)])
        if not search(block, only):
            tried = "; ".join(f"{name}: {', '.join(map(str, v))}" for name, v in block.open_settings.items())
            raise PlanError(f"{experiment.name} tries no such value of what its paper leaves open; it tries {tried}")
        selected(replace(experiment, blocks=(block,)), asked)  # refuses what there is not before anything runs
        found.append((block, asked))
    return found


def work(
    experiment: Experiment, reps: int | None = None, only: Mapping[str, Sequence[str]] | None = None
) -> tuple[int, float]:
    """(replications of cells, their seconds on one process of the machine that measured `cost_of`), where nothing is recorded."""
    count, seconds = 0, 0.0
    for block, asked in blocks(experiment, only or {}):
        # settings that differ in the statistic alone share their runs
        grids = {_said(part.grid): part for part in (_at(block, setting) for setting in search(block, only))}
        for part in grids.values():
            for own, grid, methods in selected(replace(experiment, blocks=(part,)), asked):
                for method in methods:
                    times = min(own.replications if reps is None else reps, own.fewer.get(method, inf))
                    points = (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
                    runs = int(times) * sum(own.without is None or not own.without(at, method) for at in points)
                    count += runs
                    seconds += runs * cost_of(experiment.name, own.name, method)
    return count, seconds


def _tells(block: Block, method: str) -> bool:
    """Whether a method is run with any setting but the letter's: one that knows none of them says nothing about them."""
    if block.without is None:
        return True
    points = [dict(zip(block.grid, values, strict=True)) for values in product(*block.grid.values())]
    letter = search(block)[0]
    others = [s for s in search(block) if any(s[name] != letter[name] for name in s if name in block.grid)]
    return any(not block.without({**at, **setting}, method) for setting in others or [letter] for at in points)


def best(tried: Sequence[Attempt]) -> Attempt:
    """The setting with which most cells agree; of equals the one that was stated first."""
    return max(tried, key=lambda one: one.agree)


def held_out(tried: Sequence[Attempt]) -> tuple[Attempt, int, int]:
    """(the setting chosen on every second printed cell, cells that agree among the others, how many these are)."""
    keys = list(tried[0].cells)
    chosen = max(tried, key=lambda one: sum(one.cells[key] == "agrees" for key in keys[::2]))
    rest = keys[1::2]
    return chosen, sum(chosen.cells[key] == "agrees" for key in rest), len(rest)


def judge(record: Record, printed: Printed, *, exact: bool = False) -> str:
    """ "agrees", "differs" or "open".

    >>> row = {"value": 0.52, "error": 0.01, "replications": 100, "heavy": False}
    >>> [judge(row, Printed(value)) for value in (0.50, 0.48, 0.53)]
    ['agrees', 'differs', 'agrees']
    >>> judge({**row, "replications": 9}, Printed(0.50)), judge({**row, "error": 0.05}, Printed(0.50))
    ('open', 'open')
    """
    if record["value"] is None or printed.open:
        return "open"
    error = 0.0 if exact else record["error"]
    if error is None or (not exact and (record["replications"] < LEAST or record.get("heavy"))):
        return "open"
    size = abs(printed.value) if printed.scale is None else printed.scale
    if abs(record["value"] - printed.value) > max(ERRORS * error, SHARE * size):
        return "differs"
    return "open" if ERRORS * error > WIDE * size else "agrees"


def _at(block: Block, setting: Mapping[str, Value]) -> Block:
    """The block with one value for each open setting, and without what is not the referee's."""
    grid = {**block.grid, **{name: (value,) for name, value in setting.items() if name != STATISTIC}}
    quantities = block.quantities
    if STATISTIC in setting:
        stated = block.open_settings[STATISTIC][0]
        quantities = tuple(
            replace(one, statistic=str(setting[STATISTIC])) if one.statistic == stated else one for one in quantities
        )
    return replace(block, grid=grid, quantities=quantities, printed={}, checks=None, overall=None)


def _judged(
    part: Block, block: Block, setting: Mapping[str, Value], records: Sequence[Record]
) -> dict[tuple[Any, ...], str]:
    """Printed cell of the letter -> what is said of the record that this setting has for it."""
    places = {name: k for k, name in enumerate(block.grid)}
    by = {(*record["setting"].values(), record["method"], record["quantity"]): record for record in records}
    found = {}
    named = [name for name in setting if name in places]
    for key, printed in block.printed.items():
        if not _counted(block, key) or any(key[places[name]] != block.open_settings[name][0] for name in named):
            continue
        here = list(key)
        for name in named:
            here[places[name]] = setting[name]
        if tuple(here) in by:
            found[key] = judge(by[tuple(here)], printed, exact=part.is_exact(key[-2]))
    return found


def _counted(block: Block, key: tuple[Any, ...]) -> bool:
    """Whether a printed number is a cell of the paper's own table: one over several cells is not, nor what no layout shows."""
    if len(key) != len(block.grid) + 2:
        return False
    cell = {"setting": dict(zip(block.grid, key, strict=False)), "method": key[-2], "quantity": key[-1]}
    letter = [layout for layout in block.layouts if layout.reading == LETTER]
    return not letter or any(layout.kept([cell]) for layout in letter)
