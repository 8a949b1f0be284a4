"""`confide plan | release`: what is refused before the charge, and what happens after it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
from tests.cli.cli_runner import entries, good, run, strict_json

from confide import Plan, Release, engine
from confide.cli import files
from confide.errors import LedgerBusy
from confide.ledger import Ledger

PLAN = ("plan", "happy ~ age + children", "--schema", "schema.toml", "--mu", "1")
RELEASE = ("release", "plan.json", "survey.csv", "--ledger", "ledger.db")


def listed(folder: Path) -> list[str]:
    """The files of a folder, without the journals of an open ledger."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("ledger.db-"))


def test_plan_prints_its_table_and_charges_nothing(book):
    out = good(*PLAN, "--n", "2000", "--ledger", "ledger.db", "-o", "plan.json").out
    plan = Plan.from_json(Path("plan.json").read_text())
    budget = "25.0% of the budget of 'survey'; 75.0% would remain"
    head, *others, last = plan.summary(budget=budget).splitlines()
    assert last.endswith("(budget items, scenarios: summary(verbose=True))") and f"Plan ID    {plan.sha256[:8]}" in out
    assert "summary(" not in out and "(budget items, scenarios: --verbose)" in out
    # a forecast knows the title of the result, a file what is estimated
    assert head.startswith("Plan: linear regression of happy on age, children") and set(others) <= set(out.splitlines())
    assert "Plan: linear regression of happy on age, children" in out
    assert "n = 2,000" in out and "2,000" not in plan.to_json()  # a forecast is printed and stands in no file
    assert entries() == []
    facts = good(*PLAN, "--n", "2000", "--json").json
    assert facts["plan_sha256"] == plan.sha256
    one_branch = [spend for spend in facts["spends"] if not spend["name"].startswith("short")]
    assert sum(spend["guarantee"]["mu"] ** 2 for spend in one_branch) == pytest.approx(1, abs=1e-12)
    low, high = facts["forecast"]["2,000"]["age"]
    assert 0 < low < high and 0 <= facts["forecast"]["valid"]["2,000"] <= 1
    assert facts["rows_per_unit"] == 1


def test_plan_takes_an_open_relation_from_the_book(survey):
    good("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2", "--relation", "substitute")
    assert good(*PLAN, "--json").json["relation"] == "add-remove"
    assert good(*PLAN, "--ledger", "ledger.db", "--json").json["relation"] == "substitute"


def test_a_plan_that_does_not_fit_is_shown_and_refused(book):
    done = run(*PLAN[:-1], "2.5", "--ledger", "ledger.db", "-o", "plan.json")
    assert done.code == 4
    assert "Plan: linear regression of happy on" in done.out
    assert "confide ledger amend" in done.err
    assert not Path("plan.json").exists()
    refused = run(*PLAN[:-1], "2.5", "--ledger", "ledger.db", "--json").json
    assert refused["error"] == "BudgetExceeded"
    assert refused["remaining"]


@pytest.mark.parametrize(
    "formula", ["happy ~ wealth", "happy ~", "happy ~ scale(age)", "~~", "happy ~ log(children)", "", "[red]"]
)
def test_a_formula_that_cannot_work_is_a_plan_error(survey, formula):
    done = run("plan", formula, "--schema", "schema.toml", "--mu", "1")
    assert done.code == 3
    assert done.out == ""


def test_release_charges_once_writes_and_verifies(planned):
    done = good(*RELEASE, "-o", "release.json")
    assert "released before" not in done.err
    release = Release.load("release.json")
    assert done.out.splitlines() == [
        f"Wrote release.json (release ID {release.sha256[:8]})",
        "Charged 25.0% of the budget of 'survey'; 75.0% is left",
        "Next       confide infer release.json",
    ]
    assert not release.simulated
    (charge,) = entries()
    assert charge["status"] == "released"
    assert engine.verify(release, Ledger.open("ledger.db")).ok


def test_release_in_json(planned):
    facts = good(*RELEASE, "-o", "release.json", "--json").json
    assert facts["release_sha256"] == Release.load("release.json").sha256
    assert facts["wrote"] == "release.json"
    assert facts["ledger"]["dataset"] == "survey"
    assert facts["guarantee"]["mu"] == 1.0


