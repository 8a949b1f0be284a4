"""`confide local plan`, `confide local protect` and `confide local fit`: a table whose rows carry noise of their own, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from confide._helpers import progress_bar
from confide.cli.engine import open_ledger
from confide.cli.files import Drawings, answer_result, check_places, load_schema, show_result
from confide.cli.options import (
    Account,
    Alpha,
    Delimiter,
    Json,
    Privacy,
    SchemaFile,
    Seed,
    Written,
    delimiter_of,
    spread,
)
from confide.cli.session import Refused, Session, reading_only
from confide.errors import ReleaseError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="The local model: noise on each record, before anyone else sees it.",
)


@dataclass(frozen=True)
class Protection:
    """What a protected table is asked to be."""

    columns: Annotated[str | None, typer.Option(metavar="A,B", help="The numeric columns to protect.")] = None
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="A=EPS,B=EPS", help="Columns of levels to protect by randomised response, with the epsilon of each."
        ),
    ] = None
    public: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns to publish as they are, with no protection at all.")
    ] = None
    level: Annotated[
        str,
        typer.Option(
            metavar="record|attribute",
            help="What the guarantee is about: all protected columns of a record, or any one of them.",
        ),
    ] = "record"
    noise: Annotated[
        float | None, typer.Option(help="In place of a guarantee: noise standard deviation over the column's width.")
    ] = None
    zeta: Annotated[
        float, typer.Option(help="The probability that a row is published verbatim.", show_default=False)
    ] = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The numeric columns."""
        return _names(self.columns) or ()

    def asked(self, privacy: Privacy, *, accept: bool) -> dict[str, Any]:
        """The rest, as the calls of `cf.local` take it."""
        return {
            "public": _names(self.public),
            "level": self.level,
            "privacy": privacy.guarantee() if privacy.given else None,
            "noise": self.noise,
            "levels": _epsilons(self.levels),
            "zeta": self.zeta,
            "accept_verbatim_rows": accept,
        }


@dataclass(frozen=True)
class Loss:
    """What is minimised."""

    loss: Annotated[
        str, typer.Option(metavar="NAME", help="squared, logistic, poisson, quantile, absolute, huber or hinge.")
    ] = "squared"
    tau: Annotated[float | None, typer.Option(help="The level of --loss quantile; a half when left out.")] = None
    k: Annotated[float | None, typer.Option(help="The corner of --loss huber, in units of the response.")] = None


@app.command()
@spread
def protect(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="IN", help="The records: a CSV or Parquet file.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The protected table: .parquet or .csv.")],
    schema: SchemaFile,
    accept: Annotated[
        bool, typer.Option("--accept-verbatim-rows", help="Say that rows without noise are meant.")
    ] = False,
    look: Annotated[bool, typer.Option("--plan", help="Say what the table would promise, and stop.")] = False,
    delimiter: Delimiter = ",",
    simulate: Seed = None,
    *,
    protection: Protection,
    privacy: Privacy,
    account: Account,
    written: Written,
) -> None:
    """Write a table in which each row carries noise of its own, so that it may be published.

    Nobody who sees the table is trusted: the noise is on every row, and the
    table says how much. Needs a ledger of its own (ledger init --trust local
    --relation substitute).

    Example:

    confide local protect survey.csv protected.parquet --schema schema.toml \\
      --columns income,age --public region --noise .5 --ledger local.db --charge-delta 1e-4
    """
    session: Session = ctx.obj
    from confide.ask import local
    from confide.sources import read

    public_schema = load_schema(schema)
    asked = protection.asked(privacy, accept=accept)
    made = local.plan(public_schema, protection.names, **asked)
    if look:
        for line in made.lines():
            session.say(line)
        session.answer(_facts(made))
        return
    account.check(simulate)
    check_places({"OUT": out}, {"IN": data, "--schema": schema})
    book = open_ledger(account.ledger, account.dataset, public_schema.dataset)
    session.charging, session.ledger = True, account.ledger
    session.dataset = None if book is None else book.dataset
    source = read(data, public_schema, delimiter=delimiter_of(delimiter))
    with session.paying("protecting the table", ledger=book is not None), _bar() as step:
        made = local.protect_source(
            source,
            out,
            columns=protection.names,
            ledger=book,
            charge_delta=account.charge_delta,
            force=written.force,
            seed=simulate,
            progress=step,
            **asked,
        )
    for line in (f"wrote {out}", *made.lines()):
        session.say(line)
    if book is None:
        session.say("not charged: no ledger (--unaccounted)")
    else:
        session.say(f"charged to dataset {book.dataset!r} of {book.place}; left: {book.show().remaining}")
    session.answer({"output": str(out)} | _facts(made))


