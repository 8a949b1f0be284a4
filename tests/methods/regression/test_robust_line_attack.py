"""What an attack on the robust line found or tried: the long branch replayed, exact numbers past the meter, bookkeeping of rounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.simulated import simulated

import confide as cf
from confide import engine
from confide.audit.replay.replay import replay
from confide.core import Gram, Meter, Noisy, ResultOptions, Total, seal
from confide.methods.regression.sums.linear_rows import BlockGram, multipliers
from confide.methods.regression.sums.whitened_rows import Frame, LeverageCells, LeverageIndices, Round, WhitenedRows
from confide.noise import SimulatedNoise
from confide.schema import ModelMatrix
from confide.sums.coding import Box
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.huber.released_rounds import last_round
from confide_lab.methods.huber.residual_rows import FarResiduals, ScoreRows
from confide_lab.methods.huber.round_reading import RoundReading

SCHEMA = cf.Schema({"a": cf.Numeric(-5, 5, on_missing="drop"), "b": cf.Numeric(0, 1), "y": cf.Numeric(-10, 10)})
FORMULA = "y ~ a + b"


def robust(formula: str, **settings: Any) -> HuberLine:
    return HuberLine(formula, **settings)


def line_for(formula: str, objective: str) -> HuberLine:
    return HuberLine(formula, objective=objective)


def table(n: int, seed: int = 1) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": generator.uniform(-5, 5, n), "b": generator.random(n)})
    frame["y"] = 0.5 * frame.a - 2 * frame.b + generator.normal(size=n)
    return frame


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("objective", ["inference", "prediction"])
def test_the_long_branch_shows_nothing_but_its_statistics(relation: str, objective: str) -> None:
    frame, far = table(60), pd.DataFrame({"a": [5.0], "b": [1.0], "y": [-10.0]})
    other = pd.concat([frame, far]) if relation == "add-remove" else pd.concat([frame.iloc[1:], far])
    method = line_for(FORMULA, objective)
    plan = engine.plan(method, SCHEMA, cf.GDP(8.0, relation=relation), n=60 if relation == "substitute" else None)
    found = replay(method, plan, cf.read(frame, SCHEMA), cf.read(other, SCHEMA), seed=1)
    assert found.ok, found.problems
    assert {"round 3", "leverage"} <= set(found.moved)


def test_neighbours_on_either_side_of_the_branch_are_no_false_alarm() -> None:
    """11 and 12 records, 30 p / mu = 11.25: the same words may take either branch, the same transcript takes one."""
    method, frame = robust(FORMULA), table(12)
    plan = engine.plan(method, SCHEMA, cf.GDP(8.0))
    for seed in range(6):
        found = replay(method, plan, cf.read(frame, SCHEMA), cf.read(frame.iloc[1:], SCHEMA), seed=seed)
        assert found.ok, found.problems


@pytest.mark.parametrize("objective", ["inference", "prediction"])
def test_with_one_transcript_two_tables_differ_in_nothing(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, frame = line_for(FORMULA, objective), table(12)
    plan = engine.plan(method, SCHEMA, cf.GDP(8.0))
    for seed in range(6):
        first = seal(method, cf.read(frame, SCHEMA), plan, SimulatedNoise(seed))
        drawn = first.statistics

        def repeat(self: Any, name: str, integers: Any, drawn: Any = drawn) -> Noisy:
            return self._leaves(name, self._planned(name, ("grid_gaussian",)), drawn[name].values)

        with monkeypatch.context() as forced:
            forced.setattr(Meter, "draw", repeat)
            second = seal(method, cf.read(frame.iloc[1:], SCHEMA), plan, SimulatedNoise(seed))
        assert set(second.statistics) == set(first.statistics)
        assert set(second.public) == set(first.public)
        assert all(np.array_equal(first.public[name], second.public[name]) for name in first.public)


def test_dropped_records_count_nowhere() -> None:
    design = ModelMatrix.of(FORMULA, SCHEMA)
    codes, start = np.array([[-1.0], [3.0], [5.0]]), Frame.start(Box.of(design))
    for statistic in (
        BlockGram(WhitenedRows(design).at(start, 2.0), (64, 64, 64)),
        Gram(ScoreRows(design).at(start, 2.0, np.ones(3), 0.5)),
        LeverageCells(LeverageIndices(design)).at(start),
        Total(FarResiduals(design).at(Frame.of(start.box, start.matrix, np.full(3, 9.0), 0.1))),
    ):
        assert not np.any(statistic.value(statistic.update(statistic.zero(), codes)))


def test_a_full_score_fills_its_integers_at_any_reach() -> None:
    design = ModelMatrix.of(FORMULA, SCHEMA)
    codes = np.array([[float(term.steps - 1)] for term in (*design.terms, design.response)])
    for reach in (1.0, 0.1, 1e-3):
        rows = ScoreRows(design).at(Frame.start(Box.of(design)), 3.0, np.zeros(3), reach)(codes)
        assert (rows**2).sum() > 0.99 * 2.0**40


def test_a_substitute_plan_has_its_own_split() -> None:
    plan = robust(FORMULA).plan(SCHEMA, cf.GDP(1.0, relation="substitute"), n=50)
    own = multipliers(Fraction(15, 100), Fraction(247, 1000), Fraction(5, 100))
    for name in ("round 1", "round 2", "round 3", "short round 1", "short round 2"):
        statistic = plan.statistics[name]
        assert isinstance(statistic, BlockGram) and statistic.blocks == own


def test_decoded_noise_has_the_stated_sds() -> None:
    """4,000 draws: a relative error of 6 % of an sd is five of its own standard errors."""
    design, generator, sd = ModelMatrix.of(FORMULA, SCHEMA), np.random.default_rng(2), 1e13
    statistic, start = BlockGram(WhitenedRows(design), (54, 64, 24)), Frame.start(Box.of(design))
    found = []
    for _ in range(4000):
        above = np.triu(generator.normal(0, sd / 2**0.5, (4, 4)), 1)
        whole = above + above.T + np.diag(generator.normal(0, sd, 4))
        values = np.array([int(v) for v in whole.ravel()], dtype=object).reshape(4, 4)
        noisy = Noisy(values, Fraction(1), "grid_gaussian", Fraction(int(sd) ** 2), "frobenius")
        one = Round.decoded(noisy, statistic, start, 2.0)
        found.append([one.gram[0, 0] / one.sd_gram, one.cross[1] / one.sd_cross, one.square / one.sd_square])
    assert np.std(found, axis=0) == pytest.approx([1, 1, 1], abs=0.06)


def test_the_meat_is_that_of_the_last_line_with_the_sd_of_its_noise() -> None:
    frame, design = table(4000), ModelMatrix.of(FORMULA, SCHEMA)
    release = cf.release(robust(FORMULA), cf.read(frame, SCHEMA), cf.GDP(4.0), ledger=None, noise=SimulatedNoise(3))
    done = last_round(design, release.statistics, release.public, "add-remove")
    meat = RoundReading("least_squares 1", None, release, ResultOptions(), design, [0, 1])._meat(done)
    middle, half = release.public["box"]
    z = np.vstack([np.ones(len(frame)), ((frame[["a", "b"]].to_numpy() - middle) / half).T])
    u = done.frame.matrix.T @ z
    weight = np.minimum(1, done.cap / (u**2).sum(axis=0))
    theta = done.frame.line + done.frame.rho * done.frame.matrix @ np.linalg.solve(done.gram, done.cross)
    reach = float(release.public["reach"][0])
    residual = np.clip((frame.y.to_numpy() / 10 - theta @ z) / done.frame.rho, -reach, reach)
    own = (u * weight**2 * residual**2) @ u.T
    assert release.public["meat_line"] == pytest.approx(theta, rel=1e-9)
    spend = release.plan.spend("meat")
    sd = float(spend.scale) ** 0.5 / float(spend.sensitivity) * done.cap * reach**2
    assert meat.sd == pytest.approx(sd, rel=0.01)
    assert np.abs(meat.values - own).max() < 5 * sd + 0.01 * own.max()


def test_a_replaced_record_leaves_one_leverage_cell_and_enters_another() -> None:
    assert LeverageCells(LeverageIndices(ModelMatrix.of(FORMULA, SCHEMA))).sensitivity_squared("substitute") == 2


def covered(
    make: Any,
    formula: str,
    schema: cf.Schema,
    truth: Any,
    runs: int,
    options: cf.core.ResultOptions | None = None,
    mu: float = 1.0,
) -> Any:
    """Which of the intervals cover, shape (runs, coefficients)."""
    hits = []
    for seed in range(runs):
        frame = make(np.random.default_rng(seed))
        limits = simulated(robust(formula), cf.read(frame, schema), cf.GDP(mu), seed, options).conf_int()
        hits.append(((limits[0] <= truth) & (truth <= limits[1])).to_numpy())
    return np.array(hits)


def test_a_subset_without_a_strong_regressor_covers() -> None:
    """Its residual variance is far above the scale of the full model's residuals. 35 or fewer of 45 at 95 %: below 1e-4."""
    schema = cf.Schema({"a": cf.Numeric(-1, 1), "c": cf.Numeric(-4, 4), "y": cf.Numeric(-8, 8)})

    def make(generator: np.random.Generator) -> pd.DataFrame:
        a, c = generator.uniform(-1, 1, 3000), generator.normal(size=3000)
        return pd.DataFrame({"a": a, "c": c, "y": 5 * a + 0.2 * generator.normal(size=3000)})

    hits = covered(make, "y ~ a + c", schema, [0.0, 0.0], 45, cf.core.ResultOptions(subset=("c",)))
    assert (hits.sum(axis=0) > 35).all()


