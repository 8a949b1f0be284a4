"""An experiment as data: cells of settings, methods, what is measured, what the source prints, how it is drawn.

An `Experiment` has one `Block` or more; a block is a grid of settings for which the same things are measured. The measure of a block is
called once for each cell, method and replication, as any `confide_lab.runner.Study` is: the method stands in the coordinates as "method",
so that a method which appears later adds cells and changes none. `run` runs what is not recorded yet, `records` makes one record for each
cell, method and quantity, with what the source prints beside it.

>>> import tempfile
>>> def measure(at, generator):
...     draws = generator.normal(1.0, 1.0, at["n"])
...     return {"distance": abs((draws.mean() if at["method"] == "mean" else np.median(draws)) - 1.0)}
>>> block = Block("main", {"n": (100, 400)}, ("mean", "median"), measure, (Quantity("error", of="distance"),), 20, 1000,
...     printed={(100, "mean", "error"): Printed(0.080, replications=1000)})
>>> coin = Experiment("toy.mean", "Errors of two averages", (block,), sources=("none",))
>>> found = run(coin, tempfile.mkdtemp(), jobs=1, progress=False)
>>> len(found), found[0]["setting"], found[0]["method"], found[0]["paper"], found[0]["verdict"]
(4, {'n': 100}, 'mean', 0.08, 'undetermined')
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from confide.errors import PlanError
from confide_lab.layouts import Layout
from confide_lab.quantities import Printed, Quantity, Record, judged, record
from confide_lab.runner import Measure, Study, Value, run as run_study
from confide_lab.runner.parts import Parts
from confide_lab.runner.versions import code_version, measure_version

__all__ = [
    "Block",
    "Check",
    "Drawing",
    "Experiment",
    "Layout",
    "Printed",
    "Quantity",
    "Record",
    "code_version",
    "recorded",
    "run",
    "study_of",
]


@dataclass(frozen=True)
class Check:
    """One judgement over a block's records: what was asked, whether it holds, and the numbers."""

    name: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Drawing:
    """How a block is drawn. kind: "lines" over a setting, or "dots": one row for each value of it.

    x: the setting on the axis (rows, for dots); quantity; panels: a setting with one panel for each value; log: "", "x", "y", "xy".
    """

    kind: str
    x: str
    quantity: str
    panels: str = ""
    log: str = ""
    title: str = ""
    y_label: str = ""
    x_label: str = ""
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Block:
    """A grid of settings, the methods compared on it, and one measure.

    name: lower-case; grid: values of each setting, without the method; methods: names handed to the measure as "method"; measure: a
    function of a module; quantities: what is reported; replications: of a run that asks for no other number; full: the paper's number,
    None where it states none;
    printed: {(value of each setting.., method, quantity): Printed}; fewer: replications at most, for methods that take long; missing:
    method -> why it cannot run here, or None; without: (settings, method) -> whether that cell is left out; overall: records over
    several cells; checks: judgements over the records; titles: of methods that `confide_lab.fits` does not know; version: change it when
    what is measured changes; exact: methods that draw nothing, True for all;
    layouts: rows and columns as the paper prints them; open_settings: what the paper leaves open, setting -> the values that
    `confide_lab.referee` tries, the letter's first, with whose value the keys of `printed` stand; "statistic" is one of them where the
    paper does not say whether it averages by mean or median.
    """

    name: str
    grid: Mapping[str, Sequence[Value]]
    methods: tuple[str, ...]
    measure: Measure
    quantities: tuple[Quantity, ...]
    replications: int
    full: int | None = None
    printed: Mapping[tuple[Any, ...], Printed] = field(default_factory=dict)
    title: str = ""
    fewer: Mapping[str, int] = field(default_factory=dict)
    missing: Callable[[str], str | None] = lambda _: None
    without: Callable[[Mapping[str, Value], str], bool] | None = None
    overall: Callable[[pd.DataFrame], list[Record]] | None = None
    checks: Callable[[Sequence[Record]], list[Check]] | None = None
    drawing: Drawing | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    version: int = 1
    exact: tuple[str, ...] | bool = ()
    layouts: tuple[Layout, ...] = ()
    open_settings: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    def is_exact(self, method: str) -> bool:
        """Whether the method draws nothing on this grid: its one number has no error."""
        return self.exact if isinstance(self.exact, bool) else method in self.exact


