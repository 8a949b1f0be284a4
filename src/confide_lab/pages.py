"""Pages of documentation run: their Python blocks and `confide` command lines, top to bottom, in one folder of their own a page.

A page is plain Markdown. A block marked `python` runs, in the one module of its page; a block without a mark has its lines that begin with
`confide` run, in this process; a block marked `python env=NAME` runs as a program of another package's environment (`benchmarks/rival.py`),
in the same folder; a block marked `python needs=NAME` runs where there is a module of that name or, where the name is in capitals, an
environment variable, and else says that it was not run. What each block prints, and each picture that it writes (.svg, .png), stands below
it in the page that comes back. Nothing else is added: a figure on a built page is one that a command of that page has printed.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confide_lab.benchmarks.rival import NotHere, python_of

__all__ = ["PageFailed", "Picture", "Ran", "blocks", "pages", "run", "with_output"]

_BLOCK = re.compile(r"^```(\w*)(?: env=(\w+)| needs=(\w+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^(```\w+) (?:env|needs)=\w+$", re.MULTILINE)
#: How many columns a printed table may take; what is wider is broken by the commands themselves.
_COLUMNS = "100"
_KINDS = {".svg": "image/svg+xml", ".png": "image/png"}


class PageFailed(AssertionError):
    """A block of a page did not run: which page, which line, what it said."""


@dataclass(frozen=True)
class Picture:
    """A file that a block wrote. words: its name, as words."""

    words: str
    kind: str
    content: bytes


@dataclass(frozen=True)
class Ran:
    """A block that ran. end: where it ends in the page."""

    end: int
    language: str
    text: str
    printed: str
    pictures: tuple[Picture, ...]


def pages(docs: Path) -> list[Path]:
    """The pages of a folder of documentation, in the order of their paths."""
    return sorted(docs.rglob("*.md"))


def blocks(text: str) -> Iterator[re.Match[str]]:
    """The fenced blocks of a page: group 1 is the mark, 2 another package's environment, 3 what it needs, 4 the lines."""
    return _BLOCK.finditer(text)


def run(page: Path) -> list[Ran]:
    """Run a page in an empty folder. Raises `PageFailed` with the page and the line."""
    done: list[Ran] = []
    shown: set[str] = set()
    source, here = page.read_text(), Path.cwd()
    with _alone() as names:
        for block in blocks(source):
            language, rival, needed, text = block.groups()
            commands = [line for line in _joined(text) if line.startswith("confide ")] if not language else []
            if needed and not _has(needed):
                printed = f"not run when this page was built: it needs {needed}"
            elif rival:
                printed = _elsewhere(text, page, rival, here)
            elif language == "python":
                printed = _python("\n" * source.count("\n", 0, block.start(4)) + text, page, names)
            elif commands:
                printed = "\n".join(_command(line, page) for line in commands)
            else:
                continue
            printed = printed.replace(f"{Path.cwd()}/", "")  # the page's own folder has another name each time
            done.append(Ran(block.end(), language, text, printed, tuple(_pictures(shown))))
    return done


def with_output(text: str, ran: list[Ran]) -> str:
    """The page's text with what its blocks printed below them."""
    parts, at = [], 0
    for one in ran:
        parts.append(text[at : one.end])
        if one.printed.strip():
            parts.append(f"\n\n````{{ .text .output }}\n{one.printed.rstrip()}\n````")
        for picture in one.pictures:
            code = base64.b64encode(picture.content).decode()
            parts.append(f'\n\n<img class="figure" alt="{picture.words}" src="data:{picture.kind};base64,{code}">')
        at = one.end
    return _MARK.sub(r"\1", "".join([*parts, text[at:]]))


@contextmanager
def _alone() -> Iterator[dict[str, Any]]:
    """A module and an empty folder for one page; methods that it registers are gone after it."""
    from confide import registry

    known, was, columns = dict(registry._registered), sys.modules.get("page"), os.environ.get("COLUMNS")
    module = types.ModuleType("page")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        sys.modules["page"], os.environ["COLUMNS"] = module, _COLUMNS
        try:
            yield vars(module)
        finally:
            registry._registered.clear()
            registry._registered.update(known)
            sys.modules.pop("page")
            if was is not None:
                sys.modules["page"] = was
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def _has(name: str) -> bool:
    return name in os.environ if name.isupper() else find_spec(name) is not None


def _python(text: str, page: Path, names: dict[str, Any]) -> str:
    out = io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            exec(compile(text, str(page), "exec"), names)
    except Exception as error:
        raise PageFailed(f"{page}: {type(error).__name__}: {error}\n{out.getvalue()}") from error
    return out.getvalue()


def _elsewhere(text: str, page: Path, rival: str, home: Path) -> str:
    """What another package prints; where it cannot be had, the page says so and why."""
    try:
        python = python_of(rival, home)
    except NotHere as why:
        return f"not run when this page was built: {why}"
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env['PATH']}"  # as if activated, for programs that start others
    done = subprocess.run([python, "-W", "ignore", "-c", text], capture_output=True, text=True, env=env)
    if done.returncode:
        raise PageFailed(f"{page}: in an environment of its own\n{done.stdout}{done.stderr}")
    return done.stdout


def _joined(text: str) -> list[str]:
    """The lines of a block of commands; a backslash at the end of one goes on in the next."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def _command(line: str, page: Path) -> str:
    from typer.testing import CliRunner

    from confide.cli import app

    done = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
    if done.exit_code:
        raise PageFailed(f"{page}: {line}\n{done.output}\n{done.exception or ''}")
    return done.output


def _pictures(shown: set[str]) -> Iterator[Picture]:
    """The pictures in the folder that no block before has written, in the order of their names."""
    for file in sorted(Path().glob("*.*")):
        if file.suffix in _KINDS and file.name not in shown:
            shown.add(file.name)
            yield Picture(file.stem.replace("_", " ").replace("-", " "), _KINDS[file.suffix], file.read_bytes())
