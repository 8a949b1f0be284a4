"""The steward's desk: a plan is approved by its digest, and released once, whatever a browser does.

What an approval will do is prepared first and has a number of its own (a nonce), which belongs to one request, one digest, one file and
one ledger. Beginning it writes the decision beside the request, exclusively: of two tabs, two servers or two clicks one begins, and the
others are shown what it does. The decision is on disk before the ledger is charged, and the release before any page is made of it, so
that a server that dies leaves one of three states, each told by the files and the ledger: nothing charged, charged and not kept, kept.

The budgets of a folder: what is left in its ledgers, what a plan would take of them, which schemas have one, and how the form of a new
one is filled in.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from confide import engine
from confide.ask.menu import reading_of
from confide.core import Plan, Release
from confide.engine.planning import pins
from confide.errors import BudgetExceeded, ConfideError, LedgerBusy, PlanError, ReleaseError
from confide.ledger import Ledger, same_name
from confide.ledger.printing import left, percent
from confide.schema import Schema
from confide.schema.layout import FileLayout
from confide.sources import read
from confide.sources.coding import FileMark
from confide.sources.preflight import Preflight, planned_columns, preflight
from confide.studio.folder import Folder, Request
from confide.studio.forms import Form


@dataclass(frozen=True)
class Prepared:
    """A release that may begin: what, of which records, which budget it charges, and what that costs.

    title: of what will be published, by the plan as it was made again. `size` and changed: of the file, empty of a database elsewhere.
    `others`: records of the folder that also have the schema's columns.
    `allow_partial`: whether the other analyses of a publication are kept if one fails after the charge (`engine.release`).
    """

    nonce: str
    request: str
    title: str
    sha256: str
    data: str
    size: str
    changed: str
    others: tuple[str, ...]
    ledger: str
    dataset: str
    cost: Cost
    allow_partial: bool
    mark: FileMark | None = field(repr=False)
    layout: FileLayout = field(repr=False)


@dataclass(frozen=True)
class Cost:
    """What a plan takes of a budget, as percentages, in parameters and in plain words."""

    words: str
    used: str
    after: str
    bar: float
    meaning: str
    parameters: str

    @classmethod
    def of(cls, plan: Plan, book: Ledger, dataset: str | None) -> Cost:
        """The cost of a plan in a ledger; dataset: of the records. `ConfideError` where the release would be refused."""
        book.check(**pins(plan.schema, dataset))
        quote, state = book.preview(plan.guarantees), book.show()
        end = "nothing more fits afterward" if quote.last else f"{quote.after} would remain"
        return cls(
            words=f"{percent(quote.share)} of the budget of {book.dataset!r}",
            used=percent(state.used),
            after=percent(quote.used),
            bar=min(100.0, 100 * quote.used),
            meaning=quote.meaning,
            parameters=f"{quote.price}; {end}",
        )


@dataclass(frozen=True)
class State:
    """Where a request stands. name: "asked", "refused", "running", "released", "stopped" (charged, nothing kept) or "failed" (not charged).

    words: what to say of it; seconds: how long it has been running.
    """

    name: str
    words: str = ""
    seconds: float = 0.0


class ApprovalQueue:
    """Approvals and running releases of one server."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._prepared: dict[str, Prepared] = {}
        self._begun: set[str] = set()
        self._failed: dict[str, str] = {}
        self._held: dict[str, Release] = {}

    def prepare(
        self, asked: Request, title: str, data: str, ledger: str, dataset: str | None, allow_partial: bool = False
    ) -> Prepared:
        """Everything that can be said before records are read; `ConfideError` where the release would be refused.

        The price is the price of the plan as it is made again, whatever the request's file says. Only names and types are looked at.
        """
        plan = asked.remade_plan()
        schema = Schema.from_dict(plan.schema)
        mark = self._folder.mark(data)
        own, records = self._folder.read(data, schema)
        records.check(schema.in_data)
        if self._folder.path(f"{asked.name}.release.json").exists():
            raise PlanError(
                f"{asked.name}.release.json is there already, and no release is written over another", "move it away"
            )
        book = Ledger.open(self._folder.path(ledger), dataset=dataset or schema.dataset)
        try:
            cost = Cost.of(plan, book, records.dataset)
            made = Prepared(
                nonce=secrets.token_urlsafe(16),
                request=asked.name,
                title=title,
                sha256=asked.plan.sha256,
                data=data,
                size="" if mark is None else f"{mark.size:,} bytes",
                changed="" if mark is None else _moment(mark.changed),
                others=tuple(name for name in self._folder.with_columns_of(schema) if name != data),
                ledger=ledger,
                dataset=book.dataset,
                cost=cost,
                allow_partial=allow_partial and bool(plan.children),
                mark=mark,
                layout=own.file,
            )
        finally:
            book.close()
        with self._lock:
            self._prepared[made.nonce] = made
        return made

    def prepared(self, nonce: str) -> Prepared:
        """Raises `PlanError` for a number that was never given out by this server, or is of a session that ended."""
        with self._lock:
            found = self._prepared.get(nonce)
        if found is None:
            raise PlanError(
                "this approval is of a session that ended; nothing was done by it",
                "open the request and approve it again",
            )
        return found

    def look(self, nonce: str) -> Preflight:
        """Read the records of an approval, and count. PRIVATE: the counts are shown to the steward, and neither kept nor logged."""
        own = self.prepared(nonce)
        if self._folder.mark(own.data) != own.mark:
            raise PlanError(f"{own.data} changed after the approval; approve the request again")
        plan = self._folder.request(own.request).remade_plan()
        schema = Schema.from_dict(plan.schema).with_file(own.layout.to_settings())
        records = read(self._folder.records(own.data), schema)
        return preflight(records, planned_columns(records, plan.statistics.values()))

    def begin(self, nonce: str) -> str:
        """Begin a release unless it, or another of the same request, was begun; returns the request's name."""
        own = self.prepared(nonce)
        with self._lock:
            if nonce in self._begun:
                return own.request
        asked = self._folder.request(own.request)
        if asked.plan.sha256 != own.sha256:
            raise PlanError(
                "the request's file changed after it was approved; nothing was done", "open it and read it again"
            )
        if self._folder.mark(own.data) != own.mark:
            raise PlanError(f"{own.data} changed after the approval; nothing was done; approve the request again")
        held = self._folder.hold(own.request)
        if held is None:
            return own.request
        try:
            if self._folder.decision(own.request) is None:
                self._folder.take_place(own.request)
        except PlanError:
            self._folder.let_go(own.request, held)
            raise
        said = {"decision": "approved", "plan_sha256": own.sha256}
        said |= {"data": own.data, "ledger": own.ledger, "dataset": own.dataset}
        if not self._folder.decide(own.request, {**said, **({"allow_partial": True} if own.allow_partial else {})}):
            self._folder.let_go(own.request, held)
            return own.request
        with self._lock:
            # it is spent: where its release stopped and the steward thinks again, an old page must not begin another
            self._begun.add(nonce)
            self._failed.pop(own.request, None)
        threading.Thread(target=self._release, args=(asked, own, held), daemon=False).start()
        return own.request

    def state(self, asked: Request) -> State:
        """Where a request stands, from the folder, the ledger and what runs here."""
        seconds = self._folder.held(asked.name)
        if seconds is not None:
            return State("running", seconds=seconds)
        with self._lock:
            failed = self._failed.get(asked.name)
        said = self._folder.decision(asked.name)
        if asked.name in self._held:
            return State("stopped", failed or self._found(asked, said or {}))
        if said is None:
            return State("asked") if failed is None else State("failed", failed)
        # a file of that name may be anyone's: it is this request's where the steward approved and the plan is the same
        done = self._folder.release(asked.name)
        if done is not None and said.get("decision") == "approved" and _same(done, asked):
            return State("released")
        if said.get("decision") == "refused":
            return State("refused", str(said.get("reason", "")))
        return State("stopped", failed or self._found(asked, said))

    def held(self, name: str) -> Release | None:
        """A release that was paid for and could not be written: it is in this server's memory alone."""
        return self._held.get(name)

    def _found(self, asked: Request, said: Mapping[str, Any]) -> str:
        """What the ledger knows of an approval whose release is not in the folder."""
        try:
            book = Ledger.open(self._folder.path(str(said.get("ledger"))), dataset=str(said.get("dataset")))
        except ConfideError as error:
            return f"the release is not here, and its ledger cannot be read: {error}"
        try:
            state, charged = book.show(), engine.as_charged(asked.plan, book).sha256
        finally:
            book.close()
        own = [
            row for row in state.rows if row.kind == "charge" and row.plan_sha256 in (charged, said.get("plan_sha256"))
        ]
        since = [row for row in own if row.time >= str(said.get("decided", ""))[:19]]
        if not since:
            return "the release did not begin: the ledger has no charge for this plan since it was approved; nothing was charged"
        row = since[-1]
        return (
            f"it was charged as entry {row.seq} of dataset {state.dataset!r} ({row.guarantee}), and the release was not kept; the charge "
            "stays. To approve the request again is another release, and is charged again"
        )

    def _release(self, asked: Request, own: Prepared, held: IO[str]) -> None:
        failed, charged = "", True
        try:
            schema = Schema.from_dict(asked.plan.schema)
            book = Ledger.open(self._folder.path(own.ledger), dataset=own.dataset)
            try:
                records = read(self._folder.records(own.data), schema.with_file(own.layout.to_settings()))
                with engine.asking(lambda result: reading_of(asked.form)(result)):
                    done = engine.release(asked.plan, records, ledger=book, allow_partial=own.allow_partial)
                self._held[asked.name] = done
                self._folder.keep(asked.name, done)
                del self._held[asked.name]
            finally:
                book.close()
        except (
            ReleaseError,
            LedgerBusy,
        ) as error:  # of a ledger that was busy it may not be known whether it was charged
            failed = str(error)
        except OSError as error:
            failed = f"the folder cannot be written or read ({error.strerror}); what was released is below, if it was, and only here"
        except ConfideError as error:
            failed, charged = str(error), False
        except Exception:  # its words may be about records
            failed = "the release stopped; its words may be about records and are not shown; the ledger says whether it was charged"
        finally:
            if failed:
                with self._lock:
                    self._failed[asked.name] = failed
            if failed and not charged:
                self._folder.reopen(asked.name)
            self._folder.let_go(asked.name, held)


