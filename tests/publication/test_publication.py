"""Many questions, one charge: budgets that add up exactly, one pass for all, and a question that fails leaves the others."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf, nextafter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.messages import refuses

import confide as cf
from confide import registry
from confide.audit.replay.replay import replay
from confide.core import Meter, Plan, Release, exact_cost, leaves
from confide.core.lost_values import NAME as LOST
from confide.core.statistic import WrappedSource
from confide.errors import BudgetExceeded, NoResult, PlanError, PrivacyError, ReleaseError, SchemaError
from confide.noise import SimulatedNoise
from confide.selection import Select, register_loss
from confide.testing import check_method
from confide.testing.test_data import ZeroNoise
from confide_lab.methods.logistic.methods import LogisticObjective, LogisticPTR
from confide_lab.methods.quantile.ranks import Quantile

SCHEMA = cf.Schema(
    {
        "age": cf.Integer(0, 100),
        "region": cf.Categorical(["N", "S", "E"]),
        "x": cf.Numeric(0, 1),
        "y": cf.Numeric(-1, 3),
        "v": cf.Integer(0, 6),
    },
    dataset="survey",
)
FRAME = SCHEMA.sample(3000, 1)
LINE = cf.regression.SSP("y ~ x", cov="classical", recenter=False)
CLASSES = cf.classification.ClassMeans("region ~ x")
OLD = cf.regression.LeastSquares("y ~ x", where="age >= 65")
QUESTIONS = {"line": LINE, "old": OLD, "classes": CLASSES, "visits": cf.regression.Poisson("v ~ x")}
PUB = cf.Publication(QUESTIONS, shares={"line": 2, "classes": 0.1})
# what three of them need first, together
SHARED = {LOST, "range of x", "range of y"}
# with nothing to share; the subgroup finds ranges of its own
APART = {name: one if name == "old" else replace(one, bounds="declared") for name, one in QUESTIONS.items()}


def released(publication: Any = PUB, seed: int = 3, privacy: Any = cf.GDP(1.0)) -> Release:  # noqa: B008
    source = cf.read(FRAME, SCHEMA)
    return cf.release(publication, source, privacy, ledger=None, noise=SimulatedNoise(seed), allow_partial=True)


# the plan -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1.0, 0.3, 0.1 + 0.2, 7.123456789])
def test_budgets_are_the_largest_doubles_within_exact_shares(mu: float) -> None:
    plan = cf.plan(PUB, SCHEMA, cf.GDP(mu))
    shares = PUB.fractions
    assert shares == {
        "line": Fraction(20, 41),
        "old": Fraction(10, 41),
        "classes": Fraction(1, 41),
        "visits": Fraction(10, 41),
    }
    total = Fraction(0)
    for name, child in plan.children.items():
        own = child.guarantee.mu
        # a tenth is for the ranges that three of them share
        part = shares[name] * Fraction(9, 10) * Fraction(mu) ** 2
        assert Fraction(own) ** 2 <= part < Fraction(nextafter(own, inf)) ** 2
        total += Fraction(own) ** 2
    spent = exact_cost(plan.event)
    together = {leaf.name: exact_cost(leaf) for leaf in leaves(plan.event) if "/" not in leaf.name}
    assert set(together) == SHARED
    # clipped and unread values are counted out of the analyses' own costs
    lost = together.pop(LOST)
    assert lost is not None and lost.amount <= Fraction(9, 1000) * Fraction(mu) ** 2
    for one in together.values():
        assert one is not None and one.amount <= Fraction(mu) ** 2 / 20
        total += one.amount
    assert spent is not None and spent.amount <= total <= Fraction(mu) ** 2
    assert spent.amount > Fraction(mu) ** 2 * (1 - Fraction(1, 2**40))


def test_the_plan_is_made_again_from_its_file_and_its_digest_covers_the_questions() -> None:
    plan = cf.plan(PUB, SCHEMA, cf.GDP(1.0))
    again = Plan.from_json(plan.to_json())
    assert again == plan and again.to_json() == plan.to_json() and list(again.children) == list(QUESTIONS)
    assert registry.remake(again, SCHEMA)[1] == plan
    others = [
        cf.Publication({**QUESTIONS, "old": replace(OLD, where="age >= 66")}, shares=PUB.shares),
        cf.Publication(QUESTIONS),
        cf.Publication(
            {("two" if name == "line" else name): one for name, one in QUESTIONS.items()}, shares={"two": 2}
        ),
    ]
    assert len({plan.sha256, *(cf.plan(one, SCHEMA, cf.GDP(1.0)).sha256 for one in others)}) == 4
    body = plan.to_dict()
    body["children"][0]["plan"]["target"] = "another"
    assert Plan.from_dict(body).sha256 != plan.sha256
    with refuses(PlanError):
        registry.remake(Plan.from_dict(body), SCHEMA)


def test_the_plan_prints_every_question() -> None:
    plan = cf.plan(PUB, SCHEMA, cf.GDP(1.0), n=3000)
    said, every = plan.summary(), plan.summary(verbose=True)
    titles = {
        "line": "linear regression of y on x",
        "old": "linear regression of y on x, where age >= 65",
        "classes": "shares and means of classes of region",
        "visits": "Poisson regression: rate of v",
    }
    for name, child in plan.children.items():
        section = said[said.index(f"\n{name}: {titles[name]}\n") :]
        cost = section[section.index("Cost ") : section.index("(implies")].split()
        assert cost == f"Cost Gaussian DP, mu = {ceil(child.guarantee.mu * 1000) / 1000:g}".split(), "rounded up"
        assert "Intervals for" in section[: section.index("\n\n", section.index("Intervals for"))]
        assert f"{name}/" in every and f"{name}/" not in said
    assert "the ranges of x, y are found first, for 10% of the cost" in said[said.rindex("\nNote ") :]
    assert max(map(len, f"{said}\n{every}".splitlines())) <= 80


def test_other_requests_are_shared_alike() -> None:
    for request in (cf.ZCDP(0.5), cf.ApproxDP(1.0, 1e-6)):
        plan = cf.plan(PUB, SCHEMA, request)
        assert (
            sum(Fraction(child.guarantee.mu) ** 2 for child in plan.children.values())
            <= Fraction(plan.guarantee.mu) ** 2
        )
        assert plan.requested == request.resolve("add-remove")


def test_a_pure_question_is_paid_as_what_it_implies() -> None:
    both = cf.Publication({"median": Quantile("x"), "line": LINE})
    plan = cf.plan(both, SCHEMA, cf.GDP(0.5))
    median = plan.children["median"].guarantee
    assert isinstance(median, cf.PureDP) and 0.353 < median.to_gdp().mu <= 0.5 / 2**0.5
    assert any("pure guarantee" in warning for warning in plan.warnings)
    assert set(released(both).statuses.values()) == {"released"}


def test_all_faulty_questions_are_named_at_once_and_nothing_is_charged(tmp_path: Path) -> None:
    faulty = cf.Publication(
        {
            "a": cf.regression.SSP("y ~ nobody"),
            "b": LINE,
            "c": replace(OLD, where="region == 'Q'"),
            "d": cf.regression.SSP("region ~ x"),
        }
    )
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(2.0, relation="add-remove"))
    with pytest.raises(PlanError) as found:
        cf.release(faulty, cf.read(FRAME, SCHEMA), cf.GDP(1.0), ledger=book)
    assert all(f"analysis {name!r}" in str(found.value) for name in "acd") and "analysis 'b'" not in str(found.value)
    assert "3 analyses cannot be planned" in str(found.value) and len(book.show().rows) == 1
    with refuses(SchemaError):
        cf.plan(cf.Publication({"b": LINE, "c": replace(OLD, where="region == 'Q'")}), SCHEMA, cf.GDP(1.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: cf.Publication({}),
        lambda: cf.Publication([LINE]),
        lambda: cf.Publication({"a/b": LINE}),
        lambda: cf.Publication({"a": "y ~ x"}),
        lambda: cf.Publication({"a": PUB}),
        lambda: cf.Publication({"a": LINE}, shares={"b": 1}),
        lambda: cf.Publication({"a": LINE}, shares={"a": 0}),
        lambda: cf.plan(cf.Publication({"a": LINE}, where="age > 3"), SCHEMA, cf.GDP(1.0)),
    ],
)
def test_what_is_no_publication_is_refused(make: Any) -> None:
    with refuses(PlanError):
        make()


class Heavier(cf.regression.SSP):
    """A stranger's class under a name that is taken."""


