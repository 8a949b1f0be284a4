"""The coded records themselves, for computations that are not a sum: likelihoods, order statistics, distances.

What comes of it is private and never drawn. The rows are in an order that depends on their content alone. So sums of doubles over them,
and everything that follows, are the same for any order, batch and thread of the source.

Disjoint blocks of records for computations that are not sums: any estimator, any classifier, each on its own block.

How a record finds its block. Under substitution by its position after a permutation, (n div k) or one more records a block. The order
that is permuted is that of the records' contents, and a permutation drawn evenly without looking at them makes all orders of a multiset
equally likely, whatever order it began with. So the orders of two neighbors can be drawn together such that they differ at one
position. What protects against one record of one block then protects against one record, by joint convexity. Under add-remove by a
keyed hash of its content: for any key, one record more in the data is one record more in exactly one block (`keyed_hashes`). A hash
would not do under substitution, where two blocks would change, nor positions under add-remove, where all would.

The permutation is sorted 128-bit words of SHAKE-256 under the key; two of n words are alike with a chance below n^2/2^129.

On records, code that raises, hangs, crashes, is late or gives what is not a number counts as the public fallback, and no one is told.
So a plan tries the work on test data, of which all can be told in full (`BlockWork.rehearse`). It does so in a separate process first,
as what hangs, crashes or takes all memory does so there. Then it does so here, so that what it imports is loaded before blocks are
forked; here its time is taken.

Code that a caller hands over, in a file: its name, and what may come of a name.

A file runs nothing. A name in it is compared with those of the classes that are handed in here, and is looked up nowhere else. An
object of one of them is made from the fields that the file holds. All other code (samplers, teachers, bounds with functions in them) is
handed over again by the caller who has it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from math import ceil
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide._arrays import Array
from confide.core import Noise, RecordMap, Source, Statistic
from confide.errors import ConfideError, PlanError
from confide.sums.blocks.isolated_process import Answers, InProcess, Room, Work, block_runner, seeded, silenced, tried

# Odd multipliers of a mix of 64 bits; they decide an order, nothing else.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ROUND = np.uint64(0xBF58476D1CE4E5B9)
# For rows of at most 2^20 in size: factors below 2^28, of which 31 sums stay below 2^53.
_SMALL = float(1 << 20)
_FACTORS = np.array([(0x9E3779B97F4A7C15 * (j + 1) >> 20) % (1 << 28) | 1 for j in range(31)], dtype=np.float64)


@dataclass(frozen=True)
class Collected(Statistic):
    """All rows of a record map, shape (width, n), float64 integers in a canonical order. Memory grows with the number of records.

    It has no sensitivity: a plan cannot spend on it.
    """

    map: RecordMap
    norm: str = field(default="none", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.map.width,)

    def sensitivity_squared(self, relation: str) -> Fraction:
        raise PlanError("records that are collected have no sensitivity; spend on a bounded function of them")

    def sensitivity_l1(self, relation: str) -> Fraction:
        return self.sensitivity_squared(relation)

    def zero(self) -> list[NDArray[np.float64]]:
        return []

    def update(self, state: list[NDArray[np.float64]], codes: Any) -> list[NDArray[np.float64]]:
        state.append(np.array(self.map(codes), dtype=np.float64))  # a copy: codes are borrowed
        return state

    def merge(self, a: list[NDArray[np.float64]], b: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        return a + b

    def value(self, state: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        if not state:
            return np.zeros((self.map.width, 0))
        rows = np.concatenate(state, axis=1)
        return np.take(rows, _order(rows), axis=1)


def _order(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions in the order of a mix of each row's numbers; rows that share a mix, in the order of the numbers.

    Which of two rows comes first depends on these two alone, so that one record more leaves all others in the order that they had. No
    block but its own is then another one to code that looks at the order of its rows.
    """
    key = _mixed(rows)
    order = np.argsort(key)
    return order if _told_apart(rows, key, order) else np.asarray(np.lexsort((*rows, key)))


