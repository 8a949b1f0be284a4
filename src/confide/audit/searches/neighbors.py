"""What an audit tries: values, records, datasets and their neighbors, from the corners of a domain to hostile ones.

A domain says where records live. It is a `Schema` (data are pandas frames), one pair (low, high) (data are arrays of
shape (n,)), or a sequence of pairs (arrays of shape (n, d)). The search climbs: corners first, then coordinate ascent
over the record that changes and over the records that stay, from many starts.

Records on which a record map is largest, and pairs on which it differs most: found by climbing on test data.

Neighbors to try a method on: made from the schema, the method's worst pairs, and what its record maps are largest on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, product
from math import inf, isfinite
from typing import Any

import numpy as np

from confide._arrays import Array
from confide.core import OpaqueRelease, Plan, Statistic, leaves
from confide.core.events import has_branches
from confide.errors import PrivacyError
from confide.guarantees.validation import is_count
from confide.schema import Categorical, Integer, Numeric, Schema, Unit

Record = tuple[Any, ...]

RELATIONS = ("add-remove", "substitute")
#: Values that no bound expects: each has broken a published library or passes through `numpy.clip` unharmed.
HOSTILE = (
    float("nan"),
    inf,
    -inf,
    1e300,
    -1e300,
    5e-324,
    -0.0,
    2.0**62,
    -(2.0**63),
)
# corners of a domain that the systematic part visits; beyond that the ascent finds the rest
_CORNERS = 32
_SWEEPS = 8


def checked_relation(relation: str) -> str:
    """The relation itself, or `PrivacyError`."""
    if relation not in RELATIONS:
        raise PrivacyError(f'relation must be "add-remove" or "substitute", got {relation!r}')
    return relation


@dataclass(frozen=True)
class Axis:
    """One coordinate of a record: numbers from low to high, or labels."""

    low: float = 0.0
    high: float = 1.0
    whole: bool = False
    levels: tuple[str, ...] = ()

    def corners(self) -> list[Any]:
        """The two ends, or the first and the last label."""
        return [self.levels[0], self.levels[-1]] if self.levels else [self.low, self.high]

    def inside(self) -> list[Any]:
        """Values that the domain allows: ends, middle, quarters, zero."""
        if self.levels:
            return list(self.levels[:8])
        between = [self.low + (self.high - self.low) * part for part in (0.5, 0.25, 0.75)]
        values = [self.low, self.high, *between, *([0.0] if self.low < 0 < self.high else [])]
        return list(dict.fromkeys(float(round(v)) if self.whole else v for v in values))

    def hostile(self) -> list[Any]:
        """Values outside of it: beyond both ends by little and by much, and values that are not numbers."""
        if self.levels:
            return ["no such label", None]
        width = self.high - self.low
        return [*HOSTILE, self.high + width, self.low - width, *(v for v in (1e6,) if v > self.high)]

    def near(self, value: Any) -> list[float]:
        """Values within, left and right of one that is within, ever closer: for peaks between the corners."""
        if self.levels or self.whole or not self.low <= value <= self.high:
            return []
        steps = [(self.high - self.low) / 4**k for k in range(1, 7)]
        return [v for step in steps for v in (value - step, value + step) if self.low <= v <= self.high]

    def draw(self, generator: np.random.Generator) -> Any:
        """A value within, drawn evenly."""
        if self.levels:
            return self.levels[int(generator.integers(len(self.levels)))]
        value = self.low + (self.high - self.low) * float(generator.random())
        return float(round(value)) if self.whole else value


@dataclass(frozen=True)
class Domain:
    """Where records live, and how a list of them becomes the data that a query takes.

    >>> Domain.of((0, 1)).data([(0.5,), (1.0,)])
    array([0.5, 1. ])
    """

    axes: tuple[Axis, ...]
    names: tuple[str, ...] | None = None
    flat: bool = False
    hostile: bool = True
    ids: str | None = None

    @classmethod
    def of(cls, what: Any, *, hostile: bool = True) -> Domain:
        """A domain from a `Schema`, a pair (low, high), a sequence of pairs, or a mapping of names to pairs or columns.

        hostile: also try values that the domain does not allow. Raises `PrivacyError` for anything else.
        """
        if isinstance(what, Domain):
            return cls(what.axes, what.names, what.flat, hostile and what.hostile, what.ids)
        if isinstance(what, Schema):
            ids = what.unit.column if isinstance(what.unit, Unit) else None
            return cls(tuple(_axis(what[name]) for name in what.names), what.names, hostile=hostile, ids=ids)
        if isinstance(what, Mapping) and what:
            return cls(tuple(_axis(one) for one in what.values()), tuple(map(str, what)), hostile=hostile)
        if _is_pair(what):
            return cls((_axis(what),), flat=True, hostile=hostile)
        if isinstance(what, Sequence | np.ndarray) and not isinstance(what, str) and len(what):
            return cls(tuple(_axis(one) for one in what), hostile=hostile)
        raise PrivacyError(
            f"a domain is a Schema, a pair (low, high), or a sequence of pairs, got a {type(what).__name__}",
            "write (0, 1) for one bounded number in each record",
        )

    def data(self, records: Sequence[Record]) -> Any:
        """Records as the query wants them: a frame, an array (n,), or an array (n, d).

        Where a schema enforces a unit, a record may have one entry more, its id; each of the others is a unit.
        """
        if self.names is not None:
            import pandas as pd

            width = len(self.axes)
            cells = [record[:width] for record in records]
            columns = zip(*cells, strict=True) if records else ((),) * width
            kinds = (object if axis.levels else np.float64 for axis in self.axes)
            named = zip(self.names, columns, kinds, strict=True)
            frame = pd.DataFrame({name: np.array(column, dtype=kind) for name, column, kind in named})
            if self.ids is not None:
                own = [record[width] if len(record) > width else f"own {at}" for at, record in enumerate(records)]
                frame[self.ids] = np.array(own, dtype=object)
            return frame
        values = np.array(records, dtype=np.float64).reshape(len(records), len(self.axes))
        return values[:, 0] if self.flat else values

    def corners(self) -> list[Record]:
        """Records at the corners, all equal coordinates first."""
        ends = [axis.corners() for axis in self.axes]
        first = [tuple(end[k] for end in ends) for k in (0, 1)]
        return list(dict.fromkeys([*first, *islice(product(*ends), _CORNERS)]))

    def odd(self) -> Iterator[Record]:
        """Records with hostile values: one coordinate each, then all of them."""
        if not self.hostile:
            return
        base = self.corners()[0]
        for j, axis in enumerate(self.axes):
            for value in axis.hostile():
                yield (*base[:j], value, *base[j + 1 :])
        for k in range(max(len(axis.hostile()) for axis in self.axes)):
            yield tuple(axis.hostile()[k % len(axis.hostile())] for axis in self.axes)

    def values(self, j: int) -> list[Any]:
        """What the ascent puts into coordinate j."""
        axis = self.axes[j]
        return axis.inside() + (axis.hostile() if self.hostile else [])

    def draw(self, generator: np.random.Generator) -> Record:
        """A record: mostly within, some at corners, few hostile."""
        chosen = generator.random(len(self.axes))
        record = []
        for axis, u in zip(self.axes, chosen, strict=True):
            pool = axis.hostile() if self.hostile and u < 0.1 else axis.corners()
            record.append(axis.draw(generator) if u > 0.5 else pool[int(generator.integers(len(pool)))])
        return tuple(record)

    def inner(self, generator: np.random.Generator, n: int) -> list[Record]:
        """n records drawn evenly within the bounds."""
        return [tuple(axis.draw(generator) for axis in self.axes) for _ in range(n)]


def _is_pair(what: Any) -> bool:
    return (
        isinstance(what, Sequence | np.ndarray)
        and not isinstance(what, str)
        and len(what) == 2
        and all(isinstance(end, int | float | np.number) and not isinstance(end, bool) for end in what)
    )


def _axis(what: Any) -> Axis:
    if isinstance(what, Axis):
        return what
    if isinstance(what, Categorical):
        return Axis(levels=tuple(what.levels))
    if isinstance(what, Numeric | Integer):
        return Axis(float(what.low), float(what.high), isinstance(what, Integer))
    if _is_pair(what) and isfinite(what[0]) and isfinite(what[1]) and what[0] < what[1]:
        return Axis(float(what[0]), float(what[1]))
    if isinstance(what, Sequence) and what and all(isinstance(level, str) for level in what):
        return Axis(levels=tuple(what))
    raise PrivacyError(f"a column of a domain is (low, high) with finite low < high, or labels, got {what!r}")


@dataclass(frozen=True)
class Found:
    """The worst neighbors that a search met: value of the objective, the two lists of records, how many pairs were tried."""

    value: float
    data: tuple[Record, ...]
    neighbor: tuple[Record, ...]
    tried: int


class _Climb:
    """One search: `measure(data)` is asked of each dataset, `gap(one, other)` of two neighbors; the largest gap wins."""

    def __init__(
        self, domain: Domain, measure: Callable[[Any], Any], gap: Callable[[Any, Any], float], limit: int
    ) -> None:
        self.domain, self.measure, self.gap, self.limit = domain, measure, gap, limit
        self.tried = 0
        self.best = Found(-1.0, (), (), 0)
        self._answers: dict[str, Any] = {}

    @property
    def done(self) -> bool:
        return self.tried >= self.limit or self.best.value == inf

    def value(self, rest: Sequence[Record], a: Record | None, b: Record) -> float:
        """The gap between rest + a and rest + b; a is None when b is added."""
        data = tuple(rest) if a is None else (*rest, a)
        neighbor = (*rest, b)
        found = self.gap(self._answer(data), self._answer(neighbor))
        self.tried += 1
        if found > self.best.value:
            self.best = Found(found, data, neighbor, 0)
        return found

    def _answer(self, records: tuple[Record, ...]) -> Any:
        """What is measured of a dataset, asked once: over half of them come again. As text, because NaN equals nothing, and 0.0 -0.0."""
        text = repr(records)
        if text not in self._answers:
            self._answers[text] = self.measure(self.domain.data(records))
        return self._answers[text]


def search(
    domain: Domain,
    measure: Callable[[Any], Any],
    gap: Callable[[Any, Any], float],
    *,
    relation: str,
    n: int | None = None,
    restarts: int = 12,
    seed: int = 0,
) -> Found:
    """The neighbors with the largest gap that corners, hostile values and ascent from random starts could find.

    n: number of records: exactly n under substitution, at most n under "add-remove"; None tries 0 to 30. An infinite gap ends the
    search. The same arguments find the same pair.
    """
    checked_relation(relation)
    if n is not None and not is_count(n, 1):
        raise PrivacyError(
            f"n must be a whole number of records of at least 1, got {n!r}", "leave it out to try 0 to 30"
        )
    generator = np.random.Generator(np.random.PCG64(seed))
    fixed = relation == "substitute"
    climb = _Climb(domain, measure, gap, 3_000 + 500 * max(restarts, 0))
    starts = _systematic(climb, generator, fixed, n)
    for _ in range(max(restarts, 0)):
        size = (n - 1) if fixed and n is not None else int(generator.choice([0, 1, 2, 5, (n or 31) - 1]))
        rest = [domain.draw(generator) for _ in range(size)]
        starts.append((rest, domain.draw(generator) if fixed else None, domain.draw(generator)))
    for rest, a, b in starts:
        if climb.done:
            break
        _ascend(climb, generator, rest, a, b, resize=not (fixed and n is not None), most=n or 60)
    return Found(climb.best.value, climb.best.data, climb.best.neighbor, climb.tried)


Start = tuple[list[Record], Record | None, Record]


def _systematic(climb: _Climb, generator: np.random.Generator, fixed: bool, n: int | None) -> list[Start]:
    """Every corner and hostile record against a few kinds of company; the three worst are where the ascent begins."""
    domain = climb.domain
    corners, odd = domain.corners(), list(domain.odd())
    low, high = corners[0], corners[:2][-1]
    most = (n or 31) - 1
    company: list[list[Record]] = []
    if not (fixed and n is not None):  # the smallest first: of equal gaps the first is shown
        company += [[], [low], [high], [high, high], [low, high], *([one] for one in odd[:1])]
    company += [[low] * most, [high] * most, domain.inner(generator, most)]
    changed = [low, high, *domain.inner(generator, 1)] if fixed else [None]
    scored: list[tuple[float, int, Start]] = []
    for rest in company:
        for a in changed:
            for b in (*corners, *odd):
                if climb.done:
                    break
                scored.append((climb.value(rest, a, b), len(scored), (rest, a, b)))
    # ties in the order of trial: corners before hostile records
    return [start for _, _, start in sorted(scored, key=lambda one: (-one[0], one[1]))[:3]]


def _ascend(
    climb: _Climb,
    generator: np.random.Generator,
    rest: list[Record],
    a: Record | None,
    b: Record,
    *,
    resize: bool,
    most: int,
) -> None:
    """Change one coordinate or one record at a time while that widens the gap."""
    domain = climb.domain
    now = climb.value(rest, a, b)
    for _ in range(_SWEEPS):
        before = now
        for j in range(len(domain.axes)):
            for value in (*domain.values(j), domain.axes[j].draw(generator), *domain.axes[j].near(b[j])):
                tried = (*b[:j], value, *b[j + 1 :])
                if (found := climb.value(rest, a, tried)) > now:
                    now, b = found, tried
                if a is not None:
                    other = (*a[:j], value, *a[j + 1 :])
                    if (found := climb.value(rest, other, b)) > now:
                        now, a = found, other
                if climb.done:
                    return
        for company in _companies(domain, generator, rest, a, b, resize, most):
            if (found := climb.value(company, a, b)) > now:
                now, rest = found, company
            if climb.done:
                return
        if now <= before:
            return


def _companies(
    domain: Domain,
    generator: np.random.Generator,
    rest: list[Record],
    a: Record | None,
    b: Record,
    resize: bool,
    most: int,
) -> Iterator[list[Record]]:
    """Changes of the records that stay: one replaced, one more, one less, all alike."""
    corners = domain.corners()
    pool = [b, *([] if a is None else [a]), *corners[:2], domain.draw(generator)]
    if domain.hostile:
        pool.append(domain.axes and tuple(axis.hostile()[0] for axis in domain.axes))
    for i in generator.permutation(len(rest))[:4]:
        for record in pool:
            yield [*rest[:i], record, *rest[i + 1 :]]
        if resize:
            yield [*rest[:i], *rest[i + 1 :]]
    for record in pool:
        yield [record] * len(rest)
        if resize and len(rest) < most:
            yield [*rest, record]


_CANDIDATES = 1_500
_PLACES = 65
_EXTREME_SWEEPS = 3


def extreme_pairs(plan: Plan, schema: Schema, generator: np.random.Generator) -> list[tuple[Record | None, Record]]:
    """For each statistic of a plan the record that moves it most under add/remove, or the two that differ most under substitution."""
    domain = Domain.of(schema)
    records = [*domain.corners(), *domain.odd(), *(_placed(domain, generator) for _ in range(_CANDIDATES))]
    found: list[tuple[Record | None, Record]] = []
    for statistic in plan.statistics.values():
        rows = _rows(statistic, domain, schema, records)
        first, own = _climb(statistic, domain, schema, records, rows, partial(_size, statistic))
        if plan.relation == "add-remove":
            found.append((None, first))
            continue
        second, _ = _climb(statistic, domain, schema, records, rows, partial(_apart, statistic, own))
        found.append((first, second))
    return list(dict.fromkeys(found))


def _placed(domain: Domain, generator: np.random.Generator) -> Record:
    """A record on a coarse grid: half of the coordinates at an end."""
    record = []
    for axis in domain.axes:
        pool = axis.corners() if generator.random() < 0.5 else _places(axis)
        record.append(pool[int(generator.integers(len(pool)))])
    return tuple(record)


def _places(axis: Axis) -> list[Any]:
    if axis.levels:
        return list(axis.levels)
    values = [axis.low + (axis.high - axis.low) * k / (_PLACES - 1) for k in range(_PLACES)]
    return list(dict.fromkeys(float(round(value)) for value in values)) if axis.whole else values


def _rows(statistic: Statistic, domain: Domain, schema: Schema, records: list[Record]) -> Array:
    """The map's integers of each record, shape (width, records)."""
    from confide.sources import read
    from confide.testing.test_data import codes_of

    return np.asarray(statistic.map(codes_of(read(domain.data(records), schema), statistic.map)), dtype=np.float64)


