"""`confide schema draft FILE --ask`: the public facts of a schema, asked one after another at a terminal.

Questions come from metadata alone, and no answer is suggested from values. Each answer is written at once, so that one can stop and
go on later: what is left to ask is what the file still has as "?".
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from confide.cli.engine import PaidRelease, charging, say_charged
from confide.cli.session import Refused, Session
from confide.errors import ConfideError, SchemaError
from confide.schema import Schema
from confide.schema.draft import Field, fields_of
from confide.schema.layout import FileLayout
from confide.schema.toml import UNFILLED, column_from_settings, key, value
from confide.schema.typed import typed_bounds, typed_codes, typed_levels

_KINDS = {"s": "", "n": "numeric", "w": "integer", "d": "date", "l": "categorical"}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()} | {"boolean": "w", UNFILLED: ""}
_OPENING = """\
Answer from public knowledge: a codebook, a law, an answer scale. Bounds and levels
that are looked up in the data are not private, because they tell something about
single records. Enter keeps what stands in brackets; Ctrl+C stops, and the same
command goes on from there."""


@dataclass
class Answers:
    """The schema so far, as its file has it."""

    facts: dict[str, Any]
    file: dict[str, Any]
    columns: dict[str, dict[str, Any]]
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
            columns = {str(name): dict(table) for name, table in data["columns"].items()}
            facts = {name: fact for name, fact in data.items() if name not in ("columns", "file")}
            told = [table["provenance"]["text"] for table in columns.values() if "provenance" in table]
            found = cls(facts, dict(data.get("file", {})), columns, told[-1] if told else "")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            raise SchemaError(f"{str(path)!r} holds no answers to go on from", "give another -o FILE") from None
        if found.done:
            raise SchemaError(f"{str(path)!r} has no ? left to ask about", "edit it by hand, or give another -o FILE")
        return found

    @property
    def left(self) -> list[str]:
        """Columns that are left to ask about."""
        return [name for name, table in self.columns.items() if UNFILLED in table.values()]

    @property
    def done(self) -> bool:
        return not self.left and UNFILLED not in self.facts.values()

    def to_toml(self) -> str:
        lines = [f"{name} = {value(fact)}" for name, fact in self.facts.items()]
        if self.file:
            lines += ["", "[file]", *(f"{name} = {value(entry)}" for name, entry in self.file.items())]
        for name, table in self.columns.items():
            lines += ["", f"[columns.{key(name)}]", *(f"{entry} = {value(own)}" for entry, own in table.items())]
        return "\n".join(lines) + "\n"

    def schema(self) -> Schema:
        """What is known so far, with columns whose range is to be found as without bounds."""
        known = {name: dict(table) for name, table in self.columns.items() if table["kind"] != UNFILLED}
        for table in known.values():
            for end in ("low", "high"):
                if table.get(end) == UNFILLED:
                    del table[end]
        whole = {name: table for name, table in known.items() if UNFILLED not in table.values()}
        return Schema(whole, **{**self.facts, "file": self.file})

    def write(self, path: Path) -> None:
        """At once and whole: what was answered before is never half gone."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(self.to_toml(), encoding="utf-8")
        part.replace(path)


@dataclass
class Interview:
    """Questions and answers. `reads` gives a line, `says` prints one."""

    answers: Answers
    path: Path
    fields: Mapping[str, Field]
    stem: str
    text: bool
    reads: Callable[[], str] = field(default=lambda: _line())
    says: Callable[[str], None] = field(default=lambda text: typer.echo(text, err=True, nl=text[-2:] != ": "))

    def run(self) -> list[str]:
        """Ask what is left; the columns whose ranges are to be found privately."""
        self.says(_OPENING)
        facts = self.answers.facts
        if facts.get("unit", UNFILLED) == UNFILLED:
            self._unit()
        if facts.get("dataset", UNFILLED) == UNFILLED:
            facts["dataset"] = self._ask("Name of the dataset in the ledger", self.stem, str)
            self._keep()
        if self.text and "decimal" not in self.answers.file and "missing" not in facts:
            marks = self._ask("How would 1234.5 be written in the file?", "1234.5", typed_marks)
            self.answers.file |= marks
            self._keep()
        if "missing" not in facts:
            codes = self._ask("Codes for no answer in all columns, such as -99, n/a (Enter: none)", "", typed_codes)
            facts["missing"] = codes
            self._keep()
        return [name for name in self.answers.left if self._column(name)]

    def _keep(self) -> None:
        self.answers.write(self.path)

    def _ask(self, question: str, default: str, meant: Callable[[str], Any], enter: str | None = None) -> Any:
        """Until an answer is understood; an empty one is the default."""
        while True:
            shown = default if enter is None else enter
            self.says(f"{question} [{shown}]: " if shown else f"{question}: ")
            given = self.reads().strip() or default
            try:
                return meant(given)
            except ConfideError as error:
                self.says(f"  {error}")

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

    def _column(self, name: str) -> bool:
        """Ask about one column; whether its range is to be found privately."""
        own = self.fields.get(name) or Field(name, UNFILLED, "")
        note = f" ({own.note})" if own.note and own.kind != UNFILLED else ""
        self.says(f"\n{name}{note}" + (f": {' '.join(own.label.split())}" if own.label else ""))
        kind = self._ask("  s skip, n number, w whole number, d date, l labels", _LETTERS.get(own.kind, ""), _kind_of)
        if not kind:
            del self.answers.columns[name]
            self._keep()
            return False
        table, private = self._values(own, kind)
        known = ", ".join(code if isinstance(code, str) else f"{code[0]:g} to {code[1]:g}" for code in own.missing)
        codes = self._ask("  codes for no answer here, - for none", known, str, known or "those of all columns")
        if codes:
            table["missing"] = [] if codes == "-" else typed_codes(codes)
        if not private and ("low" in table or "levels" in table):
            self.answers.source = self._ask("  known from", self.answers.source, str)
            table["provenance"] = {"kind": "public", "text": self.answers.source}
        self.answers.columns[name] = table
        try:
            if UNFILLED not in table.values():
                column_from_settings(name, table)
        except ConfideError as error:
            self.says(f"  {error}")
            self.answers.columns[name] = {"kind": UNFILLED}
            return self._column(name)
        self._keep()
        return private

    def _values(self, own: Field, kind: str) -> tuple[dict[str, Any], bool]:
        """The entries for the values of a column, and whether its range is to be found privately."""
        if kind == "categorical":
            stated = {code: text for code, text in own.labels.items() if code not in own.missing}
            known = ", ".join(f"{code}={text}" for code, text in stated.items() if not set(",=") & set(text + code))
            question = "  levels, such as male, female or 1=male, 2=female"
            levels = self._ask(question, known, typed_levels, known or "left as ?")
            return {"kind": kind, **(levels if levels["levels"] else {"levels": [UNFILLED]})}, False
        if kind == "date":
            bounds = self._ask("  first and last day, such as 1900-01-01 to 2006-12-31", "", _bounds(kind))
            style = self._ask("  how it is written, such as %d.%m.%Y", "", str, "2006-12-31") if self.text else ""
            return {"kind": kind, **bounds, **({"format": style} if style else {})}, False
        question = "  bounds, such as 18-90; p: find the range privately, now; n: each release finds its own"
        bounds = self._ask(question, "n", _bounds(kind))
        if bounds == "p":
            return {"kind": "numeric", "low": UNFILLED, "high": UNFILLED}, True
        return ({"kind": kind, **bounds} if bounds != "n" else {"kind": "numeric"}), False


