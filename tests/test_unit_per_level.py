"""A person counts once in each year: which rows, what one person moves, what tables show and refuse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import confide as cf
from confide.audit import audit
from confide.core import RecordMap, Statistic, Total
from confide.core.lost_values import NAME as LOST
from confide.core.statistic import StatisticOver
from confide.core.units.privacy_unit import separates, unit_squared
from confide.noise import SimulatedNoise
from confide.sources.grouping import sampling, units as clustering
from confide.sums.cells.cell_sums import Attribute, CellCounts, CellIndex, Crossing
from confide.testing import ZeroNoise
from confide_lab.methods.gradient_descent import GradientDescent
from tests.few import few
from tests.messages import refuses
from tests.sources.executors_toy import Here
from tests.sources.records import Plain

ROWS = Total(Plain(("x",)))
COLUMNS = {
    "year": cf.Integer(2015, 2024),
    "g": cf.Categorical(["a", "b", "c"]),
    "x": cf.Numeric(0, 1),
}


def schema(groups: int | None = 3, **more: Any) -> cf.Schema:
    return cf.Schema(COLUMNS, unit=cf.Unit("pid", per="year", groups=groups), dataset="visits", **more)


def visits(n: int = 3_000, units: int = 400, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    year = g.integers(2015, 2025, n).astype(float)
    year[::40] = np.nan
    return pd.DataFrame(
        {"pid": g.zipf(1.6, n) % units, "year": year, "g": g.choice(["a", "b", "c"], n), "x": g.random(n)}
    )


def table(method: Any, data: pd.DataFrame, own: cf.Schema, noise: Any = None) -> Any:
    return cf.infer(cf.release(method, cf.read(data, own), cf.GDP(1.0), ledger=None, noise=noise or ZeroNoise()))


def test_a_cell_of_a_year_is_a_number_of_persons() -> None:
    data, own = visits(), schema(None)
    found = table(cf.tables.Counts("year * g", inference="dataset"), data, own)
    assert found.crosstab()["Total"].round(6).tolist() == data.groupby("year").pid.nunique().tolist()
    assert found.title == "Number of values of pid in each year by year and g"
    assert "Records" not in dict(found.head())
    assert not [name for name in found.params.index if "year" not in name]
    shares = table(cf.tables.Shares("year * g", within="year", inference="dataset"), data, own)
    assert np.allclose(shares.crosstab().sum(axis=1), 1.0)
    # a mean is of one row of each person: bounded by those of all its rows
    means = table(cf.tables.Means("x ~ year", inference="dataset"), data, own).params
    rows = data.groupby(["year", "pid"]).x
    for year, (low, high) in pd.concat([rows.min(), rows.max()], axis=1).groupby("year").mean().iterrows():
        assert low - 1e-6 <= means[f"x | year={int(year)}"] <= high + 1e-6


def test_at_most_so_many_years_of_a_person() -> None:
    data = visits()
    years = data.dropna().drop_duplicates(["pid", "year"]).groupby("pid").size()
    for groups in (1, 3, 9):
        found = table(cf.tables.Counts("year", inference="dataset"), data, schema(groups))
        assert found.size == pytest.approx(years.clip(upper=groups).sum())


def test_rows_without_a_year_are_of_one_level_more_and_count_last() -> None:
    """Of a person at most so many rows are there, whichever sum looks at them."""
    own = pd.DataFrame({"pid": "b", "year": [2015.0, 2016.0, 2017.0, *[np.nan] * 30], "g": "a", "x": 1.0})
    for years, groups, rows in ((3, 2, 2), (3, 3, 3), (3, 9, 4), (0, 3, 1), (1, 1, 1)):
        found = cf.read(own.iloc[3 - years :], schema(groups)).aggregate(ROWS)
        assert found[0][0] == rows, (years, groups)


def test_the_same_rows_in_any_order_spelling_batch_and_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    data, method = visits(), cf.tables.Means("x ~ year * g", inference="dataset")
    known = table(method, data, schema()).params.tolist()
    for seed in range(3):
        other = data.sample(frac=1, random_state=seed)
        other["pid"] = np.where(np.arange(len(other)) % 2, other["pid"].astype(str), other["pid"].astype(float))
        np.testing.assert_array_equal(table(method, other, schema()).params, known)
    data.iloc[::2].to_parquet(tmp_path / "1.parquet")
    data.iloc[1::2].to_csv(tmp_path / "2.csv", index=False)
    files = cf.read([tmp_path / "1.parquet", tmp_path / "2.csv"], schema())
    np.testing.assert_array_equal(
        cf.infer(cf.release(method, files, cf.GDP(1.0), ledger=None, noise=ZeroNoise())).params, known
    )
    # and where a person has more rows than any other rule looks at
    monkeypatch.setattr(sampling, "MOST", 1)
    for cells in (2_000, 60):
        monkeypatch.setattr(clustering, "GATHERED", cells)
        source = cf.read(data.sample(frac=1, random_state=9), schema(), memory=0)
        found = cf.infer(cf.release(method, source, cf.GDP(1.0), ledger=None, noise=ZeroNoise())).params
        np.testing.assert_array_equal(found, known)


def sums(plan: Any, data: Any, own: cf.Schema, **how: Any) -> dict[str, Any]:
    names = tuple(plan.statistics)
    with cf.read(data, own, **how).bounded() as source:
        return dict(zip(names, source.aggregate(*map(plan.statistic, names)), strict=True))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 3, 4, 30])
@pytest.mark.parametrize("formula", ["year * g", "x ~ year"])
def test_a_person_of_many_years_moves_no_more_than_is_paid_for(formula: str, rows: int, relation: str) -> None:
    """Persons of 1, k, k + 1 and 10 k rows in as many years as there are, at the bounds; replaced by another of other years."""
    own, method = schema(), (cf.tables.Means if "~" in formula else cf.tables.Counts)(formula, inference="dataset")
    plan = cf.plan(method, own, cf.GDP(1.0, relation=relation), n=300 if relation == "substitute" else None)
    data = visits(500, 90).assign(pid=lambda own: own.pid.astype(str))

    def person(first: int, x: float) -> pd.DataFrame:
        years = 2015 + (first + np.arange(rows) % 5)
        return pd.DataFrame({"pid": "new", "year": years, "g": "a", "x": x})

    one = data if relation == "add-remove" else pd.concat([data, person(0, 1.0)])
    largest = {}
    for other in (person(5, 0.0), person(0, 0.0), person(0, 1.0).assign(g="c")):
        before, after = sums(plan, one, own), sums(plan, pd.concat([data, other]), own)
        for name in before:
            spend = plan.spend(name)
            moved = sum(int(v) ** 2 for v in (after[name] - before[name]).ravel())
            assert moved <= (spend.sensitivity * spend.step) ** 2, name
            largest[name] = max(largest.get(name, 0.0), float(moved / (spend.sensitivity * spend.step) ** 2))
    if rows >= 3:
        # tight: the bound is attained, and the factor is sqrt(groups), not groups; not so of ranges, whose rows may share a bin
        apart = ("contributions", "range of x", LOST)
        assert all(ratio > 0.99 for name, ratio in largest.items() if name not in apart)


def test_a_smaller_bound_would_be_wrong() -> None:
    """Where years are cut into spans, several of a person's years fall into one cell: such an attribute separates nothing."""
    plan = cf.plan(cf.tables.Counts("year * g", inference="dataset"), schema(), cf.GDP(1.0))
    assert all(
        separates(plan.statistic(name), "year") for name in plan.statistics if name not in ("contributions", LOST)
    )
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.Counts("cut(year, 2020) * g", inference="dataset"), schema(), cf.GDP(1.0))


