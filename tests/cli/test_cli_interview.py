"""`confide schema draft FILE --ask`: the public facts, asked one by one at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import confide as cf
from confide.ask.typed import (
    stated_levels,
    typed_bounds,
    typed_codes,
    typed_day,
    typed_format,
    typed_levels,
    typed_marks,
)
from confide.cli.interview import Answers, Asks, Interview, seen
from confide.errors import SchemaError
from confide.schema.draft import fields_of
from confide.schema.layout import FileLayout

CSV = "pid;Einkommen;sex;age;town;geboren\n1;1.742,81;1;30;K;1.3.1970\n2;900,00;2;-9;B;2.3.1971\n"
ANSWERS = [
    "pid",  # who is protected
    "",  # the dataset: as the file is called
    "1.234,5",
    "Summe, Gesamt",  # lines that are no records
    "-99, k.A.",
    "n", "p", "",  # Einkommen: a number, its range found, codes as above
    "l", "1=male, 2=female", "", "codebook",
    "w", "90-18", "18-90", "-9 to -1", "",  # age: bounds the wrong way round are asked for again
    "Summe", "skip",  # town: a word that is no kind is asked about again
    "d", "TT.MM.JJJJ", "1.1.1900 to 31.12.2006", "dd.mm", "31.12.1950", "", "", "1.7.2024",  # a date, and an age of it
]  # fmt: skip


def _interview(path: Path, given: Sequence[str], folder: Path) -> tuple[Interview, list[str]]:
    data = folder / "persons.csv"
    data.write_text(CSV)
    fields, layout = fields_of(data, FileLayout())
    answers = Answers.read(path) if path.exists() else Answers.begun(fields, layout)
    asks, said = _asks(given)
    return Interview(answers, path, {one.name: one for one in fields}, "persons", "text", asks), said


def _asks(given: Sequence[str]) -> tuple[Asks, list[str]]:
    """Someone who gives these answers and then stops, and what was said."""
    said: list[str] = []
    lines = iter(given)

    def reads() -> str:
        line = next(lines, None)
        if line is None:
            raise KeyboardInterrupt
        return line

    return Asks(reads, said.append), said


def test_answers_make_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    made, said = _interview(path, ANSWERS, tmp_path)
    assert made.run() == ["Einkommen"]
    text = path.read_text()
    assert 'low = "?"' in text and "town" not in text and "[columns.pid]" not in text
    schema = made.answers.schema()
    assert schema.unit == cf.Unit("pid") and schema.dataset == "persons"
    assert schema.file.to_settings() == {"delimiter": ";", "decimal": ",", "thousands": "."} | {
        "not_records": ["Summe", "Gesamt"]
    }
    assert schema["sex"].codes == ("1", "2") and schema["sex"].missing == ("-99", "k.A.")
    assert (schema["age"].low, schema["age"].high, schema["age"].missing) == (18, 90, ((-9.0, -1.0),))
    assert schema["Einkommen"].declared == (False, False) and schema["age"].provenance.text == "codebook"
    born = schema["geboren"]
    assert isinstance(born, cf.Date) and born.formats == ("%d.%m.%Y",) and born.said(born.high) == "2006-12-31"
    assert cf.Schema.from_toml(text.replace('low = "?"\nhigh = "?"', ""))["age_of_geboren"].kind == "integer"
    # nothing of the records is shown or suggested
    assert not any(cell in "".join(said) for cell in ("1.742", "900,00", "1970", "30"))


@pytest.mark.parametrize("stop", range(len(ANSWERS)))
def test_it_goes_on_from_each_answer(stop: int, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    with pytest.raises(KeyboardInterrupt):
        _interview(path, ANSWERS[:stop], tmp_path)[0].run()
    before = path.read_text() if path.exists() else ""
    rest = _rest(stop)
    made, _ = _interview(path, rest, tmp_path)
    made.run()
    whole = tmp_path / "whole.toml"
    _interview(whole, ANSWERS, tmp_path)[0].run()
    assert path.read_text() == whole.read_text(), before


def _rest(stop: int) -> list[str]:
    """What is left to answer: from the beginning of what was being asked."""
    begins = [0, 1, 2, 3, 4, 5, 8, 12, 17, 19, 27]
    left = ANSWERS[max(begin for begin in begins if begin <= stop) :]
    # a range that waits to be found is asked about again, in its place
    return left if stop < 8 else [*ANSWERS[5:8], *left]


def test_a_step_back_changes_an_answer(tmp_path: Path) -> None:
    """Each answer is taken back once and given again: the same schema. Nothing lies before the first question."""
    whole, path = tmp_path / "whole.toml", tmp_path / "schema.toml"
    _interview(whole, ANSWERS, tmp_path)[0].run()
    refused = ("90-18", "Summe", "TT.MM.JJJJ", "dd.mm")
    given = [line for answer in ANSWERS for line in ([answer] if answer in refused else [answer, "<", answer])]
    made, said = _interview(path, given[:-2] + given[-1:], tmp_path)
    assert made.run() == ["Einkommen"] and path.read_text() == whole.read_text()
    assert sum("goes back one question" in line for line in said) == 1
    made, _ = _interview(tmp_path / "third.toml", ["<", "r", "<", "pid", "", "<", "other"], tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert made.answers.facts["dataset"] == "other" and made.answers.facts["unit"] == {"column": "pid"}


def test_columns_without_levels_or_days_are_left_open(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    made, _ = _interview(path, ["pid", "", "1234.5", "", "", "s", "l", "", "", "s", "s", "d", "", "", ""], tmp_path)
    assert made.run() == [] and made.answers.left == ["sex", "geboren"]
    assert 'levels = ["?"]' in path.read_text() and "years_between" not in path.read_text()
    with pytest.raises(SchemaError, match="at least one"):
        made.answers.schema()


def test_the_header_is_looked_at_first(tmp_path: Path) -> None:
    data = tmp_path / "persons.csv"
    data.write_text("Befragung, Stand 1.7.2024\n" + CSV.replace("town", "größe"), encoding="cp1252")
    asks, said = _asks(["klingon", "cp1252", "zwei", "1", "y"])
    fields, layout = seen(data, FileLayout(), "text", asks)
    assert [one.name for one in fields] == ["pid", "Einkommen", "sex", "age", "größe", "geboren"]
    assert (layout.skip, layout.encoding, layout.delimiter) == (1, "cp1252", ";")
    assert any("klingon" in line for line in said) and any("Columns: pid, Einkommen" in line for line in said)
    asks, _ = _asks(["", ""])
    with pytest.raises(SchemaError):  # what is wrong ends it where nothing else is said
        seen(data, FileLayout(), "text", asks)


def test_what_is_no_answer_is_asked_again(tmp_path: Path) -> None:
    made, said = _interview(tmp_path / "s.toml", ["nobody", "pid", "", "12", "1234,5", ""], tmp_path)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert any("'nobody' is not a column" in line for line in said)
    assert any("is not 1234.5" in line for line in said)


def test_a_file_without_questions_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(cf.Schema({"x": cf.Numeric(0, 1)}, dataset="d").to_toml())
    with pytest.raises(SchemaError, match="has no"):
        Answers.read(path)
    path.write_text("income\n3")
    with pytest.raises(SchemaError, match="holds no answers"):
        Answers.read(path)


@pytest.mark.parametrize(
    ("read", "text", "meant"),
    [
        (typed_levels, '1=no, 2="yes, sometimes", "a=b"="say ""x"""', [("no", "yes, sometimes", 'say "x"'), ("1", "2", "a=b")]),
        (typed_levels, "male, female", [("male", "female")]),
        (typed_codes, "\u22129 to \u22121, 90-99, 90\u201399, -99, 31.12.9999, 9999-12-31", None),
        (typed_marks, "1\u2009234,5", {"decimal": ",", "thousands": " "}),
        (typed_format, "12/31/1950", {"format": "%m/%d/%Y"}),
        (typed_format, "31-12-50 from 1930", {"format": "%d-%m-%y", "century": 1930}),
    ],
)  # fmt: skip
def test_facts_are_typed_in_several_notations(read: Any, text: str, meant: Any) -> None:
    found = read(text)
    if read is typed_levels:
        assert list(map(tuple, found.values())) == meant
    elif read is typed_codes:
        ranges = [{"from": -9, "to": -1}, {"from": 90, "to": 99}, {"from": 90, "to": 99}]
        assert found == [*ranges, "-99", "31.12.9999", "9999-12-31"]
    else:
        assert found == meant


