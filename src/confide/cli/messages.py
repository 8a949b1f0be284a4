"""Messages as a command line spells them: calls of Python and settings that they advise become commands and options.

A setting becomes the option of the running command, else `--set NAME=VALUE`, or a line of the publication's file where the message is
of one of its questions; a method `--method NAME` with its settings, of `confide plan` where the running command takes none; a column a
line of the schema's file; a one-call function its command. A call with an argument that no option can say is asked in Python, and is said
so: none of its arguments is dropped. What is none of these is left as it is.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.core import Plan


_NUMBER = r"[0-9][0-9.e+-]*"
_QUOTED = r"('[^']*'|\"[^\"]*\")"
# A call has bare numbers, GDP(1.0); a statement that is printed has names, GDP(mu=1, add-remove), and is left alone.
_GUARANTEE = re.compile(rf"(?:privacy=)?(?:cf\.)?\b(GDP|ZCDP|PureDP|ApproxDP)\(({_NUMBER})(?:, ({_NUMBER}))?\)")
_SIZES = {"GDP": "--mu", "ZCDP": "--rho", "PureDP": "--epsilon", "ApproxDP": "--epsilon"}


#: A new ledger with its path and its budget.
_CONCRETE = re.compile(
    rf"create\('([^']*)', .*?budget=(GDP|ZCDP|PureDP|ApproxDP)\(({_NUMBER})(?:, ({_NUMBER}))?(.*)\)$"
)


def for_command_line(message: str, *, ledger: str | None = None, options: Collection[str] = ()) -> str:
    """The message with the calls that are known turned into commands and options.

    ledger: the ledger that the command line named, for calls that speak of one without its path; options: of the command that runs.

    >>> for_command_line("for 95 % intervals write alpha=0.05")
    'for 95 % intervals write --alpha 0.05'
    """
    dataset = re.search(r"dataset ('[^']+')", message)
    place = _shown(ledger)
    name = shlex.quote(dataset[1][1:-1]) if dataset else "NAME"
    for pattern, put in _CALLS:
        message = re.sub(pattern, _written(put, place, name), message)
    return as_commands(_GUARANTEE.sub(lambda call: privacy_options(*call.groups()), message), options)


def as_said(text: str) -> str:
    """A plan or a table with the settings that it advises as options; its lines stay as long as they are, but for that.

    >>> as_said("declare it within [0, 140], or ask limit='none'")
    'declare it within [0, 140], or ask --set limit=none'
    """
    return re.sub(r"(?<=\bask)(\s+)limit='none'", r"\1--set limit=none", text)


def _shown(ledger: str | None) -> str:
    """A ledger as a command names it; a URL may hold a password and is never repeated."""
    return "LEDGER" if ledger is None or "://" in ledger else shlex.quote(ledger)


def _written(put: str | _Put, ledger: str, dataset: str) -> Callable[[re.Match[str]], str]:
    return lambda call: call.expand(put) if isinstance(put, str) else put(call, ledger, dataset)


def privacy_options(kind: str, size: str, delta: str | None = None) -> str:
    """The options that ask for a guarantee.

    >>> privacy_options("ApproxDP", "1.0", "1e-06")
    '--epsilon 1.0 --delta 1e-06'
    """
    return f"{_SIZES[kind]} {size}" + (f" --delta {delta}" if delta and kind in ("ApproxDP", "GDP") else "")


def plan_command(planned: Plan, options: str, *, schema: Path | None, ledger: str | None, dataset: str | None) -> str:
    """The `confide plan` that asks the same for another price.

    schema: its file, where the command line named one.
    """
    from confide import registry
    from confide.core import parameters_of

    if planned.children:
        words = [
            "confide plan publication.toml --schema",
            shlex.quote(str(schema)) if schema is not None else "schema.toml",
            options,
        ]
        return " ".join([*words, "-o smaller.json"])
    kind = registry.get(planned.method.name)
    known = {field.name: field for field in fields(kind)}
    (first, *others) = [known[name] for name in parameters_of(kind)]
    given: Mapping[str, Any] = {"where": None, **planned.method.parameters}
    words = ["confide plan", shlex.quote(str(given[first.name])), "--schema"]
    words += [shlex.quote(str(schema)) if schema is not None else "schema.toml", options]
    words += [] if planned.method.name == "least_squares" else ["--method", planned.method.name]
    for field in others:
        value = given.get(field.name, field.default)  # a plan leaves out what is as it was before the parameter came
        if value != field.default:
            words += ["--set", shlex.quote(f"{field.name}={json.dumps(value)}")]
    size = planned.planned_n
    words += [] if size is None else ["--n", str(size)]
    words += [] if ledger is None else ["--ledger", _shown(ledger)]
    words += [] if ledger is None or dataset is None else ["--dataset", shlex.quote(dataset)]
    return " ".join([*words, "-o smaller.json"])


def _amend(call: re.Match[str], ledger: str, dataset: str) -> str:
    size = _amount(call[1], delta="delta=" in call[2])
    return f"confide ledger amend {ledger} --dataset {dataset} {size} --reason TEXT"


def _create(call: re.Match[str], ledger: str, dataset: str) -> str:
    """A new ledger; on other terms than this one's it needs a file of its own, because one dataset has one account in it."""
    if concrete := _CONCRETE.search(call[0]):
        place, kind, size, delta, more = concrete.groups()
        given = dict(re.findall(r"(relation|unit|trust)='([^']*)'", more))
        rows = re.search(r"rows_per_unit=(\d+)", more)
        chosen = [f"--{name} {shlex.quote(given[name])}" for name in ("unit", "relation", "trust") if name in given]
        chosen += [f"--rows-per-unit {rows[1]}"] if rows else []
        return f"confide ledger init {shlex.quote(place)} --dataset {dataset} {privacy_options(kind, size, delta)} {' '.join(chosen)}"
    terms = re.search(r"budget=(\w+)\((.*?)relation='([^']*)'", call[0])
    whose = re.search(r"unit=('[^']*'), rows_per_unit=(\d+)", call[0])
    if whose is not None:
        options = f"--unit {shlex.quote(whose[1][1:-1])} --rows-per-unit {whose[2]}"
        if terms is not None:
            size = _amount(terms[1], delta="delta=" in terms[2])
            return f"confide ledger init OTHER_LEDGER --dataset {dataset} {options} {size} --relation {terms[3]}"
        return f"confide ledger init OTHER_LEDGER --dataset {dataset} {options} --mu ... (or --epsilon ..., --rho ...)"
    if "trust='local'" in call[0]:
        level = re.search(r"unit='([^']*)'", call[0])
        terms_of = f"--relation substitute --unit {level[1] if level else 'record'} --trust local"
        return f"confide ledger init OTHER_LEDGER --dataset {dataset} --mu ... --delta ... {terms_of}"
    enforced = re.search(r"unit=('[^']*')", call[0])
    if terms is None and enforced is not None:
        options = f"--unit {shlex.quote(enforced[1][1:-1])} --mu ... (or --epsilon ..., --rho ...)"
        return f"confide ledger init OTHER_LEDGER --dataset {dataset} {options}"
    if terms is None:
        return f"confide ledger init {ledger} --dataset {dataset} --mu ... (or --epsilon ..., --rho ...)"
    size = _amount(terms[1], delta="delta=" in terms[2])
    return f"confide ledger init OTHER_LEDGER --dataset {dataset} {size} --relation {terms[3]}"