def _line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line


def _kind_of(text: str) -> str:
    letter = text[:1].lower()
    if letter not in _KINDS or not text:
        raise SchemaError(f"{text!r} is not a kind of column", "write s, n, w, d or l")
    return _KINDS[letter]


def _bounds(kind: str) -> Callable[[str], Any]:
    def meant(text: str) -> Any:
        return text.lower() if text.lower() in ("p", "n") and kind != "date" else typed_bounds(text, kind)

    return meant


def typed_marks(text: str) -> dict[str, str]:
    """Decimal mark and separator of thousands, from how 1234.5 is written.

    >>> typed_marks("1.234,5"), typed_marks("1234,5"), typed_marks("1234.5"), typed_marks("1,234.5")
    ({'decimal': ',', 'thousands': '.'}, {'decimal': ','}, {'decimal': '.'}, {'decimal': '.', 'thousands': ','})
    """
    found = re.fullmatch("1([., '\u2019\u00a0\u202f]?)234([.,])50?", text.strip())
    if found is None:
        raise SchemaError(f"{text!r} is not 1234.5 in another notation", "write it as 1234.5, 1234,5 or 1.234,5")
    group = {"\u2019": "'", "\u00a0": " ", "\u202f": " "}.get(found[1], found[1])
    return {"decimal": found[2], **({"thousands": group} if group else {})}


def conduct(session: Session, data: Any, output: Path | None, layout: FileLayout) -> None:
    """Ask for all that is left, and find the ranges that are to be found, in one release.

    Raises `Refused` without a terminal, or without a file for the answers.
    """
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused("--ask asks at a terminal, and there is none", "leave it out, and replace each '?' in the draft")
    if output is None:
        raise Refused("--ask writes each answer to a file", "give -o schema.toml")
    fields, layout = fields_of(data, layout)
    answers = Answers.read(output) if output.exists() else Answers.begun(fields, layout)
    name = str(getattr(data, "table", None) or getattr(data, "stem", "dataset")).partition(".")[0]
    typed = any(own.kind == UNFILLED for own in fields)
    found = Interview(answers, output, {own.name: own for own in fields}, name, typed).run()
    if found:
        _find(session, data, found, answers, output)
    session.say(f"\nWrote {output}" + ("" if answers.done else f". Left: {', '.join(answers.left)}"))
    session.say(f"Next       confide schema check {output} --data {getattr(data, 'name', 'DATA')}")


def _find(session: Session, data: Any, names: Sequence[str], answers: Answers, output: Path) -> None:
    """One release of the ranges of columns, which this asks about and charges."""
    from confide.ask.bounds import find_bounds
    from confide.guarantees import GDP
    from confide.guarantees.conversion import to_approx
    from confide.ledger import Ledger

    asks = Interview(answers, output, {}, "", text=False)
    asks.says(f"\nThe range of {', '.join(names)} is found by one release, which a ledger is charged for.")
    place = asks._ask("Ledger, such as ledger.db (Enter: not now)", "", str)
    if not place:
        return
    book = Ledger.open(place, dataset=answers.facts["dataset"])
    privacy = asks._ask("Cost mu, such as 0.1", "0.1", lambda text: GDP(_number(text)))
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
