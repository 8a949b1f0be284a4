"""Counts and shares: contract, exactness, least squares, intervals, comparisons, what is shown, bad input."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
from confide import registry
from confide.core import seal
from confide.errors import PlanError, SchemaError
from confide.methods.tables.counts import Counts, Shares
from confide.methods.tables.draw import Margins, Strategy
from confide.methods.tables.intervals import count_interval, difference, ratio, share_interval
from confide.methods.tables.layout import Layout
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise, check_method

SCHEMA = cf.Schema(
    {
        "region": cf.Categorical(["N", "S", "W"]),
        "smoker": cf.Categorical(["no", "yes"], on_missing="no"),
        "age": cf.Numeric(0, 100),
    }
)


@pytest.fixture(autouse=True)
def registered() -> None:
    registry.register(Counts)
    registry.register(Shares)


def records(n: int, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    region = g.choice(3, n, p=[0.6, 0.3, 0.1])
    smoker = g.random(n) < np.array([0.1, 0.3, 0.5])[region]
    return pd.DataFrame(
        {
            "region": np.array(["N", "S", "W"])[region],
            "smoker": np.where(smoker, "yes", "no"),
            "age": g.uniform(0, 100, n),
        }
    )


def exact(method: Counts | Shares, frame: pd.DataFrame) -> pd.Series:
    release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1.0), ledger=None, noise=ZeroNoise())
    return cf.infer(release).params


def subsets(sizes: tuple[int, ...], of: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    from itertools import combinations

    return tuple(axes for k in of for axes in combinations(range(len(sizes)), k))


@pytest.mark.long
@pytest.mark.parametrize(
    "method",
    [Counts("region * smoker", inference="population"), Shares("region + cut(age, 18, 65)", inference="dataset")],
)
def test_contract(method: Counts | Shares) -> None:
    assert check_method(method, SCHEMA, replications=8).ok


def test_without_noise_they_are_the_numbers_of_pandas() -> None:
    frame = records(2_000)
    found = exact(Counts("region * smoker", inference="dataset"), frame)
    for region, smoker in product("NSW", ("no", "yes")):
        expected = ((frame.region == region) & (frame.smoker == smoker)).sum()
        assert found[f"region={region}, smoker={smoker}"] == pytest.approx(expected, abs=1e-9)
    assert found["total"] == pytest.approx(2_000, abs=1e-9)
    shares = exact(Shares("region * smoker", within="region", inference="dataset"), frame)
    expected = frame.groupby("region").smoker.value_counts(normalize=True)
    assert shares["region=S, smoker=yes"] == pytest.approx(expected["S", "yes"], abs=1e-12)
    ages = exact(Counts("cut(age, 18, 65)", inference="dataset"), frame)
    assert ages["cut(age, 18, 65)=[18, 65)"] == pytest.approx(
        frame.age.between(18, 65, inclusive="left").sum(), abs=1e-9
    )


def test_margins_add_up_and_variances_are_those_of_dense_least_squares() -> None:
    sizes, g = (3, 2, 4), np.random.default_rng(0)
    variances = {(0, 1, 2): 0.7, (0,): 2.0, (1, 2): 0.3, (): 5.0, (0, 2): 1.1}
    noisy = {axes: g.normal(size=(1, *(sizes[axis] for axis in axes))) for axes in variances}
    own = Margins.of(sizes, {axes: (noisy[axes], variances[axes]) for axes in variances})
    cells = list(product(*map(range, sizes)))

    def rows(axes: tuple[int, ...]) -> np.ndarray:
        levels = list(product(*(range(sizes[axis]) for axis in axes)))
        return np.array([[float(tuple(cell[axis] for axis in axes) == level) for cell in cells] for level in levels])

    design = np.vstack([rows(axes) for axes in variances])
    weights = np.concatenate([np.full(len(rows(axes)), 1 / variances[axes]) for axes in variances])
    covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
    best = covariance @ design.T @ (weights * np.concatenate([noisy[axes].ravel() for axes in variances]))
    for axes in ((), (0,), (1,), (0, 1), (1, 2), (0, 1, 2)):
        np.testing.assert_allclose(own.table(axes)[0].ravel(), rows(axes) @ best, atol=1e-9)
        np.testing.assert_allclose(own.variance(axes), np.diag(rows(axes) @ covariance @ rows(axes).T), atol=1e-9)
    across = rows((0, 1)) @ covariance @ rows((1, 2)).T
    assert own.covariance(((0, 1), (1, 1)), ((1, 2), (1, 2))) == pytest.approx(across[3, 6], abs=1e-9)
    np.testing.assert_allclose(own.table((0, 1))[0].sum(axis=1), own.table((0,))[0], atol=1e-9)
    drawn = own.noise([(0, 1), (1, 2)], 20_000, g)
    seen = drawn[0].reshape(20_000, -1).T @ drawn[1].reshape(20_000, -1) / 20_000
    np.testing.assert_allclose(seen, across, atol=0.03)


@pytest.mark.parametrize(
    ("sizes", "ways", "expected"),
    [
        ((12, 2), (0, 1, 2), 1.0),
        ((8, 2, 12), (0, 1, 2, 3), 1.0),
        ((9, 16, 7, 15, 6, 5), (0, 1, 2), 1.0135),
        ((9, 16, 7, 15, 6, 5), (2,), 1.068),
        ((9, 16, 7, 15, 6, 5), (1,), 1.039),
    ],
)
def test_shares_are_near_the_optimum_of_all_gaussian_mechanisms(
    sizes: tuple[int, ...], ways: tuple[int, ...], expected: float
) -> None:
    own = Strategy.of(sizes, subsets(sizes, tuple(range(max(ways) + 1))), subsets(sizes, ways))
    assert own.loss / own.least == pytest.approx(expected, rel=1e-3)
    assert sum(own.shares.values()) == 1


def test_precision_targets_cost_what_the_dual_says() -> None:
    sizes = (8, 2, 12)
    every = subsets(sizes, (0, 1, 2, 3))
    own, need = Strategy.for_precision(sizes, every, {axes: (25, 25, 9, 4)[len(axes)] for axes in every})
    assert need == pytest.approx(0.407, abs=0.001)
    assert all(own.variance(axes) / need <= (25, 25, 9, 4)[len(axes)] * (1 + 1e-9) for axes in every)


def test_no_largest_marginal_is_dropped() -> None:
    sizes = (2,) * 40
    own = Strategy.of(sizes, subsets(sizes, (0, 1, 2)), subsets(sizes, (0, 1, 2)))
    assert set(subsets(sizes, (2,))) <= set(own.shares)


def test_under_substitute_a_public_total_is_not_drawn() -> None:
    schema = cf.Schema({"region": SCHEMA["region"].__class__(["N", "S"], on_missing="N"), "smoker": SCHEMA["smoker"]})
    data, method = cf.read(schema.sample(500, 1), schema), Counts("region * smoker", inference="dataset")
    release = cf.release(method, data, cf.GDP(1.0, relation="substitute"), ledger=None, n=500)
    assert "(total)" not in release.statistics
    found = cf.infer(release)
    assert found.params["total"] == pytest.approx(500, abs=1e-9)
    assert found.bse["total"] == 0.0
    assert found.params[["region=N", "region=S"]].sum() == pytest.approx(500, abs=1e-9)


def test_count_intervals_cover_poisson_means_where_walds_do_not() -> None:
    g, z = np.random.default_rng(3), 1.959964
    for mean, sd in product((0.3, 2.0, 12.0, 60.0), (0.5, 2.0, 8.0)):
        y = g.poisson(mean, 20_000) + sd * g.standard_normal(20_000)
        low, high = count_interval(y, sd**2, z)
        most = 0.962 if mean >= 2 * sd else 0.98  # Y below 0 counts as 0
        assert 0.945 <= ((low <= mean) & (mean <= high)).mean() <= most
    y = g.poisson(1.0, 20_000) + 0.5 * g.standard_normal(20_000)
    half = z * np.sqrt(np.maximum(y, 0) + 0.25)
    assert (np.abs(y - 1.0) <= half).mean() < 0.9


def test_share_intervals_cover_and_without_noise_are_wilsons() -> None:
    g, z = np.random.default_rng(4), 1.959964
    for n, p, sd in ((200, 0.05, 3.0), (1_000, 0.01, 3.0), (5_000, 0.1, 10.0)):
        y, size = g.binomial(n, p, 20_000) + sd * g.standard_normal(20_000), n + 2 * sd * g.standard_normal(20_000)
        v = np.float64(sd**2)
        low, high = share_interval(y, size, v, 4 * v, np.float64(0.0), z)
        assert 0.945 <= ((low <= p) & (p <= high)).mean() <= 0.957
    zero = np.float64(0.0)
    own = share_interval(np.array([5.0]), np.array([50.0]), zero, zero, zero, z)
    wilson = stats.binomtest(5, 50).proportion_ci(method="wilson")
    np.testing.assert_allclose([own[0][0], own[1][0]], [wilson.low, wilson.high], atol=1e-6)


def test_relative_risks_cover_where_the_delta_method_loses() -> None:
    g, z = np.random.default_rng(5), 1.959964
    n, p1, p2, sd, runs = 100, 0.02, 0.1, 1 / 0.3, 8_000
    zero, v = np.float64(0.0), np.float64(sd**2)
    parts = []
    for p in (p1, p2):
        y, size = g.binomial(n, p, runs) + sd * g.standard_normal(runs), n + sd * g.standard_normal(runs)
        parts.append((np.clip(y / size, 0, 1), *share_interval(y, size, v, v, zero, z)))
    _, low, high = ratio(parts[0], parts[1])
    assert 0.945 <= ((low <= p1 / p2) & (p1 / p2 <= high)).mean() <= 0.975


def test_differences_next_to_a_share_of_one_leave_room_for_the_other_share() -> None:
    """A level whose share is 1 or 0: ends that are cut at the bounds take the other share's error away."""
    rng, z, runs, found = np.random.default_rng(8), 1.959963984540054, 20_000, {}
    for n, p, sd in ((14, 1.0, 1.0), (100, 1.0, 4.0), (100, 0.0, 4.0), (300, 0.99, 5.0)):
        for cut in (True, False):
            parts = []
            for size, share in ((2_000, 0.6), (n, p)):
                noise = sd * rng.normal(size=(2, runs))
                y = rng.binomial(size, share, runs) + noise[0]
                base = size + noise.sum(axis=0)
                low, high = share_interval(y, base, sd**2, 2 * sd**2, sd**2, z, cut=cut)
                parts.append((np.clip(y / base, *((0, 1) if cut else (-1, 2))), low, high))
            _, low, high = difference(*parts)
            found[n, p, cut] = float(((low <= 0.6 - p) & (0.6 - p <= high)).mean())
    assert min(value for (*_, cut), value in found.items() if not cut) > 0.94
    # that the cases are such
    assert max(value for (_, p, cut), value in found.items() if cut and p in (0, 1)) < 0.93