class _Closer(Statistic):
    """A statistic that a row replaced moves by less than one that comes: by 1 and by 2."""

    shape, norm = (1,), "l2"

    class map(RecordMap):
        columns, separates = ("year",), ("year",)

    def sensitivity_squared(self, relation: str) -> Fraction:
        return Fraction(4 if relation == "add-remove" else 1)


def test_years_that_one_has_and_the_other_has_not_are_charged_when_persons_are_replaced() -> None:
    """Replaced by a person of k other years: 2 k moves by what a row that comes or goes moves, each."""
    own: Any = _Closer()
    assert unit_squared(own, "add-remove", 3, "year") == 3 * 4
    assert unit_squared(own, "substitute", 3, "year") == 2 * 3 * 4
    # and by one who is outside of a subgroup, which is one who leaves it
    over = StatisticOver()
    over.statistic = own
    assert over.sensitivity_squared("substitute") == 4


def test_years_of_one_interval_do_not_lie_apart() -> None:
    own = schema()
    cut, whole = Attribute.cut("year", (2018,), own), Attribute.of("year", own)
    for attributes, names in (((cut,), ()), ((whole,), ("year",)), ((cut, whole), ("year",))):
        crossing = Crossing(attributes, own)
        axes = tuple(range(len(attributes)))
        assert crossing.separated(axes) == names
        counted = CellCounts(CellIndex(crossing, axes))
        assert unit_squared(counted, "add-remove", 3, "year") == (3 if names else 9)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_what_does_not_lie_apart_by_year_costs_each_year(relation: str) -> None:
    own = cf.Schema({**COLUMNS, "z": cf.Numeric(1, 2)}, unit=cf.Unit("pid", per="year", groups=3))
    plan = cf.plan(cf.tables.Ratios("x / z ~ year", inference="population"), own, cf.GDP(1.0, relation=relation))
    apart = {}
    for name in ("year", "(meat) (total)", "(meat) year"):
        spend, statistic = plan.spend(name), plan.statistic(name)
        rows = (spend.sensitivity * spend.step) ** 2 / statistic.sensitivity_squared(relation)
        apart[name] = separates(statistic, "year")
        assert rows >= (3 if apart[name] else 9) and rows == pytest.approx(3 if apart[name] else 9)
    assert apart == {"year": True, "(meat) (total)": False, "(meat) year": False}