def _amount(kind: str, *, delta: bool) -> str:
    """The options of a budget of that kind, its numbers left open."""
    return f"{_SIZES.get(kind, '--mu')} ..." + (" --delta ..." if delta or kind == "ApproxDP" else "")


def _table(call: re.Match[str], *_: str) -> str:
    """A table of a formula; counts and means need no kind."""
    if call[1] == "table_one":
        return f"confide describe {shlex.quote(call[3])} ..."
    kind = [] if call[1] in ("counts", "means") else ["--kind", call[1]]
    within = [] if call[5] is None else ["--within", call[5]]
    return f"{shlex.join(['confide', 'table', call[3], *kind, *within])} ..."


def _term_bounds(call: re.Match[str], *_: str) -> str:
    bounds = {call[1][1:-1]: [float(call[2]), float(call[3])]}
    return f"--set {shlex.quote('term_bounds=' + json.dumps(bounds))} (of confide plan)"


def _targets(call: re.Match[str], *_: str) -> str:
    """How sharp it must be, and the number of records where it is told."""
    words = []
    for option, text in re.findall(rf"(accuracy|cv)=(\{{[^{{}}]*\}}|{_NUMBER})", call[1]):
        given = ast.literal_eval(text)
        for one in (f"{name}={x!r}" for name, x in given.items()) if isinstance(given, dict) else (text,):
            words += [f"--{option}", shlex.quote(one)]
    rest = ", " if call[2] is None and call[1].endswith(", ") else ""
    return "write " + " ".join([*words, *([] if call[2] is None else ["--n", call[2]])]) + rest


