"""`confide ledger init | show | verify | amend` and `confide verify`."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from cli_runner import entries, good, run

from confide import Release
from confide.ledger import Ledger
from confide.protocol import Noisy


def test_init_says_what_a_bare_budget_means(survey):
    out = good("ledger", "init", "book.db", "--dataset", "survey", "--mu", "2", "--note", "decision [7]").out
    for text in ("add-remove", "record", "central", "default", "GDP(mu=2"):
        assert text in out
    assert (
        "default"
        not in good("ledger", "init", "book.db", "--dataset", "b", "--rho", "1", "--relation", "substitute").out
    )
    assert Ledger.open("book.db", dataset="b").relation == "substitute"
    assert "decision [7]" in good("ledger", "show", "book.db", "--dataset", "survey").out


def test_init_never_overwrites(book):
    before = Ledger.open("book.db").show()
    done = run("ledger", "init", "book.db", "--dataset", "survey", "--mu", "5")
    assert done.code == 3
    assert Ledger.open("book.db").show() == before
    Path("letter.txt").write_text("not a book")
    assert run("ledger", "init", "letter.txt", "--dataset", "survey", "--mu", "5").code == 3
    assert Path("letter.txt").read_text() == "not a book"


def test_show_is_a_statement_of_account(released):
    good("ledger", "init", "book.db", "--dataset", "other", "--epsilon", "1", "--delta", "1e-6")
    out = good("ledger", "show", "book.db").out
    for text in (
        "dataset     survey",
        "dataset     other",
        "ssp2 1",
        "released",
        "GDP(mu=1, add-remove)",
        "unfinished",
    ):
        assert text in out
    assert "other" not in good("ledger", "show", "book.db", "--dataset", "survey").out
    survey_state = good("ledger", "show", "book.db", "--dataset", "survey", "--json").json["datasets"][0]
    assert [row["kind"] for row in survey_state["rows"]] == ["open", "charge", "receipt"]
    assert survey_state["units"]["spent_amount"] == 1 << 40
    # whole digests and long notes: nothing is cut when the output is piped
    assert survey_state["rows"][2]["note"] in out


def test_amend_gives_a_new_budget_with_its_reason(released):
    out = good("ledger", "amend", "book.db", "--dataset", "survey", "--mu", "3", "--reason", "board [12]").out
    assert "GDP(mu=3" in out
    assert entries("amend")[0]["note"] == "board [12]"
    assert run("ledger", "amend", "book.db", "--mu", "3").code == 2
    assert run("ledger", "amend", "book.db", "--reason", "why").code == 2
    assert run("ledger", "amend", "book.db", "--rho", "3", "--reason", "why").code == 3
    assert run("ledger", "amend", "book.db", "--mu", "3", "--reason", " ").code == 3


def test_verify_exits_1_on_a_changed_book(released):
    assert "ok" in good("ledger", "verify", "book.db").out
    assert good("ledger", "verify", "book.db", "--json").json["ok"] is True
    good("verify", "release.json", "--ledger", "book.db")
    with sqlite3.connect("book.db") as connection:
        (table,) = (
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if "budget" in name
        )
        connection.execute(f"UPDATE {table} SET spent_amount = 0")
    connection.close()
    assert run("ledger", "verify", "book.db").code == 1
    done = run("ledger", "verify", "book.db", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert done.json["datasets"][0]["problems"]
    assert run("verify", "release.json", "--ledger", "book.db").code == 1


def test_verify_exits_1_on_a_release_that_the_book_does_not_know(released):
    assert good("verify", "release.json", "--ledger", "book.db", "--json").json["ok"] is True
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
    done = run("verify", "forged.json", "--ledger", "book.db", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert "FAILED" in run("verify", "forged.json", "--ledger", "book.db").out


def test_verify_a_simulated_release_fails(planned):
    good("release", "plan.json", "survey.csv", "--no-ledger", "--simulate", "1", "-o", "simulated.json")
    assert "simulated" in run("verify", "simulated.json", "--ledger", "book.db").out
    assert run("verify", "simulated.json", "--ledger", "book.db").code == 1


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
    assert run(*command, "book.db", "--dataset", "nobody").code == 3
    good("ledger", "init", "book.db", "--dataset", "second", "--mu", "1")
    if "amend" in command:
        assert "second" in run(*command, "book.db").err


def test_an_older_book_put_back_does_not_know_the_release(planned):
    good("ledger", "verify", "book.db")
    Ledger.open("book.db").backup("old.db")
    good("release", "plan.json", "survey.csv", "--ledger", "book.db", "-o", "release.json")
    shutil.copy("old.db", "put_back.db")
    assert run("verify", "release.json", "--ledger", "put_back.db").code == 1


def test_states_are_plain_json(released):
    state = json.loads(good("ledger", "show", "book.db", "--json").out)["datasets"][0]
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
    assert "counted as mu = 1.232" in done.out
    assert "left after: nothing: this release takes all that is left" in done.out
    assert "--epsilon ..." in done.err
    assert "the whole budget (counted as" in good("ledger", "show", "pair.db").out
    refused = run("release", "q.json", "survey.csv", "--ledger", "pair.db", "-o", "again.json")
    assert refused.code == 4
    assert "will ask to charge" in refused.out
    told = run("infer", "q-release.json", "--alpha", "0.1").err
    assert "fixed in the plan at 0.95" in told
    assert "--set level=0.9" in told