def test_differences_and_risks_of_a_level_that_is_always_yes() -> None:
    """The whole way: 60 records of one level, all of them yes, 2,000 of the other; and within the public bounds."""
    schema = cf.Schema({"region": cf.Categorical(["N", "S"]), "smoker": cf.Categorical(["no", "yes"])})
    method = Shares("region * smoker", within="region", inference="population")
    rng, hits, beyond = np.random.default_rng(9), np.zeros(2), 0
    plan = cf.plan(method, schema, cf.GDP(0.4))
    for r in range(60):
        yes = np.r_[rng.random(2_000) < 0.6, np.ones(60, dtype=bool)]
        frame = pd.DataFrame({"region": ["N"] * 2_000 + ["S"] * 60, "smoker": np.where(yes, "yes", "no")})
        table = method.infer(seal(method, cf.read(frame, schema), plan, SimulatedNoise(r)))
        cells = {"region": "S", "smoker": "yes"}, {"region": "N", "smoker": "yes"}
        own, risk = table.diff(*cells).iloc[0], table.ratio(*cells).iloc[0]
        assert -1 <= own["ci_low"] <= own["estimate"] <= own["ci_high"] <= 1
        (_, _, high), cut = table.compared((0, 1), 0, 1.96), table.ends((0, 1), 0, 1.96)[1]
        np.testing.assert_allclose(np.clip(high, 0.0, 1.0), cut)
        beyond += int(high.max() > 1.0 and own["ci_low"] > -0.95)
        hits += own["ci_low"] <= 0.4 <= own["ci_high"], risk["ci_low"] <= 1 / 0.6 <= risk["ci_high"]
    assert beyond > 40
    # 99.9 % of 60 runs at .95 (binomial)
    assert hits.min() >= stats.binom.ppf(0.0005, 60, 0.95)


