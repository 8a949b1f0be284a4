"""No message of an error that is raised in `confide.sources` holds text from records: each is read here, as it stands in the source.

A message is made of constants and of public names alone: where the records are, what the schema and the metadata say, what the caller gave.
That is decided by the names in the code, so that it holds whichever records there are and whoever writes the next message.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import confide.sources

ROOT = Path(confide.sources.__file__).parent

#: What a message may show, by the last name of the expression: `part.place`, `name`, `self._query.database`.
PUBLIC = {
    # where the records are, as the caller or the file system names it
    *("place", "path", "folder", "text", "spool", "name", "names", "table", "database"),
    # columns and types, by schema and metadata: `row` and `inner` are names of rows of codes, `named` of id columns
    *("columns", "kind", "row", "inner", "named"),
    # options as they were given; `where` is the name of an executor
    *("delimiter", "threads", "memory", "where", "skip", "sheet"),
}
#: Of single modules: names of tables, of a variable of the environment, of codecs, of columns that a derived one comes from; how the format
#: of a table is read; two constants.
OWN = {
    "formats/databases.py": {"found", "some"},
    "formats/parquet.py": {"lacking"},
    "formats/read_once.py": {"call"},
    "formats/sheets.py": {"refusal"},
    "row_by_row.py": {"behind"},
}
#: Functions that show what they are given, and nothing else.
SHOWS = {"clean", "fspath", "join", "map", "near_match", "quote", "repr", "str", "tuple", "value"}
#: Functions whose answer is one of a fixed list: a separator of fields, a driver's code for what it refused before any record is read, what
#: is wrong with an address; and a query, which shows its kind alone.
FIXED = {"other_delimiter", "_code", "_by_address", "Query"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def spoken(module: ast.Module, path: str) -> Iterator[str]:
    """What errors of a module say that is neither a constant nor public, with the line."""
    for function in [module, *(one for one in ast.walk(module) if isinstance(one, ast.FunctionDef))]:
        for one in _own(function):
            for message in _messages(one):
                for bad in _doubts(message, function, module, path, frozenset()):
                    yield f"{path}:{one.lineno}: {ast.unparse(bad)}"  # type: ignore[attr-defined]
            if isinstance(one, ast.Raise) and _carries(one):
                yield f"{path}:{one.lineno}: {ast.unparse(one)}"


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function itself, in order, without the functions in it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef):
            yield from _own(child)


def _messages(one: ast.AST) -> list[ast.expr]:
    """The texts of an error that is made, raised here or elsewhere; of `guarded`, which raises its first argument."""
    if not isinstance(one, ast.Call):
        return []
    called = _last(one.func)
    if called == "guarded":
        return one.args[:1]
    return [*one.args, *(word.value for word in one.keywords)] if _is_error(called) else []


def _carries(one: ast.Raise) -> bool:
    """Whether what is raised is another's error, or has one behind it; an error that passes by (`raise` alone) is not made here."""
    cause = one.cause is not None and not (isinstance(one.cause, ast.Constant) and one.cause.value is None)
    raised = one.exc.func if isinstance(one.exc, ast.Call) else one.exc
    return cause or (raised is not None and not _is_error(_last(raised)))


def _is_error(name: str) -> bool:
    known = getattr(builtins, name, None)
    return name.endswith("Error") or (isinstance(known, type) and issubclass(known, BaseException))


def _last(one: ast.AST) -> str:
    if isinstance(one, ast.Subscript):
        return _last(one.value)
    return one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else ""