def _mixed(rows: NDArray[np.float64]) -> NDArray[Any]:
    """One number for each row, the same among any others."""
    if len(rows) <= len(_FACTORS):
        if not rows.size or np.abs(rows).max() <= _SMALL:
            # whole numbers below 2^53 all the way, so that the sums are exact in any order
            return np.asarray(_FACTORS[: len(rows)] @ rows)
        # the same sums, modulo 2^64
        key = np.zeros(rows.shape[1], dtype=np.int64)
        for factor, row in zip(_FACTORS.astype(np.int64), rows.astype(np.int64), strict=False):
            key += factor * row
        return key
    mixed = np.zeros(rows.shape[1], dtype=np.uint64)
    for row in rows.astype(np.int64).view(np.uint64):
        mixed = (mixed ^ row) * _MIX
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ROUND
    return mixed


def _told_apart(rows: NDArray[np.float64], key: NDArray[Any], order: NDArray[np.int64]) -> bool:
    """Whether neighbors in the order that share a key are equal rows, whose order does not matter."""
    same = key[order[1:]] == key[order[:-1]]
    return not bool((rows[:, order[1:][same]] != rows[:, order[:-1][same]]).any())


#: Relation -> how a record finds its block.
BY = {"substitute": "position", "add-remove": "identity"}
# A key is normal integers of sd 2^40, hashed.
_KEY = (Fraction(1 << 80), 8)
_LEAST_SECONDS = 0.1  # of a block: what starting and ending its process takes (`isolated_process`)
_ASSUMED_SIZE = 200  # records of a block, where the number of records is not known


class Tabled(RecordMap, Protocol):
    """A record map whose rows can be read as a table in the columns' units, (n, columns)."""

    def table(self, rows: Array) -> Array: ...


