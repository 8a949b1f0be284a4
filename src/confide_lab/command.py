"""`confide lab`: the experiments of the papers, run here, beside what the papers print. Nothing private is read and nothing is charged."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.files import check_places, reserve, write_output
from confide.cli.options import Force, Json
from confide.cli.session import Refused, Session, strict
from confide.cli.tables import table
from confide.errors import PlanError
from confide_lab.paper_command import clock, errata, papers

if TYPE_CHECKING:
    from confide_lab.experiment import Experiment, Record
    from confide_lab.referee import Attempt

__all__ = ["app"]

app = typer.Typer(
    help="Experiments: a paper's tables and figures, run here, beside the numbers that it prints.", no_args_is_help=True
)
app.command("papers")(papers)
app.command("errata")(errata)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="An experiment that `confide lab list` names.", show_default=False)
]
Reps = Annotated[
    int | None, typer.Option("--reps", metavar="R", help="Replications of each cell; each block's own when left out.")
]
Jobs = Annotated[int, typer.Option("--jobs", metavar="J", help="Processes.")]
Resume = Annotated[
    bool, typer.Option("--resume/--fresh", help="Go on from what this code has recorded, or remove it first.")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the recorded replications are.")]


@app.command("list")
def list_experiments(ctx: typer.Context, json: Json = False) -> None:
    """The experiments, with the replications of a default run and those of the paper, where it states them.

    Their data are simulated or public; no ledger is charged.

    Example:

    confide lab list
    """
    session: Session = ctx.obj
    with session.doing("loading the experiments"):
        from confide_lab.experiments import load, names

        found = [load(name) for name in names()]
    rows: list[dict[str, Any]] = []
    for one in found:
        cells = sum(_cells(block.grid) * len(block.methods) for block in one.blocks)
        rows.append(
            {
                "name": one.name,
                "title": one.title,
                "cells": cells,
                "replications": [block.replications for block in one.blocks],
                "full": [block.full for block in one.blocks],
                "settings": {block.name: {k: list(v) for k, v in block.grid.items()} for block in one.blocks},
                "methods": {block.name: list(block.methods) for block in one.blocks},
            }
        )
    table(
        session,
        ("experiment", "cells x methods", "replications", "in the paper", "title"),
        [
            [
                row["name"],
                str(row["cells"]),
                ", ".join(map(str, row["replications"])),
                ", ".join("-" if count is None else str(count) for count in row["full"]),
                row["title"],
            ]
            for row in rows
        ],
        right=("cells x methods", "replications", "in the paper"),
    )
    session.answer({"experiments": rows})


@app.command("run")
def run_experiment(
    ctx: typer.Context,
    name: Name,
    reps: Reps = None,
    jobs: Jobs = 1,
    resume: Resume = True,
    out: Out = Path("out/lab"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="OUT",
            help="Write the records, one for each cell, method and quantity, as JSON; the table stays on stdout.",
        ),
    ] = None,
    cell: Annotated[
        list[str] | None,
        typer.Option(
            "--cell",
            metavar="SETTING=VALUE",
            help="Run a part: a setting, method or block; repeat for more. Its numbers are those of the whole run.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Run an experiment and show it beside the numbers of its source. Interrupted, the same command goes on.

    Its data are simulated or public: sets are read from the directory that CONFIDE_DATA names, else fetched from their source.

    Example:

    confide lab run binagg.figure1 --reps 2 --cell d=5 --cell n=200 \\
      --cell method=ols
    """
    session: Session = ctx.obj
    if reps is not None and reps < 1:
        raise Refused(f"--reps is at least 1, got {reps}")
    if jobs < 1:
        raise Refused(f"--jobs is at least 1, got {jobs}")
    only = _parts(cell)
    check_places({"--json": output}, {})
    with reserve(output, force=force) as place:
        session.step = "running the experiment"
        from confide_lab.experiment import run
        from confide_lab.experiments import load

        experiment = load(name)
        found = run(experiment, out, reps=reps, jobs=jobs, resume=resume, only=only, note=session.note)
        if not found:
            raise PlanError(
                f"no cell of {name} could be measured; where its data are needed, name their directory in CONFIDE_DATA, or connect this "
                "machine to the network so that they can be fetched; the notes above say what each cell met"
            )
        _show(session, experiment, found)
        if place is not None:
            write_output(
                place, json_module.dumps([strict(record) for record in found], indent=1, allow_nan=False) + "\n"
            )
            session.say(f"wrote {len(found)} records to {output}")


