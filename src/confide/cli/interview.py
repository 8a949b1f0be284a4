"""`confide schema draft FILE --ask`: the public facts of a schema, asked one after another at a terminal.

Questions come from metadata alone, and no answer is suggested from values. Each answer is written at once, so that one can stop and
go on later: what is left to ask is what the file still has as "?".
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import typer

from confide.ask.typed import (
    stated_levels,
    typed_bounds,
    typed_codes,
    typed_day,
    typed_format,
    typed_levels,
    typed_marks,
)
from confide.cli.engine import PaidRelease, charging, say_charged
from confide.cli.session import Refused, Session
from confide.errors import ConfideError, SchemaError, SourceError
from confide.schema import Schema
from confide.schema.draft import Field, fields_of
from confide.schema.formulas.names import quoted
from confide.schema.layout import FileLayout
from confide.schema.toml import UNFILLED, column_from_settings, key, text_of

_KINDS = {"s": "", "n": "numeric", "w": "integer", "d": "date", "l": "categorical"}
_WORDS = {"skip": "s", "number": "n", "whole number": "w", "date": "d", "labels": "l"}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()} | {"boolean": "w", UNFILLED: ""}
# Names of columns that tell persons or lines apart, which a schema leaves out.
_ID = re.compile("(?i)lfd.*|(.*[^a-z])?(p?id|nr|nummer|lfdnr)")
_OPENING = """\
Answer from public knowledge: a codebook, a law, an answer scale. Bounds and levels
that are looked up in the data are not private, because they tell something about
single records. Enter keeps what stands in brackets, and < goes back one question.
Ctrl+C stops, and the same command goes on from there."""


@dataclass
class Answers:
    """The schema so far, as its file has it."""

    facts: dict[str, Any]
    file: dict[str, Any]
    columns: dict[str, dict[str, Any]]
    derive: dict[str, Any] = field(default_factory=dict)
    source: str = ""

    @classmethod
    def begun(cls, fields: Sequence[Field], layout: FileLayout) -> Answers:
        """From metadata: every kind that is not known is left to ask."""
        columns = {own.name: {"kind": UNFILLED} for own in fields if own.kind}
        return cls({"dataset": UNFILLED, "unit": UNFILLED}, layout.to_settings(), columns)

    @classmethod
    def read(cls, path: Path) -> Answers:
        """What was answered before."""
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            columns = {str(name): dict(table) for name, table in data.pop("columns").items()}
            file, derive = dict(data.pop("file", {})), dict(data.pop("derive", {}))
            told = [table["provenance"]["text"] for table in columns.values() if "provenance" in table]
            found = cls(data, file, columns, derive, told[-1] if told else "")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise SchemaError(f"{str(path)!r} holds no answers to go on from", "give another -o FILE") from None
        if found.done:
            raise SchemaError(f"{str(path)!r} has no ? left to ask about", "edit it by hand, or give another -o FILE")
        return found

    @property
    def left(self) -> list[str]:
        """Columns that are left to ask about."""
        return [name for name, table in self.columns.items() if _open(table)]

    @property
    def done(self) -> bool:
        return not self.left and UNFILLED not in self.facts.values()

    def to_toml(self) -> str:
        columns = {f"columns.{key(name)}": table for name, table in self.columns.items()}
        return text_of(self.facts, {"file": self.file, **columns, "derive": self.derive})

    def schema(self) -> Schema:
        """What is known so far, with columns whose range is to be found as without bounds."""
        tables = {
            name: {entry: own for entry, own in table.items() if (table["kind"], own) != ("numeric", UNFILLED)}
            for name, table in self.columns.items()
        }
        whole = {name: table for name, table in tables.items() if not _open(table)}
        return Schema(whole, **{**self.facts, "file": self.file})

    def write(self, path: Path) -> None:
        """At once and whole: what was answered before is never half gone."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(self.to_toml(), encoding="utf-8")
        part.replace(path)


class Back(Exception):
    """The last question is to be asked again."""


