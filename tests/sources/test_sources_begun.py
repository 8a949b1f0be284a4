"""What beginnings computed is kept for a draw: the same integers with and without, out of reach of maps, within the memory of the codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

import confide as cf
from confide.aggregates import coordinates
from confide.aggregates.coordinates import Frame, Located, Turning
from confide.aggregates.rows import Box
from confide.aggregates.scores.fisher_rows import Excess, FisherRows, FisherScores, FisherSum, SumAndExcess
from confide.aggregates.scores.score_rows import LimitedFeatures, LimitedScores
from confide.noise import SimulatedNoise
from confide.protocol import Gram, Total, seal
from confide.schema import Design
from confide.sources import read
from confide.sources.kept import KeptSource

SCHEMA = cf.Schema(
    {"a": cf.Numeric(-5, 5), "b": cf.Numeric(0, 1, on_missing="drop"), "k": cf.Integer(0, 6), "y": cf.Integer(0, 1)}
)
DESIGN = Design.of("y ~ a + b + a:b", SCHEMA)
P = len(DESIGN.terms) + 1


@pytest.fixture(autouse=True)
def every_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs of a few terms keep their coordinates, too."""
    monkeypatch.setattr(coordinates, "_WIDE", 1)


def records(n: int = 1_357) -> Any:
    frame = SCHEMA.sample(n, seed=3)
    frame.loc[::11, "b"] = np.nan
    return frame


def frames(seed: int = 1) -> Iterator[Frame]:
    """One T and several lines."""
    generator = np.random.default_rng(seed)
    first = replace(Frame.of(Box.of(DESIGN), generator.normal(size=(P, P)), np.zeros(P), 1.0), stays=True)
    for _ in range(3):
        yield replace(first, theta=tuple(generator.normal(size=P)))


def asked(frame: Frame) -> tuple[list[Any], list[Any]]:
    """Several passes' statistics: alone and together."""
    sums = FisherSum(FisherRows(DESIGN).at(frame, 0.3, 4.0))
    excess = Excess(DESIGN).at(frame, 0.3, 4.0)
    limited = [Gram(LimitedFeatures(DESIGN).at(frame, 2.0)), Total(LimitedScores(DESIGN).at(frame, 1.5))]
    return [SumAndExcess(sums, excess), Gram(FisherScores(DESIGN).at(frame, 0.3, 4.0))], limited


def passes(source: Any) -> list[Any]:
    found = []
    for frame in frames():
        for statistics in asked(frame):
            found += [one.tolist() for one in source.aggregate(*statistics)]
    return found


def kept_of(source: Any, memory: int | None = None, threads: int = 1) -> Any:
    settings: dict[str, Any] = {"threads": threads} | ({} if memory is None else {"memory": memory})
    return read(source, SCHEMA, **settings).kept(DESIGN.columns)


@pytest.mark.parametrize("memory", [64, 0])
@pytest.mark.parametrize("threads", [1, 3])
def test_statistics_are_the_same_with_and_without(memory: int, threads: int, tmp_path: Any) -> None:
    path = tmp_path / "t.parquet"
    records().to_parquet(path, row_group_size=101)
    with kept_of(path, memory, threads) as kept:
        kept.aggregate(Total(LimitedScores(DESIGN)))
        assert passes(kept) == passes(read(records(), SCHEMA))
        begun = kept._blocks._begun
        assert (len(begun.blocks) > 3) == (memory > 0)
    assert not begun.blocks and kept._blocks._begun is None


def releases(method: Any, schema: cf.Schema, n: int, memory: int) -> str:
    plan = cf.plan(method, schema, cf.GDP(2.0))
    return seal(
        method, read(schema.sample(n, seed=4), schema, memory=memory, threads=1), plan, SimulatedNoise(5)
    ).sha256