def _size(statistic: Statistic, rows: Array) -> Array:
    if statistic.norm == "l1":
        return np.asarray(np.abs(rows).sum(axis=0))
    return np.asarray(statistic.moved_squared(np.zeros(len(rows)), rows), dtype=np.float64)


def _apart(statistic: Statistic, own: Array, rows: Array) -> Array:
    """The squared distance between the contribution of each record and that of `own`."""
    return np.asarray(statistic.moved_squared(own, rows), dtype=np.float64)


def _climb(
    statistic: Statistic,
    domain: Domain,
    schema: Schema,
    records: list[Record],
    rows: Array,
    worth: Callable[[Array], Array],
) -> tuple[Record, Array]:
    """The record that is worth most, improved one coordinate at a time; and its integers."""
    best = int(np.argmax(worth(rows)))
    record, own, value = records[best], rows[:, best], float(worth(rows)[best])
    for _ in range(_EXTREME_SWEEPS):
        before = value
        for j, axis in enumerate(domain.axes):
            tried = [(*record[:j], place, *record[j + 1 :]) for place in _places(axis)]
            found = _rows(statistic, domain, schema, tried)
            k = int(np.argmax(worth(found)))
            if float(worth(found)[k]) > value:
                record, own, value = tried[k], found[:, k], float(worth(found)[k])
        if value <= before:
            break
    return record, own


