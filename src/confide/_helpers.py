"""Loading at first use, in one place: names of a package, whole libraries, and a part of a library without the rest of it.

`confide --version` must not wait for NumPy, nor a schema's check for pandas. Type checkers read the ordinary imports that stand beside
each use under TYPE_CHECKING.

Text that a terminal, a plot and a page can show as it is.

The glossary, `glossary.toml`: one name for one thing. What prints statuses and flags reads their severities here.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.resources import files
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_SYNTAX_ALONE = 0x400  # ast.PyCF_ONLY_AST, of a library that a start does without


def stubbed(package: str, stub: Path) -> dict[str, Any]:
    """What a module consists of whose public names stand once, in its stub file: `__getattr__`, `__dir__`, `__all__` and `__doc__`.

    Read of the stub: its docstring; `from place import name as name`, which is public, and `from place import name`, which is not; and
    `name: type = made(argument, ...)`, a call that is made when the name is first asked for.
    """
    tree: Any = compile(stub.read_text(encoding="utf-8"), str(stub), "exec", _SYNTAX_ALONE)
    homes: dict[str, tuple[str, str]] = {}
    calls: dict[str, Any] = {}
    public: list[str] = []
    for node in tree.body:
        match type(node).__name__:
            case "ImportFrom":
                homes |= {one.asname or one.name: (node.module, one.name) for one in node.names}
                public += [one.asname for one in node.names if one.asname]
            case "AnnAssign":
                calls[node.target.id] = node.value
                public.append(node.target.id)

    def imported(name: str) -> Any:
        place, own = homes[name]
        home = import_module(place)
        return import_module(f"{place}.{own}") if place == package or not hasattr(home, own) else getattr(home, own)

    def value(node: Any) -> Any:
        match type(node).__name__:
            case "Call":
                return value(node.func)(*map(value, node.args))
            case "Name":
                return imported(node.id)
            case _:
                return node.value

    def fetch(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = value(calls[name]) if name in calls else imported(name)
        setattr(sys.modules[package], name, found)
        return found

    first = tree.body[0]
    said = first.value.value if type(first).__name__ == "Expr" else None
    made = {"__getattr__": fetch, "__dir__": lambda: sorted(public), "__all__": sorted(public)}
    return made if said is None else {**made, "__doc__": said}


def rooms(package: str, folder: Path) -> None:
    """Make a module of each stub of a folder without a Python file of that name: it has only names of other places."""
    for stub in folder.glob("*.pyi"):
        if not stub.with_suffix(".py").exists():
            name = f"{package}.{stub.stem}"
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None, origin=str(stub))
            vars(module).update(stubbed(name, stub))
            sys.modules[name] = module
            setattr(sys.modules[package], stub.stem, module)


class _Later:
    """A library that is loaded when one of its names is first read."""

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(import_module(self.__dict__["__name__"]), name)
        return found


def later(name: str) -> Any:
    """Stands for the module `name`, which is loaded when one of its names is first read.

    >>> later("json").dumps([1])
    '[1]'
    """
    return sys.modules.get(name) or _Later(name)


_whole = threading.RLock()


def opened(package: str) -> None:
    """Make modules of `package` importable before its own `__init__`, which then runs when one of its names is first asked for.

    For a package of which a small part is wanted and whose `__init__` loads far more. Nobody who imports the package sees a difference.

    >>> opened("formulaic")
    >>> import formulaic
    >>> formulaic.Formula("y ~ a").lhs
    y
    """
    if package in sys.modules:
        return
    spec = find_spec(package)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    module, loader, waiting = module_from_spec(spec), spec.loader, [True]

    def complete(name: str) -> Any:
        with _whole:
            if waiting and not name.startswith("__path"):
                waiting.clear()
                loader.exec_module(module)
        if name in vars(module):
            return vars(module)[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = complete
    sys.modules[package] = module


difflib, html = later("difflib"), later("html")

_EVERY = 10.0  # seconds between two lines of progress


def clean(text: str) -> str:
    r"""Text on one line that a terminal, a plot and a page show as it is; what does not print becomes an escape.

    Names come from files that others wrote: control characters could repaint a terminal or turn a line around.

    >>> clean("age\n\x1b[2J")
    'age\\n\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def as_html(text: str) -> str:
    r"""Lines of text for a notebook, in a typewriter's font and with nothing in them that a page would run.

    >>> as_html("mu < 1\nspent")
    '<pre>mu &lt; 1\nspent</pre>'
    """
    return f"<pre>{html.escape(chr(10).join(map(clean, text.splitlines())))}</pre>"


