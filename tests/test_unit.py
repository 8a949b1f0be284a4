"""Whom a release protects, through the gate: every method, statements, ledgers, the audit's neighbours."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.audit import audit
from confide.core import Source, leaves
from confide.core.units.contributions import Contributions
from confide.core.units.privacy_unit import Weighted
from confide.methods.tables.persons import RowsPerUnit as UnitRows
from confide.noise import SimulatedNoise
from confide.registry import list_methods
from confide.sources.grouping import sampling, units as clustering
from confide_lab.methods import AnalyzeGauss
from tests.few import few
from tests.golden.golden_cases import CASES, SCHEMA, schema_of
from tests.messages import refuses

UNIT = cf.Schema(SCHEMA.columns, unit=cf.Unit("pid"), dataset="survey")
LINE = cf.regression.SSP("y ~ x", cov="classical", recenter=False)


def people(n: int = 1_500, schema: cf.Schema = UNIT) -> pd.DataFrame:
    return schema.sample(n, 7)


def drawn(method: Any, privacy: Any, data: pd.DataFrame, schema: cf.Schema = UNIT) -> Any:
    n = len(people()) if method.relations[0] == "substitute" else None
    made = cf.release(method, cf.read(data, schema), privacy, n=n, ledger=None, noise=SimulatedNoise(11))
    # the paid histogram alone sees that the person has more rows: one unit in another cell
    own = {name: noisy.values.tolist() for name, noisy in made.statistics.items() if not name.endswith("contributions")}
    return {**own, "status": made.status}


# deviations of one row from itself are none, and those of equal rows 0: with a second row a person begins to count
@pytest.mark.usefixtures("blocks_in_place")
@pytest.mark.parametrize("name", sorted(set(CASES) - {"within"}))
def test_500_rows_of_one_person_are_one_rows_worth_in_every_method(name: str) -> None:
    method, privacy = CASES[name]
    schema = cf.Schema(schema_of(method).columns, unit=cf.Unit("pid"), dataset="survey")
    once = people(schema=schema)
    many = pd.concat([once] + [once.iloc[[3]]] * 499).sample(frac=1, random_state=1)
    assert drawn(method, privacy, many, schema) == drawn(method, privacy, once, schema)


def test_every_method_of_the_registry_is_among_them() -> None:
    """But the histogram of contributions, which counts the rows of persons and pays for that (`test_the_histogram_...`)."""
    named = {type(method).name for method, _ in CASES.values()}
    assert {one.name for one in list_methods()} - named == {"rows_per_unit_table"}


def book(path: Path, **more: Any) -> cf.Ledger:
    return cf.Ledger.create(path / "ledger.db", dataset="survey", budget=cf.GDP(3.0), **more)


def test_statements_name_the_id_column(tmp_path: Path) -> None:
    ledger = book(tmp_path, unit="pid")
    plan = cf.plan(LINE, UNIT, cf.GDP(1.0))
    assert {one.unit for one in plan.guarantees} == {"pid"} == {plan.requested.unit}
    said = " ".join(plan.summary().split())
    assert "any one pid with all its rows added or removed; at most 1 row's worth counts (enforced)" in said
    assert plan.guarantee.assumptions == ("pid is given to the unit, not by its place in the data",)
    assert cf.plan(LINE, UNIT, cf.GDP(1.0, unit="pid")) == plan
    release = cf.release(LINE, cf.read(people(), UNIT), cf.GDP(1.0), ledger=ledger)
    assert cf.verify(release, ledger).ok
    assert release.plan.schema["unit"] == {"column": "pid", "rows": 1, "rule": None}
    assert len(release.plan.public_inputs["unit key"]) == 64
    text = release.to_json()
    assert '"format_version":"1.0"' in text
    assert cf.Release.from_json(text) == release
    assert "one pid with all its rows" in " ".join(cf.infer(release).summary().split())
    again = cf.release(cf.Plan.from_json(release.plan.to_json()), cf.read(people(), UNIT), ledger=ledger)
    assert again.plan == release.plan
    with refuses(cf.errors.PrivacyError):
        cf.plan(LINE, SCHEMA, cf.GDP(1.0, unit="pid"))
    with refuses(cf.errors.PrivacyError):
        cf.plan(LINE, UNIT, cf.GDP(1.0, unit="household"))


def test_a_ledger_has_one_unit(tmp_path: Path) -> None:
    ledger = book(tmp_path, unit="pid")
    data, declared = people(), cf.Schema(SCHEMA.columns, unit="pid", rows_per_unit=3, dataset="survey")
    for schema in (cf.Schema(SCHEMA.columns, dataset="survey"), declared):
        with refuses(cf.errors.PrivacyError):
            cf.release(LINE, cf.read(data, schema), cf.GDP(1.0), ledger=ledger)
    other = cf.Schema(SCHEMA.columns, unit=cf.Unit("household"), dataset="survey")
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, cf.read(data, other), cf.GDP(1.0), ledger=ledger)
    # releases of one unit add up whatever the rows of it that count
    rows = cf.Schema(SCHEMA.columns, unit=cf.Unit("pid", rows=3), dataset="survey")
    cf.release(AnalyzeGauss("y ~ x"), cf.read(data, rows), cf.GDP(1.0), ledger=ledger)
    ledger.amend(cf.GDP(4.0), reason="a test")
    assert ledger.budget == cf.GDP(4.0, unit="pid", relation="add-remove")
    assert ledger.buys()
    assert ledger.verify().ok
    assert ledger.show().whose == "unit pid with all its rows (enforced)"
    records = cf.Ledger.create(tmp_path / "records.db", dataset="survey", budget=cf.GDP(3.0))
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, cf.read(data, UNIT), cf.GDP(1.0), ledger=records)
    assert (records.unit_key, len(ledger.unit_key or b"")) == (None, 32)


def test_a_declared_unit_is_planned_and_flagged(tmp_path: Path) -> None:
    declared = cf.Schema(SCHEMA.columns, unit="household", rows_per_unit=3, dataset="survey")
    ledger = book(tmp_path, unit="household", rows_per_unit=3)
    release = cf.release(LINE, cf.read(people(), declared), cf.GDP(1.0), ledger=ledger)
    assert release.guarantees[0].assumptions == ("at most 3 rows per unit (declared, not enforced)",)
    assert "unit_not_enforced" in cf.infer(release).flags
    bare = cf.release(LINE, cf.read(people(), SCHEMA), cf.GDP(1.0), ledger=None)
    assert "unit_not_enforced" not in cf.infer(bare).flags


def test_the_key_is_of_the_ledger_and_under_its_chain(tmp_path: Path) -> None:
    ledger, other = (
        book(tmp_path, unit="pid"),
        cf.Ledger.create(tmp_path / "2.db", dataset="survey", budget=cf.GDP(3.0), unit="pid"),
    )
    assert ledger.unit_key != other.unit_key
    assert cf.Ledger.open(tmp_path / "ledger.db").unit_key == ledger.unit_key
    assert ledger.verify().ok
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.db") as raw:
        raw.execute("UPDATE budget SET unit_key = ?", ((other.unit_key or b"").hex(),))
    assert not cf.Ledger.open(tmp_path / "ledger.db", dataset="survey").verify().ok
    with refuses(cf.errors.PlanError):
        cf.Ledger.open(tmp_path / "ledger.db", dataset="survey").check(
            dataset="survey", unit="pid", rows_per_unit=1, enforced=True
        )


def test_the_releases_of_a_ledger_agree_on_who_counts(tmp_path: Path) -> None:
    """The gate hands the ledger's key to the source: which rows count differs between ledgers, not between releases of one."""
    data = people(3_000).assign(pid=np.repeat(np.arange(300), 10))
    keys: list[bytes] = []
    right = clustering._clustered

    def watched(source: Any, rule: Any, asked: Any) -> Any:
        keys.append(rule.key)
        return right(source, rule, asked)

    clustering._clustered, ledger = watched, book(tmp_path, unit="pid")
    try:
        for _ in range(2):
            cf.release(LINE, cf.read(data, UNIT), cf.GDP(1.0), ledger=ledger)
        cf.release(LINE, cf.read(data, UNIT), cf.GDP(1.0), ledger=None)
    finally:
        clustering._clustered = right
    # each of the ledger's is rehearsed
    assert keys == [ledger.unit_key] * 4 + [bytes.fromhex(UNIT.digest)]