def test_the_price_is_the_root_of_the_years() -> None:
    one, ten = (
        cf.plan(cf.tables.Counts("year", inference="dataset"), schema(groups), cf.GDP(1.0)).spend("year")
        for groups in (1, 10)
    )
    assert ten.noise_sd / one.noise_sd == pytest.approx(10**0.5, rel=1e-6)


@pytest.mark.parametrize("relation", few(["add-remove", "substitute"], 1))
def test_the_audit_finds_nothing(relation: str) -> None:
    own = cf.tables.Counts("year * g", inference="dataset")
    assert audit(own, schema(2), privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok


def test_a_row_too_many_is_caught_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: all rows of a person count."""
    from confide.sources.grouping.sampling import Levels

    def every(self: Levels, rows: Any, rule: Any, priority: Any) -> Any:
        order = np.argsort(np.asarray(rows.ids), kind="stable")
        return order, np.ones(len(rows), dtype=np.int64)

    monkeypatch.setattr(Levels, "kept", every)
    own = cf.tables.Counts("year * g", inference="dataset")
    assert not audit(own, schema(2), privacy=cf.GDP(1.0), relation="add-remove", runs=0, seed=1).ok


@pytest.mark.long
def test_intervals_of_a_year_cover_where_persons_come_back() -> None:
    """Persons whose years hang together; each year's count, and all years at once."""
    own = schema(None)
    g = np.random.default_rng(5)
    expected, inside, jointly, runs = 60.0, 0, 0, 120
    for seed in range(runs):
        # persons are Poisson, each there in five years of ten, in a row
        first = g.integers(0, 2, g.poisson(2 * expected))
        pid = np.repeat(np.arange(len(first)), 5)
        years = 2015 + 5 * first[pid] + np.tile(np.arange(5), len(first))
        data = pd.DataFrame({"pid": pid, "year": years, "g": "a", "x": 0.5})
        found = table(cf.tables.Counts("year", inference="population"), data, own, SimulatedNoise(seed))
        limits = found.conf_int().to_numpy()
        inside += int(limits[0, 0] <= expected <= limits[0, 1])
        all_of = found.conf_int(simultaneous=True).to_numpy()
        jointly += int(((all_of[:, 0] <= expected) & (expected <= all_of[:, 1])).all())
    # fails by chance once in a thousand runs
    assert stats.binom.cdf(inside, runs, 0.95) > 0.001, inside
    assert stats.binom.cdf(jointly, runs, 0.95) > 0.001, jointly


def test_what_hangs_together_has_no_interval() -> None:
    found = table(cf.tables.Counts("year * g", inference="population"), visits(), schema(), SimulatedNoise(1))
    with refuses(cf.errors.PlanError):
        found.diff("year")
    with refuses(cf.errors.PlanError):
        found.ratio({"year": "2015", "g": "a"}, {"year": "2016", "g": "a"})
    with refuses(cf.errors.PlanError):
        found.test("independence", "year", "g")
    assert len(found.diff("g")) == 20  # within each year
    these = cf.infer(
        cf.release(cf.tables.Counts("year", inference="dataset"), cf.read(visits(), schema()), cf.GDP(1.0), ledger=None)
    )
    assert len(these.diff("year")) == 9  # of these records there is noise alone


def test_the_plan_the_file_and_the_ledger_say_it(tmp_path: Any) -> None:
    own = schema()
    assert cf.Schema.from_dict(own.to_dict()) == own == cf.Schema.from_toml(own.to_toml())
    assert (own.rows_per_unit, schema(None).rows_per_unit, schema(99).rows_per_unit) == (3, 10, 10)
    plan = cf.plan(cf.tables.Counts("year", inference="dataset"), own, cf.GDP(1.0))
    words = " ".join(plan.summary().split())
    assert "each pid counts once in each year, in at most 3 of them (enforced)" in words
    assert plan.guarantee.assumptions == ("pid is given to the unit, not by its place in the data",)
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="visits", unit="pid", budget=cf.GDP(2.0))
    release = cf.release(plan, cf.read(visits(), own), ledger=book)
    again = cf.Release.from_json(release.to_json())
    assert again == release and cf.verify(again, book).ok
    assert cf.infer(again).to_json() == cf.infer(release).to_json()
    assert release.plan.schema["unit"] == {"column": "pid", "rows": 1, "rule": None, "per": "year", "groups": 3}
    assert "levels of year" in dict(cf.infer(release).facts)["Units (pid, noisy)"]
    # and what says nothing of it is written as before
    assert set(cf.Unit("pid").to_dict()) == {"column", "rows", "rule"}


