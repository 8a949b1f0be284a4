"""What the studio did, as a script, as commands and as a notebook: each makes the same plan, and says so by its digest."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from confide import registry
from confide.ask.menu import PUBLICATION, TESTS, named_in
from confide.core import Plan, parameters_of
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.schema import toml
from confide.studio.folder import Request


def script(asked: Request, data: str, ledger: str, allow_partial: bool = False) -> str:
    """A Python program: plan, release, infer."""
    return "\n\n".join(_pieces(asked, data, ledger, allow_partial)) + "\n"


def commands(asked: Request, data: str, ledger: str, allow_partial: bool = False) -> str:
    """A shell script of three commands; the questions of a publication are a file, which it writes first."""
    name, privacy = asked.name, asked.plan.requested
    if not isinstance(privacy, GDP):
        raise PlanError("commands are written for plans in mu", "take the script")
    written, plan = _written(asked) if asked.plan.children else ("", _planned(asked))
    plan += ["--mu", repr(privacy.mu)]
    if privacy.relation is not None:
        plan += ["--relation", privacy.relation]
    if asked.plan.n is not None:
        plan += ["--n", str(asked.plan.n)]
    kept = ["--allow-partial"] if allow_partial else []
    lines = [
        [*plan, "-o", f"{name}.plan.json"],
        ["confide", "release", f"{name}.plan.json", data, "--ledger", ledger, *kept, "-o", f"{name}.release.json"],
        ["confide", "infer", f"{name}.release.json", "--report", f"{name}.html"],
    ]
    planned, *then = (" ".join(shlex.quote(word) for word in line) for line in lines)
    # a schema that changed since makes another plan
    checked = f'grep -q \'"sha256":"{asked.plan.sha256}"\' {shlex.quote(f"./{name}.plan.json")}'
    said = "\n".join([planned, checked, *then])
    return f"#!/bin/sh\nset -e\n# the plan that was asked for has the sha256 {asked.plan.sha256}\n{written}{said}\n"


def _planned(asked: Request) -> list[str]:
    """The command that plans one question."""
    (_, formula), *rest = _parameters(asked.plan.method.name, asked.plan.method.parameters).items()
    plan = ["confide", "plan", str(formula), "--schema", _schema(asked), "--method", asked.plan.method.name]
    for key, value in rest:
        plan += ["--where", str(value)] if key == "where" else ["--param", f"{key}={json.dumps(value)}"]
    return plan


def _written(asked: Request) -> tuple[str, list[str]]:
    """What writes the questions of a publication into a file, and the command that plans it."""
    place, shares = f"{asked.name}.publication.toml", asked.plan.method.parameters.get("shares") or {}
    lines = []
    for one in asked.plan.method.parameters["analyses"]:
        lines += [f"[analyses.{toml.key(one['analysis'])}]", f"method = {toml.value(one['method'])}"]
        own = _parameters(one["method"], one["parameters"])
        lines += [f"{toml.key(name)} = {_toml(value)}" for name, value in own.items() if value is not None]
        if one["analysis"] in shares:
            lines.append(f"share = {_toml(_weight(shares[one['analysis']]))}")
    # no line of TOML is this word: values are quoted
    text, end = "\n".join(lines), f"END_{asked.plan.sha256[:12]}"
    plan = ["confide", "plan", place, "--schema", _schema(asked)]
    return f"cat > {shlex.quote(place)} <<'{end}'\n{text}\n{end}\n", plan


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return toml.value(value)


def _weight(share: Any) -> int | float:
    """A weight of a question: exact, where it was typed into a form."""
    return int(share) if share == int(share) else float(share)


def notebook(asked: Request, data: str, ledger: str, allow_partial: bool = False) -> str:
    """The script as a Jupyter notebook, a cell for each step."""

    def cell(number: int, text: str) -> dict[str, Any]:
        own: dict[str, Any] = {"cell_type": "code", "id": f"step-{number}", "metadata": {}, "source": text}
        return {**own, "execution_count": None, "outputs": []}

    made = {
        "cells": [cell(number, text) for number, text in enumerate(_pieces(asked, data, ledger, allow_partial), 1)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1)


#: The ending of the file, its media type, and what writes it.
STEPS: Mapping[str, tuple[str, Callable[[Request, str, str, bool], str]]] = {
    "py": ("text/x-python", script),
    "sh": ("text/x-shellscript", commands),
    "ipynb": ("application/x-ipynb+json", notebook),
}


def _pieces(asked: Request, data: str, ledger: str, allow_partial: bool) -> list[str]:
    plan = asked.plan
    kind = type(plan.requested).__name__
    levels = [getattr(plan.requested, name) for name in plan.requested.numbers()]
    privacy = ", ".join([*(repr(level) for level in levels if level), f"relation={plan.relation!r}"])
    more = "" if plan.n is None else f", n={plan.n}"
    kept = ", allow_partial=True" if allow_partial else ""
    return [
        "import confide as cf\nfrom confide import registry",
        f"schema = cf.Schema.from_toml({_schema(asked)!r})\n"
        f"method = {_method(plan)}\n"
        f"plan = cf.plan(method, schema, cf.{kind}({privacy}){more})\n"
        f"assert plan.sha256 == {plan.sha256!r}  # the plan that was asked for\n"
        "print(plan)",
        f"data = cf.read({data!r}, schema)\n"
        f"ledger = cf.Ledger.open({ledger!r}, dataset=schema.dataset)\n"
        f"release = cf.release(plan, data, ledger=ledger{kept})  # charges the ledger, once for each call\n"
        f"release.save({asked.name + '.release.json'!r})",
        f"{_reading(asked)}\nprint(result)\nresult.report({asked.name + '.html'!r})",
    ]


def _reading(asked: Request) -> str:
    """From the release to what is shown of it: a test is a question to a table."""
    form = asked.form
    if form.get("kind") == PUBLICATION and any(one["kind"] in TESTS for one in named_in(form).values()):
        rows = {key: value for key, value in form.items() if key == "kind" or key[-1].isdigit()}
        return f"from confide.ask.menu import reading_of\n\nresult = reading_of({rows!r})(cf.infer(release))"
    if form.get("kind") not in TESTS:
        return "result = cf.infer(release)"
    asks = f"_, ask = tests.asked_of({TESTS[form['kind']]!r}, {form.get('formula', '')!r})"
    return f"from confide.ask import tests\n\n{asks}\nresult = ask(cf.infer(release))"


def _method(plan: Plan) -> str:
    """What makes the plan's method; a publication's questions one on each line."""
    if not plan.children:
        return _made(plan.method.name, plan.method.parameters)
    own = plan.method.parameters
    lines = [f"    {one['analysis']!r}: {_made(one['method'], one['parameters'])}," for one in own["analyses"]]
    shares = {name: _weight(one) for name, one in (own.get("shares") or {}).items()}
    return "\n".join(["cf.Publication({", *lines, f"}}, shares={shares!r})" if shares else "})"])


def _made(name: str, parameters: Mapping[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in _parameters(name, parameters).items())
    return f"registry.make({name!r}, {given})"


def _parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a method was told: its first parameter, then those that are not as they are when left out."""
    kind = registry.get(name)
    usual = {one.name: one.default for one in fields(kind)}
    allowed = parameters_of(kind)
    if not set(given) <= set(allowed):
        # a request is a file of anyone's, and what stands before "=" in a script is run by it
        raise PlanError("this request's method has a parameter that it does not take; no steps are written of it")
    first = allowed[0]
    return {first: given[first]} | {
        key: value for key, value in given.items() if key != first and value != usual.get(key)
    }


def _schema(asked: Request) -> str:
    return asked.form.get("schema") or f"{asked.name}.schema.toml"