@app.command()
@spread
def plan(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='What will be fitted: "y ~ x1 + x2".')],
    schema: SchemaFile,
    n: Annotated[int, typer.Option(help="How many records there will be.")],
    *,
    protection: Protection,
    loss: Loss,
    json: Json = False,
    privacy: Privacy,
) -> None:
    """Show the standard errors to expect of a protected table, of every method, and of what would do better.

    Reads the schema alone. Beside the methods stand a raw sample that promises as
    much, and a keeper who sees the records and adds noise to what is counted.

    Example:

    confide local plan "spent ~ age" --schema schema.toml --columns age \\
      --public spent --epsilon 2 --delta .001 --n 10000
    """
    session: Session = ctx.obj
    from confide.ask import local

    asked = protection.asked(privacy, accept=True)  # a plan publishes no verbatim rows
    with session.doing("planning the protected table"):
        made = local.plan(load_schema(schema), protection.names, formula=formula, n=n, **vars(loss), **asked)
    for line in made.lines():
        session.say(line)
    ways = [
        {"way": way.name, "noise": way.noise, "zeta": way.zeta, "errors": dict(way.errors), "interval_likely": way.firm}
        for way in (() if made.outlook is None else made.outlook.ways)
    ]
    session.answer(_facts(made) | {"formula": formula, "n": n, "loss": loss.loss, "ways": ways})


@app.command()
@spread
def fit(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='For instance "y ~ x1 + x2".')],
    table: Annotated[Path, typer.Argument(metavar="PROTECTED", help="A table that `confide local protect` wrote.")],
    *,
    loss: Loss,
    method: Annotated[str, typer.Option(metavar="NAME", help="auto, SL, RB, SDR, DR or naive.")] = "auto",
    alpha: Alpha = None,
    drawings: Drawings,
    written: Written,
) -> None:
    """Fit a model to a protected table: coefficients and intervals that account for the noise on its rows.

    Only the protected table is read, which is public; nothing is charged. The
    table itself says how much noise its columns carry.

    Example:

    confide local fit "income ~ age + region" protected.parquet
    """
    session: Session = ctx.obj
    from confide.local.estimates import fit as fitted

    with drawings.reserved(force=written.force) as drawn:
        with session.doing("fitting the protected table"):
            try:
                result = fitted(table, formula, method=method, **vars(loss))
            except ReleaseError as error:
                raise reading_only(error) from None
        show_result(session, result, alpha, drawn)
    answer_result(session, result, alpha, drawings)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise Refused(f"columns are names that commas separate, got {text!r}")
    return found


def _epsilons(text: str | None) -> dict[str, float] | None:
    found = {}
    for part in _names(text) or ():
        name, _, epsilon = part.rpartition("=")
        try:
            found[name.strip()] = float(epsilon)
        except ValueError:
            raise Refused(f"--levels takes a column and its epsilon, got {part!r}; write --levels region=1.0") from None
    return found or None


def _facts(made: Any) -> dict[str, Any]:
    told = made.protection
    return {
        "columns": {name: {"noise_sd": one.sd, "low": one.low, "high": one.high} for name, one in told.columns.items()},
        "randomised": {name: {"epsilon": one.epsilon, "keep": float(one.keep)} for name, one in told.levels.items()},
        "public": list(told.public),
        "zeta": told.zeta,
        "level": made.level,
        "guarantee": str(made.statement),
        "levels": {level: str(curve) for level, curve in told.curves.items()},
    }


@contextmanager
def _bar() -> Iterator[Callable[[int], None]]:
    """Rows done, on stderr: the number of rows is public under substitute."""
    with progress_bar("protect") as step:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            step(done, done, f"{done:,} rows")

        yield more
