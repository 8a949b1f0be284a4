"""Accuracy first: the smallest budget whose forecast is as sharp as asked, and what each budget buys."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide.errors import PlanError
from confide.margins import Targets, smallest
from confide.methods.publication import PublicationFile
from confide.noise import SimulatedNoise
from confide_lab.methods.quantile.ranks import Quantile
from tests.messages import refuses

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(0, 100),
        "region": cf.Categorical(["N", "S", "E"]),
        "x": cf.Numeric(0, 1),
        "y": cf.Numeric(-1, 3),
    }
)
TOLD = cf.Schema(
    {
        **SCHEMA.columns,
        "x": cf.Numeric(0, 1, typical=cf.Typical(0.1, 0.9, own=1.0)),
        "y": cf.Numeric(-1, 3, typical=cf.Typical(0, 2, own=0.5)),
    }
)
COUNTS = cf.tables.Counts("region", inference="dataset")
MEANS = cf.tables.Means("y ~ region", inference="population")
Z = 1.959963984540054


def expected(plan: Any, name: str) -> float:
    (key,) = [key for key in plan.forecast if key[0].isdigit()]
    cell = plan.forecast[key][name]
    return float(max(cell) if isinstance(cell, tuple) else cell)


@pytest.mark.parametrize(
    ("method", "margin"),
    [
        (COUNTS, {"region": 10.0}),
        (MEANS, {"region": 0.06, "total": 0.04}),
        (replace(MEANS, where="age >= 65"), {"region": 0.1}),
        (cf.regression.SSP("y ~ x"), {"x": 0.25}),
    ],
)
def test_the_budget_is_the_smallest_whose_forecast_is_as_sharp(method: Any, margin: dict[str, float]) -> None:
    # of a range the upper end may rise with the budget, as harder scenarios are answered; a number falls
    schema = TOLD if method.family == "regression" else SCHEMA
    plan = cf.plan(method, schema, margin=margin, n=5000)
    assert all(Z * expected(plan, name) <= half for name, half in margin.items())
    below = cf.plan(method, schema, cf.GDP(plan.guarantee.mu / 1.02), n=5000)
    assert any(Z * expected(below, name) > half for name, half in margin.items())
    assert plan == cf.plan(method, schema, cf.GDP(plan.guarantee.mu)), "n stands in no plan"
    assert any("counts as public" in note for note in plan.notes)


def test_the_accuracy_is_reached() -> None:
    plan = cf.plan(COUNTS, SCHEMA, margin={"region": 5.0 * Z}, n=5000)
    source = cf.read(SCHEMA.sample(5000, 1), SCHEMA)
    truth = np.array([(SCHEMA.sample(5000, 1)["region"] == level).sum() for level in ("N", "S", "E")])
    errors = []
    for seed in range(100):
        done = cf.release(COUNTS, source, plan.requested, ledger=None, noise=SimulatedNoise(seed))
        frame: Any = cf.infer(done).to_frame()
        errors.append(frame["estimate"].to_numpy()[-3:] - truth)
    # 300 errors of sd at most 5: a root mean square above 5.8 has a chance below 1e-4
    assert 4.2 < np.sqrt(np.mean(np.square(errors))) < 5.8


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (COUNTS, {"margin": {"regoin": 5}, "n": 5000}),
        (COUNTS, {"margin": {"region": 5}}),
        (COUNTS, {"margin": {"region": 0}, "n": 5000}),
        (COUNTS, {"margin": {}, "n": 5000}),
        (COUNTS, {"margin": {"region": 5}, "n": 5000, "privacy": cf.GDP(1.0)}),
        (COUNTS, {"cv": 0.02, "n": 5000, "privacy": cf.GDP(1.0)}),
        (COUNTS, {"cv": 0.02}),
        (COUNTS, {"cv": "2%", "n": 5000}),
        (COUNTS, {"cv": {"region": 0.0}, "n": 5000}),
        (COUNTS, {"cv": {"regoin": 0.02}, "n": 5000}),
        (MEANS, {"margin": {"mean": "2%"}, "n": 5000}),
        (MEANS, {"cv": 0.02, "n": 5000}),
        (cf.regression.LeastSquares("y ~ x"), {"cv": 0.02, "n": 5000}),
        (MEANS, {"margin": {"region": 0.003}, "n": 5000}),
        (Quantile("x"), {"margin": {"x": 0.1}, "n": 5000}),
    ],
)
def test_what_cannot_be_had_is_said(method: Any, given: dict[str, Any]) -> None:
    with refuses(PlanError):
        cf.plan(method, SCHEMA, **given)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (MEANS, {"margin": {"region": 0.003}}),
        (cf.tables.Totals("y ~ region", inference="population"), {"margin": {"region": 1.0}}),
        (replace(COUNTS, inference="population"), {"cv": {"region": 0.001}}),
    ],
)
def test_no_number_of_records_is_said_to_do(method: Any, given: dict[str, Any]) -> None:
    """An error relative to the number of records falls with them; that of a total or a count does not."""
    with refuses(PlanError) as found:
        cf.plan(method, SCHEMA, n=5000, **given)
    assert "would do" not in str(found.value)


def test_precision_against_budget_is_the_forecast_of_each_plan() -> None:
    found = cf.margins_by_cost(MEANS, SCHEMA, n=2000, levels=(0.2, 1.0))
    for level in (0.2, 1.0):
        plan = cf.plan(MEANS, SCHEMA, cf.GDP(level), n=2000)
        assert found.to_frame().loc[level, ("region", "high")] == expected(plan, "region")
    assert "2,000 records" in found.summary()
    axes = found.plot()
    assert len(axes.lines) == 2 and axes.get_xscale() == "log"
    named = found.plot(title="Regions", labels={"region": "Any region"})
    assert named.get_title(loc="left") == "Regions"
    assert "Any region" in [text.get_text() for text in named.get_legend().get_texts()]
    with refuses(PlanError):
        found.plot(labels={"north": "North"})


def test_accuracy_is_a_half_width_of_95_percent_everywhere(tmp_path: Any) -> None:
    """The issue's mean within 400: one mu in Python, in a publication's file and, in tests/cli, on the command line."""
    schema = cf.Schema({"income": cf.Numeric(0, 100_000), "region": cf.Categorical(["N", "S"])})
    method = cf.tables.Means("income ~ 1", inference="population", bounds="declared")
    plan = cf.plan(method, schema, margin={"mean": 600.0}, n=20_000)
    assert Z * expected(plan, "total") == pytest.approx(600.0, rel=0.01)
    path = tmp_path / "publication.toml"
    path.write_text(
        "n = 20000\n[analyses.means]\nmethod = 'means'\nformula = 'income ~ 1'\ninference = 'population'\n"
        "bounds = 'declared'\nmargin = { mean = 600 }\n"
    )
    asked = PublicationFile.from_toml(path)
    again = cf.plan(asked.publication, schema, n=asked.n, **asked.terms())
    assert again.guarantee.mu == pytest.approx(plan.guarantee.mu, rel=1e-3)


def test_a_cv_is_a_standard_error_over_the_number() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 100, typical=(10, 40)), "region": cf.Categorical(["N", "S", "E"])})
    counts = cf.plan(COUNTS, SCHEMA, cv={"region": 0.02}, n=6000)
    assert expected(counts, "region") == pytest.approx(0.02 * 2000, rel=0.01)
    shares = cf.plan(cf.tables.Shares("region", inference="dataset"), SCHEMA, cv=0.02, n=6000)
    assert expected(shares, "region") == pytest.approx(0.02 / 3, rel=0.01)
    means = cf.plan(
        cf.tables.Means("x ~ region", inference="population", bounds="declared"), schema, cv={"mean": 0.05}, n=6000
    )
    assert expected(means, "region") == pytest.approx(0.05 * 25, rel=0.01)
    totals = cf.plan(
        cf.tables.Totals("x ~ region", inference="dataset", bounds="declared"), schema, cv={"region": 0.05}, n=6000
    )
    assert expected(totals, "region") == pytest.approx(0.05 * 25 * 2000, rel=0.01)
    one = cf.plan(cf.tables.TableOne("x ~ region", bounds="declared"), schema, cv={"x: mean": 0.05}, n=6000)
    assert expected(one, "x: mean") == pytest.approx(0.05 * 25, rel=0.01)
    both = cf.plan(COUNTS, SCHEMA, margin={"region": 20.0}, cv=0.5, n=6000)
    assert both.guarantee == cf.plan(COUNTS, SCHEMA, margin={"region": 20.0}, n=6000).guarantee


@pytest.mark.parametrize(
    ("method", "given", "words"),
    [
        (
            MEANS,
            {"margin": {"mean": 0.1}},
            "of region, a cell with a quarter of those records gets a margin of error of about",
        ),
        (MEANS, {"margin": {"total": 0.1}}, None),
        (COUNTS, {"margin": {"count": 20.0}}, None),
        (COUNTS, {"cv": 0.02}, "a quarter of those records gets a cv of about 0.0798 where 0.02 was asked for"),
        (cf.tables.Shares("region", inference="population"), {"margin": {"region": 0.03}}, "a share of one half"),
        (cf.tables.Quantiles("y ~ region"), {"margin": {"quantile": 0.06}}, "a group with a quarter"),
        (cf.tables.TableOne("y ~ region"), {"margin": {"mean": 0.1}}, "a group with a quarter"),
        (
            cf.tables.Shares("region * cut(age, 40)", within="region", inference="population"),
            {"margin": {"share": 0.05}},
            "in a group with a quarter",
        ),
    ],
)
def test_targets_by_cell_say_what_unequal_cells_get(method: Any, given: dict[str, Any], words: str | None) -> None:
    plan = cf.plan(method, SCHEMA, n=5000, **given)
    told = [note for note in plan.notes if "cells of equal size" in note]
    assert len(told) == (words is not None) and all(words in note for note in told if words)


def test_what_a_cell_with_a_quarter_gets_is_the_forecast_of_one() -> None:
    plan = cf.plan(MEANS, SCHEMA, margin={"region": 0.1}, n=6000)
    (told,) = [float(note.partition("about ")[2].split()[0]) for note in plan.notes if "cells of equal size" in note]
    quarter = cf.plan(MEANS, SCHEMA, plan.requested, n=1500)
    assert told == pytest.approx(Z * expected(quarter, "region"), rel=1e-3)


def test_a_wished_noise_beside_a_smaller_budget_is_refused() -> None:
    wished = replace(COUNTS, precision={"total": 5, "region": 5})
    least = cf.plan(wished, SCHEMA).requested
    assert cf.plan(wished, SCHEMA, least).guarantee == cf.plan(wished, SCHEMA, cf.GDP(least.mu)).guarantee
    with refuses(PlanError):
        cf.plan(wished, SCHEMA, cf.GDP(least.mu / 2))


@pytest.mark.usefixtures("whole_forecasts")
@pytest.mark.parametrize(
    ("method", "margin"),
    [
        (cf.tables.Quantiles("y ~ region"), {"quantile": 0.06}),
        (cf.tables.TableOne("y + age ~ region", medians=("y",)), {"y: mean": 0.1, "y: median": 0.08}),
        pytest.param(cf.regression.LeastSquares("y ~ x"), {"x": 3.0}, marks=pytest.mark.long),
    ],
)
def test_distributions_table_one_and_regressions_take_half_widths(method: Any, margin: dict[str, float]) -> None:
    plan = cf.plan(method, SCHEMA, margin=margin, n=5000)
    for name, half in margin.items():
        names = ("0.25", "0.5", "0.75") if name == "quantile" else (name,)
        assert all(1.959964 * expected(plan, own) <= half for own in names)


def test_a_kind_stands_for_the_numbers_of_its_kind_alone() -> None:
    one = cf.tables.TableOne("age + region ~ 1", medians=("age",))
    forecast = cf.plan(one, SCHEMA, margin={"mean": 0.8, "share": 0.03, "quantile": 0.02}, n=5_000)
    errors = [expected(forecast, name) for name in ("age: mean", "region", "age: median")]
    assert Z * errors[0] <= 0.8 and Z * errors[1] <= 0.03 and Z * errors[2] <= 0.02
    by_name = cf.plan(one, SCHEMA, margin={"age: mean": 0.8, "region": 0.03, "age: median": 0.02}, n=5_000)
    assert forecast.guarantee == by_name.guarantee
    # a count that is known to .05 of a record costs mu = 31
    for method, kind in ((COUNTS, "share"), (MEANS, "count")):
        with refuses(PlanError):
            cf.plan(method, SCHEMA, margin={kind: 0.05}, n=5_000)


def test_the_half_width_of_a_mean_is_reached() -> None:
    # records as the forecast assumes them: a third of the half-width as sd, the mean half-way to a bound
    schema = cf.Schema({"y": cf.Numeric(-1, 1)})
    method = cf.tables.Means("y ~ 1", inference="population", bounds="declared")
    plan = cf.plan(method, schema, margin={"mean": 0.03}, n=2000)
    y = np.clip(np.random.default_rng(1).normal(0.5, 1 / 3, 2000), -1, 1)
    done = cf.release(method, cf.read({"y": y}, schema), plan.requested, ledger=None, noise=SimulatedNoise(1))
    low, high = cf.infer(done).conf_int().loc["y"]
    assert (high - low) / 2 == pytest.approx(0.03, rel=0.08)


def test_a_publication_is_planned_for_the_accuracy_of_each_question(tmp_path: Any) -> None:
    both = cf.Publication({"counts": COUNTS, "means": MEANS})
    wishes = {"counts": {"count": 10.0}, "means": {"mean": 0.1}}
    plan = cf.plan(both, SCHEMA, margin=wishes, n=5000)
    for name, method in both.methods.items():
        alone = cf.plan(method, SCHEMA, margin=wishes[name], n=5000).guarantee.mu
        assert alone <= plan.children[name].guarantee.mu <= alone * 1.001
    with refuses(PlanError):
        cf.plan(both, SCHEMA, margin={"counts": {"count": 10.0}}, n=5000)
    path = tmp_path / "publication.toml"
    path.write_text(
        "n = 5000\n[analyses.counts]\nmethod = 'counts'\nformula = 'region'\ninference = 'dataset'\n"
        "margin = { count = 10 }\n[analyses.means]\nmethod = 'means'\nformula = 'y ~ region'\ninference = 'population'\n"
        "margin = { mean = 0.1 }\n"
    )
    asked = PublicationFile.from_toml(path)
    again = cf.plan(asked.publication, SCHEMA, n=asked.n, **asked.terms())
    assert again.guarantee.mu == plan.guarantee.mu
    with refuses(PlanError):
        asked.terms(cf.GDP(1.0))
    path.write_text(path.read_text().replace("n = 5000", "n = 5000\nprivacy = { mu = 1 }"))
    with refuses(PlanError):
        PublicationFile.from_toml(path).terms()
    path.write_text(
        path.read_text().replace("margin = { count = 10 }", "cv = 0.02").replace("privacy = { mu = 1 }", "")
    )
    asked = PublicationFile.from_toml(path)
    plan = cf.plan(asked.publication, SCHEMA, n=asked.n, **asked.terms())
    assert any(note.startswith("counts: margin: the forecast has cells") for note in plan.notes)
    assert sum("counts as public" in note for note in plan.notes) == 1


def test_a_budget_at_which_next_to_nothing_is_answered_is_no_answer():
    def plan_at(level: float) -> Any:
        forecast = {"4,000": {"b": 0.01}, "answered": {"4,000": 0.02 if level < 0.5 else 0.9}}
        return SimpleNamespace(method=SimpleNamespace(name="logistic"), forecast=forecast, level=level)

    wish = Targets.of({"b": 0.1}, n=4_000)
    method = cf.regression.Logistic("y ~ b")
    assert smallest(plan_at, wish, method)[0].level == pytest.approx(0.5, rel=0.01)
    with refuses(PlanError):
        smallest(lambda level: plan_at(0.1), wish, method)


def test_typical_values_serve_the_margin_of_a_mean_and_its_plan() -> None:
    """With them a margin is reached that the bounds alone put out of reach, and the plan prints what was asked for, with a verdict."""
    wide = cf.Schema({"y": cf.Numeric(0, 9000), "g": cf.Categorical(["a", "b"])})
    told = wide.with_columns({**wide.columns, "y": cf.Numeric(0, 9000, typical=(1500, 5000))})
    asked = cf.tables.Means(formula="y ~ g", inference="population")
    with pytest.raises(PlanError, match="the SD is taken as a sixth of the width of the bounds: y 1,500"):
        cf.plan(asked, wide, margin={"mean": 50}, n=4000)
    made = cf.plan(asked, told, margin={"mean": 50}, n=4000)
    assert 1.96 * made.forecast["4000"]["g"] == pytest.approx(50, rel=0.01)
    said = made.summary()
    assert (
        said.startswith("Plan: mean y by g\n")
        and "Valid intervals for all means: chance high (100% of scenarios)" in said
    )


def test_a_column_without_bounds_or_typical_values_gives_a_precision_no_unit() -> None:
    """Its forecast is in units of a range that nobody knows: 40 of them would be had at the least budget."""
    means = cf.tables.Means("pay ~ region", inference="population")
    bare = cf.Schema({"pay": cf.Numeric(low=0), "region": cf.Categorical(["N", "S"])})
    with refuses(PlanError):
        cf.plan(means, bare, margin={"mean": 40.0}, n=4000)
    with refuses(PlanError):
        cf.margins_by_cost(means, bare, n=4000)
    told = cf.Schema({**bare.columns, "pay": cf.Numeric(low=0, typical=(300, 1500))})
    plan = cf.plan(means, told, margin={"mean": 40.0}, n=4000)
    assert plan.guarantee.mu > 0.01 and Z * expected(plan, "region") <= 40.0