_Put = Callable[[re.Match[str], str, str], str]

_CALLS: tuple[tuple[str, str | _Put], ...] = (
    (r"Ledger\.create\((?:[^()]|\([^()]*\))*\)", _create),
    (rf"(?:cf\.)?Ledger\.open\([^)]*dataset={_QUOTED}[^)]*\)", r"--dataset \1"),
    (r"(?:cf\.)?Ledger\.open\([^)]*\)", "--dataset NAME"),
    (
        r"open the budget in epsilon: budget=PureDP\([^)]*\)",
        "open a budget in epsilon: confide ledger init ... --epsilon ...",
    ),
    (r"Ledger\.datasets\([^)]*\)", lambda call, ledger, dataset: f"confide ledger show {ledger}"),
    (r"ledger\.amend\((\w*)([^']*), *reason='[^']*'\)", _amend),
    (r"ledger\.(verify|show)\(\)", lambda call, ledger, dataset: f"confide ledger {call[1]} {ledger}"),
    (
        r"(?:cf\.)?Schema\.draft\(data\), then (?:cf\.)?Schema\.from_toml\(\"([^\"]*)\"\)",
        r"confide schema draft DATA -o \1",
    ),
    (rf"(?:cf\.read|(?:cf\.)?Schema\.draft)\([^)]*delimiter={_QUOTED}\)", r"--delimiter \1"),
    (r"(?:cf\.)?Schema\.draft\(\"([^\"]*)\"\)", r"confide schema draft \1"),
    (r"(?:cf\.\w+\.)?\b[A-Z]\w*\(formula, (\w+)=(['\"])(\w+)\2\)", r"--set \1=\3"),
    (rf"term_bounds=\{{{_QUOTED}: \(([^,()]+), ([^,()]+)\)\}}", _term_bounds),
    (r"confide\.read takes the path of", "give the path of"),
    (
        r"this method does not answer subset; it takes no question: infer\(release\)",
        "--subset fits a line again without some columns, and this release holds its own numbers alone (for a regression one line, not the "
        "moments that another would need): leave it out; releases of --method ssp answer subsets",
    ),
    (r"\balpha=([0-9.]+)", r"--alpha \1"),
    # how a public number of records is met: in the file of the schema, or by a ledger of the other relation
    (
        r"'([^']*)': cf\.\w+\((?:\[[^\]]*\]|[^()]*), on_missing=\"([^\"]*)\"\)",
        r'on_missing = "\2" in [columns.\1]',
    ),
    (r"\bcharge_delta=([0-9.e+-]+)", r"--charge-delta \1"),
    (
        r"convert=True \(ledger\.convert\(\), confide ledger convert\)",
        lambda call, ledger, *_: f"--convert, or confide ledger convert {ledger}",
    ),
    (r"\bconvert=True", "--convert"),
    (r"\bforce=True", "--force"),
    (r"write cf\.plan\(method, schema, cv=[0-9.]+, n=(\d+)\)", r"write --cv 2% --n \1"),
    (rf"\bwrite ((?:(?:accuracy|cv)=(?:\{{[^{{}}]*\}}|{_NUMBER})(?:, )?)+)(?:n=(\d+))?", _targets),
    (r"write cf\.plan\(method, schema, accuracy=\{[^}]*\}, n=(\d+)\)", r"write --accuracy mean=0.02 --n \1"),
    (
        r'cf\.tables\.(\w+)\("([^"]*)", data, covers="population", \.\.\.\)',
        r'confide table "\2" --kind \1 --covers population',
    ),
    (r"(--covers population)\.sd\(\)", r"\1 -o table.json, and .sd() of it in Python"),
    (r'cf\.linear_regression\("([^"]*)", data, \.\.\.\)', r'confide regress "\1"'),
    (r"cf\.GDP\(\.\.\.\) or cf\.ApproxDP\(\.\.\.\)", "--mu ..., or --epsilon ... --delta ..."),
    (r"\brelation='substitute' in the guarantee and the ledger", "--relation substitute and a ledger of that relation"),
    (r"write poststratify\(\{[^}]*\}, \"(\w+)\"\), or give a CSV", r"write --poststratify \1=totals.csv, a CSV"),
    (r"write calibrate\(\{.*?\}\}\), or give a CSV", "write --calibrate margins.csv, a CSV"),
    (r"plan cf\.tables\.Means: N times", "plan --kind means: N times"),
    (r"cf\.tables\.shares\('(\w+)', \.\.\.\)", r'confide table "\1 * ..." --kind shares'),
    (r"cf\.tables\.(\w+)\((['\"])([^'\"]+)\2(?:, within=(['\"])([^'\"]+)\4)?, \.\.\.\)", _table),
    (r"the table for test\('f', '([^']*)'\)", "for --test f_oneway"),
    (r"cf\.tests\.f_oneway(, or test\([^)]*\) of the table)?", "confide test f_oneway"),
    (r"declare it as cf\.Numeric\(low, high\)", 'declare it as kind = "numeric"'),
    (r"\btypical=\((\w+), (\w+)\) in the schema", "typical = { low = ..., high = ... } in [columns.NAME]"),
    (r"\bon_missing=(\S+) in the schema", r"on_missing = \1 in the schema"),
    (r"\bloss='(\w+)'", r"--loss \1"),
    (r"\bkeep_others=True", "--keep-others"),
    (r", give a distributed\.Client or a SparkSession|, or give a (?:distributed\.Client|SparkSession)", ""),
    (r"\(`(--method \w+)`, cf\.\w+\)", r"(\1)"),
    (r"\bcf\.tables\.([a-z_]+)\b(?![\w(])", r"--kind \1"),
    (r"\bcf\.intervals\.([a-z_]+)\b(?![\w(])", r"confide interval \1"),
    (r"\bcf\.linear_regression\b(?![\w(])", "confide regress"),
    (r"to_markdown\(\) and to_latex\(\) need none", "--report FILE.md and FILE.tex need none"),
    (r"report\[\"([^\"]*)\"\]\.plot\(\)", r"--question \1 --plot FILE.svg"),
    (r"report\[name\]\.test\(\.\.\.\)", "confide infer RELEASE --question NAME --test TEST"),
    (r"\bresult\.(?=get_prediction|predict|odds_ratios|rate_ratios)|(?<=read )(?=get_prediction)", ""),
    (r"\b(?:get_prediction|predict)\(frame\)", "--predict ROWS.csv"),
    (r"\b(?:odds_ratios|rate_ratios)\(\)", "--ratios"),
    (
        r"a database is read in Python, by",
        "give CSV or Parquet files, or survey.sqlite/answers; another database is read in Python, by",
    ),
    (r"\baccept_verbatim_rows=True", "--accept-verbatim-rows"),
    (r"\bnoise=([0-9.]+)", r"--noise \1"),
    (r"\blevel='(record|attribute)'", r"--level \1"),
    (
        rf"\bwrite level=({_QUOTED}|{_NUMBER})",
        lambda call, *_: (
            f"write --level {(own := shlex.quote(call[1].strip(chr(39) + chr(34))))} (of a plan: --set level={own})"
        ),
    ),
    (r"\bwrite prior='([^']*)'", r"write --prior '\1' (of a plan: --set prior='\1')"),
    (
        r"declare it as cf\.Categorical\(\[\.\.\.\]\) or cf\.Integer\(0, 1\)",
        'declare it in the schema as kind = "categorical" with its levels, or as kind = "integer" with low = 0 and high = 1',
    ),
    (
        r"declare it as cf\.Integer\(0, most, on_missing=0\)",
        'declare it in the schema as kind = "integer" with low = 0, high = MOST and on_missing = 0',
    ),
    (r"\bcolumns=\[(['\"])(\w+)\1\]", r"--columns \2"),
    (r"\blevels=\{(['\"])(\w+)\1: ([0-9.]+)\}", r"--levels \2=\3"),
    (r"\bmethod='(auto|SL)'", r"--method \1"),
    (r"write it in their schema: dataset=(\S+)", r"write it in their schema: dataset = \1"),
    (r"declare unit=(\S+) in the schema", r"declare unit = \1 in the schema"),
    (r"declare rows_per_unit=(\d+) in the schema", r"declare rows_per_unit = \1 in the schema"),
    (rf"\brelation={_QUOTED} in the guarantee", lambda call, *_: f"--relation {call[1][1:-1]}"),
    (rf"\bwith relation={_QUOTED}", lambda call, *_: f"with --relation {call[1][1:-1]}"),
    (r"\bthe schema says unit='([^']*)'", r'the schema says unit = "\1"'),
)


