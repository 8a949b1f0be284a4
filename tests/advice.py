"""What a refusal tells to write, read out of its message, held to what there is, and followed.

`checked` is asked of every message of confide that any test raises (`tests/conftest.py`): its calls must be there and take the settings
that they are told with, and those of public facts alone are made. `followed` does what a refusal of a given call says.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import confide as cf

#: Where confide's names stand that messages give without their room.
_ROOMS = (
    *("", "tests", "intervals", "local", "audit", "guarantees", "noise", "sklearn", "schema"),
    *(stub.stem for stub in Path(cf.__file__).parent.glob("*.pyi")),
)
_CALL = re.compile(r"(?<![\w.`'\"])((?:cf\.|confide\.)?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\(")
_WRITE = re.compile(r"(?:\b(?:write|declare it as|declare|take|give|or) |  Try      )(?=['\"A-Za-z_{])")
_KEYWORD = re.compile(r"[a-z_]\w*=(?!=)")
# Made where all that they are given is written out: they are public facts, and cost nothing.
_FACTS = (cf.Numeric, cf.Integer, cf.Categorical, cf.Unit, cf.GDP, cf.ZCDP, cf.PureDP, cf.ApproxDP)


def codes(message: str) -> Iterator[str]:
    """The Python that a message tells to write: calls, settings, a formula or an entry of a schema in quotes."""
    for found in _WRITE.finditer(message):
        text = _longest(message, found.end())
        if text:
            yield text


def calls(message: str) -> Iterator[ast.Call]:
    """Every call of a message that has names of confide."""
    for found in _CALL.finditer(message):
        for text in _prefixes(message, found.start()):
            call = _parsed(text)
            if isinstance(call, ast.Call):
                yield call
                break


def checked(message: str) -> str:
    """What is wrong with the calls of a message; "" where nothing is."""
    for call in calls(message):
        name = ast.unparse(call.func)
        made = _object(name)
        if made is None:
            if name.startswith(("cf.", "confide.")) and all(part.isidentifier() for part in name.split(".")):
                return f"there is no {name}"
            continue
        keywords = [one.arg for one in call.keywords if one.arg is not None]
        wrong = _refused_keyword(made, keywords)
        if wrong:
            return f"{name} takes no {wrong}"
        if made in _FACTS and not any(one is Ellipsis for one in _values(call)):
            try:
                made(*map(ast.literal_eval, call.args), **{k.arg: ast.literal_eval(k.value) for k in call.keywords})
            except ValueError as error:  # a value that is no literal, or a refusal
                if isinstance(error, cf.errors.ConfideError):
                    return f"{ast.unparse(call)} is refused: {error}"
    return ""


def followed(call: str, message: str, place: int = 0) -> str:
    """The call with what the message tells to write, the advice of that place, put in."""
    advice = list(codes(message))[place]
    tree = ast.parse(call, mode="eval")
    return ast.unparse(_Follow(advice).visit(tree))


class _Follow(ast.NodeTransformer):
    """Puts a piece of advice into a call: a setting to the call that takes it, a call in the place of one like it, a formula in the place
    of one, an entry into the schema."""

    def __init__(self, advice: str) -> None:
        self.advice, self.done = advice, False
        self.settings = _settings(advice)
        parsed = None if self.settings else _parsed(advice) or _parsed(f"{{{advice}}}")
        self.call = parsed if isinstance(parsed, ast.Call) else None
        self.entry = parsed if isinstance(parsed, ast.Dict) and isinstance(parsed.keys[0], ast.Constant) else None
        if (
            self.call is not None
            and self.call.args
            and all(_open(one) for one in self.call.args)
            and self.call.keywords
        ):
            # a call that leaves its questions open tells its settings
            self.settings, self.call = self.call.keywords, None
        self.text = parsed.value if isinstance(parsed, ast.Constant) and isinstance(parsed.value, str) else None

    def visit(self, node: ast.AST) -> Any:
        found = super().visit(node)
        if isinstance(node, ast.Expression):
            assert self.done, f"no place for {self.advice!r} in {ast.unparse(node)!r}"
        return found

    def visit_Call(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func)
        if self.call is not None and not self.done and _like(name, ast.unparse(self.call.func)):
            self.done = True
            return self._filled(node)
        self.generic_visit(node)
        made = _object(name)
        if (
            self.settings
            and not self.done
            and made is not None
            and not _refused_keyword(made, [one.arg for one in self.settings])
        ):
            self.done = True
            names = {one.arg for one in self.settings}
            node.keywords = [one for one in node.keywords if one.arg not in names] + self.settings
        return node

    def _filled(self, node: ast.Call) -> ast.Call:
        """The advised call, with what it leaves open as it was."""
        assert self.call is not None
        open_ = [
            isinstance(one, ast.Name) or (isinstance(one, ast.Constant) and one.value is Ellipsis)
            for one in self.call.args
        ]
        own = [
            node.args[place] if left and place < len(node.args) else one
            for place, (left, one) in enumerate(zip(open_, self.call.args, strict=True))
        ]
        args = list(node.args) if not self.call.args or all(open_) else own
        given = {one.arg: one for one in node.keywords} if any(open_) else {}
        given |= {one.arg: one for one in self.call.keywords}
        func = node.func if _object(ast.unparse(node.func)) is _object(ast.unparse(self.call.func)) else self.call.func
        found = _object(ast.unparse(func))
        if not isinstance(func, ast.Attribute) and found is not None:
            func = ast.parse(_spelled(found), mode="eval").body
        return ast.Call(func, args, list(given.values()))

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        if self.entry is not None:
            keys = [ast.literal_eval(key) for key in node.keys if key is not None]
            (name,) = [ast.literal_eval(key) for key in self.entry.keys if key is not None]
            if name in keys:
                node.values[keys.index(name)] = self.entry.values[0]
                self.done = True
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        if (
            self.text is not None
            and not self.done
            and isinstance(node.value, str)
            and ("~" in node.value) == ("~" in self.text)
        ):
            self.done = True
            return ast.Constant(self.text)
        return node


def _open(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and node.value is Ellipsis)


def _like(name: str, advised: str) -> bool:
    """Whether one call may stand in the place of another: the same, or both of a method."""
    first, second = _object(name), _object(advised)
    if first is None or second is None:
        return False
    methods = [isinstance(one, type) and issubclass(one, cf.core.Method) for one in (first, second)]
    return first is second or all(methods) or (first in _FACTS[:3] and second in _FACTS[:3])


@cache
def _named() -> dict[str, Any]:
    """The public names of confide's rooms, by the name alone."""
    found: dict[str, Any] = {}
    for room in _ROOMS:
        module = cf if not room else getattr(cf, room, None) or importlib.import_module(f"confide.{room}")
        for name in getattr(module, "__all__", None) or dir(module):
            if not name.startswith("_"):
                found.setdefault(name, getattr(module, name, None))
    return found


