"""Whatever a mechanism returns or raises, as something a test can read: a key (what kind of outcome) and numbers.

The key of an outcome has everything that is not a finite number: types, dtypes, shapes, dict keys, texts, None, the
class and message of an exception. It also has the places of NaN, infinities and negative zeros. A mechanism whose
outcomes differ in any of these between neighbors leaks, and the key is where that shows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from confide.errors import PrivacyError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Mechanism: TypeAlias = Callable[..., Any]

BLOCK = 50_000  # runs of a vectorized mechanism per call: 20 MB for fifty numbers each


@dataclass(frozen=True)
class Outcomes:
    """n outcomes. `fine`, `coarse`: int64 keys (n,), with and without texts. `width`: how many finite numbers each has,
    (n,); numbers: (m, k) of the rows `rows`, the outcomes of the commonest width k.
    """

    fine: IntArray
    coarse: IntArray
    width: IntArray
    groups: dict[int, tuple[IntArray, FloatArray]]

    def __len__(self) -> int:
        return len(self.fine)

    def part(self, chosen: slice) -> Outcomes:
        """The outcomes start..stop of a slice with step 1."""
        start, stop, _ = chosen.indices(len(self))
        groups = {}
        for width, (rows, matrix) in self.groups.items():
            first, last = np.searchsorted(rows, (start, stop))
            groups[width] = (rows[first:last] - start, matrix[first:last])
        return Outcomes(self.fine[start:stop], self.coarse[start:stop], self.width[start:stop], groups)


def join(parts: list[Outcomes]) -> Outcomes:
    """Several blocks as one."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    groups = {}
    for width in sorted({width for part in parts for width in part.groups}):
        held = [
            (start, *part.groups[width]) for start, part in zip(starts, parts, strict=False) if width in part.groups
        ]
        groups[width] = (
            np.concatenate([rows + start for start, rows, _ in held]),
            np.concatenate([matrix for _, _, matrix in held]),
        )
    return Outcomes(
        np.concatenate([part.fine for part in parts]),
        np.concatenate([part.coarse for part in parts]),
        np.concatenate([part.width for part in parts]),
        groups,
    )


def draw(mechanism: Mechanism, data: Any, runs: int, *, vectorized: bool) -> Any:
    """`runs` raw outcomes: a list, or what the vectorized mechanism returned.

    An exception is an outcome of its run. A vectorized call that raises is made again run by run, because one exception says
    nothing about how the other runs would have ended.
    """
    if vectorized:
        try:
            return mechanism(data, runs)
        except Exception:
            mechanism, data = _single(mechanism, data), None
    found = []
    for _ in range(runs):
        try:
            found.append(mechanism(data))
        except Exception as error:
            found.append(error)
    return found


def only_exceptions(raw: Any) -> Exception | None:
    """The first exception when every one of these raw outcomes is one, else None."""
    if isinstance(raw, list) and raw and all(isinstance(one, Exception) for one in raw):
        return cast(Exception, raw[0])
    return None


def _single(mechanism: Mechanism, data: Any) -> Mechanism:
    def once(_: Any) -> Any:
        answer = mechanism(data, 1)
        return {key: value[0] for key, value in answer.items()} if isinstance(answer, Mapping) else answer[0]

    return once


