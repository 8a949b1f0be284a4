"""A third party's method gets what ours have by stating it once: plan, forecast, command line, menu, publication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import confide as cf
import confide.testing
from confide import registry
from confide.advice import TASKS
from confide.ask import menu
from confide.cli import app
from confide.noise import SimulatedNoise
from tests.messages import refuses
from tests.third_party import Gini, Mean

SCHEMA = cf.Schema(
    {"income": cf.Numeric(1, 101, typical=(6, 75)), "region": cf.Categorical(["N", "S"]), "age": cf.Integer(18, 90)},
    dataset="survey",
)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register(Gini)
    yield
    for kind in (Gini, Kindred, Slopes, Tallies):
        registry._registered.pop(kind.name, None)


def incomes(n: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    income = np.clip(generator.gamma(2.0, 15.0, n) + 1, 1, 101)
    return {"income": income, "region": generator.choice(["N", "S"], n), "age": generator.integers(18, 91, n)}


def test_its_intervals_hold_what_it_estimates() -> None:
    values = incomes(400_000, 0)
    truth = Gini("income").reference(values)["gini"]
    held = 0
    for seed in range(1, 101):
        data = cf.read(incomes(2_000, seed), SCHEMA)
        found = cf.infer(cf.release(Gini("income"), data, cf.GDP(1.0), ledger=None, noise=SimulatedNoise(seed)))
        low, high = found.conf_int().loc["gini"]
        held += low <= truth <= high
    # 95 of 100 are meant; fewer than 87 have a chance of .001
    assert held >= 87


@pytest.mark.long
def test_it_keeps_the_contract() -> None:
    cf.testing.check_method(Gini("income"), SCHEMA)


def test_its_plan_has_a_forecast() -> None:
    plan = cf.plan(Gini("income"), SCHEMA, cf.GDP(1.0), n=2_000)
    assert plan.guarantee.mu == 1.0 and "gini" in plan.summary()
    data = cf.read(incomes(2_000, 1), SCHEMA)
    error = cf.infer(cf.release(plan, data, ledger=None, noise=SimulatedNoise(1))).bse["gini"]
    assert error / 2 < plan.forecast["2,000"]["gini"] < error * 2


def test_its_parameters_are_options_of_the_command_line(tmp_path: Path) -> None:
    schema, out = tmp_path / "schema.toml", tmp_path / "gini.json"
    schema.write_text(SCHEMA.to_toml())
    words = [
        "plan",
        "income",
        "--method",
        "gini",
        "--param",
        "bins=32",
        "--schema",
        str(schema),
        "--mu",
        "1",
        "-o",
        str(out),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    plan = cf.plan(Gini("income", bins=32), SCHEMA, cf.GDP(1.0))
    assert f'"sha256":"{plan.sha256}"' in out.read_text()


def test_the_menu_has_its_entry_after_ours(tmp_path: Path) -> None:
    family, (entry,) = menu.by_family()[-1]
    assert family.name == Gini.family and entry == menu.questions()[-1] == menu.question("gini")
    assert entry.asked_of(SCHEMA) == "income" and entry.example == "hours"
    form = {"kind": "gini", "formula": "income", "where": "age >= 65"}
    assert menu.method_of_form(form) == Gini("income", where="age >= 65")
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA.to_toml())
    listed = CliRunner().invoke(app, ["explore", str(schema)]).output
    assert "How unequal are incomes" in listed and "--method gini" in listed and "plan takes no records" in listed


@dataclass(frozen=True)
class Tallies(cf.tables.Counts):
    """Counts under another name."""

    name: ClassVar[str] = "tallies"


@dataclass(frozen=True)
class Kindred(Tallies):
    """The same, and it says so."""

    name: ClassVar[str] = "kindred"
    kin: ClassVar[str] = cf.tables.Counts.kin


@dataclass(frozen=True)
class Slopes(cf.regression.SSP):
    """A line under another name."""

    name: ClassVar[str] = "slopes"


def test_tables_of_one_kin_are_pooled_and_what_is_derived_is_of_none() -> None:
    schema = cf.Schema({name: cf.Categorical(list("abcde"), on_missing="a") for name in "xyz"})
    asked = {"one": cf.tables.Counts("x * y", inference="dataset")}
    for kind, parts in ((Kindred, ["one + two"]), (Tallies, ["one", "two"])):
        registry.register(kind)
        plan = cf.plan(cf.Publication({**asked, "two": kind("x * z", inference="dataset")}), schema, cf.GDP(1.0))
        assert list(plan.children) == parts
    assert cf.tables.Counts.menu is not None and Tallies.menu is None


def test_advice_compares_what_states_the_task() -> None:
    registry.register(Slopes)
    found = TASKS["linear_regression"].candidates("age ~ income", SCHEMA, 1_000)
    assert Slopes in [method for method, _ in found] and Gini not in [method for method, _ in found]


def test_a_role_that_no_column_plays_is_named() -> None:
    with refuses(cf.errors.PlanError):
        menu.Question.of(cf.core.MenuEntry("Where", "{city}", "A city."), "where")


def test_a_publication_asks_it_beside_ours() -> None:
    asked = {"unequal": Gini("income"), "regions": cf.tables.Counts("region", inference="dataset")}
    data = cf.read(incomes(2_000, 1), SCHEMA)
    release = cf.release(cf.Publication(asked), data, cf.GDP(2.0), ledger=None, noise=SimulatedNoise(1))
    report = cf.infer(cf.Release.from_json(release.to_json()))
    assert report["unequal"].params["gini"] == pytest.approx(
        Gini("income").reference(incomes(2_000, 1))["gini"], abs=0.05
    )


def test_a_class_without_its_facts_is_not_registered() -> None:
    class Nameless(cf.core.Method):
        family = "intervals"

    class Homeless(cf.core.Method):
        name = "homeless"

    for one in (Nameless, Homeless):
        with refuses(cf.errors.PlanError):
            cf.register(one)
    assert "homeless" not in registry.known()


@pytest.mark.parametrize("wrong", [1.0, (), None], ids=["a float", "no pair", "nothing"])
def test_statistics_that_are_none_are_refused_with_those_that_work(wrong: Any) -> None:
    @dataclass(frozen=True)
    class Wrong(Mean):
        def statistics(self, rows: Any, relation: str) -> Any:
            ((name, (total, _)),) = super().statistics(rows, relation).items()
            return {name: (total, wrong)} if isinstance(wrong, float) else {name: wrong}

    with refuses(cf.errors.PlanError):
        cf.plan(Wrong("v"), cf.Schema({"v": cf.Numeric(0, 1)}), cf.GDP(1.0))