@cache
def _spelled(made: Any) -> str:
    for room in _ROOMS:
        module = getattr(cf, room) if room else cf
        if getattr(module, made.__name__, None) is made:
            return f"cf.{room}.{made.__name__}" if room else f"cf.{made.__name__}"
    raise AssertionError(f"{made} has no public name")


def _object(name: str) -> Any:
    """What a name stands for; None where nobody knows."""
    parts = name.split(".")
    if parts[0] in ("cf", "confide"):
        made: Any = cf
        for part in parts[1:]:
            made = getattr(made, part, None)
        return made
    # a name of small letters may be a verb of a result, a function of formulas, a word of prose
    return _named().get(name) if len(parts) == 1 and name[:1].isupper() else None


def _refused_keyword(made: Any, keywords: list[Any]) -> str:
    try:
        known = inspect.signature(made).parameters
    except (TypeError, ValueError):
        return ""
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        return ""
    return next((name for name in keywords if name not in known), "")


def _values(call: ast.Call) -> Iterator[Any]:
    for node in ast.walk(call):
        if isinstance(node, ast.Constant):
            yield node.value


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _settings(text: str) -> list[ast.keyword]:
    call = _parsed(f"f({text})")
    return call.keywords if isinstance(call, ast.Call) and not call.args and _KEYWORD.match(text) else []


def _prefixes(message: str, start: int) -> Iterator[str]:
    """The text from a place on to each place where brackets are closed."""
    depth, quote = 0, ""
    for end in range(start, min(len(message), start + 600)):
        letter = message[end]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
            if letter in ")]}" and depth == 0:
                yield message[start : end + 1]
            if depth < 0:
                return


def _longest(message: str, start: int) -> str:
    """The longest piece of Python from a place on that is a call, settings, text in quotes or an entry of a dictionary."""
    best, depth, quote = "", 0, ""
    for end in range(start, min(len(message), start + 600) + 1):
        letter = message[end] if end < len(message) else ";"
        if not depth and not quote and letter in " ,;.)":
            text = message[start:end]
            parsed = _parsed(text)
            entry = _parsed(f"{{{text}}}")
            whole = isinstance(parsed, ast.Call) or (isinstance(parsed, ast.Constant) and isinstance(parsed.value, str))
            if whole or _settings(text) or isinstance(entry, ast.Dict):
                best = text
            if letter in ";)":
                break
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
            if depth < 0:
                break
    return best


def public(name: str) -> Any:
    """What a name without its room stands for; None where nobody knows."""
    return _named().get(name)