def _moment(nanoseconds: int) -> str:
    """A time as this machine's clock tells it."""
    return datetime.fromtimestamp(nanoseconds / 1e9).astimezone().strftime("%Y-%m-%d %H:%M")


def _same(done: Release, asked: Request) -> bool:
    """Whether a release is of the plan that was asked for; that of an enforced unit states its ledger's key beside."""
    return engine.as_asked(done.plan).sha256 == engine.as_asked(asked.plan).sha256


def accounts(folder: Folder, name: str) -> list[tuple[str, str]]:
    """(dataset, the percentage of its budget that is left) of a ledger; nothing of another file."""
    place, found = folder.path(name), []
    with suppress(ConfideError):
        for dataset in Ledger.datasets(place):
            with closing(Ledger.open(place, dataset=dataset)) as book:
                found.append((dataset, left(book.show().used)))
        return found
    return []


def accounts_of(ledgers: Sequence[tuple[str, list[tuple[str, str]]]], about: Schema) -> list[str]:
    """FILE/DATASET of each budget for the schema's dataset. ledgers: files with their `accounts`."""
    named = [(name, dataset) for name, held in ledgers for dataset, _ in held]
    return [f"{name}/{one}" for name, one in named if about.dataset is not None and same_name(about.dataset, one)]


def costs(folder: Folder, named: Sequence[str], plan: Plan, about: Schema) -> list[tuple[str, Cost | None, str]]:
    """What a plan would cost in each of these budgets, FILE/DATASET, or why it would be refused."""
    found: list[tuple[str, Cost | None, str]] = []
    for one in named:
        name, _, dataset = one.partition("/")
        try:
            with closing(Ledger.open(folder.path(name), dataset=dataset)) as book:
                found.append((one, Cost.of(plan, book, about.dataset), ""))
        except ConfideError as error:
            found.append((one, None, " ".join(refusal(error))))
    return found


