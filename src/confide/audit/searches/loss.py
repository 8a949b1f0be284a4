"""Try to break what a mechanism with a data-dependent privacy loss asserts: how far its statistic moves, and its loss.

Asserted are, for all tables X, X' that differ in one record,

    (L1) |statistic(X) - statistic(X')| <= sensitivity;
    (L2) P(mechanism(X) in S) <= exp(loss(statistic(X))) P(mechanism(X') in S) + delta, for EVERY X', where the loss is at most epsilon.

L2 is one direction, from X; the other one is that of X'. The search starts next to the data whose loss is above epsilon, because losses are
largest there. It looks for the record that moves the mechanism's output most per unit of stated loss, with the same noise on both. On that
pair the mechanism runs many times. A lower bound of its loss follows from a test whose error rates are counted on fresh runs
(Clopper, Pearson 1934), and holds with probability `confidence`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.audit.runs.lower_bounds import Runs, loss_lower_bound
from confide.audit.searches.neighbors import Axis, Domain
from confide.errors import PrivacyError
from confide.guarantees.validation import is_count
from confide.noise import SimulatedNoise

#: (table, noise) -> whole numbers.
Mechanism = Callable[[Array, Any], Any]
_TRIES, _PAIRS = 40, 2
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class LossReport:
    """The worst violations found. ``print(report)`` says them in words.

    Parameters
    ----------
    ratio : float
        Largest move of the statistic between neighbors, over its claim.
    loss : float
        Stated loss at the pair on which the mechanism ran.
    lower_bound : float
        What the loss is there at least, at the confidence of the report.
    delta : float
        Delta at which both losses are meant.
    verdict : {"holds", "violated", "untested"}
        "untested" where no table was safe.
    tried : int
        Pairs of neighbors tried.
    safe : int
        How many of them had a safe side.
    pair : tuple of two arrays
        The tables on which the mechanism ran.
    problems : tuple of str
        What else the functions do that they must not.
    of : tuple
        What was attacked: the names of mechanism, loss and statistic, the
        sensitivity, and the loss up to which the mechanism is to run.
    """

    ratio: float
    loss: float
    lower_bound: float
    delta: float
    verdict: str
    tried: int
    safe: int
    pair: tuple[Any, Any] = field(repr=False, default=(None, None))
    problems: tuple[str, ...] = ()
    of: tuple[Any, ...] = field(repr=False, default=("", "", "", 0.0, 0.0))

    @property
    def violated(self) -> bool:
        """Whether one of the assertions is refuted."""
        return self.verdict == "violated"

    def __str__(self) -> str:
        lines = [
            f"data-dependent loss under substitution: {self.verdict}",
            f"the statistic moved by {self.ratio:.6g} of its claim",
            f"the loss is at least {self.lower_bound:.4g}, stated {self.loss:.4g}, at delta {self.delta:g}",
            f"{self.tried} pairs tried, {self.safe} with a safe side",
            *self.problems,
        ]
        return "\n".join(lines)


@dataclass
class _Worst:
    """What was found so far. pairs: of each table (move of the output, that per unit of loss, loss, the two tables)."""

    ratio: float = 0.0
    pairs: list[tuple[float, float, float, Array, Array]] = field(default_factory=list)
    tried: int = 0
    safe: int = 0
    problems: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class _Asserted:
    """The three functions, and nothing that raises."""

    mechanism: Mechanism
    loss: Callable[[float], float]
    statistic: Callable[[Array], float]

    def value(self, table: Array) -> float:
        try:
            return float(self.statistic(table.copy()))
        except Exception:
            return float("nan")

    def at(self, table: Array) -> float:
        value = self.value(table)
        try:
            found = float(self.loss(value)) if isfinite(value) else inf
        except Exception:
            return inf
        return found if found >= 0 else inf

    def output(self, table: Array, seed: int) -> Array | None:
        try:
            found = np.ravel(np.asarray(self.mechanism(table.copy(), SimulatedNoise(seed)), dtype=np.float64))
        except Exception:
            return None
        return found if np.isfinite(found).all() else None


def falsify_loss(
    mechanism: Mechanism,
    loss: Callable[[float], float],
    statistic: Callable[[Array], float],
    sensitivity: float,
    domain: Any,
    *,
    n: int,
    epsilon: float,
    delta: float = 0.0,
    runs: int = 2_000,
    confidence: float = 0.999,
    seed: int = 0,
) -> LossReport:
    """Search for neighbors that break the sensitivity of a statistic or the loss that is stated from it.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(table, noise)`` gives whole numbers. The table is an array
        (n, columns) in the columns' units, a level as its position.
    loss : callable
        ``loss(value)`` is the privacy loss epsilon where the statistic is
        `value`.
    statistic : callable
        ``statistic(table)`` is a number.
    sensitivity : float
        Largest change of the statistic when one record changes.
    domain : Schema, pair or sequence of pairs
        Where records live, as in `falsify_sensitivity`.
    n : int
        Number of records.
    epsilon : float
        Loss up to which the mechanism is to run.
    delta : float, default 0.0
        Delta at which the loss is meant.
    runs : int, default 2000
        Runs of the mechanism on each table of the worst pair.
    confidence : float, default 0.999
        Probability that the lower bound holds.
    seed : int, default 0
        Seed of the search and of the simulated noise.

    Returns
    -------
    LossReport
        The worst pair, and the verdict.

    Raises
    ------
    PrivacyError
        A parameter is out of range.

    Examples
    --------
    >>> def noisy_sum(table, noise):
    ...     return np.rint(table.sum() * 1_000) + noise.discrete_laplace(1_000, 1)
    >>> falsify_loss(noisy_sum, lambda size: 1.0, len, 1.0, [(0, 1)], n=10, epsilon=1.0).verdict
    'holds'
    >>> falsify_loss(noisy_sum, lambda size: 0.2, len, 1.0, [(0, 1)], n=10, epsilon=1.0).verdict
    'violated'
    """
    if not is_count(n, 1):
        raise PrivacyError(f"n must be a whole number of records of at least 1, got {n!r}", "write n=200")
    if not 0 < float(sensitivity) < inf:
        raise PrivacyError(f"sensitivity must be a finite number above 0, got {sensitivity!r}")
    if not 0 <= float(epsilon) < inf or not 0 <= float(delta) < 1:
        raise PrivacyError(
            f"epsilon must be a finite number of at least 0 and delta lie in [0, 1), got {epsilon!r} and {delta!r}"
        )
    own = _Asserted(mechanism, loss, statistic)
    whole = Domain.of(domain, hostile=False).axes
    axes = tuple(Axis(0.0, float(len(a.levels) - 1), whole=True) if a.levels else a for a in whole)
    worst = _Worst()
    generator = np.random.Generator(np.random.PCG64(seed))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in _tables(own, axes, n, float(epsilon), generator):
            _climb(own, worst, axes, table, float(sensitivity), float(epsilon), generator)
        bound, stated, pair = _ran(own, worst, runs, confidence, float(delta), seed)
    broken = worst.ratio > 1 + _TOLERANCE or bound > stated or bool(worst.problems)
    return LossReport(
        ratio=worst.ratio,
        loss=stated,
        lower_bound=bound,
        delta=float(delta),
        verdict="violated" if broken else "holds" if worst.safe else "untested",
        tried=worst.tried,
        safe=worst.safe,
        pair=pair,
        problems=tuple(worst.problems),
        of=attacked_on(mechanism, loss, statistic, sensitivity, epsilon),
    )


def attacked_on(mechanism: Any, loss: Any, statistic: Any, sensitivity: float, epsilon: float) -> tuple[Any, ...]:
    """What a report is on, as `LossReport.of` has it."""
    names = (str(getattr(own, "__name__", type(own).__name__)) for own in (mechanism, loss, statistic))
    return (*names, float(sensitivity), float(epsilon))


def _fresh(axes: tuple[Axis, ...], n: int, generator: np.random.Generator, power: float) -> Array:
    """n records; power: how far they lean to the lower ends (above 1) or to the upper ones (below 1)."""
    columns = []
    for axis in axes:
        own = axis.low + (axis.high - axis.low) * generator.random(n) ** power
        columns.append(np.rint(own) if axis.whole else own)
    return np.column_stack(columns)


def _tables(
    own: _Asserted, axes: tuple[Axis, ...], n: int, epsilon: float, generator: np.random.Generator
) -> Iterator[Array]:
    """Tables of several shapes, and those next to the unsafe set on the way from a safe one to an unsafe one."""
    made = [_fresh(axes, n, generator, power) for power in (1.0, 0.3, 3.0, 0.05, 20.0)]
    ends = [np.array([axis.corners()[k] for axis in axes], dtype=np.float64) for k in (0, 1)]
    made += [np.tile(end, (n, 1)) for end in ends]
    # one record decides which half is the larger: what order statistics and votes move by most
    made += [
        np.concatenate([np.tile(ends[0], (low, 1)), np.tile(ends[1], (n - low, 1))]) for low in {n // 2, n - n // 2}
    ]
    safe = [one for one in made if own.at(one) <= epsilon]
    unsafe = [one for one in made if own.at(one) > epsilon]
    for one in safe[:3]:
        for other in unsafe[:1]:
            low, high = 0, n  # so many records of the unsafe table are still safe, and so many are not
            while high - low > 1:
                middle = (low + high) // 2
                mixed = np.concatenate([other[:middle], one[middle:]])
                low, high = (middle, high) if own.at(mixed) <= epsilon else (low, middle)
            yield np.concatenate([other[:low], one[low:]])
    yield from made


def _climb(
    own: _Asserted,
    worst: _Worst,
    axes: tuple[Axis, ...],
    table: Array,
    sensitivity: float,
    epsilon: float,
    generator: np.random.Generator,
) -> None:
    """Replace one record at a time; keep the changed record of the best pair and move its coordinates."""
    value, loss = own.value(table), own.at(table)
    if not isfinite(value):
        worst.problems["the statistic raises or is not a finite number"] = None
        return
    corners = [np.array([axis.corners()[k] for axis in axes], dtype=np.float64) for k in (0, 1)]
    safe = loss <= epsilon
    output = own.output(table, 1) if safe else None
    if safe and output is None:
        worst.problems["the mechanism raises or gives what is not a number, where the loss is small enough"] = None
        return
    best: tuple[float, int, Array] | None = None
    for k in range(_TRIES):
        if best is not None and k % 2:
            place, record = best[1], best[2].copy()
            j = int(generator.integers(len(axes)))
            record[j] = axes[j].draw(generator)
        else:
            place = int(generator.integers(len(table)))
            record = corners[k % 2] if k < 8 else _fresh(axes, 1, generator, 1.0)[0]
        other = table.copy()
        other[place] = record
        worst.tried += 1
        moved = abs(own.value(other) - value)
        worst.ratio = max(worst.ratio, moved / sensitivity if isfinite(moved) else inf)
        if not safe:
            continue
        worst.safe += 1
        there = own.output(other, 1)
        assert output is not None
        gap = inf if there is None or there.shape != output.shape else float(np.linalg.norm(there - output))
        per_loss = gap / max(loss, 1e-12)
        if best is None or per_loss > best[0]:
            best, found = (per_loss, place, record), (gap, per_loss, loss, table, other)
    if best is not None:
        worst.pairs.append(found)


def _ran(
    own: _Asserted, worst: _Worst, runs: int, confidence: float, delta: float, seed: int
) -> tuple[float, float, tuple[Any, Any]]:
    """What the loss is at least, what is stated, and the pair: of those with the largest moves the one that comes nearest."""
    most = max((pair[1] for pair in worst.pairs), default=0.0)
    # of moves that cost about as much per unit of stated loss the largest are told apart by the fewest runs
    near = sorted((pair for pair in worst.pairs if pair[1] >= most / 4), key=lambda pair: -pair[0])[:_PAIRS]
    found = []
    for k, (_, _, loss, table, other) in enumerate(near):
        noise = SimulatedNoise(seed + 1 + k)

        def mechanism(given: Array, noise: Any = noise) -> Any:
            return np.ravel(np.asarray(own.mechanism(given.copy(), noise), dtype=np.float64))

        counted = Runs(mechanism, table, other, runs, False, None, False)
        bound = loss_lower_bound(counted, delta=delta, confidence=1 - (1 - confidence) / len(near))
        found.append((bound - loss, bound, loss, (table, other)))
    return max(found, key=lambda one: one[0])[1:] if found else (0.0, inf, (None, None))