def test_joint_intervals_use_the_quantile_of_numbers_that_share_noise() -> None:
    found = simulated(Counts("region * smoker", inference="dataset"), cf.read(records(3_000), SCHEMA), cf.GDP(0.5), 0)
    assert 2.6 < found.quantile(0.05, True) < 3.0  # below Sidak's quantile for 12 numbers, 2.86, by shared noise
    joint, pointwise = found.conf_int(simultaneous=True).to_numpy(), found.conf_int().to_numpy()
    assert (joint[:, 0] < pointwise[:, 0]).all() and (joint[:, 1] > pointwise[:, 1]).all()


@pytest.mark.long
def test_joint_intervals_hold_together_and_pointwise_ones_do_not() -> None:
    method, data = Counts("region * smoker", inference="dataset"), cf.read(records(3_000), SCHEMA)
    truth = exact(method, records(3_000)).to_numpy()
    together, pointwise = [], []
    for seed in range(120):
        found = simulated(method, data, cf.GDP(0.5), seed)
        for kept, joint in ((together, True), (pointwise, False)):
            limits = found.conf_int(simultaneous=joint).to_numpy()
            kept.append(((limits[:, 0] <= truth) & (truth <= limits[:, 1])).all())
    assert stats.binomtest(sum(together), 120).proportion_ci(0.999).high >= 0.95
    assert np.mean(pointwise) < 0.9
    assert 2.6 < found.quantile(0.05, True) < 3.0  # below Sidak's quantile for 12 numbers, 2.86, by shared noise


