"""`confide publish`, and the other verbs with a publication's file; `--where`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.cli_runner import good, printed, run

import confide as cf
from confide import Plan, Release, registry
from confide.classification import ClassMeans
from confide.results.pages.publication import FAILED
from confide.sources.simulated import SIMULATED_ROWS

QUESTIONS = """[analyses.model]
method = "ssp"
formula = "happy ~ age"
cov = "classical"
recenter = false
share = 2

[analyses.elderly]
method = "ssp"
formula = "happy ~ age"
cov = "classical"
recenter = false
where = "age >= 40"
"""
HEAD = 'schema = "schema.toml"\nprivacy = { mu = 0.5 }\n'
PUBLISH = ("publish", "publication.toml", "survey.csv", "--ledger", "ledger.db")


@pytest.fixture(autouse=True)
def known() -> None:
    """The publication's own method, in a checkout that was not installed anew."""
    if "publication" not in registry.known():
        registry.register(cf.Publication)


def write(text: str) -> None:
    Path("publication.toml").write_text(text)


def test_publish_charges_once_and_writes_release_and_report(book: Any) -> None:
    write(HEAD + QUESTIONS)
    done = good(*PUBLISH, "-o", "release.json", "--report", "index.html", "--csv", "contents.csv")
    assert "\nmodel: " in done.out and "\nelderly: " in done.out and "happy" in done.out
    assert [row.kind for row in cf.Ledger.open("ledger.db").show().rows].count("charge") == 1
    release = Release.load("release.json")
    assert release.statuses == {"model": "released", "elderly": "released"} and release.plan.requested.mu == 0.5
    assert "age &gt;= 40" in Path("index.html").read_text() and "elderly" in Path("contents.csv").read_text()
    assert good("infer", "release.json", "--json").json["result"]["analyses"]["elderly"]["where"] == "age >= 40"
    good("verify", "release.json", "--ledger", "ledger.db")


def test_one_question_of_a_publication_and_its_test_cost_nothing_more(book: Any) -> None:
    means = '[analyses.happiness]\nmethod = "means"\nformula = "happy ~ region"\ninference = "population"\n\n'
    write(HEAD + means + QUESTIONS)
    good(*PUBLISH, "-o", "release.json")
    report = cf.infer(Release.load("release.json"))
    assert good("infer", "release.json", "--analysis", "happiness").out == printed(report["happiness"].summary())
    said = run("infer", "release.json", "--test", "ttest_ind")
    command = "confide infer release.json 'happy ~ region' --analysis happiness --test ttest_ind"
    assert said.code == 2 and command in said.err
    found = good("infer", "release.json", "--analysis", "happiness", "--test", "ttest_ind", "--json").json["result"]
    assert found["p_value"] == [report["happiness"].test("t", "region").pvalue]
    assert "it has: 'happiness'" in run("infer", "release.json", "--analysis", "income").err


def test_options_win_over_the_file_and_stand_in_for_it(book: Any) -> None:
    write(QUESTIONS)
    assert run(*PUBLISH).code == 2 and "--schema" in run(*PUBLISH).err
    facts = good(*PUBLISH, "--schema", "schema.toml", "--mu", "0.25", "--json").json
    assert facts["guarantee"]["mu"] == 0.25 and set(facts["statuses"].values()) == {"released"}


def test_plan_and_release_take_the_file(book: Any) -> None:
    write(HEAD + QUESTIONS)
    good("plan", "publication.toml", "--schema", "schema.toml", "--mu", "0.5", "-o", "plan.json")
    assert list(Plan.from_json(Path("plan.json").read_text()).children) == ["model", "elderly"]
    good("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "one.json")
    good("release", "publication.toml", "survey.csv", "--ledger", "ledger.db", "-o", "two.json")
    assert Release.load("one.json").plan == Release.load("two.json").plan
    good("plan", "publication.toml", "-o", "three.json")
    assert Plan.from_json(Path("three.json").read_text()).sha256 == Release.load("one.json").plan.sha256
    assert "mu = 0.25" in good("plan", "publication.toml", "--mu", "0.25").out
    write(QUESTIONS)
    assert run("plan", "publication.toml", "--mu", "0.5").code == 2
    refused = run("release", "publication.toml", "survey.csv", "--ledger", "ledger.db", "-o", "three.json")
    assert refused.code == 2 and "names no schema" in refused.err


def test_a_failed_question_is_written_only_on_request(book: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = ClassMeans.draw

    def draw(self: Any, source: Any, plan: Any, meter: Any) -> Any:
        if source.count() == SIMULATED_ROWS:  # what fails in the rehearsal is never charged
            return right(self, source, plan, meter)
        raise ValueError("qwzx")

    monkeypatch.setattr(ClassMeans, "draw", draw)
    write(HEAD + QUESTIONS + '[analyses.classes]\nmethod = "class_means"\nformula = "region ~ age"\n')
    done = run(*PUBLISH, "-o", "release.json")
    assert done.code == 6 and "--allow-partial" in done.err and not Path("release.json").exists()
    kept = good(*PUBLISH, "-o", "release.json", "--allow-partial")
    assert FAILED.split(",")[0] in " ".join(kept.out.split())
    assert Release.load("release.json").statuses["classes"] == "failed"


def test_a_subgroup_is_an_option_of_plan_and_regress(book: Any) -> None:
    words = ("happy ~ age", "--schema", "schema.toml", "--mu", "1", "--where", "age >= 40 & children < 3")
    assert "where age >= 40 & children < 3" in " ".join(good("plan", *words).out.split())
    assert good("plan", *words, "--json").json["parameters"]["where"] == "age >= 40 & children < 3"
    told = good("regress", words[0], "survey.csv", *words[1:], "--ledger", "ledger.db").out
    assert "age >= 40 & children < 3" in " ".join(told.split())
    wrong = run("plan", *words[:-1], "aged >= 40")
    assert wrong.code == 3 and 'where names "aged"' in wrong.err and '--where "age >= 40"' in wrong.err
