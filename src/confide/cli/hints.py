"""Messages for the command line: where an error names the Python call that works, the command or option that does.

Errors are written once, for Python. What a call or a setting is by itself, `calls` says; here stands what goes with the words around it.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.calls import as_commands

if TYPE_CHECKING:
    from confide.protocol import Plan

__all__ = ["as_said", "for_command_line", "plan_command", "privacy_options"]

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
    from confide.protocol import parameters_of

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