def test_differences_of_shares_use_their_covariance() -> None:
    method = Shares("region * smoker", within="region", inference="population")
    data = cf.read(records(4_000), SCHEMA)
    found = simulated(method, data, cf.GDP(1.0), 1)
    own = found.diff({"region": "S", "smoker": "yes"}, {"region": "N", "smoker": "yes"})
    assert own.ci_low.iloc[0] < 0.2 < own.ci_high.iloc[0]
    inside = found.diff({"region": "N", "smoker": "yes"}, {"region": "N", "smoker": "no"})
    error = found.bse["region=N, smoker=yes"]
    # p and 1 - p: the difference has twice the error of one
    assert (inside.ci_high - inside.ci_low).iloc[0] == pytest.approx(2 * 2 * 1.96 * error, rel=0.02)
    assert len(found.ratio("region")) == 4


def test_what_is_shown_and_written(tmp_path: object) -> None:
    found = simulated(
        Counts("region * smoker + cut(age, 18, 65)", inference="population"),
        cf.read(records(300), SCHEMA),
        cf.GDP(0.2),
        2,
    )
    text = found.summary()
    assert "the population: sampling error and privacy noise" in " ".join(text.split())
    assert re.search(r"C \(\d+ rows\): count below noise", " ".join(text.split())) and "  flags\n" in text
    frame = found.to_frame()
    assert list(frame.columns[-7:]) == ["estimate", "std_err", "ci_low", "ci_high", "privacy_share", "cv", "flags"]
    assert json.loads(found.to_json())["kind"] == "counts"
    page = found.report(f"{tmp_path}/table.html").read_text()
    assert "SIMULATED" in page
    assert "<svg" in page
    assert found.plot().get_xlabel()
    clipped = found.with_display("nonnegative")
    assert clipped.to_frame().estimate.min() >= 0.0
    assert clipped.params.equals(found.params)  # in print alone
    wide = simulated(
        Counts("region:smoker", inference="dataset"), cf.read(records(300), SCHEMA), cf.GDP(0.2), 2
    ).crosstab()
    assert wide.loc["Total", "Total"] == pytest.approx(wide.iloc[:-1, :-1].to_numpy().sum())


