"""Try to break a safety bound: the two promises on which propose-test-release rests.

A safety bound is a function gamma of the data together with an estimate and a number alpha ("bound"), such that for all
neighbors X, X'

    (C1) gamma >= 0 and |gamma(X) - gamma(X')| <= 1;
    (C2) gamma(X) > 0  implies  |S (estimate(X) - estimate(X'))|_2 <= alpha, for EVERY neighbor X'.

C2 needs only one of the two to be safe. The other may be unsafe, and then its estimate may be undefined (an
exception, NaN): with gamma = 0 the mechanism never replies and never looks. Where both are safe both estimates must
exist. A wrong C1 makes the noisy test too sure of itself, a wrong C2 makes the noise too small; either one breaks the
guarantee. A statistic that is known up to rounding must be passed on as (gamma - eta)/(1 + 3 eta) cut at 0, or the
search finds the rounding.

The search for neighbors that break a `SafetyBound`: starts next to the unsafe set, then steps that widen the gap.

A general search rarely meets data with a safety in (0, 1], where bounds break. One record moves gamma by at most 1,
so on the way from safe data to data without any safety, record by record, there is always a dataset of this kind. The
climb starts there and moves the two records that change, the others individually, and all of them together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.audit.searches.neighbors import Axis, Domain, search
from confide.audit.searches.sensitivity import Response, answer, distance, shown
from confide.audit.verdict import Audit, Finding
from confide.errors import PrivacyError
from confide.methods.ptr.safety import CertifiedBound, SafetyBound, bound_name, checked_bound

_TRIES = 900
_PATIENCE = 250
# What rounding may make of another order of the records: in gamma, and in the estimate as a part of alpha.
_ROUNDING, _MOVED = 1e-6, 1e-2


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
    """Try the four promises of a bound on datasets of n records within a domain of numbers."""
    attack, own = Attack(), _Bound(bound)
    generator = np.random.Generator(np.random.PCG64(seed))
    axes = domain.axes
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _degenerate(attack, own, axes, n)
        for k in range(max(restarts, 1)):
            start = _start(own, axes, n, generator, k)
            _record_by_record(attack, bound, axes, start, generator)
            apart = np.random.Generator(np.random.PCG64([seed, k]))
            for records in (start, _fresh(axes, n, apart, 0.0)):
                _any_order(attack, own, records, apart.permutation(n), alpha)
            for objective in (_ratio, _moved) if k % 3 else (_moved, _ratio):
                _climb(attack, own, axes, start, generator, objective, alpha)
    return attack


def _degenerate(attack: Attack, own: _Bound, axes: tuple[Axis, ...], n: int) -> None:
    """Gamma must be a number of at least 0 on data of one value."""
    ends = [np.array([axis.corners()[k] for axis in axes], dtype=np.float64) for k in (0, 1)]
    middle = np.array([round(v) if axis.whole else v for axis, v in zip(axes, (ends[0] + ends[1]) / 2, strict=True)])
    zero = np.clip(np.zeros(len(axes)), ends[0], ends[1])
    for record in (*ends, middle, zero):
        gamma = own.gamma(np.tile(record, (n, 1)))
        attack.tried += 1
        if not (isfinite(gamma) and gamma >= 0):
            attack.problems["gamma is not a number of at least 0 on records that are all alike"] = None


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


def _any_order(attack: Attack, own: _Bound, data: Array, order: Any, alpha: float) -> None:
    """A bound must say the same of the records in any order but for rounding.

    A release has them in an order by their contents, in which one record may shift all those after it: blocks of rows would all change.
    """
    turned = data[order]
    one, other = own.gamma(data), own.gamma(turned)
    if isfinite(one) and isfinite(other) and abs(one - other) > _ROUNDING * (1 + abs(one)):
        attack.problems["gamma changes with the order of the records"] = None
    if not (one > 0 and other > 0):
        return
    first, second = own.estimate(data), own.estimate(turned)
    if first is not None and second is not None and float(np.linalg.norm(first - second)) > _MOVED * alpha:
        attack.problems["the estimate changes with the order of the records"] = None


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


def _moved(attack: Attack, own: _Bound, data: Array, neighbor: Array, alpha: float) -> float:
    one, two = own.gamma(data), own.gamma(neighbor)
    attack.tried += 1
    moved = abs(one - two) if min(one, two) >= 0 and isfinite(one) and isfinite(two) else inf
    if moved > attack.steps:
        attack.steps, attack.pair_steps = moved, (data.copy(), neighbor.copy())
    return moved


def _ratio(attack: Attack, own: _Bound, data: Array, neighbor: Array, alpha: float) -> float:
    one, two = own.gamma(data), own.gamma(neighbor)
    attack.tried += 1
    if not (one > 0 or two > 0):
        return -1.0
    attack.safe += 1
    first, second = own.estimate(data), own.estimate(neighbor)
    if first is None or second is None:
        # an unsafe estimate is never asked for; a safe one must be there
        missing = (first is None and one > 0) or (second is None and two > 0)
        ratio = inf if missing else 0.0
    else:
        ratio = float(np.linalg.norm(first - second)) / alpha
    if ratio > attack.ratio:
        attack.ratio, attack.pair_ratio = ratio, (data.copy(), neighbor.copy())
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
    neighbor = data.copy()
    neighbor[i] = record
    return neighbor


# below every real violation, above nothing: lets the ascent climb toward safe data before it can measure anything there
_FOOTHOLD = 1e-9


@dataclass(frozen=True)
class _Seen:
    gamma: float
    estimate: Response


@dataclass(frozen=True)
class SafetyReport:
    """The worst violations found. `print(report)` says them in words.

    `steps`: the largest move of gamma between neighbors (claim: 1; `inf` where gamma is negative, no number or
    raises). `ratio`: the largest move of the estimate from safe data, over the bound. `pair_steps`, `pair_ratio`: the
    two datasets of each. `safe`: how many of the tried pairs had a safe side; with none C2 was not tested. `tried`:
    pairs of neighbors. `problems`: what else a bound does that it must not, in words.
    """

    steps: float
    ratio: float
    bound: float
    relation: str
    verdict: str
    tried: int
    safe: int
    pair_steps: tuple[Any, Any]
    pair_ratio: tuple[Any, Any]
    name: str = "gamma"
    problems: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Whether one of the promises is refuted."""
        return self.verdict == "violated"

    def findings(self) -> Audit:
        """The same as two rows of an `Audit`."""
        limit = 1 + _TOLERANCE
        rows = (("moves by at most 1", self.steps, 1), ("bounds the estimate where safe", self.ratio, self.safe))
        others = Finding(
            name=f"{self.name} everything else",
            quantity="gap",
            claim=0.0,
            lower_bound=float(len(self.problems)),
            verdict="violated" if self.problems else "holds",
            attack="neighbor search",
            relation=self.relation,
            note="; ".join(self.problems),
        )
        return Audit(
            tuple(
                Finding(
                    name=f"{self.name} {what}",
                    quantity="ratio",
                    claim=1.0,
                    lower_bound=value,
                    verdict="violated" if value > limit else "holds" if tested else "untested",
                    attack="neighbor search",
                    relation=self.relation,
                    note=f"{self.tried} pairs tried, {self.safe} with a safe side",
                )
                for what, value, tested in rows
            )
            + ((others,) if self.problems else ())
        )

    def __str__(self) -> str:
        lines = [
            f"safety bound {self.name} under {self.relation}: {self.verdict}",
            f"gamma moved by {self.steps:.6g} (claim 1), the estimate by {self.ratio:.6g} of its bound where safe",
            f"{self.tried} pairs tried, {self.safe} with a safe side",
            *self.problems,
        ]
        for what, value, pair in (("gamma", self.steps, self.pair_steps), ("estimate", self.ratio, self.pair_ratio)):
            if value > 1 + _TOLERANCE:
                lines += [f"the worst neighbors of the {what}:", *(f"  {line}" for line in _apart(*pair))]
        return "\n".join(lines)


