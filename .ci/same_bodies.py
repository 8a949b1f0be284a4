"""Which functions of a commit stand nowhere today with the same body: what a move may not change.

    python .ci/same_bodies.py COMMIT [FOLDER ...]    functions of these folders of src/confide (default: those that carry proofs, DESIGN 15)

A body is compared as a syntax tree without docstrings and imports, so that it may move, be wrapped anew and be told in other words.
Exit code 1 where one is nowhere.
"""

from __future__ import annotations

import ast
import io
import pathlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator

PROOFS = (
    "protocol",
    "core",
    "aggregates",
    "sums",
    "noise",
    "guarantees",
    "schema",
    "sources",
    "ledger",
    "gate",
    "engine",
    "audit/watching",
    "audit/replay",
)


def functions(name: str, text: str) -> Iterator[tuple[str, str]]:
    """(where, body) of each function of one file; the methods of a class by the class's name."""

    def walk(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield f"{name}:{inner.lineno} {place}{inner.name}", body(inner)
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from walk(inner, f"{place}{inner.name}.")
            else:
                yield from walk(inner, place)

    yield from walk(ast.parse(text), "")


def body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kept = [part for part in function.body if not _is_text(part) and not isinstance(part, (ast.Import, ast.ImportFrom))]
    return "; ".join([ast.dump(function.args), *(ast.dump(part) for part in kept)])


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def main(commit: str, *folders: str) -> int:
    packed = subprocess.run(["git", "archive", commit, "src/confide"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        before = {
            one.name.removeprefix("src/confide/"): files.extractfile(one).read().decode()  # type: ignore[union-attr]
            for one in files.getmembers()
            if one.name.endswith(".py")
        }
    now = {
        found
        for path in pathlib.Path("src").rglob("*.py")
        for _, found in functions(path.name, path.read_text(encoding="utf-8"))
    }
    asked = folders or PROOFS
    lost = [
        where
        for name, text in sorted(before.items())
        if name.startswith(tuple(f"{folder}/" for folder in asked))
        for where, found in functions(name, text)
        if found not in now
    ]
    print("\n".join(lost) or "each body stands somewhere today")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
