"""The commands by name, each loaded when it is called: listing them, or running one, does not wait for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

import typer

#: Our commands in the order of a user's steps: where each is found, and its purpose, so that neither a list nor another command loads it.
OURS: Mapping[str, tuple[str, str]] = {
    "schema": ("schema:app", "What is public about the data: columns, bounds, levels."),
    "explore": (
        "choosing:explore",
        "List the questions that may be asked of a schema, with a command for each, and a file of several.",
    ),
    "advise": (
        "choosing:advise",
        "Say which method to expect most of, with predicted standard errors, from public facts alone.",
    ),
    "plan": (
        "analysis:plan",
        "Show what an analysis will spend and what it will give, before anything is spent.",
    ),
    "release": (
        "analysis:release",
        "Charge the ledger, then draw the noise, then write the release: once, and it cannot be had again.",
    ),
    "infer": ("analysis:infer", "Print the table of a release: estimates, intervals, tests."),
    "table": (
        "one_step:table",
        "Plan, release and infer a table in one go: counts, shares, means or totals by cell, with intervals.",
    ),
    "test": (
        "one_step:test",
        "Plan, release and test in one go, under the names of scipy.stats; p-values account for sampling and noise.",
    ),
    "interval": ("one_step:interval", "Plan, release and infer an interval for one parameter in one go."),
    "describe": (
        "one_step:describe",
        "Plan, release and infer Table One in one go: what the records are like, by group.",
    ),
    "regress": (
        "analysis:regress",
        "Plan, release and infer a regression in one go, for a steward who is also the analyst.",
    ),
    "publish": ("publish:publish", "Ask many questions at once: one plan, one charge, one file, one report."),
    "synthesize": (
        "publish:synthesize",
        "Make a file of synthetic rows on which plain OLS returns a private line.",
    ),
    "refit": (
        "publish:refit",
        "Print the regression table of a synthetic file from its published release, never from its rows.",
    ),
    "plan local": (
        "local:plan",
        "Show the standard errors to expect of a protected table, of every method, and of what would do better.",
    ),
    "protect": (
        "local:protect",
        "Write a table in which each row carries noise of its own, so that it may be published.",
    ),
    "fit": (
        "local:fit",
        "Fit a model to a protected table: coefficients and intervals that account for the noise on its rows.",
    ),
    "ledger": ("ledger:app", "The ledger: what may be spent on a dataset, and what was."),
    "verify": (
        "ledger:verify_release",
        "Check a published release against the ledger it was charged to; exit code 1 when something does not hold.",
    ),
    "disclosure": (
        "ledger:disclosure",
        "Say what was released, for whom it is protected, under which guarantee, by what: a record for output checkers.",
    ),
    "methods": (
        "choosing:methods",
        "List every registered method: family, native guarantee, relations, parameters, source.",
    ),
    "curve": (
        "choosing:curve",
        "Draw and tabulate guarantees: what someone who sees a release can find out at most.",
    ),
    "audit": (
        "audit:audit",
        "Try to break a method: neighbours from the schema, exact differences, record and replay, the sampler.",
    ),
    "studio": (
        "studio:studio",
        "Open a page on this machine, in the browser: describe a file, ask, approve, release, read.",
    ),
}


class Commands(Mapping[str, Any]):
    """What `OURS` lists: name -> command. Whoever iterates over names loads none.

    `ran` is the command whose own function was entered last, as its words: () before any was. No version of what reads
    command lines has a say in it.
    """

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}
        self.ran: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            module, attribute = OURS[name][0].split(":")
            self._built[name] = self.built(getattr(import_module(f"confide.cli.commands.{module}"), attribute), name)
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(OURS)

    def __len__(self) -> int:
        return len(OURS)

    def built(self, found: Any, name: str) -> Any:
        """A command from a function, or from a typer application, under a name."""
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False, rich_markup_mode="rich")
            app.command(name)(found)
            found = app
        command = typer.main.get_command(found)
        command.name = name
        self._watch(command, tuple(name.split()))
        return command

    def _watch(self, command: Any, words: tuple[str, ...]) -> None:
        """Make a command, and every command below it, say in `ran` that it was entered."""
        below = getattr(command, "commands", None)
        if below is not None:
            for name, one in below.items():
                self._watch(one, (*words, name))
        elif (function := command.callback) is not None:

            @wraps(function)
            def entered(*args: Any, **options: Any) -> Any:
                self.ran = words
                return function(*args, **options)

            command.callback = entered
