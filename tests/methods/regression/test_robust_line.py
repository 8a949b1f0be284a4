"""The robust line: rounds of residual moments. Sensitivities by search at hostile frames, the two branches, targets, weak intervals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
from confide.core import Branches, Composed, exact_cost, leaves
from confide.core.allowance import Allowance
from confide.methods.regression.sums.linear_rows import (
    BlockGram,
    CellIndices,
    RangeCells,
    multipliers,
    private_box,
    ranged,
)
from confide.methods.regression.sums.whitened_rows import (
    Frame,
    LeverageCells,
    LeverageIndices,
    NoisySystem,
    WhitenedRows,
    choose_prior,
    symmetric_noise,
    wiener,
)
from confide.noise import SimulatedNoise
from confide.regression import LeastSquares
from confide.schema import ModelMatrix
from confide.sums.coding import BOUND, Box
from confide_lab.methods import GradientDescent
from confide_lab.methods.huber.huber_line import HuberLine
from confide_lab.methods.huber.residual_rounds import plan_line
from confide_lab.methods.huber.residual_rows import ScoreRows

SSP2_SCHEMA = cf.Schema(
    {"a": cf.Numeric(-5, 5), "b": cf.Numeric(0, 1), "k": cf.Integer(0, 1), "y": cf.Numeric(-10, 10)}
)
FORMULA = "y ~ a + b + k"


def robust(formula: str, **settings: Any) -> HuberLine:
    return HuberLine(formula, **settings)


def line_for(formula: str, objective: str) -> HuberLine:
    return HuberLine(formula, objective=objective)


def table(n: int, seed: int = 1, noise: float = 1.0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": generator.uniform(-5, 5, n), "b": generator.random(n), "k": generator.integers(0, 2, n)})
    frame["y"] = 1 + 0.5 * frame.a - 2 * frame.b + frame.k + noise * generator.normal(size=n)
    return frame


def drawn(method: Any, frame: pd.DataFrame, mu: float = 1.0, seed: int = 1, **more: Any) -> Any:
    noise = more.pop("noise", None) or SimulatedNoise(seed)
    return cf.release(method, cf.read(frame, SSP2_SCHEMA), cf.GDP(mu, **more), ledger=None, noise=noise)


def hostile_frame(p: int, generator: np.random.Generator) -> tuple[Frame, float]:
    """Anything that a round may hand on, and worse: scales over six decades, a line far away."""
    transform = generator.normal(size=(p, p)) * 10.0 ** generator.uniform(-3, 3, p)
    box = Box(tuple(generator.normal(0, 3, p - 1)), tuple(10.0 ** generator.uniform(-4, 1, p - 1)))
    theta = generator.normal(size=p) * 10.0 ** generator.uniform(-3, 6)
    return Frame.of(box, transform, theta, 10.0 ** generator.uniform(-6, 1)), float(generator.uniform(1, 8 * p))


def codes(design: ModelMatrix, m: int, generator: np.random.Generator) -> np.ndarray:
    rows = [
        generator.choice([0, column.steps - 1, generator.integers(column.steps)], m)
        for column in (design.schema[name] for name in design.columns)
    ]
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_record_moves_a_round_beyond_its_sensitivity_in_any_frame(relation: str) -> None:
    generator = np.random.default_rng(5)
    design = ModelMatrix.of(FORMULA, SSP2_SCHEMA)
    blocks = multipliers(Fraction(1, 4), Fraction(7, 10), Fraction(1, 20))
    found = 0.0
    for k in range(60):
        frame, cap = hostile_frame(4, generator) if k else (Frame.start(Box.of(design)), 2.0)
        statistic = BlockGram(WhitenedRows(design).at(frame, cap), blocks)
        rows = statistic.map(codes(design, 300, generator)).astype(np.int64).astype(object)
        assert (rows[:-1] ** 2).sum(axis=0).max() <= BOUND
        assert (rows[-1] ** 2).max() <= BOUND
        bound = statistic.sensitivity_squared(relation)
        alone = statistic.moved_squared(np.zeros(5, dtype=object), rows)
        best = np.argsort(alone.astype(float))[-20:]
        pairs = [np.zeros(5, dtype=object)] if relation == "add-remove" else [rows[:, i] for i in best]
        worst = max(int(statistic.moved_squared(own, rows).max()) for own in pairs)
        assert worst <= bound
        found = max(found, worst / float(bound))
        meat = ScoreRows(design).at(frame, cap, generator.normal(size=4) * 100, 10.0 ** generator.uniform(-5, 0))
        assert (meat(codes(design, 300, generator)) ** 2).sum(axis=0).max() <= BOUND
    assert found > (0.9 if relation == "add-remove" else 0.5)


def test_the_substitute_bound_is_attained_and_is_not_the_root_of_two() -> None:
    """Records at an angle with opposite responses are worse than sqrt(2): 1.673 for the split of the last round."""
    design = ModelMatrix.of(FORMULA, SSP2_SCHEMA)
    statistic = BlockGram(WhitenedRows(design), multipliers(Fraction(1, 4), Fraction(7, 10), Fraction(1, 20)))
    added, replaced = (float(statistic.sensitivity_squared(r)) for r in ("add-remove", "substitute"))
    assert sqrt(replaced / added) == pytest.approx(1.673, abs=0.005)
    rows = np.zeros((5, 2))
    rows[0, :] = 2.0**20
    rows[-1] = [2.0**20, -(2.0**20)]
    # the worst angle is where a^2 s^2 - b^2 s + c^2 / 2 ... is least, s = b^2 / a^2 > 1 here: equal features
    assert float(statistic.moved_squared(rows[:, 0], rows[:, 1:])[0]) == pytest.approx(replaced, rel=1e-9)
    kept = BlockGram(WhitenedRows(design), multipliers(Fraction(15, 100), Fraction(247, 1000), Fraction(5, 100)))
    added, replaced = (float(kept.sensitivity_squared(r)) for r in ("add-remove", "substitute"))
    assert sqrt(replaced / added) == pytest.approx(1.494, abs=0.01)


def test_blocks_of_random_pairs_stay_below_the_bound_of_a_replaced_record() -> None:
    generator = np.random.default_rng(8)
    design = ModelMatrix.of(FORMULA, SSP2_SCHEMA)
    for _ in range(40):
        statistic = BlockGram(WhitenedRows(design), tuple(int(x) for x in generator.integers(1, 64, 3)))
        u = generator.normal(size=(4, 2000))
        u *= 2.0**20 * generator.choice([1.0, 0.7, 0.1], 2000) / np.linalg.norm(u, axis=0)
        rows = np.vstack([u, 2.0**20 * generator.choice([-1.0, 1.0, 0.5, 0.0], 2000)])
        for i in range(10):
            worst = float(statistic.moved_squared(rows[:, i], rows).max())
            assert worst <= float(statistic.sensitivity_squared("substitute")) * (1 + 1e-12)


@pytest.mark.parametrize("objective", ["inference", "prediction"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_shares_of_both_branches_add_up_to_the_request(objective: str, relation: str) -> None:
    plan = line_for(FORMULA, objective).plan(SSP2_SCHEMA, cf.GDP(0.8, relation=relation))
    together = plan.event
    assert isinstance(together, Composed)
    (choice,) = (part for part in together.parts if isinstance(part, Branches))
    common = sum((leaf.mu_squared for leaf in together.parts if leaf is not choice), Fraction(0))
    for branch in choice.branches:
        total = common + sum((leaf.mu_squared for leaf in leaves(branch)), Fraction(0))
        assert total <= Fraction(0.8) ** 2
        assert float(total) == pytest.approx(0.64, rel=1e-9)
    cost = exact_cost(plan.event)
    assert cost is not None and cost.amount <= Fraction(0.8) ** 2
    assert len({leaf.name for leaf in leaves(plan.event)}) == len(list(leaves(plan.event)))


@pytest.mark.usefixtures("declared")
def test_a_few_records_take_the_short_branch_and_prediction_is_the_plain_descent() -> None:
    frame = table(25)
    short = drawn(robust(FORMULA), frame)
    assert {"short round 1", "short round 2"} <= set(short.statistics)
    assert "ranges" not in short.statistics
    result = cf.infer(short)
    assert result.status in ("imprecise", "not_identified")
    assert not result.has_intervals
    assert np.isnan(result.conf_int().to_numpy()).all()
    line = drawn(HuberLine(FORMULA, objective="prediction"), frame, seed=4)
    other = drawn(GradientDescent(FORMULA), frame, seed=4)
    assert np.array_equal(line.public["line"], other.public["theta"])
    assert cf.infer(line).params.to_list() == pytest.approx(cf.infer(other).params.to_list(), abs=1e-12)


def test_a_declared_bound_gives_a_weak_release_its_interval() -> None:
    frame = table(25)
    covered = []
    for seed in range(20):
        result = simulated(robust(FORMULA, slope_bound=2.0), cf.read(frame, SSP2_SCHEMA), cf.GDP(1.0), seed)
        if result.status != "imprecise":
            continue
        assert result.has_intervals and "bias_aware" in result.flags
        assert np.isnan(result.bse).all()
        limits = result.conf_int()
        assert ((limits[0] <= result.params) & (result.params <= limits[1])).all()
        assert (result.conf_int(0.5)[1] <= limits[1] + 1e-12).all()
        covered.append(((limits[0] <= [1, 0.5, -2, 1]) & (limits[1] >= [1, 0.5, -2, 1])).to_numpy())
        assert "slope_bound" not in result.reason
    # at 95 % or more, fewer than 80 % of 40 or more has a probability below 1e-4
    assert len(covered) >= 10 and np.mean(covered) >= 0.8


def test_intervals_cover_at_small_scale() -> None:
    hits = np.array(
        [
            [low <= true <= high for (low, high), true in zip(limits, (1, 0.5, -2, 1), strict=True)]
            for limits in (
                simulated(robust(FORMULA), cf.read(table(1_500, seed), SSP2_SCHEMA), cf.GDP(1.0), seed)
                .conf_int()
                .to_numpy()
                for seed in range(40)
            )
        ]
    )
    # 40 runs: 31 or fewer hits have a probability below 1e-4 at 95 %
    assert (hits.sum(axis=0) >= 32).all()


def test_a_loose_box_is_found_and_costs_little() -> None:
    wide = cf.Schema(
        {"a": cf.Numeric(-50, 70), "b": cf.Numeric(-9, 12), "k": cf.Integer(0, 1), "y": cf.Numeric(-10, 10)}
    )
    frame = table(2_000)
    ratios = []
    for seed in range(10):
        loose, tight = (
            simulated(robust(FORMULA), cf.read(frame, own), cf.GDP(1.0), seed) for own in (wide, SSP2_SCHEMA)
        )
        ratios.append(loose.bse["b"] / tight.bse["b"])
    assert np.median(ratios) < 1.3


def test_ranges_move_one_cell_of_each_feature_and_leave_binary_features_alone() -> None:
    design = ModelMatrix.of(FORMULA, SSP2_SCHEMA)
    assert ranged(design) == (0, 1)
    statistic = RangeCells(CellIndices(design))
    assert statistic.sensitivity_squared("add-remove") == 2
    assert statistic.sensitivity_squared("substitute") == 4
    generator = np.random.default_rng(1)
    state = statistic.update(statistic.zero(), codes(design, 500, generator))
    assert statistic.value(state).sum(axis=1).tolist() == [500, 500]
    counts = np.zeros((2, 64))
    counts[0, 30:34] = 1000.0
    counts[1] = 100.0
    box = private_box(design, counts, sd=3.0)
    public = Box.of(design)
    assert abs(box.middle[0]) < 0.2 and box.half[0] < 0.5
    assert box.half[1] == pytest.approx(public.half[1], rel=0.01)
    assert (box.middle[2], box.half[2]) == (public.middle[2], public.half[2])
    assert private_box(design, np.zeros((2, 64)), sd=3.0) == public


@pytest.mark.parametrize("formula", ["y ~ a", "y ~ a + b", "y ~ a + k + b + log1p(b)"])
def test_ranges_count_the_cells_of_the_map(formula: str) -> None:
    design = ModelMatrix.of(formula, SSP2_SCHEMA)
    generator = np.random.default_rng(2)
    for missing in (0.0, 0.1):
        own = codes(design, 3_000, generator)
        # the ends of the grids, whose cells are the first and the last
        own[:, :20], own[:, 20:40] = 0.0, np.array([[SSP2_SCHEMA[name].steps - 1.0] for name in design.columns])
        own[generator.random(own.shape) < missing] = -1.0
        statistic = RangeCells(CellIndices(design))
        cells = statistic.map(own).astype(int)
        assert cells.min() == (0 if missing else 1) and cells.max() == 64
        expected = [[int((row == cell).sum()) for cell in range(1, 65)] for row in cells]
        assert statistic.value(statistic.update(statistic.zero(), own)).tolist() == expected


def test_leverage_cells_count_every_record_once() -> None:
    generator = np.random.default_rng(3)
    design = ModelMatrix.of(FORMULA, SSP2_SCHEMA)
    for _ in range(10):
        frame, _ = hostile_frame(4, generator)
        statistic = LeverageCells(LeverageIndices(design)).at(frame)
        state = statistic.update(statistic.zero(), codes(design, 400, generator))
        assert statistic.value(state).sum() == 400


def test_fission_gives_two_copies_with_independent_noise() -> None:
    """The noises of A + .7 E and A - E/.7 are uncorrelated, 1.49 and 3.04 times the variance of the first (10^5 draws)."""
    generator = np.random.default_rng(2)
    own, fresh = generator.normal(size=100_000), generator.normal(size=100_000)
    one, two = own + 0.7 * fresh, own - fresh / 0.7
    assert abs(np.corrcoef(one, two)[0, 1]) < 4.5 / sqrt(100_000)
    assert np.var(one) == pytest.approx(1.49, rel=0.03)
    assert np.var(two) == pytest.approx(1 + 1 / 0.49, rel=0.03)
    noise = np.array([symmetric_noise(3, 2.0, generator) for _ in range(20_000)])
    assert np.var(noise[:, 0, 0]) == pytest.approx(4, rel=0.06)
    assert np.var(noise[:, 0, 1]) == pytest.approx(2, rel=0.06)
    assert (noise == noise.transpose(0, 2, 1)).all()


def test_the_filter_shrinks_and_survives_an_indefinite_matrix() -> None:
    gram = np.diag([100.0, 1.0, -3.0])
    system = NoisySystem(gram, np.array([50.0, 1.0, 2.0]), 1.0, 1.0, 0.1)
    strong, _ = wiener(system, 4.0)
    weak, freedom = wiener(system, 4.0**-9)
    assert np.isfinite(strong).all() and np.linalg.norm(weak) < np.linalg.norm(strong)
    assert 0 <= freedom < 3
    free, _ = wiener(NoisySystem(gram, system.cross, 1.0, 1.0, 0.1, free=True), 4.0**-9)
    assert free[0] == pytest.approx(0.5, rel=0.01)
    assert choose_prior(system, np.random.default_rng(1)) in {4.0**k for k in range(-9, 3)}


def test_infer_repeats_and_a_plan_may_be_read_back() -> None:
    release = drawn(robust(FORMULA), table(60))
    first = cf.infer(release)
    assert cf.infer(cf.Release.from_json(release.to_json())).to_json() == first.to_json()


def test_order_does_not_show() -> None:
    frame = table(500)
    one = drawn(robust(FORMULA), frame)
    assert one == drawn(robust(FORMULA), frame.iloc[::-1].reset_index(drop=True))


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("objective", ["inference", "prediction"])
def test_hardly_any_record_is_a_result(n: int, objective: str) -> None:
    result = cf.infer(drawn(line_for(FORMULA, objective), table(10).iloc[:n]))
    assert result.status in ("valid", "imprecise", "not_identified")
    assert result.summary()


def test_subset_and_no_intercept() -> None:
    frame = table(3_000)
    release = drawn(robust(FORMULA), frame, mu=3.0)
    part = cf.infer(release, subset=("a", "b"))
    assert list(part.params.index) == ["Intercept", "a", "b"]
    assert "submodel_classical" in part.flags
    frame["y"] = 0.5 * frame.a - 2 * frame.b + frame.k + np.random.default_rng(1).normal(size=3_000)
    for objective in ("inference", "prediction"):
        through = cf.infer(drawn(line_for("y ~ 0 + a + b + k", objective), frame, mu=3.0))
        assert through.params.to_numpy() == pytest.approx([0.5, -2, 1], abs=0.25)
        assert through.predict({"a": [0.0], "b": [0.0], "k": [0]}).iloc[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.usefixtures("declared")
def test_predictions_stay_within_the_declared_bounds() -> None:
    result = cf.infer(drawn(HuberLine(FORMULA, objective="prediction"), table(2_000)))
    assert result.predict({"a": [1e6], "b": [0.0], "k": [0]}).iloc[0] == 10.0
    assert "no_interval" in result.flags and not result.has_intervals
    part = cf.infer(drawn(HuberLine(FORMULA, objective="prediction"), table(2_000)), subset=("a",))
    assert list(part.params.index) == ["Intercept", "a"]
    with refuses(cf.errors.PlanError):
        cf.infer(drawn(HuberLine(FORMULA, objective="prediction"), table(25)), subset=("a",))


@pytest.mark.usefixtures("declared")
def test_clipped_responses_are_flagged() -> None:
    narrow = cf.Schema({"a": cf.Numeric(-5, 5), "b": cf.Numeric(0, 1), "k": cf.Integer(0, 1), "y": cf.Numeric(-2, 2)})
    flagged = 0
    for seed in range(20):
        result = simulated(robust(FORMULA), cf.read(table(1_000, seed), narrow), cf.GDP(1.0), seed)
        flagged += "values_clipped" in result.flags
    assert flagged >= 18  # about a quarter of the responses lie outside; asked are 95 %


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "both"},
        {"objective": "prediction", "slope_bound": 2.0},
        {"slope_bound": 0},
        {"slope_bound": float("inf")},
        {"slope_bound": True},
        {"clipping_check": 1},
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any]) -> None:
    with refuses(cf.errors.PlanError):
        robust(FORMULA, **settings)


def test_a_slope_bound_is_about_the_intervals_of_the_robust_line_alone() -> None:
    with refuses(cf.errors.PlanError):
        HuberLine(FORMULA, slope_bound=2.0, objective="prediction")
    with pytest.raises(TypeError, match="slope_bound"):
        LeastSquares(FORMULA, slope_bound=2.0)  # type: ignore[call-arg]


def test_the_line_has_its_name_in_every_title(tmp_path: Any) -> None:
    result = cf.infer(drawn(robust(FORMULA), table(2_000)))
    said = "a Huber-type line, not least squares"
    assert said in result.summary().splitlines()[0]
    assert said in result._repr_html_().split("</p>")[0]
    assert f"<h1>{result.title}</h1>" in result.report(tmp_path / "r.html").read_text()
    assert said in " ".join(result.plot().get_figure().get_suptitle().split())


@pytest.mark.usefixtures("declared")
def test_a_line_alone_may_get_a_part_of_an_allowance() -> None:
    method = robust(FORMULA)
    allowance = replace(Allowance.of(cf.GDP(1.0), method, SSP2_SCHEMA), part=Fraction(1, 2))
    event, statistics = plan_line(ModelMatrix.of(FORMULA, SSP2_SCHEMA), allowance, "inference")
    cost = exact_cost(event)
    assert cost is not None and float(cost.amount) == pytest.approx(0.5, rel=1e-9) and cost.amount <= Fraction(1, 2)
    assert {leaf.name for leaf in leaves(event)} == set(statistics)
