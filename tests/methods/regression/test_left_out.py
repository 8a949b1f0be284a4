"""Levels with too few records: left out of the last sums, exactly least squares of the other records, named with what would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.core import ResultOptions
from confide.methods.regression.evidence.sparse_levels import CellCounts, SparseLevels
from confide.methods.regression.least_squares.reading import LeastSquaresReading
from confide.methods.regression.least_squares.sums import Layout
from confide.methods.regression.sums.scores import LimitedFeatures, LimitedScores, SizeIndices, SquareOf
from confide.methods.regression.sums.whitened_rows import Frame, PartialFrame
from confide.noise import SimulatedNoise
from confide.regression import LeastSquares
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-5, 5),
        "g": cf.Categorical(["p", "q", "r", "s"]),
        "k": cf.Integer(0, 1),
        "y": cf.Numeric(-10, 10),
    }
)
FORMULA = "y ~ a + g + k"


def records(n: int, rare: str, some: int, seed: int = 1) -> pd.DataFrame:
    """Records of which `some` have the level, or the value 1 of k; that level lies far off, at another slope."""
    g = np.random.default_rng(seed)
    levels = [level for level in "pqrs" if level != rare]
    frame = pd.DataFrame({"a": g.uniform(-4, 4, n), "g": g.choice(levels, n), "k": g.integers(0, 2, n)})
    if rare == "k":
        frame["k"] = np.where(np.arange(n) < some, 1, 0)
    else:
        frame.loc[: some - 1, "g"] = rare
    own = np.arange(n) < some
    mean = 1 + 0.5 * frame.a + 1.0 * (frame.g == "r") + 0.7 * frame.k + own * (4.0 - frame.a)
    return frame.assign(y=np.clip(mean + g.normal(size=n), -10, 10))


def released(frame: pd.DataFrame, mu: float, noise: Any, **settings: Any) -> Any:
    method = LeastSquares(FORMULA, bounds="declared", **settings)
    return cf.release(method, cf.read(frame, SCHEMA), cf.GDP(mu), ledger=None, noise=noise)


def reading(release: Any) -> LeastSquaresReading:
    design = ModelMatrix.of(FORMULA, SCHEMA)
    return LeastSquaresReading(release, ResultOptions(), design, list(range(len(design.terms))))


def least_squares(frame: pd.DataFrame) -> pd.Series:
    """By name; of a level without records whatever is shortest."""
    design = ModelMatrix.of(FORMULA, SCHEMA)
    x = np.asarray(design.matrix(frame), dtype=float)
    return pd.Series(np.linalg.lstsq(x, frame.y.to_numpy(), rcond=None)[0], design.names)


ANSWERED = {
    "s": ["Intercept", "a", "g[T.q]", "g[T.r]", "k"],
    "p": ["a", "k"],
    "k": ["Intercept", "a", "g[T.q]", "g[T.r]", "g[T.s]"],
}


@pytest.mark.parametrize("rare", ["s", "p", "k"])
@pytest.mark.parametrize(("n", "mu"), [(2_000, 1.0), (1_200, 0.1)])
def test_without_noise_the_others_are_least_squares_of_the_other_records(rare: str, n: int, mu: float) -> None:
    frame = records(n, rare, 8)
    read = reading(released(frame, mu, ZeroNoise(), limit="none"))
    assert read.left is not None and len(read.left.cells) == 1
    # long records are weighed down in the rounds
    assert 2 < read.left.counts[0] < 8.5
    told = [name for place, name in enumerate(read.design.names) if place not in read._apart]
    assert told == ANSWERED[rare]
    expected = least_squares(frame.iloc[8:])
    found = pd.Series(read.sandwich.estimates, read.design.names)[told]
    assert found.to_numpy() == pytest.approx(expected[told].to_numpy(), abs=3e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_leaving_out_moves_is_what_varies_within_the_level(seed: int) -> None:
    """The identity of the derivation, and that the allowance with the correlation's own value bounds it."""
    frame = records(400, "s", 40, seed)
    whole, others = least_squares(frame), least_squares(frame.iloc[40:])
    design = ModelMatrix.of(FORMULA, SCHEMA)
    x, y = np.asarray(design.matrix(frame), dtype=float), frame.y.to_numpy()
    told = [place for place, name in enumerate(whole.index) if name != "g[T.s]"]
    inverse = np.linalg.inv(x[40:][:, told].T @ x[40:][:, told])
    within, residuals = x[:40][:, told] - x[:40][:, told].mean(axis=0), (y - x @ whole.to_numpy())[:40]
    moved = inverse @ within.T @ residuals
    assert (whole - others).to_numpy()[told] == pytest.approx(moved, abs=1e-9)
    influence = within @ inverse
    bound = 40 * np.sqrt((influence**2).mean(axis=0) * (residuals**2).mean())
    assert (np.abs(moved) <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("rare", ["s", "p", "k"])
def test_records_of_a_level_left_out_count_nothing_and_no_other_changes(rare: str) -> None:
    design = ModelMatrix.of(FORMULA, SCHEMA)
    layout, p = Layout.of(design), len(design.terms) + 1
    g = np.random.default_rng(3)
    frame = Frame.of(Box.of(design), g.normal(size=(p, p)), 0.1 * g.normal(size=p), 1.0)
    cell = {"s": (0, 3), "p": (0, 0), "k": (1, 1)}[rare]
    partial = PartialFrame(frame.box, frame.transform, frame.theta, 1.0, (layout.indicators(cell),))
    codes = np.stack(
        [g.integers(0, 2**20, 300), g.integers(0, 4, 300), g.integers(0, 2, 300), g.integers(0, 2**20, 300)]
    )
    codes = codes.astype(np.float64)
    own = {"s": codes[1] == 3, "p": codes[1] == 0, "k": codes[2] == 1}[rare]
    for plain in (LimitedFeatures(design), LimitedScores(design), SquareOf(design)):
        whole, part = plain.at(frame, 2.0)(codes), plain.at(partial, 2.0)(codes)
        assert (part[:, own] == 0).all() and (whole[:, own] != 0).any()
        assert (part[:, ~own] == whole[:, ~own]).all()
        rows = np.hstack([plain.at(partial, 2.0)(codes[:, [i]]) for i in range(300)])
        assert (rows == part).all()
    sizes = SizeIndices(design, scores=False).at(partial, (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0))
    assert (sizes(codes)[0, own] == 0).all() and (sizes(codes)[0, ~own] > 0).all()


# what is left out ---------------------------------------------------------------------------------------------------------


def counted(counts: list[float], sd: float = 4.0) -> CellCounts:
    """Of g and k."""
    return CellCounts(np.array(counts), np.full(len(counts), sd**2), float(sum(counts[:4])))


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ([900.0, 700.0, 300.0, 100.0, 1_200.0, 800.0], []),
        ([900.0, 700.0, 390.0, 10.0, 1_200.0, 800.0], [(0, 3)]),
        ([-3.0, 700.0, 1_290.0, 10.0, 1_200.0, 800.0], [(0, 0), (0, 3)]),
        ([900.0, 700.0, 300.0, 100.0, 1_985.0, 15.0], [(1, 1)]),
        # few records, but a tenth of them: they are no few that the rest could be told without
        ([20.0, 20.0, 15.0, 15.0, 40.0, 30.0], []),
    ],
)
def test_only_levels_with_few_records_are_left_out(counts: list[float], left: list[tuple[int, int]]) -> None:
    found = SparseLevels.of(Layout.of(ModelMatrix.of(FORMULA, SCHEMA)), counted(counts), 0.3)
    assert sorted(found.cells if found else []) == left
    if found is not None:
        assert (found.enough > found.counts).all()
        assert SparseLevels.from_rows(found.rows).rows == pytest.approx(found.rows)


