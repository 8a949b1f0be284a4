"""`confide interval`: an interval for one parameter, in one go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from confide.cli.files import load_schema
from confide.cli.gate import Once, at_once, open_ledger
from confide.cli.options import Data, SchemaFile
from confide.cli.questions.anew import quantiles_of
from confide.cli.session import Session
from confide.cli.spread import spread
from confide.faces.calls.interval_verbs import VERBS

__all__ = ["interval"]


@spread
def interval(
    ctx: typer.Context,
    verb: Annotated[str, typer.Argument(metavar="|".join(VERBS), help="What the interval is for.", show_default=False)],
    data: Data,
    column: Annotated[
        str,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help='The column; for slope and difference a formula, "y ~ x".',
            show_default=False,
        ),
    ],
    schema: SchemaFile,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="credible|confidence|poisson",
            help="A posterior, or confidence limits, of the same release; poisson, of a mean: the rate of counts whose variance is "
            "their mean.",
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option("--level", metavar="LEVEL", help="Which level counts, where a column has more than two."),
    ] = None,
    prior: Annotated[str | None, typer.Option("--prior", metavar="PRIOR", help='Such as "beta(2, 5)".')] = None,
    q: Annotated[str | None, typer.Option("--q", metavar="Q,Q", help="Quantiles, such as .25,.5,.75.")] = None,
    *,
    once: Once,
) -> None:
    """Plan, release and infer an interval for one parameter in one go.

    Where the number of records is public (substitute) it is a posterior or
    confidence limits, else (add-remove) it is read from the release of a table.

    Step by step: confide plan COLUMN --method proportion, mean_and_variance ...

    Examples:

    confide interval proportion survey.csv --column smoker --schema schema.toml \\
      --mu .5 --ledger ledger.db --plot smoker.png

    confide interval quantile survey.csv --column income --q .1,.5,.9 \\
      --schema schema.toml --epsilon .5 --ledger ledger.db
    """
    session: Session = ctx.obj
    given = {
        name: value
        for name, value in {"level": level, "prior": prior, "q": quantiles_of(q)}.items()
        if value is not None
    }
    given |= once.parameters.settings()
    once.account.check(once.simulate)
    with session.doing("plan"):
        answer = _answer(verb, column, schema, once, kind, given)
        method, settings = _made_of(answer.method)
    first = next(iter(settings))
    at_once(session, once, data, schema, method, settings.pop(first), settings, answer.read)


def _answer(verb: str, column: str, schema: Path, once: Once, kind: str | None, given: dict[str, Any]) -> Any:
    from confide.faces.calls.interval_calls import interval_method
    from confide.guarantees import PureDP

    found = load_schema(schema)
    book = open_ledger(once.account.ledger, once.account.dataset, found.dataset)
    return interval_method(
        verb,
        column,
        found,
        once.privacy.guarantee(),
        relation=None if book is None else book.relation,
        pure_ledger=book is not None and isinstance(book.budget, PureDP),
        kind=kind,
        **given,
    )


def _made_of(method: Any) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a method, its first one first."""
    from confide.protocol import method_parameters, parameters_of

    own = method_parameters(method)
    return method.name, {name: own[name] for name in parameters_of(type(method)) if name in own}
