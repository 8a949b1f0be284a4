"""Maps of the least-squares line: sensitivities by search on integer rows at hostile frames, both relations; the same bits in any batch."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.core import Gram, Total
from confide.methods.regression.sums.scores import (
    SCORE_CELLS,
    Influences,
    LimitedFeatures,
    LimitedScores,
    SizeIndices,
    SquareOf,
)
from confide.methods.regression.sums.whitened_rows import Coordinates, Frame
from confide.schema import ModelMatrix
from confide.sums.cells.cell_sums import Histogram
from confide.sums.coding import BOUND, Box

SCORE_SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-5, 5),
        "b": cf.Numeric(0, 1, steps=11),
        "k": cf.Integer(0, 1),
        "g": cf.Categorical(["p", "q", "r"], on_missing="drop"),
        "y": cf.Numeric(-10, 10),
    }
)
SCORE_DESIGN = ModelMatrix.of("y ~ a + b + k + g + a:k + log1p(b)", SCORE_SCHEMA)
P = len(SCORE_DESIGN.terms) + 1


def score_codes(m: int, generator: np.random.Generator) -> Any:
    rows = [
        generator.choice([0, column.steps - 1, generator.integers(column.steps)], m)
        for column in (SCORE_SCHEMA[name] for name in SCORE_DESIGN.columns)
    ]
    return np.array(rows, dtype=np.float64)


def hostile(generator: np.random.Generator) -> Frame:
    """Anything that rounds may hand on, and worse: scales over twelve decades, a line far away."""
    transform = generator.normal(size=(P, P)) * 10.0 ** generator.uniform(-6, 6, P)
    box = Box(tuple(generator.normal(0, 3, P - 1)), tuple(10.0 ** generator.uniform(-4, 1, P - 1)))
    theta = generator.normal(size=P) * 10.0 ** generator.uniform(-3, 6)
    return Frame.of(box, transform, theta, 1.0)


def maps_of(frame: Frame, generator: np.random.Generator) -> dict[str, Any]:
    limit = 10.0 ** generator.uniform(-6, 6)
    edges = tuple(limit * 2.0**k for k in range(SCORE_CELLS - 1))
    return {
        "gram": Gram(LimitedFeatures(SCORE_DESIGN).at(frame, limit)),
        "cross": Total(LimitedScores(SCORE_DESIGN).at(frame, limit)),
        "meat": Gram(LimitedScores(SCORE_DESIGN).at(frame, limit)),
        "square": Total(SquareOf(SCORE_DESIGN).at(frame, limit), nonnegative=True),
        "influence": Total(
            Influences(SCORE_DESIGN).at(frame, generator.normal(size=P), generator.uniform(0.01, 0.99), limit),
            nonnegative=True,
        ),
        "tail": Histogram(SizeIndices(SCORE_DESIGN, scores=True).at(frame, edges)),
        "leverage": Histogram(SizeIndices(SCORE_DESIGN, scores=False).at(frame, edges)),
    }


#: Squared sensitivities in units of one record's own bound, by relation; the second as derived in the maps' docstring.
FACTORS = {"gram": 2, "cross": 4, "meat": 2, "square": 1, "influence": 1, "tail": 2, "leverage": 2}
UNITS = {
    "gram": BOUND**2,
    "cross": BOUND,
    "meat": BOUND**2,
    "square": BOUND**2,
    "influence": BOUND**2,
    "tail": 1,
    "leverage": 1,
}


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_record_moves_a_sum_of_scores_beyond_its_sensitivity_in_any_frame(relation: str) -> None:
    generator = np.random.default_rng(7)
    worst = dict.fromkeys(FACTORS, 0.0)
    for _ in range(40):
        frame, codes = hostile(generator), score_codes(200, generator)
        # scores turn their sign with the response alone: mirrored records are the worst pair of b
        codes[-1, 100:] = SCORE_SCHEMA["y"].steps - 1 - codes[-1, :100]
        codes[:-1, 100:] = codes[:-1, :100]
        for name, statistic in maps_of(frame, generator).items():
            bound = statistic.sensitivity_squared(relation)
            assert bound == UNITS[name] * (1 if relation == "add-remove" else FACTORS[name])
            given = statistic.map(codes)
            assert (given == np.rint(given)).all(), name  # steps of the lattice that noise lies on
            rows = given.astype(np.int64).astype(object)
            none = np.zeros(statistic.map.width, dtype=object)
            pairs = [none] if relation == "add-remove" else [none, *(rows[:, i] for i in range(0, 200, 20))]
            moved = max(int(statistic.moved_squared(own, rows).max()) for own in pairs)
            assert moved <= bound
            worst[name] = max(worst[name], moved / float(bound))
    for name, found in worst.items():
        assert found > (0.999 if relation == "add-remove" else 0.5), name


def test_opposite_scores_attain_twice_the_bound_and_not_the_root_of_two() -> None:
    """Two records alike but for the end of the response, both beyond the limit, have scores R and -R."""
    frame = Frame.start(Box.of(SCORE_DESIGN))
    statistic = Total(LimitedScores(SCORE_DESIGN).at(frame, 1e-3))
    codes = score_codes(2, np.random.default_rng(1))
    codes[:, 1] = codes[:, 0]
    codes[-1] = [0, SCORE_SCHEMA["y"].steps - 1]
    rows = statistic.map(codes).astype(np.int64).astype(object)
    moved = float(statistic.moved_squared(rows[:, 0], rows[:, 1:])[0])
    assert sqrt(moved / BOUND) == pytest.approx(2.0, rel=1e-5)
    assert moved > 2.01 * BOUND  # what a factor of sqrt(2) would allow
    assert moved <= statistic.sensitivity_squared("substitute")


@pytest.mark.parametrize("batch", [1, 7, 8_191])
def test_the_same_bits_in_any_batch(batch: int) -> None:
    generator = np.random.default_rng(3)
    rows = 20 if batch == 1 else 9_000
    some = min(rows, 300 * batch)  # all rows at once, of which so many again in batches
    for frame in (Frame.start(Box.of(SCORE_DESIGN)), hostile(generator)):
        codes = score_codes(rows, generator)
        codes[0, ::5] = -1  # dropped
        wide = np.empty((len(codes), 2 * rows))
        wide[:, ::2] = codes
        for name, statistic in maps_of(frame, generator).items():
            whole = statistic.map(codes)
            assert np.array_equal(whole, np.rint(whole)), name
            parts = [statistic.map(codes[:, i : min(i + batch, some)]) for i in range(0, some, batch)]
            assert np.array_equal(np.concatenate(parts, axis=1), whole[:, :some]), name
            assert np.array_equal(statistic.map(wide[:, ::2]), whole), name


def test_dropped_records_are_nothing() -> None:
    generator = np.random.default_rng(4)
    codes = score_codes(50, generator)
    codes[SCORE_DESIGN.columns.index("g")] = -1
    for statistic in maps_of(hostile(generator), generator).values():
        assert not statistic.map(codes).any()
        state = statistic.update(statistic.zero(), codes)
        assert not np.asarray(statistic.value(state)).any()


def test_coordinates_are_those_of_the_frame() -> None:
    """v = M z and r = t - z'theta to 2^-24 of their ranges, and exact sums below 2^53."""
    generator = np.random.default_rng(5)
    transform = generator.normal(size=(P, P)) * 10.0 ** generator.uniform(-3, 3, P)
    frame = Frame.of(Box.of(SCORE_DESIGN), transform, generator.normal(size=P), 1.0)
    codes, _ = SCORE_DESIGN.codes(score_codes(500, generator))
    made = Coordinates.of(SCORE_DESIGN, frame)
    largest = np.array([term.steps - 1 for term in (*SCORE_DESIGN.terms, SCORE_DESIGN.response)])
    assert (np.abs(made.matrix) @ largest < 2.0**53).all()
    assert np.array_equal(made.matrix, np.rint(made.matrix))
    x = 2 * codes / largest[:, None] - 1
    z = np.vstack([np.ones(500), x[:-1]])
    expected = np.vstack([transform.T @ z, x[-1] - frame.line @ z])
    size = np.abs(expected).max(axis=1)
    assert (np.abs(made(codes) - expected).max(axis=1) <= 2.0**-24 * size).all()


def test_values_inside_the_limits_are_handed_on_as_they_are() -> None:
    generator = np.random.default_rng(6)
    frame = Frame.start(Box.of(SCORE_DESIGN))
    codes = score_codes(300, generator)
    terms, _ = SCORE_DESIGN.codes(codes)
    rows = Coordinates.of(SCORE_DESIGN, frame)(terms)
    features = LimitedFeatures(SCORE_DESIGN).at(frame, 2.0 * P)
    assert np.abs(features(codes) / features.steps - rows[:-1]).max() <= 0.51 / features.steps
    scores = LimitedScores(SCORE_DESIGN).at(frame, 2.0 * P)
    assert np.abs(scores(codes) / scores.steps - rows[:-1] * rows[-1]).max() <= 0.51 / scores.steps
    limited = scores.at(frame, 0.5)
    lengths = np.linalg.norm(limited(codes) / limited.steps, axis=0)
    beyond = np.linalg.norm(rows[:-1] * rows[-1], axis=0) > 0.5
    assert beyond.any() and lengths[beyond] == pytest.approx(0.5, rel=1e-4)
