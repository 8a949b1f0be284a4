"""What private selection does with records: a split into two parts, runs of other methods on one, clipped losses on the other.

Split. Records are taken by content: the codes of the columns in use. The c-th copy of a record r goes to validation where its keyed
hash h(r, c) is small (`sums.blocks.record_block.keyed_hashes`). For any fixed h one record more in the data is one record more in
exactly one part. So what protects against one record of either part protects against one record, for each h. h is drawn without the
records, and hockey-stick divergences are jointly convex, so that it protects over h. No order of the records enters; coins by the place
in the file would make the release depend on it.

Scores. The score of a run is minus the sum, over the validation records, of the loss clipped to [0, clip] in 2^20 integer steps, plus
rounded Gaussian noise. One record moves the sum by at most 2^20 steps. It is never divided by the number of records, which is private
under add/remove. All float steps are elementwise, and a log-loss is looked up in a table, so that a record's loss never depends on the
others.

A winner's release inside the release of its selection: as public arrays and back, and its table without intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from math import nan
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import BudgetItem, Noise, Noisy, Plan, RecordMap, Release, Source, Statistic, Total, leaves
from confide.core.exact import digest, pack, round_up
from confide.core.lost_values import UNREAD
from confide.errors import PlanError
from confide.results import Estimates
from confide.results.pages.content import Flag
from confide.schema import Categorical, ModelMatrix, Schema
from confide.sums.blocks.record_block import Collected, keyed_hashes
from confide.sums.coding import only
from confide.sums.columns import CodedColumns

#: Integer steps of one clip.
STEPS = 1 << 20
LOSSES = ("squared_error", "absolute_error", "log_loss")
# Log-odds are looked up in steps of 2^-10 within +-32.
_ODDS, _FAR = 1 << 10, 32
_BLOCK = 1 << 14


# draws that do not depend on records ---------------------------------------------------------------------------------


def uniform(noise: Noise, weights: Sequence[int]) -> int:
    """A number j with probability weights[j] over their sum, exactly: a private choice among equal scores."""
    equal = np.zeros(len(weights), dtype=np.int64)
    lengths = np.array(weights, dtype=object)
    return int(noise.exponential_mechanism(equal, Fraction(1), Fraction(1), lengths))


# records -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodedRecords(CodedColumns):
    """One record as the codes of chosen rows: schema columns (-1 where missing under "drop") and `read(NAME)`."""

    @property
    def largest(self) -> list[int]:
        """The largest code of each row: that of an unread cell of `read(NAME)`."""
        names = self.schema.names
        return [max(self.schema[name].steps - 1, 1) if name in names else UNREAD for name in self.columns]

    @property
    def digest(self) -> str:
        return digest(["coded records", self.schema.bare.to_dict(), list(self.columns)])

    def __call__(self, codes: Array) -> Array:
        return np.array(codes, dtype=np.float64)


def split(rows: Array, share: float, secret: bytes) -> tuple[Array, Array]:
    """(training, validation): rows (columns, n) in canonical order, as `Collected` gives them; each copy by its own keyed hash."""
    if not rows.shape[1]:
        return rows, rows
    held = keyed_hashes(rows, secret) < np.uint64(min(int(share * 2.0**64), 2**64 - 1))
    return np.ascontiguousarray(rows[:, ~held]), np.ascontiguousarray(rows[:, held])


class Part(Source):
    """Records of one part as a separate source, for releases inside a release. It hands out no records."""

    schema: Schema
    dataset: str | None = None
    rereadable = True

    def __init__(self, schema: Schema, columns: tuple[str, ...], rows: Array) -> None:
        self.schema, self._columns, self._rows = schema, columns, rows

    def aggregate(self, *statistics: Statistic) -> tuple[NDArray[Any], ...]:
        """Exact sums, as `RecordSource.aggregate`."""
        return tuple(self._sum(statistic) for statistic in statistics)

    def _sum(self, statistic: Statistic) -> NDArray[Any]:
        self.check(statistic.map.columns)
        pick = [self._columns.index(name) for name in statistic.map.columns]
        state = statistic.zero()
        with np.errstate(all="ignore"):
            for start in range(0, self._rows.shape[1], _BLOCK):
                state = statistic.update(state, self._rows[pick, start : start + _BLOCK])
        return statistic.value(state)

    def count(self) -> int:
        """Refused: the size of a part is private."""
        raise PlanError("the number of records of a part is private; a candidate must not need it")

    def check(self, columns: Sequence[str]) -> None:
        """`PlanError` for a row that no candidate's plan named."""
        missing = [name for name in columns if name not in self._columns]
        if missing:
            raise PlanError(
                f"a candidate reads {missing[0]!r}, which its plan does not name", "name it in a statistic of the plan"
            )