_CALL = re.compile(r"(?<![\w.`'\"])((?:cf\.|confide\.)?(?:[a-z_]\w*\.)*[A-Za-z_]\w*)\(")
#: Where a setting may begin: after these words.
_LEAD = re.compile(r"\b(?:write|take|give|ask|instance|or) (?=[a-z_]\w*=)")
_NEXT = re.compile(r", (?=[a-z_]\w*=)")
_QUESTION = re.compile(r"question '([^']*)': ")
#: What a survey's design alone has, of all that a message tells to write.
_DESIGN = ("psus",)
_COLUMNS = {"Numeric": ("low", "high"), "Integer": ("low", "high"), "Categorical": ("levels",)}
_REGRESSIONS = {
    "linear_regression": "",
    "logistic_regression": " --method logistic",
    "poisson_regression": " --method poisson",
}
#: A result's verbs behind a command that prints it.
_VERBS = re.compile(r"\.(?:\w+\([^()]*\))")
_LONGEST = 400


def as_commands(message: str, options: Collection[str] = ()) -> str:
    """The message with its calls and settings as commands and options.

    options: of the command that is running.

    >>> as_commands("write bandwidth=0.05, or declare it as cf.Integer(0, 1)")
    'write --set bandwidth=0.05, or declare it as kind = "integer", low = 0, high = 1'
    >>> as_commands("write cf.tables.counts(..., covers='dataset')", {"--covers"})
    'write --covers dataset'
    >>> as_commands("question 'a': write cf.tables.counts(..., covers='dataset')")
    'question \\'a\\': write covers = "dataset" in [questions.a]'
    """
    pieces, end = [], 0
    marks = [*_QUESTION.finditer(message)]
    for place, question in zip([0, *(mark.end() for mark in marks)], [None, *(mark[1] for mark in marks)], strict=True):
        following = next((mark.start() for mark in marks if mark.start() >= place), len(message))
        speaker = _Speaker(frozenset(options), question)
        pieces += [message[end:place], speaker.settings(speaker.calls(message[place:following]))]
        end = following
    said = "".join([*pieces, message[end:]])
    # an entry of the schema's file, and a column of it
    said = re.sub(r"\bunit=(?=\{ column)", "unit = ", said).replace("cluster=cluster = ", "cluster = ")
    return re.sub(r"'([^']+)': (?=kind = )", lambda entry: f"[columns.{_key(entry[1])}] with ", said)