def test_what_is_refused() -> None:
    for facts in (
        {"groups": 3},
        {"per": "year", "rows": 2},
        {"per": "year", "rule": "weight"},
        {"per": "year", "groups": 0},
        {"per": 3},
    ):
        with refuses(cf.errors.SchemaError):
            cf.Unit("pid", **facts)  # type: ignore[arg-type]
    for per in ("x", "month"):
        with refuses(cf.errors.SchemaError):
            cf.Schema(COLUMNS, unit=cf.Unit("pid", per=per))
    for more in ({"cluster": cf.Clusters("school", size=30)}, {"design": cf.SurveyDesign(deff=2.0)}):
        with refuses(cf.errors.SchemaError):
            schema(**more)
    for method in (
        cf.regression.LeastSquares("x ~ g"),
        cf.regression.Within("x ~ g"),
        cf.tables.Quantiles("x ~ year", inference="dataset"),
    ):
        with refuses(cf.errors.PlanError):
            cf.plan(method, schema(), cf.GDP(1.0))
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.Shares("year * g", inference="dataset"), schema(), cf.GDP(1.0))
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.DistinctCounts("g", inference="dataset"), schema(), cf.GDP(1.0))
    with refuses(cf.errors.PrivacyError):
        cf.plan(GradientDescent("x ~ g"), schema(), cf.GDP(1.0, relation="substitute"), n=10)
    # persons with other numbers of rows are in the bound already, and so are those whose rows enter or leave a subgroup
    own = cf.tables.Counts("year", inference="dataset", where="g == 'a'")
    assert cf.plan(own, schema(), cf.GDP(1.0, relation="substitute"), n=10).where == "g == 'a'"