def test_labels_of_a_file_are_offered_whole() -> None:
    """What is offered reads back as all labels but those of codes of missing values."""
    labels = {"1": "no", "2": "yes, sometimes", "3": "a=b", "4": ' "x" ', "9": "none"}
    found = typed_levels(stated_levels(labels, ("9",)))
    assert dict(zip(found["codes"], found["levels"], strict=True)) == {key: labels[key] for key in "1234"}


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (typed_bounds, ["18", "a-b", "18-90-3", "90-18", "0-20.000", "1.500 to 2.000"]),
        (partial(typed_bounds, kind="date"), ["31.2.1900 to 1.1.2000", "1.1.2000 to 1.1.1900", "1900 to 2000"]),
        (typed_levels, ["1=male, female", "a=b=c", '"open']),
        (typed_marks, ["1,234,5", "12", "1_234.5"]),
        (typed_format, ["TT.MM.JJJJ", "5.6.1950", "31.12.50", "31.12.1950 from 1930", "%d.%m", "31121950", ""]),
        (typed_day, ["1.13.2024", "2024", "tomorrow"]),
    ],
)
def test_typed_facts_are_refused(read: Any, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(SchemaError) as told:
            read(text)
        assert "format=" not in str(told.value)


def test_without_a_terminal_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "persons.csv").write_text(CSV)
    command = [sys.executable, "-m", "confide", "schema", "draft", "persons.csv", "--ask", "-o", "s.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2 and "terminal" in done.stderr and not (tmp_path / "s.toml").exists()


def test_at_a_terminal(tmp_path: Path) -> None:
    """The whole command, with a ledger that is charged once for the ranges."""
    people = cf.Schema({"income": cf.Numeric(0, 9000), "sex": cf.Categorical(["1", "2"])}).sample(3000, seed=1)
    people.to_csv(tmp_path / "persons.csv", index=False)
    cf.Ledger.create(tmp_path / "ledger.db", dataset="persons", budget=cf.GDP(1.0))
    given = ["", "", "r", "", "", "", "", "n", "p", "", "l", "1=male, 2=female", "", "codebook"]
    given += ["other.db", "ledger.db", "0.5", "y"]
    screen = _at_a_terminal(tmp_path, given)
    schema = cf.Schema.from_toml(tmp_path / "schema.toml")
    assert schema["income"].provenance.kind == "private" and 8000 < schema["income"].high < 20000, screen
    assert len([row for row in cf.Ledger.open(tmp_path / "ledger.db").show().rows if row.kind == "charge"]) == 1


def _at_a_terminal(folder: Path, given: Sequence[str]) -> str:
    main, other = pty.openpty()
    command = [sys.executable, "-m", "confide", "schema", "draft", "persons.csv", "--ask", "-o", "schema.toml"]
    with subprocess.Popen(command, cwd=folder, stdin=other, stdout=other, stderr=other, close_fds=True) as running:
        os.close(other)
        os.write(main, ("\n".join(given) + "\n").encode())
        seen = b""
        try:
            while part := os.read(main, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
        os.close(main)
        assert running.wait(60) == 0, seen.decode()
    return seen.decode()
