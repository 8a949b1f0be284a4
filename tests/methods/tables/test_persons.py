"""Tables of persons: who is counted where, what one person moves, intervals, words, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses

import confide as cf
from confide.audit import audit
from confide.noise import SimulatedNoise
from confide.testing import ZeroNoise

COLUMNS = {
    "ill": cf.Categorical(["no", "yes"]),
    "sex": cf.Categorical(["F", "M"]),
    "age": cf.Numeric(0, 100),
    "day of week": cf.Integer(1, 7),
}
SCHEMA = cf.Schema(COLUMNS, unit=cf.Unit("pid"), dataset="visits")
NUMBER = "number(ill == 'yes', 1, 2, 5)"


def visits(n: int = 4_000, units: int = 700, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pid": g.zipf(1.6, n) % units,
            "ill": g.choice(["no", "yes", None], n, p=[0.6, 0.3, 0.1]),
            "sex": g.choice(["F", "M"], n),
            "age": g.uniform(0, 100, n),
            "day of week": g.integers(1, 8, n),
        }
    )


def exact(formula: str, data: pd.DataFrame, schema: cf.Schema = SCHEMA, **more: Any) -> Any:
    method = cf.tables.DistinctCounts(formula, inference="dataset", **more)
    return cf.infer(cf.release(method, cf.read(data, schema), cf.GDP(1.0), ledger=None, noise=ZeroNoise()))


def cells(table: Any) -> pd.Series:
    """Least squares puts exact counts together in floats."""
    assert (abs(table.params - table.params.round()) < 1e-9).all()
    return table.params.round()


def test_persons_are_counted_by_all_their_rows() -> None:
    data = visits()
    ill = (data.ill == "yes").groupby(data.pid).sum()
    male = (data.sex == "M").groupby(data.pid).mean() > 0.5  # on a tie the first level
    found = exact(f"{NUMBER} * sex", data).crosstab().round(6)
    level = pd.cut(ill, [-1, 0, 1, 4, np.inf], labels=["0", "1", "2 to 4", "5 or more"])
    known = pd.crosstab(level, male.map({False: "F", True: "M"}))
    assert found.loc[list(known.index), ["F", "M"]].to_numpy().tolist() == known.to_numpy().tolist()
    assert found.loc["Total", "Total"] == data.pid.nunique()
    some = exact("any(`day of week` in (6, 7) & age >= 50)", data).crosstab()["estimate"].round(6)
    weekend = (data["day of week"].isin([6, 7]) & (data.age >= 50)).groupby(data.pid).any()
    assert some[["no", "yes"]].tolist() == [(~weekend).sum(), weekend.sum()]


def test_a_condition_on_rows_says_who_is_counted_at_all() -> None:
    data = visits()
    rows = data[data.ill == "yes"].groupby("pid").size()
    found = exact("number(1, 3)", data, where="ill == 'yes'").crosstab()["estimate"].round(6)
    assert found[["1 to 2", "3 or more", "Total"]].tolist() == [(rows < 3).sum(), (rows >= 3).sum(), len(rows)]


def test_the_same_persons_in_any_order_batch_file_and_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    from confide.sources.grouping import units as clustering

    data = visits()
    known = exact(f"{NUMBER} * cut(age, 30, 60)", data).params.tolist()
    for seed in range(3):
        other = data.sample(frac=1, random_state=seed)
        other["pid"] = np.where(np.arange(len(other)) % 2, other["pid"].astype(str), other["pid"].astype(float))
        assert exact(f"{NUMBER} * cut(age, 30, 60)", other).params.tolist() == known
    monkeypatch.setattr(clustering, "GATHERED", 800)
    assert exact(f"{NUMBER} * cut(age, 30, 60)", data).params.tolist() == known


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2, 10, 500])
def test_a_person_moves_one_cell_whatever_rows_it_has(rows: int, relation: str) -> None:
    """The exact counts behind the noise: one cell by 1, or two by 1 where a person is replaced."""
    data = visits(600, 90)
    own = visits(rows, 5, seed=9).assign(pid="somebody else")
    more = cells(exact(f"{NUMBER}:sex", pd.concat([data, own])))
    if relation == "substitute":
        data = pd.concat([data, visits(3, 5, seed=4).assign(pid="another")])
    apart = more - cells(exact(f"{NUMBER}:sex", data))
    assert (apart.drop("total") ** 2).sum() <= (1 if relation == "add-remove" else 2)
    assert abs(apart["total"]) <= 1


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_audit_finds_nothing(relation: str) -> None:
    own = cf.tables.DistinctCounts("number(ill == 'yes', 1, 3) * sex", inference="dataset")
    assert audit(own, SCHEMA, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok


def test_rows_counted_as_persons_are_caught_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: each row in a cell of its own."""
    from confide.methods.tables.sums import UnitCrossing

    right = UnitCrossing.places

    def each_row(self: UnitCrossing, codes: Any, axes: Any) -> Any:
        codes = codes.copy()
        codes[-1] = 0.0
        return right(self, codes, axes)

    monkeypatch.setattr(UnitCrossing, "places", each_row)
    own = cf.tables.DistinctCounts("any(ill == 'yes')", inference="dataset")
    assert not audit(own, SCHEMA, privacy=cf.GDP(1.0), relation="add-remove", runs=0, seed=1).ok