def test_a_line_through_the_origin_that_does_not_fit_covers_its_projection() -> None:
    """The meat holds the misfit. 35 or fewer of 45 at 95 %: below 1e-4."""
    schema = cf.Schema({"a": cf.Numeric(1, 5), "b": cf.Numeric(0, 1), "y": cf.Numeric(-5, 20)})

    def make(generator: np.random.Generator, n: int = 3000) -> pd.DataFrame:
        a, b = generator.uniform(1, 5, n), generator.random(n)
        return pd.DataFrame({"a": a, "b": b, "y": 6 + a - b + 0.3 * generator.normal(size=n)})

    whole = make(np.random.default_rng(99), 400_000)
    truth = np.linalg.lstsq(whole[["a", "b"]].to_numpy(), whole.y, rcond=None)[0]
    hits = covered(make, "y ~ 0 + a + b", schema, truth, 45)
    assert (hits.sum(axis=0) > 35).all()


@pytest.mark.usefixtures("declared")
def test_clipped_values_of_a_derived_response_are_counted() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(0.1, 1000)})
    generator = np.random.default_rng(1)
    frame = pd.DataFrame({"x": generator.random(3000), "y": np.exp(generator.normal(1.5, 1.5, 3000))})
    method = robust("log(y) ~ x", term_bounds={"log(y)": (0, 2)})
    release = cf.release(method, cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
    assert "values_clipped" in cf.infer(release).flags


def test_heavy_residuals_are_flagged() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-20, 20)})
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({"x": generator.random(1_500)})
    frame["y"] = frame.x + 0.3 * generator.normal(size=1_500) + 12 * (generator.random(1_500) < 0.05)
    source = cf.read(frame, schema)
    limited = [simulated(robust("y ~ x"), source, cf.GDP(0.7), seed) for seed in range(8)]
    assert sum("residuals_clipped" in result.flags for result in limited) >= 5