@dataclass
class Asks:
    """Questions and answers at a terminal. `reads` gives a line, `says` prints one."""

    reads: Callable[[], str] = field(default=lambda: _line())
    says: Callable[[str], None] = field(default=lambda text: typer.echo(text, err=True, nl=text[-2:] != ": "))

    def __call__(self, question: str, default: str, meant: Callable[[str], Any], enter: str | None = None) -> Any:
        """Until an answer is understood; an empty one is the default, which is shown as `enter`."""
        while True:
            shown = default if enter is None else enter
            self.says(f"{question} [{shown}]: " if shown else f"{question}: ")
            given = self.reads().strip() or default
            try:
                return meant(given)
            except ConfideError as error:
                self.says(f"  {error}")


@dataclass
class Interview:
    """The questions about one file. kind: of the file, as `FileLayout.kind_of` has it, or nothing."""

    answers: Answers
    path: Path
    fields: Mapping[str, Field]
    stem: str
    kind: str | None
    asks: Asks = field(default_factory=Asks)
    # What was answered in this run; and what of it is left to be given again, after a step back.
    _given: list[str] = field(default_factory=list)
    _again: list[str] = field(default_factory=list)
    _head: str = _OPENING

    def run(self) -> list[str]:
        """Ask what is left; the columns whose ranges are to be found privately."""
        begun = deepcopy(self.answers)
        while True:
            try:
                return self._all()
            except Back:
                self._again, self._given = self._given[:-1], []
                self.answers = deepcopy(begun)

    def _all(self) -> list[str]:
        facts, file = self.answers.facts, self.answers.file
        if facts.get("unit", UNFILLED) == UNFILLED:
            self._unit()
        if facts.get("dataset", UNFILLED) == UNFILLED:
            facts["dataset"] = self._ask("Name of the dataset in the ledger", self.stem, str)
            self._keep()
        new = "missing" not in facts
        if new and self.kind == "text" and "decimal" not in file:
            file |= self._ask("How would 1234.5 be written in the file?", "1234.5", typed_marks)
            self._keep()
        if new and self.kind in ("text", "sheet") and "not_records" not in file:
            lines = self._ask("First words of lines that are not records, such as Summe, Gesamt (Enter: none)", "", str)
            file["not_records"] = [word.strip() for word in lines.split(",") if word.strip()]
            self._keep()
        if new:
            codes = self._ask("Codes for no answer in all columns, such as -99, n/a (Enter: none)", "", typed_codes)
            facts["missing"] = codes
            self._keep()
        return [name for name in self.answers.left if self._column(name)]

    def _keep(self) -> None:
        self.answers.write(self.path)

    def _ask(self, question: str, default: str, meant: Callable[[str], Any], enter: str | None = None) -> Any:
        """The answer, in this run's order; one that was given before a step back is not asked again."""

        def understood(text: str) -> Any:
            if text == "<":
                raise Back
            found = meant(text)
            self._given.append(text)
            return found

        if self._again:
            return understood(self._again.pop(0))
        if self._head:
            self.asks.says(self._head)
            self._head = ""
        return self.asks(question, default, understood, enter)

    def _unit(self) -> None:
        names = list(self.fields)

        def meant(text: str) -> Any:
            if text in ("r", "record"):
                return "record"
            if text in names:
                return {"column": text}
            raise SchemaError(f"{text!r} is not a column", "write r, or one of: " + ", ".join(names[:12]))

        question = "Who is protected? r: each row is one person; else the column that tells persons apart"
        unit = self._ask(question, "", meant)
        self.answers.facts["unit"] = unit
        if isinstance(unit, dict):
            self.answers.columns.pop(unit["column"], None)
        self._keep()

    def _column(self, name: str, wrong: str = "") -> bool:
        """Ask about one column; whether its range is to be found privately. wrong: with the answers of before."""
        own = self.fields.get(name) or Field(name, UNFILLED, "")
        note = f" ({own.note})" if own.note and own.kind != UNFILLED else ""
        self._head = f"{wrong}\n{name}{note}" + (f": {' '.join(own.label.split())}" if own.label else "")
        usual = "s" if _ID.fullmatch(name) else _LETTERS.get(own.kind, "")
        kind = self._ask("  s skip, n number, w whole number, d date, l labels", usual, _kind_of)
        if not kind:
            del self.answers.columns[name]
            self._keep()
            return False
        table, private = self._values(own, kind)
        stated = ", ".join(code if isinstance(code, str) else f"{code[0]:g} to {code[1]:g}" for code in own.missing)
        codes = self._ask("  codes for no answer here, - for none", stated, str, stated or "those of all columns")
        if codes:
            table["missing"] = [] if codes == "-" else typed_codes(codes)
        known = not _open(table) and ("low" in table or "levels" in table)
        if known:
            self.answers.source = self._ask("  known from", self.answers.source, str)
            table["provenance"] = {"kind": "public", "text": self.answers.source}
        self.answers.columns[name] = table
        try:
            if not _open(table):
                column_from_settings(name, table)
        except ConfideError as error:
            self.answers.columns[name] = {"kind": UNFILLED}
            return self._column(name, f"  {error}\n")
        if kind == "date" and known:
            self._age(name)
        self._keep()
        return private

    def _values(self, own: Field, kind: str) -> tuple[dict[str, Any], bool]:
        """The entries for the values of a column, and whether its range is to be found privately."""
        if kind == "categorical":
            stated = stated_levels(own.labels, own.missing)
            question = "  levels, such as male, female or 1=male, 2=female"
            levels = self._ask(question, stated, typed_levels, stated or "left as ?")
            return {"kind": kind, **(levels if levels["levels"] else {"levels": [UNFILLED]})}, False
        if kind == "date":
            question = "  first and last day, such as 1900-01-01 to 2006-12-31"
            bounds = self._ask(question, UNFILLED, _bounds(kind), "left as ?")
            # of a type that is no date they are text; a sheet has both
            typed = own.kind == "date"
            usual = "as the program has dates" if self.kind == "sheet" else "1950-12-31"
            style = {} if typed else self._ask("  how is 31 December 1950 written?", "", _style, usual)
            return {"kind": kind, **bounds, **style}, False
        question = "  bounds, such as 18-90; p: find the range privately, now; n: each release finds its own"
        bounds = self._ask(question, "n", _bounds(kind))
        if bounds == "p":
            return {"kind": "numeric", "low": UNFILLED, "high": UNFILLED}, True
        return ({"kind": kind, **bounds} if bounds != "n" else {"kind": "numeric"}), False

    def _age(self, name: str) -> None:
        """A column of ages, which follow from a date and are what tables are made by."""
        day = self._ask("  age at which day, such as 2024-07-01", "", lambda text: text and typed_day(text), "none")
        if day:
            taken = {*self.fields, *self.answers.derive}
            age = next(one for one in ("age", f"age_of_{name}", f"years since {name}") if one not in taken)
            self.answers.derive[age] = f"years_between({quoted(name)}, '{day}')"