@pytest.mark.parametrize("method", ["logistic", "poisson", "least_squares", "huber_line"])
def test_a_release_is_the_same_with_and_without(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns: dict[str, Any] = {"x": cf.Numeric(0, 1), "w": cf.Numeric(-1, 1)}
    methods = {
        "logistic": (cf.regression.Logistic, cf.Integer(0, 1)),
        "poisson": (cf.regression.Poisson, cf.Integer(0, 9)),
        "least_squares": (cf.regression.LeastSquares, cf.Numeric(-1, 1)),
        "huber_line": (cf.regression.HuberLine, cf.Numeric(-1, 1)),
    }
    make, outcome = methods[method]
    schema = cf.Schema(columns | {"z": outcome})
    known = []
    look_up = KeptSource.aggregate

    def aggregate(self: Any, *statistics: Any) -> Any:
        found = look_up(self, *statistics)
        known.append(self._blocks._begun is not None and len(self._blocks._begun.blocks))
        return found

    monkeypatch.setattr(KeptSource, "aggregate", aggregate)
    first = releases(make("z ~ x + w"), schema, 20_001, 64)
    assert any(known)
    monkeypatch.setattr(coordinates, "_WIDE", 1 << 30)
    known.clear()
    assert releases(make("z ~ x + w"), schema, 20_001, 64) == first and not any(known)
    monkeypatch.setattr(coordinates, "_WIDE", 1)
    assert releases(make("z ~ x + w"), schema, 20_001, 0) == first


class Spoils(LimitedScores):
    """A third party's map that writes into whatever it is handed."""

    tried: ClassVar[list[str]] = []

    def of(self, records: Located) -> Any:
        for array in (records.v, records.square):
            for spoil in (partial(array.fill, 9.0), partial(array.setflags, write=True)):
                with pytest.raises(ValueError):
                    spoil()
                self.tried.append("in vain")
        object.__setattr__(records, "v", np.zeros_like(records.v))
        return super().of(records)


def test_a_map_cannot_write_into_what_is_kept() -> None:
    frame = next(frames())
    good = Total(LimitedScores(DESIGN).at(frame, 1.5))
    with kept_of(records()) as kept:
        kept.aggregate(good)
        expected = kept.aggregate(good)[0].tolist()
        kept.aggregate(Total(Spoils(DESIGN).at(frame, 1.5)))
        assert Spoils.tried and kept.aggregate(good)[0].tolist() == expected


def test_a_part_of_another_class_is_another_one() -> None:
    """Were it taken for the same, a third party's numbers would stand for ours."""

    class Claims(Turning):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = Turning.__hash__

    ours, theirs = (cls.of(DESIGN, next(frames())) for cls in (Turning, Claims))
    with kept_of(records()) as kept:
        kept.aggregate(Total(LimitedScores(DESIGN)))
        blocks = kept._blocks
        blocks.begun(theirs, slice(0, 3))
        begun = blocks._begun
        blocks.begun(ours, slice(0, 3))
        assert blocks._begun is not begun
        begun = blocks._begun
        blocks.begun(Turning.of(DESIGN, next(frames())), slice(0, 3))
        assert blocks._begun is begun
        blocks.begun(ours, slice(0, 2))
        assert blocks._begun is not begun


def test_a_map_called_in_a_way_of_its_own_has_no_beginning() -> None:
    class Own(FisherScores):
        def parts_of(self, *what: Any) -> Any:
            raise AssertionError

    frame = next(frames())
    assert FisherScores(DESIGN).at(frame, 1.0, 1.0).begins is not None
    assert Own(DESIGN).at(frame, 1.0, 1.0).begins is None


def test_memory_is_that_of_the_codes() -> None:
    """Codes of 3 rows and 50,000 records take 1.2 MB as doubles, and beginnings of 5 rows 2: of 2 MB they get what is left."""
    frame = next(frames())
    with kept_of(records(50_000), memory=2) as kept:
        for _ in range(3):
            kept.aggregate(Total(LimitedScores(DESIGN).at(frame, 1.5)))
        blocks = kept._blocks
        size = sum(array.nbytes for one in blocks._begun.blocks.values() for array in one)
        assert 0 < len(blocks._begun.blocks) < len(blocks._blocks)
        assert size == blocks._of_begun and blocks._used <= blocks._memory
        other = replace(frame, transform=tuple(map(tuple, np.eye(P).tolist())))
        kept.aggregate(Total(LimitedScores(DESIGN).at(other, 1.5)))
        assert blocks._used <= blocks._memory and blocks._file is None
