"""The budgets of a folder: what is left in its ledgers, which schemas have one, and what the form of a new one begins with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

from confide.errors import ConfideError
from confide.ledger import Ledger, same_name
from confide.schema import Schema
from confide.studio.folder import Folder
from confide.studio.forms import Form

__all__ = ["accounts", "accounts_of", "beginning", "first_without", "has_one", "schemas_of"]


def accounts(folder: Folder, name: str) -> list[tuple[str, str]]:
    """(dataset, what is left) of a ledger; nothing of a file that is none."""
    place, found = folder.path(name), []
    with suppress(ConfideError):
        for dataset in Ledger.datasets(place):
            with closing(Ledger.open(place, dataset=dataset)) as book:
                found.append((dataset, book.show().remaining))
        return found
    return []


def accounts_of(ledgers: Sequence[tuple[str, list[tuple[str, str]]]], about: Schema) -> list[str]:
    """FILE/DATASET of each budget for the schema's data set. ledgers: files with their `accounts`."""
    named = [(name, dataset) for name, held in ledgers for dataset, _ in held]
    return [f"{name}/{one}" for name, one in named if about.dataset is not None and same_name(about.dataset, one)]


def has_one(folder: Folder, about: Schema) -> bool:
    """Whether some ledger of the folder has a budget for the schema's data set."""
    return bool(accounts_of([(name, accounts(folder, name)) for name in folder.ledgers()], about))


def first_without(folder: Folder) -> Schema | None:
    """The first schema of the folder whose data set has no budget yet."""
    return next((one for _, one in _schemas(folder) if not has_one(folder, one)), None)


def schemas_of(folder: Folder, datasets: Sequence[str]) -> list[str]:
    """The schemas of the folder that are about one of these data sets."""
    return [
        name
        for name, own in _schemas(folder)
        if own.dataset is not None and any(same_name(own.dataset, one) for one in datasets)
    ]


def beginning(folder: Folder, about: Schema | None) -> Form:
    """What the form of a budget begins with: data set and unit as the schema has them, and a file's name that is free."""
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
