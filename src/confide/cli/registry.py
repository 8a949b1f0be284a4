"""The commands by name, each loaded when it is called: listing them, or running one, does not wait for the others."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

#: Our commands in the order of a user's steps, and where each is found, so that neither a list nor another command loads it.
OURS: Mapping[str, str] = {
    "schema": "schema:app",
    "explore": "choosing:explore",
    "advise": "choosing:advise",
    "plan": "analysis:plan",
    "release": "analysis:release",
    "infer": "analysis:infer",
    "table": "one_step:table",
    "test": "test:test",
    "interval": "interval:interval",
    "describe": "one_step:describe",
    "regress": "one_step:regress",
    "publish": "publish:publish",
    "synthesize": "publish:synthesize",
    "refit": "publish:refit",
    "local": "local:app",
    "ledger": "ledger:app",
    "verify": "ledger:verify_release",
    "statement": "ledger:privacy_statement",
    "methods": "choosing:methods",
    "curve": "choosing:curve",
    "audit": "audit:audit",
    "studio": "studio:studio",
}


def purposes() -> Iterator[tuple[str, str]]:
    """Each command with the first line of its help, read from its file, which is not loaded."""
    files = {where.partition(":")[0]: {} for where in OURS.values()}  # type: dict[str, dict[str, str]]
    for module, found in files.items():
        for node in ast.parse(Path(__file__).with_name("commands").joinpath(f"{module}.py").read_bytes()).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = (ast.get_docstring(node) or "").partition("\n\n")[0]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                words = {one.arg: one.value for one in node.value.keywords}
                found[ast.unparse(node.targets[0])] = ast.literal_eval(words["help"]) if "help" in words else ""
    for name, where in OURS.items():
        module, _, attribute = where.partition(":")
        yield name, files[module][attribute]


def joined(text: str) -> str:
    """A help text with each paragraph in one line, because the printer of help wraps it again; examples keep their lines.

    >>> joined("One two\\nthree.\\n\\nExample:\\n\\nconfide a\\n  b")
    'One two three.\\n\\nExample:\\n\\nconfide a\\n  b'
    """
    found = text.split("\n\n")
    return "\n\n".join(one if one.startswith(("\b", "confide ")) else " ".join(one.split("\n")) for one in found)


def spared(command: Any) -> None:
    """Let parameters of a command take what needs no check as it is: text, plain numbers and paths, and values that are not given.

    Recent versions of typer load pydantic, a third of the time of a short command, and build a validator for each
    parameter, given or not. They still have all else: what is wrong is refused in their words.
    """
    for option in command.params:
        _spared(option)
    helped = command.get_help_option
    command.get_help_option = lambda ctx: _spared(helped(ctx))


def _spared(option: Any) -> Any:
    """A parameter that takes what is plain as it is."""
    described = vars(option).get("type_descriptor")
    # an older typer loads nothing for that; or it was spared before
    if described is None or "process_value" in vars(option):
        return option
    kind, about = described.annotation, described.parameter_info
    if any(getattr(about, name, usual) != usual for name, usual in _UNCHECKED.items()):
        return option
    checked, many = option.process_value, get_origin(kind) is list
    form = get_args(kind)[0] if many else kind

    def process(ctx: Any, value: Any) -> Any:
        found = _simply_read(form, value, many)
        if found is _NOT_SIMPLE or (option.required and found in (None, ())):
            return checked(ctx, value)
        return found if option.callback is None else option.callback(ctx, option, found)

    option.process_value = process
    return option


_NOT_SIMPLE = object()
#: What is stated of a parameter that typer is to check, and what stands there where it is not.
_UNCHECKED = {
    **dict.fromkeys(("min", "max", "parser", "click_type", "path_type", "formats"), None),
    **dict.fromkeys(("exists", "writable", "resolve_path", "allow_dash", "clamp"), False),
    **dict.fromkeys(("file_okay", "dir_okay", "readable"), True),
}
_NUMBERS = {int: re.compile(r"[+-]?[0-9]+"), float: re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")}


def _simply_read(form: Any, value: Any, many: bool) -> Any:
    """What words of a command line say, of one form; `_NOT_SIMPLE` where it is not plain that this is what they say.

    >>> _simply_read(float, ".5", False), _simply_read(str, ("a", "b"), True), _simply_read(int, "5e3", False) is _NOT_SIMPLE
    (0.5, ['a', 'b'], True)
    """
    if value is None:
        return () if many else None
    if many:
        read = [_simply_read(form, one, False) for one in value] if isinstance(value, (list, tuple)) else [_NOT_SIMPLE]
        return _NOT_SIMPLE if any(one is _NOT_SIMPLE for one in read) else read
    if type(value) is form and form in (str, int, float, bool):
        return value
    if not isinstance(value, str):
        return _NOT_SIMPLE
    if form is Path:
        return Path(value) if os.access(value, os.R_OK) or not os.path.lexists(value) else _NOT_SIMPLE
    return form(value) if form in _NUMBERS and _NUMBERS[form].fullmatch(value) else _NOT_SIMPLE


class Commands(Mapping[str, Any]):
    """What `OURS` lists: name -> command. Whoever iterates over names loads none.

    `ran` is the command whose own function was entered last, as its words: () before any was. No version of what reads
    command lines has a say in it.
    """

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}
        self.ran: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, attribute = OURS[name].split(":")
            self._built[name] = self.built(getattr(import_module(f"confide.cli.commands.{module}"), attribute), name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(OURS)

    def __len__(self) -> int:
        return len(OURS)

    def built(self, found: Any, name: str) -> Any:
        """A command from a function, or from a typer application, under a name."""
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False, rich_markup_mode="rich")
            app.command(name)(found)
            found = app
        command = typer.main.get_command(found)
        command.name = name
        self._watch(command, tuple(name.split()))
        return command

    def _watch(self, command: Any, words: tuple[str, ...]) -> None:
        """Make a command, and every command below it, say in `ran` that it was entered."""
        below = getattr(command, "commands", None)
        spared(command)
        if below is not None:
            for name, one in below.items():
                self._watch(one, (*words, name))
        elif (function := command.callback) is not None:
            command.help = joined(command.help or "")

            @wraps(function)
            def entered(*args: Any, **options: Any) -> Any:
                self.ran = words
                return function(*args, **options)

            command.callback = entered