def test_several_files_are_one_source(planned):
    whole = good(
        "release",
        "plan.json",
        "survey.csv",
        "survey.parquet",
        "--unaccounted",
        "--simulate",
        "5",
        "-o",
        "both.json",
        "--json",
    ).json
    Path("again.csv").write_bytes(Path("survey.csv").read_bytes())  # other records, which happen to be equal
    twice = good(
        "release",
        "plan.json",
        "survey.csv",
        "again.csv",
        "--unaccounted",
        "--simulate",
        "5",
        "-o",
        "twice.json",
        "--json",
    ).json
    assert whole["release_sha256"] == twice["release_sha256"]


def test_simulation_has_a_banner_and_a_mark(planned):
    done = good("release", "plan.json", "survey.csv", "--unaccounted", "--simulate", "5", "-o", "sim.json")
    assert "protects NOBODY" in done.err
    assert Release.load("sim.json").simulated
    assert "SIMULATED" in good("infer", "sim.json").out
    assert (
        good(
            "release", "plan.json", "survey.csv", "--unaccounted", "--simulate", "5", "-o", "sim2.json", "--json"
        ).json["simulated"]
        is True
    )
    assert Path("sim.json").read_bytes() == Path("sim2.json").read_bytes()
    assert entries() == []


def test_an_existing_output_is_refused_before_the_charge(planned):
    Path("release.json").write_text("precious")
    done = run(*RELEASE, "-o", "release.json")
    assert done.code == 2
    assert "--force" in done.err
    assert Path("release.json").read_text() == "precious"
    assert entries() == []
    good(*RELEASE, "-o", "release.json", "--force")
    Release.load("release.json")


@pytest.mark.parametrize("place", ["nowhere/release.json", "survey.csv/release.json", ".", "-", "x" * 300])
def test_an_impossible_output_is_refused_before_the_charge(planned, place):
    before = listed(planned)
    assert run(*RELEASE, "-o", place).code == 2
    assert run(*RELEASE, "-o", place, "--force").code == 2
    assert entries() == []
    assert listed(planned) == before


def test_a_folder_without_permission_is_refused_before_the_charge(planned, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "open", refuse)
        done = run(*RELEASE, "-o", "release.json")
    assert done.code == 2
    assert "Permission denied" in done.err
    assert entries() == []


@pytest.mark.parametrize("taken", ["ledger.db", "plan.json", "survey.csv", "./x/../ledger.db"])
def test_an_output_over_an_input_is_refused_even_by_force(planned, taken):
    Path("x").mkdir()
    before = Path(taken).read_bytes()
    assert run(*RELEASE, "-o", taken, "--force").code == 2
    assert Path(taken).read_bytes() == before
    assert entries() == []


def test_what_is_refused_leaves_no_file_behind(planned):
    before = listed(planned)
    assert run("release", "plan.json", "none.csv", "--ledger", "ledger.db", "-o", "release.json").code == 3
    assert run("release", "plan.json", "survey.csv", "--ledger", "none.db", "-o", "release.json").code == 3
    assert run(*RELEASE, "--dataset", "other", "-o", "release.json").code == 3
    assert run(*RELEASE[:-1], "none.db", "-o", "plan.json", "--force").code == 2
    assert listed(planned) == before
    assert entries() == []


def test_a_full_disk_after_the_charge_prints_the_release(planned, monkeypatch):
    def full(self, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.Output, "write", full)
    for words in ((), ("--json",)):
        done = run(*RELEASE, "-o", "release.json", *words)
        assert done.code == 6
        assert "No space left" in done.err
        assert "stdout" in done.err
        assert not Path("release.json").exists()
        text = done.out if words else done.out[done.out.index('{"body"') :]
        saved = Release.from_json(text)
        assert engine.verify(saved, Ledger.open("ledger.db")).ok
        if words:
            strict_json(done.out)


def test_budget_exceeded_draws_nothing(released):
    good("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1.9", "-o", "large.json")
    done = run("release", "large.json", "survey.csv", "--ledger", "ledger.db", "-o", "large_release.json")
    assert done.code == 4
    assert "Nothing was charged and no noise was drawn. [budget_exceeded, exit 4]" in done.err
    assert not Path("large_release.json").exists()
    assert len(entries()) == 1


def test_a_busy_ledger_is_exit_code_5(planned, monkeypatch):
    def busy(self, *_, **__):
        raise LedgerBusy("locked; nothing was charged")

    monkeypatch.setattr(Ledger, "charge", busy)
    done = run(*RELEASE, "-o", "release.json", "--json")
    assert done.code == 5
    assert done.json["error"] == "LedgerBusy"
    assert not Path("release.json").exists()


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[1]", "not json", '{"confide": "plan"}', '{"confide": "release", "body": {}}', "[" * 100_000, "\0"],
)
def test_a_damaged_plan_is_exit_code_3_because_nothing_was_charged(planned, content):
    Path("plan.json").write_text(content)
    done = run(*RELEASE, "-o", "release.json")
    assert done.code == 3
    assert "plan.json" in done.err
    assert entries() == []


