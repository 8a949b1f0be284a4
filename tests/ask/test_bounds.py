"""`cf.find_bounds` of a schema: it protects whom that schema protects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.ask.bounds import search_schema
from confide.noise import SimulatedNoise

DATA = pd.DataFrame({"x": np.arange(3000.0) % 97, "pid": np.arange(3000) // 3})


@pytest.mark.parametrize("unit", ["record", "household", cf.Unit("pid")])
def test_a_search_protects_the_unit_and_rows_of_its_schema(unit: Any) -> None:
    """The search and the means of one schema state the same unit, rows and guarantee."""
    rows = {} if isinstance(unit, cf.Unit) else {"rows_per_unit": 5}
    schema = cf.Schema({"x": cf.Numeric()}, unit=unit, dataset="d", **rows)
    asked: dict[str, Any] = {"privacy": cf.GDP(1.0), "ledger": None, "noise": SimulatedNoise(1)}
    found = cf.find_bounds(DATA, "x", schema, **asked).release.plan
    means = cf.plan(cf.tables.Means("x", inference="population"), schema, cf.GDP(1.0))
    for fact in ("unit", "rows_per_unit", "dataset"):
        assert found.schema[fact] == means.schema[fact], fact
    assert found.schema["rows_per_unit"] == schema.rows_per_unit
    assert found.guarantees == means.guarantees


def test_a_ledger_of_single_rows_refuses_a_search_for_units_of_more(tmp_path: Any) -> None:
    book = cf.Ledger.create(tmp_path / "l.db", dataset="d", budget=cf.GDP(5.0))
    schema = cf.Schema({"x": cf.Numeric()}, rows_per_unit=5, dataset="d")
    with pytest.raises(cf.errors.ConfideError, match="at most 5"):
        cf.find_bounds(DATA, "x", schema, privacy=cf.GDP(1.0), ledger=book)
    assert book.show().used == 0


def test_what_is_given_beside_a_schema_is_in_its_place() -> None:
    known = cf.Schema({"x": cf.Numeric(missing=["-9"])}, rows_per_unit=5, dataset="d", file={"decimal": ","})
    own = search_schema(["x", "y"], known, "other", cf.Unit("pid", rows=2))
    assert (own.dataset, own.unit, own.rows_per_unit) == ("other", cf.Unit("pid", rows=2), 2)
    assert own["x"].missing == ("-9",) and own["y"].missing is None and own.file.decimal == ","
    assert search_schema(["x"], None, unit="household").unit == "household"
    assert search_schema(["x"], known, unit="household").rows_per_unit == 5