@register_loss
@dataclass(frozen=True)
class Tilted:
    """A loss that holds code."""

    name: ClassVar[str] = "tilted of test_publication"
    by: Any = None


class Mean(cf.ptr.SafetyBound):
    """A bound that no file holds."""

    dim = 1
    alpha = 1.0

    def gamma(self, data: Any) -> int:
        return len(data)

    def estimate(self, data: Any) -> float:
        return float(data[:, 0].mean())


class Teacher:
    """A classifier that no file holds."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, x: Any, y: Any) -> Teacher:
        return self

    def predict(self, x: Any) -> Any:
        return np.zeros(len(x), dtype=int)


_TWO = (cf.regression.SSP("y ~ x"), cf.regression.SSP("y ~ x", leverage_cap=2.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: cf.voting.TeacherLabels("region", Teacher(), [[1.0]], 30, ("x",)),
        lambda: cf.intervals.BlockPosterior(lambda table, g: table, {"x": (0, 1)}),
        lambda: cf.ptr.SafeRelease(Mean(), ("x",), gamma_plan=30),
        lambda: Select(_TWO, score=Tilted(lambda loss: loss)),
        lambda: cf.regression.SSP("y ~ x", term_bounds={"x": (len, 2)}),
        lambda: cf.regression.LeastSquares,
        lambda: cf.Publication,
        lambda: PUB,
        lambda: Heavier("y ~ x"),
        lambda: cf.plan(LINE, SCHEMA, cf.GDP(1.0)),
        lambda: None,
        lambda: {"method": "ssp", "parameters": 3},
        lambda: {"method": "ssp", "parameters": {3: 4}},
        lambda: {"method": 3},
    ],
)
def test_what_a_publication_cannot_hold_is_refused_with_the_call_that_works(make: Any) -> None:
    """When it is made, so that no verb meets it."""
    with refuses(PlanError) as caught:
        cf.Publication({"a": make()})
    assert any(call in str(caught.value) for call in ("cf.release(method,", "cf.Publication({", "cf.register"))


@pytest.mark.parametrize(
    "method",
    [
        Select(_TWO),
        cf.voting.Plurality("region", "optimal"),
        cf.regression.EfficientPTR("y ~ x"),
        LogisticPTR("region ~ x"),
        LogisticObjective("region ~ x"),
    ],
    ids=lambda method: method.name,
)
def test_a_question_that_needs_another_guarantee_is_told_to_be_released_by_itself(method: Any) -> None:
    columns = {
        "x": cf.Numeric(0, 1, on_missing=0.5),
        "y": cf.Numeric(0, 1, on_missing=0.0),
        "region": cf.Categorical(["N", "S"]),
    }
    privacy = cf.GDP(1.0, relation=method.relations[0])
    with refuses(PrivacyError):
        cf.plan(cf.Publication({"a": method}), cf.Schema(columns), privacy, n=1_500)


def test_pure_questions_alone_are_planned_too() -> None:
    plan = cf.plan(cf.Publication({"a": Quantile("x")}), SCHEMA, cf.GDP(0.5))
    (child,) = plan.children.values()
    assert isinstance(child.guarantee, cf.PureDP) and child.guarantee.to_gdp().mu <= 0.5


def test_a_share_that_no_float_holds_is_refused_and_a_small_level_ends_soon() -> None:
    for weight in (1e-300, 10**400, float("nan"), True):
        with refuses(PlanError):
            cf.Publication({"a": LINE}, shares={"a": weight})
    assert cf.Publication({"a": LINE}, shares={"a": np.float64(2.0)}).fractions == {"a": 1}
    with pytest.raises(cf.ConfideError):
        cf.plan(cf.Publication({"a": LINE, "b": Quantile("x")}), SCHEMA, cf.GDP(1e-90))


def test_subgroups_that_divide_the_records_are_said_to_be_one_question() -> None:
    parts = {level: cf.regression.SSP("y ~ x", where=f"region == {level!r}") for level in "NSE"}
    notes = cf.plan(cf.Publication(parts), SCHEMA, cf.GDP(1.0)).notes
    assert any("one crossing, not 3 analyses" in note and "all records" in note for note in notes)
    overlapping = {str(age): cf.regression.SSP("y ~ x", where=f"age >= {age}") for age in (20, 40)}
    assert not cf.plan(cf.Publication(overlapping), SCHEMA, cf.GDP(1.0)).notes


# the release --------------------------------------------------------------------------------------------------------


def test_a_question_gives_the_integers_that_it_gives_alone() -> None:
    """Without noise, and each at its own share: several rounds, a subgroup, sums and matrices."""
    source: Any = cf.read(FRAME, SCHEMA)
    nothing: Any = ZeroNoise()
    apart = cf.Publication(APART, shares=PUB.shares)
    whole = cf.release(apart, source, cf.GDP(2.0), ledger=None, noise=nothing)
    for name, method in APART.items():
        own = cf.release(method, source, whole.plan.children[name].requested, ledger=None, noise=nothing)
        child = whole.child(name)
        # clipped and unread values are counted for all of them together
        assert set(own.statistics) - set(child.statistics) <= {LOST} and set(child.public) - set(own.public) <= {LOST}
        assert all(own[key].sha256 == noisy.sha256 for key, noisy in child.statistics.items())
        assert all(np.array_equal(values, child.public[key]) for key, values in own.public.items())


class _Counting(WrappedSource):
    """A source that counts its passes."""

    passes = 0

    def aggregate(self, *statistics: Any) -> Any:
        self.passes += 1
        return self._source.aggregate(*statistics)


def test_one_pass_serves_all_questions_and_as_many_as_the_longest_needs() -> None:
    alike = {
        f"q{i}": replace(LINE, formula=formula)
        for i, formula in enumerate(["y ~ x", "y ~ age", "x ~ y", "y ~ x + age"])
    }
    source: Any = _Counting(cf.read(FRAME, SCHEMA))
    cf.release(cf.Publication({**alike, "classes": CLASSES}), source, cf.GDP(1.0), ledger=None)
    assert source.passes == 2, "their ranges, then their sums"
    several = _Counting(cf.read(FRAME, SCHEMA))
    done = cf.release(PUB, several, cf.GDP(1.0), ledger=None)  # type: ignore[arg-type]
    assert 2 < several.passes <= done.plan.passes == 1 + max(child.passes for child in done.plan.children.values())
    apart = _Counting(cf.read(FRAME, SCHEMA))
    cf.release(cf.Publication(APART), apart, cf.GDP(1.0), ledger=None)  # type: ignore[arg-type]
    assert apart.passes > 1


def test_one_charge_one_receipt_and_the_file_reads_back(tmp_path: Path) -> None:
    book = cf.Ledger.create(tmp_path / "ledger.db", dataset="survey", budget=cf.GDP(1.5, relation="add-remove"))
    done = cf.release(PUB, cf.read(FRAME, SCHEMA), cf.GDP(1.0), ledger=book)
    assert [row.kind for row in book.show().rows].count("charge") == 1
    again = Release.from_json(done.to_json())
    assert again == done and cf.verify(again, book).ok
    assert cf.infer(again).to_json() == cf.infer(done).to_json()
    with pytest.raises(BudgetExceeded):
        cf.release(PUB, cf.read(FRAME, SCHEMA), cf.GDP(1.2), ledger=book)


def test_the_report_holds_contents_sections_and_one_statement(tmp_path: Path) -> None:
    report = cf.infer(released())
    assert list(report) == list(QUESTIONS) and report.status == "valid"  # type: ignore[call-overload]
    frame = report.to_frame()
    assert frame.loc["old", "where"] == "age >= 65" and frame["budget_share"].sum() == pytest.approx(1)
    assert report["line"].target == cf.infer(released().child("line")).target  # type: ignore[index]
    said, every = report.summary(), report.summary(verbose=True)
    assert max(map(len, f"{said}\n{every}".splitlines())) <= 80
    apart = [one for one in report.results.values() if one.inference != "population"]  # type: ignore[attr-defined]
    assert said.count("Intervals for") == 1 + len(apart), "an analysis says where its intervals differ"
    assert report.release_sha256 in every and report.release_sha256 not in said
    page = report.report(tmp_path / "index.html").read_text()
    for place, name in enumerate(QUESTIONS):
        assert f'href="#q{place}">{name}</a>' in page and f'<section id="q{place}">' in page
    assert (
        page.count("for all 4 together") == 1
        and f"<dt>Release ID</dt><dd>{report.release_sha256}</dd>" in page
        and "SIMULATED" in page.upper()
    )
    assert set(json.loads(report.to_json())["analyses"]) == set(QUESTIONS)
    with refuses(PlanError):
        report["nobody"]  # type: ignore[index]


# a question that fails ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", list(QUESTIONS))
def test_a_question_that_fails_after_the_charge_leaves_the_bits_of_the_others(
    killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = released()
    kind = type(PUB.methods[killed])
    right = kind.draw

    def draw(self: Any, source: Any, plan: Any, meter: Any) -> Any:
        right(self, source, plan, meter)
        raise ValueError("a record with income 123456")

    monkeypatch.setattr(kind, "draw", draw)
    with refuses(cf.errors.ReleaseError):
        cf.release(PUB, cf.read(FRAME, SCHEMA), cf.GDP(1.0), ledger=None)
    done = released()
    assert done.statuses == {name: "failed" if name == killed else "released" for name in QUESTIONS}
    assert "123456" not in done.to_json() and not [name for name in done.statistics if name.startswith(f"{killed}/")]
    for name in QUESTIONS:
        if name == killed:
            with refuses(NoResult):
                done.child(name)
        else:
            assert done.child(name) == whole.child(name)
    assert Release.from_json(done.to_json()) == done
    monkeypatch.undo()
    report = cf.infer(done)
    assert report.status == "partial" and report.flags == ("analyses_failed",)
    assert "no guarantee" in " ".join(report.summary().split())
    with pytest.raises(NoResult):
        report[killed]  # type: ignore[index]


def test_a_draw_that_is_no_branch_of_its_plan_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leaves out a spend, and one that asks for a spend of another question."""

    def short(self: Any, source: Any, plan: Any, meter: Any) -> Any:
        return {}

    def thief(self: Any, source: Any, plan: Any, meter: Any) -> Any:
        meter.draw("line/moments", source.aggregate(plan.statistic("sums"))[0])
        return {}

    for wrong in (short, thief):
        monkeypatch.setattr(type(CLASSES), "draw", wrong)
        assert [name for name, status in released().statuses.items() if status == "failed"] == ["classes"]


