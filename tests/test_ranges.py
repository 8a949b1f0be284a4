"""Ranges that a release finds before its sums: codes of values, the second round, what results and files say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import confide as cf
from confide.core.lost_values import NAME as LOST
from confide.core.ranges import ColumnRange, as_fine, from_fine, ranged, recoded_columns
from confide.methods.quantiles.ranges import Ranges
from confide.noise import SimulatedNoise
from confide.sums.ranges import Counts, Width, edges_of
from tests.messages import refuses

N = 8_000
COLUMNS = {
    "x": cf.Numeric(0, 1e7),
    "y": cf.Numeric(-1e6, 1e7),
    "z": cf.Numeric(0, 1e4),
    "k": cf.Integer(0, 100_000),
    "o": cf.Integer(0, 1),
    "g": cf.Categorical(["a", "b"]),
    "w": cf.Numeric(0, 10),
}
SCHEMA = cf.Schema(COLUMNS)
OPEN = cf.Schema({**COLUMNS, "x": cf.Numeric(), "y": cf.Numeric(), "z": cf.Numeric(low=0)})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x, z, g = rng.lognormal(10, 1, N), rng.normal(50, 10, N), rng.choice(["a", "b"], N)
    odds = 1 / (1 + np.exp(1 - 1e-5 * x - 0.03 * (z - 50)))
    made = {
        "x": x,
        "y": 2000 + 0.3 * x + 50 * z + rng.normal(0, 5000, N),
        "z": z,
        "k": rng.poisson(np.exp(0.5 + 0.02 * (z - 50))),
        "o": (rng.random(N) < odds).astype(int),
        "g": g,
        "w": rng.uniform(1, 5, N),
        "pid": rng.integers(0, 4_000, N),
    }
    return pd.DataFrame(made)


def released(method: Any, frame: Any, schema: cf.Schema = SCHEMA, mu: float = 1.0, **more: Any) -> cf.Release:
    return cf.release(method, cf.read(frame, schema), cf.GDP(mu, **more), ledger=None, noise=SimulatedNoise(3))


# values in order --------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_codes_of_values_keep_their_order_and_41_bits(values: list[float]) -> None:
    given = np.array(values)
    codes = as_fine(given)
    known = np.isfinite(given)
    assert (codes[~known] == -1).all() and (codes[known] >= 0).all() and (codes == np.rint(codes)).all()
    back = from_fine(codes)[known]
    assert np.allclose(back, given[known], rtol=2.0**-40, atol=1e-300)
    order = np.argsort(given[known], kind="stable")
    assert (np.diff(codes[known][order]) >= 0).all()


@given(st.integers(-(2**41), 2**41))
def test_whole_numbers_stay_what_they_are(value: int) -> None:
    assert from_fine(as_fine(np.array([float(value)])))[0] == value


# the second round ---------------------------------------------------------------------------------------------------------

METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "means": (cf.tables.Means, {"formula": "x + k ~ g", "inference": "population"}),
    "totals": (cf.tables.Totals, {"formula": "x ~ g", "inference": "dataset"}),
    "weighted means": (cf.tables.Means, {"formula": "x ~ g", "inference": "population", "weights": "w"}),
    "a derived term": (cf.tables.Means, {"formula": "y - k ~ g", "inference": "population"}),
    "ratios": (cf.tables.Ratios, {"formula": "x / z ~ g", "inference": "population"}),
    "table one": (cf.tables.TableOne, {"formula": "x + z + k + o ~ g", "medians": ("k",)}),
    "line": (cf.regression.LeastSquares, {"formula": "y ~ x + z + g"}),
    "line of a log": (cf.regression.LeastSquares, {"formula": "y ~ log1p(x) + z:g"}),
    "means of a factor": (cf.regression.LeastSquares, {"formula": "y ~ g"}),
    "ssp": (cf.regression.SSP, {"formula": "y ~ x + z"}),
    "logit": (cf.regression.Logistic, {"formula": "o ~ x + z"}),
    "poisson": (cf.regression.Poisson, {"formula": "k ~ x + z"}),
    "correlation": (cf.tests.Correlation, {"formula": "x + y"}),
    "correlations": (cf.reduction.Correlations, {"columns": "x + y + z"}),
    "classes": (cf.classification.ClassMeans, {"formula": "g ~ x + z"}),
    "kernel": (cf.curves.Kernel, {"formula": "y ~ x"}),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_release_in_found_ranges_says_what_one_with_these_bounds_says(name: str, frame: pd.DataFrame) -> None:
    """What is drawn after the ranges are the sums of a schema with these bounds, to the bit: without noise they are alike."""
    kind, facts = METHODS[name]
    release = released(kind(**facts, bounds="found"), frame)
    assert release.ranges and all(own.clips for own in release.ranges.values())
    result = cf.infer(release)
    assert result.status == "valid"
    assert cf.infer(cf.Release.from_json(release.to_json())).to_json() == result.to_json()
    method, schema = kind(**facts, bounds="declared"), ranged(SCHEMA, release.ranges)
    again = method.plan(schema, cf.GDP(1.0, relation="add-remove"))
    source = cf.read(frame.astype({"x": "float32", "y": "float32", "z": "float32"}), SCHEMA)
    # values outside the declared bounds are counted apart
    names = [one for one in again.statistics if one != LOST]
    near = cf.read(frame.astype({"x": "float32", "y": "float32", "z": "float32"}), schema)
    asked = [again.statistics[one] for one in names]
    for one, other in zip(
        near.aggregate(*asked), recoded_columns(source, schema, release.ranges).aggregate(*asked), strict=True
    ):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("name", ["means", "line", "logit"])
def test_columns_need_no_bounds(name: str, relation: str, frame: pd.DataFrame) -> None:
    kind, facts = METHODS[name]
    facts = facts | ({"formula": "x ~ g"} if name == "means" else {})
    found, told = (
        cf.infer(released(kind(**facts, bounds=bounds), frame, schema, relation=relation)).to_frame()
        for bounds, schema in (("auto", OPEN), ("auto", SCHEMA))
    )
    assert found["std_err"].notna().all()
    # between 1/2 and 2 times those with bounds a thousand times too wide
    assert (found["std_err"] < 2 * told["std_err"]).all() and (told["std_err"] < 2 * found["std_err"]).all()


def test_a_column_without_bounds_is_refused_where_no_range_is_found(frame: pd.DataFrame) -> None:
    data, asked = cf.read(frame, OPEN), {"privacy": cf.GDP(1.0), "ledger": None}
    with refuses(cf.errors.PlanError):
        cf.release(cf.tables.Means("x ~ g", inference="population", bounds="declared"), data, cf.GDP(1.0), ledger=None)
    with refuses(cf.errors.PlanError):
        cf.tables.quantiles("x ~ g", data, **asked)
    with refuses(cf.errors.PlanError):
        cf.release(
            cf.tables.Means("k ~ g", inference="population", bounds="auto", where="x > 3"),
            data,
            cf.GDP(1.0),
            ledger=None,
        )
    with refuses(cf.errors.PlanError):
        cf.release(cf.tables.Counts("g", inference="dataset", where="x > 3"), data, cf.GDP(1.0), ledger=None)
    with refuses(cf.errors.PlanError):
        cf.tables.Means("x ~ g", inference="population", bounds="wide").plan(SCHEMA, cf.GDP(1.0))


def test_few_values_labels_and_columns_of_conditions_have_no_range_to_find(frame: pd.DataFrame) -> None:
    method = cf.tables.Means("x + o ~ g:cut(z, 50)", inference="population", bounds="auto", where="k > 0")
    assert set(released(method, frame).ranges) == {"x"}
    few = cf.Schema({**COLUMNS, "k": cf.Integer(0, 15)})
    assert not released(cf.tables.Means("k ~ g", inference="population", bounds="found"), frame, few).ranges
    inside = cf.tables.Means("k + x ~ 1", inference="population", bounds="auto", where="k > 1")
    assert set(released(inside, frame).ranges) == {"x"}


def test_units_and_clusters_are_bounded_before_ranges_are_found(frame: pd.DataFrame) -> None:
    for unit in (cf.Unit("pid"), cf.Unit("pid", rows=3, rule="keep")):
        schema = cf.Schema(COLUMNS, unit=unit)
        own = cf.infer(released(cf.regression.LeastSquares("y ~ x + z", bounds="auto"), frame, schema))
        assert own.status == "valid" and abs(own.to_frame().loc["x", "estimate"] - 0.3) < 0.03
    kept = cf.infer(
        released(
            cf.tables.Means("x ~ g", inference="population", bounds="auto"),
            frame,
            cf.Schema(COLUMNS, unit=cf.Unit("pid")),
        )
    )
    assert kept.status == "valid"


# what is said -----------------------------------------------------------------------------------------------------------------


def test_the_title_names_what_was_clipped(frame: pd.DataFrame) -> None:
    table = cf.infer(released(cf.tables.Means("x ~ g", inference="population", bounds="auto"), frame))
    high = f"{table.ranges['x'].high:,.10g}"
    assert table.title == f"Mean x by g, x top-coded at {high}" and f"x top-coded at {high}" in str(table)
    test = table.test("t", "g")
    assert f"top-coded at {high}" in test.title and f"Ranges         x top-coded at {high}" in test.summary()
    assert table.to_dict()["ranges"]["x"]["high"] == table.ranges["x"].high
    line = cf.infer(released(cf.regression.LeastSquares("y ~ x", bounds="auto"), frame))
    assert "y clipped to [" in dict(line.legend)["Ranges"]


def test_declared_bounds_are_kept_where_their_noise_is_small(frame: pd.DataFrame) -> None:
    near = cf.Schema({**COLUMNS, "z": cf.Numeric(0, 110)})
    auto = released(cf.tables.Means("z ~ 1", inference="population", bounds="auto"), frame, near)
    assert auto.ranges["z"].kept and "coded" not in cf.infer(auto).title
    # a range may still have the declared ends; in wider bounds it has others
    wide = cf.Schema({**COLUMNS, "z": cf.Numeric(-100, 200)})
    assert not released(cf.tables.Means("z ~ 1", inference="population", bounds="found"), frame, wide).ranges["z"].kept


def test_where_noise_hides_the_values_the_result_says_so(frame: pd.DataFrame) -> None:
    table = cf.infer(released(cf.tables.Means("x ~ g", inference="population", bounds="auto"), frame, OPEN, mu=0.002))
    assert table.status == "no_information" and "x" in table.reason


def test_an_altered_range_is_refused(frame: pd.DataFrame) -> None:
    text = released(cf.tables.Means("x ~ g", inference="population", bounds="auto"), frame).to_json()
    for low, high in ((-1.0, 5.0), (5.0, 4.0), (0.0, 1e8)):
        array = ColumnRange(low, high).to_array()
        public = {**cf.Release.from_json(text).public, "range of x": array}
        with pytest.raises(cf.errors.ReleaseError):
            own = cf.Release.from_json(text)
            cf.Release(own.plan, own.status, own.statistics, own.guarantees, public=public, simulated=own.simulated)


# publications -----------------------------------------------------------------------------------------------------------------


def test_a_publication_finds_the_ranges_of_its_analyses_once(frame: pd.DataFrame) -> None:
    asked = {
        "means": cf.tables.Means("x ~ g", inference="population", bounds="auto"),
        "line": cf.regression.LeastSquares("y ~ x + z", bounds="auto"),
        "some": cf.tables.Means("x ~ 1", inference="population", bounds="auto", where="o == 1"),
        "counts": cf.tables.Counts("g", inference="dataset"),
    }
    release = released(cf.Publication(asked), frame, mu=2.0)
    spent = [name for name in release.statistics if name.startswith("range of ")]
    assert sorted(spent) == ["range of x", "range of y", "range of z"]
    assert {name: sorted(release.child(name).ranges) for name in release.plan.children} == {
        "means": ["x"],
        "line": ["x", "y", "z"],
        "some": ["x"],
        "counts": [],
    }
    report = cf.infer(cf.Release.from_json(release.to_json()))
    assert all(one.status == "valid" for one in report.results.values())
    # a line is not of the wide range of a mean
    assert release.child("line").ranges["x"].high < release.child("means").ranges["x"].high


def test_analyses_of_units_share_ranges(frame: pd.DataFrame) -> None:
    """The histogram of the units' rows is drawn once, by the first analysis, in its ranges."""
    asked = {
        "means": cf.tables.Means("x ~ g", inference="population", bounds="auto"),
        "line": cf.regression.LeastSquares("y ~ x", bounds="auto"),
    }
    release = released(cf.Publication(asked), frame, cf.Schema(COLUMNS, unit=cf.Unit("pid")), mu=2.0)
    report = cf.infer(cf.Release.from_json(release.to_json()))
    assert {one.status for one in report.results.values()} == {"valid"}


