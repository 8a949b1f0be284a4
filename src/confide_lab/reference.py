"""Reference pages made from the code: `python -m confide_lab.reference` writes `python.md` and `command-line.md` to `docs/reference`.

The page of Python has a line `::: confide.tables.means` for each name. The site puts its signature and its whole docstring there
(`expanded`), as they are at run time: a call such as `cf.tables.means` is made from its method and stands in no source file.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from types import ModuleType
from typing import Any

import typer

from confide._docs import parameters
from confide.cli import app

__all__ = ["PAGES", "command_line", "documented", "expanded", "main", "names", "python"]

#: Modules in the order of the page; a name stands where it is found first.
ROOMS = (
    "confide", "confide.tables", "confide.tests", "confide.regression", "confide.curves", "confide.classification", "confide.intervals",
    "confide.reduction", "confide.voting", "confide.synthesis", "confide.local", "confide.ptr", "confide.schema", "confide.guarantees",
    "confide.noise", "confide.results",
)  # fmt: skip
_PYTHON = """\
# Python

Look up the signature of a call or a class, what it takes, what it returns and what it raises.
For those who use confide from Python.
You need `import confide as cf`; `help(cf.tables.means)` prints the same, also where this page shows names alone.

A call such as `cf.tables.means` returns a *result*. Every result has `summary()`, `to_frame()`, `conf_int(alpha)`, `plot()`,
`report(path)`, `to_latex()`, `status` and `flags`. A table of means has `diff` and `test` as well, a regression `predict`:
`help(type(result))` lists all. To keep the release, call `cf.release` and then `cf.infer`.

<!-- Made from the code by `python -m confide_lab.reference`: do not edit it here. -->
"""
_COMMANDS = """\
# Command line