def test_several_rows_are_refused_where_intervals_take_them_as_independent() -> None:
    rows = cf.Schema(SCHEMA.columns, unit=cf.Unit("pid", rows=3))
    with refuses(cf.errors.PlanError):
        cf.plan(cf.regression.SSP("y ~ x"), rows, cf.GDP(1.0))
    with refuses(cf.errors.PrivacyError):
        cf.plan(AnalyzeGauss("y ~ x"), rows, cf.GDP(1.0, relation="substitute"), n=100)


def test_under_substitute_the_gate_counts_ids() -> None:
    data = people(300).assign(pid=np.repeat(np.arange(100), 3))
    request = cf.GDP(1.0, relation="substitute")
    cf.release(LINE, cf.read(data, UNIT), request, n=100, ledger=None)
    with refuses(cf.errors.PlanError):
        cf.release(LINE, cf.read(data, UNIT), request, n=300, ledger=None)


def test_a_stream_that_is_read_once_serves_several_rounds() -> None:
    import pyarrow as pa

    stream = pa.Table.from_pandas(people()).to_reader(max_chunksize=100)
    release = cf.release(cf.regression.SSP("y ~ x"), cf.read(stream, UNIT), cf.GDP(1.0), ledger=None)
    assert release.plan.passes > 1


def test_a_source_that_cannot_bound_units_is_refused() -> None:
    class Bare(Source):
        schema, dataset, rereadable = UNIT, "survey", True

        def aggregate(self, *statistics: Any) -> Any:
            raise AssertionError

        check = count = aggregate

    with refuses(cf.errors.SourceError):
        cf.release(LINE, Bare(), cf.GDP(1.0), ledger=None)


