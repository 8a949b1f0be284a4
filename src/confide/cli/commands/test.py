"""`confide test`: a test under its name in scipy.stats, planned, released and read in one go."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from confide import engine
from confide.ask import tests
from confide.cli.commands.analysis import TestArguments, known_test, not_of_a_release
from confide.cli.commands.one_step import check_complete
from confide.cli.engine import OneStepRequest, at_once, make
from confide.cli.files import load_schema
from confide.cli.options import RECORDS, Fields, SchemaFile, fields_of, spread
from confide.cli.session import Session
from confide.core import parameters_of
from confide.registry import name_of


@partial(spread, own=fields_of(*map(name_of, ("Means", "Correlation")), names=("weights", "term_bounds")))
def test(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="TEST", help=f"One of {', '.join(tests.METHODS)}.", show_default=False, is_eager=True),
    ],
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA",
            help='For instance "income ~ sex", "smoker * region", "x + y".',
            show_default=False,
            is_eager=True,
            callback=not_of_a_release,
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help=RECORDS, show_default=False, is_eager=True, callback=not_of_a_release),
    ],
    schema: SchemaFile,
    effect: Annotated[
        float | None,
        typer.Option(help="Print the power for this effect size (Cohen's d, f, w or r) at --n records first."),
    ] = None,
    *,
    own: Fields,
    asked: TestArguments,
    once: OneStepRequest,
) -> None:
    """Release a test under its name in scipy.stats.

    P-values account for sampling and noise. What is printed may be published. With --n, a public number of records, the power
    is printed first. If a table is released already, confide infer --test prints its
    tests without a further charge.

    Example:

    confide test f_oneway "happy ~ region" survey.csv --schema schema.toml \\
      --mu 0.3 --ledger ledger.db
    """
    known_test(name, lambda meant: f"confide test {meant} ...")
    session: Session = ctx.obj
    wanted, ask = tests.asked_of(name, formula, **asked.given())
    settings = once.parameters.settings(**own.given())
    check_complete(ctx, once, formula, schema)
    with session.doing("plan"):
        tests.check_weights(name, settings)
        kind = tests.METHODS[name]
        inference = {"inference": "population"} if "inference" in parameters_of(kind) else {}
        method = make(kind.name, wanted, settings | inference)
        tests.check_groups(name, method, load_schema(schema))
    if (effect is not None or once.n is not None) and not once.privacy.targets:
        with session.doing("plan"):
            public: dict[str, Any] = {"p": asked.p, "level": asked.level}
            made = tests.plan(
                name,
                formula,
                load_schema(schema),
                once.privacy.guarantee(),
                n=once.n,
                effect=effect,
                settings=settings,
                **{key: value for key, value in public.items() if value is not None},
            )
        for note in made.notes:
            if "power" in note:
                session.say(note)
    with engine.asking(ask):
        at_once(session, once, data, schema, lambda: method, lambda done: ask(engine.infer(done)))