# losses --------------------------------------------------------------------------------------------------------------


class RecordLoss(Protocol):
    """A user's loss of one record: a frozen dataclass with numbers and texts as fields, registered by
    `confide.selection.register_loss`.

    name: under which it is registered; clip: public, above 0; columns: what it reads; __call__(result, record): the loss, a number; record:
    column -> array of one value, in the columns' units. It is called for one record at a time, so that it can look at no other.
    """

    @property
    def name(self) -> str: ...
    @property
    def clip(self) -> float: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    def __call__(self, result: Any, record: Mapping[str, NDArray[Any]], /) -> float: ...


@dataclass(frozen=True)
class LineLoss(RecordMap):
    """The clipped losses of K linear predictors at one record, in 2^20 steps of the clip, shape (K,): from 0 to 2^20 each.

    lines: (intercept, slope of each term), in the units of the data; kind: one of `LOSSES`. A record that the model matrix drops has
    loss 0, and a loss that is not a number counts as the clip.
    """

    design: ModelMatrix
    kind: str
    clip: float
    lines: tuple[tuple[float, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def derived_by(self) -> ModelMatrix:
        return self.design

    @property
    def width(self) -> int:
        return len(self.lines)

    @property
    def l1(self) -> int:
        return STEPS * self.width

    @property
    def l2_squared(self) -> int:
        return STEPS**2 * self.width

    @property
    def digest(self) -> str:
        # the lines are left out: the bound holds for any, and the plan does not know them yet
        return digest(["line losses", self.design.to_dict(), self.kind, pack(self.clip), self.width])

    def __call__(self, codes: Array) -> Array:
        rows, keep = self.design.codes(codes)
        whole = (*self.design.terms, self.design.response)
        values = [
            float(term.low) + row * ((float(term.high) - float(term.low)) / (term.steps - 1))
            for term, row in zip(whole, rows, strict=True)
        ]
        out = np.empty((self.width, codes.shape[1]))
        with np.errstate(all="ignore"):
            for own, (intercept, *slopes) in zip(out, self.lines, strict=True):
                own[:] = intercept
                for slope, value in zip(slopes, values[:-1], strict=True):
                    own += slope * value
                own[:] = self._steps(own, values[-1])
            return only(out, keep)

    def _steps(self, predicted: Array, y: Array) -> Array:
        if self.kind == "log_loss":
            odds = np.where(y >= 0.5, predicted, -predicted) * _ODDS
            place = np.rint(np.clip(np.nan_to_num(odds, nan=-np.inf), -_FAR * _ODDS, _FAR * _ODDS)).astype(np.int64)
            return np.asarray(_log_losses(self.clip)[place + _FAR * _ODDS])
        gap = np.abs(y - predicted)
        if self.kind == "squared_error":
            gap *= gap
        return np.asarray(np.rint(np.fmin(gap / self.clip, 1.0) * STEPS))


@lru_cache(maxsize=8)
def _log_losses(clip: float) -> Array:
    """log(1 + e^-odds) over the clip, at most 1, in integer steps, by odds from -32 to 32."""
    odds = np.arange(-_FAR * _ODDS, _FAR * _ODDS + 1) / _ODDS
    return np.asarray(np.rint(np.minimum(np.logaddexp(0.0, -odds) / clip, 1.0) * STEPS))


def losses_of(part: Part, results: Sequence[Any], kind: str | RecordLoss, clip: float) -> list[int]:
    """The sums of clipped losses of the runs' results over a part, in steps: one pass for all lines of one design."""
    if not isinstance(kind, str):
        loss = kind
        codes = CodedRecords(part.schema, tuple(loss.columns))
        rows = part.aggregate(Collected(codes))[0]
        return [sum(_one_by_one(loss, result, part.schema, codes, rows)) for result in results]
    found: list[int] = [0] * len(results)
    groups: dict[str, list[int]] = {}
    for i, result in enumerate(results):
        groups.setdefault(digest(result.design.to_dict()), []).append(i)
    for members in groups.values():
        design: ModelMatrix = results[members[0]].design
        lines = tuple(_line(design, results[i]) for i in members)
        (total,) = part.aggregate(Total(LineLoss(design, kind, clip, lines), nonnegative=True))
        for i, value in zip(members, total, strict=True):
            found[i] = int(value)
    return found


def _line(design: ModelMatrix, result: Any) -> tuple[float, ...]:
    """(intercept, slopes) of a result; terms that it left out have slope 0."""
    own = dict(zip(result.names, map(float, result.estimates), strict=True))
    return (own.get("Intercept", 0.0), *(own.get(term.name, 0.0) for term in design.terms))


def _one_by_one(loss: RecordLoss, result: Any, schema: Schema, codes: CodedRecords, rows: Array) -> list[int]:
    readers = [_reader(schema, name) for name in codes.columns]
    steps = []
    for column in rows.T:
        record = {name: read(code) for name, read, code in zip(codes.columns, readers, column, strict=True)}
        value = 0.0
        if (column >= 0).all():
            try:
                value = min(max(float(loss(result, record)) / loss.clip, 0.0), 1.0)
            except Exception:  # data never raise
                value = 1.0
            value = 1.0 if value != value else value
        steps.append(round(value * STEPS))
    return steps


def _reader(schema: Schema, name: str) -> Callable[[float], NDArray[Any]]:
    column = schema[name]
    if isinstance(column, Categorical):
        return lambda code: np.array([column.levels[int(code)]], dtype=object)
    return lambda code: np.asarray(column.decode(np.array([code])))


def score_noise(mu: float) -> Fraction:
    """The variance of a score's noise, in steps^2: one record moves it by 2^20 steps."""
    return round_up(Fraction(STEPS) ** 2 / Fraction(mu) ** 2)


SELECTED = Flag(
    "post_selection",
    "chosen among several candidates by a private score; intervals would ignore the choice",
)


def packed(run: Release) -> dict[str, Any]:
    """A winner's numbers as public arrays: its statistics, the steps of those that no spend says, its own public numbers."""
    found: dict[str, Any] = {}
    spends = {leaf.name for leaf in leaves(run.plan.event) if isinstance(leaf, BudgetItem)}
    for name, noisy in run.statistics.items():
        found[f"statistic {name}"] = noisy.values
        if name not in spends:
            found[f"step {name}"] = np.array([noisy.step.numerator, noisy.step.denominator], dtype=object)
    return {**found, **{f"public {name}": np.asarray(values) for name, values in run.public.items()}}


def unpacked(release: Release, inner: Plan) -> Release:
    """The winner's release from the public arrays, with the laws that its plan says."""
    spends = {leaf.name: leaf for leaf in leaves(inner.event) if isinstance(leaf, BudgetItem)}
    statistics: dict[str, Noisy] = {}
    public: dict[str, Any] = {}
    for name, values in release.public.items():
        kind, _, own = name.partition(" ")
        if kind == "public":
            public[own] = values
        elif kind == "statistic" and own in spends:
            spend = spends[own]
            statistics[own] = Noisy(values, spend.step, spend.law, spend.scale, spend.norm)
        elif kind == "statistic":
            step = Fraction(*(int(v) for v in release.public[f"step {own}"]))
            statistics[own] = Noisy(values, step, "opaque", Fraction(0), "none")
    return Release(inner, "released", statistics, inner.guarantees, public, simulated=release.simulated)


#: Fields of tables in which intervals live, and what they become.
_BLANK: dict[str, Any] = {
    "joint": None,
    "loose": None,
    "tables": {},
    "rsquared_interval": (nan, nan),
    "df": nan,
}


def _bare(fact: tuple[str, str]) -> tuple[str, str]:
    """A line of the head without the interval in it."""
    label, value = fact
    return label, value.split(" [")[0].split(" ± ")[0]


def stripped(found: Estimates, release: Release, method: Any, facts: tuple[tuple[str, str], ...]) -> Estimates:
    """A winner's table without what an interval could be computed from."""
    p = len(found.names)
    known = {field.name for field in fields(found)}
    return replace(
        found,
        method=f"{method.name} {method.version}",
        covariance=np.full((p, p), nan),
        noise_variance=np.full(p, nan),
        flags=tuple(dict.fromkeys((*found.flags, "no_interval", SELECTED))),
        requested=release.plan.requested,
        guarantee=release.charged,
        intervals_for=release.plan.intervals_for,
        release_sha256=release.sha256,
        facts=(*facts, *map(_bare, found.facts)),
        **{name: value for name, value in _BLANK.items() if name in known},
    )
