"""Blocks of records: each record in one, and one record moves one."""

from collections import Counter

import numpy as np
import pytest
from tests.pace import patient, slow

import confide as cf
from confide.sums.blocks.isolated_process import Answers, Room
from confide.sums.blocks.record_block import BlockWork, Collected, divided
from confide.sums.columns import ColumnCodes

_SCHEMA = cf.Schema(
    {"x": cf.Numeric(0, 9, steps=10, on_missing="midpoint"), "y": cf.Numeric(0, 3, steps=4, on_missing="midpoint")}
)
_RECORD = ColumnCodes(_SCHEMA, ("x", "y"))


def _rows(rng, n):
    return np.array([rng.integers(0, 10, n), rng.integers(0, 4, n)], dtype=np.float64)


def _ordered(rows):
    return Collected(_RECORD).value([rows])


def _contents(part):
    return Counter(map(tuple, part.T.tolist()))


@pytest.mark.parametrize("by", ["position", "identity"])
def test_blocks_hold_each_record_once(by):
    rng = np.random.default_rng(1)
    rows = _ordered(_rows(rng, 503))
    parts = divided(rows, 7, rng.bytes(32), by)
    assert len(parts) == 7
    assert sum(map(_contents, parts), Counter()) == _contents(rows)
    sizes = [part.shape[1] for part in parts]
    assert max(sizes) - min(sizes) <= (1 if by == "position" else 60)


def test_by_identity_one_record_more_is_one_record_more_in_one_block():
    rng = np.random.default_rng(2)
    for _ in range(300):
        rows, key = _rows(rng, int(rng.integers(0, 60))), rng.bytes(32)
        more = np.concatenate([rows, _rows(rng, 1)], axis=1)
        before, after = (
            [_contents(part) for part in divided(_ordered(one), 5, key, "identity")] for one in (rows, more)
        )
        moved = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
        assert len(moved) == 1
        assert sum((moved[0][1] - moved[0][0]).values()) == 1 and not moved[0][0] - moved[0][1]


# Two records of three columns whose mixes are equal, and two of which one is beyond 2^20.
_ALIKE = np.array([[500_000.0, 460_596.0], [500_000.0, 698_492.0], [500_000.0, 101_312.0]])
_WIDE = np.array([[900_000.0, 3_900_000.0], [7.0, 3.0]])


@pytest.mark.parametrize("pair", [_ALIKE, _WIDE], ids=["alike", "wide"])
def test_a_record_more_leaves_the_other_blocks_rows_in_their_order(pair):
    """Whatever order a sampler's draws of rows, or a classifier's steps, hang on."""
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 1 << 20, (len(pair), 300)).astype(np.float64)
    rows = np.concatenate([rows, pair[:, :1]], axis=1)
    more = np.concatenate([rows, pair[:, 1:]], axis=1)
    schema = cf.Schema({name: cf.Integer(0, 4_000_000, on_missing=0) for name in "abc"[: len(pair)]})
    record = Collected(ColumnCodes(schema, tuple(schema.names)))
    for _ in range(20):
        key = rng.bytes(32)
        before, after = (divided(record.value([one]), 7, key, "identity") for one in (rows, more))
        assert sum(b.shape != a.shape or bool((b != a).any()) for b, a in zip(before, after, strict=True)) == 1


def test_the_order_of_records_does_not_hang_on_that_of_the_data():
    rng = np.random.default_rng(6)
    few = rng.integers(0, 3, (2, 200)).astype(np.float64)
    for rows, base in ((few, _ALIKE[:2]), (few, _WIDE), (np.repeat(few, 20, axis=0), np.repeat(few, 20, axis=0))):
        whole = np.concatenate([rows, base[:, :2]], axis=1)
        held = Collected(_RECORD)
        assert (held.value([whole]) == held.value([whole[:, rng.permutation(whole.shape[1])]])).all()


def test_by_position_all_divisions_of_a_multiset_are_equally_likely():
    """Whatever the order it began with: which of four records are together in the first block is even over keys."""
    rng = np.random.default_rng(3)
    rows = np.arange(4.0)[None]
    found = Counter(frozenset(divided(rows, 2, rng.bytes(32), "position")[0][0].tolist()) for _ in range(6_000))
    assert len(found) == 6
    # chi-square with 5 degrees of freedom is above 20.5 once in 1,000 times
    assert sum((count - 1_000) ** 2 / 1_000 for count in found.values()) < 20.5


@patient
def test_blocks_of_a_source_are_read_in_the_columns_units():
    source = cf.read(_SCHEMA.sample(200, seed=1), _SCHEMA)
    answers, room = Answers((2,), 0, 100, 0), Room(0.4 * slow())
    work = BlockWork(lambda table, generator: [len(table), table[:, 0].mean()], answers, room, 4)
    found = work.run(source, _RECORD, bytes(32), "position")
    (rows,) = source.aggregate(Collected(_RECORD))
    assert found[:, 0].tolist() == [50] * 4
    assert found[:, 1].mean() == pytest.approx(_RECORD.table(rows)[:, 0].mean())


@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_block_that_fails_gives_the_fallback_whatever_the_records_are(seed):
    def work(table, generator):
        raise ValueError(table[0])

    source = cf.read(_SCHEMA.sample(50, seed=seed), _SCHEMA)
    answers = Answers((2,), 0, 100, np.array([7.0, 8.0]))
    found = BlockWork(work, answers, Room(1.0), 4).run(source, _RECORD, bytes(32), "identity")
    assert found.tolist() == [[7.0, 8.0]] * 4
