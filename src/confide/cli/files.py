"""Files of the command line, and what is said of plans, releases and results: inputs say what is wrong with them, no output is lost."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.options import PICTURES, Csv, Plot, PlotKind, Report, Title, Verbose
from confide.cli.session import Refused, Session, reading_only
from confide.cli.tables import fine
from confide.errors import FileError, PlanError, ReleaseError

if TYPE_CHECKING:
    import pandas as pd

    from confide.core import BudgetItem, Plan, Release
    from confide.ledger import Ledger
    from confide.results.pages.table import Document
    from confide.schema import Schema


_ENDINGS = {
    "--report": (".html", ".htm", ".md", ".tex", ".docx"),
    "--plot": (".png", ".svg", ".pdf"),
    "--csv": (".csv",),
}


class Output:
    """A file whose place is taken before anything is spent, so that what was paid for can be kept.

    A new file is created at once, exclusively: nobody else can take its name in the meantime. With --force the text
    goes to a file beside the old one, which is replaced only when the new one is complete. option: what named it, for messages.
    """

    def __init__(self, path: Path, *, force: bool, option: str = "-o") -> None:
        self.path = path
        self._option = option
        self._target = path
        self._place: Path | None = None
        self._reserve(force)

    def _reserve(self, force: bool) -> None:
        if str(self.path) == "-":
            raise Refused("an output needs a file name, not '-'; for JSON on stdout use --json")
        try:
            self._target = self.path.resolve()
            self._check(force)
            fresh = not self._target.exists()
            # the same ending: what writes pictures goes by it
            beside = f".confide-{secrets.token_hex(8)}.part{self._target.suffix}"
            place = self._target if fresh else self._target.with_name(beside)
            os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            raise self._there() from None
        except (OSError, ValueError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no usable file name"
            raise Refused(
                f"{self.path} cannot be written: {reason}; nothing was done", "give a folder that you may write to"
            ) from None
        self._place = place

    def _there(self) -> Refused:
        return Refused(
            f"{self.path} exists; nothing was done", f"give another {self._option}, or --force to replace it"
        )

    def _check(self, force: bool) -> None:
        if self._target.exists():
            if not self._target.is_file():
                raise Refused(f"{self.path} is not a file that can be replaced", f"give another {self._option}")
            if not force:
                raise self._there()
        elif not self._target.parent.is_dir():
            raise Refused(
                f"{self.path} cannot be written: its folder does not exist; nothing was done", "make the folder first"
            )

    def take(self, size: int) -> None:
        """Take room for so many bytes, which what is written later has for itself; `Refused` where there is none."""
        assert self._place is not None
        try:
            with self._place.open("r+b") as file:
                file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())  # some file systems learn only now that they are full
        except OSError as error:
            raise Refused(
                f"{self.path} has no room for what will be written ({error.strerror}); nothing was done",
                f"make room, or give another {self._option}",
            ) from None

    def write(self, content: str | bytes) -> None:
        """Write all of it to the disk; `OSError` when that fails."""
        assert self._place is not None
        with self._place.open(
            "r+b"
        ) as file:  # over the room that was taken, none of which is given away before it is used
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.truncate()
        self._finish()

    def by(self, write: Callable[[Path], object]) -> None:
        """Have the file written by what takes a path; `OSError` when that fails."""
        assert self._place is not None
        write(self._place)
        self._finish()

    def _finish(self) -> None:
        assert self._place is not None
        with self._place.open("r+b") as file:
            os.fsync(file.fileno())
        if self._place != self._target:
            self._place.replace(self._target)
        self._place = None

    def discard(self) -> None:
        """Give the place back when nothing was written."""
        if self._place is not None:
            with suppress(OSError):
                self._place.unlink()
            self._place = None


def write_output(output: Output, content: str | bytes | Callable[[Path], object]) -> None:
    """Write an output that can be made again, or have it written; `Refused` when that fails."""
    try:
        output.by(content) if callable(content) else output.write(content)
    except OSError as error:
        raise Refused(f"{output.path} could not be written: {error.strerror or type(error).__name__}") from None


@contextmanager
def reserve(path: Path | None, *, force: bool = False, option: str = "-o") -> Iterator[Output | None]:
    """The place of an output for the length of a block; None stays None. Raises `Refused` when it cannot be had."""
    if path is None:
        yield None
        return
    output = Output(path, force=force, option=option)
    try:
        yield output
    finally:
        output.discard()


def keep(session: Session, output: Output | None, release: Release) -> None:
    """Write a release; if that fails, print it on stdout rather than lose it, and raise `ReleaseError`."""
    if output is None:
        return
    try:
        output.write(release.to_json())
    except BaseException as error:
        session.last_resort(release.to_json())
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        raise ReleaseError(
            f"{output.path} could not be written ({reason}); the release was printed on stdout instead"
        ) from None
    session.kept = str(output.path)


def ledger_file(ledger: str | None) -> Path | None:
    """The file of a ledger; None for a ledger on a server, whose URL is no path."""
    return None if ledger is None or "://" in ledger else Path(ledger)


def check_places(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that is an input or another output: --force on a ledger would be the end of it."""
    taken = {path.resolve(): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        place = path.resolve()
        if place in taken:
            raise Refused(f"{name} {path} is {taken[place]} as well", "give it a file of its own")
        taken[place] = name


@dataclass(frozen=True)
class Drawings:
    """Where a result is written in addition to the table on stdout: the report, the plot, the table as CSV; and how its picture looks."""

    report: Report = None
    plot: Plot = None
    csv: Csv = None
    verbose: Verbose = False
    plot_kind: PlotKind = None
    title: Title = None

    @property
    def places(self) -> dict[str, Path | None]:
        """Each by its option."""
        return {"--report": self.report, "--plot": self.plot, "--csv": self.csv}

    @contextmanager
    def reserved(self, *, force: bool) -> Iterator[Mapping[str, Output]]:
        """The places by their options, for the length of a block.

        Raises `Refused` for an unknown ending, a place that cannot be had, and a kind or title of a picture that nothing shows.
        """
        self._check_look()
        with ExitStack() as stack:
            found = {}
            for name, path in self.places.items():
                if path is None:
                    continue
                if path.suffix.lower() not in _ENDINGS[name]:
                    raise Refused(f"{name} {path} must end in {', '.join(_ENDINGS[name])}")
                if path.suffix.lower() == ".docx":
                    from confide.results.pages.export import check_word

                    check_word()
                output = stack.enter_context(reserve(path, force=force, option=name))
                assert output is not None
                found[name] = output
            yield found

    def _check_look(self) -> None:
        if self.plot_kind is not None and self.plot_kind not in PICTURES:
            raise Refused(f"--plot-kind is one of {', '.join(PICTURES)}, got {self.plot_kind!r}")
        shown = self.plot is not None or (
            self.report is not None and self.report.suffix.lower() in (".html", ".htm", ".docx")
        )
        if not shown and (self.plot_kind, self.title) != (None, None):
            option = "--title" if self.plot_kind is None else "--plot-kind"
            raise Refused(
                f"{option} is for a picture, and none is written", "add --plot FILE.png or --report FILE.html"
            )

    def looking(self, result: Any) -> Any:
        """A result with the picture that is asked for. `Refused` for a kind that it does not have."""
        if (self.plot_kind, self.title) == (None, None):
            return result
        kinds = getattr(result, "pictures", ())
        if not kinds:
            raise Refused("the picture of this result has no other kind or title", "leave --plot-kind and --title out")
        if self.plot_kind not in (None, *kinds):
            raise Refused(f"--plot-kind of this result is one of {', '.join(kinds)}, got {self.plot_kind!r}")
        return result.looking(kind=self.plot_kind, title=self.title)

    @property
    def figure(self) -> str:
        """The plot as a LaTeX report names it, where both are written and LaTeX can include it; "" otherwise."""
        if self.plot is None or self.report is None or self.plot.suffix.lower() == ".svg":
            return ""
        return Path(os.path.relpath(self.plot, self.report.parent)).as_posix()


# inputs ---------------------------------------------------------------------------------------------------------------


def load_schema(path: Path) -> Schema:
    """The schema in a TOML file; `SchemaError` when there is none."""
    from confide.schema import Schema

    return Schema.from_toml(path)


def load_plan(path: Path) -> Plan:
    """The plan in a file that `confide plan -o` wrote; nothing in it is believed before the gate makes it anew."""
    from confide.core import Plan
    from confide.core.files import text_of

    with _reading(path, "plan", "confide plan MODEL --schema schema.toml --mu 1 -o plan.json"):
        return Plan.from_json(text_of(path, "plan"))


def load_release(path: Path) -> Release:
    """The release in a file that `confide release -o` wrote."""
    from confide.core import Release

    with _reading(path, "release", "confide release plan.json DATA --ledger LEDGER -o release.json"):
        return Release.load(path)


@contextmanager
def _reading(path: Path, kind: str, make: str) -> Iterator[None]:
    """Whatever is wrong inside a file, it is the file that is wrong: no charge was made."""
    try:
        yield
    except ReleaseError as error:
        raise reading_only(ReleaseError(f"{path}: {error}")) from None
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else "no usable file name"
        raise FileError(f"the {kind} {path} cannot be read: {reason}", f"make one with `{make}`") from None


def _of(thing: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def plan_facts(plan: Plan) -> dict[str, Any]:
    """A plan as plain numbers and text."""
    from confide.core import BudgetItem, leaves

    spends = [
        _spend_facts(leaf, plan.relation) if isinstance(leaf, BudgetItem) else _of(leaf, "name", "guarantee")
        for leaf in leaves(plan.event)
    ]
    return {
        "method": plan.method.name,
        **_of(plan.method, "version", "parameters"),
        "plan_sha256": plan.sha256,
        **_of(plan, "target", "intervals_for", "relation", "requested", "guarantees"),
        "spends": spends,
        **_of(plan, "passes", "n", "planned_n"),
        "rows_per_unit": plan.schema.get("rows_per_unit", 1),
        "forecast": dict(plan.forecast),
        **_of(plan, "warnings", "notes"),
    }


def _spend_facts(spend: BudgetItem, relation: str) -> dict[str, Any]:
    return {
        **_of(spend, "name", "law", "shape"),
        "guarantee": spend.exact_cost.guarantee(relation),
        "sensitivity": float(spend.sensitivity * spend.step),
        "sd": spend.noise_sd,
    }


def release_facts(release: Release) -> dict[str, Any]:
    """What a release says of itself, without its numbers."""
    plan = release.plan
    return {
        "status": release.status,
        "release_sha256": release.sha256,
        "plan_sha256": plan.sha256,
        "method": plan.method.name,
        "version": plan.method.version,
        **_of(plan, "target", "requested"),
        "guarantee": release.charged,
        "simulated": release.simulated,
    }


def ledger_facts(book: Ledger | None) -> dict[str, Any] | None:
    """Where a ledger stands, without its entries."""
    if book is None:
        return None
    return {"book": book.place, **_of(book.show(), "dataset", "budget", "spent", "remaining", "used")}


def result_facts(result: Any, alpha: float | None) -> dict[str, Any]:
    """A result as strict JSON; a third party's NaN becomes null."""
    found = json.loads(result.to_json(**_level(result.to_json, alpha)))
    return found if isinstance(found, dict) else {"value": found}


def answer_result(session: Session, result: Any, alpha: float | None, drawings: Drawings, **more: Any) -> None:
    """The JSON of a result that was shown; it is made where it is asked for alone."""
    if session.json:
        places = {"report": drawings.report, "plot": drawings.plot, "csv": drawings.csv}
        session.answer({"result": result_facts(result, alpha), **more, **places})


@dataclass(frozen=True)
class Further:
    """Estimates that follow from a result and stand below its table: frame with estimate, std_err, df, low and high; labels of its rows
    where they stand among others.
    """

    title: str
    frame: pd.DataFrame
    labels: Sequence[str]
    note: str


def show_result(
    session: Session,
    result: Any,
    alpha: float | None,
    drawn: Mapping[str, Output],
    further: Sequence[Further] = (),
    *,
    drawings: Drawings | None = None,
) -> None:
    """The table on stdout; the report, the plot and the table as CSV in their places, with further tables below it in all but the plot.

    drawn: the places by their options (`Drawings.reserved`); drawings: what the picture is to be.
    """
    drawings = drawings or Drawings()
    from confide.results.base import BaseResult  # here, because results are slow to load
    from confide.results.pages.content import PUBLISHED, UNCHARGED
    from confide.results.pages.publication import Report

    with session.doing("showing the result"):
        every = {"verbose": True} if session.verbose and isinstance(result, (BaseResult, Report)) else {}
        text = result.summary(**_level(result.summary, alpha), **every)
    if session.uncharged:  # what stands at the right end of the line stays there
        wider = " " * (len(UNCHARGED) - len(PUBLISHED))
        text = text.replace(f"{PUBLISHED}  {wider}", f"{UNCHARGED}  ").replace(PUBLISHED, UNCHARGED)
    # the last line has the release ID, and room for where the rest is
    start, _, last = text.rpartition("\n")
    fits = last.startswith("Release ID") and len(last) < 52 and not every
    # a model that prints ratios has its coefficients behind an option
    ratio = result.ratio_name if isinstance(result, BaseResult) else ""
    called = "log odds" if ratio == "odds ratio" else "coefficients"
    more = f"{called} and intercept: --log-odds" if ratio and f" {ratio} " in text else "details: --verbose"
    text = "\n".join(filter(None, [start, f"{last:<{71 - len(more)}}({more})"])) if fits else text
    session.say(text.replace("to_frame()", "--csv FILE").replace("summary(verbose=True)", "--verbose"))
    result = drawings.looking(result)
    ways: dict[str, tuple[str, Callable[[Path], object]]] = {
        "--report": ("writing the report", lambda path: _save_report(result, path, alpha, further, drawings.figure)),
        "--plot": ("drawing the plot", lambda path: _save_plot(result.plot(**_level(result.plot, alpha)), path)),
        "--csv": ("writing the table", lambda path: _save_table(result, path, alpha, further)),
    }
    for name, output in drawn.items():
        step, write = ways[name]
        with session.doing(step):
            write_output(output, write)
        session.say(f"Wrote {output.path}")


def _save_report(result: Any, path: Path, alpha: float | None, further: Sequence[Further], figure: str) -> None:
    from confide.results.pages.export import save

    save(result, path, lambda verb: _level(verb, alpha), tuple(_below(one, result) for one in further), figure)


def _save_table(result: Any, path: Path, alpha: float | None, further: Sequence[Further]) -> None:
    """The table as CSV, with all digits; a third party's result has a frame alone. Further estimates are rows of their own, with what
    they have in the columns of the table.
    """
    from confide.results.pages.export import csv_text, shielded

    if hasattr(result, "to_csv"):
        result.to_csv(path, **_level(result.to_csv, alpha))
        if not further:
            return
        text = path.read_text(encoding="utf-8")
    else:
        text = csv_text(result.to_frame(**_level(result.to_frame, alpha)), index_label="term")
    held = io.StringIO()
    written = csv.writer(held, lineterminator="\n")
    heads = next(csv.reader([text.partition("\n")[0]]))
    for one in further:
        for label, row in zip(one.labels, one.frame.to_dict("records"), strict=True):
            written.writerow([shielded(label), *(repr(float(row[name])) if name in row else "" for name in heads[1:])])
    try:
        path.write_text(text + held.getvalue(), encoding="utf-8", newline="")
    except OSError as error:
        raise FileError(
            f"the table cannot be written to {str(path)!r}: {error.strerror}", "give a file in a folder that exists"
        ) from None


def _below(one: Further, result: Any) -> Document:
    """A further table as it stands in a report, with the result's own note where the page has none."""
    from confide._helpers import clean
    from confide.results.pages.content import SIMULATED
    from confide.results.pages.table import Document

    shown = fine(one.frame)
    rows = tuple((clean(label), *map(str, cells)) for label, cells in zip(one.labels, shown.to_numpy(), strict=True))
    protected = SIMULATED if result.simulated else f"Differential privacy: {result.guarantee}"
    note = f"{protected}. {one.note[:1].upper()}{one.note[1:]}. Release {result.release_sha256}."
    return Document(clean(one.title), rows, ("name", *map(str, shown.columns)), clean(note))


def _save_plot(drawn: Any, path: Path) -> None:
    """Save what `plot` gave: axes, which know their figure, or a figure."""
    figure = getattr(drawn, "figure", None) or drawn
    try:
        figure.savefig(path, bbox_inches="tight", dpi=150)
    except OSError as error:
        raise FileError(
            f"the plot cannot be written to {str(path)!r}: {error.strerror}", "give a file in a folder that exists"
        ) from None


def _level(verb: Any, alpha: float | None) -> dict[str, Any]:
    """alpha for a verb that takes one. The protocol of results does not ask for it: a third party's may have none."""
    if alpha is None:
        return {}
    fixed = getattr(getattr(verb, "__self__", None), "level", None)
    if isinstance(fixed, float):
        if abs(1 - alpha - fixed) > 1e-9:
            raise PlanError(
                f"the level of these intervals was fixed in the plan at {fixed:g}, got --alpha {alpha:g}",
                f"leave --alpha out, or plan another release with --param level={1 - alpha:g}",
            )
        return {}
    if "alpha" not in inspect.signature(verb).parameters:
        raise PlanError("the results of this method have no level to choose: leave --alpha out")
    return {"alpha": alpha}
