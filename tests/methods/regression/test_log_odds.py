"""Logistic regression by Fisher scoring: contract, shares, exactness without noise, both relations, statuses, what is said, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from tests.few import few
from tests.messages import refuses

import confide as cf
import confide.audit
from confide.core import seal
from confide.core.events import Branches, BudgetItem, Composed, Event, exact_cost
from confide.core.statistic import WrappedSource
from confide.errors import PlanError
from confide.methods.regression.glm.clipping import Sizes, beyond, chosen_kappa, lengths_at_ends
from confide.methods.regression.glm.coefficients import FisherSandwich
from confide.methods.regression.glm.draw import FisherRound, made_points, started
from confide.methods.regression.glm.fisher_rows import FisherRows
from confide.methods.regression.glm.reading import LevelState
from confide.methods.regression.sums.whitened_rows import Frame
from confide.noise import SimulatedNoise
from confide.regression import Logistic
from confide.schema import CodedFrame, ModelMatrix
from confide.sums.coding import Box
from confide.testing import check_method
from confide.testing.test_data import ZeroNoise

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-2, 3),
        "b": cf.Numeric(0, 10),
        "c": cf.Categorical(["u", "v", "w"]),
        "y": cf.Categorical(["no", "yes"]),
    },
    dataset="survey",
)
FORMULA = "y ~ a + b + c"
BETA = np.array([0.3, 0.5, -0.2, 0.7, 0.0])


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n), "c": g.choice(["u", "v", "w"], n)})
    eta = BETA[0] + BETA[1] * frame.a + BETA[2] * frame.b + BETA[3] * (frame.c == "v")
    frame["y"] = np.where(g.random(n) < expit(eta), "yes", "no")
    return frame


def released(frame, formula=FORMULA, schema=SCHEMA, mu=1.0, seed=1, relation="add-remove", noise=None):
    # what is tested follows on the ranges
    method = Logistic(formula, bounds="declared")
    n = len(frame) if relation == "substitute" else None
    plan = cf.plan(method, schema, cf.GDP(mu, relation=relation), n=n)
    release = seal(method, cf.read(frame, schema), plan, noise or SimulatedNoise(seed))
    return method.infer(release), release


# guarantee -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_contract() -> None:
    contract = check_method(Logistic(FORMULA), SCHEMA, privacy=cf.GDP(1.0), raises=False, replications=20)
    assert contract.ok, contract


@pytest.mark.long
@pytest.mark.parametrize("relation", Logistic.relations)
def test_audit(relation: str) -> None:
    found = cf.audit.audit(Logistic("y ~ a"), SCHEMA, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1)
    assert found.violated == (), found


def paths(event: Event) -> list[dict[str, BudgetItem]]:
    """What each run through a plan may draw."""
    if isinstance(event, BudgetItem):
        return [{event.name: event}]
    if isinstance(event, Branches):
        return [path for branch in event.branches for path in paths(branch)]
    assert isinstance(event, Composed)
    found: list[dict[str, BudgetItem]] = [{}]
    for part in event.parts:
        found = [{**one, **other} for one in found for other in paths(part)]
    return found


@pytest.mark.parametrize("relation", Logistic.relations)
@pytest.mark.parametrize("formula", [FORMULA, "y ~ c", "y ~ 1"])
def test_every_branch_costs_the_same_and_no_more_than_was_asked(relation: str, formula: str) -> None:
    """To a rounding of each spend upwards; with and without features of more than two values."""
    plan = cf.plan(
        Logistic(formula), SCHEMA, cf.GDP(1.0, relation=relation), n=100 if relation == "substitute" else None
    )
    found = paths(plan.event)
    assert len(found) == 4 and len({len(path) for path in found}) == 4
    for path in found:
        cost = sum((spend.mu_squared for spend in path.values()), Fraction(0))
        assert 1 - Fraction(1, 2**30) < cost <= 1
        assert {"count", "leverage", "excess", "meat"} < set(path)
    cost = exact_cost(plan.event)
    assert cost is not None and cost.amount <= 1 and plan.guarantee == cf.GDP(1.0, relation=relation)


def test_replaced_records_pay_for_opposite_scores() -> None:
    """Twice the noise in the steps, sqrt(2) in the meat, none more in the excess."""
    plans = [cf.plan(Logistic(FORMULA), SCHEMA, cf.GDP(1.0, relation=r), n=10) for r in Logistic.relations]
    for name, factor in (
        ("last", 2.0),
        ("step 2 of 3", 2.0),
        ("meat", np.sqrt(2)),
        ("excess", 1.0),
        ("leverage", np.sqrt(2)),
    ):
        sds = [plan.spend(name).noise_sd for plan in plans]
        assert sds[1] / sds[0] == pytest.approx(factor, rel=1e-6), name


# exactness -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", [FORMULA, "y ~ a + c + a:c", "y ~ 1"])
def test_without_noise_it_is_maximum_likelihood_with_its_sandwich(formula: str) -> None:
    frame = records(3_000, 2)
    found, _ = released(frame, formula, mu=40.0, noise=ZeroNoise())
    assert found.status == "valid"
    truth = Logistic(formula).reference(CodedFrame.of(frame, SCHEMA))
    np.testing.assert_allclose(found.params, list(truth.values()), atol=2e-3)
    x, y = ModelMatrix.of(formula.replace("y ", "z "), _numbered(SCHEMA)).matrix(frame), (frame.y == "yes").to_numpy()
    p = expit(x @ np.array(list(truth.values())))
    bread = np.linalg.inv((x.T * (p * (1 - p))) @ x)
    scores = x * (y - p)[:, None]
    se = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    np.testing.assert_allclose(found.bse, se, rtol=0.1)


def _numbered(schema: cf.Schema) -> cf.Schema:
    return cf.Schema({**{name: schema[name] for name in "abc"}, "z": cf.Integer(0, 1)})


@pytest.mark.parametrize("relation", few(Logistic.relations, 0))
def test_intervals_hold_the_truth_about_as_often_as_said(relation: str) -> None:
    """16 releases of one line: 80 intervals, of which 4 miss on average and at most 13 may (p < 1e-4 were they independent)."""
    missed = answered = 0
    for seed in range(16):
        found, _ = released(records(1_500, seed), seed=seed, relation=relation, mu=2.0)
        if found.status == "valid":
            low, high = found.conf_int().to_numpy().T
            missed, answered = missed + int(((low > BETA) | (high < BETA)).sum()), answered + len(BETA)
    assert answered >= 70 and missed <= 13


def test_an_outcome_in_words_is_that_in_numbers() -> None:
    frame = records(500, 3)
    numbers = frame.assign(y=(frame.y == "yes").astype(int))
    schema = cf.Schema({**{name: SCHEMA[name] for name in "abc"}, "y": cf.Integer(0, 1)})
    one, other = released(frame)[1], released(numbers, schema=schema)[1]
    assert {name: noisy.sha256 for name, noisy in one.statistics.items()} == {
        name: noisy.sha256 for name, noisy in other.statistics.items()
    }


@pytest.mark.parametrize(("n", "steps"), [(60, 1), (250, 2), (900, 3), (3_000, 4)])
def test_the_noisy_count_chooses_the_branch(n: int, steps: int) -> None:
    _, release = released(records(n, 1), mu=1.0, noise=ZeroNoise())
    names = set(release.statistics)
    assert ("short step" in names) == (steps == 1)
    assert steps == 1 or f"step {steps} of {steps}" in names
    assert set(release.public) == {
        "transform", "start", "line", "meat_line", "moments", "feature_mean", "feature_sd", "alpha", "bound", "less",
        "change", "ends",
    }  # fmt: skip


# parts ---------------------------------------------------------------------------------------------------------------


def test_the_start_is_near_the_likeliest_model_of_rare_levels_and_outcomes() -> None:
    g = np.random.default_rng(1)
    schema = cf.Schema({"x": cf.Numeric(-1, 1), "r": cf.Integer(0, 1), "y": cf.Integer(0, 1)})
    design = ModelMatrix.of("y ~ x + r", schema)
    x, r = g.uniform(-1, 1, 100_000), (g.random(100_000) < 0.02) * 1.0
    z = np.column_stack([np.ones_like(x), x, 2 * r - 1])
    theta = np.array([-1.0, 1.2, 0.6])
    y = (g.random(100_000) < expit(z @ theta)) * 1.0
    line = np.linalg.lstsq(z, 2 * y - 1, rcond=None)[0]
    points = made_points(design, Box.of(design), z.T @ z / len(z), np.random.default_rng(2))
    assert set(np.unique(points[:, 2])) == {-1.0, 1.0} and abs((points[:, 2] > 0).mean() - 0.02) < 0.01
    found = started(points, line, float(y.mean()))
    np.testing.assert_allclose(found, theta, atol=0.35)
    assert np.isfinite(started(points, 1e6 * np.ones(3), 0.001)).all()


def test_the_bound_is_where_the_records_end_or_noise_would_cost_more() -> None:
    k = 4
    edges = k * 2.0 ** (np.arange(-4, 21) / 2)
    counts = np.zeros(26)
    counts[5:9] = 2_500.0
    own = {"edges": edges, "sd": 5.0, "gram": 1_500 * np.eye(k), "alpha": 1.5 / 2, "records": 10_000.0}
    near = Sizes(counts=counts, mu=0.7, **own).bound()
    assert near.value**2 == pytest.approx(edges[8]) and near.less < 0.01
    far = counts.copy()
    far[22] = 200.0
    cheap, dear = (Sizes(counts=far, mu=mu, **own).bound() for mu in (100.0, 0.02))
    assert cheap.value**2 == pytest.approx(edges[22]) and dear.value**2 < edges[12] and dear.less > 0.019
    assert chosen_kappa(1e6 * np.eye(4), 1.0) == 1.5 and chosen_kappa(np.eye(4), 1.0) == 4.5


def test_the_bound_reaches_the_ends_of_bounds_where_that_is_affordable() -> None:
    k = 4
    edges = k * 2.0 ** (np.arange(-4, 21) / 2)
    counts = np.zeros(26)
    counts[5:9] = 2_500.0
    own = {
        "counts": counts,
        "edges": edges,
        "sd": 5.0,
        "gram": 1_500 * np.eye(k),
        "alpha": 1.5 / 2,
        "records": 10_000.0,
    }
    score, whole = float(edges[12]), float(edges[16])
    cheap = Sizes(mu=10.0, ends=(score, whole), **own).bound()
    assert cheap.value**2 == pytest.approx(whole)
    afforded = Sizes(mu=0.7, ends=(score, whole), **own).bound()
    assert score * 0.999 <= afforded.value**2 < whole
    assert Sizes(mu=0.05, ends=(score, whole), **own).bound().value ** 2 < score
    # no farther than the bounds, whatever could be had
    assert Sizes(mu=10.0, ends=(float(edges[9]), float(edges[9])), **own).bound().value ** 2 == pytest.approx(edges[9])


def test_ends_are_those_of_numbers_whose_bounds_are_not_far() -> None:
    columns = {"a": cf.Numeric(-6, 6), "b": cf.Numeric(-30, 30), "f": cf.Integer(0, 1), "y": cf.Integer(0, 1)}
    design = ModelMatrix.of("y ~ a + b + f", cf.Schema(columns))
    mean, sd = np.array([0.0, 0.0, -1.0]), np.array([1 / 6, 1 / 30, 0.5])
    frame = Frame.of(Box.of(design), np.diag([1.0, *(1 / sd)]), np.zeros(4), 1.0)
    scores, sizes = lengths_at_ends(design, FisherRows(design).at(frame, 1.0, 1.0), mean, sd)
    # |u|^2 = 1 + 6^2 - 2 of the flag at its mean adds 4; at log-odds of 0 the score is half as long, and h = 1/4
    square = 1 + 36 + 4.0
    # rounded to three digits
    assert scores == pytest.approx([np.sqrt(square) / 2, 0, 0], abs=6e-4)
    assert sizes[0] == pytest.approx(np.hypot(square / 4, np.sqrt(square) / 2), abs=6e-4)
    assert beyond(scores, float(scores[0])).tolist() == [0, 0, 0] and beyond(scores, 0.2)[0] > 10


def far_inside(n: int, seed: int) -> pd.DataFrame:
    """0.4 % of the records at 7 to 8.2 sd, within bounds that reach less than five half-widths, against the slope."""
    g = np.random.default_rng(seed)
    x, out = g.standard_normal(n), g.random(n) < 0.004
    x = np.where(out, g.uniform(7, 8.2, n), x)
    return pd.DataFrame({"x": x, "y": np.where(out, 0, g.random(n) < expit(-0.5 + 1.2 * x)).astype(int)})


def test_a_few_records_far_inside_the_bounds_do_not_break_the_slope() -> None:
    schema = cf.Schema({"x": cf.Numeric(-8.2, 8.2), "y": cf.Integer(0, 1)})
    whole = Logistic("y ~ x").reference(CodedFrame.of(far_inside(400_000, 0), schema))
    hits = []
    for seed in range(30):
        found, _ = released(far_inside(2_000, 100 + seed), "y ~ x", schema, mu=3.0, seed=seed)
        low, high = found.conf_int().loc["x"]
        hits += [low <= whole["x"] <= high] if np.isfinite(low) else []
    assert len(hits) >= 25
    # fails by luck of a method that covers .92 less than once in 2,000 times
    assert stats.beta.ppf(0.9995, sum(hits) + 1, max(len(hits) - sum(hits), 0.5)) >= 0.92, hits


def test_the_covariance_is_robust_where_the_meat_can_tell_and_the_models_elsewhere() -> None:
    gram, e = np.diag([100.0, 400.0]), np.eye(2)
    last = FisherRound(gram, np.zeros(2), 1e-9, 1e-9)
    twice = FisherSandwich(last, 2 * gram, 1.0, e, np.zeros(2))
    np.testing.assert_allclose(np.diag(twice.covariance), [0.02, 0.005], rtol=1e-3)
    hidden = FisherSandwich(last, 1.1 * gram, 1e4, e, np.zeros(2))
    np.testing.assert_allclose(np.diag(hidden.covariance), [0.01, 0.0025], rtol=1e-3)
    small = FisherSandwich(last, 0.1 * gram, 1e-3, e, np.zeros(2))
    np.testing.assert_allclose(np.diag(small.covariance), [0.01, 0.0025], rtol=1e-3)


def test_a_level_without_one_of_the_outcomes_is_named_with_all_that_hangs_on_it() -> None:
    schema = cf.Schema({"c": cf.Categorical(["u", "v", "w"]), "k": cf.Integer(0, 1), "y": cf.Integer(0, 1)})
    design = ModelMatrix.of("y ~ c + k", schema)
    g = np.random.default_rng(1)
    level, k = g.choice(3, 2_000, p=[0.5, 0.4, 0.1]), g.integers(0, 2, 2_000)
    z = np.column_stack([np.ones(2_000), 2.0 * (level == 1) - 1, 2.0 * (level == 2) - 1, 2.0 * k - 1])
    y = (g.random(2_000) < 0.3) & (level != 2)
    moments, box = z.T @ z / 2_000, Box.of(design)
    # log-odds of -1 at u and v, of -3 at w before the last step and of -4 after it: nearly 4 records of 200, and none is seen
    before, line = np.array([-2.0, 0.0, -1.0, 0.0]), np.array([-2.5, 0.0, -1.5, 0.0])
    surprise = z.T @ (y - expit(z @ before)), 4.0 * np.eye(4)
    (found,) = LevelState(before, line, 1e-4 * np.eye(4), surprise, moments, 2_000.0, box).quiet(design)
    assert abs(found.count.count) < 3
    noisy = LevelState(before, line, 1e2 * np.eye(4), surprise, moments, 2_000.0, box).quiet(design)
    assert len(noisy) == 6  # three levels, two, and all records
    assert (found.count.column, found.count.level, found.outcome, found.places) == ("c", "w", 1, (2,))


# status --------------------------------------------------------------------------------------------------------------


def test_few_records_give_no_interval_and_say_what_would_do() -> None:
    found, _ = released(records(300, 1), mu=0.2)
    assert found.status in ("imprecise", "not_identified") and found.conf_int().isna().all().all()
    assert "records" in found.reason


def test_bounds_far_beyond_the_values_are_named_and_the_others_answered() -> None:
    """Reach 170: a few records out there count less; the coefficient is no answer, its neighbours are."""
    n, alone = 6_000, 0
    schema = cf.Schema(
        {"a": cf.Numeric(-170, 170), "b": cf.Numeric(-4, 4), "k": cf.Integer(0, 1), "y": cf.Integer(0, 1)}
    )
    for seed in range(8):
        g = np.random.default_rng(seed)
        frame = pd.DataFrame({"a": g.normal(0, 1, n), "b": g.normal(0, 1, n), "k": g.integers(0, 2, n)})
        frame["y"] = (g.random(n) < expit(0.5 * frame.a - frame.b + 0.4 * frame.k)).astype(int)
        found, _ = released(frame, "y ~ a + b + k", schema, mu=2.0, seed=seed)
        if found.status == "partial":
            assert "the bounds of a reach" in found.reason and found.params.isna()["a"]
            assert "leave bounds='declared' out, and the range is found" in found.reason
            assert found.predict_proba(frame.head(3)).isna().all().all()
            alone += found.params.isna().sum() == 1
    # 83 % of 104 seeds: a false alarm in 200
    assert alone >= 4


def test_records_at_risk_widen_the_interval_and_the_table_says_its_assumption() -> None:
    g = np.random.default_rng(2)
    n = 8_000
    frame = pd.DataFrame({"a": g.normal(0, 1, n), "b": g.uniform(-1, 1, n)})
    frame["y"] = (g.random(n) < expit(frame.a - frame.b)).astype(int)
    schema = cf.Schema({"a": cf.Numeric(-12, 12), "b": cf.Numeric(-1, 1), "y": cf.Integer(0, 1)})
    found, _ = released(frame, "y ~ a + b", schema, mu=1.0)
    assert found.status == "valid" and found.bias is not None
    # the others hang together with it, and get no more than their part of what was seen
    assert found.bias[1] > 0 and (found.bias[[0, 2]] < 0.2 * found.bse.to_numpy()[[0, 2]]).all()
    assert (
        "assumed for a: down-weighted records have a mean residual of at most their mean squared one"
        in found.intervals_for
    )


def test_far_records_against_the_slope_are_not_answered_wrongly() -> None:
    """1 % of the records at 8 to 20 sd with outcomes against the slope: weak, or the plain line is covered."""
    wrong = 0
    for seed in range(6):
        g = np.random.default_rng(seed)
        n = 10_000
        x = g.standard_normal(n)
        y = g.random(n) < expit(-0.3 + x)
        far = g.random(n) < 0.01
        x[far] = g.uniform(8, 20, far.sum()) * g.choice([-1, 1], far.sum())
        y[far] = x[far] < 0
        frame = pd.DataFrame({"x": x, "y": y.astype(int)})
        schema = cf.Schema({"x": cf.Numeric(-25, 25), "y": cf.Integer(0, 1)})
        found, _ = released(frame, "y ~ x", schema, seed=seed)
        if found.status in ("valid", "partial"):
            own = Logistic("y ~ x").reference(CodedFrame.of(frame, schema))["x"]
            low, high = found.conf_int().loc["x"]
            wrong += not (np.isnan(low) or low - (high - low) <= own <= high + (high - low))
    assert wrong == 0


def test_a_few_far_records_against_the_slope_hide_it() -> None:
    """.3 % of 10,000 records at 6 to 12 sd that the line does not predict: their squared residuals are counted."""
    schema = cf.Schema({"x": cf.Numeric(-20, 20), "z": cf.Numeric(-4, 4), "y": cf.Integer(0, 1)})
    wrong = 0
    for seed in range(6):
        g = np.random.default_rng(seed)
        n = 10_000
        x, z = g.standard_normal((2, n))
        y = g.random(n) < expit(-0.3 + x - 0.5 * z)
        far = g.random(n) < 0.003
        x[far] = g.uniform(6, 12, far.sum()) * g.choice([-1, 1], far.sum())
        y[far] = x[far] < 0
        frame = pd.DataFrame({"x": x, "z": np.clip(z, -4, 4), "y": y.astype(int)})
        found, _ = released(frame, "y ~ x + z", schema, seed=seed)
        low, high = found.conf_int().loc["x"]
        own = Logistic("y ~ x + z").reference(CodedFrame.of(frame, schema))["x"]
        wrong += bool(low > own or high < own)
    assert wrong <= 1


def test_formulas_without_an_intercept_and_outcomes_of_three_levels_are_refused() -> None:
    with refuses(PlanError):
        cf.plan(Logistic("y ~ 0 + a"), SCHEMA, cf.GDP(1.0))
    with refuses(PlanError):
        cf.plan(Logistic("c ~ a"), SCHEMA, cf.GDP(1.0))


def test_predicted_probabilities_have_intervals() -> None:
    """At a value of a only, with b and c at their base: the coefficients' own interval, carried over."""
    found, _ = released(records(3_000, 1))
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 0.0], "c": ["u", "u"]})
    ends = found.get_prediction(frame)
    assert ((ends.mean_ci_lower > 0) & (ends.mean_ci_lower < ends["mean"]) & (ends["mean"] < ends.mean_ci_upper)).all()
    low, high = found.conf_int().loc["Intercept"]
    np.testing.assert_allclose(
        ends.loc[0, ["mean_ci_lower", "mean_ci_upper"]].astype(float), expit([low, high]), rtol=1e-9
    )
    np.testing.assert_allclose(ends["mean"], found.predict_proba(frame)["yes"])
    weak, _ = released(records(300, 1), mu=0.2)
    if weak.status == "imprecise":
        assert weak.get_prediction(frame).drop(columns="mean").isna().all().all()


