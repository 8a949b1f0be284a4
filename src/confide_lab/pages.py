"""Pages of documentation run: their Python blocks and `confide` command lines, top to bottom, in one folder of their own a page.

A page is plain Markdown. A block marked `python` runs, in the one module of its page; a block without a mark has its lines that begin with
`confide` run, in this process; a block marked `python env=NAME` runs as a program of another package's environment (`benchmarks/rival.py`),
in the same folder; a block marked `python needs=NAME` runs where there is a module of that name or, where the name is in capitals, an
environment variable, and else says that it was not run. Pictures that a block writes (.svg, .png) stand below it in the built page.
Nothing else is added: a figure on a built page is one that a command of that page has printed.

What a block prints stands in the Markdown itself, in a fence marked `output` directly below it, and is compared with a run. The draws
of a run are the same each time, and IDs, days and folders have stand-ins (`confide_lab.repeatable`).

    python -m confide_lab.pages docs/howto/mean.md            run the page, compare, print a diff; exit code 1 where it differs
    python -m confide_lab.pages --write docs/howto/mean.md    run the page and write its outputs

A page with no such fence is built with what it prints that time, unless it is in a folder of pages that keep their outputs.
"""

from __future__ import annotations

import argparse
import base64
import difflib
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
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from confide_lab.benchmarks.rival import NotHere, python_of
from confide_lab.repeatable import masked, repeatable

__all__ = [
    "PageFailed",
    "Picture",
    "Ran",
    "blocks",
    "difference",
    "keeps",
    "main",
    "pages",
    "run",
    "with_output",
    "written",
]

_BLOCK = re.compile(r"^```(\w*)(?: env=(\w+)| needs=(\w+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What a block printed, as it stands in a page.
_OUTPUT = re.compile(r"^```output\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_BELOW = re.compile(r"\s*^```output\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: Folders in which every page has its outputs in its Markdown.
_KEPT = ("tutorial", "howto", "explain")
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
    """A block that ran. end: where it ends in the page; here: False where what it needs is not on this machine."""

    end: int
    language: str
    text: str
    printed: str
    pictures: tuple[Picture, ...]
    here: bool = True


def pages(docs: Path) -> list[Path]:
    """The pages of a folder of documentation, in the order of their paths."""
    return sorted(docs.rglob("*.md"))


def blocks(text: str) -> Iterator[re.Match[str]]:
    """The fenced blocks of a page: group 1 is the mark, 2 another package's environment, 3 what it needs, 4 the lines."""
    return _BLOCK.finditer(text)


def keeps(page: Path) -> bool:
    """Whether the outputs of a page stand in its Markdown."""
    return page.parent.name in _KEPT or bool(_OUTPUT.search(page.read_text()))


def run(page: Path) -> list[Ran]:
    """Run a page in an empty folder. Raises `PageFailed` with the page and the line."""
    done: list[Ran] = []
    shown: set[str] = set()
    source, home, began = page.read_text(), Path.cwd(), datetime.now(UTC)
    with _alone() as names, repeatable() as draws:
        for block in blocks(source):
            language, rival, needed, text = block.groups()
            commands = [line for line in _joined(text) if line.startswith("confide ")] if not language else []
            here = True
            draws.start(text)
            if needed and not _has(needed):
                printed, here = f"not run when this page was built: it needs {needed}", False
            elif rival:
                printed, here = _elsewhere(text, page, rival, home)
            elif language == "python":
                printed = _python("\n" * source.count("\n", 0, block.start(4)) + text, page, names)
            elif commands:
                printed = "\n".join(_command(line, page) for line in commands)
            else:
                continue
            folders = [str(Path.cwd()), str(home)]  # the page's own folder has another name each time
            printed = masked(printed, began, folders)
            done.append(Ran(block.end(), language, text, printed, tuple(_pictures(shown)), here))
    return done


def written(text: str, ran: list[Ran]) -> str:
    """The page's text with an `output` fence below each block that printed; below one that did not run what stood there.

    Raises `PageFailed` where what was printed cannot stand in a fence.
    """
    parts, at = [], 0
    for one in ran:
        parts.append(_OUTPUT.sub("", text[at : one.end]))
        below = _BELOW.match(text, one.end)
        at = below.end() if below else one.end
        printed = one.printed if one.here else below[1] if below else ""
        if re.search(r"^```", printed, re.MULTILINE):
            raise PageFailed(f"a line that is printed begins with ```, which would end its fence:\n{printed}")
        if printed.strip():
            parts.append(f"\n\n```output\n{_trimmed(printed)}\n```")
    return "".join([*parts, _OUTPUT.sub("", text[at:])])


def difference(page: Path, ran: list[Ran]) -> str:
    """What differs between the outputs that stand in a page and those of a run; "" where nothing does."""
    stands, found = page.read_text(), written(page.read_text(), ran)
    if stands == found:
        return ""
    command = f"written {page}, run: python -m confide_lab.pages --write {page}"
    return "\n".join(
        difflib.unified_diff(stands.splitlines(), found.splitlines(), str(page), command, lineterm="", n=2)
    )


def with_output(text: str, ran: list[Ran]) -> str:
    """The page's text for the site: outputs drawn as such, with what its blocks printed and the pictures below them."""
    parts, at = [], 0
    for one in ran:
        parts.append(text[at : one.end])
        below = _BELOW.match(text, one.end)
        at = below.end() if below else one.end
        printed = below[1] if below else one.printed
        if printed.strip():
            parts.append(f"\n\n```output\n{printed.rstrip()}\n```")
        for picture in one.pictures:
            code = base64.b64encode(picture.content).decode()
            parts.append(f'\n\n<img class="figure" alt="{picture.words}" src="data:{picture.kind};base64,{code}">')
    whole = "".join([*parts, text[at:]])
    return _MARK.sub(r"\1", _OUTPUT.sub(lambda found: f"````{{ .text .output }}\n{found[1]}````", whole))


def _trimmed(printed: str) -> str:
    """Without empty lines at its end and empty places at the ends of lines, which editors take away."""
    return "\n".join(line.rstrip() for line in printed.rstrip().splitlines())


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


def _elsewhere(text: str, page: Path, rival: str, home: Path) -> tuple[str, bool]:
    """What another package prints, and True; where it cannot be had, that and why, and False."""
    try:
        python = python_of(rival, home)
    except NotHere as why:
        return f"not run when this page was built: {why}", False
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env['PATH']}"  # as if activated, for programs that start others
    done = subprocess.run([python, "-W", "ignore", "-c", text], capture_output=True, text=True, env=env)
    if done.returncode:
        raise PageFailed(f"{page}: in an environment of its own\n{done.stdout}{done.stderr}")
    return done.stdout, True


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


def main(arguments: list[str] | None = None) -> int:
    """Compare or write the outputs of pages; 1 where a page differs."""
    parser = argparse.ArgumentParser(
        prog="python -m confide_lab.pages", description="Run pages and compare what they print."
    )
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE.md")
    parser.add_argument("--write", action="store_true", help="write the outputs into the pages")
    options = parser.parse_args(arguments)
    wrong = 0
    for page in options.pages:
        ran = run(page.resolve())
        if options.write:
            page.write_text(written(page.read_text(), ran))
        elif keeps(page) and (said := difference(page, ran)):
            sys.stdout.write(f"{said}\n")
            wrong += 1
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
