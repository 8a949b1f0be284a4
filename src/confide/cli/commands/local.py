"""`confide local plan`, `confide local protect` and `confide local fit`: the local model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from confide._helpers import progress_bar
from confide.cli.engine import charged_words, look as preflighted, open_ledger
from confide.cli.files import Drawings, answer_result, check_places, load_schema, show_result
from confide.cli.options import (
    Account,
    Alpha,
    FileOptions,
    Json,
    PreflightOptions,
    Privacy,
    SchemaFile,
    Seed,
    Written,
    spread,
)
from confide.cli.session import Refused, Session, reading_only
from confide.errors import ReleaseError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="The local model: add noise to each record; fit models to the rows.",
)


@dataclass(frozen=True)
class Protection:
    """How each record is perturbed."""

    columns: Annotated[str | None, typer.Option(metavar="A,B", help="The numeric columns to protect.")] = None
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="A=EPS,B=EPS", help="Categorical columns to protect by randomized response, each with its epsilon."
        ),
    ] = None
    public: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to publish without any protection.")] = None
    level: Annotated[
        str,
        typer.Option(
            metavar="record|attribute",
            help="The privacy unit: all protected columns of a record, or any one of them.",
        ),
    ] = "record"
    noise: Annotated[
        float | None, typer.Option(help="Instead of a cost: SD of the noise over the width of the column.")
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
    """The loss of a fit."""

    loss: Annotated[
        str,
        typer.Option(metavar="NAME", help="The loss: squared, logistic, poisson, quantile, absolute, huber or hinge."),
    ] = "squared"
    tau: Annotated[float | None, typer.Option(help="The level of --loss quantile; left out, 0.5.")] = None
    k: Annotated[float | None, typer.Option(help="The threshold of --loss huber, in units of the response.")] = None


@app.command()
@spread
def protect(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="IN", help="The records: a CSV or Parquet file.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The locally protected rows: .parquet or .csv.")],
    schema: SchemaFile,
    accept: Annotated[
        bool, typer.Option("--accept-verbatim-rows", help="Confirm that some rows get no noise (--zeta).")
    ] = False,
    look: Annotated[bool, typer.Option("--plan", help="Print the guarantee and stop.")] = False,
    simulate: Seed = None,
    *,
    file: FileOptions,
    preflight: PreflightOptions,
    protection: Protection,
    privacy: Privacy,
    account: Account,
    written: Written,
) -> None:
    """Write rows with noise on each record, which may be published (local model).

    The file says how much noise it holds. It needs a separate ledger: confide ledger
    init with --trust local --relation substitute.

    Example:

    confide local protect survey.csv protected.parquet --schema schema.toml \\
      --columns income,age --public region --noise 0.5 \\
      --ledger local.db --charge-delta 1e-4
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
    session.ledger = account.ledger
    session.dataset = None if book is None else book.dataset
    source = read(data, public_schema, file=file.entries())
    preflighted(session, source, (*made.protection.protected, *made.protection.public), preflight)
    with session.paying("protecting the rows", ledger=book is not None), _bar() as step:
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
    for line in made.lines():
        session.say(line)
    session.say()
    if book is None:
        session.say(f"Charged to no ledger. Wrote {out}")
    else:
        state = book.show()
        share = next(row.share for row in reversed(state.rows) if row.kind == "charge")
        session.say(f"{charged_words(state, share)}. Wrote {out}")
    session.answer({"output": str(out)} | _facts(made))


@app.command()
@spread
def plan(
    ctx: typer.Context,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help='The model to be fitted: "y ~ x1 + x2".')],
    schema: SchemaFile,
    n: Annotated[int, typer.Option(help="Number of records.")],
    *,
    protection: Protection,
    loss: Loss,
    json: Json = False,
    privacy: Privacy,
) -> None:
    """Forecast the standard errors of fits to locally protected rows.

    Reads the schema only. For comparison it also prints a raw sample with the same
    guarantee, and the central model, in which the steward adds the noise.

    Example:

    confide local plan "spent ~ age" --schema schema.toml --columns age \\
      --public spent --epsilon 2 --delta 0.001 --n 5000
    """
    session: Session = ctx.obj
    from confide.ask import local

    asked = protection.asked(privacy, accept=True)  # a plan publishes no verbatim rows
    with session.doing("planning"):
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
    table: Annotated[Path, typer.Argument(metavar="PROTECTED", help="A file that confide local protect wrote.")],
    *,
    loss: Loss,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="The estimator: auto, SL, RB, SDR, DR or naive.")
    ] = "auto",
    bounds: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Public bounds of all coefficients, or by name: x=0:2,age=-1:1."),
    ] = None,
    alpha: Alpha = None,
    drawings: Drawings,
    written: Written,
) -> None:
    """Fit a model to locally protected rows, with intervals that account for their noise.

    Reads the protected file only, which is public, and charges nothing. The file says
    how much noise its columns hold.

    Example:

    confide local fit "income ~ age + region" protected.parquet
    """
    session: Session = ctx.obj
    from confide.local.estimates import fit as fitted

    with drawings.reserved(force=written.force) as drawn:
        with session.doing("fitting"):
            try:
                result = fitted(table, formula, method=method, bounds=_pairs(bounds), **vars(loss))
            except ReleaseError as error:
                raise reading_only(error) from None
        show_result(session, result, alpha, drawn, drawings=drawings)
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
            raise Refused(
                f"--levels takes a column and its epsilon, got {part!r}", "write --levels region=1.0"
            ) from None
    return found or None


def _pairs(text: str | None) -> Any:
    """Bounds of all coefficients, or of each by its name."""
    found: dict[str, tuple[float, float]] = {}
    for part in _names(text) or ():
        name, _, ends = part.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            raise Refused(
                f"--bounds takes two numbers, or a coefficient and its two, got {part!r}", "write --bounds x=0:2"
            ) from None
        if not -inf < pair[0] < pair[1] < inf:
            raise Refused(
                f"--bounds takes two finite numbers, the lower one first, got {part!r}",
                "write --bounds x=0:2, or --bounds -2:2 for all coefficients",
            )
        found[name.strip()] = pair
    return found[""] if set(found) == {""} else found or None


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
    """Rows done, on stderr: under substitution the number of rows is public."""
    with progress_bar("protect") as step:
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            step(done, done, f"{done:,} rows")

        yield more