_TOLERANCE = 1e-9


def _apart(one: Any, other: Any) -> tuple[str, ...]:
    """Two neighbors as text: the data, and the record that differs, where they are rows of the same number."""
    try:
        first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        same = first.shape == second.shape and first.ndim > 0
        places = np.flatnonzero(
            ((first != second) & ~(np.isnan(first) & np.isnan(second))).reshape(len(first), -1).any(axis=1)
        )
    except (TypeError, ValueError):
        same, places = False, np.array([], dtype=np.int64)
    if not same or len(places) != 1:
        return shown(one), shown(other)
    at = int(places[0])
    return (
        shown(one),
        f"record {at + 1} of {len(first)} differs: {shown(first[at].tolist())} in the one, {shown(second[at].tolist())} in the other",
    )


def falsify_safety_bound(
    gamma: Any,
    estimate: Any = None,
    bound: float | Fraction | None = None,
    domain: Any = None,
    *,
    relation: str = "substitute",
    scales: Sequence[float] | None = None,
    threshold: float = 0.0,
    n: int | None = None,
    restarts: int = 12,
    seed: int = 0,
    hostile: bool = True,
    name: str = "gamma",
) -> SafetyReport:
    """Search for neighbors that break gamma (C1) or the bound on the estimate where gamma says safe (C2).

    `gamma`, `estimate`: functions of the data that `domain` makes (see `falsify_sensitivity`), as they are called:
    clipping included. `bound`: alpha, in the Euclidean norm after the estimate's coordinates are multiplied by
    `scales` (S; None: all 1). `threshold`: data with gamma above it are called safe. `n`: number of records, public
    under substitution; None tries 1 to 31. What gamma raises, and a gamma that is negative or no number, breaks C1.

    A `SafetyBound` is given whole, with the domain of its records: falsify_safety_bound(bound, domain, n=40). Then
    `prepare` must make the same of a record whatever the others are, and gamma must be a number on records that are
    all alike. C1 and C2 are attacked from data with a safety in (0, 1], under substitution alone. By default n is
    that of the bound, else 24. A schema as domain gives its columns in their order, labels as positions. For a
    `CertifiedBound` without level0 the level and `alpha_at` are attacked at a level that random data have.

    Errors: PrivacyError for parameters out of range.

    >>> import numpy as np
    >>> from confide.ptr import OrderStatistic
    >>> falsify_safety_bound(OrderStatistic(8, 0.0, 1.0, alpha=0.3), [(0, 1)], n=15, restarts=4).verdict
    'holds'
    >>> count = lambda x: max(int((x > 0).sum()) - 4, 0)
    >>> share = lambda x: float(np.clip(x[x > 0], 0, 1).mean())
    >>> falsify_safety_bound(count, share, 1 / 2, (-1, 1), n=12, hostile=False).verdict
    'holds'
    >>> falsify_safety_bound(count, share, 1 / 12, (-1, 1), n=12, hostile=False).verdict
    'violated'
    """
    if isinstance(gamma, SafetyBound):
        return _whole(gamma, estimate if domain is None else domain, relation, n, restarts, seed)
    if isinstance(bound, bool) or not isinstance(bound, int | float | Fraction | np.number) or not 0 < bound < inf:
        raise PrivacyError(f"bound must be a finite number above 0, the alpha of the safety bound, got {bound!r}")
    where = Domain.of(domain, hostile=hostile)
    alpha = float(bound)
    hits = {"safe": 0}

    def measure(data: Any) -> _Seen:
        return _Seen(_gamma(gamma, data), answer(estimate, data))

    def moved(one: _Seen, other: _Seen) -> float:
        if not (_fits(one.gamma) and _fits(other.gamma)):
            return inf
        return abs(one.gamma - other.gamma)

    def apart(one: _Seen, other: _Seen) -> float:
        best = max(one.gamma, other.gamma, 0.0)
        if not (one.gamma > threshold or other.gamma > threshold):
            return _FOOTHOLD * best / (1 + best)
        hits["safe"] += 1
        for seen, partner in ((one, other), (other, one)):
            if _undefined(seen.estimate):
                # an unsafe estimate is never asked for
                return inf if seen.gamma > threshold else 0.0 if partner.gamma > threshold else inf
        return float(distance(_scaled(one.estimate, scales), _scaled(other.estimate, scales), "l2")) / alpha

    first = search(where, measure, moved, relation=relation, n=n, restarts=restarts, seed=seed)
    second = search(where, measure, apart, relation=relation, n=n, restarts=restarts, seed=seed + 1)
    ratio = second.value if hits["safe"] else 0.0
    ratio = 0.0 if ratio < 2 * _FOOTHOLD else ratio
    violated = first.value > 1 + _TOLERANCE or ratio > 1 + _TOLERANCE
    return SafetyReport(
        steps=first.value,
        ratio=ratio,
        bound=alpha,
        relation=relation,
        verdict="violated" if violated else "holds" if hits["safe"] else "untested",
        tried=first.tried + second.tried,
        safe=hits["safe"],
        pair_steps=(where.data(first.data), where.data(first.neighbor)),
        pair_ratio=(where.data(second.data), where.data(second.neighbor)),
        name=name,
    )