@dataclass(frozen=True)
class Experiment:
    """A named experiment. sources: where the design and the printed numbers come from; notes: what a reader of the numbers must know."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def block(self, name: str) -> Block:
        """The block of that name."""
        for block in self.blocks:
            if block.name == name:
                return block
        raise PlanError(f"{self.name} has no block {name!r}; it has {', '.join(block.name for block in self.blocks)}")


def run(
    experiment: Experiment,
    out: str | Path,
    *,
    reps: int | None = None,
    jobs: int = 1,
    resume: bool = True,
    only: Mapping[str, Sequence[str]] | None = None,
    progress: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Run every cell that is not recorded yet in `out` for this code; the records of the cells asked for.

    reps: replications of each cell and method, in place of each block's own; only: {setting: values as text}, "method" and "block" among
    them, to run a part; note: is told which methods are missing and what failed.

    Raises `PlanError` for settings or values that the experiment does not have.
    """
    found: list[Record] = []
    for block, grid, methods in selected(experiment, only or {}):
        there = []
        for method in methods:
            reason = block.missing(method)
            if reason is None:
                there.append(method)
            else:
                note(f"{experiment.name} {block.name}: {method} is left out: {reason}")
        frames: list[pd.DataFrame] = []
        for count, group in _by_count(block, there, reps):
            study = _study(experiment, block, grid, group, count)
            frames.append(run_study(study, out, jobs=jobs, resume=resume or bool(frames), progress=progress))
        if not frames:
            continue
        frame = pd.concat(frames, ignore_index=True)
        failed = frame[frame["error"].notna()]
        if len(failed):
            first = failed.iloc[0]
            note(
                f"{experiment.name} {block.name}: {len(failed)} of {len(frame)} cells failed, first {first['method']}: {first['error']}"
            )
        found += records(experiment, block, frame)
    return found


def recorded(experiment: Experiment, out: str | Path) -> list[Record]:
    """The records of what stands in `out` of this experiment's grid: of this code, or else of the code that ran last."""
    found: list[Record] = []
    for block in experiment.blocks:
        folder = Path(out) / _study_name(experiment, block)
        versions = sorted((path for path in folder.glob("*") if path.is_dir()), key=lambda path: path.stat().st_mtime)
        now = folder / _version(block)
        if not versions:
            continue
        rows: list[dict[str, Any]] = [
            {**_settings(one.settings), "replication": one.replication, **one.numbers, **one.texts, "error": one.error}
            for one in Parts(now if now in versions else versions[-1]).load().values()
        ]
        # others, such as settings that a referee tried in the same folder, are of no table
        rows = [row for row in rows if all(row.get(name) in values for name, values in block.grid.items())]
        if rows:
            found += records(experiment, block, pd.DataFrame(sorted(rows, key=partial(_place, block))))
    return found


def selected(
    experiment: Experiment, only: Mapping[str, Sequence[str]]
) -> list[tuple[Block, dict[str, tuple[Value, ...]], tuple[str, ...]]]:
    """Blocks with the part of their grid and of their methods that `only` names; a block without a named setting is left out."""
    known = {
        setting: [str(v) for block in experiment.blocks for v in block.grid.get(setting, ())]
        for setting in _all_settings(experiment)
    }
    known["method"] = [method for block in experiment.blocks for method in block.methods]
    known["block"] = [block.name for block in experiment.blocks]
    only = {setting: [_spelt(value, known.get(setting, [])) for value in values] for setting, values in only.items()}
    for setting, values in only.items():
        if setting not in known:
            raise PlanError(f"{experiment.name} has no setting {setting!r}; it has {', '.join(known)}")
        for value in values:
            if value not in known[setting]:
                raise PlanError(
                    f"{experiment.name} has no {setting}={value}; its values are {', '.join(dict.fromkeys(known[setting]))}"
                )
    found = []
    for block in experiment.blocks:
        names = {"method", "block", *block.grid}
        if block.name not in only.get("block", [block.name]) or any(setting not in names for setting in only):
            continue
        grid = {
            setting: tuple(value for value in values if setting not in only or str(value) in only[setting])
            for setting, values in block.grid.items()
        }
        methods = tuple(method for method in block.methods if method in only.get("method", block.methods))
        if methods and all(grid.values()):
            found.append((block, grid, methods))
    return found


