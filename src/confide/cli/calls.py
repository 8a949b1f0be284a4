"""Calls of Python in a message as a command line spells them: by what the call is, not by the words around it.

A setting becomes the option of the running command, else `--set NAME=VALUE`, or a line of the publication's file where the message is
of one of its questions; a method `--method NAME` with its settings, of `confide plan` where the running command takes none; a column a
line of the schema's file; a face its command. A call with an argument that no option can say is asked in Python, and is said so: none of
its arguments is dropped. What is none of these is left as it is.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Collection, Iterator
from typing import Any

__all__ = ["as_commands"]

_CALL = re.compile(r"(?<![\w.`'\"])((?:cf\.|confide\.)?(?:[a-z_]\w*\.)*[A-Za-z_]\w*)\(")
#: Where a setting may begin: after these words.
_LEAD = re.compile(r"\b(?:write|take|give|ask|instance|or) (?=[a-z_]\w*=)")
_NEXT = re.compile(r", (?=[a-z_]\w*=)")
_QUESTION = re.compile(r"question '([^']*)': ")
#: What a survey's design alone has, of all that a message tells to write.
_DESIGN = ("psus",)
_COLUMNS = {"Numeric": ("low", "high"), "Integer": ("low", "high"), "Categorical": ("levels",)}
_REGRESSIONS = {
    "linear_regression": "",
    "logistic_regression": " --method logistic",
    "poisson_regression": " --method poisson",
}
#: A result's verbs behind a command that prints it.
_VERBS = re.compile(r"\.(?:\w+\([^()]*\))")
_LONGEST = 400


def as_commands(message: str, options: Collection[str] = ()) -> str:
    """The message with its calls and settings as commands and options.

    options: of the command that is running.

    >>> as_commands("write bandwidth=0.05, or declare it as cf.Integer(0, 1)")
    'write --set bandwidth=0.05, or declare it as kind = "integer", low = 0, high = 1'
    >>> as_commands("write cf.tables.counts(..., covers='dataset')", {"--covers"})
    'write --covers dataset'
    >>> as_commands("question 'a': write cf.tables.counts(..., covers='dataset')")
    'question \\'a\\': write covers = "dataset" in [questions.a]'
    """
    pieces, end = [], 0
    marks = [*_QUESTION.finditer(message)]
    for place, question in zip([0, *(mark.end() for mark in marks)], [None, *(mark[1] for mark in marks)], strict=True):
        following = next((mark.start() for mark in marks if mark.start() >= place), len(message))
        speaker = _Speaker(frozenset(options), question)
        pieces += [message[end:place], speaker.settings(speaker.calls(message[place:following]))]
        end = following
    said = "".join([*pieces, message[end:]])
    # an entry of the schema's file, and a column of it
    said = re.sub(r"\bunit=(?=\{ column)", "unit = ", said).replace("cluster=cluster = ", "cluster = ")
    return re.sub(r"'([^']+)': (?=kind = )", lambda entry: f"[columns.{_key(entry[1])}] with ", said)


def _key(name: str) -> str:
    from confide.schema.toml import key

    return key(name)


class _Speaker:
    """How one message is said. question: of a publication's file, where it is of one."""

    def __init__(self, options: frozenset[str], question: str | None) -> None:
        self._options, self._question = options, question

    def calls(self, text: str) -> str:
        """Every call that is known, by its command."""
        parts, place = [], 0
        while (found := _CALL.search(text, place)) is not None:
            end = _closed(text, found.end())
            call = None if end is None else _parsed(text[found.start() : end])
            said = None if call is None else self._said(found[1], call)
            if said == _IN_PYTHON and end is not None:
                parts += [
                    re.sub(r"\b(?:write|give|take) $", "", text[place : found.start()]),
                    said,
                    text[found.start() : end],
                ]
                place = end
                continue
            if said is None or end is None:
                parts.append(text[place : found.end()])
                place = found.end()
                continue
            verbs = _VERBS.match(text, end)
            if verbs is not None and said.startswith("confide "):
                said, end = f"{said} -o FILE.json, and {verbs[0]} of it in Python", verbs.end()
            parts += [text[place : found.start()], said]
            place = end
        return "".join([*parts, text[place:]])

    def settings(self, text: str) -> str:
        """Settings that a message tells to write, NAME=VALUE, as options."""
        parts, place = [], 0
        while (lead := _LEAD.search(text, place)) is not None:
            parts.append(text[place : lead.end()])
            place = lead.end()
            following = None
            while (read := _setting(text, place)) is not None and (said := self._setting(read[0])) is not None:
                parts.append((following[0].replace(",", "") if following else "") + said)
                place = read[1]
                following = _NEXT.match(text, place)
                if following is None:
                    break
                place = following.end()
            else:
                if following is not None:
                    parts.append(following[0])
        return "".join([*parts, text[place:]])

    # what is known ----------------------------------------------------------------------------------------------------

    def _said(self, name: str, call: ast.Call) -> str | None:
        """The command of a call; None where it has none, `_IN_PYTHON` where a command cannot say all of it."""
        own = name.removeprefix("cf.").removeprefix("confide.")
        family, _, verb = own.rpartition(".")
        first = _literal(call.args[0]) if call.args else None
        if own == "select":
            return _IN_PYTHON  # of methods, which no option holds
        if own == "infer":
            return " ".join(self._settings(call) or ()) or None
        if verb in _COLUMNS and family in ("", "schema"):
            return _column(verb, call)
        if verb == "Unit" and family in ("", "schema"):
            return _table({"column": first, **_named(call)})
        if verb == "SurveyDesign" and family in ("", "schema"):
            given = {**({} if first is None else {"weight": first}), **_named(call)}
            return f"under [design] the lines {', '.join(f'{key} = {_toml(x)}' for key, x in given.items())}"
        if verb == "Clusters" and family in ("", "schema"):
            return f"cluster = {_table({'column': first, **_named(call)})}"
        if verb == "Schema" and family == "" and call.keywords:
            return f"{', '.join(_entry(one, self) for one in call.keywords)} in the schema"
        if name.startswith("cf.tables.") and verb.islower():
            if not isinstance(first, str):
                return (" ".join(self._settings(call) or ()) or None) if _plain(call) else _IN_PYTHON
            kind = "" if verb in ("counts", "means") else f" --kind {verb}"
            command = "describe" if verb == "table_one" else "table"
            rest = _Speaker(_options_of(command), None)._settings(call)
            if rest is None or not _plain(call):
                return _IN_PYTHON
            return " ".join([f"confide {command} {shlex.quote(first)}{'' if command == 'describe' else kind}", *rest])
        if name.startswith("cf.tests.") and verb.islower():
            return f"confide test {verb}" + (f" {shlex.quote(first)}" if isinstance(first, str) else "")
        if name.startswith("cf.intervals.") and verb.islower():
            column = _literal(call.args[1]) if len(call.args) > 1 else None
            return f"confide interval {verb}" + (f" --column {shlex.quote(column)}" if isinstance(column, str) else "")
        if name.removeprefix("cf.") in _REGRESSIONS:
            return f"confide regress{'' if not isinstance(first, str) else ' ' + shlex.quote(first)}{_REGRESSIONS[own]}"
        if name == "cf.refit":
            table = shlex.quote(first) if isinstance(first, str) else "TABLE.parquet"
            return f"confide refit {table}"
        if name == "cf.synthesize":
            formula = next((found for one in call.args if isinstance(found := _literal(one), str)), "y ~ a")
            return f"confide synthesize {shlex.quote(formula)} DATA --schema schema.toml -o table.parquet"
        return self._method(name, call) if verb[:1].isupper() else None

    def _method(self, name: str, call: ast.Call) -> str | None:
        """The options that ask for a registered method, by the name of its class."""
        from confide import registry

        found = registry.named(name.rpartition(".")[2])
        if found is None:
            return None
        first = call.args[0] if call.args else None
        rest = self._settings(call)
        open_ = isinstance(first, ast.Constant) and first.value is Ellipsis
        if rest and (open_ or isinstance(first, ast.Name)):
            return " ".join(rest)  # Class(formula, setting=...), of the method at hand
        # a command without the options that the call needs leaves it to `confide plan`
        elsewhere = bool(self._options) and ("--method" not in self._options or rest is None)
        if elsewhere:
            rest = _Speaker(_options_of("plan"), None)._settings(call)
        if rest is None or not _plain(call):
            return _IN_PYTHON
        model = _literal(first) if first is not None else None
        words = [shlex.quote(model)] if isinstance(model, str) else ["MODEL"] if elsewhere else []
        return " ".join([*(["confide plan"] if elsewhere else []), *words, "--method", found, *rest])

    def _settings(self, call: ast.Call) -> list[str] | None:
        """The settings of a call as they are given here; None where one of them cannot be."""
        said = [self._setting(one) for one in call.keywords]
        return None if None in said else [one for one in said if one is not None]

    def _setting(self, keyword: ast.keyword) -> str | None:
        """A setting as it is given here."""
        name, value = keyword.arg, _literal(keyword.value)
        if name is None or value is _OPEN:
            return None
        if self._question is not None:
            return f"{name} = {_toml(value)} in [questions.{self._question}]"
        if name in _DESIGN:
            return f"{name} = {_toml(value)} under [design]"
        option = f"--{name.replace('_', '-')}"
        if option in self._options:
            return option if value is True else f"{option} {shlex.quote(_text(value))}"
        if self._options and "--set" not in self._options:
            return None  # a command that takes no such thing
        return f"--set {shlex.quote(f'{name}={_text(value)}')}"


