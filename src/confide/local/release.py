"""The release of a table of protected rows: noise on every row, once, from secure bits, charged before it is drawn.

A stream of records that appear repeatedly: each has one output for each version, stored with the ledger that was charged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import starmap
from math import sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confide._arrays import Array
from confide._version import __version__
from confide.errors import PlanError, PrivacyError, SourceError
from confide.guarantees import Guarantee, TradeOff
from confide.ledger.names import same_name
from confide.local.noise_levels import KEY, Protection, describe_columns, noised_columns, order_of, rest_of
from confide.noise import SecureNoise
from confide.schema import Categorical, Schema, Unit

if TYPE_CHECKING:
    from confide.ledger import Ledger
    from confide.ledger.outputs import Outputs
    from confide.local.precision import Outlook


#: What the ledger calls a table, whose noise is drawn once, and a stream, which draws for every new id: one cannot pay for the other.
METHOD, STREAM = "local 1", "local stream 1"
ROWS = 65_536


class Rows(Protocol):
    """What gives the records: `confide.read(data, schema)`."""

    @property
    def schema(self) -> Schema: ...
    @property
    def dataset(self) -> str | None: ...
    def check(self, columns: Sequence[str]) -> None: ...
    def rowwise(
        self, names: Sequence[str], rows: int, ids: str | None = None
    ) -> Iterator[tuple[list[NDArray[np.float64]], Any]]: ...


@dataclass(frozen=True)
class Planned:
    """What a table of protected rows will be, from public facts: its protection, the level that is charged, the statement.

    Guarantee: let x be the integer codes of a row's protected numbers, each between 0 and steps - 1. The row published is x + round(S),
    with S symmetric Laplace of standard deviation lam_j in coordinate j (with probability zeta, x). Levels are told by randomized
    response (`ProtectedColumn`). All are drawn independently. Replacing the values of a row at its place, of one column or of all,
    moves x by at most steps_j - 1 in the columns concerned. So the trade-off function of `Protection.curves` holds for the relation
    "substitute", in the local model: each row is noised individually, with a separate draw. Source: Lu, Chen, Qiu 2026, Theorem 3.1,
    with the exact functions of `confide.guarantees.symmetric_laplace`.
    """

    protection: Protection
    level: str
    statement: TradeOff
    outlook: Outlook | None = field(default=None, compare=False)

    @property
    def sha256(self) -> str:
        """The digest that the ledger's entry of a table names: of the protection and the level."""
        return self.named(METHOD)

    def named(self, method: str) -> str:
        """The digest of the protection and the level, as what one of `METHOD` and `STREAM` publishes."""
        return hashlib.sha256(json.dumps([method, self.level, self.protection.to_json()]).encode()).hexdigest()

    def lines(self) -> tuple[str, ...]:
        """What a steward should know before the charge."""
        told = self.protection
        bare = f"without any protection: {', '.join(told.public)}" if told.public else "no column is published as it is"
        said = [
            f"{name}: told with probability {float(one.keep):.3g}, else one of its {len(one.levels)} levels at random; "
            f"epsilon {one.epsilon:.4g}"
            for name, one in told.levels.items()
        ]
        said += [
            f"{name}: noise SD {one.sd:.4g}, {one.sd / (one.high - one.low):.3g} of its width"
            for name, one in told.columns.items()
        ]
        for level, curve in told.curves.items():
            said.append(f"one {level} replaced: {curve}; detection at 5% false alarms {1 - float(curve.f(0.05)):.0%}")
        return (*said, *self._floor(), bare, *(() if self.outlook is None else self.outlook.lines()))

    def _floor(self) -> tuple[str, ...]:
        """What a trivial release would do: each row as it is with probability zeta, else nothing.

        Its trade-off function is 1 - zeta - alpha, nowhere below that of zeta with noise on the rest. Its standard errors are
        1/sqrt(zeta) times those of all rows. The mean of a protected column has variance v + (1 - zeta) SD^2 a row here, v = width^2 /
        12 if uniform.
        """
        told = self.protection
        if not told.zeta:
            return ()
        widest = max(one.sd / (one.high - one.low) for one in told.columns.values())
        raw, own = 1 / sqrt(told.zeta), sqrt(1 + 12 * (1 - told.zeta) * widest**2)
        return (
            f"each row is published verbatim with probability {told.zeta:g}, and such rows can be recognized",
            f"a raw sample of {told.zeta:.3g} of the rows, and nothing of the others, has at least this guarantee, at {raw:.3g} times the "
            f"standard errors of all rows. The mean of a uniform column here has {own:.3g} times"
            + ("" if own < raw else ", so that the raw sample is at least as good: leave zeta out"),
        )