def _open(table: Mapping[str, Any]) -> bool:
    """Whether a column's table has something left to fill in."""
    return any(given in (UNFILLED, [UNFILLED]) for given in table.values())


def _line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line


def _kind_of(text: str) -> str:
    letter = _WORDS.get(text.lower(), text.lower())
    if letter not in _KINDS:
        raise SchemaError(f"{text!r} is not a kind of column", "write s, n, w, d or l")
    return _KINDS[letter]


def _bounds(kind: str) -> Callable[[str], Any]:
    def meant(text: str) -> Any:
        if kind == "date" and text == UNFILLED:
            return {"low": UNFILLED, "high": UNFILLED}
        return text.lower() if text.lower() in ("p", "n") and kind != "date" else typed_bounds(text, kind)

    return meant


def _style(text: str) -> dict[str, Any]:
    return typed_format(text) if text else {}


def conduct(session: Session, data: Any, output: Path | None, layout: FileLayout) -> None:
    """Ask for all that is left, and find the ranges that are to be found, in one release.

    Raises `Refused` without a terminal, or without a file for the answers.
    """
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("--ask asks at a terminal, and there is none", "leave it out, and replace each '?' in the draft")
    if output is None:
        raise Refused("--ask writes each answer to a file", "give -o schema.toml")
    asks, kind = Asks(), layout.kind_of(data.name) if isinstance(data, Path) else None
    if output.exists():
        answers = Answers.read(output)
        fields, layout = fields_of(data, FileLayout().with_entries({**answers.file, **layout.to_settings()}))
        asks.says(f"{output} keeps what it has, and the rest is asked. Edit it to change an answer.")
    else:
        fields, layout = seen(data, layout, kind, asks)
        answers = Answers.begun(fields, layout)
    name = str(getattr(data, "table", None) or getattr(data, "stem", "dataset")).partition(".")[0]
    made = Interview(answers, output, {own.name: own for own in fields}, name, kind, asks)
    found = made.run()
    answers = made.answers
    if found:
        _find(session, data, found, answers, output)
    session.say(f"\nWrote {output}" + ("" if answers.done else f". Left: {', '.join(answers.left)}"))
    for age in answers.derive:
        session.say(f"Derived    {age}: groups of it are written cut({quoted(age)}, 18, 65)")
    session.say(f"Next       confide schema check {output} --data {getattr(data, 'name', 'DATA')}")


