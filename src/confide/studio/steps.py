"""What the studio did, as a script, as commands and as a notebook: each makes the same plan, and says so by its digest."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from confide import registry
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.protocol import parameters_of
from confide.studio.folder import Request

__all__ = ["STEPS", "commands", "notebook", "script"]


def script(asked: Request, data: str, ledger: str) -> str:
    """A Python program: plan, release, infer."""
    return "\n\n".join(_pieces(asked, data, ledger)) + "\n"


def commands(asked: Request, data: str, ledger: str) -> str:
    """A shell script of three commands."""
    (_, formula), *rest = _parameters(asked).items()
    name, privacy = asked.name, asked.plan.requested
    if not isinstance(privacy, GDP):
        raise PlanError("commands are written for plans in mu; take the script")
    plan = [
        "confide",
        "plan",
        str(formula),
        "--schema",
        _schema(asked),
        "--method",
        asked.plan.method.name,
        "--mu",
        repr(privacy.mu),
    ]
    if privacy.relation is not None:
        plan += ["--relation", privacy.relation]
    for key, value in rest:
        plan += ["--where", str(value)] if key == "where" else ["--set", f"{key}={json.dumps(value)}"]
    if asked.plan.n is not None:
        plan += ["--n", str(asked.plan.n)]
    lines = [
        [*plan, "-o", f"{name}.plan.json"],
        ["confide", "release", f"{name}.plan.json", data, "--ledger", ledger, "-o", f"{name}.release.json"],
        ["confide", "infer", f"{name}.release.json", "--report", f"{name}.html"],
    ]
    said = "\n".join(" ".join(shlex.quote(word) for word in line) for line in lines)
    return f"#!/bin/sh\nset -e\n# the plan that was asked for has the sha256 {asked.plan.sha256}\n{said}\n"


def notebook(asked: Request, data: str, ledger: str) -> str:
    """The script as a Jupyter notebook, a cell for each step."""

    def cell(number: int, text: str) -> dict[str, Any]:
        own: dict[str, Any] = {"cell_type": "code", "id": f"step-{number}", "metadata": {}, "source": text}
        return {**own, "execution_count": None, "outputs": []}

    made = {
        "cells": [cell(number, text) for number, text in enumerate(_pieces(asked, data, ledger), 1)],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, indent=1)


#: The ending of the file, its media type, and what writes it.
STEPS: Mapping[str, tuple[str, Callable[[Request, str, str], str]]] = {
    "py": ("text/x-python", script),
    "sh": ("text/x-shellscript", commands),
    "ipynb": ("application/x-ipynb+json", notebook),
}


def _pieces(asked: Request, data: str, ledger: str) -> list[str]:
    plan = asked.plan
    given = ", ".join(f"{key}={value!r}" for key, value in _parameters(asked).items())
    kind = type(plan.requested).__name__
    levels = [getattr(plan.requested, name) for name in plan.requested.numbers()]
    privacy = ", ".join([*(repr(level) for level in levels if level), f"relation={plan.relation!r}"])
    more = "" if plan.n is None else f", n={plan.n}"
    return [
        "import confide as cf\nfrom confide import registry",
        f"schema = cf.Schema.from_toml({_schema(asked)!r})\n"
        f"method = registry.make({plan.method.name!r}, {given})\n"
        f"plan = cf.plan(method, schema, cf.{kind}({privacy}){more})\n"
        f"assert plan.sha256 == {plan.sha256!r}  # the plan that was asked for\n"
        "print(plan)",
        f"data = cf.read({data!r}, schema)\n"
        f"ledger = cf.Ledger.open({ledger!r}, dataset=schema.dataset)\n"
        f"release = cf.release(plan, data, ledger=ledger)  # charges the ledger, once for each call\n"
        f"release.save({asked.name + '.release.json'!r})",
        f"{_reading(asked)}\nprint(result)\nresult.report({asked.name + '.html'!r})",
    ]


def _reading(asked: Request) -> str:
    from confide.faces.questions import QUESTIONS

    test = next((one.method for one in QUESTIONS if one.test and one.name == asked.form.get("kind")), None)
    if test is None:
        return "result = cf.infer(release)"
    asks = f"_, ask = tests.asked_of({test!r}, {asked.form.get('formula', '')!r})"
    return f"from confide.faces import tests\n\n{asks}\nresult = ask(cf.infer(release))"


def _parameters(asked: Request) -> dict[str, Any]:
    """What the method was told: its first parameter, then those that are not as they are when left out."""
    kind = registry.get(asked.plan.method.name)
    given, usual = asked.plan.method.parameters, {one.name: one.default for one in fields(kind)}
    first = parameters_of(kind)[0]
    return {first: given[first]} | {
        key: value for key, value in given.items() if key != first and value != usual.get(key)
    }


def _schema(asked: Request) -> str:
    return asked.form.get("schema") or f"{asked.name}.schema.toml"
