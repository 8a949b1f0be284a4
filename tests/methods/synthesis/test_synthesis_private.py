"""What the release may depend on: the contract, the bins, hostile records, planted faults."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import confide as cf
import confide.audit
from confide.methods.synthesis.bins import InBins, Places, Tree, grown, level_sizes
from confide.methods.synthesis.model import Line, Matrix, places, row_numbers, tilts
from confide.noise import SimulatedNoise
from confide.synthesis import SyntheticTable
from confide.testing import check_method
from confide.testing.test_data import ZeroNoise

SMALL = cf.Schema({"a": cf.Numeric(0, 1), "r": cf.Categorical(["N", "S", "E"]), "y": cf.Numeric(-5, 15)})
LITERAL = SyntheticTable("y ~ a + r", generator="binagg", cells=8)


@pytest.mark.long
def test_the_contract_of_the_calibrated_table() -> None:
    assert check_method(SyntheticTable("y ~ a + r", cells=8), SMALL).ok


@pytest.mark.long
def test_the_contract_of_the_literal_table() -> None:
    assert check_method(LITERAL, SMALL).ok


def test_the_audit_of_the_literal_table() -> None:
    # under substitute every pair is a pair of records; the planted faults below are under add-remove
    assert cf.audit.audit(LITERAL, SMALL, runs=0, relation="substitute", seed=1).ok


@pytest.mark.parametrize("n", [0, 1, 2, 12])
@pytest.mark.parametrize("generator", ["calibrated", "binagg"])
def test_few_records(frame, schema, n, generator) -> None:
    method = SyntheticTable("y ~ a + k + r", generator=generator)
    for seed in range(3):
        done = cf.release(method, cf.read(frame.iloc[:n], schema), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))
        made = method.build(done)
        assert list(made.frame) == ["a", "r", "k", "y"]
        assert made.summary() and made.to_json()
        if generator == "calibrated":
            assert len(made.frame) >= 8 and made.made[0]["ols_off_by"] < 1e-8


def test_the_number_of_rows_is_noisy(frame, schema) -> None:
    method = SyntheticTable("y ~ a")
    counts = [
        len(
            method.build(
                cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))
            ).frame
        )
        for seed in range(12)
    ]
    assert len(set(counts)) > 6
    # unbiased: the mean of 12 with an sd below 40 each; fails with probability 1e-6
    assert abs(np.mean(counts) - len(frame)) < 60


# bins -------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(2, 64))
def test_every_record_lies_in_exactly_one_bin(seed: int, cells: int) -> None:
    generator = np.random.default_rng(seed)
    schema = cf.Schema(
        {
            "a": cf.Numeric(0, 1, steps=int(generator.integers(2, 40))),
            "k": cf.Integer(0, int(generator.integers(1, 9))),
            "r": cf.Categorical([str(i) for i in range(int(generator.integers(2, 25)))]),
        }
    )
    columns = tuple(schema.names)
    sizes = level_sizes(Tree(schema, columns), cells)
    bins = grown(
        Tree(schema, columns),
        cells,
        ((5.0, 1.0),) * len(sizes),
        lambda level, found: generator.normal(10, 20, len(found)),
    )
    assert len(bins) <= cells
    grid = np.stack([one.ravel() for one in np.meshgrid(*(np.arange(schema[name].steps) for name in columns))]).astype(
        float
    )
    inside = ((grid.T[:, None, :] >= bins.low) & (grid.T[:, None, :] < bins.high)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert (inside.argmax(axis=1) == bins.locate(grid)).all()


def test_without_noise_the_counts_are_those_of_the_records(frame, schema) -> None:
    from confide.methods.synthesis.bins import read_bins

    method = SyntheticTable("y ~ a + k + r")
    done = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise())
    noisy = read_bins(done, method.design_of(schema))
    assert noisy.counts.sum() == pytest.approx(len(frame)) and noisy.total == pytest.approx(len(frame))
    assert len(method.build(done).frame) == len(frame)


def test_places_are_bounded_whatever_the_codes_are(schema) -> None:
    design = SyntheticTable("y ~ a + k + r").design_of(schema)
    places = Places(design, label=True)
    generator = np.random.default_rng(3)
    tree = Tree(schema, ("a", "r", "k"))
    children = tree.cut(0, 1)
    tree.cut(children[1], 0)
    bins = tree.bins([i for i in range(len(tree.low)) if tree.axis[i] < 0])
    codes = np.stack([generator.integers(-1, schema[name].steps, 5_000) for name in design.columns]).astype(float)
    rows = Places(design, bins, True)(codes)
    assert (rows == np.rint(rows)).all()
    assert (rows**2).sum(axis=0).max() <= places.l2_squared
    assert (rows[:, (codes < 0).any(axis=0)] == 0).all()
    assert np.array_equal(InBins(design, bins)(codes)[0], rows[0] > 0)


# drawing ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.floats(-10, 300))
def test_row_numbers_add_up(counts: list[float], total: float) -> None:
    numbers = row_numbers(np.array(counts), total)
    assert (numbers >= 0).all() and numbers.sum() == max(round(total), 0)


@pytest.mark.parametrize("width", [2, 3, 10, 1 << 20])
def test_tilted_places_have_their_mean(width: int) -> None:
    even = (np.arange(200_000) + 0.5) / 200_000
    for mean in (-0.97, -0.6, -0.1, -1e-4, 0.0, 0.002, 0.3, 0.8, 0.97):
        tilt = tilts(np.array([mean]), np.array([width]))
        found = places(np.full(len(even), tilt[0]), even)
        assert (found >= 0).all() and (found < 1).all() and (np.diff(found) >= 0).all()
        codes = np.floor(found * width)
        assert (codes.mean() - (width - 1) / 2) / ((width - 1) / 2) == pytest.approx(mean, abs=2e-4)


def test_ols_returns_the_line_on_a_nearly_singular_matrix() -> None:
    generator = np.random.default_rng(1)
    year = generator.integers(1_950, 2_020, 400).astype(float)
    matrix = np.column_stack([np.ones(400), year, year**2])
    line = Line(np.array([3.0, 0.5, -1e-4]), 2.0)
    whole = Matrix.of(matrix)
    y = whole.on_line(line, generator)
    # exact in the fit; the coefficients themselves as far as doubles go
    assert np.abs(matrix @ (whole.fitted(y) - line.coefficients)).max() < 1e-7
    rest = y - matrix @ line.coefficients
    assert np.sqrt(rest @ rest / 397) == pytest.approx(2.0, rel=1e-6)