def seen(data: Any, layout: FileLayout, kind: str | None, asks: Asks) -> tuple[list[Field], FileLayout]:
    """The columns, and how the file is laid out, once its header was looked at."""
    if kind not in ("text", "sheet"):
        return fields_of(data, layout)
    if kind == "text" and layout.encoding == "utf-8":
        question = "Encoding: utf-8, or cp1252 as of older Windows programs"
        layout = asks(question, "utf-8", lambda text: layout.with_entries({"encoding": text}))
    entry = "how many lines are above the header, or an entry such as sheet = Daten, delimiter = ;"
    while True:
        wrong: ConfideError | None = None
        try:
            fields, found = fields_of(data, layout)
        except (SchemaError, SourceError) as error:
            asks.says(f"  {error}")
            wrong, question = error, f"Write {entry}"
        else:
            asks.says("Columns: " + ", ".join(own.name for own in fields))
            question = f"Are these their names? If not, write {entry}"
        changed = asks(question, "", partial(_entry, layout), "stop" if wrong else "yes")
        if changed is layout:
            if wrong is not None:
                raise wrong
            return fields, found
        layout = changed


def _entry(layout: FileLayout, text: str) -> FileLayout:
    """The layout with one more entry, as it was typed; the same one for an answer that changes nothing."""
    if text in ("", "y", "yes"):
        return layout
    name, sign, given = (part.strip() for part in text.partition("="))
    if not sign:
        name, given = "skip", text
    whole = name in ("skip", "sheet") and given.isdecimal()
    return layout.with_entries({name: int(given) if whole else given})


def _find(session: Session, data: Any, names: Sequence[str], answers: Answers, output: Path) -> None:
    """One release of the ranges of columns, which this asks about and charges."""
    from confide.ask.bounds import find_bounds
    from confide.guarantees import GDP
    from confide.guarantees.conversion import to_approx
    from confide.ledger import Ledger

    asks = Asks()
    asks.says(f"\nThe range of {', '.join(names)} is found by one release, which a ledger is charged for.")
    dataset = answers.facts["dataset"]
    book = asks(
        "Ledger, such as ledger.db (Enter: not now)", "", lambda text: text and Ledger.open(text, dataset=dataset)
    )
    if not book:
        return
    privacy = asks("Cost mu, such as 0.1", "0.1", lambda text: GDP(_number(text)))
    epsilon = to_approx(privacy, delta=1e-6).epsilon
    if not session.asks(f"mu = {privacy.mu:g}, at most epsilon {epsilon:.3g} at delta 1e-6. Charge it?"):
        return
    with charging(session, book, None, "finding the ranges"):
        released = find_bounds(data, list(names), answers.schema(), privacy=privacy, ledger=book)
    made = tomllib.loads(released.to_toml())["columns"]
    for name in names:
        answers.columns[name] = {**answers.columns[name], **made[name]}
    answers.write(output)
    say_charged(session, PaidRelease(released.release, book, [], []))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SchemaError(f"{text!r} is not a number", "write 0.1") from None