def test_a_pass_that_fails_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    source = cf.read(FRAME, SCHEMA)
    monkeypatch.setattr(type(source), "_aggregate", lambda *_: 1 / 0)
    with refuses(ReleaseError):
        cf.release(PUB, source, cf.GDP(1.0), ledger=None)


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["statuses"].update(line="failed"),
        lambda body: body["statuses"].pop("line"),
        lambda body: body.pop("statuses"),
        lambda body: body["statistics"].pop("line/moments"),
        lambda body: body["plan"]["children"].pop(),
        lambda body: body["plan"]["children"].reverse(),
        lambda body: body["plan"]["event"]["parts"].pop(),
        lambda body: body["plan"]["children"][0]["plan"]["event"]["parts"].pop(),
        lambda body: body["plan"].pop("children"),
    ],
)
def test_a_file_that_was_altered_is_refused(change: Any) -> None:
    body = released().to_dict()
    change(body)
    with pytest.raises(ReleaseError):
        cf.infer(Release.from_dict(body))


# attacks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_record_and_replay_find_nothing_beyond_the_statistics(relation: str) -> None:
    plan = cf.plan(PUB, SCHEMA, cf.GDP(1.0, relation=relation), n=40 if relation == "substitute" else None)
    base = SCHEMA.sample(40, 3)
    other = base.iloc[1:] if relation == "add-remove" else base.copy()
    if relation == "substitute":
        other.loc[0] = [90, "E", 1.0, 3.0, 6]
    found = replay(PUB, plan, cf.read(base, SCHEMA), cf.read(other, SCHEMA), seed=2)
    assert found.ok and {name.split("/")[0] for name in found.moved} == {*QUESTIONS, *SHARED}