def _whole(bound: SafetyBound, domain: Any, relation: str, n: int | None, restarts: int, seed: int) -> SafetyReport:
    """The report on a `SafetyBound`."""
    if relation != "substitute":
        raise PrivacyError(f"a SafetyBound is for substitution, got relation={relation!r}", "leave it out")
    whole = Domain.of(domain, hostile=False)
    axes = tuple(Axis(0.0, float(len(a.levels) - 1), whole=True) if a.levels else a for a in whole.axes)
    size = n if n is not None else (bound.n or 24)
    attacked = bound
    if isinstance(bound, CertifiedBound) and bound.level0 is None:
        attacked = _AtLevel(bound, _usual_level(bound, axes, size, seed))
    attacked = checked_bound(attacked)
    alpha = float(attacked.alpha)
    found = attack_bound(attacked, Domain(axes), n=size, restarts=restarts, seed=seed, alpha=alpha)
    violated = found.steps > 1 + _TOLERANCE or found.ratio > 1 + _TOLERANCE or bool(found.problems)
    return SafetyReport(
        steps=found.steps,
        ratio=found.ratio,
        bound=alpha,
        relation=relation,
        verdict="violated" if violated else "holds" if found.safe else "untested",
        tried=found.tried,
        safe=found.safe,
        pair_steps=found.pair_steps,
        pair_ratio=found.pair_ratio,
        name=bound_name(bound),
        problems=tuple(found.problems),
    )