def refusal(error: ConfideError) -> list[str]:
    """The lines of a refusal on a page. Its readers fill in forms, so that a call in Python helps none of them.

    >>> refusal(BudgetExceeded("this release costs 56.2% of the budget of 'survey'; 52.2% is left", "privacy=...", allowed="mu up to 1.4"))
    ["This release costs 56.2% of the budget of 'survey'; 52.2% is left.", 'Allowed: mu up to 1.4. Make a new request with that, or have
    the steward raise the budget.', 'Nothing was charged.']
    """
    if not isinstance(error, BudgetExceeded) or not error.allowed:
        return str(error).split("\n")
    problem, none = f"{error.problem[:1].upper()}{error.problem[1:]}.", error.allowed.startswith("nothing")
    way = (
        "The steward may raise the budget"
        if none
        else "Make a new request with that, or have the steward raise the budget"
    )
    return [problem, f"Allowed: {error.allowed}. {way}.", "Nothing was charged."]


def has_one(folder: Folder, about: Schema) -> bool:
    """Whether some ledger of the folder has a budget for the schema's dataset."""
    return bool(accounts_of([(name, accounts(folder, name)) for name in folder.ledgers()], about))


def first_without(folder: Folder) -> Schema | None:
    """The first schema of the folder whose dataset has no budget yet."""
    return next((one for _, one in _schemas(folder) if not has_one(folder, one)), None)


def schemas_of(folder: Folder, datasets: Sequence[str]) -> list[str]:
    """The schemas of the folder that are about one of these datasets."""
    return [
        name
        for name, own in _schemas(folder)
        if own.dataset is not None and any(same_name(own.dataset, one) for one in datasets)
    ]


def beginning(folder: Folder, about: Schema | None) -> Form:
    """How the form of a budget is filled in: dataset and unit as in the schema, and a file name that is free."""
    if about is None:
        return {"dataset": "", "unit": "record", "name": ""}
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", about.dataset or "").strip("-") or "project"
    taken = folder.path(f"{stem}.db").exists()
    return {"dataset": about.dataset or "", "unit": about.protects, "name": "" if taken else f"{stem}.db"}


def _schemas(folder: Folder) -> Iterator[tuple[str, Schema]]:
    """Those that can be read."""
    for name in folder.schemas():
        with suppress(ConfideError):
            yield name, Schema.from_toml(folder.path(name))