def test_replay_sees_a_question_that_spends_more_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: one question's sums are counted twice."""
    from confide.core.meter import PartMeter

    right = PartMeter.draw
    monkeypatch.setattr(PartMeter, "draw", lambda self, name, integers: right(self, name, integers * 2))
    plan, base = cf.plan(PUB, SCHEMA, cf.GDP(1.0)), SCHEMA.sample(40, 3)
    base.loc[0] = [90, "E", 1.0, 3.0, 6]
    found = replay(PUB, plan, cf.read(base, SCHEMA), cf.read(base.iloc[1:], SCHEMA), seed=2)
    assert not found.ok


def test_the_meter_knows_all_questions_and_no_draw_comes_after_the_end() -> None:
    plan = cf.plan(PUB, SCHEMA, cf.GDP(1.0))
    meter = Meter(plan, SimulatedNoise(1))
    with refuses(ReleaseError):
        meter.close()
    assert {leaf.name.split("/")[0] for leaf in leaves(plan.event)} == {*QUESTIONS, *SHARED}


@pytest.mark.long
def test_the_contract_holds() -> None:
    schema = cf.Schema({name: SCHEMA[name] for name in ("age", "x", "y")})
    check_method(cf.Publication({"line": LINE, "old": replace(LINE, where="age >= 50")}), schema)