def test_analyses_that_share_ranges_cannot_cut_a_column_without_bounds() -> None:
    asked = {name: cf.tables.Means(f"y ~ {name}", inference="population") for name in ("g", "cut(x, 20_000)")}
    with refuses(cf.errors.PlanError):
        cf.plan(cf.Publication({"one": asked["g"], "two": asked["cut(x, 20_000)"]}), OPEN, cf.GDP(1.0))


# the rule ---------------------------------------------------------------------------------------------------------------------


def counts_of(values: np.ndarray[Any, Any], column: Any, sd: float = 1e-6) -> Counts:
    edges = np.array(edges_of(column))
    inside = np.clip(values, edges[0], edges[-1])
    sds = np.full(len(edges), sd)
    return Counts(np.histogram(inside, edges)[0].astype(float), edges, sds, sds)


@pytest.mark.parametrize(
    "values", [np.zeros(5_000), np.full(5_000, 1e4), np.full(5_000, 12.5), np.array([]), np.array([3.0])]
)
@pytest.mark.parametrize("column", [cf.Numeric(0, 1e4), cf.Numeric(), cf.Numeric(low=0)], ids=["bounds", "none", "low"])
@pytest.mark.parametrize("width", [Width(1.0), Width.of_means((1.5, 1.5), 1)], ids=["coefficients", "means"])
def test_odd_columns_have_a_range(values: np.ndarray[Any, Any], column: Any, width: Width) -> None:
    found = counts_of(values, column).range(width, column.declared)
    assert column.low <= found.low < found.high <= column.high
    assert 0 <= found.beyond_low <= found.beyond_high <= 1