@dataclass(frozen=True)
class BlockWork:
    """A caller's code on `blocks` disjoint blocks of records: what a plan rehearses is what a release runs.

    work: (table of a block, its generator) -> numbers; answers: what a block may say; room: what all blocks may take together.
    """

    work: Work
    answers: Answers
    room: Room
    blocks: int

    def rehearse(
        self,
        test_data: Callable[[int], Array],
        n: int | None,
        *,
        who: str = "the code on blocks",
        blocks: str = "blocks",
        given: str = "",
        must: str = "",
    ) -> str:
        """What the plan says of the time that blocks take; `PlanError` where the work ends badly on test data of a block's size.

        test_data: so many records of it -> their table (records, columns); n: of all records, where it is known. Texts: who and
        blocks, what the work and its blocks are called; given: what the table is; must: what the work has to give.

        Within `in_place` no process is started and time is not looked at.
        """
        size = _ASSUMED_SIZE if n is None else max(n // self.blocks, 1)
        room, here, apart, k = self.room, self.room.here, block_runner() is not InProcess, self.blocks
        if apart and here.each(k) < _LEAST_SECONDS:
            raise PlanError(
                f"seconds={room.seconds:g} leave each of {k} {blocks} {here.each(k):.2g} s. To start and end its process takes up to "
                f"{_LEAST_SECONDS:g} s: write seconds={ceil(2 * _LEAST_SECONDS * here.waves(k))}, fewer {blocks}, or more jobs on as many "
                f"processors (here {here.jobs})"
            )
        ends, took = self._ends(test_data(size), apart=apart)
        if ends:
            wanted = must or f"it must give finite numbers of the shape {self.answers.shape}"
            raise PlanError(
                f"{who} {ends}, on test data of {size} records{given} (public, from the schema alone; seconds={room.seconds:g}, "
                f"memory={room.memory} MB). On your records no one would be told, and the block would count as failed: {wanted}"
            )
        if apart and took > here.running(k):
            raise PlanError(
                f"{who} took {took:.2g} s on test data of one block's size, and a block has {here.running(k):.2g} s: write "
                f"seconds={int(2 * took * here.waves(k)) + 1}, or more jobs on as many processors (here {here.jobs})"
            )
        guessed = " (n= says how many a block has)" if n is None else ""
        return (
            f"takes {room.seconds:g} s in every case: {k} {blocks}, {room.jobs} side by side, {room.each(k):.3g} s each; test data of "
            f"{size} records{guessed} took {took:.2g} s"
        )

    def run(
        self, source: Source, record: Tabled, key: bytes, by: str, progress: Callable[[int, int], None] | None = None
    ) -> Array:
        """What the work says of each block, (blocks, *answers.shape); one record moves one of them.

        record: how records become tables; key: 32 bytes, drawn again for each release and kept; by: one of `BY`, that of the relation.

        progress: is told (waves done, waves). It takes `room.seconds` beyond the reading. `isolated_process` says how a block is worked
        on, and what becomes of one that fails.
        """
        with block_runner()(self.work, self.answers, self.room, progress) as workers:
            (rows,) = source.aggregate(Collected(record))
            return workers.run([record.table(own) for own in divided(rows, self.blocks, key, by)], key)

    def _ends(self, table: Array, *, apart: bool) -> tuple[str, float]:
        """How the work ends on a table, empty where it ends well, and its seconds."""

        def once() -> Array:
            return np.asarray(self.work(table.copy(), seeded(bytes(16))), dtype=np.float64)

        took = []
        with silenced():
            if apart and (ends := tried(once, self.room)):
                return ends, 0.0
            try:
                for _ in range(2 if apart else 1):
                    start = monotonic()
                    found = once()
                    took.append(monotonic() - start)
            except Exception as error:
                return f"raises {type(error).__name__}: {error}", 0.0
        if found.shape != self.answers.shape:
            return f"gives numbers of the shape {found.shape}, where {self.answers.shape} is asked for", 0.0
        return "" if np.isfinite(found).all() else "gives numbers that are not finite", min(took)


def fresh_key(noise: Noise) -> bytes:
    """A fresh key of 32 bytes, from noise that knows no records (`meter.noise`); it never leaves the release."""
    drawn = ",".join(str(int(v)) for v in noise.grid_gaussian(*_KEY))
    return hashlib.sha256(f"confide/split/{drawn}".encode()).digest()


def divided(rows: Array, k: int, key: bytes, by: str) -> list[Array]:
    """Rows (columns, n) as `Collected` gives them, in k parts.

    >>> [part.shape[1] for part in divided(np.arange(10.0)[None], 3, bytes(32), "position")]
    [4, 3, 3]
    """
    n = rows.shape[1]
    if by == "position":
        words = np.frombuffer(hashlib.shake_256(b"confide/order/" + key).digest(16 * n), dtype=np.uint64).reshape(2, n)
        return [rows[:, places] for places in np.array_split(np.lexsort(words), k)]
    # the upper half of a hash, times k, over 2^32
    place = (keyed_hashes(rows, key) >> np.uint64(32)) * np.uint64(k) >> np.uint64(32)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(1, k, dtype=np.uint64))
    return [rows[:, places] for places in np.split(order, ends)]


def keyed_hashes(rows: Array, key: bytes) -> NDArray[np.uint64]:
    """A hash of each row and of how many rows like it come before it; rows: (columns, n) in canonical order.

    The c-th copy of a record r has the hash h(r, c). For any fixed h one record more in the data is one more hash, and all others stay
    what they were: if r is there c times, only the (c + 1)-th copy is new. Without the copy's number all copies would share a hash.
    That is as private, and makes poor parts of records of few kinds. The mixing is elementwise and protects nothing.
    """
    n = rows.shape[1]
    first = np.ones(n, dtype=bool)
    first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    starts = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    copy = (np.arange(n) - starts).astype(np.uint64)
    keys = np.frombuffer(key, dtype=np.uint64)
    mixed = np.full(n, keys[0])
    for row in (*rows.astype(np.int64).view(np.uint64), copy):
        mixed = _stir(mixed ^ row) + keys[1]
    return _stir(_stir(mixed ^ keys[2]) ^ keys[3])