def test_a_question_asks_for_the_other_reading() -> None:
    release = cf.release(
        Counts("region", inference="population"),
        cf.read(records(500), SCHEMA),
        cf.GDP(1.0),
        ledger=None,
        noise=SimulatedNoise(1),
    )
    people, records_ = cf.infer(release), cf.infer(release, inference="dataset")
    assert people.params.equals(records_.params)
    assert (people.bse > records_.bse).all()
    with refuses(PlanError):
        cf.infer(release, inference="both")


def test_a_finite_population_has_narrower_intervals() -> None:
    data = cf.read(records(500), SCHEMA)
    wide, narrow = (
        simulated(Shares("region", inference="population", population_size=size), data, cf.GDP(5.0), 1)
        for size in (None, 600)
    )
    assert narrow.bse["region=N"] < 0.6 * wide.bse["region=N"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Counts("region"), PlanError),
        (lambda: Counts("region", inference="x"), PlanError),
        (lambda: Counts("region", inference="dataset", population_size=0), PlanError),
        (lambda: Counts("regoin", inference="dataset").about(SCHEMA), SchemaError),
        (lambda: Counts("age", inference="dataset").about(SCHEMA), PlanError),
        (lambda: Counts("cut(age, 120)", inference="dataset").about(SCHEMA), SchemaError),
        (lambda: Counts("age ~ region", inference="dataset").about(SCHEMA), PlanError),
        (lambda: Counts("region - smoker", inference="dataset").about(SCHEMA), PlanError),
        (lambda: Counts("log(age)", inference="dataset").about(SCHEMA), PlanError),
        (lambda: Shares("region", within="region", inference="dataset").about(SCHEMA), PlanError),
        (lambda: Shares("region", within="smoker", inference="dataset").about(SCHEMA), PlanError),
    ],
)
def test_bad_input_names_what_works(make: object, error: type[Exception]) -> None:
    with refuses(error):
        make()  # type: ignore[operator]


def test_too_many_cells_are_refused_with_a_coarser_call() -> None:
    schema = cf.Schema({name: cf.Categorical([str(k) for k in range(200)]) for name in "abc"})
    with refuses(PlanError):
        Layout.of("a:b:c", schema)


def test_a_bad_cell_is_named() -> None:
    found = simulated(Counts("region * smoker", inference="dataset"), cf.read(records(300), SCHEMA), cf.GDP(1.0), 2)
    for first, second in (
        ({"region": "Q"}, {"region": "N"}),
        ({"region": "N"}, {"smoker": "no"}),
        ({"nation": "N"}, {"region": "N"}),
        (3, {"region": "N"}),
    ):
        with refuses(PlanError):
            found.diff(first, second)
    assert found.diff({"region": "S"}, {"region": "N"}).shape == (1, 4)


def test_a_crossing_is_drawn_as_a_map() -> None:
    found = cf.infer(
        cf.release(
            Counts("region * smoker", inference="dataset"), cf.read(records(500), SCHEMA), cf.GDP(0.1), ledger=None
        )
    )
    axes = found.plot(kind="map")
    (image,) = axes.images
    assert image.get_array().shape == (3, 2)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["no", "yes"]
    assert len(axes.texts) == 6
    assert not found.plot(kind="points").images
    for table, kind in (
        (found, "pie"),
        (
            cf.infer(
                cf.release(
                    Counts("region", inference="dataset"), cf.read(records(50), SCHEMA), cf.GDP(1.0), ledger=None
                )
            ),
            "map",
        ),
    ):
        with refuses(PlanError):
            table.plot(kind=kind)


# the noise that is wished for ---------------------------------------------------------------------------------------


def test_the_least_budget_for_a_wished_noise() -> None:
    """Section 2.1's example: 8 x 2 x 12, sds 5, 5, 3, 2 cost mu^2 = .407 and a hundredth; the noise is at most what was wished."""
    schema = cf.Schema(
        {name: cf.Categorical([f"{name}{k}" for k in range(size)]) for name, size in (("a", 8), ("b", 2), ("c", 12))}
    )
    wishes = {"total": 5.0, "1-way": 5.0, "2-way": 3.0, "3-way": 2.0}
    method = Counts("a * b * c", inference="dataset", precision=wishes)
    plan = cf.plan(method, schema)
    own = 0.99 * plan.guarantee.mu**2
    assert own == pytest.approx(0.407, abs=0.002)
    strategy = method.strategy(method.about(schema))
    for axes in method.about(schema).shown:
        sd = (strategy.variance(axes) / own) ** 0.5
        assert sd <= {0: 5.0, 1: 5.0, 2: 3.0, 3: 2.0}[len(axes)] * (1 + 1e-6)
    assert cf.plan(method, schema, cf.GDP(plan.guarantee.mu)).sha256 == plan.sha256
    twice = method.priced(schema, "substitute")
    assert twice.mu == pytest.approx(plan.guarantee.mu * 2**0.5, rel=1e-6)
    again = cf.Release.from_json(
        cf.release(method, cf.read(schema.sample(200, seed=1), schema), ledger=None, noise=SimulatedNoise(1)).to_json()
    )
    assert cf.infer(again).status == "valid"