def test_intervals_cover_the_population_of_persons() -> None:
    """Persons with 1 to 20 rows, ill days that hang together within a person; the share of persons with at least one."""
    inside, counted = 0, 150
    method = cf.tables.DistinctShares("any(ill == 'yes')", inference="population")
    g = np.random.default_rng(5)

    def people(n: int) -> tuple[pd.DataFrame, float]:
        rows, risk = g.integers(1, 21, n), g.beta(0.3, 3, n)
        pid = np.repeat(np.arange(n), rows)
        ill = g.random(len(pid)) < risk[pid]
        some = pd.Series(ill).groupby(pid).any().mean()
        frame = pd.DataFrame({"pid": pid, "ill": np.where(ill, "yes", "no"), "sex": "F", "age": 1.0, "day of week": 1})
        return frame, float(some)

    truth = float(np.mean([people(20_000)[1] for _ in range(3)]))
    for seed in range(counted):
        frame, _ = people(300)
        release = cf.release(method, cf.read(frame, SCHEMA), cf.GDP(0.3), ledger=None, noise=SimulatedNoise(seed))
        low, high = cf.infer(release).conf_int().loc["any(ill == 'yes')=yes"]
        inside += int(low <= truth <= high)
    # fails by chance once in a thousand runs
    low, high = stats.beta.ppf([0.0005, 0.9995], [inside, inside + 1], [counted - inside + 1, counted - inside])
    assert low <= 0.96 and high >= 0.94, inside / counted


def test_the_words_say_persons() -> None:
    plan = cf.plan(cf.tables.DistinctCounts(NUMBER, inference="population"), SCHEMA, cf.GDP(1.0))
    assert plan.target == f"numbers of values of pid by {NUMBER}; each pid counts once, by all its rows"
    assert "counted once, by all of them (enforced)" in " ".join(plan.summary().split())
    assert not plan.guarantee.assumptions
    table = cf.infer(cf.release(plan, cf.read(visits(), SCHEMA), ledger=None, noise=SimulatedNoise(1)))
    assert table.title == f"Distinct pid by {NUMBER}"
    assert "n" in dict(table.head())
    assert "count by weight" not in table.summary(verbose=True)


def test_what_is_refused() -> None:
    def refused(formula: str = NUMBER, schema: cf.Schema = SCHEMA, **more: Any) -> None:
        with refuses((cf.errors.PlanError, cf.errors.SchemaError)):
            cf.plan(cf.tables.DistinctCounts(formula, inference="dataset", **more), schema, cf.GDP(1.0))

    refused(schema=cf.Schema(COLUMNS))
    refused(schema=cf.Schema(COLUMNS, unit=cf.Unit("pid", rows=2)))
    refused(schema=cf.Schema(COLUMNS, unit=cf.Unit("pid", rule="keep")))
    refused(weights="age")
    alike = cf.Schema(COLUMNS, unit=cf.Unit("pid"), cluster=cf.Clusters("school", size=30))
    refused(schema=alike)
    drawn = cf.Schema(COLUMNS, unit=cf.Unit("pid"), design=cf.SurveyDesign(deff=2.0))
    refused(schema=drawn)
    refused("any(~(ill == 'yes'))")
    refused("any()")
    refused("any(ill == 'yes', 2)")
    refused("number(ill == 'yes', 3, 2)")
    refused("number(0, 3)")
    refused("number(ill == 'yes', sex == 'F', 3)")
    refused("any(sick == 'yes')")
    with refuses(cf.errors.PlanError):
        cf.tables.distinct_counts(NUMBER, cf.read(visits(10), SCHEMA), privacy=cf.GDP(1.0), ledger=None)
    with refuses(cf.errors.PlanError):
        cf.tables.DistinctCounts(NUMBER, inference="dataset").reference(None)