def test_coefficients_end_at_eight_standard_deviations() -> None:
    values = np.random.default_rng(1).normal(0, 1, 100_000)
    found = counts_of(values, cf.Numeric(-1e6, 1e6)).range(Width(1.0), (True, True))
    assert 7 < found.high < 9.5 and -9.5 < found.low < -7 and found.beyond == 0


@pytest.mark.parametrize("column", [cf.Numeric(0, 1e6), cf.Numeric()], ids=["bounds", "none"])
def test_the_interval_of_the_share_beyond_covers_it_at_the_range_that_the_counts_chose(column: Any) -> None:
    """False alarms: at most .001 for each column. In fewer than 133 of 150 releases a 95% interval then covers."""
    values = np.random.default_rng(2).lognormal(3, 1.2, 4_000)
    data = cf.read({"x": values}, cf.Schema({"x": column}))
    method = cf.tables.Means("x ~ 1", inference="population", bounds="found")
    hits = 0
    for seed in range(150):
        own = cf.release(method, data, cf.GDP(0.5), ledger=None, noise=SimulatedNoise(seed)).ranges["x"]
        assert not own.kept
        beyond = float(np.mean((values < own.low) | (values > own.high)))
        hits += own.beyond_low <= beyond <= own.beyond_high
    assert hits >= stats.binom.ppf(0.001, 150, 0.95) == 133


