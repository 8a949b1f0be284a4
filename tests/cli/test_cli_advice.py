"""What the command line advises is typed, literally, and works: options, commands and lines of files, and no Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.cli_runner import good, run

from confide.cli.messages import for_command_line

S = ("--schema", "schema.toml")
MU = (*S, "--mu", "1")
FREE = (*MU, "--unaccounted")
PYTHON = re.compile(
    r"\bcf\.(?!read\(cf\.sql|sql)|\bconfide\.\w+\(|\b(?:Numeric|Integer|Categorical|Unit|Schema)\(|\w+=(?:True|None|')"
)

# a command that is refused, what of its message is typed (group 1), whether in place of the model or after the rest
CASES = [
    (("plan", "region", "--method", "counts", *MU), r"Try      (--param inference=population)", "after"),
    (("table", "region", "survey.csv", *FREE, "--inference", "sample"), r"Try      (--inference population)", "after"),
    (("plan", "happy ~ 0 + age", *MU), r"Try      ('happy ~ age' --method least_squares)", "model"),
    (("plan", "happy ~ 0 + age", *MU), r"or ('happy ~ 0 \+ age' --method ssp)", "model"),
    (("plan", "happy ~ age", *MU, "--param", "limit=sharp"), r"Try      (--param limit=auto)", "param"),
    (("plan", "happy ~ age", "--method", "ssp", *MU, "--param", "cov=strong"), r"Try      (--param cov=robust)", "param"),
    (("table", "region", "survey.csv", *S, "--unaccounted", "--inference", "dataset", "--n", "2000", "--margin", "count=2%"),
     r"write (--cv count=2%)", "margin"),
    (("table", "happy ~ region", "survey.csv", *S, "--unaccounted", "--inference", "dataset", "--n", "2000", "--margin", "count=2"),
     r"write (--margin mean=0\.[0-9]+)", "margin"),
    (("plan", "region", "--method", "counts", *S, "--param", "inference=population", "--n", "2000", "--margin", "count=1"),
     r"write (--margin count=[0-9.]+) --n 2000", "margin"),
    (("plan", "region", "--method", "counts", *S, "--param", "inference=population", "--n", "2000", "--cv", "1e-5"),
     r"write (--cv all=[0-9.]+) --n 2000", "cv"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "told", "how"), CASES)
def test_who_types_what_a_refusal_says_is_not_refused_again(survey, words, told, how):
    done = run(*words)
    assert done.code in (2, 3) and not PYTHON.search(done.err), done.err
    typed = shlex.split(re.search(told, done.err)[1])
    if how == "model":
        words = (words[0], *typed, *words[2:])
    elif how in ("param", "margin", "cv"):
        place = words.index(f"--{how}")
        words = (*words[:place], *typed, *words[place + 2 :])
    else:
        given = [place for place, word in enumerate(words) if word == typed[0] and word != "--param"]
        words = (
            *(word for place, word in enumerate(words) if not given or place not in (given[0], given[0] + 1)),
            *typed,
        )
    good(*words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("plan", "happy ~ age + children", "--method", "kernel", *MU),
            "--method efficient_ptr_kernel --param points=...",
        ),
        (("plan", "happy ~ age", "--method", "kernel", *MU, "--param", "bandwith=.1"), "did you mean 'bandwidth'"),
        (("regress", "happy ~ age", "survey.csv", *FREE, "--method", "leastsquares"), "did you mean 'least_squares'"),
        (("interval", "mena", "survey.csv", *FREE, "--column", "happy"), "did you mean 'mean'"),
        (("test", "ttest_idn", "happy ~ region", "survey.csv", *FREE), "did you mean 'ttest_ind'"),
        (
            ("table", "region", "survey.csv", *FREE, "--kind", "count", "--inference", "dataset"),
            "did you mean 'counts'",
        ),
        (
            ("regress", "happy ~ age", "survey.csv", *FREE, "--method", "logistic"),
            'kind = "integer", low = 0, high = 1',
        ),
        (("regress", "happy ~ age", "survey.csv", *FREE, "--method", "within"), 'unit = { column = "person_id" }'),
        (
            ("table", "region", "survey.csv", *FREE, "--kind", "distinct_counts", "--inference", "dataset"),
            'unit = { column = "person_id" }',
        ),
        (("refit", "x.parquet", "happy ~ age"), "make it with confide synthesize 'y ~ a' DATA"),
        (
            ("regress", "happy ~ age", "survey.csv", *FREE, "--executor", "dask"),
            "Try      --executor dask://host:8786 or --executor spark://",
        ),
        (
            ("regress", "happy ~ age", "postgresql://me:secret@host/db", *FREE),
            "give CSV or Parquet files, or survey.sqlite/answers",
        ),
        (
            ("regress", "happy ~ age", "survey.csv", *FREE, "--margin", "age=1"),
            "--margin asks for the least budget, and --mu gives one",
        ),
        (
            ("table", "region", "survey.csv", *FREE, "--inference", "dataset", "--cv", "2%"),
            "--cv asks for the least budget, and --mu",
        ),
        (
            ("interval", "mean", "survey.csv", *S, "--unaccounted", "--column", "happy", "--cv", "2%"),
            "--cv finds the cost of one analysis",
        ),
        (
            ("synthesize", "happy ~ age", "survey.csv", *S, "--unaccounted", "-o", "x.csv", "--margin", "age=1"),
            "finds the cost of one",
        ),
        (
            ("plan", "happy ~ age", *S, "--margin", "age=1", "--n", "2000", "--relation", "substitute"),
            "leave --relation out",
        ),
    ],
)
def test_refusals_speak_the_language_of_the_command_line(survey, words, told):
    done = run(*words)
    assert done.code in (2, 3) and told in done.err, done.err
    assert not PYTHON.search(done.err), done.err


def test_a_call_that_no_option_can_say_keeps_its_arguments(survey):
    done = run("plan", "region", "--method", "select", *MU)
    assert done.code in (2, 3)
    assert (
        "this is asked in Python: cf.select([cf.regression.SSP('y ~ x', leverage_cap=cap) for cap in (1.2, 2)], data"
        in done.err
    )
    assert "--method select" not in done.err
    assert for_command_line("write cf.tables.counts('g', data, within=own(1))") == (
        "this is asked in Python: cf.tables.counts('g', data, within=own(1))"
    )


def test_an_option_is_named_only_where_the_command_has_it():
    line = "write cf.regression.LeastSquares('y ~ x'), or cf.regression.SSP('y ~ 0 + x', cov='robust'), which"
    assert for_command_line(line, options={"--param", "--method"}) == (
        "write 'y ~ x' --method least_squares, or 'y ~ 0 + x' --method ssp --param cov=robust, which"
    )
    for options in ({"--param", "--test"}, {"--method"}):
        told = for_command_line(line, options=options)
        assert "or confide plan 'y ~ 0 + x' --method ssp --param cov=robust, which" in told
    # of another command its own options, and not those of the one that runs
    assert (
        for_command_line("write cf.tables.counts('g', data, within='x')", options={"--param"})
        == "write confide table g --within x"
    )


def test_what_a_schema_declares_is_told_as_lines_of_its_file(survey):
    text = Path("schema.toml").read_text()
    for facts, line in (
        ('strata = "age"\npsu = "v"\nsize = 3', '[columns.age] with kind = "categorical", levels = [...]'),
        (
            'weight = "age"\npsu = "v"\nsize = 0.5',
            'under [design] the lines weight = "w", strata = "region", psu = "village", size = 10',
        ),
        (
            'weight = "age"\npsu = "v"\npsus = { a = 3 }',
            'psus = { north = ["n1", "n2"], south = ["s1", "s2"] } under [design]',
        ),
    ):
        Path("wrong.toml").write_text(f"{text}\n[design]\n{facts}\n")
        done = run("plan", "happy ~ age", "--schema", "wrong.toml", "--mu", "1")
        assert done.code == 3 and line in done.err and not PYTHON.search(done.err), done.err
    done = run(
        "plan",
        "happy ~ region",
        "--method",
        "means",
        *S,
        "--param",
        "inference=population",
        "--n",
        "2000",
        "--cv",
        "1%",
    )
    assert "typical = { low = ..., high = ... } in the schema" in done.err and not PYTHON.search(done.err)


def test_an_account_that_is_there_is_told_before_its_unit(survey):
    good("ledger", "init", "own.db", "--dataset", "survey", "--mu", "1", "--unit", "record")
    text = Path("schema.toml").read_text()
    whole = re.sub(r"(?m)^(unit|rows_per_unit) = .*\n", "", text)
    Path("schema.toml").write_text('unit = { column = "person_id" }\n' + whole)
    assert "has a budget in" in run("ledger", "init", "own.db", "--dataset", "survey", "--mu", "1").err
    assert "--unit person_id" in run("ledger", "init", "new.db", "--dataset", "survey", "--mu", "1").err
    assert not Path("new.db").exists()


def test_a_file_of_predictions_that_is_refused_is_refused_alone(released):
    Path("rows.csv").write_text("nothing\n1\n")
    done = run("infer", "release.json", "--predict", "rows.csv")
    assert done.code in (2, 3) and not done.out


PUBLICATION = "schema = 'schema.toml'\n[analyses.a]\nmethod = 'counts'\nformula = 'region'\n"


def test_a_publication_is_told_lines_of_its_file(survey):
    Path("p.toml").write_text("privacy = { mu = 1 }\n" + PUBLICATION)
    done = run("plan", "p.toml")
    line = re.search(r"Try      (inference = \"population\") in \[analyses\.a\]", done.err)[1]
    assert not PYTHON.search(done.err)
    Path("p.toml").write_text(f"privacy = {{ mu = 1 }}\n{PUBLICATION}{line}\n")
    good("plan", "p.toml")


def test_targets_of_a_publication_stand_beside_no_budget(survey):
    Path("p.toml").write_text(f"n = 2000\n{PUBLICATION}inference = 'dataset'\nmargin = {{ count = 20 }}\n")
    for words in (("plan", "p.toml", "--mu", "1"), ("publish", "p.toml", "survey.csv", "--unaccounted", "--mu", "1")):
        done = run(*words)
        assert done.code == 3 and "the analysis 'a' has a target" in done.err
    done = run("publish", "p.toml", "survey.csv", "--unaccounted", "--margin", "count=20")
    assert (
        done.code == 2
        and "of one analysis (confide plan, table, test, describe, regress, or a publication's file)" in done.err
    )
    asked = (
        "plan",
        "region",
        *S,
        "--method",
        "counts",
        "--param",
        "inference=dataset",
        "--n",
        "2000",
        "--margin",
        "count=20",
    )
    prices = []
    for words in (("plan", "p.toml"), asked):
        prices.append(good(*words, "--json").json["requested"]["mu"])
        printed = re.search(r"Cost +Gaussian DP, mu = ([0-9.]+)", good(*words).out)[1]
        assert float(printed) == pytest.approx(prices[-1], abs=1e-3)
    assert prices[0] == pytest.approx(prices[1], rel=1e-3), "one margin in the file and on the command line"


def test_settings_are_options_of_the_running_command_or_of_set():
    assert for_command_line("write bandwidth=0.05") == "write --param bandwidth=0.05"
    assert (
        for_command_line("write q=(0.25, 0.5), or drop it", options={"--param", "--q"})
        == "write --q 0.25,0.5, or drop it"
    )
    assert for_command_line("write threshold=0.5", options={"--alpha"}) == "write threshold=0.5"
    assert (
        for_command_line("the schema says unit='record'; x=3 is no write")
        == "the schema says unit='record'; x=3 is no write"
    )
    assert for_command_line("in log(x) and Nothing(x=1)") == "in log(x) and Nothing(x=1)"
    assert for_command_line("'a': cf.Categorical([...])") == '[columns.a] with kind = "categorical", levels = [...]'
    assert for_command_line("write cf.tables.means('x ~ g', data, ...).diff('g')") == (
        "write confide table 'x ~ g' -o FILE.json, and .diff('g') of it in Python"
    )