def _key(name: str) -> str:
    from confide.schema.toml import key

    return key(name)


class _Speaker:
    """How one message is said. question: of a publication's file, where it is of one."""

    def __init__(self, options: frozenset[str], question: str | None) -> None:
        self._options, self._question = options, question

    def calls(self, text: str) -> str:
        """Every call that is known, by its command."""
        parts, place = [], 0
        while (found := _CALL.search(text, place)) is not None:
            end = _closed(text, found.end())
            call = None if end is None else _parsed(text[found.start() : end])
            said = None if call is None else self._said(found[1], call)
            if said == _IN_PYTHON and end is not None:
                parts += [
                    re.sub(r"\b(?:write|give|take) $", "", text[place : found.start()]),
                    said,
                    text[found.start() : end],
                ]
                place = end
                continue
            if said is None or end is None:
                parts.append(text[place : found.end()])
                place = found.end()
                continue
            verbs = _VERBS.match(text, end)
            if verbs is not None and said.startswith("confide "):
                said, end = f"{said} -o FILE.json, and {verbs[0]} of it in Python", verbs.end()
            parts += [text[place : found.start()], said]
            place = end
        return "".join([*parts, text[place:]])

    def settings(self, text: str) -> str:
        """Settings that a message tells to write, NAME=VALUE, as options."""
        parts, place = [], 0
        while (lead := _LEAD.search(text, place)) is not None:
            parts.append(text[place : lead.end()])
            place = lead.end()
            following = None
            while (read := _setting(text, place)) is not None and (said := self._setting(read[0])) is not None:
                parts.append((following[0].replace(",", "") if following else "") + said)
                place = read[1]
                following = _NEXT.match(text, place)
                if following is None:
                    break
                place = following.end()
            else:
                if following is not None:
                    parts.append(following[0])
        return "".join([*parts, text[place:]])

    # what is known ----------------------------------------------------------------------------------------------------

    def _said(self, name: str, call: ast.Call) -> str | None:
        """The command of a call; None where it has none, `_IN_PYTHON` where a command cannot say all of it."""
        own = name.removeprefix("cf.").removeprefix("confide.")
        family, _, verb = own.rpartition(".")
        first = _literal(call.args[0]) if call.args else None
        if own == "select":
            return _IN_PYTHON  # of methods, which no option holds
        if own == "infer":
            return " ".join(self._settings(call) or ()) or None
        if verb in _COLUMNS and family in ("", "schema"):
            return _column(verb, call)
        if verb == "Unit" and family in ("", "schema"):
            return _toml_table({"column": first, **_named(call)})
        if verb == "SurveyDesign" and family in ("", "schema"):
            given = {**({} if first is None else {"weight": first}), **_named(call)}
            return f"under [design] the lines {', '.join(f'{key} = {_toml(x)}' for key, x in given.items())}"
        if verb == "Clusters" and family in ("", "schema"):
            return f"cluster = {_toml_table({'column': first, **_named(call)})}"
        if verb == "Schema" and family == "" and call.keywords:
            return f"{', '.join(_entry(one, self) for one in call.keywords)} in the schema"
        if name.startswith("cf.tables.") and verb.islower():
            if not isinstance(first, str):
                return (" ".join(self._settings(call) or ()) or None) if _plain(call) else _IN_PYTHON
            kind = "" if verb in ("counts", "means") else f" --kind {verb}"
            command = "describe" if verb == "table_one" else "table"
            rest = _Speaker(_options_of(command), None)._settings(call)
            if rest is None or not _plain(call):
                return _IN_PYTHON
            return " ".join([f"confide {command} {shlex.quote(first)}{'' if command == 'describe' else kind}", *rest])
        if name.startswith("cf.tests.") and verb.islower():
            return f"confide test {verb}" + (f" {shlex.quote(first)}" if isinstance(first, str) else "")
        if name.startswith("cf.intervals.") and verb.islower():
            column = _literal(call.args[1]) if len(call.args) > 1 else None
            return f"confide interval {verb}" + (f" --column {shlex.quote(column)}" if isinstance(column, str) else "")
        if name.removeprefix("cf.") in _REGRESSIONS:
            return f"confide regress{'' if not isinstance(first, str) else ' ' + shlex.quote(first)}{_REGRESSIONS[own]}"
        if name == "cf.refit":
            table = shlex.quote(first) if isinstance(first, str) else "TABLE.parquet"
            return f"confide refit {table}"
        if name == "cf.synthesize":
            formula = next((found for one in call.args if isinstance(found := _literal(one), str)), "y ~ a")
            return f"confide synthesize {shlex.quote(formula)} DATA --schema schema.toml -o table.parquet"
        return self._method(name, call) if verb[:1].isupper() else None

    def _method(self, name: str, call: ast.Call) -> str | None:
        """The options that ask for a registered method, by the name of its class."""
        from confide import registry

        found = registry.named(name.rpartition(".")[2])
        if found is None:
            return None
        first = call.args[0] if call.args else None
        rest = self._settings(call)
        open_ = isinstance(first, ast.Constant) and first.value is Ellipsis
        if rest and (open_ or isinstance(first, ast.Name)):
            return " ".join(rest)  # Class(formula, setting=...), of the method at hand
        # a command without the options that the call needs leaves it to `confide plan`
        elsewhere = bool(self._options) and ("--method" not in self._options or rest is None)
        if elsewhere:
            rest = _Speaker(_options_of("plan"), None)._settings(call)
        if rest is None or not _plain(call):
            return _IN_PYTHON
        model = _literal(first) if first is not None else None
        words = [shlex.quote(model)] if isinstance(model, str) else ["MODEL"] if elsewhere else []
        return " ".join([*(["confide plan"] if elsewhere else []), *words, "--method", found, *rest])

    def _settings(self, call: ast.Call) -> list[str] | None:
        """The settings of a call as they are given here; None where one of them cannot be."""
        said = [self._setting(one) for one in call.keywords]
        return None if None in said else [one for one in said if one is not None]

    def _setting(self, keyword: ast.keyword) -> str | None:
        """A setting as it is given here."""
        name, value = keyword.arg, _literal(keyword.value)
        if name is None or value is _OPEN:
            return None
        if self._question is not None:
            return f"{name} = {_toml(value)} in [questions.{self._question}]"
        if name in _DESIGN:
            return f"{name} = {_toml(value)} under [design]"
        option = f"--{name.replace('_', '-')}"
        if option in self._options:
            return option if value is True else f"{option} {shlex.quote(_text(value))}"
        if self._options and "--set" not in self._options:
            return None  # a command that takes no such thing
        return f"--set {shlex.quote(f'{name}={_text(value)}')}"