def _stir(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64, elementwise."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


# Packages whose files may be moved and whose classes keep their names.
_OURS = ("confide", "confide_lab")


def code_name(code: Any) -> str:
    """The name of a function or a class, or of an object's class: "module:name", of one of ours "confide:name", in whatever file it is.

    >>> code_name(len), code_name(PlanError("no"))
    ('builtins:len', 'confide:PlanError')
    """
    kind = code if hasattr(code, "__qualname__") else type(code)
    package = kind.__module__.partition(".")[0]
    return f"{package if package in _OURS else kind.__module__}:{kind.__qualname__}"


def not_in_file(what: str, name: Any, again: str) -> PlanError:
    """The error for code that no file holds, whose name alone stands in it ({"live": name}).

    what: what it is called, such as "sampler"; again: the call that hands it over again.

    >>> raise not_in_file("sampler", "os:system", "cf.intervals.block_posterior(sampler, data, ...)")
    Traceback (most recent call last):
    confide.errors.PlanError: the plan was made with the live sampler 'os:system', which no file can hold; hand it over again: ...
    """
    return PlanError(
        f"the plan was made with the live {what} {name!r}, which no file can hold", f"hand it over again: {again}"
    )


def code_from(
    settings: Mapping[str, Any],
    what: str,
    again: str,
    known: Iterable[type[Any]],
    value: Callable[[Any], Any] = lambda packed: packed,
) -> Any:
    """The object that a file's settings name: {what: "module:name", "fields": {...}}, of one of the `known` classes.

    what: what it is called, such as "bound"; again: the call that hands it over again.

    known: frozen dataclasses that this process has loaded; value: of a field, from its text form.

    `PlanError` for {"live": name}, which stands for code that no file holds, and for fields that the class itself refuses. `PlanError`
    also for any other name, for which nothing is imported, looked up or called.

    >>> code_from({"bound": "os:system", "fields": {}}, "bound", "cf.ptr.safe_release(bound, data, ...)", [])
    Traceback (most recent call last):
    confide.errors.PlanError: the plan's bound 'os:system' is not loaded here; import the module that has it and try again, or hand ...
    """
    if "live" in settings:
        raise not_in_file(what, settings["live"], again)
    name, given = settings.get(what), settings.get("fields")
    found = [cls for cls in known if code_name(cls) == name]
    if len(found) > 1:
        raise PlanError(
            f"the plan's {what} {name!r} is defined more than once here, and which one is meant cannot be told",
            f"start again, or hand it over again: {again}",
        )
    if not found:
        raise PlanError(
            f"the plan's {what} {name!r} is not loaded here",
            f"import the module that has it and try again, or hand it over again: {again}",
        )
    frozen = getattr(getattr(found[0], "__dataclass_params__", None), "frozen", False)
    own = [field for field in fields(found[0]) if field.init] if frozen else []
    needed = {field.name for field in own if field.default is MISSING and field.default_factory is MISSING}
    if not frozen or not isinstance(given, Mapping) or not needed <= set(given) <= {field.name for field in own}:
        raise PlanError(
            f"the plan's {what} {name!r} is not made from the fields in the file", f"hand it over again: {again}"
        )
    try:
        return found[0](**{key: value(packed) for key, packed in given.items()})
    except ConfideError:
        raise
    except Exception as error:  # whatever a class raises at what a file holds, which is public
        raise PlanError(
            f"the plan's {what} {name!r} cannot be made from the fields in the file ({type(error).__name__}: {error})",
            f"hand it over again: {again}",
        ) from error