def test_the_title_names_the_estimand_and_the_release_reads_back() -> None:
    found, release = released(records(2_000, 1))
    assert "maximum likelihood" in found.target and "plain maximum-likelihood" in found.intervals_for
    again = Logistic(FORMULA).infer(cf.Release.from_json(release.to_json()))
    assert again.to_dict() == found.to_dict()
    odds = found.odds_ratios()
    assert (odds["ci_low"] <= odds["odds_ratio"]).all() and odds.loc["a", "odds_ratio"] == pytest.approx(
        np.exp(found.params["a"])
    )


def test_the_meat_is_summed_at_the_released_line() -> None:
    """At the line before it the sums would be as private, and not the covariance that the table states."""
    asked = []

    class Spied(WrappedSource):
        def aggregate(self, *statistics):
            asked.extend(statistics)
            return self._source.aggregate(*statistics)

    method, frame = Logistic(FORMULA), records(3_000, 4)
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0))
    release = seal(method, Spied(cf.read(frame, SCHEMA)), plan, SimulatedNoise(4))
    line, before = release.public["meat_line"], release.public["line"]
    assert np.abs(np.asarray(line) - np.asarray(before)).max() > 0
    assert tuple(asked[-1].statistic.map.frame.theta) == tuple(map(float, np.ravel(line)))
