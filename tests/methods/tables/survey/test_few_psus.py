"""Cells and subgroups in few PSUs, or clusters: their own PSUs give the degrees of freedom, and too few an alarm."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.messages import refuses
from tests.simulated import simulated

import confide as cf
from confide.errors import NoResult
from confide.methods.tables.survey.results import SurveyTable

pytestmark = pytest.mark.usefixtures("declared")

# Domains of so many PSUs.
DOMAINS = (1, 2, 4, 23)
PSUS = tuple(f"p{k}" for k in range(sum(DOMAINS)))
LABELS = tuple(f"in {k}" for k in DOMAINS)
COLUMNS: dict[str, Any] = {"y": cf.Numeric(0, 100), "d": cf.Categorical(LABELS), "s": cf.Categorical(["f", "m"])}
IDS = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=100))
LISTED = cf.Schema({**COLUMNS, "v": cf.Categorical(PSUS)}, design=cf.SurveyDesign(psu="v", psus=PSUS, size=100))
PAIRS = cf.Schema(
    {**COLUMNS, "v": cf.Categorical(PSUS), "h": cf.Categorical([str(k) for k in range(15)])},
    design=cf.SurveyDesign(
        psu="v", strata="h", psus={str(k): list(PSUS[2 * k : 2 * k + 2]) for k in range(15)}, size=100
    ),
)


def people(seed: int, mean: float = 22.0, between: float = 3.0) -> pd.DataFrame:
    """Persons of 30 PSUs whose means differ by that sd, each PSU in one domain."""
    g = np.random.default_rng(seed)
    v = np.repeat(np.arange(len(PSUS)), g.poisson(100, len(PSUS)))
    y = mean + between * g.normal(size=len(PSUS))[v] + 4 * g.normal(size=len(v))
    return pd.DataFrame(
        {
            "y": np.clip(y, 0, 100),
            "d": np.repeat(LABELS, DOMAINS)[v],
            "s": g.choice(["f", "m"], len(v)),
            "v": np.array(PSUS)[v],
            "h": (v // 2).astype(str),
        }
    )


def table(schema: cf.Schema, seed: int, method: Any = None, mu: float = 3.0) -> SurveyTable:
    own = method or cf.tables.Means("y ~ d", inference="population")
    found: SurveyTable = simulated(own, cf.read(people(seed), schema), cf.GDP(mu), seed)
    return found


@lru_cache
def _frames(name: str) -> pd.DataFrame:
    """Of 25 samples."""
    schema = {"ids": IDS, "listed": LISTED}[name]
    found = [table(schema, seed) for seed in range(25)]
    return pd.concat([one.to_frame().assign(df=one.df.to_numpy()) for one in found])


@pytest.mark.parametrize("name", ["ids", "listed"])
def test_domains_have_the_degrees_of_freedom_of_their_own_psus(name: str) -> None:
    every = _frames(name)
    alone, two, four, many = (every[every["d"] == label] for label in LABELS)
    # one PSU, or two, show too little of how PSUs differ
    for few in (alone, two):
        assert few["flags"].str.contains("few_psus").all() and (few["df"] < 2.5).all()
    assert ((four["df"] <= 3) | four["flags"].str.contains("few_psus")).mean() >= 0.9
    assert not many["flags"].str.contains("few_psus").any()
    assert (many["df"] <= len(PSUS) - 1).all() and many["df"].median() > 9
    # what no flag speaks against covers: 99.9 % of draws of .95 have at least so many
    plain = every[~every["flags"].str.contains("few_psus")]
    hits = ((plain["ci_low"] <= 22) & (plain["ci_high"] >= 22)).sum()
    assert hits >= stats.binom.ppf(0.001, len(plain), 0.95)


def test_a_whole_table_of_domains_in_one_psu_each_is_weak() -> None:
    frame = people(1)
    frame = frame[frame["d"].isin(LABELS[:2])]
    found = simulated(cf.tables.Means("y ~ d", inference="population"), cf.read(frame, IDS), cf.GDP(3.0), 1)
    assert found.status == "imprecise" and "more than three PSUs" in found.reason
    assert "few_psus (all 5 rows)" in found.summary()


@pytest.mark.parametrize("schema", [IDS, LISTED], ids=["ids", "listed"])
def test_a_subgroup_has_its_own_psus(schema: cf.Schema) -> None:
    """Of one PSU of about 100 persons, with 6 or 29 degrees of freedom before: never a finite interval without an alarm."""
    small = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=15)) if schema is IDS else schema
    for seed in range(10):
        found = table(small, seed, cf.tables.Means("y ~ 1", inference="population", where="d == 'in 1'"))
        assert found.status in ("imprecise", "no_information") and "more than three PSUs" in found.reason
        assert "few_psus" in found.to_frame()["flags"][0]
    many = table(schema, 1, cf.tables.Means("y ~ 1", inference="population", where="d == 'in 23'"))
    assert many.status == "valid" and not many.to_frame()["flags"].str.contains("few_psus").any()
    assert 9 < many.df.iloc[0] <= 22


def test_a_share_rests_on_those_who_are_not_in_it_as_well() -> None:
    """A level that all PSUs but one have is known no better than that of the other one."""
    frame = people(2).assign(s=lambda own: np.where(own["d"] == LABELS[0], "f", "m"))
    for method in (cf.tables.Shares("s", inference="population"), cf.tables.Counts("s", inference="population")):
        schema = cf.Schema(COLUMNS, design=cf.SurveyDesign(psu="v", size=100, count=len(PSUS)))
        found = simulated(method, cf.read(frame, schema), cf.GDP(3.0), 1)
        own = found.to_frame()
        assert own[own["s"].isin(["f", "m"])]["flags"].str.contains("few_psus").all()
    # the total of a column where it is in 29 PSUs is as good as these
    total = simulated(
        cf.tables.Totals("y ~ s", inference="population"),
        cf.read(frame, cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=100))),
        cf.GDP(3.0),
        1,
    ).to_frame()
    flags = dict(zip(total["s"].astype(str), total["flags"].str.contains("few_psus"), strict=True))
    assert flags["f"] and not flags["m"]


def test_in_strata_of_two_a_cell_has_half_of_its_psus() -> None:
    for seed in range(5):
        found = table(PAIRS, seed, mu=30.0)
        df = dict(zip(found.to_frame()["d"].astype(str), found.df, strict=True))
        assert df["in 23"] <= 12 and df["in 4"] <= 2
        assert found.to_frame()["flags"][2].count("few_psus") == 1


def test_no_sum_over_levels_of_which_one_is_in_one_psu() -> None:
    found = table(IDS, 1)
    with refuses(NoResult):
        found.poststratify(dict.fromkeys(LABELS, 1.0), "d")
    plain = table(IDS, 1, cf.tables.Means("y ~ s", inference="population"))
    assert 9 < plain.poststratify({"f": 1, "m": 1}, "s")["df"].iloc[0] <= 29


def test_these_records_alone_need_no_psus() -> None:
    found = table(IDS, 1, cf.tables.Means("y ~ d", inference="dataset"))
    assert not found.to_frame()["flags"].str.contains("few_psus").any() and np.isinf(found.df).all()


@pytest.mark.parametrize("schema", [IDS, LISTED], ids=["ids", "listed"])
@pytest.mark.parametrize(
    "make", [cf.regression.LeastSquares, cf.regression.Logistic], ids=["least_squares", "logistic"]
)
def test_a_line_of_a_subgroup_has_its_own_psus(schema: cf.Schema, make: Any) -> None:
    """Of two PSUs of 100, stated as 15: no interval; of 23 one with their degrees of freedom."""
    formula = "s ~ y" if make is cf.regression.Logistic else "y ~ s"
    if schema is IDS:
        schema = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=15))
    few, many = (table(schema, 3, make(formula, where=f"d == '{label}'"), 8.0) for label in ("in 2", "in 23"))
    assert few.status in ("imprecise", "not_identified") and not np.isfinite(few.conf_int()).any(axis=None)
    if few.status == "imprecise":
        assert "more than three PSUs" in few.reason
    if many.status == "valid":
        assert (np.asarray(many.df) <= 23).all()


def test_means_of_classes_of_a_subgroup_have_its_own_clusters() -> None:
    schema = cf.Schema(COLUMNS, cluster=cf.Clusters("v", size=15))
    few, many = (
        table(schema, 3, cf.classification.ClassMeans("s ~ y", where=f"d == '{label}'"), 8.0)
        for label in ("in 2", "in 23")
    )
    assert few.status == "imprecise" and "more than three PSUs" in few.reason and many.status == "valid"
