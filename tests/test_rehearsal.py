"""What public facts alone can make fail costs nothing: a plan runs on simulated rows before it is charged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import confide as cf
from confide import registry
from confide.core import Plan, Release, codec
from confide.core.events import Event
from confide.core.exact import Numbers
from confide.core.plan import MethodId
from confide.core.release import Noisy
from confide.engine import releasing
from confide.ledger.records import Entry, LedgerState
from confide.sources import coding
from confide.sources.simulated import SIMULATED_ROWS, simulated_source
from confide.testing.checks import _holds_code
from tests.few import few
from tests.golden.golden_cases import CASES, frame_of, schema_of
from tests.in_place import in_place
from tests.messages import refuses
from tests.third_party import Mean

SCHEMA = cf.Schema({"v": cf.Numeric(0, 10), "g": cf.Categorical(["a", "b"])}, dataset="d")
N = 300

pytestmark = pytest.mark.filterwarnings("ignore:dataset 'd'")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register(Mean)
    yield
    registry._registered.pop("toy_mean", None)


def ledger(tmp_path: Path, budget: cf.Guarantee | None = None, **terms: Any) -> cf.Ledger:
    return cf.Ledger.create(tmp_path / "ledger.db", dataset="d", budget=budget or cf.GDP(50.0, 0.5), **terms)


def untouched(book: cf.Ledger) -> bool:
    return not any(row.kind == "charge" for row in book.show().rows)


@pytest.mark.parametrize(
    "name",
    few(
        sorted(CASES),
        "least_squares",
        "logistic",
        "ssp",
        "counts",
        "means",
        "quantiles pure",
        "quantiles",
        "proportion",
        "synthetic_table",
        "plurality",
        "select",
        "block_posterior",
        "safe_release",
        "distinct_counts",
        "publication",
        "within",
        "efficient_ptr",
        "kernel",
        "posterior_sampling ridge",
        "huber_line",
        "poisson",
        "teacher_labels distance",
    ),
)
def test_a_plan_from_its_file_is_released_or_refused_with_nothing_spent(name: str, tmp_path: Path) -> None:
    method, privacy = CASES[name]
    schema = schema_of(method)
    relation = method.relations[0]
    unit = {"unit": schema.unit.column} if isinstance(schema.unit, cf.Unit) else {}
    book = ledger(tmp_path, cf.GDP(50.0, 0.5, relation=relation), **unit)
    frame = frame_of(schema)
    source = cf.read(frame, schema, dataset="d")
    with in_place():
        plan = cf.plan(method, schema, privacy, ledger=book, n=1500 if relation == "substitute" else None)
        try:
            release = cf.release(Plan.from_json(plan.to_json()), source, ledger=book)
        except cf.errors.PlanError:
            assert untouched(book)
            assert _holds_code(plan)  # which no file can hold
        else:
            assert cf.verify(release, book).ok


@dataclass(frozen=True)
class Faulty(Mean):
    """A method with a fault that public facts show."""

    name = "toy_mean"
    how: str = "raises"

    def draw(self, source: Any, plan: Plan, meter: Any) -> Mapping[str, Any]:
        if self.how == "raises":
            raise KeyError("theta")
        found = super().draw(source, plan, meter)
        return {"text": "no number"} if self.how == "text" else found

    def table(self, *asked: Any) -> Any:
        if self.how == "table":
            raise ZeroDivisionError("no group has a record")
        return super().table(*asked)


@pytest.mark.parametrize(
    ("how", "said"),
    [("raises", "KeyError: 'theta'"), ("text", "finite numbers"), ("table", "ZeroDivisionError: no group")],
)
def test_what_always_fails_is_told_in_full_and_costs_nothing(how: str, said: str, tmp_path: Path) -> None:
    book = ledger(tmp_path)
    with refuses(cf.errors.PlanError) as error:
        cf.release(Faulty("v", how=how), cf.read(SCHEMA.sample(N, 1), SCHEMA), cf.GDP(1.0), ledger=book)
    assert said in str(error.value)
    assert error.value.__cause__ is not None
    assert untouched(book)


def test_a_question_that_fails_among_others_is_named_with_its_cause(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    registry._registered["toy_mean"] = Faulty
    both = cf.Publication({"one": cf.tables.Counts("g", inference="population"), "two": Faulty("v")})
    with refuses(cf.errors.PlanError):
        cf.release(both, cf.read(SCHEMA.sample(N, 1), SCHEMA), cf.GDP(1.0), ledger=book)
    assert untouched(book)


def _csv(folder: Path) -> Any:
    SCHEMA.sample(N, 1).to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def _packed(folder: Path) -> Any:
    SCHEMA.sample(N, 1).to_csv(folder / "a.csv.gz", index=False, sep=";")
    return folder / "a.csv.gz"


def _parquet(folder: Path) -> Any:
    SCHEMA.sample(N, 1).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def _keyed(folder: Path) -> Any:
    frame = SCHEMA.sample(N, 1)
    for level in ("a", "b"):
        (folder / "all" / f"g={level}").mkdir(parents=True)
        frame[["v"]].to_parquet(folder / "all" / f"g={level}" / "0.parquet")
    return folder / "all"


def _database(folder: Path) -> Any:
    with sqlite3.connect(folder / "a.sqlite") as connection:
        SCHEMA.sample(N, 1).to_sql("answers", connection, index=False)
    return str(folder / "a.sqlite" / "answers")


def _words(folder: Path) -> Any:
    # a column of numbers in words of the schema's levels, and levels in a dictionary of whole numbers
    return pa.table(
        {"v": pa.array([str(i % 10) for i in range(N)]), "g": pa.array([i % 2 for i in range(N)], pa.int8())}
    )


_KINDS: Mapping[str, Callable[[Path], Any]] = {
    "CSV": _csv,
    "packed CSV": _packed,
    "Parquet": _parquet,
    "keys": _keyed,
    "database": _database,
    "Arrow": _words,
    "pandas": lambda _: SCHEMA.sample(N, 1),
    "categories": lambda _: SCHEMA.sample(N, 1).astype({"g": "category"}),
    "extension types": lambda _: SCHEMA.sample(N, 1).convert_dtypes(),
    "NumPy": lambda _: np.full((N, 2), 1.0),
    "lists": lambda _: {"v": [1.0, None, "2"] * 100, "g": ["a", "b", 3] * 100},
}


@pytest.mark.parametrize("kind", _KINDS)
def test_simulated_rows_are_behind_readers_of_the_same_kind(kind: str, tmp_path: Path) -> None:
    source = cf.read(_KINDS[kind](tmp_path), SCHEMA, delimiter=";" if kind == "packed CSV" else ",")
    simulated = simulated_source(source)
    assert simulated.count() == SIMULATED_ROWS
    kinds = [{name: source._parts[0].kind(name) for name in SCHEMA.names} for source in (source, simulated)]
    assert kinds[0] == kinds[1] or kind == "database"  # SQLite says what type a column has when its cells come
    total, *_ = simulated.aggregate(*_counted().values())
    # words in a column of numbers, and levels that no whole number names, are missing there as they are in the records
    assert total.sum() == (0 if kind in ("Arrow", "NumPy") else SIMULATED_ROWS)


def test_a_source_of_another_kind_has_simulated_rows_of_its_schema() -> None:
    class Other:
        schema = SCHEMA

    simulated: Any = simulated_source(Other())  # type: ignore[arg-type]
    assert simulated.count() == SIMULATED_ROWS and simulated.schema == SCHEMA


def _counted() -> Mapping[str, Any]:
    return cf.plan(cf.tables.Counts("g", inference="population"), SCHEMA, cf.GDP(1.0)).statistics


@pytest.mark.parametrize("kind", ["CSV", "Parquet", "pandas", "database"])
def test_a_reader_that_cannot_read_such_a_column_is_told_of_before_the_charge(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a pyarrow that lacks a type of text."""

    def lacking(*_: Any) -> Any:
        raise AttributeError("module 'pyarrow' has no attribute 'string_view'")

    source = cf.read(_KINDS[kind](tmp_path), SCHEMA)
    book = ledger(tmp_path)
    monkeypatch.setattr(coding.Labels, "text", lacking)
    with refuses(cf.errors.PlanError):
        cf.release(cf.tables.Counts("g", inference="population"), source, cf.GDP(1.0), ledger=book)
    assert untouched(book)