Look up a command and its options.
For those who use confide from a terminal.
You need `pip install confide`; `confide table --help` prints the same for one command. [Exit codes](#exit-codes) are at the end.

<!-- Made from the code by `python -m confide_lab.reference`: do not edit it here. -->
"""
_DIRECTIVE = re.compile(r"^::: (confide[\w.]*)$", re.MULTILINE)
#: An option with the same words in so many commands is explained once.
_SHARED = 4


def names() -> dict[str, list[str]]:
    """The public callables of each module, a class or a call only where it is found first."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for room in ROOMS:
        module = _thing(room)
        for name in sorted(getattr(module, "__all__", ()), key=lambda one: (one[0].isupper(), one.lower())):
            thing = getattr(module, name)
            if not isinstance(thing, ModuleType) and callable(thing) and id(thing) not in seen:
                seen.add(id(thing))
                found.setdefault(room, []).append(f"{room}.{name}")
    return found


def python() -> str:
    """The page of Python: each name with the first sentence of its docstring, and a line for the site to expand."""
    parts = [_PYTHON]
    for room, own in names().items():
        parts.append(f"## {_short(room)}\n")
        for name in own:
            first = (inspect.getdoc(_thing(name)) or "").partition("\n\n")[0].replace("\n", " ")
            parts.append(f"### {_short(name)}\n\n{first}\n\n::: {name}\n")
    return "\n".join(parts)


def _short(name: str) -> str:
    return re.sub(r"^confide\b", "cf", name)


def _thing(name: str) -> Any:
    first, *others = name.split(".")
    thing: Any = import_module(first)
    for at, other in enumerate(others):
        thing = getattr(thing, other, None) or import_module(".".join([first, *others[: at + 1]]))
    return thing


def expanded(text: str) -> str:
    """A page with signatures and docstrings in place of its lines `::: NAME`.

    >>> print(expanded("::: confide.list_methods").splitlines()[1])
    cf.list_methods()
    """
    return _DIRECTIVE.sub(lambda found: _whole(found[1]), text)


def _whole(name: str) -> str:
    thing = _thing(name)
    parts = [_signature(_short(name), thing), *_docstring(thing)]
    if inspect.isclass(thing):
        parts += _members(thing)
    return "\n\n".join(part for part in parts if part)


def _signature(name: str, thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    text = name + str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return (
        "```py\n"
        + "\n".join(wrap(text, 90, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))
        + "\n```"
    )


def documented(name: str) -> dict[str, tuple[str, str]]:
    """Type and words of each parameter that the docstring of a name documents."""
    return parameters(inspect.getdoc(_thing(name)))


def _docstring(thing: Any) -> Iterator[str]:
    """The sections of a docstring after its first paragraph, as Markdown."""
    doc = (inspect.getdoc(thing) or "").partition("\n\n")[2]
    parts = re.split(r"^([A-Z][\w ]+)\n-{3,}\n", f"\n{doc}", flags=re.MULTILINE)
    yield _prose(parts[0])
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        yield f"**{title}**"
        if title == "Examples":
            yield f"```pycon\n{text.strip()}\n```"
        elif title in ("Notes", "References"):
            yield _prose(text)
        else:
            yield "\n".join(_entries(text))


def _prose(text: str) -> str:
    """Paragraphs; a picture of text that is set in keeps its lines."""
    parts = [part for part in text.strip("\n").split("\n\n") if part.strip()]
    return "\n\n".join(re.sub(r"^\.\. ", "", part) for part in parts)


def _entries(text: str) -> Iterator[str]:
    """A list of what is named at the left, each with what stands set in below it."""
    for entry in re.split(r"\n(?=\S)", text.strip("\n")):
        head, _, body = entry.partition("\n")
        name, colon, kind = head.partition(" : ")
        words = " ".join(body.split())
        yield f"- `{name}`{f' (`{kind}`)' if colon else ''}{f': {words}' if words else ''}"


def _members(cls: type) -> Iterator[str]:
    """The public methods and properties that a class defines itself or has from a class of confide."""
    own = {name for one in cls.__mro__ if one.__module__.startswith("confide") for name in vars(one)}
    lines = []
    for name in sorted(name for name in own if not name.startswith("_")):
        member = inspect.getattr_static(cls, name)
        called = getattr(cls, name)
        if not (isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)):
            continue
        first = (inspect.getdoc(member if isinstance(member, property) else called) or "").partition("\n\n")[0]
        shown = name
        if not isinstance(member, property):
            given = [
                p.name if p.kind != p.VAR_KEYWORD else f"**{p.name}"
                for p in inspect.signature(called).parameters.values()
            ]
            shown = f"{name}({', '.join(one for one in given if one != 'self')})"
        lines.append(f"- `{shown}`: {' '.join(first.split())}")
    if lines:
        yield "**Methods and attributes**"
        yield "\n".join(lines)


def command_line() -> str:
    """The page of commands: what each does, an example, its own options; options of many commands stand once, at the end."""
    found = list(_commands(typer.main.get_command(app), "confide"))
    often = Counter(key for _, command in found for key in {_key(one) for one in command.params})
    shared: dict[tuple[str, str], str] = {}
    parts = [_COMMANDS]
    for name, command in found:
        rows, also = [], []
        for one in command.params:
            if getattr(one, "hidden", False) or one.name == "help":
                continue
            if one.param_type_name == "option" and often[_key(one)] >= _SHARED:
                shared[_key(one)] = _row(one)
                also.append(f"`{one.opts[-1]}`")
            else:
                rows.append(_row(one))
        parts.append(f"## {name}\n\n{_help(command.help or '')}\n")
        if rows:
            parts.append("\n".join([*_table(rows)]) + "\n")
        if also:
            parts.append(f"Also {', '.join(also)}: see [below](#options-of-several-commands).\n")
    parts.append("## Options of several commands\n\n" + "\n".join(_table(sorted(shared.values()))) + "\n")
    parts.append(f"## Exit codes\n\n{_exit_codes(typer.main.get_command(app).help or '')}\n")
    return "\n".join(parts)


def _exit_codes(text: str) -> str:
    """The exit codes of every command, from the help of them all, with the errors of Python that end so."""
    lines, known = (
        ["| Code | Meaning | In Python, of `cf.errors` |", "| --- | --- | --- |"],
        vars(_thing("confide.errors")),
    )
    for code, words in re.findall(r"^(\d+) +(.+)$", text.partition("Exit codes\n")[2], re.MULTILINE):
        own = (f"`{name}`" for name, one in known.items() if code == str(getattr(one, "exit_code", "")))
        lines.append(f"| {code} | {words} | {', '.join(own)} |")
    return "\n".join(lines)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands by their names as they are typed; groups are walked through."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        elif word != "lab":  # comes with the laboratory
            yield f"{name} {word}", command


def _key(one: Any) -> tuple[str, str]:
    return " ".join(one.opts), str(getattr(one, "help", ""))


def _help(text: str) -> str:
    """Help as Markdown: joined paragraphs, examples as they are typed."""
    parts: list[str] = []
    for part in text.replace("\b\n", "").split("\n\n"):
        typed = part.startswith(("confide ", "$ "))
        parts.append(f"```text\n{part}\n```" if typed else " ".join(part.split()))
    return "\n\n".join(_plain(part) for part in parts if part and part != "Example:")


def _plain(text: str) -> str:
    return text.replace("\\[", "[")


def _table(rows: list[str]) -> list[str]:
    return ["| Option | Value | Meaning |", "| --- | --- | --- |", *rows]


def _row(one: Any) -> str:
    opts = [*getattr(one, "opts", ()), *getattr(one, "secondary_opts", ())]
    shown = (
        f"`{(one.metavar or one.name).upper()}`"
        if one.param_type_name == "argument"
        else ", ".join(f"`{opt}`" for opt in opts)
    )
    value = "" if one.param_type_name == "argument" or getattr(one, "is_flag", False) else _value(one)
    cells = (shown, value, _plain(str(getattr(one, "help", None) or "")))
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def _value(one: Any) -> str:
    """How help names the value of an option: by its own word, else by its type."""
    descriptor = getattr(one, "type_descriptor", None)  # of newer versions of Typer
    kind = descriptor.annotation.__name__ if descriptor is not None else one.type.name
    words = {"int": "INTEGER", "str": "TEXT", "Path": "FILE"}
    return f"`{one.metavar or words.get(kind, kind.upper())}`"


#: What is written, by its file.
PAGES = {"python.md": python, "command-line.md": command_line}


def main() -> None:
    """Write the pages of this checkout."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/reference")
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
