"""`confide table`, `confide describe` and `confide test`."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.cli.cli_runner import good, run

import confide as cf
from confide import Release, infer

TABLE = ("table", "region * cut(age, 40)", "survey.csv", "--schema", "schema.toml", "--mu", "1", "--unaccounted")


def test_a_table_in_one_go_and_again_from_its_file(survey):
    first = good(
        *TABLE, "--inference", "population", "-o", "table.json", "--csv", "table.csv", "--report", "t.html"
    ).out
    assert "Records by region and cut(age, 40)" in first
    assert Path("table.csv").read_text().startswith("region,")
    again = good("infer", "table.json").out
    assert [line for line in again.splitlines() if "South" in line] == [
        line for line in first.splitlines() if "South" in line
    ]


def test_kinds_follow_the_formula_or_the_option(survey):
    means = ("table", "happy ~ region", *TABLE[2:], "--inference", "dataset", "--json")
    assert good(*means).json["result"]["kind"] == "means"
    assert good(*means, "--kind", "totals").json["result"]["kind"] == "totals"
    shares = good(*TABLE, "--inference", "dataset", "--kind", "shares", "--within", "region", "--json").json
    assert shares["result"]["kind"] == "shares"
    assert json.loads(json.dumps(shares))["ledger"] is None


DESCRIBE = ("describe", "happy + age ~ region", *TABLE[2:])


def test_table_one_in_one_go_and_again_from_its_file(survey):
    shown = good(*DESCRIBE, "--inference", "population", "--medians", "age", "-o", "one.json", "--csv", "one.csv").out
    again = good("infer", "one.json").out
    for row in ("happy", "age"):
        lines = [line for line in shown.splitlines() if line.startswith(row)]
        assert lines and lines == [line for line in again.splitlines() if line.startswith(row)]
    rows = Path("one.csv").read_text()
    assert "age: median" in rows
    found = good(*DESCRIBE, "--inference", "dataset", "--json").json
    assert found["result"]["family"] == "Table One"
    assert "exactly these records" in json.dumps(found["result"])
    assert "age: median" not in json.dumps(found["result"])


def test_tests_by_their_names_in_scipy(survey):
    rest = TABLE[2:]
    for name, formula, more in (
        ("f_oneway", "happy ~ region", ()),
        ("chi2_contingency", "region * cut(age, 40)", ()),
        ("chisquare", "cut(age, 40)", ("--expected", ".5,.5")),
        ("binomtest", "cut(age, 40)", ("--p", ".3")),
        ("pearsonr", "happy + age", ()),
        ("ttest_ind", "happy ~ cut(age, 40)", ()),
        ("mannwhitneyu", "happy ~ cut(age, 40)", ()),
        ("kruskal", "happy ~ region", ()),
    ):
        found = good("test", name, formula, *rest, *more, "--json").json["result"]
        assert "test" in found["family"]
        assert len(found["p_value"]) == 1


def test_a_test_without_an_estimate_has_a_page_and_a_picture(survey):
    done = good(
        "test", "chi2_contingency", "region * cut(age, 40)", *TABLE[2:], "--report", "t.html", "--plot", "t.png"
    )
    assert "Chi-square test" in done.out
    assert "<svg" not in Path("t.html").read_text()
    assert Path("t.png").stat().st_size > 1_000


RELEASED = (
    ("happy ~ region", "ttest_ind", "happy ~ region", ()),
    ("region * cut(age, 40)", "chi2_contingency", "cut(age,40) * region", ()),
    ("region * cut(age, 40)", "binomtest", "region", ("--p", ".4", "--level", "South")),
    ("region * cut(age, 40)", "chisquare", "cut(age, 40)", ("--expected", ".5,.5")),
)


@pytest.mark.parametrize(("table", "name", "formula", "more"), RELEASED)
def test_a_released_table_answers_its_tests(survey, table, name, formula, more):
    good("table", table, *TABLE[2:], "--inference", "population", "-o", "table.json")
    found = good("infer", "table.json", formula, "--test", name, *more, "--json").json["result"]
    own = infer(Release.load("table.json"))
    asked = {
        "ttest_ind": lambda: own.test("t", "region"),
        "chi2_contingency": lambda: own.test("independence", "cut(age, 40)", "region"),
        "binomtest": lambda: own.test("proportion", "region", p=0.4, level="South"),
        "chisquare": lambda: own.test("fit", "cut(age, 40)", expected=[0.5, 0.5]),
    }[name]()
    assert found["p_value"] == [asked.pvalue]


def test_the_one_test_of_a_table_needs_no_formula_and_others_are_listed_with_their_columns(survey):
    good("table", "happy ~ region * cut(age, 40)", *TABLE[2:], "--inference", "population", "-o", "two.json")
    good("table", "happy ~ region", *TABLE[2:], "--inference", "population", "-o", "one.json")
    assert "t test: mean happy by region" in good("infer", "one.json", "--test", "ttest_ind").out
    for words in (("--test", "ttest_ind"), ("happy ~ children", "--test", "ttest_ind")):
        said = run("infer", "two.json", *words).err
        commands = [line for line in said.splitlines() if line.lstrip().startswith("confide ")]
        assert len(commands) == len(said.splitlines()) - 3  # the others: problem, Try, class of the error
        for line in commands:
            good(*shlex.split(line)[1:])  # each command of the message works as it stands
        assert "'happy ~ cut(age, 40)' --test ttest_ind" in said
    for words, code in (
        (("--test", "t"), "Try      --test ttest_ind"),
        (("--test", "kruskal"), "say of which columns"),
        (("happy ~ region", "--test", "kruskal"), "confide test kruskal asks"),
        (("happy ~ region",), "Try      --test NAME"),
        (("--test", "ttest_ind", "-o", "again.json"), "leave out -o"),
        (("--analysis", "model"), "holds one analysis"),
    ):
        done = run("infer", "one.json", *words)
        assert done.code in (2, 3) and code in done.err and "cf." not in done.err


def test_a_test_of_a_release_leads_to_the_command_that_asks_it(survey):
    good("table", "happy ~ region", *TABLE[2:], "--inference", "population", "-o", "one.json")
    for words in (("t", "one.json"), ("ttest_ind", "happy ~ region", "one.json"), ("t", "one.json", *TABLE[3:])):
        done = run("test", *words)
        assert done.code == 2
        command = re.search(r"confide (infer .*)", done.err)[1]
        assert "t test: mean happy by region" in good(*shlex.split(command)).out


def test_medians_and_table_one_in_one_go(survey):
    rest = (*TABLE[2:], "--inference", "population")
    assert "0.5" in good("table", "happy ~ region", *rest, "--kind", "quantiles").out
    assert (
        "Table 1. Characteristics by region"
        in good("describe", "happy + age ~ region", *rest, "--medians", "happy").out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (TABLE, "--inference population"),
        (DESCRIBE, "--inference population"),
        ((*DESCRIBE, "--inference", "dataset", "--medians", "region"), "not a numeric row"),
        ((*TABLE, "--inference", "dataset", "--kind", "medians"), "--kind must be one of"),
        (("test", "anova", "happy ~ region", *TABLE[2:]), "there is no test 'anova'; there are: "),
        (("test", "anova", "happy ~ region", *TABLE[2:]), "Try      confide test f_oneway"),
        (("test", "chisquare", "region", *TABLE[2:], "--expected", "half"), "takes numbers"),
        (("test", "ttest_ind", "happy", *TABLE[2:]), "two sides"),
    ],
)
def test_what_cannot_be_read_costs_nothing(survey, words, said):
    found = run(*words)
    assert found.code in (2, 3)
    assert said in found.err


def test_the_help_of_a_publication_shows_its_file_whole(survey):
    shown = good("publish", "--help").out
    assert "[analyses.model]" in shown


def test_a_table_beyond_the_budget_names_the_plan_that_fits(survey):
    good("ledger", "init", "small.db", "--dataset", "survey", "--mu", ".5")
    for words in (
        ("table", "happy ~ region", "--inference", "population"),
        ("test", "ttest_ind", "happy ~ region"),
        ("describe", "happy ~ region", "--inference", "population"),
    ):
        options = ("survey.csv", "--schema", "schema.toml", "--mu", "1", "--ledger", "small.db")
        done = run(*words, *options)
        assert done.code == 4 and "\n  Allowed  mu up to 0.5\n" in done.err, done.err
        asked = re.search(r"Try      confide (.* --ledger small.db) or, if", done.err)[1]
        assert shlex.split(asked) == ["0.5" if word == "1" else word for word in (*words, *options)]


def test_errors_name_options_and_not_python(survey):
    common = (*TABLE[2:4], "schema.toml", "--unaccounted")
    done = run("table", "happy ~ region", *common, "--inference", "dataset", "--margin", "mean=.1")
    assert "--margin mean=0.1 --n 5000" in done.err and "cf." not in done.err
    done = run("table", "region ~ region", *common, "--inference", "dataset", "--mu", "1")
    assert "--kind shares" in done.err and "cf." not in done.err
    done = run("table", "region", "postgresql://me:secret@host/db", *common[1:], "--inference", "dataset", "--mu", "1")
    assert "secret" not in done.err and "cf.sql" in done.err


@pytest.mark.parametrize(
    ("formula", "more"),
    [
        ("mean(happy) ~ region", ()),
        ("sum(happy) ~ region", ()),
        ("median(happy, na.rm=TRUE) ~ region", ()),
        ("sd(happy) ~ region", ()),
        ("n() ~ region", ()),
        ("prop(region) ~ cut(age, 40)", ()),
        ("count(region)", ()),
        ("mean(happy)", ("--kind", "means")),
    ],
)
def test_a_summary_by_name_is_refused_with_the_command_that_gives_it(survey, formula, more):
    """The command of the message, with the rest of what was typed, runs."""
    rest = (*TABLE[2:], "--inference", "population")
    done = run("table", formula, *rest)
    assert done.code == 3 and "cf." not in done.err
    command = re.search(r"write confide (.*) \.\.\.", done.err)[1]
    good(*shlex.split(command), *more, *rest)


def test_medians_of_table_one_say_how_fine_they_are(survey):
    shown = good(*DESCRIBE, "--inference", "population", "--medians", "age", "--verbose").out
    assert "its width at the median: age" in " ".join(shown.split())


def test_functions_of_all_rows_of_a_person_are_pointed_to_their_table(tmp_path: Path) -> None:
    schema = cf.Schema({"ill": cf.Categorical(["no", "yes"])}, unit=cf.Unit("id"))
    (tmp_path / "s.toml").write_text(schema.to_toml())
    schema.sample(20, seed=1).assign(id=range(20)).to_csv(tmp_path / "p.csv", index=False)
    once = ("--schema", str(tmp_path / "s.toml"), "--mu", "1", "--inference", "population", "--unaccounted")
    for formula in ("any(ill == 'yes')", "count(ill == 'yes')"):
        done = run("table", formula, str(tmp_path / "p.csv"), *once)
        assert done.code == 3 and "distinct_counts" in done.err


def test_a_setting_that_a_test_has_not_is_refused_by_name(survey):
    done = run("test", "ttest_ind", "happy ~ region", *TABLE[2:], "--param", "colour=red")
    assert done.code == 3 and "has no parameter 'colour'" in done.err
