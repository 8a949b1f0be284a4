"""The gate: charge first, then noise, then the receipt; failing on purpose buys nothing; messages tell nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import confide as cf
from confide import registry
from confide.core import BudgetItem, Meter, Method
from confide.engine import releasing
from confide.noise import SimulatedNoise
from confide.sources import RecordSource
from confide.sources.simulated import SIMULATED_ROWS
from confide.testing import ZeroNoise
from tests.messages import refuses
from tests.third_party import Mean

SCHEMA = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Numeric(0, 2)})
METHOD = cf.regression.SSP("y ~ a")


def source(n: int = 500, dataset: str | None = "d") -> Any:
    return cf.read(SCHEMA.sample(n, 1), SCHEMA, dataset=dataset)


@pytest.fixture
def book(tmp_path: Path) -> cf.Ledger:
    return cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=cf.GDP(2.0))


def _left(book: cf.Ledger) -> float:
    left = 0.0
    for mu in np.sqrt(np.linspace(0.0, 4.0, 401))[1:]:
        try:
            book.preview((cf.GDP(float(mu), relation="add-remove"),))
            left = float(mu) ** 2
        except cf.BudgetExceeded:
            break
    return left


def test_the_ledger_is_a_required_keyword() -> None:
    with pytest.raises(TypeError, match="ledger"):
        cf.release(METHOD, source(), cf.GDP(1.0))


def test_a_release_is_charged_and_has_a_receipt(book: cf.Ledger) -> None:
    release = cf.release(METHOD, source(), cf.GDP(1.0), ledger=book)
    assert book.find(release.sha256) is not None
    assert not release.simulated
    assert _left(book) == pytest.approx(3.0, abs=0.02)
    check = cf.verify(cf.Release.from_json(release.to_json()), book)
    assert check.ok, str(check)


def test_a_release_that_is_not_in_the_book_fails_verification(book: cf.Ledger) -> None:
    release = cf.release(METHOD, source(), cf.GDP(1.0), ledger=None)
    assert not cf.verify(release, book).ok


def test_over_the_budget_no_noise_is_drawn(book: cf.Ledger) -> None:
    class Loud(cf.noise.SecureNoise):
        def rekey(self) -> None:
            raise AssertionError("noise was touched")

    with pytest.raises(cf.BudgetExceeded):
        cf.release(METHOD, source(), cf.GDP(2.1), ledger=book, noise=Loud())
    assert _left(book) == pytest.approx(4.0, abs=0.02)


def test_simulated_noise_is_never_charged(book: cf.Ledger) -> None:
    for noise in (SimulatedNoise(1), ZeroNoise()):
        with refuses(cf.errors.PrivacyError):
            cf.release(METHOD, source(), cf.GDP(1.0), ledger=book, noise=noise)
    assert _left(book) == pytest.approx(4.0, abs=0.02)


def test_an_open_relation_is_the_ledgers(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(2.0, relation="substitute"))
    assert cf.release(METHOD, source(), cf.GDP(1.0), ledger=book).plan.relation == "substitute"
    with refuses(cf.errors.PrivacyError):
        cf.release(METHOD, source(), cf.GDP(1.0, relation="add-remove"), ledger=book)
    assert cf.plan(METHOD, SCHEMA, cf.GDP(1.0), ledger=book).relation == "substitute"
    assert cf.plan(METHOD, SCHEMA, cf.GDP(1.0)).relation == "add-remove"


def test_n_is_public_under_substitute_alone(book: cf.Ledger, tmp_path: Path) -> None:
    public = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(2.0, relation="substitute"))
    with refuses(cf.errors.PlanError):
        cf.release(METHOD, source(), cf.GDP(1.0), ledger=public, n=499)
    assert cf.release(METHOD, source(), cf.GDP(1.0), ledger=public, n=500).plan.n == 500
    nominal = cf.release(METHOD, source(), cf.GDP(1.0), ledger=book, n=12)
    assert (nominal.plan.n, nominal.plan.planned_n) == (None, None)


@pytest.mark.parametrize("way", ["line", "classes", "kernel", "votes", "units"])
def test_what_a_public_n_rules_out_is_not_paid_for(way: str, tmp_path: Path) -> None:
    """Of a method with a test, which would decline: it is asked for as if n had been given."""
    kinds: dict[str, Any] = {
        "kind": cf.Categorical(["a", "b"], on_missing="a"),
        **{name: cf.Numeric(0, 1, on_missing="midpoint") for name in "xyz"},
    }
    schema = cf.Schema(kinds, dataset="d", **({"unit": cf.Unit("id", rule="keep")} if way == "units" else {}))
    frame = cf.Schema(kinds).sample(60, seed=1)
    frame["id"] = [1, 2] * 30
    data, privacy = cf.read(frame[:2] if way == "line" else frame, schema), cf.ApproxDP(1.0, 1e-6)
    asked = {"budget": cf.ApproxDP(3.0, 1e-5, relation="substitute"), "unit": "id" if way == "units" else "record"}
    public = cf.Ledger.create(tmp_path / "b.db", dataset="d", **asked)
    ways: dict[str, Any] = {
        "line": cf.regression.EfficientPTR("y ~ x + z"),
        "classes": cf.classification.EfficientPTRBayes("kind ~ x"),
        "kernel": cf.curves.EfficientPTRKernel("y ~ x"),
        "units": cf.regression.EfficientPTR("y ~ x + z"),
    }
    with refuses(cf.errors.PlanError):
        if way == "votes":
            cf.ptr.select_features("y ~ x + z", data, 1, privacy=privacy, ledger=public, blocks=60)
        else:
            cf.release(ways[way], data, privacy, ledger=public)
    assert not [row for row in public.show().rows if row.kind == "charge"]


def test_another_dataset_is_refused_before_the_charge(book: cf.Ledger) -> None:
    with refuses(cf.errors.PlanError):
        cf.release(METHOD, source(dataset="other"), cf.GDP(1.0), ledger=book)
    assert _left(book) == pytest.approx(4.0, abs=0.02)


def test_missing_columns_and_one_shot_sources_are_refused_before_the_charge(book: cf.Ledger) -> None:
    with refuses((cf.errors.SourceError, cf.errors.SchemaError)):
        cf.release(METHOD, cf.read(pd.DataFrame({"y": [1.0]}), SCHEMA, dataset="d"), cf.GDP(1.0), ledger=book)

    class Once(RecordSource):
        rereadable = False

    once = Once(SCHEMA, cf.read(SCHEMA.sample(10, 1), SCHEMA)._parts, dataset="d")
    with refuses(cf.errors.SourceError):
        cf.release(METHOD, once, cf.GDP(1.0), ledger=book)
    assert _left(book) == pytest.approx(4.0, abs=0.02)


@dataclass(frozen=True)
class Failing(Method):
    """A method that fails after the charge, with a secret in its message."""

    formula: str = "y ~ a"
    how: str = "raise"
    name: ClassVar[str] = "failing"
    family: ClassVar[str] = "regression"
    version: ClassVar[str] = "1"
    source: ClassVar[str] = "test"
    relations: ClassVar[tuple[str, ...]] = ("add-remove", "substitute")
    native: ClassVar[str] = "GDP"
    intervals: ClassVar[str] = "none"
    needs: ClassVar[frozenset[str]] = frozenset()

    def plan(
        self, schema: Any, privacy: Any, *, n: int | None = None, public: Mapping[str, Any] | None = None
    ) -> cf.Plan:
        plan = cf.regression.SSP(self.formula, cov="classical", clipping_check=False, bounds="declared").plan(
            schema, privacy, n=n
        )
        return replace(
            plan, method=replace(plan.method, name=self.name, parameters={"formula": self.formula, "how": self.how})
        )

    def draw(self, source: Any, plan: cf.Plan, meter: Meter) -> Mapping[str, Any]:
        if source.count() == SIMULATED_ROWS:  # what the rehearsal sees costs nothing: tests/test_rehearsal.py
            return cf.regression.SSP(self.formula, cov="classical", clipping_check=False, bounds="declared").draw(
                source, plan, meter
            )
        (total,) = source.aggregate(plan.statistic("moments"))
        if self.how == "raise":
            raise RuntimeError(f"the secret is {total[0, 0]}")
        if self.how == "undrawn":
            return {}
        meter.draw("moments", total)
        if self.how == "twice":
            meter.draw("moments", total)
        if self.how == "unplanned":
            meter.draw("meat", total)
        if self.how == "shape":
            meter.draw("moments", total[:2, :2])
        if self.how == "forged":
            return cf.Release(plan, "released", {"moments": meter.drawn("moments")}, plan.guarantees)
        return {}

    def infer(self, release: cf.Release, question: Any = None) -> Any:
        raise cf.NoResult("nothing is read of what it releases")

    def worst_pairs(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize("how", ["raise", "twice", "unplanned", "undrawn", "shape", "forged"])
def test_what_fails_after_the_charge_stays_charged_and_tells_nothing(book: cf.Ledger, how: str) -> None:
    with pytest.raises(cf.errors.ReleaseError) as error:
        cf.release(Failing(how=how), source(), cf.GDP(1.0), ledger=book)
    assert "the charge stays" in str(error.value)
    assert "the secret" not in str(error.value) and error.value.__cause__ is None
    assert error.value.__context__ is None
    assert _left(book) == pytest.approx(3.0, abs=0.02)
    assert "without release: entry" in str(book.show())


def test_the_message_of_a_failure_does_not_depend_on_the_records(tmp_path: Path) -> None:
    messages = set()
    for k, n in enumerate((0, 1, 400)):
        book = cf.Ledger.create(tmp_path / f"{k}.db", dataset="d", budget=cf.GDP(2.0))
        with pytest.raises(cf.errors.ReleaseError) as error:
            cf.release(Failing(), source(n), cf.GDP(1.0), ledger=book)
        messages.add(str(error.value))
    assert len(messages) == 1


def test_a_plan_fits_a_screen_and_loses_no_word() -> None:
    plan = cf.plan(cf.regression.LeastSquares("y ~ a"), SCHEMA, cf.GDP(1.0, relation="add-remove"), n=1000)
    lines = plan.summary(verbose=True).splitlines()
    assert max(map(len, [*lines, *plan.summary().splitlines()])) <= 80
    assert f"Intervals for {plan.intervals_for}" in " ".join(" ".join(lines).split())
    assert str(plan.forecast["assumes"]) in " ".join(" ".join(lines).split())


def test_a_plan_from_a_file_is_made_again_not_believed(book: cf.Ledger) -> None:
    plan = cf.Plan.from_json(cf.plan(METHOD, SCHEMA, cf.GDP(1.0)).to_json())
    release = cf.release(plan, source(), ledger=book)
    assert release.plan == plan
    spend = plan.event.parts[0]
    cheap = replace(
        plan, event=replace(plan.event, parts=(replace(spend, scale=spend.scale / 100), *plan.event.parts[1:]))
    )
    with refuses(cf.errors.PlanError):
        cf.release(cf.Plan.from_json(cheap.to_json()), source(), ledger=book)
    with refuses(cf.errors.PlanError):
        cf.release(plan, source(), cf.GDP(1.0), ledger=book)
    assert _left(book) == pytest.approx(3.0, abs=0.02)


@dataclass(frozen=True)
class Understated(Mean):
    """A stranger's method whose plans, each time anew, say less than its record map moves."""

    fault: str = "half"
    name: ClassVar[str] = "understated"

    def plan(self, schema: Any, privacy: Any, *, n: int | None = None, public: Any = None) -> cf.Plan:
        made = super().plan(schema, privacy, n=n)
        spend = made.event
        assert isinstance(spend, BudgetItem)
        changed = {
            # the same cost, of half the sensitivity and so half the noise
            "half": replace(spend, sensitivity=spend.sensitivity / 2, scale=spend.scale / 4),
            "a hair": replace(spend, sensitivity=spend.sensitivity * (1 - Fraction(1, 2**50))),
            "finer steps": replace(spend, step=spend.step / 2),
            "another map": replace(spend, map="0" * 64),
            "another name": replace(spend, name="other"),
            "less noise": replace(spend, scale=spend.scale / 2),
        }
        return replace(made, event=changed.get(self.fault, spend))