_OPEN = object()
_IN_PYTHON = "this is asked in Python: "


def _plain(call: ast.Call) -> bool:
    """Whether what stands without a name is a formula, the name of what the command is given in any case (data), or left open."""
    return all(isinstance(one, ast.Name) or isinstance(_literal(one), (str, type(...))) for one in call.args)


def _options_of(command: str) -> frozenset[str]:
    from confide.cli.registry import Commands

    return frozenset(option for one in Commands()[command].params for option in one.opts)


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
    try:
        found = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.Call) else None


def _setting(text: str, place: int) -> tuple[ast.keyword, int] | None:
    """The setting that begins at a place, NAME=VALUE, and where it ends."""
    best = None
    for end in _ends(text, place):
        call = _parsed(f"f({text[place:end]})")
        if call is not None and len(call.keywords) == 1 and not call.args:
            best = call.keywords[0], end
    return best


def _ends(text: str, place: int) -> Iterator[int]:
    """Where a value may end: before a blank, a comma, a semicolon, a bracket, outside of quotes and brackets."""
    depth, quote = 0, ""
    for end in range(place, min(len(text), place + _LONGEST)):
        letter = text[end]
        if quote:
            quote = "" if letter == quote else quote
            continue
        if not depth and letter in " ,;)":
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


def _text(value: Any) -> str:
    if value is Ellipsis:
        return "..."
    return value if isinstance(value, str) else json.dumps(value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return _toml_table(value)
    if value is Ellipsis:
        return "..."
    return json.dumps(value, ensure_ascii=False)


def _toml_table(entries: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {_toml(value)}" for name, value in entries.items() if value is not _OPEN) + " }"


def _named(call: ast.Call) -> dict[str, Any]:
    return {one.arg: _literal(one.value) for one in call.keywords if one.arg is not None}


def _column(kind: str, call: ast.Call) -> str:
    given = dict(zip(_COLUMNS[kind], map(_literal, call.args), strict=False)) | _named(call)
    lines = [f'kind = "{kind.lower()}"']
    for name, value in given.items():
        open_ = value is _OPEN or value is Ellipsis or value == [Ellipsis]
        lines.append(f"{name} = {'[...]' if name == 'levels' else '...'}" if open_ else f"{name} = {_toml(value)}")
    return ", ".join(lines)


def _entry(keyword: ast.keyword, speaker: _Speaker) -> str:
    value = keyword.value
    if isinstance(value, ast.Call):
        return f"{keyword.arg} = {speaker._said(ast.unparse(value.func), value) or ast.unparse(value)}"
    return f"{keyword.arg} = {_toml(_literal(value))}"