def planned(
    schema: Schema,
    columns: Sequence[str],
    *,
    public: Sequence[str] | None = None,
    level: str = "record",
    privacy: Guarantee | None = None,
    noise: float | None = None,
    levels: Mapping[str, float] | None = None,
    zeta: float = 0.0,
    accept_verbatim_rows: bool = False,
    stream: str | None = None,
    version: int = 1,
    simulated: bool = False,
) -> Planned:
    """A table of protected rows, planned from public facts; nothing is read and nothing is charged.

    - columns: numbers to protect; levels: columns of levels to protect, each with the epsilon of its randomized response.
    - public: columns to publish without any protection; none by default.
    - level: whether the guarantee is about one attribute of a record or about all protected ones.
    - zeta: the probability that a row goes without noise, which needs accept_verbatim_rows=True.

    Raises `PlanError`, `PrivacyError`, `NoConversion`, `SchemaError`.
    """
    _check_unit(schema, level, privacy)
    bare = tuple(public or ())
    twice = [name for name in bare if name in columns or name in (levels or {})]
    if twice:
        raise PlanError(f"{', '.join(twice)} cannot be both protected and public", "leave it out of public=")
    for name in bare:
        schema[name]
    if isinstance(zeta, bool) or not isinstance(zeta, (int, float)) or not 0 <= zeta < 1:
        raise PlanError(
            f"zeta is the probability that a row goes without noise, from 0 and below 1, got {zeta!r}", "leave it out"
        )
    if zeta and not accept_verbatim_rows:
        raise PlanError(
            f"with zeta = {zeta:g} each row is published verbatim with that probability, and such rows can be recognized",
            "leave zeta out, or write accept_verbatim_rows=True",
        )
    told_levels = describe_columns(schema, levels or {})
    rest = rest_of(privacy, told_levels, level)
    only_levels = bool(told_levels) and not columns and noise is None and zeta == 0
    carried = {} if only_levels else noised_columns(schema, columns, level=level, zeta=zeta, privacy=rest, noise=noise)
    own = stream or schema.dataset or "records"
    told = Protection(carried, bare, float(zeta), own, version, simulated, told_levels, order_of(schema, bare))
    return Planned(told, level, told.guarantee(level))


def _check_unit(schema: Schema, level: str, privacy: Guarantee | None) -> None:
    """Refuse a unit for which the statement, which is about one row at its place, would be wrong.

    A unit of several rows is protected less than a row, because each of its rows tells of it and the losses add up.
    """
    enforced, most = isinstance(schema.unit, Unit), schema.rows_per_unit
    if enforced or most != 1 or not same_name(schema.protects, "record"):
        rows = "all its rows" if enforced else f"at most {most} row{'s' if most != 1 else ''}"
        raise PrivacyError(
            f"a row is protected at its place, and the schema protects one {schema.protects} with {rows}. If a row is "
            "what is to be protected, or the table has one row for each of them, declare unit='record' in the schema, and leave "
            "rows_per_unit out"
        )
    asked = (privacy.unit, privacy.relation) if isinstance(privacy, Guarantee) else ("record", None)
    if asked[0] not in ("record", level) or asked[1] not in (None, "substitute"):
        raise PrivacyError(
            f"local protection is of one {level} under substitution, and the guarantee says unit={asked[0]!r}, "
            f"relation={asked[1]!r}",
            "leave both out",
        )


