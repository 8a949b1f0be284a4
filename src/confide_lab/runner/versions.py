"""A version for recorded numbers: it changes with the code that makes them, and not with what shows them."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np

import confide
from confide_lab.runner.study import Measure

__all__ = ["code_version", "measure_version"]

# what shows numbers and makes none; the experiments' modules count measure by measure
_FACES = {"cli", "results", "audit", "ledger", "testing", "studio"}
_LAB_FACES = {
    "benchmarks", "command.py", "errata", "experiment.py", "experiments", "figures.py", "judging.py", "layouts.py", "papers",
    "paper_command.py", "quantities.py", "referee.py", "report.py",
}  # fmt: skip


@lru_cache(maxsize=1)
def code_version() -> str:
    """16 hexadecimal digits that change with the code that makes numbers: every room of the package and of the lab but the faces.

    >>> len(code_version())
    16
    """
    own, lab = Path(inspect.getfile(confide)).parent, Path(__file__).parent.parent
    digest = hashlib.sha256(np.__version__.encode())
    for package, faces in ((own, _FACES), (lab, _LAB_FACES)):
        for path in sorted(package.rglob("*.py")):
            place = path.relative_to(package)
            if place.parts[0] not in faces:
                digest.update(f"{place.as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def measure_version(measure: Measure) -> str:
    """The same for one measure: the packages, its module, and the experiments' modules that this one has names from."""
    digest = hashlib.sha256(code_version().encode())
    for path in _measured_by(measure):
        digest.update(_working_part(path, path.stat().st_mtime_ns))
    return digest.hexdigest()[:16]


def _measured_by(measure: Measure) -> list[Path]:
    first = inspect.getmodule(measure)
    todo = [] if first is None else [first]
    found: dict[str, Path] = {}
    while todo:
        module = todo.pop()
        place = getattr(module, "__file__", None)
        if place is None or module.__name__ in found:
            continue
        found[module.__name__] = Path(place)
        near = {getattr(value, "__module__", None) for value in vars(module).values()}
        names = [name for name in near if isinstance(name, str) and name.startswith("confide_lab.experiments.")]
        todo += [sys.modules[name] for name in names if name in sys.modules]
    return [found[name] for name in sorted(found)]


@lru_cache(maxsize=256)
def _working_part(path: Path, changed: int) -> bytes:
    """A module without its experiments and blocks, which hold printed numbers, titles and notes."""
    kept = [ast.dump(part) for part in ast.parse(path.read_text(encoding="utf-8")).body if not _shown(part)]
    return hashlib.sha256("\n".join(kept).encode()).digest()


def _shown(part: ast.stmt) -> bool:
    if isinstance(part, ast.FunctionDef):
        return part.name.startswith("_printed")
    made = part.value if isinstance(part, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(made, ast.Call) and getattr(made.func, "id", "") in ("Experiment", "Block")