Neighbors = tuple[list[Record], list[Record]]

COMPANY = 40  # records that stay, where there are many
# records enough for the branch of many records at usual levels
CROWD = 1_500
_SEED = 20260101


def neighbors(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbors]:
    """Pairs of datasets, as lists of records in the schema's columns, on which a method should be tried: one unit differs.

    Under substitution both have plan.n records where the plan names n.
    """
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*named(method, schema, plan.relation), *extreme_pairs(plan, schema, generator)]
    special = [(low, high), *((low, odd) for odd in _hostile(domain)), (high, domain.inner(generator, 1)[0])]
    yield from whole(method, plan, schema)
    inner = domain.inner(generator, COMPANY)
    rows = schema.rows_per_unit  # one unit changes as many rows as it may have
    unit = _Units(schema)
    if plan.relation == "substitute":
        size = COMPANY if plan.n is None else plan.n - rows
        company = [inner[:size], [low] * size, [high] * size, [_hostile(domain)[0]] * size]
    else:
        company = [[], inner, [high] * COMPANY, [low], [_hostile(domain)[0]] * 3]
    for rest in company:
        for one, other in (*pairs, *special):
            if plan.relation == "substitute":
                yield [*rest, *unit([one or low], special)], [*rest, *unit([other], special)]
            else:
                yield list(rest), [*rest, *unit([other], special)]
    if plan.relation == "add-remove" and (has_branches(plan.event) or has_opaque(plan)):
        # branches that a noisy count chooses may need many records, and so may the bounds of an opaque release
        crowd = _crowd(domain, generator, CROWD, schema)
        for _, other in (*pairs, (low, high)):
            yield crowd, [*crowd, *unit([other], special)]