def _spelt(value: str, known: Sequence[str]) -> str:
    """A number as the experiment writes it: .5 is 0.5, and 2 may be 2.0."""
    try:
        return value if value in known else next((one for one in known if float(one) == float(value)), value)
    except ValueError:  # words
        return value


def records(experiment: Experiment, block: Block, frame: pd.DataFrame) -> list[Record]:
    """One record for each cell, method and quantity of a table of replications, then those over several cells."""
    settings = list(block.grid)
    found = []
    for key, part in frame.groupby([*settings, "method"], sort=False, dropna=False):
        values, method = _plain_key(key[:-1]), str(key[-1])
        good = part[part["error"].isna()]
        for quantity in block.quantities:
            if quantity.measure not in good or not len(good):
                continue
            column = pd.to_numeric(good[quantity.measure], errors="coerce").to_numpy(dtype=np.float64)
            if np.isnan(column).all():
                continue
            place = (*values, method, quantity.name)
            row = record(
                experiment.name, block.name, dict(zip(settings, values, strict=True)), method, quantity, column
            )
            row["failed"] = int(part["error"].notna().sum())
            found.append(judged(row, block.printed.get(place), exact=block.is_exact(method)))
    if block.overall is not None:
        for row in block.overall(frame[frame["error"].isna()]):
            place = (row["setting"]["cells"], row["method"], row["quantity"])
            found.append(judged({"experiment": experiment.name, "block": block.name, **row}, block.printed.get(place)))
    return found


def study_of(experiment: Experiment, block: Block, replications: int) -> Study:
    """The block's study, all settings and methods."""
    return _study(experiment, block, block.grid, block.methods, replications)


def _study(
    experiment: Experiment, block: Block, grid: Mapping[str, Sequence[Value]], methods: Sequence[str], count: int
) -> Study:
    whole = {**grid, "method": tuple(methods)}
    if block.without is None:
        return Study(_study_name(experiment, block), whole, block.measure, count, _version(block))
    return _Part(_study_name(experiment, block), whole, block.measure, count, _version(block), block.without)


@dataclass(frozen=True)
class _Part(Study):
    """A study without some of its cells."""

    without: Callable[[Mapping[str, Value], str], bool] = lambda _, __: False

    def cells(self) -> Any:
        """The cells that are left."""
        for cell in super().cells():
            if not self.without(cell.settings, str(cell.settings["method"])):
                yield cell


def _place(block: Block, row: Mapping[str, Any]) -> tuple[int, ...]:
    """Where a recorded replication stands in the order of the grid; what is no longer in the grid comes last."""

    def at(values: Sequence[Any], value: Any) -> int:
        return values.index(value) if value in values else len(values)

    return (
        *(at(list(values), row.get(setting)) for setting, values in block.grid.items()),
        at(block.methods, row["method"]),
        row["replication"],
    )


def _study_name(experiment: Experiment, block: Block) -> str:
    return f"{experiment.name}.{block.name}"


def _version(block: Block) -> str:
    return f"{block.version}-{measure_version(block.measure)}"


def _by_count(block: Block, methods: Sequence[str], reps: int | None) -> list[tuple[int, list[str]]]:
    """Methods with the same number of replications run together."""
    wanted = block.replications if reps is None else reps
    groups: dict[int, list[str]] = {}
    for method in methods:
        # whoever asks for a number gets it, but for what would take days
        groups.setdefault(int(min(wanted, block.fewer.get(method, inf))), []).append(method)
    return list(groups.items())


def _all_settings(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(setting for block in experiment.blocks for setting in block.grid))


def _settings(text: str) -> dict[str, Any]:
    return {name: _setting(value) for name, value in json.loads(text).items()}


def _setting(value: Any) -> Any:
    """A setting as the grid has it: JSON has no infinities and no tuples."""
    if isinstance(value, list):
        return tuple(_setting(part) for part in value)
    return float(value["float"]) if isinstance(value, dict) else value


def _plain_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values of settings as they stand in the grid; 1 and 1.0 are one key in Python's dictionaries."""
    return tuple(value.item() if isinstance(value, np.generic) else value for value in values)
