"""`confide lab papers`: all five papers in one command that can be interrupted, and a static site of what came out."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.options import Json
from confide.cli.session import Refused, Session
from confide.cli.tables import table

__all__ = ["clock", "errata", "papers"]

#: The plan of the site of evidence, in a checkout.
_PLAN = Path("mkdocs.lab.yml")


def papers(
    ctx: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the site is written.")] = Path(
        "site"
    ),
    smoke: Annotated[
        bool, typer.Option("--smoke", help="One replication of what is cheap, without data sets: half a minute.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="What fits into a quarter of an hour on two cores.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="J", help="Processes.")] = 1,
    only: Annotated[
        list[str] | None, typer.Option("--paper", metavar="NAME", help="One paper; repeat for more.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where replications are recorded.")] = Path(
        "out/lab"
    ),
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from what this code has recorded, or start over.")
    ] = True,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Put the pages of evidence into DIR/evidence, too; in a checkout, with the packages of make docs.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Every table and figure of the five papers, theirs beside ours, as a static site. Interrupted, the same command goes on.

    To the letter is with the settings that a paper states; restored, with those that give most of its numbers where it leaves them open.

    Their data are simulated or public; no ledger is charged. Without --smoke or --quick each block has the paper's own number of
    replications: hours; the estimate is printed before it starts.

    Example:

    confide lab papers --smoke -o site
    """
    session: Session = ctx.obj
    if smoke and quick:
        raise Refused("--smoke and --quick are two sizes; give one of them")
    if jobs < 1:
        raise Refused(f"--jobs is at least 1, got {jobs}")
    if evidence and (not _PLAN.exists() or find_spec("mkdocs") is None):
        raise Refused(f"--evidence needs {_PLAN} in this folder and the packages of pip install 'confide[docs]'")
    mode = "smoke" if smoke else "quick" if quick else "full"
    with session.doing("loading the papers"):
        from confide_lab.papers.catalogue import PAPERS
        from confide_lab.papers.plan import estimate, units

        chosen = tuple(only or PAPERS)
        unknown = [name for name in chosen if name not in PAPERS]
        if unknown:
            raise Refused(f"there is no paper {unknown[0]!r}; there are {', '.join(PAPERS)}")
        todo = units(mode, chosen)
    seconds = estimate(todo, jobs)
    session.note(
        f"{mode}: {len(todo)} methods of blocks, about {clock(seconds)} with {jobs} processes where nothing is recorded"
    )
    _run(session, todo, out, jobs, resume)
    with session.doing("writing the site"):
        from confide_lab.papers.site import write

        shares = write(output, out, mode, chosen, evidence=evidence)
    if evidence:
        with session.doing("writing the pages of evidence"):
            _pages_of_evidence(output / "evidence")
    for name, share in shares.items():
        session.say(
            f"{name}: {share['printed']} printed numbers, with the text as printed: {share['text']}; "
            f"{share['unexplained']} differ without a known reason"
        )
        if share["restored_text"]:
            session.say(
                f"{name}, restored: {share['restored_text']}; "
                f"{share['restored_unexplained']} differ without a known reason"
            )
    session.say(f"wrote {output / 'index.html'}")
    session.answer({"mode": mode, "shares": shares, "wrote": str(output / "index.html")})


def _pages_of_evidence(folder: Path) -> None:
    """The second site, its pages as they stand: their blocks run in `make evidence`."""
    guides = os.path.relpath("out/docs", folder)
    env = {**os.environ, "CONFIDE_DOCS_RUN": "", "CONFIDE_DOCS_SITE": guides, "NO_MKDOCS_2_WARNING": "1"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "-f",
        str(_PLAN),
        "-d",
        str(folder.resolve()),
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"the pages of evidence could not be built:\n{done.stderr}")


def errata(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An erratum, or all; left out: list them.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """The numbers of one erratum of a paper: what is claimed, what is found. Exit code 1 where a number of evidence/errata.md is not found.

    Their data are simulated or public; no ledger is charged.

    Example:

    confide lab errata gptr-e7
    """
    session: Session = ctx.obj
    with session.doing("loading the errata"):
        from confide_lab.errata import names, rows
    if name is None:
        session.say("\n".join(names()))
        session.answer({"errata": list(names())})
        return
    found = [(one, row) for one in (names() if name == "all" else [name]) for row in rows(one)]
    table(
        session,
        ("erratum", "number", "claimed", "found", ""),
        [
            [one, row.what, row.claimed, f"{row.found:.4g}", "as stated" if row.holds else "NOT AS STATED"]
            for one, row in found
        ],
        right=("found",),
    )
    session.answer({"numbers": [{"erratum": one, **asdict(row), "holds": row.holds} for one, row in found]})
    if not all(row.holds for _, row in found):
        raise typer.Exit(1)


def _run(session: Session, todo: list, out: Path, jobs: int, resume: bool) -> None:  # type: ignore[type-arg]
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from confide_lab.papers.plan import perform

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("papers", total=sum(unit.seconds for unit in todo) or 1.0)
        session.step = "running the experiments"
        perform(
            todo,
            out,
            jobs=jobs,
            resume=resume,
            note=session.note,
            done=lambda own: progress.update(
                bar, advance=sum(unit.seconds for unit in own), description=own[0].block.name
            ),
        )


def clock(seconds: float) -> str:
    """A time in words.

    >>> clock(4.2), clock(600)
    ('4 s', '10 min')
    """
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