@app.command("referee")
def referee_experiment(
    ctx: typer.Context,
    name: Name,
    reps: Reps = None,
    jobs: Jobs = 1,
    resume: Resume = True,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the replications of this command are recorded; not where lab run has its own.",
        ),
    ] = Path("out/lab/referee"),
    cell: Annotated[
        list[str] | None,
        typer.Option("--cell", metavar="SETTING=VALUE", help="Judge a part, or try a part; repeat for more."),
    ] = None,
    json: Json = False,
) -> None:
    """Which of the settings that a paper leaves open give its table: they are stated, each is run, agreeing cells are counted.

    The first setting is the letter's: what the paper's text says where it is read word by word. A cell agrees within three of our standard
    errors or 3 %. Data are simulated or public; no ledger is charged.

    Example:

    confide lab referee zil.table1 --cell block=exact
    """
    session: Session = ctx.obj
    if reps is not None and reps < 1:
        raise Refused(f"--reps is at least 1, got {reps}")
    if jobs < 1:
        raise Refused(f"--jobs is at least 1, got {jobs}")
    only = _parts(cell)
    session.step = "running the experiment"
    from confide_lab import referee
    from confide_lab.experiments import load

    experiment = load(name)
    for block, _ in referee.blocks(experiment, only):
        tried, whole = referee.search(block, only), referee.search(block)
        session.say(
            f"{name}, {block.name}: {len(tried)} of {len(whole)} settings are tried. The first of each "
            "is the letter's, as the paper's text says it word by word"
        )
        for setting, values in block.open_settings.items():
            session.say(f"  {setting}: {', '.join(map(str, values))}")
    count, seconds = referee.work(experiment, reps, only)
    session.note(
        f"{count:,} replications, about {clock(seconds / jobs)} with {jobs} processes where nothing is recorded"
    )
    found = referee.referee(experiment, out, reps=reps, jobs=jobs, resume=resume, only=only, note=session.note)
    for own in {one.block: [other for other in found if other.block == one.block] for one in found}.values():
        _attempts(session, own)
    session.answer({"experiment": name, "tried": [one.to_json() for one in found]})


@app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME ...", help="Benchmarks, or all; left out: list them.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Run benchmarks and acceptance checks by name; figures go to out/bench, words after truth and faults to them.

    Their data are simulated or public; no ledger is charged. Exit code 1 where a check failed.

    Example:

    confide lab bench noise quantile
    """
    # by name: these modules import what only a developer's environment has
    session: Session = ctx.obj
    words = [word for word in (name, *ctx.args) if word is not None]
    run = import_module("confide_lab.benchmarks.__main__").main
    with redirect_stdout(sys.stderr) if json else nullcontext():
        code = run(words)
    session.answer({"benchmarks": words, "code": code})
    if code:
        raise typer.Exit(code)


@app.command("report")
def report_experiment(
    ctx: typer.Context,
    name: Name,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Write one self-contained HTML page.")
    ] = None,
    out: Out = Path("out/lab"),
    force: Force = False,
    json: Json = False,
) -> None:
    """What was recorded so far: the paper's number, ours, its standard error and the verdict; as a page also the figure.

    Only recorded numbers of public or simulated data are read.

    Example:

    confide lab report binagg.figure1 -o figure1.html
    """
    session: Session = ctx.obj
    check_places({"-o": output}, {})
    with reserve(output, force=force) as place:
        with session.doing("reading the records"):
            from confide_lab.experiment import recorded
            from confide_lab.experiments import load

            experiment = load(name)
            found = recorded(experiment, out)
        if not found:
            raise Refused(f"nothing of {name} is recorded in {out}; run it first: confide lab run {name}")
        _show(session, experiment, found)
        if place is not None:
            with session.doing("drawing"):
                from confide_lab.report import page

                text = page(experiment, found)
            write_output(place, text)
            session.say(f"wrote {output}")
    session.answer({"experiment": name, "records": [dict(record) for record in found], "wrote": output and str(output)})


def _parts(texts: Sequence[str] | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in texts or ():
        setting, sign, value = text.partition("=")
        if not sign:
            raise Refused(f"--cell takes SETTING=VALUE, got {text!r}; write for instance --cell d=5")
        found.setdefault(setting.strip(), []).append(value.strip())
    return found


def _cells(grid: Any) -> int:
    count = 1
    for values in grid.values():
        count *= len(values)
    return count


def _show(session: Session, experiment: Experiment, found: Sequence[Record]) -> None:
    """One table for each block, then the checks and notes."""
    from confide_lab.report import HEADS, checks, lines

    session.say(experiment.title)
    for block in experiment.blocks:
        there = [record for record in found if record["block"] == block.name]
        if there:
            session.say(f"\n{block.title or block.name}")
            heads = HEADS
            table(session, heads, lines(block, there), right=heads[3:7])
            for check in checks(block, there):
                state = {True: "holds", False: "FAILS", None: "open"}[check.ok]
                session.say(f"{state}: {check.name}: {check.text}")
    session.say()
    for note in experiment.notes:
        session.say(f"- {note}")


def _attempts(session: Session, tried: Sequence[Attempt]) -> None:
    """One line for each setting of a block, then the best, and what the choice is worth on cells that it was not made by."""
    from confide_lab.referee import best, held_out

    heads = ("setting", "agree", "differ", "open", "by method")
    rows = []
    for one in tried:
        parts = ", ".join(f"{method} {agree}/{printed}" for method, (agree, printed) in one.by_method().items())
        counts = (one.agree, one.differ, len(one.cells) - one.agree - one.differ)
        rows.append([one.text() + (" (letter)" if one.letter else ""), *map(str, counts), parts])
    table(session, heads, rows, right=heads[1:4])
    first = best(tried)
    if not first.agree:
        vague = sum(len(one.cells) - one.differ for one in tried)
        more = f"; {vague} of {sum(len(one.cells) for one in tried)} are open: give more --reps" if vague else ""
        session.say(f"no printed cell agrees under any of {len(tried)} settings{more}")
        return
    session.say(f"best of {len(tried)} tried: {first.text()}: {first.agree} of {len(first.cells)} printed cells agree")
    chosen, agree, rest = held_out(tried)
    if len(tried) > 1 and rest:
        session.say(f"chosen on every second cell: {chosen.text()}, which agrees in {agree} of the {rest} others")
