"""Messages as a command line spells them: the Python that a message tells to write becomes commands, options and lines of files.

A message is written once, for everyone, with calls and settings of Python. Here they are found and read as Python, by Python's own parser,
and no sentence is known: a call by the name that it calls (`_Speaker.said`), a name of confide without a call, and a setting NAME=VALUE.
A setting becomes the option of the running command, else `--param NAME=VALUE`; a line of the publication's file, where the message is
about one of its analyses; or one of the schema's file, where "in the schema" follows. A call with an argument that no option can say is
asked in Python, and is said so: none of its arguments is dropped. What is none of these is left as it is.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import confide as cf

if TYPE_CHECKING:
    from confide.core import Plan


_SIZES = {"GDP": "--mu", "ZCDP": "--rho", "PureDP": "--epsilon", "ApproxDP": "--epsilon"}
_COLUMNS = {"Numeric": ("low", "high"), "Integer": ("low", "high"), "Categorical": ("levels",)}
#: What a verb of a result asks, as an option of `confide infer`.
_BEYOND = {
    "get_prediction": "--predict ROWS.csv",
    "predict": "--predict ROWS.csv",
    "odds_ratios": "--ratios",
    "rate_ratios": "--ratios",
    "calibrate": "--calibrate margins.csv",
}
#: What a survey's design alone has.
_DESIGN = ("psus",)
#: Options of releases, which plans speak of too; and what is stated as often as it is to be written.
_OF_RELEASES, _STATED = (
    ("charge_delta", "convert_ledger"),
    ("mu", "rho", "epsilon", "delta", "n", "relation", "dataset", "unit"),
)

_CALL = re.compile(r"(?<![\w.`'\"])((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)\(")
_NAME = re.compile(r"(?<![\w.`'\"])cf\.([a-z_][\w.]*\w)(?![\w(])|(?<![\w.`'\"])cf\.([a-z_]+\.[A-Z]\w*)(?![\w(.])")
_SETTING = re.compile(r"(?<!--param )(?<![\w.\"'`=(\[{])[a-z_]\w*=(?=[^\s=])")
#: What tells to write the setting that follows.
_LEAD, _LEADS = re.compile(r"\b(?:write|take|give|ask|instance|or|declare)\s+$"), 100
#: What stands before a call that says it already.
_BEFORE = re.compile(r"\b(?:(privacy|budget|ledger|cluster)|(unit))=$|'([^']+)': $")
#: A result's verbs behind a command that prints it.
_VERBS = re.compile(r"\.(?:\w+\([^()]*\))")
_LONGEST = 400
_OPEN = object()
_IN_PYTHON = "this is asked in Python: "


def for_command_line(
    message: str,
    *,
    ledger: str | None = None,
    dataset: str | None = None,
    analysis: str | None = None,
    options: Collection[str] = (),
    priced: Callable[[str], str] | None = None,
) -> str:
    """The message with its calls and settings as commands and options.

    ledger, dataset: of the command line, for calls that speak of one without naming it. `analysis`: of a publication's file, where the
    message is about one. `options`: of the command that runs. `priced`: how a privacy is asked for, where a charge was refused.

    >>> for_command_line("write bandwidth=0.05, or declare it as cf.Integer(0, 1)")
    'write --param bandwidth=0.05, or declare it as kind = "integer", low = 0, high = 1'
    >>> for_command_line("write cf.tables.counts(..., inference='dataset')", options={"--inference"})
    'write --inference dataset'
    >>> for_command_line("write margin={'count': 60}, n=4000", analysis="a")
    'write margin = { count = 60 } in [analyses.a], n = 4000 at the top of the file'
    >>> for_command_line("the charge GDP(mu=1, add-remove) is GDP(1.5)")
    'the charge GDP(mu=1, add-remove) is --mu 1.5'
    """
    return _Speaker(frozenset(options), analysis, ledger, dataset, priced).whole(message)


def as_said(text: str, options: Collection[str] = ()) -> str:
    """A plan or a table with the settings that it advises as options; its lines stay as long as they are, but for that.

    >>> as_said("declare it within [0, 140], or ask limit='none'")
    'declare it within [0, 140], or ask --param limit=none'
    """
    return _Speaker(frozenset(options)).settings(text, led=True)


def plan_command(planned: Plan, options: str, *, ledger: str | None, dataset: str | None) -> str:
    """The `confide plan` that asks the same for another price."""
    from confide import registry
    from confide.core import parameters_of

    file = ["--schema schema.toml", options]
    if planned.children:
        return " ".join(["confide plan publication.toml", *file, "-o smaller.json"])
    kind = registry.get(planned.method.name)
    known = {field.name: field for field in fields(kind)}
    (first, *others) = [known[name] for name in parameters_of(kind)]
    given: Mapping[str, Any] = {"where": None, **planned.method.parameters}
    words = ["confide plan", shlex.quote(str(given[first.name])), *file, "--method", planned.method.name]
    for field in others:
        value = given.get(field.name, field.default)
        if value != field.default:
            words += ["--param", shlex.quote(f"{field.name}={json.dumps(value)}")]
    words += [] if planned.planned_n is None else ["--n", str(planned.planned_n)]
    words += [] if ledger is None else ["--ledger", _shown(ledger)]
    words += [] if ledger is None or dataset is None else ["--dataset", shlex.quote(dataset)]
    return " ".join([*words, "-o smaller.json"])


def typed(word: str) -> str:
    """A word as it is typed in a shell, in double quotes where it needs some.

    >>> typed("income ~ sex"), typed("a$b"), typed("age")
    ('"income ~ sex"', "'a$b'", 'age')
    """
    return word if (quoted := shlex.quote(word)) == word else quoted if set('"$`!\\') & set(word) else f'"{word}"'


def _shown(ledger: str | None) -> str:
    """A ledger as a command names it; a URL may hold a password and is never repeated."""
    return "LEDGER" if ledger is None or "://" in ledger else shlex.quote(ledger)


@dataclass(frozen=True)
class _Speaker:
    """How one message is said. analysis: of a publication's file, where it is about one."""

    options: frozenset[str]
    analysis: str | None = None
    ledger: str | None = None
    dataset: str | None = None
    priced: Callable[[str], str] | None = None

    def whole(self, text: str) -> str:
        """Calls, then names without a call, then settings."""
        return self.settings(_NAME.sub(lambda name: self._named(name[1] or name[2]) or name[0], self.calls(text)))

    def calls(self, text: str) -> str:
        """Every call that is known, by its command."""
        done, place = "", 0
        while (found := _CALL.search(text, place)) is not None:
            end = _closed(text, found.end())
            call = None if end is None else _parsed(text[found.start() : end])
            said = None if call is None else self.said(found[1], call)
            if said is None or end is None:
                done, place = done + text[place : found.end()], found.end()
                continue
            done, place = done + text[place : found.start()], end
            before = _BEFORE.search(done)
            if said == _IN_PYTHON:
                done, said = re.sub(r"\b(?:write|give|take) $", "", done), said + text[found.start() : end]
            elif before is not None and (before[2] is None) == (said[0] != "{"):
                # privacy=--mu 1 is --mu 1; a column is named by its table, a unit has its line
                done = done[: before.start()]
                said = (
                    said if before[1] else f"unit = {said}" if before[2] else f"[columns.{_key(before[3])}] with {said}"
                )
            elif said.startswith("confide ") and (verbs := _VERBS.match(text, end)) is not None:
                said, place = f"{said.removesuffix(' ...')} -o FILE.json, and {verbs[0]} of it in Python", verbs.end()
            done += said
        return done + text[place:]

    def settings(self, text: str, *, led: bool = False) -> str:
        """Settings NAME=VALUE, as options: those that the message tells to write, and, but where `led`, those that the command has."""
        parts, place, listed = [], 0, False
        while (found := _SETTING.search(text, place)) is not None:
            start, name = found.start(), found[0][:-1]
            between = text[place:start]
            told = _LEAD.search(text, max(0, start - _LEADS), start) is not None or (listed and between == ", ")
            known = name in _OF_RELEASES or (_option(name) in self.options and name not in _STATED)
            known = known or (name == "relation" and text.endswith(("with ", "With "), 0, start))
            read = _setting(text, start) if told or not led else None
            said = None
            if read is not None and text.startswith((" in the schema", " in their schema"), read[1]):
                said = f"{name} = {_line(read[0].value)}"
            elif read is not None and (told or known):
                said = self._setting(read[0])
            if said is None or read is None:
                parts += [between, found[0]]
                place, listed = found.end(), False
                continue
            parts += [" " if listed and between == ", " and self.analysis is None else between, said]
            place, listed = read[1], told
        return "".join([*parts, text[place:]])

    # what is known ----------------------------------------------------------------------------------------------------

    def said(self, name: str, call: ast.Call) -> str | None:
        """The command of a call; None where it has none, `_IN_PYTHON` where a command cannot say all of it."""
        own = name.removeprefix("cf.").removeprefix("confide.").removeprefix("result.").removeprefix("schema.")
        family, _, verb = own.rpartition(".")
        first = _literal(call.args[0]) if call.args else None
        match own:
            case "GDP" | "ZCDP" | "PureDP" | "ApproxDP":
                asked = _guarantee(call)
                return asked if asked is None or self.priced is None else self.priced(asked)
            case "Ledger.create":
                return self._create(call)
            case "Ledger.open":
                return f"--dataset {self._dataset(call)}"
            case "Ledger.datasets":
                return f"confide ledger show {_shown(self.ledger)}"
            case "ledger.verify" | "ledger.show" | "ledger.convert":
                return f"confide ledger {verb} {_shown(self.ledger)}"
            case "ledger.amend":
                size = _guarantee(call.args[0]) or "--mu ..."
                why = _named(call).get("reason", "...")
                reason = "TEXT" if why == "..." else shlex.quote(why)
                return f"confide ledger amend {_shown(self.ledger)} --dataset {self._dataset(call)} {size} --reason {reason}"
            case "Schema.draft" | "read" if "delimiter" in (given := _named(call)):
                return f"--delimiter {shlex.quote(given['delimiter'])}"
            case "Schema.draft":
                return f"confide schema draft {shlex.quote(first) if isinstance(first, str) else 'DATA -o schema.toml'}"
            case "plan" if call.keywords:
                return " ".join(self._settings(call) or ()) or None
            case "infer":
                inner = next((one for one in call.args if isinstance(one, ast.Call)), call)
                return " ".join(self._settings(inner) or ()) or "confide infer RELEASE"
            case "poststratify":
                return f"--poststratify {_literal(call.args[1])}=totals.csv"
            case "Numeric" | "Integer" | "Categorical":
                return _column(own, call)
            case "Unit":
                return _toml({"column": first, **_named(call)})
            case "Clusters":
                return f"cluster = {_toml({'column': first, **_named(call)})}"
            case "SurveyDesign":
                given = {**({} if first is None else {"weight": first}), **_named(call)}
                return f"under [design] the lines {', '.join(f'{key} = {_toml(x)}' for key, x in given.items())}"
            case "Schema" if call.keywords:
                return f"{', '.join(map(self._entry, call.keywords))} in the schema"
            case "refit":
                return f"confide refit {shlex.quote(first) if isinstance(first, str) else 'TABLE.parquet'}"
            case "synthesize":
                formula = next((found for one in call.args if isinstance(found := _literal(one), str)), "y ~ a")
                return f"confide synthesize {shlex.quote(formula)} DATA --schema schema.toml -o table.parquet"
        if own in _BEYOND:
            return _BEYOND[own]
        if verb[:1].isupper():
            return self._method(verb, call)
        asked = self._named(own) if name.startswith("cf.") else None
        if family == "intervals" and asked is not None:
            column = _literal(call.args[1]) if len(call.args) > 1 else None
            return asked + (f" --column {shlex.quote(column)}" if isinstance(column, str) else "")
        if asked is None:
            return (
                _IN_PYTHON
                if name.startswith("cf.") and any(isinstance(one, (ast.List, ast.ListComp)) for one in call.args)
                else None
            )
        if family == "tables":
            return self._table(asked, first, call)
        model = [shlex.quote(first)] if isinstance(first, str) else []
        head, mark, rest = asked.partition(" --method")
        return " ".join([head, *model]) + mark + rest

    def _named(self, own: str) -> str | None:
        """The command of a name of confide, without its arguments."""
        from confide import registry

        family, _, verb = own.rpartition(".")
        if verb[:1].isupper():
            method = registry.named(verb)
            return None if method is None else f"--method {method}"
        if family == "tables":
            kind = "".join(part.capitalize() for part in verb.split("_"))
            own_command = registry.named(kind) == verb and _command_of(verb)
            return own_command or f"confide table --kind {verb}"
        if family in ("tests", "intervals"):
            return f"confide {family[:-1]} {verb}"
        if own.endswith("_regression") and not family:
            method = own.removesuffix("_regression")
            return "confide regress" + (f" --method {method}" if method in registry.known() else "")
        return None

    def _table(self, asked: str, formula: Any, call: ast.Call) -> str | None:
        """A table of a formula, without a kind where the formula tells it; the settings alone where no formula is named."""
        if not isinstance(formula, str):
            return (" ".join(self._settings(call) or ()) or asked) if _plain(call) else _IN_PYTHON
        command, _, kind = asked.removeprefix("confide ").partition(" --kind ")
        rest = _Speaker(_options_of(command))._settings(call)
        if rest is None or not _plain(call):
            return _IN_PYTHON
        named = ["--kind", kind] if kind and kind != table_of(formula) else []
        open_ = ["..."] if any(_literal(one) is Ellipsis for one in call.args) else []
        return " ".join([f"confide {command}", shlex.quote(formula), *named, *rest, *open_])

    def _method(self, kind: str, call: ast.Call) -> str | None:
        """The options that ask for a registered method, by the name of its class."""
        from confide import registry

        found = registry.named(kind)
        if found is None:
            return None
        first = call.args[0] if call.args else None
        rest = self._settings(call)
        if rest and (isinstance(first, ast.Name) or (isinstance(first, ast.Constant) and first.value is Ellipsis)):
            return " ".join(rest)  # Class(formula, setting=...), of the method at hand
        # a command without the options that the call needs leaves it to `confide plan`
        elsewhere = bool(self.options) and ("--method" not in self.options or rest is None)
        if elsewhere:
            rest = _Speaker(_options_of("plan"))._settings(call)
        if rest is None or not _plain(call):
            return _IN_PYTHON
        model = _literal(first) if first is not None else None
        words = [shlex.quote(model)] if isinstance(model, str) else ["MODEL"] if elsewhere else []
        return " ".join([*(["confide plan"] if elsewhere else []), *words, "--method", found, *rest])

    def _create(self, call: ast.Call) -> str:
        """A new ledger; on other terms than this one's it needs a file of its own, because one dataset has one account in it."""
        given = {one.arg: one.value for one in call.keywords}
        path, budget = _literal(call.args[0]) if call.args else None, given.get("budget")
        named = _named(call)
        words = [
            w for key in ("unit", "rows_per_unit") if key in named for w in (_option(key), shlex.quote(str(named[key])))
        ]
        asked = _guarantee(budget)
        terms = _named(budget) if isinstance(budget, ast.Call) else {}
        usual = {"relation": None, "unit": "record", "trust": "central"}
        more = [
            w
            for key, left_out in usual.items()
            if terms.get(key, left_out) != left_out
            for w in (_option(key), terms[key])
        ]
        size = [asked or "--mu ... (or --epsilon ..., --rho ...)", *more]
        same = isinstance(path, str) and self.ledger is not None and path.endswith(self.ledger)
        others = "OTHER_LEDGER" if words or asked else _shown(self.ledger)
        place = _shown(path) if isinstance(path, str) and not same else others
        return " ".join(["confide ledger init", place, "--dataset", self._dataset(call), *words, *size])

    def _dataset(self, call: ast.Call) -> str:
        """The dataset of a call, else that of the command line."""
        named = _named(call).get("dataset")
        own = named if isinstance(named, str) else self.dataset
        return "NAME" if own is None else shlex.quote(own)

    def _entry(self, keyword: ast.keyword) -> str:
        """An argument of a schema, as an entry of its file."""
        value = keyword.value
        if isinstance(value, ast.Call):
            said = (self.said(ast.unparse(value.func), value) or ast.unparse(value)).removeprefix("cluster = ")
            return f"{keyword.arg} = {said}"
        return f"{keyword.arg} = {_toml(_literal(value))}"

    def _settings(self, call: ast.Call) -> list[str] | None:
        """The settings of a call as they are given here; None where one of them cannot be."""
        said = [self._setting(one) for one in call.keywords]
        return None if None in said else [one for one in said if one is not None]

    def _setting(self, keyword: ast.keyword) -> str | None:
        """A setting as it is given here."""
        name, value = keyword.arg, _literal(keyword.value)
        if name is None or value is _OPEN:
            return None
        if self.analysis is not None:
            place = "at the top of the file" if name == "n" else f"in [analyses.{self.analysis}]"
            return f"{name} = {_toml(value)} {place}"
        if name in _DESIGN:
            return f"{name} = {_toml(value)} under [design]"
        option = _option(name) if value is not False else f"--no-{_option(name)[2:]}"
        if name in ("margin", "cv"):
            each = (f"{key}={x!r}" for key, x in value.items()) if isinstance(value, dict) else (str(value),)
            return " ".join(f"{option} {shlex.quote(one)}" for one in each)
        if name == "ledger" and value is None:
            return "--unaccounted"
        if option in self.options or name in (*_OF_RELEASES, "n", "relation"):
            return option if isinstance(value, bool) else f"{option} {shlex.quote(_listed(name, value))}"
        if self.options and "--param" not in self.options:
            return None  # a command that takes no such thing
        return f"--param {shlex.quote(f'{name}={_text(value)}')}"