def test_damaged_data_behind_sound_metadata_are_charged(tmp_path: Path) -> None:
    """No rehearsal sees them: of a file its metadata alone are public."""
    path, book = _parquet(tmp_path), ledger(tmp_path)
    content = path.read_bytes()
    sound = int.from_bytes(content[-8:-4], "little") + 8  # bytes of the metadata, at the end
    path.write_bytes(content[:4] + bytes(len(content) - 4 - sound) + content[-sound:])
    source = cf.read(path, SCHEMA)
    with pytest.raises(cf.errors.ReleaseError):
        cf.release(cf.tables.Counts("g", inference="population"), source, cf.GDP(1.0), ledger=book)
    assert not untouched(book)


def test_what_readers_say_of_records_stays_unsaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated rows alone are read without the guard, in the thread that rehearses."""
    source, real = cf.read(SCHEMA.sample(N, 1), SCHEMA), coding.Labels.text

    def quoting(self: Any, cells: Any, marks: Any) -> Any:
        if len(cells) != SIMULATED_ROWS:
            raise ValueError(f"the cell {cells[0]}")
        return real(self, cells, marks)

    book = ledger(tmp_path)
    monkeypatch.setattr(coding.Labels, "text", quoting)
    with pytest.raises(cf.errors.ReleaseError) as error:
        cf.release(cf.tables.Counts("g", inference="population"), source, cf.GDP(1.0), ledger=book)
    assert "the cell" not in str(error.value) and error.value.__context__ is None
    assert not untouched(book)


def test_a_release_that_no_file_can_hold_is_told_of_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a library whose annotations the codec did not know."""
    book = ledger(tmp_path)

    def odd(self: Release) -> str:
        raise TypeError("no exact text form for ndarray; use numbers, text, booleans, lists or mappings")

    monkeypatch.setattr(Release, "to_json", odd)
    with refuses(cf.errors.PlanError):
        cf.release(Mean("v"), cf.read(SCHEMA.sample(N, 1), SCHEMA), cf.GDP(1.0), ledger=book)
    assert untouched(book)


