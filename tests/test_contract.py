"""Every registered method, and a third party's, goes through the executable contract; faults planted in one are caught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import confide as cf
from confide import registry
from confide.core import Plan, Total
from confide.sums import ColumnMoments
from confide.testing import check_method
from confide.testing.checks import CHECKS, Case
from confide.testing.contract import HIDDEN, tried
from tests.few import few
from tests.messages import refuses
from tests.third_party import Mean

SCHEMA = cf.Schema({"v": cf.Numeric(0, 10), "w": cf.Integer(0, 5)}, dataset="d")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register(Mean)
    yield
    registry._registered.pop("toy_mean", None)


@pytest.mark.parametrize(
    ("formula", "cov"),
    # each formula and each covariance here, every pair of them with the benchmarks
    few(
        [
            ("y ~ a + b", "robust"),
            ("y ~ 0 + a", "classical"),
            ("log(y) ~ a + I(a**2) + a:b", "robust"),
            pytest.param("y ~ a + b", "classical", marks=pytest.mark.long),
            pytest.param("y ~ 0 + a", "robust", marks=pytest.mark.long),
            pytest.param("log(y) ~ a + I(a**2) + a:b", "classical", marks=pytest.mark.long),
        ],
        0,
    ),
)
def test_ssp_keeps_the_contract(formula: str, cov: str) -> None:
    """Ten runs show an interval that covers rarely; tests/methods/regression/test_ssp.py asks for 95 %."""
    assert check_method(cf.regression.SSP(formula, cov=cov), replications=10, privacy=cf.GDP(3.0)).ok


@pytest.mark.long
def test_ssp_keeps_the_contract_with_categories_and_imputation() -> None:
    schema = cf.Schema(
        {
            "region": cf.Categorical(["N", "S"], on_missing="N"),
            "k": cf.Integer(0, 9, on_missing="midpoint"),
            "y": cf.Numeric(-3, 3, on_missing=0.0),
        },
        rows_per_unit=2,
    )
    assert check_method(cf.regression.SSP("y ~ region + k"), schema, replications=10, privacy=cf.GDP(3.0)).ok


def test_a_strangers_method_keeps_the_contract_and_gets_the_ledger_and_the_report(tmp_path: Path) -> None:
    assert check_method(Mean("v"), SCHEMA).ok
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(1.0))
    release = cf.release(Mean("v"), cf.read(SCHEMA.sample(3_000, 1), SCHEMA), cf.GDP(1.0), ledger=book)
    result = cf.infer(cf.Release.from_json(release.to_json()))
    assert abs(result.params["mean"] - 5.0) < 6 * result.bse["mean"]
    assert cf.verify(release, book).ok
    assert "mean of v" in result.report(tmp_path / "report.html").read_text()
    assert "toy_mean" in {info.name for info in cf.list_methods()}


@dataclass(frozen=True)
class Leaky(ColumnMoments):
    """A record map with a planted fault."""

    fault: str = ""

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        rows = super().__call__(codes)
        if self.fault == "batch" and rows.shape[1] > 7:
            rows[1] = np.maximum(rows[1] - 1, 0)
        if self.fault == "bound":
            rows[2] *= 4
        if self.fault == "fraction":
            rows[1] += 0.5
        return rows


_remembered: list[str] = []


@dataclass(frozen=True)
class Broken(Mean):
    fault: str = ""

    def draw(self, source: Any, plan: Plan, meter: Any) -> Any:
        if self.fault == "remembers":
            _remembered.append(str(source.aggregate(plan.statistic("moments"))[0][0]))
        return super().draw(source, plan, meter)

    def plan(self, schema: cf.Schema, privacy: Any, *, n: int | None = None, public: Any = None) -> Plan:
        plan = super().plan(schema, privacy, n=n)
        if self.fault in ("batch", "bound", "fraction"):
            return replace(
                plan, statistics={"moments": Total(Leaky(schema, self.column, fault=self.fault), nonnegative=True)}
            )
        if self.fault == "cheap":
            return replace(plan, event=replace(plan.event, scale=plan.event.scale / 2))
        if self.fault == "sensitivity":
            spend = plan.event
            return replace(plan, event=replace(spend, sensitivity=spend.sensitivity / 2, scale=spend.scale / 4))
        if self.fault == "random plan":
            return replace(plan, target=str(np.random.default_rng().integers(1 << 60)))
        return plan

    def infer(self, release: cf.Release, question: Any = None) -> Any:
        result = super().infer(release, question)
        if self.fault == "narrow":
            return replace(result, covariance=result.covariance / 16)
        if self.fault == "unstable":
            return replace(result, estimates=result.estimates + np.random.default_rng().normal())
        if self.fault == "raises" and result.estimates[0] > 9:
            raise ValueError("the mean is high")
        if self.fault == "status" and result.estimates[0] > 9:
            return replace(result, facts=(("n", "many"),), status="odd")
        if self.fault == "remembers":
            nothing = np.full_like(result.covariance, np.nan)
            return replace(result, status="imprecise", covariance=nothing, reason=f"of {_remembered[-1]} records")
        return result


# fault -> the check that must catch it
_CAUGHT = {
    "batch": "_maps_one_record",
    "bound": "_bounds_hold",
    "fraction": "_maps_one_record",
    "cheap": "_pays_for_what_it_draws",
    "sensitivity": "_pays_for_what_it_draws",
    "random plan": "_describes_itself",
    "narrow": "_reads_back",
    "unstable": "_reads_back",
    "raises": "_data_never_raise",
    "status": "_data_never_raise",
    "remembers": "infer_reads_the_release_alone",
}


@pytest.mark.parametrize("fault", _CAUGHT)
def test_the_contract_catches_planted_faults(fault: str) -> None:
    """Each by its own check, which the same method without the fault passes."""
    (check,) = (one for one in (*CHECKS, *HIDDEN) if one.__name__ == _CAUGHT[fault])
    assert tried(check, Case(Broken("v"), SCHEMA, cf.GDP(1.0))) is None
    assert tried(check, Case(Broken("v", fault=fault), SCHEMA, cf.GDP(1.0))) is not None


def test_a_broken_contract_raises_with_every_check_that_failed() -> None:
    with refuses(AssertionError):
        check_method(Broken("v", fault="fraction"), SCHEMA, replications=2)


@dataclass(frozen=True)
class Elsewhere(Mean):
    """Valid intervals of one number under the name of another: its reference is not what it estimates."""

    def reference(self, frame: Any) -> dict[str, float]:
        return {"mean": float((frame[self.column] ** 2).mean())}


def test_coverage_is_checked_against_the_reference_not_against_the_method_itself() -> None:
    found = check_method(Elsewhere("v"), SCHEMA, raises=False)
    assert "too few for 95%" in str(found) and str(found).count("FAILED") == 1


def test_the_contract_sees_a_reason_that_says_what_is_not_in_the_file() -> None:
    (check,) = (one for one in CHECKS if one.__name__ == "_data_never_raise")
    found = tried(check, Case(Broken("v", fault="remembers"), SCHEMA, cf.GDP(1.0)))
    assert "the reason or what intervals cover depends on more than the release's file" in str(found)


def test_a_method_without_columns_in_its_text_asks_for_a_schema() -> None:
    @dataclass(frozen=True)
    class Nameless(Mean):
        column: Any = 3

    with refuses(cf.errors.PlanError):
        check_method(Nameless())


def test_the_registry_refuses_what_it_does_not_know() -> None:
    with refuses(cf.errors.PlanError):
        registry.get("sspp")
    with refuses(cf.errors.PlanError):
        registry.make("ssp", formulae="y ~ a")
    with refuses(cf.errors.PlanError):
        registry.make("ssp")
    with refuses(cf.errors.PlanError):

        @registry.register
        class Other(Mean):
            pass


def test_a_broken_package_harms_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    broken = EntryPoint("broken_one", "no_such_module:Method", "confide.methods")
    other = EntryPoint("misnamed", "confide.methods.regression.ssp.method:SSP", "confide.methods")
    installed = {**registry._installed(), "broken_one": broken, "misnamed": other}
    monkeypatch.setattr(registry, "_installed", lambda: installed)
    assert registry.get("ssp") is cf.regression.SSP
    with refuses(cf.errors.PlanError):
        registry.get("broken_one")
    with refuses(cf.errors.PlanError):
        registry.get("misnamed")
