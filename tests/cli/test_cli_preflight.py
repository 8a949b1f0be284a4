"""What was read, shown on stderr before a charge: to the steward alone, and nothing else depends on it."""

from __future__ import annotations

import io
import os
import pty
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.cli_runner import Run, entries, good, run

from confide import Release, engine
from confide.cli import app
from confide.ledger import Ledger
from confide.ledger.storage import rows as ledger_rows
from confide.sources import preflight as looking

ASK = ("--schema", "schema.toml", "--mu", ".1", "--ledger", "ledger.db")
MEANS = ("table", "age ~ region", "survey.csv", *ASK, "--inference", "population")
HEAD = looking.HEAD
#: Words of the pane that nothing else says.
WORDS = ("steward's eyes only", "Do not publish, keep or mail", "would be reading them from", "Nothing to tell of")


def said(done: Run) -> str:
    return " ".join(done.err.split())


# every way to a charge ------------------------------------------------------------------------------------------------


CHARGING: dict[str, tuple[str, ...]] = {
    "table": MEANS,
    "test": ("test", "f_oneway", "happy ~ region", "survey.csv", *ASK),
    "describe": ("describe", "age + happy ~ region", "survey.csv", *ASK, "--inference", "population"),
    "regress": ("regress", "happy ~ age", "survey.csv", *ASK),
    "interval": ("interval", "proportion", "survey.csv", "--column", "region", *ASK),
    "publish": ("publish", "publication.toml", "survey.csv", *ASK),
    "synthesize": ("synthesize", "happy ~ age", "survey.csv", *ASK, "-o", "rows.csv"),
    "release": ("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json"),
    "bounds": ("schema", "bounds", "survey.csv", "--columns", "age", "--mu", ".1", "--ledger", "ledger.db"),
}


