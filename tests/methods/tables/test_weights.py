"""Weighted tables: exactness, bounds of the rows, coverage, what is refused, and plans without weights that stay what they were."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.messages import refuses

import confide as cf
from confide import registry
from confide.core import method_parameters
from confide.errors import PlanError
from confide.noise import SimulatedNoise
from confide.sums.cells.cell_sums import CellTotals, Crossing
from confide.sums.cells.moments import Measure, MomentRows, count_steps
from confide.sums.cells.weighted_cells import CountRows, WeightedRows
from confide.testing import ZeroNoise, check_method

SCHEMA = cf.Schema(
    {
        "region": cf.Categorical(["N", "S"]),
        "smoker": cf.Categorical(["no", "yes"]),
        "income": cf.Numeric(0, 100),
        "bmi": cf.Numeric(10, 60, on_missing="drop"),
        "w": cf.Numeric(0, 6),
    }
)
KINDS: dict[str, Any] = {
    "counts": cf.tables.Counts("region * smoker", inference="population", weights="w"),
    "shares": cf.tables.Shares("region * smoker", within="region", inference="population", weights="w"),
    "means": cf.tables.Means("income + bmi ~ region", inference="population", weights="w"),
    "totals": cf.tables.Totals("income ~ region", inference="population", weights="w"),
}


def records(n: int, seed: int = 1) -> pd.DataFrame:
    g = np.random.default_rng(seed)
    w = np.minimum(g.lognormal(0, 0.6, n), 6)
    frame = pd.DataFrame(
        {
            "region": np.where(g.random(n) < 0.6, "N", "S"),
            "smoker": np.where(g.random(n) < 0.1 + 0.1 * (w > 1), "yes", "no"),
            "income": np.clip(50 + 12 * np.log(w) + 10 * g.normal(size=n), 0, 100),
            "bmi": g.normal(26, 4, n),
            "w": w,
        }
    )
    frame.loc[::50, "bmi"] = np.nan
    return frame


@pytest.mark.long
@pytest.mark.parametrize("kind", ["shares", "totals"])
def test_contract(kind: str) -> None:
    for method in (cf.tables.Shares, cf.tables.Totals):
        registry.register(method)
    assert check_method(KINDS[kind], SCHEMA, replications=8).ok


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_without_noise_they_are_the_weighted_numbers(kind: str, relation: str) -> None:
    frame, method = records(2_000), KINDS[kind]
    found = cf.infer(
        cf.release(method, cf.read(frame, SCHEMA), cf.GDP(1.0, relation=relation), ledger=None, noise=ZeroNoise())
    )
    frame = frame.assign(w=np.rint(frame.w / 6 * (2**20 - 1)) * 6 / (2**20 - 1))
    by = frame.groupby("region")
    if kind == "counts":
        expected = {"total": frame.w.sum(), "region=S": by.w.sum()["S"]}
        assert found.effective_size == pytest.approx(frame.w.sum() ** 2 / (frame.w**2).sum(), rel=1e-4)
    elif kind == "shares":
        own = frame.assign(y=frame.w * (frame.smoker == "yes")).groupby("region")
        expected = {"region=N, smoker=yes": (own.y.sum() / own.w.sum())["N"]}
    elif kind == "totals":
        expected = {"income | region=S": (frame.w * frame.income)[frame.region == "S"].sum()}
    else:
        seen = frame.dropna()
        expected = {
            "income | region=N": np.average(frame.income[frame.region == "N"], weights=frame.w[frame.region == "N"]),
            "bmi": np.average(seen.bmi, weights=seen.w),
        }
    for name, value in expected.items():
        assert found.params[name] == pytest.approx(value, rel=2e-5)


def test_the_variance_of_a_weighted_mean_is_the_linearised_one() -> None:
    frame = records(4_000)
    found = cf.infer(
        cf.release(
            cf.tables.Means("income ~ 1", inference="population", weights="w"),
            cf.read(frame, SCHEMA),
            cf.GDP(1e4),
            ledger=None,
            noise=ZeroNoise(),
        )
    )
    w, y = frame.w, frame.income
    mean = np.average(y, weights=w)
    assert found.bse["income"] == pytest.approx(np.sqrt((w**2 * (y - mean) ** 2).sum()) / w.sum(), rel=1e-3)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("measures", [0, 1, 2])
@pytest.mark.parametrize("cells", [1, 2])
def test_no_pair_of_records_passes_the_stated_sensitivity(cells: int, measures: int, relation: str) -> None:
    """Of two cells, and of all records in one, where no other cell can have the second record."""
    schema = cf.Schema(
        {"f": cf.Categorical(["a", "b"])}
        | {f"x{j}": cf.Numeric(-1, 1, steps=5, on_missing="drop") for j in range(measures)}
        | {"w": cf.Numeric(0, 1, steps=2**20, on_missing="drop")}
    )
    crossing = Crossing.of(("f",), schema)
    own = tuple(Measure.of(f"x{j}", schema) for j in range(measures))
    axes = (0,) if cells == 2 else ()
    inner = MomentRows(crossing, axes, own, count_steps(measures, relation)) if own else CountRows(crossing, axes)
    rows = WeightedRows(crossing, axes, inner, Measure.of("w", schema))
    assert rows.cells == cells
    weights = (-1, 0, 1, 2**18, 2**19, 2**20 - 5, 2**20 - 4, 2**20 - 3, 2**20 - 2, 2**20 - 1)
    codes = np.array(list(product((0, 1), *([(-1, 0, 1, 2, 4)] * measures), weights)), dtype=float).T
    blocks = rows(codes)
    alone = (blocks**2).sum(axis=0)
    bound = CellTotals(rows).sensitivity_squared(relation)
    assert alone.max() <= rows.l2_squared
    assert alone.max() >= rows.l2_squared * (1 - 1e-5)
    assert np.abs(blocks).sum(axis=0).max() <= rows.l1
    if relation == "substitute":
        apart = alone[:, None] + alone[None] - 2 * blocks.T @ blocks
        assert apart.max() <= bound
        assert apart.max() >= float(bound) * 0.999
        if cells == 1 and not own:
            # one record of the largest weight more or less, as under add-remove
            assert bound <= rows.l2_squared * Fraction(100_001, 100_000)


def test_intervals_cover_the_weighted_population() -> None:
    truth = records(400_000, seed=99)
    mean = np.average(truth.income, weights=truth.w)
    share = truth.w[truth.smoker == "yes"].sum() / truth.w.sum()
    covered = np.zeros(2)
    for seed in range(60):
        source = cf.read(records(1_000, seed), SCHEMA)
        for k, (method, name, value) in enumerate(
            (
                (cf.tables.Means("income ~ 1", inference="population", weights="w"), "income", mean),
                (cf.tables.Shares("smoker", inference="population", weights="w"), "smoker=yes", share),
            )
        ):
            table = cf.infer(cf.release(method, source, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed)))
            low, high = table.conf_int().loc[name]
            covered[k] += low <= value <= high
    # the 99.9 % interval of 60 runs at .95 begins at 50
    assert (covered >= 50).all(), covered


def test_tests_of_means_take_weights_and_others_refuse_them() -> None:
    frame = records(2_000)
    source = cf.read(frame.assign(income=frame.income.clip(0, 80) + 15 * (frame.smoker == "yes")), SCHEMA)
    call: dict[str, Any] = {"privacy": cf.GDP(1.0), "ledger": None}
    found = cf.tests.ttest_ind("income ~ smoker", source, weights="w", noise=SimulatedNoise(1), **call)
    assert found.pvalue < 0.01
    low, high = found.conf_int().iloc[0]
    assert not low <= 0 <= high
    for ask in (
        lambda: cf.tests.chi2_contingency("region * smoker", source, weights="w", **call),
        lambda: cf.tests.binomtest("smoker", source, weights="w", **call),
    ):
        with refuses(PlanError):
            ask()
    with refuses(PlanError):
        cf.infer(cf.release(KINDS["counts"], source, cf.GDP(1.0), ledger=None)).test("independence")


@pytest.mark.parametrize(
    "settings",
    [
        {"weights": "region"},
        {"weights": "v"},
        {"weights": "z"},
        {"weights": "w", "population_size": 100},
    ],
)
def test_weights_that_cannot_be_used_are_refused_in_the_plan(settings: dict[str, Any]) -> None:
    schema = cf.Schema({**SCHEMA.columns, "z": cf.Numeric(-1, 1)})
    with refuses(PlanError):
        cf.plan(cf.tables.Means("income ~ region", inference="population", **settings), schema, cf.GDP(1.0))


def test_a_plan_names_its_weights() -> None:
    assert method_parameters(cf.tables.Counts("region", inference="dataset"))["weights"] is None
    plan = cf.plan(KINDS["means"], SCHEMA, cf.GDP(1.0), n=1_000)
    assert plan.method.parameters["weights"] == "w"
    assert "weighted by w" in plan.target
    assert plan == cf.core.Plan.from_json(plan.to_json())