# the file -----------------------------------------------------------------------------------------------------------


def test_a_publication_is_a_file_too(tmp_path: Path) -> None:
    from confide.methods.publication import PublicationFile

    path = tmp_path / "publication.toml"
    path.write_text(
        'schema = "schema.toml"\nprivacy = { epsilon = 1.0, delta = 1e-6 }\nn = 500\n'
        '[analyses.line]\nmethod = "ssp"\nformula = "y ~ x"\ncov = "classical"\nrecenter = false\nshare = 2\n'
        '[analyses.old]\nmethod = "least_squares"\nformula = "y ~ x"\nwhere = "age >= 65"\n'
    )
    asked = PublicationFile.from_toml(path)
    same = cf.Publication({"line": LINE, "old": OLD}, shares={"line": 2})
    assert asked.schema == tmp_path / "schema.toml" and asked.privacy == cf.ApproxDP(1.0, 1e-6) and asked.n == 500
    assert cf.plan(asked.publication, SCHEMA, cf.GDP(1.0)) == cf.plan(same, SCHEMA, cf.GDP(1.0))


@pytest.mark.parametrize(
    "text",
    [
        "a = [",
        "budget = 3",
        'schema = "s.toml"',
        '[analyses.a]\nformula = "y ~ x"',
        '[analyses.a]\nmethod = "sspp"\nformula = "y ~ x"',
        '[analyses.a]\nmethod = "ssp"\nformla = "y ~ x"',
        'privacy = { mu = 1, rho = 1 }\n[analyses.a]\nmethod = "ssp"\nformula = "y ~ x"',
    ],
)
def test_a_file_with_faults_says_which(text: str, tmp_path: Path) -> None:
    from confide.methods.publication import PublicationFile

    path = tmp_path / "publication.toml"
    path.write_text(text)
    with refuses(PlanError):
        PublicationFile.from_toml(path)