def test_an_altered_plan_is_refused(planned):
    text = Path("plan.json").read_text()
    altered = re.sub(r'"passes":\d+', '"passes":1', text)
    assert altered != text
    Path("plan.json").write_text(altered)
    assert run(*RELEASE, "-o", "release.json").code == 3
    from confide.core.files import from_file, to_file

    body = from_file("plan", text)
    Path("plan.json").write_text(to_file("plan", {**body, "passes": 1}))  # with a digest that fits
    done = run(*RELEASE, "-o", "release.json")
    assert done.code == 3
    assert "confide plan" in done.err
    for missing in ("method", "schema", "event"):
        Path("plan.json").write_text(to_file("plan", {key: value for key, value in body.items() if key != missing}))
        assert run(*RELEASE, "-o", "release.json").code == 3
    assert entries() == []


def test_no_price_is_said_of_a_plan_that_cannot_be_made_again(planned):
    from confide.core.files import from_file, to_file

    body = from_file("plan", Path("plan.json").read_text())
    stated, *others = body["guarantees"]
    forged = {**body, "guarantees": [{**stated, "mu": (0.01).hex()}, *others]}
    Path("plan.json").write_text(to_file("plan", forged))
    done = run(*RELEASE, "-o", "release.json")
    assert done.code == 3
    assert "0.01" not in done.out + done.err and "will" not in done.out + done.err
    assert entries() == []


def test_plan_for_another_dataset_is_refused(survey):
    text = Path("schema.toml").read_text()
    Path("schema.toml").write_text(text.replace('"survey"', '"census"'))
    good("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2")
    good("ledger", "init", "ledger.db", "--dataset", "census", "--mu", "2")
    good(*PLAN, "-o", "plan.json")
    assert run(*RELEASE, "--dataset", "survey", "-o", "release.json").code == 3
    good(*RELEASE, "-o", "release.json")
    assert len(Ledger.open("ledger.db", dataset="census").show().rows) == 3


def test_a_book_without_the_schemas_dataset_says_how_to_open_it(survey):
    good("ledger", "init", "ledger.db", "--dataset", "other", "--mu", "2")
    done = run(*PLAN, "--ledger", "ledger.db")
    assert done.code == 3
    assert "confide ledger init ledger.db --dataset survey" in done.err
    # whoever names another dataset on purpose may plan against it; the gate refuses to charge it for these records
    good(*PLAN, "--ledger", "ledger.db", "--dataset", "other", "-o", "plan.json")
    assert run(*RELEASE, "--dataset", "other", "-o", "release.json").code == 3


@pytest.mark.parametrize(
    "words",
    [
        ("release", "plan.json", "survey.csv", "-o", "new.json"),
        ("regress", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", "1", "-o", "new.json"),
        ("synthesize", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", "1", "-o", "new.parquet"),
    ],
)
@pytest.mark.parametrize("simulated", [False, True])
def test_without_a_ledger_nothing_is_said_to_be_charged(planned, words, simulated):
    done = good(*words, "--unaccounted", *(["--simulate", "1"] if simulated else []))
    said = done.out + done.err
    stated = "Charged to no ledger" + (" (simulated noise protects no one)" if simulated else "")
    assert stated in said and "% of the budget" not in said


def test_a_result_does_not_say_whether_its_release_was_charged(released):
    """The file does not know it: the same words with a ledger and without; `verify` reads the ledger."""
    good("release", "plan.json", "survey.csv", "--unaccounted", "-o", "free.json")
    for name in ("release.json", "free.json"):
        done = good("infer", name, "--report", f"{name}.html", "--verbose")
        assert "charge" not in done.out + Path(f"{name}.html").read_text().lower()
        assert "as requested" in done.out
    assert "charged" in good("verify", "release.json", "--ledger", "ledger.db").out
    assert run("verify", "free.json", "--ledger", "ledger.db").code == 1


@pytest.mark.parametrize("command", ["plan", "regress", "synthesize"])
def test_help_says_what_n_is_for(command):
    said = " ".join(re.sub(r"[│\s]+", " ", good(command, "--help").out).split())
    assert "for the forecast; it may be a guess, except under the relation substitute, where it is public" in said