def _doubts(one: ast.expr, function: ast.AST, module: ast.Module, path: str, met: frozenset[str]) -> Iterator[ast.expr]:
    """The parts of an expression that may be of records."""

    def of(*parts: ast.expr) -> Iterator[ast.expr]:
        for part in parts:
            yield from _doubts(part, function, module, path, met)

    match one:
        case ast.Constant():
            return
        case ast.JoinedStr(values):
            yield from of(*values)
        case ast.FormattedValue(value):
            yield from of(value)
        case ast.BinOp(left, ast.Add(), right):
            yield from of(left, right)
        case ast.BoolOp(_, values):
            yield from of(*values)
        case ast.IfExp(_, body, orelse):
            yield from of(body, orelse)
        case ast.Attribute(ast.Call(ast.Name("type")), "__name__"):
            return
        case ast.Call(func) if _last(func) in FIXED:
            return
        case ast.Call(func, args) if _last(func) in SHOWS:
            yield from of(*([func.value] if isinstance(func, ast.Attribute) and _last(func) == "join" else []))
            yield from of(*(arg for arg in args if _last(arg) not in SHOWS))
        case ast.Call(func) if _last(func) in PUBLIC:
            return
        case _ if _last(one) in PUBLIC | OWN.get(path, set()):
            return
        case ast.Name(name) if name not in met and (given := _given(name, function) or _constant(name, module)):
            for value in given:
                yield from _doubts(value, function, module, path, met | {name})
        case _ if path == "coding.py" and isinstance(function, ast.FunctionDef) and function.name == "guarded":
            return  # its message is read where it is called
        case _:
            yield one


def _given(name: str, function: ast.AST) -> list[ast.expr]:
    """What a function assigns to a name of its own."""
    found: list[ast.expr] = []
    for one in _own(function):
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
            for target in one.targets if isinstance(one, ast.Assign) else [one.target]:
                pairs = [(target, one.value)]
                if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    pairs = list(zip(target.elts, one.value.elts, strict=True))
                found += [value for own, value in pairs for node in ast.walk(own) if getattr(node, "id", "") == name]
    return found


def _constant(name: str, module: ast.Module) -> list[ast.expr]:
    """The value of a constant of the module, or of the one of `confide.sources` that it is imported from."""
    if not name.isupper():
        return []
    for one in module.body:
        if isinstance(one, ast.Assign) and any(_last(target) == name for target in one.targets):
            return [one.value]
        if isinstance(one, ast.ImportFrom) and any(own.name == name for own in one.names):
            home = ROOT.parents[1].joinpath(*str(one.module).split(".")).with_suffix(".py")
            return _constant(name, tree(home)) if home.is_relative_to(ROOT) else []
    return []


@pytest.mark.parametrize("path", sorted(one.relative_to(ROOT).as_posix() for one in ROOT.rglob("*.py")))
def test_no_error_says_what_came_from_records(path: str) -> None:
    assert not list(spoken(tree(ROOT / path), path))


@pytest.mark.parametrize(
    "planted",
    [
        "raise SourceError(one['failed'])",
        "raise SourceError(str(error))",
        "raise SourceError(f'the record says {cell}')",
        "raise SourceError(f'{self.place}: {cell!r}')",
        "raise SourceError('a record says ' + cell)",
        "raise SourceError('a record says %s' % cell)",
        "raise SourceError('a record says {}'.format(cell))",
        "raise SourceError(', '.join(cells))",
        "raise SourceError('bad', cell)",
        "raise SourceError('bad') from error",
        "raise error",
        "problem = SourceError(f'{cell}')",
        "guarded(f'{cell} could not be read', action)",
        "said = 'fixed' if cell else cell\nraise SourceError(said)",
        "said = cell\nraise SourceError(said)",
        "_SAID = read()\nraise SourceError(_SAID)",
        "def deeper():\n    raise ValueError(f'{len(rows)} rows')",
        "raise OSError(2, cell)",
    ],
)
def test_planted_words_are_found(planted: str) -> None:
    assert list(spoken(ast.parse(planted), "planted.py"))


@pytest.mark.parametrize(
    "fixed",
    [
        "_SAID = 'fixed'\nraise SourceError(_SAID)",
        "raise SourceError(f'{self.place} has no column {name!r}; it has {\", \".join(names)}') from None",
        "said = f'{part.place} could not be read'\nguarded(said, action)",
        "raise SourceError(f'cannot read a {type(data).__name__}')",
        "raise",
        "raise OSError",
    ],
)
def test_fixed_words_are_let_by(fixed: str) -> None:
    assert not list(spoken(ast.parse(fixed), "planted.py"))