def whole(method: Any, plan: Plan, schema: Schema) -> Iterator[Neighbors]:
    """The datasets that the method names as worst, where a unit is a row: what its records leave out is alike in all."""
    if isinstance(schema.unit, Unit) or schema.rows_per_unit != 1:
        return
    domain = Domain.of(schema)
    base = {name: axis.inside()[-1] for name, axis in zip(schema.names, domain.axes, strict=True)}
    for pair in method.worst_data(plan, schema):
        one, other = ([tuple({**base, **row}[name] for name in schema.names) for row in rows] for rows in pair)
        yield one, other


def crowded(method: Any, plan: Plan, schema: Schema, *, seed: int = _SEED) -> Iterator[Neighbors]:
    """Pairs of many records, plan.n of them, for branches that few records never reach, under substitution."""
    domain, generator = Domain.of(schema), np.random.Generator(np.random.PCG64(seed))
    low, high = domain.corners()[0], domain.corners()[:2][-1]
    pairs = [*named(method, schema, plan.relation), *extreme_pairs(plan, schema, generator), (low, high)]
    unit = _Units(schema)
    crowd = _crowd(domain, generator, (plan.n or CROWD) - schema.rows_per_unit, schema)
    for one, other in pairs:
        yield [*crowd, *unit([one or low], pairs)], [*crowd, *unit([other], pairs)]


