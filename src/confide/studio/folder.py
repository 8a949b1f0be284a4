"""The one folder that the studio reads and writes: files by kind, and no path that leads out of it.

Beside the steward's own files (records, databases with tables of records, schemas `*.toml`, ledgers `*.db`) stand those of the work:
`NAME.request.json`, what an analyst asks for, with its plan; `NAME.decision.json`, what the steward said to it; `NAME.release.json`, what
may be published. They are the whole state: who has the folder has the work, and another program may write or read the same files.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from confide import engine
from confide._helpers import clean
from confide.core import Plan, Release
from confide.errors import ConfideError, FileError, PlanError, SchemaError, SourceError
from confide.ledger import Ledger
from confide.schema import Schema
from confide.schema.draft import Field, fields_of
from confide.schema.layout import ENDINGS, FileLayout
from confide.sources import Database, read
from confide.sources.coding import FileMark
from confide.sources.source import RecordSource

#: How names of files end that hold records, and of databases whose tables do.
DATA = ENDINGS
DATABASES = (".sqlite", ".sqlite3", ".duckdb", ".ddb", ".db")
#: How the name of a schema's file ends that the studio wrote: before it stands the stem of its records' name.
SCHEMA = ".schema.toml"
_VARIABLE = "env:"
_LONGEST = 60
# Remedies in Python or TOML.
_CALLS = re.compile(r"\[file\]|file=|Schema\.draft\(")
# A request is a plan and a few words.
_MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class Request:
    """What an analyst asks for: the plan, who asks, what for, and the form that it was made of (schema, kind, formula, ...), if any."""

    name: str
    plan: Plan
    who: str
    purpose: str
    form: Mapping[str, str]

    def remade_plan(self) -> Plan:
        """The plan as its own method, schema and budget make it anew: what the file says of a price or a guarantee is shown nowhere.

        Raises `ConfideError` where it comes out as another one than the file's.
        """
        return engine.plan(self.plan, Schema.from_dict(self.plan.schema))


@dataclass(frozen=True)
class Folder:
    """Names in it are plain: letters, digits and -_. within one folder; links that lead out are not followed.

    variables: of the environment, that hold addresses of databases; the steward names them when the studio begins.
    """

    root: Path
    variables: tuple[str, ...] = ()

    @classmethod
    def at(cls, root: str | Path, variables: Sequence[str] = ()) -> Folder:
        """Raises `PlanError` where there is no such folder, `SourceError` where a variable holds no database that may be read."""
        found = Path(root).resolve()
        if not found.is_dir():
            raise FileError(
                f"there is no folder {str(root)!r}", "give the folder that holds the data: confide studio FOLDER"
            )
        for name in variables:
            Database.at(f"{_VARIABLE}{name}").tables()
        return cls(found, tuple(variables))

    def path(self, name: str) -> Path:
        """The file of a name; `PlanError` for whatever is no plain name, or leads out of the folder."""
        place = self.root / name
        if name != Path(name).name or name.startswith(".") or clean(name) != name or "\\" in name or not name:
            raise PlanError(f"{clean(name)!r} is no file's name in this folder")
        if place.resolve().parent != self.root:
            raise PlanError(f"{name!r} leads out of the folder, and is not followed")
        return place

    # what is there ----------------------------------------------------------------------------------------------------

    def data(self) -> list[str]:
        """What holds records: files of every format, and tables of databases ("survey.sqlite/answers", "env:CLINIC/answers")."""
        ledgers = self.ledgers()
        places = [name for name in self._names(*DATABASES) if name not in ledgers]
        tables = [
            f"{name}/{table}"
            for name in (*places, *(f"{_VARIABLE}{one}" for one in self.variables))
            for table in self._tables(name)
        ]
        return [*self._names(*DATA), *tables]

    def _tables(self, name: str) -> list[str]:
        """Tables by their names; none of what is no database, or cannot be opened now."""
        try:
            return [one for one in self._database(name).tables() if clean(one) == one]
        except ConfideError:
            return []

    def _database(self, name: str) -> Database:
        variable = name.removeprefix(_VARIABLE)
        if variable == name:
            return Database.at(self.path(name))
        if variable not in self.variables:
            raise PlanError(
                f"the studio was not told of {clean(name)!r}", f"begin it with --database {clean(variable)}"
            )
        return Database.at(name)

    def records(self, name: str) -> Any:
        """What `confide.read` takes for a file, or for a table of a database."""
        place, mark, table = name.partition("/")
        return self._database(place).query(table) if mark else self.path(name)

    def fields(self, name: str, layout: FileLayout) -> tuple[list[Field], FileLayout]:
        """The columns of a file, from metadata, and the layout in which they were found."""
        try:
            return fields_of(self.records(name), layout)
        except (SchemaError, SourceError) as error:
            told = str(error)
            if _CALLS.search(error.remedy):  # what a form has fields for
                several = f" ({error.allowed})" if error.allowed else ""
                told = f"{error.problem}{several}; fill in How the file is laid out, in the form of its schema"
            raise PlanError(told.replace(f"{self.root}{os.sep}", "")) from None

    @staticmethod
    def is_table(name: str) -> bool:
        """Whether a name of records is that of a table of a database."""
        return "/" in name

    def mark(self, name: str) -> FileMark | None:
        """The state of the file that holds the records; None of a database elsewhere."""
        place = name.partition("/")[0]
        return None if place.startswith(_VARIABLE) else FileMark.of(self.path(place))

    def unread(self, name: str) -> str:
        """Why the columns of a file cannot be read, in the layout of the schema that names it; empty where they can."""
        if self.is_table(name):
            return ""
        named = [made.file for made in self._made() if made.file.name == name]
        try:
            self.fields(name, named[0] if named else FileLayout())
        except ConfideError as error:
            return str(error)
        return ""

    def _made(self, digest: str | None = None) -> list[Schema]:
        """The schemas of the folder that can be read; digest: those with this one."""
        found = []
        for name in self.schemas():
            with suppress(ConfideError):
                found.append(Schema.from_toml(self.path(name)))
        return [made for made in found if digest in (None, made.digest)]

    def with_layout(self, schema: Schema, name: str) -> Schema:
        """A plan's schema, which has no layout of files, with that of the records of this name.

        It is that of the folder's schema with the same facts that names these records, else of the only one with these facts.
        """
        made = self._made(schema.digest)
        layouts = [one.file for one in made if one.file.name == name] or [one.file for one in made]
        bare = {replace(one, name=None) for one in layouts}
        if len(bare) > 1:
            raise PlanError(
                f"several schemas of this folder describe these columns, and say differently how {clean(name)} is laid out",
                f'write name = "{clean(name)}" in [file] of the schema that is of it',
            )
        return schema.with_file(bare.pop().to_settings()) if bare else schema

    def read(self, name: str, schema: Schema) -> tuple[Schema, RecordSource]:
        """The records of a name, by a plan's schema; and that schema with their layout."""
        own = self.with_layout(schema, name)
        return own, read(self.records(name), own)

    def records_of_schema(self, schema: Schema) -> str | None:
        """The records that a schema names, where they are here and have its columns. None where no schema names any, or several do."""
        named = {made.file.name for made in self._made(schema.digest)} - {None}
        there = [name for name in self.data() if name in named]
        return there[0] if len(there) == 1 and self._has_columns(there[0], schema) else None

    def _has_columns(self, name: str, schema: Schema) -> bool:
        try:
            own = self.with_layout(schema, name)
            if own.file.kind_of(name) == "sheet":  # whose reading is that of all cells
                held = {field.name for field in self.fields(name, own.file)[0]}
                return all(own.file.names.get(one, one) in held for one in own.in_data)
            read(self.records(name), own).check(schema.in_data)
        except ConfideError:
            return False
        return True

    def with_columns_of(self, schema: Schema) -> list[str]:
        """All records that have the columns of a schema, by their names and types alone."""
        return [name for name in self.data() if self._has_columns(name, schema)]

    def schemas(self) -> list[str]:
        return [name for name in self._names(".toml") if not name.endswith(".publication.toml")]

    def ledgers(self) -> list[str]:
        """Files `*.db` but those of other databases; one that is neither is shown among them, as one that cannot be read."""
        return [name for name in self._names(".db") if self._is_ledger(name) or not self._tables(name)]

    def _is_ledger(self, name: str) -> bool:
        try:
            Ledger.datasets(self.path(name))
        except PlanError:
            return False
        except ConfideError:  # one that is busy is one
            return True
        return True

    def requests(self) -> list[str]:
        """Names of requests, without their ending."""
        return [name.removesuffix(".request.json") for name in self._names(".request.json")]

    def releases(self) -> list[str]:
        """Names of releases, without their ending."""
        return [name.removesuffix(".release.json") for name in self._names(".release.json")]

    def _names(self, *endings: str) -> list[str]:
        found = []
        for place in sorted(self.root.iterdir(), key=lambda one: one.name.lower()):
            name = place.name
            plain = clean(name) == name and not name.startswith(".") and "\\" not in name
            if plain and name.lower().endswith(endings) and place.is_file() and place.resolve().parent == self.root:
                found.append(name)
        return found

    # requests, decisions, releases ------------------------------------------------------------------------------------

    def ask(self, name: str, plan: Plan, who: str, purpose: str, form: Mapping[str, str]) -> Request:
        """Write a request under a name that is free; the name that was taken is in the result."""
        wanted = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_LONGEST] or "request"
        asked = Request(wanted, plan, _short(who), _short(purpose, 2_000), dict(form))
        plain = {"who": asked.who, "purpose": asked.purpose, "form": asked.form}
        said = {**plain, "asked": now(), "plan": json.loads(plan.to_json())}
        count = 1
        while True:
            own = wanted if count == 1 else f"{wanted}-{count}"
            if self._new(f"{own}.request.json", said):
                return replace(asked, name=own)
            count += 1

    def request(self, name: str) -> Request:
        """Raises `PlanError` for a file that is no request, or whose plan cannot be read here."""
        said = self._json(f"{name}.request.json", "request")
        plan = said.get("plan")
        if not isinstance(plan, dict):
            raise PlanError(f"{name}.request.json has no plan; a request is written by the studio's page of questions")
        who, purpose = (_short(str(said.get(key, "")), most) for key, most in (("who", 200), ("purpose", 2_000)))
        given = said.get("form")
        form = {str(key): str(value) for key, value in given.items()} if isinstance(given, dict) else {}
        return Request(name, Plan.from_json(json.dumps(plan)), who, purpose, form)

    def decision(self, name: str) -> dict[str, Any] | None:
        """What was said to a request, None while nothing was."""
        if not self.path(f"{name}.decision.json").exists():
            return None
        return self._json(f"{name}.decision.json", "decision")

    def decide(self, name: str, said: Mapping[str, Any]) -> bool:
        """Write a decision, once: False where there is one already."""
        return self._new(f"{name}.decision.json", {**said, "decided": now()})

    def reopen(self, name: str) -> None:
        """Put a decision aside, so that another may be made; it stays in the folder under another name."""
        place, count = self.path(f"{name}.decision.json"), 1
        while (aside := self.path(f"{name}.decision-{count}.json")).exists():
            count += 1
        place.rename(aside)

    def hold(self, name: str) -> IO[str] | None:
        """Take a request for releasing it: None where it is being released, here or by another process. Closing the file lets it go.

        The lock is the system's, so that a process that dies holds nothing.
        """
        file = self._lock(name).open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    def let_go(self, name: str, held: IO[str]) -> None:
        """Let a request go that `hold` took."""
        self._lock(name).unlink(missing_ok=True)
        held.close()

    def held(self, name: str) -> float | None:
        """For how many seconds a request has been held, None where it is not."""
        place = self._lock(name)
        try:
            with place.open("r", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
        except FileNotFoundError:
            return None
        except BlockingIOError:
            return max(0.0, time.time() - place.stat().st_mtime) if place.exists() else 0.0

    def _lock(self, name: str) -> Path:
        return self.path(f"{name}.request.json").with_name(f".{name}.running")

    def take_place(self, name: str) -> None:
        """See, before anything is charged, that a release can be kept; `PlanError` where it cannot."""
        place, part = self._places(name)
        if place.exists():
            raise PlanError(f"{place.name} is there already, and no release is written over another", "move it away")
        try:
            part.open("w").close()
        except OSError as error:
            raise PlanError(
                f"the release could not be kept in this folder ({error.strerror}: {part.name}); nothing was done"
            ) from None

    def keep(self, name: str, release: Release) -> None:
        """Write a release, whole or not at all, never over another."""
        place, part = self._places(name)
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                file.write(release.to_json())
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(part, place)
            except FileExistsError:
                raise
            except OSError:  # a file system without links: the name is taken first, by nobody else
                place.touch(exist_ok=False)
                part.replace(place)
        finally:
            part.unlink(missing_ok=True)

    def _places(self, name: str) -> tuple[Path, Path]:
        return self.path(f"{name}.release.json"), self.root / f".{name}.release.part"

    def release(self, name: str) -> Release | None:
        """The release of a request, None where there is none."""
        place = self.path(f"{name}.release.json")
        return Release.load(place) if place.exists() else None

    def _new(self, name: str, said: Mapping[str, Any]) -> bool:
        try:
            with self.path(name).open("x", encoding="utf-8") as file:
                json.dump(said, file, indent=1, ensure_ascii=True)
        except FileExistsError:
            return False
        return True

    def _json(self, name: str, what: str) -> dict[str, Any]:
        place = self.path(name)
        try:
            if place.stat().st_size > _MOST_BYTES:
                raise ValueError
            said = json.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise FileError(f"{name} cannot be read as a {what}", "ask for the file again") from None
        if not isinstance(said, dict):
            raise PlanError(f"{name} is no {what}", "ask for the file again")
        return said


def stem_of(data: str) -> str:
    """What files about some records are called: of survey.csv "survey", of survey.sqlite/answers "survey-answers"."""
    place, mark, table = data.removeprefix(_VARIABLE).partition("/")
    ending = next((one for one in (*DATA, *DATABASES) if place.lower().endswith(one)), "")
    stem = place[: len(place) - len(ending)] or "table"
    return f"{stem}-{re.sub(r'[^A-Za-z0-9_-]+', '-', table).strip('-') or 'table'}" if mark else stem


def now() -> str:
    """This moment, as files have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _short(text: str, most: int = 200) -> str:
    """One line of text, cut."""
    return clean(" ".join(text.split()))[:most]
