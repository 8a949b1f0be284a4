"""A ledger accounts for what it was opened for: another data set, unit or number of rows per unit is refused, however it is spelled."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.ledger_workers import PLAN, gdp
from tests.messages import refuses

import confide as cf
from confide.errors import PlanError, PrivacyError, SchemaError
from confide.guarantees import GDP
from confide.ledger import Ledger
from confide.ledger.names import same_name


@pytest.fixture
def ledger(place: str | Path) -> Ledger:
    return Ledger.create(place, dataset="acs", budget=GDP(3.0), unit="person", rows_per_unit=2)


def ask(ledger: Ledger, **about: object) -> None:
    given = {"dataset": "acs", "unit": "person", "rows_per_unit": 2, **about}
    ledger.charge((gdp(1.0),), **given, method="toy 1", plan_sha256=PLAN)


def test_what_it_was_opened_for_is_charged(ledger: Ledger) -> None:
    ask(ledger)
    assert (ledger.unit, ledger.rows_per_unit) == ("person", 2)
    assert "one person with at most 2 rows" in " ".join(str(ledger.show()).split())
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"dataset": "cps"}, PlanError),
        ({"dataset": None}, PlanError),
        ({"dataset": ""}, PlanError),
        ({"unit": "record"}, PrivacyError),
        ({"unit": "household"}, PrivacyError),
        ({"rows_per_unit": 1}, PrivacyError),
        ({"rows_per_unit": 3}, PrivacyError),
        ({"rows_per_unit": True}, PlanError),
        ({"unit": "\n"}, PlanError),
    ],
)
def test_anything_else_is_refused_with_the_call_that_works(
    ledger: Ledger, about: dict[str, object], error: type[Exception]
) -> None:
    before = ledger.show()
    with refuses(error):
        ask(ledger, **about)
    with refuses(error):
        ledger.check(**{"dataset": "acs", "unit": "person", "rows_per_unit": 2, **about})
    assert ledger.show() == before


@pytest.mark.parametrize("name", ["ACS", " acs ", "ａｃｓ"])
def test_names_differ_by_case_width_and_space_in_nothing(place: str | Path, ledger: Ledger, name: str) -> None:
    assert same_name(name, "acs")
    ask(ledger, dataset=name)
    assert Ledger.open(place, dataset=name).dataset == "acs"
    if name.isprintable():
        with refuses(PlanError):
            Ledger.create(place, dataset=name, budget=GDP(9.0))
    assert ledger.verify().ok


def test_names_that_differ_are_other_names() -> None:
    assert not any(same_name("acs", other) for other in ("acs 2", "a cs", "acś", "acs-", "cps"))
    assert same_name("Straße", "STRASSE")


def test_the_gate_hands_over_what_the_schema_says(tmp_path: Path) -> None:
    """Records of one survey charged to another, and persons with two rows counted as if they had one."""

    def schema(**facts: object) -> cf.Schema:
        return cf.Schema({"v": cf.Numeric(0, 10), "w": cf.Numeric(0, 1)}, **facts)

    def release(found: cf.Schema, **read: object) -> object:
        source = cf.read(found.sample(200, 1), found, **read)
        return cf.release(_line(), source, cf.GDP(0.5), ledger=ledger)

    ledger = Ledger.create(tmp_path / "l.db", dataset="acs", budget=GDP(4.0), unit="person", rows_per_unit=2)
    release(schema(dataset="ACS", unit="Person", rows_per_unit=2))
    for wrong in (
        {"dataset": "cps", "unit": "person", "rows_per_unit": 2},
        {"dataset": "acs", "unit": "person", "rows_per_unit": 1},
        {"dataset": "acs", "rows_per_unit": 2},
        {"unit": "person", "rows_per_unit": 2},
    ):
        with pytest.raises((PlanError, PrivacyError)):
            release(schema(**wrong))
    with refuses(PlanError):
        release(schema(dataset="cps", unit="person", rows_per_unit=2), dataset="acs")
    assert [row.kind for row in ledger.show().rows] == ["open", "charge", "receipt"]


def _line() -> object:
    return cf.regression.LeastSquares("v ~ w")


def _faces(folder: Path) -> dict[str, tuple[Ledger, Callable[[object, cf.Schema], object]]]:
    """Each face that charges: a ledger of its terms, and the release of one of its kind from records that were read under a name."""
    from confide.ask.local import protect_source

    central = Ledger.create(folder / "central.db", dataset="acs", budget=GDP(4.0, relation="add-remove"))
    own = GDP(9.0, 1e-3, relation="substitute", trust="local")
    local = Ledger.create(folder / "local.db", dataset="acs", budget=own)
    asked: dict[str, Any] = {"columns": ["v"], "noise": 2.0, "charge_delta": 1e-6}
    return {
        "release": (central, lambda data, _: cf.release(_line(), data, cf.GDP(0.5), ledger=central)),
        "publication": (
            central,
            lambda data, _: cf.release(cf.Publication({"line": _line()}), data, cf.GDP(0.5), ledger=central),
        ),
        "protected table": (local, lambda data, _: protect_source(data, folder / "p.csv", ledger=local, **asked)),
        "stream": (local, lambda _, schema: cf.local.Releaser.open(local, schema, **asked)),
    }


@pytest.mark.parametrize("face", ["release", "publication", "protected table", "stream"])
def test_whatever_charges_is_about_what_its_schema_says(tmp_path: Path, face: str) -> None:
    """One reading of a schema for all of them: what one refuses, all refuse, with nothing spent."""
    ledger, release = _faces(tmp_path)[face]
    columns = {"v": cf.Numeric(0, 10, on_missing=5), "w": cf.Numeric(0, 1)}

    def tried(read_as: str | None = None, **facts: Any) -> object:
        schema = cf.Schema(columns, **{"dataset": "acs", **facts})
        return release(cf.read(schema.sample(50, 1), schema, dataset=read_as), schema)

    for facts in (
        {"dataset": "cps"},
        {"dataset": None},
        {"unit": "household"},
        {"rows_per_unit": 5},
        {"unit": "household", "rows_per_unit": 5},
        {"unit": cf.Unit("pid")},
    ):
        with pytest.raises((PlanError, PrivacyError)):
            tried(**facts)
    if face != "stream":  # which is of no records yet
        with refuses(PlanError):
            tried("acs", dataset="cps")
    assert [row.kind for row in ledger.show().rows] == ["open"]
    tried("ACS")
    assert [row.kind for row in ledger.show().rows][:2] == ["open", "charge"]


def test_no_face_writes_by_itself_what_a_charge_is_about() -> None:
    """Data set, unit and rows of a charge come from `gate.terms` alone."""
    package = Path(cf.__file__).parent
    found = set()
    for place in package.rglob("*.py"):
        text = place.read_text(encoding="utf-8")
        if "rows_per_unit=" not in text or package / "ledger" in place.parents:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                told = {one.arg for one in call.keywords}
                if call.func.attr in ("charge", "check") and told & {"unit", "rows_per_unit", "enforced"}:
                    found.add(f"{place.relative_to(package)}:{call.lineno}")
    assert found == set()


def test_a_draft_leaves_data_set_and_unit_to_fill_in() -> None:
    text = cf.Schema.draft(cf.Schema({"v": cf.Integer(0, 1)}).sample(3, 1))
    assert 'dataset = "?"' in text
    assert 'unit = "?"' in text
    filled = text.replace('low = "?"', "low = 0").replace('high = "?"', "high = 9")
    with refuses(SchemaError):
        cf.Schema.from_toml(filled)
    named = filled.replace('dataset = "?"', 'dataset = "s"').replace('unit = "?"', 'unit = "record"')
    assert cf.Schema.from_toml(named).dataset == "s"


def test_a_plan_says_what_it_assumes_of_rows() -> None:
    bare, told = (
        cf.Schema({"v": cf.Numeric(0, 1), "w": cf.Numeric(0, 1)}),
        cf.Schema({"v": cf.Numeric(0, 1), "w": cf.Numeric(0, 1)}, unit="person", rows_per_unit=3),
    )
    said, given = (" ".join(cf.plan(_line(), schema, GDP(1.0)).summary().split()) for schema in (bare, told))
    assert "Protects one record added or removed. If a person has several rows, set `unit` in the schema" in said
    assert "Protects one person with at most 3 rows (declared, not enforced) added or removed" in given