def _crowd(domain: Domain, generator: np.random.Generator, size: int, schema: Schema) -> list[Record]:
    """Many records; where a unit is enforced so many units of two, as what is counted within units needs more than one row of each."""
    if not isinstance(schema.unit, Unit):
        return domain.inner(generator, size)
    return [(*row, f"crowd {at // 2}") for at, row in enumerate(domain.inner(generator, 2 * size))]


class _Units:
    """The rows of the unit that two neighbors differ in, one portion after the other.

    Declared, they are the most that a unit may have, all equal. Enforced, a unit has 1, k, k + 1 or 10 k rows in
    turn: all equal, or of opposite corners together with other cells. Its id is written as text, as a whole number
    and as a float. And rows without an id, which must change nothing, are added.
    """

    def __init__(self, schema: Schema) -> None:
        self._rows, self._turn = schema.rows_per_unit, 0
        self._enforced = isinstance(schema.unit, Unit)

    def __call__(self, records: list[Record], others: Sequence[tuple[Record | None, Record]]) -> list[Record]:
        k = self._rows
        if not self._enforced:
            return records * k
        self._turn += 1
        count = (1, k, k + 1, 10 * k)[self._turn % 4]
        beside = [record for _, record in others] if self._turn % 3 == 0 else []
        rows = list(islice(cycle([*records, *beside]), count))
        nobody = [(*records[0], missing) for missing in (None, float("nan"), "", 7.5)]
        return [*((*row, spelled) for row, spelled in zip(rows, cycle(("7", 7, 7.0)))), *nobody]


def named(method: Any, schema: Schema, relation: str) -> list[tuple[Record | None, Record]]:
    """The method's worst pairs, as records in the schema's order; a pair of one record is an added one."""
    given = method.worst_pairs(schema)
    base = {name: axis.inside()[-1] for name, axis in zip(schema.names, Domain.of(schema).axes, strict=True)}
    found: list[tuple[Record | None, Record]] = []
    for pair in given:
        records = [tuple({**base, **record}[name] for name in schema.names) for record in pair]
        if relation == "substitute" and len(records) > 1:
            found.append((records[0], records[1]))
        elif relation == "add-remove":
            found += [(None, record) for record in records]
    return list(dict.fromkeys(found))


def _hostile(domain: Domain) -> list[Record]:
    """A few hostile records: every coordinate missing, infinite, huge, tiny, an unknown label."""
    wanted = len(next(iter(domain.axes)).hostile())
    return list(domain.odd())[-max(wanted, 2) :][:6]


def has_opaque(plan: Plan) -> bool:
    """Whether a plan has a release whose guarantee is proved elsewhere."""
    return any(isinstance(leaf, OpaqueRelease) for leaf in leaves(plan.event))
