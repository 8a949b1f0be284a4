"""Public totals of a population, from a mapping or a CSV file: numbers of persons by level, of one attribute or of several margins."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from confide.errors import PlanError

# The calls that work, for errors.
CALL = 'write poststratify({"f": 51_000, "m": 49_000}, "sex"); as a CSV file: one level and its number in a line'
CALLS = (
    'write calibrate({"sex": {"f": 51_000, "m": 49_000}, "region": {"n": 60_000, "s": 40_000}}); as a CSV file: a column, one of '
    "its levels and the number in a line"
)
# Totals of the same persons may differ by rounding.
_SAME = 1e-6


def public_totals(given: Mapping[Any, Any] | str | PathLike[str]) -> dict[str, float]:
    """Level -> public number, from a mapping or a CSV file of two columns, whose first line may be a heading. `PlanError` for any other.

    >>> public_totals({"f": 51, "m": 49})
    {'f': 51.0, 'm': 49.0}
    """
    if isinstance(given, (str, PathLike)):
        pairs = [(level, number) for level, number in _lines(given, ("level", "number"), CALL)]
    elif isinstance(given, Mapping):
        pairs = [(str(level), number) for level, number in given.items()]
    else:
        raise PlanError(f"public totals are a mapping or a file, got {type(given).__name__}", f"{CALL}")
    return _numbers(pairs, CALL)


def public_margins(given: Mapping[Any, Any] | str | PathLike[str]) -> dict[str, dict[str, float]]:
    """Column -> level -> public number, from nested mappings or a CSV file of three columns. All columns add up to the same persons.

    >>> public_margins({"sex": {"f": 51, "m": 49}, "region": {"n": 60, "s": 40}})["region"]
    {'n': 60.0, 's': 40.0}
    """
    if isinstance(given, (str, PathLike)):
        read: dict[str, list[tuple[str, Any]]] = {}
        for column, level, number in _lines(given, ("column", "level", "number"), CALLS):
            read.setdefault(column, []).append((level, number))
    elif isinstance(given, Mapping) and all(isinstance(own, Mapping) for own in given.values()):
        read = {str(column): [(str(level), number) for level, number in own.items()] for column, own in given.items()}
    else:
        raise PlanError("margins are a mapping of columns to their levels' numbers, or a file", f"{CALLS}")
    found = {column: _numbers(pairs, CALLS) for column, pairs in read.items()}
    sums = {column: sum(own.values()) for column, own in found.items()}
    if not sums or min(sums.values()) <= 0 or max(sums.values()) > min(sums.values()) * (1 + _SAME):
        shown = ", ".join(f"{column} {total:,.6g}" for column, total in sums.items()) or "none"
        raise PlanError(f"all margins are of the same persons and add up to the same number, got {shown}", f"{CALLS}")
    return found


def _lines(path: str | PathLike[str], columns: Sequence[str], call: str) -> list[list[str]]:
    """The lines of a CSV file without its heading."""
    try:
        lines = [row for row in csv.reader(Path(path).read_text(encoding="utf-8-sig").splitlines()) if row]
    except (OSError, ValueError):
        raise PlanError(f"there is no readable file of public totals {str(path)!r}", f"{call}") from None
    if any(len(row) != len(columns) for row in lines):
        number = {2: "two", 3: "three"}[len(columns)]
        raise PlanError(
            f"a file of public totals has {number} columns, {', '.join(columns[:-1])} and {columns[-1]}", f"{call}"
        )
    stripped = [[cell.strip() for cell in row] for row in lines]
    return stripped[1:] if stripped and _number(stripped[0][-1]) is None else stripped


def _numbers(pairs: Sequence[tuple[str, Any]], call: str) -> dict[str, float]:
    found = {level: _number(number) for level, number in pairs}
    wrong = [level for level, number in found.items() if number is None or not 0 <= number < np.inf]
    if wrong or len(found) < len(pairs) or not found:
        which = f"{wrong[0]!r} has none" if wrong else "a level stands twice, or there is none"
        raise PlanError(f"public totals give each level a number of at least 0, once; {which}", f"{call}")
    return {level: float(number) for level, number in found.items() if number is not None}


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
