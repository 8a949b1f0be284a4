"""Coordinates of records: equal to Python's integers and doubles record by record, whatever the batch, alone and together."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, sqrt
from typing import Any

import numpy as np
import pytest
from tests.few import few

import confide as cf
from confide.core import Gram, RecordMap, Total
from confide.methods.regression.sums.linear_rows import BlockGram
from confide.methods.regression.sums.scores import Influences, LimitedFeatures, LimitedScores, SizeIndices, SquareOf
from confide.methods.regression.sums.whitened_rows import Coordinates, Frame, PartialFrame, WhitenedRows
from confide.schema import ModelMatrix
from confide.sources.aggregation import _alike
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import BOUND, Box, steps
from confide_lab.methods.huber.residual_rows import FarResiduals, ScoreRows

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(0, 1),
        "b": cf.Numeric(-5, 20, steps=2**20),
        "k": cf.Integer(0, 3),
        "g": cf.Categorical(["u", "v", "w"]),
        "y": cf.Numeric(-1, 1),
    }
)
FORMULAS = ("y ~ a + b", "y ~ a + b + k + g", "y ~ a + log1p(a) + a:b + g")


def hard_codes(design: ModelMatrix, seed: int, records: int = 61) -> np.ndarray:
    """Ends of the grids, neighbours of the ends, middles, and missing cells."""
    g = np.random.default_rng(seed)
    rows = []
    for name in design.columns:
        top = SCHEMA[name].steps - 1
        some = np.array([0, 1, top - 1, top, top // 2, top // 2 + 1, *g.integers(0, top + 1, 4)])
        rows.append(np.clip(g.choice(some, records), 0, top))
    codes = np.array(rows, dtype=np.float64)
    codes[g.random(codes.shape) < 0.04] = -1
    return codes


def hard_frame(design: ModelMatrix, seed: int, decades: float) -> Frame:
    g = np.random.default_rng(seed)
    p = len(design.terms) + 1
    own = Box.of(design)
    half = tuple(h * 10.0 ** g.uniform(-1, 0.5) for h in own.half)
    sizes = 10.0 ** g.uniform(-decades, decades, (p, 1))
    return Frame.of(Box(own.middle, half), g.normal(size=(p, p)) * sizes, g.normal(size=p), 0.3)


def exactly(coordinates: Coordinates, terms: np.ndarray) -> list[list[float]]:
    """(v, r) of each record: sums in Python integers, scaled and shifted once."""
    matrix = [[int(entry) for entry in row] for row in coordinates.matrix]
    found = []
    for record in terms.T:
        codes = [int(code) for code in record]
        sums = [sum(m * c for m, c in zip(row, codes, strict=True)) for row in matrix]
        assert max(map(abs, sums)) < 2**53
        ends = zip(sums, coordinates.scale, coordinates.shift, strict=True)
        found.append([float(total) * float(scale) + float(shift) for total, scale, shift in ends])
    return found


def whole(row: list[float]) -> list[int]:
    """Rounded, and cut until the squares add up to at most 2^40."""
    most = 2.0**20
    if any(map(isnan, row)):
        row = [0.0 if isnan(x) else x for x in row]
    integers = [round(min(max(x, -most), most)) if abs(x) >= 2.0**52 else round(x) for x in row]
    if sum(m * m for m in integers) > BOUND:
        cut = [float(min(max(m, -(1 << 20)), 1 << 20)) for m in integers]
        while sum(int(m) ** 2 for m in cut) > BOUND:
            cut = [float(int(m * (1 - 2.0**-10))) for m in cut]
        integers = [int(m) for m in cut]
    return integers


def squared(v: list[float]) -> float:
    total = v[0] * v[0]
    for x in v[1:]:
        total += x * x
    return total


def whitened(rows: WhitenedRows, located: list[float], counts: bool) -> list[int]:
    """One record of `WhitenedRows`, number by number."""
    *u, r = located
    root = sqrt(rows.cap) / max(sqrt(squared(u)), sqrt(rows.cap))
    root *= counts
    r = min(max(r / rows.rho, -1.0), 1.0) * root * float(rows.response_steps)
    root *= float(rows.steps)
    return [*whole([x * root for x in u]), *whole([r])]


def scores(rows: ScoreRows, located: list[float], counts: bool) -> list[int]:
    *u, r = located
    r = min(max(r / rows.rho / rows.reach, -1.0), 1.0)
    r *= rows.cap / max(squared(u), rows.cap)
    r *= float(rows.steps)
    r *= counts
    return whole([x * r for x in u])


def limited(rows: LimitedScores, located: list[float], counts: bool) -> list[int]:
    *v, r = located
    size = r / max(sqrt(squared(v)) * abs(r), rows.limit) * float(steps(1.0, rows.width)) * counts
    return whole([x * size for x in v])


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("decades", [0.0, 3.0])
def test_rows_are_those_of_exact_sums_record_by_record(formula: str, decades: float) -> None:
    design = ModelMatrix.of(formula, SCHEMA)
    codes = hard_codes(design, 1)
    terms, keep = design.codes(codes)
    counts = np.ones(codes.shape[1], dtype=bool) if keep is None else keep
    assert not counts.all()
    for seed in range(5):
        # the last one is where a release begins: each row a multiple of one code
        frame = hard_frame(design, seed, decades) if seed < 4 else Frame.start(Box.of(design))
        cap, theta = float(np.random.default_rng(seed).uniform(0.5, 6)), tuple(frame.line + 0.1)
        moments, meat = WhitenedRows(design).at(frame, cap), ScoreRows(design).at(frame, cap, theta, 0.4)
        b = LimitedScores(design).at(frame, 0.7)
        for rows, slow in ((moments, whitened), (meat, scores), (b, limited)):
            located = exactly(rows.coordinates, terms)
            assert (rows.coordinates._alone is None) == (seed < 4 or rows is meat)
            found = rows(codes)
            expected = [slow(rows, own, bool(c)) for own, c in zip(located, counts, strict=True)]  # type: ignore[operator]
            assert found.T.astype(int).tolist() == expected
            assert max(sum(m * m for m in one) for one in expected) <= rows.l2_squared


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_rounded_map_is_within_a_step_of_the_real_one(formula: str) -> None:
    """v of the rounded map against sums in doubles of the same frame: 2^-28 of the largest entry that the box allows."""
    design = ModelMatrix.of(formula, SCHEMA)
    codes = np.abs(hard_codes(design, 3, 400))
    terms, _ = design.codes(codes)
    for seed in range(4):
        frame = hard_frame(design, seed, 0.0)
        own, (middle, half) = Box.of(design), frame.box.arrays
        sizes = np.array([t.steps - 1 for t in (*design.terms, design.response)], dtype=float)
        unit = 2 * terms / sizes[:, None] - 1
        z = np.vstack(
            [
                np.ones(unit.shape[1]),
                (unit[:-1] * own.arrays[1][:, None] + (own.arrays[0] - middle)[:, None]) / half[:, None],
            ]
        )
        real = np.vstack([frame.matrix.T @ z, unit[-1] - frame.line @ z])
        largest = np.abs(np.vstack([frame.matrix.T, frame.line])) @ np.abs(z).max(axis=1)
        found = Coordinates.of(design, frame)(terms)
        assert (np.abs(found - real).max(axis=1) <= 2.0**-28 * np.maximum(largest, 1.0)).all()


@pytest.mark.parametrize("formula", few(FORMULAS, 1))
def test_no_row_depends_on_its_batch(formula: str) -> None:
    design = ModelMatrix.of(formula, SCHEMA)
    codes = hard_codes(design, 5, 9_001)
    frame = hard_frame(design, 5, 1.0)
    for rows in (
        WhitenedRows(design).at(frame, 3.0),
        ScoreRows(design).at(frame, 3.0, reach=0.5),
        FarResiduals(design).at(frame),
        LimitedFeatures(design).at(frame, 4.0),
        SquareOf(design).at(frame, 1.5),
        Influences(design).at(frame, np.linspace(-1, 2, len(frame.theta)), 0.3, 2.0),
    ):
        whole = rows(codes)
        for length in (1, 7, 8_191):
            some = range(0, codes.shape[1], length) if length > 1 else range(200)
            parts = [rows(codes[:, start : start + length]) for start in some]
            joined = np.concatenate(parts, axis=1)
            assert (joined == whole[:, : joined.shape[1]]).all()
        assert (rows(np.asfortranarray(codes)) == whole).all()


def test_statistics_that_begin_alike_give_what_each_gives_alone() -> None:
    design = ModelMatrix.of(FORMULAS[1], SCHEMA)
    codes, frame = hard_codes(design, 7, 5_000), hard_frame(design, 7, 0.0)
    other = hard_frame(design, 8, 0.0)
    asked = [
        Gram(LimitedFeatures(design).at(frame, 2.0)),
        Total(LimitedScores(design).at(frame, 0.5)),
        Total(SquareOf(design).at(frame, 1.0), nonnegative=True),
        Histogram(SizeIndices(design, scores=True).at(frame, tuple(np.geomspace(0.1, 9, 25)))),
        BlockGram(WhitenedRows(design).at(frame, 2.0), (64, 32, 16)),
        Total(Influences(design).at(frame, np.linspace(-1, 2, len(frame.theta)), 0.3, 2.0), nonnegative=True),
        Gram(LimitedScores(design).at(other, 0.5)),
    ]
    groups = _alike(asked, design.columns)
    assert [[at for at, _ in group.members] for group in groups] == [[0, 1, 2, 3, 4, 5], [6]]
    states = [statistic.zero() for statistic in asked]
    for start in range(0, 5_000, 1_700):
        for group in groups:
            group.update(states, codes[:, start : start + 1_700])
    for statistic, state in zip(asked, states, strict=True):
        alone = statistic.value(statistic.update(statistic.zero(), codes))
        assert (statistic.value(state) == alone).all()


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_is_kept_of_a_line_serves_another_line_in_the_same_coordinates_alone(
    formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confide.methods.regression.sums.whitened_rows._WIDE", 0)
    design = ModelMatrix.of(formula, SCHEMA)
    codes, frame = hard_codes(design, 9, 3_000), hard_frame(design, 9, 1.0)
    apart = PartialFrame(frame.box, frame.transform, frame.theta, 1.0, (((0,), True),))
    for own in (frame, Frame.start(Box.of(design)), apart):
        here = LimitedScores(design).at(own, 0.5).begins
        assert here is not None and here.stays
        kept = here(codes, np.full((here.rows, 3_000), np.nan))
        moved = replace(own, theta=tuple(own.line + 0.3))
        for asked, nearby in ((own, True), (moved, True), (hard_frame(design, 10, 1.0), False)):
            there = LimitedScores(design).at(asked, 0.5).begins
            assert there is not None
            found, fresh = there.after(here, kept, codes), there(codes)
            assert (found is not None) == nearby
            if found is not None:
                assert all(
                    np.array_equal(getattr(found, name), getattr(fresh, name), equal_nan=True)
                    for name in ("v", "r", "square", "length")
                )
                assert (found.keep is None) == (fresh.keep is None) and np.array_equal(found.keep, fresh.keep)
    assert LimitedScores(design).at(apart, 0.5).begins.after(here, kept, codes) is not None
    assert LimitedScores(design).at(frame, 0.5).begins.after(here, kept, codes) is None


def test_a_map_called_in_a_way_of_its_own_shares_nothing() -> None:
    class Doubled(LimitedFeatures):
        def __call__(self, codes: np.ndarray) -> np.ndarray:
            return 2 * super().__call__(codes)

    design = ModelMatrix.of(FORMULAS[0], SCHEMA)
    frame = hard_frame(design, 7, 0.0)
    plain, own = LimitedFeatures(design).at(frame, 2.0), Doubled(design).at(frame, 2.0)
    assert plain.begins is not None and own.begins is None
    asked = [Total(plain), Total(own), Total(LimitedScores(design).at(frame, 1.0))]
    assert [len(group.members) for group in _alike(asked, design.columns)] == [2, 1]


def test_a_sum_with_an_update_of_its_own_shares_nothing() -> None:
    class Halved(Total):
        def update(self, state: Any, codes: np.ndarray) -> Any:
            return super().update(state, codes[:, ::2])

    design = ModelMatrix.of(FORMULAS[0], SCHEMA)
    scores = LimitedScores(design).at(hard_frame(design, 7, 0.0), 1.0)
    assert [len(group.members) for group in _alike([Total(scores), Halved(scores)], design.columns)] == [1, 1]


def test_no_statistic_writes_on_the_codes_of_the_others() -> None:
    class Greedy(RecordMap):
        columns, width, l1, l2_squared, digest = ("x",), 1, 1, 1, "greedy"

        def __call__(self, codes: np.ndarray) -> np.ndarray:
            codes[:] = 0.0
            return codes

    state, codes = [Total(Greedy()).zero()], np.ones((1, 3))
    with pytest.raises(ValueError, match="read-only"):
        _alike([Total(Greedy())], ("x",))[0].update(state, codes)
    assert codes.all()
