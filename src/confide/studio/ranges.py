"""Ranges of columns without bounds, found privately: one release for the columns that the steward ticks, after its cost was shown.

The schema of the folder is not changed, because requests were made of it. Another one is written, whose provenance names the release.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock

from confide import engine
from confide.ask.bounds import find_bounds, search_schema
from confide.errors import PlanError
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.methods.quantiles.ranges import Ranges
from confide.schema import Categorical, Schema
from confide.sources.coding import FileMark
from confide.studio.approvals import Cost
from confide.studio.folder import SCHEMA, Folder


@dataclass(frozen=True)
class Search:
    """A search for ranges that may begin: of which columns and records, what it costs, and the schema that it writes."""

    nonce: str
    schema: Schema
    columns: tuple[str, ...]
    data: str
    ledger: str
    dataset: str
    privacy: GDP
    cost: Cost
    target: str
    mark: FileMark | None = field(repr=False)
    lock: Lock = field(default_factory=Lock, repr=False)


def open_columns(schema: Schema) -> list[str]:
    """Columns whose range may be found: numbers without bounds."""
    columns = ((name, schema[name]) for name in schema.in_data)
    return [name for name, own in columns if not isinstance(own, Categorical) and not all(own.declared)]


class Searches:
    """Searches of one server. Each begins once."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = Lock()
        self._prepared: dict[str, Search] = {}
        self._begun: set[str] = set()

    def prepare(self, name: str, columns: Sequence[str], data: str, account: str, privacy: GDP) -> Search:
        """All that can be said before records are read; `ConfideError` where the release would be refused. name: of the schema's file."""
        schema = Schema.from_toml(self._folder.path(name))
        if not columns or not set(columns) <= set(open_columns(schema)):
            raise PlanError("tick columns of numbers without bounds; nothing was done")
        if not data or not account:
            raise PlanError("choose the records, and the ledger that is charged; nothing was done")
        target = f"{name.removesuffix(SCHEMA).removesuffix('.toml')}-ranges{SCHEMA}"
        for place in (target, _receipt(target)):
            if self._folder.path(place).exists():
                raise PlanError(f"{place} is there already, and no file is written over another", "move it away")
        mark = self._folder.mark(data)
        own, records = self._folder.read(data, schema)
        records.check(columns)
        ledger, _, dataset = account.partition("/")
        with closing(Ledger.open(self._folder.path(ledger), dataset=dataset or schema.dataset)) as book:
            asked = search_schema(columns, own)
            cost = Cost.of(engine.plan(Ranges(tuple(columns)), asked, privacy), book, records.dataset)
            named = book.dataset
        nonce = secrets.token_urlsafe(16)
        made = Search(nonce, own, tuple(columns), data, ledger, named, privacy, cost, target, mark)
        with self._lock:
            self._prepared[nonce] = made
        return made

    def begin(self, nonce: str) -> str:
        """Charge, find and write, once; a further click waits for the first. Returns the name of the schema's file."""
        with self._lock:
            own = self._prepared.get(nonce)
        if own is None:
            raise PlanError("this page is of a session that ended; nothing was done by it", "open the schema again")
        with own.lock:
            with self._lock:
                again = nonce in self._begun
                self._begun.add(nonce)
            if again and not self._folder.path(own.target).exists():
                raise PlanError("this page was used, and nothing came of it; the ledger says whether it was charged")
            if not again:
                self._find(own)
        return own.target

    def _find(self, own: Search) -> None:
        if self._folder.mark(own.data) != own.mark:
            raise PlanError(f"{own.data} changed meanwhile; nothing was done", "open the schema again")
        places = [self._folder.path(name) for name in (_receipt(own.target), own.target)]
        taken = []
        try:
            # names are taken before the charge, so that nothing that was paid for lacks a place
            for place in places:
                place.open("x").close()
                taken.append(place)
            with closing(Ledger.open(self._folder.path(own.ledger), dataset=own.dataset)) as book:
                found = find_bounds(
                    self._folder.records(own.data), list(own.columns), own.schema, privacy=own.privacy, ledger=book
                )
            for place, text in zip(places, (found.release.to_json(), found.into(own.schema).to_toml()), strict=True):
                place.write_text(text, encoding="utf-8")
                taken.remove(place)
        except FileExistsError:
            raise PlanError("a file of that name came to be there meanwhile; nothing was done") from None
        finally:
            for place in taken:
                place.unlink(missing_ok=True)


def _receipt(target: str) -> str:
    return f"{target.removesuffix(SCHEMA)}.release.json"