_OPEN = object()
_IN_PYTHON = "this is asked in Python: "


def _plain(call: ast.Call) -> bool:
    """Whether what stands without a name is a formula, the name of what the command is given in any case (data), or left open."""
    return all(isinstance(one, ast.Name) or isinstance(_literal(one), (str, type(...))) for one in call.args)


def _options_of(command: str) -> frozenset[str]:
    from confide.cli.commands import Commands

    return frozenset(option for one in Commands()[command].params for option in one.opts)


def _closed(text: str, place: int) -> int | None:
    """Behind the bracket that closes the one before this place; None where none does."""
    depth, quote = 1, ""
    for end in range(place, min(len(text), place + _LONGEST)):
        letter = text[end]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            return end + 1
    return None


def _parsed(text: str) -> ast.Call | None:
    try:
        found = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.Call) else None


def _setting(text: str, place: int) -> tuple[ast.keyword, int] | None:
    """The setting that begins at a place, NAME=VALUE, and where it ends."""
    best = None
    for end in _ends(text, place):
        call = _parsed(f"f({text[place:end]})")
        if call is not None and len(call.keywords) == 1 and not call.args:
            best = call.keywords[0], end
    return best


def _ends(text: str, place: int) -> Iterator[int]:
    """Where a value may end: before a blank, a comma, a semicolon, a bracket, outside of quotes and brackets."""
    depth, quote = 0, ""
    for end in range(place, min(len(text), place + _LONGEST)):
        letter = text[end]
        if quote:
            quote = "" if letter == quote else quote
            continue
        if not depth and letter in " ,;)":
            yield end
            return
        if letter in "'\"":
            quote = letter
        depth += (letter in "([{") - (letter in ")]}")
    yield min(len(text), place + _LONGEST)


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return _OPEN