def _command_of(verb: str) -> str | None:
    """The command that one table has to itself."""
    import confide as cf

    return "confide describe" if verb == cf.tables.TableOne.name else None


def _guarantee(node: ast.AST | None) -> str | None:
    """The options that ask for a guarantee, from its call; numbers that are left open stay so. None for what is no such call."""
    if not isinstance(node, ast.Call) or (kind := ast.unparse(node.func).removeprefix("cf.")) not in _SIZES:
        return None
    sizes = [*node.args, *(one.value for one in node.keywords if one.arg == "delta")]
    told = ["..." if isinstance(x := _literal(one), type(...)) else _number(x) for one in sizes]
    if not told or None in told:
        return None
    told += ["..."] if kind == "ApproxDP" and len(told) == 1 else []
    return f"{_SIZES[kind]} {told[0]}" + (f" --delta {told[1]}" if len(told) > 1 else "")


def _number(value: Any) -> str | None:
    return repr(value) if isinstance(value, (int, float)) else None


def _plain(call: ast.Call) -> bool:
    """Whether what stands without a name is a formula, the name of what the command is given in any case (data), or left open."""
    return all(isinstance(one, ast.Name) or isinstance(_literal(one), (str, type(...))) for one in call.args)


def _options_of(command: str) -> frozenset[str]:
    from confide.cli.registry import Commands

    return frozenset(option for one in Commands()[command].params for option in one.opts)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _key(name: str) -> str:
    from confide.schema.toml import key

    return key(name)


