"""Several responses on one Gram matrix: the sensitivity through the integers, OLS without noise, the covariance across responses."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
import confide.audit
import confide.testing
from confide.core import leaves
from confide.core.events import paths
from confide.methods.regression.ssp.draw import responses_of
from confide.methods.regression.sums.linear_rows import BlockGram, BlockRows, LinearRows, block_numbers, least
from confide.noise import SimulatedNoise
from confide.sums.coding import Box
from confide.testing import ZeroNoise, codes_of
from confide_lab.benchmarks.coverage import consistent

SCHEMA = cf.Schema(
    {
        "a": cf.Numeric(-2, 3),
        "b": cf.Numeric(0, 10),
        "y1": cf.Numeric(-20, 30),
        "y2": cf.Numeric(-30, 30),
        "y3": cf.Numeric(0, 5),
    }
)
TWO = "y1 + y2 ~ a + b"
BOUND = 1 << 40


def records(n: int, seed: int) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    e = g.standard_normal((n, 2)) @ np.array([[2.0, 1.6], [0.0, 1.2]])
    frame = pd.DataFrame({"a": g.uniform(-2, 3, n), "b": g.uniform(0, 10, n)})
    frame["y1"] = 1.5 + 2 * frame.a - 0.5 * frame.b + e[:, 0]
    frame["y2"] = -3 + 2 * frame.a + frame.b + e[:, 1]
    frame["y3"] = g.uniform(0, 5, n)
    return frame


def release(method: object, frame: object, *, mu: float = 1.0, noise: object = None, **more: object) -> cf.Release:
    privacy = cf.GDP(mu, relation=more.get("relation"))
    return cf.release(method, cf.read(frame, SCHEMA), privacy, ledger=None, noise=noise or SimulatedNoise(1))


def method(formula: str = TWO, **settings: object) -> cf.regression.SSP:
    return cf.regression.SSP(formula, **{"recenter": False, **settings})


# what is read ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("y1 + y2 ~ a", ("y1 ~ a", "y2 ~ a")),
        ("`net pay` + log(y2) + y3 ~ a", ("`net pay` ~ a", "log(y2) ~ a", "y3 ~ a")),
        ("y1 / 1000 ~ a", ("y1 / 1000 ~ a",)),
        ("y1 + 1 ~ a", ("y1 + 1 ~ a",)),
        ("y1 - y2 ~ a", ("y1 - y2 ~ a",)),
        ("I(y1 + y2) ~ a", ("I(y1 + y2) ~ a",)),
        ("y1 +  ~ a", ("y1 +  ~ a",)),
    ],
)
def test_a_sum_on_the_left_is_several_responses(formula: str, parts: tuple[str, ...]) -> None:
    assert responses_of(formula) == parts


@pytest.mark.parametrize("formula", ["y1 + y1 ~ a", "y1 + a ~ a", "y1 + zz ~ a"])
def test_impossible_responses_are_refused(formula: str) -> None:
    with pytest.raises(cf.errors.PlanError):
        cf.plan(method(formula), SCHEMA, cf.GDP(1.0))


# sensitivity -----------------------------------------------------------------------------------------------------------


def _corners(seed: int, rows: int = 400) -> np.ndarray:
    """Extreme and random records: all ends and middles, and hostile values."""
    g = np.random.default_rng(seed)
    ends = [[-2, 0.5, 3], [0, 5, 10], [-20, 5, 30], [-30, 0, 30], [0, 2.5, 5]]
    grid = np.array(list(product(*ends)), dtype=float)
    wild = g.choice([-1e300, -5.0, 0.0, 1e-9, 3.0, 1e300], size=(rows, 5))
    inside = np.column_stack([g.uniform(lo, hi, rows) for lo, _, hi in ends])
    return np.vstack([grid, wild, inside])


def _maps(formula: str, products: bool, box: Box | None) -> tuple[object, np.ndarray]:
    layout = method(formula, products=products, recenter="auto")._layout(SCHEMA)
    statistic = layout.moments_in(box)
    frame = pd.DataFrame(_corners(3), columns=list(SCHEMA.names))
    return statistic, statistic.map(codes_of(cf.read(frame, SCHEMA), statistic.map)).astype(np.int64).astype(object)


_BOXES = [None, Box((0.5, 5.0), (2.5, 5.0)), Box((2.9, 9.0), (0.05, 0.1))]


@pytest.mark.parametrize("formula", [TWO, "y1 + y2 + y3 ~ a + b", "y1 ~ a + b"])
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("box", _BOXES)
def test_no_record_moves_the_moments_beyond_what_is_charged(formula: str, products: bool, box: Box | None) -> None:
    statistic, rows = _maps(formula, products, box)
    one = statistic.moved_squared(np.zeros(rows.shape[0], dtype=object), rows)
    assert max(one) <= statistic.sensitivity_squared("add-remove")
    g = np.random.default_rng(1)
    for j in [*g.choice(rows.shape[1], 60, replace=False), int(np.argmax(one))]:
        assert max(statistic.moved_squared(rows[:, j], rows)) <= statistic.sensitivity_squared("substitute")


@pytest.mark.parametrize("formula", [TWO, "y1 + y2 + y3 ~ a + b"])
@pytest.mark.parametrize("products", [False, True])
def test_the_moments_are_the_exact_sums_and_their_changes(formula: str, products: bool) -> None:
    """`moved_squared` against the Frobenius distance of the statistics of two neighbouring data sets."""
    layout = method(formula, products=products, recenter="auto")._layout(SCHEMA)
    statistic = layout.moments
    frame = pd.DataFrame(_corners(5, 20), columns=list(SCHEMA.names)).iloc[[0, 40, 100, 200]]
    codes = codes_of(cf.read(frame, SCHEMA), statistic.map)
    rows = statistic.map(codes).astype(np.int64).astype(object)
    values = [statistic.value(statistic.update(statistic.zero(), codes[:, [j]])) for j in range(4)]
    for i, j in product(range(4), repeat=2):
        direct = ((values[i] - values[j]) ** 2).sum()
        assert direct == statistic.moved_squared(rows[:, i], rows[:, [j]])[0]
    p = 3
    hidden = np.array([value[p:, p:] - np.diag(np.diag(value[p:, p:])) for value in values])
    assert (hidden == 0).all() != products


def test_a_worst_record_attains_the_bound() -> None:
    for products in (False, True):
        statistic, _ = _maps(TWO, products, None)
        record = pd.DataFrame([[3.0, 10.0, 30.0, 30.0, 0.0]], columns=list(SCHEMA.names))
        row = statistic.map(codes_of(cf.read(record, SCHEMA), statistic.map)).astype(np.int64).astype(object)
        moved = statistic.moved_squared(np.zeros(len(row), dtype=object), row)[0]
        assert float(Fraction(moved) / statistic.sensitivity_squared("add-remove")) == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("blocks", [(64, 32, 16), (64, 50, 40), (64, 64, 64), (10, 20, 30), (64, 8, 1)])
def test_the_least_inner_product_is_found(m: int, blocks: tuple[int, int, int]) -> None:
    """Against a search: no point of the cube lies below the exact minimum, and one comes near it."""
    a2, b2, c2 = (x * x for x in blocks)
    exact = least(Fraction(a2), Fraction(b2), Fraction(c2), m)
    s = np.linspace(-1, 1, 2001)[:, None]
    r = np.linspace(-1, 1, 401)[None, :]
    found = float((a2 * s**2 + m * (2 * b2 * s * r + c2 * r**2)).min())
    assert found >= exact - 1e-9
    assert found <= exact + 0.01 * a2
    g = np.random.default_rng(m)
    point = g.uniform(-1, 1, (20_000, m + 1))
    values = a2 * point[:, 0] ** 2 + (2 * b2 * point[:, :1] * point[:, 1:] + c2 * point[:, 1:] ** 2).sum(axis=1)
    assert values.min() >= exact


def test_the_charge_exceeds_root_two_and_no_pair_found_exceeds_the_charge() -> None:
    """Without the products of responses the matrix is not positive semi-definite, so sqrt(2) has no proof; an optimiser looks for pairs."""
    blocks = block_numbers(1 + 2 / 3, method()._layout(SCHEMA).g2)
    a2, b2, c2 = (x * x for x in blocks)
    whole, cap = a2 + 4 * b2 + 2 * c2, 1 + 2 / 3

    def unlike(v: np.ndarray) -> float:
        pair = []
        for part in (v[:4], v[4:]):
            z = np.array([1.0, *np.tanh(part[:2])])
            w = min(1.0, cap / (z @ z))
            pair.append((sqrt(w / cap) * z, sqrt(w) * np.tanh(part[2:])))
        (z, t), (u, s) = pair

        def inner(z: np.ndarray, t: np.ndarray, u: np.ndarray, s: np.ndarray) -> float:
            return float(a2 * (z @ u) ** 2 + 2 * b2 * (z @ u) * (t @ s) + c2 * (t * s) @ (t * s))

        return -(inner(z, t, z, t) + inner(u, s, u, s) - 2 * inner(z, t, u, s)) / whole

    g = np.random.default_rng(2)
    most = max(-optimize.minimize(unlike, g.normal(size=8) * 2, method="Nelder-Mead").fun for _ in range(20))
    charged = float(2 * (whole - least(Fraction(a2), Fraction(b2), Fraction(c2), 2)) / whole)
    assert charged > 2.0 and most <= charged


@pytest.mark.parametrize("theta", [(), (np.nan, 1.0, -1e300), (1e300, 1e300, 1e300)])
def test_no_residual_row_goes_beyond_its_bound(theta: tuple[float, ...]) -> None:
    layout = method()._layout(SCHEMA)
    frame = pd.DataFrame(_corners(4), columns=list(SCHEMA.names))
    for box in _BOXES:
        for k in range(2):
            rows = LinearRows(layout.whole, layout.cap, outcomes=2, residual=k, theta=theta, box=box)
            whole = rows(codes_of(cf.read(frame, SCHEMA), rows)).astype(np.int64).astype(object)
            assert max((whole * whole).sum(axis=0)) <= BOUND


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("cov", ["robust", "classical"])
@pytest.mark.parametrize("recenter", ["auto", False])
def test_what_is_drawn_is_what_is_promised(relation: str, products: bool, cov: str, recenter: object) -> None:
    plan = cf.plan(method(products=products, cov=cov, recenter=recenter), SCHEMA, cf.GDP(0.7, relation=relation))
    spends = {leaf.name: leaf for leaf in leaves(plan.event)}
    ways = list(paths(plan.event))
    assert len(ways) == (2 if recenter else 1) and set().union(*ways) == set(spends)
    for names in ways:
        total = sum((spends[name].sensitivity ** 2 / spends[name].scale for name in names), Fraction(0))
        assert total <= Fraction(0.7) ** 2
        assert sqrt(total) == pytest.approx(0.7, rel=1e-9)


def test_a_record_has_the_same_integers_in_any_batch() -> None:
    layout = method()._layout(SCHEMA)
    frame = pd.DataFrame(_corners(6), columns=list(SCHEMA.names))
    for rows in (
        BlockRows(layout.whole, layout.cap, outcomes=2, box=_BOXES[2]),
        LinearRows(layout.whole, layout.cap, outcomes=2, box=_BOXES[2]),
        LinearRows(layout.whole, layout.cap, outcomes=2, residual=1, theta=(0.1, 0.2, 0.3), box=_BOXES[2]),
    ):
        codes = codes_of(cf.read(frame, SCHEMA), rows)
        apart = np.column_stack([rows(codes[:, [j]].copy())[:, 0] for j in range(0, codes.shape[1], 17)])
        assert (rows(codes)[:, ::17] == apart).all()


# estimates -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", ["a + b", "0 + a + b", "a*b + I(a**2)"])
@pytest.mark.parametrize("products", [False, True])
def test_without_noise_each_table_is_ols(right: str, products: bool) -> None:
    frame = records(3_000, 4)
    d = len(cf.schema.ModelMatrix.of(f"y1 ~ {right}", SCHEMA).terms)
    made = release(
        method(f"y1 + y2 ~ {right}", leverage_cap=1 + d, products=products), frame, noise=ZeroNoise(), mu=1e4
    )
    result = cf.infer(made)
    design = cf.schema.ModelMatrix.of(f"y1 ~ {right}", SCHEMA).matrix(frame)
    for name in ("y1", "y2"):
        ols = sm.OLS(frame[name].to_numpy(), design).fit()
        table = result[name]
        assert np.abs((table.params.to_numpy() - ols.params) / ols.bse).max() < 1e-2
        np.testing.assert_allclose(table.bse, ols.get_robustcov_results("HC0").bse, rtol=2e-2)
        assert result.params[f"{name}: a"] == table.params["a"]


def test_with_products_the_covariance_across_is_that_of_seemingly_unrelated_regressions() -> None:
    frame = records(4_000, 5)
    made = release(method(leverage_cap=3, products=True, cov="classical"), frame, noise=ZeroNoise(), mu=1e4)
    result = cf.infer(made)
    x = sm.add_constant(frame[["a", "b"]]).to_numpy()
    residuals = frame[["y1", "y2"]].to_numpy() - x @ np.linalg.lstsq(x, frame[["y1", "y2"]].to_numpy(), rcond=None)[0]
    sigma = residuals.T @ residuals / (len(x) - 3)
    expected = np.kron(sigma, np.linalg.inv(x.T @ x))
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(result.cov_params().to_numpy() - expected) / size).max() < 5e-3


def test_a_test_across_responses_needs_more_room_without_products() -> None:
    frame = records(5_000, 6)
    sharp, loose = (cf.infer(release(method(products=products), frame, mu=3.0)) for products in (True, False))
    same = "y1: a = y2: a"
    assert sharp.t_test(same).sd[0] < loose.t_test(same).sd[0]
    assert sharp.wald_test(same).pvalue == pytest.approx(sharp.t_test(same).pvalue[0])
    assert loose.wald_test(same).pvalue == pytest.approx(loose.t_test(same).pvalue[0])
    # within a response the table of it is used
    assert loose.wald_test("y1: a = 2").pvalue == pytest.approx(loose["y1"].wald_test("a = 2").pvalue, rel=0.2)
    assert "upper bound" in dict(loose.legend)["Across"]


def test_three_responses_and_a_test_of_two_of_them() -> None:
    result = cf.infer(release(method("y1 + y2 + y3 ~ a + b", cov="classical"), records(5_000, 7), mu=3.0))
    assert list(result.tables) == ["y1", "y2", "y3"]
    assert result.joint is not None and np.linalg.eigvalsh(result.joint.covariance(np.eye(9))).min() > -1e-12
    two = result.wald_test("y1: a = y2: a")
    by_hand = np.array([0, 1, 0, 0, -1, 0, 0, 0, 0.0])
    own = result.covariance + result.loose
    assert two.statistic == pytest.approx(float((by_hand @ result.estimates) ** 2 / (by_hand @ own @ by_hand)))


def test_a_file_gives_the_same_table_and_a_subset_holds_for_each_response() -> None:
    made = release(method(), records(3_000, 8))
    again = cf.Release.from_json(made.to_json())
    assert cf.infer(again).to_json() == cf.infer(made).to_json()
    part = cf.infer(again, subset=("a",))
    assert part.names == ("y1: Intercept", "y1: a", "y2: Intercept", "y2: a")
    assert "submodel_classical" not in part.flags
    with refuses(cf.errors.PlanError):
        part["y3"]
    with refuses(cf.errors.PlanError):
        part.predict(records(3, 1))
    assert "y2: a" in part.summary() and "y2: a" in part._repr_html_()


def test_few_records_have_a_status_in_every_table() -> None:
    result = cf.infer(release(method(), records(20, 9), mu=0.1))
    assert result.status in ("imprecise", "not_identified")
    assert result["y2"].status == result.status and result["y2"].bse.isna().all()
    assert np.isnan(result.wald_test("y1: a = y2: a").pvalue)


@pytest.mark.long
def test_the_errors_of_two_responses_are_correlated_as_stated() -> None:
    """The sample covariance of 150 noisy lines against the noise part stated for one: 6 sds of a correlation at most."""
    frame = records(1_500, 10)
    found, stated = [], []
    for seed in range(150):
        result = simulated(method(products=True, cov="classical"), cf.read(frame, SCHEMA), cf.GDP(1.0), seed)
        found.append(result.estimates)
        stated.append(result.covariance)
    sample = np.cov(np.array(found).T)
    # the records are the same, so what varies is the privacy noise: the loose part of another release without products
    noise = np.mean(
        [
            cf.infer(release(method(cov="classical"), frame, noise=SimulatedNoise(seed))).covariance[1, 4]
            for seed in range(20)
        ]
    )
    error = sqrt(sample[1, 1] * sample[4, 4] / 150)
    assert abs(sample[1, 4] - noise) < 6 * error
    assert np.mean([cov[1, 1] for cov in stated]) > sample[1, 1]


def test_intervals_and_tests_across_hold_their_level() -> None:
    hits, rejected = [], 0
    for r in range(80):
        result = simulated(method(products=True), cf.read(records(1_500, 100 + r), SCHEMA), cf.GDP(1.0), r)
        limits = result.conf_int().to_numpy()
        truth = np.array([1.5, 2, -0.5, -3, 2, 1])
        hits.append((limits[:, 0] <= truth) & (truth <= limits[:, 1]))
        rejected += result.wald_test("y1: a = y2: a").pvalue < 0.05
    assert consistent(np.array(hits), 0.93, 0.99)
    assert rejected <= 13  # of 80 at 5 %: more has probability below 1e-4


# contract --------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("products", [False, True])
def test_the_contract_and_the_audit_hold(products: bool) -> None:
    small = cf.Schema({"a": cf.Numeric(0, 1), "y1": cf.Numeric(0, 1), "y2": cf.Numeric(-1, 1)})
    own = cf.regression.SSP("y1 + y2 ~ a", products=products)
    assert cf.testing.check_method(own, small, replications=10, privacy=cf.GDP(3.0)).ok
    assert cf.audit.audit(own, small, runs=0).ok


def test_rows_are_dropped_for_any_missing_response() -> None:
    schema = cf.Schema({name: SCHEMA[name] for name in SCHEMA.names})
    frame = records(500, 11)
    frame.loc[:99, "y2"] = np.nan
    made = cf.release(
        method(cov="classical", leverage_cap=3), cf.read(frame, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise()
    )
    assert cf.infer(made).nobs == pytest.approx(400, abs=0.1)
    assert isinstance(method()._layout(SCHEMA).moments, BlockGram)


def test_a_factor_named_in_a_test_points_to_the_joint_test() -> None:
    schema = cf.Schema({"g": cf.Categorical(["a", "b", "c"]), "y": cf.Numeric(0, 1)})
    data = cf.read(schema.sample(2_000, seed=1), schema)
    plan_of = cf.regression.LeastSquares("y ~ g")
    result = cf.infer(cf.release(plan_of, data, cf.GDP(3.0), ledger=None, noise=SimulatedNoise(1)))
    for given in ("g", "g = 0", ["g"]):
        for call in (result.wald_test, result.t_test):
            with refuses(cf.errors.PlanError):
                call(given)
    assert result.wald_test_terms().loc["g", "pvalue"] == result.wald_test(["g[T.b]", "g[T.c]"]).pvalue
    for shown in (repr(result), repr(result.t_test("g[T.b]"))):
        assert len(shown) < 200