def test_the_codec_knows_arrays_by_our_own_name() -> None:
    """What NumPy's annotations are made of differs between its versions: since 2.5 they are no `np.ndarray` any more."""
    written = (Plan, Release, Noisy, MethodId, Entry, LedgerState, *get_args(Event))
    hints = [hint for kind in written for hint in get_type_hints(kind).values()]
    said = [one for hint in hints for one in (hint, *get_args(hint))]
    assert said.count(Numbers) == 2  # of a statistic, of public numbers
    assert not any("numpy" in repr(one) or "NDArray" in repr(one) for one in said)
    assert codec._KNOWN[Numbers][1] is codec.array_from_dict


def test_a_method_that_was_edited_is_rehearsed_again(tmp_path: Path) -> None:
    """As in a notebook whose cell was changed and run again: the plan is the same, the code is not."""
    book, source = ledger(tmp_path), cf.read(SCHEMA.sample(N, 1), SCHEMA)
    cf.release(Mean("v"), source, cf.GDP(1.0), ledger=book)
    charges = [row for row in book.show().rows if row.kind == "charge"]

    @dataclass(frozen=True)
    class Edited(Mean):
        def draw(self, source: Any, plan: Plan, meter: Any) -> Mapping[str, Any]:
            raise NameError("name 'totl' is not defined")

    with refuses(cf.errors.PlanError):
        cf.release(Edited("v"), source, cf.GDP(1.0), ledger=book)
    assert [row for row in book.show().rows if row.kind == "charge"] == charges


def test_the_rehearsal_reads_no_record(tmp_path: Path) -> None:
    source = cf.read(SCHEMA.sample(N, 1), SCHEMA)

    class Shut(type(source)):  # type: ignore[misc]
        def aggregate(self, *statistics: Any) -> Any:
            raise AssertionError("a record was read")

    shut = Shut(SCHEMA, source._parts, dataset="d")
    planned = cf.plan(cf.tables.Counts("g", inference="population"), SCHEMA, cf.GDP(1.0))
    releasing._rehearse(cf.tables.Counts("g", inference="population"), shut, planned, None)