def test_a_public_total_is_not_paid_for(tmp_path: Path) -> None:
    """Under substitute the number of records is public: a wish for its noise costs nothing, and the rest is as sharp as wished."""
    schema = cf.Schema({name: cf.Categorical(list("xyz"), on_missing="x") for name in "ab"}, dataset="d")
    wishes = {"total": 0.5, "1-way": 6.0, "2-way": 5.0}
    method = Counts("a * b", inference="dataset", precision=wishes)
    unknown, known = method.priced(schema, "substitute"), method.priced(schema, "substitute", 300)
    assert unknown is not None and known is not None
    free = Counts("a * b", inference="dataset", precision={**wishes, "total": 50.0}).priced(schema, "substitute", 300)
    assert known.mu == pytest.approx(free.mu, rel=1e-3) and known.mu < unknown.mu / 4
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(9.0, relation="substitute"))
    data = cf.read(schema.sample(300, seed=1), schema, dataset="d")
    release = cf.release(method, data, n=300, ledger=book)
    assert release.plan.guarantee.mu == pytest.approx(known.mu)
    table = cf.infer(release)
    found = table.params, table.bse
    assert found[1]["total"] == 0.0 and found[1].max() == pytest.approx(6.0, rel=1e-3)
    assert found[0]["total"] == 300


@pytest.mark.parametrize(
    "precision",
    [
        {"a": 0},
        {},
        {"a:b": 3.0},
        {"total": 3.0},
    ],
)
def test_wishes_that_are_none(precision: dict[str, float]) -> None:
    schema = cf.Schema({"a": cf.Categorical(["x", "y"]), "b": cf.Categorical(["x", "y"])})
    with refuses(cf.errors.PlanError):
        cf.plan(Counts("a + b", inference="dataset", precision=precision), schema)


def test_the_groups_alone() -> None:
    """Without the total the groups have all of the budget, and a pool of tables still has what each asks for."""
    schema = cf.Schema({"a": cf.Categorical(["x", "y"]), "b": cf.Categorical(["x", "y"], on_missing="x")})
    with_total, alone = (cf.plan(Counts(text, inference="dataset"), schema, cf.GDP(1.0)) for text in ("a", "0 + a"))
    assert alone.spend("a").noise_sd < 0.9 * with_total.spend("a").noise_sd
    assert alone.target == "numbers of records by a"
    full = cf.Schema({name: cf.Categorical(["x", "y"], on_missing="x") for name in "ab"})
    both = cf.Publication({"one": Counts("0 + a:b", inference="dataset"), "two": Counts("a", inference="dataset")})
    report = cf.infer(cf.release(both, cf.read(full.sample(300, seed=1), full), cf.GDP(1.0), ledger=None))
    assert [len(report[name].to_frame()) for name in ("one", "two")] == [4, 3]


def test_powers_and_sums_of_hundreds_of_terms_are_marginals() -> None:
    schema = cf.Schema({f"c{i}": cf.Categorical(["a", "b"]) for i in range(40)})
    pairs = [f"c{i}:c{j}" for i in range(40) for j in range(i)]
    written = (" + ".join(pairs), "(" + " + ".join(f"c{i}" for i in range(40)) + ")**2")
    listed, power = (Counts(formula, inference="dataset").about(schema) for formula in written)
    assert len(listed.maximal) == len(power.maximal) == len(pairs) == 780
    with refuses(PlanError):
        Counts("(c0 + c1)**c2", inference="dataset").about(schema)