# documents ----------------------------------------------------------------------------------------------------------


def test_markdown_latex_and_word_have_every_question(tmp_path: Any) -> None:
    report = cf.infer(released())
    for text in (report.to_markdown(), report.to_latex()):
        assert "Publication of 4 analyses" in text and "protects no one" in text
        assert all(result.title.split(" ")[0] in text for result in report.results.values())
    assert report.to_markdown().count(report.release_sha256[:16]) >= 1
    docx = pytest.importorskip("docx", reason="python-docx is not installed")
    made = docx.Document(str(report.to_word(tmp_path / "all.docx")))
    assert len(made.tables) == 5


def test_the_page_is_of_one_design_with_the_reports(tmp_path: Any) -> None:
    """The same style sheet, table cells that name themselves on a narrow page, contents that lead to sections."""
    report = cf.infer(released())
    page = report.report(tmp_path / "all.html").read_text()
    alone = report["line"].report(tmp_path / "line.html").read_text()
    style = page[page.index("<style>") : page.index("</style>")]
    assert style == alone[alone.index("<style>") : alone.index("</style>")]
    assert page.count('<section id="q') == 4 and 'href="#q3"' in page and page.count('data-label="status"') == 4
    assert "<pre" not in page and page.count("<details><summary>") == 1 + 4
