"""`confide schema draft FILE --ask`: the public facts, asked one by one at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import confide as cf
from confide.cli.interview import Answers, Interview
from confide.errors import SchemaError
from confide.schema.draft import fields_of
from confide.schema.layout import FileLayout
from confide.schema.typed import typed_bounds, typed_levels

CSV = "pid;Einkommen;sex;age;town\n1;1.742,81;1;30;K\n2;900,00;2;-9;B\n"
ANSWERS = [
    "pid",  # who is protected
    "",  # the dataset: as the file is called
    "1.234,5",
    "-99, k.A.",
    "n", "p", "",  # Einkommen: a number, its range found, codes as above
    "l", "1=male, 2=female", "", "codebook",
    "w", "90-18", "18-90", "-9 to -1", "",  # age: bounds the wrong way round are asked for again
    "s",  # town
]  # fmt: skip


def _interview(path: Path, given: Sequence[str], folder: Path) -> tuple[Interview, list[str]]:
    data = folder / "persons.csv"
    data.write_text(CSV)
    fields, layout = fields_of(data, FileLayout())
    answers = Answers.read(path) if path.exists() else Answers.begun(fields, layout)
    said: list[str] = []
    lines = iter(given)

    def reads() -> str:
        line = next(lines, None)
        if line is None:
            raise KeyboardInterrupt
        return line

    return Interview(answers, path, {one.name: one for one in fields}, "persons", True, reads, said.append), said


def test_answers_make_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    made, said = _interview(path, ANSWERS, tmp_path)
    assert made.run() == ["Einkommen"]
    text = path.read_text()
    assert 'low = "?"' in text and "town" not in text and "[columns.pid]" not in text
    schema = made.answers.schema()
    assert schema.unit == cf.Unit("pid") and schema.dataset == "persons"
    assert schema.file.to_settings() == {"delimiter": ";", "decimal": ",", "thousands": "."}
    assert schema["sex"].codes == ("1", "2") and schema["sex"].missing == ("-99", "k.A.")
    assert (schema["age"].low, schema["age"].high, schema["age"].missing) == (18, 90, ((-9.0, -1.0),))
    assert schema["Einkommen"].declared == (False, False) and schema["age"].provenance.text == "codebook"
    # nothing of the records is shown or suggested
    assert not any(cell in "".join(said) for cell in ("1.742", "900,00", "K", "30"))


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
    begins = [0, 1, 2, 3, 4, 7, 11, 16]
    left = ANSWERS[max(begin for begin in begins if begin <= stop) :]
    # a range that waits to be found is asked about again, in its place
    return left if stop < 7 else [*ANSWERS[4:7], *left]


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


def test_typed_facts_are_refused() -> None:
    for text in ("18", "a-b", "18-90-3"):
        with pytest.raises(SchemaError):
            typed_bounds(text)
    with pytest.raises(SchemaError):
        typed_levels("1=male, female")


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
    given = ["r", "", "", "", "n", "p", "", "l", "1=male, 2=female", "", "codebook", "ledger.db", "0.5", "y"]
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