def test_workers_keep_the_same_rows(tmp_path: Any) -> None:
    data, method = visits(), cf.tables.Means("x ~ year * g", inference="dataset")
    for part in range(3):
        data.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    files = sorted(tmp_path.iterdir())
    here, there = (
        cf.release(method, cf.read(files, schema(), **more), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(1))
        for more in ({}, {"executor": Here()})
    )
    assert here.to_json() == there.to_json()
    # one who comes, with rows of all years in every file, moves the sums as far as here and no further than is paid for
    plan = cf.plan(cf.tables.Counts("year", inference="dataset"), schema(), cf.GDP(1.0))
    before = sums(plan, files, schema(), executor=Here())
    person = pd.DataFrame({"pid": -1, "year": np.repeat(np.arange(2015.0, 2025.0), 3), "g": "a", "x": 1.0})
    for part, path in enumerate(files):
        pd.concat([pd.read_parquet(path), person.iloc[part::3]]).to_parquet(path)
    after, local = sums(plan, files, schema(), executor=Here()), sums(plan, files, schema())
    assert all((after[name] == local[name]).all() for name in local)
    moved = after["year"] - before["year"]
    assert sorted(map(int, moved.ravel())) == [0] * 7 + [1] * 3
    assert sum(int(v) ** 2 for v in moved.ravel()) <= (plan.spend("year").sensitivity * plan.spend("year").step) ** 2
    request = cf.GDP(1.0, relation="substitute")
    source = cf.read(files, schema(), executor=Here())
    assert cf.release(method, source, request, n=data.pid.nunique() + 1, ledger=None).status == "released"


def test_nobody_is_said_to_have_more_years_than_there_are() -> None:
    schema = cf.Schema({"year": cf.Integer(2020, 2024), "y": cf.Numeric(0, 1)}, unit=cf.Unit("pid", per="year"))
    frame = pd.DataFrame({"pid": np.repeat(np.arange(400), 5), "year": np.tile(np.arange(2020, 2025), 400), "y": 0.5})
    table = cf.tables.counts("year", cf.read(frame, schema), inference="dataset", privacy=cf.GDP(1.0), ledger=None)
    assert "more than" not in table.summary() and "contributions_truncated" not in table.flags
    few = cf.Schema(dict(schema.columns), unit=cf.Unit("pid", per="year", groups=3))
    table = cf.tables.counts("year", cf.read(frame, few), inference="dataset", privacy=cf.GDP(1.0), ledger=None)
    assert (
        "rows in more than 3 levels of year" in " ".join(table.summary(verbose=True).split())
        and "contributions_truncated" in table.flags
    )


def test_units_of_a_cell_that_the_bound_cuts_may_have_more_or_not() -> None:
    from confide.core.units.contributions import Counted

    counts = np.zeros(17)
    counts[0], counts[3] = 50, 50  # half have one row, half have five to eight
    assert "0% to 50% have (noise ± 0%) more than 5 rows" in Counted.of(counts, 0.0, 5).words(5, whole=True)
    assert "50% ± 0% have more than 4 rows" in Counted.of(counts, 0.0, 4).words(4, whole=True)
