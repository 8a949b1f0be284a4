"""Releases of an enforced unit in a ledger of records, and what two ledgers over one data set come to."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.cli.cli_runner import run
from tests.messages import refuses

import confide as cf
from confide.ledger.scope import jointly

COLUMNS = {"x": cf.Numeric(0, 1), "y": cf.Numeric(0, 1)}
UNIT = cf.Schema(COLUMNS, unit=cf.Unit("pid"), dataset="visits")
PLAIN = cf.Schema(COLUMNS, dataset="visits")
LINE = cf.regression.LeastSquares("y ~ x")


def visits() -> pd.DataFrame:
    return UNIT.sample(300, 1).assign(pid=lambda f: f.pid // 3)


def ledger(path: Path, name: str, **more: Any) -> cf.Ledger:
    return cf.Ledger.create(path / name, dataset="visits", budget=cf.GDP(3.0), **more)


def test_a_ledger_of_records_takes_a_unit_at_twice_its_mu_on_request(tmp_path: Path) -> None:
    book = ledger(tmp_path, "records.db")
    data = cf.read(visits(), UNIT)
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, data, cf.GDP(0.5), ledger=book)
    release = cf.release(LINE, data, cf.GDP(0.5), ledger=book, charge_as="record")
    assert book.show().rows[-1].guarantee.startswith("GDP(mu=1")
    assert release.guarantees[0].unit == "pid"
    assert cf.verify(release, book).ok
    assert not cf.verify(release, ledger(tmp_path, "other.db")).ok
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, data, cf.GDP(0.5), ledger=book, charge_as="person")
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, cf.read(visits(), PLAIN), cf.GDP(0.5), ledger=book, charge_as="record")
    with refuses(cf.errors.PrivacyError):
        cf.release(LINE, data, cf.GDP(0.5, relation="substitute"), n=100, ledger=None, charge_as="record")
    with pytest.raises(cf.BudgetExceeded):
        cf.release(LINE, data, cf.GDP(1.45), ledger=book, charge_as="record")


def test_two_ledgers_add_up_for_a_person(tmp_path: Path) -> None:
    """sqrt(b_unit + m^2 b_record): .5 and .5 give .71, 2.55 and 25.0 for 1, 5 and 50 rows."""
    whole, records = ledger(tmp_path, "units.db", unit="pid"), ledger(tmp_path, "records.db")
    cf.release(LINE, cf.read(visits(), UNIT), cf.GDP(0.5), ledger=whole)
    cf.release(LINE, cf.read(visits(), PLAIN), cf.GDP(0.5), ledger=records)
    for rows, mu in ((1, 0.71), (5, 2.55), (50, 25.0)):
        found = jointly(whole.show(), records.show(), rows)
        assert found == jointly(records.show(), whole.show(), rows)
        assert round(found.mu, 2) == mu
        assert found.mu >= sqrt(0.25 + rows**2 * 0.25)
    with refuses(cf.errors.PlanError):
        jointly(whole.show(), whole.show(), 1)
    pure = cf.Ledger.create(tmp_path / "pure.db", dataset="visits", budget=cf.PureDP(1.0))
    with refuses(cf.errors.PlanError):
        jointly(whole.show(), pure.show(), 1)
    told = run("ledger", "show", str(tmp_path / "units.db"), "--with-ledger", str(tmp_path / "records.db"))
    assert told.code == 0, told
    assert "Both ledgers, a person with 50 rows: GDP(mu=25" in told.out


def test_a_column_that_is_named_as_the_histogram_is_refused_with_the_reason() -> None:
    schema = cf.Schema({"contributions": cf.Categorical(["a", "b"])}, unit=cf.Unit("pid"))
    with refuses(cf.errors.PlanError):
        cf.plan(cf.tables.Counts("contributions", inference="dataset"), schema, cf.GDP(1.0))


def test_a_publication_pays_the_histogram_once() -> None:
    methods = {
        "line": LINE,
        "other": cf.regression.SSP("y ~ x"),
        "classes": cf.tables.Means("y ~ 1", inference="population"),
    }
    plan = cf.plan(cf.Publication(methods), UNIT, cf.GDP(1.0))
    names = [name for name in plan.statistics if name.endswith("contributions")]
    assert names == ["line/contributions"]
    release = cf.release(plan, cf.read(visits(), UNIT), ledger=None)
    assert cf.infer(release)["line"].status
    assert cf.Release.from_json(release.to_json()) == release


def test_schema_check_says_what_is_enforced(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(cf.Schema(COLUMNS, unit=cf.Unit("pid"), cluster=cf.Clusters("school", size=30)).to_toml())
    told = run("schema", "check", str(path))
    assert told.code == 0, told
    words = " ".join(told.out.split())
    assert "one value with all its rows is protected (enforced)" in words
    assert "1 row's worth counts (enforced" in words
    assert "Clusters('school', size=30)" in words
    assert run("schema", "check", str(path), "--json").code == 0