# what differs -------------------------------------------------------------------------------------------------------------------


def test_releases_with_different_ranges_are_not_combined(frame: pd.DataFrame) -> None:
    asked, data = {"formula": "x ~ g", "inference": "population"}, cf.read(frame, SCHEMA)

    def one(bounds: str, mu: float, seed: int) -> cf.Release:
        method = cf.tables.Means(**asked, bounds=bounds)
        return cf.release(method, data, cf.GDP(mu), ledger=None, noise=SimulatedNoise(seed))

    first, narrow, declared = one("auto", 1.0, 1), one("auto", 0.3, 2), one("declared", 1.0, 3)
    assert first.ranges["x"].high != narrow.ranges["x"].high
    for pair in ([first, narrow], [first, declared], [declared, first]):
        with refuses(cf.errors.PlanError):
            cf.infer(pair)
    again = next(other for other in (one("auto", 1.0, seed) for seed in range(4, 40)) if _ends(other) == _ends(first))
    assert cf.infer([first, again]).title == cf.infer(first).title
    # bounds that were kept are the declared ones
    wide = cf.tables.Means("z ~ 1", inference="population", bounds="auto")
    near = cf.read(frame, cf.Schema({**COLUMNS, "z": cf.Numeric(0, 110)}))
    kept, told = (
        cf.release(method, near, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed))
        for seed, method in enumerate((wide, cf.tables.Means("z ~ 1", inference="population", bounds="declared")))
    )
    assert kept.ranges["z"].kept and cf.infer([kept, told]).status == "valid"


