"""`confide interval` and `confide schema bounds`: one parameter in one go, and bounds that nobody knows."""

from __future__ import annotations

import re

import pytest
from tests.cli.cli_runner import entries, good, run
from tests.messages import refuses

from confide.ask import bounds
from confide.cli.options import fields_of
from confide.cli.session import Refused
from confide.core import ResultOptions

_ASK = ("--schema", "schema.toml", "--unaccounted")


@pytest.mark.parametrize(
    ("verb", "column", "asked"),
    [
        ("mean", "happy", ("--mu", "1", "--relation", "substitute")),
        ("mean", "children", ("--epsilon", "1", "--relation", "substitute", "--kind", "poisson")),
        ("mean", "age", ("--mu", "1", "--relation", "add-remove")),
    ],
)
def test_an_interval_in_one_go(survey, verb, column, asked):
    shown = good("interval", verb, "survey.csv", "--column", column, *_ASK, *asked, "--json").json
    assert shown["result"]["status"] in ("valid", "imprecise"), shown["result"]["reason"]


def test_what_is_no_interval(survey):
    assert (
        "there is no interval 'median'"
        in run("interval", "median", "survey.csv", "--column", "age", *_ASK, "--mu", "1").err
    )
    assert run("interval", "mean", "survey.csv", "--column", "age", "--schema", "schema.toml", "--mu", "1").code == 2


@pytest.mark.parametrize(
    ("verb", "column", "asked", "told"),
    [
        ("variance", "age", "--mu", "confide table 'age ~ 1' --inference population"),
        ("slope", "happy ~ age", "--mu", "confide regress 'happy ~ age'"),
        (
            "mean",
            "age",
            "--epsilon",
            "Try      --mu ... or --epsilon ... --delta ..., on a ledger with this kind of budget",
        ),
    ],
)
def test_what_is_not_answered_under_add_remove_names_commands(survey, verb, column, asked, told):
    done = run("interval", verb, "survey.csv", "--column", column, *_ASK, asked, "1", "--relation", "add-remove")
    assert done.code == 3 and told in done.err
    assert re.search(r"\b[Ww]ith --relation substitute in the guarantee and the ledger", done.err)
    assert not re.search(r"cf\.|relation=", done.err)


def test_what_a_missing_value_counts_as_is_told(survey):
    text = survey.joinpath("schema.toml").read_text()
    survey.joinpath("dropping.toml").write_text(re.sub(r"on_missing = .*", 'on_missing = "drop"', text))
    asked = ("--schema", "dropping.toml", "--unaccounted", "--epsilon", "1", "--relation", "substitute")
    done = run("interval", "mean", "survey.csv", "--column", "age", *asked)
    assert done.code == 0 and re.search(r"Missing +a missing age counts as the midpoint of its bounds", done.out)
    assert not re.search(r"cf\.|relation=", done.err)


def test_percentiles_are_no_quantiles():
    asked = fields_of(ResultOptions, names=("quantiles",))
    with refuses(Refused):
        asked(quantiles="10,50").given()
    assert asked(quantiles=".1,.5").given() == {"quantiles": (0.1, 0.5)}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("proportion", "--column", "children", "--level", "2.5"), "Try      --level 8"),
        (("proportion", "--column", "age"), 'declare it as kind = "categorical", levels = [...]'),
        (
            ("mean", "--column", "age", "--kind", "poisson"),
            'kind = "integer", low = 0, high = ..., on_missing = 0',
        ),
        (
            ("mean", "--column", "age", "--prior", "beta(1, 1)"),
            "Try      --prior uniform",
        ),
    ],
)
def test_what_an_interval_lacks_is_told_as_an_option_or_a_line_of_the_schema(survey, asked, told):
    verb, *rest = asked
    done = run("interval", verb, "survey.csv", *rest, *_ASK, "--epsilon", "1", "--relation", "substitute")
    assert done.code == 3 and told in done.err, done.err
    assert "cf." not in done.err


def test_bounds_that_nobody_knows(survey):
    shown = good("schema", "bounds", "survey.csv", "--columns", "age", "--mu", "1", "--unaccounted", "--json").json
    own = shown["ranges"]["age"]
    assert own["low"] < own["high"] and "provenance" in shown["toml"]


def test_bounds_are_charged_as_any_release(book, monkeypatch):
    asked = ("schema", "bounds", "survey.csv", "--columns", "age", "--mu", ".5", "--ledger", "ledger.db")
    assert "-o ledger.db is the ledger as well" in run(*asked, "-o", "ledger.db", "--force").err

    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr(bounds.engine, "infer", fail)
    done = run(*asked)
    assert done.code == 6 and "a charge already made stays in the ledger" in done.err
    assert len(entries()) == 1
    assert "protects NOBODY" in run(*asked[:-2], "--unaccounted", "--simulate", "1").err
