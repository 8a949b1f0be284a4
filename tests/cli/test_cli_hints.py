"""What an error of the command line tells to type: commands and options, and no Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.cli_runner import SCHEMA, entries, good, printed, run

from confide import GDP, Ledger, Plan, Release, Schema, engine, read, regression
from confide.cli.messages import for_command_line, plan_command
from confide.errors import PrivacyError

PLAN = ("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1")
RELEASE = ("release", "plan.json", "survey.csv", "-o", "new.json", "--ledger")
REGRESS = ("regress", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", "1", "--unaccounted")
PYTHON = re.compile(r"\b(?:Ledger|Schema|SSP|cf|ledger|gate)\.?\w*\(|privacy=|\b(?:GDP|ZCDP|PureDP|Numeric)\(\d")

LOW_ABOVE_HIGH = '[columns.age]\nkind = "numeric"\nlow = 60\nhigh = 10\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((*RELEASE, "none.db"), "confide ledger init none.db --dataset"),
        (
            (*PLAN, "--ledger", "ledger.db", "--dataset", "census"),
            "confide ledger init ledger.db --dataset census --mu",
        ),
        (("plan", "happy ~ log(children)", *PLAN[2:]), '--param \'term_bounds={"log(children)": ['),
        ((*PLAN, "--method", "ssp", "--param", "cov=strong"), "--param cov=robust"),
        ((*REGRESS, "--method", "huber_line", "--param", "objective=guess"), "--param objective=inference"),
        ((*PLAN[:3], "none.toml", *PLAN[4:]), "confide schema draft DATA -o schema.toml"),
        (("infer", "release.json", "--alpha", "95"), "--alpha 0.05"),
        ((*PLAN[:3], "wrong.toml", *PLAN[4:]), "[columns.age] the lines low = 10 and high = 60"),
        ((*PLAN[:5], "0"), "--mu 1.0"),
        ((*REGRESS[:2], "wide.csv", *REGRESS[3:]), "--delimiter ';'"),
    ],
)
def test_errors_speak_of_commands(released, words, told):
    Path("wrong.toml").write_text(LOW_ABOVE_HIGH)
    pd.read_csv("survey.csv").to_csv("wide.csv", sep=";", index=False)
    done = run(*words)
    assert done.code in (2, 3)
    assert told in done.err
    assert not PYTHON.search(done.err), done.err
    document = run(*words, "--json").json
    problem, remedy = document["problem"], document["remedy"]
    ends = ["nothing was charged"] if "\nNothing was charged. [" in done.err else []
    assert document["message"] == "; ".join(filter(None, [problem, remedy, *ends]))
    tried = f"\n  Try      {remedy.removeprefix('write ')}\n" if remedy else "\n"
    assert re.match(rf"Error: {re.escape(problem)}\.?{re.escape(tried)}", done.err)


def test_a_refused_charge_tells_the_plan_that_fits_and_the_amendment(released):
    good("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1.9", "-o", "large.json", "--param", "limit=none")
    done = run("release", "large.json", "survey.csv", "--ledger", "ledger.db", "-o", "large_release.json")
    assert done.code == 4
    assert re.search(r"confide ledger amend ledger.db --dataset survey --mu [\d.]+ --reason TEXT", done.err)
    command = re.search(r"Try      (confide plan .*? -o smaller.json)", done.err)[1]
    assert "--param 'limit=\"none\"'" in command
    good(*shlex.split(command)[1:])
    good("release", "smaller.json", "survey.csv", "--ledger", "ledger.db", "-o", "small.json")
    assert not PYTHON.search(done.err)
    assert done.err.endswith("\nNothing was charged and no noise was drawn. [budget_exceeded, exit 4]\n")


def test_a_statement_is_no_call_and_stays():
    text = "the charge GDP(mu=1, add-remove) is GDP(1.5), or cf.ApproxDP(1.0, 1e-06)"
    assert for_command_line(text) == "the charge GDP(mu=1, add-remove) is --mu 1.5, or --epsilon 1.0 --delta 1e-06"
    assert "secret" not in for_command_line("ledger.show()", ledger="postgresql://user:secret@host/db")


@pytest.mark.parametrize(
    "words",
    [
        ("--ledger", "none.db", "-o", "new.json"),
        ("--ledger", "ledger.db", "-o", "plan.json"),
        ("--ledger", "ledger.db", "--dataset", "other", "-o", "new.json"),
        ("--ledger", "ledger.db", "-o", "new.json", "--nonsense"),
        ("--ledger", "ledger.db", "-o", "nowhere/new.json"),
        ("--ledger", "ledger.db"),
    ],
)
def test_every_error_before_the_charge_ends_in_nothing_was_charged(planned, words):
    done = run("release", "plan.json", "survey.csv", *words)
    assert done.code in (2, 3)
    assert re.search(rf"\nNothing was charged\. \[\w+, exit {done.code}\]\n\Z", done.err)
    assert done.err.lower().count("nothing was charged") == 1
    missing = run("release", "plan.json", "missing.csv", *words[:2], "-o", "n.json")
    assert missing.err.lower().count("nothing was charged") == 1 and "\nNothing was charged. [" in missing.err
    assert entries() == []


def test_a_plan_that_was_released_before_is_named_before_it_is_charged_again(released):
    done = good(*RELEASE, "ledger.db", "--json")
    before = Release.load("release.json").sha256
    assert f"note: this plan was released before (release ID {before[:8]}, entry 2)" in done.err
    assert done.json["released_before"] == [before]
    assert len(entries()) == 2


def test_files_in_the_way_are_kept_without_force(released):
    for option, name in (("--report", "r.html"), ("--plot", "p.svg"), ("--csv", "t.csv")):
        Path(name).write_text("precious")
        done = run("infer", "release.json", option, name)
        assert done.code == 2 and "--force" in done.err and option in done.err
        assert Path(name).read_text() == "precious"
        good("infer", "release.json", option, name, "--force")
        assert Path(name).read_text() != "precious"
        assert run("infer", "release.json", option, "file.txt").code == 2


def test_the_table_as_csv_has_all_digits(released):
    good("infer", "release.json", "--csv", "table.csv")
    found = pd.read_csv("table.csv", index_col="term")
    result = engine.infer(Release.load("release.json"))
    pd.testing.assert_frame_equal(found, result.to_frame(), check_names=False)


def test_a_factor_stands_for_all_its_levels(book):
    good("plan", "happy ~ age + region", *PLAN[2:], "-o", "plan.json")
    good("release", "plan.json", "survey.csv", "--unaccounted", "-o", "release.json")
    release = Release.load("release.json")
    whole = good("infer", "release.json", "--subset", "region").out
    expected = printed(engine.infer(release, subset=("region",)).summary())
    # how to see more is said in the words of the command
    expected = expected.replace("summary(verbose=True))(details: --verbose)", "--verbose)")
    assert whole.splitlines()[1:] == expected.splitlines()[1:]
    assert "region: South" in whole and "\nage " not in whole
    refused = run("infer", "release.json", "--subset", "wealth").err
    assert "all levels of a factor at once: region" in refused


def test_other_delimiters(survey):
    pd.read_csv("survey.csv").to_csv("tabs.csv", sep="\t", index=False)
    assert "[columns.age]" in good("schema", "draft", "tabs.csv", "--delimiter", "\\t").out
    good("schema", "check", "schema.toml", "--data", "tabs.csv", "--delimiter", "tab")
    good(*REGRESS[:2], "tabs.csv", *REGRESS[3:], "--delimiter", "\\t")
    good("plan", "happy ~ age", *PLAN[2:], "-o", "plan.json")
    good("release", "plan.json", "tabs.csv", "--delimiter", "\t", "--unaccounted", "-o", "release.json")


def test_a_csv_draft_leaves_the_kinds_open(survey):
    good("schema", "draft", "survey.csv", "-o", "draft.toml")
    assert 'kind = "?"' in Path("draft.toml").read_text()
    done = run("schema", "check", "draft.toml")
    assert done.code == 3
    assert '[columns.age] lacks kind: write kind = "numeric"' in done.err


def test_sample_takes_n_in_both_spellings(survey):
    good("schema", "sample", "schema.toml", "--n", "7", "-o", "practice.csv")
    assert len(pd.read_csv("practice.csv")) == 7


def test_a_power_outside_of_I_is_noted_in_the_plan(survey):
    out = good("plan", "happy ~ age + age**2", *PLAN[2:]).out
    assert "age**2 is read as the power I(age ** 2)" in out
    assert "read as the power" not in good("plan", "happy ~ age + I(age ** 2)", *PLAN[2:]).out


PTR = ("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1", "--delta", "1e-6", "--method", "efficient_ptr")


def test_a_book_without_a_delta_is_told_to_get_one_and_no_plan_that_fails(survey):
    good("ledger", "init", "sub.db", "--dataset", "survey", "--mu", "4", "--relation", "substitute")
    good(*PTR, "-o", "plan.json")
    done = run("release", "plan.json", "survey.csv", "--ledger", "sub.db", "-o", "r.json")
    assert done.code == 4
    assert "this ledger has no delta left; a release that may fail needs one" in done.err
    amend = re.search(r"confide (ledger amend sub.db --dataset survey --mu \.\.\. --delta \.\.\.) --reason", done.err)[
        1
    ]
    assert "confide plan" not in done.err and done.err.count("confide ledger amend") == 1
    first, second = "--mu ...", "--delta ..."
    words = amend.replace(first, "--mu 4").replace(second, "--delta 1e-7")
    good(*shlex.split(words), "--reason", "decision")
    done = run("release", "plan.json", "survey.csv", "--ledger", "sub.db", "-o", "r.json")
    assert re.search(r"Allowed  mu up to [\d.]+, delta up to 9.999e-08\n  Try      confide plan", done.err)
    assert "--mu ... --delta ... --reason TEXT" in done.err, "an amendment without a delta would take it away"
    good(*shlex.split(re.search(r"Try      (confide plan .*? -o smaller.json)", done.err)[1])[1:])
    good("release", "smaller.json", "survey.csv", "--ledger", "sub.db", "-o", "small.json")


def test_a_book_under_a_relation_that_the_method_has_not_names_what_works(book):
    good(*PTR, "-o", "plan.json")
    for words in (
        (*PTR, "--ledger", "ledger.db"),
        ("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "r.json"),
    ):
        done = run(*words)
        assert done.code == 3 and "--relation add-remove" not in done.err
        assert "take a method that has add-remove" in done.err and "opened with --relation substitute" in done.err
    with pytest.raises(PrivacyError) as refused:
        engine.release(
            Plan.from_json(Path("plan.json").read_text()),
            read("survey.csv", Schema.from_toml("schema.toml")),
            ledger=Ledger.open("ledger.db"),
        )
    assert "else take a method that has it" in str(refused.value)
    said = for_command_line(str(refused.value), ledger="ledger.db", dataset="survey")
    assert "confide ledger init OTHER_LEDGER --dataset survey --mu ... --delta ... --relation substitute (two" in said
    assert said.count("(") == said.count(")")


def test_a_release_of_one_line_answers_no_subset_and_says_what_does(survey):
    good(*PTR, "-o", "plan.json")
    good("release", "plan.json", "survey.csv", "--unaccounted", "-o", "line.json")
    done = run("infer", "line.json", "--subset", "age")
    assert done.code == 3 and "smaller model" in done.err
    assert "ssp" in re.search(r"releases of --method (.*) answer subsets", done.err)[1].split(", ")


def test_settings_of_any_method_and_a_public_n():
    assert for_command_line('take Logistic(formula, link="probit")') == "take --param link=probit"
    assert for_command_line("LeastSquares(formula, cov='robust')", options={"--cov"}) == "--cov robust"
    plan = engine.plan(regression.SSP("happy ~ age"), SCHEMA, GDP(1.0, relation="substitute"), n=2_000)
    assert " --n 2000 " in plan_command(plan, "--mu 1", ledger=None, dataset=None)


def test_a_ledger_of_an_enforced_unit_names_it():
    call = "dataset 'hh' counts records; open: Ledger.create(path, dataset='hh', budget=..., unit='pid')"
    assert "confide ledger init OTHER_LEDGER --dataset hh --unit pid --mu" in for_command_line(call, ledger="ledger.db")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("say which: charge_delta=0.001", "say which: --charge-delta 0.001"),
        ("convert_ledger=True, or ledger.convert()", "--convert-ledger, or confide ledger convert ledger.db"),
        ("write dataset='hh' in the schema", 'write dataset = "hh" in the schema'),
        ("typical=(low, high) in the schema", "typical = { low = ..., high = ... } in the schema"),
        ("ask with relation='substitute' in the guarantee", "ask with --relation substitute in the guarantee"),
        ("use it: Ledger.open('ledger.db', dataset='hh')", "use it: --dataset hh"),
        (
            "ledger.amend(GDP(..., delta=...), reason='...')",
            "confide ledger amend ledger.db --dataset hh --mu ... --delta ... --reason TEXT",
        ),
        (
            "Ledger.create(path, dataset='own', budget=GDP(2.0, relation='substitute', unit='record', trust='local'))",
            "confide ledger init OTHER_LEDGER --dataset own --mu 2.0 --relation substitute --trust local",
        ),
        ("write cf.plan(method, schema, cv={'a': 0.1}, n=50)", "write --cv a=0.1 --n 50"),
        ("ask cf.poisson_regression, or cf.tests.f_oneway", "ask confide regress --method poisson, or confide test f_oneway"),
        ("cf.tables.shares('a * b', within='b', ...)", "confide table 'a * b' --kind shares --within b ..."),
        ("write poststratify({'f': 5}, 'sex'), or read predict(frame)", "write --poststratify sex=totals.csv, or read --predict ROWS.csv"),
        ("write allow_partial=True, or clipping_check=False", "write --allow-partial, or --no-clipping-check"),
        ("got noise=2 and levels={'a': 1.0}, columns=['a', 'b']", "got --noise 2 and --levels a=1.0, --columns a,b"),
    ],
)  # fmt: skip
def test_calls_and_settings_are_read_as_python_wherever_they_stand(told, said):
    options = {"--allow-partial", "--no-clipping-check", "--noise", "--levels", "--columns"}
    assert for_command_line(told, ledger="ledger.db", dataset="hh", options=options) == said