class _AtLevel(CertifiedBound):
    """A certified bound at a fixed level."""

    def __init__(self, base: CertifiedBound, level0: float) -> None:
        self._base = base
        self.dim, self.shape, self.n, self.names = base.dim, base.shape, base.n, base.names
        self.moves, self.least, self.level0 = base.moves, base.least, level0

    def prepare(self, data: Any) -> Any:
        return self._base.prepare(data)

    def error(self, prepared: Any) -> float:
        return self._base.error(prepared)

    def level(self, prepared: Any) -> float:
        return self._base.level(prepared)

    def alpha_at(self, t: float) -> float:
        return self._base.alpha_at(t)

    def estimate(self, prepared: Any) -> Any:
        return self._base.estimate(prepared)


def _usual_level(bound: CertifiedBound, axes: tuple[Axis, ...], n: int, seed: int) -> float:
    """Half of the level of evenly drawn records, and above `least`."""
    generator = np.random.Generator(np.random.PCG64(seed))
    data = np.array([[axis.draw(generator) for axis in axes] for _ in range(n)], dtype=np.float64)
    return max(float(bound.level(bound.prepare(data))) / 2 - bound.moves, bound.least * (1 + 1e-9))


def _gamma(gamma: Callable[[Any], Any], data: Any) -> float:
    said = answer(gamma, data)
    return float(said.numbers[0]) if len(said.numbers) == 1 else float("nan")


def _fits(value: float) -> bool:
    return isfinite(value) and value >= 0


def _undefined(said: Response) -> bool:
    return not said.numbers or not all(isfinite(float(value)) for value in said.numbers)


def _scaled(said: Response, scales: Sequence[float] | None) -> Response:
    numbers = tuple(float(value) for value in said.numbers)
    if scales is not None:
        numbers = tuple(s * value for s, value in zip(scales, numbers, strict=True))
    # two forms of the same numbers are no violation here: only where the estimate lies counts
    return Response((), numbers, False)
