"""What is to be run: settings on a grid, how often, and the one function that measures a cell."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import confide
from confide.errors import PlanError
from confide.guarantees.validation import is_whole

__all__ = ["Cell", "Measure", "Study", "Value", "seed_of", "version_of_sources"]

#: A coordinate: text, a number, a truth value, nothing, or a tuple of these.
Value = str | int | float | bool | None | tuple[Any, ...]

#: measure(coordinates, generator): coordinates are the settings and "replication"; the answer is numbers and texts by name.
Measure = Callable[[Mapping[str, Any], np.random.Generator], Mapping[str, Any]]

#: Columns of the table that no setting or measure may take.
RESERVED = ("replication", "seconds", "error")


@dataclass(frozen=True)
class Cell:
    """One point of the grid, one replication."""

    settings: Mapping[str, Value]
    replication: int

    @property
    def key(self) -> tuple[str, int]:
        """What the cell is called in the parts: canonical JSON of the settings, and the replication."""
        return _canonical(self.settings), self.replication

    @property
    def coordinates(self) -> dict[str, Value]:
        """The settings and the replication."""
        return {**self.settings, "replication": self.replication}


@dataclass(frozen=True)
class Study:
    """A measurement repeated over a grid of settings.

    name: lower-case letters, digits, "-", "_", "."; the seeds depend on it. grid: values of each setting; the cells are
    their product. measure: a function of a module (worker processes import it) that takes the cell's coordinates and a
    seeded generator and returns numbers and texts by name. version: change it when earlier results no longer count;
    longer value lists and more replications keep what is there.

    Raises `PlanError` for anything else.

    >>> study = Study("coin", {"p": (0.1, 0.5)}, lambda at, generator: {"heads": generator.random() < at["p"]}, 10)
    >>> len(list(study.cells()))
    20
    """

    name: str
    grid: Mapping[str, Sequence[Value]]
    measure: Measure
    replications: int = 1
    version: str | int = 1

    def __post_init__(self) -> None:
        for field, text in (("name", self.name), ("version", str(self.version))):
            if not isinstance(text, str) or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", text):
                raise PlanError(
                    f"a study's {field} must be lower-case letters, digits, '-', '_' and '.', got {text!r}; it names a "
                    "folder, for instance 'mean-of-noise'"
                )
        if not is_whole(self.replications, 1):
            raise PlanError(f"replications must be a whole number of at least 1, got {self.replications!r}")
        if not callable(self.measure):
            raise PlanError("measure must be a function of (coordinates, generator) that returns numbers by name")
        for setting, values in self.grid.items():
            if not isinstance(setting, str) or setting in RESERVED:
                raise PlanError(f"a setting cannot be called {setting!r}; {', '.join(RESERVED)} are the runner's own")
            if isinstance(values, str) or not len(values):
                raise PlanError(f"the grid's {setting!r} must be a list of one value or more, got {values!r}")
            if len({_canonical(value) for value in values}) != len(values):
                raise PlanError(f"the grid's {setting!r} has a value twice: {values!r}")
        object.__setattr__(self, "grid", {setting: tuple(values) for setting, values in self.grid.items()})

    def cells(self) -> Iterator[Cell]:
        """Every cell, replications innermost."""
        for point in product(*self.grid.values()):
            for replication in range(self.replications):
                yield Cell(dict(zip(self.grid, point, strict=True)), replication)

    def measured(self, cell: Cell) -> dict[str, float | str]:
        """Run one cell here; numbers come as floats (a truth value as 0 or 1, None as NaN), texts as texts."""
        found = self.measure(
            cell.coordinates, np.random.default_rng(seed_of(self.name, cell.settings, cell.replication))
        )
        if not isinstance(found, Mapping):
            raise TypeError(f"measure must return numbers by name, got {type(found).__name__}")
        return {_measure_name(name, self.grid): _outcome(name, value) for name, value in found.items()}


def seed_of(name: str, settings: Mapping[str, Value], replication: int) -> int:
    """The seed of a cell, 256 bits: a function of the study's name and the coordinates alone.

    >>> seed_of("coin", {"p": 0.5, "n": 3}, 0) == seed_of("coin", {"n": 3.0, "p": 0.5}, 0)
    True
    """
    text = json.dumps([name, _canonical(settings), int(replication)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def version_of_sources(*modules: ModuleType | str) -> str:
    """A version that changes with the code: 16 hexadecimal digits from the sources of confide and of further modules.

    Python's, NumPy's and SciPy's versions are in it too. For benchmarks: an interrupted run resumes, and a run after any
    change of the code measures anew. modules: modules, or paths of files.

    >>> len(version_of_sources())
    16
    """
    digest = hashlib.sha256(f"{platform.python_version()} {np.__version__} {metadata.version('scipy')}".encode())
    package = Path(inspect.getfile(confide)).parent
    further = [Path(inspect.getfile(item) if isinstance(item, ModuleType) else item) for item in modules]
    for path in [*sorted(package.rglob("*.py")), *further]:
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _canonical(value: Any) -> str:
    """One JSON text for equal values: sorted keys, floats in full, 1.0 as 1."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return {"float": repr(value)} if math.isinf(value) else int(value) if value.is_integer() else value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    raise PlanError(f"a setting must be text, a number, a truth value, None or a tuple of these, got {value!r}")


def _measure_name(name: Any, grid: Mapping[str, Any]) -> str:
    if not isinstance(name, str) or name in RESERVED or name in grid:
        raise TypeError(f"measure cannot return {name!r}: it must be a text that is no setting and none of {RESERVED}")
    return name


def _outcome(name: str, value: Any) -> float | str:
    if isinstance(value, str):
        return value
    if value is None:
        return math.nan
    if isinstance(value, (int, float, np.bool_, np.number)):
        return float(value)
    raise TypeError(f"measure must return numbers and texts; {name!r} is {type(value).__name__}")
