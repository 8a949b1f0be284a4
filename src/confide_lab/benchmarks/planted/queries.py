"""Queries whose claimed sensitivity is wrong, and safety bounds that do not keep their contract."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from confide_lab.benchmarks.planted.kinds import query, safety

__all__ = ["QUERIES", "SAFETY"]


def _clip(x: Any, low: float = 0.0, high: float = 1.0) -> Any:
    return np.clip(np.nan_to_num(x, nan=low, posinf=high, neginf=low), low, high)


def _total(x: Any) -> float:
    return math.fsum(_clip(x))


def _discarded(x: Any) -> float:
    _clip(x)
    return math.fsum(np.nan_to_num(x))


def _columns(x: Any) -> list[float]:
    return [_total(x[:, j]) for j in range(x.shape[1])]


def _bins(x: Any) -> list[float]:
    first = _clip(x[:, 0]) < 0.5
    return [*_columns(x[first]), *_columns(x[~first])]


def _overlapping(x: Any) -> list[int]:
    y = _clip(x)
    return [int((y <= 0.5).sum()), int((y >= 0.5).sum())]


def _apart(x: Any) -> list[int]:
    y = _clip(x)
    return [int((y < 0.5).sum()), int((y >= 0.5).sum())]


def _steps(x: Any) -> Any:
    return np.rint(_clip(x) * 2**20).astype(np.int64)


def _batch_weights(x: Any) -> float:
    y = _clip(x)
    return math.fsum(y / y.max()) if len(y) and y.max() > 0 else 0.0


def _mean(x: Any) -> float:
    return _total(x) / len(x) if len(x) else 0.0


def _squares(x: Any) -> Any:
    y = np.clip(np.nan_to_num(x), 0, 2**31).astype(np.int64)
    return int((y * y).sum())


def _exact_squares(x: Any) -> int:
    return sum(int(v) ** 2 for v in np.clip(np.nan_to_num(x), 0, 2**31).astype(np.int64))


def _raises(x: Any) -> float:
    if len(x) and np.nanmax(x) > 1:
        raise ValueError("out of bounds")
    return _total(x)


CUBE = [(0, 1)] * 3

QUERIES = [
    query("clip discarded", "the clip is computed and its result is not used", _discarded, _total, (0, 1), 1),
    query(
        "NaN passes the clip",
        "numpy.clip returns NaN for NaN",
        lambda x: math.fsum(np.clip(x, 0, 1)),
        _total,
        (0, 1),
        1,
    ),
    query("a coordinate forgotten", "three sums with the bound of two", _columns, _columns, CUBE, 2**0.5, right=3**0.5),
    query(
        "bins without sqrt(d)", "sums of d columns per bin, bound of one column", _bins, _bins, CUBE, 1, right=3**0.5
    ),
    query(
        "bound used twice",
        "two statistics, one bound for both",
        lambda x: [_total(x), _total(x**2)],
        lambda x: [_total(x) / 2, _total(x**2) / 2],
        (0, 1),
        1,
    ),
    query("record in two groups", "bins that share an edge", _overlapping, _apart, (0, 1), 1),
    query(
        "substitute charged as add-remove",
        "counts under substitute, bound of add-remove",
        _apart,
        _apart,
        (0, 1),
        1,
        right=2**0.5,
        relation="substitute",
    ),
    query(
        "rows per unit ignored",
        "a unit of three rows, bound of one row",
        lambda x: _total(x.ravel()),
        lambda x: _total(x.ravel()),
        CUBE,
        1,
        right=3,
    ),
    query(
        "float sum",
        "a float sum depends on the order of the records",
        lambda x: float(_clip(x).sum()),
        lambda x: int(_steps(x).sum()) / 2**20,
        (0, 1),
        1,
    ),
    query("int64 overflow", "a sum of squares wraps around", _squares, _exact_squares, (0, 2**31), 2**62),
    query("weights from the batch", "weights divided by the largest of the batch", _batch_weights, _total, (0, 1), 1),
    query(
        "mean of a secret n",
        "bound 1/n at the expected n, under add-remove",
        _mean,
        lambda x: _total(x) / 30,
        (0, 1),
        1 / 30,
    ),
    query("error on a value", "a value out of bounds raises", _raises, _total, (0, 1), 1),
]


def _inside(x: Any) -> Any:
    y = np.clip(np.nan_to_num(x), -1, 1)
    return y[y > 0]


def _margin(x: Any) -> int:
    return max(len(_inside(x)) - 4, 0)


def _inner_mean(x: Any) -> float:
    inside = _inside(x)
    return math.fsum(inside) / len(inside) if len(inside) else float("nan")


_RIGHT: dict[str, Any] = {"gamma": _margin, "estimate": _inner_mean, "bound": 1 / 2}

SAFETY = [
    safety(
        "gamma moves by two",
        "a safety bound that counts twice",
        {**_RIGHT, "gamma": lambda x: 2 * _margin(x)},
        _RIGHT,
        (-1, 1),
        n=12,
    ),
    safety(
        "alpha of the planned n",
        "the estimate's bound is 1/n, not that of the safe set",
        {**_RIGHT, "bound": 1 / 12},
        _RIGHT,
        (-1, 1),
        n=12,
    ),
    safety(
        "safe one record early",
        "gamma is positive where a neighbor has no estimate",
        {**_RIGHT, "gamma": lambda x: len(_inside(x))},
        _RIGHT,
        (-1, 1),
        n=12,
    ),
]