def _ends(release: cf.Release) -> tuple[float, float]:
    return release.ranges["x"].low, release.ranges["x"].high


@pytest.mark.parametrize(
    "column", [cf.Numeric(1e9, 1e9 + 1e-3), cf.Numeric(1e15, 1e15 + 1e3), cf.Integer(2**50, 2**50 + 1_000)], ids=str
)
def test_columns_far_from_0_have_no_range_to_find(column: Any, frame: pd.DataFrame) -> None:
    """Edges of 12 digits, and codes of 41 bits, do not tell their values apart."""
    values = column.low + np.rint(1000 * np.random.default_rng(1).random(N)) / 1000 * (column.high - column.low)
    schema = cf.Schema({**COLUMNS, "z": column})
    release = released(
        cf.tables.Means("z ~ 1", inference="population", bounds="found"), frame.assign(z=values), schema, mu=5.0
    )
    estimate = float(cf.infer(release).to_frame()["estimate"].iloc[0])
    with refuses(cf.errors.PlanError):
        Ranges("z").plan(schema, cf.GDP(1.0))
    assert not release.ranges and abs(estimate - values.mean()) < 0.05 * (column.high - column.low)


def test_a_term_with_the_name_of_a_column_is_refused(frame: pd.DataFrame) -> None:
    schema = cf.Schema({**COLUMNS, "y - k": cf.Numeric(0, 1e4)})
    with refuses(cf.errors.PlanError):
        cf.tables.Means("y - k ~ g", inference="population", bounds="auto").plan(schema, cf.GDP(1.0))


def test_shared_ranges_are_not_for_the_analyses_of_a_user() -> None:
    with refuses(cf.errors.PlanError):
        cf.Publication({"one": cf.tables.Means("x ~ g", inference="population", bounds="shared")})


def test_a_range_as_a_question_of_its_own_is_named_as_others(frame: pd.DataFrame) -> None:
    found = cf.infer(released(Ranges("x"), frame)).ranges["x"]
    assert found.declared == (0, 1e7) and found.named == f"top-coded at {found.high:,.10g}"
