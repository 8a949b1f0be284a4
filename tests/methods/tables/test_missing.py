"""What tables say of missing values: rules that are public, and numbers that are released or follow from a public one; no others."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide.core import Release, seal
from confide.methods.quantiles.method import Quantiles
from confide.methods.tables.counts import Counts
from confide.methods.tables.means import Means, Ratios
from confide.methods.tables.persons import DistinctCounts
from confide.methods.tables.table_one.method import TableOne
from confide.testing import ZeroNoise

COLUMNS = {
    "sex": cf.Categorical(["f", "m"]),
    "region": cf.Categorical(["N", "S"], on_missing="N"),
    "wage": cf.Numeric(0, 90),
    "age": cf.Integer(18, 80),
}
SCHEMA = cf.Schema(COLUMNS)
N = 400


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    g = np.random.default_rng(7)
    found = SCHEMA.sample(N, seed=1).astype({"wage": float, "age": float})
    for name, share in (("sex", 0.1), ("region", 0.1), ("wage", 0.2), ("age", 0.05)):
        found.loc[g.random(N) < share, name] = np.nan
    found.loc[:4, "sex"] = "x"  # no level of the schema
    return found


def said(method: object, frame: pd.DataFrame, *, relation: str = "add-remove", n: int | None = None) -> str:
    """The line of a release without noise, read from its file."""
    plan = method.plan(SCHEMA, cf.GDP(1.0, relation=relation), n=n)
    release = seal(method, cf.read(frame, SCHEMA), plan, ZeroNoise())
    return dict(cf.infer(Release.from_json(release.to_json())).legend).get("Missing", "")


def test_without_a_public_number_the_rules_alone_are_said(frame: pd.DataFrame) -> None:
    for method, columns in (
        (Counts("sex * region", inference="population"), "sex"),
        (Means("wage ~ sex", inference="population"), "sex or wage"),
        (Ratios("wage / age ~ region", inference="population"), "wage or age"),
        (Quantiles("wage ~ sex", inference="population"), "sex or wage"),
    ):
        found = said(method, frame)
        assert f"records with missing {columns} are excluded" in found
        assert "how many were excluded is not released" in found and not re.search(r"\d", found)
    assert "a missing region counts as the level 'N'" in said(Counts("sex * region", inference="population"), frame)
    nobody = said(Counts("region", inference="population"), frame)
    assert nobody and "excluded" not in nobody
    assert said(
        Means("wage ~ sex", inference="population", where="age >= 40"), frame, relation="substitute", n=N
    ).endswith("remain")


def test_of_a_public_number_of_records_the_table_tells_how_many_it_lacks(frame: pd.DataFrame) -> None:
    out = int((~frame["sex"].isin(["f", "m"])).sum())
    found = said(Counts("sex * region", inference="population"), frame, relation="substitute", n=N)
    assert f"of the {N} records, a public number, {out} were excluded (SD of the noise " in found


def test_of_several_columns_each_has_a_released_number_of_missing_values(frame: pd.DataFrame) -> None:
    counted = frame[frame["sex"].isin(["f", "m"])]
    for method, kept in (
        (Means("wage + age ~ sex", inference="dataset"), counted),
        (Means("wage + age", inference="dataset"), frame),
        (TableOne("wage + age ~ sex", inference="dataset"), counted),
    ):
        numbers = [int(kept[name].isna().sum()) for name in ("wage", "age")]
        found = [int(number) for number in re.findall(r"(?:wage|age) (\d+) \(SD of the noise", said(method, frame))]
        assert found == numbers and min(numbers) > 0
    levels = said(TableOne("sex + wage ~ region", inference="dataset"), frame)
    out = int((~frame["sex"].isin(["f", "m"])).sum())
    assert (
        f"sex {out} (SD of the noise" in levels and f"wage {int(frame['wage'].isna().sum())} (SD of the noise" in levels
    )


def test_persons_are_left_out_by_all_their_rows() -> None:
    schema = cf.Schema(COLUMNS, unit=cf.Unit("pid"))
    data = cf.read(schema.sample(300, seed=1), schema)
    method = DistinctCounts("any(age >= 40) * sex", inference="dataset")
    found = dict(cf.infer(cf.release(method, data, cf.GDP(1.0), ledger=None)).legend)["Missing"]
    assert "a row with a missing age satisfies no condition on it" in found
    assert "a pid none of whose rows has a sex is excluded" in found
