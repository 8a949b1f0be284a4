"""`python -m confide.testing.fresh`: infer one release in a process that has seen no record. For the contract; stdin and stdout are JSON.

A method of an importable module is imported. Of a file that was run as a script the definitions alone are executed: imports, classes,
functions and constants. What a script assigns by a call is left out: the call may be a release.
"""

from __future__ import annotations

import ast
import json
import sys
import types
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["definitions"]

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


def main() -> None:
    """Read what to infer, and print the result."""
    given = json.load(sys.stdin)
    sys.path[:] = given["path"]
    from confide.protocol import Release
    from confide.protocol.exact import unpack

    cls: Any = reduce(getattr, given["name"].split("."), _module(given))
    method = cls(**unpack(given["parameters"]))
    sys.stdout.write(method.infer(Release.from_json(given["release"])).to_json())


if __name__ == "__main__":
    main()