@pytest.mark.parametrize("name", CHARGING)
def test_every_command_that_charges_shows_it_before(planned: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("publication.toml").write_text('[analyses.a]\nmethod = "least_squares"\nformula = "happy ~ age"\n')
    looked, look = [], looking.preflight

    def watched(source: Any, columns: Any = None, **more: Any) -> Any:
        assert not [row for row in Ledger.open("ledger.db").show().rows if row.kind == "charge"]
        looked.append(tuple(columns))
        return look(source, columns, **more)

    monkeypatch.setattr(looking, "preflight", watched)
    done = good(*CHARGING[name])
    assert len(looked) == 1 and HEAD in said(done) and "records 2,000" in said(done)
    assert len(entries()) == 1 and not any(word in done.out for word in WORDS)
    assert set(looked[0]) <= {"age", "region", "happy", "children"} and "remark" not in looked[0]
    expected = {"table": {"age", "region"}, "regress": {"happy", "age"}, "bounds": {"age"}, "interval": {"region"}}
    assert set(looked[0]) == expected.get(name, set(looked[0]))


def test_local_protection_shows_it_too(survey: Path) -> None:
    good(
        *("ledger", "init", "local.db", "--dataset", "survey", "--epsilon", "9", "--delta", "1e-3"),
        *("--relation", "substitute", "--trust", "local"),
    )
    schema = Path("schema.toml").read_text().replace('on_missing = "drop"', "on_missing = 20.0", 1)
    Path("schema.toml").write_text(schema)
    words = ("survey.csv", "out.parquet", "--schema", "schema.toml", "--columns", "age", "--noise", ".9")
    done = run("local", "protect", *words, "--ledger", "local.db", "--charge-delta", "1e-4")
    assert done.code == 0, done.err
    assert HEAD in said(done) and "records 2,000" in said(done)
    assert HEAD not in said(run("local", "protect", *words, "--plan"))
    assert HEAD not in said(good("local", "protect", *words, "--unaccounted", "--force", "--no-preflight"))


def test_where_no_record_is_read_nothing_is_shown(released: Path) -> None:
    assert HEAD not in said(good("plan", "happy ~ age", "--schema", "schema.toml", "--mu", "1"))
    assert HEAD not in said(good("infer", "release.json"))
    assert HEAD not in said(good("schema", "check", "schema.toml"))


def test_simulated_noise_shows_it_and_quiet_does_not_look(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("regress", "happy ~ age", "survey.csv", "--schema", "schema.toml", "--mu", "1", "--unaccounted")
    assert HEAD in said(good(*words, "--simulate", "1"))

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("looked")

    monkeypatch.setattr(looking, "preflight", fail)
    for option in ("--no-preflight", "--quiet"):
        assert HEAD not in said(good(*MEANS, option))


def test_a_budget_that_is_too_small_looks_at_no_record(book: Path) -> None:
    done = run(*MEANS, "--mu", "3")
    assert done.code == 4 and HEAD not in said(done)


# what is told ---------------------------------------------------------------------------------------------------------


def german() -> None:
    random = np.random.default_rng(1)
    income = [f"{one:,.2f}".translate(str.maketrans(",.", ".,")) for one in random.uniform(1_000, 9_000, 3_165)]
    income[:147] = ["-99"] * 147
    Path("g.csv").write_text("\ufeffincome;age\n" + "\n".join(f"{one};48" for one in income), encoding="utf-8")
    lines = 'dataset = "survey"\nfile.delimiter = ";"\n[columns.income]\nkind = "numeric"\nlow = 0\nhigh = 90000\n'
    Path("g.toml").write_text(lines)


def test_a_german_file_is_told_before_the_charge_and_right_once_it_is_declared(book: Path) -> None:
    german()
    words = ("table", "income ~ 1", "g.csv", "--schema", "g.toml", "--mu", ".1", "--inference", "population")
    done = good(*words, "--ledger", "ledger.db")
    assert "unread: 3,018 of 3,165" in said(done) and "9.9,9 (3,018)" in said(done)
    assert 'decimal = "," and thousands = "." in [file]?' in said(done) and "below low: 147 of 3,165" in said(done)
    Path("g.toml").write_text(
        Path("g.toml")
        .read_text()
        .replace("high = 90000", 'high = 90000\nmissing = ["-99"]')
        .replace('delimiter = ";"', 'delimiter = ";"\nfile.decimal = ","\nfile.thousands = "."')
    )
    done = good(*words, "--ledger", "ledger.db", "-o", "r.json")
    assert "declared missing: -99 (147)" in said(done) and "unread" not in said(done)
    assert 4_000 < engine.infer(Release.load("r.json")).params.iloc[0] < 6_000


# at a terminal ----------------------------------------------------------------------------------------------------------


def at_terminal(typed: str, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line whose stdin and stderr are a terminal, at which this is typed."""
    ours, theirs = pty.openpty()
    out, told = io.StringIO(), list[bytes]()

    def read() -> None:
        with suppress(OSError):  # nobody writes any more
            while True:
                told.append(os.read(ours, 1 << 16))

    os.write(ours, (typed or "n\n").encode())  # before it is read, and what should not be asked is not waited for
    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(os.dup(theirs)) as stdin, os.fdopen(theirs, "w") as stderr, pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdin", stdin), ("stdout", out), ("stderr", stderr)):
            patch.setattr(sys, name, stream)
        patch.setenv("NO_COLOR", "1")
        with pytest.raises(SystemExit) as end:
            app(list(words))
    reader.join(60)
    os.close(ours)
    return int(end.value.code or 0), out.getvalue(), b"".join(told).decode()


@pytest.mark.parametrize(
    ("typed", "option", "code"),
    [("n\n", (), 8), ("\n", (), 8), ("y\n", (), 0), ("", ("--yes",), 0), ("", ("--quiet",), 0)],
)
def test_a_terminal_asks_where_anything_is_odd(book: Path, typed: str, option: tuple[str, ...], code: int) -> None:
    frame = pd.read_csv("survey.csv")
    frame["region"] = frame["region"].replace({"South": "south"})
    frame.to_csv("survey.csv", index=False)
    ended, out, told = at_terminal(typed, *MEANS, *option)
    assert ended == code and ("Go on? [y/N]" in told) == bool(typed)
    assert ("steward's eyes" in told) == (option != ("--quiet",))
    assert len(entries()) == (code == 0) and bool(out) == (code == 0)
    if code:
        assert "Nothing was charged. [stopped, exit 8]" in told


def test_a_terminal_does_not_ask_where_cells_are_empty_at_most(book: Path) -> None:
    frame = pd.read_csv("survey.csv")
    frame.loc[:50, "region"] = None
    frame.to_csv("survey.csv", index=False)
    code, _, told = at_terminal("", *MEANS)
    assert code == 0 and "[y/N]" not in told and "empty: 51 of 2,000" in " ".join(told.split())


# no leak ----------------------------------------------------------------------------------------------------------------


class Clock(datetime):
    """Time stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> Clock:
        return cls(2026, 11, 30, tzinfo=UTC)


def odd(frame: pd.DataFrame, which: str) -> str:
    """The survey as CSV, with 20 cells and a line that are missing: a release reads them alike, whatever is written there."""
    frame = frame.astype(dict.fromkeys(("age", "region"), object))
    first, second = ("17 kg", "nowhere") if which == "others" else ("1.742,81", "south")
    frame.loc[5:14, "age"], frame.loc[10:19, "region"] = first, second
    if which == "one":
        frame.loc[5, "age"] = "?"
    # a line without values, or one of another width
    return frame.to_csv(index=False) + (",,,,\n" if which != "width" else "1,2\n")


def everything(ledger: str = "ledger.db") -> dict[str, Any]:
    """All files here, the ledger as its rows."""
    found: dict[str, Any] = {
        str(path): path.read_bytes()
        for path in sorted(Path().iterdir())
        if path.suffix in (".json", ".html", ".csv", ".tex")
    }
    found.pop("survey.csv", None)
    with closing(sqlite3.connect(ledger)) as connection:
        found["ledger"] = list(connection.iterdump())
    return found


def test_nothing_but_stderr_depends_on_it(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stdout, exit code, all files and the ledger's bytes, with and without a preflight, for data that differ in what it tells."""
    monkeypatch.setattr(ledger_rows, "datetime", Clock)
    monkeypatch.setattr("confide.noise.standard.os.urandom", lambda size: bytes(range(size)))
    told: dict[tuple[str, tuple[str, ...]], Any] = {}
    seen = {}
    for data in ("base", "one", "others", "width"):
        for option in ((), ("--no-preflight",)):
            home = stage("planned")
            Path("survey.csv").write_text(odd(pd.read_csv("survey.csv"), data))
            more = ("--report", "report.html", "--csv", "table.csv")
            done = [
                run(*MEANS, "-o", "means.json", *more, *option),
                run("release", "plan.json", "survey.csv", "--ledger", "ledger.db", "-o", "release.json", *option),
                run("regress", "happy ~ age", "survey.csv", *ASK, "--json", *option),
                run(*MEANS, "--mu", "9", *option),
            ]
            assert [one.code for one in done] == [0, 0, 0, 4]
            told[data, option] = [(one.code, one.out) for one in done], everything()
            seen[data, option] = [one.err for one in done]
            assert not any(word in str(told[data, option]) for word in WORDS)
            home.rename(home.with_name(f"{data}{len(option)}"))
    first, *others = told.values()
    for other in others:
        assert other == first
    # without it, messages are equal too; with it, the pane alone differs
    for which in ("one", "others", "width"):
        assert seen["base", ("--no-preflight",)] == seen[which, ("--no-preflight",)]
        assert seen["base", ()][0] != seen[which, ()][0] and seen["base", ()][3] == seen[which, ()][3]


def test_a_refusal_says_the_same_with_and_without(book: Path) -> None:
    errors = []
    for option in ((), ("--no-preflight",)):
        for words in (("age ~ nowhere",), ("age ~ region", "--mu", "9")):
            done = run("table", *words[:1], "survey.csv", *ASK, *words[1:], "--inference", "population", *option)
            errors.append((done.code, done.out, done.err.replace(" --no-preflight", "")))
    assert errors[:2] == errors[2:] and entries() == []


def test_its_words_and_numbers_are_in_no_file(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker in every pane is in no file, ledger, log or page."""
    monkeypatch.setattr(looking, "HEAD", "PANEMARKER " + looking.HEAD)
    Path("survey.csv").write_text(odd(pd.read_csv("survey.csv"), "width"))
    done = good(*MEANS, "-o", "r.json", "--report", "r.html", "--csv", "r.csv", "--plot", "r.svg")
    assert "PANEMARKER" in done.err
    assert "PANEMARKER" in good("schema", "check", "schema.toml", "--data", "survey.csv").err
    good("verify", "r.json", "--ledger", "ledger.db")
    for path in (one for one in Path().rglob("*") if one.is_file()):
        assert b"PANEMARKER" not in path.read_bytes(), path
    assert Ledger.open("ledger.db", dataset="survey").show().rows


def test_a_damaged_file_is_told_before_the_charge(book: Path) -> None:
    path = Path("survey.parquet")
    words = ("table", "age ~ region", path.name, *ASK, "--inference", "population")
    content = bytearray(path.read_bytes())
    content[4:2_000] = bytes(1_996)
    path.write_bytes(content)
    done = run(*words)
    assert done.code == 3 and "could not be read" in said(done) and "Nothing was charged" in said(done)
    assert entries() == []


def test_an_unexpected_error_in_it_is_withheld(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OverflowError("SENTINEL")

    monkeypatch.setattr(looking, "preflight", fail)
    done = run(*MEANS)
    assert done.code == 2 and "OverflowError" not in done.err and entries() == []


# schema check -------------------------------------------------------------------------------------------------------------


def misspelt(count: int) -> pd.DataFrame:
    """The survey with `count` regions that match no level, and three that are empty."""
    frame = pd.read_csv("survey.csv")
    frame.loc[: count - 1, "region"] = "south"
    frame.loc[count : count + 2, "region"] = None
    return frame


@pytest.mark.parametrize("name", ["misspelt.csv", "misspelt.parquet", "categories.parquet"])
def test_check_counts_labels_that_are_no_levels_for_the_steward_alone(survey: Path, name: str) -> None:
    frame = misspelt(11)
    if name.endswith("csv"):
        frame.to_csv(name, index=False)
    else:
        frame.assign(region=frame["region"].astype("category")).to_parquet(name, index=False)
    done = good("schema", "check", "schema.toml", "--data", name)
    assert "region undeclared labels: 11 of 2,000; they count as missing (the records are excluded)" in said(done)
    assert "empty: 3 of 2,000" in said(done) and HEAD in said(done)
    assert "11" not in done.out and not any(word in done.out for word in WORDS)
    assert "undeclared" not in said(good("schema", "check", "schema.toml", "--data", "survey.csv"))


def test_the_counts_are_in_no_output_that_may_be_published(survey: Path) -> None:
    """The same document, exit code and files for data that differ in the counts alone."""
    told = {}
    for count in (0, 99):
        misspelt(count).to_csv("data.csv", index=False)
        here = set(Path().iterdir())
        done = good("schema", "check", "schema.toml", "--data", "data.csv", "--json")
        assert set(Path().iterdir()) == here
        told[count] = done
    assert told[0].json == told[99].json and told[0].out == told[99].out
    assert told[0].err != told[99].err
    assert good("schema", "check", "schema.toml").err == ""


@pytest.mark.parametrize(
    ("count", "options", "code"), [(0, (), 0), (20, (), 0), (21, (), 1), (21, ("--tolerate", ".02"), 0)]
)
def test_strict_has_an_exit_code_that_is_private(survey: Path, count: int, options: tuple[str, ...], code: int) -> None:
    misspelt(count).to_csv("data.csv", index=False)
    done = run("schema", "check", "schema.toml", "--data", "data.csv", "--strict", *options)
    assert done.code == code
    assert ("The exit code 1 is private" in said(done)) == bool(code)
    told = run("schema", "check", "schema.toml", "--data", "data.csv", "--strict", *options, "--json")
    assert told.code == code and set(told.json) == set(good("schema", "check", "schema.toml", "--json").json)


def test_strict_and_id_need_records_and_tolerate_a_share(survey: Path) -> None:
    for words in (("--strict",), ("--id", "pid"), ("--data", "survey.csv", "--tolerate", "5")):
        assert run("schema", "check", "schema.toml", *words).code == 2
    assert run("schema", "check", "schema.toml", "--data", "survey.csv", "--id", "pid").code == 3


def test_an_id_of_which_each_row_should_have_its_own(survey: Path) -> None:
    frame = pd.read_csv("survey.csv")
    frame["pid"] = np.arange(len(frame)) // 2
    frame.loc[0, "pid"] = None
    frame.to_csv("ids.csv", index=False)
    told = said(good("schema", "check", "schema.toml", "--data", "ids.csv", "--id", "pid"))
    assert "ids in pid with several rows: 999" in told and "rows without a usable id in pid: 1" in told
    assert "pid" not in said(good("schema", "check", "schema.toml", "--data", "ids.csv"))


def test_a_code_within_the_bounds_is_told_to_everyone(survey: Path) -> None:
    lines = 'missing = [-99]\n[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 110\nmissing = [99, {from = 105, to = 200}, "k.A."]'
    Path("c.toml").write_text(f'{lines}\n[columns.x]\nkind = "numeric"\nlow = 0\nhigh = 9\n')
    done = good("schema", "check", "c.toml")
    assert "99 lies within the bounds of age: cells of 99 are read as missing" in " ".join(done.out.split())
    notes = " ".join(found := good("schema", "check", "c.toml", "--json").json["notes"])
    assert len(found) == 2 and "105 to 200 lies within" in notes and "of x" not in notes and "k.A." not in notes
