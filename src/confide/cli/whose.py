"""Whose privacy a ledger accounts for: the unit of the schema, never another one in silence."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.cli.files import ledger_file, load_schema
from confide.cli.session import Refused
from confide.errors import ConfideError

if TYPE_CHECKING:
    from confide.schema import Schema

__all__ = ["Whose", "unit_options"]

# Files that are looked at for a schema: a folder of a survey has a few.
_MOST = 50


def unit_options(schema: Schema) -> list[str]:
    """The options of `confide ledger init` that say whom a schema protects.

    >>> import confide as cf
    >>> unit_options(cf.Schema({"x": cf.Numeric(0, 1)}, unit=cf.Unit("person_id")))
    ['--unit', 'person_id']
    >>> unit_options(cf.Schema({"x": cf.Numeric(0, 1)}, unit="person", rows_per_unit=4))
    ['--unit', 'person', '--rows-per-unit', '4']
    """
    from confide.schema import Unit

    if isinstance(schema.unit, Unit):
        return ["--unit", schema.unit.column]
    rows = [] if schema.rows_per_unit == 1 else ["--rows-per-unit", str(schema.rows_per_unit)]
    return ["--unit", schema.unit, *rows]


def _has_account(book: str, dataset: str) -> bool:
    """Whether a ledger that is there has a budget of this data set."""
    from confide.ledger import Ledger

    try:
        Ledger.open(book, dataset=dataset)
    except ConfideError:
        return False
    return True


@dataclass(frozen=True)
class Whose:
    """Whom a budget protects: said, or read from a schema."""

    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="Take the data set's name and the unit from this schema."),
    ] = None
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="The dataset whose budget it is.")
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="NAME",
            help="Who is protected: the id column of the schema's unit, or record, which it is when left out.",
        ),
    ] = None
    rows_per_unit: Annotated[
        int | None,
        typer.Option(
            "--rows-per-unit",
            metavar="N",
            help="The most rows that one unit has, where the schema declares it and does not enforce it.",
        ),
    ] = None

    def said(self, book: str, options: str, *, look: bool) -> tuple[str, str, int | None]:
        """(data set, unit, rows per unit). book: the ledger; options: its budget's, for the call that works; look: for a schema beside it.

        `Refused` where no data set is named, and where no unit is and a schema of that data set beside the ledger has one.
        """
        if self.schema is not None:
            return self._of(load_schema(self.schema))
        if self.dataset is None:
            raise Refused("say whose budget it is: --dataset NAME, or --schema FILE, which names data set and unit")
        if self.unit is None and self.rows_per_unit is None and look:
            self._check_beside(book, options)
        return self.dataset, self.unit or "record", self.rows_per_unit

    def _of(self, schema: Schema) -> tuple[str, str, int | None]:
        dataset = self.dataset or schema.dataset
        if dataset is None:
            raise Refused(f'{self.schema} names no data set: write dataset = "NAME" in it, or --dataset NAME')
        words = unit_options(schema)
        rows = int(words[3]) if len(words) > 2 else None
        for option, given, own in (("--unit", self.unit, words[1]), ("--rows-per-unit", self.rows_per_unit, rows)):
            if given is not None and given != own:
                raise Refused(
                    f"{option} {given} is not what {self.schema} says ({shlex.join(words)}); leave out {option}"
                )
        return dataset, words[1], rows

    def _check_beside(self, book: str, options: str) -> None:
        """Refuse to take records for the unit where a schema of this data set, beside the ledger or here, says another one."""
        from confide.ledger.names import same_name

        if _has_account(book, self.dataset or ""):
            return  # which the ledger itself refuses to open again
        folder = getattr(ledger_file(book), "parent", Path())
        places = dict.fromkeys([*sorted(folder.glob("*.toml"))[:_MOST], *sorted(Path().glob("*.toml"))[:_MOST]])
        for place in places:
            try:
                found = load_schema(place)
            except ConfideError:  # another program's file
                continue
            whose = unit_options(found)
            if whose[1:] != ["record"] and (found.dataset is None or same_name(found.dataset, self.dataset or "")):
                call = f"confide ledger init {'LEDGER' if '://' in book else shlex.quote(book)}"
                own = shlex.join(["--dataset", self.dataset or "", *whose])
                raise Refused(
                    f"{place} says that what is protected is one {whose[1]}, and a budget without --unit is for single records; write\n"
                    f"  {call} {own} {options}\n(with --unit record each row is protected by itself, and releases by {place} are refused)"
                )
