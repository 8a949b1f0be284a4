"""Infer releases in processes that have seen no record. For the contract.

`python -m confide.testing.clean_process` reads what to infer, a line of JSON each, and answers each with a line.
Every answer is from a separate process, forked from one that has loaded what all methods need, no method and no
record. Starting Python again takes several times as long. Where the system has no `fork`, Python is started again for
each.

A method of an importable module is imported. Of a file that was run as a script the definitions alone are executed:
imports, classes, functions and constants. What a script assigns by a call is ignored: the call may be a release.
"""

from __future__ import annotations

import ast
import atexit
import json
import os
import select
import signal
import subprocess
import sys
import traceback
import types
from contextlib import suppress
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

# What nearly every method loads to infer.
_COMMON = ("pandas", "scipy.special", "confide.core", "confide.core.exact", "confide.results")
_FORKS = hasattr(os, "fork")
_COMMAND = (sys.executable, "-m", "confide.testing.clean_process")

_DEFINES = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.If)


def definitions(file: str) -> types.ModuleType:
    """A module of what a script defines, without what it does."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"), file)
    tree.body = [node for node in tree.body if isinstance(node, _DEFINES) and not _acts(node)]
    module = types.ModuleType("script")
    module.__file__ = file
    sys.modules[module.__name__] = module
    exec(compile(tree, file, "exec"), vars(module))
    return module


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does something beside naming a value."""
    plain = isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef)
    return not plain and any(isinstance(part, ast.Call) for part in ast.walk(node))


def _module(given: dict[str, Any]) -> types.ModuleType:
    if given["module"] == "__main__":
        return definitions(given["file"])
    return import_module(given["module"])


def _inferred(given: dict[str, Any]) -> str:
    sys.path[:] = given["path"]
    with suppress(OSError):
        os.chdir(given["folder"])
    from confide.core import Release
    from confide.core.exact import unpack

    cls: Any = reduce(getattr, given["name"].split("."), _module(given))
    method = cls(**unpack(given["parameters"]))
    return str(method.infer(Release.from_json(given["release"])).to_json())


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": _inferred(given)}
    except BaseException as error:  # whatever a method raises, also to end its process, is the answer
        return {"failed": traceback.format_exception_only(error)[-1].strip()}


def _forked(given: dict[str, Any]) -> dict[str, Any]:
    """The answer of a process that ends with it."""
    mine, its = os.pipe()
    if not (child := os.fork()):
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)  # the next lines are not the method's to read
        _end_with(_answer(given), its)
    os.close(its)
    with os.fdopen(mine) as stream:
        said = stream.read()
    _, status = os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(said) if said else {"failed": f"its process ended with status {status}"}
    return found


def _end_with(answer: dict[str, Any], place: int) -> NoReturn:
    with os.fdopen(place, "w") as stream:
        stream.write(json.dumps(answer))
    os._exit(0)


def main() -> None:
    """Answer every line of stdin, until there is none; what methods print goes nowhere."""
    with os.fdopen(os.dup(1), "w") as out:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        for name in _COMMON:
            import_module(name)
        answer = _forked if _FORKS else _answer
        for line in sys.stdin:
            out.write(json.dumps(answer(json.loads(line))) + "\n")
            out.flush()


# The other side ---------------------------------------------------------------------------------------------------

_server: subprocess.Popen[str] | None = None
_owner = 0


def _served() -> subprocess.Popen[str]:
    """The process that answers, of this one's own."""
    global _server, _owner
    if _server is None or _server.poll() is not None or _owner != os.getpid():
        _server = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        _owner = os.getpid()
        atexit.register(_ended, _server)
    return _server


def answered(given: dict[str, Any], patience: float) -> dict[str, Any]:
    """What another process infers from `given`: {"result": the result's JSON} or {"failed": why}.

    patience: seconds that it may take.
    """
    asked, late = (
        json.dumps({"path": sys.path, "folder": str(Path.cwd()), **given}) + "\n",
        f"it takes more than {patience:g} seconds",
    )
    if not _FORKS:
        try:
            return _read(
                subprocess.run(_COMMAND, input=asked, stdout=subprocess.PIPE, text=True, timeout=patience).stdout
            )
        except subprocess.TimeoutExpired:
            return {"failed": late}
    server = _served()
    assert server.stdin is not None and server.stdout is not None
    with suppress(BrokenPipeError):  # a process that died says nothing below, either
        server.stdin.write(asked)
        server.stdin.flush()
    if not select.select([server.stdout], [], [], patience)[0]:
        _ended(server)
        return {"failed": late}
    return _read(server.stdout.readline())


def _ended(server: subprocess.Popen[str]) -> None:
    """With what it forked."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _read(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line) if line else {"failed": "its process died"}
    return found


if __name__ == "__main__":
    main()