def encode(raw: Any, runs: int) -> Outcomes:
    """Raw outcomes as `Outcomes`. Errors: PrivacyError when an array has another length than `runs`."""
    if isinstance(raw, Mapping):
        columns = {key: np.asarray(raw[key]) for key in sorted(raw, key=repr)}
        if all(_numeric(column) for column in columns.values()):
            for column in columns.values():
                _check(column, runs)
            return _array(np.column_stack([column.reshape(runs, -1) for column in columns.values()]))
        return _objects([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    if isinstance(raw, list):
        whole = _same_floats(raw)
        return _objects(raw) if whole is None else _array(whole)
    array = np.asarray(raw)
    _check(array, runs)
    return _array(array.reshape(runs, -1)) if _numeric(array) else _objects(list(array))


def _numeric(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "biuf" and array.dtype.itemsize <= 8


def _check(array: NDArray[Any], runs: int) -> None:
    if array.ndim == 0 or len(array) != runs:
        raise PrivacyError(
            f"a mechanism that makes all runs at once must return one outcome per run, first axis {runs}, got shape {array.shape}",
            "write mechanism(data, runs) -> array (runs, ...), or leave vectorized=False",
        )


def _same_floats(raw: list[Any]) -> FloatArray | None:
    """(n, 1) when all outcomes are plain floats, the common case; else None."""
    return np.array(raw, dtype=np.float64)[:, None] if {type(one) for one in raw} == {float} else None


def _array(matrix: NDArray[Any]) -> Outcomes:
    numbers = matrix.astype(np.float64)
    n, k = numbers.shape
    marks = np.zeros(numbers.shape, dtype=np.uint8)
    finite = np.isfinite(numbers)
    negative = np.signbit(numbers)
    if not finite.all():
        marks[np.isnan(numbers)] = 1
        marks[np.isinf(numbers) & ~negative] = 2
        marks[np.isinf(numbers) & negative] = 3
        numbers[~finite] = 0.0
    marks[finite & (numbers == 0) & negative] = 4
    keys = np.zeros(n, dtype=np.int64)
    marked = np.flatnonzero(marks.any(axis=1))
    keys[marked] = [hash(row.tobytes()) for row in marks[marked]]
    return Outcomes(keys, keys, np.full(n, k), {k: (np.arange(n), numbers)} if k else {})


def _objects(raw: list[Any]) -> Outcomes:
    n = len(raw)
    fine, coarse, width = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    held: dict[int, tuple[list[int], list[list[float]]]] = {}
    for i, one in enumerate(raw):
        kinds: list[Any] = []
        texts: list[Any] = []
        numbers: list[float] = []
        _flatten(one, kinds, texts, numbers)
        coarse[i] = hash(tuple(kinds))
        fine[i] = hash((tuple(kinds), tuple(texts)))
        width[i] = len(numbers)
        rows, matrix = held.setdefault(len(numbers), ([], []))
        rows.append(i)
        matrix.append(numbers)
    groups = {k: (np.array(rows), np.array(matrix)) for k, (rows, matrix) in held.items() if k}
    return Outcomes(fine, coarse, width, groups)


def _flatten(one: Any, kinds: list[Any], texts: list[Any], numbers: list[float]) -> None:
    kinds.append(type(one).__name__)
    if one is None:
        return
    if isinstance(one, bool | np.bool_):
        kinds.append(bool(one))
    elif isinstance(one, int | float | np.integer | np.floating | Fraction | Decimal):
        _number(one, kinds, texts, numbers)
    elif isinstance(one, complex | np.complexfloating):
        _number(one.real, kinds, texts, numbers)
        _number(one.imag, kinds, texts, numbers)
    elif isinstance(one, np.ndarray):
        kinds.append((one.dtype.str, one.shape))
        for item in one.ravel().tolist():
            _flatten(item, kinds, texts, numbers)
    elif isinstance(one, Mapping):
        for key in sorted(one, key=repr):
            kinds.append(repr(key))
            _flatten(one[key], kinds, texts, numbers)
    elif isinstance(one, list | tuple | set | frozenset):
        items = list(one) if isinstance(one, list | tuple) else sorted(one, key=repr)
        kinds.append(len(items))
        for item in items:
            _flatten(item, kinds, texts, numbers)
    elif isinstance(one, BaseException):
        texts.append(str(one))
    elif isinstance(one, str):
        texts.append(one)
        try:
            _number(float(one), [], [], numbers)  # a number that is printed is still a number
        except ValueError:
            kinds.append("words")
    elif isinstance(one, bytes):
        texts.append(one)
    elif dataclasses.is_dataclass(one) and not isinstance(one, type):
        for field in dataclasses.fields(one):
            _flatten(getattr(one, field.name), kinds, texts, numbers)
    elif hasattr(one, "to_numpy"):
        _flatten(one.to_numpy(), kinds, texts, numbers)
    else:
        texts.append(repr(one))


def _number(one: Any, kinds: list[Any], texts: list[Any], numbers: list[float]) -> None:
    try:
        number = float(one)
    except OverflowError:
        kinds.append("beyond float")
        texts.append(repr(one))
        return
    if number != number or number in (np.inf, -np.inf):
        kinds.append(repr(number))
        number = 0.0
    elif number == 0 and np.signbit(number):
        kinds.append("-0.0")
    numbers.append(number)