def _text(value: Any) -> str:
    if value is Ellipsis:
        return "..."
    return value if isinstance(value, str) else json.dumps(value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return _table(value)
    if value is Ellipsis:
        return "..."
    return json.dumps(value, ensure_ascii=False)


def _table(entries: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {_toml(value)}" for name, value in entries.items() if value is not _OPEN) + " }"


def _named(call: ast.Call) -> dict[str, Any]:
    return {one.arg: _literal(one.value) for one in call.keywords if one.arg is not None}


def _column(kind: str, call: ast.Call) -> str:
    given = dict(zip(_COLUMNS[kind], map(_literal, call.args), strict=False)) | _named(call)
    lines = [f'kind = "{kind.lower()}"']
    for name, value in given.items():
        open_ = value is _OPEN or value is Ellipsis or value == [Ellipsis]
        lines.append(f"{name} = {'[...]' if name == 'levels' else '...'}" if open_ else f"{name} = {_toml(value)}")
    return ", ".join(lines)


def _entry(keyword: ast.keyword, speaker: _Speaker) -> str:
    value = keyword.value
    if isinstance(value, ast.Call):
        return f"{keyword.arg} = {speaker._said(ast.unparse(value.func), value) or ast.unparse(value)}"
    return f"{keyword.arg} = {_toml(_literal(value))}"