COARSE = cf.Schema({"y": cf.Numeric(0, 1), "a": cf.Numeric(0, 1)}, unit=cf.Unit("pid"))


@pytest.mark.parametrize("rows", few([1, 3], 1))
def test_the_audit_changes_whole_units(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours have 1, k, k + 1 and 10 k rows under one id in three spellings; one row too many is caught."""
    schema = cf.Schema(COARSE.columns, unit=cf.Unit("pid", rows=rows))
    method, relation = AnalyzeGauss("y ~ a"), "add-remove"
    assert audit(method, schema, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok
    right = sampling.Keep
    monkeypatch.setattr(sampling, "Keep", lambda key, most: right(key, most + 1))
    assert not audit(method, schema, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok


@pytest.mark.parametrize("rows", few([1, 3], 1))
def test_the_audit_changes_whole_units_by_weight(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same neighbours where all rows count by weight: rows that count in full, or twice, are caught."""
    monkeypatch.setattr(AnalyzeGauss, "units", ("keep", "weight"))
    schema = cf.Schema(COARSE.columns, unit=cf.Unit("pid", rows=rows))
    method, relation = AnalyzeGauss("y ~ a"), "add-remove"
    assert cf.plan(method, schema, cf.GDP(1.0)).rule == "weight"
    assert audit(method, schema, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok

    def unweighted(self: Weighted, state: Any) -> Any:
        return sum((self.statistic.value(own) for own in state.values()), self.statistic.value(self.statistic.zero()))

    monkeypatch.setattr(Weighted, "value", unweighted)
    assert not audit(method, schema, privacy=cf.GDP(1.0), relation=relation, runs=0, seed=1).ok


def visits() -> pd.DataFrame:
    """1,000 persons, a tenth of them with 40 rows each."""
    ids = np.concatenate([np.arange(1_000), np.repeat(np.arange(100), 39)])
    return pd.concat([people(1_000)] + [people(100)] * 39).assign(pid=ids)


def test_the_histogram_counts_units_by_their_rows() -> None:
    histogram = Contributions()
    (counts,) = cf.read(visits(), UNIT).aggregate(histogram)
    # 900 with one row, 100 with 33 to 64
    assert counts.tolist() == [900, 0, 0, 0, 0, 0, 100, *[0] * 10]
    assert (histogram.sensitivity_squared("add-remove"), histogram.sensitivity_squared("substitute")) == (1, 2)


def test_plans_pay_one_percent_for_the_histogram_and_tables_show_it() -> None:
    plan = cf.plan(LINE, UNIT, cf.GDP(1.0))
    spend = plan.spend("contributions")
    assert 0.0099 < float(spend.exact_cost.amount) <= 0.01
    assert all(leaf.name != "contributions" for leaf in leaves(cf.plan(LINE, SCHEMA, cf.GDP(1.0)).event))
    # where the guarantee may fail, or is proved as a whole, nothing is left for it
    assert all(leaf.name != "contributions" for leaf in leaves(cf.plan(*_at(CASES["efficient_ptr"])).event))
    result = cf.infer(cf.release(LINE, cf.read(visits(), UNIT), cf.GDP(5.0), ledger=None, noise=SimulatedNoise(3)))
    facts = dict(result.facts)["Units (pid, noisy)"]
    units, share = int(facts.split()[0].replace(",", "")), int(facts.split("; ")[1].split("%")[0])
    assert abs(units - 1_000) < 45  # noise of sd 2 in each of 17 cells: 5 standard deviations
    assert abs(share - 10) < 5
    # of each person one row is counted, as the title says, and the histogram tells that most rows are not
    assert (
        result.target.endswith("; one row of each pid, chosen at random") and "contributions_truncated" in result.flags
    )
    assert "; one row of each pid, chosen at random" in " ".join(result.summary().splitlines()[0].split())
    alone = cf.infer(cf.release(LINE, cf.read(people(), UNIT), cf.GDP(5.0), ledger=None, noise=SimulatedNoise(3)))
    assert "contributions_truncated" not in alone.flags
    three = cf.Schema(SCHEMA.columns, unit=cf.Unit("pid", rows=3))
    release = cf.release(AnalyzeGauss("y ~ x"), cf.read(visits(), three), cf.GDP(5.0), ledger=None)
    assert "contributions_truncated" in cf.infer(release).flags


def _at(case: Any) -> Any:
    return case[0], UNIT, case[1]


def test_contributions_say_what_each_number_of_rows_keeps() -> None:
    table = cf.tables.rows_per_unit_table(
        cf.read(visits(), UNIT), privacy=cf.GDP(2.0), ledger=None, noise=SimulatedNoise(5)
    )
    rows = visits().groupby("pid").size().to_numpy()
    for k, kept, sd in zip(table.rows, table.rows_kept, table.rows_kept_sd, strict=True):
        # rows of a cell are taken to be spread evenly, here 48.5 for 40: up to 0.21 of what these units keep
        assert abs(kept - np.minimum(rows, k).sum() / rows.sum()) < 4 * sd + 0.21 * kept
    assert (np.diff(table.noise) > 0).all()
    assert str(table).startswith(
        "Rows of each pid that each limit keeps\n"
    )  # and nothing of which rows counted: all did
    assert "contributions" not in {leaf.name for leaf in leaves(cf.plan(UnitRows(), UNIT, cf.GDP(1.0)).event)}
    with refuses(cf.errors.PlanError):
        cf.tables.rows_per_unit_table(cf.read(visits(), UNIT), privacy=cf.GDP(1.0), ledger=None, where="x > .5")
    with refuses(cf.errors.PlanError):
        cf.plan(UnitRows(), SCHEMA, cf.GDP(1.0))


def test_one_call_says_that_a_unit_is_declared() -> None:
    declared = cf.Schema(SCHEMA.columns, unit="household", rows_per_unit=2)
    result = cf.linear_regression("y ~ x", cf.read(people(), declared), privacy=cf.GDP(1.0), ledger=None)
    assert "unit_not_enforced" in result.flags


def test_a_unit_that_nobody_has_decided_is_no_record() -> None:
    with refuses(cf.errors.SchemaError):
        cf.Schema({"x": cf.Numeric(0, 1)}, unit="?")


def test_titles_say_which_rows_of_a_unit_are_counted_by_its_own_name() -> None:
    home = {**SCHEMA.columns, "station": cf.Categorical(["a", "b"])}
    once, weighed = (cf.Schema(home, unit=cf.Unit("household", rule=rule)) for rule in (None, "weight"))
    counts = cf.tables.Counts("station", inference="dataset")
    frame = once.sample(900, seed=1)
    frame["household"] //= 3
    said = "one row of each household, chosen at random"
    for method in (counts, cf.tables.Quantiles("x"), cf.tables.TableOne("x ~ station", inference="population")):
        found = cf.infer(cf.release(method, cf.read(frame, once), cf.GDP(5.0), ledger=None))
        assert found.target.endswith(f"; {said}") and "contributions_truncated" in found.flags
        for text in (found.summary(), found.to_markdown(), found.to_latex(), found._repr_html_()):
            assert said in " ".join(text.split())
    heads = [
        cf.infer(cf.release(counts, cf.read(frame, own), cf.GDP(5.0), ledger=None)).head()[1][0]
        for own in (once, cf.Schema(home))
    ]
    assert heads == ["Rows counted", "n"]
    spread = cf.infer(cf.release(counts, cf.read(frame, weighed), cf.GDP(5.0), ledger=None))
    assert spread.target.endswith("; each household counts once, by all its rows")
    assert said not in spread.summary() and "contributions_truncated" not in spread.flags
    persons = cf.plan(cf.tables.DistinctCounts("station", inference="dataset"), once, cf.GDP(1.0))
    assert persons.target.endswith("; each household counts once, by all its rows") and persons.kept == ""
    five = cf.Schema(home, unit=cf.Unit("household", rows=5, rule="keep"))
    line = cf.plan(cf.regression.LeastSquares("y ~ x"), five, cf.GDP(1.0))
    assert line.target.endswith("; at most 5 rows of each household, chosen at random")