@pytest.mark.parametrize(
    "fault",
    [
        "half",
        "a hair",
        "finer steps",
        "another map",
        "another name",
        "less noise",
    ],
)
def test_a_plan_that_says_less_than_its_maps_is_refused_from_a_file_too(
    book: cf.Ledger, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made again it has the same digest, since its method says the same each time: what it spends must be compared with its maps."""
    monkeypatch.setitem(registry._registered, Understated.name, Understated)
    made = Understated("y", fault=fault).plan(SCHEMA, cf.GDP(1.0, relation="add-remove"))
    stored = cf.Plan.from_json(made.to_json())
    assert registry.remake(stored, SCHEMA)[1] == stored
    with refuses(cf.errors.PlanError):
        cf.release(stored, source(), ledger=book)
    with refuses(cf.errors.PlanError):
        cf.release(Understated("y", fault=fault), source(), cf.GDP(1.0), ledger=book)
    assert not [row for row in book.show().rows if row.kind == "charge"]
    fair = cf.Plan.from_json(Understated("y", fault="none").plan(SCHEMA, cf.GDP(1.0, relation="add-remove")).to_json())
    assert cf.release(fair, source(), ledger=book).plan == fair


def test_a_plan_for_another_schema_is_refused(book: cf.Ledger) -> None:
    wider = cf.Schema({"a": cf.Numeric(0, 2), "y": cf.Numeric(0, 2)})
    plan = cf.Plan.from_json(cf.plan(METHOD, wider, cf.GDP(1.0)).to_json())
    with refuses(cf.errors.PlanError):
        cf.release(plan, source(), ledger=book)


def test_epsilon_delta_and_mu_give_the_same_noise() -> None:
    mu = cf.GDP.from_approx(1.0, 1e-6).mu
    one, two = (
        cf.release(METHOD, source(), privacy, ledger=None, noise=SimulatedNoise(4))
        for privacy in (cf.GDP(mu), cf.ApproxDP(1.0, 1e-6))
    )
    assert {name: noisy.sha256 for name, noisy in one.statistics.items()} == {
        name: noisy.sha256 for name, noisy in two.statistics.items()
    }


def test_the_cheapest_statement_is_charged(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "b.db", dataset="d", budget=cf.GDP(2.0))
    cf.release(METHOD, source(), cf.ApproxDP(1.0, 1e-6), ledger=book)
    assert 4.0 - _left(book) == pytest.approx(cf.GDP.from_approx(1.0, 1e-6).mu ** 2, abs=0.02)


def test_pure_dp_is_refused_with_what_to_ask_instead(book: cf.Ledger) -> None:
    with refuses(cf.errors.NoConversion):
        cf.release(METHOD, source(), cf.PureDP(1.0), ledger=book)


def test_damaged_files_and_other_formats_are_refused() -> None:
    text = cf.release(METHOD, source(), cf.GDP(1.0), ledger=None).to_json()
    with refuses(cf.errors.ReleaseError):
        cf.Release.from_json(text.replace('"simulated":false', '"simulated":true'))
    for other in ("1.1", "0.9", "2.0", "1"):
        with refuses(cf.errors.ReleaseError):
            cf.Release.from_json(text.replace('"format_version":"1.0"', f'"format_version":"{other}"'))
    for junk in ("", "[]", "{}", '{"confide":"plan"}', text[: len(text) // 2]):
        with pytest.raises(cf.errors.ReleaseError):
            cf.Release.from_json(junk)


def test_a_release_holds_nothing_live() -> None:
    release = cf.release(METHOD, source(), cf.GDP(1.0), ledger=None)
    assert not release.plan.statistics
    assert cf.Release.from_json(release.to_json()) == release


def test_one_call_is_the_three_steps() -> None:
    one = cf.linear_regression("y ~ a", source(), privacy=cf.GDP(1.0), ledger=None, noise=SimulatedNoise(2))
    two = cf.infer(
        cf.release(cf.regression.LeastSquares("y ~ a"), source(), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(2))
    )
    assert one.to_json() == two.to_json()


def test_without_its_receipt_nothing_is_released(book: cf.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, **__: Any) -> None:
        raise cf.errors.LedgerBusy("charge 2 stays, without a release: locked")

    monkeypatch.setattr(book, "receipt", busy)
    with refuses(cf.errors.ReleaseError):
        cf.release(METHOD, source(), cf.GDP(1.0), ledger=book)


@pytest.mark.parametrize("wrong", [None, 1.0, "1", object()])
def test_arguments_of_another_type_get_typed_errors(book: cf.Ledger, wrong: Any) -> None:
    with refuses(cf.errors.PrivacyError):
        cf.release(METHOD, source(), wrong, ledger=book)
    with refuses(cf.errors.PrivacyError):
        METHOD.plan(SCHEMA, wrong)
    if wrong is not None:
        with refuses(cf.errors.PlanError):
            cf.release(METHOD, source(), cf.GDP(1.0), ledger=wrong)
        with refuses(cf.errors.PrivacyError):
            cf.release(METHOD, source(), cf.GDP(1.0), ledger=None, noise=wrong)


def test_infer_repeats_no_statement_that_the_spends_exceed() -> None:
    release = cf.release(METHOD, source(), cf.GDP(1.0), ledger=None)
    cheap = replace(release, guarantees=(cf.GDP(0.01, relation="add-remove"),))
    with refuses(cf.errors.ReleaseError):
        cf.infer(cf.Release.from_json(cheap.to_json()))


# what is refused with words that help ---------------------------------------------------------------------------------


def test_a_table_is_no_source() -> None:
    frame = pd.DataFrame({"a": [1.0], "y": [2.0]})
    for call in (
        lambda: cf.release(cf.regression.SSP("y ~ a"), frame, cf.GDP(1.0), ledger=None),
        lambda: cf.linear_regression("y ~ a", frame, privacy=cf.GDP(1.0), ledger=None),
    ):
        with refuses(cf.errors.PlanError):
            call()


def test_what_linear_regression_lacks_or_does_not_know_is_a_typed_error() -> None:
    with refuses(cf.errors.PlanError):
        cf.linear_regression("y ~ a", source(), ledger=None)
    with refuses(cf.errors.PlanError):
        cf.linear_regression("y ~ a", source(), privacy=cf.GDP(1.0))
    with refuses(cf.errors.PlanError):
        cf.linear_regression("y ~ a", source(), privacy=cf.GDP(1.0), ledger=None, limitt="none")


def test_infer_takes_a_question_and_says_how() -> None:
    release = cf.release(cf.regression.SSP("y ~ a"), source(), cf.GDP(1.0), ledger=None, noise=SimulatedNoise(2))
    assert list(cf.infer(release, subset=["a"]).params.index) == ["Intercept", "a"]
    with pytest.raises(TypeError, match="colour"):
        cf.infer(release, colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        cf.infer(release, ["a"])  # type: ignore[misc]
    with refuses(cf.errors.PlanError):
        cf.infer("release.json")


def test_a_pure_request_of_a_gaussian_method_names_methods_that_plan_for_the_same_question() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1), "y": cf.Numeric(-1, 3), "g": cf.Categorical(["a", "b"])})
    for method in (
        cf.regression.SSP("y ~ x"),
        cf.tables.Counts("g", inference="dataset"),
        cf.tables.Means("y ~ g", inference="dataset"),
    ):
        with refuses(cf.errors.NoConversion) as refused:
            cf.plan(method, schema, cf.PureDP(1.0))
        _, named, names = str(refused.value).partition("a method with a pure guarantee: ")
        assert named or "no method here has a pure guarantee for this question" in str(refused.value)
        for name in names.split(", ") if named else ():
            cf.plan(registry.make(name, formula=method.formula), schema, cf.PureDP(1.0))
    assert not named, "of means none has one"


def test_a_request_that_the_guarantee_does_not_give_is_an_altered_file() -> None:
    schema = cf.Schema({"x": cf.Numeric(0, 1)})
    data = cf.read(schema.sample(100, seed=1), schema)
    done = cf.release(cf.tables.Means("x", inference="population"), data, cf.GDP(1.0), ledger=None)
    for forged in (cf.GDP(0.01, relation="add-remove"), cf.GDP(1.0, relation="substitute")):
        with refuses(cf.errors.ReleaseError):
            cf.infer(replace(done, plan=replace(done.plan, requested=forged)))


class _Wordy(Mean):
    """A method whose plan says more than any file may hold."""

    def facts(self, about: Any) -> Mapping[str, Any]:
        return {**super().facts(about), "intervals_for": "x" * 100_001}


def test_what_no_file_can_hold_is_refused_before_the_charge_and_where_it_is_written(book: cf.Ledger) -> None:
    method = _Wordy("y")
    with refuses(cf.errors.PlanError):
        cf.release(method, source(), cf.GDP(1.0), ledger=book)
    assert _left(book) == pytest.approx(4.0, abs=0.02)
    plan = cf.plan(method, SCHEMA, cf.GDP(1.0))
    with refuses(cf.errors.PlanError):
        plan.to_json()
    release = cf.release(method, source(), cf.GDP(1.0), ledger=None)
    with refuses(cf.errors.ReleaseError):
        release.to_json()


def test_without_a_ledger_nothing_is_rehearsed_and_no_file_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked(*_: Any, **__: Any) -> None:
        raise AssertionError("a release in memory pays for a file")

    for name in ("check_body", "_rehearse"):
        monkeypatch.setattr(releasing, name, unasked)
    for kind in (cf.Plan, cf.Release):
        monkeypatch.setattr(kind, "to_json", unasked)
    assert cf.release(METHOD, source(), cf.GDP(1.0), ledger=None).status == "released"


def test_a_plan_has_its_schema_as_an_object_made_or_loaded() -> None:
    schema = cf.Schema({"a": cf.Numeric(0, 1), "y": cf.Numeric(0, 2, typical=(0.5, 1.0))})
    plan = cf.plan(METHOD, schema, cf.GDP(1.0))
    loaded = cf.Plan.from_json(plan.to_json())
    assert plan.declared == loaded.declared == cf.Schema.from_dict(plan.schema) == schema.bare