def test_a_factor_that_stands_in_products_keeps_its_levels() -> None:
    layout = Layout.of(ModelMatrix.of("y ~ a + g + a:g", SCHEMA))
    assert SparseLevels.of(layout, counted([900.0, 700.0, 390.0, 10.0]), 0.3) is None


# the table ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rare", "some", "name"), [("s", 0, "g[s]"), ("p", 5, "g[p]"), ("k", 9, "k = 1")])
def test_the_table_answers_the_others_and_names_the_level(rare: str, some: int, name: str) -> None:
    for seed in range(4):
        release = released(records(2_000, rare, some, seed), 1.0, SimulatedNoise(seed))
        result = cf.infer(cf.Release.from_json(release.to_json()))
        assert result.status == "partial"
        limits = result.conf_int()
        assert list(limits.index[limits[0].notna()]) == ANSWERED[rare]
        assert result.reason.startswith(f"too few records to estimate: {name} (about ")
        assert "the other coefficients are estimated without them" in result.reason
        assert ("compares with a level of this kind" in result.reason) == (rare == "p")
        assert "of the excluded levels" in result.intervals_for and "levels excluded" in dict(result.facts)["R-squared"]
        tests = result.wald_test_terms()
        assert np.isfinite(tests.loc["a", "pvalue"])


def test_a_smaller_model_of_such_a_release_has_points() -> None:
    release = released(records(2_000, "s", 4), 1.0, SimulatedNoise(1))
    result = cf.infer(release, subset=("a", "k"))
    assert result.status == "imprecise" and np.isfinite(result.params).all()
    assert result.params["a"] == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_no_level_is_cut_whole_by_the_cap_on_leverage(mu: float) -> None:
    """Records with k = 1 are longer than typical ones: a cap below would have made their coefficient several times too large."""
    schema = cf.Schema({**{n: SCHEMA[n] for n in ("a", "y")}, "sex": cf.Integer(0, 1), "k": cf.Integer(0, 1)})
    frame = records(6_000, "k", 120).drop(columns="g").assign(sex=np.arange(6_000) % 2)
    method = LeastSquares("y ~ a + sex + k")
    for seed in range(3):
        release = cf.release(method, cf.read(frame, schema), cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))
        metric, kept = np.asarray(release.public["metric"]), len(release.public["weights"])
        middle, half = Box.of(method.about(release.plan.declared).design).arrays
        z = np.column_stack([np.ones(120), (frame[["a", "sex", "k"]].to_numpy()[:120] - middle) / half])
        lengths = ((z @ metric[:kept].T) ** 2).sum(axis=1)
        cut = lengths > float(release.public["leverage_cap"][0]) * 1.2
        assert "left_out" in release.public or cut.mean() < 0.1