def near_match(name: str, names: tuple[str, ...]) -> str:
    """Words that point at the most similar of some names, or nothing.

    >>> near_match("agee", ("age", "income"))
    " (did you mean 'age'?)"
    """
    return "".join(f" (did you mean {found!r}?)" for found in nearest(name, names, 1))


def nearest(name: str, names: Iterable[str], most: int) -> list[str]:
    """The most similar of some names, best first, of which there may be none.

    >>> nearest("agee", ("age", "income"), 1)
    ['age']
    """
    lowered = {known.lower(): known for known in reversed([*names])}
    return [lowered[found] for found in difflib.get_close_matches(name.lower(), [*lowered], n=most)]


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr in a terminal, elsewhere a line every ten seconds: a large grid may take minutes."""
    if not sys.stderr.isatty():
        from time import monotonic

        last = monotonic()

        def line(done: int, of: int, what: str) -> None:
            nonlocal last
            if monotonic() - last > _EVERY:
                last = monotonic()
                sys.stderr.write(f"{name}: step {done} of {of}, {what}\n")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name)

        def step(done: int, of: int, what: str) -> None:
            bar.update(task, completed=done, total=of, description=what)

        yield step


class _Quiet:
    """Warnings off while any release runs, or code that is silenced: their words may come from records.

    Python's filters belong to the whole process, so releases in several threads share one change of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._filters = warnings.catch_warnings()
                self._filters.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._filters.__exit__(None, None, None)


QUIET = _Quiet()


@cache
def _heads() -> Mapping[str, str]:
    pairs = [
        (own.get("column", own["id"]), own["head"])
        for own in terms().values()
        if own["kind"] in ("column", "flag") and "head" in own
    ]
    return dict(reversed([one for names, heads in pairs for one in zip(names.split(", "), heads.split(", "))]))  # noqa: B905


def head(column: str) -> str:
    """What the glossary prints above a column of a frame; of a column that it does not have, its name.

    >>> head("std_err"), head("p_none"), head("wage")
    ('std. err.', 'P(no label)', 'wage')
    """
    return _heads().get(column, column)


@cache
def terms() -> Mapping[str, Mapping[str, Any]]:
    """The entries of the glossary by their ids."""
    import tomllib  # here, because most starts do without it

    text = files("confide").joinpath("glossary.toml").read_text(encoding="utf-8")
    return {entry["id"]: entry for entry in tomllib.loads(text)["term"]}


def flag_letter(flag: str) -> str:
    """How a flag is printed in a row: by its letter, or by its name if it has none.

    >>> flag_letter("noise_dominates"), flag_letter("E"), flag_letter("of_a_third_party")
    ('N', 'E', 'of_a_third_party')
    """
    return _heads().get(f"flag_{flag.lower()}", flag)


def is_flag(name: str) -> bool:
    """Whether a word is the name of a flag."""
    return f"flag_{name.lower()}" in terms()


def severity(flag: str) -> str:
    """What a flag means for the use of a number: "note", good to know; "caution", weigh it before use; "alarm", do not use it.

    A flag that the glossary does not have, as of a third party's method, is a caution.

    >>> severity("tail_assumption"), severity("whole_range"), severity("of_a_third_party")
    ('note', 'alarm', 'caution')
    """
    return str(terms()[f"flag_{flag.lower()}"]["severity"]) if is_flag(flag) else "caution"


def flag_definition(flag: str) -> str:
    """What the glossary says of a flag that it has.

    >>> flag_definition("whole_range")
    'The interval is the whole declared range: this cell says nothing.'
    """
    return str(terms()[f"flag_{flag.lower()}"]["definition"])


def status_severity(status: str) -> str:
    """What a status means for the use of a result: "good", "caution" or "alarm".

    >>> status_severity("valid"), status_severity("declined")
    ('good', 'alarm')
    """
    return str(terms()[f"status_{status}"]["severity"])