def _closed(text: str, place: int) -> int | None:
    """Behind the bracket that closes the one before this place; None where none does."""
    depth, quote = 1, ""
    for end in range(place, min(len(text), place + _LONGEST)):
        letter = text[end]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            return end + 1
    return None


def _parsed(text: str) -> ast.Call | None:
    """The call; dots at its end, for what a message leaves out, may stand behind a setting too."""
    try:
        open_ = text.endswith(", ...)")
        found = ast.parse(f"{text[:-6]})" if open_ else text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(found, ast.Call):
        return None
    found.args += [ast.Constant(...)] if open_ else []
    return found


def _setting(text: str, place: int) -> tuple[ast.keyword, int] | None:
    """The setting that begins at a place, NAME=VALUE, and where it ends."""
    for end in _ends(text, place):
        call = _parsed(f"f({text[place:end]})")
        if call is not None and len(call.keywords) == 1 and not call.args:
            return call.keywords[0], end
    return None


def _ends(text: str, place: int) -> Iterator[int]:
    """Where a value may end: before a blank, a comma, a semicolon, a bracket, outside of quotes and brackets."""
    depth, quote = 0, ""
    for end in range(place, min(len(text), place + _LONGEST)):
        letter = text[end]
        if quote:
            quote = "" if letter == quote else quote
            continue
        if not depth and letter in " \n,;)":
            yield end
            return
        if letter in "'\"":
            quote = letter
        depth += (letter in "([{") - (letter in ")]}")
    yield min(len(text), place + _LONGEST)


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return _OPEN


def _named(call: ast.Call) -> dict[str, Any]:
    """The arguments with a name that are written out."""
    return {one.arg: _literal(one.value) for one in call.keywords if one.arg is not None}


def _text(value: Any) -> str:
    if value is Ellipsis:
        return "..."
    return value if isinstance(value, str) else json.dumps(value)


def _listed(name: str, value: Any) -> str:
    """A value as an option takes it: several with commas between them."""
    if name == "levels" and isinstance(value, dict):
        return ",".join(f"{key}={_text(x)}" for key, x in value.items())
    return ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else _text(value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        entries = (f"{name} = {_toml(one)}" for name, one in value.items() if one is not _OPEN)
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return "..." if value is Ellipsis or value is _OPEN else json.dumps(value, ensure_ascii=False)


def _line(value: ast.expr) -> str:
    """The value of a line of the schema's file; a pair that is left open, (low, high), is a table there."""
    if isinstance(value, ast.Tuple) and all(isinstance(one, ast.Name) for one in value.elts):
        return _toml({ast.unparse(one): ... for one in value.elts})
    return _toml(_literal(value))


def _column(kind: str, call: ast.Call) -> str:
    given = dict(zip(_COLUMNS[kind], map(_literal, call.args), strict=False)) | _named(call)
    lines = {"kind": f'"{kind.lower()}"', **{name: _toml(value) for name, value in given.items()}}
    lines |= {"levels": "[...]"} if lines.get("levels") == "..." else {}
    return ", ".join(f"{name} = {line}" for name, line in lines.items())


def table_of(formula: str) -> str:
    """The kind of table that a formula asks for where none is named."""
    from confide.schema.formulas.names import parted, sides  # here, because schemas are slow to load

    left = sides(formula)[0] if len(sides(formula)) > 1 else ""
    if not left:
        return str(cf.tables.Counts.name)
    return str(cf.tables.Ratios.name if len(parted(left, "/")) > 1 else cf.tables.Means.name)
