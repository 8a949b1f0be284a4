"""The search for neighbours that break a `SafetyBound`: starts next to the unsafe set, then steps that widen the gap.

A general search rarely meets data with a safety in (0, 1], where bounds break. One record moves gamma by at most 1, so on the way from
safe data to data without any safety, record by record, there is always such a data set; the climb starts there and moves the two
records that change, the others one by one, and all of them together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.audit.searches.pairs import Axis, Domain

__all__ = ["Attack", "attack_bound"]


_TRIES = 900
_PATIENCE = 250


@dataclass
class Attack:
    """What was found: the worst pair of each promise, and problems in words."""

    steps: float = 0.0
    ratio: float = 0.0
    pair_steps: tuple[Any, Any] = (None, None)
    pair_ratio: tuple[Any, Any] = (None, None)
    tried: int = 0
    safe: int = 0
    problems: dict[str, None] = field(default_factory=dict)


class _Bound:
    """A bound on raw data: gamma, the scaled estimate over alpha, nothing that raises."""

    def __init__(self, bound: Any) -> None:
        self.bound = bound
        self.scale = np.array(bound.shape or (1.0,) * bound.dim, dtype=np.float64)

    def gamma(self, data: Array) -> float:
        try:
            return float(self.bound.gamma(self.bound.prepare(data.copy())))
        except Exception:
            return float("nan")

    def estimate(self, data: Array) -> Array | None:
        try:
            found = np.ravel(np.asarray(self.bound.estimate(self.bound.prepare(data.copy())), dtype=np.float64))
        except Exception:
            return None
        return found * self.scale if found.shape == self.scale.shape and np.isfinite(found).all() else None


def attack_bound(bound: Any, domain: Domain, *, n: int, restarts: int, seed: int, alpha: float) -> Attack:
    """Try the four promises of a bound on data sets of n records within a domain of numbers."""
    attack, own = Attack(), _Bound(bound)
    generator = np.random.Generator(np.random.PCG64(seed))
    axes = domain.axes
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _degenerate(attack, own, axes, n)
        for k in range(max(restarts, 1)):
            start = _start(own, axes, n, generator, k)
            _record_by_record(attack, bound, axes, start, generator)
            for objective in (_ratio, _moved) if k % 3 else (_moved, _ratio):
                _climb(attack, own, axes, start, generator, objective, alpha)
    return attack


def _degenerate(attack: Attack, own: _Bound, axes: tuple[Axis, ...], n: int) -> None:
    """Gamma must be a number of at least 0 on data of one value, and the same in any order."""
    ends = [np.array([axis.corners()[k] for axis in axes], dtype=np.float64) for k in (0, 1)]
    middle = np.array([round(v) if axis.whole else v for axis, v in zip(axes, (ends[0] + ends[1]) / 2, strict=True)])
    zero = np.clip(np.zeros(len(axes)), ends[0], ends[1])
    for record in (*ends, middle, zero):
        gamma = own.gamma(np.tile(record, (n, 1)))
        attack.tried += 1
        if not (isfinite(gamma) and gamma >= 0):
            attack.problems["gamma is no number of at least 0 on records that are all alike"] = None


def _record_by_record(
    attack: Attack, bound: Any, axes: tuple[Axis, ...], data: Array, generator: np.random.Generator
) -> None:
    """What `prepare` makes of a record must not change when others do."""
    place = int(generator.integers(len(data)))
    other = _fresh(axes, len(data), generator)
    other[place] = data[place]
    order = generator.permutation(len(data))
    try:
        whole, changed, turned = (bound.prepare(one.copy()) for one in (data, other, data[order]))
    except Exception:
        attack.problems["prepare raises"] = None
        return
    for one, two, at in ((whole, changed, place), (whole, turned, int(np.flatnonzero(order == place)[0]))):
        for a, b in zip(_arrays(one, len(data)), _arrays(two, len(data)), strict=True):
            if not np.array_equal(a[place], b[at], equal_nan=True):
                attack.problems["prepare makes something else of a record when other records change or move"] = None


def _arrays(prepared: Any, n: int) -> Iterator[Any]:
    """The arrays with one row for each record within what `prepare` gave."""
    if isinstance(prepared, tuple | list):
        for part in prepared:
            yield from _arrays(part, n)
    elif isinstance(prepared, np.ndarray) and prepared.ndim and len(prepared) == n:
        yield prepared


def _fresh(axes: tuple[Axis, ...], n: int, generator: np.random.Generator, corners: float = 0.3) -> Array:
    """n records, drawn evenly with some coordinates at their ends or at 0."""
    data = np.empty((n, len(axes)))
    for j, axis in enumerate(axes):
        values = axis.low + (axis.high - axis.low) * generator.random(n)
        pick = generator.random(n)
        values = np.where(pick < corners, np.where(generator.random(n) < 0.5, axis.low, axis.high), values)
        if axis.low < 0 < axis.high:
            values = np.where(pick > 1 - corners / 3, 0.0, values)
        data[:, j] = np.rint(values) if axis.whole else values
    return data


def _start(own: _Bound, axes: tuple[Axis, ...], n: int, generator: np.random.Generator, k: int) -> Array:
    """Data with a safety in (0, 1] where there is a way to them, else any data."""
    tries = [_fresh(axes, n, generator, corners) for corners in (0.0, 0.3, 0.8, 1.0)]
    tries += [np.repeat(_fresh(axes, -(-n // 8), generator), 8, axis=0)[:n], _along(axes, n, generator)]
    safe = max(tries, key=lambda data: _finite(own.gamma(data))) if k % 2 else tries[k // 2 % len(tries)]
    if _finite(own.gamma(safe)) <= 0:
        safe = max(tries, key=lambda data: _finite(own.gamma(data)))
    target = _fresh(axes, 1, generator, 0.5)[0] if k % 3 else np.array([min(max(0.0, a.low), a.high) for a in axes])
    order = generator.permutation(n)
    low, high = 0, n  # replaced records: safe at `low`, most likely not at `high`
    while high - low > 1:
        middle = (low + high) // 2
        data = safe.copy()
        data[order[:middle]] = target
        low, high = (middle, high) if _finite(own.gamma(data)) > 0 else (low, middle)
    data = safe.copy()
    data[order[:low]] = target
    return data


def _along(axes: tuple[Axis, ...], n: int, generator: np.random.Generator) -> Array:
    """Records near one line through the middle: data that are nearly degenerate."""
    low, high = np.array([a.low for a in axes]), np.array([a.high for a in axes])
    direction = generator.standard_normal(len(axes))
    place = generator.uniform(-1, 1, (n, 1)) * direction / np.abs(direction).max()
    data = (low + high) / 2 + place * (high - low) / 2 + generator.normal(0, 0.1, (n, len(axes))) * (high - low)
    return _within(axes, data)


def _within(axes: tuple[Axis, ...], data: Array) -> Array:
    for j, axis in enumerate(axes):
        data[..., j] = np.clip(data[..., j], axis.low, axis.high)
        if axis.whole:
            data[..., j] = np.rint(data[..., j])
    return data


def _finite(gamma: float) -> float:
    return gamma if isfinite(gamma) else 0.0


Objective = Callable[[Attack, _Bound, Array, Array, float], float]


def _moved(attack: Attack, own: _Bound, data: Array, neighbour: Array, alpha: float) -> float:
    one, two = own.gamma(data), own.gamma(neighbour)
    attack.tried += 1
    moved = abs(one - two) if min(one, two) >= 0 and isfinite(one) and isfinite(two) else inf
    if moved > attack.steps:
        attack.steps, attack.pair_steps = moved, (data.copy(), neighbour.copy())
    return moved


def _ratio(attack: Attack, own: _Bound, data: Array, neighbour: Array, alpha: float) -> float:
    one, two = own.gamma(data), own.gamma(neighbour)
    attack.tried += 1
    if not (one > 0 or two > 0):
        return -1.0
    attack.safe += 1
    first, second = own.estimate(data), own.estimate(neighbour)
    if first is None or second is None:
        # an unsafe estimate is never asked for; a safe one must be there
        missing = (first is None and one > 0) or (second is None and two > 0)
        ratio = inf if missing else 0.0
    else:
        ratio = float(np.linalg.norm(first - second)) / alpha
    if ratio > attack.ratio:
        attack.ratio, attack.pair_ratio = ratio, (data.copy(), neighbour.copy())
    return ratio


def _climb(
    attack: Attack,
    own: _Bound,
    axes: tuple[Axis, ...],
    start: Array,
    generator: np.random.Generator,
    objective: Objective,
    alpha: float,
) -> None:
    width = np.array([axis.high - axis.low for axis in axes])
    data, i = start.copy(), int(generator.integers(len(start)))
    new = _fresh(axes, 1, generator, 0.6)[0]
    best = objective(attack, own, data, _swapped(data, i, new), alpha)
    size, idle = 0.5, 0
    for _ in range(_TRIES):
        tried, at, record = data.copy(), i, new.copy()
        match int(generator.integers(8)):
            case 0:
                record = _fresh(axes, 1, generator, 0.6)[0]
            case 1:
                tried[at] = _fresh(axes, 1, generator, 0.6)[0]
            case 2:
                record = record + size * generator.standard_normal(len(axes)) * width
            case 3:
                tried[at] += size * generator.standard_normal(len(axes)) * width
            case 4:
                tried += size / 4 * generator.standard_normal(data.shape) * width
            case 5:
                k = generator.integers(len(data), size=max(len(data) // 6, 1))
                tried[k] = tried[int(generator.integers(len(data)))]
            case 6:
                j = int(generator.integers(len(axes)))  # one column of all records, stretched
                tried[:, j] *= 1 + size * generator.standard_normal()
            case 7:
                sign = np.where(generator.random(len(axes)) < 0.5, -1.0, 1.0)
                record = sign * tried[at]
        tried, record = _within(axes, tried), _within(axes, record)
        found = objective(attack, own, tried, _swapped(tried, at, record), alpha)
        if found > best:
            data, new, best, idle = tried, record, found, 0
        else:
            idle += 1
            if idle % 60 == 0:
                size = max(size / 2, 1e-4)
        if best == inf or idle > _PATIENCE:
            return


def _swapped(data: Array, i: int, record: Array) -> Array:
    neighbour = data.copy()
    neighbour[i] = record
    return neighbour
