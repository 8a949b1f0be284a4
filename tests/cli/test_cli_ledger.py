"""`confide ledger init | show | verify | amend` and `confide verify`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.cli.cli_runner import entries, good, run

from confide import Release
from confide.core import Noisy
from confide.ledger import Ledger
from confide.schema import Numeric, Schema, Unit


def test_init_says_what_a_bare_budget_means(survey):
    out = good("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "2", "--note", "decision [7]").out
    for text in ("add-remove", "record", "central", "default", "Gaussian DP, mu = 2", "at most 85% after"):
        assert text in out
    assert (
        "default"
        not in good("ledger", "init", "ledger.db", "--dataset", "b", "--rho", "1", "--relation", "substitute").out
    )
    assert Ledger.open("ledger.db", dataset="b").relation == "substitute"
    assert "decision [7]" in good("ledger", "show", "ledger.db", "--dataset", "survey").out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--mu 1 --unit pid", "not what one pid with all its rows may lose"),
        ("--mu 1 --unit house --rows-per-unit 4", "not what one house of at most 4 row(s)"),
        ("--epsilon 1 --delta 1e-6", "not in ApproxDP"),
        ("--mu 1 --relation substitute", "not relation substitute"),
        ("--mu 1 --trust local --unit attribute --relation substitute", "not trust local"),
    ],
)
def test_a_budget_on_other_terms_is_refused_with_a_command_that_opens_it(book, asked, said):
    """The command of the message is run as it stands, and opens what was asked for."""
    done = run("ledger", "init", "ledger.db", "--dataset", "survey", *asked.split())
    assert done.code == 3 and said in done.err and "amend" not in done.err
    command = re.search(r"in a ledger of its own: confide (.*) \(two ledgers", " ".join(done.err.split()))[1]
    good(*shlex.split(command))
    place = shlex.split(command)[2]
    opened, own = Ledger.open(place), Ledger.open("ledger.db")
    assert opened.dataset == "survey" and Path(place).parent == Path.cwd()
    terms = [(one.unit, one.rows_per_unit, one.unit_key is None, str(one.budget), one.trust) for one in (opened, own)]
    assert terms[0] != terms[1]
    for words in (["--unit", opened.unit], ["--trust", opened.trust], ["--relation", opened.relation]):
        assert words[0] not in asked or " ".join(words) in asked


def test_a_budget_on_the_same_terms_is_amended(book):
    done = run("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "5")
    assert done.code == 3 and "confide ledger amend ledger.db --dataset survey --mu" in " ".join(done.err.split())


def test_init_never_overwrites(book):
    before = Ledger.open("ledger.db").show()
    done = run("ledger", "init", "ledger.db", "--dataset", "survey", "--mu", "5")
    assert done.code == 3
    assert Ledger.open("ledger.db").show() == before
    Path("letter.txt").write_text("not a book")
    assert run("ledger", "init", "letter.txt", "--dataset", "survey", "--mu", "5").code == 3
    assert Path("letter.txt").read_text() == "not a book"


def test_show_is_a_statement_of_account(released):
    good("ledger", "init", "ledger.db", "--dataset", "other", "--epsilon", "1", "--delta", "1e-6")
    out = good("ledger", "show", "ledger.db").out
    for text in (
        "Dataset 'survey': 25.0% of the budget used, 75.0% left",
        "Dataset 'other': 0.0% of the budget used, 100.0% left",
        "Linear regression of happy on age,",
        "25.0%",
        "without release: none",
    ):
        assert text in out
    assert max(map(len, out.splitlines())) <= 80
    assert "other" not in good("ledger", "show", "ledger.db", "--dataset", "survey").out
    survey_state = good("ledger", "show", "ledger.db", "--dataset", "survey", "--json").json["datasets"][0]
    assert [row["kind"] for row in survey_state["rows"]] == ["open", "charge", "receipt"]
    assert survey_state["units"]["spent_amount"] == 1 << 40
    assert (
        survey_state["rows"][1]["title"].startswith("Linear regression")
        and survey_state["rows"][1]["release_sha256"][:8] in out
    )
    whole = good("ledger", "show", "ledger.db", "--verbose", "--utc").out
    assert survey_state["rows"][2]["note"] in " ".join(whole.split()) and survey_state["tip"] in whole


def test_amend_gives_a_new_budget_with_its_reason(released):
    out = good("ledger", "amend", "ledger.db", "--dataset", "survey", "--mu", "3", "--reason", "board [12]").out
    assert "11.1% of the budget used" in out and "mu = 3" in out
    assert entries("amend")[0]["note"] == "board [12]"
    assert run("ledger", "amend", "ledger.db", "--mu", "3").code == 2
    assert run("ledger", "amend", "ledger.db", "--reason", "why").code == 2
    assert run("ledger", "amend", "ledger.db", "--rho", "3", "--reason", "why").code == 3
    assert run("ledger", "amend", "ledger.db", "--mu", "3", "--reason", " ").code == 3


def test_verify_exits_1_on_a_changed_book(released):
    assert "\nPASS: dataset 'survey'" in good("ledger", "verify", "ledger.db").out
    assert good("ledger", "verify", "ledger.db", "--json").json["ok"] is True
    good("verify", "release.json", "--ledger", "ledger.db")
    with sqlite3.connect("ledger.db") as connection:
        (table,) = (
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "budget" in name
        )
        connection.execute(f"UPDATE {table} SET spent_amount = 0")
    connection.close()
    assert run("ledger", "verify", "ledger.db").code == 1
    done = run("ledger", "verify", "ledger.db", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert done.json["datasets"][0]["problems"]
    assert run("verify", "release.json", "--ledger", "ledger.db").code == 1


def test_verify_exits_1_on_a_release_that_the_book_does_not_know(released):
    assert good("verify", "release.json", "--ledger", "ledger.db", "--json").json["ok"] is True
    release = Release.load("release.json")
    noisy = release["meat"]
    altered = Noisy(noisy.values + 1, noisy.step, noisy.law, noisy.scale, noisy.norm)
    forged = Release(
        release.plan,
        release.status,
        {**release.statistics, "meat": altered},
        release.guarantees,
        public=release.public,
    )
    forged.save("forged.json")
    done = run("verify", "forged.json", "--ledger", "ledger.db", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert "\nFAIL: forged.json" in run("verify", "forged.json", "--ledger", "ledger.db").out


def test_verify_a_simulated_release_fails(planned):
    good("release", "plan.json", "survey.csv", "--unaccounted", "--simulate", "1", "-o", "simulated.json")
    assert "simulated" in run("verify", "simulated.json", "--ledger", "ledger.db").out
    assert run("verify", "simulated.json", "--ledger", "ledger.db").code == 1


@pytest.mark.parametrize(
    "command",
    [
        ("ledger", "show"),
        ("ledger", "verify"),
        ("ledger", "amend", "--mu", "1", "--reason", "x"),
        ("verify", "release.json", "--ledger"),
    ],
)
def test_no_book_no_dataset(released, command):
    Path("text.db").write_text("not a book, not a book, not a book")
    for name in ("missing.db", "text.db", "."):
        done = run(*command, name)
        assert done.code in (3, 5)
        assert not Path("missing.db").exists()
    assert run(*command, "ledger.db", "--dataset", "nobody").code == 3
    good("ledger", "init", "ledger.db", "--dataset", "second", "--mu", "1")
    if "amend" in command:
        assert "second" in run(*command, "ledger.db").err


def test_an_older_book_put_back_does_not_know_the_release(planned):
    good("ledger", "verify", "ledger.db")
    Ledger.open("ledger.db").backup("old.db")
    good("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json")
    shutil.copy("old.db", "put_back.db")
    assert run("verify", "release.json", "--ledger", "put_back.db").code == 1


def test_states_are_plain_json(released):
    state = json.loads(good("ledger", "show", "ledger.db", "--json").out)["datasets"][0]
    assert state["budget"] == {
        "kind": "GDP",
        "text": "GDP(mu=2, add-remove)",
        "mu": 2.0,
        "delta": 0.0,
        "relation": "add-remove",
        "unit": "record",
        "trust": "central",
        "assumptions": [],
    }


def test_an_epsilon_delta_book_says_the_price_of_a_pure_release_before_it_is_charged(survey, tmp_path):
    good("ledger", "init", "pair.db", "--dataset", "survey", "--epsilon", "3", "--delta", "1e-6")
    good("plan", "age", "--method", "quantile", "--schema", "schema.toml", "--epsilon", "1", "-o", "q.json")
    done = good("release", "q.json", "survey.csv", "--ledger", "pair.db", "-o", "q-release.json")
    assert "Charged 33.3% of the budget of 'survey'; 66.7% is left" in done.out
    good("release", "q.json", "survey.csv", "--ledger", "pair.db", "-o", "second.json")
    good("release", "q.json", "survey.csv", "--ledger", "pair.db", "-o", "third.json")
    refused = run("release", "q.json", "survey.csv", "--ledger", "pair.db", "-o", "again.json")
    assert (refused.code, refused.out) == (4, "")
    told = run("infer", "q-release.json", "--alpha", "0.1").err
    assert "fixed in the plan at 0.95" in told
    assert "--param level=0.9" in told


def test_init_pins_and_says_what_the_budget_buys(survey):
    done = good(
        "ledger",
        "init",
        "b.db",
        "--dataset",
        "survey",
        "--epsilon",
        "8",
        "--delta",
        "1e-5",
        "--unit",
        "person",
        "--rows-per-unit",
        "2",
    )
    assert "one person with at most 2 rows added or removed" in done.out
    assert "8 releases at (1, 1e-06)" in done.out
    assert "11 at mu 0.5, or 2 at epsilon 1" in done.out
    good("plan", "happy ~ age", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "-o", "p.json")
    refused = run("release", "p.json", "survey.csv", "--ledger", "b.db", "-o", "r.json")
    assert refused.code == 3
    assert 'declare unit = "person" in the schema' in refused.err
    assert not Path("r.json").exists()


def test_a_budget_that_protects_nobody_is_warned_of(survey):
    done = good("ledger", "init", "b.db", "--dataset", "survey", "--mu", "1000")
    assert "warning: mu = 1000 protects nobody" in done.err
    assert "protects nobody" not in good("ledger", "amend", "b.db", "--mu", "2", "--reason", "was a slip").err
    assert "mu = 500 protects nobody" in good("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "500").out


def test_a_kept_head_finds_an_older_copy(released):
    kept = good("ledger", "tip", "ledger.db").out.split()[0]
    assert good("ledger", "verify", "ledger.db", "--tip", kept).code == 0
    shutil.copy("ledger.db", "older.db")
    good("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "second.json")
    later = good("ledger", "tip", "ledger.db", "--json").json["datasets"][0]["tip"]
    assert run("ledger", "verify", "older.db").code == 0
    lost = run("ledger", "verify", "older.db", "--tip", later)
    assert lost.code == 1
    assert "an older copy was put back" in lost.out


def test_a_pair_is_converted_once_and_a_release_may_ask_for_it(survey):
    good("ledger", "init", "pair.db", "--dataset", "survey", "--epsilon", "4", "--delta", "1e-5")
    good("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "0.3", "-o", "p.json")
    stays = good("release", "p.json", "survey.csv", "--ledger", "pair.db", "-o", "r1.json", "--charge-delta", "1e-6")
    assert "Charged " in stays.out
    done = good("release", "p.json", "survey.csv", "--ledger", "pair.db", "-o", "r2.json", "--convert-ledger")
    assert "Charged " in done.out
    assert "permanently" in done.err
    assert run("ledger", "convert", "pair.db").code == 3  # was converted, so there is nothing to ask
    assert good("ledger", "verify", "pair.db").code == 0
    good("ledger", "init", "g.db", "--dataset", "survey", "--epsilon", "8", "--delta", "1e-5", "--grants", "gaussian")
    assert Ledger.open("g.db").converted


def test_a_ledger_is_not_converted_unasked(survey):
    good("ledger", "init", "pair.db", "--dataset", "survey", "--epsilon", "4", "--delta", "1e-5")
    asked = run("ledger", "convert", "pair.db")
    assert (asked.code, Ledger.open("pair.db").converted) == (2, False)
    assert "4 releases at (1, 1e-06)" in asked.out
    assert "converted to Gaussian" in asked.out
    assert "--yes" in asked.err
    good("ledger", "convert", "pair.db", "--yes")
    assert Ledger.open("pair.db").converted


def test_a_plan_says_the_share_that_is_charged(survey):
    good("ledger", "init", "pair.db", "--dataset", "survey", "--epsilon", "4", "--delta", "1e-5")
    asked = ("plan", "happy ~ age", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6", "-o", "p.json")
    assert "25.0% of the budget of 'survey'; 75.0% would remain" in good(*asked, "--ledger", "pair.db").out
    done = good("release", "p.json", "survey.csv", "--ledger", "pair.db", "-o", "r.json")
    assert "Charged 25.0% of the budget of 'survey'; 75.0% is left" in done.out


def test_a_mistyped_head_is_refused_without_an_alarm(book):
    typo = run("ledger", "verify", "ledger.db", "--tip", "abc")
    assert "64 hexadecimal digits" in typo.err
    assert "cut from the end" not in typo.err + typo.out


def test_a_schema_beside_says_whose_budget_it_is_and_never_in_silence(survey):
    """Without --unit: the command of the message opens the ledger that the schema's releases need."""
    persons = Schema({"age": Numeric(15, 65)}, dataset="survey", unit=Unit("pid"))
    Path("persons.toml").write_text(persons.to_toml())
    Path("other.toml").write_text("[tool]\nname = 1\n")
    Path("schema.toml").unlink()
    init = ("ledger", "init", "b.db")
    done = run(*init, "--dataset", "Survey", "--mu", "2", "--relation", "substitute")
    assert done.code == 2 and not Path("b.db").exists()
    command = re.search(r"confide (ledger init .*) or, which", done.err)[1]
    good(*shlex.split(command))
    opened = Ledger.open("b.db")
    assert (opened.unit, opened.relation, opened.unit_key is not None) == ("pid", "substitute", True)
    good(*init, "--dataset", "another", "--mu", "1")  # a schema of other records says nothing of these
    good("ledger", "init", "rows.db", "--dataset", "survey", "--unit", "record", "--mu", "1")
    assert run("ledger", "init", "c.db", "--mu", "1").code == 2


def test_a_budget_takes_name_and_unit_from_the_schema(survey):
    declared = Schema({"age": Numeric(15, 65)}, dataset="survey", unit="person", rows_per_unit=4)
    Path("schema.toml").write_text(declared.to_toml())
    said = ("--mu", "2", "--schema", "schema.toml")
    good("ledger", "init", "b.db", *said)
    opened = Ledger.open("b.db", dataset="survey")
    assert (opened.unit, opened.rows_per_unit, opened.unit_key) == ("person", 4, None)
    assert "--unit house is not what" in run("ledger", "init", "c.db", *said, "--unit", "house").err
    assert "--unit person --rows-per-unit 4" in good("explore", "schema.toml").out