def protected_batches(
    source: Rows, made: Planned, noise: Any = None, progress: Callable[[int], None] | None = None
) -> Iterator[pa.RecordBatch]:
    """The table, batch by batch, rows in the order of the source. The caller has charged the statement.

    noise: `SecureNoise` by default. A value outside its bounds is clipped, and a missing one is the schema's public constant. No row is
    dropped, and nothing tells which rows were concerned.
    """
    sampler, told, schema = SecureNoise() if noise is None else noise, made.protection, source.schema
    for values, _ in source.rowwise((*told.protected, *told.public), ROWS):
        yield published(schema, told, noised(sampler, schema, told, values), values)
        if progress is not None:
            with suppress(Exception):  # a fault of whoever is told must not lose what was paid for
                progress(len(values[0]))


def noised(sampler: Any, schema: Schema, told: Protection, values: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Codes of the protected columns as they are told: numbers with the noise of each row, in grid steps, then positions of levels."""
    count, parts = len(values[0]), []
    if told.columns:
        codes = np.column_stack([schema[name].code(own) for name, own in zip(told.columns, values, strict=False)])
        lam, zeta = [one.lam for one in told.columns.values()], Fraction(told.zeta)
        drawn = sampler.zero_inflated_laplace(lam, zeta, count) if zeta else sampler.symmetric_laplace(lam, count)
        parts.append(codes.astype(np.int64) + drawn)
    for (name, one), own in zip(told.levels.items(), values[len(told.columns) :], strict=False):
        positions = np.where(own < 0, schema[name].missing_code, own).astype(np.int64)
        keep, anyone = sampler.bernoulli(one.keep, count), sampler.uniform_integers(len(one.levels), count)
        parts.append(np.where(keep, positions, anyone)[:, None])
    return np.asarray(np.hstack(parts))


def published(
    schema: Schema, told: Protection, steps: NDArray[np.int64], values: Sequence[NDArray[np.float64]]
) -> pa.RecordBatch:
    """The rows as they are published: noised codes in the columns' units, then the public columns as they are."""
    cells = [pa.array(one.low + steps[:, k] * one.step) for k, one in enumerate(told.columns.values())]
    cells += [
        pa.array(np.array(one.levels, dtype=object)[steps[:, k]], pa.string())
        for k, one in enumerate(told.levels.values(), start=len(told.columns))
    ]
    cells += [_bare(schema, name, own) for name, own in zip(told.public, values[len(told.protected) :], strict=True)]
    return pa.RecordBatch.from_arrays(cells, schema=arrow_schema(schema, told))


def arrow_schema(schema: Schema, told: Protection) -> pa.Schema:
    """Columns of the table of protected rows, with its statement as metadata."""
    fields = [(name, pa.float64()) for name in told.columns] + [(name, pa.string()) for name in told.levels]
    fields += [(name, pa.string() if isinstance(schema[name], Categorical) else pa.float64()) for name in told.public]
    return pa.schema(fields, metadata={KEY: told.to_json()})


def _bare(schema: Schema, name: str, values: NDArray[np.float64]) -> pa.Array:
    """A public column: its levels as text, its numbers as they are; null where it has none."""
    column = schema[name]
    if isinstance(column, Categorical):
        positions = np.where(values < 0, 0, values).astype(np.int64)
        return pa.array(np.array(column.levels, dtype=object)[positions], pa.string(), mask=values < 0)
    return pa.array(values, mask=np.isnan(values))


def charged(
    made: Planned, ledger: Ledger, about: Mapping[str, Any], charge_delta: float | None, method: str = METHOD
) -> Any:
    """Charge the statement of a planned table; returns the charge, for its receipt. about: what it is about (`engine.planning.pins`)."""
    return ledger.charge(
        (made.statement,),
        **about,
        method=method,
        plan_sha256=made.named(method),
        charge_delta=charge_delta,
    )


def receipt(ledger: Ledger, charge: Any, sha256: str) -> None:
    """Write that the charge was used for the table of this digest."""
    ledger.receipt(charge, release_sha256=sha256, version=__version__)


#: Numbers that are gathered and put in the order of their ids before they are stored. The store keeps its rows in that order: ids that
#: come in another would touch all of its pages with each transaction.
_CELLS = 2**20


@dataclass(frozen=True)
class Stream:
    """One version of a stream: what it promises, and where its outputs are stored.

    Guarantee: that of `Planned`, for the first content that came with an id; every later appearance is post-processing of its stored
    output. A version is charged once, before its first output; another version is another charge, for all that it publishes.
    """

    planned: Planned
    ledger: Ledger

    @classmethod
    def open(cls, planned: Planned, ledger: Ledger, about: Mapping[str, Any], charge_delta: float | None) -> Stream:
        """Continue a version that was charged, or charge it. about: what the charge is about (`engine.planning.pins`).

        A table of the same parameters (`protect`) pays for none, because its rows have separate noise. A charge for another dataset,
        unit or number of rows is refused here too.
        """
        ledger.check(**about)
        if not ledger.charged(planned.named(STREAM)):
            charged(planned, ledger, about, charge_delta, STREAM)
        return cls(planned, ledger)

    def batches(
        self, source: Rows, ids: str, progress: Callable[[int], None] | None = None
    ) -> tuple[pa.Schema, list[pa.RecordBatch]]:
        """The protected rows of `source`, in its order: stored outputs for ids that were seen, new ones for others."""
        told, schema = self.planned.protection, source.schema
        names = (*told.protected, *told.public)
        blocks = _gathered(source.rowwise(names, ROWS, ids), max(ROWS, _CELLS // len(names)))
        store, done = self.ledger.outputs(self.planned.named(STREAM)), []
        for some in starmap(
            partial(self._protected, schema, store, ids, progress), blocks
        ):  # one block is held at a time
            done += some
        return arrow_schema(schema, told), done

    def _protected(
        self,
        schema: Schema,
        store: Outputs,
        ids: str,
        progress: Callable[[int], None] | None,
        values: list[Array],
        named: pa.Array,
    ) -> list[pa.RecordBatch]:
        """Rows in their order, their outputs stored in the order of their ids."""
        if named.null_count:
            raise SourceError(f"column {ids!r} has rows without an id, and a record without one cannot come back")
        told = self.planned.protection
        kept = np.empty((len(named), len(told.protected)), dtype=np.int64)
        in_order = pc.sort_indices(named).to_numpy()  # stable: of rows with one id the first is drawn
        for some in _pieces(len(named)):
            at = in_order[some]
            outputs = store.keep(named.take(pa.array(at)).to_pylist(), self._draw(schema, values, at))
            kept[at] = np.frombuffer(b"".join(outputs), dtype="<i8").reshape(len(at), -1)
            if progress is not None:
                with suppress(Exception):  # a fault of whoever is told must not lose what was paid for
                    progress(len(at))
        return [published(schema, told, kept[some], [own[some] for own in values]) for some in _pieces(len(named))]

    def _draw(
        self, schema: Schema, values: Sequence[Array], at: NDArray[np.uint64]
    ) -> Callable[[Sequence[int]], list[bytes]]:
        """What draws the outputs of some of the rows `at`."""

        def draw(new: Sequence[int]) -> list[bytes]:
            steps = noised(SecureNoise(), schema, self.planned.protection, [own[at[new]] for own in values])
            raw, size = steps.astype("<i8").tobytes(), 8 * steps.shape[1]
            return [raw[start : start + size] for start in range(0, len(raw), size)]

        return draw

    def next_version(self) -> Planned:
        """The plan of the next version: every row carries new noise, and both versions together promise less."""
        told = self.planned.protection
        return replace(self.planned, protection=replace(told, version=told.version + 1))


def _gathered(blocks: Iterable[tuple[list[Array], Any]], rows: int) -> Iterator[tuple[list[Array], pa.Array]]:
    """Blocks of columns and ids put together, until there are `rows` of them."""
    some: list[tuple[list[Array], Any]] = []
    for block in blocks:
        some.append(block)
        if sum(len(ids) for _, ids in some) >= rows:
            yield _together(some)
    if some:
        yield _together(some)


def _together(some: list[tuple[list[Array], Any]]) -> tuple[list[Array], pa.Array]:
    """The blocks as one; the list is empty then."""
    columns, ids = zip(*some, strict=True)
    some.clear()
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)], pa.concat_arrays(ids)


def _pieces(count: int) -> Iterator[slice]:
    """Rows of one transaction each."""
    return (slice(start, start + ROWS) for start in range(0, count, ROWS))
